/* SPDX-License-Identifier: MIT */
#include "shim/supervisor/driver_process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/core/cleanup.h"

struct process {
	struct shim_process_opts o;
	struct shim_sup_sink sink;
	pid_t pid;         /* 0: none */
	int pidfd;         /* -1: none */
	uint64_t instance; /* token of the start that made it */
	uint64_t stopping; /* token of the stop that waits for its end; 0 = none */
	struct shim_loop_timer grace;
};

/* ---- the end of the child ---- */

/* The leader is a zombie until it is reaped, so the number of its group is still its own. */
static int reap(struct process *p)
{
	siginfo_t info = { .si_pid = 0 };
	int status = 0;

	if (waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOWAIT | WNOHANG) < 0 || !info.si_pid)
		return -1;
	(void)kill(-p->pid, SIGKILL);      /* nobody left in it: fine */
	(void)waitpid(p->pid, &status, 0); /* it has ended */
	return status;
}

static void forget(struct process *p)
{
	shim_loop_disarm(p->o.loop, &p->grace);
	shim_loop_unwatch(p->o.loop, p->pidfd);
	aqe_cleanup_fd(&p->pidfd);
	p->pidfd = -1;
	p->pid = 0;
}

static void on_end(void *arg, int fd, uint32_t events)
{
	struct process *p = arg;
	uint64_t instance = p->instance, stopping = p->stopping;
	bool ok;
	int status = reap(p);

	(void)fd;
	(void)events;
	if (status < 0)
		return; /* not yet */
	forget(p);
	p->stopping = 0;
	if (p->o.ended)
		p->o.ended(p->o.arg, status);
	ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (stopping)
		p->sink.tell(p->sink.arg, SHIM_SUP_STOP_OK, stopping);
	else
		p->sink.tell(p->sink.arg, ok ? SHIM_SUP_EXITED_OK : SHIM_SUP_EXITED_BAD, instance);
}

static void on_grace(void *arg)
{
	const struct process *p = arg;

	if (p->pid > 0)
		(void)kill(-p->pid, SIGKILL); /* it ended a moment ago: fine */
}

/* ---- the port ---- */

static void attach(void *self, const struct shim_sup_sink *sink)
{
	struct process *p = self;

	p->sink = *sink;
}

static int watch(struct process *p, struct aqe_err *e)
{
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->pidfd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "pidfd_open");
	return shim_loop_watch(p->o.loop, p->pidfd, EPOLLIN, on_end, p, e);
}

static int start(void *self, uint64_t token, struct aqe_err *e)
{
	struct process *p = self;
	int rc;

	if (p->pid > 0)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "process %ld still runs", (long)p->pid);
	rc = p->o.spawn(p->o.arg, &p->pid, e);
	if (rc < 0) {
		p->pid = 0;
		return rc;
	}
	rc = watch(p, e);
	if (rc < 0) {
		(void)kill(-p->pid, SIGKILL);
		(void)waitpid(p->pid, NULL, 0); /* killed just now */
		forget(p);
		return rc;
	}
	p->instance = token;
	p->stopping = 0;
	p->sink.tell(p->sink.arg, SHIM_SUP_STARTED, token);
	return AQE_OK;
}

static int alive(void *self, uint64_t token, struct aqe_err *e)
{
	struct process *p = self;
	siginfo_t info = { .si_pid = 0 };
	bool yes = p->pid > 0 &&
		   waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0 &&
		   !info.si_pid;
	bool has_ended = p->pid > 0 && !yes;

	(void)e;
	if (has_ended)
		on_end(p, p->pidfd, 0); /* as the pidfd would say next, with the status */
	if (!has_ended || p->pid > 0)
		p->sink.tell(p->sink.arg, yes ? SHIM_SUP_YES : SHIM_SUP_NO, token);
	return AQE_OK;
}

static int stop(void *self, uint64_t token, struct aqe_err *e)
{
	struct process *p = self;

	if (p->pid <= 0) {
		p->sink.tell(p->sink.arg, SHIM_SUP_STOP_OK, token);
		return AQE_OK;
	}
	if (kill(-p->pid, SIGTERM) < 0 && errno != ESRCH)
		return aqe_err_set(e, AQE_E_SYS, errno, "end process %ld", (long)p->pid);
	(void)kill(-p->pid, SIGCONT); /* one that is stopped would not notice */
	p->stopping = token;
	shim_loop_arm(p->o.loop, &p->grace, p->o.grace_ms);
	return AQE_OK;
}

/* Spawning and probing are over when they return; the end of a stop that nobody waits for is still
 * noticed. */
static void cancel(void *self, uint64_t token)
{
	struct process *p = self;

	if (p->stopping == token)
		p->stopping = 0;
}

static void close_process(void *self)
{
	struct process *p = self;

	forget(p);
	free(p);
}

static const struct shim_sup_driver_ops OPS = {
	.name = "process",
	.attach = attach,
	.start = start,
	.alive = alive,
	.stop = stop,
	.cancel = cancel,
	.close = close_process,
};

int shim_process_driver(const struct shim_process_opts *o, struct shim_sup_driver *ret,
			struct aqe_err *e)
{
	struct process *p = calloc(1, sizeof(*p));

	if (!p)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for a driver");
	p->o = *o;
	p->pidfd = -1;
	p->grace = (struct shim_loop_timer){ .fn = on_grace, .arg = p };
	ret->ops = &OPS;
	ret->self = p;
	return AQE_OK;
}
