/* SPDX-License-Identifier: MIT */
/* What every store must do. One table of drivers, one list of cases. */
#include "cache/store.h"

#include <pthread.h>

#include "cache/fallback.h"
#include "cache/memory.h"
#include "cache/redis.h"
#include "cache/sqlite.h"
#include "cache/twolevel.h"
#include "tests/fakes/fake_store.h"
#include "tests/fakes/real_redis.h"
#include "tests/unit/cache_util.h"

static struct util_clock clk;
static struct aqe_err e;

struct bounds {
	uint64_t entries, bytes;
};
static const struct bounds WIDE = { 100000, (uint64_t)1 << 30 };

struct driver {
	const char *name;
	void (*make)(const struct bounds *b, struct cache_store *ret);
	bool bounded;    /* pushes out what was used longest ago */
	bool down;       /* it says so itself */
	bool own_expiry; /* the server removes what is too old by itself: prune finds nothing */
};

static void make_memory(const struct bounds *b, struct cache_store *ret)
{
	const struct cache_memory_opts o = { .max_entries = b->entries, .max_bytes = b->bytes };

	ck_assert_ok(cache_memory_new(&o, ret, &e), e);
}

static void make_fake(const struct bounds *b, struct cache_store *ret)
{
	(void)b;
	(void)fake_store_new(ret);
}

static void make_sqlite(const struct bounds *b, struct cache_store *ret)
{
	const struct cache_sqlite_opts o = { .path = util_path("embeddings.db"),
					     .max_entries = b->entries,
					     .max_bytes = b->bytes };

	ck_assert_ok(cache_sqlite_new(&o, ret, &e), e);
}

static struct real_redis server;

static void make_redis(const struct bounds *b, struct cache_store *ret)
{
	struct cache_redis_opts o = { .prefix = "t[*]:", .pool_size = 3 };

	(void)b;
	if (!server.pid && !real_redis_start(&server)) {
		(void)fake_store_new(ret); /* not installed */
		return;
	}
	o.where.at.host = "127.0.0.1";
	o.where.at.port = (uint16_t)server.port;
	o.where.timeout_ms = 20000; /* the machine may be busy */
	o.where.connect_timeout_ms = 20000;
	ck_assert_ok(cache_redis_new(&o, ret, &e), e);
}

static void make_twolevel(const struct bounds *b, struct cache_store *ret)
{
	struct cache_store front = CACHE_STORE_INIT, back = CACHE_STORE_INIT;

	make_memory(&(struct bounds){ 5, WIDE.bytes }, &front);
	make_sqlite(b, &back);
	ck_assert_ok(cache_twolevel_new(&front, &back, ret, &e), e);
}

static void make_fallback(const struct bounds *b, struct cache_store *ret)
{
	struct cache_store primary = CACHE_STORE_INIT, spare = CACHE_STORE_INIT;

	make_sqlite(b, &primary);
	make_memory(b, &spare);
	ck_assert_ok(cache_fallback_new(&primary, &spare, ret, &e), e);
}

static void make_fallback_down(const struct bounds *b, struct cache_store *ret)
{
	struct cache_store primary = CACHE_STORE_INIT, spare = CACHE_STORE_INIT;

	fake_store_fail(fake_store_new(&primary), AQE_E_SYS);
	make_memory(b, &spare);
	ck_assert_ok(cache_fallback_new(&primary, &spare, ret, &e), e);
}

static const struct driver DRIVERS[] = {
	{ .name = "memory", make_memory, .bounded = true },
	{ .name = "fake", make_fake },
	{ .name = "sqlite", make_sqlite, .bounded = true },
	{ .name = "redis", make_redis, .own_expiry = true },
	{ .name = "two-level", make_twolevel },
	{ .name = "fallback", make_fallback, .bounded = true },
	{ .name = "fallback, down", make_fallback_down, .bounded = true, .down = true },
};
#define N_DRIVERS ((int)(sizeof(DRIVERS) / sizeof(DRIVERS[0])))

static struct cache_store open_bounded(int driver, struct bounds b)
{
	struct cache_store s = CACHE_STORE_INIT;

	util_clock_init(&clk);
	DRIVERS[driver].make(&b, &s);
	ck_assert_ok(cache_store_init(&s, &e), e);
	return s;
}

static struct cache_store open_store(int driver)
{
	return open_bounded(driver, WIDE);
}

