/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/dialer.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netpolicy/decide.h"
#include "netpolicy/egress/handoff.h"
#include "netpolicy/egress/loop.h"
#include "netpolicy/egress/resolve.h"
#include "netpolicy/egress/via.h"
#include "shim/core/text.h"

struct dialer;
struct dial;

/* One connection being made. */
struct
try {
	struct netpol_watch watch;
	struct dial *dial;
	struct netpol_addr addr;
};

struct dial {
	struct dial *prev, *next;
	struct dialer *d;
	struct netpol_grave grave;
	struct netpol_timer deadline, stagger;
	struct netpol_watch via; /* the upstream proxy was asked and has not answered; or -1 */
	struct try tries[NETPOL_DIAL_TRIES_MAX];
	struct netpol_addr addrs[NETPOL_RESOLVE_ADDRS]; /* vetted */
	size_t n_addrs, next_addr;
	struct netpol_host host;
	uint16_t port;
	int last_errno;
	int64_t begun_us; /* connecting */
	struct netpol_msg_dialed reply;
};

struct dialer {
	struct netpol_loop *loop;
	struct netpol_policy *policy;
	const char *agent_type;
	const struct netpol_type *type;
	struct netpol_resolver *resolver;
	struct netpol_via via;
	const char *proxy_auth;
	struct netpol_watch worker, keeper, resolved;
	struct dial dials; /* head of a ring */
	unsigned n_dials;
	struct netpol_addr own[NETPOL_OWN_ADDRS_MAX]; /* of this host's interfaces */
	size_t n_own;
	int64_t own_until_ms;
};

/* ---- the end of a dial ---- */

static void bury(struct netpol_grave *g)
{
	free(NETPOL_OWNER(g, struct dial, grave));
}

static void close_try(struct dialer *d, struct try *t)
{
	if (t->watch.fd < 0)
		return;
	netpol_loop_unwatch(d->loop, &t->watch);
	(void)close(t->watch.fd); /* a connection nobody waits for */
	t->watch.fd = -1;
}

static void end(struct dial *x)
{
	struct dialer *d = x->d;

	for (size_t i = 0; i < NETPOL_DIAL_TRIES_MAX; i++)
		close_try(d, &x->tries[i]);
	if (x->via.fd >= 0) {
		netpol_loop_unwatch(d->loop, &x->via);
		(void)close(x->via.fd); /* nobody waits for it any more */
	}
	netpol_loop_disarm(d->loop, &x->deadline);
	netpol_loop_disarm(d->loop, &x->stagger);
	x->prev->next = x->next;
	x->next->prev = x->prev;
	d->n_dials--;
	netpol_loop_bury(d->loop, &x->grave);
}

/* The channel holds an answer for every dial that may be running, so it is full only when the
 * worker does not read: then it gets no socket, and times out. */
static void answer(struct dial *x, enum netpol_dial_result result, int fd)
{
	x->reply.result = (uint8_t)result;
	if (netpol_wire_send(x->d->worker.fd, &x->reply, sizeof(x->reply), fd) == NETPOL_WIRE_GONE)
		netpol_loop_stop(x->d->loop);
	end(x);
}

/* Where connections lead: to the upstream proxy if there is one. */
static const struct netpol_host *host_of(const struct dial *x)
{
	return x->d->via.used ? &x->d->via.host : &x->host;
}

/* What goes wrong on the way to a proxy is no fact about the origin. */
static void failed(struct dial *x, enum netpol_dial_result result)
{
	answer(x, x->d->via.used ? NETPOL_DIAL_PROXY : result, -1);
}

static enum netpol_dial_result of_errno(int sys)
{
	if (sys == ECONNREFUSED)
		return NETPOL_DIAL_REFUSED;
	return sys == ETIMEDOUT ? NETPOL_DIAL_TIMEOUT : NETPOL_DIAL_UNREACHABLE;
}

/* ---- connecting ---- */

