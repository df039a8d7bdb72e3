/* SPDX-License-Identifier: MIT */
/* Identity of a container made by `aqe sandbox`: its root is an unpacked image of aqe's own store,
 * which only root writes, named after the hash of the image's config. */
#include <stdio.h>
#include <string.h>

#include "oci/store.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define STORE    OCI_STORE_DATA "/store"
#define ROOT     "/rootfs"
#define HEX_SIZE 64

/* "/var/lib/aqe-shim/store/<hex>/rootfs". */
static const char *hex_of(const struct oci_probe *p, char ret[HEX_SIZE + 1])
{
	const char *hex = p->root_path + strlen(STORE "/");

	if (!aqe_starts(p->root_path, STORE "/") || strlen(hex) != HEX_SIZE + strlen(ROOT) ||
	    !aqe_str_eq(hex + HEX_SIZE, ROOT))
		return NULL;
	memcpy(ret, hex, HEX_SIZE);
	ret[HEX_SIZE] = '\0';
	return aqe_is_hex(ret, HEX_SIZE) ? ret : NULL;
}

bool oci_is_aqe(struct oci_probe *p)
{
	char hex[HEX_SIZE + 1];

	return hex_of(p, hex) != NULL;
}

/* The manifest is there when the image came with one. */
static int read_manifest(struct oci_probe *p, const struct oci_dir *d, const char *path)
{
	char digest[AQE_DIGEST_TEXT];
	struct aqe_json *manifest = NULL;
	const char **list;
	int r = oci_read_blob(p, d, path, NULL, digest, &manifest);

	if (r == OCI_STEP_UNKNOWN) {
		p->id->why_unknown = NULL;
		return 0; /* the config's hash is enough */
	}
	if (r < 0)
		return r;
	/* it must speak of this very config */
	if (!aqe_str_eq(aqe_json_str(aqe_json_at(manifest, "/config/digest")), p->id->image_id))
		return 0;
	list = aqe_arena_calloc(p->out, 1, sizeof(*list));
	if (list)
		list[0] = aqe_arena_dup(p->out, digest);
	if (!list || !list[0])
		return oci_nomem(p);
	p->id->digests = list;
	p->id->n_digests = 1;
	return 0;
}

int oci_identify_aqe(struct oci_probe *p)
{
	OCI_AUTO_DIR struct oci_dir d = OCI_DIR_INIT;
	char hex[HEX_SIZE + 1], want[AQE_DIGEST_TEXT], digest[AQE_DIGEST_TEXT];
	char path[HEX_SIZE + 32];
	struct aqe_json *config = NULL;
	int r;

	if (!hex_of(p, hex))
		return oci_unknown(p, "root.path is not in the store of aqe");
	r = oci_dir_open(p, STORE, &d);
	if (r)
		return r;
	(void)snprintf(want, sizeof(want), "sha256:%s", hex);
	(void)snprintf(path, sizeof(path), "%s" ROOT, hex);
	r = oci_dir_has(p, &d, path);
	if (r)
		return r;
	(void)snprintf(path, sizeof(path), "%s/config.json", hex);
	r = oci_read_blob(p, &d, path, want, digest, &config);
	if (r)
		return r;
	memcpy(p->id->image_id, digest, sizeof(digest));
	(void)snprintf(path, sizeof(path), "%s/manifest.json", hex);
	return read_manifest(p, &d, path);
}
