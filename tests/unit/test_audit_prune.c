/* SPDX-License-Identifier: MIT */
#include "audit/prune.h"

#include "audit/query.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "tests/unit/audit_fixture.h"
#include "tests/unit/audit_tamper.h"

static struct audit_prune_result prune(struct audit_prune_opts o)
{
	struct audit_prune_result r;

	ck_assert_ok(audit_prune(lg, &o, &r, &err), err);
	return r;
}

static void add_timed(unsigned n)
{
	for (unsigned i = 1; i <= n; i++) {
		struct audit_row r = full_row(i);

		r.time_ns = 1000 * (int64_t)i;
		(void)add_row(r);
	}
}

START_TEST(prune__needs_the_key)
{
	struct audit_prune_opts o = AUDIT_PRUNE_INIT;
	struct audit_prune_result r;

	add_rows(3);
	o.max_rows = 1;
	ck_assert_fault(audit_prune(lg, &o, &r, &err), AQE_E_ABSENT, err, "signing key");
	ck_assert_uint_eq(count_all(), 3);
}
END_TEST

/* The newest row about a prune; its texts stay until the next call. */
struct told {
	uint64_t n; /* rows about prunes there are */
	struct audit_row row;
	int64_t from, to, rows;
};

static int take_told(void *arg, const struct audit_row *r, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 16);
	static char meta[AUDIT_META_MAX + 1], rule[AUDIT_ID_MAX + 1];
	struct aqe_json *v = NULL;
	struct told *t = arg;

	if (!r->reason || strcmp(r->reason, AUDIT_REASON_PRUNE) != 0)
		return 0;
	t->n++;
	t->row = *r;
	(void)snprintf(meta, sizeof(meta), "%s", r->meta);
	(void)snprintf(rule, sizeof(rule), "%s", r->rule);
	t->row.meta = meta;
	t->row.rule = rule;
	ck_assert_ok(aqe_json_parse(a, meta, strlen(meta), &AQE_JSON_LIMITS_DEFAULT, &v, e), *e);
	ck_assert_int_eq(aqe_json_get_i64(v, "from", 1, INT64_MAX, &t->from, e), 1);
	ck_assert_int_eq(aqe_json_get_i64(v, "to", 1, INT64_MAX, &t->to, e), 1);
	ck_assert_int_eq(aqe_json_get_i64(v, "rows", 1, INT64_MAX, &t->rows, e), 1);
	return 0;
}

static struct told told(void)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct told t = { .n = 0 };

	f.kind = AUDIT_SYSTEM;
	ck_assert_ok(audit_query(lg, &f, take_told, &t, &err), err);
	return t;
}

static const struct {
	int64_t before_ns;
	uint64_t max_rows, removed; /* of ten; one is added */
	const char *rule, *limits;
} LIMITS[] = {
	{ 0, UINT64_MAX, 0, NULL, NULL },
	{ 0, 10, 0, NULL, NULL },
	{ 0, 11, 0, NULL, NULL },
	{ 0, 9, 2, "rows", ",\"max_rows\":9}" },
	{ 0, 1, 10, "rows", ",\"max_rows\":1}" },
	{ 0, 0, 10, "rows", ",\"max_rows\":0}" },
	{ 1000, UINT64_MAX, 0, NULL, NULL },
	{ 1001, UINT64_MAX, 1, "age", ",\"before\":\"1970-01-01T00:00:00.000001001Z\"}" },
	{ 5000, UINT64_MAX, 4, "age", ",\"before\":\"1970-01-01T00:00:00.000005000Z\"}" },
	{ INT64_MAX, UINT64_MAX, 10, "age", ",\"before\":\"2262-04-11T23:47:16.854775807Z\"}" },
	{ 5000, 3, 8, "rows", "5000Z\",\"max_rows\":3}" },
	{ 9000, 5, 8, "age", "9000Z\",\"max_rows\":5}" },
};

