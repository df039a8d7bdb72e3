/* SPDX-License-Identifier: MIT */
#include "cache/sqlite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/db.h"
#include "shim/core/text.h"

#define APPLICATION_ID  0x61716543U /* "aqeC" */
#define BUSY_TIMEOUT_MS 5000
#define PAGE_CACHE_KIB  8192
#define ROW_EXTRA       128  /* bytes of a row beside its value: columns, index entries, slack */
#define PENDING_MAX     128  /* uses and removals noted before they are written */
#define ROOMY_MS        1000 /* how long to believe that the store is less than half full */
#define STEP_ROWS       1000 /* rows removed in one transaction, so that others get their turn */

/* Columns that are often read come before the value: SQLite reads rows from the front. Totals are
 * kept by triggers, so that every process sees the bounds without counting. */
static const char *const MIGRATIONS[] = {
	"CREATE TABLE entry (key BLOB PRIMARY KEY NOT NULL, created INTEGER NOT NULL,"
	" expires INTEGER NOT NULL, used INTEGER NOT NULL, bytes INTEGER NOT NULL,"
	" value BLOB NOT NULL) STRICT;"
	"CREATE INDEX entry_used ON entry (used);"
	"CREATE INDEX entry_life ON entry (expires, created);"
	"CREATE TABLE total (id INTEGER PRIMARY KEY CHECK (id = 1), entries INTEGER NOT NULL,"
	" bytes INTEGER NOT NULL) STRICT;"
	"INSERT INTO total VALUES (1, 0, 0);"
	"CREATE TRIGGER entry_in AFTER INSERT ON entry BEGIN"
	" UPDATE total SET entries = entries + 1, bytes = bytes + new.bytes; END;"
	"CREATE TRIGGER entry_out AFTER DELETE ON entry BEGIN"
	" UPDATE total SET entries = entries - 1, bytes = bytes - old.bytes; END;"
	"CREATE TRIGGER entry_change AFTER UPDATE OF bytes ON entry"
	" WHEN old.bytes <> new.bytes BEGIN"
	" UPDATE total SET bytes = bytes + new.bytes - old.bytes; END",
};

enum sql { GET, HAS, TOTAL, KEYS, SET, DEL, DEL_OLD, TOUCH, EVICT, PRUNE, CLEAR, SQL_COUNT };
static const char *const SQL[SQL_COUNT] = {
	[GET] = "SELECT created, expires, value FROM entry WHERE key = ?1",
	[HAS] = "SELECT created, expires FROM entry WHERE key = ?1",
	[TOTAL] = "SELECT entries, bytes FROM total",
	[KEYS] = "SELECT key FROM entry WHERE key > ?1 ORDER BY key LIMIT ?2",
	[SET] = "INSERT INTO entry VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (key) DO UPDATE"
		" SET created = ?2, expires = ?3, used = ?4, bytes = ?5, value = ?6",
	[DEL] = "DELETE FROM entry WHERE key = ?1",
	/* not what another process has put there since */
	[DEL_OLD] = "DELETE FROM entry WHERE key = ?1 AND created = ?2",
	[TOUCH] = "UPDATE entry SET used = ?2 WHERE key = ?1 AND used < ?2",
	[EVICT] = "DELETE FROM entry WHERE rowid = (SELECT rowid FROM entry ORDER BY used LIMIT 1)",
	[PRUNE] = "DELETE FROM entry WHERE rowid IN (SELECT rowid FROM entry"
		  " WHERE expires <= ?1 OR created > ?2 LIMIT ?3)",
	[CLEAR] = "DELETE FROM entry WHERE rowid IN (SELECT rowid FROM entry WHERE used <= ?1"
		  " LIMIT ?2)",
};

/* Readers never wait for writers, so each has a connection of its own. */
struct link {
	pthread_mutex_t lock;
	struct aqe_db *db;
	struct aqe_stmt *stmt[SQL_COUNT]; /* prepared when first used */
};

/* Something a look-up found out, to be written later. */
struct pending {
	struct cache_key key;
	bool remove;
	int64_t at; /* remove: created of the entry; else: time of use */
};

struct sqlite {
	struct cache_sqlite_opts opts;
	char *dir, *file;
	struct link reader, writer;
	pthread_mutex_t pending_lock;
	struct pending pending[PENDING_MAX];
	size_t n_pending;
	int64_t last_used;
	atomic_bool roomy;   /* less than half full: no need to know what is used */
	int64_t roomy_at_ms; /* when the reader looked at the totals; under its lock */
	atomic_uint_fast64_t evictions, expired, errors, refused;
};

