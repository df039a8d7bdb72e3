/* SPDX-License-Identifier: MIT */
#include "shim/aqe/audit_html.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shim/aqe/audit_keys.h"
#include "shim/aqe/audit_page.h"
#include "shim/aqe/audit_table.h"
#include "shim/aqe/audit_text.h"
#include "shim/aqe/audit_when.h"
#include "shim/core/cleanup.h"
#include "shim/core/sha256.h"
#include "shim/core/text.h"
#include "shim/version.h"

#define TEXT_MAX  ((size_t)128 << 10) /* one value, escaped for people */
#define PER_MILLE 1000

/* ---- values ---- */

void shim_html_text(struct aqe_buf *b, const char *s)
{
	AQE_AUTO_BUF struct aqe_buf shown = AQE_BUF_INIT(TEXT_MAX);

	if (!s)
		return;
	shim_text_escape(&shown, s);
	if (aqe_buf_ok(&shown, NULL))
		b->failed = b->failed ? b->failed : shown.failed;
	for (const char *p = aqe_buf_str(&shown); *p; p++) {
		switch (*p) {
		case '&':
			(void)aqe_buf_puts(b, "&amp;");
			break;
		case '<':
			(void)aqe_buf_puts(b, "&lt;");
			break;
		case '>':
			(void)aqe_buf_puts(b, "&gt;");
			break;
		case '"':
			(void)aqe_buf_puts(b, "&quot;");
			break;
		case '\'':
			(void)aqe_buf_puts(b, "&#39;");
			break;
		default:
			(void)aqe_buf_putc(b, *p);
		}
	}
}

void shim_html_count(struct aqe_buf *b, uint64_t n)
{
	uint64_t scale = 1;

	while (n / scale >= PER_MILLE)
		scale *= PER_MILLE;
	(void)aqe_buf_addf(b, "%" PRIu64, n / scale);
	for (scale /= PER_MILLE; scale; scale /= PER_MILLE)
		(void)aqe_buf_addf(b, ",%03" PRIu64, n / scale % PER_MILLE);
}

void shim_html_time(struct aqe_buf *b, int64_t ns)
{
	char when[SHIM_WHEN_TEXT], exact[AUDIT_TIME_TEXT];

	shim_when_absolute(ns, when);
	audit_time_format(ns, exact);
	(void)aqe_buf_addf(b, "<time datetime=\"%s\">%s</time>", exact, when);
}

/* ---- the top ---- */

/* Base64 of the style sheet's SHA-256, as a content security policy names it. */
static void put_style_hash(struct aqe_buf *b)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";
	struct aqe_sha256_ctx sum;
	uint8_t h[33] = { 0 }; /* one more, so that it divides by three */

	aqe_sha256_init(&sum);
	for (size_t i = 0; SHIM_REPORT_STYLE[i]; i++)
		aqe_sha256_add(&sum, SHIM_REPORT_STYLE[i], strlen(SHIM_REPORT_STYLE[i]));
	aqe_sha256_end(&sum, h);
	for (size_t i = 0; i < sizeof(h); i += 3) {
		const uint32_t v = (uint32_t)h[i] << 16 | (uint32_t)h[i + 1] << 8 | h[i + 2];

		(void)aqe_buf_putc(b, digits[v >> 18]);
		(void)aqe_buf_putc(b, digits[v >> 12 & 63]);
		(void)aqe_buf_putc(b, digits[v >> 6 & 63]);
		(void)aqe_buf_putc(b, i + 3 < sizeof(h) ? digits[v & 63] : '=');
	}
}

static void put_head(struct aqe_buf *b, const struct shim_report *r)
{
	(void)aqe_buf_puts(b,
			   "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
			   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
			   "'none'; style-src 'sha256-");
	put_style_hash(b);
	(void)aqe_buf_puts(b, "'; base-uri 'none'; form-action 'none'\">\n"
			      "<meta name=\"viewport\" content=\"width=device-width, "
			      "initial-scale=1\">\n"
			      "<meta name=\"referrer\" content=\"no-referrer\">\n"
			      "<title>Audit report: ");
	shim_html_text(b, r->host);
	(void)aqe_buf_puts(b, "</title>\n<style>");
	for (size_t i = 0; SHIM_REPORT_STYLE[i]; i++)
		(void)aqe_buf_puts(b, SHIM_REPORT_STYLE[i]);
	(void)aqe_buf_puts(b, "</style>\n</head>\n<body>\n<main>\n");
}

