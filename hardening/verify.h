/* SPDX-License-Identifier: MIT */
/* Judging and rewriting a config.json. The same rules serve the gate (a file, nothing known about
 * the host) and the runtime (engine, image and host known). */
#ifndef AQE_HARDENING_VERIFY_H
#define AQE_HARDENING_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hardening/policy.h"
#include "hardening/report.h"
#include "hardening/seccomp.h"
#include "oci/identity.h"

/* A range of a uid_map or gid_map: inside, outside, size. */
struct hard_idmap {
	uint64_t inside, outside, size;
};
#define HARD_IDMAP_MAX 340 /* the kernel's limit of lines, user_namespaces(7) */

/* Facts about the host, gathered once by hard_host_read() or made up by a test. NULL in the gate.
 */
struct hard_host {
	bool in_userns;     /* our own uid map is not the identity: the engine is rootless */
	bool cgroup_v2;     /* unified hierarchy only */
	bool cgroup_limits; /* limits can be applied: false for a rootless engine on cgroup v1 */
	bool apparmor, selinux;          /* enabled in the kernel */
	uint64_t ns_net_dev, ns_net_ino; /* /proc/self/ns/net; rootless: also the host's */
	uint64_t ns_init_net_dev, ns_init_net_ino; /* /proc/1/ns/net, 0 when unreadable */
	uint64_t rlim_nofile_max, rlim_nproc_max,
		rlim_core_max; /* our own hard limits: a spec must not raise above
				* them without CAP_SYS_RESOURCE */
	size_t n_uid, n_gid;
	/* ours; last, so that a hard_host need not be touched where no range is */
	struct hard_idmap uid_map[HARD_IDMAP_MAX], gid_map[HARD_IDMAP_MAX];
};
/* Fills all but the unused ranges; *ret is undefined after an error. */
AQE_MUST_CHECK int hard_host_read(struct hard_host *ret, struct aqe_err *e);

/* Identity of a bind source, taken at create through an open descriptor and compared at start. */
struct hard_bind_id {
	const char *destination;
	uint64_t dev, ino;
};

/* What the decision may rest on. Everything is borrowed. */
struct hard_ctx {
	const struct hard_policy *policy; /* never NULL (hard_policy_empty()) */
	const struct hard_agent
		*agent; /* ceilings; hard_agent_profile() when the type is unknown */
	const struct oci_identity *image; /* from the engine's store; NULL in the gate */
	const struct hard_image *entry;   /* the policy entry that pins it, or NULL */
	const char *image_digest; /* gate: --image-digest, or NULL: then the annotation decides */
	const char *container_id; /* NULL in the gate */
	const char *bundle;       /* engine's bundle, canonical, or NULL */
	bool info_rootless;       /* gate: the engine's info document says rootless */
	bool info_no_filter;      /* gate: it says that containers get no seccomp filter */
	bool egress;    /* the container has an egress service: its environment leads there, and its
			 * resolver is the service's stub */
	bool no_cgroup; /* gate: made by a rootless engine on cgroup v1, which makes none */
	/* hard_verify_host(): what the sources must turn out to be; n_binds 0: not known yet */
	const struct hard_bind_id *binds;
	size_t n_binds;
	const struct hard_host *host;     /* NULL in the gate */
	const struct hard_proofs *proofs; /* filters proved before, or NULL */
	int64_t now_s;
};

/* Judges a parsed config.json: a result for every property. Order of work: schema issues, then one
 * rule group after the other; waivers are applied at the end. An error (no memory) leaves no usable
 * report. The document is not changed. */
AQE_MUST_CHECK int hard_verify(const struct hard_ctx *ctx, const struct aqe_json *spec,
			       struct hard_report *report, struct aqe_err *e);

/* The policy's entry for the image a document claims: `image_digest` (a digest or id, may be NULL),
 * else annotations io.aqe.image.digest and io.aqe.image.id in the terms of hard_policy_image().
 * NULL when there is none. A claim, not a proof: for the gate only. */
const struct hard_image *hard_verify_entry(const struct hard_policy *policy,
					   const struct aqe_json *spec, const char *image_digest);

/* Judges what only the host can tell, about mount sources of a spec that hard_verify() passed:
 * opened without links, right type and owner, no engine socket in, at or below them by inode, no
 * host mount below an rbind source; root.path is a real directory. Adds to the report. */
AQE_MUST_CHECK int hard_verify_host(const struct hard_ctx *ctx, const struct aqe_json *spec,
				    struct hard_report *report, struct aqe_err *e);

/* Rewrites a copy of `spec` to the profile, in `arena`: tightens what an engine does by default,
 * reports what somebody asked for and cannot be made safe in `report` (properties FAIL). *ret is
 * set only when nothing was refused; the result then passes hard_verify() with the same ctx. What a
 * waiver in force covers is neither tightened nor refused: it stays as it was asked for. */
AQE_MUST_CHECK int hard_rewrite(const struct hard_ctx *ctx, struct aqe_arena *arena,
				const struct aqe_json *spec, struct hard_report *report,
				struct aqe_json **ret, struct aqe_err *e);

/* The same on `spec` itself, for callers that need no more of what came in. */
AQE_MUST_CHECK int hard_rewrite_own(const struct hard_ctx *ctx, struct aqe_arena *arena,
				    struct aqe_json *spec, struct hard_report *report,
				    struct aqe_json **ret, struct aqe_err *e);

/* The process document of an `exec` into a hardened container: rewritten like the main process
 * (capabilities emptied, no_new_privileges set, user, umask, groups, rlimits, lsm, env). Refused:
 * capabilities beyond the engines' defaults (--privileged, --cap), LSM profile changes, cwd below
 * /proc. `spec` is the container's own rewritten config.json. */
AQE_MUST_CHECK int hard_exec_rewrite(const struct hard_ctx *ctx, struct aqe_arena *arena,
				     const struct aqe_json *spec, const struct aqe_json *process,
				     struct hard_report *report, struct aqe_json **ret,
				     struct aqe_err *e);

/* The resources document of an `update`: absent and 0 mean unchanged, above the agent's ceilings or
 * negative is refused, memory.swap becomes memory.limit, cpu is normalised to period 100000. */
AQE_MUST_CHECK int hard_update_rewrite(const struct hard_ctx *ctx, struct aqe_arena *arena,
				       const struct aqe_json *resources, struct hard_report *report,
				       struct aqe_json **ret, struct aqe_err *e);

#endif
