/* SPDX-License-Identifier: MIT */
/* Every function of the core that allocates, with the first, second, third... allocation failing:
 * the answer is AQE_E_NOMEM or NULL, and nothing leaks. */
#include <fcntl.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/json.h"
#include "shim/core/proc.h"
#include "shim/core/text.h"
#include "tests/fakes/fake_alloc.h"
#include "tests/unit/unit.h"

#define FAULTS_MAX 2000

/* A document with all that makes the reader allocate: a large object, escapes, long strings. */
static void make_document(struct aqe_buf *b)
{
	(void)aqe_buf_puts(b, "{\"esc\\u0061pe\": \"\\ud83d\\ude00 ");
	for (int i = 0; i < 900; i++)
		(void)aqe_buf_puts(b, "\\n0123456789");
	(void)aqe_buf_puts(b, "\", \"list\": [1, 2.5, true, false, null, [], {}]");
	for (int i = 0; i < 600; i++)
		(void)aqe_buf_addf(b, ", \"key-%d\": {\"a\": \"%d\", \"b\": {\"c\": []}}", i, i);
	(void)aqe_buf_puts(b, "}");
	ck_assert_int_eq(aqe_buf_ok(b, NULL), 0);
}

/* One use of the core in full, as an X_load would: read, look, copy, edit, write. */
static int use_json(const struct aqe_buf *text, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)8 << 20);
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT((size_t)1 << 20);
	struct aqe_json *v = NULL, *copy;
	int rc;

	if (!a)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	rc = aqe_json_parse(a, text->p, text->len, &AQE_JSON_LIMITS_DEFAULT, &v, e);
	if (rc)
		return rc;
	copy = aqe_json_copy(a, v);
	if (!copy)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	rc = aqe_json_set(a, copy, "new", aqe_json_new_str(a, "value"));
	if (rc)
		return aqe_err_set(e, (enum aqe_code)rc, 0, "set");
	rc = aqe_json_emit(copy, AQE_JSON_PRETTY, &out, e);
	return rc ? rc : aqe_json_emit(copy, AQE_JSON_SORTED, &out, e);
}

START_TEST(json__refuses_at_every_failed_allocation)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT((size_t)1 << 20);
	unsigned n;
	bool hit = true;
	int rc;

	make_document(&text);
	for (n = 1; hit && n < FAULTS_MAX; n++) {
		struct aqe_err e = AQE_ERR_INIT;

		fake_alloc_arm(n);
		rc = use_json(&text, &e);
		hit = fake_alloc_disarm();
		if (hit)
			ck_assert_fault(rc, AQE_E_NOMEM, e, "out of memory");
		else
			ck_assert_ok(rc, e);
	}
	ck_assert_uint_gt(n, 15); /* it did allocate */
	ck_assert_uint_lt(n, FAULTS_MAX);
}
END_TEST

START_TEST(json_parse__keeps_the_place_of_a_failed_allocation)
{
	static const char TEXT[] = "{\n \"a\": 1}";
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(100);
	struct aqe_json *v = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	int rc = aqe_json_parse(a, TEXT, sizeof(TEXT) - 1, &AQE_JSON_LIMITS_DEFAULT, &v, &e);

	ck_assert_fault(rc, AQE_E_NOMEM, e, "out of memory");
	ck_assert_uint_eq(e.line, 2);
	ck_assert_uint_eq(e.col, 7); /* the object and the key fitted, the number did not */
	ck_assert_ptr_null(v);
}
END_TEST

