/* SPDX-License-Identifier: MIT */
/* What every unit test program needs. */
#ifndef AQE_UNIT_UNIT_H
#define AQE_UNIT_UNIT_H

#include <check.h>
#include <stdlib.h>
#include <string.h>
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
