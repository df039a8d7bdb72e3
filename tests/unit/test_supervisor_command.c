/* SPDX-License-Identifier: MIT */
/* Calls as processes: what they answer, what becomes of one that hangs, how an instance's end is
 * seen that is no child of ours. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "shim/core/text.h"
#include "shim/supervisor/driver_command.h"
#include "shim/supervisor/supervisor.h"
#include "tests/unit/unit.h"

static const struct shim_sup_config FAST = {
	.base_ms = 5,
	.cap_ms = 20,
	.attempts = 3,
	.healthy_ms = 60000,
	.probe_ms = 30,
	.probe_misses = 2,
	.start_timeout_ms = 150,
	.alive_timeout_ms = 100,
	.stop_timeout_ms = 2000,
	.done_is_failure = false,
};

/* The whole window, and one that no test sees the end of: a back-off that is looked for is not over
 * before it is seen. */
static uint64_t longest(void *arg)
{
	(void)arg;
	return UINT64_MAX;
}
#define LONG_MS 600000

#define HANG    100 /* no status: the call sleeps */

static struct world {
	struct shim_loop *loop;
	int status[SHIM_COMMAND_VERBS];
	pid_t instance;
	int ended; /* status of the last end; -2: none */
	unsigned n_ended, n_failed;
	unsigned told[SHIM_SUP_TELLS];
	enum shim_sup_why why;
	char text[SHIM_COMMAND_TEXT_MAX + 1];
	int pipe_fd[2]; /* calls hold its end: it closes when all of them are gone */
} w;

static int call(void *arg, enum shim_command_verb verb)
{
	(void)arg;
	(void)close(w.pipe_fd[0]);
	if (w.status[verb] != HANG) {
		(void)dprintf(STDERR_FILENO, "verb %d says %d\n", (int)verb, w.status[verb]);
		return w.status[verb];
	}
	for (;;)
		(void)pause();
}
static int instance(void *arg, pid_t *ret)
{
	(void)arg;
	*ret = w.instance;
	return w.instance > 0 ? 0 : AQE_E_ABSENT;
}
static bool ended(void *arg, int status)
{
	(void)arg;
	w.ended = status;
	w.n_ended++;
	return status == 0;
}
static void failed(void *arg, enum shim_command_verb verb, const char *text)
{
	(void)arg;
	(void)verb;
	w.n_failed++;
	(void)snprintf(w.text, sizeof(w.text), "%s", text);
}
static void tell(void *arg, const struct shim_sup_action *a, const char *text)
{
	(void)arg;
	(void)text;
	w.told[a->report]++;
	if (a->report == SHIM_SUP_TELL_FAILED)
		w.why = a->why;
}

static struct shim_supervisor *begin_with(const struct shim_sup_config *cfg, int start, int alive,
					  int stop)
{
	struct shim_command_opts c = {
		.call = call, .instance = instance, .ended = ended, .failed = failed
	};
	struct shim_supervisor_opts o = SHIM_SUPERVISOR_OPTS_INIT;
	struct shim_supervisor *s = NULL;
	struct shim_sup_driver d;
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(shim_loop_new(&w.loop, &e), e);
	w.status[SHIM_COMMAND_START] = start;
	w.status[SHIM_COMMAND_ALIVE] = alive;
	w.status[SHIM_COMMAND_STOP] = stop;
	w.ended = -2;
	ck_assert_int_eq(pipe(w.pipe_fd), 0);
	c.loop = o.loop = w.loop;
	o.cfg = cfg;
	o.random = cfg == &FAST ? NULL : longest;
	o.tell = tell;
	ck_assert_ok(shim_command_driver(&c, &d, &e), e);
	ck_assert_ok(shim_supervisor_new(&o, d, &s, &e), e);
	shim_supervisor_want(s, SHIM_SUP_WANT_UP);
	return s;
}
static struct shim_supervisor *begin(int start, int alive, int stop)
{
	return begin_with(&FAST, start, alive, stop);
}
/* One attempt. */
static struct shim_supervisor *begin_once(int start, int alive, int stop)
{
	static struct shim_sup_config once;

	once = FAST;
	once.base_ms = once.cap_ms = LONG_MS;
	return begin_with(&once, start, alive, stop);
}
static void until(struct shim_supervisor *s, enum shim_sup_state state)
{
	struct aqe_err e = AQE_ERR_INIT;
	int64_t end = shim_loop_now_ms(w.loop) + 20000;

	while (shim_supervisor_machine(s)->state != state) {
		ck_assert_ok(shim_loop_step(w.loop, 100, &e), e);
		if (shim_loop_now_ms(w.loop) > end)
			ck_abort_msg("stuck in %s",
				     shim_sup_state_name(shim_supervisor_machine(s)->state));
	}
}
/* All calls that were ever made are gone, hung ones too. */
static void finish(struct shim_supervisor *s)
{
	struct pollfd p = { .fd = w.pipe_fd[0], .events = POLLIN };

	shim_supervisor_free(s);
	shim_loop_free(w.loop);
	(void)close(w.pipe_fd[1]);
	ck_assert_int_eq(poll(&p, 1, 5000), 1);
	ck_assert_int_ne(p.revents & POLLHUP, 0);
	(void)close(w.pipe_fd[0]);
}

