/* SPDX-License-Identifier: MIT */
/* Mounts of the conforming base, changed one at a time. */
#include <check.h>
#include <string.h>

#include "hardening/rules.h"
#include "tests/unit/rewrite_util.h"

#define ID "870be1aecc262829c55beaf6a183a8b7d8b189bd495c8976cbd920927adb0a8d"

static struct aqe_json *base;

static void setup(void)
{
	rw_setup();
	ctx.image_digest = NULL;
	base = rw_parse_file(RW_BASE);
}

/* Exactly these properties fail. */
static void expect(const char *name, const char *failed)
{
	ck_assert_ok(oci_doc_check(OCI_DOC_CONFIG, base, &err), err);
	hard_report_init(&report, arena);
	ck_assert_ok(hard_verify(&ctx, base, &report, &err), err);
	ck_assert_msg(aqe_str_eq(rw_failed(&report), failed), "%s: '%s', wanted '%s'", name,
		      rw_failed(&report), failed);
}

static struct aqe_json *mount_at(const char *dest)
{
	struct aqe_json *m = aqe_json_get(base, "mounts")->first;

	while (m && !aqe_str_eq(aqe_json_str(aqe_json_get(m, "destination")), dest))
		m = m->next;
	ck_assert_msg(m != NULL, "no mount at %s", dest);
	return m;
}

static void set(struct aqe_json *m, const char *name, const char *value)
{
	ck_assert_int_eq(aqe_json_set(arena, m, name, rw_value(value)), 0);
}

static void drop_option(struct aqe_json *m, const char *option)
{
	struct aqe_json *o = aqe_json_get(m, "options")->first;

	while (o && !aqe_str_eq(aqe_json_str(o), option))
		o = o->next;
	ck_assert_msg(o != NULL, "no option %s", option);
	aqe_json_detach(o);
}

/* ---- one change of one mount ---- */

