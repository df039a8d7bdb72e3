/* SPDX-License-Identifier: MIT */
#include "shim/core/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "tests/unit/fs_fixture.h"
#include "tests/unit/unit.h"

#define OWNED (AQE_FS_DIR | AQE_FS_OWNER | AQE_FS_NO_WRITE)

/* ---- opening ---- */

static const struct {
	const char *path;
	int flags;
	int code;
} BENEATH[] = {
	{ "file", O_RDONLY, 0 },
	{ "dir/sub/file", O_RDONLY, 0 },
	{ "dir/../file", O_RDONLY, 0 }, /* stays below */
	{ ".", O_RDONLY | O_DIRECTORY, 0 },
	{ "dir", O_PATH, 0 },
	{ "fifo", O_RDONLY, 0 }, /* does not wait for a writer */
	{ "none", O_RDONLY, AQE_E_ABSENT },
	{ "dir/none/file", O_RDONLY, AQE_E_ABSENT },
	{ "", O_RDONLY, AQE_E_ABSENT },
	{ "link", O_RDONLY, AQE_E_UNTRUSTED },
	{ "link", O_PATH | O_NOFOLLOW, 0 }, /* the link itself */
	{ "dirlink/sub/file", O_RDONLY, AQE_E_UNTRUSTED },
	{ "dangling", O_RDONLY, AQE_E_UNTRUSTED },
	{ "dangling", O_WRONLY | O_CREAT, AQE_E_UNTRUSTED },
	{ "abslink", O_RDONLY, AQE_E_UNTRUSTED },
	{ "magic", O_RDONLY, AQE_E_UNTRUSTED },
	{ "magic/etc/passwd", O_RDONLY, AQE_E_UNTRUSTED },
	{ "../", O_RDONLY, AQE_E_UNTRUSTED },
	{ "dir/../../etc", O_RDONLY, AQE_E_UNTRUSTED },
	{ "/etc/passwd", O_RDONLY, AQE_E_UNTRUSTED },
	{ "file/x", O_RDONLY, AQE_E_SYS },
	{ "file", O_RDONLY | O_DIRECTORY, AQE_E_SYS },
	{ "file", O_WRONLY | O_CREAT | O_EXCL, AQE_E_SYS },
	{ "new", O_WRONLY | O_CREAT | O_EXCL, 0 },
};

START_TEST(open_beneath__stays_below)
{
	AQE_AUTO_FD int fd = -1;
	struct aqe_err e = AQE_ERR_INIT;
	int rc;

	make_links();
	rc = aqe_fs_open_beneath(top, BENEATH[_i].path, BENEATH[_i].flags, 0640, &fd, &e);
	ck_assert_msg(rc == BENEATH[_i].code, "%s: %d %s", BENEATH[_i].path, rc, e.text);
	if (rc) {
		ck_assert_int_eq(fd, -1);
		ck_assert_int_eq(e.code, rc);
		ck_assert_int_ne(e.sys, 0);
		ck_assert_ptr_nonnull(strstr(e.text, BENEATH[_i].path));
		return;
	}
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	if (!(BENEATH[_i].flags & O_PATH))
		ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
}
END_TEST

