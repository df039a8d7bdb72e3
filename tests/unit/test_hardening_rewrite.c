/* SPDX-License-Identifier: MIT */
/* The rewrite step by step: one change to a conforming document, and what becomes of it. */
#include <stdlib.h>

#include "tests/unit/rewrite_edit_util.h"

/* ---- tightened ---- */

static const struct {
	struct edit edit;
	const char *pointer, *want; /* in the result */
} TIGHTENED[] = {
	{ { "/ociVersion", "\"1.2.0\"" }, "/ociVersion", "\"1.0.2-dev\"" },
	/* process */
	{ { "/process/capabilities/bounding", "[\"CAP_CHOWN\",\"CAP_NET_RAW\"]" },
	  "/process/capabilities/bounding",
	  "[]" },
	{ { "/process/capabilities", "{}" }, "/process/capabilities/ambient", "[]" },
	{ { "/process/capabilities", NULL }, "/process/capabilities/inheritable", "[]" },
	{ { "/process/noNewPrivileges", NULL }, "/process/noNewPrivileges", "true" },
	{ { "/process/noNewPrivileges", "false" }, "/process/noNewPrivileges", "true" },
	{ { "/process/user/uid", "0" }, "/process/user/uid", "1000" },
	{ { "/process/user", NULL }, "/process/user", "{\"uid\":1000,\"gid\":1000,\"umask\":18}" },
	{ { "/process/user/gid", "0" }, "/process/user/gid", "1000" },
	{ { "/process/user/umask", "7" }, "/process/user/umask", "23" },
	{ { "/process/user/umask", "63" }, "/process/user/umask", "63" },
	{ { "/process/user/umask", NULL }, "/process/user/umask", "18" },
	{ { "/process/user/additionalGids", "[0,44]" }, "/process/user/additionalGids", "[]" },
	{ { "/process/user/username", "\"root\"" }, "/process/user/username", NULL },
	{ { "/process/env", "[\"LD_PRELOAD=/x\",\"A=b\",\"NVIDIA_VISIBLE_DEVICES=all\"]" },
	  "/process/env",
	  "[\"A=b\"]" },
	{ { "/process/env", "[\"GLIBC_TUNABLES=x\"]" }, "/process/env", "[]" },
	{ { "/process/rlimits", "[{\"type\":\"RLIMIT_CORE\",\"hard\":9,\"soft\":9}]" },
	  "/process/rlimits",
	  "[{\"type\":\"RLIMIT_CORE\",\"hard\":0,\"soft\":0}]" },
	{ { "/process/rlimits", "[{\"type\":\"RLIMIT_NOFILE\",\"hard\":1048576,\"soft\":1024}]" },
	  "/process/rlimits",
	  "[{\"type\":\"RLIMIT_NOFILE\",\"hard\":65536,\"soft\":1024}]" },
	{ { "/process/terminal", "true" }, "/process/terminal", "true" },
	/* root */
	{ { "/root/readonly", NULL }, "/root/readonly", "true" },
	{ { "/root/readonly", "false" }, "/root/readonly", "true" },
	/* limits */
	{ { "/linux/resources/pids/limit", "2048" }, "/linux/resources/pids/limit", "512" },
	{ { "/linux/resources/pids/limit", "-1" }, "/linux/resources/pids/limit", "512" },
	{ { "/linux/resources/pids/limit", "0" }, "/linux/resources/pids/limit", "512" },
	{ { "/linux/resources/pids", NULL }, "/linux/resources/pids/limit", "512" },
	{ { "/linux/resources/pids/limit", "7" }, "/linux/resources/pids/limit", "7" },
	{ { "/linux/resources/memory/limit", "1048576" },
	  "/linux/resources/memory/swap",
	  "1048576" },
	{ { "/linux/resources/memory", "{\"limit\":8589934592,\"swap\":-1}" },
	  "/linux/resources/memory",
	  "{\"limit\":1073741824,\"swap\":1073741824}" },
	{ { "/linux/resources/memory", "{\"reservation\":8589934592,\"swappiness\":60}" },
	  "/linux/resources/memory",
	  "{\"limit\":1073741824,\"swap\":1073741824}" },
	{ { "/linux/resources/memory", "{\"kernel\":0,\"disableOOMKiller\":false}" },
	  "/linux/resources/memory",
	  "{\"limit\":1073741824,\"swap\":1073741824}" },
	{ { "/linux/resources/cpu", "{\"quota\":50000,\"period\":50000,\"shares\":0}" },
	  "/linux/resources/cpu",
	  "{\"quota\":100000,\"period\":100000}" },
	{ { "/linux/resources/cpu", "{\"quota\":2000000,\"period\":1000000}" },
	  "/linux/resources/cpu",
	  "{\"quota\":200000,\"period\":100000}" },
	{ { "/linux/resources/cpu", "{\"quota\":-1,\"shares\":4096}" },
	  "/linux/resources/cpu",
	  "{\"shares\":1024,\"quota\":200000,\"period\":100000}" },
	{ { "/linux/resources/cpu", "{\"quota\":9223372036854775807}" },
	  "/linux/resources/cpu/quota",
	  "200000" },
	{ { "/linux/resources/cpu", "{\"quota\":1,\"period\":1000000}" },
	  "/linux/resources/cpu/quota",
	  "1000" },
	{ { "/linux/resources", NULL },
	  "/linux/resources/devices",
	  "[{\"allow\":false,\"access\":\"rwm\"}]" },
	{ { "/linux/resources/blockIO", "{\"weight\":0}" }, "/linux/resources/blockIO", NULL },
	{ { "/linux/resources/hugepageLimits", "[]" }, "/linux/resources/hugepageLimits", NULL },
	{ { "/linux/resources/network", "{\"classID\":0}" }, "/linux/resources/network", NULL },
	{ { "/linux/resources/devices",
	    "[{\"allow\":false,\"access\":\"rwm\"},{\"allow\":true,\"access\":\"rwm\",\"type\":"
	    "\"c\",\"major\":1,\"minor\":3},{\"allow\":true,\"access\":\"rwm\",\"type\":\"c\","
	    "\"major\":136},{\"allow\":true,\"access\":\"rwm\",\"type\":\"c\",\"major\":5,"
	    "\"minor\":2}]" },
	  "/linux/resources/devices",
	  "[{\"allow\":false,\"access\":\"rwm\"}]" },
	/* linux */
	{ { "/linux/cgroupsPath", NULL }, "/linux/resources/pids/limit", "512" },
	{ { "/linux/devices", "[{\"path\":\"/dev/null\",\"type\":\"c\",\"major\":1,\"minor\":3}]" },
	  "/linux/devices",
	  NULL },
	{ { "/linux/sysctl", "{}" }, "/linux/rootfsPropagation", "\"rprivate\"" },
	{ { "/linux/rootfsPropagation", "\"private\"" },
	  "/linux/rootfsPropagation",
	  "\"rprivate\"" },
	{ { "/linux/sysctl", "{\"net.ipv4.ping_group_range\":\"0 2147483647\"}" },
	  "/linux/sysctl",
	  "{\"net.ipv4.ping_group_range\":\"0 0\"}" },
	{ { "/linux/maskedPaths", "[]" }, "/linux/maskedPaths/0", "\"/proc/acpi\"" },
	{ { "/linux/readonlyPaths", NULL }, "/linux/readonlyPaths/0", "\"/proc/bus\"" },
	{ { "/linux/namespaces/1/path", "\"/run/netns/netns-1\"" },
	  "/linux/namespaces/1",
	  "{\"type\":\"network\"}" },
	{ { "/linux/namespaces/0/path", "\"/proc/4711/ns/pid\"" },
	  "/linux/namespaces/0",
	  "{\"type\":\"pid\"}" },
	{ { "/linux/namespaces/6", NULL }, "/linux/namespaces/5", "{\"type\":\"user\"}" },
	/* around */
	{ { "/hooks", "{}" }, "/hooks", NULL },
	{ { "/hooks", "{\"prestart\":[],\"poststop\":[]}" }, "/hooks", NULL },
	{ { "/hooks", "{\"prestart\":[{\"path\":\"/proc/4711/exe\",\"args\":"
		      "[\"libnetwork-setkey\",\"-exec-root=/run/docker\"]}]}" },
	  "/hooks",
	  NULL },
	{ { "/annotations/org.example.x", "\"1\"" }, "/annotations/org.example.x", NULL },
	{ { "/annotations/io.kubernetes.cri.container-type", "\"container\"" },
	  "/annotations/io.kubernetes.cri.container-type",
	  NULL },
	{ { "/annotations/io.podman.annotations.cid-file", "\"/run/x.cid\"" },
	  "/annotations/io.podman.annotations.cid-file",
	  NULL },
	{ { "/annotations/io.podman.annotations.seccomp", "\"unconfined\"" },
	  "/annotations/io.podman.annotations.seccomp",
	  NULL },
	{ { "/annotations", NULL }, "/annotations/io.aqe.image.digest", "\"" DIGEST "\"" },
	{ { "/windows", "{}" }, "/windows", NULL },
	/* mounts */
	{ { "/mounts", NULL }, "/mounts/5/destination", "\"/tmp\"" }, /* no mqueue, no cgroup */
	{ { "/mounts", "[]" }, "/mounts/9/destination", NULL },
	{ { "/mounts/1/options", "[\"nosuid\",\"mode=1777\",\"size=9g\"]" },
	  "/mounts/1/options",
	  "[\"nosuid\",\"noexec\",\"strictatime\",\"mode=755\",\"size=65536k\"]" },
	{ { "/mounts/4/options", "[\"size=1m\"]" },
	  "/mounts/4/options",
	  "[\"nosuid\",\"noexec\",\"nodev\",\"mode=1777\",\"size=1024k\"]" },
};

