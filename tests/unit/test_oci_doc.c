/* SPDX-License-Identifier: MIT */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oci/doc.h"
#include "oci/schema.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define ARENA_MAX ((size_t)256 << 20)
#define FILE_MAX  ((size_t)4 << 20)

static struct aqe_arena *arena;
static struct aqe_err err;

static void setup(void)
{
	arena = aqe_arena_new(ARENA_MAX);
	ck_assert_ptr_nonnull(arena);
	memset(&err, 0, sizeof(err));
}

static void teardown(void)
{
	aqe_arena_free(arena);
}

static int parse(enum oci_doc kind, const char *text, struct aqe_json **ret)
{
	return oci_doc_parse(arena, kind, text, strlen(text), ret, &err);
}

static struct aqe_json *parse_ok(enum oci_doc kind, const char *text)
{
	struct aqe_json *root = NULL;

	ck_assert_msg(parse(kind, text, &root) == 0, "%s: %s", text, err.text);
	return root;
}

static void read_file(const char *path, struct aqe_buf *b)
{
	AQE_AUTO_FILE FILE *f = fopen(path, "re");
	char data[4096];
	size_t n;

	ck_assert_msg(f != NULL, "%s", path);
	aqe_buf_clear(b);
	while ((n = fread(data, 1, sizeof(data), f)) > 0)
		ck_assert_int_eq(aqe_buf_add(b, data, n), 0);
}

/* Calls `fn` for every *.json of a directory; returns how many there were. */
static size_t each_file(const char *dir, void (*fn)(const char *name, const struct aqe_buf *b))
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(FILE_MAX);
	DIR *d = opendir(dir);
	size_t n = 0;

	ck_assert_ptr_nonnull(d);
	for (struct dirent *ent = readdir(d); ent; ent = readdir(d)) {
		char path[512];

		if (!aqe_ends(ent->d_name, ".json"))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, ent->d_name);
		read_file(path, &b);
		teardown();
		setup();
		fn(ent->d_name, &b);
		n++;
	}
	(void)closedir(d);
	return n;
}

/* ---- reading ---- */

static void accept_file(const char *name, const struct aqe_buf *b)
{
	struct aqe_json *root;

	ck_assert_msg(oci_doc_parse(arena, OCI_DOC_CONFIG, aqe_buf_str(b), b->len, &root, &err) ==
			      0,
		      "%s: %u:%u: %s", name, err.line, err.col, err.text);
	if (!aqe_starts(name, "hooks-in-config")) /* that is a part of one */
		ck_assert_msg(oci_doc_is_config(root), "%s", name);
}

START_TEST(parse__accepts_every_well_typed_document)
{
	ck_assert_uint_ge(each_file("tests/corpus/spec", accept_file), 340);
	ck_assert_uint_ge(each_file("tests/samples", accept_file), 50);
}
END_TEST

static void refuse_file(const char *name, const struct aqe_buf *b)
{
	struct aqe_json *root;
	int r;

	/* inspect documents are another reader's */
	if (aqe_starts(name, "inspect-"))
		return;
	r = oci_doc_parse(arena, OCI_DOC_CONFIG, aqe_buf_str(b), b->len, &root, &err);
	ck_assert_msg(r == AQE_E_MALFORMED || r == AQE_E_LIMIT, "%s: %d %s", name, r, err.text);
	ck_assert_msg(err.text[0] != 0, "%s", name);
	if (aqe_starts(name, "type-")) {
		ck_assert_msg(r == AQE_E_MALFORMED, "%s: %s", name, err.text);
		ck_assert_msg(aqe_starts(err.text, "wrong type at '/"), "%s: %s", name, err.text);
		ck_assert_msg(err.line > 0 && err.col > 0, "%s", name);
	}
	if (aqe_starts(name, "number-"))
		ck_assert_msg(r == AQE_E_MALFORMED, "%s: %s", name, err.text);
}

