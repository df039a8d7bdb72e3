/* SPDX-License-Identifier: MIT */
#include "cache/fallback.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "shim/core/text.h"

#define LOG_MAX       65536 /* keys remembered of each kind */
#define BATCH         64    /* entries carried over at once */
#define CARRY_ROUNDS  50    /* after so many, callers wait for the last one */
#define JITTER_DIVIDE 4     /* pauses vary by a quarter, so that many hosts do not come at once */

/* The outage ended while we waited for the lock: ask the primary after all. */
#define AGAIN 1
#define TRIES 3

/* Keys, growing up to LOG_MAX; then `lost` is set. */
struct keys {
	struct cache_key *list;
	size_t n, room;
	bool lost;
};

struct fallback {
	struct cache_store primary, spare;
	atomic_bool down;
	atomic_bool spare_used; /* the spare may hold something that the primary has not */
	atomic_uint_fast64_t outages, errors, refused;
	/* Changes during an outage hold this while they go to the spare and into the logs. */
	pthread_mutex_t lock;
	struct keys stored, deleted;
	bool cleared; /* the primary has to be cleared first */
	/* only of the tick */
	int64_t next_probe_ms, pause_ms;
	bool probing;
};

/* ---- logs; under the lock ---- */

static void keys_add(struct keys *k, const struct cache_key *key)
{
	size_t room = k->room ? k->room * 2 : 64;
	struct cache_key *list;

	if (k->n == k->room) {
		list = room <= LOG_MAX ? realloc(k->list, room * sizeof(*list)) : NULL;
		if (!list) {
			k->lost = true;
			return;
		}
		k->list = list;
		k->room = room;
	}
	k->list[k->n++] = *key;
}

static void keys_done(struct keys *k)
{
	free(k->list);
	memset(k, 0, sizeof(*k));
}

/* Puts `more` behind, and empties it. */
static void keys_join(struct keys *k, struct keys *more)
{
	k->lost |= more->lost;
	for (size_t i = 0; i < more->n; i++)
		keys_add(k, &more->list[i]);
	keys_done(more);
}

/* ---- down ---- */

/* Whether a failure means that the primary is away. A value that is too large, or no memory of
 * ours, is the caller's to know. */
static bool is_away(int rc)
{
	return rc == AQE_E_SYS || rc == AQE_E_TIMEOUT || rc == AQE_E_MALFORMED ||
	       rc == AQE_E_REFUSED || rc == AQE_E_UNTRUSTED;
}

/* True when the primary is not to be used after this result. */
static bool went_down(struct fallback *f, int rc)
{
	if (!is_away(rc))
		return false;
	atomic_fetch_add(&f->errors, 1);
	if (!atomic_exchange(&f->down, true))
		atomic_fetch_add(&f->outages, 1);
	return true;
}

static bool is_down(const struct fallback *f)
{
	return atomic_load(&f->down);
}

/* ---- the calls ---- */

static int fb_init(void *self, struct aqe_err *e)
{
	struct fallback *f = self;
	struct aqe_err why = AQE_ERR_INIT;
	int rc = cache_store_init(&f->spare, e);

	if (rc)
		return rc;
	rc = cache_store_init(&f->primary, &why);
	if (went_down(f, rc))
		return 0;
	if (rc && e)
		*e = why;
	return rc;
}

/* Asks the spare for what the primary did not have. */
static int also_spare(struct fallback *f, struct cache_item *items, size_t n, bool values,
		      const struct cache_now *now, struct aqe_err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		if (items[i].found)
			continue;
		rc = values ? cache_store_get(&f->spare, &items[i], 1, now, e)
			    : cache_store_has(&f->spare, &items[i], 1, now, e);
	}
	return rc;
}

static int fb_get(void *self, struct cache_item *items, size_t n, const struct cache_now *now,
		  struct aqe_err *e)
{
	struct fallback *f = self;

	if (!is_down(f)) {
		const int rc = cache_store_get(&f->primary, items, n, now, e);

		if (!went_down(f, rc))
			return rc || !atomic_load(&f->spare_used)
				       ? rc
				       : also_spare(f, items, n, true, now, e);
	}
	return cache_store_get(&f->spare, items, n, now, e);
}

