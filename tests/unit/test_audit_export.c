/* SPDX-License-Identifier: MIT */
/* Exports, their offline verification, import. */
#include "audit/emit.h"

#include "audit/import.h"
#include "audit/prune.h"
#include "shim/core/text.h"
#include "tests/unit/audit_fixture.h"

static struct aqe_buf text = AQE_BUF_INIT((size_t)16 << 20);

static int to_text(void *arg, const void *p, size_t n, struct aqe_err *e)
{
	(void)arg;
	(void)e;
	return aqe_buf_add(&text, p, n);
}

static struct audit_export_result export_as(const struct audit_filter *f, enum audit_format format)
{
	struct audit_export_result r;

	aqe_buf_clear(&text);
	ck_assert_ok(audit_export(lg, f, format, &(struct audit_sink){ to_text, NULL }, &r, &err),
		     err);
	return r;
}

static void write_text(const char *p, size_t n)
{
	AQE_AUTO_FD int fd = openat(top, "x", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_ok(aqe_fs_write_all(fd, p, n, &err), err);
}

static struct audit_verdict judge_text(const char *p, size_t n)
{
	struct audit_verdict v;
	int fd;

	write_text(p, n);
	fd = openat(top, "x", O_RDONLY | O_CLOEXEC);
	ck_assert_ok(audit_verify_export(fd, &given, &v, &err), err);
	(void)close(fd);
	return v;
}

static struct audit_verdict judge_export(void)
{
	return judge_text(aqe_buf_str(&text), text.len);
}

static const struct audit_filter ALL = AUDIT_FILTER_INIT;

/* ---- good exports ---- */

START_TEST(export__empty)
{
	struct audit_export_result r = export_as(&ALL, AUDIT_JSONL);

	ck_assert_uint_eq(r.rows, 0);
	ck_assert(!r.is_signed);
	ck_assert_good(judge_export());
}
END_TEST

START_TEST(export__signed)
{
	struct audit_export_result r;
	struct audit_point head;
	struct audit_verdict v;

	opts.sign_every = 4;
	open_again(AUDIT_WRITE);
	make_key();
	add_rows(10);
	r = export_as(&ALL, AUDIT_JSONL);
	ck_assert_uint_eq(r.rows, 10);
	ck_assert_uint_eq(r.points, 3);
	ck_assert_int_eq(r.last_seq, 10);
	ck_assert(r.is_signed);
	v = judge_export();
	ck_assert_good(v);
	ck_assert_uint_eq(v.rows, 10);
	ck_assert_int_eq(v.signed_to, 10);
	ck_assert_uint_eq(v.open, AUDIT_OPEN_NO_ANCHOR);
	ck_assert_ok(audit_head(lg, &head, &err), err);
	given.anchors = &head;
	given.n_anchors = 1;
	ck_assert_uint_eq(judge_export().open, 0);
	given_keys[0][0] ^= 1;
	ck_assert_fault_of(judge_export(), AUDIT_FAULT_SIGNATURE, 1);
}
END_TEST

START_TEST(export__of_a_span)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct audit_verdict v;

	make_key();
	for (unsigned i = 1; i <= 9; i++) {
		struct audit_row r = full_row(i);

		/* the clock was set back once: row 5 is outside of the span, and in the export */
		r.time_ns = i == 5 ? 500 : 1000 * (int64_t)i;
		(void)add_row(r);
	}
	f.since_ns = 3000;
	f.until_ns = 7000;
	ck_assert_uint_eq(export_as(&f, AUDIT_JSONL).rows, 5);
	v = judge_export();
	ck_assert_good(v);
	ck_assert_int_eq(v.first_seq, 3);
	ck_assert_int_eq(v.last_seq, 7);
	ck_assert_uint_eq(v.open & (AUDIT_OPEN_FILTERED | AUDIT_OPEN_PRUNED), AUDIT_OPEN_PRUNED);
	f.limit = 2;
	f.offset = 1;
	ck_assert_uint_eq(export_as(&f, AUDIT_JSONL).rows, 2);
	v = judge_export();
	ck_assert_good(v);
	ck_assert_int_eq(v.first_seq, 4);
	f.since_ns = 900000;
	f.until_ns = INT64_MAX;
	ck_assert_uint_eq(export_as(&f, AUDIT_JSONL).rows, 0);
	ck_assert_good(judge_export());
}
END_TEST

