/* SPDX-License-Identifier: MIT */
#include "oci/schema.h"

#include <string.h>

#include "shim/core/text.h"

/* Member lists and integer widths are those of specs-go/config.go and schema/ of the runtime-spec,
 * versions 1.0.0 to 1.3.0. Where Go has `int` the width is the one C runtimes read it with, so
 * that both read the same number. */

#define STRING(limit)                                                \
	{                                                            \
		OCI_KIND_STRING, "a string", 0, limit, NULL, NULL, 0 \
	}
#define INT(lo, hi, text)                                 \
	{                                                 \
		OCI_KIND_INT, text, lo, hi, NULL, NULL, 0 \
	}
#define UINT(hi, text)                                    \
	{                                                 \
		OCI_KIND_UINT, text, 0, hi, NULL, NULL, 0 \
	}
#define ARRAY(of)                                                \
	{                                                        \
		OCI_KIND_ARRAY, "an array", 0, 0, &(of), NULL, 0 \
	}
#define MAP(of)                                                 \
	{                                                       \
		OCI_KIND_MAP, "an object", 0, 0, &(of), NULL, 0 \
	}
#define OBJECT(table)                                                             \
	{                                                                         \
		OCI_KIND_OBJECT, "an object", 0, 0, NULL, table, AQE_COUNT(table) \
	}
#define ROW(name, type)                            \
	{                                          \
		name, sizeof(name) - 1, &(type), 0 \
	}
#define UNUSED(name, type)                                      \
	{                                                       \
		name, sizeof(name) - 1, &(type), OCI_ROW_UNUSED \
	}

/* ---- scalars and lists of them ---- */

const struct oci_type OCI_TYPE_ENV = STRING(OCI_ARG_MAX);
static const struct oci_type T_ARG = STRING(OCI_ARG_MAX);
static const struct oci_type T_STR = STRING(OCI_STRING_MAX);
static const struct oci_type T_BOOL = { OCI_KIND_BOOL, "true or false", 0, 0, NULL, NULL, 0 };
static const struct oci_type T_I32 =
	INT(INT32_MIN, INT32_MAX, "a whole number from -2147483648 to 2147483647");
static const struct oci_type T_I64 = INT(INT64_MIN, INT64_MAX, "a whole number of 64 bits");
static const struct oci_type T_U16 = UINT(UINT16_MAX, "a whole number from 0 to 65535");
static const struct oci_type T_U32 = UINT(UINT32_MAX, "a whole number from 0 to 4294967295");
static const struct oci_type T_U64 =
	UINT(UINT64_MAX, "a whole number from 0 to 18446744073709551615");
static const struct oci_type T_FOREIGN = { OCI_KIND_FOREIGN, "an object", 0, 0, NULL, NULL, 0 };

static const struct oci_type T_STRS = ARRAY(T_STR);
static const struct oci_type T_ARGS = ARRAY(T_ARG);
static const struct oci_type T_ENVS = ARRAY(OCI_TYPE_ENV);
static const struct oci_type T_U32S = ARRAY(T_U32);
static const struct oci_type T_STRMAP = MAP(T_STR);

/* ---- process ---- */

static const struct oci_row R_BOX[] = {
	ROW("height", T_U64),
	ROW("width", T_U64),
};
static const struct oci_type T_BOX = OBJECT(R_BOX);

static const struct oci_row R_USER[] = {
	ROW("uid", T_U32),         ROW("gid", T_U32),
	ROW("umask", T_U32),       ROW("additionalGids", T_U32S),
	UNUSED("username", T_STR),
};
static const struct oci_type T_USER = OBJECT(R_USER);

static const struct oci_row R_CAPS[] = {
	ROW("bounding", T_STRS),  ROW("effective", T_STRS), ROW("inheritable", T_STRS),
	ROW("permitted", T_STRS), ROW("ambient", T_STRS),
};
static const struct oci_type T_CAPS = OBJECT(R_CAPS);

