/* SPDX-License-Identifier: MIT */
/* The list of domains. DW-nn are the rows of the original's own tests. */
#include "netpolicy/rules.h"

#include <stdio.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

static struct aqe_arena *arena;
static struct netpol_rules *rules;
static struct aqe_err e;
static const struct netpol_ports any_port = { { 0, 0 }, true };
static const struct netpol_ports web = { { 80, 443 }, false };

static void setup(void)
{
	e = (struct aqe_err)AQE_ERR_INIT;
	arena = aqe_arena_new((size_t)16 << 20);
	rules = netpol_rules_new(arena);
	ck_assert_ptr_nonnull(rules);
}

static void teardown(void)
{
	aqe_arena_free(arena);
}

static int add(const char *entry)
{
	const struct netpol_where where = { "test", 7 };

	return netpol_rules_add(rules, entry, strlen(entry), where, &e);
}

static void list(const char *entries)
{
	const struct netpol_where where = { "test", 1 };

	ck_assert_ok(netpol_rules_add_list(rules, entries, strlen(entries), where, &e), e);
}

static const char *match_port(const char *host, bool apex, const struct netpol_ports *ports,
			      uint16_t port)
{
	struct netpol_match m;
	struct netpol_host h;

	ck_assert(netpol_host_parse(host, strlen(host), &h, NULL));
	netpol_rules_match(rules, &h, apex, ports, port, &m);
	if (!m.rule)
		return "none";
	return m.port_ok ? m.rule->text : "port";
}

static const char *match(const char *host)
{
	return match_port(host, true, &any_port, 0);
}

/* DW-01, DW-24: an empty list is a denial of everything */
START_TEST(empty_list__admits_nothing)
{
	ck_assert_uint_eq(netpol_rules_count(rules), 0);
	ck_assert_uint_eq(netpol_rules_count(NULL), 0);
	ck_assert_ptr_null(netpol_rules_at(rules, 0));
	ck_assert_str_eq(match("example.com"), "none");
	list("");
	ck_assert_uint_eq(netpol_rules_count(rules), 0);
	rules = NULL;
	ck_assert_str_eq(match("example.com"), "none");
}
END_TEST

/* DW-02 to DW-06, DW-23, DW-27: normalised, once, in order */
START_TEST(entries__are_normalised_and_kept_in_order)
{
	list("Example.COM, *.Example.com "
	     ",example.com.,b.example:8443,[2606:0::1]:1,1.2.3.4,EXAMPLE.com");
	ck_assert_uint_eq(netpol_rules_count(rules), 5);
	ck_assert_str_eq(netpol_rules_at(rules, 0)->text, "example.com");
	ck_assert_str_eq(netpol_rules_at(rules, 1)->text, "*.example.com");
	ck_assert_str_eq(netpol_rules_at(rules, 2)->text, "b.example:8443");
	ck_assert_str_eq(netpol_rules_at(rules, 3)->text, "[2606::1]:1");
	ck_assert_str_eq(netpol_rules_at(rules, 4)->text, "1.2.3.4");
	ck_assert_str_eq(netpol_rules_at(rules, 1)->base, "example.com");
	ck_assert(netpol_rules_at(rules, 1)->wildcard);
	ck_assert_uint_eq(netpol_rules_at(rules, 2)->port, 8443);
}
END_TEST

/* DW-10 to DW-18, DW-29 to DW-31 */
static const struct {
	const char *list, *host, *rule;
} matches[] = {
	{ "example.com", "example.com", "example.com" },
	{ "example.com", "EXAMPLE.com.", "example.com" },
	{ "example.com", "sub.example.com", "none" },
	{ "example.com", "other.com", "none" },
	{ "*.example.com", "api.example.com", "*.example.com" },
	{ "*.example.com", "deep.sub.example.com", "*.example.com" },
	{ "*.example.com", "example.com", "*.example.com" },
	{ "*.example.com", "examplex.com", "none" },
	{ "*.example.com", "xexample.com", "none" },
	{ "*.example.com", "my_host.example.com", "*.example.com" },
	{ "*.example.com,*.test.com", "a.test.com", "*.test.com" },
	{ "exact.com,*.wild.com", "a.exact.com", "none" },
	/* exact before wildcard, longer before shorter, whatever the order of the list */
	{ "*.example.com,a.example.com", "a.example.com", "a.example.com" },
	{ "*.example.com,*.a.example.com", "x.a.example.com", "*.a.example.com" },
	{ "*.a.example.com,*.example.com", "x.b.example.com", "*.example.com" },
	/* wildcards never meet addresses */
	{ "*.example.com", "1.2.3.4", "none" },
	{ "1.2.3.4", "1.2.3.4", "1.2.3.4" },
	{ "[2606:2800:220:1:248:1893:25c8:1946]", "[2606:2800:0220:0001:0248:1893:25C8:1946]",
	  "[2606:2800:220:1:248:1893:25c8:1946]" },
	{ "1.2.3.4", "[::ffff:1.2.3.4]", "none" },
};

