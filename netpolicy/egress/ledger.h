/* SPDX-License-Identifier: MIT */
/* The worker's side of the audit: records go to the keeper, who says when they are stored. A
 * decision waits for that; a full queue is a refusal. */
#ifndef AQE_EGRESS_LEDGER_H
#define AQE_EGRESS_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netpolicy/egress/record.h"
#include "netpolicy/egress/wire.h"
#include "netpolicy/limiter.h"

enum {
	NETPOL_LEDGER_WAITING = 512, /* records on their way at once */
	NETPOL_LEDGER_BACKLOG = 512, /* closes that found the channel full */
	NETPOL_REPEATS_MAX = 256,    /* different denials of a minute */
};

/* Somebody who waits for a record to be stored. Zeroed: waits for nothing. */
struct netpol_wait {
	struct netpol_wait *next;
	uint64_t serial;
	bool waiting;
	void (*fn)(struct netpol_wait *w, bool ok);
};

struct netpol_ledger {
	int chan;
	uint64_t sent, stored; /* serials */
	struct netpol_wait *first, **last;
	struct netpol_record *backlog;
	size_t n_backlog;
	uint64_t lost; /* closes that found even the backlog full */
	/* Told when there is something to send, which is sent with what comes until then by
	 * netpol_ledger_send(). NULL: each record is sent at once. */
	void (*queued)(struct netpol_ledger *l);
	struct netpol_msg_records out;
};
void netpol_ledger_init(struct netpol_ledger *l, int chan);
void netpol_ledger_done(struct netpol_ledger *l);
/* Sends what waits for it. False: the channel is full or gone; it waits on. */
bool netpol_ledger_send(struct netpol_ledger *l);
/* Sends `r`; `w->fn` is called when it is stored or could not be. False: the queue is full or gone,
 * and what `r` would decide must be refused. */
bool netpol_ledger_put(struct netpol_ledger *l, const struct netpol_record *r,
		       struct netpol_wait *w);
/* Sends what nobody waits for: a close, a count. Kept while the channel is full. */
void netpol_ledger_tell(struct netpol_ledger *l, const struct netpol_record *r);
void netpol_ledger_forget(struct netpol_ledger *l, struct netpol_wait *w);
/* The keeper said: stored up to `serial` (or not). Calls who waited. */
void netpol_ledger_stored(struct netpol_ledger *l, uint64_t serial, bool ok);

/* Denials of the present minute by what makes them identical (listener, reason, host, port). The
 * first of each kind is stored, further ones while a budget lasts; the rest is counted. */
struct netpol_repeats {
	uint64_t seed; /* random */
	size_t n;
	struct {
		uint64_t hash;
		struct netpol_record *row; /* with its count; NULL: nothing to count yet */
	} kinds[NETPOL_REPEATS_MAX];
};
/* True when `r` is the first of its kind in this minute (and not one kind too many). */
bool netpol_repeats_first(struct netpol_repeats *p, const struct netpol_record *r);
/* Counts one that is not stored; kinds that are too many share the last place. */
void netpol_repeats_count(struct netpol_repeats *p, const struct netpol_record *r);
/* Tells the counts and starts anew; `l` NULL: only frees. */
void netpol_repeats_flush(struct netpol_repeats *p, struct netpol_ledger *l, int64_t now_ns);

#endif
