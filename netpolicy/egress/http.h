/* SPDX-License-Identifier: MIT */
/* The HTTP front ends: forward proxy (CONNECT, absolute-form) and transparent by Host. One request
 * at a time a connection; each is decided on its own. */
#ifndef AQE_EGRESS_HTTP_H
#define AQE_EGRESS_HTTP_H

#include "netpolicy/egress/body.h"
#include "netpolicy/egress/conn.h"

#define NETPOL_HTTP_INTERIM_MAX 8 /* 1xx responses before the final one */

struct netpol_http {
	struct netpol_h1_head head; /* of the request, then of the response */
	struct netpol_h1_request req;
	struct netpol_h1_response resp;
	struct netpol_body up, down;
	struct aqe_buf up_in;     /* upstream bytes that are not used yet */
	struct netpol_out up_out; /* for the upstream */
	struct aqe_buf again;     /* the request, while an old upstream connection may prove dead */
	struct netpol_host up_host; /* where the open upstream leads */
	uint16_t up_port;
	char up_gate[NETPOL_GATEWAY_NAME_MAX + 1]; /* through which gateway, or "" */
	bool known;                                /* req is of the present request */
	bool served;                               /* a request before this one was */
	bool timing;                               /* the present request's first byte was seen */
	bool reused;                               /* this exchange runs on a kept upstream */
	bool up_ready;                             /* upstream may have bytes */
	bool up_ending;                            /* and its end */
	bool up_ended;                             /* it sent its end */
	bool responded;                            /* the final response's head was passed on */
	bool close; /* the client's connection ends with this exchange */
	unsigned interims;
};
/* NULL without memory; free accepts NULL. */
struct netpol_http *netpol_http_new(void);
void netpol_http_free(struct netpol_http *h);
/* NULL is accepted: false. */
bool netpol_http_served(const struct netpol_http *h);
/* The present request's decision is stored: go on. */
void netpol_http_admitted(struct netpol_conn *c);
/* The exchange's deadline passed. */
void netpol_http_late(struct netpol_conn *c);

/* http_exchange.c: from here on bytes pass. */
void netpol_http_begin(struct netpol_conn *c);
void netpol_http_exchange(struct netpol_conn *c, uint32_t client, uint32_t upstream);
/* Makes ready for the next request of the same connection. */
void netpol_http_next(struct netpol_conn *c);

#endif
