/* SPDX-License-Identifier: MIT */
/* The front ends without HTTP: transparent TLS, SOCKS5, DNS over TCP, metrics. */
#include <string.h>

#include "netpolicy/dns.h"
#include "netpolicy/egress/conn.h"
#include "netpolicy/socks.h"
#include "shim/core/text.h"

#define HTTPS 443

static const struct netpol_asked TLS = { "TLS", NULL, 0 }, SOCKS5 = { "SOCKS5", NULL, 0 };

/* Ends a connection whose client ended before it said enough. */
static void ended_early(struct netpol_conn *c)
{
	if (c->in.len == 0)
		netpol_conn_end(c, "ended");
	else
		netpol_conn_fault(c, 400, "request_incomplete");
}

/* ---- transparent TLS: the name in the ClientHello is the target ---- */

static void tls_input(struct netpol_conn *c)
{
	struct netpol_tls_hello hello;
	int got;

	do {
		switch (netpol_tls_hello_read((const uint8_t *)aqe_buf_str(&c->in), c->in.len,
					      &hello)) {
		case NETPOL_TLS_HELLO:
			if (hello.name_len == 0)
				netpol_conn_fault(c, 400, "sni_missing");
			else
				netpol_conn_request(c, hello.name, hello.name_len, HTTPS, &TLS);
			return;
		case NETPOL_TLS_NOT_TLS:
			netpol_conn_fault(c, 400, "not_tls");
			return;
		case NETPOL_TLS_MALFORMED:
			netpol_conn_fault(c, 400, "hello_malformed");
			return;
		case NETPOL_TLS_MORE:
			break;
		}
		got = netpol_conn_read(c, NETPOL_TLS_BYTES_MAX);
	} while (got > 0);
	if (got == 0 && c->client_ended)
		ended_early(c);
}

/* The name was decided on already; the common look notes it, ALPN and ECH, and finds it equal. */
static void tls_opened(struct netpol_conn *c)
{
	netpol_conn_tunnel(c);
}

static void tls_refused(struct netpol_conn *c, const struct netpol_refusal *r)
{
	static const char access_denied[] = { 21, 3, 3, 0, 2, 2, 49 };
	static const char unrecognized_name[] = { 21, 3, 3, 0, 2, 2, 112 };
	static const char internal_error[] = { 21, 3, 3, 0, 2, 2, 80 };
	const char *alert = r->status >= 500   ? internal_error
			    : r->status == 400 ? unrecognized_name
					       : access_denied;

	(void)aqe_buf_add(&c->out.b, alert, sizeof(access_denied));
}

const struct netpol_front_ops NETPOL_FRONT_OPS_TLS = {
	.front = NETPOL_FRONT_TLS,
	.proto = NETPOL_PROTO_TLS,
	.input = tls_input,
	.opened = tls_opened,
	.refused = tls_refused,
};

/* ---- SOCKS5 ---- */

static void socks_ask(struct netpol_conn *c, const struct netpol_socks_request *rq)
{
	struct netpol_addr addr = { .v6 = rq->v6 };
	struct netpol_host host;

	if (rq->name) {
		netpol_conn_request(c, (const char *)rq->host, rq->host_len, rq->port, &SOCKS5);
		return;
	}
	memcpy(addr.b, rq->host, rq->v6 ? 16 : 4);
	netpol_host_from_addr(&addr, &host);
	netpol_conn_request(c, host.text, host.len, rq->port, &SOCKS5);
}

static void socks_answer(struct netpol_conn *c, enum netpol_socks_reply reply)
{
	uint8_t out[NETPOL_SOCKS_REPLY_LEN];

	netpol_socks_reply(reply, out);
	(void)aqe_buf_add(&c->out.b, out, sizeof(out));
}

