/* SPDX-License-Identifier: MIT */
#include "shim/aqe/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/clock.h"

#define MS_NS 1000000

/* A path that is too long for a socket's address, by way of its folder; *ret_dir stays open for as
 * long as the address is used. */
static int fill_long(const char *path, struct sockaddr_un *ret, int *ret_dir, struct aqe_err *e)
{
	const char *slash = strrchr(path, '/');
	const size_t n = slash ? (size_t)(slash - path) : 0;
	char folder[PATH_MAX];
	int len;

	if (n == 0 || n >= sizeof(folder) || slash[1] == '\0')
		return aqe_err_set(e, AQE_E_LIMIT, 0, "'%.120s': no path of a socket", path);
	memcpy(folder, path, n);
	folder[n] = '\0';
	*ret_dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*ret_dir < 0)
		return aqe_err_set(e, errno == ENOENT ? AQE_E_ABSENT : AQE_E_SYS, errno,
				   "open '%s'", folder);
	len = snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d%s", *ret_dir, slash);
	if (len < 0 || (size_t)len >= sizeof(ret->sun_path))
		return aqe_err_set(e, AQE_E_LIMIT, 0,
				   "'%.120s': the last part, a socket's name, is too long", path);
	return AQE_OK;
}

static int fill_address(const char *path, struct sockaddr_un *ret, int *ret_dir, struct aqe_err *e)
{
	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	if (!*path)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "a socket's path is empty");
	if (strlen(path) >= sizeof(ret->sun_path))
		return fill_long(path, ret, ret_dir, e);
	memcpy(ret->sun_path, path, strlen(path));
	return AQE_OK;
}

static int new_socket(int *ret_fd, struct aqe_err *e)
{
	*ret_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return *ret_fd < 0 ? aqe_err_set(e, AQE_E_SYS, errno, "socket") : AQE_OK;
}

static int dial(int fd, const char *path, struct aqe_err *e)
{
	AQE_AUTO_FD int dir = -1;
	struct sockaddr_un sa;
	int rc = fill_address(path, &sa, &dir, e);

	if (rc)
		return rc;
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
		return aqe_err_set(e,
				   errno == ENOENT || errno == ECONNREFUSED ? AQE_E_ABSENT
									    : AQE_E_SYS,
				   errno, "connect '%s'", path);
	return AQE_OK;
}

/* Makes room at `path`: only a dead socket is taken away. */
static int clear_path(const char *path, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	struct aqe_err why = AQE_ERR_INIT;
	struct stat st;
	int rc;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? AQE_OK
				       : aqe_err_set(e, AQE_E_SYS, errno, "stat '%s'", path);
	if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return aqe_err_set(e, AQE_E_UNTRUSTED, 0, "'%s' is there and is no socket of ours",
				   path);
	rc = new_socket(&fd, e);
	if (rc)
		return rc;
	if (dial(fd, path, &why) != AQE_E_ABSENT)
		return aqe_err_set(e, AQE_E_REFUSED, 0, "'%s' is in use", path);
	if (unlink(path) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "remove '%s'", path);
	return AQE_OK;
}

int shim_unix_listen(const char *path, int backlog, int *ret_fd, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1, dir = -1;
	struct sockaddr_un sa;
	mode_t mask;
	int rc = fill_address(path, &sa, &dir, e);

	if (!rc)
		rc = clear_path(path, e);
	if (!rc)
		rc = new_socket(&fd, e);
	if (rc)
		return rc;
	mask = umask(0177); /* never open to others, not even for a moment */
	rc = bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ? errno : 0;
	(void)umask(mask);
	if (rc)
		return aqe_err_set(e, AQE_E_SYS, rc, "bind '%s'", path);
	if (listen(fd, backlog) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "listen '%s'", path);
	*ret_fd = AQE_TAKE_FD(fd);
	return AQE_OK;
}

bool shim_unix_peer_ok(int fd)
{
	struct ucred peer = { .pid = 0 };
	socklen_t n = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || n != sizeof(peer))
		return false;
	return peer.uid == geteuid() || peer.uid == 0;
}

/* ---- asking ---- */

static int64_t now_ms(void)
{
	return AQE_CLOCK_SYSTEM.mono_ns(AQE_CLOCK_SYSTEM.self) / MS_NS;
}

/* Waits until the descriptor is ready; AQE_E_TIMEOUT at the deadline. */
static int wait_for(int fd, short events, int64_t deadline, struct aqe_err *e)
{
	struct pollfd p = { .fd = fd, .events = events };
	const int64_t left = deadline - now_ms();
	int n = left > 0 ? poll(&p, 1, (int)left) : 0;

	if (n < 0 && errno != EINTR)
		return aqe_err_set(e, AQE_E_SYS, errno, "poll");
	return n == 0 ? aqe_err_set(e, AQE_E_TIMEOUT, 0, "no answer in time") : AQE_OK;
}

static int send_line(int fd, const char *line, int64_t deadline, struct aqe_err *e)
{
	const size_t n = strlen(line);
	size_t at = 0;

	while (at < n) {
		const ssize_t sent = send(fd, line + at, n - at, MSG_NOSIGNAL);
		int rc = AQE_OK;

		if (sent < 0 && errno == EAGAIN)
			rc = wait_for(fd, POLLOUT, deadline, e);
		else if (sent < 0 && errno != EINTR)
			return aqe_err_set(e, AQE_E_SYS, errno, "send");
		if (rc)
			return rc;
		at += sent > 0 ? (size_t)sent : 0;
	}
	return AQE_OK;
}

static int read_line(int fd, int64_t deadline, struct aqe_buf *ret, struct aqe_err *e)
{
	for (;;) {
		char chunk[4096];
		const ssize_t n = recv(fd, chunk, sizeof(chunk), 0);
		const char *end = n > 0 ? memchr(chunk, '\n', (size_t)n) : NULL;
		int rc = AQE_OK;

		if (n < 0 && errno == EAGAIN)
			rc = wait_for(fd, POLLIN, deadline, e);
		else if (n < 0 && errno != EINTR)
			return aqe_err_set(e, AQE_E_SYS, errno, "receive");
		else if (n == 0)
			return aqe_err_set(e, AQE_E_ABSENT, 0, "closed without an answer");
		else if (n > 0)
			(void)aqe_buf_add(ret, chunk, end ? (size_t)(end - chunk) : (size_t)n);
		if (!rc)
			rc = aqe_buf_ok(ret, e);
		if (rc || end)
			return rc;
	}
}

int shim_unix_ask(const char *path, const char *line, int timeout_ms, struct aqe_buf *ret,
		  struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	const int64_t deadline = now_ms() + timeout_ms;
	int rc = new_socket(&fd, e);

	if (!rc)
		rc = dial(fd, path, e);
	if (!rc && !shim_unix_peer_ok(fd))
		rc = aqe_err_set(e, AQE_E_UNTRUSTED, 0, "'%s' belongs to another user", path);
	if (!rc)
		rc = send_line(fd, line, deadline, e);
	if (!rc)
		rc = read_line(fd, deadline, ret, e);
	return rc && !strstr(e->text, path) ? aqe_err_wrap(e, "'%s'", path) : rc;
}
