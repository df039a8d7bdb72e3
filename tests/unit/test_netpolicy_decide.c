/* SPDX-License-Identifier: MIT */
/* The one decision: order, reasons, ports, report mode, spending. U32 and U34 of the cases. */
#include "netpolicy/decide.h"

#include "tests/unit/netpolicy_util.h"

#define S ((int64_t)1000000000)
#define POLICY                                                                                    \
	"{\"agents\":{\"t\":{\"domains\":[\"allowed.test\",\"*.wild.test\",\"ssh.test:22\",\"93." \
	"184.216.34\","                                                                           \
	"\"10.9.8.7\",\"10.1.2.3\",\"localhost\",\"127.0.0.1\",\"[2606:2800:220:1:248:1893:25c8:" \
	"1946]\"],"                                                                               \
	"\"allowCidr\":[\"10.1.0.0/"                                                              \
	"16\"],\"rate\":{\"perMinute\":60,\"perHour\":100,\"burst\":2}},"                         \
	"\"report\":{\"domains\":[\"allowed.test\"],\"mode\":\"report\","                         \
	"\"rate\":{\"perMinute\":60,\"perHour\":100,\"burst\":1}},"                               \
	"\"strict\":{\"domains\":[\"*.wild.test\"],\"wildcardApex\":false}}}"

static void setup(void)
{
	np_good(POLICY);
}

static void teardown(void)
{
	np_drop();
}

