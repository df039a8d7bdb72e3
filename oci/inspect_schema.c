/* SPDX-License-Identifier: MIT */
/* Members as podman 4.3 to 6.0 and docker 20.10 to 29 write them: from documents of podman 4.3.1
 * and docker 20.10.24, and from the type definitions in podman's libpod/define and moby's api/types
 * (read November 2026). */
#include "oci/inspect_schema.h"

#include "shim/core/text.h"

#define P           OCI_BY_PODMAN
#define D           OCI_BY_DOCKER
#define BOTH        (OCI_BY_PODMAN | OCI_BY_DOCKER)
#define ROWS(table) .rows = (table), .n_rows = AQE_COUNT(table)

static const struct oci_inspect_type any = { .what = "any value" };
static const struct oci_inspect_type str = { .is = OCI_IS_STR, .what = "a string" };
static const struct oci_inspect_type boolean = { .is = OCI_IS_BOOL, .what = "true or false" };
static const struct oci_inspect_type num = { .is = OCI_IS_INT, .what = "a whole number" };
static const struct oci_inspect_type list = { .is = OCI_IS_LIST, .what = "a list" };
static const struct oci_inspect_type object = { .is = OCI_IS_OBJ, .what = "an object" };
static const struct oci_inspect_type strs = { .is = OCI_IS_LIST,
					      .what = "a list of strings",
					      .elem = &str };
static const struct oci_inspect_type nums = { .is = OCI_IS_LIST,
					      .what = "a list of numbers",
					      .elem = &num };
static const struct oci_inspect_type str_map = { .is = OCI_IS_OBJ,
						 .what = "an object of strings",
						 .elem = &str };
/* podman 4 writes one string or number where later versions write what docker does */
static const struct oci_inspect_type str_or_strs = { .is = OCI_IS_STR | OCI_IS_LIST,
						     .what = "a list of strings",
						     .elem = &str };
static const struct oci_inspect_type str_or_num = { .is = OCI_IS_STR | OCI_IS_INT,
						    .what = "a signal's name or number" };

/* ---- container: HostConfig ---- */

static const struct oci_inspect_row ulimit_rows[] = {
	{ "Name", &str, BOTH, 0 },
	{ "Soft", &num, BOTH, 0 },
	{ "Hard", &num, BOTH, 0 },
};
static const struct oci_inspect_type ulimit = { .is = OCI_IS_OBJ,
						.what = "an object",
						ROWS(ulimit_rows) };
static const struct oci_inspect_type ulimits = { .is = OCI_IS_LIST,
						 .what = "a list of limits",
						 .elem = &ulimit };
static const struct oci_inspect_row mapping_rows[] = {
	{ "UidMap", &strs, P, P },
	{ "GidMap", &strs, P, P },
};
static const struct oci_inspect_type mappings = { .is = OCI_IS_OBJ,
						  .what = "an object",
						  ROWS(mapping_rows) };
static const struct oci_inspect_row device_rows[] = {
	{ "PathOnHost", &str, BOTH, 0 },
	{ "PathInContainer", &str, BOTH, 0 },
	{ "CgroupPermissions", &str, BOTH, 0 },
};
static const struct oci_inspect_type device = { .is = OCI_IS_OBJ,
						.what = "an object",
						ROWS(device_rows) };
static const struct oci_inspect_type devices = { .is = OCI_IS_LIST,
						 .what = "a list of devices",
						 .elem = &device };
static const struct oci_inspect_row bind_option_rows[] = {
	{ "Propagation", &str, D, 0 },
	{ "NonRecursive", &boolean, D, 0 },
	{ "CreateMountpoint", &boolean, D, 0 },
	{ "ReadOnlyNonRecursive", &boolean, D, 0 },
	{ "ReadOnlyForceRecursive", &boolean, D, 0 },
};
static const struct oci_inspect_type bind_options = { .is = OCI_IS_OBJ,
						      .what = "an object",
						      ROWS(bind_option_rows) };
