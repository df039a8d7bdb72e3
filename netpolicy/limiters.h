/* SPDX-License-Identifier: MIT */
/* Many rate limiters by name, bounded, for programs that answer for several agents. */
#ifndef AQE_NETPOLICY_LIMITERS_H
#define AQE_NETPOLICY_LIMITERS_H

#include <stddef.h>
#include <stdint.h>

#include "netpolicy/limiter.h"
#include "shim/core/err.h"

#define NETPOL_LIMITERS_KEY_MAX 256 /* bytes of a key */

struct netpol_limiters;

/* A table for at most `max` keys. */
AQE_MUST_CHECK int netpol_limiters_new(size_t max, struct netpol_limiters **ret, struct aqe_err *e);
void netpol_limiters_free(struct netpol_limiters *t);
size_t netpol_limiters_count(const struct netpol_limiters *t);

/* The limiter of a key, made with a full bucket when it is new; one that has other limits than
 * `rate` gets these (netpol_limiter_reconf). When the table is full, a limiter that is as good as
 * new (nothing in its last hour, bucket full) gives way; AQE_E_LIMIT when there is none. The
 * pointer is good until the next call but one: the limiter handed out last never gives way. */
AQE_MUST_CHECK int netpol_limiters_get(struct netpol_limiters *t, const char *key,
				       const struct netpol_rate *rate, int64_t now_ns,
				       struct netpol_limiter **ret, struct aqe_err *e);
/* The limiter of a key that is there, or NULL. */
struct netpol_limiter *netpol_limiters_find(const struct netpol_limiters *t, const char *key);
/* The rate a limiter works under. */
const struct netpol_rate *netpol_limiter_rate(const struct netpol_limiter *l);

/* All states in one file of `dirfd`, with a checksum each. An absent file loads nothing. After a
 * damaged one (AQE_E_MALFORMED) the keys read so far are restored, and every key that is new later
 * begins drained: what was lost cannot be told. */
AQE_MUST_CHECK int netpol_limiters_save(const struct netpol_limiters *t, int dirfd,
					const char *name, const struct netpol_when *at,
					struct aqe_err *e);
AQE_MUST_CHECK int netpol_limiters_load(struct netpol_limiters *t, int dirfd, const char *name,
					const struct netpol_when *now, struct aqe_err *e);

#endif
