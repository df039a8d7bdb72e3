/* SPDX-License-Identifier: MIT */
#include "shim/aqe/gateway_session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netpolicy/egress/body.h"
#include "netpolicy/egress/wire.h"
#include "netpolicy/gateway.h"
#include "netpolicy/http1_emit.h"

#define PIECE        16384 /* read at once: a TLS record's worth */
#define TURNS        32    /* pieces of one direction before others have a turn */
#define HANDSHAKE_MS 10000

struct shim_session {
	struct shim_tls_stream *tls;
	enum shim_session_state state;
	int plain; /* our end; -1: not yet */
	char name[NETPOL_GATEWAY_NAME_MAX + 1];
	shim_route_fn *find;
	void *find_self;
	struct netpol_h1_head head;
	struct netpol_h1_request req;
	struct netpol_body body;
	bool in_body;
	struct aqe_buf in;       /* request bytes that are not used yet */
	struct aqe_buf up, down; /* to be sent */
	size_t up_at, down_at;
	char *secret; /* that the present request carries */
	struct shim_mask mask;
	bool tls_ended;
	char piece[PIECE];
};

/* ---- the handshake ---- */

static void shaken(void *self, bool ok, const char *why)
{
	struct shim_session *s = self;

	s->state = ok ? SHIM_SESSION_READY : SHIM_SESSION_FAILED;
	if (!ok)
		(void)fprintf(stderr, "aqe gateway: %s: %s\n", s->name, why);
}

struct shim_session *shim_session_new(struct shim_tls_pool *pool, int fd, const char *name,
				      const struct shim_route *route, shim_route_fn *find,
				      void *find_self)
{
	static const struct aqe_buf none = AQE_BUF_INIT((size_t)4 * NETPOL_H1_HEAD_MAX);
	struct shim_session *s = calloc(1, sizeof(*s));
	struct shim_tls_opts o = { .fd = fd,
				   .host = route->gateway->host.text,
				   .port = route->gateway->port,
				   .ca = route->ca,
				   .timeout_ms = HANDSHAKE_MS,
				   .done = shaken,
				   .self = s };

	if (!s) {
		(void)close(fd);
		return NULL;
	}
	s->plain = -1;
	s->in = s->up = s->down = none;
	shim_mask_init(&s->mask, PIECE);
	(void)snprintf(s->name, sizeof(s->name), "%s", name);
	s->find = find;
	s->find_self = find_self;
	netpol_h1_head_init(&s->head, false);
	if (shim_tls_open(pool, &o, &s->tls, NULL) == 0)
		return s;
	shim_session_free(s);
	return NULL;
}

static void drop_secret(struct shim_session *s)
{
	if (s->secret)
		explicit_bzero(s->secret, strlen(s->secret));
	free(s->secret);
	s->secret = NULL;
}

void shim_session_free(struct shim_session *s)
{
	if (!s)
		return;
	shim_tls_close(s->tls);
	if (s->plain >= 0)
		(void)close(s->plain); /* the worker sees the end */
	aqe_buf_done(&s->in);
	aqe_buf_wipe(&s->up);
	aqe_buf_done(&s->down);
	shim_mask_done(&s->mask);
	drop_secret(s);
	free(s);
}

enum shim_session_state shim_session_state(const struct shim_session *s)
{
	return s->state;
}

int shim_session_plain(struct shim_session *s)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -1;
	s->plain = pair[0];
	s->state = SHIM_SESSION_OPEN;
	return pair[1];
}

/* ---- requests ---- */

/* The path behind the upstream's base, without the query, is judged as the worker judged it. */
static bool may_pass(const struct netpol_gateway *g, const struct netpol_h1_request *r,
		     const char *p)
{
	const char *path = p + r->path.at;
	size_t base = strlen(g->base), n = r->path.n;
	const char *query = memchr(path, '?', n);

	if (query)
		n = (size_t)(query - path);
	if (n < base || memcmp(path, g->base, base) != 0)
		return false;
	path += base;
	n -= base;
	/* a bare "/" is what "/NAME" alone becomes */
	if (n == 1 && base == 0 && !netpol_gateway_refuses(g, p + r->method.at, r->method.n, "", 0))
		return true;
	return netpol_gateway_path_ok(path, n) &&
	       !netpol_gateway_refuses(g, p + r->method.at, r->method.n, path, n);
}

static void put_credential(const struct shim_route *route, struct aqe_buf *out)
{
	const struct netpol_gateway *g = route->gateway;

	if (!*route->credential)
		return;
	out->len -= 2; /* the empty line comes later */
	(void)aqe_buf_addf(out, "%s: %s%s\r\n\r\n", g->header, g->prefix, route->credential);
}

bool shim_session_head(const struct shim_route *route, struct netpol_h1_head *h, const char *p,
		       struct netpol_h1_request *ret_req, struct aqe_buf *out)
{
	const struct netpol_gateway *g = route->gateway;
	char authority[NETPOL_HOST_MAX + 8];

