/* SPDX-License-Identifier: MIT */
#include "audit/log.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "audit/chain.h"
#include "audit/schema.h"
#include "audit/sign.h"
#include "audit/spool.h"
#include "audit/store.h"
#include "shim/core/cleanup.h"
#include "shim/core/db.h"
#include "shim/core/json.h"
#include "shim/core/text.h"

#define NS_PER_S       INT64_C(1000000000)
#define SPOOL_ARENA    ((size_t)1 << 20)
#define META_ARENA     ((size_t)1 << 20) /* memory for the metadata of one row */
#define WAL_PAGES_ONCE 64                /* of audit_record(): who opens next reads them all */
#define GAP_META       512               /* bytes of a gap record's metadata */
#define GAP_LOOK       16 /* gap records looked through for one that was already stored */

static int64_t clock_ns(clockid_t id)
{
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(id, &ts); /* cannot fail with a valid clock and pointer */
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t audit_now_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

/* ---- opening ---- */

/* One allocation for the texts of the options. */
static int keep_opts(struct audit_log *log, const struct audit_opts *o)
{
	const char **slots[] = { &log->o.dir, &log->o.file, &log->o.key_dir, &log->o.spare_dir };
	size_t total = 1;
	char *at;

	log->o = *o;
	for (size_t i = 0; i < AQE_COUNT(slots); i++)
		total += *slots[i] ? strlen(*slots[i]) + 1 : 0;
	log->texts = at = malloc(total);
	if (!at)
		return AQE_E_NOMEM;
	for (size_t i = 0; i < AQE_COUNT(slots); i++) {
		size_t n = *slots[i] ? strlen(*slots[i]) + 1 : 0;

		if (n == 0)
			continue;
		memcpy(at, *slots[i], n);
		*slots[i] = at;
		at += n;
	}
	if (!log->o.file || log->o.mode == AUDIT_WRITE)
		log->o.file = AUDIT_DB_FILE;
	if (!log->o.deadline_ms)
		log->o.deadline_ms = AUDIT_DEADLINE_MS;
	if (!log->o.sign_every)
		log->o.sign_every = AUDIT_CHECKPOINT_ROWS;
	return AQE_OK;
}

static int open_log(struct audit_log *log, const struct audit_opts *o, unsigned wal_pages,
		    struct aqe_err *e)
{
	struct aqe_db_opts d = { .migrations = AUDIT_MIGRATIONS,
				 .n_migrations = AUDIT_SCHEMA_VERSION,
				 .application_id = AUDIT_APPLICATION_ID };

	if (keep_opts(log, o) != 0)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	d.dir = log->o.dir;
	d.file = log->o.file;
	d.deadline_ms = log->o.deadline_ms;
	d.flags = (log->o.mode == AUDIT_READ ? AQE_DB_READ : 0U) |
		  (log->o.flags & AUDIT_NO_FLUSH ? AQE_DB_NORMAL_SYNC : 0U);
	d.wal_pages = wal_pages;
	return aqe_db_open(&d, &log->db, e);
}

static int open_with(const struct audit_opts *o, unsigned wal_pages, struct audit_log **ret,
		     struct aqe_err *e)
{
	struct audit_log *log = calloc(1, sizeof(*log));
	int rc;

	if (!log) {
		(void)aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory"); /* returns the code */
		return AQE_E_NOMEM;
	}
	log->spool = log->lost = -1;
	rc = open_log(log, o, wal_pages, e);
	if (rc) {
		audit_close(log);
		(void)aqe_err_wrap(e, "audit log"); /* its code is rc */
		return rc;
	}
	*ret = log;
	return AQE_OK;
}

static int append(struct audit_log *log, struct audit_row *rows, size_t n, struct aqe_err *e);

/* Rows that wait in the spool belong to what is read. Who may not write does without. */
void audit_log_catch_up(const struct audit_opts *o)
{
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	struct audit_opts write = *o;
	struct aqe_err ignored = AQE_ERR_INIT;

	if (o->file && strcmp(o->file, AUDIT_DB_FILE) != 0)
		return; /* a copy by another name */
	write.mode = AUDIT_WRITE;
	write.file = NULL;
	if (audit_spool_waits(o) && open_with(&write, WAL_PAGES_ONCE, &log, &ignored) == 0)
		(void)!append(log, NULL, 0, &ignored);
}

int audit_open(const struct audit_opts *o, struct audit_log **ret, struct aqe_err *e)
{
	audit_log_catch_up(o);
	return open_with(o, 0, ret, e);
}

void audit_close(struct audit_log *log)
{
	if (!log)
		return;
	aqe_stmt_done(log->insert);
	aqe_stmt_done(log->head);
	aqe_stmt_done(log->point);
	aqe_db_close(log->db);
	if (log->spool >= 0)
		(void)close(log->spool); /* only looked at */
	if (log->lost >= 0)
		(void)close(log->lost); /* as above */
	free(log->texts);
	free(log);
}

struct aqe_db *audit_log_db(struct audit_log *log)
{
	return log->db;
}

const struct audit_opts *audit_log_opts(const struct audit_log *log)
{
	return &log->o;
}

/* ---- looking ---- */

bool audit_store_hash(struct aqe_stmt *s, int at, uint8_t ret[32])
{
	size_t n;
	const void *p = aqe_stmt_bytes(s, at, &n);

	if (aqe_stmt_type(s, at) != AQE_DB_BLOB || n != 32)
		return false;
	memcpy(ret, p, 32);
	return true;
}

int audit_store_number(struct audit_log *log, const char *sql, int64_t absent, int64_t *ret,
		       struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	int rc = aqe_db_prepare(log->db, sql, &s, e);

	if (rc == 0)
		rc = aqe_stmt_step(s, e);
	if (rc < 0)
		return rc;
	*ret = rc == 1 && aqe_stmt_type(s, 0) == AQE_DB_INT ? aqe_stmt_i64(s, 0) : absent;
	return AQE_OK;
}

int audit_identity(struct audit_log *log, struct audit_id *ret, struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	int rc = AQE_OK;

	if (!log->has_id) {
		rc = aqe_db_prepare(log->db, "SELECT id, created_ns FROM chain WHERE one = 1", &s,
				    e);
		if (rc == 0)
			rc = aqe_stmt_step(s, e);
		if (rc < 0)
			return rc;
		if (rc == 0 || !audit_store_hash(s, 0, log->id.chain) ||
		    aqe_stmt_type(s, 1) != AQE_DB_INT)
			return aqe_err_set(e, AQE_E_MALFORMED, 0,
					   "audit log: corrupt (it has no identity)");
		log->id.created_ns = aqe_stmt_i64(s, 1);
		log->has_id = true;
	}
	*ret = log->id;
	return AQE_OK;
}

int audit_size(struct audit_log *log, uint64_t *ret_bytes, struct aqe_err *e)
{
	int64_t pages = 0, unused = 0, size = 0;
	int rc = audit_store_number(log, "PRAGMA page_count", 0, &pages, e);

	if (rc == 0)
		rc = audit_store_number(log, "PRAGMA freelist_count", 0, &unused, e);
	if (rc == 0)
		rc = audit_store_number(log, "PRAGMA page_size", 0, &size, e);
	if (rc)
		return rc;
	*ret_bytes = pages > unused ? (uint64_t)(pages - unused) * (uint64_t)size : 0;
	return AQE_OK;
}

/* The start of an empty table: what prune removed last, or the genesis. */
static int empty_head(struct audit_log *log, struct audit_head *ret, struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	struct audit_id id;
	int rc = audit_identity(log, &id, e);

	if (rc == 0)
		rc = aqe_db_prepare(
			log->db,
			"SELECT seq, hash FROM point WHERE kind = 2 ORDER BY seq DESC LIMIT 1", &s,
			e);
	if (rc == 0)
		rc = aqe_stmt_step(s, e);
	if (rc < 0)
		return rc;
	ret->seq = rc == 1 ? aqe_stmt_i64(s, 0) : 0;
	if (rc == 0)
		audit_genesis(&id, ret->hash);
	else if (!audit_store_hash(s, 1, ret->hash))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "audit log: corrupt (a point's hash)");
	return AQE_OK;
}

