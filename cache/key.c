/* SPDX-License-Identifier: MIT */
#include "cache/key.h"

#include <string.h>

#include "shim/core/sha256.h"
#include "shim/core/text.h"

/* Another meaning of the parts needs another tag. */
static const char TAG[] = "aqe embedding 1", TAG_SCOPED[] = "aqe embedding 1, of a scope";

static void little_endian(uint8_t *p, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static void add_part(struct aqe_sha256_ctx *h, const void *p, size_t n)
{
	uint8_t length[8];

	little_endian(length, n, sizeof(length));
	aqe_sha256_add(h, length, sizeof(length));
	aqe_sha256_add(h, p, n);
}

static void add_text(struct aqe_sha256_ctx *h, const char *s)
{
	add_part(h, s, s ? strlen(s) : 0);
}

void cache_key_make(const struct cache_key_parts *p, struct cache_key *ret)
{
	const bool scoped = p->scope && *p->scope;
	const uint8_t normalised = p->normalised;
	struct aqe_sha256_ctx h;
	uint8_t dimension[4];

	little_endian(dimension, p->dimension, sizeof(dimension));
	aqe_sha256_init(&h);
	add_text(&h, scoped ? TAG_SCOPED : TAG);
	if (scoped)
		add_text(&h, p->scope);
	add_text(&h, p->provider);
	add_text(&h, p->model);
	add_text(&h, p->revision);
	add_part(&h, dimension, sizeof(dimension));
	add_part(&h, &normalised, sizeof(normalised));
	add_part(&h, p->content, p->len);
	aqe_sha256_end(&h, ret->b);
}

bool cache_key_equal(const struct cache_key *a, const struct cache_key *b)
{
	return memcmp(a->b, b->b, sizeof(a->b)) == 0; /* no secret */
}

void cache_key_format(const struct cache_key *k, char ret[CACHE_KEY_TEXT])
{
	static const char HEX[] = "0123456789abcdef";

	for (size_t i = 0; i < sizeof(k->b); i++) {
		ret[2 * i] = HEX[k->b[i] >> 4];
		ret[2 * i + 1] = HEX[k->b[i] & 15];
	}
	ret[CACHE_KEY_TEXT - 1] = '\0';
}

static uint8_t digit(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

bool cache_key_parse(const char *text, struct cache_key *ret)
{
	if (!text || !aqe_is_hex(text, CACHE_KEY_TEXT - 1))
		return false;
	for (size_t i = 0; i < sizeof(ret->b); i++)
		ret->b[i] = (uint8_t)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
	return true;
}