START_TEST(rewrite__tightens)
{
	struct aqe_json *doc = rw_parse_file(RW_BASE);

	rw_apply(doc, &TIGHTENED[_i].edit);
	rw_check_value(rw_rewrite_ok(doc), TIGHTENED[_i].pointer, TIGHTENED[_i].want);
}
END_TEST

/* ---- refused ---- */

static const struct {
	struct edit edit;
	const char *props, *pointer; /* of the first finding */
	const char *found;           /* part of its text */
} REFUSED[] = {
	{ { "/ociVersion", "\"9.9.9\"" }, "unknown_field", "/ociVersion", "9.9.9" },
	{ { "/surprise", "1" }, "unknown_field", "/surprise", "surprise" },
	{ { "/process/Cwd", "\"/\"" }, "unknown_field", "/process/Cwd", "cwd" },
	{ { "/linux/resources/blockIO", "{\"weight\":1000}" },
	  "unknown_field",
	  "/linux/resources/blockIO",
	  "blockIO" },
	{ { "/process", NULL }, "missing_field", "/process", "absent" },
	{ { "/linux", NULL }, "missing_field", "/linux", "absent" },
	{ { "/root", NULL }, "missing_field", "/root", "absent" },
	/* process */
	{ { "/process/capabilities/effective", "[\"CAP_SYS_ADMIN\"]" },
	  "capabilities",
	  "/process/capabilities/effective",
	  "CAP_SYS_ADMIN" },
	{ { "/process/capabilities/ambient", "[\"cap_chown\"]" },
	  "capabilities",
	  "/process/capabilities/ambient",
	  "cap_chown" },
	{ { "/process/user/uid", "4294967295" }, "user", "/process/user/uid", "4294967295" },
	{ { "/process/user/uid", "70000" }, "user", "/process/user/uid", "mapped nowhere" },
	{ { "/process/env", "[\"NOVALUE\"]" }, "missing_field", "/process/env/0", "without" },
	{ { "/process/env", "[\"=x\"]" }, "missing_field", "/process/env/0", "without" },
	{ { "/process/cwd", "\"/proc/self/fd/7\"" }, "mounts", "/process/cwd", "fd/7" },
	{ { "/process/cwd", "\"work\"" }, "mounts", "/process/cwd", "work" },
	{ { "/process/args", "[]" }, "missing_field", "/process/args", "no args" },
	{ { "/process/args", "[\"/proc/self/exe\"]" }, "mounts", "/process/args/0", "exe" },
	{ { "/process/rlimits", "[{\"type\":\"RLIMIT_RTPRIO\",\"hard\":1,\"soft\":1}]" },
	  "rlimits",
	  "/process/rlimits/0",
	  "RTPRIO" },
	{ { "/process/rlimits", "[{\"type\":\"RLIMIT_NOFILE\",\"soft\":1}]" },
	  "rlimits",
	  "/process/rlimits/0",
	  "NOFILE" },
	{ { "/process/rlimits/-", "{\"type\":\"RLIMIT_NPROC\",\"hard\":1,\"soft\":1}" },
	  "rlimits",
	  "/process/rlimits/2",
	  "second" },
	{ { "/process/oomScoreAdj", "-500" }, "memory_limit", "/process/oomScoreAdj", "-500" },
	{ { "/process/apparmorProfile", "\"unconfined\"" },
	  "lsm",
	  "/process/apparmorProfile",
	  "unconfined" },
	{ { "/process/selinuxLabel", "\"system_u:system_r:spc_t:s0\"" },
	  "lsm",
	  "/process/selinuxLabel",
	  "spc_t" },
	/* root */
	{ { "/root/path", "\"rootfs\"" }, "readonly_rootfs", "/root/path", "rootfs" },
	{ { "/root/path", "\"/\"" }, "readonly_rootfs", "/root/path", "/" },
	/* limits */
	{ { "/linux/resources/memory/disableOOMKiller", "true" },
	  "memory_limit",
	  "/linux/resources/memory/disableOOMKiller",
	  "disableOOMKiller" },
	{ { "/linux/resources/memory/useHierarchy", "false" },
	  "memory_limit",
	  "/linux/resources/memory/useHierarchy",
	  "escape" },
	{ { "/linux/resources/cpu/realtimeRuntime", "1000" },
	  "cpu_limit",
	  "/linux/resources/cpu/realtimeRuntime",
	  "realtimeRuntime" },
	{ { "/linux/resources/network", "{\"classID\":7}" },
	  "network",
	  "/linux/resources/network",
	  "network" },
	{ { "/linux/cgroupsPath", "\"/user.slice\"" },
	  "pids_limit memory_limit cpu_limit",
	  "/linux/cgroupsPath",
	  "user.slice" },
	{ { "/linux/resources/devices/-", "{\"allow\":true,\"access\":\"rwm\"}" },
	  "devices",
	  "/linux/resources/devices/1",
	  "beyond" },
	{ { "/linux/resources/devices/-",
	    "{\"allow\":true,\"access\":\"r\",\"type\":\"b\",\"major\":8}" },
	  "devices",
	  "/linux/resources/devices/1",
	  "beyond" },
	{ { "/linux/devices",
	    "[{\"path\":\"/dev/kvm\",\"type\":\"c\",\"major\":10,\"minor\":232}]" },
	  "devices",
	  "/linux/devices/0",
	  "kvm" },
	{ { "/linux/devices", "[{\"path\":\"/dev/x\",\"type\":\"c\",\"major\":1,\"minor\":3}]" },
	  "devices",
	  "/linux/devices/0",
	  "/dev/x" },
	/* namespaces */
	{ { "/linux/namespaces/0", NULL }, "namespaces", "/linux/namespaces", "no pid" },
	{ { "/linux/namespaces/1", NULL }, "network", "/linux/namespaces", "no network" },
	{ { "/linux/namespaces/4", NULL }, "namespaces", "/linux/namespaces", "no mount" },
	{ { "/linux/namespaces", NULL }, "rootless network namespaces", "/linux", "no user" },
	{ { "/linux/namespaces/5", NULL }, "rootless", "/linux/namespaces", "no user" },
	{ { "/linux/namespaces/5/path", "\"/proc/4711/ns/user\"" },
	  "rootless",
	  "/linux/namespaces/5/path",
	  "existing" },
	{ { "/linux/namespaces/1/path", "\"/proc/1/ns/net\"" },
	  "network",
	  "/linux/namespaces/1/path",
	  "host's" },
	{ { "/linux/namespaces/1/path", "\"/run/docker/netns/default\"" },
	  "network",
	  "/linux/namespaces/1/path",
	  "host's" },
	{ { "/linux/namespaces/0/path", "\"/proc/self/ns/pid\"" },
	  "namespaces",
	  "/linux/namespaces/0/path",
	  "host's" },
	{ { "/linux/namespaces/-", "{\"type\":\"ipc\"}" },
	  "namespaces",
	  "/linux/namespaces",
	  "2 times" },
	{ { "/linux/namespaces/-", "{\"type\":\"time\"}" },
	  "namespaces",
	  "/linux/namespaces/7",
	  "time" },
	{ { "/linux/uidMappings", "[{\"containerID\":0,\"hostID\":0,\"size\":65536}]" },
	  "rootless",
	  "/linux/uidMappings/0",
	  "host id 0" },
	{ { "/linux/uidMappings", NULL },
	  "rootless user missing_field",
	  "/linux/uidMappings",
	  "absent" },
	/* the rest of linux */
	{ { "/linux/rootfsPropagation", "\"shared\"" },
	  "propagation",
	  "/linux/rootfsPropagation",
	  "shared" },
	{ { "/linux/sysctl", "{\"kernel.core_pattern\":\"|/x\"}" },
	  "sysctl",
	  "/linux/sysctl/kernel.core_pattern",
	  "core_pattern" },
	{ { "/linux/maskedPaths/-", "\"/workspace\"" },
	  "masked_paths",
	  "/linux/maskedPaths/12",
	  "workspace" },
	{ { "/linux/mountLabel", "\"system_u:object_r:etc_t:s0\"" },
	  "lsm",
	  "/linux/mountLabel",
	  "etc_t" },
	/* around */
	{ { "/hooks", "{\"poststart\":[{\"path\":\"/bin/x\"}]}" },
	  "hooks",
	  "/hooks/poststart/0",
	  "/bin/x" },
	{ { "/hooks", "{\"poststop\":[{\"path\":\"/proc/1/exe\",\"args\":"
		      "[\"libnetwork-setkey\"]}]}" },
	  "hooks",
	  "/hooks/poststop/0",
	  "/proc/1/exe" },
	{ { "/hooks", "{\"prestart\":[{\"path\":\"/proc/1/../exe\",\"args\":"
		      "[\"libnetwork-setkey\"]}]}" },
	  "hooks",
	  "/hooks/prestart/0",
	  "exe" },
	{ { "/annotations/run.oci.seccomp_bpf_data", "\"BgAAAAAA/38=\"" },
	  "seccomp annotations",
	  "/annotations/run.oci.seccomp_bpf_data",
	  "seccomp_bpf_data" },
	{ { "/annotations/io.podman.annotations.privileged", "\"TRUE\"" },
	  "privileged annotations",
	  "/annotations/io.podman.annotations.privileged",
	  "privileged" },
	/* mounts */
	{ { "/mounts/-", BIND("/etc", "/mnt") }, "mounts", "/mounts/11", "'/etc' at '/mnt'" },
	{ { "/mounts/-", BIND("/run/podman/podman.sock", "/s") },
	  "engine_socket",
	  "/mounts/11",
	  "podman.sock" },
	{ { "/mounts/-", BIND("/", "/host") }, "engine_socket", "/mounts/11", "/host" },
	{ { "/mounts/-", BIND("/x", "/workspace") }, "mounts", "/mounts/11", "second" },
	{ { "/mounts/-", BIND("/x", "/tmp/../etc") }, "mounts", "/mounts/11", "/tmp/../etc" },
	{ { "/mounts/-", BIND("/v/volumes/" ID "/_data", "/vol") },
	  "mounts",
	  "/mounts/11",
	  "VOLUME" },
	/* a pod's member under a rootless engine: its files lie beside the engine's socket */
	{ { "/mounts/-", BIND("/run/user/1000/containers/userdata/hosts", "/etc/hosts") },
	  "mounts",
	  "/mounts/11",
	  "not a file of this container" },
	{ { "/mounts/-", BIND("/run/user/1000/podman/podman.sock", "/etc/hosts") },
	  "engine_socket",
	  "/mounts/11",
	  "podman.sock" },
	{ { "/mounts/-", BIND(DOCKER_DIR "x", "/etc/hosts") },
	  "mounts",
	  "/mounts/11",
	  "not a file of this container" },
	{ { "/mounts/0", BIND("/proc", "/proc") }, "mounts", "/mounts/0", "'/proc' at '/proc'" },
	{ { "/mounts/4", BIND("/dev/shm", "/dev/shm") }, "mounts", "/mounts/4", "/dev/shm" },
	{ { "/mounts/7", BIND("/srv", "/tmp") }, "mounts", "/mounts/7", "/srv" },
	{ { "/mounts/9", BIND("/srv/aqe/workspace2", "/workspace") },
	  "mounts",
	  "/mounts/9",
	  "workspace2" },
	{ { "/mounts/9/options", "[\"bind\",\"rshared\"]" }, "propagation", "/mounts/9", "shared" },
	{ { "/mounts/-", "{\"destination\":\"/x\",\"type\":\"tmpfs\",\"source\":\"tmpfs\"}" },
	  "mounts",
	  "/mounts/11",
	  "tmpfs" },
	{ { "/mounts/-", "{\"destination\":\"/x\",\"type\":\"ext4\",\"source\":\"/dev/vda\"}" },
	  "mounts",
	  "/mounts/11",
	  "ext4" },
};

