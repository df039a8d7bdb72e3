/* SPDX-License-Identifier: MIT */
#include "shim/core/db.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/core/text.h"
#include "tests/unit/fs_fixture.h"

#define APP 0x74657374U

static const char *const STEPS[] = {
	"CREATE TABLE a (x INTEGER PRIMARY KEY, t TEXT) STRICT",
	"ALTER TABLE a ADD COLUMN b BLOB; CREATE TABLE b (y TEXT) STRICT",
};

static char dir[200];
static struct aqe_db_opts o;
static struct aqe_db *db;
static struct aqe_err err;

static void setup_db(void)
{
	static const struct aqe_err no_error = AQE_ERR_INIT;

	setup();
	full("one/two", dir);
	o = (struct aqe_db_opts){ .dir = dir,
				  .file = "x.db",
				  .migrations = STEPS,
				  .n_migrations = 2,
				  .application_id = APP,
				  .deadline_ms = 300 };
	db = NULL;
	err = no_error;
}

static void teardown_db(void)
{
	aqe_db_close(db);
	teardown();
}

static void open_db(void)
{
	aqe_db_close(db);
	db = NULL;
	ck_assert_ok(aqe_db_open(&o, &db, &err), err);
}

static int64_t number(const char *sql)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;

	ck_assert_ok(aqe_db_prepare(db, sql, &s, &err), err);
	ck_assert_int_eq(aqe_stmt_step(s, &err), 1);
	return aqe_stmt_i64(s, 0);
}

static mode_t mode_of(const char *name)
{
	struct stat st;

	ck_assert_int_eq(fstatat(top, name, &st, 0), 0);
	return st.st_mode & 07777;
}

START_TEST(open__makes_it_private)
{
	mode_t old = umask(0);
	unsigned version = 0;

	open_db();
	ck_assert_ok(aqe_db_exec(db, "INSERT INTO a VALUES (1, 'x', NULL)", &err), err);
	ck_assert_uint_eq(mode_of("one/two"), 0700);
	ck_assert_uint_eq(mode_of("one/two/x.db"), 0600);
	ck_assert_uint_eq(mode_of("one/two/x.db-wal"), 0600);
	ck_assert_uint_eq(mode_of("one/two/x.db-shm"), 0600);
	ck_assert_ok(aqe_db_version(db, &version, &err), err);
	ck_assert_uint_eq(version, 2);
	ck_assert_int_eq(number("PRAGMA application_id"), APP);
	ck_assert_int_eq(number("PRAGMA synchronous"), 2);
	ck_assert_int_eq(number("PRAGMA auto_vacuum"), 2);
	aqe_db_close(db);
	db = NULL;
	ck_assert(exists("one/two/x.db-wal")); /* stays: see configure() */
	open_db();
	ck_assert_int_eq(number("SELECT count(*) FROM a"), 1);
	(void)umask(old);
}
END_TEST

/* What others could have written is not opened for writing. */
static const struct {
	const char *what;
	int code;
	const char *part;
} UNSAFE[] = {
	{ "folder mode", AQE_E_UNTRUSTED, "0700" },    { "file mode", AQE_E_UNTRUSTED, "0600" },
	{ "two names", AQE_E_UNTRUSTED, "one name" },  { "link", AQE_E_UNTRUSTED, "regular" },
	{ "fifo", AQE_E_UNTRUSTED, "regular" },        { "folder link", AQE_E_UNTRUSTED, "open" },
	{ "folder is file", AQE_E_UNTRUSTED, "open" }, { "owner", AQE_E_UNTRUSTED, "0600" },
	{ "folder owner", AQE_E_UNTRUSTED, "0700" },
};

