/* SPDX-License-Identifier: MIT */
#include "shim/aqe/audit_page.h"

#include <inttypes.h>

#include "shim/aqe/audit_html.h"
#include "shim/aqe/audit_text.h"
#include "shim/aqe/audit_when.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define TOP 20 /* values shown of a list */

/* ---- tallies ---- */

enum tally_style { TALLY_REQUESTS, TALLY_MIXED, TALLY_WARN };
/* One table of counts. */
struct tally_table {
	const char *id, *title, *heading, *none;
	enum tally_style style;
};

static struct shim_bar bar_of(const struct audit_tally *t, enum tally_style style)
{
	struct shim_bar bar = { { 0 } };

	if (style == TALLY_WARN) {
		bar.v[SHIM_SERIES_WARN] = t->total;
		return bar;
	}
	bar.v[SHIM_SERIES_GOOD] = t->by_action[AUDIT_ALLOWED] + t->by_action[AUDIT_CHANGED];
	bar.v[SHIM_SERIES_BAD] = t->by_action[AUDIT_BLOCKED] + t->by_action[AUDIT_REFUSED];
	bar.v[SHIM_SERIES_WARN] = t->by_action[AUDIT_RATE_LIMITED];
	return bar;
}

static void put_number(struct aqe_buf *b, uint64_t n)
{
	(void)aqe_buf_puts(b, "<td class=\"n\">");
	if (n)
		shim_html_count(b, n);
	else
		(void)aqe_buf_puts(b, "<span class=\"soft\">0</span>");
	(void)aqe_buf_puts(b, "</td>");
}

static void put_tally(struct aqe_buf *b, const struct audit_tally *t, enum tally_style style,
		      uint64_t most)
{
	const struct shim_bar bar = bar_of(t, style);

	(void)aqe_buf_puts(b, "<tr><td>");
	shim_html_text(b, t->name);
	(void)aqe_buf_puts(b, "</td>");
	if (style == TALLY_REQUESTS) {
		for (int i = 0; i < SHIM_SERIES_COUNT; i++)
			put_number(b, bar.v[i]);
	} else {
		put_number(b, t->total);
	}
	(void)aqe_buf_puts(b, "<td class=\"bar\">");
	shim_svg_share(b, &bar, most);
	(void)aqe_buf_puts(b, "</td></tr>\n");
}

static void put_tally_table(struct aqe_buf *b, const struct tally_table *t,
			    const struct audit_tallies *v)
{
	uint64_t more = v->others, rows = v->others_total;

	(void)aqe_buf_addf(b, "<section id=\"%s\">\n<h2>%s</h2>\n", t->id, t->title);
	if (!v->n) {
		(void)aqe_buf_addf(b, "<p class=\"none\">%s</p>\n</section>\n", t->none);
		return;
	}
	(void)aqe_buf_addf(b,
			   "<div class=\"scroll\"><table class=\"tally\">\n<thead><tr><th "
			   "scope=\"col\">%s</th>%s"
			   "<th class=\"bar\"></th></tr></thead>\n<tbody>\n",
			   t->heading,
			   t->style == TALLY_REQUESTS
				   ? "<th scope=\"col\" class=\"n\">allowed</th><th scope=\"col\" "
				     "class=\"n\">blocked</th><th scope=\"col\" "
				     "class=\"n\">limited</th>"
				   : "<th scope=\"col\" class=\"n\">times</th>");
	for (size_t i = 0; i < v->n; i++) {
		if (i < TOP) {
			put_tally(b, &v->v[i], t->style, v->v[0].total);
		} else {
			more++;
			rows += v->v[i].total;
		}
	}
	(void)aqe_buf_puts(b, "</tbody></table></div>\n");
	if (more) {
		(void)aqe_buf_puts(b, "<p class=\"meta\">and ");
		shim_html_count(b, more);
		(void)aqe_buf_puts(b, " more with ");
		shim_html_count(b, rows);
		(void)aqe_buf_puts(b, " rows</p>\n");
	}
	(void)aqe_buf_puts(b, "</section>\n");
}

