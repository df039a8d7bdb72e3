/* SPDX-License-Identifier: MIT */
#include "cache/value.h"

#include <float.h>

#include "shim/core/cleanup.h"
#include "tests/unit/cache_util.h"

static struct aqe_err e;

static const struct cache_value HEAD = { .dim = 3, .created_ms = UTIL_START, .ttl_ms = 5000 };

START_TEST(value__comes_back)
{
	static const float IN[] = { 0.0f, -0.0f, 1.0f, FLT_MAX, -FLT_MIN, FLT_TRUE_MIN, 0.1f };
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(CACHE_VALUE_MAX);
	struct cache_value head = { .dim = 7, .created_ms = UTIL_START, .ttl_ms = 77 }, v;
	const struct cache_key k = util_key(1);
	float out[7];

	ck_assert_ok(cache_value_encode(&k, &head, IN, &b, &e), e);
	ck_assert_uint_eq(b.len, CACHE_VALUE_HEAD + 28);
	ck_assert_ok(cache_value_decode(&k, b.p, b.len, &v, &e), e);
	ck_assert(v.dim == 7 && v.created_ms == UTIL_START && v.ttl_ms == 77);
	cache_value_floats(&v, out);
	ck_assert_mem_eq(out, IN, sizeof(IN)); /* bit for bit, the sign of zero too */
}
END_TEST

/* Values are on disk: these bytes must never change. */
START_TEST(value__is_stable)
{
	static const float IN[] = { 1.0f, -2.5f, 0.0f };
	static const uint8_t WANT[] = { 'A', 'Q', 'E', 'V', 1, 0, 0, 0, 3, 0, 0, 0 };
	static const uint8_t FLOATS[] = { 0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0, 0, 0, 0, 0 };
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(CACHE_VALUE_MAX);
	const struct cache_key k = { { 1, 2, 3 } };

	ck_assert_ok(cache_value_encode(&k, &HEAD, IN, &b, &e), e);
	ck_assert_mem_eq(b.p, WANT, sizeof(WANT));
	ck_assert_mem_eq(b.p + CACHE_VALUE_HEAD, FLOATS, sizeof(FLOATS));
	ck_assert_mem_eq(b.p + 16, "\x00\xdc\x20\x74\x97\x01\x00\x00", 8); /* 1750000000000 */
	ck_assert_mem_eq(b.p + 24, "\x88\x13\x00\x00\x00\x00\x00\x00", 8);
}
END_TEST

/* One flipped bit anywhere, one byte less or more, another key: never a value. */
START_TEST(value__shows_damage)
{
	static const float IN[] = { 1.0f, -2.5f, 0.0f };
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(CACHE_VALUE_MAX);
	const struct cache_key k = util_key(1), other = util_key(2);
	struct cache_value v;

	ck_assert_ok(cache_value_encode(&k, &HEAD, IN, &b, &e), e);
	for (size_t bit = 0; bit < b.len * 8; bit++) {
		b.p[bit / 8] = (char)(b.p[bit / 8] ^ (1 << bit % 8));
		ck_assert_fault(cache_value_decode(&k, b.p, b.len, &v, &e), AQE_E_MALFORMED, e,
				"damaged");
		b.p[bit / 8] = (char)(b.p[bit / 8] ^ (1 << bit % 8));
	}
	for (size_t n = 0; n < b.len; n++)
		ck_assert_fault(cache_value_decode(&k, b.p, n, &v, &e), AQE_E_MALFORMED, e,
				"damaged");
	ck_assert_ok(cache_value_decode(&k, b.p, b.len, &v, &e), e);
	ck_assert_fault(cache_value_decode(&other, b.p, b.len, &v, &e), AQE_E_MALFORMED, e,
			"wrong checksum");
	aqe_buf_putc(&b, 0);
	ck_assert_fault(cache_value_decode(&k, b.p, b.len, &v, &e), AQE_E_MALFORMED, e,
			"3 numbers");
}
END_TEST

static const struct {
	double number;
	bool ok;
} NUMBERS[] = {
	{ 0.1, true },    { NAN, false },         { INFINITY, false },    { -INFINITY, false },
	{ 1e300, false }, { -1e300, false },      { 3.4028234e38, true }, { 3.5e38, false },
	{ 1e-300, true }, { DBL_TRUE_MIN, true },
};

START_TEST(value__takes_finite_numbers_only)
{
	const double in[] = { 1, NUMBERS[_i].number, 2 };
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(CACHE_VALUE_MAX);
	const struct cache_key k = util_key(1);
	struct cache_narrowing lost = { -1, -1 };
	int rc;

	aqe_buf_puts(&b, "before");
	rc = cache_value_encode_f64(&k, &HEAD, in, &b, &lost, &e);
	if (NUMBERS[_i].ok) {
		ck_assert_ok(rc, e);
		ck_assert(lost.max_rel >= 0 && lost.max_rel <= 0x1p-24);
		return;
	}
	ck_assert_fault(rc, AQE_E_MALFORMED, e, "number 1 is not finite");
	ck_assert_uint_eq(b.len, 6); /* nothing was added */
	ck_assert(lost.max_rel < 0);
}
END_TEST

/* NaN that got into the store together with a good checksum. */
START_TEST(value__does_not_return_nan)
{
	static const float IN[] = { 1, 2, 3 };
	static const uint32_t BAD[] = { 0x7fc00000, 0x7f800000, 0xff800000, 0x7f800001,
					0xffffffff };
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(CACHE_VALUE_MAX);
	const struct cache_key k = util_key(1);
	struct cache_value v;
	uint32_t sum;

	ck_assert_ok(cache_value_encode(&k, &HEAD, IN, &b, &e), e);
	for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
		memcpy(b.p + CACHE_VALUE_HEAD + 4, &BAD[i], 4);
		sum = cache_crc32c(0, k.b, 32);
		sum = cache_crc32c(sum, b.p, 12);
		sum = cache_crc32c(sum, b.p + 16, b.len - 16);
		memcpy(b.p + 12, &sum, 4);
		ck_assert_fault(cache_value_decode(&k, b.p, b.len, &v, &e), AQE_E_MALFORMED, e,
				"not finite");
	}
}
END_TEST

