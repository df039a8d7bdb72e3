/* SPDX-License-Identifier: MIT */
/* `ship` without a network: the position, the checks against the log, batches, answers, waits. */
#include "shim/aqe/audit_ship.h"

#include "audit/prune.h"
#include "tests/unit/audit_util.h"

/* ---- position ---- */

#define H64 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

START_TEST(position__goes_both_ways)
{
	struct shim_ship_position p = { .seq = INT64_MAX }, q;
	char line[SHIM_SHIP_LINE];

	memset(p.chain, 0x5a, sizeof(p.chain));
	memset(p.hash, 0xf0, sizeof(p.hash));
	shim_ship_format(&p, line);
	ck_assert(shim_ship_parse(line, strlen(line), &q));
	ck_assert_int_eq(q.seq, p.seq);
	ck_assert_mem_eq(q.chain, p.chain, 32);
	ck_assert_mem_eq(q.hash, p.hash, 32);
}
END_TEST

static const char *const BAD_LINES[] = {
	"",
	"\n",
	"aqe-audit-ship 1 chain=" H64 " seq=1 hash=" H64,
	"aqe-audit-ship 1 chain=" H64 " seq=1 hash=" H64 "\n\n",
	"aqe-audit-ship 1 chain=" H64 " seq=1 hash=" H64 "x\n",
	"aqe-audit-ship 2 chain=" H64 " seq=1 hash=" H64 "\n",
	"aqe-audit-ship 1 chain=" H64 " seq=01 hash=" H64 "\n",
	"aqe-audit-ship 1 chain=" H64 " seq=-1 hash=" H64 "\n",
	"aqe-audit-ship 1 chain=" H64 " seq= hash=" H64 "\n",
	"aqe-audit-ship 1 chain=" H64 " seq=9223372036854775808 hash=" H64 "\n",
	"aqe-audit-ship 1 chain=" H64 " seq=111111111111111111111111111111111111 hash=" H64 "\n",
	"aqe-audit-ship 1 chain=00 seq=1 hash=" H64 "\n",
	"aqe-audit-ship 1 chain=" H64 " seq=1 hash=00\n",
	"aqe-audit-ship 1 chain=" H64 "  seq=1 hash=" H64 "\n",
	"AQE-audit-ship 1 chain=" H64 " seq=1 hash=" H64 "\n",
};

START_TEST(position__refuses)
{
	struct shim_ship_position p = { .seq = 77 };

	ck_assert(!shim_ship_parse(BAD_LINES[_i], strlen(BAD_LINES[_i]), &p));
	ck_assert_int_eq(p.seq, 77);
}
END_TEST

