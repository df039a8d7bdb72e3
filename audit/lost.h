/* SPDX-License-Identifier: MIT */
/* The counter of rows that could not be stored. A file of fixed size, written when the log is made,
 * so that a full disk can still count in place; in the spare folder while that one cannot be
 * written. The next append that works stores a gap record: kind system, action refused, reason
 * "gap", meta {"lost":N,"since":T,"until":T,"why":"disk full"}. */
#ifndef AQE_AUDIT_LOST_H
#define AQE_AUDIT_LOST_H

#include <stdint.h>

#include "audit/log.h"
#include "shim/core/err.h"

struct audit_lost {
	uint64_t count; /* rows lost since the last gap record */
	int64_t first_ns, last_ns;
	uint64_t episode; /* random; names the time of loss, so that it is reported once */
	char why[64];     /* of the last one: "disk full" */
};

/* What the counters of both folders say; count 0 when nothing is pending. */
AQE_MUST_CHECK int audit_lost_read(const struct audit_opts *o, struct audit_lost *ret,
				   struct aqe_err *e);
/* Adds `n` lost rows. audit_append() and audit_record() do it themselves; for a service that could
 * not even ask. An error means that nothing could be counted. */
AQE_MUST_CHECK int audit_lost_add(const struct audit_opts *o, uint64_t n, const char *why,
				  struct aqe_err *e);

#endif
