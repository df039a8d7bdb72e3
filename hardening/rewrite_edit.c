/* SPDX-License-Identifier: MIT */
#include "hardening/rewrite.h"

#include <stdarg.h>
#include <stdio.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"

/* Longest text of one finding, and of one foreign string in it. */
#define FOUND_MAX 480
#define QUOTE_MAX ((size_t)160)
/* Longest text of a fix, which may quote two paths. */
#define FMT_MAX 1024

void hard_rw_set(struct hard_rw *rw, struct aqe_json *obj, const char *key, struct aqe_json *v)
{
	if (aqe_json_set(rw->arena, obj, key, v) != 0)
		rw->nomem = true;
}

void hard_rw_append(struct hard_rw *rw, struct aqe_json *array, struct aqe_json *v)
{
	if (aqe_json_append(array, v) != 0)
		rw->nomem = true;
}

void hard_rw_set_str(struct hard_rw *rw, struct aqe_json *obj, const char *key, const char *v)
{
	hard_rw_set(rw, obj, key, aqe_json_new_str(rw->arena, v));
}

void hard_rw_set_u64(struct hard_rw *rw, struct aqe_json *obj, const char *key, uint64_t v)
{
	hard_rw_set(rw, obj, key, aqe_json_new_u64(rw->arena, v));
}

void hard_rw_set_bool(struct hard_rw *rw, struct aqe_json *obj, const char *key, bool v)
{
	hard_rw_set(rw, obj, key, aqe_json_new_bool(rw->arena, v));
}

struct aqe_json *hard_rw_object(struct hard_rw *rw, struct aqe_json *obj, const char *key)
{
	struct aqe_json *v = aqe_json_ensure_object(rw->arena, obj, key);

	if (!v)
		rw->nomem = true;
	return v;
}

const char *hard_rw_fmt(struct hard_rw *rw, const char *fmt, ...)
{
	char text[FMT_MAX];
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	const char *s = aqe_arena_dup(rw->arena, text);

	if (s)
		return s;
	rw->nomem = true;
	return "";
}

const char *hard_rw_quote(struct hard_rw *rw, const char *s)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(QUOTE_MAX * 8);

	aqe_buf_quote(&b, s ? s : "", QUOTE_MAX);
	const char *copy = aqe_arena_dup(rw->arena, aqe_buf_str(&b));

	if (copy)
		return copy;
	rw->nomem = true;
	return "";
}

bool hard_rw_waived(const struct hard_rw *rw, enum hard_prop prop)
{
	const struct hard_ctx *ctx = rw->ctx;

	return HARDENING_PROFILE[prop].waivable &&
	       hard_policy_waiver(ctx->policy, prop, ctx->agent->type, rw->entry, ctx->now_s);
}

AQE_PRINTF(3, 0)
static void found_text(char *text, size_t size, const char *fmt, va_list ap)
{
	if (vsnprintf(text, size, fmt, ap) < 0)
		text[0] = '\0';
}

void hard_rw_refuse(struct hard_rw *rw, enum hard_prop prop, const struct aqe_json *at,
		    const char *wanted, const char *found_fmt, ...)
{
	char text[FOUND_MAX];
	va_list ap;

	if (hard_rw_waived(rw, prop))
		return;
	va_start(ap, found_fmt);
	found_text(text, sizeof(text), found_fmt, ap);
	va_end(ap);
	hard_report_fail(rw->report, prop, at, at ? NULL : "", wanted, "%s", text);
}

void hard_rw_refuse_fix(struct hard_rw *rw, enum hard_prop prop, const struct aqe_json *at,
			const char *fix, const char *found_fmt, ...)
{
	char text[FOUND_MAX];
	va_list ap;

	if (hard_rw_waived(rw, prop))
		return;
	va_start(ap, found_fmt);
	found_text(text, sizeof(text), found_fmt, ap);
	va_end(ap);
	const size_t stored = rw->report->n_findings;

	hard_report_fail(rw->report, prop, at, at ? NULL : "", NULL, "%s", text);
	if (rw->report->n_findings > stored)
		hard_report_fix(rw->report, fix);
}

static bool is_inert_scalar(const struct aqe_json *v)
{
	int64_t n;

	switch (v->type) {
	case AQE_JSON_NULL:
		return true;
	case AQE_JSON_BOOL:
		return !v->boolean;
	case AQE_JSON_NUMBER:
		return aqe_json_to_i64(v, 0, 0, &n);
	case AQE_JSON_STRING:
		return v->len == 0;
	case AQE_JSON_ARRAY:
	case AQE_JSON_OBJECT:
		return true; /* decided by what is inside */
	}
	return false;
}

bool hard_rw_inert(const struct aqe_json *v)
{
	const struct aqe_json *at = v;

	/* a walk in document order by the links of the tree, without recursion */
	while (at) {
		if (!is_inert_scalar(at))
			return false;
		if ((at->type == AQE_JSON_ARRAY || at->type == AQE_JSON_OBJECT) && at->first) {
			at = at->first;
			continue;
		}
		while (at != v && !at->next)
			at = at->parent;
		at = at == v ? NULL : at->next;
	}
	return true;
}

/* ---- schema ---- */

static int first_droppable(void *arg, const struct oci_issue *issue)
{
	const struct aqe_json **ret = arg;

	if (issue->kind != OCI_ISSUE_UNUSED || !hard_rw_inert(issue->at) || !issue->at->parent ||
	    !issue->at->key)
		return 0;
	*ret = issue->at;
	return 1;
}

static int refuse_issue(void *arg, const struct oci_issue *issue)
{
	struct hard_rw *rw = arg;
	const char *name = hard_rw_quote(rw, issue->at->key);

	switch (issue->kind) {
	case OCI_ISSUE_UNKNOWN:
		hard_report_fail(rw->report, HARD_UNKNOWN_FIELD, issue->at, NULL, NULL,
				 "unknown member '%s'", name);
		return 0;
	case OCI_ISSUE_CASE:
		hard_report_fail(rw->report, HARD_UNKNOWN_FIELD, issue->at, NULL, NULL,
				 "'%s', which some parsers take for '%s'", name, issue->near);
		return 0;
	case OCI_ISSUE_FOLD:
		hard_report_fail(rw->report, HARD_UNKNOWN_FIELD, issue->at, NULL, NULL,
				 "'%s' has two names that differ only in letter case", name);
		return 0;
	case OCI_ISSUE_UNUSED:
		hard_report_fail(rw->report, HARD_UNKNOWN_FIELD, issue->at, NULL, NULL,
				 "'%s', which is no part of a hardened container", name);
		return 0;
	}
	return 0;
}

void hard_rw_schema(struct hard_rw *rw, enum oci_doc kind)
{
	const struct aqe_json *drop = NULL;

	/* ends: every turn removes a member */
	while (oci_doc_issues(kind, rw->doc, first_droppable, &drop) == 1)
		aqe_json_remove(drop->parent, drop->key);
	if (oci_doc_issues(kind, rw->doc, refuse_issue, rw) != 0)
		rw->nomem = true; /* refuse_issue() never stops: the list itself failed */
}

bool hard_rw_settle(struct hard_rw *rw)
{
	bool ok = true;

	for (unsigned i = 0; i < HARD_PROP_COUNT; i++) {
		hard_report_pass(rw->report, (enum hard_prop)i);
		ok = ok && rw->report->result[i] == HARD_PASS;
	}
	return ok && !rw->report->nomem;
}
