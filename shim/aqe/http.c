/* SPDX-License-Identifier: MIT */
#include "shim/aqe/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "shim/aqe/curl.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/version.h"

#define CONNECT_TIMEOUT_MS 10000
#define BODY_MAX           ((size_t)64 << 20)
#define HEADERS_MAX        64
#define LINE_MAX_BYTES     8192
#define ARENA_MAX          ((size_t)64 << 10)
#define LOOP_MAX           4096                /* requests at once */
#define HEAD_MAX           ((size_t)256 << 10) /* all header lines of an answer */

/* A request on its way: ours while libcurl knows it. */
struct shim_http_ticket {
	CURL *easy;
	const struct shim_http_opts *opts;
	const struct shim_http_req *req;
	struct shim_http_resp *resp;
	struct curl_slist *headers, *connect_to;
	size_t body_max, head_bytes;
	int code; /* why a callback of ours ended it, or 0 */
	char words[CURL_ERROR_SIZE];
	/* of the newest head, from a proxy of open_proxy() */
	char reason[64];
	int status;
	int64_t retry_after_s;
	/* only in a loop */
	struct shim_http_loop *loop;
	struct shim_http_ticket *prev, *next;
	shim_http_done_fn *done;
	struct shim_http_resp own;
};

struct shim_http {
	struct shim_http_opts opts;
	struct aqe_arena *arena; /* of opts */
	CURL *easy;
};

struct shim_http_loop {
	struct shim_http_opts opts;
	struct aqe_arena *arena; /* of opts */
	CURLM *multi;
	struct shim_http_ticket *first;
	size_t running;
};

int shim_http_load(struct aqe_err *e)
{
	return shim_curl_load(e);
}

/* ---- options ---- */

/* The strings live in `a`. */
static int opts_copy(struct aqe_arena *a, struct shim_http_opts *to,
		     const struct shim_http_opts *from, struct aqe_err *e)
{
	static const struct shim_http_opts NONE = { .flags = 0 };
	const struct shim_http_opts *o = from ? from : &NONE;
	struct {
		const char *from;
		const char **to;
	} const text[] = {
		{ o->user_agent ? o->user_agent : "aqe/" SHIM_VERSION, &to->user_agent },
		{ o->ca_file, &to->ca_file },
		{ o->cert_file, &to->cert_file },
		{ o->key_file, &to->key_file },
		{ o->unix_socket, &to->unix_socket },
	};

	*to = *o;
	for (size_t i = 0; i < AQE_COUNT(text); i++) {
		*text[i].to = text[i].from ? aqe_arena_dup(a, text[i].from) : NULL;
		if (text[i].from && !*text[i].to)
			return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	}
	return 0;
}

/* ---- callbacks: `self` is the ticket ---- */

static size_t on_body(char *p, size_t size, size_t n, void *self)
{
	struct shim_http_ticket *t = self;
	const size_t len = size * n; /* size is 1 by libcurl's contract */
	int rc;

	if (len > t->body_max - (size_t)t->resp->received) {
		t->code = AQE_E_LIMIT;
		return CURL_WRITEFUNC_ERROR;
	}
	rc = t->req->sink ? t->req->sink(t->req->self, p, len)
			  : aqe_buf_add(&t->resp->body, p, len);
	if (rc == SHIM_HTTP_PAUSE && t->req->sink && t->loop)
		return CURL_WRITEFUNC_PAUSE;
	if (rc != 0) {
		t->code = t->req->sink ? AQE_E_UNKNOWN : rc;
		return CURL_WRITEFUNC_ERROR;
	}
	t->resp->received += len;
	return len;
}

static bool is_header(const char *line, size_t n, const char *name, const char **ret_value,
		      size_t *ret_n)
{
	const size_t len = strlen(name);

	if (n <= len || strncasecmp(line, name, len) != 0 || line[len] != ':')
		return false;
	*ret_value = line + len + 1;
	*ret_n = n - len - 1;
	while (*ret_n > 0 && **ret_value == ' ') {
		++*ret_value;
		--*ret_n;
	}
	return true;
}

