/* SPDX-License-Identifier: MIT */
/* Any document: accepted => the rewritten one verifies => what is written reads back equal. */
#include <stdint.h>
#include <stdlib.h>

#include "hardening/verify.h"
#include "oci/doc.h"
#include "shim/core/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
	if (!ok)
		abort();
}

static void judge(struct aqe_arena *a, const struct hard_ctx *ctx, const struct aqe_json *spec)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)16 << 20);
	struct aqe_json *result = NULL, *again = NULL;
	struct hard_report report, second;

	hard_report_init(&report, a);
	if (hard_rewrite(ctx, a, spec, &report, &result, NULL) != 0)
		return;
	must((result != NULL) == hard_report_ok(&report));
	if (!result)
		return;
	hard_report_init(&second, a);
	must(hard_verify(ctx, result, &second, NULL) == 0 && hard_report_ok(&second));
	must(oci_doc_emit(OCI_DOC_CONFIG, result, &b, NULL) == 0);
	must(oci_doc_parse(a, OCI_DOC_CONFIG, aqe_buf_str(&b), b.len, &again, NULL) == 0);
	must(aqe_json_equal(result, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct hard_policy *policy; /* the corpus's, read once */
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)256 << 20);
	struct aqe_json *spec;

	if (!policy)
		must(hard_policy_load_file("tests/corpus/policy.json", &policy, NULL) == 0);
	if (!a || oci_doc_parse(a, OCI_DOC_CONFIG, (const char *)data, size, &spec, NULL) != 0)
		return 0;
	struct hard_ctx ctx = { .policy = policy,
				.agent = hard_agent_profile(),
				.image_digest = policy->images[0].digest,
				.now_s = 1800000000 };

	judge(a, &ctx, spec);
	ctx.info_rootless = true;
	ctx.agent = hard_agent_default();
	ctx.bundle = "/srv/bundle";
	judge(a, &ctx, spec);
	return 0;
}
