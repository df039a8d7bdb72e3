/* SPDX-License-Identifier: MIT */
/* Rows, their encoding, their texts: pure. */
#include "audit/chain.h"

#include "audit/emit.h"
#include "audit/row.h"
#include "shim/core/sha256.h"
#include "shim/core/text.h"
#include "tests/unit/audit_fixture.h"

static const struct audit_row EMPTY = AUDIT_ROW_INIT(AUDIT_START, AUDIT_ALLOWED);

START_TEST(encode__is_what_the_header_says)
{
	/* seq 1, time 2, no boot time, kind 1, action 1, eighteen things that are not there */
	static const char WANT[] = "aqe-row1"
				   "i\0\0\0\0\0\0\0\1"
				   "i\0\0\0\0\0\0\0\2"
				   "n"
				   "i\0\0\0\0\0\0\0\1"
				   "i\0\0\0\0\0\0\0\1"
				   "nnnnt\0\0\0\3a.b"
				   "nnnnnnnnnnnnn";
	struct audit_row r = EMPTY;
	uint8_t got[AUDIT_ENCODING_MAX], hash[32], want[32];
	uint8_t whole[32 + sizeof(WANT) - 1] = { 0 };
	size_t n;

	r.seq = 1;
	r.time_ns = 2;
	r.domain = "a.b";
	n = audit_encode(&r, got, sizeof(got));
	ck_assert_uint_eq(n, sizeof(WANT) - 1);
	ck_assert_mem_eq(got, WANT, n);
	ck_assert_uint_eq(audit_encode(&r, got, n - 1), 0);
	memset(whole, 7, 32);
	memcpy(whole + 32, WANT, n);
	aqe_sha256(whole, sizeof(whole), want);
	ck_assert(audit_row_hash(whole, &r, hash));
	ck_assert_mem_eq(hash, want, 32);
}
END_TEST

START_TEST(encode__takes_every_maximum)
{
	static char text[AUDIT_FIELDS_COUNT][AUDIT_META_MAX + 2];
	uint8_t out[AUDIT_ENCODING_MAX], hash[32] = { 0 };
	struct audit_row r = EMPTY;

	for (size_t i = 0; i < AUDIT_FIELDS_COUNT; i++) {
		const struct audit_field *f = &AUDIT_FIELDS[i];

		if (f->type == AUDIT_FIELD_TEXT || f->type == AUDIT_FIELD_JSON) {
			memset(text[i], 'x', (size_t)f->max);
			audit_field_set_text(&r, f, text[i]);
		} else {
			audit_field_set_int(&r, f, f->max);
		}
	}
	ck_assert_uint_gt(audit_encode(&r, out, sizeof(out)), 14000);
	ck_assert(audit_row_hash(hash, &r, hash));
	text[5][AUDIT_ID_MAX] = 'x';
	ck_assert_uint_eq(audit_encode(&r, out, sizeof(out)), 0);
	ck_assert(!audit_row_hash(hash, &r, hash));
}
END_TEST

/* Moving a boundary between two texts, or a text into the next field, makes another row. */
START_TEST(encode__is_injective_where_it_hurts)
{
	static const struct {
		const char *container, *agent_id, *agent_type;
	} TRIPLES[] = { { "ab", "c", NULL },   { "a", "bc", NULL },   { "abc", "", NULL },
			{ "abc", NULL, NULL }, { NULL, "abc", NULL }, { "", "abc", NULL },
			{ NULL, NULL, "abc" }, { "", "", "" },        { NULL, NULL, NULL } };
	uint8_t hash[AQE_COUNT(TRIPLES)][32], prev[32] = { 0 };

	for (size_t i = 0; i < AQE_COUNT(TRIPLES); i++) {
		struct audit_row r = EMPTY;

		r.container = TRIPLES[i].container;
		r.agent_id = TRIPLES[i].agent_id;
		r.agent_type = TRIPLES[i].agent_type;
		ck_assert(audit_row_hash(prev, &r, hash[i]));
		for (size_t k = 0; k < i; k++)
			ck_assert(memcmp(hash[i], hash[k], 32) != 0);
	}
}
END_TEST

