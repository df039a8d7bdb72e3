/* SPDX-License-Identifier: MIT */
/* The effect check. Everything about the process goes through one open /proc/PID: when it ends, and
 * even when its number is used again, reads fail (ENOENT, ESRCH) instead of showing another one.
 *
 * Measured (crun 1.8.1, runc 1.1.5; rootful with and without user namespace, rootless): at
 * `created` the process that waits for the start signal already has its final ids, groups, umask,
 * all five capability sets, no_new_privs, namespaces, mounts and cgroups. Only seccomp differs:
 * crun loads the filter after the start signal (before it waits when no_new_privs is off), runc
 * before it waits. `runc init` has more threads; the ids are those of its main thread, the one that
 * execs. */
#include "hardening/effect.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "hardening/effect_int.h"
#include "shim/core/cleanup.h"
#include "shim/core/clock.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define PROC_FILE_MAX_BYTES  (1U << 20)  /* mountinfo; the others are far smaller */
#define OWN_MOUNTS_MAX       64          /* cgroup mounts of ours */
#define OWN_MOUNTS_MAX_BYTES (16U << 20) /* a busy host has thousands of mounts */
#define ARENA_MAX_BYTES      (4U << 20)
/* Most time between the start signal and the filter. Measured: both runtimes' `start` returns when
 * it is in force; the wait is for loaded hosts. */
#define START_WAIT_MS 10000 /* fifty starts at once on two processors take seconds each */
#define START_NAP_NS  50000 /* doubled each time */

/* One check under way. */
struct check {
	const struct hard_effect *fx;
	struct hard_report *report;
	struct aqe_arena *arena;
	int proc_dir, self_dir; /* /proc, /proc/self */
	bool init_hidden;       /* the namespaces of pid 1 cannot be seen */
};

static const char *where(struct check *c, const char *file)
{
	const char *s = aqe_arena_fmt(c->arena, "/proc/%d/%s", (int)c->fx->pid, file);

	return s ? s : file;
}

static int gone(const struct hard_effect *fx, struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_ABSENT, 0, "process %d has ended", (int)fx->pid);
}

/* Reads a file that every live process has. AQE_E_ABSENT means that it has ended: ENOENT when the
 * file is opened after that, ESRCH when it is read. */
static int read_proc(const struct hard_effect *fx, const char *name, struct aqe_buf *b,
		     struct aqe_err *e)
{
	struct aqe_err why = AQE_ERR_INIT;
	int r;

	aqe_buf_clear(b);
	r = aqe_fs_read_kernel(fx->proc_fd, name, b, &why);
	if (r == AQE_E_ABSENT || (r == AQE_E_SYS && why.sys == ESRCH))
		return gone(fx, e);
	if (r < 0 && e)
		*e = why;
	return r;
}

static bool has_ended(char state)
{
	return state == 'Z' || state == 'X';
}

static int read_status(const struct hard_effect *fx, struct hard_fx_status *ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(PROC_FILE_MAX_BYTES);
	int r = read_proc(fx, "status", &b, e);

	return r < 0 ? r : hard_fx_status_parse(aqe_buf_str(&b), ret, e);
}

/* ---- the process ---- */

static int check_process(struct check *c, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(PROC_FILE_MAX_BYTES);
	struct hard_fx_process *p = aqe_arena_raw(c->arena, sizeof(*p));
	int r;

	if (!p)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "effect check");
	p->fx = c->fx;
	p->where = where(c, "status");
	r = read_status(c->fx, &p->status, e);
	if (r == 0 && has_ended(p->status.state))
		r = gone(c->fx, e);
	if (r == 0)
		r = read_proc(c->fx, "uid_map", &b, e);
	if (r == 0)
		r = hard_fx_idmap_parse(aqe_buf_str(&b), p->uid_map, HARD_IDMAP_MAX, &p->n_uid, e);
	if (r == 0)
		r = read_proc(c->fx, "gid_map", &b, e);
	if (r == 0)
		r = hard_fx_idmap_parse(aqe_buf_str(&b), p->gid_map, HARD_IDMAP_MAX, &p->n_gid, e);
	if (r < 0)
		return r;
	hard_fx_privileges_judge(&p->status, p->where, c->report);
	return hard_fx_ids_judge(p, c->arena, c->report, e);
}