/* What a proxy of ours says of itself, also in the head of its answer to CONNECT. */
static void note_proxy(struct shim_http_ticket *t, const char *line, size_t n)
{
	char number[24] = "";
	const char *value;
	uint64_t v;
	size_t len;

	if (n >= 12 && strncmp(line, "HTTP/1.", 7) == 0) {
		memcpy(number, line + 9, 3);
		t->reason[0] = '\0';
		t->status = aqe_parse_u64(number, 999, &v) ? (int)v : 0;
		t->retry_after_s = -1;
	} else if (is_header(line, n, "X-Aqe-Reason", &value, &len) && len < sizeof(t->reason)) {
		memcpy(t->reason, value, len);
		t->reason[len] = '\0';
	} else if (is_header(line, n, "Retry-After", &value, &len) && len < sizeof(number)) {
		memcpy(number, value, len);
		t->retry_after_s = aqe_parse_u64(number, INT32_MAX, &v) ? (int64_t)v : -1;
	}
}

static size_t on_head(char *p, size_t size, size_t n, void *self)
{
	struct shim_http_ticket *t = self;
	const size_t len = size * n;
	size_t line = len;

	if (len > HEAD_MAX - t->head_bytes) {
		t->code = AQE_E_LIMIT;
		return 0;
	}
	t->head_bytes += len;
	while (line > 0 && (p[line - 1] == '\r' || p[line - 1] == '\n'))
		line--;
	if (t->opts->open_proxy)
		note_proxy(t, p, line);
	if (t->req->on_header && line > 0 && t->req->on_header(t->req->self, p, line) != 0) {
		t->code = AQE_E_UNKNOWN;
		return 0;
	}
	return len;
}

static size_t on_source(char *p, size_t size, size_t n, void *self)
{
	struct shim_http_ticket *t = self;
	const ssize_t got = t->req->source(t->req->self, p, size * n);

	if (got >= 0 && (size_t)got <= size * n)
		return (size_t)got;
	t->code = AQE_E_UNKNOWN;
	return CURL_READFUNC_ABORT;
}

