/* SPDX-License-Identifier: MIT */
#include "shim/core/err.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"

static const char LONG[] = "0123456789012345678901234567890123456789012345678901234567890123456789"
			   "0123456789012345678901234567890123456789012345678901234567890123456789"
			   "0123456789012345678901234567890123456789012345678901234567890123456789"
			   "0123456789012345678901234567890123456789012345678901234567890123456789"
			   "0123456789012345678901234567890123456789012345678901234567890123456789"
			   "0123456789012345678901234567890123456789012345678901234567890123456789"
			   "0123456789012345678901234567890123456789012345678901234567890123456789"
			   "01234567890123456789";

START_TEST(err_set__fills_the_record)
{
	struct aqe_err e = { AQE_E_LIMIT, 5, 6, 7, "old" };

	ck_assert_int_eq(aqe_err_set(&e, AQE_E_ABSENT, 0, "no '%s', %d", "x", 3), AQE_E_ABSENT);
	ck_assert_int_eq(e.code, AQE_E_ABSENT);
	ck_assert_int_eq(e.sys, 0);
	ck_assert_uint_eq(e.line, 0);
	ck_assert_uint_eq(e.col, 0);
	ck_assert_str_eq(e.text, "no 'x', 3");
}
END_TEST

START_TEST(err_set__describes_errno)
{
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_int_eq(aqe_err_set(&e, AQE_E_SYS, ENOENT, "open 'f'"), AQE_E_SYS);
	ck_assert_int_eq(e.sys, ENOENT);
	ck_assert_str_eq(e.text, "open 'f': No such file or directory");
	(void)aqe_err_set(&e, AQE_E_SYS, 99999, "x");
	ck_assert_str_eq(e.text, "x: unknown error");
}
END_TEST

START_TEST(err_set__accepts_null)
{
	ck_assert_int_eq(aqe_err_set(NULL, AQE_E_REFUSED, EIO, "x"), AQE_E_REFUSED);
	ck_assert_int_eq(aqe_err_at(NULL, AQE_E_LIMIT, 1, 2, "x"), AQE_E_LIMIT);
	ck_assert_int_eq(aqe_err_wrap(NULL, "x"), AQE_E_INTERNAL);
}
END_TEST

START_TEST(err_at__keeps_the_place)
{
	struct aqe_err e = { AQE_OK, EIO, 0, 0, "" };

	ck_assert_int_eq(aqe_err_at(&e, AQE_E_MALFORMED, 12, 34, "bad"), AQE_E_MALFORMED);
	ck_assert_uint_eq(e.line, 12);
	ck_assert_uint_eq(e.col, 34);
	ck_assert_int_eq(e.sys, 0);
	ck_assert_int_eq(aqe_err_wrap(&e, "config.json"), AQE_E_MALFORMED);
	ck_assert_uint_eq(e.line, 12);
	ck_assert_str_eq(e.text, "config.json: bad");
}
END_TEST

START_TEST(err_wrap__puts_text_before)
{
	struct aqe_err e = AQE_ERR_INIT;

	(void)aqe_err_set(&e, AQE_E_SYS, EACCES, "open");
	ck_assert_int_eq(aqe_err_wrap(&e, "policy '%s'", "p"), AQE_E_SYS);
	ck_assert_int_eq(aqe_err_wrap(&e, "start"), AQE_E_SYS);
	ck_assert_str_eq(e.text, "start: policy 'p': open: Permission denied");
	ck_assert_int_eq(e.sys, EACCES);
}
END_TEST

/* Text of any length fits, and is marked when cut. */
START_TEST(err_set__cuts_long_text)
{
	const size_t max = AQE_ERR_TEXT_MAX - 1;
	struct aqe_err e = AQE_ERR_INIT;

	for (size_t n = max - 30; n <= sizeof(LONG) - 1; n++) {
		(void)aqe_err_set(&e, AQE_E_LIMIT, 0, "%.*s", (int)n, LONG);
		ck_assert_uint_eq(strlen(e.text), n <= max ? n : max);
		ck_assert_int_eq(strcmp(e.text + strlen(e.text) - 3, "...") == 0, n > max);
		(void)aqe_err_set(&e, AQE_E_SYS, ENOENT, "%.*s", (int)n, LONG);
		ck_assert_uint_le(strlen(e.text), max);
		ck_assert_int_eq(strcmp(e.text + strlen(e.text) - 3, "...") == 0, n + 27 > max);
	}
}
END_TEST

