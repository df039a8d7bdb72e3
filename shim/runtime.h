/* SPDX-License-Identifier: MIT */
/* aqe-shim as an OCI runtime: one call of an engine. */
#ifndef AQE_SHIM_RUNTIME_H
#define AQE_SHIM_RUNTIME_H

#include <stdbool.h>
#include <sys/types.h>

#include "hardening/policy.h"
#include "hardening/report.h"
#include "hardening/verify.h"
#include "oci/doc.h"
#include "oci/identity.h"
#include "shim/argv.h"
#include "shim/audit.h"
#include "shim/record.h"
#include "shim/refuse.h"
#include "shim/runtime_low.h"

struct shim_judged; /* runtime_judge.h */

/* One call. Everything borrowed lives in `arena` or in main(). */
struct shim_rt {
	struct aqe_arena *arena;
	struct shim_argv av;
	char **envp;  /* as inherited */
	char **clean; /* what the low-level runtime gets */
	struct shim_log log;
	struct shim_state state;
	const char *name; /* of the container's directory; NULL when the id is unusable */
	struct shim_dir dir;
	struct shim_low low;
	struct shim_audit audit;
	bool own; /* we started the container: it is ours to end */
};

/* Reads the words and does the verb. Returns the exit status; for most verbs a call that succeeds
 * does not return, because the process becomes the low-level runtime. */
int shim_runtime_main(int argc, char **argv, char **envp);

/* ---- runtime.c: what the verbs share ---- */

/* Writes the refusal and returns the exit status for it. The first takes the text of `e`. */
int shim_rt_refuse(struct shim_rt *rt, const struct aqe_err *e);
int shim_rt_refuse_report(struct shim_rt *rt, const struct hard_report *report);
/* Policy from the system's and, when rootless, the user's directory. */
AQE_MUST_CHECK int shim_rt_policy(struct shim_rt *rt, struct hard_policy **ret, struct aqe_err *e);
/* State folder and the container's directory and record, for verbs after `create`. AQE_E_ABSENT
 * when this container has none. */
AQE_MUST_CHECK int shim_rt_record(struct shim_rt *rt, struct shim_record *ret, struct aqe_err *e);
/* Without a record there is nothing to hold a container to: only `observe` lets the call go on.
 * `fault` is why there is none. */
int shim_rt_without_record(struct shim_rt *rt, const struct aqe_err *fault);
bool shim_rt_observing(struct shim_rt *rt);
/* The document that the low-level runtime was given. */
AQE_MUST_CHECK int shim_rt_spec(struct shim_rt *rt, struct aqe_json **ret, struct aqe_err *e);
/* A context for judging from the record alone, in rt->arena; its policy is the caller's to free. */
AQE_MUST_CHECK int shim_rt_context(struct shim_rt *rt, const struct shim_record *r,
				   struct hard_ctx *ret, struct hard_policy **ret_policy,
				   struct aqe_err *e);
/* Reads a small document that an engine wrote: a path (regular file of ours or root's, no link at
 * its end, writable by nobody else), or "-" for standard input. */
AQE_MUST_CHECK int shim_rt_read_foreign(const char *path, struct aqe_buf *b, struct aqe_err *e);

/* ---- runtime_claim.c: a container id, and what an earlier call left behind ---- */

/* Opens and locks a fresh directory for rt->av.id in rt->dir. Refuses when the container exists;
 * clears what a killed call left. */
AQE_MUST_CHECK int shim_claim(struct shim_rt *rt, struct aqe_err *e);
/* Kills what is in the container's own cgroup and removes it. */
void shim_claim_clear_cgroup(const char *cgroups_path, const char *id, bool kill_members);

/* ---- runtime_restart.c: containers that an engine starts over and over ---- */

/* `create`: waits as the schedule says; AQE_E_REFUSED once it holds. */
AQE_MUST_CHECK int shim_restart_enter(struct shim_rt *rt, enum oci_engine engine,
				      struct aqe_err *e);
/* `kill`: the end that follows is wanted. `signal` as given, or NULL. */
void shim_restart_killed(struct shim_rt *rt, const char *signal);
/* `delete`: the container has ended; its directory is open. */
void shim_restart_ended(struct shim_rt *rt, const struct shim_record *rec);

/* ---- runtime_null.c ---- */

/* Refuses a directory or a block device on 0, 1 and 2, and replaces /dev/null there by a node of
 * our own: crun gives what it finds there to the container's user, in the host's terms (pitfall 37;
 * also without a user namespace). */
AQE_MUST_CHECK int shim_streams_protect(const struct shim_rt *rt, struct aqe_err *e);

/* ---- the verbs: each returns an exit status ---- */
int shim_verb_create(struct shim_rt *rt);
int shim_verb_run(struct shim_rt *rt);
int shim_verb_start(struct shim_rt *rt);
int shim_verb_exec(struct shim_rt *rt);
int shim_verb_update(struct shim_rt *rt);
int shim_verb_delete(struct shim_rt *rt);

/* create and run: everything up to the low-level call. Fills rt->dir, rt->low, the document and
 * the words for `create`. 0, or the exit status of a refusal, or SHIM_PREPARED_OBSERVE: pass the
 * call on unchanged. */
#define SHIM_PREPARED_OBSERVE (-1)
int shim_prepare(struct shim_rt *rt, struct shim_record *rec, struct aqe_json **ret_spec,
		 struct hard_policy **ret_policy);
/* The words of the low-level `create` for a prepared container. */
char **shim_prepare_words(struct shim_rt *rt, const struct shim_record *rec);

/* The created process, as the record describes it. Start with proc_fd -1 and rec, spec filled. */
struct shim_effect {
	struct shim_record rec;
	struct aqe_json *spec;
	struct hard_ctx ctx;
	struct hard_policy *policy;
	pid_t pid;
	int proc_fd;
	const struct hard_waiver *waived[HARD_PROP_COUNT]; /* that the kernel's answer used */
};
AQE_MUST_CHECK int shim_effect_open(struct shim_rt *rt, struct shim_effect *fx, struct aqe_err *e);
void shim_effect_done(struct shim_effect *fx);
/* 0 when the kernel shows what the spec says. Otherwise the container has been destroyed, the
 * refusal written, and the exit status is returned; or SHIM_EFFECT_RUNNING: it already ran, and
 * nothing was done to it. */
#define SHIM_EFFECT_RUNNING (-1)
int shim_effect_created(struct shim_rt *rt, struct shim_effect *fx);
int shim_effect_started(struct shim_rt *rt, struct shim_effect *fx);
/* Destroys the container unless it already runs (then false). */
bool shim_effect_abort(struct shim_rt *rt, pid_t pid);

/* observe: becomes the low-level runtime with the words and environment as they came. */
int shim_observe_pass(struct shim_rt *rt);

#endif
