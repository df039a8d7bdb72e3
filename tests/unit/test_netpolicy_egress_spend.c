/* SPDX-License-Identifier: MIT */
/* The worker's queue for the shared limiter, with a store of the test's own at the other end. */
#include "netpolicy/egress/spend.h"

#include <string.h>
#include <unistd.h>

#include "shim/core/text.h"
#include "tests/unit/unit.h"

#define CLIENTS    4
#define PATIENT_MS 60000

struct client {
	struct netpol_spending spend;
	int calls;
	enum netpol_spent result;
	uint64_t retry_ms;
};

static struct aqe_err err = AQE_ERR_INIT;
static struct netpol_loop *loop;
static struct netpol_limiter *local;
static struct netpol_spender spender;
static struct client client[CLIENTS];
static int chan[2];

static void setup(void)
{
	const struct netpol_rate rate = { 60, 100, 3 };

	ck_assert_ok(netpol_loop_new(&loop, &err), err);
	ck_assert_ok(netpol_limiter_new(&rate, &local, &err), err);
	ck_assert_ok(netpol_wire_pair(chan, &err), err);
	netpol_spender_init(&spender, loop, &local);
	spender.timeout_ms = PATIENT_MS;
	memset(client, 0, sizeof(client));
}

static void teardown(void)
{
	netpol_spender_done(&spender);
	netpol_loop_free(loop);
	netpol_limiter_free(local);
	(void)close(chan[1]);
}

static void on_spent(struct netpol_spending *s, enum netpol_spent result, uint64_t retry_ms)
{
	struct client *c = NETPOL_OWNER(s, struct client, spend);
	struct netpol_limit l;

	c->calls++;
	c->result = result;
	c->retry_ms = retry_ms;
	if (result == NETPOL_SPENT_OK)
		netpol_limiter_consume(local, netpol_boottime_ns(), &l);
}

static void add(int i)
{
	client[i].spend.fn = on_spent;
	netpol_spender_add(&spender, &client[i].spend);
}

static void turn(int times)
{
	for (int i = 0; i < times; i++)
		ck_assert_ok(netpol_loop_once(loop, 0, &err), err);
}

static void until_called(int i)
{
	while (client[i].calls == 0)
		ck_assert_ok(netpol_loop_once(loop, 1000, &err), err);
}

/* The question that is out, or 0. */
static uint64_t asked(void)
{
	union netpol_msg m;
	int fd;

	if (netpol_wire_recv(chan[1], &m, &fd) <= 0)
		return 0;
	ck_assert_uint_eq(m.head.type, NETPOL_MSG_SPEND);
	return m.spend.id;
}

static void answer(uint64_t id, enum netpol_spent result, uint64_t retry_ms)
{
	struct netpol_msg_spent m;

	memset(&m, 0, sizeof(m));
	m.type = NETPOL_MSG_SPENT;
	m.id = id;
	m.result = (uint8_t)result;
	m.retry_ms = retry_ms;
	ck_assert_int_eq(netpol_wire_send(chan[1], &m, sizeof(m), -1), NETPOL_WIRE_SENT);
	turn(2);
}

static void saw(int i, enum netpol_spent result)
{
	ck_assert_int_eq(client[i].calls, 1);
	ck_assert_int_eq(client[i].result, result);
}

START_TEST(spend__one_question_at_a_time_in_order)
{
	uint64_t first, second;

	netpol_spender_channel(&spender, chan[0]);
	add(0);
	add(1);
	turn(2);
	first = asked();
	ck_assert_uint_ne(first, 0);
	ck_assert_uint_eq(asked(), 0);
	answer(first, NETPOL_SPENT_OK, 0);
	saw(0, NETPOL_SPENT_OK);
	ck_assert_int_eq(client[1].calls, 0);
	second = asked();
	ck_assert_uint_gt(second, first);
	answer(second, NETPOL_SPENT_LIMITED, 77);
	saw(1, NETPOL_SPENT_LIMITED);
	ck_assert_uint_eq(client[1].retry_ms, 77);
	ck_assert_uint_eq(spender.n_asked, 2);
	ck_assert_uint_eq(spender.n_limited, 1);
}
END_TEST

/* Nobody is asked for what the own limiter refuses. */
START_TEST(spend__local_first)
{
	netpol_spender_channel(&spender, chan[0]);
	for (int i = 0; i < CLIENTS; i++)
		add(i);
	for (int i = 0; i < 3; i++) {
		turn(2);
		answer(asked(), NETPOL_SPENT_OK, 0);
		saw(i, NETPOL_SPENT_OK);
	}
	turn(2);
	saw(3, NETPOL_SPENT_LIMITED);
	ck_assert_uint_gt(client[3].retry_ms, 0);
	ck_assert_uint_eq(asked(), 0);
}
END_TEST

