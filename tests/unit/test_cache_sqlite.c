/* SPDX-License-Identifier: MIT */
/* What is special about the SQLite store: many processes, killed ones, a full disk, a shrinking
 * file. The rest is in test_cache_contract.c. */
#include "cache/sqlite.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "shim/core/text.h"
#include "tests/unit/cache_util.h"

static struct aqe_err e;
static struct util_clock clk;

static struct cache_store open_at(const char *path, uint64_t entries, uint64_t bytes)
{
	const struct cache_sqlite_opts o = {
		.path = path, .max_entries = entries, .max_bytes = bytes, .busy_timeout_ms = 10000
	};
	struct cache_store s = CACHE_STORE_INIT;

	ck_assert_ok(cache_sqlite_new(&o, &s, &e), e);
	ck_assert_ok(cache_store_init(&s, &e), e);
	return s;
}

static struct cache_store open_store(void)
{
	return open_at(util_path("c.db"), 1000000, (uint64_t)1 << 30);
}

static void set_dim(struct cache_store *s, unsigned n, uint32_t dim)
{
	struct cache_item it = util_item(n, dim, clk.now.wall_ms, UTIL_TTL_MS);

	ck_assert_ok(cache_store_set(s, &it, 1, &clk.now, &e), e);
	aqe_buf_done(&it.value);
}

static bool get(struct cache_store *s, unsigned n)
{
	struct cache_item it = CACHE_ITEM_INIT;

	it.key = util_key(n);
	ck_assert_ok(cache_store_get(s, &it, 1, &clk.now, &e), e);
	ck_assert(!it.found || util_is(&it, n));
	aqe_buf_done(&it.value);
	return it.found;
}

static uint64_t size(struct cache_store *s)
{
	uint64_t n;

	ck_assert_ok(cache_store_size(s, &n, NULL, &e), e);
	return n;
}

static off_t file_size(const char *name)
{
	struct stat st;

	return stat(util_path(name), &st) == 0 ? st.st_size : 0;
}

static void setup(void)
{
	util_dir_init();
	util_clock_init(&clk);
}

/* ---- one process after another, and two at once ---- */

START_TEST(file__keeps_entries)
{
	struct cache_store s = open_store();

	set_dim(&s, 1, 768);
	cache_store_close(&s);
	s = open_store();
	ck_assert(get(&s, 1));
	cache_store_close(&s);
}
END_TEST

START_TEST(file__is_shared)
{
	struct cache_store a = open_store(), b = open_store();

	set_dim(&a, 1, 32);
	ck_assert(get(&b, 1));
	set_dim(&b, 2, 32);
	ck_assert(get(&a, 2));
	ck_assert_uint_eq(size(&a), 2);
	ck_assert_ok(cache_store_clear(&b, &e), e);
	ck_assert(!get(&a, 1));
	cache_store_close(&a);
	cache_store_close(&b);
}
END_TEST

START_TEST(file__is_cut_to_lower_bounds)
{
	struct cache_store s = open_store();

	for (unsigned i = 0; i < 3000; i++)
		set_dim(&s, i, 4);
	cache_store_close(&s);
	s = open_at(util_path("c.db"), 500, (uint64_t)1 << 30);
	ck_assert_uint_eq(size(&s), 500);
	ck_assert(!get(&s, 2499) && get(&s, 2500));
	cache_store_close(&s);
}
END_TEST

/* The order of use is known to all processes. */
START_TEST(file__shares_the_order_of_use)
{
	struct cache_store a = open_at(util_path("c.db"), 3, (uint64_t)1 << 30),
			   b = open_at(util_path("c.db"), 3, (uint64_t)1 << 30);

	for (unsigned i = 1; i <= 3; i++)
		set_dim(&a, i, 4);
	util_clock_add(&clk, 1000); /* b learns that it is full */
	ck_assert(get(&b, 1));
	(void)size(&b); /* writes down what was noted */
	util_clock_add(&clk, 10);
	set_dim(&a, 4, 4);
	ck_assert(get(&a, 1) && !get(&a, 2));
	cache_store_close(&a);
	cache_store_close(&b);
}
END_TEST

