/* SPDX-License-Identifier: MIT */
#include "shim/aqe/cache_cmd.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/aqe/cache_url.h"
#include "shim/cache_policy.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "shim/env.h"
#include "shim/exit.h"
#include "shim/input.h"

#define ARENA_MAX   ((size_t)16 << 20)
#define CONFIG_MAX  ((size_t)1 << 20)
#define CONTENT_MAX ((size_t)16 << 20)
#define OUT_MAX     ((size_t)1 << 20)

/* ---- words ---- */

static const struct {
	int id;
	size_t offset;
} TEXTS[] = {
	{ SHIM_CACHE_CONFIG, offsetof(struct shim_cache_cmd, config) },
	{ SHIM_CACHE_BACKEND, offsetof(struct shim_cache_cmd, backend) },
	{ SHIM_CACHE_PATH, offsetof(struct shim_cache_cmd, path) },
	{ SHIM_CACHE_REDIS_URL, offsetof(struct shim_cache_cmd, redis_url) },
	{ SHIM_CACHE_REDIS_PASSWORD, offsetof(struct shim_cache_cmd, redis_password) },
	{ SHIM_CACHE_KEY, offsetof(struct shim_cache_cmd, key) },
	{ SHIM_CACHE_PROVIDER, offsetof(struct shim_cache_cmd, provider) },
	{ SHIM_CACHE_MODEL, offsetof(struct shim_cache_cmd, model) },
	{ SHIM_CACHE_REVISION, offsetof(struct shim_cache_cmd, revision) },
	{ SHIM_CACHE_CONTENT, offsetof(struct shim_cache_cmd, content) },
	{ SHIM_CACHE_CONTENT_FILE, offsetof(struct shim_cache_cmd, content_file) },
	{ SHIM_CACHE_EMBEDDING, offsetof(struct shim_cache_cmd, embedding) },
	{ SHIM_CACHE_KIND, offsetof(struct shim_cache_cmd, kind) },
	{ SHIM_CACHE_URL, offsetof(struct shim_cache_cmd, url) },
	{ SHIM_CACHE_CREDENTIAL, offsetof(struct shim_cache_cmd, credential) },
	{ SHIM_CACHE_LISTEN, offsetof(struct shim_cache_cmd, listen) },
	{ SHIM_CACHE_SCOPE, offsetof(struct shim_cache_cmd, scope) },
};
static const struct {
	int id;
	size_t offset;
	uint64_t min, max;
} NUMBERS[] = {
	{ SHIM_CACHE_TTL, offsetof(struct shim_cache_cmd, ttl_ms), 1, CACHE_TTL_MAX_MS },
	{ SHIM_CACHE_DIMENSION, offsetof(struct shim_cache_cmd, dimension), 0, CACHE_DIM_MAX },
	{ SHIM_CACHE_BATCH, offsetof(struct shim_cache_cmd, batch), 1, 2048 },
	{ SHIM_CACHE_THREADS, offsetof(struct shim_cache_cmd, threads), 1, 256 },
};

static int take_number(struct shim_cache_cmd *c, size_t i, const char *value, struct aqe_err *e)
{
	uint64_t n;

	if (!aqe_parse_u64(value, NUMBERS[i].max, &n) || n < NUMBERS[i].min)
		return aqe_err_set(e, AQE_E_USAGE, 0,
				   "'%.64s' is no whole number from %llu to %llu", value,
				   (unsigned long long)NUMBERS[i].min,
				   (unsigned long long)NUMBERS[i].max);
	*(uint64_t *)(void *)((char *)c + NUMBERS[i].offset) = n;
	return 0;
}

static int take_option(struct shim_cache_cmd *c, int id, const char *value, struct aqe_err *e)
{
	for (size_t i = 0; i < AQE_COUNT(TEXTS); i++) {
		if (TEXTS[i].id != id)
			continue;
		*(const char **)(void *)((char *)c + TEXTS[i].offset) = value;
		return 0;
	}
	for (size_t i = 0; i < AQE_COUNT(NUMBERS); i++)
		if (NUMBERS[i].id == id)
			return take_number(c, i, value, e);
	if (id == SHIM_CACHE_RAW)
		c->raw = true;
	if (id == SHIM_CACHE_PROGRESS)
		c->progress = true;
	if (id != SHIM_CACHE_FORMAT)
		return 0;
	c->json = aqe_str_eq(value, "json");
	if (c->json || aqe_str_eq(value, "text"))
		return 0;
	return aqe_err_set(e, AQE_E_USAGE, 0, "no such format '%.64s'", value);
}

static int read_words(struct shim_cache_cmd *c, struct aqe_cli *cli, struct aqe_err *e)
{
	int id, rc = 0;

	while (!rc && (id = aqe_cli_next(cli, e)) != AQE_CLI_END) {
		if (id == AQE_CLI_OPERAND && c->operand)
			rc = aqe_err_set(e, AQE_E_USAGE, 0, "%s: one word too many: '%.64s'",
					 cli->cmd->name, cli->value);
		else if (id == AQE_CLI_OPERAND)
			c->operand = cli->value;
		else if (id < 0)
			rc = id;
		else
			rc = take_option(c, id, cli->value, e);
	}
	return rc;
}

