/* SPDX-License-Identifier: MIT */
#include "cache/config.h"

#include "shim/core/cleanup.h"
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

int main(void)
{
	Suite *s = suite_create("config");
	TCase *t = tcase_create("config");

	tcase_add_test(t, load__takes_defaults);
	tcase_add_test(t, load__takes_everything);
	tcase_add_loop_test(t, load__shows_the_place, 0, AQE_COUNT(FAULTS));
	tcase_add_test(t, backend_name__names_all);
	suite_add_tcase(s, t);
	return unit_run(s);
}
