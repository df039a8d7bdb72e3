/* SPDX-License-Identifier: MIT */
/* aqe audit prune and import. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "audit/import.h"
#include "audit/prune.h"
#include "audit/query.h"
#include "shim/aqe/audit_args.h"
#include "shim/aqe/audit_when.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/exit.h"

#define ARENA_MAX ((size_t)1 << 20)
#define OUT_MAX   ((size_t)16 << 10)

/* ---- prune ---- */

enum { OPT_KEEP = SHIM_OPT_OWN, OPT_MAX_SIZE, OPT_MAX_ROWS, OPT_DRY_RUN };
static const struct aqe_cli_opt PRUNE_OPTS[] = {
	{ "keep", 0, "DURATION", "remove rows older than this: 90d, 1y; 0 is all", OPT_KEEP },
	{ "max-size", 0, "SIZE", "remove the oldest rows until the log has this size: 1G, 500M",
	  OPT_MAX_SIZE },
	{ "max-rows", 0, "N", "remove the oldest rows until so many are left", OPT_MAX_ROWS },
	{ "dry-run", 'n', NULL, "only say what would go", OPT_DRY_RUN },
	SHIM_AUDIT_OPT_LOG,
	SHIM_AUDIT_OPT_KEY_DIR,
	SHIM_AUDIT_OPT_END,
};
static const struct aqe_cli_cmd PRUNE = {
	.name = "aqe audit prune",
	.synopsis = "[--keep DURATION] [--max-size SIZE] [--max-rows N]\n       "
		    "[--dry-run]",
	.about =
		"Removes the oldest rows until every limit given holds. The cut is signed, so that "
		"what stays can still be proven; without a key nothing is removed. A row of kind "
		"system says which rows went, and by which limit.",
	.opts = PRUNE_OPTS,
};

struct prune {
	int64_t keep_ns;
	bool has_keep, dry_run;
	struct audit_prune_opts limits;
};

static int take_prune(void *self, int id, struct aqe_cli *c, struct aqe_err *e)
{
	struct prune *p = self;

	switch (id) {
	case OPT_KEEP:
		p->has_keep = true;
		if (!shim_duration_parse(c->value, &p->keep_ns))
			return aqe_err_set(e, AQE_E_USAGE, 0,
					   "--keep: '%.64s' is not a duration: 90d, 12h, 1y",
					   c->value);
		return AQE_OK;
	case OPT_MAX_SIZE:
		if (!aqe_parse_size(c->value, &p->limits.max_bytes))
			return aqe_err_set(e, AQE_E_USAGE, 0,
					   "--max-size: '%.64s' is not a size: 1G, 500M", c->value);
		return AQE_OK;
	case OPT_MAX_ROWS:
		return shim_audit_take_u64("max-rows", c->value, UINT64_MAX - 1,
					   &p->limits.max_rows, e);
	case OPT_DRY_RUN:
		p->dry_run = true;
		return AQE_OK;
	default:
		return aqe_err_set(e, AQE_E_USAGE, 0, "surplus argument '%.64s'", c->value);
	}
}

/* Counts the rows at the beginning that are older. */
struct older {
	int64_t before_ns;
	uint64_t n;
};

static int count_older(void *arg, const struct audit_row *r, struct aqe_err *e)
{
	struct older *o = arg;

	(void)e;
	if (r->time_ns >= o->before_ns)
		return 1;
	o->n++;
	return 0;
}

/* How many rows would go. Of a size only an estimate can be had: rows are taken as equally large.
 */
static int estimate(struct audit_log *log, const struct audit_prune_opts *o, uint64_t *ret_rows,
		    uint64_t *ret_size, struct aqe_err *e)
{
	struct audit_filter all = AUDIT_FILTER_INIT;
	struct older older = { .before_ns = o->before_ns };
	uint64_t rows = 0, n = 0;
	int rc = audit_count(log, &all, &rows, e);

	if (rc == AQE_OK)
		rc = audit_size(log, ret_size, e);
	if (rc == AQE_OK && o->before_ns)
		rc = audit_query(log, &all, count_older, &older, e);
	if (rc < 0)
		return rc;
	n = older.n;
	/* the row about it is one of those that stay */
	if (rows > o->max_rows && rows - o->max_rows + 1 > n)
		n = rows - o->max_rows + 1;
	if (*ret_size > o->max_bytes) {
		const double share = (double)(*ret_size - o->max_bytes) / (double)*ret_size;
		const uint64_t by_size = (uint64_t)(share * (double)rows + 2);

		n = by_size > n ? by_size : n;
	}
	*ret_rows = n < rows ? n : rows;
	return AQE_OK;
}