START_TEST(decode__gives_the_row_back)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct audit_row r = full_row((unsigned)_i), got = EMPTY;
	uint8_t out[AUDIT_ENCODING_MAX];
	size_t n;

	r.seq = 5;
	r.time_ns = INT64_MAX;
	r.boot_ns = _i ? AUDIT_NONE : 0;
	n = audit_encode(&r, out, sizeof(out));
	ck_assert_ok(audit_decode(a, out, n, &got, &err), err);
	ck_assert(audit_row_equal(&r, &got));
	for (size_t cut = 0; cut < n; cut++)
		ck_assert_fault(audit_decode(a, out, cut, &got, &err), AQE_E_MALFORMED, err, NULL);
	out[0] ^= 1;
	ck_assert_fault(audit_decode(a, out, n, &got, &err), AQE_E_MALFORMED, err, "version 1");
}
END_TEST

START_TEST(genesis__depends_on_both)
{
	struct audit_id id = { .created_ns = 5 };
	uint8_t a[32], b[32];

	audit_genesis(&id, a);
	id.created_ns = 6;
	audit_genesis(&id, b);
	ck_assert(memcmp(a, b, 32) != 0);
	id.created_ns = 5;
	id.chain[31] = 1;
	audit_genesis(&id, b);
	ck_assert(memcmp(a, b, 32) != 0);
}
END_TEST

/* ---- names and tables ---- */

START_TEST(names__go_both_ways)
{
	enum audit_kind k;
	enum audit_action a;

	for (int i = 1; i < AUDIT_KIND_COUNT; i++) {
		ck_assert(audit_kind_parse(audit_kind_name((enum audit_kind)i), &k));
		ck_assert_int_eq(k, i);
	}
	for (int i = 1; i < AUDIT_ACTION_COUNT; i++) {
		ck_assert(audit_action_parse(audit_action_name((enum audit_action)i), &a));
		ck_assert_int_eq(a, i);
	}
	ck_assert(!audit_kind_parse("Start", &k) && !audit_kind_parse("", &k));
	ck_assert(!audit_kind_parse(NULL, &k) && !audit_action_parse("allow", &a));
	ck_assert_str_eq(audit_kind_name(AUDIT_KIND_ANY), "?");
	ck_assert_str_eq(audit_kind_name((enum audit_kind)99), "?");
	ck_assert_str_eq(audit_action_name((enum audit_action) - 1), "?");
	for (unsigned i = 0; i < AUDIT_FAULT_COUNT; i++)
		ck_assert_str_ne(audit_fault_name((enum audit_fault)i), "?");
	for (unsigned i = 0; i < AUDIT_OPEN_COUNT; i++)
		ck_assert_ptr_nonnull(audit_open_text(1U << i));
	ck_assert_ptr_null(audit_open_text(1U << AUDIT_OPEN_COUNT));
}
END_TEST

static const struct {
	const char *text;
	int64_t ns;
	bool ok;
} TIMES[] = {
	{ "1970-01-01T00:00:00.000000000Z", 0, true },
	{ "2026-01-31T23:59:59.123456789Z", INT64_C(1769903999123456789), true },
	{ "2026-01-31T23:59:59Z", INT64_C(1769903999000000000), true },
	{ "2262-04-11T23:47:15.999999999Z", INT64_C(9223372035999999999), true },
	{ "2262-04-11T23:47:16Z", 0, false },
	{ "9999-12-31T23:59:59Z", 0, false },
	{ "2026-01-31T23:59:59.12345678Z", 0, false },
	{ "2026-01-31T23:59:59.12345678xZ", 0, false },
	{ "2026-01-31T23:59:59.123456789z", 0, false },
	{ "2026-01-31T23:59:59,123456789Z", 0, false },
	{ "2026-02-30T23:59:59.123456789Z", 0, false },
	{ "2026-01-31", 0, false },
	{ "", 0, false },
	{ NULL, 0, false },
};

