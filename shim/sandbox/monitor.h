/* SPDX-License-Identifier: MIT */
/* The process that watches one sandbox: supervisor, output, limits, health. It can be killed at any
 * moment: the container goes on, and the next monitor takes over. */
#ifndef AQE_SANDBOX_MONITOR_H
#define AQE_SANDBOX_MONITOR_H

#include "shim/sandbox/box.h"

/* In the monitor's process: returns when nothing is left to watch. */
AQE_MUST_CHECK int shim_monitor_run(struct shim_box *b, struct aqe_err *e);

/* In a command: starts a monitor unless there is one, and waits until it watches. */
AQE_MUST_CHECK int shim_monitor_ensure(const struct shim_box *b, struct aqe_err *e);

/* One call of the engine, in a process of its own: "start", "alive", "stop". Says on standard error
 * why it failed; returns an enum shim_command_status. */
int shim_monitor_call(struct shim_box *b, const char *verb);

/* How a container ended, told by the engine: written by "alive", read by the monitor. */
#define SHIM_LAST_FILE "last.json"
struct shim_last {
	int64_t exit_code; /* -1: not known */
	bool oom_killed;
};
extern const struct shim_field SHIM_LAST_FIELDS[];

/* That a start went well: written by the call itself before it answers, so that neither the death
 * of the monitor nor that of the container leaves a start untold. */
#define SHIM_BEGUN_FILE "begun.json"
struct shim_begun {
	uint32_t start; /* the number of it, from 1 */
};
extern const struct shim_field SHIM_BEGUN_FIELDS[];

#endif
