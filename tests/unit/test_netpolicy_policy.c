/* SPDX-License-Identifier: MIT */
/* Building, merging and tightening. NP-nn are the rows of the original's own tests. */
#include "netpolicy/policy.h"

#include "netpolicy/live.h"
#include "netpolicy/policy_int.h"
#include "shim/core/cleanup.h"
#include "tests/unit/netpolicy_util.h"

static void setup(void)
{
	np_good("{}");
}

static void teardown(void)
{
	np_drop();
}

/* The entries of a type, comma-separated. */
static const char *domains(const char *type)
{
	static char text[4096];
	const struct netpol_type *t = netpol_policy_type(np, type);
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < netpol_rules_count(t->rules); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? "," : "",
				      netpol_rules_at(t->rules, i)->text);
	return text;
}

#define A    "api.anthropic.com"
#define SELF A ",localhost,127.0.0.1"

/* NP-01, NP-02, NP-24, NP-27 to NP-30: the original's table, value by value */
static const struct {
	const char *type, *domains;
	struct netpol_rate rate;
	uint32_t timeout_ms;
} defaults[] = {
	{ "qe-test-generator", A ",registry.npmjs.org,api.github.com", { 60, 1000, 10 }, 30000 },
	{ "qe-security-scanner",
	  A ",nvd.nist.gov,cve.mitre.org,osv.dev,api.github.com,security.snyk.io",
	  { 120, 2000, 20 },
	  60000 },
	{ "qe-performance-tester", A, { 60, 1000, 15 }, 120000 },
	{ "qe-code-intelligence", SELF, { 60, 1000, 10 }, 30000 },
	{ "n8n-workflow-executor", SELF, { 60, 1000, 10 }, 60000 },
	{ "qe-visual-tester", A, { 30, 500, 5 }, 60000 },
	{ "qe-chaos-engineer", A, { 30, 500, 5 }, 60000 },
	{ "n8n-chaos-tester", A, { 30, 500, 5 }, 60000 },
	{ "qe-coverage-analyzer", A, { 30, 500, 5 }, 30000 },
	{ "qe-flaky-test-hunter", A, { 30, 500, 5 }, 30000 },
	{ "qe-api-contract-validator", A, { 30, 500, 5 }, 30000 },
	{ "qe-quality-analyzer", A, { 30, 500, 5 }, 30000 },
	{ "qe-a11y-ally", A, { 30, 500, 5 }, 30000 },
	{ "qe-deployment-readiness", A, { 30, 500, 5 }, 30000 },
	{ "qe-production-intelligence", A, { 30, 500, 5 }, 30000 },
	{ "qx-partner", A, { 30, 500, 5 }, 30000 },
	{ "n8n-security-auditor", A, { 30, 500, 5 }, 30000 },
	{ "default", A, { 10, 100, 3 }, 30000 },
};

START_TEST(defaults__are_the_original_s)
{
	const struct netpol_type *t = netpol_policy_type(np, defaults[_i].type);

	ck_assert_str_eq(t->name, defaults[_i].type);
	ck_assert_str_eq(domains(t->name), defaults[_i].domains);
	ck_assert_uint_eq(t->rate.per_minute, defaults[_i].rate.per_minute);
	ck_assert_uint_eq(t->rate.per_hour, defaults[_i].rate.per_hour);
	ck_assert_uint_eq(t->rate.burst, defaults[_i].rate.burst);
	ck_assert_uint_eq(t->timeout_ms, defaults[_i].timeout_ms);
	ck_assert_int_eq(t->mode, NETPOL_MODE_ENFORCE);
	ck_assert_int_eq(t->sni, NETPOL_SNI_ENFORCE);
	ck_assert(t->wildcard_apex);
	ck_assert_str_eq(netpol_rules_at(t->rules, 0)->where.file, "built-in");
}
END_TEST

/* The types without a policy of their own in the original have the default's figures. */
START_TEST(defaults__of_the_other_types)
{
	static const char *const types[] = { "qe-test-writer", "qe-test-implementer",
					     "qe-test-refactorer", "qe-code-reviewer",
					     "qe-integration-tester" };

	ck_assert_uint_eq(np->n_types, AQE_COUNT(defaults) + AQE_COUNT(types));
	for (size_t i = 0; i < AQE_COUNT(types); i++) {
		const struct netpol_type *t = netpol_policy_type(np, types[i]);

		ck_assert_str_eq(t->name, types[i]);
		ck_assert_str_eq(domains(types[i]), A);
		ck_assert_uint_eq(t->rate.per_minute, 10);
	}
}
END_TEST

