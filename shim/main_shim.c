/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "shim/exit.h"

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("aqe-shim 0.1.0") < 0 ? SHIM_EXIT_FAILED : SHIM_EXIT_OK;
	(void)fputs("aqe-shim: not built with this command yet\n", stderr);
	return SHIM_EXIT_FAILED;
}