	if (netpol_h1_request_read(h, p, NETPOL_H1_ORIGIN, ret_req) != NETPOL_H1_OK ||
	    ret_req->websocket || !may_pass(g, ret_req, p))
		return false;
	for (unsigned i = 0; i < h->count; i++) {
		struct netpol_h1_field *f = &h->fields[i];

		if (netpol_gateway_drops(g, p + f->name.at, f->name.n))
			f->hop = true; /* not forwarded */
	}
	(void)snprintf(authority, sizeof(authority), g->port == 443 ? "%s" : "%s:%u", g->host.text,
		       g->port);
	if (netpol_h1_emit_request(out, h, p, ret_req, authority, false) < 0)
		return false;
	put_credential(route, out);
	return aqe_buf_ok(out, NULL) == 0;
}

static void used(struct shim_session *s, size_t n)
{
	s->in.len -= n;
	memmove(s->in.p, s->in.p + n, s->in.len);
}

/* A head is whole. */
static bool begin(struct shim_session *s)
{
	struct shim_route route;

	drop_secret(s);
	if (!s->find(s->find_self, s->name, &route) ||
	    !shim_session_head(&route, &s->head, s->in.p, &s->req, &s->up))
		return false;
	s->secret = strdup(route.credential);
	if (!s->secret)
		return false;
	shim_mask_set(&s->mask, s->secret);
	netpol_body_init(&s->body, s->req.body, s->req.length, false);
	used(s, s->head.at);
	netpol_h1_head_init(&s->head, false);
	s->in_body = !s->body.done;
	return true;
}

/* Uses what is in s->in: 1 something went to s->up, 0 more is needed, -1 it may not pass. */
static int use(struct shim_session *s)
{
	size_t n = 0;

	if (s->in.len == 0)
		return 0;
	if (!s->in_body) {
		switch (netpol_h1_head_scan(&s->head, s->in.p, s->in.len)) {
		case NETPOL_H1_MORE:
			return 0;
		case NETPOL_H1_BAD:
			return -1;
		case NETPOL_H1_DONE:
			return begin(s) ? 1 : -1;
		}
	}
	if (netpol_body_feed(&s->body, s->in.p, s->in.len, &s->up, &n) == NETPOL_H1_BAD)
		return -1;
	used(s, n);
	s->in_body = !s->body.done;
	return s->up.len > 0 ? 1 : 0;
}

/* ---- bytes ---- */

static void end(struct shim_session *s)
{
	s->state = SHIM_SESSION_ENDED;
}

/* 1: something moved; 0: nothing can now. */
static int up_once(struct shim_session *s)
{
	ssize_t n;
	int got;

	if (s->up_at < s->up.len) {
		n = shim_tls_send(s->tls, s->up.p + s->up_at, s->up.len - s->up_at);
		if (n == SHIM_TLS_BROKEN)
			s->tls_ended = true; /* an answer may have come already */
		if (n <= 0)
			return 0;
		s->up_at += (size_t)n;
		return 1;
	}
	if (s->up.len > 0)
		explicit_bzero(s->up.p, s->up.len);
	aqe_buf_clear(&s->up);
	s->up_at = 0;
	got = use(s);
	if (got != 0) {
		if (got < 0)
			end(s);
		return got > 0;
	}
	n = recv(s->plain, s->piece, PIECE, MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) ||
	    (n > 0 && aqe_buf_add(&s->in, s->piece, (size_t)n) < 0))
		end(s);
	return n > 0;
}

/* What came from the upstream, or its end, into s->down. */
static int read_tls(struct shim_session *s)
{
	ssize_t n = s->tls_ended ? 0 : shim_tls_recv(s->tls, s->piece, PIECE);
	int rc;

	if (n == SHIM_TLS_AGAIN)
		return 0;
	aqe_buf_clear(&s->down);
	s->down_at = 0;
	if (n > 0) {
		rc = shim_mask_feed(&s->mask, s->piece, (size_t)n, &s->down);
	} else {
		s->tls_ended = true;
		rc = shim_mask_end(&s->mask, &s->down);
		if (s->down.len == 0)
			end(s);
	}
	if (rc < 0)
		end(s);
	return s->state == SHIM_SESSION_OPEN;
}

static int down_once(struct shim_session *s)
{
	ssize_t n;

	if (s->down_at == s->down.len)
		return read_tls(s);
	n = send(s->plain, s->down.p + s->down_at, s->down.len - s->down_at,
		 MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		end(s);
	if (n <= 0)
		return 0;
	s->down_at += (size_t)n;
	return 1;
}

void shim_session_want(const struct shim_session *s, struct pollfd *ret)
{
	bool up = s->up_at < s->up.len, down = s->down_at < s->down.len;
	short plain = (short)((up ? 0 : POLLIN) | (down ? POLLOUT : 0));
	short tls = (short)((down ? 0 : POLLIN) | (up ? POLLOUT : 0));

	ret[0] = (struct pollfd){ s->plain, plain, 0 };
	ret[1] = (struct pollfd){ shim_tls_fd(s->tls), tls, 0 };
}

bool shim_session_run(struct shim_session *s, const struct pollfd *fds)
{
	int up = 1, down = 1, turns = 0;

	if (fds[0].revents & (POLLHUP | POLLERR)) {
		end(s); /* the worker waits for nothing more */
		return false;
	}
	while (s->state == SHIM_SESSION_OPEN && (up || down) && turns++ < TURNS) {
		up = s->tls_ended ? 0 : up_once(s);
		if (s->state == SHIM_SESSION_OPEN)
			down = down_once(s);
	}
	return s->state == SHIM_SESSION_OPEN && (up || down);
}
