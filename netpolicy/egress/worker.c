/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/worker.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netpolicy/dns.h"
#include "netpolicy/egress/conn.h"
#include "netpolicy/egress/gate.h"
#include "netpolicy/egress/handoff.h"
#include "shim/core/text.h"

#define ACCEPTS_A_TURN   32
#define DATAGRAMS_A_TURN 32
#define MINUTE_MS        60000
#define SHARE_MS         1000
#define SHARE_LARGE      ((size_t)64 * 1024) /* a state of more bytes is written less often */
#define SHARE_SELDOM_MS  10000

const char *netpol_front_name(enum netpol_front f)
{
	static const char *const names[NETPOL_FRONT_COUNT] = { "http",    "socks",   "dns",
							       "dns_tcp", "tls",     "host",
							       "metrics", "gateway", "cache" };

	return (unsigned)f < NETPOL_FRONT_COUNT ? names[f] : "?";
}

/* ---- the limiters, where the keeper can see them ---- */

static struct netpol_when when_now(const struct netpol_worker *w)
{
	struct netpol_when when = w->when;

	when.boottime_ns = netpol_boottime_ns();
	when.wall_ns = netpol_wall_ns();
	return when;
}

static void share_limiters(struct netpol_worker *w)
{
	const struct netpol_rates rates = { w->limiter, &w->gates };
	const struct netpol_when at = when_now(w);

	netpol_loop_disarm(w->loop, &w->share);
	if (w->opts->shared)
		w->shared_len = netpol_rates_share(w->opts->shared, &rates, &at);
}

static void on_share(struct netpol_timer *t)
{
	share_limiters(NETPOL_OWNER(t, struct netpol_worker, share));
}

/* Every admission is written down at once, a few bytes; whole states only now and then. */
void netpol_worker_spent(struct netpol_worker *w, unsigned which)
{
	if (!w->opts->shared)
		return;
	if (!netpol_rates_spent(w->opts->shared, which, netpol_boottime_ns())) {
		share_limiters(w);
		return;
	}
	if (!w->share.next)
		netpol_loop_arm(w->loop, &w->share,
				netpol_loop_now(w->loop) +
					(w->shared_len > SHARE_LARGE ? SHARE_SELDOM_MS : SHARE_MS));
}

/* What the worker before this one had spent stays spent. */
static void restore_limiters(struct netpol_worker *w)
{
	const struct netpol_rates rates = { w->limiter, &w->gates };
	const struct netpol_when now = when_now(w);

	if (w->opts->shared && netpol_rates_restore(w->opts->shared, &rates, &now))
		share_limiters(w);
}

void netpol_worker_decide(struct netpol_worker *w, const struct netpol_request *rq,
			  enum netpol_spend spend, struct netpol_answer *ret)
{
	netpol_decide(w->type, w->limiter, netpol_boottime_ns(), rq, spend, ret);
	if (ret->verdict == NETPOL_ALLOW && spend == NETPOL_CONSUME)
		netpol_worker_spent(w, NETPOL_RATES_OWN);
}

bool netpol_worker_may_store(struct netpol_worker *w, const struct netpol_record *r)
{
	struct netpol_limit l = { true, 0 };

	if (netpol_repeats_first(&w->repeats, r))
		return true;
	netpol_limiter_consume(w->denials, netpol_boottime_ns(), &l);
	if (!l.allowed)
		netpol_repeats_count(&w->repeats, r);
	return l.allowed;
}

/* The records of one round of the loop go together. */
static void on_queued(struct netpol_ledger *l)
{
	struct netpol_worker *w = NETPOL_OWNER(l, struct netpol_worker, ledger);

	netpol_loop_defer(w->loop, &w->send);
}

static void on_send(struct netpol_task *t)
{
	/* What finds the channel full is sent when the keeper has stored what is in it. */
	(void)netpol_ledger_send(&NETPOL_OWNER(t, struct netpol_worker, send)->ledger);
}

/* ---- the dialer ---- */

