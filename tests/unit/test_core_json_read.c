/* SPDX-License-Identifier: MIT */
/* The JSON reader: rules R2 to R8. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

#define MALFORMED "tests/corpus/malformed/"

static struct aqe_arena *arena;

static void setup(void)
{
	arena = aqe_arena_new((size_t)256 << 20);
}

static void teardown(void)
{
	aqe_arena_free(arena);
}

static int parse_with(const char *text, size_t len, const struct aqe_json_limits *limits,
		      struct aqe_json **ret, struct aqe_err *e)
{
	struct aqe_json *untouched = *ret;
	char *copy = malloc(len ? len : 1); /* exactly as long: reading on is found by ASan */
	int rc;

	memcpy(copy, text, len);
	rc = aqe_json_parse(arena, copy, len, limits, ret, e);
	free(copy); /* the tree must not need it */
	if (rc) {
		ck_assert_ptr_eq(*ret, untouched);
		ck_assert_int_eq(e->code, rc);
		ck_assert_str_ne(e->text, "");
		ck_assert_uint_ge(e->line, 1);
		ck_assert_uint_ge(e->col, 1);
	}
	return rc;
}

static int parse(const char *text, size_t len, struct aqe_json **ret, struct aqe_err *e)
{
	return parse_with(text, len, &AQE_JSON_LIMITS_DEFAULT, ret, e);
}

/* ---- accepted ---- */

static const struct {
	const char *text;
	const char *compact;
} GOOD[] = {
	{ "null", "null" },
	{ " true ", "true" },
	{ "false", "false" },
	{ "\r\n\t 0", "0" },
	{ "-0", "-0" },
	{ "12.5e+3", "12.5e+3" },
	{ "1E400", "1E400" },
	{ "-1.0E-2", "-1.0E-2" },
	{ "18446744073709551615", "18446744073709551615" },
	{ "\"\"", "\"\"" },
	{ "[]", "[]" },
	{ "{}", "{}" },
	{ "[ ]", "[]" },
	{ "{ }", "{}" },
	{ "[1,[2,[3]],{}]", "[1,[2,[3]],{}]" },
	{ "{\"\":{\"\":[{\"\":null}]}}", "{\"\":{\"\":[{\"\":null}]}}" },
	{ "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\"" },
	{ "\"\\u0041\\u00e9\\u20ac\\ud83d\\uDE00\"", "\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
	{ "\"\\u0001\\u001f\\u007f\"", "\"\\u0001\\u001f\x7f\"" },
	{ "\"\\\\u0000\"", "\"\\\\u0000\"" }, /* an escaped backslash, not an escaped NUL */
	{ "\"\\uD7FF\\uE000\\uFFFF\"", "\"\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\"" },
	{ "\"\\uDBFF\\uDFFF\"", "\"\xf4\x8f\xbf\xbf\"" },
	{ "\"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf"
	  "\xbf\"",
	  "\"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf"
	  "\xbf\"" },
	{ "\"\xef\xbb\xbf\"", "\"\xef\xbb\xbf\"" }, /* no mark inside a string */
	{ "{\"a\":1,\"b\":{\"a\":1},\"c\":[{\"a\":1},{\"a\":1}]}",
	  "{\"a\":1,\"b\":{\"a\":1},\"c\":[{\"a\":1},{\"a\":1}]}" },
	{ "[\"// no comment\",\"/* no */\",\"# no\"]",
	  "[\"// no comment\",\"/* no */\",\"# no\"]" },
};

START_TEST(parse__accepts)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1000);
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *v = NULL;
	int rc = parse(GOOD[_i].text, strlen(GOOD[_i].text), &v, &e);

	ck_assert_ok(rc, e);
	ck_assert_int_eq(aqe_json_emit(v, AQE_JSON_COMPACT, &b, &e), 0);
	ck_assert_str_eq(aqe_buf_str(&b), GOOD[_i].compact);
}
END_TEST

/* ---- refused ---- */

#define TEXT(literal) literal, sizeof(literal) - 1

