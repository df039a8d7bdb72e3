/* SPDX-License-Identifier: MIT */
/* Where the log of a user is. */
#include "shim/aqe/audit_at.h"

#include <sys/stat.h>

#include "shim/record.h"
#include "tests/unit/cmd_util.h"

#define NOBODY 65534

static struct audit_opts at;

START_TEST(at__root_has_the_system_log)
{
	char *env[] = { aqe_arena_dup(arena, "HOME=/root"), NULL };

	if (geteuid() != 0 || shim_state_in_userns())
		return; /* what others get is the next test's */
	ck_assert_ok(shim_audit_at(arena, env, AUDIT_WRITE, &at, &err), err);
	ck_assert_str_eq(at.dir, AUDIT_DIR_SYSTEM);
	ck_assert_str_eq(at.spare_dir, "/run/aqe-shim");
	ck_assert_int_eq((int)at.mode, (int)AUDIT_WRITE);
	ck_assert_ptr_null(at.file);
	ck_assert_ptr_null(at.key_dir);
}
END_TEST

static const struct {
	const char *env[4];
	const char *dir, *spare;
} USERS[] = {
	{ { "HOME=/home/u" }, "/home/u/.local/state/aqe-shim/audit", NULL },
	{ { "HOME=/home/u", "XDG_STATE_HOME=/s" }, "/s/aqe-shim/audit", NULL },
	{ { "HOME=/home/u", "XDG_STATE_HOME=" }, "/home/u/.local/state/aqe-shim/audit", NULL },
	{ { "HOME=/home/u", "XDG_STATE_HOME=s" }, "/home/u/.local/state/aqe-shim/audit", NULL },
	{ { "HOME=/home/u", "XDG_RUNTIME_DIR=/run/user/1" },
	  "/home/u/.local/state/aqe-shim/audit",
	  "/run/user/1/aqe-shim" },
	{ { "HOME=/home/u", "XDG_RUNTIME_DIR=run" }, "/home/u/.local/state/aqe-shim/audit", NULL },
	{ { NULL }, NULL, NULL },
	{ { "HOME=home" }, NULL, NULL },
};

static char **copy_env(const char *const *env)
{
	char **to = aqe_arena_calloc(arena, 5, sizeof(*to));

	for (size_t i = 0; env[i]; i++)
		to[i] = aqe_arena_dup(arena, env[i]);
	return to;
}

START_TEST(at__others_have_their_own)
{
	int rc;

	ck_assert_int_eq(setegid(NOBODY), 0);
	ck_assert_int_eq(seteuid(NOBODY), 0);
	rc = shim_audit_at(arena, copy_env(USERS[_i].env), AUDIT_READ, &at, &err);
	ck_assert_int_eq(seteuid(0), 0);
	if (!USERS[_i].dir) {
		ck_assert_fault(rc, AQE_E_ABSENT, err, "HOME");
		return;
	}
	ck_assert_ok(rc, err);
	ck_assert_str_eq(at.dir, USERS[_i].dir);
	ck_assert_pstr_eq(at.spare_dir, USERS[_i].spare);
}
END_TEST

/* ~/.local/state is made for a writer, and for nobody else. */
START_TEST(at__makes_the_folders_above)
{
	const char *const home[] = { aqe_arena_fmt(arena, "HOME=%s/h", cmd_dir), NULL };
	struct stat st;

	ck_assert_int_eq(chmod(cmd_dir, 0777), 0);
	ck_assert_int_eq(seteuid(NOBODY), 0);
	ck_assert_ok(shim_audit_at(arena, copy_env(home), AUDIT_READ, &at, &err), err);
	ck_assert_int_eq(stat(cmd_path("h"), &st), -1);
	ck_assert_ok(shim_audit_at(arena, copy_env(home), AUDIT_WRITE, &at, &err), err);
	ck_assert_int_eq(stat(cmd_path("h/.local/state"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	ck_assert_int_eq(stat(cmd_path("h/.local/state/aqe-shim"), &st), -1);
	ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

START_TEST(at_path__folders_and_files)
{
	const char *file = cmd_file("copy.db", "x", 1);
	char cwd[4096];

	ck_assert_ok(shim_audit_at_path(arena, "/var//log/", AUDIT_WRITE, &at, &err), err);
	ck_assert_str_eq(at.dir, "/var//log");
	ck_assert_ptr_null(at.file);
	ck_assert_ok(shim_audit_at_path(arena, "/", AUDIT_READ, &at, &err), err);
	ck_assert_str_eq(at.dir, "/");
	ck_assert_ok(shim_audit_at_path(arena, file, AUDIT_READ, &at, &err), err);
	ck_assert_str_eq(at.dir, cmd_dir);
	ck_assert_str_eq(at.file, "copy.db");
	/* only for reading: a writer names the folder */
	ck_assert_ok(shim_audit_at_path(arena, file, AUDIT_WRITE, &at, &err), err);
	ck_assert_str_eq(at.dir, file);
	ck_assert_ptr_null(at.file);
	ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
	ck_assert_ok(shim_audit_at_path(arena, "some/log", AUDIT_READ, &at, &err), err);
	ck_assert_str_eq(at.dir, aqe_arena_fmt(arena, "%s/some/log", cwd));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("shim/audit_at");
	TCase *t = tcase_create("at");

	tcase_add_checked_fixture(t, cmd_setup, cmd_teardown);
	tcase_add_test(t, at__root_has_the_system_log);
	if (geteuid() == 0) {
		tcase_add_loop_test(t, at__others_have_their_own, 0, (int)AQE_COUNT(USERS));
		tcase_add_test(t, at__makes_the_folders_above);
	}
	tcase_add_test(t, at_path__folders_and_files);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run_with_openat2(suite());
}
