/* SPDX-License-Identifier: MIT */
/* The words of the supervisor's machine: its states, what it is told, what it tells to do. */
#ifndef AQE_SUPERVISOR_EVENTS_H
#define AQE_SUPERVISOR_EVENTS_H

#include <stddef.h>
#include <stdint.h>

/* The name under which a hold after too many failures is reported; an operator may retry. */
#define SHIM_SUP_CRASH_LOOP "AGENTOS_CRASH_LOOP"

enum shim_sup_state {
	SHIM_SUP_STOPPED,  /* nothing runs, nothing is wanted */
	SHIM_SUP_STARTING, /* start() is out */
	SHIM_SUP_ALIVE,    /* runs; the next probe is due at the timer */
	SHIM_SUP_PROBING,  /* alive() is out */
	SHIM_SUP_STOPPING, /* stop() is out; `next` says what follows */
	SHIM_SUP_BACKOFF,  /* waits before the next start */
	SHIM_SUP_HELD,     /* no start any more, until an operator's reset */
	SHIM_SUP_STATES,
};
const char *shim_sup_state_name(enum shim_sup_state state);

enum shim_sup_event {
	/* wishes */
	SHIM_SUP_WANT_UP,
	SHIM_SUP_WANT_DOWN,
	SHIM_SUP_RESET, /* the operator: forget the count, let go of a hold */
	/* answers of the driver; each carries the token of its call */
	SHIM_SUP_STARTED,
	SHIM_SUP_START_FAILED,
	SHIM_SUP_START_REFUSED, /* policy says no: never tried again */
	SHIM_SUP_YES,           /* alive */
	SHIM_SUP_NO,            /* not alive */
	SHIM_SUP_DONE,          /* not alive: ended with success */
	SHIM_SUP_PROBE_FAILED,  /* cannot tell */
	SHIM_SUP_STOP_OK,       /* nothing of it is left */
	SHIM_SUP_STOP_FAILED,
	/* the kernel on the instance that the start, or adopting probe, with this token is for */
	SHIM_SUP_EXITED_OK,
	SHIM_SUP_EXITED_BAD,
	SHIM_SUP_TIMER,
	SHIM_SUP_EVENTS,
};
const char *shim_sup_event_name(enum shim_sup_event event);

enum shim_sup_kind {
	SHIM_SUP_DO_SAVE,  /* write shim_sup_save() to disk, before the actions behind it */
	SHIM_SUP_DO_START, /* call the driver; the answer carries `token` */
	SHIM_SUP_DO_ALIVE,
	SHIM_SUP_DO_STOP,
	SHIM_SUP_DO_CANCEL, /* the answer to `token` is not wanted any more */
	SHIM_SUP_DO_ARM,    /* one timer, `delay_ms` from now, in place of an earlier one */
	SHIM_SUP_DO_DISARM,
	SHIM_SUP_DO_REPORT, /* tell people */
};

enum shim_sup_report {
	SHIM_SUP_TELL_STARTED, /* first proof of life of an instance */
	SHIM_SUP_TELL_ADOPTED, /* the instance of an earlier supervisor is alive */
	SHIM_SUP_TELL_FAILED,  /* the count went up; `why` says why */
	SHIM_SUP_TELL_BACKOFF, /* the next start is in delay_ms */
	SHIM_SUP_TELL_HELD,    /* too many failures: SHIM_SUP_CRASH_LOOP */
	SHIM_SUP_TELL_REFUSED, /* policy: held, and not worth retrying unchanged */
	SHIM_SUP_TELL_HEALTHY, /* the count was forgotten */
	SHIM_SUP_TELL_RESET,
	SHIM_SUP_TELL_STOPPED,
	SHIM_SUP_TELL_DONE,    /* ended by itself with success */
	SHIM_SUP_TELL_UNCLEAN, /* stop() failed: something may still run */
	SHIM_SUP_TELL_LATE,    /* an answer that nobody waits for was dropped */
	SHIM_SUP_TELLS,
};
const char *shim_sup_report_name(enum shim_sup_report report);

enum shim_sup_why {
	SHIM_SUP_WHY_NONE,
	SHIM_SUP_WHY_START_FAILED,
	SHIM_SUP_WHY_START_TIMEOUT,
	SHIM_SUP_WHY_NOT_ALIVE,
	SHIM_SUP_WHY_EXITED,
	SHIM_SUP_WHY_NO_ANSWER,   /* too many misses */
	SHIM_SUP_WHY_STOP_FAILED, /* what must be gone before the next start is not */
	SHIM_SUP_WHY_LOST,        /* an earlier supervisor's instance ended unseen */
	SHIM_SUP_WHYS,
};
const char *shim_sup_why_name(enum shim_sup_why why);

struct shim_sup_action {
	enum shim_sup_kind kind;
	uint64_t token;
	uint32_t delay_ms; /* ARM, and REPORT of BACKOFF */
	uint32_t failures; /* REPORT: the count now */
	enum shim_sup_report report;
	enum shim_sup_why why;
};
#define SHIM_SUP_ACTIONS_MAX 8
struct shim_sup_out {
	struct shim_sup_action a[SHIM_SUP_ACTIONS_MAX];
	size_t n;
};

#endif