START_TEST(rewrite__refuses)
{
	struct aqe_json *doc = rw_parse_file(RW_BASE);

	rw_apply(doc, &REFUSED[_i].edit);
	ck_assert_ptr_null(rw_rewrite(doc));
	ck_assert_str_eq(rw_failed(&report), REFUSED[_i].props);

	const struct hard_finding *f = hard_report_worst(&report);

	ck_assert_ptr_nonnull(f);
	ck_assert_str_eq(f->pointer, REFUSED[_i].pointer);
	ck_assert_msg(strstr(f->found, REFUSED[_i].found), "found '%s', want '%s' in it", f->found,
		      REFUSED[_i].found);
}
END_TEST

/* The input is never changed, whatever the outcome. */
START_TEST(rewrite__leaves_its_input_alone)
{
	struct aqe_json *doc = rw_parse_file("tests/samples/podman-secret.json");
	struct aqe_json *copy = aqe_json_copy(arena, doc);

	(void)rw_rewrite(doc);
	ck_assert(aqe_json_equal(doc, copy));
}
END_TEST

/* ---- capabilities ---- */

START_TEST(rewrite__tells_privileged_from_one_capability)
{
	struct aqe_json *doc = rw_parse_file(RW_BASE);
	struct aqe_json *set = aqe_json_at(doc, "/process/capabilities/bounding");

	for (int i = 0; i < 38; i++)
		ck_assert_int_eq(aqe_json_append(set, aqe_json_new_str(arena, "CAP_SYS_ADMIN")), 0);
	ck_assert_ptr_null(rw_rewrite(doc));
	ck_assert_str_eq(rw_failed(&report), "privileged");
}
END_TEST

