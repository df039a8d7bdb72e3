/* SPDX-License-Identifier: MIT */
#include "cache/config.h"

#include <fcntl.h>
#include <stdio.h>

#include "cache/config_rows.h"
#include "hardening/policy.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

static int load(struct aqe_arena *a, const char *text, struct cache_config *cfg, struct aqe_err *e)
{
	struct aqe_json *root = NULL;

	ck_assert_ok(aqe_json_parse(a, text, strlen(text), &AQE_JSON_LIMITS_DEFAULT, &root, e), *e);
	cache_config_init(cfg);
	return cache_config_load(a, root, cfg, e);
}

START_TEST(load__takes_defaults)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	struct cache_config c;

	ck_assert_ok(load(a, "{\"backend\": \"memory\"}", &c, &e), e);
	ck_assert_int_eq(c.backend, CACHE_MEMORY);
	ck_assert(c.max_entries == 10000 && c.ttl_ms == 86400000 && c.prune_interval_ms == 3600000);
	ck_assert(!c.two_level && !c.has_upstream && c.fallback);
	ck_assert_ok(load(a, "{\"backend\": \"redis\", \"redis\": {}}", &c, &e), e);
	ck_assert_str_eq(c.redis.where.at.host, "127.0.0.1");
	ck_assert(c.redis.where.at.port == 6379 && !c.redis.where.at.tls);
}
END_TEST

START_TEST(load__takes_everything)
{
	static const char TEXT[] =
		"{\"backend\": \"redis\", \"maxSize\": 5, \"maxBytes\": 70000, \"ttlMs\": 1000,"
		" \"autoPruneIntervalMs\": 0, \"memory\": {},"
		" \"sqlite\": {\"path\": \"/var/lib/c.db\", \"busyTimeoutMs\": 7},"
		" \"redis\": {\"host\": \"h\", \"port\": 1, \"socket\": \"/s\", \"db\": 2,"
		" \"keyPrefix\": \"\", \"username\": \"u\", \"passwordFile\": \"/p\", "
		"\"poolSize\": 3,"
		" \"connectTimeoutMs\": 4, \"timeoutMs\": 5, \"fallback\": false,"
		" \"tls\": {\"caFile\": \"/ca\", \"certFile\": \"/c\", \"keyFile\": \"/k\","
		" \"serverName\": \"n\"}},"
		" \"front\": {\"maxSize\": 6, \"maxBytes\": 65536, \"ttlMs\": 8},"
		" \"upstream\": {\"kind\": \"openai\", \"url\": \"https://x\", \"provider\": \"p\","
		" \"revision\": \"r\", \"credentialFile\": \"/key\", \"header\": \"x-key\","
		" \"prefix\": \"\", \"caFile\": \"/ca\", \"models\": [\"a\", \"b\"], "
		"\"batchSize\": 9,"
		" \"timeoutMs\": 10, \"tries\": 1, \"backoffMs\": 0}}";
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	struct cache_config c;

	ck_assert_ok(load(a, TEXT, &c, &e), e);
	ck_assert(c.backend == CACHE_REDIS && c.max_entries == 5 && c.max_bytes == 70000);
	ck_assert(c.ttl_ms == 1000 && c.prune_interval_ms == 0 && c.sqlite_busy_timeout_ms == 7);
	ck_assert_str_eq(c.sqlite_path, "/var/lib/c.db");
	ck_assert_str_eq(c.redis.where.at.host, "h");
	ck_assert(c.redis.where.at.port == 1 && c.redis.where.db == 2 && c.redis.pool_size == 3);
	ck_assert_str_eq(c.redis.where.at.socket, "/s");
	ck_assert_str_eq(c.redis.prefix, "");
	ck_assert_str_eq(c.redis.where.username, "u");
	ck_assert_str_eq(c.redis.where.password_file, "/p");
	ck_assert(c.redis.where.connect_timeout_ms == 4 && c.redis.where.timeout_ms == 5);
	ck_assert(!c.fallback && c.redis.where.at.tls == &c.redis_tls);
	ck_assert_str_eq(c.redis_tls.ca_file, "/ca");
	ck_assert_str_eq(c.redis_tls.cert_file, "/c");
	ck_assert_str_eq(c.redis_tls.key_file, "/k");
	ck_assert_str_eq(c.redis_tls.server_name, "n");
	ck_assert(c.two_level && c.front_entries == 6 && c.front_bytes == 65536 &&
		  c.front_ttl_ms == 8);
	ck_assert(c.has_upstream && c.upstream.n_models == 2 && c.upstream.batch == 9);
	ck_assert_str_eq(c.upstream.kind, "openai");
	ck_assert_str_eq(c.upstream.url, "https://x");
	ck_assert_str_eq(c.upstream.models[1], "b");
	ck_assert(c.upstream.timeout_ms == 10 && c.upstream.tries == 1 &&
		  c.upstream.backoff_ms == 0);
	ck_assert_str_eq(c.upstream.credential_file, "/key");
	ck_assert_str_eq(c.upstream.header, "x-key");
}
END_TEST

