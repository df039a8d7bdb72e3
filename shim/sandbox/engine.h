/* SPDX-License-Identifier: MIT */
/* The engine port: who makes a sandbox's container. Calls block; a monitor makes them in a process
 * of their own, which it kills when they take too long. They are safe to repeat: what is there
 * already, or gone already, is a success.
 *
 * Errors: AQE_E_REFUSED from start() and create() is a policy's refusal; AQE_E_ABSENT: the engine
 * (or its program) is not on this machine, or does not answer, and the text says so; everything
 * else is a failure. */
#ifndef AQE_SANDBOX_ENGINE_H
#define AQE_SANDBOX_ENGINE_H

#include "shim/sandbox/box.h"

/* What an engine knows of the container. */
struct shim_engine_state {
	bool exists, running, oom_killed;
	pid_t pid;             /* 0: none, or not told */
	int64_t exit_code;     /* -1: none, or not known */
	const char *container; /* id, in the box's arena; may be NULL */
};

struct shim_exec_opts {
	char *const *argv; /* NULL ends it */
	bool tty;
	const char *user, *workdir; /* may be NULL */
};

struct shim_engine_ops {
	const char *name;
	/* Completes and judges a plan before anything is made: image, user, command. */
	int (*prepare)(struct aqe_arena *a, const struct shim_place *place, struct shim_plan *plan,
		       struct aqe_err *e);
	/* Makes what start() needs; the container does not run yet. */
	int (*create)(struct shim_box *b, struct aqe_err *e);
	int (*start)(struct shim_box *b, struct aqe_err *e);
	int (*state)(struct shim_box *b, struct shim_engine_state *ret, struct aqe_err *e);
	/* SIGTERM, `grace_ms`, SIGKILL; returns when the container can be started again. */
	int (*stop)(struct shim_box *b, uint32_t grace_ms, struct aqe_err *e);
	/* Removes the container for good. */
	int (*destroy)(struct shim_box *b, struct aqe_err *e);
	/* Runs a command inside, with our standard streams; its exit status. */
	int (*exec)(struct shim_box *b, const struct shim_exec_opts *o, int *ret_status,
		    struct aqe_err *e);
	/* Folder and names (oldest first) of its log files. */
	int (*logs)(struct shim_box *b, int *ret_dirfd, const char *const **ret_names,
		    size_t *ret_n, struct aqe_err *e);
};

/* By name; NULL when there is no such engine. */
const struct shim_engine_ops *shim_engine_find(const char *name);

/* The drivers. */
extern const struct shim_engine_ops SHIM_ENGINE_OCI;
extern const struct shim_engine_ops SHIM_ENGINE_PODMAN;
extern const struct shim_engine_ops SHIM_ENGINE_DOCKER;

/* Are these words of the shim a verdict of the policy? An id that another call still holds is none:
 * that passes by itself. */
bool shim_engine_is_verdict(const char *msg);

/* Absolute path of aqe-shim: AQE_SHIM, or the one beside our own program, or the usual places. */
AQE_MUST_CHECK int shim_engine_shim_path(struct aqe_arena *a, const char **ret, struct aqe_err *e);

#endif
