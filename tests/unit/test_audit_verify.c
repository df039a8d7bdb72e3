/* SPDX-License-Identifier: MIT */
/* Whatever is done to a stored log is found, and an honest one is never suspected. */
#include "audit/verify.h"

#include "audit/prune.h"
#include "audit/schema.h"
#include "shim/core/text.h"
#include "tests/unit/audit_fixture.h"
#include "tests/unit/audit_tamper.h"

/* ---- honest logs ---- */

START_TEST(verify__empty)
{
	struct audit_verdict v = judge();

	ck_assert_good(v);
	ck_assert_uint_eq(v.rows, 0);
	ck_assert_uint_eq(v.open & AUDIT_OPEN_NEVER_SIGNED, AUDIT_OPEN_NEVER_SIGNED);
	ck_assert_uint_eq(v.open & AUDIT_OPEN_NO_KEY, AUDIT_OPEN_NO_KEY);
	ck_assert_uint_eq(v.open & AUDIT_OPEN_NO_ANCHOR, AUDIT_OPEN_NO_ANCHOR);
}
END_TEST

START_TEST(verify__rows)
{
	struct audit_verdict v;

	add_rows(10);
	v = judge();
	ck_assert_good(v);
	ck_assert_uint_eq(v.rows, 10);
	ck_assert_int_eq(v.first_seq, 1);
	ck_assert_int_eq(v.last_seq, 10);
}
END_TEST

START_TEST(verify__signed)
{
	struct audit_verdict v;
	struct audit_point head;

	make_key();
	v = judge();
	ck_assert_good(v);
	add_rows(10);
	v = judge();
	ck_assert_good(v);
	ck_assert_uint_eq(v.points, 1);
	ck_assert_uint_eq(v.open, AUDIT_OPEN_NO_ANCHOR | AUDIT_OPEN_UNSIGNED_TAIL);
	ck_assert_ok(audit_checkpoint(lg, &head, &err), err);
	given.anchors = &head;
	given.n_anchors = 1;
	v = judge();
	ck_assert_good(v);
	ck_assert_int_eq(v.signed_to, 10);
	ck_assert_int_eq(v.anchored_to, 10);
	ck_assert_uint_eq(v.open, 0);
	add_rows(1);
	v = judge();
	ck_assert_good(v);
	ck_assert_uint_eq(v.open, AUDIT_OPEN_UNSIGNED_TAIL | AUDIT_OPEN_UNANCHORED_TAIL);
}
END_TEST

/* Checkpoints come by themselves. */
START_TEST(verify__signed_every_so_many_rows)
{
	static struct audit_row rows[100];
	struct audit_verdict v;

	make_key();
	for (unsigned i = 0; i < 100; i++)
		rows[i] = (struct audit_row)AUDIT_ROW_INIT(AUDIT_STOP, AUDIT_ALLOWED);
	for (unsigned i = 0; i < 25; i++) {
		ck_assert_ok(audit_append_many(lg, rows, 100, &err), err);
		for (unsigned k = 0; k < 100; k++)
			rows[k].time_ns = 0;
	}
	v = judge();
	ck_assert_good(v);
	ck_assert_uint_eq(v.points, 3); /* 0, 1000, 2000 */
	ck_assert_int_eq(v.signed_to, 2000);
}
END_TEST

/* tale PR#1405: what was there before the chain was signed is no fault. */
START_TEST(verify__begun_before_the_key)
{
	struct audit_verdict v;

	add_rows(10);
	ck_assert_good(judge());
	make_key();
	v = judge();
	ck_assert_good(v);
	ck_assert_int_eq(v.signed_to, 10);
	add_rows(10);
	ck_assert_good(judge());
}
END_TEST

static void copy_file(const char *from, const char *to)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)64 << 20);
	AQE_AUTO_FD int in = open(from, O_RDONLY | O_CLOEXEC);
	AQE_AUTO_FD int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(in, 0);
	ck_assert_int_ge(out, 0);
	ck_assert_ok(aqe_fs_read_fd(in, &b, &err), err);
	ck_assert_ok(aqe_fs_write_all(out, b.p, b.len, &err), err);
}