START_TEST(export__filtered)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct audit_verdict v;

	make_key();
	add_rows(20);
	f.domain = "api3.example.com";
	ck_assert_uint_eq(export_as(&f, AUDIT_JSONL).rows, 3);
	v = judge_export();
	ck_assert_good(v);
	ck_assert_uint_eq(v.open & AUDIT_OPEN_FILTERED, AUDIT_OPEN_FILTERED);
	f.domain = "none";
	ck_assert_uint_eq(export_as(&f, AUDIT_JSONL).rows, 0);
	ck_assert_good(judge_export());
}
END_TEST

START_TEST(export__after_prune)
{
	struct audit_prune_opts o = AUDIT_PRUNE_INIT;
	struct audit_prune_result pr;
	struct audit_verdict v;

	make_key();
	add_rows(10);
	o.max_rows = _i ? 0 : 4;
	ck_assert_ok(audit_prune(lg, &o, &pr, &err), err);
	(void)export_as(&ALL, AUDIT_JSONL);
	v = judge_export();
	ck_assert_good(v);
	ck_assert_uint_eq(v.rows, _i ? 1 : 4); /* the one about it */
	ck_assert_uint_eq(v.open & AUDIT_OPEN_PRUNED, AUDIT_OPEN_PRUNED);
}
END_TEST

/* One document that anything can read. */
START_TEST(export__json)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 24);
	struct aqe_json *v = NULL;
	uint64_t n = 0;

	make_key();
	add_rows(_i ? 10 : 0);
	(void)export_as(&ALL, AUDIT_JSON);
	ck_assert_ok(aqe_json_parse(a, text.p, text.len, &AQE_JSON_LIMITS_DEFAULT, &v, &err), err);
	ck_assert_uint_eq(aqe_json_get(v, "rows")->len, _i ? 10 : 0);
	ck_assert_uint_eq(aqe_json_get(v, "points")->len, 1);
	ck_assert_int_eq(aqe_json_get_u64(aqe_json_get(v, "header"), "rows", 99, &n, &err), 1);
	ck_assert_uint_eq(n, _i ? 10 : 0);
	ck_assert_ptr_nonnull(aqe_json_get(aqe_json_get(v, "trailer"), "sig"));
}
END_TEST

static size_t count_of(const char *what)
{
	size_t n = 0;

	for (const char *p = aqe_buf_str(&text); (p = strstr(p, what)) != NULL; p += strlen(what))
		n++;
	return n;
}

START_TEST(export__lines)
{
	add_rows(10);
	ck_assert_uint_eq(export_as(&ALL, AUDIT_CSV).rows, 10);
	ck_assert_uint_eq(count_of("\r\n"), 11);
	ck_assert_uint_eq(export_as(&ALL, AUDIT_OCSF).rows, 10);
	ck_assert_uint_eq(count_of("\n"), 10);
	ck_assert_uint_eq(count_of("\"class_uid\":"), 10);
}
END_TEST

static int fails(void *arg, const void *p, size_t n, struct aqe_err *e)
{
	(void)arg;
	(void)p;
	(void)n;
	return aqe_err_set(e, AQE_E_SYS, ENOSPC, "write");
}

START_TEST(export__writer_fails)
{
	add_rows(2);
	ck_assert_fault(audit_export(lg, &ALL, (enum audit_format)_i,
				     &(struct audit_sink){ fails, NULL }, NULL, &err),
			AQE_E_SYS, err, "write");
}
END_TEST

/* ---- bad exports ---- */

/* Every line away, doubled, or out of order; every byte of it changed. */
START_TEST(verify_export__line_by_line)
{
	AQE_AUTO_FREE char *bad = NULL;
	const char *lines[32];
	size_t n = 0, at;

	opts.sign_every = 3;
	open_again(AUDIT_WRITE);
	make_key();
	add_rows(7);
	(void)export_as(&ALL, AUDIT_JSONL);
	ck_assert_good(judge_export());
	bad = malloc(2 * text.len);
	ck_assert_ptr_nonnull(bad);
	for (char *p = text.p; *p && n < 32; p = strchr(p, '\n') + 1)
		lines[n++] = p;
	lines[n] = text.p + text.len;
	for (size_t i = 0; i < n; i++) {
		for (unsigned how = 0; how < 3; how++) {
			at = 0;
			for (size_t k = 0; k < n; k++) {
				size_t from = how == 2 && k == i             ? (k + 1) % n
					      : how == 2 && k == (i + 1) % n ? i
									     : k;
				size_t len = (size_t)(lines[from + 1] - lines[from]);
				unsigned times = how == 2 || k != i ? 1 : how == 0 ? 0 : 2;

				for (unsigned c = 0; c < times; c++, at += len)
					memcpy(bad + at, lines[from], len);
			}
			ck_assert_msg(judge_text(bad, at).fault != AUDIT_FAULT_NONE,
				      "line %zu how %u", i, how);
		}
	}
}
END_TEST

