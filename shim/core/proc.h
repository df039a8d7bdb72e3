/* SPDX-License-Identifier: MIT */
/* Starting and watching other programs. Nothing here uses PATH or a shell. */
#ifndef AQE_CORE_PROC_H
#define AQE_CORE_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shim/core/buf.h"
#include "shim/core/err.h"

/* Work for the time in which another program runs; `fn` NULL: none. */
struct aqe_proc_work {
	void (*fn)(void *self);
	void *self;
};

struct aqe_proc_opts {
	const char *path; /* absolute path of the program */
	char *const *argv, *const *envp;
	int in_fd, out_fd, err_fd; /* dup'ed to 0, 1, 2; -1 = inherit ours, AQE_PROC_NULL */
	struct aqe_buf *out, *err; /* when set, 1 / 2 are captured here instead, up to their maximum
				    * (the rest is read and dropped) */
	unsigned timeout_ms;       /* 0 = none; at the end SIGKILL and AQE_E_TIMEOUT */
	struct aqe_proc_work work; /* done once, when the program has been started */
};
#define AQE_PROC_NULL (-2) /* /dev/null */
#define AQE_PROC_OPTS_INIT                                   \
	{                                                    \
		NULL, NULL, NULL, -1, -1, -1, NULL, NULL, 0, \
		{                                            \
			NULL, NULL                           \
		}                                            \
	}

/* Starts the program (posix_spawn, signal mask and dispositions inherited) and waits for it.
 * *ret_status is as from waitpid(2). An exec that fails is AQE_E_SYS. */
AQE_MUST_CHECK int aqe_proc_run(const struct aqe_proc_opts *o, int *ret_status, struct aqe_err *e);

/* Waits for a child of ours to end. *ret_status is as from waitpid(2). AQE_E_SYS when it is none.
 */
AQE_MUST_CHECK int aqe_proc_wait(pid_t child, int *ret_status, struct aqe_err *e);

/* Marks every descriptor >= `from` close-on-exec (close_range(2), no fallback). */
AQE_MUST_CHECK int aqe_proc_cloexec_from(unsigned from, struct aqe_err *e);
/* Closed descriptors among 0, 1 and 2 become a /dev/null that can be neither read (0) nor written
 * (1, 2), as a closed one: otherwise the next file opened would be taken for the stream, and get
 * our messages. First thing in main(). */
void aqe_proc_fill_streams(void);
/* Start time of a process in clock ticks since boot (field 22 of /proc/PID/stat), which with the
 * pid names a process for ever. AQE_E_ABSENT when there is none. */
AQE_MUST_CHECK int aqe_proc_start_time(pid_t pid, uint64_t *ret, struct aqe_err *e);

/* Absolute path of the program `name` that lies beside our own: whoever can replace it there can
 * replace us. Not looked at. AQE_E_LIMIT, AQE_E_SYS. */
AQE_MUST_CHECK int aqe_proc_beside(const char *name, char *ret, size_t size, struct aqe_err *e);

#endif
