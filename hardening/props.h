/* SPDX-License-Identifier: MIT */
/* The properties of the profile: one row each, with a stable public id. */
#ifndef AQE_HARDENING_PROPS_H
#define AQE_HARDENING_PROPS_H

#include <stdbool.h>

enum hard_prop {
	HARD_PRIVILEGED,
	HARD_ROOTLESS,
	HARD_CAPABILITIES,
	HARD_NO_NEW_PRIVILEGES,
	HARD_READONLY_ROOTFS,
	HARD_TMPFS,
	HARD_PIDS_LIMIT,
	HARD_MEMORY_LIMIT,
	HARD_CPU_LIMIT,
	HARD_NETWORK,
	HARD_DIGEST,
	HARD_MOUNTS,
	HARD_PROPAGATION,
	HARD_ENGINE_SOCKET,
	HARD_USER,
	HARD_SECCOMP,
	HARD_NAMESPACES,
	HARD_DEVICES,
	HARD_SYSCTL,
	HARD_MASKED_PATHS,
	HARD_RLIMITS,
	HARD_LSM,
	HARD_HOOKS,
	HARD_ANNOTATIONS,
	HARD_UNKNOWN_FIELD,
	HARD_MISSING_FIELD,
	HARD_PROP_COUNT,
};

struct hard_prop_row {
	const char *id;       /* "no_new_privileges" */
	const char *required; /* what the profile wants, one clause */
	const char *why;      /* what goes wrong without it, one or two sentences */
	const char *fix;      /* what the user does about it, one clause */
	const char *rewrite;  /* what `enforce` does: "set", "clamp", "refuse", ... */
	bool waivable;
};
extern const struct hard_prop_row HARDENING_PROFILE[HARD_PROP_COUNT];

/* The property with this id, or HARD_PROP_COUNT. */
enum hard_prop hard_prop_by_id(const char *id);

#endif
