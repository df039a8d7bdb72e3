/* SPDX-License-Identifier: MIT */
/* The gateway's way to its upstream, by libcurl. */
#ifndef AQE_AQE_CACHE_UPSTREAM_H
#define AQE_AQE_CACHE_UPSTREAM_H

#include "cache/config.h"
#include "cache/upstream.h"

struct shim_cache_upstream;

/* The way out: connected sockets to an egress worker (http.h, open_proxy), or NULL to dial. */
struct shim_cache_way {
	int (*open_proxy)(void *self);
	void *self;
};

/* `cfg` is borrowed, `way` (NULL: dial) copied. Reads the credential's file once: AQE_E_UNTRUSTED
 * when it is not safe. `ret_port` is valid until free, and may be used from several threads: each
 * exchange takes one of a pool of clients. */
AQE_MUST_CHECK int shim_cache_upstream_new(const struct cache_upstream_config *cfg,
					   const struct shim_cache_way *way,
					   struct shim_cache_upstream **ret,
					   struct cache_upstream *ret_port, struct aqe_err *e);
void shim_cache_upstream_free(struct shim_cache_upstream *u);

#endif
