/* SPDX-License-Identifier: MIT */
#include "shim/core/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"

/* A first page: what is in /proc and /sys is smaller, documents grow the buffer. */
#define READ_BYTES   ((size_t)4095)
#define SHOWN_MAX    200   /* bytes of a path shown in a message */
#define AGAIN_MAX    16    /* after a rename elsewhere: openat2's EAGAIN, a file replaced */
#define TEMP_NAME    256   /* longest temporary name, with its NUL */
#define OVERFLOW_UID 65534 /* how ids without a mapping show in a user namespace */

/* ---- opening ---- */

static enum aqe_code code_of(int err)
{
	if (err == ENOENT)
		return AQE_E_ABSENT;
	if (err == ELOOP || err == EXDEV)
		return AQE_E_UNTRUSTED;
	return AQE_E_SYS;
}

static int path_fault(enum aqe_code code, int err, const char *doing, const char *path,
		      struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf shown = AQE_BUF_INIT((size_t)2 * SHOWN_MAX);

	aqe_buf_quote(&shown, path, SHOWN_MAX);
	return aqe_err_set(e, code, err, "%s '%s'", doing, aqe_buf_str(&shown));
}

static struct open_how how_to(int flags, mode_t mode, unsigned long resolve)
{
	struct open_how how = { .resolve = resolve };

	/* openat2 refuses what O_PATH does not allow, and a mode that nothing needs. */
	how.flags = (unsigned)flags | O_CLOEXEC;
	if (!(flags & O_PATH))
		how.flags |= O_NONBLOCK | O_NOCTTY;
	if (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)))
		how.mode = mode;
	return how;
}

/* openat2(2) on its own, with errno. */
static int open_raw(int dirfd, const char *path, struct open_how how)
{
	long fd = -1;

	for (int i = 0; i < AGAIN_MAX; i++) {
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return (int)fd;
}

static int open_as(int dirfd, const char *path, struct open_how how, int *ret_fd, struct aqe_err *e)
{
	int fd = open_raw(dirfd, path, how);

	if (fd < 0)
		return path_fault(code_of(errno), errno, "open", path, e);
	*ret_fd = fd;
	return AQE_OK;
}

int aqe_fs_open_beneath(int dirfd, const char *path, int flags, mode_t mode, int *ret_fd,
			struct aqe_err *e)
{
	return open_as(dirfd, path,
		       how_to(flags, mode,
			      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS),
		       ret_fd, e);
}

int aqe_fs_open_nolinks(const char *path, int flags, int *ret_fd, struct aqe_err *e)
{
	if (path[0] != '/')
		return path_fault(AQE_E_UNTRUSTED, 0, "not an absolute path:", path, e);
	return open_as(AT_FDCWD, path,
		       how_to(flags, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS), ret_fd, e);
}

int aqe_fs_open_dir(const char *path, int *ret_fd, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	int rc;

	if (path[0] != '/')
		return path_fault(AQE_E_UNTRUSTED, 0, "not an absolute path:", path, e);
	rc = open_as(AT_FDCWD, path, how_to(O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_MAGICLINKS), &fd,
		     e);
	if (rc)
		return rc;
	rc = aqe_fs_check(fd, AQE_FS_DIR | AQE_FS_OWNER | AQE_FS_NO_WRITE, 0, path, NULL, e);
	if (rc)
		return rc;
	*ret_fd = AQE_TAKE_FD(fd);
	return AQE_OK;
}

/* ---- checking ---- */

/* True when every user id is mapped to itself, as outside of user namespaces. False makes
 * the check of owners accept more, so a doubt is true. */
static bool has_identity_ids(void)
{
	static const char *const WANT[] = { "0 ", "0 ", "4294967295\n" };
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);
	AQE_AUTO_FD int fd = -1;
	const char *p;

	/* not by aqe_fs_open_nolinks: /proc/self is a link */
	fd = open_raw(AT_FDCWD, "/proc/self/uid_map", how_to(O_RDONLY, 0, RESOLVE_NO_MAGICLINKS));
	if (fd < 0 || aqe_fs_read_fd(fd, &b, NULL) != 0)
		return true;
	p = aqe_buf_str(&b);
	for (size_t i = 0; i < AQE_COUNT(WANT); i++) {
		p += strspn(p, " ");
		if (!aqe_starts(p, WANT[i]))
			return false;
		p += strlen(WANT[i]);
	}
	return true;
}

static const char *owner_fault(const struct stat *st)
{
	if (st->st_uid == 0 || st->st_uid == geteuid())
		return NULL;
	if (st->st_uid == OVERFLOW_UID && !has_identity_ids())
		return NULL;
	return "its owner is neither us nor root";
}

