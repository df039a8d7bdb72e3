/* SPDX-License-Identifier: MIT */
/* SARIF 2.1.0 (OASIS, 2020-03-27): one document for all files of a call. A result is one finding;
 * a document that could not be judged is a result too, so that no report is empty by mistake.
 * Columns are counted in bytes, as everywhere here. */
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/clock.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "shim/verify_out.h"
#include "shim/version.h"

#define SCHEMA   "https://json.schemastore.org/sarif-2.1.0.json"
#define TEXT_MAX ((size_t)64 << 10) /* one message */

/* Rules for what is no property: they follow the properties in the list. */
enum { RULE_MALFORMED = HARD_PROP_COUNT, RULE_UNDECIDED, RULE_COUNT };
static const struct {
	const char *id, *is, *fix;
} EXTRA[] = {
	{ "malformed_document", "a well-formed document of a known kind",
	  "write strict JSON with the types of the runtime-spec" },
	{ "undecided_document", "a document that can be read and judged",
	  "make the file readable, and a regular file or standard input" },
};

/* ---- pieces ---- */

static void key(struct aqe_buf *b, const char *name)
{
	(void)aqe_buf_addf(b, "\"%s\":", name); /* our own names */
}

static void text_member(struct aqe_buf *b, const char *name, const char *text)
{
	key(b, name);
	aqe_json_emit_str(b, text);
}

/* "name":{"text":"..."} */
static void message(struct aqe_buf *b, const char *name, const char *text)
{
	key(b, name);
	(void)aqe_buf_putc(b, '{');
	text_member(b, "text", text);
	(void)aqe_buf_putc(b, '}');
}

static void comma(struct aqe_buf *b)
{
	if (b->len && b->p[b->len - 1] != '[')
		(void)aqe_buf_putc(b, ',');
}

/* A path as a URI reference (RFC 3986): everything but unreserved characters and the slash is
 * escaped, so that no path can be read as a scheme, query or fragment. */
static void uri(struct aqe_buf *b, const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~/";

	(void)aqe_buf_putc(b, '"');
	if (path[0] == '/')
		(void)aqe_buf_puts(b, "file://");
	for (; *path; path++) {
		if (strchr(plain, *path))
			(void)aqe_buf_putc(b, *path);
		else
			(void)aqe_buf_addf(b, "%%%02X", (unsigned)(unsigned char)*path);
	}
	(void)aqe_buf_putc(b, '"');
}

/* {"physicalLocation":{...},"logicalLocations":[...]}; line 0: the whole file */
static void location(struct aqe_buf *b, const char *file, uint32_t line, uint32_t col,
		     const char *pointer)
{
	(void)aqe_buf_puts(b, "{\"physicalLocation\":{\"artifactLocation\":{\"uri\":");
	uri(b, strcmp(file, "-") == 0 ? "stdin" : file);
	(void)aqe_buf_putc(b, '}');
	if (line)
		(void)aqe_buf_addf(b, ",\"region\":{\"startLine\":%u", line);
	if (line && col)
		(void)aqe_buf_addf(b, ",\"startColumn\":%u", col);
	(void)aqe_buf_puts(b, line ? "}}" : "}");
	if (pointer && *pointer) {
		(void)aqe_buf_puts(b, ",\"logicalLocations\":[{");
		text_member(b, "fullyQualifiedName", pointer);
		(void)aqe_buf_puts(b, "}]");
	}
	(void)aqe_buf_putc(b, '}');
}

/* ---- rules ---- */

static void rule_help(struct aqe_buf *b, const char *wanted, const char *why, const char *fix)
{
	AQE_AUTO_BUF struct aqe_buf t = AQE_BUF_INIT(TEXT_MAX);

	key(b, "help");
	(void)aqe_buf_addf(&t, "Wanted: %s. %s Fix: %s.", wanted, why, fix);
	(void)aqe_buf_putc(b, '{');
	text_member(b, "text", aqe_buf_str(&t));
	aqe_buf_clear(&t);
	(void)aqe_buf_addf(&t, "**Wanted:** %s.\n\n%s\n\n**Fix:** %s.\n", wanted, why, fix);
	(void)aqe_buf_putc(b, ',');
	text_member(b, "markdown", aqe_buf_str(&t));
	(void)aqe_buf_putc(b, '}');
}

static void rule(struct aqe_buf *b, const char *id, const char *wanted, const char *why,
		 const char *fix)
{
	comma(b);
	(void)aqe_buf_putc(b, '{');
	text_member(b, "id", id);
	(void)aqe_buf_putc(b, ',');
	message(b, "shortDescription", wanted);
	(void)aqe_buf_putc(b, ',');
	message(b, "fullDescription", why);
	(void)aqe_buf_putc(b, ',');
	rule_help(b, wanted, why, fix);
	(void)aqe_buf_puts(b, ",\"defaultConfiguration\":{\"level\":\"error\"},"
			      "\"properties\":{\"tags\":[\"security\"]}}");
}

