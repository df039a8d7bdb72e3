/* SPDX-License-Identifier: MIT */
/* aqe supervise: starts one thing, watches it, starts it again by the schedule, and gives up. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/aqe/cmds.h"
#include "shim/aqe/supervise.h"
#include "shim/aqe/supervise_audit.h"
#include "shim/core/cleanup.h"
#include "shim/core/cli.h"
#include "shim/core/clock.h"
#include "shim/core/fs.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "shim/sandbox/engine.h"
#include "shim/supervisor/store.h"

#define ARENA_MAX   ((size_t)64 << 20)
#define LINE_MAX_   4096
#define GRACE_S     10
#define SECONDS_MAX 3600
#define MARGIN_MS   15000 /* of a stop, beyond the grace */

enum opt {
	OPT_ID = 1,
	OPT_ENGINE,
	OPT_BUNDLE,
	OPT_RUNTIME,
	OPT_ROOT,
	OPT_RESTART,
	OPT_GRACE,
	OPT_TIMEOUT,
	OPT_EVENTS,
	OPT_FORMAT,
	OPT_DATA_DIR,
	OPTS
};
static const struct aqe_cli_opt TABLE[] = {
	{ "id", 0, "ID", "name of the failure count (default: the command's or container's)",
	  OPT_ID },
	{ "engine", 0, "ENGINE", "podman or docker: supervise its container", OPT_ENGINE },
	{ "bundle", 0, "DIR", "supervise a container made of this OCI bundle", OPT_BUNDLE },
	{ "runtime", 0, "PATH", "runtime of --bundle (default: aqe-shim)", OPT_RUNTIME },
	{ "root", 0, "DIR", "state folder of that runtime", OPT_ROOT },
	{ "restart", 0, "WHEN", "on-failure (default) or always", OPT_RESTART },
	{ "grace", 0, "SECONDS", "from SIGTERM to SIGKILL (default 10)", OPT_GRACE },
	{ "timeout", 0, "SECONDS", "of one call of engine or runtime (default 30; probes 5)",
	  OPT_TIMEOUT },
	{ "events", 0, "FILE", "append events as lines of JSON", OPT_EVENTS },
	{ "format", 0, "FORMAT", "of the events on standard error: text (default) or json",
	  OPT_FORMAT },
	{ "data-dir", 0, "DIR", "where failure counts are kept", OPT_DATA_DIR },
	{ NULL, 0, NULL, NULL, 0 },
};
static const struct aqe_cli_cmd CMD = {
	.name = "aqe supervise",
	.synopsis = "[OPTION...] [--] COMMAND [ARGUMENT...] | --engine ENGINE CONTAINER | "
		    "--bundle DIR CONTAINER | status [ID...] | reset ID...",
	.about = "Starts a process or a container and starts it again when it fails: after a "
		 "random part of 500 ms, 1, 2, 4 s; the fifth failure in a row holds it "
		 "(AGENTOS_CRASH_LOOP), also across calls of this command, until `aqe supervise "
		 "reset ID`. 60 s alive forget the failures. What a policy refuses is not tried "
		 "again. SIGTERM and SIGINT stop it, a second one without grace; a process also "
		 "gets our SIGHUP, SIGUSR1 and SIGUSR2. Exit status: 0 it ended with success or "
		 "was stopped; 1 held, refused, or it could not be stopped.",
	.opts = TABLE,
};

struct run {
	const char *value[OPTS];
	char **words;
	size_t n_words;
	bool json;
	struct aqe_arena *arena;
	struct shim_place place;
	struct shim_target target;
	struct shim_loop *loop;
	struct shim_supervisor *sup;
	int events_fd, signal_fd, inotify_fd;
	pid_t pid;    /* of the instance; 0: none, or not known */
	bool present; /* an instance was told to have started, and not to have ended */
	int stops;    /* signals that asked for the end */
	int exit_status;
	bool unrecorded; /* the last row was not taken by the audit log, and that was said */
	char text[AQE_ERR_TEXT_MAX]; /* of the last failure */
};

