/* SPDX-License-Identifier: MIT */
#include "shim/supervisor/driver_command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/core/cleanup.h"

#define AUTOPSIES_MAX 25
#define AUTOPSY_MS    200

/* A process seen through its pidfd. */
struct seen {
	pid_t pid; /* 0: none */
	int fd;
};

struct command {
	struct shim_command_opts o;
	struct shim_sup_sink sink;
	struct seen call, instance;
	int err_fd; /* the call's standard error; -1 when closed */
	char text[SHIM_COMMAND_TEXT_MAX + 1];
	size_t text_len;
	enum shim_command_verb verb;
	uint64_t token; /* of the call that is out; 0 = none, or cancelled */
	/* the call that waits for a killed one to be gone; token 0 = none */
	enum shim_command_verb next_verb;
	uint64_t next_token;
	uint64_t instance_token;
	/* An instance that is no child of ours has ended: alive() is asked how, for as long as the
	 * engine has not noticed it itself. */
	bool autopsy;
	unsigned autopsies;
	struct shim_loop_timer again;
	bool watched; /* the first alive() found the instance of an earlier supervisor */
};

/* ---- the instance ---- */

static void unsee(struct command *c, struct seen *s)
{
	shim_loop_unwatch(c->o.loop, s->fd);
	aqe_cleanup_fd(&s->fd);
	s->fd = -1;
	s->pid = 0;
}

static int see(struct command *c, struct seen *s, pid_t pid, shim_loop_fd_fn *fn, struct aqe_err *e)
{
	int rc;

	s->fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (s->fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "pidfd_open");
	s->pid = pid;
	rc = shim_loop_watch(c->o.loop, s->fd, EPOLLIN, fn, c, e);
	if (rc < 0)
		unsee(c, s);
	return rc;
}

static bool has_ended(const struct seen *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	return poll(&p, 1, 0) != 0;
}

static void ask_how(void *arg);

static void on_instance(void *arg, int fd, uint32_t events)
{
	struct command *c = arg;
	int status = -1;
	uint64_t token = c->instance_token;
	bool ok;

	(void)fd;
	(void)events;
	if (waitpid(c->instance.pid, &status, 0) != c->instance.pid)
		status = -1;
	unsee(c, &c->instance);
	if (status < 0) {
		c->autopsies = 0;
		ask_how(c);
		return;
	}
	ok = c->o.ended ? c->o.ended(c->o.arg, status) : status == 0;
	c->sink.tell(c->sink.arg, ok ? SHIM_SUP_EXITED_OK : SHIM_SUP_EXITED_BAD, token);
}

/* An instance whose pid is unknown, or that has gone already, is found out by alive(). */
static void watch_instance(struct command *c, uint64_t token)
{
	pid_t pid = 0;

	c->watched = true;
	c->instance_token = token;
	shim_loop_disarm(c->o.loop, &c->again);
	if (c->instance.pid > 0)
		unsee(c, &c->instance);
	if (c->o.instance && c->o.instance(c->o.arg, &pid) == 0 && pid > 0)
		(void)!see(c, &c->instance, pid, on_instance, NULL); /* see above */
}

/* ---- calls ---- */

static enum shim_sup_event answer_of(enum shim_command_verb verb, int status)
{
	int code = status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;

	switch (verb) {
	case SHIM_COMMAND_START:
		return code == SHIM_COMMAND_OK        ? SHIM_SUP_STARTED
		       : code == SHIM_COMMAND_REFUSED ? SHIM_SUP_START_REFUSED
						      : SHIM_SUP_START_FAILED;
	case SHIM_COMMAND_ALIVE:
		return code == SHIM_COMMAND_OK       ? SHIM_SUP_YES
		       : code == SHIM_COMMAND_FAILED ? SHIM_SUP_NO
		       : code == SHIM_COMMAND_DONE   ? SHIM_SUP_DONE
						     : SHIM_SUP_PROBE_FAILED;
	case SHIM_COMMAND_STOP:
	case SHIM_COMMAND_VERBS:
		break;
	}
	return code == SHIM_COMMAND_OK ? SHIM_SUP_STOP_OK : SHIM_SUP_STOP_FAILED;
}

