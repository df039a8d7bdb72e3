/* SPDX-License-Identifier: MIT */
/* What a container that went through the shim really is: the recorded config.json and what the
 * kernel shows. */
#ifndef AQE_SHIM_VERIFY_RECORD_H
#define AQE_SHIM_VERIFY_RECORD_H

#include <stdbool.h>
#include <sys/types.h>

#include "hardening/verify.h"

struct shim_effective {
	bool found;         /* the shim has a record of the container */
	const char *kernel; /* what was read back from the kernel, or why nothing was */
};
/* Judges what the container `id` really is. `pid` is its process or 0, `ctx` the gate's. Without a
 * record found is false and the report untouched. A running container whose state in the kernel
 * cannot be read is an error. May join the namespaces of the caller's rootless engine, for ever:
 * whatever is read by name should be read before. */
AQE_MUST_CHECK int shim_effective_judge(struct aqe_arena *a, const struct hard_ctx *ctx,
					const char *id, pid_t pid, struct hard_report *report,
					struct shim_effective *ret, struct aqe_err *e);

#endif