static const struct {
	const char *text;
	unsigned line;
	const char *why;
} FAULTS[] = {
	{ "{}", 1, "'backend' is missing" },
	{ "[]", 1, "wanted an object" },
	{ "{\n\"backend\": \"postgres\"}", 2, "no such back end 'postgres'" },
	{ "{\n\"backend\": 7}", 2, "no such back end 'number'" },
	{ "{\n\n\"backend\": \"redis\"}", 3, "without its section 'redis'" },
	{ "{\n\"backend\": \"sqlite\"}", 2, "without its section 'sqlite'" },
	{ "{\"backend\": \"sqlite\",\n\"sqlite\": {}}", 2, "'path' is missing" },
	{ "{\"backend\": \"sqlite\",\n\"sqlite\": {\"path\": \"c.db\"}}", 2, "absolute path" },
	{ "{\"backend\": \"sqlite\",\n\"sqlite\": {\"path\": \"/a/../c.db\"}}", 2,
	  "absolute path" },
	{ "{\"backend\": \"memory\",\n\"memory\": {\"x\": 1}}", 2, "no such member 'x'" },
	{ "{\"backend\": \"memory\",\n\"size\": 1}", 2, "no such member 'size'" },
	{ "{\"backend\": \"memory\",\n\"maxSize\": 0}", 2, "from 1 to" },
	{ "{\"backend\": \"memory\",\n\"maxSize\": \"9\"}", 2, "whole number" },
	{ "{\"backend\": \"memory\",\n\"maxSize\": 1.5}", 2, "whole number" },
	{ "{\"backend\": \"memory\",\n\"maxBytes\": 65535}", 2, "from 65536" },
	{ "{\"backend\": \"memory\",\n\"ttlMs\": 0}", 2, "from 1 to" },
	{ "{\"backend\": \"memory\",\n\"ttlMs\": 316224000001}", 2, "'ttlMs'" },
	{ "{\"backend\": \"memory\",\n\"autoPruneIntervalMs\": -1}", 2, "from 0 to" },
	{ "{\"backend\": \"redis\",\n\"redis\": []}", 2, "'redis': wanted an object" },
	{ "{\"backend\": \"redis\",\n\"redis\": {\"port\": 65536}}", 2, "from 1 to 65535" },
	{ "{\"backend\": \"redis\",\n\"redis\": {\"password\": \"x\"}}", 2,
	  "no such member 'password'" },
	{ "{\"backend\": \"redis\",\n\"redis\": {\"username\": \"x\"}}", 2,
	  "without 'passwordFile'" },
	{ "{\"backend\": \"redis\",\n\"redis\": {\"fallback\": 1}}", 2, "true or false" },
	{ "{\"backend\": \"redis\",\n\"redis\": {\"poolSize\": 65}}", 2, "from 1 to 64" },
	{ "{\"backend\": \"redis\", \"redis\": {\n\"tls\": {\"verify\": false}}}", 2,
	  "no such member" },
	{ "{\"backend\": \"memory\",\n\"front\": 1}", 2, "'front': wanted an object" },
	{ "{\"backend\": \"memory\",\n\"upstream\": {}}", 2, "'kind' is missing" },
	{ "{\"backend\": \"memory\",\n\"upstream\": {\"kind\": \"openai\"}}", 2,
	  "'url' is missing" },
	{ "{\"backend\": \"memory\", \"upstream\": {\n\"kind\": \"x\", \"url\": \"http://h\"}}", 2,
	  "ollama or openai" },
	{ "{\"backend\": \"memory\", \"upstream\": {\n\"kind\": \"openai\", \"url\": "
	  "\"file:///x\"}}",
	  2, "http:// or https://" },
	{ "{\"backend\": \"memory\", \"upstream\": {\"kind\": \"openai\", \"url\": \"http://x\",\n"
	  "\"models\": []}}",
	  2, "list of names" },
	{ "{\"backend\": \"memory\", \"upstream\": {\"kind\": \"openai\", \"url\": \"http://x\",\n"
	  "\"models\": [1]}}",
	  2, "wanted names" },
};

