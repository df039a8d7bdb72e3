/* SPDX-License-Identifier: MIT */
/* The configuration: the section `cache` of the policy file, or a file of its own with the same
 * members. Closed: an unknown member is an error with its line. */
#ifndef AQE_CACHE_CONFIG_H
#define AQE_CACHE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "cache/redis.h"
#include "shim/core/arena.h"
#include "shim/core/err.h"

struct aqe_json;

enum cache_backend { CACHE_MEMORY, CACHE_SQLITE, CACHE_REDIS, CACHE_BACKENDS };
const char *cache_backend_name(enum cache_backend b);

/* Which containers have entries in common; the narrower, the smaller. An entry of one scope cannot
 * be seen, or its presence be measured, from another. */
enum cache_scope { CACHE_SCOPE_AGENT, CACHE_SCOPE_TYPE, CACHE_SCOPE_ALL, CACHE_SCOPES };
const char *cache_scope_name(enum cache_scope s);

/* How the gateway gets what is not in the cache. */
struct cache_upstream_config {
	const char *kind;     /* "ollama" or "openai": the language it speaks */
	const char *url;      /* without the API's path: "http://127.0.0.1:11434" */
	const char *provider; /* part of the key; NULL = the URL's text */
	const char *revision; /* part of the key; NULL = the model's digest (ollama), or "" */
	const char *credential_file; /* a secret that is added outside, or NULL */
	const char *credential;      /* or itself; not from a file */
	const char *header, *prefix; /* "authorization", "Bearer " */
	const char *ca_file;         /* NULL = the system's authorities */
	const char *const *models;   /* that may be asked for; NULL = any */
	uint64_t n_models;
	uint64_t batch;      /* texts in one request; 32 */
	uint64_t timeout_ms; /* for one answer; 30,000 */
	uint64_t tries;      /* 3 */
	uint64_t backoff_ms; /* before the second try, doubling; 1,000 */
};

struct cache_config {
	enum cache_backend backend;
	uint64_t max_entries, max_bytes; /* maxSize 10,000; maxBytes 256 MiB */
	int64_t ttl_ms;                  /* 24 h */
	int64_t prune_interval_ms;       /* 1 h; 0 = off */
	bool two_level;                  /* memory in front */
	uint64_t front_entries, front_bytes;
	int64_t front_ttl_ms; /* 5 min: deletions by other processes show after that */
	const char *sqlite_path;
	uint64_t sqlite_busy_timeout_ms;
	struct cache_redis_opts redis;
	struct aqe_tls_opts redis_tls;
	bool fallback; /* memory stands in while Redis is away; default true */
	struct cache_upstream_config upstream;
	bool has_upstream;
	bool gateway; /* containers get the listener; default true, but only with an upstream */
	enum cache_scope scope; /* default: the agents of one type */
	const char *space; /* the name of the scope, part of every key; NULL = all. Not from a file
			    */
	bool own_ticks;    /* no thread: the owner calls cache_tick(); not from a file */
};

/* The defaults, with the memory back end. */
void cache_config_init(struct cache_config *cfg);
/* Reads the section; strings live in `a` and in `section`'s arena. AQE_E_MALFORMED with the place:
 * unknown back end or member, missing section, wrong type, out of range. */
AQE_MUST_CHECK int cache_config_load(struct aqe_arena *a, const struct aqe_json *section,
				     struct cache_config *cfg, struct aqe_err *e);

/* A section in parts: one a file, no member in two files of a tier. */
struct cache_config_part {
	const char *file; /* for messages; NULL: they begin without */
	const struct aqe_json *root;
	bool user; /* below parts that are not: may only tighten what they say */
};
/* As above for an agent type (NULL: none), with its overrides; `cfg` must have the defaults.
 * Messages begin with "FILE:LINE: ". Not to be copied afterwards: it points into itself. */
AQE_MUST_CHECK int cache_config_load_parts(struct aqe_arena *a,
					   const struct cache_config_part *parts, size_t n,
					   const char *type, struct cache_config *cfg,
					   struct aqe_err *e);

/* One thing in force. */
struct cache_setting {
	const char *name;  /* "redis.tls.caFile" */
	const char *value; /* as text */
	const char *file;  /* what says so; NULL: the default */
	uint32_t line;
};
typedef void cache_setting_fn(void *self, const struct cache_setting *s);
/* Calls `fn` for all that matters with this back end. Arguments as of the load before. */
void cache_config_each(const struct cache_config *cfg, const struct cache_config_part *parts,
		       size_t n, const char *type, cache_setting_fn *fn, void *self);

#endif
