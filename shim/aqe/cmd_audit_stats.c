/* SPDX-License-Identifier: MIT */
/* aqe audit stats: totals. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "audit/stats.h"
#include "shim/aqe/audit_args.h"
#include "shim/aqe/audit_table.h"
#include "shim/aqe/audit_when.h"
#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "shim/exit.h"

#define ARENA_MAX   ((size_t)64 << 20)
#define OUT_MAX     ((size_t)16 << 20)
#define TOP_DEFAULT 10
#define DAY_NS      (INT64_C(86400) * SHIM_NS_PER_S)

enum { OPT_TOP = SHIM_OPT_OWN };
enum format { AS_TEXT, AS_JSON };
static const char *const FORMATS[] = { "text", "json", NULL };
static const struct aqe_cli_opt OPTS[] = {
	SHIM_AUDIT_OPTS_FILTER,
	{ "top", 0, "N", "text: so many of each list (default 10)", OPT_TOP },
	{ "format", 0, "FORMAT", "text (default) or json", SHIM_OPT_FORMAT },
	SHIM_AUDIT_OPT_LOG,
	SHIM_AUDIT_OPT_END,
};
static const struct aqe_cli_cmd CMD = {
	.name = "aqe audit stats",
	.synopsis = "[--since TIME] [--until TIME] [FILTER...] [--top N]\n       "
		    "[--format text|json]",
	.about = "Totals of the rows that match: by kind, action, domain, agent type, reason and "
		 "refused property, and the response times. Of the last 24 hours unless --since "
		 "says otherwise ('--since all').",
	.opts = OPTS,
};

/* The lists of struct audit_stats. */
struct list {
	const char *name, *title;
	size_t offset;
};
static const struct list LISTS[] = {
	{ "by_domain", "DOMAIN", offsetof(struct audit_stats, domains) },
	{ "by_agent_type", "AGENT TYPE", offsetof(struct audit_stats, agent_types) },
	{ "by_reason", "REASON", offsetof(struct audit_stats, reasons) },
	{ "by_rule", "REFUSED PROPERTY", offsetof(struct audit_stats, rules) },
	{ "by_waiver", "WAIVER", offsetof(struct audit_stats, waivers) },
};

static const struct audit_tallies *list_of(const struct audit_stats *s, const struct list *l)
{
	return (const struct audit_tallies *)(const void *)((const char *)s + l->offset);
}

/* The times of struct audit_stats. */
struct span {
	const char *name, *title;
	size_t offset;
};
static const struct span SPANS[] = {
	{ "mean_ns", "mean", offsetof(struct audit_stats, mean_ns) },
	{ "p50_ns", "p50", offsetof(struct audit_stats, p50_ns) },
	{ "p90_ns", "p90", offsetof(struct audit_stats, p90_ns) },
	{ "p95_ns", "p95", offsetof(struct audit_stats, p95_ns) },
	{ "p99_ns", "p99", offsetof(struct audit_stats, p99_ns) },
	{ "max_ns", "max", offsetof(struct audit_stats, max_ns) },
};

static int64_t span_of(const struct audit_stats *s, const struct span *t)
{
	int64_t v;

	memcpy(&v, (const char *)s + t->offset, sizeof(v));
	return v;
}

/* ---- text ---- */

static void text_period(const struct shim_audit_args *args, const struct audit_stats *s,
			struct aqe_buf *b)
{
	char from[SHIM_WHEN_TEXT], to[SHIM_WHEN_TEXT];

	shim_when_absolute(args->filter.since_ns, from);
	shim_when_absolute(args->filter.until_ns, to);
	(void)aqe_buf_addf(b, "since %s", args->filter.since_ns ? from : "the beginning");
	(void)aqe_buf_addf(b, " until %s (UTC)\n", args->has_until ? to : "now");
	if (s->total) {
		shim_when_absolute(s->first_ns, from);
		shim_when_absolute(s->last_ns, to);
		(void)aqe_buf_addf(b, "rows from %s to %s\n", from, to);
	}
}

static void text_totals(const struct audit_stats *s, struct aqe_buf *b)
{
	(void)aqe_buf_addf(b, "\nrows          %10" PRIu64 "\n", s->total);
	(void)aqe_buf_addf(b, "requests      %10" PRIu64 "\n", s->requests);
	(void)aqe_buf_addf(b, "  allowed     %10" PRIu64 "\n", s->allowed);
	(void)aqe_buf_addf(b, "  blocked     %10" PRIu64 "\n", s->blocked);
	(void)aqe_buf_addf(b, "  rate limited%10" PRIu64 "\n", s->rate_limited);
	for (int k = 1; k < AUDIT_KIND_COUNT; k++) {
		if (k != AUDIT_REQUEST && s->by_kind[k])
			(void)aqe_buf_addf(b, "%-14s%10" PRIu64 "\n",
					   audit_kind_name((enum audit_kind)k), s->by_kind[k]);
	}
	if (s->lost)
		(void)aqe_buf_addf(b, "not recorded  %10" PRIu64 "  (gap records say when)\n",
				   s->lost);
}

