/* SPDX-License-Identifier: MIT */
/* What happens to sandboxes: a line of JSON an event in one file of the data folder, and a row of
 * the audit log. */
#ifndef AQE_SANDBOX_EVENTS_H
#define AQE_SANDBOX_EVENTS_H

#include <stdint.h>

#include "shim/core/buf.h"
#include "shim/sandbox/box.h"

#define SHIM_EVENTS_FILE    "events.jsonl"
#define SHIM_EVENTS_OLD     "events.jsonl.1"
#define SHIM_EVENTS_MAX     ((int64_t)10 << 20) /* bytes of one file; two are kept */
#define SHIM_EVENT_LINE_MAX 4096

enum shim_event_kind {
	SHIM_EVENT_CREATED,
	SHIM_EVENT_STARTED,
	SHIM_EVENT_STOPPED,
	SHIM_EVENT_DESTROYED,
	SHIM_EVENT_ERROR,
	SHIM_EVENT_OOM_KILLED,
	SHIM_EVENT_HEALTH_FAILED,
	SHIM_EVENT_LIMIT,
	SHIM_EVENT_KINDS,
};
/* "created", ..., "health_check_failed", "resource_limit_exceeded". */
const char *shim_event_name(enum shim_event_kind kind);

struct shim_event {
	enum shim_event_kind kind;
	const char *reason;   /* a few words; NULL: none */
	const char *resource; /* LIMIT: "cpu", "memory", "disk" */
	double percent;       /* LIMIT */
	int64_t exit_code;    /* STOPPED; -1: none */
	int64_t number;       /* failures, delay, ...; -1: none */
	const char *number_name;
};
#define SHIM_EVENT_INIT(k)                                               \
	{                                                                \
		.kind = (k), .percent = 0, .exit_code = -1, .number = -1 \
	}

/* The line, with its newline. */
void shim_event_line(const struct shim_box *b, const struct shim_event *ev, int64_t now_ms,
		     struct aqe_buf *out);
/* Writes both. A failure of one does not keep the other from being tried; the first is returned. */
AQE_MUST_CHECK int shim_event_write(const struct shim_box *b, const struct shim_event *ev,
				    struct aqe_err *e);

/* What the file says of a sandbox since it was created: a monitor that takes over after another was
 * killed tells nothing twice. */
struct shim_event_history {
	uint32_t starts; /* number of the last "started"; 0: none */
	bool ended;      /* a "stopped" follows it */
};
/* Lines that are no events of ours, or cut off, are passed over. */
AQE_MUST_CHECK int shim_event_history(const struct shim_box *b, struct shim_event_history *ret,
				      struct aqe_err *e);
/* One line, of any sandbox, with or without its newline; AQE_E_NOMEM. Exposed for tests. */
AQE_MUST_CHECK int shim_event_history_line(const struct shim_box *b, const char *line, size_t len,
					   struct shim_event_history *h, struct aqe_err *e);

#endif