int audit_store_head(struct audit_log *log, struct audit_head *ret, struct aqe_err *e)
{
	int rc = AQE_OK;

	if (!log->head)
		rc = aqe_db_prepare(log->db, "SELECT seq, hash FROM row ORDER BY seq DESC LIMIT 1",
				    &log->head, e);
	if (rc == 0)
		rc = aqe_stmt_step(log->head, e);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return empty_head(log, ret, e);
	ret->seq = aqe_stmt_i64(log->head, 0);
	rc = audit_store_hash(log->head, 1, ret->hash)
		     ? AQE_OK
		     : aqe_err_set(e, AQE_E_MALFORMED, 0,
				   "audit log: corrupt (the last row's hash)");
	aqe_stmt_reset(log->head);
	return rc;
}

/* ---- appending ---- */

int audit_store_insert(struct audit_log *log, const struct audit_row *r, struct aqe_err *e)
{
	int rc = AQE_OK, at;

	if (!log->insert)
		rc = aqe_db_prepare(log->db,
				    "INSERT INTO row (" AUDIT_COLUMNS ") VALUES "
				    "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
				    &log->insert, e);
	if (rc)
		return rc;
	for (at = 0; at < AUDIT_FIELDS_COUNT; at++) {
		const struct audit_field *f = &AUDIT_FIELDS[at];

		if (f->type == AUDIT_FIELD_TEXT || f->type == AUDIT_FIELD_JSON)
			aqe_stmt_bind_text(log->insert, at + 1, audit_field_text(r, f));
		else if (audit_field_int(r, f) == AUDIT_NONE)
			aqe_stmt_bind_null(log->insert, at + 1);
		else
			aqe_stmt_bind_i64(log->insert, at + 1, audit_field_int(r, f));
	}
	aqe_stmt_bind_blob(log->insert, at + 1, r->hash, sizeof(r->hash));
	return aqe_stmt_run(log->insert, e);
}

