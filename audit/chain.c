/* SPDX-License-Identifier: MIT */
#include "audit/chain.h"

#include <string.h>

#include "audit/encode.h"
#include "shim/core/sha256.h"

#define GENESIS "aqe-genesis1"

static bool is_text(const struct audit_field *f)
{
	return f->type == AUDIT_FIELD_TEXT || f->type == AUDIT_FIELD_JSON;
}

void audit_enc_row(struct audit_enc *c, const struct audit_row *r)
{
	for (size_t i = 0; i < AUDIT_FIELDS_COUNT; i++) {
		const struct audit_field *f = &AUDIT_FIELDS[i];
		const char *text = is_text(f) ? audit_field_text(r, f) : NULL;
		int64_t v = is_text(f) ? AUDIT_NONE : audit_field_int(r, f);

		if (text) {
			size_t n = strnlen(text, (size_t)f->max + 1);

			c->full |= n > (size_t)f->max;
			audit_enc_text(c, text, n);
		} else if (v == AUDIT_NONE) {
			audit_enc_none(c);
		} else {
			audit_enc_int(c, v);
		}
	}
}

size_t audit_encode(const struct audit_row *r, uint8_t *out, size_t size)
{
	static const uint8_t NO_HASH[32] = { 0 };
	struct audit_enc c;

	audit_enc_begin(&c, NO_HASH);
	audit_enc_row(&c, r);
	if (c.full || c.n - 32 > size)
		return 0;
	memcpy(out, c.buf + 32, c.n - 32);
	return c.n - 32;
}

bool audit_row_hash(const uint8_t prev[32], const struct audit_row *r, uint8_t ret[32])
{
	struct audit_enc c;

	audit_enc_begin(&c, prev);
	audit_enc_row(&c, r);
	if (c.full)
		return false;
	aqe_sha256(c.buf, c.n, ret);
	return true;
}

void audit_genesis(const struct audit_id *id, uint8_t ret[32])
{
	uint8_t data[sizeof(GENESIS) - 1 + 32 + 8];

	memcpy(data, GENESIS, sizeof(GENESIS) - 1);
	memcpy(data + sizeof(GENESIS) - 1, id->chain, 32);
	audit_enc_be(data + sizeof(GENESIS) - 1 + 32, (uint64_t)id->created_ns, 8);
	aqe_sha256(data, sizeof(data), ret);
}

/* ---- reading ---- */

static uint64_t read_be(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}

/* One field at `p`; how many bytes it took, 0 when it is not a field `f`, -1 without memory. */
static long decode_field(struct aqe_arena *a, const struct audit_field *f, const uint8_t *p,
			 size_t n, struct audit_row *r)
{
	size_t len;
	const char *text;

	if (n >= 1 && p[0] == 'n') {
		if (is_text(f))
			audit_field_set_text(r, f, NULL);
		else
			audit_field_set_int(r, f, AUDIT_NONE);
		return is_text(f) || f->type == AUDIT_FIELD_NUMBER ? 1 : 0;
	}
	if (!is_text(f)) {
		int64_t v = n >= 9 && p[0] == 'i' ? (int64_t)read_be(p + 1, 8) : -1;

		if (v < 0 || v > f->max)
			return 0;
		audit_field_set_int(r, f, v);
		return 9;
	}
	if (n < 5 || p[0] != 't')
		return 0;
	len = (size_t)read_be(p + 1, 4);
	if (len > n - 5 || len > (size_t)f->max || memchr(p + 5, '\0', len))
		return 0;
	text = aqe_arena_ndup(a, (const char *)p + 5, len);
	if (!text)
		return -1;
	audit_field_set_text(r, f, text);
	return (long)len + 5;
}

int audit_decode(struct aqe_arena *a, const uint8_t *p, size_t n, struct audit_row *ret,
		 struct aqe_err *e)
{
	struct audit_row r = AUDIT_ROW_INIT(AUDIT_KIND_ANY, AUDIT_ACTION_ANY);
	size_t at = sizeof(AUDIT_ENC_MARK) - 1;

	if (n < at || memcmp(p, AUDIT_ENC_MARK, at) != 0)
		return aqe_err_set(e, AQE_E_MALFORMED, 0,
				   "audit row: not an encoding of version 1");
	for (size_t i = 0; i < AUDIT_FIELDS_COUNT; i++) {
		long took = decode_field(a, &AUDIT_FIELDS[i], p + at, n - at, &r);

		if (took < 0)
			return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
		if (took == 0)
			return aqe_err_set(e, AQE_E_MALFORMED, 0,
					   "audit row: '%s' is not encoded as it should",
					   AUDIT_FIELDS[i].name);
		at += (size_t)took;
	}
	if (at != n)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "audit row: bytes after the last field");
	*ret = r;
	return AQE_OK;
}
