/* SPDX-License-Identifier: MIT */
#include "shim/supervisor/machine.h"

#include <assert.h>
#include <string.h>

/* Four numbers are the specification (500, 8000, 5, 60000); the others are ours. A runtime's
 * `create` takes well under a second; engines give it 240. */
const struct shim_sup_config SHIM_SUP_CONFIG_DEFAULT = {
	.base_ms = 500,
	.cap_ms = 8000,
	.attempts = 5,
	.healthy_ms = 60000,
	.probe_ms = 5000,
	.probe_misses = 3,
	.start_timeout_ms = 30000,
	.alive_timeout_ms = 5000,
	.stop_timeout_ms = 15000,
	.done_is_failure = true,
};

/* ---- arithmetic ---- */

uint32_t shim_sup_window(const struct shim_sup_config *cfg, uint32_t n)
{
	uint64_t window = cfg->base_ms;

	for (uint32_t i = 1; i < n && window < cfg->cap_ms; i++)
		window *= 2;
	return window < cfg->cap_ms ? (uint32_t)window : cfg->cap_ms;
}

/* The high half of random * (window + 1): no modulo, so no value is favoured by more than 2^-31. */
uint32_t shim_sup_jitter(uint32_t window, uint64_t random)
{
	return (uint32_t)(((random >> 32) * ((uint64_t)window + 1)) >> 32);
}

/* ---- actions ---- */

struct step {
	struct shim_sup *m;
	const struct shim_sup_in *in;
	struct shim_sup_out *out;
};

static struct shim_sup_action *add(struct step *s, enum shim_sup_kind kind)
{
	struct shim_sup_action *a = &s->out->a[s->out->n];

	assert(s->out->n < SHIM_SUP_ACTIONS_MAX);
	s->out->n++;
	*a = (struct shim_sup_action){ .kind = kind, .failures = s->m->failures };
	return a;
}

static void tell(struct step *s, enum shim_sup_report report)
{
	add(s, SHIM_SUP_DO_REPORT)->report = report;
}

static void arm(struct step *s, uint32_t delay_ms)
{
	s->m->due_ms = s->m->now_ms + delay_ms;
	add(s, SHIM_SUP_DO_ARM)->delay_ms = delay_ms;
}

static void rest(struct step *s, enum shim_sup_state state)
{
	s->m->state = state;
	(void)add(s, SHIM_SUP_DO_DISARM); /* nothing to fill in */
}

static void cancel(struct step *s)
{
	add(s, SHIM_SUP_DO_CANCEL)->token = s->m->token;
}

static void call(struct step *s, enum shim_sup_kind kind, enum shim_sup_state state,
		 uint32_t timeout_ms)
{
	s->m->token++;
	s->m->state = state;
	/* the timer first: a driver that answers at once must find it armed */
	arm(s, timeout_ms);
	add(s, kind)->token = s->m->token;
}

/* ---- what the cells of the table do ---- */

/* An instance is on disk before it exists: a supervisor that dies in between finds it again. */
static void start(struct step *s)
{
	struct shim_sup *m = s->m;

	m->running = true;
	m->adopting = m->proven = false;
	m->misses = 0;
	m->alive_at_ms = -1;
	m->alive_ms = 0;
	m->instance = m->token + 1;
	(void)add(s, SHIM_SUP_DO_SAVE); /* nothing to fill in */
	call(s, SHIM_SUP_DO_START, SHIM_SUP_STARTING, m->cfg.start_timeout_ms);
}

static void probe(struct step *s)
{
	call(s, SHIM_SUP_DO_ALIVE, SHIM_SUP_PROBING, s->m->cfg.alive_timeout_ms);
}

static void stop(struct step *s, enum shim_sup_next next)
{
	s->m->next = next;
	call(s, SHIM_SUP_DO_STOP, SHIM_SUP_STOPPING, s->m->cfg.stop_timeout_ms);
}

static void enter_backoff(struct step *s)
{
	struct shim_sup *m = s->m;
	uint32_t n = m->failures > 0 ? m->failures : 1;
	uint32_t delay_ms = shim_sup_jitter(shim_sup_window(&m->cfg, n), s->in->random);

	m->state = SHIM_SUP_BACKOFF;
	tell(s, SHIM_SUP_TELL_BACKOFF);
	s->out->a[s->out->n - 1].delay_ms = delay_ms;
	arm(s, delay_ms);
}

