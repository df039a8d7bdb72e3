/* SPDX-License-Identifier: MIT */
/* The egress service's records as rows of the audit log. */
#ifndef AQE_SHIM_EGRESS_AUDIT_H
#define AQE_SHIM_EGRESS_AUDIT_H

#include <stdbool.h>

#include "audit/log.h"
#include "netpolicy/egress/record.h"
#include "shim/core/arena.h"
#include "shim/core/err.h"

struct shim_egress_audit {
	struct audit_log *log;
	const char *container, *agent_id, *agent_type, *image; /* of every row; may be NULL */
	bool optional; /* what cannot be stored is only counted as lost, by the log */
};
/* Fills `row`; its meta lives in `a`. Pure. */
AQE_MUST_CHECK int shim_egress_row(const struct shim_egress_audit *s, const struct netpol_record *r,
				   struct aqe_arena *a, struct audit_row *row, struct aqe_err *e);
/* The port over `s`, which stays the caller's with its log. */
struct netpol_audit shim_egress_audit_port(struct shim_egress_audit *s);
/* Stores nothing: policy audit.mode "off". */
struct netpol_audit shim_egress_audit_none(void);

#endif
