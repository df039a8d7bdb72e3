/* SPDX-License-Identifier: MIT */
#include "netpolicy/http1_emit.h"

#include <stdlib.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "tests/unit/http1_util.h"
#include "tests/unit/unit.h"

static const struct {
	const char *in, *authority;
	bool websocket;
	const char *out;
} REQUESTS[] = {
	{ "GET http://A.test/x?q HTTP/1.0\r\n\r\n", "a.test", false,
	  "GET /x?q HTTP/1.1\r\nHost: a.test\r\n\r\n" },
	{ "GET http://a.test?q HTTP/1.1\r\nHost: evil.test\r\n\r\n", "a.test:81", false,
	  "GET /?q HTTP/1.1\r\nHost: a.test:81\r\n\r\n" },
	{ "GET http://a.test HTTP/1.2\r\nHost: a.test\r\n\r\n", "a.test", false,
	  "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n" },
	{ "OPTIONS http://a.test HTTP/1.1\r\nHost: a.test\r\nMax-Forwards: 2\r\n\r\n", "a.test",
	  false, "OPTIONS * HTTP/1.1\r\nHost: a.test\r\nMax-Forwards: 1\r\n\r\n" },
	{ "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: X-Secret, close\r\n"
	  "X-Secret: 1\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\n"
	  "Keep-Alive: 5\r\nTE: trailers\r\nTrailer: X\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\n"
	  "Via: 1.0 x\r\nX-A:  b \t c \t\r\n\r\n",
	  "a.test", false, "GET / HTTP/1.1\r\nHost: a.test\r\nVia: 1.0 x\r\nX-A: b \t c\r\n\r\n" },
	{ "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 007\r\n\r\n", "a.test",
	  false, "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 7\r\n\r\n" },
	{ "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: CHUNKED\r\n"
	  "Expect: 100-CONTINUE\r\n\r\n",
	  "a.test", false,
	  "POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\n"
	  "Transfer-Encoding: chunked\r\n\r\n" },
	{ "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\n"
	  "Upgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n\r\n",
	  "a.test", true,
	  "GET / HTTP/1.1\r\nHost: a.test\r\nSec-WebSocket-Key: eA==\r\n"
	  "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n" },
};

START_TEST(emit_request__writes_it_anew)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(NETPOL_H1_HEAD_MAX);
	const char *in = REQUESTS[_i].in;
	struct http1_util u;

	ck_assert_int_eq(http1_request(&u, NETPOL_H1_PROXY, in, strlen(in)), NETPOL_H1_OK);
	ck_assert_int_eq(netpol_h1_emit_request(&b, &u.head, in, &u.req, REQUESTS[_i].authority,
						REQUESTS[_i].websocket),
			 0);
	ck_assert_str_eq(aqe_buf_str(&b), REQUESTS[_i].out);
	/* What we write, we read; and it means the same. */
	ck_assert_int_eq(http1_request(&u, NETPOL_H1_ORIGIN, b.p, b.len),
			 u.req.options ? NETPOL_H1_TARGET : NETPOL_H1_OK);
}
END_TEST

static const struct {
	const char *in;
	bool to_head;
	enum netpol_h1_framing framing;
	bool close;
	const char *out;
} RESPONSES[] = {
	{ "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nServer: x\r\n\r\n", false, NETPOL_H1_SEND_SAME,
	  false, "HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 5\r\n\r\n" },
	{ "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\nConnection: X-Y\r\nX-Y: 1\r\n\r\n", false,
	  NETPOL_H1_SEND_CLOSE, true, "HTTP/1.1 200 \r\nConnection: close\r\n\r\n" },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nUpgrade: h2\r\nProxy-Authenticate: x\r\n\r\n",
	  true, NETPOL_H1_SEND_SAME, false, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" },
	{ "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", false, NETPOL_H1_SEND_SAME, false,
	  "HTTP/1.1 204 No Content\r\n\r\n" },
	{ "HTTP/1.1 100 Continue\r\n\r\n", false, NETPOL_H1_SEND_SAME, true,
	  "HTTP/1.1 100 Continue\r\n\r\n" },
	{ "HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x"
	  "\r\n\r\n",
	  false, NETPOL_H1_SEND_SAME, false,
	  "HTTP/1.1 101 S\r\nSec-WebSocket-Accept: x\r\nConnection: Upgrade\r\n"
	  "Upgrade: websocket\r\n\r\n" },
};

