/* SPDX-License-Identifier: MIT */
#include "hardening/rules.h"

#include <string.h>

#include "shim/core/text.h"

/* R22. Both engines list them all; ptmx and pts come with the devpts mount, so a rule for them is
 * not needed and is dropped. */
const struct hard_device HARD_DEVICE_NODES[] = {
	{ 'c', 1, 3, "null", true },    { 'c', 1, 5, "zero", true },
	{ 'c', 1, 7, "full", true },    { 'c', 1, 8, "random", true },
	{ 'c', 1, 9, "urandom", true }, { 'c', 5, 0, "tty", true },
	{ 'c', 5, 1, "console", true }, { 'c', 5, 2, "ptmx", false },
	{ 'c', 136, -1, "pts", false },
};
const size_t HARD_DEVICE_NODES_COUNT = AQE_COUNT(HARD_DEVICE_NODES);

const struct hard_device *hard_rule_device(char type, int64_t major, int64_t minor)
{
	for (size_t i = 0; i < AQE_COUNT(HARD_DEVICE_NODES); i++) {
		const struct hard_device *d = &HARD_DEVICE_NODES[i];

		if (d->type == type && d->major == major && d->minor == minor)
			return d;
	}
	return NULL;
}

/* The union of podman's and docker's defaults. */
const char *const HARD_MASKED_LIST[] = {
	"/proc/acpi",
	"/proc/asound",
	"/proc/kcore",
	"/proc/keys",
	"/proc/latency_stats",
	"/proc/timer_list",
	"/proc/timer_stats",
	"/proc/sched_debug",
	"/proc/scsi",
	"/sys/firmware",
	"/sys/fs/selinux",
	"/sys/dev/block",
	NULL,
};
/* Later engines' defaults: interrupt counts and power readings leak what neighbours do. */
const char *const HARD_MASKED_EXTRA[] = {
	"/proc/interrupts",
	"/sys/devices/virtual/powercap",
	NULL,
};
const char *const HARD_READONLY_LIST[] = {
	"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", NULL,
};

bool hard_rule_proc_path(const char *path)
{
	return aqe_path_is_canonical(path) &&
	       (aqe_starts(path, "/proc/") || aqe_starts(path, "/sys/"));
}

/* R25: exact pairs. Docker's ping_group_range of all groups is invalid in a user namespace
 * (measured), so the rewrite writes podman's. Both act inside the network namespace only. */
static const struct {
	const char *name, *value;
	const char *engine; /* an engine's other default, or NULL */
} sysctls[] = {
	{ "net.ipv4.ping_group_range", "0 0", "0 2147483647" },
	{ "net.ipv4.ip_unprivileged_port_start", "0", NULL },
};

enum hard_sysctl hard_rule_sysctl(const char *name, const char *value, const char **ret_value)
{
	for (size_t i = 0; i < AQE_COUNT(sysctls); i++) {
		enum hard_sysctl verdict = HARD_SYSCTL_OTHER;

		if (!aqe_str_eq(name, sysctls[i].name))
			continue;
		if (aqe_str_eq(value, sysctls[i].value))
			verdict = HARD_SYSCTL_ALLOWED;
		else if (sysctls[i].engine && aqe_str_eq(value, sysctls[i].engine))
			verdict = HARD_SYSCTL_ENGINE;
		if (verdict != HARD_SYSCTL_OTHER && ret_value)
			*ret_value = sysctls[i].value;
		return verdict;
	}
	return HARD_SYSCTL_OTHER;
}

#define MIB (1024ULL * 1024)

/* R27. NPROC counts all processes of the host uid, so the pids limit, not this, bounds the agent.
 * An unlimited STACK makes the kernel lay out memory without randomisation. */