static void make_unsafe(const char *what)
{
	if (strcmp(what, "folder mode") == 0)
		ck_assert_int_eq(fchmodat(top, "one/two", 0770, 0), 0);
	else if (strcmp(what, "file mode") == 0)
		ck_assert_int_eq(fchmodat(top, "one/two/x.db", 0640, 0), 0);
	else if (strcmp(what, "two names") == 0)
		ck_assert_int_eq(linkat(top, "one/two/x.db", top, "y", 0), 0);
	else if (strcmp(what, "owner") == 0)
		ck_assert_int_eq(fchownat(top, "one/two/x.db", 65534, 65534, 0), 0);
	else if (strcmp(what, "folder owner") == 0)
		ck_assert_int_eq(fchownat(top, "one/two", 65534, 65534, 0), 0);
	else if (strncmp(what, "folder", 6) == 0) {
		ck_assert_int_eq(renameat(top, "one/two", top, "three"), 0);
		if (strcmp(what, "folder link") == 0)
			ck_assert_int_eq(symlinkat("../three", top, "one/two"), 0);
		else
			put("one/two", "", 0600);
	} else {
		ck_assert_int_eq(renameat(top, "one/two/x.db", top, "y"), 0);
		if (strcmp(what, "link") == 0)
			ck_assert_int_eq(symlinkat("../../y", top, "one/two/x.db"), 0);
		else
			ck_assert_int_eq(mkfifoat(top, "one/two/x.db", 0600), 0);
	}
}

START_TEST(open__refuses)
{
	open_db();
	aqe_db_close(db);
	db = NULL;
	if (strstr(UNSAFE[_i].what, "owner") && geteuid() != 0)
		return; /* only root can give files away */
	make_unsafe(UNSAFE[_i].what);
	ck_assert_fault(aqe_db_open(&o, &db, &err), UNSAFE[_i].code, err, UNSAFE[_i].part);
	ck_assert_ptr_null(db);
}
END_TEST

START_TEST(open__makes_nothing_in_an_unsafe_parent)
{
	make_dir("one", 0777);
	ck_assert_fault(aqe_db_open(&o, &db, &err), AQE_E_UNTRUSTED, err, "write");
	ck_assert(!exists("one/two"));
	o.dir = "relative";
	ck_assert_fault(aqe_db_open(&o, &db, &err), AQE_E_LIMIT, err, "absolute");
}
END_TEST

START_TEST(open__path_limit)
{
	static char path[600];

	memset(path, '/', 1);
	memset(path + 1, 'x', sizeof(path) - 2);
	o.dir = path;
	ck_assert_fault(aqe_db_open(&o, &db, &err), AQE_E_LIMIT, err, "480");
}
END_TEST

/* ---- migrations ---- */

START_TEST(migrate__step_by_step)
{
	o.n_migrations = 1;
	open_db();
	ck_assert_ok(aqe_db_exec(db, "INSERT INTO a VALUES (7, 'seven')", &err), err);
	o.n_migrations = 2;
	open_db();
	ck_assert_int_eq(number("SELECT x FROM a WHERE t = 'seven' AND b IS NULL"), 7);
	ck_assert_int_eq(number("SELECT count(*) FROM b"), 0);
	/* an older program does not touch what a newer one made */
	o.n_migrations = 1;
	aqe_db_close(db);
	db = NULL;
	ck_assert_fault(aqe_db_open(&o, &db, &err), AQE_E_MALFORMED, err, "newer");
}
END_TEST

START_TEST(migrate__failing_leaves_nothing)
{
	static const char *const BAD[] = { "CREATE TABLE a (x) ; CREATE TABLE a (x)" };

	o.migrations = BAD;
	o.n_migrations = 1;
	ck_assert_fault(aqe_db_open(&o, &db, &err), AQE_E_INTERNAL, err, "already exists");
	o.migrations = STEPS;
	o.n_migrations = 2;
	open_db();
	ck_assert_int_eq(number("SELECT count(*) FROM a"), 0);
}
END_TEST

/* Many open a database that is not there yet. */
START_TEST(migrate__fifty_at_once)
{
	pid_t child[50];

	o.deadline_ms = 20000;
	for (size_t i = 0; i < AQE_COUNT(child); i++) {
		child[i] = fork();
		if (child[i] == 0) {
			if (aqe_db_open(&o, &db, &err) != 0 ||
			    aqe_db_exec(db, "INSERT INTO a(t) VALUES ('x')", &err) != 0) {
				(void)fprintf(stderr, "%s\n", err.text);
				_exit(1);
			}
			_exit(0);
		}
	}
	for (size_t i = 0; i < AQE_COUNT(child); i++) {
		int status;

		ck_assert_int_eq(waitpid(child[i], &status, 0), child[i]);
		ck_assert_int_eq(status, 0);
	}
	open_db();
	ck_assert_int_eq(number("SELECT count(*) FROM a"), (int64_t)AQE_COUNT(child));
}
END_TEST

