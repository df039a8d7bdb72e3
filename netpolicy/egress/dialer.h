/* SPDX-License-Identifier: MIT */
/* The process that opens connections. The worker, which reads what agents send, has no socket(2)
 * at all: it names a host and a port here. The dialer judges both again by the same policy, looks
 * the name up, vets each address, connects to that very address, and hands the socket over. */
#ifndef AQE_EGRESS_DIALER_H
#define AQE_EGRESS_DIALER_H

#include "netpolicy/egress/wire.h"
#include "netpolicy/policy.h"

enum {
	NETPOL_DIALS_MAX = 128,       /* at once */
	NETPOL_DIAL_TRIES_MAX = 4,    /* addresses of one dial being tried at once */
	NETPOL_DIAL_STAGGER_MS = 250, /* before the next address is tried as well (RFC 8305) */
	NETPOL_OWN_ADDRS_MAX = 256,
	NETPOL_OWN_REFRESH_MS = 5000,
};

struct netpol_dialer_opts {
	int worker, keeper;           /* channels; both owned from here on */
	struct netpol_policy *policy; /* a reference, owned from here on */
	const char *agent_type;
	const char *proxy_auth; /* for the upstream proxy, or ""; borrowed */
};
/* Runs until one of the channels ends. */
AQE_MUST_CHECK int netpol_dialer_run(const struct netpol_dialer_opts *o, struct aqe_err *e);

#endif
