/* SPDX-License-Identifier: MIT */
/* Internal to audit/: a file line by line. Every line must end in a newline: a cut one is found. */
#ifndef AQE_AUDIT_LINES_H
#define AQE_AUDIT_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "audit/export.h"
#include "shim/core/buf.h"
#include "shim/core/err.h"

/* Memory for one parsed line. */
#define AUDIT_LINE_ARENA ((size_t)4 << 20)

struct audit_lines {
	int fd; /* the caller's */
	struct aqe_buf b;
	size_t at;       /* of the next line in b */
	uint64_t number; /* of the last line given out, from 1 */
};
#define AUDIT_LINES_INIT(the_fd)                                 \
	{                                                        \
		(the_fd), AQE_BUF_INIT(2 * AUDIT_LINE_MAX), 0, 0 \
	}
/* Without its newline; valid until the next call. */
struct audit_line {
	const char *p;
	size_t n;
	uint64_t number;
};

/* 1: a line; 0: the end; AQE_E_LIMIT: longer than AUDIT_LINE_MAX; AQE_E_MALFORMED: bytes after the
 * last newline; AQE_E_SYS, AQE_E_NOMEM. */
AQE_MUST_CHECK int audit_lines_next(struct audit_lines *l, struct audit_line *ret,
				    struct aqe_err *e);
void audit_lines_done(struct audit_lines *l);

#endif