/* NP-07 */
START_TEST(type__unknown_is_the_default)
{
	ck_assert_str_eq(netpol_policy_type(np, "no-such-type")->name, "default");
	ck_assert_str_eq(netpol_policy_type(np, "")->name, "default");
	ck_assert_str_eq(netpol_policy_type(np, NULL)->name, "default");
	ck_assert_ptr_eq(np->fallback, netpol_policy_type(np, "default"));
}
END_TEST

/* NP-04, NP-05, NP-14, NP-16: a new type, a replaced list, a rate field by field */
START_TEST(agents__override_member_by_member)
{
	const struct netpol_type *t;

	np_good("{\n\"agents\":{\n\"mine\":{\"domains\":[\"b.example\"],\n\"addDomains\":[\"*.c."
		"example:"
		"8443\"],\"presets\":[\"npm\"]},\n\"qe-test-generator\":{\"rate\":{\"perMinute\":"
		"999},"
		"\"allowCidr\":[\"10.1.0.0/16\"]},\n"
		"\"qe-quality-analyzer\":{\"presets\":[\"openai\"],\"wildcardApex\":false}}}");
	t = netpol_policy_type(np, "mine");
	ck_assert_str_eq(t->name, "mine");
	ck_assert_str_eq(domains("mine"),
			 "b.example,registry.npmjs.org,www.npmjs.com,*.c.example:8443");
	ck_assert_uint_eq(t->rate.per_minute, 10); /* a new one begins as default */
	ck_assert_uint_eq(netpol_rules_at(t->rules, 0)->where.line, 3);
	ck_assert_str_eq(netpol_rules_at(t->rules, 1)->where.file, "policy.json:4: preset npm");
	ck_assert_uint_eq(netpol_rules_at(t->rules, 3)->where.line, 4);
	t = netpol_policy_type(np, "qe-test-generator");
	ck_assert_uint_eq(t->rate.per_minute, 999);
	ck_assert_uint_eq(t->rate.burst, 10);
	ck_assert_uint_eq(t->where[NETPOL_KEY_RATE].line, 5);
	ck_assert_uint_eq(t->n_cidrs, 1);
	ck_assert_str_eq(domains("qe-test-generator"), A ",registry.npmjs.org,api.github.com");
	ck_assert_str_eq(domains("qe-quality-analyzer"), A ",api.openai.com");
	ck_assert(!netpol_policy_type(np, "qe-quality-analyzer")->wildcard_apex);
}
END_TEST

START_TEST(common__holds_for_all_types_and_gives_way)
{
	np_good("{\"mode\":\"report\",\"wildcardApex\":false,\"sni\":\"audit\",\"limits\":{"
		"\"tunnels\":5},"
		"\"agents\":{\"default\":{\"mode\":\"enforce\",\"limits\":{\"idleS\":30}},\"new\":{"
		"}}}");
	for (size_t i = 0; i < np->n_types; i++) {
		const struct netpol_type *t = &np->types[i];
		const bool own = strcmp(t->name, "default") == 0;

		ck_assert_int_eq(t->mode, own ? NETPOL_MODE_ENFORCE : NETPOL_MODE_REPORT);
		ck_assert_int_eq(t->sni, NETPOL_SNI_AUDIT);
		ck_assert(!t->wildcard_apex);
		ck_assert_uint_eq(t->limits.tunnels, 5);
		ck_assert_uint_eq(t->limits.idle_s, own ? 30 : 600);
		ck_assert_uint_eq(t->limits.connections, 128);
	}
}
END_TEST

START_TEST(sections__of_several_files_add_up)
{
	const struct np_text texts[] = {
		{ "policy.json", NP_AGENT("default", "\"domains\":[\"a.example\"]"), false },
		{ "10.json", "{\"mode\":\"report\"}", false },
		{ "20.json", NP_AGENT("qx-partner", "\"domains\":[]"), false },
	};

	ck_assert_ok(np_build(texts, AQE_COUNT(texts)), np_err);
	ck_assert_str_eq(domains("default"), "a.example");
	ck_assert_str_eq(domains("qx-partner"), "");
	ck_assert_int_eq(netpol_policy_type(np, "default")->mode, NETPOL_MODE_REPORT);
	ck_assert_str_eq(netpol_policy_type(np, "default")->where[NETPOL_KEY_MODE].file, "10.json");
}
END_TEST

