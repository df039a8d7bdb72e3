/* SPDX-License-Identifier: MIT */
/* Looking at trees, and changing them. */
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

static struct aqe_arena *arena;

static void setup(void)
{
	arena = aqe_arena_new((size_t)64 << 20);
}

static void teardown(void)
{
	aqe_arena_free(arena);
}

static struct aqe_json *parse(const char *text)
{
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *v = NULL;

	limits.fold_dups_ok = true;
	limits.depth = 120;
	ck_assert_ok(aqe_json_parse(arena, text, strlen(text), &limits, &v, &e), e);
	return v;
}

/* The compact text of `v` is `want`, and its links are sound. */
static void check(const struct aqe_json *v, const char *want)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(10000);
	const struct aqe_json *c, *last = NULL;
	size_t n = 0;

	ck_assert_int_eq(aqe_json_emit(v, AQE_JSON_COMPACT, &b, NULL), 0);
	ck_assert_str_eq(aqe_buf_str(&b), want);
	if (v->type != AQE_JSON_ARRAY && v->type != AQE_JSON_OBJECT)
		return;
	for (c = v->first; c; c = c->next) {
		ck_assert_ptr_eq(c->parent, v);
		ck_assert_int_eq(c->key != NULL, v->type == AQE_JSON_OBJECT);
		last = c;
		n++;
	}
	ck_assert_ptr_eq(v->last, last);
	ck_assert_uint_eq(v->len, n);
}

/* ---- looking ---- */

START_TEST(get__finds_members_only)
{
	struct aqe_json *v = parse("{\"a\":1,\"A\":2,\"\":3,\"l\":[{\"a\":4}]}");

	ck_assert_str_eq(aqe_json_get(v, "a")->text, "1");
	ck_assert_str_eq(aqe_json_get(v, "A")->text, "2");
	ck_assert_str_eq(aqe_json_get(v, "")->text, "3");
	ck_assert_ptr_null(aqe_json_get(v, "b"));
	ck_assert_ptr_null(aqe_json_get(NULL, "a"));
	ck_assert_ptr_null(aqe_json_get(aqe_json_get(v, "l"), "a"));
	ck_assert_ptr_null(aqe_json_get(aqe_json_get(v, "a"), "a"));
	ck_assert_ptr_nonnull(aqe_json_item(aqe_json_get(v, "l"), 0));
	ck_assert_ptr_null(aqe_json_item(aqe_json_get(v, "l"), 1));
	ck_assert_ptr_null(aqe_json_item(v, 0));
	ck_assert_ptr_null(aqe_json_item(NULL, 0));
}
END_TEST

#define POINTED                                                                                   \
	"{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"m~n\":8,\"~1\":9,\"l\":[[[7]]]," \
	"\"o\":{\"\":{\"\":5}}}"

/* RFC 6901 section 5 and more. */
static const struct {
	const char *pointer;
	const char *value; /* NULL: there is none */
} POINTERS[] = {
	{ "", POINTED },
	{ "/foo", "[\"bar\",\"baz\"]" },
	{ "/foo/0", "\"bar\"" },
	{ "/foo/1", "\"baz\"" },
	{ "/", "0" },
	{ "/a~1b", "1" },
	{ "/c%d", "2" },
	{ "/m~0n", "8" },
	{ "/~01", "9" },
	{ "/l/0/0/0", "7" },
	{ "/o//", "5" },
	{ "foo", NULL },
	{ "/foo/", NULL },
	{ "/foo/2", NULL },
	{ "/foo/00", NULL },
	{ "/foo/-", NULL },
	{ "/foo/-1", NULL },
	{ "/foo/+1", NULL },
	{ "/foo/18446744073709551616", NULL },
	{ "/foo/1000000000000000000000000000000", NULL },
	{ "/foo/0/0", NULL },
	{ "/f", NULL },
	{ "/fooo", NULL },
	{ "/a/b", NULL },
	{ "/m~n", NULL },
	{ "/m~", NULL },
	{ "/~1", NULL },
	{ "/~2", NULL },
	{ "//", NULL },
};

