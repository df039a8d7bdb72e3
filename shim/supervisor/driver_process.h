/* SPDX-License-Identifier: MIT */
/* Driver: a plain process, watched through its pidfd. It is a child of ours in a process group of
 * its own; stop() ends the whole group, and the group ends with its leader. */
#ifndef AQE_SUPERVISOR_DRIVER_PROCESS_H
#define AQE_SUPERVISOR_DRIVER_PROCESS_H

#include <sys/types.h>

#include "shim/supervisor/driver.h"
#include "shim/supervisor/loop.h"

struct shim_process_opts {
	struct shim_loop *loop;
	/* Makes the child, in a process group of its own, and must not wait for it. A child that
	 * cannot go on ends with a status that is not 0. AQE_E_REFUSED is never tried again. */
	int (*spawn)(void *arg, pid_t *ret_pid, struct aqe_err *e);
	void *arg;
	uint32_t grace_ms; /* from SIGTERM to SIGKILL */
	/* When the child ended, with the status of waitpid(2); may be NULL. */
	void (*ended)(void *arg, int status);
};
AQE_MUST_CHECK int shim_process_driver(const struct shim_process_opts *o,
				       struct shim_sup_driver *ret, struct aqe_err *e);

/* A spawn function's usual work: fork, new process group, default signals and empty mask, SIGKILL
 * when we die, execve. Fields as in struct aqe_proc_opts; a descriptor of -1 is inherited. A
 * program that cannot be executed is an error here. */
struct shim_spawn {
	const char *path; /* absolute */
	char *const *argv, *const *envp;
	int in_fd, out_fd, err_fd;
	bool stay; /* the child outlives us */
};
AQE_MUST_CHECK int shim_spawn(const struct shim_spawn *o, pid_t *ret_pid, struct aqe_err *e);

#endif
