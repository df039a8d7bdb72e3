/* SPDX-License-Identifier: MIT */
/* A growing byte buffer with a maximum given at init. Always NUL-terminated past its end, so that
 * `b.p` can be read as a string when the content has no NUL. */
#ifndef AQE_CORE_BUF_H
#define AQE_CORE_BUF_H

#include <stddef.h>

#include "shim/core/err.h"

struct aqe_buf {
	char *p;    /* NULL until something was added */
	size_t len; /* bytes in use */
	size_t cap; /* bytes allocated */
	size_t max; /* most bytes it may hold, without the NUL */
	int failed; /* first failure (an aqe_code): sticky, later additions do nothing */
};
#define AQE_BUF_INIT(max_bytes)            \
	{                                  \
		NULL, 0, 0, (max_bytes), 0 \
	}

/* Frees the contents; the buffer may be used again with the same maximum. NULL is accepted. */
void aqe_buf_done(struct aqe_buf *b);
/* The same for secrets: the memory is overwritten first. (What a growing buffer had before is not:
 * give it room at once, or read no more than the first 4,096 bytes.) */
void aqe_buf_wipe(struct aqe_buf *b);
/* Empties it and keeps the memory; a sticky failure is cleared. */
void aqe_buf_clear(struct aqe_buf *b);
/* The string, "" when empty. Valid until the next addition. */
const char *aqe_buf_str(const struct aqe_buf *b);

/* All return 0, AQE_E_NOMEM or AQE_E_LIMIT, and are sticky: a chain of additions may ignore the
 * single results and look at aqe_buf_ok() once. */
int aqe_buf_add(struct aqe_buf *b, const void *p, size_t n);
int aqe_buf_puts(struct aqe_buf *b, const char *s);
int aqe_buf_putc(struct aqe_buf *b, char c);
int aqe_buf_addf(struct aqe_buf *b, const char *fmt, ...) AQE_PRINTF(2, 3);
/* Room for `n` more bytes, or for as many as the maximum allows: they can be written behind the
 * contents, and counted by aqe_buf_grown(). NULL (sticky AQE_E_NOMEM) without memory; *ret_n can be
 * 0. */
char *aqe_buf_room(struct aqe_buf *b, size_t n, size_t *ret_n);
void aqe_buf_grown(struct aqe_buf *b, size_t n);
/* 0, or the sticky failure with `e` (may be NULL) filled. */
AQE_MUST_CHECK int aqe_buf_ok(const struct aqe_buf *b, struct aqe_err *e);

#endif
