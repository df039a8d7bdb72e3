/* SPDX-License-Identifier: MIT */
/* Mountinfo of real created containers (crun 1.8.1, runc 1.1.5), each changed in one place. */
#include "tests/unit/effect_fixture.h"

#include <dirent.h>
#include <sys/stat.h>

#include "hardening/effect_int.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

/* ---- a root that is not there ---- */

struct fake_file {
	const char *path;
	uint32_t mode, major, minor;
	uint64_t ino, mount_id;
	bool mount_root;
};

static const struct fake_file USUAL[] = {
	{ "/", S_IFDIR, 0, 0, 1, 0, false },
	{ "/dev/null", S_IFCHR, 1, 3, 2, 0, false },
	{ "/dev/zero", S_IFCHR, 1, 5, 3, 0, false },
	{ "/dev/full", S_IFCHR, 1, 7, 4, 0, false },
	{ "/dev/random", S_IFCHR, 1, 8, 5, 0, false },
	{ "/dev/urandom", S_IFCHR, 1, 9, 6, 0, false },
	{ "/dev/tty", S_IFCHR, 5, 0, 7, 0, false },
	{ "/proc/keys", S_IFCHR, 1, 3, 2, 0, false },
	{ "/proc/timer_list", S_IFCHR, 1, 3, 2, 0, false },
	{ "/workspace", S_IFDIR, 0, 0, 100, 0, false },
	{ "/var/lib/aqe", S_IFDIR, 0, 0, 101, 0, false },
};

struct fake {
	struct fake_file extra; /* found first, if its path is set */
	const char *node;       /* one more entry of /dev */
	unsigned char node_type;
	bool full;  /* the masked directory looked at has entries */
	bool fails; /* every look is an error */
};

static int give(const struct fake_file *f, struct hard_fx_node *ret)
{
	*ret = (struct hard_fx_node){ .mode = f->mode,
				      .dev = 64,
				      .ino = f->ino,
				      .rdev_major = f->major,
				      .rdev_minor = f->minor,
				      .mount_id = f->mount_id,
				      .mount_root = f->mount_root };
	return f->mode ? 1 : 0;
}

static int fake_look(void *self, const char *path, struct hard_fx_node *ret, struct aqe_err *e)
{
	const struct fake *fake = self;
	size_t i;

	if (fake->fails)
		return aqe_err_set(e, AQE_E_SYS, 5, "look");
	if (fake->extra.path && aqe_str_eq(path, fake->extra.path))
		return give(&fake->extra, ret);
	for (i = 0; i < AQE_COUNT(USUAL); i++)
		if (aqe_str_eq(path, USUAL[i].path))
			return give(&USUAL[i], ret);
	return 0;
}

static int fake_list(void *self, const char *path, hard_fx_entry_fn *fn, void *arg,
		     struct aqe_err *e)
{
	const struct fake *fake = self;

	(void)e;
	if (!aqe_str_eq(path, "/dev")) {
		if (fake->full)
			fn(arg, "secret", DT_REG);
		return 1;
	}
	fn(arg, "null", DT_CHR);
	fn(arg, "console", DT_CHR);
	fn(arg, "pts", DT_DIR);
	fn(arg, "fd", DT_LNK);
	if (fake->node)
		fn(arg, fake->node, fake->node_type);
	return 1;
}

/* ---- one judgement ---- */

struct world {
	struct aqe_arena *arena;
	struct aqe_buf mounts, spec;
	struct hard_fx_mounts_in in;
	struct hard_report report;
	struct fake fake;
	struct aqe_err e;
};

static const struct hard_bind_id BINDS[] = { { "/workspace", 64, 100 },
					     { "/var/lib/aqe", 64, 101 } };

static void world_init(struct world *w, const char *fixture)
{
	char path[128];

	memset(w, 0, sizeof(*w));
	w->arena = aqe_arena_new(4 << 20);
	w->mounts.max = w->spec.max = 1 << 20;
	hard_report_init(&w->report, w->arena);
	(void)snprintf(path, sizeof(path), FIXTURES "%s/mountinfo", fixture);
	fixture_read(&w->mounts, path);
	fixture_read(&w->spec, "tests/corpus/spec/ok-base.json");
	w->in.binds = BINDS;
	w->in.n_binds = AQE_COUNT(BINDS);
	w->in.root = (struct hard_fx_root){ fake_look, fake_list, &w->fake };
	w->in.where = "/proc/7/mountinfo";
}

