/* SPDX-License-Identifier: MIT */
/* Where the audit log of this user is; the one place that reads the environment for it. */
#ifndef AQE_AQE_AUDIT_AT_H
#define AQE_AQE_AUDIT_AT_H

#include "audit/log.h"
#include "shim/core/arena.h"
#include "shim/core/err.h"

/* Fills `ret` for `mode`: AUDIT_DIR_SYSTEM for root, AUDIT_DIR_USER below $XDG_STATE_HOME or
 * $HOME/.local/state for others and for root of a user namespace (a rootless engine's runtime). The
 * spare folder is /run/aqe-shim or $XDG_RUNTIME_DIR/aqe-shim. With AUDIT_WRITE the folders above
 * the log's parent are made (0700) when absent. Strings live in `a`. AQE_E_ABSENT: the environment
 * names no home. */
AQE_MUST_CHECK int shim_audit_at(struct aqe_arena *a, char *const *envp, enum audit_mode mode,
				 struct audit_opts *ret, struct aqe_err *e);
/* The log at `path` instead, relative paths from the working directory: its folder, or for
 * AUDIT_READ also the database file itself (a copy). */
AQE_MUST_CHECK int shim_audit_at_path(struct aqe_arena *a, const char *path, enum audit_mode mode,
				      struct audit_opts *ret, struct aqe_err *e);

#endif
