/* SPDX-License-Identifier: MIT */
/* Rows that wait beside the database: none is lost, doubled or invented, whatever happens. */
#include "audit/spool.h"

#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "audit/lost.h"
#include "tests/unit/audit_fixture.h"
#include "tests/unit/audit_tamper.h"
#include "tests/unit/unit.h"

#define PROCESSES 8
#define EACH      40
#define ROUNDS    40

static struct audit_opts spooled;
static char spool_path[256];

/* A log whose database is there and that nobody has open. */
static void setup_spool(void)
{
	setup_log();
	(void)add_row(full_row(0));
	audit_close(lg);
	lg = NULL;
	spooled = opts;
	spooled.flags = AUDIT_SPOOL;
	(void)snprintf(spool_path, sizeof(spool_path), "%s/" AUDIT_SPOOL_FILE, log_dir);
}

static struct audit_row spool_row(unsigned i)
{
	struct audit_row r = full_row(i);

	ck_assert_ok(audit_record(&spooled, &r, 1, &err), err);
	return r;
}

static void spool_rows(unsigned from, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		(void)spool_row(from + i);
}

static int64_t in_database(void)
{
	sqlite3 *db = tamper_open();
	sqlite3_stmt *s = NULL;
	int64_t n;

	ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT count(*) FROM row", -1, &s, NULL),
			 SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(s), SQLITE_ROW);
	n = sqlite3_column_int64(s, 0);
	(void)sqlite3_finalize(s);
	(void)sqlite3_close(db);
	return n;
}

struct expect {
	unsigned next;  /* of full_row() */
	unsigned notes; /* system rows between them */
	bool strict;
};

static int expect_row(void *arg, const struct audit_row *r, struct aqe_err *e)
{
	struct expect *x = arg;
	struct audit_row want = full_row(x->next);

	(void)e;
	if (r->kind == AUDIT_SYSTEM) {
		ck_assert_str_eq(r->reason, AUDIT_REASON_SPOOL);
		x->notes++;
		return 0;
	}
	ck_assert_str_eq(r->container, want.container);
	ck_assert_str_eq(r->path, want.path);
	ck_assert_int_eq(r->bytes_in, want.bytes_in);
	ck_assert_int_gt(r->time_ns, 0);
	x->next++;
	return 0;
}

static bool verifies(void)
{
	struct audit_verdict v;

	ck_assert_ok(audit_verify(lg, NULL, &v, &err), err);
	return v.fault == AUDIT_FAULT_NONE;
}

/* Reads the log: rows 0, 1, 2, ... in order; how many of them, and the system rows. */
static struct expect read_all(void)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct expect x = { .next = 0 };

	open_again(AUDIT_READ);
	ck_assert_ok(audit_query(lg, &f, expect_row, &x, &err), err);
	ck_assert(verifies());
	audit_close(lg);
	lg = NULL;
	return x;
}

/* ---- the usual ---- */

START_TEST(rows__wait_and_are_taken_over_in_order)
{
	struct audit_row r = spool_row(1);
	struct expect x;

	ck_assert_int_eq(r.seq, 0);
	spool_rows(2, 5);
	ck_assert_int_eq(in_database(), 1);
	ck_assert(audit_spool_waits(&opts));
	x = read_all();
	ck_assert_uint_eq(x.next, 7);
	ck_assert_uint_eq(x.notes, 0);
	ck_assert(!audit_spool_waits(&opts));
	ck_assert_int_eq(in_database(), 7);
}
END_TEST

START_TEST(rows__go_before_those_of_the_next_writer)
{
	spool_rows(1, 3);
	open_again(AUDIT_WRITE);
	(void)add_row(full_row(4));
	audit_close(lg);
	lg = NULL;
	spool_rows(5, 1);
	/* and when the log was open all the time */
	open_again(AUDIT_WRITE);
	if (fork() == 0) {
		spool_rows(6, 1);
		_exit(0);
	}
	ck_assert_int_gt(wait(NULL), 0);
	(void)add_row(full_row(7));
	ck_assert_uint_eq(read_all().next, 8);
}
END_TEST