/* What went, and by which limit, is a row that the chain and a signature hold. */
static void check_told(const struct audit_prune_result *r, const char *rule, const char *limits)
{
	const struct told t = told();

	ck_assert_uint_eq(t.n, 1);
	ck_assert_int_eq(t.row.action, AUDIT_CHANGED);
	ck_assert_int_eq(t.from, r->from_seq);
	ck_assert_int_eq(t.to, r->to_seq);
	ck_assert_int_eq(t.rows, (int64_t)r->rows);
	ck_assert_str_eq(t.row.rule, rule);
	ck_assert_msg(aqe_ends(t.row.meta, limits), "%s", t.row.meta);
}

START_TEST(prune__limits)
{
	struct audit_prune_opts o = AUDIT_PRUNE_INIT;
	const uint64_t gone = LIMITS[_i].removed, own = gone ? 1 : 0;
	struct audit_prune_result r;
	struct audit_verdict v;

	make_key();
	add_timed(10);
	ck_assert_good(judge());
	o.before_ns = LIMITS[_i].before_ns;
	o.max_rows = LIMITS[_i].max_rows;
	r = prune(o);
	ck_assert_uint_eq(r.rows, gone);
	ck_assert_int_eq(r.from_seq, gone ? 1 : 0);
	ck_assert_int_eq(r.to_seq, (int64_t)gone);
	ck_assert_uint_eq(count_all(), 10 - gone + own);
	if (gone)
		check_told(&r, LIMITS[_i].rule, LIMITS[_i].limits);
	else
		ck_assert_uint_eq(told().n, 0);
	v = judge();
	ck_assert_good(v);
	ck_assert_int_eq((v.open & AUDIT_OPEN_PRUNED) != 0, gone > 0);
	if (gone)
		ck_assert_int_eq(v.signed_to, v.last_seq);
	/* every limit holds now: a prune is no reason for the next */
	r = prune(o);
	ck_assert_uint_eq(r.rows, 0);
	ck_assert_int_eq(judge().last_seq, v.last_seq);
	/* and life goes on */
	add_rows(3);
	v = judge();
	ck_assert_good(v);
	ck_assert_int_eq(v.last_seq, (int64_t)(13 + own));
	(void)prune(o);
	ck_assert_good(judge());
}
END_TEST

/* Only a whole beginning goes: what is younger stops it, whatever comes after. */
START_TEST(prune__stops_at_a_younger_row)
{
	struct audit_prune_opts o = AUDIT_PRUNE_INIT;
	struct audit_row r;

	make_key();
	add_timed(3);
	r = full_row(9);
	r.time_ns = 50; /* the clock was set back */
	(void)add_row(r);
	o.before_ns = 3000;
	ck_assert_uint_eq(prune(o).rows, 2);
	ck_assert_uint_eq(count_all(), 3); /* with the row about it */
	ck_assert_good(judge());
}
END_TEST

START_TEST(prune__by_size_gives_space_back)
{
	static struct audit_row rows[1000];
	struct audit_prune_opts o = AUDIT_PRUNE_INIT;
	struct audit_prune_result r;
	struct told t;
	uint64_t size = 0;

	make_key();
	for (unsigned i = 0; i < 6; i++) {
		for (unsigned k = 0; k < 1000; k++)
			rows[k] = full_row(i);
		ck_assert_ok(audit_append_many(lg, rows, 1000, &err), err);
	}
	ck_assert_ok(audit_size(lg, &size, &err), err);
	o.max_bytes = size / 3;
	r = prune(o);
	ck_assert_uint_eq(r.before, size);
	ck_assert_uint_le(r.after, size / 3);
	ck_assert_uint_gt(r.after, size / 5);
	/* more than one estimate is a row for each; the last one tells all */
	t = told();
	ck_assert_uint_ge(t.n, 1);
	ck_assert_str_eq(t.row.rule, "size");
	ck_assert_int_eq(t.from, 1);
	ck_assert_int_eq(t.to, r.to_seq);
	ck_assert_int_eq(t.rows, (int64_t)r.rows);
	ck_assert_uint_eq(count_all(), 6000 - r.rows + t.n);
	ck_assert_good(judge());
	o.max_bytes = 0;
	(void)prune(o);
	ck_assert_uint_eq(count_all(), 1);
	ck_assert_int_eq(told().from, r.to_seq + 1);
	ck_assert_good(judge());
	/* no size is small enough for it: not tried for ever */
	ck_assert_uint_eq(prune(o).rows, 0);
	ck_assert_uint_eq(count_all(), 1);
}
END_TEST

