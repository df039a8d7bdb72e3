/* SPDX-License-Identifier: MIT */
#include "cache/cache.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cache/fallback.h"
#include "cache/memory.h"
#include "cache/sqlite.h"
#include "cache/twolevel.h"

#define SUB_BITS  4 /* a bucket is 1/16 of a power of two wide: 6 % */
#define BUCKETS   (64 << SUB_BITS)
#define NEVER_MS  ((int64_t)1 << 40)
#define OUTAGE_MS 250 /* how often to look whether a fallback took over */

struct cache {
	struct cache_store store;
	struct cache_store fallback; /* a view of the one inside store; ops NULL: there is none */
	const struct cache_clock *clock;
	enum cache_backend backend;
	bool two_level;
	int64_t ttl_ms, prune_interval_ms;
	int64_t next_prune_ms; /* only of the tick */
	atomic_uint_fast64_t hits, misses, stored, damaged, wrong_dimension, too_old, read_errors,
		write_errors;
	atomic_uint_fast64_t took[BUCKETS]; /* look-ups by the time they took */
	pthread_t thread;
	pthread_mutex_t lock; /* of stop */
	pthread_cond_t stopping;
	bool has_thread, stop;
};

static void now_of(const struct cache *c, struct cache_now *ret)
{
	c->clock->now(c->clock->self, ret);
}

/* ---- time taken ---- */

