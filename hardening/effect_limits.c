/* SPDX-License-Identifier: MIT */
/* Reading the limits in force from the cgroup file systems. v1 was measured (kernel 6.18); v2 is
 * written by Documentation/admin-guide/cgroup-v2.rst of the kernel and tested with directories made
 * for it. A limit is looked for in the container's own group first and, only if that is too wide,
 * in the groups above it, which bind it as well. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#include "hardening/effect_int.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define CGFILE_MAX_BYTES 65536 /* devices.list: a line a rule */

enum limit {
	LIMIT_PIDS,
	LIMIT_MEMORY,
	LIMIT_SWAP, /* v1: memory and swap together; v2: swap alone */
	LIMIT_CPU,  /* in thousandths of a CPU */
	LIMIT_COUNT,
};

static const struct limit_row {
	enum hard_prop prop;
	const char *controller, *v1, *v2;
} LIMITS[LIMIT_COUNT] = {
	[LIMIT_PIDS] = { HARD_PIDS_LIMIT, "pids", "pids.max", "pids.max" },
	[LIMIT_MEMORY] = { HARD_MEMORY_LIMIT, "memory", "memory.limit_in_bytes", "memory.max" },
	[LIMIT_SWAP] = { HARD_MEMORY_LIMIT, "memory", "memory.memsw.limit_in_bytes",
			 "memory.swap.max" },
	[LIMIT_CPU] = { HARD_CPU_LIMIT, "cpu", "cpu.cfs_quota_us", "cpu.max" },
};

/* An open group. */
struct group {
	struct hard_fx_cgdir dir;
	int fd;
};

static void close_group(const struct group *g)
{
	if (g->fd >= 0)
		(void)close(g->fd); /* O_PATH: nothing to lose */
}

