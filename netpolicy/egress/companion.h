/* SPDX-License-Identifier: MIT */
/* The keeper's side of a companion: a further process of the service, `aqe` with its libraries,
 * started when the policy wants it, started again a few times, and ended with the keeper. It has a
 * user of its own and no network at all; connections come through worker and dialer. */
#ifndef AQE_EGRESS_COMPANION_H
#define AQE_EGRESS_COMPANION_H

#include "netpolicy/egress/loop.h"
#include "netpolicy/egress/secrets.h"
#include "netpolicy/egress/ward.h"
#include "netpolicy/egress/wire.h"
#include "netpolicy/policy.h"

enum {
	NETPOL_COMPANION_FD = 3,         /* its channel to the keeper, in the new program */
	NETPOL_COMPANION_LISTEN = 4,     /* its listening socket, if it has one */
	NETPOL_COMPANION_LOOK_MS = 2000, /* how often files are looked at for a change */
};

struct netpol_companion_opts {
	enum netpol_companion_role role;
	const char *program;    /* absolute path of `aqe` */
	const char *agent_type; /* borrowed, like the others */
	uid_t id;               /* user and group it becomes; 0: stays who we are */
	int listen_fd;          /* handed over; -1: none. The caller's */
	struct netpol_loop *loop;
	struct netpol_supervise supervise; /* its own */
	/* What it is given instead of the gateways' secrets, called in a child (secrets.h); it is
	 * wanted then. NULL: the role's own. */
	netpol_secrets_fn *content;
	void *content_self;
	/* What happened: "gateway_started", "gateway_ended", ...; and whether it is good. */
	void (*event)(void *self, const char *reason, bool good);
	/* It is ready, once a start: give it a channel to the worker. */
	void (*ready)(void *self);
	void *self;
};

struct netpol_companion;
AQE_MUST_CHECK int netpol_companion_new(const struct netpol_companion_opts *o,
					struct netpol_companion **ret, struct aqe_err *e);
/* Ends it. NULL is accepted. */
void netpol_companion_free(struct netpol_companion *c);
/* The policy in force: starts it when it is wanted now, hands over what changed. */
AQE_MUST_CHECK int netpol_companion_policy(struct netpol_companion *c, struct netpol_policy *p,
					   struct aqe_err *e);
/* A channel between it and the worker at the end of `worker_chan`, in place of the one before. Does
 * nothing while one of them is not there. */
void netpol_companion_link(struct netpol_companion *c, int worker_chan);
/* True when `pid` was it; it is started again, or not. NULL is accepted. */
bool netpol_companion_reaped(struct netpol_companion *c, pid_t pid);
/* True when it is not wanted, or serves. NULL is accepted. */
bool netpol_companion_serves(const struct netpol_companion *c);

/* ---- all of them: each call is one for each that was made ---- */

struct netpol_companion_each {
	uid_t id;                          /* 0: as we are */
	int listen_fd;                     /* -1: none */
	struct netpol_supervise supervise; /* its own */
	netpol_secrets_fn *content;        /* or NULL */
	void *content_self;
};
/* Zeroed: none. */
struct netpol_companions {
	struct netpol_companion *one[NETPOL_COMPANION_COUNT];
};
/* `common` says what is not in `each`; its program NULL makes none. */
AQE_MUST_CHECK int netpol_companions_make(struct netpol_companions *s,
					  const struct netpol_companion_opts *common,
					  const struct netpol_companion_each *each,
					  struct aqe_err *e);
AQE_MUST_CHECK int netpol_companions_policy(struct netpol_companions *s, struct netpol_policy *p,
					    struct aqe_err *e);
void netpol_companions_link(struct netpol_companions *s, int worker_chan);
void netpol_companions_reaped(struct netpol_companions *s, pid_t pid);
bool netpol_companions_serve(const struct netpol_companions *s);
void netpol_companions_free(struct netpol_companions *s);

#endif
