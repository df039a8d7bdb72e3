/* SPDX-License-Identifier: MIT */
#include "shim/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/cache_policy.h"
#include "shim/core/cleanup.h"
#include "shim/core/clock.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/env.h"
#include "shim/exit.h"
#include "shim/heap.h"
#include "shim/net_policy.h"
#include "shim/version.h"

/* All trees of one call: two documents of 1 MiB, their rewrites, the policy, the image's records.
 */
#define CALL_ARENA_MAX ((size_t)256 << 20)

int shim_rt_refuse(struct shim_rt *rt, const struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);

	aqe_buf_addf(&b, "refused: %s", e->text[0] ? e->text : aqe_code_name(e->code));
	if (e->code == AQE_E_USAGE) /* its text names the word that is wrong */
		rt->audit.reason = "refused: wrong command line";
	shim_audit_refused(rt, NULL, &b);
	shim_refuse(&rt->log, aqe_buf_str(&b));
	return SHIM_EXIT_FAILED;
}

int shim_rt_refuse_report(struct shim_rt *rt, const struct hard_report *report)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);

	hard_report_refusal(report, &b);
	if (!b.len)
		aqe_buf_puts(&b, "refused: the document could not be judged");
	shim_audit_refused(rt, report, &b);
	shim_refuse(&rt->log, aqe_buf_str(&b));
	return SHIM_EXIT_FAILED;
}

int shim_rt_policy(struct shim_rt *rt, struct hard_policy **ret, struct aqe_err *e)
{
	struct hard_policy *p = NULL;
	const char *user = NULL;
	int rc;

	if (geteuid() != 0 || shim_state_in_userns())
		user = shim_env_policy_dir(rt->arena, rt->envp);
	rc = hard_policy_load(HARD_POLICY_DIR, user, &p, e);
	if (rc == 0)
		rc = shim_net_policy_check(p, e);
	if (rc == 0)
		rc = shim_cache_policy_check(p, e);
	if (rc < 0) {
		hard_policy_free(p);
		return aqe_err_wrap(e, "policy");
	}
	*ret = p;
	return 0;
}

static int no_record(const struct shim_rt *rt, struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_ABSENT, 0,
			   "container '%s' has no record: it was not created through aqe-shim, or "
			   "the state folder was lost; delete it and create it again",
			   rt->av.id);
}

int shim_rt_record(struct shim_rt *rt, struct shim_record *ret, struct aqe_err *e)
{
	int rc;

	rt->name = shim_record_name(rt->arena, rt->av.id, shim_argv_global(&rt->av, "root"));
	if (!rt->name)
		return aqe_err_set(e, AQE_E_USAGE, 0, "bad container id '%.80s'", rt->av.id);
	rc = shim_state_open(rt->arena, rt->envp, false, &rt->state, e);
	if (rc == 0)
		rc = shim_dir_open(rt->arena, &rt->state, rt->name, SHIM_DIR_READ, &rt->dir, e);
	if (rc == AQE_E_ABSENT)
		return no_record(rt, e);
	if (rc == 0)
		rc = shim_record_load(rt->arena, &rt->dir, ret, e);
	if (rc == 0)
		shim_audit_record(rt, ret);
	return rc;
}

bool shim_rt_observing(struct shim_rt *rt)
{
	struct hard_policy *policy = NULL;
	struct aqe_err ignored = AQE_ERR_INIT;
	bool observing = false;

	if (shim_rt_policy(rt, &policy, &ignored) == 0 && policy)
		observing = policy->mode == HARD_MODE_OBSERVE;
	hard_policy_free(policy);
	return observing;
}

int shim_rt_without_record(struct shim_rt *rt, const struct aqe_err *fault)
{
	return shim_rt_observing(rt) ? shim_observe_pass(rt) : shim_rt_refuse(rt, fault);
}

int shim_rt_spec(struct shim_rt *rt, struct aqe_json **ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)2 << 20);
	int rc = aqe_fs_read_beneath(rt->dir.fd, SHIM_RECORD_CONFIG, AQE_FS_TRUSTED, &b, e);

	if (rc == 0)
		rc = oci_doc_parse(rt->arena, OCI_DOC_CONFIG, aqe_buf_str(&b), b.len, ret, e);
	return rc < 0 ? aqe_err_wrap(e, "recorded config.json") : 0;
}

