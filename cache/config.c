/* SPDX-License-Identifier: MIT */
#include "cache/config.h"

#include <stddef.h>
#include <string.h>

#include "shim/core/json.h"
#include "shim/core/text.h"

static const char *const BACKENDS[CACHE_BACKENDS] = {
	[CACHE_MEMORY] = "memory",
	[CACHE_SQLITE] = "sqlite",
	[CACHE_REDIS] = "redis",
};

const char *cache_backend_name(enum cache_backend b)
{
	return b < CACHE_BACKENDS ? BACKENDS[b] : "none";
}

enum kind {
	K_U64,
	K_I64,
	K_UINT,
	K_PORT,
	K_BOOL,
	K_TEXT, /* min..max bytes */
	K_PATH, /* absolute, canonical */
	K_URL,  /* http:// or https:// */
	K_OTHER /* read elsewhere */
};
struct row {
	const char *name;
	enum kind kind;
	size_t offset; /* in struct cache_config */
	uint64_t min, max;
};
#define AT(member) offsetof(struct cache_config, member)
#define HOURS_MS   ((uint64_t)3600000)

static const struct row ROOT[] = {
	{ "backend", K_OTHER, 0, 0, 0 },
	{ "maxSize", K_U64, AT(max_entries), 1, 1000000000 },
	{ "maxBytes", K_U64, AT(max_bytes), 65536, (uint64_t)1 << 44 },
	{ "ttlMs", K_I64, AT(ttl_ms), 1, CACHE_TTL_MAX_MS },
	{ "autoPruneIntervalMs", K_I64, AT(prune_interval_ms), 0, 8784 * HOURS_MS },
	{ "memory", K_OTHER, 0, 0, 0 },
	{ "sqlite", K_OTHER, 0, 0, 0 },
	{ "redis", K_OTHER, 0, 0, 0 },
	{ "front", K_OTHER, 0, 0, 0 },
	{ "upstream", K_OTHER, 0, 0, 0 },
};
static const struct row SQLITE[] = {
	{ "path", K_PATH, AT(sqlite_path), 1, 480 },
	{ "busyTimeoutMs", K_U64, AT(sqlite_busy_timeout_ms), 1, 600000 },
};
static const struct row REDIS[] = {
	{ "host", K_TEXT, AT(redis.where.at.host), 1, 255 },
	{ "port", K_PORT, AT(redis.where.at.port), 1, 65535 },
	{ "socket", K_PATH, AT(redis.where.at.socket), 1, 107 },
	{ "db", K_UINT, AT(redis.where.db), 0, 65535 },
	{ "keyPrefix", K_TEXT, AT(redis.prefix), 0, CACHE_REDIS_PREFIX_MAX },
	{ "username", K_TEXT, AT(redis.where.username), 1, 255 },
	{ "passwordFile", K_PATH, AT(redis.where.password_file), 1, 4096 },
	{ "poolSize", K_UINT, AT(redis.pool_size), 1, CACHE_REDIS_POOL_MAX },
	{ "connectTimeoutMs", K_UINT, AT(redis.where.connect_timeout_ms), 1, 60000 },
	{ "timeoutMs", K_UINT, AT(redis.where.timeout_ms), 1, 60000 },
	{ "fallback", K_BOOL, AT(fallback), 0, 0 },
	{ "tls", K_OTHER, 0, 0, 0 },
};
static const struct row TLS[] = {
	{ "caFile", K_PATH, AT(redis_tls.ca_file), 1, 4096 },
	{ "certFile", K_PATH, AT(redis_tls.cert_file), 1, 4096 },
	{ "keyFile", K_PATH, AT(redis_tls.key_file), 1, 4096 },
	{ "serverName", K_TEXT, AT(redis_tls.server_name), 1, 255 },
};
static const struct row FRONT[] = {
	{ "maxSize", K_U64, AT(front_entries), 1, 1000000000 },
	{ "maxBytes", K_U64, AT(front_bytes), 65536, (uint64_t)1 << 44 },
	{ "ttlMs", K_I64, AT(front_ttl_ms), 1, CACHE_TTL_MAX_MS },
};
static const struct row UPSTREAM[] = {
	{ "kind", K_TEXT, AT(upstream.kind), 1, 16 },
	{ "url", K_URL, AT(upstream.url), 8, 2000 },
	{ "provider", K_TEXT, AT(upstream.provider), 1, 255 },
	{ "revision", K_TEXT, AT(upstream.revision), 1, 255 },
	{ "credentialFile", K_PATH, AT(upstream.credential_file), 1, 4096 },
	{ "header", K_TEXT, AT(upstream.header), 1, 64 },
	{ "prefix", K_TEXT, AT(upstream.prefix), 0, 64 },
	{ "caFile", K_PATH, AT(upstream.ca_file), 1, 4096 },
	{ "models", K_OTHER, 0, 0, 0 },
	{ "batchSize", K_U64, AT(upstream.batch), 1, 2048 },
	{ "timeoutMs", K_U64, AT(upstream.timeout_ms), 1, 600000 },
	{ "tries", K_U64, AT(upstream.tries), 1, 10 },
	{ "backoffMs", K_U64, AT(upstream.backoff_ms), 0, 60000 },
};
#define ROWS(table) table, AQE_COUNT(table)