static const struct {
	const char *dest, *member, *value, *failed;
} changes[] = {
	/* kernel mounts */
	{ "/proc", "type", "\"tmpfs\"", "mounts" },
	{ "/proc", "source", "\"/proc\"", "mounts" },
	{ "/proc", "options", "[\"nosuid\",\"noexec\",\"nodev\",\"bind\"]", "mounts" },
	{ "/proc", "options", "[\"nosuid\",\"noexec\",\"nodev\",\"hidepid=2\"]", "mounts" },
	{ "/proc", "options", "[\"nosuid\",\"noexec\",\"nodev\",\"rw\",\"private\"]", "" },
	{ "/proc", "options", "[\"nosuid\",\"noexec\",\"nodev\",\"exec\"]", "mounts" },
	{ "/proc", "options", "[\"nosuid\",\"noexec\",\"nodev\",\"nosuid\"]", "mounts" },
	{ "/proc", "options", "[\"nosuid\",\"noexec\",\"nodev\",\"slave\"]", "mounts propagation" },
	{ "/dev", "options", "[\"nosuid\",\"strictatime\",\"mode=755\",\"size=65536k\"]", "" },
	{ "/dev", "options", "[\"nosuid\",\"noexec\",\"size=65536k\"]", "mounts" },
	{ "/dev", "options", "[\"nosuid\",\"noexec\",\"mode=1777\",\"size=65536k\"]", "mounts" },
	{ "/dev", "options", "[\"nosuid\",\"noexec\",\"mode=755\"]", "mounts" },
	{ "/dev", "options", "[\"nosuid\",\"noexec\",\"mode=755\",\"size=0\"]", "mounts" },
	{ "/dev", "options", "[\"nosuid\",\"noexec\",\"mode=755\",\"size=50%\"]", "mounts" },
	{ "/dev", "options", "[\"nosuid\",\"rbind\",\"mode=755\",\"size=1m\"]", "mounts devices" },
	{ "/dev", "type", "\"devtmpfs\"", "mounts" },
	{ "/dev/pts", "options", "[\"nosuid\",\"noexec\",\"newinstance\"]", "" },
	{ "/dev/pts", "options", "[\"nosuid\",\"noexec\",\"newinstance\",\"gid=0\"]", "mounts" },
	{ "/dev/pts", "options", "[\"nosuid\",\"noexec\",\"newinstance\",\"mode=0666\"]",
	  "mounts" },
	{ "/dev/pts", "options", "[\"nosuid\",\"noexec\",\"ptmxmode=0666\"]", "mounts" },
	{ "/dev/shm", "options",
	  "[\"nosuid\",\"noexec\",\"nodev\",\"mode=1777\",\"size=67108864\"]", "" },
	{ "/dev/shm", "options", "[\"nosuid\",\"noexec\",\"nodev\",\"mode=4777\",\"size=1m\"]",
	  "mounts" },
	{ "/dev/shm", "type", "\"bind\"", "mounts" },
	{ "/sys", "options", "[\"nosuid\",\"noexec\",\"nodev\",\"rw\"]", "mounts" },
	{ "/sys", "options", "[\"nosuid\",\"noexec\",\"nodev\",\"ro\",\"rw\"]", "mounts" },
	{ "/sys/fs/cgroup", "type", "\"cgroup2\"", "" },
	{ "/sys/fs/cgroup", "source", "\"/sys/fs/cgroup\"", "mounts" },
	/* writable tmpfs */
	{ "/tmp", "type", "\"ramfs\"", "tmpfs" },
	{ "/tmp", "source", "\"/tmp\"", "tmpfs" },
	{ "/tmp", "options", NULL, "tmpfs missing_field" },
	{ "/tmp", "options", "[\"nosuid\",\"nodev\",\"size=64m\"]", "" },
	{ "/tmp", "options", "[\"nosuid\",\"nodev\",\"size=1k\",\"mode=0700\"]", "" },
	{ "/tmp", "options", "[\"nosuid\",\"nodev\",\"size=64M\",\"uid=1000\",\"gid=1000\"]", "" },
	{ "/tmp", "options", "[\"nosuid\",\"nodev\",\"size=64m\",\"uid=0\"]", "tmpfs" },
	{ "/tmp", "options", "[\"nosuid\",\"nodev\",\"size=64m\",\"gid=0\"]", "tmpfs" },
	{ "/tmp", "options", "[\"nosuid\",\"nodev\",\"noexec\"]", "tmpfs" },
	{ "/tmp", "options", "[\"nosuid\",\"nodev\",\"size=0\"]", "tmpfs" },
	{ "/tmp", "options", "[\"nosuid\",\"nodev\",\"size=-1\"]", "tmpfs" },
	{ "/tmp", "options", "[\"nosuid\",\"nodev\",\"size=\"]", "tmpfs" },
	{ "/tmp", "options", "[\"nosuid\",\"nodev\",\"size=1x\"]", "tmpfs" },
	{ "/tmp", "options", "[\"nosuid\",\"nodev\",\"size=99999999999999999999\"]", "tmpfs" },
	{ "/tmp", "options", "[\"nosuid\",\"nodev\",\"size=1m\",\"size=2m\"]", "tmpfs" },
	{ "/tmp", "options", "[\"nosuid\",\"nodev\",\"size=1m\",\"mode=6777\"]", "tmpfs" },
	{ "/tmp", "options", "[\"nosuid\",\"nodev\",\"size=1m\",\"suid\"]", "tmpfs" },
	{ "/tmp", "options", "[\"nosuid\",\"nodev\",\"size=1m\",\"shared\"]", "tmpfs propagation" },
	{ "/tmp", "options", "[\"nosuid\",\"nodev\",\"size=1m\",\"nr_inodes=0\"]", "tmpfs" },
	{ "/tmp", "options", "[\"nosuid\",\"nodev\",\"size=1008m\"]", "" },
	{ "/tmp", "options", "[\"nosuid\",\"nodev\",\"size=1009m\"]", "tmpfs" },
	{ "/run", "options", "[\"nodev\",\"size=1m\"]", "tmpfs" },
	{ "/run", "options", "[\"nosuid\",\"size=1m\"]", "tmpfs" },
	/* the policy's mounts */
	{ "/workspace", "type", NULL, "mounts missing_field" },
	{ "/workspace", "type", "\"none\"", "mounts" },
	{ "/workspace", "source", NULL, "mounts missing_field" },
	{ "/workspace", "source", "\"/srv/aqe/workspace/\"", "mounts" },
	{ "/workspace", "source", "\"/srv/aqe\"", "mounts" },
	{ "/workspace", "source", "\"/run\"", "mounts engine_socket" },
	{ "/workspace", "source", "\"/proc/1/root/run/podman\"", "mounts engine_socket" },
	{ "/workspace", "uidMappings", "[]", "mounts" },
	{ "/workspace", "gidMappings", "[]", "mounts" },
	{ "/workspace", "options", "[\"ro\",\"nosuid\",\"nodev\",\"private\",\"bind\"]", "" },
	{ "/workspace", "options", "[\"nosuid\",\"nodev\",\"private\",\"bind\"]", "mounts" },
	{ "/workspace", "options", "[\"rw\",\"nosuid\",\"nodev\",\"private\"]", "mounts" },
	{ "/workspace", "options", "[\"rw\",\"nosuid\",\"nodev\",\"private\",\"bind\",\"rbind\"]",
	  "mounts" },
	{ "/workspace", "options", "[\"rw\",\"ro\",\"nosuid\",\"nodev\",\"private\",\"bind\"]",
	  "mounts" },
	{ "/workspace", "options", "[\"rw\",\"nosuid\",\"nodev\",\"bind\"]", "mounts propagation" },
	{ "/workspace", "options", "[\"rw\",\"nosuid\",\"nodev\",\"rslave\",\"bind\"]",
	  "mounts propagation" },
	{ "/workspace", "options", "[\"rw\",\"nosuid\",\"nodev\",\"unbindable\",\"bind\"]",
	  "mounts propagation" },
	{ "/workspace", "options",
	  "[\"rw\",\"nosuid\",\"nodev\",\"private\",\"rprivate\","
	  "\"bind\"]",
	  "mounts" },
	{ "/workspace", "options", "[\"rw\",\"nosuid\",\"nodev\",\"private\",\"bind\",\"exec\"]",
	  "mounts" },
	{ "/workspace", "options", "[\"rw\",\"nosuid\",\"nodev\",\"private\",\"bind\",\"idmap\"]",
	  "mounts" },
	{ "/workspace", "options",
	  "[\"rw\",\"nosuid\",\"nodev\",\"private\",\"bind\",\"noexec\",\"noatime\"]", "" },
	{ "/workspace", "destination", "\"/workspace/.\"", "mounts missing_field" },
};

