/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/sandbox/monitor_int.h"

#define READ_BYTES ((size_t)8 * 1024)
#define READS_MAX  64 /* a round: one that writes without end does not keep us from the rest */

static const char *const PIPES[SHIM_STREAMS] = { "out", "err" };

/* A full disk must not stop the container: what cannot be written is dropped, and said once. */
static void keep(struct shim_monitor *m, enum shim_stream stream, const char *p, size_t n)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_event ev = SHIM_EVENT_INIT(SHIM_EVENT_ERROR);

	if (shim_log_take(&m->log, stream, p, n, &e) == 0) {
		m->log_failed = false;
		return;
	}
	if (m->log_failed)
		return;
	m->log_failed = true;
	ev.reason = e.text;
	shim_monitor_event(m, &ev);
}

static void read_pipe(struct shim_monitor *m, enum shim_stream stream)
{
	char data[READ_BYTES];

	for (int i = 0; i < READS_MAX; i++) {
		ssize_t n = read(m->pipe_fd[stream], data, sizeof(data));

		if (n <= 0)
			return; /* EAGAIN; the end cannot come, we hold the other end too */
		keep(m, stream, data, (size_t)n);
	}
}

static void on_pipe(void *arg, int fd, uint32_t events)
{
	struct shim_monitor *m = arg;

	(void)events;
	read_pipe(m, fd == m->pipe_fd[SHIM_STDOUT] ? SHIM_STDOUT : SHIM_STDERR);
}

int shim_monitor_io_open(struct shim_monitor *m, struct aqe_err *e)
{
	int rc;

	if (!aqe_str_eq(m->box->plan.engine, "oci"))
		return 0; /* the engine keeps the log */
	rc = shim_log_open(&m->log, m->box->fd, e);
	for (int i = 0; i < SHIM_STREAMS && rc == 0; i++) {
		m->pipe_fd[i] =
			openat(m->box->fd, PIPES[i], O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
		if (m->pipe_fd[i] < 0)
			return aqe_err_set(e, AQE_E_SYS, errno, "open the pipe '%s'", PIPES[i]);
		rc = shim_loop_watch(m->loop, m->pipe_fd[i], EPOLLIN, on_pipe, m, e);
	}
	return rc;
}

void shim_monitor_io_drain(struct shim_monitor *m)
{
	for (int i = 0; i < SHIM_STREAMS; i++) {
		if (m->pipe_fd[i] >= 0)
			read_pipe(m, (enum shim_stream)i);
	}
}

void shim_monitor_io_close(struct shim_monitor *m)
{
	shim_monitor_io_drain(m);
	for (int i = 0; i < SHIM_STREAMS; i++) {
		shim_loop_unwatch(m->loop, m->pipe_fd[i]);
		aqe_cleanup_fd(&m->pipe_fd[i]);
		m->pipe_fd[i] = -1;
	}
	shim_log_close(&m->log);
}
