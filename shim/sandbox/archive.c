/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/lazy.h"
#include "shim/core/text.h"

#define BLOCK_BYTES ((size_t)64 * 1024)

/* ---- the library ---- */

#define LIB_FUNCTIONS(X)             \
	X(read_new)                  \
	X(read_free)                 \
	X(read_support_filter_gzip)  \
	X(read_support_filter_zstd)  \
	X(read_support_filter_bzip2) \
	X(read_support_filter_xz)    \
	X(read_support_format_raw)   \
	X(read_support_format_tar)   \
	X(read_support_format_empty) \
	X(read_open_fd)              \
	X(read_data_block)           \
	X(read_next_header)          \
	X(error_string)              \
	X(entry_filetype)            \
	X(entry_pathname)            \
	X(entry_pathname_utf8)       \
	X(entry_hardlink)            \
	X(entry_hardlink_utf8)       \
	X(entry_symlink)             \
	X(entry_symlink_utf8)        \
	X(entry_perm)                \
	X(entry_uid)                 \
	X(entry_gid)                 \
	X(entry_mtime)

#define MEMBER(name) __typeof__(archive_##name) *(name);
struct lib_functions {
	LIB_FUNCTIONS(MEMBER)
};
#define SYMBOL(name) { "archive_" #name, offsetof(struct lib_functions, name) },
static const struct aqe_lazy_symbol LIB_SYMBOLS[] = { LIB_FUNCTIONS(SYMBOL) };

static struct lib_functions lib; /* NULL until shim_archive_ready() has succeeded */

int shim_archive_ready(struct aqe_err *e)
{
	return lib.read_new ? 0
			    : aqe_lazy_load("libarchive.so.13", LIB_SYMBOLS, AQE_COUNT(LIB_SYMBOLS),
					    &lib, e);
}

/* ---- a reader ---- */

struct shim_archive {
	struct archive *a;
	uint64_t bytes, max_bytes; /* of contents written so far */
};

static void free_reader(struct archive *const *a)
{
	if (*a)
		(void)lib.read_free(*a); /* only read from */
}
#define AUTO_READER AQE_CLEANUP(free_reader)

static int damaged(struct archive *a, struct aqe_err *e)
{
	const char *text = lib.error_string(a);

	return aqe_err_set(e, AQE_E_MALFORMED, 0, "archive: %.200s", text ? text : "damaged");
}

static int open_reader(int fd, bool raw, struct archive **ret, struct aqe_err *e)
{
	int rc = shim_archive_ready(e);
	struct archive *a = rc < 0 ? NULL : lib.read_new();

	if (rc < 0)
		return rc;
	if (!a)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for an archive");
	*ret = a;
	if (lib.read_support_filter_gzip(a) != ARCHIVE_OK ||
	    lib.read_support_filter_zstd(a) != ARCHIVE_OK ||
	    lib.read_support_filter_bzip2(a) != ARCHIVE_OK ||
	    lib.read_support_filter_xz(a) != ARCHIVE_OK ||
	    (raw ? lib.read_support_format_raw(a) : lib.read_support_format_tar(a)) != ARCHIVE_OK)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "libarchive lacks a filter");
	/* an empty file is an archive without entries, and raw data of no bytes */
	(void)(raw ? lib.read_support_format_empty(a) : ARCHIVE_OK);
	if (lseek(fd, 0, SEEK_SET) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "rewind an archive");
	if (lib.read_open_fd(a, fd, BLOCK_BYTES) != ARCHIVE_OK)
		return damaged(a, e);
	return AQE_OK;
}

/* ---- contents ---- */