START_TEST(open_beneath__makes_with_mode)
{
	AQE_AUTO_FD int fd = -1;
	struct stat st;

	ck_assert_int_eq(aqe_fs_open_beneath(top, "new", O_WRONLY | O_CREAT, 0600, &fd, NULL), 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
}
END_TEST

START_TEST(open_nolinks__follows_none)
{
	AQE_AUTO_FD int fd = -1;
	struct aqe_err e = AQE_ERR_INIT;
	char path[200];

	make_links();
	full("dir/sub/file", path);
	ck_assert_ok(aqe_fs_open_nolinks(path, O_RDONLY, &fd, &e), e);
	full("dirlink/sub/file", path);
	ck_assert_fault(aqe_fs_open_nolinks(path, O_RDONLY, &fd, &e), AQE_E_UNTRUSTED, e, path);
	full("none", path);
	ck_assert_fault(aqe_fs_open_nolinks(path, O_RDONLY, &fd, &e), AQE_E_ABSENT, e, path);
	ck_assert_fault(aqe_fs_open_nolinks("/proc/self/exe", O_RDONLY, &fd, &e), AQE_E_UNTRUSTED,
			e, NULL);
	ck_assert_fault(aqe_fs_open_nolinks("tmp", O_RDONLY, &fd, &e), AQE_E_UNTRUSTED, e,
			"absolute");
	ck_assert_fault(aqe_fs_open_nolinks("", O_RDONLY, &fd, &e), AQE_E_UNTRUSTED, e, "absolute");
}
END_TEST

static const struct {
	const char *path; /* below root unless absolute */
	int code;
	const char *why;
} DIRS[] = {
	{ "dir", 0, NULL },
	{ "dirlink", 0, NULL },
	{ "dirlink/sub", 0, NULL },
	{ "shared", AQE_E_UNTRUSTED, "may write to it" },
	{ "sticky", AQE_E_UNTRUSTED, "may write to it" },
	{ "file", AQE_E_SYS, "Not a directory" },
	{ "none", AQE_E_ABSENT, "none" },
	{ "/proc/self/cwd", AQE_E_UNTRUSTED, "/proc/self/cwd" },
	{ "/proc/self/fd/0/..", AQE_E_UNTRUSTED, NULL },
};

START_TEST(open_dir__wants_a_directory_of_our_own)
{
	AQE_AUTO_FD int fd = -1;
	struct aqe_err e = AQE_ERR_INIT;
	char path[200];
	int rc;

	make_links();
	make_dir("shared", 0775);
	make_dir("sticky", 01777);
	full(DIRS[_i].path, path);
	rc = aqe_fs_open_dir(DIRS[_i].path[0] == '/' ? DIRS[_i].path : path, &fd, &e);
	if (DIRS[_i].code) {
		ck_assert_fault(rc, DIRS[_i].code, e, DIRS[_i].why);
		ck_assert_int_eq(fd, -1);
		return;
	}
	ck_assert_ok(rc, e);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(openat(fd, "x", O_RDONLY | O_CLOEXEC), -1); /* usable, not O_PATH */
	ck_assert_int_eq(errno, ENOENT);
}
END_TEST

static int without_openat2(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { AQE_COUNT(code), code };
	struct aqe_err e = AQE_ERR_INIT;
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(100);
	int fd = -1;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) != 0)
		return 77;
	if (aqe_fs_open_beneath(top, "file", O_RDONLY, 0, &fd, &e) != AQE_E_SYS || e.sys != ENOSYS)
		return 1;
	if (aqe_fs_open_nolinks("/etc/passwd", O_RDONLY, &fd, &e) != AQE_E_SYS || e.sys != ENOSYS)
		return 2;
	if (aqe_fs_open_dir("/etc", &fd, &e) != AQE_E_SYS || e.sys != ENOSYS)
		return 3;
	if (aqe_fs_read_beneath(top, "file", 0, &b, &e) != AQE_E_SYS || e.sys != ENOSYS)
		return 4;
	if (aqe_fs_write_file(top, "new", 0600, "", 0, &e) != AQE_E_SYS || e.sys != ENOSYS)
		return 5;
	if (aqe_fs_ensure_dir(top, "dir", 0700, &fd, &e) != AQE_E_SYS || e.sys != ENOSYS)
		return 6;
	if (aqe_fs_remove_tree(top, "dir", &e) != AQE_E_SYS || e.sys != ENOSYS)
		return 7;
	return fd == -1 ? 0 : 8;
}

START_TEST(fs__refuses_without_openat2)
{
	put("file", "x", 0600);
	ck_assert_int_eq(in_child(without_openat2), 0);
}
END_TEST

/* ---- checking ---- */

static const struct {
	const char *name;
	mode_t mode;
	unsigned rules;
	const char *why; /* NULL: accepted */
} RULES[] = {
	{ "file", 0644, AQE_FS_TRUSTED, NULL },
	{ "file", 0600, AQE_FS_TRUSTED, NULL },
	{ "file", 0664, AQE_FS_TRUSTED, "may write" },
	{ "file", 0646, AQE_FS_TRUSTED, "may write" },
	{ "file", 0666, AQE_FS_REGULAR | AQE_FS_OWNER | AQE_FS_ONE_LINK, NULL },
	{ "file", 0644, AQE_FS_DIR, "not a directory" },
	{ "dir", 0755, OWNED, NULL },
	{ "dir", 0775, OWNED, "may write" },
	{ "dir", 0755, AQE_FS_REGULAR, "not a regular file" },
	{ "fifo", 0600, AQE_FS_TRUSTED, "not a regular file" },
	{ "fifo", 0600, 0, NULL },
	{ "hard", 0644, AQE_FS_TRUSTED, "not exactly one name" },
	{ "hard", 0644, AQE_FS_REGULAR, NULL },
	{ "file", 0640, AQE_FS_SECRET, NULL },
	{ "file", 0604, AQE_FS_SECRET, "others may read" },
};

