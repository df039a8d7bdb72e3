/* SPDX-License-Identifier: MIT */
/* Reading tar archives: the only user of libarchive. What comes out is data of unknown origin;
 * where it may go is decided by unpack.h. No format but tar, no filter but gzip, zstd, bzip2 and
 * xz: the library's others run programs or are of no use in an image. */
#ifndef AQE_SANDBOX_ARCHIVE_H
#define AQE_SANDBOX_ARCHIVE_H

#include <stdint.h>
#include <sys/types.h>

#include "shim/core/err.h"

enum shim_entry_type {
	SHIM_ENTRY_FILE,
	SHIM_ENTRY_DIR,
	SHIM_ENTRY_SYMLINK,
	SHIM_ENTRY_HARDLINK,
	SHIM_ENTRY_SPECIAL, /* devices, pipes, sockets, anything else */
};
struct shim_entry {
	enum shim_entry_type type;
	const char *path, *link; /* as written; link of SYMLINK and HARDLINK */
	mode_t mode;             /* permission bits */
	int64_t uid, gid, mtime_s;
};

/* Loads the library. The others do it too; to be called before the file system is left in which
 * the machine's own copy of it is found. */
AQE_MUST_CHECK int shim_archive_ready(struct aqe_err *e);

struct shim_archive;
/* Called for every entry; the first failure ends the walk. */
typedef int shim_entry_fn(void *arg, const struct shim_entry *entry, struct shim_archive *ar,
			  struct aqe_err *e);
/* Reads the archive from the start of `fd` (a regular file). At most `max_entries` and, of file
 * contents, `max_bytes`: more is AQE_E_LIMIT. Damage is AQE_E_MALFORMED. */
AQE_MUST_CHECK int shim_archive_walk(int fd, uint64_t max_entries, uint64_t max_bytes,
				     shim_entry_fn *fn, void *arg, struct aqe_err *e);
/* Within the callback: writes the entry's content to `out_fd`. */
AQE_MUST_CHECK int shim_archive_data(struct shim_archive *ar, int out_fd, struct aqe_err *e);
/* Writes what `fd` is without its compression to `out_fd`. */
AQE_MUST_CHECK int shim_archive_inflate(int fd, uint64_t max_bytes, int out_fd, struct aqe_err *e);

#endif
