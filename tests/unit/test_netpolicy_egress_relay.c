/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/relay.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/core/text.h"
#include "tests/unit/unit.h"

/* client[0] -- client[1] relay upstream[1] -- upstream[0] */
static int client[2], upstream[2];
static struct netpol_relay relay;
static char scratch[NETPOL_RELAY_SCRATCH], piece[NETPOL_RELAY_SCRATCH];

static void setup(void)
{
	int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
	int fd[2];

	ck_assert_int_eq(socketpair(AF_UNIX, type, 0, client), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, type, 0, upstream), 0);
	fd[0] = client[1];
	fd[1] = upstream[1];
	netpol_relay_init(&relay, fd, scratch);
	for (size_t i = 0; i < sizeof(piece); i++)
		piece[i] = (char)(i * 7 + i / 251);
}

static void teardown(void)
{
	netpol_relay_done(&relay);
	netpol_relay_done(&relay); /* again is harmless */
}

/* Everything that can be read now. */
static size_t drain(int fd, char *out, size_t max)
{
	size_t n = 0;
	ssize_t got;

	while ((got = recv(fd, out + n, max - n, MSG_DONTWAIT)) > 0)
		n += (size_t)got;
	return n;
}

START_TEST(run__passes_both_ways)
{
	char got[16];

	ck_assert_int_eq(send(client[0], "up", 2, 0), 2);
	ck_assert_int_eq(send(upstream[0], "down", 4, 0), 4);
	ck_assert_int_eq(netpol_relay_run(&relay), NETPOL_RELAY_OPEN);
	ck_assert_uint_eq(drain(upstream[0], got, sizeof(got)), 2);
	ck_assert_mem_eq(got, "up", 2);
	ck_assert_uint_eq(drain(client[0], got, sizeof(got)), 4);
	ck_assert_mem_eq(got, "down", 4);
	ck_assert_uint_eq(relay.flow[0].bytes, 2);
	ck_assert_uint_eq(relay.flow[1].bytes, 4);
}
END_TEST

START_TEST(early__comes_first)
{
	char got[16];

	ck_assert(netpol_relay_early(&relay, 0, "first ", 6));
	ck_assert(netpol_relay_early(&relay, 1, NULL, 0));
	ck_assert_int_eq(send(client[0], "second", 6, 0), 6);
	ck_assert_int_eq(netpol_relay_run(&relay), NETPOL_RELAY_OPEN);
	ck_assert_uint_eq(drain(upstream[0], got, sizeof(got)), 12);
	ck_assert_mem_eq(got, "first second", 12);
}
END_TEST

/* One side's end is told to the other, which may go on sending. */
START_TEST(run__forwards_each_end_by_itself)
{
	char got[16];

	ck_assert_int_eq(send(client[0], "bye", 3, 0), 3);
	ck_assert_int_eq(shutdown(client[0], SHUT_WR), 0);
	ck_assert_int_eq(netpol_relay_event(&relay, 0, EPOLLIN | EPOLLRDHUP), NETPOL_RELAY_OPEN);
	ck_assert_uint_eq(drain(upstream[0], got, sizeof(got)), 3);
	ck_assert_int_eq(recv(upstream[0], got, 1, 0), 0); /* the end */
	ck_assert_int_eq(send(upstream[0], "late", 4, 0), 4);
	ck_assert_int_eq(netpol_relay_event(&relay, 1, EPOLLIN), NETPOL_RELAY_OPEN);
	ck_assert_uint_eq(drain(client[0], got, sizeof(got)), 4);
	ck_assert_int_eq(shutdown(upstream[0], SHUT_WR), 0);
	ck_assert_int_eq(netpol_relay_event(&relay, 1, EPOLLRDHUP), NETPOL_RELAY_ENDED);
	/* all is passed on and both are about to be closed: that tells it too */
	ck_assert_int_eq(recv(client[0], got, 1, MSG_DONTWAIT), -1);
	ck_assert_int_eq(close(client[1]), 0);
	ck_assert_int_eq(recv(client[0], got, 1, 0), 0);
}
END_TEST

/* Bulk towards a reader that stops and goes on: nothing is lost, doubled or reordered, and what
 * waits inside the relay stays bounded. */
START_TEST(run__survives_a_slow_reader)
{
	static char got[8 << 20];
	size_t sent = 0, n = 0;

	for (int turn = 0; turn < 4000 && n < sizeof(got); turn++) {
		while (sent < sizeof(got)) {
			size_t at = sent % sizeof(piece);
			ssize_t put = send(client[0], piece + at, sizeof(piece) - at, MSG_DONTWAIT);

			if (put < 0)
				break;
			sent += (size_t)put;
		}
		ck_assert_int_lt(netpol_relay_event(&relay, 0, EPOLLIN), NETPOL_RELAY_RESET);
		n += drain(upstream[0], got + n, turn % 3 ? sizeof(got) - n : 1000);
		ck_assert_int_lt(netpol_relay_event(&relay, 1, EPOLLOUT), NETPOL_RELAY_RESET);
	}
	ck_assert_uint_eq(n, sizeof(got));
	ck_assert_uint_eq(relay.flow[0].bytes, n);
	ck_assert_int_ge(relay.flow[0].pipe[0], 0); /* it was bulk */
	for (size_t i = 0; i < n; i += sizeof(piece))
		ck_assert_mem_eq(got + i, piece, sizeof(piece));
}
END_TEST

/* One direction does not keep the loop to itself. */
START_TEST(run__gives_others_a_turn)
{
	static char got[NETPOL_RELAY_TURN];
	bool again = false;

	for (int i = 0; i < 1000 && !again; i++) {
		while (send(client[0], piece, sizeof(piece), MSG_DONTWAIT) > 0)
			;
		again = netpol_relay_run(&relay) == NETPOL_RELAY_AGAIN;
		(void)drain(upstream[0], got, sizeof(got));
	}
	/* A socket pair holds less than a turn: then it never happens, which is as well. */
	ck_assert(again || relay.flow[0].bytes > 0);
}
END_TEST

START_TEST(run__stops_at_the_cap)
{
	char got[64];

	relay.flow[0].cap = 10;
	ck_assert_int_eq(send(client[0], piece, 30, 0), 30);
	ck_assert_int_eq(netpol_relay_run(&relay), NETPOL_RELAY_CAP);
	ck_assert_uint_eq(drain(upstream[0], got, sizeof(got)), 10);
	ck_assert_uint_eq(relay.flow[0].bytes, 10);
}
END_TEST

START_TEST(event__sees_a_broken_side)
{
	(void)close(upstream[0]);
	ck_assert_int_eq(send(client[0], "x", 1, 0), 1);
	ck_assert_int_eq(netpol_relay_event(&relay, 0, EPOLLIN), NETPOL_RELAY_RESET);
	ck_assert_int_eq(netpol_relay_event(&relay, 0, EPOLLERR), NETPOL_RELAY_RESET);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("netpolicy/egress/relay");
	TCase *t = tcase_create("relay");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 20);
	tcase_add_test(t, run__passes_both_ways);
	tcase_add_test(t, early__comes_first);
	tcase_add_test(t, run__forwards_each_end_by_itself);
	tcase_add_test(t, run__survives_a_slow_reader);
	tcase_add_test(t, run__gives_others_a_turn);
	tcase_add_test(t, run__stops_at_the_cap);
	tcase_add_test(t, event__sees_a_broken_side);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
