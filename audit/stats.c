/* SPDX-License-Identifier: MIT */
#include "audit/stats.h"

#include <stdio.h>
#include <string.h>

#include "audit/filter.h"
#include "audit/store.h"
#include "shim/core/cleanup.h"
#include "shim/core/db.h"
#include "shim/core/json.h"

#define META_ARENA ((size_t)1 << 20)

/* ---- totals ---- */

static void add_total(struct audit_stats *st, int64_t kind, int64_t action, uint64_t n)
{
	st->total += n;
	if (kind > 0 && kind < AUDIT_KIND_COUNT)
		st->by_kind[kind] += n;
	if (action > 0 && action < AUDIT_ACTION_COUNT)
		st->by_action[action] += n;
	if (kind != AUDIT_REQUEST)
		return;
	st->requests += n;
	st->allowed += action == AUDIT_ALLOWED ? n : 0;
	st->blocked += action == AUDIT_BLOCKED ? n : 0;
	st->rate_limited += action == AUDIT_RATE_LIMITED ? n : 0;
}

static int totals(struct audit_log *log, const struct audit_filter *f, struct audit_stats *st,
		  struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	int rc = audit_filter_prepare(log,
				      "SELECT kind, action, count(*), min(time_ns), max(time_ns) "
				      "FROM row",
				      f, " GROUP BY kind, action", &s, e);

	if (rc)
		return rc;
	while ((rc = aqe_stmt_step(s, e)) == 1) {
		int64_t first = aqe_stmt_i64(s, 3), last = aqe_stmt_i64(s, 4);

		if (st->total == 0 || first < st->first_ns)
			st->first_ns = first;
		if (st->total == 0 || last > st->last_ns)
			st->last_ns = last;
		add_total(st, aqe_stmt_i64(s, 0), aqe_stmt_i64(s, 1), (uint64_t)aqe_stmt_i64(s, 2));
	}
	return rc;
}

/* ---- values of a column ---- */