bool netpol_worker_dial(struct netpol_worker *w, struct netpol_asking *a,
			const struct netpol_dial_to *to)
{
	struct netpol_msg_dial m;

	memset(&m, 0, sizeof(m));
	m.type = NETPOL_MSG_DIAL;
	m.id = ++w->last_dial;
	m.timeout_ms = w->type->limits.connect_ms;
	m.port = to->port;
	m.proto = (uint8_t)to->proto;
	m.host_len = (uint8_t)to->host->len;
	memcpy(m.host, to->host->text, to->host->len);
	(void)snprintf(m.gateway, sizeof(m.gateway), "%s", to->gateway ? to->gateway : "");
	if (netpol_wire_send(w->dialer.fd, &m, sizeof(m), -1) != NETPOL_WIRE_SENT)
		return false;
	a->id = m.id;
	a->next = &w->asking;
	a->prev = w->asking.prev;
	a->prev->next = a->next->prev = a;
	return true;
}

static void unlink_asking(struct netpol_asking *a)
{
	a->prev->next = a->next;
	a->next->prev = a->prev;
	a->prev = a->next = NULL;
}

void netpol_worker_forget(struct netpol_worker *w, struct netpol_asking *a)
{
	struct netpol_msg_cancel m = { NETPOL_MSG_CANCEL, a->id };

	if (!a->next)
		return;
	unlink_asking(a);
	/* When it cannot be sent the dial ends by its own deadline. */
	(void)netpol_wire_send(w->dialer.fd, &m, sizeof(m), -1);
}

static bool dialed_ok(const struct netpol_msg_dialed *m)
{
	return m->type == NETPOL_MSG_DIALED && m->result < NETPOL_DIAL_RESULT_COUNT &&
	       m->dns_us >= -1 && m->connect_us >= -1 &&
	       memchr(m->address, '\0', sizeof(m->address)) &&
	       memchr(m->dropped, '\0', sizeof(m->dropped));
}

static void on_dialer(struct netpol_watch *watch, uint32_t events)
{
	struct netpol_worker *w = NETPOL_OWNER(watch, struct netpol_worker, dialer);
	union netpol_msg m;
	int fd, got;

	(void)events;
	while ((got = netpol_wire_recv(watch->fd, &m, &fd)) > 0) {
		struct netpol_asking *a = w->asking.next;

		if (!dialed_ok(&m.dialed)) {
			if (fd >= 0)
				(void)close(fd); /* of a message that is refused */
			got = -1;
			break;
		}
		while (a != &w->asking && a->id != m.dialed.id)
			a = a->next;
		if (a != &w->asking) {
			unlink_asking(a);
			a->fn(a, &m.dialed, fd);
		} else if (fd >= 0) {
			(void)close(fd); /* nobody waits for it any more */
		}
	}
	if (got < 0)
		netpol_loop_stop(w->loop);
}

/* ---- the keeper ---- */

static void recheck_all(struct netpol_worker *w)
{
	struct netpol_conn *c = w->conns, *next;

	for (; c; c = next) {
		next = c->next;
		netpol_conn_recheck(c);
	}
}

/* R14: swap, then end what the new policy would not have allowed. */
static void take_policy(struct netpol_worker *w, const struct netpol_msg_policy *m, int fd)
{
	struct netpol_policy *p = NULL;
	const struct netpol_type *t;

	if (netpol_handoff_read(m, fd, w->type->name, &p, NULL) < 0) {
		netpol_loop_stop(
			w->loop); /* the keeper built it: start anew rather than go apart */
		return;
	}
	t = netpol_policy_type(p, w->type->name);
	if (netpol_limiter_reconf(w->limiter, netpol_boottime_ns(), &t->rate, NULL) < 0) {
		netpol_policy_unref(p);
		netpol_loop_stop(w->loop);
		return;
	}
	netpol_policy_unref(w->policy);
	w->policy = p;
	w->type = t;
	if (netpol_gates_load(w, NULL) < 0) {
		netpol_loop_stop(w->loop);
		return;
	}
	share_limiters(w); /* the admissions from here on are of other routes */
	w->spender.timeout_ms = p->cluster.timeout_ms;
	w->metrics.reloads++;
	recheck_all(w);
}

