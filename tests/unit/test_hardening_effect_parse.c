/* SPDX-License-Identifier: MIT */
#include "tests/unit/effect_fixture.h"

#include "hardening/effect_parse.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

/* ---- status ---- */

static const struct {
	const char *file;
	uint64_t uid, seccomp, filters;
} good_status[] = {
	{ "crun-userns", 101000, 0, 0 }, { "crun-nouserns", 1000, 0, 0 },
	{ "runc-userns", 101000, 2, 1 }, { "runc-nouserns", 1000, 2, 1 },
	{ "crun-rootless", 1000, 0, 0 }, { "runc-rootless", 1000, 2, 1 },
};

START_TEST(status_parse__reads_real_ones)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);
	struct hard_fx_status st;
	struct aqe_err e = AQE_ERR_INIT;
	char path[128];
	size_t i;

	(void)snprintf(path, sizeof(path), FIXTURES "%s/status", good_status[_i].file);
	ck_assert_msg(hard_fx_status_parse(fixture_read(&b, path), &st, &e) == 0, "%s", e.text);
	ck_assert_int_eq(st.state, 'S');
	for (i = 0; i < 4; i++) {
		ck_assert_uint_eq(st.uid[i], good_status[_i].uid);
		ck_assert_uint_eq(st.gid[i], good_status[_i].uid);
	}
	for (i = 0; i < HARD_FX_CAP_SETS; i++)
		ck_assert_uint_eq(st.caps[i], 0);
	ck_assert_uint_eq(st.n_groups, 1);
	ck_assert_uint_eq(st.groups[0], good_status[_i].uid);
	ck_assert(st.has_umask && st.umask == 022);
	ck_assert_uint_eq(st.no_new_privs, 1);
	ck_assert_uint_eq(st.seccomp, good_status[_i].seccomp);
	ck_assert(st.has_filters && st.seccomp_filters == good_status[_i].filters);
	ck_assert(st.n_nspid == 2 && st.nspid_last == 1);
}
END_TEST

static const struct {
	const char *from, *to, *why;
} bad_status[] = {
	{ "CapBnd:\t0000000000000000\n", "", "no line 'CapBnd'" },
	{ "NoNewPrivs:\t1\n", "", "no line 'NoNewPrivs'" },
	{ "Seccomp:\t0\n", "", "no line 'Seccomp'" },
	{ "State:\tS (sleeping)\n", "", "no line 'State'" },
	{ "Groups:\t101000 \n", "", "no line 'Groups'" },
	{ "CapEff:\t", "CapEff:\tx", "line 'CapEff'" },
	{ "CapEff:\t0000000000000000", "CapEff:\t00000000000000000", "line 'CapEff'" },
	{ "CapEff:\t0000000000000000", "CapEff:", "line 'CapEff'" },
	{ "CapEff:\t0000000000000000", "CapEff:\t0000 0000", "line 'CapEff'" },
	{ "CapEff:\t0000000000000000", "CapEff:\t000000000000000A", "line 'CapEff'" },
	{ "NoNewPrivs:\t1", "NoNewPrivs:\t1 1", "line 'NoNewPrivs'" },
	{ "NoNewPrivs:\t1", "NoNewPrivs:\t-1", "line 'NoNewPrivs'" },
	{ "NoNewPrivs:\t1\n", "NoNewPrivs:\t1\nNoNewPrivs:\t0\n", "line 'NoNewPrivs'" },
	{ "Seccomp:\t0", "Seccomp:\t4294967296", "line 'Seccomp'" },
	{ "Uid:\t101000\t", "Uid:\t", "line 'Uid'" },
	{ "Uid:\t101000\t", "Uid:\t101000\t0\t", "line 'Uid'" },
	{ "Umask:\t0022", "Umask:\t0029", "line 'Umask'" },
	{ "State:\tS (", "State:\tSS (", "line 'State'" },
	{ "NSpid:\t4711\t1", "NSpid:", "line 'NSpid'" },
};

START_TEST(status_parse__refuses)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);
	struct hard_fx_status st;
	struct aqe_err e = AQE_ERR_INIT;

	fixture_read(&b, FIXTURES "crun-userns/status");
	fixture_edit(&b, bad_status[_i].from, bad_status[_i].to);
	ck_assert_int_eq(hard_fx_status_parse(b.p, &st, &e), AQE_E_MALFORMED);
	ck_assert_msg(strstr(e.text, bad_status[_i].why) != NULL, "%s", e.text);
}
END_TEST

