/* SPDX-License-Identifier: MIT */
/* Every allocation fails once, SQLite's among them: a call says so and has done nothing, or has
 * done all of it; what it hands out is whole; the log proves afterwards, and takes rows. */
#include <sqlite3.h>
#include <sys/mman.h>

#include "audit/emit.h"
#include "audit/import.h"
#include "audit/lost.h"
#include "audit/prune.h"
#include "audit/query.h"
#include "audit/stats.h"
#include "shim/core/arena.h"
#include "shim/core/text.h"
#include "tests/fakes/fake_alloc.h"
#include "tests/unit/audit_fixture.h"

#define ROWS     6     /* of the log that every round begins with, */
#define ALL      7     /* and one about lost ones */
#define MAX      20000 /* far more allocations than any call makes */
#define FILE_MAX ((size_t)1 << 20)

/* ---- SQLite's allocator ---- */

static sqlite3_mem_methods sqlite_own;

static void *lite_malloc(int n)
{
	return fake_alloc_fails() ? NULL : sqlite_own.xMalloc(n);
}

static void *lite_realloc(void *p, int n)
{
	return fake_alloc_fails() ? NULL : sqlite_own.xRealloc(p, n);
}

/* Before the first use of SQLite. */
static bool hook_sqlite(void)
{
	sqlite3_mem_methods m;

	if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite_own) != SQLITE_OK)
		return false;
	m = sqlite_own;
	m.xMalloc = lite_malloc;
	m.xRealloc = lite_realloc;
	return sqlite3_config(SQLITE_CONFIG_MALLOC, &m) == SQLITE_OK && sqlite3_initialize() == 0;
}

/* ---- the log that every round begins with ---- */

static const char *const FILES[] = { "audit.db", "audit.db-wal", "lost",  "spool",
				     "key",      "key.pub",      "export" };
static struct aqe_buf kept[AQE_COUNT(FILES)]; /* as they were */
static struct aqe_buf out;                    /* what a call hands out, as text */
static struct audit_opts quick;               /* of the log, as calls open it */

