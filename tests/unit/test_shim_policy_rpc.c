/* SPDX-License-Identifier: MIT */
/* The protocol of `aqe policy serve`. NP-nn are the rows of the original's own tests. */
#include "shim/aqe/policy_rpc.h"

#include "shim/core/arena.h"
#include "shim/core/cleanup.h"
#include "tests/unit/netpolicy_util.h"

#define S ((int64_t)1000000000)
#define A "api.anthropic.com"

static const char *policy_text;
static struct shim_rpc rpc;
static struct netpol_live live;
static struct aqe_arena *arena;
static struct shim_rpc_record last; /* of the audit hook; texts are in `arena` */
static unsigned audited;
static bool audit_fails;

static int load(void *self, struct netpol_policy **ret, struct aqe_err *e)
{
	const struct np_text text = { "policy.json", policy_text, false };
	const int rc = np_build(&text, 1);

	(void)self;
	if (rc) {
		*e = np_err;
		return rc;
	}
	*ret = np;
	np = NULL;
	return AQE_OK;
}

static int audit(void *self, const struct shim_rpc_record *r, struct aqe_err *e)
{
	(void)self;
	if (audit_fails)
		return aqe_err_set(e, AQE_E_SYS, 0, "audit log: disk full");
	last = *r;
	last.host = r->host ? aqe_arena_dup(arena, r->host) : NULL;
	last.agent = aqe_arena_dup(arena, r->agent);
	last.type = aqe_arena_dup(arena, r->type);
	last.rule = r->rule ? aqe_arena_dup(arena, r->rule) : NULL;
	last.method = r->method ? aqe_arena_dup(arena, r->method) : NULL;
	audited++;
	return AQE_OK;
}

static void setup(void)
{
	bool changed = false;
	struct aqe_err e = AQE_ERR_INIT;

	policy_text = "{\"agents\":{\"t\":{\"domains\":[\"*.example.com\",\"b.example:8443\"],"
		      "\"rate\":{\"perMinute\":2,\"perHour\":10,\"burst\":2}},"
		      "\"r\":{\"domains\":[],\"mode\":\"report\"}}}";
	arena = aqe_arena_new((size_t)16 << 20);
	live = (struct netpol_live){ NULL, load, NULL, AQE_ERR_INIT };
	ck_assert_ok(netpol_live_reload(&live, &changed, &e), e);
	rpc = (struct shim_rpc){ &live, NULL, audit, NULL, NULL };
	ck_assert_ok(netpol_limiters_new(8, &rpc.limiters, &e), e);
	audited = 0;
	audit_fails = false;
}

static void teardown(void)
{
	netpol_limiters_free(rpc.limiters);
	netpol_live_done(&live);
	aqe_arena_free(arena);
	np_drop();
}

/* The answer to a line. */
static const struct aqe_json *ask(int64_t now, const char *line)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(1 << 20);
	struct aqe_json *root = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	const struct aqe_json *version;

	shim_rpc_line(&rpc, line, strlen(line), now, &out);
	ck_assert_uint_gt(out.len, 1);
	ck_assert_ptr_eq(memchr(out.p, '\n', out.len), out.p + out.len - 1);
	ck_assert_ok(aqe_json_parse(arena, out.p, out.len - 1, &AQE_JSON_LIMITS_DEFAULT, &root, &e),
		     e);
	version = aqe_json_get(root, "version");
	ck_assert(version && strcmp(version->text, "1") == 0);
	return root;
}

static const char *str(const struct aqe_json *o, const char *name)
{
	const struct aqe_json *v = aqe_json_get(o, name);

	return v && v->text                    ? v->text
	       : v && v->type == AQE_JSON_BOOL ? v->boolean ? "true" : "false"
					       : "none";
}

#define AGENT(op, type, agent) "{\"op\":\"" op "\",\"type\":\"" type "\",\"agent\":\"" agent "\""
#define HOST(host)             ",\"host\":\"" host "\""

