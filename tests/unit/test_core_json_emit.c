/* SPDX-License-Identifier: MIT */
/* The JSON writer. */
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

static struct aqe_json *parse(const char *text, size_t len)
{
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *v = NULL;

	limits.fold_dups_ok = true;
	limits.depth = 120;
	ck_assert_ok(aqe_json_parse(arena, text, len, &limits, &v, &e), e);
	return v;
}

static const struct {
	const char *bytes;
	const char *json;
} STRINGS[] = {
	{ "", "\"\"" },
	{ "plain text, longer than eight bytes", "\"plain text, longer than eight bytes\"" },
	{ "\"\\/", "\"\\\"\\\\/\"" },
	{ "\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"" },
	{ "\x01\x0b\x1f\x7f", "\"\\u0001\\u000b\\u001f\x7f\"" },
	{ "1234567\n", "\"1234567\\n\"" },
	{ "12345678\n", "\"12345678\\n\"" },
	{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
	{ "a\xff"
	  "b",
	  "\"a\xef\xbf\xbd"
	  "b\"" },
	{ "\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
	{ "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
	{ "x\xe2\x82", "\"x\xef\xbf\xbd\xef\xbf\xbd\"" },
};

START_TEST(emit_str__escapes)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1000);

	aqe_json_emit_str(&b, STRINGS[_i].bytes);
	ck_assert_str_eq(aqe_buf_str(&b), STRINGS[_i].json);
	(void)parse(b.p, b.len);
}
END_TEST

/* Every byte at every place within a word of the fast path. */
START_TEST(emit_str__handles_every_byte_everywhere)
{
	for (int c = 1; c < 256; c++) {
		for (size_t at = 0; at < 17; at++) {
			AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1000);
			char text[18] = "aaaaaaaaaaaaaaaaa";
			const char *got;

			text[at] = (char)c;
			aqe_json_emit_str(&b, text);
			got = parse(b.p, b.len)->text;
			if (c < 0x80)
				ck_assert_str_eq(got, text);
			else
				ck_assert_uint_eq(strlen(got), 19);
		}
		teardown();
		setup();
	}
}
END_TEST

#define DOC                                                                                        \
	"{\"b\":[1,{\"z\":null,\"a\":[]},\"x\"],\"\":{},\"a\":true,\"B\":{\"\xc3\xa9\":1,\"e\":2}" \
	"}"

START_TEST(emit__writes_compact)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1000);

	ck_assert_int_eq(aqe_json_emit(parse(DOC, sizeof(DOC) - 1), AQE_JSON_COMPACT, &b, NULL), 0);
	ck_assert_str_eq(b.p, DOC);
}
END_TEST

START_TEST(emit__writes_pretty)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1000);

	ck_assert_int_eq(aqe_json_emit(parse(DOC, sizeof(DOC) - 1), AQE_JSON_PRETTY, &b, NULL), 0);
	ck_assert_str_eq(b.p, "{\n"
			      "  \"b\": [\n"
			      "    1,\n"
			      "    {\n"
			      "      \"z\": null,\n"
			      "      \"a\": []\n"
			      "    },\n"
			      "    \"x\"\n"
			      "  ],\n"
			      "  \"\": {},\n"
			      "  \"a\": true,\n"
			      "  \"B\": {\n"
			      "    \"\xc3\xa9\": 1,\n"
			      "    \"e\": 2\n"
			      "  }\n"
			      "}");
}
END_TEST

START_TEST(emit__writes_sorted)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1000);

	ck_assert_int_eq(aqe_json_emit(parse(DOC, sizeof(DOC) - 1), AQE_JSON_SORTED, &b, NULL), 0);
	ck_assert_str_eq(b.p, "{\"\":{},\"B\":{\"e\":2,\"\xc3\xa9\":1},\"a\":true,"
			      "\"b\":[1,{\"a\":[],\"z\":null},\"x\"]}");
}
END_TEST