/* meta as our writer would spell it: one object has one encoding, also after an export. */
static int compact_meta(struct aqe_arena *a, struct audit_row *r, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(AUDIT_META_MAX);
	struct aqe_json *v = NULL;
	int rc = aqe_json_parse(a, r->meta, strlen(r->meta), &AQE_JSON_LIMITS_DEFAULT, &v, e);

	if (rc == 0 && v->type != AQE_JSON_OBJECT)
		rc = aqe_err_set(e, AQE_E_MALFORMED, 0, "it is no object");
	if (rc == 0)
		rc = aqe_json_emit(v, AQE_JSON_COMPACT, &b, e);
	if (rc)
		return aqe_err_wrap(e, "audit row: 'meta'");
	r->meta = aqe_arena_ndup(a, b.p, b.len);
	return r->meta ? AQE_OK : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
}

/* One transaction under way. */
struct batch {
	struct audit_log *log;
	struct audit_head head;
	bool is_signed;     /* checkpoints are made */
	int64_t last_point; /* seq of the last one; -1 when there is none */
	int64_t every;      /* the next is due so many rows later: it promised, or we want it */
	/* rows that nobody asked for */
	struct audit_row own[AUDIT_LOST_COUNTERS + 1];
	unsigned n_own;
	char gap_meta[AUDIT_LOST_COUNTERS][GAP_META];
};

static int last_point(struct batch *b, struct aqe_err *e)
{
	struct audit_log *log = b->log;
	int rc = AQE_OK;

	if (!log->point)
		rc = aqe_db_prepare(
			log->db,
			"SELECT seq, every FROM point ORDER BY seq DESC, kind DESC LIMIT 1",
			&log->point, e);
	if (rc == 0)
		rc = aqe_stmt_step(log->point, e);
	if (rc < 0)
		return rc;
	b->last_point = rc == 1 ? aqe_stmt_i64(log->point, 0) : -1;
	b->every = log->o.sign_every;
	if (rc == 1 && aqe_stmt_i64(log->point, 1) < b->every)
		b->every = aqe_stmt_i64(log->point, 1);
	aqe_stmt_reset(log->point);
	return AQE_OK;
}

/* Within a transaction. */
static int begin_batch(struct batch *b, struct aqe_err *e)
{
	int rc = audit_store_head(b->log, &b->head, e);

	if (rc == 0)
		rc = last_point(b, e);
	/* A log that was signed once stays signed: without its key it takes no more rows than
	 * one checkpoint may cover. */
	b->is_signed = rc == 0 && (b->last_point >= 0 || audit_sign_has_key(&b->log->o));
	return rc;
}

static bool is_point_due(const struct batch *b)
{
	return b->is_signed && (b->last_point < 0 || b->head.seq - b->last_point >= b->every);
}

static void set_times(struct audit_row *r)
{
	if (r->time_ns != 0)
		return;
	r->time_ns = audit_now_ns();
	r->boot_ns = clock_ns(CLOCK_BOOTTIME);
}