/* The image as the record knows it. */
static struct oci_identity *recorded_image(struct shim_rt *rt, const struct shim_record *r)
{
	struct oci_identity *image = aqe_arena_alloc(rt->arena, sizeof(*image));

	if (!image)
		return NULL;
	image->engine = r->engine;
	image->known = r->image_id != NULL;
	(void)snprintf(image->image_id, sizeof(image->image_id), "%s",
		       r->image_id ? r->image_id : "");
	image->digests = r->digests;
	image->n_digests = r->n_digests;
	image->name = r->image_name;
	return image;
}

int shim_rt_context(struct shim_rt *rt, const struct shim_record *r, struct hard_ctx *ret,
		    struct hard_policy **ret_policy, struct aqe_err *e)
{
	struct hard_host *host = aqe_arena_raw(rt->arena, sizeof(*host));
	struct oci_identity *image = recorded_image(rt, r);
	struct hard_policy *policy = NULL;
	int rc;

	if (!host || !image)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the record");
	rc = hard_host_read(host, e);
	if (rc == 0)
		rc = hard_policy_empty(&policy, e);
	if (rc < 0 || !policy)
		return rc < 0 ? rc : AQE_E_INTERNAL;
	policy->mode = r->mode;
	policy->uid = r->uid;
	policy->gid = r->gid;
	policy->changed_s = r->created_s;
	policy->waivers = r->waivers;
	policy->n_waivers = r->n_waivers;
	*ret = (struct hard_ctx){
		.policy = policy,
		.agent = &r->agent,
		.image = image,
		.container_id = r->id,
		.bundle = r->bundle,
		.host = host,
		.egress = r->egress,
		.now_s = AQE_CLOCK_SYSTEM.now_s(AQE_CLOCK_SYSTEM.self),
	};
	*ret_policy = policy;
	return 0;
}

int shim_rt_read_foreign(const char *path, struct aqe_buf *b, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	int rc;

	if (aqe_str_eq(path, "-")) {
		rc = aqe_fs_read_fd(STDIN_FILENO, b, e);
		return rc < 0 ? aqe_err_wrap(e, "standard input") : 0;
	}
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open '%s'", path);
	rc = aqe_fs_check(fd, AQE_FS_TRUSTED, b->max, path, NULL, e);
	return rc < 0 ? rc : aqe_fs_read_fd(fd, b, e);
}

/* ---- verbs that are passed on ---- */

/* Returns only on failure. */
static int become_low(struct shim_rt *rt, struct aqe_err *e)
{
	char **argv = shim_argv_original(rt->arena, &rt->av, rt->low.path);

	if (!argv)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the command line");
	return shim_low_exec(&rt->low, argv, rt->clean, e);
}

static int pass(struct shim_rt *rt)
{
	struct aqe_err e = AQE_ERR_INIT;

	if (shim_low_any(rt, &e) == 0)
		(void)!become_low(rt, &e);
	return shim_rt_refuse(rt, &e);
}

static int pass_kill(struct shim_rt *rt)
{
	struct aqe_err e = AQE_ERR_INIT;

	if (shim_low_any(rt, &e) == 0) { /* which also finds the record */
		shim_restart_killed(rt, rt->av.n_rest > 0 ? rt->av.rest[0] : NULL);
		(void)!become_low(rt, &e);
	}
	return shim_rt_refuse(rt, &e);
}

static int pass_help(struct shim_rt *rt)
{
	struct aqe_err e = AQE_ERR_INIT;
	const char *words[4] = { NULL, SHIM_VERBS[rt->av.verb].name, "--help", NULL };

	if (shim_low_any(rt, &e) == 0) {
		words[0] = rt->low.path;
		(void)!shim_low_exec(&rt->low, (char *const *)(const void *)words, rt->clean, &e);
	}
	return shim_rt_refuse(rt, &e);
}

/* Docker takes name and version from the lines with the word "version", so ours has none. */
static int version(struct shim_rt *rt)
{
	struct aqe_err e = AQE_ERR_INIT;
	const char *words[3] = { NULL, "--version", NULL };
	int rc = SHIM_EXIT_OK;

	if (shim_low_any(rt, &e) == 0) {
		words[0] = rt->low.path;
		rc = shim_low_run(&rt->low, (char *const *)(const void *)words, rt->clean, NULL,
				  &e);
	}
	if (puts("aqe-shim " SHIM_VERSION) < 0 || fflush(stdout) != 0 || rc < 0)
		return SHIM_EXIT_FAILED;
	return rc;
}

