/* SPDX-License-Identifier: MIT */
/* What was spent, from one worker to the next: the type's limiter and each route's. */
#include "netpolicy/egress/rates.h"

#include <sys/mman.h>

#include "netpolicy/egress/state.h"
#include "shim/core/text.h"
#include "tests/unit/fs_fixture.h"

#define S     ((int64_t)1000000000)
#define BURST 4

static const struct netpol_rate RATE = { 60, 100, BURST };
static struct aqe_err err = AQE_ERR_INIT;
static struct netpol_shared *shared;
static struct netpol_when now;

/* One worker's limiters. */
struct worker {
	struct netpol_gate list[NETPOL_RATES_GATES];
	struct netpol_gates gates;
	struct netpol_rates rates;
};

static void begin(void)
{
	setup();
	now = (struct netpol_when){ "0f0f0f0f-1111-2222-3333-444444444444", 1000 * S, 5000 * S };
	ck_assert_ok(netpol_state_map(-1, "", &shared, &err), err);
}

static void end(void)
{
	ck_assert_int_eq(munmap(shared, sizeof(*shared)), 0);
	teardown();
}

/* A worker with routes of these names, one letter each. */
static void make(struct worker *w, const char *letters, const struct netpol_rate *rate)
{
	memset(w, 0, sizeof(*w));
	w->gates.list = w->list;
	w->rates.gates = &w->gates;
	ck_assert_ok(netpol_limiter_new(rate, &w->rates.own, &err), err);
	for (; *letters; letters++) {
		struct netpol_gate *g = &w->list[w->gates.n++];

		g->name[0] = *letters;
		ck_assert_ok(netpol_limiter_new(rate, &g->limiter, &err), err);
	}
}

static void drop(struct worker *w)
{
	netpol_limiter_free(w->rates.own);
	for (size_t i = 0; i < w->gates.n; i++)
		netpol_limiter_free(w->list[i].limiter);
}

static struct netpol_limiter *of(const struct worker *w, unsigned which)
{
	return which == NETPOL_RATES_OWN ? w->rates.own : w->list[which - 1].limiter;
}

/* As the worker does it. */
static void spend(struct worker *w, unsigned which, unsigned n)
{
	struct netpol_limit l;

	while (n--) {
		netpol_limiter_consume(of(w, which), now.boottime_ns, &l);
		ck_assert(l.allowed);
		if (!netpol_rates_spent(shared, which, now.boottime_ns))
			ck_assert_uint_gt(netpol_rates_share(shared, &w->rates, &now), 0);
	}
}

static struct netpol_limiter_status status(const struct worker *w, unsigned which)
{
	struct netpol_limiter_status s;

	netpol_limiter_status(of(w, which), now.boottime_ns, &s);
	return s;
}
#define left(w, which)    status(w, which).remaining
#define in_hour(w, which) status(w, which).in_hour

/* The worker dies as it is, and another one starts. */
static void again(struct worker *w, const char *letters)
{
	drop(w);
	make(w, letters, &RATE);
	ck_assert(netpol_rates_restore(shared, &w->rates, &now));
	(void)netpol_rates_share(shared, &w->rates, &now);
}

START_TEST(restore__nothing_was_shared)
{
	static struct worker w;

	make(&w, "a", &RATE);
	ck_assert(!netpol_rates_restore(shared, &w.rates, &now));
	ck_assert_uint_eq(left(&w, 0), BURST);
	ck_assert_uint_eq(left(&w, 1), BURST);
	drop(&w);
}
END_TEST

START_TEST(restore__each_route_has_what_it_had)
{
	static struct worker w;

	make(&w, "abc", &RATE);
	spend(&w, NETPOL_RATES_OWN, 1);
	spend(&w, NETPOL_RATES_GATE(0), BURST);
	spend(&w, NETPOL_RATES_GATE(2), 2);
	for (int i = 0; i < 3; i++) { /* three crashes make no difference */
		again(&w, "abc");
		ck_assert_uint_eq(left(&w, 0), BURST - 1);
		ck_assert_uint_eq(left(&w, 1), 0);
		ck_assert_uint_eq(left(&w, 2), BURST);
		ck_assert_uint_eq(left(&w, 3), BURST - 2);
	}
	now.boottime_ns += 60 * S; /* full again, but the hour counts */
	again(&w, "abc");
	ck_assert_uint_eq(left(&w, 1), BURST);
	ck_assert_uint_eq(in_hour(&w, 1), BURST);
	ck_assert_uint_eq(in_hour(&w, 2), 0);
	drop(&w);
}
END_TEST

