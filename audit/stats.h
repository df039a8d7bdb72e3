/* SPDX-License-Identifier: MIT */
/* Totals over the rows that match a filter. */
#ifndef AQE_AUDIT_STATS_H
#define AQE_AUDIT_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "audit/log.h"
#include "audit/query.h"
#include "audit/row.h"
#include "shim/core/arena.h"

/* Counts of one value of a column (a domain, a reason, ...). */
struct audit_tally {
	const char *name;
	uint64_t total, by_action[AUDIT_ACTION_COUNT];
};
/* The `n` most frequent, most frequent first, then by name; the rest summed up. */
struct audit_tallies {
	struct audit_tally *v;
	size_t n;
	uint64_t others, others_total; /* how many more values there are, and their rows */
};
#define AUDIT_TALLY_MAX 1000 /* values kept of one column */

struct audit_stats {
	uint64_t total; /* rows that match */
	uint64_t by_kind[AUDIT_KIND_COUNT], by_action[AUDIT_ACTION_COUNT];
	/* of requests alone, as the original counts them */
	uint64_t requests, allowed, blocked, rate_limited;
	struct audit_tallies domains, agent_types; /* of requests */
	struct audit_tallies reasons;              /* of rows that have one */
	struct audit_tallies rules;                /* of refusals: the property that failed */
	struct audit_tallies waivers;              /* of rows that name one */
	/* response time over the rows that have one, ns; 0 when none has */
	uint64_t timed;
	int64_t mean_ns, p50_ns, p90_ns, p95_ns, p99_ns, max_ns;
	int64_t first_ns, last_ns; /* time of the oldest and newest row; 0 when none */
	uint64_t lost;             /* rows that gap records report */
};

/* Fills `ret`; its lists live in `a`. limit, offset and order of the filter are not looked at.
 * AQE_E_LIMIT: more than AUDIT_TIMED_MAX rows with a response time; narrow the filter. */
#define AUDIT_TIMED_MAX 20000000
AQE_MUST_CHECK int audit_stats(struct audit_log *log, const struct audit_filter *f,
			       struct aqe_arena *a, struct audit_stats *ret, struct aqe_err *e);

/* Rows over time: bucket i holds rows from start_ns + i * width_ns (inclusive) to the next. */
struct audit_bucket {
	uint64_t by_kind[AUDIT_KIND_COUNT];
	uint64_t by_action[AUDIT_ACTION_COUNT];
	uint64_t requests[AUDIT_ACTION_COUNT]; /* of requests alone */
};
#define AUDIT_BUCKETS_MAX 10000
struct audit_series {
	int64_t start_ns, width_ns;
	struct audit_bucket *buckets; /* the caller's; set to zero first */
	size_t n;
};
/* Counts into `to`. Rows before and after it are not counted. */
AQE_MUST_CHECK int audit_series(struct audit_log *log, const struct audit_filter *f,
				const struct audit_series *to, struct aqe_err *e);

#endif
