/* SPDX-License-Identifier: MIT */
#include "shim/aqe/audit_print.h"

#include <inttypes.h>

#include "audit/emit.h"
#include "shim/aqe/audit_args.h"
#include "shim/core/text.h"

#define OUT_MAX   ((size_t)4 << 20) /* the rows a table measures, at their longest */
#define OUT_FLUSH ((size_t)64 << 10)

const char *const SHIM_AUDIT_FORMATS[] = {
	[SHIM_AUDIT_AS_TEXT] = "text",
	[SHIM_AUDIT_AS_JSON] = "json",
	[SHIM_AUDIT_AS_JSONL] = "jsonl",
	NULL,
};

int shim_audit_printer_init(struct shim_audit_printer *p, struct aqe_arena *a,
			    enum shim_audit_format format, unsigned flags, int64_t now_ns,
			    struct aqe_err *e)
{
	*p = (struct shim_audit_printer){
		.format = format,
		.line = SHIM_AUDIT_LINE_INIT(flags, now_ns),
		.out = AQE_BUF_INIT(OUT_MAX),
		.table = shim_table_new(a, SHIM_AUDIT_TABLE, SHIM_AUDIT_COLUMNS, shim_audit_width(),
					shim_audit_colour()),
	};
	return p->table ? AQE_OK : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the table");
}

void shim_audit_printer_done(struct shim_audit_printer *p)
{
	if (!p)
		return;
	shim_audit_line_done(&p->line);
	aqe_buf_done(&p->out);
}

int shim_audit_printer_row(void *arg, const struct audit_row *r, struct aqe_err *e)
{
	struct shim_audit_printer *p = arg;
	int rc = AQE_OK;

	if (p->format == SHIM_AUDIT_AS_TEXT) {
		rc = shim_audit_line_set(&p->line, r, e);
		if (rc == AQE_OK)
			rc = shim_table_row(p->table, p->line.cells, &p->out, e);
	} else if (p->format == SHIM_AUDIT_AS_JSONL) {
		audit_row_json(r, &p->out);
		(void)aqe_buf_putc(&p->out, '\n');
	} else {
		(void)aqe_buf_puts(&p->out, p->rows ? ",\n  " : "{\"version\":1,\"rows\":[\n  ");
		audit_row_json(r, &p->out);
	}
	p->rows++;
	p->last = r->seq;
	if (rc == AQE_OK && p->out.len > OUT_FLUSH)
		rc = shim_audit_write(&p->out, e);
	return rc;
}

int shim_audit_printer_flush(struct shim_audit_printer *p, struct aqe_err *e)
{
	int rc = AQE_OK;

	if (p->format == SHIM_AUDIT_AS_TEXT)
		rc = shim_table_flush(p->table, &p->out, e);
	return rc < 0 ? rc : shim_audit_write(&p->out, e);
}

int shim_audit_printer_end(struct shim_audit_printer *p, struct aqe_err *e)
{
	if (p->format == SHIM_AUDIT_AS_JSON)
		(void)aqe_buf_addf(&p->out, "%s],\"count\":%" PRIu64 "}\n",
				   p->rows ? "\n" : "{\"version\":1,\"rows\":[", p->rows);
	return shim_audit_printer_flush(p, e);
}
