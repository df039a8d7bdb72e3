/* SPDX-License-Identifier: MIT */
#include "netpolicy/decide.h"

#include <string.h>

#define HTTP_PORT  80
#define HTTPS_PORT 443

const struct netpol_rate NETPOL_DENY_BUDGET = { 60, 3600, 60 };

static const struct {
	const char *name;
	struct netpol_ports ports;
	bool spends;
} PROTOS[NETPOL_PROTO_COUNT] = {
	[NETPOL_PROTO_ANY] = { "any", { { HTTP_PORT, HTTPS_PORT }, false }, true },
	[NETPOL_PROTO_HTTP] = { "http", { { HTTP_PORT, 0 }, false }, true },
	[NETPOL_PROTO_CONNECT] = { "connect", { { HTTPS_PORT, 0 }, false }, true },
	[NETPOL_PROTO_TLS] = { "tls", { { HTTPS_PORT, 0 }, false }, true },
	[NETPOL_PROTO_SOCKS] = { "socks", { { HTTP_PORT, HTTPS_PORT }, false }, true },
	[NETPOL_PROTO_DNS] = { "dns", { { 0, 0 }, true }, false },
};

const char *netpol_proto_name(enum netpol_proto p)
{
	return (unsigned)p < NETPOL_PROTO_COUNT ? PROTOS[p].name : "?";
}

/* What follows from each reason. A `reported` one lets pass in report mode: it is about what the
 * policy lists, never about where an address leads. */
static const struct {
	const char *name;
	enum netpol_verdict verdict;
	bool reported;
} REASONS[NETPOL_REASON_COUNT] = {
	[NETPOL_REASON_ALLOWED] = { "allowed", NETPOL_ALLOW, false },
	[NETPOL_REASON_HOST_INVALID] = { "host_invalid", NETPOL_INVALID, false },
	[NETPOL_REASON_LOOPBACK] = { "loopback_not_proxied", NETPOL_DENY, false },
	[NETPOL_REASON_DOMAIN] = { "domain_not_allowed", NETPOL_DENY, true },
	[NETPOL_REASON_IP_LITERAL] = { "ip_literal", NETPOL_DENY, true },
	[NETPOL_REASON_PORT] = { "port_not_allowed", NETPOL_DENY, true },
	[NETPOL_REASON_RATE] = { "rate_limit_exceeded", NETPOL_LIMITED, true },
	[NETPOL_REASON_ADDRESS] = { "address_denied", NETPOL_DENY, false },
	[NETPOL_REASON_NO_POLICY] = { "policy_unavailable", NETPOL_DENY, false },
	[NETPOL_REASON_STORE] = { "limiter_unavailable", NETPOL_DENY, true },
};

const char *netpol_reason_name(enum netpol_reason r)
{
	return (unsigned)r < NETPOL_REASON_COUNT ? REASONS[r].name : "?";
}

/* The list's part: name, then port. */
static enum netpol_reason judge_rules(const struct netpol_type *t, const struct netpol_request *rq,
				      struct netpol_answer *ret)
{
	struct netpol_match m;

	netpol_rules_match(t->rules, &ret->host, t->wildcard_apex, &PROTOS[rq->proto].ports,
			   rq->port, &m);
	ret->rule = m.rule;
	if (!m.rule)
		return ret->host.kind == NETPOL_HOST_LITERAL ? NETPOL_REASON_IP_LITERAL
							     : NETPOL_REASON_DOMAIN;
	return m.port_ok ? NETPOL_REASON_ALLOWED : NETPOL_REASON_PORT;
}

/* Everything that needs no state, in this order. */
static enum netpol_reason judge(const struct netpol_type *t, const struct netpol_request *rq,
				struct netpol_answer *ret)
{
	if (!t)
		return NETPOL_REASON_NO_POLICY;
	if (!netpol_host_parse(rq->host, rq->host_len, &ret->host, &ret->why))
		return NETPOL_REASON_HOST_INVALID;
	if (netpol_host_is_local(&ret->host))
		return NETPOL_REASON_LOOPBACK;
	if (ret->host.kind == NETPOL_HOST_LITERAL &&
	    !netpol_decide_addr(t, NULL, 0, &ret->host.addr, &ret->class))
		return NETPOL_REASON_ADDRESS;
	return judge_rules(t, rq, ret);
}

static bool passes(const struct netpol_type *t, const struct netpol_request *rq,
		   enum netpol_reason reason)
{
	if (reason == NETPOL_REASON_ALLOWED)
		return true;
	/* nothing can be dialled at port 0, listed or not */
	return t && t->mode == NETPOL_MODE_REPORT && REASONS[reason].reported &&
	       (rq->port || PROTOS[rq->proto].ports.any);
}

static bool limited(struct netpol_limiter *l, int64_t now_ns, enum netpol_spend spend,
		    struct netpol_answer *ret)
{
	struct netpol_limit limit;

	if (spend == NETPOL_CONSUME)
		netpol_limiter_consume(l, now_ns, &limit);
	else
		netpol_limiter_peek(l, now_ns, &limit);
	ret->retry_ms = limit.retry_ms;
	return !limit.allowed;
}

void netpol_decide_refused(const struct netpol_type *t, const struct netpol_request *rq,
			   enum netpol_reason reason, uint64_t retry_ms, struct netpol_answer *io)
{
	if (io->reason == NETPOL_REASON_ALLOWED)
		io->reason = reason;
	io->verdict = REASONS[reason].verdict;
	io->retry_ms = retry_ms;
	io->would_deny = passes(t, rq, io->reason);
	if (io->would_deny)
		io->verdict = NETPOL_ALLOW;
}

void netpol_decide(const struct netpol_type *t, struct netpol_limiter *l, int64_t now_ns,
		   const struct netpol_request *rq, enum netpol_spend spend,
		   struct netpol_answer *ret)
{
	enum netpol_reason reason;

	/* a refusal until shown otherwise */
	ret->verdict = NETPOL_DENY;
	ret->would_deny = false;
	ret->rule = NULL;
	ret->retry_ms = 0;
	ret->class = NETPOL_CLASS_INVALID;
	ret->why = NULL;
	reason = judge(t, rq, ret);
	/* the first thing that is wrong is the reason; a request that passes in report mode is
	 * counted like any other */
	if (passes(t, rq, reason) && l && PROTOS[rq->proto].spends &&
	    limited(l, now_ns, spend, ret) && reason == NETPOL_REASON_ALLOWED)
		reason = NETPOL_REASON_RATE;
	ret->reason = reason;
	ret->verdict = REASONS[reason].verdict;
	if (reason != NETPOL_REASON_ALLOWED && passes(t, rq, reason)) {
		ret->verdict = NETPOL_ALLOW;
		ret->would_deny = true;
	}
}

bool netpol_decide_addr(const struct netpol_type *t, const struct netpol_addr *own, size_t n_own,
			const struct netpol_addr *a, enum netpol_class *ret_class)
{
	const struct netpol_vet vet = { t->cidrs, t->n_cidrs, own, n_own };

	return netpol_addr_allowed(&vet, a, ret_class);
}
