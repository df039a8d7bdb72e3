/* SPDX-License-Identifier: MIT */
/* A row of the log as a line of the table that `list` and `tail` print. Pure. */
#ifndef AQE_AQE_AUDIT_TEXT_H
#define AQE_AQE_AUDIT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/row.h"
#include "shim/aqe/audit_table.h"

#define SHIM_AUDIT_COLUMNS 7 /* SEQ TIME KIND ACTION AGENT SUBJECT WHY */
extern const struct shim_column SHIM_AUDIT_TABLE[SHIM_AUDIT_COLUMNS];

enum shim_audit_text_flag {
	SHIM_AUDIT_RELATIVE = 1U << 0, /* "5m ago" */
	SHIM_AUDIT_SHORT = 1U << 1,    /* ids and digests cut to what tells them apart */
};
/* What a table is made with, and room for the texts of one row. */
struct shim_audit_line {
	unsigned flags;
	int64_t now_ns;
	struct shim_cell cells[SHIM_AUDIT_COLUMNS];
	char seq[24], when[32];
	struct aqe_buf agent, subject, why;
};
#define SHIM_AUDIT_LINE_INIT(f, now)                                             \
	{                                                                        \
		.flags = (f), .now_ns = (now), .agent = AQE_BUF_INIT(4096),      \
		.subject = AQE_BUF_INIT(4096), .why = AQE_BUF_INIT((size_t)8192) \
	}
void shim_audit_line_done(struct shim_audit_line *l);
/* Fills l->cells from `r`; they point into `l` and `r`. AQE_E_NOMEM. */
AQE_MUST_CHECK int shim_audit_line_set(struct shim_audit_line *l, const struct audit_row *r,
				       struct aqe_err *e);
/* "3f2a9c1b7d0e" for a long id, "sha256:3f2a9c1b7d0e" for a digest, others unchanged. */
void shim_audit_short_id(const char *id, struct aqe_buf *b);

#endif