START_TEST(mounts__one_change)
{
	struct aqe_json *m = mount_at(changes[_i].dest);

	if (changes[_i].value)
		set(m, changes[_i].member, changes[_i].value);
	else
		aqe_json_remove(m, changes[_i].member);
	expect(changes[_i].value ? changes[_i].value : changes[_i].member, changes[_i].failed);
}
END_TEST

START_TEST(mounts__each_required_option)
{
	for (size_t i = 0; i < HARD_KERNEL_MOUNTS_COUNT; i++) {
		const struct hard_kernel_mount *k = &HARD_KERNEL_MOUNTS[i];

		for (const char *const *o = k->opts.required; *o; o++) {
			base = rw_parse_file(RW_BASE);
			drop_option(mount_at(k->destination), *o);
			expect(k->destination, "mounts");
		}
	}
}
END_TEST

START_TEST(mounts__each_missing)
{
	static const char *const others[] = { "/workspace", "/var/lib/aqe" };

	for (size_t i = 0; i < HARD_KERNEL_MOUNTS_COUNT; i++) {
		base = rw_parse_file(RW_BASE);
		aqe_json_detach(mount_at(HARD_KERNEL_MOUNTS[i].destination));
		expect(HARD_KERNEL_MOUNTS[i].destination,
		       HARD_KERNEL_MOUNTS[i].must ? "mounts missing_field" : "");
	}
	for (size_t i = 0; i < HARD_TMPFS_MOUNTS_COUNT; i++) {
		base = rw_parse_file(RW_BASE);
		aqe_json_detach(mount_at(HARD_TMPFS_MOUNTS[i].destination));
		expect(HARD_TMPFS_MOUNTS[i].destination, "tmpfs missing_field");
	}
	for (size_t i = 0; i < AQE_COUNT(others); i++) {
		base = rw_parse_file(RW_BASE);
		aqe_json_detach(mount_at(others[i]));
		expect(others[i], "mounts missing_field");
	}
}
END_TEST

