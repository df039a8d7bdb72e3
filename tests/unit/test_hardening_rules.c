/* SPDX-License-Identifier: MIT */
#include <check.h>
#include <string.h>

#include "hardening/rules.h"
#include "hardening/verify_in.h"
#include "shim/core/cleanup.h"
#include "tests/unit/rewrite_util.h"

#define ID "870be1aecc262829c55beaf6a183a8b7d8b189bd495c8976cbd920927adb0a8d"

/* ---- options ---- */

static const struct {
	const char *option;
	enum hard_opt_group group;
} options[] = {
	{ "nosuid", HARD_OPT_SUID },
	{ "rbind", HARD_OPT_BIND },
	{ "unbindable", HARD_OPT_PROP },
	{ "atime", HARD_OPT_ATIME },
	{ "suid", HARD_OPT_SUID },
	{ "size=16m", HARD_OPT_SIZE },
	{ "mode=1777", HARD_OPT_MODE },
	{ "uid=1000", HARD_OPT_UID },
	{ "ptmxmode=0666", HARD_OPT_PTMXMODE },
	{ "size=16m,size=99g", HARD_OPT_NONE },
	{ "ro,suid", HARD_OPT_NONE },
	{ "", HARD_OPT_NONE },
	{ "RO", HARD_OPT_NONE },
	{ "remount", HARD_OPT_NONE },
	{ "tmpcopyup", HARD_OPT_NONE },
	{ "idmap=uids=0-0-1", HARD_OPT_NONE },
};

START_TEST(hard_rule_option__knows_the_group)
{
	ck_assert_msg(hard_rule_option(options[_i].option) == options[_i].group, "%s",
		      options[_i].option);
}
END_TEST

/* What the rewrite writes must pass what verify asks for. */
static void check_canonical(const char *dest, const char *type, const char *source,
			    const struct hard_opt_rule *rule, const char *more)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);
	struct hard_verifier v = { .ctx = &ctx, .r = &report };

	aqe_buf_addf(&b,
		     "{\"destination\":\"%s\",\"type\":\"%s\",\"source\":\"%s\",\"options\":[%s",
		     dest, type, source, more);
	for (const char *const *o = rule->canonical; *o; o++)
		aqe_buf_addf(&b, "%s\"%s\"", b.p[b.len - 1] == '[' ? "" : ",", *o);
	aqe_buf_puts(&b, "]}");
	hard_report_init(&report, arena);
	hard_verify_options(&v, rw_value(aqe_buf_str(&b)), rule, HARD_MOUNTS);
	ck_assert_msg(report.n_findings == 0, "%s: %s", dest,
		      report.first ? report.first->found : "");
}

START_TEST(tables__canonical_options_pass_their_own_rule)
{
	for (size_t i = 0; i < HARD_KERNEL_MOUNTS_COUNT; i++) {
		const struct hard_kernel_mount *k = &HARD_KERNEL_MOUNTS[i];

		check_canonical(k->destination, k->types[0], k->sources[0], &k->opts, "");
	}
	check_canonical("/tmp", "tmpfs", "tmpfs", &HARD_TMPFS_OPTS, "\"size=1m\"");
	check_canonical("/workspace", "bind", "/srv", &HARD_BIND_OPTS, "\"rw\"");
}
END_TEST

START_TEST(tables__agree_with_each_other)
{
	for (size_t i = 0; i < HARD_KERNEL_MOUNTS_COUNT; i++) {
		ck_assert_ptr_null(hard_rule_tmpfs(HARD_KERNEL_MOUNTS[i].destination));
		ck_assert_ptr_null(hard_rule_engine_file(HARD_KERNEL_MOUNTS[i].destination));
	}
	for (const char *const *p = HARD_MASKED_LIST; *p; p++)
		ck_assert_msg(hard_rule_proc_path(*p), "%s", *p);
	for (const char *const *p = HARD_READONLY_LIST; *p; p++)
		ck_assert_msg(hard_rule_proc_path(*p), "%s", *p);
	for (size_t i = 0; i < HARD_ACTIVE_COUNT; i++)
		ck_assert_msg(!hard_rule_annotation_allowed(NULL, HARD_ACTIVE[i].name, "x"), "%s",
			      HARD_ACTIVE[i].name);
	for (size_t i = 0; i < HARD_RLIMIT_ROWS_COUNT; i++)
		ck_assert_ptr_eq(hard_rule_rlimit(HARD_RLIMIT_ROWS[i].type), &HARD_RLIMIT_ROWS[i]);
	ck_assert_uint_le(HARD_RLIMIT_ROWS_COUNT, 32); /* a bit each in verify_process.c */
}
END_TEST

