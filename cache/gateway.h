/* SPDX-License-Identifier: MIT */
/* The embedding gateway: a small HTTP server in front of an embedder, for the agent in a container
 * (127.0.0.1:3130 there) or for anybody who may connect. Speaks POST /api/embed, /api/embeddings,
 * GET /api/tags (Ollama), POST /v1/embeddings, GET /v1/models (OpenAI) and GET /aqe/cache/stats. */
#ifndef AQE_CACHE_GATEWAY_H
#define AQE_CACHE_GATEWAY_H

#include "cache/embed.h"

struct cache_gateway;

struct cache_gateway_opts {
	struct cache_embedder *embedder; /* borrowed */
	struct cache *cache;             /* borrowed; for the statistics */
	int listen_fd;        /* listening already; closed by free, also when new fails */
	unsigned threads;     /* requests served at once; 0 = 8 */
	unsigned connections; /* open at once; 0 = 256. One more is closed */
	unsigned idle_ms;     /* of a connection between requests; 0 = 60,000 */
	unsigned request_ms;  /* for a whole request to arrive; 0 = 30,000 */
};

/* Makes the listener non-blocking and starts the threads. Ignores SIGPIPE by sending without it. */
AQE_MUST_CHECK int cache_gateway_new(const struct cache_gateway_opts *o, struct cache_gateway **ret,
				     struct aqe_err *e);
/* Serves until cache_gateway_stop(); then requests that are being served are ended. */
AQE_MUST_CHECK int cache_gateway_run(struct cache_gateway *g, struct aqe_err *e);
/* Makes run() return; may be called from a signal handler and from other threads. */
void cache_gateway_stop(struct cache_gateway *g);
/* Waits for the threads. NULL is accepted. */
void cache_gateway_free(struct cache_gateway *g);

/* Answers one request: appends head and body to `b`. What the threads call; for tests and fuzzing.
 */
struct cache_request;
void cache_gateway_answer(struct cache_embedder *em, struct cache *c, const struct cache_request *q,
			  struct aqe_buf *b);
/* Appends a refusal of what cache_request_parse() did not take. */
void cache_gateway_refuse(int status, struct aqe_buf *b);
/* Appends the statistics as one JSON object. */
void cache_gateway_stats(struct cache *c, struct aqe_buf *b);

#endif
