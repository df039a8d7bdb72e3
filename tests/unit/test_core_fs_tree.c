/* SPDX-License-Identifier: MIT */
#include <sched.h>
#include <sys/mount.h>

#include "tests/unit/fs_fixture.h"

START_TEST(remove_tree__removes_all_kinds)
{
	struct aqe_err e = AQE_ERR_INIT;

	make_links();
	put("dir/a", "x", 0000);
	make_dir("dir/sub/empty", 0700);
	ck_assert_int_eq(symlinkat("../../file", top, "dir/sub/out"), 0);
	ck_assert_int_eq(symlinkat("/etc", top, "dir/sub/etc"), 0);
	ck_assert_int_eq(mkfifoat(top, "dir/sub/fifo", 0600), 0);
	ck_assert_ok(aqe_fs_remove_tree(top, "dir", &e), e);
	ck_assert(!exists("dir"));
	ck_assert(exists("file"));
	ck_assert_int_eq(access("/etc/passwd", F_OK), 0);
	ck_assert_ok(aqe_fs_remove_tree(top, "dir", &e), e);  /* absent */
	ck_assert_ok(aqe_fs_remove_tree(top, "link", &e), e); /* the link, not the file */
	ck_assert(!exists("link"));
	ck_assert(exists("file"));
	ck_assert_ok(aqe_fs_remove_tree(top, "file", &e), e);
	ck_assert(!exists("file"));
}
END_TEST

START_TEST(remove_tree__removes_many)
{
	struct aqe_err e = AQE_ERR_INIT;
	char name[40];

	make_dir("dir", 0700);
	for (int i = 0; i < 30; i++) {
		(void)snprintf(name, sizeof(name), "dir/%d", i);
		make_dir(name, 0700);
		for (int k = 0; k < 30; k++) {
			(void)snprintf(name, sizeof(name), "dir/%d/%d", i, k);
			put(name, "", 0600);
		}
	}
	ck_assert_ok(aqe_fs_remove_tree(top, "dir", &e), e);
	ck_assert_uint_eq(count_entries(), 0);
}
END_TEST

START_TEST(remove_tree__limits_its_depth)
{
	for (int depth = 135; depth <= 137; depth++) {
		struct aqe_err e = AQE_ERR_INIT;
		char path[400] = "d";
		int rc;

		make_dir("d", 0700);
		for (int i = 1; i < depth; i++) {
			(void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "/d");
			make_dir(path, 0700);
		}
		rc = aqe_fs_remove_tree(top, "d", &e);
		if (depth <= 136) {
			ck_assert_ok(rc, e);
			ck_assert(!exists("d"));
			continue;
		}
		ck_assert_fault(rc, AQE_E_LIMIT, e, "too many directories");
		path[strlen(path) - 2] = '\0';
		ck_assert_int_eq(renameat(top, "d/d/d", top, "e"), 0); /* for teardown */
		ck_assert_ok(aqe_fs_remove_tree(top, "e", &e), e);
	}
}
END_TEST

static int remove_mounted(void)
{
	struct aqe_err e = AQE_ERR_INIT;
	char path[200];
	int rc;

	full("dir/mnt", path);
	if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", path, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k") != 0)
		return 77;
	top = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* in the new mount namespace */
	put("dir/mnt/precious", "x", 0600);
	rc = aqe_fs_remove_tree(top, "dir", &e);
	if (rc != AQE_E_UNTRUSTED || !strstr(e.text, "will not follow 'mnt'"))
		return 1;
	return exists("dir/mnt/precious") ? 0 : 2;
}

START_TEST(remove_tree__crosses_no_mount)
{
	make_dir("dir", 0700);
	make_dir("dir/mnt", 0700);
	ck_assert_int_eq(in_child(remove_mounted), 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("core/fs_tree");
	TCase *t = tcase_create("remove_tree");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, remove_tree__removes_all_kinds);
	tcase_add_test(t, remove_tree__removes_many);
	tcase_add_test(t, remove_tree__limits_its_depth);
	tcase_add_test(t, remove_tree__crosses_no_mount);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run_with_openat2(suite());
}
