/* SPDX-License-Identifier: MIT */
/* Finding and reading cgroup limits, in directories made for it. v1 as measured; v2 as the kernel's
 * Documentation/admin-guide/cgroup-v2.rst has it. */
#include "tests/unit/effect_fixture.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hardening/effect_int.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

/* ---- locating ---- */

static const struct {
	const char *groups, *mounts, *controller;
	int result;
	bool v2;
	const char *point, *below;
	unsigned levels;
} places[] = {
	{ "8:pids:/a/b\n0::/a/b\n", "38 30 0:35 / /cg/pids rw - cgroup cgroup rw,pids\n", "pids", 1,
	  false, "/cg/pids", "/a/b", 2 },
	/* the mount shows a part of the hierarchy only */
	{ "8:pids:/a/b\n", "38 30 0:35 /a /cg/pids rw - cgroup cgroup rw,pids\n", "pids", 1, false,
	  "/cg/pids", "/b", 1 },
	{ "8:pids:/a\n", "38 30 0:35 /a /cg/pids rw - cgroup cgroup rw,pids\n", "pids", 1, false,
	  "/cg/pids", "", 0 },
	/* another part: not to be confused by the same beginning */
	{ "8:pids:/ab\n", "38 30 0:35 /a /cg/pids rw - cgroup cgroup rw,pids\n", "pids", 0, 0, 0, 0,
	  0 },
	{ "8:pids:/ab\n",
	  "38 30 0:35 /a /cg/x rw - cgroup cgroup rw,pids\n"
	  "39 30 0:35 / /cg/y rw - cgroup cgroup rw,pids\n",
	  "pids", 1, false, "/cg/y", "/ab", 1 },
	{ "8:pids:/\n", "38 30 0:35 / /cg/pids rw - cgroup cgroup rw,pids\n", "pids", 1, false,
	  "/cg/pids", "", 0 },
	/* co-mounted controllers, and names that only contain the one we look for */
	{ "3:cpu,cpuacct:/a\n",
	  "31 30 0:30 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n"
	  "32 30 0:28 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
	  "cpu", 1, false, "/cg/cpu", "/a", 1 },
	{ "0::/m.slice/m-a.slice/x.scope\n", "30 22 0:27 / /cg rw - cgroup2 cgroup2 rw\n", "memory",
	  1, true, "/cg", "/m.slice/m-a.slice/x.scope", 3 },
	/* hybrid: the v1 hierarchy wins for its controller, v2 has the rest */
	{ "8:pids:/a\n0::/b\n",
	  "38 30 0:35 / /cg/pids rw - cgroup cgroup rw,pids\n"
	  "40 30 0:37 / /cg/unified rw - cgroup2 cgroup2 rw\n",
	  "memory", 1, true, "/cg/unified", "/b", 1 },
	/* outside of our cgroup namespace, removed, not mounted, in no hierarchy */
	{ "0::/../x\n", "30 22 0:27 / /cg rw - cgroup2 cgroup2 rw\n", "pids", 0, 0, 0, 0, 0 },
	{ "0::/x (deleted)\n", "30 22 0:27 / /cg rw - cgroup2 cgroup2 rw\n", "pids", 0, 0, 0, 0,
	  0 },
	{ "8:pids:/a\n", "30 22 0:27 / /cg rw - cgroup2 cgroup2 rw\n", "pids", 0, 0, 0, 0, 0 },
	{ "8:pids:/a\n", "", "pids", 0, 0, 0, 0, 0 },
	{ "8:pids:/a\n", "38 30 0:35 / /cg/pids rw - cgroup cgroup rw,pids\n", "memory", 0, 0, 0, 0,
	  0 },
	/* a tmpfs that calls itself cgroup */
	{ "0::/a\n", "30 22 0:27 / /cg rw - tmpfs cgroup2 rw\n", "pids", 0, 0, 0, 0, 0 },
};