static void close_stderr(struct command *c)
{
	shim_loop_unwatch(c->o.loop, c->err_fd);
	aqe_cleanup_fd(&c->err_fd);
	c->err_fd = -1;
}

/* Takes what is there; the rest of a long text is read and dropped. */
static void on_stderr(void *arg, int fd, uint32_t events)
{
	struct command *c = arg;
	char data[1024];
	ssize_t n;

	(void)events;
	while ((n = read(fd, data, sizeof(data))) > 0) {
		size_t room = SHIM_COMMAND_TEXT_MAX - c->text_len;
		size_t take = (size_t)n < room ? (size_t)n : room;

		memcpy(c->text + c->text_len, data, take);
		c->text_len += take;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		close_stderr(c);
}

static void run_next(struct command *c);
static void hear_how(struct command *c, enum shim_sup_event answer);

static void on_call(void *arg, int fd, uint32_t events)
{
	struct command *c = arg;
	uint64_t token = c->token;
	enum shim_sup_event answer;
	int status = 0;

	(void)fd;
	(void)events;
	if (waitpid(c->call.pid, &status, 0) != c->call.pid)
		status = 127 << 8; /* somebody else reaped it: not a success */
	unsee(c, &c->call);
	if (c->err_fd >= 0)
		on_stderr(c, c->err_fd, 0);
	if (c->err_fd >= 0)
		close_stderr(c);
	if (token == 0) { /* cancelled, or a question of our own */
		if (c->autopsy)
			hear_how(c, answer_of(SHIM_COMMAND_ALIVE, status));
		run_next(c);
		return;
	}
	c->token = 0;
	c->text[c->text_len] = '\0';
	answer = answer_of(c->verb, status);
	if (answer == SHIM_SUP_STARTED || (answer == SHIM_SUP_YES && !c->watched))
		watch_instance(c, answer == SHIM_SUP_STARTED ? token : c->instance_token);
	else if (answer != SHIM_SUP_YES && answer != SHIM_SUP_STOP_OK && c->o.failed)
		c->o.failed(c->o.arg, c->verb, c->text);
	c->sink.tell(c->sink.arg, answer, token);
}

/* Fork without exec: a program with many libraries takes longer to load than most calls do. */
static int spawn(struct command *c, enum shim_command_verb verb, int err_fd, struct aqe_err *e)
{
	pid_t pid = fork();
	int rc;

	if (pid < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "fork");
	if (pid == 0) {
		(void)setpgid(0, 0); /* so does the parent */
		if (dup2(err_fd, STDERR_FILENO) < 0)
			_exit(SHIM_COMMAND_STATUSES);
		_exit(c->o.call(c->o.arg, verb));
	}
	(void)setpgid(pid, pid); /* one of the two comes first */
	rc = see(c, &c->call, pid, on_call, e);
	if (rc < 0) {
		(void)kill(-pid, SIGKILL);
		(void)waitpid(pid, NULL, 0); /* killed just now */
	}
	return rc;
}

static int run(struct command *c, enum shim_command_verb verb, uint64_t token, struct aqe_err *e)
{
	AQE_AUTO_FD int to_call = -1;
	int fd[2], rc;

	if (c->call.pid > 0) { /* killed, but not gone yet */
		c->next_verb = verb;
		c->next_token = token;
		return AQE_OK;
	}
	if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "pipe");
	to_call = fd[1];
	(void)fcntl(to_call, F_SETFL, 0); /* cannot fail on a pipe of ours */
	c->err_fd = fd[0];
	c->text_len = 0;
	c->verb = verb;
	rc = shim_loop_watch(c->o.loop, c->err_fd, EPOLLIN, on_stderr, c, e);
	if (rc == 0)
		rc = spawn(c, verb, to_call, e);
	if (rc < 0)
		close_stderr(c);
	else
		c->token = token;
	return rc;
}

