/* SPDX-License-Identifier: MIT */
#include "cache/fallback.h"

#include <pthread.h>
#include <stdatomic.h>

#include "cache/memory.h"
#include "tests/fakes/fake_store.h"
#include "tests/unit/cache_util.h"

static struct aqe_err e;
static struct util_clock clk;
static struct fake_store *primary;
static struct cache_store direct; /* the primary, past the fallback */
static struct cache_store s;

static void setup(void)
{
	const struct cache_memory_opts o = { .max_entries = 1000, .max_bytes = 1 << 24 };
	struct cache_store p = CACHE_STORE_INIT, spare = CACHE_STORE_INIT;

	util_clock_init(&clk);
	primary = fake_store_new(&p);
	ck_assert_ok(cache_memory_new(&o, &spare, &e), e);
	direct = p;
	direct.ready = true;
	ck_assert_ok(cache_fallback_new(&p, &spare, &s, &e), e);
	ck_assert_ok(cache_store_init(&s, &e), e);
}

static void teardown(void)
{
	cache_store_close(&s);
}

static void set_in(struct cache_store *to, unsigned n)
{
	struct cache_item it = util_item(n, UTIL_DIM, clk.now.wall_ms, UTIL_TTL_MS);

	ck_assert_ok(cache_store_set(to, &it, 1, &clk.now, &e), e);
	aqe_buf_done(&it.value);
}

static void set(unsigned n)
{
	set_in(&s, n);
}

static bool get_from(struct cache_store *from, unsigned n)
{
	struct cache_item it = CACHE_ITEM_INIT;
	bool found;

	it.key = util_key(n);
	ck_assert_ok(cache_store_get(from, &it, 1, &clk.now, &e), e);
	found = it.found;
	ck_assert(!found || util_is(&it, n));
	aqe_buf_done(&it.value);
	return found;
}

static bool get(unsigned n)
{
	return get_from(&s, n);
}

static void del(unsigned n)
{
	struct cache_item it = CACHE_ITEM_INIT;

	it.key = util_key(n);
	ck_assert_ok(cache_store_del(&s, &it, 1, &e), e);
}

static bool degraded(void)
{
	struct cache_store_stats st;

	cache_store_stats(&s, &st);
	return st.degraded;
}

/* Ticks until it is up again. */
static void come_back(void)
{
	int64_t wait;

	fake_store_fail(primary, 0);
	while ((wait = cache_fallback_tick(&s, &clk.now)) >= 0)
		util_clock_add(&clk, wait ? wait : 1);
	ck_assert(!degraded());
}

START_TEST(up__uses_the_primary)
{
	set(1);
	ck_assert(get(1) && get_from(&direct, 1));
	ck_assert_int_eq(cache_fallback_tick(&s, &clk.now), -1);
	ck_assert_uint_eq(fake_store_calls(primary, FAKE_HEALTHY), 0);
	del(1);
	ck_assert(!get(1) && !get_from(&direct, 1));
}
END_TEST

/* Whatever kind of call meets the outage, and whatever it is, does not fail. */
static const int OUTAGES[] = { AQE_E_SYS, AQE_E_TIMEOUT, AQE_E_MALFORMED, AQE_E_UNTRUSTED,
			       AQE_E_REFUSED };

START_TEST(outage__fails_no_call)
{
	const int code = OUTAGES[_i / 6], call = _i % 6;
	struct cache_store_stats st;
	struct cache_item it = CACHE_ITEM_INIT;
	uint64_t n;

	set(1);
	fake_store_fail(primary, code);
	it.key = util_key(1);
	if (call == 0)
		ck_assert(!get(1));
	else if (call == 1)
		ck_assert_ok(cache_store_has(&s, &it, 1, &clk.now, &e), e);
	else if (call == 2)
		set(2);
	else if (call == 3)
		del(1);
	else if (call == 4)
		ck_assert_ok(cache_store_clear(&s, &e), e);
	else
		ck_assert_ok(cache_store_size(&s, &n, NULL, &e), e);
	(void)get(1);
	set(3);
	ck_assert(get(3));
	ck_assert(!get(1));
	cache_store_stats(&s, &st);
	ck_assert(st.degraded);
	ck_assert_uint_eq(st.outages, 1);
	ck_assert_fault(cache_store_healthy(&s, &e), AQE_E_SYS, e, "fake is away");
}
END_TEST

/* While it is down only the probe asks the primary. */
START_TEST(outage__leaves_the_primary_alone)
{
	unsigned before;

	fake_store_fail(primary, AQE_E_TIMEOUT);
	ck_assert(!get(1));
	before = fake_store_calls(primary, FAKE_GET) + fake_store_calls(primary, FAKE_SET);
	for (unsigned i = 0; i < 100; i++) {
		set(i);
		ck_assert(get(i));
	}
	ck_assert_uint_eq(fake_store_calls(primary, FAKE_GET) + fake_store_calls(primary, FAKE_SET),
			  before);
}
END_TEST

