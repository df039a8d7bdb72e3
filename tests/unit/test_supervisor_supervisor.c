/* SPDX-License-Identifier: MIT */
/* The binding: loop, driver, store; with the scripted driver and with real processes. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/supervisor/driver_process.h"
#include "shim/supervisor/store.h"
#include "shim/supervisor/supervisor.h"
#include "tests/fakes/fake_driver.h"
#include "tests/unit/unit.h"

/* The specification's shape at a fiftieth of its length. */
static const struct shim_sup_config FAST = {
	.base_ms = 10,
	.cap_ms = 160,
	.attempts = 5,
	.healthy_ms = 400,
	.probe_ms = 40,
	.probe_misses = 2,
	.start_timeout_ms = 100,
	.alive_timeout_ms = 60,
	.stop_timeout_ms = 400,
	.done_is_failure = true,
};

static char place[] = "/tmp/aqe-sup-XXXXXX";
static int dir = -1;
static struct shim_loop *loop;
static struct fake_driver fake;

static struct tale {
	unsigned n[SHIM_SUP_TELLS];
	enum shim_sup_why why;
	int64_t at_ms[64]; /* of failures */
	uint32_t delay_ms[64];
	unsigned n_failed, n_delays;
	char text[AQE_ERR_TEXT_MAX];
} tale;

static void tell(void *arg, const struct shim_sup_action *a, const char *text)
{
	(void)arg;
	tale.n[a->report]++;
	if (a->report == SHIM_SUP_TELL_FAILED) {
		tale.why = a->why;
		tale.at_ms[tale.n_failed++ % 64] = shim_loop_now_ms(loop);
		(void)snprintf(tale.text, sizeof(tale.text), "%s", text);
	}
	if (a->report == SHIM_SUP_TELL_BACKOFF)
		tale.delay_ms[tale.n_delays++ % 64] = a->delay_ms;
}

static void setup(void)
{
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ptr_nonnull(mkdtemp(place));
	dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_ok(shim_loop_new(&loop, &e), e);
	memset(&fake, 0, sizeof(fake));
	memset(&tale, 0, sizeof(tale));
	fake.loop = loop;
}
static void teardown(void)
{
	int parent = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)!aqe_fs_remove_tree(parent, strrchr(place, '/') + 1, NULL);
	(void)close(parent);
	(void)close(dir);
	shim_loop_free(loop);
}

static uint64_t longest(void *arg)
{
	(void)arg;
	return UINT64_MAX;
}

static struct shim_supervisor *make_with(const struct shim_sup_config *cfg,
					 struct shim_sup_driver d, const char *id)
{
	struct shim_supervisor_opts o = SHIM_SUPERVISOR_OPTS_INIT;
	struct shim_supervisor *s = NULL;
	struct aqe_err e = AQE_ERR_INIT;

	o.loop = loop;
	o.cfg = cfg;
	o.random = cfg == &FAST ? NULL : longest;
	o.tell = tell;
	o.store_fd = id ? dir : -1;
	o.id = id;
	ck_assert_ok(shim_supervisor_new(&o, d, &s, &e), e);
	return s;
}
static struct shim_supervisor *make(struct shim_sup_driver d, const char *id)
{
	return make_with(&FAST, d, id);
}

/* Runs the loop until the state is reached, for at most ten seconds. */
static void until(struct shim_supervisor *s, enum shim_sup_state state)
{
	struct aqe_err e = AQE_ERR_INIT;
	int64_t end = shim_loop_now_ms(loop) + 10000;

	while (shim_supervisor_machine(s)->state != state) {
		ck_assert_ok(shim_loop_step(loop, 100, &e), e);
		if (shim_loop_now_ms(loop) > end)
			ck_abort_msg("stuck in %s, wanted %s",
				     shim_sup_state_name(shim_supervisor_machine(s)->state),
				     shim_sup_state_name(state));
	}
}
static void run_ms(int64_t ms)
{
	struct aqe_err e = AQE_ERR_INIT;
	int64_t end = shim_loop_now_ms(loop) + ms;

	while (shim_loop_now_ms(loop) < end)
		ck_assert_ok(shim_loop_step(loop, 5, &e), e);
}