/* More than a burst behind the last states, spread over time: none is forgotten. */
START_TEST(restore__admissions_behind_the_states_count_when_they_were)
{
	static struct worker w;

	make(&w, "a", &RATE);
	spend(&w, 1, 1);
	for (int i = 0; i < 20; i++) {
		now.boottime_ns += S; /* a token's worth */
		spend(&w, 1, 1);
	}
	again(&w, "a");
	ck_assert_uint_eq(in_hour(&w, 1), 21);
	ck_assert_uint_eq(left(&w, 1), BURST - 1);
	drop(&w);
}
END_TEST

START_TEST(restore__routes_by_name_when_the_policy_is_another)
{
	static struct worker w;

	make(&w, "abc", &RATE);
	(void)netpol_rates_share(shared, &w.rates, &now);
	spend(&w, NETPOL_RATES_GATE(0), 1);
	spend(&w, NETPOL_RATES_GATE(1), 2);
	spend(&w, NETPOL_RATES_GATE(2), 3);
	again(&w, "cxa"); /* b is gone, x is new */
	ck_assert_uint_eq(left(&w, 0), BURST);
	ck_assert_uint_eq(left(&w, 1), BURST - 3);
	ck_assert_uint_eq(left(&w, 2), BURST);
	ck_assert_uint_eq(left(&w, 3), BURST - 1);
	again(&w, "");
	again(&w, "a");
	ck_assert_uint_eq(left(&w, 1), BURST); /* that worker had none */
	drop(&w);
}
END_TEST

START_TEST(restore__clocks_that_jump_fill_nothing)
{
	static struct worker w;

	make(&w, "a", &RATE);
	spend(&w, 1, BURST);
	(void)netpol_rates_share(shared, &w.rates, &now);
	now.wall_ns += 1000 * 3600 * S; /* the same boot: the wall clock says nothing */
	again(&w, "a");
	ck_assert_uint_eq(left(&w, 1), 0);
	now.boottime_ns -= 500 * S; /* as no kernel would */
	again(&w, "a");
	ck_assert_uint_eq(left(&w, 1), 0);
	now.boot_id[0] = '1'; /* another boot, and the wall clock before the last one */
	now.boottime_ns = 10 * S;
	now.wall_ns -= 2000 * 3600 * S;
	again(&w, "a");
	ck_assert_uint_eq(left(&w, 1), 0);
	ck_assert_uint_eq(in_hour(&w, 1), BURST);
	drop(&w);
}
END_TEST

/* Whatever byte is another one: no limiter has more than it had. */
START_TEST(restore__damage_drains)
{
	struct netpol_shared_place *p = &shared->place[0];
	static struct worker w;
	uint32_t len;

	make(&w, "ab", &RATE);
	spend(&w, 0, 1);
	spend(&w, 1, 2);
	spend(&w, 2, 3);
	ck_assert_uint_eq(shared->turn, 1);
	(void)netpol_rates_share(shared, &w.rates, &now);
	(void)netpol_rates_share(shared, &w.rates, &now);
	ck_assert_uint_eq(shared->turn, 1);
	len = p->len;
	for (uint32_t i = 0; i < len; i++) {
		p->state[i] ^= 0x01;
		drop(&w);
		make(&w, "ab", &RATE);
		ck_assert(netpol_rates_restore(shared, &w.rates, &now));
		for (unsigned k = 0; k < 3; k++)
			ck_assert_uint_le(left(&w, k), BURST - 1 - k);
		ck_assert_uint_eq(left(&w, 0) && left(&w, 1) && left(&w, 2), 0);
		p->state[i] ^= 0x01;
	}
	for (p->len = 0; p->len < len; p->len++) { /* cut short */
		drop(&w);
		make(&w, "ab", &RATE);
		ck_assert(netpol_rates_restore(shared, &w.rates, &now));
		ck_assert_uint_eq(left(&w, 0) + left(&w, 1) + left(&w, 2), 0);
	}
	drop(&w);
}
END_TEST

/* What a worker that was taken over may have left. */
START_TEST(restore__a_log_of_nonsense_is_harmless)
{
	struct netpol_shared_place *p = &shared->place[0];
	static struct worker w;

	make(&w, "a", &RATE);
	(void)netpol_rates_share(shared, &w.rates, &now);
	p->n_log = 4;
	p->log_of[0] = 2;
	p->log_of[1] = UINT16_MAX;
	p->log_of[2] = p->log_of[3] = 1;
	p->log_ns[0] = INT64_MIN;
	p->log_ns[1] = INT64_MAX;
	p->log_ns[2] = INT64_MAX;
	p->log_ns[3] = -1;
	again(&w, "a");
	ck_assert_uint_eq(left(&w, 0), BURST);
	ck_assert_uint_eq(left(&w, 1), BURST - 2);
	shared->turn = 3;
	ck_assert(!netpol_rates_restore(shared, &w.rates, &now));
	drop(&w);
}
END_TEST

