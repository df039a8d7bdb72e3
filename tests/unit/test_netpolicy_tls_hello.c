/* SPDX-License-Identifier: MIT */
#include "netpolicy/tls_hello.h"

#include <stdlib.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

/* A hello being built: bytes of the message, later cut into records. */
struct bytes {
	uint8_t p[40000];
	size_t n;
};

static void put(struct bytes *b, const void *p, size_t n)
{
	memcpy(b->p + b->n, p, n);
	b->n += n;
}

static void put8(struct bytes *b, unsigned v)
{
	b->p[b->n++] = (uint8_t)v;
}

static void put16(struct bytes *b, size_t v)
{
	put8(b, (unsigned)(v >> 8) & 0xff);
	put8(b, (unsigned)v & 0xff);
}

static void put_ext(struct bytes *b, unsigned type, const void *p, size_t n)
{
	put16(b, type);
	put16(b, n);
	put(b, p, n);
}

static void put_sni(struct bytes *b, const void *name, size_t n)
{
	put16(b, 0);
	put16(b, n + 5);
	put16(b, n + 3);
	put8(b, 0);
	put16(b, n);
	put(b, name, n);
}

/* A message with these extensions; NULL: without the extension block. */
static void put_hello(struct bytes *b, const struct bytes *ext)
{
	size_t body = 2 + 32 + 1 + 2 + 2 + 2 + (ext ? 2 + ext->n : 0);

	b->n = 0;
	put8(b, 1);
	put8(b, 0);
	put16(b, body);
	put16(b, 0x0303);
	for (unsigned i = 0; i < 32; i++)
		put8(b, i);
	put8(b, 0);
	put16(b, 2);
	put16(b, 0x1301);
	put8(b, 1);
	put8(b, 0);
	if (ext) {
		put16(b, ext->n);
		put(b, ext->p, ext->n);
	}
}

/* Cuts the message into records of at most `size` bytes. */
static void cut(struct bytes *out, const struct bytes *msg, size_t size)
{
	out->n = 0;
	for (size_t at = 0; at < msg->n; at += size) {
		size_t n = msg->n - at < size ? msg->n - at : size;

		put8(out, 22);
		put16(out, 0x0301);
		put16(out, n);
		put(out, msg->p + at, n);
	}
}

static struct bytes ext, msg, wire;
static struct netpol_tls_hello hello;

static enum netpol_tls_verdict read_cut(size_t size)
{
	put_hello(&msg, &ext);
	cut(&wire, &msg, size);
	return netpol_tls_hello_read(wire.p, wire.n, &hello);
}

START_TEST(hello_read__finds_the_name_across_records)
{
	put_ext(&ext, 0xfe0d, "xx", 2);
	put_sni(&ext, "a.test", 6);
	put_ext(&ext, 16, "\0\x0c\2h2\x08http/1.1", 14);
	put_hello(&msg, &ext);
	for (size_t size = (msg.n + NETPOL_TLS_RECORDS_MAX - 1) / NETPOL_TLS_RECORDS_MAX;
	     size <= msg.n; size++) {
		ck_assert_int_eq(read_cut(size), NETPOL_TLS_HELLO);
		ck_assert_str_eq(hello.name, "a.test");
		ck_assert_uint_eq(hello.name_len, 6);
		ck_assert(hello.ech);
		ck_assert_str_eq(hello.alpn, "h2,http/1.1");
		for (size_t have = 0; have < wire.n; have++)
			ck_assert_int_eq(netpol_tls_hello_read(wire.p, have, &hello),
					 NETPOL_TLS_MORE);
	}
	ck_assert_int_eq(read_cut(1), NETPOL_TLS_MALFORMED); /* too many records */
}
END_TEST

START_TEST(hello_read__takes_a_hello_without_names)
{
	put_hello(&msg, NULL);
	cut(&wire, &msg, msg.n);
	ck_assert_int_eq(netpol_tls_hello_read(wire.p, wire.n, &hello), NETPOL_TLS_HELLO);
	ck_assert_uint_eq(hello.name_len, 0);
	ck_assert(!hello.ech);
	ck_assert_int_eq(read_cut(100), NETPOL_TLS_HELLO); /* an empty extension block */
	ck_assert_uint_eq(hello.name_len, 0);
}
END_TEST