/* ---- with the scripted driver ---- */

static const struct fake_outcome OK_START[] = { { SHIM_SUP_STARTED, 1, 0 } };
static const struct fake_outcome OK_STOP[] = { { SHIM_SUP_STOP_OK, 1, 0 } };
static const struct fake_outcome ALIVE[] = { { SHIM_SUP_YES, 1, 0 } };

static struct shim_sup_driver scripted(const struct fake_outcome *start, size_t n_start,
				       const struct fake_outcome *alive,
				       const struct fake_outcome *stop)
{
	fake.script[FAKE_START] = start;
	fake.len[FAKE_START] = n_start;
	fake.script[FAKE_ALIVE] = alive;
	fake.len[FAKE_ALIVE] = 1;
	fake.script[FAKE_STOP] = stop;
	fake.len[FAKE_STOP] = 1;
	return (struct shim_sup_driver){ &FAKE_OPS, &fake };
}

/* However start() goes wrong, it is tried five times and then held. */
static const struct {
	struct fake_outcome start, alive, stop;
	enum shim_sup_why why;
} WRONG[] = {
	{ { SHIM_SUP_START_FAILED, 0, 0 },
	  { 0, -1, 0 },
	  { SHIM_SUP_STOP_OK, 0, 0 },
	  SHIM_SUP_WHY_START_FAILED },
	{ { SHIM_SUP_START_FAILED, 5, 0 },
	  { 0, -1, 0 },
	  { SHIM_SUP_STOP_OK, 3, 0 },
	  SHIM_SUP_WHY_START_FAILED },
	{ { 0, 0, AQE_E_SYS },
	  { 0, -1, 0 },
	  { SHIM_SUP_STOP_OK, 0, 0 },
	  SHIM_SUP_WHY_START_FAILED },
	/* hung; and so late that the next call is out already */
	{ { 0, -1, 0 }, { 0, -1, 0 }, { SHIM_SUP_STOP_OK, 0, 0 }, SHIM_SUP_WHY_START_TIMEOUT },
	{ { SHIM_SUP_STARTED, 105, 0 },
	  { 0, -1, 0 },
	  { SHIM_SUP_STOP_OK, 20, 0 },
	  SHIM_SUP_WHY_START_TIMEOUT },
	/* lies: started, but not alive; an answer to another question */
	{ { SHIM_SUP_STARTED, 0, 0 },
	  { SHIM_SUP_NO, 0, 0 },
	  { SHIM_SUP_STOP_OK, 0, 0 },
	  SHIM_SUP_WHY_NOT_ALIVE },
	{ { SHIM_SUP_YES, 0, 0 },
	  { 0, -1, 0 },
	  { SHIM_SUP_STOP_OK, 0, 0 },
	  SHIM_SUP_WHY_START_TIMEOUT },
	{ { SHIM_SUP_STARTED, 0, 0 },
	  { SHIM_SUP_STOP_OK, 0, 0 },
	  { SHIM_SUP_STOP_OK, 0, 0 },
	  SHIM_SUP_WHY_NO_ANSWER },
	{ { SHIM_SUP_STARTED, 0, 0 },
	  { 0, 0, AQE_E_SYS },
	  { SHIM_SUP_STOP_OK, 0, 0 },
	  SHIM_SUP_WHY_NO_ANSWER },
};

START_TEST(supervisor__holds_whatever_goes_wrong)
{
	struct shim_supervisor *s =
		make(scripted(&WRONG[_i].start, 1, &WRONG[_i].alive, &WRONG[_i].stop), "x");
	struct shim_sup_saved saved;
	struct aqe_err e = AQE_ERR_INIT;

	shim_supervisor_want(s, SHIM_SUP_WANT_UP);
	until(s, SHIM_SUP_HELD);
	ck_assert_uint_eq(fake_count(&fake, FAKE_START), 5);
	ck_assert_uint_eq(tale.n[SHIM_SUP_TELL_HELD], 1);
	ck_assert_uint_eq(tale.n[SHIM_SUP_TELL_FAILED], 5);
	ck_assert_int_eq(tale.why, WRONG[_i].why);
	ck_assert_ok(shim_store_load(dir, "x", &saved, NULL, &e), e);
	ck_assert_uint_eq(saved.failures, 5);
	ck_assert_int_eq(saved.hold, SHIM_SUP_HOLD_CRASH_LOOP);
	ck_assert(!saved.running);
	for (unsigned i = 0; i < tale.n_delays; i++)
		ck_assert_uint_le(tale.delay_ms[i], shim_sup_window(&FAST, i + 1));
	shim_supervisor_free(s);
	ck_assert_uint_eq(fake_count(&fake, FAKE_CLOSE), 1);
}
END_TEST