static void keep_files(void)
{
	char path[300];

	for (size_t i = 0; i < AQE_COUNT(FILES); i++) {
		AQE_AUTO_FD int fd = -1;

		kept[i] = (struct aqe_buf)AQE_BUF_INIT(FILE_MAX);
		(void)snprintf(path, sizeof(path), "%s/%s", log_dir, FILES[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) /* SQLite's log may have been taken in */
			ck_assert_ok(aqe_fs_read_fd(fd, &kept[i], &err), err);
	}
}

/* The counter of lost rows before they were told. */
static char pending[8192];
static size_t n_pending;

static void keep_pending(void)
{
	char path[300];
	AQE_AUTO_FD int fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/lost", log_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, pending, sizeof(pending));
	ck_assert_int_gt(n, 0);
	n_pending = (size_t)n;
}

static void restore(void)
{
	AQE_AUTO_FD int dir = -1;

	ck_assert_ok(aqe_fs_remove_tree(top, "audit", &err), err);
	ck_assert_int_eq(mkdirat(top, "audit", 0700), 0);
	dir = openat(top, "audit", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < AQE_COUNT(FILES); i++) {
		AQE_AUTO_FD int fd = -1;

		if (kept[i].len == 0)
			continue;
		fd = openat(dir, FILES[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		ck_assert_ok(aqe_fs_write_all(fd, kept[i].p, kept[i].len, &err), err);
	}
}

static int to_out(void *arg, const void *p, size_t n, struct aqe_err *e)
{
	(void)arg;
	(void)e;
	return aqe_buf_add(&out, p, n);
}

static void make_log(void)
{
	const struct audit_filter all = AUDIT_FILTER_INIT;
	const struct audit_sink sink = { to_out, NULL };
	char path[300];
	AQE_AUTO_FD int fd = -1;

	setup_log();
	out = (struct aqe_buf)AQE_BUF_INIT(FILE_MAX);
	for (size_t i = 0; i < FILE_MAX / 2; i++) /* no allocation while a call is watched */
		(void)aqe_buf_putc(&out, ' ');
	aqe_buf_clear(&out);
	opts.sign_every = 4;
	open_again(AUDIT_WRITE);
	make_key();
	add_rows(ROWS - 1);
	ck_assert_ok(audit_lost_add(&opts, 2, "disk full", &err), err);
	keep_pending();
	(void)add_row(full_row(ROWS - 1)); /* after the row about them */
	ck_assert_ok(audit_export(lg, &all, AUDIT_JSONL, &sink, NULL, &err), err);
	(void)snprintf(path, sizeof(path), "%s/export", log_dir);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_ok(aqe_fs_write_all(fd, out.p, out.len, &err), err);
	audit_close(lg);
	lg = NULL;
	quick = opts;
	quick.flags = AUDIT_NO_FLUSH;
	keep_files();
}

static void done_log(void)
{
	for (size_t i = 0; i < AQE_COUNT(FILES); i++)
		aqe_buf_done(&kept[i]);
	aqe_buf_done(&out);
	teardown_log();
}

static void open_log(enum audit_mode mode)
{
	quick.mode = mode;
	ck_assert_ok(audit_open(&quick, &lg, &err), err);
}

/* ---- the calls ---- */

static struct audit_row row_of(unsigned i)
{
	struct audit_row r = full_row(i);

	r.kind = AUDIT_REFUSAL;
	r.action = AUDIT_REFUSED;
	r.domain = r.path = r.method = NULL;
	r.port = AUDIT_NONE;
	return r;
}

static int do_open(struct aqe_err *e)
{
	quick.mode = AUDIT_WRITE;
	return audit_open(&quick, &lg, e);
}

static int do_append(struct aqe_err *e)
{
	struct audit_row r = row_of(1);
	int rc = audit_append(lg, &r, e);

	(void)fake_alloc_disarm(); /* check allocates too */
	ck_assert_int_eq(rc == 0, r.seq > 0);
	return rc;
}

static int do_append_many(struct aqe_err *e)
{
	struct audit_row r[3] = { row_of(1), row_of(2), row_of(3) };

	return audit_append_many(lg, r, 3, e);
}

static int do_record(struct aqe_err *e)
{
	struct audit_row r = row_of(1);
	struct audit_opts o = quick;

	return audit_record(&o, &r, 1, e);
}

static int do_record_spooled(struct aqe_err *e)
{
	struct audit_row r[2] = { row_of(1), row_of(2) };
	struct audit_opts o = quick;

	o.flags |= AUDIT_SPOOL;
	return audit_record(&o, r, 2, e);
}

static int do_checkpoint(struct aqe_err *e)
{
	struct audit_point p;
	int rc = audit_checkpoint(lg, &p, e);

	(void)fake_alloc_disarm();
	ck_assert(rc != 0 || audit_point_verify(&p));
	return rc;
}

static int do_head(struct aqe_err *e)
{
	struct audit_point p;
	int rc = audit_head(lg, &p, e);

	(void)fake_alloc_disarm();
	ck_assert(rc != 0 || (audit_point_verify(&p) && p.seq == ALL));
	return rc;
}

static int do_key_make(struct aqe_err *e)
{
	return audit_key_make(&quick, e);
}

static int tell_verdict(int rc, const struct audit_verdict *v)
{
	if (rc == 0)
		(void)aqe_buf_addf(&out, "%d %lld %llu %llu %lld %llu %x", (int)v->fault,
				   (long long)v->first_bad, (unsigned long long)v->rows,
				   (unsigned long long)v->points, (long long)v->signed_to,
				   (unsigned long long)v->lost, v->open);
	return rc;
}

static struct audit_point anchor;

static int do_verify(struct aqe_err *e)
{
	struct audit_verify_opts o = given;
	struct audit_verdict v;

	o.anchors = &anchor;
	o.n_anchors = 1;
	return tell_verdict(audit_verify(lg, &o, &v, e), &v);
}

static int do_verify_at(struct aqe_err *e)
{
	struct audit_verdict v;

	return tell_verdict(audit_verify_at(&quick, &given, &v, e), &v);
}

static int do_verify_export(struct aqe_err *e)
{
	char path[300];
	AQE_AUTO_FD int fd = -1;
	struct audit_verdict v;

	(void)snprintf(path, sizeof(path), "%s/export", log_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return tell_verdict(audit_verify_export(fd, &given, &v, e), &v);
}

static int export_as(enum audit_format format, struct aqe_err *e)
{
	const struct audit_filter all = AUDIT_FILTER_INIT;
	const struct audit_sink sink = { to_out, NULL };
	struct audit_export_result r;
	int rc = audit_export(lg, &all, format, &sink, &r, e);

	(void)fake_alloc_disarm();
	ck_assert(rc != 0 || r.rows == ALL);
	return rc;
}

static int do_jsonl(struct aqe_err *e)
{
	return export_as(AUDIT_JSONL, e);
}

static int do_json(struct aqe_err *e)
{
	return export_as(AUDIT_JSON, e);
}

static int do_csv(struct aqe_err *e)
{
	return export_as(AUDIT_CSV, e);
}

static int do_ocsf(struct aqe_err *e)
{
	return export_as(AUDIT_OCSF, e);
}

static int import_from(const char *name, uint64_t want, struct aqe_err *e)
{
	char path[300];
	uint64_t n = 0;
	int rc;

	(void)snprintf(path, sizeof(path), "%s/%s", log_dir, name);
	rc = audit_import(lg, path, &n, e);
	(void)fake_alloc_disarm();
	ck_assert(rc != 0 || n == want);
	return rc;
}

static int do_import(struct aqe_err *e)
{
	return import_from("export", ALL, e);
}

static int do_import_array(struct aqe_err *e)
{
	return import_from("old", 2, e);
}

static int do_prune(struct aqe_err *e)
{
	struct audit_prune_opts o = AUDIT_PRUNE_INIT;
	struct audit_prune_result r = { .rows = 0 };
	int rc;

	o.max_rows = 3;
	rc = audit_prune(lg, &o, &r, e);
	(void)fake_alloc_disarm();
	ck_assert(rc != 0 || r.rows == ALL - 2);
	return rc;
}

static int tell_row(void *arg, const struct audit_row *r, struct aqe_err *e)
{
	(void)arg;
	(void)e;
	audit_row_json(r, &out);
	return aqe_buf_ok(&out, NULL);
}

static int do_query(struct aqe_err *e)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	uint64_t n = 0;
	int rc;

	f.agent_id = "agent-1";
	f.order = AUDIT_RECENT;
	f.limit = 5;
	rc = audit_snapshot_begin(lg, e);
	if (rc == 0)
		rc = audit_query(lg, &f, tell_row, NULL, e);
	if (rc == 0)
		rc = audit_count(lg, &f, &n, e);
	audit_snapshot_end(lg);
	(void)fake_alloc_disarm();
	ck_assert(rc != 0 || n == 1);
	return rc;
}

static int do_stats(struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	const struct audit_filter all = AUDIT_FILTER_INIT;
	struct audit_bucket buckets[4] = { { .by_kind = { 0 } } };
	const struct audit_series s = { 0, INT64_MAX / 4, buckets, 4 };
	struct audit_stats st;
	int rc = a ? audit_stats(lg, &all, a, &st, e)
		   : aqe_err_set(e, AQE_E_NOMEM, 0, "the test's own");

	if (rc == 0)
		rc = audit_series(lg, &all, &s, e);
	if (rc)
		return rc;
	for (size_t i = 0; i < st.domains.n; i++)
		(void)aqe_buf_addf(&out, "%s=%u ", st.domains.v[i].name,
				   (unsigned)st.domains.v[i].total);
	for (size_t i = 0; i < st.rules.n; i++)
		(void)aqe_buf_addf(&out, "%s ", st.rules.v[i].name);
	(void)aqe_buf_addf(&out, "%u %u %u %u", (unsigned)st.lost, (unsigned)st.total,
			   (unsigned)st.timed, (unsigned)buckets[0].requests[AUDIT_ALLOWED]);
	return 0;
}

static int tell_point(void *arg, const struct audit_point *p, struct aqe_err *e)
{
	(void)arg;
	(void)e;
	audit_point_emit(p, &out);
	return aqe_buf_ok(&out, NULL);
}

static int do_points(struct aqe_err *e)
{
	return audit_points(lg, tell_point, NULL, e);
}

/* ---- what they begin with ---- */

static void with_nothing(void)
{
}

static void with_writer(void)
{
	open_log(AUDIT_WRITE);
}

static void with_reader(void)
{
	open_log(AUDIT_READ);
}

static void with_lost(void)
{
	ck_assert_ok(audit_lost_add(&quick, 3, "disk full", &err), err);
	open_log(AUDIT_WRITE);
}

/* As after a crash between the row about them and the counter. */
static void with_lost_told(void)
{
	AQE_AUTO_FD int fd = openat(top, "audit/lost", O_WRONLY | O_CLOEXEC);

	ck_assert_int_eq(write(fd, pending, n_pending), (ssize_t)n_pending);
	open_log(AUDIT_WRITE);
}

static void with_spooled(void)
{
	struct audit_row r = row_of(5);
	struct audit_opts o = quick;

	o.flags |= AUDIT_SPOOL;
	ck_assert_ok(audit_record(&o, &r, 1, &err), err);
}

static void with_no_log(void)
{
	ck_assert_ok(aqe_fs_remove_tree(top, "audit", &err), err);
}

static void with_anchor(void)
{
	open_log(AUDIT_WRITE);
	ck_assert_ok(audit_head(lg, &anchor, &err), err);
}

static void with_old(void)
{
	static const char TEXT[] =
		"[{\"id\":\"a1\",\"timestamp\":\"2024-01-31T23:59:59.123Z\",\"agentId\":\"a\","
		"\"agentType\":\"t\",\"domain\":\"x.example\",\"action\":\"blocked\",\"reason\":"
		"\"domain_not_allowed\",\"metadata\":{\"k\":[1,\"two\"]}},{\"timestamp\":"
		"1700000000000,\"action\":\"allowed\",\"responseTimeMs\":1.5}]";

	put("audit/old", TEXT, 0600);
	open_log(AUDIT_WRITE);
}

static const struct call {
	const char *name;
	void (*with)(void);
	int (*call)(struct aqe_err *e);
	enum { READS, WRITES, MAKES } does; /* MAKES: a log where none was */
	uint64_t adds;                      /* rows */
} CALLS[] = {
	{ "open", with_nothing, do_open, WRITES, 0 },
	{ "open: rows in the spool", with_spooled, do_open, WRITES, 1 },
	{ "append", with_writer, do_append, WRITES, 1 },
	{ "append_many", with_writer, do_append_many, WRITES, 3 },
	{ "append: lost rows to report", with_lost, do_append, WRITES, 1 },
	{ "append: lost rows that were reported", with_lost_told, do_append, WRITES, 1 },
	{ "record: spool", with_nothing, do_record_spooled, WRITES, 2 },
	{ "record: behind the spool", with_spooled, do_record, WRITES, 2 },
	{ "checkpoint", with_writer, do_checkpoint, WRITES, 0 },
	{ "head", with_writer, do_head, READS, 0 },
	{ "key_make", with_no_log, do_key_make, MAKES, 0 },
	{ "verify", with_anchor, do_verify, READS, 0 },
	{ "verify_at", with_nothing, do_verify_at, READS, 0 },
	{ "verify_export", with_nothing, do_verify_export, READS, 0 },
	{ "export jsonl", with_reader, do_jsonl, READS, 0 },
	{ "export json", with_reader, do_json, READS, 0 },
	{ "export csv", with_reader, do_csv, READS, 0 },
	{ "export ocsf", with_reader, do_ocsf, READS, 0 },
	{ "import", with_writer, do_import, WRITES, ROWS },
	{ "import: an array", with_old, do_import_array, WRITES, 2 },
	{ "prune", with_writer, do_prune, WRITES, 0 },
	{ "query", with_reader, do_query, READS, 0 },
	{ "stats", with_reader, do_stats, READS, 0 },
	{ "points", with_reader, do_points, READS, 0 },
};

/* ---- the loop ---- */

/* The header's and trailer's words that differ from call to call. */
static void blank(char *text, const char *name)
{
	for (char *p = strstr(text, name); p; p = strstr(p, name)) {
		p += strlen(name);
		while (*p && *p != '"')
			*p++ = '#';
	}
}

static void mask_times(void)
{
	static const char *const NAMES[] = { "\"made\":\"", "\"sha256\":\"", "\"sig\":\"" };

	if (!out.p)
		return;
	out.p[out.len] = '\0';
	for (size_t i = 0; i < AQE_COUNT(NAMES); i++)
		blank(out.p, NAMES[i]);
}

/* Rows of the log that are neither of the first ones nor about the log itself. */
static uint64_t added(uint64_t *ret_system)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	uint64_t system = 0;
	int64_t last = 0;

	ck_assert_ok(audit_last_seq(lg, &last, &err), err);
	f.kind = AUDIT_SYSTEM;
	ck_assert_ok(audit_count(lg, &f, &system, &err), err);
	*ret_system = system - 1;
	return (uint64_t)last - ROWS - system;
}

/* The log takes another row, proves, and has the rows it should have. */
static void look(const struct call *c, int rc, unsigned n)
{
	const uint64_t waited = c->with == with_spooled ? 1 : 0;
	struct audit_row r = row_of(9);
	struct audit_verdict v;
	uint64_t rows, system = 0;

	open_log(AUDIT_WRITE);
	ck_assert_ok(audit_append(lg, &r, &err), err);
	given.n_keys = audit_key_public(&quick, given_keys[0], NULL) == 0; /* may not be made */
	ck_assert_ok(audit_verify(lg, &given, &v, &err), err);
	ck_assert_good(v);
	rows = c->does == MAKES ? 0 : added(&system) - 1;
	if (c->with == with_lost_told) /* never twice; a call that failed is one itself */
		ck_assert_uint_eq(system, rc ? 1 : 0);
	if (rc == 0)
		ck_assert_msg(rows == c->adds, "%s, allocation %u: %d rows", c->name, n, (int)rows);
	else
		ck_assert_msg(rows == 0 || rows == waited,
			      "%s, allocation %u: %d rows in spite of %d", c->name, n, (int)rows,
			      rc);
	audit_close(lg);
	lg = NULL;
}

/* One round with the n-th allocation failing (0: none); false when there was no n-th. */
static bool once(const struct call *c, unsigned n, const char *want)
{
	struct aqe_err e = AQE_ERR_INIT;
	bool failed;
	int rc;

	if (c->does != READS || n == 0)
		restore();
	c->with();
	aqe_buf_clear(&out);
	fake_alloc_arm(n);
	rc = c->call(&e);
	failed = fake_alloc_disarm();
	mask_times();
	if (rc)
		ck_assert_msg(rc == (int)e.code && rc == AQE_E_NOMEM && e.text[0],
			      "%s, allocation %u: %d, but %s '%s'", c->name, n, rc,
			      aqe_code_name(e.code), e.text);
	else if (want)
		ck_assert_msg(aqe_str_eq(aqe_buf_str(&out), want), "%s, allocation %u: %.200s",
			      c->name, n, aqe_buf_str(&out));
	ck_assert(failed || rc == 0);
	audit_close(lg);
	lg = NULL;
	if (c->does == READS)
		return failed;
	look(c, rc, n);
	return failed;
}

START_TEST(call__is_done_whole_or_not_at_all)
{
	const struct call *c = &CALLS[_i];
	AQE_AUTO_FREE char *want = NULL;
	unsigned n;

	(void)once(c, 0, NULL);
	want = strdup(aqe_buf_str(&out));
	for (n = 1; n < MAX && once(c, n, want); n++)
		;
	ck_assert_uint_gt(n, 1);
	ck_assert_uint_lt(n, MAX);
	if (getenv("AQE_TELL"))
		(void)fprintf(stderr, "%s: %u allocations\n", c->name, n - 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("audit_alloc");
	TCase *t = tcase_create("alloc");

	if (!hook_sqlite())
		return EXIT_FAILURE;
	tcase_set_timeout(t, 300);
	tcase_add_checked_fixture(t, make_log, done_log);
	tcase_add_loop_test(t, call__is_done_whole_or_not_at_all, 0, (int)AQE_COUNT(CALLS));
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