/* Gives the row its place and stores it. */
static int add_row(struct batch *b, struct audit_row *r, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = NULL;
	struct audit_row stored = *r;
	int rc = AQE_OK;

	stored.seq = b->head.seq + 1;
	set_times(&stored);
	if (r->meta && !r->meta_compact) {
		a = aqe_arena_new(META_ARENA);
		rc = a ? compact_meta(a, &stored, e)
		       : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	}
	if (rc)
		return rc;
	if (!audit_row_hash(b->head.hash, &stored, stored.hash))
		return aqe_err_set(e, AQE_E_LIMIT, 0, "audit row: too long");
	rc = audit_store_insert(b->log, &stored, e);
	if (rc)
		return rc;
	stored.meta = r->meta;
	*r = stored;
	b->head.seq = r->seq;
	memcpy(b->head.hash, r->hash, sizeof(r->hash));
	if (!is_point_due(b))
		return AQE_OK;
	b->last_point = b->head.seq;
	b->every = b->log->o.sign_every;
	return audit_point_add(b->log, AUDIT_POINT_HEAD, &b->head, NULL, e);
}

int audit_store_add(struct audit_log *log, struct audit_row *r, struct audit_head *ret,
		    struct aqe_err *e)
{
	struct batch b = { .log = log };
	int rc = audit_row_check(r, e);

	if (rc == 0)
		rc = begin_batch(&b, e);
	if (rc == 0)
		rc = add_row(&b, r, e);
	if (rc == 0)
		*ret = b.head;
	return rc;
}

static int add_own(struct batch *b, struct audit_row row, struct aqe_err *e)
{
	int rc = add_row(b, &row, e);

	if (rc == 0)
		b->own[b->n_own++] = row;
	return rc;
}

/* ---- gap records ---- */

/* What a stored gap record says of `episode`: 0 when it is of another one. AQE_E_NOMEM. */
static int reported_of(const char *meta, size_t n, const char *episode, uint64_t *ret,
		       struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(META_ARENA);
	struct aqe_json *v = NULL;
	int rc = AQE_E_NOMEM;

	if (a)
		rc = aqe_json_parse(a, meta, n, &AQE_JSON_LIMITS_DEFAULT, &v, NULL);
	if (rc == AQE_E_NOMEM)
		return aqe_err_set(e, rc, 0, "out of memory");
	if (rc == 0 && aqe_str_eq(aqe_json_str(aqe_json_get(v, "episode")), episode))
		(void)!aqe_json_get_u64(v, "total", UINT64_MAX, ret, NULL); /* absent: 0 */
	return AQE_OK;
}

/* A crash between storing a gap record and clearing its counter must not report twice. */
static int already_reported(struct audit_log *log, const char *episode, uint64_t *ret,
			    struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	const char *meta;
	size_t n;
	int rc = aqe_db_prepare(
		log->db,
		"SELECT meta FROM row WHERE kind = 10 AND reason = '" AUDIT_REASON_GAP
		"' ORDER BY seq DESC LIMIT ?",
		&s, e);

	*ret = 0;
	if (rc)
		return rc;
	aqe_stmt_bind_i64(s, 1, GAP_LOOK);
	while (*ret == 0 && (rc = aqe_stmt_step(s, e)) == 1) {
		meta = aqe_stmt_bytes(s, 0, &n);
		if (meta)
			rc = reported_of(meta, n, episode, ret, e);
		if (rc < 0)
			return rc;
	}
	return rc < 0 ? rc : AQE_OK;
}

static int add_gap(struct batch *b, const struct audit_lost *v, struct aqe_err *e)
{
	struct audit_row row = AUDIT_ROW_INIT(AUDIT_SYSTEM, AUDIT_REFUSED);
	char since[AUDIT_TIME_TEXT], until[AUDIT_TIME_TEXT], episode[17];
	char *meta = b->gap_meta[b->n_own]; /* gaps come first */
	uint64_t before;
	int rc;

	(void)snprintf(episode, sizeof(episode), "%016llx", (unsigned long long)v->episode);
	rc = already_reported(b->log, episode, &before, e);
	if (rc || before >= v->count)
		return rc;
	audit_time_format(v->first_ns, since);
	audit_time_format(v->last_ns, until);
	(void)snprintf(meta, GAP_META,
		       "{\"lost\":%llu,\"total\":%llu,\"since\":\"%s\",\"until\":\"%s\","
		       "\"why\":\"%s\",\"episode\":\"%s\"}",
		       (unsigned long long)(v->count - before), (unsigned long long)v->count, since,
		       until, v->why[strcspn(v->why, "\"\\")] ? "?" : v->why, episode);
	row.reason = AUDIT_REASON_GAP;
	row.meta = meta;
	return add_own(b, row, e);
}