static curl_socket_t on_socket(void *self, curlsocktype purpose, struct curl_sockaddr *to)
{
	struct shim_http_ticket *t = self;

	if (purpose == CURLSOCKTYPE_IPCXN && t->opts->may_dial &&
	    !t->opts->may_dial(t->opts->self, &to->addr, to->addrlen)) {
		t->code = AQE_E_REFUSED;
		return CURL_SOCKET_BAD;
	}
	if (t->opts->open_proxy)
		return t->opts->open_proxy(t->opts->self); /* -1 is CURL_SOCKET_BAD */
	return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

static int on_ready_socket(void *self, curl_socket_t fd, curlsocktype purpose)
{
	(void)self;
	(void)fd;
	(void)purpose;
	return CURL_SOCKOPT_ALREADY_CONNECTED;
}

/* ---- a request becomes libcurl's ---- */

static bool has_control(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return true;
	return false;
}

static bool is_token(const char *s)
{
	static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ-";

	return *s && strlen(s) <= 16 && strspn(s, LETTERS) == strlen(s);
}

static int add_line(struct curl_slist **list, const char *line, struct aqe_err *e)
{
	struct curl_slist *longer = shim_curl.slist_append(*list, line);

	if (!longer)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	*list = longer;
	return 0;
}

static int take_headers(struct shim_http_ticket *t, struct aqe_err *e)
{
	bool typed = false;
	int rc = add_line(&t->headers, "Expect:", e); /* never wait for a 100 */

	for (size_t i = 0; !rc && t->req->headers && t->req->headers[i]; i++) {
		const char *line = t->req->headers[i], *colon = strchr(line, ':');

		if (i >= HEADERS_MAX || strlen(line) > LINE_MAX_BYTES)
			return aqe_err_set(e, AQE_E_USAGE, 0, "too many or too long headers");
		if (has_control(line) || !colon || colon == line)
			return aqe_err_set(e, AQE_E_USAGE, 0, "unusable header %zu", i);
		typed = typed || strncasecmp(line, "Content-Type:", 13) == 0;
		/* "Name: " would make libcurl drop the header; "Name;" sends it empty */
		rc = add_line(&t->headers, line, e);
	}
	/* libcurl would claim a web form */
	if (!rc && !typed)
		rc = add_line(&t->headers, "Content-Type:", e);
	if (!rc && t->req->source && t->req->source_len < 0)
		rc = add_line(&t->headers, "Transfer-Encoding: chunked", e);
	return rc;
}

static int take_connect_to(struct shim_http_ticket *t, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(256);

	if (!t->req->connect_to)
		return 0;
	aqe_buf_addf(&b, "::%s", t->req->connect_to); /* for any host and port */
	if (aqe_buf_ok(&b, e))
		return AQE_E_USAGE;
	return add_line(&t->connect_to, aqe_buf_str(&b), e);
}

struct text_option {
	CURLoption option;
	const char *value; /* NULL: not set */
};
struct long_option {
	CURLoption option;
	long value;
};

static bool set_texts(CURL *c, const struct text_option *o, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (o[i].value && shim_curl.easy_setopt(c, o[i].option, o[i].value) != CURLE_OK)
			return false;
	return true;
}

static bool set_longs(CURL *c, const struct long_option *o, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (shim_curl.easy_setopt(c, o[i].option, o[i].value) != CURLE_OK)
			return false;
	return true;
}

static bool set_dial(CURL *c, struct shim_http_ticket *t)
{
	const struct shim_http_opts *o = t->opts;
	const struct text_option texts[] = {
		{ CURLOPT_PROTOCOLS_STR, (o->flags & SHIM_HTTP_PLAIN) ? "http,https" : "https" },
		{ CURLOPT_REDIR_PROTOCOLS_STR, "https" },
		/* none, not even from the environment; where the worker's is, is on_socket()'s */
		{ CURLOPT_PROXY, o->open_proxy ? "http://127.0.0.1:1" : "" },
		{ CURLOPT_USERAGENT, o->user_agent },
		{ CURLOPT_CAINFO, o->ca_file },
		{ CURLOPT_SSLCERT, o->cert_file },
		{ CURLOPT_SSLKEY, o->key_file },
		{ CURLOPT_UNIX_SOCKET_PATH, o->unix_socket },
		{ CURLOPT_URL, t->req->url },
	};
	const struct long_option longs[] = {
		{ CURLOPT_FOLLOWLOCATION, 0 },
		{ CURLOPT_NETRC, CURL_NETRC_IGNORED },
		{ CURLOPT_NOSIGNAL, 1 },
		{ CURLOPT_SSL_VERIFYPEER, 1 },
		{ CURLOPT_SSL_VERIFYHOST, 2 },
		{ CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2 },
		{ CURLOPT_TCP_NODELAY, 1 },
		{ CURLOPT_DISALLOW_USERNAME_IN_URL, 1 },
		{ CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1 },
		{ CURLOPT_CONNECTTIMEOUT_MS,
		  o->connect_timeout_ms ? o->connect_timeout_ms : CONNECT_TIMEOUT_MS },
		{ CURLOPT_TIMEOUT_MS, t->req->timeout_ms },
		{ CURLOPT_FRESH_CONNECT, o->open_proxy != NULL },
		{ CURLOPT_FORBID_REUSE, o->open_proxy != NULL },
		{ CURLOPT_LOW_SPEED_LIMIT, 1 },
		{ CURLOPT_LOW_SPEED_TIME, ((long)t->req->idle_ms + 999) / 1000 }, /* 0: never */
	};

	return set_texts(c, texts, AQE_COUNT(texts)) && set_longs(c, longs, AQE_COUNT(longs)) &&
	       (!o->ca_file || !shim_curl.easy_setopt(c, CURLOPT_CAPATH, NULL)) &&
	       (!o->open_proxy ||
		!shim_curl.easy_setopt(c, CURLOPT_SOCKOPTFUNCTION, on_ready_socket)) &&
	       !shim_curl.easy_setopt(c, CURLOPT_ERRORBUFFER, t->words) &&
	       !shim_curl.easy_setopt(c, CURLOPT_CONNECT_TO, t->connect_to) &&
	       !shim_curl.easy_setopt(c, CURLOPT_HTTPHEADER, t->headers);
}

static bool set_body(CURL *c, struct shim_http_ticket *t)
{
	const struct shim_http_req *r = t->req;
	const char *method = r->method ? r->method : "GET";
	const curl_off_t len = r->source ? (curl_off_t)r->source_len
			       : r->body ? (curl_off_t)r->body_len
					 : 0;

	if (strcmp(method, "HEAD") == 0)
		return !shim_curl.easy_setopt(c, CURLOPT_NOBODY, 1L);
	if (shim_curl.easy_setopt(c, CURLOPT_CUSTOMREQUEST, method))
		return false;
	if (r->source)
		return !shim_curl.easy_setopt(c, CURLOPT_UPLOAD, 1L) &&
		       !shim_curl.easy_setopt(c, CURLOPT_READFUNCTION, on_source) &&
		       !shim_curl.easy_setopt(c, CURLOPT_READDATA, (void *)t) &&
		       !shim_curl.easy_setopt(c, CURLOPT_INFILESIZE_LARGE, len);
	if (r->body || strcmp(method, "POST") == 0)
		return !shim_curl.easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, len) &&
		       !shim_curl.easy_setopt(c, CURLOPT_POSTFIELDS, r->body ? r->body : "");
	return true;
}

