/* SPDX-License-Identifier: MIT */
/* What must hold of the supervisor's machine whatever happens: an oracle that sees only events and
 * actions, never the machine's members, and remembers by itself. */
#ifndef AQE_UNIT_SUPERVISOR_ORACLE_H
#define AQE_UNIT_SUPERVISOR_ORACLE_H

#include "shim/supervisor/machine.h"
#include "tests/unit/unit.h"

struct oracle {
	const struct shim_sup_config *cfg;
	enum shim_sup_kind call; /* the one that is out; SAVE = none */
	uint64_t token;
	bool wanted;  /* the last wish was up, and it did not end by itself */
	bool exists;  /* an instance may exist: start() was called, stop() has not succeeded */
	bool refused; /* policy said no, and nobody reset */
	bool held;    /* reported as held since the last reset */
	bool armed;
	uint32_t starts; /* since the count was forgotten or somebody wished */
	uint32_t failures;
	struct shim_sup_saved disk;
};

static inline void oracle_init(struct oracle *o, const struct shim_sup_config *cfg,
			       const struct shim_sup_saved *saved)
{
	memset(o, 0, sizeof(*o));
	o->cfg = cfg;
	if (!saved)
		return;
	o->disk = *saved;
	o->exists = saved->running;
	o->failures = saved->failures;
	o->refused = saved->hold == SHIM_SUP_HOLD_REFUSED;
}

/* `m` is the machine after the step, for the message only. check's own assertions write to a file
 * each time, which a hundred million of them cannot afford. */
#define ORACLE(cond, m, in) ((cond) ? (void)0 : oracle_broken(#cond, m, in))

static inline void oracle_broken(const char *what, const struct shim_sup *m,
				 const struct shim_sup_in *in)
{
	ck_abort_msg("%s, after %s in state %s", what, shim_sup_event_name(in->event),
		     shim_sup_state_name(m->state));
}

static inline void oracle_event(struct oracle *o, const struct shim_sup_in *in)
{
	bool answer = in->event >= SHIM_SUP_STARTED && in->event <= SHIM_SUP_STOP_FAILED &&
		      o->call != SHIM_SUP_DO_SAVE && in->token == o->token;
	bool fits =
		answer && ((o->call == SHIM_SUP_DO_START && in->event <= SHIM_SUP_START_REFUSED) ||
			   (o->call == SHIM_SUP_DO_ALIVE && in->event >= SHIM_SUP_YES &&
			    in->event <= SHIM_SUP_PROBE_FAILED) ||
			   (o->call == SHIM_SUP_DO_STOP && in->event >= SHIM_SUP_STOP_OK));

	if (in->event == SHIM_SUP_WANT_UP || in->event == SHIM_SUP_WANT_DOWN) {
		o->wanted = in->event == SHIM_SUP_WANT_UP;
		o->starts = o->failures; /* a wish may start once more than failures allow */
	}
	if (in->event == SHIM_SUP_RESET) {
		o->refused = o->held = false;
		o->starts = o->failures = 0;
	}
	if (!fits)
		return;
	if (in->event == SHIM_SUP_START_REFUSED)
		o->refused = true;
	if (in->event == SHIM_SUP_STOP_OK)
		o->exists = false;
	o->call = SHIM_SUP_DO_SAVE;
}

static inline void oracle_call(struct oracle *o, const struct shim_sup *m,
			       const struct shim_sup_in *in, const struct shim_sup_action *a)
{
	ORACLE(o->call == SHIM_SUP_DO_SAVE, m, in); /* one call at a time */
	ORACLE(a->token > o->token, m, in);         /* tokens are never used again */
	ORACLE(o->armed, m, in);                    /* raced against a timer */
	o->call = a->kind;
	o->token = a->token;
	if (a->kind != SHIM_SUP_DO_START)
		return;
	o->starts++;
	ORACLE(o->wanted, m, in);
	ORACLE(!o->refused && !o->held, m, in);
	ORACLE(!o->exists, m, in);      /* never two side by side */
	ORACLE(o->disk.running, m, in); /* on disk before it exists */
	ORACLE(o->starts <= o->cfg->attempts, m, in);
	o->exists = true;
}

static inline void oracle_report(struct oracle *o, const struct shim_sup *m,
				 const struct shim_sup_in *in, const struct shim_sup_action *a)
{
	enum shim_sup_report r = a->report;

	if (r == SHIM_SUP_TELL_FAILED)
		ORACLE(a->failures == ++o->failures, m, in);
	if (r == SHIM_SUP_TELL_BACKOFF)
		ORACLE(a->delay_ms <= shim_sup_window(o->cfg, o->failures), m, in);
	if (r == SHIM_SUP_TELL_HELD) {
		ORACLE(o->failures >= o->cfg->attempts || o->disk.hold, m, in);
		o->held = true;
	}
	if (r == SHIM_SUP_TELL_REFUSED)
		ORACLE(o->refused, m, in);
	if (r == SHIM_SUP_TELL_HEALTHY || r == SHIM_SUP_TELL_STARTED || r == SHIM_SUP_TELL_ADOPTED)
		ORACLE(in->event == SHIM_SUP_YES, m, in);
	if (r == SHIM_SUP_TELL_HEALTHY)
		o->failures = o->starts = 0;
	if (r == SHIM_SUP_TELL_DONE)
		o->wanted = false;
}

/* After every step: events first, then the actions in their order. */
static inline void oracle_check(struct oracle *o, const struct shim_sup *m,
				const struct shim_sup_in *in, const struct shim_sup_out *out)
{
	bool rests = m->state == SHIM_SUP_STOPPED || m->state == SHIM_SUP_HELD;

	oracle_event(o, in);
	if (in->event == SHIM_SUP_TIMER)
		o->armed = false;
	for (size_t i = 0; i < out->n; i++) {
		const struct shim_sup_action *a = &out->a[i];

		if (a->kind == SHIM_SUP_DO_SAVE)
			shim_sup_save(m, &o->disk);
		else if (a->kind == SHIM_SUP_DO_ARM)
			o->armed = true;
		else if (a->kind == SHIM_SUP_DO_DISARM)
			o->armed = false;
		else if (a->kind == SHIM_SUP_DO_REPORT)
			oracle_report(o, m, in, a);
		else if (a->kind == SHIM_SUP_DO_CANCEL) {
			ORACLE(a->token == o->token && o->call != SHIM_SUP_DO_SAVE, m, in);
			o->call = SHIM_SUP_DO_SAVE;
		} else
			oracle_call(o, m, in, a);
	}
	ORACLE(o->armed != rests, m, in); /* it cannot stall, and does not tick for nothing */
	ORACLE(o->disk.failures == m->failures && o->disk.hold == m->hold, m, in);
	ORACLE(o->disk.running == m->running || !m->running, m, in);
}

#endif
