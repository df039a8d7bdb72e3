/* SPDX-License-Identifier: MIT */
/* The egress keeper's port over the supervisor's machine. */
#include "shim/egress_watch.h"

#include "netpolicy/egress/ward.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

static struct shim_egress_watch watch;
static struct netpol_supervise port;
static int64_t now;
static uint64_t dice;

static void setup(void)
{
	now = 1000;
	dice = UINT64_MAX; /* the longest wait */
	port = shim_egress_watch_port(&watch, now);
}

static struct netpol_sup_todo tell(enum netpol_sup_event event)
{
	struct netpol_sup_todo todo;

	port.tell(port.self, event, now, dice, &todo);
	return todo;
}

static void up(void)
{
	ck_assert(tell(NETPOL_SUP_STARTED).ping);
	ck_assert(!tell(NETPOL_SUP_ANSWERED).close);
}

/* It ended: counted, killed (what is left), and the wait before the next start. */
static int64_t ends(enum netpol_sup_failure why)
{
	struct netpol_sup_todo todo = tell(NETPOL_SUP_ENDED);

	ck_assert_int_eq(todo.failure, why);
	ck_assert(todo.kill && !todo.start);
	todo = tell(NETPOL_SUP_KILLED);
	return todo.close ? -1 : todo.timer_ms;
}

static void starts_after(int64_t ms)
{
	now += ms - 1;
	ck_assert(!tell(NETPOL_SUP_TIMER).start);
	now++;
	ck_assert(tell(NETPOL_SUP_TIMER).start);
}

START_TEST(watch__doubles_and_closes_at_the_fifth)
{
	static const int64_t waits[] = { 500, 1000, 2000, 4000 };

	ck_assert(tell(NETPOL_SUP_BEGIN).start);
	for (size_t i = 0; i < AQE_COUNT(waits); i++) {
		up();
		ck_assert_int_eq(ends(NETPOL_SUP_FAILED), waits[i]);
		starts_after(waits[i]);
	}
	up();
	ck_assert_int_eq(ends(NETPOL_SUP_FAILED), -1);
	ck_assert(!tell(NETPOL_SUP_TIMER).start);
}
END_TEST

START_TEST(watch__jitter_is_full)
{
	dice = 0;
	ck_assert(tell(NETPOL_SUP_BEGIN).start);
	up();
	ck_assert_int_eq(ends(NETPOL_SUP_FAILED), 0);
	ck_assert(tell(NETPOL_SUP_TIMER).start);
}
END_TEST

/* Answers every ping for `ms`. */
static void lives(int64_t ms)
{
	const int64_t end = now + ms;
	struct netpol_sup_todo todo = tell(NETPOL_SUP_STARTED);

	while (now < end) {
		if (todo.ping)
			todo = tell(NETPOL_SUP_ANSWERED);
		ck_assert_int_gt(todo.timer_ms, 0);
		now += todo.timer_ms;
		todo = tell(NETPOL_SUP_TIMER);
	}
	if (todo.ping)
		(void)tell(NETPOL_SUP_ANSWERED);
}

START_TEST(watch__a_minute_alive_forgets)
{
	ck_assert(tell(NETPOL_SUP_BEGIN).start);
	for (int i = 0; i < 20; i++) {
		lives(i % 4 == 3 ? SHIM_EGRESS_WATCH_CONFIG.healthy_ms : 50000);
		starts_after(ends(NETPOL_SUP_FAILED));
	}
	for (int i = 0; i < 3; i++) {
		lives(50000);
		starts_after(ends(NETPOL_SUP_FAILED));
	}
	lives(50000);
	ck_assert_int_eq(ends(NETPOL_SUP_FAILED), -1);
}
END_TEST