START_TEST(rows__are_seen_by_who_waits_for_new_ones)
{
	int64_t last = 0;

	open_again(AUDIT_READ);
	ck_assert_ok(audit_last_seq(lg, &last, &err), err);
	ck_assert_int_eq(last, 1);
	if (fork() == 0) {
		spool_rows(1, 2);
		_exit(0);
	}
	ck_assert_int_gt(wait(NULL), 0);
	ck_assert_ok(audit_last_seq(lg, &last, &err), err);
	ck_assert_int_eq(last, 3);
}
END_TEST

START_TEST(room__ends_and_the_database_takes_all)
{
	unsigned i = 1;

	while (in_database() == 1 && i < 1000)
		(void)spool_row(i++);
	ck_assert_uint_gt(i, 20);
	ck_assert_int_eq(in_database(), i);
	ck_assert(!audit_spool_waits(&opts));
	ck_assert_uint_eq(read_all().next, i);
}
END_TEST

START_TEST(database__that_is_absent_is_made)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/" AUDIT_DB_FILE, log_dir);
	ck_assert_int_eq(unlink(path), 0);
	(void)spool_row(0);
	ck_assert_int_eq(in_database(), 1);
	ck_assert_uint_eq(read_all().next, 1);
}
END_TEST

START_TEST(many__rows_at_once_are_all_there_or_none)
{
	struct audit_row rows[2] = { AUDIT_ROW_INIT(AUDIT_START, AUDIT_ALLOWED),
				     AUDIT_ROW_INIT(AUDIT_START, AUDIT_ALLOWED) };

	rows[1].meta = "no object";
	ck_assert_int_eq(audit_record(&spooled, rows, 2, &err), AQE_E_MALFORMED);
	ck_assert(!audit_spool_waits(&opts));
	rows[1].meta = "{ \"a\" : 1 }";
	ck_assert_ok(audit_record(&spooled, rows, 2, &err), err);
	/* stored, but without a place in the chain so far */
	for (size_t i = 0; i < 2; i++)
		ck_assert(rows[i].time_ns > 0 && rows[i].boot_ns > 0 && rows[i].seq == 0);
	open_again(AUDIT_WRITE);
	ck_assert_uint_eq(count_all(), 4); /* and a gap record */
}
END_TEST

/* ---- files that are not what they should be: the database decides ---- */

enum oddity { SHORT, OPEN_TO_OTHERS, LINKED, DIRECTORY, SYMLINK, NO_SPOOL, ODDITIES };

START_TEST(file__that_is_odd_is_not_used)
{
	char other[256];

	(void)snprintf(other, sizeof(other), "%s/other", log_dir);
	switch ((enum oddity)_i) {
	case SHORT:
		ck_assert_int_eq(truncate(spool_path, 100), 0);
		break;
	case OPEN_TO_OTHERS:
		ck_assert_int_eq(chmod(spool_path, 0666), 0);
		break;
	case LINKED:
		ck_assert_int_eq(link(spool_path, other), 0);
		break;
	case DIRECTORY:
		ck_assert_int_eq(unlink(spool_path), 0);
		ck_assert_int_eq(mkdir(spool_path, 0700), 0);
		break;
	case SYMLINK:
		ck_assert_int_eq(rename(spool_path, other), 0);
		ck_assert_int_eq(symlink(other, spool_path), 0);
		break;
	case NO_SPOOL:
		ck_assert_int_eq(unlink(spool_path), 0);
		break;
	case ODDITIES:
		break;
	}
	(void)spool_row(1);
	ck_assert_int_eq(in_database(), 2);
	ck_assert_uint_eq(read_all().next, 2);
}
END_TEST

START_TEST(lock__is_waited_for_up_to_the_deadline_asleep)
{
	AQE_AUTO_FD int fd = open(spool_path, O_RDONLY | O_CLOEXEC);
	struct audit_row r = full_row(1);
	struct timespec a, b;
	struct rusage u;
	struct audit_lost lost;
	int64_t ms;

	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	spooled.deadline_ms = 300;
	ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &a), 0);
	ck_assert_int_eq(audit_record(&spooled, &r, 1, &err), AQE_E_TIMEOUT);
	ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &b), 0);
	ms = (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000;
	ck_assert_int_ge(ms, 300);
	ck_assert_int_lt(ms, 3000);
	ck_assert_int_eq(getrusage(RUSAGE_SELF, &u), 0);
	ck_assert_int_lt(u.ru_utime.tv_sec * 1000000 + u.ru_utime.tv_usec +
				 u.ru_stime.tv_sec * 1000000 + u.ru_stime.tv_usec,
			 250000);
	ck_assert_msg(strstr(err.text, "locked by another process for 300 ms"), "%s", err.text);
	ck_assert_ok(audit_lost_read(&opts, &lost, &err), err);
	ck_assert_uint_eq(lost.count, 1);
	ck_assert_str_eq(lost.why, "locked");
}
END_TEST