/* ---- namespaces ---- */

static const struct ns_row {
	const char *type; /* in the spec */
	const char *file;
	const char *init; /* of the first process of our pid namespace */
	bool always;      /* the profile wants it new, whatever the spec says */
} NAMESPACES[] = {
	{ "pid", "ns/pid", "1/ns/pid", true },           { "network", "ns/net", "1/ns/net", true },
	{ "ipc", "ns/ipc", "1/ns/ipc", true },           { "uts", "ns/uts", "1/ns/uts", true },
	{ "mount", "ns/mnt", "1/ns/mnt", true },         { "user", "ns/user", "1/ns/user", false },
	{ "cgroup", "ns/cgroup", "1/ns/cgroup", false },
};

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* True when `its` is the namespace of pid 1. A rootless engine, or one without CAP_SYS_PTRACE over
 * pid 1, cannot tell: then ours is all there is to compare with. */
static bool is_init(struct check *c, const struct ns_row *row, const struct stat *its)
{
	struct stat init;

	if (c->init_hidden)
		return false;
	if (fstatat(c->proc_dir, row->init, &init, 0) < 0) {
		c->init_hidden = true;
		return false;
	}
	return same(its, &init);
}

static int check_namespace(struct check *c, const struct ns_row *row, struct aqe_err *e)
{
	bool asked = row->always || hard_fx_spec_namespace(c->fx->spec, row->type);
	struct stat its, ours;

	/* a cgroup namespace nobody asked for hides no more than it must */
	if (!asked && !aqe_str_eq(row->type, "user"))
		return 0;
	if (fstatat(c->fx->proc_fd, row->file, &its, 0) < 0)
		return errno == ENOENT || errno == ESRCH
			       ? gone(c->fx, e)
			       : aqe_err_set(e, AQE_E_SYS, errno, "stat '%s'", row->file);
	if (fstatat(c->self_dir, row->file, &ours, 0) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "stat our '%s'", row->file);
	if (!asked && !same(&its, &ours)) /* other mappings than were judged */
		hard_report_fail(c->report, HARD_NAMESPACES, NULL, where(c, row->file), "ours",
				 "another user namespace");
	if (asked && same(&its, &ours))
		hard_report_fail(c->report, HARD_NAMESPACES, NULL, where(c, row->file),
				 "a new namespace", "the %s namespace of the runtime", row->type);
	else if (asked && is_init(c, row, &its))
		hard_report_fail(c->report, HARD_NAMESPACES, NULL, where(c, row->file),
				 "a new namespace", "the %s namespace of the host", row->type);
	return 0;
}

static int check_namespaces(struct check *c, struct aqe_err *e)
{
	size_t i;
	int r;

	for (i = 0; i < AQE_COUNT(NAMESPACES); i++) {
		r = check_namespace(c, &NAMESPACES[i], e);
		if (r < 0)
			return r;
	}
	hard_report_pass(c->report, HARD_NAMESPACES);
	return 0;
}

/* ---- mounts ---- */

/* The container's root must be the directory of the spec, which the caller checked by name. */
static int check_root(struct check *c, struct hard_fx_mounts_in *in, struct aqe_err *e)
{
	const char *path = aqe_json_str(aqe_json_at(c->fx->spec, "/root/path"));
	struct hard_fx_node node;
	struct stat st;
	int r = in->root.look(in->root.self, "/", &node, e);

	if (r < 0)
		return r;
	if (!path || path[0] != '/') /* relative to a bundle that is not ours to know */
		return 0;
	if (lstat(path, &st) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "stat the root '%s' of the spec", path);
	if (r == 0 || node.dev != st.st_dev || node.ino != st.st_ino)
		hard_report_fail(c->report, HARD_MOUNTS, NULL, where(c, "root"),
				 "the root.path of the spec", "another directory");
	return 0;
}

