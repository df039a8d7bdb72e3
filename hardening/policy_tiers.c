/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "hardening/policy_file.h"
#include "shim/core/arena.h"
#include "shim/core/text.h"

/* Members that several files may have: their parts are put together. */
static const char *const MERGED[] = { "$schema", "version", "agents", "images", "mounts",
				      "waivers", "network", "cache",  "audit",  NULL };

static const char *const NETWORK_MERGED[] = { "agents", "gateways", NULL };
static const char *const CACHE_MERGED[] = { "agents", NULL };

/* ---- one tier: nothing twice ---- */

/* Refuses members of `obj` that `other` has too. */
static int no_common(const struct hard_policy_file *f, const struct aqe_json *obj,
		     const struct hard_policy_file *g, const struct aqe_json *other,
		     const char *const *but, struct aqe_err *e)
{
	for (const struct aqe_json *m = obj ? obj->first : NULL; m; m = m->next) {
		const struct aqe_json *first = aqe_json_get(other, m->key);

		if (first && !(but && aqe_str_in(m->key, but)))
			return hard_policy_fault(f, m, e, "is set already by %s:%u", g->path,
						 first->line);
	}
	return AQE_OK;
}

/* Objects whose members must differ from file to file, but for those merged in their turn. */
static const struct {
	const char *pointer;
	const char *const *but;
} PARTS[] = {
	{ "", MERGED },
	{ "/agents", NULL },
	{ "/audit", NULL },
	{ "/network", NETWORK_MERGED },
	{ "/network/agents", NULL },
	{ "/network/gateways", NULL },
	{ "/cache", CACHE_MERGED },
	{ "/cache/agents", NULL },
};

int hard_policy_twice(const struct hard_policy_files *fs, struct aqe_err *e)
{
	int rc = AQE_OK;

	for (size_t i = 1; i < fs->n; i++) {
		const struct hard_policy_file *f = &fs->file[i];

		for (size_t j = 0; !rc && j < i * AQE_COUNT(PARTS); j++) {
			const struct hard_policy_file *g = &fs->file[j / AQE_COUNT(PARTS)];
			const size_t part = j % AQE_COUNT(PARTS);

			rc = no_common(f, aqe_json_at(f->root, PARTS[part].pointer), g,
				       aqe_json_at(g->root, PARTS[part].pointer), PARTS[part].but,
				       e);
		}
	}
	return rc;
}

/* ---- the user's tier: only tighter ---- */

struct tighten {
	struct hard_policy *p;
	struct hard_agent *agents; /* p->agents, ours to write */
};

static int tighten_nothing(struct tighten *t, const struct hard_policy_file *f,
			   const struct aqe_json *v, struct aqe_err *e)
{
	(void)t;
	(void)f;
	(void)v;
	(void)e;
	return AQE_OK;
}

static int tighten_version(struct tighten *t, const struct hard_policy_file *f,
			   const struct aqe_json *v, struct aqe_err *e)
{
	(void)t;
	return hard_policy_read_version(f, v, e);
}

static int tighten_mode(struct tighten *t, const struct hard_policy_file *f,
			const struct aqe_json *v, struct aqe_err *e)
{
	enum hard_mode mode = HARD_MODE_ENFORCE;
	int rc = hard_policy_read_mode(f, v, &mode, e);

	if (rc)
		return rc;
	if (mode < t->p->mode)
		return hard_policy_fault_value(f, v, "looser than the system's policy", e);
	t->p->mode = mode;
	return AQE_OK;
}

/* The user's log is the user's own file: where it lies loosens nothing. */
static int tighten_audit(struct tighten *t, const struct hard_policy_file *f,
			 const struct aqe_json *v, struct aqe_err *e)
{
	struct hard_audit after = t->p->audit;
	int rc;

	after.path = NULL;
	rc = hard_policy_read_audit(f, v, &after, e);
	if (rc)
		return rc;
	if (after.mode < t->p->audit.mode)
		return hard_policy_fault_value(f, aqe_json_get(v, "mode"),
					       "looser than the system's policy", e);
	if (after.sign_every > t->p->audit.sign_every)
		return hard_policy_fault_value(f, aqe_json_get(v, "signEvery"),
					       "more than the system's policy allows", e);
	after.user_path = after.path ? after.path : t->p->audit.user_path;
	after.path = t->p->audit.path;
	t->p->audit = after;
	return AQE_OK;
}

