/* SPDX-License-Identifier: MIT */
#include "cache/memory.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define TABLE_FIRST 64U
#define TABLE_MAX   ((size_t)1 << 30)

struct node {
	struct cache_key key;
	uint64_t hash;
	struct node *chain;         /* same bucket */
	struct node *newer, *older; /* order of use */
	int64_t created_ms, ttl_ms;
	int64_t dead_mono_ms; /* by the clock that only runs forward */
	size_t len;
	uint8_t bytes[];
};

/* What malloc(3) adds to a node, and its place in the table. */
#define NODE_EXTRA (sizeof(size_t) * 2 + sizeof(struct node *))

struct memory {
	struct cache_memory_opts opts;
	pthread_mutex_t lock;
	struct node **table;
	unsigned bits;    /* 2^bits buckets */
	uint64_t seed[4]; /* odd; so that nobody can choose contents of one bucket */
	struct node *newest, *oldest;
	uint64_t entries, bytes;
	uint64_t evictions, expired, refused;
};

/* ---- table and list; all under the lock ---- */

/* The high bits choose the bucket: when the table grows, buckets split but keep their order, and an
 * iteration that stands at a hash stays right. */
static uint64_t hash_of(const struct memory *m, const struct cache_key *k)
{
	uint64_t word[4], h = 0;

	memcpy(word, k->b, sizeof(word));
	for (size_t i = 0; i < 4; i++) {
		h = (h ^ word[i]) * m->seed[i];
		h ^= h >> 29;
	}
	return h * m->seed[0];
}

static struct node **bucket(const struct memory *m, uint64_t hash)
{
	return &m->table[hash >> (64 - m->bits)];
}

static struct node *find(const struct memory *m, const struct cache_key *k)
{
	const uint64_t hash = hash_of(m, k);
	struct node *n = *bucket(m, hash);

	while (n && (n->hash != hash || !cache_key_equal(&n->key, k)))
		n = n->chain;
	return n;
}

static uint64_t weight(const struct node *n)
{
	return sizeof(*n) + n->len + NODE_EXTRA;
}

static void list_out(struct memory *m, struct node *n)
{
	if (n->newer)
		n->newer->older = n->older;
	else
		m->newest = n->older;
	if (n->older)
		n->older->newer = n->newer;
	else
		m->oldest = n->newer;
}

static void list_in(struct memory *m, struct node *n)
{
	n->newer = NULL;
	n->older = m->newest;
	if (m->newest)
		m->newest->newer = n;
	else
		m->oldest = n;
	m->newest = n;
}

static void drop(struct memory *m, struct node *n)
{
	struct node **at = bucket(m, n->hash);

	while (*at != n)
		at = &(*at)->chain;
	*at = n->chain;
	list_out(m, n);
	m->entries--;
	m->bytes -= weight(n);
	free(n);
}

/* Doubles the table when there are as many entries as buckets; without memory it stays slower. */
static void grow(struct memory *m)
{
	const size_t size = (size_t)1 << m->bits;
	struct node **old = m->table, **table;

	assert(size >= TABLE_FIRST);
	if (m->entries < size || size >= TABLE_MAX)
		return;
	table = calloc(size * 2, sizeof(struct node *));
	if (!table)
		return;
	m->table = table;
	m->bits++;
	for (size_t i = 0; i < size; i++) {
		while (old[i]) {
			struct node *n = old[i], **at = bucket(m, n->hash);

			old[i] = n->chain;
			n->chain = *at;
			*at = n;
		}
	}
	free(old);
}

static bool alive(const struct node *n, const struct cache_now *now)
{
	return now->mono_ms < n->dead_mono_ms &&
	       cache_value_alive(n->created_ms, n->ttl_ms, n->ttl_ms, now->wall_ms);
}

/* The entry, if it is not too old; one that is goes. */
static struct node *find_alive(struct memory *m, const struct cache_key *k,
			       const struct cache_now *now)
{
	struct node *n = find(m, k);

	if (!n || alive(n, now))
		return n;
	m->expired++;
	drop(m, n);
	return NULL;
}