START_TEST(parse__refuses_every_malformed_document)
{
	ck_assert_uint_ge(each_file("tests/corpus/malformed", refuse_file), 130);
}
END_TEST

static const struct {
	enum oci_doc kind;
	const char *text;
	const char *why; /* NULL: accepted */
} types[] = {
	{ OCI_DOC_CONFIG, "[]", "wrong type at '': found array, expected an object" },
	{ OCI_DOC_CONFIG, "{\"ociVersion\":null}",
	  "wrong type at '/ociVersion': found null, expected a string" },
	{ OCI_DOC_CONFIG, "{\"process\":{\"noNewPrivileges\":1}}",
	  "wrong type at '/process/noNewPrivileges': found number 1, expected true or false" },
	{ OCI_DOC_CONFIG, "{\"root\":{\"readonly\":\"true\"}}",
	  "wrong type at '/root/readonly': found string, expected true or false" },
	{ OCI_DOC_CONFIG, "{\"mounts\":[{\"options\":[true]}]}",
	  "wrong type at '/mounts/0/options/0': found true, expected a string" },
	{ OCI_DOC_CONFIG, "{\"annotations\":{\"a/b\":5}}",
	  "wrong type at '/annotations/a~1b': found number 5, expected a string" },
	{ OCI_DOC_CONFIG, "{\"windows\":{\"x\":null}}", NULL },
	{ OCI_DOC_CONFIG, "{\"windows\":[]}",
	  "wrong type at '/windows': found array, expected an object" },
	{ OCI_DOC_CONFIG, "{\"unheardOf\":null}", NULL },
	{ OCI_DOC_CONFIG, "{\"linux\":{\"rdma\":1,\"resources\":{\"rdma\":{\"m\":{}}}}}", NULL },
	{ OCI_DOC_CONFIG, "{\"linux\":{\"resources\":{\"rdma\":{\"m\":3}}}}",
	  "wrong type at '/linux/resources/rdma/m': found number 3, expected an object" },
	{ OCI_DOC_PROCESS, "{\"user\":{\"uid\":4294967295}}", NULL },
	{ OCI_DOC_PROCESS, "{\"user\":{\"uid\":4294967296}}",
	  "wrong type at '/user/uid': found number 4294967296, "
	  "expected a whole number from 0 to 4294967295" },
	{ OCI_DOC_PROCESS, "{\"user\":{\"uid\":-1}}",
	  "wrong type at '/user/uid': found number -1, "
	  "expected a whole number from 0 to 4294967295" },
	{ OCI_DOC_PROCESS, "{\"user\":{\"uid\":-0}}",
	  "wrong type at '/user/uid': found number -0, "
	  "expected a whole number from 0 to 4294967295" },
	{ OCI_DOC_PROCESS, "{\"oomScoreAdj\":-2147483648}", NULL },
	{ OCI_DOC_PROCESS, "{\"oomScoreAdj\":2147483648}",
	  "wrong type at '/oomScoreAdj': found number 2147483648, "
	  "expected a whole number from -2147483648 to 2147483647" },
	{ OCI_DOC_PROCESS, "{\"rlimits\":[{\"type\":\"x\",\"hard\":18446744073709551615}]}", NULL },
	{ OCI_DOC_PROCESS, "{\"rlimits\":[{\"hard\":18446744073709551616}]}",
	  "wrong type at '/rlimits/0/hard': found number 18446744073709551616, "
	  "expected a whole number from 0 to 18446744073709551615" },
	{ OCI_DOC_RESOURCES, "{\"memory\":{\"limit\":-9223372036854775808}}", NULL },
	{ OCI_DOC_RESOURCES, "{\"memory\":{\"limit\":9223372036854775807}}", NULL },
	{ OCI_DOC_RESOURCES, "{\"memory\":{\"limit\":9223372036854775808}}",
	  "wrong type at '/memory/limit': found number 9223372036854775808, "
	  "expected a whole number of 64 bits" },
	{ OCI_DOC_RESOURCES, "{\"blockIO\":{\"weight\":65535}}", NULL },
	{ OCI_DOC_RESOURCES, "{\"blockIO\":{\"weight\":65536}}",
	  "wrong type at '/blockIO/weight': found number 65536, "
	  "expected a whole number from 0 to 65535" },
	{ OCI_DOC_RESOURCES, "{\"pids\":{\"limit\":1.0}}",
	  "wrong type at '/pids/limit': found number 1.0, expected a whole number of 64 bits" },
};

