/* SPDX-License-Identifier: MIT */
#include "cache/twolevel.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct twolevel {
	struct cache_store front, back;
	/* Counts deletions. An entry that was read from the back before one must not come to the
	 * front after it. */
	pthread_mutex_t lock;
	uint64_t deletions;
};

static uint64_t deletions(struct twolevel *t)
{
	uint64_t n;

	pthread_mutex_lock(&t->lock);
	n = t->deletions;
	pthread_mutex_unlock(&t->lock);
	return n;
}

static int two_init(void *self, struct aqe_err *e)
{
	struct twolevel *t = self;
	const int rc = cache_store_init(&t->front, e);

	return rc ? rc : cache_store_init(&t->back, e);
}

/* The items that the front did not have, copied; their number. Buffers are moved. */
static size_t take_missing(struct cache_item *items, size_t n, struct cache_item *ret)
{
	size_t missing = 0;

	for (size_t i = 0; i < n; i++)
		if (!items[i].found)
			ret[missing++] = items[i];
	return missing;
}

static void put_missing(struct cache_item *items, size_t n, const struct cache_item *from)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		if (!items[i].found)
			items[i] = from[at++];
}

/* What the back had comes to the front; that is a kindness, and may fail. */
static void promote(struct twolevel *t, const struct cache_item *items, size_t n,
		    const struct cache_now *now, uint64_t seen)
{
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < n && seen == t->deletions; i++)
		if (items[i].found && items[i].ttl_ms > 0 &&
		    cache_store_set(&t->front, &items[i], 1, now, NULL) == AQE_E_NOMEM)
			break;
	pthread_mutex_unlock(&t->lock);
}

static int two_get(void *self, struct cache_item *items, size_t n, const struct cache_now *now,
		   struct aqe_err *e)
{
	struct twolevel *t = self;
	const uint64_t seen = deletions(t);
	struct cache_item *missing;
	size_t n_missing;
	int rc = cache_store_get(&t->front, items, n, now, e);

	if (rc)
		return rc;
	missing = malloc((n ? n : 1) * sizeof(*missing));
	if (!missing)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	n_missing = take_missing(items, n, missing);
	if (n_missing > 0)
		rc = cache_store_get(&t->back, missing, n_missing, now, e);
	if (!rc)
		promote(t, missing, n_missing, now, seen);
	put_missing(items, n, missing);
	free(missing);
	return rc;
}

static int two_has(void *self, struct cache_item *items, size_t n, const struct cache_now *now,
		   struct aqe_err *e)
{
	struct twolevel *t = self;
	struct cache_item *missing;
	size_t n_missing;
	int rc = cache_store_has(&t->front, items, n, now, e);

	if (rc)
		return rc;
	missing = malloc((n ? n : 1) * sizeof(*missing));
	if (!missing)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	n_missing = take_missing(items, n, missing);
	if (n_missing > 0)
		rc = cache_store_has(&t->back, missing, n_missing, now, e);
	put_missing(items, n, missing);
	free(missing);
	return rc;
}

/* A value the front cannot hold is in the back all the same; an older one must not stay there. */
static int two_set(void *self, const struct cache_item *items, size_t n,
		   const struct cache_now *now, struct aqe_err *e)
{
	struct twolevel *t = self;
	const int rc = cache_store_set(&t->back, items, n, now, e);

	for (size_t i = 0; i < n; i++) {
		struct cache_item old = items[i];

		if (rc || cache_store_set(&t->front, &items[i], 1, now, NULL))
			(void)!cache_store_del(&t->front, &old, 1,
					       NULL); /* cannot fail in memory */
	}
	return rc;
}

static int two_del(void *self, struct cache_item *items, size_t n, struct aqe_err *e)
{
	struct twolevel *t = self;
	struct cache_item *copies = malloc((n ? n : 1) * sizeof(*copies));
	int rc;

	if (!copies)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	rc = cache_store_del(&t->back, items, n, e);
	memcpy(copies, items, n * sizeof(*copies)); /* their buffers are not touched */
	pthread_mutex_lock(&t->lock);
	t->deletions++;
	if (cache_store_del(&t->front, copies, n, rc ? NULL : e) && !rc)
		rc = AQE_E_INTERNAL;
	pthread_mutex_unlock(&t->lock);
	for (size_t i = 0; i < n; i++)
		items[i].found |= !rc && copies[i].found;
	free(copies);
	return rc;
}

static int two_clear(void *self, struct aqe_err *e)
{
	struct twolevel *t = self;
	const int rc = cache_store_clear(&t->back, e);
	int front;

	pthread_mutex_lock(&t->lock);
	t->deletions++;
	front = cache_store_clear(&t->front, rc ? NULL : e);
	pthread_mutex_unlock(&t->lock);
	return rc ? rc : front;
}

static int two_size(void *self, uint64_t *ret_entries, uint64_t *ret_bytes, struct aqe_err *e)
{
	struct twolevel *t = self;

	return cache_store_size(&t->back, ret_entries, ret_bytes, e);
}

static int two_keys(void *self, struct cache_iter *it, struct cache_key *ret, size_t max,
		    size_t *ret_n, struct aqe_err *e)
{
	struct twolevel *t = self;

	return cache_store_keys(&t->back, it, ret, max, ret_n, e);
}

static int two_prune(void *self, const struct cache_now *now, uint64_t *ret_n, struct aqe_err *e)
{
	struct twolevel *t = self;
	const int rc = cache_store_prune(&t->front, now, NULL, e);

	return rc ? rc : cache_store_prune(&t->back, now, ret_n, e);
}

static int two_healthy(void *self, struct aqe_err *e)
{
	struct twolevel *t = self;

	return cache_store_healthy(&t->back, e);
}

static void two_stats(void *self, struct cache_store_stats *ret)
{
	struct twolevel *t = self;

	t->back.ops->stats(t->back.self, ret); /* the front's evictions are nobody's loss */
}

static void two_close(void *self)
{
	struct twolevel *t = self;

	cache_store_close(&t->front);
	cache_store_close(&t->back);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static const struct cache_store_ops OPS = {
	.name = "two-level",
	.init = two_init,
	.get = two_get,
	.has = two_has,
	.set = two_set,
	.del = two_del,
	.clear = two_clear,
	.size = two_size,
	.keys = two_keys,
	.prune = two_prune,
	.healthy = two_healthy,
	.stats = two_stats,
	.close = two_close,
};

int cache_twolevel_new(struct cache_store *front, struct cache_store *back, struct cache_store *ret,
		       struct aqe_err *e)
{
	static const struct cache_store EMPTY = CACHE_STORE_INIT;
	struct twolevel *t = calloc(1, sizeof(*t));

	if (!t) {
		cache_store_close(front);
		cache_store_close(back);
		return aqe_err_set(e, AQE_E_NOMEM, 0, "two-level: out of memory");
	}
	t->front = *front;
	t->back = *back;
	*front = EMPTY;
	*back = EMPTY;
	pthread_mutex_init(&t->lock, NULL);
	ret->ops = &OPS;
	ret->self = t;
	ret->ready = false;
	return 0;
}
