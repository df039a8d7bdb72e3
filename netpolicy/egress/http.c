/* SPDX-License-Identifier: MIT */
/* The request's side: reading a head, judging it, asking, answering ourselves. */
#include "netpolicy/egress/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netpolicy/egress/gate.h"
#include "netpolicy/http1_emit.h"
#include "shim/core/text.h"

/* Behind the largest head, so that a pipelining client is read in pieces. */
#define READ_MAX (NETPOL_H1_HEAD_MAX + 4096)
#define HTTP     80
#define HTTPS    443

struct netpol_http *netpol_http_new(void)
{
	struct netpol_http *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	netpol_h1_head_init(&h->head, false);
	h->up_in.max = NETPOL_H1_HEAD_MAX + NETPOL_RELAY_SCRATCH;
	h->up_out.b.max = (size_t)2 * NETPOL_H1_HEAD_MAX + (size_t)2 * NETPOL_RELAY_SCRATCH;
	h->again.max = NETPOL_H1_HEAD_MAX * 2;
	return h;
}

void netpol_http_free(struct netpol_http *h)
{
	if (!h)
		return;
	aqe_buf_done(&h->up_in);
	aqe_buf_done(&h->up_out.b);
	aqe_buf_done(&h->again);
	free(h);
}

bool netpol_http_served(const struct netpol_http *h)
{
	return h && h->served;
}

/* Chunks that are here already are judged before anything is decided: what is malformed then
 * reaches nobody. */
static enum netpol_h1_fault precheck_body(const struct netpol_conn *c)
{
	const struct netpol_http *h = c->http;
	struct netpol_h1_chunks chunks;
	enum netpol_h1_step step = NETPOL_H1_MORE;
	size_t used = 0, data = 0;

	if (h->req.body != NETPOL_H1_CHUNKED)
		return NETPOL_H1_OK;
	netpol_h1_chunks_init(&chunks);
	for (size_t at = h->head.at; at < c->in.len && step == NETPOL_H1_MORE; at += used)
		step = netpol_h1_chunks_next(&chunks, c->in.p + at, c->in.len - at, &used, &data);
	return step == NETPOL_H1_BAD ? NETPOL_H1_CHUNK : NETPOL_H1_OK;
}

static enum netpol_h1_front front_of(const struct netpol_conn *c)
{
	return c->ops->front == NETPOL_FRONT_HTTP || c->ops->front == NETPOL_FRONT_CACHE
		       ? NETPOL_H1_PROXY
		       : NETPOL_H1_ORIGIN;
}

static uint16_t port_of(const struct netpol_conn *c)
{
	return c->http->req.port > 0 ? c->http->req.port : HTTP;
}

/* True when the Host field names another host than the target: it is replaced (RFC 9112 3.2.2), and
 * noted. */
static bool host_differs(const struct netpol_conn *c)
{
	const struct netpol_h1_span s = c->http->req.host_field;
	struct netpol_host host;

	if (s.n == 0)
		return false;
	return !netpol_host_parse(c->in.p + s.at, s.n, &host, NULL) ||
	       !netpol_host_eq(&host, &c->host);
}

static void ask(struct netpol_conn *c)
{
	const struct netpol_h1_request *r = &c->http->req;
	char method[NETPOL_H1_METHOD_MAX + 1];
	struct netpol_asked asked = { method, NULL, 0 };

	memcpy(method, c->in.p + r->method.at, r->method.n);
	method[r->method.n] = '\0';
	if (!r->connect) {
		asked.path = c->in.p + r->path.at;
		asked.path_len = r->path.n;
	}
	netpol_conn_request(c, c->in.p + r->host.at, r->host.n, port_of(c), &asked);
}