/* ---- events ---- */

struct line {
	struct aqe_buf json, text;
};

static void add_u(struct line *l, const char *name, uint64_t v)
{
	aqe_buf_addf(&l->json, ",\"%s\":%llu", name, (unsigned long long)v);
	aqe_buf_addf(&l->text, " %s=%llu", name, (unsigned long long)v);
}

static void add_s(struct line *l, const char *name, const char *v)
{
	if (!v || !*v)
		return;
	aqe_buf_addf(&l->json, ",\"%s\":", name);
	aqe_json_emit_str(&l->json, v);
	aqe_buf_addf(&l->text, " %s=", name);
	aqe_json_emit_str(&l->text, v);
}

static void add_b(struct line *l, const char *name, bool v)
{
	aqe_buf_addf(&l->json, ",\"%s\":%s", name, v ? "true" : "false");
	aqe_buf_addf(&l->text, " %s=%s", name, v ? "true" : "false");
}

static void begin_line(const struct run *r, struct line *l, const char *event)
{
	struct timespec ts = { 0, 0 };
	char when[AQE_TIME_TEXT];

	(void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail */
	aqe_time_format(ts.tv_sec, when);
	when[strlen(when) - 1] = '\0'; /* the Z comes behind the milliseconds */
	aqe_buf_addf(&l->json,
		     "{\"version\":1,\"time\":\"%s.%03dZ\",\"event\":\"%s\",\"id\":\"%s\"", when,
		     (int)(ts.tv_nsec / 1000000), event, r->target.id);
	aqe_buf_addf(&l->text, "aqe supervise: %s: %s", r->target.id, event);
}

/* A full disk or a closed terminal stops nothing. */
static void end_line(const struct run *r, struct line *l)
{
	const struct aqe_buf *shown = r->json ? &l->json : &l->text;

	(void)aqe_buf_puts(&l->json, "}\n");
	(void)aqe_buf_putc(&l->text, '\n');
	(void)!aqe_fs_write_all(STDERR_FILENO, shown->p, shown->len, NULL);
	if (r->events_fd >= 0)
		(void)!aqe_fs_write_all(r->events_fd, l->json.p, l->json.len, NULL);
	aqe_buf_done(&l->json);
	aqe_buf_done(&l->text);
}

#define LINE_INIT                                                \
	{                                                        \
		AQE_BUF_INIT(LINE_MAX_), AQE_BUF_INIT(LINE_MAX_) \
	}

/* What the log does not take is said once, and goes on: a supervisor that gave up would leave what
 * it watches alone. */
static void record(struct run *r, const struct shim_supervise_row *row)
{
	struct aqe_err e = AQE_ERR_INIT;
	int rc = shim_supervise_record(&r->target, row, &e);

	if (rc < 0 && !r->unrecorded)
		(void)dprintf(STDERR_FILENO, "aqe supervise: %s: not recorded: %s\n", r->target.id,
			      e.text);
	if (rc != 0) /* 0: there was nothing to record */
		r->unrecorded = rc < 0;
}

static void on_started(void *arg, pid_t pid)
{
	struct run *r = arg;
	struct line l = LINE_INIT;

	r->pid = pid;
	/* to adopt is told by the machine */
	if (shim_supervisor_machine(r->sup)->state != SHIM_SUP_STARTING)
		return;
	r->text[0] = '\0';
	r->present = true;
	begin_line(r, &l, "started");
	if (pid > 0)
		add_u(&l, "pid", (uint64_t)pid);
	end_line(r, &l);
	record(r, &(struct shim_supervise_row){ "started", NULL, -1, -1 });
}

static void on_ended(void *arg, int status)
{
	struct run *r = arg;
	struct line l = LINE_INIT;
	struct shim_target_end end = { -1, false };
	bool signalled = status >= 0 && WIFSIGNALED(status);

	r->pid = 0;
	r->present = false;
	if (status < 0)
		end = shim_target_last(&r->target);
	else
		end.exit_code = signalled ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	begin_line(r, &l, "ended");
	if (signalled)
		add_u(&l, "signal", (uint64_t)WTERMSIG(status));
	else if (end.exit_code >= 0)
		add_u(&l, "exit_code", (uint64_t)end.exit_code);
	if (end.oom_killed)
		add_b(&l, "oom_killed", true);
	end_line(r, &l);
	record(r, &(struct shim_supervise_row){ "ended", end.oom_killed ? "oom" : NULL,
						end.exit_code, -1 });
}

static void on_failed(void *arg, const char *text)
{
	struct run *r = arg;

	(void)snprintf(r->text, sizeof(r->text), "%.*s", (int)strcspn(text, "\n"), text);
}

/* ---- reports of the machine ---- */

static void add_details(const struct run *r, struct line *l, const struct shim_sup_action *a)
{
	switch (a->report) {
	case SHIM_SUP_TELL_ADOPTED:
		if (r->pid > 0)
			add_u(l, "pid", (uint64_t)r->pid);
		break;
	case SHIM_SUP_TELL_FAILED:
		add_s(l, "why", shim_sup_why_name(a->why));
		add_u(l, "failures", a->failures);
		add_s(l, "reason", r->text);
		break;
	case SHIM_SUP_TELL_BACKOFF:
		add_u(l, "delay_ms", a->delay_ms);
		add_u(l, "failures", a->failures);
		break;
	case SHIM_SUP_TELL_HELD:
		add_s(l, "code", SHIM_SUP_CRASH_LOOP);
		add_b(l, "retryable", true);
		add_u(l, "failures", a->failures);
		add_s(l, "reason", r->text);
		break;
	case SHIM_SUP_TELL_REFUSED:
		add_b(l, "retryable", false);
		add_s(l, "reason", r->text);
		break;
	case SHIM_SUP_TELL_STARTED:
	case SHIM_SUP_TELL_HEALTHY:
	case SHIM_SUP_TELL_RESET:
	case SHIM_SUP_TELL_STOPPED:
	case SHIM_SUP_TELL_DONE:
	case SHIM_SUP_TELL_UNCLEAN:
	case SHIM_SUP_TELL_LATE:
	case SHIM_SUP_TELLS:
		break;
	}
}

static bool is_end(enum shim_sup_report report)
{
	return report == SHIM_SUP_TELL_HELD || report == SHIM_SUP_TELL_REFUSED ||
	       report == SHIM_SUP_TELL_STOPPED || report == SHIM_SUP_TELL_UNCLEAN;
}

/* An end that only a probe, or a stop, found out. */
static bool is_unseen_end(const struct shim_sup_action *a)
{
	return a->report == SHIM_SUP_TELL_DONE || a->report == SHIM_SUP_TELL_STOPPED ||
	       (a->report == SHIM_SUP_TELL_FAILED &&
		(a->why == SHIM_SUP_WHY_NOT_ALIVE || a->why == SHIM_SUP_WHY_LOST));
}

/* An end that was told as such is not told again as a failure. */
static void record_report(struct run *r, const struct shim_sup_action *a)
{
	struct shim_supervise_row row = { shim_sup_report_name(a->report), NULL, -1, -1 };

	if (a->report == SHIM_SUP_TELL_FAILED &&
	    (a->why == SHIM_SUP_WHY_EXITED || a->why == SHIM_SUP_WHY_NOT_ALIVE ||
	     a->why == SHIM_SUP_WHY_LOST))
		return;
	if (a->report == SHIM_SUP_TELL_STARTED)
		return; /* told when it was */
	if (a->report == SHIM_SUP_TELL_HELD)
		row.reason = SHIM_SUP_CRASH_LOOP;
	else if (a->report == SHIM_SUP_TELL_REFUSED || a->report == SHIM_SUP_TELL_FAILED)
		row.reason = r->text[0] ? r->text : shim_sup_why_name(a->why);
	if (a->report == SHIM_SUP_TELL_HELD || a->report == SHIM_SUP_TELL_FAILED)
		row.failures = a->failures;
	record(r, &row);
}

static void tell(void *arg, const struct shim_sup_action *a, const char *text)
{
	struct run *r = arg;
	struct line l = LINE_INIT;

	if (a->report == SHIM_SUP_TELL_ADOPTED)
		r->present = true;
	if (r->present && is_unseen_end(a))
		on_ended(r, -1);
	if (a->report == SHIM_SUP_TELL_FAILED && text[0] && !r->text[0])
		on_failed(r, text);
	/* "started" was told already, whether it lived until now or not */
	begin_line(r, &l,
		   a->report == SHIM_SUP_TELL_STARTED ? "alive" : shim_sup_report_name(a->report));
	add_details(r, &l, a);
	end_line(r, &l);
	record_report(r, a);
	/* nothing runs and no call is out: what killed calls left to us */
	if (a->report == SHIM_SUP_TELL_BACKOFF && r->target.kind == SHIM_TARGET_BUNDLE) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			continue;
	}
	if (!is_end(a->report))
		return;
	r->exit_status = a->report == SHIM_SUP_TELL_STOPPED ? SHIM_EXIT_OK : SHIM_EXIT_FAILED;
	shim_loop_quit(r->loop);
}