static int judge(struct world *w)
{
	struct hard_fx_mount *list = NULL;
	int r = hard_fx_mounts_parse(w->arena, w->mounts.p, &list, &w->in.n_mounts, &w->e);

	ck_assert_msg(r == 0, "%s", w->e.text);
	w->in.mounts = list;
	w->in.spec = fixture_json(w->arena, &w->spec);
	return hard_fx_mounts_judge(&w->in, &w->report, &w->e);
}

static void world_done(struct world *w)
{
	aqe_buf_done(&w->mounts);
	aqe_buf_done(&w->spec);
	aqe_arena_free(w->arena);
}

static void expect(struct world *w, enum hard_prop prop, const char *found)
{
	ck_assert_msg(w->report.result[prop] == HARD_FAIL, "%s: %s", HARDENING_PROFILE[prop].id,
		      fixture_findings(&w->report));
	ck_assert_msg(fixture_finding(&w->report, prop, found) != NULL, "%s",
		      fixture_findings(&w->report));
}

/* ---- what real runtimes make of the hardened spec ---- */

static const char *const good[] = { "crun-userns", "crun-nouserns", "crun-rootless",
				    "runc-userns", "runc-nouserns", "runc-rootless" };
static const enum hard_prop judged[] = { HARD_MOUNTS, HARD_PROPAGATION,  HARD_READONLY_ROOTFS,
					 HARD_TMPFS,  HARD_MASKED_PATHS, HARD_DEVICES };

START_TEST(mounts_judge__passes_real_containers)
{
	struct world w;
	size_t i;

	world_init(&w, good[_i]);
	ck_assert_int_eq(judge(&w), 0);
	for (i = 0; i < AQE_COUNT(judged); i++)
		ck_assert_msg(w.report.result[judged[i]] == HARD_PASS, "%s",
			      fixture_findings(&w.report));
	ck_assert_uint_eq(w.report.n_findings, 0);
	world_done(&w);
}
END_TEST

/* crun 1.8.1 with a user namespace forgets nosuid and nodev of a bind that is not ro. */
START_TEST(mounts_judge__sees_what_crun_forgets)
{
	struct world w;

	world_init(&w, "crun-userns-plain");
	ck_assert_int_eq(judge(&w), 0);
	expect(&w, HARD_MOUNTS, "mount '/workspace' without nosuid");
	expect(&w, HARD_MOUNTS, "mount '/workspace' without nodev");
	ck_assert_uint_eq(w.report.n_findings, 4);
	world_done(&w);
}
END_TEST

/* ---- one change in mountinfo ---- */

