/* SPDX-License-Identifier: MIT */
#include "shim/net_policy.h"

#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define ARENA_MAX ((size_t)4 << 20)
#define SECTION   "network"

/* The built-in table, and the types that 'agents' adds to it. */
static struct netpol_base *base_rows(struct aqe_arena *a, const struct hard_policy *p)
{
	struct netpol_base *rows = aqe_arena_calloc(a, p->n_agents, sizeof(*rows));

	for (size_t i = 0; rows && i < p->n_agents; i++) {
		const struct hard_agent *from = &p->agents[i];

		rows[i] = (struct netpol_base){
			.type = from->type,
			.whitelisted = aqe_str_eq(from->network, "whitelisted"),
			.domains = from->domains,
			.rate = { from->per_minute, from->per_hour, from->burst },
			.timeout_ms = from->timeout_ms,
		};
	}
	return rows;
}

static struct netpol_section *sections(struct aqe_arena *a, const struct hard_policy *p,
				       size_t *ret_n)
{
	struct netpol_section *list = aqe_arena_calloc(a, p->n_sections + 1, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; list && i < p->n_sections; i++) {
		const struct hard_section *s = &p->sections[i];

		if (strcmp(s->key, SECTION) == 0)
			list[n++] = (struct netpol_section){ s->file, s->root, s->user };
	}
	*ret_n = n;
	return list;
}

/* With `ret` NULL only judges. */
static int build(const struct hard_policy *p, struct netpol_policy **ret, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct netpol_base *base = a ? base_rows(a, p) : NULL;
	struct netpol_section *list;
	size_t n = 0;

	list = base ? sections(a, p, &n) : NULL;
	if (!list)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the network policy");
	return ret ? netpol_policy_build(base, p->n_agents, list, n, ret, e)
		   : netpol_policy_check(base, p->n_agents, list, n, e);
}

int shim_net_policy_build(const struct hard_policy *p, struct netpol_policy **ret,
			  struct aqe_err *e)
{
	return build(p, ret, e);
}

int shim_net_policy_check(const struct hard_policy *p, struct aqe_err *e)
{
	for (size_t i = 0; i < p->n_sections; i++) {
		if (strcmp(p->sections[i].key, SECTION) == 0)
			return build(p, NULL, e);
	}
	return AQE_OK;
}
