/* SPDX-License-Identifier: MIT */
#include "shim/aqe/audit_own.h"

#include <unistd.h>

#include "audit/log.h"
#include "hardening/policy.h"
#include "shim/aqe/audit_at.h"
#include "shim/core/cleanup.h"
#include "shim/env.h"
#include "shim/record.h"

#define ARENA_MAX ((size_t)64 << 20) /* a policy fits in */

static int place(struct aqe_arena *a, const struct hard_policy *p, struct audit_opts *ret,
		 struct aqe_err *e)
{
	const bool rootless = geteuid() != 0 || shim_state_in_userns();
	const char *path = NULL;
	int rc;

	if (p)
		path = rootless ? p->audit.user_path : p->audit.path;
	rc = path ? shim_audit_at_path(a, path, AUDIT_WRITE, ret, e)
		  : shim_audit_at(a, environ, AUDIT_WRITE, ret, e);
	if (rc == 0 && p)
		ret->sign_every = p->audit.sign_every;
	return rc;
}

int shim_audit_own(struct audit_row *row, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct audit_opts o = { .dir = NULL };
	struct hard_policy *p = NULL;
	int rc;

	if (!a)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for an audit row");
	if (hard_policy_load(HARD_POLICY_DIR, shim_env_policy_dir(a, environ), &p, NULL) < 0)
		p = NULL;
	if (p && p->audit.mode == HARD_AUDIT_OFF) {
		hard_policy_free(p);
		return 0;
	}
	rc = place(a, p, &o, e);
	if (rc == 0)
		rc = audit_row_fit(row, a, e);
	if (rc == 0)
		rc = audit_record(&o, row, 1, e);
	hard_policy_free(p);
	return rc;
}
