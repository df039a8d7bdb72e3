/* SPDX-License-Identifier: MIT */
#include "cache/request.h"

#include <stdio.h>

#include "shim/core/text.h"
#include "tests/unit/unit.h"

#define HOST "Host: 127.0.0.1:3130\r\n"

static const struct {
	const char *text;
	const char *method, *path, *body;
	bool keep, expects;
	size_t left; /* bytes after the request */
} GOOD[] = {
	{ "GET / HTTP/1.1\r\n" HOST "\r\n", "GET", "/", "", true, false, 0 },
	{ "GET /api/tags?x=/1 HTTP/1.1\r\n" HOST "\r\nGET", "GET", "/api/tags", "", true, false,
	  3 },
	{ "POST /a HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhelloX", "POST", "/a", "hello",
	  true, false, 1 },
	{ "POST /a HTTP/1.1\r\n" HOST "content-LENGTH:\t 0005 \r\n\r\nhello", "POST", "/a", "hello",
	  true, false, 0 },
	{ "POST /a HTTP/1.1\r\n" HOST "Content-Length: 0\r\nConnection: x, Close\r\n\r\n", "POST",
	  "/a", "", false, false, 0 },
	{ "POST /a HTTP/1.0\r\nContent-Length: 1\r\n\r\nx", "POST", "/a", "x", false, false, 0 },
	{ "POST /a HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx", "POST", "/a",
	  "x", true, false, 0 },
	{ "POST /a HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx", "POST",
	  "/a", "x", true, true, 0 },
	{ "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	  "5\r\nhello\r\n1;ext=\"x\"\r\n \r\n5\r\nworld\r\n0\r\n\r\n",
	  "POST", "/a", "hello world", true, false, 0 },
	{ "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	  "00A\r\n0123456789\r\n000\r\nX-Trailer: 1\r\nY: 2\r\n\r\nnext",
	  "POST", "/a", "0123456789", true, false, 4 },
	{ "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "POST", "/a",
	  "", true, false, 0 },
	{ "PUT /a%20b~!$&'()*+,;=:@ HTTP/1.1\r\n" HOST "Content-Encoding: identity\r\n\r\n", "PUT",
	  "/a%20b~!$&'()*+,;=:@", "", true, false, 0 },
};

/* The same whether the bytes come at once or one by one. */
START_TEST(parse__takes)
{
	const char *text = GOOD[_i].text;
	const size_t len = strlen(text), whole = len - GOOD[_i].left;
	struct cache_request r = CACHE_REQUEST_INIT;
	size_t used = 0;

	for (size_t n = _i % 2 ? len : 0; n <= len && used == 0; n++) {
		ck_assert_int_eq(cache_request_parse(&r, text, n, &used), 0);
		ck_assert(used == 0 || used == whole);
	}
	ck_assert_uint_eq(used, whole);
	cache_request_clear(&r);
	used = 0;
	for (size_t n = 0; n <= len && used == 0; n++)
		ck_assert_int_eq(cache_request_parse(&r, text, n, &used), 0);
	ck_assert_uint_eq(used, whole);
	ck_assert_str_eq(r.method, GOOD[_i].method);
	ck_assert_str_eq(r.path, GOOD[_i].path);
	ck_assert_str_eq(aqe_buf_str(&r.body), GOOD[_i].body);
	ck_assert_uint_eq(r.body.len, strlen(GOOD[_i].body));
	ck_assert_int_eq(r.keep, GOOD[_i].keep);
	ck_assert_int_eq(r.expects, GOOD[_i].expects);
	cache_request_done(&r);
}
END_TEST