static const struct {
	const char *fixture, *from, *to;
	enum hard_prop prop;
	const char *found;
} changes[] = {
	{ "crun-nouserns", "/srv/rootfs / ro,", "/srv/rootfs / rw,", HARD_READONLY_ROOTFS,
	  "'/' is writable" },
	{ "crun-nouserns", " /srv/rootfs / ", " /srv/rootfs /nowhere ", HARD_READONLY_ROOTFS,
	  "none" },
	{ "crun-nouserns", "/srv/rootfs / ro,relatime -", "/srv/rootfs / ro,relatime shared:1 -",
	  HARD_PROPAGATION, "mount '/' propagates" },
	{ "runc-userns", "/workspace rw,nosuid,nodev,relatime -",
	  "/workspace rw,nosuid,nodev,relatime master:7 -", HARD_PROPAGATION,
	  "mount '/workspace' propagates" },
	{ "runc-userns", "/workspace rw,nosuid,nodev,", "/workspace rw,nodev,", HARD_MOUNTS,
	  "mount '/workspace' without nosuid" },
	{ "runc-userns", "/var/lib/aqe rw,nosuid,nodev,", "/var/lib/aqe rw,nosuid,", HARD_MOUNTS,
	  "mount '/var/lib/aqe' without nodev" },
	{ "crun-userns", "/proc rw,nosuid,nodev,noexec,", "/proc rw,nosuid,nodev,", HARD_MOUNTS,
	  "mount '/proc' without noexec" },
	{ "crun-userns", "/sys ro,", "/sys rw,", HARD_MOUNTS, "mount '/sys' without ro" },
	{ "crun-userns", "/sys/fs/cgroup/pids ro,", "/sys/fs/cgroup/pids rw,", HARD_MOUNTS,
	  "mount '/sys/fs/cgroup/pids' without ro" },
	{ "crun-nouserns", " /workspace rw", " /nowhere rw", HARD_MOUNTS, "mount '/nowhere'" },
	{ "crun-nouserns", "- sysfs sysfs", "- tmpfs sysfs", HARD_MOUNTS,
	  "mount '/sys' is of type 'tmpfs'" },
	{ "crun-nouserns", "/tmp rw,nosuid,nodev,noexec,", "/tmp rw,nosuid,noexec,", HARD_TMPFS,
	  "mount '/tmp' without nodev" },
	{ "crun-nouserns", "/tmp rw,nosuid,nodev,noexec,", "/tmp rw,nosuid,nodev,", HARD_TMPFS,
	  "mount '/tmp' without noexec" },
	{ "crun-nouserns", "- tmpfs tmpfs rw,size=16384k,", "- tmpfs tmpfs rw,size=99999k,",
	  HARD_TMPFS, "mount '/run' has options" },
	{ "crun-nouserns", "- tmpfs tmpfs rw,size=16384k,", "- tmpfs tmpfs rw,", HARD_TMPFS,
	  "'/run': rw,mode=755" },
	{ "crun-nouserns", "- tmpfs tmpfs rw,size=16384k,", "- ramfs tmpfs rw,size=16384k,",
	  HARD_TMPFS, "'/run'" },
	{ "crun-nouserns", "- tmpfs shm rw,size=65536k", "- tmpfs shm rw", HARD_MOUNTS,
	  "mount '/dev/shm' has options 'rw'" },
	{ "crun-nouserns", NULL, "900 66 254:0 /etc /etc/host ro,nosuid,nodev - ext4 /dev/vda rw\n",
	  HARD_MOUNTS, "mount '/etc/host' of type 'ext4' from '/dev/vda'" },
	{ "crun-nouserns", NULL, "900 66 0:99 / /workspace/sub rw - tmpfs x rw\n", HARD_MOUNTS,
	  "mount '/workspace/sub'" },
	{ "crun-nouserns", NULL, "900 66 0:99 / /workspace rw,nosuid,nodev - tmpfs x rw\n",
	  HARD_MOUNTS, "two at '/workspace'" },
	{ "crun-nouserns", NULL, "900 66 0:99 / /tmp rw,nosuid,nodev,noexec - tmpfs x rw\n",
	  HARD_TMPFS, "two at '/tmp'" },
	{ "crun-nouserns", NULL, "900 68 0:6 /sda /dev/sda rw - devtmpfs devtmpfs rw\n",
	  HARD_MOUNTS, "mount '/dev/sda'" },
	/* no terminal was asked for */
	{ "crun-nouserns", NULL, "900 68 0:42 /0 /dev/console rw - devpts devpts rw\n", HARD_MOUNTS,
	  "mount '/dev/console'" },
	/* something else of the runtime's own kind, in another place */
	{ "crun-nouserns", NULL, "900 67 0:48 / /proc/self ro - tmpfs tmpfs rw\n", HARD_MOUNTS,
	  "mount '/proc/self'" },
	{ "crun-nouserns", NULL, "900 66 0:31 / /mnt/cgroup ro - cgroup cgroup rw,memory\n",
	  HARD_MOUNTS, "mount '/mnt/cgroup'" },
	{ "crun-userns", "/proc/sys ro,", "/proc/sys rw,", HARD_MOUNTS, "mount '/proc/sys'" },
	{ "crun-userns", "/proc/acpi ro,", "/proc/acpi rw,", HARD_MASKED_PATHS,
	  "type 'tmpfs' with content" },
	{ "crun-userns", "0:6 /zero /dev/zero", "0:6 /kmem /dev/full", HARD_DEVICES, "" },
};

