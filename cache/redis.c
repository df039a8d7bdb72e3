/* SPDX-License-Identifier: MIT */
#include "cache/redis.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define CONNECT_TIMEOUT_MS 1000
#define TIMEOUT_MS         500
#define POOL_SIZE          4
#define ARENA_MAX          ((size_t)64 << 10)
#define PART_COMMANDS      64                  /* commands sent before their replies are read */
#define PART_BYTES         ((size_t)512 << 10) /* of values sent at once */
#define SCAN_COUNT         "1000"
#define PAGES_MAX          10000000 /* of one scan: a server that never ends it is cut off */
#define NAME_MAX_LEN       (CACHE_REDIS_PREFIX_MAX + CACHE_KEY_TEXT)

struct redis {
	struct aqe_arena *arena; /* of the strings in opts */
	struct cache_redis_opts opts;
	struct aqe_tls_opts tls;
	char pattern[2 * CACHE_REDIS_PREFIX_MAX + 2]; /* for SCAN */
	pthread_mutex_t lock;
	pthread_cond_t freed; /* on CLOCK_MONOTONIC */
	struct cache_redis_conn *idle[CACHE_REDIS_POOL_MAX];
	unsigned n_idle, n_open;
	atomic_uint_fast64_t expired, errors, refused;
};

/* ---- the pool ---- */

static struct timespec from_now(unsigned ms)
{
	struct timespec t = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail with a valid clock */
	t.tv_sec += ms / 1000;
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

/* *ret is a connection that was in use before, or NULL: one more may be made. */
static int take_slot(struct redis *r, struct cache_redis_conn **ret, struct aqe_err *e)
{
	const struct timespec end = from_now(r->opts.where.timeout_ms);
	int rc = 0;

	*ret = NULL;
	pthread_mutex_lock(&r->lock);
	while (r->n_idle == 0 && r->n_open >= r->opts.pool_size && !rc)
		rc = pthread_cond_timedwait(&r->freed, &r->lock, &end);
	if (r->n_idle > 0)
		*ret = r->idle[--r->n_idle];
	else if (r->n_open < r->opts.pool_size)
		r->n_open++;
	else
		rc = AQE_E_TIMEOUT;
	pthread_mutex_unlock(&r->lock);
	if (*ret || rc != AQE_E_TIMEOUT)
		return 0;
	return aqe_err_set(e, AQE_E_TIMEOUT, 0, "all %u connections are in use", r->opts.pool_size);
}

/* Gives a connection back; NULL: it is gone. */
static void give(struct redis *r, struct cache_redis_conn *c)
{
	pthread_mutex_lock(&r->lock);
	if (c)
		r->idle[r->n_idle++] = c;
	else
		r->n_open--;
	pthread_cond_signal(&r->freed);
	pthread_mutex_unlock(&r->lock);
}

static int take(struct redis *r, struct cache_redis_conn **ret, struct aqe_err *e)
{
	struct cache_redis_conn *c = NULL;
	int rc = take_slot(r, &c, e);

	if (rc)
		return rc;
	if (c && !cache_redis_quiet(c)) { /* the server closed it: a restart, an idle limit */
		cache_redis_disconnect(c);
		c = NULL;
	}
	if (!c)
		rc = cache_redis_connect(&r->opts.where, &c, e);
	if (rc)
		give(r, NULL);
	else
		*ret = c;
	return rc;
}

/* After a call: a connection that failed is not used again. */
static int end(struct redis *r, struct cache_redis_conn *c, int rc)
{
	if (rc && rc != AQE_E_REFUSED) {
		cache_redis_disconnect(c);
		c = NULL;
	}
	give(r, c);
	if (rc)
		atomic_fetch_add(&r->errors, 1);
	return rc;
}

/* ---- commands ---- */

struct name {
	char text[NAME_MAX_LEN];
	size_t len;
};

static void name_of(const struct redis *r, const struct cache_key *k, struct name *ret)
{
	const size_t prefix = strlen(r->opts.prefix);

	memcpy(ret->text, r->opts.prefix, prefix);
	cache_key_format(k, ret->text + prefix);
	ret->len = prefix + CACHE_KEY_TEXT - 1;
}

/* The key in a name of ours; false for others. */
static bool key_in(const struct redis *r, const redisReply *name, struct cache_key *ret)
{
	const size_t prefix = strlen(r->opts.prefix);

	return name->type == REDIS_REPLY_STRING && name->len == prefix + CACHE_KEY_TEXT - 1 &&
	       memcmp(name->str, r->opts.prefix, prefix) == 0 &&
	       cache_key_parse(name->str + prefix, ret);
}

static int add_words(struct cache_redis_conn *c, const char *const *words, size_t n,
		     struct aqe_err *e)
{
	size_t lengths[8];