static uint64_t mono_ns(void)
{
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail with a valid clock and pointer */
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static unsigned bucket_of(uint64_t ns)
{
	const unsigned high = ns ? 63U - (unsigned)__builtin_clzll(ns) : 0;

	if (high < SUB_BITS)
		return (unsigned)ns;
	return high << SUB_BITS | (unsigned)(ns >> (high - SUB_BITS) & ((1U << SUB_BITS) - 1));
}

/* The middle of a bucket, in microseconds. */
static double bucket_us(unsigned b)
{
	const unsigned high = b >> SUB_BITS, sub = b & ((1U << SUB_BITS) - 1);
	double width;

	if (high < SUB_BITS)
		return b / 1e3;
	width = (double)((uint64_t)1 << (high - SUB_BITS));
	return ((double)((1U << SUB_BITS) + sub) + 0.5) * width / 1e3;
}

static double quantile(const uint64_t *took, uint64_t total, double q)
{
	uint64_t seen = 0;

	for (unsigned b = 0; b < BUCKETS; b++) {
		seen += took[b];
		if (seen > 0 && (double)seen >= q * (double)total)
			return bucket_us(b);
	}
	return 0;
}

/* ---- making ---- */

static int make_memory(uint64_t entries, uint64_t bytes, int64_t age_ms, struct cache_store *ret,
		       struct aqe_err *e)
{
	const struct cache_memory_opts o = { entries, bytes, age_ms };

	return cache_memory_new(&o, ret, e);
}

static int make_sqlite(const struct cache_config *cfg, struct cache_store *ret, struct aqe_err *e)
{
	const struct cache_sqlite_opts o = { .path = cfg->sqlite_path,
					     .max_entries = cfg->max_entries,
					     .max_bytes = cfg->max_bytes,
					     .busy_timeout_ms =
						     (unsigned)cfg->sqlite_busy_timeout_ms };

	return cache_sqlite_new(&o, ret, e);
}

/* *ret_view: the fallback inside, if there is one. */
static int make_redis(const struct cache_config *cfg, struct cache_store *ret,
		      struct cache_store *ret_view, struct aqe_err *e)
{
	struct cache_store primary = CACHE_STORE_INIT, spare = CACHE_STORE_INIT;
	int rc = cache_redis_new(&cfg->redis, &primary, e);

	if (!rc && !cfg->fallback) {
		*ret = primary;
		return 0;
	}
	if (!rc)
		rc = make_memory(cfg->max_entries, cfg->max_bytes, 0, &spare, e);
	if (rc) {
		cache_store_close(&primary);
		return rc;
	}
	rc = cache_fallback_new(&primary, &spare, ret, e);
	if (!rc)
		*ret_view = *ret;
	return rc;
}

static int make_back(const struct cache_config *cfg, struct cache_store *ret,
		     struct cache_store *ret_view, struct aqe_err *e)
{
	switch (cfg->backend) {
	case CACHE_MEMORY:
		return make_memory(cfg->max_entries, cfg->max_bytes, 0, ret, e);
	case CACHE_SQLITE:
		return make_sqlite(cfg, ret, e);
	case CACHE_REDIS:
		return make_redis(cfg, ret, ret_view, e);
	case CACHE_BACKENDS:
		break;
	}
	return aqe_err_set(e, AQE_E_INTERNAL, 0, "cache: back end %d", (int)cfg->backend);
}

static int make_store(const struct cache_config *cfg, struct cache_store *ret,
		      struct cache_store *ret_view, struct aqe_err *e)
{
	struct cache_store front = CACHE_STORE_INIT, back = CACHE_STORE_INIT;
	int rc = make_back(cfg, &back, ret_view, e);

	if (rc || !cfg->two_level || cfg->backend == CACHE_MEMORY) {
		*ret = back;
		return rc;
	}
	rc = make_memory(cfg->front_entries, cfg->front_bytes, cfg->front_ttl_ms, &front, e);
	if (rc) {
		cache_store_close(&back);
		return rc;
	}
	return cache_twolevel_new(&front, &back, ret, e);
}

/* ---- the thread ---- */

int64_t cache_tick(struct cache *c)
{
	int64_t wait = NEVER_MS, probe;
	struct cache_now now;

	now_of(c, &now);
	if (c->prune_interval_ms > 0) {
		if (now.mono_ms >= c->next_prune_ms) {
			/* the store counts its errors; the next time may be better */
			(void)!cache_store_prune(&c->store, &now, NULL, NULL);
			c->next_prune_ms = now.mono_ms + c->prune_interval_ms;
		}
		wait = c->next_prune_ms - now.mono_ms;
	}
	if (c->fallback.ops) {
		probe = cache_fallback_tick(&c->fallback, &now);
		if (probe < 0 || probe > OUTAGE_MS)
			probe = OUTAGE_MS;
		wait = probe < wait ? probe : wait;
	}
	return wait > 0 ? wait : 1;
}

static void *maintain(void *self)
{
	struct cache *c = self;
	struct timespec until;
	int64_t wait;

	pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		pthread_mutex_unlock(&c->lock);
		wait = cache_tick(c);
		pthread_mutex_lock(&c->lock);
		(void)clock_gettime(CLOCK_MONOTONIC, &until); /* cannot fail */
		until.tv_sec += wait / 1000;
		until.tv_nsec += wait % 1000 * 1000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (!c->stop)
			(void)pthread_cond_timedwait(&c->stopping, &c->lock, &until);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* Signals are the other threads' business. */
static int start_thread(struct cache *c, struct aqe_err *e)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&c->thread, NULL, maintain, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return aqe_err_set(e, AQE_E_SYS, rc, "cache: cannot start a thread");
	c->has_thread = true;
	return 0;
}

/* ---- opening and closing ---- */

static struct cache *new_cache(const struct cache_config *cfg, const struct cache_clock *clock)
{
	struct cache *c = calloc(1, sizeof(*c));
	pthread_condattr_t mono;
	struct cache_now now;

	if (!c)
		return NULL;
	c->clock = clock ? clock : &CACHE_CLOCK_SYSTEM;
	c->backend = cfg->backend;
	c->two_level = cfg->two_level && cfg->backend != CACHE_MEMORY;
	c->ttl_ms = cfg->ttl_ms;
	c->prune_interval_ms = cfg->prune_interval_ms;
	now_of(c, &now);
	c->next_prune_ms = now.mono_ms + c->prune_interval_ms;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&mono);
	pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
	pthread_cond_init(&c->stopping, &mono);
	pthread_condattr_destroy(&mono);
	return c;
}

static int open_made(struct cache *c, const struct cache_config *cfg, struct cache **ret,
		     struct aqe_err *e)
{
	int rc = cache_store_init(&c->store, e);

