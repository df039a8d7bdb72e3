/* SPDX-License-Identifier: MIT */
#include "shim/verdict.h"

#include <string.h>

#include "shim/core/clock.h"
#include "shim/core/text.h"

#define WORD_MAX 400 /* bytes of one foreign word; a terminal must not be flooded */

const char *shim_verdict_name(enum shim_verdict verdict)
{
	static const char *const names[] = {
		[SHIM_VERDICT_CONFORM] = "conform",
		[SHIM_VERDICT_VIOLATE] = "violate",
		[SHIM_VERDICT_MALFORMED] = "malformed",
		[SHIM_VERDICT_UNKNOWN] = "unknown",
	};

	return names[verdict];
}

enum shim_exit shim_verdict_exit(enum shim_verdict verdict)
{
	static const enum shim_exit exits[] = {
		[SHIM_VERDICT_CONFORM] = SHIM_EXIT_OK,
		[SHIM_VERDICT_VIOLATE] = SHIM_EXIT_FAILED,
		[SHIM_VERDICT_MALFORMED] = SHIM_EXIT_MALFORMED,
		[SHIM_VERDICT_UNKNOWN] = SHIM_EXIT_UNDECIDED,
	};

	return exits[verdict];
}

static const char *colour_of(enum hard_result result)
{
	static const char *const colours[] = {
		[HARD_UNKNOWN] = "\033[31m",
		[HARD_FAIL] = "\033[31m",
		[HARD_WAIVED] = "\033[33m",
		[HARD_PASS] = "\033[32m",
	};

	return colours[result];
}

/* Foreign text cannot reach the terminal as it is: escape sequences would be obeyed. */
static void put_word(struct aqe_buf *b, const char *s)
{
	aqe_buf_quote(b, s, WORD_MAX);
}

static void put_place(struct aqe_buf *b, const char *file, uint32_t line, uint32_t col)
{
	put_word(b, strcmp(file, "-") == 0 ? "(standard input)" : file);
	if (line)
		(void)aqe_buf_addf(b, ":%u:%u", line, col);
	(void)aqe_buf_puts(b, ": ");
}

static void put_result(struct aqe_buf *b, enum hard_result result, unsigned flags)
{
	const bool colour = flags & SHIM_TEXT_COLOUR;

	(void)aqe_buf_addf(b, "%s%s%s", colour ? colour_of(result) : "", hard_result_name(result),
			   colour ? "\033[0m" : "");
}

static void put_finding(struct aqe_buf *b, const struct hard_finding *f)
{
	if (f->pointer[0]) {
		(void)aqe_buf_puts(b, " at ");
		put_word(b, f->pointer);
	}
	(void)aqe_buf_puts(b, f->unknown ? ": cannot tell: " : ": found ");
	(void)aqe_buf_puts(b, f->found); /* quoted where it is foreign */
	(void)aqe_buf_puts(b, ", wanted ");
	(void)aqe_buf_puts(b, f->wanted);
}

const struct hard_finding *shim_finding_of(const struct hard_finding *f, enum hard_prop prop)
{
	while (f && f->prop != prop)
		f = f->next;
	return f;
}

static void put_waiver(struct aqe_buf *b, const struct hard_waiver *w, int64_t now_s)
{
	char until[AQE_TIME_TEXT];

	aqe_time_format(w->expires, until);
	(void)aqe_buf_puts(b, ": ");
	put_word(b, w->reason);
	(void)aqe_buf_puts(b, " (");
	put_word(b, w->owner);
	(void)aqe_buf_addf(b, ", until %s", until);
	if (w->expires - now_s < (int64_t)HARD_WAIVER_WARN_DAYS * 86400)
		(void)aqe_buf_puts(b, ", which is soon");
	(void)aqe_buf_puts(b, ")");
}

