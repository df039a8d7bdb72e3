/* SPDX-License-Identifier: MIT */
/* Inside the worker: the unprivileged process that reads what agents and origins send. One loop,
 * one policy snapshot, connections in a list. Shared by the files of the worker only. */
#ifndef AQE_EGRESS_WORKER_H
#define AQE_EGRESS_WORKER_H

#include "netpolicy/decide.h"
#include "netpolicy/egress/ledger.h"
#include "netpolicy/egress/loop.h"
#include "netpolicy/egress/metrics.h"
#include "netpolicy/egress/rates.h"
#include "netpolicy/egress/relay.h"
#include "netpolicy/egress/service.h"
#include "netpolicy/egress/spend.h"
#include "netpolicy/egress/wire.h"
#include "netpolicy/http1.h"
#include "netpolicy/http1_chunk.h"
#include "netpolicy/tls_hello.h"
#include "shim/core/buf.h"

struct netpol_conn;
struct netpol_worker;

/* ---- dialling, seen from the worker ---- */

/* One request to the dialer, embedded in its connection. */
struct netpol_asking {
	struct netpol_asking *prev, *next; /* NULL: nothing was asked */
	uint64_t id;
	void (*fn)(struct netpol_asking *a, const struct netpol_msg_dialed *m, int fd);
};

/* ---- the worker ---- */

struct netpol_listening {
	struct netpol_watch watch;
	struct netpol_task again;
	enum netpol_front front;
	struct netpol_worker *w;
};

/* The channel to a companion. */
struct netpol_link {
	struct netpol_watch watch; /* fd -1: none now */
	struct netpol_worker *w;
};

/* Where to. */
struct netpol_dial_to {
	enum netpol_proto proto;
	const struct netpol_host *host;
	uint16_t port;
	const char *gateway; /* whose upstream it is, or NULL */
};

struct netpol_worker {
	struct netpol_loop *loop;
	const struct netpol_worker_opts *opts;
	struct netpol_policy *policy;
	const struct netpol_type *type;
	struct netpol_limiter *limiter, *denials;
	size_t shared_len;             /* bytes of the limiters' states when last shared */
	int64_t dns_next_ns;           /* GCRA of the stub's answers */
	struct netpol_spender spender; /* in use when the policy has a cluster */
	struct netpol_ledger ledger;
	struct netpol_task send; /* what is in it */
	struct netpol_repeats repeats;
	struct netpol_watch keeper, dialer;
	struct netpol_asking asking; /* head of a ring */
	struct netpol_link links[NETPOL_COMPANION_COUNT];
	struct netpol_asking wraps; /* head of a ring: asked of the companion */
	struct netpol_gates gates;
	struct netpol_listening from_companion; /* has no socket */
	struct netpol_listening listening[NETPOL_LISTEN_MAX];
	struct netpol_timer minute, share;
	struct netpol_metrics metrics;
	struct netpol_conn *conns; /* list */
	unsigned n_conns, n_tunnels;
	uint64_t last_id, last_dial;
	struct netpol_when when; /* the boot; its times are filled in when used */
	bool stopping;
	char scratch[NETPOL_RELAY_SCRATCH];
};

/* Starts a dial; its `fn` is called once, later. False: the dialer takes no more. */
bool netpol_worker_dial(struct netpol_worker *w, struct netpol_asking *a,
			const struct netpol_dial_to *to);
/* Nothing more will be heard of it. */
void netpol_worker_forget(struct netpol_worker *w, struct netpol_asking *a);
/* Decides; when it spends, keeps the limiter's state where the keeper can see it. */
void netpol_worker_decide(struct netpol_worker *w, const struct netpol_request *rq,
			  enum netpol_spend spend, struct netpol_answer *ret);
/* Something was admitted: `which` as in rates.h. */
void netpol_worker_spent(struct netpol_worker *w, unsigned which);
/* True when this denial gets a record of its own; else it was counted. */
bool netpol_worker_may_store(struct netpol_worker *w, const struct netpol_record *r);
/* Datagrams of the DNS stub. */
void netpol_worker_dns(struct netpol_listening *l);
/* One DNS message: length of the answer, 0 for none. */
size_t netpol_worker_dns_answer(struct netpol_worker *w, const uint8_t *p, size_t n,
				uint8_t ret[512]);

#endif
