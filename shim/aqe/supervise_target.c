/* SPDX-License-Identifier: MIT */
/* What aqe supervise starts: drivers for a process, an engine's container, an OCI bundle. */
#include "shim/aqe/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "oci/doc.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/proc.h"
#include "shim/core/text.h"
#include "shim/sandbox/engine.h"
#include "shim/sandbox/monitor.h"
#include "shim/sandbox/runtime_call.h"
#include "shim/supervisor/driver_command.h"
#include "shim/supervisor/driver_process.h"

#define PID_FILE    "pid"
#define RUN_LOG     "runtime.log"
#define STATE_MAX   ((size_t)1 << 20)
#define WORDS_MAX   16
#define GONE_MS     5000
#define CANNOT_TELL SHIM_COMMAND_STATUSES

/* The driver's argument; freed with the target's arena. */
struct bound {
	struct shim_target *t;
	const struct shim_target_hooks *hooks;
	struct shim_loop *loop;
};

/* ---- a plain process ---- */

static int spawn(void *arg, pid_t *ret, struct aqe_err *e)
{
	struct bound *b = arg;
	AQE_AUTO_FD int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct shim_spawn o = { b->t->path, b->t->argv, environ, null, -1, -1, false };
	int rc = shim_spawn(&o, ret, e);

	if (rc == 0)
		b->hooks->started(b->hooks->arg, *ret);
	return rc;
}

static void process_ended(void *arg, int status)
{
	const struct bound *b = arg;

	b->hooks->ended(b->hooks->arg, status);
}

void shim_target_signal(struct shim_target *t, pid_t pid, int sig)
{
	if (t->kind == SHIM_TARGET_PROCESS && pid > 0)
		(void)kill(pid, sig); /* a child of ours, not reaped as long as its pid is kept */
}

/* ---- an engine's container ---- */

/* The engine port speaks of sandboxes: this one has a name, a folder for its pid, and no plan. */
static struct shim_box as_box(const struct shim_target *t)
{
	struct shim_box b = SHIM_BOX_INIT;

	b.arena = t->arena;
	b.fd = t->fd;
	b.name = t->name;
	b.plan.name = t->name;
	b.plan.engine = t->engine;
	b.plan.grace_ms = t->grace_ms;
	b.plan.start_timeout_ms = t->start_timeout_ms;
	return b;
}

static int engine_start(struct shim_target *t, struct aqe_err *e)
{
	struct shim_box b = as_box(t);

	return shim_engine_find(t->engine)->start(&b, e);
}

static int engine_state(struct shim_target *t, struct shim_engine_state *ret, struct aqe_err *e)
{
	struct shim_box b = as_box(t);

	return shim_engine_find(t->engine)->state(&b, ret, e);
}

static int engine_stop(struct shim_target *t, struct aqe_err *e)
{
	struct shim_box b = as_box(t);

	return shim_engine_find(t->engine)->stop(&b, t->grace_ms, e);
}

/* ---- an OCI bundle ---- */

/* `RUNTIME [--root DIR] --log FILE --log-format json VERB ...`; the container's streams are ours.
 */
static int call(struct shim_target *t, const char *const *words, struct aqe_buf *out,
		struct aqe_err *e)
{
	const char *v[WORDS_MAX] = { t->runtime, "--log", NULL, "--log-format", "json" };
	AQE_AUTO_BUF struct aqe_buf folder = AQE_BUF_INIT(4096);
	struct aqe_proc_opts o = AQE_PROC_OPTS_INIT;
	size_t n = 5;
	int status = 0, rc = aqe_fs_fd_path(t->fd, &folder, e);

