/* SPDX-License-Identifier: MIT */
/* The HTML report without a browser: escaping, scale, what is on the page. tests/integration/
 * audit.bats looks at it in one. */
#include "shim/aqe/audit_report.h"

#include "shim/aqe/audit_html.h"
#include "tests/unit/audit_util.h"

#define MINUTE (60 * S)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

/* ---- parts ---- */

static const struct {
	const char *raw, *html;
} TEXTS[] = {
	{ NULL, "" },
	{ "", "" },
	{ "plain", "plain" },
	{ "<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;" },
	{ "\" onload='x'", "&quot; onload=&#39;x&#39;" },
	{ "a&amp;b", "a&amp;amp;b" },
	{ "x\ny\x01", "x\\x0ay\\x01" },
	{ "\xe2\x80\xaeright", "\\u{202e}right" },
	{ "\xff\xfe", "\\xff\\xfe" },
	{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
};

START_TEST(html_text__escapes)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1024);

	shim_html_text(&b, TEXTS[_i].raw);
	ck_assert_str_eq(aqe_buf_str(&b), TEXTS[_i].html);
}
END_TEST

static const struct {
	uint64_t n;
	const char *text;
} COUNTS[] = {
	{ 0, "0" },
	{ 999, "999" },
	{ 1000, "1,000" },
	{ 1000000, "1,000,000" },
	{ 12345678, "12,345,678" },
	{ UINT64_MAX, "18,446,744,073,709,551,615" },
};

START_TEST(html_count__groups)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(64);

	shim_html_count(&b, COUNTS[_i].n);
	ck_assert_str_eq(aqe_buf_str(&b), COUNTS[_i].text);
}
END_TEST

static const struct {
	int64_t span, width;
} SCALES[] = {
	{ 0, MINUTE },
	{ 99 * MINUTE, MINUTE },
	{ 100 * MINUTE, 2 * MINUTE },
	{ DAY, 15 * MINUTE },
	{ 7 * DAY, 2 * HOUR },
	{ 14 * DAY, 6 * HOUR },
	{ 90 * DAY, DAY },
	{ 365 * DAY, 7 * DAY },
	{ 10 * 365 * DAY, 90 * DAY },
	{ 200 * 365 * DAY, 3650 * DAY },
};

START_TEST(report_scale__what_people_count_in)
{
	int64_t start, width;
	size_t n;

	shim_report_scale(START, START + SCALES[_i].span, &start, &width, &n);
	ck_assert_int_eq(width, SCALES[_i].width);
	ck_assert_uint_ge(n, 1);
	ck_assert_uint_le(n, SHIM_REPORT_BUCKETS);
	/* all of the span is in a bucket, and the buckets begin at a whole one */
	ck_assert_int_eq(start % width, 0);
	ck_assert_int_le(start, START);
	ck_assert(START + SCALES[_i].span < start + width * (int64_t)n);
}
END_TEST

START_TEST(report_scale__all_of_time)
{
	int64_t start, width;
	size_t n;

	shim_report_scale(0, INT64_MAX, &start, &width, &n);
	ck_assert_uint_le(n, SHIM_REPORT_BUCKETS);
	ck_assert_int_eq(start, 0);
	shim_report_scale(INT64_MAX, INT64_MAX, &start, &width, &n);
	ck_assert_uint_ge(n, 1);
}
END_TEST

/* ---- the page ---- */

static struct audit_row at(int64_t i, enum audit_kind k, enum audit_action a)
{
	struct audit_row r = AUDIT_ROW_INIT(k, a);

	r.time_ns = START + i * HOUR;
	r.agent_type = "coder";
	return r;
}

static const char *page(void)
{
	ck_assert_int_eq(AUDIT("export", "--format", "html"), SHIM_EXIT_OK);
	return aqe_buf_str(&out);
}

static void has(const char *part)
{
	ck_assert_msg(cmd_said(part), "not on the page: %s", part);
}

static void has_not(const char *part)
{
	ck_assert_msg(!cmd_said(part), "on the page: %s", part);
}

#define EVIL "</td><script src=//evil.example></script><img src=x onerror=alert(1)>\" x='"

static void fill(void)
{
	struct audit_row rows[] = {
		at(0, AUDIT_START, AUDIT_CHANGED),        at(1, AUDIT_REFUSAL, AUDIT_REFUSED),
		at(2, AUDIT_REQUEST, AUDIT_ALLOWED),      at(3, AUDIT_REQUEST, AUDIT_BLOCKED),
		at(4, AUDIT_REQUEST, AUDIT_RATE_LIMITED), at(5, AUDIT_WAIVER, AUDIT_ALLOWED),
		at(6, AUDIT_SYSTEM, AUDIT_REFUSED),       at(7, AUDIT_POLICY, AUDIT_CHANGED),
	};

	for (size_t i = 0; i < AQE_COUNT(rows); i++) {
		rows[i].agent_id = EVIL;
		rows[i].container = EVIL;
		rows[i].image = EVIL;
		rows[i].domain = i > 1 && i < 5 ? EVIL : NULL;
		rows[i].rule = i == 1 ? EVIL : NULL;
		rows[i].waiver = i == 5 ? EVIL : NULL;
		rows[i].reason = i == 6 ? AUDIT_REASON_GAP : EVIL;
	}
	rows[2].response_ns = 5 * S;
	rows[6].meta = "{\"lost\":7,\"why\":\"disk full\"}";
	log_add(rows, AQE_COUNT(rows));
}

