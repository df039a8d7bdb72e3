/* SPDX-License-Identifier: MIT */
/* The config.json of a sandbox without an engine: what the plan asks for, in a user namespace of
 * its own. aqe-shim tightens and judges it like any engine's. */
#ifndef AQE_SANDBOX_SPEC_H
#define AQE_SANDBOX_SPEC_H

#include "shim/sandbox/image.h"
#include "shim/sandbox/plan.h"

/* Who runs inside. */
struct shim_spec_user {
	uint32_t uid, gid;
};
/* "UID", "UID:GID", "NAME", "NAME:GROUP" by the image's own passwd and group files, which are read
 * below `root_fd` as if it were the root. NULL or "": "node" if the image has it (the original's
 * user), else 1000:1000. AQE_E_ABSENT for a name the image does not have; root is returned as it is
 * and left to the shim, which replaces it. */
AQE_MUST_CHECK int shim_spec_user(int root_fd, const char *user, struct shim_spec_user *ret,
				  struct aqe_err *e);

/* What runs: the plan's words, else the image's; with an entrypoint the plan's words are its
 * arguments. AQE_E_USAGE when there is nothing to run. In `a`. */
AQE_MUST_CHECK int shim_spec_args(struct aqe_arena *a, const struct shim_plan *p,
				  const struct shim_image *img, struct shim_strs *ret,
				  struct aqe_err *e);
/* The environment: PATH, the image's, the plan's, AGENT_ID and AGENT_TYPE; later ones replace. */
AQE_MUST_CHECK int shim_spec_env(struct aqe_arena *a, const struct shim_plan *p,
				 const struct shim_image *img, struct shim_strs *ret,
				 struct aqe_err *e);
/* Appends the document. */
AQE_MUST_CHECK int shim_spec_make(const struct shim_plan *p, const struct shim_strs *args,
				  const struct shim_strs *env, const struct shim_spec_user *user,
				  struct aqe_buf *b, struct aqe_err *e);

#endif