/* ---- crashes and other hands ---- */

static size_t load_spool(uint8_t p[AUDIT_SPOOL_SIZE])
{
	AQE_AUTO_FD int fd = open(spool_path, O_RDONLY | O_CLOEXEC);
	size_t end = AUDIT_SPOOL_SIZE;

	ck_assert_int_eq(pread(fd, p, AUDIT_SPOOL_SIZE, 0), (ssize_t)AUDIT_SPOOL_SIZE);
	while (end > 0 && p[end - 1] == 0)
		end--;
	return end;
}

static void save_spool(const uint8_t p[AUDIT_SPOOL_SIZE])
{
	AQE_AUTO_FD int fd = open(spool_path, O_WRONLY | O_CLOEXEC);

	ck_assert_int_eq(pwrite(fd, p, AUDIT_SPOOL_SIZE, 0), (ssize_t)AUDIT_SPOOL_SIZE);
}

START_TEST(crash__between_commit_and_new_round_doubles_nothing)
{
	static uint8_t before[AUDIT_SPOOL_SIZE];

	spool_rows(1, 3);
	(void)load_spool(before);
	ck_assert_uint_eq(read_all().next, 4);
	save_spool(before);
	(void)spool_row(4); /* did not notice */
	ck_assert(audit_spool_waits(&opts));
	ck_assert_uint_eq(read_all().next, 5);
}
END_TEST