/* ---- signals and resets ---- */

static void ask_to_stop(struct run *r)
{
	r->stops++;
	if (r->stops == 1)
		shim_supervisor_want(r->sup, SHIM_SUP_WANT_DOWN);
	else if (r->pid > 0)
		(void)kill(r->target.kind == SHIM_TARGET_PROCESS ? -r->pid : r->pid, SIGKILL);
}

static void on_signal(void *arg, int fd, uint32_t events)
{
	struct run *r = arg;
	struct signalfd_siginfo info;

	(void)events;
	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT ||
		    info.ssi_signo == SIGQUIT)
			ask_to_stop(r);
		else
			shim_target_signal(&r->target, r->pid, (int)info.ssi_signo);
	}
}

static void look_for_reset(struct run *r)
{
	char name[SHIM_STORE_ID_MAX + 16];

	(void)snprintf(name, sizeof(name), "%s" SHIM_SUPERVISE_RESET, r->target.id);
	if (unlinkat(r->place.supervisor_fd, name, 0) == 0)
		shim_supervisor_want(r->sup, SHIM_SUP_RESET);
}

static void on_inotify(void *arg, int fd, uint32_t events)
{
	char data[4096];

	(void)events;
	while (read(fd, data, sizeof(data)) > 0)
		continue; /* which file does not matter */
	look_for_reset(arg);
}

