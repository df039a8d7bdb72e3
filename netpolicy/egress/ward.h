/* SPDX-License-Identifier: MIT */
/* What the keeper supervises through the port of supervise.h: does, by callbacks, what the port
 * says, and tells it how that went, until there is nothing more to do. */
#ifndef AQE_EGRESS_WARD_H
#define AQE_EGRESS_WARD_H

#include "netpolicy/egress/loop.h"
#include "netpolicy/egress/supervise.h"

struct netpol_ward_ops {
	/* It counts as one more failure. */
	void (*failed)(void *self, enum netpol_sup_failure why);
	/* End it; true when nothing of it is left. Else netpol_ward_gone() is to follow. */
	bool (*kill)(void *self);
	/* False: it did not start, but something of it may run. */
	bool (*start)(void *self);
	void (*ping)(void *self);
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
};

/* The first four members are set by the caller before. */
void netpol_ward_init(struct netpol_ward *w);
void netpol_ward_tell(struct netpol_ward *w, enum netpol_sup_event event);
/* Nothing of it is left: ENDED, or KILLED when that was asked for. */
void netpol_ward_gone(struct netpol_ward *w);
/* Nothing is done any more. */
void netpol_ward_close(struct netpol_ward *w);

#endif
