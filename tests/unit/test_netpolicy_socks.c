/* SPDX-License-Identifier: MIT */
#include "netpolicy/socks.h"

#include <stdlib.h>
#include <string.h>

#include "shim/core/text.h"
#include "tests/unit/unit.h"

#define B(s) s, sizeof(s) - 1

static const struct {
	const char *bytes;
	size_t n;
	enum netpol_socks_verdict verdict;
	size_t used;
	const char *answer;
} GREETINGS[] = {
	{ B(""), NETPOL_SOCKS_MORE, 0, NULL },
	{ B("\5"), NETPOL_SOCKS_MORE, 0, NULL },
	{ B("\5\2\0"), NETPOL_SOCKS_MORE, 0, NULL },
	{ B("\5\1\0"), NETPOL_SOCKS_OK, 3, "\5\0" },
	{ B("\5\3\1\2\0rest"), NETPOL_SOCKS_OK, 5, "\5\0" },
	{ B("\5\2\1\2"), NETPOL_SOCKS_REFUSED, 4, "\5\xff" },
	{ B("\5\1\xff"), NETPOL_SOCKS_REFUSED, 3, "\5\xff" },
	{ B("\5\0"), NETPOL_SOCKS_BAD, 0, NULL },
	{ B("\4\1\0\x50\1\2\3\4\0"), NETPOL_SOCKS_BAD, 0, NULL }, /* SOCKS4 */
	{ B("GET / HTTP/1.1"), NETPOL_SOCKS_BAD, 0, NULL },
};

START_TEST(greeting__is_judged)
{
	uint8_t answer[2] = { 0, 0 };
	size_t used = 0;

	ck_assert_int_eq(netpol_socks_greeting((const uint8_t *)GREETINGS[_i].bytes,
					       GREETINGS[_i].n, answer, &used),
			 GREETINGS[_i].verdict);
	ck_assert_uint_eq(used, GREETINGS[_i].used);
	if (GREETINGS[_i].answer)
		ck_assert_mem_eq(answer, GREETINGS[_i].answer, 2);
}
END_TEST

static const struct {
	const char *bytes;
	size_t n;
	enum netpol_socks_verdict verdict;
	enum netpol_socks_reply reply;
	const char *host;
	size_t host_len;
} REQUESTS[] = {
	{ B("\5\1\0\3\6a.test\1\xbb"), NETPOL_SOCKS_OK, NETPOL_SOCKS_SUCCEEDED, B("a.test") },
	{ B("\5\1\0\1\x7f\0\0\1\1\xbb"), NETPOL_SOCKS_OK, NETPOL_SOCKS_SUCCEEDED, B("\x7f\0\0\1") },
	{ B("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\1\xbb"), NETPOL_SOCKS_OK,
	  NETPOL_SOCKS_SUCCEEDED, B("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1") },
	/* NUL in a name: kept whole, for the name's own parser to refuse */
	{ B("\5\1\0\3\x0e"
	    "evil\0.allowed.\1\xbb"),
	  NETPOL_SOCKS_OK, NETPOL_SOCKS_SUCCEEDED, B("evil\0.allowed.") },
	{ B("\5\2\0\3\6a.test\1\xbb"), NETPOL_SOCKS_REFUSED, NETPOL_SOCKS_COMMAND, NULL, 0 },
	{ B("\5\3\0\1\0\0\0\0\0\0"), NETPOL_SOCKS_REFUSED, NETPOL_SOCKS_COMMAND, NULL, 0 },
	{ B("\5\1\0\2"), NETPOL_SOCKS_REFUSED, NETPOL_SOCKS_ADDRESS_TYPE, NULL, 0 },
	{ B("\5\1\0\3\0\1\xbb"), NETPOL_SOCKS_REFUSED, NETPOL_SOCKS_FAILURE, NULL, 0 },
	{ B("\5\1\0\3\6a.test\0\0"), NETPOL_SOCKS_REFUSED, NETPOL_SOCKS_FAILURE, NULL, 0 },
	{ B("\4"), NETPOL_SOCKS_BAD, 0, NULL, 0 },
	{ B("\5\0"), NETPOL_SOCKS_BAD, 0, NULL, 0 },
	{ B("\5\4"), NETPOL_SOCKS_BAD, 0, NULL, 0 },
	{ B("\5\1\1"), NETPOL_SOCKS_BAD, 0, NULL, 0 },
};

START_TEST(request__is_judged)
{
	const uint8_t *p = (const uint8_t *)REQUESTS[_i].bytes;
	enum netpol_socks_reply reply = NETPOL_SOCKS_SUCCEEDED;
	struct netpol_socks_request rq;
	size_t used = 0;

	ck_assert_int_eq(netpol_socks_request(p, REQUESTS[_i].n, &rq, &reply, &used),
			 REQUESTS[_i].verdict);
	if (REQUESTS[_i].verdict == NETPOL_SOCKS_BAD)
		return;
	ck_assert_int_eq(reply, REQUESTS[_i].reply);
	if (!REQUESTS[_i].host)
		return;
	ck_assert_uint_eq(used, REQUESTS[_i].n);
	ck_assert_uint_eq(rq.host_len, REQUESTS[_i].host_len);
	ck_assert_mem_eq(rq.host, REQUESTS[_i].host, rq.host_len);
	ck_assert_uint_eq(rq.port, 443);
	ck_assert_int_eq(rq.name, p[3] == 3);
	ck_assert_int_eq(rq.v6, p[3] == 4);
	for (size_t n = 0; n < REQUESTS[_i].n; n++)
		ck_assert_int_eq(netpol_socks_request(p, n, &rq, &reply, &used), NETPOL_SOCKS_MORE);
}
END_TEST

START_TEST(request__takes_the_longest_name)
{
	uint8_t bytes[NETPOL_SOCKS_REQUEST_MAX] = { 5, 1, 0, 3, 255 };
	enum netpol_socks_reply reply;
	struct netpol_socks_request rq;
	size_t used;

	memset(bytes + 5, 'a', 255);
	bytes[sizeof(bytes) - 1] = 80;
	ck_assert_int_eq(netpol_socks_request(bytes, sizeof(bytes), &rq, &reply, &used),
			 NETPOL_SOCKS_OK);
	ck_assert_uint_eq(used, sizeof(bytes));
	ck_assert_uint_eq(rq.host_len, 255);
}
END_TEST

START_TEST(reply__tells_no_address)
{
	uint8_t out[NETPOL_SOCKS_REPLY_LEN];

	netpol_socks_reply(NETPOL_SOCKS_NOT_ALLOWED, out);
	ck_assert_mem_eq(out, "\5\2\0\1\0\0\0\0\0\0", sizeof(out));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("netpolicy/socks");
	TCase *t = tcase_create("socks");

	tcase_add_loop_test(t, greeting__is_judged, 0, (int)AQE_COUNT(GREETINGS));
	tcase_add_loop_test(t, request__is_judged, 0, (int)AQE_COUNT(REQUESTS));
	tcase_add_test(t, request__takes_the_longest_name);
	tcase_add_test(t, reply__tells_no_address);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