/* ---- user ---- */

START_TEST(rewrite__gives_a_new_user_a_home)
{
	static const struct {
		const char *env, *want;
	} rows[] = {
		{ "[\"A=b\"]", "[\"A=b\",\"HOME=/tmp\"]" },
		{ "[\"HOME=/root\",\"A=b\"]", "[\"A=b\",\"HOME=/tmp\"]" },
		{ "[\"HOME=/work\"]", "[\"HOME=/work\"]" },
		{ "[]", "[\"HOME=/tmp\"]" },
	};

	for (size_t i = 0; i < AQE_COUNT(rows); i++) {
		struct aqe_json *doc = rw_parse_file(RW_BASE);

		rw_edit(doc, "/process/user/uid", "0");
		rw_edit(doc, "/process/env", rows[i].env);
		rw_check_value(rw_rewrite_ok(doc), "/process/env", rows[i].want);
	}
	/* another user keeps what the engine set */
	struct aqe_json *doc = rw_parse_file(RW_BASE);

	rw_edit(doc, "/process/env", "[\"HOME=/root\"]");
	rw_check_value(rw_rewrite_ok(doc), "/process/env", "[\"HOME=/root\"]");
}
END_TEST

/* ---- mounts ---- */

static const char *destinations(const struct aqe_json *doc)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);

	for (const struct aqe_json *m = aqe_json_get(doc, "mounts")->first; m; m = m->next)
		aqe_buf_addf(&b, "%s%s", b.len ? " " : "",
			     aqe_json_str(aqe_json_get(m, "destination")));
	return aqe_arena_dup(arena, aqe_buf_str(&b));
}