/* True when the request was read, or refused. */
static bool socks_request(struct netpol_conn *c)
{
	enum netpol_socks_reply reply = NETPOL_SOCKS_FAILURE;
	struct netpol_socks_request rq;
	size_t used = 0;

	switch (netpol_socks_request((const uint8_t *)aqe_buf_str(&c->in), c->in.len, &rq, &reply,
				     &used)) {
	case NETPOL_SOCKS_MORE:
		return false;
	case NETPOL_SOCKS_BAD:
		netpol_conn_fault(c, 400, "socks_request");
		return true;
	case NETPOL_SOCKS_REFUSED:
		netpol_conn_fault(c, 400,
				  reply == NETPOL_SOCKS_COMMAND ? "socks_command"
								: "socks_address");
		return true;
	case NETPOL_SOCKS_OK:
		break;
	}
	netpol_conn_used(c, used);
	socks_ask(c, &rq);
	return true;
}

static bool socks_greet(struct netpol_conn *c)
{
	uint8_t answer[2];
	size_t used = 0;

	switch (netpol_socks_greeting((const uint8_t *)aqe_buf_str(&c->in), c->in.len, answer,
				      &used)) {
	case NETPOL_SOCKS_MORE:
		return false;
	case NETPOL_SOCKS_BAD:
		netpol_conn_fault(c, 400, "not_socks5");
		return true;
	case NETPOL_SOCKS_REFUSED:
		(void)aqe_buf_add(&c->out.b, answer, sizeof(answer));
		netpol_conn_fault(c, 400, "socks_method");
		return true;
	case NETPOL_SOCKS_OK:
		break;
	}
	c->socks_greeted = true;
	netpol_conn_used(c, used);
	(void)aqe_buf_add(&c->out.b, answer, sizeof(answer));
	if (netpol_out_flush(&c->out, c->client.fd) < 0) {
		netpol_conn_end(c, "client_reset");
		return true;
	}
	return socks_request(c);
}

static void socks_input(struct netpol_conn *c)
{
	int got = 1;

	while (got > 0) {
		if (c->socks_greeted ? socks_request(c) : socks_greet(c))
			return;
		got = netpol_conn_read(c, NETPOL_SOCKS_GREETING_MAX + NETPOL_SOCKS_REQUEST_MAX);
	}
	if (got == 0 && c->client_ended)
		ended_early(c);
}

static void socks_opened(struct netpol_conn *c)
{
	socks_answer(c, NETPOL_SOCKS_SUCCEEDED);
	netpol_conn_tunnel(c);
}

static void socks_refused(struct netpol_conn *c, const struct netpol_refusal *r)
{
	static const struct {
		const char *reason;
		enum netpol_socks_reply reply;
	} replies[] = {
		{ "socks_command", NETPOL_SOCKS_COMMAND },
		{ "socks_address", NETPOL_SOCKS_ADDRESS_TYPE },
		{ "dns_failed", NETPOL_SOCKS_HOST_UNREACHABLE },
		{ "connect_failed", NETPOL_SOCKS_HOST_UNREACHABLE },
		{ "connect_timeout", NETPOL_SOCKS_HOST_UNREACHABLE },
		{ "connect_refused", NETPOL_SOCKS_CONN_REFUSED },
	};
	enum netpol_socks_reply reply =
		r->status >= 500 ? NETPOL_SOCKS_FAILURE : NETPOL_SOCKS_NOT_ALLOWED;

	if (!c->socks_greeted) /* not SOCKS, or answered already */
		return;
	for (size_t i = 0; i < AQE_COUNT(replies); i++) {
		if (aqe_str_eq(replies[i].reason, r->reason))
			reply = replies[i].reply;
	}
	socks_answer(c, reply);
}

const struct netpol_front_ops NETPOL_FRONT_OPS_SOCKS = {
	.front = NETPOL_FRONT_SOCKS,
	.proto = NETPOL_PROTO_SOCKS,
	.input = socks_input,
	.opened = socks_opened,
	.refused = socks_refused,
};

/* ---- DNS over TCP: messages with their length before them ---- */