int shim_cache_cmd_read(struct shim_cache_cmd *c, const struct aqe_cli_cmd *cmd, int argc,
			char **argv, const char *operand)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_cli cli;
	int rc;

	memset(c, 0, sizeof(*c));
	c->arena = aqe_arena_new(ARENA_MAX);
	aqe_cli_init(&cli, cmd, argc, argv);
	rc = c->arena ? read_words(c, &cli, &e) : aqe_err_set(&e, AQE_E_NOMEM, 0, "out of memory");
	if (rc == AQE_CLI_HELP) {
		AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OUT_MAX);

		aqe_cli_help(cmd, &b);
		return shim_cache_cmd_print(&b);
	}
	if (!rc && operand && !c->operand)
		rc = aqe_err_set(&e, AQE_E_USAGE, 0, "%s: %s is missing", cmd->name, operand);
	if (!rc && !operand && c->operand)
		rc = aqe_err_set(&e, AQE_E_USAGE, 0, "%s: one word too many: '%.64s'", cmd->name,
				 c->operand);
	return rc ? shim_cache_cmd_fail(&e) : -1;
}

/* ---- configuration ---- */

/* The section in a document: its member `cache` when it is a policy. */
static const struct aqe_json *section_of(const struct aqe_json *root)
{
	return aqe_json_get(root, "version") ? aqe_json_get(root, "cache") : root;
}

/* *ret_has: there was a section. */
static int load_file(struct shim_cache_cmd *c, const char *path, bool *ret_has, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(CONFIG_MAX);
	const struct aqe_json *section;
	struct aqe_json *root = NULL;
	int rc = shim_input_read(path, &text, e);

	if (!rc)
		rc = aqe_json_parse(c->arena, aqe_buf_str(&text), text.len,
				    &AQE_JSON_LIMITS_DEFAULT, &root, e);
	section = rc ? NULL : section_of(root);
	*ret_has = section != NULL;
	if (section)
		rc = cache_config_load(c->arena, section, &c->cfg, e);
	if (rc && e && e->line)
		(void)aqe_err_wrap(e, "%s:%u:%u", path, e->line, e->col);
	else if (rc)
		(void)aqe_err_wrap(e, "%s", path);
	return rc;
}

/* The policy of this host, as containers have it. Without one, or when the caller may not read it,
 * there is none. */
static int load_policy(struct shim_cache_cmd *c, bool *ret_has, struct aqe_err *e)
{
	const char *user = geteuid() == 0 ? NULL : shim_env_policy_dir(c->arena, environ);
	int rc = hard_policy_load(HARD_POLICY_DIR, user, &c->policy, e);

	*ret_has = false;
	if (rc == AQE_E_ABSENT) {
		*e = (struct aqe_err)AQE_ERR_INIT;
		return 0;
	}
	if (!rc)
		rc = shim_cache_policy(c->arena, c->policy, NULL, &c->cfg, ret_has, e);
	return rc ? aqe_err_wrap(e, "policy") : 0;
}

/* An absolute path, for a file that may not exist yet in a folder that does. */
static const char *absolute(struct aqe_arena *a, const char *path)
{
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
	AQE_AUTO_FREE char *folder = NULL;
	AQE_AUTO_FREE char *real = NULL;

	if (path[0] == '/')
		return path;
	folder = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
	real = folder ? realpath(folder, NULL) : NULL;
	return real ? aqe_arena_fmt(a, "%s/%s", real, file) : NULL;
}

static const char *usual_path(struct aqe_arena *a)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (cache && cache[0] == '/')
		return aqe_arena_fmt(a, "%s/aqe-shim/embeddings.db", cache);
	if (home && home[0] == '/')
		return aqe_arena_fmt(a, "%s/.cache/aqe-shim/embeddings.db", home);
	return NULL;
}

static int take_backend(struct shim_cache_cmd *c, struct aqe_err *e)
{
	if (c->path)
		c->cfg.backend = CACHE_SQLITE;
	if (c->redis_url)
		c->cfg.backend = CACHE_REDIS;
	if (!c->backend)
		return 0;
	for (int i = 0; i < CACHE_BACKENDS; i++) {
		if (!aqe_str_eq(c->backend, cache_backend_name((enum cache_backend)i)))
			continue;
		c->cfg.backend = (enum cache_backend)i;
		return 0;
	}
	return aqe_err_set(e, AQE_E_USAGE, 0,
			   "no such back end '%.64s': wanted memory, sqlite or redis", c->backend);
}