/* Engine files land behind /run, whatever order podman's maps gave them; podman's own shm bind and
 * /var/tmp go. */
#define BIND_RO  "\"ro\"," BIND_ALL
#define BIND_RW  "\"rw\"," BIND_ALL ",\"rnosuid\",\"rnodev\""
#define BIND_ALL "\"nosuid\",\"nodev\",\"rprivate\",\"bind\""
#define NOEXEC   "\"noexec\""

START_TEST(rewrite__orders_mounts)
{
	struct aqe_json *doc = rw_parse_file(RW_BASE);
	const struct aqe_json *m;

	rw_edit(doc, "/mounts",
		"[{\"destination\":\"/run/secrets/s1\",\"type\":\"bind\",\"source\":\"" USERDATA
		"secrets/s1\",\"options\":[\"bind\",\"rprivate\"]},"
		"{\"destination\":\"/run/.containerenv\",\"type\":\"bind\",\"source\":\"" USERDATA
		".containerenv\",\"options\":[\"bind\"]},"
		"{\"destination\":\"/run/secrets\",\"type\":\"bind\",\"source\":\"" USERDATA
		"run/secrets\",\"options\":[\"bind\",\"rprivate\"]},"
		"{\"destination\":\"/var/tmp\",\"type\":\"tmpfs\",\"source\":\"tmpfs\"},"
		"{\"destination\":\"/dev/shm\",\"type\":\"bind\",\"source\":\"" USERDATA
		"shm\",\"options\":[\"bind\"]},"
		"{\"destination\":\"/sys/fs/cgroup\",\"type\":\"cgroup\",\"source\":\"cgroup\","
		"\"options\":[\"rw\"]},"
		"{\"destination\":\"/sbin/docker-init\",\"type\":\"bind\",\"source\":"
		"\"/usr/bin/docker-init\",\"options\":[\"bind\",\"ro\"]}]");
	doc = rw_rewrite_ok(doc);
	ck_assert_str_eq(destinations(doc),
			 "/proc /dev /dev/pts /dev/shm /sys /sys/fs/cgroup /tmp /run "
			 "/run/.containerenv /run/secrets/s1 /sbin/docker-init "
			 "/var/lib/aqe /workspace");
	m = aqe_json_at(doc, "/mounts/8/options");
	ck_assert(aqe_json_equal(m, rw_value("[" BIND_RO "," NOEXEC "]")));
	/* --init's program runs */
	m = aqe_json_at(doc, "/mounts/10/options");
	ck_assert(aqe_json_equal(m, rw_value("[" BIND_RO "]")));
	ck_assert_str_eq(aqe_json_str(aqe_json_at(doc, "/mounts/3/type")), "tmpfs");
}
END_TEST

