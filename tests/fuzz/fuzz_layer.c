/* SPDX-License-Identifier: MIT */
/* Layers and archives of images: whatever one says, nothing outside its directory is touched, and
 * inside are only files, directories and links, owned by the container's ids and without set-id
 * bits. The first byte says what it is read as; bytes after "\nNEXT LAYER\n" are a second one. */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/sandbox/archive.h"
#include "shim/sandbox/image.h"
#include "shim/sandbox/unpack.h"

#define BYTES_MAX 65536
#define BLOCK     512

enum { AS_LAYER, AS_REPAIRED, AS_FILES, AS_PACKED, AS_COUNT }; /* the first byte, modulo */

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const char NEXT[] = "\nNEXT LAYER\n";
static char top[] = "/tmp/aqe-fuzz-layer-XXXXXX"; /* top/root is the image's */
static char inside[sizeof(top) + 8];
static int top_fd = -1;
static uint32_t shift; /* 0: not root, owners cannot be given */

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void remove_top(void)
{
	(void)unlinkat(top_fd, "victim", 0);
	(void)rmdir(top);
}

static void begin(void)
{
	if (top_fd >= 0)
		return;
	must(mkdtemp(top) != NULL);
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(top_fd >= 0);
	shift = geteuid() == 0 ? SHIM_ID_SHIFT : 0;
	must(close(openat(top_fd, "victim", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) == 0);
	(void)snprintf(inside, sizeof(inside), "%s/root", top);
	must(atexit(remove_top) == 0);
}

/* Makes the checksum of every header right, so that what else it says is read. */
static void repair(unsigned char *p, size_t n)
{
	char octal[13] = "";

	for (size_t at = 0; at + BLOCK <= n;) {
		unsigned char *h = p + at;
		unsigned sum = 0;
		size_t size;

		memset(h + 148, ' ', 8);
		for (size_t i = 0; i < BLOCK; i++)
			sum += h[i];
		at += BLOCK;
		if (sum == 8U * ' ') { /* the end */
			memset(h + 148, 0, 8);
			continue;
		}
		(void)snprintf(octal, sizeof(octal), "%06o", sum & 0777777);
		memcpy(h + 148, octal, 7);
		memcpy(octal, h + 124, 12);
		size = h[156] >= '1' && h[156] <= '6' ? 0 : strtoul(octal, NULL, 8);
		at += size < n ? (size + BLOCK - 1) / BLOCK * BLOCK : 0;
	}
}

/* What lies beside the image: one empty file of one name, ours alone. */
static void check_outside(void)
{
	struct stat st;

	must(fstatat(top_fd, "victim", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size == 0 &&
	     S_ISREG(st.st_mode) && (st.st_mode & 07777) == 0600 && st.st_nlink == 1 &&
	     st.st_uid == geteuid());
	must(fstat(top_fd, &st) == 0 && st.st_nlink == 3 && (st.st_mode & 07777) == 0700);
	must(fstatat(top_fd, "root", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	     (st.st_mode & 07777) == 0755 && st.st_uid == geteuid());
	must(faccessat(top_fd, "escape", F_OK, AT_SYMLINK_NOFOLLOW) != 0);
	must(access("/aqe-fuzz-escape", F_OK) != 0 && access("/tmp/aqe-fuzz-escape", F_OK) != 0);
}

static int check_inside(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)path;
	must(type != FTW_NS);
	must(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode));
	must((st->st_mode & (S_ISUID | S_ISGID)) == 0 && st->st_size <= BYTES_MAX);
	if (at->level > 0 && shift)
		must(st->st_uid - shift < SHIM_ID_SIZE && st->st_gid - shift < SHIM_ID_SIZE);
	return 0;
}

static void unpack(struct shim_unpack *u, const unsigned char *p, size_t n, unsigned how)
{
	AQE_AUTO_FD int fd = memfd_create("layer", MFD_CLOEXEC);
	AQE_AUTO_FREE unsigned char *copy = malloc(n + 1);
	struct aqe_err e = AQE_ERR_INIT;
	const bool layer = how != AS_FILES;
	int rc;

	must(copy != NULL);
	memcpy(copy, p, n);
	if (how == AS_REPAIRED)
		repair(copy, n);
	must(aqe_fs_write_all(fd, copy, n, NULL) == 0);
	rc = layer ? shim_unpack_layer(u, fd, &e) : shim_unpack_files(u, fd, &e);
	must(rc == 0 || (rc < 0 && rc == (int)e.code && e.text[0]));
}

static void inflate(const unsigned char *p, size_t n)
{
	AQE_AUTO_FD int in = memfd_create("in", MFD_CLOEXEC), to = memfd_create("out", MFD_CLOEXEC);
	struct stat st;

	must(aqe_fs_write_all(in, p, n, NULL) == 0);
	(void)!shim_archive_inflate(in, BYTES_MAX, to, NULL);
	must(fstat(to, &st) == 0 && st.st_size <= BYTES_MAX);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	AQE_AUTO_FD int root = -1;
	struct shim_unpack u = { .bytes_max = BYTES_MAX };
	const unsigned char *next;
	size_t n;
	unsigned how;

	if (size == 0)
		return 0;
	how = data[0] % AS_COUNT;
	if (how == AS_PACKED) {
		inflate(data + 1, size - 1);
		return 0;
	}
	begin();
	must(mkdirat(top_fd, "root", 0755) == 0);
	root = openat(top_fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(root >= 0);
	u.root_fd = root;
	u.id_shift = shift;
	u.id_size = shift ? SHIM_ID_SIZE : 0;
	next = memmem(data + 1, size - 1, NEXT, strlen(NEXT));
	n = next ? (size_t)(next - data) : size;
	unpack(&u, data + 1, n - 1, how);
	if (next)
		unpack(&u, next + strlen(NEXT), size - n - strlen(NEXT), how);
	check_outside();
	if (how != AS_FILES)
		must(nftw(inside, check_inside, 16, FTW_PHYS) == 0);
	must(aqe_fs_remove_tree(top_fd, "root", NULL) == 0);
	return 0;
}
