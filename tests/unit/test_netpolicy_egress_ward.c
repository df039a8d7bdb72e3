/* SPDX-License-Identifier: MIT */
/* What the keeper does of what the supervisor's port says, with a port that is a script. */
#include "netpolicy/egress/ward.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/core/text.h"
#include "tests/unit/unit.h"

#define NOTHING                \
	{                      \
		.timer_ms = -1 \
	}
#define START                                 \
	{                                     \
		.timer_ms = -1, .start = true \
	}
#define FAIL_KILL_THEN(when)                                                   \
	{                                                                      \
		.timer_ms = (when), .failure = NETPOL_SUP_FAILED, .kill = true \
	}
#define STEPS_MAX 6

static struct aqe_err err = AQE_ERR_INIT;
static struct netpol_loop *loop;
static struct netpol_ward ward;
static char story[256];
static const struct netpol_sup_todo *script;
static size_t at;
static bool starts, ends_at_once, works;

static void note(const char *word)
{
	size_t n = strlen(story);

	(void)snprintf(story + n, sizeof(story) - n, "%s%s", n ? " " : "", word);
}

/* ---- the port, and what is done ---- */

static void tell(void *self, enum netpol_sup_event event, int64_t now_ms, uint64_t random,
		 struct netpol_sup_todo *ret)
{
	static const char *const names[] = { "BEGIN", "STARTED", "START_FAILED", "ANSWERED",
					     "ENDED", "KILLED",  "TIMER" };

	(void)self;
	(void)now_ms;
	(void)random;
	note(names[event]);
	ck_assert_uint_lt(at, STEPS_MAX);
	*ret = script[at++];
}
static void failed(void *self, enum netpol_sup_failure why)
{
	(void)self;
	note(why == NETPOL_SUP_HUNG ? "hung" : "failed");
}
static bool kill_it(void *self)
{
	(void)self;
	note("kill");
	return ends_at_once;
}
static bool start_it(void *self)
{
	(void)self;
	note("start");
	return starts;
}
static void ping(void *self)
{
	(void)self;
	note("ping");
}
static bool busy(void *self)
{
	(void)self;
	note(works ? "busy" : "idle");
	return works;
}
static void closed(void *self)
{
	(void)self;
	note("close");
}
static const struct netpol_ward_ops OPS = { failed, kill_it, start_it, ping, busy, closed };

static void setup(void)
{
	ck_assert_ok(netpol_loop_new(&loop, &err), err);
	ward = (struct netpol_ward){ .loop = loop, .port = { tell, NULL }, .ops = &OPS };
	netpol_ward_init(&ward);
	story[0] = '\0';
	at = 0;
	starts = ends_at_once = true;
}
static void teardown(void)
{
	netpol_loop_free(loop);
}

static void play(const struct netpol_sup_todo steps[STEPS_MAX])
{
	script = steps;
	netpol_ward_tell(&ward, NETPOL_SUP_BEGIN);
}

/* ---- tests ---- */

static const struct {
	bool starts;
	const char *want;
} TOLD[] = {
	{ true, "BEGIN start STARTED ping" },
	{ false, "BEGIN start START_FAILED ping" },
};
START_TEST(ward__tells_how_a_start_went)
{
	static const struct netpol_sup_todo steps[STEPS_MAX] = { START,
								 { .timer_ms = -1, .ping = true } };

	starts = TOLD[_i].starts;
	play(steps);
	ck_assert_str_eq(story, TOLD[_i].want);
}
END_TEST

/* Killed on demand is another end than one by itself, now or later. */
static const struct {
	bool at_once;
	const char *want;
} KILLS[] = {
	{ true, "BEGIN failed kill KILLED ENDED" },
	{ false, "BEGIN failed kill KILLED ENDED" },
};
START_TEST(ward__knows_whose_end_it_was)
{
	static const struct netpol_sup_todo steps[STEPS_MAX] = { FAIL_KILL_THEN(-1), NOTHING,
								 NOTHING };

	ends_at_once = KILLS[_i].at_once;
	play(steps);
	if (!ends_at_once) {
		ck_assert_str_eq(story, "BEGIN failed kill");
		netpol_ward_gone(&ward);
	}
	netpol_ward_gone(&ward);
	ck_assert_str_eq(story, KILLS[_i].want);
}
END_TEST

START_TEST(ward__minds_the_timer)
{
	static const struct netpol_sup_todo steps[STEPS_MAX] = { { .timer_ms = 1 },
								 START,
								 NOTHING };

	play(steps);
	for (int i = 0; at < 3 && i < 1000; i++)
		ck_assert_ok(netpol_loop_once(loop, 10, &err), err);
	ck_assert_str_eq(story, "BEGIN TIMER start STARTED");
}
END_TEST

