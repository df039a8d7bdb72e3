/* SPDX-License-Identifier: MIT */
#include "netpolicy/http1_chunk.h"

#include <stdlib.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "tests/unit/http1_util.h"
#include "tests/unit/unit.h"

struct decoded {
	struct aqe_buf body;
	size_t used;
};

/* Decodes `p` in pieces of `step` bytes. */
static enum netpol_h1_step decode(const char *p, size_t n, size_t step, struct decoded *d)
{
	struct netpol_h1_chunks c;
	enum netpol_h1_step s = NETPOL_H1_MORE;

	netpol_h1_chunks_init(&c);
	aqe_buf_clear(&d->body);
	d->used = 0;
	while (s == NETPOL_H1_MORE && d->used < n) {
		size_t have = n - d->used < step ? n - d->used : step, used, data;

		s = netpol_h1_chunks_next(&c, p + d->used, have, &used, &data);
		ck_assert_uint_le(data, used);
		ck_assert_uint_le(used, have);
		(void)aqe_buf_add(&d->body, p + d->used + used - data, data);
		d->used += used;
	}
	return s;
}

static const struct {
	const char *text;
	enum netpol_h1_step step;
	const char *body;
	size_t behind; /* bytes that belong to the next message */
} BODIES[] = {
	{ "0\r\n\r\n", NETPOL_H1_DONE, "", 0 },
	{ "5\r\nhello\r\n0\r\n\r\n", NETPOL_H1_DONE, "hello", 0 },
	{ "5\r\nhello\r\n0\r\n\r\nGET ", NETPOL_H1_DONE, "hello", 4 },
	{ "1\r\na\r\n2\r\nbc\r\n00\r\n\r\n", NETPOL_H1_DONE, "abc", 0 },
	{ "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", NETPOL_H1_DONE, "01234567890123456789",
	  0 },
	{ "5;x=\"y z\";w\r\nhello\r\n0;last\r\n\r\n", NETPOL_H1_DONE, "hello", 0 },
	{ "0\r\nHost: evil.test\r\nX-T:\r\n\r\n", NETPOL_H1_DONE, "", 0 },
	{ "5\r\nhel", NETPOL_H1_MORE, "hel", 0 },
	{ "5\r\nhello\r\n", NETPOL_H1_MORE, "hello", 0 },
	{ "\r\n", NETPOL_H1_BAD, "", 0 },
	{ ";x\r\n", NETPOL_H1_BAD, "", 0 },
	{ "5g\r\nhello\r\n", NETPOL_H1_BAD, "", 0 },
	{ "5 \r\nhello\r\n", NETPOL_H1_BAD, "", 0 },
	{ " 5\r\nhello\r\n", NETPOL_H1_BAD, "", 0 },
	{ "+5\r\nhello\r\n", NETPOL_H1_BAD, "", 0 },
	{ "-5\r\nhello\r\n", NETPOL_H1_BAD, "", 0 },
	{ "0x5\r\nhello\r\n", NETPOL_H1_BAD, "", 0 },
	{ "5\nhello\r\n", NETPOL_H1_BAD, "", 0 },
	{ "5\r\r\nhello\r\n", NETPOL_H1_BAD, "", 0 },
	{ "5;\x01\r\nhello\r\n", NETPOL_H1_BAD, "", 0 },
	{ "5;x\nhello\r\n", NETPOL_H1_BAD, "", 0 },
	{ "5\r\nhello\n0\r\n\r\n", NETPOL_H1_BAD, "hello", 0 },
	{ "5\r\nhello!\r\n0\r\n\r\n", NETPOL_H1_BAD, "hello", 0 },
	{ "5\r\nhello\r0\r\n\r\n", NETPOL_H1_BAD, "hello", 0 },
	{ "0\n\r\n", NETPOL_H1_BAD, "", 0 },
	{ "0\r\n\n", NETPOL_H1_BAD, "", 0 },
	{ "0\r\n\rx", NETPOL_H1_BAD, "", 0 },
	{ "0\r\nX\r\n\r\n", NETPOL_H1_BAD, "", 0 },
	{ "0\r\nX Y: z\r\n\r\n", NETPOL_H1_BAD, "", 0 },
	{ "0\r\n X: z\r\n\r\n", NETPOL_H1_BAD, "", 0 },
	{ "0\r\n: z\r\n\r\n", NETPOL_H1_BAD, "", 0 },
	{ "0\r\nX: z\n\r\n", NETPOL_H1_BAD, "", 0 },
	{ "0\r\nX: \x01\r\n\r\n", NETPOL_H1_BAD, "", 0 },
	{ "fffffffffffffff\r\n", NETPOL_H1_MORE, "", 0 },
	{ "1000000000000000\r\n", NETPOL_H1_BAD, "", 0 },
	{ "0000000000000005\r\nhello\r\n", NETPOL_H1_BAD, "", 0 },
};

