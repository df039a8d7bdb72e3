/* SPDX-License-Identifier: MIT */
#include "cache/conn.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "shim/core/cleanup.h"

#define READ_BYTES    12288
#define OUT_MAX       ((size_t)64 << 20) /* a batch of the largest values is cut long before */
#define ADDRESSES_MAX 8                  /* of one name that are tried */

struct cache_conn {
	int fd;
	struct aqe_tls *tls;
	struct aqe_buf out; /* as it goes over the wire */
	size_t sent;        /* of out */
};

int64_t cache_conn_clock(void)
{
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail with a valid clock and pointer */
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Waits for `events`: 0, AQE_E_TIMEOUT or AQE_E_SYS. */
static int wait_for(int fd, short events, int64_t deadline_ms, struct aqe_err *e)
{
	struct pollfd p = { .fd = fd, .events = events };
	int64_t left;
	int n;

	do {
		left = deadline_ms - cache_conn_clock();
		if (left <= 0)
			return aqe_err_set(e, AQE_E_TIMEOUT, 0, "no answer in time");
		n = poll(&p, 1, left < INT_MAX ? (int)left : INT_MAX);
	} while (n == 0 || (n < 0 && errno == EINTR));
	return n < 0 ? aqe_err_set(e, AQE_E_SYS, errno, "poll") : 0;
}

/* ---- connecting ---- */

static int dial(int family, const struct sockaddr *to, socklen_t len, int64_t deadline_ms,
		int *ret_fd, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int yes = 1;
	socklen_t n = sizeof(int);
	int rc, failure = 0;

	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "socket");
	if (connect(fd, to, len) != 0) {
		/* EAGAIN: a unix socket whose queue is full */
		if (errno != EINPROGRESS)
			return aqe_err_set(e, AQE_E_SYS, errno, "connect");
		rc = wait_for(fd, POLLOUT, deadline_ms, e);
		if (rc)
			return rc;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &n) != 0 || failure)
			return aqe_err_set(e, AQE_E_SYS, failure ? failure : errno, "connect");
	}
	if (family != AF_UNIX) /* small questions must not wait; no harm if it cannot be set */
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	*ret_fd = AQE_TAKE_FD(fd);
	return 0;
}

static int dial_unix(const char *path, int64_t deadline_ms, int *ret_fd, struct aqe_err *e)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const size_t len = strlen(path);
	int rc;

	if (len == 0 || len >= sizeof(a.sun_path))
		return aqe_err_set(e, AQE_E_LIMIT, 0, "path of a socket of %zu bytes", len);
	memcpy(a.sun_path, path, len + 1);
	rc = dial(AF_UNIX, (const struct sockaddr *)&a, sizeof(a), deadline_ms, ret_fd, e);
	return rc ? aqe_err_wrap(e, "'%s'", path) : 0;
}

static int dial_host(const struct cache_conn_opts *o, int64_t deadline_ms, int *ret_fd,
		     struct aqe_err *e)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
					.ai_socktype = SOCK_STREAM,
					.ai_flags = AI_NUMERICSERV };
	struct addrinfo *list = NULL;
	int rc, tried = 0;
	char port[8];

	(void)snprintf(port, sizeof(port), "%u", o->port);
	rc = getaddrinfo(o->host, port, &hints, &list);
	if (rc || !list)
		return aqe_err_set(e, AQE_E_SYS, 0, "host '%.128s': %s", o->host, gai_strerror(rc));
	rc = AQE_E_SYS;
	for (const struct addrinfo *a = list; a && rc && tried < ADDRESSES_MAX; a = a->ai_next) {
		rc = dial(a->ai_family, a->ai_addr, a->ai_addrlen, deadline_ms, ret_fd, e);
		tried++;
	}
	freeaddrinfo(list);
	return rc ? aqe_err_wrap(e, "%.128s:%u", o->host, o->port) : 0;
}

static int handshake(struct cache_conn *c, int64_t deadline_ms, struct aqe_err *e);