START_TEST(at__follows_pointers)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1000);
	struct aqe_json *v = aqe_json_at(parse(POINTED), POINTERS[_i].pointer);

	ck_assert_msg((v != NULL) == (POINTERS[_i].value != NULL), "%s", POINTERS[_i].pointer);
	if (!v)
		return;
	check(v, POINTERS[_i].value);
	aqe_json_pointer(v, &b);
	ck_assert_str_eq(aqe_buf_str(&b), POINTERS[_i].pointer);
}
END_TEST

START_TEST(at__accepts_null)
{
	ck_assert_ptr_null(aqe_json_at(NULL, ""));
	ck_assert_ptr_null(aqe_json_at(NULL, "/a"));
}
END_TEST

static const struct {
	const char *a, *b;
	bool equal;
} PAIRS[] = {
	{ "null", "null", true },
	{ "null", "false", false },
	{ "true", "true", true },
	{ "true", "false", false },
	{ "1", "1", true },
	{ "1", "1.0", false },
	{ "1", "\"1\"", false },
	{ "\"a\"", "\"\\u0061\"", true },
	{ "[]", "{}", false },
	{ "[]", "[]", true },
	{ "[1,2]", "[2,1]", false },
	{ "[1,2]", "[1,2,3]", false },
	{ "[1,[2,[3,{}]],4]", "[1, [2, [3, {}]], 4]", true },
	{ "[1,[2,[3,{}]],4]", "[1,[2,[3,[]]],4]", false },
	{ "{\"a\":1,\"b\":{\"c\":[1],\"d\":2}}", "{\"b\":{\"d\":2,\"c\":[1]},\"a\":1}", true },
	{ "{\"a\":1,\"b\":2}", "{\"a\":1,\"c\":2}", false },
	{ "{\"a\":1,\"b\":2}", "{\"a\":2,\"b\":1}", false },
	{ "{\"a\":1}", "{\"a\":1,\"b\":2}", false },
	{ "{\"a\":{\"x\":1}}", "{\"a\":{\"y\":1}}", false },
	{ "{\"a\":1,\"A\":1}", "{\"A\":1,\"a\":1}", true },
	{ "{\"a\":[],\"b\":[{}]}", "{\"b\":[{}],\"a\":[]}", true },
	{ "[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1}]", "[{\"b\":2,\"a\":1},{\"a\":1,\"b\":2}]", true },
};

START_TEST(equal__compares_deeply)
{
	struct aqe_json *a = parse(PAIRS[_i].a), *b = parse(PAIRS[_i].b);

	ck_assert_int_eq(aqe_json_equal(a, b), PAIRS[_i].equal);
	ck_assert_int_eq(aqe_json_equal(b, a), PAIRS[_i].equal);
	ck_assert(aqe_json_equal(a, a));
}
END_TEST

START_TEST(equal__compares_parts_of_documents)
{
	struct aqe_json *v = parse("{\"a\":{\"x\":[1]},\"b\":{\"x\":[1]},\"c\":[{\"x\":[1]},2]}");

	ck_assert(aqe_json_equal(aqe_json_at(v, "/a"), aqe_json_at(v, "/b")));
	ck_assert(aqe_json_equal(aqe_json_at(v, "/a"), aqe_json_at(v, "/c/0")));
	ck_assert(!aqe_json_equal(aqe_json_at(v, "/a"), v));
	ck_assert(!aqe_json_equal(v, NULL) && !aqe_json_equal(NULL, v));
	ck_assert(aqe_json_equal(NULL, NULL));
}
END_TEST

/* ---- getters ---- */

#define TYPED                                                                                   \
	"{\"null\":null,\"bool\":true,\"int\":512,\"neg\":-3,\"real\":1.5,\"exp\":1e3,"         \
	"\"zero\":-0,\"big\":18446744073709551615,\"over\":18446744073709551616,\"str\":\"s\"," \
	"\"arr\":[\"x\",1,\"y\"],\"obj\":{\"k\":1}}"