/* ---- sockets by name ---- */

static const struct {
	const char *path;
	bool found;
} sockets[] = {
	{ "/", true },
	{ "/run", true },
	{ "/run/", true },
	{ "/var", true },
	{ "/var/run", true },
	{ "/var/run/docker.sock", true },
	{ "/run/podman", true },
	{ "/run/podman/podman.sock", true },
	{ "/run/podman/podman.sock/.", true },
	{ "//run//podman", true },
	{ "/srv/../run/podman", true },
	{ "/var/run/../run/docker.sock", true },
	{ "/proc/1/root", true },
	{ "/proc/1/root/run/docker.sock", true },
	{ "/proc/self/root/var/run/podman", true },
	{ "/proc/thread-self/root/run", true },
	{ "/proc/7/task/8/root/run/podman", true },
	{ "/proc/1/root/proc/1/root/run", true },
	{ "/run/user/1000", true },
	{ "/run/user/1000/podman/podman.sock", true },
	{ "/home/u/.docker/desktop/docker.sock", true },
	{ "/data/agent.sock", true },
	{ "docker.sock", true },
	{ "/var/lib/kubelet/pod-resources", true },
	{ "/run/systemd/private", true },
	{ "/run/dbus", true },
	{ "/srv/aqe/workspace", false },
	{ "/srv/run/podman", false },
	{ "/runner/work", false },
	{ "/srv/private", false },
	{ "/proc/1/rootfs", false },
	{ "/var/lib/aqe", false },
	{ "/home/u/docker.socket.d", false },
	{ "", false },
	{ "tmpfs", false },
};

START_TEST(hard_rule_socket__judges_by_name_and_place)
{
	ck_assert_msg((hard_rule_socket(sockets[_i].path) != NULL) == sockets[_i].found, "%s",
		      sockets[_i].path);
}
END_TEST

START_TEST(hard_rule_clean_path__bounded)
{
	char longer[8192], buf[32];

	memset(longer, 'a', sizeof(longer));
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	ck_assert_ptr_nonnull(hard_rule_socket(longer)); /* cannot be judged: refused */
	ck_assert(!hard_rule_clean_path("/0123456789012345678901234567890", buf, sizeof(buf)));
	ck_assert(hard_rule_clean_path("/012345678901234567890123456789", buf, sizeof(buf)));
	ck_assert(hard_rule_clean_path("/../../..", buf, sizeof(buf)));
	ck_assert_str_eq(buf, "/");
	ck_assert(hard_rule_clean_path("/a/b/../../../c/./d/", buf, sizeof(buf)));
	ck_assert_str_eq(buf, "/c/d");
}
END_TEST

/* ---- cgroup paths ---- */

static const struct {
	const char *path, *id;
	bool ok;
} cgroups[] = {
	{ "/libpod_parent/libpod-" ID, NULL, true },
	{ "/libpod_parent/libpod-" ID, ID, true },
	{ "/libpod_parent/0123/libpod-" ID, ID, true },
	{ "/docker/" ID, NULL, true },
	{ "/k8s.io/" ID, ID, true },
	{ "/default/c1", "c1", true },
	{ "/default/c1", NULL, false },
	{ "/other-namespace/c1", "c1", true },
	{ "/other-namespace/" ID, NULL, false },
	{ "machine.slice:libpod:" ID, ID, true },
	{ "kubepods-besteffort-pod1.slice:cri-containerd:" ID, ID, true },
	{ "/kubepods/besteffort/pod1/" ID, ID, true },
	{ "/libpod_parent/libpod-" ID, "c1", false },
	{ "/libpod_parent/../libpod-" ID, ID, false },
	{ "/libpod_parent/*/../libpod-" ID, ID, false },
	{ "/libpod_parent//libpod-" ID, ID, false },
	{ "/libpod_parent/libpod-" ID "/", ID, false },
	{ "/libpod_parent/libpod-" ID "0", NULL, false },
	{ "/docker", NULL, false },
	{ "/", NULL, false },
	{ "", NULL, false },
	{ "/user.slice", NULL, false },
	{ "docker/" ID, NULL, false },
	{ "system.slice:docker:../" ID, NULL, false },
};

