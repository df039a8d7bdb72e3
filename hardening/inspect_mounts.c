/* SPDX-License-Identifier: MIT */
#include "hardening/inspect_in.h"

#include <inttypes.h>
#include <string.h>

#include "shim/core/text.h"

#define WORDS(...)                \
	(const char *const[])     \
	{                         \
		__VA_ARGS__, NULL \
	}

/* Words of a -v option that are the engine's and not the kernel's: relabelling, and what Docker
 * Desktop once meant. */
static const char *const engine_words[] = { "z",         "Z",          "nocopy", "cached",
					    "delegated", "consistent", NULL };

static const char *member(const struct aqe_json *object, const char *name)
{
	const char *s = aqe_json_str(aqe_json_get(object, name));

	return s ? s : "";
}

/* R20, by name. */
static void check_socket(struct hard_inspector *i, const struct aqe_json *at, const char *source)
{
	const char *why = hard_rule_socket(source);

	if (why)
		hard_report_fail(i->v.r, HARD_ENGINE_SOCKET, at, NULL,
				 "no way to an engine's socket", "%s, %s",
				 hard_verify_quote(&i->v, source), why);
}

/* Source and destination are byte for byte a mount of the policy; else reported. */
static const struct hard_mount *match_policy(struct hard_inspector *i, const struct aqe_json *at,
					     const char *source, const char *destination)
{
	const struct hard_mount *m = hard_rule_policy_mount(&i->ctx, destination);

	if (!m)
		hard_report_fail(i->v.r, HARD_MOUNTS, at, NULL, "the policy's mounts only",
				 "a mount at %s", hard_verify_quote(&i->v, destination));
	else if (!aqe_str_eq(source, m->source)) {
		hard_report_fail(i->v.r, HARD_MOUNTS, at, NULL, m->source, "%s",
				 hard_verify_quote(&i->v, source));
		m = NULL;
	}
	return m;
}

/* ---- options ---- */

struct words {
	const struct aqe_json *at;
	unsigned seen;
	bool ro;
};

static void take_word(struct hard_inspector *i, const char *word, void *arg)
{
	struct words *w = arg;

	w->ro = w->ro || aqe_str_eq(word, "ro");
	if (!aqe_str_in(word, engine_words))
		hard_verify_option(&i->v, w->at, word, &HARD_BIND_OPTS, HARD_MOUNTS, &w->seen);
}

static void require_ro(struct hard_inspector *i, const struct aqe_json *at,
		       const struct hard_mount *m, bool ro)
{
	if (m && m->readonly && !ro)
		hard_report_fail(i->v.r, HARD_MOUNTS, at, NULL, "read-only, as the policy says",
				 "a writable mount");
}

/* ---- Mounts: what the engine says is mounted ---- */

static void check_propagation(struct hard_inspector *i, const struct aqe_json *mount)
{
	static const char *const good[] = { "private", "rprivate", NULL };
	const struct aqe_json *p = hard_verify_member(&i->v, HARD_PROPAGATION, mount, "Propagation",
						      "private or rprivate");

	if (!p || aqe_str_in(aqe_json_str(p), good))
		return;
	hard_report_fail(i->v.r, HARD_PROPAGATION, p, NULL, "private or rprivate", "%s",
			 hard_verify_quote(&i->v, aqe_json_str(p)));
}

static void check_podman_options(struct hard_inspector *i, const struct aqe_json *mount)
{
	const struct aqe_json *list = aqe_json_get(mount, "Options");
	struct words w = { 0 };

	for (const struct aqe_json *o = list ? list->first : NULL; o; o = o->next) {
		w.at = o;
		take_word(i, aqe_json_str(o), &w);
	}
	for (const char *const *word = HARD_BIND_OPTS.required; *word; word++)
		if (!aqe_json_has_str(list, *word))
			hard_report_fail(i->v.r, HARD_MOUNTS, mount, "/Options", *word, "absent");
}

