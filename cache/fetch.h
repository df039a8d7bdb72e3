/* SPDX-License-Identifier: MIT */
/* One question to the upstream: asked under the policy, again when that may help. */
#ifndef AQE_CACHE_FETCH_H
#define AQE_CACHE_FETCH_H

#include "cache/config.h"
#include "cache/upstream.h"

struct cache_fetcher {
	const struct cache_upstream_config *cfg;
	struct cache_upstream upstream;
	struct cache_gate gate;
};

/* Sends `x` (for `texts` texts) at most cfg->tries times, with pauses that double: again after no
 * connection, a broken answer, 429, 500, 502, 503 and 504; not after a time-out, which has taken
 * long enough. 0: an answer of 2xx. Else x->status is the one for the agent, x->retry_after_s may
 * be set, and `e` has words for him. */
AQE_MUST_CHECK int cache_fetch(const struct cache_fetcher *f, struct cache_exchange *x,
			       uint64_t texts, struct aqe_err *e);

#endif
