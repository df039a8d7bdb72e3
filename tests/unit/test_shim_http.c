/* SPDX-License-Identifier: MIT */
#include "shim/aqe/http.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "tests/fakes/fake_peer.h"
#include "tests/unit/unit.h"

/* Answers by the path of the request; /echo repeats the request as its body. */
static void serve(int fd, void *arg)
{
	static const struct {
		const char *path, *answer;
	} PAGES[] = {
		{ "/ok",
		  "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 5\r\n\r\nhello" },
		{ "/chunked",
		  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n"
		  "0\r\n\r\n" },
		{ "/busy", "HTTP/1.1 429 Wait\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n" },
		{ "/away", "HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 0\r\n\r\n" },
		{ "/cut", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello" },
		{ "/old", "hello there\r\n" },
		{ "/nothing", "" },
	};
	static _Thread_local char request[1 << 20], head[128];
	size_t n;

	(void)arg;
	while ((n = fake_peer_request(fd, request, sizeof(request))) > 0) {
		const char *path = strchr(request, ' ') + 1;
		bool close_after = false;

		if (strncmp(path, "/hang", 5) == 0)
			pause();
		if (strncmp(path, "/echo", 5) == 0) {
			snprintf(head, sizeof(head),
				 "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", n);
			fake_peer_puts(fd, head);
			fake_peer_write(fd, request, n);
		}
		for (size_t i = 0; i < sizeof(PAGES) / sizeof(PAGES[0]); i++) {
			if (strncmp(path, PAGES[i].path, strlen(PAGES[i].path)) != 0)
				continue;
			fake_peer_puts(fd, PAGES[i].answer);
			close_after = i >= 4;
		}
		if (close_after)
			return;
	}
}

static struct fake_peer peer;
static char url_text[128];

static const char *url(const char *path)
{
	snprintf(url_text, sizeof(url_text), "http://127.0.0.1:%d%s", peer.port, path);
	return url_text;
}

static struct shim_http *client(unsigned flags)
{
	const struct shim_http_opts o = { .flags = flags };
	struct shim_http *h = NULL;
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(shim_http_new(&o, &h, &e), e);
	return h;
}

static void setup(void)
{
	/* must not be used */
	setenv("http_proxy", "http://127.0.0.1:1/", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:1/", 1);
	fake_peer_start(&peer, serve, NULL);
}

static void teardown(void)
{
	fake_peer_stop(&peer);
}

START_TEST(send__gets)
{
	static const char *const PATHS[] = { "/ok", "/chunked" };
	struct shim_http *h = client(SHIM_HTTP_PLAIN);
	struct shim_http_resp resp = SHIM_HTTP_RESP_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	const struct shim_http_req req = { .url = url(PATHS[_i]), .timeout_ms = 5000 };

	for (int round = 0; round < 2; round++) {
		ck_assert_ok(shim_http_send(h, &req, &resp, &e), e);
		ck_assert_int_eq(resp.status, 200);
		ck_assert_str_eq(aqe_buf_str(&resp.body), "hello");
		ck_assert_uint_eq(resp.received, 5);
		ck_assert_str_eq(resp.content_type, _i == 0 ? "text/x" : "");
		ck_assert_int_eq(resp.retry_after_s, -1);
		ck_assert_str_eq(resp.peer, "127.0.0.1");
		ck_assert_int_eq(resp.reused, round > 0);
	}
	shim_http_resp_done(&resp);
	shim_http_free(h);
}
END_TEST

START_TEST(send__answers_are_answers)
{
	struct shim_http *h = client(SHIM_HTTP_PLAIN);
	struct shim_http_resp resp = SHIM_HTTP_RESP_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_http_req req = { .url = url("/busy"), .timeout_ms = 5000 };

	ck_assert_ok(shim_http_send(h, &req, &resp, &e), e);
	ck_assert_int_eq(resp.status, 429);
	ck_assert_int_eq(resp.retry_after_s, 7);
	req.url = url("/away");
	ck_assert_ok(shim_http_send(h, &req, &resp, &e), e);
	ck_assert_int_eq(resp.status, 302); /* not followed */
	shim_http_resp_done(&resp);
	shim_http_free(h);
}
END_TEST

START_TEST(send__sends_what_was_asked)
{
	static const char *const HEADERS[] = { "X-One: 1", "Content-Type: application/json", NULL };
	struct shim_http *h = client(SHIM_HTTP_PLAIN);
	struct shim_http_resp resp = SHIM_HTTP_RESP_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_http_req req = { .method = "POST",
				     .url = url("/echo?q"),
				     .headers = HEADERS,
				     .body = "{\0}",
				     .body_len = 3,
				     .timeout_ms = 5000 };
	const char *text;

	ck_assert_ok(shim_http_send(h, &req, &resp, &e), e);
	text = aqe_buf_str(&resp.body);
	ck_assert_ptr_eq(strstr(text, "POST /echo?q HTTP/1.1\r\n"), text);
	ck_assert_ptr_nonnull(strstr(text, "\r\nX-One: 1\r\nContent-Type: application/json\r\n"));
	ck_assert_ptr_nonnull(strstr(text, "\r\nUser-Agent: aqe/"));
	ck_assert_ptr_null(strstr(text, "Expect"));
	ck_assert_int_eq(memcmp(resp.body.p + resp.body.len - 3, "{\0}", 3), 0);
	ck_assert_uint_eq(resp.sent, 3);
	req.method = "PUT";
	req.headers = NULL;
	ck_assert_ok(shim_http_send(h, &req, &resp, &e), e);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&resp.body), "PUT /echo"));
	ck_assert_ptr_null(strstr(aqe_buf_str(&resp.body), "Content-Type"));
	req = (struct shim_http_req){ .url = url("/echo"), .timeout_ms = 5000 };
	ck_assert_ok(shim_http_send(h, &req, &resp, &e), e);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&resp.body), "GET /echo"));
	ck_assert_ptr_null(strstr(aqe_buf_str(&resp.body), "Content-Length"));
	shim_http_resp_done(&resp);
	shim_http_free(h);
}
END_TEST

