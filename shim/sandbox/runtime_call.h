/* SPDX-License-Identifier: MIT */
/* What it takes to call a low-level runtime, or aqe-shim in its place, from outside: its log, its
 * pid file, and the end of a container's process. */
#ifndef AQE_SANDBOX_RUNTIME_CALL_H
#define AQE_SANDBOX_RUNTIME_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shim/core/arena.h"
#include "shim/core/err.h"

/* Fills `e` with the runtime's own words for a failure of `verb`: the last "msg" of its JSON log.
 * AQE_E_REFUSED when they are a verdict of the policy, else AQE_E_UNKNOWN; returns that. */
int shim_runtime_explain(struct aqe_arena *a, int dirfd, const char *log, const char *verb,
			 struct aqe_err *e);
/* What a pid file says, 0: nothing. */
pid_t shim_runtime_pid(int dirfd, const char *file);
/* Waits for the end of the process behind a pidfd. */
bool shim_runtime_ends_within(int pidfd, uint32_t ms);

#endif
