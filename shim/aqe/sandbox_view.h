/* SPDX-License-Identifier: MIT */
/* What all sandboxes use at one moment, for `stats` and `top`. */
#ifndef AQE_AQE_SANDBOX_VIEW_H
#define AQE_AQE_SANDBOX_VIEW_H

#include "shim/aqe/sandbox_cmd.h"
#include "shim/sandbox/usage.h"

struct shim_view_row {
	const char *name, *agent_id, *type, *word, *health;
	uint32_t pid, starts;
	bool sampled; /* `usage` is there */
	bool rated;   /* `cpu` is: there was a sample before */
	struct shim_usage usage;
	double cpu, memory, disk; /* percent: of one CPU, of the limits */
};
struct shim_view {
	struct aqe_arena *arena; /* owns everything */
	struct shim_view_row *rows;
	size_t n;
	bool all;         /* also those that do not run */
	const char *only; /* this sandbox only; NULL: all */
};
/* Takes a sample; `before` (may be NULL) is an earlier one. Free the result with shim_view_done().
 */
AQE_MUST_CHECK int shim_view_take(struct shim_sb *sb, const struct shim_view *before, bool all,
				  const char *only, struct shim_view *ret, struct aqe_err *e);
void shim_view_done(struct shim_view *v);

enum shim_view_order {
	SHIM_ORDER_NAME,
	SHIM_ORDER_CPU,
	SHIM_ORDER_MEMORY,
	SHIM_ORDER_PIDS,
	SHIM_ORDER_DISK,
	SHIM_ORDER_NET,
	SHIM_ORDERS,
};
extern const char *const SHIM_ORDER_NAMES[SHIM_ORDERS];
void shim_view_sort(struct shim_view *v, enum shim_view_order order);

/* The table, at most `width` columns (0: no limit). */
AQE_MUST_CHECK int shim_view_text(const struct shim_view *v, size_t width, bool colour,
				  struct aqe_buf *out, struct aqe_err *e);
/* A JSON document, a line. */
void shim_view_json(const struct shim_view *v, struct aqe_buf *out);

#endif
