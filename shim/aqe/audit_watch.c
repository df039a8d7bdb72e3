/* SPDX-License-Identifier: MIT */
#include "shim/aqe/audit_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/core/cleanup.h"

#define POLL_MS   1000 /* without a word from inotify */
#define SETTLE_MS 20   /* commits this close together are read at once */

/* Identity of the database file; false when there is none now. */
static bool identify(const struct audit_opts *at, uint64_t *dev, uint64_t *ino)
{
	AQE_AUTO_FD int dir = open(at->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (dir < 0 || fstatat(dir, at->file ? at->file : AUDIT_DB_FILE, &st, 0) < 0)
		return false;
	*dev = st.st_dev;
	*ino = st.st_ino;
	return true;
}

int shim_watch_init(struct shim_watch *w, const struct audit_opts *at, struct aqe_err *e)
{
	int rc;

	*w = (struct shim_watch){ .at = *at, .notify = -1 };
	w->notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->notify >= 0 &&
	    inotify_add_watch(w->notify, at->dir, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0) {
		(void)close(w->notify); /* then the poll must do */
		w->notify = -1;
	}
	(void)identify(at, &w->dev, &w->ino);
	rc = audit_open(&w->at, &w->log, e);
	if (rc == AQE_E_ABSENT)
		(void)aqe_err_set(e, rc, 0, "there is no audit log in '%.300s'", at->dir);
	if (rc < 0)
		shim_watch_done(w);
	return rc;
}

void shim_watch_done(struct shim_watch *w)
{
	audit_close(w->log);
	w->log = NULL;
	if (w->notify >= 0)
		(void)close(w->notify); /* nothing was written to it */
	w->notify = -1;
}

static void drain(int fd)
{
	char events[4096];

	while (read(fd, events, sizeof(events)) > 0)
		;
}

/* Opens the database again when it is another file than before. */
static int follow_file(struct shim_watch *w, struct aqe_err *e)
{
	uint64_t dev, ino;
	struct audit_log *log = NULL;
	int rc;

	if (!identify(&w->at, &dev, &ino) || (dev == w->dev && ino == w->ino))
		return AQE_OK;
	rc = audit_open(&w->at, &log, e);
	if (rc == AQE_E_ABSENT)
		return AQE_OK; /* half way: the next wait will see it */
	if (rc < 0)
		return rc;
	audit_close(w->log);
	w->log = log;
	w->dev = dev;
	w->ino = ino;
	w->replaced = true;
	return AQE_OK;
}

int shim_watch_wait(struct shim_watch *w, int timeout_ms, struct aqe_err *e)
{
	struct pollfd p = { .fd = w->notify, .events = POLLIN };
	const int wait = timeout_ms < 0 || timeout_ms > POLL_MS ? POLL_MS : timeout_ms;
	int n = poll(&p, 1, wait);

	if (n < 0 && errno != EINTR)
		return aqe_err_set(e, AQE_E_SYS, errno, "wait for the log");
	if (n > 0) {
		(void)poll(NULL, 0, SETTLE_MS);
		drain(w->notify);
	}
	return follow_file(w, e);
}
