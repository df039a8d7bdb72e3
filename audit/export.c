/* SPDX-License-Identifier: MIT */
#include "audit/export.h"

#include <stdio.h>
#include <string.h>

#include "audit/chain.h"
#include "audit/emit.h"
#include "audit/filter.h"
#include "audit/schema.h"
#include "audit/sign.h"
#include "audit/store.h"
#include "shim/core/cleanup.h"
#include "shim/core/sha256.h"
#include "shim/core/text.h"

#define CHUNK ((size_t)64 * 1024) /* handed to the writer at once */

/* An export under way. */
struct out {
	struct audit_log *log;
	enum audit_format format;
	struct audit_sink sink;
	struct aqe_buf buf;
	struct aqe_sha256_ctx sha; /* of all that was handed out */
	struct audit_export_header h;
	uint64_t rows, points;
	int64_t last_seq;
	struct aqe_stmt *before; /* hash of a row, for rows whose predecessor is left out */
	struct aqe_stmt *point;  /* points not yet written */
	struct audit_point next;
	bool has_point;
};

/* ---- bytes ---- */

static int flush(struct out *o, size_t at_least, struct aqe_err *e)
{
	int rc = aqe_buf_ok(&o->buf, e);

	if (rc || o->buf.len == 0 || o->buf.len < at_least)
		return rc;
	aqe_sha256_add(&o->sha, o->buf.p, o->buf.len);
	rc = o->sink.write(o->sink.arg, o->buf.p, o->buf.len, e);
	aqe_buf_clear(&o->buf);
	return rc;
}

static bool has_parts(const struct out *o)
{
	return o->format == AUDIT_JSONL || o->format == AUDIT_JSON;
}

/* ---- the span ---- */

static bool is_span(const struct audit_filter *f)
{
	return !f->container && !f->agent_id && !f->agent_type && !f->domain && !f->kind &&
	       !f->action;
}

/* A span of time becomes one of seq, so that no row in between is left out even if the clock was
 * set back meanwhile. */
static int narrow(struct audit_log *log, const struct audit_filter *f, struct audit_filter *ret,
		  struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	int rc;

	*ret = *f;
	ret->order = AUDIT_BY_SEQ;
	if (!is_span(f) || (f->since_ns <= 0 && f->until_ns == INT64_MAX))
		return AQE_OK;
	rc = audit_filter_prepare(log, "SELECT min(seq), max(seq) FROM row", f, "", &s, e);
	if (rc == 0)
		rc = aqe_stmt_step(s, e);
	if (rc < 0)
		return rc;
	ret->since_ns = 0;
	ret->until_ns = INT64_MAX;
	if (aqe_stmt_type(s, 0) != AQE_DB_INT) {
		ret->limit = 0;
		return AQE_OK;
	}
	if (aqe_stmt_i64(s, 0) > 1)
		ret->after_seq = aqe_stmt_i64(s, 0) - 1;
	ret->until_seq = aqe_stmt_i64(s, 1);
	return AQE_OK;
}

/* Hash of the row with that number, of the point that stands for it, or of the genesis. */
static int hash_of(struct out *o, int64_t seq, uint8_t ret[32], struct aqe_err *e)
{
	int rc = AQE_OK;

	if (!o->before)
		rc = aqe_db_prepare(o->log->db,
				    "SELECT hash FROM row WHERE seq = ?1 UNION ALL "
				    "SELECT hash FROM point WHERE seq = ?1 LIMIT 1",
				    &o->before, e);
	if (rc)
		return rc;
	aqe_stmt_bind_i64(o->before, 1, seq);
	rc = aqe_stmt_step(o->before, e);
	if (rc < 0)
		return rc;
	if (rc == 1 && audit_store_hash(o->before, 0, ret)) {
		aqe_stmt_reset(o->before);
		return AQE_OK;
	}
	aqe_stmt_reset(o->before);
	if (seq != 0)
		return aqe_err_set(e, AQE_E_MALFORMED, 0,
				   "row %lld is missing: the log does not verify", (long long)seq);
	audit_genesis(&o->h.id, ret);
	return AQE_OK;
}

/* ---- lines ---- */

static int next_point(struct out *o, struct aqe_err *e)
{
	int rc = aqe_stmt_step(o->point, e);

	o->has_point = rc == 1;
	if (rc == 1 && !audit_point_read(o->point, &o->h.id, &o->next))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "a checkpoint has a wrong value");
	return rc < 0 ? rc : AQE_OK;
}

