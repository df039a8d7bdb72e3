/* SPDX-License-Identifier: MIT */
/* Rules for mounts, the engine's own files, and the container's cgroup: see rules.h. */
#ifndef AQE_HARDENING_RULES_MOUNTS_H
#define AQE_HARDENING_RULES_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>

#include "hardening/verify.h"

/* ---- mount options ----
 * Two options of one group in one mount repeat or contradict each other and are refused: crun keeps
 * the first, runc the last. */
enum hard_opt_group {
	HARD_OPT_NONE = 0, /* unknown word */
	HARD_OPT_SUID,
	HARD_OPT_DEV,
	HARD_OPT_EXEC,
	HARD_OPT_RSUID, /* rnosuid, rsuid: of a mount and all below it, by another system call */
	HARD_OPT_RDEV,
	HARD_OPT_REXEC,
	HARD_OPT_RW,   /* rw, ro */
	HARD_OPT_BIND, /* bind, rbind */
	HARD_OPT_PROP, /* private, rprivate, shared, slave, ... */
	HARD_OPT_ATIME,
	HARD_OPT_DIRATIME,
	HARD_OPT_SIZE,
	HARD_OPT_MODE,
	HARD_OPT_UID,
	HARD_OPT_GID,
	HARD_OPT_NEWINSTANCE,
	HARD_OPT_PTMXMODE,
	HARD_OPT_GROUPS, /* their number */
};
/* Group of an option string: exact words, and NAME=value for size, mode, uid, gid. NONE for
 * everything else, also for a string with a comma. */
enum hard_opt_group hard_rule_option(const char *option);
/* True for the words that make a mount a bind mount, whatever its type says (R18). */
bool hard_rule_is_bind_word(const char *option);
/* True for a propagation word other than private and rprivate. */
bool hard_rule_is_shared_word(const char *option);

/* One class of mounts: which options it must and may have. */
struct hard_opt_rule {
	const char *const *required; /* words, NULL-terminated */
	const char *const *allowed;  /* further words; a name ending in '=' stands for NAME=value */
	unsigned groups;             /* bits 1 << group: exactly one option of each must be there */
	const char *const *canonical; /* what the rewrite writes; without size, mode, uid, gid
					 where the caller decides them */
};

/* Kernel file systems. */
struct hard_kernel_mount {
	const char *destination;
	const char *types[2];   /* the first is written by the rewrite; [1] may be NULL */
	const char *sources[2]; /* likewise */
	bool must;              /* must be present */
	struct hard_opt_rule opts;
};
extern const struct hard_kernel_mount HARD_KERNEL_MOUNTS[]; /* in mount order */
extern const size_t HARD_KERNEL_MOUNTS_COUNT;
const struct hard_kernel_mount *hard_rule_kernel_mount(const char *destination);
/* Most bytes of the tmpfs at /dev and /dev/shm; the rewrite writes the canonical 65536k. */
#define HARD_DEV_SIZE_MAX (1024ULL * 1024 * 1024)

/* The two writable tmpfs (R21). Type and source "tmpfs"; uid= and gid= only with the agent's own
 * numbers; /tmp and /run together at most the agent's disk_bytes. */
struct hard_tmpfs_mount {
	const char *destination; /* "/tmp", "/run" */
	const char *mode;        /* the rewrite's: "1777", "0755" */
	unsigned share; /* the rewrite gives it this many of HARD_TMPFS_SHARES of the disk */
};
#define HARD_TMPFS_SHARES 8
extern const struct hard_tmpfs_mount HARD_TMPFS_MOUNTS[];
extern const size_t HARD_TMPFS_MOUNTS_COUNT;
extern const struct hard_opt_rule HARD_TMPFS_OPTS; /* noexec is in `allowed`: agent->tmp_exec */
const struct hard_tmpfs_mount *hard_rule_tmpfs(const char *destination);

/* Binds: the policy's mounts (R19), and the engine's own files, which are also "ro". */
extern const struct hard_opt_rule HARD_BIND_OPTS;
/* The policy's mount for this destination that applies to the agent's type, or NULL. */
const struct hard_mount *hard_rule_policy_mount(const struct hard_ctx *ctx,
						const char *destination);
/* True when the mount applies to this agent type. */
bool hard_rule_mount_applies(const struct hard_mount *m, const char *agent_type);

/* ---- the engine's own files for one container ---- */
enum hard_engine_kind {
	HARD_ENGINE_FILE, /* a file the engine wrote for this container */
	HARD_ENGINE_TREE, /* a directory, or a file below it (/run/secrets/NAME) */
	HARD_ENGINE_INIT, /* --init: a fixed host binary */
};
struct hard_engine_file {
	const char *destination;
	enum hard_engine_kind kind;
	const char *name;           /* FILE, TREE: last component of the source */
	const char *const *sources; /* INIT: exact paths */
};
extern const struct hard_engine_file HARD_ENGINE_FILES[];
extern const size_t HARD_ENGINE_FILES_COUNT;
/* Row for a destination (for TREE also below it), or NULL. */
const struct hard_engine_file *hard_rule_engine_file(const char *destination);
/* True when `source` is where an engine keeps that file for exactly this container: below one of
 * ctx->image->dirs when known, else (gate) a path of an engine's pattern with the container's id:
 * .../<driver>-containers/ID/userdata/..., .../containers/ID/... `id` may be NULL (then false). */
bool hard_rule_engine_source(const struct hard_ctx *ctx, const char *id,
			     const struct hard_engine_file *f, const char *destination,
			     const char *source);

/* ---- the container's id and cgroup ---- */
/* ctx->container_id, else copied to `buf` the 64 hex digits at the end of linux.cgroupsPath, else
 * (a rootless engine on cgroup v1 makes no group) those in the mount sources of an engine's files
 * if all have the same, else NULL. */
#define HARD_ID_HEX 64
const char *hard_rule_container_id(const struct hard_ctx *ctx, const struct aqe_json *spec,
				   char buf[HARD_ID_HEX + 1]);
/* True when `path` is a cgroup path as an engine makes it for this container: canonical, no "..",
 * below an engine's parent, last component naming `id` (or any 64 hex digits when NULL). */
bool hard_rule_cgroups_path(const char *path, const char *id);

#endif
