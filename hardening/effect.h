/* SPDX-License-Identifier: MIT */
/* Reading the effect back from the kernel: what the created process really is, before it starts. */
#ifndef AQE_HARDENING_EFFECT_H
#define AQE_HARDENING_EFFECT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "hardening/report.h"
#include "hardening/verify.h"

struct hard_effect {
	pid_t pid;                   /* init process of the container, in our pid namespace */
	int proc_fd;                 /* open /proc/PID: stays valid when the pid is reused */
	const struct aqe_json *spec; /* the config.json the runtime was given */
	const struct hard_ctx *ctx;  /* agent ceilings, host, policy's waivers */
	const struct hard_bind_id *binds;
	size_t n_binds;
};

/* Before `start`: capabilities (all five sets and bounding empty), no_new_privs, uid and gid maps
 * as in the spec, the process's ids, namespaces (each differs from ours and is new), root
 * read-only, mounts exactly those of the spec with their options and bind identities, cgroup limits
 * on v1 and v2, network namespace with nothing but `lo`. Findings go to the report; properties that
 * hold are marked PASS. */
AQE_MUST_CHECK int hard_effect_created(const struct hard_effect *fx, struct hard_report *report,
				       struct aqe_err *e);
/* After `start`: seccomp mode 2 with a filter, no_new_privs and capabilities once more (crun and
 * runc load the filter only after the start signal). A process that already ended passes if its
 * status can still be read or it is gone. */
AQE_MUST_CHECK int hard_effect_started(const struct hard_effect *fx, struct hard_report *report,
				       struct aqe_err *e);

#endif
