/* SPDX-License-Identifier: MIT */
#include "shim/argv.h"

#include <string.h>

#include "shim/core/text.h"

/* Globals that say where the low-level runtime keeps the container; the rest (log file, verbosity)
 * belongs to the engine's own call. */
static const char *const inner_globals[] = { "root",     "systemd-cgroup", "cgroup-manager",
					     "rootless", "criu",           NULL };

/* Where the reading of the words stands. */
struct cursor {
	char **argv;
	int argc, at;
	const struct shim_opt *table;
	const struct shim_verb_row *row; /* NULL before the verb */
	struct shim_optval *out;
	size_t n_out;
};

static int usage(const struct cursor *c, struct aqe_err *e, const char *fault, const char *word)
{
	struct aqe_buf b = AQE_BUF_INIT(200);

	aqe_buf_quote(&b, word, 80);
	aqe_err_set(e, AQE_E_USAGE, 0, "%s '%s'; usage: %s %s", fault, aqe_buf_str(&b),
		    c->row ? c->row->name : "[GLOBAL OPTION...] VERB",
		    c->row ? c->row->synopsis : "[OPTION...] ID");
	aqe_buf_done(&b);
	return AQE_E_USAGE;
}

static const struct shim_opt *by_name(const struct shim_opt *table, const char *name, size_t n)
{
	for (; table->name; table++) {
		if (strlen(table->name) == n && memcmp(table->name, name, n) == 0)
			return table;
	}
	return NULL;
}

static const struct shim_opt *by_letter(const struct shim_opt *table, char letter)
{
	for (; table->name; table++) {
		if (table->letter && table->letter == letter)
			return table;
	}
	return NULL;
}

static int take(struct cursor *c, const struct shim_opt *opt, const char *value, struct aqe_err *e)
{
	bool zero = opt->class == SHIM_OPT_ZERO && value && strcmp(value, "0") == 0;

	if (opt->class == SHIM_OPT_REFUSE || (opt->class == SHIM_OPT_ZERO && !zero))
		return aqe_err_set(e, AQE_E_REFUSED, 0, "option '--%s': %s", opt->name, opt->why);
	if (opt->class == SHIM_OPT_PATH && (!value || !*value))
		return usage(c, e, "empty path for option", opt->name);
	c->out[c->n_out].opt = opt;
	c->out[c->n_out].value = value ? value : "";
	c->n_out++;
	return 0;
}

/* "--name", "--name=value", "--name value". */
static int long_option(struct cursor *c, struct aqe_err *e)
{
	const char *word = c->argv[c->at], *name = word + 2, *eq = strchr(name, '=');
	const struct shim_opt *opt =
		by_name(c->table, name, eq ? (size_t)(eq - name) : strlen(name));

	if (!opt)
		return usage(c, e, "unknown option", word);
	if (!opt->has_arg && eq)
		return usage(c, e, "surplus value in", word);
	if (opt->has_arg && !eq && c->at + 1 >= c->argc)
		return usage(c, e, "missing value for", word);
	c->at++;
	if (!opt->has_arg)
		return take(c, opt, NULL, e);
	return take(c, opt, eq ? eq + 1 : c->argv[c->at++], e);
}

/* "-d", "-td", "-b value". A value in the same word is refused: Go reads "-bundle" and "-b=DIR"
 * differently from getopt. */
