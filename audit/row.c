/* SPDX-License-Identifier: MIT */
#include "audit/row.h"

#include <stdio.h>
#include <string.h>

#include "shim/core/clock.h"
#include "shim/core/text.h"

#define NS_PER_S INT64_C(1000000000)

_Static_assert(sizeof(enum audit_kind) == sizeof(int), "enums are read and written as int");
_Static_assert(sizeof(enum audit_action) == sizeof(int), "enums are read and written as int");

static const char *const KINDS[AUDIT_KIND_COUNT] = {
	[AUDIT_START] = "start",     [AUDIT_EXEC] = "exec",     [AUDIT_UPDATE] = "update",
	[AUDIT_RESTORE] = "restore", [AUDIT_STOP] = "stop",     [AUDIT_REFUSAL] = "refusal",
	[AUDIT_REQUEST] = "request", [AUDIT_POLICY] = "policy", [AUDIT_WAIVER] = "waiver",
	[AUDIT_SYSTEM] = "system",
};
static const char *const ACTIONS[AUDIT_ACTION_COUNT] = {
	[AUDIT_ALLOWED] = "allowed",           [AUDIT_BLOCKED] = "blocked",
	[AUDIT_RATE_LIMITED] = "rate_limited", [AUDIT_REFUSED] = "refused",
	[AUDIT_CHANGED] = "changed",
};

/* clang-format off: one field a line */
#define AT(member) offsetof(struct audit_row, member)
const struct audit_field AUDIT_FIELDS[AUDIT_FIELDS_COUNT] = {
	{ "seq", AUDIT_FIELD_NUMBER, AT(seq), INT64_MAX },
	{ "time_ns", AUDIT_FIELD_TIME, AT(time_ns), INT64_MAX },
	{ "boot_ns", AUDIT_FIELD_NUMBER, AT(boot_ns), INT64_MAX },
	{ "kind", AUDIT_FIELD_KIND, AT(kind), AUDIT_KIND_COUNT - 1 },
	{ "action", AUDIT_FIELD_ACTION, AT(action), AUDIT_ACTION_COUNT - 1 },
	{ "container", AUDIT_FIELD_TEXT, AT(container), AUDIT_ID_MAX },
	{ "agent_id", AUDIT_FIELD_TEXT, AT(agent_id), AUDIT_ID_MAX },
	{ "agent_type", AUDIT_FIELD_TEXT, AT(agent_type), AUDIT_WORD_MAX },
	{ "image", AUDIT_FIELD_TEXT, AT(image), AUDIT_ID_MAX },
	{ "domain", AUDIT_FIELD_TEXT, AT(domain), AUDIT_ID_MAX },
	{ "port", AUDIT_FIELD_NUMBER, AT(port), 65535 },
	{ "method", AUDIT_FIELD_TEXT, AT(method), AUDIT_WORD_MAX },
	{ "path", AUDIT_FIELD_TEXT, AT(path), AUDIT_PATH_MAX },
	{ "reason", AUDIT_FIELD_TEXT, AT(reason), AUDIT_REASON_MAX },
	{ "rule", AUDIT_FIELD_TEXT, AT(rule), AUDIT_ID_MAX },
	{ "status", AUDIT_FIELD_NUMBER, AT(status), INT64_MAX },
	{ "response_ns", AUDIT_FIELD_NUMBER, AT(response_ns), INT64_MAX },
	{ "duration_ns", AUDIT_FIELD_NUMBER, AT(duration_ns), INT64_MAX },
	{ "bytes_in", AUDIT_FIELD_NUMBER, AT(bytes_in), INT64_MAX },
	{ "bytes_out", AUDIT_FIELD_NUMBER, AT(bytes_out), INT64_MAX },
	{ "policy", AUDIT_FIELD_TEXT, AT(policy), AUDIT_ID_MAX },
	{ "waiver", AUDIT_FIELD_TEXT, AT(waiver), AUDIT_ID_MAX },
	{ "meta", AUDIT_FIELD_JSON, AT(meta), AUDIT_META_MAX },
};
#undef AT
/* clang-format on */

const char *audit_kind_name(enum audit_kind k)
{
	return (unsigned)k < AUDIT_KIND_COUNT && KINDS[k] ? KINDS[k] : "?";
}

const char *audit_action_name(enum audit_action a)
{
	return (unsigned)a < AUDIT_ACTION_COUNT && ACTIONS[a] ? ACTIONS[a] : "?";
}

