/* SPDX-License-Identifier: MIT */
#include "shim/aqe/cmds.h"

#include "shim/cmds.h"

const struct shim_aqe_command SHIM_AQE_COMMANDS[] = {
	{ "profile", "print the frozen profile", shim_cmd_profile },
};
const size_t SHIM_AQE_COMMANDS_COUNT = sizeof(SHIM_AQE_COMMANDS) / sizeof(SHIM_AQE_COMMANDS[0]);