START_TEST(check__names_place_and_type)
{
	struct aqe_json *root;
	int r = parse(types[_i].kind, types[_i].text, &root);

	if (!types[_i].why) {
		ck_assert_msg(r == 0, "%s", err.text);
		return;
	}
	ck_assert_int_eq(r, AQE_E_MALFORMED);
	ck_assert_str_eq(err.text, types[_i].why);
}
END_TEST

/* A path of members and elements from the root to a row, as JSON around `value`. */
struct at {
	const struct at *up;
	const struct oci_row *row; /* NULL: element of an array or value of a map */
	const struct oci_type *type;
};

static void wrap(struct aqe_buf *b, const struct at *at, const char *value)
{
	const struct at *list[16];
	size_t n = 0;

	for (; at; at = at->up)
		list[n++] = at;
	for (size_t i = n; i-- > 0;) {
		if (list[i]->row)
			(void)aqe_buf_addf(b, "{\"%s\":", list[i]->row->name);
		else if (list[i]->type->kind == OCI_KIND_ARRAY)
			(void)aqe_buf_puts(b, "[");
		else
			(void)aqe_buf_puts(b, "{\"m\":");
	}
	(void)aqe_buf_puts(b, value);
	for (size_t i = 0; i < n; i++)
		(void)aqe_buf_puts(b, !list[i]->row && list[i]->type->kind == OCI_KIND_ARRAY ? "]"
											     : "}");
}

static size_t rows_seen;

static void null_at(const struct at *at)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);
	struct aqe_json *root;

	wrap(&b, at, "null");
	ck_assert_msg(parse(OCI_DOC_CONFIG, aqe_buf_str(&b), &root) == AQE_E_MALFORMED, "%s",
		      aqe_buf_str(&b));
	ck_assert_msg(strstr(err.text, "found null, expected") != NULL, "%s", err.text);
	rows_seen++;
}

/* NOLINTNEXTLINE(misc-no-recursion): over our own const tables */
static void null_everywhere(const struct oci_type *t, const struct at *up)
{
	if (t->elem) {
		struct at at = { up, NULL, t };

		null_at(&at);
		null_everywhere(t->elem, &at);
	}
	for (size_t i = 0; i < t->n_rows; i++) {
		struct at at = { up, &t->rows[i], t };

		null_at(&at);
		null_everywhere(t->rows[i].type, &at);
	}
}

START_TEST(check__refuses_null_for_every_member)
{
	null_everywhere(oci_schema_root(OCI_DOC_CONFIG), NULL);
	ck_assert_uint_gt(rows_seen, 250);
}
END_TEST

/* ---- limits ---- */

