/* SPDX-License-Identifier: MIT */
/* The claim itself: no byte of a stored field and no place of a row can change unseen. */
#include "audit/verify.h"

#include "audit/encode.h"
#include "shim/core/sha256.h"
#include "tests/unit/audit_fixture.h"
#include "tests/unit/audit_tamper.h"

#define ROWS 100
#ifdef __SANITIZE_ADDRESS__ /* a part of it: the sanitizers look for other things, and slowly */
#define EDITS   100
#define ENCODED 5
#define TENTHS  1
#else
#define EDITS   1000
#define ENCODED ROWS
#define TENTHS  10
#endif

static void setup_judge(void)
{
	setup_log();
	memset(&given, 0, sizeof(given));
	given.keys = (const uint8_t(*)[32])given_keys;
	opts.flags = AUDIT_NO_FLUSH; /* a hundred rows a case, and no power cut to fear */
	open_again(AUDIT_WRITE);
	add_rows(ROWS);
}

/* ---- every byte, in the database ---- */

/* One change of one stored value; false when it is impossible: another row has that number. */
static bool put_value(sqlite3 *db, int column, int64_t seq, int type, const void *p, int n)
{
	char sql[120];
	sqlite3_stmt *s = NULL;
	int64_t v;
	int rc;

	(void)snprintf(sql, sizeof(sql), "UPDATE row SET %s = ? WHERE seq = ?",
		       column < AUDIT_FIELDS_COUNT ? AUDIT_FIELDS[column].name : "hash");
	ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
	if (type == SQLITE_INTEGER) {
		memcpy(&v, p, sizeof(v));
		sqlite3_bind_int64(s, 1, v);
	} else if (type == SQLITE_TEXT) {
		sqlite3_bind_text(s, 1, p, n, SQLITE_TRANSIENT);
	} else {
		sqlite3_bind_blob(s, 1, p, n, SQLITE_TRANSIENT);
	}
	sqlite3_bind_int64(s, 2, seq);
	rc = sqlite3_step(s);
	ck_assert(rc == SQLITE_DONE || (rc == SQLITE_CONSTRAINT && column == 0));
	sqlite3_finalize(s);
	return rc == SQLITE_DONE;
}

/* The value of a column of a row as bytes; its SQLite type. */
static int get_value(sqlite3 *db, int column, int64_t seq, uint8_t *p, int *n)
{
	sqlite3_stmt *s = NULL;
	int type;
	int64_t v;

	ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT " AUDIT_COLUMNS " FROM row WHERE seq = ?",
					    -1, &s, NULL),
			 SQLITE_OK);
	sqlite3_bind_int64(s, 1, seq);
	ck_assert_int_eq(sqlite3_step(s), SQLITE_ROW);
	type = sqlite3_column_type(s, column);
	if (type == SQLITE_INTEGER) {
		v = sqlite3_column_int64(s, column);
		*n = sizeof(v);
		memcpy(p, &v, sizeof(v));
	} else if (type != SQLITE_NULL) {
		*n = sqlite3_column_bytes(s, column);
		memcpy(p, sqlite3_column_blob(s, column), (size_t)*n);
	}
	sqlite3_finalize(s);
	return type;
}

static void judge_change(int column, int64_t seq, int at)
{
	struct audit_verdict v;
	/* a row whose number changed is missing where it was */
	bool named;

	ck_assert_ok(audit_verify(lg, &given, &v, &err), err);
	named = v.first_bad == seq || (column == 0 && v.first_bad <= seq);
	ck_assert_msg(v.fault != AUDIT_FAULT_NONE && named,
		      "row %lld column %d byte %d: %s at %lld", (long long)seq, column, at,
		      audit_fault_name(v.fault), (long long)v.first_bad);
}

/* Every byte of every field of the rows `_i`, `_i + 10`, ..., through the file. */
START_TEST(verify__every_byte_counts)
{
	uint8_t old[256], changed[256];
	sqlite3 *db = tamper_open();
	unsigned changes = 0;

	given.flags = AUDIT_VERIFY_NO_INDEXES;
	open_again(AUDIT_READ);
	for (int64_t seq = _i + 1; seq <= ROWS; seq += 10) {
		for (int column = 0; column <= AUDIT_FIELDS_COUNT; column++) {
			int n = 0, type = get_value(db, column, seq, old, &n);
			int64_t key = seq;

			for (int at = 0; type != SQLITE_NULL && at < n; at++, changes++) {
				memcpy(changed, old, (size_t)n);
				changed[at] ^= (uint8_t)(1U << (changes % 8));
				if (!put_value(db, column, seq, type, changed, n))
					continue;
				if (column == 0)
					memcpy(&key, changed, sizeof(key));
				judge_change(column, seq, at);
				ck_assert(put_value(db, column, key, type, old, n));
			}
		}
	}
	ck_assert_uint_gt(changes, 3000);
	sqlite3_close(db);
	ck_assert_good(judge());
}
END_TEST

