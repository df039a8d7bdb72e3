/* SPDX-License-Identifier: MIT */
/* Failing closed: full disk, read-only, locked, forbidden, damaged. What could not be stored is
 * refused, counted, and told when there is space again. */
#include "audit/lost.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <time.h>

#include "audit/stats.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "tests/unit/audit_fixture.h"
#include "tests/unit/audit_tamper.h"

static char spare[200], disk[200];

static void setup_lost(void)
{
	setup_log();
	memset(&given, 0, sizeof(given));
	full("spare", spare);
	ck_assert_int_eq(mkdir(spare, 0700), 0);
	opts.spare_dir = spare;
	open_again(AUDIT_WRITE);
}

/* A file system of `kib` of our own at `disk`, seen by this process alone; the log moves there.
 * False when we may not mount. */
static bool small_disk(unsigned kib)
{
	char data[64];

	if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0) {
		ck_assert_ptr_null(getenv("AQE_TESTS_MUST_RUN"));
		return false;
	}
	ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	full("disk", disk);
	ck_assert_int_eq(mkdir(disk, 0700), 0);
	(void)snprintf(data, sizeof(data), "size=%uk,mode=700", kib);
	ck_assert_int_eq(mount("tmpfs", disk, "tmpfs", 0, data), 0);
	full("disk/log", log_dir);
	return true;
}

static void resize(unsigned kib, unsigned long flags)
{
	char data[64];

	(void)snprintf(data, sizeof(data), "size=%uk", kib);
	ck_assert_int_eq(mount("tmpfs", disk, "tmpfs", MS_REMOUNT | flags, data), 0);
}

static void drop_disk(void)
{
	audit_close(lg);
	lg = NULL;
	ck_assert_int_eq(umount2(disk, MNT_DETACH), 0);
}

struct gap {
	unsigned n;
	uint64_t lost, last;
	char why[64];
};

static int take_gap(void *arg, const struct audit_row *r, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 16);
	struct gap *g = arg;
	struct aqe_json *v = NULL;
	int64_t since, until;

	if (!r->reason || strcmp(r->reason, AUDIT_REASON_GAP) != 0)
		return 0;
	ck_assert_int_eq(r->action, AUDIT_REFUSED);
	ck_assert_ok(aqe_json_parse(a, r->meta, strlen(r->meta), &AQE_JSON_LIMITS_DEFAULT, &v, e),
		     *e);
	g->n++;
	ck_assert_int_eq(aqe_json_get_u64(v, "lost", UINT64_MAX, &g->last, e), 1);
	g->lost += g->last;
	(void)snprintf(g->why, sizeof(g->why), "%s", aqe_json_str(aqe_json_get(v, "why")));
	ck_assert(audit_time_parse(aqe_json_str(aqe_json_get(v, "since")), &since));
	ck_assert(audit_time_parse(aqe_json_str(aqe_json_get(v, "until")), &until));
	ck_assert(since <= until);
	return 0;
}

static struct gap gaps(void)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct gap g = { 0 };

	f.kind = AUDIT_SYSTEM;
	ck_assert_ok(audit_query(lg, &f, take_gap, &g, &err), err);
	return g;
}

static struct audit_lost pending(void)
{
	struct audit_lost v;

	ck_assert_ok(audit_lost_read(&opts, &v, &err), err);
	return v;
}

/* ---- the counter itself ---- */

START_TEST(lost_add__is_told_once)
{
	struct audit_verdict v;
	struct gap g;

	ck_assert_uint_eq(pending().count, 0);
	ck_assert_ok(audit_lost_add(&opts, 2, "disk full", &err), err);
	ck_assert_ok(audit_lost_add(&opts, 3, "locked", &err), err);
	ck_assert_uint_eq(pending().count, 5);
	ck_assert_str_eq(pending().why, "locked");
	add_rows(2);
	ck_assert_uint_eq(pending().count, 0);
	g = gaps();
	ck_assert_uint_eq(g.n, 1);
	ck_assert_uint_eq(g.lost, 5);
	ck_assert_str_eq(g.why, "locked");
	ck_assert_uint_eq(count_all(), 3);
	v = judge();
	ck_assert_good(v);
	ck_assert_uint_eq(v.lost, 5);
	ck_assert_uint_eq(v.open & AUDIT_OPEN_GAPS, AUDIT_OPEN_GAPS);
}
END_TEST

