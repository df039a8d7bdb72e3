/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/store.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "netpolicy/egress/resolve.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define OUT_MAX  ((size_t)64 * 1024)
#define US_NS    1000
#define SLACK_US 1000000 /* of two clocks beside each other, and 0.1 % of what passed */
#define LINE_MAX 400

enum state {
	AWAY,       /* until the timer */
	RESOLVING,  /* the name */
	CONNECTING, /* to one of the addresses */
	SHAKING,    /* hands, by TLS */
	GREETING,
	READY,
	ASKING,
};

struct store {
	struct netpol_loop *loop;
	const struct netpol_store_opts *o;
	struct netpol_cluster *cluster;
	struct netpol_resolver *resolver;
	struct netpol_watch worker, keeper, resolved, server;
	struct netpol_timer link;   /* of the connection: its deadline, or the next try */
	struct netpol_timer answer; /* deadline of the question */
	enum state state;
	struct aqe_tls *tls; /* of this connection; NULL: in clear */
	struct aqe_buf out;  /* to be said; with TLS before */
	struct aqe_buf wire; /* and after it */
	size_t sent;
	char name[NETPOL_HOST_MAX + 1]; /* of the address */
	struct netpol_addr addrs[NETPOL_RESOLVE_ADDRS];
	size_t n_addrs, next_addr;
	uint16_t port;
	uint64_t asked;    /* the worker's question; 0: none */
	unsigned failures; /* in a row, without an answer between them */
	bool told_away;
	int64_t heard_us, heard_at_ns; /* the server's time, and ours before it said so */
	int64_t sent_at_ns;
};

/* ---- to the worker ---- */

static void reply(struct store *s, enum netpol_spent result, uint64_t retry_ms)
{
	struct netpol_msg_spent m;

	if (s->asked == 0)
		return;
	memset(&m, 0, sizeof(m));
	m.type = NETPOL_MSG_SPENT;
	m.result = (uint8_t)result;
	m.id = s->asked;
	m.retry_ms = retry_ms;
	s->asked = 0;
	netpol_loop_disarm(s->loop, &s->answer);
	if (netpol_wire_send(s->worker.fd, &m, sizeof(m), -1) != NETPOL_WIRE_SENT)
		netpol_loop_stop(s->loop);
}

static void tell(struct store *s, bool away, const char *why)
{
	char line[LINE_MAX];

	if (s->told_away == away || !s->o->say)
		return;
	s->told_away = away;
	(void)snprintf(line, sizeof(line), "shared limiter: %s%s%s", away ? "away" : "back",
		       *why ? ": " : "", why);
	s->o->say(s->o->say_self, line);
}

/* ---- the connection ---- */

static void hang_up(struct store *s)
{
	if (s->server.fd >= 0) {
		netpol_loop_unwatch(s->loop, &s->server);
		(void)close(s->server.fd); /* nothing on it is wanted any more */
		s->server.fd = -1;
	}
	aqe_tls_free(s->tls);
	s->tls = NULL;
	aqe_buf_clear(&s->out);
	aqe_buf_clear(&s->wire);
	s->sent = 0;
}

/* Full jitter in the upper half: services that lost the same server do not come back at once. */
static int64_t pause_ms(const struct store *s)
{
	int64_t most = NETPOL_STORE_FIRST_MS;
	uint32_t random = 0;

	for (unsigned i = 1; i < s->failures && most < NETPOL_STORE_LAST_MS; i++)
		most *= 2;
	if (most > NETPOL_STORE_LAST_MS)
		most = NETPOL_STORE_LAST_MS;
	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK); /* 0: no jitter */
	return most / 2 + random % (uint32_t)(most / 2 + 1);
}

static void lost(struct store *s, const char *why)
{
	hang_up(s);
	s->failures++;
	s->state = AWAY;
	tell(s, true, why);
	netpol_loop_arm(s->loop, &s->link, netpol_loop_now(s->loop) + pause_ms(s));
	reply(s, NETPOL_SPENT_AWAY, 0);
}

/* What is to be said becomes what is to be sent; the buffer of that, NULL when it is lost. */
static struct aqe_buf *seal(struct store *s)
{
	struct aqe_err e = AQE_ERR_INIT;
	int rc;

	if (!s->tls)
		return &s->out;
	rc = aqe_tls_write(s->tls, s->out.p, s->out.len, &e); /* nothing before the greeting */
	if (rc == 0)
		rc = aqe_tls_drain(s->tls, &s->wire, &e);
	aqe_buf_clear(&s->out);
	if (rc < 0)
		lost(s, e.text);
	return rc < 0 ? NULL : &s->wire;
}

