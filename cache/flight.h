/* SPDX-License-Identifier: MIT */
/* Who is fetching what: equal misses at the same time are fetched once. The first to come owns a
 * flight and must end it; the others wait and get a copy. */
#ifndef AQE_CACHE_FLIGHT_H
#define AQE_CACHE_FLIGHT_H

#include "cache/store.h"

struct cache_flights;
struct cache_flight;

struct cache_flights *cache_flights_new(void);
/* No flight may be left. NULL is accepted. */
void cache_flights_free(struct cache_flights *fs);

/* Joins the flight of a key. NULL: no memory (then fetch without one). *ret_owner: it is ours. */
struct cache_flight *cache_flight_join(struct cache_flights *fs, const struct cache_key *k,
				       bool *ret_owner);
/* The owner's end: with the value (copied), or with status, code and words of a failure. Others can
 * no longer join; the owner's reference is gone. */
void cache_flight_land(struct cache_flights *fs, struct cache_flight *f,
		       const struct cache_item *item, int status, const struct aqe_err *e);
/* Waits for the owner. 0: the value is in `item`; else the owner's code, with *ret_status and `e`.
 * AQE_E_TIMEOUT after `timeout_ms`. The reference is gone. */
AQE_MUST_CHECK int cache_flight_wait(struct cache_flights *fs, struct cache_flight *f,
				     unsigned timeout_ms, struct cache_item *item, int *ret_status,
				     struct aqe_err *e);

#endif