START_TEST(time__both_ways)
{
	char text[AUDIT_TIME_TEXT];
	int64_t ns = -7;

	ck_assert_int_eq(audit_time_parse(TIMES[_i].text, &ns), TIMES[_i].ok);
	ck_assert_int_eq(ns, TIMES[_i].ok ? TIMES[_i].ns : -7);
	if (!TIMES[_i].ok || strlen(TIMES[_i].text) < 30)
		return;
	audit_time_format(ns, text);
	ck_assert_str_eq(text, TIMES[_i].text);
}
END_TEST

/* ---- foreign texts made to fit ---- */

START_TEST(fit__cuts_and_repairs)
{
	static char agent[AUDIT_ID_MAX + 10], path[AUDIT_PATH_MAX + 10];
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct audit_row r = AUDIT_ROW_INIT(AUDIT_REQUEST, AUDIT_BLOCKED);

	memset(agent, 'x', sizeof(agent) - 1);
	memcpy(agent + AUDIT_ID_MAX - 4, "\xe2\x82\xac", 3); /* a character on the edge */
	memset(path, 'p', sizeof(path) - 1);
	r.agent_id = agent;
	r.path = path;
	r.domain = "bad\xff.example";
	r.method = "GET";
	ck_assert_ok(audit_row_fit(&r, a, &err), err);
	ck_assert_ok(audit_row_check(&r, &err), err);
	ck_assert_uint_eq(strlen(r.agent_id), AUDIT_ID_MAX - 4 + 3);
	ck_assert(aqe_ends(r.agent_id, "x..."));
	ck_assert_uint_eq(strlen(r.path), AUDIT_PATH_MAX);
	ck_assert_str_eq(r.domain, "bad\xef\xbf\xbd.example");
	ck_assert_str_eq(r.method, "GET");
	r.path = "/a/b?token=secret#x";
	ck_assert_ok(audit_row_fit(&r, a, &err), err);
	ck_assert_str_eq(r.path, "/a/b");
	r.path = "?q";
	ck_assert_ok(audit_row_fit(&r, a, &err), err);
	ck_assert_str_eq(r.path, "");
}
END_TEST

/* ---- a row as text ---- */

START_TEST(json__both_ways)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 16);
	struct audit_row r = full_row((unsigned)_i), got = EMPTY;
	struct aqe_json *v = NULL;
	uint8_t prev[32];
	bool has_prev = true;

	r.seq = 9;
	r.time_ns = INT64_C(1769903999123456789);
	r.meta = _i ? NULL : "{\"a\":[1,2.50,\"\\u0001\",{\"b\":null}]}";
	r.domain = _i == 2 ? "" : r.domain;
	memset(r.hash, 0xab, 32);
	audit_row_json(&r, &b);
	ck_assert_ok(aqe_json_parse(a, b.p, b.len, &AQE_JSON_LIMITS_DEFAULT, &v, &err), err);
	ck_assert_ok(audit_row_parse(a, v, &got, prev, &has_prev, &err), err);
	ck_assert(audit_row_equal(&r, &got));
	ck_assert(!has_prev);
}
END_TEST

