/* SPDX-License-Identifier: MIT */
#include "oci/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/core/text.h"

#define ID_MAX 1024U

void oci_index_done(struct oci_index *x)
{
	aqe_buf_done(&x->text);
	free(x->entries);
	x->entries = NULL;
	x->n = 0;
}

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
		p++;
	return p;
}

/* `p` is behind an opening quote; returns behind the closing one, or NULL. */
static const char *skip_string(const char *p, const char *end)
{
	for (;;) {
		const char *quote = memchr(p, '"', (size_t)(end - p)), *back = quote;

		if (!quote)
			return NULL;
		while (back > p && back[-1] == '\\')
			back--;
		if ((quote - back) % 2 == 0)
			return quote + 1;
		p = quote + 1;
	}
}

/* `p` is at an opening brace; returns behind the brace that closes it, or NULL. Which bracket
 * closes which is the parser's business. */
static const char *skip_object(const char *p, const char *end)
{
	size_t depth = 0;

	while (p && p < end) {
		char c = *p++;

		if (c == '"') {
			p = skip_string(p, end);
		} else if (c == '{' || c == '[') {
			depth++;
		} else if (c == '}' || c == ']') {
			depth--;
			if (depth == 0)
				return p;
		}
	}
	return NULL;
}

static int add_entry(struct oci_index *x, size_t *cap, struct oci_slice entry, struct aqe_err *e)
{
	if (x->n == OCI_INDEX_ENTRIES_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "has more than %u entries",
				   OCI_INDEX_ENTRIES_MAX);
	if (x->n == *cap) {
		size_t more = *cap ? 2 * *cap : 64;
		struct oci_slice *p = reallocarray(x->entries, more, sizeof(*p));

		if (!p)
			return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for an index");
		x->entries = p;
		*cap = more;
	}
	x->entries[x->n++] = entry;
	return 0;
}

static int bad_index(const struct oci_index *x, const char *at, struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_MALFORMED, 0, "is no list of objects (at byte %zu)",
			   (size_t)(at - aqe_buf_str(&x->text)));
}

/* `p` is behind the list: nothing may follow. */
static int split_end(const struct oci_index *x, const char *p, const char *end, struct aqe_err *e)
{
	return skip_space(p, end) == end ? 0 : bad_index(x, p, e);
}

/* `p` is behind the opening bracket, and the list is not empty. */
static int split_entries(struct oci_index *x, const char *p, const char *end, struct aqe_err *e)
{
	const char *text = aqe_buf_str(&x->text);
	size_t cap = 0;

	for (;;) {
		struct oci_slice entry;
		const char *from = skip_space(p, end);
		int r;

		if (from == end || *from != '{')
			return bad_index(x, from, e);
		p = skip_object(from, end);
		if (!p)
			return bad_index(x, end, e);
		entry.at = (size_t)(from - text);
		entry.len = (size_t)(p - from);
		r = add_entry(x, &cap, entry, e);
		if (r < 0)
			return r;
		p = skip_space(p, end);
		if (p < end && *p == ']')
			return split_end(x, p + 1, end, e);
		if (p == end || *p != ',')
			return bad_index(x, p, e);
		p++;
	}
}

int oci_index_split(struct oci_index *x, struct aqe_err *e)
{
	const char *text = aqe_buf_str(&x->text), *end = text + x->text.len;
	const char *p = skip_space(text, end), *first;

	if (end - p >= 4 && memcmp(p, "null", 4) == 0)
		return split_end(x, p + 4, end, e);
	if (p == end || *p != '[')
		return bad_index(x, p, e);
	first = skip_space(p + 1, end);
	if (first < end && *first == ']')
		return split_end(x, first + 1, end, e);
	return split_entries(x, p + 1, end, e);
}

/* The entry that holds the byte at `at`, or the next one. */
static size_t entry_at(const struct oci_index *x, size_t at)
{
	size_t lo = 0, hi = x->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (x->entries[mid].at + x->entries[mid].len <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int oci_index_find(const struct oci_index *x, struct aqe_arena *a, const char *id,
		   const struct aqe_json_limits *limits, const struct aqe_json **ret,
		   struct aqe_err *e)
{
	char quoted[ID_MAX + 3];
	const char *text = aqe_buf_str(&x->text), *at = text;
	size_t len = strlen(id);

	*ret = NULL;
	if (len > ID_MAX)
		return 0;
	(void)snprintf(quoted, sizeof(quoted), "\"%s\"", id);
	len += 2;
	while ((at = memmem(at, x->text.len - (size_t)(at - text), quoted, len))) {
		const struct oci_slice *s = &x->entries[entry_at(x, (size_t)(at - text))];
		struct aqe_json *v;

		if (s == x->entries + x->n)
			return 0;
		if (aqe_json_parse(a, text + s->at, s->len, limits, &v, e) < 0)
			return aqe_err_wrap(e, "entry %zu", (size_t)(s - x->entries));
		if (aqe_str_eq(aqe_json_str(aqe_json_get(v, "id")), id)) {
			*ret = v;
			return 0;
		}
		at = text + s->at + s->len;
	}
	return 0;
}