START_TEST(chunks_next__decodes_in_any_pieces)
{
	const char *text = BODIES[_i].text;
	struct decoded d = { AQE_BUF_INIT(1 << 16), 0 };

	for (size_t step = 1; step <= strlen(text); step++) {
		ck_assert_int_eq(decode(text, strlen(text), step, &d), BODIES[_i].step);
		ck_assert_str_eq(aqe_buf_str(&d.body), BODIES[_i].body);
		if (BODIES[_i].step == NETPOL_H1_DONE)
			ck_assert_uint_eq(strlen(text) - d.used, BODIES[_i].behind);
	}
	aqe_buf_done(&d.body);
}
END_TEST

static void fill(struct aqe_buf *b, size_t n)
{
	while (n-- > 0)
		(void)aqe_buf_putc(b, 'a');
}

enum limit { EXT, TRAILER, FIELDS };
static const size_t LIMITS[] = {
	[EXT] = NETPOL_H1_CHUNK_EXT_MAX,
	[TRAILER] = NETPOL_H1_TRAILER_MAX,
	[FIELDS] = NETPOL_H1_TRAILER_FIELDS_MAX,
};

START_TEST(chunks_next__holds_its_limits)
{
	struct decoded d = { AQE_BUF_INIT(1 << 16), 0 };

	for (size_t size = LIMITS[_i] - 1; size <= LIMITS[_i] + 1; size++) {
		AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 16);

		(void)aqe_buf_putc(&b, '0');
		if (_i == EXT) {
			(void)aqe_buf_putc(&b, ';');
			fill(&b, size - 1);
		}
		(void)aqe_buf_puts(&b, "\r\n");
		if (_i == TRAILER) {
			(void)aqe_buf_puts(&b, "X:");
			fill(&b, size - 2 - 2 - 2);
			(void)aqe_buf_puts(&b, "\r\n");
		}
		for (size_t i = 0; _i == FIELDS && i < size; i++)
			(void)aqe_buf_puts(&b, "X:\r\n");
		(void)aqe_buf_puts(&b, "\r\n");
		ck_assert_int_eq(decode(b.p, b.len, b.len, &d),
				 size > LIMITS[_i] ? NETPOL_H1_BAD : NETPOL_H1_DONE);
	}
	aqe_buf_done(&d.body);
}
END_TEST

/* Once bad or done it stays so, and takes nothing more. */
START_TEST(chunks_next__stays_at_its_end)
{
	struct netpol_h1_chunks c;
	size_t used, data;

	netpol_h1_chunks_init(&c);
	ck_assert_int_eq(netpol_h1_chunks_next(&c, "x", 1, &used, &data), NETPOL_H1_BAD);
	ck_assert_int_eq(netpol_h1_chunks_next(&c, "0\r\n\r\n", 5, &used, &data), NETPOL_H1_BAD);
	ck_assert_uint_eq(used, 0);
	netpol_h1_chunks_init(&c);
	ck_assert_int_eq(netpol_h1_chunks_next(&c, "0\r\n\r\n", 5, &used, &data), NETPOL_H1_DONE);
	ck_assert_int_eq(netpol_h1_chunks_next(&c, "0\r\n\r\n", 5, &used, &data), NETPOL_H1_DONE);
	ck_assert_uint_eq(used, 0);
}
END_TEST

START_TEST(chunk_head__is_read_back)
{
	static const size_t sizes[] = { 1, 9, 10, 15, 16, 65536, 0xfffffffffffffff };
	char head[NETPOL_H1_CHUNK_HEAD_MAX + 1];
	struct netpol_h1_chunks c;
	size_t used, data, n;

	for (size_t i = 0; i < AQE_COUNT(sizes); i++) {
		n = netpol_h1_chunk_head(head, sizes[i]);
		ck_assert_uint_eq(n, strlen(head));
		netpol_h1_chunks_init(&c);
		ck_assert_int_eq(netpol_h1_chunks_next(&c, head, n, &used, &data), NETPOL_H1_MORE);
		ck_assert_uint_eq(used, n);
		ck_assert_uint_eq(c.left, sizes[i]);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("netpolicy/http1_chunk");
	TCase *t = tcase_create("http1_chunk");

	tcase_add_loop_test(t, chunks_next__decodes_in_any_pieces, 0, (int)AQE_COUNT(BODIES));
	tcase_add_loop_test(t, chunks_next__holds_its_limits, 0, (int)AQE_COUNT(LIMITS));
	tcase_add_test(t, chunks_next__stays_at_its_end);
	tcase_add_test(t, chunk_head__is_read_back);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
