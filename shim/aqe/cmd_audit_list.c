/* SPDX-License-Identifier: MIT */
/* aqe audit list: rows that match, oldest first. */
#include <unistd.h>

#include "shim/aqe/audit_args.h"
#include "shim/aqe/audit_print.h"
#include "shim/core/cleanup.h"
#include "shim/exit.h"

#define ARENA_MAX ((size_t)32 << 20)

enum { OPT_RECENT = SHIM_OPT_OWN, OPT_REVERSE, OPT_ABSOLUTE };
static const struct aqe_cli_opt OPTS[] = {
	SHIM_AUDIT_OPTS_FILTER,
	{ "limit", 'n', "N", "at most N rows", SHIM_OPT_LIMIT },
	{ "offset", 0, "N", "leave out the first N that match", SHIM_OPT_OFFSET },
	{ "recent", 'r', "N", "the newest N, oldest of them first", OPT_RECENT },
	{ "reverse", 0, NULL, "newest first; limit and offset count from there", OPT_REVERSE },
	{ "absolute", 0, NULL, "dates and times on a terminal, too", OPT_ABSOLUTE },
	{ "format", 0, "FORMAT", "text (default), json (one document), jsonl (a row a line)",
	  SHIM_OPT_FORMAT },
	SHIM_AUDIT_OPT_LOG,
	SHIM_AUDIT_OPT_END,
};
static const struct aqe_cli_cmd CMD = {
	.name = "aqe audit list",
	.synopsis = "[--since TIME] [--until TIME] [--agent ID] [--type TYPE]\n       "
		    "[--domain NAME] [--action ACTION] [--kind KIND] [--container ID]\n       "
		    "[--limit N] [--offset N] [--recent N] [--reverse]\n       "
		    "[--format text|json|jsonl]",
	.about = "Prints the rows that match all that is asked, oldest first. Offset is applied "
		 "before limit. On a terminal the table fits its width and times are relative.",
	.opts = OPTS,
};

struct request {
	struct audit_filter *filter;
	bool absolute;
};

static int take(void *self, int id, struct aqe_cli *c, struct aqe_err *e)
{
	struct request *r = self;

	switch (id) {
	case OPT_RECENT:
		r->filter->order = AUDIT_RECENT;
		return shim_audit_take_u64("recent", c->value, INT64_MAX, &r->filter->limit, e);
	case OPT_REVERSE:
		r->filter->order = AUDIT_NEWEST_FIRST;
		return AQE_OK;
	case OPT_ABSOLUTE:
		r->absolute = true;
		return AQE_OK;
	default:
		return aqe_err_set(e, AQE_E_USAGE, 0, "surplus argument '%.64s'", c->value);
	}
}

static int list(const struct shim_audit_args *args, unsigned flags, struct aqe_err *e)
{
	struct shim_audit_printer p;
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	int rc = shim_audit_printer_init(&p, args->arena, (enum shim_audit_format)args->format,
					 flags, args->now_ns, e);

	if (rc == AQE_OK)
		rc = shim_audit_open(args, AUDIT_READ, &log, e);
	if (rc == AQE_OK)
		rc = audit_query(log, &args->filter, shim_audit_printer_row, &p, e);
	if (rc == AQE_OK)
		rc = shim_audit_printer_end(&p, e);
	shim_audit_printer_done(&p);
	return rc;
}

int shim_audit_list(int argc, char **argv)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct shim_audit_args args = {
		.arena = a, .filter = AUDIT_FILTER_INIT, .formats = SHIM_AUDIT_FORMATS, .own = take
	};
	struct request r = { .filter = &args.filter };
	struct aqe_err e = AQE_ERR_INIT;
	unsigned flags = 0;
	int status;

	args.self = &r;
	status = shim_audit_parse(&args, &CMD, argc, argv);
	if (status != SHIM_AUDIT_RUN)
		return status;
	if (isatty(STDOUT_FILENO))
		flags = SHIM_AUDIT_SHORT | (r.absolute ? 0 : SHIM_AUDIT_RELATIVE);
	return list(&args, flags, &e) < 0 ? shim_audit_fail(&CMD, &e) : SHIM_EXIT_OK;
}
