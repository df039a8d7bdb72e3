/* SPDX-License-Identifier: MIT */
/* The supervisor as a machine without input or output: an event, the time and a random number go
 * in, actions come out. It neither waits nor calls; binding.h does. One machine watches one thing
 * through a driver's three calls: start, alive, stop. */
#ifndef AQE_SUPERVISOR_MACHINE_H
#define AQE_SUPERVISOR_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/supervisor/events.h"

#define SHIM_SUP_STOP_TRIES 3 /* calls of stop() for one wish to stop */

/* Limits and intervals, all in ms but the counts. */
struct shim_sup_config {
	uint32_t base_ms, cap_ms;  /* back-off: base doubling to cap, full jitter */
	uint32_t attempts;         /* consecutive failures until it holds */
	uint32_t healthy_ms;       /* of continuous alive until the count is forgotten */
	uint32_t probe_ms;         /* between two calls of alive() */
	uint32_t probe_misses;     /* unanswered or failed probes in a row that are a failure */
	uint32_t start_timeout_ms; /* every call is raced against one of these */
	uint32_t alive_timeout_ms;
	uint32_t stop_timeout_ms;
	bool done_is_failure; /* an instance that ends with success: start it again */
};
extern const struct shim_sup_config SHIM_SUP_CONFIG_DEFAULT;

/* What survives on disk. */
enum shim_sup_hold { SHIM_SUP_HOLD_NONE, SHIM_SUP_HOLD_CRASH_LOOP, SHIM_SUP_HOLD_REFUSED };
struct shim_sup_saved {
	uint32_t failures;
	enum shim_sup_hold hold;
	bool running;     /* an instance was started and is not known to be gone */
	int64_t ended_ms; /* guard.h: CLOCK_BOOTTIME of the last end; 0: none in this boot */
};

struct shim_sup_in {
	enum shim_sup_event event;
	uint64_t token;  /* answers and exits */
	int64_t now_ms;  /* any clock; steps back are taken as no time passing */
	uint64_t random; /* uniform */
};

enum shim_sup_next {
	SHIM_SUP_NEXT_STOPPED,
	SHIM_SUP_NEXT_BACKOFF,
	SHIM_SUP_NEXT_HELD,
	SHIM_SUP_NEXT_START
};

/* Read the members; only shim_sup_init() and shim_sup_step() write them. */
struct shim_sup {
	struct shim_sup_config cfg;
	enum shim_sup_state state;
	enum shim_sup_next next; /* STOPPING */
	enum shim_sup_hold hold;
	bool running;  /* an instance may exist: from start() to a successful stop() */
	bool unclean;  /* the last stop() failed */
	bool adopting; /* the first probe of an earlier supervisor's instance */
	bool proven;   /* this instance was alive once */
	uint32_t failures, misses, stop_tries;
	uint64_t token;    /* of the latest call */
	uint64_t instance; /* token of the start that made the present instance; 0 = none or adopted
			    */
	int64_t clock_ms;  /* last time seen */
	int64_t now_ms;    /* our own time: the sum of all steps forward */
	int64_t due_ms;    /* of the timer */
	int64_t alive_at_ms,
		alive_ms; /* last proof of life (-1 none), and the time proven so far */
};

/* `saved` may be NULL. `now_ms` as in shim_sup_in. */
void shim_sup_init(struct shim_sup *m, const struct shim_sup_config *cfg,
		   const struct shim_sup_saved *saved, int64_t now_ms);
/* One step; `out` is overwritten. Total: every event is taken in every state. */
void shim_sup_step(struct shim_sup *m, const struct shim_sup_in *in, struct shim_sup_out *out);
void shim_sup_save(const struct shim_sup *m, struct shim_sup_saved *ret);

/* The window of the jitter after the n-th failure (n >= 1): min(cap, base * 2^(n-1)). */
uint32_t shim_sup_window(const struct shim_sup_config *cfg, uint32_t n);
/* A delay in 0..window, uniform. */
uint32_t shim_sup_jitter(uint32_t window, uint64_t random);

#endif
