/* SPDX-License-Identifier: MIT */
/* The embedding cache: a store, what its bytes mean, how long they live, and what happened. Opened
 * from a configuration; then usable from many threads. */
#ifndef AQE_CACHE_CACHE_H
#define AQE_CACHE_CACHE_H

#include "cache/config.h"
#include "cache/store.h"

struct cache;

struct cache_stats {
	const char *backend; /* "memory", "sqlite", "redis" */
	bool two_level;
	uint64_t hits, misses;
	uint64_t stored;
	uint64_t damaged;         /* values that were no embedding any more, deleted */
	uint64_t wrong_dimension; /* embeddings of another dimension than asked for, deleted */
	uint64_t too_old;         /* beyond our time to live, though not beyond their own */
	uint64_t read_errors, write_errors;
	struct cache_store_stats store;
	/* microseconds that calls of cache_get() took: quantiles, exact to 6 % */
	double p50_us, p90_us, p99_us, max_us;
};
/* hits / (hits + misses); 0 when there were no look-ups. */
double cache_stats_rate(const struct cache_stats *s);

/* Builds the stores that the configuration names and opens them; starts the thread that prunes and
 * probes, unless both are off. `clock` NULL = the system's; it must outlive the cache. */
AQE_MUST_CHECK int cache_open(const struct cache_config *cfg, const struct cache_clock *clock,
			      struct cache **ret, struct aqe_err *e);
/* As above on a store that is made already (for tests); owns it from here on, also on failure. */
AQE_MUST_CHECK int cache_open_store(struct cache_store *store, const struct cache_config *cfg,
				    const struct cache_clock *clock, struct cache **ret,
				    struct aqe_err *e);
/* Waits for the thread. NULL is accepted. */
void cache_close(struct cache *c);

/* What the thread does: prunes and probes when it is due. Returns the ms until the next time. */
int64_t cache_tick(struct cache *c);

/* Looks up `n` items by key. `dims`: the dimension wanted of each (0 = any), or NULL. What is found
 * was verified; cache_item_value() reads it. Damage and wrong dimensions are misses, counted and
 * deleted. An error is a miss of all: callers may ignore it. */
int cache_get(struct cache *c, struct cache_item *items, size_t n, const uint32_t *dims,
	      struct aqe_err *e);
/* As cache_get(), without counting: for a second look. */
int cache_peek(struct cache *c, struct cache_item *items, size_t n, const uint32_t *dims,
	       struct aqe_err *e);
/* Whether entries are there (and not too old); nothing is counted, nothing verified. */
int cache_has(struct cache *c, struct cache_item *items, size_t n, struct aqe_err *e);
/* Stores items whose bytes cache_item_encode() made. */
AQE_MUST_CHECK int cache_put(struct cache *c, const struct cache_item *items, size_t n,
			     struct aqe_err *e);
AQE_MUST_CHECK int cache_del(struct cache *c, struct cache_item *items, size_t n,
			     struct aqe_err *e);
/* Also sets hits and misses back. */
AQE_MUST_CHECK int cache_clear(struct cache *c, struct aqe_err *e);
AQE_MUST_CHECK int cache_size(struct cache *c, uint64_t *ret_entries, uint64_t *ret_bytes,
			      struct aqe_err *e);
AQE_MUST_CHECK int cache_keys(struct cache *c, struct cache_iter *it, struct cache_key *ret,
			      size_t max, size_t *ret_n, struct aqe_err *e);
AQE_MUST_CHECK int cache_prune(struct cache *c, uint64_t *ret_n, struct aqe_err *e);
AQE_MUST_CHECK int cache_healthy(struct cache *c, struct aqe_err *e);
void cache_stats(struct cache *c, struct cache_stats *ret);

/* The numbers of an embedding: f32, or f64 to be narrowed. */
struct cache_numbers {
	const float *f32;
	const double *f64;
	uint32_t dim;
};
/* Fills key, life and bytes of an item: created now, with the cache's time to live. `lost` (may be
 * NULL): what narrowing cost. Errors as of cache_value_encode(). */
AQE_MUST_CHECK int cache_item_encode(struct cache *c, const struct cache_key *k,
				     const struct cache_numbers *v, struct cache_item *ret,
				     struct cache_narrowing *lost, struct aqe_err *e);
/* The embedding in an item that cache_get() found; borrows its bytes. */
void cache_item_value(const struct cache_item *item, struct cache_value *ret);

#endif