/* An empty list is a denial of everything, not of nothing. */
START_TEST(empty_list__denies_all)
{
	np_good(NP_AGENT("default", "\"domains\":[]"));
	ck_assert_str_eq(np_reason("default", A, 443, NETPOL_PROTO_CONNECT), "domain_not_allowed");
}
END_TEST

#define GATEWAY(name, members) "{\"gateways\":{\"" name "\":{" members "}}}"
#define UP                     "\"upstream\":\"https://api.example.com/v1\""

static const struct {
	const char *json, *says;
} bad[] = {
	{ "[]", "wanted an object" },
	{ "{\"mode\":\"off\"}", "'/mode' wanted enforce or report" },
	{ "{\"mode\":1}", "'/mode' wanted enforce or report" },
	{ "{\"sni\":\"maybe\"}", "'/sni' wanted enforce, audit or off" },
	{ "{\"wildcardApex\":\"no\"}", "'/wildcardApex' wanted true or false" },
	{ "{\"limits\":{\"tunnels\":0}}", "'/limits/tunnels' wanted 1 to 4096" },
	{ "{\"limits\":{\"idleS\":-1}}", "'/limits/idleS' wanted 1 to 604800" },
	{ "{\"agents\":[]}", "'/agents' wanted an object" },
	{ NP_AGENT("default", "\"domains\":[1]"), "'/agents/default/domains/0' wanted a string" },
	{ "{\"agents\":{\"a\":1}}", "'/agents/a' wanted an object" },
	{ NP_AGENT("Bad", ""), "no good name" },
	{ NP_AGENT("default", "\"access\":\"host\""), "wanted isolated or whitelisted" },
	{ NP_AGENT("default", "\"domains\":[\"a.b\",\"*.com\"]"),
	  "'/agents/default/domains/1' entry '*.com': a wildcard over a public suffix" },
	{ NP_AGENT("default", "\"addDomains\":[\"https://a.b\"]"), "a URL or a path" },
	{ NP_AGENT("default", "\"presets\":[\"all\"]"), "wanted anthropic, github" },
	{ NP_AGENT("default", "\"allowCidr\":[\"0.0.0.0/0\"]"), "not inside a private network" },
	{ NP_AGENT("default", "\"allowCidr\":[5]"), "wanted a string" },
	{ NP_AGENT("default", "\"rate\":{\"perMinute\":0}"),
	  "'/agents/default/rate/perMinute' wanted 1 to 1000000" },
	{ NP_AGENT("default", "\"rate\":{\"perHour\":0}"), "wanted 1 to 1000000" },
	{ NP_AGENT("default", "\"rate\":{\"burst\":0}"), "wanted 1 to 1000000" },
	{ NP_AGENT("default", "\"rate\":{\"burst\":1.5}"), "wanted 1 to 1000000" },
	{ NP_AGENT("default", "\"timeoutMs\":0"), "wanted 1 to 3600000" },
	{ NP_AGENT("default", "\"hostHeader\":\"keep\""), "wanted rewrite or refuse" },
	{ NP_AGENT("default", "\"socks\":1"), "wanted true or false" },
	{ GATEWAY("a", ""), "wanted an object with 'upstream'" },
	{ GATEWAY("A", UP), "wanted a name" },
	{ GATEWAY("a", "\"upstream\":\"http://x.example\""), "wanted https://" },
	{ GATEWAY("a", "\"upstream\":\"https://x.example/\""), "wanted https://" },
	{ GATEWAY("a", "\"upstream\":\"https://localhost\""), "no loopback" },
	{ GATEWAY("a", "\"upstream\":\"https://a.localhost:8443/x\""), "no loopback" },
	{ GATEWAY("a", "\"upstream\":\"https://127.8.0.1\""), "no loopback" },
	{ GATEWAY("a", "\"upstream\":\"https://[::1]:443\""), "no loopback" },
	{ GATEWAY("a", "\"upstream\":\"https://u@x.example\""), "wanted https://" },
	{ GATEWAY("a", "\"upstream\":\"https://x.example:0\""), "wanted https://" },
	{ GATEWAY("a", "\"upstream\":\"https://x.example/a?b\""), "wanted https://" },
	{ GATEWAY("a", UP ",\"credentialFile\":\"key\""), "wanted an absolute path" },
	{ GATEWAY("a", UP ",\"header\":\"host\""), "no framing header" },
	{ GATEWAY("a", UP ",\"header\":\"X-Key\""), "in lower case" },
	{ GATEWAY("a", UP ",\"prefix\":\"a\\nb\""), "printable ASCII" },
	{ GATEWAY("a", UP ",\"types\":[]"), "wanted agent types" },
	{ GATEWAY("a", "\"upstream\":\"https://x.example/a/../b\""), "wanted https://" },
	{ GATEWAY("a", "\"upstream\":\"https://x.example/a%2fb\""), "wanted https://" },
	{ GATEWAY("a", UP ",\"caFile\":\"ca\""), "wanted an absolute path" },
	{ GATEWAY("a", UP ",\"methods\":[]"), "wanted 1 to 64" },
	{ GATEWAY("a", UP ",\"methods\":[\"get\"]"), "wanted a method in upper case" },
	{ GATEWAY("a", UP ",\"methods\":[\"TRACE\"]"), "not CONNECT or TRACE" },
	{ GATEWAY("a", UP ",\"paths\":[\"v1\"]"), "wanted a path" },
	{ GATEWAY("a", UP ",\"paths\":[\"/v1*\"]"), "wanted a path" },
	{ GATEWAY("a", UP ",\"paths\":[\"/*/x\"]"), "wanted a path" },
	{ GATEWAY("a", UP ",\"paths\":[\"/v1/../x\"]"), "wanted a path" },
	{ GATEWAY("a", UP ",\"timeoutMs\":999"), "wanted 1000 to 3600000" },
	{ GATEWAY("a", UP ",\"maxRequestBytes\":-1"), "wanted 0 to" },
	{ GATEWAY("a", UP ",\"types\":[\"no-such\"]"), "is no agent type" },
	{ GATEWAY("a", UP ",\"rate\":{\"perMinute\":5}"), "wanted perMinute, perHour and burst" },
	{ "{\"publicSuffixFile\":\"list\"}", "wanted an absolute path" },
	{ "{\"cluster\":{}}", "has no 'address'" },
	{ "{\"cluster\":{\"address\":\"redis\"}}", "wanted HOST:PORT or" },
	{ "{\"cluster\":{\"address\":\"/a/../b\"}}", "wanted HOST:PORT or" },
	{ "{\"cluster\":{\"address\":\"r:6379\",\"onStoreError\":\"x\"}}", "wanted local or deny" },
	{ "{\"cluster\":{\"address\":\"r:6379\",\"timeoutMs\":0}}", "wanted 1 to" },
	{ "{\"cluster\":{\"address\":\"r:6379\",\"share\":\"host\"}}", "wanted type or agent" },
	{ "{\"cluster\":{\"address\":\"r:6379\",\"db\":65536}}", "wanted 0 to 65535" },
	{ "{\"cluster\":{\"address\":\"r:6379\",\"tls\":true}}",
	  "wanted an object, and HOST:PORT" },
	{ "{\"cluster\":{\"address\":\"/run/r\",\"tls\":{}}}", "wanted an object, and HOST:PORT" },
	{ "{\"cluster\":{\"address\":\"r:6379\",\"tls\":{\"caFile\":\"ca\"}}}",
	  "wanted an absolute path" },
	{ "{\"cluster\":{\"address\":\"r:6379\",\"tls\":{\"serverName\":\"1.2.3.4\"}}}",
	  "wanted a host's name" },
	{ "{\"cluster\":{\"address\":\"r:6379\",\"username\":\"a b\"}}", "printable ASCII" },
	{ NP_AGENT("default", "\"sharedRate\":{\"perMinute\":5,\"burst\":1}"),
	  "wanted perMinute, perHour and burst" },
	{ NP_AGENT("default", "\"sharedRate\":{\"perMinute\":0}"), "wanted 1 to" },
	{ "{\"upstreamProxy\":\"proxy\"}", "wanted HOST:PORT" },
	{ "{\"upstreamProxy\":{}}", "has no 'address'" },
	{ "{\"upstreamProxy\":{\"address\":\"p\"}}", "wanted HOST:PORT" },
	{ "{\"upstreamProxy\":{\"address\":\"p:1\",\"credentialFile\":\"k\"}}",
	  "wanted an absolute path" },
};

