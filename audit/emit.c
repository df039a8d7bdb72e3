/* SPDX-License-Identifier: MIT */
#include "audit/emit.h"

#include <stdio.h>
#include <string.h>

#include "audit/export.h"
#include "audit/sign.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define TIME_NAME "time" /* of time_ns in texts, as RFC 3339 */

static const char *const FORMATS[AUDIT_FORMAT_COUNT] = {
	[AUDIT_JSONL] = "jsonl",
	[AUDIT_JSON] = "json",
	[AUDIT_CSV] = "csv",
	[AUDIT_OCSF] = "ocsf",
};

const char *audit_format_name(enum audit_format f)
{
	return (unsigned)f < AUDIT_FORMAT_COUNT ? FORMATS[f] : "?";
}

bool audit_format_parse(const char *text, enum audit_format *ret)
{
	for (unsigned i = 0; text && i < AUDIT_FORMAT_COUNT; i++) {
		if (strcmp(text, FORMATS[i]) == 0) {
			*ret = (enum audit_format)i;
			return true;
		}
	}
	return false;
}

static const char *name_of(const struct audit_field *f)
{
	return f->type == AUDIT_FIELD_TIME ? TIME_NAME : f->name;
}

/* ---- JSON ---- */

static void json_value(const struct audit_row *r, const struct audit_field *f, struct aqe_buf *b)
{
	char time[AUDIT_TIME_TEXT];

	switch (f->type) {
	case AUDIT_FIELD_TIME:
		audit_time_format(audit_field_int(r, f), time);
		aqe_buf_addf(b, "\"%s\"", time);
		return;
	case AUDIT_FIELD_NUMBER:
		aqe_buf_addf(b, "%lld", (long long)audit_field_int(r, f));
		return;
	case AUDIT_FIELD_KIND:
		aqe_buf_addf(b, "\"%s\"", audit_kind_name(r->kind));
		return;
	case AUDIT_FIELD_ACTION:
		aqe_buf_addf(b, "\"%s\"", audit_action_name(r->action));
		return;
	case AUDIT_FIELD_TEXT:
		aqe_json_emit_str(b, audit_field_text(r, f));
		return;
	case AUDIT_FIELD_JSON:
		aqe_buf_puts(b, audit_field_text(r, f)); /* is an object already */
		return;
	}
}

static bool is_there(const struct audit_row *r, const struct audit_field *f)
{
	if (f->type == AUDIT_FIELD_TEXT || f->type == AUDIT_FIELD_JSON)
		return audit_field_text(r, f);
	return audit_field_int(r, f) != AUDIT_NONE;
}

void audit_row_json_after(const struct audit_row *r, const uint8_t *prev, struct aqe_buf *b)
{
	char hex[65];
	char sep = '{';

	for (size_t i = 0; i < AUDIT_FIELDS_COUNT; i++) {
		const struct audit_field *f = &AUDIT_FIELDS[i];

		if (!is_there(r, f))
			continue;
		aqe_buf_addf(b, "%c\"%s\":", sep, name_of(f));
		json_value(r, f, b);
		sep = ',';
	}
	if (prev) {
		audit_hex(prev, 32, hex);
		aqe_buf_addf(b, ",\"prev\":\"%s\"", hex);
	}
	audit_hex(r->hash, 32, hex);
	aqe_buf_addf(b, ",\"hash\":\"%s\"}", hex);
}

void audit_row_json(const struct audit_row *r, struct aqe_buf *b)
{
	audit_row_json_after(r, NULL, b);
}

/* ---- CSV (RFC 4180) ---- */

/* A cell that begins like this is a formula to a spreadsheet, and the text may be an attacker's. */
static bool is_formula(const char *v)
{
	return v[0] && strchr("=+-@\t\r", v[0]);
}

static void csv_text(const char *v, struct aqe_buf *b)
{
	bool formula = is_formula(v);

	if (!formula && !v[strcspn(v, ",\"\r\n")]) {
		aqe_buf_puts(b, v);
		return;
	}
	aqe_buf_puts(b, formula ? "\"'" : "\"");
	for (; *v; v++) {
		if (*v == '"')
			aqe_buf_putc(b, '"');
		aqe_buf_putc(b, *v);
	}
	aqe_buf_putc(b, '"');
}

void audit_csv_heading(struct aqe_buf *b)
{
	for (size_t i = 0; i < AUDIT_FIELDS_COUNT; i++)
		aqe_buf_addf(b, "%s,", name_of(&AUDIT_FIELDS[i]));
	aqe_buf_puts(b, "hash");
}