static void set_dim(struct cache_store *s, unsigned n, uint32_t dim)
{
	struct cache_item it = util_item(n, dim, clk.now.wall_ms, UTIL_TTL_MS);

	ck_assert_ok(cache_store_set(s, &it, 1, &clk.now, &e), e);
	aqe_buf_done(&it.value);
}

static void set(struct cache_store *s, unsigned n)
{
	set_dim(s, n, UTIL_DIM);
}

/* True when it is there, and whole. */
static bool get(struct cache_store *s, unsigned n)
{
	struct cache_item it = CACHE_ITEM_INIT;
	bool found;

	it.key = util_key(n);
	ck_assert_ok(cache_store_get(s, &it, 1, &clk.now, &e), e);
	found = it.found;
	ck_assert(!found || util_is(&it, n));
	ck_assert(found || it.value.len == 0);
	aqe_buf_done(&it.value);
	return found;
}

static bool has(struct cache_store *s, unsigned n)
{
	struct cache_item it = CACHE_ITEM_INIT;

	it.key = util_key(n);
	ck_assert_ok(cache_store_has(s, &it, 1, &clk.now, &e), e);
	return it.found;
}

static bool del(struct cache_store *s, unsigned n)
{
	struct cache_item it = CACHE_ITEM_INIT;

	it.key = util_key(n);
	ck_assert_ok(cache_store_del(s, &it, 1, &e), e);
	return it.found;
}

static uint64_t size(struct cache_store *s)
{
	uint64_t entries = 0;

	ck_assert_ok(cache_store_size(s, &entries, NULL, &e), e);
	return entries;
}

/* ---- before and after ---- */

START_TEST(store__works_only_while_open)
{
	struct cache_store s = CACHE_STORE_INIT;
	struct cache_item it = util_item(1, UTIL_DIM, UTIL_START, UTIL_TTL_MS);

	util_clock_init(&clk);
	DRIVERS[_i].make(&WIDE, &s);
	ck_assert_fault(cache_store_get(&s, &it, 1, &clk.now, &e), AQE_E_INTERNAL, e,
			"not initialised");
	ck_assert_fault(cache_store_set(&s, &it, 1, &clk.now, &e), AQE_E_INTERNAL, e, s.ops->name);
	ck_assert_ok(cache_store_init(&s, &e), e);
	ck_assert_ok(cache_store_init(&s, &e), e); /* harmless */
	ck_assert_int_eq(cache_store_healthy(&s, &e), DRIVERS[_i].down ? AQE_E_SYS : 0);
	cache_store_close(&s);
	ck_assert_fault(cache_store_clear(&s, &e), AQE_E_INTERNAL, e, "not initialised");
	cache_store_close(&s); /* harmless */
	DRIVERS[_i].make(&WIDE, &s);
	cache_store_close(&s); /* never opened */
	aqe_buf_done(&it.value);
}
END_TEST

/* ---- single entries (EC-01 to EC-05, EC-13, EC-14) ---- */

START_TEST(store__keeps_entries)
{
	struct cache_store s = open_store(_i);

	ck_assert(!get(&s, 1));
	ck_assert(!has(&s, 1));
	ck_assert(!del(&s, 1));
	ck_assert_uint_eq(size(&s), 0);
	set(&s, 1);
	set(&s, 2);
	ck_assert(get(&s, 1) && get(&s, 2) && has(&s, 1) && has(&s, 2));
	ck_assert(!get(&s, 3) && !has(&s, 3));
	ck_assert_uint_eq(size(&s), 2);
	ck_assert(del(&s, 1));
	ck_assert(!get(&s, 1) && get(&s, 2));
	ck_assert(!del(&s, 1));
	ck_assert_ok(cache_store_clear(&s, &e), e);
	ck_assert(!get(&s, 2));
	ck_assert_uint_eq(size(&s), 0);
	set(&s, 2);
	ck_assert(get(&s, 2));
	cache_store_close(&s);
}
END_TEST

