/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/loop.h"

#include <fcntl.h>
#include <unistd.h>

#include "shim/core/text.h"
#include "tests/unit/unit.h"

static struct netpol_loop *loop;
static struct aqe_err err = AQE_ERR_INIT;

static void setup(void)
{
	ck_assert_ok(netpol_loop_new(&loop, &err), err);
}

static void teardown(void)
{
	netpol_loop_free(loop);
}

/* ---- descriptors ---- */

struct seen {
	struct netpol_watch watch;
	struct seen *other; /* unwatched by the callback */
	unsigned calls;
	uint32_t events;
};

static void on_event(struct netpol_watch *w, uint32_t events)
{
	struct seen *s = NETPOL_OWNER(w, struct seen, watch);

	s->calls++;
	s->events = events;
	if (s->other)
		netpol_loop_unwatch(loop, &s->other->watch);
}

static void make_readable(struct seen *s)
{
	int p[2];

	ck_assert_int_eq(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	ck_assert_int_eq(write(p[1], "x", 1), 1);
	*s = (struct seen){ .watch = { p[0], on_event, 0 } };
	ck_assert(netpol_loop_watch(loop, &s->watch, EPOLLIN));
}

START_TEST(watch__tells_once)
{
	struct seen s;

	make_readable(&s);
	ck_assert_ok(netpol_loop_once(loop, 100, &err), err);
	ck_assert_uint_eq(s.calls, 1);
	ck_assert(s.events & EPOLLIN);
	ck_assert_ok(netpol_loop_once(loop, 0, &err), err); /* edge-triggered */
	ck_assert_uint_eq(s.calls, 1);
}
END_TEST

/* Two events of one round: the callback that comes first removes the other one. */
START_TEST(unwatch__drops_events_of_the_same_round)
{
	struct seen a, b;

	make_readable(&a);
	make_readable(&b);
	a.other = &b;
	b.other = &a;
	ck_assert_ok(netpol_loop_once(loop, 100, &err), err);
	ck_assert_uint_eq(a.calls + b.calls, 1);
}
END_TEST

/* A slot that was given to another watch in between must not get the old one's event. */
static struct seen fresh, old;

static void replace(struct netpol_watch *w, uint32_t events)
{
	int p[2];

	on_event(w, events);
	netpol_loop_unwatch(loop, &old.watch);
	ck_assert_int_eq(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	fresh = (struct seen){ .watch = { p[0], on_event, 0 } };
	ck_assert(netpol_loop_watch(loop, &fresh.watch, EPOLLIN));
}

START_TEST(watch__does_not_get_events_of_its_forerunner)
{
	struct seen first;

	make_readable(&first);
	first.watch.fn = replace;
	make_readable(&old);
	ck_assert_ok(netpol_loop_once(loop, 100, &err), err);
	ck_assert_uint_eq(first.calls, 1);
	ck_assert_uint_eq(fresh.calls, 0);
}
END_TEST

/* The same file is open elsewhere (a dialer's copy): its events then find nobody, neither the
 * closed watch nor the one that got its slot and its number. */
START_TEST(close__of_a_file_that_is_open_elsewhere)
{
	struct seen s, next;
	int fd, copy;

	make_readable(&s);
	fd = s.watch.fd;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 100);
	ck_assert_int_ge(copy, 100);
	netpol_loop_close(loop, &s.watch);
	ck_assert_int_eq(s.watch.fd, -1);
	netpol_loop_close(loop, &s.watch); /* again is harmless */
	make_readable(&next);
	ck_assert_int_eq(next.watch.fd, fd);
	ck_assert_ok(netpol_loop_once(loop, 100, &err), err);
	ck_assert_ok(netpol_loop_once(loop, 0, &err), err);
	ck_assert_uint_eq(s.calls, 0);
	ck_assert_uint_eq(next.calls, 1);
	ck_assert_int_eq(close(copy), 0);
}
END_TEST

START_TEST(watch__grows_to_its_limit)
{
	static struct netpol_watch many[NETPOL_LOOP_WATCHES_MAX + 1];
	size_t n = 0;

	/* dup'ed descriptors are separate registrations of one file */
	for (; n <= NETPOL_LOOP_WATCHES_MAX; n++) {
		int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);

		if (fd < 0)
			break;
		(void)close(fd);
		fd = epoll_create1(EPOLL_CLOEXEC); /* can be watched, unlike a file */
		if (fd < 0)
			break;
		many[n] = (struct netpol_watch){ fd, on_event, 0 };
		if (!netpol_loop_watch(loop, &many[n], EPOLLIN))
			break;
	}
	ck_assert_uint_gt(n, 500);
	ck_assert_uint_le(n, NETPOL_LOOP_WATCHES_MAX);
}
END_TEST

START_TEST(watch__refuses_what_cannot_be_watched)
{
	struct netpol_watch w = { -1, on_event, 0 };

	ck_assert(!netpol_loop_watch(loop, &w, EPOLLIN));
	netpol_loop_unwatch(loop, &w); /* harmless */
}
END_TEST

/* ---- timers ---- */

struct ring {
	struct netpol_timer timer;
	struct ring *disarms, *arms;
	unsigned calls;
};

static void on_timer(struct netpol_timer *t)
{
	struct ring *r = NETPOL_OWNER(t, struct ring, timer);

	r->calls++;
	if (r->disarms)
		netpol_loop_disarm(loop, &r->disarms->timer);
	if (r->arms)
		netpol_loop_arm(loop, &r->arms->timer, netpol_loop_now(loop) + 60000);
}

