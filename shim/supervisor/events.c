/* SPDX-License-Identifier: MIT */
#include "shim/supervisor/events.h"

static const char *const STATE_NAMES[SHIM_SUP_STATES] = {
	[SHIM_SUP_STOPPED] = "stopped",   [SHIM_SUP_STARTING] = "starting",
	[SHIM_SUP_ALIVE] = "alive",       [SHIM_SUP_PROBING] = "probing",
	[SHIM_SUP_STOPPING] = "stopping", [SHIM_SUP_BACKOFF] = "backoff",
	[SHIM_SUP_HELD] = "held",
};
static const char *const EVENT_NAMES[SHIM_SUP_EVENTS] = {
	[SHIM_SUP_WANT_UP] = "want_up",
	[SHIM_SUP_WANT_DOWN] = "want_down",
	[SHIM_SUP_RESET] = "reset",
	[SHIM_SUP_STARTED] = "started",
	[SHIM_SUP_START_FAILED] = "start_failed",
	[SHIM_SUP_START_REFUSED] = "start_refused",
	[SHIM_SUP_YES] = "yes",
	[SHIM_SUP_NO] = "no",
	[SHIM_SUP_DONE] = "done",
	[SHIM_SUP_PROBE_FAILED] = "probe_failed",
	[SHIM_SUP_STOP_OK] = "stop_ok",
	[SHIM_SUP_STOP_FAILED] = "stop_failed",
	[SHIM_SUP_EXITED_OK] = "exited_ok",
	[SHIM_SUP_EXITED_BAD] = "exited_bad",
	[SHIM_SUP_TIMER] = "timer",
};
static const char *const REPORT_NAMES[SHIM_SUP_TELLS] = {
	[SHIM_SUP_TELL_STARTED] = "started", [SHIM_SUP_TELL_ADOPTED] = "adopted",
	[SHIM_SUP_TELL_FAILED] = "failed",   [SHIM_SUP_TELL_BACKOFF] = "backoff",
	[SHIM_SUP_TELL_HELD] = "held",       [SHIM_SUP_TELL_REFUSED] = "refused",
	[SHIM_SUP_TELL_HEALTHY] = "healthy", [SHIM_SUP_TELL_RESET] = "reset",
	[SHIM_SUP_TELL_STOPPED] = "stopped", [SHIM_SUP_TELL_DONE] = "done",
	[SHIM_SUP_TELL_UNCLEAN] = "unclean", [SHIM_SUP_TELL_LATE] = "late",
};
static const char *const WHY_NAMES[SHIM_SUP_WHYS] = {
	[SHIM_SUP_WHY_NONE] = "",
	[SHIM_SUP_WHY_START_FAILED] = "start_failed",
	[SHIM_SUP_WHY_START_TIMEOUT] = "start_timeout",
	[SHIM_SUP_WHY_NOT_ALIVE] = "not_alive",
	[SHIM_SUP_WHY_EXITED] = "exited",
	[SHIM_SUP_WHY_NO_ANSWER] = "no_answer",
	[SHIM_SUP_WHY_STOP_FAILED] = "stop_failed",
	[SHIM_SUP_WHY_LOST] = "lost",
};

const char *shim_sup_state_name(enum shim_sup_state state)
{
	return (unsigned)state < SHIM_SUP_STATES ? STATE_NAMES[state] : "?";
}

const char *shim_sup_event_name(enum shim_sup_event event)
{
	return (unsigned)event < SHIM_SUP_EVENTS ? EVENT_NAMES[event] : "?";
}

const char *shim_sup_report_name(enum shim_sup_report report)
{
	return (unsigned)report < SHIM_SUP_TELLS ? REPORT_NAMES[report] : "?";
}

const char *shim_sup_why_name(enum shim_sup_why why)
{
	return (unsigned)why < SHIM_SUP_WHYS ? WHY_NAMES[why] : "?";
}