static bool set_callbacks(CURL *c, struct shim_http_ticket *t)
{
	return !shim_curl.easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body) &&
	       !shim_curl.easy_setopt(c, CURLOPT_WRITEDATA, (void *)t) &&
	       !shim_curl.easy_setopt(c, CURLOPT_HEADERFUNCTION, on_head) &&
	       !shim_curl.easy_setopt(c, CURLOPT_HEADERDATA, (void *)t) &&
	       !shim_curl.easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, on_socket) &&
	       !shim_curl.easy_setopt(c, CURLOPT_OPENSOCKETDATA, (void *)t) &&
	       !shim_curl.easy_setopt(c, CURLOPT_PRIVATE, (void *)t);
}

static int prepare(struct shim_http_ticket *t, struct aqe_err *e)
{
	const struct shim_http_req *r = t->req;
	int rc;

	t->body_max = r->max_body ? r->max_body : BODY_MAX;
	t->resp->body.max = t->body_max;
	if (r->method && !is_token(r->method))
		return aqe_err_set(e, AQE_E_USAGE, 0, "unusable method");
	if (!r->url || strlen(r->url) > LINE_MAX_BYTES || has_control(r->url))
		return aqe_err_set(e, AQE_E_USAGE, 0, "unusable URL");
	rc = take_headers(t, e);
	if (!rc)
		rc = take_connect_to(t, e);
	if (rc)
		return rc;
	shim_curl.easy_reset(t->easy); /* connections stay */
	if (!set_dial(t->easy, t) || !set_body(t->easy, t) || !set_callbacks(t->easy, t))
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "libcurl does not take an option");
	return 0;
}

/* ---- what came of it ---- */

