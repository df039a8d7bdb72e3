/* SPDX-License-Identifier: MIT */
/* What the reader accepts is within its limits, and what the writer makes of it reads the same. */
#include <stdlib.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/json.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void check_limits(const struct aqe_json *root, const struct aqe_json_limits *l)
{
	const struct aqe_json *v = root;
	size_t depth = 0, values = 0;

	while (v) {
		values++;
		must(v->line >= 1 && v->col >= 1);
		must(!v->key || strlen(v->key) <= l->string);
		must(v->type != AQE_JSON_STRING ||
		     (v->len <= l->string && strlen(v->text) == v->len));
		must(v->type != AQE_JSON_NUMBER || v->len <= l->number);
		if (v->type == AQE_JSON_ARRAY || v->type == AQE_JSON_OBJECT)
			must(v->len <= l->entries && depth + 1 <= l->depth);
		if (v->first) {
			v = v->first;
			depth++;
			continue;
		}
		while (v && v != root && !v->next) {
			v = v->parent;
			depth--;
		}
		v = v == root ? NULL : v->next;
	}
	must(values <= l->values);
}

static void check_roundtrip(struct aqe_arena *a, const struct aqe_json *v, unsigned flags,
			    const struct aqe_json_limits *limits)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)64 << 20);
	struct aqe_json_limits loose = *limits;
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *again = NULL;

	loose.bytes = b.max; /* indentation and escapes may make it longer */
	must(aqe_json_emit(v, flags, &b, &e) == 0);
	must(aqe_json_parse(a, b.p, b.len, &loose, &again, &e) == 0);
	must(aqe_json_equal(v, again) && aqe_json_equal(v, aqe_json_copy(a, again)));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static const struct aqe_json_limits SMALL = {
		.bytes = 4096, .depth = 5, .values = 60, .entries = 9, .string = 12, .number = 6
	};
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)512 << 20);
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *v = NULL;
	int rc;

	if (aqe_json_parse(a, (const char *)data, size, &SMALL, &v, &e) == 0)
		check_limits(v, &SMALL);
	limits.fold_dups_ok = true;
	rc = aqe_json_parse(a, (const char *)data, size, &limits, &v, &e);
	must(rc == 0 || rc == AQE_E_MALFORMED || rc == AQE_E_LIMIT);
	if (rc) {
		must(e.code == (enum aqe_code)rc && e.line >= 1 && e.col >= 1 && e.text[0]);
		return 0;
	}
	check_limits(v, &limits);
	for (unsigned flags = 0; flags < 4; flags += 3) /* compact; pretty and sorted */
		check_roundtrip(a, v, flags, &limits);
	return 0;
}
