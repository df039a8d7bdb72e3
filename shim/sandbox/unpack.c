/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/unpack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/sandbox/archive.h"

#define OVERFLOW_ID 65534
#define WHITEOUT    ".wh."
#define OPAQUE      ".wh..wh..opq"
#define META        ".wh..wh." /* aufs' own bookkeeping */

/* ---- names ---- */

struct name {
	char text[SHIM_UNPACK_PATH_MAX + 1]; /* no leading slash, no "." or empty component */
	char *base;                          /* last component; the parent is text before it */
	bool top;                            /* the root itself */
};

static int bad_name(const char *path, const char *why, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(400);

	aqe_buf_quote(&b, path, 120);
	return aqe_err_set(e, AQE_E_MALFORMED, 0, "archive: '%s' %s", aqe_buf_str(&b), why);
}

/* Appends a component; false when it may not be there. */
static bool add_component(struct name *n, const char *p, size_t len, size_t *at)
{
	if (len > NAME_MAX || *at + len + 1 > SHIM_UNPACK_PATH_MAX)
		return false;
	if (*at > 0)
		n->text[(*at)++] = '/';
	n->base = n->text + *at;
	memcpy(n->base, p, len);
	*at += len;
	n->text[*at] = '\0';
	return true;
}

static int read_name(const char *path, struct name *n, struct aqe_err *e)
{
	size_t at = 0, depth = 0;

	n->text[0] = '\0';
	n->base = n->text;
	for (const char *p = path; *p;) {
		size_t len = strcspn(p, "/");

		if (len == 2 && p[0] == '.' && p[1] == '.')
			return bad_name(path, "leads out of the image", e);
		if (len > 0 && !(len == 1 && p[0] == '.')) {
			if (++depth > SHIM_UNPACK_DEPTH_MAX || !add_component(n, p, len, &at))
				return bad_name(path, "is too long", e);
		}
		p += len;
		p += *p == '/';
	}
	n->top = at == 0;
	return AQE_OK;
}

/* ---- directories ---- */

