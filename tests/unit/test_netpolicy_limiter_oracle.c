/* SPDX-License-Identifier: MIT */
/* The limiter against a brute-force oracle: 100,000 random traces on a fake clock, with changes of
 * limits, suspends, clocks set back, and restarts in the middle. The oracle keeps the whole history
 * and works every answer out from the beginning, in 128-bit integers. */
#include "netpolicy/limiter.h"

#include <stdio.h>

#include "shim/core/buf.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

#define TRACES 100000
#define STEPS  40
#define EVENTS (STEPS * 4)
#define MS     ((int64_t)1000000)
#define MINUTE ((int64_t)60000000000)
#define HOUR   (60 * MINUTE)
#define ONE    ((wide)MINUTE) /* a token */

__extension__ typedef __int128 wide;

/* ---- the oracle ---- */

enum event { ADMIT, RECONF };

struct oracle {
	struct {
		enum event kind;
		int64_t at;
		struct netpol_rate rate; /* from here on */
	} log[EVENTS];
	size_t n;
	int64_t last; /* its clock never goes back */
	struct netpol_rate first, rate;
};

static wide smaller(wide a, wide b)
{
	return a < b ? a : b;
}

/* Tokens at `now`, times ONE. */
static wide tokens_at(const struct oracle *o, int64_t now)
{
	struct netpol_rate r = o->first;
	wide have = r.burst * ONE;
	int64_t t = o->n ? o->log[0].at : now;

	for (size_t i = 0; i <= o->n; i++) {
		const int64_t to = i < o->n ? o->log[i].at : now;

		have = smaller(r.burst * ONE, have + (wide)(to - t) * r.per_minute);
		t = to;
		if (i == o->n)
			break;
		if (o->log[i].kind == ADMIT) {
			have -= ONE;
			continue;
		}
		r = o->log[i].rate;
		have = smaller(r.burst * ONE, have);
	}
	return have;
}

static uint32_t admitted_in(const struct oracle *o, int64_t now, int64_t window)
{
	uint32_t n = 0;

	for (size_t i = 0; i < o->n; i++)
		n += o->log[i].kind == ADMIT && now - o->log[i].at < window;
	return n;
}

static bool oracle_admits(const struct oracle *o, int64_t now)
{
	return tokens_at(o, now) >= ONE && admitted_in(o, now, MINUTE) < o->rate.per_minute &&
	       admitted_in(o, now, HOUR) < o->rate.per_hour;
}

static void oracle_log(struct oracle *o, enum event kind, int64_t at)
{
	if (o->n == EVENTS)
		ck_abort_msg("too many events");
	o->log[o->n].kind = kind;
	o->log[o->n].at = at;
	o->log[o->n++].rate = o->rate;
}

/* ---- random traces ---- */

static uint64_t seed;

static uint32_t dice(uint32_t sides)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33) % sides;
}

static struct netpol_rate random_rate(void)
{
	return (struct netpol_rate){ 1 + dice(20), 1 + dice(40), 1 + dice(12) };
}

/* Mostly small steps, some over a window, some odd nanoseconds. */
static int64_t random_step(void)
{
	switch (dice(8)) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
		return (int64_t)dice(60000) * MS + dice(1000);
	case 3:
		return (int64_t)dice(600) * 1000 * MS;
	case 4:
		return HOUR - dice(3);
	case 5:
		return MINUTE - dice(3);
	default:
		return (int64_t)dice(5000) * MS;
	}
}

struct trace {
	struct oracle o;
	struct netpol_limiter *l;
	int64_t now, shift; /* of the oracle's clock; the limiter's is `shift` behind */
	unsigned admitted, refused;
};

static int64_t own_time(const struct trace *t)
{
	return t->now - t->shift;
}

static void differ(const struct trace *t, const char *what)
{
	ck_abort_msg("seed %llu, %zu events, %u/%u/%u: %s", (unsigned long long)seed, t->o.n,
		     t->o.rate.per_minute, t->o.rate.per_hour, t->o.rate.burst, what);
}

/* The wait is exact: not a millisecond too long, and enough. */
static void check_wait(const struct trace *t, uint64_t retry_ms)
{
	if (!retry_ms || !oracle_admits(&t->o, t->now + (int64_t)retry_ms * MS))
		differ(t, "refused after the wait");
	if (oracle_admits(&t->o, t->now + (int64_t)(retry_ms - 1) * MS))
		differ(t, "the wait is too long");
}

static void ask(struct trace *t)
{
	const bool want = oracle_admits(&t->o, t->now);
	struct netpol_limiter_status s;
	struct netpol_limit peek, got;

	netpol_limiter_peek(t->l, own_time(t), &peek);
	netpol_limiter_status(t->l, own_time(t), &s);
	netpol_limiter_consume(t->l, own_time(t), &got);
	if (got.allowed != want || peek.allowed != want || s.limited == want)
		differ(t, want ? "refused" : "admitted");
	if (s.current != admitted_in(&t->o, t->now, MINUTE) ||
	    s.in_hour != admitted_in(&t->o, t->now, HOUR))
		differ(t, "counts differ");
	t->admitted += got.allowed;
	t->refused += !got.allowed;
	if (got.allowed)
		oracle_log(&t->o, ADMIT, t->now);
	else
		check_wait(t, got.retry_ms);
}

