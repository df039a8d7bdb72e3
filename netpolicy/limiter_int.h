/* SPDX-License-Identifier: MIT */
/* Inside the limiter: its state, for limiter.c and limiter_state.c only. */
#ifndef AQE_NETPOLICY_LIMITER_INT_H
#define AQE_NETPOLICY_LIMITER_INT_H

#include "netpolicy/limiter.h"

struct netpol_limiter {
	struct netpol_rate rate;
	int64_t at;    /* last time seen, ns */
	uint64_t debt; /* at `at`: what is missing from a full bucket, in 1/60e9 of a token */
	/* times of the last admissions, never falling; `cap` is the largest per_hour there was, so
	 * that lowering a limit and raising it again forgets nothing */
	int64_t *ring;
	uint32_t cap, next, n; /* places, place of the next one, places in use */
};

#define NETPOL_HOUR_NS ((int64_t)3600 * 1000000000)

/* The time of the k-th last admission, k from 1 to n. */
int64_t netpol_limiter_kth_last(const struct netpol_limiter *l, uint32_t k);
/* Admissions in the last `window` ns before `now`. */
uint32_t netpol_limiter_count(const struct netpol_limiter *l, int64_t now, int64_t window);
/* The debt at `now`, which is not before l->at. */
uint64_t netpol_limiter_debt(const struct netpol_limiter *l, int64_t now);
/* Room for at least `cap` admissions; false without memory. */
bool netpol_limiter_room(struct netpol_limiter *l, uint32_t cap);
/* Notes an admission, not before the last one. */
void netpol_limiter_push(struct netpol_limiter *l, int64_t when);

#endif
