/* SPDX-License-Identifier: MIT */
/* Listening sockets inside a container's network namespace. A throw-away child joins the namespace,
 * opens them and hands them over: in a user namespace there is no way back from setns(2). */
#ifndef AQE_EGRESS_NETNS_H
#define AQE_EGRESS_NETNS_H

#include <stdint.h>

#include "netpolicy/address.h"
#include "netpolicy/egress/service.h"

struct netpol_listen_spec {
	enum netpol_front front;
	struct netpol_addr addr;
	uint16_t port;
};
/* Opens all of `specs` in the namespace of `netns_fd` (-1: where we are), brings `lo` up there, and
 * fills ret[]. All or none. */
AQE_MUST_CHECK int netpol_netns_listen(int netns_fd, const struct netpol_listen_spec *specs,
				       size_t n, struct netpol_listen_fd *ret, struct aqe_err *e);
/* The network namespace of a process, by its pidfd and pid; the process is still alive when this
 * returns 0, so the pid was its own. */
AQE_MUST_CHECK int netpol_netns_open(int pidfd, pid_t pid, int *ret_fd, struct aqe_err *e);

#endif