START_TEST(prune__gives_the_space_back)
{
	struct cache_store s = open_store();
	uint64_t n;
	off_t full;

	for (unsigned i = 0; i < 2000; i++)
		set_dim(&s, i, 768);
	full = file_size("c.db") + file_size("c.db-wal");
	ck_assert_int_gt(full, 2000 * 3072);
	util_clock_add(&clk, UTIL_TTL_MS);
	ck_assert_ok(cache_store_prune(&s, &clk.now, &n, &e), e);
	ck_assert_uint_eq(n, 2000);
	ck_assert_int_lt(file_size("c.db") + file_size("c.db-wal"), 200000);
	for (unsigned i = 0; i < 2000; i++)
		set_dim(&s, i, 768);
	ck_assert_ok(cache_store_clear(&s, &e), e);
	ck_assert_int_lt(file_size("c.db") + file_size("c.db-wal"), 200000);
	cache_store_close(&s);
}
END_TEST

/* ---- what is no file of ours ---- */

START_TEST(init__refuses_other_files)
{
	static const struct {
		const char *path, *text;
		int code;
	} ROWS[] = {
		{ "c.db", "not a database", AQE_E_MALFORMED },
		{ "none/", "absolute path", AQE_E_USAGE },
		{ "link", "not a regular file", AQE_E_UNTRUSTED },
		{ "open", "open to others", AQE_E_UNTRUSTED },
	};
	struct cache_sqlite_opts o = { .max_entries = 1, .max_bytes = 100000 };
	struct cache_store s = CACHE_STORE_INIT;
	FILE *f = fopen(util_path("c.db"), "w");
	int rc;

	ck_assert_int_ge(fprintf(f, "%2000s", "no database"), 2000);
	fclose(f);
	chmod(util_path("c.db"), 0600);
	ck_assert_int_eq(symlink("c.db", util_path("link")), 0);
	f = fopen(util_path("open"), "w");
	fclose(f);
	chmod(util_path("open"), 0666);
	o.path = util_path(ROWS[_i].path);
	rc = cache_sqlite_new(&o, &s, &e);
	if (!rc)
		rc = cache_store_init(&s, &e);
	ck_assert_fault(rc, ROWS[_i].code, e, ROWS[_i].text);
	cache_store_close(&s);
}
END_TEST

/* Pages overwritten with noise: errors, or values that the checksum does not pass; no crash. */
START_TEST(file__may_be_corrupt)
{
	struct cache_item it = CACHE_ITEM_INIT;
	struct cache_store s = open_store();
	unsigned seed = (unsigned)_i + 1, errors = 0, wrong = 0;
	FILE *f;

	for (unsigned i = 0; i < 200; i++)
		set_dim(&s, i, 768);
	util_clock_add(&clk, UTIL_TTL_MS);
	set_dim(&s, 300, 4);
	ck_assert_ok(cache_store_prune(&s, &clk.now, NULL, &e), e); /* into the file itself */
	for (unsigned i = 0; i < 200; i++)
		set_dim(&s, i, 768);
	ck_assert_ok(cache_store_prune(&s, &clk.now, NULL, &e), e);
	cache_store_close(&s);
	f = fopen(util_path("c.db"), "r+");
	for (int i = 0; i < 300; i++) {
		fseek(f, 4096 + rand_r(&seed) % (200 * 4096), SEEK_SET);
		fputc(rand_r(&seed) & 0xff, f);
	}
	fclose(f);
	s = open_store();
	for (unsigned i = 0; i < 200; i++) {
		it.key = util_key(i);
		if (cache_store_get(&s, &it, 1, &clk.now, &e))
			errors++;
		else if (it.found && !util_is(&it, i))
			wrong++;
	}
	ck_assert_uint_gt(errors + wrong, 0);
	aqe_buf_done(&it.value);
	cache_store_close(&s);
}
END_TEST

