/* SPDX-License-Identifier: MIT */
#include "shim/core/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define READ_BYTES ((size_t)8 * 1024)
#define STAT_MAX   4096

enum { SLOTS = 3, PIDFD_SLOT = 0 };

/* One run. Slots 1 and 2 are standard output and error; slot 0 of `watch` is the process. */
struct run {
	const struct aqe_proc_opts *o;
	int child[SLOTS]; /* what the child gets as 0, 1, 2, never 0 to 2 itself; -1 = inherited */
	int watch[SLOTS];
	struct aqe_buf *into[SLOTS];
	int64_t deadline_ms; /* on the monotonic clock; 0 = none */
	pid_t pid;
};

static int64_t now_ms(void)
{
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail */
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void close_slot(int *fd)
{
	aqe_cleanup_fd(fd);
	*fd = -1;
}

static void run_done(struct run *r)
{
	for (int i = 0; i < SLOTS; i++) {
		close_slot(&r->child[i]);
		close_slot(&r->watch[i]);
	}
}

/* ---- descriptors ---- */

/* Every descriptor for the child is a copy above 2: then no dup2 can overwrite a later one's
 * source. */
static int copy_fd(int fd, int *ret, struct aqe_err *e)
{
	*ret = fcntl(fd, F_DUPFD_CLOEXEC, SLOTS);
	return *ret < 0 ? aqe_err_set(e, AQE_E_SYS, errno, "duplicate descriptor %d", fd) : AQE_OK;
}

static int null_fd(int slot, int *ret, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = open("/dev/null", (slot == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC);

	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open '/dev/null'");
	return copy_fd(fd, ret, e);
}

static int pipe_fd(struct run *r, int slot, struct aqe_err *e)
{
	AQE_AUTO_FD int to_child = -1;
	int fd[2];

	if (pipe2(fd, O_CLOEXEC) != 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "pipe");
	r->watch[slot] = fd[0];
	to_child = fd[1];
	if (fcntl(fd[0], F_SETFL, O_NONBLOCK) != 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "set a pipe non-blocking");
	return copy_fd(to_child, &r->child[slot], e);
}

static int prepare_slot(struct run *r, int slot, int wanted, struct aqe_err *e)
{
	if (r->into[slot])
		return pipe_fd(r, slot, e);
	if (wanted == AQE_PROC_NULL)
		return null_fd(slot, &r->child[slot], e);
	return wanted < 0 ? AQE_OK : copy_fd(wanted, &r->child[slot], e);
}

static int prepare(struct run *r, struct aqe_err *e)
{
	int rc = prepare_slot(r, 0, r->o->in_fd, e);

	if (!rc)
		rc = prepare_slot(r, 1, r->o->out_fd, e);
	if (!rc)
		rc = prepare_slot(r, 2, r->o->err_fd, e);
	return rc;
}

/* ---- starting ---- */

static int spawn(struct run *r, struct aqe_err *e)
{
	posix_spawn_file_actions_t actions;
	int err = posix_spawn_file_actions_init(&actions);

	if (err)
		return aqe_err_set(e, AQE_E_NOMEM, err, "prepare '%s'", r->o->path);
	for (int i = 0; i < SLOTS && !err; i++)
		if (r->child[i] >= 0)
			err = posix_spawn_file_actions_adddup2(&actions, r->child[i], i);
	if (!err)
		err = posix_spawn(&r->pid, r->o->path, &actions, NULL, r->o->argv, r->o->envp);
	(void)posix_spawn_file_actions_destroy(&actions); /* always 0 */
	if (err)
		return aqe_err_set(e, err == ENOMEM ? AQE_E_NOMEM : AQE_E_SYS, err, "run '%s'",
				   r->o->path);
	for (int i = 0; i < SLOTS; i++)
		close_slot(&r->child[i]);
	return AQE_OK;
}

/* ---- watching ---- */

/* Reads what is there; closes the pipe at its end. */
static int drain(struct run *r, int slot, struct aqe_err *e)
{
	char data[READ_BYTES];
	struct aqe_buf *b = r->into[slot];
	size_t room;
	ssize_t n;

	for (;;) {
		n = read(r->watch[slot], data, sizeof(data));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return AQE_OK;
		if (n < 0)
			return aqe_err_set(e, AQE_E_SYS, errno, "read from '%s'", r->o->path);
		if (n == 0) {
			close_slot(&r->watch[slot]);
			return AQE_OK;
		}
		room = b->max > b->len ? b->max - b->len : 0;
		(void)aqe_buf_add(b, data, (size_t)n < room ? (size_t)n : room);
		if (b->failed == AQE_E_NOMEM)
			return aqe_buf_ok(b, e);
	}
}

static int wait_ms(const struct run *r)
{
	int64_t left;

	if (r->deadline_ms == 0)
		return -1;
	left = r->deadline_ms - now_ms();
	return left < 0 ? 0 : left > 1000000 ? 1000000 : (int)left;
}

/* Waits for one event. Sets *ret_ended when the process has ended. */
static int watch_once(struct run *r, bool *ret_ended, struct aqe_err *e)
{
	struct pollfd p[SLOTS];
	int timeout = wait_ms(r), rc = AQE_OK, n;

	for (int i = 0; i < SLOTS; i++)
		p[i] = (struct pollfd){ .fd = r->watch[i], .events = POLLIN };
	n = poll(p, SLOTS, timeout);
	if (n < 0 && errno != EINTR)
		return aqe_err_set(e, AQE_E_SYS, errno, "poll");
	if (n == 0 && wait_ms(r) == 0)
		return aqe_err_set(e, AQE_E_TIMEOUT, 0, "'%s' did not end within %u ms", r->o->path,
				   r->o->timeout_ms);
	if (n <= 0)
		return AQE_OK;
	for (int i = 1; i < SLOTS && !rc; i++)
		if (p[i].revents)
			rc = drain(r, i, e);
	*ret_ended = p[PIDFD_SLOT].revents != 0;
	return rc;
}

/* Until the process ends. Its own children may hold the pipes open for longer: what they write
 * later is not waited for. */
static int watch(struct run *r, struct aqe_err *e)
{
	bool ended = false;
	int rc = AQE_OK;

	r->watch[PIDFD_SLOT] = (int)syscall(SYS_pidfd_open, r->pid, 0);
	if (r->watch[PIDFD_SLOT] < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "pidfd_open");
	while (!rc && !ended)
		rc = watch_once(r, &ended, e);
	for (int i = 1; i < SLOTS && !rc; i++)
		if (r->watch[i] >= 0)
			rc = drain(r, i, e);
	return rc;
}

int aqe_proc_wait(pid_t child, int *ret_status, struct aqe_err *e)
{
	int status = 0;
	pid_t pid;

	do {
		pid = waitpid(child, &status, 0);
	} while (pid < 0 && errno == EINTR);
	if (pid < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "wait for process %ld", (long)child);
	*ret_status = status;
	return AQE_OK;
}

static int reap(const struct run *r, int *ret_status, struct aqe_err *e)
{
	int rc = aqe_proc_wait(r->pid, ret_status, e);

	return rc ? aqe_err_wrap(e, "'%s'", r->o->path) : AQE_OK;
}

static int run_all(struct run *r, int *ret_status, struct aqe_err *e)
{
	int rc, dropped;

	rc = prepare(r, e);
	if (!rc)
		rc = spawn(r, e);
	if (rc)
		return rc;
	if (r->o->work.fn)
		r->o->work.fn(r->o->work.self);
	if (r->into[1] || r->into[2] || r->o->timeout_ms > 0)
		rc = watch(r, e);
	if (!rc)
		return reap(r, ret_status, e);
	(void)kill(r->pid, SIGKILL);   /* not reaped yet, so the number is still its own */
	(void)reap(r, &dropped, NULL); /* the first failure is what counts */
	return rc;
}

int aqe_proc_run(const struct aqe_proc_opts *o, int *ret_status, struct aqe_err *e)
{
	struct run r = { .o = o,
			 .child = { -1, -1, -1 },
			 .watch = { -1, -1, -1 },
			 .into = { NULL, o->out, o->err },
			 .pid = -1 };
	int rc;

	if (!o->path || o->path[0] != '/')
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "path of a program is not absolute");
	if (o->timeout_ms > 0)
		r.deadline_ms = now_ms() + o->timeout_ms;
	rc = run_all(&r, ret_status, e);
	run_done(&r);
	return rc;
}

/* ---- others ---- */

void aqe_proc_fill_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* the lowest free number is the one that is looked at; not close-on-exec, because
		 * the programs that we become or start need it as much */
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
	}
}

