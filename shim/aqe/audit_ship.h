/* SPDX-License-Identifier: MIT */
/* Parts of `aqe audit ship`: where a shipment stands, what an answer means, how long to wait. */
#ifndef AQE_AQE_AUDIT_SHIP_H
#define AQE_AQE_AUDIT_SHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/chain.h"
#include "audit/log.h"
#include "audit/query.h"
#include "shim/core/buf.h"
#include "shim/core/err.h"

/* ---- where it stands: one small file, replaced as a whole ---- */
struct shim_ship_position {
	uint8_t chain[32]; /* of the log */
	int64_t seq;       /* last row that the other side has taken; 0 = none */
	uint8_t hash[32];  /* of that row; zeros when none */
};
#define SHIM_SHIP_LINE 256
/* "aqe-audit-ship 1 chain=<64 hex> seq=<n> hash=<64 hex>" + newline, and back. */
void shim_ship_format(const struct shim_ship_position *p, char ret[SHIM_SHIP_LINE]);
bool shim_ship_parse(const char *line, size_t n, struct shim_ship_position *ret);
/* Reads `name` below `dirfd`; 0 and *ret_there false when there is none. A file that is not ours or
 * damaged is refused: going on from a wrong place would leave rows out. */
AQE_MUST_CHECK int shim_ship_load(int dirfd, const char *name, struct shim_ship_position *ret,
				  bool *ret_there, struct aqe_err *e);
AQE_MUST_CHECK int shim_ship_store(int dirfd, const char *name, const struct shim_ship_position *p,
				   struct aqe_err *e);
/* Is the log still the one that was shipped so far? AQE_E_REFUSED: the row at the position has
 * another hash, or the log ends before it; `verify` will say more. *ret_pruned is how many rows
 * were removed before they were shipped. Another chain: the position is set to its beginning and
 * *ret_other. */
AQE_MUST_CHECK int shim_ship_check(struct audit_log *log, struct shim_ship_position *p,
				   bool *ret_other, uint64_t *ret_pruned, struct aqe_err *e);

/* ---- a batch ---- */
struct shim_ship_batch {
	struct aqe_buf body; /* rows as JSON lines */
	uint64_t rows;
	int64_t first;                   /* seq */
	struct shim_ship_position after; /* the position once it is taken */
};
#define SHIM_SHIP_BYTES ((size_t)1 << 20) /* a batch ends before it grows over this */
/* Fills `b` (emptied first) with the rows after `from`, at most `limit` of them. */
AQE_MUST_CHECK int shim_ship_fill(struct audit_log *log, const struct shim_ship_position *from,
				  uint64_t limit, struct shim_ship_batch *b, struct aqe_err *e);

/* ---- what to do ---- */
enum shim_ship_verdict {
	SHIM_SHIP_TAKEN,   /* 2xx */
	SHIM_SHIP_AGAIN,   /* 408, 425, 429, 5xx, and no whole answer */
	SHIM_SHIP_SMALLER, /* 413 */
	SHIM_SHIP_REFUSED, /* all others: sending it again would not help */
};
/* Of an answer's status, or (`status` 0 or `rc` negative) of the error of the request. */
enum shim_ship_verdict shim_ship_judge(int rc, int status);
/* How long to wait after `failures` failures in a row (1 or more): doubled each time from
 * `first_ms` to `max_ms`, between half and all of it by `random`; at least what the server asked
 * for
 * (`retry_after_s`, -1 for nothing; an hour at most). */
uint64_t shim_ship_wait_ms(unsigned failures, uint64_t first_ms, uint64_t max_ms,
			   int64_t retry_after_s, uint32_t random);

/* https is fine; http only to this machine (*ret_plain): localhost, 127.0.0.0/8, [::1]. AQE_E_USAGE
 * for everything else, and for a URL with a user name in it. */
AQE_MUST_CHECK int shim_ship_url(const char *url, bool *ret_plain, struct aqe_err *e);

#endif
