/* SPDX-License-Identifier: MIT */
/* Patch and diff of two documents. The patch is judged by applying it (RFC 6902, own applier). */
#include <dirent.h>
#include <stdlib.h>

#include "hardening/rewrite_diff.h"
#include "tests/unit/rewrite_util.h"

/* ---- a small applier ---- */

/* Undoes the escapes of one token of a pointer (RFC 6901). */
static const char *unescape(const char *token)
{
	char *out = aqe_arena_dup(arena, token), *to = out;

	for (const char *from = token; *from; from++, to++) {
		*to = *from;
		if (from[0] == '~' && (from[1] == '0' || from[1] == '1'))
			*to = *++from == '0' ? '~' : '/';
	}
	*to = '\0';
	return out;
}

static void apply_op(struct aqe_json *doc, const struct aqe_json *op)
{
	const char *name = aqe_json_str(aqe_json_get(op, "op"));
	const char *path = aqe_json_str(aqe_json_get(op, "path"));
	const struct aqe_json *value = aqe_json_get(op, "value");
	const char *slash = strrchr(path, '/');
	struct aqe_json *parent, *old = aqe_json_at(doc, path);

	ck_assert_ptr_nonnull(slash);
	parent = aqe_json_at(doc, aqe_arena_ndup(arena, path, (size_t)(slash - path)));
	ck_assert_msg(parent && parent->type == AQE_JSON_OBJECT, "no object for %s", path);
	if (aqe_str_eq(name, "remove")) {
		ck_assert_msg(old != NULL, "remove: no %s", path);
		aqe_json_detach(old);
		return;
	}
	ck_assert_msg(aqe_str_eq(name, "add") || aqe_str_eq(name, "replace"), "%s", name);
	ck_assert_msg((old != NULL) == aqe_str_eq(name, "replace"), "%s %s", name, path);
	ck_assert_ptr_nonnull(value);
	ck_assert_int_eq(aqe_json_set(arena, parent, unescape(slash + 1),
				      aqe_json_copy(arena, value)),
			 0);
}

static void check_patch(const char *name, const struct aqe_json *before,
			const struct aqe_json *after)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(RW_FILE_MAX);
	struct aqe_json *doc = aqe_json_copy(arena, before), *patch = NULL;

	ck_assert_ok(hard_diff_patch(before, after, &b, &err), err);
	ck_assert_ok(aqe_json_parse(arena, aqe_buf_str(&b), b.len, &AQE_JSON_LIMITS_DEFAULT, &patch,
				    &err),
		     err);
	ck_assert_int_eq(patch->type, AQE_JSON_ARRAY);
	for (const struct aqe_json *op = patch->first; op; op = op->next)
		apply_op(doc, op);
	ck_assert_msg(aqe_json_equal(doc, after), "%s: patched differs", name);
}

/* ---- pairs ---- */

static const struct {
	const char *before, *after, *text; /* text: the diff for people */
} PAIRS[] = {
	{ "{}", "{}", "" },
	{ "{\"a\":1}", "{\"a\":1}", "" },
	{ "{\"a\":1}", "{\"a\":2}", "- /a: 1\n+ /a: 2\n" },
	{ "{\"a\":1}", "{}", "- /a: 1\n+ /a: absent\n" },
	{ "{}", "{\"a\":true}", "- /a: absent\n+ /a: true\n" },
	{ "{\"a\":{\"b\":1,\"c\":2}}", "{\"a\":{\"c\":2,\"d\":3}}",
	  "- /a/b: 1\n+ /a/b: absent\n- /a/d: absent\n+ /a/d: 3\n" },
	{ "{\"a\":{\"b\":1}}", "{\"a\":[1]}", "- /a: {\"b\":1}\n+ /a: [1]\n" },
	{ "{\"a\":[1,2,3]}", "{\"a\":[1,3,4]}", "- /a/1: 2\n+ /a/2: 4\n" },
	{ "{\"a\":[1,2]}", "{\"a\":[2,1]}", "~ /a: another order\n" },
	{ "{\"a\":[]}", "{\"a\":[1]}", "- /a: []\n+ /a: [1]\n" },
	{ "{\"x/y\":{\"~\":1}}", "{\"x/y\":{\"~\":2}}", "- /x~1y/~0: 1\n+ /x~1y/~0: 2\n" },
	{ "{\"a\":null}", "{\"a\":false}", "- /a: null\n+ /a: false\n" },
	/* values of the environment may be secrets */
	{ "{\"process\":{\"env\":[\"A=b\",\"KEY=secret\"]}}",
	  "{\"process\":{\"env\":[\"A=b\",\"HOME=/tmp\"]}}",
	  "- /process/env/1: KEY=...\n+ /process/env/1: HOME=...\n" },
	/* one line for the filter */
	{ "{\"linux\":{\"seccomp\":{\"a\":1,\"b\":2}}}", "{\"linux\":{\"seccomp\":{\"a\":2}}}",
	  "~ /linux/seccomp: the frozen filter\n" },
	{ "{\"linux\":{}}", "{\"linux\":{\"seccomp\":{\"a\":2}}}",
	  "+ /linux/seccomp: the frozen filter\n" },
	{ "{\"\\u001b[31m\":1}", "{}", NULL },
};

