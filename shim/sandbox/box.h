/* SPDX-License-Identifier: MIT */
/* One sandbox on disk: its plan, what is wanted of it, and what its monitor last saw. */
#ifndef AQE_SANDBOX_BOX_H
#define AQE_SANDBOX_BOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shim/sandbox/place.h"
#include "shim/sandbox/plan.h"

#define SHIM_WANT_FILE      "want.json"
#define SHIM_STATE_FILE     "state.json"
#define SHIM_CONTAINER_FILE "container" /* its id at an engine, 64 hexadecimal digits */

/* What people want; written by commands, read by the monitor. */
struct shim_want {
	bool up;
	bool kill;       /* with `up` false: no grace */
	bool destroy;    /* and then remove it */
	uint64_t resets; /* counts; a change is a reset */
};
extern const struct shim_field SHIM_WANT_FIELDS[];

/* What is; written by the monitor. */
struct shim_seen {
	const char *status;    /* "created", or the supervisor's state, or "exited" */
	const char *health;    /* "none", "starting", "healthy", "unhealthy" */
	const char *error;     /* of the last failure; NULL: none */
	const char *hold;      /* "crash_loop", "refused"; NULL: none */
	const char *container; /* id at the engine */
	uint32_t pid;          /* 0: none */
	uint64_t pid_start;    /* aqe_proc_start_time() */
	int64_t started_s, ended_s, next_start_s; /* 0: not */
	int64_t exit_code;                        /* -1: none, or nobody saw it; 128 + signal */
	bool oom_killed;
	uint32_t starts, failures;
};
extern const struct shim_field SHIM_SEEN_FIELDS[];
#define SHIM_SEEN_INIT                               \
	{                                            \
		.status = "created", .exit_code = -1 \
	}

struct shim_box {
	struct aqe_arena *arena; /* borrowed */
	const struct shim_place *place;
	int fd;           /* its folder; -1 when not open */
	const char *name; /* in the arena */
	const char *path; /* absolute */
	struct shim_plan plan;
};
#define SHIM_BOX_INIT                       \
	{                                   \
		NULL, NULL, -1, NULL, NULL, \
		{                           \
			0                   \
		}                           \
	}

/* Makes the folder of a plan, under a name that is free, and writes plan and want (down). The
 * plan's name is set. */
AQE_MUST_CHECK int shim_box_make(struct aqe_arena *a, const struct shim_place *place,
				 const struct shim_plan *plan, struct shim_box *ret,
				 struct aqe_err *e);
/* Opens one by its name. AQE_E_ABSENT: "sandbox 'NAME' not found". */
AQE_MUST_CHECK int shim_box_open(struct aqe_arena *a, const struct shim_place *place,
				 const char *name, struct shim_box *ret, struct aqe_err *e);
/* By name, by agent id, or by an unambiguous beginning of the name or id (4 characters or more). */
AQE_MUST_CHECK int shim_box_find(struct aqe_arena *a, const struct shim_place *place,
				 const char *what, struct shim_box *ret, struct aqe_err *e);
void shim_box_done(struct shim_box *b);
#define SHIM_AUTO_BOX AQE_CLEANUP(shim_box_done)
/* Removes the folder and the failure count. */
AQE_MUST_CHECK int shim_box_remove(struct shim_box *b, struct aqe_err *e);

/* Removes what was left by processes that died while they made or removed a sandbox: folders
 * without a plan. Does nothing while one is being made (shim_images_lock()): the next one does it.
 */
void shim_box_sweep(struct aqe_arena *a, const struct shim_place *place);

AQE_MUST_CHECK int shim_box_want(const struct shim_box *b, struct shim_want *ret,
				 struct aqe_err *e);
AQE_MUST_CHECK int shim_box_set_want(const struct shim_box *b, const struct shim_want *w,
				     struct aqe_err *e);
/* Never written yet is "created". */
AQE_MUST_CHECK int shim_box_seen(const struct shim_box *b, struct shim_seen *ret,
				 struct aqe_err *e);
AQE_MUST_CHECK int shim_box_set_seen(const struct shim_box *b, const struct shim_seen *s,
				     struct aqe_err *e);

/* True while a monitor holds the sandbox. */
bool shim_box_is_supervised(const struct shim_box *b);
/* True when the process is there, has not ended and is the one that was seen. */
bool shim_seen_runs(const struct shim_seen *s);
/* "running", "restarting", "held", ...: the one word for people. */
const char *shim_seen_word(const struct shim_seen *s, bool supervised);

#endif
