/* SPDX-License-Identifier: MIT */
#include "shim/aqe/cache_serve.h"

#include <stdlib.h>
#include <unistd.h>

#include "cache/gateway.h"

struct shim_cache_service {
	struct cache *cache;
	struct shim_cache_upstream *upstream;
	struct cache_embedder *embedder;
	struct cache_gateway *gateway;
};

static int make_embedder(const struct cache_config *cfg, struct cache *cache,
			 const struct cache_gate *gate, const struct shim_cache_way *way,
			 struct shim_cache_upstream **ret_upstream, struct cache_embedder **ret,
			 struct aqe_err *e)
{
	static const struct cache_gate OPEN = { NULL, NULL, NULL };
	struct cache_embed_opts o = { .cache = cache,
				      .cfg = &cfg->upstream,
				      .space = cfg->space,
				      .gate = gate ? *gate : OPEN };
	int rc;

	if (!cfg->has_upstream || !cfg->upstream.kind || !cfg->upstream.url)
		return aqe_err_set(
			e, AQE_E_USAGE, 0,
			"no upstream: wanted a section 'upstream', or --upstream-kind and "
			"--upstream-url");
	rc = shim_cache_upstream_new(&cfg->upstream, way, ret_upstream, &o.upstream, e);
	return rc ? rc : cache_embedder_new(&o, ret, e);
}

int shim_cache_embedder(const struct cache_config *cfg, struct cache *cache,
			const struct cache_gate *gate, struct shim_cache_upstream **ret_upstream,
			struct cache_embedder **ret, struct aqe_err *e)
{
	return make_embedder(cfg, cache, gate, NULL, ret_upstream, ret, e);
}

int shim_cache_service_through(const struct cache_config *cfg, int listen_fd, unsigned threads,
			       const struct shim_cache_way *way, struct shim_cache_service **ret,
			       struct aqe_err *e)
{
	struct cache_gateway_opts o = { .listen_fd = listen_fd, .threads = threads };
	struct shim_cache_service *s = calloc(1, sizeof(*s));
	int rc = s ? cache_open(cfg, NULL, &s->cache, e)
		   : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");

	if (!rc)
		rc = make_embedder(cfg, s->cache, NULL, way, &s->upstream, &s->embedder, e);
	if (rc) {
		(void)close(listen_fd);
		shim_cache_service_free(s);
		return rc;
	}
	o.embedder = s->embedder;
	o.cache = s->cache;
	rc = cache_gateway_new(&o, &s->gateway, e);
	if (rc) {
		shim_cache_service_free(s);
		return rc;
	}
	*ret = s;
	return 0;
}

int shim_cache_service_new(const struct cache_config *cfg, int listen_fd, unsigned threads,
			   struct shim_cache_service **ret, struct aqe_err *e)
{
	return shim_cache_service_through(cfg, listen_fd, threads, NULL, ret, e);
}

int shim_cache_service_run(struct shim_cache_service *s, struct aqe_err *e)
{
	return cache_gateway_run(s->gateway, e);
}

void shim_cache_service_stop(struct shim_cache_service *s)
{
	cache_gateway_stop(s->gateway);
}

void shim_cache_service_free(struct shim_cache_service *s)
{
	if (!s)
		return;
	cache_gateway_free(s->gateway);
	cache_embedder_free(s->embedder);
	shim_cache_upstream_free(s->upstream);
	cache_close(s->cache);
	free(s);
}
