/* SPDX-License-Identifier: MIT */
/* Messages, records, the ledger: what stands between the processes. */
#include "netpolicy/egress/wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netpolicy/egress/body.h"
#include "netpolicy/egress/ledger.h"
#include "netpolicy/egress/loop.h"
#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

static struct aqe_err err = AQE_ERR_INIT;
static int chan[2];
static union netpol_msg msg;

static void setup(void)
{
	ck_assert_ok(netpol_wire_pair(chan, &err), err);
}

/* ---- messages ---- */

START_TEST(wire__carries_messages_and_descriptors)
{
	static struct netpol_msg_cancel m = { NETPOL_MSG_CANCEL, 7 }; /* no padding of the stack */
	int fd;

	ck_assert_int_eq(netpol_wire_recv(chan[1], &msg, &fd), 0); /* nothing yet */
	ck_assert_int_eq(netpol_wire_send(chan[0], &m, sizeof(m), -1), NETPOL_WIRE_SENT);
	ck_assert_int_eq(netpol_wire_send(chan[0], &m, sizeof(m), chan[0]), NETPOL_WIRE_SENT);
	ck_assert_int_eq(netpol_wire_recv(chan[1], &msg, &fd), 1);
	ck_assert_int_eq(fd, -1);
	ck_assert_uint_eq(msg.cancel.id, 7);
	ck_assert_int_eq(netpol_wire_recv(chan[1], &msg, &fd), 1);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
	(void)close(fd);
	(void)close(chan[0]);
	ck_assert_int_eq(netpol_wire_recv(chan[1], &msg, &fd), -1); /* the end */
}
END_TEST

static const struct {
	uint32_t type;
	size_t n;
} ODD[] = {
	{ 0, 4 },
	{ NETPOL_MSG_TYPES, 4 },
	{ UINT32_MAX, 4 },
	{ NETPOL_MSG_READY, 3 },
	{ NETPOL_MSG_READY, 5 },
	{ NETPOL_MSG_CANCEL, sizeof(struct netpol_msg_cancel) - 1 },
	{ NETPOL_MSG_DIAL, sizeof(struct netpol_msg_dial) + 1 },
	{ NETPOL_MSG_RECORDS, 4 },
	{ NETPOL_MSG_RECORDS, offsetof(struct netpol_msg_records, packed) - 1 },
	{ NETPOL_MSG_RECORDS, offsetof(struct netpol_msg_records, packed) + 1 }, /* says 0 */
	{ NETPOL_MSG_RECORDS, sizeof(struct netpol_msg_records) },
};

START_TEST(wire__refuses_what_is_no_message)
{
	static uint8_t bytes[sizeof(union netpol_msg) + 8];
	int fd;

	memcpy(bytes, &ODD[_i].type, sizeof(ODD[_i].type));
	ck_assert_int_eq(send(chan[0], bytes, ODD[_i].n, 0), (ssize_t)ODD[_i].n);
	ck_assert_int_eq(netpol_wire_recv(chan[1], &msg, &fd), -1);
	ck_assert_int_eq(fd, -1);
}
END_TEST

