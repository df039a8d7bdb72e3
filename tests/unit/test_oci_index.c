/* SPDX-License-Identifier: MIT */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "oci/index.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define ARENA_MAX ((size_t)16 << 20)

static const struct {
	const char *text;
	size_t n;
	const char *why; /* NULL: accepted */
} lists[] = {
	{ "[]", 0, NULL },
	{ " \t\r\n[ ] \n", 0, NULL },
	{ "null\n", 0, NULL },
	{ "[{}]", 1, NULL },
	{ "[{\"a\":[{},{\"b\":1}]} , {}]", 2, NULL },
	{ "[{\"a\":\"}]\"},{\"\\\"{\":\"\\\\\"},{\"\\\\\\\"[\":1}]", 3, NULL },
	{ "", 0, "is no list of objects (at byte 0)" },
	{ " ", 0, "is no list of objects (at byte 1)" },
	{ "{}", 0, "is no list of objects (at byte 0)" },
	{ "nul", 0, "is no list of objects (at byte 0)" },
	{ "nullx", 0, "is no list of objects (at byte 4)" },
	{ "[", 0, "is no list of objects (at byte 1)" },
	{ "[1]", 0, "is no list of objects (at byte 1)" },
	{ "[{}", 0, "is no list of objects (at byte 3)" },
	{ "[{},]", 0, "is no list of objects (at byte 4)" },
	{ "[{}{}]", 0, "is no list of objects (at byte 3)" },
	{ "[{}]x", 0, "is no list of objects (at byte 4)" },
	{ "[]x", 0, "is no list of objects (at byte 2)" },
	{ "[{]", 0, "is no list of objects (at byte 3)" },
	{ "[{\"a]", 0, "is no list of objects (at byte 5)" },
	{ "[{\"a\\\"}]", 0, "is no list of objects (at byte 8)" },
};

START_TEST(split__finds_the_objects)
{
	AQE_CLEANUP(oci_index_done) struct oci_index x = OCI_INDEX_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	int r;

	(void)aqe_buf_puts(&x.text, lists[_i].text);
	r = oci_index_split(&x, &e);
	if (lists[_i].why) {
		ck_assert_int_eq(r, AQE_E_MALFORMED);
		ck_assert_str_eq(e.text, lists[_i].why);
		return;
	}
	ck_assert_msg(r == 0, "%s", e.text);
	ck_assert_uint_eq(x.n, lists[_i].n);
}
END_TEST

START_TEST(split__limits_the_objects)
{
	AQE_CLEANUP(oci_index_done) struct oci_index x = OCI_INDEX_INIT;
	struct aqe_err e = AQE_ERR_INIT;

	(void)aqe_buf_puts(&x.text, "[{}");
	for (size_t i = 1; i < OCI_INDEX_ENTRIES_MAX; i++)
		(void)aqe_buf_puts(&x.text, ",{}");
	ck_assert_int_eq(aqe_buf_puts(&x.text, "]"), 0);
	ck_assert_int_eq(oci_index_split(&x, &e), 0);
	ck_assert_uint_eq(x.n, OCI_INDEX_ENTRIES_MAX);
	oci_index_done(&x);
	(void)aqe_buf_puts(&x.text, "[{}");
	for (size_t i = 1; i < OCI_INDEX_ENTRIES_MAX + 1; i++)
		(void)aqe_buf_puts(&x.text, ",{}");
	ck_assert_int_eq(aqe_buf_puts(&x.text, "]"), 0);
	ck_assert_int_eq(oci_index_split(&x, &e), AQE_E_LIMIT);
	ck_assert_str_eq(e.text, "has more than 100000 entries");
}
END_TEST

static const struct {
	const char *text, *id;
	int code;
	const char *mark; /* "mark" of the entry found, or NULL */
} finds[] = {
	{ "[]", "a", 0, NULL },
	{ "null", "a", 0, NULL },
	{ "[{\"id\":\"a\",\"mark\":\"1\"},{\"id\":\"b\",\"mark\":\"2\"}]", "b", 0, "2" },
	{ "[ { \"mark\" : \"1\" , \"id\" : \"a\" } ]", "a", 0, "1" },
	/* the first of two */
	{ "[{\"id\":\"a\",\"mark\":\"1\"},{\"id\":\"a\",\"mark\":\"2\"}]", "a", 0, "1" },
	/* mentioned elsewhere */
	{ "[{\"id\":\"b\",\"parent\":\"a\"},{\"id\":\"a\",\"mark\":\"2\"}]", "a", 0, "2" },
	{ "[{\"id\":\"b\",\"x\":{\"id\":\"a\"}}]", "a", 0, NULL },
	{ "[{\"id\":\"b\",\"x\":\"{\\\"id\\\":\\\"a\\\"}\"}]", "a", 0, NULL },
	{ "[{\"id\":\"aa\"},{\"id\":\"\"}]", "a", 0, NULL },
	/* only what is asked for is parsed */
	{ "[{\"id\":\"b\",x},{\"id\":\"a\",\"mark\":\"2\"}]", "a", 0, "2" },
	{ "[{\"id\":\"b\",x},{\"id\":\"a\",\"mark\":\"2\"}]", "b", AQE_E_MALFORMED, NULL },
	{ "[{\"id\":\"a\",\"id\":\"a\"}]", "a", AQE_E_MALFORMED, NULL },
};

START_TEST(find__gives_the_entry_with_the_id)
{
	AQE_CLEANUP(oci_index_done) struct oci_index x = OCI_INDEX_INIT;
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct aqe_err e = AQE_ERR_INIT;
	const struct aqe_json *v = NULL;
	int r;

	(void)aqe_buf_puts(&x.text, finds[_i].text);
	ck_assert_int_eq(oci_index_split(&x, &e), 0);
	r = oci_index_find(&x, a, finds[_i].id, &AQE_JSON_LIMITS_DEFAULT, &v, &e);
	ck_assert_msg(r == finds[_i].code, "%d %s", r, e.text);
	if (r < 0)
		ck_assert_msg(aqe_starts(e.text, "entry 0: "), "%s", e.text);
	ck_assert_pstr_eq(aqe_json_str(aqe_json_get(v, "mark")), finds[_i].mark);
}
END_TEST

START_TEST(find__of_a_very_long_id_finds_nothing)
{
	AQE_CLEANUP(oci_index_done) struct oci_index x = OCI_INDEX_INIT;
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct aqe_err e = AQE_ERR_INIT;
	const struct aqe_json *v = NULL;
	char id[2048];

	memset(id, 'x', sizeof(id));
	id[sizeof(id) - 1] = 0;
	(void)aqe_buf_puts(&x.text, "[{\"id\":\"a\"}]");
	ck_assert_int_eq(oci_index_split(&x, &e), 0);
	ck_assert_int_eq(oci_index_find(&x, a, id, &AQE_JSON_LIMITS_DEFAULT, &v, &e), 0);
	ck_assert_ptr_null(v);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("oci_index");
	TCase *tc = tcase_create("index");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_loop_test(tc, split__finds_the_objects, 0, (int)AQE_COUNT(lists));
	tcase_add_test(tc, split__limits_the_objects);
	tcase_add_loop_test(tc, find__gives_the_entry_with_the_id, 0, (int)AQE_COUNT(finds));
	tcase_add_test(tc, find__of_a_very_long_id_finds_nothing);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
