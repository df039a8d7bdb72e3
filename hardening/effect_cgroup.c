/* SPDX-License-Identifier: MIT */
/* Finding the directory that limits a process, from /proc/PID/cgroup and our own mountinfo: never
 * by putting cgroupsPath behind /sys/fs/cgroup, because slices expand, engines nest, and paths are
 * relative to the cgroup namespace of whoever reads. */
#include <string.h>

#include "hardening/effect_int.h"
#include "shim/core/text.h"

/* The part of `path` below `root` ("/" or canonical), or NULL when it lies outside. */
static const char *below_root(const char *path, const char *root)
{
	if (aqe_str_eq(path, "/"))
		return aqe_str_eq(root, "/") ? path + 1 : NULL;
	/* "/.." leads out of our cgroup namespace; " (deleted)" ends a removed one */
	if (!aqe_path_is_canonical(path) || aqe_ends(path, " (deleted)"))
		return NULL;
	if (aqe_str_eq(root, "/"))
		return path;
	return aqe_path_is_under(path, root) ? path + strlen(root) : NULL;
}

static unsigned count_levels(const char *below)
{
	unsigned n = 0;

	for (; *below; below++)
		n += *below == '/';
	return n;
}

/* The process's group in the hierarchy that has the controller: v1 if any, else v2. On a hybrid
 * host each controller is in exactly one of them. */
static const struct hard_fx_cgroup *group_of(const struct hard_fx_cgroup *groups, size_t n,
					     const char *controller)
{
	const struct hard_fx_cgroup *v2 = NULL;
	size_t i;

	for (i = 0; i < n; i++) {
		if (groups[i].v2)
			v2 = &groups[i];
		else if (hard_fx_option(groups[i].controllers, controller, NULL))
			return &groups[i];
	}
	return v2;
}

int hard_fx_cgroup_locate(const struct hard_fx_cgroup *groups, size_t n_groups,
			  const struct hard_fx_mount *mounts, size_t n_mounts,
			  const char *controller, struct hard_fx_cgdir *ret)
{
	const struct hard_fx_cgroup *g = group_of(groups, n_groups, controller);
	size_t i;

	for (i = 0; g && i < n_mounts; i++) {
		const struct hard_fx_mount *m = &mounts[i];
		const char *below;

		if (g->v2 ? !aqe_str_eq(m->fstype, "cgroup2")
			  : !aqe_str_eq(m->fstype, "cgroup") ||
				    !hard_fx_option(m->super, controller, NULL))
			continue;
		below = below_root(g->path, m->root);
		if (!below)
			continue;
		*ret = (struct hard_fx_cgdir){ g->v2, m->point, below, count_levels(below) };
		return 1;
	}
	return 0;
}