static void enter_held(struct step *s)
{
	rest(s, SHIM_SUP_HELD);
	tell(s, s->m->hold == SHIM_SUP_HOLD_REFUSED ? SHIM_SUP_TELL_REFUSED : SHIM_SUP_TELL_HELD);
}

static void enter_stopped(struct step *s)
{
	rest(s, SHIM_SUP_STOPPED);
	tell(s, s->m->unclean ? SHIM_SUP_TELL_UNCLEAN : SHIM_SUP_TELL_STOPPED);
}

static enum shim_sup_next count(struct step *s, enum shim_sup_why why)
{
	struct shim_sup *m = s->m;

	if (m->failures < UINT32_MAX)
		m->failures++;
	if (m->failures >= m->cfg.attempts)
		m->hold = SHIM_SUP_HOLD_CRASH_LOOP;
	(void)add(s, SHIM_SUP_DO_SAVE); /* nothing to fill in */
	tell(s, SHIM_SUP_TELL_FAILED);
	s->out->a[s->out->n - 1].why = why;
	return m->hold ? SHIM_SUP_NEXT_HELD : SHIM_SUP_NEXT_BACKOFF;
}

/* Every failure goes through stop(): a start that failed or timed out may have left something
 * running, and two instances must never run side by side. */
static void fail(struct step *s, enum shim_sup_why why)
{
	stop(s, count(s, why));
}

static void refuse(struct step *s)
{
	s->m->hold = SHIM_SUP_HOLD_REFUSED;
	(void)add(s, SHIM_SUP_DO_SAVE); /* nothing to fill in */
	stop(s, SHIM_SUP_NEXT_HELD);
}

static void finish(struct step *s)
{
	if (s->m->cfg.done_is_failure) {
		fail(s, SHIM_SUP_WHY_EXITED);
		return;
	}
	tell(s, SHIM_SUP_TELL_DONE);
	s->m->stop_tries = 0;
	stop(s, SHIM_SUP_NEXT_STOPPED);
}

static void forget(struct step *s)
{
	s->m->failures = 0;
	s->m->hold = SHIM_SUP_HOLD_NONE;
	(void)add(s, SHIM_SUP_DO_SAVE); /* nothing to fill in */
	tell(s, SHIM_SUP_TELL_RESET);
}

/* ---- cells: wishes ---- */

static void ignore(struct step *s)
{
	(void)s; /* the event means nothing in this state */
}

static void late(struct step *s)
{
	tell(s, SHIM_SUP_TELL_LATE);
	s->out->a[s->out->n - 1].token = s->in->token;
}

static void up_stopped(struct step *s)
{
	struct shim_sup *m = s->m;

	if (m->hold) {
		enter_held(s);
	} else if (m->unclean) {
		stop(s, SHIM_SUP_NEXT_START);
	} else if (m->running) {
		m->adopting = true;
		m->instance = m->token + 1;
		probe(s);
	} else {
		start(s);
	}
}

static void up_stopping(struct step *s)
{
	if (s->m->next == SHIM_SUP_NEXT_STOPPED)
		s->m->next = s->m->hold ? SHIM_SUP_NEXT_HELD : SHIM_SUP_NEXT_START;
}

static void up_held(struct step *s)
{
	enter_held(s); /* says why once more */
}

static void down_idle(struct step *s)
{
	if (s->m->running) {
		s->m->stop_tries = 0;
		stop(s, SHIM_SUP_NEXT_STOPPED);
	} else {
		enter_stopped(s);
	}
}

static void down_alive(struct step *s)
{
	s->m->stop_tries = 0;
	stop(s, SHIM_SUP_NEXT_STOPPED);
}

static void down_calling(struct step *s)
{
	cancel(s);
	down_alive(s);
}

static void down_stopping(struct step *s)
{
	if (s->m->next != SHIM_SUP_NEXT_STOPPED)
		s->m->stop_tries = 0;
	s->m->next = SHIM_SUP_NEXT_STOPPED;
}

static void reset_any(struct step *s)
{
	forget(s);
}

