/* SPDX-License-Identifier: MIT */
/* Only for `make check-valgrind`: valgrind 3.19 (Debian 12) does not know openat2(2), so there the
 * linker gives each call of syscall(2) to this file, which resolves such a path by single steps. It
 * is for looking at memory: others may change the path between two steps. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define DEPTH_MAX 1100
#define LINKS_MAX 40
#define REST_MAX  5000 /* bytes of path and links */

struct walk {
	int fd[DEPTH_MAX]; /* [0] where the path begins, owned from [1] on */
	int depth;
	unsigned long resolve;
	int links;
	char rest[REST_MAX];
};

long __real_syscall(long nr, ...);
long __wrap_syscall(long nr, ...);

static int fail(int err)
{
	errno = err;
	return -1;
}

static void go_back(struct walk *w, int depth)
{
	while (w->depth > depth)
		(void)close(w->fd[w->depth--]);
}

static int go_up(struct walk *w)
{
	if (w->depth > 0) {
		go_back(w, w->depth - 1);
		return 0;
	}
	if (w->resolve & RESOLVE_IN_ROOT)
		return 0;
	if (w->resolve & RESOLVE_BENEATH)
		return fail(EXDEV);
	w->fd[++w->depth] = openat(w->fd[0], "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return w->fd[w->depth] < 0 ? fail(errno) : 0;
}

/* /proc's links that are more than their text, such as /proc/self/root. */
static int is_magic(const struct walk *w, const char *text)
{
	struct statfs fs;

	return (w->resolve & (RESOLVE_NO_MAGICLINKS | RESOLVE_IN_ROOT | RESOLVE_BENEATH)) &&
	       (text[0] == '/' || strchr(text, '[')) && fstatfs(w->fd[w->depth], &fs) == 0 &&
	       fs.f_type == PROC_SUPER_MAGIC;
}

/* The link's text stands where its name stood. */
static int go_by_link(struct walk *w, const char *name)
{
	char text[PATH_MAX], rest[REST_MAX];
	ssize_t n = readlinkat(w->fd[w->depth], name, text, sizeof(text) - 1);

	if (n < 0)
		return fail(errno);
	if ((w->resolve & RESOLVE_NO_SYMLINKS) || ++w->links > LINKS_MAX)
		return fail(ELOOP);
	text[n] = '\0';
	if (is_magic(w, text))
		return fail(ELOOP);
	if (text[0] == '/' && (w->resolve & RESOLVE_BENEATH))
		return fail(EXDEV);
	if (text[0] == '/')
		go_back(w, 0);
	if (text[0] == '/' && !(w->resolve & RESOLVE_IN_ROOT))
		w->fd[++w->depth] = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(rest, sizeof(rest), "%s", w->rest);
	if ((size_t)snprintf(w->rest, sizeof(w->rest), "%s%s", text, rest) >= sizeof(w->rest))
		return fail(ENAMETOOLONG);
	return 0;
}

static int go_down(struct walk *w, const char *name)
{
	struct stat here, there;
	int fd;

	if (w->depth + 1 >= DEPTH_MAX)
		return fail(ELOOP);
	fd = openat(w->fd[w->depth], name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return fail(errno);
	w->fd[++w->depth] = fd;
	if ((w->resolve & RESOLVE_NO_XDEV) && fstat(w->fd[w->depth - 1], &here) == 0 &&
	    fstat(fd, &there) == 0 && here.st_dev != there.st_dev)
		return fail(EXDEV);
	return 0;
}

static int is_link(const struct walk *w, const char *name)
{
	struct stat st;

	return fstatat(w->fd[w->depth], name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* Takes the next name off the path; how many characters it has. */
static size_t next_name(struct walk *w, char name[NAME_MAX + 1])
{
	const size_t from = strspn(w->rest, "/"), n = strcspn(w->rest + from, "/");

	if (n > NAME_MAX)
		return n;
	memcpy(name, w->rest + from, n);
	name[n] = '\0';
	memmove(w->rest, w->rest + from + n, strlen(w->rest + from + n) + 1);
	return n;
}

static int steps(struct walk *w, const struct open_how *how)
{
	const int flags = (int)how->flags;
	char name[NAME_MAX + 1];

	for (;;) {
		const size_t n = next_name(w, name);
		int last = w->rest[strspn(w->rest, "/")] == '\0', rc;

		if (n > NAME_MAX)
			return fail(ENAMETOOLONG);
		if (n == 0 || (last && strcmp(name, ".") == 0))
			return openat(w->fd[w->depth], ".", flags, (mode_t)how->mode);
		if (strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") == 0)
			rc = go_up(w);
		else if (is_link(w, name) && !(last && (flags & O_NOFOLLOW)))
			rc = go_by_link(w, name);
		else if (last && w->rest[0] == '\0')
			return openat(w->fd[w->depth], name, flags | O_NOFOLLOW, (mode_t)how->mode);
		else
			rc = go_down(w, name);
		if (rc < 0)
			return -1;
	}
}

static int emulate(int dirfd, const char *path, const struct open_how *how)
{
	struct walk w = { .resolve = how ? how->resolve : 0 };
	int root = -1, fd, err;

	if (!how)
		return fail(EFAULT);
	if (how->mode && !(how->flags & (O_CREAT | O_TMPFILE)))
		return fail(EINVAL);
	if (path[0] == '\0')
		return fail(ENOENT);
	if (path[0] == '/' && (how->resolve & RESOLVE_BENEATH))
		return fail(EXDEV);
	if (strlen(path) >= PATH_MAX)
		return fail(ENAMETOOLONG);
	(void)snprintf(w.rest, sizeof(w.rest), "%s", path);
	w.fd[0] = dirfd;
	if (path[0] == '/' && !(how->resolve & RESOLVE_IN_ROOT))
		w.fd[0] = root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = steps(&w, how);
	err = errno;
	go_back(&w, 0);
	if (root >= 0)
		(void)close(root);
	errno = err;
	return fd;
}

long __wrap_syscall(long nr, ...)
{
	long a[6];
	va_list args;

	va_start(args, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (nr == SYS_openat2)
		return emulate((int)a[0], (const char *)a[1], (const struct open_how *)a[2]);
	return __real_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}
