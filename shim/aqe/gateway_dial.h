/* SPDX-License-Identifier: MIT */
/* A companion's connections: it has no network, so it asks the worker, as a client of an HTTP proxy
 * does. The agent's policy decides (domains, ports, rate), the dialer looks up, judges the address
 * and connects, and both are in the audit, as listener "cache". */
#ifndef AQE_AQE_GATEWAY_DIAL_H
#define AQE_AQE_GATEWAY_DIAL_H

#include <stdint.h>

#include "shim/core/err.h"

/* `chan` is the channel to the worker (NETPOL_MSG_LINK). `host` is a name or an address ([] around
 * IPv6). Waits at most `timeout_ms`. On success *ret_fd is the caller's: a non-blocking, connected
 * stream socket (AF_UNIX), on which the far side's bytes pass; on port 443 it must begin with a TLS
 * hello for that host. AQE_E_REFUSED: the policy says no, `e` names the reason; AQE_E_TIMEOUT;
 * AQE_E_SYS: no connection, or no worker. May be called from several threads. */
AQE_MUST_CHECK int shim_gateway_dial(int chan, const char *host, uint16_t port, int timeout_ms,
				     int *ret_fd, struct aqe_err *e);

#endif
