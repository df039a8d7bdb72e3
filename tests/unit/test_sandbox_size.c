/* SPDX-License-Identifier: MIT */
/* SB-24 to SB-32 are the original implementation's own assertions. */
#include "shim/core/text.h"
#include "shim/sandbox/size.h"
#include "tests/unit/unit.h"

static const struct {
	const char *text;
	uint64_t want;
} SIZES[] = {
	{ "1024", 1024 }, /* SB-24 */
	{ "1k", 1024 },   /* SB-25 */
	{ "2K", 2048 },
	{ "512m", 536870912 }, /* SB-26 */
	{ "1M", 1048576 },
	{ "2g", 2147483648 }, /* SB-27 */
	{ "4G", 4294967296 },
	{ "0", 0 },
	{ " 512 m ", 536870912 }, /* blanks, decimals, t and a trailing b, as its exported parser */
	{ "1.5g", 1610612736 },
	{ "0.5k", 512 },
	{ "1t", 1099511627776 },
	{ "512mb", 536870912 },
	{ "2GB", 2147483648 },
	{ "7b", 7 },
	{ "1.999999999k", 2047 },
	{ "9223372036854775807", INT64_MAX },
	{ "8388607t", 8388607ULL << 40 },
};
static const char *const BAD_SIZES[] = {
	"invalid",
	"", /* SB-28 */
	" ",
	"m",
	"-1",
	"+1",
	"1.",
	".5",
	"1..5",
	"1,5",
	"0x10",
	"1e3",
	"1kk",
	"1bk",
	"1 k b x",
	"1\n",
	"1kib",
	"12345678901234567890",
	"9223372036854775808",
	"8388608t",
	"1.1234567890k",
	"١",
};
static const struct {
	uint64_t bytes;
	const char *want;
} SHOWN[] = {
	{ 500, "500.0 B" }, /* SB-29 */
	{ 1024, "1.0 KB" }, /* SB-30 */
	{ 2048, "2.0 KB" },
	{ 1048576, "1.0 MB" }, /* SB-31 */
	{ 536870912, "512.0 MB" },
	{ 2147483648, "2.0 GB" }, /* SB-32 */
	{ 0, "0.0 B" },
	{ 1023, "1023.0 B" },
	{ 1536, "1.5 KB" },
	{ 1ULL << 40, "1.0 TB" },
	{ UINT64_MAX, "16777216.0 TB" },
};

START_TEST(parse__takes_what_people_write)
{
	uint64_t got = 1;

	ck_assert(shim_size_parse(SIZES[_i].text, &got));
	ck_assert_uint_eq(got, SIZES[_i].want);
}
END_TEST

START_TEST(parse__refuses_the_rest)
{
	uint64_t got = 77;

	ck_assert_msg(!shim_size_parse(BAD_SIZES[_i], &got), "took '%s'", BAD_SIZES[_i]);
	ck_assert_uint_eq(got, 77);
}
END_TEST

START_TEST(format__shows_one_decimal)
{
	char got[SHIM_SIZE_TEXT];

	shim_size_format(SHOWN[_i].bytes, got);
	ck_assert_str_eq(got, SHOWN[_i].want);
}
END_TEST

static const struct {
	const char *text;
	uint32_t want; /* 0: refused */
	const char *shown;
} CPUS[] = {
	{ "1", 1000, "1" },       { "2", 2000, "2" },      { "0.5", 500, "0.5" },
	{ "1.25", 1250, "1.25" }, { "0.001", 1, "0.001" }, { "1000", 1000000, "1000" },
	{ "0", 0, "" },           { "", 0, "" },           { "-1", 0, "" },
	{ "1001", 0, "" },        { "1000.1", 0, "" },     { "0.0001", 0, "" },
	{ "1 ", 0, "" },          { "two", 0, "" },        { "1.", 0, "" },
};

START_TEST(cpus__are_thousandths)
{
	uint32_t got = 0;
	char shown[SHIM_SIZE_TEXT];

	ck_assert_int_eq(shim_cpus_parse(CPUS[_i].text, &got), CPUS[_i].want != 0);
	ck_assert_uint_eq(got, CPUS[_i].want);
	if (!CPUS[_i].want)
		return;
	shim_cpus_format(got, shown);
	ck_assert_str_eq(shown, CPUS[_i].shown);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sandbox_size");
	TCase *t = tcase_create("size");

	tcase_add_loop_test(t, parse__takes_what_people_write, 0, AQE_COUNT(SIZES));
	tcase_add_loop_test(t, parse__refuses_the_rest, 0, AQE_COUNT(BAD_SIZES));
	tcase_add_loop_test(t, format__shows_one_decimal, 0, AQE_COUNT(SHOWN));
	tcase_add_loop_test(t, cpus__are_thousandths, 0, AQE_COUNT(CPUS));
	suite_add_tcase(s, t);
	return unit_run(s);
}
