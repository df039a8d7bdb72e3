/* SPDX-License-Identifier: MIT */
#include "audit/lost.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit/store.h"
#include "shim/core/cleanup.h"
#include "shim/core/sha256.h"

#define MARK       "aqelost1"
#define FILE_BYTES 4096 /* one block, so that it is really allocated */
#define LOCK_TRIES 100
#define LOCK_PAUSE 5000000L /* ns */
#define SPARE_NAME "audit-lost."
#define SPARE_HEX  16

/* The file's beginning; only this machine reads it. */
struct record {
	char mark[8];
	uint64_t count;
	int64_t first_ns, last_ns;
	uint64_t episode;
	char why[64];
};

/* ---- where ---- */

static bool main_path(const struct audit_opts *o, char ret[PATH_MAX])
{
	int n = snprintf(ret, PATH_MAX, "%s/" AUDIT_LOST_FILE, o->dir);

	return n > 0 && n < PATH_MAX;
}

/* Several logs may share the spare folder. */
static bool spare_path(const struct audit_opts *o, char ret[PATH_MAX])
{
	char digest[AQE_DIGEST_TEXT];
	int n;

	if (!o->spare_dir)
		return false;
	aqe_sha256_text(o->dir, strlen(o->dir), digest);
	n = snprintf(ret, PATH_MAX, "%s/" SPARE_NAME "%.*s", o->spare_dir, SPARE_HEX,
		     digest + strlen("sha256:"));
	return n > 0 && n < PATH_MAX;
}

static bool path_of(const struct audit_opts *o, unsigned which, char ret[PATH_MAX])
{
	return which == 0 ? main_path(o, ret) : spare_path(o, ret);
}

static int open_counter(const char *path, int flags)
{
	struct stat st;
	int fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    st.st_nlink == 1)
		return fd;
	(void)close(fd); /* somebody else's: not used */
	errno = EPERM;
	return -1;
}

/* ---- reading and writing ---- */

static bool load(int fd, struct audit_lost *ret)
{
	struct record r;
	ssize_t n = pread(fd, &r, sizeof(r), 0);

	memset(ret, 0, sizeof(*ret));
	if (n < 0)
		return false;
	if (n == 0 || (n == (ssize_t)sizeof(r) && r.mark[0] == '\0' && r.count == 0))
		return true;
	if (n != (ssize_t)sizeof(r) || memcmp(r.mark, MARK, sizeof(r.mark)) != 0) {
		/* at least one was lost, or somebody touched the file: not silence */
		ret->count = 1;
		(void)snprintf(ret->why, sizeof(ret->why), "the counter was damaged");
		return true;
	}
	ret->count = r.count;
	ret->first_ns = r.first_ns;
	ret->last_ns = r.last_ns;
	ret->episode = r.episode;
	(void)snprintf(ret->why, sizeof(ret->why), "%.63s", r.why);
	return true;
}

static bool save(int fd, const struct audit_lost *v)
{
	struct record r;

	memset(&r, 0, sizeof(r)); /* padding is written too */
	memcpy(r.mark, MARK, sizeof(r.mark));
	r.count = v->count;
	r.first_ns = v->first_ns;
	r.last_ns = v->last_ns;
	r.episode = v->episode;
	(void)snprintf(r.why, sizeof(r.why), "%.63s", v->why);
	return pwrite(fd, &r, sizeof(r), 0) == (ssize_t)sizeof(r) && fdatasync(fd) == 0;
}

/* A new counter takes its whole block at once. */
static bool allocate(int fd)
{
	static const char ZEROS[FILE_BYTES];
	struct stat st;

	if (fstat(fd, &st) != 0)
		return false;
	if (st.st_size >= FILE_BYTES)
		return true;
	return pwrite(fd, ZEROS + st.st_size, (size_t)(FILE_BYTES - st.st_size), st.st_size) ==
		       FILE_BYTES - st.st_size &&
	       fsync(fd) == 0;
}

static bool lock(int fd)
{
	struct timespec pause = { 0, LOCK_PAUSE };

	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return true;
		(void)nanosleep(&pause, NULL); /* woken early: asked early */
	}
	return false;
}

