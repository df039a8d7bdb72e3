/* SPDX-License-Identifier: MIT */
/* The store, and what the original's own tests pin (AL-01 to AL-30, in our terms). */
#include "audit/log.h"

#include "audit/emit.h"
#include "audit/import.h"
#include "audit/prune.h"
#include "audit/stats.h"
#include "shim/core/text.h"
#include "tests/unit/audit_fixture.h"

/* The original's fixture: four requests of two agents. */
static void add_four(void)
{
	struct audit_row r = audit_row_allowed("agent-1", "type-a", "example.com");

	r.response_ns = 100 * INT64_C(1000000);
	(void)add_row(r);
	r = audit_row_allowed("agent-1", "type-a", "example.org");
	r.response_ns = 200 * INT64_C(1000000);
	(void)add_row(r);
	(void)add_row(audit_row_blocked("agent-2", "type-a", "evil.test", "domain_not_allowed"));
	(void)add_row(audit_row_rate_limited("agent-3", "type-b", "example.com"));
}

struct got {
	int64_t seq[16];
	char domain[16][32];
	size_t n;
};

static int take(void *arg, const struct audit_row *r, struct aqe_err *e)
{
	struct got *g = arg;

	(void)e;
	ck_assert_uint_lt(g->n, 16);
	g->seq[g->n] = r->seq;
	(void)snprintf(g->domain[g->n++], 32, "%s", r->domain ? r->domain : "");
	return 0;
}

static struct got query(const struct audit_filter *f)
{
	struct got g = { .n = 0 };

	ck_assert_ok(audit_query(lg, f, take, &g, &err), err);
	return g;
}

/* AL-01, AL-02 */
START_TEST(open__is_empty_at_first)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	int64_t last = -1;

	ck_assert_uint_eq(count_all(), 0);
	ck_assert_uint_eq(query(&f).n, 0);
	ck_assert_ok(audit_last_seq(lg, &last, &err), err);
	ck_assert_int_eq(last, 0);
}
END_TEST

/* AL-03, AL-06, AL-07 */
START_TEST(append__gives_number_time_and_hash)
{
	static const uint8_t zeros[32];
	struct audit_row r = audit_row_allowed("agent-1", "type-a", "example.com");

	r.response_ns = 150 * INT64_C(1000000);
	r.status = 200;
	r = add_row(r);
	ck_assert_int_eq(r.seq, 1);
	ck_assert_int_gt(r.time_ns, INT64_C(1700000000) * 1000000000);
	ck_assert_int_gt(r.boot_ns, 0);
	ck_assert_int_ne(memcmp(r.hash, zeros, 32), 0);
	ck_assert_int_eq(r.kind, AUDIT_REQUEST);
	ck_assert_int_eq(r.action, AUDIT_ALLOWED);
	ck_assert_str_eq(r.agent_id, "agent-1");
	ck_assert_str_eq(r.agent_type, "type-a");
	ck_assert_str_eq(r.domain, "example.com");
	ck_assert_int_eq(r.status, 200);
	ck_assert_int_eq(r.response_ns, 150 * INT64_C(1000000));
	ck_assert_int_eq(r.port, AUDIT_NONE);
}
END_TEST

/* AL-08, AL-09 */
START_TEST(shortcuts__keep_the_reason)
{
	struct audit_row r = audit_row_blocked("a", "t", "d", "Domain not in whitelist");

	ck_assert_int_eq(r.action, AUDIT_BLOCKED);
	ck_assert_str_eq(r.reason, "Domain not in whitelist");
	r = audit_row_rate_limited("a", "t", "d");
	ck_assert_int_eq(r.action, AUDIT_RATE_LIMITED);
	ck_assert_str_eq(r.reason, "Rate limit exceeded");
}
END_TEST

/* AL-04 */
START_TEST(append__counts)
{
	for (unsigned i = 1; i <= 5; i++) {
		ck_assert_int_eq(add_row(full_row(i)).seq, i);
		ck_assert_uint_eq(count_all(), i);
	}
}
END_TEST