START_TEST(supervisor__a_hung_stop_holds_too_and_never_starts_a_second)
{
	static const struct fake_outcome hung[] = { { 0, -1, 0 } };
	struct shim_sup_config quick = FAST;
	struct shim_supervisor_opts o = SHIM_SUPERVISOR_OPTS_INIT;
	struct shim_supervisor *s = NULL;
	struct aqe_err e = AQE_ERR_INIT;

	quick.stop_timeout_ms = 40;
	o.loop = loop;
	o.cfg = &quick;
	o.tell = tell;
	ck_assert_ok(shim_supervisor_new(&o, scripted(hung, 1, ALIVE, hung), &s, &e), e);
	shim_supervisor_want(s, SHIM_SUP_WANT_UP);
	until(s, SHIM_SUP_HELD);
	ck_assert_uint_eq(fake_count(&fake, FAKE_START), 1);
	ck_assert_int_eq(tale.why, SHIM_SUP_WHY_STOP_FAILED);
	shim_supervisor_free(s);
}
END_TEST

START_TEST(supervisor__never_retries_a_refusal)
{
	static const struct fake_outcome no[] = { { SHIM_SUP_START_REFUSED, 1, 0 },
						  { 0, 0, AQE_E_REFUSED } };
	struct shim_supervisor *s = make(scripted(no + _i, 1, ALIVE, OK_STOP), "x");

	shim_supervisor_want(s, SHIM_SUP_WANT_UP);
	until(s, SHIM_SUP_HELD);
	run_ms(100);
	ck_assert_uint_eq(fake_count(&fake, FAKE_START), 1);
	ck_assert_uint_eq(tale.n[SHIM_SUP_TELL_REFUSED], 1);
	ck_assert_uint_eq(tale.n[SHIM_SUP_TELL_FAILED], 0);
	shim_supervisor_free(s);
}
END_TEST

START_TEST(supervisor__forgets_when_healthy)
{
	static const struct fake_outcome start[] = { { SHIM_SUP_START_FAILED, 1, 0 },
						     { SHIM_SUP_START_FAILED, 1, 0 },
						     { SHIM_SUP_STARTED, 1, 0 } };
	struct shim_supervisor *s = make(scripted(start, 3, ALIVE, OK_STOP), "x");
	int64_t up;

	shim_supervisor_want(s, SHIM_SUP_WANT_UP);
	until(s, SHIM_SUP_ALIVE);
	up = shim_loop_now_ms(loop);
	ck_assert_uint_eq(shim_supervisor_machine(s)->failures, 2);
	while (shim_supervisor_machine(s)->failures > 0)
		run_ms(5);
	ck_assert_int_ge(shim_loop_now_ms(loop) - up, FAST.healthy_ms - 5);
	ck_assert_int_le(shim_loop_now_ms(loop) - up, FAST.healthy_ms + 400);
	ck_assert_uint_eq(tale.n[SHIM_SUP_TELL_HEALTHY], 1);
	shim_supervisor_free(s);
}
END_TEST

