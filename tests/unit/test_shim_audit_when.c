/* SPDX-License-Identifier: MIT */
#include "shim/aqe/audit_when.h"

#include "shim/core/text.h"
#include "tests/unit/unit.h"

#define S   SHIM_NS_PER_S
#define NOW (INT64_C(1769904000) * S + 5) /* 2026-02-01T00:00:00.000000005Z */
#define DAY (86400 * S)

static const struct {
	const char *text;
	int64_t since, until;
} POINTS[] = {
	{ "now", NOW, NOW },
	{ "all", 0, INT64_MAX },
	{ "today", NOW - 5, NOW - 5 + DAY - 1 },
	{ "yesterday", NOW - 5 - DAY, NOW - 5 - 1 },
	{ "1h", NOW - 3600 * S, NOW - 3600 * S },
	{ "1h30m", NOW - 5400 * S, NOW - 5400 * S },
	{ "2d ago", NOW - 2 * DAY, NOW - 2 * DAY },
	{ "0", NOW, NOW },
	{ "500ms", NOW - S / 2, NOW - S / 2 },
	{ "280y", 0, 0 },
	{ "@0", 0, S - 1 },
	{ "@1769904000", NOW - 5, NOW - 5 + S - 1 },
	{ "1970-01-01", 0, DAY - 1 },
	{ "2026-01-31", NOW - 5 - DAY, NOW - 5 - 1 },
	{ "2026-01-31T23:59", NOW - 5 - 60 * S, NOW - 5 - 1 },
	{ "2026-01-31 23:59Z", NOW - 5 - 60 * S, NOW - 5 - 1 },
	{ "2026-01-31T23:59:59", NOW - 5 - S, NOW - 5 - 1 },
	{ "2026-01-31T23:59:59Z", NOW - 5 - S, NOW - 5 - 1 },
	{ "2026-01-31t23:59:59z", NOW - 5 - S, NOW - 5 - 1 },
	{ "2026-02-01T01:59:59+02:00", NOW - 5 - S, NOW - 5 - 1 },
	{ "2026-01-31T18:29:59-05:30", NOW - 5 - S, NOW - 5 - 1 },
	{ "2026-01-31T23:59:59.5Z", NOW - 5 - S / 2, NOW - 5 - S / 2 },
	{ "2026-01-31T23:59:59.999999999Z", NOW - 6, NOW - 6 },
	{ "2999-01-01", INT64_MAX, INT64_MAX },
	{ "9999-12-31T23:59:59Z", INT64_MAX, INT64_MAX },
};

START_TEST(when_parse__reads)
{
	int64_t ns = -1;

	ck_assert(shim_when_parse(POINTS[_i].text, SHIM_WHEN_SINCE, NOW, &ns));
	ck_assert_int_eq(ns, POINTS[_i].since);
	ck_assert(shim_when_parse(POINTS[_i].text, SHIM_WHEN_UNTIL, NOW, &ns));
	ck_assert_int_eq(ns, POINTS[_i].until);
}
END_TEST

static const char *const BAD_POINTS[] = {
	"",
	" ",
	"1",
	"h",
	"1h ",
	" 1h",
	"1h30",
	"-1h",
	"1h1h",
	"1m1h",
	"1.5h",
	"ago",
	" ago",
	"1h  ago",
	"1h ago ago",
	"NOW",
	"tomorrow",
	"@",
	"@-1",
	"@1x",
	"@99999999999999999999",
	"9999y",
	"99999999999999999999h",
	"2026",
	"2026-01",
	"2026-02-29",
	"2026-13-01",
	"1969-12-31",
	"1970-01-01T00:00:00+00:01",
	"2026-01-31T",
	"2026-01-31T2",
	"2026-01-31T24:00",
	"2026-01-31T23:60",
	"2026-01-31T23:59:60Z",
	"2026-01-31T23:59:",
	"2026-01-31T23:59:59.",
	"2026-01-31T23:59:59.1234567890Z",
	"2026-01-31T23:59.5Z",
	"2026-01-31T23:59:59+2:00",
	"2026-01-31T23:59:59+02:60",
	"2026-01-31T23:59:59+15:00",
	"2026-01-31T23:59:59ZZ",
	"2026-01-31T23:59:59Z ago",
	"2026-01-31x23:59:59",
	"1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h",
};

