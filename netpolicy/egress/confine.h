/* SPDX-License-Identifier: MIT */
/* Taking away from a forked process what it does not need, for good. */
#ifndef AQE_EGRESS_CONFINE_H
#define AQE_EGRESS_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "shim/core/err.h"

enum netpol_role {
	NETPOL_ROLE_WORKER,      /* no new sockets, no files, nothing but what it holds */
	NETPOL_ROLE_DIALER,      /* sockets, threads, reading files for name look-ups */
	NETPOL_ROLE_COMPANION,   /* files to read, pairs of its own, no other sockets */
	NETPOL_ROLE_CACHE,       /* the same with threads, an accepting socket, files to write */
	NETPOL_ROLE_CACHE_REDIS, /* and sockets to a server */
};
/* With NETPOL_ROLE_CACHE_REDIS descriptors from this number on count as connected. */
#define NETPOL_CONNECTED_FROM 512

struct netpol_confine {
	enum netpol_role role;
	uid_t id;       /* uid and gid to become; 0: stay who we are */
	const int *fds; /* descriptors to keep, beside standard error */
	size_t n_fds;
	unsigned nofile; /* RLIMIT_NOFILE */
};
/* Closes all other descriptors, lowers limits, becomes the user, drops capabilities, sets
 * no_new_privs, ends with the parent, and installs the role's seccomp filter. On failure the
 * process must end: it is half confined. */
AQE_MUST_CHECK int netpol_confine(const struct netpol_confine *c, struct aqe_err *e);

/* seccomp.c: the filter alone. A worker that calls anything else is killed; the others'
 * other calls fail with EPERM. */
AQE_MUST_CHECK int netpol_seccomp_install(enum netpol_role role, struct aqe_err *e);

#endif
