/* SPDX-License-Identifier: MIT */
#include "hardening/rules.h"

#include <string.h>

#include "shim/core/text.h"

#define WORDS(...)                \
	(const char *const[])     \
	{                         \
		__VA_ARGS__, NULL \
	}
#define BIT(group) (1U << (group))

/* Every word a mount of a hardened container may contain, and the words of the same groups that it
 * may not: naming both lets a message say "contradicts" instead of "unknown". Sorted. */
static const struct {
	const char *word;
	enum hard_opt_group group;
} option_words[] = {
	{ "atime", HARD_OPT_ATIME },
	{ "bind", HARD_OPT_BIND },
	{ "dev", HARD_OPT_DEV },
	{ "diratime", HARD_OPT_DIRATIME },
	{ "exec", HARD_OPT_EXEC },
	{ "newinstance", HARD_OPT_NEWINSTANCE },
	{ "noatime", HARD_OPT_ATIME },
	{ "nodev", HARD_OPT_DEV },
	{ "nodiratime", HARD_OPT_DIRATIME },
	{ "noexec", HARD_OPT_EXEC },
	{ "norelatime", HARD_OPT_ATIME },
	{ "nostrictatime", HARD_OPT_ATIME },
	{ "nosuid", HARD_OPT_SUID },
	{ "private", HARD_OPT_PROP },
	{ "ptmxmode=0666", HARD_OPT_PTMXMODE },
	{ "rbind", HARD_OPT_BIND },
	{ "rdev", HARD_OPT_RDEV },
	{ "relatime", HARD_OPT_ATIME },
	{ "rexec", HARD_OPT_REXEC },
	{ "rnodev", HARD_OPT_RDEV },
	{ "rnoexec", HARD_OPT_REXEC },
	{ "rnosuid", HARD_OPT_RSUID },
	{ "ro", HARD_OPT_RW },
	{ "rprivate", HARD_OPT_PROP },
	{ "rshared", HARD_OPT_PROP },
	{ "rslave", HARD_OPT_PROP },
	{ "rsuid", HARD_OPT_RSUID },
	{ "runbindable", HARD_OPT_PROP },
	{ "rw", HARD_OPT_RW },
	{ "shared", HARD_OPT_PROP },
	{ "slave", HARD_OPT_PROP },
	{ "strictatime", HARD_OPT_ATIME },
	{ "suid", HARD_OPT_SUID },
	{ "unbindable", HARD_OPT_PROP },
};

static const struct {
	const char *prefix;
	enum hard_opt_group group;
} option_values[] = {
	{ "size=", HARD_OPT_SIZE },
	{ "mode=", HARD_OPT_MODE },
	{ "uid=", HARD_OPT_UID },
	{ "gid=", HARD_OPT_GID },
};

enum hard_opt_group hard_rule_option(const char *option)
{
	size_t low = 0, high = AQE_COUNT(option_words);

