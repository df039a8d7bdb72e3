/* SPDX-License-Identifier: MIT */
#include "hardening/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "hardening/sockets.h"
#include "hardening/verify_in.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define MOUNTINFO_MAX (8U << 20)

/* One run over the mounts of one document. */
struct host_run {
	struct hard_verifier v;
	struct hard_sockets bound;
	const char *mountinfo; /* text of /proc/self/mountinfo */
};

static const char *source_of(const struct aqe_json *mount)
{
	const char *s = aqe_json_str(aqe_json_get(mount, "source"));

	return s ? s : "";
}

/* Opens a path for looking only; what went wrong becomes a finding. False when it did not open. */
static bool open_path(struct hard_verifier *v, enum hard_prop prop, const struct aqe_json *at,
		      const char *path, int *ret_fd)
{
	struct aqe_err e = AQE_ERR_INIT;
	const int rc = aqe_fs_open_nolinks(path, O_PATH, ret_fd, &e);

	if (rc == 0)
		return true;
	if (rc == AQE_E_ABSENT)
		hard_report_fail(v->r, prop, at, NULL, "a path that exists", "%s, which does not",
				 hard_verify_quote(v, path));
	else if (rc == AQE_E_UNTRUSTED)
		hard_report_fail(v->r, prop, at, NULL, "a path without symbolic links",
				 "%s, with a link on the way", hard_verify_quote(v, path));
	else
		hard_report_unknown(v->r, prop, "", "a path that can be opened", "%s: %s",
				    hard_verify_quote(v, path), e.text);
	return false;
}

/* ---- who owns it (R19) ---- */

/* True when some line of linux.uidMappings gives the container this id of ours. */
static bool is_mapped(const struct aqe_json *spec, uint64_t uid)
{
	const struct aqe_json *list = aqe_json_at(spec, "/linux/uidMappings");

	for (const struct aqe_json *m = list ? list->first : NULL; m; m = m->next) {
		uint64_t first, size;

		if (aqe_json_to_u64(aqe_json_get(m, "hostID"), UINT32_MAX, &first) &&
		    aqe_json_to_u64(aqe_json_get(m, "size"), UINT32_MAX, &size) && uid >= first &&
		    uid - first < size)
			return true;
	}
	return false;
}

/* Root, the engine's user, or the container itself: anybody else could exchange what is below while
 * the runtime mounts it. */
static bool is_right_owner(const struct hard_verifier *v, uint64_t uid)
{
	const struct aqe_json *agent = aqe_json_at(v->spec, "/process/user/uid");
	const struct hard_host *host = v->ctx->host;
	uint64_t id;

	if (uid == 0 || uid == geteuid() || is_mapped(v->spec, uid))
		return true;
	/* without a namespace of its own the agent's id is an id of ours */
	if (!aqe_json_at(v->spec, "/linux/uidMappings/0") && agent &&
	    aqe_json_to_u64(agent, UINT32_MAX, &id) && id == uid)
		return true;
	/* the host's root, seen from inside the engine's namespace */
	return host && host->in_userns && uid == 65534;
}

/* ---- what is below it ---- */

static void check_sockets(struct host_run *run, const struct aqe_json *at, const char *source,
			  int dirfd)
{
	struct hard_verifier *v = &run->v;
	AQE_AUTO_BUF struct aqe_buf path = AQE_BUF_INIT(PATH_MAX);
	struct hard_scan scan = { HARD_SCAN_ENTRIES_MAX, HARD_SCAN_DEPTH_MAX, &path, 0, 0 };
	struct aqe_err e = AQE_ERR_INIT;
	const int rc = hard_sockets_scan(dirfd, &scan, &e);

	if (rc < 0)
		hard_report_unknown(v->r, HARD_ENGINE_SOCKET, "",
				    "a tree that can be searched for sockets", "%s: %s",
				    hard_verify_quote(v, source), e.text);
	else if (rc > 0)
		hard_report_fail(v->r, HARD_ENGINE_SOCKET, at, NULL, "no socket below it",
				 "%s below it, a socket%s",
				 hard_verify_quote(v, aqe_buf_str(&path)),
				 hard_sockets_has(&run->bound, scan.dev, scan.ino)
					 ? " that a host program listens on"
					 : "");
}

