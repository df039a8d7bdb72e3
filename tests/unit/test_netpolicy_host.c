/* SPDX-License-Identifier: MIT */
#include "netpolicy/host.h"

#include <stdio.h>

#include "shim/core/text.h"
#include "tests/unit/unit.h"

static struct netpol_host host;
static const char *why;

static bool parse(const char *s)
{
	return netpol_host_parse(s, strlen(s), &host, &why);
}

static const struct {
	const char *in, *out;
	enum netpol_host_kind kind;
} good[] = {
	{ "example.com", "example.com", NETPOL_HOST_NAME },
	{ "EXAMPLE.Com.", "example.com", NETPOL_HOST_NAME },
	{ "a", "a", NETPOL_HOST_NAME },
	{ "_dmarc.a_b.example", "_dmarc.a_b.example", NETPOL_HOST_NAME },
	{ "1.2.3.4.example", "1.2.3.4.example", NETPOL_HOST_NAME },
	{ "0xg", "0xg", NETPOL_HOST_NAME }, /* no parser takes it for a number */
	{ "1a", "1a", NETPOL_HOST_NAME },
	{ "r3---sn.example", "r3---sn.example", NETPOL_HOST_NAME },
	{ "1.2.3.4", "1.2.3.4", NETPOL_HOST_LITERAL },
	{ "255.255.255.255", "255.255.255.255", NETPOL_HOST_LITERAL },
	{ "[::1]", "[::1]", NETPOL_HOST_LITERAL },
	{ "[2606:2800:0220:0001:0248:1893:25C8:1946]", "[2606:2800:220:1:248:1893:25c8:1946]",
	  NETPOL_HOST_LITERAL },
	{ "[::FFFF:1.2.3.4]", "[::ffff:1.2.3.4]", NETPOL_HOST_LITERAL },
};

START_TEST(parse__gives_one_spelling)
{
	ck_assert_msg(parse(good[_i].in), "%s", why);
	ck_assert_str_eq(host.text, good[_i].out);
	ck_assert_uint_eq(host.len, strlen(good[_i].out));
	ck_assert_int_eq(host.kind, good[_i].kind);
	ck_assert_ptr_null(why);
}
END_TEST

static const struct {
	const char *in, *says;
} bad[] = {
	{ "", "empty" },
	{ ".", "empty label" },
	{ "..", "empty label" },
	{ "a..b", "empty label" },
	{ ".a", "empty label" },
	{ "a.b..", "empty label" },
	{ "-a.b", "hyphen" },
	{ "a-.b", "hyphen" },
	{ "a.-", "hyphen" },
	{ "a b", "byte that no host name has" },
	{ "a%2eb", "byte that no host name has" },
	{ "a:443", "byte that no host name has" },
	{ "a/b", "byte that no host name has" },
	{ "*.a", "byte that no host name has" },
	{ "::1", "byte that no host name has" },
	{ "doc\xe2\x84\xaa.com", "byte that no host name has" },
	{ "1", "ends in a number" },
	{ "127.1", "ends in a number" },
	{ "0x7f.1", "ends in a number" },
	{ "example.0x1", "ends in a number" },
	{ "example.0X", "ends in a number" },
	{ "example.123", "ends in a number" },
	{ "01.2.3.4", "ends in a number" },
	{ "1.2.3.256", "ends in a number" },
	{ "1.2.3.4.5", "ends in a number" },
	{ "1.2.3.4.", "ends in a number" },
	{ "[", "bracket" },
	{ "[::1", "bracket" },
	{ "[::1]x", "bracket" },
	{ "[]", "no IPv6 address" },
	{ "[127.0.0.1]", "no IPv6 address" },
	{ "[example.com]", "no IPv6 address" },
	{ "[fe80::1%25eth0]", "no IPv6 address" },
	{ "[v1.a]", "no IPv6 address" },
};

START_TEST(parse__refuses_with_a_reason)
{
	ck_assert(!parse(bad[_i].in));
	ck_assert_msg(strstr(why, bad[_i].says), "'%s': %s", bad[_i].in, why);
	ck_assert(!netpol_host_parse(bad[_i].in, strlen(bad[_i].in), &host, NULL));
}
END_TEST

START_TEST(parse__sees_bytes_behind_a_nul)
{
	ck_assert(!netpol_host_parse("evil.com\0.example.com", 21, &host, &why));
	ck_assert_str_eq(why, "byte that no host name has");
}
END_TEST

