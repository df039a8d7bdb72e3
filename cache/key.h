/* SPDX-License-Identifier: MIT */
/* The name of an embedding: SHA-256 over everything that decides its numbers. */
#ifndef AQE_CACHE_KEY_H
#define AQE_CACHE_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache_key {
	uint8_t b[32];
};

struct cache_key_parts {
	const char *scope; /* who shares it, such as "type:qe-test-writer"; NULL or "": everybody */
	const char *provider, *model, *revision; /* NULL is "" */
	uint32_t dimension;                      /* asked for; 0 = the model's own */
	bool normalised;                         /* to unit length */
	const void *content;                     /* any bytes; no trimming, no Unicode folding */
	size_t len;
};

/* Hashes a tag and then each part with its length in front: parts cannot run into each other. */
void cache_key_make(const struct cache_key_parts *p, struct cache_key *ret);
bool cache_key_equal(const struct cache_key *a, const struct cache_key *b);

#define CACHE_KEY_TEXT 65 /* 64 lower-case hex digits + NUL */
void cache_key_format(const struct cache_key *k, char ret[CACHE_KEY_TEXT]);
/* True for exactly 64 lower-case hex digits. */
bool cache_key_parse(const char *text, struct cache_key *ret);

#endif
