/* SPDX-License-Identifier: MIT */
/* aqe policy serve: the protocol of policy_rpc.h on a unix socket. One thread, poll(2). */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/aqe/policy_audit.h"
#include "shim/aqe/policy_cmd.h"
#include "shim/aqe/policy_rpc.h"
#include "shim/aqe/unix_socket.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/exit.h"

#define CLIENTS_MAX 256
#define OUT_MAX     ((size_t)4 << 20) /* answers waiting for one client */
#define BACKLOG     128
#define SAVE_MS     10000
#define READ_CHUNK  ((size_t)4 << 10)

static const struct aqe_cli_opt OPTS[] = {
	{ "state", 0, "FILE",
	  "keep the rate limits' state in this file: read at the start, written every 10 s and at "
	  "the end",
	  SHIM_POLICY_STATE },
	{ "no-audit", 0, NULL, "write no audit rows for 'record'", SHIM_POLICY_NO_AUDIT },
	SHIM_POLICY_OPT_FILE,
	{ NULL, 0, NULL, NULL, 0 },
};
static const struct aqe_cli_cmd CMD = {
	.name = "aqe policy serve",
	.synopsis = "[OPTION...] SOCKET",
	.about =
		"Answers programs of this user (and root) on a unix socket that it makes with mode "
		"0600: JSON objects, one a line, with \"op\" check, record, peek, reset, policy or "
		"reload. SIGHUP reads the policy files anew; a policy that does not load leaves "
		"the "
		"old one in force. SIGTERM ends it.\n"
		"Exit status: 0 ended by a signal, 2 usage, 4 it could not start.",
	.opts = OPTS,
};

struct client {
	int fd; /* -1: free */
	struct aqe_buf in, out;
	size_t sent;  /* bytes of `out` already written */
	bool closing; /* nothing more is read; gone when `out` is written */
};

struct server {
	const struct shim_policy_args *args;
	struct shim_rpc rpc;
	struct netpol_live live;
	struct shim_policy_audit audit;
	struct client *clients; /* CLIENTS_MAX */
	int listen_fd, signal_fd, state_dir;
	const char *state_name;
	int64_t saved_ns;
	bool ended;
};

/* ---- policy and state ---- */

static int load_policy(void *self, struct netpol_policy **ret, struct aqe_err *e)
{
	return shim_policy_load(self, ret, e);
}

static void reload(struct server *s)
{
	struct aqe_err e = AQE_ERR_INIT;
	bool changed = false;

	if (shim_rpc_reload(&s->rpc, &changed, &e))
		(void)fprintf(stderr, "%s: not reloaded: %s\n", CMD.name, e.text);
	else
		(void)fprintf(stderr, "%s: policy %s%s\n", CMD.name, s->live.now->digest,
			      changed ? "" : " (unchanged)");
}

static void save_state(struct server *s)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct netpol_when now;

	s->saved_ns = netpol_boottime_ns();
	if (s->state_dir < 0)
		return;
	if (netpol_when_now(&now, &e) ||
	    netpol_limiters_save(s->rpc.limiters, s->state_dir, s->state_name, &now, &e))
		(void)fprintf(stderr, "%s: state not saved: %s\n", CMD.name, e.text);
}

/* Splits --state FILE into its folder, opened, and a name. */
static int open_state(struct server *s, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf dir = AQE_BUF_INIT(4096);
	const char *path = s->args->state, *slash;
	struct netpol_when now;
	int rc;

	if (!path)
		return AQE_OK;
	slash = strrchr(path, '/');
	s->state_name = slash ? slash + 1 : path;
	if (slash && slash != path)
		(void)aqe_buf_add(&dir, path, (size_t)(slash - path));
	else
		(void)aqe_buf_puts(&dir, slash ? "/" : ".");
	if (!*s->state_name)
		return aqe_err_set(e, AQE_E_USAGE, 0, "--state: wanted a file");
	rc = aqe_fs_open_dir(aqe_buf_str(&dir), &s->state_dir, e);
	if (!rc)
		rc = netpol_when_now(&now, e);
	if (rc)
		return rc;
	rc = netpol_limiters_load(s->rpc.limiters, s->state_dir, s->state_name, &now, e);
	if (rc == AQE_E_MALFORMED) {
		(void)fprintf(stderr, "%s: %s; agents begin with empty buckets\n", CMD.name,
			      e->text);
		return AQE_OK;
	}
	return rc;
}

