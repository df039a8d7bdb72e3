/* SPDX-License-Identifier: MIT */
#include "netpolicy/policy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "netpolicy/policy_int.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define FAULT_MAX    400
#define FILE_SHOWN   160
#define DEFAULT_TYPE "default"
#define CLUSTER_MS   200

const char *netpol_key_name(enum netpol_key k)
{
	static const char *const names[NETPOL_KEY_COUNT] = {
		[NETPOL_KEY_ACCESS] = "access",
		[NETPOL_KEY_MODE] = "mode",
		[NETPOL_KEY_SNI] = "sni",
		[NETPOL_KEY_APEX] = "wildcardApex",
		[NETPOL_KEY_DOMAINS] = "domains",
		[NETPOL_KEY_CIDR] = "allowCidr",
		[NETPOL_KEY_RATE] = "rate",
		[NETPOL_KEY_SHARED] = "sharedRate",
		[NETPOL_KEY_TIMEOUT] = "timeoutMs",
		[NETPOL_KEY_HOST_HEADER] = "hostHeader",
		[NETPOL_KEY_WEBSOCKET] = "webSocket",
		[NETPOL_KEY_SOCKS] = "socks",
		[NETPOL_KEY_TRANSPARENT] = "transparent",
		[NETPOL_KEY_LIMITS] = "limits",
	};

	return (unsigned)k < NETPOL_KEY_COUNT ? names[k] : "?";
}

/* ---- faults ---- */

int netpol_policy_fault(const struct netpol_build *b, const struct aqe_json *at, struct aqe_err *e,
			const char *fmt, ...)
{
	AQE_AUTO_BUF struct aqe_buf pointer = AQE_BUF_INIT(256);
	AQE_AUTO_BUF struct aqe_buf file = AQE_BUF_INIT((size_t)4 * FILE_SHOWN);
	char text[FAULT_MAX];
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	aqe_buf_quote(&file, b->sec->file, FILE_SHOWN);
	aqe_json_pointer(at, &pointer);
	return aqe_err_at(e, AQE_E_MALFORMED, at->line, at->col, "%s:%u: '%s' %s",
			  aqe_buf_str(&file), at->line, aqe_buf_str(&pointer), text);
}

int netpol_policy_nomem(struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the network policy");
}

/* ---- types ---- */

static struct netpol_type *find_type(const struct netpol_build *b, const char *name)
{
	for (size_t i = 0; i < b->p->n_types; i++) {
		if (strcmp(b->types[i].name, name) == 0)
			return &b->types[i];
	}
	return NULL;
}

static const struct netpol_base *find_base(const struct netpol_build *b, const char *name)
{
	for (size_t i = 0; i < b->n_base; i++) {
		if (strcmp(b->base[i].type, name) == 0)
			return &b->base[i];
	}
	return NULL;
}

/* A row as the built-in table has it. */
static int add_type(struct netpol_build *b, const char *name, const struct netpol_base *base,
		    struct aqe_err *e)
{
	const struct netpol_where where = { NETPOL_BUILT_IN, 0 };
	struct netpol_type *t = &b->types[b->p->n_types];
	int rc;

	memset(t, 0, sizeof(*t));
	t->name = aqe_arena_dup(b->arena, name);
	t->rules = netpol_rules_new(b->arena);
	if (!t->name || !t->rules)
		return netpol_policy_nomem(e);
	t->access = base->whitelisted ? NETPOL_ACCESS_WHITELISTED : NETPOL_ACCESS_ISOLATED;
	t->mode = NETPOL_MODE_ENFORCE;
	t->sni = NETPOL_SNI_ENFORCE;
	t->wildcard_apex = true;
	t->socks = t->transparent = true;
	t->rate = base->rate;
	t->timeout_ms = base->timeout_ms;
	for (size_t i = 0; i < NETPOL_LIMIT_ROWS_COUNT; i++)
		netpol_limit_set(&t->limits, &NETPOL_LIMIT_ROWS[i], NETPOL_LIMIT_ROWS[i].preset);
	for (size_t i = 0; i < NETPOL_KEY_COUNT; i++)
		t->where[i] = where;
	if (!netpol_rate_ok(&t->rate))
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "built-in rate of '%s'", name);
	rc = netpol_rules_add_list(t->rules, base->domains, strlen(base->domains), where, e);
	if (!rc)
		b->p->n_types++;
	return rc;
}

static bool type_name_ok(const char *s)
{
	const size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return n >= 1 && n <= NETPOL_TYPE_LEN_MAX && !s[n];
}

/* ---- the sections ---- */

/* Members that hold for all types; a type's own come later and win. */
static int read_common(struct netpol_build *b, struct aqe_err *e)
{
	int rc = AQE_OK;

	for (size_t i = 0; !rc && i < b->p->n_types; i++)
		rc = netpol_policy_read_type(b, b->sec->root, true, &b->types[i], e);
	return rc;
}

static int read_agent(struct netpol_build *b, const struct aqe_json *v, struct aqe_err *e)
{
	struct netpol_type *t = find_type(b, v->key);

	if (v->type != AQE_JSON_OBJECT)
		return netpol_policy_fault(b, v, e, "wanted an object");
	return netpol_policy_read_type(b, v, false, t, e);
}