static sqlite3_syscall_ptr plain_open;
static int races;

/* Another process makes the write-ahead log right after this one found that there is none. */
static int racing_open(const char *path, int flags, int mode)
{
	union {
		sqlite3_syscall_ptr any;
		int (*open)(const char *path, int flags, int mode);
	} real = { plain_open };
	const size_t n = strlen(path);
	int fd = real.open(path, flags, mode);

	if (fd < 0 && errno == ENOENT && (flags & O_ACCMODE) == O_RDWR && n > 4 &&
	    strcmp(path + n - 4, "-wal") == 0) {
		const int made = real.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

		ck_assert_int_ge(made, 0);
		(void)close(made);
		races++;
		errno = ENOENT;
	}
	return fd;
}

START_TEST(open__a_log_that_somebody_makes_at_the_same_time)
{
	union {
		int (*open)(const char *path, int flags, int mode);
		sqlite3_syscall_ptr any;
	} ours = { racing_open };
	sqlite3_vfs *vfs = sqlite3_vfs_find("unix");

	plain_open = vfs->xGetSystemCall(vfs, "open");
	ck_assert_int_eq(vfs->xSetSystemCall(vfs, "open", ours.any), SQLITE_OK);
	races = 0;
	open_db();
	ck_assert_int_eq(races, 1);
	ck_assert_ok(aqe_db_begin(db, &err), err);
	ck_assert_ok(aqe_db_exec(db, "INSERT INTO a(t) VALUES ('x')", &err), err);
	ck_assert_ok(aqe_db_commit(db, &err), err);
	ck_assert_int_eq(number("SELECT count(*) FROM a"), 1);
	aqe_db_close(db);
	db = NULL;
	ck_assert_int_eq(vfs->xSetSystemCall(vfs, "open", NULL), SQLITE_OK);
}
END_TEST

START_TEST(open__not_ours)
{
	open_db();
	o.application_id = APP + 1;
	aqe_db_close(db);
	db = NULL;
	ck_assert_fault(aqe_db_open(&o, &db, &err), AQE_E_MALFORMED, err, "another program");
	o.flags = AQE_DB_READ;
	ck_assert_fault(aqe_db_open(&o, &db, &err), AQE_E_MALFORMED, err, "another program");
	put("one/two/y.db",
	    "this is not a database, though it is long enough to be looked at; "
	    "it has a hundred bytes and more of text",
	    0600);
	o.file = "y.db";
	ck_assert_fault(aqe_db_open(&o, &db, &err), AQE_E_MALFORMED, err, "not a database");
}
END_TEST

START_TEST(open__reader)
{
	o.flags = AQE_DB_READ;
	ck_assert_fault(aqe_db_open(&o, &db, &err), AQE_E_ABSENT, err, "open");
	o.flags = 0;
	open_db();
	ck_assert_ok(aqe_db_exec(db, "INSERT INTO a(t) VALUES ('x')", &err), err);
	o.flags = AQE_DB_READ;
	o.file = "none.db";
	aqe_db_close(db);
	db = NULL;
	ck_assert_fault(aqe_db_open(&o, &db, &err), AQE_E_ABSENT, err, "none.db");
	ck_assert(!exists("one/two/none.db"));
	o.file = "x.db";
	open_db();
	ck_assert_int_eq(number("SELECT count(*) FROM a"), 1);
	ck_assert_fault(aqe_db_exec(db, "INSERT INTO a(t) VALUES ('y')", &err), AQE_E_SYS, err,
			"read-only");
	/* 0600 is the writer's business */
	ck_assert_int_eq(fchmodat(top, "one/two/x.db", 0644, 0), 0);
	open_db();
	put("one/two/empty.db", "", 0600);
	o.file = "empty.db";
	aqe_db_close(db);
	db = NULL;
	ck_assert_fault(aqe_db_open(&o, &db, &err), AQE_E_MALFORMED, err, "empty");
}
END_TEST

/* ---- statements ---- */