static const struct {
	const char *text;
	size_t len;
	uint32_t line, col;
	const char *why;
} BAD[] = {
	/* not one whole value */
	{ TEXT(""), 1, 1, "premature EOF" },
	{ TEXT(" \n "), 2, 2, "premature EOF" },
	{ TEXT("{"), 1, 2, "premature EOF" },
	{ TEXT("{\"a\""), 1, 5, "premature EOF" },
	{ TEXT("{\"a\":"), 1, 6, "premature EOF" },
	{ TEXT("{\"a\":1,"), 1, 8, "premature EOF" },
	{ TEXT("[1,\n2"), 2, 2, "premature EOF" },
	{ TEXT("tru"), 1, 1, "invalid string" },
	{ TEXT("-"), 1, 1, "minus" },
	{ TEXT("1."), 1, 1, "decimal" },
	{ TEXT("1e"), 1, 1, "exponent" },
	{ TEXT("1 2"), 1, 3, "trailing" },
	{ TEXT("{} {}"), 1, 4, "trailing" },
	{ TEXT("{}\n}"), 2, 1, "trailing" },
	{ TEXT("{},{}"), 1, 3, "trailing" },
	{ TEXT("[]x"), 1, 3, "trailing" },
	{ TEXT("null\nnull"), 2, 1, "trailing" },
	/* grammar */
	{ TEXT("["), 1, 2, "premature" },
	{ TEXT("]"), 1, 1, "unallowed token" },
	{ TEXT("[1,]"), 1, 4, "unallowed token" },
	{ TEXT("[,1]"), 1, 2, "unallowed token" },
	{ TEXT("[1,,2]"), 1, 4, "unallowed token" },
	{ TEXT("[1 2]"), 1, 4, "after array element" },
	{ TEXT("[1:2]"), 1, 3, "after array element" },
	{ TEXT("[1}"), 1, 3, "after array element" },
	{ TEXT("{\"a\":1]"), 1, 7, "after key and value" },
	{ TEXT("{\"a\":1,}"), 1, 8, "object key" },
	{ TEXT("{,}"), 1, 2, "object key" },
	{ TEXT("{\"a\":1,,\"b\":1}"), 1, 8, "object key" },
	{ TEXT("{\"a\":1\n \"b\":1}"), 2, 2, "after key and value" },
	{ TEXT("{\"a\" 1}"), 1, 6, "colon" },
	{ TEXT("{\"a\"::1}"), 1, 6, "unallowed token" },
	{ TEXT("{\"a\",1}"), 1, 5, "colon" },
	{ TEXT("{1:2}"), 1, 2, "object key" },
	{ TEXT("{null:2}"), 1, 2, "object key" },
	{ TEXT("{a:1}"), 1, 2, "invalid char" },
	{ TEXT("{'a':1}"), 1, 2, "invalid char" },
	{ TEXT("[True]"), 1, 2, "invalid char" },
	{ TEXT("[nul]"), 1, 2, "invalid string" },
	{ TEXT("[nullx]"), 1, 6, "invalid char" },
	{ TEXT("[NaN]"), 1, 2, "invalid char" },
	{ TEXT("[Infinity]"), 1, 2, "invalid char" },
	{ TEXT("[-Infinity]"), 1, 2, "minus" },
	{ TEXT("[01]"), 1, 3, "after array element" },
	{ TEXT("[-01]"), 1, 4, "after array element" },
	{ TEXT("[+1]"), 1, 2, "invalid char" },
	{ TEXT("[.5]"), 1, 2, "invalid char" },
	{ TEXT("[1.]"), 1, 2, "decimal" },
	{ TEXT("[1.e3]"), 1, 2, "decimal" },
	{ TEXT("[0x10]"), 1, 3, "invalid char" },
	{ TEXT("[1_000]"), 1, 3, "invalid char" },
	{ TEXT("[1e+]"), 1, 2, "exponent" },
	/* comments */
	{ TEXT("/* c */ {}"), 1, 1, "comment" },
	{ TEXT("{} // c"), 1, 4, "trailing" },
	{ TEXT("{ // c\n}"), 1, 3, "comment" },
	{ TEXT("# c\n{}"), 1, 1, "invalid char" },
	/* bytes */
	{ TEXT("\xef\xbb\xbf{}"), 1, 1, "byte-order mark" },
	{ TEXT("\xfe\xff\0{\0}"), 1, 1, "invalid char" },
	{ TEXT("{\0}"), 1, 2, "NUL byte" },
	{ TEXT("{}\0"), 1, 3, "NUL byte" },
	{ TEXT("{}\0{}"), 1, 3, "NUL byte" },
	{ TEXT("[\"a\0b\"]"), 1, 4, "NUL byte in a string" },
	{ TEXT("[\"a\nb\"]"), 1, 4, "control character in a string" },
	{ TEXT("[\"\tb\"]"), 1, 3, "control character in a string" },
	{ TEXT("[\"\x1f\"]"), 1, 3, "control character in a string" },
	{ TEXT("[\v1]"), 1, 2, "control character" },
	{ TEXT("[\f1]"), 1, 2, "control character" },
	{ TEXT("[\xc2\xa0\x31]"), 1, 2, "invalid char" },
	{ TEXT("[\"\xc0\x80\"]"), 1, 3, "invalid UTF-8" },
	{ TEXT("[\"\xc0\xaf\"]"), 1, 3, "invalid UTF-8" },
	{ TEXT("[\"\xc1\xbf\"]"), 1, 3, "invalid UTF-8" },
	{ TEXT("[\"\xe0\x9f\xbf\"]"), 1, 3, "invalid UTF-8" },
	{ TEXT("[\"\xed\xa0\x80\"]"), 1, 3, "invalid UTF-8" },
	{ TEXT("[\"\xed\xbf\xbf\"]"), 1, 3, "invalid UTF-8" },
	{ TEXT("[\"\xf0\x8f\xbf\xbf\"]"), 1, 3, "invalid UTF-8" },
	{ TEXT("[\"\xf4\x90\x80\x80\"]"), 1, 3, "invalid UTF-8" },
	{ TEXT("[\"\xf5\x80\x80\x80\"]"), 1, 3, "invalid UTF-8" },
	{ TEXT("[\"\xff\"]"), 1, 3, "invalid UTF-8" },
	{ TEXT("[\"\x80\"]"), 1, 3, "invalid UTF-8" },
	{ TEXT("[\"\xc3\"]"), 1, 3, "invalid UTF-8" },
	{ TEXT("[\"\xe2\x82"), 1, 3, "invalid UTF-8" },
	{ TEXT("{\"\xc0\x80\":1}"), 1, 3, "invalid UTF-8" },
	/* escapes */
	{ TEXT("[\"\\u0000\"]"), 1, 3, "NUL" },
	{ TEXT("{\"a\\u0000\":1}"), 1, 4, "NUL" },
	{ TEXT("[\"\\ud800\"]"), 1, 3, "lone surrogate" },
	{ TEXT("[\"\\udc00\"]"), 1, 3, "lone surrogate" },
	{ TEXT("[\"\\udfff\\ud800\"]"), 1, 3, "lone surrogate" },
	{ TEXT("[\"\\ud800x\"]"), 1, 3, "lone surrogate" },
	{ TEXT("[\"\\ud800\\n\"]"), 1, 3, "lone surrogate" },
	{ TEXT("[\"\\ud800\\u0041\"]"), 1, 3, "lone surrogate" },
	{ TEXT("[\"\\ud800\\ud800\"]"), 1, 3, "lone surrogate" },
	{ TEXT("[\"\\ud800\\u"), 1, 3, "lone surrogate" },
	{ TEXT("[\"\\ud800"), 1, 3, "lone surrogate" },
	{ TEXT("[\"\\x41\"]"), 1, 3, "invalid escape" },
	{ TEXT("[\"\\'\"]"), 1, 3, "invalid escape" },
	{ TEXT("[\"\\0\"]"), 1, 3, "invalid escape" },
	{ TEXT("[\"\\\0\"]"), 1, 3, "invalid escape" },
	{ TEXT("[\"\\\n\"]"), 1, 3, "invalid escape" },
	{ TEXT("[\"\\U0041\"]"), 1, 3, "invalid escape" },
	{ TEXT("[\"\\u 041\"]"), 1, 3, "escape" },
	{ TEXT("[\"\\u004g\"]"), 1, 3, "escape" },
	{ TEXT("[\"\\u004\"]"), 1, 3, "escape" },
	{ TEXT("[\"\\u004"), 1, 3, "escape" },
	{ TEXT("[\"\\"), 1, 3, "escape" },
	{ TEXT("[\""), 1, 2, "string has no end" },
	{ TEXT("[\"abc"), 1, 2, "string has no end" },
	{ TEXT("[\"abc\\\""), 1, 2, "string has no end" },
	/* the first fault of the document is reported, whoever finds it */
	{ TEXT("[1 2,\n\"\\u0000\"]"), 1, 4, "after array element" },
	{ TEXT("{\"a\":1,\"a\":2}\n\xff"), 1, 8, "duplicate" },
	{ TEXT("[\"\\u0000\"\n 1 2]"), 1, 3, "NUL" },
	{ TEXT("x \"unterminated"), 1, 1, "invalid char" },
	/* duplicates */
	{ TEXT("{\"a\":1,\"a\":1}"), 1, 8, "duplicate key 'a'" },
	{ TEXT("{\"\":1,\"b\":2,\n \"\":3}"), 2, 2, "duplicate key ''" },
	{ TEXT("{\"a\":1,\"\\u0061\":1}"), 1, 8, "duplicate key 'a'" },
	{ TEXT("{\"\\u00e9\":1,\"\xc3\xa9\":1}"), 1, 13, "duplicate key" },
	{ TEXT("{\"/\":1,\"\\/\":1}"), 1, 8, "duplicate key '/'" },
	{ TEXT("[{\"x\":{\"a\":1,\"a\":1}}]"), 1, 14, "duplicate key 'a'" },
	{ TEXT("{\"a\":{},\"b\":[],\"a\":null}"), 1, 16, "duplicate key 'a'" },
	{ TEXT("{\"a\\n\":1,\"a\\n\":1}"), 1, 10, "duplicate key 'a\\x0a'" },
	/* case */
	{ TEXT("{\"process\":1,\"Process\":1}"), 1, 14, "'Process' differs from 'process'" },
	{ TEXT("{\"PROCESS\":1,\"process\":1}"), 1, 14, "only in letter case" },
	{ TEXT("{\"process\":1,\"proce\xc5\xbfs\":1}"), 1, 14, "only in letter case" },
	{ TEXT("{\"process\":1,\"proce\\u017fs\":1}"), 1, 14, "only in letter case" },
	{ TEXT("{\"masKedPaths\":1,\"mas\xe2\x84\xaa\x65\x64Paths\":1}"), 1, 18,
	  "only in letter case" },
	{ TEXT("{\"\xc5\xbf\":1,\"S\":1}"), 1, 9, "only in letter case" },
	{ TEXT("{\"\xe2\x84\xaa\":1,\"k\":1}"), 1, 10, "only in letter case" },
};

