/* SPDX-License-Identifier: MIT */
/* One edit of the conforming base at a time: which properties fail. */
#include <check.h>
#include <inttypes.h>
#include <string.h>

#include "hardening/rules.h"
#include "tests/unit/rewrite_util.h"

static struct aqe_json *base;

static void setup(void)
{
	rw_setup();
	ctx.image_digest = NULL; /* the annotation decides, as in the corpus */
	base = rw_parse_file(RW_BASE);
}

static void judge(void)
{
	ck_assert_ok(oci_doc_check(OCI_DOC_CONFIG, base, &err), err); /* the edit kept the types */
	hard_report_init(&report, arena);
	ck_assert_ok(hard_verify(&ctx, base, &report, &err), err);
}

/* Exactly these properties fail ("" for none). */
static void expect(const char *name, const char *failed)
{
	judge();
	ck_assert_msg(aqe_str_eq(rw_failed(&report), failed), "%s: '%s', wanted '%s'", name,
		      rw_failed(&report), failed);
}

START_TEST(hard_verify__base_conforms)
{
	expect("base", "");
	ck_assert_uint_eq(report.n_findings, 0);
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++)
		ck_assert_msg(report.result[i] == HARD_PASS, "%s", HARDENING_PROFILE[i].id);
}
END_TEST

