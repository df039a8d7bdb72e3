/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/runtime.h"

static bool is_null(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

/* A directory with a null node on a tmpfs that is mounted nowhere: it ends with its last
 * descriptor. */
static int make_null(int *ret, struct aqe_err *e)
{
	AQE_AUTO_FD int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
	AQE_AUTO_FD int mnt = -1;

	if (fs >= 0 && syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		mnt = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID);
	if (mnt < 0 || mknodat(mnt, "null", S_IFCHR | 0666, makedev(1, 3)) < 0 ||
	    fchmodat(mnt, "null", 0666, 0) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "make a private null device");
	*ret = AQE_TAKE_FD(mnt);
	return 0;
}

static int replace(int fd, int dir, struct aqe_err *e)
{
	int flags = fcntl(fd, F_GETFL);
	AQE_AUTO_FD int private = -1;

	if (flags < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "read the flags of descriptor %d", fd);
	flags &= O_ACCMODE | O_APPEND | O_NONBLOCK;
	private = openat(dir, "null", flags | O_CLOEXEC | O_NOCTTY);
	if (private < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open a private null device");
	if (dup3(private, fd, 0) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "replace descriptor %d", fd);
	return 0;
}

/* From a directory a process gets to "..", the host's root included (measured with crun and runc;
 * it is CVE-2024-21626 by the front door); a block device is the host's disk. */
static int check_stream(int fd, struct aqe_err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || (!S_ISDIR(st.st_mode) && !S_ISBLK(st.st_mode)))
		return 0;
	return aqe_err_set(e, AQE_E_REFUSED, 0,
			   "descriptor %d leads to a %s of the host, which would be open in the "
			   "container; fix: connect it to a file, a pipe or /dev/null",
			   fd, S_ISDIR(st.st_mode) ? "directory" : "block device");
}

int shim_streams_protect(const struct shim_rt *rt, struct aqe_err *e)
{
	AQE_AUTO_FD int dir = -1;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int rc = check_stream(fd, e);

		if (rc < 0)
			return rc;
	}
	/* only root of the host can change the node's owner */
	if (rt->state.rootless)
		return 0;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int rc = 0;

		if (!is_null(fd))
			continue;
		if (dir < 0)
			rc = make_null(&dir, e);
		if (rc == 0)
			rc = replace(fd, dir, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}
