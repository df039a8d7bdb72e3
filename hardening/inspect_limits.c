/* SPDX-License-Identifier: MIT */
#include "hardening/inspect_in.h"

#include <inttypes.h>

#include "shim/core/text.h"

#define NANO INT64_C(1000000000)

static const enum hard_prop limit_props[] = { HARD_PIDS_LIMIT, HARD_MEMORY_LIMIT, HARD_CPU_LIMIT };

static bool in_range(struct hard_inspector *i, enum hard_prop prop, const struct aqe_json *v,
		     int64_t min, int64_t max, int64_t *ret)
{
	if (aqe_json_to_i64(v, min, max, ret))
		return true;
	hard_report_fail(i->v.r, prop, v, NULL,
			 aqe_arena_fmt(i->v.r->arena, "%" PRId64 " to %" PRId64, min, max), "%s",
			 v->type == AQE_JSON_NUMBER ? v->text : "null");
	return false;
}

static void check_pids(struct hard_inspector *i)
{
	const struct aqe_json *limit =
		hard_inspect_need(i, HARD_PIDS_LIMIT, "/HostConfig/PidsLimit", "a limit");
	int64_t n;

	if (limit)
		(void)in_range(i, HARD_PIDS_LIMIT, limit, 1, i->ctx.agent->pids, &n);
}

static void check_memory(struct hard_inspector *i)
{
	const struct aqe_json *limit =
		hard_inspect_need(i, HARD_MEMORY_LIMIT, "/HostConfig/Memory", "a limit");
	const struct aqe_json *swap =
		hard_inspect_need(i, HARD_MEMORY_LIMIT, "/HostConfig/MemorySwap",
				  "the same as Memory");
	const struct aqe_json *reserved = hard_inspect_get(i, "/HostConfig/MemoryReservation");
	const struct aqe_json *swappiness = hard_inspect_get(i, "/HostConfig/MemorySwappiness");
	const struct aqe_json *oom = hard_inspect_get(i, "/HostConfig/OomScoreAdj");
	const uint64_t most = i->ctx.agent->memory_bytes;
	int64_t bytes = 0, n;

	if (limit && !in_range(i, HARD_MEMORY_LIMIT, limit, 1,
			       most > INT64_MAX ? INT64_MAX : (int64_t)most, &bytes))
		bytes = 0;
	if (limit && swap && !aqe_str_eq(limit->text, swap->text))
		hard_report_fail(i->v.r, HARD_MEMORY_LIMIT, swap, NULL, limit->text, "%s",
				 swap->text);
	if (reserved && bytes)
		(void)in_range(i, HARD_MEMORY_LIMIT, reserved, 0, bytes, &n);
	if (swappiness) /* podman shows 0 and -1 for "not set" */
		(void)in_range(i, HARD_MEMORY_LIMIT, swappiness, -1, 0, &n);
	if (oom)
		(void)in_range(i, HARD_MEMORY_LIMIT, oom, 0, 1000, &n);
	hard_inspect_empty(i, HARD_MEMORY_LIMIT, "/HostConfig/OomKillDisable", "false");
	hard_inspect_empty(i, HARD_MEMORY_LIMIT, "/HostConfig/KernelMemory", "0");
	hard_inspect_empty(i, HARD_MEMORY_LIMIT, "/HostConfig/KernelMemoryTCP", "0");
}

/* ---- cpu (R17): NanoCpus, or quota and period, or all of them in agreement ---- */

struct cpu {
	const struct aqe_json *nano_at, *quota_at, *period_at;
	int64_t nano, quota, period;
};

/* Quota and period are in order, given the quota. False after reporting. */
static bool check_quota(struct hard_inspector *i, struct cpu *c)
{
	int64_t n;

	if (c->period == 0)
		c->period = HARD_CPU_PERIOD; /* the kernel's and the engines' default */
	else if (!in_range(i, HARD_CPU_LIMIT, c->period_at, 1000, HARD_CPU_PERIOD, &n))
		return false;
	return in_range(i, HARD_CPU_LIMIT, c->quota_at, 1000,
			c->period * i->ctx.agent->cpus_milli / 1000, &n);
}

static void judge_cpu(struct hard_inspector *i, struct cpu *c)
{
	const int64_t most = (int64_t)i->ctx.agent->cpus_milli * (NANO / 1000);
	int64_t n;

	if (c->nano == 0 && c->quota == 0) {
		hard_report_fail(i->v.r, HARD_CPU_LIMIT, c->nano_at, NULL,
				 "NanoCpus, or CpuQuota and CpuPeriod", "no limit");
		return;
	}
	if (c->nano != 0 && !in_range(i, HARD_CPU_LIMIT, c->nano_at, 1, most, &n))
		return;
	if (c->quota == 0) {
		if (c->period != 0) /* without a quota the engine takes NanoCpus */
			(void)in_range(i, HARD_CPU_LIMIT, c->period_at, 1000, HARD_CPU_PERIOD, &n);
		return;
	}
	if (!check_quota(i, c) || c->nano == 0)
		return;
	/* one is the other, rounded */
	if (c->quota * NANO / c->period != c->nano && c->nano * c->period / NANO != c->quota)
		hard_report_fail(i->v.r, HARD_CPU_LIMIT, c->quota_at, NULL,
				 aqe_arena_fmt(i->v.r->arena, "%" PRId64 ", as NanoCpus says",
					       c->nano * c->period / NANO),
				 "%" PRId64, c->quota);
}

