/* SPDX-License-Identifier: MIT */
/* containers/storage, the store of podman, CRI-O and buildah:
 *   <graphroot>/<driver>-containers/containers.json   container -> image, layer
 *   <graphroot>/<driver>-images/images.json           image -> top layer, blobs
 *   <graphroot>/<driver>-images/<image>/<blob>        config and manifests
 *   <graphroot>/<driver>-layers/layers.json           layer -> parent, digest of its content
 * volatile-*.json hold what need not survive a reboot; a transient store has them in the runroot.
 */
#include "oci/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define HEX_ID        64U /* letters of a container, image or layer id */
#define MANIFESTS_MAX 64U
#define INDEXES_MAX   3U /* the graphroot's two, the runroot's volatile one */

/* Where a driver mounts a container's layer, below the graphroot. */
static const struct driver {
	const char *name, *before, *after;
} DRIVERS[] = {
	{ "overlay", "overlay/", "/merged" },
	{ "vfs", "vfs/dir/", "" },
};

/* The store and what was found in it. */
struct store {
	struct oci_dir graph, run; /* run: only where a runroot is known */
	const char *graph_path;
	const char *driver_name;
	const struct driver *driver;
	const struct aqe_json *container, *image;
	const char *image_id, *layer_id; /* of the container: hex */
	const struct aqe_json *diff_ids;
};

bool oci_split_userdata(struct aqe_arena *a, const char *path, const char *id,
			const char **ret_root, const char **ret_driver)
{
	const char *tail = aqe_arena_fmt(a, "-containers/%s/userdata", id);
	size_t len, n;
	const char *slash;
	char *head;

	if (!tail || !aqe_path_is_canonical(path) || !aqe_ends(path, tail))
		return false;
	len = strlen(path);
	n = strlen(tail);
	head = aqe_arena_ndup(a, path, len - n);
	slash = head ? strrchr(head, '/') : NULL;
	if (!slash || slash == head || !slash[1])
		return false;
	*ret_driver = slash + 1;
	*ret_root = aqe_arena_ndup(a, head, (size_t)(slash - head));
	return *ret_root;
}

/* ---- the container ---- */

/* "<driver>-<what>/<file>" */
static const char *index_path(struct oci_probe *p, const struct store *s, const char *what,
			      const char *file)
{
	return aqe_arena_fmt(p->tmp, "%s-%s/%s", s->driver_name, what, file);
}

/* Reads one index and looks for an entry; *ret stays NULL when there is none. */
static int look_in(struct oci_probe *p, const struct oci_dir *d, const char *path,
		   enum oci_absent absent, const char *id, const struct aqe_json **ret)
{
	AQE_CLEANUP(oci_index_done) struct oci_index x = OCI_INDEX_INIT;
	int r;

	if (!path)
		return oci_nomem(p);
	r = oci_read_index(p, d, path, absent, &x);
	return r ? r : oci_find_entry(p, d, path, &x, id, ret);
}

/* Finds the container's entry in a graphroot, or in the runroot of a transient store. */
static int find_container(struct oci_probe *p, struct store *s)
{
	const char *id = p->in->id;
	const char *stable = index_path(p, s, "containers", "containers.json");
	const char *fast = index_path(p, s, "containers", "volatile-containers.json");
	int r = look_in(p, &s->graph, stable, OCI_ABSENT_OK, id, &s->container);

	if (r || s->container)
		return r;
	r = look_in(p, &s->graph, fast, OCI_ABSENT_OK, id, &s->container);
	if (r || s->container || s->run.fd < 0)
		return r;
	return look_in(p, &s->run, fast, OCI_ABSENT_OK, id, &s->container);
}

/* The graphroot is named by the bundle's path. CRI-O's bundle lies in its runroot, so a bundle
 * whose store does not know the container falls back to the root file system's place. */
