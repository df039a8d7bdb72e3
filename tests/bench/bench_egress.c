/* SPDX-License-Identifier: MIT */
/* Load for the egress bench; tests/bench/egress.sh puts a proxy in between.
 *   bench_egress origin ADDR PORT               serves all three, until it is killed
 *   bench_egress setups PROXY TARGET SECONDS    CONNECT, one byte each way, close; 8 at a time
 *   bench_egress bulk PROXY TARGET SECONDS N    bytes from the origin through N tunnels
 *   bench_egress http PROXY TARGET SECONDS [N]  GETs on N (16) kept connections
 *   bench_egress mixed PROXY TARGET ROUNDS      64 tunnels at a time, half of them up and half
 * down, then 64 GETs and 64 CONNECTs to evil.test: each round PROXY is ADDR:PORT; "-" is no proxy.
 * TARGET is ADDR:PORT or ADDR:PORT=NAME:PORT: what a proxy is asked for. Prints "OPERATIONS SECONDS
 * P99_MS" (bulk: BYTES). */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "shim/core/text.h"

#define CONNS_MAX   16
#define SETUPS      8
#define HTTP_FDS    64
#define MIXED       64
#define MIXED_BYTES 150000
#define SAMPLES_MAX 2000000
#define BUFFER      262144
#define EVENTS      64
#define HEAD_END    0x0d0a0d0aU /* CR LF CR LF */

static char buffer[BUFFER];

static double now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct sockaddr_in parse_place(const char *text)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	const char *colon = strrchr(text, ':');
	char host[64] = "";
	uint64_t port = 0;

	if (colon && (size_t)(colon - text) < sizeof(host)) {
		memcpy(host, text, (size_t)(colon - text));
		(void)aqe_parse_u64(colon + 1, UINT16_MAX, &port);
	}
	sa.sin_port = htons((uint16_t)port);
	if (inet_pton(AF_INET, host, &sa.sin_addr) != 1) {
		(void)fprintf(stderr, "bench_egress: '%s' is no ADDR:PORT\n", text);
		_exit(2);
	}
	return sa;
}

static int dial(const struct sockaddr_in *sa)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0 || connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) < 0) {
		perror("bench_egress: connect");
		_exit(1);
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static void send_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t put = send(fd, p, n, MSG_NOSIGNAL);

		if (put < 0) {
			perror("bench_egress: send");
			_exit(1);
		}
		p += put;
		n -= (size_t)put;
	}
}

/* ---- the origin: the first byte of a connection says what it is for ---- */

enum kind { NEW, BYTE, SOURCE, HTTP };
static struct {
	enum kind kind;
	uint32_t tail; /* the last bytes of the head so far: tinyproxy sends it line by line */
	bool closing;
} conns[65536];

static void end(int fd)
{
	(void)close(fd);
	memset(&conns[fd], 0, sizeof(conns[fd]));
}

/* Until the socket is full: the next event comes when there is room again. */
static void push(int fd)
{
	while (send(fd, buffer, sizeof(buffer), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		;
	if (errno != EAGAIN)
		end(fd);
}

/* False: the connection was to end with this answer, as tinyproxy asks for. */
static bool answer(int fd, size_t n)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nhello, world\n";
	static const char close_it[] = "Connection: close\r\n";

	if (conns[fd].kind == NEW)
		conns[fd].kind = buffer[0] == 'b' ? BYTE : buffer[0] == 's' ? SOURCE : HTTP;
	if (conns[fd].kind == BYTE)
		(void)send(fd, "B", 1, MSG_NOSIGNAL);
	if (conns[fd].kind != HTTP)
		return true;
	for (size_t i = n > 4 ? n - 4 : 0; i < n; i++)
		conns[fd].tail = conns[fd].tail << 8 | (unsigned char)buffer[i];
	if (memmem(buffer, n, close_it, sizeof(close_it) - 1))
		conns[fd].closing = true;
	if (conns[fd].tail != HEAD_END)
		return true;
	conns[fd].tail = 0;
	(void)send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL);
	return !conns[fd].closing;
}

/* Until the socket is empty: events come by edges. */
static void serve(int fd)
{
	ssize_t n;

	while ((n = recv(fd, buffer, 16384, MSG_DONTWAIT)) > 0) {
		if (!answer(fd, (size_t)n)) {
			end(fd);
			return;
		}
	}
	if (n == 0 || errno != EAGAIN)
		end(fd);
	else if (conns[fd].kind == SOURCE)
		push(fd);
}

static int origin(const char *place)
{
	struct sockaddr_in sa = parse_place(place);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
	int ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event ev = { .events = EPOLLIN }, got[EVENTS];

	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	ev.data.fd = fd;
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 4096) < 0 ||
	    epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) < 0) {
		perror("bench_egress: origin");
		return 1;
	}
	for (;;) {
		int n = epoll_wait(ep, got, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			int c;

			if (got[i].data.fd != fd) {
				serve(got[i].data.fd);
				continue;
			}
			while ((c = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
				ev.data.fd = c;
				ev.events = EPOLLIN | EPOLLOUT | EPOLLET;
				(void)setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
				if (epoll_ctl(ep, EPOLL_CTL_ADD, c, &ev) < 0)
					(void)close(c);
			}
		}
	}
}