/* Opens `dir`; AQE_E_UNTRUSTED when it is no cgroup file system (something is mounted over it). */
static int open_group(const struct hard_fx_limits_in *in, const struct hard_fx_cgdir *dir,
		      int *ret_fd, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf path = AQE_BUF_INIT(8192);
	AQE_AUTO_FD int fd = -1;
	struct statfs fs;
	int r;

	aqe_buf_puts(&path, dir->point);
	aqe_buf_puts(&path, dir->below);
	r = aqe_buf_ok(&path, e);
	if (r < 0)
		return r;
	fd = open(aqe_buf_str(&path), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open '%s'", aqe_buf_str(&path));
	if (!in->any_fs) {
		if (fstatfs(fd, &fs) < 0)
			return aqe_err_set(e, AQE_E_SYS, errno, "statfs '%s'", aqe_buf_str(&path));
		if ((uint64_t)fs.f_type !=
		    (dir->v2 ? (uint64_t)CGROUP2_SUPER_MAGIC : (uint64_t)CGROUP_SUPER_MAGIC))
			return aqe_err_set(e, AQE_E_UNTRUSTED, 0, "'%s' is no cgroup",
					   aqe_buf_str(&path));
	}
	*ret_fd = AQE_TAKE_FD(fd);
	return 0;
}

/* 1: read into `b`; 0: no such file; or an error. */
static int read_file(int fd, const char *name, struct aqe_buf *b, struct aqe_err *e)
{
	int r;

	aqe_buf_clear(b);
	r = aqe_fs_read_kernel(fd, name, b, e);
	if (r == AQE_E_ABSENT)
		return 0;
	return r < 0 ? r : 1;
}

static int read_number(int fd, const char *name, uint64_t *ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(256);
	int r = read_file(fd, name, &b, e);

	if (r <= 0)
		return r;
	r = hard_fx_limit_parse(aqe_buf_str(&b), ret, e);
	return r < 0 ? aqe_err_wrap(e, "%s", name) : 1;
}

/* Thousandths of a CPU, rounded up. */
static uint64_t to_milli(uint64_t quota, uint64_t period)
{
	if (quota == HARD_FX_UNLIMITED || period == 0 || quota > UINT64_MAX / 1000 - period)
		return HARD_FX_UNLIMITED;
	return (quota * 1000 + period - 1) / period;
}

static int read_cpu(int fd, bool v2, uint64_t *ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(256);
	uint64_t quota = HARD_FX_UNLIMITED, period = 0;
	int r;

	if (v2) {
		r = read_file(fd, "cpu.max", &b, e);
		if (r > 0 && hard_fx_cpumax_parse(aqe_buf_str(&b), &quota, &period, e) < 0)
			return aqe_err_wrap(e, "cpu.max");
	} else {
		r = read_number(fd, "cpu.cfs_quota_us", &quota, e);
		if (r > 0)
			r = read_number(fd, "cpu.cfs_period_us", &period, e);
	}
	if (r > 0)
		*ret = to_milli(quota, period);
	return r;
}

static int read_limit(int fd, bool v2, enum limit which, uint64_t *ret, struct aqe_err *e)
{
	if (which == LIMIT_CPU)
		return read_cpu(fd, v2, ret, e);
	return read_number(fd, v2 ? LIMITS[which].v2 : LIMITS[which].v1, ret, e);
}

/* The limit of the group and, while it is above `ceiling`, the least of those above it. 1, 0 (the
 * group itself has no such file) or an error. */
static int lowest_limit(const struct group *g, enum limit which, uint64_t ceiling, uint64_t *ret,
			struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	uint64_t least = HARD_FX_UNLIMITED, v = 0;
	unsigned level;
	int r = read_limit(g->fd, g->dir.v2, which, &least, e);

	if (r <= 0)
		return r;
	for (level = 0; r > 0 && least > ceiling && level < g->dir.levels; level++) {
		int up = openat(fd < 0 ? g->fd : fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (up < 0)
			return aqe_err_set(e, AQE_E_SYS, errno, "open the parent of a cgroup");
		if (fd >= 0)
			(void)close(fd); /* O_PATH: nothing to lose */
		fd = up;
		r = read_limit(fd, g->dir.v2, which, &v, e); /* 0: the root has no limits */
		if (r > 0 && v < least)
			least = v;
	}
	if (r < 0)
		return r;
	*ret = least;
	return 1;
}

/* The spec's own value, or HARD_FX_UNLIMITED where it says nothing. */
static uint64_t spec_limit(const struct aqe_json *resources, const char *pointer)
{
	uint64_t v;

	return aqe_json_to_u64(aqe_json_at(resources, pointer), INT64_MAX, &v) ? v
									       : HARD_FX_UNLIMITED;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What may be in force at most: the agent type's ceiling, and what the spec says. */
static uint64_t ceiling_of(const struct hard_effect *fx, enum limit which)
{
	const struct aqe_json *res = aqe_json_at(fx->spec, "/linux/resources");
	const struct hard_agent *agent = fx->ctx->agent;

	switch (which) {
	case LIMIT_PIDS:
		return least(agent->pids, spec_limit(res, "/pids/limit"));
	case LIMIT_MEMORY:
		return least(agent->memory_bytes, spec_limit(res, "/memory/limit"));
	case LIMIT_SWAP:
		return least(agent->memory_bytes, spec_limit(res, "/memory/swap"));
	case LIMIT_CPU:
		return least(agent->cpus_milli, to_milli(spec_limit(res, "/cpu/quota"),
							 spec_limit(res, "/cpu/period")));
	case LIMIT_COUNT:
		break;
	}
	return 0;
}

static void fail_limit(const struct hard_fx_limits_in *in, enum limit which, const char *file,
		       uint64_t ceiling, struct hard_report *report, const char *found)
{
	char wanted[64];

	(void)snprintf(wanted, sizeof(wanted), "at most %" PRIu64 "%s", ceiling,
		       which == LIMIT_CPU ? " thousandths of a CPU" : "");
	hard_report_fail(report, LIMITS[which].prop, NULL, in->where, wanted, "%s: %s", file,
			 found);
}

/* True when the host has no swap at all, so that a kernel without swap accounting does no harm. */
static int host_has_no_swap(const struct hard_fx_limits_in *in, bool *ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(CGFILE_MAX_BYTES);
	int r = read_file(in->proc_dir, "swaps", &b, e);

	if (r < 0)
		return r;
	*ret = r == 0 || hard_fx_swaps_none(aqe_buf_str(&b)); /* absent: built without swap */
	return 0;
}

/* The kernel shows no such file. */
static int judge_absent(const struct hard_fx_limits_in *in, enum limit which, const char *file,
			uint64_t ceiling, struct hard_report *report, struct aqe_err *e)
{
	bool no_swap = false;
	int r;

	if (which != LIMIT_SWAP) {
		fail_limit(in, which, file, ceiling, report, "the group has no such limit");
		return 0;
	}
	r = host_has_no_swap(in, &no_swap, e);
	if (r < 0)
		return r;
	if (!no_swap)
		fail_limit(
			in, which, file, ceiling, report,
			"the kernel does not account swap (swapaccount=1) and the host has some");
	return 0;
}

static int judge_limit(const struct hard_fx_limits_in *in, const struct group *g, enum limit which,
		       struct hard_report *report, struct aqe_err *e)
{
	uint64_t ceiling = ceiling_of(in->fx, which), v = HARD_FX_UNLIMITED;
	const char *file = g->dir.v2 ? LIMITS[which].v2 : LIMITS[which].v1;
	char found[32];
	int r;

	if (which == LIMIT_SWAP && g->dir.v2) /* swap alone: what memory leaves of both */
		ceiling -= least(ceiling, ceiling_of(in->fx, LIMIT_MEMORY));
	r = lowest_limit(g, which, ceiling, &v, e);
	if (r < 0)
		return r;
	if (r == 0)
		return judge_absent(in, which, file, ceiling, report, e);
	if (v <= ceiling)
		return 0;
	(void)snprintf(found, sizeof(found), "%" PRIu64, v);
	fail_limit(in, which, file, ceiling, report, v == HARD_FX_UNLIMITED ? "none" : found);
	return 0;
}

/* v1 only: with v2 the rules are a BPF program that cannot be read back; there the nodes in /dev
 * and nodev mounts are what was checked. A rootless engine cannot set rules; its container cannot
 * make nodes either. */
static int judge_devices(const struct hard_fx_limits_in *in, const struct group *g,
			 struct hard_report *report, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(CGFILE_MAX_BYTES);
	char line[HARD_FX_DEVLINE_MAX];
	int r = read_file(g->fd, "devices.list", &b, e);

	if (r > 0)
		r = hard_fx_devices_wide(aqe_buf_str(&b), line, e);
	if (r > 0)
		hard_report_fail(report, HARD_DEVICES, NULL, in->where,
				 "no device but the default ones", "devices.list admits '%s'",
				 line);
	return r < 0 ? r : 0;
}

/* Finds and opens a controller's group. 1, 0 (cannot be decided; reported) or an error. */
static int find_group(const struct hard_fx_limits_in *in, const char *controller,
		      enum hard_prop prop, struct group *ret, struct hard_report *report,
		      struct aqe_err *e)
{
	int r;

	if (!hard_fx_cgroup_locate(in->groups, in->n_groups, in->mounts, in->n_mounts, controller,
				   &ret->dir)) {
		hard_report_unknown(report, prop, in->where, "a limit",
				    "no cgroup hierarchy with '%s' is mounted", controller);
		return 0;
	}
	r = open_group(in, &ret->dir, &ret->fd, e);
	return r < 0 ? r : 1;
}

static int judge_controller(const struct hard_fx_limits_in *in, enum limit which,
			    struct hard_report *report, struct aqe_err *e)
{
	AQE_CLEANUP(close_group) struct group g = { .fd = -1 };
	int r = find_group(in, LIMITS[which].controller, LIMITS[which].prop, &g, report, e);

	if (r <= 0)
		return r;
	r = judge_limit(in, &g, which, report, e);
	if (r == 0 && which == LIMIT_MEMORY)
		r = judge_limit(in, &g, LIMIT_SWAP, report, e);
	return r < 0 ? r : 0;
}

static int judge_device_group(const struct hard_fx_limits_in *in, struct hard_report *report,
			      struct aqe_err *e)
{
	AQE_CLEANUP(close_group) struct group g = { .fd = -1 };
	int r;

	if (!hard_fx_cgroup_locate(in->groups, in->n_groups, in->mounts, in->n_mounts, "devices",
				   &g.dir) ||
	    g.dir.v2)
		return 0;
	r = open_group(in, &g.dir, &g.fd, e);
	return r < 0 ? r : judge_devices(in, &g, report, e);
}

int hard_fx_limits_judge(const struct hard_fx_limits_in *in, struct hard_report *report,
			 struct aqe_err *e)
{
	static const enum limit separate[] = { LIMIT_PIDS, LIMIT_MEMORY, LIMIT_CPU };
	const struct hard_host *host = in->fx->ctx->host;
	size_t i;
	int r;

	for (i = 0; i < AQE_COUNT(separate); i++) {
		if (!host->cgroup_limits) {
			hard_report_fail(report, LIMITS[separate[i]].prop, NULL, in->where,
					 "a limit in force",
					 "rootless engine on cgroup v1 applies no limits");
			continue;
		}
		r = judge_controller(in, separate[i], report, e);
		if (r < 0)
			return r;
		hard_report_pass(report, LIMITS[separate[i]].prop);
	}
	return host->in_userns ? 0 : judge_device_group(in, report, e);
}
