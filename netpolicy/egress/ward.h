/* SPDX-License-Identifier: MIT */
/* What the keeper supervises through the port of supervise.h: does, by callbacks, what the port
 * says, and tells it how that went, until there is nothing more to do. */
#ifndef AQE_EGRESS_WARD_H
#define AQE_EGRESS_WARD_H

#include <sys/types.h>

#include "netpolicy/egress/loop.h"
#include "netpolicy/egress/supervise.h"

/* What works but does not answer is busy (a host short of CPU time), not hung, for so long. Less
 * than it takes to forget failures: what always spins is given up for good at last. */
#define NETPOL_WARD_BUSY_MS 45000

struct netpol_ward_ops {
	/* It counts as one more failure. */
	void (*failed)(void *self, enum netpol_sup_failure why);
	/* End it; true when nothing of it is left. Else netpol_ward_gone() is to follow. */
	bool (*kill)(void *self);
	/* False: it did not start, but something of it may run. */
	bool (*start)(void *self);
	void (*ping)(void *self);
	/* Nothing came back in time: true when what has not answered has worked since. */
	bool (*busy)(void *self);
	/* It is given up for good: netpol_ward_tell() does nothing from then on. */
	void (*close)(void *self);
};
struct netpol_ward {
	struct netpol_loop *loop;
	struct netpol_supervise port;
	const struct netpol_ward_ops *ops;
	void *self;
	/* ward.c's */
	struct netpol_timer timer;
	bool killing; /* the port waits for its end */
	bool closed;
	bool asked;       /* a ping is out, and its time */
	int64_t quiet_ms; /* the first ping behind the last answer; -1: none is out */
};

/* The first four members are set by the caller before. */
void netpol_ward_init(struct netpol_ward *w);
void netpol_ward_tell(struct netpol_ward *w, enum netpol_sup_event event);
/* Nothing of it is left: ENDED, or KILLED when that was asked for. */
void netpol_ward_gone(struct netpol_ward *w);
/* Nothing is done any more. */
void netpol_ward_close(struct netpol_ward *w);
/* The CPU time a process of ours has used, in ns; -1: none of that number. */
int64_t netpol_ward_cpu_ns(pid_t pid);

#endif
