/* SPDX-License-Identifier: MIT */
/* aqe-shim and the egress service: which containers have one, and starting it. */
#ifndef AQE_SHIM_EGRESS_START_H
#define AQE_SHIM_EGRESS_START_H

#include <stdbool.h>

#include "hardening/policy.h"
#include "shim/core/err.h"

struct shim_rt;
struct shim_effect;

/* Files in the container's directory. */
#define SHIM_EGRESS_METRICS "metrics.sock"
#define SHIM_EGRESS_LOG     "egress.log"
#define SHIM_EGRESS_PROGRAM "aqe-egress" /* beside aqe-shim */
#define SHIM_EGRESS_MS      10000        /* for it to listen */
/* In the state folder: what each container has spent, as long as that can limit it. It outlives the
 * container's directory, so that stopping and starting again buys no fresh rate. */
#define SHIM_EGRESS_RATES  ".rates"
#define SHIM_EGRESS_KEPT_S 3600

/* True when a container of agent type `type` gets the service: the policy has a section "network",
 * which says "whitelisted" for the type. Without the section every container is isolated. */
AQE_MUST_CHECK int shim_egress_wanted(const struct hard_policy *p, const char *type, bool *ret,
				      struct aqe_err *e);
/* Starts it inside the created container's network namespace and waits until it listens. It stays,
 * as nobody's child, until the container's process ends. */
AQE_MUST_CHECK int shim_egress_start(struct shim_rt *rt, const struct shim_effect *fx,
				     struct aqe_err *e);

#endif
