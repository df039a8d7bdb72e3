/* SPDX-License-Identifier: MIT */
#include "shim/supervisor/guard.h"

#include <string.h>

static void forget(struct shim_sup_saved *s)
{
	*s = (struct shim_sup_saved){ 0, SHIM_SUP_HOLD_NONE, false, 0 };
}

void shim_guard_count(const struct shim_sup_config *cfg, struct shim_sup_saved *s, int64_t life_ms,
		      int64_t now_ms)
{
	if (life_ms >= cfg->healthy_ms)
		s->failures = 0; /* it was well, until now */
	if (s->failures < UINT32_MAX)
		s->failures++;
	if (s->failures >= cfg->attempts)
		s->hold = SHIM_SUP_HOLD_CRASH_LOOP;
	s->ended_ms = now_ms;
}

int64_t shim_guard_delay(const struct shim_sup_config *cfg, struct shim_sup_saved *s,
			 int64_t now_ms, uint64_t random)
{
	int64_t gone = now_ms - s->ended_ms, delay;

	if (s->hold)
		return -1;
	if (s->failures == 0 || s->ended_ms == 0 || gone < 0 || gone > SHIM_GUARD_LOOP_MS) {
		forget(s);
		return 0;
	}
	delay = shim_sup_jitter(shim_sup_window(cfg, s->failures), random);
	return delay > gone ? delay - gone : 0; /* what the engine waited by itself counts */
}

int shim_guard_ended(int dirfd, const char *id, int64_t life_ms, int64_t now_ms, struct aqe_err *e)
{
	const struct shim_sup_config *cfg = &SHIM_SUP_CONFIG_DEFAULT;
	struct shim_sup_saved s;
	int rc = shim_store_load(dirfd, id, &s, NULL, e);

	if (rc < 0)
		return rc;
	if (life_ms >= cfg->healthy_ms && s.failures == 0 && !s.hold)
		return 0; /* nothing to remember, and nothing remembered */
	shim_guard_count(cfg, &s, life_ms, now_ms);
	return shim_store_save(dirfd, id, &s, e);
}

int shim_guard_enter(int dirfd, const char *id, int64_t now_ms, uint64_t random,
		     uint32_t *ret_delay_ms, struct aqe_err *e)
{
	const struct shim_sup_config *cfg = &SHIM_SUP_CONFIG_DEFAULT;
	struct shim_sup_saved s;
	int64_t delay;
	int rc = shim_store_load(dirfd, id, &s, NULL, e);

	if (rc < 0)
		return rc;
	delay = shim_guard_delay(cfg, &s, now_ms, random);
	if (delay < 0)
		return aqe_err_set(e, AQE_E_REFUSED, 0,
				   SHIM_SUP_CRASH_LOOP
				   " (retryable): %u starts in a row lived less than %u s; "
				   "when the cause is gone: aqe sandbox reset %.12s",
				   s.failures, cfg->healthy_ms / 1000, id);
	*ret_delay_ms = (uint32_t)delay;
	return s.failures == 0 ? shim_store_remove(dirfd, id, e) : 0;
}