void shim_page_tallies(struct aqe_buf *b, const struct shim_report *r)
{
	static const struct tally_table types = { "by-type", "Requests by agent type", "agent type",
						  "No requests in this period.", TALLY_REQUESTS };
	static const struct tally_table domains = { "by-domain", "Requests by domain", "domain",
						    "No requests in this period.", TALLY_REQUESTS };
	static const struct tally_table rules = { "by-property", "Refusals by property", "property",
						  "Nothing was refused in this period.",
						  TALLY_MIXED };
	static const struct tally_table reasons = { "by-reason", "Reasons", "reason",
						    "No reason was given in this period.",
						    TALLY_MIXED };
	static const struct tally_table waivers = { "by-waiver", "Waivers by use", "waiver",
						    "No waiver was used in this period.",
						    TALLY_WARN };

	(void)aqe_buf_puts(b, "<div class=\"pair\">\n");
	put_tally_table(b, &types, &r->stats.agent_types);
	put_tally_table(b, &domains, &r->stats.domains);
	(void)aqe_buf_puts(b, "</div>\n<div class=\"pair\">\n");
	put_tally_table(b, &rules, &r->stats.rules);
	put_tally_table(b, &reasons, &r->stats.reasons);
	(void)aqe_buf_puts(b, "</div>\n");
	if (r->stats.waivers.n)
		put_tally_table(b, &waivers, &r->stats.waivers);
}

/* ---- response times ---- */

void shim_page_times(struct aqe_buf *b, const struct shim_report *r)
{
	const struct audit_stats *s = &r->stats;
	const struct {
		const char *name;
		int64_t ns;
	} spans[] = {
		{ "mean", s->mean_ns }, { "median", s->p50_ns }, { "90 %", s->p90_ns },
		{ "95 %", s->p95_ns },  { "99 %", s->p99_ns },   { "longest", s->max_ns },
	};
	char text[SHIM_WHEN_TEXT];

	if (!s->timed)
		return;
	(void)aqe_buf_puts(b, "<section id=\"times\">\n<h2>Response times</h2>\n<div "
			      "class=\"scroll\"><table>\n<thead><tr>");
	for (size_t i = 0; i < AQE_COUNT(spans); i++)
		(void)aqe_buf_addf(b, "<th scope=\"col\" class=\"n\">%s</th>", spans[i].name);
	(void)aqe_buf_puts(b, "</tr></thead>\n<tbody><tr>");
	for (size_t i = 0; i < AQE_COUNT(spans); i++) {
		shim_duration_format(spans[i].ns, text);
		(void)aqe_buf_addf(b, "<td class=\"n\">%s</td>", text);
	}
	(void)aqe_buf_puts(b, "</tr></tbody></table></div>\n<p class=\"meta\">over ");
	shim_html_count(b, s->timed);
	(void)aqe_buf_puts(b, " rows that have one</p>\n</section>\n");
}

/* ---- rows ---- */

static const char *const TAGS[AUDIT_ACTION_COUNT] = {
	[AUDIT_ACTION_ANY] = "",       [AUDIT_ALLOWED] = "good", [AUDIT_BLOCKED] = "bad",
	[AUDIT_RATE_LIMITED] = "warn", [AUDIT_REFUSED] = "bad",  [AUDIT_CHANGED] = "warn",
};

static void put_image(struct aqe_buf *b, const struct audit_row *r)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(AUDIT_ID_MAX);

	if (!r->image)
		return;
	shim_audit_short_id(r->image, &text);
	if (text.failed)
		b->failed = b->failed ? b->failed : text.failed;
	(void)aqe_buf_puts(b, "<br><span class=\"soft mono nowrap\" title=\"");
	shim_html_text(b, r->image);
	(void)aqe_buf_puts(b, "\">");
	shim_html_text(b, aqe_buf_str(&text));
	(void)aqe_buf_puts(b, "</span>");
}