const struct hard_rlimit HARD_RLIMIT_ROWS[] = {
	{ "RLIMIT_AS", true, UINT64_MAX },
	{ "RLIMIT_CORE", true, 0 }, /* core_pattern may be a pipe to a host program */
	{ "RLIMIT_CPU", true, UINT64_MAX },
	{ "RLIMIT_DATA", true, UINT64_MAX },
	{ "RLIMIT_FSIZE", true, UINT64_MAX },
	{ "RLIMIT_LOCKS", false, 0 },
	{ "RLIMIT_MEMLOCK", false, 0 },
	{ "RLIMIT_MSGQUEUE", false, 0 },
	{ "RLIMIT_NICE", false, 0 },
	{ "RLIMIT_NOFILE", true, 65536 },
	{ "RLIMIT_NPROC", true, 65536 },
	{ "RLIMIT_RSS", true, UINT64_MAX },
	{ "RLIMIT_RTPRIO", false, 0 },
	{ "RLIMIT_RTTIME", false, 0 },
	{ "RLIMIT_SIGPENDING", true, 65536 },
	{ "RLIMIT_STACK", true, 64 * MIB },
};
const size_t HARD_RLIMIT_ROWS_COUNT = AQE_COUNT(HARD_RLIMIT_ROWS);

const struct hard_rlimit *hard_rule_rlimit(const char *type)
{
	for (size_t i = 0; i < AQE_COUNT(HARD_RLIMIT_ROWS); i++)
		if (aqe_str_eq(type, HARD_RLIMIT_ROWS[i].type))
			return &HARD_RLIMIT_ROWS[i];
	return NULL;
}

const struct hard_namespace HARD_NAMESPACE_TYPES[] = {
	{ "pid", true, HARD_NAMESPACES },     { "network", true, HARD_NETWORK },
	{ "ipc", true, HARD_NAMESPACES },     { "uts", true, HARD_NAMESPACES },
	{ "mount", true, HARD_NAMESPACES },   { "user", false, HARD_ROOTLESS },
	{ "cgroup", false, HARD_NAMESPACES },
};
const size_t HARD_NAMESPACE_TYPES_COUNT = AQE_COUNT(HARD_NAMESPACE_TYPES);

const struct hard_namespace *hard_rule_namespace(const char *type)
{
	for (size_t i = 0; i < AQE_COUNT(HARD_NAMESPACE_TYPES); i++)
		if (aqe_str_eq(type, HARD_NAMESPACE_TYPES[i].type))
			return &HARD_NAMESPACE_TYPES[i];
	return NULL;
}

const char *const HARD_CAP_SETS[] = {
	"bounding", "effective", "inheritable", "permitted", "ambient", NULL,
};

/* R28: what engines load by themselves. */
bool hard_rule_apparmor(const char *profile)
{
	static const char *const known[] = { "docker-default", "cri-containerd.apparmor.d",
					     "crio-default", "aqe-shim", NULL };
	static const char versioned[] = "containers-default-"; /* podman: + library version */
	const char *p = profile + sizeof(versioned) - 1;

	if (aqe_str_in(profile, known))
		return true;
	return aqe_starts(profile, versioned) && *p && strspn(p, "0123456789.") == strlen(p);
}

/* "s0:cN" or "s0:cN,cM", numbers at most 1023: a range such as c0.c1023 spans every container. */
static bool is_narrow_level(const char *level)
{
	static const char prefix[] = "s0:";

	if (!aqe_starts(level, prefix))
		return false;
	const char *p = level + sizeof(prefix) - 1;

	for (int n = 0; n < 2; n++) {
		const size_t digits = *p == 'c' ? strspn(p + 1, "0123456789") : 0;

		if (digits == 0 || digits > 4 || (digits == 4 && strncmp(p + 1, "1023", 4) > 0))
			return false;
		p += 1 + digits;
		if (*p == '\0')
			return true;
		if (*p++ != ',')
			return false;
	}
	return false;
}

static bool is_label(const char *label, const char *start, const char *const *types)
{
	if (!aqe_starts(label, start))
		return false;
	const char *const type = label + strlen(start);
	const char *const end = strchr(type, ':');

	if (!end || !is_narrow_level(end + 1))
		return false;
	for (; *types; types++)
		if (strlen(*types) == (size_t)(end - type) &&
		    memcmp(*types, type, (size_t)(end - type)) == 0)
			return true;
	return false;
}

bool hard_rule_selinux_process(const char *label)
{
	static const char *const types[] = { "container_t", "container_init_t", "svirt_lxc_net_t",
					     NULL };

	return is_label(label, "system_u:system_r:", types);
}

bool hard_rule_selinux_mount(const char *label)
{
	static const char *const types[] = { "container_file_t", "container_ro_file_t",
					     "svirt_sandbox_file_t", NULL };

	return is_label(label, "system_u:object_r:", types);
}
