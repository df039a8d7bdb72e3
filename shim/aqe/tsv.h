/* SPDX-License-Identifier: MIT */
/* Rows of tab-separated text, as the vector files write them: lines of fields, '#' begins a
 * comment, bytes in some fields as \xNN, a backslash as two. */
#ifndef AQE_AQE_TSV_H
#define AQE_AQE_TSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "shim/core/buf.h"
#include "shim/core/err.h"

#define SHIM_TSV_FIELDS 16 /* further ones are not looked at */
#define SHIM_TSV_LINE   ((size_t)1 << 20)

struct shim_tsv {
	FILE *in;
	char *line;
	size_t cap;
	size_t number; /* of the line, from 1 */
	char *field[SHIM_TSV_FIELDS];
	size_t len[SHIM_TSV_FIELDS]; /* a field may hold NULs */
	size_t n;
};
#define SHIM_TSV_INIT(file)                            \
	{                                              \
		(file), NULL, 0, 0, { NULL }, { 0 }, 0 \
	}
void shim_tsv_done(struct shim_tsv *t);

/* The next line that is no comment: 1, 0 at the end, or a negative code. Every row has at least
 * one field, empty for an empty line; missing ones read as "". */
AQE_MUST_CHECK int shim_tsv_next(struct shim_tsv *t, struct aqe_err *e);
/* The i-th field's text, "" when there is none. */
const char *shim_tsv_at(const struct shim_tsv *t, size_t i);
/* Undoes the escapes of a field in place; false when one is malformed. */
bool shim_tsv_unescape(struct shim_tsv *t, size_t i);

#endif