static struct aqe_stmt *statement(struct link *l, enum sql which, struct aqe_err *e)
{
	if (!l->stmt[which] && aqe_db_prepare(l->db, SQL[which], &l->stmt[which], e) != 0)
		return NULL;
	return l->stmt[which];
}

static int failed(struct sqlite *s, int rc)
{
	if (rc)
		atomic_fetch_add(&s->errors, 1);
	return rc;
}

static int code_of(const struct aqe_err *e)
{
	return e && e->code ? (int)e->code : AQE_E_NOMEM;
}

/* Microseconds, rising with every call. Under pending_lock. */
static int64_t next_use(struct sqlite *s, const struct cache_now *now)
{
	const int64_t us = now->wall_ms * 1000;

	s->last_used = us > s->last_used ? us : s->last_used + 1;
	return s->last_used;
}

static void link_close(struct link *l)
{
	for (size_t i = 0; i < SQL_COUNT; i++)
		aqe_stmt_done(l->stmt[i]);
	memset(l->stmt, 0, sizeof(l->stmt));
	aqe_db_close(l->db);
	l->db = NULL;
}

/* ---- totals and bounds; on a connection that is locked ---- */

static int totals(struct sqlite *s, struct link *l, uint64_t *ret_entries, uint64_t *ret_bytes,
		  struct aqe_err *e)
{
	struct aqe_stmt *st = statement(l, TOTAL, e);
	int64_t entries, bytes;
	int rc;

	if (!st)
		return code_of(e);
	rc = aqe_stmt_step(st, e);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "the row of totals is missing");
	entries = aqe_stmt_i64(st, 0);
	bytes = aqe_stmt_i64(st, 1);
	aqe_stmt_reset(st);
	*ret_entries = entries > 0 ? (uint64_t)entries : 0;
	*ret_bytes = bytes > 0 ? (uint64_t)bytes : 0;
	atomic_store(&s->roomy,
		     *ret_entries < s->opts.max_entries / 2 && *ret_bytes < s->opts.max_bytes / 2);
	return 0;
}

/* Removes what was used longest ago until the bounds hold, at most STEP_ROWS rows. *ret_more: they
 * do not hold yet. */
static int evict(struct sqlite *s, bool *ret_more, struct aqe_err *e)
{
	uint64_t entries = 0, bytes = 0;
	struct aqe_stmt *st;
	int rc;

	for (int i = 0; i < STEP_ROWS; i++) {
		rc = totals(s, &s->writer, &entries, &bytes, e);
		*ret_more = entries > s->opts.max_entries || bytes > s->opts.max_bytes;
		if (rc || !*ret_more)
			return rc;
		st = statement(&s->writer, EVICT, e);
		rc = st ? aqe_stmt_run(st, e) : code_of(e);
		if (rc)
			return rc;
		if (aqe_db_changes(s->writer.db) == 0)
			return aqe_err_set(e, AQE_E_MALFORMED, 0,
					   "%llu entries in the totals, none in the table",
					   (unsigned long long)entries);
		atomic_fetch_add(&s->evictions, 1);
	}
	return 0;
}

/* ---- what look-ups found out ---- */

static int write_pending(struct sqlite *s, const struct pending *p, struct aqe_err *e)
{
	struct aqe_stmt *st = statement(&s->writer, p->remove ? DEL_OLD : TOUCH, e);
	int rc;

	if (!st)
		return code_of(e);
	aqe_stmt_bind_blob(st, 1, p->key.b, sizeof(p->key.b));
	aqe_stmt_bind_i64(st, 2, p->at);
	rc = aqe_stmt_run(st, e);
	if (!rc && p->remove)
		atomic_fetch_add(&s->expired, (uint64_t)aqe_db_changes(s->writer.db));
	return rc;
}

/* In an open transaction of the writer. */
static int flush_inside(struct sqlite *s, struct aqe_err *e)
{
	struct pending list[PENDING_MAX];
	size_t n;
	int rc = 0;

	pthread_mutex_lock(&s->pending_lock);
	n = s->n_pending;
	memcpy(list, s->pending, n * sizeof(list[0]));
	s->n_pending = 0;
	pthread_mutex_unlock(&s->pending_lock);
	for (size_t i = 0; i < n && !rc; i++)
		rc = write_pending(s, &list[i], e);
	return rc;
}