static int open_dir(void)
{
	int fd = open(cmd_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

START_TEST(position__is_a_file)
{
	struct shim_ship_position p = { .seq = 5 }, q = { .seq = 0 };
	AQE_AUTO_FD int dir = open_dir();
	bool there = true;

	ck_assert_ok(shim_ship_load(dir, "pos", &q, &there, &err), err);
	ck_assert(!there);
	ck_assert_ok(shim_ship_store(dir, "pos", &p, &err), err);
	p.seq = 6;
	ck_assert_ok(shim_ship_store(dir, "pos", &p, &err), err);
	ck_assert_ok(shim_ship_load(dir, "pos", &q, &there, &err), err);
	ck_assert(there);
	ck_assert_int_eq(q.seq, 6);
	ck_assert_int_eq(chmod(cmd_path("pos"), 0666), 0);
	ck_assert_fault(shim_ship_load(dir, "pos", &q, &there, &err), AQE_E_UNTRUSTED, err, NULL);
	ck_assert_int_eq(unlink(cmd_path("pos")), 0);
	ck_assert_int_eq(symlink("/dev/null", cmd_path("pos")), 0);
	ck_assert_fault(shim_ship_load(dir, "pos", &q, &there, &err), AQE_E_UNTRUSTED, err, NULL);
	ck_assert_int_eq(unlink(cmd_path("pos")), 0);
	(void)cmd_file("pos", "x", 1);
	ck_assert_fault(shim_ship_load(dir, "pos", &q, &there, &err), AQE_E_MALFORMED, err,
			"damaged");
}
END_TEST

/* ---- against the log ---- */

static void add(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct audit_row r = AUDIT_ROW_INIT(AUDIT_START, AUDIT_ALLOWED);

		r.agent_id = "agent";
		log_add(&r, 1);
	}
}

static struct audit_log *open_log(void)
{
	struct audit_opts o = log_opts();
	struct audit_log *log = NULL;

	o.mode = AUDIT_READ;
	ck_assert_ok(audit_open(&o, &log, &err), err);
	return log;
}

/* The position after all rows of the log. */
static struct shim_ship_position shipped(struct audit_log *log)
{
	struct shim_ship_batch b = { .body = AQE_BUF_INIT(2 * SHIM_SHIP_BYTES) };
	struct shim_ship_position p = { .seq = 0 };
	uint64_t pruned;
	bool other;

	ck_assert_ok(shim_ship_check(log, &p, &other, &pruned, &err), err);
	ck_assert(other); /* the first time: of no log yet */
	ck_assert_ok(shim_ship_fill(log, &p, 1000, &b, &err), err);
	aqe_buf_done(&b.body);
	return b.after;
}

START_TEST(check__the_same_log)
{
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	struct shim_ship_position p;
	uint64_t pruned = 9;
	bool other = true;

	add(3);
	log = open_log();
	p = shipped(log);
	ck_assert_int_eq(p.seq, 3);
	add(2);
	ck_assert_ok(shim_ship_check(log, &p, &other, &pruned, &err), err);
	ck_assert(!other);
	ck_assert_uint_eq(pruned, 0);
	ck_assert_int_eq(p.seq, 3);
}
END_TEST

START_TEST(check__a_rewritten_row)
{
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	struct shim_ship_position p;
	uint64_t pruned;
	bool other;

	add(3);
	log = open_log();
	p = shipped(log);
	p.hash[31] ^= 1;
	ck_assert_fault(shim_ship_check(log, &p, &other, &pruned, &err), AQE_E_REFUSED, err,
			"row 3 is not the one that was shipped");
}
END_TEST

START_TEST(check__a_cut_log)
{
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	struct shim_ship_position p;
	uint64_t pruned;
	bool other;

	add(3);
	log = open_log();
	p = shipped(log);
	p.seq = 9;
	ck_assert_fault(shim_ship_check(log, &p, &other, &pruned, &err), AQE_E_REFUSED, err,
			"ends at row 3, but row 9");
}
END_TEST

START_TEST(check__another_log)
{
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	struct shim_ship_position p;
	uint64_t pruned;
	bool other = false;

	add(3);
	log = open_log();
	p = shipped(log);
	p.chain[0] ^= 1;
	p.seq = 99;
	ck_assert_ok(shim_ship_check(log, &p, &other, &pruned, &err), err);
	ck_assert(other);
	ck_assert_int_eq(p.seq, 0);
}
END_TEST

START_TEST(check__pruned_rows_are_told)
{
	struct audit_prune_opts limits = AUDIT_PRUNE_INIT;
	struct audit_prune_result got;
	const struct audit_opts o = log_opts();
	AUDIT_AUTO_LOG struct audit_log *log = NULL, *writer = NULL;
	struct shim_ship_position p;
	uint64_t pruned = 0;
	bool other;

	add(3);
	log_key();
	log = open_log();
	p = shipped(log);
	add(5);
	limits.max_rows = 3; /* one of them about the prune */
	ck_assert_ok(audit_open(&o, &writer, &err), err);
	ck_assert_ok(audit_prune(writer, &limits, &got, &err), err);
	ck_assert_uint_eq(got.rows, 6);
	ck_assert_ok(shim_ship_check(log, &p, &other, &pruned, &err), err);
	ck_assert_uint_eq(pruned, 3); /* 4, 5 and 6 */
}
END_TEST

START_TEST(fill__batches)
{
	struct shim_ship_batch b = { .body = AQE_BUF_INIT(2 * SHIM_SHIP_BYTES) };
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	struct shim_ship_position p = { .seq = 0 };
	size_t rows = 0, lines = 0;

	add(10);
	log = open_log();
	for (int i = 0; i < 4; i++) {
		ck_assert_ok(shim_ship_fill(log, &p, 3, &b, &err), err);
		ck_assert_uint_eq(b.rows, i < 3 ? 3 : 1);
		ck_assert_int_eq(b.first, p.seq + 1);
		ck_assert_int_eq(b.after.seq, p.seq + (int64_t)b.rows);
		rows += b.rows;
		for (size_t k = 0; k < b.body.len; k++)
			lines += b.body.p[k] == '\n';
		p = b.after;
	}
	ck_assert_uint_eq(rows, 10);
	ck_assert_uint_eq(lines, 10);
	ck_assert_ok(shim_ship_fill(log, &p, 3, &b, &err), err);
	ck_assert_uint_eq(b.rows, 0);
	ck_assert_uint_eq(b.body.len, 0);
	ck_assert_int_eq(b.after.seq, 10);
	aqe_buf_done(&b.body);
}
END_TEST

/* Large rows: a batch ends before it is over the maximum, and goes on with the next. */
START_TEST(fill__ends_before_it_is_too_large)
{
	enum { ROWS = 200, META = 8000 };
	static struct audit_row many[ROWS];
	struct shim_ship_batch b = { .body = AQE_BUF_INIT(2 * SHIM_SHIP_BYTES) };
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	struct shim_ship_position p = { .seq = 0 };
	char *meta = aqe_arena_alloc(arena, META + 16);
	size_t rows = 0, batches = 0;

	(void)snprintf(meta, META, "{\"x\":\"%0*d\"}", META - 100, 0);
	for (size_t i = 0; i < ROWS; i++) {
		many[i] = (struct audit_row)AUDIT_ROW_INIT(AUDIT_SYSTEM, AUDIT_ALLOWED);
		many[i].meta = meta;
	}
	log_add(many, ROWS);
	log = open_log();
	do {
		ck_assert_ok(shim_ship_fill(log, &p, 1000, &b, &err), err);
		ck_assert_uint_le(b.body.len, SHIM_SHIP_BYTES);
		rows += b.rows;
		batches += b.rows > 0;
		p = b.after;
	} while (b.rows);
	ck_assert_uint_eq(rows, ROWS);
	ck_assert_uint_eq(batches, 2);
	aqe_buf_done(&b.body);
}
END_TEST

/* ---- answers and waits ---- */

static const struct {
	int rc, status;
	enum shim_ship_verdict want;
} ANSWERS[] = {
	{ 0, 200, SHIM_SHIP_TAKEN },
	{ 0, 202, SHIM_SHIP_TAKEN },
	{ 0, 204, SHIM_SHIP_TAKEN },
	{ 0, 299, SHIM_SHIP_TAKEN },
	{ 0, 100, SHIM_SHIP_AGAIN },
	{ 0, 0, SHIM_SHIP_AGAIN },
	{ 0, 301, SHIM_SHIP_REFUSED },
	{ 0, 302, SHIM_SHIP_REFUSED },
	{ 0, 400, SHIM_SHIP_REFUSED },
	{ 0, 401, SHIM_SHIP_REFUSED },
	{ 0, 403, SHIM_SHIP_REFUSED },
	{ 0, 404, SHIM_SHIP_REFUSED },
	{ 0, 408, SHIM_SHIP_AGAIN },
	{ 0, 413, SHIM_SHIP_SMALLER },
	{ 0, 422, SHIM_SHIP_REFUSED },
	{ 0, 425, SHIM_SHIP_AGAIN },
	{ 0, 429, SHIM_SHIP_AGAIN },
	{ 0, 500, SHIM_SHIP_AGAIN },
	{ 0, 503, SHIM_SHIP_AGAIN },
	{ 0, 599, SHIM_SHIP_AGAIN },
	{ AQE_E_SYS, 0, SHIM_SHIP_AGAIN },
	{ AQE_E_TIMEOUT, 0, SHIM_SHIP_AGAIN },
	{ AQE_E_UNTRUSTED, 0, SHIM_SHIP_AGAIN },
	{ AQE_E_MALFORMED, 200, SHIM_SHIP_AGAIN },
	{ AQE_E_USAGE, 0, SHIM_SHIP_REFUSED },
	{ AQE_E_REFUSED, 0, SHIM_SHIP_REFUSED },
};

START_TEST(judge__answers)
{
	ck_assert_int_eq((int)shim_ship_judge(ANSWERS[_i].rc, ANSWERS[_i].status),
			 (int)ANSWERS[_i].want);
}
END_TEST

static const struct {
	unsigned failures;
	int64_t retry_after_s;
	uint64_t least, most;
} WAITS[] = {
	{ 1, -1, 500, 1000 },      { 2, -1, 1000, 2000 },      { 3, -1, 2000, 4000 },
	{ 9, -1, 128000, 256000 }, { 10, -1, 150000, 300000 }, { 1000000, -1, 150000, 300000 },
	{ 1, 0, 500, 1000 },       { 1, 30, 30000, 30000 },    { 1, 1000000, 3600000, 3600000 },
};

START_TEST(wait__doubles_with_jitter)
{
	const unsigned n = WAITS[_i].failures;
	const int64_t asked = WAITS[_i].retry_after_s;

	ck_assert_uint_eq(shim_ship_wait_ms(n, 1000, 300000, asked, 0), WAITS[_i].least);
	ck_assert_uint_eq(shim_ship_wait_ms(n, 1000, 300000, asked, UINT32_MAX), WAITS[_i].most);
}
END_TEST

static const struct {
	const char *url;
	int want; /* 0 https, 1 plain, or a code */
} URLS[] = {
	{ "https://collector.example/v1/rows", 0 },
	{ "https://[2001:db8::1]:8443/", 0 },
	{ "http://localhost/x", 1 },
	{ "http://localhost:8080", 1 },
	{ "http://127.0.0.1:1/", 1 },
	{ "http://127.255.255.255/", 1 },
	{ "http://[::1]:80/", 1 },
	{ "http://collector.example/", AQE_E_USAGE },
	{ "http://127.0.0.1.example/", AQE_E_USAGE },
	{ "http://127.1/", AQE_E_USAGE },
	{ "http://127.0.0.256/", AQE_E_USAGE },
	{ "http://128.0.0.1/", AQE_E_USAGE },
	{ "http://localhost.example/", AQE_E_USAGE },
	{ "http://localhost@collector.example/", AQE_E_USAGE },
	{ "https://user:password@collector.example/", AQE_E_USAGE },
	{ "http://[::2]/", AQE_E_USAGE },
	{ "http://", AQE_E_USAGE },
	{ "https:///x", AQE_E_USAGE },
	{ "ftp://x/", AQE_E_USAGE },
	{ "collector.example", AQE_E_USAGE },
	{ "", AQE_E_USAGE },
};

START_TEST(url__plain_only_to_this_machine)
{
	bool plain = false;
	const int rc = shim_ship_url(URLS[_i].url, &plain, &err);

	ck_assert_int_eq(rc, URLS[_i].want < 0 ? URLS[_i].want : 0);
	if (rc == 0)
		ck_assert_int_eq(plain, URLS[_i].want);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("shim/audit_ship");
	TCase *t = tcase_create("ship");

	tcase_add_checked_fixture(t, cmd_setup, cmd_teardown);
	tcase_add_test(t, position__goes_both_ways);
	tcase_add_loop_test(t, position__refuses, 0, (int)AQE_COUNT(BAD_LINES));
	tcase_add_test(t, position__is_a_file);
	tcase_add_test(t, check__the_same_log);
	tcase_add_test(t, check__a_rewritten_row);
	tcase_add_test(t, check__a_cut_log);
	tcase_add_test(t, check__another_log);
	tcase_add_test(t, check__pruned_rows_are_told);
	tcase_add_test(t, fill__batches);
	tcase_add_test(t, fill__ends_before_it_is_too_large);
	tcase_add_loop_test(t, judge__answers, 0, (int)AQE_COUNT(ANSWERS));
	tcase_add_loop_test(t, wait__doubles_with_jitter, 0, (int)AQE_COUNT(WAITS));
	tcase_add_loop_test(t, url__plain_only_to_this_machine, 0, (int)AQE_COUNT(URLS));
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run_with_openat2(suite());
}
