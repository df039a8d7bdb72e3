/* SPDX-License-Identifier: MIT */
/* The environment: what the low-level runtime gets of ours, and where our own folders are. */
#ifndef AQE_SHIM_ENV_H
#define AQE_SHIM_ENV_H

#include "shim/core/arena.h"

/* The value of `name`, or NULL. An empty value is "". */
const char *shim_env_get(char *const *envp, const char *name);

/* The variables of `envp` that a low-level runtime may see (pitfall 25, R34): an allow-list, so
 * that LD_*, _LIBCONTAINER_*, RUN_OCI_*, NOTIFY_SOCKET and LISTEN_* end here. The strings are
 * borrowed, the list is in `a`; NULL when memory is exhausted. Of a variable given twice the first
 * is kept, as getenv(3) would find it. */
char **shim_env_filter(struct aqe_arena *a, char *const *envp);

/* The user's policy directory, $XDG_CONFIG_HOME/aqe-shim or $HOME/.config/aqe-shim; NULL when the
 * environment names none by an absolute path. */
const char *shim_env_policy_dir(struct aqe_arena *a, char *const *envp);

#endif
