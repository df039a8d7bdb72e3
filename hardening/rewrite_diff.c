/* SPDX-License-Identifier: MIT */
#include "hardening/rewrite_diff.h"

#include <stdbool.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"

/* Longest pointer and longest value printed in a diff line. */
#define POINTER_MAX 4096
#define VALUE_MAX   400
/* Most bytes of a value that are looked at to print it. */
#define VALUE_SCAN (1U << 20)

struct level {
	const struct aqe_json *before, *after; /* two objects at the same place */
	const struct aqe_json *next;           /* member of `before` to look at next */
};

static int report_op(hard_diff_fn *fn, void *arg, const struct aqe_json *before,
		     const struct aqe_json *after, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf pointer = AQE_BUF_INIT(POINTER_MAX);
	struct hard_diff d = { HARD_DIFF_REPLACE, NULL, before, after };

	if (!before)
		d.op = HARD_DIFF_ADD;
	else if (!after)
		d.op = HARD_DIFF_REMOVE;
	aqe_json_pointer(before ? before : after, &pointer);
	int rc = aqe_buf_ok(&pointer, e);
	if (rc)
		return rc;
	d.pointer = aqe_buf_str(&pointer);
	return fn(arg, &d, e);
}

static int report_added(const struct level *l, hard_diff_fn *fn, void *arg, struct aqe_err *e)
{
	for (const struct aqe_json *m = l->after->first; m; m = m->next) {
		if (aqe_json_get(l->before, m->key))
			continue;
		int rc = report_op(fn, arg, NULL, m, e);
		if (rc)
			return rc;
	}
	return 0;
}

/* One member of the level's `before`: 1 when both sides are objects that differ. */
static int compare_member(const struct aqe_json *m, const struct aqe_json *other, hard_diff_fn *fn,
			  void *arg, struct aqe_err *e)
{
	if (other && aqe_json_equal(m, other))
		return 0;
	if (other && m->type == AQE_JSON_OBJECT && other->type == AQE_JSON_OBJECT)
		return 1;
	return report_op(fn, arg, m, other, e);
}

int hard_diff_walk(const struct aqe_json *before, const struct aqe_json *after, hard_diff_fn *fn,
		   void *arg, struct aqe_err *e)
{
	struct level stack[HARD_DIFF_DEPTH];
	size_t n = 0;

	int rc = compare_member(before, after, fn, arg, e);
	if (rc != 1 || !after)
		return rc;
	stack[n++] = (struct level){ before, after, before->first };
	while (n > 0) {
		struct level *l = &stack[n - 1];
		const struct aqe_json *m = l->next;

		if (!m) {
			rc = report_added(l, fn, arg, e);
			if (rc)
				return rc;
			n--;
			continue;
		}
		l->next = m->next;
		const struct aqe_json *other = aqe_json_get(l->after, m->key);
		rc = compare_member(m, other, fn, arg, e);
		if (rc != 1 && rc != 0)
			return rc;
		if (rc == 0 || !other)
			continue;
		if (n == HARD_DIFF_DEPTH)
			return aqe_err_set(e, AQE_E_LIMIT, 0, "document deeper than %d levels",
					   HARD_DIFF_DEPTH);
		stack[n++] = (struct level){ m, other, m->first };
	}
	return 0;
}

/* ---- JSON Patch ---- */

struct patch {
	struct aqe_buf *b;
	bool first;
};

static int patch_op(void *arg, const struct hard_diff *d, struct aqe_err *e)
{
	static const char *const names[] = {
		[HARD_DIFF_ADD] = "add",
		[HARD_DIFF_REMOVE] = "remove",
		[HARD_DIFF_REPLACE] = "replace",
	};
	struct patch *p = arg;

	aqe_buf_addf(p->b, "%s{\"op\":\"%s\",\"path\":", p->first ? "\n  " : ",\n  ", names[d->op]);
	aqe_json_emit_str(p->b, d->pointer);
	p->first = false;
	if (d->after) {
		aqe_buf_puts(p->b, ",\"value\":");
		int rc = aqe_json_emit(d->after, AQE_JSON_COMPACT, p->b, e);
		if (rc)
			return rc;
	}
	aqe_buf_putc(p->b, '}');
	return aqe_buf_ok(p->b, e);
}

int hard_diff_patch(const struct aqe_json *before, const struct aqe_json *after, struct aqe_buf *b,
		    struct aqe_err *e)
{
	struct patch p = { b, true };

	aqe_buf_putc(b, '[');
	int rc = hard_diff_walk(before, after, patch_op, &p, e);
	if (rc)
		return rc;
	aqe_buf_puts(b, p.first ? "]\n" : "\n]\n");
	return aqe_buf_ok(b, e);
}

/* ---- lines for people ---- */

struct text {
	struct aqe_buf *b;
	bool filter_said; /* one line stands for the whole seccomp section */
};