/* AL-05 and AL-27: what the original does by itself is `prune` here. */
START_TEST(prune__keeps_the_newest)
{
	struct audit_prune_opts o = AUDIT_PRUNE_INIT;
	struct audit_prune_result r;
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct got g;

	make_key();
	add_four();
	o.max_rows = 3;
	ck_assert_ok(audit_prune(lg, &o, &r, &err), err);
	ck_assert_uint_eq(r.rows, 2);
	g = query(&f);
	ck_assert_uint_eq(g.n, 3);
	ck_assert_int_eq(g.seq[0], 3);
	ck_assert_int_eq(g.seq[2], 5); /* the prune itself */
	o.max_rows = 0;
	ck_assert_ok(audit_prune(lg, &o, &r, &err), err);
	ck_assert_uint_eq(count_all(), 1);
}
END_TEST

/* AL-10 to AL-18 */
static const struct {
	struct audit_filter f;
	size_t n;
	int64_t seq[4];
} QUERIES[] = {
#define F(most, ...)                                                                             \
	{                                                                                        \
		.until_ns = INT64_MAX, .limit = (most), .order = AUDIT_OLDEST_FIRST, __VA_ARGS__ \
	}
	{ F(UINT64_MAX, .since_ns = 0), 4, { 1, 2, 3, 4 } },
	{ F(UINT64_MAX, .agent_id = "agent-1"), 2, { 1, 2 } },
	{ F(UINT64_MAX, .agent_type = "type-a"), 3, { 1, 2, 3 } },
	{ F(UINT64_MAX, .domain = "example.com"), 2, { 1, 4 } },
	{ F(UINT64_MAX, .action = AUDIT_ALLOWED), 2, { 1, 2 } },
	{ F(UINT64_MAX, .kind = AUDIT_REQUEST), 4, { 1, 2, 3, 4 } },
	{ F(UINT64_MAX, .kind = AUDIT_START), 0, { 0 } },
	{ F(2, .offset = 0), 2, { 1, 2 } },
	{ F(UINT64_MAX, .offset = 2), 2, { 3, 4 } },
	{ F(2, .offset = 1), 2, { 2, 3 } },
	{ F(UINT64_MAX, .offset = 9), 0, { 0 } },
	{ F(0, .offset = 0), 0, { 0 } },
	{ F(UINT64_MAX, .agent_type = "type-a", .action = AUDIT_ALLOWED, .domain = "example.org"),
	  1,
	  { 2 } },
	{ F(UINT64_MAX, .agent_type = "type-b", .action = AUDIT_ALLOWED), 0, { 0 } },
	{ F(UINT64_MAX, .domain = "EXAMPLE.com"), 0, { 0 } }, /* exact text */
	{ F(UINT64_MAX, .domain = ""), 0, { 0 } },
	{ F(UINT64_MAX, .domain = "' OR 1 --"), 0, { 0 } },
	{ F(UINT64_MAX, .container = "none"), 0, { 0 } },
	{ F(UINT64_MAX, .after_seq = 3), 1, { 4 } },
	{ F(UINT64_MAX, .after_seq = 1, .until_seq = 3), 2, { 2, 3 } },
	{ F(UINT64_MAX, .until_seq = 1), 1, { 1 } },
#undef F
};

START_TEST(query__filters)
{
	struct got g;

	add_four();
	g = query(&QUERIES[_i].f);
	ck_assert_uint_eq(g.n, QUERIES[_i].n);
	for (size_t i = 0; i < g.n; i++)
		ck_assert_int_eq(g.seq[i], QUERIES[_i].seq[i]);
}
END_TEST

/* AL-15: both ends belong to the span. */
START_TEST(query__span_is_inclusive)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct audit_row r;

	for (unsigned i = 1; i <= 4; i++) {
		r = full_row(i);
		r.time_ns = 1000 * (int64_t)i;
		(void)add_row(r);
	}
	f.since_ns = 2000;
	f.until_ns = 3000;
	ck_assert_uint_eq(query(&f).n, 2);
	f.since_ns = 2001;
	f.until_ns = 2999;
	ck_assert_uint_eq(query(&f).n, 0);
}
END_TEST

