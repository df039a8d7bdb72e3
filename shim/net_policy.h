/* SPDX-License-Identifier: MIT */
/* The network policy of this host: the policy files' sections over the built-in table. */
#ifndef AQE_SHIM_NET_POLICY_H
#define AQE_SHIM_NET_POLICY_H

#include "hardening/policy.h"
#include "netpolicy/policy.h"

/* The snapshot of a policy that was read. */
AQE_MUST_CHECK int shim_net_policy_build(const struct hard_policy *p, struct netpol_policy **ret,
					 struct aqe_err *e);
/* Whether there is one: a section 'network' that does not load refuses starts like any other fault
 * of the policy. Without a section nothing is done. */
AQE_MUST_CHECK int shim_net_policy_check(const struct hard_policy *p, struct aqe_err *e);

#endif
