/* SPDX-License-Identifier: MIT */
/* Any section "network" builds or gives an error with its place. What was built says the same after
 * it was written out and read again, and as a user's section it never admits more. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "netpolicy/policy.h"
#include "netpolicy/policy_int.h"
#include "shim/core/cleanup.h"
#include "shim/core/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct netpol_base BASE[] = {
	{ "qe-test-generator", true, "api.anthropic.com,*.example.com", { 60, 1000, 10 }, 30000 },
	{ "default", false, "api.anthropic.com,localhost", { 10, 100, 3 }, 30000 },
};

static struct netpol_policy *build(const struct aqe_json *root, bool user)
{
	const struct netpol_section section = { "fuzz", root, user };
	struct aqe_err e = AQE_ERR_INIT;
	struct netpol_policy *p = NULL;

	if (netpol_policy_build(BASE, 2, &section, root ? 1 : 0, &p, &e))
		assert(!p && e.code && e.text[0]);
	return p;
}

static struct aqe_json *parse(struct aqe_arena *a, const char *p, size_t n)
{
	struct aqe_json *root = NULL;

	return aqe_json_parse(a, p, n, &AQE_JSON_LIMITS_DEFAULT, &root, NULL) ? NULL : root;
}

static void check_again(struct aqe_arena *a, const struct netpol_policy *p)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 20);
	struct aqe_json *root;
	struct netpol_policy *again;

	if (netpol_policy_emit(p, NULL, &b, NULL))
		return; /* over a megabyte: no document any more */
	root = parse(a, b.p, b.len);
	again = root ? build(root, false) : NULL;
	assert(again && strcmp(again->digest, p->digest) == 0);
	netpol_policy_unref(again);
}

static void check_user(const struct aqe_json *root)
{
	struct netpol_policy *before = build(NULL, false), *after = build(root, true);

	for (size_t i = 0; after && i < before->n_types; i++) {
		const struct netpol_type *a = &before->types[i];
		const struct netpol_type *b = netpol_policy_type(after, a->name);

		for (size_t k = 0; k < netpol_rules_count(b->rules); k++)
			assert(netpol_rules_cover(a->rules, netpol_rules_at(b->rules, k), true));
		assert(b->rate.per_minute <= a->rate.per_minute && b->sni >= a->sni &&
		       b->mode >= a->mode && b->access <= a->access && !b->n_cidrs);
	}
	assert(!after || (after->n_types == before->n_types && !after->n_gateways));
	netpol_policy_unref(before);
	netpol_policy_unref(after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)64 << 20);
	struct aqe_json *root = parse(a, (const char *)data, size);
	struct netpol_policy *p = root ? build(root, false) : NULL;

	if (p)
		check_again(a, p);
	if (root)
		check_user(root);
	netpol_policy_unref(p);
	return 0;
}
