/* SPDX-License-Identifier: MIT */
#include "shim/core/text.h"

#include <string.h>

#include "shim/core/cleanup.h"
#include "tests/unit/unit.h"

START_TEST(str__compares)
{
	static const char *const LIST[] = { "a", "", "abc", NULL };

	ck_assert(aqe_str_eq("a", "a"));
	ck_assert(!aqe_str_eq("a", "A"));
	ck_assert(!aqe_str_eq(NULL, ""));
	ck_assert(!aqe_str_eq("", NULL));
	ck_assert(aqe_str_eq(NULL, NULL));
	ck_assert(aqe_starts("abc", "ab") && aqe_starts("abc", "") && aqe_starts("abc", "abc"));
	ck_assert(!aqe_starts("abc", "abcd") && !aqe_starts("", "a"));
	ck_assert(aqe_ends("abc", "bc") && aqe_ends("abc", "") && aqe_ends("abc", "abc"));
	ck_assert(!aqe_ends("abc", "zabc") && !aqe_ends("", "a") && !aqe_ends("abc", "ab"));
	ck_assert(aqe_str_in("", LIST) && aqe_str_in("abc", LIST));
	ck_assert(!aqe_str_in("ab", LIST) && !aqe_str_in(NULL, LIST));
}
END_TEST

static const struct {
	const char *text;
	uint64_t max;
	bool ok;
	uint64_t value;
} U64[] = {
	{ "0", 0, true, 0 },
	{ "1", 0, false, 0 },
	{ "511", 512, true, 511 },
	{ "512", 512, true, 512 },
	{ "513", 512, false, 0 },
	{ "18446744073709551615", UINT64_MAX, true, UINT64_MAX },
	{ "18446744073709551616", UINT64_MAX, false, 0 },
	{ "18446744073709551620", UINT64_MAX, false, 0 },
	{ "99999999999999999999", UINT64_MAX, false, 0 },
	{ "4294968296", UINT32_MAX, false, 0 },
	{ "", 9, false, 0 },
	{ "00", 9, false, 0 },
	{ "01", 9, false, 0 },
	{ "-1", 9, false, 0 },
	{ "-0", 9, false, 0 },
	{ "+1", 9, false, 0 },
	{ " 1", 9, false, 0 },
	{ "1 ", 9, false, 0 },
	{ "1\n", 9, false, 0 },
	{ "1.0", 9, false, 0 },
	{ "1e0", 9, false, 0 },
	{ "0x1", 9, false, 0 },
	{ "1_0", 99, false, 0 },
	{ "\xd9\xa1", 9, false, 0 }, /* Arabic digit one */
	{ NULL, 9, false, 0 },
};

START_TEST(parse_u64__is_strict)
{
	uint64_t v = 77;

	ck_assert_int_eq(aqe_parse_u64(U64[_i].text, U64[_i].max, &v), U64[_i].ok);
	ck_assert_uint_eq(v, U64[_i].ok ? U64[_i].value : 77);
}
END_TEST

static const struct {
	const char *text;
	int64_t min, max;
	bool ok;
	int64_t value;
} I64[] = {
	{ "0", -5, 5, true, 0 },
	{ "-5", -5, 5, true, -5 },
	{ "-6", -5, 5, false, 0 },
	{ "5", -5, 5, true, 5 },
	{ "6", -5, 5, false, 0 },
	{ "-1", 0, 5, false, 0 },
	{ "-0", -5, 5, false, 0 },
	{ "-00", -5, 5, false, 0 },
	{ "-01", -5, 5, false, 0 },
	{ "--1", -5, 5, false, 0 },
	{ "-", -5, 5, false, 0 },
	{ "", -5, 5, false, 0 },
	{ "+1", -5, 5, false, 0 },
	{ "- 1", -5, 5, false, 0 },
	{ "9223372036854775807", INT64_MIN, INT64_MAX, true, INT64_MAX },
	{ "9223372036854775808", INT64_MIN, INT64_MAX, false, 0 },
	{ "-9223372036854775808", INT64_MIN, INT64_MAX, true, INT64_MIN },
	{ "-9223372036854775809", INT64_MIN, INT64_MAX, false, 0 },
	{ "18446744073709551615", INT64_MIN, INT64_MAX, false, 0 },
	{ "-18446744073709551615", INT64_MIN, INT64_MAX, false, 0 },
	{ NULL, -5, 5, false, 0 },
};

START_TEST(parse_i64__is_strict)
{
	int64_t v = 77;

	ck_assert_int_eq(aqe_parse_i64(I64[_i].text, I64[_i].min, I64[_i].max, &v), I64[_i].ok);
	ck_assert_int_eq(v, I64[_i].ok ? I64[_i].value : 77);
}
END_TEST

