/* SPDX-License-Identifier: MIT */
#include "oci/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

/* An image's history holds whole scripts, and an image can have thousands of names. */
static const struct aqe_json_limits DOCUMENT_LIMITS = {
	.bytes = OCI_BLOB_MAX,
	.depth = 32,
	.values = 1000000,
	.entries = 100000,
	.string = OCI_BLOB_MAX,
	.number = 64,
	.fold_dups_ok = true, /* labels and names are other people's */
};

#define WHY_MAX        1024U /* bytes of why_unknown */
#define LINE_MAX_BYTES 128U  /* digests and ids */

void oci_dir_done(struct oci_dir *d)
{
	aqe_cleanup_fd(&d->fd);
	d->fd = -1;
}

int oci_nomem(struct oci_probe *p)
{
	return aqe_err_set(p->e, AQE_E_NOMEM, 0, "no memory to identify the image");
}

int oci_unknown(struct oci_probe *p, const char *fmt, ...)
{
	char text[WHY_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a longer text is cut */
	va_end(ap);
	for (char *s = text; *s; s++) {
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = '?'; /* what the files say must not reach a terminal as it is */
	}
	p->id->why_unknown = aqe_arena_dup(p->out, text);
	return p->id->why_unknown ? OCI_STEP_UNKNOWN : oci_nomem(p);
}

int oci_unknown_file(struct oci_probe *p, const struct oci_dir *d, const char *path,
		     const struct aqe_err *err)
{
	if (err->code == AQE_E_NOMEM)
		return oci_nomem(p);
	if (err->code == AQE_E_ABSENT)
		return oci_unknown(p, "'%s/%s' does not exist", d->path, path);
	/* errno by name: engines look for the usual texts and then say something else */
	if (err->code == AQE_E_SYS)
		return oci_unknown(p, "'%s/%s' cannot be read (%s)", d->path, path,
				   strerrorname_np(err->sys));
	if (err->line)
		return oci_unknown(p, "'%s/%s', line %u column %u: %s", d->path, path, err->line,
				   err->col, err->text);
	return oci_unknown(p, "'%s/%s': %s", d->path, path, err->text);
}

int oci_dir_open(struct oci_probe *p, const char *path, struct oci_dir *d)
{
	struct aqe_err err = AQE_ERR_INIT;

	if (aqe_fs_open_dir(path, &d->fd, &err) == 0) {
		d->path = path;
		return 0;
	}
	if (err.code == AQE_E_NOMEM)
		return oci_nomem(p);
	if (err.code == AQE_E_SYS || err.code == AQE_E_ABSENT)
		return oci_unknown(p, "directory '%s' cannot be opened (%s)", path,
				   strerrorname_np(err.sys ? err.sys : ENOENT));
	return oci_unknown(p, "directory '%s': %s", path, err.text);
}

int oci_dir_has(struct oci_probe *p, const struct oci_dir *d, const char *path)
{
	AQE_AUTO_FD int fd = -1;
	struct aqe_err err = AQE_ERR_INIT;

	if (aqe_fs_open_beneath(d->fd, path, O_PATH | O_DIRECTORY, 0, &fd, &err) < 0)
		return oci_unknown_file(p, d, path, &err);
	return 0;
}

int oci_dir_is_root_path(struct oci_probe *p, const struct oci_dir *d, const char *rel)
{
	OCI_AUTO_DIR struct oci_dir other = OCI_DIR_INIT;
	size_t len = strlen(p->root_path), n = strlen(rel);
	struct stat a, b;
	const char *head;
	int r;

	if (!aqe_path_is_canonical(p->root_path) || len < n + 2 ||
	    p->root_path[len - n - 1] != '/' || !aqe_str_eq(p->root_path + len - n, rel))
		return oci_unknown(p, "root.path is '%s', the store says '%s/%s'", p->root_path,
				   d->path, rel);
	head = aqe_arena_ndup(p->tmp, p->root_path, len - n - 1);
	if (!head)
		return oci_nomem(p);
	if (!aqe_str_eq(head, d->path)) { /* a symbolic link in the engine's configuration? */
		r = oci_dir_open(p, head, &other);
		if (r)
			return r;
		if (fstat(d->fd, &a) < 0 || fstat(other.fd, &b) < 0 || a.st_dev != b.st_dev ||
		    a.st_ino != b.st_ino)
			return oci_unknown(p, "root.path is '%s', the store says '%s/%s'",
					   p->root_path, d->path, rel);
	}
	return oci_dir_has(p, d, rel);
}

/* Reads a file into `b`. 0, or the steps' results; *ret_absent when it is not there. */
static int read_file(struct oci_probe *p, const struct oci_dir *d, const char *path,
		     struct aqe_buf *b, bool *ret_absent)
{
	struct aqe_err err = AQE_ERR_INIT;

	if (aqe_fs_read_beneath(d->fd, path, AQE_FS_TRUSTED, b, &err) == 0)
		return 0;
	if (err.code == AQE_E_ABSENT && ret_absent) {
		*ret_absent = true;
		return 0;
	}
	return oci_unknown_file(p, d, path, &err);
}

int oci_read_index(struct oci_probe *p, const struct oci_dir *d, const char *path,
		   enum oci_absent absent, struct oci_index *ret)
{
	struct aqe_err err = AQE_ERR_INIT;
	bool gone = false;
	int r = read_file(p, d, path, &ret->text, absent == OCI_ABSENT_OK ? &gone : NULL);

	if (r || gone)
		return r;
	if (oci_index_split(ret, &err) < 0)
		return oci_unknown_file(p, d, path, &err);
	return 0;
}

int oci_find_entry(struct oci_probe *p, const struct oci_dir *d, const char *path,
		   const struct oci_index *x, const char *id, const struct aqe_json **ret)
{
	struct aqe_err err = AQE_ERR_INIT;

	if (oci_index_find(x, p->tmp, id, &DOCUMENT_LIMITS, ret, &err) < 0)
		return oci_unknown_file(p, d, path, &err);
	return 0;
}

int oci_read_json(struct oci_probe *p, const struct oci_dir *d, const char *path,
		  struct aqe_json **ret)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OCI_BLOB_MAX);
	struct aqe_err err = AQE_ERR_INIT;
	int r = read_file(p, d, path, &b, NULL);

	if (r)
		return r;
	if (aqe_json_parse(p->tmp, aqe_buf_str(&b), b.len, &DOCUMENT_LIMITS, ret, &err) < 0)
		return oci_unknown_file(p, d, path, &err);
	return 0;
}

