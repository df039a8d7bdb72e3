/* SPDX-License-Identifier: MIT */
/* Driver: every call is a program of its own, so that a call that hangs can be killed. The instance
 * is watched through its pidfd where its pid is known; as a subreaper's child it is also reaped. */
#ifndef AQE_SUPERVISOR_DRIVER_COMMAND_H
#define AQE_SUPERVISOR_DRIVER_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "shim/supervisor/driver.h"
#include "shim/supervisor/loop.h"

/* Exit statuses of the programs. */
enum shim_command_status {
	SHIM_COMMAND_OK = 0,      /* started; alive; stopped */
	SHIM_COMMAND_FAILED = 1,  /* start, stop: failed; alive: not alive */
	SHIM_COMMAND_REFUSED = 3, /* start: by policy */
	SHIM_COMMAND_DONE = 5,    /* alive: not alive, ended with success */
};
enum shim_command_verb {
	SHIM_COMMAND_START,
	SHIM_COMMAND_ALIVE,
	SHIM_COMMAND_STOP,
	SHIM_COMMAND_VERBS
};

#define SHIM_COMMAND_TEXT_MAX 1024 /* bytes kept of what a program writes to standard error */

struct shim_command_opts {
	struct shim_loop *loop;
	const char *path; /* absolute; one program for all verbs */
	char *const *argv[SHIM_COMMAND_VERBS];
	char *const *envp;
	void *arg;
	/* After a start that went well, or the first alive() that said yes: the instance's pid. A
	 * negative code: unknown, then only alive() tells. May be NULL. */
	int (*instance)(void *arg, pid_t *ret_pid);
	/* The instance ended. `status` as from waitpid(2), -1 when it was no child of ours. Returns
	 * true when that counts as success. May be NULL: only status 0 is a success. */
	bool (*ended)(void *arg, int status);
	/* A program that failed, and what it wrote; may be NULL. */
	void (*failed)(void *arg, enum shim_command_verb verb, const char *text);
};
AQE_MUST_CHECK int shim_command_driver(const struct shim_command_opts *o,
				       struct shim_sup_driver *ret, struct aqe_err *e);

#endif
