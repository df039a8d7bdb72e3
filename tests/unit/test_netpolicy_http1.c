/* SPDX-License-Identifier: MIT */
#include "netpolicy/http1.h"

#include <stdlib.h>
#include <string.h>

#include "netpolicy/http1_int.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "tests/unit/http1_util.h"
#include "tests/unit/unit.h"

#define H "Host: a.test\r\n"

static const struct {
	const char *text;
	enum netpol_h1_fault fault;
} PROXY[] = {
	/* request line */
	{ "GET http://a.test/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_OK },
	{ "\r\nGET http://a.test/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_OK },
	{ "\r\n\r\nGET http://a.test/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ "\nGET http://a.test/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ "\rGET http://a.test/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ " GET http://a.test/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ "GET  http://a.test/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ "GET\thttp://a.test/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ "GET http://a.test/  HTTP/1.1\r\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ "GET http://a.test/ HTTP/1.1 \r\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ "GET http://a.test/ HTTP/1.1\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ "GET http://a.test/ HTTP/1.1\r" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ "GET http://a.test/\r\n", NETPOL_H1_REQUEST_LINE },
	{ "GET\r\n", NETPOL_H1_REQUEST_LINE },
	{ "GET http://a.test/ \r\n", NETPOL_H1_REQUEST_LINE },
	{ "G(T http://a.test/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF http://a.test/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_OK },
	{ "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG http://a.test/ HTTP/1.1\r\n" H "\r\n",
	  NETPOL_H1_REQUEST_LINE },
	/* version */
	{ "GET http://a.test/ HTTP/1.9\r\n" H "\r\n", NETPOL_H1_OK },
	{ "GET http://a.test/ HTTP/1.10\r\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ "GET http://a.test/ HTTP/01.1\r\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ "GET http://a.test/ HTTP/1,1\r\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ "GET http://a.test/ HTTP/1\r\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ "GET http://a.test/ HTTP/\r\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ "GET http://a.test/ HTTP\r\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ "GET http://a.test/ HTTPS/1.1\r\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ "GET http://a.test/ HTTP/0.9\r\n" H "\r\n", NETPOL_H1_VERSION },
	{ "GET http://a.test/ HTTP/2\r\n" H "\r\n", NETPOL_H1_VERSION },
	{ "GET http://a.test/ HTTP/3.0\r\n" H "\r\n", NETPOL_H1_VERSION },
	/* absolute-form */
	{ "GET http://a.test HTTP/1.1\r\n" H "\r\n", NETPOL_H1_OK },
	{ "GET http://a.test?x HTTP/1.1\r\n" H "\r\n", NETPOL_H1_OK },
	{ "GET http://a.test/?f[x]=1|2 HTTP/1.1\r\n" H "\r\n", NETPOL_H1_OK },
	{ "GET http://a.test:80/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_OK },
	{ "GET http://[::1]:80/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_OK },
	{ "GET http://a.test#x HTTP/1.1\r\n" H "\r\n", NETPOL_H1_TARGET },
	{ "GET http://a.test/?x#y HTTP/1.1\r\n" H "\r\n", NETPOL_H1_TARGET },
	{ "GET http://a.test\\@b.test/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_TARGET },
	{ "GET http://@a.test/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_TARGET },
	{ "GET http://:80/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_TARGET },
	{ "GET http://[::1/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_TARGET },
	{ "GET http://[::1]x/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_TARGET },
	{ "GET http://a.test:80:80/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_TARGET },
	{ "GET http://a.test:/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_PORT },
	{ "GET http://a.test:0/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_PORT },
	{ "GET http://a.test:080/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_PORT },
	{ "GET http://a.test:8a/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_PORT },
	{ "GET http:///a.test/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_TARGET },
	{ "GET https://a.test/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_TARGET },
	{ "GET ftp://a.test/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_TARGET },
	{ "GET //a.test/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_NOT_PROXY },
	{ "OPTIONS * HTTP/1.1\r\n" H "\r\n", NETPOL_H1_NOT_PROXY },
	{ "GET * HTTP/1.1\r\n" H "\r\n", NETPOL_H1_NOT_PROXY },
	{ "GET http://a.test/\"x HTTP/1.1\r\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	{ "GET http://a.test/<x> HTTP/1.1\r\n" H "\r\n", NETPOL_H1_REQUEST_LINE },
	/* CONNECT */
	{ "CONNECT a.test:65535 HTTP/1.1\r\n" H "\r\n", NETPOL_H1_OK },
	{ "CONNECT a.test:0443 HTTP/1.1\r\n" H "\r\n", NETPOL_H1_PORT },
	{ "CONNECT a.test:443443 HTTP/1.1\r\n" H "\r\n", NETPOL_H1_PORT },
	{ "CONNECT a.test:-1 HTTP/1.1\r\n" H "\r\n", NETPOL_H1_PORT },
	{ "CONNECT [::1] HTTP/1.1\r\n" H "\r\n", NETPOL_H1_PORT_MISSING },
	{ "CONNECT :443 HTTP/1.1\r\n" H "\r\n", NETPOL_H1_TARGET },
	{ "CONNECT ::1:443 HTTP/1.1\r\n" H "\r\n", NETPOL_H1_TARGET },
	{ "CONNECT http://a.test/ HTTP/1.1\r\n" H "\r\n", NETPOL_H1_TARGET },
	{ "CONNECT / HTTP/1.1\r\n" H "\r\n", NETPOL_H1_TARGET },
	{ "Connect a.test:443 HTTP/1.1\r\n" H "\r\n", NETPOL_H1_METHOD_OR_TARGET },
	{ "CONNECT a.test:443 HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", NETPOL_H1_OK },
	{ "CONNECT a.test:443 HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\n", NETPOL_H1_FRAMING },
	{ "CONNECT a.test:443 HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n",
	  NETPOL_H1_FRAMING },
	/* Host */
	{ "GET http://a.test/ HTTP/1.1\r\nHost:\r\n\r\n", NETPOL_H1_HOST_FIELD },
	{ "GET http://a.test/ HTTP/1.1\r\nHost: a.test, b.test\r\n\r\n", NETPOL_H1_HOST_FIELD },
	{ "GET http://a.test/ HTTP/1.1\r\nHost: a.test/\r\n\r\n", NETPOL_H1_HOST_FIELD },
	{ "GET http://a.test/ HTTP/1.1\r\nHost: u@a.test\r\n\r\n", NETPOL_H1_HOST_FIELD },
	{ "GET http://a.test/ HTTP/1.1\r\nHost: a.test:\r\n\r\n", NETPOL_H1_HOST_FIELD },
	{ "GET http://a.test/ HTTP/1.0\r\n\r\n", NETPOL_H1_OK },
	{ "GET http://a.test/ HTTP/1.0\r\n" H H "\r\n", NETPOL_H1_HOST_FIELD },
	/* fields */
	{ "GET http://a.test/ HTTP/1.1\r\n" H "X:\r\n\r\n", NETPOL_H1_OK },
	{ "GET http://a.test/ HTTP/1.1\r\n" H "X: \x80\xff\r\n\r\n", NETPOL_H1_OK },
	{ "GET http://a.test/ HTTP/1.1\r\n" H "X: \x7f\r\n\r\n", NETPOL_H1_FIELD },
	{ "GET http://a.test/ HTTP/1.1\r\n" H "X : 1\r\n\r\n", NETPOL_H1_FIELD },
	{ "GET http://a.test/ HTTP/1.1\r\n" H "X\t: 1\r\n\r\n", NETPOL_H1_FIELD },
	{ "GET http://a.test/ HTTP/1.1\r\n" H "X\r\n\r\n", NETPOL_H1_FIELD },
	{ "GET http://a.test/ HTTP/1.1\r\n X: 1\r\n" H "\r\n", NETPOL_H1_FIELD },
	{ "GET http://a.test/ HTTP/1.1\r\n" H "X: 1\n\r\n", NETPOL_H1_FIELD },
	{ "GET http://a.test/ HTTP/1.1\r\n" H "X: 1\rY: 2\r\n\r\n", NETPOL_H1_FIELD },
	{ "GET http://a.test/ HTTP/1.1\r\n" H "X: 1\r\n\n", NETPOL_H1_FIELD },
	{ "GET http://a.test/ HTTP/1.1\r\n" H "X: 1\r\n\rx", NETPOL_H1_FIELD },
	{ "GET http://a.test/ HTTP/1.1\r\n" H "\xc3\xa9: 1\r\n\r\n", NETPOL_H1_FIELD },
	{ "GET http://a.test/ HTTP/1.1\r\n" H "Connection: a b\r\n\r\n", NETPOL_H1_FIELD },
	{ "GET http://a.test/ HTTP/1.1\r\n" H "Connection: ,close,\r\n\r\n", NETPOL_H1_OK },
	{ "GET http://a.test/ HTTP/1.1\r\n" H "Connection: transfer-encoding\r\n"
	  "Transfer-Encoding: chunked\r\n\r\n",
	  NETPOL_H1_FIELD },
	{ "GET http://a.test/ HTTP/1.1\r\n" H "Max-Forwards: x\r\n\r\n", NETPOL_H1_FIELD },
	{ "GET http://a.test/ HTTP/1.1\r\n" H "Max-Forwards: 256\r\n\r\n", NETPOL_H1_FIELD },
	{ "GET http://a.test/ HTTP/1.1\r\n" H "Expect: 100-Continue\r\n\r\n", NETPOL_H1_OK },
	{ "GET http://a.test/ HTTP/1.1\r\n" H "Expect: x\r\n\r\n", NETPOL_H1_EXPECT },
	{ "GET http://a.test/ HTTP/1.1\r\n" H
	  "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n",
	  NETPOL_H1_EXPECT },
	/* framing */
	{ "P http://a.test/ HTTP/1.1\r\n" H "Content-Length: 9223372036854775807\r\n\r\n",
	  NETPOL_H1_OK },
	{ "P http://a.test/ HTTP/1.1\r\n" H "Content-Length: 9223372036854775808\r\n\r\n",
	  NETPOL_H1_FRAMING },
	{ "P http://a.test/ HTTP/1.1\r\n" H "Content-Length: 00005\r\n\r\n", NETPOL_H1_OK },
	{ "P http://a.test/ HTTP/1.1\r\n" H "Content-Length:\r\n\r\n", NETPOL_H1_FRAMING },
	{ "P http://a.test/ HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\n", NETPOL_H1_FRAMING },
	{ "P http://a.test/ HTTP/1.1\r\n" H "Content-Length: -5\r\n\r\n", NETPOL_H1_FRAMING },
	{ "P http://a.test/ HTTP/1.1\r\n" H "Content-Length: 5 5\r\n\r\n", NETPOL_H1_FRAMING },
	{ "P http://a.test/ HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 5\r\n\r\n",
	  NETPOL_H1_FRAMING },
	{ "P http://a.test/ HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n", NETPOL_H1_OK },
	{ "P http://a.test/ HTTP/1.1\r\n" H "Transfer-Encoding:\r\n\r\n", NETPOL_H1_FRAMING },
	{ "P http://a.test/ HTTP/1.1\r\n" H "Transfer-Encoding: ,chunked\r\n\r\n",
	  NETPOL_H1_FRAMING },
	{ "P http://a.test/ HTTP/1.1\r\n" H "Transfer-Encoding: chunked, chunked\r\n\r\n",
	  NETPOL_H1_FRAMING },
	{ "P http://a.test/ HTTP/1.1\r\n" H "Transfer-Encoding: chunked, gzip\r\n\r\n",
	  NETPOL_H1_FRAMING },
	{ "P http://a.test/ HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n",
	  NETPOL_H1_CODING },
	{ "P http://a.test/ HTTP/1.1\r\n" H "Transfer-Encoding: chunked;x=1\r\n\r\n",
	  NETPOL_H1_CODING },
	{ "P http://a.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", NETPOL_H1_FRAMING },
};

START_TEST(request_read__judges_what_a_proxy_gets)
{
	const char *text = PROXY[_i].text;
	struct http1_util u;
	enum netpol_h1_fault got = http1_request(&u, NETPOL_H1_PROXY, text, strlen(text));

	ck_assert_msg(got == PROXY[_i].fault, "%d instead of %d for\n%s", (int)got,
		      (int)PROXY[_i].fault, text);
}
END_TEST

/* However the bytes arrive, the answer is the same, and a fault is found at the same byte. */
START_TEST(head_scan__does_not_depend_on_the_pieces)
{
	const char *text = PROXY[_i].text;
	size_t n = strlen(text);
	struct netpol_h1_head whole, pieces;
	enum netpol_h1_step want = http1_scan(&whole, false, text, n, 0);

	for (size_t step = 1; step < 9; step++) {
		ck_assert_int_eq(http1_scan(&pieces, false, text, n, step), want);
		ck_assert_int_eq(pieces.fault, whole.fault);
		ck_assert_uint_eq(pieces.at, whole.at);
		ck_assert_uint_eq(pieces.count, whole.count);
		if (want == NETPOL_H1_DONE)
			ck_assert_mem_eq(pieces.fields, whole.fields,
					 whole.count * sizeof(whole.fields[0]));
	}
}
END_TEST

/* Bytes outside the syntax that a C string cannot carry. */
START_TEST(head_scan__refuses_nul_everywhere)
{
	static const char text[] = "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: y\r\n\r\n";
	char copy[sizeof(text)];
	struct netpol_h1_head h;

	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		memcpy(copy, text, sizeof(text));
		copy[i] = '\0';
		ck_assert_int_eq(http1_scan(&h, false, copy, sizeof(text) - 1, 0), NETPOL_H1_BAD);
	}
}
END_TEST

static const struct {
	const char *text;
	enum netpol_h1_fault fault;
	const char *host;
	uint16_t port;
} ORIGIN[] = {
	{ "GET /x?y HTTP/1.1\r\nHost: A.test\r\n\r\n", NETPOL_H1_OK, "A.test", 0 },
	{ "GET / HTTP/1.1\r\nHost: a.test:8080\r\n\r\n", NETPOL_H1_OK, "a.test", 8080 },
	{ "GET / HTTP/1.0\r\n\r\n", NETPOL_H1_HOST_FIELD, NULL, 0 },
	{ "GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", NETPOL_H1_NOT_ORIGIN, NULL, 0 },
	{ "CONNECT b.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n", NETPOL_H1_NOT_ORIGIN, NULL, 0 },
	{ "GET x HTTP/1.1\r\nHost: a.test\r\n\r\n", NETPOL_H1_TARGET, NULL, 0 },
	{ "OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n", NETPOL_H1_TARGET, NULL, 0 },
};

START_TEST(request_read__judges_what_a_transparent_listener_gets)
{
	const char *text = ORIGIN[_i].text;
	struct http1_util u;

	ck_assert_int_eq(http1_request(&u, NETPOL_H1_ORIGIN, text, strlen(text)), ORIGIN[_i].fault);
	if (!ORIGIN[_i].host)
		return;
	ck_assert_str_eq(http1_text(text, u.req.host), ORIGIN[_i].host);
	ck_assert_uint_eq(u.req.port, ORIGIN[_i].port);
}
END_TEST

START_TEST(request_read__tells_what_it_read)
{
	static const char text[] = "PoST http://A.test:81/p?q HTTP/1.1\r\nHost: b.test\r\n"
				   "Connection: close, X-Hop, Upgrade\r\nx-hop: 1\r\n"
				   "Upgrade: WebSocket\r\nMax-Forwards: 3\r\n"
				   "Expect: 100-continue\r\nContent-Length: 12\r\n\r\nGET";
	struct http1_util u;

	ck_assert_int_eq(http1_request(&u, NETPOL_H1_PROXY, text, strlen(text)), NETPOL_H1_OK);
	ck_assert_uint_eq(u.head.at, sizeof(text) - 1 - 3);
	ck_assert_str_eq(http1_text(text, u.req.method), "PoST");
	ck_assert_str_eq(http1_text(text, u.req.host), "A.test");
	ck_assert_uint_eq(u.req.port, 81);
	ck_assert_str_eq(http1_text(text, u.req.path), "/p?q");
	ck_assert_str_eq(http1_text(text, u.req.host_field), "b.test");
	ck_assert(!u.req.connect && !u.req.http10 && !u.req.head && !u.req.options);
	ck_assert(u.req.close && u.req.expect && u.req.websocket);
	ck_assert_int_eq(u.req.max_forwards, 3);
	ck_assert_int_eq(u.req.body, NETPOL_H1_LENGTH);
	ck_assert_uint_eq(u.req.length, 12);
	ck_assert_str_eq(http1_text(text, u.head.fields[2].name), "x-hop");
	ck_assert(u.head.fields[2].hop);
}
END_TEST

/* A head that is exactly at, one below, one above a limit. */
enum limit { LINE, BLOCK, NAME, FIELDS };
static const struct {
	enum limit what;
	size_t max;
	enum netpol_h1_fault over;
} LIMITS[] = {
	{ LINE, NETPOL_H1_LINE_MAX, NETPOL_H1_LINE_TOO_LONG },
	{ BLOCK, NETPOL_H1_BLOCK_MAX, NETPOL_H1_FIELDS_TOO_LARGE },
	{ NAME, NETPOL_H1_NAME_MAX, NETPOL_H1_FIELDS_TOO_LARGE },
	{ FIELDS, NETPOL_H1_FIELDS_MAX, NETPOL_H1_FIELDS_TOO_LARGE },
};

static void fill(struct aqe_buf *b, size_t n)
{
	while (n-- > 0)
		(void)aqe_buf_putc(b, 'a');
}

static void build(struct aqe_buf *b, enum limit what, size_t size)
{
	static const char line[] = "GET http://a.test/ HTTP/1.1";

	(void)aqe_buf_puts(b, "GET http://a.test/");
	fill(b, what == LINE ? size - (sizeof(line) - 1) : 0);
	(void)aqe_buf_puts(b, " HTTP/1.1\r\n" H);
	for (size_t i = 1; what == FIELDS && i < size; i++)
		(void)aqe_buf_puts(b, "x:\r\n");
	if (what == NAME) {
		fill(b, size);
		(void)aqe_buf_puts(b, ": x\r\n");
	}
	if (what == BLOCK) {
		(void)aqe_buf_puts(b, "X:");
		fill(b, size - strlen(H) - 2 - 2 - 2);
		(void)aqe_buf_puts(b, "\r\n");
	}
	(void)aqe_buf_puts(b, "\r\n");
}

START_TEST(head_scan__holds_its_limits)
{
	for (int d = -1; d <= 1; d++) {
		AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 17);
		enum netpol_h1_fault want = d > 0 ? LIMITS[_i].over : NETPOL_H1_OK;
		struct http1_util u;

		build(&b, LIMITS[_i].what, LIMITS[_i].max + (size_t)d);
		ck_assert_int_eq(aqe_buf_ok(&b, NULL), 0);
		ck_assert_int_eq(http1_request(&u, NETPOL_H1_PROXY, b.p, b.len), want);
	}
}
END_TEST

/* Without an end it must be refused at the limit, not waited for. */
START_TEST(head_scan__refuses_endless_heads)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 17);
	struct netpol_h1_head h;

	(void)aqe_buf_puts(&b, "GET http://a.test/ HTTP/1.1\r\nX: ");
	fill(&b, 1 << 16);
	ck_assert_int_eq(http1_scan(&h, false, b.p, b.len, 0), NETPOL_H1_BAD);
	ck_assert_int_eq(h.fault, NETPOL_H1_FIELDS_TOO_LARGE);
	ck_assert_uint_le(h.at, NETPOL_H1_HEAD_MAX);
}
END_TEST

static const struct {
	const char *text;
	bool to_head;
	enum netpol_h1_fault fault;
	unsigned status;
	enum netpol_h1_body body;
	bool close;
} RESPONSES[] = {
	{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false, NETPOL_H1_OK, 200,
	  NETPOL_H1_LENGTH, false },
	{ "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n", false, NETPOL_H1_OK, 200, NETPOL_H1_LENGTH,
	  false },
	{ "HTTP/1.1 200 \r\n\r\n", false, NETPOL_H1_OK, 200, NETPOL_H1_TO_CLOSE, true },
	{ "HTTP/1.1 200 Na ja\xe4\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
	  false, NETPOL_H1_OK, 200, NETPOL_H1_CHUNKED, true },
	{ "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", false, NETPOL_H1_OK, 200,
	  NETPOL_H1_LENGTH, true },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true, NETPOL_H1_OK, 200,
	  NETPOL_H1_NO_BODY, false },
	{ "HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n", false, NETPOL_H1_OK, 304,
	  NETPOL_H1_NO_BODY, false },
	{ "HTTP/1.1 204 x\r\n\r\n", false, NETPOL_H1_OK, 204, NETPOL_H1_NO_BODY, false },
	{ "HTTP/1.1 100 Continue\r\n\r\n", false, NETPOL_H1_OK, 100, NETPOL_H1_NO_BODY, false },
	{ "HTTP/1.1 599 x\r\n\r\n", true, NETPOL_H1_OK, 599, NETPOL_H1_NO_BODY, false },
	{ "HTTP/1.1 600 x\r\n\r\n", false, NETPOL_H1_STATUS_LINE, 0, 0, false },
	{ "HTTP/1.1 099 x\r\n\r\n", false, NETPOL_H1_STATUS_LINE, 0, 0, false },
	{ "HTTP/1.1 20 x\r\n\r\n", false, NETPOL_H1_STATUS_LINE, 0, 0, false },
	{ "HTTP/1.1 2000 x\r\n\r\n", false, NETPOL_H1_STATUS_LINE, 0, 0, false },
	{ "HTTP/1.1  200 x\r\n\r\n", false, NETPOL_H1_STATUS_LINE, 0, 0, false },
	{ "HTTP/2 200 x\r\n\r\n", false, NETPOL_H1_STATUS_LINE, 0, 0, false },
	{ "ICY 200 OK\r\n\r\n", false, NETPOL_H1_STATUS_LINE, 0, 0, false },
	{ "\r\nHTTP/1.1 200 OK\r\n\r\n", false, NETPOL_H1_STATUS_LINE, 0, 0, false },
	{ "HTTP/1.1 200 OK\n\n", false, NETPOL_H1_STATUS_LINE, 0, 0, false },
	{ "HTTP/1.1 200 O\x01K\r\n\r\n", false, NETPOL_H1_STATUS_LINE, 0, 0, false },
	{ "HTTP/1.1 200 OK\r\nX: 1\r\n y\r\n\r\n", false, NETPOL_H1_RESPONSE, 0, 0, false },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", false,
	  NETPOL_H1_RESPONSE, 0, 0, false },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", false,
	  NETPOL_H1_RESPONSE, 0, 0, false },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", false, NETPOL_H1_RESPONSE,
	  0, 0, false },
	{ "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", true, NETPOL_H1_RESPONSE, 0, 0, false },
	{ "HTTP/1.1 200 OK\r\nConnection: content-length\r\nContent-Length: 5\r\n\r\n", false,
	  NETPOL_H1_RESPONSE, 0, 0, false },
};

START_TEST(response_read__judges_what_the_upstream_says)
{
	const char *text = RESPONSES[_i].text;
	struct http1_util u;
	enum netpol_h1_fault got = http1_response(&u, RESPONSES[_i].to_head, text, strlen(text));

	ck_assert_msg(got == RESPONSES[_i].fault, "%d for\n%s", (int)got, text);
	if (got != NETPOL_H1_OK)
		return;
	ck_assert_uint_eq(u.resp.status, RESPONSES[_i].status);
	ck_assert_int_eq(u.resp.body, RESPONSES[_i].body);
	ck_assert_int_eq(u.resp.close, RESPONSES[_i].close);
}
END_TEST

START_TEST(faults__have_a_status_and_a_reason)
{
	for (enum netpol_h1_fault f = NETPOL_H1_OK; f < NETPOL_H1_FAULT_COUNT; f++) {
		ck_assert_uint_ge(netpol_h1_status(f), f == NETPOL_H1_OK ? 200 : 400);
		ck_assert_uint_lt(netpol_h1_status(f), 600);
		ck_assert_ptr_nonnull(netpol_h1_reason(f));
	}
}
END_TEST

START_TEST(is_token__is_the_grammar_s)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	for (unsigned c = 0; c < 256; c++) {
		bool want = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
			    (c >= 'A' && c <= 'Z') || (c > 0 && c < 128 && strchr(others, (int)c));

		ck_assert_int_eq(netpol_h1_is_token((unsigned char)c), want);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("netpolicy/http1");
	TCase *t = tcase_create("http1");

	tcase_add_loop_test(t, request_read__judges_what_a_proxy_gets, 0, (int)AQE_COUNT(PROXY));
	tcase_add_loop_test(t, head_scan__does_not_depend_on_the_pieces, 0, (int)AQE_COUNT(PROXY));
	tcase_add_test(t, head_scan__refuses_nul_everywhere);
	tcase_add_loop_test(t, request_read__judges_what_a_transparent_listener_gets, 0,
			    (int)AQE_COUNT(ORIGIN));
	tcase_add_test(t, request_read__tells_what_it_read);
	tcase_add_loop_test(t, head_scan__holds_its_limits, 0, (int)AQE_COUNT(LIMITS));
	tcase_add_test(t, head_scan__refuses_endless_heads);
	tcase_add_loop_test(t, response_read__judges_what_the_upstream_says, 0,
			    (int)AQE_COUNT(RESPONSES));
	tcase_add_test(t, faults__have_a_status_and_a_reason);
	tcase_add_test(t, is_token__is_the_grammar_s);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
