/* SPDX-License-Identifier: MIT */
/* The one writer of JSON. */
#include <stdlib.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "shim/core/json_scan.h"
#include "shim/core/text.h"

/* Deepest tree that is written with sorted members; more than the reader ever lets in. */
#define SORT_DEPTH_MAX 160

/* The sorted children of one open array or object: list[next .. end). */
struct level {
	size_t next, end;
};

struct writer {
	struct aqe_buf *b;
	unsigned flags;
	const struct aqe_json *root;
	size_t depth;
	/* Only for AQE_JSON_SORTED: the children of all open levels, one after the other. */
	const struct aqe_json **list;
	size_t len, cap;
	struct level levels[SORT_DEPTH_MAX];
};

/* ---- strings ---- */

static void emit_control(struct aqe_buf *b, unsigned char c)
{
	static const char SHORT[0x20] = {
		['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'
	};
	static const char HEX[] = "0123456789abcdef";
	char text[6] = { '\\', SHORT[c], '0', '0', HEX[c >> 4], HEX[c & 15] };

	if (SHORT[c]) {
		(void)aqe_buf_add(b, text, 2); /* sticky, as all additions here */
		return;
	}
	text[1] = 'u';
	(void)aqe_buf_add(b, text, sizeof(text));
}

/* One character that does not stand for itself; returns how many bytes of `p` it was. */
static size_t emit_special(struct aqe_buf *b, const char *p, size_t n)
{
	unsigned char c = (unsigned char)*p;
	char escape[2] = { '\\', *p };
	size_t len;

	if (c == '"' || c == '\\') {
		(void)aqe_buf_add(b, escape, 2);
		return 1;
	}
	if (c < 0x20) {
		emit_control(b, c);
		return 1;
	}
	len = aqe_utf8_len(p, n);
	if (len == 0) {
		(void)aqe_buf_puts(b, "\xef\xbf\xbd"); /* U+FFFD */
		return 1;
	}
	(void)aqe_buf_add(b, p, len);
	return len;
}

static void emit_text(struct aqe_buf *b, const char *p, size_t n)
{
	const char *end = p + n;
	size_t run;

	(void)aqe_buf_putc(b, '"');
	while (p < end) {
		run = aqe_json_plain_run(p, (size_t)(end - p));
		(void)aqe_buf_add(b, p, run);
		p += run;
		if (p < end)
			p += emit_special(b, p, (size_t)(end - p));
	}
	(void)aqe_buf_putc(b, '"');
}

void aqe_json_emit_str(struct aqe_buf *b, const char *s)
{
	emit_text(b, s, strlen(s));
}

/* ---- sorted members ---- */

static int key_cmp(const void *pa, const void *pb)
{
	const struct aqe_json *a = *(const struct aqe_json *const *)pa;
	const struct aqe_json *b = *(const struct aqe_json *const *)pb;

	return strcmp(a->key, b->key); /* compares as unsigned bytes */
}

/* Room for `more` entries of the list. NULL on failure. */
static const struct aqe_json **grow_list(struct writer *w, size_t more)
{
	const struct aqe_json **list = w->list;
	size_t need, size;

	if (!aqe_size_add(w->len, more, &need))
		return NULL;
	if (list && need <= w->cap)
		return list;
	if (!aqe_size_mul(need, 2 * sizeof(struct aqe_json *), &size))
		return NULL;
	list = realloc(list, size);
	if (!list)
		return NULL;
	w->list = list;
	w->cap = 2 * need;
	return list;
}

/* Lists the children of `v`, objects' in order of their names, and gives the first. */
static int push_level(struct writer *w, const struct aqe_json *v, const struct aqe_json **ret,
		      struct aqe_err *e)
{
	const struct aqe_json **list;
	size_t n = 0;

	if (w->depth >= SORT_DEPTH_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "nested too deeply to be sorted");
	list = grow_list(w, v->len);
	if (!list)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	list += w->len;
	w->len += v->len;
	for (const struct aqe_json *c = v->first; c; c = c->next)
		list[n++] = c;
	if (v->type == AQE_JSON_OBJECT)
		qsort(list, v->len, sizeof(struct aqe_json *), key_cmp);
	w->levels[w->depth] = (struct level){ w->len - v->len + 1, w->len };
	*ret = list[0];
	return AQE_OK;
}

/* ---- values ---- */

static void emit_indent(struct writer *w)
{
	static const char BLANKS[] = "                                ";
	size_t n = 2 * w->depth, step;

	if (!(w->flags & AQE_JSON_PRETTY))
		return;
	(void)aqe_buf_putc(w->b, '\n');
	for (; n > 0; n -= step) {
		step = n < sizeof(BLANKS) - 1 ? n : sizeof(BLANKS) - 1;
		(void)aqe_buf_add(w->b, BLANKS, step);
	}
}

/* The beginning of a value: its name and all of it that comes before its children. */
static void emit_begin(struct writer *w, const struct aqe_json *v)
{
	if (v->key && v != w->root) {
		emit_text(w->b, v->key, strlen(v->key));
		(void)aqe_buf_puts(w->b, w->flags & AQE_JSON_PRETTY ? ": " : ":");
	}
	switch (v->type) {
	case AQE_JSON_NULL:
		(void)aqe_buf_puts(w->b, "null");
		break;
	case AQE_JSON_BOOL:
		(void)aqe_buf_puts(w->b, v->boolean ? "true" : "false");
		break;
	case AQE_JSON_NUMBER:
		(void)aqe_buf_add(w->b, v->text, v->len);
		break;
	case AQE_JSON_STRING:
		emit_text(w->b, v->text, v->len);
		break;
	case AQE_JSON_ARRAY:
		(void)aqe_buf_puts(w->b, v->first ? "[" : "[]");
		break;
	case AQE_JSON_OBJECT:
		(void)aqe_buf_puts(w->b, v->first ? "{" : "{}");
		break;
	}
}

/* The first child to write, after the parent's beginning. */
static int enter(struct writer *w, const struct aqe_json **v, struct aqe_err *e)
{
	int rc;

	if (w->flags & AQE_JSON_SORTED) {
		rc = push_level(w, *v, v, e);
		if (rc)
			return rc;
	} else {
		*v = (*v)->first;
	}
	w->depth++;
	emit_indent(w);
	return AQE_OK;
}

/* The sibling to write after `v`, or NULL. */
static const struct aqe_json *sibling(struct writer *w, const struct aqe_json *v)
{
	struct level *level;

	if (!(w->flags & AQE_JSON_SORTED))
		return v->next;
	level = &w->levels[w->depth - 1];
	return level->next < level->end ? w->list[level->next++] : NULL;
}

/* Closes `v`'s parent and returns it. */
static const struct aqe_json *leave(struct writer *w, const struct aqe_json *v)
{
	w->depth--;
	if (w->flags & AQE_JSON_SORTED)
		w->len -= v->parent->len;
	emit_indent(w);
	(void)aqe_buf_putc(w->b, v->parent->type == AQE_JSON_ARRAY ? ']' : '}');
	return v->parent;
}

static int emit_tree(struct writer *w, struct aqe_err *e)
{
	const struct aqe_json *v = w->root, *next;
	int rc;

	for (;;) {
		emit_begin(w, v);
		if (v->first) {
			rc = enter(w, &v, e);
			if (rc)
				return rc;
			continue;
		}
		next = NULL;
		while (v != w->root && !(next = sibling(w, v)))
			v = leave(w, v);
		if (!next)
			return aqe_buf_ok(w->b, e);
		(void)aqe_buf_putc(w->b, ',');
		emit_indent(w);
		v = next;
	}
}

int aqe_json_emit(const struct aqe_json *v, unsigned flags, struct aqe_buf *b, struct aqe_err *e)
{
	struct writer w = { .b = b, .flags = flags, .root = v };
	int rc = emit_tree(&w, e);

	free(w.list);
	return rc;
}
