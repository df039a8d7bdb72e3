/* SPDX-License-Identifier: MIT */
/* The embedding cache of this host: the policy files' sections 'cache'. */
#ifndef AQE_SHIM_CACHE_POLICY_H
#define AQE_SHIM_CACHE_POLICY_H

#include "cache/config.h"
#include "hardening/policy.h"

/* Fills `ret` (whatever it was) for an agent type, NULL for none; *ret_has: the policy has a cache.
 * The scope's name is not set. Strings live in `a` and in `p`; not to be copied. */
AQE_MUST_CHECK int shim_cache_policy(struct aqe_arena *a, const struct hard_policy *p,
				     const char *type, struct cache_config *ret, bool *ret_has,
				     struct aqe_err *e);
/* Whether it can be read: a section that cannot refuses starts like any other fault of the policy.
 * Without a section nothing is done. */
AQE_MUST_CHECK int shim_cache_policy_check(const struct hard_policy *p, struct aqe_err *e);
/* Calls `fn` for all that is in force for the type; nothing without a section. */
AQE_MUST_CHECK int shim_cache_policy_each(const struct hard_policy *p, const char *type,
					  cache_setting_fn *fn, void *self, struct aqe_err *e);

#endif
