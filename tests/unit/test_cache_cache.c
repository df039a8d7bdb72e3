/* SPDX-License-Identifier: MIT */
#include "cache/cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "shim/core/text.h"
#include "tests/fakes/fake_store.h"
#include "tests/fakes/real_redis.h"
#include "tests/unit/cache_util.h"

static struct aqe_err e;
static struct util_clock clk;
static struct fake_store *fake;
static struct real_redis server;

static struct cache_config config(void)
{
	struct cache_config c;

	cache_config_init(&c);
	c.ttl_ms = UTIL_TTL_MS;
	c.prune_interval_ms = 1000;
	c.own_ticks = true;
	return c;
}

static struct cache *open_cfg(const struct cache_config *cfg)
{
	struct cache *c = NULL;

	ck_assert_ok(cache_open(cfg, &clk.port, &c, &e), e);
	return c;
}

static struct cache *open_fake(void)
{
	struct cache_store s = CACHE_STORE_INIT;
	const struct cache_config cfg = config();
	struct cache *c = NULL;

	fake = fake_store_new(&s);
	ck_assert_ok(cache_open_store(&s, &cfg, &clk.port, &c, &e), e);
	return c;
}

static int put_dim(struct cache *c, unsigned n, uint32_t dim)
{
	struct cache_item it = CACHE_ITEM_INIT;
	const struct cache_key k = util_key(n);
	float v[1024];
	int rc;

	util_floats(n, dim, v);
	ck_assert_ok(cache_item_encode(c, &k, &(struct cache_numbers){ v, NULL, dim }, &it, NULL,
				       &e),
		     e);
	rc = cache_put(c, &it, 1, &e);
	aqe_buf_done(&it.value);
	return rc;
}

static void put(struct cache *c, unsigned n)
{
	ck_assert_ok(put_dim(c, n, UTIL_DIM), e);
}

static bool get_dim(struct cache *c, unsigned n, uint32_t dim)
{
	struct cache_item it = CACHE_ITEM_INIT;
	struct cache_value v;
	bool found;

	it.key = util_key(n);
	(void)cache_get(c, &it, 1, &dim, &e);
	found = it.found;
	if (found) {
		ck_assert(util_is(&it, n));
		cache_item_value(&it, &v);
		ck_assert(!dim || v.dim == dim);
		ck_assert_int_eq(v.ttl_ms, UTIL_TTL_MS);
	}
	aqe_buf_done(&it.value);
	return found;
}

static bool get(struct cache *c, unsigned n)
{
	return get_dim(c, n, 0);
}

static struct cache_stats stats(struct cache *c)
{
	struct cache_stats s;

	cache_stats(c, &s);
	return s;
}

static void setup(void)
{
	util_dir_init();
	util_clock_init(&clk);
}

static void teardown(void)
{
	real_redis_stop(&server);
	util_dir_done();
}

/* ---- hits and misses (EC-08, EC-11, NE-09 to NE-12) ---- */

START_TEST(stats__count)
{
	struct cache_config cfg = config();
	struct cache *c = open_cfg(&cfg);
	struct cache_stats s = stats(c);

	ck_assert(cache_stats_rate(&s) <= 0); /* no look-ups: 0 */
	ck_assert(!get(c, 1));
	put(c, 1);
	ck_assert(get(c, 1) && get(c, 1));
	s = stats(c);
	ck_assert(s.hits == 2 && s.misses == 1 && s.stored == 1 && s.store.entries == 1);
	ck_assert(cache_stats_rate(&s) > 0.666 && cache_stats_rate(&s) < 0.667); /* a fraction */
	ck_assert_uint_gt(s.store.bytes, UTIL_DIM * 4);
	ck_assert_str_eq(s.backend, "memory");
	ck_assert(s.p50_us > 0 && s.p50_us <= s.p90_us && s.p90_us <= s.p99_us &&
		  s.p99_us <= s.max_us);
	ck_assert(s.max_us < 1e6);
	ck_assert_ok(cache_clear(c, &e), e);
	s = stats(c);
	ck_assert(s.hits == 0 && s.misses == 0 && s.store.entries == 0);
	ck_assert(!get(c, 1));
	cache_close(c);
}
END_TEST

