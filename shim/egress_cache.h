/* SPDX-License-Identifier: MIT */
/* The embedding cache of a container's egress service: whether there is one, what its companion is
 * given, and whom it becomes. */
#ifndef AQE_SHIM_EGRESS_CACHE_H
#define AQE_SHIM_EGRESS_CACHE_H

#include <sys/types.h>

#include "cache/config.h"
#include "hardening/policy.h"
#include "shim/core/buf.h"

#define SHIM_EGRESS_CACHE_MAX ((size_t)4 << 20) /* bytes of what is handed over */

/* Whose cache it is. */
struct shim_egress_cache_for {
	const char *type;              /* the agent's, known */
	const char *agent, *container; /* either may be NULL */
};

/* Whether the type has the listener; the section is judged. */
AQE_MUST_CHECK int shim_egress_cache_wanted(const struct hard_policy *p, const char *type,
					    bool *ret, struct aqe_err *e);
/* Appends what the companion is given: the section in force with the secrets in its files, JSON. To
 * be wiped. AQE_E_UNTRUSTED: a file cannot be used. */
AQE_MUST_CHECK int shim_egress_cache_give(const struct hard_policy *p,
					  const struct shim_egress_cache_for *who,
					  struct aqe_buf *b, struct aqe_err *e);
/* The user and group of the companion, 0: as we are. `own` is its id when it shares no file. The
 * folder of an SQLite file is made when it is not there, and given to an id of its own; one that is
 * there must belong to a user, not to root: that user it is. */
AQE_MUST_CHECK int shim_egress_cache_id(const struct hard_policy *p, const char *type, uid_t own,
					uid_t *ret, struct aqe_err *e);

/* What was given, read by the companion. */
struct shim_egress_cache_given {
	struct cache_config cfg; /* points into itself: not to be copied */
	const char *type;
};
/* Strings live in `a`. */
AQE_MUST_CHECK int shim_egress_cache_take(struct aqe_arena *a, const struct aqe_buf *b,
					  struct shim_egress_cache_given *ret, struct aqe_err *e);

#endif