/* Constructors: NULL, and what is built on NULL is AQE_E_NOMEM. */
static int build_tree(struct aqe_arena *a)
{
	static const char *const WORDS[] = { "one", "two", "three" };
	struct aqe_json *obj = aqe_json_new_object(a), *array = aqe_json_new_array(a), *sub;
	int rc;

	if (!obj || !array)
		return AQE_E_NOMEM;
	rc = aqe_json_append(array, aqe_json_new_null(a));
	if (!rc)
		rc = aqe_json_append(array, aqe_json_new_bool(a, true));
	if (!rc)
		rc = aqe_json_append(array, aqe_json_new_i64(a, -5));
	if (!rc)
		rc = aqe_json_append(array, aqe_json_new_u64(a, 5));
	if (!rc)
		rc = aqe_json_append(array, aqe_json_new_strs(a, WORDS, 3));
	if (!rc)
		rc = aqe_json_set(a, obj, "list", array);
	if (rc)
		return rc;
	sub = aqe_json_ensure_object(a, obj, "sub");
	return sub ? aqe_json_set(a, sub, "text", aqe_json_new_str(a, "x")) : AQE_E_NOMEM;
}

START_TEST(json_edit__is_refused_when_the_arena_is_exhausted)
{
	size_t max;
	int rc = AQE_E_NOMEM;

	for (max = 0; rc != 0 && max < 8192; max++) {
		AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(max);

		rc = build_tree(a);
		if (rc)
			ck_assert_int_eq(rc, AQE_E_NOMEM);
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_uint_gt(max, 500);
}
END_TEST

static int use_files(int dirfd, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);
	AQE_AUTO_BUF struct aqe_buf path = AQE_BUF_INIT(4096);
	AQE_AUTO_FD int fd = -1;
	int rc;

	rc = aqe_fs_ensure_dir(dirfd, "dir", 0700, &fd, e);
	if (!rc)
		rc = aqe_fs_write_file(fd, "file", 0600, "content", 7, e);
	if (!rc)
		rc = aqe_fs_read_beneath(dirfd, "dir/file", AQE_FS_TRUSTED, &b, e);
	if (!rc)
		rc = aqe_fs_fd_path(fd, &path, e);
	return rc ? rc : aqe_fs_remove_tree(dirfd, "dir", e);
}

START_TEST(fs__refuses_at_every_failed_allocation)
{
	char dir[] = "/tmp/aqe-test-XXXXXX";
	AQE_AUTO_FD int fd = -1;
	bool hit = true;
	unsigned n;
	int rc;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (n = 1; hit && n < FAULTS_MAX; n++) {
		struct aqe_err e = AQE_ERR_INIT;

		fake_alloc_arm(n);
		rc = use_files(fd, &e);
		hit = fake_alloc_disarm();
		if (hit)
			ck_assert_fault(rc, AQE_E_NOMEM, e, "out of memory");
		else
			ck_assert_ok(rc, e);
	}
	ck_assert_uint_gt(n, 3);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(proc_run__refuses_at_every_failed_allocation)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "echo out; echo err >&2" },
			 NULL };
	char *envp[] = { NULL };
	bool hit = true;
	unsigned n;
	int rc, status = -1;

	for (n = 1; hit && n < FAULTS_MAX; n++) {
		AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(100);
		AQE_AUTO_BUF struct aqe_buf err = AQE_BUF_INIT(100);
		struct aqe_proc_opts o = AQE_PROC_OPTS_INIT;
		struct aqe_err e = AQE_ERR_INIT;

		o.path = "/bin/sh";
		o.argv = argv;
		o.envp = envp;
		o.out = &out;
		o.err = &err;
		fake_alloc_arm(n);
		rc = aqe_proc_run(&o, &status, &e);
		hit = fake_alloc_disarm();
		if (hit)
			ck_assert_fault(rc, AQE_E_NOMEM, e, "out of memory");
		else
			ck_assert_ok(rc, e);
	}
	ck_assert_uint_gt(n, 2);
	ck_assert_int_eq(status, 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("core/alloc");
	TCase *t = tcase_create("faults");

	tcase_add_test(t, json__refuses_at_every_failed_allocation);
	tcase_add_test(t, json_parse__keeps_the_place_of_a_failed_allocation);
	tcase_add_test(t, json_edit__is_refused_when_the_arena_is_exhausted);
	if (unit_has_openat2()) {
		tcase_add_test(t, fs__refuses_at_every_failed_allocation);
		tcase_add_test(t, proc_run__refuses_at_every_failed_allocation);
	}
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
