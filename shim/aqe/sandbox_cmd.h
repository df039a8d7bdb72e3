/* SPDX-License-Identifier: MIT */
/* What the commands below `aqe sandbox` have in common. */
#ifndef AQE_AQE_SANDBOX_CMD_H
#define AQE_AQE_SANDBOX_CMD_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/core/arena.h"
#include "shim/core/buf.h"
#include "shim/core/cli.h"
#include "shim/core/err.h"
#include "shim/sandbox/box.h"

#define SHIM_SB_ENV_MAX 256

/* Ids of options; each command's table has those it takes. */
enum shim_sb_opt {
	SHIM_SB_FORMAT = 1,
	SHIM_SB_DATA_DIR,
	SHIM_SB_ENGINE,
	SHIM_SB_TYPE,
	SHIM_SB_ID,
	SHIM_SB_IMAGE,
	SHIM_SB_ROOTFS,
	SHIM_SB_CPUS,
	SHIM_SB_MEMORY,
	SHIM_SB_DISK,
	SHIM_SB_PIDS,
	SHIM_SB_NETWORK,
	SHIM_SB_USER,
	SHIM_SB_WORKDIR,
	SHIM_SB_ENV,
	SHIM_SB_READ_ONLY,
	SHIM_SB_RESTART,
	SHIM_SB_GRACE,
	SHIM_SB_START_TIMEOUT,
	SHIM_SB_HEALTH_CMD,
	SHIM_SB_HEALTH_INTERVAL,
	SHIM_SB_HEALTH_TIMEOUT,
	SHIM_SB_HEALTH_RETRIES,
	SHIM_SB_HEALTH_START,
	SHIM_SB_OOM,
	SHIM_SB_RM,
	SHIM_SB_DETACH,
	SHIM_SB_FORCE,
	SHIM_SB_ALL,
	SHIM_SB_QUIET,
	SHIM_SB_WATCH,
	SHIM_SB_SORT,
	SHIM_SB_TAIL,
	SHIM_SB_SINCE,
	SHIM_SB_FOLLOW,
	SHIM_SB_TIMESTAMPS,
	SHIM_SB_TTY,
	SHIM_SB_SANDBOX,
	SHIM_SB_INTERVAL,
	SHIM_SB_COUNT,
	SHIM_SB_OPTS,
};
#define SHIM_SB_OPT_FORMAT                                                      \
	{                                                                       \
		"format", 0, "FORMAT", "text (default) or json", SHIM_SB_FORMAT \
	}
#define SHIM_SB_OPT_DATA                                                                      \
	{                                                                                     \
		"data-dir", 0, "DIR", "where sandboxes and images are kept", SHIM_SB_DATA_DIR \
	}
#define SHIM_SB_OPT_END                \
	{                              \
		NULL, 0, NULL, NULL, 0 \
	}

struct shim_sb {
	const struct aqe_cli_cmd *cmd;
	const char *value[SHIM_SB_OPTS]; /* NULL: not given; "" for a flag */
	const char *env[SHIM_SB_ENV_MAX];
	size_t n_env;
	char **words; /* operands, or from the first operand on all words */
	size_t n_words;
	bool json;
	struct aqe_arena *arena;
	struct shim_place place;
};
/* How operands are read. */
enum shim_sb_words {
	SHIM_SB_OPERANDS, /* anywhere between the options */
	SHIM_SB_REST,     /* the first one ends the options */
	SHIM_SB_PURE,     /* operands; and no place is needed */
};
/* Reads the words, makes the arena and opens the place. -1: go on, and call shim_sb_done() in the
 * end; else the exit status of a command that is done. */
int shim_sb_begin(struct shim_sb *sb, const struct aqe_cli_cmd *cmd, enum shim_sb_words how,
		  size_t min, size_t max, int argc, char **argv);
void shim_sb_done(struct shim_sb *sb);
/* "aqe sandbox NAME: TEXT" on standard error; the exit status of the error. */
int shim_sb_fail(const struct shim_sb *sb, const struct aqe_err *e);
/* Writes the buffer to standard output and empties it; false when that fails. */
bool shim_sb_print(struct aqe_buf *b);

/* Every sandbox, in the order of names; `fn` gets each opened and closes nothing. A sandbox that
 * goes away meanwhile is left out. */
typedef int shim_sb_each_fn(void *arg, struct shim_box *b, struct aqe_err *e);
AQE_MUST_CHECK int shim_sb_each(struct shim_sb *sb, shim_sb_each_fn *fn, void *arg,
				struct aqe_err *e);
/* Waits until `done` says 1 (0: not yet; negative: no use waiting). AQE_E_TIMEOUT after `ms`. */
AQE_MUST_CHECK int shim_sb_wait(struct shim_box *b, uint32_t ms,
				int (*done)(struct shim_box *b, const struct shim_seen *s),
				struct aqe_err *e);
/* What a sandbox does, and the one word for it. One that should run but has lost its monitor gets a
 * new one first. */
AQE_MUST_CHECK int shim_sb_look(struct shim_box *b, struct shim_seen *ret, const char **ret_word,
				struct aqe_err *e);
/* A sandbox as a JSON object; NULL without memory. */
struct aqe_json *shim_sb_json(struct aqe_arena *a, struct shim_box *b, const struct shim_seen *s,
			      const char *word);

/* ---- the commands; argv[0] is their own name ---- */
int shim_sandbox_create(int argc, char **argv);
int shim_sandbox_run(int argc, char **argv);
int shim_sandbox_start(int argc, char **argv);
int shim_sandbox_list(int argc, char **argv);
int shim_sandbox_stats(int argc, char **argv);
int shim_sandbox_top(int argc, char **argv);
int shim_sandbox_stop(int argc, char **argv);
int shim_sandbox_rm(int argc, char **argv);
int shim_sandbox_destroy_all(int argc, char **argv);
int shim_sandbox_reset(int argc, char **argv);
int shim_sandbox_logs(int argc, char **argv);
int shim_sandbox_events(int argc, char **argv);
int shim_sandbox_exec(int argc, char **argv);
int shim_sandbox_health(int argc, char **argv);
int shim_sandbox_inspect(int argc, char **argv);
int shim_sandbox_types(int argc, char **argv);
int shim_sandbox_images(int argc, char **argv);
int shim_sandbox_rmi(int argc, char **argv);

/* Follows a sandbox's output on our own streams until it does not run any more
 * (cmd_sandbox_logs.c).
 */
AQE_MUST_CHECK int shim_sandbox_follow(struct shim_box *b, struct aqe_err *e);
/* Signals that `run` has got: the first one asks the sandbox to stop, the second to be killed. */
int shim_sandbox_interrupts(void);
/* Wishes it down and waits until it is (cmd_sandbox_end.c). */
AQE_MUST_CHECK int shim_sandbox_end(struct shim_box *b, bool kill, struct aqe_err *e);
/* Stops it if it runs, removes it. */
AQE_MUST_CHECK int shim_sandbox_remove(struct shim_box *b, struct aqe_err *e);

#endif
