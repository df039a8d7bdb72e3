/* SPDX-License-Identifier: MIT */
/* Samples of both cgroup versions from folders made to look like them, thresholds, OOM prevention.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/sandbox/monitor_int.h"
#include "shim/sandbox/usage.h"
#include "tests/unit/unit.h"

static char place[] = "/tmp/aqe-usage-XXXXXX";
static struct shim_cgroup c;

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", place, name);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(place));
	c = (struct shim_cgroup)SHIM_CGROUP_INIT;
	for (int i = 0; i < SHIM_CGS; i++)
		c.fd[i] = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	c.proc_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(c.proc_fd, 0);
}
static void teardown(void)
{
	int parent = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	shim_cgroup_done(&c);
	(void)!aqe_fs_remove_tree(parent, strrchr(place, '/') + 1, NULL);
	(void)close(parent);
}

static void put_net(void)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/net", place);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	put("net/dev",
	    "Inter-|   Receive                                                |  Transmit\n"
	    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n"
	    "    lo:    1000      10    0    0    0     0          0         0     2000      20\n"
	    "  eth0:      11       1    0    0    0     0          0         0       22       2\n");
}

START_TEST(read__v1)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_usage u;

	put("cpuacct.usage", "5000000000\n");
	put("cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_time 9\n");
	put("cpu.cfs_quota_us", "150000\n");
	put("cpu.cfs_period_us", "100000\n");
	put("memory.usage_in_bytes", "104857600\n");
	put("memory.limit_in_bytes", "209715200\n");
	put("memory.memsw.usage_in_bytes", "104859648\n");
	put("memory.stat", "cache 9\ninactive_file 7\ntotal_inactive_file 4857600\n");
	put("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
	put("pids.current", "17\n");
	put("pids.max", "512\n");
	put_net();
	ck_assert_ok(shim_usage_read(&c, &u, &e), e);
	ck_assert_uint_eq(u.cpu_ns, 5000000000);
	ck_assert_uint_eq(u.throttled, 4);
	ck_assert_uint_eq(u.cpu_limit_milli, 1500);
	ck_assert_uint_eq(u.memory_raw, 104857600);
	ck_assert_uint_eq(u.memory, 100000000);
	ck_assert_uint_eq(u.memory_limit, 209715200);
	ck_assert_uint_eq(u.swap, 2048);
	ck_assert_uint_eq(u.pids, 17);
	ck_assert_uint_eq(u.pids_limit, 512);
	ck_assert_uint_eq(u.oom_kills, 3);
	ck_assert_uint_eq(u.net_in, 1011);
	ck_assert_uint_eq(u.net_out, 2022);
}
END_TEST

START_TEST(read__v2)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_usage u;

	for (int i = 0; i < SHIM_CGS; i++)
		c.v2[i] = true;
	put("cpu.stat", "usage_usec 7000\nuser_usec 1\nnr_throttled 2\n");
	put("cpu.max", "50000 100000\n");
	put("memory.current", "1000000\n");
	put("memory.max", "max\n");
	put("memory.stat", "anon 5\ninactive_file 250000\n");
	put("memory.swap.current", "4096\n");
	put("memory.events", "low 0\nhigh 0\nmax 4\noom 1\noom_kill 2\n");
	put("pids.current", "3\n");
	put("pids.max", "max\n");
	ck_assert_ok(shim_usage_read(&c, &u, &e), e);
	ck_assert_uint_eq(u.cpu_ns, 7000000);
	ck_assert_uint_eq(u.cpu_limit_milli, 500);
	ck_assert_uint_eq(u.memory, 750000);
	ck_assert_uint_eq(u.memory_limit, SHIM_UNLIMITED);
	ck_assert_uint_eq(u.swap, 4096);
	ck_assert_uint_eq(u.pids_limit, SHIM_UNLIMITED);
	ck_assert_uint_eq(u.oom_kills, 2);
	put("memory.events", "oom_kill 5\n");
	ck_assert_uint_eq(shim_usage_oom_kills(&c), 5);
}
END_TEST

static const char *const JUNK[] = { "", "\n", "x", "-1\n", "99999999999999999999999\n", "1 2\n" };

START_TEST(read__junk_is_nothing)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_usage u;

	put("cpuacct.usage", JUNK[_i]);
	put("memory.usage_in_bytes", JUNK[_i]);
	put("memory.oom_control", JUNK[_i]);
	put("pids.current", JUNK[_i]);
	ck_assert_ok(shim_usage_read(&c, &u, &e), e);
	ck_assert_uint_eq(u.cpu_ns + u.memory + u.pids + u.oom_kills, 0);
}
END_TEST

START_TEST(read__gone)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_usage u;

	ck_assert_fault(shim_usage_read(&c, &u, &e), AQE_E_ABSENT, e, "gone");
}
END_TEST

/* U17: whatever the path of the group is, /proc/PID/cgroup says it. Here: our own. */
START_TEST(open__finds_our_own_group)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_cgroup own = SHIM_CGROUP_INIT;
	struct shim_usage u;
	int rc = shim_cgroup_open(getpid(), &own, &e);

	if (rc == AQE_E_ABSENT)
		return; /* a machine where no hierarchy is mounted */
	ck_assert_ok(rc, e);
	ck_assert_ok(shim_usage_read(&own, &u, &e), e);
	shim_cgroup_done(&own);
	ck_assert_fault(shim_cgroup_open(0x7ffffff0, &own, &e), AQE_E_ABSENT, e, "no process");
}
END_TEST