static const char *const NAMES[] = { "null", "bool", "int", "neg", "real", "exp",    "zero",
				     "big",  "over", "str", "arr", "obj",  "absent", NULL };

/* Which getter takes which member: 1 present, 0 absent, - wrong type. */
static const struct {
	const char *name;
	const char *results; /* in the order of NAMES */
} GETTERS[] = {
	{ "str", "---------1--0" },     { "bool", "-1----------0" },  { "u64", "--1----1----0" },
	{ "u64:511", "------------0" }, { "i64", "--11--------0" },   { "i64:-2", "--1---------0" },
	{ "object", "-----------10" },  { "array", "----------1-0" },
};

static int get(const struct aqe_json *v, const char *getter, const char *name, struct aqe_err *e)
{
	struct aqe_json *sub;
	const char *s;
	uint64_t u;
	int64_t i;
	bool b;

	if (strcmp(getter, "str") == 0)
		return aqe_json_get_str(v, name, &s, e);
	if (strcmp(getter, "bool") == 0)
		return aqe_json_get_bool(v, name, &b, e);
	if (strcmp(getter, "u64") == 0)
		return aqe_json_get_u64(v, name, UINT64_MAX, &u, e);
	if (strcmp(getter, "u64:511") == 0)
		return aqe_json_get_u64(v, name, 511, &u, e);
	if (strcmp(getter, "i64") == 0)
		return aqe_json_get_i64(v, name, INT64_MIN, INT64_MAX, &i, e);
	if (strcmp(getter, "i64:-2") == 0)
		return aqe_json_get_i64(v, name, -2, INT64_MAX, &i, e);
	if (strcmp(getter, "object") == 0)
		return aqe_json_get_object(v, name, &sub, e);
	return aqe_json_get_array(v, name, &sub, e);
}

START_TEST(getters__tell_absent_from_wrong_type)
{
	struct aqe_json *v = parse(TYPED);

	for (size_t k = 0; NAMES[k]; k++) {
		char want = GETTERS[_i].results[k];
		struct aqe_err e = AQE_ERR_INIT;
		int rc = get(v, GETTERS[_i].name, NAMES[k], &e);

		ck_assert_msg(rc == (want == '-' ? AQE_E_MALFORMED : want - '0'), "%s of %s: %d",
			      GETTERS[_i].name, NAMES[k], rc);
		if (want != '-')
			continue;
		ck_assert_fault(rc, AQE_E_MALFORMED, e, NAMES[k]);
		ck_assert_uint_eq(e.line, 1);
		ck_assert_uint_eq(e.col, aqe_json_get(v, NAMES[k])->col);
		ck_assert_int_eq(get(v, GETTERS[_i].name, NAMES[k], NULL), AQE_E_MALFORMED);
	}
	ck_assert_int_eq(get(NULL, GETTERS[_i].name, "int", NULL), 0);
}
END_TEST

START_TEST(getters__explain)
{
	struct aqe_json *v = parse("{\"process\":{\"user\":{\"uid\":\"0\",\"gid\":4294967296,"
				   "\"a~/b\\n\":null}}}");
	struct aqe_json *user = aqe_json_at(v, "/process/user");
	struct aqe_err e = AQE_ERR_INIT;
	uint64_t u = 7;
	bool b;

	ck_assert_int_eq(aqe_json_get_u64(user, "uid", 9, &u, &e), AQE_E_MALFORMED);
	ck_assert_str_eq(e.text,
			 "'/process/user/uid' is of type string, not an integer from 0 to 9");
	ck_assert_int_eq(aqe_json_get_u64(user, "gid", 2147483647, &u, &e), AQE_E_MALFORMED);
	ck_assert_str_eq(e.text,
			 "'/process/user/gid' is 4294967296, not an integer from 0 to 2147483647");
	ck_assert_int_eq(aqe_json_get_bool(user, "a~/b\n", &b, &e), AQE_E_MALFORMED);
	ck_assert_str_eq(e.text, "'/process/user/a~0~1b\\x0a' is of type null, not boolean");
	ck_assert_uint_eq(u, 7);
}
END_TEST

