/* SPDX-License-Identifier: MIT */
#include "cache/config_rows.h"

#include <stddef.h>
#include <string.h>

#include "shim/core/text.h"

#define AT(member) offsetof(struct cache_config, member)
#define HOURS_MS   ((uint64_t)3600000)
#define BYTES_MIN  65536
#define BYTES_MAX  ((uint64_t)1 << 44)
#define PRUNE_MAX  (8784 * HOURS_MS) /* a year */
#define NO         CACHE_T_NO
#define LOWER      CACHE_T_LOWER
#define FREE       CACHE_T_FREE

/* Kept equal to the policy's keys and schema by a test. */
static const struct cache_row ROOT[] = {
	{ "backend", CACHE_K_OTHER, 0, 0, 0, NO },
	{ "maxSize", CACHE_K_U64, AT(max_entries), 1, 1000000000, LOWER },
	{ "maxBytes", CACHE_K_U64, AT(max_bytes), BYTES_MIN, BYTES_MAX, LOWER },
	{ "ttlMs", CACHE_K_I64, AT(ttl_ms), 1, CACHE_TTL_MAX_MS, LOWER },
	{ "autoPruneIntervalMs", CACHE_K_I64, AT(prune_interval_ms), 0, PRUNE_MAX, FREE },
	{ "gateway", CACHE_K_BOOL, AT(gateway), 0, 0, LOWER },
	{ "scope", CACHE_K_SCOPE, AT(scope), 0, 0, LOWER },
	{ "memory", CACHE_K_OTHER, 0, 0, 0, NO },
	{ "sqlite", CACHE_K_OTHER, 0, 0, 0, FREE },
	{ "redis", CACHE_K_OTHER, 0, 0, 0, NO },
	{ "front", CACHE_K_OTHER, 0, 0, 0, NO },
	{ "upstream", CACHE_K_OTHER, 0, 0, 0, NO },
	{ "agents", CACHE_K_OTHER, 0, 0, 0, FREE },
};
static const struct cache_row SQLITE[] = {
	{ "path", CACHE_K_PATH, AT(sqlite_path), 1, 480, FREE },
	{ "busyTimeoutMs", CACHE_K_U64, AT(sqlite_busy_timeout_ms), 1, 600000, FREE },
};
static const struct cache_row REDIS[] = {
	{ "host", CACHE_K_TEXT, AT(redis.where.at.host), 1, 255, NO },
	{ "port", CACHE_K_PORT, AT(redis.where.at.port), 1, 65535, NO },
	{ "socket", CACHE_K_PATH, AT(redis.where.at.socket), 1, 107, NO },
	{ "db", CACHE_K_UINT, AT(redis.where.db), 0, 65535, NO },
	{ "keyPrefix", CACHE_K_TEXT, AT(redis.prefix), 0, CACHE_REDIS_PREFIX_MAX, NO },
	{ "username", CACHE_K_TEXT, AT(redis.where.username), 1, 255, NO },
	{ "passwordFile", CACHE_K_PATH, AT(redis.where.password_file), 1, 4095, NO },
	{ "poolSize", CACHE_K_UINT, AT(redis.pool_size), 1, CACHE_REDIS_POOL_MAX, NO },
	{ "connectTimeoutMs", CACHE_K_UINT, AT(redis.where.connect_timeout_ms), 1, 60000, NO },
	{ "timeoutMs", CACHE_K_UINT, AT(redis.where.timeout_ms), 1, 60000, NO },
	{ "fallback", CACHE_K_BOOL, AT(fallback), 0, 0, NO },
	{ "tls", CACHE_K_OTHER, 0, 0, 0, NO },
};
static const struct cache_row TLS[] = {
	{ "caFile", CACHE_K_PATH, AT(redis_tls.ca_file), 1, 4095, NO },
	{ "certFile", CACHE_K_PATH, AT(redis_tls.cert_file), 1, 4095, NO },
	{ "keyFile", CACHE_K_PATH, AT(redis_tls.key_file), 1, 4095, NO },
	{ "serverName", CACHE_K_TEXT, AT(redis_tls.server_name), 1, 255, NO },
};
static const struct cache_row FRONT[] = {
	{ "maxSize", CACHE_K_U64, AT(front_entries), 1, 1000000000, NO },
	{ "maxBytes", CACHE_K_U64, AT(front_bytes), BYTES_MIN, BYTES_MAX, NO },
	{ "ttlMs", CACHE_K_I64, AT(front_ttl_ms), 1, CACHE_TTL_MAX_MS, NO },
};
static const struct cache_row UPSTREAM[] = {
	{ "kind", CACHE_K_TEXT, AT(upstream.kind), 1, 16, NO },
	{ "url", CACHE_K_URL, AT(upstream.url), 8, 2000, NO },
	{ "provider", CACHE_K_TEXT, AT(upstream.provider), 1, 255, NO },
	{ "revision", CACHE_K_TEXT, AT(upstream.revision), 1, 127, NO },
	{ "credentialFile", CACHE_K_PATH, AT(upstream.credential_file), 1, 4095, NO },
	{ "header", CACHE_K_TEXT, AT(upstream.header), 1, 64, NO },
	{ "prefix", CACHE_K_TEXT, AT(upstream.prefix), 0, 64, NO },
	{ "caFile", CACHE_K_PATH, AT(upstream.ca_file), 1, 4095, NO },
	{ "models", CACHE_K_OTHER, 0, 0, 0, NO },
	{ "batchSize", CACHE_K_U64, AT(upstream.batch), 1, 2048, NO },
	{ "timeoutMs", CACHE_K_U64, AT(upstream.timeout_ms), 1, 600000, NO },
	{ "tries", CACHE_K_U64, AT(upstream.tries), 1, 10, NO },
	{ "backoffMs", CACHE_K_U64, AT(upstream.backoff_ms), 0, 60000, NO },
};
static const struct cache_row AGENT[] = {
	{ "gateway", CACHE_K_BOOL, AT(gateway), 0, 0, LOWER },
	{ "scope", CACHE_K_SCOPE, AT(scope), 0, 0, LOWER },
	{ "ttlMs", CACHE_K_I64, AT(ttl_ms), 1, CACHE_TTL_MAX_MS, LOWER },
	{ "models", CACHE_K_OTHER, 0, 0, 0, NO },
};

