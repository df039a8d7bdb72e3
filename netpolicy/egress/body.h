/* SPDX-License-Identifier: MIT */
/* A message body on its way through: taken off its framing, put into ours. */
#ifndef AQE_EGRESS_BODY_H
#define AQE_EGRESS_BODY_H

#include "netpolicy/http1.h"
#include "netpolicy/http1_chunk.h"
#include "shim/core/buf.h"

struct netpol_body {
	enum netpol_h1_body kind;
	bool plain; /* chunked comes in, bare bytes go out */
	bool done;
	uint64_t left; /* of NETPOL_H1_LENGTH */
	struct netpol_h1_chunks chunks;
};
void netpol_body_init(struct netpol_body *b, enum netpol_h1_body kind, uint64_t length, bool plain);
/* Takes bytes from `p`, *ret_used of `n`, and appends to `out` what goes on. MORE: wants more;
 * DONE: the body ended, the rest belongs to the next message; BAD: malformed, or no memory. */
enum netpol_h1_step netpol_body_feed(struct netpol_body *b, const char *p, size_t n,
				     struct aqe_buf *out, size_t *ret_used);

#endif
