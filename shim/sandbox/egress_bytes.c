/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/egress_bytes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "shim/aqe/unix_socket.h"
#include "shim/core/buf.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/egress_start.h"
#include "shim/record.h"

#define ANSWER_MAX ((size_t)256 << 10)
#define ANSWER_MS  300

bool shim_egress_metric(const char *text, const char *name, uint64_t *ret)
{
	size_t n = strlen(name);
	uint64_t sum = 0;
	bool any = false;

	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		size_t len = strcspn(p, "\n");
		char digits[24];
		const char *blank;
		uint64_t v;

		if (len <= n || strncmp(p, name, n) != 0 || (p[n] != '{' && p[n] != ' '))
			continue;
		blank = memrchr(p, ' ', len);
		if (!blank || (size_t)(p + len - blank) > sizeof(digits))
			continue;
		memcpy(digits, blank + 1, (size_t)(p + len - blank) - 1);
		digits[p + len - blank - 1] = '\0';
		if (!aqe_parse_u64(digits, UINT64_MAX, &v))
			continue;
		sum += v; /* wraps only for a service that lies about its own container */
		any = true;
	}
	if (any)
		*ret = sum;
	return any;
}

/* ---- asking ---- */

static int64_t now_ms(void)
{
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail */
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* By the folder's descriptor: the whole path may be longer than a socket's name can be. */
static int dial(int dirfd)
{
	AQE_AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	(void)snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d/%s", dirfd,
		       SHIM_EGRESS_METRICS);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ||
	    !shim_unix_peer_ok(fd))
		return -1;
	return AQE_TAKE_FD(fd);
}

static bool ask(int dirfd, struct aqe_buf *answer)
{
	static const char REQUEST[] = "GET /metrics HTTP/1.0\r\n\r\n";
	const int64_t end = now_ms() + ANSWER_MS;
	AQE_AUTO_FD int fd = dial(dirfd);
	char data[8192];
	ssize_t n = 1;

	if (fd < 0 || send(fd, REQUEST, strlen(REQUEST), MSG_NOSIGNAL) != (ssize_t)strlen(REQUEST))
		return false;
	while (n > 0) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t left = end - now_ms();

		if (left <= 0 || poll(&p, 1, (int)left) <= 0)
			return false;
		n = read(fd, data, sizeof(data));
		if (n > 0 && aqe_buf_add(answer, data, (size_t)n) < 0)
			return false;
	}
	return n == 0;
}

/* ---- finding it ---- */

static bool ask_in(int state_fd, const char *name, uint64_t *ret_in, uint64_t *ret_out)
{
	AQE_AUTO_BUF struct aqe_buf answer = AQE_BUF_INIT(ANSWER_MAX);
	AQE_AUTO_FD int fd = -1;
	uint64_t in = 0, out = 0;

	if (aqe_fs_open_beneath(state_fd, name, O_RDONLY | O_DIRECTORY, 0, &fd, NULL) < 0 ||
	    !ask(fd, &answer) ||
	    !shim_egress_metric(aqe_buf_str(&answer), "aqe_egress_bytes_down_total", &in) ||
	    !shim_egress_metric(aqe_buf_str(&answer), "aqe_egress_bytes_up_total", &out))
		return false;
	*ret_in = in;
	*ret_out = out;
	return true;
}

/* A container's folder is its id, "@" and what tells runtimes' roots apart. */
bool shim_egress_bytes(struct aqe_arena *a, const char *id, uint64_t *ret_in, uint64_t *ret_out)
{
	struct shim_state s = SHIM_STATE_INIT;
	size_t n = strlen(id);
	const struct dirent *ent;
	bool found = false;
	DIR *dir;
	int fd;

	if (shim_state_open(a, environ, false, &s, NULL) < 0)
		return false;
	fd = openat(s.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		aqe_cleanup_fd(&fd);
	/* cppcheck-suppress readdirCalled; one thread, one stream */
	while (dir && !found && (ent = readdir(dir)) != NULL)
		found = strncmp(ent->d_name, id, n) == 0 && ent->d_name[n] == '@' &&
			ask_in(s.fd, ent->d_name, ret_in, ret_out);
	if (dir)
		(void)closedir(dir); /* only read from */
	shim_state_done(&s);
	return found;
}