static void rules(struct aqe_buf *b)
{
	(void)aqe_buf_puts(b, "\"rules\":[");
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++) {
		const struct hard_prop_row *p = &HARDENING_PROFILE[i];

		rule(b, p->id, p->required, p->why, p->fix);
	}
	for (size_t i = 0; i < AQE_COUNT(EXTRA); i++)
		rule(b, EXTRA[i].id, EXTRA[i].is, "What cannot be judged counts as a failure.",
		     EXTRA[i].fix);
	(void)aqe_buf_putc(b, ']');
}

/* ---- results ---- */

static const char *rule_id(unsigned index)
{
	return index < HARD_PROP_COUNT ? HARDENING_PROFILE[index].id
				       : EXTRA[index - HARD_PROP_COUNT].id;
}

static void suppressions(struct aqe_buf *b, const struct hard_waiver *w)
{
	AQE_AUTO_BUF struct aqe_buf t = AQE_BUF_INIT(TEXT_MAX);
	char until[AQE_TIME_TEXT];

	(void)aqe_buf_puts(b, ",\"suppressions\":[");
	if (w) {
		aqe_time_format(w->expires, until);
		(void)aqe_buf_addf(&t, "%s (owner %s, expires %s)", w->reason, w->owner, until);
		(void)aqe_buf_puts(b, "{\"kind\":\"external\",\"status\":\"accepted\",");
		text_member(b, "justification", aqe_buf_str(&t));
		if (w->where.file) {
			(void)aqe_buf_puts(b, ",\"location\":");
			location(b, w->where.file, w->where.line, 0, NULL);
		}
		(void)aqe_buf_putc(b, '}');
	}
	(void)aqe_buf_putc(b, ']');
}

/* Everything up to the message. */
static void result_head(struct aqe_buf *b, unsigned index, const char *kind, const char *level)
{
	comma(b);
	(void)aqe_buf_putc(b, '{');
	text_member(b, "ruleId", rule_id(index));
	(void)aqe_buf_addf(b, ",\"ruleIndex\":%u,\"kind\":\"%s\",\"level\":\"%s\",", index, kind,
			   level);
}

static void result_tail(struct aqe_buf *b, const struct shim_judged *j,
			const struct hard_finding *f, const struct hard_waiver *w)
{
	(void)aqe_buf_puts(b, ",\"locations\":[");
	location(b, j->file, f ? f->line : 0, f ? f->col : 0, f ? f->pointer : NULL);
	(void)aqe_buf_putc(b, ']');
	suppressions(b, w);
	(void)aqe_buf_puts(b, ",\"properties\":{");
	text_member(b, "kind", j->kind);
	(void)aqe_buf_puts(b, "}}");
}

/* `f` NULL: the property was never judged. */
static void finding(struct aqe_buf *b, const struct shim_judged *j, enum hard_prop prop,
		    const struct hard_finding *f)
{
	AQE_AUTO_BUF struct aqe_buf t = AQE_BUF_INIT(TEXT_MAX);
	const struct hard_prop_row *row = &HARDENING_PROFILE[prop];

	result_head(b, prop, "fail", "error");
	(void)aqe_buf_puts(&t, row->id);
	if (f && f->pointer[0])
		(void)aqe_buf_addf(&t, " at %s", f->pointer);
	(void)aqe_buf_addf(&t, ": %s %s, wanted %s; fix: %s",
			   !f || f->unknown ? "cannot tell:" : "found", f ? f->found : "not judged",
			   f ? f->wanted : row->required, f && f->fix ? f->fix : row->fix);
	message(b, "message", aqe_buf_str(&t));
	result_tail(b, j, f,
		    j->report->result[prop] == HARD_WAIVED ? j->report->waiver[prop] : NULL);
}

static void pass(struct aqe_buf *b, const struct shim_judged *j, enum hard_prop prop)
{
	AQE_AUTO_BUF struct aqe_buf t = AQE_BUF_INIT(TEXT_MAX);

	result_head(b, prop, "pass", "none");
	(void)aqe_buf_addf(&t, "%s holds: %s", HARDENING_PROFILE[prop].id,
			   HARDENING_PROFILE[prop].required);
	message(b, "message", aqe_buf_str(&t));
	result_tail(b, j, NULL, NULL);
}

static void notification(struct aqe_buf *b, const char *level, const char *id, const char *text)
{
	comma(b);
	(void)aqe_buf_addf(b, "{\"level\":\"%s\",\"descriptor\":{", level);
	text_member(b, "id", id);
	(void)aqe_buf_puts(b, "},");
	message(b, "message", text);
}

