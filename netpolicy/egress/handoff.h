/* SPDX-License-Identifier: MIT */
/* A policy snapshot for a process that may open no file: written into a sealed memfd by the keeper,
 * read back by worker and dialer. */
#ifndef AQE_EGRESS_HANDOFF_H
#define AQE_EGRESS_HANDOFF_H

#include "netpolicy/egress/wire.h"
#include "netpolicy/policy.h"
#include "shim/core/buf.h"

/* Reads the `size` bytes of a memfd into `b`, which is empty; more than b->max is AQE_E_LIMIT,
 * fewer than `size` AQE_E_SYS. The offset of `fd`, which others share, is not used. */
AQE_MUST_CHECK int netpol_memfd_read(int fd, size_t size, struct aqe_buf *b, struct aqe_err *e);

#define NETPOL_HANDOFF_MAX ((size_t)4 << 20)

/* Writes what is in force for `type`; *ret_fd is sealed, `ret` the message that goes with it. */
AQE_MUST_CHECK int netpol_handoff_write(const struct netpol_policy *p, const char *type,
					struct netpol_msg_policy *ret, int *ret_fd,
					struct aqe_err *e);
/* Builds the snapshot from it; `fd` stays the caller's. */
AQE_MUST_CHECK int netpol_handoff_read(const struct netpol_msg_policy *msg, int fd,
				       const char *type, struct netpol_policy **ret,
				       struct aqe_err *e);

#endif
