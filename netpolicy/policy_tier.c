/* SPDX-License-Identifier: MIT */
/* What a user's policy may change: only towards less. */
#include "netpolicy/policy_int.h"
#include "shim/core/text.h"

static bool access_looser(const struct netpol_type *before, const struct netpol_type *after)
{
	return after->access > before->access;
}

static bool mode_looser(const struct netpol_type *before, const struct netpol_type *after)
{
	return after->mode < before->mode;
}

static bool sni_looser(const struct netpol_type *before, const struct netpol_type *after)
{
	return after->sni < before->sni;
}

static bool apex_looser(const struct netpol_type *before, const struct netpol_type *after)
{
	return after->wildcard_apex && !before->wildcard_apex;
}

static bool domains_looser(const struct netpol_type *before, const struct netpol_type *after)
{
	if (after->rules == before->rules)
		return false;
	for (size_t i = 0; i < netpol_rules_count(after->rules); i++) {
		if (!netpol_rules_cover(before->rules, netpol_rules_at(after->rules, i),
					before->wildcard_apex))
			return true;
	}
	return false;
}

static bool cidr_looser(const struct netpol_type *before, const struct netpol_type *after)
{
	return after->cidrs != before->cidrs; /* a user's policy has none */
}

static bool rate_looser(const struct netpol_type *before, const struct netpol_type *after)
{
	return after->rate.per_minute > before->rate.per_minute ||
	       after->rate.per_hour > before->rate.per_hour ||
	       after->rate.burst > before->rate.burst;
}

static bool shared_looser(const struct netpol_type *before, const struct netpol_type *after)
{
	/* a user's policy has none */
	return after->has_shared != before->has_shared ||
	       after->shared.per_minute > before->shared.per_minute ||
	       after->shared.per_hour > before->shared.per_hour ||
	       after->shared.burst > before->shared.burst;
}

static bool timeout_looser(const struct netpol_type *before, const struct netpol_type *after)
{
	return after->timeout_ms > before->timeout_ms;
}

static bool host_looser(const struct netpol_type *before, const struct netpol_type *after)
{
	return before->host_strict && !after->host_strict;
}

static bool websocket_looser(const struct netpol_type *before, const struct netpol_type *after)
{
	return after->websocket && !before->websocket;
}

static bool socks_looser(const struct netpol_type *before, const struct netpol_type *after)
{
	return after->socks && !before->socks;
}

static bool transparent_looser(const struct netpol_type *before, const struct netpol_type *after)
{
	return after->transparent && !before->transparent;
}

/* 0 in a wide row means no limit at all. */
static bool limits_looser(const struct netpol_type *before, const struct netpol_type *after)
{
	for (size_t i = 0; i < NETPOL_LIMIT_ROWS_COUNT; i++) {
		const struct netpol_limit_row *row = &NETPOL_LIMIT_ROWS[i];
		uint64_t a = netpol_limit_get(&before->limits, row);
		uint64_t b = netpol_limit_get(&after->limits, row);

		if (row->wide) {
			a = a ? a : UINT64_MAX;
			b = b ? b : UINT64_MAX;
		}
		if (b > a)
			return true;
	}
	return false;
}

static bool (*const LOOSER[NETPOL_KEY_COUNT])(const struct netpol_type *before,
					      const struct netpol_type *after) = {
	[NETPOL_KEY_ACCESS] = access_looser,
	[NETPOL_KEY_MODE] = mode_looser,
	[NETPOL_KEY_SNI] = sni_looser,
	[NETPOL_KEY_APEX] = apex_looser,
	[NETPOL_KEY_DOMAINS] = domains_looser,
	[NETPOL_KEY_CIDR] = cidr_looser,
	[NETPOL_KEY_SHARED] = shared_looser,
	[NETPOL_KEY_RATE] = rate_looser,
	[NETPOL_KEY_TIMEOUT] = timeout_looser,
	[NETPOL_KEY_HOST_HEADER] = host_looser,
	[NETPOL_KEY_WEBSOCKET] = websocket_looser,
	[NETPOL_KEY_SOCKS] = socks_looser,
	[NETPOL_KEY_TRANSPARENT] = transparent_looser,
	[NETPOL_KEY_LIMITS] = limits_looser,
};

enum netpol_key netpol_policy_looser(const struct netpol_type *before,
				     const struct netpol_type *after)
{
	unsigned k = 0;

	while (k < NETPOL_KEY_COUNT && !LOOSER[k](before, after))
		k++;
	return (enum netpol_key)k;
}
