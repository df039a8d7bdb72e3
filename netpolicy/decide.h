/* SPDX-License-Identifier: MIT */
/* The one decision, for every front end, `aqe policy check` and `serve`: parse, canonical host,
 * loopback, domain, port, rate; then, for each address the name resolves to, the vet. */
#ifndef AQE_NETPOLICY_DECIDE_H
#define AQE_NETPOLICY_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netpolicy/host.h"
#include "netpolicy/limiter.h"
#include "netpolicy/policy.h"
#include "netpolicy/rules.h"

enum netpol_proto {
	NETPOL_PROTO_ANY,     /* `policy check`: the default ports of HTTP and CONNECT */
	NETPOL_PROTO_HTTP,    /* absolute-form, or a Host listener: 80 */
	NETPOL_PROTO_CONNECT, /* 443 */
	NETPOL_PROTO_TLS,     /* an SNI listener: 443 */
	NETPOL_PROTO_SOCKS,   /* 80 and 443 */
	NETPOL_PROTO_DNS,     /* the name only; spends nothing */
	NETPOL_PROTO_COUNT,
};
const char *netpol_proto_name(enum netpol_proto p);

enum netpol_verdict {
	NETPOL_DENY,    /* 403 */
	NETPOL_LIMITED, /* 429 */
	NETPOL_INVALID, /* 400 */
	NETPOL_ALLOW,
};

/* Stable names are what clients and the audit see. */
enum netpol_reason {
	NETPOL_REASON_ALLOWED,
	NETPOL_REASON_HOST_INVALID,
	NETPOL_REASON_LOOPBACK,   /* loopback_not_proxied */
	NETPOL_REASON_DOMAIN,     /* domain_not_allowed */
	NETPOL_REASON_IP_LITERAL, /* ip_literal: a public address without an own entry */
	NETPOL_REASON_PORT,       /* port_not_allowed */
	NETPOL_REASON_RATE,       /* rate_limit_exceeded */
	NETPOL_REASON_ADDRESS,    /* address_denied */
	NETPOL_REASON_NO_POLICY,  /* policy_unavailable: nothing could be loaded */
	NETPOL_REASON_STORE,      /* limiter_unavailable: the shared one cannot be asked */
	NETPOL_REASON_COUNT,
};
const char *netpol_reason_name(enum netpol_reason r);

struct netpol_request {
	enum netpol_proto proto;
	const char *host; /* bytes as the client sent them, without the port */
	size_t host_len;
	uint16_t port; /* not looked at for DNS */
};

struct netpol_answer {
	enum netpol_verdict verdict;
	enum netpol_reason reason;
	bool would_deny; /* report mode: allowed, and `reason` says why it would not be */
	const struct netpol_rule *rule; /* that named the host, or NULL */
	uint64_t retry_ms;              /* LIMITED: exact wait */
	enum netpol_class class;        /* of a literal; NETPOL_CLASS_INVALID for a name */
	const char *why;                /* INVALID: a few words; else NULL */
	struct netpol_host host;        /* canonical; undefined when INVALID */
};

enum netpol_spend { NETPOL_PEEK, NETPOL_CONSUME };

/* Decides. `t` NULL denies (no policy). `l` may be NULL: no rate limit is applied. A denied name
 * spends nothing; the limiter is asked last. */
void netpol_decide(const struct netpol_type *t, struct netpol_limiter *l, int64_t now_ns,
		   const struct netpol_request *rq, enum netpol_spend spend,
		   struct netpol_answer *ret);

/* What netpol_decide() allowed is refused after all, by something that was asked later: *io becomes
 * that. In report mode it still passes. */
void netpol_decide_refused(const struct netpol_type *t, const struct netpol_request *rq,
			   enum netpol_reason reason, uint64_t retry_ms, struct netpol_answer *io);

/* After the look-up: true when this address may be dialled for this type. Report mode changes
 * nothing here. `own`: addresses of this host's interfaces, may be empty. */
bool netpol_decide_addr(const struct netpol_type *t, const struct netpol_addr *own, size_t n_own,
			const struct netpol_addr *a, enum netpol_class *ret_class);

/* Denials that are stored one by one: a second budget, so that a flood cannot fill the audit log
 * and does not spend the agent's requests. 60 a minute. */
extern const struct netpol_rate NETPOL_DENY_BUDGET;

#endif
