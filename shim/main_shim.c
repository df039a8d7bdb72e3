/* SPDX-License-Identifier: MIT */
/* aqe-shim: an OCI runtime, and the commands that judge documents by the same rules. */
#include <stdio.h>
#include <string.h>

#include "shim/cmds.h"
#include "shim/core/proc.h"
#include "shim/exit.h"
#include "shim/runtime.h"

static const struct {
	const char *name, *about;
	int (*fn)(int argc, char **argv);
} commands[] = {
	{ "verify", "judge config.json and inspect documents against the profile",
	  shim_cmd_verify },
	{ "harden", "show what the rewrite makes of a config.json", shim_cmd_harden },
	{ "profile", "print the frozen profile", shim_cmd_profile },
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int help(void)
{
	int rc = puts(
		"usage: aqe-shim [GLOBAL OPTION...] VERB [OPTION...] [ID]    (an engine's call)\n"
		"       aqe-shim COMMAND [OPTION...] [FILE...]\n"
		"\n"
		"An OCI runtime that hardens, verifies or refuses every container and then hands\n"
		"over to crun or runc. Its policy is /etc/aqe-shim/policy.json.\n"
		"\n"
		"commands (each has --help):");

	for (size_t i = 0; rc >= 0 && i < N_COMMANDS; i++)
		rc = printf("  %-11s %s\n", commands[i].name, commands[i].about);
	if (rc >= 0)
		rc = puts("\nverbs:");
	for (size_t i = SHIM_VERB_CREATE; rc >= 0 && i < SHIM_VERB_COUNT; i++)
		rc = printf("  %-11s %s\n", SHIM_VERBS[i].name, SHIM_VERBS[i].synopsis);
	return rc < 0 || fflush(stdout) != 0 ? SHIM_EXIT_FAILED : SHIM_EXIT_OK;
}

int main(int argc, char **argv, char **envp)
{
	aqe_proc_fill_streams();
	if (argc < 2) {
		(void)fputs("aqe-shim: missing command; see aqe-shim --help\n", stderr);
		return SHIM_EXIT_USAGE;
	}
	for (size_t i = 0; i < N_COMMANDS; i++) {
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].fn(argc - 1, argv + 1);
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0)
		return help();
	return shim_runtime_main(argc, argv, envp);
}
