/* SPDX-License-Identifier: MIT */
#include "netpolicy/idna.h"

#include <stdio.h>

#include "netpolicy/suffix.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

static const struct {
	const char *in, *out;
} good[] = {
	{ "abc", "abc" },
	{ "ABC", "abc" },
	{ "bücher", "xn--bcher-kva" },
	{ "BÜCHER", "xn--bcher-kva" },
	{ "straße", "xn--strae-oqa" }, /* IDNA2008 keeps it */
	{ "faß", "xn--fa-hia" },
	{ "βόλος", "xn--nxasmm1c" },                  /* final sigma stays */
	{ "ශ්‍රී", "xn--10cl1a0b660p" },    /* joiner after a virama */
	{ "نامه‌ای", "xn--mgba3gch31f060k" }, /* non-joiner between letters */
	{ "пример", "xn--e1afmkfd" },
	{ "日本語", "xn--wgv71a119e" },
	{ "例え", "xn--r8jz45g" },
	{ "xn--bcher-kva", "xn--bcher-kva" },
	{ "XN--BCHER-KVA", "xn--bcher-kva" },
	{ "Ÿ", "xn--wda" },
	{ "-a-", "-a-" }, /* the host parser's business */
};

START_TEST(label__becomes_its_a_label)
{
	char out[NETPOL_IDNA_MAX + 1];
	const char *why = NULL;

	ck_assert_msg(netpol_idna_label(good[_i].in, strlen(good[_i].in), out, &why), "%s: %s",
		      good[_i].in, why);
	ck_assert_str_eq(out, good[_i].out);
}
END_TEST

static const struct {
	const char *in, *says;
} bad[] = {
	{ "\xff", "not UTF-8" },
	{ "a\xc3", "not UTF-8" },
	{ "\xef\xbb\xbf"
	  "a",
	  "not converted here" },                    /* BOM */
	{ "doc\xe2\x84\xaa", "not converted here" }, /* Kelvin sign */
	{ "a\xc2\xad"
	  "b",
	  "not converted here" },                 /* soft hyphen */
	{ "\xef\xbd\x81", "not converted here" }, /* full-width a */
	{ "a\xe3\x80\x82"
	  "b",
	  "not converted here" },                 /* ideographic full stop */
	{ "\xc4\xb0", "not converted here" },     /* capital I with dot */
	{ "\xe2\x98\x83", "not converted here" }, /* snowman */
	{ "u\xcc\x88", "not converted here" },    /* not composed */
	{ "a\xe2\x80\x8d"
	  "b",
	  "joiner" },
	{ "a\xe2\x80\x8c"
	  "b",
	  "joiner" },
	{ "-\xc3\xbc", "hyphen" },
	{ "\xc3\xbc-", "hyphen" },
	{ "xn--\xc3\xbc", "places 3 and 4" },
	{ "xn--zz", "no name encodes to" },
	{ "xn--", "no name encodes to" },
	{ "xn--abc-", "no name encodes to" }, /* plain ASCII */
	{ "xn--bcher-kv", "no name encodes to" },
	{ "xn--BCHER-KVa-", "no name encodes to" },
	{ "xn--bcher-2pa", "no name encodes to" }, /* a capital letter */
	{ "xn--99999999999", "no name encodes to" },
};

START_TEST(label__refuses_with_a_reason)
{
	char out[NETPOL_IDNA_MAX + 1];
	const char *why = NULL;

	ck_assert_msg(!netpol_idna_label(bad[_i].in, strlen(bad[_i].in), out, &why), "%s", out);
	ck_assert_msg(strstr(why, bad[_i].says), "%s: %s", bad[_i].in, why);
}
END_TEST

START_TEST(label__refuses_a_nul)
{
	char out[NETPOL_IDNA_MAX + 1];
	const char *why = NULL;

	ck_assert(!netpol_idna_label("a\0b", 3, out, &why));
	ck_assert_str_eq(why, "holds a NUL");
}
END_TEST

