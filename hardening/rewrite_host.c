/* SPDX-License-Identifier: MIT */
/* The one question of the rewrite that only the host can answer. */
#include "hardening/rewrite.h"

#include <stdio.h>
#include <sys/stat.h>

#include "shim/core/text.h"

/* Paths of namespaces that are the runtime's own or init's, whoever reads them. */
static bool names_host(const char *path)
{
	static const char *const heads[] = { "/proc/self/", "/proc/thread-self/", "/proc/1/",
					     NULL };

	for (size_t i = 0; heads[i]; i++)
		if (aqe_starts(path, heads[i]))
			return true;
	/* docker's --network host: <exec-root>/netns/default */
	return aqe_ends(path, "/netns/default");
}

static bool is_same(const struct stat *st, const char *pid, const char *file)
{
	char path[64];
	struct stat own;

	(void)snprintf(path, sizeof(path), "/proc/%s/ns/%s", pid, file);
	return stat(path, &own) == 0 && own.st_dev == st->st_dev && own.st_ino == st->st_ino;
}

bool hard_rw_host_namespace(const struct hard_rw *rw, const char *type, const char *path)
{
	static const struct {
		const char *type, *file;
	} files[] = {
		{ "network", "net" }, { "pid", "pid" },   { "ipc", "ipc" },       { "uts", "uts" },
		{ "mount", "mnt" },   { "user", "user" }, { "cgroup", "cgroup" },
	};
	const struct hard_host *host = rw->ctx->host;
	const char *file = NULL;
	struct stat st;

	if (names_host(path))
		return true;
	/* Whatever the answer, the path is not used afterwards: a wrong one costs the user a
	 * message, not the host its isolation. */
	if (!host || stat(path, &st) != 0)
		return false;
	for (size_t i = 0; i < AQE_COUNT(files); i++)
		if (aqe_str_eq(type, files[i].type))
			file = files[i].file;
	if (!file)
		return false;
	if (aqe_str_eq(type, "network") &&
	    ((st.st_dev == host->ns_net_dev && st.st_ino == host->ns_net_ino) ||
	     (host->ns_init_net_ino && st.st_dev == host->ns_init_net_dev &&
	      st.st_ino == host->ns_init_net_ino)))
		return true;
	return is_same(&st, "self", file) || is_same(&st, "1", file);
}