START_TEST(status_parse__name_cannot_add_lines)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);
	struct hard_fx_status st;

	/* the kernel escapes the newline of a name like "x\nCapEff:\t0" */
	fixture_read(&b, FIXTURES "crun-userns/status");
	fixture_edit(&b, "Name:\tcrun", "Name:\tx\\nNoNewPrivs:\t0");
	ck_assert_int_eq(hard_fx_status_parse(b.p, &st, NULL), 0);
	ck_assert_uint_eq(st.no_new_privs, 1);
}
END_TEST

START_TEST(status_parse__zombie_and_old_kernel)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);
	struct hard_fx_status st;

	fixture_read(&b, FIXTURES "crun-userns/status");
	fixture_edit(&b, "Umask:\t0022\n", "");
	fixture_edit(&b, "S (sleeping)", "Z (zombie)");
	fixture_edit(&b, "Seccomp_filters:\t0\n", "");
	ck_assert_int_eq(hard_fx_status_parse(b.p, &st, NULL), 0);
	ck_assert(st.state == 'Z' && !st.has_umask && !st.has_filters);
}
END_TEST

START_TEST(status_parse__groups_limit)
{
	static const int more[] = { HARD_FX_GROUPS_MAX - 1, HARD_FX_GROUPS_MAX };
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536), g = AQE_BUF_INIT(65536);
	struct hard_fx_status st;
	int i;

	fixture_read(&b, FIXTURES "crun-userns/status");
	aqe_buf_puts(&g, "Groups:\t");
	for (i = 0; i < more[_i]; i++)
		aqe_buf_puts(&g, "7 ");
	fixture_edit(&b, "Groups:\t", g.p);
	ck_assert_int_eq(hard_fx_status_parse(b.p, &st, NULL), _i ? AQE_E_MALFORMED : 0);
}
END_TEST

/* ---- id maps ---- */

START_TEST(idmap_parse__reads_and_refuses)
{
	struct hard_idmap m[3];
	size_t n = 9;

	ck_assert_int_eq(hard_fx_idmap_parse("         0       1001          1\n"
					     "         1     100000      65536\n",
					     m, 3, &n, NULL),
			 0);
	ck_assert_uint_eq(n, 2);
	ck_assert(m[1].inside == 1 && m[1].outside == 100000 && m[1].size == 65536);
	ck_assert_int_eq(hard_fx_idmap_parse("", m, 3, &n, NULL), 0);
	ck_assert_uint_eq(n, 0);
	ck_assert_int_eq(hard_fx_idmap_parse("0 1\n", m, 3, &n, NULL), AQE_E_MALFORMED);
	ck_assert_int_eq(hard_fx_idmap_parse("0 1 2 3\n", m, 3, &n, NULL), AQE_E_MALFORMED);
	ck_assert_int_eq(hard_fx_idmap_parse("0 1 4294967296\n", m, 3, &n, NULL), AQE_E_MALFORMED);
	ck_assert_int_eq(hard_fx_idmap_parse("0 0 1\n1 1 1\n2 2 1\n", m, 3, &n, NULL), 0);
	ck_assert_int_eq(hard_fx_idmap_parse("0 0 1\n1 1 1\n2 2 1\n3 3 1\n", m, 3, &n, NULL),
			 AQE_E_LIMIT);
}
END_TEST

START_TEST(idmap_normalise__sorts_and_joins)
{
	struct hard_idmap a[] = { { 1000, 0, 1 }, { 0, 1, 500 }, { 500, 501, 500 }, { 7, 7, 0 } };
	const struct hard_idmap want[] = { { 0, 1, 1000 }, { 1000, 0, 1 } };
	const struct hard_idmap other[] = { { 0, 1, 1000 }, { 1000, 1, 1 } };
	size_t n = hard_fx_idmap_normalise(a, AQE_COUNT(a));
	uint64_t out = 0;

	ck_assert(hard_fx_idmap_equal(a, n, want, 2));
	ck_assert(!hard_fx_idmap_equal(a, n, other, 2));
	ck_assert(!hard_fx_idmap_equal(a, n, want, 1));
	ck_assert(hard_fx_idmap_out(a, n, 999, &out) && out == 1000);
	ck_assert(hard_fx_idmap_out(a, n, 1000, &out) && out == 0);
	ck_assert(!hard_fx_idmap_out(a, n, 1001, &out));
}
END_TEST

