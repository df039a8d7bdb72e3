/* SPDX-License-Identifier: MIT */
/* Is the log what it was? Works on a database (also while others write to it, on a copy, without
 * write permission) and on an export, with nothing but public keys and anchors. */
#ifndef AQE_AUDIT_VERIFY_H
#define AQE_AUDIT_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/checkpoint.h"
#include "audit/log.h"
#include "shim/core/err.h"

/* What is wrong. Names are stable: audit_fault_name(). */
enum audit_fault {
	AUDIT_FAULT_NONE = 0,
	AUDIT_FAULT_SCHEMA, /* tables, indexes or triggers are not ours, or an index is damaged */
	AUDIT_FAULT_TYPE,   /* a stored value has a type or length that we never write */
	AUDIT_FAULT_SEQ,    /* a row is missing, doubled or out of order: first_bad is the first
			     * number that should be there and is not */
	AUDIT_FAULT_HASH,   /* a row, or the one before it, was changed */
	AUDIT_FAULT_START,  /* the log does not begin at row 1, and no signed prune says why */
	AUDIT_FAULT_POINT,  /* a checkpoint and the row it names differ: rewritten */
	AUDIT_FAULT_SIGNATURE, /* a checkpoint's signature is wrong, or by a key that is not given
				*/
	AUDIT_FAULT_UNSIGNED,  /* checkpoints that must be there are not: rewritten without the key
				*/
	AUDIT_FAULT_ANCHOR,    /* the row an anchor names has another hash: rewritten */
	AUDIT_FAULT_CUT,       /* the log ends before a row that an anchor or checkpoint names */
	AUDIT_FAULT_OTHER_LOG, /* an anchor is of another log, or the log was replaced */
	AUDIT_FAULT_EXPORT,    /* an export's form, counts, trailer or digest are wrong */
	AUDIT_FAULT_CORRUPT,   /* SQLite cannot read it */
	AUDIT_FAULT_COUNT
};
const char *audit_fault_name(enum audit_fault f); /* "none", "schema", "hash", ... */

/* What a good result does not prove; bits of audit_verdict.open. */
enum audit_open_point {
	AUDIT_OPEN_NO_KEY = 1U << 0,    /* no public key given: signatures were not judged */
	AUDIT_OPEN_NO_ANCHOR = 1U << 1, /* no anchor: rows may have been cut off the end, or the
					 * whole log put back to an older state */
	AUDIT_OPEN_UNSIGNED_TAIL = 1U
				   << 2, /* rows after signed_to are chained, but not yet signed */
	AUDIT_OPEN_UNANCHORED_TAIL = 1U << 3, /* rows after anchored_to may have been rewritten by
					       * who holds the key */
	AUDIT_OPEN_PRUNED = 1U << 4, /* rows before first_seq are gone; only their end is known */
	AUDIT_OPEN_NEVER_SIGNED = 1U << 5, /* there is no checkpoint at all */
	AUDIT_OPEN_FILTERED =
		1U << 6, /* the export leaves rows out: each is proven, their gaps are not
			  */
	AUDIT_OPEN_ANCHOR_PRUNED = 1U << 7, /* an anchor names a row that prune removed */
	AUDIT_OPEN_GAPS = 1U << 8, /* gap records: decisions were refused because they could not be
				    * stored */
	AUDIT_OPEN_INDEXES = 1U << 9, /* AUDIT_VERIFY_NO_INDEXES */
};
#define AUDIT_OPEN_COUNT 10
/* The bit in words, for printing; NULL for no bit. */
const char *audit_open_text(unsigned bit);

struct audit_verdict {
	enum audit_fault fault; /* NONE: nothing wrong was found */
	int64_t first_bad;      /* seq of the first bad row; 0 when the fault is not in a row */
	char text[512];         /* the fault in words; "" when none */
	struct audit_id id;
	uint64_t rows, points, anchors; /* looked at */
	int64_t first_seq, last_seq;    /* 0 when empty */
	uint8_t head[32];               /* hash of the last row (of the start when empty) */
	int64_t signed_to,
		anchored_to; /* last row covered by a good signature / anchor; 0 = none */
	uint64_t lost;       /* rows that gap records report */
	unsigned open;       /* enum audit_open_point: what is not proven */
};

enum audit_verify_flag {
	AUDIT_VERIFY_NO_INDEXES = 1U
				  << 0, /* skip the comparison of indexes with rows (SQLite's
					 * integrity check: the slower half); `list` reads them */
};
struct audit_verify_opts {
	const uint8_t (*keys)[32]; /* trusted public keys; a log may outlive one */
	size_t n_keys;
	const struct audit_point *anchors; /* from outside, any order */
	size_t n_anchors;
	unsigned flags;
};

/* Verifies the database of an open log (AUDIT_READ will do). 0 with a verdict, good or bad; an
 * error only when it could not be decided (no memory, no permission). `o` may be NULL. A corrupt
 * database is a bad verdict. */
AQE_MUST_CHECK int audit_verify(struct audit_log *log, const struct audit_verify_opts *o,
				struct audit_verdict *ret, struct aqe_err *e);
/* As audit_open(AUDIT_READ) + audit_verify(), and a database that cannot be opened because it is
 * damaged is a bad verdict too. */
AQE_MUST_CHECK int audit_verify_at(const struct audit_opts *at, const struct audit_verify_opts *o,
				   struct audit_verdict *ret, struct aqe_err *e);
/* Verifies an export (jsonl, audit/emit.h) read from `fd` line by line. */
AQE_MUST_CHECK int audit_verify_export(int fd, const struct audit_verify_opts *o,
				       struct audit_verdict *ret, struct aqe_err *e);

#endif