static const struct {
	CURLcode code;
	int rc;
	const char *text;
} FAULTS[] = {
	{ CURLE_UNSUPPORTED_PROTOCOL, AQE_E_USAGE, "not an allowed kind of URL" },
	{ CURLE_URL_MALFORMAT, AQE_E_USAGE, "unusable URL" },
	{ CURLE_LOGIN_DENIED, AQE_E_USAGE, "a user name in the URL" },
	{ CURLE_COULDNT_RESOLVE_HOST, AQE_E_SYS, "the host name does not resolve" },
	{ CURLE_COULDNT_CONNECT, AQE_E_SYS, "cannot connect" },
	{ CURLE_OPERATION_TIMEDOUT, AQE_E_TIMEOUT, "timed out" },
	{ CURLE_OUT_OF_MEMORY, AQE_E_NOMEM, "out of memory" },
	{ CURLE_SSL_CONNECT_ERROR, AQE_E_UNTRUSTED, "TLS handshake failed" },
	{ CURLE_PEER_FAILED_VERIFICATION, AQE_E_UNTRUSTED, "the certificate is not trusted" },
	{ CURLE_SSL_CACERT_BADFILE, AQE_E_UNTRUSTED, "unusable file of authorities" },
	{ CURLE_SSL_CERTPROBLEM, AQE_E_UNTRUSTED, "unusable certificate of ours" },
	{ CURLE_WEIRD_SERVER_REPLY, AQE_E_MALFORMED, "the answer is not HTTP" },
	{ CURLE_PARTIAL_FILE, AQE_E_MALFORMED, "the answer was cut short" },
	{ CURLE_GOT_NOTHING, AQE_E_MALFORMED, "the connection closed without an answer" },
	{ CURLE_RECV_ERROR, AQE_E_SYS, "the connection broke" },
	{ CURLE_SEND_ERROR, AQE_E_SYS, "the connection broke" },
};

/* libcurl has one code for a handshake that failed and one that was cut short. */
static bool is_cut(const char *words)
{
	static const char *const SIGNS[] = { "unexpected eof",        "SSL_ERROR_SYSCALL",
					     "SSL_ERROR_ZERO_RETURN", "Recv failure",
					     "Send failure",          "Connection reset" };

	for (size_t i = 0; i < AQE_COUNT(SIGNS); i++)
		if (strstr(words, SIGNS[i]))
			return true;
	return false;
}

/* The proxy's own answer: 403, 429 and 503 are decisions, the others failures to connect. */
static int fault_of_proxy(const struct shim_http_ticket *t, struct aqe_err *e)
{
	t->resp->status = t->status;
	t->resp->retry_after_s = t->retry_after_s;
	if (t->status == 403 || t->status == 429 || t->status == 503)
		return aqe_err_set(e, AQE_E_REFUSED, 0, "the network policy refuses: %s",
				   t->reason);
	return aqe_err_set(e, t->status == 504 ? AQE_E_TIMEOUT : AQE_E_SYS, 0, "%s", t->reason);
}

static int fault(const struct shim_http_ticket *t, CURLcode code, struct aqe_err *e)
{
	static const char *const OWN[] = {
		[-AQE_E_LIMIT] = "the answer is larger than allowed",
		[-AQE_E_REFUSED] = "the address is not allowed",
		[-AQE_E_NOMEM] = "out of memory",
		[-AQE_E_UNKNOWN] = "ended by us",
	};

	if (t->reason[0])
		return fault_of_proxy(t, e);
	if (code == CURLE_OK)
		return 0;
	if (code == CURLE_SSL_CONNECT_ERROR && is_cut(t->words))
		return aqe_err_set(e, AQE_E_SYS, 0, "the connection broke in the TLS handshake");
	if (t->code)
		return aqe_err_set(e, (enum aqe_code)t->code, 0, "%s", OWN[-t->code]);
	if (code == CURLE_UNSUPPORTED_PROTOCOL && t->resp->peer[0]) /* HTTP/0.9 to libcurl */
		code = CURLE_WEIRD_SERVER_REPLY;
	for (size_t i = 0; i < AQE_COUNT(FAULTS); i++)
		if (FAULTS[i].code == code)
			return aqe_err_set(e, (enum aqe_code)FAULTS[i].rc, 0, "%s", FAULTS[i].text);
	return aqe_err_set(e, AQE_E_SYS, 0, "%s", shim_curl.easy_strerror(code));
}

