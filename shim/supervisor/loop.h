/* SPDX-License-Identifier: MIT */
/* One thread's event loop: descriptors (epoll) and timers (one timerfd). Descriptors are served
 * before timers, so that an answer that is already there beats its own deadline. */
#ifndef AQE_SUPERVISOR_LOOP_H
#define AQE_SUPERVISOR_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/core/err.h"

#define SHIM_LOOP_FDS_MAX 1024

struct shim_loop;

/* `events` are EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR. Callbacks may watch and unwatch anything,
 * themselves included, and arm and disarm any timer. */
typedef void shim_loop_fd_fn(void *arg, int fd, uint32_t events);
typedef void shim_loop_timer_fn(void *arg);

/* Placed by its owner; zero is unarmed. Fill fn and arg before the first shim_loop_arm(). It must
 * be disarmed before its memory goes. */
struct shim_loop_timer {
	shim_loop_timer_fn *fn;
	void *arg;
	int64_t due_ms;
	bool armed;
	struct shim_loop_timer *prev, *next;
};

AQE_MUST_CHECK int shim_loop_new(struct shim_loop **ret, struct aqe_err *e);
/* Descriptors that are still watched stay open: they are their owners'. NULL is accepted. */
void shim_loop_free(struct shim_loop *l);

AQE_MUST_CHECK int shim_loop_watch(struct shim_loop *l, int fd, uint32_t events,
				   shim_loop_fd_fn *fn, void *arg, struct aqe_err *e);
/* Before the descriptor is closed. One that is not watched is ignored. */
void shim_loop_unwatch(struct shim_loop *l, int fd);

void shim_loop_arm(struct shim_loop *l, struct shim_loop_timer *t, uint32_t delay_ms);
void shim_loop_disarm(struct shim_loop *l, struct shim_loop_timer *t);

/* CLOCK_MONOTONIC. */
int64_t shim_loop_now_ms(const struct shim_loop *l);
/* Waits at most `max_ms` (-1: no limit) for something to do and does it. */
AQE_MUST_CHECK int shim_loop_step(struct shim_loop *l, int max_ms, struct aqe_err *e);
/* Steps until shim_loop_quit(). */
AQE_MUST_CHECK int shim_loop_run(struct shim_loop *l, struct aqe_err *e);
void shim_loop_quit(struct shim_loop *l);
/* Readable when shim_loop_step(l, 0, e) has something to do: to nest it in another loop. */
int shim_loop_fd(const struct shim_loop *l);

#endif