/* NP-08, NP-09, NP-11 */
START_TEST(check__tells_verdict_reason_rule_policy)
{
	const struct aqe_json *a =
		ask(0, AGENT("check", "t", "a") HOST("X.example.com.") ",\"id\":7}");

	ck_assert_str_eq(str(a, "ok"), "true");
	ck_assert_str_eq(str(a, "id"), "7");
	ck_assert_str_eq(str(a, "verdict"), "allow");
	ck_assert_str_eq(str(a, "host"), "x.example.com");
	ck_assert_str_eq(str(aqe_json_get(a, "rule"), "entry"), "*.example.com");
	ck_assert_str_eq(str(a, "policy"), "t");
	ck_assert(aqe_is_sha256_digest(str(a, "digest")));
	a = ask(0, AGENT("check", "t", "a") HOST("evil.test") "}");
	ck_assert_str_eq(str(a, "verdict"), "deny");
	ck_assert_str_eq(str(a, "reason"), "domain_not_allowed");
	ck_assert_str_eq(str(a, "host"), "evil.test");
	a = ask(0, AGENT("check", "no-such-type", "a") HOST(A) "}");
	ck_assert_str_eq(str(a, "verdict"), "allow");
	ck_assert_str_eq(str(a, "policy"), "default");
	a = ask(0, AGENT("check", "t", "a") HOST("a..b") "}");
	ck_assert_str_eq(str(a, "verdict"), "invalid");
	ck_assert_str_eq(str(a, "why"), "empty label");
	a = ask(0,
		AGENT("check", "t", "a") HOST("b.example") ",\"port\":8443,\"proto\":\"connect\"}");
	ck_assert_str_eq(str(a, "verdict"), "allow");
	a = ask(0, AGENT("check", "r", "a") HOST("evil.test") "}");
	ck_assert_str_eq(str(a, "verdict"), "allow");
	ck_assert_str_eq(str(a, "wouldDeny"), "true");
	ck_assert_uint_eq(audited, 0);
}
END_TEST

/* NP-10, NP-12, NP-13, NP-17, NP-18 */
START_TEST(record__spends_and_is_written_down)
{
	const struct aqe_json *a;

	for (int i = 0; i < 2; i++) {
		ck_assert_str_eq(str(ask(0, AGENT("check", "t", "a") HOST("x.example.com") "}"),
				     "verdict"),
				 "allow");
		a = ask(0, AGENT("record", "t", "a")
				   HOST("x.example.com") ",\"method\":\"GET\",\"status\":200,"
							 "\"responseMs\":150}");
		ck_assert_str_eq(str(a, "verdict"), "allow");
	}
	ck_assert_uint_eq(audited, 2);
	ck_assert_str_eq(last.host, "x.example.com");
	ck_assert_str_eq(last.method, "GET");
	ck_assert_str_eq(last.rule, "*.example.com");
	ck_assert_int_eq(last.response_ms, 150);
	ck_assert_int_eq(last.status, 200);
	a = ask(0, AGENT("check", "t", "a") HOST("x.example.com") "}");
	ck_assert_str_eq(str(a, "verdict"), "limit");
	ck_assert_str_eq(str(a, "reason"), "rate_limit_exceeded");
	ck_assert_str_eq(str(a, "retryAfterMs"), "60000");
	a = ask(0, AGENT("peek", "t", "a") "}");
	ck_assert_str_eq(str(a, "limited"), "true");
	ck_assert_str_eq(str(a, "currentRate"), "2");
	ck_assert_str_eq(str(a, "remaining"), "0");
	ck_assert_str_eq(str(a, "resetInMs"), "60000");
	/* another agent has its own */
	ck_assert_str_eq(str(ask(0, AGENT("peek", "t", "b") "}"), "remaining"), "2");
	ck_assert_str_eq(str(ask(0, AGENT("reset", "t", "a") "}"), "ok"), "true");
	ck_assert_str_eq(str(ask(0, AGENT("peek", "t", "a") "}"), "currentRate"), "0");
}
END_TEST

START_TEST(record__refused_is_written_down_and_costs_nothing)
{
	ck_assert_str_eq(str(ask(0, AGENT("record", "t", "a") HOST("evil.test") "}"), "verdict"),
			 "deny");
	ck_assert_uint_eq(audited, 1);
	ck_assert_int_eq(last.verdict, NETPOL_DENY);
	ck_assert_str_eq(last.host, "evil.test");
	ck_assert_ptr_null(last.rule);
	ck_assert_str_eq(str(ask(0, AGENT("record", "t", "a") HOST("a b") "}"), "verdict"),
			 "invalid");
	ck_assert_ptr_null(last.host);
	ck_assert_str_eq(str(ask(0, AGENT("peek", "t", "a") "}"), "remaining"), "2");
}
END_TEST

/* What cannot be recorded is refused. */
START_TEST(record__without_audit_is_no_answer)
{
	const struct aqe_json *a;

	audit_fails = true;
	a = ask(0, AGENT("record", "t", "a") HOST("x.example.com") "}");
	ck_assert_str_eq(str(a, "ok"), "false");
	ck_assert_str_eq(str(a, "verdict"), "none");
	ck_assert_str_eq(str(a, "error"), "audit log: disk full");
}
END_TEST

/* Names that the policy does not know share the default's bucket of their agent. */
START_TEST(unknown_types__do_not_multiply_buckets)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 50; i++) {
		char line[256];

		(void)snprintf(line, sizeof(line),
			       "{\"op\":\"record\",\"type\":\"fresh%u\",\"agent\":\"a\"" HOST(
				       A) "}",
			       i);
		n += strcmp(str(ask(0, line), "verdict"), "allow") == 0;
	}
	ck_assert_uint_eq(n, 3);
}
END_TEST

