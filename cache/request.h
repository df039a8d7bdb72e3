/* SPDX-License-Identifier: MIT */
/* HTTP/1.1 requests to the gateway, as bytes: head, then a body by length or in chunks. Strict:
 * what two parsers could read differently is refused. */
#ifndef AQE_CACHE_REQUEST_H
#define AQE_CACHE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/core/buf.h"

#define CACHE_REQUEST_HEAD_MAX ((size_t)16 << 10)
#define CACHE_REQUEST_BODY_MAX ((size_t)8 << 20)
#define CACHE_REQUEST_MAX      (CACHE_REQUEST_HEAD_MAX + 2 * CACHE_REQUEST_BODY_MAX)

struct cache_request {
	char method[8];
	char path[256];      /* without query */
	bool keep;           /* the connection stays open after the answer */
	bool expects;        /* the client waits for 100 Continue */
	struct aqe_buf body; /* decoded */
	/* how far it was read: the parser's */
	size_t head, at;
	size_t length;
	unsigned chunks;
	bool chunked;
};
#define CACHE_REQUEST_INIT                                                                    \
	{                                                                                     \
		"", "", false, false, AQE_BUF_INIT(CACHE_REQUEST_BODY_MAX), 0, 0, 0, 0, false \
	}
void cache_request_done(struct cache_request *r);
/* Ready for the next request; memory is kept. */
void cache_request_clear(struct cache_request *r);

/* Looks at the first `n` bytes of a connection. *ret_used > 0: they begin with a whole request of
 * so many bytes. 0 and *ret_used 0: more are needed; call again with the same request and the same
 * bytes and more, and nothing is read twice. Else the HTTP status of a refusal (400, 411, 413, 414,
 * 431, 501, 505), after which the connection must be closed. */
AQE_MUST_CHECK int cache_request_parse(struct cache_request *r, const char *p, size_t n,
				       size_t *ret_used);

#endif
