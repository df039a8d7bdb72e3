/* SPDX-License-Identifier: MIT */
/* crun 1.8.1's and runc 1.1.5's options, and those of later versions that engines are known to
 * use. */
#include "shim/argv.h"

#include <stddef.h>

#define PASS    SHIM_OPT_PASS
#define PATH    SHIM_OPT_PATH
#define CONSUME SHIM_OPT_CONSUME
#define ZERO    SHIM_OPT_ZERO
#define REFUSE  SHIM_OPT_REFUSE
#define HELP                                  \
	{                                     \
		"help", 'h', 0, CONSUME, NULL \
	}
#define END                            \
	{                              \
		NULL, 0, 0, PASS, NULL \
	}
#define PRESERVE_FDS                                                             \
	{                                                                        \
		"preserve-fds", 0, 1, ZERO,                                      \
			"open descriptors of the host would enter the container" \
	}
#define CREATE_OPTIONS                                                                         \
	{ "bundle", 'b', 1, CONSUME, NULL }, { "console-socket", 0, 1, PATH, NULL },           \
		{ "pid-file", 0, 1, PATH, NULL },                                              \
		{ "no-pivot", 0, 0, REFUSE,                                                    \
		  "without pivot_root the host's root stays reachable" },                      \
		{ "no-new-keyring", 0, 0, REFUSE,                                              \
		  "the caller's keyring would enter the container" },                          \
		{ "config", 'f', 1, REFUSE, "the document must be the bundle's config.json" }, \
		PRESERVE_FDS, HELP

const struct shim_opt SHIM_GLOBALS[] = {
	{ "root", 0, 1, PATH, NULL },           { "log", 0, 1, PATH, NULL },
	{ "log-format", 0, 1, PASS, NULL },     { "log-level", 0, 1, PASS, NULL },
	{ "systemd-cgroup", 0, 0, PASS, NULL }, { "cgroup-manager", 0, 1, PASS, NULL },
	{ "rootless", 0, 1, PASS, NULL },       { "criu", 0, 1, PATH, NULL },
	{ "debug", 0, 0, PASS, NULL },          { "version", 'v', 0, CONSUME, NULL },
	{ "version", 'V', 0, CONSUME, NULL },   { "help", 'h', 0, CONSUME, NULL },
	{ "help", '?', 0, CONSUME, NULL },      END,
};

static const struct shim_opt opts_help_only[] = { HELP, END };

static const struct shim_opt opts_create[] = {
	CREATE_OPTIONS,
	{ "no-subreaper", 0, 0, PASS, NULL },
	END,
};

static const struct shim_opt opts_run[] = {
	CREATE_OPTIONS,
	{ "no-subreaper", 0, 0, CONSUME, NULL },
	{ "detach", 'd', 0, CONSUME, NULL },
	{ "keep", 0, 0, CONSUME, NULL },
	END,
};

/* Refused as a verb; the table is here so that `--help` is found and the words can be read. */
static const struct shim_opt opts_restore[] = {
	CREATE_OPTIONS,
	{ "image-path", 0, 1, PATH, NULL },
	{ "work-path", 0, 1, PATH, NULL },
	{ "tcp-established", 0, 0, PASS, NULL },
	{ "ext-unix-sk", 0, 0, PASS, NULL },
	{ "shell-job", 0, 0, PASS, NULL },
	{ "file-locks", 0, 0, PASS, NULL },
	{ "manage-cgroups-mode", 0, 1, PASS, NULL },
	{ "detach", 'd', 0, PASS, NULL },
	{ "no-subreaper", 0, 0, PASS, NULL },
	{ "empty-ns", 0, 1, PASS, NULL },
	{ "auto-dedup", 0, 0, PASS, NULL },
	{ "lazy-pages", 0, 0, PASS, NULL },
	{ "lsm-profile", 0, 1, PASS, NULL },
	{ "lsm-mount-context", 0, 1, PASS, NULL },
	END,
};

static const struct shim_opt opts_exec[] = {
	{ "process", 'p', 1, CONSUME, NULL },
	{ "console-socket", 0, 1, PATH, NULL },
	{ "pid-file", 0, 1, PATH, NULL },
	{ "detach", 'd', 0, PASS, NULL },
	{ "ignore-paused", 0, 0, PASS, NULL },
	{ "tty", 't', 0, CONSUME, NULL },
	{ "cwd", 0, 1, CONSUME, NULL },
	{ "env", 'e', 1, CONSUME, NULL },
	{ "user", 'u', 1, CONSUME, NULL },
	{ "additional-gids", 'g', 1, CONSUME, NULL },
	{ "cap", 'c', 1, CONSUME, NULL },
	{ "no-new-privs", 0, 0, CONSUME, NULL },
	{ "apparmor", 0, 1, CONSUME, NULL },
	{ "process-label", 0, 1, CONSUME, NULL },
	{ "cgroup", 0, 1, REFUSE, "the process would leave the container's limits" },
	PRESERVE_FDS,
	HELP,
	END,
};