	for (size_t i = 0; i < n; i++)
		lengths[i] = strlen(words[i]);
	return cache_redis_add(c, n, words, lengths, e);
}

/* `VERB key [more...]`, all strings. */
static int add_key(const struct redis *r, struct cache_redis_conn *c, const char *verb,
		   const struct cache_key *k, struct aqe_err *e)
{
	struct name name;

	name_of(r, k, &name);
	return add_words(c, (const char *const[]){ verb, name.text }, 2, e);
}

static int add_range(const struct redis *r, struct cache_redis_conn *c, const struct cache_key *k,
		     size_t bytes, struct aqe_err *e)
{
	struct name name;
	char last[24];

	name_of(r, k, &name);
	(void)snprintf(last, sizeof(last), "%zu", bytes - 1);
	return add_words(c, (const char *const[]){ "GETRANGE", name.text, "0", last }, 4, e);
}

/* The next reply; *ret is never NULL on success. */
static int next(struct cache_redis_conn *c, redisReply **ret, struct aqe_err *e)
{
	*ret = NULL;
	const int rc = cache_redis_reply(c, ret, e);

	return rc || *ret ? rc : aqe_err_set(e, AQE_E_INTERNAL, 0, "no reply");
}

static bool is_error(const redisReply *reply, const char *word)
{
	return reply->type == REDIS_REPLY_ERROR && reply->str && aqe_starts(reply->str, word);
}

/* ---- get and has ---- */

enum look { LOOK_GET, LOOK_HAS };

struct asking {
	struct redis *r;
	struct cache_redis_conn *c;
	enum look look;
	const struct cache_now *now;
};

static int read_look(const struct asking *a, const redisReply *reply, struct cache_item *item,
		     struct aqe_err *e)
{
	const bool get = a->look == LOOK_GET;

	if (is_error(reply, "WRONGTYPE")) { /* not ours, whatever it is: damage */
		item->found = get;
		return 0;
	}
	if (reply->type != REDIS_REPLY_STRING)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "an unexpected reply to GETRANGE");
	if (reply->len == 0) /* GETRANGE has no other word for "not there" */
		return 0;
	if (!cache_value_peek(reply->str, (size_t)reply->len, &item->created_ms, &item->ttl_ms)) {
		item->found = get; /* whoever reads the bytes finds the damage */
		return 0;
	}
	item->found =
		cache_value_alive(item->created_ms, item->ttl_ms, item->ttl_ms, a->now->wall_ms);
	if (!item->found) /* Redis' clock has not come so far yet */
		atomic_fetch_add(&a->r->expired, 1);
	else if (get)
		aqe_buf_add(&item->value, reply->str, (size_t)reply->len);
	if (item->value.failed != AQE_E_NOMEM)
		return 0; /* one that is too long is damage, too */
	return aqe_buf_ok(&item->value, e);
}

/* One part of a batch. An error reply ends it, after all replies were read. */
static int look_part(const struct asking *a, struct cache_item *items, size_t n, struct aqe_err *e)
{
	const size_t bytes = a->look == LOOK_GET ? CACHE_VALUE_MAX + 1 : CACHE_VALUE_HEAD;
	int rc = 0, refused = 0;
	redisReply *reply;

	for (size_t i = 0; i < n && !rc; i++)
		rc = add_range(a->r, a->c, &items[i].key, bytes, e);
	cache_redis_start(a->c);
	for (size_t i = 0; i < n && !rc; i++) {
		rc = next(a->c, &reply, e);
		if (rc)
			break;
		if (reply->type == REDIS_REPLY_ERROR && !is_error(reply, "WRONGTYPE"))
			refused = cache_redis_refusal(reply, e);
		else
			rc = read_look(a, reply, &items[i], e);
		cache_redis_free(reply);
	}
	return rc ? rc : refused;
}

