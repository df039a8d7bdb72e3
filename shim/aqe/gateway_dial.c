/* SPDX-License-Identifier: MIT */
#include "shim/aqe/gateway_dial.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netpolicy/egress/loop.h"
#include "netpolicy/egress/wire.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define HEAD_MAX 4096
#define US_MS    1000

static int wait_for(int fd, int64_t deadline_us, struct aqe_err *e)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int64_t left = (deadline_us - netpol_mono_us()) / US_MS;
	int n = left > 0 ? poll(&p, 1, (int)left) : 0;

	if (n == 0)
		return aqe_err_set(e, AQE_E_TIMEOUT, 0, "the egress service does not answer");
	return n > 0 || errno == EINTR ? 0 : aqe_err_set(e, AQE_E_SYS, errno, "poll");
}

/* A byte at a time: what follows the head is the tunnel's. */
static int read_head(int fd, int64_t deadline_us, char head[HEAD_MAX + 1], struct aqe_err *e)
{
	size_t at = 0;

	while (at < HEAD_MAX) {
		ssize_t n = recv(fd, head + at, 1, MSG_DONTWAIT);
		int rc = 0;

		if (n == 0)
			return aqe_err_set(e, AQE_E_SYS, ECONNRESET, "the egress service");
		if (n < 0 && errno == EAGAIN)
			rc = wait_for(fd, deadline_us, e);
		else if (n < 0 && errno != EINTR)
			rc = aqe_err_set(e, AQE_E_SYS, errno, "the egress service");
		if (rc < 0)
			return rc;
		at += n > 0;
		if (at >= 4 && memcmp(head + at - 4, "\r\n\r\n", 4) == 0) {
			head[at] = '\0';
			return 0;
		}
	}
	return aqe_err_set(e, AQE_E_LIMIT, 0, "the egress service says too much");
}

/* "HTTP/1.1 403 domain_not_allowed": the reason is the phrase. */
static int judge(const char *head, struct aqe_err *e)
{
	const char *status = head + strlen("HTTP/1.1 "), *end = strchr(head, '\r');
	enum aqe_code code = AQE_E_SYS;

	if (!aqe_starts(head, "HTTP/1.1 ") || !end || end - status < 4)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "the egress service's answer");
	if (status[0] == '2')
		return 0;
	if (status[0] == '4')
		code = AQE_E_REFUSED;
	else if (aqe_starts(status, "504"))
		code = AQE_E_TIMEOUT;
	return aqe_err_set(e, code, 0, "%.*s", (int)(end - status - 4), status + 4);
}

int shim_gateway_dial(int chan, const char *host, uint16_t port, int timeout_ms, int *ret_fd,
		      struct aqe_err *e)
{
	struct netpol_msg_head m = { NETPOL_MSG_CLIENT };
	int64_t deadline_us = netpol_mono_us() + (int64_t)timeout_ms * US_MS;
	AQE_AUTO_FD int ours = -1, theirs = -1;
	char head[HEAD_MAX + 1];
	int pair[2], n, rc;

	n = snprintf(head, sizeof(head), "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n\r\n", host,
		     port, host, port);
	if (n < 0 || (size_t)n >= sizeof(head))
		return aqe_err_set(e, AQE_E_USAGE, 0, "the host is too long");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "socketpair");
	ours = pair[0];
	theirs = pair[1];
	if (send(ours, head, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) != n ||
	    netpol_wire_send(chan, &m, sizeof(m), theirs) != NETPOL_WIRE_SENT)
		return aqe_err_set(e, AQE_E_SYS, EPIPE, "the egress service's worker is gone");
	(void)close(AQE_TAKE_FD(theirs)); /* the worker's now; else its end would not show */
	rc = read_head(ours, deadline_us, head, e);
	if (rc == 0)
		rc = judge(head, e);
	if (rc == 0)
		*ret_fd = AQE_TAKE_FD(ours);
	return rc;
}
