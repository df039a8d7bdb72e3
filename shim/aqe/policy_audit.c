/* SPDX-License-Identifier: MIT */
#include "shim/aqe/policy_audit.h"

#include <unistd.h>

#include "audit/log.h"
#include "shim/aqe/audit_at.h"
#include "shim/aqe/audit_journal.h"
#include "shim/core/cleanup.h"

#define ARENA_MAX ((size_t)64 << 10)
#define MS_NS     1000000

int shim_policy_audit_open(struct shim_policy_audit *a, struct aqe_err *e)
{
	struct audit_opts opts;
	int rc;

	a->arena = aqe_arena_new(ARENA_MAX);
	if (!a->arena)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the audit log");
	rc = shim_audit_at(a->arena, environ, AUDIT_WRITE, &opts, e);
	return rc ? rc : audit_open(&opts, &a->log, e);
}

void shim_policy_audit_close(struct shim_policy_audit *a)
{
	audit_close(a->log);
	aqe_arena_free(a->arena);
	*a = (struct shim_policy_audit){ NULL, NULL };
}

static int append(struct shim_policy_audit *a, struct audit_row *row, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *fit = aqe_arena_new(ARENA_MAX);
	int rc = fit ? audit_row_fit(row, fit, e)
		     : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for an audit row");

	if (rc == 0)
		rc = audit_append(a->log, row, e);
	if (rc == 0)
		shim_journal_row(row);
	return rc;
}

int shim_policy_audit_write(void *self, const struct shim_rpc_record *r, struct aqe_err *e)
{
	static const enum audit_action actions[] = {
		[NETPOL_DENY] = AUDIT_BLOCKED,
		[NETPOL_LIMITED] = AUDIT_RATE_LIMITED,
		[NETPOL_INVALID] = AUDIT_BLOCKED,
		[NETPOL_ALLOW] = AUDIT_ALLOWED,
	};
	struct shim_policy_audit *a = self;
	struct audit_row row = AUDIT_ROW_INIT(AUDIT_REQUEST, actions[r->verdict]);

	row.agent_id = r->agent;
	row.agent_type = r->type;
	row.domain = r->host;
	row.port = r->port;
	row.method = r->method;
	row.rule = r->rule;
	row.policy = r->policy;
	row.status = r->status < 0 ? AUDIT_NONE : r->status;
	row.response_ns = r->response_ms < 0 ? AUDIT_NONE : r->response_ms * MS_NS;
	/* an allowed row says why only when the policy would have refused it */
	if (r->verdict == NETPOL_LIMITED)
		row.reason = AUDIT_REASON_RATE;
	else if (r->verdict != NETPOL_ALLOW || r->would_deny)
		row.reason = r->reason;
	if (r->would_deny)
		row.meta = "{\"wouldDeny\":true}";
	return append(a, &row, e);
}

int shim_policy_audit_reload(void *self, const char *digest, const char *fault, struct aqe_err *e)
{
	struct audit_row row = AUDIT_ROW_INIT(AUDIT_POLICY, fault ? AUDIT_REFUSED : AUDIT_CHANGED);

	row.policy = *digest ? digest : NULL;
	row.reason = fault;
	return append(self, &row, e);
}
