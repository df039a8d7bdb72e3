/* SPDX-License-Identifier: MIT */
/* Both ends of a monitor's life as a process: a command that starts one, and the calls it makes. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/sandbox/engine.h"
#include "shim/sandbox/monitor.h"
#include "shim/supervisor/driver_command.h"

#define READY_MS 5000
#define STEP_MS  5
#define LOG_NAME "monitor.log"

/* ---- starting one ---- */

static int spawn_detached(const struct shim_box *b, pid_t *ret, struct aqe_err *e)
{
	const char *const argv[] = { "aqe",        "sandbox",      "monitor", b->name,
				     "--data-dir", b->place->path, NULL };
	AQE_AUTO_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	AQE_AUTO_FD int log =
		openat(b->fd, LOG_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int err;

	if (null < 0 || log < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open the monitor's streams");
	(void)sigemptyset(&none);
	err = posix_spawn_file_actions_init(&actions);
	if (err)
		return aqe_err_set(e, AQE_E_NOMEM, err, "prepare a monitor");
	err = posix_spawnattr_init(&attr);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, null, 0);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, null, 1);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, log, 2);
	if (!err) /* what the caller left open would stay open as long as the sandbox */
		err = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	if (!err)
		err = posix_spawnattr_setsigmask(&attr, &none);
	if (!err) /* a session of its own: a terminal's signals are not for it */
		err = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	if (!err)
		err = posix_spawn(ret, "/proc/self/exe", &actions, &attr,
				  (char *const *)(uintptr_t)argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions); /* always 0 */
	(void)posix_spawnattr_destroy(&attr);             /* always 0 */
	return err ? aqe_err_set(e, AQE_E_SYS, err, "start a monitor") : 0;
}

int shim_monitor_ensure(const struct shim_box *b, struct aqe_err *e)
{
	static const struct timespec STEP = { 0, STEP_MS * 1000000L };
	pid_t pid = 0;
	int status = 0, rc;

	if (shim_box_is_supervised(b))
		return 0;
	rc = spawn_detached(b, &pid, e);
	for (int ms = 0; rc == 0 && ms < READY_MS; ms += STEP_MS) {
		if (shim_box_is_supervised(b))
			return 0;
		/* it may also have had nothing to do, or have met another monitor */
		if (waitpid(pid, &status, WNOHANG) == pid)
			return 0;
		(void)nanosleep(&STEP, NULL);
	}
	return rc < 0 ? rc : aqe_err_set(e, AQE_E_TIMEOUT, 0, "the monitor does not come up");
}

/* ---- the calls ---- */

static int call_start(struct shim_box *b, const struct shim_engine_ops *engine, struct aqe_err *e)
{
	int rc = engine->start(b, e);

	if (rc == AQE_E_REFUSED)
		return SHIM_COMMAND_REFUSED;
	return rc < 0 ? SHIM_COMMAND_FAILED : SHIM_COMMAND_OK;
}

/* A state that cannot be had is neither yes nor no. */
#define CANNOT_TELL SHIM_COMMAND_STATUSES

/* For the monitor, which is another process. */
static void note_end(const struct shim_box *b, const struct shim_engine_state *st)
{
	struct shim_last last = { st->exit_code, st->oom_killed };

	/* without it the end is told without its status */
	(void)!shim_fields_save(SHIM_LAST_FIELDS, b->fd, SHIM_LAST_FILE, &last, NULL);
}

static int call_alive(struct shim_box *b, const struct shim_engine_ops *engine, struct aqe_err *e)
{
	struct shim_engine_state st;

	if (engine->state(b, &st, e) < 0)
		return CANNOT_TELL;
	if (st.running)
		return SHIM_COMMAND_OK;
	note_end(b, &st);
	(void)aqe_err_set(e, AQE_E_UNKNOWN, 0, "not running");
	if (aqe_str_eq(b->plan.restart, "no") && st.exit_code >= 0)
		return SHIM_COMMAND_DONE;
	return st.exit_code == 0 ? SHIM_COMMAND_DONE : SHIM_COMMAND_FAILED;
}

static int call_stop(struct shim_box *b, const struct shim_engine_ops *engine, struct aqe_err *e)
{
	struct shim_want w = { false, false, false, 0 };
	struct shim_engine_state st;

	/* without a readable wish the usual grace is given */
	(void)!shim_box_want(b, &w, NULL);
	if (engine->stop(b, !w.up && w.kill ? 0 : b->plan.grace_ms, e) < 0)
		return SHIM_COMMAND_FAILED;
	/* an engine still knows how; without one its parent, the monitor, does */
	if (engine->state(b, &st, NULL) == 0 && st.exists && !st.running)
		note_end(b, &st);
	return SHIM_COMMAND_OK;
}

int shim_monitor_call(struct shim_box *b, const char *verb)
{
	static const struct {
		const char *verb;
		int (*fn)(struct shim_box *b, const struct shim_engine_ops *engine,
			  struct aqe_err *e);
	} CALLS[] = { { "start", call_start }, { "alive", call_alive }, { "stop", call_stop } };
	const struct shim_engine_ops *engine = shim_engine_find(b->plan.engine);
	struct aqe_err e = AQE_ERR_INIT;
	int rc = CANNOT_TELL;

	for (size_t i = 0; engine && i < AQE_COUNT(CALLS); i++) {
		if (aqe_str_eq(CALLS[i].verb, verb))
			rc = CALLS[i].fn(b, engine, &e);
	}
	if (rc != SHIM_COMMAND_OK)
		(void)dprintf(STDERR_FILENO, "%s\n", e.text);
	return rc;
}
