/* SPDX-License-Identifier: MIT */
#include "cache/proto.h"

#include <string.h>
#include <strings.h>

#include "cache/cache.h"
#include "cache/numbers.h"
#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "shim/core/text.h"

#define ARENA_MAX     ((size_t)512 << 20)
#define MODEL_MAX     256
#define SHOWN_MAX     400 /* of an upstream's words */
#define TOKENS_MAX    (UINT64_C(1) << 40)
#define TOKEN_NUMBERS 16384 /* of one list of tokens */

static const struct aqe_json_limits ASK_LIMITS = {
	.bytes = (size_t)8 << 20,
	.depth = 12,
	.values = 500000,
	.entries = 65536,
	.string = CACHE_ASK_TEXT_MAX,
	.number = 40,
	.fold_dups_ok = true,
};

static int bad(const struct aqe_json *v, const char *what, struct aqe_err *e)
{
	return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col, "%s", what);
}

/* ---- what agents ask ---- */

/* A list of token numbers becomes its JSON text. */
static int read_tokens(struct aqe_arena *a, const struct aqe_json *list, struct cache_text *ret,
		       struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 20);
	uint64_t n;
	int rc;

	if (list->len == 0 || list->len > TOKEN_NUMBERS)
		return bad(list, "'input': wanted 1 to 16384 tokens", e);
	for (const struct aqe_json *v = list->first; v; v = v->next)
		if (!aqe_json_to_u64(v, UINT32_MAX, &n))
			return bad(v, "'input': wanted texts or token numbers", e);
	rc = aqe_json_emit(list, AQE_JSON_COMPACT, &b, e);
	if (rc)
		return rc;
	ret->p = aqe_arena_ndup(a, aqe_buf_str(&b), b.len);
	ret->n = b.len;
	return ret->p ? 0 : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
}

static int read_one(struct aqe_arena *a, const struct aqe_json *v, struct cache_ask *ask,
		    struct aqe_err *e)
{
	struct cache_text *to = &ask->texts[ask->n];

	if (ask->n > 0 && ask->tokens != (v->type == AQE_JSON_ARRAY))
		return bad(v, "'input': texts and tokens together", e);
	ask->tokens = v->type == AQE_JSON_ARRAY;
	if (v->type == AQE_JSON_ARRAY) {
		const int rc = read_tokens(a, v, to, e);

		if (rc)
			return rc;
	} else if (v->type == AQE_JSON_STRING) {
		to->p = v->text;
		to->n = v->len;
	} else {
		return bad(v, "'input': wanted a text or a list of texts", e);
	}
	ask->n++;
	return 0;
}

/* A text, a list of texts, a list of token numbers, or a list of such lists. */
static int read_input(struct aqe_arena *a, const struct aqe_json *v, struct cache_ask *ask,
		      struct aqe_err *e)
{
	const bool one =
		v->type != AQE_JSON_ARRAY || (v->first && v->first->type == AQE_JSON_NUMBER);
	const size_t n = one ? 1 : v->len;
	int rc = 0;

	if (n > CACHE_ASK_TEXTS_MAX)
		return aqe_err_at(e, AQE_E_LIMIT, v->line, v->col, "'input': more than %u texts",
				  CACHE_ASK_TEXTS_MAX);
	ask->texts = aqe_arena_calloc(a, n ? n : 1, sizeof(*ask->texts));
	if (!ask->texts)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	if (one)
		return read_one(a, v, ask, e);
	for (const struct aqe_json *item = v->first; item && !rc; item = item->next)
		rc = read_one(a, item, ask, e);
	return rc;
}

/* The members that the gateway understands or that cannot change a number; all others are part of
 * the key, and go to the upstream. */
static const char *const KNOWN[] = { "model",           "input",  "prompt",
				     "encoding_format", "user",   "keep_alive",
				     "dimensions",      "stream", NULL };

/* Go's JSON reader, Ollama's, ignores letter case: "Model" beside "model" would be its model. */
static bool is_disguised(const char *name)
{
	for (size_t i = 0; KNOWN[i]; i++)
		if (strcasecmp(name, KNOWN[i]) == 0 && strcmp(name, KNOWN[i]) != 0)
			return true;
	return false;
}