START_TEST(emit_response__writes_it_anew)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(NETPOL_H1_HEAD_MAX);
	const char *in = RESPONSES[_i].in;
	struct http1_util u;

	ck_assert_int_eq(http1_response(&u, RESPONSES[_i].to_head, in, strlen(in)), NETPOL_H1_OK);
	ck_assert_int_eq(netpol_h1_emit_response(&b, &u.head, in, &u.resp, RESPONSES[_i].framing,
						 RESPONSES[_i].close),
			 0);
	ck_assert_str_eq(aqe_buf_str(&b), RESPONSES[_i].out);
}
END_TEST

START_TEST(emit_request__keeps_the_buffer_s_limit)
{
	static const char in[] = "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n";
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(16);
	struct http1_util u;

	ck_assert_int_eq(http1_request(&u, NETPOL_H1_PROXY, in, strlen(in)), NETPOL_H1_OK);
	ck_assert_int_eq(netpol_h1_emit_request(&b, &u.head, in, &u.req, "a.test", false),
			 AQE_E_LIMIT);
}
END_TEST

START_TEST(emit_answer__says_why)
{
	struct netpol_h1_answer a = { .status = 429,
				      .reason = "rate_limit_exceeded",
				      .host = "a.test",
				      .port = 443,
				      .agent_type = "qe\"x",
				      .rule = "*.test",
				      .request_id = 7,
				      .retry_after_ms = 1001,
				      .close = true };
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(8192);
	const char *body = "{\"error\":\"rate_limit_exceeded\",\"reason\":\"rate_limit_exceeded\","
			   "\"host\":\"a.test\",\"port\":443,\"agent_type\":\"qe\\u0022x\","
			   "\"rule\":\"*.test\",\"retry_after_ms\":1001,\"request_id\":7}\n";
	struct http1_util u;

	ck_assert_int_eq(netpol_h1_emit_answer(&b, &a), 0);
	ck_assert_ptr_nonnull(strstr(b.p, "HTTP/1.1 429 rate_limit_exceeded\r\n"));
	ck_assert_ptr_nonnull(strstr(b.p, "\r\nX-Aqe-Reason: rate_limit_exceeded\r\n"));
	ck_assert_ptr_nonnull(strstr(b.p, "\r\nX-Aqe-Deny: rate_limit_exceeded\r\n"));
	ck_assert_ptr_nonnull(strstr(b.p, "\r\nRetry-After: 2\r\n"));
	ck_assert_ptr_nonnull(strstr(b.p, "\r\nConnection: close\r\n"));
	ck_assert_str_eq(strstr(b.p, "\r\n\r\n") + 4, body);
	ck_assert_int_eq(http1_response(&u, false, b.p, b.len), NETPOL_H1_OK);
	ck_assert_uint_eq(u.resp.length, strlen(body));
	aqe_buf_clear(&b);
	a.head = true;
	ck_assert_int_eq(netpol_h1_emit_answer(&b, &a), 0);
	ck_assert_str_eq(strstr(b.p, "\r\n\r\n"), "\r\n\r\n");
}
END_TEST

START_TEST(retry_after_s__rounds_up_to_at_least_one)
{
	static const uint64_t cases[][2] = { { 0, 1 },      { 1, 1 },
					     { 999, 1 },    { 1000, 1 },
					     { 1001, 2 },   { 60000, 60 },
					     { 59999, 60 }, { UINT64_MAX, UINT64_MAX / 1000 + 1 } };

	for (size_t i = 0; i < AQE_COUNT(cases); i++)
		ck_assert_uint_eq(netpol_h1_retry_after_s(cases[i][0]), cases[i][1]);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("netpolicy/http1_emit");
	TCase *t = tcase_create("http1_emit");

	tcase_add_loop_test(t, emit_request__writes_it_anew, 0, (int)AQE_COUNT(REQUESTS));
	tcase_add_loop_test(t, emit_response__writes_it_anew, 0, (int)AQE_COUNT(RESPONSES));
	tcase_add_test(t, emit_request__keeps_the_buffer_s_limit);
	tcase_add_test(t, emit_answer__says_why);
	tcase_add_test(t, retry_after_s__rounds_up_to_at_least_one);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
