/* SPDX-License-Identifier: MIT */
/* The report: one HTML file that needs nothing else, for people who decide. No script, no network
 * (its own policy forbids both), every value escaped. */
#ifndef AQE_AQE_AUDIT_REPORT_H
#define AQE_AQE_AUDIT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/log.h"
#include "audit/query.h"
#include "audit/stats.h"
#include "audit/verify.h"
#include "shim/core/arena.h"
#include "shim/core/buf.h"

#define SHIM_REPORT_MAX  ((size_t)32 << 20)
#define SHIM_REPORT_ROWS 100 /* newest rows of each list */

/* The newest rows of one kind, newest first. */
struct shim_report_rows {
	struct audit_row *v;
	size_t n;
};
/* Everything the page shows. */
struct shim_report {
	const char *host, *place; /* name of the machine, path of the log */
	const char *filter;       /* what was asked for beside the period, in words; "" for none */
	int64_t made_ns, since_ns, until_ns; /* since 0 and until INT64_MAX: all */
	struct audit_stats stats;
	int64_t start_ns, width_ns; /* of the buckets */
	struct audit_bucket *buckets;
	size_t n_buckets;
	struct shim_report_rows refusals, blocked, starts, waivers, system, policy;
	struct audit_verdict verdict;
	bool own_key;             /* no public key from elsewhere was given */
	const char *verify_error; /* why it could not be decided; NULL when it could */
};

/* ---- reading: audit_report.c ---- */
/* Fills all but host, place, filter, verdict, own_key and verify_error, of one state of the log. */
AQE_MUST_CHECK int shim_report_load(struct shim_report *r, struct audit_log *log,
				    const struct audit_filter *f, struct aqe_arena *a,
				    struct aqe_err *e);
/* A width that people count in (1 minute to 30 days), for at most 100 buckets, and the beginning of
 * the first. */
void shim_report_scale(int64_t from_ns, int64_t to_ns, int64_t *ret_start_ns, int64_t *ret_width_ns,
		       size_t *ret_n);
#define SHIM_REPORT_BUCKETS 100

/* ---- writing: audit_html.c; pure ---- */
void shim_report_emit(const struct shim_report *r, struct aqe_buf *b);

#endif