static int check_mounts(struct check *c, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(PROC_FILE_MAX_BYTES);
	AQE_CLEANUP(hard_fx_root_close) struct hard_fx_rootdir dir = { -1 };
	struct hard_fx_mounts_in in = { .spec = c->fx->spec,
					.binds = c->fx->binds,
					.n_binds = c->fx->n_binds,
					.where = where(c, "mountinfo") };
	struct hard_fx_mount *list = NULL;
	int r = read_proc(c->fx, "mountinfo", &b, e);

	if (r == 0 && !b.p)
		r = aqe_err_set(e, AQE_E_MALFORMED, 0, "mountinfo is empty");
	if (r == 0)
		r = hard_fx_mounts_parse(c->arena, b.p, &list, &in.n_mounts, e);
	if (r == 0)
		r = hard_fx_root_open(c->fx->proc_fd, &dir, &in.root, e);
	in.mounts = list;
	if (r == 0)
		r = check_root(c, &in, e);
	return r < 0 ? r : hard_fx_mounts_judge(&in, c->report, e);
}

/* ---- cgroups ---- */

/* The cgroup file systems among our own mounts. A line that is not understood is passed over here:
 * a host may have any mounts, and a hierarchy that is not found fails. */
static int own_cgroup_mounts(struct check *c, struct aqe_buf *b, struct hard_fx_mount *ret,
			     size_t *ret_n, struct aqe_err *e)
{
	struct hard_fx_mount m;
	size_t n = 0;
	char *p;
	int r = aqe_fs_read_kernel(c->self_dir, "mountinfo", b, e);

	if (r < 0)
		return r;
	for (p = b->p; p && (r = hard_fx_mount_next(&p, &m, NULL)) != 0;)
		if (r > 0 && n < OWN_MOUNTS_MAX && aqe_starts(m.fstype, "cgroup"))
			ret[n++] = m;
	*ret_n = n;
	return 0;
}

static int check_limits(struct check *c, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf groups = AQE_BUF_INIT(PROC_FILE_MAX_BYTES);
	AQE_AUTO_BUF struct aqe_buf mounts = AQE_BUF_INIT(OWN_MOUNTS_MAX_BYTES);
	struct hard_fx_cgroup list[HARD_FX_CGROUP_MAX];
	struct hard_fx_mount own[OWN_MOUNTS_MAX];
	struct hard_fx_limits_in in = { .fx = c->fx,
					.groups = list,
					.mounts = own,
					.proc_dir = c->proc_dir,
					.where = where(c, "cgroup") };
	int r = read_proc(c->fx, "cgroup", &groups, e);

	if (r == 0 && groups.p)
		r = hard_fx_cgroups_parse(groups.p, list, HARD_FX_CGROUP_MAX, &in.n_groups, e);
	if (r == 0)
		r = own_cgroup_mounts(c, &mounts, own, &in.n_mounts, e);
	return r < 0 ? r : hard_fx_limits_judge(&in, c->report, e);
}

/* ---- network ---- */

/* 1 when a route leads to something else than `lo`. Without IPv6 there is no ipv6_route. */
static int check_routes(struct check *c, const char *file, bool v6, char name[HARD_FX_NAME_MAX],
			struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(PROC_FILE_MAX_BYTES);
	int r = aqe_fs_read_kernel(c->fx->proc_fd, file, &b, e);

	if (r == AQE_E_ABSENT)
		return 0;
	if (r < 0)
		return r;
	r = hard_fx_route_first(aqe_buf_str(&b), v6, name, e);
	if (r > 0)
		hard_report_fail(c->report, HARD_NETWORK, NULL, where(c, file),
				 "no route but those of lo", "a route through '%s'", name);
	return r;
}

