/* SPDX-License-Identifier: MIT */
/* Events of aqe supervise as rows of the audit log. */
#ifndef AQE_AQE_SUPERVISE_AUDIT_H
#define AQE_AQE_SUPERVISE_AUDIT_H

#include "shim/aqe/supervise.h"

struct shim_supervise_row {
	const char *event;  /* as in the events; one that is not recorded is passed over */
	const char *reason; /* NULL: the event's name */
	int64_t exit_code;  /* -1: none */
	int64_t failures;   /* -1: none */
};
/* 0 also for an event that is no decision and no end: backoff, alive, healthy, late, and a failure
 * that is the end told just before. */
AQE_MUST_CHECK int shim_supervise_record(const struct shim_target *t,
					 const struct shim_supervise_row *row, struct aqe_err *e);

#endif