START_TEST(watch__two_pings_without_an_answer_are_a_hang)
{
	const int64_t begun = now;
	struct netpol_sup_todo todo;
	int pings = 1;

	ck_assert(tell(NETPOL_SUP_BEGIN).start);
	todo = tell(NETPOL_SUP_STARTED);
	while (!todo.kill) {
		now += todo.timer_ms;
		todo = tell(NETPOL_SUP_TIMER);
		pings += todo.ping;
		ck_assert_int_le(now - begun, 11000);
	}
	ck_assert_int_eq(todo.failure, NETPOL_SUP_HUNG);
	ck_assert_int_eq(pings, 2);
	ck_assert_int_eq(tell(NETPOL_SUP_KILLED).timer_ms, 500);
}
END_TEST

/* A pair that spins from its start on is given up before its start is forgotten. */
START_TEST(watch__what_spins_counts)
{
	const struct shim_sup_config *c = &SHIM_EGRESS_WATCH_CONFIG;
	const int64_t begun = now;
	struct netpol_sup_todo todo;

	ck_assert(tell(NETPOL_SUP_BEGIN).start);
	todo = tell(NETPOL_SUP_STARTED);
	while (!todo.kill) {
		bool busy = todo.ping && now + todo.timer_ms - begun < NETPOL_WARD_BUSY_MS;

		now += todo.timer_ms;
		todo = tell(busy ? NETPOL_SUP_ANSWERED : NETPOL_SUP_TIMER);
		ck_assert_int_lt(now - begun, c->healthy_ms);
	}
	ck_assert_int_eq(todo.failure, NETPOL_SUP_HUNG);
	ck_assert_int_ge(now - begun, NETPOL_WARD_BUSY_MS);
	ck_assert_int_eq(tell(NETPOL_SUP_KILLED).timer_ms, c->base_ms);
	starts_after(c->base_ms);
	up();
	ck_assert_int_eq(ends(NETPOL_SUP_FAILED), 2 * c->base_ms); /* the second */
}
END_TEST

/* A host that slept, or a keeper that was stopped: one ping is late, the next is not. */
START_TEST(watch__one_late_answer_is_no_hang)
{
	struct netpol_sup_todo todo;

	ck_assert(tell(NETPOL_SUP_BEGIN).start);
	todo = tell(NETPOL_SUP_STARTED);
	now += 3600000;
	todo = tell(NETPOL_SUP_TIMER);
	ck_assert(!todo.kill && !todo.ping);
	ck_assert(!tell(NETPOL_SUP_ANSWERED).kill); /* too late for that one */
	now += todo.timer_ms;
	ck_assert(tell(NETPOL_SUP_TIMER).ping);
	todo = tell(NETPOL_SUP_ANSWERED);
	ck_assert_int_eq(todo.failure, NETPOL_SUP_NO_FAILURE);
}
END_TEST

START_TEST(watch__a_failed_start_counts)
{
	struct netpol_sup_todo todo = tell(NETPOL_SUP_BEGIN);

	for (int i = 0; i < 5; i++) {
		ck_assert(todo.start);
		todo = tell(NETPOL_SUP_START_FAILED);
		ck_assert_int_eq(todo.failure, NETPOL_SUP_FAILED);
		ck_assert(todo.kill);
		todo = tell(NETPOL_SUP_KILLED);
		ck_assert_int_eq(todo.close, i == 4);
		now += 8000;
		todo = tell(NETPOL_SUP_TIMER);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("egress_watch");
	TCase *t = tcase_create("watch");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, watch__doubles_and_closes_at_the_fifth);
	tcase_add_test(t, watch__jitter_is_full);
	tcase_add_test(t, watch__a_minute_alive_forgets);
	tcase_add_test(t, watch__two_pings_without_an_answer_are_a_hang);
	tcase_add_test(t, watch__what_spins_counts);
	tcase_add_test(t, watch__one_late_answer_is_no_hang);
	tcase_add_test(t, watch__a_failed_start_counts);
	suite_add_tcase(s, t);
	return unit_run(s);
}