static void check_bind(struct hard_inspector *i, const struct aqe_json *mount)
{
	const struct hard_mount *m =
		match_policy(i, mount, member(mount, "Source"), member(mount, "Destination"));
	const struct aqe_json *rw =
		hard_verify_member(&i->v, HARD_MOUNTS, mount, "RW", "true or false");
	struct words w = { .at = aqe_json_get(mount, "Mode") };

	check_propagation(i, mount);
	if (!m)
		return;
	require_ro(i, mount, m, rw && !rw->boolean);
	if (w.at)
		hard_inspect_split(i, aqe_json_str(w.at), take_word, &w);
	if (i->podman) /* docker's binds cannot carry nosuid and nodev (measured) */
		check_podman_options(i, mount);
	if (member(mount, "SubPath")[0])
		hard_report_fail(i->v.r, HARD_MOUNTS, mount, "/SubPath", "none", "a part of it");
}

static void check_mount(struct hard_inspector *i, const struct aqe_json *mount)
{
	const char *type = member(mount, "Type");

	check_socket(i, aqe_json_get(mount, "Source") ? aqe_json_get(mount, "Source") : mount,
		     member(mount, "Source"));
	/* docker lists a tmpfs of its mount API here; hard_inspect_tmpfs() judges it */
	if (!i->podman && aqe_str_eq(type, "tmpfs") &&
	    hard_rule_tmpfs(member(mount, "Destination")))
		return;
	if (aqe_str_eq(type, "bind")) {
		check_bind(i, mount);
		return;
	}
	hard_report_fail(i->v.r, HARD_MOUNTS, mount, NULL, "the policy's binds only", "%s at %s",
			 hard_verify_quote(&i->v, type),
			 hard_verify_quote(&i->v, member(mount, "Destination")));
}

/* ---- Binds: what -v asked for ---- */

/* SOURCE:DESTINATION[:OPTIONS], cut into three. False when it is not that. */
static bool cut_bind(struct hard_inspector *i, const char *text, const char *ret[3])
{
	const char *colon = strchr(text, ':');
	const char *end = colon ? strchr(colon + 1, ':') : NULL;
	struct aqe_arena *a = i->v.r->arena;

	if (!colon || (end && strchr(end + 1, ':')))
		return false;
	ret[0] = aqe_arena_ndup(a, text, (size_t)(colon - text));
	ret[1] = end ? aqe_arena_ndup(a, colon + 1, (size_t)(end - colon) - 1)
		     : aqe_arena_dup(a, colon + 1);
	ret[2] = end ? end + 1 : "";
	return ret[0] && ret[1];
}

static const struct aqe_json *find_mount(const struct hard_inspector *i, const char *destination)
{
	const struct aqe_json *list = hard_inspect_get(i, "/Mounts");

	for (const struct aqe_json *m = list ? list->first : NULL; m; m = m->next)
		if (aqe_str_eq(member(m, "Destination"), destination))
			return m;
	return NULL;
}

/* Both lists must tell the same story. */
static void compare(struct hard_inspector *i, const struct aqe_json *at, const char *source,
		    const char *destination)
{
	const struct aqe_json *m = find_mount(i, destination);

	if (!m || !aqe_str_eq(member(m, "Source"), source))
		hard_report_fail(i->v.r, HARD_MOUNTS, at, NULL, "what Mounts says",
				 "%s at %s, which Mounts does not show",
				 hard_verify_quote(&i->v, source),
				 hard_verify_quote(&i->v, destination));
}

static void judge_bind(struct hard_inspector *i, const struct aqe_json *at)
{
	const char *part[3] = { "", "", "" };
	struct words w = { .at = at };
	const struct hard_mount *m;

	if (!cut_bind(i, aqe_json_str(at), part)) {
		hard_report_fail(i->v.r, HARD_MOUNTS, at, NULL, "SOURCE:DESTINATION:OPTIONS", "%s",
				 hard_verify_quote(&i->v, aqe_json_str(at)));
		return;
	}
	check_socket(i, at, part[0]);
	m = match_policy(i, at, part[0], part[1]);
	if (!m) {
		if (part[0][0] == '/') /* a volume's name is no path; Mounts has its type */
			compare(i, at, part[0], part[1]);
		return;
	}
	compare(i, at, part[0], part[1]);
	hard_inspect_split(i, part[2], take_word, &w);
	require_ro(i, at, m, w.ro);
}

