/* SPDX-License-Identifier: MIT */
#include "hardening/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define MAP_BYTES_MAX 16384 /* 340 lines of at most 33 characters */

/* The next number of a map line, right-aligned with blanks by the kernel. */
static bool take_number(const char **p, uint64_t *ret)
{
	char digits[24];
	size_t n;

	*p += strspn(*p, " ");
	n = strspn(*p, "0123456789");
	if (n == 0 || n >= sizeof(digits))
		return false;
	memcpy(digits, *p, n);
	digits[n] = '\0';
	*p += n;
	return aqe_parse_u64(digits, UINT64_MAX, ret);
}

static int parse_map(const char *text, const char *what, struct hard_idmap map[HARD_IDMAP_MAX],
		     size_t *ret_n, struct aqe_err *e)
{
	size_t n = 0;

	while (*text) {
		struct hard_idmap m;

		if (n == HARD_IDMAP_MAX)
			return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %d lines in '%s'",
					   HARD_IDMAP_MAX, what);
		if (!take_number(&text, &m.inside) || !take_number(&text, &m.outside) ||
		    !take_number(&text, &m.size) || *text != '\n')
			return aqe_err_set(e, AQE_E_MALFORMED, 0, "line %zu of '%s' is no mapping",
					   n + 1, what);
		text++;
		map[n++] = m;
	}
	*ret_n = n;
	return 0;
}

static int read_map(int proc_fd, const char *name, struct hard_idmap map[HARD_IDMAP_MAX],
		    size_t *ret_n, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(MAP_BYTES_MAX);
	const int rc = aqe_fs_read_kernel(proc_fd, name, &b, e);

	if (rc < 0)
		return rc;
	return parse_map(aqe_buf_str(&b), name, map, ret_n, e);
}

/* The map of the initial user namespace: every id, unchanged. */
static bool is_identity(const struct hard_idmap *map, size_t n)
{
	return n == 1 && map[0].inside == 0 && map[0].outside == 0 && map[0].size == UINT32_MAX;
}

static bool is_fs(const char *path, long magic)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == magic;
}

static bool apparmor_enabled(void)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(16);
	AQE_AUTO_FD int fd = open("/sys/module", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || aqe_fs_read_kernel(fd, "apparmor/parameters/enabled", &b, NULL) < 0)
		return false; /* no such module in this kernel */
	return aqe_starts(aqe_buf_str(&b), "Y");
}

static uint64_t hard_limit(int resource)
{
	struct rlimit r;

	if (getrlimit((__rlimit_resource_t)resource, &r) != 0)
		return 0;
	return r.rlim_max;
}

static int read_netns(struct hard_host *h, struct aqe_err *e)
{
	struct stat st;

	if (stat("/proc/self/ns/net", &st) != 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "look at our own network namespace");
	h->ns_net_dev = st.st_dev;
	h->ns_net_ino = st.st_ino;
	h->ns_init_net_dev = h->ns_init_net_ino = 0;
	if (stat("/proc/1/ns/net", &st) == 0) { /* unreadable without privilege */
		h->ns_init_net_dev = st.st_dev;
		h->ns_init_net_ino = st.st_ino;
	}
	return 0;
}

int hard_host_read(struct hard_host *h, struct aqe_err *e)
{
	AQE_AUTO_FD int proc_fd = open("/proc/self/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (proc_fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open '/proc/self'");
	rc = read_map(proc_fd, "uid_map", h->uid_map, &h->n_uid, e);
	if (rc == 0)
		rc = read_map(proc_fd, "gid_map", h->gid_map, &h->n_gid, e);
	if (rc == 0)
		rc = read_netns(h, e);
	if (rc < 0)
		return rc;
	h->in_userns = !is_identity(h->uid_map, h->n_uid) || !is_identity(h->gid_map, h->n_gid);
	h->cgroup_v2 = is_fs("/sys/fs/cgroup", CGROUP2_SUPER_MAGIC);
	/* Engines get no group of their own on v1 without root (measured); on v2 the delegated
	 * controllers show at start, when the limits are read back. */
	h->cgroup_limits = h->cgroup_v2 || !h->in_userns;
	h->apparmor = apparmor_enabled();
	h->selinux = is_fs("/sys/fs/selinux", SELINUX_MAGIC);
	h->rlim_nofile_max = hard_limit(RLIMIT_NOFILE);
	h->rlim_nproc_max = hard_limit(RLIMIT_NPROC);
	h->rlim_core_max = hard_limit(RLIMIT_CORE);
	return 0;
}
