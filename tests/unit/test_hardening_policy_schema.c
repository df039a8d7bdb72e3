/* SPDX-License-Identifier: MIT */
/* The shipped JSON Schema and the reader's table must say the same. */
#include <check.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hardening/policy.h"
#include "hardening/props.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

static struct aqe_arena *arena;
static struct aqe_json *schema;

static struct aqe_json *read_json(const char *path)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 20);
	AQE_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *root = NULL;

	ck_assert_int_ge(fd, 0);
	ck_assert_msg(!aqe_fs_read_fd(fd, &b, &e), "%s", e.text);
	ck_assert_msg(!aqe_json_parse(arena, aqe_buf_str(&b), b.len, &AQE_JSON_LIMITS_DEFAULT,
				      &root, &e),
		      "%s: %s", path, e.text);
	return root;
}

static void setup(void)
{
	arena = aqe_arena_new((size_t)16 << 20);
	ck_assert_ptr_nonnull(arena);
	schema = read_json("hardening/policy.schema.json");
}

static void teardown(void)
{
	aqe_arena_free(arena);
}

/* The subschema of a table path such as "images[].types[]"; *ret_parent is the object that lists
 * it, *ret_name its name there (NULL for items and map values). */
static const struct aqe_json *node_of(const char *path, const struct aqe_json **ret_parent,
				      char ret_name[64])
{
	const struct aqe_json *node = schema;

	while (*path) {
		size_t n = strcspn(path, ".[");

		*ret_parent = node;
		ret_name[0] = '\0';
		if (n == 1 && *path == '*') {
			node = aqe_json_get(node, "additionalProperties");
		} else if (n) {
			(void)snprintf(ret_name, 64, "%.*s", (int)n, path);
			node = aqe_json_get(aqe_json_get(node, "properties"), ret_name);
		} else {
			ck_assert(aqe_starts(path, "[]"));
			node = aqe_json_get(node, "items");
			n = 2;
		}
		path += n;
		path += *path == '.';
	}
	return node;
}

/* "integer|string" has each of the schema's types and no other. */
static bool same_types(const char *types, const struct aqe_json *v)
{
	size_t bars = 0, n = v && v->type == AQE_JSON_ARRAY ? v->len : 1;

	for (const char *c = types; *c; c++)
		bars += *c == '|';
	if (!v || bars + 1 != n)
		return false;
	if (v->type == AQE_JSON_STRING)
		return strcmp(types, v->text) == 0;
	for (const struct aqe_json *t = v->first; t; t = t->next) {
		if (!strstr(types, t->text))
			return false;
	}
	return true;
}

START_TEST(schema__has_each_key_with_type_and_required)
{
	const struct hard_policy_key *key = &HARD_POLICY_KEYS[_i];
	const struct aqe_json *parent = NULL;
	char name[64] = "";
	const struct aqe_json *node = node_of(key->path, &parent, name);
	bool required = parent && aqe_json_has_str(aqe_json_get(parent, "required"), name);

	ck_assert_msg(node && node->type == AQE_JSON_OBJECT, "%s is not in the schema", key->path);
	ck_assert_msg(same_types(key->type, aqe_json_get(node, "type")), "%s", key->path);
	ck_assert_msg(required == key->required, "%s", key->path);
	ck_assert_uint_ge(strlen(key->about), 3);
	ck_assert_msg(aqe_json_str(aqe_json_get(node, "description")), "%s", key->path);
	if (strstr(key->type, "object"))
		ck_assert_msg(aqe_json_get(node, "additionalProperties"), "%s is open", key->path);
}
END_TEST

/* Counts members, items and map values of the schema, the other way round. */
static size_t count_nodes(const struct aqe_json *node)
{
	const struct aqe_json *props = aqe_json_get(node, "properties");
	const struct aqe_json *more = aqe_json_get(node, "additionalProperties");
	const struct aqe_json *items = aqe_json_get(node, "items");
	size_t n = 0;

	for (const struct aqe_json *m = props ? props->first : NULL; m; m = m->next)
		n += 1 + count_nodes(m);
	if (more && more->type == AQE_JSON_OBJECT)
		n += 1 + count_nodes(more);
	if (items)
		n += 1 + count_nodes(items);
	return n;
}

START_TEST(schema__has_nothing_else)
{
	ck_assert_uint_eq(count_nodes(schema), HARD_POLICY_KEYS_COUNT);
	ck_assert_str_eq(aqe_json_str(aqe_json_get(schema, "$schema")),
			 "https://json-schema.org/draft/2020-12/schema");
}
END_TEST

START_TEST(schema__lists_the_waivable_properties)
{
	const struct aqe_json *list =
		aqe_json_at(schema, "/properties/waivers/items/properties/property/enum");
	size_t n = 0;

	for (unsigned i = 0; i < HARD_PROP_COUNT; i++) {
		const struct hard_prop_row *row = &HARDENING_PROFILE[i];

		ck_assert_msg(aqe_json_has_str(list, row->id) == row->waivable, "%s", row->id);
		n += row->waivable;
	}
	ck_assert_uint_eq(list->len, n);
}
END_TEST

/* ---- a small validator: type, enum, const, pattern, required, properties, items ---- */

static bool type_fits(const struct aqe_json *types, const struct aqe_json *v)
{
	const char *name = aqe_json_type_name(v->type);
	int64_t n = 0;
	bool whole = aqe_json_to_i64(v, INT64_MIN, INT64_MAX, &n);

	if (!types)
		return true;
	if (types->type == AQE_JSON_STRING)
		return strcmp(types->text, name) == 0 ||
		       (whole && strcmp(types->text, "integer") == 0);
	return aqe_json_has_str(types, name) || (whole && aqe_json_has_str(types, "integer"));
}

