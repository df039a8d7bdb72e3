/* SPDX-License-Identifier: MIT */
/* The chunked coding, incremental and without a buffer of its own. Extensions and trailers are
 * checked, bounded and thrown away. */
#ifndef AQE_NETPOLICY_HTTP1_CHUNK_H
#define AQE_NETPOLICY_HTTP1_CHUNK_H

#include "netpolicy/http1.h"

enum {
	NETPOL_H1_CHUNK_EXT_MAX = 256,     /* bytes of one chunk's extensions, with the ';' */
	NETPOL_H1_CHUNK_DIGITS_MAX = 15,   /* hex digits of a size: under 2^60 */
	NETPOL_H1_TRAILER_MAX = 8192,      /* bytes of all trailer lines */
	NETPOL_H1_TRAILER_FIELDS_MAX = 32, /* fields */
};

struct netpol_h1_chunks {
	uint64_t left;   /* of the chunk */
	uint32_t count;  /* digits, extension bytes, or trailer bytes */
	uint16_t fields; /* trailer fields */
	uint8_t state;
};
void netpol_h1_chunks_init(struct netpol_h1_chunks *c);

/* Takes bytes from `p`: *ret_used of `n` are spent, and *ret_data bytes of these, the last ones,
 * are body. NETPOL_H1_MORE: call again with what is left, or with more when all was spent.
 * NETPOL_H1_DONE: the body ended; the bytes after *ret_used belong to the next message.
 * NETPOL_H1_BAD: it is malformed or over a limit, for good. */
enum netpol_h1_step netpol_h1_chunks_next(struct netpol_h1_chunks *c, const char *p, size_t n,
					  size_t *ret_used, size_t *ret_data);

/* The head of a chunk of `n` > 0 bytes; its length, at most NETPOL_H1_CHUNK_HEAD_MAX. CRLF must
 * follow the data. The end of a body is NETPOL_H1_CHUNK_END. */
#define NETPOL_H1_CHUNK_HEAD_MAX 18
#define NETPOL_H1_CHUNK_END      "0\r\n\r\n"
size_t netpol_h1_chunk_head(char ret[NETPOL_H1_CHUNK_HEAD_MAX + 1], size_t n);

#endif
