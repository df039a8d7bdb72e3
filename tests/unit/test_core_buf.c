/* SPDX-License-Identifier: MIT */
#include "shim/core/buf.h"

#include <stdint.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "tests/unit/unit.h"

START_TEST(buf__collects)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(100);
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_str_eq(aqe_buf_str(&b), "");
	ck_assert_int_eq(aqe_buf_add(&b, "a\0b", 3), 0);
	ck_assert_int_eq(aqe_buf_putc(&b, 'c'), 0);
	ck_assert_int_eq(aqe_buf_puts(&b, "def"), 0);
	ck_assert_int_eq(aqe_buf_addf(&b, "%d-%s", 42, "x"), 0);
	ck_assert_int_eq(aqe_buf_add(&b, NULL, 0), 0);
	ck_assert_uint_eq(b.len, 11);
	ck_assert_int_eq(memcmp(b.p, "a\0bcdef42-x", 12), 0);
	ck_assert_int_eq(aqe_buf_ok(&b, &e), 0);
	aqe_buf_clear(&b);
	ck_assert_uint_eq(b.len, 0);
	ck_assert_str_eq(aqe_buf_str(&b), "");
}
END_TEST

/* Additions in steps of `_i` up to, and over, the maximum. */
START_TEST(buf__holds_its_maximum)
{
	static const char DATA[200] = "";
	size_t step = (size_t)_i * 21, max = 150;
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(max);
	struct aqe_err e = AQE_ERR_INIT;

	while (b.len + step <= max)
		ck_assert_int_eq(aqe_buf_add(&b, DATA, step), 0);
	ck_assert_int_eq(aqe_buf_add(&b, DATA, max - b.len), 0);
	ck_assert_uint_eq(b.len, max);
	ck_assert_uint_le(b.cap, max + 1);
	ck_assert_int_eq(b.p[max], '\0');
	ck_assert_int_eq(aqe_buf_add(&b, DATA, step), AQE_E_LIMIT);
	ck_assert_uint_eq(b.len, max);
	ck_assert_fault(aqe_buf_ok(&b, &e), AQE_E_LIMIT, e, "more than 150 bytes");
}
END_TEST

START_TEST(buf__failure_is_sticky)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4);

	ck_assert_int_eq(aqe_buf_puts(&b, "abc"), 0);
	ck_assert_int_eq(aqe_buf_puts(&b, "de"), AQE_E_LIMIT);
	ck_assert_int_eq(aqe_buf_putc(&b, 'd'), AQE_E_LIMIT); /* would fit */
	ck_assert_int_eq(aqe_buf_add(&b, "", 0), AQE_E_LIMIT);
	ck_assert_int_eq(aqe_buf_addf(&b, "%s", ""), AQE_E_LIMIT);
	ck_assert_str_eq(b.p, "abc");
	ck_assert_int_eq(aqe_buf_ok(&b, NULL), AQE_E_LIMIT);
	aqe_buf_clear(&b);
	ck_assert_int_eq(aqe_buf_puts(&b, "wxyz"), 0);
	ck_assert_int_eq(aqe_buf_addf(&b, "%d", 1), AQE_E_LIMIT);
	aqe_buf_done(&b);
	ck_assert_ptr_null(b.p);
	ck_assert_int_eq(aqe_buf_puts(&b, "wxyz"), 0);
}
END_TEST

START_TEST(buf__refuses_impossible_sizes)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(SIZE_MAX);

	ck_assert_int_eq(aqe_buf_add(&b, "", SIZE_MAX), AQE_E_LIMIT);
	aqe_buf_clear(&b);
	ck_assert_int_eq(aqe_buf_add(&b, "", SIZE_MAX - 1), AQE_E_LIMIT);
	aqe_buf_clear(&b);
	ck_assert_int_eq(aqe_buf_puts(&b, "x"), 0);
	ck_assert_int_eq(aqe_buf_add(&b, "", SIZE_MAX), AQE_E_LIMIT);
}
END_TEST

START_TEST(buf__of_no_bytes_takes_none)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(0);

	ck_assert_int_eq(aqe_buf_puts(&b, ""), 0);
	ck_assert_str_eq(aqe_buf_str(&b), "");
	ck_assert_int_eq(aqe_buf_putc(&b, 'x'), AQE_E_LIMIT);
}
END_TEST

START_TEST(buf_done__accepts_null)
{
	aqe_buf_done(NULL);
}
END_TEST

START_TEST(buf_wipe__empties)
{
	struct aqe_buf b = AQE_BUF_INIT(8);

	ck_assert_int_eq(aqe_buf_puts(&b, "secret"), 0);
	aqe_buf_wipe(&b);
	ck_assert_ptr_null(b.p);
	ck_assert_uint_eq(b.len + b.cap, 0);
	aqe_buf_wipe(&b);
	aqe_buf_wipe(NULL);
	ck_assert_int_eq(aqe_buf_puts(&b, "12345678"), 0); /* the maximum is as before */
	aqe_buf_wipe(&b);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("core/buf");
	TCase *t = tcase_create("buf");

	tcase_add_test(t, buf__collects);
	tcase_add_loop_test(t, buf__holds_its_maximum, 1, 8);
	tcase_add_test(t, buf__failure_is_sticky);
	tcase_add_test(t, buf__refuses_impossible_sizes);
	tcase_add_test(t, buf__of_no_bytes_takes_none);
	tcase_add_test(t, buf_done__accepts_null);
	tcase_add_test(t, buf_wipe__empties);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
