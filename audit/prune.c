/* SPDX-License-Identifier: MIT */
#include "audit/prune.h"

#include <stdio.h>
#include <string.h>

#include "audit/sign.h"
#include "audit/store.h"
#include "shim/core/cleanup.h"

#define STEP_ROWS  2000 /* of one transaction: others wait for it */
#define STEP_PAGES 500  /* given back to the file system at once */

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

/* A guess from the mean size of a row; the caller looks again afterwards. */
static int above_size(struct audit_log *log, uint64_t max_bytes, int64_t rows, uint64_t *ret_rows,
		      struct aqe_err *e)
{
	uint64_t size = 0;
	int rc = audit_size(log, &size, e);

	*ret_rows = 0;
	if (rc || size <= max_bytes || rows <= 0)
		return rc;
	*ret_rows = (uint64_t)((long double)(size - max_bytes) / (long double)size *
			       (long double)rows) +
		    1;
	return AQE_OK;
}

/* The last row to remove by all limits; less than `first` when none is. */
static int target(struct audit_log *log, const struct audit_prune_opts *o, int64_t first,
		  int64_t *ret, struct aqe_err *e)
{
	struct audit_head head;
	int64_t to = first - 1, by_time = 0;
	uint64_t by_size = 0, rows;
	int rc = audit_store_head(log, &head, e);

	if (rc)
		return rc;
	rows = (uint64_t)(head.seq - first + 1);
	if (o->before_ns > 0) {
		rc = older_than(log, o->before_ns, &head, &by_time, e);
		to = by_time > to ? by_time : to;
	}
	if (rc == 0 && rows > o->max_rows && head.seq - (int64_t)o->max_rows > to)
		to = head.seq - (int64_t)o->max_rows;
	if (rc == 0 && o->max_bytes < UINT64_MAX) {
		rc = above_size(log, o->max_bytes, (int64_t)rows, &by_size, e);
		by_size = by_size > rows ? rows : by_size;
		to = first - 1 + (int64_t)by_size > to ? first - 1 + (int64_t)by_size : to;
	}
	*ret = to;
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

/* One transaction; *ret_left tells whether there is more to do. */
static int step(struct audit_log *log, const struct audit_prune_opts *o,
		struct audit_prune_result *r, bool *ret_left, struct aqe_err *e)
{
	int64_t first = 0, to = 0;
	int rc = audit_store_number(log, "SELECT min(seq) FROM row", 0, &first, e);

	*ret_left = false;
	if (rc || first == 0)
		return rc;
	rc = target(log, o, first, &to, e);
	if (rc || to < first)
		return rc;
	if (to - first >= STEP_ROWS)
		to = first + STEP_ROWS - 1;
	rc = cut(log, to, e);
	if (rc)
		return rc;
	r->rows += (uint64_t)(to - first + 1);
	r->to_seq = to;
	*ret_left = true;
	return AQE_OK;
}

static int one_transaction(struct audit_log *log, const struct audit_prune_opts *o,
			   struct audit_prune_result *r, bool *ret_left, struct aqe_err *e)
{
	struct audit_prune_result done = *r;
	int rc = aqe_db_begin(log->db, e);

	if (rc == 0)
		rc = step(log, o, &done, ret_left, e);
	if (rc == 0)
		rc = aqe_db_commit(log->db, e);
	aqe_db_rollback(log->db); /* nothing after a commit */
	if (rc == 0)
		*r = done;
	return rc;
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
		rc = one_transaction(log, o, &r, &left, e);
	if (rc == 0 && r.rows > 0)
		rc = vacuum(log, e);
	if (rc == 0)
		rc = audit_size(log, &r.after, e);
	if (rc)
		return aqe_err_wrap(e, "audit log: prune");
	*ret = r;
	return AQE_OK;
}