/* ---- mountinfo ---- */

static const struct {
	const char *line;
	int result;
	const char *root, *point, *fstype, *source, *super;
	unsigned flags;
	bool peers;
} mount_lines[] = {
	{ "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n", 1,
	  "/mnt1", "/mnt2", "ext3", "/dev/root", "rw,errors=continue", 0, true },
	{ "36 35 98:0 / /a ro,nosuid,nodev,noexec shared:4 master:2 - tmpfs  rw\n", 1, "/", "/a",
	  "tmpfs", "", "rw", HARD_FX_RO | HARD_FX_NOSUID | HARD_FX_NODEV | HARD_FX_NOEXEC, true },
	{ "36 35 98:0 / /a rw propagate_from:9 - x y z\n", 1, "/", "/a", "x", "y", "z", 0, true },
	{ "36 35 98:0 / /a rw unbindable - x y z\n", 1, "/", "/a", "x", "y", "z", 0, false },
	{ "36 35 98:0 / /a\\040b\\011\\012\\134\\043 rw - x y z\n", 1, "/", "/a b\t\n\\#", "x", "y",
	  "z", 0, false },
	{ "36 35 98:0 / /robots rw,norodev - x y z\n", 1, "/", "/robots", "x", "y", "z", 0, false },
	/* hostile: a path that looks like the fields behind it */
	{ "36 35 98:0 / /a\\040ro\\040-\\040tmpfs rw - x y z\n", 1, "/", "/a ro - tmpfs", "x", "y",
	  "z", 0, false },
	{ "36 35 98:0 / /a rw - x y\n", AQE_E_MALFORMED, 0, 0, 0, 0, 0, 0, 0 },
	{ "36 35 98:0 / /a rw - x y z more\n", AQE_E_MALFORMED, 0, 0, 0, 0, 0, 0, 0 },
	{ "36 35 98:0 / /a rw x y z\n", AQE_E_MALFORMED, 0, 0, 0, 0, 0, 0, 0 },
	{ "36 35 98:0 / a rw - x y z\n", AQE_E_MALFORMED, 0, 0, 0, 0, 0, 0, 0 },
	{ "36 35 98:0 / /a\\04 rw - x y z\n", AQE_E_MALFORMED, 0, 0, 0, 0, 0, 0, 0 },
	{ "36 35 98:0 / /a\\000 rw - x y z\n", AQE_E_MALFORMED, 0, 0, 0, 0, 0, 0, 0 },
	{ "36 35 98:0 / /a\\477 rw - x y z\n", AQE_E_MALFORMED, 0, 0, 0, 0, 0, 0, 0 },
	{ "x 35 98:0 / /a rw - x y z\n", AQE_E_MALFORMED, 0, 0, 0, 0, 0, 0, 0 },
	{ "36 35 98 / /a rw - x y z\n", AQE_E_MALFORMED, 0, 0, 0, 0, 0, 0, 0 },
	{ "\n", AQE_E_MALFORMED, 0, 0, 0, 0, 0, 0, 0 },
	{ "36 35 98:0 / /a rw - x y z", AQE_E_MALFORMED, 0, 0, 0, 0, 0, 0, 0 },
	{ "", 0, 0, 0, 0, 0, 0, 0, 0 },
};

START_TEST(mount_next__one_line)
{
	char *text = strdup(mount_lines[_i].line), *p = text;
	struct hard_fx_mount m;

	ck_assert_int_eq(hard_fx_mount_next(&p, &m, NULL), mount_lines[_i].result);
	if (mount_lines[_i].result == 1) {
		ck_assert_str_eq(m.root, mount_lines[_i].root);
		ck_assert_str_eq(m.point, mount_lines[_i].point);
		ck_assert_str_eq(m.fstype, mount_lines[_i].fstype);
		ck_assert_str_eq(m.source, mount_lines[_i].source);
		ck_assert_str_eq(m.super, mount_lines[_i].super);
		ck_assert_uint_eq(m.flags, mount_lines[_i].flags);
		ck_assert_int_eq(m.peers, mount_lines[_i].peers);
		ck_assert(m.id == 36 && m.parent == 35);
	}
	ck_assert_int_eq(*p, '\0'); /* it always moves on */
	free(text);
}
END_TEST