/* NAME=value of the environment: values may be secrets, and the names say enough. */
static const char *env_name(const char *pointer, const struct aqe_json *v, size_t *ret_n)
{
	const char *entry = aqe_json_str(v);

	if (!entry || !aqe_starts(pointer, "/process/env/"))
		return NULL;
	*ret_n = strcspn(entry, "=");
	return entry;
}

static int add_value(struct aqe_buf *b, const char *pointer, const struct aqe_json *v,
		     struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf value = AQE_BUF_INIT(VALUE_SCAN);
	size_t n = 0;
	const char *name = env_name(pointer, v, &n);

	if (name) {
		aqe_buf_add(&value, name, n);
		aqe_buf_quote(b, aqe_buf_str(&value), VALUE_MAX);
		aqe_buf_puts(b, "=...");
		return aqe_buf_ok(b, e);
	}
	int rc = aqe_json_emit(v, AQE_JSON_COMPACT, &value, e);
	if (rc)
		return rc;
	if (value.len <= VALUE_MAX)
		aqe_buf_puts(b, aqe_buf_str(&value));
	else if (v->type == AQE_JSON_OBJECT || v->type == AQE_JSON_ARRAY)
		aqe_buf_addf(b, "%s of %zu %s, %zu bytes", aqe_json_type_name(v->type), v->len,
			     v->type == AQE_JSON_ARRAY ? "elements" : "members", value.len);
	else
		aqe_buf_addf(b, "%s of %zu bytes", aqe_json_type_name(v->type), v->len);
	return aqe_buf_ok(b, e);
}

static int add_line(struct aqe_buf *b, char sign, const char *pointer, const struct aqe_json *v,
		    struct aqe_err *e)
{
	int rc = 0;

	/* a pointer is made of the document's names: no control character reaches a terminal */
	aqe_buf_putc(b, sign);
	aqe_buf_putc(b, ' ');
	aqe_buf_quote(b, pointer, POINTER_MAX);
	aqe_buf_puts(b, ": ");
	if (v)
		rc = add_value(b, pointer, v, e);
	else
		aqe_buf_puts(b, "absent");
	if (rc)
		return rc;
	aqe_buf_putc(b, '\n');
	return aqe_buf_ok(b, e);
}

static bool has_equal(const struct aqe_json *array, const struct aqe_json *v)
{
	for (const struct aqe_json *i = array->first; i; i = i->next)
		if (aqe_json_equal(i, v))
			return true;
	return false;
}

/* Elements of `from` that are not in `other`. */
static int add_elements(struct aqe_buf *b, char sign, const struct hard_diff *d, struct aqe_err *e)
{
	const struct aqe_json *from = sign == '-' ? d->before : d->after;
	const struct aqe_json *other = sign == '-' ? d->after : d->before;
	size_t idx = 0;

	for (const struct aqe_json *i = from->first; i; i = i->next, idx++) {
		AQE_AUTO_BUF struct aqe_buf pointer = AQE_BUF_INIT(POINTER_MAX + 32);

		if (has_equal(other, i))
			continue;
		aqe_buf_addf(&pointer, "%s/%zu", d->pointer, idx);
		int rc = add_line(b, sign, aqe_buf_str(&pointer), i, e);
		if (rc)
			return rc;
	}
	return 0;
}

/* One line for the system call filter: its hundreds of names are in `profile`. */
static bool is_filter(struct text *t, const struct hard_diff *d)
{
	static const char place[] = "/linux/seccomp";

	if (!aqe_starts(d->pointer, place) || (!d->after && aqe_str_eq(d->pointer, place)))
		return false;
	if (!t->filter_said)
		aqe_buf_addf(t->b, "%s %s: the frozen filter\n",
			     aqe_str_eq(d->pointer, place) ? "+" : "~", place);
	t->filter_said = true;
	return true;
}

static int text_op(void *arg, const struct hard_diff *d, struct aqe_err *e)
{
	struct text *t = arg;
	struct aqe_buf *b = t->b;
	const size_t was = b->len;
	int rc = 0;

	if (is_filter(t, d))
		return aqe_buf_ok(b, e);
	if (d->before && d->after && d->before->type == AQE_JSON_ARRAY &&
	    d->after->type == AQE_JSON_ARRAY && d->before->len && d->after->len) {
		rc = add_elements(b, '-', d, e);
		if (!rc)
			rc = add_elements(b, '+', d, e);
		if (rc || b->len != was)
			return rc;
		/* the same elements in another order */
		aqe_buf_addf(b, "~ %s: another order\n", d->pointer);
		return aqe_buf_ok(b, e);
	}
	rc = add_line(b, '-', d->pointer, d->before, e);
	return rc ? rc : add_line(b, '+', d->pointer, d->after, e);
}

int hard_diff_text(const struct aqe_json *before, const struct aqe_json *after, struct aqe_buf *b,
		   struct aqe_err *e)
{
	struct text t = { b, false };

	return hard_diff_walk(before, after, text_op, &t, e);
}