START_TEST(wire_bare__refuses_a_descriptor)
{
	static struct netpol_msg_cancel m = { NETPOL_MSG_CANCEL, 7 }; /* no padding of the stack */
	int p[2];
	char c;

	ck_assert_int_eq(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	ck_assert_int_eq(netpol_wire_recv_bare(chan[1], &msg), 0);
	ck_assert_int_eq(netpol_wire_send(chan[0], &m, sizeof(m), -1), NETPOL_WIRE_SENT);
	ck_assert_int_eq(netpol_wire_recv_bare(chan[1], &msg), 1);
	ck_assert_uint_eq(msg.cancel.id, 7);
	ck_assert_int_eq(netpol_wire_send(chan[0], &m, sizeof(m), p[1]), NETPOL_WIRE_SENT);
	(void)close(p[1]);
	ck_assert_int_eq(netpol_wire_recv_bare(chan[1], &msg), -1);
	ck_assert_int_eq(read(p[0], &c, 1), 0); /* no copy of it is open any more */
	(void)close(p[0]);
}
END_TEST

/* Two descriptors in one message: refused, and neither stays open here. */
START_TEST(wire__takes_one_descriptor_only)
{
	char control[CMSG_SPACE(2 * sizeof(int))] = { 0 };
	static struct netpol_msg_cancel m = { NETPOL_MSG_CANCEL, 7 }; /* no padding of the stack */
	struct iovec iov = { &m, sizeof(m) };
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&h);
	int two[2] = { chan[0], chan[0] }, fd, before, after;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(two));
	memcpy(CMSG_DATA(c), two, sizeof(two));
	before = fcntl(0, F_DUPFD_CLOEXEC, 3);
	(void)close(before);
	ck_assert_int_eq(sendmsg(chan[0], &h, 0), (ssize_t)sizeof(m));
	ck_assert_int_eq(netpol_wire_recv(chan[1], &msg, &fd), -1);
	after = fcntl(0, F_DUPFD_CLOEXEC, 3);
	ck_assert_int_eq(before, after);
}
END_TEST

START_TEST(wire__is_full_at_some_time)
{
	struct netpol_msg_records m;
	enum netpol_wire_sent sent = NETPOL_WIRE_SENT;
	unsigned n = 0;

	memset(&m, 0, sizeof(m));
	m.type = NETPOL_MSG_RECORDS;
	for (; sent == NETPOL_WIRE_SENT && n < 100000; n++)
		sent = netpol_wire_send(chan[0], &m, sizeof(m), -1);
	ck_assert_int_eq(sent, NETPOL_WIRE_FULL);
	ck_assert_uint_ge(n, 8);
	(void)close(chan[1]);
	ck_assert_int_eq(netpol_wire_send(chan[0], &m, sizeof(m), -1), NETPOL_WIRE_GONE);
}
END_TEST

/* ---- records ---- */

static const struct {
	const char *in;
	size_t n;
	const char *out;
} TEXTS[] = {
	{ "plain", 5, "plain" },
	{ "a\0b", 3, "a\\x00b" },
	{ "\\", 1, "\\\\" },
	{ "\xc3\xa9\n", 3, "\\xc3\\xa9\\x0a" },
	{ "0123456789abcdef", 16, "0123456789abcde" },
	{ "0123456789abc\n", 14, "0123456789abc" }, /* no half escapes */
	{ "", 0, "" },
};

START_TEST(record_text__escapes_and_cuts)
{
	char out[16];

	netpol_record_text(out, sizeof(out), TEXTS[_i].in, TEXTS[_i].n);
	ck_assert_str_eq(out, TEXTS[_i].out);
}
END_TEST

START_TEST(record_ok__wants_ranges_and_ended_texts)
{
	struct netpol_record r, bad;

	netpol_record_init(&r);
	ck_assert(netpol_record_ok(&r));
#define BAD(change)                                 \
	do {                                        \
		bad = r;                            \
		change;                             \
		ck_assert(!netpol_record_ok(&bad)); \
	} while (0)
	BAD(bad.phase = NETPOL_PHASE_COUNT);
	BAD(bad.action = NETPOL_ACTION_COUNT);
	BAD(bad.flags = 1U << NETPOL_FLAG_COUNT);
	BAD(bad.status = 600);
	BAD(bad.up = UINT64_MAX);
	BAD(bad.down = UINT64_MAX);
	BAD(bad.duration_us = -2);
	BAD(bad.dns_us = -2);
	BAD(bad.connect_us = INT64_MIN);
	BAD(bad.at_ns = -1);
	BAD(memset(bad.host, 'a', sizeof(bad.host)));
	BAD(memset(bad.policy, 'a', sizeof(bad.policy)));
	BAD(memcpy(bad.rule, "a\nb", 4));
	BAD(memcpy(bad.sni, "\xff", 2));
#undef BAD
}
END_TEST

static struct netpol_record full_record(void)
{
	struct netpol_record r;

