/* SPDX-License-Identifier: MIT */
#include "cache/numbers.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/core/base64.h"
#include "shim/core/cleanup.h"

const struct aqe_json_limits CACHE_NUMBERS_LIMITS = {
	.bytes = (size_t)64 << 20,
	.depth = 12,
	.values = 1000000,
	.entries = CACHE_DIM_MAX,
	.string = (size_t)4 << 20,
	.number = 40,
	.fold_dups_ok = true, /* names we do not look at are not our business */
};

static int bad(const struct aqe_json *v, const char *what, struct aqe_err *e)
{
	return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col, "%s", what);
}

static int check_array(const struct aqe_json *v, struct aqe_err *e)
{
	if (!v)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "no embedding");
	if (v->type != AQE_JSON_ARRAY)
		return bad(v, "an embedding must be an array of numbers", e);
	if (v->len == 0 || v->len > CACHE_DIM_MAX)
		return aqe_err_at(e, AQE_E_LIMIT, v->line, v->col,
				  "an embedding has 1 to %u numbers, not %zu", CACHE_DIM_MAX,
				  v->len);
	return 0;
}

static int read_base64(struct aqe_arena *a, const struct aqe_json *v, float **ret,
		       uint32_t *ret_dim, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)CACHE_DIM_MAX * 4);
	struct cache_value value;

	if (!aqe_base64_decode(&b, v->text, v->len) || b.len == 0 || b.len % 4 != 0)
		return bad(v, "not an embedding in base64", e);
	value.dim = (uint32_t)(b.len / 4);
	value.floats = (const uint8_t *)b.p;
	*ret = aqe_arena_calloc(a, value.dim, sizeof(**ret));
	if (!*ret)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	cache_value_floats(&value, *ret);
	for (uint32_t i = 0; i < value.dim; i++)
		if (!isfinite((*ret)[i]))
			return bad(v, "a number that is not finite", e);
	*ret_dim = value.dim;
	return 0;
}

/* The text is a JSON number: strtof and strtod take it whole, and LC_NUMERIC is never set. */
int cache_numbers_read(struct aqe_arena *a, const struct aqe_json *v, float **ret,
		       uint32_t *ret_dim, struct aqe_err *e)
{
	float *out;
	size_t n = 0;
	int rc;

	if (v && v->type == AQE_JSON_STRING)
		return read_base64(a, v, ret, ret_dim, e);
	rc = check_array(v, e);
	if (rc || !v)
		return rc;
	out = aqe_arena_calloc(a, v->len, sizeof(*out));
	if (!out)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	for (const struct aqe_json *item = v->first; item; item = item->next, n++) {
		if (item->type != AQE_JSON_NUMBER)
			return bad(item, "an embedding must be an array of numbers", e);
		out[n] = strtof(item->text, NULL);
		if (!isfinite(out[n]))
			return bad(item, "a number beyond float32", e);
	}
	*ret = out;
	*ret_dim = (uint32_t)n;
	return 0;
}

int cache_numbers_read_f64(struct aqe_arena *a, const struct aqe_json *v, double **ret,
			   uint32_t *ret_dim, struct aqe_err *e)
{
	double *out;
	size_t n = 0;
	int rc = check_array(v, e);

	if (rc || !v)
		return rc;
	out = aqe_arena_calloc(a, v->len, sizeof(*out));
	if (!out)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	for (const struct aqe_json *item = v->first; item; item = item->next, n++) {
		if (item->type != AQE_JSON_NUMBER)
			return bad(item, "an embedding must be an array of numbers", e);
		out[n] = strtod(item->text, NULL);
	}
	*ret = out;
	*ret_dim = (uint32_t)n;
	return 0;
}

void cache_numbers_emit(const struct cache_value *v, struct aqe_buf *b)
{
	struct cache_value one = { .dim = 1 };
	char text[32];
	float f;
	int n;

	aqe_buf_putc(b, '[');
	for (uint32_t i = 0; i < v->dim; i++) {
		one.floats = v->floats + (size_t)4 * i;
		cache_value_floats(&one, &f);
		n = snprintf(text, sizeof(text), "%s%.9g", i ? "," : "", (double)f);
		aqe_buf_add(b, text, (size_t)n);
	}
	aqe_buf_putc(b, ']');
}

void cache_numbers_emit_base64(const struct cache_value *v, struct aqe_buf *b)
{
	aqe_buf_putc(b, '"');
	aqe_base64_encode(b, v->floats, (size_t)v->dim * 4);
	aqe_buf_putc(b, '"');
}