START_TEST(rewrite__keeps_a_policy_mount_read_only)
{
	struct aqe_json *doc = rw_parse_file(RW_BASE);

	rw_edit(doc, "/mounts/9/options", "[\"rbind\",\"ro\",\"suid\",\"dev\",\"noexec\"]");
	doc = rw_rewrite_ok(doc);
	rw_check_value(doc, "/mounts/10/options", "[" BIND_RO "," NOEXEC "]");
}
END_TEST

/* crun's way for these words takes directories only: an engine's file has none, or every container
 * with a user namespace fails on its /etc/hostname. */
START_TEST(rewrite__recursive_words_are_for_writable_directories)
{
	struct aqe_json *doc = rw_rewrite_ok(rw_parse_file(RW_BASE));
	const struct aqe_json *mounts = aqe_json_get(doc, "mounts");
	bool writable = false;

	for (const struct aqe_json *m = mounts->first; m; m = m->next) {
		const struct aqe_json *options = aqe_json_get(m, "options");
		const char *destination = aqe_json_str(aqe_json_get(m, "destination"));
		const bool rw =
			aqe_json_has_str(options, "bind") && aqe_json_has_str(options, "rw");

		ck_assert_msg(aqe_json_has_str(options, "rnosuid") == rw, "%s", destination);
		ck_assert_msg(!rw || aqe_json_equal(options, rw_value("[" BIND_RW "]")), "%s",
			      destination);
		writable = writable || rw;
	}
	ck_assert(writable);
}
END_TEST

