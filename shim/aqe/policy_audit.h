/* SPDX-License-Identifier: MIT */
/* Audit rows of `aqe policy serve`. */
#ifndef AQE_AQE_POLICY_AUDIT_H
#define AQE_AQE_POLICY_AUDIT_H

#include "shim/aqe/policy_rpc.h"
#include "shim/core/arena.h"
#include "shim/core/err.h"

struct audit_log;

struct shim_policy_audit {
	struct audit_log *log;
	struct aqe_arena *arena; /* of its paths */
};

AQE_MUST_CHECK int shim_policy_audit_open(struct shim_policy_audit *a, struct aqe_err *e);
/* Also for one that was never opened. */
void shim_policy_audit_close(struct shim_policy_audit *a);
/* A shim_rpc's hook; `self` is a struct shim_policy_audit. */
AQE_MUST_CHECK int shim_policy_audit_write(void *self, const struct shim_rpc_record *r,
					   struct aqe_err *e);
/* The hook for reloads: a row of kind policy, `changed`, or `refused` with the fault. */
AQE_MUST_CHECK int shim_policy_audit_reload(void *self, const char *digest, const char *fault,
					    struct aqe_err *e);

#endif
