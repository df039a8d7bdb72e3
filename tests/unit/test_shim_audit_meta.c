/* SPDX-License-Identifier: MIT */
#include "shim/audit_meta.h"

#include <stdio.h>
#include <string.h>

#include "audit/row.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

static struct aqe_arena *arena;
static struct shim_meta m;

static void setup(void)
{
	arena = aqe_arena_new((size_t)16 << 20);
	ck_assert_ptr_nonnull(arena);
	shim_meta_init(&m, arena);
}

static void teardown(void)
{
	aqe_arena_free(arena);
}

static struct aqe_json *json(const char *text)
{
	struct aqe_json *v = NULL;
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_msg(aqe_json_parse(arena, text, strlen(text), &AQE_JSON_LIMITS_DEFAULT, &v, &e) ==
			      0,
		      "%s", e.text);
	return v;
}

static const struct {
	const char *place, *before, *after, *text;
} changes[] = {
	{ "", "{}", "{}", "{\"changes\":0,\"changed\":[]}" },
	{ "", "{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", "{\"changes\":0,\"changed\":[]}" },
	{ "", "{\"process\":{\"noNewPrivileges\":false}}",
	  "{\"process\":{\"noNewPrivileges\":true}}",
	  "{\"changes\":1,\"changed\":[\"no_new_privileges\"]}" },
	/* two places of one property are two changes of it */
	{ "",
	  "{\"process\":{\"capabilities\":{\"bounding\":[\"CAP_KILL\"],\"effective\":[\"CAP_KILL\"]"
	  "}"
	  "}}",
	  "{\"process\":{\"capabilities\":{\"bounding\":[],\"effective\":[]}}}",
	  "{\"changes\":2,\"changed\":[\"capabilities\"]}" },
	/* what comes or goes whole is named by its parts */
	{ "", "{\"linux\":{}}",
	  "{\"linux\":{\"resources\":{\"pids\":{\"limit\":1},\"memory\":{\"limit\":2}}}}",
	  "{\"changes\":1,\"changed\":[\"pids_limit\",\"memory_limit\"]}" },
	{ "", "{\"linux\":{\"resources\":{\"unified\":{\"SECRET\":\"SECRET\"}}}}", "{\"linux\":{}}",
	  "{\"changes\":1,\"changed\":[\"/linux/resources/unified\"]}" },
	/* foreign words among the names and values are not shown */
	{ "", "{\"annotations\":{\"SECRET\":\"SECRET\"}}", "{\"annotations\":{}}",
	  "{\"changes\":1,\"changed\":[\"annotations\"]}" },
	{ "", "{\"linux\":{\"sysctl\":{\"SECRET\":\"SECRET\"}}}", "{\"linux\":{\"sysctl\":{}}}",
	  "{\"changes\":1,\"changed\":[\"sysctl\"]}" },
	{ "", "{\"process\":{\"env\":[\"A=SECRET\"],\"args\":[\"SECRET\"]}}",
	  "{\"process\":{\"env\":[\"A=SECRET2\"],\"args\":[\"x\"]}}",
	  "{\"changes\":2,\"changed\":[\"/process/env\",\"/process/args\"]}" },
	/* a process by itself, resources by themselves */
	{ "/process", "{\"user\":{\"uid\":0}}", "{\"user\":{\"uid\":1000}}",
	  "{\"changes\":1,\"changed\":[\"user\"]}" },
	{ "/linux/resources", "{\"cpu\":{\"quota\":1}}", "{\"cpu\":{\"quota\":2}}",
	  "{\"changes\":1,\"changed\":[\"cpu_limit\"]}" },
};

START_TEST(changes__are_counted_and_named)
{
	const size_t n = shim_meta_changes(&m, changes[_i].place, json(changes[_i].before),
					   json(changes[_i].after));
	const char *text = shim_meta_text(&m);
	uint64_t said = 99;

	ck_assert_pstr_eq(text, changes[_i].text);
	ck_assert_int_eq(aqe_json_get_u64(json(text), "changes", 99, &said, NULL), 1);
	ck_assert_uint_eq(said, n);
}
END_TEST

