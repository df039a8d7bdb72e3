/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/image.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/sandbox/layout.h"

#define CONFIG_MAX ((size_t)4 << 20)
#define NS_PER_MS  1000000

static const struct aqe_json_limits LIMITS = {
	.bytes = CONFIG_MAX,
	.depth = 32,
	.values = 200000,
	.entries = 10000,
	.string = CONFIG_MAX,
	.number = 32,
	.fold_dups_ok = true,
};

/* ---- reading the config ---- */

static int strs(struct aqe_arena *a, const struct aqe_json *list, struct shim_strs *ret,
		struct aqe_err *e)
{
	const char **v;
	size_t n = 0;

	if (!list || list->type == AQE_JSON_NULL)
		return 0;
	if (list->type != AQE_JSON_ARRAY)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "image: '%.50s' is no list", list->key);
	v = aqe_arena_calloc(a, list->len + 1, sizeof(*v));
	if (!v)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	for (const struct aqe_json *i = list->first; i; i = i->next) {
		v[n] = aqe_json_str(i);
		if (!v[n++])
			return aqe_err_set(e, AQE_E_MALFORMED, 0, "image: '%.50s' holds no text",
					   list->key);
	}
	*ret = (struct shim_strs){ v, n };
	return 0;
}

static const char *text_of(const struct aqe_json *obj, const char *name)
{
	const char *s = aqe_json_str(aqe_json_get(obj, name));

	return s && *s ? s : NULL;
}

static int64_t ms_of(const struct aqe_json *obj, const char *name)
{
	int64_t ns = 0;

	(void)aqe_json_to_i64(aqe_json_get(obj, name), 0, INT64_MAX, &ns); /* absent: 0 */
	return ns / NS_PER_MS;
}

static int decode(struct aqe_arena *a, const struct aqe_json *root, struct shim_image *ret,
		  struct aqe_err *e)
{
	const struct aqe_json *c = aqe_json_get(root, "config");
	const struct aqe_json *h = aqe_json_get(c, "Healthcheck");
	int rc = strs(a, aqe_json_get(c, "Env"), &ret->env, e);

	if (rc == 0)
		rc = strs(a, aqe_json_get(c, "Entrypoint"), &ret->entrypoint, e);
	if (rc == 0)
		rc = strs(a, aqe_json_get(c, "Cmd"), &ret->cmd, e);
	if (rc == 0)
		rc = strs(a, aqe_json_get(h, "Test"), &ret->health, e);
	ret->user = text_of(c, "User");
	ret->workdir = text_of(c, "WorkingDir");
	ret->health_interval_ms = ms_of(h, "Interval");
	ret->health_timeout_ms = ms_of(h, "Timeout");
	ret->health_start_ms = ms_of(h, "StartPeriod");
	(void)aqe_json_to_i64(aqe_json_get(h, "Retries"), 0, 1000, &ret->health_retries);
	return rc;
}

static int read_config(struct aqe_arena *a, int dirfd, struct shim_image *ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(CONFIG_MAX);
	struct aqe_json *root = NULL;
	int rc = aqe_fs_read_beneath(dirfd, "config.json", AQE_FS_TRUSTED, &b, e);

	if (rc == 0)
		rc = aqe_json_parse(a, aqe_buf_str(&b), b.len, &LIMITS, &root, e);
	if (rc < 0)
		return aqe_err_wrap(e, "image");
	aqe_sha256_text(b.p, b.len, ret->id);
	return decode(a, root, ret, e);
}

int shim_image_open(struct aqe_arena *a, const struct shim_place *place, const char *id,
		    struct shim_image *ret, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	struct shim_image img;
	const char *hex = id + strlen("sha256:");
	int rc;

	memset(&img, 0, sizeof(img));
	if (!aqe_is_sha256_digest(id))
		return aqe_err_set(e, AQE_E_USAGE, 0, "'%.100s' is no image id", id);
	rc = aqe_fs_open_beneath(place->store_fd, hex, O_RDONLY | O_DIRECTORY, 0, &fd, e);
	if (rc == AQE_E_ABSENT)
		return aqe_err_set(e, AQE_E_ABSENT, 0, "image %s is not in the store", id);
	if (rc == 0)
		rc = read_config(a, fd, &img, e);
	if (rc < 0)
		return rc;
	if (!aqe_str_eq(img.id, id))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "image %s in the store is damaged", id);
	img.rootfs = aqe_arena_fmt(a, "%s/store/%s/rootfs", place->path, hex);
	if (!img.rootfs)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	*ret = img;
	return 0;
}

/* ---- bringing one in ---- */