static const char *rule_fault(unsigned rules, const struct stat *st)
{
	if ((rules & AQE_FS_REGULAR) && !S_ISREG(st->st_mode))
		return "it is not a regular file";
	if ((rules & AQE_FS_DIR) && !S_ISDIR(st->st_mode))
		return "it is not a directory";
	if ((rules & AQE_FS_NO_WRITE) && (st->st_mode & (S_IWGRP | S_IWOTH)))
		return "its group or others may write to it";
	if ((rules & AQE_FS_ONE_LINK) && st->st_nlink != 1)
		return "it has not exactly one name";
	if ((rules & AQE_FS_SECRET) && (st->st_mode & S_IRWXO))
		return "others may read it";
	return (rules & AQE_FS_OWNER) ? owner_fault(st) : NULL;
}

int aqe_fs_check(int fd, unsigned rules, size_t max, const char *what, struct stat *ret_st,
		 struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf shown = AQE_BUF_INIT((size_t)2 * SHOWN_MAX);
	const char *fault;
	struct stat st;

	if (fstat(fd, &st) != 0)
		return path_fault(AQE_E_SYS, errno, "stat", what, e);
	fault = rule_fault(rules, &st);
	if (!fault && (!S_ISREG(st.st_mode) || (uint64_t)st.st_size <= max)) {
		if (ret_st)
			*ret_st = st;
		return AQE_OK;
	}
	aqe_buf_quote(&shown, what, SHOWN_MAX);
	if (!fault)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "'%s' is larger than %zu bytes",
				   aqe_buf_str(&shown), max);
	return aqe_err_set(e, AQE_E_UNTRUSTED, 0, "'%s' is not acceptable: %s", aqe_buf_str(&shown),
			   fault);
}

/* ---- reading ---- */