START_TEST(verify_export__every_byte)
{
	struct audit_verdict v;

	make_key();
	add_rows(2);
	(void)export_as(&ALL, AUDIT_JSONL);
	for (size_t i = 0; i < text.len; i++) {
		text.p[i] ^= (char)(1 << (i % 7));
		v = judge_export();
		ck_assert_msg(v.fault != AUDIT_FAULT_NONE, "byte %zu", i);
		text.p[i] ^= (char)(1 << (i % 7));
	}
	for (size_t i = 0; i < text.len; i += 3)
		ck_assert_msg(judge_text(text.p, i).fault != AUDIT_FAULT_NONE, "cut at %zu", i);
	ck_assert_good(judge_export());
}
END_TEST

static const char *const JUNK[] = {
	"",
	"\n",
	"hello\n",
	"{}\n",
	"[]\n",
	"{\"aqe_audit_export\":2}\n",
	"{\"aqe_audit_export\":1}\n",
	"{\"aqe_audit_trailer\":1}\n",
};

START_TEST(verify_export__junk)
{
	ck_assert_int_eq(judge_text(JUNK[_i], strlen(JUNK[_i])).fault, AUDIT_FAULT_EXPORT);
}
END_TEST

START_TEST(verify_export__long_line)
{
	AQE_AUTO_FREE char *line = malloc(300 * 1024);

	memset(line, ' ', 300 * 1024);
	line[300 * 1024 - 1] = '\n';
	ck_assert_int_eq(judge_text(line, 300 * 1024).fault, AUDIT_FAULT_EXPORT);
}
END_TEST

/* ---- import ---- */

static const char OLD[] =
	"[\n  {\"id\": \"5b0e\", \"timestamp\": \"2026-01-31T10:00:00.250Z\", \"agentId\": "
	"\"a-1\",\n"
	"   \"agentType\": \"qe-test-generator\", \"domain\": \"api.anthropic.com\", \"action\": "
	"\"allowed\",\n   \"url\": \"https://api.anthropic.com/v1?key=secret\", \"requestMethod\": "
	"\"POST\",\n   \"requestPath\": \"/v1/messages?key=secret\", \"responseStatus\": 200,\n   "
	"\"responseTimeMs\": 150.5, \"requestSizeBytes\": 10, \"responseSizeBytes\": 20,\n   "
	"\"metadata\": {\"x\": [1]}},\n"
	"  {\"id\": \"5b0f\", \"timestamp\": 1769853600250, \"agentId\": \"a-2\", \"agentType\": "
	"\"default\",\n   \"domain\": \"evil.test\", \"action\": \"blocked\", \"reason\": "
	"\"domain_not_allowed\"}\n]\n";

static int take_old(void *arg, const struct audit_row *r, struct aqe_err *e)
{
	unsigned *n = arg;

	(void)e;
	ck_assert_int_eq(r->time_ns, INT64_C(1769853600250) * 1000000);
	ck_assert_int_eq(r->boot_ns, AUDIT_NONE);
	ck_assert_int_eq(r->kind, AUDIT_REQUEST);
	ck_assert_ptr_null(strstr(r->meta, "secret"));
	ck_assert_ptr_nonnull(strstr(r->meta, "\"imported\":{\"file\":\"sha256:"));
	if ((*n)++ == 0) {
		ck_assert_str_eq(r->path, "/v1/messages");
		ck_assert_str_eq(r->method, "POST");
		ck_assert_int_eq(r->response_ns, 150500000);
		ck_assert_int_eq(r->bytes_out, 10);
		ck_assert_int_eq(r->bytes_in, 20);
		ck_assert_ptr_nonnull(strstr(r->meta, "\"metadata\":{\"x\":[1]}"));
	} else {
		ck_assert_int_eq(r->action, AUDIT_BLOCKED);
		ck_assert_str_eq(r->reason, "domain_not_allowed");
		ck_assert_int_eq(r->response_ns, AUDIT_NONE);
	}
	return 0;
}

