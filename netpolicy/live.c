/* SPDX-License-Identifier: MIT */
#include "netpolicy/live.h"

#include <string.h>

int netpol_live_reload(struct netpol_live *l, bool *ret_changed, struct aqe_err *e)
{
	struct netpol_policy *next = NULL;
	struct aqe_err why = AQE_ERR_INIT;
	int rc = l->load(l->self, &next, &why);

	l->last = why;
	if (rc) {
		if (e)
			*e = why;
		return rc;
	}
	*ret_changed = !l->now || strcmp(l->now->digest, next->digest) != 0;
	netpol_policy_unref(l->now);
	l->now = next;
	return AQE_OK;
}

void netpol_live_done(struct netpol_live *l)
{
	netpol_policy_unref(l->now);
	l->now = NULL;
}