START_TEST(check__applies_rules)
{
	AQE_AUTO_FD int fd = -1;
	struct aqe_err e = AQE_ERR_INIT;
	struct stat st = { 0 };
	int rc;

	make_links();
	put("hard", "x", 0644);
	ck_assert_int_eq(linkat(top, "hard", top, "hard2", 0), 0);
	ck_assert_int_eq(fchmodat(top, RULES[_i].name, RULES[_i].mode, 0), 0);
	ck_assert_int_eq(aqe_fs_open_beneath(top, RULES[_i].name, O_RDONLY, 0, &fd, &e), 0);
	rc = aqe_fs_check(fd, RULES[_i].rules, 100, "the\nfile", &st, &e);
	if (!RULES[_i].why) {
		ck_assert_ok(rc, e);
		ck_assert_uint_ne(st.st_ino, 0);
		return;
	}
	ck_assert_fault(rc, AQE_E_UNTRUSTED, e, RULES[_i].why);
	ck_assert_ptr_nonnull(strstr(e.text, "'the\\x0afile'"));
	ck_assert_uint_eq(st.st_ino, 0);
}
END_TEST

/* Podman's indexes, our own records: whoever reads while they are replaced reads one or the other.
 */
START_TEST(read_beneath__of_a_file_that_is_replaced)
{
	pid_t writer;
	int status;

	put("file", "content", 0644);
	writer = fork();
	if (writer == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			struct aqe_err ignored = AQE_ERR_INIT;

			(void)!aqe_fs_write_file(top, "file", 0644, "content", 7, &ignored);
		}
	}
	ck_assert_int_gt(writer, 0);
	for (int i = 0; i < 30000; i++) {
		AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(64);
		struct aqe_err e = AQE_ERR_INIT;

		ck_assert_ok(aqe_fs_read_beneath(top, "file", AQE_FS_TRUSTED, &b, &e), e);
		ck_assert_str_eq(aqe_buf_str(&b), "content");
	}
	(void)kill(writer, SIGKILL);
	ck_assert_int_eq(waitpid(writer, &status, 0), writer);
	ck_assert_int_eq(WTERMSIG(status), SIGKILL);
}
END_TEST

START_TEST(check__limits_the_size)
{
	for (size_t max = 4; max <= 6; max++) {
		AQE_AUTO_FD int fd = -1;
		struct aqe_err e = AQE_ERR_INIT;
		int rc;

		put("file", "12345", 0600);
		ck_assert_int_eq(aqe_fs_open_beneath(top, "file", O_RDONLY, 0, &fd, &e), 0);
		rc = aqe_fs_check(fd, AQE_FS_TRUSTED, max, "file", NULL, &e);
		if (max < 5)
			ck_assert_fault(rc, AQE_E_LIMIT, e, "'file' is larger than 4 bytes");
		else
			ck_assert_ok(rc, e);
	}
	ck_assert_int_eq(aqe_fs_check(-1, 0, 0, "x", NULL, NULL), AQE_E_SYS);
}
END_TEST

/* As root, so that files can be given away. */
static int check_owners(void)
{
	static const struct {
		uid_t owner, user;
		int code;
	} CASES[] = {
		{ 0, 0, 0 },
		{ 1234, 0, AQE_E_UNTRUSTED },
		{ 65534, 0, AQE_E_UNTRUSTED }, /* a user like others outside of user namespaces */
		{ 0, 1234, 0 },
		{ 1234, 1234, 0 },
		{ 1235, 1234, AQE_E_UNTRUSTED },
		{ 65534, 1234, AQE_E_UNTRUSTED },
	};
	AQE_AUTO_FD int fd = openat(top, "file", O_RDONLY | O_CLOEXEC);

	if (geteuid() != 0)
		return 77;
	for (size_t i = 0; i < AQE_COUNT(CASES); i++) {
		if (fchown(fd, CASES[i].owner, 0) != 0)
			return 77; /* in a user namespace */
		if (seteuid(CASES[i].user) != 0)
			return 77;
		if (aqe_fs_check(fd, AQE_FS_OWNER, 100, "file", NULL, NULL) != CASES[i].code)
			return (int)i + 1;
		if (seteuid(0) != 0)
			return 100;
	}
	return 0;
}