static const struct oci_row R_RLIMIT[] = {
	ROW("type", T_STR),
	ROW("hard", T_U64),
	ROW("soft", T_U64),
};
static const struct oci_type T_RLIMIT = OBJECT(R_RLIMIT);
static const struct oci_type T_RLIMITS = ARRAY(T_RLIMIT);

static const struct oci_row R_SCHEDULER[] = {
	ROW("policy", T_STR),  ROW("nice", T_I32),     ROW("priority", T_I32), ROW("flags", T_STRS),
	ROW("runtime", T_U64), ROW("deadline", T_U64), ROW("period", T_U64),
};
static const struct oci_type T_SCHEDULER = OBJECT(R_SCHEDULER);

static const struct oci_row R_IOPRIORITY[] = {
	ROW("class", T_STR),
	ROW("priority", T_I32),
};
static const struct oci_type T_IOPRIORITY = OBJECT(R_IOPRIORITY);

static const struct oci_row R_AFFINITY[] = {
	ROW("initial", T_STR),
	ROW("final", T_STR),
};
static const struct oci_type T_AFFINITY = OBJECT(R_AFFINITY);

static const struct oci_row R_PROCESS[] = {
	ROW("terminal", T_BOOL),
	ROW("consoleSize", T_BOX),
	ROW("user", T_USER),
	ROW("args", T_ARGS),
	ROW("env", T_ENVS),
	ROW("cwd", T_STR),
	ROW("capabilities", T_CAPS),
	ROW("rlimits", T_RLIMITS),
	ROW("noNewPrivileges", T_BOOL),
	ROW("apparmorProfile", T_STR),
	ROW("oomScoreAdj", T_I32),
	ROW("selinuxLabel", T_STR),
	UNUSED("commandLine", T_STR),
	UNUSED("scheduler", T_SCHEDULER),
	UNUSED("ioPriority", T_IOPRIORITY),
	UNUSED("execCPUAffinity", T_AFFINITY),
};
static const struct oci_type T_PROCESS = OBJECT(R_PROCESS);

/* ---- root, mounts, hooks ---- */

static const struct oci_row R_ROOT[] = {
	ROW("path", T_STR),
	ROW("readonly", T_BOOL),
};
static const struct oci_type T_ROOT = OBJECT(R_ROOT);

static const struct oci_row R_MAPPING[] = {
	ROW("containerID", T_U32),
	ROW("hostID", T_U32),
	ROW("size", T_U32),
};
static const struct oci_type T_MAPPING = OBJECT(R_MAPPING);
static const struct oci_type T_MAPPINGS = ARRAY(T_MAPPING);

static const struct oci_row R_MOUNT[] = {
	ROW("destination", T_STR),      ROW("type", T_STR),
	ROW("source", T_STR),           ROW("options", T_STRS),
	ROW("uidMappings", T_MAPPINGS), ROW("gidMappings", T_MAPPINGS),
};
static const struct oci_type T_MOUNT = OBJECT(R_MOUNT);
static const struct oci_type T_MOUNTS = ARRAY(T_MOUNT);

static const struct oci_row R_HOOK[] = {
	ROW("path", T_STR),
	ROW("args", T_ARGS),
	ROW("env", T_ENVS),
	ROW("timeout", T_I32),
};
static const struct oci_type T_HOOK = OBJECT(R_HOOK);
static const struct oci_type T_HOOKLIST = ARRAY(T_HOOK);

static const struct oci_row R_HOOKS[] = {
	ROW("prestart", T_HOOKLIST),        ROW("createRuntime", T_HOOKLIST),
	ROW("createContainer", T_HOOKLIST), ROW("startContainer", T_HOOKLIST),
	ROW("poststart", T_HOOKLIST),       ROW("poststop", T_HOOKLIST),
};
static const struct oci_type T_HOOKS = OBJECT(R_HOOKS);

/* ---- linux.resources ---- */