/* A writer keeps the counter open: one that took its place is looked at all the same, and made when
 * it is gone. */
START_TEST(counter__that_was_replaced_is_seen)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/" AUDIT_LOST_FILE, log_dir);
	add_rows(2);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_ok(audit_lost_add(&opts, 2, "disk full", &err), err);
	add_rows(1);
	ck_assert_uint_eq(gaps().lost, 2);
	ck_assert_int_eq(unlink(path), 0);
	add_rows(1);
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert_uint_eq(gaps().lost, 2);
}
END_TEST

static unsigned n_added;

static void note_gap(const struct audit_row *r)
{
	ck_assert_int_eq(r->kind, AUDIT_SYSTEM);
	ck_assert_str_eq(r->reason, AUDIT_REASON_GAP);
	ck_assert_ptr_nonnull(strstr(r->meta, "\"lost\":3"));
	ck_assert_int_gt(r->seq, 0);
	ck_assert_int_gt(r->time_ns, 0);
	n_added++;
}

/* The journal hears of gaps, too: nobody passed such a row in. */
START_TEST(gap__is_passed_on_once_it_is_stored)
{
	struct audit_row bad = AUDIT_ROW_INIT(AUDIT_START, AUDIT_ALLOWED);

	opts.added = note_gap;
	n_added = 0;
	open_again(AUDIT_WRITE);
	add_rows(1);
	ck_assert_uint_eq(n_added, 0);
	ck_assert_ok(audit_lost_add(&opts, 2, "disk full", &err), err);
	bad.meta = "no object";
	ck_assert_int_lt(audit_append(lg, &bad, NULL), 0); /* nothing is stored, nothing told */
	ck_assert_uint_eq(n_added, 0);
	add_rows(1); /* the two, and the bad one */
	ck_assert_uint_eq(n_added, 1);
	add_rows(1);
	ck_assert_uint_eq(n_added, 1);
}
END_TEST

/* A crash after the gap record and before the counter is cleared. */
START_TEST(gap__is_not_told_twice)
{
	AQE_AUTO_BUF struct aqe_buf kept = AQE_BUF_INIT(8192);
	AQE_AUTO_FD int fd = -1;

	ck_assert_ok(audit_lost_add(&opts, 2, "disk full", &err), err);
	fd = openat(top, "audit/lost", O_RDWR | O_CLOEXEC);
	ck_assert_ok(aqe_fs_read_fd(fd, &kept, &err), err);
	add_rows(1);
	ck_assert_int_eq(pwrite(fd, kept.p, kept.len, 0), (ssize_t)kept.len);
	ck_assert_uint_eq(pending().count, 2);
	add_rows(1);
	ck_assert_uint_eq(gaps().n, 1);
	ck_assert_uint_eq(pending().count, 0);
	/* the same, and more were lost meanwhile */
	ck_assert_int_eq(pwrite(fd, kept.p, kept.len, 0), (ssize_t)kept.len);
	ck_assert_ok(audit_lost_add(&opts, 4, "disk full", &err), err);
	add_rows(1);
	ck_assert_uint_eq(gaps().n, 2);
	ck_assert_uint_eq(gaps().last, 4);
	ck_assert_uint_eq(gaps().lost, 6);
}
END_TEST