START_TEST(parse__refuses)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *v = NULL;
	int rc = parse(BAD[_i].text, BAD[_i].len, &v, &e);

	ck_assert_fault(rc, AQE_E_MALFORMED, e, BAD[_i].why);
	ck_assert_msg(e.line == BAD[_i].line && e.col == BAD[_i].col,
		      "'%s' (%s): at %u:%u, want %u:%u", BAD[_i].text, e.text, e.line, e.col,
		      BAD[_i].line, BAD[_i].col);
}
END_TEST

/* Different names, though close to each other. */
static const char *const DISTINCT[] = {
	"{\"a\":1,\"b\":1,\"ab\":1,\"aa\":1,\"\":1}",
	"{\"\xc3\xa9\":1,\"\xc3\x89\":1}",   /* e-acute: no JSON reader folds it for ASCII names */
	"{\"@\":1,\"`\":1,\"[\":1,\"{\":1}", /* 0x20 apart, but no letters */
	"{\"s\":1,\"\xc5\xbe\":1,\"\xc6\xbf\":1}", /* neighbours of the long s */
	"{\"k\":1,\"\xe2\x84\xab\":1,\"\xe2\x84\xa9\":1}",
	"{\"ss\":1,\"s\":1,\"\xc5\xbfss\":1}",
};

