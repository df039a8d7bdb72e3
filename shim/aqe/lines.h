/* SPDX-License-Identifier: MIT */
/* A file, or standard input, line by line, with a limit on a line. */
#ifndef AQE_AQE_LINES_H
#define AQE_AQE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/core/buf.h"
#include "shim/core/err.h"

struct shim_lines {
	int fd;
	bool own;           /* the descriptor is to be closed */
	uint64_t size, at;  /* of a regular file: bytes in all (0: not known), bytes read */
	uint64_t number;    /* of the last line, from 1 */
	struct aqe_buf buf; /* what was read ahead */
	size_t begin;       /* of the next line in buf */
	bool ended;
};

/* "-" is standard input. No line is longer than `max`. */
AQE_MUST_CHECK int shim_lines_open(struct shim_lines *l, const char *path, size_t max,
				   struct aqe_err *e);
/* The next line without its line break (\n or \r\n): 1, 0 at the end, or an error. A last line
 * without a line break counts. The line is valid until the next call. */
AQE_MUST_CHECK int shim_lines_next(struct shim_lines *l, const char **ret, size_t *ret_n,
				   struct aqe_err *e);
/* Also after a failed open. */
void shim_lines_close(struct shim_lines *l);

#endif
