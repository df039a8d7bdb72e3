/* SPDX-License-Identifier: MIT */
#include "hardening/rules.h"

#include <string.h>

#include "shim/core/text.h"

/* Annotations that only describe (R29). `value` NULL: any. */
static const struct {
	const char *name, *value;
} allowed_annotations[] = {
	{ "io.aqe.agent-id", NULL },
	{ "io.aqe.agent-type", NULL },
	{ "io.aqe.image.digest", NULL },
	{ "io.aqe.image.id", NULL },
	{ "io.container.manager", "libpod" },
	{ "io.container.manager", "cri-o" },
	{ "io.kubernetes.cri-o.ContainerType", "container" },
	{ "io.kubernetes.cri-o.Created", NULL },
	{ "io.kubernetes.cri-o.SandboxID", NULL },
	{ "io.kubernetes.cri-o.TTY", NULL },
	{ "io.kubernetes.cri.container-name", NULL },
	{ "io.kubernetes.cri.image-name", NULL },
	{ "io.kubernetes.cri.sandbox-id", NULL },
	{ "io.kubernetes.cri.sandbox-log-directory", NULL },
	{ "io.kubernetes.cri.sandbox-name", NULL },
	{ "io.kubernetes.cri.sandbox-namespace", NULL },
	{ "io.kubernetes.cri.sandbox-uid", NULL },
	{ "io.podman.annotations.autoremove", "FALSE" },
	{ "io.podman.annotations.autoremove", "TRUE" },
	{ "io.podman.annotations.init", "FALSE" },
	{ "io.podman.annotations.init", "TRUE" },
	{ "io.podman.annotations.privileged", "FALSE" },
	{ "io.podman.annotations.publish-all", "FALSE" },
	{ "io.podman.annotations.publish-all", "TRUE" },
	{ "org.opencontainers.image.architecture", NULL },
	{ "org.opencontainers.image.author", NULL },
	{ "org.opencontainers.image.authors", NULL },
	{ "org.opencontainers.image.base.digest", NULL },
	{ "org.opencontainers.image.base.name", NULL },
	{ "org.opencontainers.image.created", NULL },
	{ "org.opencontainers.image.description", NULL },
	{ "org.opencontainers.image.documentation", NULL },
	{ "org.opencontainers.image.exposedPorts", NULL },
	{ "org.opencontainers.image.licenses", NULL },
	{ "org.opencontainers.image.os", NULL },
	{ "org.opencontainers.image.ref.name", NULL },
	{ "org.opencontainers.image.revision", NULL },
	{ "org.opencontainers.image.source", NULL },
	{ "org.opencontainers.image.stopSignal", NULL },
	{ "org.opencontainers.image.title", NULL },
	{ "org.opencontainers.image.url", NULL },
	{ "org.opencontainers.image.vendor", NULL },
	{ "org.opencontainers.image.version", NULL },
};

#define PODMAN_SECCOMP "io.podman.annotations.seccomp"

bool hard_rule_annotation_allowed(const struct hard_policy *policy, const char *name,
				  const char *value)
{
	if (policy && policy->seccomp_file && aqe_str_eq(name, PODMAN_SECCOMP))
		return aqe_str_eq(value, policy->seccomp_file);
	for (size_t i = 0; i < AQE_COUNT(allowed_annotations); i++) {
		const int order = strcmp(name, allowed_annotations[i].name);

		if (order < 0) /* sorted by name */
			return false;
		if (order == 0 && (!allowed_annotations[i].value ||
				   aqe_str_eq(value, allowed_annotations[i].value)))
			return true;
	}
	return false;
}

/* hardening.md section 2, "Annotations that act", and what `crun features` and `runc features` call
 * potentially unsafe. */
