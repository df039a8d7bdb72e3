/* SPDX-License-Identifier: MIT */
/* The process that asks the shared limiter's Redis server. It knows the server's password and reads
 * its answers, so it is neither the worker, which reads what agents send, nor the keeper. Which key
 * and which limit is the keeper's word: a worker can only ask whether one more may pass.
 *
 * One question at a time. Nothing waits longer than timeout_ms: without an answer the question is
 * answered with "away", the connection is given up and tried again after a while. */
#ifndef AQE_EGRESS_STORE_H
#define AQE_EGRESS_STORE_H

#include <signal.h>

#include "netpolicy/cluster.h"
#include "netpolicy/egress/loop.h"
#include "netpolicy/egress/wire.h"
#include "netpolicy/policy.h"
#include "shim/core/tls.h"

enum {
	NETPOL_STORE_CONNECT_MS = 2000, /* to look up, connect, greet */
	NETPOL_STORE_FIRST_MS = 100,    /* before the next try, doubling */
	NETPOL_STORE_LAST_MS = 5000,
};

typedef void netpol_say_fn(void *self, const char *line);

struct netpol_store_opts {
	int worker, keeper;  /* channels; both owned from here on */
	const char *address; /* "host:port" or "/path" */
	/* TLS is made like this one, whose files were read already; NULL: in clear */
	const struct aqe_tls *tls;
	const char *server_name; /* that its certificate must have; NULL: the address's host */
	struct netpol_cluster_opts cluster;
	uint32_t timeout_ms;
	netpol_say_fn *say; /* when it is lost and when it is back */
	void *say_self;
};
/* Runs until one of the channels ends. */
AQE_MUST_CHECK int netpol_store_run(const struct netpol_store_opts *o, struct aqe_err *e);

/* ---- store_keep.c: the keeper's side ---- */

struct netpol_store_keep_opts {
	struct netpol_loop *loop;
	const char *agent_type, *agent_id; /* agent_id: NULL when it has none */
	uid_t id;                          /* user and group it becomes; 0: as we are */
	const sigset_t *signals;           /* its mask */
	netpol_say_fn *say;
	void *say_self;
};
struct netpol_store_keep;
AQE_MUST_CHECK int netpol_store_keep_new(const struct netpol_store_keep_opts *o,
					 struct netpol_store_keep **ret, struct aqe_err *e);
/* Ends the process. NULL is accepted, here and below. */
void netpol_store_keep_free(struct netpol_store_keep *s);
/* A worker that is new, or a policy that may be: starts the process that is wanted, and sends the
 * worker at the end of `worker` its channel. Nothing happens when all is as it was. */
void netpol_store_keep_link(struct netpol_store_keep *s, const struct netpol_policy *p, int worker,
			    bool worker_is_new);
/* That worker is gone. */
void netpol_store_keep_unlink(struct netpol_store_keep *s);
/* Asks whether it is alive; the second silence ends it. */
void netpol_store_keep_ping(struct netpol_store_keep *s);
/* True when `pid` was it; it is started again after a while. */
bool netpol_store_keep_reaped(struct netpol_store_keep *s, pid_t pid);

#endif
