/* SPDX-License-Identifier: MIT */
/* The resources of an update. */
#include <stdlib.h>

#include "tests/unit/rewrite_util.h"

static struct aqe_json *parse(const char *text)
{
	struct aqe_json *doc = NULL;
	const int rc = oci_doc_parse(arena, OCI_DOC_RESOURCES, text, strlen(text), &doc, &err);

	ck_assert_msg(rc == 0, "%s: %s", text, err.text);
	return doc;
}

static struct aqe_json *rewrite(const char *text)
{
	struct aqe_json *result = NULL;

	hard_report_init(&report, arena);
	ck_assert_ok(hard_update_rewrite(&ctx, arena, parse(text), &report, &result, &err), err);
	return result;
}

static const struct {
	const char *in, *out;
} ACCEPTED[] = {
	{ "{}", "{}" },
	/* docker update --restart: every block, all zero */
	{ "{\"memory\":{\"limit\":0,\"reservation\":0,\"kernel\":0},\"cpu\":{\"shares\":0,"
	  "\"quota\":0,\"period\":0},\"blockIO\":{\"weight\":0}}",
	  "{}" },
	{ "{\"pids\":{\"limit\":0}}", "{}" },
	{ "{\"pids\":{\"limit\":512}}", "{\"pids\":{\"limit\":512}}" },
	{ "{\"pids\":{\"limit\":1}}", "{\"pids\":{\"limit\":1}}" },
	/* podman and docker send twice the memory as memory + swap */
	{ "{\"memory\":{\"limit\":536870912,\"swap\":1073741824}}",
	  "{\"memory\":{\"limit\":536870912,\"swap\":536870912}}" },
	{ "{\"memory\":{\"limit\":1073741824}}",
	  "{\"memory\":{\"limit\":1073741824,\"swap\":1073741824}}" },
	{ "{\"memory\":{\"limit\":1048576,\"swap\":1048576,\"reservation\":4096}}",
	  "{\"memory\":{\"limit\":1048576,\"swap\":1048576,\"reservation\":4096}}" },
	{ "{\"memory\":{\"reservation\":4096}}", "{\"memory\":{\"reservation\":4096}}" },
	{ "{\"cpu\":{\"quota\":50000,\"period\":100000}}",
	  "{\"cpu\":{\"quota\":50000,\"period\":100000}}" },
	{ "{\"cpu\":{\"quota\":100000,\"period\":50000}}",
	  "{\"cpu\":{\"quota\":200000,\"period\":100000}}" },
	{ "{\"cpu\":{\"quota\":50000}}", "{\"cpu\":{\"quota\":50000,\"period\":100000}}" },
	{ "{\"cpu\":{\"shares\":512,\"cpus\":\"0-1\",\"mems\":\"\"}}",
	  "{\"cpu\":{\"shares\":512,\"cpus\":\"0-1\"}}" },
	{ "{\"devices\":[],\"network\":{}}", "{}" },
};

START_TEST(update__passes_only_changes)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);
	const struct aqe_json *out = rewrite(ACCEPTED[_i].in);

	ck_assert_msg(out != NULL, "%s: refused for %s", ACCEPTED[_i].in, rw_failed(&report));
	ck_assert_ok(oci_doc_emit(OCI_DOC_RESOURCES, out, &b, &err), err);
	ck_assert_msg(aqe_json_equal(out, rw_value(ACCEPTED[_i].out)), "%s gives %s",
		      ACCEPTED[_i].in, aqe_buf_str(&b));
}
END_TEST