/* What follows the hello in later records is not looked at. */
START_TEST(hello_read__stops_behind_the_message)
{
	put_sni(&ext, "a.test", 6);
	put_hello(&msg, &ext);
	cut(&wire, &msg, msg.n);
	put(&wire, "\x14\x03\x03\0\1\1garbage", 13);
	ck_assert_int_eq(netpol_tls_hello_read(wire.p, wire.n, &hello), NETPOL_TLS_HELLO);
}
END_TEST

/* One byte of a good hello changed. */
static const struct {
	size_t at;
	uint8_t byte;
	enum netpol_tls_verdict verdict;
} BYTES[] = {
	{ 0, 23, NETPOL_TLS_NOT_TLS },     { 0, 'G', NETPOL_TLS_NOT_TLS },
	{ 1, 2, NETPOL_TLS_NOT_TLS },      { 2, 5, NETPOL_TLS_MALFORMED },
	{ 3, 0x40, NETPOL_TLS_MALFORMED }, /* record too large: 0x40xx > 2^14 */
	{ 5, 2, NETPOL_TLS_MALFORMED },    /* a ServerHello */
	{ 6, 1, NETPOL_TLS_MALFORMED },    /* message over 16 KiB */
	{ 9, 2, NETPOL_TLS_MALFORMED },    /* legacy_version 2.3 */
	{ 43, 33, NETPOL_TLS_MALFORMED },  /* session id of 33 */
	{ 45, 1, NETPOL_TLS_MALFORMED },   /* odd cipher suites */
	{ 45, 0, NETPOL_TLS_MALFORMED },   /* none */
	{ 48, 0, NETPOL_TLS_MALFORMED },   /* no compression method */
	{ 51, 14, NETPOL_TLS_MALFORMED },  /* extension block one too short */
	{ 51, 16, NETPOL_TLS_MALFORMED },  /* and too long */
	{ 55, 10, NETPOL_TLS_MALFORMED },  /* extension one too short */
	{ 55, 12, NETPOL_TLS_MALFORMED },  /* and too long */
	{ 57, 8, NETPOL_TLS_MALFORMED },   /* name list */
	{ 57, 10, NETPOL_TLS_MALFORMED },  { 58, 1, NETPOL_TLS_MALFORMED }, /* name type */
	{ 60, 0, NETPOL_TLS_MALFORMED },                                    /* empty name */
	{ 60, 5, NETPOL_TLS_MALFORMED },   { 60, 7, NETPOL_TLS_MALFORMED },
};

START_TEST(hello_read__refuses_what_does_not_fit)
{
	put_sni(&ext, "a.test", 6);
	ck_assert_int_eq(read_cut(1000), NETPOL_TLS_HELLO);
	ck_assert_int_ne(wire.p[BYTES[_i].at], BYTES[_i].byte);
	wire.p[BYTES[_i].at] = BYTES[_i].byte;
	ck_assert_int_eq(netpol_tls_hello_read(wire.p, wire.n, &hello), BYTES[_i].verdict);
}
END_TEST

START_TEST(hello_read__refuses_two_names)
{
	put_sni(&ext, "a.test", 6);
	put_sni(&ext, "b.test", 6);
	ck_assert_int_eq(read_cut(1000), NETPOL_TLS_MALFORMED);
	ext.n = 0;
	put_ext(&ext, 0, "\0\x0c\0\0\3abc\0\0\3def", 14);
	ck_assert_int_eq(read_cut(1000), NETPOL_TLS_MALFORMED);
	ext.n = 0;
	put_ext(&ext, 0, "\0\0", 2);
	ck_assert_int_eq(read_cut(1000), NETPOL_TLS_MALFORMED);
	ext.n = 0;
	put_ext(&ext, 16, "\0\1\0", 3); /* an empty protocol */
	ck_assert_int_eq(read_cut(1000), NETPOL_TLS_MALFORMED);
}
END_TEST

START_TEST(hello_read__refuses_an_empty_record)
{
	put_sni(&ext, "a.test", 6);
	ck_assert_int_eq(read_cut(1000), NETPOL_TLS_HELLO);
	memmove(wire.p + 5, wire.p, wire.n);
	wire.n += 5;
	memcpy(wire.p, "\x16\3\1\0\0", 5);
	ck_assert_int_eq(netpol_tls_hello_read(wire.p, wire.n, &hello), NETPOL_TLS_MALFORMED);
}
END_TEST

