/* SPDX-License-Identifier: MIT */
/* What every unit test program needs. */
#ifndef AQE_UNIT_UNIT_H
#define AQE_UNIT_UNIT_H

#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/core/err.h"

/* Runs the suite and frees it; the program's exit status. */
static inline int unit_run(Suite *s)
{
	SRunner *runner = srunner_create(s);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* False under valgrind 3.19, which knows neither openat2(2) nor pidfd_open(2). */
static inline bool unit_has_openat2(void)
{
	return syscall(SYS_openat2, -1, "", NULL, 0) != -1 || errno != ENOSYS;
}

START_TEST(openat2__is_missing_here)
{
	ck_assert_ptr_null(getenv("AQE_TESTS_MUST_RUN"));
}
END_TEST

/* As unit_run(), for suites that need these calls: without them one case stands for all, and it
 * fails where everything has to run. */
static inline int unit_run_with_openat2(Suite *s)
{
	Suite *none;
	TCase *t;

	if (unit_has_openat2())
		return unit_run(s);
	none = suite_create("skipped");
	t = tcase_create("skipped");
	tcase_add_test(t, openat2__is_missing_here);
	suite_add_tcase(none, t);
	srunner_free(srunner_create(s));
	return unit_run(none);
}

/* A failure with this code, and text that contains `part` (NULL: any). */
#define ck_assert_fault(rc, want, e, part) unit_fault(rc, want, &(e), part, __FILE__, __LINE__)

static inline void unit_fault(int rc, int want, const struct aqe_err *e, const char *part,
			      const char *file, int line)
{
	if (rc != want || (int)e->code != want)
		_ck_assert_failed(file, line, "Failed", "got %s (%s), want %s",
				  aqe_code_name((enum aqe_code)rc), e->text,
				  aqe_code_name((enum aqe_code)want));
	if (part && !strstr(e->text, part))
		_ck_assert_failed(file, line, "Failed", "'%s' does not contain '%s'", e->text,
				  part);
}

#define ck_assert_ok(rc, e) \
	ck_assert_msg((rc) == 0, "got %s (%s)", aqe_code_name((enum aqe_code)(rc)), (e).text)

#endif