START_TEST(load__shows_the_place)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	struct cache_config c;

	ck_assert_fault(load(a, FAULTS[_i].text, &c, &e), AQE_E_MALFORMED, e, FAULTS[_i].why);
	ck_assert_uint_eq(e.line, FAULTS[_i].line);
	ck_assert_uint_gt(e.col, 0);
}
END_TEST

START_TEST(backend_name__names_all)
{
	ck_assert_str_eq(cache_backend_name(CACHE_MEMORY), "memory");
	ck_assert_str_eq(cache_backend_name(CACHE_SQLITE), "sqlite");
	ck_assert_str_eq(cache_backend_name(CACHE_REDIS), "redis");
	ck_assert_str_eq(cache_backend_name(CACHE_BACKENDS), "none");
}
END_TEST

/* ---- parts: the policy's files ---- */

#define PARTS_MAX 4
struct parts {
	struct cache_config_part list[PARTS_MAX];
	size_t n;
};

/* NULL ends; a text that begins with 'u' is of the user's tier. */
static void parts_read(struct aqe_arena *a, const char *const *texts, struct parts *ret)
{
	static const char *const NAMES[PARTS_MAX] = { "one", "two", "three", "four" };
	struct aqe_err e = AQE_ERR_INIT;

	for (ret->n = 0; ret->n < PARTS_MAX && texts[ret->n]; ret->n++) {
		const bool user = *texts[ret->n] == 'u';
		const char *text = texts[ret->n] + user;
		struct aqe_json *root = NULL;

		ck_assert_ok(aqe_json_parse(a, text, strlen(text), &AQE_JSON_LIMITS_DEFAULT, &root,
					    &e),
			     e);
		ret->list[ret->n] = (struct cache_config_part){ NAMES[ret->n], root, user };
	}
}

static int load_parts(struct aqe_arena *a, const char *const *texts, const char *type,
		      struct cache_config *cfg, struct aqe_err *e)
{
	struct parts p;

	parts_read(a, texts, &p);
	cache_config_init(cfg);
	return cache_config_load_parts(a, p.list, p.n, type, cfg, e);
}

START_TEST(parts__are_put_together)
{
	static const char *const TEXTS[] = {
		"{\"ttlMs\": 5000, \"agents\": {\"a\": {\"ttlMs\": 70, \"gateway\": false,"
		" \"models\": [\"x\"]}}}",
		"{\"sqlite\": {\"path\": \"/c.db\"}, \"agents\": {\"b\": {\"scope\": \"all\"}}}",
		"{\"backend\": \"sqlite\", \"scope\": \"agent\"}", NULL
	};
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	struct cache_config c;

	ck_assert_ok(load_parts(a, TEXTS, NULL, &c, &e), e);
	ck_assert(c.backend == CACHE_SQLITE && c.ttl_ms == 5000 && c.gateway);
	ck_assert(c.scope == CACHE_SCOPE_AGENT && c.upstream.n_models == 0);
	ck_assert_str_eq(c.sqlite_path, "/c.db");
	ck_assert_ok(load_parts(a, TEXTS, "a", &c, &e), e);
	ck_assert(c.ttl_ms == 70 && !c.gateway && c.scope == CACHE_SCOPE_AGENT);
	ck_assert_str_eq(c.upstream.models[0], "x");
	ck_assert_ok(load_parts(a, TEXTS, "b", &c, &e), e);
	ck_assert(c.ttl_ms == 5000 && c.gateway && c.scope == CACHE_SCOPE_ALL);
}
END_TEST