START_TEST(when_parse__refuses)
{
	int64_t ns = 77;

	ck_assert(!shim_when_parse(BAD_POINTS[_i], SHIM_WHEN_SINCE, NOW, &ns));
	ck_assert_int_eq(ns, 77);
}
END_TEST

static const struct {
	const char *text;
	int64_t ns;
} DURATIONS[] = {
	{ "0", 0 },
	{ "0s", 0 },
	{ "1ms", 1000000 },
	{ "90s", 90 * S },
	{ "1m", 60 * S },
	{ "1h30m", 5400 * S },
	{ "90d", 90 * DAY },
	{ "2w", 14 * DAY },
	{ "1y2w3d4h5m6s7ms",
	  (365 + 14 + 3) * DAY + (4 * 3600 + 5 * 60 + 6) * S + 7 * INT64_C(1000000) },
	{ "290y", 290 * 365 * DAY },
};

START_TEST(duration_parse__reads)
{
	int64_t ns = -1;

	ck_assert(shim_duration_parse(DURATIONS[_i].text, &ns));
	ck_assert_int_eq(ns, DURATIONS[_i].ns);
}
END_TEST

static const char *const BAD_DURATIONS[] = {
	"", "1", "d", "00", "1d1d", "1s1m", "1 d", "1D", "-1d", "1d ", "291y", "290y1ms", "1e3s",
};

START_TEST(duration_parse__refuses)
{
	int64_t ns = 77;

	ck_assert(!shim_duration_parse(BAD_DURATIONS[_i], &ns));
	ck_assert_int_eq(ns, 77);
}
END_TEST

static const struct {
	int64_t before;
	const char *text;
} RELATIVE[] = {
	{ 0, "now" },
	{ S - 1, "now" },
	{ S, "1s ago" },
	{ 59 * S, "59s ago" },
	{ 60 * S, "1m ago" },
	{ 3599 * S, "59m ago" },
	{ 3600 * S, "1h ago" },
	{ DAY - 1, "23h ago" },
	{ DAY, "1d ago" },
	{ 99 * DAY, "99d ago" },
	{ 100 * DAY, "2025-10-24" },
	{ -30 * S, "in 30s" },
	{ -5 * 60 * S, "in 5m" },
	{ -200 * DAY, "2026-08-20" },
};

START_TEST(when_relative__says_how_long_ago)
{
	char text[SHIM_WHEN_TEXT];

	shim_when_relative(NOW - RELATIVE[_i].before, NOW, text);
	ck_assert_str_eq(text, RELATIVE[_i].text);
}
END_TEST

static const struct {
	int64_t ns;
	const char *text;
} SPANS[] = {
	{ 0, "0 ns" },           { 999, "999 ns" },     { 1000, "1.00 us" },
	{ 12340, "12.3 us" },    { 999499, "999 us" },  { 1000000, "1.00 ms" },
	{ 150000000, "150 ms" }, { S, "1.00 s" },       { 59 * S, "59.0 s" },
	{ 200 * S, "3m 20s" },   { 7500 * S, "2h 5m" }, { 3 * DAY + 4 * 3600 * S, "3d 4h" },
};

START_TEST(duration_format__three_digits)
{
	char text[SHIM_WHEN_TEXT];

	shim_duration_format(SPANS[_i].ns, text);
	ck_assert_str_eq(text, SPANS[_i].text);
}
END_TEST

START_TEST(when_absolute__is_utc)
{
	char text[SHIM_WHEN_TEXT];

	shim_when_absolute(NOW - 6, text);
	ck_assert_str_eq(text, "2026-01-31 23:59:59");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("shim/audit_when");
	TCase *t = tcase_create("when");

	tcase_add_loop_test(t, when_parse__reads, 0, (int)AQE_COUNT(POINTS));
	tcase_add_loop_test(t, when_parse__refuses, 0, (int)AQE_COUNT(BAD_POINTS));
	tcase_add_loop_test(t, duration_parse__reads, 0, (int)AQE_COUNT(DURATIONS));
	tcase_add_loop_test(t, duration_parse__refuses, 0, (int)AQE_COUNT(BAD_DURATIONS));
	tcase_add_loop_test(t, when_relative__says_how_long_ago, 0, (int)AQE_COUNT(RELATIVE));
	tcase_add_loop_test(t, duration_format__three_digits, 0, (int)AQE_COUNT(SPANS));
	tcase_add_test(t, when_absolute__is_utc);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
