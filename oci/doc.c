/* SPDX-License-Identifier: MIT */
#include "oci/doc.h"

#include <assert.h>
#include <string.h>

#include "oci/schema.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

const struct aqe_json_limits OCI_DOC_LIMITS = {
	.bytes = 1U << 20,
	.depth = OCI_DEPTH_MAX,
	.values = 200000,
	.entries = 4096,
	.string = 1U << 20, /* the schema has the real limits, with better messages */
	.number = 20,
	.fold_dups_ok = true, /* oci_doc_issues() reports them */
};

/* Longest piece of the document that a message repeats. */
#define QUOTE_MAX 64U

/* ---- walking a document together with its schema, parents before children ---- */

struct walk {
	const struct aqe_json *root, *v; /* v: the value we stand on */
	size_t depth;                    /* of v; the root has 0 */
	/* Type and row of v and of all above it. No type: the schema does not know it. */
	const struct oci_type *types[OCI_DEPTH_MAX + 1];
	const struct oci_row *row;
};

static void walk_init(struct walk *w, enum oci_doc kind, const struct aqe_json *root)
{
	assert(root);
	w->root = root;
	w->v = root;
	w->depth = 0;
	w->types[0] = oci_schema_root(kind);
	w->row = NULL;
}

static bool is_container(const struct aqe_json *v)
{
	return v->type == AQE_JSON_OBJECT || v->type == AQE_JSON_ARRAY;
}

/* Sets the type of w->v, a child of what has types[depth - 1]. */
static void walk_type(struct walk *w)
{
	const struct oci_type *up = w->types[w->depth - 1];
	const struct oci_type *t = NULL;

	w->row = NULL;
	if (up && up->kind == OCI_KIND_OBJECT) {
		w->row = oci_schema_row(up, w->v->key, strlen(w->v->key));
		t = w->row ? w->row->type : NULL;
	} else if (up) {
		t = up->elem; /* none for OCI_KIND_FOREIGN */
	}
	w->types[w->depth] = t;
}

/* Goes to the next value that is not below this one; false at the end. */
static bool walk_over(struct walk *w)
{
	while (w->v != w->root && !w->v->next) {
		assert(w->depth > 0); /* the root is above all */
		w->v = w->v->parent;
		w->depth--;
	}
	if (w->v == w->root)
		return false;
	w->v = w->v->next;
	return true;
}

/* Goes to the next value, into the children of this one only if `into`; false at the end. The
 * caller has seen that there is room for a child. */
static bool walk_next(struct walk *w, bool into)
{
	if (into && is_container(w->v) && w->v->first) {
		assert(w->depth < OCI_DEPTH_MAX);
		w->v = w->v->first;
		w->depth++;
	} else if (!walk_over(w)) {
		return false;
	}
	walk_type(w);
	return true;
}

/* ---- checking ---- */

static const enum aqe_json_type JSON_TYPES[] = {
	[OCI_KIND_OBJECT] = AQE_JSON_OBJECT, [OCI_KIND_MAP] = AQE_JSON_OBJECT,
	[OCI_KIND_ARRAY] = AQE_JSON_ARRAY,   [OCI_KIND_FOREIGN] = AQE_JSON_OBJECT,
	[OCI_KIND_STRING] = AQE_JSON_STRING, [OCI_KIND_BOOL] = AQE_JSON_BOOL,
	[OCI_KIND_INT] = AQE_JSON_NUMBER,    [OCI_KIND_UINT] = AQE_JSON_NUMBER,
};

static const char *pointer_of(const struct aqe_json *v, struct aqe_buf *b)
{
	aqe_json_pointer(v, b);
	return aqe_buf_str(b);
}

/* A pointer can be as long as its names are: messages get the first 200 bytes. */
#define POINTER_FMT "%.200s"

static int bad_type(const struct aqe_json *v, const struct oci_type *t, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf ptr = AQE_BUF_INIT(1U << 20);
	AQE_AUTO_BUF struct aqe_buf found = AQE_BUF_INIT(4096);

	if (v->type == AQE_JSON_NUMBER)
		(void)aqe_buf_addf(&found, "number %.24s", v->text);
	else if (v->type == AQE_JSON_BOOL)
		(void)aqe_buf_puts(&found, v->boolean ? "true" : "false");
	else
		(void)aqe_buf_puts(&found, aqe_json_type_name(v->type));
	return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col,
			  "wrong type at '" POINTER_FMT "': found %s, expected %s",
			  pointer_of(v, &ptr), aqe_buf_str(&found), t->what);
}