START_TEST(getters__give_values)
{
	struct aqe_json *v = parse(TYPED), *sub = NULL;
	const char *s = NULL;
	uint64_t u = 0;
	int64_t i = 0;
	bool b = false;

	ck_assert_int_eq(aqe_json_get_str(v, "str", &s, NULL), 1);
	ck_assert_str_eq(s, "s");
	ck_assert_int_eq(aqe_json_get_bool(v, "bool", &b, NULL), 1);
	ck_assert(b);
	ck_assert_int_eq(aqe_json_get_u64(v, "big", UINT64_MAX, &u, NULL), 1);
	ck_assert_uint_eq(u, UINT64_MAX);
	ck_assert_int_eq(aqe_json_get_i64(v, "neg", -3, 0, &i, NULL), 1);
	ck_assert_int_eq(i, -3);
	ck_assert_int_eq(aqe_json_get_array(v, "arr", &sub, NULL), 1);
	ck_assert(aqe_json_has_str(sub, "y") && !aqe_json_has_str(sub, "1"));
	ck_assert(!aqe_json_has_str(v, "s") && !aqe_json_has_str(NULL, "s"));
	ck_assert_ptr_null(aqe_json_str(sub));
	ck_assert_ptr_null(aqe_json_str(NULL));
	ck_assert_ptr_null(aqe_json_str(aqe_json_get(v, "int")));
	ck_assert_str_eq(aqe_json_str(sub->first), "x");
	ck_assert(aqe_json_to_u64(aqe_json_get(v, "int"), 512, &u) && u == 512);
	ck_assert(!aqe_json_to_u64(aqe_json_get(v, "str"), 512, &u));
	ck_assert(!aqe_json_to_i64(NULL, 0, 1, &i) && !aqe_json_to_u64(NULL, 1, &u));
	ck_assert_str_eq(aqe_json_type_name(AQE_JSON_OBJECT), "object");
	ck_assert_str_eq(aqe_json_type_name((enum aqe_json_type)9), "invalid");
}
END_TEST

/* ---- editing ---- */

START_TEST(set__adds_and_replaces)
{
	struct aqe_json *v = aqe_json_new_object(arena), *old;

	ck_assert_int_eq(aqe_json_set(arena, v, "a", aqe_json_new_i64(arena, -1)), 0);
	ck_assert_int_eq(aqe_json_set(arena, v, "b", aqe_json_new_u64(arena, UINT64_MAX)), 0);
	ck_assert_int_eq(aqe_json_set(arena, v, "c", aqe_json_new_null(arena)), 0);
	check(v, "{\"a\":-1,\"b\":18446744073709551615,\"c\":null}");
	old = aqe_json_get(v, "b");
	ck_assert_int_eq(aqe_json_set(arena, v, "b", aqe_json_new_bool(arena, true)), 0);
	check(v, "{\"a\":-1,\"b\":true,\"c\":null}");
	ck_assert_ptr_null(old->parent);
	ck_assert_ptr_null(old->key);
	check(old, "18446744073709551615");
	ck_assert_int_eq(aqe_json_set(arena, v, "a", aqe_json_new_str(arena, "first")), 0);
	ck_assert_int_eq(aqe_json_set(arena, v, "c", aqe_json_new_array(arena)), 0);
	check(v, "{\"a\":\"first\",\"b\":true,\"c\":[]}");
}
END_TEST