START_TEST(percent__of_cpu_and_limits)
{
	struct shim_usage a = { .at_ns = 1000, .cpu_ns = 500 },
			  b = { .at_ns = 3000, .cpu_ns = 1500 };

	ck_assert_double_eq_tol(shim_usage_cpu_percent(&a, &b), 50, 0.001);
	ck_assert_double_eq_tol(shim_usage_cpu_percent(&b, &a), 0, 0.001);
	ck_assert_double_eq_tol(shim_usage_cpu_percent(&a, &a), 0, 0.001);
	ck_assert_double_eq_tol(shim_usage_percent(85, 100), 85, 0.001);
	ck_assert_double_eq_tol(shim_usage_percent(85, 0), 0, 0.001);
	ck_assert_double_eq_tol(shim_usage_percent(85, SHIM_UNLIMITED), 0, 0.001);
}
END_TEST

/* A sequence of memory percentages and what each sample leads to. */
static const struct {
	const char *policy;
	unsigned percent[8];
	const char *told, *oom; /* a letter a sample: T told; R reclaim, S stop */
} OOMS[] = {
	{ "stop", { 10, 84, 85, 90, 81, 84, 86, 79 }, "--T-----", "--------" },
	{ "stop", { 79, 85, 79, 85, 95, 95, 95, 95 }, "-T-T----", "----R-S-" },
	{ "stop", { 96, 94, 96, 96, 94, 96, 96, 96 }, "T-------", "R-R--R-S" },
	{ "reclaim", { 99, 99, 99, 99, 99, 99, 99, 99 }, "T-------", "R-------" },
	{ "off", { 99, 99, 99, 99, 99, 99, 99, 99 }, "T-------", "--------" },
};

START_TEST(judge__thresholds_and_oom_prevention)
{
	struct shim_watch_state w = { { false }, 0 };

	for (int i = 0; i < 8; i++) {
		struct shim_usage u = { .memory = OOMS[_i].percent[i],
					.memory_limit = 100,
					.cpu_limit_milli = SHIM_UNLIMITED };
		struct shim_watch_verdict v;
		char oom = OOMS[_i].oom[i];

		shim_watch_judge(&w, &u, &u, OOMS[_i].policy, &v);
		ck_assert_msg(v.tell[SHIM_WATCH_MEMORY] == (OOMS[_i].told[i] == 'T'), "sample %d",
			      i);
		ck_assert_msg((int)v.oom == (oom == 'R'   ? SHIM_OOM_RECLAIM
					     : oom == 'S' ? SHIM_OOM_STOP
							  : SHIM_OOM_NOTHING),
			      "sample %d: %d", i, (int)v.oom);
	}
}
END_TEST

START_TEST(judge__cpu_of_its_limit_and_disk)
{
	struct shim_watch_state w = { { false }, 0 };
	struct shim_usage a = { .at_ns = 0, .cpu_ns = 0, .cpu_limit_milli = 500 };
	struct shim_usage b = { .at_ns = 1000000000,
				.cpu_ns = 450000000,
				.cpu_limit_milli = 500,
				.disk = 80,
				.disk_limit = 100 };
	struct shim_watch_verdict v;

	shim_watch_judge(&w, &a, &b, "stop", &v);
	ck_assert(v.tell[SHIM_WATCH_CPU]); /* 45 % of one CPU is 90 % of half a CPU */
	ck_assert_double_eq_tol(v.percent[SHIM_WATCH_CPU], 90, 0.001);
	ck_assert(v.tell[SHIM_WATCH_DISK]);
	ck_assert(!v.tell[SHIM_WATCH_MEMORY]);
	shim_watch_judge(&w, &a, &b, "stop", &v);
	ck_assert(!v.tell[SHIM_WATCH_CPU] && !v.tell[SHIM_WATCH_DISK]); /* once a crossing */
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sandbox_usage");
	TCase *t = tcase_create("usage");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, read__v1);
	tcase_add_test(t, read__v2);
	tcase_add_loop_test(t, read__junk_is_nothing, 0, AQE_COUNT(JUNK));
	tcase_add_test(t, read__gone);
	tcase_add_test(t, open__finds_our_own_group);
	tcase_add_test(t, percent__of_cpu_and_limits);
	tcase_add_loop_test(t, judge__thresholds_and_oom_prevention, 0, AQE_COUNT(OOMS));
	tcase_add_test(t, judge__cpu_of_its_limit_and_disk);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