#define SYSTEM                                                                                   \
	"{\"backend\": \"sqlite\", \"sqlite\": {\"path\": \"/s\"}, \"maxSize\": 10, \"ttlMs\": " \
	"100,"                                                                                   \
	" \"agents\": {\"a\": {\"ttlMs\": 50, \"scope\": \"all\"}}}"

START_TEST(user__tightens)
{
	static const char *const TEXTS[] = {
		SYSTEM,
		"u{\"ttlMs\": 80, \"maxSize\": 10, \"sqlite\": {\"path\": \"/u\"}, "
		"\"gateway\": false,"
		" \"agents\": {\"a\": {\"scope\": \"agent\"}, \"b\": {\"ttlMs\": 7}}}",
		NULL
	};
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	struct cache_config c;

	ck_assert_ok(load_parts(a, TEXTS, NULL, &c, &e), e);
	ck_assert(c.ttl_ms == 80 && c.max_entries == 10 && !c.gateway);
	ck_assert_str_eq(c.sqlite_path, "/u");
	ck_assert_ok(load_parts(a, TEXTS, "a", &c, &e), e);
	ck_assert(c.ttl_ms == 50 && c.scope == CACHE_SCOPE_AGENT); /* the system's is lower */
	ck_assert_ok(load_parts(a, TEXTS, "b", &c, &e), e);
	ck_assert(c.ttl_ms == 7 && c.scope == CACHE_SCOPE_TYPE);
}
END_TEST

static const char USERS_OWN[] = "is the system's policy's";
static const struct {
	const char *user, *type, *why;
} LOOSER[] = {
	{ "u{\n\"ttlMs\": 101}", NULL, "'ttlMs' is looser" },
	{ "u{\n\"maxSize\": 11}", NULL, "'maxSize' is looser" },
	{ "u{\n\"scope\": \"all\"}", NULL, "'scope' is looser" },
	{ "u{\n\"maxSize\": 0}", NULL, "from 1 to" },
	{ "u{\n\"backend\": \"memory\"}", NULL, USERS_OWN },
	{ "u{\n\"redis\": {}}", NULL, USERS_OWN },
	{ "u{\n\"front\": {}}", NULL, USERS_OWN },
	{ "u{\n\"upstream\": {\"kind\": \"ollama\", \"url\": \"http://x\"}}", NULL, USERS_OWN },
	{ "u{\"agents\": {\n\"a\": {\"ttlMs\": 51}}}", "a", "'ttlMs' is looser" },
	{ "u{\"agents\": {\n\"a\": {\"models\": [\"m\"]}}}", "a", USERS_OWN },
	{ "u{\"agents\": {\n\"other\": {\"models\": [\"m\"]}}}", "a", USERS_OWN },
	{ "u{\"agents\": {\n\"other\": {\"ttlMs\": 0}}}", "a", "from 1 to" },
	{ "u{\n\"sqlite\": {\"path\": \"u\"}}", NULL, "absolute path" },
};

START_TEST(user__cannot_loosen)
{
	const char *const texts[] = { SYSTEM, LOOSER[_i].user, NULL };
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	struct cache_config c;

	ck_assert_fault(load_parts(a, texts, LOOSER[_i].type, &c, &e), AQE_E_MALFORMED, e,
			LOOSER[_i].why);
	ck_assert_msg(aqe_starts(e.text, "two:2: "), "%s", e.text);
}
END_TEST

/* Without a section of the system the user's is the whole. */
START_TEST(user__stands_alone)
{
	static const char *const TEXTS[] = { "u{\"backend\": \"memory\", \"scope\": \"all\"}",
					     "u{\"front\": {}}", NULL };
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	struct cache_config c;

	ck_assert_ok(load_parts(a, TEXTS, NULL, &c, &e), e);
	ck_assert(c.two_level && c.scope == CACHE_SCOPE_ALL);
}
END_TEST