static const struct oci_row R_DEVRULE[] = {
	ROW("allow", T_BOOL), ROW("type", T_STR),   ROW("major", T_I64),
	ROW("minor", T_I64),  ROW("access", T_STR),
};
static const struct oci_type T_DEVRULE = OBJECT(R_DEVRULE);
static const struct oci_type T_DEVRULES = ARRAY(T_DEVRULE);

static const struct oci_row R_MEMORY[] = {
	ROW("limit", T_I64),
	ROW("reservation", T_I64),
	ROW("swap", T_I64),
	ROW("kernel", T_I64),
	ROW("kernelTCP", T_I64),
	ROW("swappiness", T_U64),
	ROW("disableOOMKiller", T_BOOL),
	ROW("useHierarchy", T_BOOL),
	ROW("checkBeforeUpdate", T_BOOL),
};
static const struct oci_type T_MEMORY = OBJECT(R_MEMORY);

static const struct oci_row R_CPU[] = {
	ROW("shares", T_U64),
	ROW("quota", T_I64),
	ROW("burst", T_U64),
	ROW("period", T_U64),
	ROW("realtimeRuntime", T_I64),
	ROW("realtimePeriod", T_U64),
	ROW("cpus", T_STR),
	ROW("mems", T_STR),
	ROW("idle", T_I64),
};
static const struct oci_type T_CPU = OBJECT(R_CPU);

static const struct oci_row R_PIDS[] = {
	ROW("limit", T_I64),
};
static const struct oci_type T_PIDS = OBJECT(R_PIDS);

static const struct oci_row R_WEIGHTDEV[] = {
	ROW("major", T_I64),
	ROW("minor", T_I64),
	ROW("weight", T_U16),
	ROW("leafWeight", T_U16),
};
static const struct oci_type T_WEIGHTDEV = OBJECT(R_WEIGHTDEV);
static const struct oci_type T_WEIGHTDEVS = ARRAY(T_WEIGHTDEV);

static const struct oci_row R_THROTTLE[] = {
	ROW("major", T_I64),
	ROW("minor", T_I64),
	ROW("rate", T_U64),
};
static const struct oci_type T_THROTTLE = OBJECT(R_THROTTLE);
static const struct oci_type T_THROTTLES = ARRAY(T_THROTTLE);

static const struct oci_row R_BLOCKIO[] = {
	ROW("weight", T_U16),
	ROW("leafWeight", T_U16),
	ROW("weightDevice", T_WEIGHTDEVS),
	ROW("throttleReadBpsDevice", T_THROTTLES),
	ROW("throttleWriteBpsDevice", T_THROTTLES),
	ROW("throttleReadIOPSDevice", T_THROTTLES),
	ROW("throttleWriteIOPSDevice", T_THROTTLES),
};
static const struct oci_type T_BLOCKIO = OBJECT(R_BLOCKIO);

static const struct oci_row R_HUGEPAGE[] = {
	ROW("pageSize", T_STR),
	ROW("limit", T_U64),
};
static const struct oci_type T_HUGEPAGE = OBJECT(R_HUGEPAGE);
static const struct oci_type T_HUGEPAGES = ARRAY(T_HUGEPAGE);

static const struct oci_row R_NETPRIO[] = {
	ROW("name", T_STR),
	ROW("priority", T_U32),
};
static const struct oci_type T_NETPRIO = OBJECT(R_NETPRIO);
static const struct oci_type T_NETPRIOS = ARRAY(T_NETPRIO);

static const struct oci_row R_NETWORK[] = {
	ROW("classID", T_U32),
	ROW("priorities", T_NETPRIOS),
};
static const struct oci_type T_NETWORK = OBJECT(R_NETWORK);

static const struct oci_row R_RDMA[] = {
	ROW("hcaHandles", T_U32),
	ROW("hcaObjects", T_U32),
};
static const struct oci_type T_RDMA = OBJECT(R_RDMA);
static const struct oci_type T_RDMAS = MAP(T_RDMA);

