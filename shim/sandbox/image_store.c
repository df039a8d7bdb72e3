/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/image_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/sandbox/box.h"
#include "shim/sandbox/image.h"

#define PREFIX     "sha256:"
#define HEX_LEN    64
#define PREFIX_MIN 4
#define BLOCK      512
#define GOING      ".old-" /* has lost its name, its files are being removed */

/* ---- the lock ---- */

int shim_images_lock(const struct shim_place *place, struct aqe_err *e)
{
	return flock(place->store_fd, LOCK_SH) < 0
		       ? aqe_err_set(e, AQE_E_SYS, errno, "lock the store of images")
		       : 0;
}

void shim_images_unlock(const struct shim_place *place)
{
	(void)flock(place->store_fd, LOCK_UN); /* ours: cannot fail */
}

/* ---- looking ---- */

/* What a set of files takes; what cannot be read is left out. A file of many names counts once. */
static uint64_t disk_use(const char *path)
{
	char *const paths[] = { (char *)(uintptr_t)path, NULL };
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);
	const FTSENT *ent;
	uint64_t blocks = 0;

	while (walk && (ent = fts_read(walk)) != NULL) {
		const struct stat *st = ent->fts_statp;

		if (ent->fts_info == FTS_D || ent->fts_info == FTS_NS || ent->fts_info == FTS_ERR)
			continue; /* a directory comes a second time, as FTS_DP */
		blocks += (uint64_t)st->st_blocks /
			  (ent->fts_info == FTS_F && st->st_nlink > 1 ? st->st_nlink : 1);
	}
	if (walk)
		(void)fts_close(walk); /* only read from */
	return blocks * BLOCK;
}

static bool uses(const struct shim_box *b, const struct shim_place *place, const char *id)
{
	char root[4096 + 96];
	int n;

	if (aqe_str_eq(b->plan.image_id, id))
		return true;
	n = snprintf(root, sizeof(root), "%s/store/%s", place->path, id + strlen(PREFIX));
	/* --rootfs of something in the store */
	return b->plan.rootfs && n > 0 && (size_t)n < sizeof(root) &&
	       aqe_path_is_under(b->plan.rootfs, root);
}

/* A sandbox whose plan cannot be read may use anything: that is an error. */
static int count_users(struct aqe_arena *a, const struct shim_place *place,
		       struct shim_stored *list, size_t n, struct aqe_err *e)
{
	const char **names = NULL;
	size_t n_names = 0;
	int rc = shim_place_list(a, place, &names, &n_names, e);

	for (size_t i = 0; i < n_names && rc == 0; i++) {
		SHIM_AUTO_BOX struct shim_box b = SHIM_BOX_INIT;

		rc = shim_box_open(a, place, names[i], &b, e);
		if (rc == AQE_E_ABSENT) {
			rc = 0; /* removed meanwhile */
			continue;
		}
		for (size_t j = 0; j < n && rc == 0; j++) {
			if (!uses(&b, place, list[j].id))
				continue;
			list[j].n_users++;
			list[j].user = b.name;
		}
	}
	return rc;
}

/* NULL: the error is set. */
static DIR *open_store(const struct shim_place *place, struct aqe_err *e)
{
	int fd = openat(place->store_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		(void)aqe_err_set(e, AQE_E_SYS, errno, "read the store of images");
		aqe_cleanup_fd(&fd);
	}
	return dir;
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct shim_stored *)a)->id, ((const struct shim_stored *)b)->id);
}

static int read_store(const struct shim_place *place, struct shim_stored *list, size_t *ret_n,
		      struct aqe_err *e)
{
	const struct dirent *ent;
	DIR *dir = open_store(place, e);
	size_t n = 0;
	int rc = 0;

	if (!dir)
		return AQE_E_SYS;
	/* cppcheck-suppress readdirCalled; one thread, one stream */
	while (rc == 0 && (ent = readdir(dir)) != NULL) {
		struct stat st;

		if (!aqe_is_hex(ent->d_name, HEX_LEN) ||
		    fstatat(place->store_fd, ent->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISDIR(st.st_mode))
			continue;
		if (n == SHIM_IMAGES_MAX) {
			rc = aqe_err_set(e, AQE_E_LIMIT, 0, "more than %d images", SHIM_IMAGES_MAX);
			continue;
		}
		(void)snprintf(list[n].id, sizeof(list[n].id), PREFIX "%.64s", ent->d_name);
		list[n++].unpacked_s = st.st_mtime;
	}
	(void)closedir(dir); /* only read from */
	*ret_n = n;
	return rc;
}

int shim_images_list(struct aqe_arena *a, const struct shim_place *place, bool sizes,
		     struct shim_stored **ret, size_t *ret_n, struct aqe_err *e)
{
	struct shim_stored *list = aqe_arena_calloc(a, SHIM_IMAGES_MAX, sizeof(*list));
	size_t n = 0;
	int rc =
		list ? read_store(place, list, &n, e) : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");

