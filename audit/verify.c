/* SPDX-License-Identifier: MIT */
#include "audit/verify.h"

#include <stdio.h>
#include <string.h>

#include "audit/chain.h"
#include "audit/check.h"
#include "audit/query.h"
#include "audit/schema.h"
#include "audit/store.h"
#include "shim/core/cleanup.h"
#include "shim/core/db.h"
#include "shim/core/text.h"

static void cleanup_check(struct audit_check *const *c)
{
	audit_check_free(*c);
}

/* Every function below returns AQE_OK or an error of the store; faults are in the verdict. */

/* ---- the schema ---- */

static bool text_is(struct aqe_stmt *s, int at, const char *want)
{
	size_t n;
	const char *v = aqe_stmt_bytes(s, at, &n);

	return v && n == strlen(want) && memcmp(v, want, n) == 0;
}

/* ANALYZE leaves these; they only help the planner. */
static bool is_statistics(struct aqe_stmt *s)
{
	return text_is(s, 0, "table") &&
	       (text_is(s, 1, "sqlite_stat1") || text_is(s, 1, "sqlite_stat4"));
}

static int check_schema(struct audit_log *log, struct audit_check *c, struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	size_t i = 0, n;
	int rc = aqe_db_prepare(log->db,
				"SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name",
				&s, e);

	if (rc)
		return rc;
	while ((rc = aqe_stmt_step(s, e)) == 1) {
		const struct audit_object *o = i < AUDIT_OBJECTS_COUNT ? &AUDIT_OBJECTS[i] : NULL;
		const char *name = aqe_stmt_bytes(s, 1, &n);

		if (is_statistics(s))
			continue;
		if (!o || !text_is(s, 0, o->type) || !text_is(s, 1, o->name) ||
		    !text_is(s, 2, o->table) || !text_is(s, 3, o->sql)) {
			AQE_AUTO_BUF struct aqe_buf shown = AQE_BUF_INIT(256);

			aqe_buf_quote(&shown, name ? name : "?", 100);
			(void)audit_check_fault(c, AUDIT_FAULT_SCHEMA, 0,
						"'%s' in the database is not ours or was changed",
						aqe_buf_str(&shown));
			return AQE_OK;
		}
		i++;
	}
	if (rc == 0 && i < AUDIT_OBJECTS_COUNT)
		(void)audit_check_fault(c, AUDIT_FAULT_SCHEMA, 0, "'%s' is missing in the database",
					AUDIT_OBJECTS[i].name);
	return rc;
}

/* SQLite compares every index with its table, and looks at every page. */
static int check_indexes(struct audit_log *log, struct audit_check *c, struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	AQE_AUTO_BUF struct aqe_buf shown = AQE_BUF_INIT(1024);
	const char *text;
	size_t n;
	int rc = AQE_OK;

	if (c->o->flags & AUDIT_VERIFY_NO_INDEXES) {
		c->v->open |= AUDIT_OPEN_INDEXES;
		return AQE_OK;
	}
	rc = aqe_db_prepare(log->db, "PRAGMA integrity_check(1)", &s, e);
	if (rc == 0)
		rc = aqe_stmt_step(s, e);
	if (rc != 1)
		return rc;
	if (text_is(s, 0, "ok"))
		return AQE_OK;
	text = aqe_stmt_bytes(s, 0, &n);
	aqe_buf_quote(&shown, text ? text : "?", 300);
	(void)audit_check_fault(c, AUDIT_FAULT_SCHEMA, 0, "an index or page is damaged: %s",
				aqe_buf_str(&shown));
	return AQE_OK;
}

/* ---- where the chain begins ---- */

