/* SPDX-License-Identifier: MIT */
/* Sockets and threads of the gateway. One thread polls: it accepts, reads requests, and closes what
 * idles. A whole request goes to one of the others, which answers it and gives the connection back.
 */
#include "cache/gateway.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cache/request.h"
#include "shim/core/cleanup.h"

#define THREADS     8
#define THREADS_MAX 256
#define CONNS       256
#define CONNS_MAX   4096
#define IDLE_MS     60000
#define REQUEST_MS  30000
#define WRITE_MS    30000 /* for an answer to leave */
#define READ_BYTES  12288
#define HELD_MAX    ((size_t)128 << 20) /* bytes of unfinished requests, all together */
#define STACK_BYTES ((size_t)512 << 10)

enum conn_state {
	CONN_FREE,
	CONN_READING, /* polled */
	CONN_BUSY,    /* a thread has it */
	CONN_BACK,    /* a thread gave it back */
	CONN_DEAD,    /* a thread gave it back to be closed */
};

struct conn {
	int fd;
	atomic_int state;
	struct aqe_buf in;
	struct cache_request request;
	size_t used;       /* of in: the request being answered */
	int64_t since_ms;  /* its state; while reading: when the first byte of a request came */
	bool told;         /* 100 Continue was sent */
	struct conn *next; /* in the queue */
};

struct cache_gateway {
	struct cache_gateway_opts o;
	int wake; /* eventfd: a connection came back, or stop */
	atomic_bool stop;
	struct conn *conns; /* o.connections */
	struct pollfd *polls;
	unsigned *which; /* of polls: the connection */
	size_t held;     /* bytes in buffers; only the polling thread's */
	pthread_t *threads;
	unsigned n_threads;
	pthread_mutex_t lock; /* of the queue */
	pthread_cond_t filled;
	struct conn *first, *last;
};