static int fb_has(void *self, struct cache_item *items, size_t n, const struct cache_now *now,
		  struct aqe_err *e)
{
	struct fallback *f = self;

	if (!is_down(f)) {
		const int rc = cache_store_has(&f->primary, items, n, now, e);

		if (!went_down(f, rc))
			return rc || !atomic_load(&f->spare_used)
				       ? rc
				       : also_spare(f, items, n, false, now, e);
	}
	return cache_store_has(&f->spare, items, n, now, e);
}

/* Into the spare, unless the outage ended before we had the lock (AGAIN). `forced`: without an
 * outage, too. */
static int spare_set(struct fallback *f, const struct cache_item *items, size_t n,
		     const struct cache_now *now, bool forced, struct aqe_err *e)
{
	int rc = AGAIN;

	pthread_mutex_lock(&f->lock);
	if (is_down(f) || forced) {
		rc = cache_store_set(&f->spare, items, n, now, e);
		atomic_store(&f->spare_used, true);
		for (size_t i = 0; i < n && !rc; i++)
			keys_add(&f->stored, &items[i].key);
	}
	pthread_mutex_unlock(&f->lock);
	return rc;
}

static int fb_set(void *self, const struct cache_item *items, size_t n, const struct cache_now *now,
		  struct aqe_err *e)
{
	struct fallback *f = self;
	bool forced = false;
	int rc = AGAIN;

	for (int i = 0; rc == AGAIN; i++) {
		if (!is_down(f)) {
			rc = cache_store_set(&f->primary, items, n, now, e);
			forced = rc == AQE_E_REFUSED; /* full, read-only: it can still be read */
			if (forced)
				atomic_fetch_add(&f->refused, 1);
			else if (!went_down(f, rc))
				return rc;
		}
		rc = spare_set(f, items, n, now, forced || i > TRIES, e);
	}
	return rc;
}

/* As spare_set(). `away`: the primary has not been told. */
static int spare_del(struct fallback *f, struct cache_item *items, size_t n, bool away,
		     struct aqe_err *e)
{
	int rc = 0;

	pthread_mutex_lock(&f->lock);
	if (away && !is_down(f))
		rc = AGAIN;
	for (size_t i = 0; i < n && !rc; i++) {
		struct cache_item copy = items[i];

		rc = cache_store_del(&f->spare, &copy, 1, e);
		items[i].found = copy.found || (!away && items[i].found);
		if (away)
			keys_add(&f->deleted, &items[i].key);
	}
	pthread_mutex_unlock(&f->lock);
	return rc;
}

static int fb_del(void *self, struct cache_item *items, size_t n, struct aqe_err *e)
{
	struct fallback *f = self;
	int rc = AGAIN;

	while (rc == AGAIN) {
		bool away = is_down(f);

		if (!away) {
			rc = cache_store_del(&f->primary, items, n, e);
			away = went_down(f, rc);
			if (!away && (rc || !atomic_load(&f->spare_used)))
				return rc;
		}
		rc = spare_del(f, items, n, away, e);
	}
	return rc;
}

static int fb_clear(void *self, struct aqe_err *e)
{
	struct fallback *f = self;
	int rc = AGAIN;

	while (rc == AGAIN) {
		bool away = is_down(f);

		if (!away) {
			rc = cache_store_clear(&f->primary, e);
			away = went_down(f, rc);
			if (rc && !away)
				return rc;
		}
		pthread_mutex_lock(&f->lock);
		if (away && !is_down(f)) {
			rc = AGAIN;
		} else {
			f->cleared |= away;
			keys_done(&f->stored);
			keys_done(&f->deleted);
			rc = cache_store_clear(&f->spare, e);
		}
		pthread_mutex_unlock(&f->lock);
	}
	return rc;
}

static int fb_size(void *self, uint64_t *ret_entries, uint64_t *ret_bytes, struct aqe_err *e)
{
	struct fallback *f = self;

	if (!is_down(f)) {
		const int rc = cache_store_size(&f->primary, ret_entries, ret_bytes, e);

		if (!went_down(f, rc))
			return rc;
	}
	return cache_store_size(&f->spare, ret_entries, ret_bytes, e);
}