START_TEST(mounts_parse__limit)
{
	static const struct {
		int lines, result;
	} cases[] = { { HARD_FX_MOUNTS_MAX, 0 }, { HARD_FX_MOUNTS_MAX + 1, AQE_E_LIMIT } };
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct hard_fx_mount *list = NULL;
	size_t n = 0;
	int i;

	for (i = 0; i < cases[_i].lines; i++)
		aqe_buf_puts(&b, "1 1 0:1 / /a rw - t s rw\n");
	ck_assert_int_eq(hard_fx_mounts_parse(a, b.p, &list, &n, NULL), cases[_i].result);
	ck_assert_uint_eq(n, _i ? 0 : HARD_FX_MOUNTS_MAX);
}
END_TEST

START_TEST(option__whole_words)
{
	const char *v = NULL;

	ck_assert(hard_fx_option("rw,size=64k,mode=755", "size", &v));
	ck_assert(aqe_starts(v, "64k,"));
	ck_assert(hard_fx_option("rw,pids", "pids", NULL));
	ck_assert(hard_fx_option("cpu,cpuacct", "cpu", NULL));
	ck_assert(!hard_fx_option("cpuset,cpuacct", "cpu", NULL));
	ck_assert(!hard_fx_option("rw,maxsize=3", "size", NULL));
	ck_assert(!hard_fx_option("", "size", NULL));
	ck_assert(!hard_fx_option("name=systemd", "systemd", NULL));
}
END_TEST

/* ---- cgroup ---- */

static const struct {
	const char *text;
	int result;
	size_t n;
	bool v2;
	const char *controllers, *path;
} cgroup_texts[] = {
	{ "0::/a/b\n", 0, 1, true, "", "/a/b" },
	{ "3:cpu,cpuacct:/x:y\n0::/\n", 0, 2, false, "cpu,cpuacct", "/x:y" },
	{ "9:name=systemd:/\n", 0, 1, false, "name=systemd", "/" },
	{ "", 0, 0, false, NULL, NULL },
	{ "0:pids:/\n", AQE_E_MALFORMED, 0, false, NULL, NULL },
	{ "3::/\n", AQE_E_MALFORMED, 0, false, NULL, NULL },
	{ "3:pids:x\n", AQE_E_MALFORMED, 0, false, NULL, NULL },
	{ "3:pids\n", AQE_E_MALFORMED, 0, false, NULL, NULL },
	{ "pids\n", AQE_E_MALFORMED, 0, false, NULL, NULL },
	{ "x:pids:/\n", AQE_E_MALFORMED, 0, false, NULL, NULL },
	{ "1:a:/\n2:b:/\n3:c:/\n", AQE_E_LIMIT, 0, false, NULL, NULL },
};

START_TEST(cgroups_parse__lines)
{
	char *text = strdup(cgroup_texts[_i].text);
	struct hard_fx_cgroup g[2];
	size_t n = 0;

	ck_assert_int_eq(hard_fx_cgroups_parse(text, g, 2, &n, NULL), cgroup_texts[_i].result);
	ck_assert_uint_eq(n, cgroup_texts[_i].n);
	if (n) {
		ck_assert_int_eq(g[0].v2, cgroup_texts[_i].v2);
		ck_assert_str_eq(g[0].controllers, cgroup_texts[_i].controllers);
		ck_assert_str_eq(g[0].path, cgroup_texts[_i].path);
	}
	free(text);
}
END_TEST

/* ---- net ---- */

#define HEADINGS "Inter-|   Receive\n face |bytes\n"

