/* SPDX-License-Identifier: MIT */
#include "hardening/inspect_in.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shim/core/text.h"

/* ---- user (R13) ---- */

static bool is_id(const char *s, size_t n)
{
	char text[16];
	uint64_t id;

	if (n == 0 || n >= sizeof(text))
		return false;
	memcpy(text, s, n);
	text[n] = '\0';
	return aqe_parse_u64(text, HARD_ID_MAX, &id) && id > 0;
}

void hard_inspect_user(struct hard_inspector *i, const struct aqe_json *user, bool gid)
{
	static const char both[] = "UID:GID, both from 1 to 2147483647";
	static const char either[] = "UID or UID:GID, from 1 to 2147483647";
	const char *text = aqe_json_str(user);
	const size_t n = strcspn(text, ":");

	if (!is_id(text, n) || (text[n] ? !is_id(text + n + 1, strlen(text + n + 1)) : gid))
		hard_report_fail(i->v.r, HARD_USER, user, NULL, gid ? both : either, "%s",
				 hard_verify_quote(&i->v, text));
}

static void check_user(struct hard_inspector *i)
{
	const struct aqe_json *user =
		hard_inspect_need(i, HARD_USER, "/Config/User", "UID:GID, both numbers");
	const struct aqe_json *groups = hard_inspect_get(i, "/HostConfig/GroupAdd");
	const struct aqe_json *umask = hard_inspect_get(i, "/Config/Umask");
	const char *gid = user ? strchr(aqe_json_str(user), ':') : NULL;
	unsigned bits = 0;

	if (user)
		hard_inspect_user(i, user, true);
	for (const struct aqe_json *g = groups ? groups->first : NULL; g; g = g->next)
		if (!gid || !aqe_str_eq(gid + 1, aqe_json_str(g)))
			hard_report_fail(i->v.r, HARD_USER, g, NULL, "no group but the user's own",
					 "%s", hard_verify_quote(&i->v, aqe_json_str(g)));
	if (!umask)
		return;
	for (const char *c = aqe_json_str(umask); *c >= '0' && *c <= '7' && bits < 01000; c++)
		bits = bits * 8 + (unsigned)(*c - '0');
	if (strspn(aqe_json_str(umask), "01234567") != umask->len || umask->len > 4 ||
	    (bits & HARD_UMASK_BITS) != HARD_UMASK_BITS)
		hard_report_fail(i->v.r, HARD_USER, umask, NULL, "0022 or stricter", "%s",
				 hard_verify_quote(&i->v, aqe_json_str(umask)));
}

/* ---- capabilities ---- */

/* What docker and podman grant without being asked: dropped by name or by ALL. */
static const char *const default_caps[] = {
	"CAP_AUDIT_WRITE", "CAP_CHOWN",   "CAP_DAC_OVERRIDE",     "CAP_FOWNER",     "CAP_FSETID",
	"CAP_KILL",        "CAP_MKNOD",   "CAP_NET_BIND_SERVICE", "CAP_NET_RAW",    "CAP_SETFCAP",
	"CAP_SETGID",      "CAP_SETPCAP", "CAP_SETUID",           "CAP_SYS_CHROOT",
};

static void check_cap_drop(struct hard_inspector *i)
{
	const struct aqe_json *drop =
		hard_inspect_need(i, HARD_CAPABILITIES, "/HostConfig/CapDrop", "ALL");

	if (!drop || aqe_json_has_str(drop, "ALL"))
		return;
	for (size_t k = 0; k < AQE_COUNT(default_caps); k++)
		if (!aqe_json_has_str(drop, default_caps[k])) {
			hard_report_fail(i->v.r, HARD_CAPABILITIES, drop, NULL,
					 "ALL, or the 14 capabilities engines grant by default",
					 "%s stays", default_caps[k]);
			return;
		}
}

static void check_capabilities(struct hard_inspector *i)
{
	static const char *const sets[] = { "/EffectiveCaps", "/BoundingCaps" };

	(void)hard_inspect_need(i, HARD_PRIVILEGED, "/HostConfig/Privileged", "false");
	hard_inspect_empty(i, HARD_PRIVILEGED, "/HostConfig/Privileged", "false");
	(void)hard_inspect_need(i, HARD_CAPABILITIES, "/HostConfig/CapAdd", "nothing");
	hard_inspect_empty(i, HARD_CAPABILITIES, "/HostConfig/CapAdd", "nothing added");
	check_cap_drop(i);
	for (size_t k = 0; i->podman && k < AQE_COUNT(sets); k++) {
		(void)hard_inspect_need(i, HARD_CAPABILITIES, sets[k], "no capability");
		hard_inspect_empty(i, HARD_CAPABILITIES, sets[k], "no capability");
	}
}

/* ---- rlimits (R27) ---- */

/* Docker says "nofile", podman "RLIMIT_NOFILE". */
static const struct hard_rlimit *rlimit_of(const char *name)
{
	char type[32];
	int n;

	if (aqe_starts(name, "RLIMIT_"))
		return hard_rule_rlimit(name);
	n = snprintf(type, sizeof(type), "RLIMIT_%s", name);
	if (n < 0 || (size_t)n >= sizeof(type))
		return NULL;
	for (char *c = type; *c; c++)
		if (*c >= 'a' && *c <= 'z')
			*c = (char)(*c - 'a' + 'A');
	return hard_rule_rlimit(type);
}

/* -1 is unlimited. */
static uint64_t limit_value(const struct aqe_json *v)
{
	uint64_t n;

	return aqe_json_to_u64(v, UINT64_MAX, &n) ? n : UINT64_MAX;
}