START_TEST(supervisor__counts_survive_it)
{
	static const struct fake_outcome start[] = { { SHIM_SUP_START_FAILED, 1, 0 } };
	struct shim_sup_config once = FAST;
	struct shim_supervisor *s;

	/* a back-off that is over before it is seen would be a second attempt */
	once.base_ms = once.cap_ms = 600000;
	for (unsigned i = 1; i <= 5; i++) {
		memset(&fake, 0, sizeof(fake));
		fake.loop = loop;
		s = make_with(&once, scripted(start, 1, ALIVE, OK_STOP), "x");
		shim_supervisor_want(s, SHIM_SUP_WANT_UP);
		until(s, i < 5 ? SHIM_SUP_BACKOFF : SHIM_SUP_HELD);
		ck_assert_uint_eq(shim_supervisor_machine(s)->failures, i);
		shim_supervisor_free(s);
	}
	memset(&fake, 0, sizeof(fake));
	fake.loop = loop;
	s = make(scripted(OK_START, 1, ALIVE, OK_STOP), "x");
	shim_supervisor_want(s, SHIM_SUP_WANT_UP);
	ck_assert_int_eq(shim_supervisor_machine(s)->state, SHIM_SUP_HELD);
	ck_assert_uint_eq(fake_count(&fake, FAKE_START), 0);
	shim_supervisor_want(s, SHIM_SUP_RESET);
	until(s, SHIM_SUP_ALIVE);
	ck_assert_uint_eq(shim_supervisor_machine(s)->failures, 0);
	shim_supervisor_free(s);
}
END_TEST

START_TEST(supervisor__does_not_start_what_it_cannot_count)
{
	struct shim_supervisor *s = make(scripted(OK_START, 1, ALIVE, OK_STOP), "x");

	/* the folder is gone */
	ck_assert_int_eq(unlinkat(dir, ".lock", 0), 0);
	ck_assert_int_eq(rmdir(place), 0);
	shim_supervisor_want(s, SHIM_SUP_WANT_UP);
	until(s, SHIM_SUP_HELD);
	ck_assert_uint_eq(fake_count(&fake, FAKE_START), 0);
	shim_supervisor_free(s);
}
END_TEST

START_TEST(supervisor__one_an_id)
{
	struct shim_supervisor *s = make(scripted(OK_START, 1, ALIVE, OK_STOP), "x"), *t = NULL;
	struct shim_supervisor_opts o = SHIM_SUPERVISOR_OPTS_INIT;
	struct aqe_err e = AQE_ERR_INIT;

	o.loop = loop;
	o.store_fd = dir;
	o.id = "x";
	ck_assert_fault(shim_supervisor_new(&o, (struct shim_sup_driver){ &FAKE_OPS, &fake }, &t,
					    &e),
			AQE_E_REFUSED, e, "already");
	ck_assert_uint_eq(fake_count(&fake, FAKE_CLOSE), 1);
	shim_supervisor_free(s);
}
END_TEST

/* ---- with processes ---- */

struct script {
	const char *text;
	int spawned;
	pid_t pid;
	int out_fd;
	int refuse;
	int status;
};

