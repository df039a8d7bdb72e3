/* SPDX-License-Identifier: MIT */
#include "shim/aqe/audit_table.h"

#include <stdint.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define GAP      2 /* blanks between columns */
#define FLEX_MIN 8
#define ROW_MAX  ((size_t)256 << 10) /* all cells of a row, escaped */
#define ELLIPSIS "\xe2\x80\xa6"

/* ---- characters ---- */

struct range {
	uint32_t from, to;
};
/* Not shown, or change the direction of what follows: a name could be made to look like another. */
static const struct range HIDDEN[] = {
	{ 0x00, 0x1f },     { 0x7f, 0x9f },       { 0xad, 0xad },     { 0x61c, 0x61c },
	{ 0x115f, 0x1160 }, { 0x180e, 0x180e },   { 0x200b, 0x200f }, { 0x2028, 0x202e },
	{ 0x2060, 0x206f }, { 0x3164, 0x3164 },   { 0xfeff, 0xfeff }, { 0xffa0, 0xffa0 },
	{ 0xfff9, 0xfffb }, { 0xe0000, 0xe0fff },
};
static const struct range COMBINING[] = {
	{ 0x300, 0x36f },   { 0x483, 0x489 },   { 0x591, 0x5bd },   { 0x610, 0x61a },
	{ 0x64b, 0x65f },   { 0x900, 0x902 },   { 0x93c, 0x93c },   { 0xe31, 0xe31 },
	{ 0xe34, 0xe3a },   { 0xe47, 0xe4e },   { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff },
	{ 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f },
};
static const struct range WIDE[] = {
	{ 0x1100, 0x115e },   { 0x2e80, 0x303e },   { 0x3041, 0x33ff },   { 0x3400, 0x4dbf },
	{ 0x4e00, 0x9fff },   { 0xa000, 0xa4cf },   { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },
	{ 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },   { 0x1f300, 0x1f64f },
	{ 0x1f680, 0x1f6ff }, { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd },
};

static bool in_ranges(uint32_t c, const struct range *r, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (c >= r[i].from && c <= r[i].to)
			return true;
	}
	return false;
}