static void on_keeper(struct netpol_watch *watch, uint32_t events)
{
	struct netpol_worker *w = NETPOL_OWNER(watch, struct netpol_worker, keeper);
	union netpol_msg m;
	int fd, got;

	(void)events;
	while ((got = netpol_wire_recv(watch->fd, &m, &fd)) > 0) {
		if (m.head.type == NETPOL_MSG_STORED)
			netpol_ledger_stored(&w->ledger, m.stored.serial, m.stored.ok);
		if (m.head.type == NETPOL_MSG_PING)
			netpol_wire_pong(watch->fd, &m.ping);
		if (m.head.type == NETPOL_MSG_LINK && fd >= 0) {
			netpol_gates_link(w, m.link.role, fd);
			continue;
		}
		if (m.head.type == NETPOL_MSG_POLICY && fd >= 0)
			take_policy(w, &m.policy, fd);
		if (m.head.type == NETPOL_MSG_STORE && fd >= 0) {
			netpol_spender_channel(&w->spender, fd);
			fd = -1; /* taken */
		}
		if (fd >= 0)
			(void)close(fd); /* read */
		if (m.head.type == NETPOL_MSG_STOP)
			netpol_loop_stop(w->loop);
	}
	if (got < 0)
		netpol_loop_stop(w->loop);
}

/* ---- listening ---- */

static void on_listening(struct netpol_watch *watch, uint32_t events)
{
	struct netpol_listening *l = NETPOL_OWNER(watch, struct netpol_listening, watch);
	int fd = -1;

	(void)events;
	if (l->front == NETPOL_FRONT_DNS) {
		netpol_worker_dns(l);
		return;
	}
	for (int i = 0; i < ACCEPTS_A_TURN; i++) {
		/* cppcheck-suppress nullPointer ; accept4(2) takes NULL */
		fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0)
			break;
		netpol_conn_accept(l, fd);
	}
	/* More may wait, or descriptors were short: look again after the others had their turn. */
	if (fd >= 0 || errno != EAGAIN)
		netpol_loop_defer(l->w->loop, &l->again);
}

static void on_again(struct netpol_task *t)
{
	struct netpol_listening *l = NETPOL_OWNER(t, struct netpol_listening, again);

	on_listening(&l->watch, EPOLLIN);
}

/* ---- the DNS stub ---- */

static const char LOCALHOST[] = "localhost";

static void note_denied_name(struct netpol_worker *w, const struct netpol_dns_query *q,
			     const struct netpol_answer *a)
{
	struct netpol_record r;

	netpol_record_init(&r);
	r.id = ++w->last_id;
	r.at_ns = netpol_wall_ns();
	r.phase = NETPOL_PHASE_DECISION;
	r.action = NETPOL_BLOCKED;
	netpol_record_text(r.listener, sizeof(r.listener), "dns", 3);
	netpol_record_text(r.reason, sizeof(r.reason), netpol_reason_name(a->reason),
			   strlen(netpol_reason_name(a->reason)));
	netpol_record_text(r.policy, sizeof(r.policy), w->policy->digest,
			   strlen(w->policy->digest));
	if (a->verdict == NETPOL_INVALID || !q->plain)
		netpol_record_text(r.raw_host, sizeof(r.raw_host), q->name, q->name_len);
	else
		netpol_record_text(r.host, sizeof(r.host), a->host.text, a->host.len);
	netpol_metrics_decision(&w->metrics, &r);
	if (netpol_worker_may_store(w, &r))
		netpol_ledger_tell(&w->ledger, &r);
}