static int spawn(void *arg, pid_t *ret, struct aqe_err *e)
{
	struct script *sc = arg;
	char *argv[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", NULL, NULL };
	char *envp[] = { (char *)(uintptr_t) "PATH=/usr/bin:/bin", NULL };
	struct shim_spawn o = { "/bin/sh", argv, envp, -1, sc->out_fd, -1, false };
	int rc;

	if (sc->refuse)
		return aqe_err_set(e, AQE_E_REFUSED, 0, "not today");
	argv[2] = (char *)(uintptr_t)sc->text;
	rc = shim_spawn(&o, ret, e);
	if (rc == 0) {
		sc->pid = *ret;
		sc->spawned++;
	}
	return rc;
}
static void ended(void *arg, int status)
{
	struct script *sc = arg;

	sc->status = status;
}

static struct shim_supervisor *process(struct script *sc, uint32_t grace_ms)
{
	struct shim_process_opts o = { loop, spawn, sc, grace_ms, ended };
	struct shim_sup_driver d;
	struct aqe_err e = AQE_ERR_INIT;

	sc->out_fd = -1; /* inherited */
	ck_assert_ok(shim_process_driver(&o, &d, &e), e);
	return make(d, "p");
}

/* Every member of the group holds the pipe: its end is theirs. (Orphans may stay as zombies for as
 * long as the machine's init likes.) */
static int members[2];

static void watch_members(struct script *sc)
{
	ck_assert_int_eq(pipe2(members, O_CLOEXEC), 0);
	sc->out_fd = members[1];
}
static void assert_no_members(void)
{
	struct pollfd p = { .fd = members[0], .events = POLLIN };
	char data[64];

	(void)close(members[1]);
	do {
		ck_assert_int_eq(poll(&p, 1, 5000), 1);
	} while (read(members[0], data, sizeof(data)) > 0);
	(void)close(members[0]);
}

START_TEST(process__that_ends_is_started_again_and_held)
{
	static const char *const TEXTS[] = { "exit 1", "exit 0", "kill -9 $$",
					     "sleep 0.02; exit 3" };
	struct script sc = { .text = TEXTS[_i] };
	struct shim_supervisor *s = process(&sc, 100);

	shim_supervisor_want(s, SHIM_SUP_WANT_UP);
	until(s, SHIM_SUP_HELD);
	ck_assert_int_eq(sc.spawned, 5);
	shim_supervisor_free(s);
}
END_TEST

START_TEST(process__restarts_keep_to_the_schedule)
{
	struct script sc = { .text = "exit 1" };
	struct shim_supervisor *s = process(&sc, 100);

	shim_supervisor_want(s, SHIM_SUP_WANT_UP);
	until(s, SHIM_SUP_HELD);
	for (unsigned i = 0; i + 1 < tale.n_failed; i++) {
		int64_t gap = tale.at_ms[i + 1] - tale.at_ms[i];

		ck_assert_int_ge(gap, tale.delay_ms[i]);
		ck_assert_int_le(gap, tale.delay_ms[i] + 3000); /* a shell starts and ends */
	}
	shim_supervisor_free(s);
}
END_TEST

START_TEST(process__stop_is_kind_then_not)
{
	/* the child of the shell ignores SIGTERM as the shell does */
	struct script sc = { .text = _i ? "trap '' TERM; echo up; sleep 1000 & wait; sleep 1000"
					: "sleep 1000 & wait" };
	struct shim_supervisor *s = process(&sc, 100);
	int64_t begun;

	watch_members(&sc);
	shim_supervisor_want(s, SHIM_SUP_WANT_UP);
	until(s, SHIM_SUP_ALIVE);
	run_ms(50);
	begun = shim_loop_now_ms(loop);
	shim_supervisor_want(s, SHIM_SUP_WANT_DOWN);
	until(s, SHIM_SUP_STOPPED);
	ck_assert(WIFSIGNALED(sc.status));
	ck_assert_int_eq(WTERMSIG(sc.status), _i ? SIGKILL : SIGTERM);
	if (_i)
		ck_assert_int_ge(shim_loop_now_ms(loop) - begun, 99);
	assert_no_members();
	ck_assert_uint_eq(tale.n[SHIM_SUP_TELL_STOPPED], 1);
	shim_supervisor_free(s);
}
END_TEST

START_TEST(process__its_children_end_with_it)
{
	struct script sc = { .text = "sleep 1000 & exit 1" };
	struct shim_supervisor *s = process(&sc, 100);
	struct aqe_err e = AQE_ERR_INIT;

	watch_members(&sc);
	shim_supervisor_want(s, SHIM_SUP_WANT_UP);
	while (tale.n_failed == 0)
		ck_assert_ok(shim_loop_step(loop, 100, &e), e);
	shim_supervisor_want(s, SHIM_SUP_WANT_DOWN);
	until(s, SHIM_SUP_STOPPED);
	assert_no_members();
	shim_supervisor_free(s);
}
END_TEST

START_TEST(process__ends_with_its_supervisor)
{
	int fd[2];
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(fd), 0);
	pid = fork();
	if (pid == 0) {
		char *argv[] = { (char *)(uintptr_t) "sleep", (char *)(uintptr_t) "1000", NULL };
		char *envp[] = { NULL };
		struct shim_spawn o = { "/bin/sleep", argv, envp, -1, fd[1], -1, false };
		pid_t sleeper;

		if (shim_spawn(&o, &sleeper, NULL) == 0)
			(void)kill(getpid(), SIGKILL);
		_exit(1);
	}
	(void)close(fd[1]);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	/* the end of the pipe is the end of the sleeper */
	ck_assert_int_eq(read(fd[0], &byte, 1), 0);
	(void)close(fd[0]);
}
END_TEST