START_TEST(mounts_judge__one_change)
{
	struct world w;

	world_init(&w, changes[_i].fixture);
	fixture_edit(&w.mounts, changes[_i].from, changes[_i].to);
	if (changes[_i].prop == HARD_DEVICES)
		w.fake.extra = (struct fake_file){ "/dev/full", S_IFCHR, 1, 2, 9, 0, true };
	ck_assert_int_eq(judge(&w), 0);
	expect(&w, changes[_i].prop, changes[_i].found);
	world_done(&w);
}
END_TEST

/* ---- one change below the root ---- */

static const struct {
	const char *fixture;
	struct fake fake;
	enum hard_prop prop;
	const char *found;
} roots[] = {
	{ "crun-nouserns",
	  { .extra = { "/workspace", S_IFDIR, 0, 0, 999, 0, true } },
	  HARD_MOUNTS,
	  "'/workspace' is another file" },
	{ "crun-nouserns",
	  { .extra = { "/workspace", 0, 0, 0, 0, 0, false } },
	  HARD_MOUNTS,
	  "'/workspace' is not there" },
	{ "crun-nouserns",
	  { .extra = { "/dev/null", S_IFCHR, 8, 0, 9, 0, false } },
	  HARD_DEVICES,
	  "something else" },
	{ "crun-nouserns",
	  { .extra = { "/dev/null", S_IFREG, 0, 0, 9, 0, false } },
	  HARD_DEVICES,
	  "something else" },
	{ "crun-nouserns",
	  { .extra = { "/dev/null", S_IFBLK, 1, 3, 9, 0, false } },
	  HARD_DEVICES,
	  "something else" },
	{ "crun-nouserns",
	  { .node = "sda", .node_type = DT_BLK },
	  HARD_DEVICES,
	  "node '/dev/sda'" },
	{ "crun-nouserns",
	  { .node = "kmsg", .node_type = DT_CHR },
	  HARD_DEVICES,
	  "node '/dev/kmsg'" },
	{ "crun-nouserns",
	  { .node = "odd", .node_type = DT_UNKNOWN },
	  HARD_DEVICES,
	  "node '/dev/odd'" },
	{ "crun-nouserns",
	  { .node = "ptmx", .node_type = DT_BLK },
	  HARD_DEVICES,
	  "node '/dev/ptmx'" },
	/* masked in the spec, there in the kernel, not mounted over */
	{ "crun-nouserns",
	  { .extra = { "/proc/kcore", S_IFREG, 0, 0, 9, 0, false } },
	  HARD_MASKED_PATHS,
	  "visible" },
	{ "crun-nouserns",
	  { .extra = { "/proc/scsi", S_IFDIR, 0, 0, 9, 0, false } },
	  HARD_MASKED_PATHS,
	  "visible" },
	/* mounted over with something that shows */
	{ "runc-nouserns",
	  { .extra = { "/proc/keys", S_IFREG, 0, 0, 9, 0, true } },
	  HARD_MASKED_PATHS,
	  "with content" },
	/* read-only in the spec, there, and on a writable mount */
	{ "crun-nouserns",
	  { .extra = { "/proc/sysrq-trigger", S_IFREG, 0, 0, 9, 0, false } },
	  HARD_MASKED_PATHS,
	  "writable" },
};

START_TEST(mounts_judge__one_change_below_root)
{
	struct world w;

	world_init(&w, roots[_i].fixture);
	w.fake = roots[_i].fake;
	ck_assert_int_eq(judge(&w), 0);
	expect(&w, roots[_i].prop, roots[_i].found);
	world_done(&w);
}
END_TEST

/* Newer runtimes mask directories with one empty directory of theirs, bound read-only. */
START_TEST(mounts_judge__masked_by_an_empty_directory)
{
	struct world w;

	world_init(&w, "crun-nouserns");
	w.fake.extra = (struct fake_file){ "/proc/acpi", S_IFDIR, 0, 0, 9, 0, true };
	w.fake.full = _i != 0;
	fixture_edit(&w.mounts, " / /proc/acpi ro,relatime - tmpfs tmpfs",
		     " /crun/empty /proc/acpi ro,relatime - tmpfs tmpfs");
	ck_assert_int_eq(judge(&w), 0);
	if (_i)
		expect(&w, HARD_MASKED_PATHS, "with content");
	else
		ck_assert_uint_eq(w.report.n_findings, 0);
	world_done(&w);
}
END_TEST

