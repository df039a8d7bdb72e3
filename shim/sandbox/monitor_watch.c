/* SPDX-License-Identifier: MIT */
/* Limits and health of a running container. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/sandbox/monitor_int.h"
#include "shim/supervisor/driver_process.h"

const struct shim_threshold SHIM_THRESHOLDS[SHIM_WATCHES] = {
	[SHIM_WATCH_CPU] = { "cpu", 90, 85 },
	[SHIM_WATCH_MEMORY] = { "memory", 85, 80 },
	[SHIM_WATCH_DISK] = { "disk", 80, 75 },
};

/* ---- judging a sample ---- */

static double cpu_of_limit(const struct shim_usage *before, const struct shim_usage *now)
{
	if (now->cpu_limit_milli == SHIM_UNLIMITED || now->cpu_limit_milli == 0)
		return 0;
	return shim_usage_cpu_percent(before, now) * 1000.0 / (double)now->cpu_limit_milli;
}

/* The first time the kernel is asked for pages back; if that does not help within a sample, the
 * container is ended while it can still end well. */
static enum shim_oom_step oom_step(struct shim_watch_state *w, double percent, const char *policy)
{
	if (aqe_str_eq(policy, "off") || percent < SHIM_OOM_PERCENT) {
		w->oom_samples = 0;
		return SHIM_OOM_NOTHING;
	}
	w->oom_samples++;
	if (w->oom_samples == 1)
		return SHIM_OOM_RECLAIM;
	if (aqe_str_eq(policy, "stop") && w->oom_samples == 3)
		return SHIM_OOM_STOP;
	return SHIM_OOM_NOTHING;
}

void shim_watch_judge(struct shim_watch_state *w, const struct shim_usage *before,
		      const struct shim_usage *now, const char *policy,
		      struct shim_watch_verdict *ret)
{
	ret->percent[SHIM_WATCH_CPU] = cpu_of_limit(before, now);
	ret->percent[SHIM_WATCH_MEMORY] = shim_usage_percent(now->memory, now->memory_limit);
	ret->percent[SHIM_WATCH_DISK] = shim_usage_percent(now->disk, now->disk_limit);
	for (int i = 0; i < SHIM_WATCHES; i++) {
		bool over = ret->percent[i] >= SHIM_THRESHOLDS[i].over;

		ret->tell[i] = over && !w->over[i];
		if (over || ret->percent[i] < SHIM_THRESHOLDS[i].again)
			w->over[i] = over;
	}
	ret->oom = oom_step(w, ret->percent[SHIM_WATCH_MEMORY], policy);
}

/* ---- acting on it ---- */

bool shim_monitor_look_oom(struct shim_monitor *m)
{
	struct shim_event ev = SHIM_EVENT_INIT(SHIM_EVENT_OOM_KILLED);
	uint64_t n = shim_usage_oom_kills(&m->cgroup);

	if (n <= m->oom_kills)
		return false;
	ev.reason = "the kernel ended a process at the memory limit";
	ev.number = (int64_t)(n - m->oom_kills);
	ev.number_name = "processes";
	m->oom_kills = n;
	m->seen.oom_killed = true;
	shim_monitor_event(m, &ev);
	return true;
}

static void prevent_oom(struct shim_monitor *m, const struct shim_watch_verdict *v,
			const struct shim_usage *u)
{
	struct shim_event ev = SHIM_EVENT_INIT(SHIM_EVENT_LIMIT);
	struct aqe_err e = AQE_ERR_INIT;

	if (v->oom == SHIM_OOM_NOTHING)
		return;
	ev.resource = "memory";
	ev.percent = v->percent[SHIM_WATCH_MEMORY];
	ev.reason = v->oom == SHIM_OOM_RECLAIM ? "oom prevention: reclaim" : "oom prevention: stop";
	shim_monitor_event(m, &ev);
	if (v->oom == SHIM_OOM_RECLAIM) {
		/* a tenth of the limit; what cannot be given back shows in the next sample */
		(void)!shim_usage_reclaim(&m->cgroup, u->memory_limit / 10, &e);
		return;
	}
	m->stop_for_oom = true;
	m->want.up = false;
	(void)!shim_box_set_want(m->box, &m->want, &e); /* then the next monitor starts it again */
	shim_supervisor_want(m->sup, SHIM_SUP_WANT_DOWN);
}

/* Children that others left to us (we are their subreaper): zombies must not pile up. Those whose
 * end somebody waits for are left alone. */
static void reap_strangers(const struct shim_monitor *m)
{
	for (int i = 0; i < 64; i++) {
		siginfo_t info = { .si_pid = 0 };

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
			return;
		if (info.si_pid == (pid_t)m->seen.pid || info.si_pid == m->health.pid ||
		    getpgid(info.si_pid) == info.si_pid)
			return; /* the instance, a check, a call: noticed in their own way */
		(void)waitpid(info.si_pid, NULL, WNOHANG);
	}
}

