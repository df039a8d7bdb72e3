/* SPDX-License-Identifier: MIT */
/* A progress bar on standard error, if that is a terminal; else nothing. */
#ifndef AQE_AQE_PROGRESS_H
#define AQE_AQE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct shim_progress {
	const char *label; /* "export" */
	bool shown, drawn;
	int64_t began_ms, drawn_ms;
};

/* `force`: draw even where there is no terminal (for tests). */
void shim_progress_init(struct shim_progress *p, const char *label, bool force);
/* At most ten times a second. `total` 0: not known. */
void shim_progress_update(struct shim_progress *p, uint64_t done, uint64_t total);
/* Draws the last state and ends the line. */
void shim_progress_end(struct shim_progress *p, uint64_t done, uint64_t total);

#endif
