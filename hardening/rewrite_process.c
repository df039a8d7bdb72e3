/* SPDX-License-Identifier: MIT */
/* The process of a container or of an exec: capabilities, user, command, limits. */
#include "hardening/rewrite.h"

#include <string.h>

#include "hardening/caps.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

/* --privileged gives all the engine knows: 38 of 41 with docker 20.10 on a new kernel (engines.md
 * section 1.6). Nobody lists as many by hand. */
#define PRIVILEGED_CAPS 36
/* Capabilities named in a message. */
#define CAPS_NAMED 4

/* ---- capabilities ---- */

/* Names in `set` that no engine grants by default, at most CAPS_NAMED of them to `b`; their number.
 */
static size_t find_extra(const struct aqe_json *set, struct aqe_buf *b)
{
	size_t n = 0;

	for (const struct aqe_json *c = set ? set->first : NULL; c; c = c->next) {
		const char *name = aqe_json_str(c);

		if (name && hard_cap_is_default(name))
			continue;
		if (n < CAPS_NAMED) {
			aqe_buf_puts(b, n ? ", " : "");
			aqe_buf_quote(b, name ? name : "?", 40);
		}
		n++;
	}
	return n;
}

/* True when the sets hold no more than an engine's default. */
static bool judge_capabilities(struct hard_rw *rw, const struct aqe_json *caps)
{
	for (const struct aqe_json *set = caps ? caps->first : NULL; set; set = set->next) {
		AQE_AUTO_BUF struct aqe_buf names = AQE_BUF_INIT(4096);
		const size_t extra = find_extra(set, &names);

		if (extra && set->len >= PRIVILEGED_CAPS) {
			hard_rw_refuse(rw, HARD_PRIVILEGED, set, NULL,
				       "%zu capabilities: the container is privileged", set->len);
			return false;
		}
		if (extra) {
			hard_rw_refuse(rw, HARD_CAPABILITIES, set, NULL,
				       "%s%s beyond the engines' defaults", aqe_buf_str(&names),
				       extra > CAPS_NAMED ? " and more" : "");
			return false;
		}
	}
	return true;
}

void hard_rw_capabilities(struct hard_rw *rw)
{
	if (!judge_capabilities(rw, aqe_json_get(rw->process, "capabilities")))
		return;
	struct aqe_json *empty = aqe_json_new_object(rw->arena);

	for (size_t i = 0; empty && HARD_CAP_SETS[i]; i++)
		hard_rw_set(rw, empty, HARD_CAP_SETS[i], aqe_json_new_array(rw->arena));
	hard_rw_set(rw, rw->process, "capabilities", empty);
}

/* ---- user ---- */

/* The numeric member, 0 when absent: what the runtimes take then. */
static uint64_t id_of(const struct aqe_json *user, const char *name)
{
	uint64_t id = 0;

	(void)aqe_json_to_u64(aqe_json_get(user, name), UINT64_MAX, &id);
	return id;
}

/* HOME of the user that ran before is no place for the one that runs now. */
static void set_home(struct hard_rw *rw)
{
	struct aqe_json *env = aqe_json_get(rw->process, "env");
	bool found = false;

	if (!env) {
		env = aqe_json_new_array(rw->arena);
		hard_rw_set(rw, rw->process, "env", env);
	}
	for (struct aqe_json *v = env ? env->first : NULL, *next; v; v = next) {
		next = v->next;
		if (!aqe_json_str(v) || !aqe_starts(aqe_json_str(v), "HOME="))
			continue;
		if (aqe_str_eq(aqe_json_str(v), "HOME=/root") ||
		    aqe_str_eq(aqe_json_str(v), "HOME=/"))
			aqe_json_detach(v);
		else
			found = true;
	}
	if (!found)
		hard_rw_append(rw, env, aqe_json_new_str(rw->arena, "HOME=/tmp"));
}

/* Supplementary groups other than the primary one are dropped. */
static void drop_groups(struct hard_rw *rw, struct aqe_json *user)
{
	const struct aqe_json *groups = aqe_json_get(user, "additionalGids");

	for (const struct aqe_json *g = groups ? groups->first : NULL; g; g = g->next) {
		uint64_t gid;

		if (aqe_json_to_u64(g, UINT32_MAX, &gid) && gid == rw->gid)
			continue;
		hard_rw_set(rw, user, "additionalGids", aqe_json_new_array(rw->arena));
		return;
	}
}

static void set_umask(struct hard_rw *rw, struct aqe_json *user)
{
	const struct aqe_json *v = aqe_json_get(user, "umask");
	uint64_t mask = 0;

	if (v && !aqe_json_to_u64(v, 0777, &mask))
		mask = 0777; /* out of range: nothing is readable, rather than everything */
	if (!v || (mask & HARD_UMASK_BITS) != HARD_UMASK_BITS)
		hard_rw_set_u64(rw, user, "umask", mask | HARD_UMASK_BITS);
}