static int open_store(struct oci_probe *p, struct store *s)
{
	const char *mark, *other;
	int r = oci_dir_open(p, s->graph_path, &s->graph);

	if (r)
		return r;
	r = find_container(p, s);
	if (r || s->container)
		return r;
	mark = aqe_arena_fmt(p->tmp, "/%s/", s->driver_name);
	if (!mark)
		return oci_nomem(p);
	other = strstr(p->root_path, mark);
	if (!other || other == p->root_path)
		return 0;
	other = aqe_arena_ndup(p->tmp, p->root_path, (size_t)(other - p->root_path));
	if (!other)
		return oci_nomem(p);
	if (aqe_str_eq(other, s->graph_path))
		return 0;
	oci_dir_done(&s->graph);
	s->graph_path = other;
	r = oci_dir_open(p, s->graph_path, &s->graph);
	return r ? r : find_container(p, s);
}

/* A member that is an id of 64 hex digits, or NULL. */
static const char *hex_member(const struct aqe_json *obj, const char *name)
{
	const char *s = aqe_json_str(aqe_json_get(obj, name));

	return s && aqe_is_hex(s, HEX_ID) ? s : NULL;
}

/* The image's name as podman noted it, for messages only. */
static int set_name(struct oci_probe *p, const struct store *s)
{
	const struct aqe_json *meta = aqe_json_get(s->container, "metadata");
	struct aqe_json *root;
	const char *name;

	if (!meta || meta->type != AQE_JSON_STRING ||
	    aqe_json_parse(p->tmp, meta->text, meta->len, &AQE_JSON_LIMITS_DEFAULT, &root, NULL) <
		    0)
		return 0;
	name = aqe_json_str(aqe_json_get(root, "image-name"));
	if (!name || !*name)
		return 0;
	p->id->name = aqe_arena_dup(p->out, name);
	return p->id->name ? 0 : oci_nomem(p);
}

static int check_container(struct oci_probe *p, struct store *s)
{
	const char *image = aqe_json_str(aqe_json_get(s->container, "image"));
	const char *rel;
	int r;

	if (!s->container)
		return oci_unknown(p, "'%s/%s-containers/containers.json' has no container %s",
				   s->graph_path, s->driver_name, p->in->id);
	r = set_name(p, s);
	if (r)
		return r;
	if (!image || !*image)
		return oci_unknown(p, "the container was made without an image (--rootfs)");
	s->image_id = hex_member(s->container, "image");
	s->layer_id = hex_member(s->container, "layer");
	if (!s->image_id || !s->layer_id)
		return oci_unknown(p,
				   "'%s/%s-containers/containers.json' has no valid image and "
				   "layer for container %s",
				   s->graph_path, s->driver_name, p->in->id);
	rel = aqe_arena_fmt(p->tmp, "%s%s%s", s->driver->before, s->layer_id, s->driver->after);
	if (!rel)
		return oci_nomem(p);
	return oci_dir_is_root_path(p, &s->graph, rel);
}

/* ---- the image ---- */

/* Path of one of the image's blobs: names with anything but [a-z0-9.] are kept in base64. */
static const char *blob_path(struct oci_probe *p, const struct store *s, const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789+/";
	size_t len = strlen(name), n = 0;
	char *enc;

	if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.") == len)
		return aqe_arena_fmt(p->tmp, "%s-images/%s/%s", s->driver_name, s->image_id, name);
	enc = aqe_arena_calloc(p->tmp, len / 3 + 2, 4);
	if (!enc)
		return NULL;
	for (size_t i = 0; i < len; i += 3) {
		uint32_t w = 0;

		for (size_t k = 0; k < 3; k++)
			w = w << 8 | (i + k < len ? (unsigned char)name[i + k] : 0U);
		for (size_t k = 0; k < 4; k++)
			enc[n++] = i + k <= len ? letters[w >> (18 - 6 * k) & 63U] : '=';
	}
	return aqe_arena_fmt(p->tmp, "%s-images/%s/=%s", s->driver_name, s->image_id, enc);
}

