/* SPDX-License-Identifier: MIT */
/* The rules behind the profile as const tables, shared by verify (is it so?) and rewrite (make it
 * so): mounts, engine files, devices, paths, sysctls, rlimits, annotations, env, labels, sockets.
 */
#ifndef AQE_HARDENING_RULES_H
#define AQE_HARDENING_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hardening/verify.h"

/* ---- mount options ----
 * Two options of one group in one mount repeat or contradict each other and are refused: crun keeps
 * the first, runc the last. */
enum hard_opt_group {
	HARD_OPT_NONE = 0, /* unknown word */
	HARD_OPT_SUID,
	HARD_OPT_DEV,
	HARD_OPT_EXEC,
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
/* ctx->container_id, else the 64 hex digits at the end of linux.cgroupsPath copied to `buf`, else
 * NULL. */
#define HARD_ID_HEX 64
const char *hard_rule_container_id(const struct hard_ctx *ctx, const struct aqe_json *spec,
				   char buf[HARD_ID_HEX + 1]);
/* True when `path` is a cgroup path as an engine makes it for this container: canonical, no "..",
 * below an engine's parent, last component naming `id` (or any 64 hex digits when NULL). */
bool hard_rule_cgroups_path(const char *path, const char *id);

/* ---- devices (R22) ---- */
struct hard_device {
	char type;            /* 'c' */
	int64_t major, minor; /* minor -1: any */
	const char *name;
	bool allowed; /* may stay in resources.devices; false: engines list it by default and the
			 rewrite drops it (ptmx, pts) */
};
extern const struct hard_device HARD_DEVICE_NODES[];
extern const size_t HARD_DEVICE_NODES_COUNT;
/* Row of a node, or NULL. `minor` -1 stands for "not given" and matches only a row with -1. */
const struct hard_device *hard_rule_device(char type, int64_t major, int64_t minor);

/* ---- /proc and /sys ---- */
extern const char *const HARD_MASKED_LIST[], *const HARD_READONLY_LIST[]; /* NULL-terminated */
/* Harmless where absent; the rewrite adds them, verify does not ask for them. */
extern const char *const HARD_MASKED_EXTRA[];
/* Canonical and strictly below /proc or /sys. */
bool hard_rule_proc_path(const char *path);

/* ---- sysctl (R25) ---- */
enum hard_sysctl {
	HARD_SYSCTL_OTHER,   /* refused */
	HARD_SYSCTL_ALLOWED, /* this exact pair may stay */
	HARD_SYSCTL_ENGINE,  /* an engine's default of another value: the rewrite replaces it */
};
/* *ret_value (may be NULL) gets the value to write for ALLOWED and ENGINE. */
enum hard_sysctl hard_rule_sysctl(const char *name, const char *value, const char **ret_value);

/* ---- rlimits (R27) ---- */
struct hard_rlimit {
	const char *type;
	bool allowed;
	uint64_t max; /* soft <= hard <= max */
};
extern const struct hard_rlimit HARD_RLIMIT_ROWS[];
extern const size_t HARD_RLIMIT_ROWS_COUNT;
/* NULL: no rlimit of Linux. */
const struct hard_rlimit *hard_rule_rlimit(const char *type);

/* ---- annotations (R29) ---- */
/* True when name and value may stay in a hardened document. */
bool hard_rule_annotation_allowed(const char *name, const char *value);
/* A name or prefix that makes some runtime or engine act. */
struct hard_active {
	const char *name;
	bool prefix;
	bool engine_default; /* engines write it by themselves: the rewrite drops it silently;
				false: somebody asked for it: refuse */
	enum hard_prop also; /* a second property it breaks, or HARD_ANNOTATIONS */
	const char *why;
};
extern const struct hard_active HARD_ACTIVE[];
extern const size_t HARD_ACTIVE_COUNT;
/* Row for the name (an exact row wins over a prefix), or NULL: unknown, dropped by the rewrite. */
const struct hard_active *hard_rule_active(const char *name);

/* ---- environment (R32) ---- */
struct hard_env {
	const char *name;
	bool prefix;
	enum hard_prop props[2]; /* the same one twice when there is only one */
	const char *why;
};
extern const struct hard_env HARD_ENV_DENIED[];
extern const size_t HARD_ENV_DENIED_COUNT;
/* Row that denies this NAME=value entry (or bare name), or NULL. */
const struct hard_env *hard_rule_env(const char *entry);

/* ---- LSM (R28) ---- */
bool hard_rule_apparmor(const char *profile);
/* process.selinuxLabel: container_t (or svirt_lxc_net_t, container_init_t) at s0 with one or two
 * categories, never a range. */
bool hard_rule_selinux_process(const char *label);
/* linux.mountLabel: container_file_t (or svirt_sandbox_file_t, container_ro_file_t) likewise. */
bool hard_rule_selinux_mount(const char *label);

/* ---- namespaces (R16) ---- */
struct hard_namespace {
	const char *type;
	bool must;           /* exactly once; others at most once */
	enum hard_prop prop; /* HARD_NAMESPACES, HARD_NETWORK for network, HARD_ROOTLESS for user */
};
extern const struct hard_namespace HARD_NAMESPACE_TYPES[];
extern const size_t HARD_NAMESPACE_TYPES_COUNT;
const struct hard_namespace *hard_rule_namespace(const char *type);

/* ---- engine sockets (R20) ---- */
/* Why a mount of `source` gives an engine socket, judged by name only: a known socket's name, a
 * directory that holds one, or a parent of one, after lexical clean-up (dots, doubled slashes,
 * /var/run, /proc/PID/root). NULL when the name says nothing. Constant text. */
const char *hard_rule_socket(const char *source);
/* Lexical clean-up as above into `buf`; false when it does not fit. A relative path stays so. */
bool hard_rule_clean_path(const char *path, char *buf, size_t size);

/* ---- process ---- */
/* cwd: canonical and not at or below /proc, /sys, /dev. */
bool hard_rule_cwd(const char *path);
#define HARD_UMASK_BITS 022
#define HARD_ID_MAX     2147483647U /* 2^31-1: larger ids wrap or are looked up as names (R13) */
/* Host ids below this belong to the system's accounts (R15). */
#define HARD_HOST_ID_MIN 65536U

/* The five capability sets, NULL-terminated, as the runtime-spec names them. */
extern const char *const HARD_CAP_SETS[];

#endif