/* value NULL: the member is removed */
static const struct {
	const char *pointer, *value, *failed;
} edits[] = {
	/* document */
	{ "/ociVersion", NULL, "missing_field" },
	{ "/ociVersion", "\"1.3.0\"", "" },
	{ "/ociVersion", "\"1.0.2-dev\"", "" },
	{ "/ociVersion", "\"1.0\"", "unknown_field" },
	{ "/extra", "1", "unknown_field" },
	{ "/linux/Seccomp", "{}", "unknown_field" },
	{ "/linux/personality", "{\"domain\":\"LINUX\"}", "unknown_field" },
	{ "/hooks", "{\"poststop\":[]}", "" },
	{ "/hooks", "{\"poststop\":[{\"path\":\"/bin/true\"}]}", "hooks" },
	{ "/hooks", "{\"createContainer\":[{\"path\":\"/bin/true\"}]}", "hooks" },
	{ "/hooks", "{\"createRuntime\":[{\"path\":\"/bin/true\"}]}", "hooks" },
	/* user */
	{ "/process/user/uid", "1", "" },
	{ "/process/user/uid", "0", "user" },
	{ "/process/user/uid", "65535", "" },
	{ "/process/user/uid", "65536", "user" },
	{ "/process/user/uid", "2147483647", "user" },
	{ "/process/user/uid", "2147483648", "user" },
	{ "/process/user/uid", "4294967295", "user" },
	{ "/process/user/uid", NULL, "user missing_field" },
	{ "/process/user/gid", "0", "user" },
	{ "/process/user/gid", "65536", "user" },
	{ "/process/user/gid", NULL, "user missing_field" },
	{ "/process/user/additionalGids", NULL, "" },
	{ "/process/user/additionalGids", "[]", "" },
	{ "/process/user/additionalGids", "[1000,1000]", "" },
	{ "/process/user/additionalGids", "[999]", "user" },
	{ "/process/user/umask", NULL, "user missing_field" },
	{ "/process/user/umask", "63", "" },
	{ "/process/user/umask", "511", "" },
	{ "/process/user/umask", "512", "user" },
	{ "/process/user/umask", "16", "user" },
	{ "/process/user/umask", "2", "user" },
	{ "/process/user", NULL, "user missing_field" },
	/* process */
	{ "/process", NULL, "capabilities no_new_privileges mounts user missing_field" },
	{ "/process/noNewPrivileges", "false", "no_new_privileges" },
	{ "/process/noNewPrivileges", NULL, "no_new_privileges missing_field" },
	{ "/process/capabilities", NULL, "capabilities missing_field" },
	{ "/process/capabilities", "{}", "capabilities missing_field" },
	{ "/process/args", NULL, "missing_field" },
	{ "/process/args", "[]", "missing_field" },
	{ "/process/args", "[\"\"]", "missing_field" },
	{ "/process/args", "[\"/proc/self/exe\"]", "mounts" },
	{ "/process/args", "[\"/a/../proc/1/exe\"]", "mounts" },
	{ "/process/args", "[\"../proc/self/exe\"]", "mounts" },
	{ "/process/args", "[\"/usr/bin/process\"]", "" },
	{ "/process/cwd", NULL, "mounts missing_field" },
	{ "/process/cwd", "\"/\"", "" },
	{ "/process/cwd", "\"/proc\"", "mounts" },
	{ "/process/cwd", "\"/sys/x\"", "mounts" },
	{ "/process/cwd", "\"/dev/fd\"", "mounts" },
	{ "/process/cwd", "\"\"", "mounts" },
	{ "/process/env", NULL, "" },
	{ "/process/env", "[\"A=\"]", "" },
	{ "/process/env", "[\"A\"]", "missing_field" },
	{ "/process/env", "[\"=x\"]", "missing_field" },
	{ "/process/env", "[\"LD_PRELOAD=/x.so\"]", "hooks" },
	{ "/process/env", "[\"LD_LIBRARY_PATH=/x\"]", "hooks" },
	{ "/process/env", "[\"GLIBC_TUNABLES=x\"]", "hooks" },
	{ "/process/env", "[\"GCONV_PATH=x\"]", "hooks" },
	{ "/process/env", "[\"NVIDIA_VISIBLE_DEVICES=void\"]", "devices hooks" },
	{ "/process/env", "[\"AMD_VISIBLE_DEVICES=all\"]", "devices hooks" },
	{ "/process/oomScoreAdj", "0", "" },
	{ "/process/oomScoreAdj", "-1", "memory_limit" },
	{ "/process/rlimits", NULL, "" },
	{ "/process/apparmorProfile", "\"docker-default\"", "" },
	{ "/process/apparmorProfile", "\"unconfined\"", "lsm" },
	{ "/process/apparmorProfile", "\"\"", "lsm" },
	{ "/process/selinuxLabel", "\"system_u:system_r:container_t:s0:c1,c2\"", "" },
	{ "/process/selinuxLabel", "\"system_u:system_r:container_t:s0-s0:c0.c1023\"", "lsm" },
	{ "/linux/mountLabel", "\"system_u:object_r:container_file_t:s0:c1,c2\"", "" },
	{ "/linux/mountLabel", "\"system_u:object_r:etc_t:s0\"", "lsm" },
	/* root */
	{ "/root", NULL, "readonly_rootfs missing_field" },
	{ "/root/readonly", "false", "readonly_rootfs" },
	{ "/root/path", "\"/\"", "readonly_rootfs" },
	{ "/root/path", "\"rootfs\"", "readonly_rootfs" },
	{ "/root/path", "\"/etc\"", "readonly_rootfs" },
	{ "/root/path", "\"/srv/aqe\"", "readonly_rootfs" },
	{ "/root/path", "\"/srv/aqe/workspace/overlay/0123456789abcdef/merged\"",
	  "readonly_rootfs" },
	{ "/root/path", "\"/proc/1/root/overlay/0123456789abcdef/merged\"", "readonly_rootfs" },
	{ "/root/path", "\"/data/docker/overlay2/0123456789abcdef/merged\"", "" },
	{ "/root/path", "\"/data/vfs/dir/0123456789abcdef\"", "" },
	{ "/root/path", "\"/data/vfs/dir/0123456789abcdef/..\"", "readonly_rootfs" },
	/* limits */
	{ "/linux/resources/pids/limit", "1", "" },
	{ "/linux/resources/pids/limit", "511", "" },
	{ "/linux/resources/pids/limit", "513", "pids_limit" },
	{ "/linux/resources/pids/limit", "0", "pids_limit" },
	{ "/linux/resources/pids/limit", "-1", "pids_limit" },
	{ "/linux/resources/pids", NULL, "pids_limit missing_field" },
	{ "/linux/resources/memory",
	  "{\"limit\":1073741823,\"swap\":1073741823,\"reservation\":1073741823}", "" },
	{ "/linux/resources/memory", "{\"limit\":1073741825,\"swap\":1073741825}", "memory_limit" },
	{ "/linux/resources/memory", "{\"limit\":1,\"swap\":1}", "" },
	{ "/linux/resources/memory", "{\"limit\":0,\"swap\":0}", "memory_limit" },
	{ "/linux/resources/memory", "{\"limit\":-1,\"swap\":-1}", "memory_limit" },
	{ "/linux/resources/memory/swap", "1073741823", "memory_limit" },
	{ "/linux/resources/memory/swap", NULL, "memory_limit missing_field" },
	{ "/linux/resources/memory/limit", NULL, "memory_limit missing_field" },
	{ "/linux/resources/memory/reservation", "1073741825", "memory_limit" },
	{ "/linux/resources/memory/reservation", "-1", "memory_limit" },
	{ "/linux/resources/memory/kernel", "1", "memory_limit" },
	{ "/linux/resources/memory/kernelTCP", "1", "memory_limit" },
	{ "/linux/resources/memory/swappiness", "0", "memory_limit" },
	{ "/linux/resources/memory/disableOOMKiller", "false", "" },
	{ "/linux/resources/memory/disableOOMKiller", "true", "memory_limit" },
	{ "/linux/resources/memory/useHierarchy", "false", "memory_limit" },
	{ "/linux/resources/cpu", "{\"quota\":1000,\"period\":1000}", "" },
	{ "/linux/resources/cpu", "{\"quota\":2000,\"period\":1000}", "" },
	{ "/linux/resources/cpu", "{\"quota\":2001,\"period\":1000}", "cpu_limit" },
	{ "/linux/resources/cpu", "{\"quota\":999,\"period\":1000}", "cpu_limit" },
	{ "/linux/resources/cpu", "{\"quota\":1000,\"period\":999}", "cpu_limit" },
	{ "/linux/resources/cpu", "{\"quota\":200000,\"period\":100001}", "cpu_limit" },
	{ "/linux/resources/cpu", "{\"quota\":-1,\"period\":100000}", "cpu_limit" },
	{ "/linux/resources/cpu/quota", "200001", "cpu_limit" },
	{ "/linux/resources/cpu/quota", NULL, "cpu_limit missing_field" },
	{ "/linux/resources/cpu/shares", "1024", "" },
	{ "/linux/resources/cpu/shares", "1025", "cpu_limit" },
	{ "/linux/resources/cpu/burst", "0", "cpu_limit" },
	{ "/linux/resources/cpu/realtimeRuntime", "1", "cpu_limit" },
	{ "/linux/resources/cpu/idle", "1", "cpu_limit" },
	{ "/linux/resources/network", "{\"classID\":1}", "network" },
	{ "/linux/resources/unified", "{\"memory.max\":\"max\"}", "unknown_field" },
	{ "/linux/resources", NULL, "pids_limit memory_limit cpu_limit devices missing_field" },
	{ "/linux/cgroupsPath", NULL, "missing_field" },
	{ "/linux/cgroupsPath", "\"/user.slice\"", "pids_limit memory_limit cpu_limit" },
	{ "/linux/cgroupsPath",
	  "\"/libpod_parent/libpod-"
	  "0000000000000000000000000000000000000000000000000000000000000000\"",
	  "pids_limit memory_limit cpu_limit" },
	/* namespaces */
	{ "/linux/namespaces", NULL, "rootless network namespaces missing_field" },
	{ "/linux/namespaces", "[]", "rootless network namespaces missing_field" },
	{ "/linux/namespaces/-", "{\"type\":\"time\"}", "namespaces" },
	{ "/linux/namespaces/-", "{\"type\":\"user\"}", "rootless namespaces" },
	/* maps */
	{ "/linux/uidMappings", NULL, "rootless user missing_field" },
	{ "/linux/uidMappings", "[]", "rootless user missing_field" },
	{ "/linux/gidMappings", "[]", "rootless user missing_field" },
	{ "/linux/uidMappings", "[{\"containerID\":0,\"hostID\":65536,\"size\":65536}]", "" },
	{ "/linux/uidMappings", "[{\"containerID\":0,\"hostID\":65535,\"size\":65536}]",
	  "rootless" },
	{ "/linux/uidMappings", "[{\"containerID\":1000,\"hostID\":70000,\"size\":1}]", "" },
	{ "/linux/uidMappings", "[{\"containerID\":1001,\"hostID\":70000,\"size\":1}]", "user" },
	{ "/linux/uidMappings", "[{\"containerID\":1000,\"hostID\":0,\"size\":1}]",
	  "rootless user" },
	{ "/linux/uidMappings", "[{\"containerID\":1000,\"hostID\":70000,\"size\":0}]",
	  "rootless user" },
	{ "/linux/uidMappings", "[{\"containerID\":0,\"hostID\":4294967000,\"size\":1295}]",
	  "rootless user" },
	{ "/linux/uidMappings", "[{\"containerID\":0,\"hostID\":4294900000,\"size\":67295}]", "" },
	{ "/linux/uidMappings", "[{\"containerID\":0,\"hostID\":4294900000,\"size\":67296}]",
	  "rootless user" },
	{ "/linux/uidMappings",
	  "[{\"containerID\":0,\"hostID\":100000,\"size\":1001},"
	  "{\"containerID\":1001,\"hostID\":101000,\"size\":1}]",
	  "rootless" },
	{ "/linux/uidMappings", "[{\"hostID\":100000,\"size\":65536}]",
	  "rootless user missing_field" },
	/* devices */
	{ "/linux/devices", "[]", "" },
	{ "/linux/devices", "[{\"path\":\"/dev/null\",\"type\":\"c\",\"major\":1,\"minor\":3}]",
	  "devices" },
	{ "/linux/resources/devices", NULL, "devices missing_field" },
	{ "/linux/resources/devices", "[]", "devices" },
	{ "/linux/resources/devices", "[{\"allow\":false,\"access\":\"rwm\",\"type\":\"a\"}]",
	  "devices" },
	{ "/linux/resources/devices", "[{\"allow\":false,\"access\":\"rw\"}]", "devices" },
	{ "/linux/resources/devices", "[{\"allow\":false}]", "devices missing_field" },
	{ "/linux/resources/devices/-",
	  "{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":3,\"access\":\"rw\"}", "" },
	{ "/linux/resources/devices/-",
	  "{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":3,\"access\":\"rr\"}", "devices" },
	{ "/linux/resources/devices/-",
	  "{\"allow\":true,\"type\":\"c\",\"major\":1,\"access\":\"rw\"}", "devices" },
	{ "/linux/resources/devices/-",
	  "{\"allow\":true,\"type\":\"c\",\"major\":5,\"minor\":2,\"access\":\"rw\"}", "devices" },
	{ "/linux/resources/devices/-",
	  "{\"allow\":true,\"type\":\"b\",\"major\":1,\"minor\":3,\"access\":\"rw\"}", "devices" },
	{ "/linux/resources/devices/-",
	  "{\"allow\":false,\"type\":\"c\",\"major\":10,\"minor\":229,\"access\":\"rwm\"}", "" },
	/* the rest of linux */
	{ "/linux/rootfsPropagation", "\"private\"", "" },
	{ "/linux/rootfsPropagation", "\"rprivate\"", "" },
	{ "/linux/rootfsPropagation", "\"unbindable\"", "propagation" },
	{ "/linux/sysctl", "{\"net.ipv4.ping_group_range\":\"0 0\"}", "" },
	{ "/linux/sysctl", "{\"net.ipv4.ip_unprivileged_port_start\":\"0\"}", "" },
	{ "/linux/sysctl", "{\"net.ipv4.ping_group_range\":\"0 1\"}", "sysctl" },
	{ "/linux/sysctl", "{\"kernel.shm_rmid_forced\":\"1\"}", "sysctl" },
	{ "/linux/maskedPaths", NULL, "masked_paths missing_field" },
	{ "/linux/maskedPaths", "[]", "masked_paths" },
	{ "/linux/maskedPaths/-", "\"/proc\"", "masked_paths" },
	{ "/linux/maskedPaths/-", "\"/proc/\"", "masked_paths" },
	{ "/linux/readonlyPaths/-", "\"/etc\"", "masked_paths" },
	{ "/linux/seccomp", NULL, "seccomp missing_field" },
	{ "/linux/seccomp", "{\"defaultAction\":\"SCMP_ACT_ALLOW\"}", "seccomp" },
	/* annotations and digest */
	{ "/annotations", NULL, "digest missing_field" },
	{ "/annotations/io.aqe.image.digest", NULL, "digest missing_field" },
	{ "/annotations/io.aqe.image.digest",
	  "\"sha256:00b0f7c89f80f2e7d0fbc23349de2e3644427554abc758ac6d2958e7d3e256fe\"", "digest" },
	{ "/annotations/com.example.team", "\"qe\"", "annotations" },
	{ "/annotations/io.podman.annotations.privileged", "\"true\"", "privileged annotations" },
};