static int begin(struct audit_log *log, struct audit_check *c, struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	uint8_t hash[32];
	struct audit_point p;
	struct audit_id id;
	int64_t chains = 0;
	int rc = audit_store_number(log, "SELECT count(*) FROM chain", 0, &chains, e);

	log->has_id = false; /* as it is in the state that is judged */
	if (rc == 0)
		rc = audit_identity(log, &id, e);
	if (rc)
		return rc;
	if (chains != 1) {
		(void)audit_check_fault(c, AUDIT_FAULT_SCHEMA, 0,
					"the database names more than one identity");
		return AQE_OK;
	}
	rc = aqe_db_prepare(log->db,
			    "SELECT " AUDIT_POINT_COLUMNS " FROM point WHERE kind = 2 "
			    "ORDER BY seq DESC LIMIT 1",
			    &s, e);
	if (rc == 0)
		rc = aqe_stmt_step(s, e);
	if (rc < 0)
		return rc;
	if (rc == 0) {
		audit_genesis(&id, hash);
		(void)audit_check_begin(c, &id, 0, hash);
		return AQE_OK;
	}
	if (!audit_point_read(s, &id, &p)) {
		(void)audit_check_fault(c, AUDIT_FAULT_TYPE, 0,
					"a checkpoint has a value of a type that we never write");
		return AQE_OK;
	}
	c->pruned = p.seq > 0;
	(void)audit_check_begin(c, &id, p.seq, p.hash);
	return AQE_OK;
}

/* ---- rows and points side by side ---- */

struct points {
	struct aqe_stmt *s;
	struct audit_point next;
	bool has;
};

static int next_point(struct points *q, struct audit_check *c, struct aqe_err *e)
{
	int rc = aqe_stmt_step(q->s, e);

	q->has = rc == 1;
	if (rc == 1 && !audit_point_read(q->s, &c->v->id, &q->next)) {
		q->has = false;
		(void)audit_check_fault(c, AUDIT_FAULT_TYPE, 0,
					"a checkpoint has a value of a type that we never write");
	}
	return rc < 0 ? rc : AQE_OK;
}

/* Judges all points up to row `seq`. */
static int pass_points(struct points *q, struct audit_check *c, int64_t seq, struct aqe_err *e)
{
	int rc = AQE_OK;

	while (rc == 0 && q->has && q->next.seq <= seq && audit_check_point(c, &q->next))
		rc = next_point(q, c, e);
	return rc;
}

/* One column as it is stored, whatever the row's reader would make of it. */
static bool encode_column(struct audit_check *c, const struct aqe_db_value *v,
			  const struct audit_field *f)
{
	bool text = f->type == AUDIT_FIELD_TEXT || f->type == AUDIT_FIELD_JSON;

	if (v->type == AQE_DB_NULL && (text || f->type == AUDIT_FIELD_NUMBER)) {
		audit_enc_none(&c->enc);
		return true;
	}
	if (v->type == AQE_DB_INT && !text) {
		audit_enc_int(&c->enc, v->i);
		return v->i >= 0 && v->i <= f->max;
	}
	if (v->type != AQE_DB_TEXT || !text)
		return false;
	audit_enc_text(&c->enc, v->p, v->n);
	return v->n <= (size_t)f->max && !memchr(v->p, '\0', v->n);
}

static void note_gap(struct audit_check *c, struct aqe_stmt *s)
{
	uint64_t lost = 0;
	size_t n;
	const char *reason, *meta;

	reason = aqe_stmt_bytes(s, 13, &n);
	if (!reason || n != strlen(AUDIT_REASON_GAP) || memcmp(reason, AUDIT_REASON_GAP, n) != 0)
		return;
	meta = aqe_stmt_bytes(s, 22, &n);
	c->no_memory = audit_gap_lost(meta, n, &lost, NULL) != 0 || c->no_memory;
	audit_check_gap(c, lost);
}