START_TEST(hard_rule_cgroups_path__engine_patterns)
{
	ck_assert_msg(hard_rule_cgroups_path(cgroups[_i].path, cgroups[_i].id) == cgroups[_i].ok,
		      "%s", cgroups[_i].path);
}
END_TEST

/* ---- engine files ---- */

#define P "/run/containers/storage/overlay-containers/" ID "/userdata"
#define D "/var/lib/docker/containers/" ID

static const struct {
	const char *dest, *source;
	bool ok;
} files[] = {
	{ "/etc/hostname", P "/hostname", true },
	{ "/etc/hosts", D "/hosts", true },
	{ "/etc/resolv.conf", "/data/d/containers/" ID "/resolv.conf", true },
	{ "/run/.containerenv", P "/.containerenv", true },
	{ "/run/secrets", P "/run/secrets", true },
	{ "/run/secrets/s1", P "/secrets/s1", true },
	{ "/run/podman-init", "/usr/libexec/podman/catatonit", true },
	{ "/sbin/docker-init", "/usr/bin/docker-init", true },
	{ "/run/secrets/s1", P "/secrets/s2", false },
	{ "/run/secrets/s1", P "/xsecrets/s1", false },
	{ "/run/podman-init", "/bin/sh", false },
	{ "/etc/hostname", P "/hosts", false },
	{ "/etc/hostname", P "/x/hostname", false },
	{ "/etc/hostname", P "/../hostname", false },
	{ "/etc/hostname", P "//hostname", false },
	{ "/etc/hostname", "/etc/hostname", false },
	{ "/etc/hostname", "/var/lib/docker/containers/0" ID "/hostname", false },
	{ "/etc/hostname", "/srv/" ID "/hostname", false },
	{ "/etc/hostname", "/srv/overlay-containers/" ID "/hostname", false },
	{ "/etc/passwd", "/etc/passwd", false },
};

START_TEST(hard_rule_engine_source__this_container_only)
{
	const struct hard_engine_file *f = hard_rule_engine_file(files[_i].dest);

	ck_assert_ptr_nonnull(f);
	ck_assert_msg(hard_rule_engine_source(&ctx, ID, f, files[_i].dest, files[_i].source) ==
			      files[_i].ok,
		      "%s", files[_i].source);
	if (f->kind != HARD_ENGINE_INIT)
		ck_assert(
			!hard_rule_engine_source(&ctx, NULL, f, files[_i].dest, files[_i].source));
}
END_TEST

START_TEST(hard_rule_engine_source__below_the_identitys_directories)
{
	const struct oci_identity image = { .dirs = { "/store/c1", NULL }, .n_dirs = 1 };
	const struct hard_engine_file *f = hard_rule_engine_file("/etc/hosts");

	ctx.image = &image;
	ck_assert(hard_rule_engine_source(&ctx, ID, f, "/etc/hosts", "/store/c1/hosts"));
	ck_assert(!hard_rule_engine_source(&ctx, ID, f, "/etc/hosts", "/store/c11/hosts"));
	ck_assert(!hard_rule_engine_source(&ctx, ID, f, "/etc/hosts", P "/hosts"));
	ck_assert_ptr_null(hard_rule_engine_file("/run/secrets/a/b"));
	ck_assert_ptr_null(hard_rule_engine_file("/run/secretsx"));
	ck_assert_ptr_null(hard_rule_engine_file("/etc/shadow"));
}
END_TEST

/* ---- labels and the rest ---- */

static const struct {
	const char *label;
	bool process, mount;
} labels[] = {
	{ "system_u:system_r:container_t:s0:c1,c2", true, false },
	{ "system_u:system_r:container_t:s0:c1023", true, false },
	{ "system_u:system_r:svirt_lxc_net_t:s0:c0,c1", true, false },
	{ "system_u:object_r:container_file_t:s0:c1,c2", false, true },
	{ "system_u:system_r:container_t:s0", false, false },
	{ "system_u:system_r:container_t:s0:c0.c1023", false, false },
	{ "system_u:system_r:container_t:s0-s0:c0.c1023", false, false },
	{ "system_u:system_r:container_t:s0:c1,c2,c3", false, false },
	{ "system_u:system_r:container_t:s0:c1024", false, false },
	{ "system_u:system_r:container_t:s0:c1,", false, false },
	{ "system_u:system_r:spc_t:s0:c1,c2", false, false },
	{ "system_u:system_r:container_tx:s0:c1,c2", false, false },
	{ "unconfined_u:unconfined_r:unconfined_t:s0", false, false },
	{ "system_u:object_r:etc_t:s0:c1,c2", false, false },
	{ "", false, false },
};