START_TEST(import__of_the_original)
{
	char path[200];
	unsigned seen = 0;
	uint64_t n = 0;

	write_text(OLD, strlen(OLD));
	full("x", path);
	ck_assert_ok(audit_import(lg, path, &n, &err), err);
	ck_assert_uint_eq(n, 2);
	ck_assert_ok(audit_query(lg, &ALL, take_old, &seen, &err), err);
	ck_assert_uint_eq(seen, 2);
	ck_assert_good(judge());
}
END_TEST

static const struct {
	const char *text;
	int code;
} BAD_OLD[] = {
	{ "[{}]", AQE_E_MALFORMED },
	{ "[1]", AQE_E_MALFORMED },
	{ "{\"a\":1}\n", AQE_E_REFUSED },
	{ "", AQE_E_REFUSED },
	{ "[{\"timestamp\":\"2026-01-31T10:00:00.250Z\",\"action\":\"permitted\"}]",
	  AQE_E_MALFORMED },
	{ "[{\"timestamp\":\"yesterday\",\"action\":\"allowed\"}]", AQE_E_MALFORMED },
	{ "[{\"timestamp\":\"2026-01-31T10:00:00.250Z\",\"action\":\"allowed\",\"agentId\":7}]",
	  AQE_E_MALFORMED },
	{ "[{\"timestamp\":\"2026-01-31T10:00:00.250Z\",\"action\":\"allowed\"},"
	  "{\"timestamp\":\"2026-01-31T10:00:00.250Z\",\"action\":\"allowed\",\"responseTimeMs\":-"
	  "1}]",
	  AQE_E_MALFORMED },
};

START_TEST(import__refuses_whole)
{
	char path[200];
	uint64_t n = 0;

	write_text(BAD_OLD[_i].text, strlen(BAD_OLD[_i].text));
	full("x", path);
	ck_assert_fault(audit_import(lg, path, &n, &err), BAD_OLD[_i].code, err, "import");
	ck_assert_uint_eq(count_all(), 0);
}
END_TEST

START_TEST(import__of_ours)
{
	char path[200];
	uint64_t n = 0;

	make_key();
	add_rows(2500);
	(void)export_as(&ALL, AUDIT_JSONL);
	write_text(text.p, text.len);
	full("x", path);
	ck_assert_ok(audit_import(lg, path, &n, &err), err);
	ck_assert_uint_eq(n, 2500);
	ck_assert_uint_eq(count_all(), 5000);
	ck_assert_good(judge());
	text.p[text.len / 2] ^= 1;
	write_text(text.p, text.len);
	ck_assert_fault(audit_import(lg, path, &n, &err), AQE_E_REFUSED, err, "does not verify");
	ck_assert_uint_eq(count_all(), 5000);
}
END_TEST

static void setup_judge(void)
{
	setup_log();
	memset(&given, 0, sizeof(given));
	given.keys = (const uint8_t(*)[32])given_keys;
	opts.flags = AUDIT_NO_FLUSH;
	open_again(AUDIT_WRITE);
}

static void teardown_judge(void)
{
	aqe_buf_done(&text);
	teardown_log();
}

int main(void)
{
	Suite *s = suite_create("audit_export");
	TCase *t = tcase_create("export");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup_judge, teardown_judge);
	tcase_add_test(t, export__empty);
	tcase_add_test(t, export__signed);
	tcase_add_test(t, export__of_a_span);
	tcase_add_test(t, export__filtered);
	tcase_add_loop_test(t, export__after_prune, 0, 2);
	tcase_add_loop_test(t, export__json, 0, 2);
	tcase_add_test(t, export__lines);
	tcase_add_loop_test(t, export__writer_fails, 0, AUDIT_FORMAT_COUNT);
	tcase_add_test(t, verify_export__line_by_line);
	tcase_add_test(t, verify_export__every_byte);
	tcase_add_loop_test(t, verify_export__junk, 0, AQE_COUNT(JUNK));
	tcase_add_test(t, verify_export__long_line);
	tcase_add_test(t, import__of_the_original);
	tcase_add_loop_test(t, import__refuses_whole, 0, AQE_COUNT(BAD_OLD));
	tcase_add_test(t, import__of_ours);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
