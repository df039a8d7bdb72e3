/* SPDX-License-Identifier: MIT */
/* The monitor with a runtime that is a script: every start that went well is told once, before what
 * follows it, also when the process ends at once, or when the monitor is killed in between. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "audit/log.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/json.h"
#include "shim/core/proc.h"
#include "shim/core/text.h"
#include "shim/sandbox/engine.h"
#include "shim/sandbox/events.h"
#include "shim/sandbox/monitor.h"
#include "shim/supervisor/store.h"
#include "tests/fakes/fake_alloc.h"
#include "tests/unit/unit.h"

#define RUN_MS 60000 /* nothing here takes as long */

/* No audit log: these are not the machine's events. */
int __wrap_shim_audit_at(struct aqe_arena *a, char *const *envp, enum audit_mode mode,
			 struct audit_opts *ret, struct aqe_err *e);
int __wrap_shim_audit_at(struct aqe_arena *a, char *const *envp, enum audit_mode mode,
			 struct audit_opts *ret, struct aqe_err *e)
{
	(void)a;
	(void)envp;
	(void)mode;
	(void)ret;
	return aqe_err_set(e, AQE_E_ABSENT, 0, "no log in this test");
}

/* create makes a process that waits at a pipe; start lets it go. What is peculiar to a case is a
 * line of shell before start answers. `grandparent` is the monitor. */
static const char SCRIPT[] =
	"#!/bin/sh\n"
	"cd \"$(dirname \"$0\")\" || exit 1\n"
	"log=$2; shift 4\n" /* --log FILE --log-format json */
	"ended() { [ ! -e /proc/$1 ] || grep -q '^State:.*Z' /proc/$1/status; }\n"
	"grandparent() { awk '/^PPid/ { print $2 }' /proc/$PPID/status; }\n"
	"case $1 in\n"
	"create)\n"
	"	rm -f go; mkfifo go\n"
	"	sh ./process >out 2>&1 </dev/null & echo $! >\"$5\"; echo $! >truth\n"
	"	echo \"$5\" >pidfile ;;\n"
	"start)\n"
	"	echo >go; pid=$(cat truth)\n"
	"	%s\n"
	"	;;\n"
	"state) ended \"$(cat truth)\" && s=stopped || s=running\n"
	"	echo \"{\\\"status\\\":\\\"$s\\\",\\\"pid\\\":$(cat truth)}\" ;;\n"
	"kill) kill -KILL \"$(cat truth)\" ;;\n"
	"delete) [ ! -e truth ] || kill -KILL \"$(cat truth)\" 2>/dev/null; rm -f truth; true ;;\n"
	"esac\n";

#define ENDS   "read x <go; exit 3\n"
#define STAYS  "read x <go; exec sleep 1000\n"
#define WAIT   "until ended $pid; do sleep 0.01; done"
#define MURDER "kill -KILL $(grandparent)"

static char base[64];
static struct aqe_arena *arena;
static struct shim_place place = SHIM_PLACE_INIT;
static struct shim_box box = SHIM_BOX_INIT;

