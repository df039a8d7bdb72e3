/* SPDX-License-Identifier: MIT */
/* Between the files of the monitor. */
#ifndef AQE_SANDBOX_MONITOR_INT_H
#define AQE_SANDBOX_MONITOR_INT_H

#include "shim/sandbox/events.h"
#include "shim/sandbox/logs.h"
#include "shim/sandbox/monitor.h"
#include "shim/sandbox/usage.h"
#include "shim/supervisor/driver_command.h"
#include "shim/supervisor/supervisor.h"

#define SHIM_SAMPLE_MS 1000

/* Percent of a limit at which an event is written, and below which the next one may be. */
enum shim_watched { SHIM_WATCH_CPU, SHIM_WATCH_MEMORY, SHIM_WATCH_DISK, SHIM_WATCHES };
struct shim_threshold {
	const char *name;
	double over, again;
};
extern const struct shim_threshold SHIM_THRESHOLDS[SHIM_WATCHES];
#define SHIM_OOM_PERCENT 95.0

/* What is done at one sample. Pure; shim_watch_judge() keeps its memory in `w`. */
struct shim_watch_state {
	bool over[SHIM_WATCHES];
	unsigned oom_samples; /* in a row at or over SHIM_OOM_PERCENT */
};
enum shim_oom_step { SHIM_OOM_NOTHING, SHIM_OOM_RECLAIM, SHIM_OOM_STOP };
struct shim_watch_verdict {
	bool tell[SHIM_WATCHES];
	double percent[SHIM_WATCHES];
	enum shim_oom_step oom;
};
/* `policy` is the plan's "off", "reclaim" or "stop". */
void shim_watch_judge(struct shim_watch_state *w, const struct shim_usage *before,
		      const struct shim_usage *now, const char *policy,
		      struct shim_watch_verdict *ret);

/* A health check under way. */
struct shim_health {
	struct shim_loop_timer next, limit;
	pid_t pid; /* 0: none */
	int pidfd;
	uint32_t failures; /* in a row */
};

struct shim_monitor {
	struct shim_box *box;
	struct shim_loop *loop;
	struct shim_supervisor *sup;
	struct shim_want want;
	struct shim_seen seen;
	char error[AQE_ERR_TEXT_MAX]; /* what seen.error points to */
	char container[80];           /* what seen.container points to */
	int inotify_fd, pipe_fd[SHIM_STREAMS];
	struct shim_log_writer log;
	bool log_failed; /* told already */
	bool stop_for_oom;
	bool present; /* an instance was seen to start, and not to end */
	bool quit;
	/* while it runs */
	struct shim_loop_timer sample;
	struct shim_cgroup cgroup;
	struct shim_usage usage;
	bool has_usage;
	struct shim_watch_state watch;
	uint64_t oom_kills; /* seen so far */
	struct shim_health health;
};

/* ---- monitor.c ---- */
void shim_monitor_save(struct shim_monitor *m);
void shim_monitor_event(struct shim_monitor *m, const struct shim_event *ev);

/* ---- monitor_watch.c: limits and health of a running container ---- */
void shim_monitor_watch_begin(struct shim_monitor *m);
void shim_monitor_watch_end(struct shim_monitor *m);
/* Looks for OOM kills since the last look; true when there were. */
bool shim_monitor_look_oom(struct shim_monitor *m);

/* ---- monitor_io.c: its output ---- */
AQE_MUST_CHECK int shim_monitor_io_open(struct shim_monitor *m, struct aqe_err *e);
void shim_monitor_io_drain(struct shim_monitor *m);
void shim_monitor_io_close(struct shim_monitor *m);

#endif
