/* SPDX-License-Identifier: MIT */
/* The runtime's decisions as rows of the audit log. A row is stored before what it records takes
 * effect; when it cannot be, the decision is a refusal (policy: audit.mode). */
#ifndef AQE_SHIM_AUDIT_H
#define AQE_SHIM_AUDIT_H

#include <stdbool.h>
#include <stddef.h>

#include "audit/row.h"
#include "hardening/report.h"
#include "shim/record.h"

struct shim_rt;
struct shim_judged;

/* Links in the state folder: to the log that was used last, for calls that know neither policy nor
 * record; and the policy that was recorded last, with the log's inode. */
#define SHIM_AUDIT_LINK   ".audit"
#define SHIM_AUDIT_POLICY ".policy"

/* What a call knows of itself so far; part of struct shim_rt. */
struct shim_audit {
	enum hard_audit_mode mode;
	const char *dir;       /* of the log, absolute; NULL: not found yet */
	uint32_t sign_every;   /* 0: the log's own default */
	struct audit_row base; /* container, agent, image, policy and verb of every row */
	const char *start;     /* metadata of the start that `create` prepared, for the record */
	bool changed;          /* the document was changed */
	const char *reason;    /* of a refusal, where the text that the user sees has words of the
				* command line; NULL: that text */
	bool failed; /* a row could not be stored: the log is not waited for twice in one call */
};
#define SHIM_AUDIT_INIT                                                   \
	{                                                                 \
		.mode = HARD_AUDIT_REQUIRED,                              \
		.base = AUDIT_ROW_INIT(AUDIT_KIND_ANY, AUDIT_ACTION_ANY), \
	}

/* ---- learning: each adds to what is known ---- */

/* The verb and the container's id, from the words. */
void shim_audit_words(struct shim_rt *rt);
/* Which log, and how strict. */
void shim_audit_policy(struct shim_rt *rt, const struct hard_policy *policy);
void shim_audit_record(struct shim_rt *rt, const struct shim_record *rec);
/* Image and agent; `j` may have been judged in part. */
void shim_audit_judged(struct shim_rt *rt, const struct shim_judged *j);

/* ---- decisions ----
 * 0: stored, or the policy wants no record of it. A negative code: refuse, with the text of `e`. */

/* A policy is about to decide: a row when it is not the one recorded last. */
AQE_MUST_CHECK int shim_audit_loaded(struct shim_rt *rt, const struct hard_policy *policy,
				     struct aqe_err *e);
/* `create`: finds the log for the record, looks whether a row could be stored, and prepares that of
 * the start. It is stored by `start`: no process of the container's runs before. */
AQE_MUST_CHECK int shim_audit_created(struct shim_rt *rt, const struct shim_judged *j,
				      struct aqe_err *e);
/* `start`: a row for each waiver in use, by the document or by the kernel's answer (`waived`), and
 * the start. */
AQE_MUST_CHECK int shim_audit_started(struct shim_rt *rt, const struct shim_record *rec,
				      const struct hard_waiver *const *waived, struct aqe_err *e);
/* `before` is the process as asked for, `after` as it will run. */
AQE_MUST_CHECK int shim_audit_exec(struct shim_rt *rt, const struct aqe_json *before,
				   const struct aqe_json *after, const struct hard_report *report,
				   struct aqe_err *e);
AQE_MUST_CHECK int shim_audit_update(struct shim_rt *rt, const struct aqe_json *before,
				     const struct aqe_json *after, const struct hard_report *report,
				     struct aqe_err *e);

/* ---- what cannot be refused ---- */

/* A refusal of a verb that decides; others leave no row. `report` may be NULL. When it cannot be
 * stored, a line that says so is added to the text of the refusal. */
void shim_audit_refused(struct shim_rt *rt, const struct hard_report *report, struct aqe_buf *text);
/* The container is gone; `status` is its exit status, AUDIT_NONE when unknown. Best effort. */
void shim_audit_stopped(struct shim_rt *rt, const struct shim_record *rec, int64_t status);
/* Mode observe: what the call would have met. `j` NULL: a verb that judges nothing. Best effort. */
void shim_audit_observed(struct shim_rt *rt, const struct shim_judged *j,
			 const struct aqe_err *fault);

#endif