/* A call that is out already will tell as well. */
static void ask_how(void *arg)
{
	struct command *c = arg;

	if (c->call.pid <= 0 && run(c, SHIM_COMMAND_ALIVE, 0, NULL) == 0)
		c->autopsy = true;
}

static void hear_how(struct command *c, enum shim_sup_event answer)
{
	bool ok = answer == SHIM_SUP_DONE;

	c->autopsy = false;
	if (answer == SHIM_SUP_YES || answer == SHIM_SUP_PROBE_FAILED) {
		/* then the next probe finds out */
		if (++c->autopsies < AUTOPSIES_MAX)
			shim_loop_arm(c->o.loop, &c->again, AUTOPSY_MS);
		return;
	}
	if (c->o.ended && c->o.ended(c->o.arg, -1))
		ok = true;
	c->sink.tell(c->sink.arg, ok ? SHIM_SUP_EXITED_OK : SHIM_SUP_EXITED_BAD, c->instance_token);
}

static void run_next(struct command *c)
{
	uint64_t token = c->next_token;

	c->next_token = 0;
	if (token == 0 || run(c, c->next_verb, token, NULL) == 0)
		return;
	c->sink.tell(c->sink.arg, answer_of(c->next_verb, -1), token);
}

/* ---- the port ---- */

static void attach(void *self, const struct shim_sup_sink *sink)
{
	struct command *c = self;

	c->sink = *sink;
}

static int start(void *self, uint64_t token, struct aqe_err *e)
{
	return run(self, SHIM_COMMAND_START, token, e);
}

static int alive(void *self, uint64_t token, struct aqe_err *e)
{
	struct command *c = self;

	if (!c->watched && c->instance_token == 0)
		c->instance_token = token; /* adopting */
	if (c->instance.pid > 0 && !has_ended(&c->instance)) {
		c->sink.tell(c->sink.arg, SHIM_SUP_YES, token);
		return AQE_OK;
	}
	return run(c, SHIM_COMMAND_ALIVE, token, e);
}

static int stop(void *self, uint64_t token, struct aqe_err *e)
{
	return run(self, SHIM_COMMAND_STOP, token, e);
}

/* SIGKILL does not fail, but a process in the kernel's hands may take its time: it is reaped when
 * it ends. */
static void cancel(void *self, uint64_t token)
{
	struct command *c = self;

	if (c->next_token == token)
		c->next_token = 0;
	if (c->autopsy)
		return; /* our own question, not that call */
	if (c->token != token || c->call.pid <= 0)
		return;
	c->token = 0;
	(void)kill(-c->call.pid, SIGKILL);
}

static void close_command(void *self)
{
	struct command *c = self;

	if (c->call.pid > 0)
		unsee(c, &c->call);
	if (c->instance.pid > 0)
		unsee(c, &c->instance);
	if (c->err_fd >= 0)
		close_stderr(c);
	shim_loop_disarm(c->o.loop, &c->again);
	free(c);
}

static const struct shim_sup_driver_ops OPS = {
	.name = "command",
	.attach = attach,
	.start = start,
	.alive = alive,
	.stop = stop,
	.cancel = cancel,
	.close = close_command,
};

int shim_command_driver(const struct shim_command_opts *o, struct shim_sup_driver *ret,
			struct aqe_err *e)
{
	struct command *c = calloc(1, sizeof(*c));

	if (!c)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for a driver");
	c->o = *o;
	c->call.fd = c->instance.fd = c->err_fd = -1;
	c->again = (struct shim_loop_timer){ .fn = ask_how, .arg = c };
	ret->ops = &OPS;
	ret->self = c;
	return AQE_OK;
}