bool audit_kind_parse(const char *text, enum audit_kind *ret)
{
	for (int k = 1; text && k < AUDIT_KIND_COUNT; k++) {
		if (strcmp(text, KINDS[k]) == 0) {
			*ret = (enum audit_kind)k;
			return true;
		}
	}
	return false;
}

bool audit_action_parse(const char *text, enum audit_action *ret)
{
	for (int a = 1; text && a < AUDIT_ACTION_COUNT; a++) {
		if (strcmp(text, ACTIONS[a]) == 0) {
			*ret = (enum audit_action)a;
			return true;
		}
	}
	return false;
}

/* ---- access by table ---- */

const char *audit_field_text(const struct audit_row *r, const struct audit_field *f)
{
	const char *v;

	memcpy(&v, (const char *)r + f->offset, sizeof(v));
	return v;
}

int64_t audit_field_int(const struct audit_row *r, const struct audit_field *f)
{
	int64_t v;
	int small;

	if (f->type == AUDIT_FIELD_KIND || f->type == AUDIT_FIELD_ACTION) {
		memcpy(&small, (const char *)r + f->offset, sizeof(small));
		return small;
	}
	memcpy(&v, (const char *)r + f->offset, sizeof(v));
	return v;
}

void audit_field_set_text(struct audit_row *r, const struct audit_field *f, const char *v)
{
	memcpy((char *)r + f->offset, &v, sizeof(v));
}

void audit_field_set_int(struct audit_row *r, const struct audit_field *f, int64_t v)
{
	int small = (int)v;

	if (f->type == AUDIT_FIELD_KIND || f->type == AUDIT_FIELD_ACTION)
		memcpy((char *)r + f->offset, &small, sizeof(small));
	else
		memcpy((char *)r + f->offset, &v, sizeof(v));
}

static bool is_text(const struct audit_field *f)
{
	return f->type == AUDIT_FIELD_TEXT || f->type == AUDIT_FIELD_JSON;
}

/* ---- checks ---- */

static bool action_fits(enum audit_kind k, enum audit_action a)
{
	if (a == AUDIT_BLOCKED || a == AUDIT_RATE_LIMITED)
		return k == AUDIT_REQUEST;
	return a == AUDIT_ALLOWED || k != AUDIT_REQUEST;
}

static int check_text(const struct audit_field *f, const char *v, struct aqe_err *e)
{
	size_t n = strnlen(v, (size_t)f->max + 1), bad;

	if (n > (size_t)f->max)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "audit row: '%s' is longer than %lld bytes",
				   f->name, (long long)f->max);
	if (!aqe_utf8_ok(v, n, &bad))
		return aqe_err_set(e, AQE_E_MALFORMED, 0,
				   "audit row: '%s' is not UTF-8 at byte %zu", f->name, bad);
	return AQE_OK;
}

static int check_int(const struct audit_field *f, int64_t v, struct aqe_err *e)
{
	bool enumerated = f->type == AUDIT_FIELD_KIND || f->type == AUDIT_FIELD_ACTION;

	if (v >= (enumerated ? 1 : f->type == AUDIT_FIELD_NUMBER ? AUDIT_NONE : 0) && v <= f->max)
		return AQE_OK;
	return aqe_err_set(e, AQE_E_LIMIT, 0, "audit row: '%s' is out of range", f->name);
}

int audit_row_check(const struct audit_row *r, struct aqe_err *e)
{
	for (size_t i = 0; i < AUDIT_FIELDS_COUNT; i++) {
		const struct audit_field *f = &AUDIT_FIELDS[i];
		const char *text = is_text(f) ? audit_field_text(r, f) : NULL;
		int rc = AQE_OK;

		if (text)
			rc = check_text(f, text, e);
		else if (!is_text(f))
			rc = check_int(f, audit_field_int(r, f), e);
		if (rc)
			return rc;
	}
	if (!action_fits(r->kind, r->action))
		return aqe_err_set(e, AQE_E_MALFORMED, 0,
				   "audit row: action '%s' does not belong to kind '%s'",
				   audit_action_name(r->action), audit_kind_name(r->kind));
	if (r->path && r->path[strcspn(r->path, "?#")])
		return aqe_err_set(e, AQE_E_MALFORMED, 0,
				   "audit row: 'path' has a query or fragment");
	return AQE_OK;
}