static const struct oci_row R_RESOURCES[] = {
	ROW("devices", T_DEVRULES),
	ROW("memory", T_MEMORY),
	ROW("cpu", T_CPU),
	ROW("pids", T_PIDS),
	ROW("network", T_NETWORK),
	UNUSED("blockIO", T_BLOCKIO),
	UNUSED("hugepageLimits", T_HUGEPAGES),
	UNUSED("rdma", T_RDMAS),
	UNUSED("unified", T_STRMAP),
};
static const struct oci_type T_RESOURCES = OBJECT(R_RESOURCES);

/* ---- linux ---- */

static const struct oci_row R_NAMESPACE[] = {
	ROW("type", T_STR),
	ROW("path", T_STR),
};
static const struct oci_type T_NAMESPACE = OBJECT(R_NAMESPACE);
static const struct oci_type T_NAMESPACES = ARRAY(T_NAMESPACE);

static const struct oci_row R_DEVICE[] = {
	ROW("path", T_STR),     ROW("type", T_STR), ROW("major", T_I64), ROW("minor", T_I64),
	ROW("fileMode", T_U32), ROW("uid", T_U32),  ROW("gid", T_U32),
};
static const struct oci_type T_DEVICE = OBJECT(R_DEVICE);
static const struct oci_type T_DEVICES = ARRAY(T_DEVICE);

static const struct oci_row R_NETDEVICE[] = {
	ROW("name", T_STR),
};
static const struct oci_type T_NETDEVICE = OBJECT(R_NETDEVICE);
static const struct oci_type T_NETDEVICES = MAP(T_NETDEVICE);

static const struct oci_row R_SYSCALL_ARG[] = {
	ROW("index", T_U32),
	ROW("value", T_U64),
	ROW("valueTwo", T_U64),
	ROW("op", T_STR),
};
static const struct oci_type T_SYSCALL_ARG = OBJECT(R_SYSCALL_ARG);
static const struct oci_type T_SYSCALL_ARGS = ARRAY(T_SYSCALL_ARG);

static const struct oci_row R_SYSCALL[] = {
	ROW("names", T_STRS),
	ROW("action", T_STR),
	ROW("errnoRet", T_U32),
	ROW("args", T_SYSCALL_ARGS),
};
static const struct oci_type T_SYSCALL = OBJECT(R_SYSCALL);
static const struct oci_type T_SYSCALLS = ARRAY(T_SYSCALL);

static const struct oci_row R_SECCOMP[] = {
	ROW("defaultAction", T_STR), ROW("defaultErrnoRet", T_U32), ROW("architectures", T_STRS),
	ROW("flags", T_STRS),        ROW("listenerPath", T_STR),    ROW("listenerMetadata", T_STR),
	ROW("syscalls", T_SYSCALLS),
};
static const struct oci_type T_SECCOMP = OBJECT(R_SECCOMP);

static const struct oci_row R_INTELRDT[] = {
	ROW("closID", T_STR),
	ROW("schemata", T_STRS),
	ROW("l3CacheSchema", T_STR),
	ROW("memBwSchema", T_STR),
	ROW("enableCMT", T_BOOL), /* 1.1 and 1.2 */
	ROW("enableMBM", T_BOOL), /* 1.1 and 1.2 */
	ROW("enableMonitoring", T_BOOL),
};
static const struct oci_type T_INTELRDT = OBJECT(R_INTELRDT);

static const struct oci_row R_MEMPOLICY[] = {
	ROW("mode", T_STR),
	ROW("nodes", T_STR),
	ROW("flags", T_STRS),
};
static const struct oci_type T_MEMPOLICY = OBJECT(R_MEMPOLICY);

static const struct oci_row R_PERSONALITY[] = {
	ROW("domain", T_STR),
	ROW("flags", T_STRS),
};
static const struct oci_type T_PERSONALITY = OBJECT(R_PERSONALITY);

