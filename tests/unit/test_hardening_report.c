/* SPDX-License-Identifier: MIT */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "hardening/report.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define ARENA ((size_t)1 << 20)

static struct aqe_arena *arena;
static struct hard_report r;

static void setup(void)
{
	arena = aqe_arena_new(ARENA);
	ck_assert_ptr_nonnull(arena);
	hard_report_init(&r, arena);
}

static void teardown(void)
{
	aqe_arena_free(arena);
}

static void pass_all(void)
{
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++)
		hard_report_pass(&r, (enum hard_prop)i);
}

static const char *refusal(void)
{
	static struct aqe_buf b = AQE_BUF_INIT(4096);

	aqe_buf_clear(&b);
	hard_report_refusal(&r, &b);
	ck_assert_int_eq(b.failed, 0);
	return aqe_buf_str(&b);
}

START_TEST(report__a_property_without_a_result_is_no_pass)
{
	ck_assert(!hard_report_ok(&r));
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++) {
		ck_assert(!hard_report_ok(&r));
		ck_assert_int_eq(r.result[i], HARD_UNKNOWN);
		hard_report_pass(&r, (enum hard_prop)i);
	}
	ck_assert(hard_report_ok(&r));
	ck_assert_ptr_null(hard_report_worst(&r));
	ck_assert_str_eq(refusal(), "refused: out of memory"); /* asked without a reason */
}
END_TEST

START_TEST(report__a_pass_does_not_lift_a_failure)
{
	hard_report_fail(&r, HARD_USER, NULL, "/process/user/uid", NULL, "uid %d", 0);
	hard_report_unknown(&r, HARD_DIGEST, "", "a digest", "no store");
	pass_all();
	ck_assert_int_eq(r.result[HARD_USER], HARD_FAIL);
	ck_assert_int_eq(r.result[HARD_DIGEST], HARD_UNKNOWN);
	ck_assert(!hard_report_ok(&r));
	ck_assert_uint_eq(r.n_findings, 2);
}
END_TEST

START_TEST(report__a_failure_lifts_a_pass)
{
	pass_all();
	hard_report_unknown(&r, HARD_LSM, "", NULL, "x");
	ck_assert_int_eq(r.result[HARD_LSM], HARD_UNKNOWN);
	hard_report_fail(&r, HARD_LSM, NULL, "", NULL, "x");
	ck_assert_int_eq(r.result[HARD_LSM], HARD_FAIL);
	hard_report_unknown(&r, HARD_LSM, "", NULL, "x");
	ck_assert_int_eq(r.result[HARD_LSM], HARD_FAIL);
	ck_assert(!hard_report_ok(&r));
}
END_TEST

START_TEST(report__takes_place_and_pointer_from_the_document)
{
	static const char doc[] = "{\"a\":\n {\"b/c\": 5}}";
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *root = NULL;
	const struct aqe_json *at;

	ck_assert_int_eq(aqe_json_parse(arena, doc, strlen(doc), &AQE_JSON_LIMITS_DEFAULT, &root,
					&e),
			 0);
	at = aqe_json_at(root, "/a/b~1c");
	hard_report_fail(&r, HARD_USER, at, NULL, NULL, "5");
	ck_assert_str_eq(r.first->pointer, "/a/b~1c");
	ck_assert_uint_eq(r.first->line, 2);
	ck_assert_str_eq(r.first->wanted, HARDENING_PROFILE[HARD_USER].required);
	hard_report_fail(&r, HARD_USER, at->parent, "/umask", "022", "absent");
	ck_assert_str_eq(r.last->pointer, "/a/umask");
	ck_assert_str_eq(r.last->wanted, "022");
	ck_assert_ptr_eq(r.first->next, r.last);
}
END_TEST

START_TEST(report__worst_is_the_first_failed_property)
{
	hard_report_fail(&r, HARD_USER, NULL, "/u", NULL, "u");
	hard_report_fail(&r, HARD_PRIVILEGED, NULL, "/p1", NULL, "p1");
	hard_report_fail(&r, HARD_PRIVILEGED, NULL, "/p2", NULL, "p2");
	ck_assert_str_eq(hard_report_worst(&r)->pointer, "/p1");
}
END_TEST

START_TEST(report__keeps_256_findings_and_still_fails)
{
	for (int i = 0; i < 300; i++)
		hard_report_fail(&r, HARD_MOUNTS, NULL, "/mounts", NULL, "%d", i);
	ck_assert_uint_eq(r.n_findings, 256);
	pass_all();
	ck_assert_int_eq(r.result[HARD_MOUNTS], HARD_FAIL);
	hard_report_fail(&r, HARD_HOOKS, NULL, "/hooks", NULL, "late");
	ck_assert_int_eq(r.result[HARD_HOOKS], HARD_FAIL);
	ck_assert_uint_eq(r.n_findings, 256);
	ck_assert(!r.nomem);
}
END_TEST

