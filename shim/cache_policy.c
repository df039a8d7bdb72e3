/* SPDX-License-Identifier: MIT */
#include "shim/cache_policy.h"

#include <string.h>

#include "shim/core/arena.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define ARENA_MAX ((size_t)4 << 20)
#define SECTION   "cache"

/* The sections, in order; an object without members says nothing. */
static struct cache_config_part *parts_of(struct aqe_arena *a, const struct hard_policy *p,
					  size_t *ret_n)
{
	struct cache_config_part *list = aqe_arena_calloc(a, p->n_sections + 1, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; list && i < p->n_sections; i++) {
		const struct hard_section *s = &p->sections[i];

		if (strcmp(s->key, SECTION) == 0 && s->root->first)
			list[n++] = (struct cache_config_part){ s->file, s->root, s->user };
	}
	*ret_n = n;
	return list;
}

/* Types that 'agents' or 'network' has. */
static bool is_type(const struct hard_policy *p, const char *name)
{
	bool found = hard_policy_agent(p, name) != NULL;

	for (size_t i = 0; i < p->n_sections && !found; i++)
		found = strcmp(p->sections[i].key, "network") == 0 &&
			aqe_json_get(aqe_json_get(p->sections[i].root, "agents"), name);
	return found;
}

/* An override for a type that does not exist is a typing error. */
static int check_types(const struct hard_policy *p, const struct cache_config_part *parts, size_t n,
		       struct aqe_err *e)
{
	for (size_t i = 0; i < n; i++) {
		const struct aqe_json *agents = aqe_json_get(parts[i].root, "agents");

		for (const struct aqe_json *m = agents ? agents->first : NULL; m; m = m->next)
			if (!is_type(p, m->key))
				return aqe_err_at(e, AQE_E_MALFORMED, m->line, m->col,
						  "%s:%u: '/cache/agents/%.64s' is no agent type",
						  parts[i].file, m->line, m->key);
	}
	return 0;
}

int shim_cache_policy(struct aqe_arena *a, const struct hard_policy *p, const char *type,
		      struct cache_config *ret, bool *ret_has, struct aqe_err *e)
{
	size_t n = 0;
	struct cache_config_part *parts = parts_of(a, p, &n);
	int rc;

	if (!parts)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the cache's policy");
	cache_config_init(ret);
	*ret_has = n > 0;
	if (n == 0)
		return 0;
	rc = check_types(p, parts, n, e);
	return rc ? rc : cache_config_load_parts(a, parts, n, type, ret, e);
}

int shim_cache_policy_check(const struct hard_policy *p, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = NULL;
	struct cache_config cfg;
	bool found = false, has;

	for (size_t i = 0; i < p->n_sections && !found; i++)
		found = strcmp(p->sections[i].key, SECTION) == 0;
	if (!found)
		return 0;
	a = aqe_arena_new(ARENA_MAX);
	if (!a)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the cache's policy");
	return shim_cache_policy(a, p, NULL, &cfg, &has, e);
}

int shim_cache_policy_each(const struct hard_policy *p, const char *type, cache_setting_fn *fn,
			   void *self, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct cache_config cfg;
	size_t n = 0;
	bool has = false;
	int rc = a ? shim_cache_policy(a, p, type, &cfg, &has, e)
		   : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the cache's policy");
	const struct cache_config_part *parts = rc || !has ? NULL : parts_of(a, p, &n);

	if (!rc && has && !parts)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the cache's policy");
	if (!rc && has)
		cache_config_each(&cfg, parts, n, type, fn, self);
	return rc;
}
