/* SPDX-License-Identifier: MIT */
/* Internal to audit/: writing the canonical encoding of audit/chain.h piece by piece, from a row or
 * from the columns of a statement. */
#ifndef AQE_AUDIT_ENCODE_H
#define AQE_AUDIT_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "audit/chain.h"

#define AUDIT_ENC_MARK "aqe-row1"

/* The hash of the row before, then the encoding: what is hashed. */
struct audit_enc {
	uint8_t buf[32 + AUDIT_ENCODING_MAX];
	size_t n;
	bool full; /* something did not fit */
};

/* Every field of a row. */
void audit_enc_row(struct audit_enc *c, const struct audit_row *r);

static inline void audit_enc_begin(struct audit_enc *c, const uint8_t prev[32])
{
	memcpy(c->buf, prev, 32);
	memcpy(c->buf + 32, AUDIT_ENC_MARK, sizeof(AUDIT_ENC_MARK) - 1);
	c->n = 32 + sizeof(AUDIT_ENC_MARK) - 1;
	c->full = false;
}

static inline void audit_enc_be(uint8_t *p, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> (8 * (bytes - 1 - i)));
}

/* True when `n` more bytes fit. */
static inline bool audit_enc_room(struct audit_enc *c, size_t n)
{
	if (n > sizeof(c->buf) - c->n)
		c->full = true;
	return !c->full;
}

static inline void audit_enc_none(struct audit_enc *c)
{
	if (audit_enc_room(c, 1))
		c->buf[c->n++] = 'n';
}

static inline void audit_enc_int(struct audit_enc *c, int64_t v)
{
	if (!audit_enc_room(c, 9))
		return;
	c->buf[c->n] = 'i';
	audit_enc_be(c->buf + c->n + 1, (uint64_t)v, 8);
	c->n += 9;
}

static inline void audit_enc_text(struct audit_enc *c, const void *p, size_t n)
{
	if (n > UINT32_MAX || !audit_enc_room(c, n + 5)) {
		c->full = true;
		return;
	}
	c->buf[c->n] = 't';
	audit_enc_be(c->buf + c->n + 1, n, 4);
	memcpy(c->buf + c->n + 5, p, n);
	c->n += 5 + n;
}

#endif
