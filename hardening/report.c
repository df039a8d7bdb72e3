/* SPDX-License-Identifier: MIT */
#include "hardening/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define FINDINGS_MAX 256
/* Longest text of one finding and of its pointer; documents are foreign and may be long. */
#define FOUND_MAX   512
#define POINTER_MAX 512
/* A refusal: podman reads it through a buffer that garbles much longer text (engines.md section
 * 2). A line keeps room for the count of what was left out. */
#define REFUSAL_MAX      2000
#define REFUSAL_TAIL     64
#define REFUSAL_PER_PROP 2

/* Engines look for these in a runtime's message and then say something else, or only that line. */
static const char *const PHRASES[] = {
	"permission denied",
	"operation not permitted",
	"no such file or directory",
	"executable file not found",
	"open executable",
	"not a directory",
	"is a directory",
	"no such process",
	"does not exist",
	"process already finished",
	"container not running",
	"invalid process",
};

void hard_report_init(struct hard_report *r, struct aqe_arena *arena)
{
	*r = (struct hard_report){ .arena = arena };
}

/* Cuts a string so that it ends with a whole UTF-8 character. */
static void trim_utf8(char *s)
{
	size_t bad = 0;

	if (!aqe_utf8_ok(s, strlen(s), &bad))
		s[bad] = '\0';
}

static const char *pointer_of(struct hard_report *r, const struct aqe_json *at, const char *pointer)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(POINTER_MAX);

	if (at)
		aqe_json_pointer(at, &b);
	if (pointer)
		(void)aqe_buf_puts(&b, pointer);
	if (b.failed == AQE_E_LIMIT) { /* too long to show: the property and place must do */
		aqe_buf_clear(&b);
		(void)aqe_buf_puts(&b, "/...");
	}
	return b.failed ? NULL : aqe_arena_dup(r->arena, aqe_buf_str(&b));
}

static struct hard_finding *add(struct hard_report *r, enum hard_prop prop,
				const struct aqe_json *at, const char *pointer)
{
	struct hard_finding *f;

	r->waiver[prop] = NULL;
	if (r->n_findings >= FINDINGS_MAX)
		return NULL; /* the result is set all the same */
	f = aqe_arena_alloc(r->arena, sizeof(*f));
	if (f)
		f->pointer = pointer_of(r, at, pointer);
	if (!f || !f->pointer) {
		r->nomem = true;
		return NULL;
	}
	f->prop = prop;
	f->line = at ? at->line : 0;
	f->col = at ? at->col : 0;
	return f;
}

AQE_PRINTF(4, 0)
static void fill(struct hard_report *r, struct hard_finding *f, const char *wanted, const char *fmt,
		 va_list ap)
{
	char found[FOUND_MAX];

	if (vsnprintf(found, sizeof(found), fmt, ap) < 0)
		found[0] = '\0';
	trim_utf8(found);
	f->found = aqe_arena_dup(r->arena, found);
	f->wanted = aqe_arena_dup(r->arena, wanted ? wanted : HARDENING_PROFILE[f->prop].required);
	if (!f->found || !f->wanted) {
		r->nomem = true;
		return;
	}
	if (r->last)
		r->last->next = f;
	else
		r->first = f;
	r->last = f;
	r->n_findings++;
}

void hard_report_fail(struct hard_report *r, enum hard_prop prop, const struct aqe_json *at,
		      const char *pointer, const char *wanted, const char *found_fmt, ...)
{
	struct hard_finding *f = add(r, prop, at, pointer);
	va_list ap;

	r->result[prop] = HARD_FAIL;
	if (!f)
		return;
	va_start(ap, found_fmt);
	fill(r, f, wanted, found_fmt, ap);
	va_end(ap);
}

void hard_report_unknown(struct hard_report *r, enum hard_prop prop, const char *pointer,
			 const char *wanted, const char *found_fmt, ...)
{
	struct hard_finding *f = add(r, prop, NULL, pointer);
	va_list ap;

	r->undecided[prop] = true;
	if (r->result[prop] != HARD_FAIL)
		r->result[prop] = HARD_UNKNOWN;
	if (!f)
		return;
	f->unknown = true;
	va_start(ap, found_fmt);
	fill(r, f, wanted, found_fmt, ap);
	va_end(ap);
}

void hard_report_fix(struct hard_report *r, const char *fix)
{
	const char *copy = r->last ? aqe_arena_dup(r->arena, fix) : NULL;

	if (copy)
		r->last->fix = copy;
	else
		r->nomem = r->nomem || r->last;
}

void hard_report_pass(struct hard_report *r, enum hard_prop prop)
{
	if (r->result[prop] == HARD_UNKNOWN && !r->undecided[prop])
		r->result[prop] = HARD_PASS;
}