/* Copies the log, closed, into folder `name` beside it. */
static void copy_log(const char *name, char ret_dir[200])
{
	static const char *const FILES[] = { "audit.db", "audit.db-wal" };
	char from[256], to[256];

	full(name, ret_dir);
	ck_assert_int_eq(mkdir(ret_dir, 0700), 0);
	for (size_t i = 0; i < AQE_COUNT(FILES); i++) {
		(void)snprintf(from, sizeof(from), "%s/%s", log_dir, FILES[i]);
		(void)snprintf(to, sizeof(to), "%s/%s", ret_dir, FILES[i]);
		if (access(from, F_OK) == 0)
			copy_file(from, to);
	}
}

/* ai-memory-mcp#2955: another log, and an older copy put back, are judged by themselves. */
START_TEST(verify__second_and_restored)
{
	char old_dir[200], second_dir[200];
	struct audit_point head;
	struct audit_verdict v;

	make_key();
	add_rows(5);
	audit_close(lg);
	lg = NULL;
	copy_log("old", old_dir);
	open_again(AUDIT_WRITE);
	add_rows(5);
	ck_assert_ok(audit_head(lg, &head, &err), err);
	ck_assert_good(judge());
	opts.dir = old_dir;
	ck_assert_good(judge());
	/* only the anchor shows that it is old */
	given.anchors = &head;
	given.n_anchors = 1;
	v = judge();
	ck_assert_fault_of(v, AUDIT_FAULT_CUT, 6);
	ck_assert_ptr_nonnull(strstr(v.text, "older copy"));
	/* a log of its own, and the anchor of the other */
	full("second", second_dir);
	opts.dir = second_dir;
	open_again(AUDIT_WRITE);
	add_rows(3);
	given.n_keys = 0;
	ck_assert_fault_of(judge(), AUDIT_FAULT_OTHER_LOG, 0);
	given.n_anchors = 0;
	ck_assert_good(judge());
}
END_TEST

