/* SPDX-License-Identifier: MIT */
/* The worker's side of the shared limiter: who waits for its word, one question at a time, the
 * local limiter always first. */
#ifndef AQE_EGRESS_SPEND_H
#define AQE_EGRESS_SPEND_H

#include <stdbool.h>
#include <stdint.h>

#include "netpolicy/egress/loop.h"
#include "netpolicy/egress/wire.h"
#include "netpolicy/limiter.h"

#define NETPOL_SPEND_SLACK_MS 500 /* beyond the store's own deadline */

/* One that waits, embedded in its connection. Zeroed: waits for nothing. */
struct netpol_spending {
	struct netpol_spending *prev, *next;
	/* Called once. OK: it is admitted everywhere but here, where it still has to be spent. */
	void (*fn)(struct netpol_spending *s, enum netpol_spent result, uint64_t retry_ms);
};

struct netpol_spender {
	struct netpol_loop *loop;
	struct netpol_limiter *const *local;
	struct netpol_watch chan; /* to the store */
	struct netpol_timer late;
	struct netpol_task more;
	struct netpol_spending waiting; /* head of a ring */
	uint32_t timeout_ms;
	uint64_t last_id, asked; /* asked: 0 none; its answer is for the first in the ring */
	bool orphan;             /* but who asked has gone */
	bool away;               /* no store, or one that does not answer */
	uint64_t n_asked, n_limited, n_away;
};
/* `local` is looked at when it is used. */
void netpol_spender_init(struct netpol_spender *s, struct netpol_loop *loop,
			 struct netpol_limiter *const *local);
/* Closes the channel. */
void netpol_spender_done(struct netpol_spender *s);
/* A channel, in place of the one before; `fd` is taken. */
void netpol_spender_channel(struct netpol_spender *s, int fd);
void netpol_spender_add(struct netpol_spender *s, struct netpol_spending *x);
/* It does not want to know any more. */
void netpol_spender_forget(struct netpol_spender *s, struct netpol_spending *x);

#endif