/* ---- overrides ---- */

static const struct {
	const char *type, *host, *override, *verdict;
} overrides[] = {
	{ "t", "x.example.com", "{}", "allow" },
	{ "t", "x.example.com", "{\"domains\":[\"x.example.com\"]}", "allow" },
	{ "t", "x.example.com", "{\"domains\":[\"y.example.com\"]}", "deny" },
	{ "t", "x.example.com", "{\"domains\":[]}", "deny" },
	{ "t", "evil.test", "{\"domains\":[\"evil.test\"]}", "deny" }, /* loosens nothing */
	{ "t", "example.com", "{\"wildcardApex\":false}", "deny" },
	{ "t", "example.com", "{\"wildcardApex\":true}", "allow" },
	{ "r", "evil.test", "{}", "allow" },
	{ "r", "evil.test", "{\"mode\":\"enforce\"}", "deny" },
	{ "t", "evil.test", "{\"mode\":\"report\"}", "deny" },
	{ "t", "x.example.com", "{\"rate\":{\"perMinute\":1000000,\"burst\":1000000}}", "allow" },
};

START_TEST(override__only_tightens)
{
	char line[512];

	(void)snprintf(line, sizeof(line),
		       "{\"op\":\"record\",\"type\":\"%s\",\"agent\":\"a\",\"host\":\"%s\","
		       "\"override\":%s}",
		       overrides[_i].type, overrides[_i].host, overrides[_i].override);
	ck_assert_str_eq(str(ask(0, line), "verdict"), overrides[_i].verdict);
}
END_TEST

/* A lower rate holds; a higher one does not help; both budgets are spent. */
START_TEST(override__rate_is_the_lower_one)
{
#define LOW \
	AGENT("record", "t", "a") HOST("x.example.com") ",\"override\":{\"rate\":{\"burst\":1}}}"
#define HIGH \
	AGENT("record", "t", "a") HOST("x.example.com") ",\"override\":{\"rate\":{\"burst\":99}}}"
#define OWN AGENT("record", "t", "a") HOST("x.example.com") "}"
	ck_assert_str_eq(str(ask(0, LOW), "verdict"), "allow");
	ck_assert_str_eq(str(ask(0, LOW), "verdict"), "limit");
	ck_assert_str_eq(str(ask(0, LOW), "verdict"), "limit");
	ck_assert_str_eq(str(ask(0, OWN), "verdict"), "allow");
	ck_assert_str_eq(str(ask(0, OWN), "verdict"), "limit");
	ck_assert_str_eq(str(ask(0, HIGH), "verdict"), "limit");
	ck_assert_str_eq(str(ask(0, AGENT("peek", "t", "a") "}"), "currentRate"), "2");
}
END_TEST

/* ---- what is wrong ---- */

static const struct {
	const char *line, *says;
} wrong[] = {
	{ "", "" },
	{ "hello", "" },
	{ "[]", "wanted an object" },
	{ "{}", "'op': wanted check" },
	{ "{\"op\":\"drop\"}", "'op': wanted check" },
	{ "{\"op\":1}", "" },
	{ "{\"op\":\"check\"}", "'type' is missing" },
	{ "{\"op\":\"check\",\"type\":\"t\"}", "'agent' is missing" },
	{ AGENT("check", "t", "a") "}", "'host' is missing" },
	{ AGENT("check", "t", "") "}", "wanted 1 to 128 bytes" },
	{ AGENT("check", "t", "a\\nb") HOST("x") "}", "control character" },
	{ AGENT("check", "t", "a") HOST("x") ",\"port\":65536}", "" },
	{ AGENT("check", "t", "a") HOST("x") ",\"proto\":\"ftp\"}", "'proto': wanted" },
	{ AGENT("check", "t", "a") HOST("x") ",\"status\":200}", "unknown member 'status'" },
	{ AGENT("peek", "t", "a") HOST("x") "}", "unknown member 'host'" },
	{ AGENT("check", "t", "a") HOST("x") ",\"op\":\"peek\"}", "" },
	{ AGENT("check", "t", "a") HOST("x") ",\"override\":[]}", "" },
	{ AGENT("check", "t", "a") HOST("x") ",\"override\":{\"sni\":\"off\"}}", "is not known" },
	{ AGENT("check", "t", "a") HOST("x") ",\"override\":{\"domains\":[\"*.com\"]}}",
	  "public suffix" },
	{ AGENT("check", "t", "a") HOST("x") ",\"override\":{\"domains\":[1]}}", "wanted texts" },
	{ AGENT("check", "t", "a") HOST("x") ",\"override\":{\"rate\":{\"burst\":0}}}",
	  "each 1 to" },
	{ AGENT("check", "t", "a") HOST("x") ",\"override\":{\"mode\":\"off\"}}",
	  "enforce or report" },
	{ AGENT("check", "t", "a") HOST("x") ",\"override\":{\"wildcardApex\":1}}", "a boolean" },
	{ AGENT("record", "t", "a") HOST("x.example.com") ",\"responseMs\":-1}", "" },
	{ "{\"op\":\"reload\",\"force\":true}", "unknown member 'force'" },
};