START_TEST(report__out_of_memory_counts_as_failed)
{
	AQE_AUTO_ARENA struct aqe_arena *small = aqe_arena_new((size_t)_i * 16);

	ck_assert_ptr_nonnull(small);
	hard_report_init(&r, small);
	hard_report_fail(&r, HARD_MOUNTS, NULL, "/mounts/3", "wanted this", "found %s", "that");
	ck_assert(r.nomem || r.n_findings == 1);
	ck_assert_int_eq(r.result[HARD_MOUNTS], HARD_FAIL);
	r.result[HARD_MOUNTS] = HARD_UNKNOWN;
	pass_all();
	ck_assert_int_eq(hard_report_ok(&r), !r.nomem);
}
END_TEST

START_TEST(report__long_and_broken_text_is_cut_at_a_character)
{
	char big[2000];

	memset(big, 'x', sizeof(big));
	memcpy(big + 509, "\xc3\xa4\xc3\xa4", 4); /* a character across the limit */
	big[sizeof(big) - 1] = '\0';
	hard_report_fail(&r, HARD_USER, NULL, "/u", NULL, "%s", big);
	ck_assert_uint_le(strlen(r.first->found), 511);
	ck_assert(aqe_utf8_ok(r.first->found, strlen(r.first->found), NULL));
}
END_TEST

START_TEST(refusal__names_property_place_found_wanted_and_fix)
{
	pass_all();
	hard_report_fail(&r, HARD_USER, NULL, "/process/user/uid", "1 to 2147483647", "0");
	ck_assert_str_eq(refusal(), "refused: user at /process/user/uid: found 0, wanted 1 to "
				    "2147483647; fix: use --user=1000:1000, or set 'user' in the "
				    "policy");
	r.first->fix = "do this";
	ck_assert(aqe_ends(refusal(), "; fix: do this"));
}
END_TEST

START_TEST(refusal__says_when_nothing_was_decided)
{
	pass_all();
	r.result[HARD_TMPFS] = HARD_UNKNOWN;
	ck_assert(aqe_starts(refusal(), "refused: tmpfs: not decided, wanted "));
	hard_report_unknown(&r, HARD_DIGEST, "", "a pinned image", "buildah names no image");
	ck_assert_ptr_nonnull(strstr(refusal(), "refused: digest: not decided: buildah names no "
						"image, wanted a pinned image; fix: "));
}
END_TEST

START_TEST(refusal__is_at_most_2000_bytes)
{
	char big[500];

	memset(big, 'y', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++) {
		for (int j = 0; j < 5; j++)
			hard_report_fail(&r, (enum hard_prop)i, NULL, "/x", big, "%s", big);
	}
	ck_assert_uint_le(strlen(refusal()), 2000);
	ck_assert_uint_ge(strlen(refusal()), 1000);
	ck_assert(aqe_starts(refusal(), "refused: privileged at /x: found yyy"));
	ck_assert_ptr_nonnull(strstr(refusal(), " more findings)"));
}
END_TEST

START_TEST(refusal__shows_two_findings_a_property)
{
	pass_all();
	for (int i = 0; i < 5; i++)
		hard_report_fail(&r, HARD_MOUNTS, NULL, "/m", "w", "f%d", i);
	ck_assert_ptr_nonnull(strstr(refusal(), "found f0"));
	ck_assert_ptr_nonnull(strstr(refusal(), "found f1"));
	ck_assert_ptr_null(strstr(refusal(), "found f2"));
	ck_assert(aqe_ends(refusal(), "\n(and 3 more findings)"));
}
END_TEST

/* engines.md section 2: engines replace or cut messages that have these. */
static const char *const phrases[] = {
	"Permission denied",        "no such file or directory",
	"Operation Not Permitted",  "not a directory",
	"is a directory",           "executable file not found in $PATH",
	"process does not exist",   "container not running",
	"process already finished",
};

START_TEST(refusal__has_no_phrase_that_engines_take_for_their_own)
{
	pass_all();
	hard_report_fail(&r, HARD_MOUNTS, NULL, phrases[_i], phrases[_i], "%s and %s", phrases[_i],
			 phrases[_i]);
	for (size_t i = 0; i < AQE_COUNT(phrases); i++)
		ck_assert_msg(!strcasestr(refusal(), phrases[i]), "%s", refusal());
}
END_TEST