/* Data comes in blocks with offsets; gaps are holes. */
int shim_archive_data(struct shim_archive *ar, int out_fd, struct aqe_err *e)
{
	const void *p;
	size_t n;
	la_int64_t at, end = 0;
	int rc, r;

	while ((r = lib.read_data_block(ar->a, &p, &n, &at)) == ARCHIVE_OK) {
		if (at < end || (uint64_t)at > ar->max_bytes)
			return aqe_err_set(e, AQE_E_MALFORMED, 0, "archive: blocks out of order");
		ar->bytes += (uint64_t)(at - end) + n;
		if (ar->bytes > ar->max_bytes)
			return aqe_err_set(e, AQE_E_LIMIT, 0, "archive: more than %llu bytes",
					   (unsigned long long)ar->max_bytes);
		if (at > end && lseek(out_fd, at, SEEK_SET) < 0)
			return aqe_err_set(e, AQE_E_SYS, errno, "seek");
		rc = aqe_fs_write_all(out_fd, p, n, e);
		if (rc < 0)
			return rc;
		end = at + (la_int64_t)n;
	}
	if (r != ARCHIVE_EOF)
		return damaged(ar->a, e);
	/* a hole at the end */
	return ftruncate(out_fd, end) < 0 ? aqe_err_set(e, AQE_E_SYS, errno, "truncate") : AQE_OK;
}

int shim_archive_inflate(int fd, uint64_t max_bytes, int out_fd, struct aqe_err *e)
{
	AUTO_READER struct archive *a = NULL;
	struct shim_archive ar = { NULL, 0, max_bytes };
	struct archive_entry *entry;
	int rc = open_reader(fd, true, &a, e);

	if (rc < 0)
		return rc;
	ar.a = a;
	rc = lib.read_next_header(a, &entry);
	if (rc == ARCHIVE_EOF)
		return AQE_OK; /* nothing in it */
	return rc == ARCHIVE_OK ? shim_archive_data(&ar, out_fd, e) : damaged(a, e);
}

/* ---- entries ---- */

static enum shim_entry_type type_of(struct archive_entry *entry)
{
	if (lib.entry_hardlink(entry))
		return SHIM_ENTRY_HARDLINK;
	switch (lib.entry_filetype(entry)) {
	case AE_IFREG:
		return SHIM_ENTRY_FILE;
	case AE_IFDIR:
		return SHIM_ENTRY_DIR;
	case AE_IFLNK:
		return SHIM_ENTRY_SYMLINK;
	default:
		return SHIM_ENTRY_SPECIAL;
	}
}

/* The library converts names to the locale's encoding; one that cannot be converted is NULL there
 * but is UTF-8 in a pax header. */
static const char *first(const char *a, const char *b)
{
	return a ? a : b;
}

static int read_entry(struct archive_entry *entry, struct shim_entry *ret, struct aqe_err *e)
{
	ret->type = type_of(entry);
	ret->path = first(lib.entry_pathname_utf8(entry), lib.entry_pathname(entry));
	ret->link = NULL;
	if (ret->type == SHIM_ENTRY_HARDLINK)
		ret->link = first(lib.entry_hardlink_utf8(entry), lib.entry_hardlink(entry));
	if (ret->type == SHIM_ENTRY_SYMLINK)
		ret->link = first(lib.entry_symlink_utf8(entry), lib.entry_symlink(entry));
	if (!ret->path || (ret->type == SHIM_ENTRY_SYMLINK && !ret->link))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "archive: a name that cannot be read");
	ret->mode = lib.entry_perm(entry);
	ret->uid = lib.entry_uid(entry);
	ret->gid = lib.entry_gid(entry);
	ret->mtime_s = lib.entry_mtime(entry);
	return AQE_OK;
}

int shim_archive_walk(int fd, uint64_t max_entries, uint64_t max_bytes, shim_entry_fn *fn,
		      void *arg, struct aqe_err *e)
{
	AUTO_READER struct archive *a = NULL;
	struct shim_archive ar = { NULL, 0, max_bytes };
	struct archive_entry *raw;
	struct shim_entry entry;
	uint64_t n = 0;
	int r, rc = open_reader(fd, false, &a, e);

	if (rc < 0)
		return rc;
	ar.a = a;
	while ((r = lib.read_next_header(a, &raw)) == ARCHIVE_OK) {
		if (++n > max_entries)
			return aqe_err_set(e, AQE_E_LIMIT, 0, "archive: more than %llu entries",
					   (unsigned long long)max_entries);
		rc = read_entry(raw, &entry, e);
		if (rc == 0)
			rc = fn(arg, &entry, &ar, e);
		if (rc < 0)
			return rc;
	}
	return r == ARCHIVE_EOF ? AQE_OK : damaged(a, e);
}