static void put_period(struct aqe_buf *b, const struct shim_report *r)
{
	const struct audit_stats *s = &r->stats;

	if (r->since_ns > 0 || (r->until_ns < INT64_MAX && !s->total)) {
		(void)aqe_buf_puts(b, r->since_ns > 0 ? "from " : "from the beginning");
		if (r->since_ns > 0)
			shim_html_time(b, r->since_ns);
	} else if (s->total) {
		(void)aqe_buf_puts(b, "from the beginning, ");
		shim_html_time(b, s->first_ns);
	} else {
		(void)aqe_buf_puts(b, "from the beginning");
	}
	(void)aqe_buf_puts(b, ", to ");
	shim_html_time(b, r->until_ns < INT64_MAX ? r->until_ns : r->made_ns);
	(void)aqe_buf_puts(b, " UTC");
}

static void put_title(struct aqe_buf *b, const struct shim_report *r)
{
	(void)aqe_buf_puts(b, "<header>\n<h1>Audit report</h1>\n<p class=\"meta\"><b>");
	shim_html_text(b, r->host);
	(void)aqe_buf_puts(b, "</b>, ");
	put_period(b, r);
	if (r->filter && r->filter[0]) {
		(void)aqe_buf_puts(b, "; only ");
		shim_html_text(b, r->filter);
	}
	(void)aqe_buf_puts(b, "</p>\n<p class=\"meta\">made ");
	shim_html_time(b, r->made_ns);
	(void)aqe_buf_puts(b, " UTC by aqe " SHIM_VERSION " from <code>");
	shim_html_text(b, r->place);
	(void)aqe_buf_puts(b, "</code></p>\n</header>\n");
}

static void put_counted(struct aqe_buf *b, uint64_t n, const char *what, const char *then)
{
	shim_html_count(b, n);
	(void)aqe_buf_addf(b, " %s%s%s", what, n == 1 ? "" : "s", then);
}

static void put_badge(struct aqe_buf *b, const struct shim_report *r)
{
	const struct audit_verdict *v = &r->verdict;
	const bool good = v->fault == AUDIT_FAULT_NONE;

	if (r->verify_error) {
		(void)aqe_buf_puts(b, "<div class=\"verdict unknown\" id=\"verdict\"><span "
				      "class=\"mark\">?</span><p><b>The log could not be verified."
				      "</b> ");
		shim_html_text(b, r->verify_error);
	} else if (good) {
		(void)aqe_buf_puts(b, "<div class=\"verdict intact\" id=\"verdict\"><span "
				      "class=\"mark\">\xe2\x9c\x93</span><p><b>The log is intact: "
				      "nothing wrong was found.</b> ");
		put_counted(b, v->rows, "row", ", ");
		put_counted(b, v->points, "checkpoint", " and ");
		put_counted(b, v->anchors, "anchor", "");
		(void)aqe_buf_puts(b, " were checked; <a href=\"#verification\">what this "
				      "does not prove</a>.");
	} else {
		(void)aqe_buf_puts(b,
				   "<div class=\"verdict tampered\" id=\"verdict\"><span "
				   "class=\"mark\">\xe2\x9c\x97</span><p><b>The log was tampered "
				   "with.</b> ");
		shim_html_text(b, v->text);
		if (v->first_bad)
			(void)aqe_buf_addf(b, " First bad row: %" PRId64 ".", v->first_bad);
	}
	(void)aqe_buf_puts(b, "</p></div>\n");
}

static void put_tile(struct aqe_buf *b, const char *class, uint64_t n, const char *name)
{
	(void)aqe_buf_addf(b, "<div class=\"tile %s\"><b>", n ? class : "");
	shim_html_count(b, n);
	(void)aqe_buf_addf(b, "</b><span>%s</span></div>\n", name);
}

