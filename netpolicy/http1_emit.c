/* SPDX-License-Identifier: MIT */
#include "netpolicy/http1_emit.h"

#include <inttypes.h>

#include "netpolicy/http1_int.h"

static void put(struct aqe_buf *b, const char *p, struct netpol_h1_span s)
{
	(void)aqe_buf_add(b, p + s.at, s.n); /* sticky: looked at once, at the end */
}

static void put_field(struct aqe_buf *b, const char *p, const struct netpol_h1_field *f)
{
	put(b, p, f->name);
	(void)aqe_buf_add(b, ": ", 2);
	put(b, p, f->value);
	(void)aqe_buf_add(b, "\r\n", 2);
}

/* R6: hop-by-hop fields, and those we write ourselves, do not go on. */
static void put_fields(struct aqe_buf *b, const struct netpol_h1_head *h, const char *p)
{
	for (unsigned i = 0; i < h->count; i++) {
		if (h->fields[i].id == NETPOL_H1_F_OTHER && !h->fields[i].hop)
			put_field(b, p, &h->fields[i]);
	}
}

static void put_body_framing(struct aqe_buf *b, enum netpol_h1_body body, uint64_t length)
{
	if (body == NETPOL_H1_CHUNKED)
		(void)aqe_buf_puts(b, "Transfer-Encoding: chunked\r\n");
	if (body == NETPOL_H1_LENGTH)
		(void)aqe_buf_addf(b, "Content-Length: %" PRIu64 "\r\n", length);
}

/* OPTIONS for a host without a path is "*" to that host (RFC 9112 3.2.4). */
static void put_target(struct aqe_buf *b, const char *p, const struct netpol_h1_request *r)
{
	if (r->base && *r->base)
		(void)aqe_buf_puts(b, r->base);
	else if (r->path.n == 0)
		(void)aqe_buf_putc(b, r->options && !r->base ? '*' : '/');
	else if (p[r->path.at] != '/')
		(void)aqe_buf_putc(b, '/');
	put(b, p, r->path);
}

int netpol_h1_emit_request(struct aqe_buf *b, const struct netpol_h1_head *h, const char *p,
			   const struct netpol_h1_request *r, const char *authority, bool websocket)
{
	put(b, p, r->method);
	(void)aqe_buf_putc(b, ' ');
	put_target(b, p, r);
	(void)aqe_buf_addf(b, " HTTP/1.1\r\nHost: %s\r\n", authority);
	put_fields(b, h, p);
	if (r->max_forwards > 0)
		(void)aqe_buf_addf(b, "Max-Forwards: %d\r\n", r->max_forwards - 1);
	if (r->expect)
		(void)aqe_buf_puts(b, "Expect: 100-continue\r\n");
	if (websocket)
		(void)aqe_buf_puts(b, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	put_body_framing(b, r->body, r->length);
	(void)aqe_buf_add(b, "\r\n", 2);
	return aqe_buf_ok(b, NULL);
}

/* A length without a body (HEAD, 304) describes another message's body: it goes on as read. */
static void put_bare_length(struct aqe_buf *b, const struct netpol_h1_head *h, const char *p,
			    const struct netpol_h1_response *r)
{
	if (r->status / 100 == 1 || r->status == 204)
		return;
	for (unsigned i = 0; i < h->count; i++) {
		if (h->fields[i].id == NETPOL_H1_F_CONTENT_LENGTH)
			put_field(b, p, &h->fields[i]);
	}
}

int netpol_h1_emit_response(struct aqe_buf *b, const struct netpol_h1_head *h, const char *p,
			    const struct netpol_h1_response *r, enum netpol_h1_framing framing,
			    bool close)
{
	bool switching = r->status == 101;

	(void)aqe_buf_addf(b, "HTTP/1.1 %u ", r->status);
	put(b, p, h->word[2]);
	(void)aqe_buf_add(b, "\r\n", 2);
	put_fields(b, h, p);
	if (switching)
		(void)aqe_buf_puts(b, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	else if (close && r->status / 100 != 1)
		(void)aqe_buf_puts(b, "Connection: close\r\n");
	if (r->body == NETPOL_H1_NO_BODY)
		put_bare_length(b, h, p, r);
	else if (framing == NETPOL_H1_SEND_SAME)
		put_body_framing(b, r->body, r->length);
	(void)aqe_buf_add(b, "\r\n", 2);
	return aqe_buf_ok(b, NULL);
}

uint64_t netpol_h1_retry_after_s(uint64_t ms)
{
	uint64_t s = ms / 1000 + (ms % 1000 != 0);

	return s > 0 ? s : 1;
}

/* Host, rule and type come from the policy or are canonical, but a quote costs nothing. */
static void put_json(struct aqe_buf *b, const char *key, const char *value)
{
	(void)aqe_buf_addf(b, ",\"%s\":\"", key);
	for (const char *c = value; *c; c++) {
		if (*c == '"' || *c == '\\' || !netpol_h1_is_visible((unsigned char)*c))
			(void)aqe_buf_addf(b, "\\u%04x", (unsigned)(unsigned char)*c);
		else
			(void)aqe_buf_putc(b, *c);
	}
	(void)aqe_buf_putc(b, '"');
}

/* "error" repeats the reason: npm prints only that member. */
static void put_answer_body(struct aqe_buf *b, const struct netpol_h1_answer *a)
{
	(void)aqe_buf_addf(b, "{\"error\":\"%s\",\"reason\":\"%s\"", a->reason, a->reason);
	if (a->host)
		put_json(b, "host", a->host);
	if (a->port > 0)
		(void)aqe_buf_addf(b, ",\"port\":%u", a->port);
	if (a->agent_type)
		put_json(b, "agent_type", a->agent_type);
	if (a->rule)
		put_json(b, "rule", a->rule);
	if (a->retry_after_ms > 0)
		(void)aqe_buf_addf(b, ",\"retry_after_ms\":%" PRIu64, a->retry_after_ms);
	(void)aqe_buf_addf(b, ",\"request_id\":%" PRIu64 "}\n", a->request_id);
}

int netpol_h1_emit_answer(struct aqe_buf *b, const struct netpol_h1_answer *a)
{
	struct aqe_buf body = AQE_BUF_INIT(4096);

	put_answer_body(&body, a);
	if (body.failed)
		aqe_buf_clear(&body); /* the status line says it too */
	/* The reason is the reason phrase as well: curl, Go and git show only the status line of a
	 * CONNECT that failed. */
	(void)aqe_buf_addf(b, "HTTP/1.1 %u %s\r\nX-Aqe-Reason: %s\r\nX-Aqe-Deny: %s\r\n", a->status,
			   a->reason, a->reason, a->reason);
	if (a->retry_after_ms > 0)
		(void)aqe_buf_addf(b, "Retry-After: %" PRIu64 "\r\n",
				   netpol_h1_retry_after_s(a->retry_after_ms));
	(void)aqe_buf_addf(b, "Content-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n",
			   body.len, a->close ? "Connection: close\r\n" : "");
	if (!a->head)
		(void)aqe_buf_add(b, aqe_buf_str(&body), body.len);
	aqe_buf_done(&body);
	return aqe_buf_ok(b, NULL);
}

int netpol_h1_emit_established(struct aqe_buf *b)
{
	(void)aqe_buf_puts(b, "HTTP/1.1 200 connection established\r\n\r\n");
	return aqe_buf_ok(b, NULL);
}