/* True when the newest row about a policy names this one. */
static int is_known_policy(struct audit_log *log, const char *digest, bool *ret, struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	int rc = aqe_db_prepare(log->db,
				"SELECT policy IS ?1 FROM row WHERE kind = 8 AND action = 5 "
				"ORDER BY time_ns DESC, seq DESC LIMIT 1",
				&s, e);

	if (rc)
		return rc;
	aqe_stmt_bind_text(s, 1, digest);
	rc = aqe_stmt_step(s, e);
	if (rc < 0)
		return rc;
	*ret = rc == 1 && aqe_stmt_i64(s, 0) == 1;
	return AQE_OK;
}

/* ---- rows from the spool ---- */

/* A crash between storing them and emptying the spool must not store them twice. */
static int is_stored(struct audit_log *log, const struct audit_row *r, bool *ret, struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	int rc = aqe_db_prepare(log->db,
				"SELECT 1 FROM row WHERE time_ns = ? AND boot_ns IS ? AND kind = ? "
				"AND container IS ? AND meta IS ?",
				&s, e);

	if (rc)
		return rc;
	aqe_stmt_bind_i64(s, 1, r->time_ns);
	aqe_stmt_bind_i64(s, 2, r->boot_ns);
	aqe_stmt_bind_i64(s, 3, r->kind);
	aqe_stmt_bind_text(s, 4, r->container);
	aqe_stmt_bind_text(s, 5, r->meta);
	rc = aqe_stmt_step(s, e);
	*ret = rc == 1;
	return rc < 0 ? rc : AQE_OK;
}

static int add_spooled(struct batch *b, struct audit_spool *spool, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(SPOOL_ARENA);
	struct audit_row row;
	bool known = false;
	int rc = a ? AQE_OK : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");

	while (rc == 0 && (rc = audit_spool_next(spool, a, &row, e)) == 1) {
		rc = is_stored(b->log, &row, &known, e);
		if (rc == 0 && !known)
			rc = add_row(b, &row, e);
	}
	if (rc || !audit_spool_is_damaged(spool))
		return rc;
	row = (struct audit_row)AUDIT_ROW_INIT(AUDIT_SYSTEM, AUDIT_CHANGED);
	row.reason = AUDIT_REASON_SPOOL;
	return add_own(b, row, e);
}

static int add_all(struct batch *b, struct audit_spool *spool, struct audit_row *rows, size_t n,
		   struct aqe_err *e)
{
	int rc = spool->fd >= 0 ? add_spooled(b, spool, e) : AQE_OK;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		bool known = false;

		if (rows[i].kind == AUDIT_POLICY && rows[i].action == AUDIT_CHANGED &&
		    (b->log->o.flags & AUDIT_NEW_POLICY_ONLY))
			rc = is_known_policy(b->log, rows[i].policy, &known, e);
		if (rc == 0 && !known)
			rc = add_row(b, &rows[i], e);
	}
	return rc ? rc : aqe_db_commit(b->log->db, e);
}

static int store_batch(struct batch *b, struct audit_row *rows, size_t n, struct aqe_err *e)
{
	struct audit_spool spool = { .fd = -1 };
	struct audit_lost_report gaps;
	int rc = aqe_db_begin(b->log->db, e);

	if (rc == 0)
		rc = begin_batch(b, e);
	if (rc == 0)
		rc = audit_lost_report_begin(&b->log->o, &b->log->lost, &gaps, e);
	if (rc)
		return rc;
	for (unsigned i = 0; rc == 0 && i < AUDIT_LOST_COUNTERS; i++) {
		if (gaps.fd[i] >= 0)
			rc = add_gap(b, &gaps.lost[i], e);
	}
	/* what is added to it from now on is the next transaction's */
	if (rc == 0 && !audit_spool_is_empty(&b->log->o, &b->log->spool))
		rc = audit_spool_begin(&b->log->o, &spool, e);
	if (rc == 0)
		rc = add_all(b, &spool, rows, n, e);
	audit_spool_end(&spool, rc == 0);
	audit_lost_report_done(&gaps, rc == 0);
	for (unsigned i = 0; rc == 0 && b->log->o.added && i < b->n_own; i++)
		b->log->o.added(&b->own[i]);
	return rc;
}

static int check_rows(const struct audit_row *rows, size_t n, struct aqe_err *e)
{
	if (n > AUDIT_BATCH_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "audit log: more than %d rows at once",
				   AUDIT_BATCH_MAX);
	for (size_t i = 0; i < n; i++) {
		int rc = audit_row_check(&rows[i], e);

		if (rc)
			return rc;
	}
	return AQE_OK;
}

