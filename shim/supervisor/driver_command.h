/* SPDX-License-Identifier: MIT */
/* Driver: every call is a process of its own, so that a call that hangs can be killed. The instance
 * is watched through its pidfd where its pid is known, and then alive() asks the kernel, not the
 * engine; as a subreaper's child it is also reaped. */
#ifndef AQE_SUPERVISOR_DRIVER_COMMAND_H
#define AQE_SUPERVISOR_DRIVER_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "shim/supervisor/driver.h"
#include "shim/supervisor/loop.h"

/* Exit statuses of the calls. */
enum shim_command_status {
	SHIM_COMMAND_OK = 0,      /* started; alive; stopped */
	SHIM_COMMAND_FAILED = 1,  /* start, stop: failed; alive: not alive */
	SHIM_COMMAND_REFUSED = 3, /* start: by policy */
	SHIM_COMMAND_DONE = 5,    /* alive: not alive, ended with success */
	SHIM_COMMAND_STATUSES,    /* from here on: alive: cannot tell; else failed */
};
enum shim_command_verb {
	SHIM_COMMAND_START,
	SHIM_COMMAND_ALIVE,
	SHIM_COMMAND_STOP,
	SHIM_COMMAND_VERBS
};

#define SHIM_COMMAND_TEXT_MAX 1024 /* bytes kept of what a call writes to standard error */

struct shim_command_opts {
	struct shim_loop *loop;
	/* In a child of ours, which has no threads: does the call and returns an enum
	 * shim_command_status. Standard error is the pipe for `failed`. */
	int (*call)(void *arg, enum shim_command_verb verb);
	void *arg;
	/* After a start that went well, or the first alive() that said yes: the instance's pid. A
	 * negative code: unknown, then only alive() tells. May be NULL. */
	int (*instance)(void *arg, pid_t *ret_pid);
	/* The instance ended. `status` as from waitpid(2), or -1: it was no child of ours, and a
	 * call of alive has just told how it ended. Returns true when that counts as success. May
	 * be NULL: only status 0, or DONE of that call, is a success. */
	bool (*ended)(void *arg, int status);
	/* A call that failed, and what it wrote; may be NULL. */
	void (*failed)(void *arg, enum shim_command_verb verb, const char *text);
};
AQE_MUST_CHECK int shim_command_driver(const struct shim_command_opts *o,
				       struct shim_sup_driver *ret, struct aqe_err *e);

#endif