START_TEST(hard_verify__one_edit)
{
	rw_edit(base, edits[_i].pointer, edits[_i].value);
	expect(edits[_i].pointer, edits[_i].failed);
}
END_TEST

/* ---- tables walked whole ---- */

static const char *text(const char *fmt, const char *a, const char *b)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(8192);

	for (; *fmt; fmt++) /* %1 and %2 */
		if (*fmt == '%')
			aqe_buf_puts(&out, *++fmt == '1' ? a : b);
		else
			aqe_buf_putc(&out, *fmt);
	return aqe_arena_dup(arena, aqe_buf_str(&out));
}

START_TEST(capabilities__every_set)
{
	static const char *const faults[] = { NULL, "[\"CAP_CHOWN\"]", "[\"\"]", "[\"ALL\"]" };

	for (const char *const *set = HARD_CAP_SETS; *set; set++)
		for (size_t i = 0; i < AQE_COUNT(faults); i++) {
			base = rw_parse_file(RW_BASE);
			rw_edit(base, text("/process/capabilities/%1", *set, NULL), faults[i]);
			expect(*set, faults[i] ? "capabilities" : "capabilities missing_field");
		}
}
END_TEST

static const struct {
	const char *type, *fault;
} ns_of[] = {
	{ "pid", "namespaces" }, { "network", "network namespaces" }, { "ipc", "namespaces" },
	{ "uts", "namespaces" }, { "mount", "namespaces" },
};