const struct cache_table CACHE_CONFIG_TABLES[] = {
	{ "", ROOT, AQE_COUNT(ROOT) },
	{ "/memory", NULL, 0 },
	{ "/sqlite", SQLITE, AQE_COUNT(SQLITE) },
	{ "/redis", REDIS, AQE_COUNT(REDIS) },
	{ "/redis/tls", TLS, AQE_COUNT(TLS) },
	{ "/front", FRONT, AQE_COUNT(FRONT) },
	{ "/upstream", UPSTREAM, AQE_COUNT(UPSTREAM) },
};
const size_t CACHE_CONFIG_TABLES_COUNT = AQE_COUNT(CACHE_CONFIG_TABLES);
const struct cache_table CACHE_CONFIG_AGENT = { "/agents", AGENT, AQE_COUNT(AGENT) };

static const char *const SCOPES[CACHE_SCOPES] = {
	[CACHE_SCOPE_AGENT] = "agent",
	[CACHE_SCOPE_TYPE] = "type",
	[CACHE_SCOPE_ALL] = "all",
};

const char *cache_scope_name(enum cache_scope s)
{
	return s < CACHE_SCOPES ? SCOPES[s] : "none";
}

uint64_t cache_row_number(const struct cache_config *cfg, const struct cache_row *r)
{
	const void *at = (const char *)cfg + r->offset;

	switch (r->kind) {
	case CACHE_K_U64:
		return *(const uint64_t *)at;
	case CACHE_K_I64:
		return (uint64_t) * (const int64_t *)at; /* none is negative */
	case CACHE_K_UINT:
		return *(const unsigned *)at;
	case CACHE_K_PORT:
		return *(const uint16_t *)at;
	case CACHE_K_BOOL:
		return *(const bool *)at;
	case CACHE_K_SCOPE:
		return *(const enum cache_scope *)at;
	case CACHE_K_TEXT:
	case CACHE_K_PATH:
	case CACHE_K_URL:
	case CACHE_K_OTHER:
		break;
	}
	return 0;
}