START_TEST(spend__a_store_that_hangs_is_away_until_it_answers)
{
	uint64_t id;

	spender.timeout_ms = 20;
	netpol_spender_channel(&spender, chan[0]);
	add(0);
	turn(2);
	id = asked();
	until_called(0);
	saw(0, NETPOL_SPENT_AWAY);
	spender.timeout_ms = PATIENT_MS;
	add(1);
	turn(2);
	saw(1, NETPOL_SPENT_AWAY); /* at once, and without a second question */
	ck_assert_uint_eq(asked(), 0);
	answer(id, NETPOL_SPENT_OK, 0); /* too late for anybody */
	ck_assert_int_eq(client[0].calls, 1);
	add(2);
	turn(2);
	answer(asked(), NETPOL_SPENT_OK, 0);
	saw(2, NETPOL_SPENT_OK);
}
END_TEST

START_TEST(spend__waits_for_the_first_channel_only_so_long)
{
	spender.timeout_ms = 20;
	add(0);
	until_called(0);
	saw(0, NETPOL_SPENT_AWAY);
	spender.timeout_ms = PATIENT_MS;
	netpol_spender_channel(&spender, chan[0]);
	add(1);
	turn(2);
	answer(asked(), NETPOL_SPENT_OK, 0);
	saw(1, NETPOL_SPENT_OK);
}
END_TEST

START_TEST(spend__a_new_channel_is_asked_again)
{
	int other[2];
	uint64_t id;

	netpol_spender_channel(&spender, chan[0]);
	add(0);
	turn(2);
	id = asked();
	ck_assert_ok(netpol_wire_pair(other, &err), err);
	netpol_spender_channel(&spender, other[0]);
	turn(2);
	(void)close(chan[1]);
	chan[1] = other[1];
	ck_assert_uint_gt(asked(), id);
	answer(id + 1, NETPOL_SPENT_OK, 0);
	saw(0, NETPOL_SPENT_OK);
}
END_TEST

START_TEST(spend__a_dead_store_is_away)
{
	netpol_spender_channel(&spender, chan[0]);
	add(0);
	add(1);
	turn(2);
	(void)close(chan[1]);
	chan[1] = -1;
	turn(2);
	saw(0, NETPOL_SPENT_AWAY);
	saw(1, NETPOL_SPENT_AWAY);
	ck_assert_int_eq(spender.chan.fd, -1);
}
END_TEST

/* An answer to one that has gone is nobody else's. */
START_TEST(spend__forgets)
{
	uint64_t id;

	netpol_spender_channel(&spender, chan[0]);
	add(0);
	add(1);
	turn(2);
	id = asked();
	netpol_spender_forget(&spender, &client[0].spend);
	netpol_spender_forget(&spender, &client[0].spend);
	answer(id, NETPOL_SPENT_LIMITED, 9);
	ck_assert_int_eq(client[0].calls, 0);
	ck_assert_int_eq(client[1].calls, 0);
	answer(asked(), NETPOL_SPENT_OK, 0);
	saw(1, NETPOL_SPENT_OK);
}
END_TEST

static const struct {
	uint32_t type;
	uint8_t result;
} ODD[] = {
	{ NETPOL_MSG_SPENT, NETPOL_SPENT_COUNT },
	{ NETPOL_MSG_SPENT, 255 },
	{ NETPOL_MSG_DIALED, 0 },
};

START_TEST(spend__odd_words_end_the_channel)
{
	struct netpol_msg_spent m;

	netpol_spender_channel(&spender, chan[0]);
	add(0);
	turn(2);
	memset(&m, 0, sizeof(m));
	m.type = ODD[_i].type;
	m.id = asked();
	m.result = ODD[_i].result;
	ck_assert_int_eq(netpol_wire_send(chan[1], &m, sizeof(m), -1), NETPOL_WIRE_SENT);
	turn(2);
	saw(0, NETPOL_SPENT_AWAY);
	ck_assert_int_eq(spender.chan.fd, -1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("egress_spend");
	TCase *t = tcase_create("spend");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, spend__one_question_at_a_time_in_order);
	tcase_add_test(t, spend__local_first);
	tcase_add_test(t, spend__a_store_that_hangs_is_away_until_it_answers);
	tcase_add_test(t, spend__waits_for_the_first_channel_only_so_long);
	tcase_add_test(t, spend__a_new_channel_is_asked_again);
	tcase_add_test(t, spend__a_dead_store_is_away);
	tcase_add_test(t, spend__forgets);
	tcase_add_loop_test(t, spend__odd_words_end_the_channel, 0, (int)AQE_COUNT(ODD));
	suite_add_tcase(s, t);
	return unit_run(s);
}