START_TEST(verify__copy_on_a_read_only_disk)
{
	char old_dir[200], path[256];
	int status = -1;
	pid_t child;

	add_rows(5);
	audit_close(lg);
	lg = NULL;
	/* sqlite3's own program would leave one file */
	tamper("PRAGMA wal_checkpoint(TRUNCATE)");
	copy_log("old", old_dir);
	(void)snprintf(path, sizeof(path), "%s/audit.db-wal", old_dir);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/audit.db", old_dir);
	ck_assert_int_eq(chmod(path, 0444), 0);
	ck_assert_int_eq(chmod(old_dir, 0555), 0);
	ck_assert_int_eq(chmod(root, 0755), 0);
	opts.dir = old_dir;
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		if (geteuid() == 0 && setuid(65534) != 0)
			_exit(2);
		_exit(judge().fault == AUDIT_FAULT_NONE ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(chmod(old_dir, 0755), 0);
}
END_TEST

/* systemd#27532: never suspicious of a log that is written to at the same time. */
START_TEST(verify__while_others_write)
{
	pid_t child[3];

	make_key();
	for (size_t i = 0; i < AQE_COUNT(child); i++) {
		child[i] = fork();
		ck_assert_int_ge(child[i], 0);
		if (child[i] == 0) {
			struct audit_log *mine = NULL;

			if (audit_open(&opts, &mine, NULL) != 0)
				_exit(1);
			for (unsigned n = 0; n < 3000; n++) {
				struct audit_row r = full_row(n);

				if (audit_append(mine, &r, NULL) != 0)
					_exit(2);
			}
			_exit(0);
		}
	}
	given.flags = AUDIT_VERIFY_NO_INDEXES; /* what is looked at grows */
	for (unsigned i = 0; i < 40; i++)
		ck_assert_good(judge());
	for (size_t i = 0; i < AQE_COUNT(child); i++) {
		int status;

		ck_assert_int_eq(kill(child[i], SIGKILL), 0);
		ck_assert_int_eq(waitpid(child[i], &status, 0), child[i]);
		ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	}
	given.flags = 0;
	ck_assert_good(judge());
}
END_TEST

/* ---- single faults ---- */

static const struct {
	const char *sql;
	enum audit_fault fault;
	int64_t bad;
} EDITS[] = {
	{ "UPDATE row SET reason = 'changed' WHERE seq = 7", AUDIT_FAULT_HASH, 7 },
	{ "UPDATE row SET reason = NULL WHERE seq = 7", AUDIT_FAULT_HASH, 7 },
	{ "UPDATE row SET waiver = '' WHERE seq = 6", AUDIT_FAULT_HASH, 6 }, /* was NULL */
	{ "UPDATE row SET meta = meta || ' ' WHERE seq = 10", AUDIT_FAULT_HASH, 10 },
	{ "UPDATE row SET time_ns = time_ns + 1 WHERE seq = 1", AUDIT_FAULT_HASH, 1 },
	{ "UPDATE row SET hash = randomblob(32) WHERE seq = 4", AUDIT_FAULT_HASH, 4 },
	{ "UPDATE row SET hash = x'00' WHERE seq = 4", AUDIT_FAULT_TYPE, 4 },
	{ "UPDATE row SET port = -1 WHERE seq = 4", AUDIT_FAULT_TYPE, 4 },
	{ "UPDATE row SET kind = 0 WHERE seq = 4", AUDIT_FAULT_HASH, 4 },
	{ "UPDATE row SET kind = 99 WHERE seq = 4", AUDIT_FAULT_TYPE, 4 },
	{ "UPDATE row SET domain = domain || char(0) || 'x' WHERE seq = 4", AUDIT_FAULT_TYPE, 4 },
	{ "UPDATE row SET path = printf('%.3000c', 'x') WHERE seq = 4", AUDIT_FAULT_TYPE, 4 },
	{ "DELETE FROM row WHERE seq = 5", AUDIT_FAULT_SEQ, 5 },
	{ "DELETE FROM row WHERE seq = 1", AUDIT_FAULT_START, 1 },
	{ "DELETE FROM row WHERE seq BETWEEN 3 AND 6", AUDIT_FAULT_SEQ, 3 },
	{ "UPDATE row SET seq = 0 WHERE seq = 1", AUDIT_FAULT_SEQ, 1 },
	{ "UPDATE row SET seq = -5 WHERE seq = 5", AUDIT_FAULT_SEQ, 1 },
	{ "UPDATE row SET seq = 50 WHERE seq = 5", AUDIT_FAULT_SEQ, 5 },
	/* two rows change places */
	{ "UPDATE row SET seq = 99 WHERE seq = 5; UPDATE row SET seq = 5 WHERE seq = 6;"
	  "UPDATE row SET seq = 6 WHERE seq = 99",
	  AUDIT_FAULT_HASH, 5 },
	{ "UPDATE chain SET id = randomblob(32)", AUDIT_FAULT_HASH, 1 },
	{ "UPDATE chain SET created_ns = created_ns + 1", AUDIT_FAULT_HASH, 1 },
	{ "UPDATE chain SET id = x'00'", AUDIT_FAULT_CORRUPT, 1 },
	{ "DELETE FROM chain", AUDIT_FAULT_CORRUPT, 1 },
	{ "CREATE TABLE more (a)", AUDIT_FAULT_SCHEMA, 0 },
	{ "CREATE TABLE sqlit (a)", AUDIT_FAULT_SCHEMA, 0 },
	{ "CREATE TABLE zzz (a)", AUDIT_FAULT_SCHEMA, 0 },
	{ "CREATE VIEW v AS SELECT * FROM row", AUDIT_FAULT_SCHEMA, 0 },
	{ "CREATE INDEX more ON row (port)", AUDIT_FAULT_SCHEMA, 0 },
	{ "DROP INDEX row_domain", AUDIT_FAULT_SCHEMA, 0 },
	{ "DROP INDEX row_time", AUDIT_FAULT_SCHEMA, 0 },
	{ "DROP TABLE point", AUDIT_FAULT_SCHEMA, 0 },
	{ "ALTER TABLE row ADD COLUMN more TEXT", AUDIT_FAULT_SCHEMA, 0 },
	{ "CREATE TRIGGER t AFTER INSERT ON row BEGIN DELETE FROM row WHERE seq = new.seq; END",
	  AUDIT_FAULT_SCHEMA, 0 },
	{ "PRAGMA application_id = 1", AUDIT_FAULT_CORRUPT, 0 },
	{ "PRAGMA user_version = 99", AUDIT_FAULT_CORRUPT, 0 },
	/* a STRICT table that is none: types may then be wrong */
	{ "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'STRICT', '') "
	  "WHERE name = 'row'",
	  AUDIT_FAULT_SCHEMA, 0 },
	{ "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, "
	  "'domain IS NOT NULL', 'domain IS NULL') WHERE name = 'row_domain'",
	  AUDIT_FAULT_SCHEMA, 0 },
	{ "ANALYZE", AUDIT_FAULT_NONE, 0 },
	{ "UPDATE row SET reason = reason", AUDIT_FAULT_NONE, 0 },
};

START_TEST(verify__finds)
{
	add_rows(12);
	tamper(EDITS[_i].sql);
	ck_assert_fault_of(judge(), EDITS[_i].fault, EDITS[_i].bad);
}
END_TEST

/* A value of a wrong type in a STRICT table: written through a schema that is put back after. */
START_TEST(verify__finds_a_wrong_type)
{
	static const char *const CHANGES[] = {
		"UPDATE row SET port = '443' WHERE seq = 3",
		"UPDATE row SET port = 443.5 WHERE seq = 3",
		"UPDATE row SET domain = CAST(domain AS BLOB) WHERE seq = 3",
		"UPDATE row SET domain = x'00' WHERE seq = 3",
		"UPDATE row SET bytes_in = x'01' WHERE seq = 3",
		"UPDATE row SET hash = CAST(hex(hash) AS TEXT) WHERE seq = 3",
		"UPDATE row SET kind = 'request' WHERE seq = 3",
	};
	sqlite3 *db;

	add_rows(5);
	audit_close(lg);
	lg = NULL;
	db = tamper_open();
	tamper_sql(db, "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = "
		       "replace(replace(replace(sql, ' INTEGER', ''), ' TEXT', ''), ' STRICT', '') "
		       "WHERE name = 'row'; UPDATE sqlite_schema SET sql = replace(sql, "
		       "'seq PRIMARY', 'seq INTEGER PRIMARY') WHERE name = 'row'");
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	tamper(CHANGES[_i]);
	db = tamper_open();
	{
		sqlite3_stmt *s = NULL;

		tamper_sql(db, "PRAGMA writable_schema = ON");
		ck_assert_int_eq(sqlite3_prepare_v2(
					 db, "UPDATE sqlite_schema SET sql = ? WHERE name = 'row'",
					 -1, &s, NULL),
				 SQLITE_OK);
		for (size_t i = 0; i < AUDIT_OBJECTS_COUNT; i++) {
			if (strcmp(AUDIT_OBJECTS[i].name, "row") == 0)
				sqlite3_bind_text(s, 1, AUDIT_OBJECTS[i].sql, -1, SQLITE_STATIC);
		}
		ck_assert_int_eq(sqlite3_step(s), SQLITE_DONE);
		sqlite3_finalize(s);
	}
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	ck_assert_fault_of(judge(), AUDIT_FAULT_TYPE, 3);
}
END_TEST

/* A listing reads indexes: one that hides a row is found. */
START_TEST(verify__finds_a_lying_index)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct audit_verdict v;
	uint64_t n = 0;
	sqlite3 *db;

	add_rows(12);
	audit_close(lg);
	lg = NULL;
	/* the index becomes one of nothing, loses its entries, and looks as before */
	db = tamper_open();
	tamper_sql(db, "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, "
		       "'domain IS NOT NULL', 'domain IS NULL    ') WHERE name = 'row_domain'");
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	tamper("REINDEX row_domain");
	db = tamper_open();
	tamper_sql(db, "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, "
		       "'domain IS NULL    ', 'domain IS NOT NULL') WHERE name = 'row_domain'");
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	open_again(AUDIT_READ);
	f.domain = "api1.example.com";
	ck_assert_ok(audit_count(lg, &f, &n, &err), err);
	ck_assert_uint_eq(n, 0); /* the lie */
	v = judge();
	ck_assert_fault_of(v, AUDIT_FAULT_SCHEMA, 0);
	ck_assert_ptr_nonnull(strstr(v.text, "row_domain"));
	given.flags = AUDIT_VERIFY_NO_INDEXES;
	v = judge();
	ck_assert_good(v);
	ck_assert_uint_eq(v.open & AUDIT_OPEN_INDEXES, AUDIT_OPEN_INDEXES);
}
END_TEST

