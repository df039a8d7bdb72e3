/* SPDX-License-Identifier: MIT */
/* What a container with an egress service gets: proxy variables that are ours, no name servers. */
#include <stdlib.h>

#include "hardening/rules.h"
#include "tests/unit/rewrite_util.h"

static struct aqe_json *rewritten(const char *env)
{
	struct aqe_json *in = rw_parse_file(RW_BASE), *out = NULL;

	if (env)
		ck_assert_int_eq(aqe_json_set(arena, aqe_json_get(in, "process"), "env",
					      rw_value(env)),
				 0);
	ck_assert_ok(hard_rewrite(&ctx, arena, in, &report, &out, &err), err);
	ck_assert_ptr_nonnull(out);
	return out;
}

START_TEST(env__is_ours_with_egress)
{
	const struct aqe_json *env;
	struct aqe_json *out;

	ctx.egress = true;
	out = rewritten("[\"http_proxy=http://evil:1\",\"HTTPS_PROXY=x\",\"No_Proxy=*\",\"A=b\","
			"\"FTP_PROXY=y\",\"npm_config_https_proxy=z\",\"JAVA_TOOL_OPTIONS=-Dq\","
			"\"NODE_USE_ENV_PROXY=0\"]");
	env = aqe_json_at(out, "/process/env");
	ck_assert(aqe_json_has_str(env, "A=b"));
	for (size_t i = 0; HARD_EGRESS_ENV[i]; i++)
		ck_assert_msg(aqe_json_has_str(env, HARD_EGRESS_ENV[i]), "%s", HARD_EGRESS_ENV[i]);
	for (const struct aqe_json *v = env->first; v; v = v->next) {
		ck_assert_ptr_null(strstr(v->text, "evil"));
		ck_assert_ptr_null(strstr(v->text, "-Dq"));
		ck_assert(!aqe_starts(v->text, "FTP_PROXY") &&
			  !aqe_starts(v->text, "npm_config_h"));
	}
}
END_TEST

START_TEST(env__is_made_when_absent)
{
	struct aqe_json *in, *out = NULL;

	ctx.egress = true;
	in = rw_parse_file(RW_BASE);
	aqe_json_remove(aqe_json_get(in, "process"), "env");
	ck_assert_ok(hard_rewrite(&ctx, arena, in, &report, &out, &err), err);
	ck_assert(aqe_json_has_str(aqe_json_at(out, "/process/env"),
				   "http_proxy=http://127.0.0.1:3128"));
}
END_TEST

START_TEST(env__stays_without_egress)
{
	struct aqe_json *out = rewritten("[\"HTTP_PROXY=http://other:1\"]");

	ck_assert(aqe_json_has_str(aqe_json_at(out, "/process/env"), "HTTP_PROXY=http://other:1"));
	ck_assert(!aqe_json_has_str(aqe_json_at(out, "/process/env"), HARD_EGRESS_ENV[0]));
}
END_TEST

static bool has_mount(const struct aqe_json *doc, const char *destination)
{
	for (const struct aqe_json *m = aqe_json_get(doc, "mounts")->first; m; m = m->next) {
		if (aqe_str_eq(aqe_json_str(aqe_json_get(m, "destination")), destination))
			return true;
	}
	return false;
}

START_TEST(resolv_conf__goes_with_egress)
{
	for (int egress = 0; egress < 2; egress++) {
		struct aqe_json *in = rw_parse_file(RW_BASE), *out = NULL;

		ctx.egress = egress;
		hard_report_init(&report, arena);
		ck_assert_int_eq(
			aqe_json_append(aqe_json_get(in, "mounts"),
					rw_value("{\"destination\":\"/etc/resolv.conf\","
						 "\"type\":\"bind\",\"source\":\"" USERDATA
						 "resolv.conf\",\"options\":[\"bind\",\"ro\","
						 "\"nosuid\",\"nodev\",\"noexec\"]}")),
			0);
		ck_assert_ok(hard_rewrite(&ctx, arena, in, &report, &out, &err), err);
		ck_assert_ptr_nonnull(out);
		ck_assert_int_eq(has_mount(out, "/etc/resolv.conf"), !egress);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("hardening/rewrite_env");
	TCase *t = tcase_create("rewrite_env");

	tcase_add_checked_fixture(t, rw_setup, rw_teardown);
	tcase_add_test(t, env__is_ours_with_egress);
	tcase_add_test(t, env__is_made_when_absent);
	tcase_add_test(t, env__stays_without_egress);
	tcase_add_test(t, resolv_conf__goes_with_egress);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