static bool has_pending(struct sqlite *s)
{
	bool any;

	pthread_mutex_lock(&s->pending_lock);
	any = s->n_pending > 0;
	pthread_mutex_unlock(&s->pending_lock);
	return any;
}

/* In a transaction of its own. What cannot be written is forgotten: order of use is a hint, and
 * what is too old is found again. */
static void flush(struct sqlite *s)
{
	struct aqe_err e = AQE_ERR_INIT;

	if (!has_pending(s))
		return;
	pthread_mutex_lock(&s->writer.lock);
	if (aqe_db_begin(s->writer.db, &e) == 0) {
		if (flush_inside(s, &e) || aqe_db_commit(s->writer.db, &e))
			aqe_db_rollback(s->writer.db);
	}
	pthread_mutex_unlock(&s->writer.lock);
}

/* True when the list is full. */
static bool note(struct sqlite *s, const struct cache_key *k, const int64_t *remove_created,
		 const struct cache_now *now)
{
	struct pending *p;
	bool full;

	if (!remove_created && atomic_load(&s->roomy))
		return false;
	pthread_mutex_lock(&s->pending_lock);
	if (s->n_pending < PENDING_MAX) {
		p = &s->pending[s->n_pending++];
		p->key = *k;
		p->remove = remove_created != NULL;
		p->at = remove_created ? *remove_created : next_use(s, now);
	}
	full = s->n_pending >= PENDING_MAX;
	pthread_mutex_unlock(&s->pending_lock);
	return full;
}

/* ---- the calls ---- */

static int link_open(struct sqlite *s, struct link *l, struct aqe_err *e)
{
	const struct aqe_db_opts o = {
		.dir = s->dir,
		.file = s->file,
		.migrations = MIGRATIONS,
		.n_migrations = AQE_COUNT(MIGRATIONS),
		.application_id = APPLICATION_ID,
		.deadline_ms = s->opts.busy_timeout_ms ? s->opts.busy_timeout_ms : BUSY_TIMEOUT_MS,
		.cache_kib = PAGE_CACHE_KIB,
		.flags = AQE_DB_NORMAL_SYNC,
	};

	return aqe_db_open(&o, &l->db, e);
}

/* The bounds may be lower than when the file was last used. */
static int enforce(struct sqlite *s, struct aqe_err *e)
{
	bool more = true;
	int rc = 0;

	while (!rc && more) {
		rc = aqe_db_begin(s->writer.db, e);
		if (!rc)
			rc = evict(s, &more, e);
		if (!rc)
			rc = aqe_db_commit(s->writer.db, e);
		aqe_db_rollback(s->writer.db); /* nothing after a commit */
	}
	return rc;
}

static int sqlite_init(void *self, struct aqe_err *e)
{
	struct sqlite *s = self;
	uint64_t entries, bytes;
	int rc = link_open(s, &s->writer, e);

	if (!rc)
		rc = totals(s, &s->writer, &entries, &bytes, e);
	if (!rc && (entries > s->opts.max_entries || bytes > s->opts.max_bytes))
		rc = enforce(s, e);
	if (!rc)
		rc = link_open(s, &s->reader, e);
	if (rc) {
		link_close(&s->writer);
		link_close(&s->reader);
	}
	return failed(s, rc);
}

/* One look-up: 1 found, 0 not, or an error. `st` is GET or HAS. */
static int look(struct sqlite *s, struct aqe_stmt *st, struct cache_item *item,
		const struct cache_now *now, bool *flush_due, struct aqe_err *e)
{
	int64_t created, ttl;
	const void *p;
	size_t n;
	int rc;

	aqe_stmt_bind_blob(st, 1, item->key.b, sizeof(item->key.b));
	rc = aqe_stmt_step(st, e);
	if (rc <= 0)
		return rc;
	created = aqe_stmt_i64(st, 0);
	if (__builtin_sub_overflow(aqe_stmt_i64(st, 1), created, &ttl))
		ttl = 0;
	if (!cache_value_alive(created, ttl, ttl, now->wall_ms)) {
		*flush_due |= note(s, &item->key, &created, now);
		aqe_stmt_reset(st);
		return 0;
	}
	item->created_ms = created;
	item->ttl_ms = ttl;
	if (st == s->reader.stmt[GET]) {
		p = aqe_stmt_bytes(st, 2, &n);
		aqe_buf_add(&item->value, p, n);
		*flush_due |= note(s, &item->key, NULL, now);
	}
	aqe_stmt_reset(st);
	/* a value beyond every limit is damage; the reader of the bytes will say so */
	rc = item->value.failed == AQE_E_LIMIT ? 0 : aqe_buf_ok(&item->value, e);
	return rc ? rc : 1;
}