START_TEST(namespaces__each_new_and_once)
{
	static const char *const paths[] = { "", "/proc/self/ns/x", "/proc/1/ns/x",
					     "/run/netns/a" };
	const char *type = ns_of[_i].type;
	const struct aqe_json *ns = NULL;

	for (size_t i = 0; i < AQE_COUNT(paths); i++) {
		base = rw_parse_file(RW_BASE);
		for (ns = aqe_json_at(base, "/linux/namespaces")->first; ns; ns = ns->next)
			if (aqe_str_eq(aqe_json_str(aqe_json_get(ns, "type")), type))
				ck_assert_int_eq(aqe_json_set(arena,
							      (struct aqe_json *)(uintptr_t)ns,
							      "path",
							      aqe_json_new_str(arena, paths[i])),
						 0);
		expect(type, ns_of[_i].fault);
	}
	base = rw_parse_file(RW_BASE);
	rw_edit(base, "/linux/namespaces/-", text("{\"type\":\"%1\"}", type, NULL));
	expect(type, ns_of[_i].fault);

	base = rw_parse_file(RW_BASE);
	ns = aqe_json_at(base, "/linux/namespaces")->first;
	while (!aqe_str_eq(aqe_json_str(aqe_json_get(ns, "type")), type))
		ns = ns->next;
	aqe_json_detach((struct aqe_json *)(uintptr_t)ns);
	expect(type, text("%1 missing_field", ns_of[_i].fault, NULL));
}
END_TEST

