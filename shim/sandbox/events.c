/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/aqe/audit_own.h"
#include "shim/core/cleanup.h"
#include "shim/core/clock.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define ARENA_MAX ((size_t)256 * 1024)

/* One row an event: its name, and what it is in the audit log. */
static const struct {
	const char *name;
	enum audit_kind kind;
	enum audit_action action;
} KINDS[SHIM_EVENT_KINDS] = {
	[SHIM_EVENT_CREATED] = { "created", AUDIT_SYSTEM, AUDIT_ALLOWED },
	[SHIM_EVENT_STARTED] = { "started", AUDIT_SYSTEM, AUDIT_ALLOWED },
	[SHIM_EVENT_STOPPED] = { "stopped", AUDIT_STOP, AUDIT_ALLOWED },
	[SHIM_EVENT_DESTROYED] = { "destroyed", AUDIT_SYSTEM, AUDIT_ALLOWED },
	[SHIM_EVENT_ERROR] = { "error", AUDIT_SYSTEM, AUDIT_REFUSED },
	[SHIM_EVENT_OOM_KILLED] = { "oom_killed", AUDIT_SYSTEM, AUDIT_CHANGED },
	[SHIM_EVENT_HEALTH_FAILED] = { "health_check_failed", AUDIT_SYSTEM, AUDIT_CHANGED },
	[SHIM_EVENT_LIMIT] = { "resource_limit_exceeded", AUDIT_SYSTEM, AUDIT_CHANGED },
};

const char *shim_event_name(enum shim_event_kind kind)
{
	return (unsigned)kind < SHIM_EVENT_KINDS ? KINDS[kind].name : "?";
}

static void add_str(struct aqe_buf *b, const char *name, const char *value)
{
	if (!value)
		return;
	aqe_buf_addf(b, ",\"%s\":", name);
	aqe_json_emit_str(b, value);
}

/* What is peculiar to this event, for line and row. */
static void add_details(struct aqe_buf *b, const struct shim_event *ev)
{
	add_str(b, "reason", ev->reason);
	if (ev->exit_code >= 0)
		aqe_buf_addf(b, ",\"exit_code\":%lld", (long long)ev->exit_code);
	if (ev->resource) {
		add_str(b, "resource", ev->resource);
		aqe_buf_addf(b, ",\"percent\":%.1f", ev->percent);
	}
	if (ev->number_name && ev->number >= 0)
		aqe_buf_addf(b, ",\"%s\":%lld", ev->number_name, (long long)ev->number);
}

void shim_event_line(const struct shim_box *b, const struct shim_event *ev, int64_t now_ms,
		     struct aqe_buf *out)
{
	char when[AQE_TIME_TEXT];

	aqe_time_format(now_ms / 1000, when);
	when[strlen(when) - 1] = '\0'; /* the Z comes behind the milliseconds */
	aqe_buf_addf(out, "{\"version\":1,\"time\":\"%s.%03dZ\",\"event\":\"%s\"", when,
		     (int)(now_ms % 1000), shim_event_name(ev->kind));
	add_str(out, "sandbox", b->name);
	add_str(out, "agent_id", b->plan.agent_id);
	add_str(out, "agent_type", b->plan.agent_type);
	add_str(out, "engine", b->plan.engine);
	add_details(out, ev);
	(void)aqe_buf_puts(out, "}\n");
}

/* ---- the file ---- */