START_TEST(match__finds_the_rule)
{
	list(matches[_i].list);
	ck_assert_str_eq(match(matches[_i].host), matches[_i].rule);
}
END_TEST

START_TEST(match__strict_leaves_the_apex_out)
{
	list("*.example.com");
	ck_assert_str_eq(match_port("example.com", false, &any_port, 0), "none");
	ck_assert_str_eq(match_port("a.example.com", false, &any_port, 0), "*.example.com");
}
END_TEST

/* default ports, and one more port for one host */
START_TEST(match__knows_ports)
{
	list("a.com,b.com:8443,*.c.com,x.c.com:22,d.com,d.com:53");
	ck_assert_str_eq(match_port("a.com", true, &web, 443), "a.com");
	ck_assert_str_eq(match_port("a.com", true, &web, 80), "a.com");
	ck_assert_str_eq(match_port("a.com", true, &web, 25), "port");
	ck_assert_str_eq(match_port("a.com", true, &web, 0), "port");
	ck_assert_str_eq(match_port("b.com", true, &web, 8443), "b.com:8443");
	ck_assert_str_eq(match_port("b.com", true, &web, 443), "port");
	ck_assert_str_eq(match_port("x.c.com", true, &web, 22), "x.c.com:22");
	ck_assert_str_eq(match_port("x.c.com", true, &web, 443), "*.c.com");
	ck_assert_str_eq(match_port("y.c.com", true, &web, 22), "port");
	ck_assert_str_eq(match_port("d.com", true, &web, 53), "d.com:53");
	ck_assert_str_eq(match_port("z.com", true, &web, 443), "none");
}
END_TEST

static const struct {
	const char *entry, *says;
} bad[] = {
	{ "", "empty" },
	{ "  ", "empty" },
	{ "*", "would allow everything" },
	{ "*.", "no host" },
	{ "*.com", "public suffix" },
	{ "*.co.uk", "public suffix" },
	{ "*.intranet", "public suffix" },
	{ "*.*.example.com", "'*' can only be" },
	{ "**.example.com", "'*' can only be" },
	{ "*example.com", "'*' can only be" },
	{ "a*.example.com", "'*' can only be" },
	{ "example.*", "'*' can only be" },
	{ "*:443", "'*' can only be" },
	{ ".example.com", "begins with a dot" },
	{ "https://example.com", "a URL" },
	{ "example.com/x", "a URL" },
	{ "10.0.0.0/8", "a network is no entry" },
	{ "user@example.com", "user information" },
	{ "::1", "needs brackets" },
	{ "2606:2800::1", "needs brackets" },
	{ "[::1", "bracket" },
	{ "[fe80::1%eth0]", "no IPv6 address" },
	{ "*.[::1]", "wildcard over an address" },
	{ "*.1.2.3.4", "wildcard over an address" },
	{ "*.0.0.1", "ends in a number" },
	{ "0x0a000001", "ends in a number" },
	{ "127.1", "ends in a number" },
	{ "1.2.3.4.", "ends in a number" },
	{ "example..com", "empty label" },
	{ "-example.com", "hyphen" },
	{ "exa mple.com", "byte that no host name has" },
	{ "a.com b.com", "byte that no host name has" },
	{ "example.com:", "port is not" },
	{ "example.com:0", "port is not" },
	{ "example.com:65536", "port is not" },
	{ "example.com:443:443", "port is not" },
	{ "example.com:https", "port is not" },
	{ "xn--zz.example", "no name encodes to" },
	{ "\xef\xbb\xbf"
	  "example.com",
	  "not converted here" },
};

/* U32: bad rules are refused when they are loaded, named */
START_TEST(add__refuses_with_entry_and_reason)
{
	ck_assert_fault(add(bad[_i].entry), AQE_E_MALFORMED, e, bad[_i].says);
	ck_assert_msg(strncmp(e.text, "entry '", 7) == 0, "%s", e.text);
	ck_assert_uint_eq(netpol_rules_count(rules), 0);
}
END_TEST

START_TEST(add_list__refuses_an_empty_part)
{
	const struct netpol_where where = { "test", 1 };

	ck_assert_fault(netpol_rules_add_list(rules, "a.com,,b.com", 12, where, &e),
			AQE_E_MALFORMED, e, "empty");
}
END_TEST

static const struct {
	const char *entry, *says; /* NULL: none */
} warnings[] = {
	{ "*.github.io", "github.io" },
	{ "*.amazonaws.com", "amazonaws.com" },
	{ "raw.githubusercontent.com", "on raw.githubusercontent.com" },
	{ "localhost", "the container itself" },
	{ "*.localhost", "the container itself" },
	{ "127.0.0.1", "the container itself" },
	{ "metadata.google.internal", "metadata" },
	{ "me.github.io", NULL },
	{ "api.anthropic.com", NULL },
};

