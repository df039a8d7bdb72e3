/* SPDX-License-Identifier: MIT */
/* Tar archives made entry by entry, for tests. */
#ifndef AQE_UNIT_TAR_UTIL_H
#define AQE_UNIT_TAR_UTIL_H

#include <archive.h>
#include <archive_entry.h>
#include <sys/mman.h>

#include "tests/unit/unit.h"

/* Rows name only what they care about. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

struct tar_entry {
	const char *path;
	char type;        /* f file, d directory, l symlink, h hard link, c device, p pipe */
	const char *data; /* content, or the link's target */
	unsigned mode;    /* 0: 0644, directories 0755 */
	int uid, gid;
};

static inline void tar_add(struct archive *a, const struct tar_entry *t)
{
	static const unsigned types[128] = { ['f'] = AE_IFREG, ['d'] = AE_IFDIR, ['l'] = AE_IFLNK,
					     ['h'] = AE_IFREG, ['c'] = AE_IFCHR, ['p'] = AE_IFIFO };
	struct archive_entry *entry = archive_entry_new();
	size_t n = t->type == 'f' && t->data ? strlen(t->data) : 0;

	archive_entry_set_pathname(entry, t->path);
	archive_entry_set_filetype(entry, types[(int)t->type]);
	archive_entry_set_perm(entry, t->mode ? t->mode : t->type == 'd' ? 0755 : 0644);
	archive_entry_set_uid(entry, t->uid);
	archive_entry_set_gid(entry, t->gid);
	archive_entry_set_mtime(entry, 1000000000, 0);
	archive_entry_set_size(entry, (la_int64_t)n);
	if (t->type == 'l')
		archive_entry_set_symlink(entry, t->data);
	if (t->type == 'h')
		archive_entry_set_hardlink(entry, t->data);
	ck_assert_int_eq(archive_write_header(a, entry), ARCHIVE_OK);
	if (n > 0)
		ck_assert_int_eq(archive_write_data(a, t->data, n), (la_ssize_t)n);
	archive_entry_free(entry);
}

/* A descriptor of the archive; `filter` 0, 'g' gzip, 'z' zstd, 'x' xz, 'b' bzip2. */
static inline int tar_make(const struct tar_entry *entries, size_t n, char filter)
{
	struct archive *a = archive_write_new();
	int fd = memfd_create("tar", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(archive_write_set_format_pax_restricted(a), ARCHIVE_OK);
	if (filter == 'g')
		ck_assert_int_eq(archive_write_add_filter_gzip(a), ARCHIVE_OK);
	if (filter == 'z')
		ck_assert_int_eq(archive_write_add_filter_zstd(a), ARCHIVE_OK);
	if (filter == 'x')
		ck_assert_int_eq(archive_write_add_filter_xz(a), ARCHIVE_OK);
	if (filter == 'b')
		ck_assert_int_eq(archive_write_add_filter_bzip2(a), ARCHIVE_OK);
	ck_assert_int_eq(archive_write_open_fd(a, fd), ARCHIVE_OK);
	for (size_t i = 0; i < n; i++)
		tar_add(a, &entries[i]);
	ck_assert_int_eq(archive_write_close(a), ARCHIVE_OK);
	ck_assert_int_eq(archive_write_free(a), ARCHIVE_OK);
	return fd;
}

#endif