static void flush(struct store *s)
{
	struct aqe_buf *b = seal(s);

	while (b && s->sent < b->len) {
		ssize_t n = send(s->server.fd, b->p + s->sent, b->len - s->sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			lost(s, "the connection broke");
		if (n < 0)
			return;
		s->sent += (size_t)n;
	}
	if (!b)
		return;
	aqe_buf_clear(b);
	s->sent = 0;
}

/* What the server's clock can show at most when it reads the question. */
static int64_t latest_us(const struct store *s, int64_t now_ns)
{
	const int64_t passed = (now_ns - s->heard_at_ns) / US_NS;

	if (s->heard_us == 0)
		return 0;
	return s->heard_us + passed + passed / 1000 + SLACK_US + (int64_t)s->o->timeout_ms * 1000;
}

static void ask(struct store *s)
{
	struct aqe_err e = AQE_ERR_INIT;

	s->state = ASKING;
	s->sent_at_ns = netpol_boottime_ns();
	if (netpol_cluster_ask(s->cluster, latest_us(s, s->sent_at_ns), 0, &s->out, &e) < 0)
		lost(s, e.text);
	else
		flush(s);
}

static void ready(struct store *s)
{
	netpol_loop_disarm(s->loop, &s->link);
	s->state = READY;
	if (s->asked > 0)
		ask(s);
}

static void answered(struct store *s, const struct netpol_cluster_answer *a)
{
	s->failures = 0;
	tell(s, false, "");
	s->heard_us = a->now_us;
	s->heard_at_ns = s->sent_at_ns;
	s->state = READY;
	reply(s, a->allowed ? NETPOL_SPENT_OK : NETPOL_SPENT_LIMITED, (a->wait_us + 999) / 1000);
}

/* Everything the server said so far; false when the connection is gone. */
static bool listen_to(struct store *s)
{
	enum netpol_cluster_said said = NETPOL_CLUSTER_READY;
	struct netpol_cluster_answer a = { false, 0, 0 };
	struct aqe_err e = AQE_ERR_INIT;

	while (said != NETPOL_CLUSTER_MORE && s->server.fd >= 0) {
		if (netpol_cluster_next(s->cluster, &s->out, &said, &a, &e) < 0)
			lost(s, e.text);
		else if (said == NETPOL_CLUSTER_RESEND)
			flush(s);
		else if (said == NETPOL_CLUSTER_READY)
			ready(s);
		else if (said == NETPOL_CLUSTER_ANSWER && s->state == ASKING)
			answered(s, &a);
		else if (said == NETPOL_CLUSTER_ANSWER)
			lost(s, "an answer to no question");
	}
	return s->server.fd >= 0;
}

static void greet(struct store *s);

/* Goes on with the handshake; the greeting follows it. */
static void shake(struct store *s)
{
	struct aqe_err e = AQE_ERR_INIT;
	int rc = aqe_tls_handshake(s->tls, &e);

	if (rc < 0)
		lost(s, e.text);
	else if (rc == 1)
		greet(s);
	else
		flush(s);
}

/* Bytes of the server, with or without TLS around them; may lose the connection. */
static void take(struct store *s, const char *p, size_t n)
{
	AQE_AUTO_BUF struct aqe_buf clear = AQE_BUF_INIT(OUT_MAX);
	struct aqe_err e = AQE_ERR_INIT;
	int rc = s->tls ? aqe_tls_feed(s->tls, p, n, &e) : 0;

	if (rc == 0 && s->state == SHAKING)
		shake(s);
	if (rc == 0 && (s->server.fd < 0 || s->state == SHAKING))
		return;
	if (rc == 0 && s->tls) {
		rc = aqe_tls_read(s->tls, &clear, &e);
		p = aqe_buf_str(&clear);
		n = clear.len;
	}
	if (rc == 0 && n > 0)
		rc = netpol_cluster_feed(s->cluster, p, n, &e);
	if (rc < 0)
		lost(s, e.text);
	else if (s->tls)
		flush(s); /* what TLS has to say by itself */
}

static void hear(struct store *s)
{
	char part[4096];
	ssize_t n;

	do {
		n = recv(s->server.fd, part, sizeof(part), MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			lost(s, n == 0 ? "the server closed the connection" : strerror(errno));
		else
			take(s, part, (size_t)n);
	} while (s->server.fd >= 0 && (s->state == SHAKING || listen_to(s)));
}

static void greet(struct store *s)
{
	struct aqe_err e = AQE_ERR_INIT;

	s->state = GREETING;
	if (netpol_cluster_hello(s->cluster, &s->out, &e) < 0)
		lost(s, e.text);
	else
		flush(s);
}

static void begin_tls(struct store *s)
{
	const char *name = s->o->server_name ? s->o->server_name : s->name;
	struct aqe_err e = AQE_ERR_INIT;

	s->state = SHAKING;
	if (aqe_tls_like(s->o->tls, name, &s->tls, &e) < 0)
		lost(s, e.text);
	else
		shake(s);
}

/* ---- connecting ---- */

static void try_next(struct store *s);

static void on_server(struct netpol_watch *w, uint32_t events)
{
	struct store *s = NETPOL_OWNER(w, struct store, server);
	socklen_t n = sizeof(int);
	int sys = 0;

	if (s->state != CONNECTING) {
		if (events & EPOLLOUT)
			flush(s);
		if (s->server.fd >= 0)
			hear(s);
		return;
	}
	if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &sys, &n) < 0)
		sys = errno;
	if (sys == 0 && (events & EPOLLOUT)) {
		if (s->o->tls)
			begin_tls(s);
		else
			greet(s);
	} else if (sys != 0) {
		hang_up(s);
		try_next(s);
	}
}