static void put(const char *name, const char *text)
{
	char path[128];
	AQE_AUTO_FD int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", base, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void set_script(const char *process, const char *line)
{
	char text[4096];

	(void)snprintf(text, sizeof(text), SCRIPT, line);
	put("aqe-shim", text);
	put("process", process);
}

static void make_box(void)
{
	const struct shim_engine_ops *engine = shim_engine_find("oci");
	struct shim_event ev = SHIM_EVENT_INIT(SHIM_EVENT_CREATED);
	struct shim_plan p;
	struct aqe_err e = AQE_ERR_INIT;
	static const char *const WORDS[] = { "x" };

	memset(&p, 0, sizeof(p));
	shim_plan_defaults(&p, hard_agent_default());
	p.agent_id = "a";
	p.agent_type = "default";
	p.engine = "oci";
	p.restart = "no";
	p.user = "1000:1000";
	p.workdir = "/";
	p.args = (struct shim_strs){ WORDS, 1 };
	p.rootfs = aqe_arena_fmt(arena, "%s/rootfs", base);
	p.grace_ms = 0;
	ck_assert_ok(shim_box_make(arena, &place, &p, &box, &e), e);
	ck_assert_ok(engine->create(&box, &e), e);
	(void)!shim_event_write(&box, &ev, NULL);
}

static void setup(void)
{
	/* what a root folder must have */
	static const char *const ROOT[] = { "", "/proc", "/sys", "/dev", "/tmp", "/run" };
	struct aqe_err e = AQE_ERR_INIT;
	char path[128];

	(void)snprintf(base, sizeof(base), "/tmp/aqe-monitor-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(base));
	for (size_t i = 0; i < AQE_COUNT(ROOT); i++) {
		(void)snprintf(path, sizeof(path), "%s/rootfs%s", base, ROOT[i]);
		ck_assert_int_eq(mkdir(path, 0755), 0);
	}
	(void)snprintf(path, sizeof(path), "%s/aqe-shim", base);
	ck_assert_int_eq(setenv("AQE_SHIM", path, 1), 0);
	/* the processes of a killed monitor come to us */
	ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	arena = aqe_arena_new((size_t)4 << 20);
	(void)snprintf(path, sizeof(path), "%s/data", base);
	ck_assert_ok(shim_place_open(arena, path, &place, &e), e);
	make_box();
}

static void teardown(void)
{
	shim_box_done(&box);
	shim_place_done(&place);
	aqe_arena_free(arena);
	if (chdir("/tmp") == 0)
		ck_assert_int_eq(aqe_fs_remove_tree(AT_FDCWD, base + 5, NULL), 0);
}

static void want(bool up)
{
	struct shim_want w = { up, true, false, 0 };
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(shim_box_set_want(&box, &w, &e), e);
}

/* A life of a monitor, in a process of its own, whose `nth` allocation fails (0: none); the status
 * of its end. */
static int run_monitor_without(unsigned nth)
{
	struct aqe_err e = AQE_ERR_INIT;
	int status = 0, ms = 0;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)4 << 20);
		struct shim_box mine = SHIM_BOX_INIT;
		int rc = shim_box_open(a, &place, box.name, &mine, &e);

		/* it says there that there is no audit log, and which event it could not tell */
		if (!freopen(aqe_arena_fmt(a, "%s/said", base), "w", stderr) ||
		    setvbuf(stderr, NULL, _IONBF, 0) != 0)
			_exit(2);
		fake_alloc_arm(nth);
		rc = rc == 0 ? shim_monitor_run(&mine, &e) : rc;
		if (!fake_alloc_disarm() && nth)
			_exit(3); /* so many there were not */
		_exit(rc == 0 ? 0 : rc == AQE_E_NOMEM && rc == (int)e.code ? 1 : 2);
	}
	while (waitpid(pid, &status, WNOHANG) == 0 && ms++ < RUN_MS)
		(void)poll(NULL, 0, 1);
	ck_assert_msg(ms < RUN_MS, "the monitor does not end");
	return status;
}

static int run_monitor(void)
{
	return run_monitor_without(0);
}

/* The names of the events, with the number of a start and the status of an end. */
static const char *events(void)
{
	static char out[1024];
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);
	struct aqe_err e = AQE_ERR_INIT;
	const char *line, *next, *event;
	struct aqe_json *root = NULL;
	int64_t n = 0;

	out[0] = '\0';
	ck_assert_ok(aqe_fs_read_beneath(place.fd, SHIM_EVENTS_FILE, AQE_FS_REGULAR, &b, &e), e);
	for (line = aqe_buf_str(&b); *line; line = next) {
		size_t at = strlen(out), len = strcspn(line, "\n");

		next = line + len + 1;
		ck_assert_ok(aqe_json_parse(arena, line, len, &AQE_JSON_LIMITS_DEFAULT, &root, &e),
			     e);
		ck_assert_int_eq(aqe_json_get_str(root, "event", &event, &e), 1);
		(void)snprintf(out + at, sizeof(out) - at, "%s%s", at ? " " : "", event);
		at = strlen(out);
		if (aqe_json_get_i64(root, "start", 0, 99, &n, &e) == 1 ||
		    aqe_json_get_i64(root, "exit_code", 0, 999, &n, &e) == 1)
			(void)snprintf(out + at, sizeof(out) - at, ":%d", (int)n);
	}
	return out;
}

