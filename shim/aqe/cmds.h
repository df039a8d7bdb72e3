/* SPDX-License-Identifier: MIT */
/* aqe's commands. Each takes its own words (argv[0] is the command's name), prints through stdio
 * and returns an enum shim_exit. */
#ifndef AQE_AQE_CMDS_H
#define AQE_AQE_CMDS_H

#include <stddef.h>

struct shim_aqe_command {
	const char *name, *about; /* `about` NULL: not for people, not listed */
	int (*fn)(int argc, char **argv);
};
/* In the order of `aqe --help`. */
extern const struct shim_aqe_command SHIM_AQE_COMMANDS[];
extern const size_t SHIM_AQE_COMMANDS_COUNT;

/* The commands that are not aqe-shim's too. */
int shim_cmd_audit(int argc, char **argv);
int shim_cmd_cache(int argc, char **argv);
int shim_cmd_doctor(int argc, char **argv);
int shim_cmd_egress(int argc, char **argv);
int shim_cmd_gateway(int argc, char **argv);
int shim_cmd_policy(int argc, char **argv);
int shim_cmd_sandbox(int argc, char **argv);
int shim_cmd_supervise(int argc, char **argv);

#endif
