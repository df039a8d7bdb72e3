/* SPDX-License-Identifier: MIT */
/* Finding sockets by what they are, not by their names: a hard link of docker.sock in the workspace
 * answers like the original (hardening.md section 5). */
#ifndef AQE_HARDENING_SOCKETS_H
#define AQE_HARDENING_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/core/buf.h"
#include "shim/core/err.h"

/* A larger tree cannot be judged, which refuses. About 0.6 us an entry. */
#define HARD_SCAN_ENTRIES_MAX 1000000
#define HARD_SCAN_DEPTH_MAX   64
#define HARD_SOCKETS_MAX      65536 /* bound sockets of the host that are looked at */

/* Unix sockets that some process of our network namespace has bound to a path. */
struct hard_sockets {
	struct hard_socket_id {
		uint64_t dev, ino; /* ino: the kernel tells the low 32 bits */
	} * list;
	size_t n;
};

/* Asks the kernel (NETLINK_SOCK_DIAG). */
AQE_MUST_CHECK int hard_sockets_read(struct hard_sockets *ret, struct aqe_err *e);
void hard_sockets_done(struct hard_sockets *s);
/* True when some process is bound to this inode. `s` may be empty. */
bool hard_sockets_has(const struct hard_sockets *s, uint64_t dev, uint64_t ino);

struct hard_scan {
	size_t entries_max, depth_max; /* HARD_SCAN_... */
	struct aqe_buf *path;          /* of the socket found, below the scanned directory */
	uint64_t dev, ino;             /* of the socket found */
};
/* Walks the tree below directory `dirfd`, without links and without leaving its file system, until
 * the first socket: 1 and scan->path; 0 when there is none; AQE_E_LIMIT when the tree is too large,
 * AQE_E_SYS when a part cannot be read. The descriptor stays the caller's. */
AQE_MUST_CHECK int hard_sockets_scan(int dirfd, struct hard_scan *scan, struct aqe_err *e);

#endif