START_TEST(stmt__types)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	size_t n;

	open_db();
	ck_assert_ok(aqe_db_prepare(db, "INSERT INTO a VALUES (?, ?, ?)", &s, &err), err);
	aqe_stmt_bind_i64(s, 1, INT64_MIN);
	aqe_stmt_bind_text(s, 2, "text");
	aqe_stmt_bind_blob(s, 3, "a\0b", 3);
	ck_assert_ok(aqe_stmt_run(s, &err), err);
	ck_assert_int_eq(aqe_db_changes(db), 1);
	aqe_stmt_bind_i64(s, 1, 5);
	aqe_stmt_bind_text(s, 2, NULL);
	aqe_stmt_bind_blob(s, 3, "", 0);
	ck_assert_ok(aqe_stmt_run(s, &err), err);
	aqe_stmt_done(s);
	s = NULL;
	ck_assert_ok(aqe_db_prepare(db, "SELECT x, t, b, 1.5 FROM a ORDER BY x", &s, &err), err);
	ck_assert_int_eq(aqe_stmt_step(s, &err), 1);
	ck_assert_int_eq(aqe_stmt_i64(s, 0), INT64_MIN);
	ck_assert_str_eq(aqe_stmt_bytes(s, 1, &n), "text");
	ck_assert_uint_eq(n, 4);
	ck_assert_mem_eq(aqe_stmt_bytes(s, 2, &n), "a\0b", 3);
	ck_assert_uint_eq(n, 3);
	ck_assert_int_eq(aqe_stmt_type(s, 3), AQE_DB_REAL);
	ck_assert_int_eq(aqe_stmt_i64(s, 3), 0);
	ck_assert_ptr_null(aqe_stmt_bytes(s, 3, &n));
	ck_assert_int_eq(aqe_stmt_i64(s, 1), 0);
	ck_assert_int_eq(aqe_stmt_step(s, &err), 1);
	ck_assert_int_eq(aqe_stmt_type(s, 1), AQE_DB_NULL);
	ck_assert_ptr_null(aqe_stmt_bytes(s, 1, &n));
	ck_assert_ptr_nonnull(aqe_stmt_bytes(s, 2, &n));
	ck_assert_uint_eq(n, 0);
	ck_assert_int_eq(aqe_stmt_step(s, &err), 0);
	ck_assert_int_eq(aqe_stmt_step(s, &err), 1); /* from the start */
}
END_TEST

START_TEST(stmt__faults)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;

	open_db();
	ck_assert_fault(aqe_db_prepare(db, "SELEC 1", &s, &err), AQE_E_INTERNAL, err, "syntax");
	ck_assert_ptr_null(s);
	ck_assert_fault(aqe_db_exec(db, "INSERT INTO a VALUES ('x', 1, 1)", &err), AQE_E_INTERNAL,
			err, "");
	ck_assert_ok(aqe_db_prepare(db, "SELECT ?", &s, &err), err);
	aqe_stmt_bind_i64(s, 2, 1);
	ck_assert_int_lt(aqe_stmt_step(s, &err), 0);
	ck_assert_fault(aqe_stmt_run(s, &err), AQE_E_INTERNAL, err, "none was expected");
}
END_TEST

START_TEST(transaction__all_or_nothing)
{
	open_db();
	ck_assert(!aqe_db_in_transaction(db));
	ck_assert_ok(aqe_db_begin(db, &err), err);
	ck_assert(aqe_db_in_transaction(db));
	ck_assert_ok(aqe_db_exec(db, "INSERT INTO a(t) VALUES ('x')", &err), err);
	aqe_db_rollback(db);
	aqe_db_rollback(db);
	ck_assert_int_eq(number("SELECT count(*) FROM a"), 0);
	ck_assert_ok(aqe_db_begin(db, &err), err);
	ck_assert_ok(aqe_db_exec(db, "INSERT INTO a(t) VALUES ('x')", &err), err);
	ck_assert_ok(aqe_db_commit(db, &err), err);
	ck_assert_ok(aqe_db_begin(db, &err), err);
	ck_assert_ok(aqe_db_exec(db, "INSERT INTO a(t) VALUES ('y')", &err), err);
	open_db(); /* closing rolls back */
	ck_assert_int_eq(number("SELECT count(*) FROM a"), 1);
}
END_TEST

START_TEST(transaction__reader_sees_one_state)
{
	struct aqe_db *other = NULL;

	open_db();
	ck_assert_ok(aqe_db_open(&o, &other, &err), err);
	ck_assert_ok(aqe_db_begin_read(db, &err), err);
	ck_assert_ok(aqe_db_exec(other, "INSERT INTO a(t) VALUES ('x')", &err), err);
	ck_assert_int_eq(number("SELECT count(*) FROM a"), 0);
	aqe_db_rollback(db);
	ck_assert_int_eq(number("SELECT count(*) FROM a"), 1);
	aqe_db_close(other);
}
END_TEST

