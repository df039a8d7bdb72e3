/* SPDX-License-Identifier: MIT */
/* aqe audit: the evidence. One table of its commands. */
#include <stdio.h>
#include <string.h>

#include "shim/aqe/audit_args.h"
#include "shim/aqe/cmds.h"
#include "shim/core/text.h"
#include "shim/exit.h"

static const struct shim_aqe_command COMMANDS[] = {
	{ "list", "rows that match, as a table or JSON", shim_audit_list },
	{ "stats", "totals, response times, most frequent values", shim_audit_stats },
	{ "tail", "the newest rows; -f: and those that come", shim_audit_tail },
	{ "export", "jsonl, json, csv, ocsf, or an HTML report", shim_audit_export },
	{ "verify", "is the log, or an export, what it was?", shim_audit_verify },
	{ "head", "print the last row's number and hash", shim_audit_head },
	{ "anchor", "write the head to a file or program outside", shim_audit_anchor },
	{ "checkpoint", "sign the head now", shim_audit_checkpoint },
	{ "key", "make or show the signing key", shim_audit_key },
	{ "prune", "remove old rows, provably", shim_audit_prune },
	{ "import", "append an old export", shim_audit_import },
	{ "ship", "post new rows to a collector over HTTPS", shim_audit_ship },
};

static int help(void)
{
	int rc = puts(
		"usage: aqe audit COMMAND [OPTION...] [ARGUMENT...]\n"
		"\n"
		"The tamper-evident log of every decision: starts, refusals, requests, policy.\n"
		"\n"
		"commands (each has --help):");

	for (size_t i = 0; rc >= 0 && i < AQE_COUNT(COMMANDS); i++)
		rc = printf("  %-11s %s\n", COMMANDS[i].name, COMMANDS[i].about);
	return rc < 0 || fflush(stdout) != 0 ? SHIM_EXIT_FAILED : SHIM_EXIT_OK;
}

int shim_cmd_audit(int argc, char **argv)
{
	if (argc < 2) {
		(void)fputs("aqe audit: missing command; see aqe audit --help\n", stderr);
		return SHIM_EXIT_USAGE;
	}
	for (size_t i = 0; i < AQE_COUNT(COMMANDS); i++) {
		if (strcmp(argv[1], COMMANDS[i].name) == 0)
			return COMMANDS[i].fn(argc - 1, argv + 1);
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0)
		return help();
	(void)fprintf(stderr, "aqe audit: no such command '%.64s'; see aqe audit --help\n",
		      argv[1]);
	return SHIM_EXIT_USAGE;
}
