/* SPDX-License-Identifier: MIT */
/* Any document is judged without a crash, every property gets a result, and one that conforms still
 * conforms after it was written and read again. */
#include <stdlib.h>

#include "hardening/inspect.h"
#include "shim/core/cleanup.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

#define POLICY "tests/corpus/policy.json"

static void must(bool ok)
{
	if (!ok)
		abort();
}

static const struct hard_policy *policy(void)
{
	static struct hard_policy *p;
	struct aqe_err e = AQE_ERR_INIT;

	if (!p && hard_policy_load_file(POLICY, &p, &e) < 0)
		must(hard_policy_empty(&p, &e) == 0);
	return p;
}

/* True when the object conforms. */
static bool judge(struct aqe_arena *a, const struct aqe_json *object)
{
	const struct hard_ctx ctx = { .policy = policy(), .info_rootless = true };
	const enum oci_inspect_kind kind = oci_inspect_object(object, NULL);
	struct aqe_err e = AQE_ERR_INIT;
	struct hard_report r;

	hard_report_init(&r, a);
	if (kind == OCI_INSPECT_NONE || kind == OCI_INSPECT_FOREIGN ||
	    oci_inspect_check(kind, object, &e) < 0)
		return false;
	must(hard_verify_inspect(&ctx, kind, object, &r, &e) == 0);
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++)
		must(r.result[i] == HARD_PASS || r.result[i] == HARD_FAIL);
	return hard_report_ok(&r);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)512 << 20);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)64 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *root = NULL, *again = NULL;
	const struct aqe_json *object;

	if (!a || aqe_json_parse(a, (const char *)data, size, &OCI_INSPECT_LIMITS, &root, &e) < 0)
		return 0;
	(void)oci_inspect_shape(root, oci_inspect_kind(root, NULL), &e); /* must not crash */
	object = root->type == AQE_JSON_ARRAY ? root->first : root;
	if (!judge(a, object))
		return 0;
	must(aqe_json_emit(object, AQE_JSON_SORTED, &b, &e) == 0);
	must(aqe_json_parse(a, b.p, b.len, &OCI_INSPECT_LIMITS, &again, &e) == 0);
	must(judge(a, again));
	return 0;
}