/* ---- many processes ---- */

struct shared {
	atomic_uint writes, reads, hits, lost, mixed, failed;
	char why[AQE_ERR_TEXT_MAX];
};

static int64_t mono_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void failed(struct shared *sh)
{
	if (atomic_fetch_add(&sh->failed, 1) == 0)
		snprintf(sh->why, sizeof(sh->why), "%s", e.text);
}

#define KEYS_EACH 50

/* Writes keys of its own and finds every one again. */
static void write_for(struct shared *sh, unsigned id, int64_t until)
{
	struct cache_store s = open_store();
	struct cache_item in, out = CACHE_ITEM_INIT;

	for (unsigned i = 0; mono_ms() < until; i++) {
		const unsigned n = id * KEYS_EACH + i % KEYS_EACH;

		in = util_item(n, 256 + i % 7, clk.now.wall_ms, UTIL_TTL_MS);
		out.key = in.key;
		if (cache_store_set(&s, &in, 1, &clk.now, &e) ||
		    cache_store_get(&s, &out, 1, &clk.now, &e))
			failed(sh);
		else if (!out.found || out.value.len != in.value.len)
			atomic_fetch_add(&sh->lost, 1);
		else if (memcmp(out.value.p, in.value.p, in.value.len) != 0)
			atomic_fetch_add(&sh->mixed, 1);
		atomic_fetch_add(&sh->writes, 1);
		aqe_buf_done(&in.value);
	}
	aqe_buf_done(&out.value);
	cache_store_close(&s);
}

static void read_for(struct shared *sh, unsigned id, unsigned writers, int64_t until)
{
	struct cache_store s = open_store();
	struct cache_item out = CACHE_ITEM_INIT;
	unsigned seed = id;

	while (mono_ms() < until) {
		const unsigned n = (unsigned)rand_r(&seed) % (writers * KEYS_EACH);

		out.key = util_key(n);
		if (cache_store_get(&s, &out, 1, &clk.now, &e))
			failed(sh);
		else if (out.found && !util_is(&out, n))
			atomic_fetch_add(&sh->mixed, 1);
		atomic_fetch_add(&sh->reads, 1);
		atomic_fetch_add(&sh->hits, out.found);
	}
	aqe_buf_done(&out.value);
	cache_store_close(&s);
}

static struct shared *new_shared(void)
{
	struct shared *sh =
		mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(sh, MAP_FAILED);
	return sh;
}

/* Seconds from the environment: 20 in the integration tests, fewer here. */
static int64_t seconds(const char *name, uint64_t usual)
{
	uint64_t s = usual;

	(void)aqe_parse_u64(getenv(name) ? getenv(name) : "", 3600, &s);
	return (int64_t)s;
}

START_TEST(file__serves_many_processes)
{
	enum { WRITERS = 30, READERS = 30 };
	struct shared *sh = new_shared();
	const int64_t until = mono_ms() + seconds("AQE_CACHE_STRESS_S", 3) * 1000;

	for (unsigned i = 0; i < WRITERS + READERS; i++) {
		const pid_t pid = fork();

		ck_assert_int_ge(pid, 0);
		if (pid > 0)
			continue;
		if (i < WRITERS)
			write_for(sh, i, until);
		else
			read_for(sh, i, WRITERS, until);
		_exit(0);
	}
	for (int i = 0, status; i < WRITERS + READERS; i++) {
		ck_assert_int_gt(wait(&status), 0);
		ck_assert_int_eq(status, 0);
	}
	printf("# %u writes, %u reads, %u hits\n", sh->writes, sh->reads, sh->hits);
	ck_assert_msg(sh->failed == 0, "%u failed: %s", sh->failed, sh->why);
	ck_assert_uint_eq(sh->lost, 0);
	ck_assert_uint_eq(sh->mixed, 0);
	ck_assert_uint_gt(sh->writes, 300);
	ck_assert_uint_gt(sh->hits, 300);
}
END_TEST