static int read_agents(struct netpol_build *b, struct aqe_err *e)
{
	const struct aqe_json *agents = aqe_json_get(b->sec->root, "agents");
	int rc = AQE_OK;

	for (const struct aqe_json *v = agents ? agents->first : NULL; !rc && v; v = v->next)
		rc = read_agent(b, v, e);
	return rc;
}

/* New types get their rows before anything is read, so that common members reach them. */
static int add_new_types(struct netpol_build *b, struct aqe_err *e)
{
	const struct aqe_json *agents = aqe_json_get(b->sec->root, "agents");
	int rc = AQE_OK;

	for (const struct aqe_json *v = agents ? agents->first : NULL; !rc && v; v = v->next) {
		if (!type_name_ok(v->key))
			return netpol_policy_fault(
				b, v, e,
				"has no good name for an agent type, wanted 1 to 64 of a-z, 0-9 "
				"and '-'");
		if (!find_type(b, v->key))
			rc = add_type(b, v->key, b->fallback, e);
	}
	return rc;
}

/* ---- the user's tier ---- */

static int check_tighter(const struct netpol_build *b, const struct netpol_type *before,
			 const struct netpol_type *after, const struct aqe_json *at,
			 struct aqe_err *e)
{
	const unsigned k = netpol_policy_looser(before, after);
	const struct aqe_json *v;

	if (k >= NETPOL_KEY_COUNT)
		return AQE_OK;
	v = aqe_json_get(at, netpol_key_name((enum netpol_key)k));
	return netpol_policy_fault(b, v ? v : at, e,
				   "admits more for '%s' than the system's policy (%s:%u)",
				   before->name, before->where[k].file, before->where[k].line);
}

static int tighten(struct netpol_build *b, struct netpol_type *t, const struct aqe_json *obj,
		   bool common, struct aqe_err *e)
{
	struct netpol_type after = *t;
	int rc = netpol_policy_read_type(b, obj, common, &after, e);

	if (!rc)
		rc = check_tighter(b, t, &after, obj, e);
	if (!rc)
		*t = after;
	return rc;
}

static int tighten_agents(struct netpol_build *b, struct aqe_err *e)
{
	const struct aqe_json *agents = aqe_json_get(b->sec->root, "agents");
	int rc = AQE_OK;

	for (const struct aqe_json *v = agents ? agents->first : NULL; !rc && v; v = v->next) {
		struct netpol_type *t = find_type(b, v->key);

		if (!t)
			return netpol_policy_fault(b, v, e,
						   "is no agent type of the system's policy");
		rc = tighten(b, t, v, false, e);
	}
	return rc;
}

/* What belongs to no type opens ways out: only the system's policy has it. */
static int refuse_service(const struct netpol_build *b, struct aqe_err *e)
{
	static const char *const keys[] = { "gateways", "cluster", "upstreamProxy",
					    "publicSuffixFile" };

	for (size_t i = 0; i < AQE_COUNT(keys); i++) {
		const struct aqe_json *v = aqe_json_get(b->sec->root, keys[i]);

		if (v)
			return netpol_policy_fault(b, v, e, "is for the system's policy alone");
	}
	return AQE_OK;
}

static int read_user_section(struct netpol_build *b, struct aqe_err *e)
{
	int rc = refuse_service(b, e);

	for (size_t i = 0; !rc && i < b->p->n_types; i++)
		rc = tighten(b, &b->types[i], b->sec->root, true, e);
	return rc ? rc : tighten_agents(b, e);
}

/* ---- building ---- */

static int read_service(struct netpol_build *b, struct aqe_err *e)
{
	return netpol_policy_read_service(b, b->sec->root, e);
}

/* Each pass goes over all sections of one tier. */
static const struct {
	bool user;
	int (*run)(struct netpol_build *b, struct aqe_err *e);
} PASSES[] = {
	{ false, add_new_types }, { false, read_common },      { false, read_agents },
	{ false, read_service },  { true, read_user_section },
};

static int use_section(struct netpol_build *b, const struct netpol_section *sec, struct aqe_err *e)
{
	const struct aqe_json *agents;

	b->sec = sec;
	b->file = aqe_arena_dup(b->arena, sec->file);
	if (!b->file)
		return netpol_policy_nomem(e);
	if (sec->root->type != AQE_JSON_OBJECT)
		return netpol_policy_fault(b, sec->root, e, "wanted an object");
	agents = aqe_json_get(sec->root, "agents");
	if (agents && agents->type != AQE_JSON_OBJECT)
		return netpol_policy_fault(b, agents, e, "wanted an object");
	return AQE_OK;
}

static int run_passes(struct netpol_build *b, const struct netpol_section *sections, size_t n,
		      struct aqe_err *e)
{
	int rc = AQE_OK;

