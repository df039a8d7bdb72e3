/* SPDX-License-Identifier: MIT */
/* A store that does not fail: while the real one is away, memory stands in. What was stored and
 * deleted meanwhile is carried over before the real one is used again, so a deleted entry does not
 * come back and nothing is computed twice. Whoever owns it calls cache_fallback_tick() now and
 * then.
 */
#ifndef AQE_CACHE_FALLBACK_H
#define AQE_CACHE_FALLBACK_H

#include "cache/store.h"

#define CACHE_FALLBACK_FIRST_MS 100   /* first probe after an outage began */
#define CACHE_FALLBACK_LAST_MS  30000 /* pauses between probes double up to this */

/* Owns both stores from here on, also on failure; their handles are emptied. `spare` must be a
 * memory store. init does not fail when the primary is away. */
AQE_MUST_CHECK int cache_fallback_new(struct cache_store *primary, struct cache_store *spare,
				      struct cache_store *ret, struct aqe_err *e);
/* Probes when it is due, and returns to the primary when it is well; blocks at most its time-outs.
 * `s` must be of cache_fallback_new(). Returns the ms until the next probe is due, or -1 when there
 * is no outage. For one thread. */
int64_t cache_fallback_tick(struct cache_store *s, const struct cache_now *now);

#endif
