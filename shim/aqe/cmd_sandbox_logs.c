/* SPDX-License-Identifier: MIT */
/* aqe sandbox logs, events, exec. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit/row.h"
#include "shim/aqe/audit_when.h"
#include "shim/aqe/sandbox_cmd.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "shim/sandbox/engine.h"
#include "shim/sandbox/events.h"
#include "shim/sandbox/logs.h"
#include "shim/sandbox/monitor.h"

#define STEP_MS 50

static const struct aqe_cli_opt LOGS_OPTS[] = {
	{ "follow", 'f', NULL, "go on with what comes, until it has ended", SHIM_SB_FOLLOW },
	{ "tail", 'n', "N", "begin with the last N lines", SHIM_SB_TAIL },
	{ "since", 0, "TIME", "from here on: 10m, today, 2026-01-31T12:30Z", SHIM_SB_SINCE },
	{ "timestamps", 't', NULL, "with the time of each line", SHIM_SB_TIMESTAMPS },
	SHIM_SB_OPT_DATA,
	SHIM_SB_OPT_END,
};
static const struct aqe_cli_cmd LOGS = {
	.name = "aqe sandbox logs",
	.synopsis = "[-f] [-n N] [--since TIME] [-t] NAME",
	.about = "The output of a sandbox, its standard error on ours.",
	.opts = LOGS_OPTS,
};
static const struct aqe_cli_opt EVENTS_OPTS[] = {
	{ "follow", 'f', NULL, "go on with what comes", SHIM_SB_FOLLOW },
	{ "tail", 'n', "N", "begin with the last N events", SHIM_SB_TAIL },
	{ "sandbox", 0, "NAME", "of this sandbox only", SHIM_SB_SANDBOX },
	SHIM_SB_OPT_DATA,
	SHIM_SB_OPT_END,
};
static const struct aqe_cli_cmd EVENTS = {
	.name = "aqe sandbox events",
	.synopsis = "[-f] [-n N] [--sandbox NAME]",
	.about = "What happened, a line of JSON each: created, started, stopped, destroyed, error, "
		 "oom_killed, health_check_failed, resource_limit_exceeded.",
	.opts = EVENTS_OPTS,
};
static const struct aqe_cli_opt EXEC_OPTS[] = {
	{ "tty", 't', NULL, "on a terminal", SHIM_SB_TTY },
	{ "user", 'u', "USER", "UID[:GID] (default: the sandbox's)", SHIM_SB_USER },
	{ "workdir", 'w', "DIR", "working directory", SHIM_SB_WORKDIR },
	SHIM_SB_OPT_DATA,
	SHIM_SB_OPT_END,
};
static const struct aqe_cli_cmd EXEC = {
	.name = "aqe sandbox exec",
	.synopsis = "[-t] [-u USER] [-w DIR] NAME [--] COMMAND [ARGUMENT...]",
	.about = "Runs a command inside, held to the same rules as the sandbox itself. Its exit "
		 "status is this command's.",
	.opts = EXEC_OPTS,
};

static void nap(void)
{
	static const struct timespec STEP = { 0, STEP_MS * 1000000L };

	(void)nanosleep(&STEP, NULL); /* a signal may cut it short: fine */
}

static int parse_count(const char *value, int64_t *ret, struct aqe_err *e)
{
	uint64_t v;

	if (!value)
		return 0;
	if (!aqe_parse_u64(value, INT32_MAX, &v))
		return aqe_err_set(e, AQE_E_USAGE, 0, "--tail: '%.40s' is no number", value);
	*ret = (int64_t)v;
	return 0;
}

/* ---- logs ---- */

struct show {
	bool timestamps;
	bool failed; /* standard output is closed or full: no use going on */
	bool waits;  /* but for the container's end: what it says is dropped then */
};

static int show_record(void *arg, const struct shim_log_record *r)
{
	struct show *s = arg;
	FILE *to = r->stream == SHIM_STDERR ? stderr : stdout;
	char when[AUDIT_TIME_TEXT];

	if (s->failed)
		return !s->waits;
	if (s->timestamps) {
		audit_time_format(r->time_ns, when);
		(void)fprintf(to, "%s ", when);
	}
	if (fwrite(r->text, 1, r->len, to) != r->len || (!r->partial && fputc('\n', to) == EOF))
		s->failed = true;
	return s->failed && !s->waits;
}

struct follow {
	struct shim_box *b;
	const struct shim_engine_ops *engine;
	int dirfd;
	const char *const *names;
	size_t n;
	struct shim_log_cursor at;
	struct show show;
};

static int follow_open(struct follow *f, struct shim_box *b, struct aqe_err *e)
{
	f->b = b;
	f->engine = shim_engine_find(b->plan.engine);
	if (!f->engine)
		return aqe_err_set(e, AQE_E_ABSENT, 0, "engine '%.20s' is not built in",
				   b->plan.engine);
	return f->engine->logs(b, &f->dirfd, &f->names, &f->n, e);
}

