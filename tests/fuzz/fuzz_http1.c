/* SPDX-License-Identifier: MIT */
/* Any bytes as a request to the proxy: refused, or what we write of it is read back as the same. */
#include <assert.h>
#include <string.h>

#include "netpolicy/http1_chunk.h"
#include "netpolicy/http1_emit.h"
#include "shim/core/cleanup.h"
#include "tests/unit/http1_util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The same bytes one at a time come to the same end. */
static void check_pieces(const char *p, size_t n, bool response)
{
	struct netpol_h1_head a, b;

	assert(http1_scan(&a, response, p, n, 0) == http1_scan(&b, response, p, n, 1));
	assert(a.at == b.at && a.fault == b.fault && a.at <= NETPOL_H1_HEAD_MAX + 1);
}

/* In the request for the upstream no field is left that a Connection field could name. */
static void check_emitted(const struct http1_util *u, const char *p)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(2 * NETPOL_H1_HEAD_MAX);
	struct http1_util again;
	enum netpol_h1_fault fault;

	assert(netpol_h1_emit_request(&b, &u->head, p, &u->req, "a.test", false) == 0);
	fault = http1_request(&again, NETPOL_H1_ORIGIN, b.p, b.len);
	if (fault != NETPOL_H1_OK) /* "OPTIONS *", or a head that outgrew the limits */
		return;
	assert(again.head.at == b.len && again.req.body == u->req.body);
	assert(again.req.length == u->req.length && !again.req.close);
	for (unsigned i = 0; i < again.head.count; i++)
		assert(!again.head.fields[i].hop);
}

static void check_body(const char *p, size_t n)
{
	struct netpol_h1_chunks c;
	enum netpol_h1_step step = NETPOL_H1_MORE;
	size_t used, data;

	netpol_h1_chunks_init(&c);
	for (size_t at = 0; at < n && step == NETPOL_H1_MORE; at += used) {
		step = netpol_h1_chunks_next(&c, p + at, n - at, &used, &data);
		assert(data <= used && used <= n - at && (used > 0 || step != NETPOL_H1_MORE));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data;
	struct http1_util u;

	check_pieces(p, size, false);
	check_pieces(p, size, true);
	if (http1_request(&u, NETPOL_H1_PROXY, p, size) == NETPOL_H1_OK) {
		if (!u.req.connect)
			check_emitted(&u, p);
		check_body(p + u.head.at, size - u.head.at);
	}
	(void)http1_response(&u, false, p, size);
	return 0;
}
