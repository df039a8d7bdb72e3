/* SPDX-License-Identifier: MIT */
/* Exit statuses of aqe-shim's own commands. Runtime verbs use only OK and FAILED, or pass on the
 * low-level runtime's status. */
#ifndef AQE_SHIM_EXIT_H
#define AQE_SHIM_EXIT_H

enum shim_exit {
	SHIM_EXIT_OK = 0,     /* done; `verify`: the document conforms */
	SHIM_EXIT_FAILED = 1, /* refused or failed; `verify`: the document violates the profile */
	SHIM_EXIT_USAGE = 2,  /* wrong command line */
	SHIM_EXIT_MALFORMED = 3, /* `verify`: input is not a well-formed document */
	SHIM_EXIT_UNDECIDED = 4, /* `verify`: could not decide; others: internal error */
};

#endif
