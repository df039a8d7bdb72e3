/* SPDX-License-Identifier: MIT */
/* The port: where values are kept. Drivers: memory.c, sqlite.c, redis.c; twolevel.c and fallback.c
 * put two of them together. A store keeps bytes; what they mean is cache.c's business. */
#ifndef AQE_CACHE_STORE_H
#define AQE_CACHE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/key.h"
#include "cache/value.h"
#include "shim/core/buf.h"
#include "shim/core/err.h"

#define CACHE_BATCH_MAX ((size_t)4096) /* items of one call */

/* The time of a call. Wall time decides across processes and hosts; the second clock only runs
 * forward, so that a wall clock that was set back cannot prolong a life in memory. */
struct cache_now {
	int64_t wall_ms, mono_ms;
};
struct cache_clock {
	void (*now)(void *self, struct cache_now *ret);
	void *self;
};
extern const struct cache_clock CACHE_CLOCK_SYSTEM;

/* One entry of a batch. */
struct cache_item {
	struct cache_key key;
	bool found;                 /* get, has: it is there; del: it was there */
	int64_t created_ms, ttl_ms; /* set */
	struct aqe_buf value;       /* set: the bytes; get: they are put here */
};
#define CACHE_ITEM_INIT                                               \
	{                                                             \
		{ { 0 } }, false, 0, 0, AQE_BUF_INIT(CACHE_VALUE_MAX) \
	}
/* Room for `n` items, initialised; NULL when there is no memory. free_many() accepts NULL. */
struct cache_item *cache_items_new(size_t n);
void cache_items_free(struct cache_item *items, size_t n);

struct cache_store_stats {
	uint64_t entries, bytes; /* as of cache_store_size() */
	uint64_t evictions;      /* entries that had to go for others */
	uint64_t expired;        /* entries found too old, and removed */
	uint64_t errors;         /* calls the store could not serve */
	uint64_t refused;        /* values the store was not willing to take */
	uint64_t outages;        /* times a fallback took over */
	bool degraded;           /* it is in place now */
};

/* An iteration over all keys. Place on the stack as CACHE_ITER_INIT; cache_iter_done() frees. */
struct cache_iter {
	uint64_t at;             /* the driver's */
	struct cache_key last;   /* the driver's */
	struct cache_key *spare; /* keys the driver has in hand, n_spare of them */
	size_t n_spare;
	bool begun, done;
};
#define CACHE_ITER_INIT                             \
	{                                           \
		0, { { 0 } }, NULL, 0, false, false \
	}
void cache_iter_done(struct cache_iter *it);

/* All calls block at most the driver's own time-outs, may come from several threads at once
 * (except init and close), and leave the object usable whatever they return. Codes: AQE_E_SYS and
 * AQE_E_TIMEOUT (the store is away), AQE_E_MALFORMED (it talks nonsense, or is damaged),
 * AQE_E_REFUSED (it does not want to), AQE_E_LIMIT, AQE_E_NOMEM. */
struct cache_store_ops {
	const char *name;
	/* Opens; the other calls come after it succeeded. May be called again after a failure. */
	int (*init)(void *self, struct aqe_err *e);
	/* Fills value and found of each item. Entries too old are not found, and removed. */
	int (*get)(void *self, struct cache_item *items, size_t n, const struct cache_now *now,
		   struct aqe_err *e);
	int (*has)(void *self, struct cache_item *items, size_t n, const struct cache_now *now,
		   struct aqe_err *e);
	/* Stores or replaces. What does not fit pushes out what was used longest ago. */
	int (*set)(void *self, const struct cache_item *items, size_t n,
		   const struct cache_now *now, struct aqe_err *e);
	int (*del)(void *self, struct cache_item *items, size_t n, struct aqe_err *e);
	int (*clear)(void *self, struct aqe_err *e);
	/* Entries, and bytes they take as the driver counts them. */
	int (*size)(void *self, uint64_t *ret_entries, uint64_t *ret_bytes, struct aqe_err *e);
	/* The next at most `max` keys; it->done after the last. Each key that is there all the time
	 * comes at least once. */
	int (*keys)(void *self, struct cache_iter *it, struct cache_key *ret, size_t max,
		    size_t *ret_n, struct aqe_err *e);
	/* Removes what is too old and gives the space back. */
	int (*prune)(void *self, const struct cache_now *now, uint64_t *ret_n, struct aqe_err *e);
	int (*healthy)(void *self, struct aqe_err *e);
	/* The counters; entries and bytes stay 0. */
	void (*stats)(void *self, struct cache_store_stats *ret);
	/* Frees self; also after a failed init, and instead of one. */
	void (*close)(void *self);
};

struct cache_store {
	const struct cache_store_ops *ops;
	void *self;
	bool ready; /* init succeeded */
};
#define CACHE_STORE_INIT          \
	{                         \
		NULL, NULL, false \
	}

/* The calls; they check arguments, and wrap errors with the driver's name. Before
 * cache_store_init() and after cache_store_close() they fail with AQE_E_INTERNAL. */
AQE_MUST_CHECK int cache_store_init(struct cache_store *s, struct aqe_err *e);
AQE_MUST_CHECK int cache_store_get(struct cache_store *s, struct cache_item *items, size_t n,
				   const struct cache_now *now, struct aqe_err *e);
AQE_MUST_CHECK int cache_store_has(struct cache_store *s, struct cache_item *items, size_t n,
				   const struct cache_now *now, struct aqe_err *e);
AQE_MUST_CHECK int cache_store_set(struct cache_store *s, const struct cache_item *items, size_t n,
				   const struct cache_now *now, struct aqe_err *e);
AQE_MUST_CHECK int cache_store_del(struct cache_store *s, struct cache_item *items, size_t n,
				   struct aqe_err *e);
AQE_MUST_CHECK int cache_store_clear(struct cache_store *s, struct aqe_err *e);
AQE_MUST_CHECK int cache_store_size(struct cache_store *s, uint64_t *ret_entries,
				    uint64_t *ret_bytes, struct aqe_err *e);
AQE_MUST_CHECK int cache_store_keys(struct cache_store *s, struct cache_iter *it,
				    struct cache_key *ret, size_t max, size_t *ret_n,
				    struct aqe_err *e);
AQE_MUST_CHECK int cache_store_prune(struct cache_store *s, const struct cache_now *now,
				     uint64_t *ret_n, struct aqe_err *e);
AQE_MUST_CHECK int cache_store_healthy(struct cache_store *s, struct aqe_err *e);
/* Counters, and the size where it can be had. */
void cache_store_stats(struct cache_store *s, struct cache_store_stats *ret);
/* Closes and empties the handle; also one that was never opened. */
void cache_store_close(struct cache_store *s);

#endif
