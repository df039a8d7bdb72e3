/* SPDX-License-Identifier: MIT */
/* aqe policy: what it says of gateways, of the upstream proxy and of Public Suffix Lists. */
#include <sys/stat.h>

#include "tests/unit/cmd_policy_util.h"

static void put_suffixes(const char *domains)
{
	char text[1024];

	(void)snprintf(text, sizeof(text),
		       "{\"version\":1,\n\"network\":{\"publicSuffixFile\":\"%s\",\n\"agents\":{"
		       "\"tight\":{\"domains\":[\n%s]}}}}",
		       path("psl"), domains);
	put("policy.json", text);
}

START_TEST(show__of_wildcards_over_suffixes_of_a_list)
{
	put_suffixes("\"*.plain.test\"");
	ck_assert_int_eq(RUN("show", POLICY), SHIM_EXIT_UNDECIDED);
	ck_has(&err, "policy.json:2: '/network/publicSuffixFile': ");
	put("psl", "many.test\n// ===BEGIN PRIVATE DOMAINS===\nshared.test\n");
	put_suffixes("\"*.plain.test\",\"many.test\",\"*.one.many.test\",\n\"*.shared.test\"");
	ck_assert_int_eq(RUN("show", "-e", "tight", POLICY), SHIM_EXIT_OK);
	ck_has(&out,
	       "policy.json:5\n                warning: names below it belong to many owners");
	put_suffixes("\"*.plain.test\",\n\"*.many.test\"");
	ck_assert_int_eq(RUN("show", POLICY), SHIM_EXIT_UNDECIDED);
	ck_has(&err, "policy.json:5: '*.many.test': a wildcard over a public suffix of the list");
	ck_assert_int_eq(chmod(path("psl"), 0666), 0);
	put_suffixes("\"*.plain.test\"");
	ck_assert_int_eq(RUN("show", POLICY), SHIM_EXIT_UNDECIDED);
	ck_has(&err, "others may write to it");
}
END_TEST

/* ---- gateways ---- */

#define GATEWAYS                                                                                \
	"{\"version\":1,\n\"network\":{\"upstreamProxy\":\"proxy.test:3128\",\n\"agents\":{"    \
	"\"tight\":{\"domains\":[],\n\"rate\":{\"perMinute\":7,\"perHour\":70,\"burst\":2}},\n" \
	"\"shut\":{\"access\":\"isolated\",\"domains\":[\"a.example\"]}},\n"                    \
	"\"gateways\":{\"claude\":{\"upstream\":\"https://api.test/base\",\"credentialFile\":"  \
	"\"/etc/key\",\"header\":\"x-api-key\",\n\"methods\":[\"POST\"],\n\"paths\":[\"/v1/"    \
	"*\"],\n"                                                                               \
	"\"rate\":{\"perMinute\":3,\"perHour\":30,\"burst\":1}},\n"                             \
	"\"open\":{\"upstream\":\"https://open.test\"},\n"                                      \
	"\"meta\":{\"upstream\":\"https://169.254.169.254\"},\n"                                \
	"\"inner\":{\"upstream\":\"https://10.1.2.3\"},\n"                                      \
	"\"others\":{\"upstream\":\"https://api.test\",\"types\":[\"qe-test-writer\"]}}}}"

static const struct {
	const char *type, *target, *method;
	int status;
	const char *says;
} gates[] = {
	{ "tight", "gateway:claude/v1/messages", "POST", 0, "allow\n" },
	{ "tight", "gateway:claude/v1/messages?a=b", "POST", 0,
	  "asked     POST https://api.test/base/v1/messages?a=b\nrule      gateway claude  /" },
	{ "tight", "gateway:claude/v1/m", "POST", 0, "through   proxy.test:3128  /" },
	{ "tight", "gateway:claude/v1/messages", NULL, 1, "deny method_not_allowed\n" },
	{ "tight", "gateway:claude/v1/messages", NULL, 1, "policy.json:7\n" },
	{ "tight", "gateway:claude/v2", "POST", 1, "deny path_not_allowed\n" },
	{ "tight", "gateway:claude/v2", "POST", 1, "policy.json:8\n" },
	{ "tight", "gateway:claude", "POST", 1, "deny path_not_allowed\n" },
	{ "tight", "gateway:claude/v1/../v2", "POST", 1, "invalid path_invalid\n" },
	{ "tight", "gateway:claude/v1/%2e%2e/v2", "POST", 1, "invalid path_invalid\n" },
	{ "tight", "gateway:open", NULL, 0, "asked     GET https://open.test\n" },
	{ "tight", "gateway:open/x", "TRACE", 1, "deny method_not_allowed\n" },
	{ "tight", "gateway:nobody/x", NULL, 1, "deny gateway_unknown\n" },
	{ "tight", "gateway:nobody/x", NULL, 1, "gateways  claude open meta inner\n" },
	{ "tight", "gateway:others/x", NULL, 1, "deny gateway_unknown\n" },
	{ "qe-test-writer", "gateway:others/x", NULL, 0, "allow\n" },
	{ "tight", "gateway:meta/x", NULL, 1, "deny address_denied\n" },
	{ "tight", "gateway:inner/x", NULL, 1, "deny address_denied\n" },
	{ "shut", "gateway:open/x", NULL, 0, "but       containers of this type are isolated" },
	{ "shut", "a.example", NULL, 0, "they have no service  /" },
	/* a port: a host of that name */
	{ "tight", "gateway:443", NULL, 1, "deny domain_not_allowed\n" },
	{ "tight", "gateway:443", "GET", 2, "" },
};

