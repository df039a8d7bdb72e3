/* SPDX-License-Identifier: MIT */
/* Going where a rootless engine is: into the user and mount namespaces that it keeps. */
#ifndef AQE_SHIM_VERIFY_JOIN_H
#define AQE_SHIM_VERIFY_JOIN_H

#include <sys/types.h>

#include "shim/core/err.h"

/* Joins the namespaces of the engine that runs the container of process `pid`, as `podman unshare`
 * would: there ids, mounts and paths are those that the runtime saw when it made the container.
 * There is no way back. Success when we are there already. Only the engine's own user can. */
AQE_MUST_CHECK int shim_join_engine(pid_t pid, struct aqe_err *e);

#endif
