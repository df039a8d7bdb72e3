/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/restart.h"

#include "netpolicy/egress/service.h"

void netpol_restart_started(struct netpol_restart *r, int64_t now_ms)
{
	r->started_ms = now_ms;
}

int64_t netpol_restart_ended(struct netpol_restart *r, int64_t now_ms, uint32_t random)
{
	int64_t delay = NETPOL_RESTART_FIRST_MS;

	if (now_ms - r->started_ms >= NETPOL_RESTART_HEALTHY_MS)
		r->failures = 0;
	if (++r->failures > NETPOL_RESTARTS_MAX)
		return -1;
	for (unsigned i = 1; i < r->failures && delay < NETPOL_RESTART_LAST_MS; i++)
		delay *= 2;
	return random % (uint32_t)(delay + 1);
}