static void check_rlimit(struct hard_inspector *i, const struct aqe_json *entry)
{
	const struct aqe_json *name =
		hard_verify_member(&i->v, HARD_RLIMITS, entry, "Name", "a limit's name");
	const struct aqe_json *soft =
		hard_verify_member(&i->v, HARD_RLIMITS, entry, "Soft", "a number");
	const struct aqe_json *hard =
		hard_verify_member(&i->v, HARD_RLIMITS, entry, "Hard", "a number");
	const struct hard_rlimit *rule = name ? rlimit_of(aqe_json_str(name)) : NULL;

	if (!name || !soft || !hard)
		return;
	if (!rule || !rule->allowed) {
		hard_report_fail(i->v.r, HARD_RLIMITS, name, NULL,
				 "limits on files, processes, memory, core and time only", "%s",
				 hard_verify_quote(&i->v, aqe_json_str(name)));
		return;
	}
	if (limit_value(hard) > rule->max)
		hard_report_fail(i->v.r, HARD_RLIMITS, hard, NULL,
				 aqe_arena_fmt(i->v.r->arena, "at most %" PRIu64, rule->max), "%s",
				 hard->text);
	if (limit_value(soft) > limit_value(hard))
		hard_report_fail(i->v.r, HARD_RLIMITS, soft, NULL, "at most the hard limit", "%s",
				 soft->text);
}

static void check_rlimits(struct hard_inspector *i)
{
	const struct aqe_json *list =
		hard_inspect_need(i, HARD_RLIMITS, "/HostConfig/Ulimits", "a list of limits");

	for (const struct aqe_json *u = list ? list->first : NULL; u; u = u->next)
		check_rlimit(i, u);
}

/* ---- LSM (R28) ---- */

static void check_lsm(struct hard_inspector *i)
{
	static const struct {
		const char *pointer;
		bool (*ok)(const char *label);
		const char *wanted;
	} rows[] = {
		{ "/AppArmorProfile", hard_rule_apparmor, "an engine's default profile, or none" },
		{ "/ProcessLabel", hard_rule_selinux_process,
		  "container_t at s0 with one or two categories, or none" },
		{ "/MountLabel", hard_rule_selinux_mount,
		  "container_file_t at s0 with one or two categories, or none" },
	};

	for (size_t k = 0; k < AQE_COUNT(rows); k++) {
		const struct aqe_json *label =
			hard_inspect_need(i, HARD_LSM, rows[k].pointer, rows[k].wanted);

		if (label && label->len && !rows[k].ok(aqe_json_str(label)))
			hard_report_fail(i->v.r, HARD_LSM, label, NULL, rows[k].wanted, "%s",
					 hard_verify_quote(&i->v, aqe_json_str(label)));
	}
}

/* ---- environment, labels, annotations ---- */

/* Values may be secrets and never reach a message. */
void hard_inspect_env(struct hard_inspector *i, const struct aqe_json *env)
{
	for (const struct aqe_json *e = env ? env->first : NULL; e; e = e->next) {
		const char *entry = aqe_json_str(e);
		const struct hard_env *denied = hard_rule_env(entry);
		const char *name;

		if (!denied)
			continue;
		name = aqe_arena_ndup(i->v.r->arena, entry, strcspn(entry, "="));
		for (size_t k = 0; k < 2 && (k == 0 || denied->props[1] != denied->props[0]); k++)
			hard_report_fail(i->v.r, denied->props[k], e, NULL, "no such variable",
					 "%s, which %s", hard_verify_quote(&i->v, name ? name : ""),
					 denied->why);
	}
}

static void report_note(struct hard_inspector *i, const struct aqe_json *note,
			const struct hard_active *active)
{
	const char *name = hard_verify_quote(&i->v, note->key);

	hard_report_fail(i->v.r, HARD_ANNOTATIONS, note, NULL, "names that only describe", "%s%s%s",
			 name, active ? ": " : ", an unknown name", active ? active->why : "");
	if (active && active->also != HARD_ANNOTATIONS)
		hard_report_fail(i->v.r, active->also, note, NULL, "no such annotation", "%s: %s",
				 name, active->why);
}

void hard_inspect_notes(struct hard_inspector *i, const struct aqe_json *notes)
{
	for (const struct aqe_json *n = notes ? notes->first : NULL; n; n = n->next)
		if (!hard_rule_annotation_allowed(i->ctx.policy, n->key, aqe_json_str(n)))
			report_note(i, n, hard_rule_active(n->key));
}

/* Some engines copy labels to annotations (CVE-2026-53488). */
void hard_inspect_labels(struct hard_inspector *i, const struct aqe_json *labels)
{
	for (const struct aqe_json *n = labels ? labels->first : NULL; n; n = n->next) {
		const struct hard_active *active = hard_rule_active(n->key);

		if (active && !hard_rule_annotation_allowed(i->ctx.policy, n->key, aqe_json_str(n)))
			report_note(i, n, active);
	}
}

void hard_inspect_process(struct hard_inspector *i)
{
	const struct aqe_json *cwd = hard_inspect_get(i, "/Config/WorkingDir");

	check_user(i);
	check_capabilities(i);
	check_rlimits(i);
	check_lsm(i);
	hard_inspect_env(i, hard_inspect_get(i, "/Config/Env"));
	hard_inspect_notes(i, hard_inspect_get(i, "/Config/Annotations"));
	hard_inspect_notes(i, hard_inspect_get(i, "/HostConfig/Annotations"));
	hard_inspect_labels(i, hard_inspect_get(i, "/Config/Labels"));
	/* CVE-2024-21626; "" is the image's own */
	if (cwd && cwd->len && !hard_rule_cwd(aqe_json_str(cwd)))
		hard_report_fail(i->v.r, HARD_MOUNTS, cwd, NULL,
				 "a canonical path outside /proc, /sys and /dev", "%s",
				 hard_verify_quote(&i->v, aqe_json_str(cwd)));
}