static void reload(struct trace *t)
{
	t->o.rate = random_rate();
	oracle_log(&t->o, RECONF, t->now);
	ck_assert_int_eq(netpol_limiter_reconf(t->l, own_time(t), &t->o.rate, NULL), 0);
}

/* Another process, perhaps after a reboot with a clock that begins anew; some time is lost. */
static void restart(struct trace *t)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 16);
	struct netpol_when saved = { "00000000-0000-0000-0000-000000000000", own_time(t), t->now };
	struct netpol_when later = saved;
	const int64_t gone = random_step();

	ck_assert_int_eq(netpol_limiter_save(t->l, &saved, &b, NULL), 0);
	netpol_limiter_free(t->l);
	t->now += gone;
	t->o.last = t->now;
	if (dice(2)) {
		later.boot_id[0] = '1';
		t->shift = t->now - (int64_t)dice(100) * MS;
	}
	later.boottime_ns = own_time(t);
	later.wall_ns = t->now;
	ck_assert_int_eq(netpol_limiter_new(&t->o.rate, &t->l, NULL), 0);
	ck_assert_int_eq(netpol_limiter_restore(t->l, b.p, b.len, &later, NULL), 0);
}

/* A clock set back: what is asked meanwhile counts as asked now. */
static void ask_in_the_past(struct trace *t)
{
	const int64_t shift = t->shift;

	t->shift += (int64_t)dice(100000) * MS;
	ask(t);
	t->shift = shift;
}

static void step(struct trace *t)
{
	const uint32_t kind = dice(40);

	if (kind == 0) {
		reload(t);
	} else if (kind == 1) {
		restart(t);
	} else if (kind == 2) {
		ask_in_the_past(t);
	} else if (kind < 10) {
		for (unsigned i = 0; i < 3; i++)
			ask(t);
	} else {
		t->now += random_step();
		ask(t);
	}
}

/* No window of any kind above its limit, wherever it begins. Only for traces without changes. (Not
 * by ck_assert: check writes to a pipe for each.) */
static void check_windows(const struct trace *t)
{
	const struct oracle *o = &t->o;

	for (size_t i = 0; i < o->n; i++) {
		if (o->log[i].kind == RECONF)
			return;
	}
	for (size_t i = 0; i < o->n; i++) {
		for (size_t k = i; k < o->n; k++) {
			const int64_t span = o->log[k].at - o->log[i].at;

			if ((span < MINUTE && k - i + 1 > o->rate.per_minute) ||
			    (span < HOUR && k - i + 1 > o->rate.per_hour))
				differ(t, "a window is over its limit");
		}
	}
}

/* A share of the traces in each test, so that check can run them side by side. */
#define SHARES 4

START_TEST(limiter__is_the_oracle)
{
	unsigned admitted = 0, refused = 0;

	for (unsigned i = 0; i < TRACES / SHARES; i++) {
		static struct trace t;

		memset(&t, 0, sizeof(t));
		seed = (uint64_t)i * SHARES + (unsigned)_i;
		(void)dice(2);
		t.o.first = t.o.rate = random_rate();
		t.now = (int64_t)dice(1000) * MS;
		ck_assert_int_eq(netpol_limiter_new(&t.o.rate, &t.l, NULL), 0);
		ask(&t); /* from here on both have seen the same last time */
		for (unsigned k = 1; k < STEPS; k++)
			step(&t);
		check_windows(&t);
		netpol_limiter_free(t.l);
		admitted += t.admitted;
		refused += t.refused;
	}
	/* the traces are no use when nearly all is admitted, or nearly nothing */
	ck_assert_uint_gt(admitted, refused / 10);
	ck_assert_uint_gt(refused, admitted / 10);
}
END_TEST

/* Saturation: a client that asks all the time gets all that the limits allow: at least 99 % of
 * burst + rate, and never more in any window. */
START_TEST(limiter__under_saturation_gives_what_is_due)
{
	for (unsigned round = 0; round < 200; round++) {
		struct netpol_rate r = { 30 + dice(300), 100000, 1 + dice(20) };
		struct netpol_limiter *l = NULL;
		struct netpol_limit got;
		const int64_t span = 10 * MINUTE;
		uint64_t n = 0, due;

		seed = round;
		ck_assert_int_eq(netpol_limiter_new(&r, &l, NULL), 0);
		for (int64_t now = 0; now < span;) {
			netpol_limiter_consume(l, now, &got);
			n += got.allowed;
			now += got.allowed ? MS : (int64_t)got.retry_ms * MS;
		}
		/* the burst is not extra: the minute's limit holds from the start */
		due = (uint64_t)r.per_minute * 10;
		ck_assert_uint_le(n, due);
		ck_assert_uint_ge(n * 100, due * 99);
		netpol_limiter_free(l);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netpolicy_limiter_oracle");
	TCase *t = tcase_create("oracle");

	tcase_set_timeout(t, 300);
	tcase_add_loop_test(t, limiter__is_the_oracle, 0, SHARES);
	tcase_add_test(t, limiter__under_saturation_gives_what_is_due);
	suite_add_tcase(s, t);
	return unit_run(s);
}