START_TEST(store__replaces)
{
	struct cache_store s = open_store(_i);
	struct cache_item old = util_item(5, UTIL_DIM, UTIL_START, UTIL_TTL_MS), it = old;
	uint64_t entries = 0, before = 0, after = 0;

	ck_assert_ok(cache_store_set(&s, &it, 1, &clk.now, &e), e);
	ck_assert_ok(cache_store_size(&s, &entries, &before, &e), e);
	set_dim(&s, 5, 2 * UTIL_DIM);
	ck_assert_ok(cache_store_size(&s, &entries, &after, &e), e);
	ck_assert_uint_eq(entries, 1);
	ck_assert_uint_gt(before, UTIL_DIM * 4);
	ck_assert_uint_ge(after, before + UTIL_DIM * 4);
	it = (struct cache_item)CACHE_ITEM_INIT;
	it.key = util_key(5);
	ck_assert_ok(cache_store_get(&s, &it, 1, &clk.now, &e), e);
	ck_assert_uint_eq(it.value.len, CACHE_VALUE_HEAD + (size_t)UTIL_DIM * 8);
	ck_assert(util_is(&it, 5));
	aqe_buf_done(&it.value);
	aqe_buf_done(&old.value);
	cache_store_close(&s);
}
END_TEST

START_TEST(store__takes_every_length)
{
	static const uint32_t DIMS[] = { 1, 384, 768, 1024, 1536, 3072, CACHE_DIM_MAX };
	struct cache_store s = open_store(_i);

	for (unsigned i = 0; i < sizeof(DIMS) / sizeof(DIMS[0]); i++) {
		set_dim(&s, i, DIMS[i]);
		ck_assert(get(&s, i));
	}
	for (unsigned i = 0; i < sizeof(DIMS) / sizeof(DIMS[0]); i++)
		ck_assert(get(&s, i));
	cache_store_close(&s);
}
END_TEST

START_TEST(store__refuses_what_is_no_value)
{
	struct cache_store s = open_store(_i);
	struct cache_item it = util_item(1, UTIL_DIM, UTIL_START, UTIL_TTL_MS);

	it.value.len = CACHE_VALUE_HEAD - 1;
	ck_assert_fault(cache_store_set(&s, &it, 1, &clk.now, &e), AQE_E_LIMIT, e, "31 bytes");
	it.value.len = CACHE_VALUE_HEAD + 4;
	it.ttl_ms = 0;
	ck_assert_fault(cache_store_set(&s, &it, 1, &clk.now, &e), AQE_E_LIMIT, e, "0 ms");
	it.ttl_ms = CACHE_TTL_MAX_MS + 1;
	ck_assert_fault(cache_store_set(&s, &it, 1, &clk.now, &e), AQE_E_LIMIT, e, "time to live");
	ck_assert_uint_eq(size(&s), 0);
	aqe_buf_done(&it.value);
	cache_store_close(&s);
}
END_TEST

/* ---- batches ---- */

#define BATCH 300U

START_TEST(store__takes_batches)
{
	struct cache_store s = open_store(_i);
	struct cache_item *in = cache_items_new(BATCH), *out = cache_items_new(BATCH);

	for (unsigned i = 0; i < BATCH; i++) {
		in[i] = util_item(2 * i, UTIL_DIM, UTIL_START, UTIL_TTL_MS);
		out[i].key = util_key(i);
	}
	ck_assert_ok(cache_store_set(&s, in, 0, &clk.now, &e), e);
	ck_assert_ok(cache_store_get(&s, out, 0, &clk.now, &e), e);
	ck_assert_ok(cache_store_set(&s, in, BATCH, &clk.now, &e), e);
	ck_assert_uint_eq(size(&s), BATCH);
	ck_assert_ok(cache_store_get(&s, out, BATCH, &clk.now, &e), e);
	for (unsigned i = 0; i < BATCH; i++)
		ck_assert(out[i].found == (i % 2 == 0) && (!out[i].found || util_is(&out[i], i)));
	ck_assert_ok(cache_store_has(&s, out, BATCH, &clk.now, &e), e);
	for (unsigned i = 0; i < BATCH; i++)
		ck_assert(out[i].found == (i % 2 == 0));
	ck_assert_ok(cache_store_del(&s, out, BATCH, &e), e);
	for (unsigned i = 0; i < BATCH; i++)
		ck_assert(out[i].found == (i % 2 == 0));
	ck_assert_uint_eq(size(&s), BATCH / 2);
	cache_items_free(in, BATCH);
	cache_items_free(out, BATCH);
	cache_store_close(&s);
}
END_TEST

