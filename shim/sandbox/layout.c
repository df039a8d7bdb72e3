/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define DOCUMENT_MAX ((size_t)4 << 20)
#define INDEX_DEPTH  3 /* an index in an index in an index */

#if defined(__x86_64__)
#define ARCHITECTURE "amd64"
#elif defined(__aarch64__)
#define ARCHITECTURE "arm64"
#else
#error "name this architecture as OCI images do"
#endif

/* Histories hold whole scripts, labels anything. */
static const struct aqe_json_limits LIMITS = {
	.bytes = DOCUMENT_MAX,
	.depth = 32,
	.values = 200000,
	.entries = 10000,
	.string = DOCUMENT_MAX,
	.number = 32,
	.fold_dups_ok = true,
};

struct reader {
	struct aqe_arena *a;
	int dirfd;
	const char *tag;
	struct aqe_err *e;
};

static int nomem(struct reader *r)
{
	return aqe_err_set(r->e, AQE_E_NOMEM, 0, "no memory for the image's documents");
}

static int bad(struct reader *r, const char *what)
{
	return aqe_err_set(r->e, AQE_E_MALFORMED, 0, "image: %s", what);
}

/* ---- files ---- */

int shim_layout_open(int dirfd, const char *path, int *ret_fd, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	int rc;

	fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	if (fd < 0 && errno == ENOENT)
		return aqe_err_set(e, AQE_E_ABSENT, 0, "image: no '%.200s'", path);
	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "image: open '%.200s'", path);
	rc = aqe_fs_check(fd, AQE_FS_REGULAR, SIZE_MAX, path, NULL, e);
	if (rc == 0)
		*ret_fd = AQE_TAKE_FD(fd);
	return rc;
}

static int read_text(struct reader *r, const char *path, const char **ret, size_t *ret_len)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(DOCUMENT_MAX);
	AQE_AUTO_FD int fd = -1;
	int rc = shim_layout_open(r->dirfd, path, &fd, r->e);

	if (rc == 0)
		rc = aqe_fs_read_fd(fd, &b, r->e);
	if (rc < 0)
		return rc;
	*ret = aqe_arena_ndup(r->a, aqe_buf_str(&b), b.len);
	*ret_len = b.len;
	return *ret ? 0 : nomem(r);
}

static int parse(struct reader *r, const char *text, size_t len, const char *what,
		 struct aqe_json **ret)
{
	if (aqe_json_parse(r->a, text, len, &LIMITS, ret, r->e) < 0)
		return aqe_err_wrap(r->e, "image: %s", what);
	if ((*ret)->type != AQE_JSON_OBJECT && (*ret)->type != AQE_JSON_ARRAY)
		return bad(r, "a document that is no object");
	return 0;
}

static int read_json(struct reader *r, const char *path, struct aqe_json **ret)
{
	const char *text = NULL;
	size_t len = 0;
	int rc = read_text(r, path, &text, &len);

	return rc < 0 ? rc : parse(r, text, len, path, ret);
}

/* "blobs/sha256/<hex>" of a descriptor's digest; only SHA-256 is known. */
static const char *blob_path(struct reader *r, const char *digest)
{
	return aqe_is_sha256_digest(digest)
		       ? aqe_arena_fmt(r->a, "blobs/sha256/%s", digest + strlen("sha256:"))
		       : NULL;
}

/* A document whose hash must be `digest`. */
static int read_blob(struct reader *r, const char *digest, const char **ret, size_t *ret_len)
{
	const char *path = digest ? blob_path(r, digest) : NULL;
	char found[AQE_DIGEST_TEXT];
	int rc;

	if (!path)
		return bad(r, "a digest that is not sha256");
	rc = read_text(r, path, ret, ret_len);
	if (rc < 0)
		return rc;
	aqe_sha256_text(*ret, *ret_len, found);
	return aqe_str_eq(found, digest) ? 0 : bad(r, "a document is not what its digest says");
}