/* AL-25, AL-26 */
START_TEST(query__recent)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct got g;

	f.order = AUDIT_RECENT;
	f.limit = 3;
	add_rows(1);
	ck_assert_uint_eq(query(&f).n, 1);
	add_rows(4);
	g = query(&f);
	ck_assert_uint_eq(g.n, 3);
	ck_assert_int_eq(g.seq[0], 3);
	ck_assert_int_eq(g.seq[2], 5);
	f.order = AUDIT_NEWEST_FIRST;
	g = query(&f);
	ck_assert_int_eq(g.seq[0], 5);
	ck_assert_int_eq(g.seq[2], 3);
}
END_TEST

/* A row that was recorded with an older time stands by its time, and by its number. */
START_TEST(query__orders_by_time_or_number)
{
	static const int64_t TIMES[] = { 3000, 1000, 2000, 2000 };
	static const int64_t BY_TIME[] = { 2, 3, 4, 1 };
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct audit_row r;
	struct got g;

	for (size_t i = 0; i < 4; i++) {
		r = full_row(1);
		r.time_ns = TIMES[i];
		ck_assert_int_eq(add_row(r).boot_ns, AUDIT_NONE);
	}
	g = query(&f);
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(g.seq[i], BY_TIME[i]);
	f.order = AUDIT_BY_SEQ;
	g = query(&f);
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(g.seq[i], (int64_t)i + 1);
}
END_TEST

static int stop_at_two(void *arg, const struct audit_row *r, struct aqe_err *e)
{
	(void)arg;
	return r->seq == 2 ? aqe_err_set(e, AQE_E_REFUSED, 0, "enough") : 0;
}

START_TEST(query__stops_when_told)
{
	struct audit_filter f = AUDIT_FILTER_INIT;

	add_rows(4);
	ck_assert_fault(audit_query(lg, &f, stop_at_two, NULL, &err), AQE_E_REFUSED, err, "enough");
}
END_TEST

/* AL-19 to AL-24 */
START_TEST(stats__count_requests)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct audit_stats s;

	add_four();
	ck_assert_ok(audit_stats(lg, &f, a, &s, &err), err);
	ck_assert_uint_eq(s.requests, 4);
	ck_assert_uint_eq(s.allowed, 2);
	ck_assert_uint_eq(s.blocked, 1);
	ck_assert_uint_eq(s.rate_limited, 1);
	ck_assert_uint_eq(s.domains.n, 3);
	ck_assert_str_eq(s.domains.v[0].name, "example.com");
	ck_assert_uint_eq(s.domains.v[0].total, 2);
	ck_assert_uint_eq(s.domains.v[1].total, 1);
	ck_assert_uint_eq(s.domains.v[2].total, 1);
	ck_assert_uint_eq(s.agent_types.n, 2);
	ck_assert_str_eq(s.agent_types.v[0].name, "type-a");
	ck_assert_uint_eq(s.agent_types.v[0].total, 3);
	ck_assert_uint_eq(s.agent_types.v[0].by_action[AUDIT_BLOCKED], 1);
	ck_assert_uint_eq(s.timed, 2);
	ck_assert_int_eq(s.mean_ns, 150 * INT64_C(1000000));
	f.since_ns = INT64_MAX - 1;
	ck_assert_ok(audit_stats(lg, &f, a, &s, &err), err);
	ck_assert_uint_eq(s.total, 0);
	ck_assert_int_eq(s.mean_ns, 0);
}
END_TEST

static int to_file(void *arg, const void *p, size_t n, struct aqe_err *e)
{
	return aqe_fs_write_all(*(int *)arg, p, n, e);
}

/* AL-28 */
START_TEST(import__of_an_export)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct audit_opts other = { .mode = AUDIT_WRITE };
	char dir[200], path[200];
	uint64_t n = 0;
	int fd;

	(void)add_row(audit_row_allowed("agent-1", "type-a", "example.com"));
	(void)add_row(audit_row_blocked("agent-2", "type-b", "evil.test", "no"));
	full("old.jsonl", path);
	full("other", dir);
	other.dir = dir;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_ok(audit_export(lg, &f, AUDIT_JSONL, &(struct audit_sink){ to_file, &fd }, NULL,
				  &err),
		     err);
	(void)close(fd);
	audit_close(lg);
	lg = NULL;
	ck_assert_ok(audit_open(&other, &lg, &err), err);
	ck_assert_ok(audit_import(lg, path, &n, &err), err);
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(count_all(), 2);
}
END_TEST

