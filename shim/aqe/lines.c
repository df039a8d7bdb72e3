/* SPDX-License-Identifier: MIT */
#include "shim/aqe/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES 65536

int shim_lines_open(struct shim_lines *l, const char *path, size_t max, struct aqe_err *e)
{
	const struct shim_lines empty = { .fd = -1, .buf = AQE_BUF_INIT(max + READ_BYTES) };
	struct stat st;

	*l = empty;
	if (strcmp(path, "-") == 0) {
		l->fd = STDIN_FILENO;
	} else {
		l->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		l->own = true;
	}
	if (l->fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open '%.200s'", path);
	if (fstat(l->fd, &st) == 0 && S_ISREG(st.st_mode))
		l->size = (uint64_t)st.st_size;
	return 0;
}

/* Forgets the lines that were returned, and reads on. */
static int fill(struct shim_lines *l, struct aqe_err *e)
{
	char part[READ_BYTES / 8];
	ssize_t n;

	if (l->begin > 0) {
		memmove(l->buf.p, l->buf.p + l->begin, l->buf.len - l->begin);
		l->buf.len -= l->begin;
		l->begin = 0;
	}
	do {
		n = read(l->fd, part, sizeof(part));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "read");
	l->ended = n == 0;
	l->at += (uint64_t)n;
	aqe_buf_add(&l->buf, part, (size_t)n);
	return aqe_buf_ok(&l->buf, e);
}

static int too_long(const struct shim_lines *l, struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_LIMIT, 0, "line %llu is longer than %zu bytes",
			   (unsigned long long)l->number + 1, l->buf.max - READ_BYTES);
}

int shim_lines_next(struct shim_lines *l, const char **ret, size_t *ret_n, struct aqe_err *e)
{
	size_t looked = 0, len;
	const char *end = NULL;
	int rc;

	for (;;) {
		len = l->buf.len - l->begin;
		if (len > looked)
			end = memchr(l->buf.p + l->begin + looked, '\n', len - looked);
		if (end || l->ended)
			break;
		if (len > l->buf.max - READ_BYTES + 1) /* with a \r it may still be right */
			return too_long(l, e);
		looked = len;
		rc = fill(l, e);
		if (rc)
			return rc;
	}
	if (!end && len == 0)
		return 0;
	*ret = l->buf.p + l->begin;
	*ret_n = len = end ? (size_t)(end - *ret) : len;
	if (*ret_n > 0 && (*ret)[*ret_n - 1] == '\r')
		--*ret_n;
	if (*ret_n > l->buf.max - READ_BYTES)
		return too_long(l, e);
	l->number++;
	l->begin += len + (end ? 1 : 0);
	return 1;
}

void shim_lines_close(struct shim_lines *l)
{
	if (l->own && l->fd >= 0)
		(void)close(l->fd); /* read only */
	aqe_buf_done(&l->buf);
}