START_TEST(wrong__is_answered_with_an_error)
{
	const struct aqe_json *a = ask(0, wrong[_i].line);

	ck_assert_str_eq(str(a, "ok"), "false");
	ck_assert_str_ne(str(a, "code"), "none");
	ck_assert_str_eq(str(a, "verdict"), "none");
	ck_assert_msg(strstr(str(a, "error"), wrong[_i].says), "%s", str(a, "error"));
	ck_assert_uint_eq(audited, 0);
}
END_TEST

START_TEST(agents__are_bounded)
{
	const struct aqe_json *a = NULL;

	for (unsigned i = 0; i < 9; i++) {
		char line[256];

		(void)snprintf(line, sizeof(line),
			       "{\"op\":\"record\",\"type\":\"t\",\"agent\":\"a%u\"" HOST(
				       "x.example.com") "}",
			       i);
		a = ask(0, line);
	}
	ck_assert_str_eq(str(a, "ok"), "false");
	ck_assert_str_eq(str(a, "code"), "limit");
}
END_TEST

/* ---- reload, policy ---- */

START_TEST(reload__keeps_history_and_the_last_good_policy)
{
	const struct aqe_json *a;

	ck_assert_str_eq(str(ask(0, OWN), "verdict"), "allow");
	policy_text = "{\"agents\":{\"t\":{\"domains\":[\"*.com\"]}}}";
	a = ask(0, "{\"op\":\"reload\"}");
	ck_assert_str_eq(str(a, "ok"), "false");
	ck_assert_msg(strstr(str(a, "error"), "policy.json:1: "), "%s", str(a, "error"));
	ck_assert_str_eq(str(ask(0, AGENT("check", "t", "a") HOST("x.example.com") "}"), "verdict"),
			 "allow");
	policy_text = "{\"agents\":{\"t\":{\"domains\":[\"y.example.com\"],"
		      "\"rate\":{\"perMinute\":2,\"perHour\":10,\"burst\":9}}}}";
	a = ask(0, "{\"op\":\"reload\"}");
	ck_assert_str_eq(str(a, "changed"), "true");
	ck_assert_str_eq(str(ask(0, AGENT("check", "t", "a") HOST("x.example.com") "}"), "verdict"),
			 "deny");
	ck_assert_str_eq(str(ask(0, AGENT("peek", "t", "a") "}"), "currentRate"), "1");
	ck_assert_str_eq(str(ask(0, AGENT("peek", "t", "a") "}"), "remaining"), "1");
	ck_assert_str_eq(str(ask(0, "{\"op\":\"reload\"}"), "changed"), "false");
}
END_TEST

START_TEST(policy__is_what_is_in_force)
{
	const struct aqe_json *a = ask(0, "{\"op\":\"policy\",\"type\":\"t\"}");
	const struct aqe_json *t = aqe_json_at(a, "/network/agents/t");

	ck_assert_str_eq(str(a, "ok"), "true");
	ck_assert(aqe_json_has_str(aqe_json_get(t, "domains"), "*.example.com"));
	ck_assert_str_eq(str(aqe_json_get(t, "rate"), "perMinute"), "2");
}
END_TEST

START_TEST(without_a_policy__everything_is_an_error)
{
	netpol_live_done(&live);
	ck_assert_str_eq(str(ask(0, AGENT("check", "t", "a") HOST("x.example.com") "}"), "ok"),
			 "false");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("shim_policy_rpc");
	TCase *t = tcase_create("rpc");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, check__tells_verdict_reason_rule_policy);
	tcase_add_test(t, record__spends_and_is_written_down);
	tcase_add_test(t, record__refused_is_written_down_and_costs_nothing);
	tcase_add_test(t, record__without_audit_is_no_answer);
	tcase_add_test(t, unknown_types__do_not_multiply_buckets);
	tcase_add_loop_test(t, override__only_tightens, 0, (int)AQE_COUNT(overrides));
	tcase_add_test(t, override__rate_is_the_lower_one);
	tcase_add_loop_test(t, wrong__is_answered_with_an_error, 0, (int)AQE_COUNT(wrong));
	tcase_add_test(t, agents__are_bounded);
	tcase_add_test(t, reload__keeps_history_and_the_last_good_policy);
	tcase_add_test(t, policy__is_what_is_in_force);
	tcase_add_test(t, without_a_policy__everything_is_an_error);
	suite_add_tcase(s, t);
	return unit_run(s);
}