START_TEST(lock__is_waited_for)
{
	struct aqe_db *other = NULL;

	open_db();
	ck_assert_ok(aqe_db_open(&o, &other, &err), err);
	ck_assert_ok(aqe_db_begin(other, &err), err);
	ck_assert_fault(aqe_db_begin(db, &err), AQE_E_TIMEOUT, err, "locked by another process");
	ck_assert_ptr_nonnull(strstr(err.text, "300 ms"));
	ck_assert_ok(aqe_db_commit(other, &err), err);
	ck_assert_ok(aqe_db_begin(db, &err), err);
	aqe_db_close(other);
}
END_TEST

/* The log does not grow with the number of processes, one transaction each (see shorten_log()). */
START_TEST(log__stays_short)
{
	struct stat st;

	o.wal_pages = 16;
	for (unsigned i = 0; i < 100; i++) {
		open_db();
		ck_assert_ok(aqe_db_begin(db, &err), err);
		ck_assert_ok(aqe_db_exec(db, "INSERT INTO a(t) VALUES (printf('%.900c', 'x'))",
					 &err),
			     err);
		ck_assert_ok(aqe_db_commit(db, &err), err);
	}
	ck_assert_int_eq(fstatat(top, "one/two/x.db-wal", &st, 0), 0);
	ck_assert_int_lt(st.st_size, 32 * 4120);
	ck_assert_int_eq(number("SELECT count(*) FROM a"), 100);
	ck_assert_int_eq(fstatat(top, "one/two/x.db", &st, 0), 0);
	ck_assert_int_gt(st.st_size, 60 * 1000);
}
END_TEST

/* A killed writer leaves a database, and whole transactions in it. */
START_TEST(kill__loses_nothing_committed)
{
	int pipefd[2], status;
	char c;
	pid_t child;

	open_db();
	ck_assert_int_eq(pipe(pipefd), 0);
	child = fork();
	if (child == 0) {
		struct aqe_db *mine = NULL;

		if (aqe_db_open(&o, &mine, NULL) != 0)
			_exit(1);
		for (;;) {
			if (aqe_db_begin(mine, NULL) != 0 ||
			    aqe_db_exec(mine, "INSERT INTO a(t) VALUES ('x')", NULL) != 0 ||
			    aqe_db_exec(mine, "INSERT INTO b VALUES ('x')", NULL) != 0 ||
			    aqe_db_commit(mine, NULL) != 0 || write(pipefd[1], "x", 1) != 1)
				_exit(2);
		}
	}
	for (unsigned i = 0; i < 20; i++)
		ck_assert_int_eq(read(pipefd[0], &c, 1), 1);
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	open_db();
	ck_assert_int_ge(number("SELECT count(*) FROM a"), 20);
	ck_assert_int_eq(number("SELECT (SELECT count(*) FROM a) = (SELECT count(*) FROM b)"), 1);
	(void)close(pipefd[0]);
	(void)close(pipefd[1]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("core_db");
	TCase *t = tcase_create("db");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup_db, teardown_db);
	tcase_add_test(t, open__makes_it_private);
	tcase_add_loop_test(t, open__refuses, 0, AQE_COUNT(UNSAFE));
	tcase_add_test(t, open__makes_nothing_in_an_unsafe_parent);
	tcase_add_test(t, open__path_limit);
	tcase_add_test(t, migrate__step_by_step);
	tcase_add_test(t, migrate__failing_leaves_nothing);
	tcase_add_test(t, migrate__fifty_at_once);
	tcase_add_test(t, open__a_log_that_somebody_makes_at_the_same_time);
	tcase_add_test(t, open__not_ours);
	tcase_add_test(t, open__reader);
	tcase_add_test(t, stmt__types);
	tcase_add_test(t, stmt__faults);
	tcase_add_test(t, transaction__all_or_nothing);
	tcase_add_test(t, transaction__reader_sees_one_state);
	tcase_add_test(t, lock__is_waited_for);
	tcase_add_test(t, log__stays_short);
	tcase_add_test(t, kill__loses_nothing_committed);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
