/* SPDX-License-Identifier: MIT */
/* Any bytes as the target of a gateway's request: what is taken apart means one thing, however a
 * server reads it, and its pieces are the whole. */
#include <assert.h>
#include <string.h>

#include "netpolicy/gateway.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data;
	struct netpol_gateway_target t;

	if (!netpol_gateway_split(p, size, &t))
		return 0;
	assert(t.name == p + 1 && t.name_n > 0 && 1 + t.name_n + t.path_n + t.query_n == size);
	assert(!memchr(t.name, '/', t.name_n) && netpol_gateway_path_ok(t.path, t.path_n));
	assert(!memmem(p, size - t.query_n, "//", 2) && !memmem(p, size - t.query_n, "/../", 4));
	for (size_t i = 0; i + 2 < size - t.query_n; i++) {
		if (p[i] == '%') {
			assert(memcmp(p + i, "%2e", 3) != 0 && memcmp(p + i, "%2E", 3) != 0);
			assert(memcmp(p + i, "%2f", 3) != 0 && memcmp(p + i, "%2F", 3) != 0);
		}
	}
	return 0;
}
