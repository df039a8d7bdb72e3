/* SPDX-License-Identifier: MIT */
#include <check.h>
#include <stdlib.h>

#include "hardening/caps.h"
#include "shim/core/text.h"

static const struct {
	const char *name;
	bool known, def;
} names[] = {
	{ "CAP_CHOWN", true, true },
	{ "CAP_SYS_ADMIN", true, false },
	{ "CAP_CHECKPOINT_RESTORE", true, false },
	{ "CAP_NET_RAW", true, true }, /* docker and containerd */
	{ "CAP_MKNOD", true, true },   /* docker and containerd */
	{ "CAP_SYS_CHROOT", true, true },
	{ "CAP_NET_ADMIN", true, false },
	{ "cap_chown", false, false }, /* crun takes it, runc does not */
	{ "CAP_chown", false, false },
	{ "CHOWN", false, false },
	{ "38", false, false }, /* libcap takes numbers */
	{ "CAP_38", false, false },
	{ "CAP_", false, false },
	{ "CAP_CHOWNX", false, false },
	{ "CAP_CHOWN ", false, false },
	{ "ALL", false, false },
	{ "", false, false },
	{ NULL, false, false },
	{ "CAP_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", false,
	  false },
};

START_TEST(cap_known__takes_exact_names_only)
{
	ck_assert_int_eq(hard_cap_known(names[_i].name), names[_i].known);
	ck_assert_int_eq(hard_cap_is_default(names[_i].name), names[_i].def);
}
END_TEST

START_TEST(cap_count__is_at_least_that_of_linux_5_9)
{
	ck_assert_int_ge(hard_cap_count(), 41);
	ck_assert_int_le(hard_cap_count(), 64);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening_caps");
	TCase *t = tcase_create("caps");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, cap_known__takes_exact_names_only, 0, (int)AQE_COUNT(names));
	tcase_add_test(t, cap_count__is_at_least_that_of_linux_5_9);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
