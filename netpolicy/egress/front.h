/* SPDX-License-Identifier: MIT */
/* What a front end of the worker brings; the common part is conn.h. */
#ifndef AQE_EGRESS_FRONT_H
#define AQE_EGRESS_FRONT_H

#include "netpolicy/decide.h"
#include "netpolicy/egress/service.h"

struct netpol_conn;

/* Why a request is not served. */
struct netpol_refusal {
	unsigned status; /* HTTP; other front ends map the reason */
	const char *reason;
	uint64_t retry_ms;
};

/* What a front end does. */
struct netpol_front_ops {
	enum netpol_front front;
	enum netpol_proto proto;
	/* Client bytes may be there, in c->in or on the socket. */
	void (*input)(struct netpol_conn *c);
	/* The upstream is connected (or was still): c->upstream. */
	void (*opened)(struct netpol_conn *c);
	/* Writes the answer into c->out; the connection ends after it. NULL: just ends. */
	void (*refused)(struct netpol_conn *c, const struct netpol_refusal *r);
	/* While NETPOL_CONN_EXCHANGE: something may move. NULL for front ends without. */
	void (*exchange)(struct netpol_conn *c, uint32_t client, uint32_t upstream);
};
extern const struct netpol_front_ops NETPOL_FRONT_OPS_HTTP, NETPOL_FRONT_OPS_HOST,
	NETPOL_FRONT_OPS_GATEWAY, NETPOL_FRONT_OPS_CACHE, NETPOL_FRONT_OPS_TLS,
	NETPOL_FRONT_OPS_SOCKS, NETPOL_FRONT_OPS_DNS_TCP, NETPOL_FRONT_OPS_METRICS;

#endif
