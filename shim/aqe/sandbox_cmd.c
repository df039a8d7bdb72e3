/* SPDX-License-Identifier: MIT */
#include "shim/aqe/sandbox_cmd.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "shim/aqe/cmds.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "shim/sandbox/monitor.h"

#define ARENA_MAX ((size_t)512 << 20)
#define STEP_MS   10

/* ---- the command line ---- */

static int take_option(struct shim_sb *sb, int id, const struct aqe_cli *c, struct aqe_err *e)
{
	if (id == SHIM_SB_ENV) {
		if (sb->n_env == SHIM_SB_ENV_MAX)
			return aqe_err_set(e, AQE_E_USAGE, 0, "more than %d variables",
					   SHIM_SB_ENV_MAX);
		sb->env[sb->n_env++] = c->value;
		return 0;
	}
	sb->value[id] = c->value ? c->value : "";
	if (id != SHIM_SB_FORMAT)
		return 0;
	sb->json = aqe_str_eq(c->value, "json");
	return sb->json || aqe_str_eq(c->value, "text")
		       ? 0
		       : aqe_err_set(e, AQE_E_USAGE, 0, "--format is text or json, not '%.40s'",
				     c->value);
}

/* Operands are moved to the front of argv, behind the command's name. */
static int read_words(struct shim_sb *sb, enum shim_sb_words how, int argc, char **argv,
		      struct aqe_err *e)
{
	struct aqe_cli c;
	int id, rc = 0;

	aqe_cli_init(&c, sb->cmd, argc, argv);
	sb->words = argv + 1;
	while (rc == 0 && (id = aqe_cli_next(&c, e)) != AQE_CLI_END) {
		if (id == AQE_CLI_HELP)
			return AQE_CLI_HELP;
		if (id == AQE_E_USAGE)
			return AQE_E_USAGE;
		if (id != AQE_CLI_OPERAND) {
			rc = take_option(sb, id, &c, e);
			continue;
		}
		if (how == SHIM_SB_REST) {
			sb->words = argv + c.pos - 1;
			sb->n_words = (size_t)argc - (size_t)c.pos + 1;
			return 0;
		}
		sb->words[sb->n_words++] = argv[c.pos - 1];
	}
	return rc;
}

static int check_words(const struct shim_sb *sb, size_t min, size_t max, struct aqe_err *e)
{
	if (sb->n_words < min)
		return aqe_err_set(e, AQE_E_USAGE, 0, "missing argument; see --help");
	if (sb->n_words > max)
		return aqe_err_set(e, AQE_E_USAGE, 0, "surplus argument '%.64s'", sb->words[max]);
	return 0;
}

static int print_help(const struct aqe_cli_cmd *cmd)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);

	aqe_cli_help(cmd, &b);
	return shim_sb_print(&b) ? SHIM_EXIT_OK : SHIM_EXIT_FAILED;
}

/* NOLINTNEXTLINE(readability-function-size) clang-tidy: a main()'s words make it seven */
int shim_sb_begin(struct shim_sb *sb, const struct aqe_cli_cmd *cmd, enum shim_sb_words how,
		  size_t min, size_t max, int argc, char **argv)
{
	struct aqe_err e = AQE_ERR_INIT;
	int rc;

	memset(sb, 0, sizeof(*sb));
	sb->cmd = cmd;
	sb->place = (struct shim_place)SHIM_PLACE_INIT;
	/* names in archives are UTF-8, and libarchive goes by the locale */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	rc = read_words(sb, how, argc, argv, &e);
	if (rc == AQE_CLI_HELP)
		return print_help(cmd);
	if (rc == 0)
		rc = check_words(sb, min, max, &e);
	if (rc < 0)
		return shim_sb_fail(sb, &e);
	sb->arena = aqe_arena_new(ARENA_MAX);
	rc = sb->arena ? 0 : aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory");
	if (rc == 0 && how != SHIM_SB_PURE)
		rc = shim_place_open(sb->arena, sb->value[SHIM_SB_DATA_DIR], &sb->place, &e);
	if (rc == 0)
		return -1;
	rc = shim_sb_fail(sb, &e);
	shim_sb_done(sb);
	return rc;
}

void shim_sb_done(struct shim_sb *sb)
{
	shim_place_done(&sb->place);
	aqe_arena_free(sb->arena);
	sb->arena = NULL;
}

/* ---- output ---- */

