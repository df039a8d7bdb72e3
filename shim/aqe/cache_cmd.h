/* SPDX-License-Identifier: MIT */
/* What the commands below `aqe cache` have in common: options, configuration, opening. */
#ifndef AQE_AQE_CACHE_CMD_H
#define AQE_AQE_CACHE_CMD_H

#include <stdbool.h>
#include <stdint.h>

#include "cache/cache.h"
#include "hardening/policy.h"
#include "shim/core/arena.h"
#include "shim/core/buf.h"
#include "shim/core/cli.h"
#include "shim/core/err.h"

enum shim_cache_opt {
	SHIM_CACHE_CONFIG = 1,
	SHIM_CACHE_BACKEND,
	SHIM_CACHE_PATH,
	SHIM_CACHE_REDIS_URL,
	SHIM_CACHE_REDIS_PASSWORD,
	SHIM_CACHE_TTL,
	SHIM_CACHE_FORMAT,
	SHIM_CACHE_KEY,
	SHIM_CACHE_PROVIDER,
	SHIM_CACHE_MODEL,
	SHIM_CACHE_REVISION,
	SHIM_CACHE_DIMENSION,
	SHIM_CACHE_RAW,
	SHIM_CACHE_CONTENT,
	SHIM_CACHE_CONTENT_FILE,
	SHIM_CACHE_EMBEDDING,
	SHIM_CACHE_KIND,
	SHIM_CACHE_URL,
	SHIM_CACHE_CREDENTIAL,
	SHIM_CACHE_BATCH,
	SHIM_CACHE_LISTEN,
	SHIM_CACHE_THREADS,
	SHIM_CACHE_PROGRESS,
	SHIM_CACHE_SCOPE,
};
/* Rows for every command's table. */
#define SHIM_CACHE_OPTS_STORE                                                                      \
	{ "config", 'c', "FILE", "a policy file with a section 'cache', or such a section alone",  \
	  SHIM_CACHE_CONFIG },                                                                     \
		{ "backend", 'b', "NAME", "memory, sqlite or redis", SHIM_CACHE_BACKEND },         \
		{ "path", 0, "FILE", "the SQLite file", SHIM_CACHE_PATH },                         \
		{ "redis-url", 0, "URL",                                                           \
		  "redis://[USER@]HOST[:PORT][/DB], rediss:// for TLS, unix://PATH",               \
		  SHIM_CACHE_REDIS_URL },                                                          \
		{ "redis-password-file", 0, "FILE", "file with Redis' password",                   \
		  SHIM_CACHE_REDIS_PASSWORD },                                                     \
		{ "ttl-ms", 0, "N", "how long entries live (default: 24 hours)", SHIM_CACHE_TTL }, \
	{                                                                                          \
		"format", 0, "FORMAT", "text (default) or json", SHIM_CACHE_FORMAT                 \
	}
/* What containers have in common is of a scope: "type:NAME" or "agent:ID". */
#define SHIM_CACHE_OPT_SCOPE                                                              \
	{                                                                                 \
		"scope", 0, "TEXT",                                                       \
			"whose: type:NAME, agent:ID, container:ID; default: everybody's", \
			SHIM_CACHE_SCOPE                                                  \
	}
#define SHIM_CACHE_OPTS_KEY                                                                \
	{ "key", 'k', "HEX", "the key itself, 64 digits; or its parts:", SHIM_CACHE_KEY }, \
		SHIM_CACHE_OPT_SCOPE,                                                      \
		{ "provider", 0, "NAME", "who computes", SHIM_CACHE_PROVIDER },            \
		{ "model", 'm', "NAME", "the model", SHIM_CACHE_MODEL },                   \
		{ "revision", 0, "TEXT", "of the model", SHIM_CACHE_REVISION },            \
		{ "dimension", 0, "N", "asked for; 0 (default) is the model's own",        \
		  SHIM_CACHE_DIMENSION },                                                  \
		{ "raw", 0, NULL, "not normalised to unit length", SHIM_CACHE_RAW },       \
		{ "content", 0, "TEXT", "the text", SHIM_CACHE_CONTENT },                  \
	{                                                                                  \
		"content-file", 0, "FILE", "a file with the text; '-' is standard input",  \
			SHIM_CACHE_CONTENT_FILE                                            \
	}
#define SHIM_CACHE_OPTS_UPSTREAM                                                                  \
	{ "upstream-kind", 0, "KIND", "ollama or openai", SHIM_CACHE_KIND },                      \
		{ "upstream-url", 0, "URL", "where it is", SHIM_CACHE_URL },                      \
		{ "credential-file", 0, "FILE", "file with its API key", SHIM_CACHE_CREDENTIAL }, \
	{                                                                                         \
		"batch", 0, "N", "texts in one request (default 32)", SHIM_CACHE_BATCH            \
	}
#define SHIM_CACHE_OPTS_END            \
	{                              \
		NULL, 0, NULL, NULL, 0 \
	}

struct shim_cache_cmd {
	struct aqe_arena *arena; /* owns what the configuration points to, with: */
	struct hard_policy *policy;
	const char *config, *backend, *path, *redis_url, *redis_password;
	const char *scope, *key, *provider, *model, *revision, *content, *content_file;
	const char *embedding, *kind, *url, *credential, *listen;
	const char *operand;
	uint64_t ttl_ms, dimension, batch, threads;
	bool raw, json, progress;
	struct cache_config cfg;
	struct cache *cache;
};

/* Reads the words; at most one operand, which must be there when `operand` names it. Returns -1 to
 * go on, or an exit status: help was printed, or a usage error was. */
int shim_cache_cmd_read(struct shim_cache_cmd *c, const struct aqe_cli_cmd *cmd, int argc,
			char **argv, const char *operand);
/* Fills c->cfg: from --config, or the options alone, or the policy in force when it has a section
 * `cache`, or else a SQLite file in the user's cache folder. */
AQE_MUST_CHECK int shim_cache_cmd_config(struct shim_cache_cmd *c, struct aqe_err *e);
/* As above, and opens the cache: one level, no thread, no fallback. */
AQE_MUST_CHECK int shim_cache_cmd_open(struct shim_cache_cmd *c, struct aqe_err *e);
/* The key that --key or its parts name. */
AQE_MUST_CHECK int shim_cache_cmd_key(const struct shim_cache_cmd *c, struct cache_key *ret,
				      struct aqe_err *e);
/* Prints "aqe cache: ..." and returns the exit status of a code. */
int shim_cache_cmd_fail(const struct aqe_err *e);
/* Writes to standard output; the exit status. */
int shim_cache_cmd_print(const struct aqe_buf *b);
void shim_cache_cmd_done(struct shim_cache_cmd *c);

int shim_cache_get(int argc, char **argv);
int shim_cache_put(int argc, char **argv);
int shim_cache_has(int argc, char **argv);
int shim_cache_delete(int argc, char **argv);
int shim_cache_stats(int argc, char **argv);
int shim_cache_keys(int argc, char **argv);
int shim_cache_prune(int argc, char **argv);
int shim_cache_clear(int argc, char **argv);
int shim_cache_export(int argc, char **argv);
int shim_cache_import(int argc, char **argv);
int shim_cache_warm(int argc, char **argv);
int shim_cache_serve(int argc, char **argv);

#endif