static const struct oci_row R_TIMEOFFSET[] = {
	ROW("secs", T_I64),
	ROW("nanosecs", T_U32),
};
static const struct oci_type T_TIMEOFFSET = OBJECT(R_TIMEOFFSET);
static const struct oci_type T_TIMEOFFSETS = MAP(T_TIMEOFFSET);

static const struct oci_row R_LINUX[] = {
	ROW("uidMappings", T_MAPPINGS),
	ROW("gidMappings", T_MAPPINGS),
	ROW("sysctl", T_STRMAP),
	ROW("resources", T_RESOURCES),
	ROW("cgroupsPath", T_STR),
	ROW("namespaces", T_NAMESPACES),
	ROW("devices", T_DEVICES),
	ROW("seccomp", T_SECCOMP),
	ROW("rootfsPropagation", T_STR),
	ROW("maskedPaths", T_STRS),
	ROW("readonlyPaths", T_STRS),
	ROW("mountLabel", T_STR),
	UNUSED("netDevices", T_NETDEVICES),
	UNUSED("intelRdt", T_INTELRDT),
	UNUSED("memoryPolicy", T_MEMPOLICY),
	UNUSED("personality", T_PERSONALITY),
	UNUSED("timeOffsets", T_TIMEOFFSETS),
};
static const struct oci_type T_LINUX = OBJECT(R_LINUX);

/* ---- the documents ---- */

static const struct oci_row R_CONFIG[] = {
	ROW("ociVersion", T_STR),     ROW("process", T_PROCESS),    ROW("root", T_ROOT),
	ROW("hostname", T_STR),       ROW("mounts", T_MOUNTS),      ROW("hooks", T_HOOKS),
	ROW("annotations", T_STRMAP), ROW("linux", T_LINUX),        UNUSED("domainname", T_STR),
	UNUSED("solaris", T_FOREIGN), UNUSED("windows", T_FOREIGN), UNUSED("vm", T_FOREIGN),
	UNUSED("zos", T_FOREIGN),     UNUSED("freebsd", T_FOREIGN),
};
static const struct oci_type T_CONFIG = OBJECT(R_CONFIG);

static const struct oci_type *const ROOTS[] = {
	[OCI_DOC_CONFIG] = &T_CONFIG,
	[OCI_DOC_PROCESS] = &T_PROCESS,
	[OCI_DOC_RESOURCES] = &T_RESOURCES,
};

const struct oci_type *oci_schema_root(enum oci_doc kind)
{
	return ROOTS[kind];
}

const struct oci_row *oci_schema_row(const struct oci_type *object, const char *name, size_t len)
{
	for (size_t i = 0; i < object->n_rows; i++) {
		const struct oci_row *r = &object->rows[i];

		/* length and first letter decide nearly always */
		if (r->len == len && r->name[0] == name[0] && memcmp(r->name, name, len) == 0)
			return r;
	}
	return NULL;
}

/* Takes one character off *p and returns it folded; bytes above ASCII come one by one. */
static unsigned char fold_next(const char **p)
{
	const unsigned char *s = (const unsigned char *)*p;

	if (s[0] == 0xc5 && s[1] == 0xbf) { /* U+017F, long s */
		*p += 2;
		return 's';
	}
	if (s[0] == 0xe2 && s[1] == 0x84 && s[2] == 0xaa) { /* U+212A, Kelvin sign */
		*p += 3;
		return 'k';
	}
	*p += 1;
	if (s[0] >= 'A' && s[0] <= 'Z')
		return (unsigned char)(s[0] | 0x20);
	return s[0];
}

bool oci_fold_eq(const char *a, const char *b)
{
	while (*a && *b) {
		if (fold_next(&a) != fold_next(&b))
			return false;
	}
	return *a == *b;
}

const struct oci_row *oci_schema_row_fold(const struct oci_type *object, const char *name)
{
	for (size_t i = 0; i < object->n_rows; i++) {
		if (oci_fold_eq(object->rows[i].name, name))
			return &object->rows[i];
	}
	return NULL;
}