static void got_head(struct netpol_conn *c)
{
	struct netpol_http *h = c->http;
	enum netpol_h1_fault fault =
		netpol_h1_request_read(&h->head, c->in.p, front_of(c), &h->req);

	if (fault == NETPOL_H1_OK) {
		h->known = true;
		fault = precheck_body(c);
	}
	/* A transparent listener stands for one port. */
	if (fault == NETPOL_H1_OK && c->ops->front == NETPOL_FRONT_HOST && port_of(c) != HTTP)
		fault = NETPOL_H1_HOST_FIELD;
	if (fault == NETPOL_H1_OK && c->ops->front == NETPOL_FRONT_GATEWAY)
		netpol_gate_request(c);
	else if (fault == NETPOL_H1_OK)
		ask(c);
	else
		netpol_conn_fault(c, netpol_h1_status(fault), netpol_h1_reason(fault));
}

/* After the first byte of a further request its head has the same time as the first one's. */
static void start_timing(struct netpol_conn *c)
{
	struct netpol_http *h = c->http;

	if (h->timing || c->in.len == 0)
		return;
	h->timing = true;
	if (h->served)
		netpol_conn_deadline(c, c->w->type->limits.header_ms);
}

static void input(struct netpol_conn *c)
{
	struct netpol_http *h = c->http;
	int got;

	for (;;) {
		start_timing(c);
		switch (netpol_h1_head_scan(&h->head, aqe_buf_str(&c->in), c->in.len)) {
		case NETPOL_H1_DONE:
			got_head(c);
			return;
		case NETPOL_H1_BAD:
			netpol_conn_fault(c, netpol_h1_status(h->head.fault),
					  netpol_h1_reason(h->head.fault));
			return;
		case NETPOL_H1_MORE:
			break;
		}
		got = netpol_conn_read(c, READ_MAX);
		if (got <= 0)
			break;
	}
	if (got < 0 || !c->client_ended)
		return;
	if (c->in.len == 0)
		netpol_conn_end(c, "ended");
	else
		netpol_conn_fault(c, 400, "request_incomplete");
}

/* ---- after the decision ---- */

static bool is_for_us(const struct netpol_conn *c)
{
	const struct netpol_h1_request *r = &c->http->req;

	return r->max_forwards == 0 &&
	       (r->options ||
		(r->method.n == 5 && memcmp(c->in.p + r->method.at, "TRACE", 5) == 0));
}

/* RFC 9110 7.6.2: Max-Forwards 0 ends here. */
static void answer_here(struct netpol_conn *c)
{
	(void)aqe_buf_puts(&c->out.b,
			   "HTTP/1.1 200 ok\r\nContent-Length: 0\r\nConnection: close\r\n"
			   "\r\n");
	c->rec.status = 200;
	netpol_conn_close_record(c, NETPOL_ALLOWED, "ended");
	netpol_conn_linger(c);
}

/* The head for the upstream, and what of the body is here already. */
static bool emit(struct netpol_conn *c)
{
	struct netpol_http *h = c->http;
	char authority[NETPOL_HOST_MAX + 8];
	size_t used = 0;

	(void)snprintf(authority, sizeof(authority),
		       c->port == (c->gate ? HTTPS : HTTP) ? "%s" : "%s:%u", c->host.text, c->port);
	if (netpol_h1_emit_request(&h->up_out.b, &h->head, c->in.p, &h->req, authority,
				   h->req.websocket) < 0)
		return false;
	netpol_body_init(&h->up, h->req.body, h->req.length, false);
	if (netpol_body_feed(&h->up, c->in.p + h->head.at, c->in.len - h->head.at, &h->up_out.b,
			     &used) == NETPOL_H1_BAD)
		return false;
	c->rec.up += h->up_out.b.len;
	netpol_conn_used(c, h->head.at + used);
	return true;
}

static bool can_reuse(const struct netpol_conn *c)
{
	const struct netpol_http *h = c->http;

	return c->upstream.fd >= 0 && !h->up_ended && h->up_port == c->port &&
	       netpol_host_eq(&h->up_host, &c->host) &&
	       aqe_str_eq(h->up_gate, c->gate ? c->gate->name : "");
}