START_TEST(locate__finds_the_directory)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	char *groups = strdup(places[_i].groups), *mounts = strdup(places[_i].mounts);
	struct hard_fx_cgroup g[HARD_FX_CGROUP_MAX];
	struct hard_fx_mount *m = NULL;
	struct hard_fx_cgdir dir;
	size_t n_g = 0, n_m = 0;

	ck_assert_int_eq(hard_fx_cgroups_parse(groups, g, HARD_FX_CGROUP_MAX, &n_g, NULL), 0);
	ck_assert_int_eq(hard_fx_mounts_parse(a, mounts, &m, &n_m, NULL), 0);
	ck_assert_int_eq(hard_fx_cgroup_locate(g, n_g, m, n_m, places[_i].controller, &dir),
			 places[_i].result);
	if (places[_i].result) {
		ck_assert_int_eq(dir.v2, places[_i].v2);
		ck_assert_str_eq(dir.point, places[_i].point);
		ck_assert_str_eq(dir.below, places[_i].below);
		ck_assert_uint_eq(dir.levels, places[_i].levels);
	}
	free(groups);
	free(mounts);
}
END_TEST

/* The real thing: our own mountinfo on a hybrid host, the groups of a container of crun's. */
START_TEST(locate__hybrid_host)
{
	static const char *const controllers[] = { "pids", "memory", "cpu", "devices" };
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	AQE_AUTO_BUF struct aqe_buf groups = AQE_BUF_INIT(65536), mounts = AQE_BUF_INIT(65536);
	struct hard_fx_cgroup g[HARD_FX_CGROUP_MAX];
	struct hard_fx_mount *m = NULL;
	struct hard_fx_cgdir dir;
	size_t n_g = 0, n_m = 0;

	fixture_read(&groups, FIXTURES "crun-userns/cgroup");
	fixture_read(&mounts, FIXTURES "self-v1");
	ck_assert_int_eq(hard_fx_cgroups_parse(groups.p, g, HARD_FX_CGROUP_MAX, &n_g, NULL), 0);
	ck_assert_int_eq(hard_fx_mounts_parse(a, mounts.p, &m, &n_m, NULL), 0);
	ck_assert_int_eq(hard_fx_cgroup_locate(g, n_g, m, n_m, controllers[_i], &dir), 1);
	ck_assert(!dir.v2);
	ck_assert(aqe_starts(dir.point, "/sys/fs/cgroup/") && aqe_ends(dir.point, controllers[_i]));
	ck_assert_str_eq(dir.below, "/libpod_parent/libpod-870be1aecc26");
}
END_TEST

/* ---- reading ---- */

struct world {
	char dir[64];
	struct aqe_arena *arena;
	struct aqe_buf groups, mounts, spec;
	struct hard_agent agent;
	struct hard_host host;
	struct hard_ctx ctx;
	struct hard_effect fx;
	struct hard_report report;
	struct aqe_err e;
};

static void put(const struct world *w, const char *path, const char *text)
{
	char full[256];
	size_t i;
	FILE *f;

	(void)snprintf(full, sizeof(full), "%s/%s", w->dir, path);
	for (i = strlen(w->dir) + 1; full[i]; i++) {
		if (full[i] != '/')
			continue;
		full[i] = '\0';
		(void)mkdir(full, 0755); /* may be there */
		full[i] = '/';
	}
	f = fopen(full, "w");
	ck_assert_msg(f != NULL, "%s", full);
	ck_assert(fputs(text, f) >= 0);
	ck_assert_int_eq(fclose(f), 0);
}