START_TEST(get__counts_batches)
{
	struct cache_config cfg = config();
	struct cache *c = open_cfg(&cfg);
	struct cache_item *it = cache_items_new(10);
	struct cache_stats s;

	for (unsigned i = 0; i < 10; i++) {
		it[i].key = util_key(i);
		if (i % 2)
			put(c, i);
	}
	ck_assert_int_eq(cache_get(c, it, 10, NULL, &e), 0);
	for (unsigned i = 0; i < 10; i++)
		ck_assert(it[i].found == (i % 2));
	s = stats(c);
	ck_assert(s.hits == 5 && s.misses == 5);
	ck_assert_int_eq(cache_has(c, it, 10, &e), 0); /* is not counted */
	ck_assert_int_eq(cache_get(c, it, 0, NULL, &e), 0);
	s = stats(c);
	ck_assert(s.hits == 5 && s.misses == 5);
	ck_assert_ok(cache_del(c, it, 10, &e), e);
	ck_assert(it[1].found && !it[0].found && !get(c, 1));
	cache_items_free(it, 10);
	cache_close(c);
}
END_TEST

/* ---- what is no use goes ---- */

START_TEST(get__throws_damage_away)
{
	struct cache *c = open_fake();
	const struct cache_key k = util_key(1);
	struct cache_stats s;

	put(c, 1);
	ck_assert(fake_store_damage(fake, &k, (size_t)_i));
	ck_assert(!get(c, 1));
	ck_assert_uint_eq(fake_store_calls(fake, FAKE_DEL), 1);
	ck_assert(!get(c, 1));
	s = stats(c);
	ck_assert(s.damaged == 1 && s.misses == 2 && s.hits == 0 && s.store.entries == 0);
	put(c, 1);
	ck_assert(get(c, 1));
	cache_close(c);
}
END_TEST

START_TEST(get__throws_wrong_dimensions_away)
{
	struct cache *c = open_fake();

	ck_assert_ok(put_dim(c, 1, 768), e);
	ck_assert(get_dim(c, 1, 768) && get_dim(c, 1, 0));
	ck_assert(!get_dim(c, 1, 1536));
	ck_assert_uint_eq(stats(c).wrong_dimension, 1);
	ck_assert(!get_dim(c, 1, 768));
	cache_close(c);
}
END_TEST

/* Entries of a process that believes in them longer. */
START_TEST(get__holds_its_own_time_to_live)
{
	struct cache *c = open_fake();
	struct cache_item it = util_item(1, UTIL_DIM, UTIL_START, 100 * UTIL_TTL_MS);

	ck_assert_ok(cache_put(c, &it, 1, &e), e);
	util_clock_add(&clk, UTIL_TTL_MS - 1);
	ck_assert_int_eq(cache_get(c, &it, 1, NULL, &e), 0);
	ck_assert(it.found);
	util_clock_add(&clk, 1);
	ck_assert_int_eq(cache_get(c, &it, 1, NULL, &e), 0);
	ck_assert(!it.found && it.value.len == 0);
	ck_assert_uint_eq(stats(c).too_old, 1);
	ck_assert_uint_eq(fake_store_calls(fake, FAKE_DEL), 0); /* theirs */
	aqe_buf_done(&it.value);
	cache_close(c);
}
END_TEST

/* Set forward and back, in every order: an entry never lives longer than its time. */
START_TEST(clock__makes_nothing_eternal)
{
	struct cache_config cfg = config();
	struct cache *c = open_cfg(&cfg);
	int64_t lived = 0;

	put(c, 1);
	for (int i = 0; i < 1000 && get(c, 1); i++) {
		util_clock_add(&clk, UTIL_TTL_MS / 100);
		util_clock_jump(&clk, -UTIL_TTL_MS / 100); /* somebody holds the clock still */
		lived += UTIL_TTL_MS / 100;
	}
	ck_assert_int_le(lived, UTIL_TTL_MS);
	put(c, 2);
	util_clock_jump(&clk, (int64_t)100 * 365 * 86400000);
	ck_assert(!get(c, 2));
	put(c, 3);
	util_clock_jump(&clk, -(int64_t)100 * 365 * 86400000);
	ck_assert(!get(c, 3));
	cache_close(c);
}
END_TEST

/* ---- errors ---- */

START_TEST(get__takes_an_error_for_a_miss)
{
	struct cache *c = open_fake();
	struct cache_item it = CACHE_ITEM_INIT;
	struct cache_stats s;

	put(c, 1);
	fake_store_fail(fake, AQE_E_SYS);
	it.key = util_key(1);
	ck_assert_int_eq(cache_get(c, &it, 1, NULL, &e), AQE_E_SYS);
	ck_assert(!it.found);
	ck_assert_fault(put_dim(c, 2, UTIL_DIM), AQE_E_SYS, e,
			"as told"); /* a write error is raised */
	fake_store_fail(fake, 0);
	s = stats(c);
	ck_assert(s.read_errors == 1 && s.write_errors == 1 && s.misses == 1);
	ck_assert(get(c, 1));
	aqe_buf_done(&it.value);
	cache_close(c);
}
END_TEST

