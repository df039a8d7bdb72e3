/* SPDX-License-Identifier: MIT */
/* Two ports of the gateway: the way to the upstream (libcurl, in shim/aqe), and the policy that
 * says whether it may be taken (netpolicy, composed in shim/). Both are called from several
 * threads. */
#ifndef AQE_CACHE_UPSTREAM_H
#define AQE_CACHE_UPSTREAM_H

#include <stdint.h>

#include "shim/core/buf.h"
#include "shim/core/err.h"

struct cache_exchange {
	const char *method, *path; /* "POST", "/api/embed": behind the upstream's URL */
	const struct aqe_buf *body;
	unsigned timeout_ms;
	/* the answer */
	int status;
	struct aqe_buf answer;
	int64_t retry_after_s; /* -1: it does not say */
};

struct cache_upstream {
	/* 0 when an answer came, whatever its status; AQE_E_TIMEOUT; AQE_E_SYS (not reachable);
	 * AQE_E_MALFORMED; AQE_E_UNTRUSTED (its certificate); AQE_E_LIMIT; AQE_E_REFUSED (the
	 * network policy: status and retry_after_s are then for the agent, and the text ends with
	 * ": " and the policy's own word for the reason). */
	int (*send)(void *self, struct cache_exchange *x, struct aqe_err *e);
	void *self;
};

struct cache_fetch {
	const char *url; /* the upstream's */
	const char *method, *path;
	uint64_t texts;   /* in this request */
	unsigned attempt; /* from 1 */
};
/* NULL members: everything may be fetched, nobody is told. */
struct cache_gate {
	/* Before each request to the upstream: 0, or AQE_E_REFUSED with words as above; *ret_status
	 * is then what the agent gets, 403 or 429, and *ret_retry_after_s (-1: nothing to say). */
	int (*may_fetch)(void *self, const struct cache_fetch *f, int *ret_status,
			 int64_t *ret_retry_after_s, struct aqe_err *e);
	/* After it: `status` of the answer, or 0 when there was none. */
	void (*fetched)(void *self, const struct cache_fetch *f, int status, int64_t took_ms);
	void *self;
};

#endif
