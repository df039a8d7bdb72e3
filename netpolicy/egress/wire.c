/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/wire.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for the records of a loop round: a full channel makes the worker refuse (503). */
#define BUFFER_BYTES (1 << 20)

static const size_t SIZES[NETPOL_MSG_TYPES] = {
	[NETPOL_MSG_READY] = sizeof(struct netpol_msg_head),
	[NETPOL_MSG_RECORDS] = 0, /* by what is in it */
	[NETPOL_MSG_STORED] = sizeof(struct netpol_msg_stored),
	[NETPOL_MSG_POLICY] = sizeof(struct netpol_msg_policy),
	[NETPOL_MSG_STOP] = sizeof(struct netpol_msg_head),
	[NETPOL_MSG_DIAL] = sizeof(struct netpol_msg_dial),
	[NETPOL_MSG_CANCEL] = sizeof(struct netpol_msg_cancel),
	[NETPOL_MSG_DIALED] = sizeof(struct netpol_msg_dialed),
	[NETPOL_MSG_PING] = sizeof(struct netpol_msg_ping),
	[NETPOL_MSG_PONG] = sizeof(struct netpol_msg_ping),
	[NETPOL_MSG_LINK] = sizeof(struct netpol_msg_link),
	[NETPOL_MSG_SECRETS] = sizeof(struct netpol_msg_secrets),
	[NETPOL_MSG_WRAP] = sizeof(struct netpol_msg_wrap),
	[NETPOL_MSG_WRAPPED] = sizeof(struct netpol_msg_wrapped),
	[NETPOL_MSG_CLIENT] = sizeof(struct netpol_msg_head),
	[NETPOL_MSG_STORE] = sizeof(struct netpol_msg_head),
	[NETPOL_MSG_SPEND] = sizeof(struct netpol_msg_spend),
	[NETPOL_MSG_SPENT] = sizeof(struct netpol_msg_spent),
};

int netpol_wire_pair(int ret[2], struct aqe_err *e)
{
	int bytes = BUFFER_BYTES;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "socketpair");
	for (int i = 0; i < 2; i++) {
		/* A smaller buffer is full earlier, which is safe. */
		(void)setsockopt(ret[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	}
	return 0;
}

/* Space for one descriptor, aligned as cmsghdr wants it. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

enum netpol_wire_sent netpol_wire_send(int chan, const void *msg, size_t n, int fd)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)msg, .iov_len = n };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control;
	ssize_t sent;

	if (fd >= 0) {
		struct cmsghdr *c = &control.align;

		memset(&control, 0, sizeof(control));
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	do
		sent = sendmsg(chan, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	if (sent == (ssize_t)n)
		return NETPOL_WIRE_SENT;
	return sent < 0 && (errno == EAGAIN || errno == ENOBUFS) ? NETPOL_WIRE_FULL
								 : NETPOL_WIRE_GONE;
}

void netpol_wire_pong(int chan, const struct netpol_msg_ping *ping)
{
	struct netpol_msg_ping m;

	memset(&m, 0, sizeof(m)); /* no bytes of ours between the members */
	m.type = NETPOL_MSG_PONG;
	m.serial = ping->serial;
	(void)netpol_wire_send(chan, &m, sizeof(m), -1);
}

/* The descriptor of a received message. More than one cannot be: there is room for one only, and
 * the kernel closes what does not fit. */
static int taken_fd(struct msghdr *m)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	int fd = -1;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}

size_t netpol_wire_records_size(const struct netpol_msg_records *m)
{
	return offsetof(struct netpol_msg_records, packed) + m->len;
}

static bool size_ok(const union netpol_msg *m, size_t n)
{
	if (n >= offsetof(struct netpol_msg_records, packed) && m->head.type == NETPOL_MSG_RECORDS)
		return n == netpol_wire_records_size(&m->records);
	return n >= sizeof(m->head) && m->head.type >= NETPOL_MSG_READY &&
	       m->head.type < NETPOL_MSG_TYPES && n == SIZES[m->head.type];
}

int netpol_wire_recv(int chan, union netpol_msg *ret, int *ret_fd)
{
	struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
	union control control;
	/* CMSG_LEN, not CMSG_SPACE: the padding would have room for a second descriptor. */
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.bytes,
			    .msg_controllen = CMSG_LEN(sizeof(int)) };
	ssize_t n;

	*ret_fd = -1;
	do
		n = recvmsg(chan, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -1;
	*ret_fd = taken_fd(&m);
	if (n > 0 && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && size_ok(ret, (size_t)n))
		return 1;
	if (*ret_fd >= 0)
		(void)close(*ret_fd); /* of a message that is refused */
	*ret_fd = -1;
	return -1;
}

int netpol_wire_recv_bare(int chan, union netpol_msg *ret)
{
	int fd, got = netpol_wire_recv(chan, ret, &fd);

	if (fd < 0)
		return got;
	(void)close(fd); /* of a message that is refused */
	return -1;
}