static void reset_stopping(struct step *s)
{
	forget(s);
	if (s->m->next != SHIM_SUP_NEXT_STOPPED)
		s->m->next = SHIM_SUP_NEXT_START;
}

static void reset_waiting(struct step *s)
{
	forget(s);
	if (s->m->running)
		stop(s, SHIM_SUP_NEXT_START);
	else
		start(s);
}

/* ---- cells: answers ---- */

/* Not believed before alive() says the same. */
static void started(struct step *s)
{
	probe(s);
}

static void start_failed(struct step *s)
{
	fail(s, SHIM_SUP_WHY_START_FAILED);
}

static void start_refused(struct step *s)
{
	refuse(s);
}

/* The time since the last proof counts, but no more than a punctual probe would have proven: a
 * clock that jumps does not make anything healthy. */
static void prove(struct shim_sup *m)
{
	int64_t credit = m->alive_at_ms < 0 ? 0 : m->now_ms - m->alive_at_ms;
	int64_t most = (int64_t)m->cfg.probe_ms + m->cfg.alive_timeout_ms;

	m->alive_ms += credit < most ? credit : most;
	m->alive_at_ms = m->now_ms;
	m->misses = 0;
}

static void yes(struct step *s)
{
	struct shim_sup *m = s->m;
	int64_t left;

	prove(m);
	if (!m->proven)
		tell(s, m->adopting ? SHIM_SUP_TELL_ADOPTED : SHIM_SUP_TELL_STARTED);
	m->proven = true;
	m->adopting = false;
	if (m->failures > 0 && m->alive_ms >= m->cfg.healthy_ms) {
		m->failures = 0;
		(void)add(s, SHIM_SUP_DO_SAVE); /* nothing to fill in */
		tell(s, SHIM_SUP_TELL_HEALTHY);
	}
	m->state = SHIM_SUP_ALIVE;
	left = m->failures > 0 ? m->cfg.healthy_ms - m->alive_ms : m->cfg.probe_ms;
	arm(s, left < m->cfg.probe_ms ? (uint32_t)left : m->cfg.probe_ms);
}

static void no(struct step *s)
{
	fail(s, s->m->adopting ? SHIM_SUP_WHY_LOST : SHIM_SUP_WHY_NOT_ALIVE);
}

static void done(struct step *s)
{
	finish(s);
}

static void miss(struct step *s)
{
	struct shim_sup *m = s->m;

	m->alive_at_ms = -1;
	m->alive_ms = 0;
	m->misses++;
	if (m->misses >= m->cfg.probe_misses) {
		fail(s, SHIM_SUP_WHY_NO_ANSWER);
		return;
	}
	m->state = SHIM_SUP_ALIVE;
	arm(s, m->cfg.probe_ms);
}

static void stop_ok(struct step *s)
{
	struct shim_sup *m = s->m;

	m->running = m->unclean = false;
	m->instance = 0;
	if (m->next == SHIM_SUP_NEXT_START) {
		start(s); /* saves */
		return;
	}
	(void)add(s, SHIM_SUP_DO_SAVE); /* nothing to fill in */
	if (m->next == SHIM_SUP_NEXT_BACKOFF)
		enter_backoff(s);
	else if (m->next == SHIM_SUP_NEXT_HELD)
		enter_held(s);
	else
		enter_stopped(s);
}

/* What could not be stopped is not forgotten: the next start, or the next wish to stop, begins
 * with stop(). Every way from here is bounded by a count. */
static void stop_failed(struct step *s)
{
	struct shim_sup *m = s->m;
	enum shim_sup_next next = m->next;

	m->unclean = true;
	if (next == SHIM_SUP_NEXT_STOPPED) {
		m->stop_tries++;
		if (m->stop_tries < SHIM_SUP_STOP_TRIES)
			stop(s, next);
		else
			enter_stopped(s);
		return;
	}
	if (next == SHIM_SUP_NEXT_START)
		next = count(s, SHIM_SUP_WHY_STOP_FAILED);
	if (next == SHIM_SUP_NEXT_HELD)
		enter_held(s);
	else
		enter_backoff(s);
}

/* ---- cells: the kernel and the clock ---- */

static void exited(struct step *s)
{
	if (s->in->event == SHIM_SUP_EXITED_OK)
		finish(s);
	else
		fail(s, SHIM_SUP_WHY_EXITED);
}