START_TEST(refusal__is_one_line_a_finding_without_control_characters)
{
	pass_all();
	hard_report_fail(&r, HARD_MOUNTS, NULL, "/m\n", "w", "a\nb\033[31m\177`/proc/1/attr`");
	ck_assert_ptr_null(strpbrk(refusal(), "\n\033\177`"));
}
END_TEST

/* ---- waivers ---- */

static const struct hard_waiver waivers[] = {
	{ .prop = HARD_ROOTLESS, .agent_type = "default", .expires = 100 },
	{ .prop = HARD_MOUNTS, .image = "img", .expires = 100 },
};
static const struct hard_image image = { .name = "img", .digest = "sha256:d" };

START_TEST(waive__lifts_failures_of_the_right_type_in_time)
{
	struct hard_policy p = { .waivers = waivers, .n_waivers = AQE_COUNT(waivers) };

	pass_all();
	hard_report_fail(&r, HARD_ROOTLESS, NULL, "", NULL, "x");
	hard_report_unknown(&r, HARD_MOUNTS, "", NULL, "x");
	hard_report_waive(&r, &p, "other", NULL, 99);
	ck_assert_int_eq(r.result[HARD_ROOTLESS], HARD_FAIL);
	ck_assert_int_eq(r.result[HARD_MOUNTS], HARD_UNKNOWN);
	hard_report_waive(&r, &p, "default", &image, 100); /* expired */
	ck_assert_int_eq(r.result[HARD_ROOTLESS], HARD_FAIL);
	hard_report_waive(&r, &p, "default", &image, 99);
	ck_assert_int_eq(r.result[HARD_ROOTLESS], HARD_WAIVED);
	ck_assert_ptr_eq(r.waiver[HARD_ROOTLESS], &waivers[0]);
	ck_assert_int_eq(r.result[HARD_MOUNTS], HARD_WAIVED);
	ck_assert(hard_report_ok(&r));
	/* a later finding is judged anew */
	hard_report_fail(&r, HARD_ROOTLESS, NULL, "", NULL, "y");
	ck_assert_int_eq(r.result[HARD_ROOTLESS], HARD_FAIL);
	ck_assert_ptr_null(r.waiver[HARD_ROOTLESS]);
}
END_TEST

START_TEST(waive__never_lifts_what_cannot_be_waived)
{
	const struct hard_waiver all[] = {
		{ .prop = (enum hard_prop)_i, .agent_type = "default", .expires = 100 }
	};
	struct hard_policy p = { .waivers = all, .n_waivers = 1 };

	pass_all();
	hard_report_fail(&r, (enum hard_prop)_i, NULL, "", NULL, "x");
	hard_report_waive(&r, &p, "default", &image, 0);
	ck_assert_int_eq(hard_report_ok(&r), HARDENING_PROFILE[_i].waivable);
}
END_TEST

START_TEST(result_name__covers_all)
{
	ck_assert_str_eq(hard_result_name(HARD_PASS), "pass");
	ck_assert_str_eq(hard_result_name(HARD_FAIL), "fail");
	ck_assert_str_eq(hard_result_name(HARD_WAIVED), "waived");
	ck_assert_str_eq(hard_result_name(HARD_UNKNOWN), "unknown");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening_report");
	TCase *t = tcase_create("report");
	SRunner *runner = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, report__a_property_without_a_result_is_no_pass);
	tcase_add_test(t, report__a_pass_does_not_lift_a_failure);
	tcase_add_test(t, report__a_failure_lifts_a_pass);
	tcase_add_test(t, report__takes_place_and_pointer_from_the_document);
	tcase_add_test(t, report__worst_is_the_first_failed_property);
	tcase_add_test(t, report__keeps_256_findings_and_still_fails);
	tcase_add_loop_test(t, report__out_of_memory_counts_as_failed, 1, 20);
	tcase_add_test(t, report__long_and_broken_text_is_cut_at_a_character);
	tcase_add_test(t, refusal__names_property_place_found_wanted_and_fix);
	tcase_add_test(t, refusal__says_when_nothing_was_decided);
	tcase_add_test(t, refusal__is_at_most_2000_bytes);
	tcase_add_test(t, refusal__shows_two_findings_a_property);
	tcase_add_loop_test(t, refusal__has_no_phrase_that_engines_take_for_their_own, 0,
			    (int)AQE_COUNT(phrases));
	tcase_add_test(t, refusal__is_one_line_a_finding_without_control_characters);
	tcase_add_test(t, waive__lifts_failures_of_the_right_type_in_time);
	tcase_add_loop_test(t, waive__never_lifts_what_cannot_be_waived, 0, HARD_PROP_COUNT);
	tcase_add_test(t, result_name__covers_all);
	suite_add_tcase(s, t);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
