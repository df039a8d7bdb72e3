/* SPDX-License-Identifier: MIT */
/* Judging inspect and info documents: one edit of a good document, and what it breaks. */
#include <check.h>

#include "tests/unit/inspect_util.h"

#define CAPS_BUT_CHOWN                                                                           \
	"[\"CAP_AUDIT_WRITE\",\"CAP_DAC_OVERRIDE\",\"CAP_FOWNER\",\"CAP_FSETID\",\"CAP_KILL\","  \
	"\"CAP_MKNOD\",\"CAP_NET_BIND_SERVICE\",\"CAP_NET_RAW\",\"CAP_SETFCAP\",\"CAP_SETGID\"," \
	"\"CAP_SETPCAP\",\"CAP_SETUID\",\"CAP_SYS_CHROOT\""
#define WS "/srv/aqe/workspace"

/* `failed` is every property that fails then, "-" for none. */
static const struct edit {
	const char *file, *pointer, *text, *failed;
} edits[] = {
	/* capabilities: ALL, or the fourteen */
	{ DOCKER, "/HostConfig/CapDrop", CAPS_BUT_CHOWN ",\"CAP_CHOWN\"]", "-" },
	{ DOCKER, "/HostConfig/CapDrop", CAPS_BUT_CHOWN "]", "capabilities" },
	{ DOCKER, "/HostConfig/CapDrop", "[\"NET_RAW\",\"ALL\"]", "-" },
	{ DOCKER, "/HostConfig/CapDrop", "[\"CAP_ALL\"]", "capabilities" },
	{ DOCKER, "/HostConfig/CapDrop", NULL, "capabilities missing_field" },
	{ DOCKER, "/HostConfig/CapAdd", "[]", "-" },
	{ DOCKER, "/HostConfig/CapAdd", NULL, "capabilities missing_field" },
	{ PODMAN_14, "/HostConfig/CapDrop", CAPS_BUT_CHOWN "]", "capabilities" },
	{ PODMAN, "/BoundingCaps", NULL, "capabilities missing_field" },
	{ PODMAN, "/EffectiveCaps", "[\"CAP_CHOWN\"]", "capabilities" },
	/* no_new_privileges */
	{ DOCKER, "/HostConfig/SecurityOpt", "[\"no-new-privileges:true\"]", "-" },
	{ DOCKER, "/HostConfig/SecurityOpt", "[\"no-new-privileges=true\"]", "-" },
	{ DOCKER, "/HostConfig/SecurityOpt", "[\"no-new-privileges:True\"]", "no_new_privileges" },
	{ DOCKER, "/HostConfig/SecurityOpt", "[\"no-new-privileges:\"]", "no_new_privileges" },
	{ DOCKER, "/HostConfig/SecurityOpt", "[\"no-new-privileges:false\",\"no-new-privileges\"]",
	  "no_new_privileges" },
	/* other security options */
	{ DOCKER, "/HostConfig/SecurityOpt/-", "\"seccomp=/etc/aqe/seccomp.json\"", "-" },
	{ DOCKER, "/HostConfig/SecurityOpt/-", "\"seccomp:/etc/aqe/seccomp.json\"", "seccomp" },
	{ DOCKER, "/HostConfig/SecurityOpt/-", "\"seccomp=\"", "seccomp" },
	{ DOCKER, "/HostConfig/SecurityOpt/-", "\"seccomp={\"", "seccomp" },
	{ DOCKER, "/HostConfig/SecurityOpt/-",
	  "\"seccomp={\\\"defaultAction\\\":\\\"SCMP_ACT_ALLOW\\\"}\"", "seccomp" },
	{ DOCKER, "/HostConfig/SecurityOpt/-",
	  "\"seccomp={\\\"defaultAction\\\":\\\"SCMP_ACT_ERRNO\\\",\\\"archMap\\\":[]}\"",
	  "seccomp" },
	{ DOCKER, "/HostConfig/SecurityOpt/-", "\"apparmor=docker-default\"", "-" },
	{ DOCKER, "/HostConfig/SecurityOpt/-", "\"apparmor=unconfined\"", "lsm" },
	{ DOCKER, "/HostConfig/SecurityOpt/-", "\"label=type:spc_t\"", "lsm" },
	{ DOCKER, "/HostConfig/SecurityOpt/-", "\"label:disable\"", "lsm" },
	{ DOCKER, "/HostConfig/SecurityOpt/-", "\"systempaths=unconfined\"", "masked_paths" },
	{ PODMAN, "/HostConfig/SecurityOpt/-", "\"unmask=ALL\"", "masked_paths" },
	{ PODMAN, "/HostConfig/SecurityOpt/-", "\"mask=/proc/cpuinfo\"", "-" },
	{ PODMAN, "/HostConfig/SecurityOpt/-", "\"future=1\"", "unknown_field" },
	/* podman's own command line is the only trace of these (measured) */
	{ PODMAN, "/Config/CreateCommand", "[\"podman\",\"--security-opt\",\"unmask=ALL\",\"i\"]",
	  "masked_paths" },
	{ PODMAN, "/Config/CreateCommand", "[\"podman\",\"--security-opt=unmask=/proc/*\",\"i\"]",
	  "masked_paths" },
	{ PODMAN, "/Config/CreateCommand", "[\"podman\",\"--sysctl\",\"kernel.msgmax=1\",\"i\"]",
	  "sysctl" },
	{ PODMAN, "/Config/CreateCommand",
	  "[\"podman\",\"--sysctl=net.ipv4.ip_unprivileged_port_start=0\",\"i\"]", "-" },
	{ PODMAN, "/Config/CreateCommand",
	  "[\"podman\",\"--device-cgroup-rule\",\"c 1:3 rw\",\"i\"]", "-" },
	{ PODMAN, "/Config/CreateCommand",
	  "[\"podman\",\"--device-cgroup-rule\",\"c *:* rwm\",\"i\"]", "devices" },
	{ PODMAN, "/Config/CreateCommand", "[\"podman\",\"--device\",\"/dev/kvm\",\"i\"]",
	  "devices" },
	/* the container's own words are not podman's */
	{ PODMAN, "/Config/CreateCommand", "[\"podman\",\"i\",\"sleep\",\"60\"]", "-" },
	/* pids */
	{ DOCKER, "/HostConfig/PidsLimit", "1", "-" },
	{ DOCKER, "/HostConfig/PidsLimit", "512", "-" },
	{ DOCKER, "/HostConfig/PidsLimit", "513", "pids_limit" },
	{ DOCKER, "/HostConfig/PidsLimit", "0", "pids_limit" },
	{ DOCKER, "/HostConfig/PidsLimit", "-1", "pids_limit" },
	{ DOCKER, "/HostConfig/PidsLimit", "null", "pids_limit" },
	{ PODMAN, "/HostConfig/PidsLimit", "2048", "pids_limit" },
	{ PODMAN, "/HostConfig/PidsLimit", "18446744073709551615", "pids_limit" },
	/* memory */
	{ DOCKER, "/HostConfig/Memory", "1073741825", "memory_limit" },
	{ DOCKER, "/HostConfig/MemorySwap", "0", "memory_limit" },
	{ DOCKER, "/HostConfig/MemorySwap", "1073741825", "memory_limit" },
	{ DOCKER, "/HostConfig/MemorySwap", "-1", "memory_limit" },
	{ DOCKER, "/HostConfig/MemoryReservation", "1073741824", "-" },
	{ DOCKER, "/HostConfig/MemoryReservation", "1073741825", "memory_limit" },
	{ DOCKER, "/HostConfig/MemorySwappiness", "60", "memory_limit" },
	{ DOCKER, "/HostConfig/OomKillDisable", "true", "memory_limit" },
	{ DOCKER, "/HostConfig/OomKillDisable", "null", "-" },
	{ DOCKER, "/HostConfig/OomScoreAdj", "1000", "-" },
	{ DOCKER, "/HostConfig/OomScoreAdj", "-1", "memory_limit" },
	{ DOCKER, "/HostConfig/KernelMemory", "1", "memory_limit" },
	/* cpu: NanoCpus alone, both in agreement or not */
	{ DOCKER, "/HostConfig/NanoCpus", "2000000001", "cpu_limit" },
	{ DOCKER, "/HostConfig/NanoCpus", "1", "-" },
	{ DOCKER, "/HostConfig/NanoCpus", "0", "cpu_limit" },
	{ DOCKER, "/HostConfig/CpuQuota", "200000", "-" }, /* period 100000 by default */
	{ DOCKER, "/HostConfig/CpuQuota", "100000", "cpu_limit" },
	{ DOCKER, "/HostConfig/CpuQuota", "999", "cpu_limit" },
	{ DOCKER, "/HostConfig/CpuQuota", "-1", "cpu_limit" },
	{ PODMAN, "/HostConfig/CpuPeriod", "50000", "cpu_limit" },
	{ PODMAN, "/HostConfig/CpuPeriod", "100001", "cpu_limit" },
	{ PODMAN, "/HostConfig/NanoCpus", "0", "-" }, /* an uneven quota has none */
	{ PODMAN, "/HostConfig/NanoCpus", "1999999999", "cpu_limit" },
	{ PODMAN, "/HostConfig/CpuQuota", NULL, "cpu_limit missing_field" },
	{ PODMAN, "/HostConfig/CpuShares", "1025", "cpu_limit" },
	{ PODMAN, "/HostConfig/CpuRealtimePeriod", "1", "cpu_limit" },
	{ PODMAN, "/HostConfig/IntelRdtClosID", "\"x\"", "cpu_limit" },
	/* cgroup */
	{ PODMAN, "/HostConfig/Cgroups", "\"disabled\"", "pids_limit memory_limit cpu_limit" },
	{ PODMAN, "/HostConfig/Cgroups", "\"no-conmon\"", "-" },
	{ DOCKER, "/HostConfig/CgroupParent", "\"/init.scope\"",
	  "pids_limit memory_limit cpu_limit" },
	{ PODMAN, "/HostConfig/CgroupConf", "{\"memory.max\":\"max\"}",
	  "pids_limit memory_limit cpu_limit" },
	/* namespaces */
	{ DOCKER, "/HostConfig/PidMode", "\"private\"", "namespaces" },
	{ PODMAN, "/HostConfig/PidMode", "\"ns:/proc/1/ns/pid\"", "namespaces" },
	{ PODMAN, "/HostConfig/IpcMode", "\"container:abc\"", "namespaces" },
	{ PODMAN, "/HostConfig/IpcMode", "\"private\"", "-" },
	{ DOCKER, "/HostConfig/UTSMode", "\"host\"", "namespaces" },
	{ DOCKER, "/HostConfig/CgroupnsMode", "\"private\"", "-" },
	{ DOCKER, "/HostConfig/CgroupnsMode", "\"container:x\"", "namespaces" },
	{ PODMAN, "/IsInfra", "true", "namespaces" },
	/* network */
	{ DOCKER, "/HostConfig/NetworkMode", "\"container:abc\"", "network" },
	{ DOCKER, "/HostConfig/NetworkMode", "\"\"", "network" },
	{ DOCKER, "/NetworkSettings/Networks", "{}", "-" },
	{ DOCKER, "/NetworkSettings/Networks/none/IPAddress", "\"10.0.0.1\"", "network" },
	{ DOCKER, "/NetworkSettings/GlobalIPv6Address", "\"fd00::1\"", "network" },
	{ DOCKER, "/NetworkSettings/Ports", "{\"80/tcp\":[]}", "network" },
	{ DOCKER, "/NetworkSettings/Ports", "null", "-" },
	{ DOCKER, "/HostConfig/PublishAllPorts", "true", "network" },
	{ DOCKER, "/HostConfig/Links", "[\"a:b\"]", "network" },
	{ DOCKER, "/NetworkSettings", NULL, "network missing_field" },
	/* user namespace */
	{ PODMAN, "/HostConfig/UsernsMode", "\"\"", "-" }, /* mappings are there */
	{ PODMAN, "/HostConfig/UsernsMode", "\"keep-id\"", "rootless" },
	{ PODMAN, "/HostConfig/UsernsMode", "\"ns:/proc/1/ns/user\"", "rootless" },
	{ PODMAN, "/HostConfig/IDMappings", NULL, "rootless" },
	{ PODMAN, "/HostConfig/IDMappings/GidMap", NULL, "rootless" },
	{ PODMAN, "/HostConfig/IDMappings/UidMap", "[\"0:65536:65536\"]", "-" },
	{ PODMAN, "/HostConfig/IDMappings/UidMap", "[\"0:65535:65536\"]", "rootless" },
	{ PODMAN, "/HostConfig/IDMappings/UidMap", "[\"0:100000:1000\"]", "rootless user" },
	{ PODMAN, "/HostConfig/IDMappings/UidMap", "[\"0:100000:1001\"]", "-" },
	{ PODMAN, "/HostConfig/IDMappings/UidMap", "[\"0:100000:2000\",\"1000:200000:1\"]",
	  "rootless" },
	{ PODMAN, "/HostConfig/IDMappings/UidMap", "[\"0:100000\"]", "rootless user" },
	{ PODMAN, "/HostConfig/IDMappings/UidMap", "[\"0:4294967295:2\"]", "rootless user" },
	/* user */
	{ DOCKER, "/Config/User", "\"1000:1000\"", "-" },
	{ DOCKER, "/Config/User", "\"1:1\"", "-" },
	{ DOCKER, "/Config/User", "\"2147483647:2147483647\"", "-" },
	{ DOCKER, "/Config/User", "\"2147483648:1\"", "user" },
	{ DOCKER, "/Config/User", "\"1000\"", "user" }, /* group 0 without an entry of its own */
	{ DOCKER, "/Config/User", "\"\"", "user" },
	{ DOCKER, "/Config/User", "\":\"", "user" },
	{ DOCKER, "/Config/User", "\":1000\"", "user" },
	{ DOCKER, "/Config/User", "\"1000:01\"", "user" },
	{ DOCKER, "/Config/User", "\"1000:+1\"", "user" },
	{ DOCKER, "/Config/User", "\"1000:1000 \"", "user" },
	{ DOCKER, "/Config/User", "\"1e3:1000\"", "user" },
	{ DOCKER, "/HostConfig/GroupAdd", "[\"1000\"]", "-" },
	{ DOCKER, "/HostConfig/GroupAdd", "[\"docker\"]", "user" },
	{ PODMAN, "/Config/Umask", "\"0077\"", "-" },
	{ PODMAN, "/Config/Umask", "\"0002\"", "user" },
	{ PODMAN, "/Config/Umask", "\"0020022\"", "user" },
	/* rlimits, in either spelling */
	{ DOCKER, "/HostConfig/Ulimits", "null", "-" },
	{ DOCKER, "/HostConfig/Ulimits", "[{\"Name\":\"nofile\",\"Soft\":65536,\"Hard\":65536}]",
	  "-" },
	{ DOCKER, "/HostConfig/Ulimits", "[{\"Name\":\"nofile\",\"Soft\":1,\"Hard\":65537}]",
	  "rlimits" },
	{ DOCKER, "/HostConfig/Ulimits", "[{\"Name\":\"nofile\",\"Soft\":2,\"Hard\":1}]",
	  "rlimits" },
	{ DOCKER, "/HostConfig/Ulimits", "[{\"Name\":\"nofile\",\"Soft\":1}]",
	  "rlimits missing_field" },
	{ PODMAN, "/HostConfig/Ulimits", "[{\"Name\":\"RLIMIT_CORE\",\"Soft\":0,\"Hard\":0}]",
	  "-" },
	{ PODMAN, "/HostConfig/Ulimits", "[{\"Name\":\"RLIMIT_CORE\",\"Soft\":-1,\"Hard\":-1}]",
	  "rlimits" },
	{ PODMAN, "/HostConfig/Ulimits", "[{\"Name\":\"memlock\",\"Soft\":0,\"Hard\":0}]",
	  "rlimits" },
	/* lsm */
	{ PODMAN, "/AppArmorProfile", "\"containers-default-0.50.1\"", "-" },
	{ PODMAN, "/MountLabel", "\"system_u:object_r:container_file_t:s0:c1,c2\"", "-" },
	{ PODMAN, "/MountLabel", "\"system_u:object_r:etc_t:s0\"", "lsm" },
	/* root, devices, sysctl, paths */
	{ DOCKER, "/HostConfig/Privileged", "true", "privileged" },
	{ DOCKER, "/HostConfig/ReadonlyRootfs", "false", "readonly_rootfs" },
	{ DOCKER, "/HostConfig/DeviceRequests", "[{}]", "devices" },
	{ DOCKER, "/HostConfig/DeviceCgroupRules", "[\"c 1:5 rwm\"]", "-" },
	{ DOCKER, "/HostConfig/DeviceCgroupRules", "[\"b 8:0 r\"]", "devices" },
	{ DOCKER, "/HostConfig/DeviceCgroupRules", "[\"c 1:5 rwm x\"]", "devices" },
	{ DOCKER, "/HostConfig/Sysctls", "{\"net.ipv4.ping_group_range\":\"0 0\"}", "-" },
	{ DOCKER, "/HostConfig/Sysctls", "{\"net.ipv4.ip_forward\":\"1\"}", "sysctl" },
	{ DOCKER, "/HostConfig/MaskedPaths/-", "\"/proc/interrupts\"", "-" },
	{ DOCKER, "/HostConfig/MaskedPaths", "null", "masked_paths" },
	{ DOCKER, "/HostConfig/ReadonlyPaths", "null", "masked_paths" },
	/* tmpfs */
	{ DOCKER, "/HostConfig/Tmpfs", "{\"/tmp\":\"size=64m\",\"/run\":\"size=1m\"}", "-" },
	{ PODMAN, "/HostConfig/Tmpfs", "{\"/tmp\":\"size=64m\",\"/run\":\"size=1m\"}", "tmpfs" },
	{ DOCKER, "/HostConfig/Tmpfs", "{\"/tmp\":\"size=64m,exec\",\"/run\":\"size=1m\"}",
	  "tmpfs" },
	{ DOCKER, "/HostConfig/Tmpfs", "{\"/tmp\":\"size=64m,suid\",\"/run\":\"size=1m\"}",
	  "tmpfs" },
	{ DOCKER, "/HostConfig/Tmpfs", "{\"/tmp\":\"size=0\",\"/run\":\"size=1m\"}", "tmpfs" },
	{ DOCKER, "/HostConfig/Tmpfs", "{\"/tmp\":\"size=50%\",\"/run\":\"size=1m\"}", "tmpfs" },
	{ DOCKER, "/HostConfig/Tmpfs", "{\"/tmp\":\"size=1m,size=9m\",\"/run\":\"size=1m\"}",
	  "tmpfs" },
	{ DOCKER, "/HostConfig/Tmpfs", "{\"/tmp\":\"size=1m,mode=1777\",\"/run\":\"size=1m\"}",
	  "-" },
	{ DOCKER, "/HostConfig/Tmpfs", "{\"/tmp\":\"size=1m,mode=4777\",\"/run\":\"size=1m\"}",
	  "tmpfs" },
	{ DOCKER, "/HostConfig/Tmpfs", "{\"/tmp\":\"size=1g\",\"/run\":\"size=1k\"}", "tmpfs" },
	{ DOCKER, "/HostConfig/Tmpfs", NULL, "tmpfs" },
	{ PODMAN, "/HostConfig/Tmpfs", NULL, "tmpfs missing_field" },
	/* mounts */
	{ DOCKER, "/HostConfig/Binds/-", "\"vol:/data\"", "mounts" },
	{ DOCKER, "/HostConfig/Binds/-", "\"/srv\"", "mounts" },
	{ DOCKER, "/HostConfig/Binds/-", "\"/run/docker.sock:/workspace/s\"",
	  "mounts engine_socket" },
	{ DOCKER, "/HostConfig/Binds", "null", "mounts" },
	{ DOCKER, "/HostConfig/Binds/0", NULL, "mounts" }, /* Mounts shows it, Binds does not */
	{ DOCKER, "/Mounts", "[]", "mounts missing_field" },
	{ DOCKER, "/Mounts/0/RW", "false", "-" },
	{ DOCKER, "/Mounts/0/RW", NULL, "mounts missing_field" },
	{ DOCKER, "/Mounts/0/Propagation", "\"rshared\"", "propagation" },
	{ DOCKER, "/Mounts/0/Propagation", "\"\"", "propagation" },
	{ DOCKER, "/Mounts/0/Mode", "\"rw,z\"", "-" },
	{ DOCKER, "/Mounts/0/Mode", "\"rshared\"", "mounts propagation" },
	{ DOCKER, "/Mounts/0/Type", "\"volume\"", "mounts" },
	{ DOCKER, "/Mounts/0/Destination", "\"/workspace/\"", "mounts missing_field" },
	{ DOCKER, "/HostConfig/Mounts",
	  "[{\"Type\":\"bind\",\"Source\":\"" WS "\",\"Target\":\"/workspace\"}]", "-" },
	{ DOCKER, "/HostConfig/Mounts",
	  "[{\"Type\":\"bind\",\"Source\":\"" WS "\",\"Target\":\"/workspace\","
	  "\"BindOptions\":{\"Propagation\":\"rshared\"}}]",
	  "propagation" },
	{ DOCKER, "/HostConfig/Mounts", "[{\"Type\":\"volume\",\"Target\":\"/v\"}]", "mounts" },
	{ PODMAN, "/Mounts/0/Options", "[\"rbind\",\"nosuid\"]", "mounts" },
	{ PODMAN, "/Mounts/0/Options", "[\"rbind\",\"nosuid\",\"nodev\",\"suid\"]", "mounts" },
	{ PODMAN, "/Mounts/0/SubPath", "\"x\"", "mounts" },
	{ PODMAN, "/HostConfig/ShmSize", "1073741825", "mounts" },
	{ PODMAN, "/Config/WorkingDir", "\"/proc/self/fd/8\"", "mounts" },
	/* digest */
	{ PODMAN, "/Rootfs", "\"/srv/rootfs\"", "digest" },
	{ DOCKER, "/ImageManifestDescriptor",
	  "{\"digest\":\"" DIGEST
	  "\",\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\"}",
	  "-" },
	{ DOCKER, "/ImageManifestDescriptor",
	  "{\"digest\":\"" DIGEST "\",\"mediaType\":\"application/vnd.oci.image.index.v1+json\"}",
	  "digest" },
	{ DOCKER, "/ImageManifestDescriptor",
	  "{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\"}",
	  "digest missing_field" },
	/* environment, annotations, labels */
	{ DOCKER, "/Config/Env", "[\"LD_PRELOAD=/x\"]", "hooks" },
	{ DOCKER, "/Config/Env", "[\"NVIDIA_VISIBLE_DEVICES=all\"]", "devices hooks" },
	{ DOCKER, "/HostConfig/Annotations", "{\"my.note\":\"x\"}", "annotations" },
	{ DOCKER, "/HostConfig/Annotations", "{\"io.aqe.agent-id\":\"x\"}", "-" },
	{ DOCKER, "/Config/Labels", "{\"maintainer\":\"x\"}", "-" },
	{ DOCKER, "/Config/Labels", "{\"run.oci.handler\":\"wasm\"}", "annotations" },
	/* images */
	{ IMAGE, "/Config/User", "\"1000\"", "-" },
	{ IMAGE, "/Config/User", "\"0:1000\"", "user" },
	{ IMAGE, "/Config/Volumes", "{\"/workspace\":{}}", "-" }, /* the policy's mount */
	{ IMAGE, "/Config/Volumes", "{\"/data\":{}}", "readonly_rootfs mounts" },
	{ IMAGE, "/Config/OnBuild", "[\"RUN x\"]", "hooks" },
	{ IMAGE, "/Digest", "\"" IMAGE_ID "\"", "digest" },
	{ IMAGE, "/ManifestType", NULL, "digest missing_field" },
	{ IMAGE, "/Architecture", NULL, "digest missing_field" },
	{ DOCKER_IMAGE, "/Config/User", "\"1000:1000\"", "-" },
	/* info */
	{ PODMAN_INFO, "/host/cgroupVersion", "\"v1\"", "pids_limit memory_limit cpu_limit" },
	{ PODMAN_INFO, "/host/security/seccompEnabled", NULL, "seccomp missing_field" },
	{ DOCKER_INFO, "/SecurityOptions", "[\"name=rootless\"]", "seccomp" },
	{ DOCKER_INFO, "/SecurityOptions", "[\"name=seccomp,profile=builtin\"]", "rootless" },
	{ DOCKER_INFO, "/SecurityOptions", "[\"name=seccomp,profile=/etc/x.json\",\"name=userns\"]",
	  "seccomp" },
	{ DOCKER_INFO, "/CgroupVersion", "\"1\"", "pids_limit memory_limit cpu_limit" },
};