START_TEST(add__warns_about_shared_places)
{
	const char *got;

	ck_assert_ok(add(warnings[_i].entry), e);
	got = netpol_rules_at(rules, 0)->warning;
	ck_assert_int_eq(got != NULL, warnings[_i].says != NULL);
	if (got)
		ck_assert_msg(strstr(got, warnings[_i].says), "%s", got);
}
END_TEST

START_TEST(add__takes_4096_entries_and_finds_each)
{
	for (unsigned i = 0; i < NETPOL_RULES_MAX; i++) {
		char entry[64];

		(void)snprintf(entry, sizeof(entry), "%sh%u.example%u.com", i % 3 ? "" : "*.", i,
			       i % 7);
		ck_assert_ok(add(entry), e);
	}
	ck_assert_fault(add("one.more"), AQE_E_LIMIT, e, "more than 4096");
	for (unsigned i = 0; i < NETPOL_RULES_MAX; i++) {
		char host[64];

		(void)snprintf(host, sizeof(host), "%sh%u.example%u.com", i % 3 ? "" : "deep.x.", i,
			       i % 7);
		ck_assert_str_ne(match(host), "none");
	}
	ck_assert_str_eq(match("h4096.example1.com"), "none");
}
END_TEST

static const struct {
	const char *wide, *narrow;
	bool covered, apex;
} covers[] = {
	{ "a.com", "a.com", true, true },           { "a.com", "b.com", false, true },
	{ "a.com", "*.a.com", false, true },        { "*.a.com", "*.a.com", true, true },
	{ "*.a.com", "x.a.com", true, true },       { "*.a.com", "*.x.a.com", true, true },
	{ "*.a.com", "a.com", true, true },         { "*.a.com", "a.com", false, false },
	{ "*.x.a.com", "*.a.com", false, true },    { "a.com", "a.com:443", false, true },
	{ "a.com:22", "a.com:22", true, true },     { "a.com:22", "a.com", false, true },
	{ "*.a.com:22", "x.a.com:22", true, true }, { "1.2.3.4", "1.2.3.4", true, true },
	{ "[2606::1]", "[2606:0::1]", true, true }, { "", "a.com", false, true },
};

START_TEST(cover__is_no_wider)
{
	struct netpol_rules *narrow = netpol_rules_new(arena);
	const struct netpol_where where = { "user", 1 };

	list(covers[_i].wide);
	ck_assert_ok(netpol_rules_add(narrow, covers[_i].narrow, strlen(covers[_i].narrow), where,
				      &e),
		     e);
	ck_assert_int_eq(netpol_rules_cover(rules, netpol_rules_at(narrow, 0), covers[_i].apex),
			 covers[_i].covered);
}
END_TEST

/* DW-33 to DW-39 */
static const struct {
	const char *preset, *host;
} presets[] = {
	{ "anthropic", "api.anthropic.com" },
	{ "github", "api.github.com" },
	{ "github", "github.com" },
	{ "github", "raw.githubusercontent.com" },
	{ "npm", "registry.npmjs.org" },
	{ "npm", "www.npmjs.com" },
	{ "security", "nvd.nist.gov" },
	{ "security", "cve.mitre.org" },
	{ "security", "osv.dev" },
	{ "security", "security.snyk.io" },
	{ "openai", "api.openai.com" },
	{ "localhost", "localhost" },
	{ "localhost", "127.0.0.1" },
	{ "localhost", "[::1]" },
};

START_TEST(preset__holds_its_names)
{
	ck_assert_ptr_nonnull(netpol_preset(presets[_i].preset));
	list(netpol_preset(presets[_i].preset));
	ck_assert_str_eq(match(presets[_i].host), presets[_i].host);
}
END_TEST

START_TEST(preset__names_are_listed)
{
	size_t n = 0;

	while (netpol_preset_name(n))
		ck_assert_ptr_nonnull(netpol_preset(netpol_preset_name(n++)));
	ck_assert_uint_eq(n, 6);
	ck_assert_ptr_null(netpol_preset("no-such"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netpolicy_rules");
	TCase *t = tcase_create("rules");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, empty_list__admits_nothing);
	tcase_add_test(t, entries__are_normalised_and_kept_in_order);
	tcase_add_loop_test(t, match__finds_the_rule, 0, (int)AQE_COUNT(matches));
	tcase_add_test(t, match__strict_leaves_the_apex_out);
	tcase_add_test(t, match__knows_ports);
	tcase_add_loop_test(t, add__refuses_with_entry_and_reason, 0, (int)AQE_COUNT(bad));
	tcase_add_test(t, add_list__refuses_an_empty_part);
	tcase_add_loop_test(t, add__warns_about_shared_places, 0, (int)AQE_COUNT(warnings));
	tcase_add_test(t, add__takes_4096_entries_and_finds_each);
	tcase_add_loop_test(t, cover__is_no_wider, 0, (int)AQE_COUNT(covers));
	tcase_add_loop_test(t, preset__holds_its_names, 0, (int)AQE_COUNT(presets));
	tcase_add_test(t, preset__names_are_listed);
	suite_add_tcase(s, t);
	return unit_run(s);
}