/* Fills the answer's facts. What libcurl does not know stays as it is. */
static void facts(CURL *c, struct shim_http_resp *r)
{
	curl_off_t us = 0, wait = 0, sent = 0;
	long status = 0, connects = 0;
	const char *text = NULL;

	if (shim_curl.easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK)
		r->status = (int)status;
	if (shim_curl.easy_getinfo(c, CURLINFO_CONTENT_TYPE, &text) == CURLE_OK && text &&
	    strlen(text) < sizeof(r->content_type))
		memcpy(r->content_type, text, strlen(text) + 1);
	if (shim_curl.easy_getinfo(c, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
		r->retry_after_s = wait;
	if (shim_curl.easy_getinfo(c, CURLINFO_SIZE_UPLOAD_T, &sent) == CURLE_OK && sent > 0)
		r->sent = (uint64_t)sent;
	if (shim_curl.easy_getinfo(c, CURLINFO_TOTAL_TIME_T, &us) == CURLE_OK)
		r->total_us = us;
	if (shim_curl.easy_getinfo(c, CURLINFO_CONNECT_TIME_T, &us) == CURLE_OK)
		r->connect_us = us;
	if (shim_curl.easy_getinfo(c, CURLINFO_PRIMARY_IP, &text) == CURLE_OK && text &&
	    strlen(text) < sizeof(r->peer))
		memcpy(r->peer, text, strlen(text) + 1);
	r->reused = r->peer[0] &&
		    shim_curl.easy_getinfo(c, CURLINFO_NUM_CONNECTS, &connects) == 0 &&
		    connects == 0;
}

static void release(struct shim_http_ticket *t)
{
	shim_curl.slist_free_all(t->headers);
	shim_curl.slist_free_all(t->connect_to);
	t->headers = NULL;
	t->connect_to = NULL;
}

void shim_http_resp_done(struct shim_http_resp *r)
{
	if (r)
		aqe_buf_done(&r->body);
}

static void resp_clear(struct shim_http_resp *r)
{
	static const struct shim_http_resp EMPTY = SHIM_HTTP_RESP_INIT;
	struct aqe_buf body = r->body;

	aqe_buf_clear(&body);
	*r = EMPTY;
	r->body = body;
}

/* ---- one at a time ---- */

int shim_http_new(const struct shim_http_opts *o, struct shim_http **ret, struct aqe_err *e)
{
	struct shim_http *h;
	int rc = shim_curl_load(e);

	if (rc)
		return rc;
	h = calloc(1, sizeof(*h));
	if (!h)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	h->arena = aqe_arena_new(ARENA_MAX);
	h->easy = shim_curl.easy_init();
	rc = h->arena && h->easy ? opts_copy(h->arena, &h->opts, o, e)
				 : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	if (rc) {
		shim_http_free(h);
		return rc;
	}
	*ret = h;
	return 0;
}

void shim_http_free(struct shim_http *h)
{
	if (!h)
		return;
	shim_curl.easy_cleanup(h->easy);
	aqe_arena_free(h->arena);
	free(h);
}

int shim_http_send(struct shim_http *h, const struct shim_http_req *req,
		   struct shim_http_resp *resp, struct aqe_err *e)
{
	struct shim_http_ticket t = { .easy = h->easy, .opts = &h->opts, .req = req, .resp = resp };
	int rc;

	resp_clear(resp);
	rc = prepare(&t, e);
	if (!rc) {
		const CURLcode code = shim_curl.easy_perform(h->easy);

		facts(h->easy, resp);
		rc = fault(&t, code, e);
	}
	shim_curl.easy_reset(h->easy); /* no pointer to what the caller owns may stay */
	release(&t);
	return rc;
}

/* ---- many at once ---- */

int shim_http_loop_new(const struct shim_http_opts *o, struct shim_http_loop **ret,
		       struct aqe_err *e)
{
	struct shim_http_loop *l;
	int rc = shim_curl_load(e);

	if (rc)
		return rc;
	l = calloc(1, sizeof(*l));
	if (!l)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	l->arena = aqe_arena_new(ARENA_MAX);
	l->multi = shim_curl.multi_init();
	rc = l->arena && l->multi ? opts_copy(l->arena, &l->opts, o, e)
				  : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	if (rc) {
		shim_http_loop_free(l);
		return rc;
	}
	*ret = l;
	return 0;
}

static void ticket_free(struct shim_http_ticket *t)
{
	struct shim_http_loop *l = t->loop;

	if (l->first == t)
		l->first = t->next;
	if (t->prev)
		t->prev->next = t->next;
	if (t->next)
		t->next->prev = t->prev;
	l->running--;
	(void)shim_curl.multi_remove_handle(l->multi,
					    t->easy); /* fails only for a foreign handle */
	shim_curl.easy_cleanup(t->easy);
	release(t);
	shim_http_resp_done(&t->own);
	free(t);
}

void shim_http_loop_free(struct shim_http_loop *l)
{
	if (!l)
		return;
	while (l->first)
		ticket_free(l->first);
	(void)shim_curl.multi_cleanup(l->multi);
	aqe_arena_free(l->arena);
	free(l);
}

int shim_http_start(struct shim_http_loop *l, const struct shim_http_req *req,
		    shim_http_done_fn *done, struct shim_http_ticket **ret, struct aqe_err *e)
{
	static const struct shim_http_resp EMPTY = SHIM_HTTP_RESP_INIT;
	struct shim_http_ticket *t;
	int rc = 0;

	if (l->running >= LOOP_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %d requests at once", LOOP_MAX);
	t = calloc(1, sizeof(*t));
	if (!t)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	t->opts = &l->opts;
	t->req = req;
	t->own = EMPTY;
	t->resp = &t->own;
	t->loop = l;
	t->done = done;
	t->next = l->first;
	if (l->first)
		l->first->prev = t;
	l->first = t;
	l->running++;
	t->easy = shim_curl.easy_init();
	if (!t->easy)
		rc = aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	if (!rc)
		rc = prepare(t, e);
	if (!rc && shim_curl.multi_add_handle(l->multi, t->easy) != CURLM_OK)
		rc = aqe_err_set(e, AQE_E_INTERNAL, 0, "libcurl does not take a request");
	if (rc) {
		ticket_free(t);
		return rc;
	}
	if (ret)
		*ret = t;
	return 0;
}

void shim_http_cancel(struct shim_http_ticket *t)
{
	ticket_free(t);
}

void shim_http_resume(struct shim_http_ticket *t)
{
	(void)shim_curl.easy_pause(t->easy,
				   CURLPAUSE_CONT); /* a fault ends the request in the loop */
}

static void finish(struct shim_http_loop *l)
{
	const CURLMsg *m;
	int left;

	while ((m = shim_curl.multi_info_read(l->multi, &left))) {
		struct shim_http_ticket *t = NULL;
		struct aqe_err e = AQE_ERR_INIT;
		int rc;

		if (m->msg != CURLMSG_DONE ||
		    shim_curl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t) != CURLE_OK || !t)
			continue;
		facts(t->easy, t->resp);
		rc = fault(t, m->data.result, &e);
		t->done(t->req->self, rc, t->resp, &e);
		ticket_free(t);
	}
}

int shim_http_loop_poll(struct shim_http_loop *l, struct pollfd *extra, size_t n, int timeout_ms,
			struct aqe_err *e)
{
	struct curl_waitfd fds[64];
	int running;

	if (n > AQE_COUNT(fds))
		return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %zu descriptors", AQE_COUNT(fds));
	for (size_t i = 0; i < n; i++) {
		fds[i].fd = extra[i].fd;
		fds[i].events = extra[i].events; /* CURL_WAIT_POLLIN... are poll(2)'s values */
		fds[i].revents = 0;
	}
	if (shim_curl.multi_perform(l->multi, &running) != CURLM_OK)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "libcurl fails");
	finish(l);
	if (shim_curl.multi_poll(l->multi, fds, (unsigned)n, timeout_ms, NULL) != CURLM_OK ||
	    shim_curl.multi_perform(l->multi, &running) != CURLM_OK)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "libcurl fails");
	finish(l);
	/* libcurl does not tell of POLLHUP and POLLERR */
	if (n > 0 && poll(extra, n, 0) < 0 && errno != EINTR)
		return aqe_err_set(e, AQE_E_SYS, errno, "poll");
	return 0;
}

void shim_http_loop_wake(struct shim_http_loop *l)
{
	(void)shim_curl.multi_wakeup(l->multi); /* a lost wake-up is one poll's time-out late */
}

size_t shim_http_loop_running(const struct shim_http_loop *l)
{
	return l->running;
}
