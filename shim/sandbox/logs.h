/* SPDX-License-Identifier: MIT */
/* A sandbox's output on disk, in the format that Kubernetes' and Podman's loggers write:
 * "2026-01-31T23:59:59.123456789Z stdout F text". P instead of F: the line goes on in the next
 * record. Three files of 10 MB are kept. Docker's json-file is read too. */
#ifndef AQE_SANDBOX_LOGS_H
#define AQE_SANDBOX_LOGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/core/err.h"

#define SHIM_LOG_FILE      "log"
#define SHIM_LOG_FILES     3 /* log, log.1, log.2 */
#define SHIM_LOG_BYTES_MAX ((int64_t)10 * 1000 * 1000)
#define SHIM_LOG_LINE_MAX  15360 /* bytes of text in one record */

enum shim_stream { SHIM_STDOUT, SHIM_STDERR, SHIM_STREAMS };

/* ---- writing ---- */
struct shim_log_writer {
	int dirfd; /* borrowed */
	int fd;    /* -1 when not open */
	int64_t size;
	struct {
		char text[SHIM_LOG_LINE_MAX];
		size_t len;
	} part[SHIM_STREAMS]; /* of a line that is not whole yet */
};
AQE_MUST_CHECK int shim_log_open(struct shim_log_writer *w, int dirfd, struct aqe_err *e);
/* Takes output as it comes; whole lines, and parts that grow too long, are written. */
AQE_MUST_CHECK int shim_log_take(struct shim_log_writer *w, enum shim_stream stream, const char *p,
				 size_t n, struct aqe_err *e);
/* Writes what is left of unfinished lines and closes. */
void shim_log_close(struct shim_log_writer *w);

/* ---- reading ---- */
struct shim_log_record {
	enum shim_stream stream;
	int64_t time_ns; /* since 1970; 0 when the record has none */
	bool partial;
	const char *text; /* not NUL-terminated */
	size_t len;
};
/* One line without its newline. k8s-file and json-file are told apart by the first byte; text of a
 * json-file record is decoded into `scratch` (as long as the line). False: no record. */
bool shim_log_parse(const char *line, size_t len, char *scratch, struct shim_log_record *ret);

typedef int shim_log_fn(void *arg, const struct shim_log_record *r);
struct shim_log_query {
	int64_t since_ns; /* 0: all */
	int64_t tail;     /* last so many lines; -1: all */
};
struct shim_log_cursor {
	int64_t offset; /* in the newest file */
	uint64_t inode; /* of it */
};
/* All records of `files` (oldest first; missing ones are skipped) that the query wants, in order. A
 * non-zero answer of `fn` ends it. `ret_at` (may be NULL) is where it ended, to go on from. */
AQE_MUST_CHECK int shim_log_read(int dirfd, const char *const *files, size_t n,
				 const struct shim_log_query *q, shim_log_fn *fn, void *arg,
				 struct shim_log_cursor *ret_at, struct aqe_err *e);
/* What came since: of the newest file, and, when it was rotated, first of the rest of the old one.
 */
AQE_MUST_CHECK int shim_log_more(int dirfd, const char *const *files, size_t n,
				 struct shim_log_cursor *at, shim_log_fn *fn, void *arg,
				 struct aqe_err *e);
/* Names of our own files, oldest first. */
extern const char *const SHIM_LOG_NAMES[SHIM_LOG_FILES];

#endif
