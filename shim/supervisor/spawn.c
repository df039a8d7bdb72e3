/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/supervisor/driver_process.h"

#define NOT_STARTED 127

/* Between fork and exec: async-signal-safe calls only. */
static int put(int fd, int target)
{
	if (fd < 0)
		return 0;
	if (fd == target)
		return fcntl(fd, F_SETFD, 0);
	return dup2(fd, target);
}

static void plain_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < SIGRTMIN; sig++) {
		if (sig != SIGKILL && sig != SIGSTOP)
			(void)signal(sig, SIG_DFL); /* reserved numbers fail: fine */
	}
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void child(const struct shim_spawn *o, pid_t parent, int report_fd)
{
	int sys;

	(void)setpgid(0, 0); /* the parent does the same; one of the two comes first */
	plain_signals();
	if (!o->stay) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* cannot fail with a valid signal */
		if (getppid() != parent)                /* it died before that took effect */
			_exit(NOT_STARTED);
	}
	if (put(o->in_fd, STDIN_FILENO) >= 0 && put(o->out_fd, STDOUT_FILENO) >= 0 &&
	    put(o->err_fd, STDERR_FILENO) >= 0)
		(void)execve(o->path, o->argv, o->envp); /* returns only with an error */
	sys = errno;
	(void)!write(report_fd, &sys, sizeof(sys)); /* the status says it too */
	_exit(NOT_STARTED);
}

/* The pipe closes at exec; what comes through it before is the errno of a failure. */
static int await_exec(int fd)
{
	int sys = 0;
	ssize_t n;

	do {
		n = read(fd, &sys, sizeof(sys));
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(sys) ? sys : 0;
}

/* 0, 1 and 2 may be free in a daemon: the pipe must not be what the child puts streams over. */
static int report_pipe(int fd[2])
{
	int low[2];

	if (pipe2(low, O_CLOEXEC) < 0)
		return -1;
	fd[0] = fcntl(low[0], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	fd[1] = fcntl(low[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	aqe_cleanup_fd(&low[0]);
	aqe_cleanup_fd(&low[1]);
	return fd[0] < 0 || fd[1] < 0 ? -1 : 0;
}

int shim_spawn(const struct shim_spawn *o, pid_t *ret_pid, struct aqe_err *e)
{
	int fd[2] = { -1, -1 };
	pid_t parent = getpid(), pid;
	int sys;

	if (report_pipe(fd) < 0) {
		sys = errno;
		aqe_cleanup_fd(&fd[0]);
		aqe_cleanup_fd(&fd[1]);
		return aqe_err_set(e, AQE_E_SYS, sys, "pipe");
	}
	pid = fork();
	if (pid == 0)
		child(o, parent, fd[1]);
	sys = errno;
	aqe_cleanup_fd(&fd[1]);
	if (pid < 0) {
		aqe_cleanup_fd(&fd[0]);
		return aqe_err_set(e, AQE_E_SYS, sys, "fork");
	}
	(void)setpgid(pid, pid); /* fails after exec: then the child did it */
	sys = await_exec(fd[0]);
	aqe_cleanup_fd(&fd[0]);
	if (sys) {
		(void)waitpid(pid, NULL, 0); /* it is about to end, or has */
		return aqe_err_set(e, AQE_E_SYS, sys, "run '%.300s'", o->path);
	}
	*ret_pid = pid;
	return AQE_OK;
}