START_TEST(set__refuses)
{
	struct aqe_json *v = parse("{\"a\":{},\"l\":[1]}");
	struct aqe_json *one = aqe_json_new_i64(arena, 1);

	ck_assert_int_eq(aqe_json_set(arena, v, "x", NULL), AQE_E_NOMEM);
	ck_assert_int_eq(aqe_json_set(arena, NULL, "x", one), AQE_E_INTERNAL);
	ck_assert_int_eq(aqe_json_set(arena, aqe_json_get(v, "l"), "x", one), AQE_E_INTERNAL);
	ck_assert_int_eq(aqe_json_set(arena, v, "x", aqe_json_get(v, "a")), AQE_E_INTERNAL);
	ck_assert_int_eq(aqe_json_set(arena, v, "x", v), AQE_E_INTERNAL);
	ck_assert_int_eq(aqe_json_append(v, one), AQE_E_INTERNAL);
	ck_assert_int_eq(aqe_json_append(NULL, one), AQE_E_INTERNAL);
	ck_assert_int_eq(aqe_json_append(aqe_json_get(v, "l"), NULL), AQE_E_NOMEM);
	ck_assert_int_eq(aqe_json_append(aqe_json_get(v, "l"), aqe_json_get(v, "a")),
			 AQE_E_INTERNAL);
	check(v, "{\"a\":{},\"l\":[1]}");
}
END_TEST

START_TEST(set__copies_the_key)
{
	char key[] = "key";
	struct aqe_json *v = aqe_json_new_object(arena);

	ck_assert_int_eq(aqe_json_set(arena, v, key, aqe_json_new_i64(arena, 1)), 0);
	key[0] = 'x'; /* it was copied */
	check(v, "{\"key\":1}");
}
END_TEST

START_TEST(insert__puts_anywhere)
{
	struct aqe_json *v = aqe_json_new_array(arena);

	ck_assert_int_eq(aqe_json_insert(v, 5, aqe_json_new_i64(arena, 2)), 0);
	ck_assert_int_eq(aqe_json_insert(v, 0, aqe_json_new_i64(arena, 0)), 0);
	ck_assert_int_eq(aqe_json_insert(v, 1, aqe_json_new_i64(arena, 1)), 0);
	ck_assert_int_eq(aqe_json_insert(v, 3, aqe_json_new_i64(arena, 3)), 0);
	ck_assert_int_eq(aqe_json_append(v, aqe_json_new_i64(arena, 4)), 0);
	check(v, "[0,1,2,3,4]");
}
END_TEST

START_TEST(detach__takes_out)
{
	struct aqe_json *v = parse("{\"l\":[0,1,2],\"x\":1}"), *l = aqe_json_get(v, "l"), *one;

	one = aqe_json_item(l, 1);
	aqe_json_detach(one);
	check(v, "{\"l\":[0,2],\"x\":1}");
	aqe_json_detach(aqe_json_item(l, 1));
	check(l, "[0]");
	aqe_json_detach(l->first);
	check(l, "[]");
	ck_assert_int_eq(aqe_json_append(l, one), 0);
	check(l, "[1]");
	aqe_json_detach(NULL);
	aqe_json_detach(v); /* a root */
	aqe_json_remove(v, "absent");
	aqe_json_remove(v, "x");
	check(v, "{\"l\":[1]}");
	aqe_json_remove(v, "l");
	check(v, "{}");
	aqe_json_remove(NULL, "l");
}
END_TEST

START_TEST(ensure_object__finds_or_makes)
{
	struct aqe_json *v = parse("{\"o\":{\"a\":1},\"n\":null}"), *o;

	o = aqe_json_ensure_object(arena, v, "o");
	ck_assert_ptr_eq(o, aqe_json_get(v, "o"));
	ck_assert_ptr_null(aqe_json_ensure_object(arena, v, "n"));
	o = aqe_json_ensure_object(arena, v, "new");
	ck_assert_ptr_nonnull(o);
	ck_assert_ptr_null(aqe_json_ensure_object(arena, aqe_json_get(v, "n"), "x"));
	check(v, "{\"o\":{\"a\":1},\"n\":null,\"new\":{}}");
}
END_TEST