	if (rc < 0)
		return rc;
	v[2] = aqe_arena_fmt(t->arena, "%s/" RUN_LOG, aqe_buf_str(&folder));
	if (!v[2])
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	if (t->root) {
		v[n++] = "--root";
		v[n++] = t->root;
	}
	for (size_t i = 0; words[i] && n + 1 < WORDS_MAX; i++)
		v[n++] = words[i];
	(void)unlinkat(t->fd, RUN_LOG, 0); /* an old message would be taken for a new one */
	o.path = t->runtime;
	o.argv = (char *const *)(uintptr_t)v;
	o.envp = environ;
	o.in_fd = AQE_PROC_NULL;
	o.out = out;
	rc = aqe_proc_run(&o, &status, e);
	o.argv = NULL; /* ends with this function */
	if (rc < 0)
		return rc;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int bundle_start(struct shim_target *t, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf folder = AQE_BUF_INIT(4096);
	const char *create[] = {
		"create", "--bundle", t->bundle, "--pid-file", NULL, t->name, NULL
	};
	const char *const start[] = { "start", t->name, NULL };
	const char *const destroy[] = { "delete", "--force", t->name, NULL };
	int rc = aqe_fs_fd_path(t->fd, &folder, e);

	if (rc == 0)
		create[4] = aqe_arena_fmt(t->arena, "%s/" PID_FILE, aqe_buf_str(&folder));
	if (rc < 0 || !create[4])
		return rc < 0 ? rc : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	(void)unlinkat(t->fd, PID_FILE, 0); /* of an earlier one */
	rc = call(t, create, NULL, e);
	if (rc != 0)
		return rc < 0 ? rc : shim_runtime_explain(t->arena, t->fd, RUN_LOG, "create", e);
	rc = call(t, start, NULL, e);
	if (rc == 0)
		return 0;
	rc = rc < 0 ? rc : shim_runtime_explain(t->arena, t->fd, RUN_LOG, "start", e);
	(void)!call(t, destroy, NULL, NULL); /* the cause counts */
	return rc;
}

static int bundle_state(struct shim_target *t, struct shim_engine_state *ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(STATE_MAX);
	const char *const words[] = { "state", t->name, NULL };
	struct oci_state st = { OCI_STATUS_STOPPED, 0 };
	int rc = call(t, words, &out, e);

	*ret = (struct shim_engine_state){ .exit_code = -1, .container = t->name };
	if (rc != 0)
		return rc < 0 ? rc : 0; /* it does not know it */
	rc = oci_state_parse(aqe_buf_str(&out), out.len, &st, e);
	if (rc < 0)
		return rc;
	ret->exists = true;
	ret->running = st.status == OCI_STATUS_RUNNING || st.status == OCI_STATUS_PAUSED;
	ret->pid =
		ret->running ? (st.pid > 0 ? (pid_t)st.pid : shim_runtime_pid(t->fd, PID_FILE)) : 0;
	return 0;
}

static int bundle_stop(struct shim_target *t, struct aqe_err *e)
{
	static const char *const SIGNALS[] = { "TERM", "KILL" };
	const char *words[] = { "delete", "--force", t->name, NULL };
	const uint32_t wait_ms[] = { t->grace_ms, GONE_MS };
	struct shim_engine_state st;
	int rc = bundle_state(t, &st, e);
	AQE_AUTO_FD int fd = rc == 0 && st.pid > 0 ? (int)syscall(SYS_pidfd_open, st.pid, 0) : -1;
	bool gone = fd < 0;

	for (size_t i = 0; rc >= 0 && !gone && i < AQE_COUNT(SIGNALS); i++) {
		const char *const kill_it[] = { "kill", t->name, SIGNALS[i], NULL };

		rc = call(t, kill_it, NULL, e); /* > 0: it has just ended, or delete will tell */
		gone = shim_runtime_ends_within(fd, wait_ms[i]);
	}
	if (rc < 0)
		return rc;
	if (!gone)
		return aqe_err_set(e, AQE_E_TIMEOUT, 0, "the container does not end on SIGKILL");
	/* also for one the runtime does not know: half a create may be left */
	rc = call(t, words, NULL, e);
	return rc > 0 ? shim_runtime_explain(t->arena, t->fd, RUN_LOG, "delete", e) : rc;
}

/* ---- calls, in a process of their own ---- */

static int state_of(struct shim_target *t, struct shim_engine_state *ret, struct aqe_err *e)
{
	return t->kind == SHIM_TARGET_ENGINE ? engine_state(t, ret, e) : bundle_state(t, ret, e);
}

/* For the supervisor, which is another process than this call. */
static void note_end(const struct shim_target *t, const struct shim_engine_state *st)
{
	struct shim_last last = { st->exit_code, st->oom_killed };

	/* without it the end is told without its status */
	(void)!shim_fields_save(SHIM_LAST_FIELDS, t->fd, SHIM_LAST_FILE, &last, NULL);
}

static int call_start(struct shim_target *t, struct aqe_err *e)
{
	int rc;

	(void)unlinkat(t->fd, SHIM_LAST_FILE, 0); /* how an earlier one ended */
	rc = t->kind == SHIM_TARGET_ENGINE ? engine_start(t, e) : bundle_start(t, e);

	return rc == 0               ? SHIM_COMMAND_OK
	       : rc == AQE_E_REFUSED ? SHIM_COMMAND_REFUSED
				     : SHIM_COMMAND_FAILED;
}

static int call_alive(struct shim_target *t, struct aqe_err *e)
{
	struct shim_engine_state st;

	if (state_of(t, &st, e) < 0)
		return CANNOT_TELL;
	if (st.running)
		return SHIM_COMMAND_OK;
	note_end(t, &st);
	(void)aqe_err_set(e, AQE_E_UNKNOWN, 0,
			  st.oom_killed ? "ended for lack of memory" : "not running");
	return st.exit_code == 0 ? SHIM_COMMAND_DONE : SHIM_COMMAND_FAILED;
}

static int call_stop(struct shim_target *t, struct aqe_err *e)
{
	int rc = t->kind == SHIM_TARGET_ENGINE ? engine_stop(t, e) : bundle_stop(t, e);
	struct shim_engine_state st;

	if (rc == 0 && t->kind == SHIM_TARGET_ENGINE && engine_state(t, &st, NULL) == 0 &&
	    !st.running)
		note_end(t, &st);
	return rc < 0 ? SHIM_COMMAND_FAILED : SHIM_COMMAND_OK;
}

static int make_call(void *arg, enum shim_command_verb verb)
{
	static int (*const CALLS[SHIM_COMMAND_VERBS])(struct shim_target * t,
						      struct aqe_err * e) = {
		[SHIM_COMMAND_START] = call_start,
		[SHIM_COMMAND_ALIVE] = call_alive,
		[SHIM_COMMAND_STOP] = call_stop,
	};
	struct bound *b = arg;
	struct aqe_err e = AQE_ERR_INIT;
	sigset_t none;
	int rc;

	/* ours are blocked for the loop; a runtime must not inherit that */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	rc = CALLS[verb](b->t, &e);
	if (rc != SHIM_COMMAND_OK)
		(void)dprintf(STDERR_FILENO, "%s\n", e.text);
	return rc;
}

static int instance(void *arg, pid_t *ret)
{
	struct bound *b = arg;
	pid_t pid = shim_runtime_pid(b->t->fd, PID_FILE);

	b->hooks->started(b->hooks->arg, pid);
	if (pid == 0)
		return AQE_E_ABSENT; /* it has ended already */
	*ret = pid;
	return 0;
}

static bool command_ended(void *arg, int status)
{
	const struct bound *b = arg;

	b->hooks->ended(b->hooks->arg, status);
	return status == 0;
}

static void command_failed(void *arg, enum shim_command_verb verb, const char *text)
{
	const struct bound *b = arg;

	(void)verb;
	b->hooks->failed(b->hooks->arg, text);
}

/* ---- public ---- */

struct shim_target_end shim_target_last(const struct shim_target *t)
{
	struct shim_last last = { -1, false };