static void exited_calling(struct step *s)
{
	cancel(s);
	exited(s);
}

static void timer_starting(struct step *s)
{
	cancel(s);
	fail(s, SHIM_SUP_WHY_START_TIMEOUT);
}

static void timer_probing(struct step *s)
{
	cancel(s);
	miss(s);
}

static void timer_stopping(struct step *s)
{
	cancel(s);
	stop_failed(s);
}

static void timer_backoff(struct step *s)
{
	if (s->m->running)
		stop(s, SHIM_SUP_NEXT_START);
	else
		start(s);
}

/* ---- the table: every event in every state ---- */

typedef void step_fn(struct step *s);

#define ANSWERS_LATE                                                                       \
	[SHIM_SUP_STARTED] = late, [SHIM_SUP_START_FAILED] = late,                         \
	[SHIM_SUP_START_REFUSED] = late, [SHIM_SUP_YES] = late, [SHIM_SUP_NO] = late,      \
	[SHIM_SUP_DONE] = late, [SHIM_SUP_PROBE_FAILED] = late, [SHIM_SUP_STOP_OK] = late, \
	[SHIM_SUP_STOP_FAILED] = late

static step_fn *const TABLE[SHIM_SUP_STATES][SHIM_SUP_EVENTS] = {
	[SHIM_SUP_STOPPED] = {
		[SHIM_SUP_WANT_UP] = up_stopped,
		[SHIM_SUP_WANT_DOWN] = down_idle,
		[SHIM_SUP_RESET] = reset_any,
		ANSWERS_LATE,
		[SHIM_SUP_EXITED_OK] = ignore,
		[SHIM_SUP_EXITED_BAD] = ignore,
		[SHIM_SUP_TIMER] = ignore,
	},
	[SHIM_SUP_STARTING] = {
		[SHIM_SUP_WANT_UP] = ignore,
		[SHIM_SUP_WANT_DOWN] = down_calling,
		[SHIM_SUP_RESET] = reset_any,
		[SHIM_SUP_STARTED] = started,
		[SHIM_SUP_START_FAILED] = start_failed,
		[SHIM_SUP_START_REFUSED] = start_refused,
		[SHIM_SUP_YES] = late,
		[SHIM_SUP_NO] = late,
		[SHIM_SUP_DONE] = late,
		[SHIM_SUP_PROBE_FAILED] = late,
		[SHIM_SUP_STOP_OK] = late,
		[SHIM_SUP_STOP_FAILED] = late,
		[SHIM_SUP_EXITED_OK] = exited_calling,
		[SHIM_SUP_EXITED_BAD] = exited_calling,
		[SHIM_SUP_TIMER] = timer_starting,
	},
	[SHIM_SUP_ALIVE] = {
		[SHIM_SUP_WANT_UP] = ignore,
		[SHIM_SUP_WANT_DOWN] = down_alive,
		[SHIM_SUP_RESET] = reset_any,
		ANSWERS_LATE,
		[SHIM_SUP_EXITED_OK] = exited,
		[SHIM_SUP_EXITED_BAD] = exited,
		[SHIM_SUP_TIMER] = probe,
	},
	[SHIM_SUP_PROBING] = {
		[SHIM_SUP_WANT_UP] = ignore,
		[SHIM_SUP_WANT_DOWN] = down_calling,
		[SHIM_SUP_RESET] = reset_any,
		[SHIM_SUP_STARTED] = late,
		[SHIM_SUP_START_FAILED] = late,
		[SHIM_SUP_START_REFUSED] = late,
		[SHIM_SUP_YES] = yes,
		[SHIM_SUP_NO] = no,
		[SHIM_SUP_DONE] = done,
		[SHIM_SUP_PROBE_FAILED] = miss,
		[SHIM_SUP_STOP_OK] = late,
		[SHIM_SUP_STOP_FAILED] = late,
		[SHIM_SUP_EXITED_OK] = exited_calling,
		[SHIM_SUP_EXITED_BAD] = exited_calling,
		[SHIM_SUP_TIMER] = timer_probing,
	},
	[SHIM_SUP_STOPPING] = {
		[SHIM_SUP_WANT_UP] = up_stopping,
		[SHIM_SUP_WANT_DOWN] = down_stopping,
		[SHIM_SUP_RESET] = reset_stopping,
		[SHIM_SUP_STARTED] = late,
		[SHIM_SUP_START_FAILED] = late,
		[SHIM_SUP_START_REFUSED] = late,
		[SHIM_SUP_YES] = late,
		[SHIM_SUP_NO] = late,
		[SHIM_SUP_DONE] = late,
		[SHIM_SUP_PROBE_FAILED] = late,
		[SHIM_SUP_STOP_OK] = stop_ok,
		[SHIM_SUP_STOP_FAILED] = stop_failed,
		[SHIM_SUP_EXITED_OK] = ignore, /* stop() is about to say so */
		[SHIM_SUP_EXITED_BAD] = ignore,
		[SHIM_SUP_TIMER] = timer_stopping,
	},
	[SHIM_SUP_BACKOFF] = {
		[SHIM_SUP_WANT_UP] = ignore,
		[SHIM_SUP_WANT_DOWN] = down_idle,
		[SHIM_SUP_RESET] = reset_waiting,
		ANSWERS_LATE,
		[SHIM_SUP_EXITED_OK] = ignore,
		[SHIM_SUP_EXITED_BAD] = ignore,
		[SHIM_SUP_TIMER] = timer_backoff,
	},
	[SHIM_SUP_HELD] = {
		[SHIM_SUP_WANT_UP] = up_held,
		[SHIM_SUP_WANT_DOWN] = down_idle,
		[SHIM_SUP_RESET] = reset_waiting,
		ANSWERS_LATE,
		[SHIM_SUP_EXITED_OK] = ignore,
		[SHIM_SUP_EXITED_BAD] = ignore,
		[SHIM_SUP_TIMER] = ignore,
	},
};

