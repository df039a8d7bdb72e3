/* SPDX-License-Identifier: MIT */
/* The upstream proxy: what the dialer asks of it, and what its answer means. */
#ifndef AQE_EGRESS_VIA_H
#define AQE_EGRESS_VIA_H

#include "netpolicy/host.h"
#include "shim/core/err.h"

enum {
	NETPOL_VIA_ANSWER_MAX = 4096, /* bytes of the proxy's head */
	NETPOL_VIA_AUTH_MAX = 1024,   /* "user:password" */
};

/* Where the proxy is. */
struct netpol_via {
	bool used;
	struct netpol_host host;
	uint16_t port;
};
/* `text` is the policy's "HOST:PORT", or NULL: none is used. */
void netpol_via_read(const char *text, struct netpol_via *ret);

/* The value of Proxy-Authorization, "Basic ...", for the "user:password" in `path`; read by the
 * rules of netpol_credential_read(). Into `ret`. */
#define NETPOL_VIA_VALUE (8 + 4 * ((NETPOL_VIA_AUTH_MAX + 2) / 3))
AQE_MUST_CHECK int netpol_via_auth(const char *path, char ret[NETPOL_VIA_VALUE], struct aqe_err *e);

/* Sends "CONNECT HOST:PORT" over a new connection, with `auth` unless it is NULL or "". False: it
 * broke. */
bool netpol_via_ask(int fd, const struct netpol_host *host, uint16_t port, const char *auth);
enum netpol_via_step { NETPOL_VIA_MORE, NETPOL_VIA_OPEN, NETPOL_VIA_REFUSED };
/* Looks at what has come. OPEN: the answer, and nothing behind it, was taken from the socket. */
enum netpol_via_step netpol_via_answer(int fd);

#endif
