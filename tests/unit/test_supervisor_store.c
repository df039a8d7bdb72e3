/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/supervisor/store.h"
#include "tests/unit/unit.h"

static char place[] = "/tmp/aqe-store-XXXXXX";
static int dir = -1;

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(place));
	dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir, 0);
}
static void teardown(void)
{
	int parent = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)!aqe_fs_remove_tree(parent, strrchr(place, '/') + 1, NULL);
	(void)close(parent);
	(void)close(dir);
}

static void put(const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	(void)close(fd);
}

static const struct shim_sup_saved ROUND[] = {
	{ 0, SHIM_SUP_HOLD_NONE, false, 0 },
	{ 4, SHIM_SUP_HOLD_NONE, true, 0 },
	{ 5, SHIM_SUP_HOLD_CRASH_LOOP, false, 0 },
	{ 1, SHIM_SUP_HOLD_REFUSED, true, 0 },
};

START_TEST(save__then_load_gives_the_same)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_sup_saved got;
	bool damaged = true;

	ck_assert_ok(shim_store_save(dir, "c-1", &ROUND[_i], &e), e);
	ck_assert_ok(shim_store_load(dir, "c-1", &got, &damaged, &e), e);
	ck_assert_uint_eq(got.failures, ROUND[_i].failures);
	ck_assert_int_eq(got.hold, ROUND[_i].hold);
	ck_assert_int_eq(got.running, ROUND[_i].running);
	ck_assert(!damaged);
	ck_assert_ok(shim_store_remove(dir, "c-1", &e), e);
	ck_assert_ok(shim_store_remove(dir, "c-1", &e), e);
	ck_assert_ok(shim_store_load(dir, "c-1", &got, &damaged, &e), e);
	ck_assert(!damaged && got.failures == 0 && !got.hold && !got.running);
}
END_TEST

static const char *const DAMAGED[] = {
	"",
	"{",
	"[]",
	"{\"version\":2,\"failures\":0,\"hold\":\"none\",\"running\":false,\"boot\":\"\"}",
	"{\"version\":1,\"failures\":-1,\"hold\":\"none\",\"running\":false,\"boot\":\"\"}",
	"{\"version\":1,\"failures\":0,\"hold\":\"never\",\"running\":false,\"boot\":\"\"}",
	"{\"version\":1,\"failures\":0,\"hold\":\"none\",\"running\":0,\"boot\":\"\"}",
	"{\"version\":1,\"failures\":0,\"failures\":0,\"hold\":\"none\",\"running\":false,\"boot\":"
	"\"\"}",
	"{\"version\":1,\"failures\":0,\"hold\":\"none\",\"running\":false}",
};

START_TEST(load__takes_damage_for_a_hold)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_sup_saved got;
	bool damaged = false;

	put("c.json", DAMAGED[_i]);
	ck_assert_ok(shim_store_load(dir, "c", &got, &damaged, &e), e);
	ck_assert(damaged);
	ck_assert_int_eq(got.hold, SHIM_SUP_HOLD_CRASH_LOOP);
}
END_TEST

START_TEST(load__takes_a_foreign_file_for_a_hold)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_sup_saved got;
	bool damaged = false;

	if (_i == 0) {
		ck_assert_int_eq(symlinkat("/dev/null", dir, "c.json"), 0);
	} else {
		ck_assert_ok(shim_store_save(dir, "c", &ROUND[0], &e), e);
		ck_assert_int_eq(fchmodat(dir, "c.json", 0666, 0), 0);
	}
	ck_assert_ok(shim_store_load(dir, "c", &got, &damaged, &e), e);
	ck_assert(damaged);
}
END_TEST

START_TEST(load__an_instance_of_another_boot_is_gone)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_sup_saved got;

	put("c.json", "{\"version\":1,\"failures\":3,\"hold\":\"none\",\"running\":true,"
		      "\"boot\":\"00000000-0000-0000-0000-000000000000\"}");
	ck_assert_ok(shim_store_load(dir, "c", &got, NULL, &e), e);
	ck_assert_uint_eq(got.failures, 3);
	ck_assert(!got.running);
}
END_TEST

static const char *const BAD_IDS[] = { "", ".", "..", ".x", "a/b", "a b", "\xc3\xa4", "a\n" };