static const struct {
	const char *before, *after;
	size_t n; /* letters between the two */
	int code;
	const char *why;
} lengths[] = {
	{ "{\"process\":{\"env\":[\"BIG=", "\"]}}", 131067, 0, NULL },
	{ "{\"process\":{\"env\":[\"BIG=", "\"]}}", 131068, AQE_E_LIMIT,
	  "env 'BIG' is 131072 bytes, limit 131071" },
	{ "{\"process\":{\"env\":[\"", "\"]}}", 131072, AQE_E_LIMIT,
	  "string at '/process/env/0' is 131072 bytes, limit 131071" },
	{ "{\"process\":{\"args\":[\"", "\"]}}", 131071, 0, NULL },
	{ "{\"process\":{\"args\":[\"", "\"]}}", 131072, AQE_E_LIMIT,
	  "string at '/process/args/0' is 131072 bytes, limit 131071" },
	{ "{\"hostname\":\"", "\"}", 32768, 0, NULL },
	{ "{\"hostname\":\"", "\"}", 32769, AQE_E_LIMIT,
	  "string at '/hostname' is 32769 bytes, limit 32768" },
	{ "{\"foo\":[\"", "\"]}", 32768, 0, NULL },
	{ "{\"foo\":[\"", "\"]}", 32769, AQE_E_LIMIT,
	  "string at '/foo/0' is 32769 bytes, limit 32768" },
	{ "{\"annotations\":{\"", "\":\"\"}}", 32768, 0, NULL },
	{ "{\"annotations\":{\"", "\":\"\"}}", 32769, AQE_E_LIMIT,
	  "a member's name is 32769 bytes, limit 32768" },
	{ "{\"windows\":{\"", "\":\"\"}}", 32769, AQE_E_LIMIT,
	  "a member's name is 32769 bytes, limit 32768" },
};

START_TEST(check__limits_strings)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(FILE_MAX);
	struct aqe_json *root;
	int r;

	(void)aqe_buf_puts(&b, lengths[_i].before);
	for (size_t i = 0; i < lengths[_i].n; i++)
		(void)aqe_buf_putc(&b, 'x');
	(void)aqe_buf_puts(&b, lengths[_i].after);
	r = parse(OCI_DOC_CONFIG, aqe_buf_str(&b), &root);
	ck_assert_msg(r == lengths[_i].code, "%d %s", r, err.text);
	if (lengths[_i].why)
		ck_assert_str_eq(err.text, lengths[_i].why);
}
END_TEST

/* `n` levels in all, below an unknown member, built by hand as an edit would. */
static struct aqe_json *nested(size_t n)
{
	struct aqe_json *root = aqe_json_new_object(arena);
	struct aqe_json *at = aqe_json_new_array(arena);

	ck_assert_int_eq(aqe_json_set(arena, root, "foo", at), 0);
	for (size_t i = 2; i < n; i++) {
		struct aqe_json *v = aqe_json_new_array(arena);

		ck_assert_int_eq(aqe_json_append(at, v), 0);
		at = v;
	}
	ck_assert_int_eq(aqe_json_append(at, aqe_json_new_null(arena)), 0);
	return root;
}

static int no_issue(void *arg, const struct oci_issue *issue)
{
	(void)arg;
	(void)issue;
	return 0;
}

START_TEST(check__limits_depth)
{
	struct aqe_json *deep = nested(OCI_DEPTH_MAX + 1);

	ck_assert_int_eq(oci_doc_check(OCI_DOC_CONFIG, nested(OCI_DEPTH_MAX), &err), 0);
	ck_assert_int_eq(oci_doc_check(OCI_DOC_CONFIG, deep, &err), AQE_E_LIMIT);
	ck_assert_str_eq(err.text, "document is nested deeper than 32 levels");
	ck_assert_int_eq(oci_doc_issues(OCI_DOC_CONFIG, deep, no_issue, NULL), 0);
}
END_TEST

/* ---- issues ---- */

struct seen {
	size_t n;
	struct oci_issue first, last;
};

static int note_issue(void *arg, const struct oci_issue *issue)
{
	struct seen *s = arg;

	if (s->n++ == 0)
		s->first = *issue;
	s->last = *issue;
	return 0;
}

