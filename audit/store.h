/* SPDX-License-Identifier: MIT */
/* Internal to audit/: what the files that work on an open log share. */
#ifndef AQE_AUDIT_STORE_H
#define AQE_AUDIT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/checkpoint.h"
#include "audit/log.h"
#include "audit/lost.h"
#include "shim/core/db.h"

struct audit_log {
	struct aqe_db *db;
	struct audit_opts o; /* its texts are in `texts` */
	char *texts;
	struct aqe_stmt *insert, *head, *point; /* made when first needed */
	int spool, lost;                        /* looked at for each transaction; -1: not open */
	struct audit_id id;
	bool has_id;
};

/* Last row, or where the first will be chained to: the last row that prune removed, or the genesis.
 */
struct audit_head {
	int64_t seq;
	uint8_t hash[32];
};
/* Needs a transaction to be of use. */
AQE_MUST_CHECK int audit_store_head(struct audit_log *log, struct audit_head *ret,
				    struct aqe_err *e);
/* Stores one row that has its seq, times and hash. */
AQE_MUST_CHECK int audit_store_insert(struct audit_log *log, const struct audit_row *r,
				      struct aqe_err *e);
/* Stores one row as audit_append() does, within the caller's transaction and without rows that wait
 * elsewhere; *ret is the new head. */
AQE_MUST_CHECK int audit_store_add(struct audit_log *log, struct audit_row *r,
				   struct audit_head *ret, struct aqe_err *e);
/* `SQL` must give at most one row of one number: *ret, or `absent` when there is none or NULL. */
AQE_MUST_CHECK int audit_store_number(struct audit_log *log, const char *sql, int64_t absent,
				      int64_t *ret, struct aqe_err *e);
/* Copies a BLOB of exactly 32 bytes; false for anything else. */
bool audit_store_hash(struct aqe_stmt *s, int at, uint8_t ret[32]);

/* Signs "row `head` of this log" and stores the point. */
AQE_MUST_CHECK int audit_point_add(struct audit_log *log, enum audit_point_kind kind,
				   const struct audit_head *head, struct audit_point *ret,
				   struct aqe_err *e);
/* Reads a point from columns kind, seq, hash, time_ns, every, key, sig; false when a type is wrong.
 */
bool audit_point_read(struct aqe_stmt *s, const struct audit_id *id, struct audit_point *ret);
#define AUDIT_POINT_COLUMNS "kind,seq,hash,time_ns,every,key,sig"

/* Reads a row from AUDIT_COLUMNS; texts are valid until the next step. AQE_E_MALFORMED. */
AQE_MUST_CHECK int audit_row_read(struct aqe_stmt *s, struct audit_row *ret, struct aqe_err *e);

int64_t audit_now_ns(void);
/* Takes over what waits in the spool of a log, if that can be done. */
void audit_log_catch_up(const struct audit_opts *o);
/* *ret is the number of lost rows in a gap record's metadata, 0 when there is none; AQE_E_NOMEM. */
AQE_MUST_CHECK int audit_gap_lost(const char *meta, size_t n, uint64_t *ret, struct aqe_err *e);

/* ---- the counters of lost rows: one in the log's folder, one in the spare folder ---- */
#define AUDIT_LOST_COUNTERS 2
/* Counters that are not zero, locked from here until audit_lost_report_done(). */
struct audit_lost_report {
	int fd[AUDIT_LOST_COUNTERS]; /* -1: nothing to report there */
	struct audit_lost lost[AUDIT_LOST_COUNTERS];
};
/* Looks without waiting; a counter that somebody else holds is left to them. Makes the counter of
 * the log's folder when it is absent: that it cannot be made is an error. `*io_main` (-1 at first)
 * keeps that one open for the next look while it is zero; the caller closes it. */
AQE_MUST_CHECK int audit_lost_report_begin(const struct audit_opts *o, int *io_main,
					   struct audit_lost_report *ret, struct aqe_err *e);
/* Sets them back to zero when `stored`, and lets go. */
void audit_lost_report_done(struct audit_lost_report *r, bool stored);
/* A word for the error: "disk full", "read-only", "locked", ... */
const char *audit_lost_why(const struct aqe_err *e);

#endif