static const struct shim_opt opts_update[] = {
	{ "resources", 'r', 1, CONSUME, NULL },
	{ "blkio-weight", 0, 1, CONSUME, NULL },
	{ "cpu-period", 0, 1, CONSUME, NULL },
	{ "cpu-quota", 0, 1, CONSUME, NULL },
	{ "cpu-burst", 0, 1, CONSUME, NULL },
	{ "cpu-share", 0, 1, CONSUME, NULL },
	{ "cpu-rt-period", 0, 1, CONSUME, NULL },
	{ "cpu-rt-runtime", 0, 1, CONSUME, NULL },
	{ "cpu-idle", 0, 1, CONSUME, NULL },
	{ "cpuset-cpus", 0, 1, CONSUME, NULL },
	{ "cpuset-mems", 0, 1, CONSUME, NULL },
	{ "kernel-memory", 0, 1, CONSUME, NULL },
	{ "kernel-memory-tcp", 0, 1, CONSUME, NULL },
	{ "memory", 0, 1, CONSUME, NULL },
	{ "memory-reservation", 0, 1, CONSUME, NULL },
	{ "memory-swap", 0, 1, CONSUME, NULL },
	{ "pids-limit", 0, 1, CONSUME, NULL },
	{ "l3-cache-schema", 0, 1, REFUSE, "Intel RDT is not part of the profile" },
	{ "mem-bw-schema", 0, 1, REFUSE, "Intel RDT is not part of the profile" },
	HELP,
	END,
};

static const struct shim_opt opts_kill[] = {
	{ "all", 'a', 0, PASS, NULL },
	{ "regex", 'r', 0, PASS, NULL },
	HELP,
	END,
};

static const struct shim_opt opts_delete[] = {
	{ "force", 'f', 0, PASS, NULL },
	{ "regex", 'r', 0, PASS, NULL },
	HELP,
	END,
};

static const struct shim_opt opts_ps[] = {
	{ "format", 'f', 1, PASS, NULL },
	HELP,
	END,
};

static const struct shim_opt opts_events[] = {
	{ "interval", 0, 1, PASS, NULL },
	{ "stats", 0, 0, PASS, NULL },
	HELP,
	END,
};

#define CREATE_SYNOPSIS "[--bundle DIR] [--pid-file FILE] [--console-socket SOCKET] ID"

const struct shim_verb_row SHIM_VERBS[SHIM_VERB_COUNT] = {
	/*                     name      options         synopsis         strict id  rest */
	[SHIM_VERB_HELP] = { "help", opts_help_only, "", false, false, true },
	[SHIM_VERB_VERSION] = { "version", opts_help_only, "", false, false, true },
	[SHIM_VERB_CREATE] = { "create", opts_create, CREATE_SYNOPSIS, true, true, false },
	[SHIM_VERB_START] = { "start", opts_help_only, "ID", true, true, false },
	[SHIM_VERB_RUN] = { "run", opts_run, "[--detach] " CREATE_SYNOPSIS, true, true, false },
	[SHIM_VERB_EXEC] = { "exec", opts_exec,
			     "[--process FILE] [--tty] [--detach] ID [COMMAND...]", true, true,
			     true },
	[SHIM_VERB_UPDATE] = { "update", opts_update,
			       "[--resources FILE|-] [--memory N] [--pids-limit N] ... ID", true,
			       true, false },
	[SHIM_VERB_RESTORE] = { "restore", opts_restore, "ID", true, true, false },
	[SHIM_VERB_CHECKPOINT] = { "checkpoint", opts_help_only, "ID", false, true, true },
	[SHIM_VERB_KILL] = { "kill", opts_kill, "[--all] ID [SIGNAL]", false, true, true },
	[SHIM_VERB_DELETE] = { "delete", opts_delete, "[--force] ID", false, true, true },
	[SHIM_VERB_STATE] = { "state", opts_help_only, "ID", false, true, true },
	[SHIM_VERB_LIST] = { "list", opts_help_only, "", false, false, true },
	[SHIM_VERB_PS] = { "ps", opts_ps, "[--format FORMAT] ID", false, true, true },
	[SHIM_VERB_PAUSE] = { "pause", opts_help_only, "ID", false, true, true },
	[SHIM_VERB_RESUME] = { "resume", opts_help_only, "ID", false, true, true },
	[SHIM_VERB_EVENTS] = { "events", opts_events, "[--stats] ID", false, true, true },
	[SHIM_VERB_SPEC] = { "spec", opts_help_only, "", false, false, true },
	[SHIM_VERB_FEATURES] = { "features", opts_help_only, "", false, false, true },
};
