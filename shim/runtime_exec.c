/* SPDX-License-Identifier: MIT */
/* `exec`: a second process in a container undoes the hardening unless its own document is held to
 * the same rules (engines.md finding 1). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "shim/runtime.h"

#define EXEC_PREFIX "exec-"

/* Options that describe the process; engines give a document instead. */
static const char *const inline_options[] = { "cwd", "env",          "user",     "additional-gids",
					      "cap", "no-new-privs", "apparmor", "process-label",
					      NULL };

static const char *const cap_sets[] = { "bounding", "effective", "inheritable", "permitted",
					"ambient" };

static int nomem(struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the process document");
}

static int read_process(struct shim_rt *rt, const char *path, struct aqe_json **ret,
			struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OCI_DOC_LIMITS.bytes);
	int rc;

	for (size_t i = 0; inline_options[i]; i++) {
		if (shim_argv_option(&rt->av, inline_options[i]))
			return aqe_err_set(e, AQE_E_USAGE, 0,
					   "option '--%s' cannot be used with '--process'",
					   inline_options[i]);
	}
	if (rt->av.n_rest)
		return aqe_err_set(e, AQE_E_USAGE, 0, "surplus word after the container id");
	rc = shim_rt_read_foreign(path, &b, e);
	if (rc == 0)
		rc = oci_doc_parse(rt->arena, OCI_DOC_PROCESS, aqe_buf_str(&b), b.len, ret, e);
	return rc < 0 ? aqe_err_wrap(e, "process document") : 0;
}

/* "UID[:GID]" as numbers: both runtimes take nothing else. */
static int set_user(struct shim_rt *rt, struct aqe_json *process, const char *text,
		    struct aqe_err *e)
{
	struct aqe_json *user = aqe_json_ensure_object(rt->arena, process, "user");
	const char *colon = strchr(text, ':');
	char *uid_text =
		aqe_arena_ndup(rt->arena, text, colon ? (size_t)(colon - text) : strlen(text));
	uint64_t uid = 0, gid = 0;

	if (!user || !uid_text)
		return nomem(e);
	if (!aqe_parse_u64(uid_text, UINT32_MAX, &uid) ||
	    (colon && !aqe_parse_u64(colon + 1, UINT32_MAX, &gid)))
		return aqe_err_set(e, AQE_E_USAGE, 0, "bad value of '--user': want UID[:GID]");
	if (aqe_json_set(rt->arena, user, "uid", aqe_json_new_u64(rt->arena, uid)) < 0 ||
	    (colon && aqe_json_set(rt->arena, user, "gid", aqe_json_new_u64(rt->arena, gid)) < 0))
		return nomem(e);
	return 0;
}

static int add_gid(struct shim_rt *rt, struct aqe_json *process, const char *text,
		   struct aqe_err *e)
{
	struct aqe_json *user = aqe_json_ensure_object(rt->arena, process, "user");
	struct aqe_json *list = aqe_json_get(user, "additionalGids");
	uint64_t gid = 0;

	if (!aqe_parse_u64(text, UINT32_MAX, &gid))
		return aqe_err_set(e, AQE_E_USAGE, 0, "bad value of '--additional-gids'");
	if (user && !list) {
		list = aqe_json_new_array(rt->arena);
		if (aqe_json_set(rt->arena, user, "additionalGids", list) < 0)
			return nomem(e);
	}
	return list && aqe_json_append(list, aqe_json_new_u64(rt->arena, gid)) == 0 ? 0 : nomem(e);
}

static int add_cap(struct shim_rt *rt, struct aqe_json *process, const char *cap, struct aqe_err *e)
{
	struct aqe_json *caps = aqe_json_ensure_object(rt->arena, process, "capabilities");

	for (size_t i = 0; i < AQE_COUNT(cap_sets); i++) {
		struct aqe_json *set = aqe_json_get(caps, cap_sets[i]);

		if (caps && !set) {
			set = aqe_json_new_array(rt->arena);
			if (aqe_json_set(rt->arena, caps, cap_sets[i], set) < 0)
				return nomem(e);
		}
		if (!set || aqe_json_append(set, aqe_json_new_str(rt->arena, cap)) < 0)
			return nomem(e);
	}
	return 0;
}

static int add_env(struct shim_rt *rt, struct aqe_json *process, const char *entry,
		   struct aqe_err *e)
{
	struct aqe_json *env = aqe_json_get(process, "env");

	if (!env) {
		env = aqe_json_new_array(rt->arena);
		if (aqe_json_set(rt->arena, process, "env", env) < 0)
			return nomem(e);
	}
	return aqe_json_append(env, aqe_json_new_str(rt->arena, entry)) == 0 ? 0 : nomem(e);
}

static int set_str(struct shim_rt *rt, struct aqe_json *process, const char *name,
		   const char *value, struct aqe_err *e)
{
	return aqe_json_set(rt->arena, process, name, aqe_json_new_str(rt->arena, value)) == 0
		       ? 0
		       : nomem(e);
}

static int apply(struct shim_rt *rt, struct aqe_json *process, const struct shim_optval *o,
		 struct aqe_err *e)
{
	const char *name = o->opt->name;

