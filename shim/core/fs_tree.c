/* SPDX-License-Identifier: MIT */
/* Removing directory trees without recursion, links or mounts in the way. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define LEVELS_MAX  136
#define ENTRIES_MAX 2000000

struct level {
	DIR *dir;
	char name[NAME_MAX + 1]; /* in the directory above */
};

struct walk {
	int top; /* where the tree hangs */
	size_t depth, entries;
	struct level level[LEVELS_MAX];
};

static void walk_done(struct walk *w)
{
	while (w->depth > 0)
		(void)closedir(w->level[--w->depth].dir); /* read only */
}

static int above_fd(const struct walk *w, size_t depth)
{
	return depth > 0 ? dirfd(w->level[depth - 1].dir) : w->top;
}

static int fault(enum aqe_code code, int err, const char *doing, const char *name,
		 struct aqe_err *e)
{
	return aqe_err_set(e, code, err, "%s '%.*s'", doing, NAME_MAX, name);
}

/* Enters the directory `name` of the innermost level. */
static int descend(struct walk *w, const char *name, struct aqe_err *e)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };
	struct level *l;
	int fd;

	if (w->depth >= LEVELS_MAX)
		return fault(AQE_E_LIMIT, 0, "too many directories below each other at", name, e);
	l = &w->level[w->depth];
	if (strlen(name) >= sizeof(l->name))
		return fault(AQE_E_LIMIT, 0, "name too long:", name, e);
	fd = (int)syscall(SYS_openat2, above_fd(w, w->depth), name, &how, sizeof(how));
	if (fd < 0 && (errno == ELOOP || errno == EXDEV))
		return fault(AQE_E_UNTRUSTED, errno, "will not follow", name, e);
	if (fd < 0 && errno == ENOENT)
		return AQE_OK; /* somebody else removes it too */
	if (fd < 0)
		return fault(AQE_E_SYS, errno, "open", name, e);
	l->dir = fdopendir(fd);
	if (!l->dir) {
		int err = errno;

		(void)close(fd); /* read only */
		return fault(err == ENOMEM ? AQE_E_NOMEM : AQE_E_SYS, err, "open", name, e);
	}
	memcpy(l->name, name, strlen(name) + 1);
	w->depth++;
	return AQE_OK;
}

/* Removes `name` of the innermost level, or enters it when it is a directory. */
static int remove_one(struct walk *w, const char *name, struct aqe_err *e)
{
	if (++w->entries > ENTRIES_MAX)
		return fault(AQE_E_LIMIT, 0, "too many entries at", name, e);
	if (unlinkat(above_fd(w, w->depth), name, 0) == 0 || errno == ENOENT)
		return AQE_OK;
	if (errno != EISDIR && errno != EPERM)
		return fault(AQE_E_SYS, errno, "unlink", name, e);
	return descend(w, name, e);
}

/* Leaves the innermost directory, which is empty now, and removes it. */
static int ascend(struct walk *w, struct aqe_err *e)
{
	struct level *l = &w->level[--w->depth];

	(void)closedir(l->dir); /* read only */
	if (unlinkat(above_fd(w, w->depth), l->name, AT_REMOVEDIR) != 0 && errno != ENOENT)
		return fault(AQE_E_SYS, errno, "rmdir", l->name, e);
	return AQE_OK;
}

/* One step of the walk; the next entry of the innermost directory. */
static int step(struct walk *w, struct aqe_err *e)
{
	struct dirent *d;

	errno = 0;
	/* cppcheck-suppress readdirCalled ; nobody else uses this stream, readdir_r is deprecated
	 */
	d = readdir(w->level[w->depth - 1].dir);
	if (!d && errno != 0)
		return fault(AQE_E_SYS, errno, "read directory", w->level[w->depth - 1].name, e);
	if (!d)
		return ascend(w, e);
	if (aqe_str_eq(d->d_name, ".") || aqe_str_eq(d->d_name, ".."))
		return AQE_OK;
	return remove_one(w, d->d_name, e);
}

int aqe_fs_remove_tree(int dirfd, const char *name, struct aqe_err *e)
{
	struct walk *w;
	int rc;

	if (name[0] == '\0' || strchr(name, '/') || aqe_str_eq(name, ".") || aqe_str_eq(name, ".."))
		return fault(AQE_E_UNTRUSTED, 0, "not a plain file name:", name, e);
	w = malloc(sizeof(*w));
	if (!w)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	w->top = dirfd;
	w->depth = w->entries = 0; /* the levels are written when they are entered */
	rc = remove_one(w, name, e);
	while (rc == 0 && w->depth > 0)
		rc = step(w, e);
	walk_done(w);
	free(w);
	return rc;
}