static const struct {
	const char *type, *host;
	uint16_t port;
	enum netpol_proto proto;
	const char *reason; /* "+": passes all the same */
} cases[] = {
	{ "t", "allowed.test", 443, NETPOL_PROTO_CONNECT, "allowed" },
	{ "t", "ALLOWED.test.", 443, NETPOL_PROTO_CONNECT, "allowed" },
	{ "t", "a.b.wild.test", 443, NETPOL_PROTO_TLS, "allowed" },
	{ "t", "wild.test", 443, NETPOL_PROTO_CONNECT, "allowed" },
	{ "strict", "wild.test", 443, NETPOL_PROTO_CONNECT, "domain_not_allowed" },
	{ "strict", "a.wild.test", 443, NETPOL_PROTO_CONNECT, "allowed" },
	/* U32 */
	{ "t", "notwild.test", 443, NETPOL_PROTO_CONNECT, "domain_not_allowed" },
	{ "t", "wild.test.evil.org", 443, NETPOL_PROTO_CONNECT, "domain_not_allowed" },
	{ "t", "sub.allowed.test", 443, NETPOL_PROTO_CONNECT, "domain_not_allowed" },
	{ "t", ".wild.test", 443, NETPOL_PROTO_CONNECT, "host_invalid" },
	{ "t", "a b.wild.test", 443, NETPOL_PROTO_CONNECT, "host_invalid" },
	{ "t", "", 443, NETPOL_PROTO_CONNECT, "host_invalid" },
	{ "t", "0x0a000001", 443, NETPOL_PROTO_CONNECT, "host_invalid" },
	/* U34: ports, by how it is asked */
	{ "t", "allowed.test", 22, NETPOL_PROTO_CONNECT, "port_not_allowed" },
	{ "t", "allowed.test", 25, NETPOL_PROTO_SOCKS, "port_not_allowed" },
	{ "t", "allowed.test", 80, NETPOL_PROTO_CONNECT, "port_not_allowed" },
	{ "t", "allowed.test", 80, NETPOL_PROTO_HTTP, "allowed" },
	{ "t", "allowed.test", 443, NETPOL_PROTO_HTTP, "port_not_allowed" },
	{ "t", "allowed.test", 80, NETPOL_PROTO_SOCKS, "allowed" },
	{ "t", "allowed.test", 443, NETPOL_PROTO_SOCKS, "allowed" },
	{ "t", "allowed.test", 80, NETPOL_PROTO_ANY, "allowed" },
	{ "t", "allowed.test", 0, NETPOL_PROTO_ANY, "port_not_allowed" },
	{ "t", "allowed.test", 0, NETPOL_PROTO_DNS, "allowed" },
	{ "t", "other.test", 0, NETPOL_PROTO_DNS, "domain_not_allowed" },
	{ "t", "ssh.test", 22, NETPOL_PROTO_CONNECT, "allowed" },
	{ "t", "ssh.test", 443, NETPOL_PROTO_CONNECT, "port_not_allowed" },
	/* the container's own, listed or not */
	{ "t", "localhost", 443, NETPOL_PROTO_CONNECT, "loopback_not_proxied" },
	{ "t", "x.localhost", 80, NETPOL_PROTO_HTTP, "loopback_not_proxied" },
	{ "t", "127.0.0.1", 443, NETPOL_PROTO_CONNECT, "loopback_not_proxied" },
	{ "strict", "[::1]", 443, NETPOL_PROTO_CONNECT, "loopback_not_proxied" },
	{ "t", "[::ffff:127.0.0.1]", 443, NETPOL_PROTO_CONNECT, "loopback_not_proxied" },
	/* literals: where they lead comes before whether they are listed */
	{ "t", "93.184.216.34", 443, NETPOL_PROTO_CONNECT, "allowed" },
	{ "t", "[2606:2800:220:1:0248:1893:25C8:1946]", 443, NETPOL_PROTO_CONNECT, "allowed" },
	{ "t", "93.184.216.35", 443, NETPOL_PROTO_CONNECT, "ip_literal" },
	{ "t", "10.9.8.7", 443, NETPOL_PROTO_CONNECT, "address_denied" },
	{ "t", "10.1.2.3", 443, NETPOL_PROTO_CONNECT, "allowed" },
	{ "t", "10.1.2.4", 443, NETPOL_PROTO_CONNECT, "ip_literal" },
	{ "t", "169.254.169.254", 80, NETPOL_PROTO_HTTP, "address_denied" },
	{ "t", "[::ffff:169.254.169.254]", 443, NETPOL_PROTO_CONNECT, "address_denied" },
	{ "t", "0.0.0.0", 443, NETPOL_PROTO_CONNECT, "address_denied" },
	{ "t", "[fd00::1]", 443, NETPOL_PROTO_CONNECT, "address_denied" },
	/* report mode: what is not listed passes, what leads inside does not */
	{ "report", "allowed.test", 443, NETPOL_PROTO_CONNECT, "allowed" },
	{ "report", "other.test", 443, NETPOL_PROTO_CONNECT, "+domain_not_allowed" },
	{ "report", "allowed.test", 22, NETPOL_PROTO_CONNECT, "+port_not_allowed" },
	{ "report", "8.8.8.8", 443, NETPOL_PROTO_CONNECT, "+ip_literal" },
	{ "report", "allowed.test", 0, NETPOL_PROTO_CONNECT, "port_not_allowed" },
	{ "report", "localhost", 443, NETPOL_PROTO_CONNECT, "loopback_not_proxied" },
	{ "report", "10.0.0.1", 443, NETPOL_PROTO_CONNECT, "address_denied" },
	{ "report", "169.254.169.254", 80, NETPOL_PROTO_HTTP, "address_denied" },
	{ "report", "a..b", 443, NETPOL_PROTO_CONNECT, "host_invalid" },
};

static enum netpol_verdict verdict_of(const char *reason)
{
	if (reason[0] == '+' || strcmp(reason, "allowed") == 0)
		return NETPOL_ALLOW;
	return strcmp(reason, "host_invalid") == 0 ? NETPOL_INVALID : NETPOL_DENY;
}

