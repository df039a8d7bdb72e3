/* SPDX-License-Identifier: MIT */
/* aqe supervise: one thing that is started, watched and started again. What it is (a process, a
 * container of an engine, an OCI bundle) is a target; the rest is the same for all. */
#ifndef AQE_AQE_SUPERVISE_H
#define AQE_AQE_SUPERVISE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shim/core/arena.h"
#include "shim/sandbox/place.h"
#include "shim/supervisor/supervisor.h"

enum shim_target_kind { SHIM_TARGET_PROCESS, SHIM_TARGET_ENGINE, SHIM_TARGET_BUNDLE };

struct shim_target {
	enum shim_target_kind kind;
	const char *id;     /* of the failure count */
	const char *engine; /* ENGINE: "podman" or "docker"; else NULL */
	const char *name;   /* ENGINE: the container; BUNDLE: the id at the runtime */
	const char *bundle, *runtime,
		*root;             /* BUNDLE: absolute paths; root NULL: the runtime's own */
	char **argv;               /* PROCESS */
	const char *path;          /* PROCESS: of argv[0] */
	uint32_t grace_ms;         /* from SIGTERM to SIGKILL */
	uint32_t start_timeout_ms; /* ENGINE: of one start */
	bool always;               /* an end with success is no end */
	struct aqe_arena *arena;
	int fd; /* ENGINE, BUNDLE: a folder of its own, for the pid; -1 */
};

/* What a target tells its owner besides what the machine does. */
struct shim_target_hooks {
	void *arg;
	void (*started)(void *arg, pid_t pid); /* 0: not known; before every state that follows */
	void (*ended)(void *arg, int status);  /* of waitpid(2); -1: not known */
	void (*failed)(void *arg, const char *text);
};

/* Is it there at all? AQE_E_ABSENT with a text for people. */
AQE_MUST_CHECK int shim_target_look(struct shim_target *t, struct aqe_err *e);
/* The driver; `t` and `hooks` must outlive it. */
AQE_MUST_CHECK int shim_target_driver(struct shim_target *t, const struct shim_target_hooks *hooks,
				      struct shim_loop *loop, struct shim_sup_driver *ret,
				      struct aqe_err *e);
/* ENGINE: how the instance ended that was told to have, as far as the engine knew. */
struct shim_target_end {
	int64_t exit_code; /* -1: not known; 128 + signal */
	bool oom_killed;
};
struct shim_target_end shim_target_last(const struct shim_target *t);
/* PROCESS: sends it a signal; others, and none that runs: nothing. */
void shim_target_signal(struct shim_target *t, pid_t pid, int sig);

/* ---- commands beside the main one; argv[0] is their own name ---- */
int shim_supervise_status(int argc, char **argv);
int shim_supervise_reset(int argc, char **argv);

/* "reset" of an id that is supervised at the moment: a file of this name, which its supervisor
 * removes. */
#define SHIM_SUPERVISE_RESET ".reset"
/* Below the data folder: FOLDER/ID/ of what is not a process, with the engine's id of it. */
#define SHIM_SUPERVISE_FOLDER    "supervised"
#define SHIM_SUPERVISE_CONTAINER "container"

struct shim_sb;
/* The folder of the shim's own counts of engines' containers (runtime_restart.c): the place's, or a
 * rootless user's, which is opened into *ret_own (cmd_sandbox_end.c). */
int shim_sb_counts(const struct shim_sb *sb, int *ret_own);

#endif
