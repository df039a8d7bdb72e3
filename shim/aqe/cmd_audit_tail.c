/* SPDX-License-Identifier: MIT */
/* aqe audit tail: the newest rows, and with -f those that come. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/aqe/audit_args.h"
#include "shim/aqe/audit_print.h"
#include "shim/aqe/audit_watch.h"
#include "shim/core/cleanup.h"
#include "shim/exit.h"

#define ARENA_MAX      ((size_t)32 << 20)
#define RECENT_DEFAULT 10

enum { OPT_FOLLOW = SHIM_OPT_OWN };
static const char *const FORMATS[] = { "text", "jsonl", NULL };
static const struct aqe_cli_opt OPTS[] = {
	{ "follow", 'f', NULL, "go on with rows as they are stored", OPT_FOLLOW },
	{ "limit", 'n', "N", "begin with the newest N (default 10)", SHIM_OPT_LIMIT },
	SHIM_AUDIT_OPTS_FILTER,
	{ "format", 0, "FORMAT", "text (default) or jsonl (a row a line)", SHIM_OPT_FORMAT },
	SHIM_AUDIT_OPT_LOG,
	SHIM_AUDIT_OPT_END,
};
static const struct aqe_cli_cmd CMD = {
	.name = "aqe audit tail",
	.synopsis = "[-f] [-n N] [FILTER...] [--format text|jsonl]",
	.about =
		"Prints the newest rows that match, oldest of them first. With -f it goes on until "
		"it is interrupted; pruning and a replaced log do not stop it.",
	.opts = OPTS,
};

static int take(void *self, int id, struct aqe_cli *c, struct aqe_err *e)
{
	bool *follow = self;

	if (id != OPT_FOLLOW)
		return aqe_err_set(e, AQE_E_USAGE, 0, "surplus argument '%.64s'", c->value);
	*follow = true;
	return AQE_OK;
}

/* Rows from *after on, which moves on with all that were looked at. */
static int print_new(struct audit_log *log, const struct audit_filter *asked, int64_t *after,
		     struct shim_audit_printer *p, struct aqe_err *e)
{
	struct audit_filter f = *asked;
	int64_t last = 0;
	int rc = audit_last_seq(log, &last, e);

	if (rc < 0 || last <= *after)
		return rc;
	f.after_seq = *after;
	f.order = AUDIT_OLDEST_FIRST;
	f.limit = UINT64_MAX;
	p->last = 0;
	rc = audit_query(log, &f, shim_audit_printer_row, p, e);
	if (rc == AQE_OK)
		rc = shim_audit_printer_flush(p, e);
	if (rc == AQE_OK)
		*after = p->last > last ? p->last : last;
	return rc;
}

static int follow(struct shim_watch *w, const struct audit_filter *f, int64_t after,
		  struct shim_audit_printer *p, struct aqe_err *e)
{
	int rc = AQE_OK;

	while (rc == AQE_OK) {
		rc = print_new(w->log, f, &after, p, e);
		if (rc == AQE_E_TIMEOUT)
			rc = AQE_OK; /* locked for long: the rows will be there next time */
		if (rc == AQE_OK)
			rc = shim_watch_wait(w, -1, e);
		if (rc == AQE_OK && w->replaced) {
			w->replaced = false;
			after = 0;
			(void)fprintf(stderr, "%s: the log was replaced by another one\n",
				      CMD.name);
		}
	}
	return rc;
}

static int tail(const struct shim_audit_args *args, bool go_on, struct aqe_err *e)
{
	struct shim_audit_printer p;
	struct shim_watch w = { .notify = -1 };
	struct audit_opts at;
	int64_t after = 0;
	const enum shim_audit_format format =
		args->format ? SHIM_AUDIT_AS_JSONL : SHIM_AUDIT_AS_TEXT;
	int rc = shim_audit_printer_init(&p, args->arena, format,
					 isatty(STDOUT_FILENO) ? SHIM_AUDIT_SHORT : 0, args->now_ns,
					 e);

	if (rc == AQE_OK)
		rc = shim_audit_place(args, AUDIT_READ, &at, e);
	if (rc == AQE_OK)
		rc = shim_watch_init(&w, &at, e);
	/* before the query: a row that comes between is printed by both or by follow() */
	if (rc == AQE_OK)
		rc = audit_last_seq(w.log, &after, e);
	if (rc == AQE_OK)
		rc = audit_query(w.log, &args->filter, shim_audit_printer_row, &p, e);
	if (rc == AQE_OK)
		rc = shim_audit_printer_flush(&p, e);
	if (rc == AQE_OK && go_on)
		rc = follow(&w, &args->filter, p.last > after ? p.last : after, &p, e);
	shim_watch_done(&w);
	shim_audit_printer_done(&p);
	return rc;
}

int shim_audit_tail(int argc, char **argv)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	bool go_on = false;
	struct shim_audit_args args = { .arena = a,
					.filter = AUDIT_FILTER_INIT,
					.formats = FORMATS,
					.own = take,
					.self = &go_on };
	struct aqe_err e = AQE_ERR_INIT;
	int status;

	args.filter.limit = RECENT_DEFAULT;
	args.filter.order = AUDIT_RECENT;
	status = shim_audit_parse(&args, &CMD, argc, argv);
	if (status != SHIM_AUDIT_RUN)
		return status;
	return tail(&args, go_on, &e) < 0 ? shim_audit_fail(&CMD, &e) : SHIM_EXIT_OK;
}
