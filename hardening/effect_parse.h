/* SPDX-License-Identifier: MIT */
/* Readers of what the kernel shows about a process below /proc. Pure: text in, values out. They are
 * strict, because a line that is not understood could be the one that matters. */
#ifndef AQE_HARDENING_EFFECT_PARSE_H
#define AQE_HARDENING_EFFECT_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hardening/verify.h"
#include "shim/core/arena.h"
#include "shim/core/err.h"

#define HARD_FX_GROUPS_MAX 64   /* supplementary groups; the profile admits one */
#define HARD_FX_MOUNTS_MAX 512  /* mounts of one container; about 40 are normal */
#define HARD_FX_CGROUP_MAX 32   /* lines of /proc/PID/cgroup: one a hierarchy */
#define HARD_FX_NETDEV_MAX 64   /* interfaces of one container; one is normal */
#define HARD_FX_NAME_MAX   16   /* IFNAMSIZ, with the NUL */
#define HARD_FX_LINE_MAX   8192 /* bytes of one line: overlay mounts have long options */

enum hard_fx_cap_set {
	HARD_FX_CAP_INHERITABLE,
	HARD_FX_CAP_PERMITTED,
	HARD_FX_CAP_EFFECTIVE,
	HARD_FX_CAP_BOUNDING,
	HARD_FX_CAP_AMBIENT,
	HARD_FX_CAP_SETS,
};
extern const char *const HARD_FX_CAP_LABEL[HARD_FX_CAP_SETS]; /* "CapInh", ... */

/* /proc/PID/status, proc(5). Ids are as our own user namespace sees them. */
struct hard_fx_status {
	char state; /* R S D T t Z X ... */
	uint64_t caps[HARD_FX_CAP_SETS];
	uint64_t uid[4], gid[4]; /* real, effective, saved, file system */
	uint64_t groups[HARD_FX_GROUPS_MAX];
	size_t n_groups;
	bool has_umask; /* absent once the process is a zombie */
	uint64_t umask;
	uint64_t no_new_privs, seccomp;
	bool has_filters; /* Seccomp_filters: Linux 5.9 */
	uint64_t seccomp_filters;
	size_t n_nspid;      /* nested pid namespaces, ours included */
	uint64_t nspid_last; /* its pid in its own pid namespace */
};
/* Every line above that is not marked "absent" or with a Linux version must be there exactly once:
 * AQE_E_MALFORMED. */
AQE_MUST_CHECK int hard_fx_status_parse(const char *text, struct hard_fx_status *ret,
					struct aqe_err *e);

/* uid_map or gid_map; at most `max` ranges. */
AQE_MUST_CHECK int hard_fx_idmap_parse(const char *text, struct hard_idmap *ret, size_t max,
				       size_t *ret_n, struct aqe_err *e);
/* Sorts by the inside id and joins ranges that continue each other: two maps are the same mapping
 * exactly when their normal forms are equal. Returns the new number. */
size_t hard_fx_idmap_normalise(struct hard_idmap *map, size_t n);
bool hard_fx_idmap_equal(const struct hard_idmap *a, size_t n_a, const struct hard_idmap *b,
			 size_t n_b);
/* The outside id of `inside`; false when it is not mapped. */
bool hard_fx_idmap_out(const struct hard_idmap *map, size_t n, uint64_t inside, uint64_t *ret);

enum hard_fx_mount_flag {
	HARD_FX_RO = 1U << 0,
	HARD_FX_NOSUID = 1U << 1,
	HARD_FX_NODEV = 1U << 2,
	HARD_FX_NOEXEC = 1U << 3,
};
/* One line of mountinfo, proc(5). The strings lie in the text that was parsed, octal escapes
 * decoded. */
struct hard_fx_mount {
	uint64_t id, parent;
	const char *root, *point; /* root of the mount in its file system; mount point */
	size_t point_len;
	unsigned flags;                      /* of the mount */
	bool peers;                          /* shared:, master: or propagate_from: is set */
	const char *fstype, *source, *super; /* super: options of the file system */
	bool super_ro;
};
/* Reads the line at *cursor, which it changes in place, and moves on. 1: *ret is filled; 0: the
 * end; AQE_E_MALFORMED. */
AQE_MUST_CHECK int hard_fx_mount_next(char **cursor, struct hard_fx_mount *ret, struct aqe_err *e);
/* All lines of `text` (changed in place, must outlive the result), the array in `a`; more than
 * HARD_FX_MOUNTS_MAX is AQE_E_LIMIT. */
AQE_MUST_CHECK int hard_fx_mounts_parse(struct aqe_arena *a, char *text, struct hard_fx_mount **ret,
					size_t *ret_n, struct aqe_err *e);
/* The flag of a mount option ("nosuid", and the recursive "rnosuid" of a spec), or 0. */
unsigned hard_fx_mount_flag(const char *option);
/* True when the comma-separated `options` have `name`, alone or as name=value (then *ret_value, if
 * not NULL, is where the value starts; it ends at a comma or the end). */
bool hard_fx_option(const char *options, const char *name, const char **ret_value);

/* One line of /proc/PID/cgroup, cgroups(7): "5:cpu,cpuacct:/path"; "0::/path" is the v2 one. */
struct hard_fx_cgroup {
	bool v2;
	const char *controllers; /* comma-separated; "" for v2; "name=systemd" for a named one */
	const char *path;        /* relative to our own cgroup namespace */
};
/* `text` is changed in place and must outlive the result. */
AQE_MUST_CHECK int hard_fx_cgroups_parse(char *text, struct hard_fx_cgroup *ret, size_t max,
					 size_t *ret_n, struct aqe_err *e);

/* Interface names of net/dev. */
AQE_MUST_CHECK int hard_fx_netdev_parse(const char *text, char (*ret)[HARD_FX_NAME_MAX], size_t max,
					size_t *ret_n, struct aqe_err *e);
/* The first interface other than `lo` that a line of net/route (`v6` false) or net/ipv6_route uses:
 * 1 and its name; 0 when there is none. */
AQE_MUST_CHECK int hard_fx_route_first(const char *text, bool v6, char ret[HARD_FX_NAME_MAX],
				       struct aqe_err *e);
/* True for the devices that the kernel's tunnel modules put into every new network namespace
 * (net.core.fb_tunnels_only_for_init_net = 0): they are down and lead nowhere unless routed. */
bool hard_fx_netdev_fallback(const char *name);

/* What a cgroup file holds: a number or "max". */
AQE_MUST_CHECK int hard_fx_limit_parse(const char *text, uint64_t *ret, struct aqe_err *e);
#define HARD_FX_UNLIMITED UINT64_MAX
/* v2 cpu.max, "QUOTA PERIOD"; quota "max" is HARD_FX_UNLIMITED. */
AQE_MUST_CHECK int hard_fx_cpumax_parse(const char *text, uint64_t *ret_quota, uint64_t *ret_period,
					struct aqe_err *e);
/* v1 devices.list: 1 when some line lets a container read or write more than the devices every
 * runtime admits, and *ret is a copy of the line; 0 when not. */
#define HARD_FX_DEVLINE_MAX 48
AQE_MUST_CHECK int hard_fx_devices_wide(const char *text, char ret[HARD_FX_DEVLINE_MAX],
					struct aqe_err *e);
/* /proc/swaps: true when it lists nothing but its header. */
bool hard_fx_swaps_none(const char *text);

#endif