static int read_extra(struct aqe_arena *a, const struct aqe_json *root, struct cache_ask *ask,
		      struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(CACHE_ASK_EXTRA_MAX);
	struct aqe_json *extra = aqe_json_new_object(a);
	int rc = extra ? 0 : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");

	if (!extra || root->fold_dup)
		return rc ? rc : bad(root, "two members whose names differ only in letter case", e);
	for (const struct aqe_json *v = root->first; v && !rc; v = v->next) {
		const bool empty = v->type == AQE_JSON_OBJECT && v->len == 0;

		if (is_disguised(v->key))
			return bad(v, "a member's name in unusual letters", e);
		if (aqe_str_in(v->key, KNOWN) || v->type == AQE_JSON_NULL || empty)
			continue;
		if (aqe_json_set(a, extra, v->key, aqe_json_copy(a, v)))
			rc = aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	}
	ask->extra = "";
	if (rc || extra->len == 0)
		return rc;
	rc = aqe_json_emit(extra, AQE_JSON_COMPACT | AQE_JSON_SORTED, &b, e);
	if (rc)
		return rc;
	ask->extra = aqe_arena_dup(a, aqe_buf_str(&b));
	return ask->extra ? 0 : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
}

static int read_encoding(const struct aqe_json *root, struct cache_ask *ask, struct aqe_err *e)
{
	const struct aqe_json *v = aqe_json_get(root, "encoding_format");

	if (!v || v->type == AQE_JSON_NULL || ask->dialect != CACHE_OPENAI)
		return 0;
	ask->base64 = aqe_str_eq(aqe_json_str(v), "base64");
	if (!ask->base64 && !aqe_str_eq(aqe_json_str(v), "float"))
		return bad(v, "'encoding_format': wanted float or base64", e);
	return 0;
}

int cache_ask_read(struct aqe_arena *a, enum cache_dialect dialect, const char *body, size_t len,
		   struct cache_ask *ret, struct aqe_err *e)
{
	const char *member = dialect == CACHE_OLLAMA_LEGACY ? "prompt" : "input";
	struct cache_ask ask = { .dialect = dialect };
	const struct aqe_json *model, *input, *dims;
	struct aqe_json *root = NULL;
	uint64_t n = 0;
	int rc = aqe_json_parse(a, body, len, &ASK_LIMITS, &root, e);

	if (rc)
		return rc;
	model = aqe_json_get(root, "model");
	input = aqe_json_get(root, member);
	dims = aqe_json_get(root, "dimensions");
	ask.model = model ? aqe_json_str(model) : NULL;
	if (!ask.model || model->len == 0 || model->len > MODEL_MAX)
		return bad(root, "'model': wanted a name", e);
	if (!input)
		return aqe_err_at(e, AQE_E_MALFORMED, root->line, root->col, "'%s' is missing",
				  member);
	if (dialect == CACHE_OLLAMA_LEGACY && input->type != AQE_JSON_STRING)
		return bad(input, "'prompt': wanted a text", e);
	if (dims && dims->type != AQE_JSON_NULL &&
	    (!aqe_json_to_u64(dims, CACHE_DIM_MAX, &n) || !n))
		return bad(dims, "'dimensions': wanted a whole number from 1 to 65536", e);
	ask.dimensions = (uint32_t)n;
	rc = read_input(a, input, &ask, e);
	if (!rc)
		rc = read_encoding(root, &ask, e);
	if (!rc)
		rc = read_extra(a, root, &ask, e);
	if (!rc)
		*ret = ask;
	return rc;
}

void cache_ask_key(const struct cache_ask *ask, size_t i, const struct cache_source *from,
		   struct cache_key *ret)
{
	char text[1024 + CACHE_ASK_EXTRA_MAX];
	const char *revision = from->revision ? from->revision : "";
	struct cache_key_parts p = { .scope = from->scope,
				     .provider = from->provider,
				     .model = ask->model,
				     .revision = text,
				     .dimension = ask->dimensions,
				     .normalised = from->normalised,
				     .content = ask->texts[i].p,
				     .len = ask->texts[i].n };
	const size_t n = strnlen(revision, 1000), extra = strlen(ask->extra);

	/* a revision has no line break, so this cannot be read in two ways */
	memcpy(text, revision, n);
	text[n] = '\0';
	if (ask->tokens || extra > 0) {
		text[n] = '\n';
		text[n + 1] = ask->tokens ? 't' : 's';
		memcpy(text + n + 2, ask->extra, extra + 1);
	}
	cache_key_make(&p, ret);
}

/* ---- what the upstream is asked ---- */

enum cache_dialect cache_proto_dialect(const struct cache_ask *ask, bool ollama)
{
	if (!ollama)
		return CACHE_OPENAI;
	return ask->dialect == CACHE_OLLAMA_LEGACY ? CACHE_OLLAMA_LEGACY : CACHE_OLLAMA_EMBED;
}

const char *cache_proto_path(enum cache_dialect d)
{
	switch (d) {
	case CACHE_OLLAMA_EMBED:
		return "/api/embed";
	case CACHE_OLLAMA_LEGACY:
		return "/api/embeddings";
	case CACHE_OPENAI:
		return "/v1/embeddings";
	}
	return "/";
}

