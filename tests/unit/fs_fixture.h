/* SPDX-License-Identifier: MIT */
/* A temporary directory for the tests of files. */
#ifndef AQE_UNIT_FS_FIXTURE_H
#define AQE_UNIT_FS_FIXTURE_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "tests/unit/unit.h"

static char root[64];
static int top = -1;

static inline void setup(void)
{
	(void)snprintf(root, sizeof(root), "/tmp/aqe-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	top = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(top, 0);
}

static inline void teardown(void)
{
	ck_assert_int_eq(aqe_fs_remove_tree(AT_FDCWD, "none", NULL), 0);
	if (chdir("/tmp") == 0)
		ck_assert_int_eq(aqe_fs_remove_tree(AT_FDCWD, root + 5, NULL), 0);
	(void)close(top);
}

static inline void put(const char *name, const char *text, mode_t mode)
{
	AQE_AUTO_FD int fd = openat(top, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	ck_assert_int_eq(fchmod(fd, mode), 0);
}

static inline void make_dir(const char *name, mode_t mode)
{
	ck_assert_int_eq(mkdirat(top, name, 0700), 0);
	ck_assert_int_eq(fchmodat(top, name, mode, 0), 0);
}

static inline void full(const char *name, char ret[200])
{
	(void)snprintf(ret, 200, "%s/%s", root, name);
}

static inline bool exists(const char *name)
{
	return faccessat(top, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline size_t count_entries(void)
{
	DIR *d = fdopendir(openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	size_t n = 0;

	ck_assert_ptr_nonnull(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n - 2;
}

/* Runs `f` in a child process, for what cannot be undone; its exit status. 77 is "not possible
 * here", which counts as a failure only where all tests have to run. */
static inline int in_child(int (*f)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(f());
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status), "child: %x", (unsigned)status);
	status = WEXITSTATUS(status);
	return status == 77 && !getenv("AQE_TESTS_MUST_RUN") ? 0 : status;
}

static inline void make_links(void)
{
	make_dir("dir", 0755);
	make_dir("dir/sub", 0755);
	put("dir/sub/file", "content", 0644);
	put("file", "x", 0644);
	ck_assert_int_eq(symlinkat("file", top, "link"), 0);
	ck_assert_int_eq(symlinkat("dir", top, "dirlink"), 0);
	ck_assert_int_eq(symlinkat("nowhere", top, "dangling"), 0);
	ck_assert_int_eq(symlinkat("/etc/passwd", top, "abslink"), 0);
	ck_assert_int_eq(symlinkat("/proc/self/root", top, "magic"), 0);
	ck_assert_int_eq(mkfifoat(top, "fifo", 0600), 0);
}

#endif
