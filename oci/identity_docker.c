/* SPDX-License-Identifier: MIT */
/* dockerd's own image store with the overlay2 graph driver. Below the data root:
 *   containers/<ID>/config.v2.json, hostconfig.json      what was asked for, and the image's id
 *   image/overlay2/layerdb/mounts/<ID>/mount-id, parent  the container's layer, and what is below
 *   image/overlay2/layerdb/sha256/<chain>/diff, parent, cache-id   the image's layers
 *   image/overlay2/imagedb/content/sha256/<image>        the image's config document
 *   overlay2/<mount-id>/merged                           the mounted root file system
 * Both container files are written before the runtime is called. */
#include "oci/store.h"

#include <stdio.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define HEX_ID   64U
#define LAYERDB  "image/overlay2/layerdb"
#define CONTENT  "image/overlay2/imagedb/content/sha256"
#define MERGED   "/merged"
#define OVERLAY2 "/overlay2"
#define SHA256   "sha256:"

struct store {
	struct oci_dir data;
	const char *mount_id;
	const struct aqe_json *config; /* config.v2.json */
	const char *image_id;          /* "sha256:..." */
	const struct aqe_json *diff_ids;
};

/* Splits root.path "<data>/overlay2/<mount-id>/merged". */
static int open_store(struct oci_probe *p, struct store *s)
{
	AQE_AUTO_BUF struct aqe_buf canon = AQE_BUF_INIT(4096);
	struct aqe_err err = AQE_ERR_INIT;
	const char *rel;
	char *path = aqe_arena_dup(p->tmp, p->root_path), *slash;
	int r;

	if (!path)
		return oci_nomem(p);
	if (!aqe_path_is_canonical(path) || !aqe_ends(path, MERGED))
		goto other;
	path[strlen(path) - strlen(MERGED)] = 0;
	slash = strrchr(path, '/');
	if (!slash || !aqe_is_hex(slash + 1, HEX_ID))
		goto other;
	s->mount_id = slash + 1;
	*slash = 0;
	if (!aqe_ends(path, OVERLAY2) || strlen(path) == strlen(OVERLAY2))
		goto other;
	path[strlen(path) - strlen(OVERLAY2)] = 0;
	r = oci_dir_open(p, path, &s->data);
	if (r)
		return r;
	if (aqe_fs_fd_path(s->data.fd, &canon, &err) < 0)
		return oci_unknown_file(p, &s->data, ".", &err);
	s->data.path = aqe_arena_dup(p->tmp, aqe_buf_str(&canon));
	rel = aqe_arena_fmt(p->tmp, "overlay2/%s" MERGED, s->mount_id);
	if (!s->data.path || !rel)
		return oci_nomem(p);
	return oci_dir_has(p, &s->data, rel);
other:
	return oci_unknown(p,
			   "root.path '%s' is not <data-root>/overlay2/<id>/merged: only docker's "
			   "overlay2 driver with its own image store is supported",
			   p->root_path);
}

/* ---- the container ---- */

static int copy(struct oci_probe *p, const struct aqe_json *v, const char **ret)
{
	const char *s = aqe_json_str(v);

	if (!s)
		return 0;
	*ret = aqe_arena_dup(p->out, s);
	return *ret ? 0 : oci_nomem(p);
}

static int read_hostconfig(struct oci_probe *p, const struct oci_dir *data)
{
	const char *path = aqe_arena_fmt(p->tmp, "containers/%s/hostconfig.json", p->in->id);
	struct aqe_err err = AQE_ERR_INIT;
	const char *network = NULL;
	struct aqe_json *root;
	bool privileged = false;
	int r;

	if (!path)
		return oci_nomem(p);
	r = oci_read_json(p, data, path, &root);
	if (r)
		return r;
	if (aqe_json_get_bool(root, "Privileged", &privileged, &err) < 0 ||
	    aqe_json_get_str(root, "NetworkMode", &network, &err) < 0)
		return oci_unknown_file(p, data, path, &err);
	p->id->asked_privileged = privileged;
	return copy(p, aqe_json_get(root, "NetworkMode"), &p->id->asked_network);
}

static int read_labels(struct oci_probe *p, const struct aqe_json *labels)
{
	int r = copy(p, aqe_json_get(labels, "io.aqe.agent-type"), &p->id->label_agent_type);

	if (r)
		return r;
	return copy(p, aqe_json_get(labels, "io.aqe.agent-id"), &p->id->label_agent_id);
}

static int read_container(struct oci_probe *p, struct store *s)
{
	const char *path = aqe_arena_fmt(p->tmp, "containers/%s/config.v2.json", p->in->id);
	struct aqe_json *root;
	const char *id, *driver;
	int r;

	if (!path)
		return oci_nomem(p);
	r = oci_read_json(p, &s->data, path, &root);
	if (r)
		return r;
	id = aqe_json_str(aqe_json_get(root, "ID"));
	driver = aqe_json_str(aqe_json_get(root, "Driver"));
	s->image_id = aqe_json_str(aqe_json_get(root, "Image"));
	r = copy(p, aqe_json_at(root, "/Config/Image"), &p->id->name);
	if (r)
		return r;
	r = read_labels(p, aqe_json_at(root, "/Config/Labels"));
	if (r)
		return r;
	if (!aqe_str_eq(id, p->in->id))
		return oci_unknown(p, "'%s/%s' is of container '%s'", s->data.path, path,
				   id ? id : "");
	if (!aqe_str_eq(driver, "overlay2"))
		return oci_unknown(p, "'%s/%s' names graph driver '%s', not overlay2", s->data.path,
				   path, driver ? driver : "");
	if (!s->image_id || !aqe_is_sha256_digest(s->image_id))
		return oci_unknown(p, "'%s/%s' names no image id", s->data.path, path);
	return 0;
}