int aqe_fs_read_fd(int fd, struct aqe_buf *b, struct aqe_err *e)
{
	char beyond; /* one byte more than fits tells that there is more */
	size_t room = 0;
	ssize_t n;

	for (;;) {
		char *p = aqe_buf_room(b, b->len > READ_BYTES ? b->len : READ_BYTES, &room);

		if (!p)
			return aqe_buf_ok(b, e);
		n = room ? read(fd, p, room) : read(fd, &beyond, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return aqe_err_set(e, AQE_E_SYS, errno, "read");
		if (n == 0) {
			if (!b->len)
				aqe_buf_done(b); /* an empty buffer has no memory */
			return aqe_buf_ok(b, e);
		}
		if (room)
			aqe_buf_grown(b, (size_t)n);
		else if (aqe_buf_add(b, &beyond, 1) != 0)
			return aqe_buf_ok(b, e);
	}
}

int aqe_fs_read_secret(const char *path, const char *what, struct aqe_buf *b, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int rc;

	if (fd < 0)
		return path_fault(AQE_E_UNTRUSTED, errno, "open", what, e);
	rc = aqe_fs_check(fd, AQE_FS_REGULAR | AQE_FS_OWNER | AQE_FS_NO_WRITE | AQE_FS_SECRET,
			  b->max, what, NULL, e);
	if (rc == 0)
		rc = aqe_fs_read_fd(fd, b, e);
	while (rc == 0 && b->len > 0 && (b->p[b->len - 1] == '\n' || b->p[b->len - 1] == '\r'))
		b->p[--b->len] = '\0';
	return rc;
}

/* Of a file that was replaced, by rename(2), after it was opened and before it was looked at. */
static bool has_no_name(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

/* Opens and checks what has the name now: a file that another process replaces must not look like
 * one that is not ours. Whoever is faster than this many times gets the last judgement. */
static int open_checked(int dirfd, const char *path, unsigned rules, size_t max, int *ret_fd,
			struct aqe_err *e)
{
	int rc = AQE_OK;

	for (int i = 0; i < AGAIN_MAX; i++) {
		AQE_AUTO_FD int fd = -1;

		rc = aqe_fs_open_beneath(dirfd, path, O_RDONLY, 0, &fd, e);
		if (rc)
			return rc;
		rc = aqe_fs_check(fd, rules, max, path, NULL, e);
		if (rc == AQE_OK) {
			*ret_fd = AQE_TAKE_FD(fd);
			return rc;
		}
		if (!has_no_name(fd))
			return rc;
	}
	return rc;
}

int aqe_fs_read_beneath(int dirfd, const char *path, unsigned rules, struct aqe_buf *b,
			struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	int rc = open_checked(dirfd, path, rules, b->max, &fd, e);

	if (rc)
		return rc;
	rc = aqe_fs_read_fd(fd, b, e);
	if (rc)
		(void)aqe_err_wrap(e, "'%s'", path);
	return rc;
}

int aqe_fs_read_kernel(int dirfd, const char *path, struct aqe_buf *b, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	int rc;

	rc = aqe_fs_open_beneath(dirfd, path, O_RDONLY, 0, &fd, e);
	if (rc)
		return rc;
	rc = aqe_fs_read_fd(fd, b, e);
	if (rc)
		(void)aqe_err_wrap(e, "'%s'", path);
	return rc;
}

/* ---- writing ---- */

int aqe_fs_write_all(int fd, const void *p, size_t n, struct aqe_err *e)
{
	const char *data = p;
	ssize_t done;

	while (n > 0) {
		done = write(fd, data, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return aqe_err_set(e, AQE_E_SYS, errno, "write");
		data += done;
		n -= (size_t)done;
	}
	return AQE_OK;
}

/* One name, not a path. */
static int check_name(const char *name, struct aqe_err *e)
{
	if (name[0] == '\0' || strchr(name, '/') || aqe_str_eq(name, ".") || aqe_str_eq(name, ".."))
		return path_fault(AQE_E_UNTRUSTED, 0, "not a plain file name:", name, e);
	return AQE_OK;
}

/* A name that nobody else has, for a file that will be called `name`. */
static int temporary_name(const char *name, char ret[TEMP_NAME], struct aqe_err *e)
{
	uint64_t chance;

	if (getrandom(&chance, sizeof(chance), 0) != (ssize_t)sizeof(chance))
		return aqe_err_set(e, AQE_E_SYS, errno, "getrandom");
	(void)snprintf(ret, TEMP_NAME, ".%.200s.%016llx", name, (unsigned long long)chance);
	return AQE_OK;
}

static int fill_file(int fd, mode_t mode, const void *p, size_t n, struct aqe_err *e)
{
	int rc = aqe_fs_write_all(fd, p, n, e);

	if (rc)
		return rc;
	if (fchmod(fd, mode) != 0) /* the umask has taken its share when it was made */
		return aqe_err_set(e, AQE_E_SYS, errno, "chmod");
	if (fsync(fd) != 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "fsync");
	return AQE_OK;
}

int aqe_fs_write_file(int dirfd, const char *name, mode_t mode, const void *p, size_t n,
		      struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	char temp[TEMP_NAME];
	int rc;

	rc = check_name(name, e);
	if (!rc)
		rc = temporary_name(name, temp, e);
	if (!rc)
		rc = aqe_fs_open_beneath(dirfd, temp, O_WRONLY | O_CREAT | O_EXCL, 0600, &fd, e);
	if (rc)
		return rc;
	rc = fill_file(fd, mode, p, n, e);
	if (!rc && renameat(dirfd, temp, dirfd, name) != 0)
		rc = aqe_err_set(e, AQE_E_SYS, errno, "rename");
	if (!rc)
		return AQE_OK;
	(void)unlinkat(dirfd, temp, 0); /* the first failure is what counts */
	(void)aqe_err_wrap(e, "write '%s'", name);
	return rc;
}

int aqe_fs_ensure_dir(int dirfd, const char *name, mode_t mode, int *ret_fd, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	bool made;
	int rc;

	rc = check_name(name, e);
	if (rc)
		return rc;
	made = mkdirat(dirfd, name, mode) == 0;
	if (!made && errno != EEXIST)
		return path_fault(code_of(errno), errno, "mkdir", name, e);
	rc = aqe_fs_open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY, 0, &fd, e);
	if (rc)
		return rc;
	rc = aqe_fs_check(fd, AQE_FS_DIR | AQE_FS_OWNER | AQE_FS_NO_WRITE, 0, name, NULL, e);
	if (rc)
		return rc;
	if (made && fchmod(fd, mode) != 0) /* the umask has taken its share */
		return path_fault(AQE_E_SYS, errno, "chmod", name, e);
	*ret_fd = AQE_TAKE_FD(fd);
	return AQE_OK;
}

int aqe_fs_fd_path(int fd, struct aqe_buf *b, struct aqe_err *e)
{
	static const char DELETED[] = " (deleted)";
	char link[48], path[4096];
	struct stat st;
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "readlink '%s'", link);
	if ((size_t)n >= sizeof(path) - 1)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "path of descriptor %d is too long", fd);
	path[n] = '\0';
	if (path[0] != '/')
		return aqe_err_set(e, AQE_E_ABSENT, 0, "descriptor %d has no path", fd);
	if (fstat(fd, &st) != 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "stat");
	if (st.st_nlink == 0 && aqe_ends(path, DELETED))
		return aqe_err_set(e, AQE_E_ABSENT, 0, "descriptor %d has no path any more", fd);
	(void)aqe_buf_add(b, path, (size_t)n);
	return aqe_buf_ok(b, e);
}