static void text_times(const struct audit_stats *s, struct aqe_buf *b)
{
	char span[SHIM_WHEN_TEXT];

	if (!s->timed)
		return;
	(void)aqe_buf_addf(b, "\nresponse time of %" PRIu64 " rows:", s->timed);
	for (size_t i = 0; i < AQE_COUNT(SPANS); i++) {
		shim_duration_format(span_of(s, &SPANS[i]), span);
		(void)aqe_buf_addf(b, "  %s %s", SPANS[i].title, span);
	}
	(void)aqe_buf_putc(b, '\n');
}

static const struct {
	const char *heading;
	enum audit_action action;
} TALLY_ACTIONS[] = {
	{ "ALLOWED", AUDIT_ALLOWED },      { "BLOCKED", AUDIT_BLOCKED },
	{ "LIMITED", AUDIT_RATE_LIMITED }, { "REFUSED", AUDIT_REFUSED },
	{ "CHANGED", AUDIT_CHANGED },
};

static int text_tally(struct shim_table *t, const struct audit_tally *v, struct aqe_buf *b,
		      struct aqe_err *e)
{
	char numbers[AQE_COUNT(TALLY_ACTIONS) + 1][24];
	struct shim_cell cells[AQE_COUNT(TALLY_ACTIONS) + 2] = { { v->name, SHIM_PAINT_NONE } };

	(void)snprintf(numbers[0], sizeof(numbers[0]), "%" PRIu64, v->total);
	cells[1].text = numbers[0];
	for (size_t i = 0; i < AQE_COUNT(TALLY_ACTIONS); i++) {
		const uint64_t n = v->by_action[TALLY_ACTIONS[i].action];

		(void)snprintf(numbers[i + 1], sizeof(numbers[0]), n ? "%" PRIu64 : "-", n);
		cells[i + 2].text = numbers[i + 1];
	}
	return shim_table_row(t, cells, b, e);
}

static int text_list(const struct shim_audit_args *args, const struct list *l,
		     const struct audit_tallies *v, uint64_t top, struct aqe_buf *b)
{
	struct shim_column columns[AQE_COUNT(TALLY_ACTIONS) + 2] = { { l->title, false, true },
								     { "TOTAL", true, false } };
	struct shim_table *t;
	struct aqe_err e = AQE_ERR_INIT;
	uint64_t more = v->others, rows = v->others_total;

	if (!v->n)
		return AQE_OK;
	for (size_t i = 0; i < AQE_COUNT(TALLY_ACTIONS); i++)
		columns[i + 2] = (struct shim_column){ TALLY_ACTIONS[i].heading, true, false };
	t = shim_table_new(args->arena, columns, AQE_COUNT(columns), shim_audit_width(),
			   shim_audit_colour());
	if (!t)
		return AQE_E_NOMEM;
	(void)aqe_buf_putc(b, '\n');
	for (size_t i = 0; i < v->n; i++) {
		if (i >= top) {
			more++;
			rows += v->v[i].total;
		} else if (text_tally(t, &v->v[i], b, &e) < 0) {
			return e.code;
		}
	}
	if (shim_table_flush(t, b, &e) < 0)
		return e.code;
	if (more)
		(void)aqe_buf_addf(b, "(%" PRIu64 " more with %" PRIu64 " rows)\n", more, rows);
	return AQE_OK;
}

static int as_text(const struct shim_audit_args *args, const struct audit_stats *s, uint64_t top,
		   struct aqe_buf *b)
{
	int rc = AQE_OK;

	text_period(args, s, b);
	text_totals(s, b);
	text_times(s, b);
	for (size_t i = 0; i < AQE_COUNT(LISTS) && rc == AQE_OK; i++)
		rc = text_list(args, &LISTS[i], list_of(s, &LISTS[i]), top, b);
	return rc;
}

/* ---- json ---- */

static void json_actions(const uint64_t by_action[AUDIT_ACTION_COUNT], struct aqe_buf *b)
{
	for (int a = 1; a < AUDIT_ACTION_COUNT; a++)
		(void)aqe_buf_addf(b, "%s\"%s\":%" PRIu64, a > 1 ? "," : "",
				   audit_action_name((enum audit_action)a), by_action[a]);
}

