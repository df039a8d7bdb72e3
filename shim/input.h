/* SPDX-License-Identifier: MIT */
/* Documents named on the command line of our own commands. */
#ifndef AQE_SHIM_INPUT_H
#define AQE_SHIM_INPUT_H

#include "shim/core/buf.h"
#include "shim/core/err.h"

/* Appends the file, or standard input for "-". Only regular files, and no symbolic link: what is
 * judged must be what the next reader gets. AQE_E_LIMIT over the buffer's maximum. */
AQE_MUST_CHECK int shim_input_read(const char *path, struct aqe_buf *b, struct aqe_err *e);
/* Writes the buffer to standard output and flushes it. */
AQE_MUST_CHECK int shim_output(const struct aqe_buf *b, struct aqe_err *e);
/* Says as "WHO: ..." that output was lost, and why by errno; for who fails at it without a word. */
void shim_output_lost(const char *who);
/* The caller reports a fault of standard output: what is left of it is dropped. */
void shim_output_told(void);
/* The last thing a program does: flushes standard output. When anything written to it was lost,
 * says so as "WHO: ..."; then SHIM_EXIT_FAILED in place of a `status` of 0. The exit status. */
int shim_output_end(const char *who, int status);

#endif