START_TEST(mounts__each_as_a_bind)
{
	for (size_t i = 0; i < HARD_KERNEL_MOUNTS_COUNT; i++) {
		const char *dest = HARD_KERNEL_MOUNTS[i].destination;

		base = rw_parse_file(RW_BASE);
		ck_assert_int_eq(aqe_json_append(aqe_json_get(mount_at(dest), "options"),
						 rw_value("\"rbind\"")),
				 0);
		expect(dest, aqe_str_eq(dest, "/dev") ? "mounts devices" : "mounts");
	}
}
END_TEST

START_TEST(mounts__twice_or_hidden)
{
	for (size_t i = 0; i < HARD_KERNEL_MOUNTS_COUNT; i++) {
		const char *dest = HARD_KERNEL_MOUNTS[i].destination;

		base = rw_parse_file(RW_BASE);
		ck_assert_int_eq(aqe_json_append(aqe_json_get(base, "mounts"),
						 aqe_json_copy(arena, mount_at(dest))),
				 0);
		expect(dest, "mounts");
	}
	base = rw_parse_file(RW_BASE);
	{ /* /sys after /sys/fs/cgroup hides its ro */
		struct aqe_json *sys = mount_at("/sys");

		aqe_json_detach(sys);
		ck_assert_int_eq(aqe_json_append(aqe_json_get(base, "mounts"), sys), 0);
	}
	expect("/sys last", "mounts");
}
END_TEST

/* ---- extra mounts ---- */

static const struct {
	const char *dest, *source, *failed;
} extras[] = {
	{ "/mnt/x", "/srv/other", "mounts" },
	{ "/", "/srv/other", "mounts" },
	{ "/.", "/srv/other", "mounts" },
	{ "/proc/sys", "/srv/other", "mounts" },
	{ "/workspace/x", "/srv/other", "mounts" },
	{ "/etc/shadow", "/etc/shadow", "mounts" },
	{ "/mnt/x", "/", "mounts engine_socket" },
	{ "/mnt/x", "/run", "mounts engine_socket" },
	{ "/mnt/x", "/var/run", "mounts engine_socket" },
	{ "/mnt/x", "/run/docker.sock", "mounts engine_socket" },
	{ "/mnt/x", "/var/run/docker.sock", "mounts engine_socket" },
	{ "/mnt/x", "/run/podman/podman.sock", "mounts engine_socket" },
	{ "/mnt/x", "/run/podman", "mounts engine_socket" },
	{ "/mnt/x", "/run/user/1000/podman/podman.sock", "mounts engine_socket" },
	{ "/mnt/x", "/run/containerd/containerd.sock", "mounts engine_socket" },
	{ "/mnt/x", "/run/crio/crio.sock", "mounts engine_socket" },
	{ "/mnt/x", "/run/buildkit/buildkitd.sock", "mounts engine_socket" },
	{ "/mnt/x", "/var/run/nri/nri.sock", "mounts engine_socket" },
	{ "/mnt/x", "/run/dbus/system_bus_socket", "mounts engine_socket" },
	{ "/mnt/x", "/run/systemd/private", "mounts engine_socket" },
	{ "/mnt/x", "/var/run/cri-dockerd.sock", "mounts engine_socket" },
	{ "/mnt/x", "/tmp/../run/podman", "mounts engine_socket" },
	{ "/mnt/x", "/proc/1/root/run", "mounts engine_socket" },
	{ "/mnt/x", "run/docker.sock", "mounts engine_socket" },
	/* the engine's own files, for this container */
	{ "/etc/hostname", "/run/containers/storage/overlay-containers/" ID "/userdata/hostname",
	  "" },
	{ "/etc/hosts", "/var/lib/docker/containers/" ID "/hosts", "" },
	{ "/etc/resolv.conf",
	  "/run/user/1001/containers/vfs-containers/" ID "/userdata/resolv.conf", "" },
	{ "/run/.containerenv",
	  "/run/containers/storage/overlay-containers/" ID "/userdata/.containerenv", "" },
	{ "/run/podman-init", "/usr/libexec/podman/catatonit", "" },
	/* another container's, or something else */
	{ "/etc/hostname",
	  "/var/lib/docker/containers/"
	  "0000000000000000000000000000000000000000000000000000000000000000/hostname",
	  "mounts" },
	{ "/etc/hosts", "/etc/hosts", "mounts" },
	{ "/etc/resolv.conf", "/run/systemd/resolve/stub-resolv.conf", "mounts engine_socket" },
	{ "/run/podman-init", "/bin/sh", "mounts" },
};

