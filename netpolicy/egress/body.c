/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/body.h"

#include <string.h>

void netpol_body_init(struct netpol_body *b, enum netpol_h1_body kind, uint64_t length, bool plain)
{
	memset(b, 0, sizeof(*b));
	b->kind = kind;
	b->plain = plain;
	b->left = length;
	b->done = kind == NETPOL_H1_NO_BODY || (kind == NETPOL_H1_LENGTH && length == 0);
	netpol_h1_chunks_init(&b->chunks);
}

static void put_chunk(const struct netpol_body *b, struct aqe_buf *out, const char *p, size_t n)
{
	char head[NETPOL_H1_CHUNK_HEAD_MAX + 1];

	if (n == 0)
		return;
	/* Sticky failures: looked at once, at the end. */
	if (!b->plain)
		(void)aqe_buf_add(out, head, netpol_h1_chunk_head(head, n));
	(void)aqe_buf_add(out, p, n);
	if (!b->plain)
		(void)aqe_buf_add(out, "\r\n", 2);
}

static enum netpol_h1_step feed_chunks(struct netpol_body *b, const char *p, size_t n,
				       struct aqe_buf *out, size_t *ret_used)
{
	enum netpol_h1_step step = NETPOL_H1_MORE;
	size_t at = 0, used, data;

	while (at < n && step == NETPOL_H1_MORE) {
		step = netpol_h1_chunks_next(&b->chunks, p + at, n - at, &used, &data);
		put_chunk(b, out, p + at + used - data, data);
		at += used;
	}
	if (step == NETPOL_H1_DONE) {
		b->done = true;
		if (!b->plain)
			(void)aqe_buf_puts(out, NETPOL_H1_CHUNK_END);
	}
	*ret_used = at;
	return step;
}

enum netpol_h1_step netpol_body_feed(struct netpol_body *b, const char *p, size_t n,
				     struct aqe_buf *out, size_t *ret_used)
{
	enum netpol_h1_step step = NETPOL_H1_MORE;
	size_t take = n;

	*ret_used = 0;
	if (b->done)
		return NETPOL_H1_DONE;
	if (b->kind == NETPOL_H1_CHUNKED) {
		step = feed_chunks(b, p, n, out, ret_used);
	} else {
		if (b->kind == NETPOL_H1_LENGTH && b->left < n)
			take = (size_t)b->left;
		(void)aqe_buf_add(out, p, take);
		*ret_used = take;
		if (b->kind == NETPOL_H1_LENGTH) {
			b->left -= take;
			b->done = b->left == 0;
		}
		step = b->done ? NETPOL_H1_DONE : NETPOL_H1_MORE;
	}
	return aqe_buf_ok(out, NULL) < 0 ? NETPOL_H1_BAD : step;
}