static const struct oci_inspect_row tmpfs_option_rows[] = {
	{ "SizeBytes", &num, D, 0 },
	{ "Mode", &num, D, 0 },
	{ "Options", &list, D, D },
};
static const struct oci_inspect_type tmpfs_options = { .is = OCI_IS_OBJ,
						       .what = "an object",
						       ROWS(tmpfs_option_rows) };
/* the mount API: `docker run --mount` */
static const struct oci_inspect_row api_mount_rows[] = {
	{ "Type", &str, D, 0 },
	{ "Source", &str, D, 0 },
	{ "Target", &str, D, 0 },
	{ "ReadOnly", &boolean, D, 0 },
	{ "Consistency", &str, D, 0 },
	{ "BindOptions", &bind_options, D, D },
	{ "VolumeOptions", &object, D, D },
	{ "ImageOptions", &object, D, D },
	{ "TmpfsOptions", &tmpfs_options, D, D },
	{ "ClusterOptions", &object, D, D },
};
static const struct oci_inspect_type api_mount = { .is = OCI_IS_OBJ,
						   .what = "an object",
						   ROWS(api_mount_rows) };
static const struct oci_inspect_type api_mounts = { .is = OCI_IS_LIST,
						    .what = "a list of mounts",
						    .elem = &api_mount };

static const struct oci_inspect_row host_rows[] = {
	{ "Annotations", &str_map, BOTH, BOTH }, /* docker 25, podman 5 */
	{ "AutoRemove", &boolean, BOTH, 0 },
	{ "AutoRemoveImage", &boolean, P, 0 }, /* podman 5.5 */
	{ "Binds", &strs, BOTH, D },
	{ "BlkioDeviceReadBps", &list, BOTH, BOTH },
	{ "BlkioDeviceReadIOps", &list, BOTH, BOTH },
	{ "BlkioDeviceWriteBps", &list, BOTH, BOTH },
	{ "BlkioDeviceWriteIOps", &list, BOTH, BOTH },
	{ "BlkioWeight", &num, BOTH, 0 },
	{ "BlkioWeightDevice", &list, BOTH, BOTH },
	{ "CapAdd", &strs, BOTH, BOTH },
	{ "CapDrop", &strs, BOTH, BOTH },
	{ "Cgroup", &str, BOTH, 0 },
	{ "CgroupConf", &str_map, P, P },
	{ "CgroupManager", &str, P, 0 },
	{ "CgroupMode", &str, P, 0 },
	{ "CgroupParent", &str, BOTH, 0 },
	{ "CgroupnsMode", &str, D, 0 },
	{ "Cgroups", &str, P, 0 },
	{ "ConsoleSize", &nums, BOTH, P },
	{ "ContainerIDFile", &str, BOTH, 0 },
	{ "CpuCount", &num, BOTH, 0 },
	{ "CpuPercent", &num, BOTH, 0 },
	{ "CpuPeriod", &num, BOTH, 0 },
	{ "CpuQuota", &num, BOTH, 0 },
	{ "CpuRealtimePeriod", &num, BOTH, 0 },
	{ "CpuRealtimeRuntime", &num, BOTH, 0 },
	{ "CpuShares", &num, BOTH, 0 },
	{ "CpusetCpus", &str, BOTH, 0 },
	{ "CpusetMems", &str, BOTH, 0 },
	{ "DeviceCgroupRules", &strs, D, D },
	{ "DeviceRequests", &list, D, D },
	{ "Devices", &devices, BOTH, BOTH },
	{ "DiskQuota", &num, P, 0 },
	{ "Dns", &strs, BOTH, BOTH },
	{ "DnsOptions", &strs, BOTH, BOTH },
	{ "DnsSearch", &strs, BOTH, BOTH },
	{ "ExtraHosts", &strs, BOTH, BOTH },
	{ "GroupAdd", &strs, BOTH, BOTH },
	{ "HostsFile", &str, P, 0 }, /* podman 5.4 */
	{ "IDMappings", &mappings, P, 0 },
	{ "IOMaximumBandwidth", &num, BOTH, 0 },
	{ "IOMaximumIOps", &num, BOTH, 0 },
	{ "Init", &boolean, BOTH, 0 },
	{ "IntelRdtClosID", &str, P, 0 },
	{ "IpcMode", &str, BOTH, 0 },
	{ "Isolation", &str, BOTH, 0 },
	{ "KernelMemory", &num, BOTH, 0 },
	{ "KernelMemoryTCP", &num, D, 0 },
	{ "Links", &strs, BOTH, BOTH },
	{ "LogConfig", &object, BOTH, P },
	{ "MaskedPaths", &strs, D, D },
	{ "Memory", &num, BOTH, 0 },
	{ "MemoryReservation", &num, BOTH, 0 },
	{ "MemorySwap", &num, BOTH, 0 },
	{ "MemorySwappiness", &num, BOTH, BOTH },
	{ "Mounts", &api_mounts, D, D },
	{ "NanoCpus", &num, BOTH, 0 },
	{ "NetworkMode", &str, BOTH, 0 },
	{ "OomKillDisable", &boolean, BOTH, D }, /* null on cgroup v2 */
	{ "OomScoreAdj", &num, BOTH, 0 },
	{ "PidMode", &str, BOTH, 0 },
	{ "PidsLimit", &num, BOTH, D },
	{ "PortBindings", &object, BOTH, BOTH },
	{ "Privileged", &boolean, BOTH, 0 },
	{ "PublishAllPorts", &boolean, BOTH, 0 },
	{ "ReadonlyPaths", &strs, D, D },
	{ "ReadonlyRootfs", &boolean, BOTH, 0 },
	{ "RestartPolicy", &object, BOTH, P },
	{ "Runtime", &str, BOTH, 0 },
	{ "SecurityOpt", &strs, BOTH, BOTH },
	{ "ShmSize", &num, BOTH, 0 },
	{ "StorageOpt", &str_map, D, D },
	{ "Sysctls", &str_map, D, D },
	{ "Tmpfs", &str_map, BOTH, BOTH },
	{ "UTSMode", &str, BOTH, 0 },
	{ "Ulimits", &ulimits, BOTH, BOTH },
	{ "UsernsMode", &str, BOTH, 0 },
	{ "VolumeDriver", &str, BOTH, 0 },
	{ "VolumesFrom", &strs, BOTH, BOTH },
};
static const struct oci_inspect_type host_config = { .is = OCI_IS_OBJ,
						     .what = "an object",
						     ROWS(host_rows) };