static int unlink_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static struct world *world_new(bool v2)
{
	struct world *w = calloc(1, sizeof(*w));

	ck_assert_ptr_nonnull(w);
	(void)snprintf(w->dir, sizeof(w->dir), "%s/aqe-limits-XXXXXX",
		       access("/tmp", W_OK) == 0 ? "/tmp" : ".");
	ck_assert_ptr_nonnull(mkdtemp(w->dir));
	w->arena = aqe_arena_new(4 << 20);
	w->groups.max = w->mounts.max = w->spec.max = 1 << 20;
	fixture_read(&w->spec, "tests/corpus/spec/ok-base.json");
	hard_report_init(&w->report, w->arena);
	w->agent = *hard_agent_profile();
	w->host.cgroup_limits = true;
	w->ctx.agent = &w->agent;
	w->ctx.host = &w->host;
	w->fx.ctx = &w->ctx;
	put(w, "proc/swaps", "Filename\tType\n");
	if (v2) {
		aqe_buf_puts(&w->groups, "0::/e/c\n");
		aqe_buf_addf(&w->mounts, "30 22 0:27 / %s/v2 rw - cgroup2 cgroup2 rw\n", w->dir);
		put(w, "v2/e/c/pids.max", "512\n");
		put(w, "v2/e/c/memory.max", "1073741824\n");
		put(w, "v2/e/c/memory.swap.max", "0\n");
		put(w, "v2/e/c/cpu.max", "200000 100000\n");
		return w;
	}
	aqe_buf_puts(&w->groups, "8:pids:/e/c\n5:devices:/e/c\n4:memory:/e/c\n1:cpu:/e/c\n0::/\n");
	aqe_buf_addf(&w->mounts,
		     "1 1 0:1 / %s/pids rw - cgroup cgroup rw,pids\n"
		     "2 1 0:2 / %s/memory rw - cgroup cgroup rw,memory\n"
		     "3 1 0:3 / %s/cpu rw - cgroup cgroup rw,cpu\n"
		     "4 1 0:4 / %s/devices rw - cgroup cgroup rw,devices\n",
		     w->dir, w->dir, w->dir, w->dir);
	put(w, "pids/e/c/pids.max", "512\n");
	put(w, "memory/e/c/memory.limit_in_bytes", "1073741824\n");
	put(w, "memory/e/c/memory.memsw.limit_in_bytes", "1073741824\n");
	put(w, "cpu/e/c/cpu.cfs_quota_us", "200000\n");
	put(w, "cpu/e/c/cpu.cfs_period_us", "100000\n");
	put(w, "devices/e/c/devices.list", "c *:* m\nb *:* m\nc 1:3 rwm\n");
	return w;
}

static int judge(struct world *w)
{
	struct hard_fx_cgroup g[HARD_FX_CGROUP_MAX];
	struct hard_fx_limits_in in = {
		.fx = &w->fx, .groups = g, .any_fs = true, .where = "/proc/7/cgroup"
	};
	struct hard_fx_mount *m = NULL;
	char path[96];
	int r;

	(void)snprintf(path, sizeof(path), "%s/proc", w->dir);
	in.proc_dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	w->fx.spec = fixture_json(w->arena, &w->spec);
	ck_assert_int_eq(hard_fx_cgroups_parse(w->groups.p, g, HARD_FX_CGROUP_MAX, &in.n_groups,
					       NULL),
			 0);
	ck_assert_int_eq(hard_fx_mounts_parse(w->arena, w->mounts.p, &m, &in.n_mounts, NULL), 0);
	in.mounts = m;
	r = hard_fx_limits_judge(&in, &w->report, &w->e);
	(void)close(in.proc_dir);
	return r;
}

static void world_free(struct world *w)
{
	(void)nftw(w->dir, unlink_one, 8, FTW_DEPTH | FTW_PHYS);
	aqe_buf_done(&w->groups);
	aqe_buf_done(&w->mounts);
	aqe_buf_done(&w->spec);
	aqe_arena_free(w->arena);
	free(w);
}

