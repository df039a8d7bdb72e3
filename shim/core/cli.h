/* SPDX-License-Identifier: MIT */
/* Command lines of our own commands (verify, harden, profile, ...): one const table a command. The
 * engines' runtime verbs have their own parser in shim/, because their rules differ. */
#ifndef AQE_CORE_CLI_H
#define AQE_CORE_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/core/buf.h"
#include "shim/core/err.h"

struct aqe_cli_opt {
	const char *name; /* long name without dashes; NULL ends the table */
	char letter;      /* short form, or 0 */
	const char *arg;  /* name of its argument in the help, or NULL for a flag */
	const char *help;
	int id; /* value aqe_cli_next() returns; > 0 */
};

struct aqe_cli_cmd {
	const char *name;     /* "verify" */
	const char *synopsis; /* "[--policy FILE] FILE..." */
	const char *about;    /* one to a few lines */
	const struct aqe_cli_opt *opts;
};

struct aqe_cli {
	const struct aqe_cli_cmd *cmd;
	int argc;
	char **argv;
	int pos;           /* next word to look at */
	bool ended;        /* "--" was seen */
	const char *rest;  /* remaining letters of a bundle of short options */
	const char *value; /* argument of the option returned last, or the operand */
};
#define AQE_CLI_END     0
#define AQE_CLI_OPERAND (-100)
#define AQE_CLI_HELP    (-101)

/* `argv[0]` is the command's own name. */
void aqe_cli_init(struct aqe_cli *c, const struct aqe_cli_cmd *cmd, int argc, char **argv);
/* The next option's id, AQE_CLI_OPERAND with c->value, AQE_CLI_HELP for --help/-h, AQE_CLI_END, or
 * AQE_E_USAGE with one line naming the word. No abbreviations; "--x=v" and "--x v"; "-" is an
 * operand; "--" ends options. */
AQE_MUST_CHECK int aqe_cli_next(struct aqe_cli *c, struct aqe_err *e);
/* The text of a fault without the command's name, which aqe_cli_next() puts first: for a caller
 * that prints the name before every fault. */
const char *aqe_cli_fault(const struct aqe_cli_cmd *cmd, const struct aqe_err *e);
/* The help text, at most 80 columns. */
void aqe_cli_help(const struct aqe_cli_cmd *cmd, struct aqe_buf *b);

#endif