/* A record that a failing callee left empty does not turn into a success. */
START_TEST(err_wrap__is_always_a_failure)
{
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_int_eq(aqe_err_wrap(&e, "import"), AQE_E_INTERNAL);
	ck_assert_int_eq(e.code, AQE_E_INTERNAL);
	ck_assert_str_eq(e.text, "import: ");
}
END_TEST

START_TEST(err_wrap__cuts_long_text)
{
	struct aqe_err e = AQE_ERR_INIT;

	(void)aqe_err_set(&e, AQE_E_LIMIT, 0, "%.400s", LONG);
	(void)aqe_err_wrap(&e, "%.200s", LONG);
	ck_assert_uint_eq(strlen(e.text), AQE_ERR_TEXT_MAX - 1);
	ck_assert_str_eq(e.text + AQE_ERR_TEXT_MAX - 4, "...");
	(void)aqe_err_wrap(&e, "%s", LONG);
	(void)aqe_err_wrap(&e, "%s%s", LONG, LONG);
	ck_assert_uint_eq(strlen(e.text), AQE_ERR_TEXT_MAX - 1);
	ck_assert_int_eq(strncmp(e.text, LONG, 500), 0);
}
END_TEST

START_TEST(err_set__does_not_cut_inside_a_character)
{
	struct aqe_err e = AQE_ERR_INIT;

	for (int n = 504; n < 511; n++) {
		(void)aqe_err_set(&e, AQE_E_LIMIT, 0, "%.*s\xf0\x9f\x98\x80\xf0\x9f\x98\x80", n,
				  LONG);
		for (size_t i = strlen(e.text) - 4; (unsigned char)e.text[i] >= 0x80; i--)
			if ((unsigned char)e.text[i] >= 0xc0)
				ck_assert_uint_ge(strlen(e.text + i), 4 + 3);
		ck_assert_uint_le(strlen(e.text), AQE_ERR_TEXT_MAX - 1);
	}
}
END_TEST

START_TEST(err_set__lets_no_control_character_through)
{
	struct aqe_err e = AQE_ERR_INIT;

	(void)aqe_err_set(&e, AQE_E_LIMIT, 0, "a\nb\x1b[31m\x7f%s", "\r");
	ck_assert_str_eq(e.text, "a?b?[31m??");
	(void)aqe_err_wrap(&e, "%s", "\n");
	ck_assert_str_eq(e.text, "?: a?b?[31m??");
}
END_TEST

START_TEST(code_name__names_every_code)
{
	static const struct {
		enum aqe_code code;
		const char *name;
	} NAMES[] = {
		{ AQE_OK, "ok" },
		{ AQE_E_NOMEM, "no_memory" },
		{ AQE_E_SYS, "system" },
		{ AQE_E_MALFORMED, "malformed" },
		{ AQE_E_LIMIT, "limit" },
		{ AQE_E_ABSENT, "absent" },
		{ AQE_E_UNTRUSTED, "untrusted" },
		{ AQE_E_REFUSED, "refused" },
		{ AQE_E_USAGE, "usage" },
		{ AQE_E_UNKNOWN, "unknown" },
		{ AQE_E_TIMEOUT, "timeout" },
		{ AQE_E_INTERNAL, "internal" },
		{ (enum aqe_code) - 12, "invalid" },
		{ (enum aqe_code)1, "invalid" },
		{ (enum aqe_code) - 2147483647, "invalid" },
	};

	for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
		ck_assert_str_eq(aqe_code_name(NAMES[i].code), NAMES[i].name);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("core/err");
	TCase *t = tcase_create("err");

	tcase_add_test(t, err_set__fills_the_record);
	tcase_add_test(t, err_set__describes_errno);
	tcase_add_test(t, err_set__accepts_null);
	tcase_add_test(t, err_at__keeps_the_place);
	tcase_add_test(t, err_wrap__puts_text_before);
	tcase_add_test(t, err_set__cuts_long_text);
	tcase_add_test(t, err_wrap__is_always_a_failure);
	tcase_add_test(t, err_wrap__cuts_long_text);
	tcase_add_test(t, err_set__does_not_cut_inside_a_character);
	tcase_add_test(t, err_set__lets_no_control_character_through);
	tcase_add_test(t, code_name__names_every_code);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
