/* SPDX-License-Identifier: MIT */
/* The companion that has a container's embedding cache: it serves 127.0.0.1:3130 there, opens the
 * store, and asks the upstream through the egress worker. */
#ifndef AQE_AQE_GATEWAY_CACHE_H
#define AQE_AQE_GATEWAY_CACHE_H

#include <stdint.h>

#include "shim/core/err.h"

/* Takes what the keeper hands over, confines itself as `id`, and serves until the keeper's channel
 * ends or another configuration comes. */
AQE_MUST_CHECK int shim_gateway_cache(uint64_t id, struct aqe_err *e);

#endif