START_TEST(process__that_cannot_be_made)
{
	struct script sc = { .text = "exit 0", .refuse = _i };
	struct shim_process_opts o = { loop, spawn, &sc, 100, ended };
	char *argv[] = { (char *)(uintptr_t) "x", NULL };
	struct shim_spawn none = { "/no/such/program", argv, argv + 1, -1, -1, -1, false };
	struct shim_sup_driver d;
	struct shim_supervisor *s;
	struct aqe_err e = AQE_ERR_INIT;
	pid_t pid;

	ck_assert_fault(shim_spawn(&none, &pid, &e), AQE_E_SYS, e, "/no/such/program");
	ck_assert_int_eq(e.sys, ENOENT);
	if (!_i)
		return;
	ck_assert_ok(shim_process_driver(&o, &d, &e), e);
	s = make(d, "p");
	shim_supervisor_want(s, SHIM_SUP_WANT_UP);
	until(s, SHIM_SUP_HELD);
	ck_assert_uint_eq(tale.n[SHIM_SUP_TELL_REFUSED], 1);
	shim_supervisor_free(s);
}
END_TEST

static struct {
	enum shim_sup_event event[8];
	uint64_t token[8];
	size_t n;
} heard;

static void hear(void *arg, enum shim_sup_event event, uint64_t token)
{
	(void)arg;
	ck_assert_uint_lt(heard.n, 8);
	heard.event[heard.n] = event;
	heard.token[heard.n++] = token;
}

/* The probe comes before the loop has seen the pidfd: one end, with its status, and no second one.
 */
START_TEST(process__an_end_that_a_probe_finds_has_its_status)
{
	struct script sc = { .text = "exit 3", .out_fd = -1, .status = -1 };
	struct shim_process_opts o = { loop, spawn, &sc, 100, ended };
	struct shim_sup_sink sink = { hear, NULL };
	struct shim_sup_driver d;
	struct aqe_err e = AQE_ERR_INIT;
	siginfo_t info;

	memset(&heard, 0, sizeof(heard));
	ck_assert_ok(shim_process_driver(&o, &d, &e), e);
	d.ops->attach(d.self, &sink);
	ck_assert_ok(d.ops->start(d.self, 7, &e), e);
	ck_assert_int_eq(waitid(P_PID, (id_t)sc.pid, &info, WEXITED | WNOWAIT), 0);
	ck_assert_ok(d.ops->alive(d.self, 8, &e), e);
	run_ms(50);
	ck_assert_uint_eq(heard.n, 2);
	ck_assert_int_eq(heard.event[0], SHIM_SUP_STARTED);
	ck_assert_int_eq(heard.event[1], SHIM_SUP_EXITED_BAD);
	ck_assert_uint_eq(heard.token[1], 7);
	ck_assert(WIFEXITED(sc.status) && WEXITSTATUS(sc.status) == 3);
	ck_assert_ok(d.ops->alive(d.self, 9, &e), e);
	ck_assert_int_eq(heard.event[2], SHIM_SUP_NO);
	d.ops->close(d.self);
}
END_TEST

/* ---- the loop ---- */

static int order[8], n_order;

static void note_timer(void *arg)
{
	order[n_order++] = (int)(intptr_t)arg;
}
static void note_fd(void *arg, int fd, uint32_t events)
{
	(void)events;
	order[n_order++] = (int)(intptr_t)arg;
	shim_loop_unwatch(loop, fd);
}