START_TEST(rewrite__sizes_tmpfs_by_the_agent_type)
{
	struct aqe_json *doc = rw_parse_file(RW_BASE);

	ctx.agent = hard_policy_agent(policy, "qe-visual-tester"); /* 2 CPUs, 4g, disk 2g */
	rw_edit(doc, "/mounts/7/options", "[\"size=0\"]");
	rw_edit(doc, "/mounts/8/options", "[\"size=4m\",\"exec\"]");
	rw_edit(doc, "/linux/resources/memory/limit", "0");
	doc = rw_rewrite_ok(doc);
	rw_check_value(doc, "/mounts/7/options",
		       "[\"rw\",\"nosuid\",\"nodev\",\"noexec\",\"rprivate\",\"size=1835008k\","
		       "\"mode=1777\",\"uid=1000\",\"gid=1000\"]");
	rw_check_value(doc, "/mounts/8/options",
		       "[\"rw\",\"nosuid\",\"nodev\",\"noexec\",\"rprivate\",\"size=4096k\","
		       "\"mode=0755\",\"uid=1000\",\"gid=1000\"]");
	rw_check_value(doc, "/linux/resources/memory/limit", "4294967296");
	rw_check_value(doc, "/annotations/io.aqe.agent-type", "\"qe-visual-tester\"");
}
END_TEST

START_TEST(rewrite__leaves_exec_on_tmp_where_the_policy_says_so)
{
	struct hard_agent agent = *hard_policy_agent(policy, "qe-test-writer");
	struct aqe_json *doc = rw_parse_file(RW_BASE);

	agent.tmp_exec = true;
	ctx.agent = &agent;
	doc = rw_rewrite_ok(doc);
	ck_assert(!aqe_json_has_str(aqe_json_at(doc, "/mounts/7/options"), "noexec"));
	ck_assert(aqe_json_has_str(aqe_json_at(doc, "/mounts/8/options"), "noexec"));
}
END_TEST