/* The document as a whole: a result, and a notification because the report is incomplete. */
static void unjudged(const struct shim_judged *j, struct aqe_buf *body, struct aqe_buf *notes)
{
	const struct aqe_err *e = &j->error;
	const bool malformed = e->code == AQE_E_MALFORMED || e->code == AQE_E_LIMIT;
	const unsigned index = malformed ? RULE_MALFORMED : RULE_UNDECIDED;

	result_head(body, index, "fail", "error");
	message(body, "message", e->text);
	(void)aqe_buf_puts(body, ",\"locations\":[");
	location(body, j->file, e->line, e->col, NULL);
	(void)aqe_buf_putc(body, ']');
	suppressions(body, NULL);
	(void)aqe_buf_puts(body, ",\"properties\":{");
	text_member(body, "kind", j->kind);
	(void)aqe_buf_puts(body, "}}");
	notification(notes, "error", EXTRA[index - HARD_PROP_COUNT].id, e->text);
	(void)aqe_buf_puts(notes, ",\"locations\":[");
	location(notes, j->file, e->line, e->col, NULL);
	(void)aqe_buf_puts(notes, "]}");
}

void shim_sarif_add(const struct shim_judged *j, bool all, struct aqe_buf *body,
		    struct aqe_buf *notes)
{
	if (j->error.code != AQE_OK) {
		unjudged(j, body, notes);
		if (!j->judged)
			return;
	}
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++) {
		const enum hard_prop prop = (enum hard_prop)i;
		const struct hard_finding *f = shim_finding_of(j->report->first, prop);

		if (j->report->result[i] == HARD_PASS) {
			if (all)
				pass(body, j, prop);
			continue;
		}
		do {
			finding(body, j, prop, f);
			f = f ? shim_finding_of(f->next, prop) : NULL;
		} while (f);
	}
}

/* ---- the document ---- */

static void waiver_notes(const struct shim_waivers *w, struct aqe_buf *b)
{
	const size_t n = w->policy ? w->policy->n_waivers : 0;

	for (size_t i = 0; i < n; i++) {
		AQE_AUTO_BUF struct aqe_buf t = AQE_BUF_INIT(TEXT_MAX);
		const struct hard_waiver *row = &w->policy->waivers[i];
		const enum shim_waiver_state state = shim_waivers_state(w, i);

		if (state == SHIM_WAIVER_QUIET)
			continue;
		shim_waiver_text(row, state, &t);
		notification(b, "warning", shim_waiver_name(state), aqe_buf_str(&t));
		(void)aqe_buf_puts(b, ",\"associatedRule\":{");
		text_member(b, "id", rule_id(row->prop));
		(void)aqe_buf_addf(b, ",\"index\":%u}", (unsigned)row->prop);
		if (row->where.file) {
			(void)aqe_buf_puts(b, ",\"locations\":[");
			location(b, row->where.file, row->where.line, 0, NULL);
			(void)aqe_buf_putc(b, ']');
		}
		(void)aqe_buf_putc(b, '}');
	}
}

static void tool(struct aqe_buf *b)
{
	static const struct {
		const char *id, *is;
	} notes[] = {
		{ "malformed_document", "A document is not well-formed; it was not judged." },
		{ "undecided_document", "A document could not be read or judged." },
		{ "waiver_expired", "A waiver of the policy has expired and counts as absent." },
		{ "waiver_clock", "The clock was set back: the policy's waivers count as absent." },
		{ "waiver_soon", "A waiver of the policy is in use and expires soon." },
		{ "waiver_unused", "A waiver of the policy is for a property that holds." },
	};

	(void)aqe_buf_puts(b,
			   "\"tool\":{\"driver\":{\"name\":\"aqe-shim\",\"version\":\"" SHIM_VERSION
			   "\",\"semanticVersion\":\"" SHIM_VERSION "\",");
	rules(b);
	(void)aqe_buf_puts(b, ",\"notifications\":[");
	for (size_t i = 0; i < AQE_COUNT(notes); i++) {
		comma(b);
		(void)aqe_buf_putc(b, '{');
		text_member(b, "id", notes[i].id);
		(void)aqe_buf_putc(b, ',');
		message(b, "shortDescription", notes[i].is);
		(void)aqe_buf_putc(b, '}');
	}
	(void)aqe_buf_puts(b, "]}}");
}

void shim_sarif_end(const struct shim_out *o, enum shim_exit status, struct aqe_buf *b)
{
	const bool done = status == SHIM_EXIT_OK || status == SHIM_EXIT_FAILED;

	(void)aqe_buf_puts(b, "{\"$schema\":\"" SCHEMA "\",\"version\":\"2.1.0\",\"runs\":[{");
	tool(b);
	(void)aqe_buf_puts(b, ",\"results\":[");
	(void)aqe_buf_add(b, aqe_buf_str(&o->body), o->body.len);
	(void)aqe_buf_addf(b, "],\"invocations\":[{\"executionSuccessful\":%s,\"exitCode\":%d,",
			   done ? "true" : "false", (int)status);
	(void)aqe_buf_puts(b, "\"toolExecutionNotifications\":[");
	(void)aqe_buf_add(b, aqe_buf_str(&o->notes), o->notes.len);
	(void)aqe_buf_puts(b, "],\"toolConfigurationNotifications\":[");
	waiver_notes(&o->waivers, b);
	(void)aqe_buf_puts(b, "]}]}]}\n");
}
