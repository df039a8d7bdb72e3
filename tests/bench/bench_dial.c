/* SPDX-License-Identifier: MIT */
/* What a connection costs to make: the dialer's own way (socket, non-blocking
 * connect, epoll, SO_ERROR) and libcurl's CONNECT_ONLY with a look at the
 * address (OPENSOCKETFUNCTION), to a listener of our own, in turns. CPU time of
 * the dialling process, medians. Nothing is looked up. */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/core/lazy.h"
#include "shim/core/text.h"

#define ROUNDS 15
#define EACH   500

#define CURL_FUNCTIONS(X)   \
	X(global_init)      \
	X(easy_init)        \
	X(easy_setopt)      \
	X(easy_cleanup)     \
	X(multi_init)       \
	X(multi_cleanup)    \
	X(multi_add_handle) \
	X(multi_perform)    \
	X(multi_poll)       \
	X(multi_info_read)  \
	X(multi_remove_handle)

#define MEMBER(name) __typeof__(curl_##name) *(name);
static struct curl_functions {
	CURL_FUNCTIONS(MEMBER)
} curl;
#define SYMBOL(name) { "curl_" #name, offsetof(struct curl_functions, name) },
static const struct aqe_lazy_symbol SYMBOLS[] = { CURL_FUNCTIONS(SYMBOL) };

static struct sockaddr_in there = { .sin_family = AF_INET };
static char url[64];

__attribute__((noreturn)) static void wrong(const char *what)
{
	perror(what);
	_exit(1);
}

static double cpu_us(void)
{
	struct rusage r;

	(void)getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

/* Accepts and waits for the other side's end. */
static pid_t listener(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), c;
	socklen_t n = sizeof(there);
	char byte;
	pid_t pid;

	there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&there, n) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, (struct sockaddr *)&there, &n) < 0)
		wrong("listen");
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/", ntohs(there.sin_port));
	pid = fork();
	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while ((c = accept(fd, NULL, NULL)) >= 0) {
		(void)!read(c, &byte, 1);
		(void)close(c);
	}
	_exit(0);
}

static void own(int ep)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, sys = 0;
	struct epoll_event ev = { .events = EPOLLOUT };
	socklen_t n = sizeof(sys);

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	if (connect(fd, (struct sockaddr *)&there, sizeof(there)) < 0 && errno != EINPROGRESS)
		wrong("connect");
	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) < 0 || epoll_wait(ep, &ev, 1, -1) != 1 ||
	    getsockopt(fd, SOL_SOCKET, SO_ERROR, &sys, &n) < 0 || sys != 0)
		wrong("connect");
	(void)close(fd);
}

static curl_socket_t on_open(void *self, curlsocktype purpose, struct curl_sockaddr *to)
{
	(void)self;
	(void)purpose;
	if (to->family != AF_INET) /* where the address would be judged */
		return CURL_SOCKET_BAD;
	return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

static void by_curl(CURLM *multi)
{
	CURL *easy = curl.easy_init();
	const CURLMsg *m = NULL;
	int running, left;

	if (!easy || curl.easy_setopt(easy, CURLOPT_URL, url) ||
	    curl.easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L) ||
	    curl.easy_setopt(easy, CURLOPT_NOPROXY, "*") ||
	    curl.easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L) ||
	    curl.easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L) ||
	    curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) ||
	    curl.easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open) ||
	    curl.multi_add_handle(multi, easy))
		wrong("libcurl");
	while (!m) {
		if (curl.multi_perform(multi, &running))
			wrong("libcurl");
		m = curl.multi_info_read(multi, &left);
		if (!m && curl.multi_poll(multi, NULL, 0, 1000, NULL))
			wrong("libcurl");
	}
	if (m->data.result != CURLE_OK)
		wrong("libcurl: no connection");
	(void)curl.multi_remove_handle(multi, easy);
	curl.easy_cleanup(easy);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	struct aqe_err e = AQE_ERR_INIT;
	double ours[ROUNDS], theirs[ROUNDS], at;
	int ep = epoll_create1(EPOLL_CLOEXEC);
	pid_t pid = listener();
	CURLM *multi;

	if (aqe_lazy_load("libcurl.so.4", SYMBOLS, AQE_COUNT(SYMBOLS), &curl, &e) < 0 ||
	    curl.global_init(CURL_GLOBAL_DEFAULT))
		wrong("libcurl.so.4");
	multi = curl.multi_init();
	for (int i = 0; i < ROUNDS; i++) {
		at = cpu_us();
		for (int n = 0; n < EACH; n++)
			own(ep);
		ours[i] = (cpu_us() - at) / EACH;
		at = cpu_us();
		for (int n = 0; n < EACH; n++)
			by_curl(multi);
		theirs[i] = (cpu_us() - at) / EACH;
	}
	qsort(ours, ROUNDS, sizeof(ours[0]), by_size);
	qsort(theirs, ROUNDS, sizeof(theirs[0]), by_size);
	(void)printf("dial: own non-blocking connect %.1f us CPU, libcurl "
		     "CONNECT_ONLY %.1f us CPU: "
		     "%.1f times\n",
		     ours[ROUNDS / 2], theirs[ROUNDS / 2], theirs[ROUNDS / 2] / ours[ROUNDS / 2]);
	(void)curl.multi_cleanup(multi);
	(void)kill(pid, SIGKILL);
	return 0;
}