int shim_sb_fail(const struct shim_sb *sb, const struct aqe_err *e)
{
	(void)fflush(stdout);
	(void)fprintf(stderr, "%s: %s\n", sb->cmd->name, aqe_cli_fault(sb->cmd, e));
	if (e->code == AQE_E_USAGE)
		return SHIM_EXIT_USAGE;
	return e->code == AQE_E_NOMEM || e->code == AQE_E_INTERNAL ? SHIM_EXIT_UNDECIDED
								   : SHIM_EXIT_FAILED;
}

bool shim_sb_print(struct aqe_buf *b)
{
	bool ok = aqe_buf_ok(b, NULL) == 0 && fwrite(b->p, 1, b->len, stdout) == b->len &&
		  fflush(stdout) == 0;

	aqe_buf_clear(b);
	return ok;
}

struct aqe_json *shim_sb_json(struct aqe_arena *a, struct shim_box *b, const struct shim_seen *s,
			      const char *word)
{
	struct aqe_json *o = shim_fields_emit(a, SHIM_PLAN_FIELDS, &b->plan);
	struct aqe_json *seen = shim_fields_emit(a, SHIM_SEEN_FIELDS, s);
	struct aqe_json *all = aqe_json_new_object(a);

	if (!o || !seen || !all || aqe_json_set(a, all, "version", aqe_json_new_u64(a, 1)) < 0 ||
	    aqe_json_set(a, all, "name", aqe_json_new_str(a, b->name)) < 0 ||
	    aqe_json_set(a, all, "status", aqe_json_new_str(a, word)) < 0 ||
	    aqe_json_set(a, all, "plan", o) < 0 || aqe_json_set(a, all, "state", seen) < 0)
		return NULL;
	return all;
}

/* ---- sandboxes ---- */

int shim_sb_each(struct shim_sb *sb, shim_sb_each_fn *fn, void *arg, struct aqe_err *e)
{
	const char **names = NULL;
	size_t n = 0;
	int rc = shim_place_list(sb->arena, &sb->place, &names, &n, e);

	for (size_t i = 0; i < n && rc == 0; i++) {
		SHIM_AUTO_BOX struct shim_box b = SHIM_BOX_INIT;

		rc = shim_box_open(sb->arena, &sb->place, names[i], &b, e);
		if (rc == AQE_E_ABSENT)
			rc = 0;
		else if (rc == 0)
			rc = fn(arg, &b, e);
	}
	return rc;
}

int shim_sb_wait(struct shim_box *b, uint32_t ms,
		 int (*done)(struct shim_box *b, const struct shim_seen *s), struct aqe_err *e)
{
	static const struct timespec STEP = { 0, STEP_MS * 1000000L };

	for (uint32_t waited = 0; waited <= ms; waited += STEP_MS) {
		AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)4 << 20);
		struct shim_box look = *b;
		struct shim_seen s = SHIM_SEEN_INIT;
		int rc;

		if (!a)
			return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
		look.arena = a; /* polled documents would pile up in the command's own */
		rc = shim_box_seen(&look, &s, e);
		if (rc == 0)
			rc = done(&look, &s);
		if (rc != 0)
			return rc < 0 ? rc : 0;
		(void)nanosleep(&STEP, NULL);
	}
	return aqe_err_set(e, AQE_E_TIMEOUT, 0, "'%s': nothing happened within %u ms", b->name, ms);
}

/* True when it got a monitor. */
static bool revive(struct shim_box *b)
{
	struct shim_want w;

	/* when it gets none it shows as unsupervised */
	return shim_box_want(b, &w, NULL) == 0 && w.up && shim_monitor_ensure(b, NULL) == 0;
}

int shim_sb_look(struct shim_box *b, struct shim_seen *ret, const char **ret_word,
		 struct aqe_err *e)
{
	/* what ended, or is held, has no monitor and needs none */
	static const char *const ENDED[] = { "exited", "held", "stopped", NULL };
	int rc = shim_box_seen(b, ret, e);
	bool supervised;

	if (rc < 0)
		return rc;
	supervised = shim_box_is_supervised(b);
	if (!supervised && !aqe_str_in(ret->status, ENDED) && revive(b)) {
		rc = shim_box_seen(b, ret, e);
		supervised = shim_box_is_supervised(b);
	}
	*ret_word = shim_seen_word(ret, supervised);
	return rc;
}