/* What a pruned log can still show. */
static const struct {
	const char *sql;
	enum audit_fault fault;
	int64_t bad;
} EDITS[] = {
	{ "DELETE FROM point WHERE kind = 2", AUDIT_FAULT_START, 1 },
	{ "UPDATE point SET hash = randomblob(32) WHERE kind = 2", AUDIT_FAULT_SIGNATURE, 1 },
	{ "UPDATE point SET seq = 8 WHERE kind = 2; DELETE FROM row WHERE seq = 8",
	  AUDIT_FAULT_SIGNATURE, 1 },
	{ "DELETE FROM row WHERE seq = 8", AUDIT_FAULT_SEQ, 8 },
	{ "UPDATE row SET reason = 'x' WHERE seq = 8", AUDIT_FAULT_HASH, 8 },
	{ "DELETE FROM row", AUDIT_FAULT_CUT, 8 },
	/* the row about it */
	{ "DELETE FROM row WHERE seq = 11", AUDIT_FAULT_CUT, 11 },
	{ "UPDATE row SET meta = '{\"from\":1,\"to\":1,\"rows\":1,\"max_rows\":4}' "
	  "WHERE seq = 11",
	  AUDIT_FAULT_HASH, 11 },
	{ "UPDATE chain SET id = randomblob(32)", AUDIT_FAULT_SIGNATURE, 1 },
};

START_TEST(prune__is_provable)
{
	struct audit_prune_opts o = AUDIT_PRUNE_INIT;

	make_key();
	add_rows(10);
	ck_assert_ok(audit_checkpoint(lg, NULL, &err), err);
	o.max_rows = 4;
	(void)prune(o);
	ck_assert_good(judge());
	tamper(EDITS[_i].sql);
	ck_assert_fault_of(judge(), EDITS[_i].fault, EDITS[_i].bad);
}
END_TEST

START_TEST(prune__anchor_before_it)
{
	struct audit_prune_opts o = AUDIT_PRUNE_INIT;
	struct audit_point p[2];
	struct audit_verdict v;

	make_key();
	add_rows(4);
	ck_assert_ok(audit_head(lg, &p[0], &err), err);
	add_rows(4);
	ck_assert_ok(audit_head(lg, &p[1], &err), err);
	add_rows(4);
	given.anchors = p;
	given.n_anchors = 2;
	o.max_rows = 5;
	(void)prune(o);
	v = judge(); /* the second anchor stands at the cut itself */
	ck_assert_good(v);
	ck_assert_uint_eq(v.open & AUDIT_OPEN_ANCHOR_PRUNED, AUDIT_OPEN_ANCHOR_PRUNED);
	ck_assert_int_eq(v.anchored_to, 8);
	p[1].is_signed = false;
	p[1].hash[0] ^= 1;
	ck_assert_fault_of(judge(), AUDIT_FAULT_ANCHOR, 1);
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

int main(void)
{
	Suite *s = suite_create("audit_prune");
	TCase *t = tcase_create("prune");

	tcase_add_checked_fixture(t, setup_judge, teardown_log);
	tcase_add_test(t, prune__needs_the_key);
	tcase_add_loop_test(t, prune__limits, 0, AQE_COUNT(LIMITS));
	tcase_add_test(t, prune__stops_at_a_younger_row);
	tcase_add_test(t, prune__by_size_gives_space_back);
	tcase_add_loop_test(t, prune__is_provable, 0, AQE_COUNT(EDITS));
	tcase_add_test(t, prune__anchor_before_it);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