/* One file changed (text NULL: removed), and what comes of it. */
static const struct {
	bool v2;
	const char *file, *text;
	enum hard_prop prop;
	const char *found; /* NULL: still right */
	const char *file2, *text2;
} changes[] = {
	{ false, "pids/e/c/pids.max", "512\n", HARD_PIDS_LIMIT, NULL, NULL, NULL },
	{ true, "v2/e/c/pids.max", "512\n", HARD_PIDS_LIMIT, NULL, NULL, NULL },
	{ false, "pids/e/c/pids.max", "513\n", HARD_PIDS_LIMIT, "pids.max: 513", NULL, NULL },
	{ false, "pids/e/c/pids.max", "max\n", HARD_PIDS_LIMIT, "pids.max: none", NULL, NULL },
	{ false, "pids/e/c/pids.max", "100\n", HARD_PIDS_LIMIT, NULL, NULL, NULL },
	{ false, "pids/e/c/pids.max", NULL, HARD_PIDS_LIMIT, "no such limit", NULL, NULL },
	/* too wide in the group itself, but one above binds it */
	{ false, "pids/e/c/pids.max", "max\n", HARD_PIDS_LIMIT, NULL, "pids/e/pids.max", "512\n" },
	{ false, "pids/e/c/pids.max", "max\n", HARD_PIDS_LIMIT, "pids.max: 600", "pids/e/pids.max",
	  "600\n" },
	/* never above the root of the hierarchy */
	{ false, "pids/e/c/pids.max", "max\n", HARD_PIDS_LIMIT, "pids.max: none", "pids.max",
	  "5\n" },
	{ false, "memory/e/c/memory.limit_in_bytes", "9223372036854771712\n", HARD_MEMORY_LIMIT,
	  "memory.limit_in_bytes: 9223372036854771712", NULL, NULL },
	{ false, "memory/e/c/memory.memsw.limit_in_bytes", "2147483648\n", HARD_MEMORY_LIMIT,
	  "memory.memsw.limit_in_bytes: 2147483648", NULL, NULL },
	/* no swap accounting: fine without swap */
	{ false, "memory/e/c/memory.memsw.limit_in_bytes", NULL, HARD_MEMORY_LIMIT, NULL, NULL,
	  NULL },
	{ false, "memory/e/c/memory.memsw.limit_in_bytes", NULL, HARD_MEMORY_LIMIT,
	  "does not account swap", "proc/swaps", "Filename\n/dev/vdb partition\n" },
	{ false, "memory/e/c/memory.memsw.limit_in_bytes", NULL, HARD_MEMORY_LIMIT, NULL,
	  "proc/swaps", NULL },
	{ false, "cpu/e/c/cpu.cfs_quota_us", "-1\n", HARD_CPU_LIMIT, "cpu.cfs_quota_us: none", NULL,
	  NULL },
	{ false, "cpu/e/c/cpu.cfs_quota_us", "200001\n", HARD_CPU_LIMIT, "cpu.cfs_quota_us: 2001",
	  NULL, NULL },
	{ false, "cpu/e/c/cpu.cfs_period_us", "50000\n", HARD_CPU_LIMIT, "cpu.cfs_quota_us: 4000",
	  NULL, NULL },
	{ false, "cpu/e/c/cpu.cfs_quota_us", "20000\n", HARD_CPU_LIMIT, NULL, NULL, NULL },
	{ false, "devices/e/c/devices.list", "a *:* rwm\n", HARD_DEVICES,
	  "devices.list admits 'a *:* rwm'", NULL, NULL },
	{ true, "v2/e/c/pids.max", "max\n", HARD_PIDS_LIMIT, "pids.max: none", NULL, NULL },
	{ true, "v2/e/c/memory.max", "max\n", HARD_MEMORY_LIMIT, "memory.max: none", NULL, NULL },
	{ true, "v2/e/c/memory.max", "max\n", HARD_MEMORY_LIMIT, NULL, "v2/e/memory.max",
	  "1000000000\n" },
	{ true, "v2/e/c/memory.swap.max", "max\n", HARD_MEMORY_LIMIT, "memory.swap.max: none", NULL,
	  NULL },
	{ true, "v2/e/c/memory.swap.max", "4096\n", HARD_MEMORY_LIMIT, "memory.swap.max: 4096",
	  NULL, NULL },
	{ true, "v2/e/c/memory.swap.max", NULL, HARD_MEMORY_LIMIT, NULL, NULL, NULL },
	{ true, "v2/e/c/memory.swap.max", NULL, HARD_MEMORY_LIMIT, "does not account swap",
	  "proc/swaps", "Filename\n/dev/vdb partition\n" },
	{ true, "v2/e/c/cpu.max", "max 100000\n", HARD_CPU_LIMIT, "cpu.max: none", NULL, NULL },
	{ true, "v2/e/c/cpu.max", "300000 100000\n", HARD_CPU_LIMIT, "cpu.max: 3000", NULL, NULL },
	{ true, "v2/e/c/cpu.max", NULL, HARD_CPU_LIMIT, "no such limit", NULL, NULL },
};

