/* SPDX-License-Identifier: MIT */
/* The low-level runtime: crun or runc, reached through one checked descriptor. */
#ifndef AQE_SHIM_RUNTIME_LOW_H
#define AQE_SHIM_RUNTIME_LOW_H

#include <sys/types.h>

#include "oci/doc.h"
#include "shim/core/err.h"
#include "shim/core/proc.h"

struct shim_rt;

/* The low-level runtime: looked up once, checked, then used through its descriptor only. */
struct shim_low {
	int fd; /* -1 when not open */
	const char *path;
};
#define SHIM_LOW_INIT    \
	{                \
		-1, NULL \
	}

/* Opens and checks the binary: absolute path, regular, executable, root's or ours, writable by
 * nobody else, not ourselves, and of that digest when `digest` is not NULL. */
AQE_MUST_CHECK int shim_low_open(const char *path, const char *digest, struct shim_low *ret,
				 struct aqe_err *e);
void shim_low_done(struct shim_low *low);
/* For verbs that must never fail because of us: record, policy, then the first of the usual places
 * that exists. */
AQE_MUST_CHECK int shim_low_any(struct shim_rt *rt, struct aqe_err *e);
/* Becomes the low-level runtime; returns only on failure. */
AQE_MUST_CHECK int shim_low_exec(const struct shim_low *low, char *const *argv, char *const *envp,
				 struct aqe_err *e);
/* Runs it with our standard streams and returns its exit status (128 + signal), or a negative code.
 * `work` (may be NULL) is done while it runs. */
AQE_MUST_CHECK int shim_low_run(const struct shim_low *low, char *const *argv, char *const *envp,
				const struct aqe_proc_work *work, struct aqe_err *e);
/* Waits for one that runs as our child; returns the same. */
AQE_MUST_CHECK int shim_low_wait(pid_t child, struct aqe_err *e);
/* `state ID`: 1 and *ret, 0 when the runtime does not know the container, or a negative code. */
AQE_MUST_CHECK int shim_low_state(struct shim_rt *rt, struct oci_state *ret, struct aqe_err *e);
/* `kill ID KILL`, `delete --force ID`, waits until `pid` (0 = unknown) is gone, removes the record.
 * Does what it can; silent. */
void shim_low_destroy(struct shim_rt *rt, pid_t pid);

#endif