static int short_options(struct cursor *c, struct aqe_err *e)
{
	const char *word = c->argv[c->at++];

	for (const char *p = word + 1; *p; p++) {
		const struct shim_opt *opt = by_letter(c->table, *p);
		int rc;

		if (!opt)
			return usage(c, e, "unknown option", word);
		if (opt->has_arg && (p != word + 1 || p[1]))
			return usage(c, e, "value must be a word of its own after", word);
		if (opt->has_arg && c->at >= c->argc)
			return usage(c, e, "missing value for", word);
		rc = take(c, opt, opt->has_arg ? c->argv[c->at++] : NULL, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Options up to the first operand, which is left at the cursor. */
static int options(struct cursor *c, struct aqe_err *e)
{
	while (c->at < c->argc) {
		const char *word = c->argv[c->at];
		int rc;

		if (word[0] != '-' || !word[1])
			return 0;
		if (strcmp(word, "--") == 0) {
			c->at++;
			return 0;
		}
		rc = word[1] == '-' ? long_option(c, e) : short_options(c, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static const char *last(const struct shim_optval *list, size_t n, const char *name)
{
	while (n-- > 0) {
		if (strcmp(list[n].opt->name, name) == 0)
			return list[n].value;
	}
	return NULL;
}

const char *shim_argv_global(const struct shim_argv *v, const char *name)
{
	return last(v->global, v->n_global, name);
}

const char *shim_argv_option(const struct shim_argv *v, const char *name)
{
	return last(v->option, v->n_option, name);
}

static int find_verb(const struct cursor *c, const char *word, enum shim_verb *ret,
		     struct aqe_err *e)
{
	for (size_t i = 0; i < SHIM_VERB_COUNT; i++) {
		if (i != SHIM_VERB_VERSION && strcmp(SHIM_VERBS[i].name, word) == 0) {
			*ret = (enum shim_verb)i;
			return 0;
		}
	}
	return usage(c, e, "unknown command", word);
}

static int operands(struct cursor *c, const struct shim_verb_row *row, struct shim_argv *ret,
		    struct aqe_err *e)
{
	if (row->takes_id && c->at < c->argc)
		ret->id = c->argv[c->at++];
	ret->rest = c->argv + c->at;
	ret->n_rest = (size_t)(c->argc - c->at);
	if (!row->strict)
		return 0;
	if (row->takes_id && !ret->id)
		return usage(c, e, "missing container id for", row->name);
	if (ret->id && ret->id[0] == '-')
		return usage(c, e, "bad container id", ret->id);
	if (ret->n_rest && !row->takes_rest)
		return usage(c, e, "surplus word", ret->rest[0]);
	return 0;
}

/* crun looks for what an id names below its state folder, and `delete --force ..` empties the
 * folder above it, "." its own (crun 1.8.1, measured). It takes shortened options, which we do not
 * know: every word that is passed on may be the id. */
static int check_words(const struct cursor *c, struct aqe_err *e)
{
	for (int i = c->at; i < c->argc; i++) {
		const char *w = c->argv[i];

		if (w[0] != '-' &&
		    (!*w || aqe_str_eq(w, ".") || aqe_str_eq(w, "..") || strchr(w, '/')))
			return usage(c, e, "bad container id", w);
	}
	return 0;
}

/* Everything after the verb. */
static int verb_words(struct cursor *c, struct shim_argv *ret, struct aqe_err *e)
{
	const struct shim_verb_row *row = &SHIM_VERBS[ret->verb];
	int rc;

	c->table = row->opts;
	c->row = row;
	rc = row->takes_id && !row->strict ? check_words(c, e) : 0;
	if (rc < 0)
		return rc;
	rc = options(c, e);
	ret->option = c->out;
	ret->n_option = c->n_out;
	ret->help = shim_argv_option(ret, "help") != NULL;
	if (ret->help)
		return 0;
	if (rc < 0 && row->strict)
		return rc;
	/* crun 1.8.1 takes its value for the state directory's name (measured), runc ignores faults
	 * of limits with it; where a container exists already the word is passed on as it came */
	if (shim_argv_global(ret, "rootless") &&
	    (ret->verb == SHIM_VERB_CREATE || ret->verb == SHIM_VERB_RUN))
		return usage(c, e, "option '--rootless' is not taken by", row->name);
	if (rc < 0) {
		/* passed on as it came: the runtime judges its own options */
		if (e)
			*e = (struct aqe_err)AQE_ERR_INIT;
		return 0;
	}
	return operands(c, row, ret, e);
}

int shim_argv_parse(struct aqe_arena *a, int argc, char **argv, struct shim_argv *ret,
		    struct aqe_err *e)
{
	struct cursor c = { .argv = argv, .argc = argc, .at = 1, .table = SHIM_GLOBALS };
	size_t words = argc > 0 ? (size_t)argc : 0;
	/* one word can hold many short flags */
	size_t most = words;
	int rc;

	*ret = (struct shim_argv){ .verb = SHIM_VERB_HELP };
	if (argc < 1)
		return usage(&c, e, "no words", "");
	for (size_t i = 1; i < words; i++) {
		if (argv[i][0] == '-' && argv[i][1] != '-')
			most += strlen(argv[i]);
	}
	ret->words = argv + 1;
	ret->rest = argv + argc;
	ret->global = c.out = aqe_arena_calloc(a, most + 1, sizeof(*c.out));
	if (!c.out)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the command line");
	rc = options(&c, e);
	ret->n_global = c.n_out;
	if (rc < 0)
		return rc;
	if (shim_argv_global(ret, "version"))
		ret->verb = SHIM_VERB_VERSION;
	if (shim_argv_global(ret, "version") || shim_argv_global(ret, "help"))
		return 0;
	if (c.at >= argc)
		return usage(&c, e, "missing command after", argv[argc - 1]);
	rc = find_verb(&c, argv[c.at++], &ret->verb, e);
	if (rc < 0)
		return rc;
	c.out = aqe_arena_calloc(a, most + 1, sizeof(*c.out));
	c.n_out = 0;
	if (!c.out)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the command line");
	return verb_words(&c, ret, e);
}

static const char *log_value(int argc, char **argv, int *at, const char *name)
{
	const char *word = argv[*at];
	size_t n = strlen(name);

	if (!aqe_starts(word, name))
		return NULL;
	if (word[n] == '=')
		return word + n + 1;
	if (!word[n] && *at + 1 < argc)
		return argv[++*at];
	return NULL;
}

void shim_argv_find_log(int argc, char **argv, const char **ret_path, const char **ret_format)
{
	*ret_path = *ret_format = NULL;
	for (int i = 1; i < argc; i++) {
		const char *v;

		/* the verb ends the globals; words that follow may be the container's */
		for (size_t k = SHIM_VERB_CREATE; k < SHIM_VERB_COUNT; k++) {
			if (strcmp(argv[i], SHIM_VERBS[k].name) == 0)
				return;
		}
		v = log_value(argc, argv, &i, "--log");
		if (v && *v) {
			*ret_path = v;
			continue;
		}
		v = log_value(argc, argv, &i, "--log-format");
		if (v)
			*ret_format = v;
	}
}

/* ---- words for the low-level runtime ---- */

struct words {
	struct aqe_arena *a;
	const char **list;
	size_t n, room;
};

/* Room for every word that can be added, so that put() needs no growth. */
static bool words_init(struct words *w, struct aqe_arena *a, size_t room)
{
	*w = (struct words){ .a = a, .room = room };
	w->list = aqe_arena_calloc(a, room + 1, sizeof(*w->list));
	return w->list != NULL;
}

static bool put(struct words *w, const char *word)
{
	if (!word || w->n >= w->room)
		return false;
	w->list[w->n++] = word;
	return true;
}

static bool put_option(struct words *w, const struct shim_optval *o)
{
	if (!o->opt->has_arg)
		return put(w, aqe_arena_fmt(w->a, "--%s", o->opt->name));
	return put(w, aqe_arena_fmt(w->a, "--%s=%s", o->opt->name, o->value));
}

/* The options that are passed on, the last of each name. `only` (may be NULL) restricts them. */
static bool put_options(struct words *w, const struct shim_optval *list, size_t n,
			const char *const *only)
{
	for (size_t i = 0; i < n; i++) {
		const struct shim_opt *opt = list[i].opt;

		if (opt->class != SHIM_OPT_PASS && opt->class != SHIM_OPT_PATH)
			continue;
		if (only && !aqe_str_in(opt->name, only))
			continue;
		if (last(list + i + 1, n - i - 1, opt->name))
			continue;
		if (!put_option(w, &list[i]))
			return false;
	}
	return true;
}

static bool put_all(struct words *w, const char *const *list)
{
	for (; list && *list; list++) {
		if (!put(w, *list))
			return false;
	}
	return true;
}

static size_t count(const char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

/* execve(2) takes char *const[]; it does not write to the words. */
static char **as_argv(const struct words *w)
{
	return (char **)(void *)w->list;
}

char **shim_argv_original(struct aqe_arena *a, const struct shim_argv *v, const char *path)
{
	const char *const *all = (const char *const *)v->words;
	struct words w;

	if (!words_init(&w, a, count(all) + 1) || !put(&w, path) || !put_all(&w, all))
		return NULL;
	return as_argv(&w);
}

char **shim_argv_canonical(struct aqe_arena *a, const struct shim_argv *v, const char *path,
			   const char *const *extra)
{
	struct words w;

	if (!words_init(&w, a, v->n_global + v->n_option + count(extra) + 3))
		return NULL;
	if (!put(&w, path) || !put_options(&w, v->global, v->n_global, NULL) ||
	    !put(&w, SHIM_VERBS[v->verb].name) || !put_options(&w, v->option, v->n_option, NULL) ||
	    !put_all(&w, extra) || !put(&w, v->id))
		return NULL;
	return as_argv(&w);
}

char **shim_argv_inner(struct aqe_arena *a, const struct shim_argv *v, const char *path,
		       const char *verb, const char *const *extra)
{
	struct words w;

	if (!words_init(&w, a, v->n_global + count(extra) + 2))
		return NULL;
	if (!put(&w, path) || !put_options(&w, v->global, v->n_global, inner_globals) ||
	    !put(&w, verb) || !put_all(&w, extra))
		return NULL;
	return as_argv(&w);
}
