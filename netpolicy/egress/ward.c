/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/ward.h"

#include <sys/random.h>
#include <time.h>

/* One step: true when *io_event is to be told next. */
static bool step(struct netpol_ward *w, enum netpol_sup_event *io_event)
{
	int64_t now = netpol_loop_now(w->loop);
	struct netpol_sup_todo todo;
	uint64_t random = 0;
	bool more = false;

	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK); /* 0: no jitter */
	w->port.tell(w->port.self, *io_event, now, random, &todo);
	if (todo.timer_ms >= 0)
		netpol_loop_arm(w->loop, &w->timer, now + todo.timer_ms);
	if (todo.failure != NETPOL_SUP_NO_FAILURE)
		w->ops->failed(w->self, todo.failure);
	if (todo.kill) {
		more = w->ops->kill(w->self);
		w->killing = !more;
		*io_event = NETPOL_SUP_KILLED;
	}
	if (todo.start) {
		w->quiet_ms = -1;
		*io_event = w->ops->start(w->self) ? NETPOL_SUP_STARTED : NETPOL_SUP_START_FAILED;
		more = true;
	}
	w->asked = todo.ping;
	if (todo.ping) {
		w->quiet_ms = w->quiet_ms < 0 ? now : w->quiet_ms;
		w->ops->ping(w->self);
	}
	if (todo.close) {
		netpol_ward_close(w);
		w->ops->close(w->self);
	}
	return more;
}

static void tell(struct netpol_ward *w, enum netpol_sup_event event)
{
	while (!w->closed && step(w, &event))
		; /* what was done is told at once */
}

void netpol_ward_tell(struct netpol_ward *w, enum netpol_sup_event event)
{
	if (event == NETPOL_SUP_ANSWERED)
		w->quiet_ms = -1;
	tell(w, event);
}

static void on_timer(struct netpol_timer *t)
{
	struct netpol_ward *w = NETPOL_OWNER(t, struct netpol_ward, timer);
	bool late = w->asked && netpol_loop_now(w->loop) - w->quiet_ms < NETPOL_WARD_BUSY_MS;

	/* as good as an answer, but it does not count as one for the next time */
	tell(w, late && w->ops->busy(w->self) ? NETPOL_SUP_ANSWERED : NETPOL_SUP_TIMER);
}

int64_t netpol_ward_cpu_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t id;

	if (pid <= 0 || clock_getcpuclockid(pid, &id) != 0 || clock_gettime(id, &ts) < 0)
		return -1;
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void netpol_ward_init(struct netpol_ward *w)
{
	w->timer.fn = on_timer;
	w->killing = w->closed = w->asked = false;
	w->quiet_ms = -1;
}

void netpol_ward_gone(struct netpol_ward *w)
{
	bool was = w->killing;

	w->killing = false;
	netpol_ward_tell(w, was ? NETPOL_SUP_KILLED : NETPOL_SUP_ENDED);
}

void netpol_ward_close(struct netpol_ward *w)
{
	w->closed = true;
	netpol_loop_disarm(w->loop, &w->timer);
}