int cache_conn_open(const struct cache_conn_opts *o, int64_t deadline_ms, struct cache_conn **ret,
		    struct aqe_err *e)
{
	static const struct aqe_buf OUT = AQE_BUF_INIT(OUT_MAX);
	struct cache_conn *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	c->fd = -1;
	c->out = OUT;
	rc = o->socket ? dial_unix(o->socket, deadline_ms, &c->fd, e)
		       : dial_host(o, deadline_ms, &c->fd, e);
	if (!rc && o->tls) {
		rc = aqe_tls_new(o->tls, &c->tls, e);
		if (!rc)
			rc = handshake(c, deadline_ms, e);
	}
	if (rc) {
		cache_conn_close(c);
		return rc;
	}
	*ret = c;
	return 0;
}

void cache_conn_close(struct cache_conn *c)
{
	if (!c)
		return;
	aqe_tls_free(c->tls);
	aqe_buf_done(&c->out);
	if (c->fd >= 0)
		(void)close(c->fd); /* nothing is lost that anybody waits for */
	free(c);
}

bool cache_conn_quiet(const struct cache_conn *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	return c->sent == c->out.len && poll(&p, 1, 0) == 0;
}

/* ---- bytes ---- */

static int send_some(struct cache_conn *c, struct aqe_err *e)
{
	ssize_t n;

	if (c->sent == c->out.len)
		return 0;
	n = send(c->fd, c->out.p + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return aqe_err_set(e, AQE_E_SYS, errno, "send");
	if (n > 0)
		c->sent += (size_t)n;
	if (c->sent == c->out.len) {
		c->sent = 0;
		aqe_buf_clear(&c->out);
	}
	return 0;
}

/* Bytes as they come over the wire: how many, 0 when none wait, or an error. */
static int receive_some(struct cache_conn *c, char part[READ_BYTES], struct aqe_err *e)
{
	const ssize_t n = recv(c->fd, part, READ_BYTES, 0);

	if (n > 0)
		return (int)n;
	if (n == 0)
		return aqe_err_set(e, AQE_E_SYS, 0, "the connection was closed");
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	return aqe_err_set(e, AQE_E_SYS, errno, "receive");
}

/* One round: waits until bytes can go or come, and moves them. Appends what came, in clear. */
static int move(struct cache_conn *c, int64_t deadline_ms, struct aqe_buf *b, struct aqe_err *e)
{
	const bool more = c->sent < c->out.len;
	char part[READ_BYTES];
	int rc = wait_for(c->fd, (short)(POLLIN | (more ? POLLOUT : 0)), deadline_ms, e);

	if (!rc)
		rc = send_some(c, e);
	if (rc)
		return rc;
	rc = receive_some(c, part, e);
	if (rc <= 0)
		return rc;
	if (!c->tls) {
		aqe_buf_add(b, part, (size_t)rc);
		return aqe_buf_ok(b, e);
	}
	return aqe_tls_feed(c->tls, part, (size_t)rc, e);
}

static int handshake(struct cache_conn *c, int64_t deadline_ms, struct aqe_err *e)
{
	int rc, drained;

	for (;;) {
		rc = aqe_tls_handshake(c->tls, e);
		drained = aqe_tls_drain(c->tls, &c->out, rc < 0 ? NULL : e);
		if (rc < 0)
			(void)send_some(c, NULL); /* so that the other side learns why */
		if (rc != 0 || drained)
			return rc < 0 ? rc : drained;
		rc = move(c, deadline_ms, NULL, e);
		if (rc)
			return rc;
	}
}

int cache_conn_send(struct cache_conn *c, const void *p, size_t n, struct aqe_err *e)
{
	int rc;

	if (!c->tls) {
		aqe_buf_add(&c->out, p, n);
		return aqe_buf_ok(&c->out, e);
	}
	rc = aqe_tls_write(c->tls, p, n, e);
	return rc ? rc : aqe_tls_drain(c->tls, &c->out, e);
}

int cache_conn_exchange(struct cache_conn *c, int64_t deadline_ms, struct aqe_buf *b,
			struct aqe_err *e)
{
	const size_t before = b->len;
	int rc = 0;

	/* the first try without asking the kernel whether there is room */
	if (c->sent < c->out.len)
		rc = send_some(c, e);
	while (!rc && b->len == before) {
		rc = move(c, deadline_ms, b, e);
		if (!rc && c->tls)
			rc = aqe_tls_read(c->tls, b, e);
		if (!rc && c->tls) /* TLS may have something to say by itself */
			rc = aqe_tls_drain(c->tls, &c->out, e);
	}
	return rc;
}