static const struct {
	const char *path, *url;
	unsigned flags;
	size_t max_body;
	const char *header, *method, *connect_to;
	int want;
	const char *text;
} FAULTS[] = {
	{ "/ok", NULL, 0, 0, NULL, NULL, NULL, AQE_E_USAGE, "not an allowed kind" },
	{ NULL, "file:///etc/passwd", SHIM_HTTP_PLAIN, 0, NULL, NULL, NULL, AQE_E_USAGE, "kind" },
	{ NULL, "ftp://127.0.0.1/", SHIM_HTTP_PLAIN, 0, NULL, NULL, NULL, AQE_E_USAGE, "kind" },
	{ NULL, "http://u:p@127.0.0.1/", SHIM_HTTP_PLAIN, 0, NULL, NULL, NULL, AQE_E_USAGE,
	  "user" },
	{ NULL, "http://127.0.0.1\r\n/", SHIM_HTTP_PLAIN, 0, NULL, NULL, NULL, AQE_E_USAGE, "URL" },
	{ NULL, NULL, SHIM_HTTP_PLAIN, 0, NULL, NULL, NULL, AQE_E_USAGE, "unusable URL" },
	{ "/ok", NULL, SHIM_HTTP_PLAIN, 0, "A: b\r\nC: d", NULL, NULL, AQE_E_USAGE, "header 0" },
	{ "/ok", NULL, SHIM_HTTP_PLAIN, 0, "no colon", NULL, NULL, AQE_E_USAGE, "header 0" },
	{ "/ok", NULL, SHIM_HTTP_PLAIN, 0, NULL, "GET /", NULL, AQE_E_USAGE, "method" },
	{ "/ok", NULL, SHIM_HTTP_PLAIN, 4, NULL, NULL, NULL, AQE_E_LIMIT, "larger" },
	{ "/cut", NULL, SHIM_HTTP_PLAIN, 0, NULL, NULL, NULL, AQE_E_MALFORMED, "cut short" },
	{ "/old", NULL, SHIM_HTTP_PLAIN, 0, NULL, NULL, NULL, AQE_E_MALFORMED, "not HTTP" },
	{ "/nothing", NULL, SHIM_HTTP_PLAIN, 0, NULL, NULL, NULL, AQE_E_MALFORMED, "without" },
	{ "/hang", NULL, SHIM_HTTP_PLAIN, 0, NULL, NULL, NULL, AQE_E_TIMEOUT, "timed out" },
	{ "/ok", NULL, SHIM_HTTP_PLAIN, 0, NULL, NULL, "127.0.0.1:1", AQE_E_SYS, "connect" },
	{ NULL, "http://no-such-name.invalid/", SHIM_HTTP_PLAIN, 0, NULL, NULL, NULL, AQE_E_SYS,
	  "resolve" },
};

