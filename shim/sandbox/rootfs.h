/* SPDX-License-Identifier: MIT */
/* A root folder of the user's own (--rootfs): judged, and shown read-only below the bundle, in a
 * mount namespace that nobody else sees. */
#ifndef AQE_SANDBOX_ROOTFS_H
#define AQE_SANDBOX_ROOTFS_H

#include "shim/sandbox/place.h"
#include "shim/sandbox/plan.h"

#define SHIM_ROOTFS_BUNDLES "roots" /* below the data folder: bundles whose root is mounted */
#define SHIM_ROOTFS_POINT   "rootfs"

/* Is the plan's root a folder of the user's, and not an unpacked image of the store? */
bool shim_rootfs_is_foreign(const struct shim_place *place, const struct shim_plan *p);

/* Opens the folder (canonical path, no link on the way) and judges it: a directory of root or of
 * the sandbox's ids that only they write and everybody reads, not the host's own root, apart from
 * the data folder and from the policy's mounts, with /proc, /sys, /dev, /tmp and /run to mount
 * over, and without a socket that an agent could speak to. AQE_E_REFUSED tells what is wrong. */
AQE_MUST_CHECK int shim_rootfs_open(const struct shim_place *place, const char *path, int *ret_fd,
				    struct aqe_err *e);
/* Judges the folder as above and shows it at `point`, without what is mounted below it: read-only,
 * no devices, no set-id files. From here on this process (call it in one of its own) and its
 * children are in a mount namespace of their own; the last of them takes the mount with it. */
AQE_MUST_CHECK int shim_rootfs_show(const struct shim_place *place, const char *path,
				    const char *point, struct aqe_err *e);

#endif