static void put_row(struct aqe_buf *b, struct shim_audit_line *line, const struct audit_row *r)
{
	const int rc = shim_audit_line_set(line, r, NULL);

	if (rc < 0)
		b->failed = b->failed ? b->failed : rc; /* as any addition that fails */
	(void)aqe_buf_addf(b, "<tr><td class=\"n soft\">%" PRId64 "</td><td>", r->seq);
	shim_html_time(b, r->time_ns);
	(void)aqe_buf_addf(b, "</td><td><span class=\"tag %s\">%s</span></td><td>",
			   r->action < AUDIT_ACTION_COUNT ? TAGS[r->action] : "",
			   audit_action_name(r->action));
	shim_html_text(b, aqe_buf_str(&line->agent));
	(void)aqe_buf_puts(b, "</td><td title=\"");
	shim_html_text(b, r->container);
	(void)aqe_buf_puts(b, "\">");
	shim_html_text(b, aqe_buf_str(&line->subject));
	put_image(b, r);
	(void)aqe_buf_puts(b, "</td><td>");
	shim_html_text(b, aqe_buf_str(&line->why));
	(void)aqe_buf_puts(b, "</td></tr>\n");
}

struct row_table {
	const char *id, *title, *none;
	const struct shim_report_rows *rows;
	uint64_t total;
};

static void put_row_table(struct aqe_buf *b, const struct row_table *t)
{
	struct shim_audit_line line = SHIM_AUDIT_LINE_INIT(SHIM_AUDIT_SHORT, 0);

	(void)aqe_buf_addf(b, "<section id=\"%s\">\n<h2>%s</h2>\n", t->id, t->title);
	if (!t->rows->n) {
		(void)aqe_buf_addf(b, "<p class=\"none\">%s</p>\n</section>\n", t->none);
		return;
	}
	if (t->total > t->rows->n) {
		(void)aqe_buf_puts(b, "<p class=\"meta\">the newest ");
		shim_html_count(b, t->rows->n);
		(void)aqe_buf_puts(b, " of ");
		shim_html_count(b, t->total);
		(void)aqe_buf_puts(b, "</p>\n");
	}
	(void)aqe_buf_puts(b, "<div class=\"scroll\"><table class=\"rows\">\n<thead><tr><th "
			      "scope=\"col\" class=\"n\">row</th><th scope=\"col\">time</th><th "
			      "scope=\"col\">decision</th><th scope=\"col\">agent</th><th "
			      "scope=\"col\">subject</th><th scope=\"col\">why</th></tr></thead>\n"
			      "<tbody>\n");
	for (size_t i = 0; i < t->rows->n; i++)
		put_row(b, &line, &t->rows->v[i]);
	(void)aqe_buf_puts(b, "</tbody></table></div>\n</section>\n");
	shim_audit_line_done(&line);
}

void shim_page_rows(struct aqe_buf *b, const struct shim_report *r)
{
	const struct audit_stats *s = &r->stats;
	const struct row_table tables[] = {
		{ "refusals", "Refusals", "Nothing was refused in this period.", &r->refusals,
		  s->by_kind[AUDIT_REFUSAL] },
		{ "blocked", "Blocked requests", "No request was blocked in this period.",
		  &r->blocked, s->blocked },
		{ "starts", "Starts", "No container was started in this period.", &r->starts,
		  s->by_kind[AUDIT_START] },
		{ "waivers", "Waivers", "No waiver was used in this period.", &r->waivers,
		  s->by_kind[AUDIT_WAIVER] },
		{ "policy", "Policy", "No policy was loaded or changed in this period.", &r->policy,
		  s->by_kind[AUDIT_POLICY] },
		{ "system", "The log and its services", "Nothing happened to the log itself.",
		  &r->system, s->by_kind[AUDIT_SYSTEM] },
	};

	for (size_t i = 0; i < AQE_COUNT(tables); i++)
		put_row_table(b, &tables[i]);
}
