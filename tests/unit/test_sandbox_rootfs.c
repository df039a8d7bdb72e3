/* SPDX-License-Identifier: MIT */
/* Root folders of the user's own: which are taken, and why others are not. Whether the mount hides
 * and protects is in sandbox.bats: it takes root. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/sandbox/rootfs.h"
#include "tests/unit/unit.h"

static char base[] = "/var/tmp/aqe-rootfs-XXXXXX";
static struct shim_place place = SHIM_PLACE_INIT;
static char data_path[64];
static int root = -1; /* of the good one */

static const char *const POINTS[] = { "proc", "sys", "dev", "tmp", "run" };

static const char *at(const char *name)
{
	static char path[256];

	(void)snprintf(path, sizeof(path), "%s%s%s", base, *name ? "/" : "", name);
	return path;
}

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(base));
	ck_assert_int_eq(chmod(base, 0755), 0);
	ck_assert_int_eq(mkdir(at("root"), 0755), 0);
	ck_assert_int_eq(mkdir(at("data"), 0711), 0);
	(void)snprintf(data_path, sizeof(data_path), "%s/data", base);
	place.path = data_path;
	root = open(at("root"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(root, 0);
	for (size_t i = 0; i < AQE_COUNT(POINTS); i++)
		ck_assert_int_eq(mkdirat(root, POINTS[i], 0755), 0);
}
static void teardown(void)
{
	int parent = open("/var/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)close(root);
	(void)!aqe_fs_remove_tree(parent, strrchr(base, '/') + 1, NULL);
	(void)close(parent);
}

static int judge(const char *path, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	int rc = shim_rootfs_open(&place, path, &fd, e);

	ck_assert_int_eq(rc == 0, fd >= 0);
	return rc;
}

static void assert_refused(const char *path, const char *why)
{
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_fault(judge(path, &e), AQE_E_REFUSED, e, why);
}

START_TEST(open__takes_a_folder_that_only_its_owner_writes)
{
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(judge(at("root"), &e), e);
}
END_TEST

START_TEST(open__refuses_the_root_of_the_host)
{
	assert_refused("/", "the root of the host");
}
END_TEST

START_TEST(open__refuses_what_others_write)
{
	static const mode_t MODES[] = { 0775, 0757, 0777 };

	ck_assert_int_eq(fchmod(root, MODES[_i]), 0);
	assert_refused(at("root"), "others than its owner");
}
END_TEST

START_TEST(open__refuses_what_the_sandbox_cannot_read)
{
	static const mode_t MODES[] = { 0700, 0711, 0754 };

	ck_assert_int_eq(fchmod(root, MODES[_i]), 0);
	assert_refused(at("root"), "may not read it");
}
END_TEST

START_TEST(open__refuses_an_owner_that_is_neither_root_nor_the_sandbox)
{
	static const struct {
		uid_t uid;
		bool ok;
	} OWNERS[] = { { 0, true },      { 1, false },     { 99999, false },
		       { 100000, true }, { 165535, true }, { 165536, false } };
	struct aqe_err e = AQE_ERR_INIT;

	if (geteuid() != 0)
		return; /* only root gives files away; CI is root */
	ck_assert_int_eq(fchown(root, OWNERS[_i].uid, 0), 0);
	if (OWNERS[_i].ok)
		ck_assert_ok(judge(at("root"), &e), e);
	else
		assert_refused(at("root"), "belongs neither to root nor");
}
END_TEST

START_TEST(open__names_the_folder_that_is_missing)
{
	char why[64];

	(void)snprintf(why, sizeof(why), "no folder '/%s'", POINTS[_i]);
	ck_assert_int_eq(unlinkat(root, POINTS[_i], AT_REMOVEDIR), 0);
	assert_refused(at("root"), why);
	/* nor does a link stand for one */
	ck_assert_int_eq(symlinkat("/etc", root, POINTS[_i]), 0);
	assert_refused(at("root"), why);
}
END_TEST

START_TEST(open__refuses_a_socket_wherever_it_is)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	AQE_AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(mkdir(at("root/run/deep"), 0700), 0);
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%.60s", at("root/run/deep/s"));
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_refused(at("root"), "a socket: 'run/deep/s'");
}
END_TEST

START_TEST(open__refuses_the_data_folder_what_is_in_it_and_above_it)
{
	assert_refused(base, "the sandboxes' own data");
	assert_refused(data_path, "may not read it"); /* 0711: the first reason that is found */
	ck_assert_int_eq(chmod(data_path, 0755), 0);
	assert_refused(data_path, "the sandboxes' own data");
	ck_assert_int_eq(mkdir(at("data/box"), 0755), 0);
	assert_refused(at("data/box"), "the sandboxes' own data");
}
END_TEST

START_TEST(open__follows_no_link)
{
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_int_eq(symlinkat("proc", root, "link"), 0);
	ck_assert_fault(judge(at("root/link"), &e), AQE_E_UNTRUSTED, e, NULL);
	ck_assert_int_lt(judge(at("root/proc/../../root"), &e), 0);
	ck_assert_int_lt(judge("var/tmp", &e), 0);
	ck_assert_fault(judge(at("none"), &e), AQE_E_ABSENT, e, NULL);
}
END_TEST

START_TEST(is_foreign__images_of_the_store_are_not)
{
	struct shim_plan p = { .rootfs = "/srv/root" };

	place.path = "/var/lib/aqe-shim";
	ck_assert(shim_rootfs_is_foreign(&place, &p));
	p.rootfs = "/var/lib/aqe-shim/store/00/rootfs";
	ck_assert(!shim_rootfs_is_foreign(&place, &p));
	p.rootfs = "/var/lib/aqe-shim/stores/rootfs";
	ck_assert(shim_rootfs_is_foreign(&place, &p));
	p.rootfs = "/srv/root";
	p.image_id = "sha256:00";
	ck_assert(!shim_rootfs_is_foreign(&place, &p));
	p = (struct shim_plan){ .rootfs = NULL };
	ck_assert(!shim_rootfs_is_foreign(&place, &p));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sandbox_rootfs");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, open__takes_a_folder_that_only_its_owner_writes);
	tcase_add_test(t, open__refuses_the_root_of_the_host);
	tcase_add_loop_test(t, open__refuses_what_others_write, 0, 3);
	tcase_add_loop_test(t, open__refuses_what_the_sandbox_cannot_read, 0, 3);
	tcase_add_loop_test(t, open__refuses_an_owner_that_is_neither_root_nor_the_sandbox, 0, 6);
	tcase_add_loop_test(t, open__names_the_folder_that_is_missing, 0, (int)AQE_COUNT(POINTS));
	tcase_add_test(t, open__refuses_a_socket_wherever_it_is);
	tcase_add_test(t, open__refuses_the_data_folder_what_is_in_it_and_above_it);
	tcase_add_test(t, open__follows_no_link);
	tcase_add_test(t, is_foreign__images_of_the_store_are_not);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