static void on_via(struct netpol_watch *w, uint32_t events)
{
	struct dial *x = NETPOL_OWNER(w, struct dial, via);
	int fd = w->fd;

	(void)events;
	switch (netpol_via_answer(fd)) {
	case NETPOL_VIA_MORE:
		return;
	case NETPOL_VIA_REFUSED:
		answer(x, NETPOL_DIAL_PROXY, -1);
		return;
	case NETPOL_VIA_OPEN:
		break;
	}
	netpol_loop_unwatch(x->d->loop, w);
	w->fd = -1;
	answer(x, NETPOL_DIAL_OK, fd);
	(void)close(fd); /* the worker has its own now */
}

/* Connected to the proxy: its other addresses are of no interest any more. */
static void ask_proxy(struct dial *x, int fd)
{
	for (size_t i = 0; i < NETPOL_DIAL_TRIES_MAX; i++)
		close_try(x->d, &x->tries[i]);
	netpol_loop_disarm(x->d->loop, &x->stagger);
	x->via = (struct netpol_watch){ fd, on_via, 0 };
	if (!netpol_via_ask(fd, &x->host, x->port, x->d->proxy_auth) ||
	    !netpol_loop_watch(x->d->loop, &x->via, EPOLLIN | EPOLLRDHUP))
		answer(x, NETPOL_DIAL_PROXY, -1);
}

static void connected(struct dial *x, struct try *t)
{
	char text[NETPOL_ADDR_TEXT];
	int fd = t->watch.fd;

	netpol_addr_format(&t->addr, text);
	(void)snprintf(x->reply.address, sizeof(x->reply.address), "%s", text);
	x->reply.connect_us = netpol_mono_us() - x->begun_us;
	netpol_loop_unwatch(x->d->loop, &t->watch);
	t->watch.fd = -1;
	if (x->d->via.used) {
		ask_proxy(x, fd);
		return;
	}
	answer(x, NETPOL_DIAL_OK, fd);
	(void)close(fd); /* the worker has its own now */
}

static void proceed(struct dial *x);

static void on_try(struct netpol_watch *w, uint32_t events)
{
	struct try *t = NETPOL_OWNER(w, struct try, watch);
	struct dial *x = t->dial;
	socklen_t n = sizeof(int);
	int sys = 0;

	(void)events;
	if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &sys, &n) < 0)
		sys = errno;
	if (sys == 0) {
		connected(x, t);
		return;
	}
	x->last_errno = sys;
	close_try(x->d, t);
	proceed(x);
}

static socklen_t to_sockaddr(const struct netpol_addr *a, uint16_t port,
			     struct sockaddr_storage *ret)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };

	memset(ret, 0, sizeof(*ret));
	if (a->v6) {
		memcpy(&v6.sin6_addr, a->b, 16);
		memcpy(ret, &v6, sizeof(v6));
		return sizeof(v6);
	}
	memcpy(&v4.sin_addr, a->b, 4);
	memcpy(ret, &v4, sizeof(v4));
	return sizeof(v4);
}

