/* SPDX-License-Identifier: MIT */
/* The protocol of `aqe policy serve`: one JSON object a line in, one out. No sockets here.
 *
 *   {"op":"check","type":T,"agent":A,"host":H}       what a request would be answered; spends
 * nothing
 *   {"op":"record","type":T,"agent":A,"host":H,...}  decides, spends, and writes an audit row
 *   {"op":"peek","type":T,"agent":A}                 where the agent's rate limit stands
 *   {"op":"reset","type":T,"agent":A}                forgets its history
 *   {"op":"policy","type":T}                         what is in force for a type
 *   {"op":"reload"}                                  reads the policy files anew
 *
 * Optional everywhere: "id" (string or number, comes back). In check and record: "port" (443),
 * "proto", "override", and for record "method", "status", "responseMs". An override is an object
 * with "domains", "wildcardApex" (false), "mode" ("enforce"), "rate"; what it admits must be
 * admitted by the policy as well, so it can only tighten. */
#ifndef AQE_AQE_POLICY_RPC_H
#define AQE_AQE_POLICY_RPC_H

#include <stddef.h>
#include <stdint.h>

#include "netpolicy/decide.h"
#include "netpolicy/limiters.h"
#include "netpolicy/live.h"
#include "netpolicy/policy.h"
#include "shim/core/buf.h"
#include "shim/core/err.h"
#include "shim/core/json.h"

#define SHIM_RPC_LINE   ((size_t)64 << 10) /* bytes of a line, with its newline */
#define SHIM_RPC_AGENTS 4096               /* agents at once */

/* What a record is written from. */
struct shim_rpc_record {
	const char *agent, *type, *host; /* host: canonical, or NULL when it was none */
	const char *rule, *reason, *method, *policy;
	enum netpol_verdict verdict;
	uint16_t port;
	bool would_deny;
	int64_t status, response_ms; /* -1: not given */
};

struct shim_rpc {
	struct netpol_live *live;
	struct netpol_limiters *limiters;
	/* writes an audit row; NULL: none is wanted. A failure refuses the request. */
	int (*audit)(void *self, const struct shim_rpc_record *r, struct aqe_err *e);
	/* writes an audit row of a reload: the digest now in force, and what was wrong or NULL */
	int (*reloaded)(void *self, const char *digest, const char *fault, struct aqe_err *e);
	void *self;
};

/* Reads the policy files anew. A bad policy, or a change that cannot be recorded, is an error; the
 * first leaves the old one in force. */
AQE_MUST_CHECK int shim_rpc_reload(struct shim_rpc *r, bool *ret_changed, struct aqe_err *e);
/* Answers one line (`n` bytes without newline) with one line in `out`. Never fails: what cannot be
 * read or done is answered with "ok":false and "error". `now_ns` is CLOCK_BOOTTIME. */
void shim_rpc_line(struct shim_rpc *r, const char *line, size_t n, int64_t now_ns,
		   struct aqe_buf *out);

#endif
