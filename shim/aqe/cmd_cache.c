/* SPDX-License-Identifier: MIT */
/* aqe cache: dispatch, and the commands that look at one entry. */
#include <stdio.h>
#include <string.h>

#include "cache/numbers.h"
#include "shim/aqe/cache_cmd.h"
#include "shim/aqe/cmds.h"
#include "shim/core/cleanup.h"
#include "shim/core/clock.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "shim/input.h"

#define ARENA_MAX ((size_t)64 << 20)
#define IN_MAX    ((size_t)8 << 20)
#define OUT_MAX   ((size_t)8 << 20)

static const struct {
	const char *name, *about;
	int (*fn)(int argc, char **argv);
} COMMANDS[] = {
	{ "get", "print an embedding", shim_cache_get },
	{ "put", "store one", shim_cache_put },
	{ "has", "exit status 0 when it is there, 1 when not", shim_cache_has },
	{ "delete", "remove one", shim_cache_delete },
	{ "stats", "what is in the cache; what a running gateway did", shim_cache_stats },
	{ "keys", "list all keys", shim_cache_keys },
	{ "prune", "remove what is too old", shim_cache_prune },
	{ "clear", "remove everything", shim_cache_clear },
	{ "export", "write all entries to a file", shim_cache_export },
	{ "import", "read such a file, into any back end", shim_cache_import },
	{ "warm", "embed the texts of a file that are not there yet", shim_cache_warm },
	{ "serve", "the gateway: Ollama's and OpenAI's embeddings API", shim_cache_serve },
};

static int help(void)
{
	int rc = puts("usage: aqe cache COMMAND [OPTION...] [ARGUMENT...]\n"
		      "\n"
		      "The embedding cache: no text is embedded twice.\n"
		      "\n"
		      "commands (each has --help):");

	for (size_t i = 0; rc >= 0 && i < AQE_COUNT(COMMANDS); i++)
		rc = printf("  %-9s %s\n", COMMANDS[i].name, COMMANDS[i].about);
	return rc < 0 || fflush(stdout) != 0 ? SHIM_EXIT_UNDECIDED : SHIM_EXIT_OK;
}

int shim_cmd_cache(int argc, char **argv)
{
	if (argc < 2) {
		(void)fputs("aqe cache: missing command; see aqe cache --help\n", stderr);
		return SHIM_EXIT_USAGE;
	}
	for (size_t i = 0; i < AQE_COUNT(COMMANDS); i++) {
		if (strcmp(argv[1], COMMANDS[i].name) == 0)
			return COMMANDS[i].fn(argc - 1, argv + 1);
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return help();
	(void)fprintf(stderr, "aqe cache: no such command '%.64s'; see aqe cache --help\n",
		      argv[1]);
	return SHIM_EXIT_USAGE;
}

static const struct aqe_cli_opt ONE_OPTS[] = {
	SHIM_CACHE_OPTS_KEY,
	SHIM_CACHE_OPTS_STORE,
	SHIM_CACHE_OPTS_END,
};

/* Reads the words, opens the cache, makes the key: -1, or an exit status. */
static int begin(struct shim_cache_cmd *c, const struct aqe_cli_cmd *cmd, int argc, char **argv,
		 struct cache_item *item)
{
	struct aqe_err e = AQE_ERR_INIT;
	int rc = shim_cache_cmd_read(c, cmd, argc, argv, NULL);

	if (rc >= 0)
		return rc;
	rc = shim_cache_cmd_key(c, &item->key, &e);
	if (!rc)
		rc = shim_cache_cmd_open(c, &e);
	return rc ? shim_cache_cmd_fail(&e) : -1;
}

static int absent(const struct shim_cache_cmd *c, const struct cache_item *item)
{
	char key[CACHE_KEY_TEXT];

	cache_key_format(&item->key, key);
	if (!c->json)
		(void)fprintf(stderr, "aqe cache: not there: %s\n", key);
	return SHIM_EXIT_FAILED;
}

/* "{"version":1,"key":"...","MEMBER":true|false}" */
static int tell_bool(const struct shim_cache_cmd *c, const struct cache_item *item,
		     const char *member)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OUT_MAX);
	char key[CACHE_KEY_TEXT];
	int rc = SHIM_EXIT_OK;

	cache_key_format(&item->key, key);
	aqe_buf_addf(&b, "{\"version\":1,\"key\":\"%s\",\"%s\":%s}\n", key, member,
		     item->found ? "true" : "false");
	if (c->json)
		rc = shim_cache_cmd_print(&b);
	if (rc)
		return rc;
	return item->found ? SHIM_EXIT_OK : absent(c, item);
}

/* ---- get ---- */

static void emit_entry(const struct shim_cache_cmd *c, const struct cache_item *item,
		       struct aqe_buf *b)
{
	char key[CACHE_KEY_TEXT], created[AQE_TIME_TEXT], expires[AQE_TIME_TEXT];
	struct cache_value v;

	cache_item_value(item, &v);
	if (!c->json) {
		cache_numbers_emit(&v, b);
		aqe_buf_putc(b, '\n');
		return;
	}
	cache_key_format(&item->key, key);
	aqe_time_format(v.created_ms / 1000, created);
	aqe_time_format((v.created_ms + v.ttl_ms) / 1000, expires);
	aqe_buf_addf(b,
		     "{\"version\":1,\"key\":\"%s\",\"dimension\":%u,\"created\":\"%s\","
		     "\"expires\":\"%s\",\"embedding\":",
		     key, v.dim, created, expires);
	cache_numbers_emit(&v, b);
	aqe_buf_puts(b, "}\n");
}

