/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/spend.h"

#include <string.h>
#include <unistd.h>

static void unlink_spend(struct netpol_spending *x)
{
	x->prev->next = x->next;
	x->next->prev = x->prev;
	x->prev = x->next = NULL;
}

static void finish(struct netpol_spending *x, enum netpol_spent result, uint64_t retry_ms)
{
	unlink_spend(x);
	x->fn(x, result, retry_ms);
}

static void hang_up(struct netpol_spender *s)
{
	if (s->chan.fd < 0)
		return;
	netpol_loop_unwatch(s->loop, &s->chan);
	(void)close(s->chan.fd);
	s->chan.fd = -1;
}

static void lose(struct netpol_spender *s)
{
	hang_up(s);
	netpol_loop_disarm(s->loop, &s->late);
	s->away = true;
	s->asked = 0;
	s->orphan = false;
}

static bool ask(struct netpol_spender *s)
{
	struct netpol_msg_spend m;

	memset(&m, 0, sizeof(m));
	m.type = NETPOL_MSG_SPEND;
	m.id = ++s->last_id;
	if (netpol_wire_send(s->chan.fd, &m, sizeof(m), -1) != NETPOL_WIRE_SENT)
		return false;
	s->asked = m.id;
	s->n_asked++;
	return true;
}

static void wait_for_it(struct netpol_spender *s)
{
	netpol_loop_arm(s->loop, &s->late,
			netpol_loop_now(s->loop) + s->timeout_ms + NETPOL_SPEND_SLACK_MS);
}

/* Goes on with the first in the ring; true when it is done with. Because one question is out at a
 * time, what the local limiter would admit now it still admits when the answer is here. */
static bool first(struct netpol_spender *s)
{
	struct netpol_spending *x = s->waiting.next;
	struct netpol_limit local;

	netpol_limiter_peek(*s->local, netpol_boottime_ns(), &local);
	if (!local.allowed) {
		finish(x, NETPOL_SPENT_LIMITED, local.retry_ms);
		return true;
	}
	if (!s->away && s->chan.fd >= 0 && !ask(s))
		lose(s);
	if (s->away) {
		s->n_away++;
		finish(x, NETPOL_SPENT_AWAY, 0);
		return true;
	}
	if (!s->late.next) /* for the answer, or for the very first channel */
		wait_for_it(s);
	return false;
}

static void go_on(struct netpol_spender *s)
{
	while (s->asked == 0 && s->waiting.next != &s->waiting && first(s))
		; /* the next one */
}

static void on_more(struct netpol_task *t)
{
	go_on(NETPOL_OWNER(t, struct netpol_spender, more));
}

static void on_late(struct netpol_timer *t)
{
	struct netpol_spender *s = NETPOL_OWNER(t, struct netpol_spender, late);
	bool orphan = s->orphan, asked = s->asked > 0;

	s->away = true; /* until it answers after all, or another one comes */
	s->orphan = false;
	if (asked && !orphan) {
		s->n_away++;
		finish(s->waiting.next, NETPOL_SPENT_AWAY, 0);
	}
	/* the channel stays: a late answer must not be taken for another question's */
	s->asked = 0;
	go_on(s);
}

static void answered(struct netpol_spender *s, const struct netpol_msg_spent *m)
{
	bool wanted = s->asked > 0 && m->id == s->asked && !s->orphan;

	if (m->id != s->last_id)
		return;
	netpol_loop_disarm(s->loop, &s->late);
	s->asked = 0;
	s->orphan = s->away = false;
	s->n_limited += m->result == NETPOL_SPENT_LIMITED;
	s->n_away += m->result == NETPOL_SPENT_AWAY;
	if (wanted)
		finish(s->waiting.next, (enum netpol_spent)m->result, m->retry_ms);
}

static void on_chan(struct netpol_watch *w, uint32_t events)
{
	struct netpol_spender *s = NETPOL_OWNER(w, struct netpol_spender, chan);
	union netpol_msg m;
	bool good = true;
	int got = 0;

	(void)events;
	while (good && s->chan.fd >= 0 && (got = netpol_wire_recv_bare(s->chan.fd, &m)) > 0) {
		good = m.head.type == NETPOL_MSG_SPENT && m.spent.result < NETPOL_SPENT_COUNT;
		if (good)
			answered(s, &m.spent);
	}
	if (!good || got < 0)
		lose(s); /* who had asked is first in the ring, and is told */
	go_on(s);
}

void netpol_spender_init(struct netpol_spender *s, struct netpol_loop *loop,
			 struct netpol_limiter *const *local)
{
	memset(s, 0, sizeof(*s));
	s->loop = loop;
	s->local = local;
	s->chan.fd = -1;
	s->late.fn = on_late;
	s->more.fn = on_more;
	s->waiting.prev = s->waiting.next = &s->waiting;
}

void netpol_spender_done(struct netpol_spender *s)
{
	hang_up(s);
}

/* What was asked on the old one is asked again: it may then be counted twice, never not at all. */
void netpol_spender_channel(struct netpol_spender *s, int fd)
{
	lose(s);
	s->chan = (struct netpol_watch){ fd, on_chan, 0 };
	s->away = !netpol_loop_watch(s->loop, &s->chan, EPOLLIN);
	if (s->away) {
		(void)close(fd);
		s->chan.fd = -1;
	}
	netpol_loop_defer(s->loop, &s->more);
}

void netpol_spender_add(struct netpol_spender *s, struct netpol_spending *x)
{
	x->next = &s->waiting;
	x->prev = s->waiting.prev;
	x->prev->next = x->next->prev = x;
	netpol_loop_defer(s->loop, &s->more);
}

void netpol_spender_forget(struct netpol_spender *s, struct netpol_spending *x)
{
	if (!x->next)
		return;
	if (s->asked > 0 && !s->orphan && s->waiting.next == x)
		s->orphan = true;
	unlink_spend(x);
}