static void json_list(const struct list *l, const struct audit_tallies *v, struct aqe_buf *b)
{
	(void)aqe_buf_addf(b, ",\n  \"%s\":{\"values\":[", l->name);
	for (size_t i = 0; i < v->n; i++) {
		(void)aqe_buf_puts(b, i ? ",\n    {\"name\":" : "\n    {\"name\":");
		aqe_json_emit_str(b, v->v[i].name);
		(void)aqe_buf_addf(b, ",\"total\":%" PRIu64 ",", v->v[i].total);
		json_actions(v->v[i].by_action, b);
		(void)aqe_buf_putc(b, '}');
	}
	(void)aqe_buf_addf(b, "%s],\"others\":%" PRIu64 ",\"others_total\":%" PRIu64 "}",
			   v->n ? "\n  " : "", v->others, v->others_total);
}

static void json_time(const char *name, int64_t ns, bool there, struct aqe_buf *b)
{
	char text[AUDIT_TIME_TEXT];

	audit_time_format(ns, text);
	(void)aqe_buf_addf(b, there ? ",\n  \"%s\":\"%s\"" : ",\n  \"%s\":null", name, text);
}

static void as_json(const struct shim_audit_args *args, const struct audit_stats *s,
		    struct aqe_buf *b)
{
	(void)aqe_buf_puts(b, "{\n  \"version\":1");
	json_time("since", args->filter.since_ns, args->filter.since_ns > 0, b);
	json_time("until", args->has_until ? args->filter.until_ns : args->now_ns, true, b);
	json_time("first", s->first_ns, s->total > 0, b);
	json_time("last", s->last_ns, s->total > 0, b);
	(void)aqe_buf_addf(b,
			   ",\n  \"total\":%" PRIu64 ",\n  \"requests\":{\"total\":%" PRIu64
			   ",\"allowed\":%" PRIu64 ",\"blocked\":%" PRIu64
			   ",\"rate_limited\":%" PRIu64 "},\n  \"by_kind\":{",
			   s->total, s->requests, s->allowed, s->blocked, s->rate_limited);
	for (int k = 1; k < AUDIT_KIND_COUNT; k++)
		(void)aqe_buf_addf(b, "%s\"%s\":%" PRIu64, k > 1 ? "," : "",
				   audit_kind_name((enum audit_kind)k), s->by_kind[k]);
	(void)aqe_buf_puts(b, "},\n  \"by_action\":{");
	json_actions(s->by_action, b);
	(void)aqe_buf_addf(b, "},\n  \"response\":{\"rows\":%" PRIu64, s->timed);
	for (size_t i = 0; i < AQE_COUNT(SPANS); i++)
		(void)aqe_buf_addf(b, ",\"%s\":%" PRId64, SPANS[i].name, span_of(s, &SPANS[i]));
	(void)aqe_buf_addf(b, "},\n  \"not_recorded\":%" PRIu64, s->lost);
	for (size_t i = 0; i < AQE_COUNT(LISTS); i++)
		json_list(&LISTS[i], list_of(s, &LISTS[i]), b);
	(void)aqe_buf_puts(b, "\n}\n");
}

/* ---- the command ---- */

static int take(void *self, int id, struct aqe_cli *c, struct aqe_err *e)
{
	if (id == OPT_TOP)
		return shim_audit_take_u64("top", c->value, AUDIT_TALLY_MAX, self, e);
	return aqe_err_set(e, AQE_E_USAGE, 0, "surplus argument '%.64s'", c->value);
}

static int stats(struct shim_audit_args *args, uint64_t top, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OUT_MAX);
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	struct audit_stats s = { .total = 0 };
	int rc = shim_audit_open(args, AUDIT_READ, &log, e);

	if (!args->has_since)
		args->filter.since_ns = args->now_ns - DAY_NS;
	if (rc == AQE_OK)
		rc = audit_stats(log, &args->filter, args->arena, &s, e);
	if (rc < 0)
		return rc;
	if (args->format == AS_JSON)
		as_json(args, &s, &b);
	else if (as_text(args, &s, top, &b) < 0)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the tables");
	return shim_audit_write(&b, e);
}

int shim_audit_stats(int argc, char **argv)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	uint64_t top = TOP_DEFAULT;
	struct shim_audit_args args = { .arena = a,
					.filter = AUDIT_FILTER_INIT,
					.formats = FORMATS,
					.own = take,
					.self = &top };
	struct aqe_err e = AQE_ERR_INIT;
	const int status = shim_audit_parse(&args, &CMD, argc, argv);

	if (status != SHIM_AUDIT_RUN)
		return status;
	return stats(&args, top, &e) < 0 ? shim_audit_fail(&CMD, &e) : SHIM_EXIT_OK;
}
