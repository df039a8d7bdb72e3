/* SPDX-License-Identifier: MIT */
/* One key's limiter. RL-nn are the rows of the original's own tests, where they hold. */
#include "netpolicy/limiter.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "netpolicy/limiters.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

#define S  ((int64_t)1000000000)
#define MS ((int64_t)1000000)

static struct netpol_limiter *limiter;
static struct aqe_err e;

static void make(uint32_t per_minute, uint32_t per_hour, uint32_t burst)
{
	const struct netpol_rate rate = { per_minute, per_hour, burst };

	netpol_limiter_free(limiter);
	limiter = NULL;
	ck_assert_ok(netpol_limiter_new(&rate, &limiter, &e), e);
}

static void setup(void)
{
	e = (struct aqe_err)AQE_ERR_INIT;
	make(60, 1000, 10);
}

static void teardown(void)
{
	netpol_limiter_free(limiter);
	limiter = NULL;
}

/* The wait in ms, -1 when admitted. */
static int64_t consume(int64_t now)
{
	struct netpol_limit r;

	netpol_limiter_consume(limiter, now, &r);
	return r.allowed ? -1 : (int64_t)r.retry_ms;
}

static int64_t peek(int64_t now)
{
	struct netpol_limit r;

	netpol_limiter_peek(limiter, now, &r);
	return r.allowed ? -1 : (int64_t)r.retry_ms;
}

static struct netpol_limiter_status status(int64_t now)
{
	struct netpol_limiter_status s;

	netpol_limiter_status(limiter, now, &s);
	return s;
}

static unsigned admit_all(int64_t now)
{
	unsigned n = 0;

	while (consume(now) < 0)
		n++;
	return n;
}

/* RL-02, RL-03, RL-17 */
START_TEST(fresh__has_its_burst)
{
	ck_assert_uint_eq(status(0).remaining, 10);
	ck_assert(!status(0).limited);
	ck_assert_int_eq(peek(0), -1);
	ck_assert_uint_eq(status(0).remaining, 10);
	ck_assert_uint_eq(status(0).current, 0);
	ck_assert_uint_eq(status(0).reset_in_ms, 0);
}
END_TEST

/* RL-05, RL-06, RL-11, RL-12 */
START_TEST(status__counts)
{
	make(10, 100, 5);
	ck_assert_int_eq(consume(S), -1);
	ck_assert_uint_eq(status(S).current, 1);
	ck_assert_int_eq(consume(2 * S), -1);
	ck_assert_uint_eq(status(2 * S).current, 2);
	ck_assert_uint_eq(status(2 * S).in_hour, 2);
	ck_assert_uint_eq(status(2 * S).remaining, 3);
	ck_assert_uint_eq(status(2 * S).reset_in_ms, 59000);
	ck_assert_uint_eq(status(61 * S).current, 1);
	ck_assert_uint_eq(status(62 * S).current, 0);
	ck_assert_uint_eq(status(62 * S).in_hour, 2);
}
END_TEST

/* RL-07 and RL-15, where the original's check says not limited: ours tells the truth */
START_TEST(burst__is_a_limit_for_looks_too)
{
	make(5, 100, 3);
	ck_assert_uint_eq(admit_all(0), 3);
	ck_assert_int_eq(consume(0), 12000);
	ck_assert_int_eq(peek(0), 12000);
	ck_assert(status(0).limited);
	ck_assert_int_eq(peek(12 * S), -1);
}
END_TEST

/* RL-08, RL-16, sliding instead of fixed */
START_TEST(minute__slides)
{
	make(3, 100, 10);
	ck_assert_int_eq(consume(10 * S), -1);
	ck_assert_int_eq(consume(20 * S), -1);
	ck_assert_int_eq(consume(30 * S), -1);
	ck_assert_int_eq(consume(31 * S), 39000);
	ck_assert_int_eq(consume(70 * S), -1);
	ck_assert_int_eq(consume(70 * S), 10000);
	ck_assert_uint_eq(status(91 * S).current, 1);
}
END_TEST

