/* SPDX-License-Identifier: MIT */
#include "cache/config.h"

#include <string.h>

#include "cache/config_rows.h"
#include "shim/core/arena.h"
#include "shim/core/text.h"

#define HOUR_MS ((int64_t)3600000)

static const char *const BACKENDS[CACHE_BACKENDS] = {
	[CACHE_MEMORY] = "memory",
	[CACHE_SQLITE] = "sqlite",
	[CACHE_REDIS] = "redis",
};

const char *cache_backend_name(enum cache_backend b)
{
	return b < CACHE_BACKENDS ? BACKENDS[b] : "none";
}

void cache_config_init(struct cache_config *cfg)
{
	static const struct cache_config DEFAULTS = {
		.backend = CACHE_MEMORY,
		.max_entries = 10000,
		.max_bytes = (uint64_t)256 << 20,
		.ttl_ms = 24 * HOUR_MS,
		.prune_interval_ms = HOUR_MS,
		.front_entries = 2000,
		.front_bytes = (uint64_t)32 << 20,
		.front_ttl_ms = HOUR_MS / 12,
		.sqlite_busy_timeout_ms = 5000,
		.redis = { .where = { .at = { .host = "127.0.0.1", .port = 6379 } } },
		.fallback = true,
		.gateway = true,
		.scope = CACHE_SCOPE_TYPE,
		.upstream = { .header = "authorization",
			      .prefix = "Bearer ",
			      .batch = 32,
			      .timeout_ms = 30000,
			      .tries = 3,
			      .backoff_ms = 1000 },
	};

	*cfg = DEFAULTS;
}

/* ---- objects ---- */

struct reader {
	struct aqe_arena *a;
	const char *type;
	struct cache_config *cfg;           /* for the type */
	struct cache_config general, spare; /* without overrides; for other types */
	bool tight;                         /* a user's part below a system's */
};

static int not_yours(const struct aqe_json *v, struct aqe_err *e)
{
	return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col,
			  "'%.64s' is the system's policy's; a user's may only lower limits, turn "
			  "the gateway off and name an SQLite file",
			  v->key);
}

/* A user's member: lower than `before` says, or free; then it holds in `cfg` as well. */
static int tighten(const struct cache_row *row, const struct aqe_json *v,
		   struct cache_config *before, struct cache_config *cfg, struct aqe_err *e)
{
	struct cache_config after = *before;
	int rc;

	if (row->tight == CACHE_T_NO)
		return not_yours(v, e);
	rc = cache_row_read(row, v, &after, e);
	if (!rc && row->tight == CACHE_T_LOWER &&
	    cache_row_number(&after, row) > cache_row_number(before, row))
		return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col,
				  "'%.64s' is looser than the system's policy", v->key);
	if (!rc)
		rc = cache_row_read(row, v, before, e);
	if (!rc && (row->tight == CACHE_T_FREE ||
		    cache_row_number(&after, row) < cache_row_number(cfg, row)))
		rc = cache_row_read(row, v, cfg, e);
	return rc;
}

/* Reads the members of one object into `cfg`. */
static int read_object(struct reader *r, const struct aqe_json *obj, const struct cache_table *t,
		       struct cache_config *cfg, struct aqe_err *e)
{
	int rc = 0;

	if (obj->type != AQE_JSON_OBJECT)
		return aqe_err_at(e, AQE_E_MALFORMED, obj->line, obj->col,
				  "'%.64s': wanted an object", obj->key ? obj->key : "cache");
	for (const struct aqe_json *v = obj->first; v && !rc; v = v->next) {
		size_t i = 0;

		while (i < t->n && strcmp(t->row[i].name, v->key) != 0)
			i++;
		if (i == t->n)
			return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col,
					  "no such member '%.64s'", v->key);
		if (r->tight)
			rc = tighten(&t->row[i], v, t == &CACHE_CONFIG_AGENT ? cfg : &r->general,
				     cfg, e);
		else
			rc = cache_row_read(&t->row[i], v, cfg, e);
	}
	return rc;
}

/* ---- what is more than one value ---- */