static const struct {
	const char *in, *props, *pointer;
} REFUSED[] = {
	{ "{\"pids\":{\"limit\":513}}", "pids_limit", "/pids/limit" },
	{ "{\"pids\":{\"limit\":-1}}", "pids_limit", "/pids/limit" },
	{ "{\"pids\":{\"limit\":9223372036854775807}}", "pids_limit", "/pids/limit" },
	{ "{\"memory\":{\"limit\":1073741825}}", "memory_limit", "/memory/limit" },
	{ "{\"memory\":{\"limit\":2147483648,\"swap\":4294967296}}", "memory_limit",
	  "/memory/limit" },
	{ "{\"memory\":{\"limit\":-1}}", "memory_limit", "/memory/limit" },
	{ "{\"memory\":{\"limit\":1048576,\"swap\":-1}}", "memory_limit", "/memory/swap" },
	{ "{\"memory\":{\"limit\":1048576,\"swap\":1073741824}}", "memory_limit", "/memory/swap" },
	{ "{\"memory\":{\"swap\":1048576}}", "memory_limit", "/memory/swap" },
	{ "{\"memory\":{\"limit\":1048576,\"reservation\":2097152}}", "memory_limit",
	  "/memory/reservation" },
	{ "{\"memory\":{\"kernel\":1048576}}", "memory_limit", "/memory/kernel" },
	{ "{\"memory\":{\"disableOOMKiller\":true}}", "memory_limit", "/memory/disableOOMKiller" },
	{ "{\"memory\":{\"swappiness\":100}}", "memory_limit", "/memory/swappiness" },
	{ "{\"cpu\":{\"quota\":200001,\"period\":100000}}", "cpu_limit", "/cpu/quota" },
	{ "{\"cpu\":{\"quota\":-1,\"period\":100000}}", "cpu_limit", "/cpu/quota" },
	{ "{\"cpu\":{\"quota\":9223372036854775807}}", "cpu_limit", "/cpu/quota" },
	{ "{\"cpu\":{\"period\":50000}}", "cpu_limit", "/cpu/period" },
	{ "{\"cpu\":{\"shares\":1025}}", "cpu_limit", "/cpu/shares" },
	{ "{\"cpu\":{\"realtimeRuntime\":1}}", "cpu_limit", "/cpu/realtimeRuntime" },
	{ "{\"cpu\":{\"burst\":1}}", "cpu_limit", "/cpu/burst" },
	{ "{\"cpu\":{\"cpus\":\"0;1\"}}", "cpu_limit", "/cpu/cpus" },
	{ "{\"blockIO\":{\"weight\":10}}", "unknown_field", "/blockIO" },
	{ "{\"unified\":{\"memory.max\":\"max\"}}", "unknown_field", "/unified" },
	{ "{\"hugepageLimits\":[{\"pageSize\":\"2MB\",\"limit\":9}]}", "unknown_field",
	  "/hugepageLimits" },
	{ "{\"Pids\":{\"limit\":9}}", "unknown_field", "/Pids" },
	{ "{\"devices\":[{\"allow\":true,\"access\":\"rwm\"}]}", "devices", "/devices" },
	{ "{\"network\":{\"classID\":1}}", "network", "/network" },
};

START_TEST(update__refuses)
{
	ck_assert_ptr_null(rewrite(REFUSED[_i].in));
	ck_assert_str_eq(rw_failed(&report), REFUSED[_i].props);
	ck_assert_str_eq(hard_report_worst(&report)->pointer, REFUSED[_i].pointer);
}
END_TEST

/* The ceilings are the agent type's. */
START_TEST(update__follows_the_agent_type)
{
	ctx.agent = hard_policy_agent(policy, "qe-performance-tester"); /* 4 CPUs, 4g */
	ck_assert_ptr_nonnull(
		rewrite("{\"memory\":{\"limit\":4294967296},\"cpu\":{\"quota\":400000}}"));
	ck_assert_ptr_null(rewrite("{\"memory\":{\"limit\":4294967297}}"));
	ck_assert_ptr_null(rewrite("{\"cpu\":{\"quota\":400001}}"));
}
END_TEST

START_TEST(update__fails_whole_without_memory)
{
	const struct aqe_json *in =
		parse("{\"memory\":{\"limit\":1048576},\"cpu\":{\"quota\":5000}}");
	size_t ok = 0;

	for (size_t max = 64; max < 65536 && !ok; max += 64) {
		struct aqe_arena *small = aqe_arena_new(max);
		struct aqe_json *result = NULL;

		hard_report_init(&report, small);
		const int rc = hard_update_rewrite(&ctx, small, in, &report, &result, &err);

		ck_assert_msg(rc == 0 || rc == AQE_E_NOMEM, "%zu: %d", max, rc);
		ck_assert(rc == 0 || !result);
		ok += result != NULL;
		aqe_arena_free(small);
	}
	ck_assert_uint_eq(ok, 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening_update");
	TCase *t = tcase_create("update");

	tcase_add_checked_fixture(t, rw_setup, rw_teardown);
	tcase_add_loop_test(t, update__passes_only_changes, 0, (int)AQE_COUNT(ACCEPTED));
	tcase_add_loop_test(t, update__refuses, 0, (int)AQE_COUNT(REFUSED));
	tcase_add_test(t, update__follows_the_agent_type);
	tcase_add_test(t, update__fails_whole_without_memory);
	suite_add_tcase(s, t);
	return unit_run(s);
}
