/* SPDX-License-Identifier: MIT */
/* aqe egress: becomes aqe-egress, which lies beside it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "shim/aqe/cmds.h"
#include "shim/core/proc.h"
#include "shim/exit.h"

#define PROGRAM "aqe-egress"

int shim_cmd_egress(int argc, char **argv)
{
	struct aqe_err e = AQE_ERR_INIT;
	char path[PATH_MAX];

	(void)argc;
	if (aqe_proc_beside(PROGRAM, path, sizeof(path), &e) == 0) {
		(void)execv(path, argv);
		(void)aqe_err_set(&e, AQE_E_SYS, errno, PROGRAM " beside aqe");
	}
	(void)fprintf(stderr, "aqe egress: %s\n", e.text);
	return SHIM_EXIT_FAILED;
}