static int open_in_root(const struct shim_unpack *u, const char *path, int *ret)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				.resolve =
					RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };
	long fd;

	for (int i = 0; i < 16; i++) {
		fd = syscall(SYS_openat2, u->root_fd, path[0] ? path : ".", &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	*ret = (int)fd;
	return fd < 0 ? -errno : 0;
}

static int give(const struct shim_unpack *u, int dirfd, const char *name, int64_t uid, int64_t gid,
		struct aqe_err *e)
{
	uid_t out_uid = (uid_t)(uid >= 0 && uid < u->id_size ? uid : OVERFLOW_ID) + u->id_shift;
	gid_t out_gid = (gid_t)(gid >= 0 && gid < u->id_size ? gid : OVERFLOW_ID) + u->id_shift;

	if (u->id_size == 0)
		return AQE_OK; /* files of an archive: ours */
	if (fchownat(dirfd, name, out_uid, out_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "give '%.100s' to its owner", name);
	return AQE_OK;
}

/* Makes the missing directories of `path` (no last component), one component at a time. */
static int make_parents(struct shim_unpack *u, const char *path, struct aqe_err *e)
{
	char head[SHIM_UNPACK_PATH_MAX + 1];

	for (const char *p = path; *p; p += *p == '/') {
		AQE_AUTO_FD int fd = -1;
		AQE_AUTO_FD int parent = -1;
		size_t start = (size_t)(p - path), end;
		char name[NAME_MAX + 1];

		p += strcspn(p, "/");
		end = (size_t)(p - path);
		memcpy(head, path, end);
		head[end] = '\0';
		if (open_in_root(u, head, &fd) == 0)
			continue;
		if (errno != ENOENT)
			return bad_name(path, "lies below something that is no directory", e);
		memcpy(name, path + start, end - start);
		name[end - start] = '\0';
		head[start > 0 ? start - 1 : 0] = '\0';
		if (open_in_root(u, head, &parent) < 0 || mkdirat(parent, name, 0755) < 0)
			return bad_name(path, "cannot have its parent made", e);
		if (give(u, parent, name, 0, 0, e) < 0)
			return (int)e->code;
	}
	return AQE_OK;
}

/* The directory that holds the last component. */
static int open_parent(struct shim_unpack *u, const struct name *n, bool make, int *ret,
		       struct aqe_err *e)
{
	char path[SHIM_UNPACK_PATH_MAX + 1];
	size_t len = (size_t)(n->base - n->text);
	int rc;

	memcpy(path, n->text, len);
	path[len > 0 ? len - 1 : 0] = '\0';
	rc = open_in_root(u, path, ret);
	if (rc == -ENOENT && make) {
		rc = make_parents(u, path, e);
		if (rc < 0)
			return rc;
		rc = open_in_root(u, path, ret);
	}
	if (rc == -ENOENT)
		return aqe_err_set(e, AQE_E_ABSENT, 0, "archive: no such parent");
	return rc < 0 ? bad_name(n->text, "lies below something that is no directory", e) : AQE_OK;
}

/* ---- entries ---- */

/* Makes way for an entry: a directory stays where a directory comes. */
static int clear_way(int dirfd, const char *base, bool keep_dir, bool *ret_kept, struct aqe_err *e)
{
	struct stat st;

	*ret_kept = false;
	if (fstatat(dirfd, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return AQE_OK;
	if (S_ISDIR(st.st_mode) && keep_dir) {
		*ret_kept = true;
		return AQE_OK;
	}
	return aqe_fs_remove_tree(dirfd, base, e);
}

static int put_file(const struct shim_unpack *u, int dirfd, const char *base,
		    const struct shim_entry *entry, struct shim_archive *ar, struct aqe_err *e)
{
	AQE_AUTO_FD int fd =
		openat(dirfd, base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct timespec times[2] = { { entry->mtime_s, 0 }, { entry->mtime_s, 0 } };
	int rc;

	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "make '%.100s'", base);
	rc = shim_archive_data(ar, fd, e);
	if (rc == 0)
		rc = give(u, dirfd, base, entry->uid, entry->gid, e);
	if (rc < 0 || u->id_size == 0)
		return rc;
	/* set-id bits: with no_new_privs they do nothing inside, outside they would */
	if (fchmod(fd, entry->mode & 01777) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "chmod '%.100s'", base);
	(void)futimens(fd, times); /* a time the file system cannot hold does not matter */
	return AQE_OK;
}

static int put_dir(const struct shim_unpack *u, int dirfd, const char *base,
		   const struct shim_entry *entry, bool kept, struct aqe_err *e)
{
	int rc;

	if (!kept && mkdirat(dirfd, base, 0700) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "make directory '%.100s'", base);
	rc = give(u, dirfd, base, entry->uid, entry->gid, e);
	if (rc < 0 || u->id_size == 0)
		return rc;
	if (fchmodat(dirfd, base, entry->mode & 01777, 0) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "chmod '%.100s'", base);
	return AQE_OK;
}

static int put_hardlink(struct shim_unpack *u, int dirfd, const char *base, const char *target,
			struct aqe_err *e)
{
	AQE_AUTO_FD int from = -1;
	struct name n;
	struct stat st;
	int rc = read_name(target, &n, e);

	if (rc < 0 || n.top)
		return rc < 0 ? rc : bad_name(target, "is linked to", e);
	rc = open_parent(u, &n, false, &from, e);
	if (rc == AQE_E_ABSENT)
		return bad_name(target, "is linked to but not there", e);
	if (rc < 0)
		return rc;
	if (fstatat(from, n.base, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !(S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)))
		return bad_name(target, "is linked to but no file", e);
	if (linkat(from, n.base, dirfd, base, 0) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "link '%.100s'", base);
	return AQE_OK;
}

static int put_symlink(const struct shim_unpack *u, int dirfd, const char *base,
		       const struct shim_entry *entry, struct aqe_err *e)
{
	if (strlen(entry->link) > SHIM_UNPACK_PATH_MAX || entry->link[0] == '\0')
		return bad_name(entry->path, "is a link to a name of a bad length", e);
	if (symlinkat(entry->link, dirfd, base) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "make link '%.100s'", base);
	return give(u, dirfd, base, entry->uid, entry->gid, e);
}

static int put(struct shim_unpack *u, const struct name *n, const struct shim_entry *entry,
	       struct shim_archive *ar, struct aqe_err *e)
{
	AQE_AUTO_FD int dirfd = -1;
	bool kept = false;
	int rc = open_parent(u, n, true, &dirfd, e);

	if (rc == 0)
		rc = clear_way(dirfd, n->base, entry->type == SHIM_ENTRY_DIR, &kept, e);
	if (rc < 0)
		return rc;
	u->n_entries++;
	switch (entry->type) {
	case SHIM_ENTRY_FILE:
		return put_file(u, dirfd, n->base, entry, ar, e);
	case SHIM_ENTRY_DIR:
		return put_dir(u, dirfd, n->base, entry, kept, e);
	case SHIM_ENTRY_SYMLINK:
		return put_symlink(u, dirfd, n->base, entry, e);
	case SHIM_ENTRY_HARDLINK:
		return put_hardlink(u, dirfd, n->base, entry->link, e);
	case SHIM_ENTRY_SPECIAL:
		break;
	}
	return AQE_E_INTERNAL;
}

static int take_entry(void *arg, const struct shim_entry *entry, struct shim_archive *ar,
		      struct aqe_err *e)
{
	struct shim_unpack *u = arg;
	struct name n;
	int rc = read_name(entry->path, &n, e);

	if (rc < 0)
		return rc;
	if (entry->type == SHIM_ENTRY_SPECIAL) {
		u->n_special++;
		return AQE_OK;
	}
	if (n.top || (u->id_size && aqe_starts(n.base, WHITEOUT)))
		return AQE_OK; /* the root keeps our mode; whiteouts were served */
	return put(u, &n, entry, ar, e);
}

/* ---- whiteouts ---- */

/* Removes what is in a directory, which stays as it is: its name may be a link's. */
static int empty(int dirfd, struct aqe_err *e)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = AQE_OK;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;

	if (!dir) {
		(void)aqe_err_set(e, AQE_E_SYS, errno, "open a directory to empty it");
		if (fd >= 0)
			(void)close(fd);
		return AQE_E_SYS;
	}
	/* cppcheck-suppress readdirCalled ; nobody else uses this stream */
	while (rc == 0 && (errno = 0, d = readdir(dir))) {
		if (!aqe_str_in(d->d_name, (const char *const[]){ ".", "..", NULL }))
			rc = aqe_fs_remove_tree(dirfd, d->d_name, e);
	}
	if (rc == 0 && errno)
		rc = aqe_err_set(e, AQE_E_SYS, errno, "read a directory to empty it");
	(void)closedir(dir);
	return rc;
}

static int make_opaque(const struct shim_unpack *u, const struct name *n, int dirfd,
		       struct aqe_err *e)
{
	struct stat st, top;

	if (fstat(dirfd, &st) < 0 || fstat(u->root_fd, &top) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "stat");
	if (st.st_dev == top.st_dev && st.st_ino == top.st_ino)
		return bad_name(n->text, "would hide the whole image", e);
	return empty(dirfd, e);
}

static int take_whiteout(void *arg, const struct shim_entry *entry, struct shim_archive *ar,
			 struct aqe_err *e)
{
	struct shim_unpack *u = arg;
	AQE_AUTO_FD int dirfd = -1;
	struct name n;
	int rc = read_name(entry->path, &n, e);

	(void)ar;
	if (rc < 0 || n.top || !aqe_starts(n.base, WHITEOUT))
		return rc;
	rc = open_parent(u, &n, false, &dirfd, e);
	if (rc < 0)
		return rc == AQE_E_ABSENT ? AQE_OK : rc; /* nothing to hide */
	if (aqe_str_eq(n.base, OPAQUE))
		return make_opaque(u, &n, dirfd, e);
	if (aqe_starts(n.base, META))
		return AQE_OK;
	if (aqe_str_in(n.base + strlen(WHITEOUT), (const char *const[]){ "", ".", "..", NULL }))
		return bad_name(entry->path, "hides no name", e);
	return aqe_fs_remove_tree(dirfd, n.base + strlen(WHITEOUT), e);
}

/* ---- public ---- */

static uint64_t bytes_max(const struct shim_unpack *u)
{
	return u->bytes_max ? u->bytes_max : SHIM_UNPACK_BYTES_MAX;
}

int shim_unpack_layer(struct shim_unpack *u, int tar_fd, struct aqe_err *e)
{
	int rc = shim_archive_walk(tar_fd, SHIM_UNPACK_ENTRIES_MAX, bytes_max(u), take_whiteout, u,
				   e);

	if (rc == 0)
		rc = shim_archive_walk(tar_fd, SHIM_UNPACK_ENTRIES_MAX, bytes_max(u), take_entry, u,
				       e);
	return rc;
}

int shim_unpack_files(struct shim_unpack *u, int tar_fd, struct aqe_err *e)
{
	u->id_size = 0;
	return shim_archive_walk(tar_fd, SHIM_UNPACK_ENTRIES_MAX, bytes_max(u), take_entry, u, e);
}
