/* SPDX-License-Identifier: MIT */
#include "shim/egress_watch.h"

#include <string.h>

const struct shim_sup_config SHIM_EGRESS_WATCH_CONFIG = {
	.base_ms = 500,
	.cap_ms = 8000,
	.attempts = 5,
	.healthy_ms = 60000,
	.probe_ms = 2500,
	.probe_misses = 2,
	.start_timeout_ms = 30000,
	.alive_timeout_ms = 3000,
	.stop_timeout_ms = 15000,
	.done_is_failure = true,
};

static void take_report(const struct shim_sup_action *a, struct netpol_sup_todo *ret)
{
	if (a->report == SHIM_SUP_TELL_FAILED)
		ret->failure =
			a->why == SHIM_SUP_WHY_NO_ANSWER ? NETPOL_SUP_HUNG : NETPOL_SUP_FAILED;
	else if (a->report == SHIM_SUP_TELL_HELD)
		ret->close = true;
}

static void take_action(const struct shim_sup_action *a, struct netpol_sup_todo *ret)
{
	switch (a->kind) {
	case SHIM_SUP_DO_START:
		ret->start = true;
		break;
	case SHIM_SUP_DO_ALIVE:
		ret->ping = true;
		break;
	case SHIM_SUP_DO_STOP:
		ret->kill = true;
		break;
	case SHIM_SUP_DO_ARM:
		ret->timer_ms = a->delay_ms;
		break;
	case SHIM_SUP_DO_REPORT:
		take_report(a, ret);
		break;
	case SHIM_SUP_DO_SAVE:   /* the count ends with the service */
	case SHIM_SUP_DO_CANCEL: /* late answers carry an old token */
	case SHIM_SUP_DO_DISARM:
		break;
	}
}

static void tell(void *self, enum netpol_sup_event event, int64_t now_ms, uint64_t random,
		 struct netpol_sup_todo *ret)
{
	static const enum shim_sup_event events[] = {
		[NETPOL_SUP_BEGIN] = SHIM_SUP_WANT_UP,
		[NETPOL_SUP_STARTED] = SHIM_SUP_STARTED,
		[NETPOL_SUP_START_FAILED] = SHIM_SUP_START_FAILED,
		[NETPOL_SUP_ANSWERED] = SHIM_SUP_YES,
		[NETPOL_SUP_ENDED] = SHIM_SUP_EXITED_BAD,
		[NETPOL_SUP_KILLED] = SHIM_SUP_STOP_OK,
		[NETPOL_SUP_TIMER] = SHIM_SUP_TIMER,
	};
	struct shim_egress_watch *w = self;
	const struct shim_sup_in in = {
		.event = events[event],
		.token = event == NETPOL_SUP_ENDED ? w->machine.instance : w->machine.token,
		.now_ms = now_ms,
		.random = random,
	};
	struct shim_sup_out out;

	shim_sup_step(&w->machine, &in, &out);
	*ret = (struct netpol_sup_todo){ .timer_ms = -1 };
	for (size_t i = 0; i < out.n; i++)
		take_action(&out.a[i], ret);
}

struct netpol_supervise shim_egress_watch_port(struct shim_egress_watch *w, int64_t now_ms)
{
	struct netpol_supervise port = { tell, w };

	shim_sup_init(&w->machine, &SHIM_EGRESS_WATCH_CONFIG, NULL, now_ms);
	return port;
}