/* ---- HostConfig.Mounts: what docker's --mount asked for ---- */

static void judge_api_mount(struct hard_inspector *i, const struct aqe_json *mount)
{
	static const char *const good[] = { "", "private", "rprivate", NULL };
	const char *type = member(mount, "Type");
	const char *source = member(mount, "Source"), *target = member(mount, "Target");
	const struct aqe_json *ro = aqe_json_get(mount, "ReadOnly");
	const struct aqe_json *p = aqe_json_get(aqe_json_get(mount, "BindOptions"), "Propagation");

	check_socket(i, mount, source);
	if (aqe_str_eq(type, "tmpfs") && hard_rule_tmpfs(target))
		return;
	if (!aqe_str_eq(type, "bind")) {
		hard_report_fail(i->v.r, HARD_MOUNTS, mount, NULL, "the policy's binds only",
				 "%s at %s", hard_verify_quote(&i->v, type),
				 hard_verify_quote(&i->v, target));
		return;
	}
	require_ro(i, mount, match_policy(i, mount, source, target), ro && ro->boolean);
	compare(i, mount, source, target);
	if (p && !aqe_str_in(aqe_json_str(p), good))
		hard_report_fail(i->v.r, HARD_PROPAGATION, p, NULL, "private or rprivate", "%s",
				 hard_verify_quote(&i->v, aqe_json_str(p)));
}

/* ---- presence ---- */

static bool asked_for(const struct hard_inspector *i, const char *destination)
{
	const struct aqe_json *binds = hard_inspect_get(i, "/HostConfig/Binds");
	const struct aqe_json *api = hard_inspect_get(i, "/HostConfig/Mounts");
	const size_t n = strlen(destination);

	for (const struct aqe_json *b = binds ? binds->first : NULL; b; b = b->next) {
		const char *colon = strchr(aqe_json_str(b), ':');

		if (colon && aqe_starts(colon + 1, destination) &&
		    (colon[1 + n] == '\0' || colon[1 + n] == ':'))
			return true;
	}
	for (const struct aqe_json *m = api ? api->first : NULL; m; m = m->next)
		if (aqe_str_eq(member(m, "Target"), destination))
			return true;
	return false;
}

static void check_presence(struct hard_inspector *i, const struct aqe_json *list)
{
	const struct hard_policy *policy = i->ctx.policy;

	for (size_t k = 0; k < policy->n_mounts; k++) {
		const char *dest = policy->mounts[k].destination;
		const char *wanted;

		if (!hard_rule_mount_applies(&policy->mounts[k], i->ctx.agent->type))
			continue;
		wanted = aqe_arena_fmt(i->v.r->arena, "a mount at %s", dest);
		if (!find_mount(i, dest)) {
			hard_report_fail(i->v.r, HARD_MOUNTS, list, NULL, wanted, "none");
			hard_report_fail(i->v.r, HARD_MISSING_FIELD, list, NULL, wanted, "none");
		} else if (!asked_for(i, dest)) {
			hard_report_fail(i->v.r, HARD_MOUNTS, find_mount(i, dest), NULL,
					 "a mount that Binds shows too", "none there");
		}
	}
}

static void check_twice(struct hard_inspector *i, const struct aqe_json *list)
{
	for (const struct aqe_json *m = list->first; m; m = m->next)
		if (find_mount(i, member(m, "Destination")) != m)
			hard_report_fail(i->v.r, HARD_MOUNTS, m, NULL, "one mount at each place",
					 "a second mount at %s",
					 hard_verify_quote(&i->v, member(m, "Destination")));
}

