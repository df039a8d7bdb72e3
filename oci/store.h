/* SPDX-License-Identifier: MIT */
/* Reading an engine's store: files below a trusted directory, hashes checked. Internal to oci/.
 * Every step returns 0 (go on), OCI_STEP_UNKNOWN (why_unknown is set) or a negative aqe_code, which
 * is out of memory only. */
#ifndef AQE_OCI_STORE_H
#define AQE_OCI_STORE_H

#include <stddef.h>

#include "oci/identity.h"
#include "oci/index.h"

#define OCI_STEP_UNKNOWN 1

#define OCI_BLOB_MAX     (4U << 20) /* bytes of a config or manifest, and of a string in an index */
#define OCI_LAYERS_MAX   1024U      /* layers of an image */

/* One identification under way. */
struct oci_probe {
	const struct oci_identity_in *in;
	struct oci_identity *id; /* filled step by step */
	struct aqe_arena *out;   /* what `id` points to */
	struct aqe_arena *tmp;   /* parsed indexes: freed at the end */
	const char *root_path;   /* root.path of config.json */
	struct aqe_err *e;       /* for a negative result */
};

/* A trusted directory of a store and how messages call it. */
struct oci_dir {
	int fd; /* -1: not open */
	const char *path;
};
#define OCI_DIR_INIT     \
	{                \
		-1, NULL \
	}
void oci_dir_done(struct oci_dir *d);
#define OCI_AUTO_DIR AQE_CLEANUP(oci_dir_done)

/* Sets why_unknown; returns OCI_STEP_UNKNOWN, or AQE_E_NOMEM. */
AQE_MUST_CHECK int oci_unknown(struct oci_probe *p, const char *fmt, ...) AQE_PRINTF(2, 3);
/* The same for a failed read of `path` in `d`: `err` says what went wrong. */
AQE_MUST_CHECK int oci_unknown_file(struct oci_probe *p, const struct oci_dir *d, const char *path,
				    const struct aqe_err *err);
/* AQE_E_NOMEM with a text. */
AQE_MUST_CHECK int oci_nomem(struct oci_probe *p);

/* Opens a directory that the engine named, see aqe_fs_open_dir(). `path` must outlive `d`. */
AQE_MUST_CHECK int oci_dir_open(struct oci_probe *p, const char *path, struct oci_dir *d);
/* Unknown unless directory `path` is there, with no symbolic link on the way from `d`. */
AQE_MUST_CHECK int oci_dir_has(struct oci_probe *p, const struct oci_dir *d, const char *path);
/* Unknown unless root.path is `rel` below `d`: by the text, or by another name of `d`. */
AQE_MUST_CHECK int oci_dir_is_root_path(struct oci_probe *p, const struct oci_dir *d,
					const char *rel);

/* What to do about a file that is not there. */
enum oci_absent {
	OCI_ABSENT_UNKNOWN, /* oci_unknown() */
	OCI_ABSENT_OK,      /* nothing is returned: NULL, or an empty index */
};
/* An index file, which must be empty before; one that is not there stays so. */
AQE_MUST_CHECK int oci_read_index(struct oci_probe *p, const struct oci_dir *d, const char *path,
				  enum oci_absent absent, struct oci_index *ret);
/* The entry with this id in an index read from `path`, or NULL; it lives in p->tmp. */
AQE_MUST_CHECK int oci_find_entry(struct oci_probe *p, const struct oci_dir *d, const char *path,
				  const struct oci_index *x, const char *id,
				  const struct aqe_json **ret);
/* A JSON document; it lives in p->tmp. */
AQE_MUST_CHECK int oci_read_json(struct oci_probe *p, const struct oci_dir *d, const char *path,
				 struct aqe_json **ret);
/* A file of one short line without a line feed, as docker keeps them; in p->tmp. */
AQE_MUST_CHECK int oci_read_line(struct oci_probe *p, const struct oci_dir *d, const char *path,
				 enum oci_absent absent, const char **ret);
/* A JSON blob and its digest. `want` (may be NULL) must be that digest. */
AQE_MUST_CHECK int oci_read_blob(struct oci_probe *p, const struct oci_dir *d, const char *path,
				 const char *want, char ret_digest[AQE_DIGEST_TEXT],
				 struct aqe_json **ret);

/* The OBJECT in ARRAY `list` whose STRING member `key` is `value`, or NULL; NULL list accepted. */
const struct aqe_json *oci_find_by(const struct aqe_json *list, const char *key, const char *value);
/* The diff_ids of an image's config: an array of 0 to OCI_LAYERS_MAX digests. `what` names it. */
AQE_MUST_CHECK int oci_diff_ids(struct oci_probe *p, const struct aqe_json *config,
				const char *what, const struct aqe_json **ret);

/* The engines, in their own files. */
AQE_MUST_CHECK int oci_identify_podman(struct oci_probe *p);
AQE_MUST_CHECK int oci_identify_docker(struct oci_probe *p);
AQE_MUST_CHECK int oci_identify_aqe(struct oci_probe *p);
bool oci_is_aqe(struct oci_probe *p);
/* Splits "<root>/<driver>-containers/<id>/userdata"; false when `path` has another form, and for
 * want of memory. Strings in `a`. */
bool oci_split_userdata(struct aqe_arena *a, const char *path, const char *id,
			const char **ret_root, const char **ret_driver);

#endif