static const struct {
	enum oci_doc kind;
	const char *text;
	size_t n;
	enum oci_issue_kind first;
	const char *at, *near;
} issues[] = {
	{ OCI_DOC_CONFIG, "{\"ociVersion\":\"1.0.2\",\"annotations\":{\"a\":\"b\"}}", 0, 0, "",
	  "" },
	{ OCI_DOC_CONFIG, "{\"ociversion\":\"\"}", 1, OCI_ISSUE_CASE, "/ociversion", "ociVersion" },
	{ OCI_DOC_CONFIG, "{\"Hooks\":{\"prestart\":[]}}", 1, OCI_ISSUE_CASE, "/Hooks", "hooks" },
	{ OCI_DOC_CONFIG, "{\"linux\":{\"Resources\":null}}", 1, OCI_ISSUE_CASE, "/linux/Resources",
	  "resources" },
	{ OCI_DOC_CONFIG, "{\"linux\":{\"seccomp\":{},\"Seccomp\":null}}", 1, OCI_ISSUE_CASE,
	  "/linux/Seccomp", "seccomp" },
	{ OCI_DOC_CONFIG, "{\"linux\":{\"mas\u212aedPaths\":[]}}", 1, OCI_ISSUE_CASE,
	  "/linux/mas\u212aedPaths", "maskedPaths" },
	{ OCI_DOC_CONFIG, "{\"proce\\u017fs\":{}}", 1, OCI_ISSUE_CASE, "/proce\u017fs", "process" },
	{ OCI_DOC_CONFIG, "{\"linux\":{\"namespaces\":[{\"type\":\"pid\",\"Path\":\"/x\"}]}}", 1,
	  OCI_ISSUE_CASE, "/linux/namespaces/0/Path", "path" },
	{ OCI_DOC_CONFIG, "{\"linux\":{\"resources\":{\"Blockio\":{}}}}", 1, OCI_ISSUE_CASE,
	  "/linux/resources/Blockio", "blockIO" },
	{ OCI_DOC_CONFIG, "{\"foo\":{\"hooks\":{},\"bar\":1}}", 1, OCI_ISSUE_UNKNOWN, "/foo",
	  NULL },
	{ OCI_DOC_CONFIG, "{\"\":1}", 1, OCI_ISSUE_UNKNOWN, "/", NULL },
	{ OCI_DOC_CONFIG, "{\"hook\":1,\"hooksx\":1}", 2, OCI_ISSUE_UNKNOWN, "/hook", NULL },
	{ OCI_DOC_CONFIG, "{\"windows\":{\"foo\":1}}", 1, OCI_ISSUE_UNUSED, "/windows", NULL },
	{ OCI_DOC_CONFIG, "{\"domainname\":\"x\"}", 1, OCI_ISSUE_UNUSED, "/domainname", NULL },
	{ OCI_DOC_CONFIG, "{\"linux\":{\"resources\":{\"blockIO\":{\"foo\":1}}}}", 1,
	  OCI_ISSUE_UNUSED, "/linux/resources/blockIO", NULL },
	{ OCI_DOC_PROCESS, "{\"scheduler\":{\"policy\":\"SCHED_FIFO\"},\"x\":1}", 2,
	  OCI_ISSUE_UNUSED, "/scheduler", NULL },
	{ OCI_DOC_RESOURCES, "{\"unified\":{}}", 1, OCI_ISSUE_UNUSED, "/unified", NULL },
	{ OCI_DOC_CONFIG, "{\"annotations\":{\"a\":\"\",\"b\":\"\",\"A\":\"\"}}", 1, OCI_ISSUE_FOLD,
	  "/annotations/A", NULL },
	{ OCI_DOC_CONFIG, "{\"linux\":{\"sysctl\":{\"net.k\":\"\",\"net.\u212a\":\"\"}}}", 1,
	  OCI_ISSUE_FOLD, "/linux/sysctl/net.\u212a", NULL },
};

START_TEST(issues__reports_kind_and_place)
{
	struct aqe_json *root = parse_ok(issues[_i].kind, issues[_i].text);
	AQE_AUTO_BUF struct aqe_buf at = AQE_BUF_INIT(65536);
	struct seen s = { 0 };

	ck_assert_int_eq(oci_doc_issues(issues[_i].kind, root, note_issue, &s), 0);
	ck_assert_uint_eq(s.n, issues[_i].n);
	if (!s.n)
		return;
	ck_assert_int_eq(s.first.kind, issues[_i].first);
	aqe_json_pointer(s.first.at, &at);
	ck_assert_str_eq(aqe_buf_str(&at), issues[_i].at);
	ck_assert_pstr_eq(s.first.near, issues[_i].near);
}
END_TEST