/* As the companions of containers name it: nobody has entries under another spelling. */
static int check_scope(const char *scope, struct aqe_err *e)
{
	static const char *const kinds[] = { "type:", "agent:", "container:" };

	for (size_t i = 0; scope && i < AQE_COUNT(kinds); i++) {
		if (aqe_starts(scope, kinds[i]) && scope[strlen(kinds[i])])
			return 0;
	}
	return !scope ? 0
		      : aqe_err_set(e, AQE_E_USAGE, 0,
				    "--scope: '%.64s': wanted type:NAME, agent:ID or container:ID; "
				    "without it everybody's",
				    scope);
}

/* Options win over the file. */
static int apply_options(struct shim_cache_cmd *c, struct aqe_err *e)
{
	int rc = take_backend(c, e);

	if (!rc)
		rc = check_scope(c->scope, e);
	if (!rc && c->redis_url)
		rc = shim_cache_url(c->arena, c->redis_url, &c->cfg, e);
	if (rc)
		return rc;
	if (c->redis_password)
		c->cfg.redis.where.password_file = absolute(c->arena, c->redis_password);
	if (c->path)
		c->cfg.sqlite_path = absolute(c->arena, c->path);
	if (c->cfg.backend == CACHE_SQLITE && !c->cfg.sqlite_path)
		c->cfg.sqlite_path = c->path ? NULL : usual_path(c->arena);
	if (c->cfg.backend == CACHE_SQLITE && !c->cfg.sqlite_path)
		return aqe_err_set(e, AQE_E_USAGE, 0, "%s",
				   c->path ? "--path: its folder does not exist"
					   : "no --path, and no HOME to put one in");
	c->cfg.space = c->scope;
	if (c->ttl_ms)
		c->cfg.ttl_ms = (int64_t)c->ttl_ms;
	if (c->kind || c->url)
		c->cfg.has_upstream = true;
	if (c->kind)
		c->cfg.upstream.kind = c->kind;
	if (c->url)
		c->cfg.upstream.url = c->url;
	if (c->credential)
		c->cfg.upstream.credential_file = absolute(c->arena, c->credential);
	if (c->batch)
		c->cfg.upstream.batch = c->batch;
	return 0;
}

int shim_cache_cmd_config(struct shim_cache_cmd *c, struct aqe_err *e)
{
	const bool options = c->backend || c->path || c->redis_url;
	bool has = false;
	int rc = 0;

	cache_config_init(&c->cfg);
	if (c->config)
		rc = load_file(c, c->config, &has, e);
	else if (!options)
		rc = load_policy(c, &has, e);
	if (!rc && c->config && !has)
		rc = aqe_err_set(e, AQE_E_ABSENT, 0, "%s: no section 'cache'", c->config);
	if (!rc && !has && !options)
		c->cfg.backend = CACHE_SQLITE;
	return rc ? rc : apply_options(c, e);
}

int shim_cache_cmd_open(struct shim_cache_cmd *c, struct aqe_err *e)
{
	const int rc = shim_cache_cmd_config(c, e);

	if (rc)
		return rc;
	c->cfg.own_ticks = true;
	c->cfg.two_level = false;
	c->cfg.fallback = false; /* a command says what is wrong instead */
	return cache_open(&c->cfg, NULL, &c->cache, e);
}

/* ---- keys ---- */

int shim_cache_cmd_key(const struct shim_cache_cmd *c, struct cache_key *ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(CONTENT_MAX);
	struct cache_key_parts p = { .scope = c->scope,
				     .provider = c->provider,
				     .model = c->model,
				     .revision = c->revision,
				     .dimension = (uint32_t)c->dimension,
				     .normalised = !c->raw };
	int rc;

	if (c->key && !cache_key_parse(c->key, ret))
		return aqe_err_set(e, AQE_E_USAGE, 0, "--key wants 64 lower-case hex digits");
	if (c->key)
		return 0;
	if (!c->content == !c->content_file)
		return aqe_err_set(e, AQE_E_USAGE, 0,
				   "wanted --key, or one of --content and --content-file");
	if (c->content) {
		p.content = c->content;
		p.len = strlen(c->content);
	} else {
		rc = shim_input_read(c->content_file, &text, e);
		if (rc)
			return e ? aqe_err_wrap(e, "%s", c->content_file) : rc;
		p.content = text.p;
		p.len = text.len;
	}
	cache_key_make(&p, ret);
	return 0;
}

/* ---- ending ---- */

int shim_cache_cmd_fail(const struct aqe_err *e)
{
	(void)fprintf(stderr, "aqe cache: %s\n", e->text);
	if (e->code == AQE_E_USAGE)
		return SHIM_EXIT_USAGE;
	return e->code == AQE_E_NOMEM || e->code == AQE_E_INTERNAL ? SHIM_EXIT_UNDECIDED
								   : SHIM_EXIT_FAILED;
}

int shim_cache_cmd_print(const struct aqe_buf *b)
{
	struct aqe_err e = AQE_ERR_INIT;

	return shim_output(b, &e) ? shim_cache_cmd_fail(&e) : SHIM_EXIT_OK;
}

void shim_cache_cmd_done(struct shim_cache_cmd *c)
{
	cache_close(c->cache);
	hard_policy_free(c->policy);
	aqe_arena_free(c->arena);
}
