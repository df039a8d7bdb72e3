/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/proc.h"
#include "shim/core/text.h"
#include "shim/sandbox/engine.h"
#include "shim/sandbox/monitor_int.h"

#define STOP_MARGIN_MS 15000 /* beyond the grace: SIGKILL, delete */

const struct shim_field SHIM_LAST_FIELDS[] = {
	{ "exit_code", SHIM_FIELD_I64, offsetof(struct shim_last, exit_code) },
	{ "oom_killed", SHIM_FIELD_BOOL, offsetof(struct shim_last, oom_killed) },
	{ NULL, SHIM_FIELD_STR, 0 },
};

const struct shim_field SHIM_BEGUN_FIELDS[] = {
	{ "start", SHIM_FIELD_U32, offsetof(struct shim_begun, start) },
	{ NULL, SHIM_FIELD_STR, 0 },
};

static int64_t now_s(void)
{
	return (int64_t)time(NULL);
}

/* ---- writing down ---- */

void shim_monitor_save(struct shim_monitor *m)
{
	const struct shim_sup *s = shim_supervisor_machine(m->sup);

	/* "exited" says more than the machine's "stopped" */
	if (s->state != SHIM_SUP_STOPPED || !aqe_str_eq(m->seen.status, "exited"))
		m->seen.status = shim_sup_state_name(s->state == SHIM_SUP_PROBING ? SHIM_SUP_ALIVE
										  : s->state);
	m->seen.failures = s->failures;
	m->seen.hold = s->hold == SHIM_SUP_HOLD_CRASH_LOOP ? "crash_loop"
		       : s->hold == SHIM_SUP_HOLD_REFUSED  ? "refused"
							   : NULL;
	m->seen.error = m->error[0] ? m->error : NULL;
	/* the next change writes it again */
	(void)!shim_box_set_seen(m->box, &m->seen, NULL);
}

void shim_monitor_event(struct shim_monitor *m, const struct shim_event *ev)
{
	struct aqe_err e = AQE_ERR_INIT;

	if (shim_event_write(m->box, ev, &e) < 0)
		(void)fprintf(stderr, "event %s: %s\n", shim_event_name(ev->kind), e.text);
}

static void set_error(struct shim_monitor *m, const char *text)
{
	(void)snprintf(m->error, sizeof(m->error), "%s", text);
	m->error[strcspn(m->error, "\n")] = '\0';
}

/* ---- the instance ---- */

/* The engine's id of it; without an engine the runtime knows it by the sandbox's name. */
static void read_container(struct shim_monitor *m)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(128);

	if (aqe_fs_read_beneath(m->box->fd, SHIM_CONTAINER_FILE, AQE_FS_TRUSTED, &b, NULL) < 0 ||
	    !aqe_is_hex(aqe_buf_str(&b), 64)) {
		m->seen.container = m->box->name;
		return;
	}
	(void)snprintf(m->container, sizeof(m->container), "%s", aqe_buf_str(&b));
	m->seen.container = m->container;
}

/* Told before it is on disk that it was: who finds the line without the state (take_over()) does
 * not tell it again. */
static void instance_new(struct shim_monitor *m, uint32_t start)
{
	struct shim_event ev = SHIM_EVENT_INIT(SHIM_EVENT_STARTED);

	m->present = true;
	read_container(m);
	m->seen.starts = start;
	m->seen.started_s = now_s();
	m->seen.ended_s = 0;
	m->seen.exit_code = -1;
	m->seen.oom_killed = false;
	ev.number = m->seen.starts;
	ev.number_name = "start";
	shim_monitor_event(m, &ev);
	/* limits are watched from here on: a short life is one, too */
	shim_monitor_watch_begin(m);
}

/* The number of a start that went well and was not told yet, or 0. */
static uint32_t untold(const struct shim_monitor *m)
{
	struct shim_begun begun = { 0 };

	return shim_fields_load(m->box->arena, SHIM_BEGUN_FIELDS, m->box->fd, SHIM_BEGUN_FILE,
				&begun, NULL) == 0 &&
			       begun.start > m->seen.starts
		       ? begun.start
		       : 0;
}

/* The container may have ended before anybody looked, the call may have been given up a moment too
 * late, or an earlier monitor may have been killed. */
static bool look_begun(struct shim_monitor *m)
{
	const uint32_t start = untold(m);

	if (start)
		instance_new(m, start);
	return start != 0;
}

static pid_t read_pid(struct shim_monitor *m)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(32);
	char digits[16];
	uint64_t pid = 0;

	if (aqe_fs_read_beneath(m->box->fd, "pid", AQE_FS_REGULAR, &b, NULL) < 0)
		return 0;
	(void)snprintf(digits, sizeof(digits), "%.*s", (int)strcspn(aqe_buf_str(&b), "\n"),
		       aqe_buf_str(&b));
	return aqe_parse_u64(digits, INT32_MAX, &pid) ? (pid_t)pid : 0;
}