START_TEST(value__narrows_with_a_known_error)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(CACHE_VALUE_MAX);
	const struct cache_value head = { .dim = 1000, .created_ms = 0, .ttl_ms = 1 };
	const struct cache_key k = util_key(1);
	struct cache_narrowing lost;
	double in[1000], worst = 0;
	struct cache_value v;
	float out[1000];

	for (int i = 0; i < 1000; i++)
		in[i] = sin(i) / (1 + i % 7);
	ck_assert_ok(cache_value_encode_f64(&k, &head, in, &b, &lost, &e), e);
	ck_assert_ok(cache_value_decode(&k, b.p, b.len, &v, &e), e);
	cache_value_floats(&v, out);
	for (int i = 0; i < 1000; i++)
		worst = fmax(worst, fabs(in[i] - (double)out[i]));
	ck_assert(worst <= lost.max_abs && worst >= lost.max_abs); /* equal */
	ck_assert(lost.max_abs > 0 && lost.max_rel <= 0x1p-24);
}
END_TEST

START_TEST(value__holds_its_limits)
{
	static float in[CACHE_DIM_MAX + 1];
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(CACHE_VALUE_MAX);
	AQE_AUTO_BUF struct aqe_buf small = AQE_BUF_INIT(100);
	struct cache_value head = { .dim = 0, .created_ms = 0, .ttl_ms = 1 }, v;
	const struct cache_key k = util_key(1);

	ck_assert_fault(cache_value_encode(&k, &head, in, &b, &e), AQE_E_LIMIT, e, "not 0");
	head.dim = CACHE_DIM_MAX + 1;
	ck_assert_fault(cache_value_encode(&k, &head, in, &b, &e), AQE_E_LIMIT, e, "not 65537");
	head.dim = CACHE_DIM_MAX;
	ck_assert_ok(cache_value_encode(&k, &head, in, &b, &e), e);
	ck_assert_ok(cache_value_decode(&k, b.p, b.len, &v, &e), e);
	aqe_buf_clear(&b);
	head.ttl_ms = CACHE_TTL_MAX_MS + 1;
	ck_assert_fault(cache_value_encode(&k, &head, in, &b, &e), AQE_E_LIMIT, e, "time to live");
	head.ttl_ms = 1;
	ck_assert_fault(cache_value_encode(&k, &head, in, &small, &e), AQE_E_LIMIT, e, "100 bytes");
}
END_TEST

static const struct {
	int64_t created, ttl, ttl_max, now;
	bool alive;
} LIVES[] = {
	{ 1000, 100, 1000, 1000, true },
	{ 1000, 100, 1000, 1099, true },
	{ 1000, 100, 1000, 1100, false },
	{ 1000, 100, 50, 1050, false }, /* the reader's limit */
	{ 1000, 100, 50, 1049, true },
	{ 10000, 100, 100, 5000, true }, /* 5 s between two clocks */
	{ 10000, 100, 100, 4999, false },
	{ INT64_MIN, 100, 100, 5000, false },
	{ INT64_MAX, 100, 100, INT64_MIN, false },
	{ INT64_MAX, INT64_MAX, INT64_MAX, 0, false },
	{ 0, INT64_MAX, 100, 99, true },
};

START_TEST(alive__ends)
{
	ck_assert_int_eq(cache_value_alive(LIVES[_i].created, LIVES[_i].ttl, LIVES[_i].ttl_max,
					   LIVES[_i].now),
			 LIVES[_i].alive);
}
END_TEST

static uint32_t crc_bitwise(const uint8_t *p, size_t n)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

/* RFC 3720, appendix B.4, and every short length and alignment against the definition. */
START_TEST(crc32c__is_the_standard_one)
{
	uint8_t data[300];

	memset(data, 0, 32);
	ck_assert_uint_eq(cache_crc32c(0, data, 32), 0x8a9136aa);
	memset(data, 0xff, 32);
	ck_assert_uint_eq(cache_crc32c(0, data, 32), 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		data[i] = (uint8_t)i;
	ck_assert_uint_eq(cache_crc32c(0, data, 32), 0x46dd794e);
	ck_assert_uint_eq(cache_crc32c(0, "123456789", 9), 0xe3069283);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 37 + 11);
	for (size_t n = 0; n < 280; n++) {
		ck_assert_uint_eq(cache_crc32c(0, data + n % 8, n), crc_bitwise(data + n % 8, n));
		ck_assert_uint_eq(cache_crc32c(cache_crc32c(0, data, n / 3), data + n / 3,
					       n - n / 3),
				  crc_bitwise(data, n));
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("value");
	TCase *t = tcase_create("value");

	tcase_add_test(t, value__comes_back);
	tcase_add_test(t, value__is_stable);
	tcase_add_test(t, value__shows_damage);
	tcase_add_loop_test(t, value__takes_finite_numbers_only, 0,
			    sizeof(NUMBERS) / sizeof(NUMBERS[0]));
	tcase_add_test(t, value__does_not_return_nan);
	tcase_add_test(t, value__narrows_with_a_known_error);
	tcase_add_test(t, value__holds_its_limits);
	tcase_add_loop_test(t, alive__ends, 0, sizeof(LIVES) / sizeof(LIVES[0]));
	tcase_add_test(t, crc32c__is_the_standard_one);
	suite_add_tcase(s, t);
	return unit_run(s);
}
