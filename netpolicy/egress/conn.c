/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netpolicy/egress/gate.h"
#include "netpolicy/egress/http.h"

/* Most bytes waiting for a client; more is not produced until they are gone. */
#define OUT_MAX ((size_t)256 * 1024)
/* What c->in may hold: the largest head and what one read brings behind it. */
#define IN_MAX (NETPOL_H1_HEAD_MAX + NETPOL_RELAY_SCRATCH)

static const struct netpol_front_ops *const FRONTS[NETPOL_FRONT_COUNT] = {
	[NETPOL_FRONT_HTTP] = &NETPOL_FRONT_OPS_HTTP,
	[NETPOL_FRONT_SOCKS] = &NETPOL_FRONT_OPS_SOCKS,
	[NETPOL_FRONT_DNS] = NULL, /* datagrams */
	[NETPOL_FRONT_DNS_TCP] = &NETPOL_FRONT_OPS_DNS_TCP,
	[NETPOL_FRONT_TLS] = &NETPOL_FRONT_OPS_TLS,
	[NETPOL_FRONT_HOST] = &NETPOL_FRONT_OPS_HOST,
	[NETPOL_FRONT_METRICS] = &NETPOL_FRONT_OPS_METRICS,
	[NETPOL_FRONT_GATEWAY] = &NETPOL_FRONT_OPS_GATEWAY,
	[NETPOL_FRONT_CACHE] = &NETPOL_FRONT_OPS_CACHE,
};