/* Copies field `n` (from 1) of a mountinfo line to `buf` with its octal escapes undone. */
static bool mountinfo_field(const char *line, size_t len, int n, char *buf, size_t size)
{
	const char *p = line, *const end = line + len;
	size_t out = 0;

	for (; n > 1; n--) {
		p = memchr(p, ' ', (size_t)(end - p));
		if (!p)
			return false;
		p++;
	}
	while (p < end && *p != ' ') {
		char c = *p++;

		if (c == '\\' && end - p >= 3) {
			c = (char)((p[0] - '0') * 64 + (p[1] - '0') * 8 + (p[2] - '0'));
			p += 3;
		}
		if (out + 1 >= size)
			return false;
		buf[out++] = c;
	}
	buf[out] = '\0';
	return true;
}

/* rbind shows what is mounted below, with the options of the host's mount, not of ours. */
static void check_submounts(struct host_run *run, const struct aqe_json *at, const char *source)
{
	const char *line = run->mountinfo;
	char point[PATH_MAX];

	while (*line) {
		const size_t len = strcspn(line, "\n");

		if (!mountinfo_field(line, len, 5, point, sizeof(point)) ||
		    (aqe_path_is_under(point, source) && !aqe_str_eq(point, source)))
			hard_report_fail(run->v.r, HARD_MOUNTS, at, NULL, "no mount below it",
					 "a mount at %s", hard_verify_quote(&run->v, point));
		line += len + (line[len] == '\n');
	}
}

/* Kernel file systems that a bind would carry into the container past the rules for mounts. */
static bool is_kernel_fs(int fd)
{
	static const long magics[] = { PROC_SUPER_MAGIC,    SYSFS_MAGIC,   CGROUP_SUPER_MAGIC,
				       CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,
				       SECURITYFS_MAGIC,    BPF_FS_MAGIC,  NSFS_MAGIC,
				       DEVPTS_SUPER_MAGIC,  SELINUX_MAGIC };
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return true; /* cannot tell: refuse */
	for (size_t i = 0; i < AQE_COUNT(magics); i++)
		if (fs.f_type == magics[i])
			return true;
	return false;
}

/* ---- one mount ---- */

static void check_tree(struct host_run *run, const struct aqe_json *at, const char *source,
		       const struct stat *st, int path_fd)
{
	struct hard_verifier *v = &run->v;
	AQE_AUTO_FD int fd = -1;

	if (!is_right_owner(v, st->st_uid))
		hard_report_fail(v->r, HARD_MOUNTS, at, NULL,
				 "a directory of root, the engine's user or the container",
				 "%s of uid %u", hard_verify_quote(v, source),
				 (unsigned)st->st_uid);
	if (st->st_mode & S_IWOTH)
		hard_report_fail(v->r, HARD_MOUNTS, at, NULL,
				 "a directory that not everybody may write to", "%s, mode %04o",
				 hard_verify_quote(v, source), (unsigned)(st->st_mode & 07777));
	fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		hard_report_unknown(v->r, HARD_ENGINE_SOCKET, "",
				    "a tree that can be searched for sockets", "%s: error %d",
				    hard_verify_quote(v, source), errno);
		return;
	}
	check_sockets(run, at, source, fd);
}

/* The caller holds the sources open already: a name that now leads elsewhere was exchanged. */
static void check_identity(struct host_run *run, const struct aqe_json *mount,
			   const struct stat *st)
{
	const struct hard_ctx *ctx = run->v.ctx;
	const char *dest = aqe_json_str(aqe_json_get(mount, "destination"));

	for (size_t i = 0; i < ctx->n_binds; i++) {
		const struct hard_bind_id *id = &ctx->binds[i];

		if (aqe_str_eq(id->destination, dest) &&
		    (id->dev != st->st_dev || id->ino != st->st_ino))
			hard_report_fail(run->v.r, HARD_MOUNTS, aqe_json_get(mount, "source"), NULL,
					 "a source that stays the same",
					 "%s, which was exchanged meanwhile",
					 hard_verify_quote(&run->v, source_of(mount)));
	}
}

