/* SPDX-License-Identifier: MIT */
/* aqe: the operator's command line and the services around aqe-shim. */
#include <stdio.h>
#include <string.h>

#include "shim/aqe/cmds.h"
#include "shim/core/proc.h"
#include "shim/exit.h"
#include "shim/input.h"
#include "shim/version.h"

static int help(void)
{
	int rc = puts("usage: aqe COMMAND [OPTION...] [ARGUMENT...]\n"
		      "\n"
		      "commands (each has --help):");

	for (size_t i = 0; rc >= 0 && i < SHIM_AQE_COMMANDS_COUNT; i++) {
		if (SHIM_AQE_COMMANDS[i].about)
			rc = printf("  %-11s %s\n", SHIM_AQE_COMMANDS[i].name,
				    SHIM_AQE_COMMANDS[i].about);
	}
	return rc < 0 || fflush(stdout) != 0 ? SHIM_EXIT_FAILED : SHIM_EXIT_OK;
}

static int run(int argc, char **argv)
{
	aqe_proc_fill_streams();
	if (argc < 2) {
		(void)fputs("aqe: missing command; see aqe --help\n", stderr);
		return SHIM_EXIT_USAGE;
	}
	for (size_t i = 0; i < SHIM_AQE_COMMANDS_COUNT; i++) {
		if (strcmp(argv[1], SHIM_AQE_COMMANDS[i].name) == 0)
			return SHIM_AQE_COMMANDS[i].fn(argc - 1, argv + 1);
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0)
		return help();
	if (strcmp(argv[1], "--version") == 0)
		return puts("aqe " SHIM_VERSION) < 0 || fflush(stdout) != 0 ? SHIM_EXIT_FAILED
									    : SHIM_EXIT_OK;
	(void)fprintf(stderr, "aqe: no such command '%.64s'; see aqe --help\n", argv[1]);
	return SHIM_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	char who[80] = "aqe";

	if (argc > 1 && argv[1][0] != '-')
		(void)snprintf(who, sizeof(who), "aqe %s", argv[1]);
	return shim_output_end(who, run(argc, argv));
}
