/* SPDX-License-Identifier: MIT */
/* Rows to standard output, in the formats of `list` and `tail`. */
#ifndef AQE_AQE_AUDIT_PRINT_H
#define AQE_AQE_AUDIT_PRINT_H

#include "audit/query.h"
#include "shim/aqe/audit_text.h"
#include "shim/core/arena.h"

enum shim_audit_format { SHIM_AUDIT_AS_TEXT, SHIM_AUDIT_AS_JSON, SHIM_AUDIT_AS_JSONL };
extern const char *const SHIM_AUDIT_FORMATS[]; /* their names, NULL-terminated */

struct shim_audit_printer {
	enum shim_audit_format format;
	struct shim_table *table;
	struct shim_audit_line line;
	struct aqe_buf out;
	uint64_t rows; /* printed so far */
	int64_t last;  /* seq of the last one */
};
/* `flags` are enum shim_audit_text_flag, `now_ns` what relative times are measured from. */
AQE_MUST_CHECK int shim_audit_printer_init(struct shim_audit_printer *p, struct aqe_arena *a,
					   enum shim_audit_format format, unsigned flags,
					   int64_t now_ns, struct aqe_err *e);
/* NULL is accepted. */
void shim_audit_printer_done(struct shim_audit_printer *p);
/* An audit_row_fn; `arg` is the printer. */
int shim_audit_printer_row(void *arg, const struct audit_row *r, struct aqe_err *e);
/* Everything out that waits. */
AQE_MUST_CHECK int shim_audit_printer_flush(struct shim_audit_printer *p, struct aqe_err *e);
/* After the last row: the end of the document, and flush. */
AQE_MUST_CHECK int shim_audit_printer_end(struct shim_audit_printer *p, struct aqe_err *e);

#endif