bool cache_row_is_text(const struct cache_row *r)
{
	return r->kind == CACHE_K_TEXT || r->kind == CACHE_K_PATH || r->kind == CACHE_K_URL;
}

const char *cache_row_text(const struct cache_config *cfg, const struct cache_row *r)
{
	return *(const char *const *)(const void *)((const char *)cfg + r->offset);
}

/* ---- one member ---- */

static int wrong(const struct aqe_json *v, const char *want, struct aqe_err *e)
{
	return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col, "'%.64s': wanted %s", v->key, want);
}

static int read_number(const struct cache_row *r, const struct aqe_json *v, void *to,
		       struct aqe_err *e)
{
	uint64_t n;

	if (!aqe_json_to_u64(v, r->max, &n) || n < r->min)
		return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col,
				  "'%.64s': wanted a whole number from %llu to %llu", v->key,
				  (unsigned long long)r->min, (unsigned long long)r->max);
	if (r->kind == CACHE_K_UINT)
		*(unsigned *)to = (unsigned)n;
	else if (r->kind == CACHE_K_PORT)
		*(uint16_t *)to = (uint16_t)n;
	else if (r->kind == CACHE_K_I64)
		*(int64_t *)to = (int64_t)n;
	else
		*(uint64_t *)to = n;
	return 0;
}

static int read_text(const struct cache_row *r, const struct aqe_json *v, void *to,
		     struct aqe_err *e)
{
	const char *s = aqe_json_str(v);

	if (!s || v->len < r->min || v->len > r->max)
		return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col,
				  "'%.64s': wanted a text of %llu to %llu bytes", v->key,
				  (unsigned long long)r->min, (unsigned long long)r->max);
	if (r->kind == CACHE_K_PATH && !aqe_path_is_canonical(s))
		return wrong(v, "an absolute path without '.', '..' and double slashes", e);
	if (r->kind == CACHE_K_URL && !aqe_starts(s, "http://") && !aqe_starts(s, "https://"))
		return wrong(v, "a URL that begins with http:// or https://", e);
	*(const char **)to = s;
	return 0;
}

static int read_scope(const struct aqe_json *v, enum cache_scope *to, struct aqe_err *e)
{
	const char *s = aqe_json_str(v);

	for (size_t i = 0; s && i < CACHE_SCOPES; i++) {
		if (strcmp(s, SCOPES[i]) == 0) {
			*to = (enum cache_scope)i;
			return 0;
		}
	}
	return wrong(v, "agent, type or all", e);
}

int cache_row_read(const struct cache_row *r, const struct aqe_json *v, struct cache_config *cfg,
		   struct aqe_err *e)
{
	void *to = (char *)cfg + r->offset;

	switch (r->kind) {
	case CACHE_K_U64:
	case CACHE_K_I64:
	case CACHE_K_UINT:
	case CACHE_K_PORT:
		return read_number(r, v, to, e);
	case CACHE_K_TEXT:
	case CACHE_K_PATH:
	case CACHE_K_URL:
		return read_text(r, v, to, e);
	case CACHE_K_BOOL:
		if (v->type != AQE_JSON_BOOL)
			return wrong(v, "true or false", e);
		*(bool *)to = v->boolean;
		return 0;
	case CACHE_K_SCOPE:
		return read_scope(v, to, e);
	case CACHE_K_OTHER:
		return 0;
	}
	return aqe_err_set(e, AQE_E_INTERNAL, 0, "a member of kind %d", (int)r->kind);
}