static void emit_text(const struct cache_ask *ask, size_t i, struct aqe_buf *b)
{
	if (ask->tokens)
		aqe_buf_add(b, ask->texts[i].p, ask->texts[i].n); /* written by our own writer */
	else
		aqe_json_emit_str(b, ask->texts[i].p);
}

int cache_proto_question(const struct cache_ask *ask, enum cache_dialect d, const size_t *which,
			 size_t n, struct aqe_buf *b, struct aqe_err *e)
{
	const size_t extra = strlen(ask->extra);

	aqe_buf_puts(b, "{\"model\":");
	aqe_json_emit_str(b, ask->model);
	if (d == CACHE_OLLAMA_LEGACY) {
		aqe_buf_puts(b, ",\"prompt\":");
		emit_text(ask, which[0], b);
	} else {
		aqe_buf_puts(b, ",\"input\":[");
		for (size_t i = 0; i < n; i++) {
			if (i > 0)
				aqe_buf_putc(b, ',');
			emit_text(ask, which[i], b);
		}
		aqe_buf_putc(b, ']');
	}
	if (d == CACHE_OPENAI)
		aqe_buf_puts(b, ",\"encoding_format\":\"float\"");
	if (ask->dimensions)
		aqe_buf_addf(b, ",\"dimensions\":%u", ask->dimensions);
	if (extra > 2) { /* its members, without the braces */
		aqe_buf_putc(b, ',');
		aqe_buf_add(b, ask->extra + 1, extra - 2);
	}
	aqe_buf_putc(b, '}');
	return aqe_buf_ok(b, e);
}

/* ---- what it answers ---- */

static int take_vector(struct aqe_arena *a, const struct aqe_json *v, struct cache_vector *ret,
		       struct aqe_err *e)
{
	float *numbers = NULL;
	uint32_t dim = 0;
	const int rc = cache_numbers_read(a, v, &numbers, &dim, e);

	if (rc)
		return rc;
	if (ret->v)
		return bad(v, "two embeddings for one text", e);
	ret->v = numbers;
	ret->dim = dim;
	return 0;
}

static int read_openai(struct aqe_arena *a, const struct aqe_json *root, struct cache_vector *ret,
		       size_t n, struct aqe_err *e)
{
	const struct aqe_json *data = aqe_json_get(root, "data");
	uint64_t index, at = 0;
	int rc = 0;

	if (!data || data->type != AQE_JSON_ARRAY || data->len != n)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "not %zu embeddings in 'data'", n);
	for (const struct aqe_json *v = data->first; v && !rc; v = v->next, at++) {
		const struct aqe_json *i = aqe_json_get(v, "index");

		index = at; /* some leave it out */
		if (i && (!aqe_json_to_u64(i, UINT32_MAX, &index) || index >= n))
			return bad(i, "'index': out of range", e);
		rc = take_vector(a, aqe_json_get(v, "embedding"), &ret[index], e);
	}
	return rc;
}

static int read_ollama(struct aqe_arena *a, const struct aqe_json *root, struct cache_vector *ret,
		       size_t n, struct aqe_err *e)
{
	const struct aqe_json *list = aqe_json_get(root, "embeddings");
	size_t at = 0;
	int rc = 0;

	if (!list || list->type != AQE_JSON_ARRAY || list->len != n)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "not %zu embeddings in 'embeddings'", n);
	for (const struct aqe_json *v = list->first; v && !rc; v = v->next)
		rc = take_vector(a, v, &ret[at++], e);
	return rc;
}

int cache_proto_answer(struct aqe_arena *a, enum cache_dialect d, const struct aqe_buf *body,
		       struct cache_answer *ret, struct aqe_err *e)
{
	const struct aqe_json *count;
	struct aqe_json *root = NULL;
	int rc = aqe_json_parse(a, aqe_buf_str(body), body->len, &CACHE_NUMBERS_LIMITS, &root, e);

	if (rc)
		return rc;
	ret->tokens = 0;
	memset(ret->v, 0, ret->n * sizeof(*ret->v));
	if (d == CACHE_OPENAI)
		rc = read_openai(a, root, ret->v, ret->n, e);
	else if (d == CACHE_OLLAMA_EMBED)
		rc = read_ollama(a, root, ret->v, ret->n, e);
	else if (ret->n == 1)
		rc = take_vector(a, aqe_json_get(root, "embedding"), ret->v, e);
	else
		rc = aqe_err_set(e, AQE_E_INTERNAL, 0, "%zu texts in one question", ret->n);
	if (rc)
		return rc;
	count = d == CACHE_OPENAI ? aqe_json_at(root, "/usage/total_tokens")
				  : aqe_json_get(root, "prompt_eval_count");
	if (count)
		(void)aqe_json_to_u64(count, TOKENS_MAX, &ret->tokens); /* else it stays 0 */
	return 0;
}

