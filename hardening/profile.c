/* SPDX-License-Identifier: MIT */
#include "hardening/props.h"

#include "shim/core/text.h"

/* The frozen profile. It lives in read-only memory: no file, flag, annotation or variable of the
 * environment changes it; a policy file can waive rows that say so, and nothing else.
 * Columns: id; what is wanted; what goes wrong otherwise; what to do; what `enforce` does. */
const struct hard_prop_row HARDENING_PROFILE[HARD_PROP_COUNT] = {
	[HARD_PRIVILEGED] = {
		.id = "privileged",
		.required = "not privileged",
		.why = "A privileged container has every capability, every device and no filter: "
		       "root in it is root on the host.",
		.fix = "start the container without --privileged",
		.rewrite = "refuse",
		.waivable = false,
	},
	[HARD_ROOTLESS] = {
		.id = "rootless",
		.required = "a rootless engine, or a user namespace whose mappings keep host uid "
			    "0 and the caller's own uid out of the container",
		.why = "Without a user namespace a uid inside is the same uid on the host, so "
		       "one bug in the runtime or the kernel hands over host accounts.",
		.fix = "use a rootless engine, or --userns=auto (podman) or userns-remap "
		       "(docker), or add a waiver for 'rootless' to the policy",
		.rewrite = "refuse",
		.waivable = true,
	},
	[HARD_CAPABILITIES] = {
		.id = "capabilities",
		.required = "all five capability sets present and empty",
		.why = "Every capability opens kernel paths that an agent's job does not need; "
		       "an absent set means whatever the runtime thinks.",
		.fix = "drop --cap-add, and use --cap-drop=ALL where nothing rewrites",
		.rewrite = "empty the engine's default set, refuse others",
		.waivable = false,
	},
	[HARD_NO_NEW_PRIVILEGES] = {
		.id = "no_new_privileges",
		.required = "noNewPrivileges true",
		.why = "A set-user-id file or a file capability in the image would give back "
		       "what was dropped.",
		.fix = "use --security-opt=no-new-privileges",
		.rewrite = "set",
		.waivable = false,
	},
	[HARD_READONLY_ROOTFS] = {
		.id = "readonly_rootfs",
		.required = "a read-only root file system",
		.why = "A writable root keeps what an agent plants, and its size has no limit.",
		.fix = "use --read-only; write below /tmp, /run or a mount of the policy",
		.rewrite = "set",
		.waivable = true,
	},
	[HARD_TMPFS] = {
		.id = "tmpfs",
		.required = "tmpfs with nosuid, nodev and one size above 0 at /tmp and at /run",
		.why = "Programs need a place to write; without a size it can take all memory.",
		.fix = "use --tmpfs=/tmp:size=64m --tmpfs=/run:size=16m",
		.rewrite = "add, set the size",
		.waivable = true,
	},
	[HARD_PIDS_LIMIT] = {
		.id = "pids_limit",
		.required = "a pids limit of at least 1 and at most the agent type's, 512 in the "
			    "profile",
		.why = "A fork bomb takes the host's process table; absent, 0 and -1 mean no "
		       "limit.",
		.fix = "use --pids-limit=512 or lower",
		.rewrite = "clamp",
		.waivable = true,
	},
	[HARD_MEMORY_LIMIT] = {
		.id = "memory_limit",
		.required = "a memory limit of at most the agent type's, 1 GiB in the profile, "
			    "and memory + swap equal to it",
		.why = "An agent without a limit pushes the host into swap and the OOM killer; "
		       "absent, 0 and -1 mean no limit.",
		.fix = "use --memory=1g --memory-swap=1g or lower",
		.rewrite = "clamp",
		.waivable = true,
	},
	[HARD_CPU_LIMIT] = {
		.id = "cpu_limit",
		.required = "a CPU quota of at most the agent type's, 2 CPUs in the profile, at "
			    "a period of at most 100000 us",
		.why = "One agent can starve everything else on the machine; a long period "
		       "allows long bursts, and absent, 0 and -1 mean no limit.",
		.fix = "use --cpus=2 or lower",
		.rewrite = "clamp",
		.waivable = true,
	},
	[HARD_NETWORK] = {
		.id = "network",
		.required = "an own new network namespace with nothing but lo",
		.why = "Any other interface is a way out that no policy sees.",
		.fix = "use --network=none",
		.rewrite = "replace the engine's namespace, drop its network hook",
		.waivable = true,
	},
	[HARD_DIGEST] = {
		.id = "digest",
		.required = "an image that the policy pins by digest or image id",
		.why = "A tag can name another image tomorrow; only a verified hash says what "
		       "runs.",
		.fix = "add the image to 'images' in the policy",
		.rewrite = "refuse",
		.waivable = true,
	},
	[HARD_MOUNTS] = {
		.id = "mounts",
		.required = "exactly the policy's mounts and the kernel's and engine's own, each "
			    "with nosuid and nodev",
		.why = "A mount is a piece of the host inside the container; one too many undoes "
		       "the isolation, and its options decide more than its type.",
		.fix = "drop the mount, or add it to 'mounts' in the policy",
		.rewrite = "add missing ones, tighten options, refuse others",
		.waivable = true,
	},
	[HARD_PROPAGATION] = {
		.id = "propagation",
		.required = "private mount propagation everywhere",
		.why = "With shared or slave propagation, later mounts cross between host and "
		       "container.",
		.fix = "drop :shared, :slave and their r-forms from the mount",
		.rewrite = "set the default to private, refuse shared",
		.waivable = true,
	},
	[HARD_ENGINE_SOCKET] = {
		.id = "engine_socket",
		.required = "no mount that is, contains or leads to the socket of an engine",
		.why = "Who can talk to the engine starts a privileged container, and is root on "
		       "the host.",
		.fix = "drop the mount of the socket or of its folder",
		.rewrite = "refuse",
		.waivable = false,
	},
	[HARD_USER] = {
		.id = "user",
		.required = "a numeric uid and gid from 1 to 2147483647, not mapped to host 0",
		.why = "uid 0 owns too much of the kernel's interface even without capabilities, "
		       "names are looked up in files of the image, and large numbers wrap to 0 "
		       "in runtimes.",
		.fix = "use --user=1000:1000, or set 'user' in the policy",
		.rewrite = "replace 0 by the policy's user",
		.waivable = true,
	},
	[HARD_SECCOMP] = {
		.id = "seccomp",
		.required = "the frozen system call filter, or an allow-list that is at least as "
			    "strict",
		.why = "The engines' default filters let a container make a user namespace with "
		       "all capabilities in it; that a filter is present proves nothing.",
		.fix = "drop --security-opt seccomp=..., or use the frozen profile's filter",
		.rewrite = "replace",
		.waivable = true,
	},
	[HARD_NAMESPACES] = {
		.id = "namespaces",
		.required = "pid, network, ipc, uts and mount namespaces, each new and listed "
			    "once",
		.why = "A namespace that is missing or joined by path is the host's or another "
		       "container's.",
		.fix = "drop --pid, --ipc, --uts, --network and --cgroupns of host or "
		       "container:ID",
		.rewrite = "add missing defaults, refuse joining",
		.waivable = true,
	},
	[HARD_DEVICES] = {
		.id = "devices",
		.required = "no extra devices, and a device list that denies all first",
		.why = "A device node is direct access to hardware or to the host's disks; "
		       "without the first deny rule the runtime leaves all of them open.",
		.fix = "drop --device and --device-cgroup-rule",
		.rewrite = "set the rules, refuse devices",
		.waivable = true,
	},
	[HARD_SYSCTL] = {
		.id = "sysctl",
		.required = "no sysctl but the engine's own ping_group_range",
		.why = "Kernel parameters reach beyond the container, and their values have been "
		       "used to inject others.",
		.fix = "drop --sysctl",
		.rewrite = "drop the engine's default, refuse others",
		.waivable = true,
	},
	[HARD_MASKED_PATHS] = {
		.id = "masked_paths",
		.required = "the masked and read-only paths of /proc and /sys, complete",
		.why = "Unmasked files of /proc and /sys show and change the host's kernel.",
		.fix = "drop --security-opt unmask=... and systempaths=unconfined",
		.rewrite = "add missing ones",
		.waivable = true,
	},
	[HARD_RLIMITS] = {
		.id = "rlimits",
		.required = "resource limits from the allow-list, each once and below its "
			    "ceiling, no core dumps",
		.why = "Core dumps are piped to programs of the host, and real-time priority or "
		       "locked memory starves it.",
		.fix = "drop --ulimit",
		.rewrite = "clamp, set core to 0",
		.waivable = true,
	},
	[HARD_LSM] = {
		.id = "lsm",
		.required = "no unconfined AppArmor profile or SELinux label, and one of them "
			    "where the host has an LSM",
		.why = "The mandatory access control of the host is the second wall behind "
		       "namespaces.",
		.fix = "drop --security-opt apparmor=unconfined and label=disable",
		.rewrite = "keep, refuse unconfined",
		.waivable = true,
	},
	[HARD_HOOKS] = {
		.id = "hooks",
		.required = "no hooks but our own",
		.why = "Hooks run on the host as the runtime's user, with its environment.",
		.fix = "remove the hook from the engine's hooks.d",
		.rewrite = "drop the engine's network hook, refuse others",
		.waivable = false,
	},
	[HARD_ANNOTATIONS] = {
		.id = "annotations",
		.required = "only annotations of the allow-list",
		.why = "Runtimes obey annotations: one of them replaces the whole system call "
		       "filter.",
		.fix = "drop --annotation",
		.rewrite = "drop others",
		.waivable = true,
	},
	[HARD_UNKNOWN_FIELD] = {
		.id = "unknown_field",
		.required = "no member that the runtime-spec up to 1.3 does not define, or that "
			    "the profile does not use",
		.why = "What we do not know, another parser may obey, such as a name in other "
		       "letter case.",
		.fix = "remove the member from the document",
		.rewrite = "refuse",
		.waivable = false,
	},
	[HARD_MISSING_FIELD] = {
		.id = "missing_field",
		.required = "every member that the decision rests on",
		.why = "A member that is not there means the runtime's default, which is mostly "
		       "the host's or none.",
		.fix = "add the member to the document",
		.rewrite = "set",
		.waivable = true,
	},
};

enum hard_prop hard_prop_by_id(const char *id)
{
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++) {
		if (aqe_str_eq(HARDENING_PROFILE[i].id, id))
			return (enum hard_prop)i;
	}
	return HARD_PROP_COUNT;
}
