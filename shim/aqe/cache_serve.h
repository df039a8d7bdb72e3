/* SPDX-License-Identifier: MIT */
/* The embedding gateway, composed: cache, upstream by libcurl, policy, sockets. For `aqe cache
 * serve` and for the egress service, which has a listener inside a container. */
#ifndef AQE_AQE_CACHE_SERVE_H
#define AQE_AQE_CACHE_SERVE_H

#include "cache/config.h"
#include "cache/embed.h"
#include "shim/aqe/cache_upstream.h"

struct shim_cache_service;

/* Opens the cache and starts the threads; `cfg` (which must have an upstream) is borrowed.
 * `listen_fd` listens already and is owned from here on, also on failure. Not in a process that
 * forks. */
AQE_MUST_CHECK int shim_cache_service_new(const struct cache_config *cfg, int listen_fd,
					  unsigned threads, struct shim_cache_service **ret,
					  struct aqe_err *e);
/* As above, with another way to the upstream. */
AQE_MUST_CHECK int shim_cache_service_through(const struct cache_config *cfg, int listen_fd,
					      unsigned threads, const struct shim_cache_way *way,
					      struct shim_cache_service **ret, struct aqe_err *e);
/* Serves until shim_cache_service_stop(), which may be called from a signal handler. */
AQE_MUST_CHECK int shim_cache_service_run(struct shim_cache_service *s, struct aqe_err *e);
void shim_cache_service_stop(struct shim_cache_service *s);
/* Waits for requests that are being served. NULL is accepted. */
void shim_cache_service_free(struct shim_cache_service *s);

/* What a command needs to embed without sockets (`warm`). `cache` is borrowed. */
AQE_MUST_CHECK int shim_cache_embedder(const struct cache_config *cfg, struct cache *cache,
				       const struct cache_gate *gate,
				       struct shim_cache_upstream **ret_upstream,
				       struct cache_embedder **ret, struct aqe_err *e);

#endif