/* The character of `n` bytes (1 to 4) at `p`, which is valid. */
static uint32_t decode(const char *p, size_t n)
{
	static const uint32_t lead[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t c = (unsigned char)p[0] & lead[n];

	for (size_t i = 1; i < n; i++)
		c = c << 6 | ((unsigned char)p[i] & 0x3fU);
	return c;
}

static size_t char_width(uint32_t c)
{
	if (in_ranges(c, COMBINING, AQE_COUNT(COMBINING)))
		return 0;
	return in_ranges(c, WIDE, AQE_COUNT(WIDE)) ? 2 : 1;
}

/* Bytes of `s` that fit into `columns`; *ret_used is how many they take. */
static size_t fitting(const char *s, size_t columns, size_t *ret_used)
{
	size_t at = 0, used = 0;

	while (s[at]) {
		size_t n = aqe_utf8_len(s + at, strnlen(s + at, 4));
		const size_t w = n ? char_width(decode(s + at, n)) : 1;

		if (used + w > columns)
			break;
		used += w;
		at += n ? n : 1;
	}
	*ret_used = used;
	return at;
}

size_t shim_text_width(const char *s)
{
	size_t used;

	(void)fitting(s, SIZE_MAX / 2, &used);
	return used;
}

void shim_text_escape(struct aqe_buf *b, const char *s)
{
	while (*s) {
		const size_t n = aqe_utf8_len(s, strnlen(s, 4));
		const uint32_t c = n ? decode(s, n) : (unsigned char)*s;

		if (n && !in_ranges(c, HIDDEN, AQE_COUNT(HIDDEN)))
			(void)aqe_buf_add(b, s, n);
		else if (n < 2)
			(void)aqe_buf_addf(b, "\\x%02x", (unsigned)c);
		else
			(void)aqe_buf_addf(b, "\\u{%x}", (unsigned)c);
		s += n ? n : 1;
	}
}

/* ---- the table ---- */

struct shim_table {
	const struct shim_column *columns;
	size_t n, width;
	bool colour, started;
	size_t widths[SHIM_TABLE_COLUMNS_MAX];
	size_t waiting; /* rows that are measured, not yet written */
	char *texts[SHIM_TABLE_MEASURED][SHIM_TABLE_COLUMNS_MAX];
	enum shim_paint paints[SHIM_TABLE_MEASURED][SHIM_TABLE_COLUMNS_MAX];
	struct aqe_arena *cells; /* of the rows that wait */
};

struct shim_table *shim_table_new(struct aqe_arena *a, const struct shim_column *columns,
				  size_t n_columns, size_t width, bool colour)
{
	struct shim_table *t = NULL;

	if (n_columns <= SHIM_TABLE_COLUMNS_MAX)
		t = aqe_arena_alloc(a, sizeof(*t));
	if (!t)
		return NULL;
	t->columns = columns;
	t->n = n_columns;
	t->width = width;
	t->colour = colour;
	t->cells = a;
	for (size_t i = 0; i < n_columns; i++)
		t->widths[i] = shim_text_width(columns[i].heading);
	return t;
}

static size_t total_width(const struct shim_table *t)
{
	size_t sum = t->n ? GAP * (t->n - 1) : 0;

	for (size_t i = 0; i < t->n; i++)
		sum += t->widths[i];
	return sum;
}

/* Takes columns from the widest flexible one until the table fits or none can give more. */
static void fit(struct shim_table *t)
{
	size_t total = total_width(t);

	while (t->width && total > t->width) {
		size_t widest = t->n;

		for (size_t i = 0; i < t->n; i++) {
			if (t->columns[i].flexible && t->widths[i] > FLEX_MIN &&
			    (widest == t->n || t->widths[i] > t->widths[widest]))
				widest = i;
		}
		if (widest == t->n)
			return;
		t->widths[widest]--;
		total--;
	}
}

static const char *const PAINTS[] = {
	[SHIM_PAINT_NONE] = "",
	[SHIM_PAINT_GOOD] = "\033[32m",
	[SHIM_PAINT_BAD] = "\033[31m",
	[SHIM_PAINT_WARN] = "\033[33m",
};

static void blanks(struct aqe_buf *b, size_t n)
{
	(void)aqe_buf_addf(b, "%*s", (int)n, "");
}

/* One cell, cut with an ellipsis when the terminal has a width. Returns the columns it took. */
static size_t put_cut(struct aqe_buf *b, const char *text, size_t columns)
{
	size_t used, bytes = fitting(text, columns, &used);

	if (!text[bytes]) {
		(void)aqe_buf_puts(b, text);
		return used;
	}
	bytes = fitting(text, columns ? columns - 1 : 0, &used);
	(void)aqe_buf_add(b, text, bytes);
	if (!columns)
		return used;
	(void)aqe_buf_puts(b, ELLIPSIS);
	return used + 1;
}

/* Writes a cell into at most `room` columns of the terminal; returns how many of its column's are
 * still to fill. */
static size_t put_cell(const struct shim_table *t, size_t i, const char *text, const char *paint,
		       size_t room, struct aqe_buf *b)
{
	const size_t want = t->widths[i] < room ? t->widths[i] : room;
	const size_t natural = shim_text_width(text);
	size_t shown = natural;

	if (t->columns[i].right && natural < want)
		blanks(b, want - natural);
	(void)aqe_buf_puts(b, paint);
	if (t->width)
		shown = put_cut(b, text, want);
	else
		(void)aqe_buf_puts(b, text);
	(void)aqe_buf_puts(b, *paint ? "\033[0m" : "");
	return !t->columns[i].right && shown < want ? want - shown : 0;
}

static void put_line(const struct shim_table *t, char *const *texts, const enum shim_paint *paints,
		     struct aqe_buf *b)
{
	size_t room = t->width ? t->width : SIZE_MAX, last = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (texts[i][0])
			last = i;
	}
	for (size_t i = 0; i <= last && i < t->n && room; i++) {
		const char *paint = !t->colour ? "" : !paints ? "\033[1m" : PAINTS[paints[i]];

		const size_t left = put_cell(t, i, texts[i], paint, room, b);

		room -= room < t->widths[i] ? room : t->widths[i];
		if (i < last && room > GAP) {
			blanks(b, left + GAP);
			room -= GAP;
		} else {
			room = 0;
		}
	}
	(void)aqe_buf_putc(b, '\n');
}

