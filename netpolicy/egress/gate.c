/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/gate.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "netpolicy/egress/http.h"
#include "netpolicy/gateway.h"
#include "shim/core/text.h"

static const struct netpol_refusal NO_COMPANION = { 503, "gateway_unavailable", 1000 };

/* ---- routes ---- */

static struct netpol_gate *find(const struct netpol_gates *g, const char *name)
{
	for (size_t i = 0; i < g->n; i++) {
		if (aqe_str_eq(g->list[i].name, name))
			return &g->list[i];
	}
	return NULL;
}

static void free_gates(struct netpol_gates *g)
{
	for (size_t i = 0; i < g->n; i++)
		netpol_limiter_free(g->list[i].limiter);
	free(g->list);
	*g = (struct netpol_gates){ NULL, 0 };
}

/* A route of the new policy: what it had spent before stays spent. */
static int add_gate(struct netpol_worker *w, struct netpol_gates *to,
		    const struct netpol_gateway *g, struct aqe_err *e)
{
	const struct netpol_rate *rate = g->has_rate ? &g->rate : &w->type->rate;
	struct netpol_gate *old = find(&w->gates, g->name), *gate = &to->list[to->n];
	int rc;

	(void)snprintf(gate->name, sizeof(gate->name), "%s", g->name);
	if (old) {
		rc = netpol_limiter_reconf(old->limiter, netpol_boottime_ns(), rate, e);
		gate->limiter = old->limiter;
		old->limiter = rc < 0 ? old->limiter : NULL;
	} else {
		rc = netpol_limiter_new(rate, &gate->limiter, e);
	}
	to->n += rc == 0;
	return rc;
}

int netpol_gates_load(struct netpol_worker *w, struct aqe_err *e)
{
	const struct netpol_policy *p = w->policy;
	struct netpol_gates next = { calloc(p->n_gateways + 1, sizeof(*next.list)), 0 };
	int rc = next.list ? 0 : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for gateways");

	for (size_t i = 0; next.list && rc == 0 && i < p->n_gateways; i++) {
		const struct netpol_gateway *g = &p->gateways[i];

		if (netpol_policy_gateway(p, w->type->name, g->name) == g)
			rc = add_gate(w, &next, g, e);
	}
	if (rc < 0) {
		free_gates(&next); /* the worker ends: it holds nothing half new */
		return rc;
	}
	free_gates(&w->gates);
	w->gates = next;
	return 0;
}

/* ---- the companion ---- */

static void unlink_asking(struct netpol_asking *a)
{
	a->prev->next = a->next;
	a->next->prev = a->prev;
	a->prev = a->next = NULL;
}

static void lost(struct netpol_link *l)
{
	struct netpol_worker *w = l->w;

	if (l->watch.fd >= 0) {
		netpol_loop_unwatch(w->loop, &l->watch);
		(void)close(l->watch.fd); /* its other end is told so */
		l->watch.fd = -1;
	}
	while (l == &w->links[NETPOL_COMPANION_GATEWAY] && w->wraps.next != &w->wraps) {
		struct netpol_asking *a = w->wraps.next;

		unlink_asking(a);
		netpol_conn_failed(NETPOL_OWNER(a, struct netpol_conn, asking), &NO_COMPANION);
	}
}

/* The socket in clear, or why there is none. */
static void wrapped(struct netpol_conn *c, uint8_t result, int fd)
{
	static const struct netpol_refusal failures[NETPOL_WRAP_RESULT_COUNT] = {
		[NETPOL_WRAP_OK] = { 503, "overloaded", 1000 },
		[NETPOL_WRAP_UNKNOWN] = { 503, "gateway_unavailable", 1000 },
		[NETPOL_WRAP_CREDENTIAL] = { 503, "credential_unavailable", 1000 },
		[NETPOL_WRAP_TLS] = { 502, "tls_failed", 0 },
		[NETPOL_WRAP_BUSY] = { 503, "overloaded", 1000 },
	};

	if (result == NETPOL_WRAP_OK && fd >= 0) {
		netpol_conn_take_upstream(c, fd);
		return;
	}
	if (fd >= 0)
		(void)close(fd); /* a failure brings none */
	netpol_conn_failed(c, &failures[result]);
}