/* ---- the config, common to both ---- */

static int take_config(struct reader *r, const char *text, size_t len, struct shim_layout *l)
{
	struct aqe_json *config = NULL;
	const struct aqe_json *ids, *i;
	size_t n = 0;
	int rc = parse(r, text, len, "its config", &config);

	if (rc < 0)
		return rc;
	ids = aqe_json_at(config, "/rootfs/diff_ids");
	if (!ids || ids->type != AQE_JSON_ARRAY || ids->len != l->n_layers)
		return bad(r, "the config does not name as many layers as the manifest");
	for (i = ids->first; i; i = i->next) {
		l->layers[n].diff_id = aqe_json_str(i);
		if (!l->layers[n].diff_id || !aqe_is_sha256_digest(l->layers[n].diff_id))
			return bad(r, "a diff_id that is no digest");
		n++;
	}
	l->config = text;
	l->config_len = len;
	aqe_sha256_text(text, len, l->id);
	return 0;
}

static int make_layers(struct reader *r, const struct aqe_json *list, struct shim_layout *l)
{
	if (!list || list->type != AQE_JSON_ARRAY || list->len > SHIM_LAYERS_MAX)
		return bad(r, "no list of layers, or too many");
	l->layers = aqe_arena_calloc(r->a, list->len + 1, sizeof(*l->layers));
	l->n_layers = list->len;
	return l->layers ? 0 : nomem(r);
}

/* ---- OCI layout ---- */

static bool is_layer_type(const char *type)
{
	return type && strstr(type, "tar") && !strstr(type, "encrypted");
}

static int take_manifest(struct reader *r, const struct aqe_json *manifest, struct shim_layout *l)
{
	const struct aqe_json *list = aqe_json_get(manifest, "layers");
	const char *text = NULL;
	size_t len = 0, n = 0;
	int rc = make_layers(r, list, l);

	if (rc < 0)
		return rc;
	for (const struct aqe_json *i = list->first; i; i = i->next, n++) {
		const char *digest = aqe_json_str(aqe_json_get(i, "digest"));

		if (!is_layer_type(aqe_json_str(aqe_json_get(i, "mediaType"))))
			return bad(r, "a layer that is no plain tar");
		l->layers[n].digest = digest;
		l->layers[n].path = digest ? blob_path(r, digest) : NULL;
		if (!l->layers[n].path)
			return bad(r, "a layer whose digest is not sha256");
	}
	rc = read_blob(r, aqe_json_str(aqe_json_at(manifest, "/config/digest")), &text, &len);
	return rc < 0 ? rc : take_config(r, text, len, l);
}

/* Something this machine can run: no platform, or ours. */
static bool fits(const struct aqe_json *descriptor)
{
	const struct aqe_json *p = aqe_json_get(descriptor, "platform");
	const char *os = aqe_json_str(aqe_json_get(p, "os"));
	const char *arch = aqe_json_str(aqe_json_get(p, "architecture"));

	return !p || (aqe_str_eq(os, "linux") && aqe_str_eq(arch, ARCHITECTURE));
}

static bool is_tagged(const struct aqe_json *descriptor, const char *tag)
{
	const struct aqe_json *notes = aqe_json_get(descriptor, "annotations");
	const char *name = aqe_json_str(aqe_json_get(notes, "org.opencontainers.image.ref.name"));

	return !tag || aqe_str_eq(name, tag);
}

/* The one descriptor of an index that is meant; `tag` counts at the top only. */
static int choose(struct reader *r, const struct aqe_json *index, const char *tag,
		  const char **ret_digest)
{
	const struct aqe_json *list = aqe_json_get(index, "manifests");
	size_t n = 0;

	for (const struct aqe_json *i = list ? list->first : NULL; i; i = i->next) {
		if (!fits(i) || !is_tagged(i, tag))
			continue;
		*ret_digest = aqe_json_str(aqe_json_get(i, "digest"));
		n++;
	}
	if (n == 0)
		return aqe_err_set(r->e, AQE_E_ABSENT, 0, "image: none%s%.100s for linux/%s",
				   tag ? " named " : "", tag ? tag : "", ARCHITECTURE);
	return n == 1 ? 0 : bad(r, "more than one fits: name one as oci:DIR:TAG");
}

