/* SPDX-License-Identifier: MIT */
/* The port through which the keeper's pair (worker and dialer) is supervised: the keeper says what
 * happened, the other side what to do. It decides when a hung pair is given up, how long to wait
 * before the next start, and when the service closes for good. */
#ifndef AQE_EGRESS_SUPERVISE_H
#define AQE_EGRESS_SUPERVISE_H

#include <stdbool.h>
#include <stdint.h>

enum netpol_sup_event {
	NETPOL_SUP_BEGIN,        /* once, first */
	NETPOL_SUP_STARTED,      /* both were forked */
	NETPOL_SUP_START_FAILED, /* something of it may run */
	NETPOL_SUP_ANSWERED,     /* both answered the ping */
	NETPOL_SUP_ENDED,        /* by themselves; nothing of them is left */
	NETPOL_SUP_KILLED,       /* as told; nothing of them is left */
	NETPOL_SUP_TIMER,
};

enum netpol_sup_failure { NETPOL_SUP_NO_FAILURE, NETPOL_SUP_FAILED, NETPOL_SUP_HUNG };

/* What to do, in this order. */
struct netpol_sup_todo {
	int64_t timer_ms; /* tell TIMER after so long, in place of an earlier one; -1: as it is */
	enum netpol_sup_failure failure; /* it counts as one more */
	bool kill;                       /* then tell KILLED, now or when they are gone */
	bool start;
	bool ping;
	bool close; /* too many failures: for good */
};

struct netpol_supervise {
	/* Does not block or fail; overwrites *ret. `now_ms` is of a clock that runs forward,
	 * `random` is uniform. */
	void (*tell)(void *self, enum netpol_sup_event event, int64_t now_ms, uint64_t random,
		     struct netpol_sup_todo *ret);
	void *self;
};

#endif
