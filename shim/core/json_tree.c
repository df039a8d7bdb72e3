/* SPDX-License-Identifier: MIT */
/* Looking at trees: members, pointers, equality, typed getters. */
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "shim/core/text.h"

#define POINTER_TEXT_MAX 200 /* bytes of a pointer shown in a message */

const char *aqe_json_type_name(enum aqe_json_type type)
{
	switch (type) {
	case AQE_JSON_NULL:
		return "null";
	case AQE_JSON_BOOL:
		return "boolean";
	case AQE_JSON_NUMBER:
		return "number";
	case AQE_JSON_STRING:
		return "string";
	case AQE_JSON_ARRAY:
		return "array";
	case AQE_JSON_OBJECT:
		return "object";
	}
	return "invalid";
}

struct aqe_json *aqe_json_get(const struct aqe_json *obj, const char *name)
{
	struct aqe_json *v;

	if (!obj || obj->type != AQE_JSON_OBJECT)
		return NULL;
	for (v = obj->first; v; v = v->next)
		if (strcmp(v->key, name) == 0)
			return v;
	return NULL;
}

struct aqe_json *aqe_json_item(const struct aqe_json *array, size_t idx)
{
	struct aqe_json *v;

	if (!array || array->type != AQE_JSON_ARRAY)
		return NULL;
	for (v = array->first; v && idx > 0; v = v->next)
		idx--;
	return v;
}

/* ---- pointers (RFC 6901) ---- */

/* True when the `n` bytes at `token`, with ~0 and ~1 decoded, are `key`. */
static bool token_is(const char *token, size_t n, const char *key)
{
	const char *end = token + n;
	char c;

	for (; token < end; token++, key++) {
		c = *token;
		if (c == '~') {
			token++;
			if (token == end || (*token != '0' && *token != '1'))
				return false;
			c = *token == '0' ? '~' : '/';
		}
		if (*key != c)
			return false;
	}
	return *key == '\0';
}

static struct aqe_json *step_object(const struct aqe_json *obj, const char *token, size_t n)
{
	struct aqe_json *v;

	for (v = obj->first; v; v = v->next)
		if (token_is(token, n, v->key))
			return v;
	return NULL;
}

static struct aqe_json *step_array(const struct aqe_json *array, const char *token, size_t n)
{
	char digits[24];
	uint64_t idx;

	if (n >= sizeof(digits) || array->len == 0)
		return NULL;
	memcpy(digits, token, n);
	digits[n] = '\0';
	if (!aqe_parse_u64(digits, array->len - 1, &idx))
		return NULL;
	return aqe_json_item(array, idx);
}

struct aqe_json *aqe_json_at(const struct aqe_json *root, const char *pointer)
{
	struct aqe_json *v = (struct aqe_json *)(uintptr_t)root; /* as strchr(3) does */
	size_t n;

	while (v && *pointer == '/') {
		pointer++;
		n = strcspn(pointer, "/");
		if (v->type == AQE_JSON_OBJECT)
			v = step_object(v, pointer, n);
		else if (v->type == AQE_JSON_ARRAY)
			v = step_array(v, pointer, n);
		else
			v = NULL;
		pointer += n;
	}
	return *pointer == '\0' ? v : NULL;
}

static void add_token(const struct aqe_json *v, struct aqe_buf *b)
{
	const struct aqe_json *s;
	size_t idx = 0;

	/* additions are sticky: the caller looks at the buffer */
	(void)aqe_buf_putc(b, '/');
	if (!v->key) {
		for (s = v->parent->first; s != v; s = s->next)
			idx++;
		(void)aqe_buf_addf(b, "%zu", idx);
		return;
	}
	for (const char *p = v->key; *p; p++) {
		if (*p == '~')
			(void)aqe_buf_puts(b, "~0");
		else if (*p == '/')
			(void)aqe_buf_puts(b, "~1");
		else
			(void)aqe_buf_putc(b, *p);
	}
}

void aqe_json_pointer(const struct aqe_json *v, struct aqe_buf *b)
{
	const struct aqe_json *up, *done = v;
	size_t depth = 0;

	for (up = v; up->parent; up = up->parent)
		depth++;
	for (; depth > 0; depth--) {
		done = v;
		for (size_t i = 1; i < depth; i++)
			done = done->parent;
		add_token(done, b);
	}
}

/* ---- equality ---- */

static bool equal_scalars(const struct aqe_json *a, const struct aqe_json *b)
{
	if (a->type != b->type)
		return false;
	switch (a->type) {
	case AQE_JSON_NULL:
		return true;
	case AQE_JSON_BOOL:
		return a->boolean == b->boolean;
	case AQE_JSON_NUMBER:
	case AQE_JSON_STRING:
		return strcmp(a->text, b->text) == 0;
	case AQE_JSON_ARRAY:
	case AQE_JSON_OBJECT:
		return a->len == b->len;
	}
	return false;
}

/* The counterpart of `a` in `parent`. `hint` is where it is when both have the same order. */
static const struct aqe_json *counterpart(const struct aqe_json *a, const struct aqe_json *parent,
					  const struct aqe_json *hint)
{
	if (!a->key || (hint && strcmp(a->key, hint->key) == 0))
		return hint;
	return aqe_json_get(parent, a->key);
}