START_TEST(check__knows_owners)
{
	put("file", "x", 0644);
	ck_assert_int_eq(in_child(check_owners), 0);
}
END_TEST

/* As an unprivileged user in a user namespace of its own, which sees the host's root as 65534. */
static int check_overflow_owner(void)
{
	AQE_AUTO_FD int fd = openat(top, "file", O_RDONLY | O_CLOEXEC);
	AQE_AUTO_FD int map = -1;

	if (geteuid() != 0 || fchown(fd, 0, 0) != 0 || setresuid(1234, 1234, 1234) != 0)
		return 77;
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* lost with the uid; /proc/self must be ours */
	if (unshare(CLONE_NEWUSER) != 0)
		return 77;
	map = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	if (map < 0 || write(map, "1000 1234 1", 11) != 11)
		return 77;
	return aqe_fs_check(fd, AQE_FS_OWNER, 100, "file", NULL, NULL);
}

START_TEST(check__accepts_the_hosts_root_in_a_user_namespace)
{
	put("file", "x", 0644);
	ck_assert_int_eq(in_child(check_overflow_owner), 0);
}
END_TEST

/* ---- reading ---- */

START_TEST(read_fd__holds_the_maximum)
{
	static char data[20001];

	memset(data, 'x', 20000);
	data[20000] = '\0';
	put("file", data, 0600);
	for (size_t max = 19999; max <= 20001; max++) {
		AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(max);
		AQE_AUTO_FD int fd = openat(top, "file", O_RDONLY | O_CLOEXEC);
		struct aqe_err e = AQE_ERR_INIT;
		int rc = aqe_fs_read_fd(fd, &b, &e);

		if (max < 20000) {
			ck_assert_fault(rc, AQE_E_LIMIT, e, "more than 19999 bytes");
			continue;
		}
		ck_assert_ok(rc, e);
		ck_assert_str_eq(b.p, data);
	}
}
END_TEST

START_TEST(read_fd__appends_and_reports)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(100);
	AQE_AUTO_FD int fd = -1;
	struct aqe_err e = AQE_ERR_INIT;

	put("file", "two", 0600);
	(void)aqe_buf_puts(&b, "one ");
	fd = openat(top, "file", O_RDONLY | O_CLOEXEC);
	ck_assert_ok(aqe_fs_read_fd(fd, &b, &e), e);
	ck_assert_str_eq(b.p, "one two");
	ck_assert_fault(aqe_fs_read_fd(top, &b, &e), AQE_E_SYS, e, "read");
	ck_assert_int_eq(e.sys, EISDIR);
	ck_assert_fault(aqe_fs_read_fd(-1, &b, &e), AQE_E_SYS, e, "read");
}
END_TEST

static const struct {
	const char *path;
	int code;
	const char *why;
} READS[] = {
	{ "file", 0, NULL },
	{ "dir/sub/file", 0, NULL },
	{ "link", AQE_E_UNTRUSTED, "link" },
	{ "fifo", AQE_E_UNTRUSTED, "not a regular file" },
	{ "dir", AQE_E_UNTRUSTED, "not a regular file" },
	{ "shared", AQE_E_UNTRUSTED, "may write" },
	{ "large", AQE_E_LIMIT, "larger than 10 bytes" },
	{ "none", AQE_E_ABSENT, "none" },
};

START_TEST(read_beneath__checks_before_it_reads)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(10);
	struct aqe_err e = AQE_ERR_INIT;
	int rc;

	make_links();
	put("shared", "x", 0666);
	put("large", "12345678901", 0600);
	rc = aqe_fs_read_beneath(top, READS[_i].path, AQE_FS_TRUSTED, &b, &e);
	if (READS[_i].code) {
		ck_assert_fault(rc, READS[_i].code, e, READS[_i].why);
		ck_assert_uint_eq(b.len, 0);
	} else {
		ck_assert_ok(rc, e);
		ck_assert_uint_gt(b.len, 0);
	}
	aqe_buf_clear(&b);
	ck_assert_int_eq(aqe_fs_read_beneath(top, READS[_i].path, AQE_FS_TRUSTED, &b, NULL), rc);
}
END_TEST

