/* SPDX-License-Identifier: MIT */
#include "hardening/rules.h"

#include <limits.h>
#include <string.h>

#include "shim/core/text.h"

/* Names under which engines and the services around them listen (R20). Whoever reaches one of them
 * owns the host, whatever the container's own limits are. */
static const char *const socket_names[] = {
	"buildkitd.sock",  "containerd.sock",   "containerd.sock.ttrpc", "cri-dockerd.sock",
	"crio.sock",       "docker.sock",       "dockershim.sock",       "frakti.sock",
	"io.podman",       "kubelet.sock",      "libvirt-sock",          "nri.sock",
	"podman.sock",

	"snapd.socket",    "system_bus_socket", "virtqemud-sock",

	"docker.raw.sock", "docker.proxy.sock", "containerd-shim.sock",  NULL,
};

/* Directories that hold such sockets. */
static const char *const socket_dirs[] = {
	"/run/buildkit",
	"/run/containerd",
	"/run/crio",
	"/run/cri-dockerd",
	"/run/dbus",
	"/run/docker",
	"/run/guest-services",
	"/run/host-services",
	"/run/incus",
	"/run/k3s",
	"/run/k0s",
	"/run/libpod",
	"/run/libvirt",
	"/run/lxd",
	"/run/nri",
	"/run/podman",
	"/run/snapd.socket",
	"/run/systemd",
	"/run/user",
	"/var/lib/containerd",
	"/var/lib/docker/plugins",
	"/var/lib/incus",
	"/var/lib/kubelet",
	"/var/lib/lxd",
	"/var/snap/lxd",
	NULL,
};

/* "/proc/1/root/x" -> "/x" and the like: the magic link of any process that shares our root. `p`
 * is clean; NULL when it is no such path. */
static const char *after_proc_root(const char *p)
{
	static const char proc[] = "/proc/", root[] = "/root";

	if (!aqe_starts(p, proc))
		return NULL;
	p = strchr(p + sizeof(proc) - 1, '/');
	while (p && aqe_starts(p, "/task/")) /* /proc/PID/task/TID/root */
		p = strchr(p + sizeof("/task/") - 1, '/');
	if (!p || !aqe_starts(p, root))
		return NULL;
	p += sizeof(root) - 1;
	if (*p == '\0')
		return "/";
	return *p == '/' ? p : NULL;
}

/* Removes dots, dot-dots and doubled slashes. ".." at the top stays there, as in the kernel. */
static bool clean_dots(const char *path, char *buf, size_t size)
{
	size_t len = 0;

	while (*path) {
		const size_t n = strcspn(path, "/");
		const bool dot = n == 0 || (n == 1 && path[0] == '.');

		if (n == 2 && path[0] == '.' && path[1] == '.') {
			while (len > 0 && buf[--len] != '/')
				; /* drop the last component and its slash */
		} else if (!dot) {
			if (len + 1 + n + 1 > size)
				return false;
			buf[len++] = '/';
			memcpy(buf + len, path, n);
			len += n;
		}
		path += n;
		path += *path == '/';
	}
	if (size < 2)
		return false;
	if (len == 0)
		buf[len++] = '/';
	buf[len] = '\0';
	return true;
}

#define CLEAN_ROUNDS_MAX 16 /* nested /proc/1/root/proc/1/root; more is refused as too long */

bool hard_rule_clean_path(const char *path, char *buf, size_t size)
{
	if (path[0] != '/') {
		const size_t n = strlen(path);

		if (n >= size)
			return false;
		memcpy(buf, path, n + 1);
		return true;
	}
	if (!clean_dots(path, buf, size))
		return false;
	for (int round = 0; round < CLEAN_ROUNDS_MAX; round++) {
		const char *rest = after_proc_root(buf);

		if (rest) {
			memmove(buf, rest, strlen(rest) + 1);
			continue;
		}
		/* /var/run is a link to /run on every host we know */
		if (aqe_path_is_under(buf, "/var/run")) {
			memmove(buf, buf + 4, strlen(buf + 4) + 1);
			continue;
		}
		return true;
	}
	return false;
}

static const char *judge_clean(const char *path)
{
	const char *const slash = strrchr(path, '/');
	const char *const base = slash ? slash + 1 : path;

	if (aqe_str_in(base, socket_names))
		return "an engine's socket";
	if (path[0] != '/')
		return NULL;
	for (const char *const *dir = socket_dirs; *dir; dir++) {
		if (aqe_path_is_under(path, *dir))
			return "in a directory of engine sockets";
		if (aqe_path_is_under(*dir, path))
			return "above a directory of engine sockets";
	}
	if (aqe_ends(base, ".sock") || aqe_ends(base, ".socket"))
		return "a socket by its name";
	return NULL;
}

const char *hard_rule_socket(const char *source)
{
	char clean[PATH_MAX];

	if (source[0] == '\0')
		return NULL;
	if (!hard_rule_clean_path(source, clean, sizeof(clean)))
		return "a path too long to judge";
	return judge_clean(clean);
}
