/* SPDX-License-Identifier: MIT */
/* aqe egress: becomes aqe-egress, which lies beside it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/aqe/cmds.h"
#include "shim/exit.h"

#define PROGRAM "aqe-egress"

int shim_cmd_egress(int argc, char **argv)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof(PROGRAM));
	char *slash;

	(void)argc;
	if (n > 0) {
		path[n] = '\0';
		slash = strrchr(path, '/');
		memcpy(slash ? slash + 1 : path, PROGRAM, sizeof(PROGRAM));
		(void)execv(path, argv);
	}
	(void)fprintf(stderr, "aqe egress: " PROGRAM " beside aqe: %s\n", strerror(errno));
	return SHIM_EXIT_FAILED;
}
