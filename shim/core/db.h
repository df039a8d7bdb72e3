/* SPDX-License-Identifier: MIT */
/* SQLite, the only user of sqlite3.h: opening a database of ours safely, migrations, statements.
 * WAL, many processes; a lock is waited for up to a deadline, sleeping. Not for two threads at
 * once.
 */
#ifndef AQE_CORE_DB_H
#define AQE_CORE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/core/err.h"

struct aqe_db;
struct aqe_stmt;

enum aqe_db_flag {
	AQE_DB_READ = 1U << 0, /* no writing, nothing is made; a file on a read-only disk will do */
	AQE_DB_NORMAL_SYNC = 1U << 1, /* commits may be lost in a power cut (not in a crash); the
				       * default is that none is */
};
struct aqe_db_opts {
	const char *dir;  /* absolute. Made 0700 when absent, with its parent (0755 for root, else
			   * 0700), unless AQE_DB_READ */
	const char *file; /* name in it */
	/* Schema version i + 1 is reached by running migrations[i], each in one transaction with
	 * the change of user_version. */
	const char *const *migrations;
	unsigned n_migrations;
	uint32_t application_id; /* marks the file as ours; another one is AQE_E_MALFORMED */
	unsigned deadline_ms;    /* longest wait for locks of others, a call */
	unsigned cache_kib;      /* page cache; 0 = 2048 */
	unsigned wal_pages;      /* written back when the log has so many; 0 = 1000. Short-lived
				  * processes do well with few: who opens reads them all */
	unsigned flags;          /* enum aqe_db_flag */
};

/* Opens; makes the file (0600) and migrates it unless AQE_DB_READ. Refused (AQE_E_UNTRUSTED),
 * unless AQE_DB_READ: folder or file with another owner than us, other modes than 0700 and 0600
 * (0400 bits missing do not count), a link, more than one name. AQE_E_ABSENT: AQE_DB_READ and not
 * there. AQE_E_MALFORMED: not a database, corrupt, not ours, or a newer version. Other codes as
 * below. */
AQE_MUST_CHECK int aqe_db_open(const struct aqe_db_opts *o, struct aqe_db **ret, struct aqe_err *e);
/* Ends an open transaction by rolling back. Statements must be done before. NULL is accepted. */
void aqe_db_close(struct aqe_db *db);

/* All below: 0 or AQE_E_TIMEOUT (locked beyond the deadline), AQE_E_MALFORMED (corrupt, or not a
 * database), AQE_E_NOMEM, AQE_E_LIMIT (too big), AQE_E_SYS (errno in e->sys where known: ENOSPC
 * disk full, EROFS read-only, EACCES, EIO), AQE_E_INTERNAL (a statement or use that is wrong). */

/* Runs statements that give no rows. */
AQE_MUST_CHECK int aqe_db_exec(struct aqe_db *db, const char *sql, struct aqe_err *e);
/* BEGIN IMMEDIATE: the one writer from here on. BEGIN of a reader: one state until the end. */
AQE_MUST_CHECK int aqe_db_begin(struct aqe_db *db, struct aqe_err *e);
AQE_MUST_CHECK int aqe_db_begin_read(struct aqe_db *db, struct aqe_err *e);
/* A commit that fails has been rolled back. */
AQE_MUST_CHECK int aqe_db_commit(struct aqe_db *db, struct aqe_err *e);
/* Nothing when no transaction is open. */
void aqe_db_rollback(struct aqe_db *db);
bool aqe_db_in_transaction(struct aqe_db *db);

/* Prepares one statement. aqe_stmt_done() accepts NULL. */
AQE_MUST_CHECK int aqe_db_prepare(struct aqe_db *db, const char *sql, struct aqe_stmt **ret,
				  struct aqe_err *e);
void aqe_stmt_done(struct aqe_stmt *s);
static inline void aqe_cleanup_stmt(struct aqe_stmt *const *s)
{
	aqe_stmt_done(*s);
}
#define AQE_AUTO_STMT AQE_CLEANUP(aqe_cleanup_stmt) /* needs shim/core/cleanup.h */

/* Parameters from 1. What is bound must stay until the next step's row was read or reset. NULL text
 * or blob is NULL. A failure is remembered and returned by the next step. */
void aqe_stmt_bind_i64(struct aqe_stmt *s, int at, int64_t v);
void aqe_stmt_bind_text(struct aqe_stmt *s, int at, const char *v);
void aqe_stmt_bind_blob(struct aqe_stmt *s, int at, const void *p, size_t n);
void aqe_stmt_bind_null(struct aqe_stmt *s, int at);
/* 1: a row; 0: done; negative: error. After 0 or an error the statement is reset by itself. */
AQE_MUST_CHECK int aqe_stmt_step(struct aqe_stmt *s, struct aqe_err *e);
/* Step that must end without a row. */
AQE_MUST_CHECK int aqe_stmt_run(struct aqe_stmt *s, struct aqe_err *e);
/* Back to the start; bindings stay. */
void aqe_stmt_reset(struct aqe_stmt *s);

/* Columns of the present row, from 0, valid until the next step or reset. */
enum aqe_db_type { AQE_DB_NULL, AQE_DB_INT, AQE_DB_REAL, AQE_DB_TEXT, AQE_DB_BLOB };
enum aqe_db_type aqe_stmt_type(struct aqe_stmt *s, int at);
int64_t aqe_stmt_i64(struct aqe_stmt *s, int at); /* 0 unless INT */
/* Bytes of a TEXT or BLOB as stored; NULL and 0 for other types. TEXT is NUL-terminated. */
const void *aqe_stmt_bytes(struct aqe_stmt *s, int at, size_t *ret_n);

/* Type and value in one: for who reads millions. `p` is NULL unless TEXT or BLOB. */
struct aqe_db_value {
	enum aqe_db_type type;
	int64_t i;
	const void *p;
	size_t n;
};
void aqe_stmt_value(struct aqe_stmt *s, int at, struct aqe_db_value *ret);

/* user_version of the file, and rows changed by the last statement. */
AQE_MUST_CHECK int aqe_db_version(struct aqe_db *db, unsigned *ret, struct aqe_err *e);
int64_t aqe_db_changes(struct aqe_db *db);

#endif