static int read_models(struct aqe_arena *a, const struct aqe_json *list, struct cache_config *cfg,
		       struct aqe_err *e)
{
	const char **names;
	uint64_t n = 0;

	if (!list)
		return 0;
	if (list->type != AQE_JSON_ARRAY || list->len == 0)
		return aqe_err_at(e, AQE_E_MALFORMED, list->line, list->col,
				  "'%.64s': wanted a list of names", list->key);
	names = aqe_arena_calloc(a, list->len, sizeof(*names));
	if (!names)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	for (const struct aqe_json *v = list->first; v; v = v->next) {
		names[n] = aqe_json_str(v);
		if (!names[n++] || v->len == 0)
			return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col,
					  "'models': wanted names");
	}
	cfg->upstream.models = names;
	cfg->upstream.n_models = n;
	return 0;
}

static int read_upstream(struct reader *r, const struct aqe_json *section, struct aqe_err *e)
{
	static const char *const KINDS[] = { "ollama", "openai", NULL };
	struct cache_upstream_config *up = &r->cfg->upstream;
	const struct aqe_json *kind = aqe_json_get(section, "kind");
	int rc = read_models(r->a, aqe_json_get(section, "models"), r->cfg, e);

	if (rc)
		return rc;
	if (!up->kind || !up->url)
		return aqe_err_at(e, AQE_E_MALFORMED, section->line, section->col,
				  "the member '%s' is missing", up->kind ? "url" : "kind");
	if (!aqe_str_in(up->kind, KINDS))
		return aqe_err_at(e, AQE_E_MALFORMED, kind->line, kind->col,
				  "'kind': wanted ollama or openai");
	r->cfg->has_upstream = true;
	return 0;
}

/* The overrides of agent types; those of other types are read for their faults. */
static int read_agents(struct reader *r, const struct aqe_json *agents, struct aqe_err *e)
{
	int rc = 0;

	if (!agents)
		return 0;
	if (agents->type != AQE_JSON_OBJECT)
		return aqe_err_at(e, AQE_E_MALFORMED, agents->line, agents->col,
				  "'agents': wanted an object");
	for (const struct aqe_json *m = agents->first; m && !rc; m = m->next) {
		const bool ours = aqe_str_eq(r->type, m->key);
		struct cache_config *cfg = ours ? r->cfg : &r->spare;

		/* what a type that is not ours has is not known here: any limit will do */
		if (!ours)
			r->spare = (struct cache_config){ .gateway = true,
							  .scope = CACHE_SCOPE_ALL,
							  .ttl_ms = CACHE_TTL_MAX_MS };
		rc = read_object(r, m, &CACHE_CONFIG_AGENT, cfg, e);
		if (!rc)
			rc = read_models(r->a, aqe_json_get(m, "models"), cfg, e);
	}
	return rc;
}

static int read_backend(const struct aqe_json *v, struct cache_config *cfg, struct aqe_err *e)
{
	const char *name = aqe_json_str(v);

	for (size_t i = 0; name && i < CACHE_BACKENDS; i++) {
		if (!aqe_str_eq(name, BACKENDS[i]))
			continue;
		cfg->backend = (enum cache_backend)i;
		return 0;
	}
	return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col,
			  "no such back end '%.64s': wanted memory, sqlite or redis",
			  name ? name : aqe_json_type_name(v->type));
}

/* ---- parts ---- */

static int read_part(struct reader *r, const struct aqe_json *root, struct aqe_err *e)
{
	const struct aqe_json *v;
	int rc = 0;

	for (size_t i = 0; i < CACHE_CONFIG_TABLES_COUNT && !rc; i++) {
		v = aqe_json_at(root, CACHE_CONFIG_TABLES[i].pointer);
		if (v)
			rc = read_object(r, v, &CACHE_CONFIG_TABLES[i], r->cfg, e);
	}
	if (rc || r->tight)
		return rc;
	v = aqe_json_get(root, "backend");
	if (v)
		rc = read_backend(v, r->cfg, e);
	if (aqe_json_at(root, "/redis/tls"))
		r->cfg->redis.where.at.tls = &r->cfg->redis_tls;
	if (aqe_json_get(root, "front"))
		r->cfg->two_level = true;
	v = aqe_json_get(root, "upstream");
	return rc || !v ? rc : read_upstream(r, v, e);
}