static void put_tiles(struct aqe_buf *b, const struct shim_report *r)
{
	const struct audit_stats *s = &r->stats;

	(void)aqe_buf_puts(b, "<div class=\"tiles\">\n");
	put_tile(b, "", s->requests, "requests");
	put_tile(b, "", s->allowed, "allowed");
	put_tile(b, "bad", s->blocked, "blocked");
	put_tile(b, "warn", s->rate_limited, "rate limited");
	put_tile(b, "", s->by_kind[AUDIT_START], "containers started");
	put_tile(b, "bad", s->by_kind[AUDIT_REFUSAL], "refused");
	put_tile(b, "warn", s->by_kind[AUDIT_WAIVER], "waivers used");
	put_tile(b, "bad", s->lost, "not recorded");
	(void)aqe_buf_puts(b, "</div>\n");
}

/* ---- over time ---- */

/* What the bars of a chart count. */
typedef void bar_fn(const struct audit_bucket *from, struct shim_bar *to);

static void bar_requests(const struct audit_bucket *from, struct shim_bar *to)
{
	to->v[SHIM_SERIES_GOOD] = from->requests[AUDIT_ALLOWED];
	to->v[SHIM_SERIES_BAD] = from->requests[AUDIT_BLOCKED];
	to->v[SHIM_SERIES_WARN] = from->requests[AUDIT_RATE_LIMITED];
}

static void bar_containers(const struct audit_bucket *from, struct shim_bar *to)
{
	to->v[SHIM_SERIES_GOOD] = from->by_kind[AUDIT_START];
	to->v[SHIM_SERIES_BAD] = from->by_kind[AUDIT_REFUSAL];
	to->v[SHIM_SERIES_WARN] = from->by_kind[AUDIT_WAIVER];
}

static void put_chart(struct aqe_buf *b, const struct shim_report *r, const struct shim_chart *of,
		      bar_fn *count)
{
	struct shim_bar bars[SHIM_REPORT_BUCKETS] = { { { 0 } } };
	struct shim_chart c = *of;

	for (size_t i = 0; i < r->n_buckets && i < SHIM_REPORT_BUCKETS; i++)
		count(&r->buckets[i], &bars[i]);
	c.bars = bars;
	c.n = r->n_buckets;
	c.start_ns = r->start_ns;
	c.width_ns = r->width_ns;
	shim_svg_over_time(b, &c);
}

/* "6 hours" */
static void width_words(int64_t ns, char ret[SHIM_WHEN_TEXT])
{
	const int64_t minutes = ns / SHIM_NS_PER_S / 60;
	const int64_t per = minutes % 1440 == 0 ? 1440 : minutes % 60 == 0 ? 60 : 1;
	const char *unit = per == 1440 ? "day" : per == 60 ? "hour" : "minute";

	(void)snprintf(ret, SHIM_WHEN_TEXT, "%" PRId64 " %s%s", minutes / per, unit,
		       minutes == per ? "" : "s");
}

static void put_charts(struct aqe_buf *b, const struct shim_report *r)
{
	static const struct shim_chart requests = {
		.title = "Requests over time: allowed, blocked, rate limited",
		.names = { "allowed", "blocked", "rate limited" }
	};
	static const struct shim_chart starts = {
		.title = "Containers over time: started, refused, waivers used",
		.names = { "started", "refused", "waivers used" }
	};
	char span[SHIM_WHEN_TEXT];

	width_words(r->width_ns, span);
	(void)aqe_buf_puts(b, "<section id=\"over-time\">\n<h2>Over time</h2>\n");
	if (!r->n_buckets) {
		(void)aqe_buf_puts(b, "<p class=\"none\">No rows in this period.</p>\n");
	} else {
		(void)aqe_buf_puts(b, "<h3>Requests to the network</h3>\n");
		put_chart(b, r, &requests, bar_requests);
		(void)aqe_buf_puts(b, "<h3>Containers</h3>\n");
		put_chart(b, r, &starts, bar_containers);
		(void)aqe_buf_addf(b, "<p class=\"meta\">A bar is %s; times are UTC.</p>\n", span);
	}
	(void)aqe_buf_puts(b, "</section>\n");
}

