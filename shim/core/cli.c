/* SPDX-License-Identifier: MIT */
#include "shim/core/cli.h"

#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define COLUMNS     80
#define HELP_COLUMN 26 /* where the explanations of options begin */
#define WORD_MAX    80 /* bytes of a word shown in a message */

void aqe_cli_init(struct aqe_cli *c, const struct aqe_cli_cmd *cmd, int argc, char **argv)
{
	*c = (struct aqe_cli){ .cmd = cmd, .argc = argc, .argv = argv, .pos = 1 };
}

static int usage(const struct aqe_cli *c, const char *fault, const char *word, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf shown = AQE_BUF_INIT((size_t)2 * WORD_MAX);

	aqe_buf_quote(&shown, word, WORD_MAX);
	return aqe_err_set(e, AQE_E_USAGE, 0, "%s: %s '%s'", c->cmd->name, fault,
			   aqe_buf_str(&shown));
}

const char *aqe_cli_fault(const struct aqe_cli_cmd *cmd, const struct aqe_err *e)
{
	const size_t n = strlen(cmd->name);

	return aqe_starts(e->text, cmd->name) && aqe_starts(e->text + n, ": ") ? e->text + n + 2
									       : e->text;
}

static const struct aqe_cli_opt *find_long(const struct aqe_cli_opt *o, const char *name, size_t n)
{
	for (; o->name; o++)
		if (strlen(o->name) == n && memcmp(o->name, name, n) == 0)
			return o;
	return NULL;
}

static const struct aqe_cli_opt *find_short(const struct aqe_cli_opt *o, char letter)
{
	for (; o->name; o++)
		if (o->letter == letter)
			return o;
	return NULL;
}

/* `value` is what was attached to the option, or NULL. */
static int take(struct aqe_cli *c, const struct aqe_cli_opt *o, const char *value,
		struct aqe_err *e)
{
	if (o->arg && !value) {
		if (c->pos >= c->argc)
			return usage(c, "a value is missing after", c->argv[c->argc - 1], e);
		value = c->argv[c->pos++];
	}
	c->value = value;
	return o->id;
}

static int next_long(struct aqe_cli *c, const char *word, struct aqe_err *e)
{
	const char *name = word + 2;
	size_t n = strcspn(name, "=");
	const char *value = name[n] == '=' ? name + n + 1 : NULL;
	const struct aqe_cli_opt *o = find_long(c->cmd->opts, name, n);

	if (!o && strcmp(name, "help") == 0)
		return AQE_CLI_HELP;
	if (!o)
		return usage(c, "unknown option", word, e);
	if (!o->arg && value)
		return usage(c, "this option takes no value:", word, e);
	return take(c, o, value, e);
}

static int next_short(struct aqe_cli *c, struct aqe_err *e)
{
	char word[3] = { '-', *c->rest++, '\0' };
	const struct aqe_cli_opt *o = find_short(c->cmd->opts, word[1]);
	const char *value = NULL;

	if (!o && word[1] == 'h')
		return AQE_CLI_HELP;
	if (!o)
		return usage(c, "unknown option", word, e);
	if (o->arg && *c->rest) {
		value = c->rest;
		c->rest = NULL;
	}
	return take(c, o, value, e);
}

int aqe_cli_next(struct aqe_cli *c, struct aqe_err *e)
{
	const char *word;

	c->value = NULL;
	if (c->rest && *c->rest)
		return next_short(c, e);
	c->rest = NULL;
	if (c->pos >= c->argc)
		return AQE_CLI_END;
	word = c->argv[c->pos++];
	if (!c->ended && strcmp(word, "--") == 0) {
		c->ended = true;
		if (c->pos >= c->argc)
			return AQE_CLI_END;
		word = c->argv[c->pos++];
	}
	if (c->ended || word[0] != '-' || word[1] == '\0') {
		c->value = word;
		return AQE_CLI_OPERAND;
	}
	if (word[1] == '-')
		return next_long(c, word, e);
	c->rest = word + 1;
	return next_short(c, e);
}

/* Appends the words of one line of `n` bytes, broken where it gets too long; all begins at column
 * `indent`. `used` columns are taken. */
static void add_words(struct aqe_buf *b, const char *text, size_t n, size_t indent, size_t used)
{
	const char *end = text + n;

	for (; text < end; text += n) {
		text += strspn(text, " ");
		n = strcspn(text, " \n");
		if (used > indent && used + 1 + n > COLUMNS) {
			(void)aqe_buf_putc(b, '\n'); /* sticky, as all additions here */
			used = 0;
		}
		if (n > 0 && used <= indent)
			(void)aqe_buf_addf(b, "%*s", (int)(indent - used), "");
		else if (n > 0)
			(void)aqe_buf_putc(b, ' ');
		used = (used <= indent ? indent : used + 1) + n;
		(void)aqe_buf_add(b, text, n);
	}
	(void)aqe_buf_putc(b, '\n');
}

/* The lines of `text`; of the first, `used` columns are taken. */
static void add_wrapped(struct aqe_buf *b, const char *text, size_t indent, size_t used)
{
	size_t n;

	for (;; text += n + 1) {
		n = strcspn(text, "\n");
		add_words(b, text, n, indent, used);
		if (text[n] == '\0' || text[n + 1] == '\0')
			return;
		used = 0;
	}
}

static void add_option(struct aqe_buf *b, const struct aqe_cli_opt *o)
{
	size_t start = b->len, used;

	if (o->letter)
		(void)aqe_buf_addf(b, "  -%c, --%s", o->letter, o->name);
	else
		(void)aqe_buf_addf(b, "      --%s", o->name);
	if (o->arg)
		(void)aqe_buf_addf(b, " %s", o->arg);
	used = b->len - start;
	if (used >= HELP_COLUMN - 1) {
		(void)aqe_buf_putc(b, '\n');
		used = 0;
	}
	add_wrapped(b, o->help, HELP_COLUMN, used);
}

void aqe_cli_help(const struct aqe_cli_cmd *cmd, struct aqe_buf *b)
{
	static const struct aqe_cli_opt HELP = { "help", 'h', NULL, "show this text", 1 };
	const struct aqe_cli_opt *o;

	(void)aqe_buf_addf(b, "usage: %s", cmd->name);
	if (cmd->synopsis && cmd->synopsis[0])
		(void)aqe_buf_addf(b, " %s", cmd->synopsis);
	(void)aqe_buf_puts(b, "\n\n");
	if (cmd->about)
		add_wrapped(b, cmd->about, 0, 0);
	(void)aqe_buf_puts(b, "\noptions:\n");
	for (o = cmd->opts; o->name; o++)
		add_option(b, o);
	if (!find_long(cmd->opts, HELP.name, strlen(HELP.name)))
		add_option(b, &HELP);
}