/* ---- the calls ---- */

static int memory_init(void *self, struct aqe_err *e)
{
	struct memory *m = self;

	if (getrandom(m->seed, sizeof(m->seed), 0) != (ssize_t)sizeof(m->seed))
		return aqe_err_set(e, AQE_E_SYS, 0, "no random numbers");
	for (size_t i = 0; i < 4; i++)
		m->seed[i] |= 1;
	m->table = calloc(TABLE_FIRST, sizeof(struct node *));
	if (!m->table)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	m->bits = (unsigned)__builtin_ctz(TABLE_FIRST);
	return 0;
}

static int memory_get(void *self, struct cache_item *items, size_t n, const struct cache_now *now,
		      struct aqe_err *e)
{
	struct memory *m = self;
	int rc = 0;

	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < n; i++) {
		struct node *found = find_alive(m, &items[i].key, now);

		if (!found)
			continue;
		list_out(m, found);
		list_in(m, found);
		aqe_buf_add(&items[i].value, found->bytes, found->len);
		items[i].created_ms = found->created_ms;
		items[i].ttl_ms = found->ttl_ms;
		items[i].found = items[i].value.failed == 0;
		if (!rc)
			rc = aqe_buf_ok(&items[i].value, e);
	}
	pthread_mutex_unlock(&m->lock);
	return rc;
}

static int memory_has(void *self, struct cache_item *items, size_t n, const struct cache_now *now,
		      struct aqe_err *e)
{
	struct memory *m = self;

	(void)e;
	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < n; i++)
		items[i].found = find_alive(m, &items[i].key, now) != NULL;
	pthread_mutex_unlock(&m->lock);
	return 0;
}

static struct node *new_node(const struct memory *m, const struct cache_item *item,
			     const struct cache_now *now)
{
	struct node *n = malloc(sizeof(*n) + item->value.len);
	int64_t rest, age = now->wall_ms - item->created_ms; /* an import may bring older ones */

	if (!n)
		return NULL;
	rest = item->ttl_ms - (age > 0 ? age : 0);
	if (m->opts.max_age_ms && rest > m->opts.max_age_ms)
		rest = m->opts.max_age_ms;
	n->key = item->key;
	n->hash = hash_of(m, &item->key);
	n->created_ms = item->created_ms;
	n->ttl_ms = item->ttl_ms;
	n->dead_mono_ms = now->mono_ms + rest;
	n->len = item->value.len;
	memcpy(n->bytes, item->value.p, n->len);
	return n;
}

static int set_one(struct memory *m, const struct cache_item *item, const struct cache_now *now,
		   struct aqe_err *e)
{
	struct node *old = find(m, &item->key), *n, **at;

	if (sizeof(*n) + item->value.len + NODE_EXTRA > m->opts.max_bytes) {
		m->refused++;
		return aqe_err_set(e, AQE_E_LIMIT, 0, "a value of %zu bytes in a store of %llu",
				   item->value.len, (unsigned long long)m->opts.max_bytes);
	}
	n = new_node(m, item, now);
	if (!n)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	if (old)
		drop(m, old);
	while (m->entries > 0 &&
	       (m->entries >= m->opts.max_entries || m->bytes + weight(n) > m->opts.max_bytes)) {
		m->evictions++;
		drop(m, m->oldest);
	}
	grow(m);
	at = bucket(m, n->hash);
	n->chain = *at;
	*at = n;
	list_in(m, n);
	m->entries++;
	m->bytes += weight(n);
	return 0;
}

static int memory_set(void *self, const struct cache_item *items, size_t n,
		      const struct cache_now *now, struct aqe_err *e)
{
	struct memory *m = self;
	int rc = 0;

	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < n && !rc; i++)
		rc = set_one(m, &items[i], now, e);
	pthread_mutex_unlock(&m->lock);
	return rc;
}

