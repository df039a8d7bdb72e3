/* SPDX-License-Identifier: MIT */
#include "shim/aqe/cache_url.h"

#include <stdlib.h>
#include <string.h>

#include "shim/core/text.h"

static int bad(const char *why, struct aqe_err *e)
{
	return aqe_err_set(
		e, AQE_E_USAGE, 0,
		"--redis-url: %s; wanted redis://[USER@]HOST[:PORT][/DB] or unix:///PATH", why);
}

static int take_port(const char *text, struct cache_config *cfg, struct aqe_err *e)
{
	uint64_t n;

	if (!aqe_parse_u64(text, 65535, &n) || n == 0)
		return bad("no port", e);
	cfg->redis.where.at.port = (uint16_t)n;
	return 0;
}

/* "HOST", "HOST:PORT", "[ADDRESS]", "[ADDRESS]:PORT"; `text` is ours to cut. */
static int take_host(char *text, struct cache_config *cfg, struct aqe_err *e)
{
	char *end, *port;

	if (*text == '[') {
		end = strchr(text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return bad("no address in brackets", e);
		port = end[1] ? end + 2 : NULL;
		*end = '\0';
		text++;
	} else {
		end = strchr(text, ':');
		port = end ? end + 1 : NULL;
		if (end)
			*end = '\0';
		if (port && strchr(port, ':'))
			return bad("an IPv6 address needs brackets", e);
	}
	if (!*text)
		return bad("no host", e);
	cfg->redis.where.at.host = text;
	return port ? take_port(port, cfg, e) : 0;
}

static int take_rest(char *text, struct cache_config *cfg, struct aqe_err *e)
{
	char *slash = strchr(text, '/'), *at;
	uint64_t db;

	if (slash) {
		*slash = '\0';
		if (slash[1]) {
			if (!aqe_parse_u64(slash + 1, 65535, &db))
				return bad("no number of a database", e);
			cfg->redis.where.db = (unsigned)db;
		}
	}
	at = strrchr(text, '@');
	if (at) {
		*at = '\0';
		if (strchr(text, ':'))
			return bad("a password in it is seen by everybody: use "
				   "--redis-password-file",
				   e);
		if (*text)
			cfg->redis.where.username = text;
		text = at + 1;
	}
	return take_host(text, cfg, e);
}

int shim_cache_url(struct aqe_arena *a, const char *url, struct cache_config *cfg,
		   struct aqe_err *e)
{
	char *copy = aqe_arena_dup(a, url);

	if (!copy)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	if (aqe_starts(url, "unix://")) {
		if (!aqe_path_is_canonical(copy + 7))
			return bad("no absolute path", e);
		cfg->redis.where.at.socket = copy + 7;
		return 0;
	}
	cfg->redis.where.at.socket = NULL;
	if (aqe_starts(url, "rediss://")) {
		cfg->redis.where.at.tls = &cfg->redis_tls;
		return take_rest(copy + 9, cfg, e);
	}
	if (!aqe_starts(url, "redis://"))
		return bad("no such kind of URL", e);
	cfg->redis.where.at.tls = NULL;
	return take_rest(copy + 8, cfg, e);
}
