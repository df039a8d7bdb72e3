/* SPDX-License-Identifier: MIT */
#include "tests/fakes/real_redis.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SERVER   "/usr/bin/redis-server"
#define CLIENT   "/usr/bin/redis-cli"
#define ARGS_MAX 40

static int loopback(int port, bool listens)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	rc = listens ? bind(fd, (struct sockaddr *)&a, sizeof(a))
		     : connect(fd, (struct sockaddr *)&a, sizeof(a));
	if (rc != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static int free_port(void)
{
	struct sockaddr_in a;
	socklen_t n = sizeof(a);
	int fd = loopback(0, true);

	assert(fd >= 0 && getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	close(fd);
	return ntohs(a.sin_port);
}

static void be_quiet(void)
{
	int null = open("/dev/null", O_RDWR);

	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
}

/* In the forked child: nothing is allocated, another thread of the test may hold the allocator's
 * lock. */
static void run(const char *program, const char *const *args)
{
	char *list[ARGS_MAX + 1] = { NULL };

	memcpy(list, args, sizeof(list) - sizeof(list[0])); /* execv's type, which does not write */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	be_quiet();
	execv(program, list);
	_exit(127);
}

static void serve(const struct real_redis *r)
{
	const char *args[ARGS_MAX + 1] = {
		SERVER,         "--bind", "127.0.0.1", "--save", "",
		"--appendonly", "no",     "--dir",     "/",      "--port"
	};
	int n = 10;
	char port[8];

	snprintf(port, sizeof(port), "%d", r->port);
	args[n++] = r->tls ? "0" : port;
	if (r->tls) {
		args[n++] = "--tls-port";
		args[n++] = port;
	}
	for (int i = 0; r->more && r->more[i]; i++)
		args[n++] = r->more[i];
	run(SERVER, args);
}

bool real_redis_start(struct real_redis *r)
{
	struct timespec some = { 0, 5000000 };

	if (access(SERVER, X_OK) != 0)
		return false;
	if (r->port == 0)
		r->port = free_port();
	r->pid = fork();
	assert(r->pid >= 0);
	if (r->pid == 0)
		serve(r);
	for (int i = 0; i < 4000; i++) {
		int fd = loopback(r->port, false);

		if (fd >= 0) {
			close(fd);
			return true;
		}
		assert(waitpid(r->pid, NULL, WNOHANG) == 0);
		nanosleep(&some, NULL);
	}
	assert(!"redis-server does not listen");
	return false;
}

void real_redis_stop(struct real_redis *r)
{
	if (r->pid <= 0)
		return;
	kill(r->pid, SIGKILL);
	waitpid(r->pid, NULL, 0);
	r->pid = 0;
}

void real_redis_freeze(const struct real_redis *r)
{
	int status;

	kill(r->pid, SIGSTOP);
	assert(waitpid(r->pid, &status, WUNTRACED) == r->pid && WIFSTOPPED(status));
}

void real_redis_thaw(const struct real_redis *r)
{
	kill(r->pid, SIGCONT);
}

bool real_redis_cli(const struct real_redis *r, const char *const *words)
{
	const char *args[ARGS_MAX + 1] = { CLIENT, "-p" };
	char port[8];
	int status, n = 3;
	pid_t pid;

	snprintf(port, sizeof(port), "%d", r->port);
	args[2] = port;
	for (int i = 0; words[i]; i++)
		args[n++] = words[i];
	pid = fork();
	assert(pid >= 0);
	if (pid == 0)
		run(CLIENT, args);
	assert(waitpid(pid, &status, 0) == pid);
	return status == 0;
}