static int check_config(struct oci_probe *p, struct store *s)
{
	char want[AQE_DIGEST_TEXT], digest[AQE_DIGEST_TEXT];
	struct aqe_json *config;
	const char *path, *what;
	int r;

	(void)snprintf(want, sizeof(want), "sha256:%s", s->image_id);
	path = blob_path(p, s, want);
	if (!path)
		return oci_nomem(p);
	r = oci_read_blob(p, &s->graph, path, want, digest, &config);
	if (r)
		return r;
	what = aqe_arena_fmt(p->tmp, "the config of image %s", s->image_id);
	if (!what)
		return oci_nomem(p);
	return oci_diff_ids(p, config, what, &s->diff_ids);
}

/* A stored manifest: its true digest and its content. */
struct manifest {
	const char *digest;
	const struct aqe_json *doc;
	bool ours; /* it leads to the image's config */
};

static int read_manifest(struct oci_probe *p, const struct store *s, const char *name,
			 struct manifest *ret)
{
	const struct aqe_json *notes = aqe_json_get(s->image, "big-data-digests");
	const char *want = aqe_json_str(aqe_json_get(notes, name));
	const char *path = blob_path(p, s, name);
	char digest[AQE_DIGEST_TEXT];
	struct aqe_json *doc;
	const char *config;
	int r;

	if (!path)
		return oci_nomem(p);
	if (aqe_starts(name, "manifest-"))
		want = name + strlen("manifest-");
	r = oci_read_blob(p, &s->graph, path, want, digest, &doc);
	if (r)
		return r;
	config = aqe_json_str(aqe_json_at(doc, "/config/digest"));
	if (config && (!aqe_starts(config, "sha256:") ||
		       !aqe_str_eq(config + strlen("sha256:"), s->image_id)))
		return oci_unknown(p, "'%s/%s' is the manifest of another image, %s", s->graph_path,
				   path, config);
	if (config && aqe_json_get(doc, "manifests")) /* two meanings, CVE-2021-41190 */
		return oci_unknown(p, "'%s/%s' is a manifest and a list at once", s->graph_path,
				   path);
	ret->digest = aqe_arena_dup(p->out, digest);
	ret->doc = doc;
	ret->ours = config != NULL;
	return ret->digest ? 0 : oci_nomem(p);
}

/* A list of manifests is the image's when it names one of the image's own manifests. */
static bool list_is_ours(const struct manifest *list, const struct manifest *all, size_t n)
{
	const struct aqe_json *members = aqe_json_get(list->doc, "manifests");

	for (size_t i = 0; i < n; i++) {
		if (all[i].ours && oci_find_by(members, "digest", all[i].digest))
			return true;
	}
	return false;
}

static int keep_digests(struct oci_probe *p, struct manifest *all, size_t n)
{
	const char **list = aqe_arena_calloc(p->out, n ? n : 1, sizeof(*list));
	size_t used = 0;

	if (!list)
		return oci_nomem(p);
	for (size_t i = 0; i < n; i++) {
		bool dup = false;

		if (!all[i].ours && !list_is_ours(&all[i], all, n))
			continue;
		for (size_t k = 0; k < used; k++)
			dup = dup || aqe_str_eq(list[k], all[i].digest);
		if (!dup)
			list[used++] = all[i].digest;
	}
	p->id->digests = list;
	p->id->n_digests = used;
	return 0;
}

static int check_manifests(struct oci_probe *p, struct store *s)
{
	const struct aqe_json *names = aqe_json_get(s->image, "big-data-names");
	struct manifest all[MANIFESTS_MAX] = { 0 };
	size_t n = 0;

	if (!names || names->type != AQE_JSON_ARRAY)
		return oci_unknown(p, "'%s/%s-images/images.json' lists no files of image %s",
				   s->graph_path, s->driver_name, s->image_id);
	for (const struct aqe_json *v = names->first; v; v = v->next) {
		const char *name = aqe_json_str(v);
		int r;

		if (!name || !(aqe_str_eq(name, "manifest") || aqe_starts(name, "manifest-")))
			continue;
		if (n == MANIFESTS_MAX)
			return oci_unknown(p, "image %s has more than %u manifests", s->image_id,
					   MANIFESTS_MAX);
		r = read_manifest(p, s, name, &all[n]);
		if (r)
			return r;
		n++;
	}
	return keep_digests(p, all, n);
}

