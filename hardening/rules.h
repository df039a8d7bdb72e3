/* SPDX-License-Identifier: MIT */
/* The rules behind the profile as const tables, shared by verify (is it so?) and rewrite (make it
 * so): devices, paths, sysctls, rlimits, annotations, env, labels, sockets; mounts in a file of
 * their own. */
#ifndef AQE_HARDENING_RULES_H
#define AQE_HARDENING_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hardening/props.h"
#include "hardening/rules_mounts.h"

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
/* True when name and value may stay in a hardened document. `policy` (may be NULL) says where the
 * frozen filter lies that podman may have been given. */
bool hard_rule_annotation_allowed(const struct hard_policy *policy, const char *name,
				  const char *value);
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
/* "NAME=VALUE" of a container with an egress service; NULL ends. rewrite_env.c. */
extern const char *const HARD_EGRESS_ENV[];
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
