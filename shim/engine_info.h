/* SPDX-License-Identifier: MIT */
/* An engine's info document (`podman info`, `docker info` as JSON): is the engine rootless? */
#ifndef AQE_SHIM_ENGINE_INFO_H
#define AQE_SHIM_ENGINE_INFO_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/core/err.h"

struct shim_info {
	bool podman; /* else docker */
	bool rootless;
	bool no_filter; /* seccomp is off, or the daemon's default is "unconfined" */
};

/* podman: host.security.rootless; docker: SecurityOptions with name=rootless or name=userns.
 * AQE_E_UNKNOWN when the document says neither, AQE_E_MALFORMED when it is no strict JSON or the
 * member has the wrong type. */
AQE_MUST_CHECK int shim_engine_info(const char *text, size_t len, struct shim_info *ret,
				    struct aqe_err *e);

#endif