int netpol_out_flush(struct netpol_out *o, int fd)
{
	while (o->at < o->b.len) {
		ssize_t n = send(fd, o->b.p + o->at, o->b.len - o->at, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		o->at += (size_t)n;
	}
	aqe_buf_clear(&o->b);
	o->at = 0;
	return 1;
}

void netpol_conn_deadline(struct netpol_conn *c, int64_t ms)
{
	netpol_loop_arm(c->w->loop, &c->deadline, netpol_loop_now(c->w->loop) + ms);
}

ssize_t netpol_conn_recv(struct netpol_conn *c, size_t max)
{
	size_t room = max < NETPOL_RELAY_SCRATCH ? max : NETPOL_RELAY_SCRATCH;
	ssize_t n;

	if (c->client_ended || !c->readable)
		return 0;
	do
		n = recv(c->client.fd, c->w->scratch, room, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		/* A short read has emptied the socket, and the next bytes bring an event
		 * (epoll(7)); but an end that was told together with these bytes brings none. */
		c->readable = (size_t)n == room || c->ending;
		return n;
	}
	c->readable = false;
	if (n < 0 && errno != EAGAIN) {
		netpol_conn_end(c, "client_reset");
		return -1;
	}
	c->client_ended = n == 0;
	return 0;
}

int netpol_conn_read(struct netpol_conn *c, size_t max)
{
	size_t room = c->in.len < max ? max - c->in.len : 0;
	ssize_t n;

	n = room > 0 ? netpol_conn_recv(c, room) : 0;
	if (n <= 0)
		return (int)n;
	if (aqe_buf_add(&c->in, c->w->scratch, (size_t)n) == 0)
		return 1;
	netpol_conn_end(c, "client_reset");
	return -1;
}

void netpol_conn_used(struct netpol_conn *c, size_t n)
{
	c->in.len -= n;
	if (c->in.len > 0)
		memmove(c->in.p, c->in.p + n, c->in.len);
	else
		aqe_buf_done(&c->in); /* an idle connection holds no buffer */
}

/* ---- records ---- */

static void set_text(char *ret, size_t size, const char *text)
{
	netpol_record_text(ret, size, text ? text : "", text ? strlen(text) : 0);
}

/* Queries carry secrets: they are not for the log. */
static void note_path(struct netpol_record *r, const char *path, size_t n)
{
	const char *query = memchr(path, '?', n);

	if (query)
		n = (size_t)(query - path);
	netpol_record_text(r->path, sizeof(r->path), n > 0 ? path : "/", n > 0 ? n : 1);
}

void netpol_conn_begin(struct netpol_conn *c, const struct netpol_asked *asked, uint16_t port)
{
	netpol_record_init(&c->rec);
	c->rec.id = ++c->w->last_id;
	c->rec.at_ns = netpol_wall_ns();
	c->rec.port = port;
	set_text(c->rec.listener, sizeof(c->rec.listener), netpol_front_name(c->ops->front));
	set_text(c->rec.method, sizeof(c->rec.method), asked->method);
	if (asked->path)
		note_path(&c->rec, asked->path, asked->path_len);
	set_text(c->rec.policy, sizeof(c->rec.policy), c->w->policy->digest);
	c->begun_us = netpol_mono_us();
}

void netpol_conn_close_record(struct netpol_conn *c, enum netpol_action action, const char *cause)
{
	struct netpol_record *r = &c->rec;

	if (!c->open)
		return;
	c->open = false;
	r->phase = NETPOL_PHASE_CLOSE;
	r->action = (uint8_t)action;
	r->at_ns = netpol_wall_ns();
	r->duration_us = netpol_mono_us() - c->begun_us;
	set_text(r->reason, sizeof(r->reason), cause);
	if (c->relay.scratch) {
		r->up += c->relay.flow[0].bytes;
		r->down += c->relay.flow[1].bytes;
	}
	netpol_metrics_close(&c->w->metrics, r);
	netpol_ledger_tell(&c->w->ledger, r);
}

/* ---- the end ---- */

static void bury(struct netpol_grave *g)
{
	free(NETPOL_OWNER(g, struct netpol_conn, grave));
}

void netpol_conn_drop_upstream(struct netpol_conn *c)
{
	netpol_loop_close(c->w->loop, &c->upstream);
}

/* A tunnel that broke on one side breaks on the other too: an end would look complete. */
static void reset_on_close(int fd)
{
	struct linger now = { 1, 0 };

	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

void netpol_conn_end(struct netpol_conn *c, const char *cause)
{
	struct netpol_worker *w = c->w;

	if (c->state == NETPOL_CONN_GONE)
		return;
	if (c->relay.scratch && strcmp(cause, "ended") != 0) {
		reset_on_close(c->client.fd);
		reset_on_close(c->upstream.fd);
	}
	netpol_conn_close_record(c, NETPOL_ALLOWED, cause);
	c->state = NETPOL_CONN_GONE;
	netpol_relay_done(&c->relay);
	netpol_conn_drop_upstream(c);
	netpol_loop_close(w->loop, &c->client);
	netpol_loop_disarm(w->loop, &c->deadline);
	netpol_loop_disarm(w->loop, &c->lifetime);
	netpol_loop_undefer(w->loop, &c->more);
	netpol_ledger_forget(&w->ledger, &c->wait);
	netpol_worker_forget(w, &c->asking);
	netpol_spender_forget(&w->spender, &c->spend);
	netpol_http_free(c->http);
	aqe_buf_done(&c->in);
	aqe_buf_done(&c->out.b);
	w->n_conns--;
	w->n_tunnels -= c->is_tunnel;
	*(c->prev ? &c->prev->next : &w->conns) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	netpol_loop_bury(w->loop, &c->grave);
}

static void drain(struct netpol_conn *c)
{
	ssize_t n;

	do {
		n = recv(c->client.fd, c->w->scratch, NETPOL_RELAY_SCRATCH, MSG_DONTWAIT);
		if (n > 0)
			c->drained += (size_t)n;
	} while ((n > 0 && c->drained < NETPOL_CONN_LINGER_BYTES) || (n < 0 && errno == EINTR));
	if (n >= 0 || errno != EAGAIN)
		netpol_conn_end(c, "ended");
}

/* Sends, then says so (FIN) and reads on for a while: closing with unread bytes would make the
 * kernel throw the answer away. */
static void linger(struct netpol_conn *c)
{
	int sent = netpol_out_flush(&c->out, c->client.fd);

	if (sent < 0) {
		netpol_conn_end(c, "client_reset");
		return;
	}
	if (sent == 0)
		return;
	(void)shutdown(c->client.fd, SHUT_WR);
	drain(c);
}

void netpol_conn_linger(struct netpol_conn *c)
{
	netpol_conn_drop_upstream(c);
	c->state = NETPOL_CONN_LINGER;
	netpol_conn_deadline(c, NETPOL_CONN_LINGER_MS);
	linger(c);
}

/* ---- refusing ---- */

static void answer_refusal(struct netpol_conn *c)
{
	netpol_loop_disarm(c->w->loop, &c->deadline);
	c->ops->refused(c, &c->refusal);
	netpol_conn_linger(c);
}

static void on_refusal_stored(struct netpol_wait *w, bool ok)
{
	(void)ok; /* a refusal that could not be stored is still one; the log counts its gap */
	answer_refusal(NETPOL_OWNER(w, struct netpol_conn, wait));
}

void netpol_conn_refuse(struct netpol_conn *c, const struct netpol_refusal *r)
{
	struct netpol_worker *w = c->w;

	c->refusal = *r;
	c->rec.phase = NETPOL_PHASE_DECISION;
	c->rec.action = r->status == 429 ? NETPOL_RATE_LIMITED : NETPOL_BLOCKED;
	c->rec.status = (uint16_t)r->status;
	set_text(c->rec.reason, sizeof(c->rec.reason), r->reason);
	netpol_metrics_decision(&w->metrics, &c->rec);
	if (!netpol_worker_may_store(w, &c->rec)) {
		answer_refusal(c);
		return;
	}
	c->state = NETPOL_CONN_REFUSING;
	c->wait.fn = on_refusal_stored;
	netpol_conn_deadline(c, NETPOL_CONN_RECORD_MS);
	if (!netpol_ledger_put(&w->ledger, &c->rec, &c->wait)) {
		netpol_ledger_tell(&w->ledger, &c->rec);
		answer_refusal(c);
	}
}

void netpol_conn_fault(struct netpol_conn *c, unsigned status, const char *reason)
{
	static const struct netpol_asked nothing = { "", NULL, 0 };
	struct netpol_refusal r = { status, reason, 0 };

	netpol_conn_begin(c, &nothing, 0);
	netpol_conn_refuse(c, &r);
}

void netpol_conn_failed(struct netpol_conn *c, const struct netpol_refusal *r)
{
	c->refusal = *r;
	c->rec.status = (uint16_t)r->status;
	netpol_conn_close_record(c, r->status == 403 ? NETPOL_BLOCKED : NETPOL_ALLOWED, r->reason);
	answer_refusal(c);
}

/* ---- deciding ---- */

static void on_decision_stored(struct netpol_wait *w, bool ok)
{
	struct netpol_conn *c = NETPOL_OWNER(w, struct netpol_conn, wait);
	struct netpol_refusal r = { 503, "audit_unavailable", 1000 };

	c->open = ok; /* what is not stored has no close either */
	if (!ok)
		netpol_conn_failed(c, &r);
	else if (c->http)
		netpol_http_admitted(c);
	else
		netpol_conn_dial(c);
}

void netpol_conn_admit(struct netpol_conn *c)
{
	struct netpol_refusal r = { 503, "audit_unavailable", 1000 };

	c->rec.phase = NETPOL_PHASE_DECISION;
	c->rec.action = NETPOL_ALLOWED;
	netpol_metrics_decision(&c->w->metrics, &c->rec);
	c->state = NETPOL_CONN_RECORD;
	c->wait.fn = on_decision_stored;
	netpol_conn_deadline(c, NETPOL_CONN_RECORD_MS);
	c->open = netpol_ledger_put(&c->w->ledger, &c->rec, &c->wait);
	if (!c->open)
		netpol_conn_failed(c, &r);
}

static unsigned status_of(const struct netpol_answer *a)
{
	switch (a->verdict) {
	case NETPOL_DENY:
		return a->reason == NETPOL_REASON_NO_POLICY || a->reason == NETPOL_REASON_STORE
			       ? 503
			       : 403;
	case NETPOL_LIMITED:
		return 429;
	case NETPOL_INVALID:
		return 400;
	case NETPOL_ALLOW:
		return 200;
	}
	return 403;
}

/* Rule, reason and flags of the decision. */
static void note_verdict(struct netpol_conn *c, const struct netpol_answer *a)
{
	set_text(c->rec.rule, sizeof(c->rec.rule), a->rule ? a->rule->text : NULL);
	set_text(c->rec.reason, sizeof(c->rec.reason), netpol_reason_name(a->reason));
	set_text(c->rec.policy, sizeof(c->rec.policy), c->w->policy->digest);
	if (a->would_deny)
		c->rec.flags |= NETPOL_FLAG_WOULD_DENY;
}

/* The host. The bytes as sent are kept only when they differ. */
static void note_host(struct netpol_conn *c, const struct netpol_answer *a, const char *host,
		      size_t host_len)
{
	bool valid = a->verdict != NETPOL_INVALID;

	if (valid) {
		c->host = a->host;
		set_text(c->rec.host, sizeof(c->rec.host), a->host.text);
	}
	if (!valid || a->host.len != host_len || memcmp(a->host.text, host, host_len) != 0)
		netpol_record_text(c->rec.raw_host, sizeof(c->rec.raw_host), host, host_len);
}

static void decided(struct netpol_conn *c, const struct netpol_answer *a)
{
	struct netpol_refusal r = { status_of(a), netpol_reason_name(a->reason), a->retry_ms };

	note_verdict(c, a);
	if (a->verdict == NETPOL_ALLOW)
		netpol_conn_admit(c);
	else
		netpol_conn_refuse(c, &r);
}

static struct netpol_request request_of(const struct netpol_conn *c)
{
	bool connect = strcmp(c->rec.method, "CONNECT") == 0;

	return (struct netpol_request){ connect ? NETPOL_PROTO_CONNECT : c->ops->proto,
					c->host.text, c->host.len, c->port };
}

/* The policy may have changed while it waited, so it is decided once more; here what the others
 * admitted is spent. */
static void on_spent(struct netpol_spending *s, enum netpol_spent result, uint64_t retry_ms)
{
	struct netpol_conn *c = NETPOL_OWNER(s, struct netpol_conn, spend);
	struct netpol_worker *w = c->w;
	const struct netpol_request rq = request_of(c);
	bool local = result == NETPOL_SPENT_AWAY &&
		     w->policy->cluster.on_store_error == NETPOL_STORE_LOCAL;
	struct netpol_answer a;

	if (local)
		c->rec.flags |= NETPOL_FLAG_LOCAL_LIMIT;
	netpol_worker_decide(w, &rq,
			     result == NETPOL_SPENT_OK || local ? NETPOL_CONSUME : NETPOL_PEEK, &a);
	if (a.verdict == NETPOL_ALLOW && result == NETPOL_SPENT_LIMITED)
		netpol_decide_refused(w->type, &rq, NETPOL_REASON_RATE, retry_ms, &a);
	else if (a.verdict == NETPOL_ALLOW && result == NETPOL_SPENT_AWAY && !local)
		netpol_decide_refused(w->type, &rq, NETPOL_REASON_STORE, 1000, &a);
	decided(c, &a);
}

void netpol_conn_request(struct netpol_conn *c, const char *host, size_t host_len, uint16_t port,
			 const struct netpol_asked *asked)
{
	bool shared = c->w->policy->cluster.address != NULL;
	struct netpol_request rq = { c->ops->proto, host, host_len, port };
	struct netpol_answer a;

	netpol_conn_begin(c, asked, port);
	if (strcmp(asked->method, "CONNECT") == 0)
		rq.proto = NETPOL_PROTO_CONNECT;
	netpol_worker_decide(c->w, &rq, shared ? NETPOL_PEEK : NETPOL_CONSUME, &a);
	note_host(c, &a, host, host_len);
	c->port = port;
	if (!shared || a.verdict != NETPOL_ALLOW) {
		decided(c, &a);
		return;
	}
	c->state = NETPOL_CONN_SHARED;
	c->spend.fn = on_spent;
	netpol_conn_deadline(c, NETPOL_CONN_RECORD_MS);
	netpol_spender_add(&c->w->spender, &c->spend);
}

/* ---- dialling ---- */

static const struct netpol_refusal DIAL_FAILURES[NETPOL_DIAL_RESULT_COUNT] = {
	[NETPOL_DIAL_OK] = { 200, "ok", 0 },
	[NETPOL_DIAL_DENIED] = { 403, "policy_changed", 0 },
	[NETPOL_DIAL_ADDRESS] = { 403, "address_denied", 0 },
	[NETPOL_DIAL_DNS] = { 502, "dns_failed", 0 },
	[NETPOL_DIAL_REFUSED] = { 502, "connect_refused", 0 },
	[NETPOL_DIAL_UNREACHABLE] = { 502, "connect_failed", 0 },
	[NETPOL_DIAL_TIMEOUT] = { 504, "connect_timeout", 0 },
	[NETPOL_DIAL_BUSY] = { 503, "overloaded", 1000 },
	[NETPOL_DIAL_PROXY] = { 502, "upstream_proxy_failed", 0 },
};

static void on_upstream(struct netpol_watch *w, uint32_t events)
{
	struct netpol_conn *c = NETPOL_OWNER(w, struct netpol_conn, upstream);

	switch (c->state) {
	case NETPOL_CONN_EXCHANGE:
		c->ops->exchange(c, 0, events);
		break;
	case NETPOL_CONN_TUNNEL:
		netpol_conn_relay(c, netpol_relay_event(&c->relay, 1, events));
		break;
	case NETPOL_CONN_READING:
	case NETPOL_CONN_SHARED:
	case NETPOL_CONN_RECORD:
		/* Kept between two requests: whatever it says now ends it. */
		if (events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP))
			netpol_conn_drop_upstream(c);
		break;
	case NETPOL_CONN_DIALING:
	case NETPOL_CONN_HELLO: /* the relay looks when it starts */
	case NETPOL_CONN_REFUSING:
	case NETPOL_CONN_LINGER:
	case NETPOL_CONN_GONE:
		break;
	}
}

void netpol_conn_take_upstream(struct netpol_conn *c, int fd)
{
	struct netpol_refusal r = DIAL_FAILURES[NETPOL_DIAL_BUSY];

	c->upstream = (struct netpol_watch){ fd, on_upstream, 0 };
	if (netpol_loop_watch(c->w->loop, &c->upstream, EPOLLIN | EPOLLOUT | EPOLLRDHUP)) {
		c->ops->opened(c);
		return;
	}
	(void)close(fd);
	c->upstream.fd = -1;
	netpol_conn_failed(c, &r);
}

static void on_dialed(struct netpol_asking *a, const struct netpol_msg_dialed *m, int fd)
{
	struct netpol_conn *c = NETPOL_OWNER(a, struct netpol_conn, asking);
	struct netpol_refusal r;

	memcpy(c->rec.address, m->address, sizeof(c->rec.address));
	memcpy(c->rec.dropped, m->dropped, sizeof(c->rec.dropped));
	c->rec.dns_us = m->dns_us;
	c->rec.connect_us = m->connect_us;
	netpol_histogram_add(&c->w->metrics.dns, m->dns_us);
	netpol_histogram_add(&c->w->metrics.connect, m->connect_us);
	if (m->result == NETPOL_DIAL_OK && fd >= 0) {
		if (c->gate)
			netpol_gate_wrap(c, fd);
		else
			netpol_conn_take_upstream(c, fd);
		return;
	}
	if (fd >= 0)
		(void)close(fd); /* a failure brings none */
	r = DIAL_FAILURES[m->result == NETPOL_DIAL_OK ? NETPOL_DIAL_BUSY : m->result];
	netpol_conn_failed(c, &r);
}

void netpol_conn_dial(struct netpol_conn *c)
{
	struct netpol_refusal r = DIAL_FAILURES[NETPOL_DIAL_BUSY];
	struct netpol_dial_to to = { c->ops->proto, &c->host, c->port,
				     c->gate ? c->gate->name : NULL };

	if (strcmp(c->rec.method, "CONNECT") == 0)
		to.proto = NETPOL_PROTO_CONNECT;
	netpol_conn_drop_upstream(c);
	c->state = NETPOL_CONN_DIALING;
	c->asking.fn = on_dialed;
	netpol_conn_deadline(c, (int64_t)c->w->type->limits.connect_ms + NETPOL_CONN_DIAL_SLACK_MS);
	if (!netpol_worker_dial(c->w, &c->asking, &to))
		netpol_conn_failed(c, &r);
}

/* ---- events ---- */

static void on_client(struct netpol_watch *w, uint32_t events)
{
	struct netpol_conn *c = NETPOL_OWNER(w, struct netpol_conn, client);

	if (events & EPOLLERR) {
		netpol_conn_end(c, "client_reset");
		return;
	}
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP))
		c->readable = true;
	if (events & (EPOLLRDHUP | EPOLLHUP))
		c->ending = true;
	switch (c->state) {
	case NETPOL_CONN_READING:
		c->ops->input(c);
		break;
	case NETPOL_CONN_HELLO:
		netpol_conn_hello(c);
		break;
	case NETPOL_CONN_EXCHANGE:
		c->ops->exchange(c, events, 0);
		break;
	case NETPOL_CONN_TUNNEL:
		netpol_conn_relay(c, netpol_relay_event(&c->relay, 0, events));
		break;
	case NETPOL_CONN_LINGER:
		linger(c);
		break;
	case NETPOL_CONN_SHARED:
	case NETPOL_CONN_RECORD:
	case NETPOL_CONN_DIALING:
	case NETPOL_CONN_REFUSING:
		/* A half-close is no end; both halves closed is. */
		if (events & EPOLLHUP)
			netpol_conn_end(c, "client_closed");
		break;
	case NETPOL_CONN_GONE:
		break;
	}
}

