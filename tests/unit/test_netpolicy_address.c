/* SPDX-License-Identifier: MIT */
/* Rows of tests/vectors are in test_netpolicy_vectors.c; here is what they do not say. */
#include "netpolicy/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "shim/core/text.h"
#include "tests/unit/unit.h"

static struct netpol_addr addr_of(const char *s)
{
	struct netpol_addr a;

	ck_assert_msg(netpol_addr_parse(s, strlen(s), &a), "%s", s);
	return a;
}

/* What we accept, inet_pton(3) accepts and reads the same. */
START_TEST(parse__agrees_with_the_c_library)
{
	static const char alphabet[] = "0123456789abcdefABCDEF::::....  %/xg";
	unsigned accepted = 0;
	uint32_t seed = 12345;

	for (size_t i = 0; i < 300000; i++) {
		char s[24];
		size_t n;
		struct netpol_addr a;
		uint8_t b[16] = { 0 };

		seed = seed * 1664525 + 1013904223;
		n = seed >> 8 & 15;
		for (size_t k = 0; k < n; k++) {
			seed = seed * 1664525 + 1013904223;
			s[k] = alphabet[(seed >> 10) % (sizeof(alphabet) - 1)];
		}
		s[n] = '\0';
		if (!netpol_addr_parse(s, n, &a))
			continue;
		accepted++;
		ck_assert_msg(inet_pton(a.v6 ? AF_INET6 : AF_INET, s, b) == 1, "%s", s);
		ck_assert_msg(memcmp(a.b, b, sizeof(b)) == 0, "%s", s);
	}
	ck_assert_uint_gt(accepted, 100);
}
END_TEST

static const char *const ipv6[] = {
	"::",
	"1::",
	"::1",
	"1::8",
	"1:2:3:4:5:6:7::",
	"::2:3:4:5:6:7:8",
	"1:2:3::7:8",
	"1:2:3:4:5:6:1.2.3.4",
	"::1.2.3.4",
	"ABCD:ef01::",
};
static const char *const not_addresses[] = {
	"1:2:3:4:5:6:7:8:",
	":1:2:3:4:5:6:7:8",
	"1:2:3:4:5:6:7:8::",
	"1::2:3:4:5:6:7:8",
	"::1:2:3:4:5:6:7:8",
	":::",
	":",
	"1:2:3:4:5:6:7",
	"1:2:3:4:5:6:7:8:9",
	"1:2:3:4:5:6:7:1.2.3.4",
	"1.2.3.4::",
	"::1.2.3.4:5",
	"[::1]",
	"1.2.3.4/32",
};

START_TEST(parse__knows_the_grammar)
{
	for (size_t i = 0; i < AQE_COUNT(ipv6); i++)
		ck_assert_msg(addr_of(ipv6[i]).v6, "%s", ipv6[i]);
	for (size_t i = 0; i < AQE_COUNT(not_addresses); i++) {
		struct netpol_addr a;

		ck_assert_msg(!netpol_addr_parse(not_addresses[i], strlen(not_addresses[i]), &a),
			      "%s", not_addresses[i]);
	}
}
END_TEST

START_TEST(format__is_rfc_5952)
{
	static const char *const pairs[][2] = {
		{ "1.2.3.4", "1.2.3.4" },
		{ "2001:0DB8:0:0:0:0:0:1", "2001:db8::1" },
		{ "1:0:0:2:0:0:0:3", "1:0:0:2::3" },
		{ "::ffff:1.2.3.4", "::ffff:1.2.3.4" },
	};

	for (size_t i = 0; i < AQE_COUNT(pairs); i++) {
		const struct netpol_addr a = addr_of(pairs[i][0]);
		char text[NETPOL_ADDR_TEXT];

		netpol_addr_format(&a, text);
		ck_assert_str_eq(text, pairs[i][1]);
	}
}
END_TEST

START_TEST(from_sockaddr__takes_internet_families_only)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct netpol_addr a;

	in.sin_addr.s_addr = htonl(0x01020304);
	in6.sin6_addr = in6addr_loopback;
	ck_assert(netpol_addr_from_sockaddr((const struct sockaddr *)&in, &a));
	ck_assert(!a.v6 && a.b[0] == 1 && a.b[3] == 4);
	ck_assert(netpol_addr_from_sockaddr((const struct sockaddr *)&in6, &a));
	ck_assert_int_eq(netpol_addr_class(&a), NETPOL_CLASS_LOOPBACK);
	ck_assert(!netpol_addr_from_sockaddr((const struct sockaddr *)&un, &a));
}
END_TEST