bool aqe_json_equal(const struct aqe_json *a, const struct aqe_json *b)
{
	const struct aqe_json *root = a;

	if (!a || !b)
		return a == b;
	while (b && equal_scalars(a, b)) {
		if ((a->type == AQE_JSON_ARRAY || a->type == AQE_JSON_OBJECT) && a->first) {
			b = counterpart(a->first, b, b->first);
			a = a->first;
			continue;
		}
		while (a != root && !a->next) {
			a = a->parent;
			b = b->parent;
		}
		if (a == root)
			return true;
		b = counterpart(a->next, b->parent, b->next);
		a = a->next;
	}
	return false;
}

/* ---- typed getters ---- */

static int wrong_type(const struct aqe_json *v, const char *want, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf pointer = AQE_BUF_INIT(SIZE_MAX / 2);
	AQE_AUTO_BUF struct aqe_buf shown = AQE_BUF_INIT((size_t)2 * POINTER_TEXT_MAX);

	if (!e)
		return AQE_E_MALFORMED;
	aqe_json_pointer(v, &pointer);
	aqe_buf_quote(&shown, aqe_buf_str(&pointer), POINTER_TEXT_MAX);
	if (v->type == AQE_JSON_NUMBER) /* the right type for some, but not in form or range */
		return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col, "'%s' is %.24s, not %s",
				  aqe_buf_str(&shown), v->text, want);
	return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col, "'%s' is of type %s, not %s",
			  aqe_buf_str(&shown), aqe_json_type_name(v->type), want);
}

int aqe_json_get_str(const struct aqe_json *obj, const char *name, const char **ret,
		     struct aqe_err *e)
{
	const struct aqe_json *v = aqe_json_get(obj, name);

	if (!v)
		return 0;
	if (v->type != AQE_JSON_STRING)
		return wrong_type(v, "string", e);
	*ret = v->text;
	return 1;
}

int aqe_json_get_bool(const struct aqe_json *obj, const char *name, bool *ret, struct aqe_err *e)
{
	const struct aqe_json *v = aqe_json_get(obj, name);

	if (!v)
		return 0;
	if (v->type != AQE_JSON_BOOL)
		return wrong_type(v, "boolean", e);
	*ret = v->boolean;
	return 1;
}

bool aqe_json_to_u64(const struct aqe_json *v, uint64_t max, uint64_t *ret)
{
	return v && v->type == AQE_JSON_NUMBER && aqe_parse_u64(v->text, max, ret);
}

bool aqe_json_to_i64(const struct aqe_json *v, int64_t min, int64_t max, int64_t *ret)
{
	return v && v->type == AQE_JSON_NUMBER && aqe_parse_i64(v->text, min, max, ret);
}

int aqe_json_get_u64(const struct aqe_json *obj, const char *name, uint64_t max, uint64_t *ret,
		     struct aqe_err *e)
{
	const struct aqe_json *v = aqe_json_get(obj, name);
	char want[64];

	if (!v)
		return 0;
	if (aqe_json_to_u64(v, max, ret))
		return 1;
	(void)snprintf(want, sizeof(want), "an integer from 0 to %llu", (unsigned long long)max);
	return wrong_type(v, want, e);
}

int aqe_json_get_i64(const struct aqe_json *obj, const char *name, int64_t min, int64_t max,
		     int64_t *ret, struct aqe_err *e)
{
	const struct aqe_json *v = aqe_json_get(obj, name);
	char want[80];

	if (!v)
		return 0;
	if (aqe_json_to_i64(v, min, max, ret))
		return 1;
	(void)snprintf(want, sizeof(want), "an integer from %lld to %lld", (long long)min,
		       (long long)max);
	return wrong_type(v, want, e);
}

static int get_container(const struct aqe_json *obj, const char *name, enum aqe_json_type type,
			 struct aqe_json **ret, struct aqe_err *e)
{
	struct aqe_json *v = aqe_json_get(obj, name);

	if (!v)
		return 0;
	if (v->type != type)
		return wrong_type(v, aqe_json_type_name(type), e);
	*ret = v;
	return 1;
}

int aqe_json_get_object(const struct aqe_json *obj, const char *name, struct aqe_json **ret,
			struct aqe_err *e)
{
	return get_container(obj, name, AQE_JSON_OBJECT, ret, e);
}

int aqe_json_get_array(const struct aqe_json *obj, const char *name, struct aqe_json **ret,
		       struct aqe_err *e)
{
	return get_container(obj, name, AQE_JSON_ARRAY, ret, e);
}

const char *aqe_json_str(const struct aqe_json *v)
{
	return v && v->type == AQE_JSON_STRING ? v->text : NULL;
}

bool aqe_json_has_str(const struct aqe_json *v, const char *s)
{
	if (!v || v->type != AQE_JSON_ARRAY)
		return false;
	for (v = v->first; v; v = v->next)
		if (v->type == AQE_JSON_STRING && strcmp(v->text, s) == 0)
			return true;
	return false;
}