START_TEST(diff__pairs)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(RW_FILE_MAX);
	const struct aqe_json *before = rw_value(PAIRS[_i].before);
	const struct aqe_json *after = rw_value(PAIRS[_i].after);

	check_patch(PAIRS[_i].before, before, after);
	ck_assert_ok(hard_diff_text(before, after, &b, &err), err);
	if (PAIRS[_i].text)
		ck_assert_str_eq(aqe_buf_str(&b), PAIRS[_i].text);
	ck_assert_ptr_null(strchr(aqe_buf_str(&b), '\033'));
}
END_TEST

START_TEST(diff__refuses_depth)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);
	struct aqe_json *one = aqe_json_new_i64(arena, 1), *two = aqe_json_new_i64(arena, 2);

	for (int i = 0; i < HARD_DIFF_DEPTH + 1; i++) {
		struct aqe_json *a = aqe_json_new_object(arena), *c = aqe_json_new_object(arena);

		ck_assert_int_eq(aqe_json_set(arena, a, "a", one), 0);
		ck_assert_int_eq(aqe_json_set(arena, c, "a", two), 0);
		one = a;
		two = c;
	}
	ck_assert_int_eq(hard_diff_text(one, two, &b, &err), AQE_E_LIMIT);
}
END_TEST

/* The patch of every sample and corpus file that the rewrite accepts. */
START_TEST(patch__turns_input_into_result)
{
	static const char *const dirs[] = { "tests/samples/", "tests/corpus/spec/" };
	DIR *d = opendir(dirs[_i]);
	size_t n = 0;

	ctx.info_rootless = true;
	ck_assert_ptr_nonnull(d);
	for (const struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
		struct aqe_json *doc, *result = NULL;

		if (!aqe_ends(entry->d_name, ".json"))
			continue;
		doc = rw_parse_file(aqe_arena_fmt(arena, "%s%s", dirs[_i], entry->d_name));
		hard_report_init(&report, arena);
		ck_assert_ok(hard_rewrite(&ctx, arena, doc, &report, &result, &err), err);
		if (result) {
			check_patch(entry->d_name, doc, result);
			n++;
		}
		aqe_arena_free(arena);
		arena = aqe_arena_new(RW_ARENA_MAX);
	}
	(void)closedir(d);
	ck_assert_uint_ge(n, 3);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening_rewrite_diff");
	TCase *t = tcase_create("diff");

	tcase_add_checked_fixture(t, rw_setup, rw_teardown);
	tcase_set_timeout(t, 60); /* whole folders, also under sanitizers */
	tcase_add_loop_test(t, diff__pairs, 0, (int)AQE_COUNT(PAIRS));
	tcase_add_test(t, diff__refuses_depth);
	tcase_add_loop_test(t, patch__turns_input_into_result, 0, 2);
	suite_add_tcase(s, t);
	return unit_run(s);
}
