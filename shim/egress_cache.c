/* SPDX-License-Identifier: MIT */
#include "shim/egress_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "netpolicy/egress/secrets.h"
#include "shim/cache_policy.h"
#include "shim/core/arena.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "shim/egress_id.h"

#define ARENA_MAX ((size_t)32 << 20)
#define SECTION   "cache"

static int nomem(struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the cache");
}

/* ---- the policy's side ---- */

static int load(struct aqe_arena *a, const struct hard_policy *p, const char *type,
		struct cache_config *cfg, bool *ret_has, struct aqe_err *e)
{
	return a ? shim_cache_policy(a, p, type, cfg, ret_has, e) : nomem(e);
}

int shim_egress_cache_wanted(const struct hard_policy *p, const char *type, bool *ret,
			     struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct cache_config cfg;
	bool has = false;
	int rc = load(a, p, type, &cfg, &has, e);

	if (rc == 0)
		*ret = has && cfg.gateway && cfg.has_upstream;
	return rc;
}

/* The name of the scope: part of every key, so that entries of others do not exist. */
static const char *space_of(struct aqe_arena *a, const struct cache_config *cfg,
			    const struct shim_egress_cache_for *who)
{
	switch (cfg->scope) {
	case CACHE_SCOPE_ALL:
		return "";
	case CACHE_SCOPE_TYPE:
		return aqe_arena_fmt(a, "type:%s", who->type);
	case CACHE_SCOPE_AGENT:
	case CACHE_SCOPES:
		break;
	}
	/* without a name of its own an agent is its container */
	return who->agent ? aqe_arena_fmt(a, "agent:%s", who->agent)
			  : aqe_arena_fmt(a, "container:%s", who->container ? who->container : "");
}

static bool add_text(struct aqe_arena *a, struct aqe_json *o, const char *name, const char *text)
{
	return text && aqe_json_set(a, o, name, aqe_json_new_str(a, text)) == 0;
}

static bool add_parts(struct aqe_arena *a, const struct hard_policy *p, struct aqe_json *o)
{
	struct aqe_json *list = aqe_json_new_array(a);

	for (size_t i = 0; list && i < p->n_sections; i++) {
		const struct hard_section *s = &p->sections[i];
		struct aqe_json *part;

		if (strcmp(s->key, SECTION) != 0 || !s->root->first)
			continue;
		part = aqe_json_new_object(a);
		if (!part || !add_text(a, part, "file", s->file) ||
		    aqe_json_set(a, part, "user", aqe_json_new_bool(a, s->user)) ||
		    aqe_json_set(a, part, "root", aqe_json_copy(a, s->root)) ||
		    aqe_json_append(list, part))
			return false;
	}
	return aqe_json_set(a, o, "parts", list) == 0;
}

/* A file that the companion opens itself, when it is another user already. */
static int check_public(const char *path, struct aqe_err *e)
{
	struct stat st;

	if (!path)
		return 0;
	if (stat(path, &st) < 0)
		return aqe_err_set(e, AQE_E_UNTRUSTED, errno, "'%.200s'", path);
	return st.st_mode & S_IROTH
		       ? 0
		       : aqe_err_set(e, AQE_E_UNTRUSTED, 0,
				     "'%.200s': the cache's user cannot read it", path);
}

static int add_secret(struct aqe_arena *a, struct aqe_json *o, const char *name, const char *path,
		      struct aqe_err *e)
{
	AQE_AUTO_SECRET struct aqe_buf text = AQE_BUF_INIT(NETPOL_CREDENTIAL_MAX + 1);
	int rc = path ? netpol_credential_read(path, &text, e) : 0;

	if (rc == 0 && path && !add_text(a, o, name, aqe_buf_str(&text)))
		rc = nomem(e);
	if (rc < 0)
		(void)aqe_err_wrap(e, "cache");
	return rc;
}

int shim_egress_cache_give(const struct hard_policy *p, const struct shim_egress_cache_for *who,
			   struct aqe_buf *b, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct aqe_json *o = a ? aqe_json_new_object(a) : NULL;
	struct cache_config cfg;
	bool has = false;
	int rc = o ? load(a, p, who->type, &cfg, &has, e) : nomem(e);

	if (rc == 0)
		rc = check_public(cfg.upstream.ca_file, e);
	if (rc == 0)
		rc = check_public(cfg.redis.where.at.tls ? cfg.redis_tls.ca_file : NULL, e);
	if (rc == 0 && (!add_text(a, o, "type", who->type) ||
			!add_text(a, o, "space", space_of(a, &cfg, who)) || !add_parts(a, p, o)))
		rc = nomem(e);
	if (rc == 0)
		rc = add_secret(a, o, "credential", cfg.upstream.credential_file, e);
	if (rc == 0 && cfg.backend == CACHE_REDIS)
		rc = add_secret(a, o, "password", cfg.redis.where.password_file, e);
	return rc ? rc : aqe_json_emit(o, 0, b, e);
}

