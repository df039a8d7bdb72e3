/* SPDX-License-Identifier: MIT */
#include "shim/verdict.h"

#include "shim/core/cleanup.h"
#include "shim/core/clock.h"
#include "shim/core/json.h"

#define FORMAT_VERSION 1
#define WARNING_MAX    4096

static void put_key(struct aqe_buf *b, const char *key)
{
	aqe_json_emit_str(b, key);
	(void)aqe_buf_putc(b, ':');
}

/* "key":"value", with a comma in front. NULL is null. */
static void put_member(struct aqe_buf *b, const char *key, const char *value)
{
	(void)aqe_buf_putc(b, ',');
	put_key(b, key);
	if (value)
		aqe_json_emit_str(b, value);
	else
		(void)aqe_buf_puts(b, "null");
}

static void put_place(struct aqe_buf *b, uint32_t line, uint32_t col)
{
	if (line)
		(void)aqe_buf_addf(b, ",\"line\":%u,\"column\":%u", line, col);
}

/* The findings after the first, which stands in the property itself. */
static void put_more(struct aqe_buf *b, const struct hard_finding *f, enum hard_prop prop)
{
	const char *comma = "";

	f = f ? shim_finding_of(f->next, prop) : NULL;
	if (!f)
		return;
	(void)aqe_buf_puts(b, ",\"more\":[");
	for (; f; f = shim_finding_of(f->next, prop)) {
		(void)aqe_buf_puts(b, comma);
		comma = ",";
		(void)aqe_buf_puts(b, "{\"pointer\":");
		aqe_json_emit_str(b, f->pointer);
		put_place(b, f->line, f->col);
		put_member(b, "expected", f->wanted);
		put_member(b, "found", f->found);
		(void)aqe_buf_putc(b, '}');
	}
	(void)aqe_buf_putc(b, ']');
}

static void put_waiver(struct aqe_buf *b, const struct hard_waiver *w)
{
	char until[AQE_TIME_TEXT];

	aqe_time_format(w->expires, until);
	(void)aqe_buf_puts(b, ",\"waiver\":{\"reason\":");
	aqe_json_emit_str(b, w->reason);
	put_member(b, "owner", w->owner);
	put_member(b, "expires", until);
	put_member(b, "file", w->where.file);
	(void)aqe_buf_addf(b, ",\"line\":%u}", w->where.line);
}

/* What the engine's inspect says about the same property. */
static void put_inspect(struct aqe_buf *b, const struct hard_report *r, enum hard_prop prop)
{
	const struct hard_finding *f = shim_finding_of(r->first, prop);

	(void)aqe_buf_puts(b, ",\"inspect\":{\"result\":");
	aqe_json_emit_str(b, hard_result_name(r->result[prop]));
	put_member(b, "pointer", f ? f->pointer : NULL);
	put_member(b, "found", f ? f->found : NULL);
	(void)aqe_buf_putc(b, '}');
}

static void put_property(struct aqe_buf *b, const struct shim_judged *j, enum hard_prop prop)
{
	const struct hard_report *r = j->report;
	const struct hard_prop_row *row = &HARDENING_PROFILE[prop];
	const struct hard_finding *f = shim_finding_of(r->first, prop);

	(void)aqe_buf_puts(b, "{\"id\":");
	aqe_json_emit_str(b, row->id);
	put_member(b, "result", hard_result_name(r->result[prop]));
	put_member(b, "pointer", f ? f->pointer : NULL);
	if (f)
		put_place(b, f->line, f->col);
	put_member(b, "expected", f ? f->wanted : row->required);
	put_member(b, "found", f ? f->found : NULL);
	put_member(b, "why", row->why);
	put_member(b, "fix", f && f->fix ? f->fix : row->fix);
	if (r->result[prop] == HARD_WAIVED && r->waiver[prop])
		put_waiver(b, r->waiver[prop]);
	if (r->result[prop] == HARD_PASS && r->declared[prop])
		put_member(b, "declared", r->declared[prop]);
	if (j->inspect)
		put_inspect(b, j->inspect, prop);
	put_more(b, f, prop);
	(void)aqe_buf_putc(b, '}');
}

static void put_warnings(struct aqe_buf *b, const struct shim_waivers *list)
{
	const size_t n = list && list->policy ? list->policy->n_waivers : 0;
	const char *comma = "";

	(void)aqe_buf_puts(b, ",\"warnings\":[");
	for (size_t i = 0; i < n; i++) {
		AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(WARNING_MAX);
		const struct hard_waiver *w = &list->policy->waivers[i];
		const enum shim_waiver_state state = shim_waivers_state(list, i);

		if (state == SHIM_WAIVER_QUIET)
			continue;
		(void)aqe_buf_addf(b, "%s{\"id\":\"%s\"", comma, shim_waiver_name(state));
		comma = ",";
		shim_waiver_text(w, state, &text);
		put_member(b, "property", HARDENING_PROFILE[w->prop].id);
		put_member(b, "text", aqe_buf_str(&text));
		put_member(b, "file", w->where.file);
		(void)aqe_buf_addf(b, ",\"line\":%u}", w->where.line);
	}
	(void)aqe_buf_putc(b, ']');
}

void shim_report_json(const struct shim_judged *j, const struct shim_waivers *list,
		      struct aqe_buf *b)
{
	(void)aqe_buf_addf(b, "{\"version\":%d", FORMAT_VERSION);
	put_member(b, "file", j->file);
	put_member(b, "kind", j->kind);
	if (j->dialect)
		put_member(b, "dialect", j->dialect);
	if (j->kernel)
		put_member(b, "kernel", j->kernel);
	put_member(b, "verdict", shim_verdict_name(j->verdict));
	if (j->error.code != AQE_OK) {
		(void)aqe_buf_puts(b, ",\"error\":{\"code\":");
		aqe_json_emit_str(b, aqe_code_name(j->error.code));
		put_member(b, "text", j->error.text);
		put_place(b, j->error.line, j->error.col);
		(void)aqe_buf_putc(b, '}');
	}
	(void)aqe_buf_puts(b, ",\"properties\":[");
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++) {
		if (i)
			(void)aqe_buf_putc(b, ',');
		put_property(b, j, (enum hard_prop)i);
	}
	(void)aqe_buf_putc(b, ']');
	put_warnings(b, list);
	(void)aqe_buf_puts(b, "}\n");
}
