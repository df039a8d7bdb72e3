/* SPDX-License-Identifier: MIT */
/* The command line of an OCI runtime as engines spell it: crun's and runc's options together, one
 * const table a verb. What is not in a table is refused, so that no option of a newer runtime and
 * no abbreviation that only getopt understands goes past the rules. Pure: nothing is opened. */
#ifndef AQE_SHIM_ARGV_H
#define AQE_SHIM_ARGV_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/core/arena.h"
#include "shim/core/err.h"

enum shim_verb {
	SHIM_VERB_HELP, /* ours: `--help` without a verb */
	SHIM_VERB_VERSION,
	SHIM_VERB_CREATE,
	SHIM_VERB_START,
	SHIM_VERB_RUN,
	SHIM_VERB_EXEC,
	SHIM_VERB_UPDATE,
	SHIM_VERB_RESTORE,
	SHIM_VERB_CHECKPOINT,
	SHIM_VERB_KILL,
	SHIM_VERB_DELETE,
	SHIM_VERB_STATE,
	SHIM_VERB_LIST,
	SHIM_VERB_PS,
	SHIM_VERB_PAUSE,
	SHIM_VERB_RESUME,
	SHIM_VERB_EVENTS,
	SHIM_VERB_SPEC,
	SHIM_VERB_FEATURES,
	SHIM_VERB_COUNT,
};

enum shim_opt_class {
	SHIM_OPT_PASS,    /* given to the low-level runtime */
	SHIM_OPT_PATH,    /* the same; names a file or socket and must not be empty */
	SHIM_OPT_CONSUME, /* read by us, not passed on */
	SHIM_OPT_ZERO,    /* refused, but the argument "0" is accepted and dropped */
	SHIM_OPT_REFUSE,  /* refused */
};

struct shim_opt {
	const char *name; /* long name without dashes; NULL ends a table */
	char letter;      /* short form or 0 */
	bool has_arg;
	enum shim_opt_class class;
	const char *why; /* for ZERO and REFUSE: one clause */
};

struct shim_verb_row {
	const char *name;
	const struct shim_opt *opts;
	const char *synopsis;
	/* strict: unknown options and surplus words are refused and the words given to the runtime
	 * are built anew; otherwise they are passed on as they came, because refusing a `kill` or a
	 * `delete` leaks what it was meant to clean up (engines.md finding 4) */
	bool strict;
	bool takes_id, takes_rest;
};
extern const struct shim_verb_row SHIM_VERBS[SHIM_VERB_COUNT];
/* Options before the verb. */
extern const struct shim_opt SHIM_GLOBALS[];

struct shim_optval {
	const struct shim_opt *opt;
	const char *value; /* NULL for a flag */
};

struct shim_argv {
	enum shim_verb verb;
	char **words; /* all words after argv[0], as they came, NULL-terminated */
	struct shim_optval *global, *option;
	size_t n_global, n_option;
	const char *id; /* NULL when there is none or it cannot be told */
	char **rest;    /* words after the id, NULL-terminated */
	size_t n_rest;
	bool help; /* `VERB --help` */
};

/* Reads the words of main(). AQE_E_USAGE: unknown verb or option, missing or surplus word (the text
 * names it); AQE_E_REFUSED: an option or value we do not let through. */
AQE_MUST_CHECK int shim_argv_parse(struct aqe_arena *a, int argc, char **argv,
				   struct shim_argv *ret, struct aqe_err *e);
/* --log and --log-format by a plain search, for words that shim_argv_parse() refused. Either may
 * come back NULL. */
void shim_argv_find_log(int argc, char **argv, const char **ret_path, const char **ret_format);

/* Last value of a global or verb option (last wins), or NULL. A given flag has the value "". */
const char *shim_argv_global(const struct shim_argv *v, const char *name);
const char *shim_argv_option(const struct shim_argv *v, const char *name);

/* The words for the low-level runtime, NULL-terminated, in `a`; NULL when memory is exhausted.
 * original: the words as they came, after `path`.
 * canonical: globals, verb, the options of class PASS and PATH once each, the `n` words of `extra`,
 * then "--" where needed and the id.
 * inner: a call of our own (`state`, `kill`, `delete`): only the globals that say where the
 * container is, the verb, then the words of the NULL-terminated `extra`. */
char **shim_argv_original(struct aqe_arena *a, const struct shim_argv *v, const char *path);
char **shim_argv_canonical(struct aqe_arena *a, const struct shim_argv *v, const char *path,
			   const char *const *extra);
char **shim_argv_inner(struct aqe_arena *a, const struct shim_argv *v, const char *path,
		       const char *verb, const char *const *extra);

#endif