static const struct {
	const char *texts[3];
	const char *why;
} SPLIT[] = {
	{ { "{}", "{\"maxSize\": 5}" }, "one:1: the member 'backend' is missing" },
	{ { "{}", "{\n\"backend\": \"redis\"}" }, "two:2: the back end 'redis' without" },
	{ { "{\"backend\": \"redis\"}", "{\n\"redis\": {\"username\": \"u\"}}" },
	  "two:2: 'username' without" },
	{ { "{\"backend\": \"memory\",\n\"agents\": {\"a\": {\"ttl\": 1}}}" }, "one:2: no such" },
	{ { "{\"backend\": \"memory\",\n\"agents\": []}" }, "one:2: 'agents': wanted an object" },
	{ { "{\"backend\": \"memory\",\n\"agents\": {\"a\": 1}}" },
	  "one:2: 'a': wanted an object" },
	{ { "{\"backend\": \"memory\",\n\"agents\": {\"a\": {\"models\": []}}}" },
	  "one:2: 'models': wanted a list" },
	{ { "{\"backend\": \"memory\",\n\"scope\": \"host\"}" },
	  "one:2: 'scope': wanted agent, type" },
};

START_TEST(parts__name_the_file)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	struct cache_config c;

	ck_assert_fault(load_parts(a, SPLIT[_i].texts, NULL, &c, &e), AQE_E_MALFORMED, e,
			SPLIT[_i].why);
}
END_TEST

static void collect(void *self, const struct cache_setting *s)
{
	ck_assert_int_eq(aqe_buf_addf(self, "%s=%s %s:%u\n", s->name, s->value,
				      s->file ? s->file : "-", s->line),
			 0);
}

START_TEST(each__names_value_and_place)
{
	static const char *const TEXTS[] = {
		"{\"backend\": \"redis\",\n\"redis\": {\n\"tls\": {\"caFile\": \"/ca\"}},"
		" \"ttlMs\": 100,\n\"upstream\": {\"kind\": \"openai\", \"url\": \"https://h\","
		" \"models\": [\"m\", \"n\"]},\n\"agents\": {\"a\": {\"gateway\": false,"
		" \"models\": [\"m\"]}}}",
		"u{\n\"ttlMs\": 80, \"maxSize\": 10000}", NULL
	};
	static const char *const HAS[] = {
		"backend=redis one:1\n",
		"ttlMs=80 two:2\n",
		"maxSize=10000 two:2\n",
		"maxBytes=268435456 -:0\n",
		"gateway=no one:5\n",
		"scope=type -:0\n",
		"redis.port=6379 -:0\n",
		"redis.tls.caFile=/ca one:3\n",
		"upstream.kind=openai one:4\n",
		"upstream.models=m one:5\n",
		"upstream.batchSize=32 -:0\n",
		"redis.fallback=yes -:0\n",
		"upstream.header=authorization -",
	};
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 16);
	struct aqe_err e = AQE_ERR_INIT;
	struct cache_config c;
	struct parts p;

	parts_read(a, TEXTS, &p);
	cache_config_init(&c);
	ck_assert_ok(cache_config_load_parts(a, p.list, p.n, "a", &c, &e), e);
	cache_config_each(&c, p.list, p.n, "a", collect, &b);
	for (size_t i = 0; i < AQE_COUNT(HAS); i++)
		ck_assert_msg(strstr(aqe_buf_str(&b), HAS[i]), "%s is not in\n%s", HAS[i],
			      aqe_buf_str(&b));
	ck_assert_ptr_null(strstr(aqe_buf_str(&b), "sqlite"));
	ck_assert_ptr_null(strstr(aqe_buf_str(&b), "front"));
}
END_TEST

/* ---- one table here, one in the policy's reader, one in its schema ---- */

static const struct hard_policy_key *policy_key(const char *path)
{
	for (size_t i = 0; i < HARD_POLICY_KEYS_COUNT; i++)
		if (strcmp(HARD_POLICY_KEYS[i].path, path) == 0)
			return &HARD_POLICY_KEYS[i];
	return NULL;
}

static const char *type_of(const struct cache_row *r)
{
	if (cache_row_is_text(r) || r->kind == CACHE_K_SCOPE || strcmp(r->name, "backend") == 0)
		return "string";
	if (r->kind == CACHE_K_OTHER)
		return strcmp(r->name, "models") == 0 ? "array" : "object";
	return r->kind == CACHE_K_BOOL ? "boolean" : "integer";
}