/* Other processes may have filled the file. */
static int look_at_totals(struct sqlite *s, const struct cache_now *now, struct aqe_err *e)
{
	uint64_t entries, bytes;

	if (!atomic_load(&s->roomy) || llabs(now->mono_ms - s->roomy_at_ms) < ROOMY_MS)
		return 0;
	s->roomy_at_ms = now->mono_ms;
	return totals(s, &s->reader, &entries, &bytes, e);
}

static int look_all(struct sqlite *s, enum sql which, struct cache_item *items, size_t n,
		    const struct cache_now *now, struct aqe_err *e)
{
	bool flush_due = false;
	struct aqe_stmt *st;
	int rc = 0;

	pthread_mutex_lock(&s->reader.lock);
	st = statement(&s->reader, which, e);
	rc = st ? look_at_totals(s, now, e) : code_of(e);
	if (!rc && n > 1) /* one state, and its locks are taken once */
		rc = aqe_db_begin_read(s->reader.db, e);
	for (size_t i = 0; i < n && rc >= 0; i++) {
		rc = look(s, st, &items[i], now, &flush_due, e);
		items[i].found = rc == 1;
	}
	aqe_db_rollback(s->reader.db); /* nothing when there was one look-up */
	pthread_mutex_unlock(&s->reader.lock);
	if (flush_due)
		flush(s);
	return failed(s, rc < 0 ? rc : 0);
}

static int sqlite_get(void *self, struct cache_item *items, size_t n, const struct cache_now *now,
		      struct aqe_err *e)
{
	return look_all(self, GET, items, n, now, e);
}

static int sqlite_has(void *self, struct cache_item *items, size_t n, const struct cache_now *now,
		      struct aqe_err *e)
{
	return look_all(self, HAS, items, n, now, e);
}

static int set_one(struct sqlite *s, const struct cache_item *item, const struct cache_now *now,
		   struct aqe_err *e)
{
	struct aqe_stmt *st = statement(&s->writer, SET, e);
	const uint64_t weight = item->value.len + sizeof(item->key.b) + ROW_EXTRA;
	int64_t used;

	if (!st)
		return code_of(e);
	pthread_mutex_lock(&s->pending_lock);
	used = next_use(s, now);
	pthread_mutex_unlock(&s->pending_lock);
	aqe_stmt_bind_blob(st, 1, item->key.b, sizeof(item->key.b));
	aqe_stmt_bind_i64(st, 2, item->created_ms);
	aqe_stmt_bind_i64(st, 3, item->created_ms + item->ttl_ms);
	aqe_stmt_bind_i64(st, 4, used);
	aqe_stmt_bind_i64(st, 5, (int64_t)weight);
	aqe_stmt_bind_blob(st, 6, item->value.p, item->value.len);
	return aqe_stmt_run(st, e);
}

static int set_all(struct sqlite *s, const struct cache_item *items, size_t n,
		   const struct cache_now *now, struct aqe_err *e)
{
	bool more = false;
	int rc = aqe_db_begin(s->writer.db, e);

	if (!rc)
		rc = flush_inside(s, e);
	for (size_t i = 0; i < n && !rc; i++) {
		rc = set_one(s, &items[i], now, e);
		if (!rc)
			rc = evict(s, &more, e);
	}
	if (!rc)
		rc = aqe_db_commit(s->writer.db, e);
	aqe_db_rollback(s->writer.db); /* nothing after a commit */
	return rc;
}

static int sqlite_set(void *self, const struct cache_item *items, size_t n,
		      const struct cache_now *now, struct aqe_err *e)
{
	struct sqlite *s = self;
	int rc;

	for (size_t i = 0; i < n; i++) {
		if (items[i].value.len + sizeof(items[i].key.b) + ROW_EXTRA <= s->opts.max_bytes)
			continue;
		atomic_fetch_add(&s->refused, 1);
		return aqe_err_set(e, AQE_E_LIMIT, 0, "a value of %zu bytes in a store of %llu",
				   items[i].value.len, (unsigned long long)s->opts.max_bytes);
	}
	if (n == 0)
		return 0;
	pthread_mutex_lock(&s->writer.lock);
	rc = set_all(s, items, n, now, e);
	pthread_mutex_unlock(&s->writer.lock);
	return failed(s, rc);
}