/* ---- clients ---- */

static void drop(struct client *c)
{
	if (c->fd >= 0)
		(void)close(c->fd);
	aqe_buf_done(&c->in);
	aqe_buf_done(&c->out);
	c->fd = -1;
}

static struct client *free_client(struct server *s)
{
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		if (s->clients[i].fd < 0)
			return &s->clients[i];
	}
	return NULL;
}

static void accept_client(struct server *s)
{
	static const char full[] =
		"{\"version\":1,\"ok\":false,\"code\":\"limit\",\"error\":\"too many clients\"}\n";
	static const char foreign[] =
		"{\"version\":1,\"ok\":false,\"code\":\"refused\",\"error\":\"not this user\"}\n";
	/* cppcheck-suppress nullPointer; accept4(2) takes NULL for both */
	AQE_AUTO_FD int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *c = free_client(s);

	if (fd < 0)
		return; /* gone already, or no descriptors: the next poll tries again */
	if (!shim_unix_peer_ok(fd)) {
		(void)send(fd, foreign, sizeof(foreign) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		return;
	}
	if (!c) {
		(void)send(fd, full, sizeof(full) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		return;
	}
	*c = (struct client){ .fd = AQE_TAKE_FD(fd),
			      .in = AQE_BUF_INIT(SHIM_RPC_LINE),
			      .out = AQE_BUF_INIT(OUT_MAX) };
}

static bool has_line(const struct client *c)
{
	return c->in.len && memchr(c->in.p, '\n', c->in.len);
}

/* Writes what can be written now; false when the client is gone. */
static bool flush(struct client *c)
{
	while (c->sent < c->out.len) {
		const ssize_t n = send(c->fd, c->out.p + c->sent, c->out.len - c->sent,
				       MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		c->sent += (size_t)n;
	}
	aqe_buf_clear(&c->out);
	c->sent = 0;
	return !c->closing || has_line(c);
}

/* Answers the whole lines in `in`, while there is room for answers. */
static void answer_lines(struct server *s, struct client *c)
{
	size_t at = 0;

	while (at < c->in.len && c->out.len < OUT_MAX / 2) {
		const char *line = c->in.p + at;
		const char *end = memchr(line, '\n', c->in.len - at);

		if (!end)
			break;
		shim_rpc_line(&s->rpc, line, (size_t)(end - line), netpol_boottime_ns(), &c->out);
		at += (size_t)(end - line) + 1;
	}
	if (at)
		memmove(c->in.p, c->in.p + at, c->in.len - at);
	c->in.len -= at;
}

static void too_long(struct client *c)
{
	(void)aqe_buf_puts(&c->out, "{\"version\":1,\"ok\":false,\"code\":\"limit\","
				    "\"error\":\"line over 65536 bytes\"}\n");
	c->closing = true;
}

/* Reads what is there; false when the client is gone. */
static bool fill(struct client *c)
{
	char chunk[READ_CHUNK];
	const size_t room = SHIM_RPC_LINE - c->in.len;
	ssize_t n = recv(c->fd, chunk, room < sizeof(chunk) ? room : sizeof(chunk), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0) {
		c->closing = true; /* what it asked before is still answered */
		return true;
	}
	return aqe_buf_add(&c->in, chunk, (size_t)n) == 0;
}

static void serve_client(struct server *s, struct client *c, short events)
{
	bool ok = true;

	if (events & (POLLIN | POLLHUP | POLLERR))
		ok = c->closing || fill(c);
	if (ok)
		answer_lines(s, c);
	if (ok && !has_line(c) && c->in.len >= SHIM_RPC_LINE && !c->closing)
		too_long(c);
	if (!ok || !flush(c))
		drop(c);
}

/* A client whose answers pile up is not read any further. */
static short wanted(const struct client *c)
{
	short events = c->sent < c->out.len ? POLLOUT : 0;

	if (!c->closing && c->out.len < OUT_MAX / 2 && c->in.len < SHIM_RPC_LINE)
		events |= POLLIN;
	return events;
}

/* ---- the loop ---- */

static void take_signal(struct server *s)
{
	struct signalfd_siginfo info;

	if (read(s->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP)
		reload(s);
	else
		s->ended = true;
}

static int wait_ms(const struct server *s)
{
	const int64_t left = SAVE_MS - (netpol_boottime_ns() - s->saved_ns) / 1000000;

	if (s->state_dir < 0)
		return -1;
	return left < 0 ? 0 : left > SAVE_MS ? SAVE_MS : (int)left;
}

static void turn(struct server *s)
{
	struct pollfd fds[CLIENTS_MAX + 2];
	nfds_t n = 2;
	size_t of[CLIENTS_MAX + 2] = { 0 };

	fds[0] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = s->listen_fd, .events = POLLIN };
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		if (s->clients[i].fd < 0)
			continue;
		of[n] = i;
		fds[n++] =
			(struct pollfd){ .fd = s->clients[i].fd, .events = wanted(&s->clients[i]) };
	}
	if (poll(fds, n, wait_ms(s)) < 0)
		return; /* EINTR */
	for (nfds_t i = 2; i < n; i++) {
		if (fds[i].revents)
			serve_client(s, &s->clients[of[i]], fds[i].revents);
	}
	if (fds[0].revents)
		take_signal(s);
	if (fds[1].revents)
		accept_client(s);
	if (wait_ms(s) == 0)
		save_state(s);
}

static int open_signals(int *ret_fd, struct aqe_err *e)
{
	sigset_t set;

	(void)sigemptyset(&set); /* cannot fail with valid arguments, as the next ones */
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "block signals");
	*ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret_fd < 0 ? aqe_err_set(e, AQE_E_SYS, errno, "signalfd") : AQE_OK;
}

static int start(struct server *s, struct aqe_err *e)
{
	bool changed = false;
	int rc = AQE_OK;

	for (size_t i = 0; i < CLIENTS_MAX; i++)
		s->clients[i].fd = -1;
	if (!s->args->no_audit)
		rc = shim_policy_audit_open(&s->audit, e);
	if (!rc)
		rc = shim_rpc_reload(&s->rpc, &changed, e);
	if (!rc)
		rc = netpol_limiters_new(SHIM_RPC_AGENTS, &s->rpc.limiters, e);
	if (!rc)
		rc = open_state(s, e);
	if (!rc)
		rc = open_signals(&s->signal_fd, e);
	if (!rc)
		rc = shim_unix_listen(s->args->operand[0], BACKLOG, &s->listen_fd, e);
	return rc;
}

static void stop(struct server *s)
{
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		drop(&s->clients[i]);
	if (s->listen_fd >= 0) {
		(void)unlink(s->args->operand[0]);
		(void)close(s->listen_fd);
	}
	if (s->signal_fd >= 0)
		(void)close(s->signal_fd);
	if (s->state_dir >= 0)
		(void)close(s->state_dir);
	shim_policy_audit_close(&s->audit);
	netpol_limiters_free(s->rpc.limiters);
	netpol_live_done(&s->live);
}

static int serve(struct shim_policy_args *args, struct client *clients, struct aqe_err *e)
{
	struct server s = { .args = args,
			    .clients = clients,
			    .live = { NULL, load_policy, args, AQE_ERR_INIT },
			    .listen_fd = -1,
			    .signal_fd = -1,
			    .state_dir = -1 };
	int rc;

	s.rpc.live = &s.live;
	if (!args->no_audit) {
		s.rpc.audit = shim_policy_audit_write;
		s.rpc.reloaded = shim_policy_audit_reload;
	}
	s.rpc.self = &s.audit;
	s.saved_ns = netpol_boottime_ns();
	rc = start(&s, e);
	while (!rc && !s.ended)
		turn(&s);
	if (!rc)
		save_state(&s);
	stop(&s);
	return rc;
}

int shim_policy_serve(int argc, char **argv)
{
	AQE_AUTO_FREE struct client *clients = calloc(CLIENTS_MAX, sizeof(*clients));
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_policy_args args;
	int status = shim_policy_args(&CMD, argc, argv, 1, 1, &args);

	if (status >= 0)
		return status;
	if (!clients)
		(void)aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory for clients");
	else if (!serve(&args, clients, &e))
		return SHIM_EXIT_OK;
	return shim_policy_fail(&CMD, SHIM_EXIT_UNDECIDED, &e);
}