/* More frequent first, then by name. */
static int by_count(const void *a, const void *b)
{
	const struct audit_tally *x = a, *y = b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* The values of a column on the way. Names in them are whoever's an agent asked for: their number
 * must not decide how much memory we take, so `names` holds those of 2 * AUDIT_TALLY_MAX at most.
 */
struct tallying {
	struct audit_tallies t;
	struct aqe_arena *names;
};
#define NAMES_ARENA ((size_t)4 * AUDIT_TALLY_MAX * (AUDIT_REASON_MAX + 64))

/* Makes room by moving all but the AUDIT_TALLY_MAX most frequent into "others". */
static int shrink(struct tallying *w, struct aqe_err *e)
{
	struct aqe_arena *names = aqe_arena_new(NAMES_ARENA);
	struct audit_tallies *t = &w->t;
	bool short_of = !names;

	qsort(t->v, t->n, sizeof(t->v[0]), by_count);
	for (; t->n > AUDIT_TALLY_MAX; t->n--) {
		t->others++;
		t->others_total += t->v[t->n - 1].total;
	}
	for (size_t i = 0; !short_of && i < t->n; i++) {
		t->v[i].name = aqe_arena_dup(names, t->v[i].name);
		short_of = !t->v[i].name;
	}
	aqe_arena_free(w->names);
	w->names = names;
	return short_of ? aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory") : AQE_OK;
}

static int add_value(struct tallying *w, const char *name, int64_t action, uint64_t n,
		     struct aqe_err *e)
{
	struct audit_tallies *t = &w->t;
	struct audit_tally *v = t->n > 0 ? &t->v[t->n - 1] : NULL;
	int rc = AQE_OK;

	/* rows come sorted by name */
	if (!v || strcmp(v->name, name) != 0) {
		if (t->n == (size_t)2 * AUDIT_TALLY_MAX)
			rc = shrink(w, e);
		if (rc)
			return rc;
		v = &t->v[t->n];
		memset(v, 0, sizeof(*v));
		v->name = aqe_arena_dup(w->names, name);
		if (!v->name)
			return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
		t->n++;
	}
	v->total += n;
	if (action > 0 && action < AUDIT_ACTION_COUNT)
		v->by_action[action] += n;
	return AQE_OK;
}

static int read_values(struct aqe_stmt *s, struct tallying *w, struct aqe_err *e)
{
	int rc;

	while ((rc = aqe_stmt_step(s, e)) == 1) {
		size_t n;
		const char *name = aqe_stmt_bytes(s, 0, &n);

		if (!name || memchr(name, '\0', n))
			return aqe_err_set(e, AQE_E_MALFORMED, 0,
					   "audit log: a value we never write");
		rc = add_value(w, name, aqe_stmt_i64(s, 1), (uint64_t)aqe_stmt_i64(s, 2), e);
		if (rc)
			return rc;
	}
	return rc;
}

/* Moves the result into the arena. */
static int keep_values(struct aqe_arena *a, const struct audit_tallies *t,
		       struct audit_tallies *ret, struct aqe_err *e)
{
	*ret = *t;
	ret->v = aqe_arena_calloc(a, t->n ? t->n : 1, sizeof(ret->v[0]));
	if (!ret->v)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	for (size_t i = 0; i < t->n; i++) {
		ret->v[i] = t->v[i];
		ret->v[i].name = aqe_arena_dup(a, t->v[i].name);
		if (!ret->v[i].name)
			return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	}
	return AQE_OK;
}

/* One list: values of `column` in rows that match the filter and `extra`. */
struct list {
	const char *column, *extra;
	struct audit_tallies *to;
};

static int tally(struct audit_log *log, const struct audit_filter *f, const struct list *l,
		 struct aqe_arena *a, struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	struct tallying w = { .names = NULL };
	char select[128], tail[160];
	int rc;

	(void)snprintf(select, sizeof(select), "SELECT %s, action, count(*) FROM row", l->column);
	(void)snprintf(tail, sizeof(tail), " AND %s IS NOT NULL%s GROUP BY 1, 2 ORDER BY 1",
		       l->column, l->extra);
	rc = audit_filter_prepare(log, select, f, tail, &s, e);
	if (rc)
		return rc;
	w.names = aqe_arena_new(NAMES_ARENA);
	w.t.v = calloc((size_t)2 * AUDIT_TALLY_MAX, sizeof(w.t.v[0]));
	if (w.names && w.t.v) {
		rc = read_values(s, &w, e);
	} else {
		(void)aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory"); /* returns the code */
		rc = AQE_E_NOMEM;
	}
	if (rc == 0)
		rc = shrink(&w, e);
	if (rc == 0)
		rc = keep_values(a, &w.t, l->to, e);
	aqe_arena_free(w.names);
	free(w.t.v);
	return rc;
}

/* ---- response times ---- */

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* The smallest value that at least `percent` of all do not exceed (nearest rank). */
static int64_t percentile(const int64_t *v, size_t n, size_t percent)
{
	size_t rank = (n * percent + 99) / 100;

	return v[rank > 0 ? rank - 1 : 0];
}

static int read_times(struct aqe_stmt *s, int64_t *v, size_t max, size_t *ret_n, struct aqe_err *e)
{
	int rc;

	while ((rc = aqe_stmt_step(s, e)) == 1) {
		if (*ret_n == max)
			return aqe_err_set(e, AQE_E_LIMIT, 0,
					   "more than %d rows with a response time",
					   AUDIT_TIMED_MAX);
		v[(*ret_n)++] = aqe_stmt_i64(s, 0);
	}
	return rc;
}

static void summarise(struct audit_stats *st, int64_t *v, size_t n)
{
	long double sum = 0;

	qsort(v, n, sizeof(v[0]), by_value);
	for (size_t i = 0; i < n; i++)
		sum += (long double)v[i];
	st->timed = n;
	st->mean_ns = (int64_t)(sum / (long double)n + 0.5L);
	st->p50_ns = percentile(v, n, 50);
	st->p90_ns = percentile(v, n, 90);
	st->p95_ns = percentile(v, n, 95);
	st->p99_ns = percentile(v, n, 99);
	st->max_ns = v[n - 1];
}

static int times(struct audit_log *log, const struct audit_filter *f, struct audit_stats *st,
		 struct aqe_err *e)
{
	static const char WITH_TIME[] = " AND response_ns IS NOT NULL";
	AQE_AUTO_STMT struct aqe_stmt *count = NULL, *s = NULL;
	AQE_AUTO_FREE int64_t *v = NULL;
	size_t max, n = 0;
	int rc = audit_filter_prepare(log, "SELECT count(*) FROM row", f, WITH_TIME, &count, e);

	if (rc == 0)
		rc = aqe_stmt_step(count, e);
	if (rc != 1)
		return rc;
	max = (size_t)aqe_stmt_i64(count, 0);
	if (max == 0)
		return AQE_OK;
	if (max > AUDIT_TIMED_MAX)
		max = AUDIT_TIMED_MAX;
	v = calloc(max, sizeof(v[0]));
	if (!v)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	rc = audit_filter_prepare(log, "SELECT response_ns FROM row", f, WITH_TIME, &s, e);
	if (rc == 0)
		rc = read_times(s, v, max, &n, e);
	if (rc == 0 && n > 0)
		summarise(st, v, n);
	return rc;
}

/* ---- gaps ---- */

int audit_gap_lost(const char *meta, size_t n, uint64_t *ret, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(META_ARENA);
	struct aqe_json *v = NULL;
	int rc = AQE_E_NOMEM;

	*ret = 0;
	if (!meta)
		return AQE_OK;
	if (a)
		rc = aqe_json_parse(a, meta, n, &AQE_JSON_LIMITS_DEFAULT, &v, NULL);
	if (rc == AQE_E_NOMEM)
		return aqe_err_set(e, rc, 0, "out of memory");
	if (rc == 0)
		(void)!aqe_json_get_u64(v, "lost", UINT64_MAX, ret, NULL); /* absent: 0 */
	return AQE_OK;
}

static int gaps(struct audit_log *log, const struct audit_filter *f, struct audit_stats *st,
		struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	int rc = audit_filter_prepare(log, "SELECT meta FROM row", f,
				      " AND kind = 10 AND reason = '" AUDIT_REASON_GAP "'", &s, e);

	if (rc)
		return rc;
	while ((rc = aqe_stmt_step(s, e)) == 1) {
		size_t n;
		const char *meta = aqe_stmt_bytes(s, 0, &n);
		uint64_t lost = 0;

		rc = audit_gap_lost(meta, n, &lost, e);
		if (rc)
			return rc;
		st->lost += lost;
	}
	return rc;
}

/* ---- all ---- */

static int fill(struct audit_log *log, const struct audit_filter *f, struct aqe_arena *a,
		struct audit_stats *st, struct aqe_err *e)
{
	const struct list lists[] = {
		{ "domain", " AND kind = 7", &st->domains },
		{ "agent_type", " AND kind = 7", &st->agent_types },
		{ "reason", "", &st->reasons },
		{ "rule", " AND kind = 6", &st->rules },
		{ "waiver", "", &st->waivers },
	};
	int rc = totals(log, f, st, e);

	for (size_t i = 0; rc == 0 && i < sizeof(lists) / sizeof(lists[0]); i++)
		rc = tally(log, f, &lists[i], a, e);
	if (rc == 0)
		rc = times(log, f, st, e);
	if (rc == 0)
		rc = gaps(log, f, st, e);
	return rc;
}

int audit_stats(struct audit_log *log, const struct audit_filter *f, struct aqe_arena *a,
		struct audit_stats *ret, struct aqe_err *e)
{
	struct audit_stats st;
	bool own = !aqe_db_in_transaction(log->db);
	int rc;

	memset(&st, 0, sizeof(st));
	if (own) {
		rc = audit_snapshot_begin(log, e);
		if (rc)
			return rc;
	}
	rc = fill(log, f, a, &st, e);
	if (own)
		audit_snapshot_end(log);
	if (rc)
		return aqe_err_wrap(e, "audit log: statistics");
	*ret = st;
	return AQE_OK;
}

static void count_into(const struct audit_series *to, struct aqe_stmt *s)
{
	int64_t at = aqe_stmt_i64(s, 0), kind = aqe_stmt_i64(s, 1), action = aqe_stmt_i64(s, 2);
	uint64_t count = (uint64_t)aqe_stmt_i64(s, 3);
	struct audit_bucket *b;

	if (at < 0 || (uint64_t)at >= to->n || kind <= 0 || kind >= AUDIT_KIND_COUNT ||
	    action <= 0 || action >= AUDIT_ACTION_COUNT)
		return;
	b = &to->buckets[at];
	b->by_kind[kind] += count;
	b->by_action[action] += count;
	if (kind == AUDIT_REQUEST)
		b->requests[action] += count;
}

int audit_series(struct audit_log *log, const struct audit_filter *f, const struct audit_series *to,
		 struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	char select[160], tail[80];
	int rc;

	if (to->n == 0 || to->n > AUDIT_BUCKETS_MAX || to->width_ns <= 0 || to->start_ns < 0)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "audit log: no such buckets");
	memset(to->buckets, 0, to->n * sizeof(to->buckets[0]));
	(void)snprintf(select, sizeof(select),
		       "SELECT (time_ns - %lld) / %lld, kind, action, count(*) FROM row",
		       (long long)to->start_ns, (long long)to->width_ns);
	/* division is towards zero: what is just before the start must not count as its first */
	(void)snprintf(tail, sizeof(tail), " AND time_ns >= %lld GROUP BY 1, 2, 3",
		       (long long)to->start_ns);
	rc = audit_filter_prepare(log, select, f, tail, &s, e);
	if (rc)
		return rc;
	while ((rc = aqe_stmt_step(s, e)) == 1)
		count_into(to, s);
	return rc ? aqe_err_wrap(e, "audit log: statistics") : AQE_OK;
}