/* Connects; false when that fails at once. */
static bool dial(struct store *s, int family, const struct sockaddr *to, socklen_t len)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	if (fd < 0)
		return false;
	if (family != AF_UNIX) /* small questions must not wait; slower without */
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	s->server = (struct netpol_watch){ fd, on_server, 0 };
	if ((connect(fd, to, len) == 0 || errno == EINPROGRESS) &&
	    netpol_loop_watch(s->loop, &s->server, EPOLLIN | EPOLLOUT | EPOLLRDHUP))
		return true;
	(void)close(fd);
	s->server.fd = -1;
	return false;
}

static bool dial_addr(struct store *s, const struct netpol_addr *a)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(s->port) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(s->port) };

	if (a->v6) {
		memcpy(&v6.sin6_addr, a->b, 16);
		return dial(s, AF_INET6, (const struct sockaddr *)&v6, sizeof(v6));
	}
	memcpy(&v4.sin_addr, a->b, 4);
	return dial(s, AF_INET, (const struct sockaddr *)&v4, sizeof(v4));
}

static void try_next(struct store *s)
{
	s->state = CONNECTING;
	while (s->next_addr < s->n_addrs) {
		if (dial_addr(s, &s->addrs[s->next_addr++]))
			return;
	}
	lost(s, s->n_addrs > 0 ? "cannot connect" : "its name has no address");
}

static void on_resolved(struct netpol_watch *w, uint32_t events)
{
	struct store *s = NETPOL_OWNER(w, struct store, resolved);
	struct netpol_resolved r;

	(void)events;
	while (netpol_resolver_next(s->resolver, netpol_loop_now(s->loop), &r)) {
		if (s->state != RESOLVING) /* it came too late */
			continue;
		memcpy(s->addrs, r.addrs, sizeof(s->addrs));
		s->n_addrs = r.n;
		s->next_addr = 0;
		try_next(s);
	}
}

static void dial_unix(struct store *s)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t n = strlen(s->o->address);

	s->state = CONNECTING;
	s->n_addrs = s->next_addr = 0;
	if (n >= sizeof(a.sun_path)) {
		lost(s, "the path of its socket is too long");
		return;
	}
	memcpy(a.sun_path, s->o->address, n + 1);
	if (!dial(s, AF_UNIX, (const struct sockaddr *)&a, sizeof(a)))
		lost(s, strerror(errno));
}

static void look_up(struct store *s)
{
	const char *text = s->o->address, *port = NULL;
	size_t host_n = 0, port_n = 0;
	struct netpol_host host;

	netpol_authority_split(text, strlen(text), &host_n, &port, &port_n);
	if (!port || !netpol_port_parse(port, port_n, &s->port) ||
	    !netpol_host_parse(text, host_n, &host, NULL)) {
		lost(s, "its address is none");
		return;
	}
	(void)snprintf(s->name, sizeof(s->name), "%s", host.text);
	if (host.kind == NETPOL_HOST_LITERAL) /* without brackets */
		netpol_addr_format(&host.addr, s->name);
	s->state = RESOLVING;
	if (host.kind == NETPOL_HOST_LITERAL) {
		s->addrs[0] = host.addr;
		s->n_addrs = 1;
		s->next_addr = 0;
		try_next(s);
	} else if (!netpol_resolver_ask(s->resolver, 0, host.text)) {
		lost(s, "its name cannot be looked up");
	}
}