/* R9: allowed names have the address where our listeners stand, and nothing else. */
static enum netpol_dns_rcode judge_name(struct netpol_worker *w, const struct netpol_dns_query *q,
					bool *ret_address)
{
	struct netpol_request rq = { NETPOL_PROTO_DNS, q->name, q->name_len, 0 };
	struct netpol_answer a;

	netpol_decide(w->type, NULL, 0, &rq, NETPOL_PEEK, &a);
	if (q->plain || q->name_len > 0) {
		if (a.verdict == NETPOL_ALLOW && a.host.kind == NETPOL_HOST_NAME) {
			*ret_address = q->type == NETPOL_DNS_A;
			return NETPOL_DNS_NOERROR;
		}
	}
	if (a.verdict != NETPOL_DENY || a.reason != NETPOL_REASON_LOOPBACK)
		note_denied_name(w, q, &a);
	return NETPOL_DNS_NXDOMAIN;
}

/* A burst of a second's worth, then an even rate. */
static bool dns_within_limit(struct netpol_worker *w)
{
	const int64_t second = 1000000000, each = second / NETPOL_DNS_PER_SECOND;
	int64_t now = netpol_boottime_ns();

	if (w->dns_next_ns < now - second)
		w->dns_next_ns = now - second;
	if (w->dns_next_ns + each > now)
		return false;
	w->dns_next_ns += each;
	return true;
}

size_t netpol_worker_dns_answer(struct netpol_worker *w, const uint8_t *p, size_t n,
				uint8_t ret[NETPOL_DNS_ANSWER_MAX])
{
	static const uint8_t stub[4] = { 127, 66, 0, 1 }, local[4] = { 127, 0, 0, 1 };
	enum netpol_dns_rcode rcode = NETPOL_DNS_FORMERR;
	const uint8_t *addr = stub;
	struct netpol_dns_query q;
	bool address = false;

	switch (netpol_dns_query_read(p, n, &q, &rcode)) {
	case NETPOL_DNS_DROP:
		w->metrics.dns_dropped++;
		return 0;
	case NETPOL_DNS_BAD:
		return netpol_dns_answer(&q, p, rcode, NULL, ret);
	case NETPOL_DNS_ASK:
		break;
	}
	if (!dns_within_limit(w)) {
		w->metrics.dns_dropped++;
		return netpol_dns_answer(&q, p, NETPOL_DNS_REFUSED, NULL, ret);
	}
	w->metrics.dns_answers++;
	if (q.name_len == sizeof(LOCALHOST) - 1 && strcasecmp(q.name, LOCALHOST) == 0) {
		address = q.type == NETPOL_DNS_A;
		addr = local; /* RFC 6761 6.3 */
		rcode = NETPOL_DNS_NOERROR;
	} else {
		rcode = judge_name(w, &q, &address);
	}
	return netpol_dns_answer(&q, p, rcode, address ? addr : NULL, ret);
}

void netpol_worker_dns(struct netpol_listening *l)
{
	uint8_t answer[NETPOL_DNS_ANSWER_MAX], *query = (uint8_t *)l->w->scratch;

	for (int i = 0; i < DATAGRAMS_A_TURN; i++) {
		struct sockaddr_storage from;
		socklen_t from_len = sizeof(from);
		ssize_t n = recvfrom(l->watch.fd, query, NETPOL_DNS_QUERY_MAX + 1, MSG_DONTWAIT,
				     (struct sockaddr *)&from, &from_len);
		size_t len;

		if (n < 0)
			return;
		len = netpol_worker_dns_answer(l->w, query, (size_t)n, answer);
		if (len > 0)
			(void)sendto(l->watch.fd, answer, len, MSG_DONTWAIT | MSG_NOSIGNAL,
				     (struct sockaddr *)&from, from_len);
	}
	netpol_loop_defer(l->w->loop, &l->again);
}

/* ---- start and end ---- */

static void on_minute(struct netpol_timer *t)
{
	struct netpol_worker *w = NETPOL_OWNER(t, struct netpol_worker, minute);

	netpol_repeats_flush(&w->repeats, &w->ledger, netpol_wall_ns());
	if (!w->stopping)
		netpol_loop_arm(w->loop, &w->minute, netpol_loop_now(w->loop) + MINUTE_MS);
}