static const struct {
	const char *text;
	mode_t mode;
	const char *want; /* NULL: refused */
	int code;
	const char *why;
} SECRETS[] = {
	{ "word", 0600, "word", 0, NULL },
	{ "a b\r\n\n", 0440, "a b", 0, NULL },
	{ "a\nb\n", 0600, "a\nb", 0, NULL }, /* what it may hold is the caller's to judge */
	{ "\n", 0600, "", 0, NULL },
	{ "", 0600, "", 0, NULL },
	{ "word", 0604, NULL, AQE_E_UNTRUSTED, "'token' is not acceptable: others may read it" },
	{ "word", 0620, NULL, AQE_E_UNTRUSTED, "may write" },
	{ "12345678\n", 0600, NULL, AQE_E_LIMIT, "larger than 8 bytes" },
};

START_TEST(read_secret__is_for_few_eyes)
{
	AQE_AUTO_SECRET struct aqe_buf b = AQE_BUF_INIT(8);
	struct aqe_err e = AQE_ERR_INIT;
	char path[200];
	int rc;

	put("file", SECRETS[_i].text, SECRETS[_i].mode);
	ck_assert_int_eq(symlinkat("file", top, "link"), 0); /* the operator's way of rotating */
	full("link", path);
	rc = aqe_fs_read_secret(path, "token", &b, &e);
	if (SECRETS[_i].want) {
		ck_assert_ok(rc, e);
		ck_assert_str_eq(aqe_buf_str(&b), SECRETS[_i].want);
	} else {
		ck_assert_fault(rc, SECRETS[_i].code, e, SECRETS[_i].why);
	}
	full("none", path);
	ck_assert_fault(aqe_fs_read_secret(path, "token", &b, &e), AQE_E_UNTRUSTED, e, "token");
	ck_assert_int_eq(e.sys, ENOENT);
}
END_TEST

START_TEST(read_kernel__reads_proc)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(100000);
	AQE_AUTO_BUF struct aqe_buf tiny = AQE_BUF_INIT(10);
	AQE_AUTO_FD int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct aqe_err e = AQE_ERR_INIT;
	char path[40];

	(void)snprintf(path, sizeof(path), "%d/status", (int)getpid());
	ck_assert_ok(aqe_fs_read_kernel(proc, path, &b, &e), e);
	ck_assert_ptr_nonnull(strstr(b.p, "\nCapEff:\t"));
	ck_assert_fault(aqe_fs_read_kernel(proc, path, &tiny, &e), AQE_E_LIMIT, e, "status");
	ck_assert_fault(aqe_fs_read_kernel(proc, "self/status", &b, &e), AQE_E_UNTRUSTED, e,
			"self/status");
	ck_assert_fault(aqe_fs_read_kernel(proc, "0/status", &b, &e), AQE_E_ABSENT, e, "0/status");
}
END_TEST

/* ---- writing ---- */

START_TEST(write_file__replaces_whole)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	mode_t old_mask = umask(0077);
	static char data[100000];
	struct stat st;

	memset(data, 'y', sizeof(data));
	ck_assert_ok(aqe_fs_write_file(top, "f", 0644, "old", 3, &e), e);
	ck_assert_int_eq(fstatat(top, "f", &st, 0), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0644); /* whatever the umask says */
	ck_assert_ok(aqe_fs_write_file(top, "f", 0400, data, sizeof(data), &e), e);
	ck_assert_int_eq(fstatat(top, "f", &st, 0), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0400);
	ck_assert_ok(aqe_fs_read_beneath(top, "f", AQE_FS_TRUSTED, &b, &e), e);
	ck_assert_uint_eq(b.len, sizeof(data));
	ck_assert_ok(aqe_fs_write_file(top, "f", 0600, NULL, 0, &e), e);
	ck_assert_int_eq(fstatat(top, "f", &st, 0), 0);
	ck_assert_int_eq(st.st_size, 0);
	ck_assert_uint_eq(count_entries(), 1);
	(void)umask(old_mask);
}
END_TEST

START_TEST(write_file__replaces_a_link_not_its_target)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(100);
	struct aqe_err e = AQE_ERR_INIT;

	make_links();
	ck_assert_ok(aqe_fs_write_file(top, "link", 0600, "new", 3, &e), e);
	ck_assert_ok(aqe_fs_read_beneath(top, "link", AQE_FS_TRUSTED, &b, &e), e);
	ck_assert_str_eq(b.p, "new");
	aqe_buf_clear(&b);
	ck_assert_ok(aqe_fs_read_beneath(top, "file", AQE_FS_TRUSTED, &b, &e), e);
	ck_assert_str_eq(b.p, "x");
}
END_TEST

