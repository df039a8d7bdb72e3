/* SPDX-License-Identifier: MIT */
/* Unix sockets for programs of one user. */
#ifndef AQE_AQE_UNIX_SOCKET_H
#define AQE_AQE_UNIX_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/core/buf.h"
#include "shim/core/err.h"

/* A listening socket at `path`, mode 0600. A socket there that nobody answers on is replaced;
 * AQE_E_REFUSED when somebody does, AQE_E_UNTRUSTED for anything else at that name. */
AQE_MUST_CHECK int shim_unix_listen(const char *path, int backlog, int *ret_fd, struct aqe_err *e);
/* True when the other side is a process of this user or of root. */
bool shim_unix_peer_ok(int fd);
/* Connects to `path`, sends `line` (with its newline) and appends one line of answer, without its
 * newline, to `ret`; all within `timeout_ms`. AQE_E_ABSENT: nobody is there. */
AQE_MUST_CHECK int shim_unix_ask(const char *path, const char *line, int timeout_ms,
				 struct aqe_buf *ret, struct aqe_err *e);

#endif