static const struct {
	const char *text;
	int status;
} BAD[] = {
	{ "\r\n", 400 },
	{ " / HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "GET\r\n\r\n", 400 },
	{ "GET  / HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "GET /a b HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "GET http://x/ HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "G@T / HTTP/1.1\r\n" HOST "\r\n", 400 },
	{ "PROPFINDX / HTTP/1.1\r\n" HOST "\r\n", 501 },
	{ "GET / HTTP/2.0\r\n" HOST "\r\n", 505 },
	{ "GET / HTTP/1.2\r\n" HOST "\r\n", 505 },
	{ "GET / HTTPS/1.1\r\n" HOST "\r\n", 400 },
	{ "GET / HTTP/1.1\n" HOST "\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" HOST "A: b\nC: d\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" HOST "A: b\rC\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n\r\n", 400 }, /* no Host */
	{ "GET / HTTP/1.1\r\n" HOST HOST "\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" HOST "A : b\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" HOST ": b\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n", 400 }, /* folded */
	{ "GET / HTTP/1.1\r\n" HOST "nocolon\r\n\r\n", 400 },
	{ "POST / HTTP/1.1\r\n" HOST "\r\n", 411 },
	{ "POST / HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\n", 400 },
	{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\n", 400 },
	{ "POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n", 400 },
	{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400 },
	{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 8388609\r\n\r\n", 413 },
	{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999\r\n\r\n", 400 },
	{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
	  400 },
	{ "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400 },
	{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501 },
	{ "POST / HTTP/1.1\r\n" HOST
	  "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
	  501 },
	{ "POST / HTTP/1.1\r\n" HOST "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\n", 501 },
	{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nx\r\n", 400 },
	{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n-1\r\n", 400 },
	{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n", 400 },
	{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n", 400 },
	{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n", 400 },
	{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n800001\r\n", 413 },
	{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nffffffff\r\n", 413 },
	{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n123456789\r\n", 400 },
	{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\nA\x01: b\r\n\r\n",
	  400 },
	{ "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	  "1;0123456789012345678901234567890123456789012345678901234567890123456789\r\n",
	  400 },
};

START_TEST(parse__refuses)
{
	struct cache_request r = CACHE_REQUEST_INIT;
	const char *text = BAD[_i].text;
	size_t used;
	int status = 0;

	ck_assert_int_eq(cache_request_parse(&r, text, strlen(text), &used), BAD[_i].status);
	ck_assert_uint_eq(used, 0);
	cache_request_clear(&r);
	for (size_t n = 0; n <= strlen(text) && !status; n++)
		status = cache_request_parse(&r, text, n, &used);
	ck_assert_int_eq(status, BAD[_i].status);
	cache_request_done(&r);
}
END_TEST

START_TEST(parse__holds_its_limits)
{
	static char text[CACHE_REQUEST_HEAD_MAX + 100];
	struct cache_request r = CACHE_REQUEST_INIT;
	size_t used, n;

	n = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n" HOST "A: ");
	memset(text + n, 'a', sizeof(text) - n);
	ck_assert_int_eq(cache_request_parse(&r, text, CACHE_REQUEST_HEAD_MAX - 1, &used), 0);
	ck_assert_int_eq(cache_request_parse(&r, text, CACHE_REQUEST_HEAD_MAX, &used), 431);
	cache_request_clear(&r);
	n = (size_t)snprintf(text, sizeof(text), "GET /");
	memset(text + n, 'a', 260);
	snprintf(text + n + 260, 100, " HTTP/1.1\r\n" HOST "\r\n");
	ck_assert_int_eq(cache_request_parse(&r, text, strlen(text), &used), 414);
	cache_request_clear(&r);
	n = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n" HOST);
	for (int i = 0; i < 70; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "A: b\r\n");
	snprintf(text + n, sizeof(text) - n, "\r\n");
	ck_assert_int_eq(cache_request_parse(&r, text, strlen(text), &used), 431);
	cache_request_done(&r);
}
END_TEST

/* Chunks up to the body's limit, and one byte more. */
START_TEST(parse__limits_chunks_together)
{
	struct cache_request r = CACHE_REQUEST_INIT;
	struct aqe_buf b = AQE_BUF_INIT(CACHE_REQUEST_MAX);
	char *mega = calloc(1, 1 << 20);
	size_t used;

	memset(mega, 'x', 1 << 20);
	aqe_buf_puts(&b, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < 8; i++) {
		aqe_buf_puts(&b, "100000\r\n");
		aqe_buf_add(&b, mega, 1 << 20);
		aqe_buf_puts(&b, "\r\n");
	}
	ck_assert_int_eq(cache_request_parse(&r, b.p, b.len, &used), 0);
	aqe_buf_puts(&b, _i == 0 ? "0\r\n\r\n" : "1\r\nx\r\n0\r\n\r\n");
	ck_assert_int_eq(cache_request_parse(&r, b.p, b.len, &used), _i == 0 ? 0 : 413);
	ck_assert(_i == 1 || (used == b.len && r.body.len == CACHE_REQUEST_BODY_MAX));
	cache_request_done(&r);
	aqe_buf_done(&b);
	free(mega);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("request");
	TCase *t = tcase_create("request");

	tcase_add_loop_test(t, parse__takes, 0, AQE_COUNT(GOOD));
	tcase_add_loop_test(t, parse__refuses, 0, AQE_COUNT(BAD));
	tcase_add_test(t, parse__holds_its_limits);
	tcase_add_loop_test(t, parse__limits_chunks_together, 0, 2);
	suite_add_tcase(s, t);
	return unit_run(s);
}