/* The same key twice in one batch: the last one stays, and both look-ups find it. */
START_TEST(store__takes_doubles_in_a_batch)
{
	struct cache_store s = open_store(_i);
	struct cache_item *it = cache_items_new(2);

	it[0] = util_item(1, UTIL_DIM, UTIL_START, UTIL_TTL_MS);
	it[1] = util_item(1, 2 * UTIL_DIM, UTIL_START, UTIL_TTL_MS);
	ck_assert_ok(cache_store_set(&s, it, 2, &clk.now, &e), e);
	ck_assert_uint_eq(size(&s), 1);
	ck_assert_ok(cache_store_get(&s, it, 2, &clk.now, &e), e);
	for (int i = 0; i < 2; i++)
		ck_assert(it[i].found && it[i].value.len == CACHE_VALUE_HEAD + UTIL_DIM * 8);
	ck_assert_ok(cache_store_del(&s, it, 2, &e), e);
	ck_assert(it[0].found && !it[1].found);
	cache_items_free(it, 2);
	cache_store_close(&s);
}
END_TEST

START_TEST(store__limits_batches)
{
	struct cache_store s = open_store(_i);
	struct cache_item *it = cache_items_new(CACHE_BATCH_MAX + 1);

	for (unsigned i = 0; i <= CACHE_BATCH_MAX; i++)
		it[i].key = util_key(i);
	ck_assert_ok(cache_store_get(&s, it, CACHE_BATCH_MAX, &clk.now, &e), e);
	ck_assert_fault(cache_store_get(&s, it, CACHE_BATCH_MAX + 1, &clk.now, &e), AQE_E_LIMIT, e,
			"more than 4096 items");
	cache_items_free(it, CACHE_BATCH_MAX + 1);
	cache_store_close(&s);
}
END_TEST

/* ---- keys ---- */

START_TEST(keys__come_once_each)
{
	static const size_t PAGES[] = { 1, 7, 100, 4096 };
	struct cache_store s = open_store(_i);
	unsigned seen[200];

	for (unsigned i = 0; i < 200; i++)
		set(&s, i);
	for (size_t p = 0; p < sizeof(PAGES) / sizeof(PAGES[0]); p++) {
		struct cache_iter iter = CACHE_ITER_INIT;
		static struct cache_key page[4096];
		size_t n, total = 0;

		memset(seen, 0, sizeof(seen));
		while (!iter.done) {
			ck_assert_ok(cache_store_keys(&s, &iter, page, PAGES[p], &n, &e), e);
			ck_assert_uint_le(n, PAGES[p]);
			total += n;
			for (size_t i = 0; i < n; i++) {
				unsigned which = 0;
				struct cache_key k = util_key(0);

				while (which < 200 && !cache_key_equal(&k, &page[i]))
					k = util_key(++which);
				ck_assert_uint_lt(which, 200);
				seen[which]++;
			}
		}
		ck_assert_uint_eq(total, 200);
		for (unsigned i = 0; i < 200; i++)
			ck_assert_uint_eq(seen[i], 1);
		cache_iter_done(&iter);
	}
	cache_store_close(&s);
}
END_TEST

/* What is there from the beginning to the end comes, while other entries come and go. */
START_TEST(keys__survive_changes)
{
	struct cache_store s = open_store(_i);
	struct cache_iter iter = CACHE_ITER_INIT;
	struct cache_key page[5];
	bool seen[50] = { false };
	unsigned next = 1000;
	size_t n;

	for (unsigned i = 0; i < 50; i++)
		set(&s, i);
	while (!iter.done) {
		ck_assert_ok(cache_store_keys(&s, &iter, page, 5, &n, &e), e);
		for (size_t i = 0; i < n; i++)
			for (unsigned k = 0; k < 50; k++) {
				const struct cache_key key = util_key(k);

				seen[k] |= cache_key_equal(&key, &page[i]);
			}
		for (int i = 0; i < 20 && next < 1600; i++)
			set(&s, next++); /* the table grows */
		ck_assert_uint_lt(next, 1e6);
	}
	for (unsigned i = 0; i < 50; i++)
		ck_assert_msg(seen[i] || strcmp(DRIVERS[_i].name, "fake") == 0, "key %u", i);
	cache_iter_done(&iter);
	cache_store_close(&s);
}
END_TEST

/* ---- age ---- */

