/* SPDX-License-Identifier: MIT */
/* bench_audit FOLDER [ROWS]: what the audit log costs, on the disk of FOLDER, each figure beside
 * the same work by bare SQLite (same table, same indexes, same flushes, no chain, no checks). ROWS
 * are in the log when lists are timed. Fails when a budget is missed. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "audit/checkpoint.h"
#include "audit/emit.h"
#include "audit/log.h"
#include "audit/query.h"
#include "audit/schema.h"
#include "audit/verify.h"
#include "shim/core/cleanup.h"
#include "shim/core/clock.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define SECONDS 1 /* of one measurement of durable appends */
#define ROUNDS  3 /* of each, ours and bare in turn; the best counts */
#define BATCH   1000
#define LISTS   21

static char dir[200], bare_path[256];
static struct audit_opts opts;
static uint8_t key[1][32];
static bool missed;

static double now_s(void)
{
	return (double)AQE_CLOCK_SYSTEM.mono_ns(AQE_CLOCK_SYSTEM.self) / 1e9;
}

/* Processor time: what is in memory is measured by it, so that other work on the machine does not
 * count. */
static double cpu_s(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

static void die(const char *what, const char *why)
{
	(void)fprintf(stderr, "bench_audit: %s: %s\n", what, why);
	_exit(1);
}

static void budget(bool met, const char *text)
{
	printf("  budget %s  %s\n", text, met ? "met" : "MISSED");
	missed = missed || !met;
}

/* A request as the egress service records it. */
static void fill(struct audit_row *r, unsigned n)
{
	static char text[BATCH][3][80];
	char(*t)[80] = text[n % BATCH];

	(void)snprintf(t[0], 80, "%064x", n / 50 * 2654435761U);
	(void)snprintf(t[1], 80, "agent-%u", n / 50 % 997);
	(void)snprintf(t[2], 80, "host%u.example.com", n % 31);
	*r = (struct audit_row)AUDIT_ROW_INIT(AUDIT_REQUEST,
					      n % 10 ? AUDIT_ALLOWED : AUDIT_BLOCKED);
	r->container = t[0];
	r->agent_id = t[1];
	r->agent_type = n % 5 ? "qe-test-generator" : "qe-security-scanner";
	r->domain = n % 50000 == 7 ? "rare.example.org" : t[2];
	r->port = 443;
	r->method = "CONNECT";
	r->reason = n % 10 ? NULL : "domain_not_allowed";
	r->rule = "*.example.com";
	r->status = 200;
	r->response_ns = 1000000 + n % 1000;
	r->bytes_in = n;
	r->bytes_out = n / 2;
	r->policy = "sha256:00b0f7c89f80f2e7d0fbc23349de2e3644427554abc758ac6d2958e7d3e256fe";
}

/* ---- bare SQLite ---- */

struct bare {
	sqlite3 *db;
	sqlite3_stmt *insert, *begin, *commit;
};

static void bare_open(struct bare *b, bool make)
{
	static const char INSERT[] = "INSERT INTO row (" AUDIT_COLUMNS ") VALUES "
				     "(NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";

	if (sqlite3_open(bare_path, &b->db) != SQLITE_OK)
		die("open", sqlite3_errmsg(b->db));
	(void)sqlite3_busy_timeout(b->db, 10000);
	if (make &&
	    (sqlite3_exec(b->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL) != SQLITE_OK ||
	     sqlite3_exec(b->db, AUDIT_MIGRATIONS[0], NULL, NULL, NULL) != SQLITE_OK))
		die("make", sqlite3_errmsg(b->db));
	if (sqlite3_exec(b->db, "PRAGMA synchronous = FULL", NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(b->db, INSERT, -1, &b->insert, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(b->db, "BEGIN IMMEDIATE", -1, &b->begin, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(b->db, "COMMIT", -1, &b->commit, NULL) != SQLITE_OK)
		die("prepare", sqlite3_errmsg(b->db));
}

static void bare_step(struct bare *b, sqlite3_stmt *s)
{
	if (sqlite3_step(s) != SQLITE_DONE)
		die("step", sqlite3_errmsg(b->db));
	sqlite3_reset(s);
}

static void bare_append(struct bare *b, const struct audit_row *rows, size_t n)
{
	static const uint8_t hash[32];

	bare_step(b, b->begin);
	for (size_t i = 0; i < n; i++) {
		for (int at = 1; at < AUDIT_FIELDS_COUNT; at++) {
			const struct audit_field *f = &AUDIT_FIELDS[at];

			if (f->type == AUDIT_FIELD_TEXT || f->type == AUDIT_FIELD_JSON)
				sqlite3_bind_text(b->insert, at, audit_field_text(&rows[i], f), -1,
						  SQLITE_STATIC);
			else
				sqlite3_bind_int64(b->insert, at, audit_field_int(&rows[i], f));
		}
		sqlite3_bind_blob(b->insert, AUDIT_FIELDS_COUNT, hash, 32, SQLITE_STATIC);
		bare_step(b, b->insert);
	}
	bare_step(b, b->commit);
}

static void bare_close(struct bare *b)
{
	sqlite3_finalize(b->insert);
	sqlite3_finalize(b->begin);
	sqlite3_finalize(b->commit);
	sqlite3_close(b->db);
}

/* ---- durable appends ---- */

enum how { BARE, KEPT_OPEN, OPENED_EACH_TIME };

/* One writer for SECONDS; how many rows it stored. */
static unsigned write_rows(enum how how, size_t many)
{
	static struct audit_row rows[BATCH];
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	struct bare b;
	double end = now_s() + SECONDS;
	unsigned n = 0;
	int rc = 0;

	if (how == BARE)
		bare_open(&b, false);
	else if (how == KEPT_OPEN)
		rc = audit_open(&opts, &log, &e);
	while (rc == 0 && now_s() < end) {
		for (size_t i = 0; i < many; i++)
			fill(&rows[i], n + (unsigned)i);
		if (how == BARE)
			bare_append(&b, rows, many);
		else if (how == KEPT_OPEN)
			rc = audit_append_many(log, rows, many, &e);
		else
			rc = audit_record(&opts, rows, many, &e);
		n += (unsigned)many;
	}
	if (rc)
		die("append", e.text);
	if (how == BARE)
		bare_close(&b);
	return n;
}

/* Rows a second of `writers` processes at once. */
static double rate(enum how how, unsigned writers, size_t many)
{
	unsigned total = 0, n;
	int fd[2];

	if (pipe(fd) != 0)
		die("pipe", "");
	for (unsigned i = 0; i < writers; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork", "");
		if (pid == 0) {
			n = write_rows(how, many);
			_exit(write(fd[1], &n, sizeof(n)) == sizeof(n) ? 0 : 1);
		}
	}
	(void)close(fd[1]);
	for (unsigned i = 0; i < writers; i++) {
		int status;

		if (read(fd[0], &n, sizeof(n)) != sizeof(n))
			die("writer", "failed");
		total += n;
		(void)wait(&status);
	}
	(void)close(fd[0]);
	return (double)total / SECONDS;
}

static const struct {
	const char *what;
	enum how how;
	unsigned writers;
	size_t many;
	double least; /* rows a second; 0: no budget */
} RATES[] = {
	{ "durable appends, 1 writer", KEPT_OPEN, 1, 1, 0 },
	{ "durable appends, 8 writers", KEPT_OPEN, 8, 1, 0 },
	{ "open, append, close, 1 process", OPENED_EACH_TIME, 1, 1, 0 },
	{ "open, append, close, 8 processes", OPENED_EACH_TIME, 8, 1, 0 },
	{ "group commit of 1,000", KEPT_OPEN, 1, BATCH, 20000 },
};

static void bench_appends(void)
{
	for (size_t i = 0; i < AQE_COUNT(RATES); i++) {
		double ours = 0, bare = 0;

		for (unsigned k = 0; k < ROUNDS; k++) {
			double a = rate(RATES[i].how, RATES[i].writers, RATES[i].many);
			double b = rate(BARE, RATES[i].writers, RATES[i].many);

			ours = a > ours ? a : ours;
			bare = b > bare ? b : bare;
		}

		printf("%-34s %9.0f rows/s  bare SQLite %9.0f  ratio %.2f", RATES[i].what, ours,
		       bare, ours / bare);
		if (RATES[i].least > 0)
			budget(ours >= RATES[i].least, ">= 20000");
		else
			putchar('\n');
	}
}

/* ---- reading ---- */

static void fill_up(struct audit_log *log, uint64_t want)
{
	static struct audit_row rows[BATCH];
	struct aqe_err e = AQE_ERR_INIT;
	int64_t have = 0;

	if (audit_last_seq(log, &have, &e) != 0)
		die("fill", e.text);
	while ((uint64_t)have < want) {
		for (unsigned i = 0; i < BATCH; i++)
			fill(&rows[i], (unsigned)have + i);
		if (audit_append_many(log, rows, BATCH, &e) != 0)
			die("fill", e.text);
		have = rows[BATCH - 1].seq;
	}
}

/* The limit: SQLite reading the same columns in the same order, and nothing else. */
static double bare_scan(void)
{
	sqlite3_stmt *s = NULL;
	sqlite3 *db = NULL;
	char path[256];
	double t = cpu_s();
	unsigned n = 0;

	(void)snprintf(path, sizeof(path), "%.200s/" AUDIT_DB_FILE, dir);
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, "SELECT " AUDIT_COLUMNS " FROM row ORDER BY seq", -1, &s,
			       NULL) != SQLITE_OK)
		die("scan", sqlite3_errmsg(db));
	while (sqlite3_step(s) == SQLITE_ROW) {
		for (int i = 0; i <= AUDIT_FIELDS_COUNT; i++) {
			if (sqlite3_column_type(s, i) != SQLITE_NULL)
				(void)sqlite3_column_bytes(s, i);
		}
		n++;
	}
	sqlite3_finalize(s);
	sqlite3_close(db);
	return n / (cpu_s() - t);
}

static void bench_verify(struct audit_log *log)
{
	struct audit_verify_opts o = { .keys = (const uint8_t(*)[32])key, .n_keys = 1 };
	struct aqe_err e = AQE_ERR_INIT;
	struct audit_verdict v;
	double t, bare = bare_scan();

	for (unsigned i = 0; i < 2; i++) {
		o.flags = i == 0 ? AUDIT_VERIFY_NO_INDEXES : 0;
		t = cpu_s();
		if (audit_verify(log, &o, &v, &e) != 0 || v.fault)
			die("verify", v.text);
		t = (double)v.rows / (cpu_s() - t);
		printf("%-34s %9.0f rows/cpu s  bare scan %9.0f  ratio %.2f",
		       i == 0 ? "verify rows and signatures" : "verify, and every index", t, bare,
		       t / bare);
		if (i == 0)
			budget(t >= 500000, ">= 500000");
		else
			putchar('\n');
	}
}

static int to_fd(void *arg, const void *p, size_t n, struct aqe_err *e)
{
	return aqe_fs_write_all(*(int *)arg, p, n, e);
}

static void bench_export(struct audit_log *log)
{
	struct audit_verify_opts o = { .keys = (const uint8_t(*)[32])key, .n_keys = 1 };
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct audit_export_result r;
	struct aqe_err e = AQE_ERR_INIT;
	struct audit_verdict v;
	char path[256];
	double t = cpu_s();
	int fd;

	f.limit = 200000;
	(void)snprintf(path, sizeof(path), "%s/export", dir);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 ||
	    audit_export(log, &f, AUDIT_JSONL, &(struct audit_sink){ to_fd, &fd }, &r, &e) != 0)
		die("export", e.text);
	printf("%-34s %9.0f rows/cpu s\n", "export as JSON lines", (double)r.rows / (cpu_s() - t));
	if (lseek(fd, 0, SEEK_SET) != 0)
		die("export", "seek");
	t = cpu_s();
	if (audit_verify_export(fd, &o, &v, &e) != 0 || v.fault)
		die("verify", v.text);
	printf("%-34s %9.0f rows/cpu s\n", "verify that export", (double)v.rows / (cpu_s() - t));
	(void)close(fd);
}

static int count(void *arg, const struct audit_row *r, struct aqe_err *e)
{
	(void)r;
	(void)e;
	++*(unsigned *)arg;
	return 0;
}

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static const struct {
	const char *what;
	struct audit_filter f;
} LIST[] = {
#define F(...)                                                  \
	{                                                       \
		.until_ns = INT64_MAX, .limit = 20, __VA_ARGS__ \
	}
	{ "newest", F(.order = AUDIT_NEWEST_FIRST) },
	{ "recent", F(.order = AUDIT_RECENT) },
	{ "oldest", F(.order = AUDIT_OLDEST_FIRST) },
	{ "by seq", F(.after_seq = 500) },
	{ "blocked", F(.order = AUDIT_RECENT, .action = AUDIT_BLOCKED) },
	{ "no such action", F(.order = AUDIT_RECENT, .action = AUDIT_RATE_LIMITED) },
	{ "requests", F(.order = AUDIT_RECENT, .kind = AUDIT_REQUEST) },
	{ "no such kind", F(.order = AUDIT_RECENT, .kind = AUDIT_WAIVER) },
	{ "rare domain", F(.order = AUDIT_RECENT, .domain = "rare.example.org") },
	{ "common domain", F(.order = AUDIT_RECENT, .domain = "host7.example.com") },
	{ "no such domain", F(.order = AUDIT_RECENT, .domain = "none") },
	{ "agent", F(.order = AUDIT_RECENT, .agent_id = "agent-500") },
	{ "agent type", F(.order = AUDIT_RECENT, .agent_type = "qe-security-scanner") },
	{ "no such container", F(.order = AUDIT_RECENT, .container = "none") },
	{ "rare domain, blocked",
	  F(.order = AUDIT_RECENT, .domain = "rare.example.org", .action = AUDIT_BLOCKED) },
	{ "common domain and type", F(.order = AUDIT_RECENT, .domain = "host7.example.com",
				      .agent_type = "qe-security-scanner") },
	{ "since the last second", F(.order = AUDIT_RECENT, .since_ns = 1) },
	{ "agent, since", F(.order = AUDIT_RECENT, .agent_id = "agent-500", .since_ns = 1) },
#undef F
};

static void bench_lists(struct audit_log *log)
{
	struct aqe_err e = AQE_ERR_INIT;
	double worst = 0;
	const char *which = "";

	for (size_t i = 0; i < AQE_COUNT(LIST); i++) {
		struct audit_filter f = LIST[i].f;
		double ms[LISTS];

		if (f.since_ns)
			f.since_ns =
				(AQE_CLOCK_SYSTEM.now_s(AQE_CLOCK_SYSTEM.self) - 1) * 1000000000;
		for (unsigned k = 0; k < LISTS; k++) {
			unsigned n = 0;
			double t = now_s();

			if (audit_query(log, &f, count, &n, &e) != 0)
				die("list", e.text);
			ms[k] = (now_s() - t) * 1e3;
		}
		qsort(ms, LISTS, sizeof(ms[0]), cmp_double);
		if (ms[LISTS / 2] > worst) {
			worst = ms[LISTS / 2];
			which = LIST[i].what;
		}
	}
	printf("%-34s %9.2f ms      (%zu filters; the slowest: %s)",
	       "list of 20 rows, worst median", worst, AQE_COUNT(LIST), which);
	budget(worst <= 20, "<= 20 ms");
}

int main(int argc, char **argv)
{
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	uint64_t rows = 1000000;
	struct bare b;

	if (argc < 2 || (argc > 2 && !aqe_parse_u64(argv[2], UINT32_MAX, &rows)))
		die("usage", "bench_audit FOLDER [ROWS]");
	(void)snprintf(dir, sizeof(dir), "%s", argv[1]);
	(void)snprintf(bare_path, sizeof(bare_path), "%s/bare.db", dir);
	opts.dir = dir;
	opts.mode = AUDIT_WRITE;
	opts.deadline_ms = 10000;
	if (audit_key_make(&opts, &e) != 0 || audit_key_public(&opts, key[0], &e) != 0)
		die("key", e.text);
	bare_open(&b, true);
	bare_close(&b);
	bench_appends();
	if (audit_open(&opts, &log, &e) != 0)
		die("open", e.text);
	fill_up(log, rows);
	bench_lists(log);
	bench_verify(log);
	bench_export(log);
	return missed ? 1 : 0;
}