static int check_image(struct oci_probe *p, struct store *s)
{
	const char *path = index_path(p, s, "images", "images.json");
	int r = look_in(p, &s->graph, path, OCI_ABSENT_UNKNOWN, s->image_id, &s->image);

	if (r)
		return r;
	if (!s->image)
		return oci_unknown(p, "'%s/%s' has no image %s", s->graph_path, path, s->image_id);
	r = check_config(p, s);
	return r ? r : check_manifests(p, s);
}

/* ---- the layers ---- */

struct layers {
	struct oci_index files[INDEXES_MAX];
	const struct oci_dir *dirs[INDEXES_MAX];
	const char *paths[INDEXES_MAX];
};

static void layers_done(struct layers *l)
{
	for (size_t i = 0; i < INDEXES_MAX; i++)
		oci_index_done(&l->files[i]);
}

static int read_layers(struct oci_probe *p, const struct store *s, struct layers *l)
{
	const char *stable = index_path(p, s, "layers", "layers.json");
	const char *fast = index_path(p, s, "layers", "volatile-layers.json");

	if (!stable || !fast)
		return oci_nomem(p);
	for (size_t i = 0; i < INDEXES_MAX; i++) {
		int r;

		l->paths[i] = i == 0 ? stable : fast;
		if (l->dirs[i]->fd < 0)
			continue;
		r = oci_read_index(p, l->dirs[i], l->paths[i],
				   i == 0 ? OCI_ABSENT_UNKNOWN : OCI_ABSENT_OK, &l->files[i]);
		if (r)
			return r;
	}
	return 0;
}

/* The layer under the container's own must be the image's top layer, or its copy for other id
 * mappings; "" stands for none. */
static bool is_top_layer(const struct store *s, const char *id)
{
	const char *top = aqe_json_str(aqe_json_get(s->image, "layer"));

	return aqe_str_eq(top ? top : "", id) ||
	       aqe_json_has_str(aqe_json_get(s->image, "mapped-layers"), id);
}

/* Finds a layer and gives its parent, "" when it has none. */
static int layer_parent(struct oci_probe *p, const struct layers *l, const char *id,
			const struct aqe_json **ret, const char **ret_parent)
{
	const struct aqe_json *v = NULL;
	const char *parent;

	for (size_t i = 0; i < INDEXES_MAX && !v; i++) {
		int r = oci_find_entry(p, l->dirs[i], l->paths[i], &l->files[i], id, &v);

		if (r)
			return r;
	}
	if (!v)
		return oci_unknown(p, "'%s/%s' has no layer %s", l->dirs[0]->path, l->paths[0], id);
	parent = aqe_json_str(aqe_json_get(v, "parent"));
	*ret = v;
	*ret_parent = parent ? parent : "";
	return 0;
}

static int check_layers(struct oci_probe *p, struct store *s)
{
	AQE_CLEANUP(layers_done)
	struct layers l = {
		.files = { OCI_INDEX_INIT, OCI_INDEX_INIT, OCI_INDEX_INIT },
		.dirs = { &s->graph, &s->graph, &s->run },
	};
	const struct aqe_json *layer = NULL;
	const char *id = s->layer_id;
	int r = read_layers(p, s, &l);

	if (r)
		return r;
	r = layer_parent(p, &l, id, &layer, &id);
	if (r)
		return r;
	if (!is_top_layer(s, id))
		return oci_unknown(p, "container layer %s lies on layer '%s', not on image %s",
				   s->layer_id, id, s->image_id);
	for (size_t i = s->diff_ids->len; i > 0; i--) {
		const char *want = aqe_json_str(aqe_json_item(s->diff_ids, i - 1));
		const char *found, *at = id;

		if (!*at)
			return oci_unknown(p, "image %s has %zu layers, the store has fewer",
					   s->image_id, s->diff_ids->len);
		r = layer_parent(p, &l, at, &layer, &id);
		if (r)
			return r;
		found = aqe_json_str(aqe_json_get(layer, "diff-digest"));
		if (!aqe_str_eq(found, want))
			return oci_unknown(p, "layer %s has content %s, image %s wants %s", at,
					   found ? found : "of unknown digest", s->image_id, want);
	}
	if (*id)
		return oci_unknown(p, "image %s has %zu layers, the store has more", s->image_id,
				   s->diff_ids->len);
	return 0;
}

