/* SPDX-License-Identifier: MIT */
/* The store: one SQLite database in a folder of its own, many processes at once. Blocking; a call
 * returns within the deadline plus one disk flush. Not for use by two threads at once.
 *
 * Failing closed: when audit_append() or audit_record() fails, the row is not stored, and whoever
 * asked must refuse what it would have recorded. The error's text says why ("audit log: disk full",
 * "read-only", "locked by another process for 2000 ms", "corrupt", "permission denied", ...). */
#ifndef AQE_AUDIT_LOG_H
#define AQE_AUDIT_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "audit/row.h"
#include "shim/core/err.h"

struct aqe_db;
struct audit_log;

#define AUDIT_DIR_SYSTEM "/var/lib/aqe-shim/audit" /* for root */
/* below $XDG_STATE_HOME or ~/.local/state, for others */
#define AUDIT_DIR_USER        "aqe-shim/audit"
#define AUDIT_DB_FILE         "audit.db" /* 0600, with -wal and -shm beside it */
#define AUDIT_LOST_FILE       "lost"     /* counts rows that could not be stored: audit/lost.h */

#define AUDIT_DEADLINE_MS     2000  /* default wait for other processes' transactions */
#define AUDIT_CHECKPOINT_ROWS 1000  /* a signed checkpoint at least every so many rows */
#define AUDIT_BATCH_MAX       10000 /* rows of one transaction */

enum audit_mode {
	AUDIT_READ,  /* existing log; needs no write permission; accepts a copy on a read-only disk
		      */
	AUDIT_WRITE, /* makes folder (0700), database, side files when absent, and migrates */
};

enum audit_flag {
	/* A power cut may take rows that were acknowledged, from the end of the log; a crash of
	 * processes may not. The next row without this flag makes all before it durable too. */
	AUDIT_NO_FLUSH = 1U << 0,
	/* A row of kind policy and action changed is left out when the newest of its kind names the
	 * same digest; its seq and time stay 0. */
	AUDIT_NEW_POLICY_ONLY = 1U << 1,
	/* audit_record() may leave the rows in a file beside the database, as durably; the next who
	 * opens the log takes them over (then they get seq and hash, which stay 0 here; the times
	 * are set). A tenth of the cost. Not for a process that has the log open. */
	AUDIT_SPOOL = 1U << 2,
	/* The rows of one call are one decision: when they cannot be stored, one is lost. */
	AUDIT_ONE_DECISION = 1U << 3,
};

/* Where a log is. Whoever reads the environment is in shim/; paths here are absolute. */
struct audit_opts {
	const char *dir;  /* the folder. Its parent is made too when absent; nothing above that */
	const char *file; /* database in it; NULL = AUDIT_DB_FILE. Only with AUDIT_READ */
	const char *key_dir; /* folder of the signing key (audit/checkpoint.h); NULL = dir */
	const char
		*spare_dir; /* existing folder for the lost counter while `dir` cannot be written
			     * (a tmpfs: /run/aqe-shim, $XDG_RUNTIME_DIR/aqe-shim); may be NULL */
	enum audit_mode mode;
	unsigned deadline_ms; /* 0 = AUDIT_DEADLINE_MS */
	unsigned flags;       /* enum audit_flag */
	int64_t sign_every;   /* rows to the next signed checkpoint; 0 = AUDIT_CHECKPOINT_ROWS */
	/* Told of a row that the log added by itself (a gap, a damaged spool), once it is stored.
	 * NULL: nobody is. */
	void (*added)(const struct audit_row *r);
};

/* Opens. AUDIT_WRITE refuses (AQE_E_UNTRUSTED) a folder or database with another owner, other modes
 * than 0700/0600, or reached through a link in its last component; AUDIT_READ takes any regular
 * file. AQE_E_ABSENT: there is no log. AQE_E_MALFORMED: no audit database, corrupt, or of a newer
 * version. AQE_E_TIMEOUT: locked beyond the deadline. AQE_E_SYS otherwise. */
AQE_MUST_CHECK int audit_open(const struct audit_opts *o, struct audit_log **ret,
			      struct aqe_err *e);
/* NULL is accepted. Acknowledged rows are already on disk. */
void audit_close(struct audit_log *log);
static inline void audit_cleanup_log(struct audit_log *const *log)
{
	audit_close(*log);
}
#define AUDIT_AUTO_LOG AQE_CLEANUP(audit_cleanup_log) /* needs shim/core/cleanup.h */

/* Stores one row, durably: 0 means it survives a power cut. Sets seq, hash, and time_ns/boot_ns
 * when time_ns is 0. A pending gap is stored before it, in the same transaction; a signed
 * checkpoint after it when one is due. A failure leaves seq 0 and is counted (audit/lost.h).
 * Errors: as audit_open(), and AQE_E_LIMIT / AQE_E_MALFORMED for a row that cannot be stored
 * (audit_row_check). */
AQE_MUST_CHECK int audit_append(struct audit_log *log, struct audit_row *row, struct aqe_err *e);
/* The same for `n` (at most AUDIT_BATCH_MAX) rows in one transaction with one flush: all are stored
 * or none is. Group commit for services. */
AQE_MUST_CHECK int audit_append_many(struct audit_log *log, struct audit_row *rows, size_t n,
				     struct aqe_err *e);
/* Open, append all in one transaction, close: for short-lived processes. `o->mode` is ignored.
 * Counts as lost what could not be stored, even when the log could not be opened. */
AQE_MUST_CHECK int audit_record(const struct audit_opts *o, struct audit_row *rows, size_t n,
				struct aqe_err *e);

/* The shortcuts of the original: a request allowed, blocked for `reason`, or over its rate limit.
 * They only fill a row; the caller adds extras and appends it. */
struct audit_row audit_row_allowed(const char *agent_id, const char *agent_type,
				   const char *domain);
struct audit_row audit_row_blocked(const char *agent_id, const char *agent_type, const char *domain,
				   const char *reason);
struct audit_row audit_row_rate_limited(const char *agent_id, const char *agent_type,
					const char *domain);

/* Identity of the log. `chain` is random, made with the database, and part of the first hash. */
struct audit_id {
	uint8_t chain[32];
	int64_t created_ns;
};
AQE_MUST_CHECK int audit_identity(struct audit_log *log, struct audit_id *ret, struct aqe_err *e);
/* Bytes of the database in use (not the file's free pages). */
AQE_MUST_CHECK int audit_size(struct audit_log *log, uint64_t *ret_bytes, struct aqe_err *e);

/* For the other files of audit/. */
struct aqe_db *audit_log_db(struct audit_log *log);
const struct audit_opts *audit_log_opts(const struct audit_log *log);

#endif