START_TEST(issues__fold_mark_without_a_pair_is_none)
{
	struct aqe_json *root =
		parse_ok(OCI_DOC_CONFIG, "{\"annotations\":{\"a\":\"\",\"A\":\"\"}}");
	struct seen s = { 0 };

	aqe_json_remove(aqe_json_get(root, "annotations"), "a");
	ck_assert_int_eq(oci_doc_issues(OCI_DOC_CONFIG, root, note_issue, &s), 0);
	ck_assert_uint_eq(s.n, 0);
}
END_TEST

static int stop_at_once(void *arg, const struct oci_issue *issue)
{
	(void)issue;
	++*(int *)arg;
	return 42;
}

START_TEST(issues__stops_when_told)
{
	static const char *const texts[] = {
		"{\"x\":1,\"y\":1}",
		"{\"annotations\":{\"a\":\"\",\"A\":\"\",\"b\":\"\",\"B\":\"\"}}",
	};

	for (size_t i = 0; i < AQE_COUNT(texts); i++) {
		int calls = 0;

		ck_assert_int_eq(oci_doc_issues(OCI_DOC_CONFIG, parse_ok(OCI_DOC_CONFIG, texts[i]),
						stop_at_once, &calls),
				 42);
		ck_assert_int_eq(calls, 1);
	}
}
END_TEST

/* ---- writing ---- */

static const struct {
	enum oci_doc kind;
	const char *in, *out; /* out NULL: refused */
	const char *why;
} emits[] = {
	{ OCI_DOC_CONFIG, "{}", "{}", NULL },
	{ OCI_DOC_CONFIG,
	  "{ \"linux\" : { \"sysctl\":{\"b\":\"1\",\"a\":\"2\"}, \"uidMappings\":[] },"
	  " \"root\":{\"readonly\":true,\"path\":\"/\\u0061\"}, \"ociVersion\":\"1.0.2\" }",
	  "{\"ociVersion\":\"1.0.2\",\"root\":{\"path\":\"/a\",\"readonly\":true},"
	  "\"linux\":{\"uidMappings\":[],\"sysctl\":{\"b\":\"1\",\"a\":\"2\"}}}",
	  NULL },
	{ OCI_DOC_PROCESS, "{\"env\":[\"A=\\u0001\\n\\\"\"],\"user\":{\"gid\":1,\"uid\":2}}",
	  "{\"user\":{\"uid\":2,\"gid\":1},\"env\":[\"A=\\u0001\\n\\\"\"]}", NULL },
	{ OCI_DOC_RESOURCES, "{\"pids\":{\"limit\":-1},\"memory\":{}}",
	  "{\"memory\":{},\"pids\":{\"limit\":-1}}", NULL },
	{ OCI_DOC_CONFIG, "{\"linux\":{\"foo\":1}}", NULL,
	  "writing a document: '/linux/foo' is not to be written" },
	{ OCI_DOC_CONFIG, "{\"linux\":{\"resources\":{\"blockIO\":{}}}}", NULL,
	  "writing a document: '/linux/resources/blockIO' is not to be written" },
	{ OCI_DOC_CONFIG, "{\"Hooks\":{}}", NULL,
	  "writing a document: '/Hooks' is not to be written" },
};

START_TEST(emit__writes_tables_order_and_nothing_else)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);
	struct aqe_json *root = parse_ok(emits[_i].kind, emits[_i].in);
	int r = oci_doc_emit(emits[_i].kind, root, &b, &err);

	if (emits[_i].out) {
		ck_assert_msg(r == 0, "%s", err.text);
		ck_assert_str_eq(aqe_buf_str(&b), emits[_i].out);
		return;
	}
	ck_assert_int_eq(r, AQE_E_INTERNAL);
	ck_assert_int_eq(err.code, AQE_E_INTERNAL);
	ck_assert_str_eq(err.text, emits[_i].why);
	ck_assert_uint_eq(b.len, 0);
}
END_TEST