START_TEST(hard_rule_selinux__one_container_only)
{
	ck_assert_msg(hard_rule_selinux_process(labels[_i].label) == labels[_i].process, "%s",
		      labels[_i].label);
	ck_assert_msg(hard_rule_selinux_mount(labels[_i].label) == labels[_i].mount, "%s",
		      labels[_i].label);
}
END_TEST

START_TEST(rules__small_ones)
{
	ck_assert(hard_rule_apparmor("docker-default"));
	ck_assert(hard_rule_apparmor("containers-default-0.50.1"));
	ck_assert(!hard_rule_apparmor("containers-default-"));
	ck_assert(!hard_rule_apparmor("containers-default-0.50.1//x"));
	ck_assert(!hard_rule_apparmor("unconfined"));
	ck_assert(!hard_rule_apparmor(""));
	ck_assert(hard_rule_cwd("/"));
	ck_assert(hard_rule_cwd("/process"));
	ck_assert(!hard_rule_cwd("/proc"));
	ck_assert(!hard_rule_cwd("/dev/fd/3"));
	ck_assert(!hard_rule_cwd("/a/"));
	ck_assert(!hard_rule_proc_path("/proc"));
	ck_assert(!hard_rule_proc_path("/sys"));
	ck_assert(!hard_rule_proc_path("/proc/../etc"));
	ck_assert_int_eq(hard_rule_sysctl("net.ipv4.ping_group_range", "0 0", NULL),
			 HARD_SYSCTL_ALLOWED);
	ck_assert_int_eq(hard_rule_sysctl("net.ipv4.ping_group_range", "0 2147483647", NULL),
			 HARD_SYSCTL_ENGINE);
	ck_assert_int_eq(hard_rule_sysctl("net.ipv4.ping_group_range", "0 0 ", NULL),
			 HARD_SYSCTL_OTHER);
	ck_assert_ptr_nonnull(hard_rule_device('c', 1, 3));
	ck_assert_ptr_null(hard_rule_device('b', 1, 3));
	ck_assert_ptr_null(hard_rule_device('c', 1, -1));
	ck_assert_ptr_nonnull(hard_rule_env("LD_PRELOAD=/x"));
	ck_assert_ptr_nonnull(hard_rule_env("GCONV_PATH"));
	ck_assert_ptr_null(hard_rule_env("GCONV_PATHS=1"));
	ck_assert_ptr_null(hard_rule_env("OLD_X=1"));
	ck_assert_str_eq(hard_rule_active("run.oci.seccomp.receiver")->name, "run.oci.seccomp");
	ck_assert_str_eq(hard_rule_active("run.oci.x")->name, "run.oci.");
	ck_assert(hard_rule_active("org.systemd.property.TimeoutStopUSec")->engine_default);
	ck_assert(!hard_rule_active("org.systemd.property.CPUQuota")->engine_default);
	ck_assert_ptr_null(hard_rule_active("com.example.team"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening/rules");
	TCase *c = tcase_create("rules");

	tcase_add_checked_fixture(c, rw_setup, rw_teardown);
	tcase_add_loop_test(c, hard_rule_option__knows_the_group, 0, AQE_COUNT(options));
	tcase_add_test(c, tables__canonical_options_pass_their_own_rule);
	tcase_add_test(c, tables__agree_with_each_other);
	tcase_add_loop_test(c, hard_rule_socket__judges_by_name_and_place, 0, AQE_COUNT(sockets));
	tcase_add_test(c, hard_rule_clean_path__bounded);
	tcase_add_loop_test(c, hard_rule_cgroups_path__engine_patterns, 0, AQE_COUNT(cgroups));
	tcase_add_loop_test(c, hard_rule_engine_source__this_container_only, 0, AQE_COUNT(files));
	tcase_add_test(c, hard_rule_engine_source__below_the_identitys_directories);
	tcase_add_loop_test(c, hard_rule_selinux__one_container_only, 0, AQE_COUNT(labels));
	tcase_add_test(c, rules__small_ones);
	suite_add_tcase(s, c);
	return unit_run(s);
}
