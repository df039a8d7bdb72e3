/* SPDX-License-Identifier: MIT */
/* The event loop of one process: descriptors (epoll, edge-triggered), deadlines, work for later.
 * Everything is embedded in its owner; nothing is allocated a registration. One thread. */
#ifndef AQE_EGRESS_LOOP_H
#define AQE_EGRESS_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "shim/core/err.h"

/* The object in which `ptr`, its member, is embedded. */
#define NETPOL_OWNER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

struct netpol_loop;

/* A descriptor being watched. `fn` gets EPOLL* bits; it may unwatch and close anything. */
struct netpol_watch {
	int fd; /* -1: not watched */
	void (*fn)(struct netpol_watch *w, uint32_t events);
	uint64_t tag; /* of this registration: events of an earlier one are dropped */
};

/* A deadline. Zeroed is unarmed. */
struct netpol_timer {
	struct netpol_timer *prev, *next; /* in a ring of armed ones */
	int64_t at_ms;
	void (*fn)(struct netpol_timer *t);
};

/* Work to be done before the loop sleeps again; queued once however often it is asked for. */
struct netpol_task {
	struct netpol_task *next;
	void (*fn)(struct netpol_task *t);
	bool queued;
};

/* Memory to be freed when no event of this round can point to it any more. */
struct netpol_grave {
	struct netpol_grave *next;
	void (*bury)(struct netpol_grave *g);
};

#define NETPOL_LOOP_WATCHES_MAX 8192

AQE_MUST_CHECK int netpol_loop_new(struct netpol_loop **ret, struct aqe_err *e);
/* NULL is accepted. Watches and timers must not be used after it. */
void netpol_loop_free(struct netpol_loop *l);

/* Watches `w->fd` for `events` (EPOLLET is added). False: the descriptor cannot be watched; the
 * owner closes it. */
bool netpol_loop_watch(struct netpol_loop *l, struct netpol_watch *w, uint32_t events);
/* Forgets it; the descriptor stays open and the owner closes it. Does nothing when not watched. */
void netpol_loop_unwatch(struct netpol_loop *l, struct netpol_watch *w);
/* Forgets it and closes the descriptor, watched or not; w->fd is -1 then. A system call less than
 * both: closing the last descriptor of a file ends its watch, and an event of one that is open
 * elsewhere too finds nobody. */
void netpol_loop_close(struct netpol_loop *l, struct netpol_watch *w);

/* Arms (again) for `at_ms` of netpol_loop_now(). */
void netpol_loop_arm(struct netpol_loop *l, struct netpol_timer *t, int64_t at_ms);
void netpol_loop_disarm(struct netpol_loop *l, struct netpol_timer *t);
void netpol_loop_defer(struct netpol_loop *l, struct netpol_task *t);
/* Takes a queued task out again. */
void netpol_loop_undefer(struct netpol_loop *l, struct netpol_task *t);
void netpol_loop_bury(struct netpol_loop *l, struct netpol_grave *g);

/* CLOCK_BOOTTIME, ms, as of the start of this round. */
int64_t netpol_loop_now(const struct netpol_loop *l);
/* CLOCK_MONOTONIC, us, now: for durations. */
int64_t netpol_mono_us(void);
/* CLOCK_REALTIME, ns, now: for records. */
int64_t netpol_wall_ns(void);
/* Runs until netpol_loop_stop(). AQE_E_SYS when waiting itself fails. */
AQE_MUST_CHECK int netpol_loop_run(struct netpol_loop *l, struct aqe_err *e);
/* One round: waits at most `max_ms` (-1: until something happens). */
AQE_MUST_CHECK int netpol_loop_once(struct netpol_loop *l, int max_ms, struct aqe_err *e);
void netpol_loop_stop(struct netpol_loop *l);

#endif
