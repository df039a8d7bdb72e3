/* SPDX-License-Identifier: MIT */
/* Removing old rows while what stays can still be proven. */
#ifndef AQE_AUDIT_PRUNE_H
#define AQE_AUDIT_PRUNE_H

#include <stdint.h>

#include "audit/log.h"
#include "shim/core/err.h"

/* The oldest rows go until every limit that is set holds, the prune's own row included. */
struct audit_prune_opts {
	int64_t before_ns; /* rows older than this; 0 = no limit. Stops at the first row that is not
			    * older: only a whole beginning is ever removed */
	uint64_t max_rows; /* UINT64_MAX = no limit; 0 removes all there were: its own row is left,
			    * as with 1 */
	uint64_t max_bytes; /* of audit_size(); UINT64_MAX = no limit */
};
#define AUDIT_PRUNE_INIT                                                        \
	{                                                                       \
		.before_ns = 0, .max_rows = UINT64_MAX, .max_bytes = UINT64_MAX \
	}
struct audit_prune_result {
	uint64_t rows;          /* removed */
	int64_t from_seq;       /* the first one removed; 0 when none was */
	int64_t to_seq;         /* the last one removed; 0 when none was */
	uint64_t before, after; /* audit_size() in bytes */
};

/* What it removes is a row itself: kind system, action changed, reason AUDIT_REASON_PRUNE, rule the
 * limit that reached farthest (AUDIT_PRUNE_RULES), meta
 *   {"from":1,"to":7,"rows":7,"before":TIME,"max_rows":N,"max_bytes":N}
 * with the limits that were set. It is stored, and signed, in the transaction that removes the
 * first of these rows: no cut without it, and after a crash it may name rows that are still there.
 * A size is reached by estimates, each with a row that names all that this prune removes; the last
 * one tells everything. A log of nothing but one such row is left alone, so that a prune never
 * feeds the next. Removes in steps of a few thousand rows, each one transaction with its signed
 * point (AUDIT_POINT_PRUNE), so that writers wait little and a crash leaves a provable log. Free
 * pages go back to the file system. AQE_E_ABSENT when there is no signing key: an unsigned cut
 * could not be told from tampering. */
#define AUDIT_PRUNE_RULES "age", "rows", "size"
AQE_MUST_CHECK int audit_prune(struct audit_log *log, const struct audit_prune_opts *o,
			       struct audit_prune_result *ret, struct aqe_err *e);

#endif