START_TEST(emit__refuses_a_tree_of_wrong_types)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);
	struct aqe_json *root = aqe_json_new_object(arena);

	ck_assert_int_eq(aqe_json_set(arena, root, "process", aqe_json_new_null(arena)), 0);
	ck_assert_int_eq(oci_doc_emit(OCI_DOC_CONFIG, root, &b, &err), AQE_E_INTERNAL);
	ck_assert_int_eq(err.code, AQE_E_INTERNAL);
	ck_assert_str_eq(err.text, "writing a document: wrong type at '/process': "
				   "found null, expected an object");
	ck_assert_uint_eq(b.len, 0);
}
END_TEST

START_TEST(emit__respects_the_buffers_maximum)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(10);
	struct aqe_json *root = parse_ok(OCI_DOC_CONFIG, "{\"hostname\":\"abcdefgh\"}");

	ck_assert_int_eq(oci_doc_emit(OCI_DOC_CONFIG, root, &b, &err), AQE_E_LIMIT);
}
END_TEST

static void round_trip(const char *name, const struct aqe_buf *b)
{
	AQE_AUTO_BUF struct aqe_buf one = AQE_BUF_INIT(FILE_MAX);
	AQE_AUTO_BUF struct aqe_buf two = AQE_BUF_INIT(FILE_MAX);
	struct aqe_json *root, *again;
	struct seen s = { 0 };

	ck_assert_int_eq(oci_doc_parse(arena, OCI_DOC_CONFIG, aqe_buf_str(b), b->len, &root, &err),
			 0);
	aqe_json_remove(aqe_json_at(root, "/linux/resources"), "blockIO");
	ck_assert_int_eq(oci_doc_issues(OCI_DOC_CONFIG, root, note_issue, &s), 0);
	if (s.n && s.first.kind != OCI_ISSUE_FOLD)
		return;
	ck_assert_msg(oci_doc_emit(OCI_DOC_CONFIG, root, &one, &err) == 0, "%s: %s", name,
		      err.text);
	ck_assert_int_eq(oci_doc_parse(arena, OCI_DOC_CONFIG, aqe_buf_str(&one), one.len, &again,
				       &err),
			 0);
	ck_assert_msg(aqe_json_equal(root, again), "%s", name);
	ck_assert_int_eq(oci_doc_emit(OCI_DOC_CONFIG, again, &two, &err), 0);
	ck_assert_str_eq(aqe_buf_str(&one), aqe_buf_str(&two));
	rows_seen++;
}

START_TEST(emit__reads_back_equal)
{
	rows_seen = 0;
	(void)each_file("tests/corpus/spec", round_trip);
	(void)each_file("tests/samples", round_trip);
	ck_assert_uint_gt(rows_seen, 350);
}
END_TEST

/* ---- small predicates ---- */

START_TEST(is_config__wants_a_member_of_the_spec)
{
	static const struct {
		const char *text;
		bool yes;
	} cases[] = {
		{ "{}", true },         { "{\"linux\":{}}", true },  { "{\"ociVersion\":1}", true },
		{ "{\"x\":1}", false }, { "{\"Linux\":{}}", false }, { "[]", false },
		{ "null", false },
	};

	for (size_t i = 0; i < AQE_COUNT(cases); i++) {
		struct aqe_json *root;

		ck_assert_int_eq(aqe_json_parse(arena, cases[i].text, strlen(cases[i].text),
						&OCI_DOC_LIMITS, &root, &err),
				 0);
		ck_assert_msg(oci_doc_is_config(root) == cases[i].yes, "%s", cases[i].text);
	}
}
END_TEST