static int tighten_unmarked(struct tighten *t, const struct hard_policy_file *f,
			    const struct aqe_json *v, struct aqe_err *e)
{
	bool refuse = false;
	int rc = hard_policy_read_unmarked(f, v, &refuse, e);

	if (rc)
		return rc;
	if (!refuse)
		return hard_policy_fault_value(f, v,
					       "below a system's policy it can only be refuse", e);
	t->p->unmarked_refuse = true;
	return AQE_OK;
}

/* The member of the agent that would give more than before, or NULL. */
static const char *looser(const struct hard_agent *before, const struct hard_agent *after)
{
	if (after->cpus_milli > before->cpus_milli)
		return "cpus";
	if (after->memory_bytes > before->memory_bytes)
		return "memory";
	if (after->disk_bytes > before->disk_bytes)
		return "disk";
	if (after->pids > before->pids)
		return "pids";
	return after->tmp_exec && !before->tmp_exec ? "tmpExec" : NULL;
}

static int tighten_agents(struct tighten *t, const struct hard_policy_file *f,
			  const struct aqe_json *v, struct aqe_err *e)
{
	for (const struct aqe_json *m = v->first; m; m = m->next) {
		const struct hard_agent *before = hard_policy_agent(t->p, m->key);
		struct hard_agent after;
		const char *bad;
		int rc;

		if (!before)
			return hard_policy_fault(f, m, e,
						 "is no agent type of the system's policy");
		after = *before;
		rc = hard_policy_read_limits(f, m, &after, e);
		if (rc)
			return rc;
		bad = looser(before, &after);
		if (bad)
			return hard_policy_fault(f, aqe_json_get(m, bad), e,
						 "is above what the system's policy allows");
		t->agents[before - t->p->agents] = after;
	}
	return AQE_OK;
}

static const struct {
	const char *key;
	int (*apply)(struct tighten *t, const struct hard_policy_file *f, const struct aqe_json *v,
		     struct aqe_err *e);
} USER_KEYS[] = {
	{ "$schema", tighten_nothing },   { "version", tighten_version },
	{ "mode", tighten_mode },         { "agents", tighten_agents },
	{ "unmarked", tighten_unmarked }, { "network", tighten_nothing }, /* netpolicy judges it */
	{ "audit", tighten_audit },       { "cache", tighten_nothing },   /* cache judges it */
};

static int tighten_member(struct tighten *t, const struct hard_policy_file *f,
			  const struct aqe_json *v, struct aqe_err *e)
{
	for (size_t i = 0; i < AQE_COUNT(USER_KEYS); i++) {
		if (strcmp(USER_KEYS[i].key, v->key) == 0)
			return USER_KEYS[i].apply(t, f, v, e);
	}
	return hard_policy_fault(f, v, e,
				 "is set by the system's policy; a user's can only have mode, "
				 "agents, unmarked, network, cache and audit, and only tighter");
}

int hard_policy_tighten(struct hard_policy *p, const struct hard_policy_files *fs,
			struct aqe_err *e)
{
	struct tighten t = { .p = p };
	int rc = AQE_OK;

	t.agents = aqe_arena_calloc(p->arena, p->n_agents, sizeof(*t.agents));
	if (!t.agents)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the policy");
	memcpy(t.agents, p->agents, p->n_agents * sizeof(*t.agents));
	p->agents = t.agents;
	for (size_t i = 0; i < fs->n; i++) {
		const struct hard_policy_file *f = &fs->file[i];

		for (const struct aqe_json *v = f->root->first; !rc && v; v = v->next)
			rc = tighten_member(&t, f, v, e);
	}
	return rc ? rc : hard_policy_keep_sections(p, fs, true, e);
}