/* ---- the step ---- */

void shim_sup_init(struct shim_sup *m, const struct shim_sup_config *cfg,
		   const struct shim_sup_saved *saved, int64_t now_ms)
{
	memset(m, 0, sizeof(*m));
	m->cfg = *cfg;
	m->state = SHIM_SUP_STOPPED;
	m->clock_ms = now_ms;
	m->alive_at_ms = -1;
	if (!saved)
		return;
	m->failures = saved->failures;
	m->hold = saved->hold;
	m->running = saved->running;
	if (m->failures >= cfg->attempts && !m->hold)
		m->hold = SHIM_SUP_HOLD_CRASH_LOOP;
}

static void pass_time(struct shim_sup *m, int64_t clock_ms)
{
	if (clock_ms > m->clock_ms)
		m->now_ms += clock_ms - m->clock_ms;
	m->clock_ms = clock_ms;
}

static bool is_answer(enum shim_sup_event event)
{
	return event >= SHIM_SUP_STARTED && event <= SHIM_SUP_STOP_FAILED;
}

static bool is_exit(enum shim_sup_event event)
{
	return event == SHIM_SUP_EXITED_OK || event == SHIM_SUP_EXITED_BAD;
}

/* The timer may fire early: a clock that was set back, a kernel that rounds. */
static bool too_early(struct step *s)
{
	struct shim_sup *m = s->m;
	bool waits = m->state != SHIM_SUP_STOPPED && m->state != SHIM_SUP_HELD;

	if (s->in->event != SHIM_SUP_TIMER || !waits || m->now_ms >= m->due_ms)
		return false;
	add(s, SHIM_SUP_DO_ARM)->delay_ms = (uint32_t)(m->due_ms - m->now_ms);
	return true;
}

void shim_sup_step(struct shim_sup *m, const struct shim_sup_in *in, struct shim_sup_out *out)
{
	struct step s = { m, in, out };

	assert((unsigned)in->event < SHIM_SUP_EVENTS);
	out->n = 0;
	pass_time(m, in->now_ms);
	if (too_early(&s))
		return;
	if (is_answer(in->event) && in->token != m->token)
		late(&s);
	else if (!is_exit(in->event) || (in->token != 0 && in->token == m->instance))
		TABLE[m->state][in->event](&s);
}

void shim_sup_save(const struct shim_sup *m, struct shim_sup_saved *ret)
{
	*ret = (struct shim_sup_saved){ m->failures, m->hold, m->running, 0 };
}
