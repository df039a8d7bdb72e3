/* SPDX-License-Identifier: MIT */
/* `verify --container ENGINE:NAME`: what the engine says about a container, and, when it went
 * through the shim, what it really is: the recorded config.json and the kernel. */
#ifndef AQE_SHIM_VERIFY_CONTAINER_H
#define AQE_SHIM_VERIFY_CONTAINER_H

#include <stdbool.h>
#include <sys/types.h>

#include "hardening/verify.h"
#include "shim/core/buf.h"

/* AQE_E_USAGE unless the word is "podman:NAME" or "docker:NAME". */
AQE_MUST_CHECK int shim_container_check(const char *word, struct aqe_err *e);
/* Runs the engine's own inspect and info commands, by absolute path and without a shell. */
AQE_MUST_CHECK int shim_container_ask(const char *word, struct aqe_buf *inspect,
				      struct aqe_buf *info, struct aqe_err *e);

struct shim_effective {
	bool found;         /* the shim has a record of the container */
	const char *kernel; /* what was read back from the kernel, or why nothing was */
};
/* Judges what the container `id` really is. `pid` is its process or 0, `ctx` the gate's. Without a
 * record found is false and the report untouched. */
AQE_MUST_CHECK int shim_container_effective(struct aqe_arena *a, const struct hard_ctx *ctx,
					    const char *id, pid_t pid, struct hard_report *report,
					    struct shim_effective *ret, struct aqe_err *e);

#endif