START_TEST(mounts_judge__terminal)
{
	struct world w;

	world_init(&w, "crun-nouserns");
	fixture_edit(&w.mounts, NULL,
		     "44 68 0:42 /0 /dev/console rw,relatime - devpts devpts rw\n");
	fixture_edit(&w.spec, "\"terminal\": false", "\"terminal\": true");
	ck_assert_int_eq(judge(&w), 0);
	ck_assert_msg(w.report.n_findings == 0, "%s", fixture_findings(&w.report));
	world_done(&w);
}
END_TEST

/* An image's /var/run -> /run: mountinfo has the path behind the link. */
START_TEST(mounts_judge__destination_behind_a_link)
{
	struct world w;

	world_init(&w, "crun-nouserns");
	w.fake.extra = (struct fake_file){ "/var/lib/aqe", S_IFDIR, 0, 0, 101, 493, _i == 0 };
	fixture_edit(&w.mounts, " /var/lib/aqe rw", " /data/aqe rw");
	ck_assert_int_eq(judge(&w), 0);
	if (_i == 0)
		ck_assert_msg(w.report.n_findings == 0, "%s", fixture_findings(&w.report));
	else /* a directory that merely lies on that mount */
		expect(&w, HARD_MOUNTS, "not mounted");
	world_done(&w);
}
END_TEST

START_TEST(mounts_judge__cannot_look)
{
	struct world w;

	world_init(&w, "crun-nouserns");
	w.fake.fails = true;
	ck_assert_int_eq(judge(&w), AQE_E_SYS);
	ck_assert_int_eq(w.report.result[HARD_MOUNTS], HARD_UNKNOWN);
	world_done(&w);
}
END_TEST

/* cgroup v2, as the kernel's documentation has it: one mount. */
START_TEST(mounts_judge__cgroup2)
{
	AQE_AUTO_BUF struct aqe_buf v2 = AQE_BUF_INIT(65536);
	struct world w;
	char *line, *next;

	world_init(&w, "crun-nouserns");
	for (line = w.mounts.p; *line; line = next) {
		next = strchr(line, '\n') + 1;
		if (!memmem(line, (size_t)(next - line), "/sys/fs/cgroup", 14))
			aqe_buf_add(&v2, line, (size_t)(next - line));
	}
	aqe_buf_puts(&v2, _i ? "73 72 0:45 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime - "
			       "cgroup2 cgroup2 rw,nsdelegate\n"
			     : "73 72 0:45 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - "
			       "cgroup2 cgroup2 rw,nsdelegate\n");
	aqe_buf_clear(&w.mounts);
	aqe_buf_puts(&w.mounts, v2.p);
	ck_assert_int_eq(judge(&w), 0);
	if (_i)
		expect(&w, HARD_MOUNTS, "mount '/sys/fs/cgroup' without ro");
	else
		ck_assert_msg(w.report.n_findings == 0, "%s", fixture_findings(&w.report));
	world_done(&w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening/effect_mounts");
	TCase *t = tcase_create("mounts");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, mounts_judge__passes_real_containers, 0, (int)AQE_COUNT(good));
	tcase_add_test(t, mounts_judge__sees_what_crun_forgets);
	tcase_add_loop_test(t, mounts_judge__one_change, 0, (int)AQE_COUNT(changes));
	tcase_add_loop_test(t, mounts_judge__one_change_below_root, 0, (int)AQE_COUNT(roots));
	tcase_add_loop_test(t, mounts_judge__masked_by_an_empty_directory, 0, 2);
	tcase_add_test(t, mounts_judge__terminal);
	tcase_add_loop_test(t, mounts_judge__destination_behind_a_link, 0, 2);
	tcase_add_test(t, mounts_judge__cannot_look);
	tcase_add_loop_test(t, mounts_judge__cgroup2, 0, 2);
	suite_add_tcase(s, t);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