static int look_all(struct redis *r, enum look look, struct cache_item *items, size_t n,
		    const struct cache_now *now, struct aqe_err *e)
{
	struct asking a = { r, NULL, look, now };
	int rc = n > 0 ? take(r, &a.c, e) : 0;

	if (rc)
		atomic_fetch_add(&r->errors, 1);
	if (rc || n == 0)
		return rc;
	for (size_t at = 0; at < n && !rc; at += PART_COMMANDS)
		rc = look_part(&a, items + at, n - at < PART_COMMANDS ? n - at : PART_COMMANDS, e);
	for (size_t i = 0; rc && i < n; i++)
		items[i].found = false;
	return end(r, a.c, rc);
}

static int redis_get(void *self, struct cache_item *items, size_t n, const struct cache_now *now,
		     struct aqe_err *e)
{
	return look_all(self, LOOK_GET, items, n, now, e);
}

static int redis_has(void *self, struct cache_item *items, size_t n, const struct cache_now *now,
		     struct aqe_err *e)
{
	return look_all(self, LOOK_HAS, items, n, now, e);
}

/* ---- set and del ---- */

static int add_set(const struct redis *r, struct cache_redis_conn *c, const struct cache_item *item,
		   const struct cache_now *now, struct aqe_err *e)
{
	const int64_t age = now->wall_ms - item->created_ms; /* an import may bring older ones */
	const int64_t rest = item->ttl_ms - (age > 0 ? age : 0);
	struct name name;
	char ttl[24];

	if (rest <= 0) /* nothing to keep, nor what was there before */
		return add_key(r, c, "DEL", &item->key, e);
	name_of(r, &item->key, &name);
	(void)snprintf(ttl, sizeof(ttl), "%lld", (long long)rest);
	return cache_redis_add(c, 5,
			       (const char *const[]){ "SET", name.text, item->value.p, "PX", ttl },
			       (const size_t[]){ 3, name.len, item->value.len, 2, strlen(ttl) }, e);
}

static int set_part(struct redis *r, struct cache_redis_conn *c, const struct cache_item *items,
		    size_t *n, const struct cache_now *now, struct aqe_err *e)
{
	size_t bytes = 0, count = 0;
	int rc = 0, refused = 0;
	redisReply *reply;

	while (!rc && count < *n && count < PART_COMMANDS && bytes < PART_BYTES) {
		rc = add_set(r, c, &items[count], now, e);
		bytes += items[count++].value.len;
	}
	*n = count;
	cache_redis_start(c);
	for (size_t i = 0; i < count && !rc; i++) {
		rc = next(c, &reply, e);
		if (rc)
			break;
		if (reply->type == REDIS_REPLY_ERROR) {
			refused = cache_redis_refusal(reply, e);
			atomic_fetch_add(&r->refused, 1);
		} else if (reply->type != REDIS_REPLY_INTEGER &&
			   (reply->type != REDIS_REPLY_STATUS || !aqe_str_eq(reply->str, "OK"))) {
			rc = aqe_err_set(e, AQE_E_MALFORMED, 0, "an unexpected reply to SET");
		}
		cache_redis_free(reply);
	}
	return rc ? rc : refused;
}

static int redis_set(void *self, const struct cache_item *items, size_t n,
		     const struct cache_now *now, struct aqe_err *e)
{
	struct cache_redis_conn *c = NULL;
	struct redis *r = self;
	int rc = n > 0 ? take(r, &c, e) : 0;

	if (rc)
		atomic_fetch_add(&r->errors, 1);
	if (rc || n == 0)
		return rc;
	for (size_t at = 0; at < n && !rc;) {
		size_t now_n = n - at;

		rc = set_part(r, c, items + at, &now_n, now, e);
		at += now_n;
	}
	return end(r, c, rc);
}

/* Deletes keys; items may be NULL, or get `found`. */
static int del_part(struct redis *r, struct cache_redis_conn *c, const struct cache_key *keys,
		    bool *found, size_t n, struct aqe_err *e)
{
	int rc = 0, refused = 0;
	redisReply *reply;

	for (size_t i = 0; i < n && !rc; i++)
		rc = add_key(r, c, "DEL", &keys[i], e);
	cache_redis_start(c);
	for (size_t i = 0; i < n && !rc; i++) {
		rc = next(c, &reply, e);
		if (rc)
			break;
		if (reply->type == REDIS_REPLY_ERROR)
			refused = cache_redis_refusal(reply, e);
		else if (reply->type != REDIS_REPLY_INTEGER)
			rc = aqe_err_set(e, AQE_E_MALFORMED, 0, "an unexpected reply to DEL");
		if (found)
			found[i] = reply->type == REDIS_REPLY_INTEGER && reply->integer > 0;
		cache_redis_free(reply);
	}
	return rc ? rc : refused;
}

