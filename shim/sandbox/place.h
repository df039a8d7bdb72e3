/* SPDX-License-Identifier: MIT */
/* Where sandboxes live on disk. Below the data folder (/var/lib/aqe-shim for root; aqe-shim below
 * XDG_DATA_HOME or ~/.local/share for others; or AQE_DATA_DIR):
 *   store/HEX/          an unpacked image: config.json, manifest.json, rootfs/
 *   sandboxes/NAME/     plan.json, want.json, state.json, log, pipes
 *   roots/NAME/         the bundle of a sandbox of --rootfs
 *   supervisor/ID.json  failure counts
 *   events.jsonl        what happened */
#ifndef AQE_SANDBOX_PLACE_H
#define AQE_SANDBOX_PLACE_H

#include "oci/identity.h"
#include "shim/core/arena.h"
#include "shim/core/err.h"

#define SHIM_SANDBOXES_MAX 4096

struct shim_place {
	int fd, store_fd, sandboxes_fd, supervisor_fd; /* -1 when not open */
	const char *path;                              /* absolute, canonical */
};
#define SHIM_PLACE_INIT              \
	{                            \
		-1, -1, -1, -1, NULL \
	}

/* Opens the folders, making what is missing. `dir` NULL: the default. */
AQE_MUST_CHECK int shim_place_open(struct aqe_arena *a, const char *dir, struct shim_place *ret,
				   struct aqe_err *e);
void shim_place_done(struct shim_place *p);
#define SHIM_AUTO_PLACE AQE_CLEANUP(shim_place_done)

/* Names of the sandboxes, sorted, in `a`. */
AQE_MUST_CHECK int shim_place_list(struct aqe_arena *a, const struct shim_place *p,
				   const char ***ret, size_t *ret_n, struct aqe_err *e);
/* The folder of one: AQE_E_ABSENT, "sandbox 'NAME' not found". */
AQE_MUST_CHECK int shim_place_sandbox(const struct shim_place *p, const char *name, int *ret_fd,
				      struct aqe_err *e);

#endif
