/* SPDX-License-Identifier: MIT */
/* The restart policy for containers that an engine starts over and over (podman without any delay):
 * the same schedule as the supervisor's, from what the runtime sees of a container. A start counts
 * as a restart when the last life was short, nobody ended it, and it follows soon. */
#ifndef AQE_SUPERVISOR_GUARD_H
#define AQE_SUPERVISOR_GUARD_H

#include <stdint.h>

#include "shim/supervisor/store.h"

/* A start later than this after the end was somebody's decision, not an engine's loop: docker, the
 * slower of the two, has waited 4.1 s before its fifth restart (measured). */
#define SHIM_GUARD_LOOP_MS 10000

/* ---- pure ---- */
/* A life of `life_ms` has ended at `now_ms` (CLOCK_BOOTTIME), not by anybody's wish. */
void shim_guard_count(const struct shim_sup_config *cfg, struct shim_sup_saved *s, int64_t life_ms,
		      int64_t now_ms);
/* A start at `now_ms`: the delay before it, or -1: refused. Resets the count when this is no
 * restart. */
int64_t shim_guard_delay(const struct shim_sup_config *cfg, struct shim_sup_saved *s,
			 int64_t now_ms, uint64_t random);

/* ---- with the store ---- */
/* The record is written only for short lives, so that an ordinary container costs nothing. */
AQE_MUST_CHECK int shim_guard_ended(int dirfd, const char *id, int64_t life_ms, int64_t now_ms,
				    struct aqe_err *e);
/* 0 and the delay; AQE_E_REFUSED with SHIM_SUP_CRASH_LOOP in the text. */
AQE_MUST_CHECK int shim_guard_enter(int dirfd, const char *id, int64_t now_ms, uint64_t random,
				    uint32_t *ret_delay_ms, struct aqe_err *e);

#endif