START_TEST(arm__fires_once_when_due)
{
	struct ring soon = { .timer.fn = on_timer }, later = { .timer.fn = on_timer };

	netpol_loop_arm(loop, &later.timer, netpol_loop_now(loop) + 60000);
	netpol_loop_arm(loop, &soon.timer, netpol_loop_now(loop) + 20);
	ck_assert_ok(netpol_loop_once(loop, 0, &err), err);
	ck_assert_uint_eq(soon.calls, 0);
	while (soon.calls == 0)
		ck_assert_ok(netpol_loop_once(loop, -1, &err), err); /* wakes by itself */
	ck_assert_ok(netpol_loop_once(loop, 0, &err), err);
	ck_assert_uint_eq(soon.calls, 1);
	ck_assert_uint_eq(later.calls, 0);
	netpol_loop_disarm(loop, &later.timer);
	netpol_loop_disarm(loop, &later.timer); /* harmless */
}
END_TEST

/* Of two that are due, the first disarms, or puts off, the second. */
START_TEST(arm__and_disarm_work_inside_callbacks)
{
	struct ring a = { .timer.fn = on_timer }, b = { .timer.fn = on_timer },
		    c = { .timer.fn = on_timer }, d = { .timer.fn = on_timer };

	a.disarms = &b;
	c.arms = &d;
	netpol_loop_arm(loop, &a.timer, 0);
	netpol_loop_arm(loop, &b.timer, 0);
	netpol_loop_arm(loop, &c.timer, 0);
	netpol_loop_arm(loop, &d.timer, 0);
	ck_assert_ok(netpol_loop_once(loop, 100, &err), err);
	ck_assert_uint_eq(a.calls, 1);
	ck_assert_uint_eq(b.calls, 0);
	ck_assert_uint_eq(c.calls, 1);
	ck_assert_uint_eq(d.calls, 0);
	ck_assert_ptr_nonnull(d.timer.next); /* armed anew */
	netpol_loop_disarm(loop, &d.timer);
}
END_TEST

/* ---- tasks and graves ---- */

struct job {
	struct netpol_task task;
	struct netpol_grave grave;
	bool again;
	struct job *drops;
	unsigned calls, buried;
};

static void on_task(struct netpol_task *t)
{
	struct job *j = NETPOL_OWNER(t, struct job, task);

	j->calls++;
	if (j->again)
		netpol_loop_defer(loop, &j->task);
	if (j->drops)
		netpol_loop_undefer(loop, &j->drops->task);
}

static void on_bury(struct netpol_grave *g)
{
	NETPOL_OWNER(g, struct job, grave)->buried++;
}

START_TEST(defer__runs_once_a_round_in_order)
{
	struct job a = { .task.fn = on_task, .again = true }, b = { .task.fn = on_task },
		   c = { .task.fn = on_task };

	a.drops = &b;
	netpol_loop_defer(loop, &a.task);
	netpol_loop_defer(loop, &a.task);
	netpol_loop_defer(loop, &b.task);
	netpol_loop_defer(loop, &c.task);
	ck_assert_ok(netpol_loop_once(loop, -1, &err), err); /* does not wait */
	ck_assert_uint_eq(a.calls, 1);
	ck_assert_uint_eq(b.calls, 0);
	ck_assert_uint_eq(c.calls, 1);
	a.again = false;
	ck_assert_ok(netpol_loop_once(loop, -1, &err), err);
	ck_assert_uint_eq(a.calls, 2);
	netpol_loop_undefer(loop, &a.task); /* harmless */
	netpol_loop_defer(loop, &b.task);
	netpol_loop_defer(loop, &c.task);
	netpol_loop_undefer(loop, &c.task); /* the last one */
	netpol_loop_defer(loop, &a.task);
	ck_assert_ok(netpol_loop_once(loop, -1, &err), err);
	ck_assert_uint_eq(a.calls, 3);
	ck_assert_uint_eq(b.calls, 1);
	ck_assert_uint_eq(c.calls, 1);
}
END_TEST

START_TEST(bury__waits_for_the_end_of_the_round)
{
	struct job j = { .grave.bury = on_bury };

	netpol_loop_bury(loop, &j.grave);
	ck_assert_uint_eq(j.buried, 0);
	ck_assert_ok(netpol_loop_once(loop, 0, &err), err);
	ck_assert_uint_eq(j.buried, 1);
}
END_TEST

static void on_stop(struct netpol_task *t)
{
	(void)t;
	netpol_loop_stop(loop);
}

START_TEST(run__ends_by_stop)
{
	struct netpol_task t = { .fn = on_stop };

	netpol_loop_defer(loop, &t);
	ck_assert_ok(netpol_loop_run(loop, &err), err);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("netpolicy/egress/loop");
	TCase *t = tcase_create("loop");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, watch__tells_once);
	tcase_add_test(t, unwatch__drops_events_of_the_same_round);
	tcase_add_test(t, watch__does_not_get_events_of_its_forerunner);
	tcase_add_test(t, close__of_a_file_that_is_open_elsewhere);
	tcase_add_test(t, watch__grows_to_its_limit);
	tcase_add_test(t, watch__refuses_what_cannot_be_watched);
	tcase_add_test(t, arm__fires_once_when_due);
	tcase_add_test(t, arm__and_disarm_work_inside_callbacks);
	tcase_add_test(t, defer__runs_once_a_round_in_order);
	tcase_add_test(t, bury__waits_for_the_end_of_the_round);
	tcase_add_test(t, run__ends_by_stop);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