static int watch_signals(struct run *r, struct aqe_err *e)
{
	static const int SIGNALS[] = { SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2 };
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < AQE_COUNT(SIGNALS); i++)
		(void)sigaddset(&set, SIGNALS[i]);
	/* the reader of our standard error may go: that stops nothing */
	(void)signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "block signals");
	r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r->signal_fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "signalfd");
	return shim_loop_watch(r->loop, r->signal_fd, EPOLLIN, on_signal, r, e);
}

static int watch_resets(struct run *r, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf path = AQE_BUF_INIT(4096);
	int rc = aqe_fs_fd_path(r->place.supervisor_fd, &path, e);

	if (rc < 0)
		return rc;
	r->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (r->inotify_fd < 0 ||
	    inotify_add_watch(r->inotify_fd, aqe_buf_str(&path), IN_CREATE | IN_MOVED_TO) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "watch '%s'", aqe_buf_str(&path));
	return shim_loop_watch(r->loop, r->inotify_fd, EPOLLIN, on_inotify, r, e);
}

/* ---- the command line ---- */

static int read_words(struct run *r, int argc, char **argv, struct aqe_err *e)
{
	struct aqe_cli c;
	int id;

	aqe_cli_init(&c, &CMD, argc, argv);
	while ((id = aqe_cli_next(&c, e)) != AQE_CLI_END) {
		if (id == AQE_CLI_HELP || (id < 0 && id != AQE_CLI_OPERAND))
			return id;
		if (id == AQE_CLI_OPERAND) { /* the first one ends the options */
			r->words = argv + c.pos - 1;
			r->n_words = (size_t)(argc - c.pos + 1);
			return 0;
		}
		r->value[id] = c.value;
	}
	return 0;
}

