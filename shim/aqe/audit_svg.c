/* SPDX-License-Identifier: MIT */
/* Charts of the report, drawn without a script: colours are classes of its style sheet, so that
 * they follow light, dark and print. */
#include <inttypes.h>
#include <stdio.h>

#include "shim/aqe/audit_html.h"
#include "shim/aqe/audit_when.h"
#include "shim/core/text.h"

/* Of the picture, in its own units. */
#define WIDTH     960
#define HEIGHT    230
#define LEFT      52
#define RIGHT     16
#define TOP       10
#define BOTTOM    26
#define PLOT_W    (WIDTH - LEFT - RIGHT)
#define PLOT_H    (HEIGHT - TOP - BOTTOM)
#define GRID      4   /* lines above zero */
#define TICKS     10  /* most labels below */
#define BAR_SHARE 0.8 /* of a slot */
#define BAR_MAX   36.0
#define SHARE_W   100 /* units of a cell's bar */
#define SEEN      1.5 /* least size of what is not zero */
#define MINUTE    (60 * SHIM_NS_PER_S)
#define HOUR      (60 * MINUTE)
#define DAY       (24 * HOUR)

static const char *const CLASSES[SHIM_SERIES_COUNT] = {
	[SHIM_SERIES_GOOD] = "good",
	[SHIM_SERIES_BAD] = "bad",
	[SHIM_SERIES_WARN] = "warn",
};

static uint64_t sum(const struct shim_bar *bar)
{
	uint64_t n = 0;

	for (int i = 0; i < SHIM_SERIES_COUNT; i++)
		n += bar->v[i];
	return n;
}

/* From one line to the next: 1, 2 or 5 times a power of ten, so that about GRID lines hold `max`.
 */
static uint64_t grid_step(uint64_t max)
{
	static const uint64_t steps[] = { 1, 2, 5 };

	for (uint64_t scale = 1; scale <= UINT64_MAX / 100; scale *= 10) {
		for (size_t i = 0; i < AQE_COUNT(steps); i++) {
			if (steps[i] * scale >= max / GRID + (max % GRID != 0))
				return steps[i] * scale;
		}
	}
	return max;
}

static void grid(struct aqe_buf *b, uint64_t top, uint64_t step)
{
	for (uint64_t v = 0; v <= top; v += step) {
		const double y = TOP + PLOT_H - (double)PLOT_H * (double)v / (double)top;

		(void)aqe_buf_addf(b,
				   "<line class=\"%s\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" "
				   "y2=\"%.1f\"/>",
				   v ? "grid" : "axis", LEFT, WIDTH - RIGHT, y, y);
		(void)aqe_buf_addf(b, "<text class=\"end\" x=\"%d\" y=\"%.1f\">", LEFT - 8, y + 4);
		shim_html_count(b, v);
		(void)aqe_buf_puts(b, "</text>");
	}
}

/* From one label to the next: what people count in, and at most TICKS of them. */
static int64_t tick_step(int64_t span_ns)
{
	static const int64_t steps[] = {
		MINUTE,   5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR,
		2 * HOUR, 3 * HOUR,   6 * HOUR,    12 * HOUR,   DAY,         2 * DAY,
		7 * DAY,  14 * DAY,   30 * DAY,    90 * DAY,    365 * DAY,   1825 * DAY,
	};

	for (size_t i = 0; i < AQE_COUNT(steps); i++) {
		if (span_ns / steps[i] <= TICKS)
			return steps[i];
	}
	return INT64_MAX;
}

/* "14:00" for steps below a day, with the date at midnight; "01-31" for others, "2026-01" when they
 * are months. */
static void tick_label(struct aqe_buf *b, int64_t ns, int64_t step_ns)
{
	char when[SHIM_WHEN_TEXT];

	shim_when_absolute(ns, when);
	if (step_ns >= 30 * DAY)
		(void)aqe_buf_addf(b, "%.7s", when);
	else if (step_ns >= DAY || ns % DAY == 0)
		(void)aqe_buf_addf(b, "%.5s", when + 5);
	else
		(void)aqe_buf_addf(b, "%.5s", when + 11);
}

static void ticks(struct aqe_buf *b, const struct shim_chart *c)
{
	const int64_t span = c->width_ns * (int64_t)c->n, step = tick_step(span);
	int64_t at = c->start_ns - c->start_ns % step;

	for (at += at < c->start_ns ? step : 0; at - c->start_ns < span; at += step) {
		const double x = LEFT + PLOT_W * (double)(at - c->start_ns) / (double)span;

		(void)aqe_buf_addf(b,
				   "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" "
				   "y2=\"%d\"/><text class=\"mid\" x=\"%.1f\" y=\"%d\">",
				   x, x, TOP + PLOT_H, TOP + PLOT_H + 4, x, HEIGHT - 6);
		tick_label(b, at, step);
		(void)aqe_buf_puts(b, "</text>");
	}
}