/* ---- all of it ---- */

/* The runroot, from the place of the pid file. Its absence is no fault: only files below it are not
 * taken for the engine's then, and a transient store is not found. */
static int open_run(struct oci_probe *p, struct store *s)
{
	AQE_AUTO_BUF struct aqe_buf canon = AQE_BUF_INIT(4096);
	AQE_AUTO_FD int fd = -1;
	const char *pid_file = p->in->pid_file;
	const char *slash = pid_file ? strrchr(pid_file, '/') : NULL;
	const char *dir, *root, *driver;

	if (!slash)
		return 0;
	dir = aqe_arena_ndup(p->tmp, pid_file, (size_t)(slash - pid_file));
	if (!dir)
		return oci_nomem(p);
	if (!oci_split_userdata(p->tmp, dir, p->in->id, &root, &driver) ||
	    !aqe_str_eq(driver, s->driver_name) || aqe_fs_open_dir(root, &s->run.fd, NULL) < 0 ||
	    aqe_fs_fd_path(s->run.fd, &canon, NULL) < 0)
		return 0;
	s->run.path = aqe_arena_dup(p->tmp, aqe_buf_str(&canon));
	/* with id mappings the directory belongs to the container's root: no check of the owner */
	dir = aqe_arena_fmt(p->out, "%s-containers/%s/userdata", driver, p->in->id);
	if (!dir || !s->run.path)
		return oci_nomem(p);
	if (aqe_fs_open_beneath(s->run.fd, dir, O_PATH | O_DIRECTORY, 0, &fd, NULL) < 0)
		return 0;
	dir = aqe_arena_fmt(p->out, "%s/%s", s->run.path, dir);
	if (!dir)
		return oci_nomem(p);
	if (!aqe_str_eq(dir, p->in->bundle))
		p->id->dirs[p->id->n_dirs++] = dir;
	return 0;
}

/* Directories with the container's own files: the bundle, and its twin in the runroot. */
static int set_dirs(struct oci_probe *p, struct store *s)
{
	const char *bundle = aqe_arena_dup(p->out, p->in->bundle);

	if (!bundle)
		return oci_nomem(p);
	p->id->dirs[p->id->n_dirs++] = bundle;
	return open_run(p, s);
}

static void store_done(struct store *s)
{
	oci_dir_done(&s->graph);
	oci_dir_done(&s->run);
}

int oci_identify_podman(struct oci_probe *p)
{
	AQE_CLEANUP(store_done)
	struct store s = { .graph = OCI_DIR_INIT, .run = OCI_DIR_INIT };
	int r;

	if (!oci_split_userdata(p->tmp, p->in->bundle, p->in->id, &s.graph_path, &s.driver_name))
		return oci_nomem(p); /* oci_identify() has seen the path's form */
	r = set_dirs(p, &s);
	if (r)
		return r;
	for (size_t i = 0; i < AQE_COUNT(DRIVERS); i++) {
		if (aqe_str_eq(DRIVERS[i].name, s.driver_name))
			s.driver = &DRIVERS[i];
	}
	if (!s.driver)
		return oci_unknown(p, "storage driver '%s' is not supported: overlay and vfs are",
				   s.driver_name);
	r = open_store(p, &s);
	if (r)
		return r;
	r = check_container(p, &s);
	if (r)
		return r;
	r = check_image(p, &s);
	if (r)
		return r;
	r = check_layers(p, &s);
	if (r)
		return r;
	(void)snprintf(p->id->image_id, sizeof(p->id->image_id), "sha256:%s", s.image_id);
	return 0;
}