/* AL-29 */
START_TEST(import__of_a_missing_file)
{
	char path[200];
	uint64_t n = 7;

	full("none", path);
	ck_assert_ok(audit_import(lg, path, &n, &err), err);
	ck_assert_uint_eq(n, 0);
}
END_TEST

/* AL-30 */
START_TEST(open__finds_what_was_stored)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct got g;

	(void)add_row(audit_row_allowed("agent-1", "type-a", "example.com"));
	open_again(AUDIT_READ);
	g = query(&f);
	ck_assert_uint_eq(g.n, 1);
	ck_assert_str_eq(g.domain[0], "example.com");
}
END_TEST

/* ---- what a row may be ---- */

static int same(void *arg, const struct audit_row *r, struct aqe_err *e)
{
	(void)e;
	ck_assert(audit_row_equal(arg, r));
	return 0;
}

START_TEST(append__keeps_every_field)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct audit_row r = add_row(full_row(1));

	r.meta = "{\"n\":1,\"note\":\"r\\u00071\"}";
	ck_assert_ok(audit_query(lg, &f, same, &r, &err), err);
}
END_TEST

START_TEST(append__brings_meta_into_form)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct audit_row r = AUDIT_ROW_INIT(AUDIT_START, AUDIT_ALLOWED);

	r.meta = " { \"a\" : [ 1 , \"\\u0041\" ] } ";
	r = add_row(r);
	ck_assert_str_eq(r.meta, " { \"a\" : [ 1 , \"\\u0041\" ] } ");
	r.meta = "{\"a\":[1,\"A\"]}";
	ck_assert_ok(audit_query(lg, &f, same, &r, &err), err);
}
END_TEST

static const struct {
	int64_t port;
	const char *domain, *path, *meta;
	enum audit_kind kind;
	enum audit_action action;
	int code;
	const char *part;
} BAD[] = {
	{ -1, "\xff", NULL, NULL, AUDIT_REQUEST, AUDIT_ALLOWED, AQE_E_MALFORMED, "'domain'" },
	{ 65536, NULL, NULL, NULL, AUDIT_REQUEST, AUDIT_ALLOWED, AQE_E_LIMIT, "'port'" },
	{ -2, NULL, NULL, NULL, AUDIT_REQUEST, AUDIT_ALLOWED, AQE_E_LIMIT, "'port'" },
	{ -1, NULL, "/a?secret=1", NULL, AUDIT_REQUEST, AUDIT_ALLOWED, AQE_E_MALFORMED, "query" },
	{ -1, NULL, "/a#b", NULL, AUDIT_REQUEST, AUDIT_ALLOWED, AQE_E_MALFORMED, "query" },
	{ -1, NULL, NULL, "[]", AUDIT_REQUEST, AUDIT_ALLOWED, AQE_E_MALFORMED, "no object" },
	{ -1, NULL, NULL, "{", AUDIT_REQUEST, AUDIT_ALLOWED, AQE_E_MALFORMED, "'meta'" },
	{ -1, NULL, NULL, "{\"a\":1,\"a\":2}", AUDIT_REQUEST, AUDIT_ALLOWED, AQE_E_MALFORMED, "a" },
	{ -1, NULL, NULL, NULL, AUDIT_KIND_ANY, AUDIT_ALLOWED, AQE_E_LIMIT, "'kind'" },
	{ -1, NULL, NULL, NULL, AUDIT_KIND_COUNT, AUDIT_ALLOWED, AQE_E_LIMIT, "'kind'" },
	{ -1, NULL, NULL, NULL, AUDIT_START, AUDIT_ACTION_ANY, AQE_E_LIMIT, "'action'" },
	{ -1, NULL, NULL, NULL, AUDIT_START, AUDIT_BLOCKED, AQE_E_MALFORMED, "'blocked'" },
	{ -1, NULL, NULL, NULL, AUDIT_REQUEST, AUDIT_REFUSED, AQE_E_MALFORMED, "'refused'" },
};