/* The file may be renamed between opening and locking it. */
static int open_locked(int dirfd, int *ret, struct stat *st, struct aqe_err *e)
{
	for (int i = 0; i < 8; i++) {
		AQE_AUTO_FD int fd = -1;
		struct stat named;
		int rc = aqe_fs_open_beneath(dirfd, SHIM_EVENTS_FILE, O_WRONLY | O_APPEND | O_CREAT,
					     0600, &fd, e);

		if (rc < 0)
			return rc;
		if (flock(fd, LOCK_EX) < 0 || fstat(fd, st) < 0)
			return aqe_err_set(e, AQE_E_SYS, errno, "lock the events");
		if (fstatat(dirfd, SHIM_EVENTS_FILE, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
		    named.st_ino == st->st_ino) {
			*ret = AQE_TAKE_FD(fd);
			return 0;
		}
	}
	return aqe_err_set(e, AQE_E_TIMEOUT, 0, "the events are renamed all the time");
}

static int append_line(const struct shim_box *b, const struct aqe_buf *line, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	struct stat st = { .st_size = 0 };
	int rc = open_locked(b->place->fd, &fd, &st, e);

	if (rc < 0)
		return rc;
	if (st.st_size + (int64_t)line->len > SHIM_EVENTS_MAX) {
		/* both names are in our folder; a failure leaves a file that is too large */
		(void)renameat(b->place->fd, SHIM_EVENTS_FILE, b->place->fd, SHIM_EVENTS_OLD);
		aqe_cleanup_fd(&fd);
		fd = -1;
		rc = open_locked(b->place->fd, &fd, &st, e);
		if (rc < 0)
			return rc;
	}
	return aqe_fs_write_all(fd, line->p, line->len, e);
}

/* ---- the audit log ---- */

static int record(const struct shim_box *b, const struct shim_event *ev, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf meta = AQE_BUF_INIT(SHIM_EVENT_LINE_MAX);
	struct audit_row row = AUDIT_ROW_INIT(KINDS[ev->kind].kind, KINDS[ev->kind].action);

	aqe_buf_addf(&meta, "{\"event\":\"%s\"", shim_event_name(ev->kind));
	add_str(&meta, "engine", b->plan.engine);
	add_details(&meta, ev);
	(void)aqe_buf_putc(&meta, '}');
	row.container = b->name;
	row.agent_id = b->plan.agent_id;
	row.agent_type = b->plan.agent_type;
	row.image = b->plan.image_id;
	row.reason = ev->reason ? ev->reason : shim_event_name(ev->kind);
	row.meta = aqe_buf_str(&meta);
	if (ev->kind == SHIM_EVENT_STOPPED && ev->exit_code >= 0)
		row.status = ev->exit_code;
	return shim_audit_own(&row, e);
}

int shim_event_write(const struct shim_box *b, const struct shim_event *ev, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf line = AQE_BUF_INIT(SHIM_EVENT_LINE_MAX);
	struct timespec ts = { 0, 0 };
	int rc, first;

	(void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail */
	shim_event_line(b, ev, (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000, &line);
	first = aqe_buf_ok(&line, e);
	if (first == 0)
		first = append_line(b, &line, e);
	rc = record(b, ev, first < 0 ? NULL : e);
	return first < 0 ? first : rc;
}

/* ---- reading it back ---- */

int shim_event_history_line(const struct shim_box *b, const char *line, size_t len,
			    struct shim_event_history *h, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = NULL;
	struct aqe_json *root = NULL;
	const char *event = NULL, *sandbox = NULL;
	uint64_t start = 0;
	int rc;

	/* most lines are of other sandboxes */
	if (!memmem(line, len, b->name, strlen(b->name)))
		return 0;
	a = aqe_arena_new(ARENA_MAX);
	rc = a ? aqe_json_parse(a, line, len, &AQE_JSON_LIMITS_DEFAULT, &root, NULL) : AQE_E_NOMEM;
	if (rc == AQE_E_NOMEM)
		return aqe_err_set(e, rc, 0, "no memory for the events");
	if (rc < 0 || aqe_json_get_str(root, "sandbox", &sandbox, NULL) != 1 ||
	    aqe_json_get_str(root, "event", &event, NULL) != 1 || !aqe_str_eq(sandbox, b->name))
		return 0;
	if (aqe_str_eq(event, KINDS[SHIM_EVENT_CREATED].name)) {
		*h = (struct shim_event_history){ 0, false }; /* before: another of that name */
	} else if (aqe_str_eq(event, KINDS[SHIM_EVENT_STARTED].name)) {
		if (aqe_json_get_u64(root, "start", UINT32_MAX, &start, NULL) == 1)
			h->starts = (uint32_t)start;
		h->ended = false;
	} else if (aqe_str_eq(event, KINDS[SHIM_EVENT_STOPPED].name)) {
		h->ended = true;
	}
	return 0;
}

static int read_history(const struct shim_box *b, const char *name, struct shim_event_history *h,
			struct aqe_err *e)
{
	AQE_AUTO_FILE FILE *in = NULL;
	AQE_AUTO_FREE char *line = NULL;
	AQE_AUTO_FD int fd = -1;
	size_t cap = 0;
	ssize_t n;
	int rc = aqe_fs_open_beneath(b->place->fd, name, O_RDONLY, 0, &fd, e);

	if (rc < 0)
		return rc == AQE_E_ABSENT ? 0 : rc;
	in = fdopen(fd, "r");
	if (!in)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	(void)AQE_TAKE_FD(fd); /* the stream's */
	/* a line is as long as the file at most, and that has a limit */
	while (rc == 0 && (n = getline(&line, &cap, in)) > 0)
		rc = shim_event_history_line(b, line, (size_t)n, h, e);
	/* without memory it ends before the file does */
	if (rc == 0 && !feof(in))
		rc = aqe_err_set(e, errno == ENOMEM ? AQE_E_NOMEM : AQE_E_SYS, errno,
				 "read the events");
	return rc;
}

int shim_event_history(const struct shim_box *b, struct shim_event_history *ret, struct aqe_err *e)
{
	struct shim_event_history h = { 0, false };
	int rc = read_history(b, SHIM_EVENTS_OLD, &h, e);

	if (rc == 0)
		rc = read_history(b, SHIM_EVENTS_FILE, &h, e);
	if (rc == 0)
		*ret = h;
	return rc;
}