static bool pattern_fits(const struct aqe_json *pattern, const struct aqe_json *v)
{
	regex_t re;
	bool ok;

	if (!pattern || v->type != AQE_JSON_STRING)
		return true;
	ck_assert_msg(regcomp(&re, pattern->text, REG_EXTENDED | REG_NOSUB) == 0, "%s",
		      pattern->text);
	ok = regexec(&re, v->text, 0, NULL, 0) == 0;
	regfree(&re);
	return ok;
}

static bool scalar_fits(const struct aqe_json *s, const struct aqe_json *v)
{
	const struct aqe_json *list = aqe_json_get(s, "enum");
	const struct aqe_json *constant = aqe_json_get(s, "const");

	return type_fits(aqe_json_get(s, "type"), v) &&
	       pattern_fits(aqe_json_get(s, "pattern"), v) &&
	       (!list || aqe_json_has_str(list, v->text)) &&
	       (!constant || aqe_json_equal(constant, v));
}

static bool valid(const struct aqe_json *s, const struct aqe_json *v)
{
	const struct aqe_json *required = aqe_json_get(s, "required");
	bool ok = scalar_fits(s, v);

	for (const struct aqe_json *r = required ? required->first : NULL;
	     r && v->type == AQE_JSON_OBJECT; r = r->next)
		ok = ok && aqe_json_get(v, r->text);
	for (const struct aqe_json *m = v->first; ok && m; m = m->next) {
		const struct aqe_json *sub =
			m->key ? aqe_json_get(aqe_json_get(s, "properties"), m->key)
			       : aqe_json_get(s, "items");

		if (!sub && m->key)
			sub = aqe_json_get(s, "additionalProperties");
		ok = sub && sub->type == AQE_JSON_OBJECT && valid(sub, m);
	}
	return ok;
}

START_TEST(schema__validates_the_corpus_policy)
{
	struct aqe_json *doc = read_json("tests/corpus/policy.json");

	ck_assert(valid(schema, doc));
	ck_assert_int_eq(aqe_json_set(arena, doc, "imagse", aqe_json_new_array(arena)), 0);
	ck_assert(!valid(schema, doc));
}
END_TEST

/* The reader and the schema agree on small documents. */
static const struct {
	const char *text;
	bool ok;
} docs[] = {
	{ "{\"version\":1}", true },
	{ "{}", false },
	{ "{\"version\":2}", false },
	{ "{\"version\":1,\"mode\":\"verify\"}", true },
	{ "{\"version\":1,\"mode\":\"x\"}", false },
	{ "{\"version\":1,\"network\":{}}", true },
	{ "{\"version\":1,\"network\":{\"a\":1}}", false },
	{ "{\"version\":1,\"audit\":{\"mode\":\"off\",\"path\":\"/a/b\",\"signEvery\":1}}", true },
	{ "{\"version\":1,\"audit\":{\"mode\":\"on\"}}", false },
	{ "{\"version\":1,\"audit\":{\"path\":\"a\"}}", false },
	{ "{\"version\":1,\"runtime\":\"/a\"}", true },
	{ "{\"version\":1,\"runtime\":\"a\"}", false },
	{ "{\"version\":1,\"runtime\":{\"path\":\"/a\"}}", true },
	{ "{\"version\":1,\"runtime\":{}}", false },
	{ "{\"version\":1,\"agents\":{\"a\":{\"cpus\":1.5,\"memory\":\"2g\"}}}", true },
	{ "{\"version\":1,\"agents\":{\"a\":{\"cpus\":\"x\"}}}", false },
	{ "{\"version\":1,\"agents\":{\"a\":{\"pids\":1.5}}}", false },
	{ "{\"version\":1,\"mounts\":[{\"source\":\"/a\",\"destination\":\"/b\"}]}", true },
	{ "{\"version\":1,\"mounts\":[{\"source\":\"/a\"}]}", false },
	{ "{\"version\":1,\"waivers\":[{\"property\":\"hooks\",\"agentType\":\"default\","
	  "\"reason\":\"r\",\"owner\":\"o\",\"expires\":\"2030-01-01\"}]}",
	  false },
	{ "{\"version\":1,\"waivers\":[{\"property\":\"lsm\",\"agentType\":\"default\","
	  "\"reason\":\"r\",\"owner\":\"o\",\"expires\":\"2030-01-01\"}]}",
	  true },
};

START_TEST(schema__agrees_with_the_reader)
{
	char path[] = "/tmp/aqe-test-XXXXXX";
	AQE_AUTO_FD int fd = mkstemp(path);
	struct hard_policy *p = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	int rc;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(aqe_fs_write_all(fd, docs[_i].text, strlen(docs[_i].text), &e), 0);
	ck_assert_int_eq(valid(schema, read_json(path)), docs[_i].ok);
	rc = hard_policy_load_file(path, &p, &e);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_msg((rc == 0) == docs[_i].ok, "%s", e.text);
	hard_policy_free(p);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening_policy_schema");
	TCase *t = tcase_create("schema");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, schema__has_each_key_with_type_and_required, 0,
			    (int)HARD_POLICY_KEYS_COUNT);
	tcase_add_test(t, schema__has_nothing_else);
	tcase_add_test(t, schema__lists_the_waivable_properties);
	tcase_add_test(t, schema__validates_the_corpus_policy);
	tcase_add_loop_test(t, schema__agrees_with_the_reader, 0, (int)AQE_COUNT(docs));
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
