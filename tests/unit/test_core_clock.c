/* SPDX-License-Identifier: MIT */
#include "shim/core/clock.h"

#include <string.h>
#include <time.h>

#include "shim/core/text.h"
#include "tests/unit/unit.h"

static const struct {
	int64_t s;
	const char *text;
} TIMES[] = {
	{ 0, "1970-01-01T00:00:00Z" },
	{ 59, "1970-01-01T00:00:59Z" },
	{ 86399, "1970-01-01T23:59:59Z" },
	{ 86400, "1970-01-02T00:00:00Z" },
	{ 951782399, "2000-02-28T23:59:59Z" },
	{ 951782400, "2000-02-29T00:00:00Z" },
	{ 951868800, "2000-03-01T00:00:00Z" },
	{ 1709251199, "2024-02-29T23:59:59Z" },
	{ 1769903999, "2026-01-31T23:59:59Z" },
	{ 2147483648, "2038-01-19T03:14:08Z" },
	{ 4107542399, "2100-02-28T23:59:59Z" },
	{ 4107542400, "2100-03-01T00:00:00Z" },
	{ 253402300799, "9999-12-31T23:59:59Z" },
};

START_TEST(time__goes_both_ways)
{
	char text[AQE_TIME_TEXT];
	int64_t s = -1;

	aqe_time_format(TIMES[_i].s, text);
	ck_assert_str_eq(text, TIMES[_i].text);
	ck_assert(aqe_time_parse(text, &s));
	ck_assert_int_eq(s, TIMES[_i].s);
}
END_TEST

START_TEST(time_format__clamps)
{
	char text[AQE_TIME_TEXT];

	aqe_time_format(-1, text);
	ck_assert_str_eq(text, "1970-01-01T00:00:00Z");
	aqe_time_format(INT64_MIN, text);
	ck_assert_str_eq(text, "1970-01-01T00:00:00Z");
	aqe_time_format(253402300800, text);
	ck_assert_str_eq(text, "9999-12-31T23:59:59Z");
	aqe_time_format(INT64_MAX, text);
	ck_assert_str_eq(text, "9999-12-31T23:59:59Z");
}
END_TEST

/* Every day of all years against the C library. */
START_TEST(time_format__agrees_with_libc)
{
	for (int64_t day = 0; day < 2932897; day++) {
		time_t t = day * 86400 + day % 86400;
		char text[AQE_TIME_TEXT], want[AQE_TIME_TEXT];
		struct tm tm;
		int64_t s = 0;

		if (day > 60000 && day % 17 != 0)
			continue;
		(void)gmtime_r(&t, &tm);
		(void)strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%SZ", &tm);
		aqe_time_format(t, text);
		if (strcmp(text, want) != 0)
			ck_abort_msg("%s, want %s", text, want);
		if (!aqe_time_parse(text, &s) || s != t)
			ck_abort_msg("%s is not read back", text);
	}
}
END_TEST

START_TEST(time_parse__reads_dates)
{
	int64_t s = -1;

	ck_assert(aqe_time_parse("2026-01-31", &s));
	ck_assert_int_eq(s, 1769817600);
	ck_assert(aqe_time_parse("1970-01-01", &s));
	ck_assert_int_eq(s, 0);
}
END_TEST

static const char *const BAD[] = {
	"",
	"2026",
	"2026-1-31",
	"2026-01-3",
	"2026-01-311",
	"26-01-31",
	"2026/01/31",
	"2026-00-10",
	"2026-13-10",
	"2026-01-00",
	"2026-01-32",
	"2026-04-31",
	"2026-02-29",
	"2100-02-29",
	"2024-02-30",
	"1969-12-31",
	"0000-01-01",
	" 2026-01-31",
	"2026-01-31 ",
	"2026-01-31T",
	"2026-01-31T00:00:00",
	"2026-01-31T00:00Z",
	"2026-01-31 00:00:00Z",
	"2026-01-31t00:00:00z",
	"2026-01-31T24:00:00Z",
	"2026-01-31T23:60:00Z",
	"2026-01-31T23:59:60Z",
	"2026-01-31T23:59:59.5Z",
	"2026-01-31T23:59:59+00:00",
	"2026-01-31T23:59:59Zx",
	"+026-01-31",
	"2026--1-31",
	"yyyy-mm-dd",
	"10000-01-01",
	NULL,
};

START_TEST(time_parse__refuses)
{
	int64_t s = 77;

	ck_assert(!aqe_time_parse(BAD[_i], &s));
	ck_assert_int_eq(s, 77);
}
END_TEST

START_TEST(clock_system__runs)
{
	const struct aqe_clock *c = &AQE_CLOCK_SYSTEM;
	int64_t a = c->mono_ns(c->self), b = c->mono_ns(c->self);

	ck_assert_int_ge(b, a);
	ck_assert_int_gt(a, 0);
	ck_assert_int_gt(c->now_s(c->self), 1600000000);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("core/clock");
	TCase *t = tcase_create("clock");

	tcase_add_loop_test(t, time__goes_both_ways, 0, (int)AQE_COUNT(TIMES));
	tcase_add_test(t, time_format__clamps);
	tcase_add_test(t, time_format__agrees_with_libc);
	tcase_add_test(t, time_parse__reads_dates);
	tcase_add_loop_test(t, time_parse__refuses, 0, (int)AQE_COUNT(BAD));
	tcase_add_test(t, clock_system__runs);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