START_TEST(append__refuses)
{
	struct audit_row r = AUDIT_ROW_INIT(BAD[_i].kind, BAD[_i].action);

	r.port = BAD[_i].port;
	r.domain = BAD[_i].domain;
	r.path = BAD[_i].path;
	r.meta = BAD[_i].meta;
	ck_assert_fault(audit_append(lg, &r, &err), BAD[_i].code, err, BAD[_i].part);
	ck_assert_uint_eq(count_all(), 0);
}
END_TEST

START_TEST(append__limits_of_texts)
{
	static char text[AUDIT_META_MAX + 2];

	for (size_t i = 0; i < AUDIT_FIELDS_COUNT; i++) {
		const struct audit_field *f = &AUDIT_FIELDS[i];
		struct audit_row r = AUDIT_ROW_INIT(AUDIT_REQUEST, AUDIT_ALLOWED);

		if (f->type != AUDIT_FIELD_TEXT)
			continue;
		memset(text, 'x', (size_t)f->max);
		text[f->max] = '\0';
		audit_field_set_text(&r, f, text);
		ck_assert_ok(audit_append(lg, &r, &err), err);
		memcpy(text + f->max, "x", 2);
		r.time_ns = 0;
		ck_assert_fault(audit_append(lg, &r, &err), AQE_E_LIMIT, err, f->name);
	}
}
END_TEST

START_TEST(append_many__is_all_or_nothing)
{
	struct audit_row rows[3] = { full_row(1), full_row(1), full_row(1) };

	ck_assert_ok(audit_append_many(lg, rows, 0, &err), err);
	ck_assert_ok(audit_append_many(lg, rows, 3, &err), err);
	ck_assert_int_eq(rows[2].seq, 3);
	rows[2].port = 70000;
	ck_assert_fault(audit_append_many(lg, rows, 3, &err), AQE_E_LIMIT, err, "port");
	ck_assert_uint_eq(count_all(), 3);
	ck_assert_fault(audit_append_many(lg, rows, AUDIT_BATCH_MAX + 1, &err), AQE_E_LIMIT, err,
			"at once");
}
END_TEST

START_TEST(append__not_when_reading)
{
	struct audit_row r = full_row(1);

	open_again(AUDIT_READ);
	ck_assert_fault(audit_append(lg, &r, &err), AQE_E_INTERNAL, err, "reading");
}
END_TEST

START_TEST(record__opens_and_closes)
{
	struct audit_row r = full_row(1);

	ck_assert_ok(audit_record(&opts, &r, 1, &err), err);
	ck_assert_int_eq(r.seq, 1);
	ck_assert_ok(audit_record(&opts, &r, 1, NULL), err);
	ck_assert_int_eq(r.seq, 2);
	ck_assert_uint_eq(count_all(), 2);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("audit_log");
	TCase *t = tcase_create("log");

	tcase_add_checked_fixture(t, setup_log, teardown_log);
	tcase_add_test(t, open__is_empty_at_first);
	tcase_add_test(t, append__gives_number_time_and_hash);
	tcase_add_test(t, shortcuts__keep_the_reason);
	tcase_add_test(t, append__counts);
	tcase_add_test(t, prune__keeps_the_newest);
	tcase_add_loop_test(t, query__filters, 0, AQE_COUNT(QUERIES));
	tcase_add_test(t, query__span_is_inclusive);
	tcase_add_test(t, query__recent);
	tcase_add_test(t, query__orders_by_time_or_number);
	tcase_add_test(t, query__stops_when_told);
	tcase_add_test(t, stats__count_requests);
	tcase_add_test(t, import__of_an_export);
	tcase_add_test(t, import__of_a_missing_file);
	tcase_add_test(t, open__finds_what_was_stored);
	tcase_add_test(t, append__keeps_every_field);
	tcase_add_test(t, append__brings_meta_into_form);
	tcase_add_loop_test(t, append__refuses, 0, AQE_COUNT(BAD));
	tcase_add_test(t, append__limits_of_texts);
	tcase_add_test(t, append_many__is_all_or_nothing);
	tcase_add_test(t, append__not_when_reading);
	tcase_add_test(t, record__opens_and_closes);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