	if (rc == 0)
		rc = count_users(a, place, list, n, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < n && sizes; i++) {
		const char *path =
			aqe_arena_fmt(a, "%s/store/%s", place->path, list[i].id + strlen(PREFIX));

		list[i].bytes = path ? disk_use(path) : 0;
	}
	if (n > 1)
		qsort(list, n, sizeof(*list), by_id);
	*ret = list;
	*ret_n = n;
	return 0;
}

/* ---- removing ---- */

static int find(const struct shim_stored *list, size_t n, const char *what, size_t *ret,
		struct aqe_err *e)
{
	const char *hex = aqe_starts(what, PREFIX) ? what + strlen(PREFIX) : what;
	size_t found = 0;

	for (size_t i = 0; i < n && strlen(hex) >= PREFIX_MIN; i++) {
		if (!aqe_starts(list[i].id + strlen(PREFIX), hex))
			continue;
		*ret = i;
		found++;
	}
	if (found == 1)
		return 0;
	return found ? aqe_err_set(e, AQE_E_USAGE, 0, "'%.80s' names %zu images", what, found)
		     : aqe_err_set(e, AQE_E_ABSENT, 0, "image '%.80s' is not in the store", what);
}

/* Gone in one step: what is left of it later is nobody's image. */
static int remove_one(const struct shim_place *place, const char *id, struct aqe_err *e)
{
	const char *hex = id + strlen(PREFIX);
	char old[HEX_LEN + sizeof(GOING)];

	(void)snprintf(old, sizeof(old), GOING "%.64s", hex);
	if (renameat(place->store_fd, hex, place->store_fd, old) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "remove image %s", id);
	return aqe_fs_remove_tree(place->store_fd, old, e);
}

static int lock_alone(const struct shim_place *place, struct aqe_err *e)
{
	if (flock(place->store_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK ? aqe_err_set(e, AQE_E_REFUSED, 0,
						  "a sandbox is being made just now: try again")
				    : aqe_err_set(e, AQE_E_SYS, errno, "lock the store of images");
}

int shim_images_remove(struct aqe_arena *a, const struct shim_place *place, const char *what,
		       char ret_id[AQE_DIGEST_TEXT], struct aqe_err *e)
{
	struct shim_stored *list = NULL;
	size_t n = 0, at = 0;
	int rc = lock_alone(place, e);

	if (rc < 0)
		return rc;
	rc = shim_images_list(a, place, false, &list, &n, e);
	if (rc == 0)
		rc = find(list, n, what, &at, e);
	if (rc == 0 && list[at].n_users > 0)
		rc = aqe_err_set(e, AQE_E_REFUSED, 0, "image %.19s is used by %zu sandbox%s: %s",
				 list[at].id, list[at].n_users, list[at].n_users == 1 ? "" : "es",
				 list[at].user);
	if (rc == 0) {
		memcpy(ret_id, list[at].id, AQE_DIGEST_TEXT);
		rc = remove_one(place, list[at].id, e);
	}
	shim_images_unlock(place);
	return rc;
}

/* One that is being filled is locked by who fills it. */
static bool is_left_over(const struct shim_place *place, const char *name)
{
	AQE_AUTO_FD int fd = -1;

	if (aqe_starts(name, GOING))
		return true;
	if (!aqe_starts(name, SHIM_IMAGE_TEMP) ||
	    aqe_fs_open_beneath(place->store_fd, name, O_RDONLY | O_DIRECTORY, 0, &fd, NULL) < 0)
		return false;
	return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static int sweep(const struct shim_place *place, size_t *ret_n, struct aqe_err *e)
{
	const struct dirent *ent;
	DIR *dir = open_store(place, e);
	int rc = 0;

	if (!dir)
		return AQE_E_SYS;
	/* cppcheck-suppress readdirCalled; one thread, one stream */
	while (rc == 0 && (ent = readdir(dir)) != NULL) {
		if (!is_left_over(place, ent->d_name))
			continue;
		rc = aqe_fs_remove_tree(place->store_fd, ent->d_name, e);
		*ret_n += rc == 0;
	}
	(void)closedir(dir); /* only read from */
	return rc;
}

int shim_images_sweep(const struct shim_place *place, size_t *ret_n, struct aqe_err *e)
{
	int rc = lock_alone(place, e);

	*ret_n = 0;
	if (rc < 0)
		return rc;
	rc = sweep(place, ret_n, e);
	shim_images_unlock(place);
	return rc;
}