/* ---- the client ---- */

struct load {
	struct sockaddr_in proxy, target;
	bool direct;
	char connect[256], get[256];
	double until;
	float *samples; /* ms */
	size_t n;
};

static void sample(struct load *l, double start)
{
	if (l->n < SAMPLES_MAX)
		l->samples[l->n++] = (float)((now() - start) * 1000);
}

static int by_size(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static void report(struct load *l, double operations, double start)
{
	double p99 = 0;

	if (l->n > 0) {
		qsort(l->samples, l->n, sizeof(l->samples[0]), by_size);
		p99 = (double)l->samples[l->n * 99 / 100];
	}
	(void)printf("%.0f %.3f %.2f\n", operations, now() - start, p99);
}

static void expect_established(const struct load *l, int fd)
{
	size_t n = 0;

	if (l->direct)
		return;
	do {
		ssize_t got = recv(fd, buffer + n, 4096 - n, 0);

		if (got <= 0) {
			(void)fprintf(stderr, "bench_egress: the proxy closed\n");
			_exit(1);
		}
		n += (size_t)got;
	} while (n < 4 || memcmp(buffer + n - 4, "\r\n\r\n", 4) != 0);
	if (n < 12 || memcmp(buffer + 9, "200", 3) != 0) {
		(void)fprintf(stderr, "bench_egress: %.*s\n", (int)n, buffer);
		_exit(1);
	}
}

static int open_tunnel(const struct load *l)
{
	int fd = dial(l->direct ? &l->target : &l->proxy);

	if (!l->direct)
		send_all(fd, l->connect, strlen(l->connect));
	expect_established(l, fd);
	return fd;
}

/* Several at a time, each step for all of them: the proxy always has something to do. */
static void setups(struct load *l)
{
	double start = now(), begun;
	int fd[SETUPS];
	char byte;

	while (now() < l->until) {
		begun = now();
		for (int i = 0; i < SETUPS; i++) {
			fd[i] = dial(l->direct ? &l->target : &l->proxy);
			if (!l->direct)
				send_all(fd[i], l->connect, strlen(l->connect));
		}
		for (int i = 0; i < SETUPS; i++) {
			expect_established(l, fd[i]);
			send_all(fd[i], "b", 1);
		}
		for (int i = 0; i < SETUPS; i++) {
			if (recv(fd[i], &byte, 1, 0) != 1)
				_exit(1);
			(void)close(fd[i]);
			sample(l, begun);
		}
	}
	report(l, (double)l->n, start);
}

static void bulk(struct load *l, unsigned n)
{
	struct epoll_event ev = { .events = EPOLLIN }, got[CONNS_MAX];
	int ep = epoll_create1(EPOLL_CLOEXEC);
	double bytes = 0, start;

	for (unsigned i = 0; i < n && i < CONNS_MAX; i++) {
		ev.data.fd = open_tunnel(l);
		send_all(ev.data.fd, "s", 1);
		(void)epoll_ctl(ep, EPOLL_CTL_ADD, ev.data.fd, &ev);
	}
	start = now();
	while (now() < l->until) {
		int k = epoll_wait(ep, got, CONNS_MAX, 100);

		for (int i = 0; i < k; i++) {
			ssize_t m = recv(got[i].data.fd, buffer, sizeof(buffer), MSG_DONTWAIT);

			if (m > 0)
				bytes += (double)m;
			if (m == 0)
				_exit(1);
		}
	}
	report(l, bytes, start);
}

/* Asks on a new connection in the place of one that was closed: tinyproxy keeps none. */
static void ask_anew(const struct load *l, int ep, double *begun)
{
	struct epoll_event ev = { .events = EPOLLIN };

	ev.data.fd = dial(l->direct ? &l->target : &l->proxy);
	if (ev.data.fd >= HTTP_FDS || epoll_ctl(ep, EPOLL_CTL_ADD, ev.data.fd, &ev) < 0)
		_exit(1);
	begun[ev.data.fd] = now();
	send_all(ev.data.fd, l->get, strlen(l->get));
}

static void http(struct load *l, uint64_t n)
{
	struct epoll_event got[CONNS_MAX];
	int ep = epoll_create1(EPOLL_CLOEXEC);
	double start = now(), begun[HTTP_FDS] = { 0 };
	size_t closed = 0;

	for (uint64_t i = 0; i < n; i++)
		ask_anew(l, ep, begun);
	while (now() < l->until) {
		int k = epoll_wait(ep, got, CONNS_MAX, 100);

		for (int i = 0; i < k; i++) {
			int fd = got[i].data.fd;
			ssize_t m = recv(fd, buffer, 4096, MSG_DONTWAIT);

			if (m <= 0) {
				(void)close(fd); /* its number is the next connection's */
				closed++;
				ask_anew(l, ep, begun);
				continue;
			}
			/* The whole answer comes at once: it is small. */
			if (m < 13 || memcmp(buffer + m - 13, "hello, world\n", 13) != 0)
				continue;
			sample(l, begun[fd]);
			begun[fd] = now();
			(void)send(fd, l->get, strlen(l->get), MSG_NOSIGNAL);
		}
	}
	if (closed > l->n + n) {
		(void)fprintf(stderr, "bench_egress: closed\n");
		_exit(1);
	}
	report(l, (double)l->n, start);
}

/* ---- a mixture, for leaks: what is wrong ends it ---- */

static void wrong(const char *what)
{
	(void)fprintf(stderr, "bench_egress: %s\n", what);
	_exit(1);
}

static void read_to(int fd, size_t n)
{
	while (n > 0) {
		ssize_t got = recv(fd, buffer, n < sizeof(buffer) ? n : sizeof(buffer), 0);

		if (got <= 0)
			wrong("a tunnel ended early");
		n -= (size_t)got;
	}
}

/* Down: reads and goes away. Up: sends, says so, and waits for the other side's end. */
static void use_tunnel(int fd, bool down)
{
	ssize_t got;

	if (down) {
		send_all(fd, "s", 1);
		read_to(fd, MIXED_BYTES);
	} else {
		memset(buffer, 'b', MIXED_BYTES);
		send_all(fd, buffer, MIXED_BYTES);
		(void)shutdown(fd, SHUT_WR);
		do
			got = recv(fd, buffer, sizeof(buffer), 0);
		while (got > 0);
		if (got < 0)
			wrong("a half-closed tunnel broke");
	}
	(void)close(fd);
}

/* One request on a connection of its own; `want` is in the answer. */
static void ask_once(const struct load *l, const char *request, const char *want)
{
	int fd = dial(&l->proxy);
	size_t n = 0;
	ssize_t got;

	send_all(fd, request, strlen(request));
	do {
		got = recv(fd, buffer + n, 4096 - n, 0);
		n += got > 0 ? (size_t)got : 0;
		buffer[n] = '\0';
	} while (got > 0 && n < 4096 && !strstr(buffer, want));
	if (!strstr(buffer, want))
		wrong(buffer);
	(void)close(fd);
}

static void mixed(struct load *l, uint64_t rounds)
{
	static const char denied[] = "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n";
	double start = now();
	int fd[MIXED];

	for (uint64_t r = 0; r < rounds; r++) {
		for (int i = 0; i < MIXED; i++) {
			fd[i] = dial(&l->proxy);
			send_all(fd[i], l->connect, strlen(l->connect));
		}
		for (int i = 0; i < MIXED; i++)
			expect_established(l, fd[i]);
		for (int i = 0; i < MIXED; i++)
			use_tunnel(fd[i], i % 2 == 0);
		for (int i = 0; i < MIXED; i++) {
			ask_once(l, l->get, "hello, world\n");
			ask_once(l, denied, "403 domain_not_allowed");
		}
	}
	report(l, (double)rounds * MIXED * 3, start);
}

int main(int argc, char **argv)
{
	struct load l;
	uint64_t seconds = 0, n = 1;
	char *name;

	(void)signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && aqe_str_eq(argv[1], "origin"))
		return origin(argv[2]);
	if (argc < 5 || !aqe_parse_u64(argv[4], 3600, &seconds) ||
	    (argc > 5 && !aqe_parse_u64(argv[5], CONNS_MAX, &n)))
		return 2;
	memset(&l, 0, sizeof(l));
	name = strchr(argv[3], '=');
	if (name)
		*name++ = '\0';
	else
		name = argv[3];
	l.direct = aqe_str_eq(argv[2], "-");
	if (!l.direct)
		l.proxy = parse_place(argv[2]);
	l.target = parse_place(argv[3]);
	(void)snprintf(l.connect, sizeof(l.connect), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n",
		       name, name);
	(void)snprintf(l.get, sizeof(l.get), "GET %s%s/ HTTP/1.1\r\nHost: %s\r\n\r\n",
		       l.direct ? "" : "http://", l.direct ? "" : name, name);
	l.samples = calloc(SAMPLES_MAX, sizeof(l.samples[0]));
	if (!l.samples)
		return 1;
	l.until = now() + (double)seconds;
	if (aqe_str_eq(argv[1], "mixed"))
		mixed(&l, seconds);
	else if (aqe_str_eq(argv[1], "setups"))
		setups(&l);
	else if (aqe_str_eq(argv[1], "bulk"))
		bulk(&l, (unsigned)n);
	else
		http(&l, argc > 5 ? n : CONNS_MAX);
	free(l.samples);
	return 0;
}