START_TEST(check__of_a_gateway_answers_as_the_service)
{
	put("policy.json", GATEWAYS);
	ck_assert_int_eq(RUN("check", POLICY, gates[_i].type, gates[_i].target, gates[_i].method),
			 gates[_i].status);
	ck_has(&out, gates[_i].says);
}
END_TEST

START_TEST(check__of_a_gateway_as_json_and_resolved)
{
	const struct aqe_json *root;

	put("policy.json", GATEWAYS);
	ck_assert_int_eq(RUN("check", "--format", "json", POLICY, "tight", "gateway:claude/v2",
			     "POST"),
			 1);
	root = json();
	ck_assert_str_eq(aqe_json_str(aqe_json_get(root, "verdict")), "deny");
	ck_assert_str_eq(aqe_json_str(aqe_json_get(root, "reason")), "path_not_allowed");
	ck_assert_str_eq(aqe_json_str(aqe_json_get(root, "upstream")), "https://api.test/base");
	ck_assert_str_eq(aqe_json_str(aqe_json_at(root, "/rule/entry")), "gateway claude");
	ck_assert_str_eq(aqe_json_at(root, "/rule/where/line")->text, "8");
	put("policy.json", "{\"version\":1,\"network\":{\"gateways\":{\"near\":{\"upstream\":"
			   "\"https://ip6-localhost\"},\"far\":{\"upstream\":"
			   "\"https://nowhere.invalid\"}}}}");
	ck_assert_int_eq(RUN("check", "--resolve", POLICY, "default", "gateway:far"), 0);
	ck_has(&out, "address   none: ");
	ck_assert_int_eq(RUN("check", POLICY, "default", "gateway:near"), 0);
}
END_TEST

START_TEST(show__has_gateways_and_proxy_with_their_lines)
{
	static const char *const rows[][2] = {
		{ "gateway       claude ", ":6\n" },
		{ "  upstream    https://api.test/base ", ":6\n" },
		{ "  methods     POST ", ":7\n" },
		{ "  paths       /v1/* ", ":8\n" },
		{ "  rate        3/min, 30/h, burst 1 ", ":9\n" },
		{ "  credential  x-api-key, from /etc/key ", ":6\n" },
		{ "gateway       open ", ":10\n" },
		{ "  methods     GET HEAD POST PUT PATCH DELETE OPTIONS ", "  built-in\n" },
		{ "  paths       all ", "  built-in\n" },
		{ "  rate        7/min, 70/h, burst 2 (as the type's) ", ":4\n" },
		{ "  credential  none ", ":10\n" },
		{ "upstreamProxy proxy.test:3128 ", ":2\n" },
	};
	const struct aqe_json *root;

	put("policy.json", GATEWAYS);
	ck_assert_int_eq(RUN("show", "-e", "tight", POLICY), SHIM_EXIT_OK);
	for (size_t i = 0; i < AQE_COUNT(rows); i++) {
		const char *at = strstr(aqe_buf_str(&out), rows[i][0]), *end;

		ck_assert_msg(at, "no row '%s' in %s", rows[i][0], aqe_buf_str(&out));
		end = strchr(at, '\n') + 1;
		ck_assert_msg(aqe_starts(end - strlen(rows[i][1]), rows[i][1]), "%.*s",
			      (int)(end - at), at);
	}
	ck_assert_ptr_null(strstr(aqe_buf_str(&out), "others"));
	ck_assert_int_eq(RUN("show", "-e", "tight", "--format", "json", POLICY), SHIM_EXIT_OK);
	root = json();
	ck_assert_str_eq(aqe_json_str(aqe_json_at(root, "/gateways/claude/methods/value")), "POST");
	ck_assert_str_eq(aqe_json_at(root, "/gateways/claude/methods/where/line")->text, "7");
	ck_assert_str_eq(aqe_json_str(aqe_json_at(root, "/upstreamProxy/value")),
			 "proxy.test:3128");
	ck_assert_ptr_null(aqe_json_at(root, "/gateways/others"));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("shim_cmd_policy_gateway");
	TCase *t = tcase_create("policy");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, show__of_wildcards_over_suffixes_of_a_list);
	tcase_add_test(t, show__has_gateways_and_proxy_with_their_lines);
	tcase_add_loop_test(t, check__of_a_gateway_answers_as_the_service, 0,
			    (int)AQE_COUNT(gates));
	tcase_add_test(t, check__of_a_gateway_as_json_and_resolved);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
