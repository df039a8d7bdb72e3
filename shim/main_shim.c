/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "shim/cmds.h"
#include "shim/exit.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "verify", shim_cmd_verify },
	{ "harden", shim_cmd_harden },
	{ "profile", shim_cmd_profile },
};

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("aqe-shim 0.1.0") < 0 ? SHIM_EXIT_FAILED : SHIM_EXIT_OK;
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	(void)fputs("aqe-shim: not built with this command yet\n", stderr);
	return SHIM_EXIT_USAGE;
}