static void check_row(const struct aqe_json *object, const char *prefix, const struct cache_row *r)
{
	const bool text = cache_row_is_text(r);
	const struct aqe_json *node, *low, *high;
	const struct hard_policy_key *key;
	uint64_t n = 0;
	char path[128];

	snprintf(path, sizeof(path), "%s.%s", prefix, r->name);
	key = policy_key(path);
	ck_assert_msg(key && strcmp(key->type, type_of(r)) == 0, "%s", path);
	node = aqe_json_get(aqe_json_get(object, "properties"), r->name);
	low = aqe_json_get(node, text ? "minLength" : "minimum");
	high = aqe_json_get(node, text ? "maxLength" : "maximum");
	ck_assert_msg(node, "%s", path);
	if (r->max == 0 || aqe_json_get(node, "enum"))
		return;
	ck_assert_msg(aqe_json_to_u64(high, UINT64_MAX, &n) && n == r->max, "%s", path);
	if (r->kind != CACHE_K_PATH && (low || r->min > 0))
		ck_assert_msg(aqe_json_to_u64(low, UINT64_MAX, &n) && n == r->min, "%s", path);
}

START_TEST(tables__are_the_policys)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)16 << 20);
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(1 << 20);
	AQE_AUTO_FD int fd = open("hardening/policy.schema.json", O_RDONLY | O_CLOEXEC);
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *schema = NULL;
	const struct aqe_json *cache;
	size_t n = 0, keys = 0;

	ck_assert_ok(aqe_fs_read_fd(fd, &text, &e), e);
	ck_assert_ok(aqe_json_parse(a, text.p, text.len, &AQE_JSON_LIMITS_DEFAULT, &schema, &e), e);
	cache = aqe_json_at(schema, "/properties/cache");
	for (size_t i = 0; i < CACHE_CONFIG_TABLES_COUNT; i++) {
		const struct cache_table *t = &CACHE_CONFIG_TABLES[i];
		const struct aqe_json *object = cache;
		char prefix[64] = "cache", pointer[128] = "";

		for (const char *p = t->pointer; *p; p++)
			snprintf(prefix + strlen(prefix), 3, "%c", *p == '/' ? '.' : *p);
		if (strcmp(t->pointer, "/redis/tls") == 0)
			object = aqe_json_at(cache, "/properties/redis/properties/tls");
		else if (*t->pointer) {
			snprintf(pointer, sizeof(pointer), "/properties%s", t->pointer);
			object = aqe_json_at(cache, pointer);
		}
		for (size_t k = 0; k < t->n; k++, n++)
			check_row(object, prefix, &t->row[k]);
	}
	for (size_t k = 0; k < CACHE_CONFIG_AGENT.n; k++, n++)
		check_row(aqe_json_at(cache, "/properties/agents/additionalProperties"),
			  "cache.agents.*", &CACHE_CONFIG_AGENT.row[k]);
	for (size_t i = 0; i < HARD_POLICY_KEYS_COUNT; i++)
		keys += aqe_starts(HARD_POLICY_KEYS[i].path, "cache.");
	/* the policy's also has agents.* and the items of two lists */
	ck_assert_uint_eq(keys, n + 3);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("config");
	TCase *t = tcase_create("config");

	tcase_add_test(t, load__takes_defaults);
	tcase_add_test(t, load__takes_everything);
	tcase_add_loop_test(t, load__shows_the_place, 0, AQE_COUNT(FAULTS));
	tcase_add_test(t, backend_name__names_all);
	tcase_add_test(t, parts__are_put_together);
	tcase_add_loop_test(t, parts__name_the_file, 0, AQE_COUNT(SPLIT));
	tcase_add_test(t, user__tightens);
	tcase_add_loop_test(t, user__cannot_loosen, 0, AQE_COUNT(LOOSER));
	tcase_add_test(t, user__stands_alone);
	tcase_add_test(t, each__names_value_and_place);
	tcase_add_test(t, tables__are_the_policys);
	suite_add_tcase(s, t);
	return unit_run(s);
}