/* ---- a start that went well ---- */

static const struct {
	const char *what, *line, *want;
} QUICK[] = {
	{ "as usual", "true", "created started:1 stopped:3" },
	{ "ended before start answers", WAIT, "created started:1 stopped:3" },
	{ "no pid file", WAIT "; rm \"$(cat pidfile)\"", "created started:1 stopped error error" },
	{ "a pid file that says nothing", WAIT "; echo x >\"$(cat pidfile)\"",
	  "created started:1 stopped error error" },
	{ "a pid file that names nobody", WAIT "; echo 2147483646 >\"$(cat pidfile)\"",
	  "created started:1 stopped error error" },
	{ "an empty pid file", WAIT "; : >\"$(cat pidfile)\"",
	  "created started:1 stopped error error" },
};

START_TEST(start__is_told_once_before_its_end)
{
	set_script(ENDS, QUICK[_i].line);
	want(true);
	ck_assert_int_eq(run_monitor(), 0);
	ck_assert_msg(aqe_str_eq(events(), QUICK[_i].want), "%s: %s", QUICK[_i].what, events());
}
END_TEST

START_TEST(start__that_failed_is_not_told)
{
	set_script(ENDS, "exit 1");
	want(true);
	ck_assert_int_eq(run_monitor(), 0);
	ck_assert_str_eq(events(), "created error error");
}
END_TEST

/* An id that another call still holds is no refusal; a verdict is. */
static const struct {
	const char *msg, *hold;
} WORDS[] = {
	{ "refused: mounts at /mounts/3: found a, wanted b; fix: c", "refused" },
	{ "refused: container 'x': another process is creating this container", "crash_loop" },
	{ "refused: container 'x' already exists", "crash_loop" },
};
START_TEST(start__refused_by_the_policy_is_held)
{
	struct shim_seen s;
	struct aqe_err e = AQE_ERR_INIT;
	char line[256];

	(void)snprintf(line, sizeof(line), "printf '{\"msg\":\"%%s\"}\\n' \"%s\" >\"$log\"; exit 1",
		       WORDS[_i].msg);
	set_script(ENDS, line);
	want(true);
	ck_assert_int_eq(run_monitor(), 0);
	ck_assert_ok(shim_box_seen(&box, &s, &e), e);
	ck_assert_str_eq(s.status, "held");
	ck_assert_str_eq(s.hold, WORDS[_i].hold);
}
END_TEST

/* ---- a monitor that is killed ---- */

/* Its call goes on without it, and holds the lock as long as it does: the next monitor has to come
 * later. */
static void is_killed(void)
{
	int status = run_monitor(), rc = -1, ms = 0;
	struct aqe_err e = AQE_ERR_INIT;
	AQE_AUTO_FD int lock = -1;

	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	while ((rc = shim_store_lock(place.supervisor_fd, box.name, &lock, &e)) < 0 &&
	       ms++ < RUN_MS)
		(void)poll(NULL, 0, 1);
	ck_assert_ok(rc, e);
}