/* Writers killed at any moment: the file opens, and what it returns is whole. */
START_TEST(file__survives_killed_writers)
{
	struct shared *sh = new_shared();
	unsigned found = 0;

	for (int round = 0; round < 15; round++) {
		const pid_t pid = fork();
		struct timespec some = { 0, 20000000 + round * 1700000 };
		struct cache_store s;

		ck_assert_int_ge(pid, 0);
		if (pid == 0) {
			write_for(sh, 0, mono_ms() + 60000);
			_exit(0);
		}
		nanosleep(&some, NULL);
		kill(pid, SIGKILL);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		s = open_store();
		for (unsigned i = 0; i < KEYS_EACH; i++)
			found += get(&s, i); /* which looks at every number */
		cache_store_close(&s);
	}
	ck_assert_uint_gt(found, 0);
}
END_TEST

/* ---- a full disk ---- */

static void on_full_disk(void)
{
	char *big = calloc(1, 1 << 20);
	struct cache_store s;
	struct cache_item it;
	unsigned n = 0;
	int rc = 0;
	FILE *f;

	f = fopen(util_path("rest"), "w");
	ck_assert_uint_eq(fwrite(big, 1, 1 << 19, f), 1 << 19);
	s = open_store();
	do {
		it = util_item(n++, 1536, clk.now.wall_ms, UTIL_TTL_MS);
		rc = cache_store_set(&s, &it, 1, &clk.now, &e);
		aqe_buf_done(&it.value);
	} while (!rc && n < 5000);
	ck_assert_fault(rc, AQE_E_SYS, e, "disk full");
	ck_assert_int_eq(e.sys, ENOSPC);
	while (fwrite(big, 1, 4096, f) == 4096 && fflush(f) == 0)
		; /* to the last block */
	for (unsigned i = 0; i < n - 1; i++)
		ck_assert(get(&s, i)); /* reads go on */
	it = util_item(n, 1536, clk.now.wall_ms, UTIL_TTL_MS);
	ck_assert_fault(cache_store_set(&s, &it, 1, &clk.now, &e), AQE_E_SYS, e, "disk full");
	aqe_buf_done(&it.value);
	cache_store_close(&s);
	s = open_store(); /* and a new process can read */
	ck_assert(get(&s, 0));
	fclose(f);
	unlink(util_path("rest"));
	set_dim(&s, n, 4); /* space again: writes again */
	ck_assert(get(&s, n));
	cache_store_close(&s);
	free(big);
}

START_TEST(set__fails_clearly_on_a_full_disk)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", util_dir, "tmpfs", 0, "size=4m,mode=0700")) {
		ck_assert_ptr_null(getenv("AQE_TESTS_MUST_RUN")); /* needs root */
		return;
	}
	on_full_disk();
	umount(util_dir);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sqlite");
	TCase *t = tcase_create("sqlite");

	tcase_set_timeout(t, 300);
	tcase_add_checked_fixture(t, setup, util_dir_done);
	tcase_add_test(t, file__keeps_entries);
	tcase_add_test(t, file__is_shared);
	tcase_add_test(t, file__is_cut_to_lower_bounds);
	tcase_add_test(t, file__shares_the_order_of_use);
	tcase_add_test(t, prune__gives_the_space_back);
	tcase_add_loop_test(t, init__refuses_other_files, 0, 4);
	tcase_add_loop_test(t, file__may_be_corrupt, 0, 5);
	tcase_add_test(t, file__serves_many_processes);
	tcase_add_test(t, file__survives_killed_writers);
	tcase_add_test(t, set__fails_clearly_on_a_full_disk);
	suite_add_tcase(s, t);
	return unit_run(s);
}