	if (strcmp(name, "user") == 0)
		return set_user(rt, process, o->value, e);
	if (strcmp(name, "additional-gids") == 0)
		return add_gid(rt, process, o->value, e);
	if (strcmp(name, "cap") == 0)
		return add_cap(rt, process, o->value, e);
	if (strcmp(name, "env") == 0)
		return add_env(rt, process, o->value, e);
	if (strcmp(name, "cwd") == 0)
		return set_str(rt, process, "cwd", o->value, e);
	if (strcmp(name, "apparmor") == 0)
		return set_str(rt, process, "apparmorProfile", o->value, e);
	if (strcmp(name, "process-label") == 0)
		return set_str(rt, process, "selinuxLabel", o->value, e);
	return 0; /* no-new-privs is always set; the rest are not the process's */
}

/* From the options, on the container's own process: what runc does without a document. */
static int build_process(struct shim_rt *rt, const struct aqe_json *spec, struct aqe_json **ret,
			 struct aqe_err *e)
{
	struct aqe_json *process = aqe_json_copy(rt->arena, aqe_json_get(spec, "process"));
	struct aqe_json *args =
		aqe_json_new_strs(rt->arena, (const char *const *)rt->av.rest, rt->av.n_rest);

	if (!rt->av.n_rest)
		return aqe_err_set(e, AQE_E_USAGE, 0, "missing command after '%.80s'; usage: %s %s",
				   rt->av.id, SHIM_VERBS[SHIM_VERB_EXEC].name,
				   SHIM_VERBS[SHIM_VERB_EXEC].synopsis);
	if (!process || aqe_json_set(rt->arena, process, "args", args) < 0)
		return nomem(e);
	aqe_json_remove(process, "terminal");
	aqe_json_remove(process, "consoleSize");
	for (size_t i = 0; i < rt->av.n_option; i++) {
		int rc = apply(rt, process, &rt->av.option[i], e);

		if (rc < 0)
			return rc;
	}
	*ret = process;
	return oci_doc_check(OCI_DOC_PROCESS, process, e);
}

static int get_process(struct shim_rt *rt, const struct aqe_json *spec, struct aqe_json **ret,
		       struct aqe_err *e)
{
	const char *path = shim_argv_option(&rt->av, "process");
	int rc = path ? read_process(rt, path, ret, e) : build_process(rt, spec, ret, e);

	if (rc < 0 || !shim_argv_option(&rt->av, "tty"))
		return rc;
	return aqe_json_set(rt->arena, *ret, "terminal", aqe_json_new_bool(rt->arena, true)) == 0
		       ? 0
		       : nomem(e);
}

/* A process document on its way. */
struct exec {
	const struct shim_record *rec;
	struct aqe_json *in, *out; /* as asked for; as it will run */
	struct hard_report report;
};

/* Writes the document where only we can change it and becomes the low-level `exec`. The file stays
 * until its reader is gone: our pid is the runtime's. */
static int exec_low(struct shim_rt *rt, const struct exec *x, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)2 << 20);
	const char *extra[2] = { NULL, NULL };
	char name[32];
	char **argv;
	int rc = oci_doc_emit(OCI_DOC_PROCESS, x->out, &b, e);

	(void)snprintf(name, sizeof(name), EXEC_PREFIX "%d.json", (int)getpid());
	if (rc == 0)
		rc = aqe_fs_write_file(rt->dir.fd, name, 0600, b.p, b.len, e);
	if (rc == 0)
		rc = shim_low_open(x->rec->runtime, x->rec->runtime_digest, &rt->low, e);
	if (rc < 0)
		return rc;
	extra[0] = aqe_arena_fmt(rt->arena, "--process=%s/%s", rt->dir.path, name);
	argv = extra[0] ? shim_argv_canonical(rt->arena, &rt->av, rt->low.path, extra) : NULL;
	if (!argv)
		return nomem(e);
	rc = shim_streams_protect(rt, e);
	if (rc == 0)
		rc = shim_audit_exec(rt, x->in, x->out, &x->report, e);
	if (rc == 0)
		rc = shim_low_exec(&rt->low, argv, rt->clean, e);
	(void)unlinkat(rt->dir.fd, name, 0); /* nobody will read it */
	return rc;
}

static int checked_exec(struct shim_rt *rt, const struct shim_record *rec, struct hard_ctx *ctx,
			struct hard_policy **policy)
{
	struct exec x = { .rec = rec };
	struct aqe_json *spec = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	int rc = shim_rt_spec(rt, &spec, &e);

	hard_report_init(&x.report, rt->arena);
	if (rc == 0)
		rc = get_process(rt, spec, &x.in, &e);
	if (rc == 0)
		rc = shim_rt_context(rt, rec, ctx, policy, &e);
	if (rc == 0)
		rc = hard_exec_rewrite(ctx, rt->arena, spec, x.in, &x.report, &x.out, &e);
	if (rc == 0 && !x.out)
		return shim_rt_refuse_report(rt, &x.report);
	shim_dir_sweep(&rt->dir, EXEC_PREFIX);
	if (rc == 0)
		rc = exec_low(rt, &x, &e);
	(void)rc; /* exec_low() returns only on failure */
	return shim_rt_refuse(rt, &e);
}

int shim_verb_exec(struct shim_rt *rt)
{
	struct shim_record rec = { 0 };
	struct hard_ctx ctx;
	struct hard_policy *policy = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	int rc = shim_rt_record(rt, &rec, &e);

	if (rc < 0)
		return shim_rt_without_record(rt, &e);
	if (rec.mode == HARD_MODE_OBSERVE) {
		shim_audit_observed(rt, NULL, NULL);
		return shim_observe_pass(rt);
	}
	rc = checked_exec(rt, &rec, &ctx, &policy);
	hard_policy_free(policy);
	return rc;
}