int cache_proto_models(struct aqe_arena *a, const struct aqe_buf *body, struct cache_model *ret,
		       size_t max, size_t *ret_n, struct aqe_err *e)
{
	const struct aqe_json *list, *name, *digest;
	struct aqe_json *root = NULL;
	size_t n = 0;
	int rc = aqe_json_parse(a, aqe_buf_str(body), body->len, &CACHE_NUMBERS_LIMITS, &root, e);

	if (rc)
		return rc;
	list = aqe_json_get(root, "models");
	if (!list || list->type != AQE_JSON_ARRAY)
		return bad(root, "no list of models", e);
	for (const struct aqe_json *v = list->first; v && n < max; v = v->next) {
		name = aqe_json_get(v, "name");
		digest = aqe_json_get(v, "digest");
		if (!name || !aqe_json_str(name) || !digest || !aqe_json_str(digest))
			continue; /* one we could not tell from another */
		ret[n].name = name->text;
		ret[n++].digest = digest->text;
	}
	*ret_n = n;
	return 0;
}

void cache_proto_error(const struct aqe_buf *body, struct aqe_buf *b)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	const struct aqe_json *error, *message;
	struct aqe_json *root = NULL;

	if (!a || body->len > 65536 ||
	    aqe_json_parse(a, aqe_buf_str(body), body->len, &CACHE_NUMBERS_LIMITS, &root, NULL))
		return;
	error = aqe_json_get(root, "error");
	message = error && error->type == AQE_JSON_OBJECT ? aqe_json_get(error, "message") : error;
	if (!message || message->type != AQE_JSON_STRING)
		message = aqe_json_get(root, "message");
	if (message && aqe_json_str(message))
		aqe_buf_quote(b, message->text, SHOWN_MAX);
}

/* ---- what agents are told ---- */

static void reply_openai(const struct cache_ask *ask, const struct cache_item *items,
			 uint64_t tokens, struct aqe_buf *b)
{
	struct cache_value v;

	aqe_buf_puts(b, "{\"object\":\"list\",\"data\":[");
	for (size_t i = 0; i < ask->n; i++) {
		cache_item_value(&items[i], &v);
		aqe_buf_addf(b, "%s{\"object\":\"embedding\",\"index\":%zu,\"embedding\":",
			     i ? "," : "", i);
		if (ask->base64)
			cache_numbers_emit_base64(&v, b);
		else
			cache_numbers_emit(&v, b);
		aqe_buf_putc(b, '}');
	}
	aqe_buf_puts(b, "],\"model\":");
	aqe_json_emit_str(b, ask->model);
	aqe_buf_addf(b, ",\"usage\":{\"prompt_tokens\":%llu,\"total_tokens\":%llu}}",
		     (unsigned long long)tokens, (unsigned long long)tokens);
}

static void reply_ollama(const struct cache_ask *ask, const struct cache_item *items,
			 uint64_t tokens, struct aqe_buf *b)
{
	struct cache_value v;

	aqe_buf_puts(b, "{\"model\":");
	aqe_json_emit_str(b, ask->model);
	aqe_buf_puts(b, ",\"embeddings\":[");
	for (size_t i = 0; i < ask->n; i++) {
		cache_item_value(&items[i], &v);
		if (i > 0)
			aqe_buf_putc(b, ',');
		cache_numbers_emit(&v, b);
	}
	aqe_buf_addf(b, "],\"total_duration\":0,\"load_duration\":0,\"prompt_eval_count\":%llu}",
		     (unsigned long long)tokens);
}

int cache_proto_reply(const struct cache_ask *ask, const struct cache_item *items, uint64_t tokens,
		      struct aqe_buf *b, struct aqe_err *e)
{
	struct cache_value v;

	if (ask->dialect == CACHE_OPENAI) {
		reply_openai(ask, items, tokens, b);
	} else if (ask->dialect == CACHE_OLLAMA_EMBED) {
		reply_ollama(ask, items, tokens, b);
	} else {
		cache_item_value(&items[0], &v);
		aqe_buf_puts(b, "{\"embedding\":");
		cache_numbers_emit(&v, b);
		aqe_buf_putc(b, '}');
	}
	return aqe_buf_ok(b, e);
}

void cache_proto_fault(enum cache_dialect d, int status, const char *text, struct aqe_buf *b)
{
	if (d != CACHE_OPENAI) {
		aqe_buf_puts(b, "{\"error\":");
		aqe_json_emit_str(b, text);
		aqe_buf_putc(b, '}');
		return;
	}
	aqe_buf_puts(b, "{\"error\":{\"message\":");
	aqe_json_emit_str(b, text);
	aqe_buf_addf(b, ",\"type\":\"%s\",\"param\":null,\"code\":null}}",
		     status == 429  ? "rate_limit_exceeded"
		     : status < 500 ? "invalid_request_error"
				    : "server_error");
}
