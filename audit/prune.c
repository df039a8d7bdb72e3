/* SPDX-License-Identifier: MIT */
#include "audit/prune.h"

#include <stdio.h>
#include <string.h>

#include "audit/sign.h"
#include "audit/store.h"
#include "shim/core/cleanup.h"

#define STEP_ROWS  2000 /* of one transaction: others wait for it */
#define STEP_PAGES 500  /* given back to the file system at once */
#define META_MAX   512  /* of the row about a prune */

/* ---- how far ---- */

/* The last row before the first one that is not older. Rows are stored in order of time, but for
 * clocks that were set back: only a beginning without younger rows goes. */
static int older_than(struct audit_log *log, int64_t before_ns, const struct audit_head *head,
		      int64_t *ret, struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	int rc = aqe_db_prepare(log->db, "SELECT min(seq) FROM row WHERE time_ns >= ?", &s, e);

	if (rc)
		return rc;
	aqe_stmt_bind_i64(s, 1, before_ns);
	rc = aqe_stmt_step(s, e);
	if (rc < 0)
		return rc;
	*ret = aqe_stmt_type(s, 0) == AQE_DB_INT ? aqe_stmt_i64(s, 0) - 1 : head->seq;
	return AQE_OK;
}

/* How many of `rows` are too many, the row about it counted as well: 0, or 2 at least where there
 * are as many, because one comes. */
static uint64_t above_rows(uint64_t max_rows, uint64_t rows)
{
	if (rows <= max_rows)
		return 0;
	return max_rows ? rows - max_rows + 1 : rows;
}

/* The same for a size: a guess from the mean size of a row; the caller looks again afterwards. */
static int above_size(struct audit_log *log, uint64_t max_bytes, uint64_t rows, uint64_t *ret_rows,
		      struct aqe_err *e)
{
	uint64_t size = 0, n;
	int rc = audit_size(log, &size, e);

	*ret_rows = 0;
	if (rc || size <= max_bytes)
		return rc;
	n = (uint64_t)((long double)(size - max_bytes) / (long double)size * (long double)rows) + 2;
	*ret_rows = n < rows ? n : rows;
	return AQE_OK;
}

enum rule { BY_AGE, BY_ROWS, BY_SIZE };
static const char *const RULES[] = { AUDIT_PRUNE_RULES };

/* What one row announces and some transactions do. */
struct plan {
	int64_t first, to; /* rows to remove; none when to < first */
	enum rule rule;    /* the limit that reached farthest */
};

static void reach(struct plan *p, enum rule rule, int64_t to)
{
	if (to <= p->to)
		return;
	p->to = to;
	p->rule = rule;
}

/* One row that only says what was pruned. */
static int is_told(struct audit_log *log, const struct plan *p, const struct audit_head *head,
		   bool *ret, struct aqe_err *e)
{
	int64_t n = 0;
	int rc = AQE_OK;

	if (p->first == head->seq)
		rc = audit_store_number(log,
					"SELECT count(*) FROM row WHERE kind = 10 AND reason = "
					"'" AUDIT_REASON_PRUNE "'",
					0, &n, e);
	*ret = n > 0;
	return rc;
}

/* Which rows go by all limits. */
static int make_plan(struct audit_log *log, const struct audit_prune_opts *o, struct plan *ret,
		     struct aqe_err *e)
{
	struct plan p = { 0, -1, BY_AGE };
	struct audit_head head = { .seq = 0 };
	uint64_t rows, n = 0;
	int64_t to = 0;
	bool told = false;
	int rc = audit_store_number(log, "SELECT min(seq) FROM row", 0, &p.first, e);