/* An iteration that began on one store cannot go on with the other: it ends with the error. */
static int fb_keys(void *self, struct cache_iter *it, struct cache_key *ret, size_t max,
		   size_t *ret_n, struct aqe_err *e)
{
	struct fallback *f = self;
	int rc;

	if (is_down(f) && !it->begun)
		return cache_store_keys(&f->spare, it, ret, max, ret_n, e);
	rc = cache_store_keys(&f->primary, it, ret, max, ret_n, e);
	(void)went_down(f, rc);
	return rc;
}

static int fb_prune(void *self, const struct cache_now *now, uint64_t *ret_n, struct aqe_err *e)
{
	struct fallback *f = self;
	uint64_t spare = 0;
	int rc = 0;

	if (!is_down(f))
		rc = cache_store_prune(&f->primary, now, ret_n, e);
	if (rc && !went_down(f, rc))
		return rc;
	rc = cache_store_prune(&f->spare, now, &spare, e);
	*ret_n += spare;
	return rc;
}

static int fb_healthy(void *self, struct aqe_err *e)
{
	struct fallback *f = self;

	if (is_down(f))
		return aqe_err_set(e, AQE_E_SYS, 0, "%s is away, memory stands in",
				   f->primary.ops->name);
	return cache_store_healthy(&f->primary, e);
}

static void fb_stats(void *self, struct cache_store_stats *ret)
{
	struct fallback *f = self;
	struct cache_store_stats spare = { .evictions = 0 };

	f->primary.ops->stats(f->primary.self, ret);
	f->spare.ops->stats(f->spare.self, &spare);
	ret->evictions += spare.evictions;
	ret->expired += spare.expired;
	ret->errors = atomic_load(&f->errors);
	ret->outages = atomic_load(&f->outages);
	ret->degraded = is_down(f);
}

