/* SPDX-License-Identifier: MIT */
/* A hand that may do to a log's file what ours never does. */
#ifndef AQE_UNIT_AUDIT_TAMPER_H
#define AQE_UNIT_AUDIT_TAMPER_H

#include <sqlite3.h>

#include "audit/chain.h"
#include "audit/schema.h"
#include "shim/core/text.h"
#include "tests/unit/audit_fixture.h"

static inline sqlite3 *tamper_open_at(const char *path)
{
	sqlite3 *db = NULL;

	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL), SQLITE_OK);
	return db;
}

static inline sqlite3 *tamper_open(void)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/audit.db", log_dir);
	return tamper_open_at(path);
}

static inline void tamper_sql(sqlite3 *db, const char *sql)
{
	char *text = NULL;
	int rc = sqlite3_exec(db, sql, NULL, NULL, &text);

	ck_assert_msg(rc == SQLITE_OK, "%s: %s", sql, text ? text : "");
}

/* One change in one breath. */
static inline void tamper(const char *sql)
{
	sqlite3 *db = tamper_open();

	tamper_sql(db, sql);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

/* Writes the hashes anew from `from` on, as who has no key can. */
static inline void rechain_db(sqlite3 *db, int64_t from)
{
	static struct audit_row rows[256];
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 22);
	struct audit_id id;
	uint8_t prev[32];
	sqlite3_stmt *s = NULL;
	size_t n = 0;

	ck_assert_ok(audit_identity(lg, &id, &err), err);
	audit_genesis(&id, prev);
	ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT " AUDIT_COLUMNS " FROM row ORDER BY seq",
					    -1, &s, NULL),
			 SQLITE_OK);
	while (sqlite3_step(s) == SQLITE_ROW) {
		ck_assert_uint_lt(n, AQE_COUNT(rows));
		struct audit_row *r = &rows[n++];

		*r = (struct audit_row)AUDIT_ROW_INIT(AUDIT_KIND_ANY, AUDIT_ACTION_ANY);
		for (int i = 0; i < AUDIT_FIELDS_COUNT; i++) {
			const struct audit_field *f = &AUDIT_FIELDS[i];
			const char *text = (const char *)sqlite3_column_text(s, i);

			if (!text)
				continue;
			if (f->type == AUDIT_FIELD_TEXT || f->type == AUDIT_FIELD_JSON)
				audit_field_set_text(r, f, aqe_arena_dup(a, text));
			else
				audit_field_set_int(r, f, sqlite3_column_int64(s, i));
		}
		memcpy(r->hash, sqlite3_column_blob(s, AUDIT_FIELDS_COUNT), 32);
	}
	sqlite3_finalize(s);
	ck_assert_int_eq(sqlite3_prepare_v2(db, "UPDATE row SET hash = ? WHERE seq = ?", -1, &s,
					    NULL),
			 SQLITE_OK);
	for (size_t i = 0; i < n; i++) {
		if (rows[i].seq >= from) {
			ck_assert(audit_row_hash(prev, &rows[i], rows[i].hash));
			sqlite3_bind_blob(s, 1, rows[i].hash, 32, SQLITE_STATIC);
			sqlite3_bind_int64(s, 2, rows[i].seq);
			ck_assert_int_eq(sqlite3_step(s), SQLITE_DONE);
			sqlite3_reset(s);
		}
		memcpy(prev, rows[i].hash, 32);
	}
	sqlite3_finalize(s);
}

static inline void rechain(int64_t from)
{
	sqlite3 *db = tamper_open();

	rechain_db(db, from);
	sqlite3_close(db);
}

#endif
