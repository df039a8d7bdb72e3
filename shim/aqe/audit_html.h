/* SPDX-License-Identifier: MIT */
/* Parts of the report's page. Pure; everything foreign goes through shim_html_text(). */
#ifndef AQE_AQE_AUDIT_HTML_H
#define AQE_AQE_AUDIT_HTML_H

#include <stddef.h>
#include <stdint.h>

#include "shim/aqe/audit_report.h"

/* Appends `s` as text or as the value of a quoted attribute: markup escaped, control and invisible
 * characters shown as \xNN. NULL is nothing. */
void shim_html_text(struct aqe_buf *b, const char *s);
/* "1,234,567" */
void shim_html_count(struct aqe_buf *b, uint64_t n);
/* Time as "2026-01-31 23:59:59", in a <time> element. */
void shim_html_time(struct aqe_buf *b, int64_t ns);

/* ---- charts: audit_svg.c ---- */
/* What a part of a bar stands for; the class in the style sheet is its name. */
enum shim_series { SHIM_SERIES_GOOD, SHIM_SERIES_BAD, SHIM_SERIES_WARN, SHIM_SERIES_COUNT };
/* One bar of a chart over time. */
struct shim_bar {
	uint64_t v[SHIM_SERIES_COUNT];
};
struct shim_chart {
	const char *title;                    /* for screen readers */
	const char *names[SHIM_SERIES_COUNT]; /* of the series; NULL: not shown */
	const struct shim_bar *bars;
	size_t n;
	int64_t start_ns, width_ns;
};
/* Stacked bars over time with axes. */
void shim_svg_over_time(struct aqe_buf *b, const struct shim_chart *c);
/* One stacked horizontal bar, `total` of `of` wide, for a table's cell. */
void shim_svg_share(struct aqe_buf *b, const struct shim_bar *bar, uint64_t of);

/* ---- audit_style.c ---- */
/* Parts of the style sheet, NULL-terminated. */
extern const char *const SHIM_REPORT_STYLE[];

#endif
