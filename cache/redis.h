/* SPDX-License-Identifier: MIT */
/* The Redis store: keys PREFIX + 64 hex digits, values as bytes with a time to live (PX), a pool of
 * connections, batches pipelined in parts. The server's own maxmemory rules bound it. Two calls
 * wait for the server at most: for a connection, and for an answer. */
#ifndef AQE_CACHE_REDIS_H
#define AQE_CACHE_REDIS_H

#include "cache/redis_conn.h"
#include "cache/store.h"

#define CACHE_REDIS_PREFIX_MAX 128
#define CACHE_REDIS_POOL_MAX   64

struct cache_redis_opts {
	struct cache_redis_where where; /* time-outs of 0: 1,000 to connect, 500 for a batch */
	const char *prefix;             /* NULL = "emb:" */
	unsigned pool_size;             /* connections at most; 0 = 4 */
};

/* All strings are copied. Nothing is connected before cache_store_init(). */
AQE_MUST_CHECK int cache_redis_new(const struct cache_redis_opts *o, struct cache_store *ret,
				   struct aqe_err *e);

#endif