static void change(const struct world *w, const char *file, const char *text)
{
	char path[256];

	if (text) {
		put(w, file, text);
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/%s", w->dir, file);
	ck_assert_int_eq(unlink(path), 0);
}

START_TEST(limits_judge__one_change)
{
	struct world *w = world_new(changes[_i].v2);

	change(w, changes[_i].file, changes[_i].text);
	if (changes[_i].file2)
		change(w, changes[_i].file2, changes[_i].text2);
	ck_assert_msg(judge(w) == 0, "%s", w->e.text);
	if (!changes[_i].found) {
		ck_assert_msg(w->report.n_findings == 0, "%s", fixture_findings(&w->report));
		ck_assert_int_eq(w->report.result[changes[_i].prop], HARD_PASS);
	} else {
		ck_assert_msg(fixture_finding(&w->report, changes[_i].prop, changes[_i].found) !=
				      NULL,
			      "%s", fixture_findings(&w->report));
		ck_assert_int_eq(w->report.result[changes[_i].prop], HARD_FAIL);
		ck_assert_uint_eq(w->report.n_findings, 1);
	}
	world_free(w);
}
END_TEST

/* In force but above what this spec or this agent type may have. */
START_TEST(limits_judge__spec_and_agent_bind)
{
	struct world *w = world_new(_i % 2);

	if (_i < 2)
		fixture_edit(&w->spec, "\"limit\": 512", "\"limit\": 100");
	else
		w->agent.cpus_milli = 500;
	ck_assert_int_eq(judge(w), 0);
	ck_assert_uint_eq(w->report.n_findings, 1);
	ck_assert_ptr_nonnull(fixture_finding(&w->report, _i < 2 ? HARD_PIDS_LIMIT : HARD_CPU_LIMIT,
					      _i < 2 ? "512" : "2000"));
	world_free(w);
}
END_TEST

START_TEST(limits_judge__rootless_on_v1)
{
	static const enum hard_prop three[] = { HARD_PIDS_LIMIT, HARD_MEMORY_LIMIT,
						HARD_CPU_LIMIT };
	struct world *w = world_new(false);
	size_t i;

	w->host.in_userns = true;
	w->host.cgroup_limits = false;
	ck_assert_int_eq(judge(w), 0);
	for (i = 0; i < AQE_COUNT(three); i++)
		ck_assert_ptr_nonnull(
			fixture_finding(&w->report, three[i],
					"rootless engine on cgroup v1 applies no limits"));
	ck_assert_uint_eq(w->report.n_findings, 3);
	world_free(w);
}
END_TEST

START_TEST(limits_judge__no_hierarchy_is_unknown)
{
	struct world *w = world_new(true);

	aqe_buf_clear(&w->mounts);
	aqe_buf_puts(&w->mounts, "1 1 0:1 / / rw - ext4 /dev/vda rw\n");
	ck_assert_int_eq(judge(w), 0);
	ck_assert_int_eq(w->report.result[HARD_PIDS_LIMIT], HARD_UNKNOWN);
	ck_assert_ptr_nonnull(fixture_finding(&w->report, HARD_MEMORY_LIMIT,
					      "no cgroup hierarchy with 'memory' is mounted"));
	world_free(w);
}
END_TEST

START_TEST(limits_judge__nonsense_is_an_error)
{
	struct world *w = world_new(true);

	put(w, "v2/e/c/memory.max", "lots\n");
	ck_assert_int_eq(judge(w), AQE_E_MALFORMED);
	ck_assert_msg(strstr(w->e.text, "memory.max") != NULL, "%s", w->e.text);
	world_free(w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening/effect_limits");
	TCase *t = tcase_create("limits");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, locate__finds_the_directory, 0, (int)AQE_COUNT(places));
	tcase_add_loop_test(t, locate__hybrid_host, 0, 4);
	tcase_add_loop_test(t, limits_judge__one_change, 0, (int)AQE_COUNT(changes));
	tcase_add_loop_test(t, limits_judge__spec_and_agent_bind, 0, 4);
	tcase_add_test(t, limits_judge__rootless_on_v1);
	tcase_add_test(t, limits_judge__no_hierarchy_is_unknown);
	tcase_add_test(t, limits_judge__nonsense_is_an_error);
	suite_add_tcase(s, t);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
