/* SPDX-License-Identifier: MIT */
/* Finding an image's parts in an OCI layout (oci-layout, index.json, blobs/) or an unpacked
 * `docker save` archive (manifest.json). Every document is read strictly and its hash checked; file
 * names come from the documents and are opened below the folder only. */
#ifndef AQE_SANDBOX_LAYOUT_H
#define AQE_SANDBOX_LAYOUT_H

#include "shim/core/arena.h"
#include "shim/core/json.h"
#include "shim/core/sha256.h"

#define SHIM_LAYERS_MAX 512

struct shim_layer {
	const char *path;    /* below the folder */
	const char *digest;  /* of the file; NULL in a docker archive */
	const char *diff_id; /* of the tar inside, from the config */
};
struct shim_layout {
	char id[AQE_DIGEST_TEXT]; /* digest of the config */
	const char *config;       /* its bytes, NUL-terminated */
	size_t config_len;
	const char *manifest; /* bytes of the manifest; NULL in a docker archive */
	size_t manifest_len;
	struct shim_layer *layers;
	size_t n_layers;
};

/* `tag` NULL: the only image there is for this machine; otherwise the one of that name. All
 * strings in `a`. */
AQE_MUST_CHECK int shim_layout_read(struct aqe_arena *a, int dirfd, const char *tag,
				    struct shim_layout *ret, struct aqe_err *e);
/* Opens a file of the folder: links stay inside it, nothing else than a regular file. */
AQE_MUST_CHECK int shim_layout_open(int dirfd, const char *path, int *ret_fd, struct aqe_err *e);

#endif