static void begin(struct store *s)
{
	netpol_loop_arm(s->loop, &s->link, netpol_loop_now(s->loop) + NETPOL_STORE_CONNECT_MS);
	if (s->o->address[0] == '/')
		dial_unix(s);
	else
		look_up(s);
}

static void on_link(struct netpol_timer *t)
{
	struct store *s = NETPOL_OWNER(t, struct store, link);

	if (s->state == AWAY)
		begin(s);
	else
		lost(s, "no connection in time");
}

/* ---- questions ---- */

static void on_answer(struct netpol_timer *t)
{
	struct store *s = NETPOL_OWNER(t, struct store, answer);

	if (s->state == ASKING)
		lost(s, "no answer in time"); /* what it says later would answer another question */
	else
		reply(s, NETPOL_SPENT_AWAY, 0);
}

static bool question(struct store *s, const struct netpol_msg_spend *m)
{
	if (s->asked > 0 || m->id == 0)
		return false;
	s->asked = m->id;
	netpol_loop_arm(s->loop, &s->answer, netpol_loop_now(s->loop) + s->o->timeout_ms);
	if (s->state == READY)
		ask(s);
	else if (s->failures > 0) /* only the very first connection is waited for */
		reply(s, NETPOL_SPENT_AWAY, 0);
	return true;
}

static void on_worker(struct netpol_watch *w, uint32_t events)
{
	struct store *s = NETPOL_OWNER(w, struct store, worker);
	union netpol_msg m;
	bool good = true;
	int got = 0;

	(void)events;
	while (good && (got = netpol_wire_recv_bare(w->fd, &m)) > 0)
		good = m.head.type == NETPOL_MSG_SPEND && question(s, &m.spend);
	if (!good || got < 0)
		netpol_loop_stop(s->loop);
}

static void on_keeper(struct netpol_watch *w, uint32_t events)
{
	struct store *s = NETPOL_OWNER(w, struct store, keeper);
	union netpol_msg m;
	int got;

	(void)events;
	while ((got = netpol_wire_recv_bare(w->fd, &m)) > 0) {
		if (m.head.type == NETPOL_MSG_PING)
			netpol_wire_pong(w->fd, &m.ping);
	}
	if (got < 0)
		netpol_loop_stop(s->loop);
}

static int serve(struct store *s, struct aqe_err *e)
{
	if (!netpol_loop_watch(s->loop, &s->worker, EPOLLIN) ||
	    !netpol_loop_watch(s->loop, &s->keeper, EPOLLIN) ||
	    !netpol_loop_watch(s->loop, &s->resolved, EPOLLIN))
		return aqe_err_set(e, AQE_E_SYS, errno, "epoll_ctl");
	begin(s);
	return netpol_loop_run(s->loop, e);
}

int netpol_store_run(const struct netpol_store_opts *o, struct aqe_err *e)
{
	struct store *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the shared limiter");
	s->o = o;
	s->out.max = s->wire.max = OUT_MAX;
	s->server.fd = -1;
	s->link.fn = on_link;
	s->answer.fn = on_answer;
	rc = netpol_loop_new(&s->loop, e);
	if (rc == 0)
		rc = netpol_resolver_new(&s->resolver, e);
	if (rc == 0)
		rc = netpol_cluster_new(&o->cluster, &s->cluster, e);
	if (rc == 0) {
		s->worker = (struct netpol_watch){ o->worker, on_worker, 0 };
		s->keeper = (struct netpol_watch){ o->keeper, on_keeper, 0 };
		s->resolved =
			(struct netpol_watch){ netpol_resolver_fd(s->resolver), on_resolved, 0 };
		rc = serve(s, e);
	}
	if (s->server.fd >= 0)
		(void)close(s->server.fd); /* the process ends */
	aqe_tls_free(s->tls);
	aqe_buf_done(&s->out);
	aqe_buf_done(&s->wire);
	netpol_cluster_free(s->cluster);
	netpol_resolver_free(s->resolver);
	netpol_loop_free(s->loop);
	(void)close(o->worker); /* channels: the other side sees the end */
	(void)close(o->keeper);
	free(s);
	return rc;
}
