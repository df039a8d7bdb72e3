/* SPDX-License-Identifier: MIT */
#include "shim/aqe/audit_report.h"

#include "shim/aqe/audit_when.h"
#include "shim/core/text.h"

#define MINUTE (60 * SHIM_NS_PER_S)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

/* Widths of a bar that people count in. */
static const int64_t WIDTHS[] = {
	MINUTE,   2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR,
	2 * HOUR, 3 * HOUR,   6 * HOUR,   12 * HOUR,   DAY,         2 * DAY,     7 * DAY,
	14 * DAY, 30 * DAY,   90 * DAY,   365 * DAY,   3650 * DAY,
};

void shim_report_scale(int64_t from_ns, int64_t to_ns, int64_t *ret_start_ns, int64_t *ret_width_ns,
		       size_t *ret_n)
{
	int64_t width = 0, start = 0, n = 0;

	/* the widest needs 30 bars for all of int64_t */
	for (size_t i = 0; i < AQE_COUNT(WIDTHS); i++) {
		width = WIDTHS[i];
		start = from_ns - from_ns % width;
		n = to_ns > start ? (to_ns - start) / width + 1 : 1;
		if (n <= SHIM_REPORT_BUCKETS)
			break;
	}
	*ret_start_ns = start;
	*ret_width_ns = width;
	*ret_n = n < SHIM_REPORT_BUCKETS ? (size_t)n : SHIM_REPORT_BUCKETS;
}

struct keeper {
	struct shim_report_rows *rows;
	struct aqe_arena *arena;
};

static int keep(void *arg, const struct audit_row *row, struct aqe_err *e)
{
	struct keeper *k = arg;

	return audit_row_copy(k->arena, row, &k->rows->v[k->rows->n++], e);
}

static int load_rows(struct audit_log *log, const struct audit_filter *asked, enum audit_kind kind,
		     enum audit_action action, struct keeper k, struct aqe_err *e)
{
	struct audit_filter f = *asked;

	/* nothing can match when the filter asks for another kind */
	if ((f.kind && f.kind != kind) || (action && f.action && f.action != action))
		return AQE_OK;
	f.kind = kind;
	f.action = action ? action : f.action;
	f.order = AUDIT_NEWEST_FIRST;
	f.limit = SHIM_REPORT_ROWS;
	f.offset = 0;
	k.rows->v = aqe_arena_calloc(k.arena, SHIM_REPORT_ROWS, sizeof(*k.rows->v));
	if (!k.rows->v)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the report");
	return audit_query(log, &f, keep, &k, e);
}

static int load_lists(struct shim_report *r, struct audit_log *log, const struct audit_filter *f,
		      struct aqe_arena *a, struct aqe_err *e)
{
	const struct {
		struct shim_report_rows *rows;
		enum audit_kind kind;
		enum audit_action action;
	} lists[] = {
		{ &r->refusals, AUDIT_REFUSAL, AUDIT_ACTION_ANY },
		{ &r->blocked, AUDIT_REQUEST, AUDIT_BLOCKED },
		{ &r->starts, AUDIT_START, AUDIT_ACTION_ANY },
		{ &r->waivers, AUDIT_WAIVER, AUDIT_ACTION_ANY },
		{ &r->system, AUDIT_SYSTEM, AUDIT_ACTION_ANY },
		{ &r->policy, AUDIT_POLICY, AUDIT_ACTION_ANY },
	};
	int rc = AQE_OK;

	for (size_t i = 0; i < AQE_COUNT(lists) && rc == AQE_OK; i++)
		rc = load_rows(log, f, lists[i].kind, lists[i].action,
			       (struct keeper){ lists[i].rows, a }, e);
	return rc;
}

static int load_series(struct shim_report *r, struct audit_log *log, const struct audit_filter *f,
		       struct aqe_arena *a, struct aqe_err *e)
{
	if (!r->stats.total)
		return AQE_OK;
	shim_report_scale(r->stats.first_ns, r->stats.last_ns, &r->start_ns, &r->width_ns,
			  &r->n_buckets);
	r->buckets = aqe_arena_calloc(a, r->n_buckets, sizeof(*r->buckets));
	if (!r->buckets)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the report");
	return audit_series(log, f,
			    &(const struct audit_series){ r->start_ns, r->width_ns, r->buckets,
							  r->n_buckets },
			    e);
}

int shim_report_load(struct shim_report *r, struct audit_log *log, const struct audit_filter *f,
		     struct aqe_arena *a, struct aqe_err *e)
{
	int rc = audit_snapshot_begin(log, e);

	if (rc < 0)
		return rc;
	r->since_ns = f->since_ns;
	r->until_ns = f->until_ns;
	rc = audit_stats(log, f, a, &r->stats, e);
	if (rc == AQE_OK)
		rc = load_series(r, log, f, a, e);
	if (rc == AQE_OK)
		rc = load_lists(r, log, f, a, e);
	audit_snapshot_end(log);
	return rc;
}
