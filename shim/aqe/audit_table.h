/* SPDX-License-Identifier: MIT */
/* Foreign text for people: escaped so that it cannot steer a terminal, and set in columns that fit
 * its width. Pure. */
#ifndef AQE_AQE_AUDIT_TABLE_H
#define AQE_AQE_AUDIT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/core/arena.h"
#include "shim/core/buf.h"

/* Columns of the terminal that `s` takes; wide (East Asian, emoji) characters are two, combining
 * ones none. `s` is shown text: no control characters. */
size_t shim_text_width(const char *s);
/* Appends `s` with every control character (C0, C1, DEL), invisible or direction-changing character
 * as \xNN or \u{NNNN}, and bytes that are no UTF-8 as \xNN. */
void shim_text_escape(struct aqe_buf *b, const char *s);

enum shim_paint { SHIM_PAINT_NONE, SHIM_PAINT_GOOD, SHIM_PAINT_BAD, SHIM_PAINT_WARN };
struct shim_column {
	const char *heading;
	bool right;    /* numbers */
	bool flexible; /* may be cut to make the table fit; never below 8 columns */
};
struct shim_cell {
	const char *text; /* NULL = empty */
	enum shim_paint paint;
};
#define SHIM_TABLE_COLUMNS_MAX 12

struct shim_table;
/* `columns` is borrowed. `width` is the terminal's, 0 = no limit (nothing is cut). Memory is from
 * `a`, which must outlive the table; NULL when it is exhausted. */
struct shim_table *shim_table_new(struct aqe_arena *a, const struct shim_column *columns,
				  size_t n_columns, size_t width, bool colour);
/* Adds a row of `n_columns` cells; texts are escaped and copied. After the first
 * SHIM_TABLE_MEASURED rows the widths are fixed and rows go to `b` at once, so that a table may be
 * endless. AQE_E_NOMEM. */
#define SHIM_TABLE_MEASURED 200
AQE_MUST_CHECK int shim_table_row(struct shim_table *t, const struct shim_cell *cells,
				  struct aqe_buf *b, struct aqe_err *e);
/* Writes what still waits, with the heading when nothing was written yet and there are rows. */
AQE_MUST_CHECK int shim_table_flush(struct shim_table *t, struct aqe_buf *b, struct aqe_err *e);

#endif