static int del_all(struct sqlite *s, struct cache_item *items, size_t n, struct aqe_err *e)
{
	struct aqe_stmt *st = statement(&s->writer, DEL, e);
	int rc = st ? aqe_db_begin(s->writer.db, e) : code_of(e);

	for (size_t i = 0; i < n && !rc; i++) {
		aqe_stmt_bind_blob(st, 1, items[i].key.b, sizeof(items[i].key.b));
		rc = aqe_stmt_run(st, e);
		items[i].found = !rc && aqe_db_changes(s->writer.db) > 0;
	}
	if (!rc)
		rc = aqe_db_commit(s->writer.db, e);
	aqe_db_rollback(s->writer.db); /* nothing after a commit */
	for (size_t i = 0; i < n && rc; i++)
		items[i].found = false;
	return rc;
}

static int sqlite_del(void *self, struct cache_item *items, size_t n, struct aqe_err *e)
{
	struct sqlite *s = self;
	int rc;

	if (n == 0)
		return 0;
	pthread_mutex_lock(&s->writer.lock);
	rc = del_all(s, items, n, e);
	pthread_mutex_unlock(&s->writer.lock);
	return failed(s, rc);
}

/* Runs a DELETE that is limited to STEP_ROWS rows until it finds no more. */
static int delete_in_steps(struct sqlite *s, struct aqe_stmt *st, uint64_t *ret_n,
			   struct aqe_err *e)
{
	int64_t n = 0;
	int rc;

	do {
		rc = aqe_db_begin(s->writer.db, e);
		if (!rc)
			rc = aqe_stmt_run(st, e);
		if (!rc) {
			n = aqe_db_changes(s->writer.db);
			rc = aqe_db_commit(s->writer.db, e);
		}
		aqe_db_rollback(s->writer.db); /* nothing after a commit */
		if (!rc)
			*ret_n += (uint64_t)n;
	} while (!rc && n >= STEP_ROWS);
	return rc;
}

/* Gives free pages back to the file system. Others may be reading: what cannot be done now is done
 * the next time. */
static int shrink(struct sqlite *s)
{
	const int rc = aqe_db_exec(s->writer.db, "PRAGMA incremental_vacuum", NULL);

	return rc ? rc : aqe_db_exec(s->writer.db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL);
}

static int sqlite_clear(void *self, struct aqe_err *e)
{
	struct sqlite *s = self;
	uint64_t n = 0, entries, bytes;
	struct aqe_stmt *st;
	int rc;

	pthread_mutex_lock(&s->writer.lock);
	pthread_mutex_lock(&s->pending_lock);
	s->n_pending = 0;
	pthread_mutex_unlock(&s->pending_lock);
	st = statement(&s->writer, CLEAR, e);
	if (st) {
		/* entries of the future, too: a clock may have been wrong */
		aqe_stmt_bind_i64(st, 1, INT64_MAX);
		aqe_stmt_bind_i64(st, 2, STEP_ROWS);
	}
	rc = st ? delete_in_steps(s, st, &n, e) : code_of(e);
	if (!rc)
		(void)shrink(s);
	if (!rc)
		rc = totals(s, &s->writer, &entries, &bytes, e);
	pthread_mutex_unlock(&s->writer.lock);
	return failed(s, rc);
}

static int sqlite_size(void *self, uint64_t *ret_entries, uint64_t *ret_bytes, struct aqe_err *e)
{
	struct sqlite *s = self;
	int rc;

	flush(s);
	pthread_mutex_lock(&s->reader.lock);
	rc = totals(s, &s->reader, ret_entries, ret_bytes, e);
	pthread_mutex_unlock(&s->reader.lock);
	return failed(s, rc);
}

