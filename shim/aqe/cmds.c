/* SPDX-License-Identifier: MIT */
#include "shim/aqe/cmds.h"

#include "shim/cmds.h"

const struct shim_aqe_command SHIM_AQE_COMMANDS[] = {
	{ "audit", "the evidence: list, stats, tail, export, verify, ...", shim_cmd_audit },
	{ "cache", "the embedding cache: get, put, stats, export, warm, serve, ...",
	  shim_cmd_cache },
	{ "doctor", "whether the way out works here, and for which clients", shim_cmd_doctor },
	{ "egress", "the way out of one container: the service, or a forward proxy",
	  shim_cmd_egress },
	{ "gateway", NULL, shim_cmd_gateway },
	{ "policy", "what agents may reach: show, check, match, simulate, serve", shim_cmd_policy },
	{ "profile", "print the frozen profile", shim_cmd_profile },
	{ "sandbox", "agent containers: create, run, list, stats, top, stop, logs, ...",
	  shim_cmd_sandbox },
	{ "supervise", "start a process or container, watch it, start it again: status, reset",
	  shim_cmd_supervise },
};
const size_t SHIM_AQE_COMMANDS_COUNT = sizeof(SHIM_AQE_COMMANDS) / sizeof(SHIM_AQE_COMMANDS[0]);
