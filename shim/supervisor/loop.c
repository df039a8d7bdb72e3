/* SPDX-License-Identifier: MIT */
#include "shim/supervisor/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "shim/core/cleanup.h"

#define BATCH 32
#define TIMERS_ROUND                                                                \
	1024 /* timers served a step: one that re-arms itself with 0 cannot hold us \
	      */
#define TIMER_KEY UINT64_MAX

struct slot {
	int fd; /* -1: free */
	uint32_t generation;
	shim_loop_fd_fn *fn;
	void *arg;
};

struct shim_loop {
	int epoll_fd, timer_fd;
	bool quit;
	struct slot slots[SHIM_LOOP_FDS_MAX];
	struct shim_loop_timer *timers; /* sorted by due_ms */
};

static uint64_t key_of(uint32_t slot, uint32_t generation)
{
	return (uint64_t)generation << 32 | slot;
}

int shim_loop_new(struct shim_loop **ret, struct aqe_err *e)
{
	struct epoll_event ev = { .events = EPOLLIN, .data = { .u64 = TIMER_KEY } };
	struct shim_loop *l = calloc(1, sizeof(*l));

	if (!l)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for an event loop");
	for (size_t i = 0; i < SHIM_LOOP_FDS_MAX; i++)
		l->slots[i].fd = -1;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	l->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (l->epoll_fd < 0 || l->timer_fd < 0 ||
	    epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->timer_fd, &ev) < 0) {
		int sys = errno;

		shim_loop_free(l);
		return aqe_err_set(e, AQE_E_SYS, sys, "make an event loop");
	}
	*ret = l;
	return AQE_OK;
}

void shim_loop_free(struct shim_loop *l)
{
	if (!l)
		return;
	aqe_cleanup_fd(&l->epoll_fd);
	aqe_cleanup_fd(&l->timer_fd);
	free(l);
}

/* ---- descriptors ---- */

static struct slot *find(struct shim_loop *l, int fd)
{
	for (size_t i = 0; i < SHIM_LOOP_FDS_MAX; i++) {
		if (l->slots[i].fd == fd)
			return &l->slots[i];
	}
	return NULL;
}

int shim_loop_watch(struct shim_loop *l, int fd, uint32_t events, shim_loop_fd_fn *fn, void *arg,
		    struct aqe_err *e)
{
	struct slot *s = find(l, -1);
	struct epoll_event ev = { .events = events };

	if (fd < 0 || find(l, fd))
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "descriptor %d cannot be watched", fd);
	if (!s)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %d descriptors to watch",
				   SHIM_LOOP_FDS_MAX);
	ev.data.u64 = key_of((uint32_t)(s - l->slots), s->generation);
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "watch descriptor %d", fd);
	s->fd = fd;
	s->fn = fn;
	s->arg = arg;
	return AQE_OK;
}

void shim_loop_unwatch(struct shim_loop *l, int fd)
{
	struct slot *s = fd < 0 ? NULL : find(l, fd);

	if (!s)
		return;
	(void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, fd, NULL); /* closed already: gone anyway */
	s->fd = -1;
	s->generation++; /* events of this round that were for the old one find nobody */
}

/* ---- timers ---- */

int64_t shim_loop_now_ms(const struct shim_loop *l)
{
	struct timespec ts = { 0, 0 };

	(void)l;
	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail with a valid clock and pointer */
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* The kernel's timer stands for the first of ours. */
static void set_kernel_timer(struct shim_loop *l)
{
	struct itimerspec when = { { 0, 0 }, { 0, 0 } };

	if (l->timers) {
		int64_t due = l->timers->due_ms > 0 ? l->timers->due_ms : 1; /* 0 disarms */

		when.it_value.tv_sec = due / 1000;
		when.it_value.tv_nsec = due % 1000 * 1000000;
	}
	/* cannot fail with a valid descriptor and normalised values */
	(void)timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void unlink_timer(struct shim_loop *l, struct shim_loop_timer *t)
{
	if (t->prev)
		t->prev->next = t->next;
	else
		l->timers = t->next;
	if (t->next)
		t->next->prev = t->prev;
	t->prev = t->next = NULL;
	t->armed = false;
}

void shim_loop_arm(struct shim_loop *l, struct shim_loop_timer *t, uint32_t delay_ms)
{
	struct shim_loop_timer *before = NULL, *after;

	if (t->armed)
		unlink_timer(l, t);
	t->due_ms = shim_loop_now_ms(l) + delay_ms;
	for (after = l->timers; after && after->due_ms <= t->due_ms; after = after->next)
		before = after;
	t->prev = before;
	t->next = after;
	if (before)
		before->next = t;
	else
		l->timers = t;
	if (after)
		after->prev = t;
	t->armed = true;
	set_kernel_timer(l);
}

void shim_loop_disarm(struct shim_loop *l, struct shim_loop_timer *t)
{
	if (!t->armed)
		return;
	unlink_timer(l, t);
	set_kernel_timer(l);
}

static void serve_timers(struct shim_loop *l)
{
	uint64_t expirations;
	int64_t now = shim_loop_now_ms(l);

	(void)!read(l->timer_fd, &expirations, sizeof(expirations)); /* the list is what counts */
	for (int i = 0; i < TIMERS_ROUND && l->timers && l->timers->due_ms <= now; i++) {
		struct shim_loop_timer *t = l->timers;

		unlink_timer(l, t);
		t->fn(t->arg);
	}
	set_kernel_timer(l);
}

/* ---- running ---- */

static void serve_fd(struct shim_loop *l, const struct epoll_event *ev)
{
	struct slot *s = &l->slots[ev->data.u64 & UINT32_MAX];

	if (s->fd >= 0 && s->generation == (uint32_t)(ev->data.u64 >> 32))
		s->fn(s->arg, s->fd, ev->events);
}

int shim_loop_step(struct shim_loop *l, int max_ms, struct aqe_err *e)
{
	struct epoll_event ev[BATCH];
	bool timers = false;
	int n = epoll_wait(l->epoll_fd, ev, BATCH, max_ms);

	if (n < 0 && errno != EINTR)
		return aqe_err_set(e, AQE_E_SYS, errno, "wait for events");
	for (int i = 0; i < n; i++) {
		if (ev[i].data.u64 == TIMER_KEY)
			timers = true;
		else
			serve_fd(l, &ev[i]);
	}
	if (timers)
		serve_timers(l);
	return AQE_OK;
}

int shim_loop_run(struct shim_loop *l, struct aqe_err *e)
{
	int rc = AQE_OK;

	l->quit = false;
	while (!l->quit && rc == AQE_OK)
		rc = shim_loop_step(l, -1, e);
	return rc;
}

void shim_loop_quit(struct shim_loop *l)
{
	l->quit = true;
}

int shim_loop_fd(const struct shim_loop *l)
{
	return l->epoll_fd;
}