/* RL-09 */
START_TEST(reset__is_a_fresh_bucket)
{
	make(5, 5, 1);
	ck_assert_int_eq(consume(0), -1);
	netpol_limiter_reset(limiter);
	ck_assert_uint_eq(status(0).current, 0);
	ck_assert_int_eq(consume(0), -1);
}
END_TEST

START_TEST(refusals__cost_nothing)
{
	make(60, 1000, 1);
	ck_assert_int_eq(consume(0), -1);
	for (int64_t t = 0; t < 1000; t++)
		ck_assert_int_eq(consume(t * MS), 1000 - t);
	ck_assert_int_eq(consume(S), -1);
}
END_TEST

/* 60 s / 7 is no whole number of anything: after 7 tokens exactly 60 s went by. */
START_TEST(fractions__are_exact)
{
	int64_t now = 0;

	make(7, 100000, 1);
	for (int i = 0; i < 700; i++) {
		const int64_t wait = i ? consume(now) : -1;

		if (wait > 0)
			now += wait * MS;
		ck_assert_int_eq(i ? consume(now) : consume(0), -1);
		ck_assert_int_le(now, (int64_t)i * 60 * S / 7 + i * MS);
	}
	make(7, 100000, 7);
	ck_assert_uint_eq(admit_all(0), 7);
	ck_assert_int_eq(consume(60 * S - 1), 1);
	ck_assert_uint_eq(admit_all(60 * S), 7);
}
END_TEST

static const struct netpol_rate bad_rates[] = {
	{ 0, 1, 1 }, { 1, 0, 1 }, { 1, 1, 0 }, { NETPOL_RATE_MAX + 1, 1, 1 }, { 1, 1, UINT32_MAX },
};

START_TEST(new__refuses_a_rate_of_nothing)
{
	struct netpol_limiter *l = NULL;

	ck_assert(!netpol_rate_ok(&bad_rates[_i]));
	ck_assert_fault(netpol_limiter_new(&bad_rates[_i], &l, &e), AQE_E_MALFORMED, e,
			"each must be 1 to");
	ck_assert_ptr_null(l);
	e = (struct aqe_err)AQE_ERR_INIT;
	ck_assert_fault(netpol_limiter_reconf(limiter, 0, &bad_rates[_i], &e), AQE_E_MALFORMED, e,
			"each must be");
	ck_assert_uint_eq(status(0).remaining, 10);
}
END_TEST

START_TEST(limits__at_their_largest_do_not_overflow)
{
	make(NETPOL_RATE_MAX, NETPOL_RATE_MAX, NETPOL_RATE_MAX);
	ck_assert_uint_eq(admit_all(INT64_MAX / 2), NETPOL_RATE_MAX);
	ck_assert_int_eq(consume(INT64_MAX / 2), 3600000);
	ck_assert_int_eq(consume(INT64_MAX), -1);
}
END_TEST

/* ---- clocks ---- */

START_TEST(clock__that_goes_back_stands_still)
{
	make(60, 1000, 2);
	ck_assert_uint_eq(admit_all(1000 * S), 2);
	ck_assert_int_eq(consume(0), 1000);
	ck_assert_int_eq(consume(-1000 * S), 1000);
	ck_assert_int_eq(peek(999 * S), 1000);
	ck_assert_int_eq(consume(1001 * S), -1);
	ck_assert_uint_eq(status(0).current, 3);
}
END_TEST

/* A suspend, seen by CLOCK_BOOTTIME: time went by, and no more than a full bucket comes of it. */
START_TEST(clock__that_jumps_ahead_gives_one_burst)
{
	ck_assert_uint_eq(admit_all(0), 10);
	ck_assert_uint_eq(admit_all(100000 * S), 10);
	ck_assert_uint_eq(admit_all(100000 * S), 0);
}
END_TEST