static int open_socket(bool v6)
{
	int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	if (fd < 0)
		return -1;
	/* Without these it works too, only slower. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	return fd;
}

/* Starts connecting to one vetted address. False: it failed at once. */
static bool start_try(struct dial *x, struct try *t)
{
	const struct netpol_addr *a = &x->addrs[x->next_addr++];
	struct sockaddr_storage sa;
	socklen_t n = to_sockaddr(a, x->d->via.used ? x->d->via.port : x->port, &sa);
	int fd = open_socket(a->v6);

	x->last_errno = errno;
	if (fd < 0)
		return false;
	t->watch = (struct netpol_watch){ fd, on_try, 0 };
	t->dial = x;
	t->addr = *a;
	if (connect(fd, (struct sockaddr *)&sa, n) < 0 && errno != EINPROGRESS) {
		x->last_errno = errno;
		(void)close(fd);
		t->watch.fd = -1;
		return false;
	}
	if (netpol_loop_watch(x->d->loop, &t->watch, EPOLLOUT))
		return true;
	x->last_errno = ENOMEM;
	(void)close(fd);
	t->watch.fd = -1;
	return false;
}

static struct try *free_try(struct dial *x, bool *ret_busy)
{
	struct try *found = NULL;

	*ret_busy = false;
	for (size_t i = 0; i < NETPOL_DIAL_TRIES_MAX; i++) {
		if (x->tries[i].watch.fd >= 0)
			*ret_busy = true;
		else
			found = &x->tries[i];
	}
	return found;
}

/* Tries the next address; when there is none and none is being tried, that was all. */
static void proceed(struct dial *x)
{
	bool busy;
	struct try *t = free_try(x, &busy);

	while (t && x->next_addr < x->n_addrs) {
		if (start_try(x, t)) {
			netpol_loop_arm(x->d->loop, &x->stagger,
					netpol_loop_now(x->d->loop) + NETPOL_DIAL_STAGGER_MS);
			return;
		}
	}
	if (!busy)
		failed(x, of_errno(x->last_errno));
}

static void on_stagger(struct netpol_timer *t)
{
	struct dial *x = NETPOL_OWNER(t, struct dial, stagger);

	if (x->next_addr < x->n_addrs)
		proceed(x);
}

static void on_deadline(struct netpol_timer *t)
{
	answer(NETPOL_OWNER(t, struct dial, deadline), NETPOL_DIAL_TIMEOUT, -1);
}

/* ---- addresses ---- */

/* Addresses of this host change seldom; they are asked for again after a few seconds. Without them
 * nothing may be dialled, because one of them could be the target. */
static bool refresh_own(struct dialer *d)
{
	struct ifaddrs *list = NULL;

	if (netpol_loop_now(d->loop) < d->own_until_ms)
		return true;
	if (getifaddrs(&list) < 0)
		return false;
	d->n_own = 0;
	for (struct ifaddrs *i = list; i && d->n_own < NETPOL_OWN_ADDRS_MAX; i = i->ifa_next) {
		if (i->ifa_addr && netpol_addr_from_sockaddr(i->ifa_addr, &d->own[d->n_own]))
			d->n_own++;
	}
	freeifaddrs(list);
	if (d->n_own ==
	    NETPOL_OWN_ADDRS_MAX) /* perhaps there are more: refuse rather than miss one */
		return false;
	d->own_until_ms = netpol_loop_now(d->loop) + NETPOL_OWN_REFRESH_MS;
	return true;
}

static void note_dropped(struct dial *x, const struct netpol_addr *a, enum netpol_class class)
{
	size_t at = strlen(x->reply.dropped), room = sizeof(x->reply.dropped) - at;
	char text[NETPOL_ADDR_TEXT];
	int n;

	netpol_addr_format(a, text);
	n = snprintf(x->reply.dropped + at, room, "%s%s %s", at > 0 ? ", " : "", text,
		     netpol_class_name(class));
	if (n < 0 || (size_t)n >= room)
		x->reply.dropped[at] = '\0';
}

/* R3: each address is judged, and only what passed is connected to. */
static void vet(struct dial *x, const struct netpol_addr *addrs, size_t n)
{
	struct dialer *d = x->d;

	if (n == 0) {
		failed(x, NETPOL_DIAL_DNS);
		return;
	}
	if (!refresh_own(d)) {
		failed(x, NETPOL_DIAL_ADDRESS);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		enum netpol_class class = NETPOL_CLASS_INVALID;

		if (netpol_decide_addr(d->type, d->own, d->n_own, &addrs[i], &class))
			x->addrs[x->n_addrs++] = addrs[i];
		else
			note_dropped(x, &addrs[i], class);
	}
	if (x->n_addrs == 0) {
		failed(x, NETPOL_DIAL_ADDRESS);
		return;
	}
	x->begun_us = netpol_mono_us();
	proceed(x);
}

static void look_up(struct dial *x)
{
	struct dialer *d = x->d;
	const struct netpol_host *host = host_of(x);
	enum netpol_class class;
	struct netpol_resolved known;

	/* an address behind the proxy is not dialled here, but is judged: a gateway's upstream */
	if (d->via.used && x->host.kind == NETPOL_HOST_LITERAL &&
	    !netpol_decide_addr(d->type, NULL, 0, &x->host.addr, &class)) {
		answer(x, NETPOL_DIAL_ADDRESS, -1);
		return;
	}
	if (d->via.used && host->kind == NETPOL_HOST_LITERAL) {
		/* The policy names this very address: it need not be one that agents may reach. */
		x->addrs[x->n_addrs++] = host->addr;
		x->begun_us = netpol_mono_us();
		proceed(x);
		return;
	}
	if (host->kind == NETPOL_HOST_LITERAL) {
		vet(x, &host->addr, 1);
		return;
	}
	if (netpol_resolver_recall(d->resolver, host->text, netpol_loop_now(d->loop), &known)) {
		x->reply.dns_us = 0;
		vet(x, known.addrs, known.n);
		return;
	}
	if (!netpol_resolver_ask(d->resolver, x->reply.id, host->text))
		answer(x, NETPOL_DIAL_BUSY, -1);
}

static struct dial *find(struct dialer *d, uint64_t id)
{
	for (struct dial *x = d->dials.next; x != &d->dials; x = x->next) {
		if (x->reply.id == id)
			return x;
	}
	return NULL;
}

static void on_resolved(struct netpol_watch *w, uint32_t events)
{
	struct dialer *d = NETPOL_OWNER(w, struct dialer, resolved);
	struct netpol_resolved r;

	(void)events;
	while (netpol_resolver_next(d->resolver, netpol_loop_now(d->loop), &r)) {
		struct dial *x = find(d, r.id);

		if (!x) /* cancelled or timed out */
			continue;
		x->reply.dns_us = r.us;
		vet(x, r.addrs, r.n);
	}
}

/* ---- what the worker asks ---- */

/* The policy once more: a worker that was taken over gets no further than its agent's policy. */
static bool may_dial(struct dialer *d, const struct netpol_msg_dial *m)
{
	struct netpol_request rq = { .proto = (enum netpol_proto)m->proto,
				     .host = m->host,
				     .host_len = m->host_len,
				     .port = m->port };
	struct netpol_answer a;

	if (m->proto >= NETPOL_PROTO_COUNT || m->proto == NETPOL_PROTO_DNS ||
	    m->proto == NETPOL_PROTO_ANY || m->host_len > NETPOL_HOST_MAX || m->port == 0)
		return false;
	netpol_decide(d->type, NULL, 0, &rq, NETPOL_PEEK, &a);
	return a.verdict == NETPOL_ALLOW;
}

/* A gateway's upstream need not be listed: the agent reaches it by the gateway only. */
static bool is_upstream(const struct dialer *d, const struct netpol_msg_dial *m)
{
	const struct netpol_gateway *g;

	if (!memchr(m->gateway, '\0', sizeof(m->gateway)))
		return false;
	g = netpol_policy_gateway(d->policy, d->type->name, m->gateway);
	return g && g->port == m->port && g->host.len == m->host_len &&
	       memcmp(g->host.text, m->host, m->host_len) == 0;
}

static void refuse(struct dialer *d, uint64_t id, enum netpol_dial_result result)
{
	struct netpol_msg_dialed m = { .type = NETPOL_MSG_DIALED,
				       .result = (uint8_t)result,
				       .id = id,
				       .dns_us = -1,
				       .connect_us = -1 };

	if (netpol_wire_send(d->worker.fd, &m, sizeof(m), -1) == NETPOL_WIRE_GONE)
		netpol_loop_stop(d->loop);
}

static void start(struct dialer *d, const struct netpol_msg_dial *m)
{
	struct dial *x;

	if (m->gateway[0] ? !is_upstream(d, m) : !may_dial(d, m)) {
		refuse(d, m->id, NETPOL_DIAL_DENIED);
		return;
	}
	x = d->n_dials < NETPOL_DIALS_MAX ? calloc(1, sizeof(*x)) : NULL;
	if (!x || !netpol_host_parse(m->host, m->host_len, &x->host, NULL)) {
		free(x);
		refuse(d, m->id, NETPOL_DIAL_BUSY);
		return;
	}
	x->d = d;
	x->via.fd = -1;
	x->port = m->port;
	x->grave.bury = bury;
	x->deadline.fn = on_deadline;
	x->stagger.fn = on_stagger;
	x->reply = (struct netpol_msg_dialed){
		.type = NETPOL_MSG_DIALED, .id = m->id, .dns_us = -1, .connect_us = -1
	};
	for (size_t i = 0; i < NETPOL_DIAL_TRIES_MAX; i++)
		x->tries[i].watch.fd = -1;
	x->next = &d->dials;
	x->prev = d->dials.prev;
	x->prev->next = x->next->prev = x;
	d->n_dials++;
	netpol_loop_arm(d->loop, &x->deadline, netpol_loop_now(d->loop) + m->timeout_ms);
	look_up(x);
}

static void on_worker(struct netpol_watch *w, uint32_t events)
{
	struct dialer *d = NETPOL_OWNER(w, struct dialer, worker);
	union netpol_msg m;
	int got;

	(void)events;
	while ((got = netpol_wire_recv_bare(w->fd, &m)) > 0) {
		struct dial *x;

		if (m.head.type == NETPOL_MSG_DIAL) {
			start(d, &m.dial);
		} else if (m.head.type == NETPOL_MSG_CANCEL) {
			x = find(d, m.cancel.id);
			if (x)
				end(x);
		}
	}
	if (got < 0)
		netpol_loop_stop(d->loop);
}

/* ---- the keeper: a new policy, or the end ---- */

static void take_policy(struct dialer *d, const struct netpol_msg_policy *m, int fd)
{
	struct netpol_policy *p = NULL;
	struct aqe_err e = AQE_ERR_INIT;

	/* The keeper built it already; if it cannot be built here, stop rather than go by the old
	 * one while the worker goes by the new. */
	if (netpol_handoff_read(m, fd, d->type->name, &p, &e) < 0) {
		netpol_loop_stop(d->loop);
		return;
	}
	netpol_policy_unref(d->policy);
	d->policy = p;
	d->type = netpol_policy_type(p, d->agent_type);
	netpol_via_read(p->upstream_proxy, &d->via);
}

static void on_keeper(struct netpol_watch *w, uint32_t events)
{
	struct dialer *d = NETPOL_OWNER(w, struct dialer, keeper);
	union netpol_msg m;
	int fd, got;

	(void)events;
	while ((got = netpol_wire_recv(w->fd, &m, &fd)) > 0) {
		if (m.head.type == NETPOL_MSG_PING)
			netpol_wire_pong(w->fd, &m.ping);
		if (m.head.type == NETPOL_MSG_POLICY && fd >= 0)
			take_policy(d, &m.policy, fd);
		if (fd >= 0)
			(void)close(fd); /* read */
		if (m.head.type == NETPOL_MSG_STOP)
			netpol_loop_stop(d->loop);
	}
	if (got < 0)
		netpol_loop_stop(d->loop);
}

static int watch_all(struct dialer *d, struct aqe_err *e)
{
	if (netpol_loop_watch(d->loop, &d->worker, EPOLLIN) &&
	    netpol_loop_watch(d->loop, &d->keeper, EPOLLIN) &&
	    netpol_loop_watch(d->loop, &d->resolved, EPOLLIN))
		return netpol_loop_run(d->loop, e);
	return aqe_err_set(e, AQE_E_SYS, errno, "epoll_ctl");
}

int netpol_dialer_run(const struct netpol_dialer_opts *o, struct aqe_err *e)
{
	struct dialer *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the dialer");
	d->policy = o->policy;
	d->agent_type = o->agent_type;
	d->type = netpol_policy_type(o->policy, o->agent_type);
	d->proxy_auth = o->proxy_auth;
	netpol_via_read(o->policy->upstream_proxy, &d->via);
	d->dials.prev = d->dials.next = &d->dials;
	rc = netpol_loop_new(&d->loop, e);
	if (rc == 0)
		rc = netpol_resolver_new(&d->resolver, e);
	if (rc == 0) {
		d->worker = (struct netpol_watch){ o->worker, on_worker, 0 };
		d->keeper = (struct netpol_watch){ o->keeper, on_keeper, 0 };
		d->resolved =
			(struct netpol_watch){ netpol_resolver_fd(d->resolver), on_resolved, 0 };
		rc = watch_all(d, e);
	}
	while (d->dials.next != &d->dials)
		end(d->dials.next);
	netpol_resolver_free(d->resolver);
	netpol_loop_free(d->loop);
	netpol_policy_unref(d->policy);
	(void)close(o->worker); /* channels: the other side sees the end */
	(void)close(o->keeper);
	free(d);
	return rc;
}
