/* SPDX-License-Identifier: MIT */
/* Tests that change one thing in a document and look at one thing in the rewritten one. */
#ifndef AQE_UNIT_REWRITE_EDIT_UTIL_H
#define AQE_UNIT_REWRITE_EDIT_UTIL_H

#include "tests/unit/rewrite_util.h"

struct edit {
	const char *pointer, *text; /* text NULL: removed */
};

static inline struct aqe_json *rw_rewrite(const struct aqe_json *doc)
{
	struct aqe_json *result = NULL;

	hard_report_init(&report, arena);
	ck_assert_ok(hard_rewrite(&ctx, arena, doc, &report, &result, &err), err);
	return result;
}

static inline struct aqe_json *rw_rewrite_ok(const struct aqe_json *doc)
{
	struct aqe_json *result = rw_rewrite(doc);

	ck_assert_msg(result != NULL, "refused: %s", rw_failed(&report));
	rw_check_result("result", result);
	return result;
}

static inline void rw_check_value(const struct aqe_json *doc, const char *pointer, const char *want)
{
	const struct aqe_json *v = aqe_json_at(doc, pointer);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(RW_FILE_MAX);

	if (!want) {
		ck_assert_msg(!v, "%s is there", pointer);
		return;
	}
	ck_assert_msg(v != NULL, "no %s", pointer);
	ck_assert_ok(aqe_json_emit(v, AQE_JSON_COMPACT, &b, &err), err);
	ck_assert_msg(aqe_json_equal(v, rw_value(want)), "%s is %s, want %s", pointer,
		      aqe_buf_str(&b), want);
}

static inline void rw_apply(struct aqe_json *doc, const struct edit *edit)
{
	struct aqe_json *old = aqe_json_at(doc, edit->pointer);
	const struct aqe_json *parent = old ? old->parent : NULL;

	/* an element of an array: replaced in place */
	if (edit->text && parent && parent->type == AQE_JSON_ARRAY) {
		struct aqe_json *array = old->parent;
		size_t idx = 0;

		for (const struct aqe_json *i = array->first; i != old; i = i->next)
			idx++;
		aqe_json_detach(old);
		ck_assert_int_eq(aqe_json_insert(array, idx, rw_value(edit->text)), 0);
		return;
	}
	rw_edit(doc, edit->pointer, edit->text);
}

#define BIND(source, destination)                                                     \
	"{\"destination\":\"" destination "\",\"type\":\"bind\",\"source\":\"" source \
	"\",\"options\":[\"rbind\",\"rw\",\"rprivate\"]}"

#endif