START_TEST(parse__accepts_distinct_names)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *v = NULL;
	int rc = parse(DISTINCT[_i], strlen(DISTINCT[_i]), &v, &e);

	ck_assert_ok(rc, e);
	ck_assert(!v->fold_dup);
}
END_TEST

START_TEST(parse__marks_folded_names_when_allowed)
{
	static const char TEXT_FOLD[] =
		"{\"a\":1,\"A\":2,\"sub\":{\"k\":1,\"\xe2\x84\xaa\":1,\"x\":{}}}";
	static const char TEXT_SAME[] = "{\"a\":1,\"A\":2,\"a\":3}";
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *v = NULL;
	int rc;

	limits.fold_dups_ok = true;
	rc = parse_with(TEXT_FOLD, sizeof(TEXT_FOLD) - 1, &limits, &v, &e);
	ck_assert_ok(rc, e);
	ck_assert(v->fold_dup);
	ck_assert(aqe_json_get(v, "sub")->fold_dup);
	ck_assert(!aqe_json_at(v, "/sub/x")->fold_dup);
	ck_assert_str_eq(aqe_json_get(v, "A")->text, "2");
	rc = parse_with(TEXT_SAME, sizeof(TEXT_SAME) - 1, &limits, &v, &e);
	ck_assert_fault(rc, AQE_E_MALFORMED, e, "duplicate key 'a'");
	ck_assert_uint_eq(e.col, 14);
}
END_TEST