static const char *const BAD_JSON[] = {
	"[]",
	"{}",
	"{\"seq\":1,\"time\":\"2026-01-31T23:59:59.123456789Z\",\"kind\":\"start\",\"action\":"
	"\"allowed\"}",
#define HASH "\"hash\":\"abababababababababababababababababababababababababababababababab\""
#define GOOD                                                                         \
	"\"time\":\"2026-01-31T23:59:59.123456789Z\",\"kind\":\"start\",\"action\":" \
	"\"allowed\"," HASH
	"{" GOOD "}",
	"{\"seq\":0," GOOD "}",
	"{\"seq\":-1," GOOD "}",
	"{\"seq\":1.0," GOOD "}",
	"{\"seq\":\"1\"," GOOD "}",
	"{\"seq\":1,\"more\":1," GOOD "}",
	"{\"seq\":1,\"time_ns\":1," GOOD "}",
	"{\"seq\":1,\"port\":65536," GOOD "}",
	"{\"seq\":1,\"port\":null," GOOD "}",
	"{\"seq\":1,\"domain\":7," GOOD "}",
	"{\"seq\":1,\"meta\":\"{}\"," GOOD "}",
	"{\"seq\":1,\"meta\":[]," GOOD "}",
	"{\"seq\":1,\"prev\":\"ab\"," GOOD "}",
	"{\"seq\":1,\"kind\":\"begin\",\"time\":\"2026-01-31T23:59:59.123456789Z\",\"action\":"
	"\"allowed\"," HASH "}",
	"{\"seq\":1,\"kind\":\"start\",\"time\":\"2026-01-31T23:59:59Z\",\"action\":"
	"\"allowed\"," HASH "}",
	"{\"seq\":1,\"kind\":\"start\",\"time\":\"2026-01-31T23:59:59.123456789Z\",\"action\":"
	"\"allowed\","
	"\"hash\":\"ABababababababababababababababababababababababababababababababab\"}",
};

START_TEST(json__refuses)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct audit_row got = EMPTY;
	struct aqe_json *v = NULL;
	uint8_t prev[32];
	bool has_prev;

	ck_assert_ok(aqe_json_parse(a, BAD_JSON[_i], strlen(BAD_JSON[_i]), &AQE_JSON_LIMITS_DEFAULT,
				    &v, &err),
		     err);
	ck_assert_fault(audit_row_parse(a, v, &got, prev, &has_prev, &err), AQE_E_MALFORMED, err,
			"");
}
END_TEST

START_TEST(csv__quotes_and_disarms)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 16);
	struct audit_row r = AUDIT_ROW_INIT(AUDIT_REQUEST, AUDIT_BLOCKED);

	r.seq = 1;
	r.agent_id = "=HYPERLINK(\"x\")";
	r.agent_type = "a,b";
	r.domain = "plain";
	r.reason = "two\nlines";
	audit_row_csv(&r, &b);
	ck_assert_ptr_nonnull(strstr(b.p, ",\"'=HYPERLINK(\"\"x\"\")\",\"a,b\",,plain,"));
	ck_assert_ptr_nonnull(strstr(b.p, ",\"two\nlines\","));
	ck_assert_ptr_nonnull(strstr(b.p, "1,1970-01-01T00:00:00.000000000Z,,request,blocked,"));
	aqe_buf_clear(&b);
	audit_csv_heading(&b);
	ck_assert_ptr_nonnull(strstr(b.p, "seq,time,boot_ns,kind,action,container,"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("audit_chain");
	TCase *t = tcase_create("chain");

	tcase_add_test(t, encode__is_what_the_header_says);
	tcase_add_test(t, encode__takes_every_maximum);
	tcase_add_test(t, encode__is_injective_where_it_hurts);
	tcase_add_loop_test(t, decode__gives_the_row_back, 0, 3);
	tcase_add_test(t, genesis__depends_on_both);
	tcase_add_test(t, names__go_both_ways);
	tcase_add_loop_test(t, time__both_ways, 0, AQE_COUNT(TIMES));
	tcase_add_test(t, fit__cuts_and_repairs);
	tcase_add_loop_test(t, json__both_ways, 0, 3);
	tcase_add_loop_test(t, json__refuses, 0, AQE_COUNT(BAD_JSON));
	tcase_add_test(t, csv__quotes_and_disarms);
	suite_add_tcase(s, t);
	return unit_run(s);
}
