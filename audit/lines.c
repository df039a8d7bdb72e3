/* SPDX-License-Identifier: MIT */
#include "audit/lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES ((size_t)16 * 1024 - 512)

/* Drops the lines that were given out and reads more; 0 at the end of the file. */
static int fill(struct audit_lines *l, struct aqe_err *e)
{
	char data[READ_BYTES];
	ssize_t n;

	if (l->at > 0) {
		memmove(l->b.p, l->b.p + l->at, l->b.len - l->at);
		l->b.len -= l->at;
		l->at = 0;
	}
	do
		n = read(l->fd, data, sizeof(data));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "read");
	if (n > 0 && aqe_buf_add(&l->b, data, (size_t)n) != 0)
		return aqe_buf_ok(&l->b, e);
	return n > 0;
}

int audit_lines_next(struct audit_lines *l, struct audit_line *ret, struct aqe_err *e)
{
	size_t looked = 0;
	int rc;

	for (;;) {
		const char *p = l->b.len > l->at ? l->b.p + l->at : "";
		size_t have = l->b.len - l->at;
		const char *end = have > looked ? memchr(p + looked, '\n', have - looked) : NULL;

		if (end) {
			*ret = (struct audit_line){ p, (size_t)(end - p), ++l->number };
			l->at += ret->n + 1;
			return ret->n > AUDIT_LINE_MAX
				       ? aqe_err_set(e, AQE_E_LIMIT, 0, "longer than %zu bytes",
						     AUDIT_LINE_MAX)
				       : 1;
		}
		if (have > AUDIT_LINE_MAX)
			return aqe_err_set(e, AQE_E_LIMIT, 0, "longer than %zu bytes",
					   AUDIT_LINE_MAX);
		looked = have;
		rc = fill(l, e);
		if (rc < 0)
			return rc;
		if (rc == 0)
			return have == 0 ? 0
					 : aqe_err_set(e, AQE_E_MALFORMED, 0,
						       "the last line was cut");
	}
}

void audit_lines_done(struct audit_lines *l)
{
	aqe_buf_done(&l->b);
}