static int sqlite_keys(void *self, struct cache_iter *it, struct cache_key *ret, size_t max,
		       size_t *ret_n, struct aqe_err *e)
{
	struct sqlite *s = self;
	struct aqe_stmt *st;
	size_t n = 0, len;
	const void *p;
	int rc;

	pthread_mutex_lock(&s->reader.lock);
	st = statement(&s->reader, KEYS, e);
	rc = st ? 1 : code_of(e);
	if (st) {
		aqe_stmt_bind_blob(st, 1, it->begun ? it->last.b : (const void *)"",
				   it->begun ? sizeof(it->last.b) : 0);
		aqe_stmt_bind_i64(st, 2, (int64_t)max);
	}
	while (rc == 1 && n < max && (rc = aqe_stmt_step(st, e)) == 1) {
		p = aqe_stmt_bytes(st, 0, &len);
		if (len == sizeof(ret[n].b)) /* no other gets in by us */
			memcpy(ret[n++].b, p, len);
	}
	if (st)
		aqe_stmt_reset(st);
	pthread_mutex_unlock(&s->reader.lock);
	if (rc < 0)
		return failed(s, rc);
	it->begun = true;
	it->done = n < max;
	if (n > 0)
		it->last = ret[n - 1];
	*ret_n = n;
	return 0;
}

static int sqlite_prune(void *self, const struct cache_now *now, uint64_t *ret_n, struct aqe_err *e)
{
	struct sqlite *s = self;
	struct aqe_stmt *st;
	int rc;

	flush(s);
	pthread_mutex_lock(&s->writer.lock);
	st = statement(&s->writer, PRUNE, e);
	if (st) {
		aqe_stmt_bind_i64(st, 1, now->wall_ms);
		aqe_stmt_bind_i64(st, 2, now->wall_ms + CACHE_FUTURE_MS);
		aqe_stmt_bind_i64(st, 3, STEP_ROWS);
	}
	rc = st ? delete_in_steps(s, st, ret_n, e) : code_of(e);
	if (!rc)
		(void)shrink(s);
	pthread_mutex_unlock(&s->writer.lock);
	atomic_fetch_add(&s->expired, *ret_n);
	return failed(s, rc);
}

static int sqlite_healthy(void *self, struct aqe_err *e)
{
	struct sqlite *s = self;
	uint64_t entries, bytes;
	int rc;

	pthread_mutex_lock(&s->reader.lock);
	rc = totals(s, &s->reader, &entries, &bytes, e);
	pthread_mutex_unlock(&s->reader.lock);
	return rc;
}

static void sqlite_stats(void *self, struct cache_store_stats *ret)
{
	struct sqlite *s = self;

	ret->evictions = atomic_load(&s->evictions);
	ret->expired = atomic_load(&s->expired);
	ret->errors = atomic_load(&s->errors);
	ret->refused = atomic_load(&s->refused);
}

static void sqlite_close(void *self)
{
	struct sqlite *s = self;

	if (s->writer.db)
		flush(s);
	link_close(&s->reader);
	link_close(&s->writer);
	pthread_mutex_destroy(&s->reader.lock);
	pthread_mutex_destroy(&s->writer.lock);
	pthread_mutex_destroy(&s->pending_lock);
	free(s->dir);
	free(s->file);
	free(s);
}

static const struct cache_store_ops OPS = {
	.name = "sqlite",
	.init = sqlite_init,
	.get = sqlite_get,
	.has = sqlite_has,
	.set = sqlite_set,
	.del = sqlite_del,
	.clear = sqlite_clear,
	.size = sqlite_size,
	.keys = sqlite_keys,
	.prune = sqlite_prune,
	.healthy = sqlite_healthy,
	.stats = sqlite_stats,
	.close = sqlite_close,
};

int cache_sqlite_new(const struct cache_sqlite_opts *o, struct cache_store *ret, struct aqe_err *e)
{
	const char *slash = o->path ? strrchr(o->path, '/') : NULL;
	struct sqlite *s;

	if (o->max_entries < 1 || o->max_bytes < 1)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "sqlite: a bound is 0");
	if (!slash || o->path[0] != '/' || !slash[1])
		return aqe_err_set(e, AQE_E_USAGE, 0, "sqlite: not an absolute path of a file");
	s = calloc(1, sizeof(*s));
	if (!s)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "sqlite: out of memory");
	s->opts = *o;
	s->opts.path = NULL;
	s->dir = strndup(o->path, slash == o->path ? 1 : (size_t)(slash - o->path));
	s->file = strdup(slash + 1);
	pthread_mutex_init(&s->reader.lock, NULL);
	pthread_mutex_init(&s->writer.lock, NULL);
	pthread_mutex_init(&s->pending_lock, NULL);
	if (!s->dir || !s->file) {
		sqlite_close(s);
		return aqe_err_set(e, AQE_E_NOMEM, 0, "sqlite: out of memory");
	}
	ret->ops = &OPS;
	ret->self = s;
	ret->ready = false;
	return 0;
}