/* Opens the counter of the log's folder; makes it when absent. */
static int open_main(const char *path)
{
	int fd = open_counter(path, O_RDWR);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	fd = open_counter(path, O_RDWR | O_CREAT);
	if (fd >= 0 && allocate(fd))
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

/* ---- counting ---- */

static bool count_in(const char *path, uint64_t n, const char *why)
{
	AQE_AUTO_FD int fd = open_counter(path, O_RDWR | O_CREAT);
	struct audit_lost v;

	/* a file that could not get its block may still take the bytes, or not: save() tells */
	if (fd < 0 || !lock(fd) || !load(fd, &v))
		return false;
	v.last_ns = audit_now_ns();
	if (v.count == 0)
		v.first_ns = v.last_ns;
	if (v.episode == 0 && getrandom(&v.episode, sizeof(v.episode), 0) != sizeof(v.episode))
		v.episode = (uint64_t)v.last_ns;
	v.count += n;
	(void)snprintf(v.why, sizeof(v.why), "%s", why);
	return save(fd, &v);
}

int audit_lost_add(const struct audit_opts *o, uint64_t n, const char *why, struct aqe_err *e)
{
	char path[PATH_MAX];
	int err = 0;

	for (unsigned i = 0; i < AUDIT_LOST_COUNTERS; i++) {
		if (!path_of(o, i, path))
			continue;
		if (count_in(path, n, why))
			return AQE_OK;
		err = err ? err : errno;
	}
	return aqe_err_set(e, AQE_E_SYS, err, "audit log: %llu lost rows cannot be counted",
			   (unsigned long long)n);
}

int audit_lost_read(const struct audit_opts *o, struct audit_lost *ret, struct aqe_err *e)
{
	struct audit_lost sum = { 0 }, v;
	char path[PATH_MAX];

	for (unsigned i = 0; i < AUDIT_LOST_COUNTERS; i++) {
		AQE_AUTO_FD int fd = -1;

		if (!path_of(o, i, path))
			continue;
		fd = open_counter(path, O_RDONLY);
		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0 || !load(fd, &v))
			return aqe_err_set(e, AQE_E_SYS, errno, "audit log: read '%s'", path);
		if (v.count == 0)
			continue;
		if (sum.count == 0 || v.first_ns < sum.first_ns)
			sum.first_ns = v.first_ns;
		if (v.last_ns >= sum.last_ns) {
			sum.last_ns = v.last_ns;
			sum.episode = v.episode;
			memcpy(sum.why, v.why, sizeof(sum.why));
		}
		sum.count += v.count;
	}
	*ret = sum;
	return AQE_OK;
}

const char *audit_lost_why(const struct aqe_err *e)
{
	if (e->code == AQE_E_TIMEOUT)
		return "locked";
	if (e->sys == ENOSPC || e->sys == EDQUOT)
		return "disk full";
	if (e->sys == EROFS)
		return "read-only";
	if (e->sys == EACCES || e->sys == EPERM)
		return "permission denied";
	return e->code == AQE_E_MALFORMED ? "corrupt" : aqe_code_name(e->code);
}

/* ---- reporting ---- */

/* A counter that was opened before is the folder's still, and says that nothing was lost. */
static bool is_zero(int fd)
{
	struct audit_lost v;
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink == 1 && load(fd, &v) && v.count == 0;
}

static void keep_open(int *io_fd, int fd)
{
	if (*io_fd >= 0)
		(void)close(*io_fd); /* only read */
	*io_fd = fd;
}

int audit_lost_report_begin(const struct audit_opts *o, int *io_main, struct audit_lost_report *ret,
			    struct aqe_err *e)
{
	char path[PATH_MAX];
	unsigned i;

	for (i = 0; i < AUDIT_LOST_COUNTERS; i++)
		ret->fd[i] = -1;
	for (i = 0; i < AUDIT_LOST_COUNTERS; i++) {
		struct audit_lost *v = &ret->lost[i];
		AQE_AUTO_FD int fd = -1;

		if ((i == 0 && is_zero(*io_main)) || !path_of(o, i, path))
			continue;
		fd = i == 0 ? open_main(path) : open_counter(path, O_RDWR);
		if (fd < 0 && i == 0) {
			(void)aqe_err_set(e, AQE_E_SYS, errno, "the counter of lost rows");
			return e ? aqe_err_wrap(e, "%s", audit_lost_why(e)) : AQE_E_SYS;
		}
		if (fd < 0 || !load(fd, v))
			continue;
		if (v->count == 0) {
			if (i == 0)
				keep_open(io_main, AQE_TAKE_FD(fd));
			continue;
		}
		if (flock(fd, LOCK_EX | LOCK_NB) == 0 && load(fd, v) && v->count > 0)
			ret->fd[i] = AQE_TAKE_FD(fd);
	}
	return AQE_OK;
}

void audit_lost_report_done(struct audit_lost_report *r, bool stored)
{
	static const struct audit_lost NOTHING = { 0 };

	for (unsigned i = 0; i < AUDIT_LOST_COUNTERS; i++) {
		if (r->fd[i] < 0)
			continue;
		/* if this fails the gap record's episode keeps it from being reported twice */
		if (stored)
			(void)save(r->fd[i], &NOTHING);
		(void)close(r->fd[i]);
		r->fd[i] = -1;
	}
}