static void check_source(struct host_run *run, const struct aqe_json *mount, bool want_dir)
{
	struct hard_verifier *v = &run->v;
	const struct aqe_json *at = aqe_json_get(mount, "source");
	const char *source = source_of(mount);
	AQE_AUTO_FD int fd = -1;
	struct stat st;

	if (!open_path(v, HARD_MOUNTS, at, source, &fd))
		return;
	if (fstat(fd, &st) != 0) {
		hard_report_unknown(v->r, HARD_MOUNTS, "", "a source that can be looked at",
				    "%s: error %d", hard_verify_quote(v, source), errno);
		return;
	}
	check_identity(run, mount, &st);
	if (S_ISSOCK(st.st_mode))
		hard_report_fail(v->r, HARD_ENGINE_SOCKET, at, NULL, "no socket",
				 "%s, which is one", hard_verify_quote(v, source));
	if (!S_ISDIR(st.st_mode) && (want_dir || !S_ISREG(st.st_mode)))
		hard_report_fail(v->r, HARD_MOUNTS, at, NULL,
				 want_dir ? "a directory" : "a file or directory",
				 "%s, which is something else", hard_verify_quote(v, source));
	if (is_kernel_fs(fd))
		hard_report_fail(v->r, HARD_MOUNTS, at, NULL, "a file system with files",
				 "%s, on a file system of the kernel",
				 hard_verify_quote(v, source));
	else if (S_ISDIR(st.st_mode))
		check_tree(run, at, source, &st, fd);
	if (aqe_json_has_str(aqe_json_get(mount, "options"), "rbind"))
		check_submounts(run, at, source);
}

static void check_root(struct hard_verifier *v)
{
	const struct aqe_json *at = aqe_json_at(v->spec, "/root/path");
	const char *path = aqe_json_str(at);
	AQE_AUTO_FD int fd = -1;
	struct stat st, host;

	if (!path || !open_path(v, HARD_READONLY_ROOTFS, at, path, &fd))
		return;
	if (fstat(fd, &st) != 0 || !S_ISDIR(st.st_mode))
		hard_report_fail(v->r, HARD_READONLY_ROOTFS, at, NULL, "a directory",
				 "%s, which is none", hard_verify_quote(v, path));
	else if (stat("/", &host) == 0 && st.st_dev == host.st_dev && st.st_ino == host.st_ino)
		hard_report_fail(v->r, HARD_READONLY_ROOTFS, at, NULL, "the container's own root",
				 "the root of the host");
	else if (is_kernel_fs(fd))
		hard_report_fail(v->r, HARD_READONLY_ROOTFS, at, NULL, "a file system with files",
				 "%s, on a file system of the kernel", hard_verify_quote(v, path));
}

/* ---- all of them ---- */

static int read_mountinfo(struct aqe_buf *b, struct aqe_err *e)
{
	/* our own, by way of the kernel's link: aqe_fs_read_kernel() would follow none */
	AQE_AUTO_FD int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open '/proc/self/mountinfo'");
	return aqe_fs_read_fd(fd, b, e);
}

int hard_verify_host(const struct hard_ctx *ctx, const struct aqe_json *spec,
		     struct hard_report *report, struct aqe_err *e)
{
	struct host_run run = { .v = { .ctx = ctx, .spec = spec, .r = report } };
	const struct aqe_json *list = aqe_json_get(spec, "mounts");
	AQE_AUTO_BUF struct aqe_buf info = AQE_BUF_INIT(MOUNTINFO_MAX);
	const int rc = read_mountinfo(&info, e);

	if (rc < 0)
		return rc;
	run.mountinfo = aqe_buf_str(&info);
	/* Only says who listens; whether there is a socket does not depend on it. */
	if (hard_sockets_read(&run.bound, NULL) < 0)
		run.bound.n = 0;
	check_root(&run.v);
	for (const struct aqe_json *m = list ? list->first : NULL; m; m = m->next) {
		const char *dest = aqe_json_str(aqe_json_get(m, "destination"));
		const struct aqe_json *options = aqe_json_get(m, "options");

		if (!aqe_json_has_str(options, "bind") && !aqe_json_has_str(options, "rbind"))
			continue;
		check_source(&run, m, dest && hard_rule_policy_mount(ctx, dest));
	}
	hard_sockets_done(&run.bound);
	hard_report_waive(report, ctx->policy, ctx->agent->type, ctx->entry, ctx->now_s);
	if (report->nomem)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the findings");
	return 0;
}
