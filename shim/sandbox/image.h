/* SPDX-License-Identifier: MIT */
/* Images without an engine: unpacked once into the store, found by the digest of their config. */
#ifndef AQE_SANDBOX_IMAGE_H
#define AQE_SANDBOX_IMAGE_H

#include "shim/core/sha256.h"
#include "shim/sandbox/fields.h"
#include "shim/sandbox/place.h"

/* Owners in the store are shifted by this much: the container's root is this user outside, and its
 * user namespace maps SHIM_ID_SIZE ids from here. */
#define SHIM_ID_SHIFT   100000U
#define SHIM_ID_SIZE    65536U

#define SHIM_IMAGE_TEMP ".new-" /* folders of the store that are being filled */

/* All strings in the arena. NULL or empty where the image says nothing. */
struct shim_image {
	char id[AQE_DIGEST_TEXT];
	const char *rootfs; /* absolute */
	struct shim_strs env, entrypoint, cmd;
	const char *user, *workdir;
	struct shim_strs health; /* Healthcheck.Test: "NONE", or "CMD" / "CMD-SHELL" and words */
	int64_t health_interval_ms, health_timeout_ms, health_start_ms, health_retries;
};

/* `ref`: "oci:DIR[:TAG]", "oci-archive:FILE[:TAG]", "docker-archive:FILE[:NAME]", "sha256:HEX" of
 * an image that is in the store, or just DIR or FILE. Unpacks it unless it is there already, in a
 * process that sees nothing but its own folder. */
AQE_MUST_CHECK int shim_image_import(struct aqe_arena *a, const struct shim_place *place,
				     const char *ref, struct shim_image *ret, struct aqe_err *e);
/* An image of the store. */
AQE_MUST_CHECK int shim_image_open(struct aqe_arena *a, const struct shim_place *place,
				   const char *id, struct shim_image *ret, struct aqe_err *e);

/* The process that unpacks (image_unpack.c): `source_fd` a layout's folder or an archive file,
 * `into_fd` an empty folder of the store, which gets rootfs/, config.json, manifest.json. Blocks.
 * Privileges are given up in a child. */
AQE_MUST_CHECK int shim_image_unpack(int source_fd, const char *tag, int into_fd,
				     struct aqe_err *e);

#endif
