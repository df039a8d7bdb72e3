/* SPDX-License-Identifier: MIT */
#include "shim/aqe/audit_table.h"

#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

static const struct {
	const char *raw, *shown;
	size_t width;
} TEXTS[] = {
	{ "", "", 0 },
	{ "plain", "plain", 5 },
	{ "a\tb\nc", "a\\x09b\\x0ac", 11 },
	{ "\033[31mred\033[0m", "\\x1b[31mred\\x1b[0m", 18 },
	{ "\x7f", "\\x7f", 4 },
	{ "\xc2\x9b", "\\u{9b}", 6 }, /* C1: CSI in one character */
	{ "a\xe2\x80\xae"
	  "b",
	  "a\\u{202e}b", 10 },                   /* right-to-left override */
	{ "x\xe2\x80\x8by", "x\\u{200b}y", 10 }, /* zero width space */
	{ "\xef\xbb\xbf", "\\u{feff}", 8 },
	{ "\xff\xfe", "\\xff\\xfe", 8 },
	{ "\xc3", "\\xc3", 4 }, /* cut in a character */
	{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f", 4 },
	{ "e\xcc\x81", "e\xcc\x81", 1 }, /* combining accent */
	{ "\xe6\x97\xa5\xe6\x9c\xac", "\xe6\x97\xa5\xe6\x9c\xac", 4 },
	{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", 2 },
};

START_TEST(text_escape__shows_what_would_steer)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1024);

	shim_text_escape(&b, TEXTS[_i].raw);
	ck_assert_str_eq(aqe_buf_str(&b), TEXTS[_i].shown);
	ck_assert_uint_eq(shim_text_width(aqe_buf_str(&b)), TEXTS[_i].width);
}
END_TEST

static const struct shim_column COLUMNS[] = {
	{ "N", true, false },
	{ "NAME", false, true },
	{ "WHY", false, true },
};

static const char *const ROWS[][3] = {
	{ "1", "short", "because" },
	{ "20", "a-name-that-is-rather-long",
	  "a reason of many words, longer than the rest of it" },
	{ "3", NULL, "" },
};

static void fill(size_t width, bool colour, struct aqe_buf *b)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)8 << 20);
	struct shim_table *t = shim_table_new(a, COLUMNS, AQE_COUNT(COLUMNS), width, colour);
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ptr_nonnull(t);
	for (size_t r = 0; r < AQE_COUNT(ROWS); r++) {
		struct shim_cell cells[3] = { { ROWS[r][0], SHIM_PAINT_NONE },
					      { ROWS[r][1], SHIM_PAINT_BAD },
					      { ROWS[r][2], SHIM_PAINT_NONE } };

		ck_assert_int_eq(shim_table_row(t, cells, b, &e), 0);
	}
	ck_assert_uint_eq(b->len, 0);
	ck_assert_int_eq(shim_table_flush(t, b, &e), 0);
}

START_TEST(table__without_width_cuts_nothing)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);

	fill(0, false, &b);
	ck_assert_str_eq(aqe_buf_str(&b),
			 " N  NAME                        WHY\n"
			 " 1  short                       because\n"
			 "20  a-name-that-is-rather-long  a reason of many words, longer than the "
			 "rest of it\n"
			 " 3\n");
}
END_TEST

START_TEST(table__fits_the_terminal)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);

	fill(50, false, &b);
	ck_assert_str_eq(aqe_buf_str(&b),
			 " N  NAME                    WHY\n"
			 " 1  short                   because\n"
			 "20  a-name-that-is-rather\xe2\x80\xa6  a reason of many word"
			 "\xe2\x80\xa6\n"
			 " 3\n");
}
END_TEST

/* However narrow: no line is wider, and nothing loops or crashes. */
START_TEST(table__never_wider)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);
	char *line, *rest;

	fill((size_t)_i, false, &b);
	rest = b.p;
	while ((line = strsep(&rest, "\n")) && rest)
		ck_assert_uint_le(shim_text_width(line), (size_t)_i);
}
END_TEST

START_TEST(table__paints_cells)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);

	fill(0, true, &b);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&b), "\033[1mNAME\033[0m  "));
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&b), "\033[31mshort\033[0m  "));
}
END_TEST

/* Rows after the measured ones are written at once, in the same columns. */
START_TEST(table__is_endless)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)1 << 20);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 20);
	struct shim_table *t = shim_table_new(a, COLUMNS, AQE_COUNT(COLUMNS), 40, false);
	const struct shim_cell cells[] = { { "1", SHIM_PAINT_NONE },
					   { "n", SHIM_PAINT_NONE },
					   { "w", SHIM_PAINT_NONE } };
	struct aqe_err e = AQE_ERR_INIT;

	for (size_t i = 0; i < 20000; i++) {
		ck_assert_int_eq(shim_table_row(t, cells, &b, &e), 0);
		if (i + 1 < SHIM_TABLE_MEASURED)
			ck_assert_uint_eq(b.len, 0);
		else
			ck_assert_uint_gt(b.len, 0);
		if (i >= SHIM_TABLE_MEASURED)
			ck_assert_str_eq(aqe_buf_str(&b), "1  n     w\n");
		if (i + 1 >= SHIM_TABLE_MEASURED)
			aqe_buf_clear(&b);
	}
	ck_assert_int_eq(shim_table_flush(t, &b, &e), 0);
	ck_assert_uint_eq(b.len, 0);
}
END_TEST

START_TEST(table__without_rows_is_empty)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)1 << 20);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(100);
	struct shim_table *t = shim_table_new(a, COLUMNS, AQE_COUNT(COLUMNS), 40, false);
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_int_eq(shim_table_flush(t, &b, &e), 0);
	ck_assert_uint_eq(b.len, 0);
	ck_assert_ptr_null(shim_table_new(a, COLUMNS, SHIM_TABLE_COLUMNS_MAX + 1, 40, false));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("shim/audit_table");
	TCase *t = tcase_create("table");

	tcase_add_loop_test(t, text_escape__shows_what_would_steer, 0, (int)AQE_COUNT(TEXTS));
	tcase_add_test(t, table__without_width_cuts_nothing);
	tcase_add_test(t, table__fits_the_terminal);
	tcase_add_loop_test(t, table__never_wider, 1, 90);
	tcase_add_test(t, table__paints_cells);
	tcase_add_test(t, table__is_endless);
	tcase_add_test(t, table__without_rows_is_empty);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
