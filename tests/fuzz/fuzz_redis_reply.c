/* SPDX-License-Identifier: MIT */
/* Whatever a Redis server says to the shared limiter, in pieces of any size: an answer is one that
 * limiter.c could give, and nothing is said after a fault. */
#include <assert.h>

#include "netpolicy/cluster.h"
#include "shim/core/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int all(struct netpol_cluster *c, struct aqe_buf *out)
{
	enum netpol_cluster_said said = NETPOL_CLUSTER_READY;
	struct netpol_cluster_answer a;
	int rc = 0;

	while (!rc && said != NETPOL_CLUSTER_MORE) {
		rc = netpol_cluster_next(c, out, &said, &a, NULL);
		if (!rc && said == NETPOL_CLUSTER_ANSWER)
			assert(a.allowed == (a.wait_us == 0) && a.now_us >= 0);
		if (!rc && (said == NETPOL_CLUSTER_READY || said == NETPOL_CLUSTER_ANSWER))
			rc = netpol_cluster_ask(c, 0, 0, out, NULL);
		aqe_buf_clear(out);
	}
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct netpol_cluster_opts o = {
		.password = size % 2 ? "p" : NULL, .prefix = "", .key = "k", .rate = { 1, 1, 1 }
	};
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT((size_t)1 << 20);
	struct netpol_cluster *c = NULL;
	int rc = netpol_cluster_new(&o, &c, NULL);

	if (!rc)
		rc = netpol_cluster_hello(c, &out, NULL);
	for (size_t at = 0, n; !rc && at < size; at += n) {
		n = data[at] % 64 + 1U < size - at ? data[at] % 64 + 1U : size - at;
		rc = netpol_cluster_feed(c, data + at, n, NULL);
		if (!rc)
			rc = all(c, &out);
	}
	netpol_cluster_free(c);
	return 0;
}