	if (!rc && !cfg->own_ticks && (c->prune_interval_ms > 0 || c->fallback.ops))
		rc = start_thread(c, e);
	if (rc) {
		cache_close(c);
		return rc;
	}
	*ret = c;
	return 0;
}

int cache_open(const struct cache_config *cfg, const struct cache_clock *clock, struct cache **ret,
	       struct aqe_err *e)
{
	struct cache *c = new_cache(cfg, clock);
	int rc;

	if (!c)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "cache: out of memory");
	rc = make_store(cfg, &c->store, &c->fallback, e);
	if (rc) {
		cache_close(c);
		return rc;
	}
	return open_made(c, cfg, ret, e);
}

int cache_open_store(struct cache_store *store, const struct cache_config *cfg,
		     const struct cache_clock *clock, struct cache **ret, struct aqe_err *e)
{
	static const struct cache_store EMPTY = CACHE_STORE_INIT;
	struct cache *c = new_cache(cfg, clock);

	if (!c) {
		cache_store_close(store);
		return aqe_err_set(e, AQE_E_NOMEM, 0, "cache: out of memory");
	}
	c->store = *store;
	*store = EMPTY;
	return open_made(c, cfg, ret, e);
}

void cache_close(struct cache *c)
{
	if (!c)
		return;
	if (c->has_thread) {
		pthread_mutex_lock(&c->lock);
		c->stop = true;
		pthread_cond_signal(&c->stopping);
		pthread_mutex_unlock(&c->lock);
		pthread_join(c->thread, NULL);
	}
	cache_store_close(&c->store);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->stopping);
	free(c);
}

/* ---- looking up ---- */

void cache_item_value(const struct cache_item *item, struct cache_value *ret)
{
	ret->dim = (uint32_t)((item->value.len - CACHE_VALUE_HEAD) / 4);
	ret->created_ms = item->created_ms;
	ret->ttl_ms = item->ttl_ms;
	ret->floats = (const uint8_t *)item->value.p + CACHE_VALUE_HEAD;
}

/* A value that is of no use goes, so that it is looked at once. */
static void throw_away(struct cache *c, struct cache_item *item)
{
	struct cache_item copy = *item;

	(void)!cache_store_del(&c->store, &copy, 1, NULL); /* at worst it is found again */
	item->found = false;
	aqe_buf_clear(&item->value);
}

/* Checks what a store found. */
static void verify(struct cache *c, struct cache_item *item, uint32_t dim,
		   const struct cache_now *now)
{
	struct cache_value v;

	if (cache_value_decode(&item->key, item->value.p, item->value.len, &v, NULL)) {
		atomic_fetch_add(&c->damaged, 1);
		throw_away(c, item);
		return;
	}
	item->created_ms = v.created_ms;
	item->ttl_ms = v.ttl_ms;
	if (dim && v.dim != dim) {
		atomic_fetch_add(&c->wrong_dimension, 1);
		throw_away(c, item);
		return;
	}
	if (!cache_value_alive(v.created_ms, v.ttl_ms, c->ttl_ms, now->wall_ms)) {
		atomic_fetch_add(&c->too_old, 1); /* others may believe it longer */
		item->found = false;
		aqe_buf_clear(&item->value);
	}
}

int cache_peek(struct cache *c, struct cache_item *items, size_t n, const uint32_t *dims,
	       struct aqe_err *e)
{
	struct cache_now now;
	int rc;

	now_of(c, &now);
	rc = cache_store_get(&c->store, items, n, &now, e);
	for (size_t i = 0; i < n; i++) {
		if (rc)
			items[i].found = false;
		if (items[i].found)
			verify(c, &items[i], dims ? dims[i] : 0, &now);
	}
	return rc;
}

int cache_get(struct cache *c, struct cache_item *items, size_t n, const uint32_t *dims,
	      struct aqe_err *e)
{
	const uint64_t began = mono_ns();
	const int rc = cache_peek(c, items, n, dims, e);
	uint64_t hits = 0;

	for (size_t i = 0; i < n; i++)
		hits += items[i].found;
	atomic_fetch_add(&c->hits, hits);
	atomic_fetch_add(&c->misses, n - hits);
	if (rc)
		atomic_fetch_add(&c->read_errors, 1);
	atomic_fetch_add(&c->took[bucket_of(mono_ns() - began)], 1);
	return rc;
}