const struct hard_active HARD_ACTIVE[] = {
	/* engines write these themselves */
	{ "io.kubernetes.cri.container-type", false, true, HARD_ANNOTATIONS,
	  "crun skips its own handlers" },
	{ "org.systemd.property.DefaultDependencies", false, true, HARD_ANNOTATIONS,
	  "sets a property of the systemd unit" },
	{ "org.systemd.property.After", false, true, HARD_ANNOTATIONS,
	  "sets a property of the systemd unit" },
	{ "org.systemd.property.CollectMode", false, true, HARD_ANNOTATIONS,
	  "sets a property of the systemd unit" },
	{ "org.systemd.property.KillSignal", false, true, HARD_ANNOTATIONS,
	  "sets a property of the systemd unit" },
	{ "org.systemd.property.TimeoutStopUSec", false, true, HARD_ANNOTATIONS,
	  "sets a property of the systemd unit" },
	{ "io.podman.annotations.cid-file", false, true, HARD_ANNOTATIONS,
	  "names a file of the host" }, /* podman run --cidfile: says nothing to a runtime */
	/* somebody asked for these */
	{ "run.oci.seccomp", true, false, HARD_SECCOMP,
	  "crun loads this instead of, or beside, linux.seccomp" },
	{ "run.oci.", true, false, HARD_ANNOTATIONS, "crun acts on it" },
	{ "krun.", true, false, HARD_ANNOTATIONS, "crun's krun handler acts on it" },
	{ "module.wasm.", true, false, HARD_ANNOTATIONS, "runs in the runtime's own process" },
	{ "org.criu.", true, false, HARD_ANNOTATIONS, "configures criu on the host" },
	{ "org.systemd.property.", true, false, HARD_ANNOTATIONS,
	  "sets a property of the systemd unit" },
	{ "bundle", false, false, HARD_ANNOTATIONS, "runc's internal label" },
	{ "io.katacontainers.", true, false, HARD_ANNOTATIONS, "configures kata on the host" },
	{ "dev.gvisor.", true, false, HARD_ANNOTATIONS, "sets flags of gVisor" },
	{ "cdi.k8s.io/", true, false, HARD_DEVICES, "injects devices (CDI)" },
	{ "nvidia.", true, false, HARD_DEVICES, "injects devices" },
	{ "io.kubernetes.cri-o.Devices", false, false, HARD_DEVICES, "injects devices" },
	{ "io.kubernetes.cri-o.userns-mode", false, false, HARD_ROOTLESS,
	  "chooses the user namespace" },
	{ "io.kubernetes.cri-o.seccompNotifierAction", true, false, HARD_SECCOMP,
	  "lets an agent on the host decide system calls" },
	{ "io.kubernetes.cri-o.ShmSize", false, false, HARD_ANNOTATIONS, "resizes /dev/shm" },
	{ "io.kubernetes.cri-o.UnifiedCgroup", true, false, HARD_ANNOTATIONS,
	  "overrides cgroup limits" },
	{ "io.podman.annotations.privileged", false, false, HARD_PRIVILEGED,
	  "the engine was asked for --privileged" },
	{ PODMAN_SECCOMP, false, false, HARD_SECCOMP,
	  "the engine was asked for another seccomp profile" },
	{ "io.podman.annotations.label", false, false, HARD_LSM,
	  "the engine was asked for another SELinux label" },
	{ "io.podman.annotations.apparmor", false, false, HARD_LSM,
	  "the engine was asked for another AppArmor profile" },
	{ "io.podman.annotations.userns", false, false, HARD_ROOTLESS,
	  "chooses the user namespace" },
	{ "io.podman.annotations.volumes-from", false, false, HARD_MOUNTS,
	  "takes another container's mounts" },
	{ "io.podman.annotations.", true, false, HARD_ANNOTATIONS, "podman acts on it" },
};
const size_t HARD_ACTIVE_COUNT = AQE_COUNT(HARD_ACTIVE);

const struct hard_active *hard_rule_active(const char *name)
{
	const struct hard_active *by_prefix = NULL;

	for (size_t i = 0; i < AQE_COUNT(HARD_ACTIVE); i++) {
		const struct hard_active *a = &HARD_ACTIVE[i];

		if (!a->prefix && aqe_str_eq(name, a->name))
			return a;
		if (a->prefix && !by_prefix && aqe_starts(name, a->name))
			by_prefix = a;
	}
	return by_prefix;
}

/* R32. The loader variables matter on the host: runc hands the image's environment to a hook that
 * has none of its own (CVE-2025-23266). */
const struct hard_env HARD_ENV_DENIED[] = {
	{ "LD_", true, { HARD_HOOKS, HARD_HOOKS }, "changes what the dynamic loader loads" },
	{ "GCONV_PATH", false, { HARD_HOOKS, HARD_HOOKS }, "makes libc load code" },
	{ "GLIBC_TUNABLES", false, { HARD_HOOKS, HARD_HOOKS }, "changes libc (CVE-2023-4911)" },
	{ "NVIDIA_", true, { HARD_DEVICES, HARD_HOOKS }, "makes a runtime inject devices" },
	{ "AMD_VISIBLE_", true, { HARD_DEVICES, HARD_HOOKS }, "makes a runtime inject devices" },
};
const size_t HARD_ENV_DENIED_COUNT = AQE_COUNT(HARD_ENV_DENIED);

const struct hard_env *hard_rule_env(const char *entry)
{
	for (size_t i = 0; i < AQE_COUNT(HARD_ENV_DENIED); i++) {
		const struct hard_env *d = &HARD_ENV_DENIED[i];
		const size_t n = strlen(d->name);

		if (aqe_starts(entry, d->name) &&
		    (d->prefix || entry[n] == '=' || entry[n] == '\0'))
			return d;
	}
	return NULL;
}

bool hard_rule_cwd(const char *path)
{
	static const char *const kernel[] = { "/proc", "/sys", "/dev" };

	if (!aqe_path_is_canonical(path))
		return false;
	for (size_t i = 0; i < AQE_COUNT(kernel); i++)
		if (aqe_path_is_under(path, kernel[i]))
			return false;
	return true;
}