/* Group 5 owns terminals; where it is not mapped, mounting devpts with it fails. */
START_TEST(rewrite__drops_an_unmapped_terminal_group)
{
	struct aqe_json *doc = rw_parse_file(RW_BASE);

	rw_edit(doc, "/linux/gidMappings", "[{\"containerID\":1000,\"hostID\":101000,\"size\":1}]");
	doc = rw_rewrite_ok(doc);
	ck_assert(!aqe_json_has_str(aqe_json_at(doc, "/mounts/2/options"), "gid=5"));
}
END_TEST

START_TEST(rewrite__names_a_bundles_root_from_the_top)
{
	struct aqe_json *doc = rw_parse_file(RW_BASE);

	rw_edit(doc, "/root/path", "\"rootfs\"");
	ctx.bundle = "/srv/bundle";
	rw_check_value(rw_rewrite_ok(doc), "/root/path", "\"/srv/bundle/rootfs\"");
	rw_edit(doc, "/root/path", "\"../other\"");
	ck_assert_ptr_null(rw_rewrite(doc));
	ck_assert_str_eq(rw_failed(&report), "readonly_rootfs");
}
END_TEST

START_TEST(refusal__names_the_three_ways_out_of_rootful)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);
	struct aqe_json *doc = rw_parse_file(RW_BASE);

	rw_edit(doc, "/linux/namespaces/5", NULL);
	ck_assert_ptr_null(rw_rewrite(doc));
	hard_report_refusal(&report, &b);
	ck_assert_ptr_nonnull(strstr(b.p, "rootless engine"));
	ck_assert_ptr_nonnull(strstr(b.p, "--userns=auto"));
	ck_assert_ptr_nonnull(strstr(b.p, "userns-remap"));
	ck_assert_ptr_nonnull(strstr(b.p, "waiver for 'rootless' to 'waivers' in " RW_POLICY));
}
END_TEST

/* ---- memory ---- */

/* Whatever allocation fails, the result is an error, never a document. */
START_TEST(rewrite__fails_whole_without_memory)
{
	struct aqe_json *doc = rw_parse_file("tests/samples/docker-tty.json");
	size_t ok = 0;

	ctx.info_rootless = true;
	for (size_t max = 1024; max < ((size_t)1 << 20) && !ok; max += 4096 + max / 8) {
		struct aqe_arena *small = aqe_arena_new(max);
		struct aqe_json *result = NULL;

		hard_report_init(&report, small);
		const int rc = hard_rewrite(&ctx, small, doc, &report, &result, &err);

		ck_assert_msg(rc == 0 || rc == AQE_E_NOMEM, "%zu: %d", max, rc);
		ck_assert(rc == 0 || !result);
		ok += result != NULL;
		aqe_arena_free(small);
	}
	ck_assert_uint_eq(ok, 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening_rewrite");
	TCase *gate = tcase_create("gate");

	tcase_add_checked_fixture(gate, rw_setup, rw_teardown);
	tcase_add_loop_test(gate, rewrite__tightens, 0, (int)AQE_COUNT(TIGHTENED));
	tcase_add_loop_test(gate, rewrite__refuses, 0, (int)AQE_COUNT(REFUSED));
	tcase_add_test(gate, rewrite__leaves_its_input_alone);
	tcase_add_test(gate, rewrite__tells_privileged_from_one_capability);
	tcase_add_test(gate, rewrite__gives_a_new_user_a_home);
	tcase_add_test(gate, rewrite__orders_mounts);
	tcase_add_test(gate, rewrite__keeps_a_policy_mount_read_only);
	tcase_add_test(gate, rewrite__recursive_words_are_for_writable_directories);
	tcase_add_test(gate, rewrite__sizes_tmpfs_by_the_agent_type);
	tcase_add_test(gate, rewrite__leaves_exec_on_tmp_where_the_policy_says_so);
	tcase_add_test(gate, rewrite__drops_an_unmapped_terminal_group);
	tcase_add_test(gate, rewrite__names_a_bundles_root_from_the_top);
	tcase_add_test(gate, refusal__names_the_three_ways_out_of_rootful);
	tcase_add_test(gate, rewrite__fails_whole_without_memory);
	suite_add_tcase(s, gate);
	return unit_run(s);
}
