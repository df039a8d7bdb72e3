/* SPDX-License-Identifier: MIT */
/* The specification's numbers and the named behaviours, one at a time. */
#include "shim/core/text.h"
#include "shim/supervisor/machine.h"
#include "tests/unit/unit.h"

static struct shim_sup m;
static struct shim_sup_out out;
static int64_t now;
static uint64_t chance;

static void begin(const struct shim_sup_saved *saved)
{
	now = 1000000;
	chance = UINT64_MAX;
	shim_sup_init(&m, &SHIM_SUP_CONFIG_DEFAULT, saved, now);
}

static void feed(enum shim_sup_event event, uint64_t token)
{
	struct shim_sup_in in = { event, token, now, chance };

	shim_sup_step(&m, &in, &out);
}
/* An answer to the call that is out. */
static void answer(enum shim_sup_event event)
{
	feed(event, m.token);
}
static void pass(int64_t ms)
{
	now += ms;
}
static void due(void)
{
	pass(m.due_ms - m.now_ms);
	feed(SHIM_SUP_TIMER, 0);
}

static const struct shim_sup_action *did(enum shim_sup_kind kind)
{
	for (size_t i = 0; i < out.n; i++) {
		if (out.a[i].kind == kind)
			return &out.a[i];
	}
	return NULL;
}
static const struct shim_sup_action *told(enum shim_sup_report report)
{
	for (size_t i = 0; i < out.n; i++) {
		if (out.a[i].kind == SHIM_SUP_DO_REPORT && out.a[i].report == report)
			return &out.a[i];
	}
	return NULL;
}

static void come_up(void)
{
	feed(SHIM_SUP_WANT_UP, 0);
	ck_assert_ptr_nonnull(did(SHIM_SUP_DO_START));
	answer(SHIM_SUP_STARTED);
	answer(SHIM_SUP_YES);
	ck_assert_int_eq(m.state, SHIM_SUP_ALIVE);
}
/* From BACKOFF or a wish to the next failure, cleaned up. */
static void fail_once(void)
{
	ck_assert_int_eq(m.state, SHIM_SUP_STARTING);
	answer(SHIM_SUP_START_FAILED);
	ck_assert_ptr_nonnull(told(SHIM_SUP_TELL_FAILED));
	answer(SHIM_SUP_STOP_OK);
}

START_TEST(config__is_the_specification)
{
	const struct shim_sup_config *c = &SHIM_SUP_CONFIG_DEFAULT;
	static const uint32_t want[] = { 500, 1000, 2000, 4000, 8000, 8000 };

	ck_assert_uint_eq(c->base_ms, 500);
	ck_assert_uint_eq(c->cap_ms, 8000);
	ck_assert_uint_eq(c->attempts, 5);
	ck_assert_uint_eq(c->healthy_ms, 60000);
	for (uint32_t n = 1; n <= AQE_COUNT(want); n++)
		ck_assert_uint_eq(shim_sup_window(c, n), want[n - 1]);
	ck_assert_uint_eq(shim_sup_window(c, UINT32_MAX), 8000);
	ck_assert_str_eq(SHIM_SUP_CRASH_LOOP, "AGENTOS_CRASH_LOOP");
}
END_TEST

START_TEST(jitter__is_full_and_uniform)
{
	enum { WINDOW = 499, DRAWS = 500000 };
	static unsigned seen[WINDOW + 1];
	uint64_t s = 1;

	ck_assert_uint_eq(shim_sup_jitter(500, 0), 0);
	ck_assert_uint_eq(shim_sup_jitter(500, UINT64_MAX), 500);
	ck_assert_uint_eq(shim_sup_jitter(UINT32_MAX, UINT64_MAX), UINT32_MAX);
	ck_assert_uint_eq(shim_sup_jitter(0, UINT64_MAX), 0);
	for (int i = 0; i < DRAWS; i++) {
		s = s * 6364136223846793005ULL + 1442695040888963407ULL;
		seen[shim_sup_jitter(WINDOW, s)]++;
	}
	for (int i = 0; i <= WINDOW; i++) {
		if (seen[i] < 800 || seen[i] > 1200) /* 1000 each, sigma 32 */
			ck_abort_msg("delay %d was drawn %u times", i, seen[i]);
	}
}
END_TEST