static const struct {
	const char *text;
	int result;
	size_t n;
	const char *last;
} netdev_texts[] = {
	{ HEADINGS "    lo:       0       0\n", 0, 1, "lo" },
	{ HEADINGS "    lo: 0\n  eth0: 0\n", 0, 2, "eth0" },
	{ HEADINGS "    lo: 0\nabcdefghijklmno: 0\n", 0, 2, "abcdefghijklmno" },
	{ HEADINGS, 0, 0, NULL },
	{ HEADINGS "abcdefghijklmnop: 0\n", AQE_E_MALFORMED, 0, NULL },
	{ HEADINGS "    lo 0\n", AQE_E_MALFORMED, 0, NULL },
	{ HEADINGS "  : 0\n", AQE_E_MALFORMED, 0, NULL },
	{ HEADINGS "a: 0\nb: 0\nc: 0\n", AQE_E_LIMIT, 0, NULL },
	{ "    lo: 0\n", AQE_E_MALFORMED, 0, NULL },
	{ "", AQE_E_MALFORMED, 0, NULL },
};

START_TEST(netdev_parse__names)
{
	char names[2][HARD_FX_NAME_MAX];
	size_t n = 0;

	ck_assert_int_eq(hard_fx_netdev_parse(netdev_texts[_i].text, names, 2, &n, NULL),
			 netdev_texts[_i].result);
	ck_assert_uint_eq(n, netdev_texts[_i].n);
	if (n)
		ck_assert_str_eq(names[n - 1], netdev_texts[_i].last);
}
END_TEST

#define ZERO32 "00000000000000000000000000000000"
#define ROUTE6 ZERO32 " 00 " ZERO32 " 00 " ZERO32 " ffffffff 00000001 00000000 00200200 "

static const struct {
	const char *text;
	bool v6;
	int result;
	const char *name;
} route_texts[] = {
	{ "Iface\tDestination\n", false, 0, NULL },
	{ "", false, 0, NULL },
	{ "Iface\tDestination\nlo\t0000007F\n", false, 0, NULL },
	{ "Iface\tDestination\nlo\t0000007F\neth0\t00000000\t0102A8C0\n", false, 1, "eth0" },
	{ "Iface\tDestination\ntunl0\t00000000\n", false, 1, "tunl0" },
	{ "Iface\tDestination\nabcdefghijklmnopq\t0\n", false, AQE_E_MALFORMED, NULL },
	{ ROUTE6 "      lo\n", true, 0, NULL },
	{ ROUTE6 "      lo\n" ROUTE6 "    sit0\n", true, 1, "sit0" },
	{ ZERO32 " 00 lo\n", true, AQE_E_MALFORMED, NULL },
};

START_TEST(route_first__finds_what_leads_out)
{
	char name[HARD_FX_NAME_MAX] = "";

	ck_assert_int_eq(hard_fx_route_first(route_texts[_i].text, route_texts[_i].v6, name, NULL),
			 route_texts[_i].result);
	if (route_texts[_i].name)
		ck_assert_str_eq(name, route_texts[_i].name);
}
END_TEST

START_TEST(netdev_fallback__is_exact)
{
	ck_assert(hard_fx_netdev_fallback("sit0"));
	ck_assert(hard_fx_netdev_fallback("ip6tnl0"));
	ck_assert(!hard_fx_netdev_fallback("sit1"));
	ck_assert(!hard_fx_netdev_fallback("sit01"));
	ck_assert(!hard_fx_netdev_fallback("lo"));
}
END_TEST

/* ---- limits ---- */

static const struct {
	const char *text;
	int result;
	uint64_t value;
} limit_texts[] = {
	{ "512\n", 0, 512 },
	{ "0\n", 0, 0 },
	{ "max\n", 0, HARD_FX_UNLIMITED },
	{ "-1\n", 0, HARD_FX_UNLIMITED },
	{ "9223372036854771712\n", 0, 9223372036854771712ULL },
	{ "9223372036854775808\n", AQE_E_MALFORMED, 0 },
	{ "", AQE_E_MALFORMED, 0 },
	{ "\n", AQE_E_MALFORMED, 0 },
	{ "12 13\n", AQE_E_MALFORMED, 0 },
	{ "12k\n", AQE_E_MALFORMED, 0 },
	{ "-2\n", AQE_E_MALFORMED, 0 },
};

START_TEST(limit_parse__values)
{
	uint64_t v = 0;

	ck_assert_int_eq(hard_fx_limit_parse(limit_texts[_i].text, &v, NULL),
			 limit_texts[_i].result);
	ck_assert_uint_eq(v, limit_texts[_i].value);
}
END_TEST