/* Appends as much of `v` as fits into `max` bytes, bad bytes as U+FFFD; true when all fitted. */
static bool add_fitting(struct aqe_buf *b, const char *v, size_t n, size_t max)
{
	static const char REPLACEMENT[] = "\xef\xbf\xbd";
	size_t at = 0, len;

	while (at < n) {
		len = aqe_utf8_len(v + at, n - at);
		if (b->len + (len ? len : sizeof(REPLACEMENT) - 1) > max)
			return false;
		if (len)
			aqe_buf_add(b, v + at, len);
		else
			aqe_buf_puts(b, REPLACEMENT);
		at += len ? len : 1;
	}
	return true;
}

static const char *fitted(struct aqe_arena *a, const char *v, size_t n, size_t max)
{
	struct aqe_buf b = AQE_BUF_INIT(max);
	const char *copy = NULL;

	if (!add_fitting(&b, v, n, max)) {
		aqe_buf_clear(&b);
		(void)add_fitting(&b, v, n, max - 3); /* ends early: that is the point */
		aqe_buf_puts(&b, "...");
	}
	if (!b.failed)
		copy = aqe_arena_ndup(a, aqe_buf_str(&b), b.len);
	aqe_buf_done(&b);
	return copy;
}

int audit_row_fit(struct audit_row *r, struct aqe_arena *a, struct aqe_err *e)
{
	for (size_t i = 0; i < AUDIT_FIELDS_COUNT; i++) {
		const struct audit_field *f = &AUDIT_FIELDS[i];
		const char *v = f->type == AUDIT_FIELD_TEXT ? audit_field_text(r, f) : NULL;
		size_t n, want;

		if (!v)
			continue;
		n = strlen(v);
		want = f->offset == offsetof(struct audit_row, path) ? strcspn(v, "?#") : n;
		if (want == n && n <= (size_t)f->max && aqe_utf8_ok(v, n, NULL))
			continue;
		v = fitted(a, v, want, (size_t)f->max);
		if (!v)
			return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
		audit_field_set_text(r, f, v);
	}
	return AQE_OK;
}

int audit_row_copy(struct aqe_arena *a, const struct audit_row *r, struct audit_row *ret,
		   struct aqe_err *e)
{
	struct audit_row copy = *r;

	for (size_t i = 0; i < AUDIT_FIELDS_COUNT; i++) {
		const struct audit_field *f = &AUDIT_FIELDS[i];
		const char *v = is_text(f) ? audit_field_text(r, f) : NULL;

		if (!v)
			continue;
		v = aqe_arena_dup(a, v);
		if (!v)
			return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
		audit_field_set_text(&copy, f, v);
	}
	*ret = copy;
	return AQE_OK;
}

bool audit_row_equal(const struct audit_row *a, const struct audit_row *b)
{
	for (size_t i = 0; i < AUDIT_FIELDS_COUNT; i++) {
		const struct audit_field *f = &AUDIT_FIELDS[i];

		if (is_text(f) ? !aqe_str_eq(audit_field_text(a, f), audit_field_text(b, f))
			       : audit_field_int(a, f) != audit_field_int(b, f))
			return false;
	}
	return memcmp(a->hash, b->hash, sizeof(a->hash)) == 0;
}

/* ---- time ---- */

void audit_time_format(int64_t ns, char ret[AUDIT_TIME_TEXT])
{
	char whole[AQE_TIME_TEXT];
	int64_t s = ns < 0 ? 0 : ns / NS_PER_S;
	int rest = ns < 0 ? 0 : (int)(ns % NS_PER_S);

	aqe_time_format(s, whole);
	whole[AQE_TIME_TEXT - 2] = '\0'; /* without the Z */
	(void)snprintf(ret, AUDIT_TIME_TEXT, "%.19s.%09dZ", whole, rest % 1000000000);
}

bool audit_time_parse(const char *text, int64_t *ret_ns)
{
	char whole[AQE_TIME_TEXT];
	uint64_t rest = 0;
	int64_t s;
	size_t n = text ? strlen(text) : 0;

	if (n == AUDIT_TIME_TEXT - 1 && text[19] == '.' && text[n - 1] == 'Z') {
		for (size_t i = 20; i < n - 1; i++) {
			if (text[i] < '0' || text[i] > '9')
				return false;
			rest = rest * 10 + (uint64_t)(text[i] - '0');
		}
	} else if (n != AQE_TIME_TEXT - 1) {
		return false;
	}
	memcpy(whole, text, 19);
	memcpy(whole + 19, "Z", 2);
	/* the last second that fits into 64 bits of nanoseconds is in 2262 */
	if (!aqe_time_parse(whole, &s) || s >= INT64_MAX / NS_PER_S)
		return false;
	*ret_ns = s * NS_PER_S + (int64_t)rest;
	return true;
}
