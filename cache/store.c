/* SPDX-License-Identifier: MIT */
#include "cache/store.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t read_ms(clockid_t id)
{
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(id, &ts); /* cannot fail with a valid clock and pointer */
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void system_now(void *self, struct cache_now *ret)
{
	(void)self;
	ret->wall_ms = read_ms(CLOCK_REALTIME);
	ret->mono_ms = read_ms(CLOCK_BOOTTIME); /* goes on while the machine sleeps */
}

const struct cache_clock CACHE_CLOCK_SYSTEM = { system_now, NULL };

struct cache_item *cache_items_new(size_t n)
{
	static const struct cache_item EMPTY = CACHE_ITEM_INIT;
	struct cache_item *items = calloc(n ? n : 1, sizeof(*items));

	for (size_t i = 0; items && i < n; i++)
		items[i] = EMPTY;
	return items;
}

void cache_items_free(struct cache_item *items, size_t n)
{
	for (size_t i = 0; items && i < n; i++)
		aqe_buf_done(&items[i].value);
	free(items);
}

void cache_iter_done(struct cache_iter *it)
{
	if (!it)
		return;
	free(it->spare);
	it->spare = NULL;
	it->n_spare = 0;
}

static int usable(const struct cache_store *s, size_t n, struct aqe_err *e)
{
	if (!s->ops || !s->ready)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "%s: not initialised",
				   s->ops ? s->ops->name : "store");
	if (n > CACHE_BATCH_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "%s: more than %zu items in one call",
				   s->ops->name, CACHE_BATCH_MAX);
	return 0;
}

static int named(const struct cache_store *s, int rc, struct aqe_err *e)
{
	return rc < 0 && e ? aqe_err_wrap(e, "%s", s->ops->name) : rc;
}

int cache_store_init(struct cache_store *s, struct aqe_err *e)
{
	int rc;

	if (!s->ops)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "store: not made");
	if (s->ready)
		return 0;
	rc = s->ops->init(s->self, e);
	s->ready = rc == 0;
	return named(s, rc, e);
}

int cache_store_get(struct cache_store *s, struct cache_item *items, size_t n,
		    const struct cache_now *now, struct aqe_err *e)
{
	const int rc = usable(s, n, e);

	for (size_t i = 0; i < n; i++) {
		items[i].found = false;
		aqe_buf_clear(&items[i].value);
	}
	return rc ? rc : named(s, s->ops->get(s->self, items, n, now, e), e);
}

int cache_store_has(struct cache_store *s, struct cache_item *items, size_t n,
		    const struct cache_now *now, struct aqe_err *e)
{
	const int rc = usable(s, n, e);

	for (size_t i = 0; i < n; i++)
		items[i].found = false;
	return rc ? rc : named(s, s->ops->has(s->self, items, n, now, e), e);
}

int cache_store_set(struct cache_store *s, const struct cache_item *items, size_t n,
		    const struct cache_now *now, struct aqe_err *e)
{
	const int rc = usable(s, n, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < n; i++) {
		if (items[i].value.len < CACHE_VALUE_HEAD || items[i].value.len > CACHE_VALUE_MAX)
			return aqe_err_set(e, AQE_E_LIMIT, 0, "%s: a value of %zu bytes",
					   s->ops->name, items[i].value.len);
		if (items[i].ttl_ms < 1 || items[i].ttl_ms > CACHE_TTL_MAX_MS)
			return aqe_err_set(e, AQE_E_LIMIT, 0, "%s: a time to live of %lld ms",
					   s->ops->name, (long long)items[i].ttl_ms);
	}
	return named(s, s->ops->set(s->self, items, n, now, e), e);
}

int cache_store_del(struct cache_store *s, struct cache_item *items, size_t n, struct aqe_err *e)
{
	const int rc = usable(s, n, e);

	for (size_t i = 0; i < n; i++)
		items[i].found = false;
	return rc ? rc : named(s, s->ops->del(s->self, items, n, e), e);
}

int cache_store_clear(struct cache_store *s, struct aqe_err *e)
{
	const int rc = usable(s, 0, e);

	return rc ? rc : named(s, s->ops->clear(s->self, e), e);
}

int cache_store_size(struct cache_store *s, uint64_t *ret_entries, uint64_t *ret_bytes,
		     struct aqe_err *e)
{
	uint64_t entries = 0, bytes = 0;
	int rc = usable(s, 0, e);

	if (!rc)
		rc = named(s, s->ops->size(s->self, &entries, &bytes, e), e);
	if (rc)
		return rc;
	*ret_entries = entries;
	if (ret_bytes)
		*ret_bytes = bytes;
	return 0;
}

int cache_store_keys(struct cache_store *s, struct cache_iter *it, struct cache_key *ret,
		     size_t max, size_t *ret_n, struct aqe_err *e)
{
	const int rc = usable(s, max, e);

	*ret_n = 0;
	if (rc || it->done || max == 0)
		return rc;
	return named(s, s->ops->keys(s->self, it, ret, max, ret_n, e), e);
}

int cache_store_prune(struct cache_store *s, const struct cache_now *now, uint64_t *ret_n,
		      struct aqe_err *e)
{
	uint64_t n = 0;
	int rc = usable(s, 0, e);

	if (!rc)
		rc = named(s, s->ops->prune(s->self, now, &n, e), e);
	if (!rc && ret_n)
		*ret_n = n;
	return rc;
}

int cache_store_healthy(struct cache_store *s, struct aqe_err *e)
{
	const int rc = usable(s, 0, e);

	return rc ? rc : named(s, s->ops->healthy(s->self, e), e);
}

void cache_store_stats(struct cache_store *s, struct cache_store_stats *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (usable(s, 0, NULL))
		return;
	s->ops->stats(s->self, ret);
	if (cache_store_size(s, &ret->entries, &ret->bytes, NULL))
		ret->entries = ret->bytes = 0; /* not to be had: the store is away */
}

void cache_store_close(struct cache_store *s)
{
	if (s->ops)
		s->ops->close(s->self);
	memset(s, 0, sizeof(*s));
}
