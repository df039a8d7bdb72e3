/* SPDX-License-Identifier: MIT */
#include "shim/env.h"

#include <stdbool.h>
#include <string.h>

#include "shim/core/text.h"

/* "LC_*" admits every name with that start. XDG_RUNTIME_DIR is kept even when empty: it decides
 * where crun and runc keep their state (pitfall 26). */
static const char *const allowed[] = {
	"PATH",
	"HOME",
	"XDG_RUNTIME_DIR",
	"TMPDIR",
	"TZ",
	"LANG",
	"LC_*",
	"DBUS_SESSION_BUS_ADDRESS",
	"GOMAXPROCS",
	"_OCI_SYNCPIPE",
	"_OCI_STARTPIPE",
	"_OCI_ATTACHPIPE",
	"_CONTAINERS_USERNS_CONFIGURED",
	"_CONTAINERS_ROOTLESS_UID",
	"_CONTAINERS_ROOTLESS_GID",
};

/* Length of the name in "NAME=value"; 0 when there is none. */
static size_t name_len(const char *entry)
{
	const char *eq = strchr(entry, '=');

	return eq ? (size_t)(eq - entry) : 0;
}

static bool is_allowed(const char *entry)
{
	size_t n = name_len(entry);

	for (size_t i = 0; n && i < AQE_COUNT(allowed); i++) {
		size_t want = strlen(allowed[i]);
		bool prefix = allowed[i][want - 1] == '*';

		if (prefix && n >= want && memcmp(entry, allowed[i], want - 1) == 0)
			return true;
		if (!prefix && n == want && memcmp(entry, allowed[i], n) == 0)
			return true;
	}
	return false;
}

static bool listed(char *const *list, size_t n, const char *entry)
{
	size_t len = name_len(entry);

	for (size_t i = 0; i < n; i++) {
		if (name_len(list[i]) == len && memcmp(list[i], entry, len) == 0)
			return true;
	}
	return false;
}

const char *shim_env_get(char *const *envp, const char *name)
{
	size_t n = strlen(name);

	for (; envp && *envp; envp++) {
		if (name_len(*envp) == n && memcmp(*envp, name, n) == 0)
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
		if (is_allowed(envp[i]) && !listed(list, kept, envp[i]))
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
