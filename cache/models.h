/* SPDX-License-Identifier: MIT */
/* What models an Ollama upstream has. A model that is pulled anew gives other numbers under the
 * same name: its digest is the revision in the key. The list is believed for a minute; when it
 * cannot be had again, the old one is used. */
#ifndef AQE_CACHE_MODELS_H
#define AQE_CACHE_MODELS_H

#include "cache/fetch.h"
#include "cache/proto.h"

#define CACHE_REVISION_MAX 128

struct cache_models;
/* `f` is borrowed. NULL when there is no memory. */
struct cache_models *cache_models_new(const struct cache_fetcher *f);
void cache_models_free(struct cache_models *m);

/* The digest of a model; "NAME" means "NAME:latest", too. On failure *ret_status is the HTTP status
 * for the agent: 404 when there is no such model. */
AQE_MUST_CHECK int cache_models_find(struct cache_models *m, const char *name,
				     char ret[CACHE_REVISION_MAX], int *ret_status,
				     struct aqe_err *e);
/* Calls `fn` for each. Errors as above. */
AQE_MUST_CHECK int cache_models_each(struct cache_models *m,
				     void (*fn)(void *self, const struct cache_model *model),
				     void *self, int *ret_status, struct aqe_err *e);

#endif