static void without_each(const char *pointer, const char *const *required)
{
	for (; *required; required++) {
		struct aqe_json *p;

		base = rw_parse_file(RW_BASE);
		p = aqe_json_at(base, pointer)->first;
		while (!aqe_str_eq(aqe_json_str(p), *required))
			p = p->next;
		aqe_json_detach(p);
		expect(*required, "masked_paths");
	}
}

START_TEST(masked_paths__each_required)
{
	without_each("/linux/maskedPaths", HARD_MASKED_LIST);
	without_each("/linux/readonlyPaths", HARD_READONLY_LIST);
}
END_TEST

START_TEST(rlimits__each_row)
{
	const struct hard_rlimit *row = &HARD_RLIMIT_ROWS[_i];
	const char *max = aqe_arena_fmt(arena, "%" PRIu64, row->max);
	const char *over = aqe_arena_fmt(arena, "%" PRIu64, row->max + 1);
	static const char fmt[] = "[{\"type\":\"%1\",\"soft\":%2,\"hard\":%2}]";

	rw_edit(base, "/process/rlimits", text(fmt, row->type, max));
	expect(row->type, row->allowed ? "" : "rlimits");
	if (row->max != UINT64_MAX) {
		rw_edit(base, "/process/rlimits", text(fmt, row->type, over));
		expect(row->type, "rlimits");
	}
	rw_edit(base, "/process/rlimits",
		text("[{\"type\":\"%1\",\"soft\":2,\"hard\":1}]", row->type, NULL));
	expect(row->type, "rlimits");
	rw_edit(base, "/process/rlimits",
		text("[{\"type\":\"%1\",\"soft\":0,\"hard\":0},{\"type\":\"%1\",\"soft\":0,"
		     "\"hard\":0}]",
		     row->type, NULL));
	expect(row->type, "rlimits");
}
END_TEST

