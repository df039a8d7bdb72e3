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

#endif