START_TEST(send__faults)
{
	struct shim_http *h = client(FAULTS[_i].flags);
	struct shim_http_resp resp = SHIM_HTTP_RESP_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	const char *const headers[] = { FAULTS[_i].header, NULL };
	struct shim_http_req req = { .method = FAULTS[_i].method,
				     .url = FAULTS[_i].path ? url(FAULTS[_i].path) : FAULTS[_i].url,
				     .headers = headers,
				     .connect_to = FAULTS[_i].connect_to,
				     .max_body = FAULTS[_i].max_body,
				     .timeout_ms = 300 };

	if (FAULTS[_i].want == AQE_E_SYS)
		req.timeout_ms = 20000;
	ck_assert_fault(shim_http_send(h, &req, &resp, &e), FAULTS[_i].want, e, FAULTS[_i].text);
	ck_assert_ptr_null(strstr(e.text, "127.0.0.1/"));
	/* and it works again */
	req = (struct shim_http_req){ .url = url("/ok"), .timeout_ms = 5000 };
	if (FAULTS[_i].flags)
		ck_assert_ok(shim_http_send(h, &req, &resp, &e), e);
	shim_http_resp_done(&resp);
	shim_http_free(h);
}
END_TEST

/* ---- a handshake that does not end is no server that cannot be trusted ---- */

/* The first bytes of the answer to a client's hello, then the end. */
static void serve_cut(int fd, void *arg)
{
	static const char *const BYTES[] = {
		"",
		"\x16\x03",
		"\x16\x03\x03\x3f\x7a\x02",
		"HTTP/1.1 400 Bad Request\r\n\r\n",
	};
	char hello[4096];

	if (read(fd, hello, sizeof(hello)) > 0)
		fake_peer_puts(fd, BYTES[*(int *)arg]);
}

static const struct {
	int want;
	const char *text;
} CUTS[] = {
	{ AQE_E_SYS, "broke in the TLS handshake" },
	{ AQE_E_SYS, "broke in the TLS handshake" },
	{ AQE_E_SYS, "broke in the TLS handshake" },
	{ AQE_E_UNTRUSTED, "TLS handshake failed" }, /* no TLS at all */
};

START_TEST(send__tells_a_cut_handshake)
{
	struct shim_http_resp resp = SHIM_HTTP_RESP_INIT;
	struct shim_http *h = client(0);
	struct shim_http_req req = { .timeout_ms = 20000 };
	struct aqe_err e = AQE_ERR_INIT;
	int *which = fake_peer_shared(sizeof(*which));
	struct fake_peer cut;
	char text[64];

	*which = _i;
	fake_peer_start(&cut, serve_cut, which);
	snprintf(text, sizeof(text), "https://127.0.0.1:%d/", cut.port);
	req.url = text;
	ck_assert_fault(shim_http_send(h, &req, &resp, &e), CUTS[_i].want, e, CUTS[_i].text);
	fake_peer_stop(&cut);
	shim_http_resp_done(&resp);
	shim_http_free(h);
}
END_TEST

/* ---- through an egress worker ---- */

/* A proxy: by the host that is asked for. */
static void serve_proxy(int fd, void *arg)
{
	static const struct {
		const char *ask, *answer;
	} ANSWERS[] = {
		{ "CONNECT denied.test:443 ",
		  "HTTP/1.1 403 Forbidden (domain_not_allowed)\r\nX-Aqe-Reason: "
		  "domain_not_allowed\r\nContent-Length: 2\r\n\r\n{}" },
		{ "CONNECT full.test:443 ",
		  "HTTP/1.1 429 Too Many Requests\r\nX-Aqe-Reason: rate_limit_exceeded\r\n"
		  "Retry-After: 9\r\nContent-Length: 0\r\n\r\n" },
		{ "GET http://full.test/a ",
		  "HTTP/1.1 429 Too Many Requests\r\nx-aqe-reason: rate_limit_exceeded\r\n"
		  "Retry-After: 8\r\nContent-Length: 0\r\n\r\n" },
		{ "GET http://away.test/a ",
		  "HTTP/1.1 502 Bad Gateway\r\nX-Aqe-Reason: connect_refused\r\nContent-Length: "
		  "0\r\n\r\n" },
		{ "GET http://slow.test/a ",
		  "HTTP/1.1 504 Timeout\r\nX-Aqe-Reason: connect_timeout\r\nContent-Length: 0\r\n"
		  "\r\n" },
		{ "GET http://up.test/a ",
		  "HTTP/1.1 403 Forbidden\r\nContent-Length: 3\r\n\r\nupp" },
		{ "GET http://good.test/a ", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" },
		{ "CONNECT cut.test:443 ", "HTTP/1.1 200 OK\r\n\r\n" },
	};
	char request[8192];

	(void)arg;
	while (fake_peer_request(fd, request, sizeof(request)) > 0) {
		for (size_t i = 0; i < AQE_COUNT(ANSWERS); i++) {
			if (!aqe_starts(request, ANSWERS[i].ask))
				continue;
			fake_peer_puts(fd, ANSWERS[i].answer);
			if (aqe_starts(request, "CONNECT"))
				return;
		}
	}
}

#define SOCKETS 3
struct through {
	int fd[SOCKETS], n, asked;
};

static int open_proxy(void *self)
{
	struct through *t = self;

	t->asked++;
	return t->n ? t->fd[--t->n] : -1;
}

static int connected(int port)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons((uint16_t)port),
					.sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

/* libcurl 7.88 connects sockets of which it was told that they are: the companion's seccomp filter
 * answers that, and so does this. */
static void answer_connect(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINPROGRESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { (unsigned short)AQE_COUNT(f), f };

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0), 0);
}

