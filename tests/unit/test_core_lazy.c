/* SPDX-License-Identifier: MIT */
#include "shim/core/lazy.h"

#include <check.h>
#include <string.h>

#include "shim/aqe/http.h"
#include "shim/core/text.h"
#include "shim/core/tls.h"
#include "shim/sandbox/archive.h"
#include "tests/unit/unit.h"

struct api {
	double (*cos)(double x);
	double (*sin)(double x);
};
static const struct aqe_lazy_symbol SYMBOLS[] = {
	{ "cos", offsetof(struct api, cos) },
	{ "sin", offsetof(struct api, sin) },
};

START_TEST(load__fills_the_struct)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct api api = { NULL, NULL };

	ck_assert_int_eq(aqe_lazy_load("libm.so.6", SYMBOLS, 2, &api, &e), 0);
	ck_assert(api.cos(0.0) > 0.99 && api.sin(0.0) < 0.01);
}
END_TEST

START_TEST(load__a_library_that_is_not_there_is_named)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct api api = { NULL, NULL };

	ck_assert_int_eq(aqe_lazy_load("libaqe-none.so.1", SYMBOLS, 2, &api, &e), AQE_E_ABSENT);
	ck_assert_ptr_nonnull(strstr(e.text, "cannot load libaqe-none.so.1"));
	ck_assert(!api.cos);
}
END_TEST

START_TEST(load__a_function_that_is_not_there_leaves_all_as_it_was)
{
	static const struct aqe_lazy_symbol MORE[] = {
		{ "cos", offsetof(struct api, cos) },
		{ "aqe_no_such_function", offsetof(struct api, sin) },
	};
	struct aqe_err e = AQE_ERR_INIT;
	struct api api = { NULL, NULL };

	ck_assert_int_eq(aqe_lazy_load("libm.so.6", MORE, 2, &api, &e), AQE_E_ABSENT);
	ck_assert_ptr_nonnull(strstr(e.text, "aqe_no_such_function"));
	ck_assert(!api.cos && !api.sin);
}
END_TEST

/* The names and the lists of functions that the program itself uses. */
START_TEST(load__libraries_have_what_is_asked_of_them)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_http *http = NULL;

	ck_assert_int_eq(shim_archive_ready(&e), 0);
	ck_assert_int_eq(shim_archive_ready(&e), 0);
	ck_assert_int_eq(shim_http_new(NULL, &http, &e), 0);
	shim_http_free(http);
	ck_assert_int_eq(aqe_tls_load(&e), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("core_lazy");
	TCase *t = tcase_create("load");

	tcase_add_test(t, load__fills_the_struct);
	tcase_add_test(t, load__a_library_that_is_not_there_is_named);
	tcase_add_test(t, load__a_function_that_is_not_there_leaves_all_as_it_was);
	tcase_add_test(t, load__libraries_have_what_is_asked_of_them);
	suite_add_tcase(s, t);
	return unit_run(s);
}