START_TEST(write_file__wants_a_plain_name)
{
	static const char *const NAMES[] = { "", ".", "..", "a/b", "/etc/x", "../x" };
	struct aqe_err e = AQE_ERR_INIT;

	for (size_t i = 0; i < AQE_COUNT(NAMES); i++) {
		int fd = -1;

		ck_assert_fault(aqe_fs_write_file(top, NAMES[i], 0600, "", 0, &e), AQE_E_UNTRUSTED,
				e, "plain file name");
		ck_assert_fault(aqe_fs_ensure_dir(top, NAMES[i], 0700, &fd, &e), AQE_E_UNTRUSTED, e,
				"plain file name");
		ck_assert_fault(aqe_fs_remove_tree(top, NAMES[i], &e), AQE_E_UNTRUSTED, e,
				"plain file name");
	}
	ck_assert_uint_eq(count_entries(), 0);
}
END_TEST

/* A file may not grow over 10 bytes: the write fails half-way. */
static int write_too_much(void)
{
	struct rlimit limit = { 10, 10 };
	struct aqe_err e = AQE_ERR_INIT;

	(void)signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
		return 77;
	if (aqe_fs_write_file(top, "file", 0600, "12345678901", 11, &e) != AQE_E_SYS)
		return 1;
	return e.sys == EFBIG && strcmp(e.text, "write 'file': write: File too large") == 0 ? 0 : 2;
}

START_TEST(write_file__leaves_nothing_behind)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(100);
	struct aqe_err e = AQE_ERR_INIT;

	put("file", "old", 0600);
	ck_assert_int_eq(in_child(write_too_much), 0);
	ck_assert_uint_eq(count_entries(), 1);
	ck_assert_ok(aqe_fs_read_beneath(top, "file", AQE_FS_TRUSTED, &b, &e), e);
	ck_assert_str_eq(b.p, "old");
	make_dir("dir", 0700); /* a file cannot take its name */
	ck_assert_fault(aqe_fs_write_file(top, "dir", 0600, "x", 1, &e), AQE_E_SYS, e, "rename");
	ck_assert_uint_eq(count_entries(), 2);
	ck_assert_int_eq(aqe_fs_write_file(top, "dir", 0600, "x", 1, NULL), AQE_E_SYS);
	ck_assert_int_eq(aqe_fs_write_file(-1, "x", 0600, "x", 1, NULL), AQE_E_SYS);
}
END_TEST

START_TEST(write_all__reports_errors)
{
	struct aqe_err e = AQE_ERR_INIT;
	AQE_AUTO_FD int full_dev = open("/dev/full", O_WRONLY | O_CLOEXEC);

	ck_assert_ok(aqe_fs_write_all(-1, "", 0, &e), e); /* nothing to do */
	ck_assert_fault(aqe_fs_write_all(-1, "x", 1, &e), AQE_E_SYS, e, "write");
	ck_assert_fault(aqe_fs_write_all(full_dev, "x", 1, &e), AQE_E_SYS, e, "write");
	ck_assert_int_eq(e.sys, ENOSPC);
}
END_TEST

static const struct {
	const char *name;
	int code;
	const char *why;
} ENSURES[] = {
	{ "new", 0, NULL },
	{ "dir", 0, NULL },
	{ "dirlink", AQE_E_UNTRUSTED, "dirlink" },
	{ "dangling", AQE_E_UNTRUSTED, "dangling" },
	{ "shared", AQE_E_UNTRUSTED, "may write" },
	{ "file", AQE_E_SYS, "Not a directory" },
};

START_TEST(ensure_dir__makes_or_checks)
{
	AQE_AUTO_FD int fd = -1;
	mode_t old_mask = umask(0077);
	struct aqe_err e = AQE_ERR_INIT;
	struct stat st;
	int rc;

	make_links();
	make_dir("shared", 0777);
	rc = aqe_fs_ensure_dir(top, ENSURES[_i].name, 0711, &fd, &e);
	(void)umask(old_mask);
	if (ENSURES[_i].code) {
		ck_assert_fault(rc, ENSURES[_i].code, e, ENSURES[_i].why);
		ck_assert_int_eq(fd, -1);
		return;
	}
	ck_assert_ok(rc, e);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, _i == 0 ? 0711 : 0755); /* only a new one is set */
}
END_TEST