START_TEST(probes__back_off)
{
	int64_t wait, last = 0, total = 0;

	fake_store_fail(primary, AQE_E_SYS);
	ck_assert(!get(1));
	ck_assert_int_eq(cache_fallback_tick(&s, &clk.now), CACHE_FALLBACK_FIRST_MS);
	ck_assert_uint_eq(fake_store_calls(primary, FAKE_HEALTHY), 0);
	for (unsigned probes = 0; probes < 15; probes++) {
		wait = cache_fallback_tick(&s, &clk.now);
		ck_assert_int_gt(wait, 0);
		ck_assert_int_le(wait, CACHE_FALLBACK_LAST_MS);
		ck_assert_int_ge(wait, last / 2);
		ck_assert_uint_eq(fake_store_calls(primary, FAKE_HEALTHY), probes);
		/* not earlier */
		util_clock_add(&clk, wait - 1);
		(void)cache_fallback_tick(&s, &clk.now);
		ck_assert_uint_eq(fake_store_calls(primary, FAKE_HEALTHY), probes);
		util_clock_add(&clk, 1);
		wait = cache_fallback_tick(&s, &clk.now);
		ck_assert_uint_eq(fake_store_calls(primary, FAKE_HEALTHY), probes + 1);
		last = wait;
		total += wait;
	}
	ck_assert_int_ge(last, CACHE_FALLBACK_LAST_MS * 3 / 4);
	ck_assert_int_gt(total, 100000);
	come_back();
	fake_store_fail(primary, AQE_E_SYS); /* the next outage begins anew */
	ck_assert(!get(1));
	ck_assert_int_eq(cache_fallback_tick(&s, &clk.now), CACHE_FALLBACK_FIRST_MS);
}
END_TEST

START_TEST(return__carries_everything_over)
{
	struct cache_item it = CACHE_ITEM_INIT;

	for (unsigned i = 0; i < 10; i++)
		set(i);
	fake_store_fail(primary, AQE_E_SYS);
	for (unsigned i = 20; i < 320; i++)
		set(i);
	del(1);
	del(2);
	set(2); /* deleted, and there again */
	set(3);
	del(3); /* the other way round */
	del(20);
	util_clock_add(&clk, 1000);
	come_back();
	for (unsigned i = 0; i < 320; i++) {
		const bool want = (i < 10 && i != 1 && i != 3) || i > 20;

		ck_assert_msg(get_from(&direct, i) == want && get(i) == want, "%u", i);
	}
	/* with their own times of life */
	it.key = util_key(100);
	ck_assert_ok(cache_store_get(&direct, &it, 1, &clk.now, &e), e);
	ck_assert_int_eq(it.created_ms, UTIL_START);
	ck_assert_int_eq(it.ttl_ms, UTIL_TTL_MS);
	aqe_buf_done(&it.value);
}
END_TEST

START_TEST(return__clears)
{
	set(1);
	set(2);
	fake_store_fail(primary, AQE_E_SYS);
	set(3);
	ck_assert_ok(cache_store_clear(&s, &e), e);
	set(4);
	ck_assert(!get(1) && !get(3) && get(4));
	come_back();
	ck_assert(!get_from(&direct, 1) && !get_from(&direct, 2) && !get(3) &&
		  get_from(&direct, 4));
}
END_TEST

/* More deletions than can be remembered: then everything goes, none comes back. */
START_TEST(return__never_brings_deleted_entries_back)
{
	set(1);
	set(7);
	fake_store_fail(primary, AQE_E_SYS);
	for (unsigned i = 0; i < 70000; i++) {
		struct cache_item it = CACHE_ITEM_INIT;

		memcpy(it.key.b, &i, sizeof(i));
		ck_assert_ok(cache_store_del(&s, &it, 1, &e), e);
	}
	del(7);
	come_back();
	ck_assert(!get(7) && !get(1));
	ck_assert_uint_eq(fake_store_calls(primary, FAKE_CLEAR), 1);
}
END_TEST

/* The primary dies again while things are carried over: nothing is lost. */
START_TEST(return__may_fail)
{
	set(1);
	set(2);
	fake_store_fail(primary, AQE_E_SYS);
	del(1);
	set(3);
	fake_store_fail(primary, 0);
	fake_store_fail_one(primary, _i == 0 ? FAKE_SET : FAKE_DEL, AQE_E_TIMEOUT);
	for (int i = 0; i < 5; i++)
		util_clock_add(&clk, cache_fallback_tick(&s, &clk.now));
	ck_assert(degraded());
	ck_assert(get(3) && !get(1));
	come_back();
	ck_assert(get_from(&direct, 3) && get_from(&direct, 2) && !get_from(&direct, 1));
}
END_TEST

START_TEST(outage__keeps_times_of_life)
{
	set(1);
	fake_store_fail(primary, AQE_E_SYS);
	set(2);
	util_clock_add(&clk, UTIL_TTL_MS - 1);
	ck_assert(get(2));
	util_clock_add(&clk, 1);
	ck_assert(!get(2));
	come_back();
	ck_assert(!get(1) && !get(2));
}
END_TEST

