/* SPDX-License-Identifier: MIT */
/* The supervisor's machine behind the egress keeper's port: worker and dialer are held to the same
 * back-off, count and reset as a sandbox. */
#ifndef AQE_SHIM_EGRESS_WATCH_H
#define AQE_SHIM_EGRESS_WATCH_H

#include "netpolicy/egress/supervise.h"
#include "shim/supervisor/machine.h"

/* 500 ms doubling to 8 s with full jitter, the fifth failure in a row closes, 60 s alive forget the
 * count; a pair that twice in a row does not answer within 3 s is hung: at most 11 s after it
 * stopped answering and working. One that works is only busy, for NETPOL_WARD_BUSY_MS. */
extern const struct shim_sup_config SHIM_EGRESS_WATCH_CONFIG;

struct shim_egress_watch {
	struct shim_sup machine;
};
/* The port over `w`, which stays the caller's. */
struct netpol_supervise shim_egress_watch_port(struct shim_egress_watch *w, int64_t now_ms);

#endif
