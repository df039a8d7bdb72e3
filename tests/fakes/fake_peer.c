/* SPDX-License-Identifier: MIT */
#include "tests/fakes/fake_peer.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct connection {
	int fd;
	fake_peer_fn *serve;
	void *arg;
};

static void *thread(void *self)
{
	struct connection *c = self;

	c->serve(c->fd, c->arg);
	close(c->fd);
	free(c);
	return NULL;
}

static void accept_all(int fd, fake_peer_fn *serve, void *arg)
{
	const int yes = 1;

	for (;;) {
		struct connection *c = malloc(sizeof(*c));
		pthread_t t;

		assert(c);
		c->fd = accept(fd, NULL, NULL);
		c->serve = serve;
		c->arg = arg;
		if (c->fd < 0) {
			free(c);
			continue;
		}
		(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
		assert(pthread_create(&t, NULL, thread, c) == 0);
		pthread_detach(t);
	}
}

static int listen_any(int *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	assert(listen(fd, 128) == 0 && getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

/* The child allocates: a lock that another thread holds at the fork would stay locked in it (with
 * AddressSanitizer, for ever). */
static bool is_alone(void)
{
	struct stat st;

	return stat("/proc/self/task", &st) == 0 && st.st_nlink == 3;
}

void fake_peer_start(struct fake_peer *p, fake_peer_fn *serve, void *arg)
{
	int fd = listen_any(&p->port);

	assert(is_alone());
	p->pid = fork();
	assert(p->pid >= 0);
	if (p->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)signal(SIGPIPE, SIG_IGN);
		accept_all(fd, serve, arg);
		_exit(0);
	}
	close(fd);
}

void fake_peer_stop(struct fake_peer *p)
{
	if (p->pid <= 0)
		return;
	(void)kill(p->pid, SIGKILL);
	(void)waitpid(p->pid, NULL, 0);
	p->pid = 0;
}

void *fake_peer_shared(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert(p != MAP_FAILED);
	return p;
}

static size_t body_length(const char *head)
{
	const char *p = strcasestr(head, "\r\nContent-Length:");

	return p ? strtoull(p + 17, NULL, 10) : 0;
}

size_t fake_peer_request(int fd, char *buf, size_t max)
{
	size_t len = 0, want = max - 1;
	const char *end = NULL;

	while (len < want) {
		ssize_t n = recv(fd, buf + len, want - len, 0);

		if (n <= 0)
			return 0;
		len += (size_t)n;
		buf[len] = '\0';
		if (end)
			continue;
		end = strstr(buf, "\r\n\r\n");
		if (end)
			want = (size_t)(end - buf) + 4 + body_length(buf);
		assert(want < max);
	}
	return len;
}

void fake_peer_write(int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n > 0) {
		ssize_t done = send(fd, at, n, MSG_NOSIGNAL);

		if (done <= 0)
			return;
		at += done;
		n -= (size_t)done;
	}
}

void fake_peer_puts(int fd, const char *s)
{
	fake_peer_write(fd, s, strlen(s));
}

int fake_peer_free_port(void)
{
	int port, fd = listen_any(&port);

	close(fd);
	return port;
}
