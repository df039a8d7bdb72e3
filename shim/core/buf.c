/* SPDX-License-Identifier: MIT */
#include "shim/core/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/core/text.h"

#define BUF_FIRST 64 /* smallest allocation */

void aqe_buf_done(struct aqe_buf *b)
{
	if (!b)
		return;
	free(b->p);
	b->p = NULL;
	b->len = 0;
	b->cap = 0;
	b->failed = AQE_OK;
}

void aqe_buf_wipe(struct aqe_buf *b)
{
	if (b && b->p)
		explicit_bzero(b->p, b->cap);
	aqe_buf_done(b);
}

void aqe_buf_clear(struct aqe_buf *b)
{
	b->len = 0;
	b->failed = AQE_OK;
	if (b->p)
		b->p[0] = '\0';
}

const char *aqe_buf_str(const struct aqe_buf *b)
{
	return b->p ? b->p : "";
}

/* Makes room for `n` more bytes and the NUL. */
static int grow(struct aqe_buf *b, size_t n)
{
	size_t want, cap;
	char *p;

	if (b->failed)
		return b->failed;
	if (b->len > b->max || n > b->max - b->len)
		return b->failed = AQE_E_LIMIT;
	if (!aqe_size_add(b->len + n, 1, &want))
		return b->failed = AQE_E_LIMIT;
	if (want <= b->cap)
		return AQE_OK;
	cap = b->cap ? b->cap : BUF_FIRST;
	while (cap < want)
		if (!aqe_size_mul(cap, 2, &cap))
			return b->failed = AQE_E_LIMIT;
	if (b->max < SIZE_MAX && cap > b->max + 1)
		cap = b->max + 1;
	p = realloc(b->p, cap);
	if (!p)
		return b->failed = AQE_E_NOMEM;
	b->p = p;
	b->cap = cap;
	return AQE_OK;
}

int aqe_buf_add(struct aqe_buf *b, const void *p, size_t n)
{
	int rc;

	if (b->failed || n >= b->cap - b->len) { /* the NUL needs a byte, too */
		rc = grow(b, n);
		if (rc)
			return rc;
	}
	if (n > 0)
		memcpy(b->p + b->len, p, n);
	b->len += n;
	b->p[b->len] = '\0';
	return AQE_OK;
}

char *aqe_buf_room(struct aqe_buf *b, size_t n, size_t *ret_n)
{
	size_t left = b->max > b->len ? b->max - b->len : 0;

	if (n < left)
		left = n;
	if (b->failed || grow(b, left))
		return NULL;
	b->p[b->len] = '\0';
	*ret_n = left;
	return b->p + b->len;
}

void aqe_buf_grown(struct aqe_buf *b, size_t n)
{
	b->len += n;
	b->p[b->len] = '\0';
}

int aqe_buf_puts(struct aqe_buf *b, const char *s)
{
	return aqe_buf_add(b, s, strlen(s));
}

int aqe_buf_putc(struct aqe_buf *b, char c)
{
	return aqe_buf_add(b, &c, 1);
}

int aqe_buf_addf(struct aqe_buf *b, const char *fmt, ...)
{
	va_list ap;
	int n, rc;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (b->failed)
		return b->failed;
	if (n < 0)
		return b->failed = AQE_E_NOMEM; /* the only way our formats can fail */
	rc = grow(b, (size_t)n);
	if (rc)
		return rc;
	va_start(ap, fmt);
	(void)vsnprintf(b->p + b->len, (size_t)n + 1, fmt, ap); /* measured above */
	va_end(ap);
	b->len += (size_t)n;
	return AQE_OK;
}

int aqe_buf_ok(const struct aqe_buf *b, struct aqe_err *e)
{
	if (b->failed == AQE_E_LIMIT)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %zu bytes", b->max);
	if (b->failed)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	return AQE_OK;
}