	netpol_record_init(&r);
	r.id = 1;
	r.at_ns = 2;
	r.phase = NETPOL_PHASE_CLOSE;
	r.port = 443;
	r.up = 3;
	r.dns_us = 4;
#define FILL(member, c) memset(r.member, c, sizeof(r.member) - 1)
	FILL(listener, 'a');
	FILL(method, 'b');
	FILL(reason, 'c');
	FILL(host, 'd');
	FILL(raw_host, 'e');
	FILL(rule, 'f');
	FILL(address, 'g');
	FILL(dropped, 'h');
	FILL(sni, 'i');
	FILL(alpn, 'j');
	FILL(path, 'k');
	FILL(policy, 'l');
#undef FILL
	return r;
}

/* Whatever was in its place before: all of it is the record's. */
START_TEST(record_pack__comes_back_the_same)
{
	char packed[NETPOL_RECORD_PACKED];
	struct netpol_record r = full_record(), got;
	size_t n = netpol_record_pack(&r, packed, sizeof(packed));

	ck_assert_uint_gt(n, 0);
	memset(&got, 0, sizeof(got));
	ck_assert_uint_eq(netpol_record_unpack(packed, n, &got), n);
	ck_assert_mem_eq(&got, &r, offsetof(struct netpol_record, policy) + sizeof(r.policy));
	ck_assert(netpol_record_ok(&got));
	netpol_record_init(&r); /* over the full one */
	n = netpol_record_pack(&r, packed, sizeof(packed));
	ck_assert_uint_lt(n, 128);
	ck_assert_uint_eq(netpol_record_unpack(packed, n, &got), n);
	ck_assert(netpol_record_ok(&got));
	ck_assert_str_eq(got.host, "");
	ck_assert_str_eq(got.path, "");
	ck_assert_str_eq(got.policy, "");
	ck_assert_int_eq(got.duration_us, -1);
}
END_TEST

START_TEST(record_pack__wants_room_and_all_of_it)
{
	char packed[NETPOL_RECORD_PACKED];
	struct netpol_record r = full_record(), got;
	size_t n = netpol_record_pack(&r, packed, sizeof(packed));

	for (size_t room = 0; room < n; room++) {
		AQE_AUTO_FREE char *exact = malloc(room + 1);

		ck_assert_uint_eq(netpol_record_pack(&r, exact, room), 0);
		memcpy(exact, packed, room);
		ck_assert_uint_eq(netpol_record_unpack(exact, room, &got), 0);
	}
	/* a text that has no end where it must have one */
	for (size_t i = 0; i < n; i++)
		packed[i] = packed[i] ? packed[i] : 'x';
	ck_assert_uint_eq(netpol_record_unpack(packed, n, &got), 0);
}
END_TEST

START_TEST(audit_lines__writes_json)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 16);
	struct netpol_record r;
	struct netpol_audit audit;
	struct aqe_json *o = NULL;
	char line[4096];
	ssize_t n;
	int p[2];

	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	netpol_record_init(&r);
	r.phase = NETPOL_PHASE_CLOSE;
	r.id = 12;
	r.up = 3;
	r.flags = NETPOL_FLAG_ECH | NETPOL_FLAG_WEBSOCKET;
	netpol_record_text(r.host, sizeof(r.host), "a\"b", 3);
	audit = netpol_audit_lines(p[1]);
	ck_assert_ok(audit.ops->store(audit.self, &r, 1, &err), err);
	audit.ops->close(audit.self);
	n = read(p[0], line, sizeof(line));
	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(line[n - 1], '\n');
	ck_assert_ok(aqe_json_parse(a, line, (size_t)n, &AQE_JSON_LIMITS_DEFAULT, &o, &err), err);
	ck_assert_str_eq(aqe_json_str(aqe_json_get(o, "host")), "a\"b");
	ck_assert_str_eq(aqe_json_get(o, "id")->text, "12");
	ck_assert_uint_eq(aqe_json_get(o, "flags")->len, 2);
	ck_assert_ptr_null(aqe_json_get(o, "rule"));
	ck_assert_ptr_null(aqe_json_get(o, "dns_us"));
}
END_TEST

/* ---- the ledger ---- */

struct waiter {
	struct netpol_wait wait;
	int told; /* 1 ok, -1 not */
};