/* 63 bytes a label, 253 a name, one dot more. */
START_TEST(parse__holds_the_limits)
{
	char s[300];
	size_t n = 0;

	while (n < 252) {
		s[n] = n % 64 == 63 ? '.' : 'a';
		n++;
	}
	s[n++] = 'a';
	ck_assert(netpol_host_parse(s, 253, &host, &why));
	ck_assert_uint_eq(host.len, 253);
	s[253] = '.';
	ck_assert(netpol_host_parse(s, 254, &host, &why));
	s[253] = 'a';
	ck_assert(!netpol_host_parse(s, 254, &host, &why));
	ck_assert_str_eq(why, "over 253 bytes");
	memset(s, 'a', 64);
	ck_assert(netpol_host_parse(s, 63, &host, &why));
	ck_assert(!netpol_host_parse(s, 64, &host, &why));
	ck_assert_str_eq(why, "label over 63 bytes");
}
END_TEST

static const struct {
	const char *in;
	bool local;
} locals[] = {
	{ "localhost", true },          { "LOCALHOST.", true },      { "a.b.localhost", true },
	{ "127.0.0.1", true },          { "127.255.255.254", true }, { "[::1]", true },
	{ "[::ffff:127.0.0.1]", true }, { "xlocalhost", false },     { "localhost.com", false },
	{ "10.0.0.1", false },          { "0.0.0.0", false },
};

START_TEST(is_local__knows_every_form)
{
	ck_assert(parse(locals[_i].in));
	ck_assert_int_eq(netpol_host_is_local(&host), locals[_i].local);
}
END_TEST

START_TEST(from_addr__is_the_parsed_literal)
{
	static const char *const texts[] = { "1.2.3.4", "[2001:db8::1]" };

	for (size_t i = 0; i < AQE_COUNT(texts); i++) {
		struct netpol_host again;

		ck_assert(parse(texts[i]));
		netpol_host_from_addr(&host.addr, &again);
		ck_assert(netpol_host_eq(&host, &again));
		ck_assert_str_eq(again.text, texts[i]);
	}
}
END_TEST

static const struct {
	const char *in;
	int port; /* 0: none */
} ports[] = {
	{ "1", 1 },   { "443", 443 }, { "65535", 65535 }, { "", 0 },    { "0", 0 },
	{ "080", 0 }, { "65536", 0 }, { "99999", 0 },     { "+80", 0 }, { "-1", 0 },
	{ "8 0", 0 }, { "443x", 0 },  { "655350", 0 },    { " 80", 0 },
};

START_TEST(port_parse__is_strict)
{
	uint16_t port = 0;

	ck_assert_int_eq(netpol_port_parse(ports[_i].in, strlen(ports[_i].in), &port),
			 ports[_i].port != 0);
	ck_assert_int_eq(port, ports[_i].port);
}
END_TEST

static const struct {
	const char *in, *host, *port; /* port NULL: none */
} splits[] = {
	{ "a.b:1", "a.b", "1" },       { "a.b", "a.b", NULL },     { "a.b:", "a.b", "" },
	{ "[::1]:80", "[::1]", "80" }, { "[::1]", "[::1]", NULL }, { "[::1", "[::1", NULL },
	{ "a:b:c", "a", "b:c" },       { "", "", NULL },           { ":80", "", "80" },
};

START_TEST(authority_split__cuts_outside_brackets)
{
	const char *in = splits[_i].in, *port = NULL;
	size_t n = 0, port_n = 0;

	netpol_authority_split(in, strlen(in), &n, &port, &port_n);
	ck_assert_uint_eq(n, strlen(splits[_i].host));
	ck_assert_int_eq(port != NULL, splits[_i].port != NULL);
	if (port) {
		ck_assert_uint_eq(port_n, strlen(splits[_i].port));
		ck_assert_int_eq(memcmp(port, splits[_i].port, port_n), 0);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netpolicy_host");
	TCase *t = tcase_create("host");

	tcase_add_loop_test(t, parse__gives_one_spelling, 0, (int)AQE_COUNT(good));
	tcase_add_loop_test(t, parse__refuses_with_a_reason, 0, (int)AQE_COUNT(bad));
	tcase_add_test(t, parse__sees_bytes_behind_a_nul);
	tcase_add_test(t, parse__holds_the_limits);
	tcase_add_loop_test(t, is_local__knows_every_form, 0, (int)AQE_COUNT(locals));
	tcase_add_test(t, from_addr__is_the_parsed_literal);
	tcase_add_loop_test(t, port_parse__is_strict, 0, (int)AQE_COUNT(ports));
	tcase_add_loop_test(t, authority_split__cuts_outside_brackets, 0, (int)AQE_COUNT(splits));
	suite_add_tcase(s, t);
	return unit_run(s);
}
