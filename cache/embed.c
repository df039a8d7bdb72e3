/* SPDX-License-Identifier: MIT */
#include "cache/embed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/fetch.h"
#include "cache/flight.h"
#include "cache/models.h"
#include "cache/numbers.h"
#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "shim/core/text.h"

#define ARENA_MAX    ((size_t)512 << 20)
#define QUESTION_MAX ((size_t)64 << 20)

struct cache_embedder {
	struct cache *cache;
	const struct cache_upstream_config *cfg;
	const char *space;
	struct cache_fetcher fetcher;
	struct cache_flights *flights;
	bool ollama;
	struct cache_models *models;
};

void cache_embedded_done(struct cache_embedded *r)
{
	if (!r)
		return;
	cache_items_free(r->items, r->n);
	r->items = NULL;
	r->n = 0;
}

int cache_embedder_new(const struct cache_embed_opts *o, struct cache_embedder **ret,
		       struct aqe_err *e)
{
	struct cache_embedder *em = calloc(1, sizeof(*em));

	if (!em)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	em->cache = o->cache;
	em->cfg = o->cfg;
	em->space = o->space;
	em->ollama = aqe_str_eq(o->cfg->kind, "ollama");
	em->fetcher = (struct cache_fetcher){ o->cfg, o->upstream, o->gate };
	em->flights = cache_flights_new();
	em->models = cache_models_new(&em->fetcher);
	if (!em->flights || !em->models) {
		cache_embedder_free(em);
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	}
	*ret = em;
	return 0;
}

void cache_embedder_free(struct cache_embedder *em)
{
	if (!em)
		return;
	cache_flights_free(em->flights);
	cache_models_free(em->models);
	free(em);
}

static bool is_allowed(const struct cache_embedder *em, const char *model)
{
	for (uint64_t i = 0; i < em->cfg->n_models; i++)
		if (strcmp(em->cfg->models[i], model) == 0)
			return true;
	return em->cfg->n_models == 0;
}

/* Part of the key: what the model is at the upstream. */
static int find_revision(struct cache_embedder *em, const char *model, char ret[CACHE_REVISION_MAX],
			 int *ret_status, struct aqe_err *e)
{
	if (!em->cfg->revision && em->ollama)
		return cache_models_find(em->models, model, ret, ret_status, e);
	(void)snprintf(ret, CACHE_REVISION_MAX, "%s", em->cfg->revision ? em->cfg->revision : "");
	return 0;
}

/* ---- one call ---- */

/* The distinct texts of a call, and what is known of each. */
struct job {
	struct cache_embedder *em;
	const struct cache_ask *ask;
	struct cache_embedded *ret;
	enum cache_dialect dialect;
	struct cache_item *items; /* distinct ones, n */
	size_t n;
	size_t *text;                 /* n: one text of each */
	size_t *item;                 /* ask->n: which item a text is */
	uint32_t *dims;               /* n */
	struct cache_flight **flight; /* n: NULL when none */
	bool *own;                    /* n: ours to fetch */
};

static int by_key(const void *a, const void *b, void *keys)
{
	const struct cache_key *k = keys;

	return memcmp(k[*(const size_t *)a].b, k[*(const size_t *)b].b, sizeof(k->b));
}

/* Finds equal texts: fills n, text, item and the keys of items. */
static int distinct(struct job *j, struct aqe_arena *a, const char *revision, struct aqe_err *e)
{
	const struct cache_source from = {
		.scope = j->em->space,
		.provider = j->em->cfg->provider ? j->em->cfg->provider : j->em->cfg->url,
		.revision = revision,
		.normalised = j->dialect != CACHE_OLLAMA_LEGACY,
	};
	struct cache_ask named = *j->ask;
	struct cache_key *keys = aqe_arena_calloc(a, j->ask->n, sizeof(*keys));
	size_t *order = aqe_arena_calloc(a, j->ask->n, sizeof(*order));

	if (j->em->ollama && !strchr(named.model, ':')) /* two names of one model */
		named.model = aqe_arena_fmt(a, "%s:latest", named.model);
	if (!keys || !order || !named.model)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	for (size_t i = 0; i < j->ask->n; i++) {
		cache_ask_key(&named, i, &from, &keys[i]);
		order[i] = i;
	}
	qsort_r(order, j->ask->n, sizeof(*order), by_key, keys);
	for (size_t i = 0; i < j->ask->n; i++) {
		if (i == 0 || !cache_key_equal(&keys[order[i]], &keys[order[i - 1]])) {
			j->items[j->n].key = keys[order[i]];
			j->dims[j->n] = j->ask->dimensions;
			j->text[j->n++] = order[i];
		}
		j->item[order[i]] = j->n - 1;
	}
	return 0;
}