/* Points of rows up to `seq`. */
static int write_points(struct out *o, int64_t seq, struct aqe_err *e)
{
	bool lines = o->format == AUDIT_JSONL;
	int rc = AQE_OK;

	while (rc == 0 && o->has_point && o->next.seq <= seq) {
		aqe_buf_puts(&o->buf, lines ? "{\"point\":" : o->points ? ",\n" : "\n");
		audit_point_emit(&o->next, &o->buf);
		aqe_buf_puts(&o->buf, lines ? "}\n" : "");
		o->points++;
		rc = flush(o, CHUNK, e);
		if (rc == 0)
			rc = next_point(o, e);
	}
	return rc;
}

static void emit_row(struct out *o, const struct audit_row *r, const uint8_t *prev)
{
	switch (o->format) {
	case AUDIT_JSONL:
		audit_row_json_after(r, prev, &o->buf);
		break;
	case AUDIT_JSON:
		aqe_buf_puts(&o->buf, o->rows ? ",\n" : "\n");
		audit_row_json_after(r, prev, &o->buf);
		return;
	case AUDIT_CSV:
		audit_row_csv(r, &o->buf);
		break;
	case AUDIT_OCSF:
		audit_row_ocsf(r, &o->buf);
		break;
	case AUDIT_FORMAT_COUNT:
		break;
	}
	aqe_buf_puts(&o->buf, o->format == AUDIT_CSV ? "\r\n" : "\n");
}

static int write_row(void *arg, const struct audit_row *r, struct aqe_err *e)
{
	struct out *o = arg;
	uint8_t prev[32];
	bool gap = has_parts(o) && r->seq != o->last_seq + 1;
	int rc = gap ? hash_of(o, r->seq - 1, prev, e) : AQE_OK;

	if (rc)
		return rc;
	emit_row(o, r, gap ? prev : NULL);
	o->rows++;
	o->last_seq = r->seq;
	rc = flush(o, CHUNK, e);
	if (rc == 0 && o->format == AUDIT_JSONL)
		rc = write_points(o, r->seq, e);
	return rc;
}

/* ---- beginning and end ---- */

/* How many rows there will be, and seq of the first; 0 when there is none. */
static int count_rows(struct audit_log *log, const struct audit_filter *f, uint64_t *ret_rows,
		      int64_t *ret_first, struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	uint64_t n = 0;
	char tail[64];
	int rc = audit_count(log, f, &n, e);

	n = n > f->offset ? n - f->offset : 0;
	*ret_rows = n < f->limit ? n : f->limit;
	*ret_first = 0;
	if (rc || *ret_rows == 0)
		return rc;
	(void)snprintf(tail, sizeof(tail), " ORDER BY seq LIMIT 1 OFFSET %llu",
		       (unsigned long long)f->offset);
	rc = audit_filter_prepare(log, "SELECT seq FROM row", f, tail, &s, e);
	if (rc == 0)
		rc = aqe_stmt_step(s, e);
	if (rc == 1)
		*ret_first = aqe_stmt_i64(s, 0);
	return rc < 0 ? rc : AQE_OK;
}

static int fill_header(struct out *o, const struct audit_filter *f, struct aqe_err *e)
{
	struct audit_head head;
	int64_t first = 0;
	int rc = audit_identity(o->log, &o->h.id, e);

	if (rc == 0)
		rc = audit_store_head(o->log, &head, e);
	if (rc == 0)
		rc = count_rows(o->log, f, &o->h.rows, &first, e);
	if (rc)
		return rc;
	o->h.head_seq = head.seq;
	memcpy(o->h.head_hash, head.hash, 32);
	o->h.made_ns = audit_now_ns();
	o->h.complete = is_span(f);
	/* an export of nothing stands at the head */
	o->h.after_seq = first ? first - 1 : head.seq;
	o->last_seq = o->h.after_seq;
	return hash_of(o, o->h.after_seq, o->h.after_hash, e);
}

