/* SPDX-License-Identifier: MIT */
/* A policy in use that can be replaced by a newer one; a bad one changes nothing. */
#ifndef AQE_NETPOLICY_LIVE_H
#define AQE_NETPOLICY_LIVE_H

#include <stdbool.h>

#include "netpolicy/policy.h"
#include "shim/core/err.h"

/* A policy that is in use and can be replaced. Start with { NULL, load, self, AQE_ERR_INIT }. */
struct netpol_live {
	struct netpol_policy *now; /* last good one */
	int (*load)(void *self, struct netpol_policy **ret, struct aqe_err *e);
	void *self;
	struct aqe_err last; /* of the last reload that failed; code AQE_OK after a good one */
};
/* Loads a candidate; good: it is `now`, and *ret_changed tells whether its digest differs. Bad: the
 * old one stays, the error is returned and kept. */
AQE_MUST_CHECK int netpol_live_reload(struct netpol_live *l, bool *ret_changed, struct aqe_err *e);
void netpol_live_done(struct netpol_live *l);

#endif