/* Joins the flights of what is missing; a second look finds what landed in between. */
static void take_off(struct job *j)
{
	for (size_t i = 0; i < j->n; i++) {
		bool owner = true;

		if (j->items[i].found)
			continue;
		j->flight[i] = cache_flight_join(j->em->flights, &j->items[i].key, &owner);
		j->own[i] = owner || !j->flight[i];
		if (!j->own[i])
			continue;
		(void)cache_peek(j->em->cache, &j->items[i], 1, &j->dims[i], NULL); /* or a miss */
		if (!j->items[i].found)
			continue;
		j->own[i] = false;
		j->ret->shared++;
		if (j->flight[i])
			cache_flight_land(j->em->flights, j->flight[i], &j->items[i], 0, NULL);
		j->flight[i] = NULL;
	}
}

/* Ends a flight of ours. */
static void land(struct job *j, size_t i, int status, const struct aqe_err *e)
{
	j->own[i] = false;
	if (j->flight[i])
		cache_flight_land(j->em->flights, j->flight[i], status ? NULL : &j->items[i],
				  status, e);
	j->flight[i] = NULL;
}

/* Puts one batch of answers into items and cache. */
static int store_batch(struct job *j, const size_t *which, const struct cache_answer *answer,
		       struct aqe_err *e)
{
	for (size_t i = 0; i < answer->n; i++) {
		struct cache_item *item = &j->items[which[i]];
		const struct cache_numbers numbers = { answer->v[i].v, NULL, answer->v[i].dim };
		int rc;

		if (j->ask->dimensions && numbers.dim != j->ask->dimensions)
			return aqe_err_set(e, AQE_E_MALFORMED, 0,
					   "upstream: %u numbers, not the %u asked for",
					   numbers.dim, j->ask->dimensions);
		rc = cache_item_encode(j->em->cache, &item->key, &numbers, item, NULL, e);
		if (rc)
			return rc;
		item->found = true;
		/* a cache that cannot be written to is counted, and no reason to fail the agent */
		(void)!cache_put(j->em->cache, item, 1, NULL);
		j->ret->fetched++;
	}
	return 0;
}

/* Asks the upstream for one batch: `which` are items, n of them. */
static int fetch_batch(struct job *j, const size_t *which, size_t n, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf question = AQE_BUF_INIT(QUESTION_MAX);
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	static const struct aqe_buf ANSWER = AQE_BUF_INIT((size_t)64 << 20);
	struct cache_exchange x = { .method = "POST",
				    .path = cache_proto_path(j->dialect),
				    .body = &question,
				    .retry_after_s = -1 };
	struct cache_answer answer = { .n = n };
	size_t *texts = a ? aqe_arena_calloc(a, n, sizeof(*texts)) : NULL;
	int rc;

	x.answer = ANSWER;
	answer.v = a ? aqe_arena_calloc(a, n, sizeof(*answer.v)) : NULL;
	if (!texts || !answer.v)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	for (size_t i = 0; i < n; i++)
		texts[i] = j->text[which[i]];
	rc = cache_proto_question(j->ask, j->dialect, texts, n, &question, e);
	if (!rc) {
		rc = cache_fetch(&j->em->fetcher, &x, n, e);
		j->ret->status = x.status;
		j->ret->retry_after_s = x.retry_after_s;
	}
	if (!rc) {
		j->ret->status = 502;
		rc = cache_proto_answer(a, j->dialect, &x.answer, &answer, e);
		if (rc)
			rc = e ? aqe_err_wrap(e, "upstream") : rc;
	}
	aqe_buf_done(&x.answer);
	if (!rc)
		rc = store_batch(j, which, &answer, e);
	if (!rc)
		j->ret->tokens += answer.tokens;
	return rc;
}

/* Fetches what is ours, batch by batch; after a failure the rest is given up. */
static int fetch_own(struct job *j, struct aqe_arena *a, struct aqe_err *e)
{
	const size_t batch = j->dialect == CACHE_OLLAMA_LEGACY ? 1 : (size_t)j->em->cfg->batch;
	size_t *which = aqe_arena_calloc(a, batch, sizeof(*which));
	int rc = which ? 0 : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	size_t n = 0;

	for (size_t i = 0; i < j->n && which && !rc; i++) {
		if (j->own[i])
			which[n++] = i;
		if (n == 0 || (n < batch && i + 1 < j->n))
			continue;
		rc = fetch_batch(j, which, n, e);
		for (size_t k = 0; k < n && !rc; k++)
			land(j, which[k], 0, NULL);
		n = 0;
	}
	if (rc && !j->ret->status)
		j->ret->status = 500;
	for (size_t i = 0; i < j->n && rc; i++)
		if (j->own[i])
			land(j, i, j->ret->status, e);
	return rc;
}

/* Waits for what others fetch; also after a failure of our own, to let go of the flights. */
static int wait_others(struct job *j, int rc, struct aqe_err *e)
{
	const struct cache_upstream_config *cfg = j->em->cfg;
	const uint64_t most =
		cfg->tries * (cfg->timeout_ms + 2 * cfg->backoff_ms * cfg->tries) + 1000;

	for (size_t i = 0; i < j->n; i++) {
		int status = 0, one;

		if (!j->flight[i])
			continue;
		one = cache_flight_wait(j->em->flights, j->flight[i],
					rc ? 0 : (unsigned)(most < UINT32_MAX ? most : UINT32_MAX),
					&j->items[i], &status, rc ? NULL : e);
		j->flight[i] = NULL;
		j->ret->shared += one == 0;
		if (!one || rc)
			continue;
		rc = one;
		j->ret->status = status;
	}
	return rc;
}