void audit_row_csv(const struct audit_row *r, struct aqe_buf *b)
{
	char text[AUDIT_TIME_TEXT], hex[65];

	for (size_t i = 0; i < AUDIT_FIELDS_COUNT; i++) {
		const struct audit_field *f = &AUDIT_FIELDS[i];

		if (!is_there(r, f)) {
			/* an empty cell */
		} else if (f->type == AUDIT_FIELD_TEXT || f->type == AUDIT_FIELD_JSON) {
			csv_text(audit_field_text(r, f), b);
		} else if (f->type == AUDIT_FIELD_TIME) {
			audit_time_format(audit_field_int(r, f), text);
			aqe_buf_puts(b, text);
		} else if (f->type == AUDIT_FIELD_NUMBER) {
			aqe_buf_addf(b, "%lld", (long long)audit_field_int(r, f));
		} else {
			aqe_buf_puts(b, f->type == AUDIT_FIELD_KIND ? audit_kind_name(r->kind)
								    : audit_action_name(r->action));
		}
		aqe_buf_putc(b, ',');
	}
	audit_hex(r->hash, 32, hex);
	aqe_buf_puts(b, hex);
}

/* ---- reading ---- */

static bool parse_hash(const struct aqe_json *v, uint8_t ret[32])
{
	const char *text = aqe_json_str(v);

	return text && strlen(text) == 64 && audit_unhex(text, 32, ret);
}

static int parse_object(struct aqe_arena *a, const struct aqe_json *v, const char **ret,
			struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(AUDIT_META_MAX);

	if (v->type != AQE_JSON_OBJECT)
		return AQE_E_MALFORMED;
	if (aqe_json_emit(v, AQE_JSON_COMPACT, &b, e) != 0)
		return b.failed ? b.failed : AQE_E_MALFORMED;
	*ret = aqe_arena_ndup(a, b.p, b.len);
	return *ret ? AQE_OK : AQE_E_NOMEM;
}

/* A value of a field into the row; false when it is none. */
static bool parse_plain(const struct audit_field *f, const struct aqe_json *v, struct audit_row *r)
{
	const char *text = aqe_json_str(v);
	int64_t n;

	switch (f->type) {
	case AUDIT_FIELD_TIME:
		if (!audit_time_parse(text, &n) || strlen(text) != AUDIT_TIME_TEXT - 1)
			return false;
		break;
	case AUDIT_FIELD_NUMBER:
		if (!aqe_json_to_i64(v, 0, f->max, &n))
			return false;
		break;
	case AUDIT_FIELD_KIND:
		return audit_kind_parse(text, &r->kind);
	case AUDIT_FIELD_ACTION:
		return audit_action_parse(text, &r->action);
	case AUDIT_FIELD_TEXT:
		if (!text || v->len > (size_t)f->max)
			return false;
		audit_field_set_text(r, f, text);
		return true;
	case AUDIT_FIELD_JSON:
		return false; /* by parse_object() */
	}
	audit_field_set_int(r, f, n);
	return true;
}

static const struct audit_field *field_named(const char *name)
{
	for (size_t i = 0; i < AUDIT_FIELDS_COUNT; i++) {
		if (strcmp(name, name_of(&AUDIT_FIELDS[i])) == 0)
			return &AUDIT_FIELDS[i];
	}
	return NULL;
}

static int bad_member(const struct aqe_json *v, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf shown = AQE_BUF_INIT(256);

	aqe_buf_quote(&shown, v->key ? v->key : "", 64);
	return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col, "'%s' is no field of a row",
			  aqe_buf_str(&shown));
}

static int parse_member(struct aqe_arena *a, const struct aqe_json *v, struct audit_row *r,
			struct aqe_err *e)
{
	const struct audit_field *f = field_named(v->key);
	const char *text = NULL;
	int rc;

	if (!f)
		return bad_member(v, e);
	if (f->type != AUDIT_FIELD_JSON)
		return parse_plain(f, v, r) ? AQE_OK : bad_member(v, e);
	rc = parse_object(a, v, &text, e);
	if (rc == AQE_E_NOMEM)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	if (rc)
		return bad_member(v, e);
	audit_field_set_text(r, f, text);
	return AQE_OK;
}

int audit_row_parse(struct aqe_arena *a, const struct aqe_json *obj, struct audit_row *ret,
		    uint8_t ret_prev[32], bool *ret_has_prev, struct aqe_err *e)
{
	struct audit_row r = AUDIT_ROW_INIT(AUDIT_KIND_ANY, AUDIT_ACTION_ANY);
	const struct aqe_json *hash = aqe_json_get(obj, "hash"), *prev = aqe_json_get(obj, "prev");
	int rc;

	r.seq = AUDIT_NONE;
	r.time_ns = AUDIT_NONE;
	if (!obj || obj->type != AQE_JSON_OBJECT || !parse_hash(hash, r.hash) ||
	    (prev && !parse_hash(prev, ret_prev)))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "not a row: no 'hash', or a bad one");
	for (const struct aqe_json *v = obj->first; v; v = v->next) {
		if (v == hash || v == prev)
			continue;
		rc = parse_member(a, v, &r, e);
		if (rc)
			return rc;
	}
	if (r.seq < 1 || r.time_ns < 0 || !r.kind || !r.action)
		return aqe_err_set(e, AQE_E_MALFORMED, 0,
				   "not a row: 'seq', 'time', 'kind' or 'action' is missing");
	*ret = r;
	*ret_has_prev = prev;
	return AQE_OK;
}