START_TEST(emit__writes_parts_without_their_names)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1000);
	struct aqe_json *v = parse(DOC, sizeof(DOC) - 1);

	ck_assert_int_eq(aqe_json_emit(aqe_json_at(v, "/b/1"), AQE_JSON_SORTED, &b, NULL), 0);
	ck_assert_int_eq(aqe_json_emit(aqe_json_at(v, "/a"), AQE_JSON_COMPACT, &b, NULL), 0);
	ck_assert_int_eq(aqe_json_emit(aqe_json_at(v, "/"), AQE_JSON_PRETTY, &b, NULL), 0);
	ck_assert_str_eq(b.p, "{\"a\":[],\"z\":null}true{}");
}
END_TEST

START_TEST(emit__refuses_a_full_buffer)
{
	struct aqe_json *v = parse(DOC, sizeof(DOC) - 1);

	for (size_t max = 0; max <= sizeof(DOC) - 1; max++) {
		AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(max);
		struct aqe_err e = AQE_ERR_INIT;
		int rc = aqe_json_emit(v, max % 2 ? AQE_JSON_SORTED : AQE_JSON_COMPACT, &b, &e);

		if (max < sizeof(DOC) - 1)
			ck_assert_fault(rc, AQE_E_LIMIT, e, "bytes");
		else
			ck_assert_ok(rc, e);
	}
}
END_TEST

/* Sorting keeps a frame a level; a tree made by us that is too deep is refused. */
START_TEST(emit__refuses_to_sort_very_deep_trees)
{
	struct aqe_json *v = aqe_json_new_array(arena);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 20);
	struct aqe_err e = AQE_ERR_INIT;

	for (int i = 0; i < 160; i++) {
		struct aqe_json *outer = aqe_json_new_object(arena);

		ck_assert_int_eq(aqe_json_set(arena, outer, "k", v), 0);
		v = outer;
	}
	ck_assert_ok(aqe_json_emit(v, AQE_JSON_SORTED, &b, &e), e);
	for (struct aqe_json *in = v;; in = in->first)
		if (in->type == AQE_JSON_ARRAY) {
			ck_assert_int_eq(aqe_json_append(in, aqe_json_new_null(arena)), 0);
			break;
		}
	ck_assert_fault(aqe_json_emit(v, AQE_JSON_SORTED, &b, &e), AQE_E_LIMIT, e, "deeply");
	ck_assert_ok(aqe_json_emit(v, AQE_JSON_PRETTY, &b, &e), e);
}
END_TEST

START_TEST(emit__sorts_large_objects)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 20);
	AQE_AUTO_BUF struct aqe_buf want = AQE_BUF_INIT((size_t)1 << 20);
	struct aqe_json *v = aqe_json_new_object(arena);
	char key[16];

	for (unsigned i = 0; i < 4096; i++) {
		(void)snprintf(key, sizeof(key), "%04u", (i * 2731 + 17) % 4096);
		ck_assert_int_eq(aqe_json_set(arena, v, key, aqe_json_new_object(arena)), 0);
		(void)aqe_buf_addf(&want, "%s\"%04u\":{}", i ? "," : "{", i);
	}
	(void)aqe_buf_puts(&want, "}");
	ck_assert_int_eq(aqe_json_emit(v, AQE_JSON_SORTED, &b, NULL), 0);
	ck_assert_str_eq(b.p, want.p);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("core/json writer");
	TCase *t = tcase_create("emit");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, emit_str__escapes, 0, (int)AQE_COUNT(STRINGS));
	tcase_add_test(t, emit_str__handles_every_byte_everywhere);
	tcase_add_test(t, emit__writes_compact);
	tcase_add_test(t, emit__writes_pretty);
	tcase_add_test(t, emit__writes_sorted);
	tcase_add_test(t, emit__writes_parts_without_their_names);
	tcase_add_test(t, emit__refuses_a_full_buffer);
	tcase_add_test(t, emit__refuses_to_sort_very_deep_trees);
	tcase_add_test(t, emit__sorts_large_objects);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
