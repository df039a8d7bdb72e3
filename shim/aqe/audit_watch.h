/* SPDX-License-Identifier: MIT */
/* Waiting for new rows of a log that other processes write: inotify on its folder (SQLite writes
 * the write-ahead log at every commit), and a slow poll for file systems that do not tell. */
#ifndef AQE_AQE_AUDIT_WATCH_H
#define AQE_AQE_AUDIT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "audit/log.h"
#include "shim/core/err.h"

struct shim_watch {
	struct audit_opts at;
	struct audit_log *log; /* open for reading, of the file that is there now */
	int notify;            /* inotify, -1 without */
	uint64_t dev, ino;     /* of the database file */
	bool replaced;         /* the last wait found another database: set to false when seen */
};
/* Opens the log and begins to watch it. Texts of `at` are borrowed. */
AQE_MUST_CHECK int shim_watch_init(struct shim_watch *w, const struct audit_opts *at,
				   struct aqe_err *e);
void shim_watch_done(struct shim_watch *w);
/* Returns when something may have changed or `timeout_ms` (-1: for ever) passed; several commits
 * close together are one. When the database was replaced by another, that one is opened and
 * w->replaced set. */
AQE_MUST_CHECK int shim_watch_wait(struct shim_watch *w, int timeout_ms, struct aqe_err *e);

#endif
