/* SPDX-License-Identifier: MIT */
/* What the rewrite changed, for people (diff) and for programs (JSON Patch). */
#ifndef AQE_HARDENING_REWRITE_DIFF_H
#define AQE_HARDENING_REWRITE_DIFF_H

#include "shim/core/json.h"

/* Deepest document the comparison follows: the reader's limit and what the rewrite may add. */
#define HARD_DIFF_DEPTH 64

enum hard_diff_op {
	HARD_DIFF_ADD,
	HARD_DIFF_REMOVE,
	HARD_DIFF_REPLACE,
};
struct hard_diff {
	enum hard_diff_op op;
	const char *pointer;                   /* RFC 6901, the same place in both documents */
	const struct aqe_json *before, *after; /* NULL for ADD / REMOVE */
};
typedef int hard_diff_fn(void *arg, const struct hard_diff *d, struct aqe_err *e);

/* Calls `fn` for every member that differs, removals of an object before its additions. Objects are
 * compared member by member, everything else as a whole. A negative return stops and is returned.
 */
AQE_MUST_CHECK int hard_diff_walk(const struct aqe_json *before, const struct aqe_json *after,
				  hard_diff_fn *fn, void *arg, struct aqe_err *e);
/* Appends an RFC 6902 document that turns `before` into `after`. */
AQE_MUST_CHECK int hard_diff_patch(const struct aqe_json *before, const struct aqe_json *after,
				   struct aqe_buf *b, struct aqe_err *e);
/* Appends lines for people: "- POINTER: value" for what was, "+ POINTER: value" for what is; array
 * elements one by one. Long values are named by their size. */
AQE_MUST_CHECK int hard_diff_text(const struct aqe_json *before, const struct aqe_json *after,
				  struct aqe_buf *b, struct aqe_err *e);

#endif
