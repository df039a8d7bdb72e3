/* SPDX-License-Identifier: MIT */
/* What a container uses, from the kernel: cgroup v1, v2 or a mixture, its tmpfs and its network
 * devices. The cgroup is found through /proc/PID/cgroup, never by putting names together. */
#ifndef AQE_SANDBOX_USAGE_H
#define AQE_SANDBOX_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shim/core/err.h"

#define SHIM_UNLIMITED UINT64_MAX

/* One sample; what the kernel does not tell is 0, limits are SHIM_UNLIMITED. */
struct shim_usage {
	int64_t at_ns;               /* CLOCK_MONOTONIC */
	uint64_t cpu_ns, throttled;  /* used so far; periods in which it was held back */
	uint64_t cpu_limit_milli;    /* thousandths of a CPU */
	uint64_t memory, memory_raw; /* without file cache that can be dropped at once, as docker
				      * shows it; the cgroup's own figure, as podman does */
	uint64_t memory_limit, swap;
	uint64_t pids, pids_limit;
	uint64_t disk, disk_limit; /* of the writable tmpfs mounts */
	uint64_t net_in, net_out;  /* bytes over the devices of its network namespace */
	uint64_t oom_kills;
};

/* Open folders of the container's cgroups. They stay readable until the cgroup is removed, also
 * when the process is gone: that is when an OOM kill is seen. */
enum shim_cg { SHIM_CG_CPU, SHIM_CG_CPUACCT, SHIM_CG_MEMORY, SHIM_CG_PIDS, SHIM_CGS };
struct shim_cgroup {
	int fd[SHIM_CGS]; /* -1: not found */
	bool v2[SHIM_CGS];
	int proc_fd; /* /proc/PID; -1 when not open */
};
#define SHIM_CGROUP_INIT                          \
	{                                         \
		{ -1, -1, -1, -1 }, { false }, -1 \
	}
AQE_MUST_CHECK int shim_cgroup_open(pid_t pid, struct shim_cgroup *ret, struct aqe_err *e);
void shim_cgroup_done(struct shim_cgroup *c);
#define SHIM_AUTO_CGROUP AQE_CLEANUP(shim_cgroup_done)

/* AQE_E_ABSENT when neither the cgroups nor the process are there any more. */
AQE_MUST_CHECK int shim_usage_read(const struct shim_cgroup *c, struct shim_usage *ret,
				   struct aqe_err *e);
/* The part that outlives the process: OOM kills so far; 0 when unknown. */
uint64_t shim_usage_oom_kills(const struct shim_cgroup *c);
/* Asks the kernel to give back up to `bytes` of the group's memory. */
AQE_MUST_CHECK int shim_usage_reclaim(const struct shim_cgroup *c, uint64_t bytes,
				      struct aqe_err *e);

/* ---- pure ---- */
/* CPU use between two samples in percent of one CPU; 0 when no time passed. */
double shim_usage_cpu_percent(const struct shim_usage *before, const struct shim_usage *now);
/* Part of a limit in percent; 0 without a limit. */
double shim_usage_percent(uint64_t used, uint64_t limit);
/* The number behind `key` and a blank at the start of a line. */
bool shim_usage_field(const char *text, const char *key, uint64_t *ret);

#endif