START_TEST(build__refuses_with_place_and_reason)
{
	const struct np_text text = { "/etc/x/policy.json", bad[_i].json, false };

	ck_assert_fault(np_build(&text, 1), AQE_E_MALFORMED, np_err, bad[_i].says);
	ck_assert_msg(strncmp(np_err.text, "/etc/x/policy.json:1: '", 23) == 0, "%s", np_err.text);
	ck_assert_ptr_null(np);
}
END_TEST

START_TEST(services__are_read_whole)
{
	const struct netpol_gateway *g;

	np_good("{\"upstreamProxy\":\"proxy.example:3128\",\"cluster\":{\"address\":\"/run/"
		"redis.sock\","
		"\"passwordFile\":\"/etc/aqe/"
		"redis\",\"prefix\":\"p:\",\"onStoreError\":\"deny\",\"timeoutMs\":50,"
		"\"username\":\"u\",\"db\":7,\"share\":\"agent\"},"
		"\"agents\":{\"qx-partner\":{\"sharedRate\":{\"perMinute\":1,\"perHour\":2,"
		"\"burst\":3}}},"
		"\"gateways\":{\"claude\":{" UP
		",\"credentialFile\":\"/etc/aqe/key\",\"header\":\"x-api-key\","
		"\"types\":[\"qx-partner\"],\"rate\":{\"perMinute\":5,\"perHour\":6,\"burst\":7}},"
		"\"open\":{" UP ",\"prefix\":\"Bearer \"}}}");
	ck_assert_str_eq(np->upstream_proxy, "proxy.example:3128");
	ck_assert_str_eq(np->cluster.address, "/run/redis.sock");
	ck_assert_str_eq(np->cluster.password_file, "/etc/aqe/redis");
	ck_assert_str_eq(np->cluster.prefix, "p:");
	ck_assert_int_eq(np->cluster.on_store_error, NETPOL_STORE_DENY);
	ck_assert_uint_eq(np->cluster.timeout_ms, 50);
	ck_assert_str_eq(np->cluster.username, "u");
	ck_assert_uint_eq(np->cluster.db, 7);
	ck_assert_int_eq(np->cluster.share, NETPOL_SHARE_AGENT);
	ck_assert(netpol_policy_type(np, "qx-partner")->has_shared);
	ck_assert_uint_eq(netpol_policy_type(np, "qx-partner")->shared.burst, 3);
	ck_assert(!netpol_policy_type(np, "default")->has_shared);
	ck_assert_uint_eq(np->n_gateways, 2);
	g = netpol_policy_gateway(np, "qx-partner", "claude");
	ck_assert_ptr_nonnull(g);
	ck_assert_str_eq(g->upstream, "https://api.example.com/v1");
	ck_assert_str_eq(g->header, "x-api-key");
	ck_assert(g->has_rate && g->rate.burst == 7);
	ck_assert_ptr_null(netpol_policy_gateway(np, "default", "claude"));
	ck_assert_ptr_null(netpol_policy_gateway(np, "default", "none"));
	g = netpol_policy_gateway(np, "default", "open");
	ck_assert_str_eq(g->header, "authorization");
	ck_assert_str_eq(g->prefix, "Bearer ");
	ck_assert_ptr_null(g->credential_file);
}
END_TEST