static void go_on(struct netpol_conn *c)
{
	static const struct netpol_refusal broken = { 503, "overloaded", 1000 };
	struct netpol_http *h = c->http;

	if (!emit(c)) {
		netpol_conn_failed(c, &broken);
		return;
	}
	h->reused = can_reuse(c);
	if (!h->reused) {
		netpol_conn_dial(c);
		return;
	}
	/* A kept connection may have died meanwhile; a request without a body can be repeated. */
	if (h->req.body == NETPOL_H1_NO_BODY)
		(void)aqe_buf_add(&h->again, h->up_out.b.p, h->up_out.b.len);
	netpol_http_begin(c);
}

void netpol_http_admitted(struct netpol_conn *c)
{
	static const struct netpol_refusal upgrade = { 403, "upgrade_refused", 0 };
	static const struct netpol_refusal mismatch = { 400, "host_mismatch", 0 };
	struct netpol_http *h = c->http;

	if (c->gate) {
		go_on(c);
	} else if (h->req.connect) {
		netpol_conn_used(c, h->head.at);
		netpol_conn_dial(c);
	} else if (h->req.websocket && !c->w->type->websocket) {
		netpol_conn_failed(c, &upgrade);
	} else if (host_differs(c) && c->w->type->host_strict) {
		netpol_conn_failed(c, &mismatch);
	} else if (is_for_us(c)) {
		answer_here(c);
	} else {
		go_on(c);
	}
}

static void opened(struct netpol_conn *c)
{
	struct netpol_http *h = c->http;

	if (!h->req.connect) {
		h->up_host = c->host;
		h->up_port = c->port;
		(void)snprintf(h->up_gate, sizeof(h->up_gate), "%s", c->gate ? c->gate->name : "");
		netpol_http_begin(c);
		return;
	}
	if (netpol_h1_emit_established(&c->out.b) < 0) {
		netpol_conn_end(c, "no_memory");
		return;
	}
	netpol_conn_tunnel(c);
}

static void refused(struct netpol_conn *c, const struct netpol_refusal *r)
{
	struct netpol_h1_answer a = {
		.status = r->status,
		.reason = r->reason,
		.host = c->rec.host[0] ? c->rec.host : NULL,
		.port = c->rec.port,
		.agent_type = c->w->type->name,
		.rule = c->rec.rule[0] ? c->rec.rule : NULL,
		.request_id = c->rec.id,
		.retry_after_ms = r->retry_ms,
		.head = c->http->known && c->http->req.head,
		.close = true,
	};

	(void)!netpol_h1_emit_answer(&c->out.b, &a); /* without memory: no answer, but the end */
}

const struct netpol_front_ops NETPOL_FRONT_OPS_HTTP = {
	.front = NETPOL_FRONT_HTTP,
	.proto = NETPOL_PROTO_HTTP,
	.input = input,
	.opened = opened,
	.refused = refused,
	.exchange = netpol_http_exchange,
};
const struct netpol_front_ops NETPOL_FRONT_OPS_HOST = {
	.front = NETPOL_FRONT_HOST,
	.proto = NETPOL_PROTO_HTTP,
	.input = input,
	.opened = opened,
	.refused = refused,
	.exchange = netpol_http_exchange,
};
const struct netpol_front_ops NETPOL_FRONT_OPS_GATEWAY = {
	.front = NETPOL_FRONT_GATEWAY,
	.proto = NETPOL_PROTO_ANY,
	.input = input,
	.opened = opened,
	.refused = refused,
	.exchange = netpol_http_exchange,
};
const struct netpol_front_ops NETPOL_FRONT_OPS_CACHE = {
	.front = NETPOL_FRONT_CACHE,
	.proto = NETPOL_PROTO_HTTP,
	.input = input,
	.opened = opened,
	.refused = refused,
	.exchange = netpol_http_exchange,
};
