/* SPDX-License-Identifier: MIT */
/* Internal to audit/: rows on their way into the database. Opening SQLite costs a process that
 * lives for a few milliseconds more than everything else it records, so it may leave its rows in a
 * file beside the database, durably; whoever writes to the database next takes them over first, in
 * the same transaction.
 *
 * The file has a fixed size and is written whole when it is made, so that storing a row neither
 * needs space nor changes anything but its blocks. It begins with "aqe-spool1", zeros, and 32
 * random bytes, the name of the round; from SPOOL_FIRST on records follow:
 *   4 bytes, big endian, the length n of the encoding; 4 zeros; 32 bytes
 *   SHA-256(hash of the record before, or the round || encoding); n bytes, encoding of the row
 *   with seq 0 (audit/chain.h); zeros up to a multiple of 8.
 * The longest beginning with right hashes is what is stored: a record cut off by a crash was never
 * acknowledged. Taking over ends with a new round. Its lock is flock(2), always taken after
 * SQLite's when both are. */
#ifndef AQE_AUDIT_SPOOL_H
#define AQE_AUDIT_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/log.h"
#include "audit/row.h"
#include "shim/core/arena.h"

#define AUDIT_SPOOL_FILE "spool"
#define AUDIT_SPOOL_SIZE ((size_t)32 << 10)

/* Stores rows, durably unless AUDIT_NO_FLUSH; `rows` must be ready for the database, with their
 * times. 0: stored. 1: not here (no room, no database yet, anything wrong with folder or files):
 * the database decides. Negative: AQE_E_TIMEOUT, or AQE_E_SYS when they could not be made durable.
 * Not for a process that has the database open: it would lose its locks. */
AQE_MUST_CHECK int audit_spool_add(const struct audit_opts *o, const struct audit_row *rows,
				   size_t n, struct aqe_err *e);
/* True when something seems to be there; without a lock. */
bool audit_spool_waits(const struct audit_opts *o);

/* False when something may be there, which audit_spool_begin() then finds out: a look without a
 * lock for who writes again and again. `*io_fd` (-1 at first) keeps the file open from one look to
 * the next; the caller closes it. */
bool audit_spool_is_empty(const struct audit_opts *o, int *io_fd);

/* Reading it, under its lock. */
struct audit_spool {
	int fd; /* -1: there is none, or it is empty */
	uint8_t *p;
	size_t n, at; /* bytes read, and where the next record begins */
	uint8_t hash[32];
};
/* Makes the file when it is absent and can be made; never waits longer than the deadline. */
AQE_MUST_CHECK int audit_spool_begin(const struct audit_opts *o, struct audit_spool *ret,
				     struct aqe_err *e);
/* 1 with the next row, its texts in `a`; 0 at the end. */
AQE_MUST_CHECK int audit_spool_next(struct audit_spool *s, struct aqe_arena *a,
				    struct audit_row *ret, struct aqe_err *e);
/* At the end: bytes follow that are no record, left by a crash or changed by somebody. */
bool audit_spool_is_damaged(const struct audit_spool *s);
/* Begins a new round when `taken`; lets go. */
void audit_spool_end(struct audit_spool *s, bool taken);

#endif
