/* SPDX-License-Identifier: MIT */
/* Rows as text, and the export: header, rows, points, trailer.
 *
 * jsonl, one object a line:
 *   {"aqe_audit_export":1,"chain":H,"created":T,"made":T,"complete":true|false,"rows":N,
 *    "after_seq":N,"after_hash":H,"head_seq":N,"head_hash":H}
 *                                        header; complete: no row is left out in between; after_*
 *                                        name the row before the first, head_* the log's last
 *   {"seq":1,"time":T,...,"hash":H}      rows; fields that are not there are left out; a row whose
 *                                        predecessor is left out has "prev":H before "hash"
 *   {"point":{...}}                      every signed point, after the row it names
 *   {"aqe_audit_trailer":1,"rows":N,"points":N,"sha256":H,"key":H,"sig":H}
 *                                        H of all bytes before this line; key and sig only when
 *                                        signed: Ed25519 over "aqe-export1", the 32 bytes of
 * sha256, the 32 bytes of key H is lower-case hex, T is RFC 3339 with nine digits. json is one
 * document with the members header, rows, points and trailer. csv has a heading line and rows only;
 * ocsf is one OCSF event a line. */
#ifndef AQE_AUDIT_EMIT_H
#define AQE_AUDIT_EMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/log.h"
#include "audit/query.h"
#include "audit/row.h"
#include "shim/core/buf.h"
#include "shim/core/json.h"

enum audit_format { AUDIT_JSONL, AUDIT_JSON, AUDIT_CSV, AUDIT_OCSF, AUDIT_FORMAT_COUNT };
const char *audit_format_name(enum audit_format f);
bool audit_format_parse(const char *text, enum audit_format *ret);

/* One row, appended to `b`, without a newline; the buffer's sticky failure tells. */
void audit_row_json(const struct audit_row *r, struct aqe_buf *b); /* one line */
void audit_row_csv(const struct audit_row *r, struct aqe_buf *b);  /* cells that a spreadsheet would
								    * take for a formula get a ' */
void audit_csv_heading(struct aqe_buf *b);
void audit_row_ocsf(const struct audit_row *r, struct aqe_buf *b); /* one line */

/* Reads what audit_row_json() wrote: texts live in `a` (meta is emitted anew). `obj` is the parsed
 * line; members that are no field are refused, except "hash" (required) and "prev" (*ret_has_prev).
 * AQE_E_MALFORMED, AQE_E_LIMIT. */
AQE_MUST_CHECK int audit_row_parse(struct aqe_arena *a, const struct aqe_json *obj,
				   struct audit_row *ret, uint8_t ret_prev[32], bool *ret_has_prev,
				   struct aqe_err *e);

/* Takes the next `n` bytes of an export. 0, or an error which ends the export. */
typedef int audit_write_fn(void *arg, const void *p, size_t n, struct aqe_err *e);
struct audit_sink {
	audit_write_fn *write;
	void *arg;
};
struct audit_export_result {
	uint64_t rows, points;
	int64_t last_seq; /* of the last row written; 0 when none */
	bool is_signed;
};
/* Writes the rows that match, by seq, of one state of the log; jsonl and json are signed when the
 * signing key can be read. With nothing but a span of time and a limit the export is complete:
 * every row from the first that matches to the last. `f->order` is not looked at; `ret` may be
 * NULL. */
AQE_MUST_CHECK int audit_export(struct audit_log *log, const struct audit_filter *f,
				enum audit_format format, const struct audit_sink *sink,
				struct audit_export_result *ret, struct aqe_err *e);

#endif
