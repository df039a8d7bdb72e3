/* SPDX-License-Identifier: MIT */
/* What became of the policy's waivers: those that judged documents used, those that did nothing,
 * those that are over or soon will be. */
#ifndef AQE_SHIM_WAIVERS_H
#define AQE_SHIM_WAIVERS_H

#include <stdint.h>

#include "hardening/policy.h"
#include "hardening/report.h"
#include "shim/core/buf.h"

enum shim_waiver_state {
	SHIM_WAIVER_QUIET,   /* for none of the documents, or in use with time to go */
	SHIM_WAIVER_EXPIRED, /* counts as absent */
	SHIM_WAIVER_CLOCK,   /* likewise: the clock was set back */
	SHIM_WAIVER_SOON,    /* in use, ends within HARD_WAIVER_WARN_DAYS */
	SHIM_WAIVER_UNUSED,  /* the property holds without it */
};

/* Over one document, or all of a call. */
struct shim_waivers {
	const struct hard_policy *policy; /* borrowed; NULL: no policy, no waivers */
	unsigned char *seen;              /* policy->n_waivers of them, internal */
	int64_t now_s;
};
#define SHIM_WAIVERS_INIT     \
	{                     \
		NULL, NULL, 0 \
	}

AQE_MUST_CHECK int shim_waivers_init(struct shim_waivers *w, const struct hard_policy *policy,
				     int64_t now_s, struct aqe_err *e);
void shim_waivers_done(struct shim_waivers *w);
/* Takes note of what one document's judgement did with the waivers. */
void shim_waivers_add(struct shim_waivers *w, const struct hard_report *r);
/* What is to be said about policy->waivers[i]. */
enum shim_waiver_state shim_waivers_state(const struct shim_waivers *w, size_t i);
/* Stable names: "waiver_expired", "waiver_clock", "waiver_soon", "waiver_unused"; "" for QUIET. */
const char *shim_waiver_name(enum shim_waiver_state state);
/* The warning as one line without its end; foreign words escaped. */
void shim_waiver_text(const struct hard_waiver *w, enum shim_waiver_state state, struct aqe_buf *b);

#endif
