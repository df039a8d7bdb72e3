/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_A_ROUND 64
#define SLEEP_MAX_MS   60000
#define NEVER          INT64_MAX

/* epoll's 64 bits of data hold the slot of a watch and its generation, never a pointer: a watch
 * that was removed while its event waited in this round's array is then seen to be gone. */
struct slot {
	struct netpol_watch *watch; /* NULL: free */
	uint32_t generation;
	uint32_t next_free;
};

struct netpol_loop {
	int epfd;
	bool stopped;
	int64_t now_ms;
	struct slot *slots;
	uint32_t n_slots, free_slot; /* UINT32_MAX ends the list of free ones */
	struct netpol_timer armed;   /* head of a ring, in no order */
	int64_t soonest_ms;          /* no armed timer is due before */
	struct netpol_task *tasks, **last_task;
	struct netpol_grave *graves;
};

static int64_t boottime_ms(void)
{
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(CLOCK_BOOTTIME, &ts); /* cannot fail on Linux >= 2.6.39 */
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t netpol_mono_us(void)
{
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t netpol_wall_ns(void)
{
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int netpol_loop_new(struct netpol_loop **ret, struct aqe_err *e)
{
	struct netpol_loop *l = calloc(1, sizeof(*l));

	if (!l)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the event loop");
	l->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epfd < 0) {
		int sys = errno;

		free(l);
		return aqe_err_set(e, AQE_E_SYS, sys, "epoll_create1");
	}
	l->armed.prev = l->armed.next = &l->armed;
	l->soonest_ms = NEVER;
	l->last_task = &l->tasks;
	l->free_slot = UINT32_MAX;
	l->now_ms = boottime_ms();
	*ret = l;
	return 0;
}

static void dig(struct netpol_loop *l)
{
	while (l->graves) {
		struct netpol_grave *g = l->graves;

		l->graves = g->next;
		g->bury(g);
	}
}

void netpol_loop_free(struct netpol_loop *l)
{
	if (!l)
		return;
	dig(l);
	(void)close(l->epfd);
	free(l->slots);
	free(l);
}

static bool grow(struct netpol_loop *l)
{
	uint32_t n = l->n_slots ? 2 * l->n_slots : 64;
	struct slot *slots;

	if (n > NETPOL_LOOP_WATCHES_MAX)
		return false;
	slots = realloc(l->slots, n * sizeof(*slots));
	if (!slots)
		return false;
	for (uint32_t i = n; i-- > l->n_slots;) {
		slots[i] = (struct slot){ NULL, 0, l->free_slot };
		l->free_slot = i;
	}
	l->slots = slots;
	l->n_slots = n;
	return true;
}

bool netpol_loop_watch(struct netpol_loop *l, struct netpol_watch *w, uint32_t events)
{
	struct epoll_event ev = { .events = events | EPOLLET };
	uint32_t i;

	if (l->free_slot == UINT32_MAX && !grow(l))
		return false;
	i = l->free_slot;
	ev.data.u64 = (uint64_t)l->slots[i].generation << 32 | i;
	if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, w->fd, &ev) < 0)
		return false;
	l->free_slot = l->slots[i].next_free;
	l->slots[i].watch = w;
	w->tag = ev.data.u64;
	return true;
}

/* False when it was not watched. */
static bool free_slot(struct netpol_loop *l, const struct netpol_watch *w)
{
	uint32_t i = (uint32_t)w->tag;

	if (w->fd < 0 || i >= l->n_slots || l->slots[i].watch != w)
		return false;
	l->slots[i].watch = NULL;
	l->slots[i].generation++;
	l->slots[i].next_free = l->free_slot;
	l->free_slot = i;
	return true;
}

void netpol_loop_unwatch(struct netpol_loop *l, struct netpol_watch *w)
{
	if (free_slot(l, w))
		(void)epoll_ctl(l->epfd, EPOLL_CTL_DEL, w->fd, NULL); /* closing does it too */
}

void netpol_loop_close(struct netpol_loop *l, struct netpol_watch *w)
{
	(void)free_slot(l, w);
	if (w->fd >= 0)
		(void)close(w->fd); /* what could not be sent is reported to nobody */
	w->fd = -1;
}

static void link_timer(struct netpol_timer *ring, struct netpol_timer *t)
{
	t->next = ring;
	t->prev = ring->prev;
	t->prev->next = ring->prev = t;
}

static void unlink_timer(struct netpol_timer *t)
{
	t->prev->next = t->next;
	t->next->prev = t->prev;
	t->prev = t->next = NULL;
}