static bool take_wrapped(struct netpol_worker *w, const struct netpol_msg_wrapped *m, int fd)
{
	struct netpol_asking *a = w->wraps.next;

	if (m->result >= NETPOL_WRAP_RESULT_COUNT) {
		if (fd >= 0)
			(void)close(fd); /* of a message that is refused */
		return false;
	}
	while (a != &w->wraps && a->id != m->id)
		a = a->next;
	if (a != &w->wraps) {
		unlink_asking(a);
		wrapped(NETPOL_OWNER(a, struct netpol_conn, asking), m->result, fd);
	} else if (fd >= 0) {
		(void)close(fd); /* nobody waits for it any more */
	}
	return true;
}

/* The companion's own requests come as those of any client: by the agent's policy. */
static bool take_client(struct netpol_worker *w, int fd)
{
	if (fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
		if (fd >= 0)
			(void)close(fd); /* not a socket to serve */
		return false;
	}
	netpol_conn_accept(&w->from_companion, fd);
	return true;
}

static void on_companion(struct netpol_watch *watch, uint32_t events)
{
	struct netpol_link *l = NETPOL_OWNER(watch, struct netpol_link, watch);
	union netpol_msg m;
	bool good = true;
	int fd, got = 0;

	(void)events;
	while (good && (got = netpol_wire_recv(watch->fd, &m, &fd)) > 0) {
		if (m.head.type == NETPOL_MSG_WRAPPED)
			good = take_wrapped(l->w, &m.wrapped, fd);
		else if (m.head.type == NETPOL_MSG_CLIENT)
			good = take_client(l->w, fd);
		else if (fd >= 0)
			(void)close(fd); /* of no message for us */
	}
	if (!good || got < 0)
		lost(l);
}

void netpol_gates_link(struct netpol_worker *w, uint32_t role, int fd)
{
	struct netpol_link *l = role < NETPOL_COMPANION_COUNT ? &w->links[role] : NULL;

	if (l)
		lost(l);
	if (l)
		l->watch = (struct netpol_watch){ fd, on_companion, 0 };
	if (l && netpol_loop_watch(w->loop, &l->watch, EPOLLIN))
		return;
	(void)close(fd); /* nobody's */
	if (l)
		l->watch.fd = -1;
}

void netpol_gates_done(struct netpol_worker *w)
{
	for (size_t i = 0; i < NETPOL_COMPANION_COUNT; i++)
		lost(&w->links[i]);
	free_gates(&w->gates);
}

void netpol_gate_wrap(struct netpol_conn *c, int fd)
{
	struct netpol_worker *w = c->w;
	int chan = w->links[NETPOL_COMPANION_GATEWAY].watch.fd;
	struct netpol_msg_wrap m;

	memset(&m, 0, sizeof(m));
	m.type = NETPOL_MSG_WRAP;
	m.id = ++w->last_dial;
	(void)snprintf(m.gateway, sizeof(m.gateway), "%s", c->gate->name);
	if (chan < 0 || netpol_wire_send(chan, &m, sizeof(m), fd) != NETPOL_WIRE_SENT) {
		(void)close(fd);
		netpol_conn_failed(c, &NO_COMPANION);
		return;
	}
	(void)close(fd); /* the companion has its own now */
	c->asking.id = m.id;
	c->asking.next = &w->wraps;
	c->asking.prev = w->wraps.prev;
	c->asking.prev->next = c->asking.next->prev = &c->asking;
	netpol_conn_deadline(c, (int64_t)w->type->limits.connect_ms + NETPOL_CONN_DIAL_SLACK_MS);
}

/* ---- requests ---- */

static void refuse(struct netpol_conn *c, unsigned status, const char *reason, uint64_t retry_ms)
{
	struct netpol_refusal r = { status, reason, retry_ms };

	netpol_conn_refuse(c, &r);
}

