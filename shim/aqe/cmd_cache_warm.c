/* SPDX-License-Identifier: MIT */
/* aqe cache warm: embeds the texts of a file that are not in the cache yet. */
#include <stdio.h>
#include <string.h>

#include "shim/aqe/cache_cmd.h"
#include "shim/aqe/cache_serve.h"
#include "shim/aqe/lines.h"
#include "shim/aqe/progress.h"
#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "shim/exit.h"

#define GROUP          256 /* texts looked up at once; the upstream gets batches of its own size */
#define ARENA_MAX      ((size_t)256 << 20)
#define LINE_MAX_BYTES ((size_t)4 << 20)

struct warm {
	struct shim_cache_cmd *c;
	struct cache_embedder *em;
	struct aqe_arena *arena; /* of the present group */
	struct cache_text texts[GROUP];
	size_t n;
	uint64_t total, hits, fetched, tokens, empty;
};

/* {"text": "..."} or {"content": "..."}, or the line itself. */
static int read_text(struct warm *w, const char *line, size_t n, uint64_t number, struct aqe_err *e)
{
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	struct aqe_json *root = NULL;
	const struct aqe_json *v;
	size_t bad;
	int rc;

	limits.bytes = limits.string = LINE_MAX_BYTES;
	if (line[0] == '{') {
		rc = aqe_json_parse(w->arena, line, n, &limits, &root, e);
		if (rc)
			return e ? aqe_err_wrap(e, "line %llu", (unsigned long long)number) : rc;
		v = aqe_json_get(root, "text") ? aqe_json_get(root, "text")
					       : aqe_json_get(root, "content");
		if (!v || !aqe_json_str(v))
			return aqe_err_set(e, AQE_E_MALFORMED, 0, "line %llu: no member 'text'",
					   (unsigned long long)number);
		w->texts[w->n] = (struct cache_text){ v->text, v->len };
	} else {
		if (!aqe_utf8_ok(line, n, &bad) || memchr(line, '\0', n))
			return aqe_err_set(e, AQE_E_MALFORMED, 0, "line %llu: not text in UTF-8",
					   (unsigned long long)number);
		w->texts[w->n].p = aqe_arena_ndup(w->arena, line, n);
		w->texts[w->n].n = n;
		if (!w->texts[w->n].p)
			return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	}
	w->n++;
	return 0;
}

/* Each group is stored before the next is read: a run that was cut goes on where it ended. */
static int flush(struct warm *w, struct aqe_err *e)
{
	const bool ollama = aqe_str_eq(w->c->cfg.upstream.kind, "ollama");
	struct cache_embedded got = CACHE_EMBEDDED_INIT;
	const struct cache_ask ask = { .dialect = ollama ? CACHE_OLLAMA_EMBED : CACHE_OPENAI,
				       .model = w->c->model,
				       .extra = "",
				       .dimensions = (uint32_t)w->c->dimension,
				       .texts = w->texts,
				       .n = w->n };
	int rc = w->n > 0 ? cache_embed(w->em, &ask, &got, e) : 0;

	w->hits += got.hits + (rc ? 0 : got.shared);
	w->fetched += got.fetched;
	w->tokens += got.tokens;
	w->total += rc ? 0 : w->n;
	w->n = 0;
	cache_embedded_done(&got);
	return rc;
}

static int warm_lines(struct warm *w, struct shim_lines *l, struct aqe_err *e)
{
	struct shim_progress progress;
	const char *line;
	size_t n;
	int rc;

	shim_progress_init(&progress, "warm", w->c->progress);
	while ((rc = shim_lines_next(l, &line, &n, e)) == 1) {
		if (n == 0) {
			w->empty++;
			continue;
		}
		rc = read_text(w, line, n, l->number, e);
		if (rc)
			break;
		if (w->n < GROUP)
			continue;
		rc = flush(w, e);
		if (rc)
			break;
		aqe_arena_free(w->arena);
		w->arena = aqe_arena_new(ARENA_MAX);
		if (!w->arena) {
			rc = aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
			break;
		}
		shim_progress_update(&progress, l->at, l->size);
	}
	if (!rc)
		rc = flush(w, e);
	shim_progress_end(&progress, l->at, l->size);
	return rc;
}

static int tell_warm(const struct warm *w)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1024);

	aqe_buf_addf(&b,
		     w->c->json
			     ? "{\"version\":1,\"texts\":%llu,\"present\":%llu,\"fetched\":%llu,"
			       "\"tokens\":%llu}\n"
			     : "texts %llu, there already %llu, fetched %llu, tokens paid %llu\n",
		     (unsigned long long)w->total, (unsigned long long)w->hits,
		     (unsigned long long)w->fetched, (unsigned long long)w->tokens);
	return shim_cache_cmd_print(&b);
}

static int warm_file(struct warm *w, struct aqe_err *e)
{
	struct shim_cache_upstream *upstream = NULL;
	struct shim_lines l = { .fd = -1 };
	int rc = shim_cache_cmd_open(w->c, e);

	if (!rc)
		rc = shim_cache_embedder(&w->c->cfg, w->c->cache, NULL, &upstream, &w->em, e);
	if (!rc)
		rc = shim_lines_open(&l, w->c->operand, LINE_MAX_BYTES, e);
	w->arena = aqe_arena_new(ARENA_MAX);
	if (!rc && !w->arena)
		rc = aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	if (!rc) {
		rc = warm_lines(w, &l, e);
		if (tell_warm(w) && !rc)
			rc = aqe_err_set(e, AQE_E_SYS, 0, "cannot write");
	}
	shim_lines_close(&l);
	aqe_arena_free(w->arena);
	cache_embedder_free(w->em);
	shim_cache_upstream_free(upstream);
	return rc;
}

int shim_cache_warm(int argc, char **argv)
{
	static const struct aqe_cli_opt OPTS[] = {
		{ "model", 'm', "NAME", "the model", SHIM_CACHE_MODEL },
		SHIM_CACHE_OPT_SCOPE,
		{ "dimension", 0, "N", "asked for; 0 (default) is the model's own",
		  SHIM_CACHE_DIMENSION },
		{ "progress", 0, NULL, "show progress even where there is no terminal",
		  SHIM_CACHE_PROGRESS },
		SHIM_CACHE_OPTS_UPSTREAM,
		SHIM_CACHE_OPTS_STORE,
		SHIM_CACHE_OPTS_END,
	};
	static const struct aqe_cli_cmd CMD = {
		.name = "warm",
		.synopsis = "--model NAME [--upstream-kind KIND --upstream-url URL] "
			    "[--path FILE | --redis-url URL | --config FILE] FILE",
		.about =
			"Embeds the texts of FILE ('-': standard input) that are not in the cache: "
			"one a line, or JSON lines with a member 'text' or 'content'. The keys are "
			"those of 'serve'. Run again, it goes on where it was cut.",
		.opts = OPTS,
	};
	struct warm w = { .n = 0 };
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_cache_cmd c;
	int rc = shim_cache_cmd_read(&c, &CMD, argc, argv, "FILE");

	if (rc < 0) {
		w.c = &c;
		rc = c.model ? warm_file(&w, &e)
			     : aqe_err_set(&e, AQE_E_USAGE, 0, "warm: --model is missing");
		rc = rc ? shim_cache_cmd_fail(&e) : SHIM_EXIT_OK;
	}
	shim_cache_cmd_done(&c);
	return rc;
}
