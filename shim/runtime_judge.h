/* SPDX-License-Identifier: MIT */
/* The decision of `create`, and what it holds on to: judgement and pinned mount sources. */
#ifndef AQE_SHIM_RUNTIME_JUDGE_H
#define AQE_SHIM_RUNTIME_JUDGE_H

#include <stddef.h>

#include "hardening/verify.h"
#include "oci/identity.h"
#include "shim/record.h"

struct shim_rt;

/* ---- runtime_judge.c: the decision of `create` ---- */

#define SHIM_PINS_MAX 64 /* mounts of the policy in one container */

/* A mount source of the policy, held by a mount of our own (runtime_pin.c). */
struct shim_pin {
	const char *destination, *source; /* as judged */
	const char *path;                 /* of the mount, once attached */
	int fd;
};

struct shim_judged {
	struct hard_policy *policy; /* borrowed */
	struct aqe_json *in,
		*out;       /* as the engine wrote it; as the runtime gets it, NULL when refused */
	const char *bundle; /* the engine's, canonical */
	struct oci_identity image;
	struct hard_ctx ctx;
	struct hard_report report;
	const char *agent_id; /* the agent's name for itself, or NULL */
	const struct hard_waiver *waived[HARD_PROP_COUNT]; /* what any of the judgements used */
	struct shim_pin pins[SHIM_PINS_MAX];
	size_t n_pins; /* shim_pin_done() closes them */
};
/* Reads and judges the bundle under `policy`. Refused by the profile: 0 with out NULL and the
 * report filled. */
AQE_MUST_CHECK int shim_judge(struct shim_rt *rt, struct hard_policy *policy,
			      struct shim_judged *ret, struct aqe_err *e);
/* Takes note of the waivers that j->report used. */
void shim_judge_waived(struct shim_judged *j);
/* Writes the refusal of a judgement, with the line of policy that would admit an image that nothing
 * pins; returns the exit status. */
int shim_judge_refuse(struct shim_rt *rt, const struct shim_judged *j);
/* Fills a record from a judgement. */
AQE_MUST_CHECK int shim_judge_record(struct shim_rt *rt, const struct shim_judged *j,
				     struct shim_record *ret, struct aqe_err *e);

/* ---- runtime_pin.c: mount sources that cannot be exchanged ---- */

/* Opens every bind source of `doc` once: its identity goes to j->ctx.binds, and a restricted clone
 * of the policy's mounts to j->pins. */
AQE_MUST_CHECK int shim_pin_open(struct shim_rt *rt, struct shim_judged *j, struct aqe_json *doc,
				 struct aqe_err *e);
/* Attaches the pins in the container's directory and makes them the sources in `doc`. */
AQE_MUST_CHECK int shim_pin_attach(struct shim_rt *rt, struct shim_judged *j, struct aqe_json *doc,
				   struct aqe_err *e);
/* The reverse on a document read back, for judging it: the policy's own paths. */
AQE_MUST_CHECK int shim_pin_unmap(struct shim_rt *rt, const struct shim_judged *j,
				  struct aqe_json *doc, struct aqe_err *e);
void shim_pin_done(struct shim_judged *j);
/* Lets go of the pins in a container's directory; none is fine. */
void shim_pin_release(const char *dir_path);

#endif