/* ---- whom it becomes ---- */

/* The folder of the file is there, made if it was not: *ret_st. */
static int folder_of(const char *path, uid_t owner, struct stat *ret_st, struct aqe_err *e)
{
	char folder[512];
	const char *slash = strrchr(path, '/');
	const size_t n = slash ? (size_t)(slash - path) : 0;

	if (n == 0 || n >= sizeof(folder))
		return aqe_err_set(e, AQE_E_USAGE, 0,
				   "cache: '%.200s' is not in a folder of its own", path);
	memcpy(folder, path, n);
	folder[n] = '\0';
	if (mkdir(folder, 0700) == 0) {
		if (lchown(folder, owner, owner) < 0 || lstat(folder, ret_st) < 0)
			return aqe_err_set(e, AQE_E_SYS, errno, "cache: '%s'", folder);
		return 0;
	}
	if (errno != EEXIST || lstat(folder, ret_st) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "cache: '%s'", folder);
	if (!S_ISDIR(ret_st->st_mode))
		return aqe_err_set(e, AQE_E_UNTRUSTED, 0, "cache: '%s' is no folder", folder);
	if (ret_st->st_uid == 0)
		return aqe_err_set(
			e, AQE_E_UNTRUSTED, 0,
			"cache: '%s' belongs to root, and its bytes come from agents; name "
			"a folder that is not there yet, or one of a user of its own",
			folder);
	return 0;
}

int shim_egress_cache_id(const struct hard_policy *p, const char *type, uid_t own, uid_t *ret,
			 struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct shim_egress_ids shared;
	struct cache_config cfg;
	struct stat st;
	bool has = false;
	int rc = load(a, p, type, &cfg, &has, e);

	*ret = own;
	if (rc < 0 || cfg.backend != CACHE_SQLITE || own == 0)
		return rc;
	shim_egress_ids(cfg.sqlite_path, &shared); /* the same for all that share the file */
	rc = folder_of(cfg.sqlite_path, shared.cache, &st, e);
	if (rc == 0)
		*ret = st.st_uid;
	return rc;
}

/* ---- the companion's side ---- */

static int take_parts(struct aqe_arena *a, const struct aqe_json *list,
		      struct shim_egress_cache_given *g, struct aqe_err *e)
{
	const size_t n = list ? list->len : 0;
	struct cache_config_part *parts = aqe_arena_calloc(a, n + 1, sizeof(*parts));
	size_t at = 0;

	if (!parts)
		return nomem(e);
	for (const struct aqe_json *v = list ? list->first : NULL; v; v = v->next) {
		const struct aqe_json *user = aqe_json_get(v, "user");

		parts[at++] = (struct cache_config_part){ aqe_json_str(aqe_json_get(v, "file")),
							  aqe_json_get(v, "root"),
							  user && user->boolean };
	}
	cache_config_init(&g->cfg);
	return cache_config_load_parts(a, parts, n, g->type, &g->cfg, e);
}

int shim_egress_cache_take(struct aqe_arena *a, const struct aqe_buf *b,
			   struct shim_egress_cache_given *ret, struct aqe_err *e)
{
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	struct aqe_json *root = NULL;
	const char *space;
	int rc;

	limits.bytes = SHIM_EGRESS_CACHE_MAX;
	rc = aqe_json_parse(a, aqe_buf_str(b), b->len, &limits, &root, e);
	if (rc)
		return rc;
	ret->type = aqe_json_str(aqe_json_get(root, "type"));
	space = aqe_json_str(aqe_json_get(root, "space"));
	if (!ret->type || !space)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "no configuration of a cache");
	rc = take_parts(a, aqe_json_get(root, "parts"), ret, e);
	if (rc)
		return rc;
	ret->cfg.space = *space ? space : NULL;
	ret->cfg.upstream.credential = aqe_json_str(aqe_json_get(root, "credential"));
	ret->cfg.redis.where.password = aqe_json_str(aqe_json_get(root, "password"));
	ret->cfg.upstream.credential_file = NULL;
	ret->cfg.redis.where.password_file = NULL;
	return 0;
}