START_TEST(label__fits_63_bytes_in_and_out)
{
	char in[128], out[NETPOL_IDNA_MAX + 1];
	const char *why = NULL;

	memset(in, 'a', sizeof(in));
	ck_assert(netpol_idna_label(in, 63, out, &why));
	ck_assert(!netpol_idna_label(in, 64, out, &why));
	memcpy(in, "ü", 2);
	ck_assert(netpol_idna_label(in, 2 + 54, out, &why)); /* xn-- + 54 + -dma */
	ck_assert_uint_le(strlen(out), 63);
	ck_assert(!netpol_idna_label(in, 2 + 60, out, &why));
	ck_assert_str_eq(why, "label over 63 bytes");
}
END_TEST

/* Random code points survive the way there and back. */
START_TEST(punycode__comes_back)
{
	uint32_t seed = 99;

	for (size_t round = 0; round < 50000; round++) {
		uint32_t cp[24], back[NETPOL_IDNA_MAX];
		char text[NETPOL_IDNA_MAX];
		size_t n, len = 0, n_back = 0;

		seed = seed * 1664525 + 1013904223;
		n = 1 + (seed >> 9) % 12;
		for (size_t i = 0; i < n; i++) {
			seed = seed * 1664525 + 1013904223;
			cp[i] = (seed >> 30) ? 'a' + (seed >> 8) % 26 : (seed >> 8) % 0x110000;
			if (cp[i] < 0x80)
				cp[i] = 'a' + cp[i] % 26;
			if (cp[i] >= 0xD800 && cp[i] <= 0xDFFF)
				cp[i] = 0xFC;
		}
		if (!netpol_puny_encode(cp, n, text, sizeof(text), &len))
			continue;
		ck_assert(netpol_puny_decode(text, len, back, &n_back));
		ck_assert_uint_eq(n_back, n);
		ck_assert_int_eq(memcmp(cp, back, n * sizeof(cp[0])), 0);
	}
}
END_TEST

static const struct {
	const char *base;
	bool public;
} suffixes[] = {
	{ "com", true },          { "io", true },
	{ "co.uk", true },        { "com.au", true },
	{ "co.jp", true },        { "ne.jp", true },
	{ "or.at", true },        { "gov.uk", true },
	{ "nhs.uk", true },       { "k12.ca.us", true },
	{ "ca.us", true },        { "x.sch.uk", true },
	{ "anything.ck", true },  { "example.com", false },
	{ "zoom.us", false },     { "web.de", false },
	{ "github.io", false },   { "bbc.co.uk", false },
	{ "x.k12.ca.us", false }, { "s3.amazonaws.com", false },
};

START_TEST(suffix__public_or_somebody_s)
{
	ck_assert_int_eq(netpol_suffix_is_public(suffixes[_i].base), suffixes[_i].public);
}
END_TEST

START_TEST(suffix__shared_is_seen_from_above_and_at_it)
{
	ck_assert_str_eq(netpol_suffix_shared("github.io"), "github.io");
	ck_assert_str_eq(netpol_suffix_shared("azure.com"), "cloudapp.azure.com");
	ck_assert_str_eq(netpol_suffix_shared("s3.amazonaws.com"), "s3.amazonaws.com");
	ck_assert_ptr_null(netpol_suffix_shared("me.github.io"));
	ck_assert_ptr_null(netpol_suffix_shared("example.com"));
	ck_assert_ptr_null(netpol_suffix_shared("ithub.io"));
	ck_assert_str_eq(netpol_suffix_shared_host("raw.githubusercontent.com"),
			 "raw.githubusercontent.com");
	ck_assert_ptr_null(netpol_suffix_shared_host("api.github.com"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netpolicy_idna");
	TCase *t = tcase_create("idna");

	tcase_add_loop_test(t, label__becomes_its_a_label, 0, (int)AQE_COUNT(good));
	tcase_add_loop_test(t, label__refuses_with_a_reason, 0, (int)AQE_COUNT(bad));
	tcase_add_test(t, label__refuses_a_nul);
	tcase_add_test(t, label__fits_63_bytes_in_and_out);
	tcase_add_test(t, punycode__comes_back);
	tcase_add_loop_test(t, suffix__public_or_somebody_s, 0, (int)AQE_COUNT(suffixes));
	tcase_add_test(t, suffix__shared_is_seen_from_above_and_at_it);
	suite_add_tcase(s, t);
	return unit_run(s);
}