	if (t->kind == SHIM_TARGET_ENGINE)
		/* absent: nobody knew */
		(void)!shim_fields_load(t->arena, SHIM_LAST_FIELDS, t->fd, SHIM_LAST_FILE, &last,
					NULL);
	return (struct shim_target_end){ last.exit_code, last.oom_killed };
}

int shim_target_look(struct shim_target *t, struct aqe_err *e)
{
	struct shim_engine_state st = { .exists = true };
	int rc = 0;

	if (t->kind == SHIM_TARGET_ENGINE)
		rc = engine_state(t, &st, e);
	if (rc < 0)
		return rc;
	if (!st.exists)
		return aqe_err_set(e, AQE_E_ABSENT, 0, "%s has no container '%.100s'", t->engine,
				   t->name);
	if (st.container) /* for reset: the shim counts under this id */
		rc = aqe_fs_write_file(t->fd, SHIM_SUPERVISE_CONTAINER, 0600, st.container,
				       strlen(st.container), e);
	if (rc < 0)
		return rc;
	if (t->kind == SHIM_TARGET_BUNDLE && access(t->runtime, X_OK) < 0)
		return aqe_err_set(e, AQE_E_ABSENT, errno, "runtime '%.200s'", t->runtime);
	return 0;
}

int shim_target_driver(struct shim_target *t, const struct shim_target_hooks *hooks,
		       struct shim_loop *loop, struct shim_sup_driver *ret, struct aqe_err *e)
{
	struct bound *b = aqe_arena_calloc(t->arena, 1, sizeof(*b));
	struct shim_process_opts p = { .loop = loop,
				       .spawn = spawn,
				       .arg = b,
				       .grace_ms = t->grace_ms,
				       .ended = process_ended };
	struct shim_command_opts c = { .loop = loop,
				       .call = make_call,
				       .arg = b,
				       .instance = instance,
				       .ended = command_ended,
				       .failed = command_failed };

	if (!b)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for a driver");
	*b = (struct bound){ t, hooks, loop };
	return t->kind == SHIM_TARGET_PROCESS ? shim_process_driver(&p, ret, e)
					      : shim_command_driver(&c, ret, e);
}