START_TEST(store__forgets_what_is_too_old)
{
	struct cache_store s = open_store(_i);

	set(&s, 1);
	util_clock_add(&clk, UTIL_TTL_MS - 1);
	ck_assert(get(&s, 1) && has(&s, 1));
	set(&s, 2);
	util_clock_add(&clk, 1);
	ck_assert(!has(&s, 1));
	ck_assert(!get(&s, 1));
	ck_assert(get(&s, 2));
	util_clock_add(&clk, UTIL_TTL_MS);
	ck_assert(!get(&s, 2));
	if (!DRIVERS[_i].own_expiry)
		ck_assert_uint_eq(size(&s), 0); /* looking removed them */
	set(&s, 1);
	ck_assert(get(&s, 1));
	cache_store_close(&s);
}
END_TEST

START_TEST(prune__removes_what_is_too_old)
{
	struct cache_store s = open_store(_i);
	uint64_t n = 99;

	for (unsigned i = 0; i < 10; i++) {
		set(&s, i);
		util_clock_add(&clk, UTIL_TTL_MS / 10);
	}
	ck_assert_ok(cache_store_prune(&s, &clk.now, &n, &e), e);
	ck_assert_uint_eq(n, DRIVERS[_i].own_expiry ? 0 : 1);
	util_clock_add(&clk, UTIL_TTL_MS / 2);
	ck_assert_ok(cache_store_prune(&s, &clk.now, &n, &e), e);
	ck_assert_uint_eq(n, DRIVERS[_i].own_expiry ? 0 : 5);
	if (!DRIVERS[_i].own_expiry)
		ck_assert_uint_eq(size(&s), 4);
	ck_assert(get(&s, 9) && !get(&s, 5));
	cache_store_close(&s);
}
END_TEST

/* A clock that is set forward ends lives, one that is set back ends those of the future: no jump
 * makes an entry eternal. */
START_TEST(store__survives_clock_jumps)
{
	static const int64_t JUMPS[] = { -3600000, -86400000, -(int64_t)10 * 365 * 86400000,
					 3600000, (int64_t)10 * 365 * 86400000 };
	struct cache_store s = open_store(_i);

	for (unsigned i = 0; i < sizeof(JUMPS) / sizeof(JUMPS[0]); i++) {
		set(&s, i);
		ck_assert(get(&s, i));
		util_clock_jump(&clk, JUMPS[i]);
		ck_assert(!get(&s, i));
		set(&s, i);
		ck_assert(get(&s, i));
		util_clock_add(&clk, UTIL_TTL_MS);
		ck_assert(!get(&s, i));
	}
	/* hosts whose clocks differ a little can share */
	set(&s, 1);
	util_clock_jump(&clk, -CACHE_FUTURE_MS);
	ck_assert(get(&s, 1));
	cache_store_close(&s);
}
END_TEST

/* ---- bounds (EC-06, EC-07) ---- */

static bool skip_unbounded(int driver)
{
	return !DRIVERS[driver].bounded;
}

static uint64_t evictions(struct cache_store *s)
{
	struct cache_store_stats st;

	cache_store_stats(s, &st);
	return st.evictions;
}

START_TEST(store__drops_what_was_used_longest_ago)
{
	struct cache_store s;

	if (skip_unbounded(_i))
		return;
	s = open_bounded(_i, (struct bounds){ 3, WIDE.bytes });
	set(&s, 1);
	set(&s, 2);
	set(&s, 3);
	set(&s, 2); /* replaces: nobody has to go */
	ck_assert_uint_eq(evictions(&s), 0);
	set(&s, 4);
	ck_assert(!has(&s, 1) && has(&s, 2) && has(&s, 3) && has(&s, 4));
	ck_assert(get(&s, 3));
	set(&s, 5); /* 2 is the oldest: 3 was read */
	ck_assert(!has(&s, 2) && has(&s, 3) && has(&s, 4) && has(&s, 5));
	ck_assert_uint_eq(evictions(&s), 2);
	ck_assert_uint_eq(size(&s), 3);
	cache_store_close(&s);
}
END_TEST

START_TEST(store__holds_its_bytes)
{
	const uint64_t limit = 200000;
	struct cache_store s;
	uint64_t entries, bytes;

	if (skip_unbounded(_i))
		return;
	s = open_bounded(_i, (struct bounds){ WIDE.entries, limit });
	for (unsigned i = 0; i < 300; i++) {
		set_dim(&s, i, 256);
		ck_assert_ok(cache_store_size(&s, &entries, &bytes, &e), e);
		ck_assert_uint_le(bytes, limit);
		ck_assert_uint_ge(bytes, entries * (256 * 4 + 32)); /* keys are counted */
		ck_assert(get(&s, i));
	}
	ck_assert_uint_gt(entries, limit / 1024 * 3 / 4);
	ck_assert_uint_eq(evictions(&s), 300 - entries);
	for (unsigned i = 0; i < 300; i++)
		ck_assert(has(&s, i) == (i >= 300 - entries));
	cache_store_close(&s);
}
END_TEST