START_TEST(kill__between_start_and_its_event)
{
	struct shim_seen s;
	struct aqe_err e = AQE_ERR_INIT;

	set_script(STAYS, MURDER);
	want(true);
	is_killed();
	ck_assert_str_eq(events(), "created");
	want(false); /* the next one ends it */
	ck_assert_int_eq(run_monitor(), 0);
	ck_assert_str_eq(events(), "created started:1 stopped");
	ck_assert_ok(shim_box_seen(&box, &s, &e), e);
	ck_assert_uint_eq(s.starts, 1);
}
END_TEST

START_TEST(kill__and_it_ends_unseen)
{
	set_script(ENDS, MURDER "; " WAIT);
	want(true);
	is_killed();
	ck_assert_int_eq(run_monitor(), 0);
	ck_assert_str_eq(events(), "created started:1 stopped error error");
}
END_TEST

/* The call died with the monitor: the runtime had started the container, but nobody heard that
 * aqe-shim found it as judged. Such a one does not go on. */
START_TEST(kill__of_the_start_too_is_not_adopted)
{
	AQE_AUTO_FD int pidfd = -1;
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_seen s;
	struct pollfd p;
	char path[128], text[32] = "";
	AQE_AUTO_FD int truth = -1;

	set_script(STAYS, "kill -KILL $(grandparent) $PPID");
	want(true);
	is_killed();
	(void)snprintf(path, sizeof(path), "%s/truth", base);
	truth = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_gt(read(truth, text, sizeof(text) - 1), 0);
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)strtoul(text, NULL, 10), 0);
	ck_assert_int_ge(pidfd, 0);  /* it runs */
	set_script(STAYS, "exit 1"); /* were there another start */
	ck_assert_int_eq(run_monitor(), 0);
	p = (struct pollfd){ .fd = pidfd, .events = POLLIN };
	ck_assert_int_eq(poll(&p, 1, RUN_MS), 1); /* it does not any more */
	ck_assert_str_eq(events(), "created error error");
	ck_assert_ok(shim_box_seen(&box, &s, &e), e);
	ck_assert_str_eq(s.status, "held");
	ck_assert_ptr_nonnull(strstr(s.error, "its start was cut off"));
}
END_TEST

/* What was told, what was saved, and what is told on top. */
static const struct {
	const char *what;
	bool started, stopped; /* in the events */
	bool state;            /* in the state: started */
	const char *want;
} WINDOWS[] = {
	{ "after the event, before the state", true, false, false,
	  "created started:1 stopped error error" },
	{ "after the end's event", true, true, true, "created started:1 stopped:3 error error" },
	{ "after both, without a state", true, true, false,
	  "created started:1 stopped:3 error error" },
};
START_TEST(kill__tells_nothing_twice)
{
	struct shim_sup_saved saved = { 0, SHIM_SUP_HOLD_NONE, true, 0 };
	struct shim_seen s = SHIM_SEEN_INIT;
	struct shim_last last = { 3, false };
	struct shim_begun begun = { 1 };
	struct shim_event ev = SHIM_EVENT_INIT(SHIM_EVENT_STARTED);
	struct aqe_err e = AQE_ERR_INIT;

	set_script(ENDS, "true");
	put("truth", "2147483646\n");
	ck_assert_ok(shim_store_save(place.supervisor_fd, box.name, &saved, &e), e);
	ck_assert_ok(shim_fields_save(SHIM_BEGUN_FIELDS, box.fd, SHIM_BEGUN_FILE, &begun, &e), e);
	ck_assert_ok(shim_fields_save(SHIM_LAST_FIELDS, box.fd, SHIM_LAST_FILE, &last, &e), e);
	ev.number = 1;
	ev.number_name = "start";
	if (WINDOWS[_i].started)
		(void)!shim_event_write(&box, &ev, NULL);
	ev = (struct shim_event)SHIM_EVENT_INIT(SHIM_EVENT_STOPPED);
	ev.exit_code = 3;
	if (WINDOWS[_i].stopped)
		(void)!shim_event_write(&box, &ev, NULL);
	s.status = "alive";
	s.starts = 1;
	s.pid = 2147483646;
	s.pid_start = 1;
	if (WINDOWS[_i].state)
		ck_assert_ok(shim_box_set_seen(&box, &s, &e), e);
	want(true);
	ck_assert_int_eq(run_monitor(), 0);
	ck_assert_msg(aqe_str_eq(events(), WINDOWS[_i].want), "%s: %s", WINDOWS[_i].what, events());
}
END_TEST

