/* SPDX-License-Identifier: MIT */
#include "tests/fakes/fake_store.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_MAX 4096

struct fake_store {
	struct cache_item *items;
	size_t n;
	unsigned calls[FAKE_CALLS];
	int fail[FAKE_CALLS];
	pthread_mutex_t lock;
};

static int called(struct fake_store *f, enum fake_store_call call, struct aqe_err *e)
{
	f->calls[call]++;
	return f->fail[call] ? aqe_err_set(e, (enum aqe_code)f->fail[call], 0, "as told") : 0;
}

static int called_alone(struct fake_store *f, enum fake_store_call call, struct aqe_err *e)
{
	int rc;

	pthread_mutex_lock(&f->lock);
	rc = called(f, call, e);
	pthread_mutex_unlock(&f->lock);
	return rc;
}

static struct cache_item *find(struct fake_store *f, const struct cache_key *k)
{
	for (size_t i = 0; i < f->n; i++)
		if (cache_key_equal(&f->items[i].key, k))
			return &f->items[i];
	return NULL;
}

static void drop(struct fake_store *f, struct cache_item *at)
{
	struct cache_item *last = &f->items[f->n - 1];
	struct aqe_buf freed = at->value;

	*at = *last;
	last->value = freed;
	aqe_buf_clear(&last->value);
	f->n--;
}

static struct cache_item *find_alive(struct fake_store *f, const struct cache_key *k,
				     const struct cache_now *now)
{
	struct cache_item *it = find(f, k);

	if (!it || cache_value_alive(it->created_ms, it->ttl_ms, it->ttl_ms, now->wall_ms))
		return it;
	drop(f, it);
	return NULL;
}

static int fake_init(void *self, struct aqe_err *e)
{
	return called_alone(self, FAKE_INIT, e);
}

static int fake_look(struct fake_store *f, enum fake_store_call call, struct cache_item *items,
		     size_t n, const struct cache_now *now, struct aqe_err *e)
{
	int rc;

	pthread_mutex_lock(&f->lock);
	rc = called(f, call, e);
	for (size_t i = 0; !rc && i < n; i++) {
		const struct cache_item *it = find_alive(f, &items[i].key, now);

		items[i].found = it != NULL;
		if (!it || call == FAKE_HAS)
			continue;
		items[i].created_ms = it->created_ms;
		items[i].ttl_ms = it->ttl_ms;
		aqe_buf_add(&items[i].value, it->value.p, it->value.len);
	}
	pthread_mutex_unlock(&f->lock);
	return rc;
}

static int fake_get(void *self, struct cache_item *items, size_t n, const struct cache_now *now,
		    struct aqe_err *e)
{
	return fake_look(self, FAKE_GET, items, n, now, e);
}

static int fake_has(void *self, struct cache_item *items, size_t n, const struct cache_now *now,
		    struct aqe_err *e)
{
	return fake_look(self, FAKE_HAS, items, n, now, e);
}

static int fake_set(void *self, const struct cache_item *items, size_t n,
		    const struct cache_now *now, struct aqe_err *e)
{
	struct fake_store *f = self;
	int rc;

	(void)now;
	pthread_mutex_lock(&f->lock);
	rc = called(f, FAKE_SET, e);
	for (size_t i = 0; !rc && i < n; i++) {
		struct cache_item *it = find(f, &items[i].key);

		if (!it) {
			assert(f->n < FAKE_MAX);
			it = &f->items[f->n++];
		}
		it->key = items[i].key;
		it->created_ms = items[i].created_ms;
		it->ttl_ms = items[i].ttl_ms;
		aqe_buf_clear(&it->value);
		aqe_buf_add(&it->value, items[i].value.p, items[i].value.len);
	}
	pthread_mutex_unlock(&f->lock);
	return rc;
}