static void check_cpu(struct hard_inspector *i)
{
	struct cpu c = {
		.nano_at = hard_inspect_need(i, HARD_CPU_LIMIT, "/HostConfig/NanoCpus", "a limit"),
		.quota_at = hard_inspect_need(i, HARD_CPU_LIMIT, "/HostConfig/CpuQuota", "a quota"),
		.period_at =
			hard_inspect_need(i, HARD_CPU_LIMIT, "/HostConfig/CpuPeriod", "a period"),
	};
	const struct aqe_json *shares = hard_inspect_get(i, "/HostConfig/CpuShares");
	int64_t n;

	if (shares)
		(void)in_range(i, HARD_CPU_LIMIT, shares, 0, 1024, &n);
	hard_inspect_empty(i, HARD_CPU_LIMIT, "/HostConfig/CpuRealtimeRuntime", "0");
	hard_inspect_empty(i, HARD_CPU_LIMIT, "/HostConfig/CpuRealtimePeriod", "0");
	hard_inspect_empty(i, HARD_CPU_LIMIT, "/HostConfig/IntelRdtClosID", "none");
	if (!c.nano_at || !c.quota_at || !c.period_at ||
	    !in_range(i, HARD_CPU_LIMIT, c.nano_at, 0, INT32_MAX * NANO, &c.nano) ||
	    !in_range(i, HARD_CPU_LIMIT, c.quota_at, 0, INT32_MAX, &c.quota) ||
	    !in_range(i, HARD_CPU_LIMIT, c.period_at, 0, INT32_MAX, &c.period))
		return;
	judge_cpu(i, &c);
}

/* ---- cgroup: a limit counts only in a group of the container's own ---- */

static void fail_limits(struct hard_inspector *i, const struct aqe_json *at, const char *wanted)
{
	for (size_t k = 0; k < AQE_COUNT(limit_props); k++)
		hard_report_fail(i->v.r, limit_props[k], at, NULL, wanted, "%s",
				 at->type == AQE_JSON_STRING
					 ? hard_verify_quote(&i->v, aqe_json_str(at))
					 : "settings of the group itself");
}

static void check_cgroup(struct hard_inspector *i)
{
	static const char *const modes[] = { "", "default", "enabled", "no-conmon", NULL };
	static const char *const parents[] = {
		"", "/libpod_parent", "/docker", "machine.slice", "system.slice", "user.slice", NULL
	};
	const struct aqe_json *mode = hard_inspect_get(i, "/HostConfig/Cgroups");
	const struct aqe_json *parent = hard_inspect_get(i, "/HostConfig/CgroupParent");
	const struct aqe_json *own = hard_inspect_get(i, "/HostConfig/Cgroup");
	const struct aqe_json *unified = hard_inspect_get(i, "/HostConfig/CgroupConf");

	if (mode && !aqe_str_in(aqe_json_str(mode), modes))
		fail_limits(i, mode, "a group made by the engine");
	if (parent && !aqe_str_in(aqe_json_str(parent), parents))
		fail_limits(i, parent, "the engine's own parent group");
	if (own && own->len)
		fail_limits(i, own, "a group of the container's own");
	if (unified && unified->len)
		fail_limits(i, unified, "no setting that overrides a limit");
}

/* ---- devices (R22), sysctl (R25) ---- */

static void check_devices(struct hard_inspector *i)
{
	const struct aqe_json *rules = hard_inspect_get(i, "/HostConfig/DeviceCgroupRules");

	(void)hard_inspect_need(i, HARD_DEVICES, "/HostConfig/Devices", "no device");
	hard_inspect_empty(i, HARD_DEVICES, "/HostConfig/Devices", "no device");
	hard_inspect_empty(i, HARD_DEVICES, "/HostConfig/DeviceRequests", "no device");
	for (const struct aqe_json *r = rules ? rules->first : NULL; r; r = r->next)
		if (!hard_inspect_device_rule(aqe_json_str(r)))
			hard_report_fail(i->v.r, HARD_DEVICES, r, NULL, "no rule for other devices",
					 "%s", hard_verify_quote(&i->v, aqe_json_str(r)));
}

static void check_sysctls(struct hard_inspector *i)
{
	const struct aqe_json *map = hard_inspect_get(i, "/HostConfig/Sysctls");

	for (const struct aqe_json *s = map ? map->first : NULL; s; s = s->next)
		if (hard_rule_sysctl(s->key, aqe_json_str(s), NULL) != HARD_SYSCTL_ALLOWED)
			hard_report_fail(i->v.r, HARD_SYSCTL, s, NULL,
					 "no sysctl but the harmless pairs", "%s",
					 hard_verify_quote(&i->v, s->key));
}

void hard_inspect_limits(struct hard_inspector *i)
{
	check_pids(i);
	check_memory(i);
	check_cpu(i);
	check_cgroup(i);
	check_devices(i);
	check_sysctls(i);
}
