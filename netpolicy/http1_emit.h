/* SPDX-License-Identifier: MIT */
/* Heads written anew. Only fields that were read and are end-to-end go on; the framing, Host and
 * Connection are ours. Also the answers the proxy gives itself. */
#ifndef AQE_NETPOLICY_HTTP1_EMIT_H
#define AQE_NETPOLICY_HTTP1_EMIT_H

#include "netpolicy/http1.h"
#include "shim/core/buf.h"

/* A request for the upstream: origin-form, "Host: AUTHORITY" (the canonical name the decision was
 * made on, with the port when it is not 80), framing as in `r`. Max-Forwards is one less.
 * `websocket`: the upgrade is passed on. Nothing that names the proxy or its host is added. */
AQE_MUST_CHECK int netpol_h1_emit_request(struct aqe_buf *b, const struct netpol_h1_head *h,
					  const char *p, const struct netpol_h1_request *r,
					  const char *authority, bool websocket);

/* How a response's body goes to the client. */
enum netpol_h1_framing {
	NETPOL_H1_SEND_SAME,  /* none, its length, or chunked anew */
	NETPOL_H1_SEND_CLOSE, /* until the connection ends */
};
/* A response for the client, as HTTP/1.1; `close`: say that the connection ends. */
AQE_MUST_CHECK int netpol_h1_emit_response(struct aqe_buf *b, const struct netpol_h1_head *h,
					   const char *p, const struct netpol_h1_response *r,
					   enum netpol_h1_framing framing, bool close);

/* An answer of our own. Nothing in it comes from a request without being escaped. */
struct netpol_h1_answer {
	unsigned status;
	const char *reason;      /* also the phrase, X-Aqe-Reason, X-Aqe-Deny */
	const char *host;        /* canonical, or NULL when there is none */
	unsigned port;           /* 0: none */
	const char *agent_type;  /* may be NULL */
	const char *rule;        /* may be NULL */
	uint64_t request_id;     /* the audit row's number */
	uint64_t retry_after_ms; /* 0: none */
	bool head;               /* the request was HEAD: no body follows */
	bool close;
};
AQE_MUST_CHECK int netpol_h1_emit_answer(struct aqe_buf *b, const struct netpol_h1_answer *a);
/* "HTTP/1.1 200 connection established" and the empty line; no framing fields (RFC 9110 9.3.6). */
AQE_MUST_CHECK int netpol_h1_emit_established(struct aqe_buf *b);
/* Seconds for Retry-After: rounded up, at least 1. */
uint64_t netpol_h1_retry_after_s(uint64_t ms);

#endif