/* The line of one property, and with ALL one more for each further finding. */
static void put_property(struct aqe_buf *b, const struct shim_judged *j, enum hard_prop prop,
			 unsigned flags)
{
	const enum hard_result result = j->report->result[prop];
	const struct hard_finding *f = shim_finding_of(j->report->first, prop);
	size_t more = 0;

	put_place(b, j->file, f ? f->line : 0, f ? f->col : 0);
	put_result(b, result, flags);
	(void)aqe_buf_addf(b, " %s", HARDENING_PROFILE[prop].id);
	if (result == HARD_WAIVED && j->report->waiver[prop])
		put_waiver(b, j->report->waiver[prop], j->now_s);
	if (f)
		put_finding(b, f);
	else if (result == HARD_PASS && j->report->declared[prop])
		(void)aqe_buf_addf(b, " (declared only: %s)", j->report->declared[prop]);
	for (const struct hard_finding *g = f ? shim_finding_of(f->next, prop) : NULL; g;
	     g = shim_finding_of(g->next, prop))
		more++;
	if (more && !(flags & SHIM_TEXT_ALL))
		(void)aqe_buf_addf(b, " (and %zu more)", more);
	if (result == HARD_FAIL || result == HARD_UNKNOWN)
		(void)aqe_buf_addf(b, "; fix: %s",
				   f && f->fix ? f->fix : HARDENING_PROFILE[prop].fix);
	(void)aqe_buf_putc(b, '\n');
	for (f = f && (flags & SHIM_TEXT_ALL) ? shim_finding_of(f->next, prop) : NULL; f;
	     f = shim_finding_of(f->next, prop)) {
		put_place(b, j->file, f->line, f->col);
		(void)aqe_buf_addf(b, "  also %s", HARDENING_PROFILE[prop].id);
		put_finding(b, f);
		(void)aqe_buf_putc(b, '\n');
	}
}

/* Declared and effective side by side, where they differ; with ALL everywhere. */
static void put_inspect(struct aqe_buf *b, const struct shim_judged *j, unsigned flags)
{
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++) {
		const enum hard_prop prop = (enum hard_prop)i;
		const enum hard_result said = j->inspect->result[i], is = j->report->result[i];
		const struct hard_finding *f = shim_finding_of(j->inspect->first, prop);

		if (said == is && !(flags & SHIM_TEXT_ALL))
			continue;
		put_place(b, j->file, 0, 0);
		(void)aqe_buf_addf(b, "%s: declared ", HARDENING_PROFILE[i].id);
		put_result(b, said, flags);
		(void)aqe_buf_puts(b, ", effective ");
		put_result(b, is, flags);
		if (f) {
			(void)aqe_buf_puts(b, "; the engine says");
			put_finding(b, f);
		}
		(void)aqe_buf_putc(b, '\n');
	}
	put_place(b, j->file, 0, 0);
	(void)aqe_buf_addf(b, "judged by the shim's record; kernel %s\n", j->kernel);
}

static void put_summary(struct aqe_buf *b, const struct shim_judged *j, unsigned flags)
{
	static const enum hard_result colours[] = {
		[SHIM_VERDICT_CONFORM] = HARD_PASS,
		[SHIM_VERDICT_VIOLATE] = HARD_FAIL,
		[SHIM_VERDICT_MALFORMED] = HARD_FAIL,
		[SHIM_VERDICT_UNKNOWN] = HARD_UNKNOWN,
	};
	const bool colour = flags & SHIM_TEXT_COLOUR;
	unsigned count[4] = { 0 };

	for (unsigned i = 0; i < HARD_PROP_COUNT; i++)
		count[j->report->result[i]]++;
	put_place(b, j->file, 0, 0);
	(void)aqe_buf_addf(b, "%s%s%s", colour ? colour_of(colours[j->verdict]) : "",
			   shim_verdict_name(j->verdict), colour ? "\033[0m" : "");
	if (j->error.code == AQE_OK)
		(void)aqe_buf_addf(b,
				   ": %u of %u properties hold, %u failed, %u undecided, %u waived",
				   count[HARD_PASS], (unsigned)HARD_PROP_COUNT, count[HARD_FAIL],
				   count[HARD_UNKNOWN], count[HARD_WAIVED]);
	(void)aqe_buf_putc(b, '\n');
}

void shim_report_text(const struct shim_judged *j, unsigned flags, struct aqe_buf *b)
{
	if (j->error.code != AQE_OK) {
		put_place(b, j->file, j->error.line, j->error.col);
		(void)aqe_buf_puts(b, j->error.text);
		(void)aqe_buf_putc(b, '\n');
	}
	for (unsigned i = 0; (j->error.code == AQE_OK || j->judged) && i < HARD_PROP_COUNT; i++)
		if (j->report->result[i] != HARD_PASS || (flags & SHIM_TEXT_ALL))
			put_property(b, j, (enum hard_prop)i, flags);
	if (j->inspect && j->kernel)
		put_inspect(b, j, flags);
	put_summary(b, j, flags);
}
