/* SPDX-License-Identifier: MIT */
#include "shim/env.h"

#include <stdbool.h>
#include <string.h>

#include "shim/early.h"

static bool listed(char *const *list, size_t n, const char *entry)
{
	size_t len = shim_early_env_name(entry);

	for (size_t i = 0; i < n; i++) {
		if (shim_early_env_name(list[i]) == len && memcmp(list[i], entry, len) == 0)
			return true;
	}
	return false;
}

const char *shim_env_get(char *const *envp, const char *name)
{
	size_t n = strlen(name);

	for (; envp && *envp; envp++) {
		if (shim_early_env_name(*envp) == n && memcmp(*envp, name, n) == 0)
			return *envp + n + 1;
	}
	return NULL;
}

char **shim_env_filter(struct aqe_arena *a, char *const *envp)
{
	size_t n = 0, kept = 0;
	char **list;

	while (envp && envp[n])
		n++;
	list = aqe_arena_calloc(a, n + 1, sizeof(*list));
	if (!list)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		if (shim_early_env_ok(envp[i]) && !listed(list, kept, envp[i]))
			list[kept++] = envp[i];
	}
	return list;
}

const char *shim_env_policy_dir(struct aqe_arena *a, char *const *envp)
{
	const char *config = shim_env_get(envp, "XDG_CONFIG_HOME");
	const char *home = shim_env_get(envp, "HOME");

	if (config && config[0] == '/')
		return aqe_arena_fmt(a, "%s/aqe-shim", config);
	if (home && home[0] == '/')
		return aqe_arena_fmt(a, "%s/.config/aqe-shim", home);
	return NULL;
}
