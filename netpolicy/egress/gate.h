/* SPDX-License-Identifier: MIT */
/* The worker's side of the gateways: routes with their limiters, and the channel to the companion,
 * the process that has the credentials and speaks TLS. The worker reads what the agent sends,
 * decides, records, has the dialer connect, and gives that connection to the companion; what it
 * gets back carries the same HTTP in clear. */
#ifndef AQE_EGRESS_GATE_H
#define AQE_EGRESS_GATE_H

#include "netpolicy/egress/conn.h"

/* Routes of the policy in force; those that were there keep what they have spent. */
AQE_MUST_CHECK int netpol_gates_load(struct netpol_worker *w, struct aqe_err *e);
void netpol_gates_done(struct netpol_worker *w);
/* A new channel to the companion; owned from here on. */
void netpol_gates_link(struct netpol_worker *w, uint32_t role, int fd);
/* The policy changed: c->gate is of the new one, or the connection ends. */
void netpol_gate_recheck(struct netpol_conn *c);

/* Gives the connected `fd` to the companion (owned from here on); then c goes on with what comes
 * back, or fails. */
void netpol_gate_wrap(struct netpol_conn *c, int fd);
/* Judges the request that was read, records it, and goes on with it. */
void netpol_gate_request(struct netpol_conn *c);
/* Longest silence while a request or a response of `c` passes; any front end. */
int64_t netpol_conn_silence_ms(const struct netpol_conn *c, bool responded);

#endif
