/* SPDX-License-Identifier: MIT */
/* aqe cache stats, keys, prune, clear. */
#include <stdio.h>
#include <string.h>

#include "cache/gateway.h"
#include "shim/aqe/cache_cmd.h"
#include "shim/aqe/http.h"
#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "shim/exit.h"

#define ARENA_MAX ((size_t)1 << 20)
#define OUT_MAX   ((size_t)1 << 20)
#define PAGE      256

static const struct aqe_cli_opt STORE_OPTS[] = { SHIM_CACHE_OPTS_STORE, SHIM_CACHE_OPTS_END };

/* ---- stats ---- */

/* Of a running gateway. */
static int ask_gateway(const char *url, struct aqe_buf *b, struct aqe_err *e)
{
	const struct shim_http_opts o = { .flags = SHIM_HTTP_PLAIN, .connect_timeout_ms = 2000 };
	AQE_AUTO_BUF struct aqe_buf full = AQE_BUF_INIT(4096);
	struct shim_http_resp resp = SHIM_HTTP_RESP_INIT;
	struct shim_http_req req = { .timeout_ms = 10000, .max_body = OUT_MAX };
	struct shim_http *h = NULL;
	int rc;

	aqe_buf_addf(&full, "%s%s", url,
		     aqe_ends(url, "/") ? "aqe/cache/stats" : "/aqe/cache/stats");
	req.url = aqe_buf_str(&full);
	rc = aqe_buf_ok(&full, e);
	if (!rc)
		rc = shim_http_new(&o, &h, e);
	if (!rc)
		rc = shim_http_send(h, &req, &resp, e);
	if (!rc && resp.status != 200)
		rc = aqe_err_set(e, AQE_E_UNKNOWN, 0, "the gateway answers with status %d",
				 resp.status);
	if (!rc)
		rc = aqe_buf_add(b, resp.body.p, resp.body.len);
	shim_http_resp_done(&resp);
	shim_http_free(h);
	return rc;
}

/* "hitRate   0.8123", a line a member; members of members with a dot. */
static int as_text(const struct aqe_buf *json, struct aqe_buf *b, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct aqe_json *root = NULL;
	int rc = a ? aqe_json_parse(a, aqe_buf_str(json), json->len, &AQE_JSON_LIMITS_DEFAULT,
				    &root, e)
		   : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");

	for (const struct aqe_json *v = root && !rc ? root->first : NULL; v; v = v->next) {
		if (strcmp(v->key, "version") == 0)
			continue;
		if (v->type == AQE_JSON_OBJECT) {
			for (const struct aqe_json *m = v->first; m; m = m->next)
				aqe_buf_addf(b, "%s.%-*s %s\n", v->key, 15 - (int)strlen(v->key),
					     m->key, m->text);
			continue;
		}
		aqe_buf_addf(b, "%-16s %s\n", v->key,
			     v->type == AQE_JSON_BOOL ? v->boolean ? "yes" : "no" : v->text);
	}
	return rc;
}

int shim_cache_stats(int argc, char **argv)
{
	static const struct aqe_cli_opt OPTS[] = {
		{ "url", 'u', "URL", "ask this gateway, such as http://127.0.0.1:3130",
		  SHIM_CACHE_URL },
		SHIM_CACHE_OPTS_STORE,
		SHIM_CACHE_OPTS_END,
	};
	static const struct aqe_cli_cmd CMD = {
		.name = "stats",
		.synopsis = "[--url URL | --path FILE | --redis-url URL | --config FILE]",
		.about = "Entries and bytes of the cache; with --url also what a running gateway "
			 "counted: hits, misses, rate, evictions, damage, times.",
		.opts = OPTS,
	};
	AQE_AUTO_BUF struct aqe_buf json = AQE_BUF_INIT(OUT_MAX), out = AQE_BUF_INIT(OUT_MAX);
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_cache_cmd c;
	int rc = shim_cache_cmd_read(&c, &CMD, argc, argv, NULL);

	if (rc < 0) {
		const char *url = c.url;

		c.url = NULL; /* not an upstream's here */
		rc = url ? ask_gateway(url, &json, &e) : shim_cache_cmd_open(&c, &e);
		if (!rc && !url)
			rc = cache_healthy(c.cache, &e);
		if (!rc && !url)
			cache_gateway_stats(c.cache, &json);
		if (!rc && !c.json)
			rc = as_text(&json, &out, &e);
		else if (!rc)
			aqe_buf_addf(&out, "%s\n", aqe_buf_str(&json));
		rc = rc ? shim_cache_cmd_fail(&e) : shim_cache_cmd_print(&out);
	}
	shim_cache_cmd_done(&c);
	return rc;
}

