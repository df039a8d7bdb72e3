/* SPDX-License-Identifier: MIT */
/* Two stores in a row: a small quick one in front of the real one. What is found in the back comes
 * to the front; what is stored or deleted goes to both. Sizes and keys are the back's. */
#ifndef AQE_CACHE_TWOLEVEL_H
#define AQE_CACHE_TWOLEVEL_H

#include "cache/store.h"

/* Owns both from here on, also on failure; their handles are emptied. */
AQE_MUST_CHECK int cache_twolevel_new(struct cache_store *front, struct cache_store *back,
				      struct cache_store *ret, struct aqe_err *e);

#endif