static int read_oci(struct reader *r, struct shim_layout *l)
{
	struct aqe_json *doc = NULL;
	const char *digest = NULL, *text = NULL;
	size_t len = 0;
	int rc = read_json(r, "index.json", &doc);

	if (rc == 0)
		rc = choose(r, doc, r->tag, &digest);
	for (int depth = 0; rc == 0 && depth < INDEX_DEPTH; depth++) {
		rc = read_blob(r, digest, &text, &len);
		if (rc == 0)
			rc = parse(r, text, len, "its manifest", &doc);
		if (rc < 0)
			return rc;
		if (!aqe_json_get(doc, "manifests")) {
			l->manifest = text;
			l->manifest_len = len;
			return take_manifest(r, doc, l);
		}
		rc = choose(r, doc, NULL, &digest);
	}
	return rc < 0 ? rc : bad(r, "an index in an index in an index");
}

/* ---- docker save ---- */

/* "[{"Config": PATH, "RepoTags": [...], "Layers": [PATH, ...]}, ...]" */
static int choose_docker(struct reader *r, const struct aqe_json *list, const struct aqe_json **ret)
{
	size_t n = 0;

	if (list->type != AQE_JSON_ARRAY)
		return bad(r, "manifest.json is no list");
	for (const struct aqe_json *i = list->first; i; i = i->next) {
		if (r->tag && !aqe_json_has_str(aqe_json_get(i, "RepoTags"), r->tag))
			continue;
		*ret = i;
		n++;
	}
	if (n == 0)
		return aqe_err_set(r->e, AQE_E_ABSENT, 0, "image: none is named '%.100s'",
				   r->tag ? r->tag : "");
	return n == 1 ? 0 : bad(r, "more than one: name one as docker-archive:FILE:NAME");
}

static int read_docker(struct reader *r, struct shim_layout *l)
{
	struct aqe_json *doc = NULL;
	const struct aqe_json *image = NULL, *list;
	const char *path, *text = NULL;
	size_t len = 0, n = 0;
	int rc = read_json(r, "manifest.json", &doc);

	if (rc == 0)
		rc = choose_docker(r, doc, &image);
	if (rc < 0)
		return rc;
	list = aqe_json_get(image, "Layers");
	path = aqe_json_str(aqe_json_get(image, "Config"));
	rc = make_layers(r, list, l);
	for (const struct aqe_json *i = rc == 0 ? list->first : NULL; i; i = i->next) {
		l->layers[n].path = aqe_json_str(i);
		if (!l->layers[n++].path)
			return bad(r, "a layer without a name");
	}
	if (rc == 0 && !path)
		return bad(r, "no config");
	if (rc == 0)
		rc = read_text(r, path, &text, &len);
	return rc < 0 ? rc : take_config(r, text, len, l);
}

int shim_layout_read(struct aqe_arena *a, int dirfd, const char *tag, struct shim_layout *ret,
		     struct aqe_err *e)
{
	struct reader r = { a, dirfd, tag, e };
	struct shim_layout l;
	int rc;

	memset(&l, 0, sizeof(l));
	if (faccessat(dirfd, "oci-layout", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		rc = read_oci(&r, &l);
	else if (faccessat(dirfd, "manifest.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		rc = read_docker(&r, &l);
	else
		rc = aqe_err_set(e, AQE_E_MALFORMED, 0,
				 "image: neither an OCI layout nor a docker archive");
	if (rc == 0)
		*ret = l;
	return rc;
}
