/* SPDX-License-Identifier: MIT */
/* Reading the limits in force from the cgroup file systems. v1 was measured (kernel 6.18); v2 is
 * written by Documentation/admin-guide/cgroup-v2.rst of the kernel and tested with directories made
 * for it. A limit is looked for in the container's own group first and, only if that is too wide,
 * in the groups above it, which bind it as well. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

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

/* A group and, above it, those that bind it as well. */
struct group {
	struct hard_fx_cgdir dir;
	char path[PATH_MAX];
	size_t len; /* of the part of `path` that is looked at; shorter when looking above */
};

/* Moves on to the parent group. The path is the kernel's own and a cgroup file system has no links,
 * so cutting the last name is what ".." would do. */
static void go_up(struct group *g)
{
	while (g->len > 0 && g->path[g->len - 1] != '/')
		g->len--;
	if (g->len > 0)
		g->len--;
}

/* Opens a file of the group. 1, 0 (no such file) or an error; AQE_E_UNTRUSTED when it lies on no
 * cgroup file system, because something is mounted over it. */
static int open_file(const struct hard_fx_limits_in *in, const struct group *g, const char *name,
		     int *ret_fd, struct aqe_err *e)
{
	char path[PATH_MAX + 64];
	struct statfs fs;
	int n = snprintf(path, sizeof(path), "%.*s/%s", (int)g->len, g->path, name);
	AQE_AUTO_FD int fd = -1;

	if (n < 0 || (size_t)n >= sizeof(path))
		return aqe_err_set(e, AQE_E_LIMIT, 0, "path of a cgroup is too long");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open '%s'", path);
	if (!in->any_fs && fstatfs(fd, &fs) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "statfs '%s'", path);
	if (!in->any_fs && (uint64_t)fs.f_type != (g->dir.v2 ? (uint64_t)CGROUP2_SUPER_MAGIC
							     : (uint64_t)CGROUP_SUPER_MAGIC))
		return aqe_err_set(e, AQE_E_UNTRUSTED, 0, "'%s' is no cgroup's", path);
	*ret_fd = AQE_TAKE_FD(fd);
	return 1;
}

/* Longest value of a limit file: two numbers. The kernel gives such a file in one piece. */
#define VALUE_MAX_BYTES 128

static int read_value(const struct hard_fx_limits_in *in, const struct group *g, const char *name,
		      char ret[VALUE_MAX_BYTES], struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	ssize_t n;
	int r = open_file(in, g, name, &fd, e);

	if (r <= 0)
		return r;
	n = read(fd, ret, VALUE_MAX_BYTES - 1);
	if (n < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "read '%s'", name);
	ret[n] = '\0';
	if (n == VALUE_MAX_BYTES - 1)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "'%s' is too long for a value", name);
	return 1;
}

static int read_number(const struct hard_fx_limits_in *in, const struct group *g, const char *name,
		       uint64_t *ret, struct aqe_err *e)
{
	char text[VALUE_MAX_BYTES];
	int r = read_value(in, g, name, text, e);

	if (r > 0 && hard_fx_limit_parse(text, ret, e) < 0)
		return e ? aqe_err_wrap(e, "%s", name) : AQE_E_MALFORMED;
	return r;
}

/* Thousandths of a CPU, rounded up. */
static uint64_t to_milli(uint64_t quota, uint64_t period)
{
	if (quota == HARD_FX_UNLIMITED || period == 0 || quota > UINT64_MAX / 1000 - period)
		return HARD_FX_UNLIMITED;
	return (quota * 1000 + period - 1) / period;
}

static int read_cpu(const struct hard_fx_limits_in *in, const struct group *g, uint64_t *ret,
		    struct aqe_err *e)
{
	char text[VALUE_MAX_BYTES];
	uint64_t quota = HARD_FX_UNLIMITED, period = 0;
	int r;

