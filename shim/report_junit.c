/* SPDX-License-Identifier: MIT */
/* JUnit XML as CI services read it: a suite a document, a case a property. */
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/clock.h"
#include "shim/core/text.h"
#include "shim/verify_out.h"

#define CASES_MAX ((size_t)4 << 20) /* one document */
#define TEXT_MAX  ((size_t)64 << 10)

/* Characters that XML 1.0 allows, escaped; what it cannot hold becomes '?'. */
static void xml(struct aqe_buf *b, const char *s)
{
	static const struct {
		char c;
		const char *name;
	} names[] = {
		{ '&', "&amp;" }, { '<', "&lt;" },   { '>', "&gt;" },   { '"', "&quot;" },
		{ '\t', "&#9;" }, { '\n', "&#10;" }, { '\r', "&#13;" },
	};
	const char *end = s + strlen(s);

	while (*s) {
		size_t n = aqe_utf8_len(s, (size_t)(end - s)), i = 0;

		while (i < AQE_COUNT(names) && names[i].c != *s)
			i++;
		if (i < AQE_COUNT(names))
			(void)aqe_buf_puts(b, names[i].name);
		else if (n == 0 || (unsigned char)*s < 0x20 || *s == 0x7f ||
			 strncmp(s, "\xef\xbf\xbe", 3) == 0 || strncmp(s, "\xef\xbf\xbf", 3) == 0)
			(void)aqe_buf_putc(b, '?');
		else
			(void)aqe_buf_add(b, s, n);
		s += n ? n : 1;
	}
}

static void attribute(struct aqe_buf *b, const char *name, const char *value)
{
	(void)aqe_buf_addf(b, " %s=\"", name);
	xml(b, value);
	(void)aqe_buf_putc(b, '"');
}

static const char *shown_name(const struct shim_judged *j)
{
	return strcmp(j->file, "-") == 0 ? "(standard input)" : j->file;
}

/* "FILE:LINE:COL: at POINTER: found F, wanted W" for one finding. */
static void finding(struct aqe_buf *t, const struct shim_judged *j, const struct hard_finding *f)
{
	(void)aqe_buf_puts(t, shown_name(j));
	if (f->line)
		(void)aqe_buf_addf(t, ":%u:%u", f->line, f->col);
	if (f->pointer[0])
		(void)aqe_buf_addf(t, ": at %s", f->pointer);
	(void)aqe_buf_addf(t, ": %s %s, wanted %s\n", f->unknown ? "cannot tell:" : "found",
			   f->found, f->wanted);
}

/* One line: the pointer and what is wrong there. */
static void headline(struct aqe_buf *t, enum hard_prop prop, const struct hard_finding *f)
{
	if (!f) {
		(void)aqe_buf_addf(t, "not judged, wanted %s", HARDENING_PROFILE[prop].required);
		return;
	}
	if (f->pointer[0])
		(void)aqe_buf_addf(t, "at %s: ", f->pointer);
	(void)aqe_buf_addf(t, "%s %s, wanted %s", f->unknown ? "cannot tell:" : "found", f->found,
			   f->wanted);
}

static void waived(struct aqe_buf *t, const struct hard_waiver *w)
{
	char until[AQE_TIME_TEXT];

	if (!w)
		return;
	aqe_time_format(w->expires, until);
	(void)aqe_buf_addf(t, "waived until %s: %s (%s)", until, w->reason, w->owner);
}