static int parse_seconds(const char *value, const char *name, uint32_t *ret_ms, struct aqe_err *e)
{
	uint64_t v;

	if (!value)
		return 0;
	if (!aqe_parse_u64(value, SECONDS_MAX, &v))
		return aqe_err_set(e, AQE_E_USAGE, 0, "--%s: '%.40s' is not 0 to %d seconds", name,
				   value, SECONDS_MAX);
	*ret_ms = (uint32_t)v * 1000;
	return 0;
}

/* As a shell finds it. */
static int find_program(struct run *r, struct aqe_err *e)
{
	const char *name = r->words[0], *path = getenv("PATH"), *end;

	r->target.path = strchr(name, '/') ? name : NULL;
	for (; !r->target.path && path && *path; path = *end ? end + 1 : end) {
		const char *full;

		end = strchrnul(path, ':');
		full = aqe_arena_fmt(r->arena, "%.*s/%s", (int)(end - path), path, name);
		if (full && full[0] == '/' && access(full, X_OK) == 0)
			r->target.path = full;
	}
	if (!r->target.path || access(r->target.path, X_OK) < 0)
		return r->target.path && errno != ENOENT
			       ? aqe_err_set(e, AQE_E_SYS, errno, "command '%.200s'", name)
			       : aqe_err_set(e, AQE_E_ABSENT, 0, "command '%.200s' not found",
					     name);
	r->target.argv = r->words;
	return 0;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int absolute(struct run *r, const char *path, const char **ret, struct aqe_err *e)
{
	AQE_AUTO_FREE char *full = realpath(path, NULL);

	if (!full)
		return aqe_err_set(e, AQE_E_SYS, errno, "'%.200s'", path);
	*ret = aqe_arena_dup(r->arena, full);
	return *ret ? 0 : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
}

static int take_bundle(struct run *r, struct aqe_err *e)
{
	struct shim_target *t = &r->target;
	int rc = absolute(r, r->value[OPT_BUNDLE], &t->bundle, e);

	t->kind = SHIM_TARGET_BUNDLE;
	t->root = r->value[OPT_ROOT];
	if (rc == 0)
		rc = r->value[OPT_RUNTIME] ? absolute(r, r->value[OPT_RUNTIME], &t->runtime, e)
					   : shim_engine_shim_path(r->arena, &t->runtime, e);
	return rc;
}

static int take_target(struct run *r, struct aqe_err *e)
{
	struct shim_target *t = &r->target;
	const char *engine = r->value[OPT_ENGINE];
	bool container = engine || r->value[OPT_BUNDLE];

	if (r->n_words == 0)
		return aqe_err_set(e, AQE_E_USAGE, 0, "%s",
				   container ? "no CONTAINER is given" : "no COMMAND is given");
	if (engine && r->value[OPT_BUNDLE])
		return aqe_err_set(e, AQE_E_USAGE, 0, "--engine and --bundle exclude each other");
	if (container && r->n_words > 1)
		return aqe_err_set(e, AQE_E_USAGE, 0, "'%.100s': a container is one word",
				   r->words[1]);
	if (!r->value[OPT_BUNDLE] && (r->value[OPT_RUNTIME] || r->value[OPT_ROOT]))
		return aqe_err_set(e, AQE_E_USAGE, 0, "--runtime and --root go with --bundle");
	if (engine && !aqe_str_eq(engine, "podman") && !aqe_str_eq(engine, "docker"))
		return aqe_err_set(e, AQE_E_USAGE, 0, "--engine: '%.40s' is not podman or docker",
				   engine);
	t->id = r->value[OPT_ID] ? r->value[OPT_ID] : last_part(r->words[0]);
	if (!shim_store_id_ok(t->id))
		return aqe_err_set(e, AQE_E_USAGE, 0,
				   "'%.140s' is no id (letters, digits, _ . -): give one with --id",
				   t->id);
	if (!container)
		return find_program(r, e);
	t->name = r->words[0];
	if (!shim_store_id_ok(t->name))
		return aqe_err_set(e, AQE_E_USAGE, 0, "'%.140s' is no container's name", t->name);
	t->engine = engine;
	t->kind = SHIM_TARGET_ENGINE;
	return r->value[OPT_BUNDLE] ? take_bundle(r, e) : 0;
}

static int take_options(struct run *r, struct shim_sup_config *cfg, struct aqe_err *e)
{
	const char *restart = r->value[OPT_RESTART], *format = r->value[OPT_FORMAT];
	uint32_t timeout_ms = 0;
	int rc = parse_seconds(r->value[OPT_GRACE], "grace", &r->target.grace_ms, e);

	if (rc == 0)
		rc = parse_seconds(r->value[OPT_TIMEOUT], "timeout", &timeout_ms, e);
	if (rc < 0)
		return rc;
	if (restart && !aqe_str_eq(restart, "on-failure") && !aqe_str_eq(restart, "always"))
		return aqe_err_set(e, AQE_E_USAGE, 0,
				   "--restart: '%.40s' is not on-failure or always", restart);
	if (format && !aqe_str_eq(format, "text") && !aqe_str_eq(format, "json"))
		return aqe_err_set(e, AQE_E_USAGE, 0, "--format: '%.40s' is not text or json",
				   format);
	if (r->value[OPT_TIMEOUT] && timeout_ms == 0)
		return aqe_err_set(e, AQE_E_USAGE, 0, "--timeout: 0 leaves no time");
	r->json = format && aqe_str_eq(format, "json");
	cfg->done_is_failure = restart && aqe_str_eq(restart, "always");
	if (timeout_ms > 0) {
		cfg->start_timeout_ms = timeout_ms;
		r->target.start_timeout_ms = timeout_ms;
		if (timeout_ms < cfg->alive_timeout_ms)
			cfg->alive_timeout_ms = timeout_ms;
	}
	cfg->stop_timeout_ms = r->target.grace_ms + (timeout_ms > 0 ? timeout_ms : MARGIN_MS);
	return 0;
}

/* ---- one life ---- */

static int open_files(struct run *r, struct aqe_err *e)
{
	AQE_AUTO_FD int folder = -1;
	const char *events = r->value[OPT_EVENTS];
	int rc = shim_place_open(r->arena, r->value[OPT_DATA_DIR], &r->place, e);

	if (rc == 0 && r->target.kind != SHIM_TARGET_PROCESS) {
		rc = aqe_fs_ensure_dir(r->place.fd, SHIM_SUPERVISE_FOLDER, 0700, &folder, e);
		if (rc == 0)
			rc = aqe_fs_ensure_dir(folder, r->target.id, 0700, &r->target.fd, e);
	}
	if (rc < 0 || !events)
		return rc;
	r->events_fd = open(events, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return r->events_fd < 0 ? aqe_err_set(e, AQE_E_SYS, errno, "open '%.200s'", events) : 0;
}

static int supervise(struct run *r, const struct shim_sup_config *cfg, struct aqe_err *e)
{
	const struct shim_target_hooks hooks = { r, on_started, on_ended, on_failed };
	struct shim_supervisor_opts o = SHIM_SUPERVISOR_OPTS_INIT;
	struct shim_sup_driver d;
	int rc = shim_loop_new(&r->loop, e);

	o.loop = r->loop;
	o.cfg = cfg;
	o.store_fd = r->place.supervisor_fd;
	o.id = r->target.id;
	o.tell = tell;
	o.arg = r;
	if (rc == 0)
		rc = watch_signals(r, e);
	if (rc == 0)
		rc = watch_resets(r, e);
	/* the container's first process becomes our child: its status is ours to know */
	if (rc == 0 && r->target.kind == SHIM_TARGET_BUNDLE &&
	    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		rc = aqe_err_set(e, AQE_E_SYS, errno, "become a subreaper");
	if (rc == 0)
		rc = shim_target_driver(&r->target, &hooks, r->loop, &d, e);
	if (rc == 0)
		rc = shim_supervisor_new(&o, d, &r->sup, e);
	if (rc == 0) {
		look_for_reset(r); /* one that came while nobody listened is done already */
		shim_supervisor_want(r->sup, SHIM_SUP_WANT_UP);
		if (r->exit_status < 0) /* not held from before */
			rc = shim_loop_run(r->loop, e);
	}
	return rc;
}

static void done(struct run *r)
{
	shim_supervisor_free(r->sup);
	if (r->loop) {
		shim_loop_unwatch(r->loop, r->signal_fd);
		shim_loop_unwatch(r->loop, r->inotify_fd);
	}
	shim_loop_free(r->loop);
	aqe_cleanup_fd(&r->signal_fd);
	aqe_cleanup_fd(&r->inotify_fd);
	aqe_cleanup_fd(&r->events_fd);
	aqe_cleanup_fd(&r->target.fd);
	shim_place_done(&r->place);
	aqe_arena_free(r->arena);
}

static int fail(const struct aqe_err *e)
{
	(void)fprintf(stderr, "aqe supervise: %s\n", aqe_cli_fault(&CMD, e));
	if (e->code == AQE_E_USAGE)
		return SHIM_EXIT_USAGE;
	return e->code == AQE_E_NOMEM || e->code == AQE_E_INTERNAL ? SHIM_EXIT_UNDECIDED
								   : SHIM_EXIT_FAILED;
}

static int help(void)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);

	aqe_cli_help(&CMD, &b);
	return fputs(aqe_buf_str(&b), stdout) < 0 || fflush(stdout) != 0 ? SHIM_EXIT_FAILED
									 : SHIM_EXIT_OK;
}

static int run(struct run *r, struct aqe_err *e)
{
	struct shim_sup_config cfg = SHIM_SUP_CONFIG_DEFAULT;
	int rc = take_options(r, &cfg, e);

	if (rc == 0)
		rc = take_target(r, e);
	if (rc == 0)
		rc = open_files(r, e);
	if (rc == 0)
		rc = shim_target_look(&r->target, e);
	return rc < 0 ? rc : supervise(r, &cfg, e);
}

int shim_cmd_supervise(int argc, char **argv)
{
	struct run r = { .events_fd = -1, .signal_fd = -1, .inotify_fd = -1, .exit_status = -1 };
	struct aqe_err e = AQE_ERR_INIT;
	int rc, status;

	if (argc > 1 && aqe_str_eq(argv[1], "status"))
		return shim_supervise_status(argc - 1, argv + 1);
	if (argc > 1 && aqe_str_eq(argv[1], "reset"))
		return shim_supervise_reset(argc - 1, argv + 1);
	r.place = (struct shim_place)SHIM_PLACE_INIT;
	r.target.fd = -1;
	r.target.grace_ms = GRACE_S * 1000;
	r.arena = aqe_arena_new(ARENA_MAX);
	r.target.arena = r.arena;
	rc = r.arena ? read_words(&r, argc, argv, &e)
		     : aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory");
	if (rc == AQE_CLI_HELP) {
		done(&r);
		return help();
	}
	if (rc == 0)
		rc = run(&r, &e);
	status = rc < 0 ? fail(&e) : r.exit_status;
	done(&r);
	return status;
}