START_TEST(new__builds_values)
{
	static const char *const WORDS[] = { "a", "", "c" };

	check(aqe_json_new_strs(arena, WORDS, 3), "[\"a\",\"\",\"c\"]");
	check(aqe_json_new_strs(arena, NULL, 0), "[]");
	check(aqe_json_new_i64(arena, INT64_MIN), "-9223372036854775808");
	check(aqe_json_new_u64(arena, 0), "0");
	check(aqe_json_new_bool(arena, false), "false");
	ck_assert_ptr_null(aqe_json_new_str(arena, NULL));
}
END_TEST

START_TEST(copy__is_deep_and_detached)
{
	static const char DOC[] = "{\"a\":[1,[2,{\"b\":[]},3],{}],\"s\":\"x\\n\",\"t\":true,"
				  "\"n\":{\"K\":1,\"k\":{\"z\":null}}}";
	struct aqe_arena *first = arena;
	struct aqe_json *v = parse(DOC), *whole, *part;

	setup(); /* the copies outlive the original */
	whole = aqe_json_copy(arena, v);
	part = aqe_json_copy(arena, aqe_json_at(v, "/n"));
	ck_assert(aqe_json_equal(v, whole));
	aqe_arena_free(first);
	check(whole, DOC);
	check(part, "{\"K\":1,\"k\":{\"z\":null}}");
	ck_assert_ptr_null(part->key);
	ck_assert_ptr_null(part->parent);
	ck_assert_ptr_null(part->next);
	ck_assert(part->fold_dup);
	ck_assert_uint_gt(part->col, 1);
	check(aqe_json_copy(arena, aqe_json_at(whole, "/a/1/0")), "2");
	check(aqe_json_copy(arena, aqe_json_at(whole, "/a/2")), "{}");
	ck_assert_ptr_null(aqe_json_copy(arena, NULL));
}
END_TEST

/* Deep and wide trees are handled without recursion and without quadratic time. */
START_TEST(trees__of_any_shape)
{
	struct aqe_json *v = aqe_json_new_array(arena), *copy;
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)16 << 20);

	for (int i = 0; i < 200000; i++) {
		struct aqe_json *outer = aqe_json_new_array(arena);

		if (aqe_json_append(outer, v) != 0) /* ck_assert is slow */
			ck_abort();
		v = outer;
	}
	copy = aqe_json_copy(arena, v);
	ck_assert_ptr_nonnull(copy);
	ck_assert(aqe_json_equal(v, copy));
	ck_assert_int_eq(aqe_json_emit(v, AQE_JSON_COMPACT, &b, NULL), 0);
	ck_assert_uint_eq(b.len, 400002);
	v = aqe_json_new_array(arena);
	for (int i = 0; i < 200000; i++)
		if (aqe_json_append(v, aqe_json_new_null(arena)) != 0)
			ck_abort();
	ck_assert(aqe_json_equal(v, aqe_json_copy(arena, v)));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("core/json tree");
	TCase *t = tcase_create("tree");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, get__finds_members_only);
	tcase_add_loop_test(t, at__follows_pointers, 0, (int)AQE_COUNT(POINTERS));
	tcase_add_test(t, at__accepts_null);
	tcase_add_loop_test(t, equal__compares_deeply, 0, (int)AQE_COUNT(PAIRS));
	tcase_add_test(t, equal__compares_parts_of_documents);
	tcase_add_loop_test(t, getters__tell_absent_from_wrong_type, 0, (int)AQE_COUNT(GETTERS));
	tcase_add_test(t, getters__explain);
	tcase_add_test(t, getters__give_values);
	tcase_add_test(t, set__adds_and_replaces);
	tcase_add_test(t, set__refuses);
	tcase_add_test(t, set__copies_the_key);
	tcase_add_test(t, insert__puts_anywhere);
	tcase_add_test(t, detach__takes_out);
	tcase_add_test(t, ensure_object__finds_or_makes);
	tcase_add_test(t, new__builds_values);
	tcase_add_test(t, copy__is_deep_and_detached);
	tcase_add_test(t, trees__of_any_shape);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
