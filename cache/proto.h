/* SPDX-License-Identifier: MIT */
/* The languages of the gateway: what agents ask (Ollama's and OpenAI's embeddings API), what is
 * asked of the upstream and what it answers, what agents are told. Pure: bytes in, bytes out. */
#ifndef AQE_CACHE_PROTO_H
#define AQE_CACHE_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/store.h"
#include "shim/core/arena.h"
#include "shim/core/buf.h"
#include "shim/core/err.h"

#define CACHE_ASK_TEXTS_MAX 2048U             /* texts in one request, OpenAI's limit */
#define CACHE_ASK_TEXT_MAX  ((size_t)4 << 20) /* bytes of one */
#define CACHE_ASK_EXTRA_MAX ((size_t)4096)    /* bytes of other members */
#define CACHE_ANSWER_MAX    ((size_t)128 << 20)

enum cache_dialect {
	CACHE_OLLAMA_EMBED,  /* POST /api/embed: unit length, batches */
	CACHE_OLLAMA_LEGACY, /* POST /api/embeddings: one text, not normalised */
	CACHE_OPENAI,        /* POST /v1/embeddings */
};

struct cache_text {
	const char *p;
	size_t n;
};

/* What an agent asks for; everything lives in the arena it was read into. */
struct cache_ask {
	enum cache_dialect dialect;
	const char *model;
	const char
		*extra; /* other members that may decide the numbers, canonical JSON; "" = none */
	uint32_t dimensions;
	bool base64; /* the answer's encoding */
	bool tokens; /* texts are lists of token numbers, as JSON */
	struct cache_text *texts;
	size_t n;
};
/* Reads the body of a request. AQE_E_MALFORMED, AQE_E_LIMIT: its sender's fault, with words for
 * him; AQE_E_NOMEM. */
AQE_MUST_CHECK int cache_ask_read(struct aqe_arena *a, enum cache_dialect dialect, const char *body,
				  size_t len, struct cache_ask *ret, struct aqe_err *e);
/* What an upstream adds to a key; NULL texts are "". */
struct cache_source {
	const char *scope, *provider, *revision;
	bool normalised;
};
/* The key of one text. */
void cache_ask_key(const struct cache_ask *ask, size_t i, const struct cache_source *from,
		   struct cache_key *ret);

/* The dialect in which an upstream ("ollama" or not) is asked. */
enum cache_dialect cache_proto_dialect(const struct cache_ask *ask, bool ollama);
const char *cache_proto_path(enum cache_dialect d);
/* Appends the body that asks for the texts whose indices are in `which`; one text in the legacy
 * dialect. */
AQE_MUST_CHECK int cache_proto_question(const struct cache_ask *ask, enum cache_dialect d,
					const size_t *which, size_t n, struct aqe_buf *b,
					struct aqe_err *e);

struct cache_vector {
	const float *v;
	uint32_t dim;
};
struct cache_answer {
	struct cache_vector *v; /* room for n, in the order asked for */
	size_t n;
	uint64_t tokens; /* what the upstream counted, 0 when it does not say */
};
/* Reads an upstream's answer: exactly ret->n embeddings into ret->v, their numbers in `a`.
 * AQE_E_MALFORMED, AQE_E_LIMIT, AQE_E_NOMEM. */
AQE_MUST_CHECK int cache_proto_answer(struct aqe_arena *a, enum cache_dialect d,
				      const struct aqe_buf *body, struct cache_answer *ret,
				      struct aqe_err *e);

struct cache_model {
	const char *name, *digest;
};
/* Reads the list of models of Ollama's /api/tags; the first `max` of them. */
AQE_MUST_CHECK int cache_proto_models(struct aqe_arena *a, const struct aqe_buf *body,
				      struct cache_model *ret, size_t max, size_t *ret_n,
				      struct aqe_err *e);
/* The words in an upstream's error answer, cut and without control characters; "" when there are
 * none. */
void cache_proto_error(const struct aqe_buf *body, struct aqe_buf *b);

/* Appends what the agent is told: items are the embeddings of ask->texts, in order. */
AQE_MUST_CHECK int cache_proto_reply(const struct cache_ask *ask, const struct cache_item *items,
				     uint64_t tokens, struct aqe_buf *b, struct aqe_err *e);
/* Appends an error in the dialect's form. */
void cache_proto_fault(enum cache_dialect d, int status, const char *text, struct aqe_buf *b);

#endif