static int open_parts(struct out *o, struct aqe_err *e)
{
	int rc;

	if (o->format == AUDIT_CSV) {
		audit_csv_heading(&o->buf);
		aqe_buf_puts(&o->buf, "\r\n");
	}
	if (!has_parts(o))
		return AQE_OK;
	rc = aqe_db_prepare(o->log->db,
			    "SELECT " AUDIT_POINT_COLUMNS " FROM point ORDER BY seq, kind DESC",
			    &o->point, e);
	if (rc == 0)
		rc = next_point(o, e);
	if (rc)
		return rc;
	aqe_buf_puts(&o->buf, o->format == AUDIT_JSON ? "{\"header\":" : "");
	audit_header_emit(&o->h, &o->buf);
	aqe_buf_puts(&o->buf, o->format == AUDIT_JSON ? ",\n\"rows\":[" : "\n");
	return o->format == AUDIT_JSONL ? write_points(o, o->h.after_seq, e) : AQE_OK;
}

static int sign_trailer(struct out *o, struct audit_export_trailer *t, struct aqe_err *e)
{
	uint8_t data[AUDIT_EXPORT_SIGNED];
	struct aqe_err why = AQE_ERR_INIT;
	struct audit_key k;
	int rc = AQE_OK;

	if (!audit_sign_has_key(&o->log->o))
		return AQE_OK;
	/* who may read the log but not the key makes an export without a signature */
	rc = audit_sign_load(&o->log->o, &k, &why);
	if (rc)
		return rc == AQE_E_NOMEM ? aqe_err_set(e, rc, 0, "%s", why.text) : AQE_OK;
	memcpy(t->key, k.public_key, 32);
	audit_trailer_signed(t, data);
	t->is_signed = audit_sign(&k, data, sizeof(data), t->sig, NULL) == 0;
	audit_sign_wipe(&k);
	return AQE_OK;
}

static int close_parts(struct out *o, struct audit_export_trailer *t, struct aqe_err *e)
{
	struct aqe_sha256_ctx sha;
	int rc = AQE_OK;

	if (!has_parts(o))
		return flush(o, 0, e);
	if (o->format == AUDIT_JSON) {
		aqe_buf_puts(&o->buf, "\n],\n\"points\":[");
		rc = write_points(o, o->last_seq, e);
		aqe_buf_puts(&o->buf, "\n]");
	}
	if (rc == 0)
		rc = flush(o, 0, e);
	if (rc)
		return rc;
	t->rows = o->rows;
	t->points = o->points;
	sha = o->sha;
	aqe_sha256_end(&sha, t->sha256);
	rc = sign_trailer(o, t, e);
	if (rc)
		return rc;
	aqe_buf_puts(&o->buf, o->format == AUDIT_JSON ? ",\n\"trailer\":" : "");
	audit_trailer_emit(t, &o->buf);
	aqe_buf_puts(&o->buf, o->format == AUDIT_JSON ? "}\n" : "\n");
	return flush(o, 0, e);
}

static int export_all(struct out *o, const struct audit_filter *f,
		      struct audit_export_trailer *trailer, struct aqe_err *e)
{
	struct audit_filter own;
	int rc = narrow(o->log, f, &own, e);

	if (rc == 0)
		rc = fill_header(o, &own, e);
	if (rc == 0)
		rc = open_parts(o, e);
	if (rc == 0)
		rc = audit_query(o->log, &own, write_row, o, e);
	if (rc)
		return rc;
	if (o->rows != o->h.rows)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "export: the count of rows is wrong");
	return close_parts(o, trailer, e);
}

int audit_export(struct audit_log *log, const struct audit_filter *f, enum audit_format format,
		 const struct audit_sink *sink, struct audit_export_result *ret, struct aqe_err *e)
{
	struct out o = { .log = log, .format = format, .sink = *sink };
	struct audit_export_trailer trailer = { 0 };
	bool own = !aqe_db_in_transaction(log->db);
	int rc = own ? audit_snapshot_begin(log, e) : AQE_OK;

	if (rc)
		return rc;
	o.buf.max = CHUNK + 2 * AUDIT_LINE_MAX;
	aqe_sha256_init(&o.sha);
	rc = export_all(&o, f, &trailer, e);
	aqe_stmt_done(o.before);
	aqe_stmt_done(o.point);
	aqe_buf_done(&o.buf);
	if (own)
		audit_snapshot_end(log);
	if (rc == 0 && ret) {
		ret->rows = o.rows;
		ret->points = o.points;
		ret->last_seq = o.rows ? o.last_seq : 0;
		ret->is_signed = trailer.is_signed;
	}
	return rc;
}
