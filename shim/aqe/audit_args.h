/* SPDX-License-Identifier: MIT */
/* What the commands of `aqe audit` share: options, the place of the log, errors. */
#ifndef AQE_AQE_AUDIT_ARGS_H
#define AQE_AQE_AUDIT_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/log.h"
#include "audit/query.h"
#include "shim/core/arena.h"
#include "shim/core/cli.h"
#include "shim/core/err.h"

/* ids of the shared options; a command's own begin at SHIM_OPT_OWN */
enum shim_audit_opt {
	SHIM_OPT_LOG = 1,
	SHIM_OPT_KEY_DIR,
	SHIM_OPT_SINCE,
	SHIM_OPT_UNTIL,
	SHIM_OPT_AGENT,
	SHIM_OPT_TYPE,
	SHIM_OPT_DOMAIN,
	SHIM_OPT_ACTION,
	SHIM_OPT_KIND,
	SHIM_OPT_CONTAINER,
	SHIM_OPT_LIMIT,
	SHIM_OPT_OFFSET,
	SHIM_OPT_FORMAT,
	SHIM_OPT_OWN,
};
/* clang-format off: rows of option tables */
#define SHIM_AUDIT_OPT_LOG                                                                     \
	{                                                                                      \
		"log", 0, "PATH",                                                              \
			"the log's folder, or a database file to read (default: the policy's " \
			"audit.path, else " AUDIT_DIR_SYSTEM                                   \
			" for root and ~/.local/state/" AUDIT_DIR_USER " for others)",         \
			SHIM_OPT_LOG                                                           \
	}
#define SHIM_AUDIT_OPT_KEY_DIR                                                         \
	{                                                                              \
		"key-dir", 0, "DIR", "folder of the signing key (default: the log's)", \
			SHIM_OPT_KEY_DIR                                               \
	}
#define SHIM_AUDIT_OPTS_FILTER                                                               \
	{ "since", 0, "TIME",                                                                \
	  "from here on: 1h, 2d, today, 2026-01-31, 2026-01-31T12:30Z, @1769860800; "        \
	  "UTC, inclusive; 'all' is everything",                                             \
	  SHIM_OPT_SINCE },                                                                  \
		{ "until", 0, "TIME", "to here, inclusive", SHIM_OPT_UNTIL },                \
		{ "agent", 'a', "ID", "the agent's own name", SHIM_OPT_AGENT },              \
		{ "type", 't', "TYPE", "agent type", SHIM_OPT_TYPE },                        \
		{ "domain", 'd', "NAME", "host name asked for, exactly", SHIM_OPT_DOMAIN },  \
		{ "action", 0, "ACTION", "allowed, blocked, rate_limited, refused, changed", \
		  SHIM_OPT_ACTION },                                                         \
		{ "kind", 'k', "KIND",                                                       \
		  "start, exec, update, restore, stop, refusal, request, policy, waiver, "   \
		  "system",                                                                  \
		  SHIM_OPT_KIND },                                                           \
	{                                                                                    \
		"container", 'c', "ID", "container id, in full", SHIM_OPT_CONTAINER          \
	}
#define SHIM_AUDIT_OPT_END             \
	{                              \
		NULL, 0, NULL, NULL, 0 \
	}
/* clang-format on */

struct shim_audit_args {
	const struct aqe_cli_cmd *cmd;
	struct aqe_arena *arena; /* lives until the command ends */
	int64_t now_ns;
	const char *log, *key_dir;
	struct audit_filter filter;
	bool has_since, has_until;
	/* allowed values of --format, NULL-terminated, the first is the default; NULL: no such
	 * option */
	const char *const *formats;
	size_t format; /* index of the one chosen */
	/* The command's own options and operands (id AQE_CLI_OPERAND); may be NULL. `c` is where
	 * the command line is. 0 or an error. */
	int (*own)(void *self, int id, struct aqe_cli *c, struct aqe_err *e);
	void *self;
};

/* Reads the command line into `args`, whose first members the command has set (arena, formats, own,
 * self; filter with AUDIT_FILTER_INIT). SHIM_AUDIT_RUN, or the status to exit with: help was
 * printed, or an error on stderr. */
#define SHIM_AUDIT_RUN (-1)
int shim_audit_parse(struct shim_audit_args *args, const struct aqe_cli_cmd *cmd, int argc,
		     char **argv);
/* A size like 1G, a count, a duration: AQE_E_USAGE names the option. */
AQE_MUST_CHECK int shim_audit_take_u64(const char *option, const char *value, uint64_t max,
				       uint64_t *ret, struct aqe_err *e);

/* Where the log is that the command line names. */
AQE_MUST_CHECK int shim_audit_place(const struct shim_audit_args *args, enum audit_mode mode,
				    struct audit_opts *ret, struct aqe_err *e);
AQE_MUST_CHECK int shim_audit_open(const struct shim_audit_args *args, enum audit_mode mode,
				   struct audit_log **ret, struct aqe_err *e);

/* Prints "COMMAND: TEXT" and returns the exit status of the error: 2 usage, 4 no memory or a fault
 * of our own, 1 all others. */
int shim_audit_fail(const struct aqe_cli_cmd *cmd, const struct aqe_err *e);
/* Writes `b` to standard output, empties it. */
AQE_MUST_CHECK int shim_audit_write(struct aqe_buf *b, struct aqe_err *e);
/* Columns of the terminal on standard output; 0 when it is none. */
size_t shim_audit_width(void);
/* Colour is wanted: a terminal, no NO_COLOR, no TERM=dumb. */
bool shim_audit_colour(void);

/* ---- the commands: aqe audit NAME ---- */
int shim_audit_list(int argc, char **argv);
int shim_audit_stats(int argc, char **argv);
int shim_audit_tail(int argc, char **argv);
int shim_audit_export(int argc, char **argv);
int shim_audit_verify(int argc, char **argv);
int shim_audit_head(int argc, char **argv);
int shim_audit_anchor(int argc, char **argv);
int shim_audit_key(int argc, char **argv);
int shim_audit_checkpoint(int argc, char **argv);
int shim_audit_prune(int argc, char **argv);
int shim_audit_import(int argc, char **argv);
int shim_audit_ship(int argc, char **argv);

#endif