/* ---- points and anchors ---- */

static const struct {
	const char *sql;
	enum audit_fault fault;
	int64_t bad;
} POINT_EDITS[] = {
	{ "UPDATE point SET hash = randomblob(32) WHERE seq = 10", AUDIT_FAULT_SIGNATURE, 1 },
	{ "UPDATE point SET sig = randomblob(64) WHERE seq = 10", AUDIT_FAULT_SIGNATURE, 1 },
	{ "UPDATE point SET key = randomblob(32) WHERE seq = 10", AUDIT_FAULT_SIGNATURE, 1 },
	{ "UPDATE point SET time_ns = time_ns + 1 WHERE seq = 10", AUDIT_FAULT_SIGNATURE, 1 },
	{ "UPDATE point SET every = every + 1 WHERE seq = 10", AUDIT_FAULT_SIGNATURE, 1 },
	{ "UPDATE point SET seq = 9 WHERE seq = 10", AUDIT_FAULT_SIGNATURE, 1 },
	{ "UPDATE point SET seq = 99 WHERE seq = 10", AUDIT_FAULT_CUT, 13 },
	{ "UPDATE point SET kind = 2 WHERE seq = 10", AUDIT_FAULT_SIGNATURE, 1 },
	{ "UPDATE point SET kind = 3 WHERE seq = 10", AUDIT_FAULT_TYPE, 0 },
	{ "UPDATE point SET sig = x'00' WHERE seq = 10", AUDIT_FAULT_TYPE, 0 },
	{ "DELETE FROM point", AUDIT_FAULT_UNSIGNED, 1 },
	{ "DELETE FROM row WHERE seq > 9", AUDIT_FAULT_CUT, 10 },
	{ "DELETE FROM row", AUDIT_FAULT_CUT, 1 },
};