START_TEST(report__shows_what_it_promises)
{
	static const char *const parts[] = {
		"<b>The log is intact: nothing wrong was found.</b>",
		"<b>3</b><span>requests</span>",
		"<b>1</b><span>allowed</span>",
		"<b>1</b><span>blocked</span>",
		"<b>1</b><span>rate limited</span>",
		"<b>1</b><span>containers started</span>",
		"<b>1</b><span>refused</span>",
		"<b>1</b><span>waivers used</span>",
		"<b>7</b><span>not recorded</span>",
		"Requests over time: allowed, blocked, rate limited",
		"Containers over time: started, refused, waivers used",
		"id=\"by-type\"",
		"id=\"by-domain\"",
		"id=\"by-property\"",
		"id=\"by-reason\"",
		"id=\"by-waiver\"",
		"id=\"times\"",
		"id=\"refusals\"",
		"id=\"blocked\"",
		"id=\"starts\"",
		"id=\"waivers\"",
		"id=\"policy\"",
		"id=\"system\"",
		"id=\"verification\"",
		"<h3>Not proven</h3>",
		"2026-02-01 00:00:00",
		"prefers-color-scheme:dark",
		"@media print",
		"A bar is 5 minutes;",
	};

	fill();
	(void)page();
	for (size_t i = 0; i < AQE_COUNT(parts); i++)
		has(parts[i]);
}
END_TEST

/* Nothing foreign becomes markup, and the page loads nothing. */
START_TEST(report__is_closed)
{
	static const char *const never[] = { "<script",           "<img",    "<link",
					     "onerror=alert(1)>", "src=",    "url(",
					     "@import",           "http://", "https://",
					     "javascript:" };

	fill();
	(void)page();
	for (size_t i = 0; i < AQE_COUNT(never); i++) {
		/* `src=` and the rest may only be in escaped text */
		const char *p = out.p;

		while ((p = strstr(p, never[i]))) {
			ck_assert_msg(aqe_starts(never[i], "src=") ||
					      aqe_starts(never[i], "onerror"),
				      "on the page: %.80s", p);
			p++;
		}
	}
	has("&lt;/td&gt;&lt;script src=//evil.example&gt;");
	has("default-src 'none'; style-src 'sha256-");
}
END_TEST

/* The style sheet is allowed by its digest: it must be that of what is between the tags. */
START_TEST(report__style_is_the_one_that_is_allowed)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";
	const char *text, *end, *said;
	uint8_t want[32];
	uint32_t bits = 0;
	size_t at_byte = 0;
	int have = 0;

	log_add(NULL, 0);
	text = strstr(page(), "<style>") + strlen("<style>");
	end = strstr(text, "</style>");
	said = strstr(out.p, "'sha256-") + strlen("'sha256-");
	aqe_sha256(text, (size_t)(end - text), want);
	for (; *said != '='; said++) {
		bits = bits << 6 | (uint32_t)(strchr(digits, *said) - digits);
		have += 6;
		if (have >= 8) {
			have -= 8;
			ck_assert_uint_eq(bits >> have & 0xff, want[at_byte++]);
		}
	}
	ck_assert_uint_eq(at_byte, sizeof(want));
}
END_TEST

START_TEST(report__of_an_empty_log)
{
	log_add(NULL, 0);
	(void)page();
	has("No rows in this period.");
	has("Nothing was refused in this period.");
	has("<b>0</b><span>requests</span>");
	has("The log is intact");
	has_not("<svg");
}
END_TEST

START_TEST(report__of_a_filter)
{
	fill();
	ck_assert_int_eq(AUDIT("export", "--format", "html", "--kind", "start", "--since",
			       "2026-02-01", "--type", "coder"),
			 SHIM_EXIT_OK);
	has("; only type coder, kind start</p>");
	has("<b>1</b><span>containers started</span>");
	has("<b>0</b><span>requests</span>");
	has("Nothing was refused in this period.");
}
END_TEST

/* More than a list shows: it says so. */
START_TEST(report__newest_of_many)
{
	static struct audit_row rows[150];

	for (int64_t i = 0; i < 150; i++)
		rows[i] = at(i, AUDIT_START, AUDIT_ALLOWED);
	log_add(rows, AQE_COUNT(rows));
	(void)page();
	has("the newest 100 of 150");
	has(">150</td><td><time");
	has(">51</td><td><time");
	has_not(">50</td><td><time");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("shim/audit_report");
	TCase *t = tcase_create("report"), *parts = tcase_create("parts");

	tcase_add_loop_test(parts, html_text__escapes, 0, (int)AQE_COUNT(TEXTS));
	tcase_add_loop_test(parts, html_count__groups, 0, (int)AQE_COUNT(COUNTS));
	tcase_add_loop_test(parts, report_scale__what_people_count_in, 0, (int)AQE_COUNT(SCALES));
	tcase_add_test(parts, report_scale__all_of_time);
	suite_add_tcase(s, parts);
	tcase_add_checked_fixture(t, cmd_setup, cmd_teardown);
	tcase_add_test(t, report__shows_what_it_promises);
	tcase_add_test(t, report__is_closed);
	tcase_add_test(t, report__style_is_the_one_that_is_allowed);
	tcase_add_test(t, report__of_an_empty_log);
	tcase_add_test(t, report__of_a_filter);
	tcase_add_test(t, report__newest_of_many);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run_with_openat2(suite());
}
