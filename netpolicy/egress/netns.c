/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "netpolicy/egress/wire.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define CHILD_MS 5000

static bool is_udp(enum netpol_front f)
{
	return f == NETPOL_FRONT_DNS;
}

/* One socket; -1 with errno. Freebind is not used: an address that is not there is an error. */
static int open_one(const struct netpol_listen_spec *s)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(s->port) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(s->port) };
	const struct sockaddr *sa = s->addr.v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
	socklen_t n = s->addr.v6 ? sizeof(v6) : sizeof(v4);
	int type = is_udp(s->front) ? SOCK_DGRAM : SOCK_STREAM, on = 1, fd;

	memcpy(&v6.sin6_addr, s->addr.b, 16);
	memcpy(&v4.sin_addr, s->addr.b, 4);
	fd = socket(sa->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (!is_udp(s->front))
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, sa, n) == 0 && (is_udp(s->front) || listen(fd, NETPOL_BACKLOG) == 0))
		return fd;
	on = errno;
	(void)close(fd);
	errno = on;
	return -1;
}

/* Engines leave `lo` up, a bare namespace does not. */
static int raise_lo(void)
{
	struct ifreq r = { .ifr_name = "lo" };
	AQE_AUTO_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r) < 0)
		return -1;
	if (r.ifr_flags & IFF_UP)
		return 0;
	r.ifr_flags = (short)(r.ifr_flags | IFF_UP);
	return ioctl(fd, SIOCSIFFLAGS, &r);
}

/* glibc takes a host whose only IPv4 address is 127.0.0.1 for one without IPv4 (AI_ADDRCONFIG), and
 * then finds no name at all. Our own loopback address, given to `lo` by name, makes it look. */
static void add_alias(const struct netpol_addr *addr)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	struct ifreq r = { .ifr_name = "lo:aqe" };
	AQE_AUTO_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(&sa.sin_addr, addr->b, 4);
	memcpy(&r.ifr_addr, &sa, sizeof(sa));
	if (fd >= 0)
		(void)ioctl(fd, SIOCSIFADDR, &r); /* all of 127/8 can be bound without it */
}

static void add_aliases(const struct netpol_listen_spec *specs, size_t n)
{
	static const uint8_t usual[4] = { 127, 0, 0, 1 };

	for (size_t i = 0; i < n; i++) {
		if (!specs[i].addr.v6 && specs[i].addr.b[0] == 127 &&
		    memcmp(specs[i].addr.b, usual, sizeof(usual)) != 0)
			add_alias(&specs[i].addr);
	}
}

/* In the child: 0, or what failed and an errno as exit status 1..n + errno in the message. */
__attribute__((noreturn)) static void child(int netns_fd, const struct netpol_listen_spec *specs,
					    size_t n, int chan)
{
	struct netpol_msg_head ok = { NETPOL_MSG_READY };
	int sys = 0;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (netns_fd >= 0 && (setns(netns_fd, CLONE_NEWNET) < 0 || raise_lo() < 0))
		sys = errno;
	if (netns_fd >= 0 && sys == 0)
		add_aliases(specs, n);
	for (size_t i = 0; sys == 0 && i < n; i++) {
		int fd = open_one(&specs[i]);

		if (fd < 0)
			sys = errno;
		else if (netpol_wire_send(chan, &ok, sizeof(ok), fd) != NETPOL_WIRE_SENT)
			sys = EPIPE;
		/* the child's copy ends with the child */
	}
	_exit(sys & 0xff);
}

static int reap(pid_t pid)
{
	int status = 0;
	pid_t got;

	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	if (got != pid || !WIFEXITED(status))
		return ECHILD;
	return WEXITSTATUS(status);
}

static void close_all(struct netpol_listen_fd *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)close(list[i].fd); /* a socket nobody has connected to yet */
}

static int collect(int chan, const struct netpol_listen_spec *specs, size_t n,
		   struct netpol_listen_fd *ret, size_t *ret_n)
{
	struct pollfd p = { .fd = chan, .events = POLLIN };
	union netpol_msg m;

	while (*ret_n < n) {
		int fd, got = netpol_wire_recv(chan, &m, &fd);

		if (got > 0 && fd >= 0) {
			ret[*ret_n] = (struct netpol_listen_fd){ fd, specs[*ret_n].front };
			(*ret_n)++;
		} else if (got != 0) {
			return -1;
		} else if (poll(&p, 1, CHILD_MS) == 0) {
			return -1;
		}
	}
	return 0;
}

int netpol_netns_listen(int netns_fd, const struct netpol_listen_spec *specs, size_t n,
			struct netpol_listen_fd *ret, struct aqe_err *e)
{
	struct netpol_listen_fd got[NETPOL_LISTEN_MAX];
	size_t n_got = 0;
	int chan[2], sys;
	pid_t pid;

	if (n > NETPOL_LISTEN_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "too many listeners");
	if (netpol_wire_pair(chan, e) < 0)
		return (int)AQE_E_SYS;
	pid = fork();
	if (pid == 0)
		child(netns_fd, specs, n, chan[1]);
	sys = errno;
	(void)close(chan[1]); /* the child's end */
	if (pid < 0) {
		(void)close(chan[0]);
		return aqe_err_set(e, AQE_E_SYS, sys, "fork");
	}
	if (collect(chan[0], specs, n, got, &n_got) < 0)
		(void)kill(pid, SIGKILL); /* it hangs or has ended */
	(void)close(chan[0]);
	sys = reap(pid);
	if (n_got == n && sys == 0) {
		memcpy(ret, got, n * sizeof(*ret));
		return 0;
	}
	close_all(got, n_got);
	return aqe_err_set(e, AQE_E_SYS, sys ? sys : EIO, "listening for '%s' on port %u",
			   netpol_front_name(specs[n_got < n ? n_got : 0].front),
			   specs[n_got < n ? n_got : 0].port);
}

int netpol_netns_open(int pidfd, pid_t pid, int *ret_fd, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return aqe_err_set(e, errno == ENOENT ? AQE_E_ABSENT : AQE_E_SYS, errno,
				   "open '%s'", path);
	if (syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0)
		return aqe_err_set(e, AQE_E_ABSENT, errno, "process %d has ended", (int)pid);
	*ret_fd = AQE_TAKE_FD(fd);
	return 0;
}
