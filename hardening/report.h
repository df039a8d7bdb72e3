/* SPDX-License-Identifier: MIT */
/* Results of judging one document: a result for every property, and the findings behind them. */
#ifndef AQE_HARDENING_REPORT_H
#define AQE_HARDENING_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hardening/policy.h"
#include "hardening/props.h"
#include "shim/core/arena.h"
#include "shim/core/buf.h"
#include "shim/core/json.h"

/* A property without a result is not a pass (R11): 0 is UNKNOWN. */
enum hard_result {
	HARD_UNKNOWN = 0, /* could not be decided: counts as a failure */
	HARD_FAIL,
	HARD_WAIVED, /* would fail, but the policy has a waiver in force */
	HARD_PASS,
};

struct hard_finding {
	enum hard_prop prop;
	bool unknown;        /* not decidable, rather than wrong */
	const char *pointer; /* JSON pointer, "" = whole document; for kernel findings the file,
				"/proc/PID/status" */
	uint32_t line, col;  /* 0 when not from a file */
	const char *found, *wanted, *fix; /* fix NULL: the property's own */
	const struct hard_finding *next;
};

struct hard_report {
	struct aqe_arena *arena; /* borrowed; holds the findings */
	enum hard_result result[HARD_PROP_COUNT];
	const struct hard_waiver *waiver[HARD_PROP_COUNT]; /* for WAIVED */
	/* Whose waivers were asked for, by hard_report_waive(). */
	bool waivers_asked;
	const char *waivers_type;
	const struct hard_image *waivers_image;
	struct hard_finding *first, *last;
	size_t n_findings;
	bool undecided[HARD_PROP_COUNT]; /* an UNKNOWN was reported: a later pass does not lift it
					  */
	/* Why a pass rests on what the engine declared and not on a proof, or NULL. Constant text.
	 */
	const char *declared[HARD_PROP_COUNT];
	bool nomem; /* a finding could not be stored: the report counts as failed */
};

/* All results UNKNOWN, no findings. */
void hard_report_init(struct hard_report *r, struct aqe_arena *arena);
/* Adds a finding and makes the property FAIL (or keeps UNKNOWN). `at` may be NULL: then `pointer`
 * is used; otherwise pointer, line and column are taken from it (pointer may name a missing member,
 * relative to at, as in "/umask", or be NULL). At most 256 findings are kept. */
void hard_report_fail(struct hard_report *r, enum hard_prop prop, const struct aqe_json *at,
		      const char *pointer, const char *wanted, const char *found_fmt, ...)
	AQE_PRINTF(6, 7);
/* The same for "cannot be decided". */
void hard_report_unknown(struct hard_report *r, enum hard_prop prop, const char *pointer,
			 const char *wanted, const char *found_fmt, ...) AQE_PRINTF(5, 6);
/* Gives the finding that was stored last a fix text of its own; the text is copied. (A finding over
 * the maximum is not stored: compare n_findings.) */
void hard_report_fix(struct hard_report *r, const char *fix);
/* Marks as passed, unless it already failed. */
void hard_report_pass(struct hard_report *r, enum hard_prop prop);
/* Turns FAIL and UNKNOWN of waivable properties into WAIVED where the policy has a waiver in force.
 */
void hard_report_waive(struct hard_report *r, const struct hard_policy *p, const char *agent_type,
		       const struct hard_image *image, int64_t now_s);
/* True when every property is PASS or WAIVED and nothing was lost. */
bool hard_report_ok(const struct hard_report *r);
/* The finding that a refusal is about: the first of the first failed property; NULL when ok. */
const struct hard_finding *hard_report_worst(const struct hard_report *r);

/* The refusal of a runtime verb, at most 2,000 bytes: the first findings of each failed property as
 * "refused: PROPERTY at POINTER: found F, wanted W; fix: X". Never contains the phrases that
 * engines re-interpret (engines.md section 2: "permission denied", "no such file or directory",
 * ...). */
void hard_report_refusal(const struct hard_report *r, struct aqe_buf *b);

const char *hard_result_name(enum hard_result result); /* "pass", "fail", "waived", "unknown" */

#endif