static int too_long(const struct aqe_json *v, const struct oci_type *t, size_t max,
		    struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1U << 20);
	const char *end = t == &OCI_TYPE_ENV ? strchr(v->text, '=') : NULL;

	if (end && end != v->text && (size_t)(end - v->text) < QUOTE_MAX) {
		AQE_AUTO_BUF struct aqe_buf name = AQE_BUF_INIT(QUOTE_MAX);

		(void)aqe_buf_add(&name, v->text, (size_t)(end - v->text));
		aqe_buf_quote(&b, aqe_buf_str(&name), QUOTE_MAX);
		return aqe_err_at(e, AQE_E_LIMIT, v->line, v->col,
				  "env '%s' is %zu bytes, limit %zu", aqe_buf_str(&b), v->len, max);
	}
	return aqe_err_at(e, AQE_E_LIMIT, v->line, v->col,
			  "string at '" POINTER_FMT "' is %zu bytes, limit %zu", pointer_of(v, &b),
			  v->len, max);
}

/* Lengths, for every value whether the schema knows it or not. */
static int check_lengths(const struct aqe_json *v, const struct oci_type *t, struct aqe_err *e)
{
	size_t max = t && t->kind == OCI_KIND_STRING ? t->max : OCI_STRING_MAX;

	if (v->key && strlen(v->key) > OCI_STRING_MAX)
		return aqe_err_at(e, AQE_E_LIMIT, v->line, v->col,
				  "a member's name is %zu bytes, limit %u", strlen(v->key),
				  OCI_STRING_MAX);
	if (v->type == AQE_JSON_STRING && v->len > max)
		return too_long(v, t, max, e);
	return 0;
}

static bool type_ok(const struct aqe_json *v, const struct oci_type *t)
{
	int64_t i;
	uint64_t u;

	if (v->type != JSON_TYPES[t->kind])
		return false;
	if (t->kind == OCI_KIND_INT)
		return aqe_json_to_i64(v, t->min, (int64_t)t->max, &i);
	if (t->kind == OCI_KIND_UINT)
		return aqe_json_to_u64(v, t->max, &u);
	return true;
}

int oci_doc_check(enum oci_doc kind, const struct aqe_json *root, struct aqe_err *e)
{
	struct walk w;

	walk_init(&w, kind, root);
	do {
		const struct oci_type *t = w.types[w.depth];
		int r;

		if (t && !type_ok(w.v, t))
			return bad_type(w.v, t, e);
		r = check_lengths(w.v, t, e);
		if (r < 0)
			return r;
		if (w.depth == OCI_DEPTH_MAX && is_container(w.v) && w.v->first)
			return aqe_err_at(e, AQE_E_LIMIT, w.v->line, w.v->col,
					  "document is nested deeper than %u levels",
					  OCI_DEPTH_MAX);
	} while (walk_next(&w, true));
	return 0;
}

int oci_doc_parse(struct aqe_arena *a, enum oci_doc kind, const char *text, size_t len,
		  struct aqe_json **ret, struct aqe_err *e)
{
	struct aqe_json *root;
	int r = aqe_json_parse(a, text, len, &OCI_DOC_LIMITS, &root, e);

	if (r < 0)
		return r;
	r = oci_doc_check(kind, root, e);
	if (r < 0)
		return r;
	*ret = root;
	return 0;
}

/* ---- issues ---- */

/* Members of a map that differ from an earlier one only in letter case. None is found when an edit
 * has removed one of the two: the reader's mark stays. */
static int fold_issues(const struct aqe_json *map, oci_issue_fn *fn, void *arg)
{
	for (const struct aqe_json *b = map->first; b; b = b->next) {
		for (const struct aqe_json *a = map->first; a != b; a = a->next) {
			struct oci_issue issue = { OCI_ISSUE_FOLD, b, NULL };
			int r;

			if (!oci_fold_eq(a->key, b->key))
				continue;
			r = fn(arg, &issue);
			if (r)
				return r;
			break;
		}
	}
	return 0;
}

/* The issue of the value the walk stands on: false when there is none. */
static bool member_issue(const struct walk *w, struct oci_issue *ret)
{
	const struct oci_type *up = w->depth ? w->types[w->depth - 1] : NULL;
	const struct oci_row *near;

	if (!up || up->kind != OCI_KIND_OBJECT)
		return false;
	if (w->row && !(w->row->flags & OCI_ROW_UNUSED))
		return false;
	ret->at = w->v;
	ret->near = NULL;
	ret->kind = OCI_ISSUE_UNUSED;
	if (w->row)
		return true;
	near = oci_schema_row_fold(up, w->v->key);
	ret->kind = near ? OCI_ISSUE_CASE : OCI_ISSUE_UNKNOWN;
	ret->near = near ? near->name : NULL;
	return true;
}

int oci_doc_issues(enum oci_doc kind, const struct aqe_json *root, oci_issue_fn *fn, void *arg)
{
	struct walk w;
	bool into;

	walk_init(&w, kind, root);
	do {
		const struct oci_type *t = w.types[w.depth];
		struct oci_issue issue;
		int r = 0;

		into = w.depth < OCI_DEPTH_MAX;
		if (member_issue(&w, &issue)) {
			into = false;
			r = fn(arg, &issue);
		} else if (t && t->kind == OCI_KIND_MAP && w.v->fold_dup) {
			r = fold_issues(w.v, fn, arg);
		}
		if (r)
			return r;
	} while (walk_next(&w, into));
	return 0;
}