struct source {
	const char *path, *tag;
	bool bare; /* no prefix said what it is */
};

static int parse_ref(struct aqe_arena *a, const char *ref, struct source *ret, struct aqe_err *e)
{
	static const char *const PREFIXES[] = { "oci:", "oci-archive:", "docker-archive:" };
	const char *colon;

	*ret = (struct source){ ref, NULL, true };
	for (size_t i = 0; i < AQE_COUNT(PREFIXES); i++) {
		if (!aqe_starts(ref, PREFIXES[i]))
			continue;
		ret->bare = false;
		ret->path = ref + strlen(PREFIXES[i]);
		colon = strchr(ret->path, ':');
		if (colon) {
			ret->tag = colon + 1;
			ret->path = aqe_arena_ndup(a, ret->path, (size_t)(colon - ret->path));
		}
		if (!ret->path)
			return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	}
	if (!*ret->path || (ret->tag && !*ret->tag))
		return aqe_err_set(e, AQE_E_USAGE, 0, "'%.200s' names no image", ref);
	return 0;
}

/* A folder of our own, locked as long as it is being filled. */
static int make_temp(const struct shim_place *place, char name[32], int *ret_fd, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	uint64_t chance;
	int rc;

	if (getrandom(&chance, sizeof(chance), 0) != (ssize_t)sizeof(chance))
		return aqe_err_set(e, AQE_E_SYS, errno, "getrandom");
	(void)snprintf(name, 32, SHIM_IMAGE_TEMP "%016llx", (unsigned long long)chance);
	rc = aqe_fs_ensure_dir(place->store_fd, name, 0711, &fd, e);
	if (rc < 0)
		return rc;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "lock '%s'", name);
	*ret_fd = AQE_TAKE_FD(fd);
	return 0;
}

/* The folder gets its name in one step: it is whole, or it is not there. */
static int keep(const struct shim_place *place, const char *temp, const char *id, struct aqe_err *e)
{
	const char *hex = id + strlen("sha256:");

	if (renameat(place->store_fd, temp, place->store_fd, hex) == 0)
		return 0;
	if (errno != EEXIST && errno != ENOTEMPTY)
		return aqe_err_set(e, AQE_E_SYS, errno, "keep image %s", id);
	return aqe_fs_remove_tree(place->store_fd, temp, e); /* it was there already */
}

static int unpack(struct aqe_arena *a, const struct shim_place *place, const struct source *s,
		  int source_fd, struct shim_image *ret, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	struct shim_image img;
	char temp[32];
	int rc = make_temp(place, temp, &fd, e);

	if (rc < 0)
		return rc;
	memset(&img, 0, sizeof(img));
	rc = shim_image_unpack(source_fd, s->tag, fd, e);
	if (rc == 0)
		rc = read_config(a, fd, &img, e);
	if (rc == 0)
		rc = keep(place, temp, img.id, e);
	if (rc < 0) {
		(void)!aqe_fs_remove_tree(place->store_fd, temp, NULL); /* the cause counts */
		return rc;
	}
	return shim_image_open(a, place, img.id, ret, e);
}

/* A layout's folder says at once which image it holds; one that is in the store already is not
 * unpacked again. */
static bool is_known(struct aqe_arena *a, const struct shim_place *place, const struct source *s,
		     int source_fd, struct shim_image *ret)
{
	struct shim_layout l;
	struct stat st;

	return fstat(source_fd, &st) == 0 && S_ISDIR(st.st_mode) &&
	       shim_layout_read(a, source_fd, s->tag, &l, NULL) == 0 &&
	       shim_image_open(a, place, l.id, ret, NULL) == 0;
}

int shim_image_import(struct aqe_arena *a, const struct shim_place *place, const char *ref,
		      struct shim_image *ret, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	struct source s;
	int rc;

	if (aqe_is_sha256_digest(ref))
		return shim_image_open(a, place, ref, ret, e);
	rc = parse_ref(a, ref, &s, e);
	if (rc < 0)
		return rc;
	fd = open(s.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ENOENT && s.bare)
		return aqe_err_set(e, AQE_E_ABSENT, 0,
				   "image '%.200s': no such file or folder; without an engine an "
				   "image is an OCI layout or an archive",
				   s.path);
	if (fd < 0)
		return aqe_err_set(e, errno == ENOENT ? AQE_E_ABSENT : AQE_E_SYS, errno,
				   "image '%.200s'", s.path);
	if (is_known(a, place, &s, fd, ret))
		return 0;
	rc = unpack(a, place, &s, fd, ret, e);
	return rc < 0 ? aqe_err_wrap(e, "'%.200s'", ref) : 0;
}