/* ---- reading the file back ---- */

static const struct {
	const char *line;
	uint32_t starts;
	bool ended;
} LINES[] = {
	{ "{\"event\":\"started\",\"sandbox\":\"N\",\"start\":4}\n", 4, false },
	{ "{\"event\":\"stopped\",\"sandbox\":\"N\"}", 7, true },
	{ "{\"event\":\"created\",\"sandbox\":\"N\"}", 0, false },
	{ "{\"event\":\"error\",\"sandbox\":\"N\"}", 7, false },
	/* others', words inside others' words, what is cut off or no event */
	{ "{\"event\":\"created\",\"sandbox\":\"N-2\"}", 7, false },
	{ "{\"event\":\"error\",\"sandbox\":\"x\",\"reason\":\"\\\"sandbox\\\":\\\"N\\\"\"}", 7,
	  false },
	{ "{\"event\":\"created\",\"sandbox\":\"N\"", 7, false },
	{ "{\"event\":\"created\",\"sandbox\":[\"N\"]}", 7, false },
	{ "{\"event\":5,\"sandbox\":\"N\"}", 7, false },
	{ "{\"event\":\"started\",\"sandbox\":\"N\",\"start\":-1}", 7, false },
	{ "{\"event\":\"started\",\"sandbox\":\"N\",\"start\":4294967296}", 7, false },
	{ "[\"N\"]", 7, false },
	{ "N", 7, false },
	{ "", 7, false },
};
START_TEST(history__line)
{
	struct shim_box b = SHIM_BOX_INIT;
	struct shim_event_history h = { 7, false };

	b.name = "N";
	ck_assert_int_eq(shim_event_history_line(&b, LINES[_i].line, strlen(LINES[_i].line), &h,
						 NULL),
			 0);
	ck_assert_uint_eq(h.starts, LINES[_i].starts);
	ck_assert_int_eq(h.ended, LINES[_i].ended);
}
END_TEST

/* ---- a monitor without memory ---- */

/* As after make_box(). */
static void start_anew(void)
{
	static const char *const FILES[] = { SHIM_STATE_FILE, SHIM_BEGUN_FILE, SHIM_LAST_FILE };
	struct shim_event ev = SHIM_EVENT_INIT(SHIM_EVENT_CREATED);
	struct aqe_err e = AQE_ERR_INIT;

	for (size_t i = 0; i < AQE_COUNT(FILES); i++)
		(void)unlinkat(box.fd, FILES[i], 0);
	ck_assert_ok(shim_store_remove(place.supervisor_fd, box.name, &e), e);
	ck_assert_int_eq(unlinkat(place.fd, SHIM_EVENTS_FILE, 0), 0);
	(void)!shim_event_write(&box, &ev, NULL);
}

/* Did the monitor say that it could not write an event down? */
static bool said_so(void)
{
	char text[4096] = "", path[128];
	AQE_AUTO_FD int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/said", base);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_ge(read(fd, text, sizeof(text) - 1), 0);
	return strstr(text, "out of memory") || strstr(text, "no memory");
}

/* Whatever a monitor lacked memory for: it ends with that word or goes on, and the next one leaves
 * nothing running. What it could not tell it says in its log. Its calls are processes of their own,
 * which lack it too. */
