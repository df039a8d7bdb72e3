/* SPDX-License-Identifier: MIT */
/* The driver port of the supervisor: the only way anything is started, probed or stopped.
 *
 * Calls do not block: each returns at once and is answered later, once, through the sink, with the
 * token of the call. Answers may be given from inside the call. A call that cannot even be made
 * returns a negative code: AQE_E_REFUSED from start() is a refusal by policy, everything else a
 * failure. At most one call is out; before the next one it was answered or cancelled. After
 * cancel() the driver drops the call and what belongs to it, as far as it can; a late answer does
 * no harm. Drivers live in one thread, beside one loop. */
#ifndef AQE_SUPERVISOR_DRIVER_H
#define AQE_SUPERVISOR_DRIVER_H

#include <stdint.h>

#include "shim/core/err.h"
#include "shim/supervisor/events.h"

/* Where answers and exits go. */
struct shim_sup_sink {
	void (*tell)(void *arg, enum shim_sup_event event, uint64_t token);
	void *arg;
};

struct shim_sup_driver_ops {
	const char *name;
	/* Before the first call. */
	void (*attach)(void *self, const struct shim_sup_sink *sink);
	/* Answer: STARTED, START_FAILED, START_REFUSED. */
	int (*start)(void *self, uint64_t token, struct aqe_err *e);
	/* Answer: YES, NO, DONE, PROBE_FAILED. The first call without a start() before it is about
	 * the instance of an earlier supervisor. */
	int (*alive)(void *self, uint64_t token, struct aqe_err *e);
	/* Answer: STOP_OK when nothing of it is left (also when there was nothing), STOP_FAILED. */
	int (*stop)(void *self, uint64_t token, struct aqe_err *e);
	void (*cancel)(void *self, uint64_t token);
	/* Frees the driver. What it started keeps running. */
	void (*close)(void *self);
};
struct shim_sup_driver {
	const struct shim_sup_driver_ops *ops;
	void *self;
};

#endif