bool oci_doc_is_config(const struct aqe_json *root)
{
	const struct oci_type *t = oci_schema_root(OCI_DOC_CONFIG);

	if (root->type != AQE_JSON_OBJECT)
		return false;
	for (const struct aqe_json *v = root->first; v; v = v->next) {
		if (oci_schema_row(t, v->key, strlen(v->key)))
			return true;
	}
	return !root->first;
}

bool oci_version_known(const char *v)
{
	static const char *const known[] = {
		"1.0.0",     "1.0.1",     "1.0.2",     "1.1.0",     "1.2.0",
		"1.2.1",     "1.3.0",     "1.0.0-dev", "1.0.1-dev", "1.0.2-dev",
		"1.1.0-dev", "1.2.0-dev", "1.2.1-dev", "1.3.0-dev", NULL,
	};

	return v && aqe_str_in(v, known);
}

/* ---- writing ---- */

/* One open object or array. */
struct frame {
	const struct aqe_json *v;
	const struct oci_type *type;
	size_t row;                /* OBJECT: next row */
	const struct aqe_json *at; /* MAP, ARRAY: next child */
	bool any;                  /* a child was written */
};

struct out {
	struct aqe_buf *b;
	struct frame stack[OCI_DEPTH_MAX + 1];
	size_t n;
};

/* Writes a scalar, or opens an object or array. */
static void emit_begin(struct out *o, const struct aqe_json *v, const struct oci_type *t)
{
	switch (v->type) {
	case AQE_JSON_NULL: /* no type of ours: seen by oci_doc_check() */
		break;
	case AQE_JSON_BOOL:
		(void)aqe_buf_puts(o->b, v->boolean ? "true" : "false");
		break;
	case AQE_JSON_NUMBER:
		(void)aqe_buf_puts(o->b, v->text);
		break;
	case AQE_JSON_STRING:
		aqe_json_emit_str(o->b, v->text);
		break;
	case AQE_JSON_ARRAY:
	case AQE_JSON_OBJECT:
		(void)aqe_buf_putc(o->b, v->type == AQE_JSON_ARRAY ? '[' : '{');
		o->stack[o->n++] = (struct frame){ v, t, 0, v->first, false };
		break;
	}
}

/* The next child of the innermost frame and its type, or NULL. */
static const struct aqe_json *emit_child(struct frame *f, const struct oci_type **ret_type)
{
	const struct aqe_json *v = f->at;

	if (f->type->kind != OCI_KIND_OBJECT) {
		*ret_type = f->type->elem;
		f->at = v ? v->next : NULL;
		return v;
	}
	while (f->row < f->type->n_rows) {
		const struct oci_row *row = &f->type->rows[f->row++];

		v = aqe_json_get(f->v, row->name);
		if (v) {
			*ret_type = row->type;
			return v;
		}
	}
	return NULL;
}

static int emit_refuse(void *arg, const struct oci_issue *issue)
{
	const struct aqe_json **bad = arg;

	if (issue->kind == OCI_ISSUE_FOLD)
		return 0; /* a map's names are free */
	*bad = issue->at;
	return 1;
}

int oci_doc_emit(enum oci_doc kind, const struct aqe_json *root, struct aqe_buf *b,
		 struct aqe_err *e)
{
	struct out o = { .b = b, .n = 0 };
	const struct aqe_json *bad = NULL;

	if (oci_doc_check(kind, root, e) < 0) {
		(void)aqe_err_wrap(e, "writing a document");
		if (e)
			e->code = AQE_E_INTERNAL;
		return AQE_E_INTERNAL;
	}
	if (oci_doc_issues(kind, root, emit_refuse, &bad)) {
		AQE_AUTO_BUF struct aqe_buf ptr = AQE_BUF_INIT(1U << 20);

		return aqe_err_set(e, AQE_E_INTERNAL, 0,
				   "writing a document: '" POINTER_FMT "' is not to be written",
				   pointer_of(bad, &ptr));
	}
	emit_begin(&o, root, oci_schema_root(kind));
	while (o.n) {
		struct frame *f = &o.stack[o.n - 1];
		const struct oci_type *t;
		const struct aqe_json *v = emit_child(f, &t);

		if (!v) {
			(void)aqe_buf_putc(b, f->v->type == AQE_JSON_ARRAY ? ']' : '}');
			o.n--;
			continue;
		}
		if (f->any)
			(void)aqe_buf_putc(b, ',');
		f->any = true;
		if (v->key) {
			aqe_json_emit_str(b, v->key);
			(void)aqe_buf_putc(b, ':');
		}
		emit_begin(&o, v, t);
	}
	return aqe_buf_ok(b, e);
}