/* Objects of every size around the border between comparing and sorting. */
START_TEST(parse__finds_duplicates_in_objects_of_any_size)
{
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	size_t n = (size_t)_i, first, second;
	struct aqe_json *v = NULL;

	for (first = 0; first < n; first++) {
		AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 20);
		struct aqe_err e = AQE_ERR_INIT;
		uint32_t col = 0;
		int rc;

		second = n - 1 - first / 2;
		for (size_t i = 0; i < n; i++) {
			(void)aqe_buf_puts(&b, i ? "," : "{");
			if (i == second && first < second)
				col = (uint32_t)b.len + 1;
			(void)aqe_buf_addf(&b, "\"%s%zu\":0", i == second ? "KEY" : "key",
					   i == second && first < second ? first : i);
		}
		(void)aqe_buf_puts(&b, "}");
		rc = parse(b.p, b.len, &v, &e);
		if (first < second) {
			ck_assert_fault(rc, AQE_E_MALFORMED, e, "only in letter case");
			ck_assert_uint_eq(e.col, col);
		} else {
			ck_assert_ok(rc, e);
		}
		limits.fold_dups_ok = true;
		rc = parse_with(b.p, b.len, &limits, &v, &e);
		ck_assert_ok(rc, e);
		ck_assert_int_eq(v->fold_dup, first < second);
	}
}
END_TEST

/* ---- limits, at n - 1, n, n + 1 ---- */

enum limit { BYTES, DEPTH, DEPTH_OBJ, VALUES, ITEMS, MEMBERS, STRING, ESCAPED, KEY, NUMBER };

static void repeat(struct aqe_buf *b, const char *s, size_t n)
{
	while (n-- > 0)
		(void)aqe_buf_puts(b, s);
}

static void list(struct aqe_buf *b, size_t n, bool keys)
{
	for (size_t i = 0; i < n; i++) {
		if (keys)
			(void)aqe_buf_addf(b, "%s\"%zu\":1", i ? "," : "", i);
		else
			(void)aqe_buf_addf(b, "%s1", i ? "," : "");
	}
}

/* A document that uses exactly `n` of a limit. */
static void make(struct aqe_buf *b, enum limit limit, size_t n)
{
	switch (limit) {
	case BYTES:
		(void)aqe_buf_puts(b, "{}");
		repeat(b, " ", n - 2);
		break;
	case DEPTH:
		repeat(b, "[", n);
		repeat(b, "]", n);
		break;
	case DEPTH_OBJ:
		repeat(b, "{\"a\":", n);
		(void)aqe_buf_puts(b, "1");
		repeat(b, "}", n);
		break;
	case VALUES:
		(void)aqe_buf_puts(b, "[");
		list(b, n - 1, false);
		(void)aqe_buf_puts(b, "]");
		break;
	case ITEMS:
		(void)aqe_buf_puts(b, "[");
		list(b, n, false);
		(void)aqe_buf_puts(b, "]");
		break;
	case MEMBERS:
		(void)aqe_buf_puts(b, "{");
		list(b, n, true);
		(void)aqe_buf_puts(b, "}");
		break;
	case STRING:
		(void)aqe_buf_puts(b, "\"");
		repeat(b, "x", n);
		(void)aqe_buf_puts(b, "\"");
		break;
	case ESCAPED: /* every way a decoded byte can be written */
		(void)aqe_buf_puts(b, "[\"\\u00e9\\u20ac\\ud83d\\ude00\\n");
		repeat(b, "\\u0041", n - 10);
		(void)aqe_buf_puts(b, "\"]");
		break;
	case KEY:
		(void)aqe_buf_puts(b, "{\"");
		repeat(b, "\\t", n);
		(void)aqe_buf_puts(b, "\":1}");
		break;
	case NUMBER:
		(void)aqe_buf_puts(b, "-");
		repeat(b, "1", n - 1);
		break;
	}
}