static int check_network(struct check *c, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(PROC_FILE_MAX_BYTES);
	char names[HARD_FX_NETDEV_MAX][HARD_FX_NAME_MAX], route[HARD_FX_NAME_MAX];
	size_t i, n = 0, tunnels = 0;
	int r = read_proc(c->fx, "net/dev", &b, e);

	if (r == 0)
		r = hard_fx_netdev_parse(aqe_buf_str(&b), names, HARD_FX_NETDEV_MAX, &n, e);
	if (r < 0)
		return r;
	for (i = 0; i < n; i++) {
		if (aqe_str_eq(names[i], "lo"))
			continue;
		if (hard_fx_netdev_fallback(names[i]))
			tunnels++;
		else
			hard_report_fail(c->report, HARD_NETWORK, NULL, where(c, "net/dev"),
					 "no interface but lo", "interface '%s'", names[i]);
	}
	if (tunnels) { /* without another interface no route can lead anywhere */
		r = check_routes(c, "net/route", false, route, e);
		if (r >= 0)
			r = check_routes(c, "net/ipv6_route", true, route, e);
	}
	if (r < 0)
		return r;
	hard_report_pass(c->report, HARD_NETWORK);
	return 0;
}

/* ---- entry points ---- */

int hard_effect_created(const struct hard_effect *fx, struct hard_report *report, struct aqe_err *e)
{
	static int (*const steps[])(struct check * c, struct aqe_err * e) = {
		check_process, check_namespaces, check_mounts, check_limits, check_network,
	};
	AQE_AUTO_ARENA struct aqe_arena *arena = aqe_arena_new(ARENA_MAX_BYTES);
	AQE_AUTO_FD int proc_dir = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	AQE_AUTO_FD int self_dir = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct check c = { fx, report, arena, proc_dir, self_dir, false };
	size_t i;
	int r;

	if (!arena)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "effect check");
	if (proc_dir < 0 || self_dir < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open '/proc'");
	if (!fx->ctx->host)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "effect check without host facts");
	for (i = 0; i < AQE_COUNT(steps); i++) {
		r = steps[i](&c, e);
		if (r < 0)
			return e ? aqe_err_wrap(e, "effect check") : r;
	}
	return 0;
}

/* Waits until the filter is in force, the process has ended (1) or time is up. */
static int wait_for_filter(const struct hard_effect *fx, struct hard_fx_status *ret,
			   struct aqe_err *e)
{
	const struct aqe_clock *clock = &AQE_CLOCK_SYSTEM;
	int64_t end = clock->mono_ns(clock->self) + (int64_t)START_WAIT_MS * 1000000;
	struct timespec nap = { 0, START_NAP_NS };
	int r;

	for (;;) {
		r = read_status(fx, ret, e);
		if (r == AQE_E_ABSENT || (r == 0 && has_ended(ret->state)))
			return 1;
		if (r < 0 || ret->seccomp == 2 || clock->mono_ns(clock->self) >= end)
			return r;
		(void)nanosleep(&nap, NULL); /* sooner is no harm */
		if (nap.tv_nsec < 20000000)
			nap.tv_nsec *= 2;
	}
}

int hard_effect_started(const struct hard_effect *fx, struct hard_report *report, struct aqe_err *e)
{
	static const enum hard_prop judged[] = { HARD_CAPABILITIES, HARD_NO_NEW_PRIVILEGES,
						 HARD_SECCOMP };
	struct hard_fx_status status;
	char file[48];
	size_t i;
	int r = wait_for_filter(fx, &status, e);

	if (r < 0)
		return e ? aqe_err_wrap(e, "effect check after start") : r;
	if (r == 0) {
		(void)snprintf(file, sizeof(file), "/proc/%d/status", (int)fx->pid);
		hard_fx_privileges_judge(&status, file, report);
		if (status.seccomp != 2 || (status.has_filters && status.seccomp_filters == 0))
			hard_report_fail(report, HARD_SECCOMP, NULL, file,
					 "Seccomp 2 with a filter",
					 "Seccomp %" PRIu64 ", %" PRIu64 " filters", status.seccomp,
					 status.seccomp_filters);
	}
	for (i = 0; i < AQE_COUNT(judged); i++)
		hard_report_pass(report, judged[i]);
	return 0;
}
