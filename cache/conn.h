/* SPDX-License-Identifier: MIT */
/* A connection to a server, with or without TLS, on which nothing waits longer than it may. */
#ifndef AQE_CACHE_CONN_H
#define AQE_CACHE_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/core/buf.h"
#include "shim/core/err.h"
#include "shim/core/tls.h"

struct cache_conn_opts {
	const char *socket; /* path of a unix socket; NULL = host and port */
	const char *host;
	uint16_t port;
	const struct aqe_tls_opts *tls; /* NULL = in clear */
};

struct cache_conn;
/* Milliseconds of a clock that only runs forward; deadlines below are in it. */
int64_t cache_conn_clock(void);
/* Connects, and completes the TLS handshake. AQE_E_TIMEOUT, AQE_E_SYS, AQE_E_UNTRUSTED (TLS),
 * AQE_E_MALFORMED. Looking up a host name is the system resolver's, with its own time-outs. */
AQE_MUST_CHECK int cache_conn_open(const struct cache_conn_opts *o, int64_t deadline_ms,
				   struct cache_conn **ret, struct aqe_err *e);
void cache_conn_close(struct cache_conn *c);
/* True when nothing has arrived and the other side has not closed: fit for a new question. */
bool cache_conn_quiet(const struct cache_conn *c);
/* Adds bytes to what is to be sent. */
AQE_MUST_CHECK int cache_conn_send(struct cache_conn *c, const void *p, size_t n,
				   struct aqe_err *e);
/* Sends what is to be sent, until bytes arrive; they are appended to `b`. AQE_E_SYS at the end of
 * the connection. After any failure only close is of use. */
AQE_MUST_CHECK int cache_conn_exchange(struct cache_conn *c, int64_t deadline_ms, struct aqe_buf *b,
				       struct aqe_err *e);

#endif