int shim_cache_get(int argc, char **argv)
{
	static const struct aqe_cli_cmd CMD = {
		.name = "get",
		.synopsis = "--key HEX | [--provider NAME] [--model NAME] ... --content TEXT",
		.about = "Prints an embedding as a JSON array. Exit status 1: it is not there.",
		.opts = ONE_OPTS,
	};
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OUT_MAX);
	struct cache_item item = CACHE_ITEM_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_cache_cmd c;
	int rc = begin(&c, &CMD, argc, argv, &item);

	if (rc < 0) {
		if (cache_get(c.cache, &item, 1, NULL, &e))
			rc = shim_cache_cmd_fail(&e);
		else if (!item.found)
			rc = c.json ? tell_bool(&c, &item, "found") : absent(&c, &item);
		else
			emit_entry(&c, &item, &b);
		if (rc < 0)
			rc = shim_cache_cmd_print(&b);
	}
	aqe_buf_done(&item.value);
	shim_cache_cmd_done(&c);
	return rc;
}

/* ---- has, delete ---- */

int shim_cache_has(int argc, char **argv)
{
	static const struct aqe_cli_cmd CMD = {
		.name = "has",
		.synopsis = "--key HEX | [--provider NAME] [--model NAME] ... --content TEXT",
		.about = "Exit status 0: it is there. 1: it is not, or it is too old.",
		.opts = ONE_OPTS,
	};
	struct cache_item item = CACHE_ITEM_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_cache_cmd c;
	int rc = begin(&c, &CMD, argc, argv, &item);

	if (rc < 0)
		rc = cache_has(c.cache, &item, 1, &e) ? shim_cache_cmd_fail(&e)
						      : tell_bool(&c, &item, "found");
	shim_cache_cmd_done(&c);
	return rc;
}

int shim_cache_delete(int argc, char **argv)
{
	static const struct aqe_cli_cmd CMD = {
		.name = "delete",
		.synopsis = "--key HEX | [--provider NAME] [--model NAME] ... --content TEXT",
		.about = "Removes an embedding. Exit status 1: it was not there.",
		.opts = ONE_OPTS,
	};
	struct cache_item item = CACHE_ITEM_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_cache_cmd c;
	int rc = begin(&c, &CMD, argc, argv, &item);

	if (rc < 0)
		rc = cache_del(c.cache, &item, 1, &e) ? shim_cache_cmd_fail(&e)
						      : tell_bool(&c, &item, "deleted");
	shim_cache_cmd_done(&c);
	return rc;
}

/* ---- put ---- */

/* An array of numbers, or an object with one as `embedding`. */
static int read_embedding(struct aqe_arena *a, const char *file, struct cache_numbers *ret,
			  struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(IN_MAX);
	struct aqe_json *root = NULL;
	double *numbers = NULL;
	int rc = shim_input_read(file, &text, e);

	if (!rc)
		rc = aqe_json_parse(a, aqe_buf_str(&text), text.len, &CACHE_NUMBERS_LIMITS, &root,
				    e);
	if (!rc)
		rc = cache_numbers_read_f64(a,
					    root->type == AQE_JSON_OBJECT
						    ? aqe_json_get(root, "embedding")
						    : root,
					    &numbers, &ret->dim, e);
	ret->f64 = numbers;
	return rc && e ? aqe_err_wrap(e, "%s", file) : rc;
}

static void tell_put(const struct shim_cache_cmd *c, const struct cache_item *item, uint32_t dim,
		     const struct cache_narrowing *lost, struct aqe_buf *b)
{
	char key[CACHE_KEY_TEXT];

	cache_key_format(&item->key, key);
	if (c->json)
		aqe_buf_addf(b,
			     "{\"version\":1,\"key\":\"%s\",\"dimension\":%u,\"narrowing\":"
			     "{\"maxAbsolute\":%.3g,\"maxRelative\":%.3g}}\n",
			     key, dim, lost->max_abs, lost->max_rel);
	else
		aqe_buf_addf(b, "%s\n", key);
}

int shim_cache_put(int argc, char **argv)
{
	static const struct aqe_cli_opt OPTS[] = {
		{ "embedding", 'e', "FILE", "a JSON array of numbers (default '-': standard input)",
		  SHIM_CACHE_EMBEDDING },
		SHIM_CACHE_OPTS_KEY,
		SHIM_CACHE_OPTS_STORE,
		SHIM_CACHE_OPTS_END,
	};
	static const struct aqe_cli_cmd CMD = {
		.name = "put",
		.synopsis = "[--embedding FILE] --key HEX | [--model NAME] ... --content TEXT",
		.about =
			"Stores an embedding as float32 and prints its key. Numbers are rounded to "
			"nearest, an error of at most 2^-24 of each; --format json tells how much.",
		.opts = OPTS,
	};
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OUT_MAX);
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct cache_item item = CACHE_ITEM_INIT;
	struct cache_narrowing lost = { 0, 0 };
	struct cache_numbers numbers = { NULL, NULL, 0 };
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_cache_cmd c;
	int rc = begin(&c, &CMD, argc, argv, &item);

	if (rc < 0) {
		const struct cache_key key = item.key;

		rc = a ? read_embedding(a, c.embedding ? c.embedding : "-", &numbers, &e)
		       : aqe_err_set(&e, AQE_E_NOMEM, 0, "out of memory");
		if (!rc)
			rc = cache_item_encode(c.cache, &key, &numbers, &item, &lost, &e);
		if (!rc)
			rc = cache_put(c.cache, &item, 1, &e);
		if (!rc)
			tell_put(&c, &item, numbers.dim, &lost, &b);
		rc = rc ? shim_cache_cmd_fail(&e) : shim_cache_cmd_print(&b);
	}
	aqe_buf_done(&item.value);
	shim_cache_cmd_done(&c);
	return rc;
}