static void note(struct netpol_conn *c, const struct netpol_gateway *g)
{
	char rule[NETPOL_RECORD_TEXT + 1];

	if (!g)
		return;
	(void)snprintf(rule, sizeof(rule), "gateway %s", g->name);
	netpol_record_text(c->rec.rule, sizeof(c->rec.rule), rule, strlen(rule));
	netpol_record_text(c->rec.host, sizeof(c->rec.host), g->host.text, g->host.len);
	netpol_record_text(c->rec.reason, sizeof(c->rec.reason), "allowed", 7);
	c->rec.port = g->port;
	c->host = g->host;
	c->port = g->port;
}

/* The route's own limiter, last: what is refused costs nothing. */
static bool within_rate(struct netpol_conn *c)
{
	struct netpol_gate *gate = find(&c->w->gates, c->gate->name);
	struct netpol_limit l = { false, 0 };

	if (gate)
		netpol_limiter_consume(gate->limiter, netpol_boottime_ns(), &l);
	if (l.allowed)
		netpol_worker_spent(c->w, NETPOL_RATES_GATE(gate - c->w->gates.list));
	else
		refuse(c, 429, "rate_limit_exceeded", l.retry_ms);
	return l.allowed;
}

static bool passes(struct netpol_conn *c)
{
	const struct netpol_h1_request *r = &c->http->req;

	if (r->websocket)
		refuse(c, 403, "upgrade_refused", 0);
	else if (r->body == NETPOL_H1_LENGTH && c->gate->max_request &&
		 r->length > c->gate->max_request)
		refuse(c, 413, "body_too_large", 0);
	else
		return within_rate(c);
	return false;
}

/* What goes on: the path behind the name, without the fields that carry credentials. */
static void rewrite(struct netpol_conn *c, const struct netpol_gateway_target *t)
{
	struct netpol_http *h = c->http;

	h->req.base = c->gate->base;
	h->req.path.at = (uint16_t)(t->path - c->in.p);
	h->req.path.n = (uint16_t)(t->path_n + t->query_n);
	for (unsigned i = 0; i < h->head.count; i++) {
		struct netpol_h1_field *f = &h->head.fields[i];

		if (netpol_gateway_drops(c->gate, c->in.p + f->name.at, f->name.n))
			f->hop = true; /* not forwarded */
	}
}

void netpol_gate_request(struct netpol_conn *c)
{
	const struct netpol_h1_request *r = &c->http->req;
	char method[NETPOL_H1_METHOD_MAX + 1];
	struct netpol_gateway_answer a;
	const char *path = c->in.p + r->path.at;
	struct netpol_asked asked = { method, path, r->path.n };

	memcpy(method, c->in.p + r->method.at, r->method.n);
	method[r->method.n] = '\0';
	netpol_conn_begin(c, &asked, 0);
	netpol_gateway_decide(c->w->policy, c->w->type->name, path, r->path.n, method, &a);
	c->gate = a.gateway;
	note(c, c->gate);
	if (c->gate)
		(void)snprintf(c->gate_name, sizeof(c->gate_name), "%s", c->gate->name);
	if (a.reason) {
		refuse(c, a.status, a.reason, 0);
		return;
	}
	assert(c->gate); /* it was found, or there is a reason */
	if (!passes(c))
		return;
	rewrite(c, &a.target);
	netpol_conn_admit(c);
}

void netpol_gate_recheck(struct netpol_conn *c)
{
	const struct netpol_gateway *g;

	if (!c->open) { /* between two requests: the next one has a connection of its own */
		c->gate = NULL;
		netpol_conn_drop_upstream(c);
		return;
	}
	g = netpol_policy_gateway(c->w->policy, c->w->type->name, c->gate_name);
	if (g && g->port == c->port && netpol_host_eq(&g->host, &c->host)) {
		c->gate = g;
		return;
	}
	netpol_conn_close_record(c, NETPOL_BLOCKED, "policy_changed");
	netpol_conn_end(c, "policy_changed");
}

int64_t netpol_conn_silence_ms(const struct netpol_conn *c, bool responded)
{
	if (c->gate)
		return c->gate->timeout_ms;
	return responded ? (int64_t)c->w->type->limits.idle_s * 1000 : c->w->type->timeout_ms;
}