static void follow_close(struct follow *f)
{
	if (f->dirfd >= 0 && f->dirfd != f->b->fd)
		(void)close(f->dirfd); /* only read from */
}

static int more(struct follow *f, struct aqe_err *e)
{
	int rc = shim_log_more(f->dirfd, f->names, f->n, &f->at, show_record, &f->show, e);

	f->show.failed = f->show.failed || fflush(stdout) != 0;
	return rc < 0 ? rc : 0;
}

/* Waits for the end of it; `run` passes its interrupts on. */
static int follow_on(struct follow *f, struct aqe_err *e)
{
	int told = 0, rc = 0;

	while (rc == 0 && (f->show.waits || !f->show.failed)) {
		bool watched = shim_box_is_supervised(f->b);
		int interrupts = shim_sandbox_interrupts();

		rc = more(f, e);
		if (!watched)
			return rc;
		if (interrupts > told) {
			struct shim_want w;

			told = interrupts;
			rc = shim_box_want(f->b, &w, e);
			w.up = false;
			w.kill = interrupts > 1;
			if (rc == 0)
				rc = shim_box_set_want(f->b, &w, e);
		}
		nap();
	}
	return rc;
}

int shim_sandbox_follow(struct shim_box *b, struct aqe_err *e)
{
	struct follow f = { .dirfd = -1, .show.waits = true };
	int rc;

	/* docker names the file when the container starts */
	while ((rc = follow_open(&f, b, e)) == AQE_E_ABSENT && shim_box_is_supervised(b))
		nap();
	if (rc == 0)
		rc = follow_on(&f, e);
	follow_close(&f);
	return rc == AQE_E_ABSENT ? 0 : rc; /* it never started: its state says why */
}

static int logs(struct shim_sb *sb, struct shim_box *b, struct aqe_err *e)
{
	struct follow f = { .dirfd = -1 };
	struct shim_log_query q = { 0, -1 };
	const char *since = sb->value[SHIM_SB_SINCE];
	int rc = parse_count(sb->value[SHIM_SB_TAIL], &q.tail, e);

	if (rc == 0 && since &&
	    !shim_when_parse(since, SHIM_WHEN_SINCE, (int64_t)time(NULL) * SHIM_NS_PER_S,
			     &q.since_ns))
		rc = aqe_err_set(e, AQE_E_USAGE, 0, "--since: '%.40s' is no time", since);
	if (rc == 0)
		rc = follow_open(&f, b, e);
	if (rc < 0)
		return rc;
	f.show.timestamps = sb->value[SHIM_SB_TIMESTAMPS] != NULL;
	rc = shim_log_read(f.dirfd, f.names, f.n, &q, show_record, &f.show, &f.at, e);
	f.show.failed = f.show.failed || fflush(stdout) != 0;
	if (rc == 0 && sb->value[SHIM_SB_FOLLOW])
		rc = follow_on(&f, e);
	follow_close(&f);
	return rc < 0 ? rc : 0;
}

/* ---- exec ---- */

static int exec_in(struct shim_sb *sb, struct shim_box *b, int *ret_status, struct aqe_err *e)
{
	const struct shim_engine_ops *engine = shim_engine_find(b->plan.engine);
	size_t skip = sb->n_words > 1 && aqe_str_eq(sb->words[1], "--") ? 2 : 1;
	struct shim_exec_opts x = { .tty = sb->value[SHIM_SB_TTY] != NULL,
				    .user = sb->value[SHIM_SB_USER],
				    .workdir = sb->value[SHIM_SB_WORKDIR] };
	struct shim_seen s;
	int rc = shim_box_seen(b, &s, e);

	if (rc < 0)
		return rc;
	if (sb->n_words <= skip)
		return aqe_err_set(e, AQE_E_USAGE, 0, "no command");
	if (!engine)
		return aqe_err_set(e, AQE_E_ABSENT, 0, "engine '%.20s' is not built in",
				   b->plan.engine);
	if (!s.pid)
		return aqe_err_set(e, AQE_E_REFUSED, 0, "'%s' does not run (%s)", b->name,
				   shim_seen_word(&s, shim_box_is_supervised(b)));
	x.argv = sb->words + skip;
	return engine->exec(b, &x, ret_status, e);
}

/* ---- commands on one sandbox ---- */

int shim_sandbox_logs(int argc, char **argv)
{
	SHIM_AUTO_BOX struct shim_box b = SHIM_BOX_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_sb sb;
	int rc = shim_sb_begin(&sb, &LOGS, SHIM_SB_OPERANDS, 1, 1, argc, argv);

	if (rc >= 0)
		return rc;
	rc = shim_box_find(sb.arena, &sb.place, sb.words[0], &b, &e);
	if (rc == 0)
		rc = logs(&sb, &b, &e);
	rc = rc < 0 ? shim_sb_fail(&sb, &e) : SHIM_EXIT_OK;
	shim_sb_done(&sb);
	return rc;
}

