/* SPDX-License-Identifier: MIT */
/* The egress service from outside: what a keeper, a worker and a dialer are started with. */
#ifndef AQE_EGRESS_SERVICE_H
#define AQE_EGRESS_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "netpolicy/egress/record.h"
#include "netpolicy/policy.h"
#include "shim/core/err.h"

/* What is spoken on a listening socket. */
enum netpol_front {
	NETPOL_FRONT_HTTP,    /* forward proxy: 127.0.0.1:3128 */
	NETPOL_FRONT_SOCKS,   /* 127.0.0.1:1080 */
	NETPOL_FRONT_DNS,     /* stub, UDP: 127.0.0.1:53 */
	NETPOL_FRONT_DNS_TCP, /* the same over TCP */
	NETPOL_FRONT_TLS,     /* transparent by SNI: 127.66.0.1:443 */
	NETPOL_FRONT_HOST,    /* transparent by Host: 127.66.0.1:80 */
	NETPOL_FRONT_METRICS, /* unix socket outside */
	NETPOL_FRONT_GATEWAY, /* 127.0.0.1:3129: routes to HTTPS upstreams */
	NETPOL_FRONT_CACHE,   /* no socket: proxy requests of the companion */
	NETPOL_FRONT_COUNT
};
const char *netpol_front_name(enum netpol_front f);

enum {
	NETPOL_PORT_HTTP = 3128,
	NETPOL_PORT_SOCKS = 1080,
	NETPOL_BACKLOG = 128,
	NETPOL_PORT_GATEWAY = 3129,
	NETPOL_LISTEN_MAX = 10,
	NETPOL_DNS_PER_SECOND = 20,
};
/* Where allowed names live inside the container. */
#define NETPOL_STUB_ADDR "127.66.0.1"

struct netpol_listen_fd {
	int fd;
	enum netpol_front front;
};

/* The limiters' states in memory that keeper and worker share, so that no crash of the worker gives
 * an agent its tokens back: saved states of the type's and of each gateway's (rates.h), and the
 * admissions since. Two places, written in turn, so that one is always whole. */
#define NETPOL_SHARED_STATE (2 * 8U * NETPOL_RATE_MAX + 128 * 1024)
#define NETPOL_SHARED_LOG   65536
struct netpol_shared_place {
	uint32_t len;   /* of the states */
	uint32_t n_log; /* admissions behind them */
	int64_t log_ns[NETPOL_SHARED_LOG];
	uint16_t log_of[NETPOL_SHARED_LOG]; /* by the place of its state */
	uint8_t state[NETPOL_SHARED_STATE];
};
struct netpol_shared {
	uint32_t turn; /* place in use, + 1; 0: none yet */
	struct netpol_shared_place place[2];
};
/* The place in use, its numbers checked; NULL when there is none. */
const struct netpol_shared_place *netpol_shared_get(const struct netpol_shared *s,
						    uint32_t *ret_len, uint32_t *ret_n_log);

struct netpol_worker_opts {
	struct netpol_listen_fd listen[NETPOL_LISTEN_MAX];
	size_t n_listen;
	int keeper, dialer; /* channels */
	struct netpol_policy *policy;
	const char *agent_type;
	struct netpol_shared *shared; /* or NULL */
	struct netpol_when when;      /* the boot: the worker cannot read it */
	uint64_t first_id;            /* request ids start behind this one */
	uint32_t restarts;            /* there were before it, for the metrics */
};
/* Runs until the keeper's channel ends or it is told to stop. Everything in `o` is the worker's. */
AQE_MUST_CHECK int netpol_worker_run(const struct netpol_worker_opts *o, struct aqe_err *e);

#endif