START_TEST(version_known__is_exact)
{
	static const char *const good[] = { "1.0.0", "1.0.1", "1.0.2",     "1.1.0",    "1.2.0",
					    "1.2.1", "1.3.0", "1.0.2-dev", "1.3.0-dev" };
	static const char *const bad[] = { "",       "1.0",    "1.0.3",      "1.1.1",
					   "1.3.1",  "1.4.0",  "2.0.0",      "1.0.2 ",
					   " 1.0.2", "v1.0.2", "1.0.2-dev2", "1.0.2-dev/../x" };

	for (size_t i = 0; i < AQE_COUNT(good); i++)
		ck_assert_msg(oci_version_known(good[i]), "%s", good[i]);
	for (size_t i = 0; i < AQE_COUNT(bad); i++)
		ck_assert_msg(!oci_version_known(bad[i]), "%s", bad[i]);
	ck_assert(!oci_version_known(NULL));
	ck_assert(oci_version_known(OCI_VERSION_OUT));
}
END_TEST

/* ---- the tables themselves ---- */

static void check_rows(const struct oci_type *t)
{
	for (size_t i = 0; i < t->n_rows; i++) {
		ck_assert_uint_eq(t->rows[i].len, strlen(t->rows[i].name));
		ck_assert_ptr_eq(oci_schema_row(t, t->rows[i].name, t->rows[i].len), &t->rows[i]);
		for (size_t k = 0; k < i; k++)
			ck_assert_msg(!oci_fold_eq(t->rows[i].name, t->rows[k].name), "%s",
				      t->rows[i].name);
	}
}

/* NOLINTNEXTLINE(misc-no-recursion): over our own const tables */
static void check_type(const struct oci_type *t)
{
	ck_assert_int_eq(t->kind == OCI_KIND_OBJECT, t->rows != NULL);
	ck_assert_int_eq(t->kind == OCI_KIND_MAP || t->kind == OCI_KIND_ARRAY, t->elem != NULL);
	check_rows(t);
	if (t->elem)
		check_type(t->elem);
	for (size_t i = 0; i < t->n_rows; i++)
		check_type(t->rows[i].type);
}

START_TEST(schema__tables_are_consistent)
{
	check_type(oci_schema_root(OCI_DOC_CONFIG));
	check_type(oci_schema_root(OCI_DOC_PROCESS));
	check_type(oci_schema_root(OCI_DOC_RESOURCES));
}
END_TEST

static TCase *tcase(Suite *s, const char *name)
{
	TCase *tc = tcase_create(name);

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	return tc;
}

int main(void)
{
	Suite *s = suite_create("oci_doc");
	SRunner *sr = srunner_create(s);
	TCase *tc = tcase(s, "parse");
	int failed;

	tcase_add_test(tc, parse__accepts_every_well_typed_document);
	tcase_add_test(tc, parse__refuses_every_malformed_document);
	tc = tcase(s, "check");
	tcase_add_loop_test(tc, check__names_place_and_type, 0, (int)AQE_COUNT(types));
	tcase_add_test(tc, check__refuses_null_for_every_member);
	tcase_add_loop_test(tc, check__limits_strings, 0, (int)AQE_COUNT(lengths));
	tcase_add_test(tc, check__limits_depth);
	tc = tcase(s, "issues");
	tcase_add_loop_test(tc, issues__reports_kind_and_place, 0, (int)AQE_COUNT(issues));
	tcase_add_test(tc, issues__fold_mark_without_a_pair_is_none);
	tcase_add_test(tc, issues__stops_when_told);
	tc = tcase(s, "emit");
	tcase_add_loop_test(tc, emit__writes_tables_order_and_nothing_else, 0,
			    (int)AQE_COUNT(emits));
	tcase_add_test(tc, emit__refuses_a_tree_of_wrong_types);
	tcase_add_test(tc, emit__respects_the_buffers_maximum);
	tcase_add_test(tc, emit__reads_back_equal);
	tc = tcase(s, "small");
	tcase_add_test(tc, is_config__wants_a_member_of_the_spec);
	tcase_add_test(tc, version_known__is_exact);
	tcase_add_test(tc, schema__tables_are_consistent);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