START_TEST(annotations__each_active_name)
{
	const struct hard_active *row = &HARD_ACTIVE[_i];
	const char *name = row->prefix ? text("%1zz9", row->name, NULL) : row->name;
	const enum hard_prop first = row->also < HARD_ANNOTATIONS ? row->also : HARD_ANNOTATIONS;

	ck_assert_int_eq(aqe_json_set(arena, aqe_json_get(base, "annotations"), name,
				      aqe_json_new_str(arena, "1")),
			 0);
	expect(name, row->also == HARD_ANNOTATIONS
			     ? "annotations"
			     : text("%1 annotations", HARDENING_PROFILE[first].id, NULL));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening/verify");
	TCase *c = tcase_create("verify");

	tcase_add_checked_fixture(c, setup, rw_teardown);
	tcase_add_test(c, hard_verify__base_conforms);
	tcase_add_loop_test(c, hard_verify__one_edit, 0, AQE_COUNT(edits));
	tcase_add_test(c, capabilities__every_set);
	tcase_add_loop_test(c, namespaces__each_new_and_once, 0, AQE_COUNT(ns_of));
	tcase_add_test(c, masked_paths__each_required);
	tcase_add_loop_test(c, rlimits__each_row, 0, (int)HARD_RLIMIT_ROWS_COUNT);
	tcase_add_loop_test(c, annotations__each_active_name, 0, (int)HARD_ACTIVE_COUNT);
	suite_add_tcase(s, c);
	return unit_run(s);
}
