/* SPDX-License-Identifier: MIT */
#include <check.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "hardening/props.h"
#include "shim/core/text.h"

/* DESIGN section 5 in its words: the ids are an interface, and so is what can never be waived. */
static const char *const ids[] = {
	"privileged",      "rootless",      "capabilities", "no_new_privileges",
	"readonly_rootfs", "tmpfs",         "pids_limit",   "memory_limit",
	"cpu_limit",       "network",       "digest",       "mounts",
	"propagation",     "engine_socket", "user",         "seccomp",
	"namespaces",      "devices",       "sysctl",       "masked_paths",
	"rlimits",         "lsm",           "hooks",        "annotations",
	"unknown_field",   "missing_field",
};
static const char *const never_waived[] = { "privileged",
					    "engine_socket",
					    "capabilities",
					    "no_new_privileges",
					    "hooks",
					    "unknown_field",
					    NULL };

START_TEST(profile__has_the_public_ids_in_order)
{
	ck_assert_uint_eq(AQE_COUNT(ids), HARD_PROP_COUNT);
	ck_assert_str_eq(HARDENING_PROFILE[_i].id, ids[_i]);
	ck_assert_int_eq(hard_prop_by_id(ids[_i]), _i);
}
END_TEST

START_TEST(profile__waives_only_what_the_design_allows)
{
	const struct hard_prop_row *row = &HARDENING_PROFILE[_i];

	ck_assert_int_eq(row->waivable, !aqe_str_in(row->id, never_waived));
}
END_TEST

/* Texts end up in one-line messages: clauses without full stop, `why` in sentences. */
START_TEST(profile__has_texts_fit_for_messages)
{
	const struct hard_prop_row *row = &HARDENING_PROFILE[_i];
	const char *const clauses[] = { row->required, row->fix, row->rewrite };

	for (size_t i = 0; i < AQE_COUNT(clauses); i++) {
		ck_assert_ptr_nonnull(clauses[i]);
		ck_assert_uint_ge(strlen(clauses[i]), 3);
		ck_assert_uint_le(strlen(clauses[i]), 160);
		ck_assert_msg(!aqe_ends(clauses[i], "."), "%s", clauses[i]);
		ck_assert_msg(!strpbrk(clauses[i], "\n`"), "%s", clauses[i]);
	}
	ck_assert_ptr_nonnull(row->why);
	ck_assert_msg(aqe_ends(row->why, "."), "%s", row->why);
	ck_assert_msg(!strstr(row->why, "  "), "%s", row->why);
}
END_TEST

START_TEST(prop_by_id__knows_no_other_names)
{
	static const char *const bad[] = { "", "Privileged", "privileged ", "network_", "seccom" };

	for (size_t i = 0; i < AQE_COUNT(bad); i++)
		ck_assert_int_eq(hard_prop_by_id(bad[i]), HARD_PROP_COUNT);
	ck_assert_int_eq(hard_prop_by_id(NULL), HARD_PROP_COUNT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening_profile");
	TCase *t = tcase_create("profile");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, profile__has_the_public_ids_in_order, 0, HARD_PROP_COUNT);
	tcase_add_loop_test(t, profile__waives_only_what_the_design_allows, 0, HARD_PROP_COUNT);
	tcase_add_loop_test(t, profile__has_texts_fit_for_messages, 0, HARD_PROP_COUNT);
	tcase_add_test(t, prop_by_id__knows_no_other_names);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