START_TEST(loop__serves_descriptors_first_and_timers_in_order)
{
	struct shim_loop_timer t[3] = { { .fn = note_timer, .arg = (void *)1 },
					{ .fn = note_timer, .arg = (void *)2 },
					{ .fn = note_timer, .arg = (void *)3 } };
	struct aqe_err e = AQE_ERR_INIT;
	int fd[2];

	ck_assert_int_eq(pipe(fd), 0);
	ck_assert_ok(shim_loop_watch(loop, fd[0], EPOLLIN, note_fd, (void *)9, &e), e);
	ck_assert_fault(shim_loop_watch(loop, fd[0], EPOLLIN, note_fd, NULL, &e), AQE_E_INTERNAL, e,
			"cannot be watched");
	shim_loop_arm(loop, &t[1], 3);
	shim_loop_arm(loop, &t[0], 2);
	shim_loop_arm(loop, &t[2], 1);
	shim_loop_arm(loop, &t[2], 4); /* again: later */
	ck_assert_int_eq(write(fd[1], "x", 1), 1);
	(void)usleep(10000);
	ck_assert_ok(shim_loop_step(loop, 0, &e), e);
	ck_assert_int_eq(n_order, 4);
	ck_assert_int_eq(order[0], 9);
	ck_assert_int_eq(order[1], 1);
	ck_assert_int_eq(order[2], 2);
	ck_assert_int_eq(order[3], 3);
	shim_loop_arm(loop, &t[0], 0);
	shim_loop_disarm(loop, &t[0]);
	shim_loop_disarm(loop, &t[0]);
	ck_assert_ok(shim_loop_step(loop, 5, &e), e);
	ck_assert_int_eq(n_order, 4);
	(void)close(fd[0]);
	(void)close(fd[1]);
}
END_TEST

static void swap_fd(void *arg, int fd, uint32_t events)
{
	int *other = arg;
	struct aqe_err e = AQE_ERR_INIT;

	(void)events;
	n_order++;
	/* the other one's event of this round must not reach its successor in the slot */
	shim_loop_unwatch(loop, fd);
	shim_loop_unwatch(loop, *other);
	ck_assert_ok(shim_loop_watch(loop, *other, EPOLLPRI, swap_fd, other, &e), e);
}

START_TEST(loop__an_event_does_not_outlive_its_watch)
{
	struct aqe_err e = AQE_ERR_INIT;
	int a[2], b[2];

	n_order = 0;
	ck_assert_int_eq(pipe(a), 0);
	ck_assert_int_eq(pipe(b), 0);
	ck_assert_ok(shim_loop_watch(loop, a[0], EPOLLIN, swap_fd, &b[0], &e), e);
	ck_assert_ok(shim_loop_watch(loop, b[0], EPOLLIN, swap_fd, &a[0], &e), e);
	ck_assert_int_eq(write(a[1], "x", 1), 1);
	ck_assert_int_eq(write(b[1], "x", 1), 1);
	ck_assert_ok(shim_loop_step(loop, 0, &e), e);
	ck_assert_int_eq(n_order, 1);
	for (int i = 0; i < 2; i++) {
		(void)close(a[i]);
		(void)close(b[i]);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("supervisor");
	TCase *t = tcase_create("binding");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, supervisor__holds_whatever_goes_wrong, 0, AQE_COUNT(WRONG));
	tcase_add_test(t, supervisor__a_hung_stop_holds_too_and_never_starts_a_second);
	tcase_add_loop_test(t, supervisor__never_retries_a_refusal, 0, 2);
	tcase_add_test(t, supervisor__forgets_when_healthy);
	tcase_add_test(t, supervisor__counts_survive_it);
	tcase_add_test(t, supervisor__does_not_start_what_it_cannot_count);
	tcase_add_test(t, supervisor__one_an_id);
	tcase_add_loop_test(t, process__that_ends_is_started_again_and_held, 0, 4);
	tcase_add_test(t, process__restarts_keep_to_the_schedule);
	tcase_add_loop_test(t, process__stop_is_kind_then_not, 0, 2);
	tcase_add_test(t, process__its_children_end_with_it);
	tcase_add_test(t, process__ends_with_its_supervisor);
	tcase_add_loop_test(t, process__that_cannot_be_made, 0, 2);
	tcase_add_test(t, process__an_end_that_a_probe_finds_has_its_status);
	tcase_add_test(t, loop__serves_descriptors_first_and_timers_in_order);
	tcase_add_test(t, loop__an_event_does_not_outlive_its_watch);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