static int redis_del(void *self, struct cache_item *items, size_t n, struct aqe_err *e)
{
	struct cache_redis_conn *c = NULL;
	struct cache_key keys[PART_COMMANDS];
	bool found[PART_COMMANDS];
	struct redis *r = self;
	int rc = n > 0 ? take(r, &c, e) : 0;

	if (rc)
		atomic_fetch_add(&r->errors, 1);
	if (rc || n == 0)
		return rc;
	for (size_t at = 0; at < n && !rc; at += PART_COMMANDS) {
		const size_t part = n - at < PART_COMMANDS ? n - at : PART_COMMANDS;

		for (size_t i = 0; i < part; i++)
			keys[i] = items[at + i].key;
		rc = del_part(r, c, keys, found, part, e);
		for (size_t i = 0; i < part && !rc; i++)
			items[at + i].found = found[i];
	}
	return end(r, c, rc);
}

/* ---- all keys ---- */

/* One page of a scan, into `keys` (room for `max`). *cursor is 0 again at the end. */
static int scan(struct redis *r, struct cache_redis_conn *c, uint64_t *cursor,
		struct cache_key **ret, size_t *ret_n, struct aqe_err *e)
{
	const redisReply *list, *at;
	redisReply *reply = NULL;
	char from[24];
	int rc;

	(void)snprintf(from, sizeof(from), "%llu", (unsigned long long)*cursor);
	rc = add_words(c,
		       (const char *const[]){ "SCAN", from, "MATCH", r->pattern, "COUNT",
					      SCAN_COUNT },
		       6, e);
	cache_redis_start(c);
	if (!rc)
		rc = next(c, &reply, e);
	if (rc || !reply)
		return rc;
	list = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 ? reply->element[1] : NULL;
	at = list ? reply->element[0] : NULL;
	if (reply->type == REDIS_REPLY_ERROR)
		rc = cache_redis_refusal(reply, e);
	else if (!list || list->type != REDIS_REPLY_ARRAY || at->type != REDIS_REPLY_STRING ||
		 !aqe_parse_u64(at->str, UINT64_MAX, cursor))
		rc = aqe_err_set(e, AQE_E_MALFORMED, 0, "an unexpected reply to SCAN");
	*ret_n = 0;
	*ret = NULL;
	if (!rc && list && list->elements > 0) {
		*ret = calloc(list->elements, sizeof(**ret));
		if (!*ret)
			rc = aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	}
	for (size_t i = 0; *ret && list && i < list->elements; i++)
		*ret_n += key_in(r, list->element[i], &(*ret)[*ret_n]);
	cache_redis_free(reply);
	return rc;
}

/* What a full scan does with each part of at most PART_COMMANDS keys. */
typedef int page_fn(struct redis *r, struct cache_redis_conn *c, const struct cache_key *keys,
		    size_t n, uint64_t *total, struct aqe_err *e);

static int all_pages(struct redis *r, page_fn *fn, uint64_t *total, struct aqe_err *e)
{
	struct cache_redis_conn *c = NULL;
	uint64_t cursor = 0, pages = 0;
	int rc = take(r, &c, e);

	if (rc) {
		atomic_fetch_add(&r->errors, 1);
		return rc;
	}
	do {
		AQE_AUTO_FREE struct cache_key *keys = NULL;
		size_t n = 0;

		rc = scan(r, c, &cursor, &keys, &n, e);
		for (size_t at = 0; at < n && !rc; at += PART_COMMANDS)
			rc = fn(r, c, keys + at, n - at < PART_COMMANDS ? n - at : PART_COMMANDS,
				total, e);
		if (!rc && ++pages > PAGES_MAX)
			rc = aqe_err_set(e, AQE_E_LIMIT, 0, "a scan without an end");
	} while (!rc && cursor != 0);
	return end(r, c, rc);
}

