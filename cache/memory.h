/* SPDX-License-Identifier: MIT */
/* The memory store: a hash table with a list in order of use, bounded in entries and in bytes.
 * Every call but clear, prune and keys takes constant time. */
#ifndef AQE_CACHE_MEMORY_H
#define AQE_CACHE_MEMORY_H

#include "cache/store.h"

struct cache_memory_opts {
	uint64_t max_entries; /* at least 1 */
	uint64_t max_bytes;   /* of values, keys and bookkeeping together */
	/* An entry lives no longer than this since it was put here; 0 = its own time to live. */
	int64_t max_age_ms;
};

/* AQE_E_LIMIT for a bound of 0. */
AQE_MUST_CHECK int cache_memory_new(const struct cache_memory_opts *o, struct cache_store *ret,
				    struct aqe_err *e);

#endif
