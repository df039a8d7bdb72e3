/* SPDX-License-Identifier: MIT */
#include "shim/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/exit.h"

int shim_input_read(const char *path, struct aqe_buf *b, struct aqe_err *e)
{
	if (strcmp(path, "-") == 0)
		return aqe_fs_read_fd(STDIN_FILENO, b, e);
	AQE_AUTO_FD int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0 && errno == ELOOP)
		return aqe_err_set(e, AQE_E_UNTRUSTED, 0,
				   "a symbolic link: name the file itself, or pipe it to '-'");
	if (fd < 0 || fstat(fd, &st) != 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open");
	if (!S_ISREG(st.st_mode))
		return aqe_err_set(e, AQE_E_UNTRUSTED, 0,
				   "not a regular file: pipe the document to '-'");
	return aqe_fs_read_fd(fd, b, e);
}

int shim_output(const struct aqe_buf *b, struct aqe_err *e)
{
	const int rc = aqe_buf_ok(b, e);

	if (rc)
		return rc;
	if (fwrite(aqe_buf_str(b), 1, b->len, stdout) != b->len || fflush(stdout) == EOF) {
		(void)aqe_err_set(e, AQE_E_SYS, errno, "write to standard output");
		shim_output_told();
		return AQE_E_SYS;
	}
	return 0;
}

void shim_output_told(void)
{
	__fpurge(stdout);
	clearerr(stdout);
}

void shim_output_lost(const char *who)
{
	(void)fprintf(stderr, "%s: write to standard output: %s\n", who,
		      errno ? strerror(errno) : "a part is lost");
	shim_output_told();
}

int shim_output_end(const char *who, int status)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	shim_output_lost(who); /* what is left in the buffer was tried again: the reason */
	return status == SHIM_EXIT_OK ? SHIM_EXIT_FAILED : status;
}
