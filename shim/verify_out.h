/* SPDX-License-Identifier: MIT */
/* Standard output of `verify`: documents one by one (text, JSON), or one for the whole call (SARIF,
 * JUnit). Nothing else is written there; warnings go to standard error. */
#ifndef AQE_SHIM_VERIFY_OUT_H
#define AQE_SHIM_VERIFY_OUT_H

#include "shim/verdict.h"
#include "shim/waivers.h"

enum shim_format {
	SHIM_FORMAT_TEXT,
	SHIM_FORMAT_JSON,
	SHIM_FORMAT_SARIF,
	SHIM_FORMAT_JUNIT,
	SHIM_FORMAT_COUNT,
};
/* The format of this name, or SHIM_FORMAT_COUNT. */
enum shim_format shim_format_by_name(const char *name);

/* Sums over all test cases of a call. */
struct shim_junit_sums {
	size_t tests, failures, errors, skipped;
};

struct shim_out {
	enum shim_format format;
	unsigned text_flags;
	struct aqe_buf body;  /* SARIF: results; JUnit: suites */
	struct aqe_buf notes; /* SARIF: notifications of what could not be judged */
	struct shim_junit_sums sums;
	struct shim_waivers waivers;
};

void shim_out_init(struct shim_out *o, enum shim_format format, unsigned text_flags);
void shim_out_done(struct shim_out *o);
/* Before the first document; the policy is borrowed. */
AQE_MUST_CHECK int shim_out_policy(struct shim_out *o, const struct hard_policy *policy,
				   int64_t now_s, struct aqe_err *e);
AQE_MUST_CHECK int shim_out_add(struct shim_out *o, const struct shim_judged *j, struct aqe_err *e);
/* Writes what is one document for the call, and the warnings. `status` is what the call will
 * return. */
AQE_MUST_CHECK int shim_out_end(struct shim_out *o, enum shim_exit status, struct aqe_err *e);

/* ---- report_sarif.c ---- */
/* Appends the results of one document to `body`, and why it could not be judged to `notes`. `all`:
 * also properties that hold. */
void shim_sarif_add(const struct shim_judged *j, bool all, struct aqe_buf *body,
		    struct aqe_buf *notes);
void shim_sarif_end(const struct shim_out *o, enum shim_exit status, struct aqe_buf *b);

/* ---- report_junit.c ---- */
void shim_junit_add(const struct shim_judged *j, struct aqe_buf *body,
		    struct shim_junit_sums *sums);
void shim_junit_end(const struct shim_out *o, struct aqe_buf *b);

#endif