/* ---- tiers ---- */

#define SYSTEM                                                                                 \
	"{\"agents\":{\"default\":{\"domains\":[\"*.a.example\",\"b.example:22\"],\"access\":" \
	"\"whitelisted\",\"rate\":{\"perMinute\":20},\"limits\":{\"bytesUp\":100},\"mode\":"   \
	"\"report\","                                                                          \
	"\"sni\":\"audit\",\"webSocket\":true}}}"

static const struct {
	const char *json;
	const char *says; /* NULL: good */
} tiers[] = {
	{ "{}", NULL },
	{ "{\"mode\":\"enforce\"}", NULL },
	{ "{\"sni\":\"enforce\",\"wildcardApex\":false}", NULL },
	{ NP_AGENT("default", "\"domains\":[\"x.a.example\",\"*.y.a.example\",\"b.example:22\"]"),
	  NULL },
	{ NP_AGENT("default", "\"domains\":[]"), NULL },
	{ NP_AGENT("default", "\"access\":\"isolated\""), NULL },
	{ NP_AGENT("default", "\"rate\":{\"perMinute\":19,\"burst\":1}"), NULL },
	{ NP_AGENT("default", "\"limits\":{\"bytesUp\":99,\"bytesDown\":5,\"idleS\":1}"), NULL },
	{ NP_AGENT("default", "\"webSocket\":false,\"socks\":false,\"hostHeader\":\"refuse\""),
	  NULL },
	{ NP_AGENT("default", "\"timeoutMs\":1"), NULL },
	{ NP_AGENT("default", "\"domains\":[\"c.example\"]"),
	  "'/agents/default/domains' admits more" },
	{ NP_AGENT("default", "\"domains\":[\"b.example\"]"), "admits more for 'default'" },
	{ NP_AGENT("default", "\"domains\":[\"a.example:22\"]"), "admits more for 'default'" },
	{ NP_AGENT("default", "\"rate\":{\"perMinute\":21}"),
	  "'/agents/default/rate' admits more" },
	{ NP_AGENT("default", "\"rate\":{\"burst\":4}"), "admits more" },
	{ NP_AGENT("default", "\"timeoutMs\":30001"), "'/agents/default/timeoutMs' admits more" },
	{ NP_AGENT("default", "\"limits\":{\"bytesUp\":0}"),
	  "'/agents/default/limits' admits more" },
	{ NP_AGENT("default", "\"limits\":{\"tunnels\":65}"), "admits more" },
	{ NP_AGENT("default", "\"sni\":\"off\""), "'/agents/default/sni' admits more" },
	{ NP_AGENT("qx-partner", "\"mode\":\"report\""), "'/agents/qx-partner/mode' admits more" },
	{ "{\"mode\":\"report\"}", "'/mode' admits more for 'qe-test-generator'" },
	{ "{\"sni\":\"audit\"}", "'/sni' admits more" },
	{ NP_AGENT("qx-partner", "\"webSocket\":true"), "'/agents/qx-partner/webSocket' admits" },
	{ NP_AGENT("default", "\"presets\":[\"npm\"]"), "is for the system's policy alone" },
	{ NP_AGENT("default", "\"addDomains\":[]"), "is for the system's policy alone" },
	{ NP_AGENT("default", "\"allowCidr\":[]"), "is for the system's policy alone" },
	{ NP_AGENT("new", ""), "no agent type of the system's policy" },
	{ GATEWAY("a", UP), "is for the system's policy alone" },
	{ "{\"cluster\":{\"address\":\"a:1\"}}", "is for the system's policy alone" },
	{ "{\"publicSuffixFile\":\"/l\"}", "is for the system's policy alone" },
	{ "{\"upstreamProxy\":\"a:1\"}", "is for the system's policy alone" },
};