static int dry_run(const struct shim_audit_args *args, const struct prune *p, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OUT_MAX);
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	uint64_t rows = 0, size = 0;
	int rc = shim_audit_open(args, AUDIT_READ, &log, e);

	if (rc == AQE_OK)
		rc = estimate(log, &p->limits, &rows, &size, e);
	if (rc < 0)
		return rc;
	(void)aqe_buf_addf(&b,
			   "%s%" PRIu64 " rows would be removed; the log has %" PRIu64 " bytes\n",
			   p->limits.max_bytes != UINT64_MAX && rows ? "about " : "", rows, size);
	return shim_audit_write(&b, e);
}

static int prune(const struct shim_audit_args *args, const struct prune *p, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OUT_MAX);
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	struct audit_prune_result got = { .rows = 0 };
	int rc = shim_audit_open(args, AUDIT_READ, &log, e); /* make nothing where no log is */

	audit_close(log);
	log = NULL;
	if (rc == AQE_OK)
		rc = shim_audit_open(args, AUDIT_WRITE, &log, e);
	if (rc == AQE_OK)
		rc = audit_prune(log, &p->limits, &got, e);
	if (rc < 0)
		return rc;
	(void)aqe_buf_addf(&b, "%" PRIu64 " rows removed", got.rows);
	if (got.rows)
		(void)aqe_buf_addf(&b, ", up to row %" PRId64, got.to_seq);
	(void)aqe_buf_addf(&b, "; %" PRIu64 " bytes, before %" PRIu64 "\n", got.after, got.before);
	return shim_audit_write(&b, e);
}

int shim_audit_prune(int argc, char **argv)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct prune p = { .limits = AUDIT_PRUNE_INIT };
	struct shim_audit_args args = { .arena = a, .own = take_prune, .self = &p };
	struct aqe_err e = AQE_ERR_INIT;
	int rc, status = shim_audit_parse(&args, &PRUNE, argc, argv);

	if (status != SHIM_AUDIT_RUN)
		return status;
	if (!p.has_keep && p.limits.max_bytes == UINT64_MAX && p.limits.max_rows == UINT64_MAX) {
		(void)aqe_err_set(&e, AQE_E_USAGE, 0,
				  "wants --keep DURATION, --max-size SIZE or --max-rows N");
		return shim_audit_fail(&PRUNE, &e);
	}
	if (p.has_keep) /* at least 1: 0 is no limit */
		p.limits.before_ns = args.now_ns > p.keep_ns ? args.now_ns - p.keep_ns : 1;
	rc = p.dry_run ? dry_run(&args, &p, &e) : prune(&args, &p, &e);
	return rc < 0 ? shim_audit_fail(&PRUNE, &e) : SHIM_EXIT_OK;
}

/* ---- import ---- */

static const struct aqe_cli_opt IMPORT_OPTS[] = {
	SHIM_AUDIT_OPT_LOG,
	SHIM_AUDIT_OPT_KEY_DIR,
	SHIM_AUDIT_OPT_END,
};
static const struct aqe_cli_cmd IMPORT = {
	.name = "aqe audit import",
	.synopsis = "FILE",
	.about = "Appends the entries of an old export as new rows: our own jsonl, which must "
		 "verify, or a JSON array of entries. Nothing is stored unless all of it can be. A "
		 "file that does not exist has 0 entries.",
	.opts = IMPORT_OPTS,
};

static int take_file(void *self, int id, struct aqe_cli *c, struct aqe_err *e)
{
	const char **path = self;

	if (id != AQE_CLI_OPERAND || *path)
		return aqe_err_set(e, AQE_E_USAGE, 0, "surplus argument '%.64s'", c->value);
	*path = c->value;
	return AQE_OK;
}

int shim_audit_import(int argc, char **argv)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OUT_MAX);
	const char *path = NULL;
	struct shim_audit_args args = { .arena = a, .own = take_file, .self = &path };
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	uint64_t n = 0;
	int rc, status = shim_audit_parse(&args, &IMPORT, argc, argv);

	if (status != SHIM_AUDIT_RUN)
		return status;
	if (!path) {
		(void)aqe_err_set(&e, AQE_E_USAGE, 0, "a file is missing");
		return shim_audit_fail(&IMPORT, &e);
	}
	rc = shim_audit_open(&args, AUDIT_WRITE, &log, &e);
	if (rc == AQE_OK)
		rc = audit_import(log, path, &n, &e);
	if (rc == AQE_OK) {
		(void)aqe_buf_addf(&b, "%" PRIu64 " entries imported\n", n);
		rc = shim_audit_write(&b, &e);
	}
	return rc < 0 ? shim_audit_fail(&IMPORT, &e) : SHIM_EXIT_OK;
}
