/* SPDX-License-Identifier: MIT */
/* Reading rows. A query sees one state of the log, whatever others write meanwhile. */
#ifndef AQE_AUDIT_QUERY_H
#define AQE_AUDIT_QUERY_H

#include <stdint.h>

#include "audit/log.h"
#include "audit/row.h"
#include "shim/core/err.h"

/* By time, then seq: the same as by seq unless the clock was set back or rows were imported. */
enum audit_order {
	AUDIT_OLDEST_FIRST, /* offset and limit count from the oldest */
	AUDIT_NEWEST_FIRST,
	AUDIT_RECENT, /* the newest `limit` rows (after `offset` newer ones), oldest of them first
		       */
	AUDIT_BY_SEQ, /* as stored; also whenever after_seq is set */
};

/* All that are set must hold. Texts match exactly. */
struct audit_filter {
	int64_t since_ns, until_ns; /* both inclusive */
	int64_t after_seq;          /* rows with a greater seq: for tail and ship */
	int64_t until_seq;          /* and up to this one; 0 = no limit */
	const char *container, *agent_id, *agent_type, *domain; /* NULL = any */
	enum audit_kind kind;
	enum audit_action action;
	uint64_t limit;  /* UINT64_MAX = no limit */
	uint64_t offset; /* applied before limit */
	enum audit_order order;
};
#define AUDIT_FILTER_INIT                                                 \
	{                                                                 \
		.since_ns = 0, .until_ns = INT64_MAX, .limit = UINT64_MAX \
	}

/* Gets one row, valid during the call. 0 goes on; anything else ends the query, which returns it.
 */
typedef int audit_row_fn(void *arg, const struct audit_row *row, struct aqe_err *e);

/* Calls `fn` for every row that matches. 0, what `fn` returned, or an error of the store
 * (AQE_E_MALFORMED: a stored value has a wrong type). */
AQE_MUST_CHECK int audit_query(struct audit_log *log, const struct audit_filter *f,
			       audit_row_fn *fn, void *arg, struct aqe_err *e);
/* How many match; limit, offset and order are not looked at. */
AQE_MUST_CHECK int audit_count(struct audit_log *log, const struct audit_filter *f, uint64_t *ret,
			       struct aqe_err *e);
/* seq of the newest row, 0 when there never was one. Cheap: what `tail -f` polls. */
AQE_MUST_CHECK int audit_last_seq(struct audit_log *log, int64_t *ret, struct aqe_err *e);

/* Several queries over one state of the log: begin, query..., end. */
AQE_MUST_CHECK int audit_snapshot_begin(struct audit_log *log, struct aqe_err *e);
void audit_snapshot_end(struct audit_log *log);

#endif
