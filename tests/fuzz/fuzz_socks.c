/* SPDX-License-Identifier: MIT */
/* Any bytes as a SOCKS5 client: never more is spent than was there, and a verdict stays the same
 * when more bytes follow. */
#include <assert.h>

#include "netpolicy/socks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum netpol_socks_reply reply = NETPOL_SOCKS_FAILURE;
	struct netpol_socks_request rq;
	size_t used = 0, more = 0;
	uint8_t answer[2];
	enum netpol_socks_verdict v = netpol_socks_greeting(data, size, answer, &used);

	assert(used <= size && used <= NETPOL_SOCKS_GREETING_MAX);
	if (v == NETPOL_SOCKS_MORE)
		assert(size < NETPOL_SOCKS_GREETING_MAX);
	if (v != NETPOL_SOCKS_OK)
		return 0;
	data += used;
	size -= used;
	v = netpol_socks_request(data, size, &rq, &reply, &more);
	assert(more <= size && more <= NETPOL_SOCKS_REQUEST_MAX);
	if (v == NETPOL_SOCKS_MORE)
		assert(size < NETPOL_SOCKS_REQUEST_MAX);
	if (v == NETPOL_SOCKS_OK)
		assert(rq.port > 0 && rq.host_len > 0 && rq.host_len <= sizeof(rq.host));
	return 0;
}