/* ---- container: Config ---- */

static const struct oci_inspect_row config_rows[] = {
	{ "Annotations", &str_map, P, P },
	{ "ArgsEscaped", &boolean, D, 0 },
	{ "AttachStderr", &boolean, BOTH, 0 },
	{ "AttachStdin", &boolean, BOTH, 0 },
	{ "AttachStdout", &boolean, BOTH, 0 },
	{ "ChrootDirs", &strs, P, P },
	{ "Cmd", &strs, BOTH, BOTH },
	{ "CreateCommand", &strs, P, P },
	{ "Domainname", &str, BOTH, 0 },
	{ "Entrypoint", &str_or_strs, BOTH, BOTH },
	{ "Env", &strs, BOTH, BOTH },
	{ "ExposedPorts", &object, BOTH, BOTH },
	{ "HealthLogDestination", &str, P, 0 },
	{ "Healthcheck", &object, BOTH, 0 },
	{ "HealthcheckMaxLogCount", &num, P, 0 },
	{ "HealthcheckMaxLogSize", &num, P, 0 },
	{ "HealthcheckOnFailureAction", &str, P, 0 },
	{ "Hostname", &str, BOTH, 0 },
	{ "Image", &str, BOTH, 0 },
	{ "Labels", &str_map, BOTH, BOTH },
	{ "MacAddress", &str, D, 0 },
	{ "NetworkDisabled", &boolean, D, 0 },
	{ "OnBuild", &str_or_strs, BOTH, BOTH },
	{ "OpenStdin", &boolean, BOTH, 0 },
	{ "Passwd", &boolean, P, 0 },
	{ "Secrets", &list, P, P },
	{ "Shell", &strs, D, D },
	{ "StartupHealthCheck", &object, P, 0 },
	{ "StdinOnce", &boolean, BOTH, 0 },
	{ "StopSignal", &str_or_num, BOTH, 0 },
	{ "StopTimeout", &num, BOTH, D },
	{ "SystemdMode", &boolean, P, 0 },
	{ "Timeout", &num, P, 0 },
	{ "Timezone", &str, P, 0 },
	{ "Tty", &boolean, BOTH, 0 },
	{ "Umask", &str, P, 0 },
	{ "User", &str, BOTH, 0 },
	{ "Volumes", &object, BOTH, BOTH },
	{ "WorkingDir", &str, BOTH, 0 },
	{ "sdNotifyMode", &str, P, 0 },
	{ "sdNotifySocket", &str, P, 0 },
};
static const struct oci_inspect_type config = { .is = OCI_IS_OBJ,
						.what = "an object",
						ROWS(config_rows) };