static int clear_page(struct redis *r, struct cache_redis_conn *c, const struct cache_key *keys,
		      size_t n, uint64_t *total, struct aqe_err *e)
{
	(void)total;
	return del_part(r, c, keys, NULL, n, e);
}

static int redis_clear(void *self, struct aqe_err *e)
{
	uint64_t none = 0;

	return all_pages(self, clear_page, &none, e);
}

static int size_page(struct redis *r, struct cache_redis_conn *c, const struct cache_key *keys,
		     size_t n, uint64_t *total, struct aqe_err *e)
{
	int rc = 0, refused = 0;
	redisReply *reply;

	for (size_t i = 0; i < n && !rc; i++)
		rc = add_key(r, c, "STRLEN", &keys[i], e);
	cache_redis_start(c);
	for (size_t i = 0; i < n && !rc; i++) {
		rc = next(c, &reply, e);
		if (rc)
			break;
		if (reply->type == REDIS_REPLY_INTEGER && reply->integer > 0) {
			total[0]++; /* 0: gone since the scan */
			total[1] += (uint64_t)reply->integer + NAME_MAX_LEN;
		} else if (reply->type == REDIS_REPLY_ERROR && !is_error(reply, "WRONGTYPE")) {
			refused = cache_redis_refusal(reply, e);
		}
		cache_redis_free(reply);
	}
	return rc ? rc : refused;
}

static int redis_size(void *self, uint64_t *ret_entries, uint64_t *ret_bytes, struct aqe_err *e)
{
	uint64_t total[2] = { 0, 0 };
	const int rc = all_pages(self, size_page, total, e);

	*ret_entries = total[0];
	*ret_bytes = total[1];
	return rc;
}

/* Moves keys that the last page had too many of. */
static size_t take_spare(struct cache_iter *it, struct cache_key *ret, size_t max)
{
	const size_t n = it->n_spare < max ? it->n_spare : max;

	for (size_t i = 0; i < n; i++)
		ret[i] = it->spare[--it->n_spare];
	if (it->n_spare == 0)
		cache_iter_done(it);
	return n;
}

static int redis_keys(void *self, struct cache_iter *it, struct cache_key *ret, size_t max,
		      size_t *ret_n, struct aqe_err *e)
{
	struct cache_redis_conn *c = NULL;
	struct redis *r = self;
	size_t n = take_spare(it, ret, max);
	int rc = 0;

	if (n == 0 && !(it->begun && it->at == 0))
		rc = take(r, &c, e);
	while (c && !rc && n == 0 && !(it->begun && it->at == 0)) {
		rc = scan(r, c, &it->at, &it->spare, &it->n_spare, e);
		it->begun = true;
		if (!rc)
			n = take_spare(it, ret, max);
	}
	if (c)
		rc = end(r, c, rc);
	it->done = !rc && it->begun && it->at == 0 && it->n_spare == 0;
	*ret_n = rc ? 0 : n;
	return rc;
}

/* ---- the rest ---- */

/* Redis removes what is too old by itself. */
static int redis_prune(void *self, const struct cache_now *now, uint64_t *ret_n, struct aqe_err *e)
{
	(void)self;
	(void)now;
	(void)ret_n;
	(void)e;
	return 0;
}

/* Writes, too: a replica or a server without memory answers a PING well. */
static int redis_healthy(void *self, struct aqe_err *e)
{
	struct cache_redis_conn *c = NULL;
	char probe[CACHE_REDIS_PREFIX_MAX + 16];
	redisReply *reply = NULL;
	struct redis *r = self;
	int rc = take(r, &c, e);

	if (rc)
		return rc;
	(void)snprintf(probe, sizeof(probe), "%sprobe", r->opts.prefix);
	rc = add_words(c, (const char *const[]){ "SET", probe, "1", "PX", "1000" }, 5, e);
	cache_redis_start(c);
	if (!rc)
		rc = next(c, &reply, e);
	if (!rc && reply->type == REDIS_REPLY_ERROR)
		rc = cache_redis_refusal(reply, e);
	else if (!rc && reply->type != REDIS_REPLY_STATUS)
		rc = aqe_err_set(e, AQE_E_MALFORMED, 0, "an unexpected reply to SET");
	cache_redis_free(reply);
	return end(r, c, rc);
}

static int redis_init(void *self, struct aqe_err *e)
{
	return redis_healthy(self, e);
}