/* 1: back-off */
START_TEST(step__backs_off_with_full_jitter)
{
	static const uint32_t want[] = { 500, 1000, 2000, 4000 };

	begin(NULL);
	feed(SHIM_SUP_WANT_UP, 0);
	for (size_t i = 0; i < AQE_COUNT(want); i++) {
		chance = _i ? UINT64_MAX : 0;
		fail_once();
		ck_assert_int_eq(m.state, SHIM_SUP_BACKOFF);
		ck_assert_uint_eq(told(SHIM_SUP_TELL_BACKOFF)->delay_ms, _i ? want[i] : 0);
		if (_i) {
			pass(want[i] - 1);
			feed(SHIM_SUP_TIMER, 0);
			ck_assert_ptr_null(did(SHIM_SUP_DO_START));
			ck_assert_uint_eq(did(SHIM_SUP_DO_ARM)->delay_ms, 1);
			pass(1);
		}
		feed(SHIM_SUP_TIMER, 0);
		ck_assert_ptr_nonnull(did(SHIM_SUP_DO_START));
	}
}
END_TEST

/* 2: the fifth failure holds */
START_TEST(step__holds_at_the_fifth_failure)
{
	begin(NULL);
	feed(SHIM_SUP_WANT_UP, 0);
	for (int i = 0; i < 4; i++) {
		fail_once();
		due();
	}
	fail_once();
	ck_assert_int_eq(m.state, SHIM_SUP_HELD);
	ck_assert_uint_eq(told(SHIM_SUP_TELL_HELD)->failures, 5);
	ck_assert_ptr_nonnull(did(SHIM_SUP_DO_DISARM));
	pass(3600 * 1000);
	feed(SHIM_SUP_TIMER, 0);
	ck_assert_uint_eq(out.n, 0);
	feed(SHIM_SUP_WANT_UP, 0);
	ck_assert_ptr_nonnull(told(SHIM_SUP_TELL_HELD));
	ck_assert_ptr_null(did(SHIM_SUP_DO_START));
}
END_TEST

/* 3: 60,000 ms of continuous alive reset the count */
START_TEST(step__forgets_failures_after_a_minute_alive)
{
	int64_t first;

	begin(&(struct shim_sup_saved){ 4, SHIM_SUP_HOLD_NONE, false, 0 });
	come_up();
	first = now;
	while (now - first < 59999 && m.failures) {
		due();
		answer(SHIM_SUP_YES);
	}
	ck_assert_int_eq(now - first, 60000);
	ck_assert_uint_eq(m.failures, 0);
	ck_assert_ptr_nonnull(told(SHIM_SUP_TELL_HEALTHY));
	ck_assert_ptr_nonnull(did(SHIM_SUP_DO_SAVE));
}
END_TEST

START_TEST(step__does_not_forget_before)
{
	begin(&(struct shim_sup_saved){ 3, SHIM_SUP_HOLD_NONE, false, 0 });
	come_up();
	while (m.alive_ms < 55000) {
		due();
		answer(SHIM_SUP_YES);
	}
	pass(4999);
	feed(SHIM_SUP_EXITED_BAD, m.instance);
	ck_assert_uint_eq(told(SHIM_SUP_TELL_FAILED)->failures, 4);
	answer(SHIM_SUP_STOP_OK);
	due();
	/* the next instance begins at zero, however long the first lived */
	answer(SHIM_SUP_STARTED);
	answer(SHIM_SUP_YES);
	pass(5000);
	feed(SHIM_SUP_TIMER, 0);
	answer(SHIM_SUP_YES);
	ck_assert_uint_eq(m.failures, 4);
}
END_TEST

/* 4: every call is raced against a timeout */
START_TEST(step__times_out_a_hung_call)
{
	const struct shim_sup_config *c = &SHIM_SUP_CONFIG_DEFAULT;
	uint64_t token;

	begin(NULL);
	feed(SHIM_SUP_WANT_UP, 0);
	ck_assert_uint_eq(did(SHIM_SUP_DO_ARM)->delay_ms, c->start_timeout_ms);
	token = m.token;
	pass(c->start_timeout_ms);
	feed(SHIM_SUP_TIMER, 0);
	ck_assert_uint_eq(did(SHIM_SUP_DO_CANCEL)->token, token);
	ck_assert_int_eq(told(SHIM_SUP_TELL_FAILED)->why, SHIM_SUP_WHY_START_TIMEOUT);
	ck_assert_uint_eq(did(SHIM_SUP_DO_ARM)->delay_ms, c->stop_timeout_ms);
	/* it did start after all: nobody believes it any more */
	feed(SHIM_SUP_STARTED, token);
	ck_assert_ptr_nonnull(told(SHIM_SUP_TELL_LATE));
	ck_assert_int_eq(m.state, SHIM_SUP_STOPPING);
	/* stop() hangs too: it goes on, and stops again before it starts again */
	pass(c->stop_timeout_ms);
	feed(SHIM_SUP_TIMER, 0);
	ck_assert_int_eq(m.state, SHIM_SUP_BACKOFF);
	due();
	ck_assert_ptr_null(did(SHIM_SUP_DO_START));
	ck_assert_ptr_nonnull(did(SHIM_SUP_DO_STOP));
	answer(SHIM_SUP_STOP_OK);
	ck_assert_ptr_nonnull(did(SHIM_SUP_DO_START));
}
END_TEST