static const struct {
	const char *url;
	int rc, status;
	int64_t retry_s;
	const char *text;
} PROXIED[] = {
	{ "https://denied.test/a", AQE_E_REFUSED, 403, -1, "refuses: domain_not_allowed" },
	{ "https://full.test/a", AQE_E_REFUSED, 429, 9, "refuses: rate_limit_exceeded" },
	{ "http://full.test/a", AQE_E_REFUSED, 429, 8, "refuses: rate_limit_exceeded" },
	{ "http://away.test/a", AQE_E_SYS, 502, -1, "connect_refused" },
	{ "http://slow.test/a", AQE_E_TIMEOUT, 504, -1, "connect_timeout" },
	{ "http://up.test/a", 0, 403, -1, NULL }, /* the upstream's own word */
	{ "http://good.test/a", 0, 200, -1, NULL },
	{ "https://cut.test/a", AQE_E_SYS, 0, -1, "broke in the TLS handshake" },
};

struct sent {
	int rc, status, asked, after;
	int64_t retry_s;
	struct aqe_err e;
};

/* Each request has a connection of its own; without a socket there is none. */
static void send_through(int port, const char *url_asked, struct sent ret[2])
{
	struct through through = { { -1 }, 0, 0 };
	const struct shim_http_opts o = { .flags = SHIM_HTTP_PLAIN,
					  .open_proxy = open_proxy,
					  .self = &through };
	struct shim_http_resp resp = SHIM_HTTP_RESP_INIT;
	struct shim_http_req req = { .url = url_asked, .timeout_ms = 20000 };
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_http *h = NULL;

	ck_assert_ok(shim_http_new(&o, &h, &e), e);
	while (through.n < SOCKETS)
		through.fd[through.n++] = connected(port);
	answer_connect();
	for (int i = 0; i < 2; i++) {
		ret[i].e = (struct aqe_err)AQE_ERR_INIT;
		ret[i].rc = shim_http_send(h, &req, &resp, &ret[i].e);
		ret[i].status = resp.status;
		ret[i].retry_s = resp.retry_after_s;
		ret[i].asked = through.asked;
	}
	(void)close(through.fd[--through.n]);
	ret[1].after = shim_http_send(h, &req, &resp, &e);
	shim_http_resp_done(&resp);
	shim_http_free(h);
}