int oci_read_line(struct oci_probe *p, const struct oci_dir *d, const char *path,
		  enum oci_absent absent, const char **ret)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(LINE_MAX_BYTES);
	bool gone = false;
	int r = read_file(p, d, path, &b, absent == OCI_ABSENT_OK ? &gone : NULL);

	if (r)
		return r;
	if (gone) {
		*ret = NULL;
		return 0;
	}
	if (strlen(aqe_buf_str(&b)) != b.len)
		return oci_unknown(p, "'%s/%s' has a NUL byte", d->path, path);
	*ret = aqe_arena_dup(p->tmp, aqe_buf_str(&b));
	return *ret ? 0 : oci_nomem(p);
}

int oci_read_blob(struct oci_probe *p, const struct oci_dir *d, const char *path, const char *want,
		  char ret_digest[AQE_DIGEST_TEXT], struct aqe_json **ret)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OCI_BLOB_MAX);
	struct aqe_err err = AQE_ERR_INIT;
	char digest[AQE_DIGEST_TEXT];
	int r = read_file(p, d, path, &b, NULL);

	if (r)
		return r;
	aqe_sha256_text(aqe_buf_str(&b), b.len, digest);
	if (want && !aqe_str_eq(digest, want))
		return oci_unknown(p, "'%s/%s' hashes to %s, not to %s", d->path, path, digest,
				   want);
	if (aqe_json_parse(p->tmp, aqe_buf_str(&b), b.len, &DOCUMENT_LIMITS, ret, &err) < 0)
		return oci_unknown_file(p, d, path, &err);
	memcpy(ret_digest, digest, sizeof(digest));
	return 0;
}

const struct aqe_json *oci_find_by(const struct aqe_json *list, const char *key, const char *value)
{
	if (!list || list->type != AQE_JSON_ARRAY)
		return NULL;
	for (const struct aqe_json *v = list->first; v; v = v->next) {
		if (aqe_str_eq(aqe_json_str(aqe_json_get(v, key)), value))
			return v;
	}
	return NULL;
}

int oci_diff_ids(struct oci_probe *p, const struct aqe_json *config, const char *what,
		 const struct aqe_json **ret)
{
	const struct aqe_json *rootfs = aqe_json_get(config, "rootfs");
	const struct aqe_json *ids = aqe_json_get(rootfs, "diff_ids");

	if (!aqe_str_eq(aqe_json_str(aqe_json_get(rootfs, "type")), "layers"))
		return oci_unknown(p, "%s has no rootfs of type 'layers'", what);
	if (!ids || ids->type != AQE_JSON_ARRAY || ids->len > OCI_LAYERS_MAX)
		return oci_unknown(p, "%s has no list of at most %u rootfs.diff_ids", what,
				   OCI_LAYERS_MAX);
	for (const struct aqe_json *v = ids->first; v; v = v->next) {
		const char *s = aqe_json_str(v);

		if (!s || !aqe_is_sha256_digest(s))
			return oci_unknown(p, "%s has a rootfs.diff_ids entry that is no digest",
					   what);
	}
	*ret = ids;
	return 0;
}