void hard_report_waive(struct hard_report *r, const struct hard_policy *p, const char *agent_type,
		       const struct hard_image *image, int64_t now_s)
{
	r->waivers_asked = true;
	r->waivers_type = agent_type;
	r->waivers_image = image;
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++) {
		const struct hard_waiver *w;

		if (!HARDENING_PROFILE[i].waivable)
			continue;
		if (r->result[i] != HARD_FAIL && r->result[i] != HARD_UNKNOWN)
			continue;
		w = hard_policy_waiver(p, (enum hard_prop)i, agent_type, image, now_s);
		if (!w)
			continue;
		r->waiver[i] = w;
		r->result[i] = HARD_WAIVED;
	}
}

bool hard_report_ok(const struct hard_report *r)
{
	bool ok = !r->nomem;

	for (unsigned i = 0; i < HARD_PROP_COUNT; i++)
		ok = ok && (r->result[i] == HARD_PASS || r->result[i] == HARD_WAIVED);
	return ok;
}

static bool failed(const struct hard_report *r, unsigned prop)
{
	return r->result[prop] == HARD_FAIL || r->result[prop] == HARD_UNKNOWN;
}

/* The next finding of `prop` at or after `f`. */
static const struct hard_finding *finding_of(const struct hard_finding *f, unsigned prop)
{
	while (f && f->prop != prop)
		f = f->next;
	return f;
}

const struct hard_finding *hard_report_worst(const struct hard_report *r)
{
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++) {
		const struct hard_finding *f = finding_of(r->first, i);

		if (failed(r, i) && f)
			return f;
	}
	return NULL;
}

/* Makes foreign words harmless: no control characters, no backquotes (podman's `/proc/.../attr`
 * pattern), and a hyphen in every phrase that an engine would take for its own. */
static void defuse(char *s)
{
	for (char *p = s; *p; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
		else if (*p == '`')
			*p = '\'';
	}
	for (size_t i = 0; i < AQE_COUNT(PHRASES); i++) {
		for (char *p = strcasestr(s, PHRASES[i]); p; p = strcasestr(p, PHRASES[i]))
			p[strcspn(p, " ")] = '-'; /* every phrase has a blank */
	}
}

/* One line of a refusal; `f` NULL: the property was never judged. */
static void refusal_line(struct aqe_buf *b, unsigned prop, const struct hard_finding *f)
{
	const struct hard_prop_row *row = &HARDENING_PROFILE[prop];

	(void)aqe_buf_addf(b, "refused: %s", row->id);
	if (!f) {
		(void)aqe_buf_addf(b, ": not decided, wanted %s; fix: %s", row->required, row->fix);
		return;
	}
	if (f->pointer[0])
		(void)aqe_buf_addf(b, " at %s", f->pointer);
	(void)aqe_buf_addf(b, ": %s %s, wanted %s; fix: %s", f->unknown ? "not decided:" : "found",
			   f->found, f->wanted, f->fix ? f->fix : row->fix);
}

/* Adds a line to `all` if it fits. */
static bool add_line(struct aqe_buf *all, unsigned prop, const struct hard_finding *f)
{
	AQE_AUTO_BUF struct aqe_buf line = AQE_BUF_INIT((size_t)2 * REFUSAL_MAX);

	refusal_line(&line, prop, f);
	if (line.failed || !line.p)
		return false;
	defuse(line.p);
	if (all->len + line.len + 1 > REFUSAL_MAX - REFUSAL_TAIL) {
		if (all->len)
			return false;
		line.p[REFUSAL_MAX - REFUSAL_TAIL] = '\0'; /* alone and still too long */
		trim_utf8(line.p);
	}
	if (all->len)
		(void)aqe_buf_putc(all, '\n');
	(void)aqe_buf_puts(all, line.p);
	return true;
}

/* The findings of one property; returns how many of them found no room. */
static size_t refusal_prop(struct aqe_buf *all, const struct hard_report *r, unsigned prop)
{
	const struct hard_finding *f = finding_of(r->first, prop);
	size_t shown = 0, dropped = 0;

	if (!f)
		return add_line(all, prop, NULL) ? 0 : 1;
	for (; f; f = finding_of(f->next, prop)) {
		if (shown < REFUSAL_PER_PROP && add_line(all, prop, f))
			shown++;
		else
			dropped++;
	}
	return dropped;
}

void hard_report_refusal(const struct hard_report *r, struct aqe_buf *b)
{
	AQE_AUTO_BUF struct aqe_buf all = AQE_BUF_INIT(REFUSAL_MAX);
	size_t dropped = 0;

	if (r->nomem)
		(void)aqe_buf_puts(&all, "refused: out of memory while judging the container");
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++) {
		if (failed(r, i))
			dropped += refusal_prop(&all, r, i);
	}
	if (dropped)
		(void)aqe_buf_addf(&all, "\n(and %zu more findings)", dropped);
	if (!all.p || all.failed) {
		(void)aqe_buf_puts(b, "refused: out of memory");
		return;
	}
	(void)aqe_buf_puts(b, all.p);
}

const char *hard_result_name(enum hard_result result)
{
	static const char *const names[] = {
		[HARD_UNKNOWN] = "unknown",
		[HARD_FAIL] = "fail",
		[HARD_WAIVED] = "waived",
		[HARD_PASS] = "pass",
	};

	return (size_t)result < AQE_COUNT(names) ? names[result] : "unknown";
}
