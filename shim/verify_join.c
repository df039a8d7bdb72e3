/* SPDX-License-Identifier: MIT */
#include "shim/verify_join.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define STATUS_MAX 65536

static bool same(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* Process 0: ourselves. */
static int open_userns(pid_t pid, int *ret, struct aqe_err *e)
{
	char path[48] = "/proc/self/ns/user";

	if (pid)
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	*ret = open(path, O_RDONLY | O_CLOEXEC);
	return *ret < 0 ? aqe_err_set(e, AQE_E_SYS, errno, "open '%s'", path) : 0;
}

/* The process that keeps the container for the engine: conmon, containerd-shim. */
static int find_keeper(pid_t pid, pid_t *ret, struct aqe_err *e)
{
	static const char label[] = "\nPPid:\t";
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(STATUS_MAX);
	AQE_AUTO_FD int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[32];
	const char *at;
	uint64_t parent = 0;
	int rc;

	(void)snprintf(name, sizeof(name), "%d/status", (int)pid);
	rc = aqe_fs_read_kernel(proc, name, &b, e);
	if (rc < 0)
		return rc;
	at = strstr(aqe_buf_str(&b), label);
	if (at)
		b.p[(size_t)(at - b.p) + strlen(label) + strcspn(at + strlen(label), "\n")] = '\0';
	if (!at || !aqe_parse_u64(at + strlen(label), INT32_MAX, &parent) || parent < 2)
		return aqe_err_set(e, AQE_E_UNKNOWN, 0, "process %d is nobody's child", (int)pid);
	*ret = (pid_t)parent;
	return 0;
}

/* The container has the keeper's user namespace or one made in it: then the keeper is where the
 * engine is, and not, say, a process of the host that inherited an orphan. */
static int check_keeper(int container, int keeper, struct aqe_err *e)
{
	AQE_AUTO_FD int above = -1;

	if (same(container, keeper))
		return 0;
	above = ioctl(container, NS_GET_PARENT);
	if (above < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "find the engine's user namespace");
	if (!same(above, keeper))
		return aqe_err_set(e, AQE_E_UNKNOWN, 0,
				   "the container's user namespace is not one of its engine");
	return 0;
}

int shim_join_engine(pid_t pid, struct aqe_err *e)
{
	AQE_AUTO_FD int container = -1;
	AQE_AUTO_FD int keeper = -1;
	AQE_AUTO_FD int ours = -1;
	AQE_AUTO_FD int pidfd = -1;
	AQE_AUTO_FD int joined = -1;
	pid_t parent = 0;
	int rc = open_userns(pid, &container, e);

	if (rc == 0)
		rc = find_keeper(pid, &parent, e);
	if (rc == 0)
		rc = open_userns(parent, &keeper, e);
	if (rc == 0)
		rc = check_keeper(container, keeper, e);
	if (rc == 0)
		rc = open_userns(0, &ours, e);
	if (rc < 0 || same(ours, keeper))
		return rc;
	pidfd = (int)syscall(SYS_pidfd_open, parent, 0);
	if (pidfd < 0 || setns(pidfd, CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "join the engine's namespaces");
	rc = open_userns(0, &joined, e);
	if (rc == 0 && !same(joined, keeper)) /* its number was used again meanwhile */
		rc = aqe_err_set(e, AQE_E_UNKNOWN, 0, "the engine ended");
	return rc;
}