void hard_inspect_mounts(struct hard_inspector *i)
{
	const struct aqe_json *list =
		hard_inspect_need(i, HARD_MOUNTS, "/Mounts", "the policy's mounts");
	const struct aqe_json *binds =
		hard_inspect_need(i, HARD_MOUNTS, "/HostConfig/Binds", "the policy's mounts");
	const struct aqe_json *api = hard_inspect_get(i, "/HostConfig/Mounts");
	const struct aqe_json *readonly =
		hard_inspect_need(i, HARD_READONLY_ROOTFS, "/HostConfig/ReadonlyRootfs", "true");
	const struct aqe_json *shm = hard_inspect_get(i, "/HostConfig/ShmSize");
	uint64_t size;

	for (const struct aqe_json *m = list ? list->first : NULL; m; m = m->next)
		check_mount(i, m);
	for (const struct aqe_json *b = binds ? binds->first : NULL; b; b = b->next)
		judge_bind(i, b);
	for (const struct aqe_json *m = api ? api->first : NULL; m; m = m->next)
		judge_api_mount(i, m);
	if (list) {
		check_presence(i, list);
		check_twice(i, list);
	}
	hard_inspect_empty(i, HARD_MOUNTS, "/HostConfig/VolumesFrom", "no other container's");
	hard_inspect_empty(i, HARD_MOUNTS, "/Config/ChrootDirs", "none");
	if (readonly && !readonly->boolean)
		hard_report_fail(i->v.r, HARD_READONLY_ROOTFS, readonly, NULL, "true", "false");
	if (shm && !aqe_json_to_u64(shm, HARD_DEV_SIZE_MAX, &size))
		hard_report_fail(i->v.r, HARD_MOUNTS, shm, NULL, "at most 1 GiB", "%s", shm->text);
}

/* ---- tmpfs (R21) ---- */

/* Podman's own words beside the kernel's: what the image has there is copied in, or not. */
static const char *const copy_words[] = { "tmpcopyup", "notmpcopyup", NULL };

struct tmpfs {
	const struct aqe_json *at;
	unsigned seen;
	bool nosuid, nodev;
	uint64_t size;
};

static void take_tmpfs_word(struct hard_inspector *i, const char *word, void *arg)
{
	struct tmpfs *t = arg;

	t->nosuid = t->nosuid || aqe_str_eq(word, "nosuid");
	t->nodev = t->nodev || aqe_str_eq(word, "nodev");
	if (i->podman && aqe_str_in(word, copy_words))
		return;
	hard_verify_option(&i->v, t->at, word, &HARD_TMPFS_OPTS, HARD_TMPFS, &t->seen);
	if (aqe_starts(word, "size=") &&
	    (!aqe_parse_size(word + strlen("size="), &t->size) || t->size == 0)) {
		t->size = 0;
		hard_report_fail(i->v.r, HARD_TMPFS, t->at, NULL, "a size from 1 byte up", "%s",
				 hard_verify_quote(&i->v, word));
	}
	if (aqe_starts(word, "mode=") &&
	    (strspn(word + 5, "01234567") != strlen(word + 5) || strlen(word + 5) < 3 ||
	     strlen(word + 5) > 4 || (strlen(word + 5) == 4 && word[5] > '1')))
		hard_report_fail(i->v.r, HARD_TMPFS, t->at, NULL, "at most mode 1777", "%s",
				 hard_verify_quote(&i->v, word));
}

/* One entry of HostConfig.Tmpfs; the size, for the sum. */
static uint64_t judge_tmpfs(struct hard_inspector *i, const struct aqe_json *at)
{
	struct tmpfs t = { .at = at };

	if (!hard_rule_tmpfs(at->key)) {
		hard_report_fail(i->v.r, HARD_TMPFS, at, NULL, "/tmp and /run only",
				 "a writable %s", hard_verify_quote(&i->v, at->key));
		hard_report_fail(i->v.r, HARD_MOUNTS, at, NULL,
				 "the policy's mounts, /tmp and /run only", "a mount at %s",
				 hard_verify_quote(&i->v, at->key));
		return 0;
	}
	hard_inspect_split(i, aqe_json_str(at), take_tmpfs_word, &t);
	/* docker adds noexec, nosuid and nodev to every tmpfs (measured) */
	if (i->podman && !t.nosuid)
		hard_report_fail(i->v.r, HARD_TMPFS, at, NULL, "nosuid", "absent");
	if (i->podman && !t.nodev)
		hard_report_fail(i->v.r, HARD_TMPFS, at, NULL, "nodev", "absent");
	if (!(t.seen & (1U << HARD_OPT_SIZE)))
		hard_report_fail(i->v.r, HARD_TMPFS, at, NULL, "size=N", "absent");
	return t.size;
}

