/* SPDX-License-Identifier: MIT */
#include "shim/core/text.h"
#include "shim/sandbox/egress_bytes.h"
#include "tests/unit/unit.h"

#define NAME "aqe_egress_bytes_up_total"

static const struct {
	const char *text;
	bool found;
	uint64_t want;
} CASES[] = {
	{ "# TYPE " NAME " counter\n" NAME "{agent_type=\"x\"} 17\n", true, 17 },
	{ NAME " 5", true, 5 },
	{ NAME "{a=\"1\"} 5\n" NAME "{a=\"2\"} 6\n", true, 11 },
	{ NAME "{a=\"b c\"} 18446744073709551615\n", true, UINT64_MAX },
	{ "", false, 0 },
	{ NAME, false, 0 },
	{ NAME "\n", false, 0 },
	{ NAME "{a=\"b\"} \n", false, 0 },
	{ NAME "_more{a=\"b\"} 7\n", false, 0 },
	{ NAME "{a=\"b\"} 18446744073709551616\n", false, 0 },
	{ NAME "{a=\"b\"} 000000000000000000000000000000001\n", false, 0 },
	{ NAME "{a=\"b\"} -1\n" NAME " 1e3\n", false, 0 },
	{ "x" NAME " 7\n", false, 0 },
};

START_TEST(metric__is_the_sum_of_its_values)
{
	uint64_t got = 0;

	ck_assert_int_eq(shim_egress_metric(CASES[_i].text, NAME, &got), CASES[_i].found);
	ck_assert_uint_eq(got, CASES[_i].want);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sandbox_egress_bytes");
	TCase *t = tcase_create("metric");

	tcase_add_loop_test(t, metric__is_the_sum_of_its_values, 0, AQE_COUNT(CASES));
	suite_add_tcase(s, t);
	return unit_run(s);
}