START_TEST(decide__gives_verdict_and_reason)
{
	const struct netpol_answer n =
		np_ask(cases[_i].type, cases[_i].host, cases[_i].port, cases[_i].proto);

	ck_assert_msg(strcmp(np_reason(cases[_i].type, cases[_i].host, cases[_i].port,
				       cases[_i].proto),
			     cases[_i].reason) == 0,
		      "%s:%u: %s", cases[_i].host, cases[_i].port, netpol_reason_name(n.reason));
	ck_assert_int_eq(n.verdict, verdict_of(cases[_i].reason));
}
END_TEST

START_TEST(decide__names_the_rule)
{
	ck_assert_str_eq(np_ask("t", "x.wild.test", 443, NETPOL_PROTO_CONNECT).rule->text,
			 "*.wild.test");
	ck_assert_str_eq(np_ask("t", "x.wild.test", 443, NETPOL_PROTO_CONNECT).host.text,
			 "x.wild.test");
	/* listed, but with another port: which line it is helps */
	ck_assert_str_eq(np_ask("t", "ssh.test", 443, NETPOL_PROTO_CONNECT).rule->text,
			 "ssh.test:22");
	ck_assert_ptr_null(np_ask("t", "other.test", 443, NETPOL_PROTO_CONNECT).rule);
	ck_assert_str_eq(np_ask("t", "a..b", 443, NETPOL_PROTO_CONNECT).why, "empty label");
}
END_TEST

static struct netpol_limiter *limiter_of(const char *type)
{
	struct netpol_limiter *l = NULL;

	ck_assert_int_eq(netpol_limiter_new(&netpol_policy_type(np, type)->rate, &l, NULL), 0);
	return l;
}

static struct netpol_answer spend(const char *type, struct netpol_limiter *l, int64_t now,
				  const char *host, enum netpol_proto proto)
{
	const struct netpol_request rq = { proto, host, strlen(host), 443 };
	struct netpol_answer n;

	netpol_decide(netpol_policy_type(np, type), l, now, &rq, NETPOL_CONSUME, &n);
	return n;
}

/* NP-10, NP-12: and a denied name is denied before it is counted */
START_TEST(decide__spends_on_what_passes_only)
{
	struct netpol_limiter *l = limiter_of("t");
	struct netpol_answer n;

	for (int i = 0; i < 50; i++) {
		ck_assert_int_eq(spend("t", l, 0, "evil.test", NETPOL_PROTO_CONNECT).verdict,
				 NETPOL_DENY);
		ck_assert_int_eq(spend("t", l, 0, "allowed.test", NETPOL_PROTO_DNS).verdict,
				 NETPOL_ALLOW);
	}
	ck_assert_int_eq(spend("t", l, 0, "allowed.test", NETPOL_PROTO_CONNECT).verdict,
			 NETPOL_ALLOW);
	ck_assert_int_eq(spend("t", l, 0, "a.wild.test", NETPOL_PROTO_CONNECT).verdict,
			 NETPOL_ALLOW);
	n = spend("t", l, 0, "allowed.test", NETPOL_PROTO_CONNECT);
	ck_assert_int_eq(n.verdict, NETPOL_LIMITED);
	ck_assert_str_eq(netpol_reason_name(n.reason), "rate_limit_exceeded");
	ck_assert_uint_eq(n.retry_ms, 1000);
	/* with an empty bucket a denied name is still a denied name, never "try later" */
	ck_assert_int_eq(spend("t", l, 0, "evil.test", NETPOL_PROTO_CONNECT).reason,
			 NETPOL_REASON_DOMAIN);
	ck_assert_int_eq(spend("t", l, S, "allowed.test", NETPOL_PROTO_CONNECT).verdict,
			 NETPOL_ALLOW);
	netpol_limiter_free(l);
}
END_TEST

