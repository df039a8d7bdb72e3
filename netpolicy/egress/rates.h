/* SPDX-License-Identifier: MIT */
/* What was spent, in the memory that keeper and worker share (service.h): the worker's side. */
#ifndef AQE_EGRESS_RATES_H
#define AQE_EGRESS_RATES_H

#include <stdbool.h>
#include <stddef.h>

#include "netpolicy/egress/service.h"

/* One route's limiter (gate.h). */
struct netpol_gate {
	char name[NETPOL_GATEWAY_NAME_MAX + 1];
	struct netpol_limiter *limiter;
};
struct netpol_gates {
	struct netpol_gate *list;
	size_t n;
};

struct netpol_rates {
	struct netpol_limiter *own;       /* the type's; */
	const struct netpol_gates *gates; /* and the routes', NETPOL_RATES_GATES at most */
};
/* Which limiter an admission was of: the type's, or of a route by its place in the list. */
#define NETPOL_RATES_OWN     0U
#define NETPOL_RATES_GATE(i) ((unsigned)(i) + 1)
#define NETPOL_RATES_GATES   256

/* Writes all states into the place that is not in use, and turns to it; the bytes, 0 without
 * memory. To be called whenever the list of routes has changed. A route whose state finds no room
 * any more is written down as lost. */
size_t netpol_rates_share(struct netpol_shared *s, const struct netpol_rates *r,
			  const struct netpol_when *at);
/* Writes one admission down behind the states; false when there is no room, or no states yet. */
bool netpol_rates_spent(struct netpol_shared *s, unsigned which, int64_t at_ns);
/* Takes over what is there, routes by their names; false when there is nothing. A route that is new
 * keeps its full bucket, one that is gone is passed over. A state that was lost or is damaged
 * drains its limiter, a damaged list of them all. */
bool netpol_rates_restore(const struct netpol_shared *s, const struct netpol_rates *r,
			  const struct netpol_when *now);

#endif