static void on_stored(struct netpol_wait *w, bool ok)
{
	NETPOL_OWNER(w, struct waiter, wait)->told = ok ? 1 : -1;
}

static uint64_t next_serial(void)
{
	int fd;

	ck_assert_int_eq(netpol_wire_recv(chan[1], &msg, &fd), 1);
	ck_assert_uint_eq(msg.head.type, NETPOL_MSG_RECORDS);
	ck_assert_uint_eq(msg.records.n, 1);
	return msg.records.serial;
}

START_TEST(ledger__tells_who_waited)
{
	struct waiter a = { .wait.fn = on_stored }, b = a, c = a;
	struct netpol_ledger l;
	struct netpol_record r;

	netpol_record_init(&r);
	netpol_ledger_init(&l, chan[0]);
	ck_assert(netpol_ledger_put(&l, &r, &a.wait));
	ck_assert(netpol_ledger_put(&l, &r, &b.wait));
	ck_assert(netpol_ledger_put(&l, &r, &c.wait));
	ck_assert_uint_eq(next_serial(), 1);
	ck_assert_uint_eq(next_serial(), 2);
	netpol_ledger_forget(&l, &b.wait);
	netpol_ledger_stored(&l, 2, true);
	ck_assert_int_eq(a.told, 1);
	ck_assert_int_eq(b.told, 0);
	ck_assert_int_eq(c.told, 0);
	netpol_ledger_stored(&l, 99, true); /* more than was sent: nonsense */
	ck_assert_int_eq(c.told, 0);
	netpol_ledger_stored(&l, 3, false);
	ck_assert_int_eq(c.told, -1);
	netpol_ledger_forget(&l, &c.wait); /* harmless */
	netpol_ledger_done(&l);
}
END_TEST

static unsigned told_queued;

static void on_queued(struct netpol_ledger *l)
{
	(void)l;
	told_queued++;
}

/* The records of a round go in as few messages as hold them, and none is left out or put twice. */
START_TEST(ledger__sends_a_round_together)
{
	struct netpol_record r = full_record(), got;
	struct netpol_ledger l;
	uint64_t seen = 0, messages = 0;
	int fd;

	told_queued = 0;
	netpol_ledger_init(&l, chan[0]);
	l.queued = on_queued;
	ck_assert(netpol_ledger_send(&l)); /* nothing: nothing is sent */
	ck_assert_int_eq(netpol_wire_recv(chan[1], &msg, &fd), 0);
	for (uint64_t i = 1; i <= 20; i++) {
		r.id = i;
		if (i % 2)
			memset(r.path, 0, sizeof(r.path));
		netpol_ledger_tell(&l, &r);
	}
	ck_assert_uint_eq(told_queued, 20);
	ck_assert(netpol_ledger_send(&l));
	ck_assert_uint_eq(l.sent, 20);
	for (; seen < 20; messages++) {
		size_t at = 0;

		ck_assert_int_eq(netpol_wire_recv(chan[1], &msg, &fd), 1);
		for (unsigned i = 0; i < msg.records.n; i++) {
			at += netpol_record_unpack(msg.records.packed + at, msg.records.len - at,
						   &got);
			ck_assert_uint_eq(got.id, ++seen);
		}
		ck_assert_uint_eq(at, msg.records.len);
		ck_assert_uint_eq(msg.records.serial, seen);
	}
	ck_assert_uint_gt(messages, 1); /* these are large */
	ck_assert_uint_lt(messages, 10);
	ck_assert_int_eq(netpol_wire_recv(chan[1], &msg, &fd), 0);
	netpol_ledger_done(&l);
}
END_TEST

