/* SPDX-License-Identifier: MIT */
/* What a container's egress service has carried: with one, the container has no other way out, and
 * the counters of its own loopback device would count every byte twice. */
#ifndef AQE_SANDBOX_EGRESS_BYTES_H
#define AQE_SANDBOX_EGRESS_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/core/arena.h"

/* Asks the service of the container `id` (as the runtime knows it). `ret_in`: to the container.
 * Connections that are still open count when they end. False, and nothing is changed: there is no
 * service, or it does not answer within 300 ms. */
bool shim_egress_bytes(struct aqe_arena *a, const char *id, uint64_t *ret_in, uint64_t *ret_out);
/* The sum of the values of a metric in Prometheus' text; false when it has none. Pure. */
bool shim_egress_metric(const char *text, const char *name, uint64_t *ret);

#endif