/* The driver asks for the pid after a start, and to adopt. */
static int instance(void *arg, pid_t *ret_pid)
{
	struct shim_monitor *m = arg;
	bool fresh = shim_supervisor_machine(m->sup)->state == SHIM_SUP_STARTING;
	bool other;
	uint64_t start = 0;
	pid_t pid = read_pid(m);

	if (pid > 0 && aqe_proc_start_time(pid, &start, NULL) < 0)
		start = 0; /* a zombie of ours still is what we wait for */
	/* alive, and not the one the earlier monitor knew */
	other = pid > 0 && start > 0 &&
		(m->seen.pid != (uint32_t)pid || m->seen.pid_start != start);
	m->seen.pid = (uint32_t)pid;
	m->seen.pid_start = start;
	/* without the mark (a full disk) it was told that it went well, or is seen to run */
	if (!look_begun(m) && !m->present && (fresh || other))
		instance_new(m, m->seen.starts + 1);
	if (pid == 0)
		return AQE_E_ABSENT; /* it has ended already */
	*ret_pid = pid;
	return 0;
}

static int64_t code_of(int status)
{
	if (status < 0)
		return -1;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void instance_gone(struct shim_monitor *m, int64_t exit_code)
{
	struct shim_event ev = SHIM_EVENT_INIT(SHIM_EVENT_STOPPED);

	(void)shim_monitor_look_oom(m); /* it tells by itself */
	shim_monitor_io_drain(m);
	shim_monitor_watch_end(m);
	m->present = false;
	m->seen.exit_code = exit_code;
	m->seen.ended_s = now_s();
	m->seen.pid = 0;
	m->seen.health = "none";
	ev.exit_code = exit_code;
	if (m->seen.oom_killed)
		ev.reason = "oom";
	shim_monitor_event(m, &ev);
}

/* Not seen through a pidfd: the engine knows how it ended. */
static void ended_unseen(struct shim_monitor *m)
{
	struct shim_last last = { -1, false };

	(void)look_begun(m); /* it began unseen, too */
	if (!m->present)
		return; /* seen already */
	if (shim_fields_load(m->box->arena, SHIM_LAST_FIELDS, m->box->fd, SHIM_LAST_FILE, &last,
			     NULL) == 0 &&
	    last.oom_killed && !m->seen.oom_killed) {
		struct shim_event ev = SHIM_EVENT_INIT(SHIM_EVENT_OOM_KILLED);

		m->seen.oom_killed = true;
		shim_monitor_event(m, &ev);
	}
	instance_gone(m, last.exit_code);
}

/* True: it counts as a success. */
static bool ended(void *arg, int status)
{
	struct shim_monitor *m = arg;

	if (status < 0) {
		ended_unseen(m);
		return aqe_str_eq(m->box->plan.restart, "no");
	}
	if (m->present) /* not told already */
		instance_gone(m, code_of(status));
	return aqe_str_eq(m->box->plan.restart, "no") || status == 0;
}

static void failed(void *arg, enum shim_command_verb verb, const char *text)
{
	struct shim_monitor *m = arg;

	(void)verb;
	if (text[0])
		set_error(m, text);
}

/* ---- reports of the supervisor ---- */

static void tell_started(struct shim_monitor *m, bool adopted)
{
	m->seen.next_start_s = 0;
	m->error[0] = '\0';
	if (!adopted)
		return;
	m->present = true;
	shim_monitor_watch_begin(m);
}

static void tell_failed(struct shim_monitor *m, const struct shim_sup_action *a)
{
	struct shim_event ev = SHIM_EVENT_INIT(SHIM_EVENT_ERROR);

	if (a->why == SHIM_SUP_WHY_NOT_ALIVE || a->why == SHIM_SUP_WHY_LOST)
		ended_unseen(m);
	else
		(void)look_begun(m); /* started, told before what follows */
	if (!m->error[0] && a->why != SHIM_SUP_WHY_EXITED)
		set_error(m, shim_sup_why_name(a->why));
	if (a->why == SHIM_SUP_WHY_EXITED)
		return; /* "stopped" was told */
	ev.reason = m->error;
	ev.number = a->failures;
	ev.number_name = "failures";
	shim_monitor_event(m, &ev);
}

static void tell_held(struct shim_monitor *m, const struct shim_sup_action *a)
{
	struct shim_event ev = SHIM_EVENT_INIT(SHIM_EVENT_ERROR);
	char text[AQE_ERR_TEXT_MAX];
	bool once = aqe_str_eq(m->box->plan.restart, "no");

	m->quit = true;
	if (a->report == SHIM_SUP_TELL_HELD && !once) {
		(void)snprintf(text, sizeof(text),
			       SHIM_SUP_CRASH_LOOP " (retryable): %u failures in a row%s%.200s",
			       a->failures, m->error[0] ? ", the last: " : "", m->error);
		set_error(m, text);
	}
	ev.reason = m->error;
	shim_monitor_event(m, &ev);
}

static void tell(void *arg, const struct shim_sup_action *a, const char *text)
{
	struct shim_monitor *m = arg;

	(void)text;
	switch (a->report) {
	case SHIM_SUP_TELL_STARTED:
	case SHIM_SUP_TELL_ADOPTED:
		tell_started(m, a->report == SHIM_SUP_TELL_ADOPTED);
		break;
	case SHIM_SUP_TELL_FAILED:
		tell_failed(m, a);
		break;
	case SHIM_SUP_TELL_BACKOFF:
		m->seen.next_start_s = now_s() + (a->delay_ms + 999) / 1000;
		break;
	case SHIM_SUP_TELL_HELD:
	case SHIM_SUP_TELL_REFUSED:
		tell_held(m, a);
		break;
	case SHIM_SUP_TELL_DONE:
		ended_unseen(m);
		m->seen.status = "exited";
		break;
	case SHIM_SUP_TELL_STOPPED:
	case SHIM_SUP_TELL_UNCLEAN:
		ended_unseen(m);
		m->quit = true;
		break;
	case SHIM_SUP_TELL_HEALTHY:
	case SHIM_SUP_TELL_RESET:
	case SHIM_SUP_TELL_LATE:
	case SHIM_SUP_TELLS:
		break;
	}
	shim_monitor_save(m);
	if (m->quit)
		shim_loop_quit(m->loop);
}

/* ---- wishes ---- */

static void take_wishes(struct shim_monitor *m)
{
	struct shim_want w;

	if (shim_box_want(m->box, &w, NULL) < 0)
		return; /* it is written anew in one step; the next event tells */
	if (w.resets != m->want.resets)
		shim_supervisor_want(m->sup, SHIM_SUP_RESET);
	if (w.up != m->want.up && !m->stop_for_oom)
		shim_supervisor_want(m->sup, w.up ? SHIM_SUP_WANT_UP : SHIM_SUP_WANT_DOWN);
	m->want = w;
}

static void on_inotify(void *arg, int fd, uint32_t events)
{
	char data[4096];

	(void)events;
	while (read(fd, data, sizeof(data)) > 0)
		continue; /* which file does not matter */
	take_wishes(arg);
}

static int watch_wishes(struct shim_monitor *m, struct aqe_err *e)
{
	m->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (m->inotify_fd < 0 || inotify_add_watch(m->inotify_fd, m->box->path, IN_MOVED_TO) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "watch '%s'", m->box->path);
	return shim_loop_watch(m->loop, m->inotify_fd, EPOLLIN, on_inotify, m, e);
}

/* ---- setting up ---- */

static int call(void *arg, enum shim_command_verb verb)
{
	static const char *const VERBS[SHIM_COMMAND_VERBS] = { "start", "alive", "stop" };
	struct shim_monitor *m = arg;
	struct shim_begun begun = { m->seen.starts + 1 };
	int rc;

	if (verb == SHIM_COMMAND_START) /* how an earlier one ended */
		(void)unlinkat(m->box->fd, SHIM_LAST_FILE, 0);
	rc = shim_monitor_call(m->box, VERBS[verb]);
	/* the start was killed before it could tell, with its monitor: aqe-shim looks at the
	 * container once more after the runtime has started it, and nobody knows whether it did */
	if (verb == SHIM_COMMAND_ALIVE && rc == SHIM_COMMAND_OK && !m->present && !untold(m)) {
		(void)dprintf(STDERR_FILENO, "its start was cut off: nobody looked at what runs\n");
		return SHIM_COMMAND_FAILED;
	}
	/* it runs: a mark that cannot be made costs no more than instance() can make good */
	if (verb == SHIM_COMMAND_START && rc == SHIM_COMMAND_OK)
		(void)!shim_fields_save(SHIM_BEGUN_FIELDS, m->box->fd, SHIM_BEGUN_FILE, &begun,
					NULL);
	return rc;
}

static int make_supervisor(struct shim_monitor *m, struct aqe_err *e)
{
	const struct shim_plan *p = &m->box->plan;
	struct shim_command_opts c = {
		.loop = m->loop,
		.call = call,
		.arg = m,
		.instance = instance,
		.ended = ended,
		.failed = failed,
	};
	struct shim_sup_config cfg = SHIM_SUP_CONFIG_DEFAULT;
	struct shim_supervisor_opts o = SHIM_SUPERVISOR_OPTS_INIT;
	struct shim_sup_driver d;
	int rc;

	cfg.done_is_failure = aqe_str_eq(p->restart, "always");
	cfg.stop_timeout_ms = p->grace_ms + STOP_MARGIN_MS;
	if (p->start_timeout_ms > 0) /* plans of before have none */
		cfg.start_timeout_ms = p->start_timeout_ms;
	if (aqe_str_eq(p->restart, "no"))
		cfg.attempts = 1;
	o.loop = m->loop;
	o.cfg = &cfg;
	o.store_fd = m->box->place->supervisor_fd;
	o.id = m->box->name;
	o.tell = tell;
	o.arg = m;
	rc = shim_command_driver(&c, &d, e);
	return rc < 0 ? rc : shim_supervisor_new(&o, d, &m->sup, e);
}

/* An earlier monitor was killed: what it told is in the events, what it saw in its last state. */
static int take_over(struct shim_monitor *m, struct aqe_err *e)
{
	struct shim_event_history h = { 0, false };
	int rc;
	bool runs = shim_supervisor_machine(m->sup)->running;

	if (!runs && m->seen.pid == 0)
		return 0;
	rc = shim_event_history(m->box, &h, e);
	if (rc < 0)
		return rc;
	m->present = m->seen.pid > 0;
	if (h.starts > m->seen.starts) {
		m->seen.starts = h.starts;
		m->present = true;
	}
	if (h.ended && h.starts >= m->seen.starts)
		m->present = false;
	if (runs)
		return 0; /* the first answer of alive() decides */
	ended_unseen(m);  /* the machine was booted since, or the monitor killed while it stopped */
	m->seen.pid = 0;
	shim_monitor_save(m);
	return 0;
}

static int set_up(struct shim_monitor *m, struct aqe_err *e)
{
	int rc = shim_loop_new(&m->loop, e);

	if (rc == 0)
		rc = shim_box_seen(m->box, &m->seen, e);
	if (rc == 0)
		rc = make_supervisor(m, e);
	if (rc == 0)
		rc = shim_monitor_io_open(m, e);
	if (rc == 0)
		rc = watch_wishes(m, e);
	if (rc == 0)
		rc = shim_box_want(m->box, &m->want, e);
	return rc == 0 ? take_over(m, e) : rc;
}

static void tear_down(struct shim_monitor *m)
{
	if (m->sup)
		shim_monitor_watch_end(m);
	if (m->loop)
		shim_monitor_io_close(m);
	shim_supervisor_free(m->sup);
	shim_loop_unwatch(m->loop, m->inotify_fd);
	aqe_cleanup_fd(&m->inotify_fd);
	shim_loop_free(m->loop);
}

/* A hold of an earlier life of a sandbox that is never restarted says nothing about this one. */
static void begin(struct shim_monitor *m)
{
	const struct shim_sup *s = shim_supervisor_machine(m->sup);

	if (m->want.up && s->hold && aqe_str_eq(m->box->plan.restart, "no"))
		shim_supervisor_want(m->sup, SHIM_SUP_RESET);
	shim_supervisor_want(m->sup, m->want.up ? SHIM_SUP_WANT_UP : SHIM_SUP_WANT_DOWN);
}

/* Nothing runs any more; is it to be removed? */
static int finish(struct shim_monitor *m, struct aqe_err *e)
{
	const struct shim_engine_ops *engine = shim_engine_find(m->box->plan.engine);
	struct shim_event ev = SHIM_EVENT_INIT(SHIM_EVENT_DESTROYED);
	const struct shim_sup *s = shim_supervisor_machine(m->sup);
	bool gone = s->state == SHIM_SUP_STOPPED && !s->running;
	int rc;

	if (!gone || !(m->want.destroy || m->box->plan.remove) || !engine)
		return 0;
	rc = engine->destroy(m->box, e);
	if (rc == 0)
		rc = shim_box_remove(m->box, e);
	if (rc == 0)
		shim_monitor_event(m, &ev);
	return rc;
}

int shim_monitor_run(struct shim_box *b, struct aqe_err *e)
{
	struct shim_monitor *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for a monitor");
	m->box = b;
	m->inotify_fd = m->pipe_fd[0] = m->pipe_fd[1] = m->log.fd = m->health.pidfd = -1;
	m->cgroup = (struct shim_cgroup)SHIM_CGROUP_INIT;
	/* the container's first process becomes our child: its status is ours to know */
	rc = prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0
		     ? aqe_err_set(e, AQE_E_SYS, errno, "become a subreaper")
		     : set_up(m, e);
	if (rc == 0) {
		begin(m);
		if (!m->quit)
			rc = shim_loop_run(m->loop, e);
	}
	if (rc == 0)
		rc = finish(m, e);
	tear_down(m);
	free(m);
	return rc;
}