/* ---- container: network, mounts, the top ---- */

static const struct oci_inspect_row endpoint_rows[] = {
	{ "AdditionalMACAddresses", &strs, P, P },
	{ "Aliases", &strs, BOTH, BOTH },
	{ "DNSNames", &strs, BOTH, BOTH }, /* docker 25, podman 5.3 */
	{ "DriverOpts", &str_map, BOTH, BOTH },
	{ "EndpointID", &str, BOTH, 0 },
	{ "Gateway", &str, BOTH, 0 },
	{ "GlobalIPv6Address", &str, BOTH, 0 },
	{ "GlobalIPv6PrefixLen", &num, BOTH, 0 },
	{ "GwPriority", &num, D, 0 }, /* docker 28 */
	{ "IPAMConfig", &object, BOTH, BOTH },
	{ "IPAddress", &str, BOTH, 0 },
	{ "IPPrefixLen", &num, BOTH, 0 },
	{ "IPv6Gateway", &str, BOTH, 0 },
	{ "Links", &strs, BOTH, BOTH },
	{ "MacAddress", &str, BOTH, 0 },
	{ "NetworkID", &str, BOTH, 0 },
	{ "SecondaryIPAddresses", &list, P, P },
	{ "SecondaryIPv6Addresses", &list, P, P },
};
static const struct oci_inspect_type endpoint = { .is = OCI_IS_OBJ,
						  .what = "an object",
						  ROWS(endpoint_rows) };
static const struct oci_inspect_type networks = { .is = OCI_IS_OBJ,
						  .what = "an object of networks",
						  .elem = &endpoint };

/* docker 29 leaves out all but SandboxID, SandboxKey, Ports and Networks */
static const struct oci_inspect_row network_rows[] = {
	{ "AdditionalMACAddresses", &strs, P, P },
	{ "Bridge", &str, BOTH, 0 },
	{ "EndpointID", &str, BOTH, 0 },
	{ "Gateway", &str, BOTH, 0 },
	{ "GlobalIPv6Address", &str, BOTH, 0 },
	{ "GlobalIPv6PrefixLen", &num, BOTH, 0 },
	{ "HairpinMode", &boolean, BOTH, 0 },
	{ "IPAddress", &str, BOTH, 0 },
	{ "IPPrefixLen", &num, BOTH, 0 },
	{ "IPv6Gateway", &str, BOTH, 0 },
	{ "LinkLocalIPv6Address", &str, BOTH, 0 },
	{ "LinkLocalIPv6PrefixLen", &num, BOTH, 0 },
	{ "MacAddress", &str, BOTH, 0 },
	{ "Networks", &networks, BOTH, BOTH },
	{ "Ports", &object, BOTH, BOTH },
	{ "SandboxID", &str, BOTH, 0 },
	{ "SandboxKey", &str, BOTH, 0 },
	{ "SecondaryIPAddresses", &list, BOTH, BOTH },
	{ "SecondaryIPv6Addresses", &list, BOTH, BOTH },
};
static const struct oci_inspect_type network_settings = { .is = OCI_IS_OBJ,
							  .what = "an object",
							  ROWS(network_rows) };