	if (rc == 0 && p.first > 0)
		rc = audit_store_head(log, &head, e);
	*ret = p;
	if (rc || p.first == 0)
		return rc;
	rows = (uint64_t)(head.seq - p.first + 1);
	p.to = p.first - 1;
	if (o->before_ns > 0) {
		rc = older_than(log, o->before_ns, &head, &to, e);
		reach(&p, BY_AGE, to);
	}
	reach(&p, BY_ROWS, p.first - 1 + (int64_t)above_rows(o->max_rows, rows));
	if (rc == 0 && o->max_bytes < UINT64_MAX) {
		rc = above_size(log, o->max_bytes, rows, &n, e);
		reach(&p, BY_SIZE, p.first - 1 + (int64_t)n);
	}
	if (rc == 0 && p.to >= p.first)
		rc = is_told(log, &p, &head, &told, e);
	if (rc == 0 && !told)
		*ret = p;
	return rc;
}

/* ---- one step ---- */

static int run_with(struct audit_log *log, const char *sql, int64_t value, struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	int rc = aqe_db_prepare(log->db, sql, &s, e);

	if (rc)
		return rc;
	aqe_stmt_bind_i64(s, 1, value);
	return aqe_stmt_run(s, e);
}

static int hash_at(struct audit_log *log, int64_t seq, uint8_t ret[32], struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	int rc = aqe_db_prepare(log->db, "SELECT hash FROM row WHERE seq = ?", &s, e);

	if (rc)
		return rc;
	aqe_stmt_bind_i64(s, 1, seq);
	rc = aqe_stmt_step(s, e);
	if (rc < 0)
		return rc;
	return rc == 1 && audit_store_hash(s, 0, ret)
		       ? AQE_OK
		       : aqe_err_set(e, AQE_E_MALFORMED, 0, "row %lld is missing: not pruned",
				     (long long)seq);
}

/* Removes rows up to `seq`, with the point that says so and without the points before it. */
static int cut(struct audit_log *log, int64_t seq, struct aqe_err *e)
{
	struct audit_head head = { .seq = seq };
	int rc = hash_at(log, seq, head.hash, e);

	if (rc == 0)
		rc = run_with(log, "DELETE FROM point WHERE seq < ?", seq, e);
	if (rc == 0)
		rc = audit_point_add(log, AUDIT_POINT_PRUNE, &head, NULL, e);
	if (rc == 0)
		rc = run_with(log, "DELETE FROM row WHERE seq <= ?", seq, e);
	return rc;
}

struct announcement {
	struct audit_row row;
	char meta[META_MAX];
};

/* The row that says so, under a signature of its own. */
static int announce(struct audit_log *log, const struct audit_prune_opts *o, const struct plan *p,
		    const struct audit_prune_result *r, struct announcement *ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(META_MAX);
	struct audit_row row = AUDIT_ROW_INIT(AUDIT_SYSTEM, AUDIT_CHANGED);
	const uint64_t rows = r->rows + (uint64_t)(p->to - p->first + 1);
	char before[AUDIT_TIME_TEXT];
	struct audit_head head;
	int rc;

	aqe_buf_addf(&b, "{\"from\":%lld,\"to\":%lld,\"rows\":%llu",
		     (long long)(r->rows ? r->from_seq : p->first), (long long)p->to,
		     (unsigned long long)rows);
	audit_time_format(o->before_ns, before);
	if (o->before_ns > 0)
		aqe_buf_addf(&b, ",\"before\":\"%s\"", before);
	if (o->max_rows < UINT64_MAX)
		aqe_buf_addf(&b, ",\"max_rows\":%llu", (unsigned long long)o->max_rows);
	if (o->max_bytes < UINT64_MAX)
		aqe_buf_addf(&b, ",\"max_bytes\":%llu", (unsigned long long)o->max_bytes);
	aqe_buf_putc(&b, '}');
	rc = aqe_buf_ok(&b, e);
	row.reason = AUDIT_REASON_PRUNE;
	row.rule = RULES[p->rule];
	row.meta = aqe_buf_str(&b);
	if (rc == 0)
		rc = audit_store_add(log, &row, &head, e);
	if (rc == 0)
		rc = audit_point_add(log, AUDIT_POINT_HEAD, &head, NULL, e);
	if (rc)
		return rc;
	ret->row = row;
	(void)snprintf(ret->meta, sizeof(ret->meta), "%s", aqe_buf_str(&b));
	ret->row.meta = ret->meta;
	return AQE_OK;
}