static void on_more(struct netpol_task *t)
{
	struct netpol_conn *c = NETPOL_OWNER(t, struct netpol_conn, more);

	if (c->state == NETPOL_CONN_TUNNEL)
		netpol_conn_relay(c, netpol_relay_run(&c->relay));
	else
		on_client(&c->client, EPOLLIN | EPOLLOUT);
}

static void on_deadline(struct netpol_timer *t)
{
	struct netpol_conn *c = NETPOL_OWNER(t, struct netpol_conn, deadline);
	struct netpol_refusal late = { 503, "audit_unavailable", 1000 };
	struct netpol_refusal dial = DIAL_FAILURES[NETPOL_DIAL_TIMEOUT];

	switch (c->state) {
	case NETPOL_CONN_READING:
		if (!c->ops->refused || (c->in.len == 0 && netpol_http_served(c->http)))
			netpol_conn_end(c, "ended"); /* or between two requests */
		else
			netpol_conn_fault(c, 408, "header_timeout");
		break;
	case NETPOL_CONN_SHARED:
		netpol_spender_forget(&c->w->spender, &c->spend);
		on_spent(&c->spend, NETPOL_SPENT_AWAY, 0);
		break;
	case NETPOL_CONN_RECORD:
		netpol_ledger_forget(&c->w->ledger, &c->wait);
		netpol_conn_failed(c, &late);
		break;
	case NETPOL_CONN_DIALING:
		netpol_worker_forget(c->w, &c->asking);
		netpol_conn_failed(c, &dial);
		break;
	case NETPOL_CONN_EXCHANGE:
		netpol_http_late(c);
		break;
	case NETPOL_CONN_HELLO:
		netpol_conn_close_record(c, NETPOL_BLOCKED, "first_byte_timeout");
		netpol_conn_end(c, "first_byte_timeout");
		break;
	case NETPOL_CONN_TUNNEL:
		netpol_conn_end(c, "idle_timeout");
		break;
	case NETPOL_CONN_REFUSING:
		netpol_ledger_forget(&c->w->ledger, &c->wait);
		answer_refusal(c);
		break;
	case NETPOL_CONN_LINGER:
		netpol_conn_end(c, "ended");
		break;
	case NETPOL_CONN_GONE:
		break;
	}
}

