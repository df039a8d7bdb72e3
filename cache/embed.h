/* SPDX-License-Identifier: MIT */
/* Embeddings of texts: from the cache, and what is missing from the upstream, in batches, once,
 * with retries, if the policy allows. Usable from many threads. */
#ifndef AQE_CACHE_EMBED_H
#define AQE_CACHE_EMBED_H

#include "cache/cache.h"
#include "cache/proto.h"
#include "cache/upstream.h"

struct cache_embedder;

struct cache_embed_opts {
	struct cache *cache;                     /* borrowed */
	const struct cache_upstream_config *cfg; /* borrowed */
	const char *space;                       /* borrowed; of the keys, as in cache_config */
	struct cache_upstream upstream;
	struct cache_gate gate;
};

struct cache_embedded {
	struct cache_item *items; /* one a text, all found; NULL after a failure */
	size_t n;
	size_t hits;    /* texts that were in the cache */
	size_t fetched; /* texts that were paid for in this call */
	size_t shared; /* texts that another call paid for at the same time, or twice in this one */
	uint64_t tokens; /* what the upstream counted for `fetched` */
	/* after a failure: the HTTP status for the agent, and Retry-After (-1: none) */
	int status;
	int64_t retry_after_s;
};
#define CACHE_EMBEDDED_INIT                \
	{                                  \
		NULL, 0, 0, 0, 0, 0, 0, -1 \
	}
void cache_embedded_done(struct cache_embedded *r);

AQE_MUST_CHECK int cache_embedder_new(const struct cache_embed_opts *o, struct cache_embedder **ret,
				      struct aqe_err *e);
/* No call may be running. NULL is accepted. */
void cache_embedder_free(struct cache_embedder *em);

/* Fills `ret` anew; free it after success. Blocks at most tries x timeout_ms a batch. The words of
 * an error are for the agent. */
AQE_MUST_CHECK int cache_embed(struct cache_embedder *em, const struct cache_ask *ask,
			       struct cache_embedded *ret, struct aqe_err *e);
/* Appends the list of models as Ollama's /api/tags; *ret_status on failure as above. */
AQE_MUST_CHECK int cache_embed_tags(struct cache_embedder *em, struct aqe_buf *b, int *ret_status,
				    struct aqe_err *e);

#endif
