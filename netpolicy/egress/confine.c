/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/core/text.h"

#define KEEP_MAX       32
#define DIALER_THREADS 64   /* of its user id, which may be shared */
#define CACHE_THREADS  8192 /* likewise: by all containers that share a file */

static int fail(struct aqe_err *e, const char *what)
{
	return aqe_err_set(e, AQE_E_SYS, errno, "%s", what);
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Closes everything but standard error and the list. */
static int close_others(const struct netpol_confine *c, struct aqe_err *e)
{
	int keep[KEEP_MAX + 1];
	unsigned from = 0;

	if (c->n_fds > KEEP_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "too many descriptors to keep");
	keep[0] = STDERR_FILENO;
	for (size_t i = 0; i < c->n_fds; i++)
		keep[i + 1] = c->fds[i];
	qsort(keep, c->n_fds + 1, sizeof(keep[0]), by_value);
	for (size_t i = 0; i <= c->n_fds; i++) {
		unsigned fd = (unsigned)keep[i];

		if (fd > from && close_range(from, fd - 1, 0) < 0)
			return fail(e, "close_range");
		from = fd + 1;
	}
	return close_range(from, ~0U, 0) < 0 ? fail(e, "close_range") : 0;
}

static int lower(int what, rlim_t to, struct aqe_err *e)
{
	struct rlimit l;

	if (getrlimit((__rlimit_resource_t)what, &l) < 0)
		return fail(e, "getrlimit");
	if (l.rlim_max < to)
		to = l.rlim_max;
	l.rlim_cur = l.rlim_max = to;
	return setrlimit((__rlimit_resource_t)what, &l) < 0 ? fail(e, "setrlimit") : 0;
}

static int lower_limits(const struct netpol_confine *c, struct aqe_err *e)
{
	static const rlim_t threads[] = {
		[NETPOL_ROLE_WORKER] = 0,
		[NETPOL_ROLE_DIALER] = DIALER_THREADS,
		[NETPOL_ROLE_COMPANION] = 0,
		[NETPOL_ROLE_CACHE] = CACHE_THREADS,
		[NETPOL_ROLE_CACHE_REDIS] = CACHE_THREADS,
	};
	const struct {
		int what;
		rlim_t to;
	} limits[] = {
		{ RLIMIT_CORE, 0 },           { RLIMIT_MEMLOCK, 0 },
		{ RLIMIT_MSGQUEUE, 0 },       { RLIMIT_NPROC, threads[c->role] },
		{ RLIMIT_NOFILE, c->nofile },
	};

	for (size_t i = 0; i < AQE_COUNT(limits); i++) {
		int rc = lower(limits[i].what, limits[i].to, e);

		if (rc < 0)
			return rc;
	}
	return 0;
}

static int drop_capabilities(struct aqe_err *e)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2];

	memset(none, 0, sizeof(none));
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); /* ends with permitted */
	return syscall(SYS_capset, &head, none) < 0 ? fail(e, "capset") : 0;
}

/* Groups, group, user; then it must not be possible to get them back. */
static int become(uid_t id, struct aqe_err *e)
{
	if (setgroups(0, NULL) < 0 && errno != EPERM) /* a user namespace may forbid it */
		return fail(e, "setgroups");
	if (setresgid(id, id, id) < 0)
		return fail(e, "setresgid");
	if (setresuid(id, id, id) < 0)
		return fail(e, "setresuid");
	if (setuid(0) == 0 || setgid(0) == 0)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "privileges came back");
	return 0;
}

/* As an ordinary user there is no other id to become; a user namespace without a map at least
 * makes it nobody. Where that is forbidden it stays the user, without anything more. */
static void become_nobody(void)
{
	(void)unshare(CLONE_NEWUSER);
}

int netpol_confine(const struct netpol_confine *c, struct aqe_err *e)
{
	pid_t parent = getppid();
	int rc = close_others(c, e);

	if (rc == 0)
		rc = lower_limits(c, e);
	if (rc == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		rc = fail(e, "PR_SET_NO_NEW_PRIVS");
	if (rc == 0 && c->id != 0)
		rc = become(c->id, e);
	else if (rc == 0 && geteuid() != 0)
		become_nobody();
	if (rc == 0)
		rc = drop_capabilities(e);
	if (rc == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		rc = fail(e, "PR_SET_DUMPABLE");
	/* After the change of user, which clears it. */
	if (rc == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		rc = fail(e, "PR_SET_PDEATHSIG");
	if (rc == 0 && getppid() != parent)
		rc = aqe_err_set(e, AQE_E_ABSENT, 0, "the keeper is gone");
#ifndef __SANITIZE_ADDRESS__ /* its runtime calls what no release build calls */
	if (rc == 0)
		rc = netpol_seccomp_install(c->role, e);
#endif
	return rc;
}