START_TEST(encode__refuses)
{
	struct cache *c = open_fake();
	struct cache_item it = CACHE_ITEM_INIT;
	const struct cache_key k = util_key(1);
	const double bad[] = { 1, NAN }, good[] = { 0.1, 0.2 };
	struct cache_narrowing lost;

	ck_assert_fault(cache_item_encode(c, &k, &(struct cache_numbers){ NULL, bad, 2 }, &it, NULL,
					  &e),
			AQE_E_MALFORMED, e, "not finite");
	ck_assert_ok(cache_item_encode(c, &k, &(struct cache_numbers){ NULL, good, 2 }, &it, &lost,
				       &e),
		     e);
	ck_assert(lost.max_rel > 0 && lost.max_rel <= 0x1p-24);
	aqe_buf_done(&it.value);
	cache_close(c);
}
END_TEST

START_TEST(open__fails_with_its_store)
{
	struct cache_store s = CACHE_STORE_INIT;
	struct cache_config cfg = config();
	struct cache *c = NULL;

	fake_store_fail(fake_store_new(&s), AQE_E_SYS);
	ck_assert_fault(cache_open_store(&s, &cfg, NULL, &c, &e), AQE_E_SYS, e, "fake: as told");
	cfg.backend = CACHE_SQLITE;
	cfg.sqlite_path = "/proc/no/such";
	ck_assert_int_ne(cache_open(&cfg, NULL, &c, &e), 0);
	cfg.backend = CACHE_REDIS;
	cfg.redis.where.at.port = 1;
	cfg.fallback = false;
	ck_assert_fault(cache_open(&cfg, NULL, &c, &e), AQE_E_SYS, e, "redis: ");
	ck_assert_ptr_null(c);
}
END_TEST

/* ---- pruning ---- */

START_TEST(tick__prunes)
{
	struct cache_config cfg = config();
	struct cache *c = open_cfg(&cfg);

	put(c, 1);
	ck_assert_int_eq(cache_tick(c), 1000);
	util_clock_add(&clk, 999);
	ck_assert_int_eq(cache_tick(c), 1);
	util_clock_add(&clk, UTIL_TTL_MS);
	ck_assert_uint_eq(stats(c).store.entries, 1);
	ck_assert_int_eq(cache_tick(c), 1000);
	ck_assert_uint_eq(stats(c).store.entries, 0);
	cache_close(c);
	cfg.prune_interval_ms = 0; /* off */
	c = open_cfg(&cfg);
	put(c, 1);
	util_clock_add(&clk, 10 * UTIL_TTL_MS);
	ck_assert_int_gt(cache_tick(c), 86400000);
	ck_assert_uint_eq(stats(c).store.entries, 1);
	cache_close(c);
}
END_TEST

START_TEST(thread__prunes_and_ends)
{
	struct cache_config cfg = config();
	struct cache *c;

	cfg.own_ticks = false;
	cfg.prune_interval_ms = 1;
	c = open_cfg(&cfg);
	put(c, 1);
	util_clock_add(&clk, UTIL_TTL_MS);
	for (int i = 0; i < 5000 && stats(c).store.entries; i++)
		usleep(1000);
	ck_assert_uint_eq(stats(c).store.entries, 0);
	cache_close(c);
}
END_TEST

/* ---- all back ends, in one and two levels ---- */

START_TEST(open__makes_what_is_configured)
{
	struct cache_config cfg = config();
	struct cache *c;

	cfg.backend = (enum cache_backend)(_i % CACHE_BACKENDS);
	cfg.two_level = _i >= CACHE_BACKENDS;
	cfg.sqlite_path = util_path("c.db");
	if (cfg.backend == CACHE_REDIS) {
		if (!real_redis_start(&server)) {
			ck_assert_ptr_null(getenv("AQE_TESTS_MUST_RUN"));
			return;
		}
		cfg.redis.where.at.port = (uint16_t)server.port;
		cfg.redis.where.timeout_ms = cfg.redis.where.connect_timeout_ms = 10000;
	}
	c = open_cfg(&cfg);
	for (unsigned i = 0; i < 50; i++)
		put(c, i);
	for (unsigned i = 0; i < 100; i++)
		ck_assert(get(c, i) == (i < 50));
	ck_assert_ok(cache_healthy(c, &e), e);
	ck_assert_str_eq(stats(c).backend, cache_backend_name(cfg.backend));
	ck_assert_int_eq(stats(c).two_level, cfg.two_level && cfg.backend != CACHE_MEMORY);
	ck_assert_uint_eq(stats(c).store.entries, 50);
	cache_close(c);
}
END_TEST