static void on_lifetime(struct netpol_timer *t)
{
	netpol_conn_end(NETPOL_OWNER(t, struct netpol_conn, lifetime), "lifetime");
}

static bool speaks_http(enum netpol_front f)
{
	return FRONTS[f]->exchange != NULL;
}

/* Over the limit the client is told at once and without ceremony. */
static void turn_away(struct netpol_worker *w, const struct netpol_listening *l, int fd)
{
	static const char text[] =
		"HTTP/1.1 503 overloaded\r\nX-Aqe-Reason: overloaded\r\nX-Aqe-Deny: overloaded\r\n"
		"Retry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

	w->metrics.overloaded++;
	if (speaks_http(l->front))
		(void)send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)close(fd);
}

static struct netpol_conn *new_conn(struct netpol_listening *l, int fd)
{
	struct netpol_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->w = l->w;
	c->ops = FRONTS[l->front];
	c->state = NETPOL_CONN_READING;
	c->client = (struct netpol_watch){ fd, on_client, 0 };
	c->upstream.fd = -1;
	c->deadline.fn = on_deadline;
	c->lifetime.fn = on_lifetime;
	c->more.fn = on_more;
	c->grave.bury = bury;
	c->in.max = IN_MAX;
	c->out.b.max = OUT_MAX;
	if (speaks_http(l->front))
		c->http = netpol_http_new();
	if ((c->http || !speaks_http(l->front)) &&
	    netpol_loop_watch(c->w->loop, &c->client, EPOLLIN | EPOLLOUT | EPOLLRDHUP))
		return c;
	netpol_http_free(c->http);
	free(c);
	return NULL;
}

void netpol_conn_accept(struct netpol_listening *l, int fd)
{
	struct netpol_worker *w = l->w;
	struct netpol_conn *c = NULL;

	w->metrics.accepted++;
	if (w->n_conns < w->type->limits.connections || l->front == NETPOL_FRONT_METRICS)
		c = new_conn(l, fd);
	if (!c) {
		turn_away(w, l, fd);
		return;
	}
	w->n_conns++;
	c->next = w->conns;
	if (c->next)
		c->next->prev = c;
	w->conns = c;
	netpol_conn_deadline(c, w->type->limits.header_ms);
}
