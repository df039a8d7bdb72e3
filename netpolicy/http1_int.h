/* SPDX-License-Identifier: MIT */
/* Shared by the HTTP/1.1 readers: characters, words, and what request and response have in common.
 */
#ifndef AQE_NETPOLICY_HTTP1_INT_H
#define AQE_NETPOLICY_HTTP1_INT_H

#include "netpolicy/http1.h"

/* RFC 9110 5.6.2: tchar. */
bool netpol_h1_is_token(unsigned char c);
/* VCHAR. */
static inline bool netpol_h1_is_visible(unsigned char c)
{
	return c > 0x20 && c < 0x7f;
}
/* What a field value and a reason phrase may hold: VCHAR, blank, tab, obs-text. */
static inline bool netpol_h1_is_text(unsigned char c)
{
	return (c >= 0x20 && c != 0x7f) || c == '\t';
}
static inline bool netpol_h1_is_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

/* Equality of a span with a lower-case word, letter case ignored. */
bool netpol_h1_is(const char *p, struct netpol_h1_span s, const char *word);
/* Equality of two spans of the same bytes, letter case ignored. */
bool netpol_h1_same(const char *p, struct netpol_h1_span a, struct netpol_h1_span b);
/* 1*DIGIT up to `max`, nothing else; false leaves *ret untouched. */
bool netpol_h1_number(const char *p, struct netpol_h1_span s, uint64_t max, uint64_t *ret);
/* The next element of a comma list, without white space around it: advances *at (0 at first). True
 * while there is one; an empty element is returned as n = 0. */
bool netpol_h1_list_next(const char *p, struct netpol_h1_span list, uint32_t *at,
			 struct netpol_h1_span *ret);

/* A host and an optional port, as CONNECT's target, an http URI and the Host field write them. */
struct netpol_h1_authority {
	struct netpol_h1_span host;
	uint16_t port;    /* 0: none */
	bool port_absent; /* not even a colon */
};
enum netpol_h1_fault netpol_h1_authority_read(const char *p, struct netpol_h1_span s,
					      struct netpol_h1_authority *ret);

/* What both directions have in common. */
struct netpol_h1_common {
	bool close, upgrade; /* words of Connection fields */
	bool websocket;      /* Upgrade: websocket */
	unsigned lengths, codings;
	uint64_t length;
	struct netpol_h1_span coding;
	struct netpol_h1_span host, expect, max_forwards;
	unsigned hosts, expects, forwards;
};
/* Reads Connection, Content-Length, Transfer-Encoding, Upgrade; marks nominated fields. */
enum netpol_h1_fault netpol_h1_common_read(struct netpol_h1_head *h, const char *p,
					   struct netpol_h1_common *ret);
/* Transfer-Encoding must be exactly "chunked". */
enum netpol_h1_fault netpol_h1_coding_check(const char *p, struct netpol_h1_span coding);

#endif