/* As POLICY.md says: docker documents come with a rootless engine's info. */
static void set_info(const char *file)
{
	ctx.info_rootless =
		strncmp(file, DOCKER, strlen(INSPECT "docker")) == 0 || strcmp(file, ROOTLESS) == 0;
}

START_TEST(hard_verify_inspect__one_edit)
{
	const struct edit *e = &edits[_i];
	struct aqe_json *root = in_parse_file(e->file);

	set_info(e->file);
	if (strcmp(e->file, DOCKER_IMAGE) != 0)
		ck_assert_str_eq(in_judge(root), "-");
	rw_edit(in_object(root), e->pointer, e->text);
	ck_assert_msg(strcmp(in_judge(root), e->failed) == 0, "%s %s: '%s', wanted '%s'",
		      e->pointer, e->text ? e->text : "(absent)", in_judge(root), e->failed);
}
END_TEST

/* Every member that is judged fails when it is gone or has another type. */
static const struct {
	const char *file, *pointer;
	enum hard_prop prop;
} members[] = {
	{ PODMAN, "/HostConfig/Privileged", HARD_PRIVILEGED },
	{ DOCKER, "/HostConfig/Privileged", HARD_PRIVILEGED },
	{ DOCKER, "/HostConfig/SecurityOpt", HARD_NO_NEW_PRIVILEGES },
	{ DOCKER, "/HostConfig/ReadonlyRootfs", HARD_READONLY_ROOTFS },
	{ DOCKER, "/HostConfig/PidsLimit", HARD_PIDS_LIMIT },
	{ DOCKER, "/HostConfig/Memory", HARD_MEMORY_LIMIT },
	{ DOCKER, "/HostConfig/MemorySwap", HARD_MEMORY_LIMIT },
	{ DOCKER, "/HostConfig/NanoCpus", HARD_CPU_LIMIT },
	{ DOCKER, "/HostConfig/CpuQuota", HARD_CPU_LIMIT },
	{ DOCKER, "/HostConfig/CpuPeriod", HARD_CPU_LIMIT },
	{ DOCKER, "/HostConfig/NetworkMode", HARD_NETWORK },
	{ DOCKER, "/HostConfig/PidMode", HARD_NAMESPACES },
	{ DOCKER, "/HostConfig/IpcMode", HARD_NAMESPACES },
	{ DOCKER, "/HostConfig/UTSMode", HARD_NAMESPACES },
	{ DOCKER, "/HostConfig/CgroupnsMode", HARD_NAMESPACES },
	{ PODMAN, "/HostConfig/CgroupMode", HARD_NAMESPACES },
	{ DOCKER, "/HostConfig/UsernsMode", HARD_ROOTLESS },
	{ DOCKER, "/HostConfig/Devices", HARD_DEVICES },
	{ DOCKER, "/HostConfig/Ulimits", HARD_RLIMITS },
	{ DOCKER, "/HostConfig/MaskedPaths", HARD_MASKED_PATHS },
	{ DOCKER, "/HostConfig/ReadonlyPaths", HARD_MASKED_PATHS },
	{ DOCKER, "/HostConfig/Binds", HARD_MOUNTS },
	{ DOCKER, "/Mounts", HARD_MOUNTS },
	{ DOCKER, "/Config/User", HARD_USER },
	{ DOCKER, "/AppArmorProfile", HARD_LSM },
	{ DOCKER, "/ProcessLabel", HARD_LSM },
	{ DOCKER, "/MountLabel", HARD_LSM },
	{ DOCKER, "/Image", HARD_DIGEST },
	{ PODMAN, "/ImageDigest", HARD_DIGEST },
	{ IMAGE, "/Digest", HARD_DIGEST },
	{ IMAGE, "/Config/User", HARD_USER },
};