START_TEST(user__can_only_tighten)
{
	const struct np_text texts[] = { { "sys.json", SYSTEM, false },
					 { "user.json", tiers[_i].json, true } };
	const int rc = np_build(texts, AQE_COUNT(texts));

	if (!tiers[_i].says) {
		ck_assert_ok(rc, np_err);
		return;
	}
	ck_assert_fault(rc, AQE_E_MALFORMED, np_err, tiers[_i].says);
	ck_assert_msg(strncmp(np_err.text, "user.json:1: ", 13) == 0, "%s", np_err.text);
}
END_TEST

START_TEST(user__takes_effect_and_says_so)
{
	const struct np_text texts[] = {
		{ "sys.json", SYSTEM, false },
		{ "user.json", NP_AGENT("default", "\"domains\":[\"x.a.example\"]"), true },
	};

	ck_assert_ok(np_build(texts, AQE_COUNT(texts)), np_err);
	ck_assert_str_eq(domains("default"), "x.a.example");
	ck_assert_str_eq(netpol_policy_type(np, "default")->where[NETPOL_KEY_DOMAINS].file,
			 "user.json");
}
END_TEST

/* Without a system's policy a user's stands alone: the reader marks it so. */
START_TEST(user__alone_may_widen)
{
	const struct np_text text = { "user.json",
				      NP_AGENT("default", "\"domains\":[\"c.example\"]"), false };

	ck_assert_ok(np_build(&text, 1), np_err);
	ck_assert_str_eq(domains("default"), "c.example");
}
END_TEST

/* ---- what is in force, as a section ---- */

