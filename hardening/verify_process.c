/* SPDX-License-Identifier: MIT */
#include "hardening/verify_in.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "shim/core/text.h"

static void check_capabilities(struct hard_verifier *v)
{
	static const char wanted[] = "five empty sets";
	const struct aqe_json *caps =
		hard_verify_need(v, HARD_CAPABILITIES, "/process/capabilities", wanted);

	if (!caps)
		return;
	for (const char *const *name = HARD_CAP_SETS; *name; name++) {
		const struct aqe_json *set =
			hard_verify_member(v, HARD_CAPABILITIES, caps, *name, "an empty list");

		if (set && set->len > 0)
			hard_report_fail(v->r, HARD_CAPABILITIES, set, NULL, "an empty list",
					 "%zu, the first is %s", set->len,
					 hard_verify_quote(v, aqe_json_str(set->first)));
	}
}

static void check_no_new_privileges(struct hard_verifier *v)
{
	const struct aqe_json *flag =
		hard_verify_need(v, HARD_NO_NEW_PRIVILEGES, "/process/noNewPrivileges", "true");

	if (flag && !(flag->type == AQE_JSON_BOOL && flag->boolean))
		hard_report_fail(v->r, HARD_NO_NEW_PRIVILEGES, flag, NULL, "true", "false");
}

/* One rlimit's two numbers; 0 when they are there and in order. */
static void check_rlimit_values(struct hard_verifier *v, const struct aqe_json *entry,
				const struct hard_rlimit *rule)
{
	const struct aqe_json *soft =
		hard_verify_member(v, HARD_RLIMITS, entry, "soft", "a number");
	const struct aqe_json *hard =
		hard_verify_member(v, HARD_RLIMITS, entry, "hard", "a number");
	const char *const wanted = aqe_arena_fmt(v->r->arena, "at most %" PRIu64, rule->max);
	uint64_t soft_value, hard_value;

	if (!soft || !hard)
		return;
	if (!aqe_json_to_u64(soft, UINT64_MAX, &soft_value) ||
	    !aqe_json_to_u64(hard, UINT64_MAX, &hard_value)) {
		hard_report_fail(v->r, HARD_RLIMITS, entry, NULL, "whole numbers",
				 "something else");
		return;
	}
	if (hard_value > rule->max)
		hard_report_fail(v->r, HARD_RLIMITS, hard, NULL, wanted, "%" PRIu64, hard_value);
	if (soft_value > hard_value)
		hard_report_fail(v->r, HARD_RLIMITS, soft, NULL, "at most the hard limit",
				 "%" PRIu64, soft_value);
}

static void check_rlimits(struct hard_verifier *v)
{
	const struct aqe_json *list = aqe_json_at(v->spec, "/process/rlimits");
	uint32_t seen = 0; /* bit per row of HARD_RLIMIT_ROWS */

	for (const struct aqe_json *entry = list ? list->first : NULL; entry; entry = entry->next) {
		const struct aqe_json *type =
			hard_verify_member(v, HARD_RLIMITS, entry, "type", "a resource's name");
		const struct hard_rlimit *rule = type ? hard_rule_rlimit(aqe_json_str(type)) : NULL;

		if (!type)
			continue;
		if (!rule || !rule->allowed) {
			hard_report_fail(v->r, HARD_RLIMITS, type, NULL,
					 "limits on files, processes, memory, core and time only",
					 "%s", hard_verify_quote(v, aqe_json_str(type)));
			continue;
		}
		const uint32_t bit = 1U << (rule - HARD_RLIMIT_ROWS);

		if (seen & bit)
			hard_report_fail(v->r, HARD_RLIMITS, type, NULL, "each limit once",
					 "%s twice", rule->type);
		seen |= bit;
		check_rlimit_values(v, entry, rule);
	}
}

static void check_lsm(struct hard_verifier *v)
{
	const struct aqe_json *profile = aqe_json_at(v->spec, "/process/apparmorProfile");
	const struct aqe_json *label = aqe_json_at(v->spec, "/process/selinuxLabel");
	const struct aqe_json *mount = aqe_json_at(v->spec, "/linux/mountLabel");
	const struct hard_host *host = v->ctx->host;

	if (profile && !hard_rule_apparmor(aqe_json_str(profile)))
		hard_report_fail(v->r, HARD_LSM, profile, NULL, "an engine's default profile", "%s",
				 hard_verify_quote(v, aqe_json_str(profile)));
	if (label && !hard_rule_selinux_process(aqe_json_str(label)))
		hard_report_fail(v->r, HARD_LSM, label, NULL,
				 "container_t at s0 with one or two categories", "%s",
				 hard_verify_quote(v, aqe_json_str(label)));
	if (mount && !hard_rule_selinux_mount(aqe_json_str(mount)))
		hard_report_fail(v->r, HARD_LSM, mount, NULL,
				 "container_file_t at s0 with one or two categories", "%s",
				 hard_verify_quote(v, aqe_json_str(mount)));
	if (host && host->apparmor && !profile)
		hard_report_fail(v->r, HARD_LSM, v->spec, "/process/apparmorProfile",
				 "a profile, because AppArmor is enabled", "absent");
	if (host && host->selinux && !label)
		hard_report_fail(v->r, HARD_LSM, v->spec, "/process/selinuxLabel",
				 "a label, because SELinux is enabled", "absent");
}

