/* SPDX-License-Identifier: MIT */
/* aqe audit export: rows for other programs, and the report for people. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/emit.h"
#include "audit/verify.h"
#include "shim/aqe/audit_args.h"
#include "shim/aqe/audit_keys.h"
#include "shim/aqe/audit_report.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/exit.h"

#define ARENA_MAX ((size_t)256 << 20)
#define CHUNK     ((size_t)256 << 10)
#define NAME_SIZE 512
#define HOST_SIZE 65

enum { OPT_OUTPUT = SHIM_OPT_OWN, OPT_ANCHOR, OPT_KEY };
/* The first are enum audit_format. */
enum { AS_HTML = AUDIT_FORMAT_COUNT };
static const char *const FORMATS[] = { "jsonl", "json", "csv", "ocsf", "html", NULL };
static const struct aqe_cli_opt OPTS[] = {
	{ "format", 0, "FORMAT",
	  "jsonl (default; `verify --export` reads it), json (one document), csv, ocsf (OCSF 1.8.0 "
	  "events, one a line), html (a report, one file)",
	  SHIM_OPT_FORMAT },
	{ "output", 'o', "FILE",
	  "write FILE (0600; replaced only when complete), not standard output", OPT_OUTPUT },
	SHIM_AUDIT_OPTS_FILTER,
	{ "limit", 'n', "N", "at most N rows", SHIM_OPT_LIMIT },
	{ "offset", 0, "N", "leave out the first N that match", SHIM_OPT_OFFSET },
	{ "anchor", 0, "FILE", "html: anchors that the report's verification uses", OPT_ANCHOR },
	{ "public-key", 0, "FILE", "html: the trusted key that it uses", OPT_KEY },
	SHIM_AUDIT_OPT_LOG,
	SHIM_AUDIT_OPT_KEY_DIR,
	SHIM_AUDIT_OPT_END,
};
static const struct aqe_cli_cmd CMD = {
	.name = "aqe audit export",
	.synopsis = "[--format jsonl|json|csv|ocsf|html] [--since TIME]\n       "
		    "[FILTER...] [-o FILE]",
	.about =
		"Writes the rows that match, oldest first, of one state of the log. jsonl and json "
		"begin with a header and end with a trailer that has the count and a digest, "
		"signed "
		"when the key can be read. How many rows were written is said on standard error.",
	.opts = OPTS,
};

struct request {
	struct aqe_arena *arena;
	struct shim_audit_trust trust;
	const char *output;
};

static int take(void *self, int id, struct aqe_cli *c, struct aqe_err *e)
{
	struct request *r = self;

	switch (id) {
	case OPT_OUTPUT:
		r->output = strcmp(c->value, "-") == 0 ? NULL : c->value;
		return AQE_OK;
	case OPT_ANCHOR:
		return shim_audit_trust_anchors(&r->trust, r->arena, c->value, e);
	case OPT_KEY:
		return shim_audit_trust_key(&r->trust, c->value, e);
	default:
		return aqe_err_set(e, AQE_E_USAGE, 0, "surplus argument '%.64s'", c->value);
	}
}

/* ---- where it goes ---- */

struct sink {
	const char *path; /* NULL: standard output */
	int fd;
	char part[NAME_SIZE]; /* what becomes `path` when complete; "" when written in place */
	struct aqe_buf waiting;
};

static int sink_open(struct sink *s, const char *path, struct aqe_err *e)
{
	struct stat st;
	int n;

	*s = (struct sink){ .path = path, .fd = -1, .waiting = AQE_BUF_INIT(2 * CHUNK) };
	if (!path) {
		s->fd = STDOUT_FILENO;
		return AQE_OK;
	}
	/* a pipe or a device is written to, a file is replaced */
	if (stat(path, &st) < 0 || S_ISREG(st.st_mode)) {
		n = snprintf(s->part, sizeof(s->part), "%s.part-%ld", path, (long)getpid());
		if (n < 0 || (size_t)n >= sizeof(s->part))
			return aqe_err_set(e, AQE_E_LIMIT, 0, "the name of the file is too long");
		s->fd = open(s->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	} else {
		s->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	}
	if (s->fd < 0) {
		const int err = errno;

		s->part[0] = '\0'; /* not ours to remove */
		return aqe_err_set(e, AQE_E_SYS, err, "open '%.300s'", path);
	}
	return AQE_OK;
}

static int sink_flush(struct sink *s, struct aqe_err *e)
{
	int rc = aqe_buf_ok(&s->waiting, e);

	if (rc == AQE_OK && s->waiting.len)
		rc = aqe_fs_write_all(s->fd, s->waiting.p, s->waiting.len, e);
	aqe_buf_clear(&s->waiting);
	return rc < 0 ? aqe_err_wrap(e, "write '%.200s'", s->path ? s->path : "standard output")
		      : AQE_OK;
}

/* An audit_write_fn. */
static int sink_write(void *arg, const void *p, size_t n, struct aqe_err *e)
{
	struct sink *s = arg;
	int rc = AQE_OK;

	if (s->waiting.len + n > CHUNK)
		rc = sink_flush(s, e);
	if (rc == AQE_OK && n > CHUNK)
		return aqe_fs_write_all(s->fd, p, n, e);
	if (rc == AQE_OK)
		(void)aqe_buf_add(&s->waiting, p, n);
	return rc;
}

static int sink_end(struct sink *s, struct aqe_err *e)
{
	int rc = sink_flush(s, e);

	if (rc == AQE_OK && s->part[0]) {
		if (fsync(s->fd) < 0 || rename(s->part, s->path) < 0)
			return aqe_err_set(e, AQE_E_SYS, errno, "write '%.200s'", s->path);
		s->part[0] = '\0';
	}
	return rc;
}

static void sink_done(struct sink *s)
{
	if (s->part[0])
		(void)unlink(s->part); /* incomplete */
	if (s->path && s->fd >= 0)
		(void)close(s->fd); /* flushed, or a failure was told already */
	aqe_buf_done(&s->waiting);
}

/* ---- html ---- */

static void add_word(struct aqe_buf *b, const char *name, const char *value)
{
	if (value)
		(void)aqe_buf_addf(b, "%s%s %s", b->len ? ", " : "", name, value);
}

/* The filter in words, for the report's head. */
static const char *filter_words(const struct audit_filter *f, struct aqe_arena *a)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(CHUNK);

	add_word(&b, "agent", f->agent_id);
	add_word(&b, "type", f->agent_type);
	add_word(&b, "domain", f->domain);
	add_word(&b, "container", f->container);
	add_word(&b, "kind", f->kind ? audit_kind_name(f->kind) : NULL);
	add_word(&b, "action", f->action ? audit_action_name(f->action) : NULL);
	return aqe_arena_dup(a, aqe_buf_str(&b));
}