void cache_config_init(struct cache_config *cfg)
{
	static const struct cache_config DEFAULTS = {
		.backend = CACHE_MEMORY,
		.max_entries = 10000,
		.max_bytes = (uint64_t)256 << 20,
		.ttl_ms = 24 * HOURS_MS,
		.prune_interval_ms = HOURS_MS,
		.front_entries = 2000,
		.front_bytes = (uint64_t)32 << 20,
		.front_ttl_ms = HOURS_MS / 12,
		.sqlite_busy_timeout_ms = 5000,
		.redis = { .where = { .at = { .host = "127.0.0.1", .port = 6379 } } },
		.fallback = true,
		.upstream = { .header = "authorization",
			      .prefix = "Bearer ",
			      .batch = 32,
			      .timeout_ms = 30000,
			      .tries = 3,
			      .backoff_ms = 1000 },
	};

	*cfg = DEFAULTS;
}

/* ---- one member ---- */

static int wrong(const struct aqe_json *v, const char *want, struct aqe_err *e)
{
	return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col, "'%.64s': wanted %s", v->key, want);
}

static int read_number(const struct aqe_json *v, const struct row *r, char *to, struct aqe_err *e)
{
	uint64_t n;

	if (!aqe_json_to_u64(v, r->max, &n) || n < r->min)
		return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col,
				  "'%.64s': wanted a whole number from %llu to %llu", v->key,
				  (unsigned long long)r->min, (unsigned long long)r->max);
	if (r->kind == K_UINT)
		*(unsigned *)(void *)(to + r->offset) = (unsigned)n;
	else if (r->kind == K_PORT)
		*(uint16_t *)(void *)(to + r->offset) = (uint16_t)n;
	else if (r->kind == K_I64)
		*(int64_t *)(void *)(to + r->offset) = (int64_t)n;
	else
		*(uint64_t *)(void *)(to + r->offset) = n;
	return 0;
}

static int read_text(const struct aqe_json *v, const struct row *r, char *to, struct aqe_err *e)
{
	const char *s = aqe_json_str(v);

	if (!s || v->len < r->min || v->len > r->max)
		return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col,
				  "'%.64s': wanted a text of %llu to %llu bytes", v->key,
				  (unsigned long long)r->min, (unsigned long long)r->max);
	if (r->kind == K_PATH && !aqe_path_is_canonical(s))
		return wrong(v, "an absolute path without '.', '..' and double slashes", e);
	if (r->kind == K_URL && !aqe_starts(s, "http://") && !aqe_starts(s, "https://"))
		return wrong(v, "a URL that begins with http:// or https://", e);
	*(const char **)(void *)(to + r->offset) = s;
	return 0;
}

static int read_member(const struct aqe_json *v, const struct row *r, char *to, struct aqe_err *e)
{
	switch (r->kind) {
	case K_U64:
	case K_I64:
	case K_UINT:
	case K_PORT:
		return read_number(v, r, to, e);
	case K_TEXT:
	case K_PATH:
	case K_URL:
		return read_text(v, r, to, e);
	case K_BOOL:
		if (v->type != AQE_JSON_BOOL)
			return wrong(v, "true or false", e);
		*(bool *)(to + r->offset) = v->boolean;
		return 0;
	case K_OTHER:
		return 0;
	}
	return aqe_err_set(e, AQE_E_INTERNAL, 0, "a member of kind %d", (int)r->kind);
}

static int read_object(const struct aqe_json *obj, const struct row *rows, size_t n,
		       struct cache_config *cfg, struct aqe_err *e)
{
	int rc = 0;

	if (obj->type != AQE_JSON_OBJECT)
		return aqe_err_at(e, AQE_E_MALFORMED, obj->line, obj->col,
				  "'%.64s': wanted an object", obj->key ? obj->key : "cache");
	for (const struct aqe_json *v = obj->first; v && !rc; v = v->next) {
		size_t i = 0;

		while (i < n && strcmp(rows[i].name, v->key) != 0)
			i++;
		if (i == n)
			return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col,
					  "no such member '%.64s'", v->key);
		rc = read_member(v, &rows[i], (char *)cfg, e);
	}
	return rc;
}

