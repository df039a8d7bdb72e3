/* SPDX-License-Identifier: MIT */
#include "audit/query.h"

#include <stdio.h>
#include <string.h>

#include "audit/filter.h"
#include "audit/schema.h"
#include "audit/store.h"
#include "shim/core/cleanup.h"
#include "shim/core/db.h"
#include "shim/core/text.h"

#define SQL_MAX 4096

/* ---- a row from columns ---- */

static bool read_int(struct aqe_stmt *s, int at, const struct audit_field *f, struct audit_row *r)
{
	enum aqe_db_type t = aqe_stmt_type(s, at);
	int64_t v = t == AQE_DB_INT ? aqe_stmt_i64(s, at) : AUDIT_NONE;

	if (t != AQE_DB_INT && (t != AQE_DB_NULL || f->type != AUDIT_FIELD_NUMBER))
		return false;
	if (t == AQE_DB_INT && (v < 0 || v > f->max))
		return false;
	audit_field_set_int(r, f, v);
	return true;
}

static bool read_text(struct aqe_stmt *s, int at, const struct audit_field *f, struct audit_row *r)
{
	enum aqe_db_type t = aqe_stmt_type(s, at);
	size_t n;
	const char *v = t == AQE_DB_TEXT ? aqe_stmt_bytes(s, at, &n) : NULL;

	if (t != AQE_DB_TEXT && t != AQE_DB_NULL)
		return false;
	if (v && (n > (size_t)f->max || memchr(v, '\0', n)))
		return false;
	audit_field_set_text(r, f, v);
	return true;
}

int audit_row_read(struct aqe_stmt *s, struct audit_row *ret, struct aqe_err *e)
{
	int at;

	for (at = 0; at < AUDIT_FIELDS_COUNT; at++) {
		const struct audit_field *f = &AUDIT_FIELDS[at];
		bool text = f->type == AUDIT_FIELD_TEXT || f->type == AUDIT_FIELD_JSON;

		if (!(text ? read_text(s, at, f, ret) : read_int(s, at, f, ret)))
			return aqe_err_set(e, AQE_E_MALFORMED, 0,
					   "audit log: '%s' of row %lld has a value we never write",
					   f->name, (long long)aqe_stmt_i64(s, 0));
	}
	if (!audit_store_hash(s, at, ret->hash))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "audit log: row %lld has no hash",
				   (long long)aqe_stmt_i64(s, 0));
	return AQE_OK;
}

/* ---- filters as SQL ---- */

void audit_filter_sql(const struct audit_filter *f, struct aqe_buf *sql)
{
	const struct {
		const char *column;
		bool set;
	} terms[] = {
		{ "container", f->container },
		{ "agent_id", f->agent_id },
		{ "agent_type", f->agent_type },
		{ "domain", f->domain },
	};

	aqe_buf_puts(sql, " WHERE 1");
	if (f->since_ns > 0)
		aqe_buf_addf(sql, " AND time_ns >= %lld", (long long)f->since_ns);
	if (f->until_ns < INT64_MAX)
		aqe_buf_addf(sql, " AND time_ns <= %lld", (long long)f->until_ns);
	if (f->after_seq > 0)
		aqe_buf_addf(sql, " AND seq > %lld", (long long)f->after_seq);
	if (f->until_seq > 0)
		aqe_buf_addf(sql, " AND seq <= %lld", (long long)f->until_seq);
	if (f->kind)
		aqe_buf_addf(sql, " AND kind = %d", (int)f->kind);
	if (f->action)
		aqe_buf_addf(sql, " AND action = %d", (int)f->action);
	for (size_t i = 0; i < AQE_COUNT(terms); i++) {
		if (terms[i].set)
			aqe_buf_addf(sql, " AND %s = ?%zu", terms[i].column, i + 1);
	}
}

void audit_filter_bind(const struct audit_filter *f, struct aqe_stmt *s)
{
	const char *const texts[] = { f->container, f->agent_id, f->agent_type, f->domain };

	for (size_t i = 0; i < AQE_COUNT(texts); i++) {
		if (texts[i])
			aqe_stmt_bind_text(s, (int)i + 1, texts[i]);
	}
}