/* A full route finds room beside the full one of the type, the next does not: lost, so drained. */
START_TEST(share__bounded)
{
	static const struct netpol_rate most = { NETPOL_RATE_MAX, NETPOL_RATE_MAX,
						 NETPOL_RATE_MAX };
	struct netpol_limit l;
	static struct worker w;

	make(&w, "abc", &most);
	for (unsigned which = 0; which < 3; which++) {
		for (int i = 0; i < NETPOL_RATE_MAX - 1; i++)
			netpol_limiter_consume(of(&w, which), now.boottime_ns, &l);
	}
	ck_assert_uint_le(netpol_rates_share(shared, &w.rates, &now), NETPOL_SHARED_STATE);
	drop(&w);
	make(&w, "abc", &most);
	ck_assert(netpol_rates_restore(shared, &w.rates, &now));
	ck_assert_uint_eq(left(&w, 0), 1);
	ck_assert_uint_eq(left(&w, 1), 1);
	ck_assert_uint_eq(left(&w, 2), 0);
	ck_assert_uint_eq(left(&w, 3), NETPOL_RATE_MAX);
	drop(&w);
}
END_TEST

START_TEST(share__as_many_routes_as_a_policy_has)
{
	static struct worker w, next;

	make(&w, "", &RATE);
	make(&next, "", &RATE);
	for (int i = 0; i < NETPOL_RATES_GATES; i++) {
		(void)snprintf(w.list[i].name, sizeof(w.list[i].name), "%064d", i);
		next.list[i] = w.list[i];
		ck_assert_ok(netpol_limiter_new(&RATE, &w.list[i].limiter, &err), err);
		ck_assert_ok(netpol_limiter_new(&RATE, &next.list[i].limiter, &err), err);
	}
	w.gates.n = next.gates.n = NETPOL_RATES_GATES;
	spend(&w, NETPOL_RATES_GATES, 1);
	spend(&w, NETPOL_RATES_GATES, 1);
	ck_assert(netpol_rates_restore(shared, &next.rates, &now));
	ck_assert_uint_eq(left(&next, NETPOL_RATES_GATES), BURST - 2);
	ck_assert_uint_eq(left(&next, NETPOL_RATES_GATES - 1), BURST);
	drop(&w);
	drop(&next);
}
END_TEST

START_TEST(spent__a_full_log_asks_for_states)
{
	static struct worker w;

	make(&w, "a", &RATE);
	ck_assert(!netpol_rates_spent(shared, 1, now.boottime_ns)); /* no states yet */
	(void)netpol_rates_share(shared, &w.rates, &now);
	for (unsigned i = 0; i < NETPOL_SHARED_LOG; i++)
		ck_assert(netpol_rates_spent(shared, 1, now.boottime_ns));
	ck_assert(!netpol_rates_spent(shared, 1, now.boottime_ns));
	drop(&w);
}
END_TEST

/* The container is started again: the file brings the routes back, too. */
START_TEST(file__brings_back_every_route)
{
	const struct netpol_shared_place *saved = NULL;
	static struct worker w;

	make(&w, "ab", &RATE);
	spend(&w, 2, 3);
	(void)netpol_rates_share(shared, &w.rates, &now);
	ck_assert_ok(netpol_state_save(top, "c", shared, &saved, &err), err);
	ck_assert_int_eq(munmap(shared, sizeof(*shared)), 0);
	ck_assert_ok(netpol_state_map(top, "c", &shared, &err), err);
	again(&w, "ab");
	ck_assert_uint_eq(left(&w, 0), BURST);
	ck_assert_uint_eq(left(&w, 1), BURST);
	ck_assert_uint_eq(left(&w, 2), BURST - 3);
	/* another file in its place */
	put("c", "AQELIM1\n of an older one", 0600);
	ck_assert_int_eq(munmap(shared, sizeof(*shared)), 0);
	ck_assert_ok(netpol_state_map(top, "c", &shared, &err), err);
	again(&w, "ab");
	ck_assert_uint_eq(left(&w, 0) + left(&w, 1) + left(&w, 2), 0);
	drop(&w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("egress_rates");
	TCase *t = tcase_create("rates");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, restore__nothing_was_shared);
	tcase_add_test(t, restore__each_route_has_what_it_had);
	tcase_add_test(t, restore__admissions_behind_the_states_count_when_they_were);
	tcase_add_test(t, restore__routes_by_name_when_the_policy_is_another);
	tcase_add_test(t, restore__clocks_that_jump_fill_nothing);
	tcase_add_test(t, restore__damage_drains);
	tcase_add_test(t, restore__a_log_of_nonsense_is_harmless);
	tcase_add_test(t, share__bounded);
	tcase_add_test(t, share__as_many_routes_as_a_policy_has);
	tcase_add_test(t, spent__a_full_log_asks_for_states);
	tcase_add_test(t, file__brings_back_every_route);
	suite_add_tcase(s, t);
	return unit_run(s);
}
