/* SPDX-License-Identifier: MIT */
/* aqe sandbox stats: what sandboxes use, once or again and again. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "shim/aqe/audit_args.h"
#include "shim/aqe/audit_when.h"
#include "shim/aqe/sandbox_view.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "shim/input.h"

#define OUT_MAX     ((size_t)8 << 20)
#define FIRST_MS    500 /* between the two samples of a single look */
#define INTERVAL_MS 2000

static const struct aqe_cli_opt OPTS[] = {
	{ "watch", 'w', NULL, "again and again, until interrupted", SHIM_SB_WATCH },
	{ "interval", 0, "TIME", "between two looks (default 2s)", SHIM_SB_INTERVAL },
	{ "all", 'a', NULL, "also those that do not run", SHIM_SB_ALL },
	{ "sort", 0, "ORDER", "name (default), cpu, memory, pids, disk, net", SHIM_SB_SORT },
	SHIM_SB_OPT_FORMAT,
	SHIM_SB_OPT_DATA,
	SHIM_SB_OPT_END,
};
static const struct aqe_cli_cmd CMD = {
	.name = "aqe sandbox stats",
	.synopsis = "[-w] [-a] [--sort ORDER] [--format text|json] [NAME]",
	.about = "CPU in percent of one CPU, memory without droppable file cache, swap, processes, "
		 "use of the writable tmpfs, network bytes. JSON is one document a look.",
	.opts = OPTS,
};

static void nap_ms(int64_t ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	(void)nanosleep(&ts, NULL); /* a signal may cut it short: fine */
}

struct stats {
	struct shim_sb *sb;
	struct shim_view v;
	const char *only;
	enum shim_view_order order;
	int64_t interval_ms;
};

static int take_options(struct stats *s, struct aqe_err *e)
{
	const char *order = s->sb->value[SHIM_SB_SORT];
	const char *interval = s->sb->value[SHIM_SB_INTERVAL];
	int64_t ns = INTERVAL_MS * INT64_C(1000000);
	size_t i = 0;

	while (order && i < SHIM_ORDERS && !aqe_str_eq(order, SHIM_ORDER_NAMES[i]))
		i++;
	if (i == SHIM_ORDERS)
		return aqe_err_set(e, AQE_E_USAGE, 0, "--sort: '%.40s' is no order", order);
	s->order = (enum shim_view_order)i;
	if (interval && (!shim_duration_parse(interval, &ns) || ns < 100000000))
		return aqe_err_set(e, AQE_E_USAGE, 0, "--interval: '%.40s' is not 100ms or more",
				   interval);
	s->interval_ms = ns / 1000000;
	return 0;
}

static int look(struct stats *s, struct aqe_err *e)
{
	struct shim_view next;
	int rc = shim_view_take(s->sb, s->v.arena ? &s->v : NULL,
				s->sb->value[SHIM_SB_ALL] != NULL || s->only, s->only, &next, e);

	if (rc < 0)
		return rc;
	shim_view_done(&s->v);
	s->v = next;
	shim_view_sort(&s->v, s->order);
	return 0;
}

static int print(struct stats *s, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(OUT_MAX);
	bool clear = s->sb->value[SHIM_SB_WATCH] && shim_audit_width() > 0;
	int rc = 0;

	if (s->sb->json) {
		shim_view_json(&s->v, &out);
	} else {
		if (clear) /* to the top left, and empty */
			(void)aqe_buf_puts(&out, "\x1b[H\x1b[2J");
		rc = shim_view_text(&s->v, shim_audit_width(), shim_audit_colour(), &out, e);
	}
	if (rc == 0 && !shim_sb_print(&out)) {
		rc = aqe_err_set(e, AQE_E_SYS, 0, "standard output is closed");
		shim_output_told();
	}
	return rc;
}

static int run(struct stats *s, struct aqe_err *e)
{
	int rc = look(s, e);

	nap_ms(FIRST_MS);
	while (rc == 0) {
		rc = look(s, e);
		if (rc == 0)
			rc = print(s, e);
		if (rc < 0 || !s->sb->value[SHIM_SB_WATCH])
			return rc;
		nap_ms(s->interval_ms);
	}
	return rc;
}

int shim_sandbox_stats(int argc, char **argv)
{
	SHIM_AUTO_BOX struct shim_box b = SHIM_BOX_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_sb sb;
	struct stats s = { .sb = &sb };
	int rc = shim_sb_begin(&sb, &CMD, SHIM_SB_OPERANDS, 0, 1, argc, argv);

	if (rc >= 0)
		return rc;
	rc = take_options(&s, &e);
	if (rc == 0 && sb.n_words > 0)
		rc = shim_box_find(sb.arena, &sb.place, sb.words[0], &b, &e);
	s.only = b.name;
	if (rc == 0)
		rc = run(&s, &e);
	rc = rc < 0 ? shim_sb_fail(&sb, &e) : SHIM_EXIT_OK;
	shim_view_done(&s.v);
	shim_sb_done(&sb);
	return rc;
}