static int make_limiters(struct netpol_worker *w, struct aqe_err *e)
{
	int rc = netpol_limiter_new(&w->type->rate, &w->limiter, e);

	if (rc == 0)
		rc = netpol_limiter_new(&NETPOL_DENY_BUDGET, &w->denials, e);
	if (rc == 0)
		rc = netpol_gates_load(w, e);
	if (rc == 0)
		restore_limiters(w);
	return rc;
}

static int watch_all(struct netpol_worker *w, struct aqe_err *e)
{
	bool ok = netpol_loop_watch(w->loop, &w->keeper, EPOLLIN) &&
		  netpol_loop_watch(w->loop, &w->dialer, EPOLLIN);

	for (size_t i = 0; ok && i < w->opts->n_listen; i++) {
		struct netpol_listening *l = &w->listening[i];
		int on = 1;

		/* what is accepted inherits it; a socket that has no such thing does without */
		(void)setsockopt(w->opts->listen[i].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		l->w = w;
		l->front = w->opts->listen[i].front;
		l->again.fn = on_again;
		l->watch = (struct netpol_watch){ w->opts->listen[i].fd, on_listening, 0 };
		ok = netpol_loop_watch(w->loop, &l->watch, EPOLLIN);
	}
	return ok ? 0 : aqe_err_set(e, AQE_E_SYS, errno, "epoll_ctl");
}

static int serve(struct netpol_worker *w, struct aqe_err *e)
{
	struct netpol_msg_head ready = { NETPOL_MSG_READY };
	int rc = make_limiters(w, e);

	if (rc == 0)
		rc = watch_all(w, e);
	if (rc < 0)
		return rc;
	w->minute.fn = on_minute;
	w->share.fn = on_share;
	netpol_loop_arm(w->loop, &w->minute, netpol_loop_now(w->loop) + MINUTE_MS);
	if (netpol_wire_send(w->keeper.fd, &ready, sizeof(ready), -1) != NETPOL_WIRE_SENT)
		return aqe_err_set(e, AQE_E_SYS, EPIPE, "the keeper is gone");
	rc = netpol_loop_run(w->loop, e);
	w->stopping = true;
	share_limiters(w);
	on_minute(&w->minute);
	while (w->conns)
		netpol_conn_end(w->conns, "shutdown");
	(void)netpol_ledger_send(&w->ledger); /* a keeper that is gone counts what it lacks */
	return rc;
}

int netpol_worker_run(const struct netpol_worker_opts *o, struct aqe_err *e)
{
	struct netpol_worker *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the worker");
	w->opts = o;
	w->policy = o->policy;
	w->type = netpol_policy_type(o->policy, o->agent_type);
	w->when = o->when;
	w->last_id = o->first_id;
	w->metrics.restarts = o->restarts;
	w->asking.prev = w->asking.next = &w->asking;
	w->wraps.prev = w->wraps.next = &w->wraps;
	for (size_t i = 0; i < NETPOL_COMPANION_COUNT; i++) {
		w->links[i].w = w;
		w->links[i].watch.fd = -1;
	}
	w->from_companion.w = w;
	w->from_companion.front = NETPOL_FRONT_CACHE;
	w->keeper = (struct netpol_watch){ o->keeper, on_keeper, 0 };
	w->dialer = (struct netpol_watch){ o->dialer, on_dialer, 0 };
	netpol_ledger_init(&w->ledger, o->keeper);
	w->ledger.queued = on_queued;
	w->send.fn = on_send;
	(void)!getrandom(&w->repeats.seed, sizeof(w->repeats.seed), GRND_NONBLOCK);
	rc = netpol_loop_new(&w->loop, e);
	if (rc == 0) {
		netpol_spender_init(&w->spender, w->loop, &w->limiter);
		w->spender.timeout_ms = w->policy->cluster.timeout_ms;
		rc = serve(w, e);
		netpol_spender_done(&w->spender);
	}
	netpol_gates_done(w);
	netpol_loop_free(w->loop);
	netpol_repeats_flush(&w->repeats, NULL, 0);
	netpol_ledger_done(&w->ledger);
	netpol_limiter_free(w->limiter);
	netpol_limiter_free(w->denials);
	netpol_policy_unref(w->policy);
	free(w);
	return rc;
}
