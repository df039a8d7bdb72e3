/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/sandbox/logs.h"
#include "tests/unit/unit.h"

static char place[] = "/tmp/aqe-logs-XXXXXX";
static int dir = -1;
static struct shim_log_writer *w;

static char seen[1 << 16];
static size_t seen_len;

static int keep(void *arg, const struct shim_log_record *r)
{
	(void)arg;
	if (seen_len + r->len + 4 > sizeof(seen))
		return 1;
	seen[seen_len++] = r->stream == SHIM_STDERR ? 'e' : 'o';
	memcpy(seen + seen_len, r->text, r->len);
	seen_len += r->len;
	seen[seen_len++] = r->partial ? '+' : '\n';
	seen[seen_len] = '\0';
	return 0;
}

static void setup(void)
{
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ptr_nonnull(mkdtemp(place));
	dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	w = calloc(1, sizeof(*w));
	ck_assert_ok(shim_log_open(w, dir, &e), e);
	seen_len = 0;
	seen[0] = '\0';
}
static void teardown(void)
{
	int parent = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	shim_log_close(w);
	free(w);
	(void)!aqe_fs_remove_tree(parent, strrchr(place, '/') + 1, NULL);
	(void)close(parent);
	(void)close(dir);
}

static void take(enum shim_stream stream, const char *text)
{
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(shim_log_take(w, stream, text, strlen(text), &e), e);
}
static void read_all(int64_t since_ns, int64_t tail, struct shim_log_cursor *at)
{
	struct shim_log_query q = { since_ns, tail };
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(shim_log_read(dir, SHIM_LOG_NAMES, SHIM_LOG_FILES, &q, keep, NULL, at, &e), e);
}

START_TEST(writer__lines_and_parts)
{
	take(SHIM_STDOUT, "one\ntwo\nth");
	take(SHIM_STDERR, "oops\n");
	take(SHIM_STDOUT, "ree\n\n");
	take(SHIM_STDOUT, "unfinished");
	shim_log_close(w);
	read_all(0, -1, NULL);
	ck_assert_str_eq(seen, "oone\notwo\neoops\nothree\no\nounfinished+");
}
END_TEST

START_TEST(reader__tail_and_since)
{
	take(SHIM_STDOUT, "1\n2\n3\n4\n5\n");
	read_all(0, 2, NULL);
	ck_assert_str_eq(seen, "o4\no5\n");
	seen_len = 0;
	seen[0] = '\0';
	read_all(0, 0, NULL);
	read_all(INT64_MAX - 1, -1, NULL);
	ck_assert_str_eq(seen, "");
	read_all(1, 99, NULL);
	ck_assert_str_eq(seen, "o1\no2\no3\no4\no5\n");
}
END_TEST

START_TEST(writer__a_long_line_is_parts_of_one)
{
	static char line[SHIM_LOG_LINE_MAX * 2 + 11];

	memset(line, 'x', sizeof(line) - 2);
	line[sizeof(line) - 2] = '\n';
	take(SHIM_STDOUT, line);
	read_all(0, -1, NULL);
	ck_assert_uint_eq(seen_len, sizeof(line) - 2 + 3 * 2);
	ck_assert_int_eq(seen[SHIM_LOG_LINE_MAX + 1], '+');
	ck_assert_int_eq(seen[seen_len - 1], '\n');
}
END_TEST

START_TEST(writer__rotates_and_keeps_three)
{
	static char line[10001];
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_log_query q = { 0, 1 };
	struct stat st;
	int64_t total = 0;

	memset(line, 'y', sizeof(line) - 1);
	line[sizeof(line) - 2] = '\n';
	for (int i = 0; i < 4500; i++) /* 45 MB */
		ck_assert_ok(shim_log_take(w, SHIM_STDOUT, line, sizeof(line) - 1, &e), e);
	take(SHIM_STDOUT, "last\n");
	for (int i = 0; i < SHIM_LOG_FILES; i++) {
		ck_assert_int_eq(fstatat(dir, SHIM_LOG_NAMES[i], &st, 0), 0);
		ck_assert_int_le(st.st_size, SHIM_LOG_BYTES_MAX);
		total += st.st_size;
	}
	ck_assert_int_gt(total, 2 * SHIM_LOG_BYTES_MAX);
	ck_assert_int_ne(fstatat(dir, "log.3", &st, 0), 0);
	ck_assert_ok(shim_log_read(dir, SHIM_LOG_NAMES, SHIM_LOG_FILES, &q, keep, NULL, NULL, &e),
		     e);
	ck_assert_str_eq(seen, "olast\n");
}
END_TEST