START_TEST(cpumax_parse__values)
{
	uint64_t q = 1, p = 1;

	ck_assert_int_eq(hard_fx_cpumax_parse("200000 100000\n", &q, &p, NULL), 0);
	ck_assert(q == 200000 && p == 100000);
	ck_assert_int_eq(hard_fx_cpumax_parse("max 100000\n", &q, &p, NULL), 0);
	ck_assert(q == HARD_FX_UNLIMITED && p == 100000);
	ck_assert_int_eq(hard_fx_cpumax_parse("200000\n", &q, &p, NULL), AQE_E_MALFORMED);
	ck_assert_int_eq(hard_fx_cpumax_parse("200000 0\n", &q, &p, NULL), AQE_E_MALFORMED);
	ck_assert_int_eq(hard_fx_cpumax_parse("1 2 3\n", &q, &p, NULL), AQE_E_MALFORMED);
}
END_TEST

#define USUAL "c *:* m\nb *:* m\nc 1:3 rwm\nc 5:1 rwm\nc 136:* rwm\nc 10:200 rwm\n"

static const struct {
	const char *text;
	int result;
	const char *line;
} device_texts[] = {
	{ USUAL, 0, NULL },
	{ "", 0, NULL },
	{ "a *:* rwm\n", 1, "a *:* rwm" },
	{ USUAL "b 254:0 r\n", 1, "b 254:0 r" },
	{ USUAL "c 10:229 rwm\n", 1, "c 10:229 rwm" },
	{ USUAL "c *:* rw\n", 1, "c *:* rw" },
	{ USUAL "c 1:* w\n", 1, "c 1:* w" },
	{ USUAL "c 1:1 r\n", 1, "c 1:1 r" },
	{ USUAL "b 1:3 r\n", 1, "b 1:3 r" },
	{ "c 1:3\n", AQE_E_MALFORMED, NULL },
	{ "c 1:3 rwm x\n", AQE_E_MALFORMED, NULL },
	{ "c 111111111111111111111111:33333333333333333333 rwm\n", AQE_E_MALFORMED, NULL },
};

START_TEST(devices_wide__finds_it)
{
	char line[HARD_FX_DEVLINE_MAX] = "";

	ck_assert_int_eq(hard_fx_devices_wide(device_texts[_i].text, line, NULL),
			 device_texts[_i].result);
	if (device_texts[_i].line)
		ck_assert_str_eq(line, device_texts[_i].line);
}
END_TEST

START_TEST(swaps_none__only_a_heading)
{
	ck_assert(hard_fx_swaps_none("Filename\tType\n"));
	ck_assert(!hard_fx_swaps_none("Filename\tType\n/dev/vdb partition 1\n"));
	ck_assert(!hard_fx_swaps_none(""));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening/effect_parse");
	TCase *t = tcase_create("parse");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, status_parse__reads_real_ones, 0, (int)AQE_COUNT(good_status));
	tcase_add_loop_test(t, status_parse__refuses, 0, (int)AQE_COUNT(bad_status));
	tcase_add_test(t, status_parse__name_cannot_add_lines);
	tcase_add_test(t, status_parse__zombie_and_old_kernel);
	tcase_add_loop_test(t, status_parse__groups_limit, 0, 2);
	tcase_add_test(t, idmap_parse__reads_and_refuses);
	tcase_add_test(t, idmap_normalise__sorts_and_joins);
	tcase_add_loop_test(t, mount_next__one_line, 0, (int)AQE_COUNT(mount_lines));
	tcase_add_loop_test(t, mounts_parse__limit, 0, 2);
	tcase_add_test(t, option__whole_words);
	tcase_add_loop_test(t, cgroups_parse__lines, 0, (int)AQE_COUNT(cgroup_texts));
	tcase_add_loop_test(t, netdev_parse__names, 0, (int)AQE_COUNT(netdev_texts));
	tcase_add_loop_test(t, route_first__finds_what_leads_out, 0, (int)AQE_COUNT(route_texts));
	tcase_add_test(t, netdev_fallback__is_exact);
	tcase_add_loop_test(t, limit_parse__values, 0, (int)AQE_COUNT(limit_texts));
	tcase_add_test(t, cpumax_parse__values);
	tcase_add_loop_test(t, devices_wide__finds_it, 0, (int)AQE_COUNT(device_texts));
	tcase_add_test(t, swaps_none__only_a_heading);
	suite_add_tcase(s, t);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