static void property(struct aqe_buf *b, const struct shim_judged *j, enum hard_prop prop)
{
	static const char *const elements[] = {
		[HARD_UNKNOWN] = "error",
		[HARD_FAIL] = "failure",
		[HARD_WAIVED] = "skipped",
		[HARD_PASS] = NULL,
	};
	AQE_AUTO_BUF struct aqe_buf t = AQE_BUF_INIT(TEXT_MAX);
	const enum hard_result result = j->report->result[prop];
	const struct hard_finding *f = shim_finding_of(j->report->first, prop);

	(void)aqe_buf_puts(b, "<testcase");
	attribute(b, "classname", shown_name(j));
	attribute(b, "name", HARDENING_PROFILE[prop].id);
	if (!elements[result]) {
		(void)aqe_buf_puts(b, "/>\n");
		return;
	}
	if (result == HARD_WAIVED)
		waived(&t, j->report->waiver[prop]);
	else
		headline(&t, prop, f);
	(void)aqe_buf_addf(b, "><%s", elements[result]);
	attribute(b, "message", aqe_buf_str(&t));
	if (result != HARD_WAIVED)
		attribute(b, "type", HARDENING_PROFILE[prop].id);
	(void)aqe_buf_putc(b, '>');
	aqe_buf_clear(&t);
	for (; f; f = shim_finding_of(f->next, prop))
		finding(&t, j, f);
	if (result == HARD_FAIL)
		(void)aqe_buf_addf(&t, "fix: %s\n", HARDENING_PROFILE[prop].fix);
	xml(b, aqe_buf_str(&t));
	(void)aqe_buf_addf(b, "</%s></testcase>\n", elements[result]);
}

/* The document as a whole could not be judged. */
static void whole(struct aqe_buf *b, const char *name, const struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf t = AQE_BUF_INIT(TEXT_MAX);

	(void)aqe_buf_puts(&t, e->text);
	if (e->line)
		(void)aqe_buf_addf(&t, " (line %u, column %u)", e->line, e->col);
	(void)aqe_buf_puts(b, "<testcase");
	attribute(b, "classname", name);
	(void)aqe_buf_puts(b, " name=\"document\"><error");
	attribute(b, "message", aqe_buf_str(&t));
	attribute(b, "type", aqe_code_name(e->code));
	(void)aqe_buf_puts(b, "/></testcase>\n");
}

static void suite_head(struct aqe_buf *b, const char *name, const struct shim_junit_sums *s)
{
	(void)aqe_buf_puts(b, "<testsuite");
	attribute(b, "name", name);
	(void)aqe_buf_addf(b,
			   " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\""
			   " time=\"0\">\n",
			   s->tests, s->failures, s->errors, s->skipped);
}

void shim_junit_add(const struct shim_judged *j, struct aqe_buf *body, struct shim_junit_sums *sums)
{
	AQE_AUTO_BUF struct aqe_buf cases = AQE_BUF_INIT(CASES_MAX);
	struct shim_junit_sums mine = { HARD_PROP_COUNT, 0, 0, 0 };
	size_t by[4] = { 0 };

	if (j->error.code != AQE_OK) {
		whole(&cases, shown_name(j), &j->error);
		mine.tests++;
		mine.errors++;
	}
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++) {
		property(&cases, j, (enum hard_prop)i);
		by[j->report->result[i]]++;
	}
	mine.failures = by[HARD_FAIL];
	mine.errors += by[HARD_UNKNOWN];
	mine.skipped = by[HARD_WAIVED];
	suite_head(body, shown_name(j), &mine);
	(void)aqe_buf_puts(body, aqe_buf_str(&cases));
	if (cases.failed) /* a suite that lost cases must not look whole */
		body->failed = cases.failed;
	(void)aqe_buf_puts(body, "</testsuite>\n");
	sums->tests += mine.tests;
	sums->failures += mine.failures;
	sums->errors += mine.errors;
	sums->skipped += mine.skipped;
}

void shim_junit_end(const struct shim_out *o, struct aqe_buf *b)
{
	(void)aqe_buf_addf(b,
			   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			   "<testsuites name=\"aqe-shim verify\" tests=\"%zu\" failures=\"%zu\" "
			   "errors=\"%zu\" skipped=\"%zu\" time=\"0\">\n",
			   o->sums.tests, o->sums.failures, o->sums.errors, o->sums.skipped);
	(void)aqe_buf_add(b, aqe_buf_str(&o->body), o->body.len);
	(void)aqe_buf_puts(b, "</testsuites>\n");
}