/* ---- sections ---- */

static int read_backend(const struct aqe_json *section, struct cache_config *cfg, struct aqe_err *e)
{
	const struct aqe_json *v = aqe_json_get(section, "backend");
	const char *name = v ? aqe_json_str(v) : NULL;

	if (!v)
		return aqe_err_at(e, AQE_E_MALFORMED, section->line, section->col,
				  "the member 'backend' is missing");
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

/* The section that the back end needs is there, with what it cannot do without. */
static int check_section(const struct aqe_json *section, const struct cache_config *cfg,
			 struct aqe_err *e)
{
	const struct aqe_json *backend = aqe_json_get(section, "backend");
	const char *name = BACKENDS[cfg->backend];
	const struct aqe_json *own = aqe_json_get(section, name);

	if (cfg->backend == CACHE_MEMORY)
		return 0;
	if (!own && backend)
		return aqe_err_at(e, AQE_E_MALFORMED, backend->line, backend->col,
				  "the back end '%s' without its section '%s'", name, name);
	if (own && cfg->backend == CACHE_SQLITE && !cfg->sqlite_path)
		return aqe_err_at(e, AQE_E_MALFORMED, own->line, own->col,
				  "the member 'path' is missing");
	if (own && cfg->redis.where.username && !cfg->redis.where.password_file)
		return aqe_err_at(e, AQE_E_MALFORMED, own->line, own->col,
				  "'username' without 'passwordFile'");
	return 0;
}

static int read_models(struct aqe_arena *a, const struct aqe_json *section,
		       struct cache_config *cfg, struct aqe_err *e)
{
	const struct aqe_json *list = aqe_json_get(section, "models");
	const char **names;

	if (!list)
		return 0;
	if (list->type != AQE_JSON_ARRAY || list->len == 0)
		return wrong(list, "a list of names", e);
	names = aqe_arena_calloc(a, list->len, sizeof(*names));
	if (!names)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	for (const struct aqe_json *v = list->first; v; v = v->next) {
		names[cfg->upstream.n_models] = aqe_json_str(v);
		if (!names[cfg->upstream.n_models++] || v->len == 0)
			return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col,
					  "'models': wanted names");
	}
	cfg->upstream.models = names;
	return 0;
}

static int read_upstream(struct aqe_arena *a, const struct aqe_json *section,
			 struct cache_config *cfg, struct aqe_err *e)
{
	static const char *const KINDS[] = { "ollama", "openai", NULL };
	int rc = read_object(section, ROWS(UPSTREAM), cfg, e);

	if (!rc)
		rc = read_models(a, section, cfg, e);
	if (rc)
		return rc;
	if (!cfg->upstream.kind || !cfg->upstream.url)
		return aqe_err_at(e, AQE_E_MALFORMED, section->line, section->col,
				  "the member '%s' is missing",
				  cfg->upstream.kind ? "url" : "kind");
	if (!aqe_str_in(cfg->upstream.kind, KINDS))
		return wrong(aqe_json_get(section, "kind"), "ollama or openai", e);
	cfg->has_upstream = true;
	return 0;
}

int cache_config_load(struct aqe_arena *a, const struct aqe_json *section, struct cache_config *cfg,
		      struct aqe_err *e)
{
	const struct aqe_json *sub, *tls;
	int rc = read_object(section, ROWS(ROOT), cfg, e);

	if (!rc)
		rc = read_backend(section, cfg, e);
	if (!rc && (sub = aqe_json_get(section, "memory")))
		rc = read_object(sub, NULL, 0, cfg, e);
	if (!rc && (sub = aqe_json_get(section, "sqlite")))
		rc = read_object(sub, ROWS(SQLITE), cfg, e);
	if (!rc && (sub = aqe_json_get(section, "redis"))) {
		rc = read_object(sub, ROWS(REDIS), cfg, e);
		tls = aqe_json_get(sub, "tls");
		if (!rc && tls)
			rc = read_object(tls, ROWS(TLS), cfg, e);
		cfg->redis.where.at.tls = tls ? &cfg->redis_tls : NULL;
	}
	if (!rc && (sub = aqe_json_get(section, "front"))) {
		rc = read_object(sub, ROWS(FRONT), cfg, e);
		cfg->two_level = true;
	}
	if (!rc && (sub = aqe_json_get(section, "upstream")))
		rc = read_upstream(a, sub, cfg, e);
	return rc ? rc : check_section(section, cfg, e);
}