/* In a child: a filter is for the rest of a process. */
START_TEST(send__goes_through_a_proxy_of_ours)
{
	struct sent *got = fake_peer_shared(2 * sizeof(*got));
	struct fake_peer proxy;
	int status = 0;
	pid_t pid;

	fake_peer_start(&proxy, serve_proxy, NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		send_through(proxy.port, PROXIED[_i].url, got);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	for (int i = 0; i < 2; i++) {
		if (PROXIED[_i].rc)
			ck_assert_fault(got[i].rc, PROXIED[_i].rc, got[i].e, PROXIED[_i].text);
		else
			ck_assert_ok(got[i].rc, got[i].e);
		if (PROXIED[_i].status)
			ck_assert_int_eq(got[i].status, PROXIED[_i].status);
		ck_assert_int_eq(got[i].retry_s, PROXIED[_i].retry_s);
		ck_assert_int_eq(got[i].asked, i + 1);
	}
	ck_assert_int_eq(got[1].after, AQE_E_SYS);
	fake_peer_stop(&proxy);
}
END_TEST

static bool refuse(void *self, const struct sockaddr *to, size_t len)
{
	(void)to;
	(void)len;
	++*(int *)self;
	return false;
}

START_TEST(send__asks_before_it_dials)
{
	int asked = 0;
	const struct shim_http_opts o = { .flags = SHIM_HTTP_PLAIN,
					  .may_dial = refuse,
					  .self = &asked };
	struct shim_http_resp resp = SHIM_HTTP_RESP_INIT;
	struct shim_http_req req = { .url = url("/ok"), .timeout_ms = 5000 };
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_http *h = NULL;

	ck_assert_ok(shim_http_new(&o, &h, &e), e);
	ck_assert_fault(shim_http_send(h, &req, &resp, &e), AQE_E_REFUSED, e, "address");
	ck_assert_int_ge(asked, 1);
	shim_http_resp_done(&resp);
	shim_http_free(h);
}
END_TEST

START_TEST(send__connects_where_it_was_told)
{
	struct shim_http *h = client(SHIM_HTTP_PLAIN);
	struct shim_http_resp resp = SHIM_HTTP_RESP_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	char to[64];
	struct shim_http_req req = { .url = "http://api.example.com:8080/echo",
				     .connect_to = to,
				     .timeout_ms = 5000 };

	snprintf(to, sizeof(to), "127.0.0.1:%d", peer.port);
	ck_assert_ok(shim_http_send(h, &req, &resp, &e), e);
	ck_assert_ptr_nonnull(
		strstr(aqe_buf_str(&resp.body), "\r\nHost: api.example.com:8080\r\n"));
	shim_http_resp_done(&resp);
	shim_http_free(h);
}
END_TEST

/* ---- streams ---- */

struct stream {
	size_t sent, got, headers, paused;
	int end;
	int done;
	struct shim_http_ticket *ticket;
};

static ssize_t source(void *self, void *p, size_t n)
{
	struct stream *s = self;
	const size_t left = 100000 - s->sent, now = left < n ? left : n;

	memset(p, 'x', now);
	s->sent += now;
	return s->end ? -1 : (ssize_t)now;
}

static int on_header(void *self, const char *line, size_t n)
{
	struct stream *s = self;

	if (s->headers++ == 0)
		ck_assert_int_eq(strncmp(line, "HTTP/1.1 200 OK", n), 0);
	return 0;
}

static int sink(void *self, const void *p, size_t n)
{
	struct stream *s = self;

	(void)p;
	if (s->ticket && s->paused == 0) {
		s->paused = 1;
		return SHIM_HTTP_PAUSE;
	}
	s->got += n;
	return s->end;
}

START_TEST(send__streams)
{
	struct shim_http *h = client(SHIM_HTTP_PLAIN);
	struct shim_http_resp resp = SHIM_HTTP_RESP_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	struct stream s = { 0 };
	struct shim_http_req req = { .method = "POST",
				     .url = url("/echo"),
				     .source = source,
				     .source_len = 100000,
				     .on_header = on_header,
				     .sink = sink,
				     .self = &s,
				     .timeout_ms = 5000 };

	ck_assert_ok(shim_http_send(h, &req, &resp, &e), e);
	ck_assert_uint_gt(s.got, 100000);
	ck_assert_uint_eq(s.headers, 2);
	ck_assert_uint_eq(resp.body.len, 0);
	ck_assert_uint_eq(resp.received, s.got);
	s.end = -1;
	s.sent = 0;
	ck_assert_fault(shim_http_send(h, &req, &resp, &e), AQE_E_UNKNOWN, e, "ended by us");
	shim_http_resp_done(&resp);
	shim_http_free(h);
}
END_TEST

/* ---- many ---- */

static void count_done(void *self, int rc, struct shim_http_resp *resp, const struct aqe_err *e)
{
	struct stream *s = self;

	ck_assert_int_eq(rc, (int)e->code);
	if (rc == 0)
		ck_assert_int_eq(resp->status, 200);
	s->done++;
}

static struct shim_http_loop *new_loop(void)
{
	const struct shim_http_opts o = { .flags = SHIM_HTTP_PLAIN };
	struct shim_http_loop *l = NULL;
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(shim_http_loop_new(&o, &l, &e), e);
	return l;
}

START_TEST(loop__runs_many)
{
	struct shim_http_loop *l = new_loop();
	struct aqe_err e = AQE_ERR_INIT;
	struct stream s = { 0 };
	struct shim_http_req req = { .url = url("/ok"), .self = &s, .timeout_ms = 5000 };

	for (int i = 0; i < 50; i++)
		ck_assert_ok(shim_http_start(l, &req, count_done, NULL, &e), e);
	ck_assert_int_eq(s.done, 0);
	ck_assert_uint_eq(shim_http_loop_running(l), 50);
	while (shim_http_loop_running(l) > 0)
		ck_assert_ok(shim_http_loop_poll(l, NULL, 0, 1000, &e), e);
	ck_assert_int_eq(s.done, 50);
	shim_http_loop_free(l);
}
END_TEST

START_TEST(loop__pauses_and_resumes)
{
	struct shim_http_loop *l = new_loop();
	struct aqe_err e = AQE_ERR_INIT;
	struct stream s = { 0 };
	struct shim_http_req req = {
		.url = url("/ok"), .sink = sink, .self = &s, .timeout_ms = 5000
	};

	ck_assert_ok(shim_http_start(l, &req, count_done, &s.ticket, &e), e);
	while (!s.paused)
		ck_assert_ok(shim_http_loop_poll(l, NULL, 0, 1000, &e), e);
	for (int i = 0; i < 3; i++)
		ck_assert_ok(shim_http_loop_poll(l, NULL, 0, 20, &e), e);
	ck_assert_uint_eq(s.got, 0);
	shim_http_resume(s.ticket);
	while (!s.done)
		ck_assert_ok(shim_http_loop_poll(l, NULL, 0, 1000, &e), e);
	ck_assert_uint_eq(s.got, 5);
	shim_http_loop_free(l);
}
END_TEST

START_TEST(loop__cancels_and_frees)
{
	struct shim_http_loop *l = new_loop();
	struct aqe_err e = AQE_ERR_INIT;
	struct stream s = { 0 };
	struct shim_http_req req = { .url = url("/hang"), .self = &s };
	struct shim_http_ticket *t = NULL;

	ck_assert_ok(shim_http_start(l, &req, count_done, NULL, &e), e);
	ck_assert_ok(shim_http_start(l, &req, count_done, &t, &e), e);
	ck_assert_ok(shim_http_start(l, &req, count_done, NULL, &e), e);
	ck_assert_ok(shim_http_loop_poll(l, NULL, 0, 20, &e), e);
	shim_http_cancel(t);
	ck_assert_uint_eq(shim_http_loop_running(l), 2);
	shim_http_loop_free(l);
	ck_assert_int_eq(s.done, 0);
}
END_TEST

START_TEST(loop__watches_other_descriptors)
{
	struct shim_http_loop *l = new_loop();
	struct aqe_err e = AQE_ERR_INIT;
	int p[2];

	ck_assert_int_eq(pipe(p), 0);
	struct pollfd extra = { .fd = p[0], .events = POLLIN };
	ck_assert_ok(shim_http_loop_poll(l, &extra, 1, 0, &e), e);
	ck_assert_int_eq(extra.revents, 0);
	ck_assert_int_eq(write(p[1], "x", 1), 1);
	ck_assert_ok(shim_http_loop_poll(l, &extra, 1, 5000, &e), e);
	ck_assert_int_eq(extra.revents, POLLIN);
	shim_http_loop_wake(l);
	extra.events = 0;
	ck_assert_ok(shim_http_loop_poll(l, &extra, 1, 5000, &e), e); /* at once */
	close(p[0]);
	close(p[1]);
	shim_http_loop_free(l);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("http");
	TCase *t = tcase_create("http");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, send__gets, 0, 2);
	tcase_add_test(t, send__answers_are_answers);
	tcase_add_test(t, send__sends_what_was_asked);
	tcase_add_loop_test(t, send__tells_a_cut_handshake, 0, AQE_COUNT(CUTS));
	tcase_add_loop_test(t, send__goes_through_a_proxy_of_ours, 0, AQE_COUNT(PROXIED));
	tcase_add_loop_test(t, send__faults, 0, sizeof(FAULTS) / sizeof(FAULTS[0]));
	tcase_add_test(t, send__asks_before_it_dials);
	tcase_add_test(t, send__connects_where_it_was_told);
	tcase_add_test(t, send__streams);
	tcase_add_test(t, loop__runs_many);
	tcase_add_test(t, loop__pauses_and_resumes);
	tcase_add_test(t, loop__cancels_and_frees);
	tcase_add_test(t, loop__watches_other_descriptors);
	suite_add_tcase(s, t);
	return unit_run(s);
}
