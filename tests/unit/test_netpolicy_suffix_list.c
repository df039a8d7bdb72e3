/* SPDX-License-Identifier: MIT */
/* Public Suffix Lists: rules, wildcards, exceptions, sections, letters beyond ASCII. */
#include "netpolicy/suffix_list.h"

#include <check.h>
#include <string.h>

#include "shim/core/text.h"
#include "tests/unit/unit.h"

static const char LIST[] = "// a comment: com.example\n"
			   "// ===BEGIN ICANN DOMAINS===\n"
			   "com\n"
			   "co.uk   words behind a blank\n"
			   "*.ck\r\n"
			   "!www.ck\n"
			   "\n"
			   ".bad..\n"
			   "公司.cn\n"
			   "// ===END ICANN DOMAINS===\n"
			   "// ===BEGIN PRIVATE DOMAINS===\n"
			   "github.io\n"
			   "*.run.example\n"
			   "last.test";

static const struct {
	const char *base;
	enum netpol_suffix is;
} CASES[] = {
	{ "com", NETPOL_SUFFIX_PUBLIC },
	{ "co.uk", NETPOL_SUFFIX_PUBLIC },
	{ "uk", NETPOL_SUFFIX_NONE },
	{ "example.co.uk", NETPOL_SUFFIX_NONE },
	{ "words", NETPOL_SUFFIX_NONE },
	{ "com.example", NETPOL_SUFFIX_NONE },
	{ "any.ck", NETPOL_SUFFIX_PUBLIC },
	{ "a.any.ck", NETPOL_SUFFIX_NONE },
	{ "ck", NETPOL_SUFFIX_NONE },
	{ "www.ck", NETPOL_SUFFIX_NONE },
	{ "xn--55qx5d.cn", NETPOL_SUFFIX_PUBLIC },
	{ "xn--bcher-kva.cn", NETPOL_SUFFIX_NONE },
	{ "github.io", NETPOL_SUFFIX_PRIVATE },
	{ "me.github.io", NETPOL_SUFFIX_NONE },
	{ "x.run.example", NETPOL_SUFFIX_PRIVATE },
	{ "run.example", NETPOL_SUFFIX_NONE },
	{ "last.test", NETPOL_SUFFIX_PRIVATE },
};

START_TEST(list__says_what_a_name_is)
{
	ck_assert_int_eq(netpol_suffix_list(LIST, strlen(LIST), CASES[_i].base), CASES[_i].is);
}
END_TEST

START_TEST(list__is_read_to_its_length)
{
	ck_assert_int_eq(netpol_suffix_list("com\nnet", 6, "net"), NETPOL_SUFFIX_NONE);
	ck_assert_int_eq(netpol_suffix_list("com\nnet", 7, "net"), NETPOL_SUFFIX_PUBLIC);
	ck_assert_int_eq(netpol_suffix_list("", 0, "net"), NETPOL_SUFFIX_NONE);
	ck_assert_int_eq(netpol_suffix_list("!", 1, "net"), NETPOL_SUFFIX_NONE);
	ck_assert_int_eq(netpol_suffix_list("*.", 2, "a.net"), NETPOL_SUFFIX_NONE);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netpolicy_suffix_list");
	TCase *t = tcase_create("list");

	tcase_add_loop_test(t, list__says_what_a_name_is, 0, (int)AQE_COUNT(CASES));
	tcase_add_test(t, list__is_read_to_its_length);
	suite_add_tcase(s, t);
	return unit_run(s);
}
