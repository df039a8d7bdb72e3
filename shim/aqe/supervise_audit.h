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
/* 1: stored. 0: no decision and no end, so that nothing is: backoff, alive, healthy, done, late. */
AQE_MUST_CHECK int shim_supervise_record(const struct shim_target *t,
					 const struct shim_supervise_row *row, struct aqe_err *e);
/* A reset by a command, after it is on disk: a log that does not take the row is told, and undoes
 * nothing. `id`: of a supervised thing, a sandbox or an engine's container. */
AQE_MUST_CHECK int shim_supervise_record_reset(const char *id, struct aqe_err *e);

#endif
