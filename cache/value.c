/* SPDX-License-Identifier: MIT */
#include "cache/value.h"

#include <math.h>
#include <string.h>

/* Offsets in the header. */
enum { AT_MAGIC = 0, AT_VERSION = 4, AT_DIM = 8, AT_SUM = 12, AT_CREATED = 16, AT_TTL = 24 };

static const uint8_t START[8] = { 'A', 'Q', 'E', 'V', 1, 0, 0, 0 }; /* magic, version, reserved */

static void put(uint8_t *p, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t take(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

static uint32_t checksum(const struct cache_key *k, const uint8_t *p, size_t n)
{
	uint32_t crc = cache_crc32c(0, k->b, sizeof(k->b));

	crc = cache_crc32c(crc, p, AT_SUM);
	return cache_crc32c(crc, p + AT_CREATED, n - AT_CREATED);
}

/* The index of the first number that is not finite, or `n`. */
static size_t first_bad(const uint8_t *floats, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t bits;

		memcpy(&bits, floats + 4 * i, sizeof(bits));
		if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
			bits = __builtin_bswap32(bits);
		if ((bits & 0x7f800000U) == 0x7f800000U)
			return i;
	}
	return n;
}

static void store_float(uint8_t *p, float v)
{
	uint32_t bits;

	memcpy(&bits, &v, sizeof(bits));
	put(p, bits, sizeof(bits));
}

static int check_head(const struct cache_value *v, struct aqe_err *e)
{
	if (v->dim == 0 || v->dim > CACHE_DIM_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "an embedding has 1 to %u numbers, not %u",
				   CACHE_DIM_MAX, v->dim);
	if (v->ttl_ms < 1 || v->ttl_ms > CACHE_TTL_MAX_MS)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "a time to live of %lld ms",
				   (long long)v->ttl_ms);
	return 0;
}

/* Room for a value at the end of `b`. */
static int reserve(struct aqe_buf *b, const struct cache_value *head, uint8_t **ret,
		   struct aqe_err *e)
{
	static const uint8_t ZERO[256];
	size_t left = CACHE_VALUE_HEAD + (size_t)head->dim * 4;
	const size_t start = b->len;
	int rc = check_head(head, e);

	if (rc)
		return rc;
	while (left > 0) {
		const size_t now = left < sizeof(ZERO) ? left : sizeof(ZERO);

		aqe_buf_add(b, ZERO, now);
		left -= now;
	}
	rc = aqe_buf_ok(b, e);
	if (!rc)
		*ret = (uint8_t *)b->p + start;
	return rc;
}

/* Head and checksum around the numbers that are there already. */
static int seal(const struct cache_key *k, const struct cache_value *head, uint8_t *p,
		struct aqe_err *e)
{
	const size_t bad = first_bad(p + CACHE_VALUE_HEAD, head->dim);

	if (bad < head->dim)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "number %zu is not finite in float32",
				   bad);
	memcpy(p + AT_MAGIC, START, sizeof(START));
	put(p + AT_DIM, head->dim, 4);
	put(p + AT_CREATED, (uint64_t)head->created_ms, 8);
	put(p + AT_TTL, (uint64_t)head->ttl_ms, 8);
	put(p + AT_SUM, checksum(k, p, CACHE_VALUE_HEAD + (size_t)head->dim * 4), 4);
	return 0;
}

int cache_value_encode(const struct cache_key *k, const struct cache_value *head, const float *v,
		       struct aqe_buf *b, struct aqe_err *e)
{
	const size_t start = b->len;
	uint8_t *p = NULL;
	int rc = reserve(b, head, &p, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < head->dim; i++)
		store_float(p + CACHE_VALUE_HEAD + 4 * i, v[i]);
	rc = seal(k, head, p, e);
	if (rc)
		b->len = start;
	return rc;
}

int cache_value_encode_f64(const struct cache_key *k, const struct cache_value *head,
			   const double *v, struct aqe_buf *b, struct cache_narrowing *ret,
			   struct aqe_err *e)
{
	struct cache_narrowing lost = { 0, 0 };
	const size_t start = b->len;
	uint8_t *p = NULL;
	int rc = reserve(b, head, &p, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < head->dim; i++) {
		const float f = (float)v[i];
		const double diff = fabs(v[i] - (double)f);

		store_float(p + CACHE_VALUE_HEAD + 4 * i, f);
		lost.max_abs = fmax(lost.max_abs, diff);
		if (fabs(v[i]) >= 0x1p-126)
			lost.max_rel = fmax(lost.max_rel, diff / fabs(v[i]));
	}
	rc = seal(k, head, p, e);
	if (rc)
		b->len = start;
	else if (ret)
		*ret = lost;
	return rc;
}

int cache_value_decode(const struct cache_key *k, const void *data, size_t n,
		       struct cache_value *ret, struct aqe_err *e)
{
	const uint8_t *p = data;
	struct cache_value v;

	if (n < CACHE_VALUE_HEAD || n > CACHE_VALUE_MAX)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "damaged: a value of %zu bytes", n);
	if (memcmp(p, START, sizeof(START)) != 0)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "damaged: not a value of this version");
	v.dim = (uint32_t)take(p + AT_DIM, 4);
	if (v.dim == 0 || v.dim > CACHE_DIM_MAX || n != CACHE_VALUE_HEAD + (size_t)v.dim * 4)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "damaged: %u numbers in %zu bytes", v.dim,
				   n);
	if ((uint32_t)take(p + AT_SUM, 4) != checksum(k, p, n))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "damaged: wrong checksum");
	v.created_ms = (int64_t)take(p + AT_CREATED, 8);
	v.ttl_ms = (int64_t)take(p + AT_TTL, 8);
	v.floats = p + CACHE_VALUE_HEAD;
	/* the sum is no proof against somebody who writes into the store on purpose */
	if (v.ttl_ms < 1 || v.ttl_ms > CACHE_TTL_MAX_MS)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "damaged: time to live out of range");
	if (first_bad(v.floats, v.dim) < v.dim)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "damaged: a number is not finite");
	*ret = v;
	return 0;
}

bool cache_value_peek(const void *data, size_t n, int64_t *ret_created_ms, int64_t *ret_ttl_ms)
{
	const uint8_t *p = data;

	if (n < CACHE_VALUE_HEAD || memcmp(p, START, sizeof(START)) != 0)
		return false;
	*ret_created_ms = (int64_t)take(p + AT_CREATED, 8);
	*ret_ttl_ms = (int64_t)take(p + AT_TTL, 8);
	return true;
}

void cache_value_floats(const struct cache_value *v, float *out)
{
	memcpy(out, v->floats, (size_t)v->dim * 4);
	if (__BYTE_ORDER__ != __ORDER_BIG_ENDIAN__)
		return;
	for (size_t i = 0; i < v->dim; i++) {
		const uint32_t bits = (uint32_t)take(v->floats + 4 * i, 4);

		memcpy(&out[i], &bits, sizeof(bits));
	}
}

bool cache_value_alive(int64_t created_ms, int64_t ttl_ms, int64_t ttl_max_ms, int64_t now_ms)
{
	const int64_t ttl = ttl_ms < ttl_max_ms ? ttl_ms : ttl_max_ms;
	int64_t age;

	if (__builtin_sub_overflow(now_ms, created_ms, &age))
		return false;
	return age >= -CACHE_FUTURE_MS && age < ttl;
}