/* NULL, empty and zero are three things. */
START_TEST(verify__absence_counts)
{
	struct audit_verdict v;
	sqlite3 *db = tamper_open();
	uint8_t old[256];
	char sql[120];

	open_again(AUDIT_READ);
	for (int i = 5; i < AUDIT_FIELDS_COUNT; i++) {
		bool text = AUDIT_FIELDS[i].type == AUDIT_FIELD_TEXT ||
			    AUDIT_FIELDS[i].type == AUDIT_FIELD_JSON;
		int n = 0, type = get_value(db, i, 5, old, &n);

		ck_assert_int_ne(type, SQLITE_NULL);
		for (int k = 0; k < 2; k++) {
			(void)snprintf(sql, sizeof(sql), "UPDATE row SET %s = %s WHERE seq = 5",
				       AUDIT_FIELDS[i].name,
				       k == 0 ? "NULL"
				       : text ? "''"
					      : "0");
			tamper_sql(db, sql);
			ck_assert_ok(audit_verify(lg, &given, &v, &err), err);
			ck_assert_fault_of(v, AUDIT_FAULT_HASH, 5);
			ck_assert(put_value(db, i, 5, type, old, n));
		}
	}
	sqlite3_close(db);
	ck_assert_good(judge());
}
END_TEST

/* ---- every value of every byte, in the encoding ---- */

START_TEST(row_hash__every_value_of_every_byte)
{
	static const uint8_t prev[32] = { 1, 2, 3 };
	static struct audit_enc c;
	struct audit_row r = full_row((unsigned)_i);
	uint8_t want[32], got[32];

	r.seq = _i + 1;
	r.time_ns = INT64_C(1700000000000000000) + _i;
	r.boot_ns = 12345;
	audit_enc_begin(&c, prev);
	audit_enc_row(&c, &r);
	aqe_sha256(c.buf, c.n, want);
	ck_assert(audit_row_hash(prev, &r, got));
	ck_assert_mem_eq(got, want, 32);
	for (size_t at = 0; at < c.n; at++) {
		for (unsigned change = 1; change < 256; change++) {
			c.buf[at] ^= (uint8_t)change;
			aqe_sha256(c.buf, c.n, got);
			c.buf[at] ^= (uint8_t)change;
			if (memcmp(got, want, 32) == 0) /* an assertion each would cost more */
				ck_abort_msg("byte %zu", at);
		}
	}
}
END_TEST

/* ---- random changes of structure ---- */

static uint64_t seed;

static unsigned pick(unsigned n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)((seed >> 33) % n);
}

static void sql_with(sqlite3 *db, const char *format, int64_t a, int64_t b)
{
	char *sql = sqlite3_mprintf(format, a, b);

	tamper_sql(db, sql);
	sqlite3_free(sql);
}

#define COLUMNS_BUT_SEQ                                                                            \
	"time_ns,boot_ns,kind,action,container,agent_id,agent_type,image,domain,port,method,path," \
	"reason,rule,status,response_ns,duration_ns,bytes_in,bytes_out,policy,waiver,meta,hash"

/* Each makes one change around rows `a` and `b`, a < b. All but the last leave the hashes alone. */
static void remove_one(sqlite3 *db, int64_t a, int64_t b)
{
	sql_with(db, "DELETE FROM row WHERE seq = %lld", a, b);
}
static void remove_span(sqlite3 *db, int64_t a, int64_t b)
{
	sql_with(db, "DELETE FROM row WHERE seq BETWEEN %lld AND %lld", a, b);
}
static void remove_and_close_up(sqlite3 *db, int64_t a, int64_t b)
{
	(void)b;
	sql_with(db, "DELETE FROM row WHERE seq = %lld", a, 0);
	sql_with(db, "UPDATE row SET seq = -seq + 1 WHERE seq > %lld", a, 0);
	sql_with(db, "UPDATE row SET seq = -seq WHERE seq < 0", 0, 0);
}
static void swap(sqlite3 *db, int64_t a, int64_t b)
{
	sql_with(db, "UPDATE row SET seq = -1 WHERE seq = %lld", a, b);
	sql_with(db, "UPDATE row SET seq = %lld WHERE seq = %lld", a, b);
	sql_with(db, "UPDATE row SET seq = %lld WHERE seq = -1", b, a);
}
static void double_over(sqlite3 *db, int64_t a, int64_t b)
{
	sql_with(db, "DELETE FROM row WHERE seq = %lld", b, 0);
	sql_with(db, "INSERT INTO row SELECT %lld," COLUMNS_BUT_SEQ " FROM row WHERE seq = %lld", b,
		 a);
}
/* A copy of row `a` before row `b`, all later ones moved up. */
static void insert_copy(sqlite3 *db, int64_t a, int64_t b)
{
	sql_with(db, "UPDATE row SET seq = -seq - 1 WHERE seq >= %lld", b, 0);
	sql_with(db, "UPDATE row SET seq = -seq WHERE seq < 0", 0, 0);
	sql_with(db, "INSERT INTO row SELECT %lld," COLUMNS_BUT_SEQ " FROM row WHERE seq = %lld", b,
		 a);
}
static void cut_tail(sqlite3 *db, int64_t a, int64_t b)
{
	sql_with(db, "DELETE FROM row WHERE seq >= %lld", b, a);
	sql_with(db, "DELETE FROM point WHERE seq >= %lld", b, a);
}
static void cut_beginning(sqlite3 *db, int64_t a, int64_t b)
{
	sql_with(db, "DELETE FROM row WHERE seq <= %lld", a, b);
}
/* The clever one: change, and write all hashes anew. With `b` odd the checkpoints go too. */
static void edit_and_rechain(sqlite3 *db, int64_t a, int64_t b)
{
	sql_with(db, "UPDATE row SET domain = 'harmless.example.com' WHERE seq = %lld", a, b);
	rechain_db(db, a);
	if (b % 2)
		sql_with(db, "DELETE FROM point WHERE seq >= %lld", a, 0);
}
static void remove_and_rechain(sqlite3 *db, int64_t a, int64_t b)
{
	remove_and_close_up(db, a, b);
	rechain_db(db, a);
	if (b % 2)
		sql_with(db, "DELETE FROM point", 0, 0);
}

