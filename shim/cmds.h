/* SPDX-License-Identifier: MIT */
/* aqe-shim's own commands. Each takes its own words (argv[0] is the command's name), prints through
 * stdio and returns an enum shim_exit. */
#ifndef AQE_SHIM_CMDS_H
#define AQE_SHIM_CMDS_H

/* Judges documents against the profile: 0 conform, 1 violate, 3 malformed, 4 undecided; of several
 * files the highest. */
int shim_cmd_verify(int argc, char **argv);
/* Shows what `enforce` would make of a config.json. */
int shim_cmd_harden(int argc, char **argv);
/* Prints the frozen profile. */
int shim_cmd_profile(int argc, char **argv);

#endif