START_TEST(hard_verify_inspect__each_member)
{
	struct aqe_json *root = in_parse_file(members[_i].file);

	set_info(members[_i].file);
	rw_edit(in_object(root), members[_i].pointer, "7.5");
	ck_assert_str_eq(in_judge(root), "malformed");
	rw_edit(in_object(root), members[_i].pointer, NULL);
	(void)in_judge(root);
	ck_assert_int_eq(report.result[members[_i].prop], HARD_FAIL);
	ck_assert_int_eq(report.result[HARD_MISSING_FIELD], HARD_FAIL);
}
END_TEST

START_TEST(hard_verify_inspect__docker_needs_info)
{
	struct aqe_json *root = in_parse_file(DOCKER);

	ck_assert_str_eq(in_judge(root), "rootless");
	ctx.info_rootless = true;
	ctx.info_no_filter = true;
	ck_assert_str_eq(in_judge(root), "seccomp");
}
END_TEST

/* Under a rootless engine keep-id maps the container's user to whoever runs the engine. */
START_TEST(hard_verify_inspect__keep_id)
{
	struct aqe_json *root = in_parse_file(PODMAN);

	ctx.info_rootless = true;
	rw_edit(in_object(root), "/HostConfig/IDMappings/UidMap",
		"[\"0:1:1000\",\"1000:0:1\",\"1001:1001:64536\"]");
	ck_assert_str_eq(in_judge(root), "rootless user");
	rw_edit(in_object(root), "/Config/User", "\"1001:1000\"");
	ck_assert_str_eq(in_judge(root), "-");
}
END_TEST

