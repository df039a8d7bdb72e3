/* SPDX-License-Identifier: MIT */
/* Answers of an engine's REST API, as the drivers of sandboxes and of the supervisor read them. The
 * first byte picks the engine and what is asked; then come raw answers with a line "--" between
 * them, one for each request; a request without one finds the connection closed. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/sandbox/engine.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const char NEXT[] = "\n--\n";
static char top[] = "/tmp/aqe-fuzz-rest-XXXXXX";
static int top_fd = -1, listener = -1;
/* What is left to be answered. Set before a request is made, read after it has come. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *text;
static size_t left;

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void remove_top(void)
{
	(void)unlinkat(top_fd, "s", 0);
	(void)unlinkat(top_fd, "pid", 0);
	(void)unlinkat(top_fd, SHIM_CONTAINER_FILE, 0);
	(void)rmdir(top);
}

/* The whole request: nothing unread may reset the connection. */
static bool take_request(int fd)
{
	static char head[65536]; /* one thread */
	size_t n = 0, want = 0;
	const char *end, *length;
	ssize_t got;

	while (n + 1 < sizeof(head) && (got = read(fd, head + n, sizeof(head) - 1 - n)) > 0) {
		n += (size_t)got;
		head[n] = '\0';
		end = strstr(head, "\r\n\r\n");
		length = strstr(head, "Content-Length: ");
		if (end)
			want = (size_t)(end + 4 - head) +
			       (length && length < end ? strtoul(length + 16, NULL, 10) : 0);
		if (end && n >= want)
			return true;
	}
	return false;
}

static void answer(int fd)
{
	const char *p, *end;
	size_t n;

	(void)pthread_mutex_lock(&lock);
	p = text;
	end = memmem(text, left, NEXT, strlen(NEXT));
	n = end ? (size_t)(end - text) : left;
	text += end ? n + strlen(NEXT) : n;
	left -= end ? n + strlen(NEXT) : n;
	while (n > 0) {
		const ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);

		if (sent <= 0)
			break;
		p += sent;
		n -= (size_t)sent;
	}
	(void)pthread_mutex_unlock(&lock);
}

static void *serve(void *arg)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		if (take_request(fd))
			answer(fd);
		(void)close(fd);
	}
	return arg;
}

static void begin(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	char url[sizeof(sa.sun_path) + 8];
	pthread_t thread;

	if (top_fd >= 0)
		return;
	must(mkdtemp(top) != NULL);
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(top_fd >= 0 && atexit(remove_top) == 0);
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/s", top);
	(void)snprintf(url, sizeof(url), "unix://%s", sa.sun_path);
	must(setenv("CONTAINER_HOST", url, 1) == 0 && setenv("DOCKER_HOST", url, 1) == 0);
	must(setenv("AQE_ENGINE_TIMEOUT", "5", 1) == 0);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(bind(listener, (const struct sockaddr *)&sa, sizeof(sa)) == 0 &&
	     listen(listener, 8) == 0);
	must(pthread_create(&thread, NULL, serve, NULL) == 0 && pthread_detach(thread) == 0);
}

static void check_state(const struct shim_engine_state *st, int rc)
{
	if (rc != 0)
		return;
	must(st->pid >= 0 && st->exit_code >= -1 && st->exit_code <= 255);
	must(!st->exists || aqe_is_hex(st->container, 64));
}

static int ask(const struct shim_engine_ops *engine, unsigned what, struct shim_box *b,
	       struct aqe_err *e)
{
	const char *const *names = NULL;
	struct shim_engine_state st;
	AQE_AUTO_FD int dir = -1;
	size_t n = 0;
	int rc;

	switch (what % 7) {
	case 0:
		rc = engine->prepare(b->arena, NULL, &b->plan, e);
		must(rc != 0 || aqe_is_sha256_digest(b->plan.image_id));
		return rc;
	case 1:
		return engine->create(b, e);
	case 2:
		return engine->start(b, e);
	case 3:
		rc = engine->state(b, &st, e);
		check_state(&st, rc);
		return rc;
	case 4:
		return engine->stop(b, 0, e);
	case 5:
		return engine->destroy(b, e);
	default:
		rc = engine->logs(b, &dir, &names, &n, e);
		must(rc != 0 || (dir >= 0 && n == 3 && !strchr(names[2], '/')));
		return rc;
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)64 << 20);
	struct shim_box b = SHIM_BOX_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	int rc;

	if (size == 0)
		return 0;
	begin();
	(void)pthread_mutex_lock(&lock);
	text = (const char *)data + 1;
	left = size - 1;
	(void)pthread_mutex_unlock(&lock);
	b.arena = a;
	b.fd = top_fd;
	b.name = b.plan.name = "agentic-qe-default-a";
	shim_plan_defaults(&b.plan, hard_agent_default());
	b.plan.agent_id = "a";
	b.plan.agent_type = "default";
	b.plan.image = "localhost/agent:1";
	b.plan.engine = data[0] & 0x80 ? "docker" : "podman";
	rc = ask(shim_engine_find(b.plan.engine), data[0] & 0x7f, &b, &e);
	must(rc == 0 || (rc < 0 && rc == (int)e.code && e.text[0]));
	for (const char *p = e.text; *p; p++) /* nothing steers a terminal */
		must((unsigned char)*p >= ' ' && *p != 0x7f);
	(void)pthread_mutex_lock(&lock); /* the input is not read any more */
	left = 0;
	text = "";
	(void)pthread_mutex_unlock(&lock);
	return 0;
}