/* One item a text, in the order of the texts. */
static int spread(struct job *j, struct aqe_err *e)
{
	struct cache_item *out = cache_items_new(j->ask->n);
	size_t last_use, *uses = j->text; /* not needed any more */

	if (!out)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	memset(uses, 0, j->n * sizeof(*uses));
	for (size_t i = 0; i < j->ask->n; i++)
		uses[j->item[i]]++;
	for (size_t i = 0; i < j->ask->n; i++) {
		struct cache_item *from = &j->items[j->item[i]];

		last_use = --uses[j->item[i]];
		if (last_use == 0) { /* moved */
			const struct cache_item empty = out[i];

			out[i] = *from;
			from->value = empty.value;
			continue;
		}
		out[i].key = from->key;
		out[i].created_ms = from->created_ms;
		out[i].ttl_ms = from->ttl_ms;
		out[i].found = true;
		aqe_buf_add(&out[i].value, from->value.p, from->value.len);
		if (aqe_buf_ok(&out[i].value, e)) {
			cache_items_free(out, j->ask->n);
			return AQE_E_NOMEM;
		}
	}
	j->ret->items = out;
	j->ret->n = j->ask->n;
	return 0;
}

static int run(struct job *j, struct aqe_arena *a, const char *revision, struct aqe_err *e)
{
	int rc = distinct(j, a, revision, e);

	if (rc)
		return rc;
	(void)cache_get(j->em->cache, j->items, j->n, j->dims, NULL); /* an error is a miss */
	for (size_t i = 0; i < j->ask->n; i++)
		j->ret->hits += j->items[j->item[i]].found;
	take_off(j);
	rc = fetch_own(j, a, e);
	rc = wait_others(j, rc, e);
	if (rc)
		return rc;
	j->ret->shared = j->ask->n - j->ret->hits - j->ret->fetched;
	return spread(j, e);
}

int cache_embed(struct cache_embedder *em, const struct cache_ask *ask, struct cache_embedded *ret,
		struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct job j = { .em = em, .ask = ask, .ret = ret };
	const size_t n = ask->n ? ask->n : 1;
	char revision[CACHE_REVISION_MAX];
	static const struct cache_embedded EMPTY = CACHE_EMBEDDED_INIT;
	int rc = 0;

	*ret = EMPTY;
	if (!is_allowed(em, ask->model)) {
		ret->status = 404;
		return aqe_err_set(e, AQE_E_REFUSED, 0, "model '%.128s' not found", ask->model);
	}
	if (ask->tokens && em->ollama) {
		ret->status = 400;
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "this upstream takes no token numbers");
	}
	rc = find_revision(em, ask->model, revision, &ret->status, e);
	if (rc)
		return rc;
	ret->status = 500;
	j.dialect = cache_proto_dialect(ask, em->ollama);
	j.items = cache_items_new(n);
	if (a) {
		j.text = aqe_arena_calloc(a, n, sizeof(*j.text));
		j.item = aqe_arena_calloc(a, n, sizeof(*j.item));
		j.dims = aqe_arena_calloc(a, n, sizeof(*j.dims));
		j.flight = aqe_arena_calloc(a, n, sizeof(struct cache_flight *));
		j.own = aqe_arena_calloc(a, n, sizeof(*j.own));
	}
	if (!j.items || !j.text || !j.item || !j.dims || !j.flight || !j.own)
		rc = aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	else
		rc = run(&j, a, revision, e);
	cache_items_free(j.items, n);
	if (!rc)
		ret->status = 200;
	return rc;
}

/* ---- the list of models ---- */

struct listing {
	const struct cache_embedder *em;
	struct aqe_buf *b;
	bool any;
};

static void emit_model(void *self, const struct cache_model *model)
{
	struct listing *l = self;

	if (!is_allowed(l->em, model->name))
		return;
	aqe_buf_puts(l->b, l->any ? ",{\"name\":" : "{\"name\":");
	l->any = true;
	aqe_json_emit_str(l->b, model->name);
	aqe_buf_puts(l->b, ",\"model\":");
	aqe_json_emit_str(l->b, model->name);
	aqe_buf_puts(l->b, ",\"digest\":");
	aqe_json_emit_str(l->b, model->digest);
	aqe_buf_puts(l->b, "}");
}

int cache_embed_tags(struct cache_embedder *em, struct aqe_buf *b, int *ret_status,
		     struct aqe_err *e)
{
	struct listing l = { em, b, false };
	int rc = 0;

	*ret_status = 500;
	aqe_buf_puts(b, "{\"models\":[");
	if (em->ollama)
		rc = cache_models_each(em->models, emit_model, &l, ret_status, e);
	for (uint64_t i = 0; !em->ollama && i < em->cfg->n_models; i++)
		emit_model(&l, &(const struct cache_model){ em->cfg->models[i], "" });
	aqe_buf_puts(b, "]}");
	return rc ? rc : aqe_buf_ok(b, e);
}