START_TEST(verify__finds_at_points)
{
	make_key();
	add_rows(10);
	ck_assert_ok(audit_checkpoint(lg, NULL, &err), err);
	add_rows(2);
	ck_assert_good(judge());
	tamper(POINT_EDITS[_i].sql);
	ck_assert_fault_of(judge(), POINT_EDITS[_i].fault, POINT_EDITS[_i].bad);
}
END_TEST

/* The tail is cut and the checkpoints with it: only an anchor knows. */
START_TEST(verify__cut_tail)
{
	struct audit_point head;

	make_key();
	add_rows(10);
	ck_assert_ok(audit_head(lg, &head, &err), err);
	tamper("DELETE FROM row WHERE seq > 7");
	ck_assert_good(judge());
	given.anchors = &head;
	given.n_anchors = 1;
	ck_assert_fault_of(judge(), AUDIT_FAULT_CUT, 8);
}
END_TEST

/* darbaan PR#246: a chain without a key can be written anew. The checkpoint knows; without it, the
 * anchor. */
START_TEST(verify__rewritten_chain)
{
	struct audit_point head;
	struct audit_verdict v;

	make_key();
	add_rows(10);
	ck_assert_ok(audit_checkpoint(lg, &head, &err), err);
	add_rows(2);
	tamper("UPDATE row SET action = 1, reason = 'fine' WHERE seq = 4");
	ck_assert_fault_of(judge(), AUDIT_FAULT_HASH, 4);
	rechain(4);
	v = judge();
	ck_assert_fault_of(v, AUDIT_FAULT_POINT, 1);
	ck_assert_ptr_nonnull(strstr(v.text, "rewritten"));
	/* what nobody signed or anchored cannot be known, and that is said */
	given.n_keys = 0;
	tamper("DELETE FROM point");
	v = judge();
	ck_assert_good(v);
	ck_assert_uint_eq(v.open,
			  AUDIT_OPEN_NO_KEY | AUDIT_OPEN_NO_ANCHOR | AUDIT_OPEN_NEVER_SIGNED);
	given.anchors = &head;
	given.n_anchors = 1;
	ck_assert_fault_of(judge(), AUDIT_FAULT_ANCHOR, 1);
}
END_TEST

START_TEST(verify__wrong_key)
{
	make_key();
	add_rows(3);
	given_keys[0][7] ^= 1;
	ck_assert_fault_of(judge(), AUDIT_FAULT_SIGNATURE, 1);
	given.n_keys = 2;
	ck_assert_ok(audit_key_public(&opts, given_keys[1], &err), err);
	ck_assert_good(judge());
}
END_TEST

/* Checkpoints that are missing in the middle of a signed log. */
START_TEST(verify__promise_of_the_next_point)
{
	opts.sign_every = 4;
	open_again(AUDIT_WRITE);
	make_key();
	add_rows(20);
	ck_assert_good(judge());
	tamper("DELETE FROM point WHERE seq > 8");
	ck_assert_fault_of(judge(), AUDIT_FAULT_UNSIGNED, 9);
	tamper("DELETE FROM point WHERE seq > 0");
	ck_assert_fault_of(judge(), AUDIT_FAULT_UNSIGNED, 1);
}
END_TEST