/* ---- keys ---- */

/* A page at a time: there may be millions. */
static int print_keys(const struct shim_cache_cmd *c, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OUT_MAX);
	struct cache_iter it = CACHE_ITER_INIT;
	struct cache_key keys[PAGE];
	char text[CACHE_KEY_TEXT];
	bool first = true;
	size_t n = 0;
	int rc = 0;

	aqe_buf_puts(&b, c->json ? "{\"version\":1,\"keys\":[" : "");
	while (!rc && !it.done) {
		rc = cache_keys(c->cache, &it, keys, PAGE, &n, e);
		for (size_t i = 0; i < n && !rc; i++) {
			cache_key_format(&keys[i], text);
			aqe_buf_addf(&b, c->json ? "%s\"%s\"" : "%s%s\n",
				     !c->json || first ? "" : ",", text);
			first = false;
		}
		if (!rc && shim_cache_cmd_print(&b))
			rc = aqe_err_set(e, AQE_E_SYS, 0, "cannot write");
		aqe_buf_clear(&b);
	}
	aqe_buf_puts(&b, c->json ? "]}\n" : "");
	cache_iter_done(&it);
	return rc || !shim_cache_cmd_print(&b) ? rc : AQE_E_SYS;
}

int shim_cache_keys(int argc, char **argv)
{
	static const struct aqe_cli_cmd CMD = {
		.name = "keys",
		.synopsis = "[--path FILE | --redis-url URL | --config FILE]",
		.about = "Lists the keys of all entries, one a line.",
		.opts = STORE_OPTS,
	};
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_cache_cmd c;
	int rc = shim_cache_cmd_read(&c, &CMD, argc, argv, NULL);

	if (rc < 0) {
		rc = shim_cache_cmd_open(&c, &e);
		if (!rc)
			rc = print_keys(&c, &e);
		rc = rc ? shim_cache_cmd_fail(&e) : SHIM_EXIT_OK;
	}
	shim_cache_cmd_done(&c);
	return rc;
}

/* ---- prune, clear ---- */

static int tell_number(const struct shim_cache_cmd *c, const char *member, uint64_t n)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1024);

	if (c->json)
		aqe_buf_addf(&b, "{\"version\":1,\"%s\":%llu}\n", member, (unsigned long long)n);
	else
		aqe_buf_addf(&b, "%s %llu\n", member, (unsigned long long)n);
	return shim_cache_cmd_print(&b);
}

int shim_cache_prune(int argc, char **argv)
{
	static const struct aqe_cli_cmd CMD = {
		.name = "prune",
		.synopsis = "[--path FILE | --redis-url URL | --config FILE]",
		.about = "Removes entries that are too old and gives their space back. Redis does "
			 "that by itself: 0.",
		.opts = STORE_OPTS,
	};
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_cache_cmd c;
	uint64_t n = 0;
	int rc = shim_cache_cmd_read(&c, &CMD, argc, argv, NULL);

	if (rc < 0) {
		rc = shim_cache_cmd_open(&c, &e);
		if (!rc)
			rc = cache_prune(c.cache, &n, &e);
		rc = rc ? shim_cache_cmd_fail(&e) : tell_number(&c, "pruned", n);
	}
	shim_cache_cmd_done(&c);
	return rc;
}

int shim_cache_clear(int argc, char **argv)
{
	static const struct aqe_cli_cmd CMD = {
		.name = "clear",
		.synopsis = "[--path FILE | --redis-url URL | --config FILE]",
		.about = "Removes all entries. In Redis only keys with the cache's prefix are "
			 "touched. The memory of running gateways forgets them within minutes.",
		.opts = STORE_OPTS,
	};
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_cache_cmd c;
	uint64_t n = 0;
	int rc = shim_cache_cmd_read(&c, &CMD, argc, argv, NULL);

	if (rc < 0) {
		rc = shim_cache_cmd_open(&c, &e);
		if (!rc)
			rc = cache_size(c.cache, &n, NULL, &e);
		if (!rc)
			rc = cache_clear(c.cache, &e);
		rc = rc ? shim_cache_cmd_fail(&e) : tell_number(&c, "cleared", n);
	}
	shim_cache_cmd_done(&c);
	return rc;
}