/* ---- verification ---- */

static void put_hex(struct aqe_buf *b, const char *name, const uint8_t *p, size_t n)
{
	(void)aqe_buf_addf(b, "<dt>%s</dt><dd class=\"mono\">", name);
	for (size_t i = 0; i < n; i++)
		(void)aqe_buf_addf(b, "%02x", p[i]);
	(void)aqe_buf_puts(b, "</dd>\n");
}

static void put_reach(struct aqe_buf *b, const char *name, uint64_t n, int64_t to, const char *what)
{
	(void)aqe_buf_addf(b, "<dt>%s</dt><dd>", name);
	shim_html_count(b, n);
	if (to) {
		(void)aqe_buf_addf(b, ", %s row ", what);
		shim_html_count(b, (uint64_t)to);
	}
	(void)aqe_buf_puts(b, "</dd>\n");
}

static void put_open(struct aqe_buf *b, const struct shim_report *r)
{
	const struct audit_verdict *v = &r->verdict;

	if (!v->open && !r->own_key)
		return;
	(void)aqe_buf_puts(b, "<h3>Not proven</h3>\n<ul>\n");
	for (unsigned i = 0; i < AUDIT_OPEN_COUNT; i++) {
		if (!(v->open & 1U << i))
			continue;
		(void)aqe_buf_puts(b, "<li>");
		shim_html_text(b, audit_open_text(1U << i));
		(void)aqe_buf_puts(b, "</li>\n");
	}
	if (r->own_key)
		(void)aqe_buf_puts(b, "<li>" SHIM_AUDIT_OWN_KEY "</li>\n");
	(void)aqe_buf_puts(b, "</ul>\n");
}

static void put_verification(struct aqe_buf *b, const struct shim_report *r)
{
	const struct audit_verdict *v = &r->verdict;

	(void)aqe_buf_puts(b, "<section id=\"verification\">\n<h2>Verification</h2>\n");
	if (r->verify_error) {
		(void)aqe_buf_puts(b, "<p>");
		shim_html_text(b, r->verify_error);
		(void)aqe_buf_puts(b, "</p>\n</section>\n");
		return;
	}
	(void)aqe_buf_puts(b, "<dl>\n<dt>result</dt><dd>");
	if (v->fault == AUDIT_FAULT_NONE)
		(void)aqe_buf_puts(b, "intact");
	else
		shim_html_text(b, v->text);
	(void)aqe_buf_puts(b, "</dd>\n<dt>rows</dt><dd>");
	shim_html_count(b, v->rows);
	if (v->rows)
		(void)aqe_buf_addf(b, " (%" PRId64 " to %" PRId64 ")", v->first_seq, v->last_seq);
	(void)aqe_buf_puts(b, "</dd>\n");
	put_reach(b, "checkpoints", v->points, v->signed_to, "signed to");
	put_reach(b, "anchors", v->anchors, v->anchored_to, "anchored to");
	put_hex(b, "chain", v->id.chain, sizeof(v->id.chain));
	put_hex(b, "head", v->head, sizeof(v->head));
	(void)aqe_buf_puts(b, "</dl>\n");
	put_open(b, r);
	(void)aqe_buf_puts(b, "<p class=\"meta\">This page is a reading aid; check the log or an "
			      "export yourself: <code>aqe audit verify --public-key FILE --anchor "
			      "FILE</code></p>\n</section>\n");
}

/* ---- the page ---- */

void shim_report_emit(const struct shim_report *r, struct aqe_buf *b)
{
	put_head(b, r);
	put_title(b, r);
	put_badge(b, r);
	put_tiles(b, r);
	put_charts(b, r);
	shim_page_tallies(b, r);
	shim_page_times(b, r);
	shim_page_rows(b, r);
	put_verification(b, r);
	(void)aqe_buf_puts(b, "<footer>aqe-shim " SHIM_VERSION
			      "; all times UTC</footer>\n</main>\n</body>\n</html>\n");
}
