/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "shim/runtime.h"
#include "shim/runtime_judge.h"

/* R10: our own serialisation into a directory only we can write, read back through the descriptor
 * and judged once more, so that the bytes the runtime opens are the bytes that were judged. */
static int write_document(struct shim_rt *rt, struct shim_judged *j, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)2 << 20);
	int rc = shim_pin_attach(rt, j, j->out, e);

	if (rc == 0)
		rc = oci_doc_emit(OCI_DOC_CONFIG, j->out, &b, e);
	if (rc == 0)
		rc = aqe_fs_write_file(rt->dir.fd, SHIM_RECORD_CONFIG, 0600, b.p, b.len, e);
	if (rc == 0)
		rc = shim_rt_spec(rt, &j->out, e);
	if (rc == 0)
		rc = shim_pin_unmap(rt, j, j->out, e);
	if (rc < 0)
		return aqe_err_wrap(e, "private bundle");
	hard_report_init(&j->report, rt->arena);
	rc = hard_verify(&j->ctx, j->out, &j->report, e);
	shim_judge_waived(j);
	return rc;
}

/* The low-level runtime must be usable before anything is left on disk. */
static int open_low(struct shim_rt *rt, const struct hard_policy *policy, struct aqe_err *e)
{
	if (!policy->runtime_path)
		return aqe_err_set(e, AQE_E_REFUSED, 0,
				   "the policy (%s) names no low-level runtime: add \"runtime\": "
				   "{\"path\": \"/usr/bin/crun\"}",
				   policy->files ? policy->files : HARD_POLICY_DIR);
	return shim_low_open(policy->runtime_path, policy->runtime_digest, &rt->low, e);
}

static int open_place(struct shim_rt *rt, struct aqe_err *e)
{
	rt->name = shim_record_name(rt->arena, rt->av.id, shim_argv_global(&rt->av, "root"));
	if (!rt->name)
		return aqe_err_set(e, AQE_E_USAGE, 0, "bad container id '%.80s'", rt->av.id);
	return shim_state_open(rt->arena, rt->envp, true, &rt->state, e);
}

/* Everything that writes. 0, or a code; the report of `j` tells whether it was
 * a refusal. */
static int commit(struct shim_rt *rt, struct shim_judged *j, struct shim_record *rec,
		  struct aqe_err *e)
{
	int rc = shim_claim(rt, e);

	if (rc == 0)
		rc = write_document(rt, j, e);
	if (rc < 0 || !hard_report_ok(&j->report))
		return rc;
	rc = shim_audit_created(rt, j, e);
	if (rc == 0)
		rc = shim_judge_record(rt, j, rec, e);
	return rc < 0 ? rc : shim_record_save(rt->arena, &rt->dir, rec, e);
}

/* A refused container leaves nothing; the directory is ours only when the claim succeeded. */
static void take_back(struct shim_rt *rt)
{
	struct aqe_err ignored = AQE_ERR_INIT;

	if (rt->dir.fd >= 0)
		(void)!shim_dir_remove(&rt->state, rt->name, &ignored);
}

/* observe: a record so that later verbs pass too. Whatever fails, the container starts. */
static void observe(struct shim_rt *rt, struct hard_policy *policy)
{
	struct shim_judged j;
	struct shim_record rec;
	struct aqe_err e = AQE_ERR_INIT, ignored = AQE_ERR_INIT;
	int rc = open_place(rt, &e);

	if (rc < 0)
		return;
	(void)!shim_audit_loaded(rt, policy, &ignored);
	rc = shim_judge(rt, policy, &j, &e);
	shim_pin_done(&j);
	shim_audit_judged(rt, &j);
	shim_audit_observed(rt, &j, rc < 0 ? &e : NULL);
	if (!j.in || !policy->runtime_path)
		return;
	if (shim_claim(rt, &ignored) == 0 && shim_judge_record(rt, &j, &rec, &ignored) == 0)
		(void)!shim_record_save(rt->arena, &rt->dir, &rec, &ignored);
}

/* Judges and commits; refusals are written here. */
static int prepare(struct shim_rt *rt, struct hard_policy *policy, struct shim_record *rec,
		   struct aqe_json **ret_spec)
{
	struct shim_judged j = { .policy = policy };
	struct aqe_err e = AQE_ERR_INIT;
	int rc = open_low(rt, policy, &e);

	if (rc == 0)
		rc = open_place(rt, &e);
	if (rc == 0)
		rc = shim_audit_loaded(rt, policy, &e);
	if (rc == 0)
		rc = shim_judge(rt, policy, &j, &e);
	shim_audit_judged(rt, &j);
	if (rc == 0 && j.out)
		rc = shim_restart_enter(rt, j.image.engine, &e);
	if (rc == 0 && j.out)
		rc = commit(rt, &j, rec, &e);
	shim_pin_done(&j);
	if (rc == 0 && j.out && hard_report_ok(&j.report)) {
		*ret_spec = j.out;
		return SHIM_EXIT_OK;
	}
	if (rc < 0)
		(void)shim_rt_refuse(rt, &e); /* the status below is the same */
	else
		(void)shim_judge_refuse(rt, &j); /* likewise */
	take_back(rt);
	return SHIM_EXIT_FAILED;
}

int shim_prepare(struct shim_rt *rt, struct shim_record *rec, struct aqe_json **ret_spec,
		 struct hard_policy **ret_policy)
{
	struct aqe_err e = AQE_ERR_INIT;

	if (shim_rt_policy(rt, ret_policy, &e) < 0)
		return shim_rt_refuse(rt, &e);
	shim_audit_policy(rt, *ret_policy);
	if ((*ret_policy)->mode != HARD_MODE_OBSERVE)
		return prepare(rt, *ret_policy, rec, ret_spec);
	observe(rt, *ret_policy);
	return SHIM_PREPARED_OBSERVE;
}

char **shim_prepare_words(struct shim_rt *rt, const struct shim_record *rec)
{
	struct shim_argv av = rt->av;
	const char *extra[3] = { aqe_arena_fmt(rt->arena, "--bundle=%s", rt->dir.path), NULL,
				 NULL };

	if (!extra[0])
		return NULL;
	if (!shim_argv_option(&rt->av, "pid-file")) {
		extra[1] = aqe_arena_fmt(rt->arena, "--pid-file=%s", rec->pid_file);
		if (!extra[1])
			return NULL;
	}
	av.verb = SHIM_VERB_CREATE; /* also for `run` */
	return shim_argv_canonical(rt->arena, &av, rt->low.path, extra);
}

/* Becomes the low-level `create`. */
static int create(struct shim_rt *rt, const struct shim_record *rec)
{
	struct aqe_err e = AQE_ERR_INIT;
	char **argv = shim_prepare_words(rt, rec);
	int rc;

	if (!argv)
		rc = aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory for the command line");
	else
		rc = shim_streams_protect(rt, &e);
	if (rc == 0)
		(void)!shim_low_exec(&rt->low, argv, rt->clean, &e); /* returns only on failure */
	(void)shim_rt_refuse(rt, &e); /* the status below is the same */
	take_back(rt);
	return SHIM_EXIT_FAILED;
}

int shim_verb_create(struct shim_rt *rt)
{
	struct shim_record rec = { 0 };
	struct aqe_json *spec = NULL;
	struct hard_policy *policy = NULL;
	int rc = shim_prepare(rt, &rec, &spec, &policy);

	if (rc == SHIM_PREPARED_OBSERVE)
		rc = shim_observe_pass(rt);
	else if (rc == SHIM_EXIT_OK)
		rc = create(rt, &rec);
	hard_policy_free(policy);
	return rc;
}