int cache_has(struct cache *c, struct cache_item *items, size_t n, struct aqe_err *e)
{
	struct cache_now now;

	now_of(c, &now);
	return cache_store_has(&c->store, items, n, &now, e);
}

/* ---- storing ---- */

int cache_item_encode(struct cache *c, const struct cache_key *k, const struct cache_numbers *v,
		      struct cache_item *ret, struct cache_narrowing *lost, struct aqe_err *e)
{
	struct cache_value head = { .dim = v->dim, .ttl_ms = c->ttl_ms };
	struct cache_now now;

	now_of(c, &now);
	head.created_ms = now.wall_ms;
	ret->key = *k;
	ret->created_ms = head.created_ms;
	ret->ttl_ms = head.ttl_ms;
	aqe_buf_clear(&ret->value);
	if (v->f64)
		return cache_value_encode_f64(k, &head, v->f64, &ret->value, lost, e);
	return cache_value_encode(k, &head, v->f32, &ret->value, e);
}

int cache_put(struct cache *c, const struct cache_item *items, size_t n, struct aqe_err *e)
{
	struct cache_now now;
	int rc;

	now_of(c, &now);
	rc = cache_store_set(&c->store, items, n, &now, e);
	if (rc)
		atomic_fetch_add(&c->write_errors, 1);
	else
		atomic_fetch_add(&c->stored, n);
	return rc;
}

int cache_del(struct cache *c, struct cache_item *items, size_t n, struct aqe_err *e)
{
	return cache_store_del(&c->store, items, n, e);
}

int cache_clear(struct cache *c, struct aqe_err *e)
{
	const int rc = cache_store_clear(&c->store, e);

	if (!rc) {
		atomic_store(&c->hits, 0);
		atomic_store(&c->misses, 0);
	}
	return rc;
}

/* ---- the rest ---- */

int cache_size(struct cache *c, uint64_t *ret_entries, uint64_t *ret_bytes, struct aqe_err *e)
{
	return cache_store_size(&c->store, ret_entries, ret_bytes, e);
}

int cache_keys(struct cache *c, struct cache_iter *it, struct cache_key *ret, size_t max,
	       size_t *ret_n, struct aqe_err *e)
{
	return cache_store_keys(&c->store, it, ret, max, ret_n, e);
}

int cache_prune(struct cache *c, uint64_t *ret_n, struct aqe_err *e)
{
	struct cache_now now;

	now_of(c, &now);
	return cache_store_prune(&c->store, &now, ret_n, e);
}

int cache_healthy(struct cache *c, struct aqe_err *e)
{
	return cache_store_healthy(&c->store, e);
}

double cache_stats_rate(const struct cache_stats *s)
{
	const uint64_t total = s->hits + s->misses;

	return total ? (double)s->hits / (double)total : 0;
}

void cache_stats(struct cache *c, struct cache_stats *ret)
{
	uint64_t took[BUCKETS], total = 0;

	memset(ret, 0, sizeof(*ret));
	ret->backend = cache_backend_name(c->backend);
	ret->two_level = c->two_level;
	ret->hits = atomic_load(&c->hits);
	ret->misses = atomic_load(&c->misses);
	ret->stored = atomic_load(&c->stored);
	ret->damaged = atomic_load(&c->damaged);
	ret->wrong_dimension = atomic_load(&c->wrong_dimension);
	ret->too_old = atomic_load(&c->too_old);
	ret->read_errors = atomic_load(&c->read_errors);
	ret->write_errors = atomic_load(&c->write_errors);
	cache_store_stats(&c->store, &ret->store);
	for (unsigned b = 0; b < BUCKETS; b++) {
		took[b] = atomic_load(&c->took[b]);
		total += took[b];
	}
	ret->p50_us = quantile(took, total, 0.5);
	ret->p90_us = quantile(took, total, 0.9);
	ret->p99_us = quantile(took, total, 0.99);
	ret->max_us = quantile(took, total, 1);
}