START_TEST(hard_verify_inspect__image_digest_option)
{
	struct aqe_json *root = in_parse_file(PODMAN);

	ctx.image_digest = DIGEST;
	ck_assert_str_eq(in_judge(root), "-");
	ctx.image_digest = IMAGE_ID; /* podman writes the id without its algorithm */
	ck_assert_str_eq(in_judge(root), "-");
	ctx.image_digest = policy->images[1].image_id;
	ck_assert_str_eq(in_judge(root), "digest");
}
END_TEST

/* What cannot be proved from the document is marked, and nothing else. */
START_TEST(hard_verify_inspect__declared)
{
	ck_assert_str_eq(in_judge(in_parse_file(PODMAN)), "-");
	ck_assert_ptr_nonnull(report.declared[HARD_SECCOMP]);
	ck_assert_ptr_nonnull(report.declared[HARD_MASKED_PATHS]);
	ck_assert_ptr_nonnull(report.declared[HARD_SYSCTL]);
	ck_assert_ptr_null(report.declared[HARD_CAPABILITIES]);
	ck_assert_ptr_null(report.declared[HARD_DIGEST]);
	ck_assert_str_eq(in_judge(in_parse_file(PODMAN_INFO)), "-");
	ck_assert_ptr_nonnull(report.declared[HARD_MOUNTS]);
	ck_assert_ptr_null(report.declared[HARD_ROOTLESS]);
}
END_TEST