static int in_file(const struct cache_config_part *p, int rc, struct aqe_err *e)
{
	if (rc && e && p->file && e->line)
		return aqe_err_wrap(e, "%s:%u", p->file, e->line);
	if (rc && e && p->file)
		return aqe_err_wrap(e, "%s", p->file);
	return rc;
}

/* The first part of a tier that has the value, or NULL. */
static const struct cache_config_part *part_with(const struct cache_config_part *parts, size_t n,
						 const char *pointer, const struct aqe_json **ret)
{
	for (size_t i = 0; i < n; i++) {
		*ret = aqe_json_at(parts[i].root, pointer);
		if (*ret)
			return &parts[i];
	}
	return NULL;
}

/* The section that the back end needs is there, with what it cannot do without. */
static int check_whole(const struct cache_config_part *parts, size_t n,
		       const struct cache_config *cfg, struct aqe_err *e)
{
	const struct cache_config_part *first, *second;
	const struct aqe_json *backend = NULL, *own = NULL;
	const char *name = BACKENDS[cfg->backend];

	first = part_with(parts, n, "/backend", &backend);
	if (!first)
		return in_file(parts,
			       aqe_err_at(e, AQE_E_MALFORMED, parts->root->line, parts->root->col,
					  "the member 'backend' is missing"),
			       e);
	if (cfg->backend == CACHE_MEMORY)
		return 0;
	second = part_with(parts, n, cfg->backend == CACHE_SQLITE ? "/sqlite" : "/redis", &own);
	if (!second)
		return in_file(first,
			       aqe_err_at(e, AQE_E_MALFORMED, backend->line, backend->col,
					  "the back end '%s' without its section '%s'", name, name),
			       e);
	if (cfg->backend == CACHE_SQLITE && !cfg->sqlite_path)
		return in_file(second,
			       aqe_err_at(e, AQE_E_MALFORMED, own->line, own->col,
					  "the member 'path' is missing"),
			       e);
	if (cfg->redis.where.username && !cfg->redis.where.password_file)
		return in_file(second,
			       aqe_err_at(e, AQE_E_MALFORMED, own->line, own->col,
					  "'username' without 'passwordFile'"),
			       e);
	return 0;
}

/* One pass over the parts of one tier. */
static int each_part(struct reader *r, const struct cache_config_part *parts, size_t n, bool agents,
		     struct aqe_err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		rc = agents ? read_agents(r, aqe_json_get(parts[i].root, "agents"), e)
			    : read_part(r, parts[i].root, e);
		rc = in_file(&parts[i], rc, e);
	}
	return rc;
}

int cache_config_load_parts(struct aqe_arena *a, const struct cache_config_part *parts, size_t n,
			    const char *type, struct cache_config *cfg, struct aqe_err *e)
{
	struct reader r = { .a = a, .type = type, .cfg = cfg };
	size_t base = 0;
	int rc;

	while (base < n && !parts[base].user)
		base++;
	if (base == 0) /* nothing above: the user's word is the first */
		base = n;
	if (n == 0)
		return aqe_err_set(e, AQE_E_ABSENT, 0, "no section 'cache'");
	rc = each_part(&r, parts, base, false, e);
	if (!rc)
		rc = check_whole(parts, base, cfg, e);
	r.general = *cfg;
	if (!rc)
		rc = each_part(&r, parts, base, true, e);
	r.tight = true;
	if (!rc)
		rc = each_part(&r, parts + base, n - base, false, e);
	return rc ? rc : each_part(&r, parts + base, n - base, true, e);
}

int cache_config_load(struct aqe_arena *a, const struct aqe_json *section, struct cache_config *cfg,
		      struct aqe_err *e)
{
	const struct cache_config_part one = { NULL, section, false };

	return cache_config_load_parts(a, &one, 1, NULL, cfg, e);
}