static const struct {
	const char *text;
	bool ok;
	uint64_t value;
} SIZES[] = {
	{ "0", true, 0 },
	{ "512", true, 512 },
	{ "1k", true, 1024 },
	{ "64K", true, 65536 },
	{ "16m", true, (uint64_t)16 << 20 },
	{ "3M", true, (uint64_t)3 << 20 },
	{ "1g", true, (uint64_t)1 << 30 },
	{ "2G", true, (uint64_t)2 << 30 },
	{ "18446744073709551615", true, UINT64_MAX },
	{ "17179869183g", true, (uint64_t)17179869183 << 30 },
	{ "17179869184g", false, 0 },
	{ "18014398509481984k", false, 0 },
	{ "18446744073709551616", false, 0 },
	{ "", false, 0 },
	{ "k", false, 0 },
	{ "1kb", false, 0 },
	{ "1 k", false, 0 },
	{ "1t", false, 0 },
	{ "01k", false, 0 },
	{ "-1", false, 0 },
	{ "50%", false, 0 },
	{ "1.5g", false, 0 },
	{ "16m,size=99g", false, 0 },
	{ NULL, false, 0 },
};

START_TEST(parse_size__reads_suffixes)
{
	uint64_t v = 77;

	ck_assert_int_eq(aqe_parse_size(SIZES[_i].text, &v), SIZES[_i].ok);
	ck_assert_uint_eq(v, SIZES[_i].ok ? SIZES[_i].value : 77);
}
END_TEST

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

START_TEST(is_sha256_digest__wants_exactly_that)
{
	ck_assert(aqe_is_sha256_digest("sha256:" HEX64));
	ck_assert(!aqe_is_sha256_digest(HEX64));
	ck_assert(!aqe_is_sha256_digest("sha256:" HEX64 "0"));
	ck_assert(!aqe_is_sha256_digest("sha256:" HEX64 " "));
	ck_assert(!aqe_is_sha256_digest("sha256:0123"));
	ck_assert(!aqe_is_sha256_digest("SHA256:" HEX64));
	ck_assert(!aqe_is_sha256_digest("sha512:" HEX64));
	ck_assert(!aqe_is_sha256_digest(""));
	ck_assert(!aqe_is_sha256_digest(NULL));
	ck_assert(!aqe_is_sha256_digest(
		"sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef"));
	ck_assert(aqe_is_hex("", 0) && aqe_is_hex("0f", 2));
	ck_assert(!aqe_is_hex("0f", 1) && !aqe_is_hex("0f", 3) && !aqe_is_hex("0g", 2));
}
END_TEST

static const struct {
	const char *bytes;
	size_t n;
	bool ok;
	size_t bad;
} UTF8[] = {
	{ "", 0, true, 0 },
	{ "a\0b", 3, true, 0 },
	{ "\x7f\xc2\x80\xdf\xbf", 5, true, 0 },
	{ "\xe0\xa0\x80\xec\xbf\xbf\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", 15, true, 0 },
	{ "\xf0\x90\x80\x80\xf3\xbf\xbf\xbf\xf4\x8f\xbf\xbf", 12, true, 0 },
	{ "ab\x80", 3, false, 2 },
	{ "ab\xbf", 3, false, 2 },
	{ "\xc0\x80", 2, false, 0 },
	{ "\xc1\xbf", 2, false, 0 },
	{ "a\xc2", 2, false, 1 },
	{ "a\xc2g", 3, false, 1 },
	{ "\xe0\x9f\xbf", 3, false, 0 },
	{ "\xed\xa0\x80", 3, false, 0 },
	{ "\xed\xbf\xbf", 3, false, 0 },
	{ "\xe1\x80", 2, false, 0 },
	{ "\xe1\x80g", 3, false, 0 },
	{ "\xf0\x8f\xbf\xbf", 4, false, 0 },
	{ "\xf4\x90\x80\x80", 4, false, 0 },
	{ "\xf5\x80\x80\x80", 4, false, 0 },
	{ "\xf0\x90\x80", 3, false, 0 },
	{ "\xf0\x90\x80g", 4, false, 0 },
	{ "\xfe", 1, false, 0 },
	{ "\xff", 1, false, 0 },
};

START_TEST(utf8_ok__is_strict)
{
	size_t bad = 99;

	ck_assert_int_eq(aqe_utf8_ok(UTF8[_i].bytes, UTF8[_i].n, &bad), UTF8[_i].ok);
	ck_assert_uint_eq(bad, UTF8[_i].ok ? 99 : UTF8[_i].bad);
	ck_assert_int_eq(aqe_utf8_ok(UTF8[_i].bytes, UTF8[_i].n, NULL), UTF8[_i].ok);
}
END_TEST

/* Every code point there is, encoded by the book, against every one that is none. */
START_TEST(utf8_ok__agrees_with_the_definition)
{
	unsigned char p[4];

	for (uint32_t c = 0; c < 0x120000; c++) {
		size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
		bool valid = c < 0x110000 && (c < 0xd800 || c > 0xdfff);

		if (n == 1) {
			p[0] = (unsigned char)c;
		} else {
			for (size_t i = n - 1, rest = c; i > 0; i--, rest >>= 6)
				p[i] = (unsigned char)(0x80 | (rest & 0x3f));
			p[0] = (unsigned char)((0xf00U >> n) | (c >> (6 * (n - 1))));
		}
		if (aqe_utf8_len((const char *)p, n) != (valid ? n : 0))
			ck_abort_msg("U+%04X", c);
		if (n > 1 && aqe_utf8_len((const char *)p, n - 1) != 0)
			ck_abort_msg("U+%04X cut", c);
	}
	ck_assert_uint_eq(aqe_utf8_len("", 0), 0);
}
END_TEST