static int append(struct audit_log *log, struct audit_row *rows, size_t n, struct aqe_err *e)
{
	struct batch b = { .log = log };
	int rc;

	if (log->o.mode != AUDIT_WRITE)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "audit log: opened for reading");
	rc = check_rows(rows, n, e);
	if (rc)
		return aqe_err_wrap(e, "audit log");
	rc = store_batch(&b, rows, n, e);
	aqe_db_rollback(log->db); /* nothing after a commit */
	for (size_t i = 0; rc && i < n; i++) {
		rows[i].seq = 0; /* it has no place */
		memset(rows[i].hash, 0, sizeof(rows[i].hash));
	}
	return rc ? aqe_err_wrap(e, "audit log") : AQE_OK;
}

/* Counts what `e` kept from being stored. The caller refuses in any case. */
static void count_lost(const struct audit_opts *o, size_t n, struct aqe_err *e)
{
	if (o->flags & AUDIT_ONE_DECISION && n > 1)
		n = 1;
	if (audit_lost_add(o, n, audit_lost_why(e), NULL) != 0)
		(void)aqe_err_wrap(e, "not even counted"); /* returns e's own code */
}

int audit_append_many(struct audit_log *log, struct audit_row *rows, size_t n, struct aqe_err *e)
{
	struct aqe_err own = AQE_ERR_INIT;
	int rc;

	e = e ? e : &own;
	rc = n ? append(log, rows, n, e) : AQE_OK;
	if (rc)
		count_lost(&log->o, n, e);
	return rc;
}

int audit_append(struct audit_log *log, struct audit_row *row, struct aqe_err *e)
{
	return audit_append_many(log, row, 1, e);
}

/* Whether the rows are in the spool now: 0, 1 for no, or why they are nowhere. They are made as the
 * database wants them, so that nothing gets into the spool that could not get out. */
static int record_spooled(const struct audit_opts *o, struct audit_row *rows, size_t n,
			  struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(SPOOL_ARENA);
	struct audit_row *ready = a ? aqe_arena_calloc(a, n, sizeof(*ready)) : NULL;
	int rc = ready ? check_rows(rows, n, e) : 1;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		ready[i] = rows[i];
		set_times(&ready[i]);
		if (rows[i].meta && !rows[i].meta_compact)
			rc = compact_meta(a, &ready[i], e);
	}
	if (rc == 0)
		rc = audit_spool_add(o, ready, n, e);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		rows[i].time_ns = ready[i].time_ns;
		rows[i].boot_ns = ready[i].boot_ns;
	}
	return rc;
}

int audit_record(const struct audit_opts *o, struct audit_row *rows, size_t n, struct aqe_err *e)
{
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	struct audit_opts write = *o;
	struct aqe_err own = AQE_ERR_INIT;
	int rc = 1;

	e = e ? e : &own;
	write.mode = AUDIT_WRITE;
	write.file = NULL;
	if ((o->flags & AUDIT_SPOOL) && n > 0)
		rc = record_spooled(&write, rows, n, e);
	if (rc == 0)
		return AQE_OK;
	if (rc < 0) {
		count_lost(&write, n, e);
		return aqe_err_wrap(e, "audit log");
	}
	rc = open_with(&write, WAL_PAGES_ONCE, &log, e);
	if (rc == 0)
		return audit_append_many(log, rows, n, e);
	count_lost(&write, n, e);
	return rc;
}

/* ---- shortcuts ---- */

static struct audit_row request(enum audit_action action, const char *agent_id,
				const char *agent_type, const char *domain)
{
	struct audit_row r = AUDIT_ROW_INIT(AUDIT_REQUEST, action);

	r.agent_id = agent_id;
	r.agent_type = agent_type;
	r.domain = domain;
	return r;
}

struct audit_row audit_row_allowed(const char *agent_id, const char *agent_type, const char *domain)
{
	return request(AUDIT_ALLOWED, agent_id, agent_type, domain);
}

struct audit_row audit_row_blocked(const char *agent_id, const char *agent_type, const char *domain,
				   const char *reason)
{
	struct audit_row r = request(AUDIT_BLOCKED, agent_id, agent_type, domain);

	r.reason = reason;
	return r;
}

struct audit_row audit_row_rate_limited(const char *agent_id, const char *agent_type,
					const char *domain)
{
	struct audit_row r = request(AUDIT_RATE_LIMITED, agent_id, agent_type, domain);

	r.reason = AUDIT_REASON_RATE;
	return r;
}
