/* SPDX-License-Identifier: MIT */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardening/agents.h"
#include "hardening/knowledge.h"
#include "hardening/props.h"
#include "hardening/seccomp.h"
#include "shim/cmds.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "shim/exit.h"

/* Each test runs in a child: its streams may go elsewhere. */
static void setup(void)
{
	ck_assert_ptr_nonnull(freopen("/dev/null", "we", stderr));
}

/* Runs the command with its output in a temporary file, and returns that in `b`. */
static int run(const char *a1, const char *a2, struct aqe_buf *b)
{
	char path[] = "/tmp/aqe-test-XXXXXX";
	char words[3][32] = { "profile", "", "" };
	char *argv[4] = { words[0], a1 ? words[1] : NULL, a2 ? words[2] : NULL, NULL };
	AQE_AUTO_FD int fd = mkstemp(path);
	struct aqe_err e = AQE_ERR_INIT;
	int status;

	ck_assert_int_ge(fd, 0);
	(void)snprintf(words[1], sizeof(words[1]), "%s", a1 ? a1 : "");
	(void)snprintf(words[2], sizeof(words[2]), "%s", a2 ? a2 : "");
	ck_assert_ptr_nonnull(freopen(path, "we", stdout));
	ck_assert_int_eq(remove(path), 0);
	status = shim_cmd_profile(a2 ? 3 : a1 ? 2 : 1, argv);
	/* `fd` is another description of the same file, still at its beginning */
	ck_assert_msg(!aqe_fs_read_fd(fd, b, &e), "%s", e.text);
	return status;
}

START_TEST(profile__text_names_everything_in_80_columns)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 20);
	size_t column = 0;

	ck_assert_int_eq(run(NULL, NULL, &b), SHIM_EXIT_OK);
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++)
		ck_assert_msg(strstr(b.p, HARDENING_PROFILE[i].id), "%s", HARDENING_PROFILE[i].id);
	for (size_t i = 0; i < HARD_AGENTS_COUNT; i++)
		ck_assert_msg(strstr(b.p, HARD_AGENTS[i].type), "%s", HARD_AGENTS[i].type);
	for (size_t i = 0; i < HARD_SECCOMP_FORBIDDEN_COUNT; i++)
		ck_assert_msg(strstr(b.p, HARD_SECCOMP_FORBIDDEN[i]), "%s",
			      HARD_SECCOMP_FORBIDDEN[i]);
	for (size_t i = 0; i < b.len; i++) {
		column = b.p[i] == '\n' ? 0 : column + 1;
		ck_assert_uint_le(column, 80);
	}
}
END_TEST

START_TEST(profile__json_is_one_document_with_all_rows)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 20);
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)4 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *root = NULL;

	ck_assert_int_eq(run("--format", "json", &b), SHIM_EXIT_OK);
	ck_assert_msg(!aqe_json_parse(a, b.p, b.len, &AQE_JSON_LIMITS_DEFAULT, &root, &e), "%s",
		      e.text);
	ck_assert_str_eq(aqe_json_get(root, "version")->text, "1");
	ck_assert_uint_eq(aqe_json_get(root, "properties")->len, HARD_PROP_COUNT);
	ck_assert_uint_eq(aqe_json_get(root, "agentTypes")->len, HARD_AGENTS_COUNT);
	ck_assert_uint_eq(aqe_json_get(root, "forbiddenSyscalls")->len,
			  HARD_SECCOMP_FORBIDDEN_COUNT);
	ck_assert_str_eq(aqe_json_at(root, "/ceilings/pids")->text, "512");
	/* every table of knowledge is printed, and has a source and a date */
	ck_assert_uint_eq(aqe_json_get(root, "references")->len, HARD_CVES_COUNT);
	ck_assert_uint_eq(aqe_json_get(root, "sources")->len, HARD_SOURCES_COUNT);
	for (const struct aqe_json *v = aqe_json_get(root, "sources")->first; v; v = v->next) {
		const char *table = aqe_json_str(aqe_json_get(v, "table"));

		ck_assert_msg(aqe_json_get(root, table) && aqe_json_get(root, table)->len, "%s",
			      table);
		ck_assert(*aqe_json_str(aqe_json_get(v, "source")));
		ck_assert_uint_eq(strlen(aqe_json_str(aqe_json_get(v, "date"))), 7);
	}
	ck_assert_uint_gt(aqe_json_at(root, "/engineKeys/container")->len, 20);
	ck_assert_str_eq(aqe_json_at(root, "/properties/2/id")->text, "capabilities");
	ck_assert(!aqe_json_at(root, "/properties/2/waivable")->boolean);
}
END_TEST

static const struct {
	const char *word, *word2;
	int status;
} lines[] = {
	{ "--help", NULL, SHIM_EXIT_OK },
	{ "--format=text", NULL, SHIM_EXIT_OK },
	{ "--format=yaml", NULL, SHIM_EXIT_USAGE },
	{ "--format", NULL, SHIM_EXIT_USAGE },
	{ "--nope", NULL, SHIM_EXIT_USAGE },
	{ "file.json", NULL, SHIM_EXIT_USAGE },
	{ "--", "x", SHIM_EXIT_USAGE },
};

START_TEST(profile__exit_status_follows_the_command_line)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 20);

	ck_assert_int_eq(run(lines[_i].word, lines[_i].word2, &b), lines[_i].status);
	ck_assert_int_eq(b.len > 0, lines[_i].status == SHIM_EXIT_OK);
}
END_TEST

START_TEST(profile__a_full_disk_is_a_failure)
{
	char name[] = "profile";
	char *argv[] = { name, NULL };

	ck_assert_ptr_nonnull(freopen("/dev/full", "we", stdout));
	ck_assert_int_eq(shim_cmd_profile(1, argv), SHIM_EXIT_FAILED);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("shim_cmd_profile");
	TCase *t = tcase_create("profile");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, profile__text_names_everything_in_80_columns);
	tcase_add_test(t, profile__json_is_one_document_with_all_rows);
	tcase_add_loop_test(t, profile__exit_status_follows_the_command_line, 0,
			    (int)AQE_COUNT(lines));
	tcase_add_test(t, profile__a_full_disk_is_a_failure);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