/* Removes up to STEP_ROWS of a plan, and takes them out of it. */
static int step(struct audit_log *log, struct plan *p, struct audit_prune_result *r,
		struct aqe_err *e)
{
	int64_t first = 0, to = p->to;
	int rc = audit_store_number(log, "SELECT min(seq) FROM row", 0, &first, e);

	if (rc)
		return rc;
	if (first == 0 || to < first) { /* somebody else did */
		p->first = p->to + 1;
		return AQE_OK;
	}
	if (to - first >= STEP_ROWS)
		to = first + STEP_ROWS - 1;
	rc = cut(log, to, e);
	if (rc)
		return rc;
	if (!r->rows)
		r->from_seq = first;
	r->rows += (uint64_t)(to - first + 1);
	r->to_seq = to;
	p->first = to + 1;
	return AQE_OK;
}

/* One transaction: a step of `p`, which is made and announced first when it has nothing to do. */
static int one_transaction(struct audit_log *log, const struct audit_prune_opts *o, struct plan *p,
			   struct audit_prune_result *r, bool *ret_left, struct aqe_err *e)
{
	struct audit_prune_result done = *r;
	struct announcement said = { .meta = "" };
	const bool is_new = p->to < p->first;
	int rc = aqe_db_begin(log->db, e);

	if (rc == 0 && is_new)
		rc = make_plan(log, o, p, e);
	*ret_left = p->to >= p->first;
	if (rc == 0 && is_new && *ret_left)
		rc = announce(log, o, p, r, &said, e);
	if (rc == 0 && *ret_left)
		rc = step(log, p, &done, e);
	if (rc == 0)
		rc = aqe_db_commit(log->db, e);
	aqe_db_rollback(log->db); /* nothing after a commit */
	if (rc)
		return rc;
	if (said.row.seq && log->o.added)
		log->o.added(&said.row);
	*r = done;
	return AQE_OK;
}

/* ---- space ---- */

static int vacuum(struct audit_log *log, struct aqe_err *e)
{
	int64_t before = 0, unused = 0;
	char sql[64];
	int rc = audit_store_number(log, "PRAGMA freelist_count", 0, &unused, e);

	(void)snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%d)", STEP_PAGES);
	while (rc == 0 && unused > 0) {
		before = unused;
		rc = aqe_db_begin(log->db, e);
		if (rc == 0)
			rc = aqe_db_exec(log->db, sql, e);
		if (rc == 0)
			rc = aqe_db_commit(log->db, e);
		aqe_db_rollback(log->db); /* nothing after a commit */
		if (rc == 0)
			rc = audit_store_number(log, "PRAGMA freelist_count", 0, &unused, e);
		if (unused >= before)
			break; /* others write meanwhile */
	}
	return rc;
}

int audit_prune(struct audit_log *log, const struct audit_prune_opts *o,
		struct audit_prune_result *ret, struct aqe_err *e)
{
	struct audit_prune_result r = { 0 };
	struct plan p = { 0, -1, BY_AGE };
	bool left = true;
	int rc = AQE_OK;

	if (log->o.mode != AUDIT_WRITE)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "audit log: opened for reading");
	if (!audit_sign_has_key(&log->o))
		return aqe_err_set(
			e, AQE_E_ABSENT, 0,
			"audit log: no signing key: an unsigned cut could not be told from "
			"tampering");
	rc = audit_size(log, &r.before, e);
	while (rc == 0 && left)
		rc = one_transaction(log, o, &p, &r, &left, e);
	if (rc == 0 && r.rows > 0)
		rc = vacuum(log, e);
	if (rc == 0)
		rc = audit_size(log, &r.after, e);
	if (rc)
		return aqe_err_wrap(e, "audit log: prune");
	*ret = r;
	return AQE_OK;
}