START_TEST(ensure_dir__needs_its_parent)
{
	AQE_AUTO_FD int gone = -1;
	struct aqe_err e = AQE_ERR_INIT;
	int fd = -1;

	make_dir("dir", 0700);
	gone = openat(top, "dir", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(unlinkat(top, "dir", AT_REMOVEDIR), 0);
	ck_assert_fault(aqe_fs_ensure_dir(gone, "x", 0700, &fd, &e), AQE_E_ABSENT, e, "mkdir 'x'");
}
END_TEST

START_TEST(fd_path__names_what_is_open)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(200);
	AQE_AUTO_BUF struct aqe_buf tiny = AQE_BUF_INIT(3);
	struct aqe_err e = AQE_ERR_INIT;
	char path[200];
	int fd, pipes[2];

	make_links();
	put("odd (deleted)", "", 0600);
	ck_assert_ok(aqe_fs_fd_path(top, &b, &e), e);
	ck_assert_str_eq(b.p, root);
	ck_assert_fault(aqe_fs_fd_path(top, &tiny, &e), AQE_E_LIMIT, e, "3 bytes");
	aqe_buf_clear(&b);
	fd = openat(top, "dirlink/sub/../sub/file", O_RDONLY | O_CLOEXEC);
	full("dir/sub/file", path);
	ck_assert_ok(aqe_fs_fd_path(fd, &b, &e), e);
	ck_assert_str_eq(b.p, path);
	ck_assert_int_eq(unlinkat(top, "dir/sub/file", 0), 0);
	ck_assert_fault(aqe_fs_fd_path(fd, &b, &e), AQE_E_ABSENT, e, "any more");
	(void)close(fd);
	ck_assert_fault(aqe_fs_fd_path(fd, &b, &e), AQE_E_SYS, e, "readlink");
	aqe_buf_clear(&b);
	fd = openat(top, "odd (deleted)", O_RDONLY | O_CLOEXEC);
	ck_assert_ok(aqe_fs_fd_path(fd, &b, &e), e);
	(void)close(fd);
	ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
	ck_assert_fault(aqe_fs_fd_path(pipes[0], &b, &e), AQE_E_ABSENT, e, "has no path");
	(void)close(pipes[0]);
	(void)close(pipes[1]);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("core/fs");
	TCase *t = tcase_create("fs");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, open_beneath__stays_below, 0, (int)AQE_COUNT(BENEATH));
	tcase_add_test(t, open_beneath__makes_with_mode);
	tcase_add_test(t, open_nolinks__follows_none);
	tcase_add_loop_test(t, open_dir__wants_a_directory_of_our_own, 0, (int)AQE_COUNT(DIRS));
	tcase_add_test(t, fs__refuses_without_openat2);
	tcase_add_loop_test(t, check__applies_rules, 0, (int)AQE_COUNT(RULES));
	tcase_add_test(t, check__limits_the_size);
	tcase_add_test(t, read_beneath__of_a_file_that_is_replaced);
	tcase_add_test(t, check__knows_owners);
	tcase_add_test(t, check__accepts_the_hosts_root_in_a_user_namespace);
	tcase_add_test(t, read_fd__holds_the_maximum);
	tcase_add_test(t, read_fd__appends_and_reports);
	tcase_add_loop_test(t, read_beneath__checks_before_it_reads, 0, (int)AQE_COUNT(READS));
	tcase_add_loop_test(t, read_secret__is_for_few_eyes, 0, (int)AQE_COUNT(SECRETS));
	tcase_add_test(t, read_kernel__reads_proc);
	tcase_add_test(t, write_file__replaces_whole);
	tcase_add_test(t, write_file__replaces_a_link_not_its_target);
	tcase_add_test(t, write_file__wants_a_plain_name);
	tcase_add_test(t, write_file__leaves_nothing_behind);
	tcase_add_test(t, write_all__reports_errors);
	tcase_add_loop_test(t, ensure_dir__makes_or_checks, 0, (int)AQE_COUNT(ENSURES));
	tcase_add_test(t, ensure_dir__needs_its_parent);
	tcase_add_test(t, fd_path__names_what_is_open);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run_with_openat2(suite());
}