static const struct {
	const char *name;
	void (*make)(sqlite3 *db, int64_t a, int64_t b);
	bool from_one; /* a checkpoint or anchor knows only "somewhere after the last good one" */
} CHANGES[] = {
	{ "remove one", remove_one, false },
	{ "remove a span", remove_span, false },
	{ "remove and close up", remove_and_close_up, false },
	{ "swap", swap, false },
	{ "double", double_over, false },
	{ "insert a copy", insert_copy, false },
	{ "cut the tail", cut_tail, false },
	{ "cut the beginning", cut_beginning, false },
	{ "edit and rechain", edit_and_rechain, true },
	{ "remove and rechain", remove_and_rechain, true },
};

static void copy_database(sqlite3 *to, sqlite3 *from)
{
	sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");

	ck_assert_ptr_nonnull(b);
	ck_assert_int_eq(sqlite3_backup_step(b, -1), SQLITE_DONE);
	ck_assert_int_eq(sqlite3_backup_finish(b), SQLITE_OK);
}

/* A tenth of the edits a case, each on the log as it was. */
START_TEST(verify__random_structure)
{
	struct audit_point head;
	struct audit_verdict v;
	sqlite3 *db, *saved;

	make_key();
	ck_assert_ok(audit_head(lg, &head, &err), err);
	given.anchors = &head;
	given.n_anchors = 1;
	given.flags = AUDIT_VERIFY_NO_INDEXES;
	ck_assert_good(judge());
	open_again(AUDIT_READ);
	db = tamper_open();
	ck_assert_int_eq(sqlite3_open(":memory:", &saved), SQLITE_OK);
	copy_database(saved, db);
	seed = 0x5eed0000U + (unsigned)_i;
	for (unsigned i = 0; i < EDITS / 10; i++) {
		unsigned what = pick(AQE_COUNT(CHANGES));
		int64_t a = 1 + pick(ROWS - 1), b = a + 1 + pick((unsigned)(ROWS - a));

		tamper_sql(db, "BEGIN");
		CHANGES[what].make(db, a, b);
		tamper_sql(db, "COMMIT");
		ck_assert_ok(audit_verify(lg, &given, &v, &err), err);
		ck_assert_msg(v.fault != AUDIT_FAULT_NONE, "%s %lld %lld", CHANGES[what].name,
			      (long long)a, (long long)b);
		ck_assert_msg(CHANGES[what].from_one
				      ? v.first_bad == 1 || v.first_bad == ROWS + 1 ||
						v.first_bad == ROWS
				      : v.first_bad >= 1 && v.first_bad <= b + 1,
			      "%s %lld %lld: %s at %lld", CHANGES[what].name, (long long)a,
			      (long long)b, audit_fault_name(v.fault), (long long)v.first_bad);
		copy_database(db, saved);
		ck_assert_ok(audit_verify(lg, &given, &v, &err), err);
		ck_assert_good(v);
	}
	sqlite3_close(saved);
	sqlite3_close(db);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("audit_tamper");
	TCase *t = tcase_create("tamper");

	tcase_set_timeout(t, 300);
	tcase_add_checked_fixture(t, setup_judge, teardown_log);
	tcase_add_loop_test(t, verify__every_byte_counts, 0, TENTHS);
	tcase_add_test(t, verify__absence_counts);
	tcase_add_loop_test(t, verify__random_structure, 0, 10);
	suite_add_tcase(s, t);
	t = tcase_create("encoding");
	tcase_set_timeout(t, 300);
	tcase_add_loop_test(t, row_hash__every_value_of_every_byte, 0, ENCODED);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
