/* SPDX-License-Identifier: MIT */
/* The store of unpacked images as a whole: what is in it, who uses it, taking things out. */
#ifndef AQE_SANDBOX_IMAGE_STORE_H
#define AQE_SANDBOX_IMAGE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "shim/core/sha256.h"
#include "shim/sandbox/place.h"

#define SHIM_IMAGES_MAX 4096

struct shim_stored {
	char id[AQE_DIGEST_TEXT]; /* "sha256:..." */
	int64_t unpacked_s;
	uint64_t bytes;   /* on disk; 0 unless asked for */
	size_t n_users;   /* sandboxes made of it, running or not */
	const char *user; /* the name of one; NULL: none */
};

/* From the look at an image until its sandbox is on disk: as long as somebody holds the lock,
 * nothing is removed. Let go with shim_images_unlock(). */
AQE_MUST_CHECK int shim_images_lock(const struct shim_place *place, struct aqe_err *e);
void shim_images_unlock(const struct shim_place *place);

/* Every image, in the order of ids; `sizes`: walks over all their files. In `a`. */
AQE_MUST_CHECK int shim_images_list(struct aqe_arena *a, const struct shim_place *place, bool sizes,
				    struct shim_stored **ret, size_t *ret_n, struct aqe_err *e);
/* Removes the image of the id, or of the only one that begins with `what` (4 characters or more,
 * with or without "sha256:"). AQE_E_REFUSED while a sandbox is made of it, or one is just being
 * made; AQE_E_ABSENT when there is none. `ret_id` gets the whole id. */
AQE_MUST_CHECK int shim_images_remove(struct aqe_arena *a, const struct shim_place *place,
				      const char *what, char ret_id[AQE_DIGEST_TEXT],
				      struct aqe_err *e);
/* Removes what a process left that died while it unpacked; their number. */
AQE_MUST_CHECK int shim_images_sweep(const struct shim_place *place, size_t *ret_n,
				     struct aqe_err *e);

#endif