START_TEST(alloc__loses_nothing)
{
	const char *told;
	int status = 0;
	bool said, whole;
	unsigned n;

	set_script(ENDS, "true");
	for (n = 1; n < 2000 && (n == 1 || WEXITSTATUS(status) != 3); n++) {
		struct aqe_err e = AQE_ERR_INIT;
		struct shim_seen s;

		want(true);
		status = run_monitor_without(n);
		said = said_so();
		ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) != 2,
			      "allocation %u: status %x", n, (unsigned)status);
		want(false);
		ck_assert_int_eq(run_monitor(), 0);
		ck_assert_ok(shim_box_seen(&box, &s, &e), e);
		ck_assert_msg(!shim_seen_runs(&s), "allocation %u: it runs", n);
		told = events();
		whole = aqe_str_eq(told, "created") || aqe_starts(told, "created error") ||
			(aqe_starts(told, "created started:1") && strstr(told, " stopped"));
		ck_assert_msg(whole || said, "allocation %u, status %d: %s", n, WEXITSTATUS(status),
			      told);
		start_anew();
	}
	ck_assert_int_eq(WEXITSTATUS(status), 3);
	ck_assert_uint_gt(n, 10);
}
END_TEST

/* ---- what is seen, what is left ---- */

/* One that has ended and waits to be taken note of does not run: its monitor may have been killed.
 */
START_TEST(seen_runs__not_when_it_has_ended)
{
	struct shim_seen s = SHIM_SEEN_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	siginfo_t info;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(0);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	s.pid = (uint32_t)pid;
	ck_assert_ok(aqe_proc_start_time(pid, &s.pid_start, &e), e);
	ck_assert(!shim_seen_runs(&s));
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	s.pid = (uint32_t)getpid();
	ck_assert_ok(aqe_proc_start_time(getpid(), &s.pid_start, &e), e);
	ck_assert(shim_seen_runs(&s));
	s.pid_start++; /* another process of that number */
	ck_assert(!shim_seen_runs(&s));
}
END_TEST

/* A folder without a plan is what a killed maker or remover left; not while one is at work. */
START_TEST(sweep__removes_what_has_no_plan)
{
	AQE_AUTO_FD int maker = openat(place.fd, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_eq(mkdirat(place.sandboxes_fd, "agentic-qe-default-half", 0700), 0);
	ck_assert_int_eq(flock(maker, LOCK_SH), 0);
	shim_box_sweep(arena, &place);
	ck_assert_int_eq(faccessat(place.sandboxes_fd, "agentic-qe-default-half", F_OK, 0), 0);
	ck_assert_int_eq(flock(maker, LOCK_UN), 0);
	shim_box_sweep(arena, &place);
	ck_assert_int_ne(faccessat(place.sandboxes_fd, "agentic-qe-default-half", F_OK, 0), 0);
	ck_assert_int_eq(faccessat(box.fd, SHIM_PLAN_FILE, F_OK, 0), 0);
	ck_assert_int_eq(flock(maker, LOCK_EX | LOCK_NB), 0); /* it has let go */
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sandbox_monitor");
	TCase *t = tcase_create("runs"), *pure = tcase_create("pure");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, start__is_told_once_before_its_end, 0, (int)AQE_COUNT(QUICK));
	tcase_add_test(t, start__that_failed_is_not_told);
	tcase_add_loop_test(t, start__refused_by_the_policy_is_held, 0, (int)AQE_COUNT(WORDS));
	tcase_add_test(t, kill__between_start_and_its_event);
	tcase_add_test(t, kill__and_it_ends_unseen);
	tcase_add_test(t, kill__of_the_start_too_is_not_adopted);
	tcase_add_loop_test(t, kill__tells_nothing_twice, 0, (int)AQE_COUNT(WINDOWS));
	tcase_add_test(t, alloc__loses_nothing);
	tcase_add_test(t, seen_runs__not_when_it_has_ended);
	tcase_add_test(t, sweep__removes_what_has_no_plan);
	suite_add_tcase(s, t);
	tcase_add_loop_test(pure, history__line, 0, (int)AQE_COUNT(LINES));
	suite_add_tcase(s, pure);
	return unit_run_with_openat2(s);
}