START_TEST(mounts__extra)
{
	const char *m = aqe_arena_fmt(arena,
				      "{\"destination\":\"%s\",\"type\":\"bind\",\"source\":\"%s\","
				      "\"options\":[\"ro\",\"nosuid\",\"nodev\",\"private\","
				      "\"bind\"]}",
				      extras[_i].dest, extras[_i].source);

	rw_edit(base, "/mounts/-", m);
	expect(m, extras[_i].failed);
}
END_TEST

START_TEST(mounts__engine_files_are_read_only)
{
	rw_edit(base, "/mounts/-",
		"{\"destination\":\"/etc/hosts\",\"type\":\"bind\","
		"\"source\":\"/var/lib/docker/containers/" ID "/hosts\","
		"\"options\":[\"rw\",\"nosuid\",\"nodev\",\"private\",\"bind\"]}");
	expect("rw", "mounts");
}
END_TEST

START_TEST(mounts__readonly_in_the_policy)
{
	struct hard_policy p = *policy;
	struct hard_mount list[2] = { policy->mounts[0], policy->mounts[1] };

	list[0].readonly = true;
	p.mounts = list;
	ctx.policy = &p;
	expect("rw", "mounts");
	set(mount_at(list[0].destination), "options",
	    "[\"ro\",\"nosuid\",\"nodev\",\"private\",\"bind\"]");
	expect("ro", "");
}
END_TEST

START_TEST(mounts__of_another_agent_type)
{
	static const char *const types[] = { "qe-security-scanner" };
	struct hard_policy p = *policy;
	struct hard_mount list[2] = { policy->mounts[0], policy->mounts[1] };

	list[1].types = types;
	list[1].n_types = 1;
	p.mounts = list;
	ctx.policy = &p;
	expect("not this type's", "mounts");
	aqe_json_detach(mount_at(list[1].destination));
	expect("without it", "");
	ctx.agent = hard_agent_find("qe-security-scanner");
	expect("this type's", "mounts missing_field");
}
END_TEST

START_TEST(mounts__too_many)
{
	for (int i = 0; i < 256; i++)
		rw_edit(base, "/mounts/-",
			aqe_arena_fmt(arena, "{\"destination\":\"/m%d\",\"type\":\"tmpfs\"}", i));
	expect("many", "mounts");
	ck_assert_uint_le(report.n_findings, 3);
}
END_TEST

START_TEST(tmpfs__agent_without_exec)
{
	ctx.agent = hard_agent_find("qe-security-scanner");
	ck_assert(!ctx.agent->tmp_exec);
	expect("noexec", "");
	drop_option(mount_at("/tmp"), "noexec");
	expect("exec", "tmpfs");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening/verify_mounts");
	TCase *c = tcase_create("mounts");

	tcase_add_checked_fixture(c, setup, rw_teardown);
	tcase_add_loop_test(c, mounts__one_change, 0, AQE_COUNT(changes));
	tcase_add_test(c, mounts__each_required_option);
	tcase_add_test(c, mounts__each_missing);
	tcase_add_test(c, mounts__each_as_a_bind);
	tcase_add_test(c, mounts__twice_or_hidden);
	tcase_add_loop_test(c, mounts__extra, 0, AQE_COUNT(extras));
	tcase_add_test(c, mounts__engine_files_are_read_only);
	tcase_add_test(c, mounts__readonly_in_the_policy);
	tcase_add_test(c, mounts__of_another_agent_type);
	tcase_add_test(c, mounts__too_many);
	tcase_add_test(c, tmpfs__agent_without_exec);
	suite_add_tcase(s, c);
	return unit_run(s);
}
