/* SPDX-License-Identifier: MIT */
/* Making and changing trees. */
#include <string.h>

#include "shim/core/json.h"
#include "shim/core/text.h"

static struct aqe_json *new_value(struct aqe_arena *a, enum aqe_json_type type)
{
	struct aqe_json *v = aqe_arena_alloc(a, sizeof(*v));

	if (v)
		v->type = type;
	return v;
}

static struct aqe_json *new_text(struct aqe_arena *a, enum aqe_json_type type, const char *text)
{
	struct aqe_json *v = text ? new_value(a, type) : NULL;

	if (!v)
		return NULL;
	v->text = text;
	v->len = strlen(text);
	return v;
}

struct aqe_json *aqe_json_new_null(struct aqe_arena *a)
{
	return new_value(a, AQE_JSON_NULL);
}

struct aqe_json *aqe_json_new_bool(struct aqe_arena *a, bool v)
{
	struct aqe_json *made = new_value(a, AQE_JSON_BOOL);

	if (made)
		made->boolean = v;
	return made;
}

struct aqe_json *aqe_json_new_i64(struct aqe_arena *a, int64_t v)
{
	return new_text(a, AQE_JSON_NUMBER, aqe_arena_fmt(a, "%lld", (long long)v));
}

struct aqe_json *aqe_json_new_u64(struct aqe_arena *a, uint64_t v)
{
	return new_text(a, AQE_JSON_NUMBER, aqe_arena_fmt(a, "%llu", (unsigned long long)v));
}

struct aqe_json *aqe_json_new_str(struct aqe_arena *a, const char *s)
{
	return new_text(a, AQE_JSON_STRING, s ? aqe_arena_dup(a, s) : NULL);
}

struct aqe_json *aqe_json_new_array(struct aqe_arena *a)
{
	return new_value(a, AQE_JSON_ARRAY);
}

struct aqe_json *aqe_json_new_object(struct aqe_arena *a)
{
	return new_value(a, AQE_JSON_OBJECT);
}

struct aqe_json *aqe_json_new_strs(struct aqe_arena *a, const char *const *list, size_t n)
{
	struct aqe_json *array = aqe_json_new_array(a);

	for (size_t i = 0; array && i < n; i++)
		if (aqe_json_append(array, aqe_json_new_str(a, list[i])) != 0)
			return NULL;
	return array;
}

/* Links detached `v` behind `prev` (NULL: at the start) of `parent`. */
static void link_behind(struct aqe_json *parent, struct aqe_json *prev, struct aqe_json *v)
{
	v->parent = parent;
	v->next = prev ? prev->next : parent->first;
	if (prev)
		prev->next = v;
	else
		parent->first = v;
	if (!v->next)
		parent->last = v;
	parent->len++;
}

/* The sibling before `v`, or NULL. */
static struct aqe_json *before(const struct aqe_json *v)
{
	struct aqe_json *s = v->parent->first;

	if (s == v)
		return NULL;
	while (s->next != v)
		s = s->next;
	return s;
}

void aqe_json_detach(struct aqe_json *v)
{
	struct aqe_json *prev;

	if (!v || !v->parent)
		return;
	prev = before(v);
	if (prev)
		prev->next = v->next;
	else
		v->parent->first = v->next;
	if (!v->next)
		v->parent->last = prev;
	v->parent->len--;
	v->parent = NULL;
	v->next = NULL;
	v->key = NULL;
}

void aqe_json_remove(struct aqe_json *obj, const char *name)
{
	aqe_json_detach(aqe_json_get(obj, name));
}

int aqe_json_set(struct aqe_arena *a, struct aqe_json *obj, const char *key, struct aqe_json *v)
{
	struct aqe_json *old, *prev;
	const char *name;

	if (!v)
		return AQE_E_NOMEM;
	if (!obj || obj->type != AQE_JSON_OBJECT || v->parent || v == obj)
		return AQE_E_INTERNAL;
	old = aqe_json_get(obj, key);
	name = old ? old->key : aqe_arena_dup(a, key);
	if (!name)
		return AQE_E_NOMEM;
	prev = old ? before(old) : obj->last;
	aqe_json_detach(old);
	v->key = name;
	link_behind(obj, prev, v);
	return AQE_OK;
}

int aqe_json_insert(struct aqe_json *array, size_t idx, struct aqe_json *v)
{
	struct aqe_json *prev = NULL;

	if (!v)
		return AQE_E_NOMEM;
	if (!array || array->type != AQE_JSON_ARRAY || v->parent || v == array)
		return AQE_E_INTERNAL;
	if (idx >= array->len)
		prev = array->last;
	else if (idx > 0)
		prev = aqe_json_item(array, idx - 1);
	link_behind(array, prev, v);
	return AQE_OK;
}

int aqe_json_append(struct aqe_json *array, struct aqe_json *v)
{
	return aqe_json_insert(array, SIZE_MAX, v);
}

struct aqe_json *aqe_json_ensure_object(struct aqe_arena *a, struct aqe_json *obj, const char *name)
{
	struct aqe_json *v = aqe_json_get(obj, name);

	if (v)
		return v->type == AQE_JSON_OBJECT ? v : NULL;
	v = aqe_json_new_object(a);
	return aqe_json_set(a, obj, name, v) == 0 ? v : NULL;
}

/* One value without its children, linked behind those of `parent`. */
static struct aqe_json *copy_one(struct aqe_arena *a, const struct aqe_json *v,
				 struct aqe_json *parent)
{
	struct aqe_json *c = new_value(a, v->type);

	if (!c)
		return NULL;
	c->line = v->line;
	c->col = v->col;
	c->fold_dup = v->fold_dup;
	c->boolean = v->boolean;
	if (v->text) {
		c->text = aqe_arena_ndup(a, v->text, v->len);
		c->len = v->len;
		if (!c->text)
			return NULL;
	}
	if (!parent)
		return c;
	if (v->key) {
		c->key = aqe_arena_dup(a, v->key);
		if (!c->key)
			return NULL;
	}
	link_behind(parent, parent->last, c);
	return c;
}

/* The value after `v`, which has no children, in document order; NULL at the end of `root`.
 * *parent, the copy of its parent, moves along. */
static const struct aqe_json *after(const struct aqe_json *root, const struct aqe_json *v,
				    struct aqe_json **parent)
{
	for (; v != root; v = v->parent, *parent = (*parent)->parent)
		if (v->next)
			return v->next;
	return NULL;
}

struct aqe_json *aqe_json_copy(struct aqe_arena *a, const struct aqe_json *v)
{
	const struct aqe_json *root = v;
	struct aqe_json *copy = NULL, *parent = NULL, *c;

	while (v) {
		c = copy_one(a, v, parent);
		if (!c)
			return NULL;
		if (!copy)
			copy = c;
		if (v->first) {
			parent = c;
			v = v->first;
		} else {
			v = after(root, v, &parent);
		}
	}
	return copy;
}