static int judge(const struct shim_audit_args *args, struct request *r, struct audit_log *log,
		 struct shim_report *to, struct aqe_err *e)
{
	struct audit_verify_opts o;
	struct aqe_err why = AQE_ERR_INIT;
	int rc = AQE_OK;

	if (r->trust.n_keys == 0)
		rc = shim_audit_trust_own(&r->trust, audit_log_opts(log), &to->own_key, &why);
	o = (struct audit_verify_opts){ .keys = (const uint8_t(*)[32])r->trust.keys,
					.n_keys = r->trust.n_keys,
					.anchors = r->trust.anchors,
					.n_anchors = r->trust.n_anchors };
	if (rc == AQE_OK)
		rc = audit_verify(log, &o, &to->verdict, &why);
	if (rc == AQE_OK)
		return AQE_OK;
	if (rc == AQE_E_NOMEM)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory to verify the log");
	to->verify_error = aqe_arena_dup(args->arena, why.text);
	return to->verify_error ? AQE_OK : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
}

static int export_html(const struct shim_audit_args *args, struct request *r, struct audit_log *log,
		       struct sink *to, uint64_t *ret_rows, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf page = AQE_BUF_INIT(SHIM_REPORT_MAX);
	char host[HOST_SIZE] = "";
	struct shim_report report = { .made_ns = args->now_ns,
				      .host = host,
				      .place = audit_log_opts(log)->dir,
				      .filter = filter_words(&args->filter, args->arena) };
	int rc = report.filter ? AQE_OK : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");

	(void)gethostname(host, sizeof(host) - 1); /* "" is a name, too */
	if (rc == AQE_OK)
		rc = judge(args, r, log, &report, e);
	if (rc == AQE_OK)
		rc = shim_report_load(&report, log, &args->filter, args->arena, e);
	if (rc < 0)
		return rc;
	shim_report_emit(&report, &page);
	rc = aqe_buf_ok(&page, e);
	*ret_rows = report.stats.total;
	return rc < 0 ? rc : sink_write(to, page.p, page.len, e);
}

/* ---- the command ---- */

static int export_to(const struct shim_audit_args *args, struct request *r, struct sink *to,
		     struct aqe_err *e)
{
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	struct audit_export_result got = { .rows = 0 };
	int rc = shim_audit_open(args, AUDIT_READ, &log, e);

	if (rc == AQE_OK)
		rc = sink_open(to, r->output, e);
	if (rc < 0)
		return rc;
	if (args->format == AS_HTML)
		rc = export_html(args, r, log, to, &got.rows, e);
	else
		rc = audit_export(log, &args->filter, (enum audit_format)args->format,
				  &(const struct audit_sink){ sink_write, to }, &got, e);
	if (rc == AQE_OK)
		rc = sink_end(to, e);
	if (rc == AQE_OK)
		(void)fprintf(stderr, "%s: %" PRIu64 " rows%s\n", CMD.name, got.rows,
			      args->format > AUDIT_JSON ? ""
			      : got.is_signed           ? ", signed"
							: ", not signed");
	return rc;
}

int shim_audit_export(int argc, char **argv)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct request r = { .arena = a };
	struct shim_audit_args args = {
		.arena = a, .filter = AUDIT_FILTER_INIT, .formats = FORMATS, .own = take, .self = &r
	};
	struct sink to = { .fd = -1, .waiting = AQE_BUF_INIT(2 * CHUNK) };
	struct aqe_err e = AQE_ERR_INIT;
	int rc, status = shim_audit_parse(&args, &CMD, argc, argv);

	if (status != SHIM_AUDIT_RUN)
		return status;
	rc = export_to(&args, &r, &to, &e);
	sink_done(&to);
	return rc < 0 ? shim_audit_fail(&CMD, &e) : SHIM_EXIT_OK;
}
