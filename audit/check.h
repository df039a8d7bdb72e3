/* SPDX-License-Identifier: MIT */
/* Internal to audit/: the judge that a database and an export share. It is fed rows in order of
 * seq, and every signed point at its place: after the row it names. It stops at the first fault. */
#ifndef AQE_AUDIT_CHECK_H
#define AQE_AUDIT_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/encode.h"
#include "audit/verify.h"

struct audit_check {
	const struct audit_verify_opts *o;
	struct audit_verdict *v;
	struct audit_enc enc;        /* of the row under way */
	uint8_t prev[32];            /* hash of the row before */
	int64_t last;                /* its seq */
	bool loose;                  /* rows may be left out (a filtered export) */
	bool pruned;                 /* the beginning was removed by prune */
	bool no_memory;              /* for a gap record: then there is no verdict */
	int64_t point_seq;           /* of the last point; -1 before the first */
	int64_t point_every;         /* what it promised */
	struct audit_point *anchors; /* sorted by seq */
	size_t n_anchors, next_anchor;
};

/* Allocates; AQE_E_NOMEM. The verdict is set to "nothing wrong yet". */
AQE_MUST_CHECK int audit_check_new(const struct audit_verify_opts *o, struct audit_verdict *v,
				   struct audit_check **ret, struct aqe_err *e);
void audit_check_free(struct audit_check *c);

/* All below return false when a fault was found (now or before): there is nothing more to do. */

/* Sets the fault, unless there is one already. Always false. */
bool audit_check_fault(struct audit_check *c, enum audit_fault f, int64_t first_bad,
		       const char *fmt, ...) AQE_PRINTF(4, 5);
/* Where the chain begins: after `seq` with that hash. Judges anchors before and at it. */
bool audit_check_begin(struct audit_check *c, const struct audit_id *id, int64_t seq,
		       const uint8_t hash[32]);
/* The next row's number is `seq`, in a filtered export after a row with hash `prev` (may be NULL).
 * Then c->enc is ready for its fields. */
bool audit_check_seq(struct audit_check *c, int64_t seq, const uint8_t *prev);
/* The row in c->enc has this hash stored. */
bool audit_check_row(struct audit_check *c, int64_t seq, const uint8_t hash[32]);
/* A gap record reports so many rows. */
void audit_check_gap(struct audit_check *c, uint64_t lost);
bool audit_check_point(struct audit_check *c, const struct audit_point *p);
/* After the last row and point. */
bool audit_check_end(struct audit_check *c);

#endif