static int fake_del(void *self, struct cache_item *items, size_t n, struct aqe_err *e)
{
	struct fake_store *f = self;
	int rc;

	pthread_mutex_lock(&f->lock);
	rc = called(f, FAKE_DEL, e);
	for (size_t i = 0; !rc && i < n; i++) {
		struct cache_item *it = find(f, &items[i].key);

		items[i].found = it != NULL;
		if (it)
			drop(f, it);
	}
	pthread_mutex_unlock(&f->lock);
	return rc;
}

static int fake_clear(void *self, struct aqe_err *e)
{
	struct fake_store *f = self;
	int rc;

	pthread_mutex_lock(&f->lock);
	rc = called(f, FAKE_CLEAR, e);
	while (!rc && f->n > 0)
		drop(f, &f->items[0]);
	pthread_mutex_unlock(&f->lock);
	return rc;
}

static int fake_size(void *self, uint64_t *ret_entries, uint64_t *ret_bytes, struct aqe_err *e)
{
	struct fake_store *f = self;
	int rc;

	pthread_mutex_lock(&f->lock);
	rc = called(f, FAKE_SIZE, e);
	*ret_entries = f->n;
	for (size_t i = 0; i < f->n; i++)
		*ret_bytes += f->items[i].value.len;
	pthread_mutex_unlock(&f->lock);
	return rc;
}

static int fake_keys(void *self, struct cache_iter *it, struct cache_key *ret, size_t max,
		     size_t *ret_n, struct aqe_err *e)
{
	struct fake_store *f = self;
	int rc;

	pthread_mutex_lock(&f->lock);
	rc = called(f, FAKE_KEYS, e);
	while (!rc && it->at < f->n && *ret_n < max)
		ret[(*ret_n)++] = f->items[it->at++].key;
	it->done = it->at >= f->n;
	pthread_mutex_unlock(&f->lock);
	return rc;
}

static int fake_prune(void *self, const struct cache_now *now, uint64_t *ret_n, struct aqe_err *e)
{
	struct fake_store *f = self;
	int rc;

	pthread_mutex_lock(&f->lock);
	rc = called(f, FAKE_PRUNE, e);
	for (size_t i = f->n; !rc && i > 0; i--) {
		const struct cache_key k = f->items[i - 1].key;

		*ret_n += find_alive(f, &k, now) == NULL;
	}
	pthread_mutex_unlock(&f->lock);
	return rc;
}

static int fake_healthy(void *self, struct aqe_err *e)
{
	return called_alone(self, FAKE_HEALTHY, e);
}

static void fake_stats(void *self, struct cache_store_stats *ret)
{
	(void)self;
	(void)ret;
}

static void fake_close(void *self)
{
	struct fake_store *f = self;

	cache_items_free(f->items, FAKE_MAX);
	free(f);
}

struct fake_store *fake_store_new(struct cache_store *ret)
{
	static const struct cache_store_ops OPS = {
		"fake",    fake_init, fake_get,   fake_has,     fake_set,   fake_del,   fake_clear,
		fake_size, fake_keys, fake_prune, fake_healthy, fake_stats, fake_close,
	};
	struct fake_store *f = calloc(1, sizeof(*f));

	assert(f);
	f->items = cache_items_new(FAKE_MAX);
	assert(f->items);
	pthread_mutex_init(&f->lock, NULL);
	ret->ops = &OPS;
	ret->self = f;
	ret->ready = false;
	return f;
}

unsigned fake_store_calls(const struct fake_store *f, enum fake_store_call call)
{
	return f->calls[call];
}

void fake_store_fail(struct fake_store *f, int code)
{
	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < FAKE_CALLS; i++)
		f->fail[i] = code;
	pthread_mutex_unlock(&f->lock);
}

void fake_store_fail_one(struct fake_store *f, enum fake_store_call call, int code)
{
	f->fail[call] = code;
}

bool fake_store_damage(struct fake_store *f, const struct cache_key *k, size_t offset)
{
	struct cache_item *it = find(f, k);

	if (!it || offset >= it->value.len)
		return false;
	it->value.p[offset] = (char)(it->value.p[offset] ^ 1);
	return true;
}