#define EVERYTHING                                                                           \
	"{\"upstreamProxy\":\"p.example:1\",\"cluster\":{\"address\":\"r.example:6379\","    \
	"\"tls\":{\"caFile\":\"/etc/ca\",\"serverName\":\"redis.example\"}},"                \
	"\"gateways\":{\"g\":{" UP ",\"types\":[\"default\",\"qx-partner\"]},\"h\":{" UP     \
	"}},\"agents\":{"                                                                    \
	"\"default\":{\"domains\":[\"bücher.example\",\"*.x.example:8443\",\"[2606::1]\"]," \
	"\"allowCidr\":[\"10.0.0.0/8\",\"fd00::/"                                            \
	"8\"],\"mode\":\"report\",\"sni\":\"off\",\"webSocket\":true,"                       \
	"\"socks\":false,\"transparent\":false,\"hostHeader\":\"refuse\",\"access\":"        \
	"\"whitelisted\","                                                                   \
	"\"limits\":{\"bytesDown\":7}},\"qx-partner\":{\"presets\":[\"github\"]}}}"

START_TEST(emit__comes_back_the_same)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);
	struct np_text again = { "snapshot", NULL, false };
	char digest[AQE_DIGEST_TEXT];

	np_good(EVERYTHING);
	memcpy(digest, np->digest, sizeof(digest));
	ck_assert_ok(netpol_policy_emit(np, NULL, &b, &np_err), np_err);
	again.json = aqe_buf_str(&b);
	ck_assert_ok(np_build(&again, 1), np_err);
	ck_assert_str_eq(np->digest, digest);
	ck_assert(np->cluster.tls);
	ck_assert_str_eq(np->cluster.ca_file, "/etc/ca");
	ck_assert_str_eq(np->cluster.server_name, "redis.example");
	ck_assert_str_eq(domains("default"), "xn--bcher-kva.example,*.x.example:8443,[2606::1]");
}
END_TEST

START_TEST(emit__of_one_type_is_enough_for_it)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);
	struct np_text again = { "snapshot", NULL, false };

	np_good(EVERYTHING);
	ck_assert_ok(netpol_policy_emit(np, netpol_policy_type(np, "default"), &b, &np_err),
		     np_err);
	ck_assert_ptr_null(strstr(aqe_buf_str(&b), "qx-partner"));
	again.json = aqe_buf_str(&b);
	ck_assert_ok(np_build(&again, 1), np_err);
	ck_assert_uint_eq(np->n_gateways, 2);
	ck_assert_int_eq(netpol_policy_type(np, "default")->mode, NETPOL_MODE_REPORT);
	ck_assert_uint_eq(netpol_policy_type(np, "default")->limits.bytes_down, 7);
}
END_TEST

START_TEST(digest__is_of_what_is_in_force)
{
	char digest[AQE_DIGEST_TEXT];

	np_good("{}");
	memcpy(digest, np->digest, sizeof(digest));
	np_good("{\n\n\"agents\":{\"default\":{\"sni\":\"enforce\"}}}"); /* says nothing new */
	ck_assert_str_eq(np->digest, digest);
	np_good("{\"agents\":{\"default\":{\"sni\":\"audit\"}}}");
	ck_assert_str_ne(np->digest, digest);
}
END_TEST

/* ---- reload ---- */

struct source {
	const char *json;
	unsigned loads;
};

static int load(void *self, struct netpol_policy **ret, struct aqe_err *e)
{
	struct source *s = self;
	const struct np_text text = { "live.json", s->json, false };
	const int rc = np_build(&text, 1);

	s->loads++;
	if (rc) {
		*e = np_err;
		return rc;
	}
	*ret = np;
	np = NULL;
	return AQE_OK;
}

START_TEST(live__keeps_the_last_good_one)
{
	struct source s = { "{}", 0 };
	struct netpol_live live = { NULL, load, &s, AQE_ERR_INIT };
	struct aqe_err e = AQE_ERR_INIT;
	struct netpol_policy *held;
	bool changed = false;

	ck_assert_ok(netpol_live_reload(&live, &changed, &e), e);
	ck_assert(changed);
	held = netpol_policy_ref(live.now);
	ck_assert_ok(netpol_live_reload(&live, &changed, &e), e);
	ck_assert(!changed);
	s.json = "{\"mode\":\"nonsense\"}";
	ck_assert_fault(netpol_live_reload(&live, &changed, &e), AQE_E_MALFORMED, e, "'/mode'");
	ck_assert_ptr_nonnull(live.now);
	ck_assert_int_eq(live.last.code, AQE_E_MALFORMED);
	ck_assert_int_eq(netpol_policy_type(live.now, "default")->mode, NETPOL_MODE_ENFORCE);
	s.json = "{\"mode\":\"report\"}";
	ck_assert_ok(netpol_live_reload(&live, &changed, &e), e);
	ck_assert(changed);
	ck_assert_int_eq(live.last.code, AQE_OK);
	ck_assert_int_eq(netpol_policy_type(live.now, "default")->mode, NETPOL_MODE_REPORT);
	/* a connection's own reference outlives the swap */
	ck_assert_int_eq(netpol_policy_type(held, "default")->mode, NETPOL_MODE_ENFORCE);
	netpol_policy_unref(held);
	netpol_live_done(&live);
	ck_assert_uint_eq(s.loads, 4);
}
END_TEST

