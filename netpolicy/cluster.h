/* SPDX-License-Identifier: MIT */
/* The rate limit that several services share, kept in a Redis server by one Lua script: the same
 * constraints as limiter.h, all or nothing. Here is what is said to the server and what its answers
 * mean; no sockets, no clock.
 *
 * Time is the server's, so that services need not agree on theirs, in microseconds. A server's
 * clock that is set back counts as standing still once; one that is set forward cannot run ahead of
 * what a service saw pass on its own clock (`latest_us`). Needs Redis 5 or later. */
#ifndef AQE_NETPOLICY_CLUSTER_H
#define AQE_NETPOLICY_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netpolicy/limiter.h"
#include "shim/core/buf.h"
#include "shim/core/err.h"

enum {
	NETPOL_CLUSTER_KEY_MAX = 512,
	NETPOL_CLUSTER_REPLY_MAX = 65536, /* bytes of one reply */
};

/* Texts must outlive the object. */
struct netpol_cluster_opts {
	const char *username, *password; /* or NULL */
	unsigned db;
	const char *prefix, *key; /* of the server's keys: PREFIX{KEY}:s and PREFIX{KEY}:a */
	struct netpol_rate rate;
	/* A server that was started in the last hour may have lost what was admitted before:
	 * assume that a minute's worth was, at that moment. */
	bool strict;
};

struct netpol_cluster;
AQE_MUST_CHECK int netpol_cluster_new(const struct netpol_cluster_opts *o,
				      struct netpol_cluster **ret, struct aqe_err *e);
/* NULL is accepted. */
void netpol_cluster_free(struct netpol_cluster *c);

/* A connection was made: appends what is to be sent first, and forgets the last one. */
AQE_MUST_CHECK int netpol_cluster_hello(struct netpol_cluster *c, struct aqe_buf *out,
					struct aqe_err *e);
/* Appends a question: may one request pass? Only when ready. `latest_us`: what the server's time
 * can be at most, 0 when that is not known. `now_us`: of the server's clock; 0 but in tests. */
AQE_MUST_CHECK int netpol_cluster_ask(struct netpol_cluster *c, int64_t latest_us, int64_t now_us,
				      struct aqe_buf *out, struct aqe_err *e);
/* Another limit from now on. */
void netpol_cluster_rate(struct netpol_cluster *c, const struct netpol_rate *rate);

/* Takes bytes of the server over. */
AQE_MUST_CHECK int netpol_cluster_feed(struct netpol_cluster *c, const void *p, size_t n,
				       struct aqe_err *e);
enum netpol_cluster_said {
	NETPOL_CLUSTER_MORE,   /* nothing whole yet */
	NETPOL_CLUSTER_READY,  /* the greeting is over: questions may be asked */
	NETPOL_CLUSTER_ANSWER, /* to the oldest question */
	NETPOL_CLUSTER_RESEND, /* the script was not there: `out` has the question again */
};
struct netpol_cluster_answer {
	bool allowed;
	uint64_t wait_us; /* exact when nobody else asks; 0 when allowed */
	int64_t now_us;   /* the time it was judged at */
};
/* The next thing the server said, or an error after which only a new connection helps:
 * AQE_E_REFUSED (its own words), AQE_E_MALFORMED (not Redis, or beyond a limit). */
AQE_MUST_CHECK int netpol_cluster_next(struct netpol_cluster *c, struct aqe_buf *out,
				       enum netpol_cluster_said *ret_said,
				       struct netpol_cluster_answer *ret, struct aqe_err *e);

#endif