/* One message; false when none is whole. */
static bool dns_message(struct netpol_conn *c)
{
	uint8_t answer[2 + NETPOL_DNS_ANSWER_MAX];
	const uint8_t *p = (const uint8_t *)c->in.p;
	size_t n = c->in.len >= 2 ? (size_t)p[0] << 8 | p[1] : 0, len;

	if (c->in.len < 2 || c->in.len < 2 + n)
		return false;
	len = netpol_worker_dns_answer(c->w, p + 2, n, answer + 2);
	if (len == 0) {
		netpol_conn_end(c, "ended");
		return false;
	}
	answer[0] = (uint8_t)(len >> 8);
	answer[1] = (uint8_t)len;
	(void)aqe_buf_add(&c->out.b, answer, len + 2);
	netpol_conn_used(c, n + 2);
	return true;
}

/* The deadline of the connection is that of a request head: a stub needs no longer ones. */
static void dns_input(struct netpol_conn *c)
{
	int got = 1;

	while (got > 0) {
		while (dns_message(c))
			;
		if (c->state == NETPOL_CONN_GONE)
			return;
		if (netpol_out_flush(&c->out, c->client.fd) < 0) {
			netpol_conn_end(c, "client_reset");
			return;
		}
		got = netpol_out_empty(&c->out) ? netpol_conn_read(c, 2 + NETPOL_DNS_QUERY_MAX) : 0;
	}
	if (got == 0 && c->client_ended)
		netpol_conn_end(c, "ended");
}

const struct netpol_front_ops NETPOL_FRONT_OPS_DNS_TCP = {
	.front = NETPOL_FRONT_DNS_TCP,
	.proto = NETPOL_PROTO_DNS,
	.input = dns_input,
};

/* ---- metrics: any request is answered with them ---- */

static void metrics_answer(struct netpol_conn *c)
{
	struct netpol_worker *w = c->w;
	struct netpol_limiter_status s;
	struct aqe_buf text = AQE_BUF_INIT((size_t)128 * 1024);
	struct netpol_gauges g = { .connections = w->n_conns - 1,
				   .tunnels = w->n_tunnels,
				   .shared_asked = w->spender.n_asked,
				   .shared_limited = w->spender.n_limited,
				   .shared_away = w->spender.n_away };

	netpol_limiter_status(w->limiter, netpol_boottime_ns(), &s);
	g.rate_remaining = s.remaining;
	w->metrics.lost_records = w->ledger.lost;
	netpol_metrics_emit(&w->metrics, &g, w->type->name, &text);
	(void)aqe_buf_addf(&c->out.b,
			   "HTTP/1.1 200 ok\r\nContent-Type: text/plain; version=0.0.4\r\n"
			   "Content-Length: %zu\r\nConnection: close\r\n\r\n",
			   text.len);
	(void)aqe_buf_add(&c->out.b, aqe_buf_str(&text), text.len);
	aqe_buf_done(&text);
	netpol_conn_linger(c);
}

static void metrics_input(struct netpol_conn *c)
{
	struct netpol_h1_head head;
	int got;

	do {
		netpol_h1_head_init(&head, false);
		switch (netpol_h1_head_scan(&head, aqe_buf_str(&c->in), c->in.len)) {
		case NETPOL_H1_DONE:
			metrics_answer(c);
			return;
		case NETPOL_H1_BAD:
			netpol_conn_end(c, "ended");
			return;
		case NETPOL_H1_MORE:
			break;
		}
		got = netpol_conn_read(c, NETPOL_H1_HEAD_MAX);
	} while (got > 0);
	if (got == 0 && c->client_ended)
		netpol_conn_end(c, "ended");
}

const struct netpol_front_ops NETPOL_FRONT_OPS_METRICS = {
	.front = NETPOL_FRONT_METRICS,
	.proto = NETPOL_PROTO_ANY,
	.input = metrics_input,
};