int audit_filter_prepare(struct audit_log *log, const char *select, const struct audit_filter *f,
			 const char *tail, struct aqe_stmt **ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf sql = AQE_BUF_INIT(SQL_MAX);
	int rc;

	aqe_buf_puts(&sql, select);
	audit_filter_sql(f, &sql);
	aqe_buf_puts(&sql, tail);
	rc = aqe_buf_ok(&sql, e);
	if (rc == 0)
		rc = aqe_db_prepare(log->db, sql.p, ret, e);
	if (rc)
		return aqe_err_wrap(e, "audit log");
	audit_filter_bind(f, *ret);
	return AQE_OK;
}

/* ---- queries ---- */

static int64_t sql_limit(uint64_t v)
{
	return v > INT64_MAX ? -1 : (int64_t)v; /* -1: none */
}

static int prepare_rows(struct audit_log *log, const struct audit_filter *f, struct aqe_stmt **ret,
			struct aqe_err *e)
{
	static const char *const ORDER[] = {
		[AUDIT_OLDEST_FIRST] = "time_ns, seq",
		[AUDIT_NEWEST_FIRST] = "time_ns DESC, seq DESC",
		[AUDIT_RECENT] = "time_ns DESC, seq DESC",
		[AUDIT_BY_SEQ] = "seq",
	};
	bool by_seq = f->after_seq > 0;
	char tail[200];

	(void)snprintf(tail, sizeof(tail), " ORDER BY %s LIMIT %lld OFFSET %lld%s",
		       by_seq ? "seq" : ORDER[f->order], (long long)sql_limit(f->limit),
		       (long long)(f->offset > INT64_MAX ? INT64_MAX : (int64_t)f->offset),
		       f->order == AUDIT_RECENT && !by_seq ? ") ORDER BY time_ns, seq" : "");
	return audit_filter_prepare(log,
				    f->order == AUDIT_RECENT && !by_seq
					    ? "SELECT * FROM (SELECT " AUDIT_COLUMNS " FROM row"
					    : "SELECT " AUDIT_COLUMNS " FROM row",
				    f, tail, ret, e);
}

int audit_query(struct audit_log *log, const struct audit_filter *f, audit_row_fn *fn, void *arg,
		struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	struct audit_row row;
	int rc = prepare_rows(log, f, &s, e);

	if (rc)
		return rc;
	while ((rc = aqe_stmt_step(s, e)) == 1) {
		rc = audit_row_read(s, &row, e);
		if (rc == 0)
			rc = fn(arg, &row, e);
		if (rc)
			return rc;
	}
	return rc ? aqe_err_wrap(e, "audit log") : AQE_OK;
}

int audit_count(struct audit_log *log, const struct audit_filter *f, uint64_t *ret,
		struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	int rc = audit_filter_prepare(log, "SELECT count(*) FROM row", f, "", &s, e);

	if (rc == 0)
		rc = aqe_stmt_step(s, e);
	if (rc != 1)
		return rc;
	*ret = (uint64_t)aqe_stmt_i64(s, 0);
	return AQE_OK;
}

int audit_last_seq(struct audit_log *log, int64_t *ret, struct aqe_err *e)
{
	struct audit_head head;
	int rc;

	if (log->o.mode == AUDIT_READ)
		audit_log_catch_up(&log->o);
	rc = audit_store_head(log, &head, e);
	if (rc)
		return aqe_err_wrap(e, "audit log");
	*ret = head.seq;
	return AQE_OK;
}

int audit_snapshot_begin(struct audit_log *log, struct aqe_err *e)
{
	int rc = aqe_db_begin_read(log->db, e);

	return rc ? aqe_err_wrap(e, "audit log") : AQE_OK;
}

void audit_snapshot_end(struct audit_log *log)
{
	aqe_db_rollback(log->db); /* a reader has nothing to keep */
}