/* The same made with docker's mount API. */
static uint64_t judge_api_tmpfs(struct hard_inspector *i, const struct aqe_json *mount)
{
	const struct aqe_json *options = aqe_json_get(mount, "TmpfsOptions");
	const struct aqe_json *extra = aqe_json_get(options, "Options");
	const struct aqe_json *mode = aqe_json_get(options, "Mode");
	uint64_t size = 0, bits = 0;

	if (!aqe_json_to_u64(aqe_json_get(options, "SizeBytes"), INT64_MAX, &size) || size == 0)
		hard_report_fail(i->v.r, HARD_TMPFS, mount, "/TmpfsOptions/SizeBytes", "a size",
				 "none");
	if (mode && (!aqe_json_to_u64(mode, UINT32_MAX, &bits) || bits > 01777))
		hard_report_fail(i->v.r, HARD_TMPFS, mode, NULL, "at most mode 1777", "%s",
				 mode->text);
	if (extra && extra->len)
		hard_report_fail(i->v.r, HARD_TMPFS, extra, NULL, "no further option", "%zu",
				 extra->len);
	return size;
}

static void add_size(uint64_t *sum, uint64_t size)
{
	*sum = size > UINT64_MAX - *sum ? UINT64_MAX : *sum + size;
}

void hard_inspect_tmpfs(struct hard_inspector *i)
{
	const struct aqe_json *map = hard_inspect_get(i, "/HostConfig/Tmpfs");
	const struct aqe_json *api = hard_inspect_get(i, "/HostConfig/Mounts");
	const struct aqe_json *host = hard_inspect_get(i, "/HostConfig");
	const struct hard_agent *agent = i->ctx.agent;
	const uint64_t most = agent->disk_bytes ? agent->disk_bytes : agent->memory_bytes;
	bool there[2] = { false, false };
	uint64_t sum = 0;

	for (const struct aqe_json *t = map ? map->first : NULL; t; t = t->next) {
		add_size(&sum, judge_tmpfs(i, t));
		for (size_t k = 0; k < AQE_COUNT(there) && k < HARD_TMPFS_MOUNTS_COUNT; k++)
			there[k] = there[k] || aqe_str_eq(t->key, HARD_TMPFS_MOUNTS[k].destination);
	}
	for (const struct aqe_json *m = api ? api->first : NULL; m; m = m->next) {
		if (!aqe_str_eq(member(m, "Type"), "tmpfs"))
			continue;
		add_size(&sum, judge_api_tmpfs(i, m));
		for (size_t k = 0; k < AQE_COUNT(there) && k < HARD_TMPFS_MOUNTS_COUNT; k++)
			there[k] = there[k] || aqe_str_eq(member(m, "Target"),
							  HARD_TMPFS_MOUNTS[k].destination);
	}
	if (!map && i->podman) /* docker leaves it out when there is none */
		(void)hard_inspect_need(i, HARD_TMPFS, "/HostConfig/Tmpfs", "/tmp and /run");
	for (size_t k = 0; k < AQE_COUNT(there); k++)
		if (!there[k])
			hard_report_fail(i->v.r, HARD_TMPFS, host ? host : i->v.spec, "/Tmpfs",
					 HARD_TMPFS_MOUNTS[k].destination, "absent");
	if (sum > most)
		hard_report_fail(i->v.r, HARD_TMPFS, map ? map : i->v.spec, NULL,
				 aqe_arena_fmt(i->v.r->arena,
					       "/tmp and /run together at most %" PRIu64 " bytes",
					       most),
				 "%" PRIu64 " bytes", sum);
}