	if (g->dir.v2) {
		r = read_value(in, g, "cpu.max", text, e);
		if (r > 0 && hard_fx_cpumax_parse(text, &quota, &period, e) < 0)
			return e ? aqe_err_wrap(e, "cpu.max") : AQE_E_MALFORMED;
	} else {
		r = read_number(in, g, "cpu.cfs_quota_us", &quota, e);
		if (r > 0)
			r = read_number(in, g, "cpu.cfs_period_us", &period, e);
	}
	if (r > 0)
		*ret = to_milli(quota, period);
	return r;
}

static int read_limit(const struct hard_fx_limits_in *in, const struct group *g, enum limit which,
		      uint64_t *ret, struct aqe_err *e)
{
	if (which == LIMIT_CPU)
		return read_cpu(in, g, ret, e);
	return read_number(in, g, g->dir.v2 ? LIMITS[which].v2 : LIMITS[which].v1, ret, e);
}

/* The limit of the group and, while it is above `ceiling`, the least of those above it. 1, 0 (the
 * group itself has no such file) or an error. */
static int lowest_limit(const struct hard_fx_limits_in *in, struct group g, enum limit which,
			uint64_t ceiling, uint64_t *ret, struct aqe_err *e)
{
	uint64_t lowest = HARD_FX_UNLIMITED, v = 0;
	unsigned level;
	int r = read_limit(in, &g, which, &lowest, e);

	if (r <= 0)
		return r;
	for (level = 0; r > 0 && lowest > ceiling && level < g.dir.levels; level++) {
		go_up(&g);
		r = read_limit(in, &g, which, &v, e); /* 0: the root has no limits */
		if (r > 0 && v < lowest)
			lowest = v;
	}
	if (r < 0)
		return r;
	*ret = lowest;
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
	struct aqe_err why = AQE_ERR_INIT;
	int r = aqe_fs_read_kernel(in->proc_dir, "swaps", &b, &why);

	if (r < 0 && r != AQE_E_ABSENT) {
		if (e)
			*e = why;
		return r;
	}
	*ret = r < 0 || hard_fx_swaps_none(aqe_buf_str(&b)); /* absent: built without swap */
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
	r = lowest_limit(in, *g, which, ceiling, &v, e);
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
	AQE_AUTO_FD int fd = -1;
	char line[HARD_FX_DEVLINE_MAX];
	int r = open_file(in, g, "devices.list", &fd, e);

	if (r == 0)
		hard_report_unknown(report, HARD_DEVICES, in->where, "a list of devices",
				    "the group has no devices.list");
	if (r <= 0)
		return r;
	r = aqe_fs_read_fd(fd, &b, e);
	if (r == 0)
		r = hard_fx_devices_wide(aqe_buf_str(&b), line, e);
	if (r > 0)
		hard_report_fail(report, HARD_DEVICES, NULL, in->where,
				 "no device but the default ones", "devices.list admits '%s'",
				 line);
	return r < 0 ? r : 0;
}

/* 1 and the group that a controller limits the process by, 0, or an error. */
static int find_group(const struct hard_fx_limits_in *in, const char *controller, struct group *ret,
		      struct aqe_err *e)
{
	int n;

	ret->dir = (struct hard_fx_cgdir){ 0 };
	if (!hard_fx_cgroup_locate(in->groups, in->n_groups, in->mounts, in->n_mounts, controller,
				   &ret->dir))
		return 0;
	n = snprintf(ret->path, sizeof(ret->path), "%s%s", ret->dir.point, ret->dir.below);
	if (n < 0 || (size_t)n >= sizeof(ret->path))
		return aqe_err_set(e, AQE_E_LIMIT, 0, "path of a cgroup is too long");
	ret->len = (size_t)n;
	return 1;
}

static int judge_controller(const struct hard_fx_limits_in *in, enum limit which,
			    struct hard_report *report, struct aqe_err *e)
{
	struct group g;
	int r = find_group(in, LIMITS[which].controller, &g, e);

	if (r == 0)
		hard_report_unknown(report, LIMITS[which].prop, in->where, "a limit",
				    "no cgroup hierarchy with '%s' is mounted",
				    LIMITS[which].controller);
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
	struct group g;
	int r = find_group(in, "devices", &g, e);

	return r > 0 && !g.dir.v2 ? judge_devices(in, &g, report, e) : (r < 0 ? r : 0);
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