/* A server that is full or read-only takes nothing, but is read. */
START_TEST(refusal__is_no_outage)
{
	struct cache_store_stats st;

	set(1);
	fake_store_fail_one(primary, FAKE_SET, AQE_E_REFUSED);
	set(2);
	ck_assert(!degraded());
	ck_assert(get(1) && get(2) && !get_from(&direct, 2));
	del(2);
	ck_assert(!get(2));
	cache_store_stats(&s, &st);
	ck_assert_uint_eq(st.outages, 0);
}
END_TEST

START_TEST(init__begins_down)
{
	struct cache_store p = CACHE_STORE_INIT, spare = CACHE_STORE_INIT, s2 = CACHE_STORE_INIT;
	const struct cache_memory_opts o = { .max_entries = 10, .max_bytes = 1 << 20 };
	struct fake_store *f = fake_store_new(&p);

	fake_store_fail(f, AQE_E_SYS);
	ck_assert_ok(cache_memory_new(&o, &spare, &e), e);
	ck_assert_ok(cache_fallback_new(&p, &spare, &s2, &e), e);
	ck_assert_ok(cache_store_init(&s2, &e), e);
	set_in(&s2, 1);
	fake_store_fail(f, 0);
	ck_assert_int_gt(cache_fallback_tick(&s2, &clk.now), 0);
	util_clock_add(&clk, CACHE_FALLBACK_FIRST_MS);
	ck_assert_int_eq(cache_fallback_tick(&s2, &clk.now), -1);
	ck_assert_uint_eq(fake_store_calls(f, FAKE_INIT), 2);
	ck_assert_uint_eq(fake_store_calls(f, FAKE_SET), 1);
	ck_assert(get_from(&s2, 1));
	cache_store_close(&s2);
}
END_TEST

START_TEST(errors_of_the_caller__pass)
{
	struct cache_item it = util_item(1, UTIL_DIM, UTIL_START, UTIL_TTL_MS);

	fake_store_fail_one(primary, FAKE_SET, AQE_E_LIMIT);
	ck_assert_fault(cache_store_set(&s, &it, 1, &clk.now, &e), AQE_E_LIMIT, e, "as told");
	ck_assert(!degraded());
	aqe_buf_done(&it.value);
}
END_TEST

/* ---- threads, while the primary comes and goes ---- */

static atomic_bool stop;

static void *use(void *self)
{
	unsigned id = (unsigned)(uintptr_t)self;
	const struct cache_now now = { UTIL_START, 1000000 };
	struct aqe_err mine = AQE_ERR_INIT;

	/* each thread has keys of its own: what it stored it finds, what it deleted it does not */
	for (unsigned i = 0; !atomic_load(&stop); i++) {
		const unsigned n = id * 1000 + i % 20;
		struct cache_item it = util_item(n, UTIL_DIM, UTIL_START, UTIL_TTL_MS);

		ck_assert_ok(cache_store_set(&s, &it, 1, &now, &mine), mine);
		ck_assert_ok(cache_store_get(&s, &it, 1, &now, &mine), mine);
		ck_assert(!it.found || util_is(&it, n));
		ck_assert_ok(cache_store_del(&s, &it, 1, &mine), mine);
		ck_assert_ok(cache_store_get(&s, &it, 1, &now, &mine), mine);
		ck_assert(!it.found);
		if (i % 3 == 0)
			ck_assert_ok(cache_store_clear(&s, &mine), mine);
		aqe_buf_done(&it.value);
	}
	return NULL;
}

START_TEST(threads__never_fail)
{
	struct timespec some = { 0, 3000000 };
	pthread_t t[4];

	for (uintptr_t i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, use, (void *)i), 0);
	for (int i = 0; i < 100; i++) {
		fake_store_fail(primary, i % 2 ? 0 : AQE_E_SYS);
		nanosleep(&some, NULL);
		for (int k = 0; k < 5; k++)
			if (cache_fallback_tick(&s, &clk.now) >= 0)
				util_clock_add(&clk, 100);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fallback");
	TCase *t = tcase_create("fallback");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, up__uses_the_primary);
	tcase_add_loop_test(t, outage__fails_no_call, 0, 30);
	tcase_add_test(t, outage__leaves_the_primary_alone);
	tcase_add_test(t, probes__back_off);
	tcase_add_test(t, return__carries_everything_over);
	tcase_add_test(t, return__clears);
	tcase_add_test(t, return__never_brings_deleted_entries_back);
	tcase_add_loop_test(t, return__may_fail, 0, 2);
	tcase_add_test(t, outage__keeps_times_of_life);
	tcase_add_test(t, refusal__is_no_outage);
	tcase_add_test(t, init__begins_down);
	tcase_add_test(t, errors_of_the_caller__pass);
	tcase_add_test(t, threads__never_fail);
	suite_add_tcase(suite, t);
	return unit_run(suite);
}
