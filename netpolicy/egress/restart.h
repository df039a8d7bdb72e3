/* SPDX-License-Identifier: MIT */
/* When a worker that ended is started again: the supervisor's policy, for this one pair. Pure. */
#ifndef AQE_EGRESS_RESTART_H
#define AQE_EGRESS_RESTART_H

#include <stdint.h>

enum {
	NETPOL_RESTART_FIRST_MS = 500,
	NETPOL_RESTART_LAST_MS = 8000,
	NETPOL_RESTART_HEALTHY_MS = 60000, /* alive for so long: the count is forgotten */
};
struct netpol_restart {
	unsigned failures; /* in a row */
	int64_t started_ms;
};
void netpol_restart_started(struct netpol_restart *r, int64_t now_ms);
/* It ended. Milliseconds until the next start (a random part, by `random`, of 500 doubling to
 * 8,000), or -1 for the fifth failure in a row: closed for good. */
int64_t netpol_restart_ended(struct netpol_restart *r, int64_t now_ms, uint32_t random);

#endif