/* First load bad: there is no policy, and that denies. */
START_TEST(live__without_any_good_one_denies)
{
	struct source s = { "{\"mode\":\"nonsense\"}", 0 };
	struct netpol_live live = { NULL, load, &s, AQE_ERR_INIT };
	const struct netpol_request rq = { NETPOL_PROTO_CONNECT, A, strlen(A), 443 };
	struct netpol_answer n;
	bool changed = false;

	ck_assert_int_eq(netpol_live_reload(&live, &changed, NULL), AQE_E_MALFORMED);
	ck_assert_ptr_null(live.now);
	netpol_decide(NULL, NULL, 0, &rq, NETPOL_CONSUME, &n);
	ck_assert_int_eq(n.verdict, NETPOL_DENY);
	ck_assert_str_eq(netpol_reason_name(n.reason), "policy_unavailable");
	netpol_live_done(&live);
}
END_TEST

/* The table of the policy file's shape and the one of its values name the same members. */
START_TEST(keys__are_those_of_the_policy_file)
{
	for (size_t i = 0; i < NETPOL_AGENT_KEYS_COUNT; i++) {
		char path[80];
		size_t found = 0;

		(void)snprintf(path, sizeof(path), "network.agents.*.%s",
			       NETPOL_AGENT_KEYS[i].name);
		for (size_t k = 0; k < HARD_POLICY_KEYS_COUNT; k++)
			found += strcmp(HARD_POLICY_KEYS[k].path, path) == 0;
		(void)snprintf(path, sizeof(path), "network.%s", NETPOL_AGENT_KEYS[i].name);
		for (size_t k = 0; k < HARD_POLICY_KEYS_COUNT; k++)
			found += strcmp(HARD_POLICY_KEYS[k].path, path) == 0;
		ck_assert_msg(found == 1U + NETPOL_AGENT_KEYS[i].common, "%s",
			      NETPOL_AGENT_KEYS[i].name);
	}
	for (size_t i = 0; i < NETPOL_LIMIT_ROWS_COUNT; i++) {
		char path[80];
		size_t found = 0;

		(void)snprintf(path, sizeof(path), "network.limits.%s", NETPOL_LIMIT_ROWS[i].name);
		for (size_t k = 0; k < HARD_POLICY_KEYS_COUNT; k++)
			found += strcmp(HARD_POLICY_KEYS[k].path, path) == 0;
		ck_assert_msg(found == 1, "%s", path);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netpolicy_policy");
	TCase *t = tcase_create("policy");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, defaults__are_the_original_s, 0, (int)AQE_COUNT(defaults));
	tcase_add_test(t, defaults__of_the_other_types);
	tcase_add_test(t, type__unknown_is_the_default);
	tcase_add_test(t, agents__override_member_by_member);
	tcase_add_test(t, common__holds_for_all_types_and_gives_way);
	tcase_add_test(t, sections__of_several_files_add_up);
	tcase_add_test(t, empty_list__denies_all);
	tcase_add_loop_test(t, build__refuses_with_place_and_reason, 0, (int)AQE_COUNT(bad));
	tcase_add_test(t, services__are_read_whole);
	tcase_add_loop_test(t, user__can_only_tighten, 0, (int)AQE_COUNT(tiers));
	tcase_add_test(t, user__takes_effect_and_says_so);
	tcase_add_test(t, user__alone_may_widen);
	tcase_add_test(t, emit__comes_back_the_same);
	tcase_add_test(t, emit__of_one_type_is_enough_for_it);
	tcase_add_test(t, digest__is_of_what_is_in_force);
	tcase_add_test(t, live__keeps_the_last_good_one);
	tcase_add_test(t, live__without_any_good_one_denies);
	tcase_add_test(t, keys__are_those_of_the_policy_file);
	suite_add_tcase(s, t);
	return unit_run(s);
}