START_TEST(hard_verify_inspect__foreign_is_unknown)
{
	const struct aqe_json *object = rw_value("{}");

	ck_assert_fault(hard_verify_inspect(&ctx, OCI_INSPECT_FOREIGN, object, &report, &err),
			AQE_E_UNKNOWN, err, "not judged");
	ck_assert_fault(hard_verify_inspect(&ctx, OCI_INSPECT_NONE, object, &report, &err),
			AQE_E_UNKNOWN, err, "not judged");
}
END_TEST

/* Everything is missing, nothing crashes, and every property that is shown fails. */
START_TEST(hard_verify_inspect__empty_container)
{
	struct aqe_json *root = rw_value("[{\"HostConfig\":{},\"Pod\":\"\"}]");

	(void)in_judge(root);
	ck_assert_int_eq(report.result[HARD_PRIVILEGED], HARD_FAIL);
	ck_assert_int_eq(report.result[HARD_MOUNTS], HARD_FAIL);
	ck_assert_int_eq(report.result[HARD_MISSING_FIELD], HARD_FAIL);
	ck_assert(!hard_report_ok(&report));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening/inspect");
	TCase *t = tcase_create("inspect");

	tcase_add_checked_fixture(t, in_setup, rw_teardown);
	tcase_add_loop_test(t, hard_verify_inspect__one_edit, 0, AQE_COUNT(edits));
	tcase_add_loop_test(t, hard_verify_inspect__each_member, 0, AQE_COUNT(members));
	tcase_add_test(t, hard_verify_inspect__docker_needs_info);
	tcase_add_test(t, hard_verify_inspect__keep_id);
	tcase_add_test(t, hard_verify_inspect__image_digest_option);
	tcase_add_test(t, hard_verify_inspect__declared);
	tcase_add_test(t, hard_verify_inspect__foreign_is_unknown);
	tcase_add_test(t, hard_verify_inspect__empty_container);
	suite_add_tcase(s, t);
	return unit_run(s);
}
