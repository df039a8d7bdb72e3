/* SPDX-License-Identifier: MIT */
#include "netpolicy/dns.h"

#include <stdlib.h>
#include <string.h>

#include "shim/core/text.h"
#include "tests/unit/unit.h"

#define B(s)                        s, sizeof(s) - 1

#define HEAD(flags, qd, an, ns, ar) "\x12\x34" flags "\0" qd "\0" an "\0" ns "\0" ar
#define QUERY                       HEAD("\1\0", "\1", "\0", "\0", "\0")
#define QUERY_OPT                   HEAD("\1\0", "\1", "\0", "\0", "\1")
#define NAME                        "\1a\4TeSt\0"
#define ASK_A                       NAME "\0\1\0\1"
#define OPT                         "\0\0\x29\x04\xd0\0\0\0\0\0\0"
#define LABEL_63 \
	"\x3f"   \
	"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk"

static const struct {
	const char *bytes;
	size_t n;
	enum netpol_dns_verdict verdict;
	enum netpol_dns_rcode rcode;
	const char *name;
} QUERIES[] = {
	{ B(QUERY ASK_A), NETPOL_DNS_ASK, 0, "a.TeSt" },
	{ B(QUERY NAME "\0\x1c\0\xff"), NETPOL_DNS_ASK, 0, "a.TeSt" }, /* class ANY */
	{ B(QUERY "\0\0\2\0\1"), NETPOL_DNS_ASK, 0, "" },              /* the root */
	{ B(QUERY_OPT ASK_A OPT), NETPOL_DNS_ASK, 0, "a.TeSt" },
	{ B(QUERY_OPT ASK_A "\0\0\x29\x04\xd0\0\0\0\0\0\4\0\x0a\0\0"), NETPOL_DNS_ASK, 0, NULL },
	{ B(QUERY LABEL_63 LABEL_63 LABEL_63
	    "\x3d"
	    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghi\0\0\1\0\1"),
	  NETPOL_DNS_ASK, 0, NULL }, /* 255 octets */
	{ B(QUERY LABEL_63 LABEL_63 LABEL_63
	    "\x3e"
	    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghij\0\0\1\0\1"),
	  NETPOL_DNS_BAD, NETPOL_DNS_FORMERR, NULL }, /* 256 */
	/* no query at all */
	{ B(""), NETPOL_DNS_DROP, 0, NULL },
	{ "\x12\x34\1\0\0\1\0\0\0\0\0", 11, NETPOL_DNS_DROP, 0, NULL },
	{ B(HEAD("\x81\0", "\1", "\0", "\0", "\0") ASK_A), NETPOL_DNS_DROP, 0, NULL },
	/* other operations, counts, records */
	{ B(HEAD("\x29\0", "\1", "\0", "\0", "\0") ASK_A), NETPOL_DNS_BAD, NETPOL_DNS_NOTIMP,
	  NULL }, /* UPDATE */
	{ B(HEAD("\3\0", "\1", "\0", "\0", "\0") ASK_A), NETPOL_DNS_BAD, NETPOL_DNS_FORMERR, NULL },
	{ B(HEAD("\1\0", "\0", "\0", "\0", "\0")), NETPOL_DNS_BAD, NETPOL_DNS_FORMERR, NULL },
	{ B(HEAD("\1\0", "\2", "\0", "\0", "\0") ASK_A ASK_A), NETPOL_DNS_BAD, NETPOL_DNS_FORMERR,
	  NULL },
	{ B(HEAD("\1\0", "\1", "\1", "\0", "\0") ASK_A), NETPOL_DNS_BAD, NETPOL_DNS_FORMERR, NULL },
	{ B(HEAD("\1\0", "\1", "\0", "\1", "\0") ASK_A), NETPOL_DNS_BAD, NETPOL_DNS_FORMERR, NULL },
	{ B(HEAD("\1\0", "\1", "\0", "\0", "\2") ASK_A OPT OPT), NETPOL_DNS_BAD, NETPOL_DNS_FORMERR,
	  NULL },
	{ B(QUERY_OPT ASK_A), NETPOL_DNS_BAD, NETPOL_DNS_FORMERR, NULL },
	{ B(QUERY ASK_A OPT), NETPOL_DNS_BAD, NETPOL_DNS_FORMERR, NULL },
	{ B(QUERY ASK_A "x"), NETPOL_DNS_BAD, NETPOL_DNS_FORMERR, NULL },
	{ B(QUERY_OPT ASK_A OPT "x"), NETPOL_DNS_BAD, NETPOL_DNS_FORMERR, NULL },
	{ B(QUERY_OPT ASK_A "\0\0\1\0\1\0\0\0\0\0\0"), NETPOL_DNS_BAD, NETPOL_DNS_FORMERR, NULL },
	{ B(QUERY_OPT ASK_A "\0\0\x29\x04\xd0\0\1\0\0\0\0"), NETPOL_DNS_BAD, NETPOL_DNS_BADVERS,
	  NULL },
	{ B(QUERY NAME "\0\1\0\3"), NETPOL_DNS_BAD, NETPOL_DNS_REFUSED, NULL }, /* CHAOS */
	/* names */
	{ B(QUERY "\xc0\x0c\0\1\0\1"), NETPOL_DNS_BAD, NETPOL_DNS_FORMERR, NULL },
	{ B(QUERY "\1a\xc0\x0c\0\1\0\1"), NETPOL_DNS_BAD, NETPOL_DNS_FORMERR, NULL },
	{ B(QUERY "\x40"
		  "abc\0\0\1\0\1"),
	  NETPOL_DNS_BAD, NETPOL_DNS_FORMERR, NULL },
	{ B(QUERY "\5ab"), NETPOL_DNS_BAD, NETPOL_DNS_FORMERR, NULL },
	{ B(QUERY "\2ab"), NETPOL_DNS_BAD, NETPOL_DNS_FORMERR, NULL },
	{ B(QUERY "\2ab\0\0\1\0"), NETPOL_DNS_BAD, NETPOL_DNS_FORMERR, NULL },
};

START_TEST(query_read__judges_messages)
{
	struct netpol_dns_query q;
	enum netpol_dns_rcode rcode = 0;
	enum netpol_dns_verdict v = netpol_dns_query_read((const uint8_t *)QUERIES[_i].bytes,
							  QUERIES[_i].n, &q, &rcode);

	ck_assert_int_eq(v, QUERIES[_i].verdict);
	if (v == NETPOL_DNS_BAD)
		ck_assert_int_eq(rcode, QUERIES[_i].rcode);
	if (v == NETPOL_DNS_ASK)
		ck_assert(q.plain);
	if (QUERIES[_i].name)
		ck_assert_str_eq(q.name, QUERIES[_i].name);
}
END_TEST

/* Each prefix of a good query is refused, and nothing behind it is read. */
START_TEST(query_read__needs_the_whole_message)
{
	static const char good[] = QUERY_OPT ASK_A OPT;
	struct netpol_dns_query q;
	enum netpol_dns_rcode rcode;

	for (size_t n = 0; n < sizeof(good) - 1; n++) {
		uint8_t *copy = malloc(n + 1);

		ck_assert_ptr_nonnull(copy);
		memcpy(copy, good, n);
		ck_assert_int_eq(netpol_dns_query_read(copy, n, &q, &rcode),
				 n < 12 ? NETPOL_DNS_DROP : NETPOL_DNS_BAD);
		free(copy);
	}
}
END_TEST

START_TEST(query_read__holds_its_limit)
{
	static uint8_t bytes[NETPOL_DNS_QUERY_MAX + 1];
	struct netpol_dns_query q;
	enum netpol_dns_rcode rcode;
	size_t opt = sizeof(QUERY_OPT ASK_A) - 1;

	memcpy(bytes, QUERY_OPT ASK_A OPT, sizeof(QUERY_OPT ASK_A OPT) - 1);
	for (size_t n = NETPOL_DNS_QUERY_MAX - 1; n <= NETPOL_DNS_QUERY_MAX + 1; n++) {
		bytes[opt + 9] = (uint8_t)((n - opt - 11) >> 8);
		bytes[opt + 10] = (uint8_t)(n - opt - 11);
		ck_assert_int_eq(netpol_dns_query_read(bytes, n, &q, &rcode),
				 n > NETPOL_DNS_QUERY_MAX ? NETPOL_DNS_DROP : NETPOL_DNS_ASK);
	}
}
END_TEST

/* A dot or a NUL inside a label must not look like another name. */
START_TEST(query_read__tells_plain_names)
{
	static const struct {
		const char *bytes;
		size_t n;
		bool plain;
	} cases[] = {
		{ B(QUERY "\x0c"
			  "allowed.test\0\0\1\0\1"),
		  false },
		{ B(QUERY "\2a\0\4test\0\0\1\0\1"), false },
		{ B(QUERY "\2\xc3\xa9\4test\0\0\1\0\1"), false },
		{ B(QUERY "\4_a-9\4test\0\0\1\0\1"), true },
	};
	struct netpol_dns_query q;
	enum netpol_dns_rcode rcode;

	for (size_t i = 0; i < AQE_COUNT(cases); i++) {
		ck_assert_int_eq(netpol_dns_query_read((const uint8_t *)cases[i].bytes, cases[i].n,
						       &q, &rcode),
				 NETPOL_DNS_ASK);
		ck_assert_int_eq(q.plain, cases[i].plain);
	}
}
END_TEST

#define REPLY(flags, an, ar) "\x12\x34\x81" flags "\0\1\0" an "\0\0\0" ar
static const struct {
	const char *query;
	size_t query_n;
	enum netpol_dns_rcode rcode;
	bool address;
	const char *answer;
	size_t answer_n;
} ANSWERS[] = {
	{ B(QUERY ASK_A), NETPOL_DNS_NOERROR, true,
	  B(REPLY("\x80", "\1", "\0") ASK_A "\xc0\x0c\0\1\0\1\0\0\0\5\0\4\x7f\x42\0\1") },
	{ B(QUERY_OPT ASK_A OPT), NETPOL_DNS_NOERROR, true,
	  B(REPLY("\x80", "\1", "\1") ASK_A "\xc0\x0c\0\1\0\1\0\0\0\5\0\4\x7f\x42\0\1" OPT) },
	{ B(QUERY NAME "\0\x1c\0\1"), NETPOL_DNS_NOERROR, false,
	  B(REPLY("\x80", "\0", "\0") NAME "\0\x1c\0\1") },
	{ B(QUERY ASK_A), NETPOL_DNS_NXDOMAIN, false, B(REPLY("\x83", "\0", "\0") ASK_A) },
	{ B(QUERY_OPT ASK_A "\0\0\x29\x04\xd0\0\1\0\0\0\0"), NETPOL_DNS_BADVERS, false,
	  B(REPLY("\x80", "\0", "\1") ASK_A "\0\0\x29\x04\xd0\1\0\0\0\0\0") },
	{ B(QUERY "\xc0\x0c\0\1\0\1"), NETPOL_DNS_FORMERR, false,
	  B("\x12\x34\x81\x81\0\0\0\0\0\0\0\0") },
	{ B(HEAD("\x28\0", "\1", "\0", "\0", "\0")), NETPOL_DNS_NOTIMP, false,
	  B("\x12\x34\xa8\x84\0\0\0\0\0\0\0\0") },
};

START_TEST(answer__is_exact)
{
	static const uint8_t addr[4] = { 127, 66, 0, 1 };
	const uint8_t *p = (const uint8_t *)ANSWERS[_i].query;
	struct netpol_dns_query q;
	enum netpol_dns_rcode rcode;
	uint8_t out[NETPOL_DNS_ANSWER_MAX];
	size_t n;

	ck_assert_int_ne(netpol_dns_query_read(p, ANSWERS[_i].query_n, &q, &rcode),
			 NETPOL_DNS_DROP);
	n = netpol_dns_answer(&q, p, ANSWERS[_i].rcode, ANSWERS[_i].address ? addr : NULL, out);
	ck_assert_uint_eq(n, ANSWERS[_i].answer_n);
	ck_assert_mem_eq(out, ANSWERS[_i].answer, n);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("netpolicy/dns");
	TCase *t = tcase_create("dns");

	tcase_add_loop_test(t, query_read__judges_messages, 0, (int)AQE_COUNT(QUERIES));
	tcase_add_test(t, query_read__needs_the_whole_message);
	tcase_add_test(t, query_read__holds_its_limit);
	tcase_add_test(t, query_read__tells_plain_names);
	tcase_add_loop_test(t, answer__is_exact, 0, (int)AQE_COUNT(ANSWERS));
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