/* The name of a NAME=value entry. Values may be secrets and never reach a message. */
static const char *env_name(struct hard_verifier *v, const char *entry)
{
	const char *copy = aqe_arena_ndup(v->r->arena, entry, strcspn(entry, "="));

	return hard_verify_quote(v, copy ? copy : "");
}

static void check_env(struct hard_verifier *v)
{
	const struct aqe_json *list = aqe_json_at(v->spec, "/process/env");

	for (const struct aqe_json *item = list ? list->first : NULL; item; item = item->next) {
		const char *entry = aqe_json_str(item);
		const struct hard_env *denied = hard_rule_env(entry);

		if (entry[0] == '=' || !strchr(entry, '='))
			hard_report_fail(v->r, HARD_MISSING_FIELD, item, NULL, "NAME=value",
					 "an entry without a name or without '='");
		if (!denied)
			continue;
		hard_report_fail(v->r, denied->props[0], item, NULL, "no such variable",
				 "%s, which %s", env_name(v, entry), denied->why);
		if (denied->props[1] != denied->props[0])
			hard_report_fail(v->r, denied->props[1], item, NULL, "no such variable",
					 "%s, which %s", env_name(v, entry), denied->why);
	}
}

/* The runtime starts args[0] while /proc of the host may still be reachable (CVE-2019-5736), and
 * enters cwd before it lets go of its descriptors (CVE-2024-21626). */
static void check_start(struct hard_verifier *v)
{
	const struct aqe_json *cwd =
		hard_verify_need(v, HARD_MOUNTS, "/process/cwd", "an absolute path");
	const struct aqe_json *args =
		hard_verify_need(v, HARD_MISSING_FIELD, "/process/args", "a command");
	const char *program = args && args->len > 0 ? aqe_json_str(args->first) : NULL;
	char clean[PATH_MAX];

	if (cwd && !hard_rule_cwd(aqe_json_str(cwd)))
		hard_report_fail(v->r, HARD_MOUNTS, cwd, NULL,
				 "a canonical path outside /proc, /sys and /dev", "%s",
				 hard_verify_quote(v, aqe_json_str(cwd)));
	if (args && (!program || program[0] == '\0'))
		hard_report_fail(v->r, HARD_MISSING_FIELD, args, NULL, "a command", "none");
	/* a relative path counts from cwd, and may climb out of it */
	if (program && (!hard_rule_clean_path(program, clean, sizeof(clean)) ||
			aqe_path_is_under(clean, "/proc") || strstr(program, "proc/self") ||
			strstr(program, "proc/thread-self")))
		hard_report_fail(v->r, HARD_MOUNTS, args->first, NULL, "a program outside /proc",
				 "%s", hard_verify_quote(v, program));
}

/* The shape of process.user. Where its numbers land on the host is verify_ids.c's. */
static void check_id(struct hard_verifier *v, const struct aqe_json *user, const char *name)
{
	const struct aqe_json *id =
		hard_verify_member(v, HARD_USER, user, name, "a number from 1 to 2147483647");
	uint64_t value;

	if (id && (!aqe_json_to_u64(id, HARD_ID_MAX, &value) || value == 0))
		hard_report_fail(v->r, HARD_USER, id, NULL, "1 to 2147483647", "%s", id->text);
}

static void check_groups(struct hard_verifier *v, const struct aqe_json *user)
{
	const struct aqe_json *gid = aqe_json_get(user, "gid");
	const struct aqe_json *list = aqe_json_get(user, "additionalGids");

	for (const struct aqe_json *g = list ? list->first : NULL; g; g = g->next)
		if (!gid || !aqe_str_eq(g->text, gid->text))
			hard_report_fail(v->r, HARD_USER, g, NULL, "no group but gid", "%s",
					 g->text);
}

static void check_user(struct hard_verifier *v)
{
	const struct aqe_json *user =
		hard_verify_need(v, HARD_USER, "/process/user", "uid, gid and umask");
	const struct aqe_json *umask, *name;
	uint64_t bits;

	if (!user)
		return;
	check_id(v, user, "uid");
	check_id(v, user, "gid");
	check_groups(v, user);
	umask = hard_verify_member(v, HARD_USER, user, "umask", "022 (18) or stricter");
	if (umask &&
	    (!aqe_json_to_u64(umask, 0777, &bits) || (bits & HARD_UMASK_BITS) != HARD_UMASK_BITS))
		hard_report_fail(v->r, HARD_USER, umask, NULL, "022 (18) or stricter", "%s",
				 umask->text);
	name = aqe_json_get(user, "username");
	if (name)
		hard_report_fail(v->r, HARD_USER, name, NULL, "numbers only", "a name");
}

/* A process that outlives the host's when memory is short takes the host down. */
static void check_oom_score(struct hard_verifier *v)
{
	const struct aqe_json *score = aqe_json_at(v->spec, "/process/oomScoreAdj");
	int64_t value;

	if (score && !aqe_json_to_i64(score, 0, 1000, &value))
		hard_report_fail(v->r, HARD_MEMORY_LIMIT, score, NULL, "0 to 1000", "%s",
				 score->text);
}

void hard_verify_process(struct hard_verifier *v)
{
	check_user(v);
	check_capabilities(v);
	check_no_new_privileges(v);
	check_rlimits(v);
	check_lsm(v);
	check_env(v);
	check_start(v);
	check_oom_score(v);
}
