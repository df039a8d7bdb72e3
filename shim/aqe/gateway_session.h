/* SPDX-License-Identifier: MIT */
/* One connection of a gateway: HTTP in clear from the worker on one side, TLS to the upstream on
 * the other. Requests are read with the strict parser, judged once more, and get the credential;
 * answers pass as they are, but for the credential, should one hold it. */
#ifndef AQE_AQE_GATEWAY_SESSION_H
#define AQE_AQE_GATEWAY_SESSION_H

#include "netpolicy/http1.h"
#include "netpolicy/policy.h"
#include "shim/aqe/gateway_mask.h"
#include "shim/aqe/gateway_tls.h"

struct shim_session;

/* What holds now for a gateway. */
struct shim_route {
	const struct netpol_gateway *gateway;
	const char *credential; /* "": none is added */
	const char *ca;         /* PEM, or "" */
};
/* Finds it by name; false: there is none (any more), or its credential cannot be used. */
typedef bool shim_route_fn(void *self, const char *name, struct shim_route *ret);

/* Begins the handshake over `fd` (owned). NULL without memory. */
struct shim_session *shim_session_new(struct shim_tls_pool *pool, int fd, const char *name,
				      const struct shim_route *route, shim_route_fn *find,
				      void *find_self);
/* NULL is accepted. */
void shim_session_free(struct shim_session *s);

enum shim_session_state {
	SHIM_SESSION_SHAKING,
	SHIM_SESSION_READY, /* the handshake was good: shim_session_plain() */
	SHIM_SESSION_FAILED,
	SHIM_SESSION_OPEN,
	SHIM_SESSION_ENDED,
};
enum shim_session_state shim_session_state(const struct shim_session *s);
/* Opens it: the other end of the clear side, the caller's; -1: failed. */
int shim_session_plain(struct shim_session *s);
/* What to wait for: two entries, clear side first. */
void shim_session_want(const struct shim_session *s, struct pollfd *ret);
/* Moves what can be moved. True: it used up its turn, call again soon. */
bool shim_session_run(struct shim_session *s, const struct pollfd *fds);

/* The head that goes to the upstream: the request's, judged, with the credential. `p` holds the
 * head that was scanned into `h`. False: it may not pass. For tests. */
AQE_MUST_CHECK bool shim_session_head(const struct shim_route *route, struct netpol_h1_head *h,
				      const char *p, struct netpol_h1_request *ret_req,
				      struct aqe_buf *out);

#endif