START_TEST(step__takes_three_silent_probes_for_a_failure)
{
	begin(NULL);
	come_up();
	for (uint32_t i = 1; i <= SHIM_SUP_CONFIG_DEFAULT.probe_misses; i++) {
		ck_assert_int_eq(m.state, SHIM_SUP_ALIVE);
		due();
		ck_assert_ptr_nonnull(did(SHIM_SUP_DO_ALIVE));
		due();
		ck_assert_ptr_nonnull(did(SHIM_SUP_DO_CANCEL));
	}
	ck_assert_int_eq(told(SHIM_SUP_TELL_FAILED)->why, SHIM_SUP_WHY_NO_ANSWER);
	ck_assert_ptr_nonnull(did(SHIM_SUP_DO_STOP));
}
END_TEST

START_TEST(step__does_not_believe_a_start_that_is_not_alive)
{
	begin(NULL);
	feed(SHIM_SUP_WANT_UP, 0);
	answer(SHIM_SUP_STARTED);
	ck_assert_ptr_nonnull(did(SHIM_SUP_DO_ALIVE));
	ck_assert_ptr_null(told(SHIM_SUP_TELL_STARTED));
	answer(SHIM_SUP_NO);
	ck_assert_int_eq(told(SHIM_SUP_TELL_FAILED)->why, SHIM_SUP_WHY_NOT_ALIVE);
}
END_TEST

START_TEST(step__believes_the_kernel_more_than_the_driver)
{
	begin(NULL);
	come_up();
	due();
	feed(SHIM_SUP_EXITED_BAD, m.instance);
	ck_assert_int_eq(told(SHIM_SUP_TELL_FAILED)->why, SHIM_SUP_WHY_EXITED);
	feed(SHIM_SUP_YES, m.token - 1);
	ck_assert_ptr_nonnull(told(SHIM_SUP_TELL_LATE));
	ck_assert_int_eq(m.state, SHIM_SUP_STOPPING);
}
END_TEST

START_TEST(step__drops_the_exit_of_an_earlier_instance)
{
	uint64_t first;

	begin(NULL);
	come_up();
	first = m.instance;
	feed(SHIM_SUP_EXITED_BAD, first);
	answer(SHIM_SUP_STOP_OK);
	due();
	answer(SHIM_SUP_STARTED);
	answer(SHIM_SUP_YES);
	feed(SHIM_SUP_EXITED_BAD, first);
	ck_assert_int_eq(m.state, SHIM_SUP_ALIVE);
	ck_assert_uint_eq(out.n, 0);
}
END_TEST

START_TEST(step__never_retries_a_refusal)
{
	begin(NULL);
	feed(SHIM_SUP_WANT_UP, 0);
	answer(SHIM_SUP_START_REFUSED);
	answer(SHIM_SUP_STOP_OK);
	ck_assert_int_eq(m.state, SHIM_SUP_HELD);
	ck_assert_ptr_nonnull(told(SHIM_SUP_TELL_REFUSED));
	ck_assert_uint_eq(m.failures, 0);
	pass(86400 * 1000);
	feed(SHIM_SUP_TIMER, 0);
	feed(SHIM_SUP_WANT_UP, 0);
	ck_assert_ptr_null(did(SHIM_SUP_DO_START));
	feed(SHIM_SUP_RESET, 0);
	ck_assert_ptr_nonnull(did(SHIM_SUP_DO_START));
}
END_TEST

START_TEST(step__reset_lets_go_of_a_hold)
{
	begin(&(struct shim_sup_saved){ 5, SHIM_SUP_HOLD_CRASH_LOOP, false, 0 });
	feed(SHIM_SUP_WANT_UP, 0);
	ck_assert_int_eq(m.state, SHIM_SUP_HELD);
	feed(SHIM_SUP_RESET, 0);
	ck_assert_ptr_nonnull(did(SHIM_SUP_DO_START));
	ck_assert_uint_eq(m.failures, 0);
}
END_TEST

static const int64_t JUMPS[] = { -1,   -1000,   -3600000,        -86400000LL * 365,
				 1000, 3600000, 86400000LL * 365 };

START_TEST(step__survives_a_jump_of_the_clock)
{
	uint32_t left;

	begin(&(struct shim_sup_saved){ 2, SHIM_SUP_HOLD_NONE, false, 0 });
	come_up();
	pass(JUMPS[_i]);
	feed(SHIM_SUP_TIMER, 0);
	if (m.state == SHIM_SUP_ALIVE) {
		left = did(SHIM_SUP_DO_ARM)->delay_ms;
		ck_assert_uint_le(left, SHIM_SUP_CONFIG_DEFAULT.probe_ms);
		pass(left);
		feed(SHIM_SUP_TIMER, 0);
	}
	ck_assert_int_eq(m.state, SHIM_SUP_PROBING);
	answer(SHIM_SUP_YES);
	/* a year that nobody proved does not make it healthy */
	ck_assert_uint_eq(m.failures, 2);
	ck_assert_int_le(m.alive_ms, 10000);
}
END_TEST

