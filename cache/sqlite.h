/* SPDX-License-Identifier: MIT */
/* The SQLite store: one file for many processes (WAL), bounded in entries and bytes; what was used
 * longest ago goes first. Uses are noted in batches, and only while the store is more than half
 * full: a hit seldom writes. */
#ifndef AQE_CACHE_SQLITE_H
#define AQE_CACHE_SQLITE_H

#include "cache/store.h"

struct cache_sqlite_opts {
	const char *path;         /* absolute; its folder must be ours and private (0700) */
	uint64_t max_entries;     /* at least 1 */
	uint64_t max_bytes;       /* of values, keys and bookkeeping together */
	unsigned busy_timeout_ms; /* longest wait for another process; 0 = 5,000 */
};

/* `o->path` is copied. AQE_E_LIMIT for a bound of 0, AQE_E_USAGE for a path without a file name. */
AQE_MUST_CHECK int cache_sqlite_new(const struct cache_sqlite_opts *o, struct cache_store *ret,
				    struct aqe_err *e);

#endif
