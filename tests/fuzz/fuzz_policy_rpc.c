/* SPDX-License-Identifier: MIT */
/* Any line is answered with one line that is a JSON object and says whether it went well. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "shim/aqe/policy_rpc.h"
#include "shim/core/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int load(void *self, struct netpol_policy **ret, struct aqe_err *e)
{
	static const struct netpol_base base = {
		"default", true, "*.example.com", { 10, 9, 3 }, 1
	};

	(void)self;
	return netpol_policy_build(&base, 1, NULL, 0, ret, e);
}

static int audit(void *self, const struct shim_rpc_record *r, struct aqe_err *e)
{
	(void)self;
	(void)e;
	assert(r->agent && r->type && r->policy && (r->host || r->verdict == NETPOL_INVALID));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct netpol_live live = { NULL, load, NULL, AQE_ERR_INIT };
	static struct shim_rpc rpc = { &live, NULL, audit, NULL, NULL };
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)16 << 20);
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT((size_t)4 << 20);
	struct aqe_json *root = NULL;
	const struct aqe_json *ok;
	bool changed;

	if (!live.now && (netpol_live_reload(&live, &changed, NULL) ||
			  netpol_limiters_new(8, &rpc.limiters, NULL)))
		return 0;
	shim_rpc_line(&rpc, (const char *)data, size, (int64_t)size, &out);
	assert(out.len && out.p[out.len - 1] == '\n' && !memchr(out.p, '\n', out.len - 1));
	assert(!aqe_json_parse(a, out.p, out.len - 1, &AQE_JSON_LIMITS_DEFAULT, &root, NULL));
	ok = aqe_json_get(root, "ok");
	assert(ok && ok->type == AQE_JSON_BOOL);
	assert(ok->boolean || aqe_json_get(root, "code"));
	return 0;
}
