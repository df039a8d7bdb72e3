/* SPDX-License-Identifier: MIT */
/* Between the files of the effect check. */
#ifndef AQE_HARDENING_EFFECT_INT_H
#define AQE_HARDENING_EFFECT_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hardening/effect.h"
#include "hardening/effect_parse.h"

/* ---- port: looking at files below the container's root, as its processes see them ---- */

struct hard_fx_node {
	uint32_t mode; /* S_IFMT and permissions */
	uint64_t dev, ino;
	uint32_t rdev_major, rdev_minor;
	uint64_t mount_id; /* of the mount it lies on */
	bool mount_root;   /* it is the root of that mount */
};
/* Called with each entry of a directory but "." and ".."; `type` as in struct dirent. */
typedef void hard_fx_entry_fn(void *arg, const char *name, unsigned char type);
struct hard_fx_root {
	/* 1: *ret is filled; 0: there is no such file; or an error. Links are followed inside the
	 * container's root. */
	int (*look)(void *self, const char *path, struct hard_fx_node *ret, struct aqe_err *e);
	/* 1, 0 (no such directory) or an error. At most HARD_FX_ENTRIES_MAX entries are shown. */
	int (*list)(void *self, const char *path, hard_fx_entry_fn *fn, void *arg,
		    struct aqe_err *e);
	void *self;
};
#define HARD_FX_ENTRIES_MAX 4096

/* ---- pure: judging ---- */

/* Mounts, root file system, propagation, tmpfs, masked paths, device nodes. `mounts` is the
 * process's mountinfo, `where` its path for the findings. */
struct hard_fx_mounts_in {
	const struct aqe_json *spec;
	const struct hard_fx_mount *mounts;
	size_t n_mounts; /* at most HARD_FX_MOUNTS_MAX */
	const struct hard_bind_id *binds;
	size_t n_binds;
	struct hard_fx_root root;
	const char *where;
};
AQE_MUST_CHECK int hard_fx_mounts_judge(const struct hard_fx_mounts_in *in,
					struct hard_report *report, struct aqe_err *e);
/* The parts that look below the container's root: masked and read-only paths, device nodes. */
AQE_MUST_CHECK int hard_fx_paths_judge(const struct hard_fx_mounts_in *in, uint8_t *known,
				       struct hard_report *report, struct aqe_err *e);
/* The mount at exactly `path`, or NULL. */
const struct hard_fx_mount *hard_fx_mount_at(const struct hard_fx_mounts_in *in, const char *path);

/* The process itself. Maps are sorted and joined in place; `arena` is for work. */
struct hard_fx_process {
	const struct hard_effect *fx;
	struct hard_fx_status status;
	const char *where; /* /proc/PID/status */
	size_t n_uid, n_gid;
	struct hard_idmap uid_map[HARD_IDMAP_MAX], gid_map[HARD_IDMAP_MAX]; /* filled in part */
};
/* Capabilities and no_new_privs. */
void hard_fx_privileges_judge(const struct hard_fx_status *status, const char *where,
			      struct hard_report *report);
/* Id maps (`rootless`), ids, groups and umask (`user`), being pid 1 of a pid namespace. */
AQE_MUST_CHECK int hard_fx_ids_judge(struct hard_fx_process *p, struct aqe_arena *arena,
				     struct hard_report *report, struct aqe_err *e);
/* True when the spec asks for a new namespace of this type ("user", "network"). */
bool hard_fx_spec_namespace(const struct aqe_json *spec, const char *type);

/* Where the kernel keeps the limits of one controller for a process. */
struct hard_fx_cgdir {
	bool v2;
	const char *point; /* mount point of the hierarchy in our mount namespace */
	const char *below; /* the rest, "" or "/a/b" */
	unsigned levels;   /* directories of `below` */
};
/* 1 and *ret; 0 when the controller is in no hierarchy that is mounted where we can see it. */
int hard_fx_cgroup_locate(const struct hard_fx_cgroup *groups, size_t n_groups,
			  const struct hard_fx_mount *mounts, size_t n_mounts,
			  const char *controller, struct hard_fx_cgdir *ret);

/* ---- system ---- */

/* Opens the container's root (/proc/PID/root) and fills the port; `self` keeps the descriptor. */
struct hard_fx_rootdir {
	int fd;
};
AQE_MUST_CHECK int hard_fx_root_open(int proc_fd, struct hard_fx_rootdir *self,
				     struct hard_fx_root *ret, struct aqe_err *e);
void hard_fx_root_close(struct hard_fx_rootdir *self);

/* The limits in force; `groups` and `mounts` as for hard_fx_cgroup_locate(). */
struct hard_fx_limits_in {
	const struct hard_effect *fx;
	const struct hard_fx_cgroup *groups;
	size_t n_groups;
	const struct hard_fx_mount *mounts;
	size_t n_mounts;
	int proc_dir;      /* /proc, for swaps */
	bool any_fs;       /* tests: the directories are no cgroup file systems */
	const char *where; /* /proc/PID/cgroup */
};
AQE_MUST_CHECK int hard_fx_limits_judge(const struct hard_fx_limits_in *in,
					struct hard_report *report, struct aqe_err *e);

#endif