static int64_t mono_ms(void)
{
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail with a valid clock and pointer */
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void wake(struct cache_gateway *g)
{
	const uint64_t one = 1;

	(void)!write(g->wake, &one, sizeof(one)); /* full only when it is awake anyway */
}

void cache_gateway_stop(struct cache_gateway *g)
{
	atomic_store(&g->stop, true);
	wake(g);
}

/* ---- the threads ---- */

/* All of the answer, or false after WRITE_MS, or at a stop. */
static bool send_all(struct cache_gateway *g, int fd, const char *p, size_t n)
{
	const int64_t until = mono_ms() + WRITE_MS;

	while (n > 0) {
		struct pollfd f = { .fd = fd, .events = POLLOUT };
		const ssize_t done = send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (done > 0) {
			p += done;
			n -= (size_t)done;
			continue;
		}
		if (done < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		if (mono_ms() >= until || atomic_load(&g->stop))
			return false;
		(void)poll(&f, 1, 100); /* and ask again */
	}
	return true;
}

static struct conn *next_job(struct cache_gateway *g)
{
	struct conn *c;

	pthread_mutex_lock(&g->lock);
	while (!g->first && !atomic_load(&g->stop))
		pthread_cond_wait(&g->filled, &g->lock);
	c = atomic_load(&g->stop) ? NULL : g->first;
	if (c) {
		g->first = c->next;
		if (!g->first)
			g->last = NULL;
	}
	pthread_mutex_unlock(&g->lock);
	return c;
}

static void *serve(void *self)
{
	struct cache_gateway *g = self;
	struct conn *c;

	while ((c = next_job(g))) {
		struct aqe_buf answer = AQE_BUF_INIT(CACHE_ANSWER_MAX);
		bool keep = c->request.keep;

		cache_gateway_answer(g->o.embedder, g->o.cache, &c->request, &answer);
		keep = !answer.failed && send_all(g, c->fd, answer.p, answer.len) && keep;
		aqe_buf_done(&answer);
		atomic_store(&c->state, keep ? CONN_BACK : CONN_DEAD);
		wake(g);
	}
	return NULL;
}

static void enqueue(struct cache_gateway *g, struct conn *c)
{
	atomic_store(&c->state, CONN_BUSY);
	c->next = NULL;
	pthread_mutex_lock(&g->lock);
	if (g->last)
		g->last->next = c;
	else
		g->first = c;
	g->last = c;
	pthread_cond_signal(&g->filled);
	pthread_mutex_unlock(&g->lock);
}

/* ---- connections; only the polling thread ---- */

static void close_conn(struct cache_gateway *g, struct conn *c)
{
	static const struct cache_request EMPTY = CACHE_REQUEST_INIT;

	if (c->fd >= 0)
		(void)close(c->fd); /* the answer was sent, or nobody waits for one */
	c->fd = -1;
	g->held -= c->in.len;
	aqe_buf_done(&c->in);
	cache_request_done(&c->request);
	c->request = EMPTY;
	atomic_store(&c->state, CONN_FREE);
}

static void refuse(struct cache_gateway *g, struct conn *c, int status)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);

	cache_gateway_refuse(status, &b);
	/* one try: the polling thread waits for nobody */
	(void)!send(c->fd, aqe_buf_str(&b), b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	close_conn(g, c);
}

/* Looks whether the bytes that are there are a whole request. */
static void parse(struct cache_gateway *g, struct conn *c)
{
	static const char CONTINUE[] = "HTTP/1.1 100 Continue\r\n\r\n";
	const int status =
		cache_request_parse(&c->request, aqe_buf_str(&c->in), c->in.len, &c->used);

	if (status) {
		refuse(g, c, status);
	} else if (c->used > 0) {
		enqueue(g, c);
	} else if (c->request.expects && !c->told) {
		c->told = true;
		(void)!send(c->fd, CONTINUE, sizeof(CONTINUE) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
}

static void read_conn(struct cache_gateway *g, struct conn *c)
{
	char part[READ_BYTES];
	const ssize_t n = recv(c->fd, part, sizeof(part), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		close_conn(g, c);
		return;
	}
	if (c->in.len == 0)
		c->since_ms = mono_ms();
	if (g->held + (size_t)n > HELD_MAX) {
		refuse(g, c, 503);
	} else if (aqe_buf_add(&c->in, part, (size_t)n)) {
		refuse(g, c, 413);
	} else {
		g->held += (size_t)n;
		parse(g, c);
	}
}

/* The answer is sent: what is left in the buffer may be the next request. */
static void take_back(struct cache_gateway *g, struct conn *c)
{
	if (atomic_load(&c->state) == CONN_DEAD) {
		close_conn(g, c);
		return;
	}
	memmove(c->in.p, c->in.p + c->used, c->in.len - c->used);
	c->in.len -= c->used;
	g->held -= c->used;
	c->used = 0;
	c->told = false;
	c->since_ms = mono_ms();
	cache_request_clear(&c->request);
	if (c->in.len == 0) { /* an idle connection keeps no memory */
		aqe_buf_done(&c->in);
		aqe_buf_done(&c->request.body);
	}
	atomic_store(&c->state, CONN_READING);
	if (c->in.len > 0)
		parse(g, c);
}

static void accept_one(struct cache_gateway *g)
{
	/* cppcheck-suppress nullPointer ; accept4(2) takes NULL for an address nobody wants */
	const int fd = accept4(g->o.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	const int yes = 1;

	if (fd < 0)
		return; /* gone again, or out of descriptors: there will be another poll */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes,
			 sizeof(yes)); /* fails on unix sockets */
	for (unsigned i = 0; i < g->o.connections; i++) {
		struct conn *c = &g->conns[i];

		if (atomic_load(&c->state) != CONN_FREE)
			continue;
		c->fd = fd;
		c->used = 0;
		c->told = false;
		c->since_ms = mono_ms();
		atomic_store(&c->state, CONN_READING);
		return;
	}
	(void)close(fd); /* more than we hold */
}

/* Fills the list for poll(2), closes what took too long; the number of entries. */
static nfds_t gather(struct cache_gateway *g)
{
	const int64_t now = mono_ms();
	nfds_t n = 2;

	g->polls[0] = (struct pollfd){ .fd = g->wake, .events = POLLIN };
	g->polls[1] = (struct pollfd){ .fd = g->o.listen_fd, .events = POLLIN };
	for (unsigned i = 0; i < g->o.connections; i++) {
		struct conn *c = &g->conns[i];
		const int state = atomic_load(&c->state);

		if (state == CONN_BACK || state == CONN_DEAD)
			take_back(g, c);
		if (atomic_load(&c->state) != CONN_READING)
			continue;
		if (now - c->since_ms > (c->in.len ? g->o.request_ms : g->o.idle_ms)) {
			close_conn(g, c);
			continue;
		}
		g->which[n] = i;
		g->polls[n++] = (struct pollfd){ .fd = c->fd, .events = POLLIN };
	}
	return n;
}

int cache_gateway_run(struct cache_gateway *g, struct aqe_err *e)
{
	uint64_t count;

	while (!atomic_load(&g->stop)) {
		const nfds_t n = gather(g);

		if (poll(g->polls, n, 1000) < 0 && errno != EINTR)
			return aqe_err_set(e, AQE_E_SYS, errno, "gateway: poll");
		if (g->polls[0].revents)
			(void)!read(g->wake, &count, sizeof(count)); /* empties it */
		for (nfds_t i = 2; i < n; i++)
			if (g->polls[i].revents)
				read_conn(g, &g->conns[g->which[i]]);
		if (g->polls[1].revents)
			accept_one(g);
	}
	return 0;
}

/* ---- life ---- */

static int start_threads(struct cache_gateway *g, struct aqe_err *e)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int rc = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the caller's thread's */
	pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES); /* or the default */
	while (g->n_threads < g->o.threads && !rc) {
		rc = pthread_create(&g->threads[g->n_threads], &attr, serve, g);
		if (!rc)
			g->n_threads++;
	}
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc ? aqe_err_set(e, AQE_E_SYS, rc, "gateway: cannot start a thread") : 0;
}

static int set_up(struct cache_gateway *g, struct aqe_err *e)
{
	static const struct conn FREE = { .fd = -1,
					  .in = AQE_BUF_INIT(CACHE_REQUEST_MAX),
					  .request = CACHE_REQUEST_INIT };
	const int flags = fcntl(g->o.listen_fd, F_GETFL);

	if (flags < 0 || fcntl(g->o.listen_fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "gateway: the listener");
	g->conns = calloc(g->o.connections, sizeof(*g->conns));
	g->polls = calloc(g->o.connections + 2, sizeof(*g->polls));
	g->which = calloc(g->o.connections + 2, sizeof(*g->which));
	g->threads = calloc(g->o.threads, sizeof(*g->threads));
	if (!g->conns || !g->polls || !g->which || !g->threads)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "gateway: out of memory");
	for (unsigned i = 0; i < g->o.connections; i++)
		memcpy(&g->conns[i], &FREE, sizeof(FREE));
	g->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (g->wake < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "gateway: eventfd");
	return start_threads(g, e);
}

int cache_gateway_new(const struct cache_gateway_opts *o, struct cache_gateway **ret,
		      struct aqe_err *e)
{
	struct cache_gateway *g = calloc(1, sizeof(*g));
	int rc;

	if (!g) {
		(void)close(o->listen_fd);
		return aqe_err_set(e, AQE_E_NOMEM, 0, "gateway: out of memory");
	}
	g->o = *o;
	g->wake = -1;
	g->o.threads = o->threads ? o->threads : THREADS;
	g->o.connections = o->connections ? o->connections : CONNS;
	g->o.idle_ms = o->idle_ms ? o->idle_ms : IDLE_MS;
	g->o.request_ms = o->request_ms ? o->request_ms : REQUEST_MS;
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->filled, NULL);
	if (g->o.threads > THREADS_MAX || g->o.connections > CONNS_MAX)
		rc = aqe_err_set(e, AQE_E_LIMIT, 0,
				 "gateway: more than %d threads or %d connections", THREADS_MAX,
				 CONNS_MAX);
	else
		rc = set_up(g, e);
	if (rc) {
		cache_gateway_free(g);
		return rc;
	}
	*ret = g;
	return 0;
}

void cache_gateway_free(struct cache_gateway *g)
{
	if (!g)
		return;
	pthread_mutex_lock(&g->lock);
	atomic_store(&g->stop, true);
	pthread_cond_broadcast(&g->filled);
	pthread_mutex_unlock(&g->lock);
	for (unsigned i = 0; i < g->n_threads; i++)
		pthread_join(g->threads[i], NULL);
	for (unsigned i = 0; g->conns && i < g->o.connections; i++)
		close_conn(g, &g->conns[i]);
	(void)close(g->o.listen_fd);
	if (g->wake >= 0)
		(void)close(g->wake);
	pthread_mutex_destroy(&g->lock);
	pthread_cond_destroy(&g->filled);
	free(g->conns);
	free(g->polls);
	free(g->which);
	free(g->threads);
	free(g);
}
