/* SPDX-License-Identifier: MIT */
/* How a refusal reaches the user through an engine (engines.md section 2): one record in the --log
 * file and the same text on stderr, short, without the phrases that engines re-interpret. */
#ifndef AQE_SHIM_REFUSE_H
#define AQE_SHIM_REFUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/core/buf.h"

/* Longest text in bytes; the record in the log file stays below 2,000 with its frame, podman's
 * conmon garbles longer ones. */
#define SHIM_REFUSE_MAX ((size_t)1900)

struct shim_log {
	const char *path; /* --log, or NULL */
	bool text;        /* --log-format text; everything else gets JSON */
};

/* Appends `text` to `b` as it may be shown: magic phrases replaced, control characters other than
 * newline replaced, cut at SHIM_REFUSE_MAX at a character's border. */
void shim_refuse_text(const char *text, struct aqe_buf *b);
/* The record for the log file, with its newline. `now_s` is its time. */
void shim_refuse_record(const char *text, bool as_text, int64_t now_s, struct aqe_buf *b);

/* Writes both. Nothing that fails here is an error: an engine's stderr may be closed or read-only,
 * and there is no further place to complain to. */
void shim_refuse(const struct shim_log *log, const char *text);

#endif
