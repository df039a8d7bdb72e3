/* SPDX-License-Identifier: MIT */
/* The restart policy on top of engines that loop: U47's lives and gaps. */
#include "shim/core/text.h"
#include "shim/supervisor/guard.h"
#include "tests/unit/unit.h"

static const struct shim_sup_config *cfg = &SHIM_SUP_CONFIG_DEFAULT;

START_TEST(guard__five_short_lives_hold)
{
	static const uint32_t window[] = { 500, 1000, 2000, 4000 };
	struct shim_sup_saved s = { 0, SHIM_SUP_HOLD_NONE, false, 0 };
	int64_t now = 5000;

	ck_assert_int_eq(shim_guard_delay(cfg, &s, now, UINT64_MAX), 0);
	for (uint32_t i = 0; i < 4; i++) {
		shim_guard_count(cfg, &s, 100, now);
		ck_assert_uint_eq(s.failures, i + 1);
		ck_assert(!s.hold);
		ck_assert_int_eq(shim_guard_delay(cfg, &s, now, UINT64_MAX), window[i]);
		ck_assert_int_eq(shim_guard_delay(cfg, &s, now, 0), 0);
		/* what the engine waited by itself counts */
		ck_assert_int_eq(shim_guard_delay(cfg, &s, now + 200, UINT64_MAX), window[i] - 200);
		ck_assert_int_eq(shim_guard_delay(cfg, &s, now + 9000, UINT64_MAX), 0);
		ck_assert_uint_eq(s.failures, i + 1);
		now += 9000;
	}
	shim_guard_count(cfg, &s, 59999, now);
	ck_assert_int_eq(s.hold, SHIM_SUP_HOLD_CRASH_LOOP);
	ck_assert_int_eq(shim_guard_delay(cfg, &s, now, 0), -1);
	ck_assert_int_eq(shim_guard_delay(cfg, &s, now + 86400000, 0), -1);
}
END_TEST

/* life, gap to the next start: is the count of failures after it what is said? */
static const struct {
	uint32_t before;
	int64_t life_ms, gap_ms;
	uint32_t after;
} LIVES[] = {
	{ 3, 59999, 0, 4 },     { 3, 60000, 0, 1 },   { 3, 9900, 0, 4 },
	{ 3, 10100, 0, 4 },     { 3, 100, 10000, 4 }, { 3, 100, 10001, 0 },
	{ 3, 100, 3600000, 0 }, { 3, -5000, 0, 4 }, /* a clock that was set back */
	{ 3, 100, -1, 0 },
};

START_TEST(guard__lives_and_gaps)
{
	struct shim_sup_saved s = { LIVES[_i].before, SHIM_SUP_HOLD_NONE, false, 0 };

	shim_guard_count(cfg, &s, LIVES[_i].life_ms, 100000);
	ck_assert_int_ge(shim_guard_delay(cfg, &s, 100000 + LIVES[_i].gap_ms, 0), 0);
	ck_assert_uint_eq(s.failures, LIVES[_i].after);
}
END_TEST

START_TEST(guard__of_another_boot_is_forgotten_but_not_a_hold)
{
	struct shim_sup_saved s = { 4, SHIM_SUP_HOLD_NONE, false, 0 };

	ck_assert_int_eq(shim_guard_delay(cfg, &s, 1000, UINT64_MAX), 0);
	ck_assert_uint_eq(s.failures, 0);
	s = (struct shim_sup_saved){ 5, SHIM_SUP_HOLD_CRASH_LOOP, false, 0 };
	ck_assert_int_eq(shim_guard_delay(cfg, &s, 1000, UINT64_MAX), -1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("supervisor_guard");
	TCase *t = tcase_create("guard");

	tcase_add_test(t, guard__five_short_lives_hold);
	tcase_add_loop_test(t, guard__lives_and_gaps, 0, AQE_COUNT(LIVES));
	tcase_add_test(t, guard__of_another_boot_is_forgotten_but_not_a_hold);
	suite_add_tcase(s, t);
	return unit_run(s);
}