static const struct {
	int start, alive, stop;
	enum shim_sup_why why;
} WRONG[] = {
	{ SHIM_COMMAND_FAILED, SHIM_COMMAND_OK, SHIM_COMMAND_OK, SHIM_SUP_WHY_START_FAILED },
	{ 42, SHIM_COMMAND_OK, SHIM_COMMAND_OK, SHIM_SUP_WHY_START_FAILED },
	{ HANG, SHIM_COMMAND_OK, SHIM_COMMAND_OK, SHIM_SUP_WHY_START_TIMEOUT },
	{ SHIM_COMMAND_OK, SHIM_COMMAND_FAILED, SHIM_COMMAND_OK, SHIM_SUP_WHY_NOT_ALIVE },
	{ SHIM_COMMAND_OK, HANG, SHIM_COMMAND_OK, SHIM_SUP_WHY_NO_ANSWER },
	{ SHIM_COMMAND_OK, 9, SHIM_COMMAND_OK, SHIM_SUP_WHY_NO_ANSWER },
};

START_TEST(command__holds_whatever_the_calls_do)
{
	struct shim_supervisor *s = begin(WRONG[_i].start, WRONG[_i].alive, WRONG[_i].stop);

	until(s, SHIM_SUP_HELD);
	ck_assert_uint_eq(w.told[SHIM_SUP_TELL_FAILED], 3);
	ck_assert_int_eq(w.why, WRONG[_i].why);
	finish(s);
}
END_TEST

START_TEST(command__says_why)
{
	struct shim_supervisor *s = begin(SHIM_COMMAND_REFUSED, 0, 0);

	until(s, SHIM_SUP_HELD);
	ck_assert_uint_eq(w.told[SHIM_SUP_TELL_REFUSED], 1);
	ck_assert_uint_eq(w.n_failed, 1);
	ck_assert_str_eq(w.text, "verb 0 says 3\n");
	finish(s);
}
END_TEST

START_TEST(command__a_stop_follows_a_hung_start_at_once)
{
	struct shim_supervisor *s = begin_once(HANG, 0, 0);
	int64_t begun = shim_loop_now_ms(w.loop);

	until(s, SHIM_SUP_BACKOFF);
	/* the stop waited for the killed start to be gone, and no longer */
	ck_assert_int_lt(shim_loop_now_ms(w.loop) - begun, FAST.start_timeout_ms + 1500);
	ck_assert(!shim_supervisor_machine(s)->unclean);
	shim_supervisor_want(s, SHIM_SUP_WANT_DOWN);
	until(s, SHIM_SUP_STOPPED);
	finish(s);
}
END_TEST

START_TEST(command__sees_its_child_end)
{
	struct shim_supervisor *s;
	pid_t pid = fork();

	if (pid == 0) {
		(void)usleep(50000);
		_exit(_i);
	}
	w.instance = pid;
	s = begin_once(0, 0, 0);
	until(s, _i ? SHIM_SUP_BACKOFF : SHIM_SUP_STOPPED);
	ck_assert_uint_eq(w.n_ended, 1);
	ck_assert_int_eq(WEXITSTATUS(w.ended), _i);
	shim_supervisor_want(s, SHIM_SUP_WANT_DOWN);
	until(s, SHIM_SUP_STOPPED);
	finish(s);
}
END_TEST

/* A grandchild: its parent is init, and only the engine can say how it ended. */
static pid_t stranger(void)
{
	int fd[2];
	pid_t pid = 0, middle;

	ck_assert_int_eq(pipe(fd), 0);
	middle = fork();
	if (middle == 0) {
		pid = fork();
		if (pid == 0) {
			(void)usleep(200000);
			_exit(3);
		}
		(void)!write(fd[1], &pid, sizeof(pid));
		_exit(0);
	}
	ck_assert_int_eq(read(fd[0], &pid, sizeof(pid)), (ssize_t)sizeof(pid));
	ck_assert_int_eq(waitpid(middle, NULL, 0), middle);
	(void)close(fd[0]);
	(void)close(fd[1]);
	return pid;
}

START_TEST(command__asks_how_a_stranger_ended)
{
	static const int answers[] = { SHIM_COMMAND_FAILED, SHIM_COMMAND_DONE };
	struct shim_supervisor *s;

	w.instance = stranger();
	s = begin_once(0, 0, 0);
	until(s, SHIM_SUP_ALIVE);
	ck_assert_uint_eq(w.n_ended, 0);
	/* from now on the engine says that it is over */
	w.status[SHIM_COMMAND_ALIVE] = answers[_i];
	until(s, _i ? SHIM_SUP_STOPPED : SHIM_SUP_BACKOFF);
	ck_assert_uint_eq(w.n_ended, 1);
	ck_assert_int_eq(w.ended, -1);
	shim_supervisor_want(s, SHIM_SUP_WANT_DOWN);
	until(s, SHIM_SUP_STOPPED);
	finish(s);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("supervisor_command");
	TCase *t = tcase_create("command");

	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, command__holds_whatever_the_calls_do, 0, AQE_COUNT(WRONG));
	tcase_add_test(t, command__says_why);
	tcase_add_test(t, command__a_stop_follows_a_hung_start_at_once);
	tcase_add_loop_test(t, command__sees_its_child_end, 0, 2);
	tcase_add_loop_test(t, command__asks_how_a_stranger_ended, 0, 2);
	suite_add_tcase(s, t);
	return unit_run(s);
}