static void on_sample(void *arg)
{
	struct shim_monitor *m = arg;
	struct shim_usage now;
	struct shim_watch_verdict v;

	shim_loop_arm(m->loop, &m->sample, SHIM_SAMPLE_MS);
	reap_strangers(m);
	if (shim_usage_read(&m->cgroup, &now, NULL) < 0)
		return;
	if (shim_monitor_look_oom(m))
		shim_monitor_save(m);
	shim_watch_judge(&m->watch, m->has_usage ? &m->usage : &now, &now, m->box->plan.oom, &v);
	m->usage = now;
	m->has_usage = true;
	for (int i = 0; i < SHIM_WATCHES; i++) {
		struct shim_event ev = SHIM_EVENT_INIT(SHIM_EVENT_LIMIT);

		if (!v.tell[i])
			continue;
		ev.resource = SHIM_THRESHOLDS[i].name;
		ev.percent = v.percent[i];
		shim_monitor_event(m, &ev);
	}
	prevent_oom(m, &v, &now);
}

/* ---- health ---- */

static void set_health(struct shim_monitor *m, const char *health)
{
	if (aqe_str_eq(m->seen.health, health))
		return;
	m->seen.health = health;
	shim_monitor_save(m);
}

static void health_result(struct shim_monitor *m, bool ok, const char *why)
{
	struct shim_event ev = SHIM_EVENT_INIT(SHIM_EVENT_HEALTH_FAILED);

	if (ok) {
		m->health.failures = 0;
		set_health(m, "healthy");
		return;
	}
	m->health.failures++;
	ev.reason = why;
	ev.number = m->health.failures;
	ev.number_name = "failures";
	shim_monitor_event(m, &ev);
	if (m->health.failures >= m->box->plan.health_retries)
		set_health(m, "unhealthy");
}

static void health_forget(struct shim_monitor *m)
{
	shim_loop_disarm(m->loop, &m->health.limit);
	shim_loop_unwatch(m->loop, m->health.pidfd);
	aqe_cleanup_fd(&m->health.pidfd);
	m->health.pidfd = -1;
	m->health.pid = 0;
}

static void on_health_end(void *arg, int fd, uint32_t events)
{
	struct shim_monitor *m = arg;
	int status = -1;

	(void)fd;
	(void)events;
	if (waitpid(m->health.pid, &status, WNOHANG) == 0)
		return;
	health_forget(m);
	health_result(m, status == 0, "the check failed");
}

static void on_health_limit(void *arg)
{
	struct shim_monitor *m = arg;

	if (m->health.pid <= 0)
		return;
	(void)kill(-m->health.pid, SIGKILL);
	(void)waitpid(m->health.pid, NULL, 0); /* killed just now */
	health_forget(m);
	health_result(m, false, "the check did not end in time");
}

/* `aqe sandbox exec NAME -- /bin/sh -c COMMAND` in a process of its own. */
static int spawn_check(struct shim_monitor *m, struct aqe_err *e)
{
	const char *const words[] = {
		"aqe", "sandbox",    "exec",    "--data-dir", m->box->place->path,
		"--",  m->box->name, "/bin/sh", "-c",         m->box->plan.health,
		NULL
	};
	AQE_AUTO_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct shim_spawn o = {
		"/proc/self/exe", (char *const *)(uintptr_t)words, environ, null, null, null, false
	};

	return shim_spawn(&o, &m->health.pid, e);
}

static void on_health(void *arg)
{
	struct shim_monitor *m = arg;
	struct aqe_err e = AQE_ERR_INIT;
	int rc;

	shim_loop_arm(m->loop, &m->health.next, m->box->plan.health_interval_ms);
	if (m->health.pid > 0)
		return;
	rc = spawn_check(m, &e);
	if (rc == 0) {
		m->health.pidfd = (int)syscall(SYS_pidfd_open, m->health.pid, 0);
		rc = shim_loop_watch(m->loop, m->health.pidfd, EPOLLIN, on_health_end, m, &e);
		shim_loop_arm(m->loop, &m->health.limit, m->box->plan.health_timeout_ms);
	}
	if (rc < 0)
		health_result(m, false, e.text);
}

/* ---- begin and end ---- */

void shim_monitor_watch_begin(struct shim_monitor *m)
{
	shim_monitor_watch_end(m);
	m->sample.fn = on_sample;
	m->health.next.fn = on_health;
	m->health.limit.fn = on_health_limit;
	m->sample.arg = m->health.next.arg = m->health.limit.arg = m;
	m->watch = (struct shim_watch_state){ { false }, 0 };
	m->has_usage = false;
	m->oom_kills = 0;
	if (m->seen.pid > 0 && shim_cgroup_open((pid_t)m->seen.pid, &m->cgroup, NULL) == 0) {
		m->oom_kills = shim_usage_oom_kills(&m->cgroup);
		shim_loop_arm(m->loop, &m->sample, SHIM_SAMPLE_MS);
	}
	m->health.failures = 0;
	m->seen.health = m->box->plan.health ? "starting" : "none";
	if (m->box->plan.health)
		shim_loop_arm(m->loop, &m->health.next, m->box->plan.health_start_ms);
}

void shim_monitor_watch_end(struct shim_monitor *m)
{
	shim_loop_disarm(m->loop, &m->sample);
	shim_loop_disarm(m->loop, &m->health.next);
	if (m->health.pid > 0) {
		(void)kill(-m->health.pid, SIGKILL);
		(void)waitpid(m->health.pid, NULL, 0); /* killed just now */
		health_forget(m);
	}
	shim_cgroup_done(&m->cgroup);
}
