/* SPDX-License-Identifier: MIT */
/* aqe sandbox: agents that are started, watched, bounded and stopped. One table of its commands. */
#include <stdio.h>
#include <string.h>

#include "shim/aqe/cmds.h"
#include "shim/aqe/sandbox_cmd.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "shim/sandbox/monitor.h"

static const struct shim_aqe_command COMMANDS[] = {
	{ "create", "make a sandbox; it does not run yet", shim_sandbox_create },
	{ "run", "make and start one; with -d in the background", shim_sandbox_run },
	{ "start", "start one that was made or has stopped", shim_sandbox_start },
	{ "list", "all sandboxes and what they do", shim_sandbox_list },
	{ "stats", "what they use; --watch goes on", shim_sandbox_stats },
	{ "top", "live view; keys sort and stop", shim_sandbox_top },
	{ "stop", "end it: SIGTERM, the grace, SIGKILL", shim_sandbox_stop },
	{ "rm", "remove it for good", shim_sandbox_rm },
	{ "logs", "its output", shim_sandbox_logs },
	{ "exec", "run a command inside", shim_sandbox_exec },
	{ "health", "is it healthy?", shim_sandbox_health },
	{ "inspect", "everything about it", shim_sandbox_inspect },
	{ "events", "what happened; -f: and what happens", shim_sandbox_events },
	{ "reset", "forget its failures; lets go of a hold", shim_sandbox_reset },
	{ "destroy-all", "stop and remove every sandbox", shim_sandbox_destroy_all },
	{ "images", "unpacked images and who uses them", shim_sandbox_images },
	{ "rmi", "remove unpacked images that nobody uses", shim_sandbox_rmi },
	{ "types", "agent types and their ceilings", shim_sandbox_types },
};

static int help(void)
{
	int rc = puts("usage: aqe sandbox COMMAND [OPTION...] [ARGUMENT...]\n"
		      "\n"
		      "Agent containers, hardened by aqe-shim, supervised, bounded. NAME is a "
		      "sandbox's name,\n"
		      "its agent's id, or the beginning of one.\n"
		      "\n"
		      "commands (each has --help):");

	for (size_t i = 0; rc >= 0 && i < AQE_COUNT(COMMANDS); i++)
		rc = printf("  %-11s %s\n", COMMANDS[i].name, COMMANDS[i].about);
	return rc < 0 || fflush(stdout) != 0 ? SHIM_EXIT_FAILED : SHIM_EXIT_OK;
}

/* ---- what only our own processes call ---- */

static const struct aqe_cli_opt OWN_OPTS[] = { SHIM_SB_OPT_DATA, SHIM_SB_OPT_END };
static const struct aqe_cli_cmd MONITOR = {
	.name = "aqe sandbox monitor",
	.synopsis = "NAME",
	.about = "Watches one sandbox until it does not run any more. Started by the other "
		 "commands.",
	.opts = OWN_OPTS,
};
static const struct aqe_cli_cmd CALL = {
	.name = "aqe sandbox call",
	.synopsis = "start|alive|stop NAME",
	.about = "One call of a monitor to the engine.",
	.opts = OWN_OPTS,
};

static int monitor(int argc, char **argv)
{
	SHIM_AUTO_BOX struct shim_box b = SHIM_BOX_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_sb sb;
	int rc = shim_sb_begin(&sb, &MONITOR, SHIM_SB_OPERANDS, 1, 1, argc, argv);

	if (rc >= 0)
		return rc;
	rc = shim_box_open(sb.arena, &sb.place, sb.words[0], &b, &e);
	if (rc == 0)
		rc = shim_monitor_run(&b, &e);
	rc = rc < 0 ? shim_sb_fail(&sb, &e) : SHIM_EXIT_OK;
	shim_sb_done(&sb);
	return rc;
}

static int call(int argc, char **argv)
{
	SHIM_AUTO_BOX struct shim_box b = SHIM_BOX_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_sb sb;
	int rc = shim_sb_begin(&sb, &CALL, SHIM_SB_OPERANDS, 2, 2, argc, argv);

	if (rc >= 0)
		return rc;
	rc = shim_box_open(sb.arena, &sb.place, sb.words[1], &b, &e);
	rc = rc < 0 ? shim_sb_fail(&sb, &e) : shim_monitor_call(&b, sb.words[0]);
	shim_sb_done(&sb);
	return rc;
}

static const struct shim_aqe_command HIDDEN[] = {
	{ "monitor", "", monitor },
	{ "call", "", call },
};

int shim_cmd_sandbox(int argc, char **argv)
{
	if (argc < 2) {
		(void)fputs("aqe sandbox: missing command; see aqe sandbox --help\n", stderr);
		return SHIM_EXIT_USAGE;
	}
	for (size_t i = 0; i < AQE_COUNT(COMMANDS); i++) {
		if (strcmp(argv[1], COMMANDS[i].name) == 0)
			return COMMANDS[i].fn(argc - 1, argv + 1);
	}
	for (size_t i = 0; i < AQE_COUNT(HIDDEN); i++) {
		if (strcmp(argv[1], HIDDEN[i].name) == 0)
			return HIDDEN[i].fn(argc - 1, argv + 1);
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0)
		return help();
	(void)fprintf(stderr, "aqe sandbox: no such command '%.64s'; see aqe sandbox --help\n",
		      argv[1]);
	return SHIM_EXIT_USAGE;
}