/* Left by another process, as a hook of the container does while its services write. */
static void spool_row_elsewhere(unsigned i)
{
	int status = -1;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		struct audit_row r = full_row(i);

		_exit(audit_record(&spooled, &r, 1, NULL) == 0 ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

/* Who writes again and again looks each time, and takes over whatever waits. */
START_TEST(writer__that_stays_takes_what_came_meanwhile)
{
	open_again(AUDIT_WRITE);
	for (unsigned i = 1; i < 9; i += 2) {
		spool_row_elsewhere(i);
		ck_assert(audit_spool_waits(&opts));
		(void)add_row(full_row(i + 1));
		ck_assert(!audit_spool_waits(&opts));
	}
	audit_close(lg);
	lg = NULL;
	ck_assert_uint_eq(read_all().next, 9); /* in the order in which they came */
}
END_TEST

START_TEST(look__sees_what_was_added_and_a_file_that_was_replaced)
{
	int fd = -1;

	ck_assert(audit_spool_is_empty(&opts, &fd));
	ck_assert_int_ge(fd, 0);
	(void)spool_row(1);
	ck_assert(!audit_spool_is_empty(&opts, &fd));
	ck_assert_uint_eq(read_all().next, 2); /* takes it over */
	ck_assert(audit_spool_is_empty(&opts, &fd));
	ck_assert_int_eq(unlink(spool_path), 0);
	ck_assert(!audit_spool_is_empty(&opts, &fd)); /* who takes over makes one */
	open_again(AUDIT_WRITE);
	(void)add_row(full_row(2));
	audit_close(lg);
	lg = NULL;
	(void)spool_row(3);
	ck_assert(!audit_spool_is_empty(&opts, &fd)); /* in the new one */
	ck_assert_int_eq(close(fd), 0);
}
END_TEST

/* Every length at which the last record may have been cut off. */
START_TEST(crash__while_a_record_is_written_keeps_those_before)
{
	static uint8_t whole[AUDIT_SPOOL_SIZE], cut[AUDIT_SPOOL_SIZE];
	size_t two, three;

	spool_rows(1, 2);
	two = load_spool(cut);
	(void)spool_row(3);
	three = load_spool(whole);
	for (size_t n = two; n < three; n += 1 + n % 5) {
		struct audit_spool s;
		struct audit_row r;
		AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
		unsigned seen = 0;

		memset(cut, 0, sizeof(cut));
		memcpy(cut, whole, n);
		save_spool(cut);
		ck_assert_ok(audit_spool_begin(&opts, &s, &err), err);
		while (audit_spool_next(&s, a, &r, &err) == 1)
			seen++;
		audit_spool_end(&s, false);
		ck_assert_uint_eq(seen, 2);
	}
	/* the next row goes where the torn one was */
	(void)spool_row(3);
	ck_assert_uint_eq(read_all().next, 4);
}
END_TEST

/* Each byte changed once: never another row, never a row less without a word. */
START_TEST(change__of_any_byte_is_seen)
{
	static uint8_t whole[AUDIT_SPOOL_SIZE], bad[AUDIT_SPOOL_SIZE];
	size_t end, silent = 0;

	spool_rows(1, 2);
	end = load_spool(whole);
	for (size_t at = 0; at < end; at++) {
		struct audit_spool s;
		struct audit_row r, want;
		AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
		unsigned seen = 0;

		memcpy(bad, whole, sizeof(bad));
		bad[at] = (uint8_t)(bad[at] ^ 1U << (at % 8));
		save_spool(bad);
		ck_assert_ok(audit_spool_begin(&opts, &s, &err), err);
		while (audit_spool_next(&s, a, &r, &err) == 1) {
			want = full_row(++seen);
			ck_assert_str_eq(r.container, want.container);
			ck_assert_str_eq(r.meta, seen == 1 ? "{\"n\":1,\"note\":\"r\\u00071\"}"
							   : "{\"n\":2,\"note\":\"r\\u00072\"}");
		}
		if (seen == 2)
			silent++; /* padding */
		else
			ck_assert_msg(audit_spool_is_damaged(&s), "byte %zu", at);
		audit_spool_end(&s, false);
	}
	ck_assert_uint_lt(silent, 32);
}
END_TEST

START_TEST(damage__is_a_row_of_its_own)
{
	static uint8_t p[AUDIT_SPOOL_SIZE];
	struct expect x;
	size_t end;

	spool_rows(1, 3);
	end = load_spool(p);
	p[end - 2] ^= 1;
	save_spool(p);
	x = read_all();
	ck_assert_uint_eq(x.next, 3);
	ck_assert_uint_eq(x.notes, 1);
	(void)spool_row(3);
	x = read_all();
	ck_assert_uint_eq(x.next, 4);
	ck_assert_uint_eq(x.notes, 1);
	/* no spool at all */
	memset(p, 'x', sizeof(p));
	save_spool(p);
	x = read_all();
	ck_assert_uint_eq(x.next, 4);
	ck_assert_uint_eq(x.notes, 2);
	(void)spool_row(4);
	ck_assert_uint_eq(read_all().next, 5);
}
END_TEST

/* ---- many at once ---- */

static int count_by_process(void *arg, const struct audit_row *r, struct aqe_err *e)
{
	unsigned *next = arg;

	(void)e;
	if (r->kind != AUDIT_EXEC)
		return 0;
	ck_assert_int_lt(r->port, PROCESSES);
	ck_assert_uint_eq((unsigned)r->status, next[r->port]++);
	return 0;
}

static void numbered(unsigned process, unsigned i, int ack)
{
	struct audit_row r = AUDIT_ROW_INIT(AUDIT_EXEC, AUDIT_ALLOWED);
	char id[32];

	(void)snprintf(id, sizeof(id), "p%u-%u", process, i);
	r.container = id;
	r.port = process;
	r.status = i;
	if (audit_record(&spooled, &r, 1, NULL) != 0)
		_exit(1);
	if (ack >= 0 && write(ack, &(uint8_t){ (uint8_t)process }, 1) != 1)
		_exit(2);
}

START_TEST(writers__many_at_once_lose_nothing)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	unsigned next[PROCESSES] = { 0 };
	int status;

	spooled.deadline_ms = 20000;
	for (unsigned p = 0; p < PROCESSES; p++) {
		if (fork() == 0) {
			spooled.flags |= p % 2 ? AUDIT_NO_FLUSH : 0;
			for (unsigned i = 0; i < EACH; i++)
				numbered(p, i, -1);
			_exit(0);
		}
	}
	for (unsigned p = 0; p < PROCESSES; p++) {
		ck_assert_int_gt(wait(&status), 0);
		ck_assert_int_eq(status, 0);
	}
	open_again(AUDIT_READ);
	ck_assert_ok(audit_query(lg, &f, count_by_process, next, &err), err);
	for (unsigned p = 0; p < PROCESSES; p++)
		ck_assert_uint_eq(next[p], EACH);
	ck_assert(verifies());
}
END_TEST

/* A group of writers, one of them killed at a random moment after another. */
static void killed_round(unsigned acked[PROCESSES])
{
	pid_t pid[PROCESSES];
	int ends[2];
	uint8_t who;

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	for (unsigned p = 0; p < PROCESSES; p++) {
		pid[p] = fork();
		if (pid[p] == 0) {
			for (unsigned i = acked[p]; i < 100000; i++)
				numbered(p, i, ends[1]);
			_exit(0);
		}
	}
	(void)close(ends[1]);
	for (unsigned p = 0; p < PROCESSES; p++) {
		uint16_t us = 0;
		struct timespec pause = { 0, 0 };

		ck_assert_int_eq(getrandom(&us, sizeof(us), 0), sizeof(us));
		pause.tv_nsec = (us % 4000) * 1000L;
		(void)nanosleep(&pause, NULL);
		ck_assert_int_eq(kill(pid[p], SIGKILL), 0);
	}
	for (unsigned p = 0; p < PROCESSES; p++)
		ck_assert_int_gt(waitpid(pid[p], NULL, 0), 0);
	while (read(ends[0], &who, 1) == 1)
		acked[who]++;
	(void)close(ends[0]);
}

static int count_any(void *arg, const struct audit_row *r, struct aqe_err *e)
{
	unsigned *seen = arg;

	(void)e;
	if (r->kind != AUDIT_EXEC)
		return 0;
	/* in order and none twice; a row that was stored but not acknowledged may stand there */
	ck_assert_uint_eq((unsigned)r->status, seen[r->port]++);
	return 0;
}

START_TEST(writers__that_are_killed_lose_nothing_acknowledged)
{
	unsigned acked[PROCESSES] = { 0 };

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct audit_filter f = AUDIT_FILTER_INIT;
		unsigned seen[PROCESSES] = { 0 };

		killed_round(acked);
		open_again(AUDIT_READ);
		ck_assert_ok(audit_query(lg, &f, count_any, seen, &err), err);
		ck_assert(verifies());
		audit_close(lg);
		lg = NULL;
		for (unsigned p = 0; p < PROCESSES; p++) {
			ck_assert_uint_ge(seen[p], acked[p]);
			acked[p] = seen[p];
		}
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("audit_spool");
	TCase *t = tcase_create("spool");

	tcase_add_checked_fixture(t, setup_spool, teardown_log);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, rows__wait_and_are_taken_over_in_order);
	tcase_add_test(t, rows__go_before_those_of_the_next_writer);
	tcase_add_test(t, rows__are_seen_by_who_waits_for_new_ones);
	tcase_add_test(t, room__ends_and_the_database_takes_all);
	tcase_add_test(t, database__that_is_absent_is_made);
	tcase_add_test(t, many__rows_at_once_are_all_there_or_none);
	tcase_add_loop_test(t, file__that_is_odd_is_not_used, 0, ODDITIES);
	tcase_add_test(t, lock__is_waited_for_up_to_the_deadline_asleep);
	tcase_add_test(t, writer__that_stays_takes_what_came_meanwhile);
	tcase_add_test(t, look__sees_what_was_added_and_a_file_that_was_replaced);
	tcase_add_test(t, crash__between_commit_and_new_round_doubles_nothing);
	tcase_add_test(t, crash__while_a_record_is_written_keeps_those_before);
	tcase_add_test(t, change__of_any_byte_is_seen);
	tcase_add_test(t, damage__is_a_row_of_its_own);
	tcase_add_test(t, writers__many_at_once_lose_nothing);
	tcase_add_test(t, writers__that_are_killed_lose_nothing_acknowledged);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