static int set_dir(struct oci_probe *p, const struct oci_dir *data)
{
	const char *dir = aqe_arena_fmt(p->out, "%s/containers/%s", data->path, p->in->id);

	if (!dir)
		return oci_nomem(p);
	p->id->dirs[p->id->n_dirs++] = dir;
	return 0;
}

/* ---- the image and its layers ---- */

static int read_image(struct oci_probe *p, struct store *s)
{
	const char *path = aqe_arena_fmt(p->tmp, CONTENT "/%s", s->image_id + strlen(SHA256));
	char digest[AQE_DIGEST_TEXT];
	struct aqe_json *config;
	const char *what = aqe_arena_fmt(p->tmp, "the config of image %s", s->image_id);
	int r;

	if (!path || !what)
		return oci_nomem(p);
	r = oci_read_blob(p, &s->data, path, s->image_id, digest, &config);
	return r ? r : oci_diff_ids(p, config, what, &s->diff_ids);
}

/* A line of layerdb; `want` NULL means that the file must be absent. */
static int expect_line(struct oci_probe *p, const struct store *s, const char *dir,
		       const char *file, const char *want)
{
	const char *path = aqe_arena_fmt(p->tmp, LAYERDB "/%s/%s", dir, file);
	const char *found;
	int r;

	if (!path)
		return oci_nomem(p);
	r = oci_read_line(p, &s->data, path, want ? OCI_ABSENT_UNKNOWN : OCI_ABSENT_OK, &found);
	if (r || aqe_str_eq(found, want))
		return r;
	return oci_unknown(p, "'%s/%s' says '%s', expected '%s'", s->data.path, path, found,
			   want ? want : "no such file");
}

/* The directory that holds a layer's files. */
static int check_cache(struct oci_probe *p, const struct store *s, const char *dir)
{
	const char *path = aqe_arena_fmt(p->tmp, LAYERDB "/%s/cache-id", dir), *cache;
	int r;

	if (!path)
		return oci_nomem(p);
	r = oci_read_line(p, &s->data, path, OCI_ABSENT_UNKNOWN, &cache);
	if (r)
		return r;
	if (!aqe_is_hex(cache, HEX_ID))
		return oci_unknown(p, "'%s/%s' names no layer directory", s->data.path, path);
	path = aqe_arena_fmt(p->tmp, "overlay2/%s", cache);
	return path ? oci_dir_has(p, &s->data, path) : oci_nomem(p);
}

/* Chain ids (image-spec config.md): of the lowest layer its diff_id, of any other the digest of
 * "<chain id below> <diff_id>". */
static int check_layers(struct oci_probe *p, struct store *s)
{
	char chain[AQE_DIGEST_TEXT], pair[2 * AQE_DIGEST_TEXT];
	const char *dir, *below = NULL;
	int r;

	for (const struct aqe_json *v = s->diff_ids->first; v; v = v->next) {
		const char *diff = aqe_json_str(v);

		if (below) {
			(void)snprintf(pair, sizeof(pair), "%s %s", below, diff);
			aqe_sha256_text(pair, strlen(pair), chain);
		} else {
			(void)snprintf(chain, sizeof(chain), "%s", diff);
		}
		dir = aqe_arena_fmt(p->tmp, "sha256/%s", chain + strlen(SHA256));
		if (!dir)
			return oci_nomem(p);
		r = expect_line(p, s, dir, "diff", diff);
		if (!r)
			r = expect_line(p, s, dir, "parent", below);
		if (!r)
			r = check_cache(p, s, dir);
		if (r)
			return r;
		below = aqe_arena_dup(p->tmp, chain);
		if (!below)
			return oci_nomem(p);
	}
	dir = aqe_arena_fmt(p->tmp, "mounts/%s", p->in->id);
	if (!dir)
		return oci_nomem(p);
	r = expect_line(p, s, dir, "mount-id", s->mount_id);
	return r ? r : expect_line(p, s, dir, "parent", below);
}

static void store_done(struct store *s)
{
	oci_dir_done(&s->data);
}

int oci_identify_docker(struct oci_probe *p)
{
	AQE_CLEANUP(store_done) struct store s = { .data = OCI_DIR_INIT };
	int (*const steps[])(struct oci_probe *, struct store *) = {
		open_store,
		read_container,
		read_image,
		check_layers,
	};

	if (!aqe_is_hex(p->in->id, HEX_ID))
		return oci_unknown(p, "container id '%s' is not one of docker's", p->in->id);
	for (size_t i = 0; i < AQE_COUNT(steps); i++) {
		int r = steps[i](p, &s);

		if (r)
			return r;
		if (i > 0)
			continue;
		/* what was asked for, and the container's own files, whatever the image is */
		r = set_dir(p, &s.data);
		if (!r)
			r = read_hostconfig(p, &s.data);
		if (r)
			return r;
	}
	memcpy(p->id->image_id, s.image_id, sizeof(p->id->image_id));
	return 0;
}