static bool check_row(struct audit_check *c, struct aqe_stmt *s)
{
	int64_t seq = aqe_stmt_i64(s, 0);
	struct aqe_db_value v;

	if (!audit_check_seq(c, seq, NULL))
		return false;
	for (int at = 0; at < AUDIT_FIELDS_COUNT; at++) {
		aqe_stmt_value(s, at, &v);
		if (!encode_column(c, &v, &AUDIT_FIELDS[at]))
			return audit_check_fault(c, AUDIT_FAULT_TYPE, seq,
						 "'%s' of row %lld has a value that we never write",
						 AUDIT_FIELDS[at].name, (long long)seq);
		if (AUDIT_FIELDS[at].type == AUDIT_FIELD_KIND && v.i == AUDIT_SYSTEM)
			note_gap(c, s);
	}
	aqe_stmt_value(s, AUDIT_FIELDS_COUNT, &v);
	if (v.type != AQE_DB_BLOB || v.n != 32)
		return audit_check_fault(c, AUDIT_FAULT_TYPE, seq, "row %lld has no hash",
					 (long long)seq);
	return audit_check_row(c, seq, v.p);
}

static int check_rows(struct audit_log *log, struct audit_check *c, struct points *q,
		      struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	/* the table's own order: an index could lie */
	int rc =
		aqe_db_prepare(log->db,
			       "SELECT " AUDIT_COLUMNS " FROM row NOT INDEXED ORDER BY seq", &s, e);

	if (rc == 0)
		rc = next_point(q, c, e);
	if (rc == 0)
		rc = pass_points(q, c, c->last, e);
	while (rc == 0 && !c->v->fault) {
		rc = aqe_stmt_step(s, e);
		if (rc != 1)
			break;
		rc = AQE_OK;
		if (check_row(c, s))
			rc = pass_points(q, c, c->last, e);
		if (c->no_memory)
			rc = aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	}
	if (rc == 0 && !c->v->fault)
		rc = pass_points(q, c, INT64_MAX, e);
	return rc;
}

/* ---- all ---- */

static int judge(struct audit_log *log, struct audit_check *c, struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *points = NULL;
	struct points q = { 0 };
	int rc = check_schema(log, c, e);

	if (rc || c->v->fault)
		return rc;
	rc = begin(log, c, e);
	if (rc || c->v->fault)
		return rc;
	rc = aqe_db_prepare(log->db,
			    "SELECT " AUDIT_POINT_COLUMNS " FROM point ORDER BY seq, kind DESC",
			    &points, e);
	q.s = points;
	if (rc == 0)
		rc = check_rows(log, c, &q, e);
	if (rc == 0 && audit_check_end(c))
		rc = check_indexes(log, c, e);
	return rc;
}

int audit_verify(struct audit_log *log, const struct audit_verify_opts *o,
		 struct audit_verdict *ret, struct aqe_err *e)
{
	AQE_CLEANUP(cleanup_check) struct audit_check *c = NULL;
	struct aqe_err own = AQE_ERR_INIT;
	bool mine = !aqe_db_in_transaction(log->db);
	int rc = audit_check_new(o, ret, &c, &own);

	if (rc == 0 && mine)
		rc = audit_snapshot_begin(log, &own);
	if (rc == 0)
		rc = judge(log, c, &own);
	if (mine)
		audit_snapshot_end(log);
	if (rc == AQE_E_MALFORMED) {
		(void)audit_check_fault(c, AUDIT_FAULT_CORRUPT, c->last + 1, "%s", own.text);
		return AQE_OK;
	}
	if (rc && e)
		*e = own;
	return rc;
}

int audit_verify_at(const struct audit_opts *at, const struct audit_verify_opts *o,
		    struct audit_verdict *ret, struct aqe_err *e)
{
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	struct audit_opts read = *at;
	struct aqe_err own = AQE_ERR_INIT;
	int rc;

	read.mode = AUDIT_READ;
	rc = audit_open(&read, &log, &own);
	if (rc == 0)
		return audit_verify(log, o, ret, e);
	if (rc != AQE_E_MALFORMED) {
		if (e)
			*e = own;
		return rc;
	}
	memset(ret, 0, sizeof(*ret));
	ret->fault = AUDIT_FAULT_CORRUPT;
	(void)snprintf(ret->text, sizeof(ret->text), "%s", own.text);
	return AQE_OK;
}