/* What found the channel full goes when the keeper has stored some of it. */
START_TEST(ledger__sends_later_what_found_the_channel_full)
{
	struct netpol_msg_stored filler;
	struct netpol_record r;
	struct netpol_ledger l;
	int fd;

	memset(&filler, 0, sizeof(filler));
	filler.type = NETPOL_MSG_STORED;
	netpol_record_init(&r);
	netpol_ledger_init(&l, chan[0]);
	l.queued = on_queued;
	netpol_ledger_tell(&l, &r);
	ck_assert(netpol_ledger_send(&l));
	while (netpol_wire_send(chan[0], &filler, sizeof(filler), -1) == NETPOL_WIRE_SENT)
		;
	netpol_ledger_tell(&l, &r);
	ck_assert(!netpol_ledger_send(&l));
	ck_assert_uint_eq(next_serial(), 1);
	while (netpol_wire_recv(chan[1], &msg, &fd) == 1)
		ck_assert_uint_eq(msg.head.type, NETPOL_MSG_STORED);
	netpol_ledger_stored(&l, 1, true);
	ck_assert_uint_eq(next_serial(), 2);
	netpol_ledger_done(&l);
}
END_TEST

/* A keeper that does not answer: decisions are refused, closes kept and sent later, in order. */
START_TEST(ledger__is_bounded)
{
	static struct waiter w[NETPOL_LEDGER_WAITING + 1];
	struct netpol_ledger l;
	struct netpol_record r;
	size_t n = 0;
	uint64_t serial = 0;

	netpol_record_init(&r);
	netpol_ledger_init(&l, chan[0]);
	while (n <= NETPOL_LEDGER_WAITING && netpol_ledger_put(&l, &r, &w[n].wait))
		w[n++].wait.fn = on_stored;
	ck_assert_uint_le(n, NETPOL_LEDGER_WAITING);
	ck_assert_uint_gt(n, 0);
	for (size_t i = 0; i < NETPOL_LEDGER_BACKLOG + 2; i++)
		netpol_ledger_tell(&l, &r);
	ck_assert_uint_eq(l.lost, 2);
	while (l.stored < l.sent) {
		while (serial < l.sent)
			ck_assert_uint_eq(next_serial(), ++serial);
		netpol_ledger_stored(&l, serial, true);
	}
	ck_assert_uint_eq(serial, n + NETPOL_LEDGER_BACKLOG);
	ck_assert_int_eq(w[n - 1].told, 1);
	ck_assert(netpol_ledger_put(&l, &r, &w[0].wait));
	netpol_ledger_forget(&l, &w[0].wait);
	netpol_ledger_done(&l);
}
END_TEST

static void denial(struct netpol_record *r, unsigned i)
{
	netpol_record_init(r);
	r->action = NETPOL_BLOCKED;
	(void)snprintf(r->host, sizeof(r->host), "h%u.test", i);
}

START_TEST(repeats__count_by_kind)
{
	static struct netpol_repeats p;
	struct netpol_ledger l;
	struct netpol_record r, got;
	int fd;

	netpol_ledger_init(&l, chan[0]);
	denial(&r, 1);
	ck_assert(netpol_repeats_first(&p, &r));
	ck_assert(!netpol_repeats_first(&p, &r));
	r.port = 443;
	ck_assert(netpol_repeats_first(&p, &r));
	netpol_repeats_count(&p, &r);
	netpol_repeats_count(&p, &r);
	netpol_repeats_flush(&p, &l, 5);
	ck_assert_int_eq(netpol_wire_recv(chan[1], &msg, &fd), 1);
	ck_assert_uint_gt(netpol_record_unpack(msg.records.packed, msg.records.len, &got), 0);
	ck_assert_uint_eq(got.phase, NETPOL_PHASE_REPEATED);
	ck_assert_uint_eq(got.count, 2);
	ck_assert_uint_eq(got.port, 443);
	ck_assert_int_eq(got.at_ns, 5);
	ck_assert_int_eq(netpol_wire_recv(chan[1], &msg, &fd), 0); /* the other was not repeated */
	ck_assert(netpol_repeats_first(&p, &r));                   /* a new minute */
	netpol_repeats_flush(&p, NULL, 0);
	netpol_ledger_done(&l);
}
END_TEST