START_TEST(step__adopts_what_an_earlier_supervisor_started)
{
	begin(&(struct shim_sup_saved){ 1, SHIM_SUP_HOLD_NONE, true, 0 });
	feed(SHIM_SUP_WANT_UP, 0);
	ck_assert_ptr_null(did(SHIM_SUP_DO_START));
	ck_assert_ptr_nonnull(did(SHIM_SUP_DO_ALIVE));
	answer(_i ? SHIM_SUP_YES : SHIM_SUP_NO);
	if (_i) {
		ck_assert_ptr_nonnull(told(SHIM_SUP_TELL_ADOPTED));
		feed(SHIM_SUP_EXITED_BAD, m.instance);
	} else {
		ck_assert_int_eq(told(SHIM_SUP_TELL_FAILED)->why, SHIM_SUP_WHY_LOST);
	}
	ck_assert_uint_eq(told(SHIM_SUP_TELL_FAILED)->failures, 2);
}
END_TEST

START_TEST(step__ends_when_success_is_no_failure)
{
	struct shim_sup_config cfg = SHIM_SUP_CONFIG_DEFAULT;

	begin(NULL);
	cfg.done_is_failure = false;
	shim_sup_init(&m, &cfg, NULL, now);
	come_up();
	feed(SHIM_SUP_EXITED_OK, m.instance);
	ck_assert_ptr_nonnull(told(SHIM_SUP_TELL_DONE));
	answer(SHIM_SUP_STOP_OK);
	ck_assert_int_eq(m.state, SHIM_SUP_STOPPED);
	ck_assert_uint_eq(m.failures, 0);
}
END_TEST

START_TEST(step__stop_is_tried_three_times)
{
	begin(NULL);
	come_up();
	feed(SHIM_SUP_WANT_DOWN, 0);
	for (int i = 1; i < SHIM_SUP_STOP_TRIES; i++) {
		answer(SHIM_SUP_STOP_FAILED);
		ck_assert_ptr_nonnull(did(SHIM_SUP_DO_STOP));
	}
	answer(SHIM_SUP_STOP_FAILED);
	ck_assert_ptr_nonnull(told(SHIM_SUP_TELL_UNCLEAN));
	ck_assert_int_eq(m.state, SHIM_SUP_STOPPED);
}
END_TEST

START_TEST(step__every_name_is_there)
{
	for (int i = 0; i < SHIM_SUP_STATES; i++)
		ck_assert_ptr_nonnull(shim_sup_state_name((enum shim_sup_state)i));
	for (int i = 0; i < SHIM_SUP_EVENTS; i++)
		ck_assert_ptr_nonnull(shim_sup_event_name((enum shim_sup_event)i));
	for (int i = 0; i < SHIM_SUP_TELLS; i++)
		ck_assert_ptr_nonnull(shim_sup_report_name((enum shim_sup_report)i));
	for (int i = 0; i < SHIM_SUP_WHYS; i++)
		ck_assert_ptr_nonnull(shim_sup_why_name((enum shim_sup_why)i));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("supervisor_machine");
	TCase *t = tcase_create("machine");

	tcase_add_test(t, config__is_the_specification);
	tcase_add_test(t, jitter__is_full_and_uniform);
	tcase_add_loop_test(t, step__backs_off_with_full_jitter, 0, 2);
	tcase_add_test(t, step__holds_at_the_fifth_failure);
	tcase_add_test(t, step__forgets_failures_after_a_minute_alive);
	tcase_add_test(t, step__does_not_forget_before);
	tcase_add_test(t, step__times_out_a_hung_call);
	tcase_add_test(t, step__takes_three_silent_probes_for_a_failure);
	tcase_add_test(t, step__does_not_believe_a_start_that_is_not_alive);
	tcase_add_test(t, step__believes_the_kernel_more_than_the_driver);
	tcase_add_test(t, step__drops_the_exit_of_an_earlier_instance);
	tcase_add_test(t, step__never_retries_a_refusal);
	tcase_add_test(t, step__reset_lets_go_of_a_hold);
	tcase_add_loop_test(t, step__survives_a_jump_of_the_clock, 0, AQE_COUNT(JUMPS));
	tcase_add_loop_test(t, step__adopts_what_an_earlier_supervisor_started, 0, 2);
	tcase_add_test(t, step__ends_when_success_is_no_failure);
	tcase_add_test(t, step__stop_is_tried_three_times);
	tcase_add_test(t, step__every_name_is_there);
	suite_add_tcase(s, t);
	return unit_run(s);
}
