/* SPDX-License-Identifier: MIT */
#include "hardening/verify_in.h"

#include <inttypes.h>
#include <string.h>

#include "shim/core/text.h"

static const enum hard_prop limit_props[] = { HARD_PIDS_LIMIT, HARD_MEMORY_LIMIT, HARD_CPU_LIMIT };

/* A whole number from `min` to `max`, or false after reporting. */
static bool in_range(struct hard_verifier *v, enum hard_prop prop, const struct aqe_json *value,
		     int64_t min, int64_t max, int64_t *ret)
{
	if (aqe_json_to_i64(value, min, max, ret))
		return true;
	hard_report_fail(v->r, prop, value, NULL,
			 aqe_arena_fmt(v->r->arena, "%" PRId64 " to %" PRId64, min, max), "%s",
			 value->text);
	return false;
}

static int64_t ceiling(uint64_t n)
{
	return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

/* Members whose mere presence changes what the checked ones mean. */
static void refuse_members(struct hard_verifier *v, enum hard_prop prop,
			   const struct aqe_json *object, const char *const *names)
{
	for (; *names; names++) {
		const struct aqe_json *m = aqe_json_get(object, *names);

		if (m)
			hard_report_fail(v->r, prop, m, NULL, "absent", "%s",
					 m->text ? m->text : aqe_json_type_name(m->type));
	}
}

static void check_pids(struct hard_verifier *v)
{
	const struct aqe_json *limit =
		hard_verify_need(v, HARD_PIDS_LIMIT, "/linux/resources/pids/limit", "a limit");
	int64_t n;

	if (limit)
		(void)in_range(v, HARD_PIDS_LIMIT, limit, 1, v->ctx->agent->pids, &n);
}

static void check_memory(struct hard_verifier *v)
{
	static const char *const refused[] = { "kernel", "kernelTCP", "swappiness", "useHierarchy",
					       NULL };
	const struct aqe_json *memory = aqe_json_at(v->spec, "/linux/resources/memory");
	const struct aqe_json *limit =
		hard_verify_need(v, HARD_MEMORY_LIMIT, "/linux/resources/memory/limit", "a limit");
	const struct aqe_json *swap =
		hard_verify_need(v, HARD_MEMORY_LIMIT, "/linux/resources/memory/swap",
				 "the same as limit");
	const struct aqe_json *reservation = aqe_json_get(memory, "reservation");
	const struct aqe_json *oom = aqe_json_get(memory, "disableOOMKiller");
	int64_t bytes = 0, n;

	if (limit &&
	    !in_range(v, HARD_MEMORY_LIMIT, limit, 1, ceiling(v->ctx->agent->memory_bytes), &bytes))
		bytes = 0;
	if (swap && limit && !aqe_str_eq(swap->text, limit->text))
		hard_report_fail(v->r, HARD_MEMORY_LIMIT, swap, NULL, limit->text, "%s",
				 swap->text);
	if (reservation && bytes)
		(void)in_range(v, HARD_MEMORY_LIMIT, reservation, 0, bytes, &n);
	if (oom && oom->boolean)
		hard_report_fail(v->r, HARD_MEMORY_LIMIT, oom, NULL, "false", "true");
	refuse_members(v, HARD_MEMORY_LIMIT, memory, refused);
}

/* R17. The period has bounds of its own: a long one lets the agent take every CPU for a second. */
static void check_cpu(struct hard_verifier *v)
{
	static const char *const refused[] = { "burst", "realtimeRuntime", "realtimePeriod", "idle",
					       NULL };
	const struct aqe_json *cpu = aqe_json_at(v->spec, "/linux/resources/cpu");
	const struct aqe_json *quota =
		hard_verify_need(v, HARD_CPU_LIMIT, "/linux/resources/cpu/quota", "a quota");
	const struct aqe_json *period =
		hard_verify_need(v, HARD_CPU_LIMIT, "/linux/resources/cpu/period", "a period");
	const struct aqe_json *shares = aqe_json_get(cpu, "shares");
	int64_t p, q, n;

	if (shares)
		(void)in_range(v, HARD_CPU_LIMIT, shares, 0, 1024, &n);
	refuse_members(v, HARD_CPU_LIMIT, cpu, refused);
	if (!quota || !period || !in_range(v, HARD_CPU_LIMIT, period, 1000, HARD_CPU_PERIOD, &p))
		return;
	(void)in_range(v, HARD_CPU_LIMIT, quota, 1000, p * v->ctx->agent->cpus_milli / 1000, &q);
}

/* A limit counts only in the container's own group. */
static void check_cgroup(struct hard_verifier *v)
{
	const struct aqe_json *path = aqe_json_at(v->spec, "/linux/cgroupsPath");
	const char *hostname = aqe_json_str(aqe_json_get(v->spec, "hostname"));
	const char *text = aqe_json_str(path);
	const char *why = NULL;
	const size_t short_id = 12; /* engines name the host after the id's first 12 digits */

	if (!path) {
		const struct aqe_json *at = aqe_json_get(v->spec, "linux");

		hard_report_fail(v->r, HARD_MISSING_FIELD, at ? at : v->spec, "/cgroupsPath",
				 "the engine's path for this container", "absent");
		return;
	}
	if (!hard_rule_cgroups_path(text, v->ctx->container_id))
		why = "not this container's own";
	else if (!v->ctx->container_id && v->id && hostname && aqe_is_hex(hostname, short_id) &&
		 strncmp(v->id, hostname, short_id) != 0)
		why = "another container's, going by the host name";
	for (size_t i = 0; why && i < AQE_COUNT(limit_props); i++)
		hard_report_fail(v->r, limit_props[i], path, NULL,
				 "the engine's path for this container", "%s, %s",
				 hard_verify_quote(v, text), why);
}

/* ---- device rules (R22) ---- */

static bool is_access(const char *s)
{
	const size_t n = strlen(s);

	if (n == 0 || n > 3 || strspn(s, "rwm") != n)
		return false;
	return !strchr(s + 1, s[0]) && !(n == 3 && s[1] == s[2]);
}

static bool is_deny_all(const struct aqe_json *rule)
{
	const struct aqe_json *allow = aqe_json_get(rule, "allow");

	return rule && rule->len == 2 && allow && !allow->boolean &&
	       aqe_str_eq(aqe_json_str(aqe_json_get(rule, "access")), "rwm");
}

static bool number_or(const struct aqe_json *rule, const char *name, int64_t absent, int64_t *ret)
{
	const struct aqe_json *m = aqe_json_get(rule, name);

	*ret = absent;
	return !m || aqe_json_to_i64(m, 0, INT64_MAX, ret);
}

static bool names_allowed_device(const struct aqe_json *rule)
{
	const char *type = aqe_json_str(aqe_json_get(rule, "type"));
	const struct hard_device *d;
	int64_t major, minor;

	if (!type || strlen(type) != 1 || !number_or(rule, "major", -1, &major) ||
	    !number_or(rule, "minor", -1, &minor))
		return false;
	d = hard_rule_device(type[0], major, minor);
	return d && d->allowed;
}

static void check_device_rule(struct hard_verifier *v, const struct aqe_json *rule)
{
	const struct aqe_json *allow =
		hard_verify_member(v, HARD_DEVICES, rule, "allow", "true or false");
	const struct aqe_json *access =
		hard_verify_member(v, HARD_DEVICES, rule, "access", "letters of rwm");

	if (access && !is_access(aqe_json_str(access)))
		hard_report_fail(v->r, HARD_DEVICES, access, NULL, "letters of rwm", "%s",
				 hard_verify_quote(v, aqe_json_str(access)));
	if (allow && allow->boolean && !names_allowed_device(rule))
		hard_report_fail(v->r, HARD_DEVICES, rule, NULL,
				 "null, zero, full, random, urandom, tty and console only",
				 "a rule that allows another device");
}

static void check_device_rules(struct hard_verifier *v)
{
	static const char wanted[] = "{\"allow\":false,\"access\":\"rwm\"} first";
	/* Absent, crun leaves every device open (measured). */
	const struct aqe_json *rules =
		hard_verify_need(v, HARD_DEVICES, "/linux/resources/devices", wanted);

	if (!rules)
		return;
	if (!is_deny_all(rules->first))
		hard_report_fail(v->r, HARD_DEVICES, rules->first ? rules->first : rules, NULL,
				 wanted, "%s", rules->first ? "another rule" : "an empty list");
	for (const struct aqe_json *rule = rules->first; rule; rule = rule->next)
		check_device_rule(v, rule);
}

static void check_devices(struct hard_verifier *v)
{
	const struct aqe_json *nodes = aqe_json_at(v->spec, "/linux/devices");

	for (const struct aqe_json *d = nodes ? nodes->first : NULL; d; d = d->next) {
		const char *path = aqe_json_str(aqe_json_get(d, "path"));

		hard_report_fail(v->r, HARD_DEVICES, d, NULL, "no device", "%s",
				 path ? hard_verify_quote(v, path) : "a device");
	}
}

/* Measured: with limits in the document crun starts a container without them, and runc refuses. */
static void report_no_cgroup(struct hard_verifier *v)
{
	for (size_t i = 0; i < AQE_COUNT(limit_props); i++)
		hard_report_fail(v->r, limit_props[i], NULL, "/linux/resources",
				 "a limit that the kernel applies",
				 "cannot be enforced: rootless engine on cgroup v1");
}

void hard_verify_resources(struct hard_verifier *v)
{
	check_devices(v);
	if (v->no_cgroup) {
		/* No device group can be made either; the user namespace makes nodes useless. */
		report_no_cgroup(v);
		if (aqe_json_at(v->spec, "/linux/resources/devices"))
			check_device_rules(v);
		return;
	}
	check_device_rules(v);
	check_pids(v);
	check_memory(v);
	check_cpu(v);
	check_cgroup(v);
}