START_TEST(more__follows_over_a_rotation)
{
	struct shim_log_cursor at;
	struct aqe_err e = AQE_ERR_INIT;

	take(SHIM_STDOUT, "a\n");
	read_all(0, -1, &at);
	take(SHIM_STDOUT, "b\n");
	ck_assert_ok(shim_log_more(dir, SHIM_LOG_NAMES, SHIM_LOG_FILES, &at, keep, NULL, &e), e);
	ck_assert_str_eq(seen, "oa\nob\n");
	take(SHIM_STDOUT, "c\n"); /* still in the old file when it is rotated */
	w->size = SHIM_LOG_BYTES_MAX;
	take(SHIM_STDOUT, "d\n");
	ck_assert_ok(shim_log_more(dir, SHIM_LOG_NAMES, SHIM_LOG_FILES, &at, keep, NULL, &e), e);
	ck_assert_str_eq(seen, "oa\nob\noc\nod\n");
	ck_assert_ok(shim_log_more(dir, SHIM_LOG_NAMES, SHIM_LOG_FILES, &at, keep, NULL, &e), e);
	ck_assert_str_eq(seen, "oa\nob\noc\nod\n");
}
END_TEST

/* ---- what engines write ---- */

#define T 1769903999

static const struct {
	const char *line;
	bool ok;
	enum shim_stream stream;
	bool partial;
	const char *text;
	int64_t time_ns;
} RECORDS[] = {
	{ "2026-01-31T23:59:59.123456789Z stdout F hello world", true, SHIM_STDOUT, false,
	  "hello world", T * 1000000000LL + 123456789 },
	{ "2026-02-01T00:59:59.5+01:00 stderr P part", true, SHIM_STDERR, true, "part",
	  T * 1000000000LL + 500000000 },
	{ "2026-01-31T18:59:59-05:00 stdout F x", true, SHIM_STDOUT, false, "x", T * 1000000000LL },
	{ "2026-01-31T23:59:59Z stdout F", true, SHIM_STDOUT, false, "", T * 1000000000LL },
	{ "2026-01-31T23:59:59Z stdout F ", true, SHIM_STDOUT, false, "", T * 1000000000LL },
	{ "{\"log\":\"a\\\"b\\n\",\"stream\":\"stderr\",\"time\":\"2026-01-31T23:59:59.5Z\"}", true,
	  SHIM_STDERR, false, "a\"b", T * 1000000000LL + 500000000 },
	{ "{\"log\":\"no end\",\"stream\":\"stdout\",\"time\":\"2026-01-31T23:59:59Z\"}", true,
	  SHIM_STDOUT, true, "no end", T * 1000000000LL },
	{ "", false, 0, false, NULL, 0 },
	{ "hello", false, 0, false, NULL, 0 },
	{ "2026-01-31T23:59:59Z stdin F x", false, 0, false, NULL, 0 },
	{ "2026-13-31T23:59:59Z stdout F x", false, 0, false, NULL, 0 },
	{ "2026-01-31T23:59:59Z stdout X x", false, 0, false, NULL, 0 },
	{ "{\"log\":1,\"stream\":\"stdout\"}", false, 0, false, NULL, 0 },
	{ "{\"log\":\"a\",\"stream\":\"else\"}", false, 0, false, NULL, 0 },
	{ "{\"log\":\"a\"", false, 0, false, NULL, 0 },
};

START_TEST(parse__records_of_engines)
{
	char scratch[512];
	struct shim_log_record r;

	ck_assert_int_eq(shim_log_parse(RECORDS[_i].line, strlen(RECORDS[_i].line), scratch, &r),
			 RECORDS[_i].ok);
	if (!RECORDS[_i].ok)
		return;
	ck_assert_int_eq(r.stream, RECORDS[_i].stream);
	ck_assert_int_eq(r.partial, RECORDS[_i].partial);
	ck_assert_int_eq(r.time_ns, RECORDS[_i].time_ns);
	ck_assert_uint_eq(r.len, strlen(RECORDS[_i].text));
	ck_assert_int_eq(memcmp(r.text, RECORDS[_i].text, r.len), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sandbox_logs");
	TCase *t = tcase_create("logs");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, writer__lines_and_parts);
	tcase_add_test(t, reader__tail_and_since);
	tcase_add_test(t, writer__a_long_line_is_parts_of_one);
	tcase_add_test(t, writer__rotates_and_keeps_three);
	tcase_add_test(t, more__follows_over_a_rotation);
	tcase_add_loop_test(t, parse__records_of_engines, 0, AQE_COUNT(RECORDS));
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