	for (size_t i = 0; i < AQE_COUNT(PASSES) * n; i++) {
		const struct netpol_section *sec = &sections[i % n];

		if (PASSES[i / n].user != sec->user)
			continue;
		rc = use_section(b, sec, e);
		if (!rc)
			rc = PASSES[i / n].run(b, e);
		if (rc)
			return rc;
	}
	return rc;
}

/* Rows that the sections may add. */
static size_t count_members(const struct netpol_section *sections, size_t n, const char *name)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		const struct aqe_json *v = aqe_json_get(sections[i].root, name);

		sum += v ? v->len : 0;
	}
	return sum;
}

static int make_room(struct netpol_build *b, const struct netpol_section *sections, size_t n,
		     struct aqe_err *e)
{
	const size_t types = b->n_base + count_members(sections, n, "agents");
	const size_t gateways = count_members(sections, n, "gateways");

	if (types > NETPOL_TYPES_MAX || gateways > NETPOL_GATEWAYS_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0,
				   "network policy has more than %d agent types or %d gateways",
				   NETPOL_TYPES_MAX, NETPOL_GATEWAYS_MAX);
	b->types = aqe_arena_calloc(b->arena, types, sizeof(*b->types));
	b->gateways = aqe_arena_calloc(b->arena, gateways + 1, sizeof(*b->gateways));
	if (!b->types || !b->gateways)
		return netpol_policy_nomem(e);
	b->p->types = b->types;
	b->p->gateways = b->gateways;
	return AQE_OK;
}

static int set_digest(struct netpol_policy *p, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(NETPOL_ARENA_MAX);
	int rc = netpol_policy_emit(p, NULL, &b, e);

	if (!rc)
		aqe_sha256_text(b.p, b.len, p->digest);
	return rc;
}

static int build(struct netpol_build *b, const struct netpol_section *sections, size_t n_sections,
		 struct aqe_err *e)
{
	int rc = make_room(b, sections, n_sections, e);

	if (rc || !b->types)
		return rc ? rc : AQE_E_NOMEM;
	for (size_t i = 0; !rc && i < b->n_base; i++)
		rc = add_type(b, b->base[i].type, &b->base[i], e);
	if (!rc)
		rc = run_passes(b, sections, n_sections, e);
	if (rc)
		return rc;
	b->p->fallback = find_type(b, DEFAULT_TYPE);
	return AQE_OK;
}

/* A snapshot without its digest. */
static int make(const struct netpol_base *base, size_t n_base,
		const struct netpol_section *sections, size_t n_sections,
		struct netpol_policy **ret, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(NETPOL_ARENA_MAX);
	struct netpol_policy *p = a ? aqe_arena_alloc(a, sizeof(*p)) : NULL;
	struct netpol_build b = { .p = p, .arena = a, .base = base, .n_base = n_base };
	int rc;

	if (!p)
		return netpol_policy_nomem(e);
	b.fallback = find_base(&b, DEFAULT_TYPE);
	if (!b.fallback)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "no built-in row 'default'");
	p->cluster.timeout_ms = CLUSTER_MS;
	p->cluster.prefix = "aqe:";
	p->refs = 1;
	rc = build(&b, sections, n_sections, e);
	if (rc)
		return rc;
	p->arena = AQE_TAKE_PTR(a);
	*ret = p;
	return AQE_OK;
}

int netpol_policy_build(const struct netpol_base *base, size_t n_base,
			const struct netpol_section *sections, size_t n_sections,
			struct netpol_policy **ret, struct aqe_err *e)
{
	struct netpol_policy *p = NULL;
	int rc = make(base, n_base, sections, n_sections, &p, e);

	if (!rc)
		rc = set_digest(p, e);
	if (rc)
		netpol_policy_unref(p);
	else
		*ret = p;
	return rc;
}

int netpol_policy_check(const struct netpol_base *base, size_t n_base,
			const struct netpol_section *sections, size_t n_sections, struct aqe_err *e)
{
	struct netpol_policy *p = NULL;
	int rc = make(base, n_base, sections, n_sections, &p, e);

	netpol_policy_unref(p);
	return rc;
}

/* ---- using ---- */

struct netpol_policy *netpol_policy_ref(struct netpol_policy *p)
{
	p->refs++;
	return p;
}

void netpol_policy_unref(struct netpol_policy *p)
{
	if (p && --p->refs == 0)
		aqe_arena_free(p->arena); /* p itself lives in it */
}

const struct netpol_type *netpol_policy_type(const struct netpol_policy *p, const char *type)
{
	for (size_t i = 0; type && i < p->n_types; i++) {
		if (strcmp(p->types[i].name, type) == 0)
			return &p->types[i];
	}
	return p->fallback;
}

const struct netpol_gateway *netpol_policy_gateway(const struct netpol_policy *p, const char *type,
						   const char *name)
{
	for (size_t i = 0; i < p->n_gateways; i++) {
		const struct netpol_gateway *g = &p->gateways[i];

		if (strcmp(g->name, name) != 0)
			continue;
		for (size_t k = 0; k < g->n_types; k++) {
			if (aqe_str_eq(g->types[k], type))
				return g;
		}
		return g->n_types ? NULL : g;
	}
	return NULL;
}