	while (low < high) {
		const size_t mid = low + (high - low) / 2;
		const int order = strcmp(option, option_words[mid].word);

		if (order == 0)
			return option_words[mid].group;
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	if (strchr(option, ',')) /* the kernel would read two options out of one string */
		return HARD_OPT_NONE;
	for (size_t i = 0; i < AQE_COUNT(option_values); i++)
		if (aqe_starts(option, option_values[i].prefix))
			return option_values[i].group;
	return HARD_OPT_NONE;
}

bool hard_rule_is_bind_word(const char *option)
{
	return hard_rule_option(option) == HARD_OPT_BIND;
}

bool hard_rule_is_shared_word(const char *option)
{
	return hard_rule_option(option) == HARD_OPT_PROP && !aqe_str_eq(option, "private") &&
	       !aqe_str_eq(option, "rprivate");
}

/* Types, sources and options as both engines write them (engines.md section 5); what they leave out
 * and the profile wants is in `required`. The runtime-spec's default file systems must be there:
 * without a fresh /dev the runtimes follow what the image put in its place (CVE-2026-41579). */
const struct hard_kernel_mount HARD_KERNEL_MOUNTS[] = {
	{
		.destination = "/proc",
		.types = { "proc" },
		.sources = { "proc" },
		.must = true,
		.opts = { .required = WORDS("nosuid", "noexec", "nodev"),
			  .allowed = WORDS("rw", "private", "rprivate", "relatime", "noatime"),
			  .canonical = WORDS("nosuid", "noexec", "nodev") },
	},
	{
		/* Docker leaves noexec out. Nobody but the namespace's root can write here: the
		 * default mode of a tmpfs, 1777, would let the agent. */
		.destination = "/dev",
		.types = { "tmpfs" },
		.sources = { "tmpfs" },
		.must = true,
		.opts = { .required = WORDS("nosuid"),
			  .allowed = WORDS("noexec", "rw", "strictatime", "relatime", "noatime",
					   "private", "rprivate", "mode=", "size="),
			  .groups = BIT(HARD_OPT_MODE) | BIT(HARD_OPT_SIZE),
			  .canonical = WORDS("nosuid", "noexec", "strictatime", "mode=755",
					     "size=65536k") },
	},
	{
		.destination = "/dev/pts",
		.types = { "devpts" },
		.sources = { "devpts" },
		.must = true,
		.opts = { .required = WORDS("nosuid", "noexec", "newinstance"),
			  .allowed = WORDS("rw", "ptmxmode=0666", "mode=", "gid=", "private",
					   "rprivate", "relatime", "noatime"),
			  .canonical = WORDS("nosuid", "noexec", "newinstance", "ptmxmode=0666",
					     "mode=0620", "gid=5") },
	},
	{
		.destination = "/dev/mqueue",
		.types = { "mqueue" },
		.sources = { "mqueue" },
		.opts = { .required = WORDS("nosuid", "noexec", "nodev"),
			  .allowed = WORDS("rw", "private", "rprivate", "relatime", "noatime"),
			  .canonical = WORDS("nosuid", "noexec", "nodev") },
	},
	{
		.destination = "/dev/shm",
		.types = { "tmpfs" },
		.sources = { "shm", "tmpfs" },
		.must = true,
		.opts = { .required = WORDS("nosuid", "noexec", "nodev"),
			  .allowed = WORDS("rw", "private", "rprivate", "relatime", "noatime",
					   "mode=", "size="),
			  .groups = BIT(HARD_OPT_SIZE),
			  .canonical =
				  WORDS("nosuid", "noexec", "nodev", "mode=1777", "size=65536k") },
	},
	{
		.destination = "/sys",
		.types = { "sysfs" },
		.sources = { "sysfs" },
		.must = true,
		.opts = { .required = WORDS("nosuid", "noexec", "nodev", "ro"),
			  .allowed = WORDS("private", "rprivate", "relatime", "noatime"),
			  .canonical = WORDS("nosuid", "noexec", "nodev", "ro") },
	},
	{
		/* A writable cgroup tree is the road of CVE-2022-0492. */
		.destination = "/sys/fs/cgroup",
		.types = { "cgroup", "cgroup2" },
		.sources = { "cgroup", "cgroup2" },
		.opts = { .required = WORDS("nosuid", "noexec", "nodev", "ro"),
			  .allowed = WORDS("private", "rprivate", "relatime", "noatime"),
			  .canonical = WORDS("rprivate", "nosuid", "noexec", "nodev", "relatime",
					     "ro") },
	},
};
const size_t HARD_KERNEL_MOUNTS_COUNT = AQE_COUNT(HARD_KERNEL_MOUNTS);

const struct hard_kernel_mount *hard_rule_kernel_mount(const char *destination)
{
	for (size_t i = 0; i < AQE_COUNT(HARD_KERNEL_MOUNTS); i++)
		if (aqe_str_eq(destination, HARD_KERNEL_MOUNTS[i].destination))
			return &HARD_KERNEL_MOUNTS[i];
	return NULL;
}

const struct hard_tmpfs_mount HARD_TMPFS_MOUNTS[] = {
	{ "/tmp", "1777", 7 },
	{ "/run", "0755", 1 },
};
const size_t HARD_TMPFS_MOUNTS_COUNT = AQE_COUNT(HARD_TMPFS_MOUNTS);

const struct hard_opt_rule HARD_TMPFS_OPTS = {
	.required = WORDS("nosuid", "nodev"),
	.allowed = WORDS("rw", "noexec", "private", "rprivate", "relatime", "noatime",
			 "strictatime", "nodiratime", "size=", "mode=", "uid=", "gid="),
	.groups = BIT(HARD_OPT_SIZE),
	.canonical = WORDS("rw", "nosuid", "nodev", "noexec", "rprivate"),
};

const struct hard_tmpfs_mount *hard_rule_tmpfs(const char *destination)
{
	for (size_t i = 0; i < AQE_COUNT(HARD_TMPFS_MOUNTS); i++)
		if (aqe_str_eq(destination, HARD_TMPFS_MOUNTS[i].destination))
			return &HARD_TMPFS_MOUNTS[i];
	return NULL;
}

/* crun 1.8.1 drops nosuid, nodev and noexec of a writable bind when the container has a user
 * namespace; the recursive words work there on directories, and in runc 1.1 (measured). */
const struct hard_opt_rule HARD_BIND_OPTS = {
	.required = WORDS("nosuid", "nodev"),
	.allowed = WORDS("rw", "ro", "bind", "rbind", "private", "rprivate", "noexec", "rnosuid",
			 "rnodev", "rnoexec", "relatime", "noatime", "nodiratime"),
	.groups = BIT(HARD_OPT_RW) | BIT(HARD_OPT_BIND) | BIT(HARD_OPT_PROP),
	.canonical = WORDS("nosuid", "nodev", "rprivate", "bind"),
};

bool hard_rule_mount_applies(const struct hard_mount *m, const char *agent_type)
{
	if (m->n_types == 0)
		return true;
	for (size_t i = 0; i < m->n_types; i++)
		if (aqe_str_eq(m->types[i], agent_type))
			return true;
	return false;
}

const struct hard_mount *hard_rule_policy_mount(const struct hard_ctx *ctx, const char *destination)
{
	for (size_t i = 0; i < ctx->policy->n_mounts; i++) {
		const struct hard_mount *m = &ctx->policy->mounts[i];

		if (aqe_str_eq(m->destination, destination) &&
		    hard_rule_mount_applies(m, ctx->agent->type))
			return m;
	}
	return NULL;
}