START_TEST(ward__does_nothing_once_closed)
{
	static const struct netpol_sup_todo steps[STEPS_MAX] = {
		{ .timer_ms = 1, .failure = NETPOL_SUP_HUNG, .close = true }
	};

	play(steps);
	netpol_ward_tell(&ward, NETPOL_SUP_ANSWERED);
	netpol_ward_gone(&ward);
	ck_assert_ok(netpol_loop_once(loop, 20, &err), err); /* its timer was disarmed */
	ck_assert_ok(netpol_loop_once(loop, 20, &err), err);
	ck_assert_str_eq(story, "BEGIN hung close");
}
END_TEST

#define PING(when)                               \
	{                                        \
		.timer_ms = (when), .ping = true \
	}

static void run_to(size_t step)
{
	for (int i = 0; at < step && i < 1000; i++)
		ck_assert_ok(netpol_loop_once(loop, 10, &err), err);
	ck_assert_uint_eq(at, step);
}

/* Silence is a miss when nothing is done either; and only while an answer is waited for. */
static const struct {
	bool works;
	const char *want;
} SILENT[] = {
	{ true, "BEGIN start STARTED ping busy ANSWERED TIMER ping busy ANSWERED" },
	{ false, "BEGIN start STARTED ping idle TIMER TIMER ping idle TIMER" },
};
START_TEST(ward__busy_is_as_good_as_an_answer)
{
	static const struct netpol_sup_todo steps[STEPS_MAX] = {
		START, PING(1), { .timer_ms = 1 }, PING(1), NOTHING
	};

	works = SILENT[_i].works;
	play(steps);
	run_to(5);
	ck_assert_str_eq(story, SILENT[_i].want);
}
END_TEST

/* What spins is found: nobody asks any more when the first silent ping is so long ago. */
START_TEST(ward__busy_has_an_end)
{
	static const struct netpol_sup_todo steps[STEPS_MAX] = { START, PING(1), PING(1), PING(1),
								 NOTHING };

	works = true;
	play(steps);
	run_to(3);
	ck_assert_str_eq(story, "BEGIN start STARTED ping busy ANSWERED ping");
	ward.quiet_ms -= NETPOL_WARD_BUSY_MS; /* so long ago, in spite of the one between */
	run_to(4);
	ck_assert_str_eq(story, "BEGIN start STARTED ping busy ANSWERED ping TIMER ping");
	ck_assert_int_ge(netpol_loop_now(loop) - ward.quiet_ms, NETPOL_WARD_BUSY_MS);
	netpol_ward_tell(&ward, NETPOL_SUP_ANSWERED); /* itself: from the beginning */
	ck_assert_int_eq(ward.quiet_ms, -1);
}
END_TEST

/* Another process, which does nothing, and then something, until it is told to end. */
START_TEST(cpu__is_that_of_the_process)
{
	int go[2];
	int64_t before;
	pid_t pid;

	ck_assert_int_eq(pipe(go), 0);
	pid = fork();
	if (pid == 0) {
		(void)close(go[1]);
		(void)!read(go[0], story, 1);
		for (;;)
			at++;
	}
	(void)close(go[0]);
	before = netpol_ward_cpu_ns(pid);
	ck_assert_int_ge(before, 0);
	ck_assert_int_eq(kill(pid, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(pid, NULL, WUNTRACED), pid);
	before = netpol_ward_cpu_ns(pid);
	ck_assert_ok(netpol_loop_once(loop, 50, &err), err);
	ck_assert_int_eq(netpol_ward_cpu_ns(pid), before);
	ck_assert_int_eq(kill(pid, SIGCONT), 0);
	(void)close(go[1]);
	while (netpol_ward_cpu_ns(pid) < before + 20000000)
		(void)usleep(1000); /* or the test's time is over */
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq(netpol_ward_cpu_ns(pid), -1);
	ck_assert_int_eq(netpol_ward_cpu_ns(0), -1);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("netpolicy/egress/ward");
	TCase *t = tcase_create("ward");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, ward__tells_how_a_start_went, 0, (int)AQE_COUNT(TOLD));
	tcase_add_loop_test(t, ward__knows_whose_end_it_was, 0, (int)AQE_COUNT(KILLS));
	tcase_add_test(t, ward__minds_the_timer);
	tcase_add_test(t, ward__does_nothing_once_closed);
	tcase_add_loop_test(t, ward__busy_is_as_good_as_an_answer, 0, (int)AQE_COUNT(SILENT));
	tcase_add_test(t, ward__busy_has_an_end);
	tcase_add_test(t, cpu__is_that_of_the_process);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