int shim_sandbox_exec(int argc, char **argv)
{
	SHIM_AUTO_BOX struct shim_box b = SHIM_BOX_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_sb sb;
	int status = SHIM_EXIT_FAILED;
	int rc = shim_sb_begin(&sb, &EXEC, SHIM_SB_REST, 1, SHIM_PLAN_ARGS_MAX, argc, argv);

	if (rc >= 0)
		return rc;
	rc = shim_box_find(sb.arena, &sb.place, sb.words[0], &b, &e);
	if (rc == 0)
		rc = exec_in(&sb, &b, &status, &e);
	if (rc < 0)
		status = shim_sb_fail(&sb, &e);
	shim_sb_done(&sb);
	return status;
}

/* ---- events ---- */

struct event_files {
	struct shim_sb *sb;
	const char *sandbox; /* "\"sandbox\":\"NAME\"", or NULL */
	int64_t offset;
	ino_t inode;
};

static bool is_meant(const struct event_files *f, const char *line)
{
	return !f->sandbox || strstr(line, f->sandbox);
}

/* Reads a file from `offset`, whole lines only; `skip` of those that are meant are left out. */
static int read_events(struct event_files *f, const char *name, int64_t *offset, int64_t *skip,
		       bool count_only, struct aqe_err *e)
{
	AQE_AUTO_FILE FILE *in = NULL;
	AQE_AUTO_FREE char *line = NULL;
	AQE_AUTO_FD int fd = -1;
	size_t cap = 0;
	struct stat st;
	ssize_t n;
	int rc = aqe_fs_open_beneath(f->sb->place.fd, name, O_RDONLY, 0, &fd, e);

	if (rc < 0)
		return rc == AQE_E_ABSENT ? 0 : rc;
	if (fstat(fd, &st) == 0)
		f->inode = st.st_ino;
	in = fdopen(fd, "r");
	if (!in)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	(void)AQE_TAKE_FD(fd); /* the stream's */
	if (fseeko(in, *offset, SEEK_SET) < 0)
		return aqe_err_set(e, AQE_E_SYS, 0, "seek in the events");
	while ((n = getline(&line, &cap, in)) > 0 && line[n - 1] == '\n') {
		*offset += n;
		if (!is_meant(f, line))
			continue;
		if (count_only)
			++*skip;
		else if (*skip > 0)
			--*skip;
		else if (fputs(line, stdout) == EOF)
			return 1;
	}
	return fflush(stdout) == 0 ? 0 : 1;
}

static int events(struct event_files *f, int64_t tail, struct aqe_err *e)
{
	static const char *const NAMES[] = { SHIM_EVENTS_OLD, SHIM_EVENTS_FILE };
	int64_t skip = 0, offset = 0;
	int rc = 0;

	for (size_t i = 0; i < AQE_COUNT(NAMES) && tail >= 0 && rc == 0; i++) {
		offset = 0;
		rc = read_events(f, NAMES[i], &offset, &skip, true, e);
	}
	skip = tail >= 0 && skip > tail ? skip - tail : 0;
	for (size_t i = 0; i < AQE_COUNT(NAMES) && rc == 0; i++) {
		f->offset = 0;
		rc = read_events(f, NAMES[i], &f->offset, &skip, false, e);
	}
	return rc;
}

static int follow_events(struct event_files *f, struct aqe_err *e)
{
	int64_t none = 0;
	int rc = 0;

	while (rc == 0) {
		struct stat st;

		nap();
		if (fstatat(f->sb->place.fd, SHIM_EVENTS_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (st.st_ino != f->inode && f->inode) { /* rotated: the rest of the old one */
			rc = read_events(f, SHIM_EVENTS_OLD, &f->offset, &none, false, e);
			f->offset = 0;
		}
		if (rc == 0 && (st.st_size > f->offset || st.st_ino != f->inode))
			rc = read_events(f, SHIM_EVENTS_FILE, &f->offset, &none, false, e);
	}
	return rc;
}

int shim_sandbox_events(int argc, char **argv)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_sb sb;
	struct event_files f = { &sb, NULL, 0, 0 };
	int64_t tail = -1;
	int rc = shim_sb_begin(&sb, &EVENTS, SHIM_SB_OPERANDS, 0, 0, argc, argv);

	if (rc >= 0)
		return rc;
	rc = parse_count(sb.value[SHIM_SB_TAIL], &tail, &e);
	if (rc == 0 && sb.value[SHIM_SB_SANDBOX])
		f.sandbox =
			aqe_arena_fmt(sb.arena, "\"sandbox\":\"%s\"", sb.value[SHIM_SB_SANDBOX]);
	if (rc == 0)
		rc = events(&f, tail, &e);
	if (rc == 0 && sb.value[SHIM_SB_FOLLOW])
		rc = follow_events(&f, &e);
	rc = rc < 0 ? shim_sb_fail(&sb, &e) : SHIM_EXIT_OK;
	shim_sb_done(&sb);
	return rc;
}