START_TEST(hello_read__refuses_bytes_behind_the_message)
{
	put_sni(&ext, "a.test", 6);
	put_hello(&msg, &ext);
	put8(&msg, 0);
	cut(&wire, &msg, msg.n);
	ck_assert_int_eq(netpol_tls_hello_read(wire.p, wire.n, &hello), NETPOL_TLS_MALFORMED);
}
END_TEST

/* A name's bytes are not judged here, only kept whole: NUL must not end it. */
START_TEST(hello_read__keeps_odd_names)
{
	put_sni(&ext, "a\0.allowed.test", 15);
	ck_assert_int_eq(read_cut(1000), NETPOL_TLS_HELLO);
	ck_assert_uint_eq(hello.name_len, 15);
	ck_assert_mem_eq(hello.name, "a\0.allowed.test", 15);
}
END_TEST

START_TEST(hello_read__holds_its_limits)
{
	static uint8_t zeros[NETPOL_TLS_HELLO_MAX];
	size_t fixed;

	for (size_t n = NETPOL_TLS_NAME_MAX - 1; n <= NETPOL_TLS_NAME_MAX + 1; n++) {
		ext.n = 0;
		put_sni(&ext, memset(zeros, 'a', n), n);
		ck_assert_int_eq(read_cut(1000),
				 n > NETPOL_TLS_NAME_MAX ? NETPOL_TLS_MALFORMED : NETPOL_TLS_HELLO);
	}
	ext.n = 0;
	put_hello(&msg, &ext);
	fixed = msg.n + 4;
	for (size_t n = NETPOL_TLS_HELLO_MAX - 1; n <= NETPOL_TLS_HELLO_MAX + 1; n++) {
		ext.n = 0;
		put_ext(&ext, 21, zeros, n - fixed);
		ck_assert_int_eq(read_cut(NETPOL_TLS_RECORD_MAX), n > NETPOL_TLS_HELLO_MAX
									  ? NETPOL_TLS_MALFORMED
									  : NETPOL_TLS_HELLO);
	}
	for (unsigned n = NETPOL_TLS_EXTENSIONS_MAX - 1; n <= NETPOL_TLS_EXTENSIONS_MAX + 1; n++) {
		ext.n = 0;
		for (unsigned i = 0; i < n; i++)
			put_ext(&ext, 1000 + i, "", 0);
		ck_assert_int_eq(read_cut(1000), n > NETPOL_TLS_EXTENSIONS_MAX
							 ? NETPOL_TLS_MALFORMED
							 : NETPOL_TLS_HELLO);
	}
}
END_TEST

START_TEST(hello_read__cuts_alpn)
{
	static uint8_t list[2 + 256];

	memset(list, 'x', sizeof(list));
	list[0] = 0;
	list[1] = 201;
	list[2] = 200;
	list[3] = '"';
	list[4] = ' ';
	put_ext(&ext, 16, list, 203);
	ck_assert_int_eq(read_cut(1000), NETPOL_TLS_HELLO);
	ck_assert_uint_eq(strlen(hello.alpn), NETPOL_TLS_ALPN_MAX);
	ck_assert(aqe_starts(hello.alpn, "\"?xx"));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("netpolicy/tls_hello");
	TCase *t = tcase_create("tls_hello");

	tcase_add_test(t, hello_read__finds_the_name_across_records);
	tcase_add_test(t, hello_read__takes_a_hello_without_names);
	tcase_add_test(t, hello_read__stops_behind_the_message);
	tcase_add_loop_test(t, hello_read__refuses_what_does_not_fit, 0, (int)AQE_COUNT(BYTES));
	tcase_add_test(t, hello_read__refuses_two_names);
	tcase_add_test(t, hello_read__refuses_an_empty_record);
	tcase_add_test(t, hello_read__refuses_bytes_behind_the_message);
	tcase_add_test(t, hello_read__keeps_odd_names);
	tcase_add_test(t, hello_read__holds_its_limits);
	tcase_add_test(t, hello_read__cuts_alpn);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
