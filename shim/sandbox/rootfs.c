/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hardening/policy.h"
#include "hardening/sockets.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/env.h"
#include "shim/sandbox/image.h"

#define ARENA_MAX ((size_t)64 << 20)

bool shim_rootfs_is_foreign(const struct shim_place *place, const struct shim_plan *p)
{
	size_t len = strlen(place->path);

	if (!p->rootfs || p->image_id)
		return false;
	return !aqe_starts(p->rootfs, place->path) || !aqe_starts(p->rootfs + len, "/store/");
}

/* ---- judging ---- */

static int refuse(const char *path, const char *why, struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_REFUSED, 0, "--rootfs '%.160s': %s", path, why);
}

/* One holds the other, or they are the same. */
static bool overlap(const char *a, const char *b)
{
	return aqe_path_is_under(a, b) || aqe_path_is_under(b, a);
}

/* What an agent may write must not be another one's root. A start without a policy is refused by
 * the shim. */
static int check_apart(const struct shim_place *place, const char *path, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct hard_policy *policy = NULL;
	int rc;

	if (!a)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	if (overlap(path, place->path))
		return refuse(path, "it holds the sandboxes' own data, or is part of it", e);
	rc = hard_policy_load(HARD_POLICY_DIR, shim_env_policy_dir(a, environ), &policy, e);
	if (rc == AQE_E_ABSENT)
		return 0;
	if (rc < 0)
		return aqe_err_wrap(e, "policy");
	for (size_t i = 0; i < policy->n_mounts && rc == 0; i++) {
		if (overlap(path, policy->mounts[i].source))
			rc = refuse(path, "a mount of the policy is part of it, or holds it", e);
	}
	hard_policy_free(policy);
	return rc;
}

static int check_owner(const char *path, const struct stat *st, struct aqe_err *e)
{
	bool ours = st->st_uid == 0 || st->st_uid == geteuid() ||
		    (st->st_uid >= SHIM_ID_SHIFT && st->st_uid - SHIM_ID_SHIFT < SHIM_ID_SIZE);

	if (!ours)
		return refuse(path, "it belongs neither to root nor to the sandbox's own ids", e);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return refuse(path, "others than its owner may write to it", e);
	if ((st->st_mode & (S_IROTH | S_IXOTH)) != (S_IROTH | S_IXOTH))
		return refuse(path, "the sandbox's user may not read it: chmod 755", e);
	return 0;
}

/* The root is read-only, so that nothing can be made to mount over. */
static int check_points(int fd, const char *path, struct aqe_err *e)
{
	static const char *const POINTS[] = { "proc", "sys", "dev", "tmp", "run" };
	struct stat st;

	for (size_t i = 0; i < AQE_COUNT(POINTS); i++) {
		/* a link would lead the mount elsewhere */
		if (fstatat(fd, POINTS[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
			return aqe_err_set(e, AQE_E_REFUSED, 0,
					   "--rootfs '%.160s': it has no folder '/%s' to mount "
					   "over: make proc, sys, dev, tmp and run in it",
					   path, POINTS[i]);
	}
	return 0;
}

static int check_sockets(int fd, const char *path, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf found = AQE_BUF_INIT(PATH_MAX);
	struct hard_scan scan = { HARD_SCAN_ENTRIES_MAX, HARD_SCAN_DEPTH_MAX, &found, 0, 0 };
	int rc = hard_sockets_scan(fd, &scan, e);

	if (rc < 0)
		return aqe_err_wrap(e, "--rootfs '%.100s'", path);
	return rc > 0 ? aqe_err_set(e, AQE_E_REFUSED, 0,
				    "--rootfs '%.100s': it has a socket: "
				    "'%.100s'",
				    path, aqe_buf_str(&found))
		      : 0;
}

int shim_rootfs_open(const struct shim_place *place, const char *path, int *ret_fd,
		     struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	struct stat st, host;
	int rc;

	if (!aqe_path_is_canonical(path))
		return refuse(path, "no canonical absolute path", e);
	rc = aqe_fs_open_nolinks(path, O_RDONLY | O_DIRECTORY, &fd, e);
	if (rc < 0)
		return aqe_err_wrap(e, "--rootfs '%.160s'", path);
	if (fstat(fd, &st) < 0 || stat("/", &host) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "--rootfs '%.160s'", path);
	if (st.st_dev == host.st_dev && st.st_ino == host.st_ino)
		return refuse(path, "it is the root of the host", e);
	rc = check_owner(path, &st, e);
	if (rc == 0)
		rc = check_apart(place, path, e);
	if (rc == 0)
		rc = check_points(fd, path, e);
	if (rc == 0)
		rc = check_sockets(fd, path, e);
	if (rc == 0)
		*ret_fd = AQE_TAKE_FD(fd);
	return rc;
}

/* ---- showing ---- */

int shim_rootfs_show(const struct shim_place *place, const char *path, const char *point,
		     struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf from = AQE_BUF_INIT(64);
	AQE_AUTO_FD int fd = -1;
	int rc;

	/* first: a descriptor of the old namespace cannot be mounted in the new one */
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "make a mount namespace");
	rc = shim_rootfs_open(place, path, &fd, e);
	if (rc < 0)
		return rc;
	/* the descriptor, not the name: what was judged is what is shown */
	aqe_buf_addf(&from, "/proc/self/fd/%d", fd);
	if (mount(aqe_buf_str(&from), point, NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, point, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV,
		  NULL) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "mount the root folder");
	return 0;
}