int aqe_proc_cloexec_from(unsigned from, struct aqe_err *e)
{
	if (syscall(SYS_close_range, from, ~0U, CLOSE_RANGE_CLOEXEC) != 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "close_range");
	return AQE_OK;
}

/* Field 22 of /proc/PID/stat. The name in parentheses may hold anything, so counting begins behind
 * the last of them, at field 3. */
static bool read_start_time(const char *stat, uint64_t *ret)
{
	const char *p = strrchr(stat, ')');
	char text[24];
	size_t n;

	for (int field = 2; p && field < 22; field++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	if (!p)
		return false;
	n = strcspn(p, " ");
	if (n >= sizeof(text))
		return false;
	memcpy(text, p, n);
	text[n] = '\0';
	return aqe_parse_u64(text, UINT64_MAX, ret);
}

int aqe_proc_start_time(pid_t pid, uint64_t *ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(STAT_MAX);
	AQE_AUTO_FD int fd = -1;
	struct aqe_err cause = AQE_ERR_INIT;
	char path[48];
	int rc;

	(void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	rc = aqe_fs_open_nolinks(path, O_RDONLY, &fd, &cause);
	if (!rc)
		rc = aqe_fs_read_fd(fd, &b, &cause);
	if (rc == AQE_E_ABSENT || (rc == AQE_E_SYS && cause.sys == ESRCH))
		return aqe_err_set(e, AQE_E_ABSENT, 0, "no process %ld", (long)pid);
	if (rc)
		return aqe_err_set(e, (enum aqe_code)rc, 0, "%s", cause.text);
	if (!read_start_time(aqe_buf_str(&b), ret))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "'%s' is not as expected", path);
	return AQE_OK;
}

int aqe_proc_beside(const char *name, char *ret, size_t size, struct aqe_err *e)
{
	ssize_t n = readlink("/proc/self/exe", ret, size - 1);
	char *slash;

	if (n < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "our own program's path");
	ret[n] = '\0';
	slash = strrchr(ret, '/');
	/* a full buffer may have been cut */
	if (!slash || (size_t)n == size - 1 || (size_t)(slash + 1 - ret) + strlen(name) >= size)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "our own program's path is too long");
	memcpy(slash + 1, name, strlen(name) + 1);
	return 0;
}
