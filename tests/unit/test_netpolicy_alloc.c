/* SPDX-License-Identifier: MIT */
/* Every allocation fails once: a policy is not built rather than built in part, a limiter is never
 * fuller than it was, a call is answered with an error. */
#include "netpolicy/limiters.h"
#include "shim/aqe/policy_rpc.h"
#include "shim/core/cleanup.h"
#include "tests/fakes/fake_alloc.h"
#include "tests/unit/netpolicy_util.h"

#define ROUNDS 20000 /* far more than any of these allocates */

static struct aqe_arena *arena;
static struct netpol_section section;

static const struct netpol_base base[] = {
	{ "t", true, "*.example.com,api.anthropic.com", { 60, 1000, 10 }, 30000 },
	{ "default", false, "api.anthropic.com", { 10, 100, 3 }, 30000 },
};

static void setup(void)
{
	static const char text[] =
		"{\"upstreamProxy\":\"p.example:1\",\"gateways\":{\"g\":{\"upstream\":"
		"\"https://a.example\",\"types\":[\"t\"]}},\"agents\":{\"new\":{\"domains\":"
		"[\"a.example\",\"*.github.io:8443\",\"b\xc3\xbc.example\"],\"presets\":[\"npm\"],"
		"\"allowCidr\":[\"10.0.0.0/8\"]}}}";
	struct aqe_json *root = NULL;

	arena = aqe_arena_new((size_t)1 << 20);
	ck_assert_int_eq(aqe_json_parse(arena, text, strlen(text), &AQE_JSON_LIMITS_DEFAULT, &root,
					NULL),
			 0);
	section = (struct netpol_section){ "f", root, false };
}

static void teardown(void)
{
	aqe_arena_free(arena);
}

static int build(struct netpol_policy **ret, struct aqe_err *e)
{
	return netpol_policy_build(base, AQE_COUNT(base), &section, 1, ret, e);
}

START_TEST(policy__is_whole_or_not_there)
{
	char digest[AQE_DIGEST_TEXT] = "";
	bool failed = true;

	for (unsigned n = ROUNDS; failed; n = n == ROUNDS ? 1 : n + 1) {
		struct netpol_policy *p = NULL;
		struct aqe_err e = AQE_ERR_INIT;
		int rc;

		fake_alloc_arm(n);
		rc = build(&p, &e);
		failed = fake_alloc_disarm();
		if (n == ROUNDS) {
			ck_assert(!failed && p);
			memcpy(digest, p->digest, sizeof(digest));
			failed = true;
		} else if (rc) {
			ck_assert_int_eq(rc, AQE_E_NOMEM);
			ck_assert_ptr_null(p);
		} else {
			/* a failure that was made up for, or none was left */
			ck_assert_str_eq(p->digest, digest);
		}
		netpol_policy_unref(p);
	}
}
END_TEST

/* An empty bucket stays one. */
START_TEST(limiter__is_never_fuller)
{
	const struct netpol_rate rate = { 60, 100, 2 }, more = { 60, 5000, 50 };
	struct netpol_when when = { "00000000-0000-0000-0000-000000000000", 0, 0 };
	bool failed = true;

	for (unsigned n = 1; failed; n++) {
		AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 16);
		struct netpol_limiter *l = NULL, *again = NULL;
		struct netpol_limit r;

		ck_assert_int_eq(netpol_limiter_new(&rate, &l, NULL), 0);
		do
			netpol_limiter_consume(l, 0, &r);
		while (r.allowed);
		fake_alloc_arm(n);
		if (!netpol_limiter_reconf(l, 0, &more, NULL) &&
		    !netpol_limiter_save(l, &when, &b, NULL) &&
		    !netpol_limiter_new(&more, &again, NULL) &&
		    netpol_limiter_restore(again, b.p, b.len, &when, NULL) == AQE_E_MALFORMED)
			ck_abort_msg("our own state was not read");
		failed = fake_alloc_disarm();
		netpol_limiter_consume(l, 0, &r);
		ck_assert(!r.allowed);
		if (again && b.len) {
			netpol_limiter_consume(again, 0, &r);
			ck_assert(!r.allowed);
		}
		netpol_limiter_free(l);
		netpol_limiter_free(again);
	}
}
END_TEST

static int load(void *self, struct netpol_policy **ret, struct aqe_err *e)
{
	(void)self;
	return build(ret, e);
}

static const char *const lines[] = {
	"{\"op\":\"record\",\"type\":\"t\",\"agent\":\"a\",\"host\":\"x.example.com\","
	"\"override\":{\"domains\":[\"x.example.com\"],\"rate\":{\"burst\":1}}}",
	"{\"op\":\"policy\",\"type\":\"t\"}",
	"{\"op\":\"reload\"}",
	"nonsense",
};

START_TEST(rpc__answers_one_whole_line)
{
	const char *line = lines[_i];
	bool failed = true;

	for (unsigned n = 1; failed; n++) {
		AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(1 << 20);
		struct netpol_live live = { NULL, load, NULL, AQE_ERR_INIT };
		struct shim_rpc rpc = { &live, NULL, NULL, NULL, NULL };
		bool changed = false;

		ck_assert_int_eq(netpol_live_reload(&live, &changed, NULL), 0);
		ck_assert_int_eq(netpol_limiters_new(4, &rpc.limiters, NULL), 0);
		ck_assert_int_eq(aqe_buf_puts(&out, "{"), 0); /* an earlier answer */
		fake_alloc_arm(n);
		shim_rpc_line(&rpc, line, strlen(line), 0, &out);
		failed = fake_alloc_disarm();
		ck_assert_ptr_nonnull(live.now);
		/* a buffer that could not grow holds nothing new, or all of it */
		if (out.len > 1) {
			ck_assert_int_eq(out.p[out.len - 1], '\n');
			ck_assert_ptr_nonnull(strstr(out.p, "\"ok\":"));
			ck_assert_int_eq(out.p[out.len - 2], '}');
		}
		netpol_limiters_free(rpc.limiters);
		netpol_live_done(&live);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netpolicy_alloc");
	TCase *t = tcase_create("alloc");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, policy__is_whole_or_not_there);
	tcase_add_test(t, limiter__is_never_fuller);
	tcase_add_loop_test(t, rpc__answers_one_whole_line, 0, (int)AQE_COUNT(lines));
	suite_add_tcase(s, t);
	return unit_run(s);
}