/* What the pointer shows: "2026-01-31 14:00:00: 12 allowed, 3 blocked". */
static void hint(struct aqe_buf *b, const struct shim_chart *c, size_t at)
{
	char when[SHIM_WHEN_TEXT];
	const char *sep = ": ";

	shim_when_absolute(c->start_ns + c->width_ns * (int64_t)at, when);
	(void)aqe_buf_addf(b, "<title>%s", when);
	for (int i = 0; i < SHIM_SERIES_COUNT; i++) {
		if (!c->names[i])
			continue;
		(void)aqe_buf_puts(b, sep);
		shim_html_count(b, c->bars[at].v[i]);
		(void)aqe_buf_putc(b, ' ');
		shim_html_text(b, c->names[i]);
		sep = ", ";
	}
	(void)aqe_buf_puts(b, "</title>");
}

static void stack(struct aqe_buf *b, const struct shim_chart *c, size_t at, uint64_t top)
{
	const double slot = (double)PLOT_W / (double)c->n;
	const double w = slot * BAR_SHARE < BAR_MAX ? slot * BAR_SHARE : BAR_MAX;
	const double x = LEFT + slot * (double)at + (slot - w) / 2;
	double y = TOP + PLOT_H;

	(void)aqe_buf_puts(b, "<g>");
	hint(b, c, at);
	for (int i = 0; i < SHIM_SERIES_COUNT; i++) {
		double h = (double)PLOT_H * (double)c->bars[at].v[i] / (double)top;

		if (!c->bars[at].v[i])
			continue;
		h = h < SEEN ? SEEN : h;
		y -= h;
		(void)aqe_buf_addf(b,
				   "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
				   "height=\"%.2f\"/>",
				   CLASSES[i], x, y, w, h);
	}
	(void)aqe_buf_puts(b, "</g>");
}

static void legend(struct aqe_buf *b, const struct shim_chart *c)
{
	(void)aqe_buf_puts(b, "<p class=\"legend\">");
	for (int i = 0; i < SHIM_SERIES_COUNT; i++) {
		uint64_t n = 0;

		if (!c->names[i])
			continue;
		for (size_t k = 0; k < c->n; k++)
			n += c->bars[k].v[i];
		(void)aqe_buf_addf(b, "<span><i class=\"key %s\"></i>", CLASSES[i]);
		shim_html_text(b, c->names[i]);
		(void)aqe_buf_puts(b, " <b>");
		shim_html_count(b, n);
		(void)aqe_buf_puts(b, "</b></span>");
	}
	(void)aqe_buf_puts(b, "</p>\n");
}

void shim_svg_over_time(struct aqe_buf *b, const struct shim_chart *c)
{
	uint64_t max = 1, step, top;

	for (size_t i = 0; i < c->n; i++)
		max = sum(&c->bars[i]) > max ? sum(&c->bars[i]) : max;
	step = grid_step(max);
	top = (max + step - 1) / step * step;
	legend(b, c);
	(void)aqe_buf_addf(b,
			   "<div class=\"scroll\"><svg class=\"chart\" viewBox=\"0 0 %d %d\" "
			   "role=\"img\" aria-label=\"",
			   WIDTH, HEIGHT);
	shim_html_text(b, c->title);
	(void)aqe_buf_puts(b, "\">");
	grid(b, top, step);
	for (size_t i = 0; i < c->n; i++) {
		if (sum(&c->bars[i]))
			stack(b, c, i, top);
	}
	ticks(b, c);
	(void)aqe_buf_puts(b, "</svg></div>\n");
}

void shim_svg_share(struct aqe_buf *b, const struct shim_bar *bar, uint64_t of)
{
	double x = 0;

	(void)aqe_buf_addf(b,
			   "<svg class=\"share\" viewBox=\"0 0 %d 10\" "
			   "preserveAspectRatio=\"none\" aria-hidden=\"true\">",
			   SHARE_W);
	for (int i = 0; i < SHIM_SERIES_COUNT; i++) {
		double w = of ? SHARE_W * (double)bar->v[i] / (double)of : 0;

		if (!bar->v[i])
			continue;
		w = w < SEEN ? SEEN : w;
		(void)aqe_buf_addf(b,
				   "<rect class=\"%s\" x=\"%.2f\" y=\"0\" width=\"%.2f\" "
				   "height=\"10\"/>",
				   CLASSES[i], x, w);
		x += w;
	}
	(void)aqe_buf_puts(b, "</svg>");
}