static int memory_del(void *self, struct cache_item *items, size_t n, struct aqe_err *e)
{
	struct memory *m = self;

	(void)e;
	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < n; i++) {
		struct node *found = find(m, &items[i].key);

		items[i].found = found != NULL;
		if (found)
			drop(m, found);
	}
	pthread_mutex_unlock(&m->lock);
	return 0;
}

static int memory_clear(void *self, struct aqe_err *e)
{
	struct memory *m = self;

	(void)e;
	pthread_mutex_lock(&m->lock);
	while (m->oldest)
		drop(m, m->oldest);
	pthread_mutex_unlock(&m->lock);
	return 0;
}

static int memory_size(void *self, uint64_t *ret_entries, uint64_t *ret_bytes, struct aqe_err *e)
{
	struct memory *m = self;

	(void)e;
	pthread_mutex_lock(&m->lock);
	*ret_entries = m->entries;
	*ret_bytes = m->bytes;
	pthread_mutex_unlock(&m->lock);
	return 0;
}

/* The node of one bucket with the lowest hash that is not below `from`. */
static const struct node *next_in(const struct memory *m, size_t index, uint64_t from)
{
	const struct node *best = NULL;

	for (const struct node *n = m->table[index]; n; n = n->chain)
		if (n->hash >= from && (!best || n->hash < best->hash))
			best = n;
	return best;
}

static int memory_keys(void *self, struct cache_iter *it, struct cache_key *ret, size_t max,
		       size_t *ret_n, struct aqe_err *e)
{
	struct memory *m = self;
	size_t n = 0, index;

	(void)e;
	pthread_mutex_lock(&m->lock);
	index = it->at >> (64 - m->bits);
	while (n < max && !it->done) {
		const struct node *next = next_in(m, index, it->at);

		if (next) {
			ret[n++] = next->key;
			it->at = next->hash + 1; /* two keys of one 64-bit hash do not occur */
			it->done = it->at == 0;
			continue;
		}
		index++;
		it->done = index >> m->bits != 0;
		if (!it->done)
			it->at = (uint64_t)index << (64 - m->bits);
	}
	pthread_mutex_unlock(&m->lock);
	*ret_n = n;
	return 0;
}

static int memory_prune(void *self, const struct cache_now *now, uint64_t *ret_n, struct aqe_err *e)
{
	struct memory *m = self;

	(void)e;
	pthread_mutex_lock(&m->lock);
	for (struct node *n = m->oldest, *next; n; n = next) {
		next = n->newer;
		if (alive(n, now))
			continue;
		drop(m, n);
		m->expired++;
		++*ret_n;
	}
	pthread_mutex_unlock(&m->lock);
	return 0;
}

static int memory_healthy(void *self, struct aqe_err *e)
{
	(void)self;
	(void)e;
	return 0;
}

static void memory_stats(void *self, struct cache_store_stats *ret)
{
	struct memory *m = self;

	pthread_mutex_lock(&m->lock);
	ret->evictions = m->evictions;
	ret->expired = m->expired;
	ret->refused = m->refused;
	pthread_mutex_unlock(&m->lock);
}

static void memory_close(void *self)
{
	struct memory *m = self;

	if (m->table)
		(void)memory_clear(m, NULL); /* cannot fail */
	free(m->table);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static const struct cache_store_ops OPS = {
	.name = "memory",
	.init = memory_init,
	.get = memory_get,
	.has = memory_has,
	.set = memory_set,
	.del = memory_del,
	.clear = memory_clear,
	.size = memory_size,
	.keys = memory_keys,
	.prune = memory_prune,
	.healthy = memory_healthy,
	.stats = memory_stats,
	.close = memory_close,
};

int cache_memory_new(const struct cache_memory_opts *o, struct cache_store *ret, struct aqe_err *e)
{
	struct memory *m;

	if (o->max_entries < 1 || o->max_bytes < 1 || o->max_age_ms < 0)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "memory: a bound is 0");
	m = calloc(1, sizeof(*m));
	if (!m)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "memory: out of memory");
	m->opts = *o;
	pthread_mutex_init(&m->lock, NULL);
	ret->ops = &OPS;
	ret->self = m;
	ret->ready = false;
	return 0;
}