START_TEST(decide__peek_spends_nothing)
{
	struct netpol_limiter *l = limiter_of("t");
	const struct netpol_request rq = { NETPOL_PROTO_CONNECT, "allowed.test", 12, 443 };
	struct netpol_answer n;

	for (int i = 0; i < 50; i++) {
		netpol_decide(netpol_policy_type(np, "t"), l, 0, &rq, NETPOL_PEEK, &n);
		ck_assert_int_eq(n.verdict, NETPOL_ALLOW);
	}
	netpol_limiter_free(l);
}
END_TEST

START_TEST(decide__report_mode_counts_and_passes)
{
	struct netpol_limiter *l = limiter_of("report");
	struct netpol_answer n = spend("report", l, 0, "other.test", NETPOL_PROTO_CONNECT);

	ck_assert(n.verdict == NETPOL_ALLOW && n.would_deny);
	n = spend("report", l, 0, "allowed.test", NETPOL_PROTO_CONNECT); /* over the limit */
	ck_assert_int_eq(n.verdict, NETPOL_ALLOW);
	ck_assert(n.would_deny);
	ck_assert_int_eq(n.reason, NETPOL_REASON_RATE);
	ck_assert_uint_eq(n.retry_ms, 1000);
	netpol_limiter_free(l);
}
END_TEST

/* U34: where an allowed name leads is judged apart, for every address, in every mode */
static const struct {
	const char *addr;
	bool allowed;
} addrs[] = {
	{ "93.184.216.34", true },     { "2606:4700::1", true },
	{ "127.0.0.1", false },        { "::1", false },
	{ "::ffff:127.0.0.1", false }, { "169.254.169.254", false },
	{ "fd00::8", false },          { "0.0.0.0", false },
	{ "10.1.2.3", true },          { "10.2.0.1", false },
	{ "172.17.0.1", false },       { "203.0.114.9", false }, /* own */
};

START_TEST(decide_addr__vets_every_address)
{
	const struct netpol_type *report = netpol_policy_type(np, "report");
	struct netpol_addr own, a;

	ck_assert(netpol_addr_parse("203.0.114.9", 11, &own));
	ck_assert(netpol_addr_parse(addrs[_i].addr, strlen(addrs[_i].addr), &a));
	ck_assert_int_eq(netpol_decide_addr(netpol_policy_type(np, "t"), &own, 1, &a, NULL),
			 addrs[_i].allowed);
	/* report mode opens no address */
	ck_assert(addrs[_i].allowed || !netpol_decide_addr(report, &own, 1, &a, NULL));
}
END_TEST

START_TEST(names__are_all_there)
{
	for (unsigned i = 0; i < NETPOL_REASON_COUNT; i++)
		ck_assert_str_ne(netpol_reason_name((enum netpol_reason)i), "?");
	for (unsigned i = 0; i < NETPOL_PROTO_COUNT; i++)
		ck_assert_str_ne(netpol_proto_name((enum netpol_proto)i), "?");
	for (unsigned i = 0; i < NETPOL_CLASS_COUNT; i++)
		ck_assert_str_ne(netpol_class_name((enum netpol_class)i), "");
	for (unsigned i = 0; i < NETPOL_KEY_COUNT; i++)
		ck_assert_str_ne(netpol_key_name((enum netpol_key)i), "?");
	ck_assert(netpol_rate_ok(&NETPOL_DENY_BUDGET));
	ck_assert_uint_eq(NETPOL_DENY_BUDGET.per_minute, 60);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netpolicy_decide");
	TCase *t = tcase_create("decide");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, decide__gives_verdict_and_reason, 0, (int)AQE_COUNT(cases));
	tcase_add_test(t, decide__names_the_rule);
	tcase_add_test(t, decide__spends_on_what_passes_only);
	tcase_add_test(t, decide__peek_spends_nothing);
	tcase_add_test(t, decide__report_mode_counts_and_passes);
	tcase_add_loop_test(t, decide_addr__vets_every_address, 0, (int)AQE_COUNT(addrs));
	tcase_add_test(t, names__are_all_there);
	suite_add_tcase(s, t);
	return unit_run(s);
}