static void redis_stats(void *self, struct cache_store_stats *ret)
{
	struct redis *r = self;

	ret->expired = atomic_load(&r->expired);
	ret->errors = atomic_load(&r->errors);
	ret->refused = atomic_load(&r->refused);
}

static void redis_close(void *self)
{
	struct redis *r = self;

	while (r->n_idle > 0)
		cache_redis_disconnect(r->idle[--r->n_idle]);
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->freed);
	aqe_arena_free(r->arena);
	free(r);
}

static const struct cache_store_ops OPS = {
	.name = "redis",
	.init = redis_init,
	.get = redis_get,
	.has = redis_has,
	.set = redis_set,
	.del = redis_del,
	.clear = redis_clear,
	.size = redis_size,
	.keys = redis_keys,
	.prune = redis_prune,
	.healthy = redis_healthy,
	.stats = redis_stats,
	.close = redis_close,
};

static int copy_strings(struct redis *r, const struct cache_redis_opts *o, struct aqe_err *e)
{
	const struct cache_conn_opts *at = &o->where.at;
	static const struct aqe_tls_opts CLEAR = { .ca_file = NULL };
	const struct aqe_tls_opts *tls = at->tls ? at->tls : &CLEAR;
	struct {
		const char *from;
		const char **to;
	} const text[] = {
		{ at->socket, &r->opts.where.at.socket },
		{ at->host, &r->opts.where.at.host },
		{ o->where.username, &r->opts.where.username },
		{ o->where.password_file, &r->opts.where.password_file },
		{ o->where.password, &r->opts.where.password },
		{ o->prefix ? o->prefix : "emb:", &r->opts.prefix },
		{ tls->ca_file, &r->tls.ca_file },
		{ tls->cert_file, &r->tls.cert_file },
		{ tls->key_file, &r->tls.key_file },
		{ tls->server_name ? tls->server_name : at->host, &r->tls.server_name },
	};

	for (size_t i = 0; i < AQE_COUNT(text); i++) {
		*text[i].to = text[i].from ? aqe_arena_dup(r->arena, text[i].from) : NULL;
		if (text[i].from && !*text[i].to)
			return aqe_err_set(e, AQE_E_NOMEM, 0, "redis: out of memory");
	}
	if (at->tls)
		r->opts.where.at.tls = &r->tls;
	return 0;
}

/* The prefix must match only itself. */
static void make_pattern(struct redis *r)
{
	char *to = r->pattern;

	for (const char *p = r->opts.prefix; *p; p++) {
		if (strchr("*?[]\\", *p))
			*to++ = '\\';
		*to++ = *p;
	}
	*to++ = '*';
	*to = '\0';
}

static void defaults(struct cache_redis_opts *o)
{
	if (o->where.connect_timeout_ms == 0)
		o->where.connect_timeout_ms = CONNECT_TIMEOUT_MS;
	if (o->where.timeout_ms == 0)
		o->where.timeout_ms = TIMEOUT_MS;
	if (o->pool_size == 0)
		o->pool_size = POOL_SIZE;
}

int cache_redis_new(const struct cache_redis_opts *o, struct cache_store *ret, struct aqe_err *e)
{
	pthread_condattr_t mono;
	struct redis *r;
	int rc;

	if (!o->where.at.socket && !o->where.at.host)
		return aqe_err_set(e, AQE_E_USAGE, 0, "redis: neither host nor socket");
	if (o->prefix && strlen(o->prefix) > CACHE_REDIS_PREFIX_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "redis: a prefix of more than %d bytes",
				   CACHE_REDIS_PREFIX_MAX);
	if (o->pool_size > CACHE_REDIS_POOL_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "redis: more than %d connections",
				   CACHE_REDIS_POOL_MAX);
	r = calloc(1, sizeof(*r));
	if (!r)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "redis: out of memory");
	r->opts = *o;
	defaults(&r->opts);
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&mono);
	pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
	pthread_cond_init(&r->freed, &mono);
	pthread_condattr_destroy(&mono);
	r->arena = aqe_arena_new(ARENA_MAX);
	rc = r->arena ? copy_strings(r, o, e) : aqe_err_set(e, AQE_E_NOMEM, 0, "redis: no memory");
	if (rc) {
		redis_close(r);
		return rc;
	}
	make_pattern(r);
	ret->ops = &OPS;
	ret->self = r;
	ret->ready = false;
	return 0;
}