static const struct {
	const char *path;
	bool canonical;
} PATHS[] = {
	{ "/", true },        { "/a", true },    { "/a/b.c/..d/...", true }, { "/.hidden", true },
	{ "", false },        { "a", false },    { "./a", false },           { "//", false },
	{ "//a", false },     { "/a/", false },  { "/a//b", false },         { "/.", false },
	{ "/..", false },     { "/a/.", false }, { "/a/..", false },         { "/a/./b", false },
	{ "/a/../b", false }, { NULL, false },
};

START_TEST(path_is_canonical__judges_spelling)
{
	ck_assert_int_eq(aqe_path_is_canonical(PATHS[_i].path), PATHS[_i].canonical);
}
END_TEST

START_TEST(path_is_under__compares_components)
{
	ck_assert(aqe_path_is_under("/a/b", "/a"));
	ck_assert(aqe_path_is_under("/a", "/a"));
	ck_assert(aqe_path_is_under("/a", "/"));
	ck_assert(aqe_path_is_under("/", "/"));
	ck_assert(!aqe_path_is_under("/", "/a"));
	ck_assert(!aqe_path_is_under("/ab", "/a"));
	ck_assert(!aqe_path_is_under("/a", "/a/b"));
	ck_assert(!aqe_path_is_under("a", "/"));
}
END_TEST

static const struct {
	const char *text;
	size_t max;
	const char *quoted;
} QUOTES[] = {
	{ "plain \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 99,
	  "plain \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
	{ "a'b\"c\\", 99, "a\\'b\\\"c\\\\" },
	{ "\n\x1b[0m\x7f", 99, "\\x0a\\x1b[0m\\x7f" },
	{ "\xff\xc3", 99, "\\xff\\xc3" },
	{ "\xc2\x9b"
	  "31m",
	  99, "\\xc2\\x9b31m" }, /* C1 CSI */
	{ "\xe2\x80\xae"
	  "x",
	  99, "\\xe2\\x80\\xaex" }, /* right-to-left override */
	{ "\xe2\x81\xa6\xef\xbb\xbf", 99, "\\xe2\\x81\\xa6\\xef\\xbb\\xbf" }, /* isolate, mark */
	{ "12345", 5, "12345" },
	{ "123456", 5, "12345..." },
	{ "1234\xc3\xa9", 5, "1234..." },
	{ "1234\n", 7, "1234..." },
	{ "1234\n", 8, "1234\\x0a" },
	{ "", 0, "" },
	{ "x", 0, "..." },
	{ NULL, 9, "" },
};

START_TEST(buf_quote__disarms)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(200);

	aqe_buf_quote(&b, QUOTES[_i].text, QUOTES[_i].max);
	ck_assert_str_eq(aqe_buf_str(&b), QUOTES[_i].quoted);
	ck_assert_int_eq(aqe_buf_ok(&b, NULL), 0);
}
END_TEST

START_TEST(size__detects_overflow)
{
	size_t v = 0;

	ck_assert(aqe_size_add(SIZE_MAX - 1, 1, &v));
	ck_assert_uint_eq(v, SIZE_MAX);
	ck_assert(!aqe_size_add(SIZE_MAX, 1, &v));
	ck_assert(aqe_size_mul(SIZE_MAX / 2, 2, &v));
	ck_assert_uint_eq(v, SIZE_MAX - 1);
	ck_assert(!aqe_size_mul(SIZE_MAX / 2 + 1, 2, &v));
	ck_assert(aqe_size_mul(0, SIZE_MAX, &v));
	ck_assert_uint_eq(v, 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("core/text");
	TCase *t = tcase_create("text");

	tcase_add_test(t, str__compares);
	tcase_add_loop_test(t, parse_u64__is_strict, 0, (int)AQE_COUNT(U64));
	tcase_add_loop_test(t, parse_i64__is_strict, 0, (int)AQE_COUNT(I64));
	tcase_add_loop_test(t, parse_size__reads_suffixes, 0, (int)AQE_COUNT(SIZES));
	tcase_add_test(t, is_sha256_digest__wants_exactly_that);
	tcase_add_loop_test(t, utf8_ok__is_strict, 0, (int)AQE_COUNT(UTF8));
	tcase_add_test(t, utf8_ok__agrees_with_the_definition);
	tcase_add_loop_test(t, path_is_canonical__judges_spelling, 0, (int)AQE_COUNT(PATHS));
	tcase_add_test(t, path_is_under__compares_components);
	tcase_add_loop_test(t, buf_quote__disarms, 0, (int)AQE_COUNT(QUOTES));
	tcase_add_test(t, size__detects_overflow);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
