/* SPDX-License-Identifier: MIT */
/* aqe policy: dispatch to its commands. */
#include <stdio.h>
#include <string.h>

#include "shim/aqe/cmds.h"
#include "shim/aqe/policy_cmd.h"
#include "shim/exit.h"

static const struct {
	const char *name, *about;
	int (*fn)(int argc, char **argv);
} COMMANDS[] = {
	{ "show", "what is in force for an agent type, and which line of which file says so",
	  shim_policy_show },
	{ "check", "whether an agent type may reach a host, as its service decides",
	  shim_policy_check },
	{ "match", "whether a list of entries admits a host", shim_policy_match },
	{ "address", "what an address is, and whether it may be dialled", shim_policy_address },
	{ "simulate", "what the rate limiter answers to a series of requests",
	  shim_policy_simulate },
	{ "reload", "check the policy files and have running services read them anew",
	  shim_policy_reload },
	{ "serve", "answer other programs on a unix socket", shim_policy_serve },
};
#define COMMANDS_COUNT (sizeof(COMMANDS) / sizeof(COMMANDS[0]))

static int help(void)
{
	int rc = puts("usage: aqe policy COMMAND [OPTION...] [ARGUMENT...]\n"
		      "\n"
		      "The network policy: what agents may reach.\n"
		      "\n"
		      "commands (each has --help):");

	for (size_t i = 0; rc >= 0 && i < COMMANDS_COUNT; i++)
		rc = printf("  %-9s %s\n", COMMANDS[i].name, COMMANDS[i].about);
	return rc < 0 || fflush(stdout) != 0 ? SHIM_EXIT_UNDECIDED : SHIM_EXIT_OK;
}

int shim_cmd_policy(int argc, char **argv)
{
	if (argc < 2) {
		(void)fputs("aqe policy: missing command; see aqe policy --help\n", stderr);
		return SHIM_EXIT_USAGE;
	}
	for (size_t i = 0; i < COMMANDS_COUNT; i++) {
		if (strcmp(argv[1], COMMANDS[i].name) == 0)
			return COMMANDS[i].fn(argc - 1, argv + 1);
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return help();
	(void)fprintf(stderr, "aqe policy: no such command '%.64s'; see aqe policy --help\n",
		      argv[1]);
	return SHIM_EXIT_USAGE;
}