static void fb_close(void *self)
{
	struct fallback *f = self;

	cache_store_close(&f->primary);
	cache_store_close(&f->spare);
	keys_done(&f->stored);
	keys_done(&f->deleted);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

static const struct cache_store_ops OPS = {
	.name = "fallback",
	.init = fb_init,
	.get = fb_get,
	.has = fb_has,
	.set = fb_set,
	.del = fb_del,
	.clear = fb_clear,
	.size = fb_size,
	.keys = fb_keys,
	.prune = fb_prune,
	.healthy = fb_healthy,
	.stats = fb_stats,
	.close = fb_close,
};

int cache_fallback_new(struct cache_store *primary, struct cache_store *spare,
		       struct cache_store *ret, struct aqe_err *e)
{
	static const struct cache_store EMPTY = CACHE_STORE_INIT;
	struct fallback *f = calloc(1, sizeof(*f));

	if (!f) {
		cache_store_close(primary);
		cache_store_close(spare);
		return aqe_err_set(e, AQE_E_NOMEM, 0, "fallback: out of memory");
	}
	f->primary = *primary;
	f->spare = *spare;
	*primary = EMPTY;
	*spare = EMPTY;
	pthread_mutex_init(&f->lock, NULL);
	ret->ops = &OPS;
	ret->self = f;
	ret->ready = false;
	return 0;
}

/* ---- and up again ---- */

/* What has to reach the primary before it is used. */
struct cargo {
	struct keys stored, deleted;
	bool clear;
};

static bool is_empty(const struct cargo *c)
{
	return c->stored.n == 0 && c->deleted.n == 0 && !c->clear;
}

static struct cargo take_cargo(struct fallback *f)
{
	struct cargo c = { f->stored, f->deleted, f->cleared || f->deleted.lost };

	memset(&f->stored, 0, sizeof(f->stored));
	memset(&f->deleted, 0, sizeof(f->deleted));
	f->cleared = false;
	return c;
}

static void give_back(struct fallback *f, struct cargo *c)
{
	f->cleared |= c->clear;
	keys_join(&f->stored, &c->stored);
	keys_join(&f->deleted, &c->deleted);
}

/* One batch: the entries as they are now in the spare. */
static int carry_stored(struct fallback *f, const struct cache_key *keys, size_t n,
			const struct cache_now *now)
{
	struct cache_item *items = cache_items_new(n);
	size_t have = 0;
	int rc;

	if (!items)
		return AQE_E_NOMEM;
	for (size_t i = 0; i < n; i++)
		items[i].key = keys[i];
	rc = cache_store_get(&f->spare, items, n, now, NULL);
	for (size_t i = 0; i < n && !rc; i++) {
		const struct cache_item swap = items[have];

		if (!items[i].found)
			continue;
		items[have++] = items[i];
		items[i] = swap;
	}
	if (!rc && have > 0)
		rc = cache_store_set(&f->primary, items, have, now, NULL);
	cache_items_free(items, n);
	/* one that it will not take is no reason to stay away from it */
	return is_away(rc) ? rc : 0;
}

static int carry_deleted(struct fallback *f, const struct cache_key *keys, size_t n)
{
	struct cache_item *items = cache_items_new(n);
	int rc;

	if (!items)
		return AQE_E_NOMEM;
	for (size_t i = 0; i < n; i++)
		items[i].key = keys[i];
	rc = cache_store_del(&f->primary, items, n, NULL);
	cache_items_free(items, n);
	return rc;
}

static int carry(struct fallback *f, const struct cargo *c, const struct cache_now *now)
{
	int rc = c->clear ? cache_store_clear(&f->primary, NULL) : 0;

	for (size_t at = 0; at < c->deleted.n && !rc; at += BATCH)
		rc = carry_deleted(f, c->deleted.list + at,
				   c->deleted.n - at < BATCH ? c->deleted.n - at : BATCH);
	for (size_t at = 0; at < c->stored.n && !rc; at += BATCH)
		rc = carry_stored(f, c->stored.list + at,
				  c->stored.n - at < BATCH ? c->stored.n - at : BATCH, now);
	return rc;
}

/* Carries everything over, and switches when nothing is left. Under the lock, which is let go while
 * something is carried, but for the last round. */
static int return_to_primary(struct fallback *f, const struct cache_now *now)
{
	int rc = 0;

	for (int round = 0; !rc; round++) {
		struct cargo c = take_cargo(f);

		if (is_empty(&c)) {
			keys_done(&c.stored);
			keys_done(&c.deleted);
			atomic_store(&f->spare_used, false);
			atomic_store(&f->down, false);
			return cache_store_clear(&f->spare, NULL);
		}
		if (round < CARRY_ROUNDS)
			pthread_mutex_unlock(&f->lock);
		rc = carry(f, &c, now);
		if (round < CARRY_ROUNDS)
			pthread_mutex_lock(&f->lock);
		if (rc)
			give_back(f, &c);
		keys_done(&c.stored);
		keys_done(&c.deleted);
	}
	return rc;
}

static bool probe(struct fallback *f, const struct cache_now *now)
{
	int rc = f->primary.ready ? cache_store_healthy(&f->primary, NULL)
				  : cache_store_init(&f->primary, NULL);

	if (rc)
		return false;
	pthread_mutex_lock(&f->lock);
	rc = return_to_primary(f, now);
	pthread_mutex_unlock(&f->lock);
	return rc == 0;
}

int64_t cache_fallback_tick(struct cache_store *s, const struct cache_now *now)
{
	struct fallback *f = s->self;
	int64_t pause;

	if (!is_down(f)) {
		f->probing = false;
		return -1;
	}
	if (!f->probing) {
		f->probing = true;
		f->pause_ms = CACHE_FALLBACK_FIRST_MS;
		f->next_probe_ms = now->mono_ms + f->pause_ms;
	}
	if (now->mono_ms >= f->next_probe_ms) {
		if (probe(f, now)) {
			f->probing = false;
			return -1;
		}
		f->pause_ms = f->pause_ms * 2 < CACHE_FALLBACK_LAST_MS ? f->pause_ms * 2
								       : CACHE_FALLBACK_LAST_MS;
		pause = f->pause_ms - now->mono_ms * 7919 % (f->pause_ms / JITTER_DIVIDE);
		f->next_probe_ms = now->mono_ms + pause;
	}
	return f->next_probe_ms - now->mono_ms;
}