static const struct {
	const char *text, *fault; /* NULL: good */
} cidrs[] = {
	{ "10.0.0.0/8", NULL },
	{ "10.1.2.3/32", NULL },
	{ "192.168.4.0/22", NULL },
	{ "100.64.0.0/10", NULL },
	{ "198.18.0.0/16", NULL },
	{ "fd00::/8", NULL },
	{ "fc00::/7", NULL },
	{ "2001:2::/48", NULL },
	{ "10.0.0.0", "no prefix" },
	{ "10.0.0.0/", "no prefix" },
	{ "10.0.0.0/33", "no prefix" },
	{ "10.0.0.0/08", "no prefix" },
	{ "10.0.0.0/-1", "no prefix" },
	{ "example.com/8", "no prefix" },
	{ "10.0.0.1/8", "bits below" },
	{ "fd00::1/8", "bits below" },
	{ "0.0.0.0/0", "not inside a private network" },
	{ "10.0.0.0/7", "not inside a private network" },
	{ "127.0.0.0/8", "not inside a private network" },
	{ "169.254.0.0/16", "not inside a private network" },
	{ "8.8.8.0/24", "not inside a private network" },
	{ "::/0", "not inside a private network" },
	{ "::ffff:10.0.0.0/104", "not inside a private network" },
};

START_TEST(cidr_parse__opens_private_networks_only)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct netpol_cidr c;
	const int rc = netpol_cidr_parse(cidrs[_i].text, &c, &e);

	if (cidrs[_i].fault)
		ck_assert_fault(rc, AQE_E_MALFORMED, e, cidrs[_i].fault);
	else
		ck_assert_ok(rc, e);
}
END_TEST

static const struct {
	const char *addr;
	bool allowed;
} vets[] = {
	{ "8.8.8.8", true },
	{ "10.1.0.1", true }, /* by prefix */
	{ "10.2.0.1", false },
	{ "::ffff:10.1.0.1", true },
	{ "::ffff:10.2.0.1", false },
	{ "64:ff9b::10.1.0.1", true },
	{ "100.64.0.1", true },
	{ "100.100.100.200", false }, /* metadata inside an open prefix */
	{ "fd00::5", true },
	{ "fd00:ec2::254", false },
	{ "fd00::5efe:10.1.0.1", false }, /* ISATAP inside an open prefix */
	{ "127.0.0.1", false },
	{ "224.0.0.1", false },
	{ "8.8.4.4", false }, /* our own address */
	{ "::ffff:8.8.4.4", false },
};

START_TEST(allowed__opens_by_prefix_and_never_ourselves)
{
	struct netpol_cidr open[3];
	const struct netpol_addr own[] = { addr_of("8.8.4.4") };
	const struct netpol_vet vet = { open, AQE_COUNT(open), own, AQE_COUNT(own) };
	const struct netpol_addr a = addr_of(vets[_i].addr);
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(netpol_cidr_parse("10.1.0.0/16", &open[0], &e), e);
	ck_assert_ok(netpol_cidr_parse("100.64.0.0/10", &open[1], &e), e);
	ck_assert_ok(netpol_cidr_parse("fd00::/8", &open[2], &e), e);
	ck_assert_int_eq(netpol_addr_allowed(&vet, &a, NULL), vets[_i].allowed);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netpolicy_address");
	TCase *t = tcase_create("address");

	tcase_add_test(t, parse__agrees_with_the_c_library);
	tcase_add_test(t, parse__knows_the_grammar);
	tcase_add_test(t, format__is_rfc_5952);
	tcase_add_test(t, from_sockaddr__takes_internet_families_only);
	tcase_add_loop_test(t, cidr_parse__opens_private_networks_only, 0, (int)AQE_COUNT(cidrs));
	tcase_add_loop_test(t, allowed__opens_by_prefix_and_never_ourselves, 0,
			    (int)AQE_COUNT(vets));
	suite_add_tcase(s, t);
	return unit_run(s);
}