static const struct {
	enum limit limit;
	size_t n; /* of AQE_JSON_LIMITS_DEFAULT: rule R6 */
	const char *why;
} LIMITS[] = {
	{ BYTES, 1048576, "too large" },         { DEPTH, 32, "nested too deeply" },
	{ DEPTH_OBJ, 32, "nested too deeply" },  { VALUES, 200000, "too many values" },
	{ ITEMS, 4096, "too many entries" },     { MEMBERS, 4096, "too many members" },
	{ STRING, 32768, "string is too long" }, { ESCAPED, 32768, "string is too long" },
	{ KEY, 32768, "string is too long" },    { NUMBER, 20, "number is too long" },
};

START_TEST(parse__holds_limits)
{
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	size_t n = LIMITS[_i].n;

	if (LIMITS[_i].limit == VALUES)
		limits.entries = 1000000;
	for (size_t have = n - 1; have <= n + 1; have++) {
		AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 24);
		struct aqe_err e = AQE_ERR_INIT;
		struct aqe_json *v = NULL;
		int rc;

		make(&b, LIMITS[_i].limit, have);
		ck_assert_int_eq(aqe_buf_ok(&b, &e), 0);
		rc = parse_with(b.p, b.len, &limits, &v, &e);
		if (have <= n)
			ck_assert_ok(rc, e);
		else
			ck_assert_fault(rc, AQE_E_LIMIT, e, LIMITS[_i].why);
	}
}
END_TEST

START_TEST(parse__holds_small_limits)
{
	static const struct aqe_json_limits TINY = {
		.bytes = 100, .depth = 1, .values = 3, .entries = 2, .string = 1, .number = 1
	};
	static const struct {
		const char *text;
		int code;
		uint32_t col;
	} CASES[] = {
		{ "[1,2]", 0, 0 },
		{ "{\"a\":1,\"b\":\"c\"}", 0, 0 },
		{ "[[]]", AQE_E_LIMIT, 2 },
		{ "[1,2,3]", AQE_E_LIMIT, 6 },
		{ "{\"a\":1,\"b\":2,\"c\":3}", AQE_E_LIMIT, 18 },
		{ "[1,22]", AQE_E_LIMIT, 4 },
		{ "[\"\",\"ab\"]", AQE_E_LIMIT, 5 },
		{ "{\"ab\":1}", AQE_E_LIMIT, 2 },
		{ "\"\\u20ac\"", AQE_E_LIMIT, 1 },
	};

	for (size_t i = 0; i < AQE_COUNT(CASES); i++) {
		struct aqe_err e = AQE_ERR_INIT;
		struct aqe_json *v = NULL;
		int rc = parse_with(CASES[i].text, strlen(CASES[i].text), &TINY, &v, &e);

		ck_assert_msg(rc == CASES[i].code && e.col == CASES[i].col, "%s: %d %u %s",
			      CASES[i].text, rc, e.col, e.text);
	}
}
END_TEST

