/* SPDX-License-Identifier: MIT */
#include "hardening/policy.h"

#include <string.h>

#include "hardening/policy_file.h"
#include "shim/core/arena.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define DEFAULT_ID 1000 /* the first ordinary account of every distribution */

void hard_policy_free(struct hard_policy *p)
{
	if (p)
		aqe_arena_free(p->arena); /* p itself lives in it */
}

static void cleanup_policy(struct hard_policy *const *p)
{
	hard_policy_free(*p);
}
#define AUTO_POLICY AQE_CLEANUP(cleanup_policy)

/* A policy with nothing in it, or NULL with `e` filled. */
static struct hard_policy *new_policy(struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(HARD_POLICY_ARENA_MAX);
	struct hard_policy *p = a ? aqe_arena_alloc(a, sizeof(*p)) : NULL;

	if (!p) {
		(void)aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the policy");
		return NULL;
	}
	p->mode = HARD_MODE_ENFORCE;
	p->uid = DEFAULT_ID;
	p->gid = DEFAULT_ID;
	p->agents = HARD_AGENTS;
	p->n_agents = HARD_AGENTS_COUNT;
	p->files = "";
	p->audit.mode = HARD_AUDIT_REQUIRED;
	p->audit.sign_every = HARD_AUDIT_SIGN_EVERY;
	aqe_sha256_text("", 0, p->digest);
	p->arena = AQE_TAKE_PTR(a);
	return p;
}

int hard_policy_empty(struct hard_policy **ret, struct aqe_err *e)
{
	struct hard_policy *p = new_policy(e);

	if (!p)
		return AQE_E_NOMEM;
	*ret = p;
	return AQE_OK;
}

/* `files` and `digest`: of one file the file's own digest, of several the digest of their digests,
 * a line each. */
static int describe(struct hard_policy *p, const struct hard_policy_files *one,
		    const struct hard_policy_files *two, struct aqe_err *e)
{
	const struct hard_policy_files *const all[] = { one, two };
	AQE_AUTO_BUF struct aqe_buf names = AQE_BUF_INIT(HARD_POLICY_MAX_BYTES);
	AQE_AUTO_BUF struct aqe_buf digests = AQE_BUF_INIT(HARD_POLICY_MAX_BYTES);

	for (size_t i = 0; i < AQE_COUNT(all); i++) {
		for (size_t j = 0; j < all[i]->n; j++) {
			(void)aqe_buf_addf(&names, "%s%s", names.len ? ", " : "",
					   all[i]->file[j].path);
			(void)aqe_buf_addf(&digests, "%s\n", all[i]->file[j].digest);
		}
	}
	p->changed_s = one->changed_s > two->changed_s ? one->changed_s : two->changed_s;
	if (aqe_buf_ok(&names, e) || aqe_buf_ok(&digests, e))
		return aqe_err_wrap(e, "policy");
	p->files = aqe_arena_dup(p->arena, aqe_buf_str(&names));
	if (!p->files)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the policy");
	if (one->n + two->n == 1) /* the same text as `sha256sum` of it */
		memcpy(p->digest, one->n ? one->file[0].digest : two->file[0].digest,
		       sizeof(p->digest));
	else
		aqe_sha256_text(aqe_buf_str(&digests), digests.len, p->digest);
	return AQE_OK;
}

int hard_policy_load_file(const char *path, struct hard_policy **ret, struct aqe_err *e)
{
	AUTO_POLICY struct hard_policy *p = new_policy(e);
	struct hard_policy_files files = { 0 };
	const struct hard_policy_files none = { 0 };
	int rc;

	if (!p)
		return AQE_E_NOMEM;
	files.arena = p->arena;
	rc = hard_policy_files_one(&files, path, e);
	if (!rc)
		rc = hard_policy_decode(p, &files, e);
	if (!rc)
		rc = describe(p, &files, &none, e);
	if (!rc)
		*ret = AQE_TAKE_PTR(p);
	return rc;
}

/* One tier: its files, read and free of contradictions. `dir` NULL is a tier without files. */
static int read_tier(struct hard_policy_files *fs, const char *dir, struct aqe_err *e)
{
	int rc = dir ? hard_policy_files_dir(fs, dir, e) : AQE_OK;

	return rc ? rc : hard_policy_twice(fs, e);
}

int hard_policy_load(const char *system_dir, const char *user_dir, struct hard_policy **ret,
		     struct aqe_err *e)
{
	AUTO_POLICY struct hard_policy *p = new_policy(e);
	struct hard_policy_files sys = { 0 }, user = { 0 };
	int rc;

	if (!p)
		return AQE_E_NOMEM;
	sys.arena = user.arena = p->arena;
	rc = read_tier(&sys, system_dir, e);
	if (!rc)
		rc = read_tier(&user, user_dir, e);
	if (rc)
		return rc;
	if (!sys.n && !user.n)
		return aqe_err_set(e, AQE_E_ABSENT, 0,
				   "no policy: there is no '%s/policy.json'%s%s%s",
				   system_dir ? system_dir : HARD_POLICY_DIR,
				   user_dir ? " and no '" : "", user_dir ? user_dir : "",
				   user_dir ? "/policy.json'" : "");
	rc = hard_policy_decode(p, sys.n ? &sys : &user, e);
	if (!rc && !sys.n)
		p->audit.user_path = AQE_TAKE_PTR(p->audit.path);
	if (!rc && sys.n && user.n)
		rc = hard_policy_tighten(p, &user, e);
	if (!rc)
		rc = describe(p, &sys, &user, e);
	if (!rc)
		*ret = AQE_TAKE_PTR(p);
	return rc;
}