static const struct oci_inspect_row mount_rows[] = {
	{ "Destination", &str, BOTH, 0 }, { "Driver", &str, BOTH, 0 },
	{ "Mode", &str, BOTH, 0 },        { "Name", &str, BOTH, 0 },
	{ "Options", &strs, P, P },       { "Propagation", &str, BOTH, 0 },
	{ "RW", &boolean, BOTH, 0 },      { "Source", &str, BOTH, 0 },
	{ "SubPath", &str, P, 0 },        { "Type", &str, BOTH, 0 },
};
static const struct oci_inspect_type mount = { .is = OCI_IS_OBJ,
					       .what = "an object",
					       ROWS(mount_rows) };
static const struct oci_inspect_type mounts = { .is = OCI_IS_LIST,
						.what = "a list of mounts",
						.elem = &mount };
static const struct oci_inspect_row descriptor_rows[] = {
	{ "annotations", &str_map, D, D },
	{ "artifactType", &str, D, 0 },
	{ "data", &any, D, D },
	{ "digest", &str, D, 0 },
	{ "mediaType", &str, D, 0 },
	{ "platform", &object, D, D },
	{ "size", &num, D, 0 },
	{ "urls", &strs, D, D },
};
static const struct oci_inspect_type descriptor = { .is = OCI_IS_OBJ,
						    .what = "an object",
						    ROWS(descriptor_rows) };

static const struct oci_inspect_row container_rows[] = {
	{ "AppArmorProfile", &str, BOTH, 0 },
	{ "Args", &strs, BOTH, BOTH },
	{ "BoundingCaps", &strs, P, P },
	{ "Config", &config, BOTH, 0 },
	{ "ConmonPidFile", &str, P, 0 },
	{ "Created", &str, BOTH, 0 },
	{ "Dependencies", &strs, P, P },
	{ "Driver", &str, BOTH, 0 },
	{ "EffectiveCaps", &strs, P, P },
	{ "ExecIDs", &strs, BOTH, BOTH },
	{ "GraphDriver", &object, BOTH, BOTH },
	{ "HostConfig", &host_config, BOTH, 0 },
	{ "HostnamePath", &str, BOTH, 0 },
	{ "HostsPath", &str, BOTH, 0 },
	{ "Id", &str, BOTH, 0 },
	{ "Image", &str, BOTH, 0 },
	{ "ImageDigest", &str, P, 0 },
	{ "ImageManifestDescriptor", &descriptor, D, D }, /* docker 28, containerd store */
	{ "ImageName", &str, P, 0 },
	{ "IsInfra", &boolean, P, 0 },
	{ "IsService", &boolean, P, 0 },
	{ "KubeExitCodePropagation", &str, P, 0 },
	{ "LogPath", &str, D, 0 },
	{ "MountLabel", &str, BOTH, 0 },
	{ "Mounts", &mounts, BOTH, D },
	{ "Name", &str, BOTH, 0 },
	{ "Namespace", &str, P, 0 },
	{ "NetworkSettings", &network_settings, BOTH, 0 },
	{ "OCIConfigPath", &str, P, 0 },
	{ "OCIRuntime", &str, P, 0 },
	{ "Path", &str, BOTH, 0 },
	{ "PidFile", &str, P, 0 },
	{ "Platform", &str, D, 0 },
	{ "Pod", &str, P, 0 },
	{ "ProcessLabel", &str, BOTH, 0 },
	{ "ResolvConfPath", &str, BOTH, 0 },
	{ "RestartCount", &num, BOTH, 0 },
	{ "Rootfs", &str, P, 0 },
	{ "SizeRootFs", &num, BOTH, 0 },
	{ "SizeRw", &num, BOTH, 0 },
	{ "State", &object, BOTH, 0 },
	{ "StaticDir", &str, P, 0 },
	{ "Storage", &object, D, D }, /* docker 29 */
	{ "UseImageHostname", &boolean, P, 0 },
	{ "UseImageHosts", &boolean, P, 0 },
	{ "lockNumber", &num, P, 0 },
};
static const struct oci_inspect_type container = { .is = OCI_IS_OBJ,
						   .what = "an object",
						   ROWS(container_rows) };

