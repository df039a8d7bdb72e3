/* SPDX-License-Identifier: MIT */
#include "shim/refuse.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

/* engines.md section 2. */
static const char *const MAGIC[] = { "permission denied",
				     "operation not permitted",
				     "no such file or directory",
				     "executable file not found",
				     "not a directory",
				     "is a directory",
				     "open executable" };

static void assert_no_magic(const char *text)
{
	for (size_t i = 0; i < AQE_COUNT(MAGIC); i++)
		ck_assert_msg(!strcasestr(text, MAGIC[i]), "'%s' in '%s'", MAGIC[i], text);
}

static const struct {
	const char *in, *out;
} TEXTS[] = {
	{ "refused: network", "refused: network" },
	{ "open '/x': No such file or directory", "open '/x': not found" },
	{ "open '/x': Permission denied", "open '/x': access denied" },
	{ "mount: Operation not permitted", "mount: not allowed by the kernel" },
	{ "EXECUTABLE FILE NOT FOUND in $PATH", "executable is missing in $PATH" },
	{ "'/x': Not a directory", "'/x': no directory" },
	{ "'/x': Is a directory", "'/x': names a directory" },
	{ "this is a directory", "this names a directory" },
	{ "tab\there, cr\r", "tab here, cr " },
	{ "two\nlines\n\n", "two\nlines" },
	{ "", "" },
	{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
};

START_TEST(text__is_rephrased)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(8192);

	shim_refuse_text(TEXTS[_i].in, &b);
	ck_assert_str_eq(aqe_buf_str(&b), TEXTS[_i].out);
	assert_no_magic(aqe_buf_str(&b));
}
END_TEST

START_TEST(text__has_a_limit)
{
	for (size_t n = SHIM_REFUSE_MAX - 5; n < SHIM_REFUSE_MAX + 6; n++) {
		AQE_AUTO_BUF struct aqe_buf in = AQE_BUF_INIT(8192);
		AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(8192);

		for (size_t i = 0; i < n; i++)
			aqe_buf_putc(&in, 'x');
		shim_refuse_text(in.p, &out);
		ck_assert_uint_eq(out.len, n > SHIM_REFUSE_MAX ? SHIM_REFUSE_MAX : n);
		ck_assert_int_eq(aqe_ends(out.p, "..."), n > SHIM_REFUSE_MAX);
	}
}
END_TEST

/* Characters of two to four bytes, cut at every phase. */
START_TEST(text__is_cut_between_characters)
{
	static const char *const CHARS[] = { "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x90\xb3" };

	for (size_t shift = 0; shift < 8; shift++) {
		AQE_AUTO_BUF struct aqe_buf in = AQE_BUF_INIT(16384);
		AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(8192);
		size_t bad = 0;

		aqe_buf_add(&in, "xxxxxxxx", shift);
		for (size_t i = 0; i < 1000; i++)
			aqe_buf_puts(&in, CHARS[_i]);
		shim_refuse_text(in.p, &out);
		ck_assert_uint_le(out.len, SHIM_REFUSE_MAX);
		ck_assert(aqe_utf8_ok(out.p, out.len, &bad));
	}
}
END_TEST

START_TEST(record__is_one_json_object)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(8192);
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *doc = NULL;

	shim_refuse_record("a \"quoted\"\nline", false, 0, &b);
	ck_assert_int_eq(b.p[b.len - 1], '\n');
	ck_assert_ptr_eq(strchr(b.p, '\n'), b.p + b.len - 1);
	ck_assert_int_eq(aqe_json_parse(a, b.p, b.len, &AQE_JSON_LIMITS_DEFAULT, &doc, &e), 0);
	ck_assert_str_eq(aqe_json_str(aqe_json_get(doc, "level")), "error");
	ck_assert_str_eq(aqe_json_str(aqe_json_get(doc, "msg")), "a \"quoted\"\nline");
	ck_assert_str_eq(aqe_json_str(aqe_json_get(doc, "time")), "1970-01-01T00:00:00Z");
}
END_TEST

START_TEST(record__as_text)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(8192);

	shim_refuse_record("a \"b\"", true, 0, &b);
	ck_assert_str_eq(b.p, "level=error msg=\"a \\\"b\\\"\" time=\"1970-01-01T00:00:00Z\"\n");
}
END_TEST

static void read_all(const char *path, struct aqe_buf *b)
{
	struct aqe_err e = AQE_ERR_INIT;
	AQE_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(aqe_fs_read_fd(fd, b, &e), 0);
}

/* Stale content is gone (podman reads the whole file), a link is not followed, a closed stderr is
 * no error. */
START_TEST(refuse__writes_the_log_once)
{
	char dir[] = "/tmp/aqe-refuse-XXXXXX", path[64], link[64];
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(8192);
	struct shim_log log = { path, false };
	struct stat st;
	int fd;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/log", dir);
	(void)snprintf(link, sizeof(link), "%s/link", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	ck_assert_int_eq(write(fd, "stale line that is longer than what follows ............\n",
			       57),
			 57);
	(void)close(fd);
	(void)close(STDERR_FILENO);
	shim_refuse(&log, "first");
	shim_refuse(&log, "refused: No such file or directory");
	read_all(path, &b);
	ck_assert_ptr_nonnull(strstr(b.p, "\"msg\":\"refused: not found\""));
	ck_assert_ptr_null(strstr(b.p, "stale"));
	ck_assert_ptr_null(strstr(b.p, "first"));
	ck_assert_int_eq(symlink(path, link), 0);
	log.path = link;
	shim_refuse(&log, "through a link");
	aqe_buf_clear(&b);
	read_all(path, &b);
	ck_assert_ptr_null(strstr(b.p, "through"));
	ck_assert_int_eq(unlink(link), 0);
	ck_assert_int_eq(unlink(path), 0);
	log.path = path;
	shim_refuse(&log, "new");
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("shim/refuse");
	TCase *t = tcase_create("refuse");

	tcase_add_loop_test(t, text__is_rephrased, 0, (int)AQE_COUNT(TEXTS));
	tcase_add_test(t, text__has_a_limit);
	tcase_add_loop_test(t, text__is_cut_between_characters, 0, 3);
	tcase_add_test(t, record__is_one_json_object);
	tcase_add_test(t, record__as_text);
	tcase_add_test(t, refuse__writes_the_log_once);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