/* ---- Redis dies, freezes and comes back under load: no call fails, and it is used again ---- */

struct load {
	struct cache *c;
	atomic_bool stop;
	atomic_uint calls, found, failed, slow;
};

static void *load(void *self)
{
	struct load *l = self;
	unsigned seed = (unsigned)(uintptr_t)&seed;
	struct aqe_err mine = AQE_ERR_INIT;
	struct timespec a, b;

	while (!atomic_load(&l->stop)) {
		const unsigned n = (unsigned)rand_r(&seed) % 200;
		struct cache_item it =
			util_item(n, UTIL_DIM, (int64_t)time(NULL) * 1000, UTIL_TTL_MS);

		clock_gettime(CLOCK_MONOTONIC, &a);
		if (cache_put(l->c, &it, 1, &mine) || cache_get(l->c, &it, 1, NULL, &mine))
			atomic_fetch_add(&l->failed, 1);
		clock_gettime(CLOCK_MONOTONIC, &b);
		atomic_fetch_add(&l->found, it.found);
		ck_assert(!it.found || util_is(&it, n));
		if (b.tv_sec - a.tv_sec > 5)
			atomic_fetch_add(&l->slow, 1);
		atomic_fetch_add(&l->calls, 1);
		aqe_buf_done(&it.value);
		usleep(300);
	}
	return NULL;
}

static void wait_degraded(struct cache *c, bool want)
{
	for (int i = 0; i < 60000 && stats(c).store.degraded != want; i++)
		usleep(1000);
	ck_assert_int_eq(stats(c).store.degraded, want);
}

START_TEST(redis__comes_and_goes_unnoticed)
{
	struct cache_config cfg = config();
	struct load l = { .c = NULL };
	pthread_t t[4];

	if (!real_redis_start(&server)) {
		ck_assert_ptr_null(getenv("AQE_TESTS_MUST_RUN"));
		return;
	}
	cfg.backend = CACHE_REDIS;
	cfg.own_ticks = false;
	cfg.two_level = _i == 1;
	cfg.front_entries = 20;
	cfg.redis.where.at.port = (uint16_t)server.port;
	cfg.redis.where.timeout_ms = cfg.redis.where.connect_timeout_ms = 200;
	ck_assert_ok(cache_open(&cfg, NULL, &l.c, &e), e);
	util_clock_init(&clk);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, load, &l), 0);
	for (int round = 0; round < 2; round++) {
		usleep(50000);
		real_redis_stop(&server);
		wait_degraded(l.c, true);
		put(l.c, 5000 + (unsigned)round); /* nobody else stores this one */
		ck_assert(get(l.c, 5000 + (unsigned)round));
		ck_assert(real_redis_start(&server));
		wait_degraded(l.c, false);
		ck_assert(get(l.c, 5000 + (unsigned)round)); /* carried over */
		usleep(50000);
		real_redis_freeze(&server);
		wait_degraded(l.c, true);
		usleep(50000);
		real_redis_thaw(&server);
		wait_degraded(l.c, false);
	}
	atomic_store(&l.stop, true);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	printf("# %u calls, %u found, %llu outages\n", l.calls, l.found,
	       (unsigned long long)stats(l.c).store.outages);
	ck_assert_uint_eq(l.failed, 0);
	ck_assert_uint_eq(l.slow, 0);
	ck_assert_uint_ge(l.found, l.calls - 100); /* but where an outage began or ended between */
	ck_assert_uint_ge(stats(l.c).store.outages, 4);
	cache_close(l.c);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cache");
	TCase *t = tcase_create("cache");

	tcase_set_timeout(t, 180);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, stats__count);
	tcase_add_test(t, get__counts_batches);
	tcase_add_loop_test(t, get__throws_damage_away, 0, (int)CACHE_VALUE_HEAD + 8);
	tcase_add_test(t, get__throws_wrong_dimensions_away);
	tcase_add_test(t, get__holds_its_own_time_to_live);
	tcase_add_test(t, clock__makes_nothing_eternal);
	tcase_add_test(t, get__takes_an_error_for_a_miss);
	tcase_add_test(t, encode__refuses);
	tcase_add_test(t, open__fails_with_its_store);
	tcase_add_test(t, tick__prunes);
	tcase_add_test(t, thread__prunes_and_ends);
	tcase_add_loop_test(t, open__makes_what_is_configured, 0, 2 * CACHE_BACKENDS);
	tcase_add_loop_test(t, redis__comes_and_goes_unnoticed, 0, 2);
	suite_add_tcase(s, t);
	return unit_run(s);
}