/* ---- image ---- */

static const struct oci_inspect_row image_rows[] = {
	{ "Annotations", &str_map, P, P },
	{ "Architecture", &str, BOTH, 0 },
	{ "Author", &str, BOTH, 0 },
	{ "Comment", &str, BOTH, 0 },
	{ "Config", &config, BOTH, D },
	{ "Container", &str, D, 0 },
	{ "ContainerConfig", &object, D, D },
	{ "Created", &str, BOTH, P },
	{ "Descriptor", &descriptor, D, D },
	{ "Digest", &str, P, 0 },
	{ "DockerVersion", &str, D, 0 },
	{ "GraphDriver", &object, BOTH, BOTH },
	{ "Healthcheck", &object, P, P },
	{ "History", &list, P, P },
	{ "Id", &str, BOTH, 0 },
	{ "Identity", &object, D, D }, /* docker 29 */
	{ "Labels", &str_map, P, P },
	{ "ManifestType", &str, P, 0 },
	{ "Manifests", &list, D, D },
	{ "Metadata", &object, D, 0 },
	{ "NamesHistory", &strs, P, P },
	{ "Os", &str, BOTH, 0 },
	{ "OsVersion", &str, D, 0 },
	{ "Parent", &str, BOTH, 0 },
	{ "RepoDigests", &strs, BOTH, BOTH },
	{ "RepoTags", &strs, BOTH, BOTH },
	{ "RootFS", &object, BOTH, P },
	{ "Size", &num, BOTH, 0 },
	{ "User", &str, P, 0 },
	{ "Variant", &str, BOTH, 0 },
	{ "Version", &str, P, 0 },
	{ "VirtualSize", &num, BOTH, 0 },
};
static const struct oci_inspect_type image = { .is = OCI_IS_OBJ,
					       .what = "an object",
					       ROWS(image_rows) };

/* ---- info: only what is judged ---- */

static const struct oci_inspect_row security_rows[] = {
	{ "rootless", &boolean, P, 0 },
	{ "seccompEnabled", &boolean, P, 0 },
	{ "apparmorEnabled", &boolean, P, 0 },
	{ "selinuxEnabled", &boolean, P, 0 },
};
static const struct oci_inspect_type security = {
	.is = OCI_IS_OBJ, .what = "an object", ROWS(security_rows), .loose = true
};
static const struct oci_inspect_row info_host_rows[] = {
	{ "cgroupVersion", &str, P, 0 },
	{ "security", &security, P, 0 },
};
static const struct oci_inspect_type info_host = {
	.is = OCI_IS_OBJ, .what = "an object", ROWS(info_host_rows), .loose = true
};
static const struct oci_inspect_row info_rows[] = {
	{ "host", &info_host, P, 0 },
	{ "CgroupVersion", &str, D, 0 },
	{ "SecurityOptions", &strs, D, 0 },
	{ "DefaultRuntime", &str, D, 0 },
};
static const struct oci_inspect_type info = {
	.is = OCI_IS_OBJ, .what = "an object", ROWS(info_rows), .loose = true
};

const struct oci_inspect_type *oci_inspect_type(enum oci_inspect_kind kind)
{
	static const struct oci_inspect_type *const types[] = {
		[OCI_INSPECT_NONE] = NULL,
		[OCI_INSPECT_PODMAN_CONTAINER] = &container,
		[OCI_INSPECT_DOCKER_CONTAINER] = &container,
		[OCI_INSPECT_PODMAN_IMAGE] = &image,
		[OCI_INSPECT_DOCKER_IMAGE] = &image,
		[OCI_INSPECT_PODMAN_INFO] = &info,
		[OCI_INSPECT_DOCKER_INFO] = &info,
		[OCI_INSPECT_FOREIGN] = NULL,
	};

	return (size_t)kind < AQE_COUNT(types) ? types[kind] : NULL;
}