#define LONG_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
	const char *process, *text;
} commands[] = {
	{ "{\"args\":[\"/usr/bin/sh\",\"-c\",\"SECRET\"]}", "{\"command\":\"sh\"}" },
	{ "{\"args\":[\"sh\"]}", "{\"command\":\"sh\"}" },
	{ "{\"args\":[\"/SECRET/\"]}", "{\"command\":\"\"}" },
	{ "{\"args\":[]}", "{}" },
	{ "{}", "{}" },
	{ "{\"args\":[\"" LONG_64 LONG_64 "x\"]}", "{\"command\":\"" LONG_64 LONG_64 "\"}" },
	/* not cut inside a character */
	{ "{\"args\":[\"" LONG_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
	  "\xc3\xa9\"]}",
	  "{\"command\":\"" LONG_64
	  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
	  "\"}" },
};

START_TEST(command__is_the_last_component_of_the_first_word)
{
	shim_meta_command(&m, json(commands[_i].process));
	ck_assert_pstr_eq(shim_meta_text(&m), commands[_i].text);
}
END_TEST

START_TEST(findings__are_those_that_refuse)
{
	const struct hard_waiver w = { .prop = HARD_DIGEST };
	struct hard_report r;

	hard_report_init(&r, arena);
	hard_report_fail(&r, HARD_NETWORK, NULL, "/linux/namespaces", "none", "the %s", "host's");
	hard_report_fail(&r, HARD_DIGEST, NULL, "", "pinned", "nothing");
	hard_report_unknown(&r, HARD_SECCOMP, "/linux/seccomp", "a proof", "no filter");
	r.result[HARD_DIGEST] = HARD_WAIVED;
	r.waiver[HARD_DIGEST] = &w;
	shim_meta_findings(&m, &r);
	ck_assert_str_eq(shim_meta_text(&m),
			 "{\"findings\":[{\"property\":\"network\",\"at\":\"/linux/namespaces\","
			 "\"found\":\"the host's\",\"wanted\":\"none\"},{\"property\":\"seccomp\","
			 "\"at\":\"/linux/seccomp\",\"undecided\":\"no filter\",\"wanted\":\"a "
			 "proof\"}]}");
}
END_TEST

START_TEST(findings__that_do_not_fit_are_counted)
{
	struct hard_report r;
	struct aqe_json *doc;
	const char *text;
	uint64_t more = 0;
	size_t shown;

	hard_report_init(&r, arena);
	for (int i = 0; i < 200; i++)
		hard_report_fail(&r, HARD_MOUNTS, NULL, "/mounts/7", "no", "%0300d", i);
	shim_meta_findings(&m, &r);
	text = shim_meta_text(&m);
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_le(strlen(text), AUDIT_META_MAX);
	doc = json(text);
	shown = aqe_json_get(doc, "findings")->len;
	ck_assert_uint_gt(shown, 10);
	ck_assert_int_eq(aqe_json_get_u64(doc, "more", 1000, &more, NULL), 1);
	ck_assert_uint_eq(shown + more, 200);
}
END_TEST

START_TEST(text__is_cut_and_the_whole_has_a_limit)
{
	char *big = aqe_arena_alloc(arena, AUDIT_META_MAX + 1);
	char name[16];

	memset(big, 'x', AUDIT_META_MAX);
	memcpy(big + SHIM_META_STR_MAX - 1, "\xc3\xa9", 2);
	shim_meta_str(&m, "a", big);
	ck_assert_uint_eq(strlen(shim_meta_text(&m)), strlen("{'a':''}") + SHIM_META_STR_MAX - 1);
	for (int i = 0; i < AUDIT_META_MAX / SHIM_META_STR_MAX; i++) {
		(void)snprintf(name, sizeof(name), "n%d", i);
		shim_meta_str(&m, name, big);
	}
	ck_assert_ptr_null(shim_meta_text(&m));
}
END_TEST

START_TEST(text__fails_when_memory_ended)
{
	struct aqe_arena *small = aqe_arena_new(2048);

	shim_meta_init(&m, small);
	for (int i = 0; i < 100; i++)
		shim_meta_num(&m, "name", i);
	ck_assert(m.failed);
	ck_assert_ptr_null(shim_meta_text(&m));
	aqe_arena_free(small);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("shim_audit_meta");
	TCase *t = tcase_create("meta");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, changes__are_counted_and_named, 0, (int)AQE_COUNT(changes));
	tcase_add_loop_test(t, command__is_the_last_component_of_the_first_word, 0,
			    (int)AQE_COUNT(commands));
	tcase_add_test(t, findings__are_those_that_refuse);
	tcase_add_test(t, findings__that_do_not_fit_are_counted);
	tcase_add_test(t, text__is_cut_and_the_whole_has_a_limit);
	tcase_add_test(t, text__fails_when_memory_ended);
	suite_add_tcase(s, t);
	return unit_run(s);
}