START_TEST(verify__anchors)
{
	struct audit_point p[4];

	make_key();
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_ok(audit_head(lg, &p[3 - i], &err), err);
		add_rows(3);
	}
	given.anchors = p;
	given.n_anchors = 4;
	ck_assert_good(judge());
	ck_assert_int_eq(judge().anchored_to, 9);
	p[1].hash[0] ^= 1; /* of row 6 */
	ck_assert_fault_of(judge(), AUDIT_FAULT_SIGNATURE, 1);
	p[1].is_signed = false;
	ck_assert_fault_of(judge(), AUDIT_FAULT_ANCHOR, 4);
}
END_TEST

/* ---- damage below SQL ---- */

START_TEST(verify__damaged_file)
{
	AQE_AUTO_FD int fd = -1;
	char path[256], junk[512];
	struct audit_verdict v;

	make_key(); /* so that the table of points is not empty */
	add_rows(50);
	audit_close(lg);
	lg = NULL;
	tamper("PRAGMA wal_checkpoint(TRUNCATE)");
	(void)snprintf(path, sizeof(path), "%s/audit.db", log_dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	memset(junk, 0xa5, sizeof(junk));
	/* page by page: what a page holds is at its end */
	ck_assert_int_eq(pwrite(fd, junk, sizeof(junk), (_i + 1) * 4096 - (off_t)sizeof(junk)),
			 (ssize_t)sizeof(junk));
	v = judge();
	/* the second is SQLite's map of pages, whose end stands for pages that are not there */
	ck_assert_msg((v.fault == AUDIT_FAULT_NONE) == (_i == 1), "page %d: %s", _i + 1, v.text);
}
END_TEST

START_TEST(verify__no_database)
{
	AQE_AUTO_FD int fd = -1;
	char path[256];

	audit_close(lg);
	lg = NULL;
	(void)snprintf(path, sizeof(path), "%s/audit.db-wal", log_dir);
	ck_assert_int_eq(unlink(path), 0);
	(void)snprintf(path, sizeof(path), "%s/audit.db", log_dir);
	fd = open(path, O_RDWR | O_TRUNC | O_CLOEXEC);
	ck_assert_int_eq(write(fd, "hello", 5), 5);
	ck_assert_fault_of(judge(), AUDIT_FAULT_CORRUPT, 0);
	ck_assert_int_eq(unlink(path), 0);
	opts.mode = AUDIT_READ;
	ck_assert_fault(audit_open(&opts, &lg, &err), AQE_E_ABSENT, err, "audit.db");
}
END_TEST

static void setup_judge(void)
{
	setup_log();
	memset(&given, 0, sizeof(given));
	given.keys = (const uint8_t(*)[32])given_keys;
}

int main(void)
{
	Suite *s = suite_create("audit_verify");
	TCase *t = tcase_create("verify");

	tcase_add_checked_fixture(t, setup_judge, teardown_log);
	tcase_add_test(t, verify__empty);
	tcase_add_test(t, verify__rows);
	tcase_add_test(t, verify__signed);
	tcase_add_test(t, verify__signed_every_so_many_rows);
	tcase_add_test(t, verify__begun_before_the_key);
	tcase_add_test(t, verify__second_and_restored);
	tcase_add_test(t, verify__copy_on_a_read_only_disk);
	tcase_add_test(t, verify__while_others_write);
	tcase_add_loop_test(t, verify__finds, 0, AQE_COUNT(EDITS));
	tcase_add_loop_test(t, verify__finds_a_wrong_type, 0, 7);
	tcase_add_test(t, verify__finds_a_lying_index);
	tcase_add_loop_test(t, verify__finds_at_points, 0, AQE_COUNT(POINT_EDITS));
	tcase_add_test(t, verify__cut_tail);
	tcase_add_test(t, verify__rewritten_chain);
	tcase_add_test(t, verify__wrong_key);
	tcase_add_test(t, verify__promise_of_the_next_point);
	tcase_add_test(t, verify__anchors);
	tcase_add_loop_test(t, verify__damaged_file, 0, 10);
	tcase_add_test(t, verify__no_database);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