static void put_heading(struct shim_table *t, struct aqe_buf *b)
{
	char *texts[SHIM_TABLE_COLUMNS_MAX];
	char names[SHIM_TABLE_COLUMNS_MAX][32];

	for (size_t i = 0; i < t->n; i++) {
		const size_t n = strnlen(t->columns[i].heading, sizeof(names[i]) - 1);

		memcpy(names[i], t->columns[i].heading, n);
		names[i][n] = '\0';
		texts[i] = names[i];
	}
	put_line(t, texts, NULL, b);
	t->started = true;
}

int shim_table_flush(struct shim_table *t, struct aqe_buf *b, struct aqe_err *e)
{
	if (t->waiting && !t->started) {
		fit(t);
		put_heading(t, b);
	}
	for (size_t r = 0; r < t->waiting; r++)
		put_line(t, t->texts[r], t->paints[r], b);
	t->waiting = 0;
	return aqe_buf_ok(b, e);
}

/* The cells, escaped, one after the other with a NUL each; texts[] point into `scratch`. */
static int escape_row(const struct shim_table *t, const struct shim_cell *cells,
		      struct aqe_buf *scratch, char **texts, struct aqe_err *e)
{
	char *p;
	int rc;

	for (size_t i = 0; i < t->n; i++) {
		shim_text_escape(scratch, cells[i].text ? cells[i].text : "");
		(void)aqe_buf_putc(scratch, '\0');
	}
	rc = aqe_buf_ok(scratch, e);
	if (rc != AQE_OK)
		return rc;
	p = scratch->p;
	if (!p) {
		(void)aqe_err_set(e, AQE_E_INTERNAL, 0, "a table without columns");
		return AQE_E_INTERNAL;
	}
	for (size_t i = 0; i < t->n; i++) {
		texts[i] = p;
		p += strlen(p) + 1;
	}
	return AQE_OK;
}

static int keep_row(struct shim_table *t, char *const *texts, const struct shim_cell *cells,
		    struct aqe_err *e)
{
	for (size_t i = 0; i < t->n; i++) {
		const size_t w = shim_text_width(texts[i]);

		t->texts[t->waiting][i] = aqe_arena_dup(t->cells, texts[i]);
		t->paints[t->waiting][i] = cells[i].paint;
		if (!t->texts[t->waiting][i])
			return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for a row of the table");
		if (w > t->widths[i])
			t->widths[i] = w;
	}
	t->waiting++;
	return AQE_OK;
}

int shim_table_row(struct shim_table *t, const struct shim_cell *cells, struct aqe_buf *b,
		   struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf scratch = AQE_BUF_INIT(ROW_MAX);
	enum shim_paint paints[SHIM_TABLE_COLUMNS_MAX] = { SHIM_PAINT_NONE };
	char *texts[SHIM_TABLE_COLUMNS_MAX] = { NULL };
	int rc = escape_row(t, cells, &scratch, texts, e);

	if (rc != AQE_OK)
		return rc;
	if (!t->started) {
		rc = keep_row(t, texts, cells, e);
		return rc == AQE_OK && t->waiting == SHIM_TABLE_MEASURED ? shim_table_flush(t, b, e)
									 : rc;
	}
	for (size_t i = 0; i < t->n; i++)
		paints[i] = cells[i].paint;
	put_line(t, texts, paints, b);
	return aqe_buf_ok(b, e);
}