void netpol_loop_arm(struct netpol_loop *l, struct netpol_timer *t, int64_t at_ms)
{
	if (!t->next)
		link_timer(&l->armed, t);
	t->at_ms = at_ms;
	if (at_ms < l->soonest_ms)
		l->soonest_ms = at_ms;
}

void netpol_loop_disarm(struct netpol_loop *l, struct netpol_timer *t)
{
	(void)l;
	if (t->next)
		unlink_timer(t);
}

/* Moves what is due into `due`, and finds out when to look again. */
static void collect_due(struct netpol_loop *l, struct netpol_timer *due)
{
	struct netpol_timer *t, *next;

	l->soonest_ms = NEVER;
	for (t = l->armed.next; t != &l->armed; t = next) {
		next = t->next;
		if (t->at_ms > l->now_ms) {
			if (t->at_ms < l->soonest_ms)
				l->soonest_ms = t->at_ms;
			continue;
		}
		unlink_timer(t);
		link_timer(due, t);
	}
}

/* soonest_ms is a lower bound: arming lowers it, disarming leaves it, a look at all timers (a few
 * hundred at most) makes it exact. */
static void fire(struct netpol_loop *l)
{
	struct netpol_timer due = { NULL, NULL, 0, NULL };

	if (l->now_ms < l->soonest_ms)
		return;
	due.prev = due.next = &due;
	collect_due(l, &due);
	while (due.next != &due) {
		struct netpol_timer *t = due.next;

		unlink_timer(t);
		if (t->at_ms > l->now_ms) /* armed anew by a callback before it */
			netpol_loop_arm(l, t, t->at_ms);
		else
			t->fn(t);
	}
}

void netpol_loop_defer(struct netpol_loop *l, struct netpol_task *t)
{
	if (t->queued)
		return;
	t->queued = true;
	t->next = NULL;
	*l->last_task = t;
	l->last_task = &t->next;
}

void netpol_loop_undefer(struct netpol_loop *l, struct netpol_task *t)
{
	struct netpol_task **at = &l->tasks;

	if (!t->queued)
		return;
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	if (l->last_task == &t->next)
		l->last_task = at;
	t->queued = false;
}

/* Only the tasks that were queued when it began: one that queues itself again waits for the next
 * round, so that the others' events are seen in between. */
static void work(struct netpol_loop *l)
{
	struct netpol_task end = { NULL, NULL, true };

	*l->last_task = &end;
	l->last_task = &end.next;
	while (l->tasks != &end) {
		struct netpol_task *t = l->tasks;

		l->tasks = t->next;
		if (l->last_task == &t->next)
			l->last_task = &l->tasks;
		t->queued = false;
		t->fn(t);
	}
	l->tasks = end.next;
	if (!l->tasks)
		l->last_task = &l->tasks;
}

void netpol_loop_bury(struct netpol_loop *l, struct netpol_grave *g)
{
	g->next = l->graves;
	l->graves = g;
}

int64_t netpol_loop_now(const struct netpol_loop *l)
{
	return l->now_ms;
}

void netpol_loop_stop(struct netpol_loop *l)
{
	l->stopped = true;
}

static int wait_ms(const struct netpol_loop *l, int max_ms)
{
	int64_t left;

	if (l->tasks)
		return 0;
	if (l->soonest_ms == NEVER)
		return max_ms;
	left = l->soonest_ms - boottime_ms();
	if (left < 0)
		left = 0;
	if (left > SLEEP_MAX_MS)
		left = SLEEP_MAX_MS;
	return max_ms >= 0 && max_ms < left ? max_ms : (int)left;
}

static void dispatch(struct netpol_loop *l, const struct epoll_event *ev)
{
	uint32_t i = (uint32_t)ev->data.u64;
	struct netpol_watch *w = i < l->n_slots ? l->slots[i].watch : NULL;

	if (w && l->slots[i].generation == (uint32_t)(ev->data.u64 >> 32))
		w->fn(w, ev->events);
}

int netpol_loop_once(struct netpol_loop *l, int max_ms, struct aqe_err *e)
{
	struct epoll_event events[EVENTS_A_ROUND];
	int n = epoll_wait(l->epfd, events, EVENTS_A_ROUND, wait_ms(l, max_ms));

	if (n < 0 && errno != EINTR)
		return aqe_err_set(e, AQE_E_SYS, errno, "epoll_wait");
	l->now_ms = boottime_ms();
	for (int i = 0; i < n; i++)
		dispatch(l, &events[i]);
	fire(l);
	if (l->tasks)
		work(l);
	dig(l);
	return 0;
}

int netpol_loop_run(struct netpol_loop *l, struct aqe_err *e)
{
	int rc = 0;

	while (!l->stopped && rc == 0)
		rc = netpol_loop_once(l, -1, e);
	return rc;
}
