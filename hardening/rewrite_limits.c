/* SPDX-License-Identifier: MIT */
/* Limits of a new container: what is above a ceiling, absent or unlimited becomes the ceiling. */
#include "hardening/rewrite.h"

#include "shim/core/text.h"

/* Shares are weights: more than the kernel's default of 1024 takes from others. */
#define SHARES_MAX 1024
/* Microseconds of CPU a period that runc and the kernel accept at least. */
#define QUOTA_MIN 1000

uint64_t hard_rw_quota_max(const struct hard_ctx *ctx)
{
	return (uint64_t)ctx->agent->cpus_milli * (HARD_CPU_PERIOD / 1000);
}

bool hard_rw_quota(int64_t quota, uint64_t period, uint64_t *ret)
{
	/* period: 1 s at most in the kernel; the product stays far below 2^63 */
	if (quota <= 0 || quota > INT64_MAX / HARD_CPU_PERIOD || period == 0)
		return false;
	*ret = (uint64_t)quota * HARD_CPU_PERIOD / period;
	if (*ret < QUOTA_MIN)
		*ret = QUOTA_MIN;
	return true;
}

/* The member as a number, 0 when it is absent or not positive. */
static uint64_t positive(const struct aqe_json *obj, const char *name)
{
	int64_t n = 0;

	(void)aqe_json_to_i64(aqe_json_get(obj, name), INT64_MIN, INT64_MAX, &n);
	return n > 0 ? (uint64_t)n : 0;
}

static uint64_t clamp(uint64_t asked, uint64_t max)
{
	return asked == 0 || asked > max ? max : asked;
}

/* Drops the member when it says nothing, refuses it otherwise. */
static void drop_inert(struct hard_rw *rw, struct aqe_json *obj, const char *name,
		       enum hard_prop prop)
{
	const struct aqe_json *v = aqe_json_get(obj, name);

	if (!v)
		return;
	if (hard_rw_inert(v))
		aqe_json_remove(obj, name);
	else
		hard_rw_refuse(rw, prop, v, "nothing", "'%s' set", name);
}

static void set_pids(struct hard_rw *rw, struct aqe_json *resources)
{
	struct aqe_json *pids = hard_rw_object(rw, resources, "pids");

	if (!pids || hard_rw_waived(rw, HARD_PIDS_LIMIT))
		return;
	hard_rw_set_u64(rw, pids, "limit", clamp(positive(pids, "limit"), rw->ctx->agent->pids));
}

static void set_memory(struct hard_rw *rw, struct aqe_json *resources)
{
	static const char *const none[] = { "kernel", "kernelTCP", "disableOOMKiller", NULL };
	struct aqe_json *memory = hard_rw_object(rw, resources, "memory");

	if (!memory || hard_rw_waived(rw, HARD_MEMORY_LIMIT))
		return;
	const uint64_t limit = clamp(positive(memory, "limit"), rw->ctx->agent->memory_bytes);

	hard_rw_set_u64(rw, memory, "limit", limit);
	hard_rw_set_u64(rw, memory, "swap", limit);
	/* a soft limit below the hard one may stay */
	if (positive(memory, "reservation") == 0 || positive(memory, "reservation") > limit)
		aqe_json_remove(memory, "reservation");
	for (size_t i = 0; none[i]; i++)
		drop_inert(rw, memory, none[i], HARD_MEMORY_LIMIT);
	/* without swap of its own, and with the kernel's default hierarchy, these say nothing */
	aqe_json_remove(memory, "swappiness");
	aqe_json_remove(memory, "checkBeforeUpdate");
	const struct aqe_json *hierarchy = aqe_json_get(memory, "useHierarchy");

	if (hierarchy && hierarchy->boolean)
		aqe_json_remove(memory, "useHierarchy");
	else if (hierarchy)
		hard_rw_refuse(rw, HARD_MEMORY_LIMIT, hierarchy, "true",
			       "'useHierarchy' false: children escape the limit");
}

static void set_cpu(struct hard_rw *rw, struct aqe_json *resources)
{
	static const char *const none[] = { "burst", "realtimePeriod", "realtimeRuntime", "idle",
					    NULL };
	struct aqe_json *cpu = hard_rw_object(rw, resources, "cpu");
	const uint64_t max = hard_rw_quota_max(rw->ctx);
	uint64_t quota = 0;

	if (!cpu || hard_rw_waived(rw, HARD_CPU_LIMIT))
		return;
	const uint64_t period = positive(cpu, "period");

	if (!hard_rw_quota((int64_t)positive(cpu, "quota"), period ? period : HARD_CPU_PERIOD,
			   &quota))
		quota = max;
	hard_rw_set_u64(rw, cpu, "quota", clamp(quota, max));
	hard_rw_set_u64(rw, cpu, "period", HARD_CPU_PERIOD);
	if (positive(cpu, "shares") == 0)
		aqe_json_remove(cpu, "shares");
	else if (positive(cpu, "shares") > SHARES_MAX)
		hard_rw_set_u64(rw, cpu, "shares", SHARES_MAX);
	for (size_t i = 0; none[i]; i++)
		drop_inert(rw, cpu, none[i], HARD_CPU_LIMIT);
}

/* A rootless engine on cgroup v1 has no group of its own: runc refuses limits there and crun
 * ignores them without a word (engines.md finding 11). */
static void without_limits(struct hard_rw *rw)
{
	static const enum hard_prop props[] = { HARD_PIDS_LIMIT, HARD_MEMORY_LIMIT,
						HARD_CPU_LIMIT };
	static const char fix[] = "use cgroup v2 with delegation, or a root engine with a user "
				  "namespace, or add waivers for 'pids_limit', 'memory_limit' and "
				  "'cpu_limit' to the policy";

	for (size_t i = 0; i < AQE_COUNT(props); i++)
		hard_rw_refuse_fix(rw, props[i], rw->lin, fix,
				   "a rootless engine on cgroup v1, where no limit can be set");
	aqe_json_remove(rw->lin, "resources");
	aqe_json_remove(rw->lin, "cgroupsPath");
}

void hard_rw_resources(struct hard_rw *rw)
{
	if (rw->no_cgroup) {
		without_limits(rw);
		return;
	}
	struct aqe_json *resources = hard_rw_object(rw, rw->lin, "resources");

	if (!resources)
		return;
	set_pids(rw, resources);
	set_memory(rw, resources);
	set_cpu(rw, resources);
	drop_inert(rw, resources, "network", HARD_NETWORK);
}