START_TEST(id__bad_ones_are_refused)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_sup_saved got;
	int fd = -1;

	ck_assert(!shim_store_id_ok(BAD_IDS[_i]));
	ck_assert_fault(shim_store_load(dir, BAD_IDS[_i], &got, NULL, &e), AQE_E_USAGE, e,
			"bad id");
	ck_assert_fault(shim_store_save(dir, BAD_IDS[_i], &ROUND[0], &e), AQE_E_USAGE, e, "bad id");
	ck_assert_fault(shim_store_lock(dir, BAD_IDS[_i], &fd, &e), AQE_E_USAGE, e, "bad id");
}
END_TEST

START_TEST(id__has_a_limit)
{
	char id[SHIM_STORE_ID_MAX + 2];

	memset(id, 'a', sizeof(id));
	id[SHIM_STORE_ID_MAX] = '\0';
	ck_assert(shim_store_id_ok(id));
	id[SHIM_STORE_ID_MAX] = 'a';
	id[SHIM_STORE_ID_MAX + 1] = '\0';
	ck_assert(!shim_store_id_ok(id));
}
END_TEST

START_TEST(lock__belongs_to_one)
{
	struct aqe_err e = AQE_ERR_INIT;
	int a = -1, b = -1, c = -1;

	ck_assert_ok(shim_store_lock(dir, "x", &a, &e), e);
	ck_assert_fault(shim_store_lock(dir, "x", &c, &e), AQE_E_REFUSED, e, "already");
	ck_assert_ok(shim_store_lock(dir, "y", &b, &e), e);
	(void)close(a);
	ck_assert_ok(shim_store_lock(dir, "x", &a, &e), e);
	(void)close(a);
	(void)close(b);
}
END_TEST

START_TEST(save__keeps_the_folder_bounded)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_sup_saved got;
	char id[32];

	for (int i = 0; i < SHIM_STORE_IDS_MAX; i++) {
		(void)snprintf(id, sizeof(id), "c%d.json", i);
		put(id, "{\"version\":1,\"failures\":1,\"hold\":\"none\",\"running\":false,"
			"\"boot\":\"\"}");
	}
	/* the one with nothing to remember goes, not the oldest */
	put("c77.json",
	    "{\"version\":1,\"failures\":0,\"hold\":\"none\",\"running\":false,\"boot\":\"\"}");
	ck_assert_ok(shim_store_save(dir, "new", &ROUND[1], &e), e);
	ck_assert_int_ne(faccessat(dir, "c77.json", F_OK, 0), 0);
	ck_assert_ok(shim_store_load(dir, "c0", &got, NULL, &e), e);
	ck_assert_uint_eq(got.failures, 1);
	/* a known id needs no room */
	ck_assert_ok(shim_store_save(dir, "c0", &ROUND[1], &e), e);
	ck_assert_int_eq(faccessat(dir, "c1.json", F_OK, 0), 0);
}
END_TEST

/* A writer that is killed at any moment leaves the old record or the new one. */
START_TEST(save__survives_sigkill)
{
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(shim_store_save(dir, "c", &ROUND[1], &e), e);
	for (int i = 0; i < 60; i++) {
		struct shim_sup_saved got;
		bool damaged = false;
		pid_t pid = fork();

		if (pid == 0) {
			for (;;)
				(void)!shim_store_save(dir, "c", &ROUND[1 + i % 2], NULL);
		}
		ck_assert_int_gt(pid, 0);
		(void)usleep((useconds_t)(200 + 137 * i % 3000));
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		ck_assert_ok(shim_store_load(dir, "c", &got, &damaged, &e), e);
		ck_assert(!damaged);
		ck_assert_uint_ge(got.failures, 4);
	}
}
END_TEST

START_TEST(save__says_when_it_cannot)
{
	struct aqe_err e = AQE_ERR_INIT;
	int null = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_lt(shim_store_save(null, "c", &ROUND[1], &e), 0);
	ck_assert_ptr_nonnull(strstr(e.text, "failure count of 'c'"));
	(void)close(null);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("supervisor_store");
	TCase *t = tcase_create("store");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, save__then_load_gives_the_same, 0, AQE_COUNT(ROUND));
	tcase_add_loop_test(t, load__takes_damage_for_a_hold, 0, AQE_COUNT(DAMAGED));
	tcase_add_loop_test(t, load__takes_a_foreign_file_for_a_hold, 0, 2);
	tcase_add_test(t, load__an_instance_of_another_boot_is_gone);
	tcase_add_loop_test(t, id__bad_ones_are_refused, 0, AQE_COUNT(BAD_IDS));
	tcase_add_test(t, id__has_a_limit);
	tcase_add_test(t, lock__belongs_to_one);
	tcase_add_test(t, save__keeps_the_folder_bounded);
	tcase_add_test(t, save__survives_sigkill);
	tcase_add_test(t, save__says_when_it_cannot);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