/* A restored process image holds whatever it was given when it was dumped: credentials, filters
 * and namespaces that no rule here has seen (R33). */
static int refuse_criu(struct shim_rt *rt)
{
	struct aqe_err e = AQE_ERR_INIT, ignored = AQE_ERR_INIT;
	struct shim_record rec;

	(void)!shim_rt_record(rt, &rec, &ignored); /* for the audit row */
	aqe_err_set(&e, AQE_E_REFUSED, 0,
		    "'%s' is not supported: a process image from a file cannot be held to the "
		    "profile; delete the container and create it again",
		    SHIM_VERBS[rt->av.verb].name);
	return shim_rt_refuse(rt, &e);
}

static int help(struct shim_rt *rt)
{
	(void)rt;
	return SHIM_EXIT_OK; /* printed by main */
}

static const struct {
	int (*fn)(struct shim_rt *rt);
	bool judges; /* reads and checks documents */
} verbs[SHIM_VERB_COUNT] = {
	[SHIM_VERB_HELP] = { help, false },
	[SHIM_VERB_VERSION] = { version, false },
	[SHIM_VERB_CREATE] = { shim_verb_create, true },
	[SHIM_VERB_START] = { shim_verb_start, true },
	[SHIM_VERB_RUN] = { shim_verb_run, true },
	[SHIM_VERB_EXEC] = { shim_verb_exec, true },
	[SHIM_VERB_UPDATE] = { shim_verb_update, true },
	[SHIM_VERB_RESTORE] = { refuse_criu, false },
	[SHIM_VERB_CHECKPOINT] = { refuse_criu, false },
	[SHIM_VERB_KILL] = { pass_kill, false },
	[SHIM_VERB_DELETE] = { shim_verb_delete, false },
	[SHIM_VERB_STATE] = { pass, false },
	[SHIM_VERB_LIST] = { pass, false },
	[SHIM_VERB_PS] = { pass, false },
	[SHIM_VERB_PAUSE] = { pass, false },
	[SHIM_VERB_RESUME] = { pass, false },
	[SHIM_VERB_EVENTS] = { pass, false },
	[SHIM_VERB_SPEC] = { pass, false },
	[SHIM_VERB_FEATURES] = { pass, false },
};

static void set_log(struct shim_rt *rt, const char *path, const char *format)
{
	rt->log.path = path;
	rt->log.text = aqe_str_eq(format, "text");
}

static int run(struct shim_rt *rt, int argc, char **argv)
{
	struct aqe_err e = AQE_ERR_INIT;
	const char *path = NULL, *format = NULL;

	shim_argv_find_log(argc, argv, &path, &format);
	set_log(rt, path, format);
	if (shim_argv_parse(rt->arena, argc, argv, &rt->av, &e) < 0) {
		shim_audit_words(rt);
		return shim_rt_refuse(rt, &e);
	}
	shim_audit_words(rt);
	set_log(rt, shim_argv_global(&rt->av, "log"), shim_argv_global(&rt->av, "log-format"));
	rt->clean = shim_env_filter(rt->arena, rt->envp);
	if (!rt->clean) {
		aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory for the environment");
		return shim_rt_refuse(rt, &e);
	}
	if (rt->av.help)
		return pass_help(rt);
	if (verbs[rt->av.verb].judges)
		shim_heap_large();
	return verbs[rt->av.verb].fn(rt);
}

int shim_runtime_main(int argc, char **argv, char **envp)
{
	AQE_AUTO_ARENA struct aqe_arena *arena = aqe_arena_new(CALL_ARENA_MAX);
	struct shim_rt rt = { .arena = arena,
			      .envp = envp,
			      .state = SHIM_STATE_INIT,
			      .dir = SHIM_DIR_INIT,
			      .low = SHIM_LOW_INIT,
			      .audit = SHIM_AUDIT_INIT };
	struct aqe_err e = AQE_ERR_INIT;
	int rc;

	if (!arena) {
		aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory");
		return shim_rt_refuse(&rt, &e);
	}
	rc = run(&rt, argc, argv);
	shim_low_done(&rt.low);
	shim_dir_done(&rt.dir);
	shim_state_done(&rt.state);
	return rc;
}