/* The buffers given to yajl are computed; a document that needs much of both must fit. */
START_TEST(parse__has_room_for_every_escape)
{
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	struct aqe_err e = AQE_ERR_INIT;

	limits.string = (size_t)1 << 20;
	limits.number = (size_t)1 << 20;
	limits.depth = 10000;
	for (size_t n = 1; n < 200000; n = n * 3 / 2 + 1) {
		AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 24);
		AQE_AUTO_BUF struct aqe_buf digits = AQE_BUF_INIT((size_t)1 << 24);
		struct aqe_json *v = NULL;
		int rc;

		repeat(&b, "[", 120);
		(void)aqe_buf_puts(&b, "\"");
		for (size_t i = 0; i < n; i++)
			(void)aqe_buf_puts(&b, i % 7 ? "x" : "\\n");
		(void)aqe_buf_puts(&b, "\"");
		repeat(&b, "]", 120);
		rc = parse_with(b.p, b.len, &limits, &v, &e);
		ck_assert_ok(rc, e);
		repeat(&digits, "7", n); /* the only token that yajl copies whole */
		rc = parse_with(digits.p, digits.len, &limits, &v, &e);
		ck_assert_ok(rc, e);
		ck_assert_uint_eq(v->len, n);
	}
}
END_TEST

START_TEST(parse__refuses_depth_over_its_own_maximum)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 24);
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *v = NULL;

	limits.depth = SIZE_MAX;
	repeat(&b, "[", 121);
	ck_assert_fault(parse_with(b.p, b.len, &limits, &v, &e), AQE_E_LIMIT, e, "deeply");
	ck_assert_uint_eq(e.col, 121);
}
END_TEST

/* ---- places ---- */

START_TEST(parse__gives_every_value_its_place)
{
	static const char DOC[] = "{\n"
				  "  \"a\" :\n"
				  "\t[ true,null ,\r\n"
				  "-1.5, \"x\\ny\",\n"
				  "{} ] , \"\xc3\xa9\": \"z\" }\n";
	static const struct {
		const char *pointer;
		uint32_t line, col;
	} PLACES[] = {
		{ "", 1, 1 },     { "/a", 3, 2 },   { "/a/0", 3, 4 }, { "/a/1", 3, 9 },
		{ "/a/2", 4, 1 }, { "/a/3", 4, 7 }, { "/a/4", 5, 1 }, { "/\xc3\xa9", 5, 14 },
	};
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *v = NULL, *at;

	ck_assert_ok(parse(DOC, sizeof(DOC) - 1, &v, &e), e);
	for (size_t i = 0; i < AQE_COUNT(PLACES); i++) {
		at = aqe_json_at(v, PLACES[i].pointer);
		ck_assert_ptr_nonnull(at);
		ck_assert_msg(at->line == PLACES[i].line && at->col == PLACES[i].col, "%s: %u:%u",
			      PLACES[i].pointer, at->line, at->col);
	}
}
END_TEST

START_TEST(parse__builds_the_tree)
{
	static const char DOC[] = "{\"s\":\"A\\u0042\",\"l\":[1,2,3],\"t\":true,\"f\":false}";
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *v = NULL, *l;

	ck_assert_ok(parse(DOC, sizeof(DOC) - 1, &v, &e), e);
	ck_assert_int_eq(v->type, AQE_JSON_OBJECT);
	ck_assert_uint_eq(v->len, 4);
	ck_assert_ptr_null(v->parent);
	ck_assert_ptr_null(v->key);
	ck_assert_ptr_null(v->next);
	ck_assert_str_eq(v->first->key, "s");
	ck_assert_str_eq(v->first->text, "AB");
	ck_assert_uint_eq(v->first->len, 2);
	ck_assert_ptr_eq(v->first->parent, v);
	l = v->first->next;
	ck_assert_uint_eq(l->len, 3);
	ck_assert_ptr_null(l->first->key);
	ck_assert_ptr_eq(l->first->next->next, l->last);
	ck_assert_ptr_null(l->last->next);
	ck_assert_ptr_eq(l->last->parent, l);
	ck_assert(l->next->boolean);
	ck_assert(!v->last->boolean);
	ck_assert_str_eq(v->last->key, "f");
}
END_TEST

/* ---- the corpus ---- */

/* Rows of malformed/index.tsv that are sound JSON: their faults are of type, found by schemas. */
static bool is_type_level(const char *name)
{
	static const char *const NAMES[] = { "number.json",
					     "array.json",
					     "array-of-spec.json",
					     "number-exponent.json",
					     "number-exponent-int.json",
					     "number-exp-huge.json",
					     "number-minus-zero.json",
					     "number-bool.json",
					     "number-null.json",
					     "number-array.json",
					     "inspect-duplicate-array.json",
					     "inspect-float-pids.json",
					     NULL };

	return aqe_starts(name, "type-") || aqe_str_in(name, NAMES);
}