/* ---- new limits ---- */

START_TEST(reconf__raising_does_not_refill)
{
	const struct netpol_rate more = { 60, 1000, 10 };

	make(10, 100, 2);
	ck_assert_uint_eq(admit_all(0), 2);
	ck_assert_ok(netpol_limiter_reconf(limiter, 0, &more, &e), e);
	ck_assert_int_eq(consume(0), 1000);
}
END_TEST

START_TEST(reconf__lowering_cuts_tokens_and_keeps_history)
{
	const struct netpol_rate less = { 5, 20, 3 }, back = { 60, 1000, 10 };

	ck_assert_int_eq(consume(0), -1);
	ck_assert_ok(netpol_limiter_reconf(limiter, 0, &less, &e), e);
	ck_assert_uint_eq(status(0).remaining, 3);
	ck_assert_uint_eq(status(0).current, 1);
	ck_assert_uint_eq(admit_all(0), 3);
	ck_assert_ok(netpol_limiter_reconf(limiter, 0, &back, &e), e);
	ck_assert_uint_eq(admit_all(0), 0);
	ck_assert_uint_eq(status(0).in_hour, 4);
}
END_TEST

/* Lowered and raised again, the hour remembers what it saw under the old limit. */
START_TEST(reconf__there_and_back_forgets_nothing)
{
	const struct netpol_rate less = { 60, 10, 60 }, more = { 60, 100, 60 };
	unsigned n = 0;

	make(60, 100, 60);
	for (int64_t t = 0; t < 200; t++)
		n += consume(t * S) < 0;
	ck_assert_uint_eq(n, 100);
	ck_assert_ok(netpol_limiter_reconf(limiter, 200 * S, &less, &e), e);
	ck_assert_ok(netpol_limiter_reconf(limiter, 200 * S, &more, &e), e);
	ck_assert_uint_eq(status(200 * S).in_hour, 100);
	ck_assert_uint_eq(admit_all(300 * S), 0);
}
END_TEST

/* ---- state ---- */

static const char boot_a[] = "11111111-2222-3333-4444-555555555555";
static const char boot_b[] = "99999999-2222-3333-4444-555555555555";

static struct netpol_when when(const char *boot, int64_t boottime, int64_t wall)
{
	struct netpol_when w = { "", boottime, wall };

	memcpy(w.boot_id, boot, sizeof(w.boot_id));
	return w;
}

static void save_to(struct aqe_buf *b, const char *boot, int64_t boottime, int64_t wall)
{
	const struct netpol_when w = when(boot, boottime, wall);

	ck_assert_ok(netpol_limiter_save(limiter, &w, b, &e), e);
}

static int restore_from(const struct aqe_buf *b, const char *boot, int64_t boottime, int64_t wall)
{
	const struct netpol_when w = when(boot, boottime, wall);

	return netpol_limiter_restore(limiter, b->p, b->len, &w, &e);
}

static const struct {
	const char *boot;
	int64_t boottime, wall; /* at the restart; saved at 500 s, 10,000 s */
	unsigned tokens;
} restarts[] = {
	{ boot_a, 500 * S, 10000 * S, 0 },
	{ boot_a, 503 * S, 10000 * S, 3 },
	{ boot_a, 503 * S, 99999 * S, 3 }, /* the wall clock does not count within a boot */
	{ boot_a, 400 * S, 99999 * S, 0 }, /* boottime back: nothing went by */
	{ boot_b, 5 * S, 10004 * S, 4 },
	{ boot_b, 5 * S, 9000 * S, 0 },   /* the wall clock was set back */
	{ boot_b, 5 * S, 99999 * S, 10 }, /* days later: one burst */
	{ boot_b, 5 * S, INT64_MAX, 10 },
	{ boot_b, 5 * S, INT64_MIN, 0 },
};