void hard_rw_user(struct hard_rw *rw, uint32_t uid, uint32_t gid)
{
	struct aqe_json *user = hard_rw_object(rw, rw->process, "user");

	if (!user)
		return;
	if (!hard_rw_waived(rw, HARD_USER)) {
		const bool was_root = id_of(user, "uid") == 0;

		if (was_root)
			hard_rw_set_u64(rw, user, "uid", uid);
		if (id_of(user, "gid") == 0)
			hard_rw_set_u64(rw, user, "gid", gid);
		if (was_root)
			set_home(rw);
	}
	rw->uid = (uint32_t)id_of(user, "uid"); /* too large ones are refused by verify */
	rw->gid = (uint32_t)id_of(user, "gid");
	if (hard_rw_waived(rw, HARD_USER))
		return;
	aqe_json_remove(user, "username");
	drop_groups(rw, user);
	set_umask(rw, user);
}

/* ---- command ---- */

static void judge_env(struct hard_rw *rw)
{
	struct aqe_json *env = aqe_json_get(rw->process, "env");

	for (struct aqe_json *v = env ? env->first : NULL, *next; v; v = next) {
		const char *entry = aqe_json_str(v);

		next = v->next;
		if (!entry)
			continue;
		/* the loader's and device variables come from images as well: dropped, not refused
		 */
		if (hard_rule_env(entry))
			aqe_json_detach(v);
		else if (entry[0] == '=' || !strchr(entry, '='))
			hard_rw_refuse(rw, HARD_MISSING_FIELD, v, "NAME=value",
				       "an environment entry without a name or without '='");
	}
}

void hard_rw_command(struct hard_rw *rw)
{
	const struct aqe_json *args = aqe_json_get(rw->process, "args");
	const struct aqe_json *cwd = aqe_json_get(rw->process, "cwd");

	if (!args || args->len == 0)
		hard_rw_refuse(rw, HARD_MISSING_FIELD, args ? args : rw->process,
			       "a command to run", "no args");
	if (cwd && (!aqe_json_str(cwd) || !hard_rule_cwd(aqe_json_str(cwd))))
		hard_rw_refuse(rw, HARD_MOUNTS, cwd,
			       "a canonical absolute path, not below /proc, /sys or /dev", "'%s'",
			       hard_rw_quote(rw, aqe_json_str(cwd)));
	judge_env(rw);
	hard_rw_egress_env(rw);
}

/* ---- rlimits ---- */

static uint64_t host_limit(const struct hard_host *host, const char *type)
{
	if (!host)
		return UINT64_MAX;
	if (aqe_str_eq(type, "RLIMIT_NOFILE"))
		return host->rlim_nofile_max;
	if (aqe_str_eq(type, "RLIMIT_NPROC"))
		return host->rlim_nproc_max;
	if (aqe_str_eq(type, "RLIMIT_CORE"))
		return host->rlim_core_max;
	return UINT64_MAX;
}

static bool is_repeated(const struct aqe_json *limit, const char *type)
{
	for (const struct aqe_json *l = limit->parent->first; l != limit; l = l->next)
		if (aqe_str_eq(aqe_json_str(aqe_json_get(l, "type")), type))
			return true;
	return false;
}

static void clamp_rlimit(struct hard_rw *rw, struct aqe_json *limit)
{
	const char *type = aqe_json_str(aqe_json_get(limit, "type"));
	const struct hard_rlimit *row = type ? hard_rule_rlimit(type) : NULL;
	uint64_t hard, soft;

	if (!row || !row->allowed) {
		hard_rw_refuse(rw, HARD_RLIMITS, limit, NULL, "%s",
			       hard_rw_quote(rw, type ? type : "an rlimit without a type"));
		return;
	}
	if (is_repeated(limit, type)) {
		hard_rw_refuse(rw, HARD_RLIMITS, limit, NULL, "%s a second time", type);
		return;
	}
	if (!aqe_json_to_u64(aqe_json_get(limit, "hard"), UINT64_MAX, &hard) ||
	    !aqe_json_to_u64(aqe_json_get(limit, "soft"), UINT64_MAX, &soft)) {
		hard_rw_refuse(rw, HARD_RLIMITS, limit, NULL, "%s without a soft and a hard value",
			       type);
		return;
	}
	uint64_t max = row->max;

	if (max > host_limit(rw->ctx->host, type))
		max = host_limit(rw->ctx->host, type);
	if (max > hard)
		max = hard;
	if (hard != max)
		hard_rw_set_u64(rw, limit, "hard", max);
	if (soft > max)
		hard_rw_set_u64(rw, limit, "soft", max);
}

void hard_rw_rlimits(struct hard_rw *rw)
{
	struct aqe_json *limits = aqe_json_get(rw->process, "rlimits");

	if (hard_rw_waived(rw, HARD_RLIMITS))
		return;
	for (struct aqe_json *l = limits ? limits->first : NULL; l; l = l->next)
		clamp_rlimit(rw, l);
}

void hard_rw_process(struct hard_rw *rw)
{
	hard_rw_capabilities(rw);
	hard_rw_set_bool(rw, rw->process, "noNewPrivileges", true);
	hard_rw_user(rw, rw->ctx->policy->uid, rw->ctx->policy->gid);
	hard_rw_command(rw);
	hard_rw_rlimits(rw);
}