static void read_file(const char *path, struct aqe_buf *b)
{
	AQE_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

	ck_assert_msg(fd >= 0, "%s", path);
	ck_assert_int_eq(aqe_fs_read_fd(fd, b, NULL), 0);
}

START_TEST(parse__refuses_the_malformed_corpus)
{
	AQE_AUTO_BUF struct aqe_buf index = AQE_BUF_INIT((size_t)1 << 20);
	size_t refused = 0, sound = 0;
	char *line, *rest;

	read_file(MALFORMED "index.tsv", &index);
	for (line = strtok_r(index.p, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)8 << 20);
		struct aqe_err e = AQE_ERR_INIT;
		struct aqe_json *v = NULL;
		char path[256];
		int rc;

		*strchr(line, '\t') = '\0';
		(void)snprintf(path, sizeof(path), MALFORMED "%s", line);
		read_file(path, &b);
		rc = parse(aqe_buf_str(&b), b.len, &v, &e);
		if (is_type_level(line)) {
			ck_assert_msg(rc == 0, "%s: %s", line, e.text);
			sound++;
			continue;
		}
		ck_assert_msg(rc == AQE_E_MALFORMED || rc == AQE_E_LIMIT, "%s: %d %s", line, rc,
			      e.text);
		refused++;
	}
	ck_assert_uint_ge(refused, 84);
	ck_assert_uint_ge(sound, 50);
}
END_TEST

/* Every other document we have is read, and what we write of it is the same document. */
static void check_folder(const char *folder)
{
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	DIR *dir = opendir(folder);
	struct dirent *d;
	size_t seen = 0;

	ck_assert_ptr_nonnull(dir);
	limits.fold_dups_ok = true;
	while ((d = readdir(dir))) {
		AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)8 << 20);
		AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT((size_t)8 << 20);
		struct aqe_err e = AQE_ERR_INIT;
		struct aqe_json *v = NULL, *again = NULL;
		char path[512];

		if (!aqe_ends(d->d_name, ".json"))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", folder, d->d_name);
		read_file(path, &b);
		ck_assert_msg(parse_with(b.p, b.len, &limits, &v, &e) == 0, "%s: %s", path, e.text);
		ck_assert_int_eq(v->fold_dup || aqe_starts(d->d_name, "case-") ||
					 aqe_ends(d->d_name, "-case.json"),
				 aqe_starts(d->d_name, "case-") ||
					 aqe_ends(d->d_name, "-case.json"));
		ck_assert_int_eq(aqe_json_emit(v, seen % 4, &out, &e), 0);
		ck_assert_ok(parse_with(out.p, out.len, &limits, &again, &e), e);
		ck_assert(aqe_json_equal(v, again));
		aqe_arena_free(arena);
		setup();
		seen++;
	}
	(void)closedir(dir);
	ck_assert_uint_gt(seen, 50);
}

START_TEST(parse__reads_the_other_corpora)
{
	static const char *const FOLDERS[] = { "tests/corpus/spec", "tests/corpus/inspect",
					       "tests/samples" };

	check_folder(FOLDERS[_i]);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("core/json reader");
	TCase *t = tcase_create("parse");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, parse__accepts, 0, (int)AQE_COUNT(GOOD));
	tcase_add_loop_test(t, parse__refuses, 0, (int)AQE_COUNT(BAD));
	tcase_add_loop_test(t, parse__accepts_distinct_names, 0, (int)AQE_COUNT(DISTINCT));
	tcase_add_test(t, parse__marks_folded_names_when_allowed);
	tcase_add_loop_test(t, parse__finds_duplicates_in_objects_of_any_size, 2, 24);
	tcase_add_loop_test(t, parse__holds_limits, 0, (int)AQE_COUNT(LIMITS));
	tcase_add_test(t, parse__holds_small_limits);
	tcase_add_test(t, parse__has_room_for_every_escape);
	tcase_add_test(t, parse__refuses_depth_over_its_own_maximum);
	tcase_add_test(t, parse__gives_every_value_its_place);
	tcase_add_test(t, parse__builds_the_tree);
	tcase_add_test(t, parse__refuses_the_malformed_corpus);
	tcase_add_loop_test(t, parse__reads_the_other_corpora, 0, 3);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