START_TEST(restart__never_brings_a_full_bucket_by_itself)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);

	ck_assert_uint_eq(admit_all(500 * S), 10);
	save_to(&b, boot_a, 500 * S, 10000 * S);
	make(60, 1000, 10);
	ck_assert_ok(restore_from(&b, restarts[_i].boot, restarts[_i].boottime, restarts[_i].wall),
		     e);
	ck_assert_uint_eq(admit_all(restarts[_i].boottime), restarts[_i].tokens);
}
END_TEST

START_TEST(restart__keeps_both_windows)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);

	make(3, 5, 10);
	ck_assert_uint_eq(admit_all(1000 * S), 3);
	ck_assert_uint_eq(admit_all(1070 * S), 2);
	save_to(&b, boot_a, 1080 * S, 0);
	make(3, 5, 10);
	ck_assert_ok(restore_from(&b, boot_b, 7 * S, 10 * S), e);
	ck_assert_uint_eq(status(7 * S).current, 2);
	ck_assert_uint_eq(status(7 * S).in_hour, 5);
	/* 90 s went by since the first three: 3510 s are left of their hour */
	ck_assert_int_eq(consume(7 * S), 3510000);
	ck_assert_uint_eq(admit_all(7 * S + 3510 * S), 3);
}
END_TEST

START_TEST(restart__under_other_limits)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);

	ck_assert_uint_eq(admit_all(0), 10);
	save_to(&b, boot_a, 0, 0);
	make(60, 1000, 100); /* raised meanwhile: no refill */
	ck_assert_ok(restore_from(&b, boot_a, 0, 0), e);
	ck_assert_uint_eq(admit_all(0), 0);
	make(60, 5, 100); /* lowered below what the hour saw */
	ck_assert_ok(restore_from(&b, boot_a, 0, 0), e);
	ck_assert_uint_eq(status(0).in_hour, 10);
	ck_assert_uint_eq(admit_all(3599 * S), 0);
}
END_TEST

/* Any byte changed, or cut anywhere: refused, and the bucket is empty, not full. */
START_TEST(state__damaged_anywhere_leaves_an_empty_bucket)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);

	ck_assert_int_eq(consume(0), -1);
	save_to(&b, boot_a, 10 * S, 0);
	for (size_t i = 0; i < b.len; i++) {
		struct aqe_buf cut = b;

		b.p[i] ^= 1;
		make(60, 1000, 10);
		ck_assert_fault(restore_from(&b, boot_a, 10 * S, 0), AQE_E_MALFORMED, e,
				"state of a rate limiter");
		ck_assert_int_gt(consume(10 * S), 0);
		b.p[i] ^= 1;
		cut.len = i;
		make(60, 1000, 10);
		ck_assert_int_eq(restore_from(&cut, boot_a, 10 * S, 0), AQE_E_MALFORMED);
		ck_assert_int_gt(consume(10 * S), 0);
	}
	make(60, 1000, 10);
	ck_assert_ok(restore_from(&b, boot_a, 10 * S, 0), e);
	ck_assert_int_eq(consume(10 * S), -1);
}
END_TEST