START_TEST(store__refuses_more_than_it_can_hold)
{
	struct cache_store s;
	struct cache_item it = util_item(1, 4096, UTIL_START, UTIL_TTL_MS);

	if (!skip_unbounded(_i)) {
		s = open_bounded(_i, (struct bounds){ WIDE.entries, 10000 });
		set(&s, 2);
		ck_assert_fault(cache_store_set(&s, &it, 1, &clk.now, &e), AQE_E_LIMIT, e,
				"a value of 16416 bytes");
		ck_assert(get(&s, 2));
		cache_store_close(&s);
	}
	aqe_buf_done(&it.value);
}
END_TEST

/* ---- several threads ---- */

static void *hammer(void *self)
{
	struct cache_store *s = self;
	unsigned seed = (unsigned)(uintptr_t)&seed;
	struct aqe_err mine = AQE_ERR_INIT;

	for (int i = 0; i < 300; i++) {
		const unsigned n = (unsigned)rand_r(&seed) % 20;
		struct cache_item it = util_item(n, UTIL_DIM, clk.now.wall_ms, UTIL_TTL_MS);

		if (i % 3 == 0)
			ck_assert_ok(cache_store_set(s, &it, 1, &clk.now, &mine), mine);
		else if (i % 31 == 0)
			ck_assert_ok(cache_store_del(s, &it, 1, &mine), mine);
		else
			ck_assert_ok(cache_store_get(s, &it, 1, &clk.now, &mine), mine);
		ck_assert(!it.found || it.value.len == 0 || util_is(&it, n));
		aqe_buf_done(&it.value);
	}
	return NULL;
}

START_TEST(store__serves_threads)
{
	struct cache_store s = open_bounded(_i, (struct bounds){ 15, WIDE.bytes });
	pthread_t t[8];

	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, hammer, &s), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	ck_assert_uint_le(size(&s), DRIVERS[_i].bounded ? 15 : 20);
	cache_store_close(&s);
}
END_TEST

static void teardown(void)
{
	real_redis_stop(&server);
	util_dir_done();
}

START_TEST(redis__is_installed)
{
	ck_assert(access("/usr/bin/redis-server", X_OK) == 0 || !getenv("AQE_TESTS_MUST_RUN"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("contract");
	TCase *t = tcase_create("contract");

	tcase_add_checked_fixture(t, util_dir_init, teardown);
	tcase_add_test(t, redis__is_installed);
	tcase_add_loop_test(t, store__works_only_while_open, 0, N_DRIVERS);
	tcase_add_loop_test(t, store__keeps_entries, 0, N_DRIVERS);
	tcase_add_loop_test(t, store__replaces, 0, N_DRIVERS);
	tcase_add_loop_test(t, store__takes_every_length, 0, N_DRIVERS);
	tcase_add_loop_test(t, store__refuses_what_is_no_value, 0, N_DRIVERS);
	tcase_add_loop_test(t, store__takes_batches, 0, N_DRIVERS);
	tcase_add_loop_test(t, store__takes_doubles_in_a_batch, 0, N_DRIVERS);
	tcase_add_loop_test(t, store__limits_batches, 0, N_DRIVERS);
	tcase_add_loop_test(t, keys__come_once_each, 0, N_DRIVERS);
	tcase_add_loop_test(t, keys__survive_changes, 0, N_DRIVERS);
	tcase_add_loop_test(t, store__forgets_what_is_too_old, 0, N_DRIVERS);
	tcase_add_loop_test(t, prune__removes_what_is_too_old, 0, N_DRIVERS);
	tcase_add_loop_test(t, store__survives_clock_jumps, 0, N_DRIVERS);
	tcase_add_loop_test(t, store__drops_what_was_used_longest_ago, 0, N_DRIVERS);
	tcase_add_loop_test(t, store__holds_its_bytes, 0, N_DRIVERS);
	tcase_add_loop_test(t, store__refuses_more_than_it_can_hold, 0, N_DRIVERS);
	tcase_add_loop_test(t, store__serves_threads, 0, N_DRIVERS);
	suite_add_tcase(s, t);
	return unit_run(s);
}