START_TEST(repeats__are_bounded)
{
	static struct netpol_repeats p;
	struct netpol_record r;
	unsigned first = 0;

	for (unsigned i = 0; i < 10000; i++) {
		denial(&r, i);
		if (netpol_repeats_first(&p, &r))
			first++;
		else
			netpol_repeats_count(&p, &r);
	}
	ck_assert_uint_eq(first, NETPOL_REPEATS_MAX);
	ck_assert_uint_eq(p.kinds[NETPOL_REPEATS_MAX - 1].row->count, 10000 - NETPOL_REPEATS_MAX);
	ck_assert_str_eq(p.kinds[NETPOL_REPEATS_MAX - 1].row->host, "");
	netpol_repeats_flush(&p, NULL, 0);
}
END_TEST

/* ---- bodies ---- */

static const struct {
	enum netpol_h1_body kind;
	uint64_t length;
	bool plain;
	const char *in, *out;
	enum netpol_h1_step step;
	size_t behind;
} BODIES[] = {
	{ NETPOL_H1_NO_BODY, 0, false, "GET", "", NETPOL_H1_DONE, 3 },
	{ NETPOL_H1_LENGTH, 0, false, "GET", "", NETPOL_H1_DONE, 3 },
	{ NETPOL_H1_LENGTH, 5, false, "helloGET", "hello", NETPOL_H1_DONE, 3 },
	{ NETPOL_H1_LENGTH, 6, false, "hello", "hello", NETPOL_H1_MORE, 0 },
	{ NETPOL_H1_TO_CLOSE, 0, false, "hello", "hello", NETPOL_H1_MORE, 0 },
	{ NETPOL_H1_CHUNKED, 0, false, "05;x\r\nhello\r\n0\r\nT: 1\r\n\r\nGET",
	  "5\r\nhello\r\n0\r\n\r\n", NETPOL_H1_DONE, 3 },
	{ NETPOL_H1_CHUNKED, 0, true, "05;x\r\nhello\r\n0\r\n\r\nGET", "hello", NETPOL_H1_DONE, 3 },
	{ NETPOL_H1_CHUNKED, 0, false, "5\r\nhel", "3\r\nhel\r\n", NETPOL_H1_MORE, 0 },
	{ NETPOL_H1_CHUNKED, 0, false, "5\r\nhello!", "5\r\nhello\r\n", NETPOL_H1_BAD, 1 },
};

START_TEST(body_feed__puts_our_framing)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(4096);
	size_t used = 0, n = strlen(BODIES[_i].in);
	struct netpol_body b;

	netpol_body_init(&b, BODIES[_i].kind, BODIES[_i].length, BODIES[_i].plain);
	ck_assert_int_eq(netpol_body_feed(&b, BODIES[_i].in, n, &out, &used), BODIES[_i].step);
	ck_assert_str_eq(aqe_buf_str(&out), BODIES[_i].out);
	if (BODIES[_i].step != NETPOL_H1_BAD)
		ck_assert_uint_eq(n - used, BODIES[_i].behind);
	ck_assert_int_eq(b.done, BODIES[_i].step == NETPOL_H1_DONE);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("netpolicy/egress/wire");
	TCase *t = tcase_create("wire");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, wire__carries_messages_and_descriptors);
	tcase_add_loop_test(t, wire__refuses_what_is_no_message, 0, (int)AQE_COUNT(ODD));
	tcase_add_test(t, wire_bare__refuses_a_descriptor);
	tcase_add_test(t, wire__takes_one_descriptor_only);
	tcase_add_test(t, wire__is_full_at_some_time);
	tcase_add_loop_test(t, record_text__escapes_and_cuts, 0, (int)AQE_COUNT(TEXTS));
	tcase_add_test(t, record_ok__wants_ranges_and_ended_texts);
	tcase_add_test(t, record_pack__comes_back_the_same);
	tcase_add_test(t, record_pack__wants_room_and_all_of_it);
	tcase_add_test(t, audit_lines__writes_json);
	tcase_add_test(t, ledger__tells_who_waited);
	tcase_add_test(t, ledger__sends_a_round_together);
	tcase_add_test(t, ledger__sends_later_what_found_the_channel_full);
	tcase_add_test(t, ledger__is_bounded);
	tcase_add_test(t, repeats__count_by_kind);
	tcase_add_test(t, repeats__are_bounded);
	tcase_add_loop_test(t, body_feed__puts_our_framing, 0, (int)AQE_COUNT(BODIES));
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