START_TEST(file__comes_back_and_absent_is_no_fault)
{
	char dir[] = "/tmp/aqe-test-XXXXXX";
	AQE_AUTO_FD int fd = -1;
	struct netpol_when now;
	struct stat st;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_ok(netpol_when_now(&now, &e), e);
	ck_assert_ok(netpol_limiter_load_file(limiter, fd, "state", &now, &e), e);
	ck_assert_uint_eq(admit_all(now.boottime_ns), 10);
	ck_assert_ok(netpol_limiter_save_file(limiter, fd, "state", &now, &e), e);
	ck_assert_int_eq(fstatat(fd, "state", &st, 0), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	make(60, 1000, 10);
	ck_assert_ok(netpol_limiter_load_file(limiter, fd, "state", &now, &e), e);
	ck_assert_uint_eq(admit_all(now.boottime_ns), 0);
	/* writable by others: not trusted, and not full */
	ck_assert_int_eq(fchmodat(fd, "state", 0666, 0), 0);
	make(60, 1000, 10);
	ck_assert_int_eq(netpol_limiter_load_file(limiter, fd, "state", &now, &e), AQE_E_UNTRUSTED);
	ck_assert_uint_eq(admit_all(now.boottime_ns), 0);
	ck_assert_int_eq(unlinkat(fd, "state", 0), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(retry_after__is_at_least_a_second)
{
	ck_assert_uint_eq(netpol_retry_after_s(0), 1);
	ck_assert_uint_eq(netpol_retry_after_s(1), 1);
	ck_assert_uint_eq(netpol_retry_after_s(1000), 1);
	ck_assert_uint_eq(netpol_retry_after_s(1001), 2);
}
END_TEST

/* ---- many keys ---- */

static const struct netpol_rate small = { 60, 100, 2 };
static struct netpol_limiters *table;

static struct netpol_limiter *of(const char *key, int64_t now)
{
	struct netpol_limiter *l = NULL;

	ck_assert_ok(netpol_limiters_get(table, key, &small, now, &l, &e), e);
	return l;
}

static unsigned spend(const char *key, int64_t now)
{
	struct netpol_limit r;
	unsigned n = 0;

	for (netpol_limiter_consume(of(key, now), now, &r); r.allowed;
	     netpol_limiter_consume(of(key, now), now, &r))
		n++;
	return n;
}

/* RL-04, RL-10, RL-13, RL-14 */
START_TEST(table__keeps_keys_apart)
{
	ck_assert_ok(netpol_limiters_new(3, &table, &e), e);
	ck_assert_uint_eq(netpol_limiters_count(table), 0);
	ck_assert_uint_eq(spend("a", 0), 2);
	ck_assert_uint_eq(spend("b", 0), 2);
	ck_assert_uint_eq(spend("a", 0), 0);
	netpol_limiter_reset(netpol_limiters_find(table, "a"));
	ck_assert_uint_eq(spend("a", 0), 2);
	ck_assert_uint_eq(spend("b", 0), 0);
	ck_assert_uint_eq(netpol_limiters_count(table), 2);
	ck_assert_ptr_null(netpol_limiters_find(table, "c"));
	netpol_limiters_free(table);
}
END_TEST

/* Fresh names do not bring fresh buckets without end, and nobody loses a history. */
START_TEST(table__full_gives_up_idle_keys_only)
{
	struct netpol_limiter *l = NULL;

	ck_assert_ok(netpol_limiters_new(3, &table, &e), e);
	ck_assert_uint_eq(spend("a", 0), 2);
	ck_assert_uint_eq(spend("b", 0), 2);
	(void)of("idle", 0);
	/* the one handed out last is still in use: two can be held at a time */
	ck_assert_int_eq(netpol_limiters_get(table, "c", &small, 0, &l, &e), AQE_E_LIMIT);
	(void)of("b", 0);
	ck_assert_uint_eq(spend("c", 0), 2);
	ck_assert_ptr_null(netpol_limiters_find(table, "idle"));
	ck_assert_fault(netpol_limiters_get(table, "d", &small, 0, &l, &e), AQE_E_LIMIT, e,
			"more than 3 agents");
	ck_assert_uint_eq(spend("b", 0), 0);
	ck_assert_uint_eq(spend("d", 3601 * S), 2); /* an hour later */
	netpol_limiters_free(table);
}
END_TEST

START_TEST(table__removal_leaves_all_others_findable)
{
	char key[16];

	ck_assert_ok(netpol_limiters_new(200, &table, &e), e);
	for (unsigned i = 0; i < 2000; i++) {
		(void)snprintf(key, sizeof(key), "k%u", i);
		ck_assert_ptr_nonnull(of(key, 0)); /* idle ones give way */
		ck_assert_ptr_nonnull(netpol_limiters_find(table, key));
	}
	ck_assert_uint_eq(netpol_limiters_count(table), 200);
	netpol_limiters_free(table);
}
END_TEST

START_TEST(table__comes_back_from_its_file)
{
	char dir[] = "/tmp/aqe-test-XXXXXX";
	AQE_AUTO_FD int fd = -1;
	struct netpol_when now;
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);

	ck_assert_ptr_nonnull(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_ok(netpol_when_now(&now, &e), e);
	ck_assert_ok(netpol_limiters_new(10, &table, &e), e);
	ck_assert_uint_eq(spend("a", now.boottime_ns), 2);
	(void)of("idle", now.boottime_ns);
	ck_assert_ok(netpol_limiters_save(table, fd, "keys", &now, &e), e);
	netpol_limiters_free(table);

	ck_assert_ok(netpol_limiters_new(10, &table, &e), e);
	ck_assert_ok(netpol_limiters_load(table, fd, "none", &now, &e), e);
	ck_assert_ok(netpol_limiters_load(table, fd, "keys", &now, &e), e);
	ck_assert_uint_eq(netpol_limiters_count(table), 1);
	ck_assert_uint_eq(spend("a", now.boottime_ns), 0);
	netpol_limiters_free(table);

	/* damaged: whoever comes later begins empty for an hour */
	ck_assert_ok(aqe_fs_read_beneath(fd, "keys", AQE_FS_TRUSTED, &b, &e), e);
	b.p[b.len - 1] ^= 1;
	ck_assert_ok(aqe_fs_write_file(fd, "keys", 0600, b.p, b.len, &e), e);
	ck_assert_ok(netpol_limiters_new(10, &table, &e), e);
	ck_assert_fault(netpol_limiters_load(table, fd, "keys", &now, &e), AQE_E_MALFORMED, e,
			"states of rate limiters 'keys'");
	ck_assert_uint_eq(spend("a", now.boottime_ns), 0);
	ck_assert_uint_eq(spend("new", now.boottime_ns), 0);
	ck_assert_uint_eq(spend("later", now.boottime_ns + 3601 * S), 2);
	netpol_limiters_free(table);
	ck_assert_int_eq(unlinkat(fd, "keys", 0), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netpolicy_limiter");
	TCase *t = tcase_create("limiter");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, fresh__has_its_burst);
	tcase_add_test(t, status__counts);
	tcase_add_test(t, burst__is_a_limit_for_looks_too);
	tcase_add_test(t, minute__slides);
	tcase_add_test(t, reset__is_a_fresh_bucket);
	tcase_add_test(t, refusals__cost_nothing);
	tcase_add_test(t, fractions__are_exact);
	tcase_add_loop_test(t, new__refuses_a_rate_of_nothing, 0, (int)AQE_COUNT(bad_rates));
	tcase_add_test(t, limits__at_their_largest_do_not_overflow);
	tcase_add_test(t, clock__that_goes_back_stands_still);
	tcase_add_test(t, clock__that_jumps_ahead_gives_one_burst);
	tcase_add_test(t, reconf__raising_does_not_refill);
	tcase_add_test(t, reconf__lowering_cuts_tokens_and_keeps_history);
	tcase_add_test(t, reconf__there_and_back_forgets_nothing);
	tcase_add_loop_test(t, restart__never_brings_a_full_bucket_by_itself, 0,
			    (int)AQE_COUNT(restarts));
	tcase_add_test(t, restart__keeps_both_windows);
	tcase_add_test(t, restart__under_other_limits);
	tcase_add_test(t, state__damaged_anywhere_leaves_an_empty_bucket);
	tcase_add_test(t, file__comes_back_and_absent_is_no_fault);
	tcase_add_test(t, retry_after__is_at_least_a_second);
	tcase_add_test(t, table__keeps_keys_apart);
	tcase_add_test(t, table__full_gives_up_idle_keys_only);
	tcase_add_test(t, table__removal_leaves_all_others_findable);
	tcase_add_test(t, table__comes_back_from_its_file);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