START_TEST(counter__damaged_is_not_silent)
{
	AQE_AUTO_FD int fd = openat(top, "audit/lost", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_eq(pwrite(fd,
				"garbage of more than a hundred bytes, so that it is a whole record"
				"................................................................",
				120, 0),
			 120);
	ck_assert_uint_eq(pending().count, 1);
	add_rows(1);
	ck_assert_uint_eq(gaps().lost, 1);
	ck_assert_uint_eq(pending().count, 0);
}
END_TEST

START_TEST(counter__counts_all_of_many)
{
	pid_t child[8];

	for (size_t i = 0; i < AQE_COUNT(child); i++) {
		child[i] = fork();
		if (child[i] == 0) {
			for (unsigned n = 0; n < 25; n++) {
				if (audit_lost_add(&opts, 1, "disk full", NULL) != 0)
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
	ck_assert_uint_eq(pending().count, 200);
}
END_TEST

START_TEST(counter__link_is_not_followed)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/lost", log_dir);
	(void)unlink(path);
	put("victim", "data", 0600);
	ck_assert_int_eq(symlink("../victim", path), 0);
	ck_assert_ok(audit_lost_add(&opts, 1, "x", &err), err); /* in the spare folder */
	{
		AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(100);

		ck_assert_ok(aqe_fs_read_beneath(top, "victim", 0, &b, &err), err);
		ck_assert_str_eq(aqe_buf_str(&b), "data");
	}
	opts.spare_dir = NULL;
	ck_assert_fault(audit_lost_add(&opts, 1, "x", &err), AQE_E_SYS, err, "cannot be counted");
}
END_TEST

START_TEST(append__bad_row_is_counted)
{
	struct audit_row r = full_row(1);

	r.port = 70000;
	ck_assert_fault(audit_append(lg, &r, &err), AQE_E_LIMIT, err, "port");
	ck_assert_uint_eq(pending().count, 1);
}
END_TEST

/* ---- full ---- */

/* Smaller than the database at its birth. */
START_TEST(full__from_the_start)
{
	struct audit_row r = full_row(1);

	if (!small_disk(64))
		return;
	ck_assert_fault(audit_record(&opts, &r, 1, &err), AQE_E_SYS, err, "disk full");
	ck_assert_fault(audit_record(&opts, &r, 1, &err), AQE_E_SYS, err, "disk full");
	ck_assert_uint_eq(pending().count, 2);
	resize(4096, 0);
	ck_assert_ok(audit_record(&opts, &r, 1, &err), err);
	opts.mode = AUDIT_READ;
	open_again(AUDIT_READ);
	ck_assert_uint_eq(gaps().lost, 2);
	ck_assert_uint_eq(count_all(), 2);
	drop_disk();
}
END_TEST

/* In the middle of a transaction of many rows: none of them is there. */
START_TEST(full__on_the_way)
{
	static struct audit_row rows[50];
	uint64_t stored = 0, refused = 0;
	struct audit_verdict v;

	if (!small_disk(700))
		return;
	open_again(AUDIT_WRITE);
	for (unsigned i = 0; i < 60 && refused < 3; i++) {
		for (unsigned k = 0; k < 50; k++)
			rows[k] = full_row(i);
		if (audit_append_many(lg, rows, 50, &err) == 0) {
			ck_assert_uint_eq(refused, 0);
			stored += 50;
			continue;
		}
		ck_assert_fault(err.code, AQE_E_SYS, err, "disk full");
		ck_assert_int_eq(err.sys, ENOSPC);
		refused++;
	}
	ck_assert_uint_eq(refused, 3);
	ck_assert_uint_eq(count_all(), stored);
	ck_assert_uint_eq(pending().count, 150);
	v = judge();
	ck_assert_good(v);
	resize(8192, 0);
	for (unsigned k = 0; k < 50; k++)
		rows[k] = full_row(k);
	ck_assert_ok(audit_append_many(lg, rows, 50, &err), err);
	ck_assert_uint_eq(gaps().n, 1);
	ck_assert_uint_eq(gaps().lost, 150);
	ck_assert_str_eq(gaps().why, "disk full");
	ck_assert_uint_eq(count_all(), stored + 51);
	v = judge();
	ck_assert_good(v);
	ck_assert_uint_eq(v.lost, 150);
	drop_disk();
}
END_TEST

/* ---- read-only ---- */

START_TEST(read_only__then_not)
{
	struct audit_row r = full_row(1);

	if (!small_disk(4096))
		return;
	ck_assert_ok(audit_record(&opts, &r, 1, &err), err);
	resize(4096, MS_RDONLY);
	r.time_ns = 0;
	ck_assert_fault(audit_record(&opts, &r, 1, &err), AQE_E_SYS, err, "read-only");
	ck_assert_int_eq(err.sys, EROFS);
	ck_assert_fault(audit_record(&opts, &r, 1, &err), AQE_E_SYS, err, "read-only");
	ck_assert_uint_eq(pending().count, 2);
	ck_assert_good(judge()); /* reading goes on */
	resize(4096, 0);
	ck_assert_ok(audit_record(&opts, &r, 1, &err), err);
	open_again(AUDIT_READ);
	ck_assert_uint_eq(gaps().lost, 2);
	ck_assert_str_eq(gaps().why, "read-only");
	drop_disk();
}
END_TEST

/* ---- forbidden ---- */

START_TEST(forbidden__folder_without_rights)
{
	struct audit_row r = full_row(1);

	ck_assert_ok(audit_record(&opts, &r, 1, &err), err);
	audit_close(lg);
	lg = NULL;
	if (geteuid() == 0) {
		/* root may everything: the folders become somebody's, and we that somebody */
		char path[300];

		static const char *const FILES[] = { "", "/audit.db", "/audit.db-wal",
						     "/audit.db-shm", "/lost" };
		for (size_t i = 0; i < AQE_COUNT(FILES); i++) {
			(void)snprintf(path, sizeof(path), "%s%s", log_dir, FILES[i]);
			ck_assert_int_eq(chown(path, 65534, 65534), 0);
		}
		ck_assert_int_eq(chown(spare, 65534, 65534), 0);
		ck_assert_int_eq(chown(root, 65534, 65534), 0);
		ck_assert_int_eq(seteuid(65534), 0);
	}
	ck_assert_int_eq(chmod(log_dir, 0), 0);
	r.time_ns = 0;
	ck_assert_fault(audit_record(&opts, &r, 1, &err), AQE_E_SYS, err, "permission denied");
	ck_assert_int_eq(err.sys, EACCES);
	ck_assert_int_eq(chmod(log_dir, 0700), 0);
	ck_assert_ok(audit_record(&opts, &r, 1, &err), err);
	open_again(AUDIT_READ);
	ck_assert_uint_eq(gaps().lost, 1);
	ck_assert_str_eq(gaps().why, "permission denied");
	audit_close(lg);
	lg = NULL;
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

/* ---- locked ---- */

static int64_t cpu_us(void)
{
	struct rusage u;

	ck_assert_int_eq(getrusage(RUSAGE_SELF, &u), 0);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * INT64_C(1000000) + u.ru_utime.tv_usec +
	       u.ru_stime.tv_usec;
}

/* audit-userspace PR#254: waiting costs no processor. */
START_TEST(locked__waits_asleep_and_gives_up)
{
	sqlite3 *db = tamper_open();
	struct audit_row r = full_row(1);
	struct timespec a, b;
	int64_t cpu, ms;

	opts.deadline_ms = 500;
	open_again(AUDIT_WRITE);
	tamper_sql(db, "BEGIN IMMEDIATE");
	ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &a), 0);
	cpu = cpu_us();
	ck_assert_fault(audit_append(lg, &r, &err), AQE_E_TIMEOUT, err, "locked");
	cpu = cpu_us() - cpu;
	ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &b), 0);
	ms = (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000;
	ck_assert_msg(ms >= 490 && ms < 5000, "%lld ms", (long long)ms);
	ck_assert_msg(cpu < 100000, "%lld us", (long long)cpu);
	tamper_sql(db, "COMMIT");
	sqlite3_close(db);
	add_rows(1);
	ck_assert_uint_eq(gaps().lost, 1);
	ck_assert_str_eq(gaps().why, "locked");
}
END_TEST

/* ---- damaged ---- */

START_TEST(corrupt__refuses_and_counts)
{
	struct audit_row r = full_row(1);
	char path[256], junk[8192];
	AQE_AUTO_FD int fd = -1;

	add_rows(1);
	audit_close(lg);
	lg = NULL;
	(void)snprintf(path, sizeof(path), "%s/audit.db-wal", log_dir);
	ck_assert_int_eq(unlink(path), 0);
	memset(junk, 'x', sizeof(junk));
	put("audit/audit.db", "", 0600);
	fd = openat(top, "audit/audit.db", O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(write(fd, junk, sizeof(junk)), (ssize_t)sizeof(junk));
	ck_assert_fault(audit_record(&opts, &r, 1, &err), AQE_E_MALFORMED, err, "not a database");
	ck_assert_uint_eq(pending().count, 1);
	ck_assert_str_eq(pending().why, "corrupt");
}
END_TEST

START_TEST(untrusted__refuses_and_counts)
{
	struct audit_row r = full_row(1);

	audit_close(lg);
	lg = NULL;
	ck_assert_int_eq(chmod(log_dir, 0750), 0);
	ck_assert_fault(audit_record(&opts, &r, 1, &err), AQE_E_UNTRUSTED, err, "0700");
	ck_assert_int_eq(chmod(log_dir, 0700), 0);
	put("audit/x", "", 0600);
	ck_assert_int_eq(fchmodat(top, "audit/audit.db", 0644, 0), 0);
	ck_assert_fault(audit_record(&opts, &r, 1, &err), AQE_E_UNTRUSTED, err, "0600");
	ck_assert_int_eq(fchmodat(top, "audit/audit.db", 0600, 0), 0);
	ck_assert_int_eq(linkat(top, "audit/audit.db", top, "second", 0), 0);
	ck_assert_fault(audit_record(&opts, &r, 1, &err), AQE_E_UNTRUSTED, err, "one name");
	ck_assert_int_eq(unlinkat(top, "second", 0), 0);
	ck_assert_int_eq(renameat(top, "audit", top, "moved"), 0);
	ck_assert_int_eq(symlinkat("moved", top, "audit"), 0);
	ck_assert_fault(audit_record(&opts, &r, 1, &err), AQE_E_UNTRUSTED, err, "open");
	ck_assert_int_eq(unlinkat(top, "audit", 0), 0);
	ck_assert_int_eq(renameat(top, "moved", top, "audit"), 0);
	ck_assert_ok(audit_record(&opts, &r, 1, &err), err);
	open_again(AUDIT_READ);
	ck_assert_uint_eq(gaps().lost, 4);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("audit_lost");
	TCase *t = tcase_create("lost");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup_lost, teardown_log);
	tcase_add_test(t, lost_add__is_told_once);
	tcase_add_test(t, counter__that_was_replaced_is_seen);
	tcase_add_test(t, gap__is_passed_on_once_it_is_stored);
	tcase_add_test(t, gap__is_not_told_twice);
	tcase_add_test(t, counter__damaged_is_not_silent);
	tcase_add_test(t, counter__counts_all_of_many);
	tcase_add_test(t, counter__link_is_not_followed);
	tcase_add_test(t, append__bad_row_is_counted);
	tcase_add_test(t, full__from_the_start);
	tcase_add_test(t, full__on_the_way);
	tcase_add_test(t, read_only__then_not);
	tcase_add_test(t, forbidden__folder_without_rights);
	tcase_add_test(t, locked__waits_asleep_and_gives_up);
	tcase_add_test(t, corrupt__refuses_and_counts);
	tcase_add_test(t, untrusted__refuses_and_counts);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
