/* SPDX-License-Identifier: MIT */
/* Tunnels: the look at the ClientHello, then bytes both ways. */
#include <stdlib.h>
#include <string.h>

#include "netpolicy/egress/conn.h"
#include "netpolicy/egress/gate.h"

#define HTTPS 443

/* RFC 8446 6: fatal, access_denied. Clients then say "access denied" instead of "closed". */
static const char ALERT[] = { 21, 3, 3, 0, 2, 2, 49 };

static bool is_local_literal(const struct netpol_conn *c)
{
	return c->host.kind == NETPOL_HOST_LITERAL;
}

/* Why this hello may not go to c->host; NULL: it may. */
static const char *judge(struct netpol_conn *c, const struct netpol_tls_hello *hello)
{
	struct netpol_host name;

	netpol_record_text(c->rec.sni, sizeof(c->rec.sni), hello->name, hello->name_len);
	netpol_record_text(c->rec.alpn, sizeof(c->rec.alpn), hello->alpn, strlen(hello->alpn));
	if (hello->ech)
		c->rec.flags |= NETPOL_FLAG_ECH;
	if (hello->name_len == 0)
		return is_local_literal(c) ? NULL : "sni_missing"; /* an address has no SNI */
	if (!netpol_host_parse(hello->name, hello->name_len, &name, NULL) ||
	    !netpol_host_eq(&name, &c->host))
		return "sni_mismatch";
	return NULL;
}

/* Both sides are told that it is over; what was not sent stays unsent. */
static void refuse_hello(struct netpol_conn *c, const char *cause)
{
	netpol_conn_close_record(c, NETPOL_BLOCKED, cause);
	(void)aqe_buf_add(&c->out.b, ALERT, sizeof(ALERT));
	netpol_conn_linger(c);
}

static void verdict(struct netpol_conn *c, const char *cause)
{
	if (cause && c->w->type->sni == NETPOL_SNI_ENFORCE) {
		refuse_hello(c, cause);
		return;
	}
	if (cause)
		c->rec.flags |= NETPOL_FLAG_SNI_AUDIT;
	netpol_conn_relay_start(c);
}

void netpol_conn_hello(struct netpol_conn *c)
{
	struct netpol_tls_hello hello;
	const uint8_t *p;
	int got = 0;

	do {
		p = (const uint8_t *)aqe_buf_str(&c->in);
		switch (netpol_tls_hello_read(p, c->in.len, &hello)) {
		case NETPOL_TLS_HELLO:
			verdict(c, judge(c, &hello));
			return;
		case NETPOL_TLS_NOT_TLS:
			verdict(c, "not_tls");
			return;
		case NETPOL_TLS_MALFORMED:
			verdict(c, "hello_malformed");
			return;
		case NETPOL_TLS_MORE:
			break;
		}
		got = netpol_conn_read(c, NETPOL_TLS_BYTES_MAX);
	} while (got > 0);
	if (got == 0 && c->client_ended)
		verdict(c, c->in.len > 0 ? "hello_incomplete" : "no_hello");
}

/* The 200 of a CONNECT must be out before any byte of the upstream. */
static void send_answer(struct netpol_conn *c)
{
	if (netpol_out_flush(&c->out, c->client.fd) < 0)
		netpol_conn_end(c, "client_reset");
}

void netpol_conn_tunnel(struct netpol_conn *c)
{
	static const struct netpol_refusal full = { 503, "too_many_tunnels", 1000 };

	if (c->w->n_tunnels >= c->w->type->limits.tunnels) {
		aqe_buf_clear(&c->out.b);
		netpol_conn_failed(c, &full);
		return;
	}
	c->is_tunnel = true;
	c->w->n_tunnels++;
	c->rec.status = 200;
	send_answer(c);
	if (c->state == NETPOL_CONN_GONE)
		return;
	if (c->w->type->sni == NETPOL_SNI_OFF || c->port != HTTPS) {
		netpol_conn_relay_start(c);
		return;
	}
	c->state = NETPOL_CONN_HELLO;
	netpol_conn_deadline(c, c->w->type->limits.first_byte_ms);
	netpol_conn_hello(c);
}

void netpol_conn_relay_start(struct netpol_conn *c)
{
	const struct netpol_limits *l = &c->w->type->limits;
	const int fd[2] = { c->client.fd, c->upstream.fd };

	if (!c->is_tunnel) { /* by way of 101 */
		c->is_tunnel = true;
		c->w->n_tunnels++;
	}
	c->state = NETPOL_CONN_TUNNEL;
	netpol_relay_init(&c->relay, fd, c->w->scratch);
	c->relay.flow[0].cap = l->bytes_up;
	c->relay.flow[1].cap = l->bytes_down;
	if (!netpol_relay_early(&c->relay, 0, c->in.p, c->in.len) ||
	    !netpol_relay_early(&c->relay, 1, c->out.b.p ? c->out.b.p + c->out.at : NULL,
				c->out.b.len - c->out.at)) {
		netpol_conn_end(c, "no_memory");
		return;
	}
	aqe_buf_done(&c->in);
	aqe_buf_done(&c->out.b);
	c->out.at = 0;
	netpol_loop_arm(c->w->loop, &c->lifetime,
			netpol_loop_now(c->w->loop) + (int64_t)l->lifetime_s * 1000);
	netpol_loop_defer(c->w->loop, &c->more);
	netpol_conn_deadline(c, (int64_t)l->idle_s * 1000);
}

void netpol_conn_relay(struct netpol_conn *c, enum netpol_relay_state state)
{
	switch (state) {
	case NETPOL_RELAY_OPEN:
		break;
	case NETPOL_RELAY_AGAIN:
		netpol_loop_defer(c->w->loop, &c->more);
		break;
	case NETPOL_RELAY_ENDED:
		netpol_conn_end(c, "ended");
		return;
	case NETPOL_RELAY_RESET:
		netpol_conn_end(c, "reset");
		return;
	case NETPOL_RELAY_CAP:
		netpol_conn_end(c, "byte_cap");
		return;
	}
	netpol_conn_deadline(c, (int64_t)c->w->type->limits.idle_s * 1000);
}

void netpol_conn_recheck(struct netpol_conn *c)
{
	struct netpol_request rq = { c->ops->proto, c->host.text, c->host.len, c->port };
	struct netpol_answer a;

	if (c->ops->front == NETPOL_FRONT_GATEWAY) {
		netpol_gate_recheck(c);
		return;
	}
	if (!c->open)
		return;
	if (strcmp(c->rec.method, "CONNECT") == 0)
		rq.proto = NETPOL_PROTO_CONNECT;
	netpol_decide(c->w->type, NULL, 0, &rq, NETPOL_PEEK, &a);
	if (a.verdict == NETPOL_ALLOW)
		return;
	netpol_conn_close_record(c, NETPOL_BLOCKED, "policy_changed");
	netpol_conn_end(c, "policy_changed");
}
