/* SPDX-License-Identifier: MIT */
/* Files that others wrote or named. Everything is opened once, checked through its descriptor, and
 * never looked up by name again. openat2(2) is required: without it we refuse, there is no
 * fallback. Descriptors are close-on-exec. */
#ifndef AQE_CORE_FS_H
#define AQE_CORE_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "shim/core/buf.h"
#include "shim/core/err.h"

struct stat;

/* Opens `path` below `dirfd`: RESOLVE_BENEATH | NO_SYMLINKS | NO_MAGICLINKS, flags |
 * O_CLOEXEC | O_NONBLOCK | O_NOCTTY. AQE_E_ABSENT for ENOENT, AQE_E_UNTRUSTED for a symbolic link
 * (ELOOP, EXDEV), else AQE_E_SYS. */
AQE_MUST_CHECK int aqe_fs_open_beneath(int dirfd, const char *path, int flags, mode_t mode,
				       int *ret_fd, struct aqe_err *e);
/* Opens absolute `path` with no symbolic or magic link anywhere on the way. Errors as above. */
AQE_MUST_CHECK int aqe_fs_open_nolinks(const char *path, int flags, int *ret_fd, struct aqe_err *e);
/* Opens a directory (O_PATH is not used: the descriptor can be read). Symbolic links on the way are
 * followed, magic links are not; the directory itself must belong to us or root and be writable by
 * nobody else. For directories that an engine named (/var/run is a link on every host). */
AQE_MUST_CHECK int aqe_fs_open_dir(const char *path, int *ret_fd, struct aqe_err *e);

enum aqe_fs_rule {
	AQE_FS_REGULAR = 1U << 0, /* a regular file */
	AQE_FS_DIR = 1U << 1,     /* a directory */
	AQE_FS_OWNER = 1U << 2, /* owner is the effective user or root; inside a user namespace the
				 * host's root shows as the overflow id and is accepted too */
	AQE_FS_NO_WRITE = 1U << 3, /* not writable by group or others */
	AQE_FS_ONE_LINK = 1U << 4, /* one hard link */
	AQE_FS_SECRET = 1U << 5,   /* not readable by others; its group may */
	AQE_FS_TRUSTED = (1U << 0) | (1U << 2) | (1U << 3) | (1U << 4),
};
/* Checks the open file against `rules` (AQE_E_UNTRUSTED names the rule) and `max` bytes when it is
 * regular (AQE_E_LIMIT). `what` names it in the text. `ret_st` may be NULL. */
AQE_MUST_CHECK int aqe_fs_check(int fd, unsigned rules, size_t max, const char *what,
				struct stat *ret_st, struct aqe_err *e);
/* Appends the rest of `fd` to `b`; more than b->max is AQE_E_LIMIT. EINTR and short reads handled.
 */
AQE_MUST_CHECK int aqe_fs_read_fd(int fd, struct aqe_buf *b, struct aqe_err *e);
/* open_beneath + check + read in one. */
AQE_MUST_CHECK int aqe_fs_read_beneath(int dirfd, const char *path, unsigned rules,
				       struct aqe_buf *b, struct aqe_err *e);
/* Reads a password or token of the operator's, who may have linked to it: a regular file of ours or
 * root's that others neither read nor write, at most b->max bytes. Line ends at its end are left
 * out; it may be empty. `what` names it in the text. AQE_E_UNTRUSTED also when it cannot be opened.
 * Free `b` with aqe_buf_wipe(). */
AQE_MUST_CHECK int aqe_fs_read_secret(const char *path, const char *what, struct aqe_buf *b,
				      struct aqe_err *e);
/* Reads a kernel file (proc, sys, cgroup) below `dirfd`: no ownership rules, no links. */
AQE_MUST_CHECK int aqe_fs_read_kernel(int dirfd, const char *path, struct aqe_buf *b,
				      struct aqe_err *e);
/* Writes a new file: O_EXCL under a temporary name, all bytes, fsync, then rename to `name` in the
 * same directory; a failure leaves nothing. */
AQE_MUST_CHECK int aqe_fs_write_file(int dirfd, const char *name, mode_t mode, const void *p,
				     size_t n, struct aqe_err *e);
/* All of `n` bytes to `fd`. */
AQE_MUST_CHECK int aqe_fs_write_all(int fd, const void *p, size_t n, struct aqe_err *e);
/* Opens directory `name` below `dirfd`, making it with `mode` if absent; checked as
 * AQE_FS_DIR | AQE_FS_OWNER | AQE_FS_NO_WRITE. */
AQE_MUST_CHECK int aqe_fs_ensure_dir(int dirfd, const char *name, mode_t mode, int *ret_fd,
				     struct aqe_err *e);
/* Removes `name` below `dirfd` with all below it; follows no link, crosses no mount. Absent is
 * success. At most 136 levels and 2,000,000 entries. */
AQE_MUST_CHECK int aqe_fs_remove_tree(int dirfd, const char *name, struct aqe_err *e);
/* The canonical path of an open descriptor (from /proc/self/fd). */
AQE_MUST_CHECK int aqe_fs_fd_path(int fd, struct aqe_buf *b, struct aqe_err *e);

#endif
