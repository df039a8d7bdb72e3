/* SPDX-License-Identifier: MIT */
#include "audit/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit/chain.h"
#include "audit/schema.h"
#include "shim/core/cleanup.h"
#include "shim/core/sha256.h"

#define MARK        "aqe-spool1"
#define MARK_SIZE   16
#define SPOOL_FIRST 48 /* mark, round */
#define RECORD_HEAD 40 /* length, zeros, hash */
#define STEP        ((size_t)8 << 10)
#define PAUSE_MAX   4000000L /* ns between two looks at the lock */
/* Where SQLite's file header has its mark and the application's id. */
#define DB_MARK    "SQLite format 3"
#define DB_HEADER  100
#define DB_APP_POS 68

static void put_be32(uint8_t *p, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static uint32_t get_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static size_t padded(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* ---- the files ---- */

static bool is_ours(int fd, mode_t type)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_uid == geteuid() &&
	       !(st.st_mode & 077) && (type == S_IFDIR || st.st_nlink == 1);
}

static int open_folder(const struct audit_opts *o)
{
	int fd = open(o->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || is_ours(fd, S_IFDIR))
		return fd;
	(void)close(fd); /* only opened */
	return -1;
}

static bool is_spool(int fd)
{
	struct stat st;

	return is_ours(fd, S_IFREG) && fstat(fd, &st) == 0 && st.st_size == (off_t)AUDIT_SPOOL_SIZE;
}

static int open_spool(int dir, int flags)
{
	int fd = openat(dir, AUDIT_SPOOL_FILE, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (is_spool(fd))
		return fd;
	(void)close(fd); /* only opened */
	errno = EPERM;
	return -1;
}

/* The first bytes of an empty round: mark, name, and the length of no record. */
static bool new_round(uint8_t p[SPOOL_FIRST + 8])
{
	memset(p, 0, SPOOL_FIRST + 8);
	memcpy(p, MARK, sizeof(MARK));
	return getrandom(p + MARK_SIZE, SPOOL_FIRST - MARK_SIZE, 0) == SPOOL_FIRST - MARK_SIZE;
}

/* All blocks are written before the file gets its name. One that cannot be made is done without. */
static int make_spool(int dir)
{
	uint8_t *zeros = calloc(1, AUDIT_SPOOL_SIZE);
	char tmp[32];
	int fd;
	bool ok;

	(void)snprintf(tmp, sizeof(tmp), AUDIT_SPOOL_FILE ".%d", (int)getpid());
	(void)unlinkat(dir, tmp, 0); /* of a process that was killed here */
	fd = openat(dir, tmp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	ok = zeros && fd >= 0 && new_round(zeros) &&
	     pwrite(fd, zeros, AUDIT_SPOOL_SIZE, 0) == (ssize_t)AUDIT_SPOOL_SIZE &&
	     fsync(fd) == 0 && linkat(dir, tmp, dir, AUDIT_SPOOL_FILE, 0) == 0;
	free(zeros);
	if (fd >= 0)
		(void)unlinkat(dir, tmp, 0); /* an old one is overwritten by the next */
	if (ok && fsync(dir) == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);                  /* what was written is gone with its name */
	return ok ? -1 : open_spool(dir, O_RDWR); /* somebody else was faster */
}

/* Rows are left beside a database, not in its place: what is no database of ours decides itself
 * what is wrong. */
static bool has_database(int dir)
{
	AQE_AUTO_FD int fd =
		openat(dir, AUDIT_DB_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	uint8_t head[DB_HEADER];

	return fd >= 0 && is_ours(fd, S_IFREG) &&
	       pread(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
	       memcmp(head, DB_MARK, sizeof(DB_MARK)) == 0 &&
	       get_be32(head + DB_APP_POS) == AUDIT_APPLICATION_ID;
}

/* Asks again after sleeps that double up to a few milliseconds, as for SQLite's locks. */
static int lock(int fd, const struct audit_opts *o, struct aqe_err *e)
{
	const unsigned ms = o->deadline_ms ? o->deadline_ms : AUDIT_DEADLINE_MS;
	struct timespec pause = { 0, 100000 }, now, start;

	(void)clock_gettime(CLOCK_MONOTONIC, &start); /* cannot fail with a valid clock */
	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return aqe_err_set(e, AQE_E_SYS, errno, "lock the spool");
		(void)clock_gettime(CLOCK_MONOTONIC, &now); /* as above */
		if ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 >=
		    (long)ms)
			return aqe_err_set(e, AQE_E_TIMEOUT, 0,
					   "spool '%.200s': locked by another process for %u ms",
					   o->dir, ms);
		(void)nanosleep(&pause, NULL); /* woken early: asked early */
		if (pause.tv_nsec < PAUSE_MAX)
			pause.tv_nsec *= 2;
	}
	return AQE_OK;
}

/* ---- records ---- */

/* True when the first `n` bytes of the file are there. */
static bool need(struct audit_spool *s, size_t n)
{
	while (s->n < n) {
		size_t want = n - s->n > STEP ? n - s->n : STEP;
		ssize_t got;

		if (want > AUDIT_SPOOL_SIZE - s->n)
			want = AUDIT_SPOOL_SIZE - s->n;
		got = want ? pread(s->fd, s->p + s->n, want, (off_t)s->n) : 0;
		if (got <= 0)
			return false;
		s->n += (size_t)got;
	}
	return true;
}

static void chain(const uint8_t prev[32], const uint8_t *p, size_t n, uint8_t ret[32])
{
	struct aqe_sha256_ctx h;

	aqe_sha256_init(&h);
	aqe_sha256_add(&h, prev, 32);
	aqe_sha256_add(&h, p, n);
	aqe_sha256_end(&h, ret);
}

static bool first(struct audit_spool *s)
{
	if (!need(s, SPOOL_FIRST) || memcmp(s->p, MARK, sizeof(MARK)) != 0)
		return false;
	memcpy(s->hash, s->p + MARK_SIZE, 32);
	s->at = SPOOL_FIRST;
	return true;
}

/* The next record's encoding; false at the end. */
static bool next_record(struct audit_spool *s, const uint8_t **ret, size_t *ret_n)
{
	uint8_t hash[32];
	size_t n, end;

	if (s->at + RECORD_HEAD > AUDIT_SPOOL_SIZE || !need(s, s->at + RECORD_HEAD))
		return false;
	n = get_be32(s->p + s->at);
	end = s->at + RECORD_HEAD + n;
	if (n == 0 || n > AUDIT_ENCODING_MAX || end > AUDIT_SPOOL_SIZE || !need(s, end))
		return false;
	chain(s->hash, s->p + s->at + RECORD_HEAD, n, hash);
	if (memcmp(hash, s->p + s->at + 8, 32) != 0)
		return false;
	*ret = s->p + s->at + RECORD_HEAD;
	*ret_n = n;
	memcpy(s->hash, hash, 32);
	s->at += padded(RECORD_HEAD + n);
	return true;
}

/* Puts a record at s->at; false when there is no room for it and the end behind it. */
static bool put_record(struct audit_spool *s, const struct audit_row *row)
{
	static const uint8_t END[8] = { 0 };
	uint8_t *head = s->p + s->at;
	size_t room = AUDIT_SPOOL_SIZE - s->at, n;

	if (room < RECORD_HEAD + sizeof(END))
		return false;
	n = audit_encode(row, head + RECORD_HEAD, room - RECORD_HEAD - sizeof(END));
	if (n == 0 || padded(RECORD_HEAD + n) + sizeof(END) > room)
		return false;
	chain(s->hash, head + RECORD_HEAD, n, head + 8);
	memcpy(s->hash, head + 8, 32);
	put_be32(head, (uint32_t)n);
	memset(head + 4, 0, 4);
	memset(head + RECORD_HEAD + n, 0, padded(n) - n + sizeof(END));
	s->at += padded(RECORD_HEAD + n);
	return true;
}

/* ---- adding ---- */

static int store(const struct audit_spool *s, size_t from, const struct audit_opts *o,
		 struct aqe_err *e)
{
	static const uint8_t NONE[8] = { 0 };
	const size_t n = s->at + sizeof(NONE) - from;
	ssize_t done = pwrite(s->fd, s->p + from, n, (off_t)from);
	int err = errno;

	if (done == (ssize_t)n && (o->flags & AUDIT_NO_FLUSH || fdatasync(s->fd) == 0))
		return AQE_OK;
	err = done == (ssize_t)n ? errno : err;
	/* what is refused must not be found here later */
	(void)!pwrite(s->fd, NONE, sizeof(NONE), (off_t)from);
	return aqe_err_set(e, AQE_E_SYS, done >= 0 && done != (ssize_t)n ? EIO : err,
			   "write the spool of '%.200s'", o->dir);
}

static int add(struct audit_spool *s, const struct audit_opts *o, const struct audit_row *rows,
	       size_t n, struct aqe_err *e)
{
	const uint8_t *skipped;
	size_t from, length;

	if (!first(s))
		return 1;
	while (next_record(s, &skipped, &length))
		;
	from = s->at;
	for (size_t i = 0; i < n; i++) {
		if (!put_record(s, &rows[i]))
			return 1;
	}
	return store(s, from, o, e);
}

int audit_spool_add(const struct audit_opts *o, const struct audit_row *rows, size_t n,
		    struct aqe_err *e)
{
	AQE_AUTO_FD int dir = open_folder(o);
	struct audit_spool s = { .fd = -1 };
	int rc = 1;

	if (dir >= 0 && has_database(dir))
		s.fd = open_spool(dir, O_RDWR);
	if (s.fd < 0)
		return 1;
	s.p = malloc(AUDIT_SPOOL_SIZE);
	if (s.p)
		rc = lock(s.fd, o, e);
	if (s.p && rc == 0)
		rc = add(&s, o, rows, n, e);
	audit_spool_end(&s, false);
	return rc;
}

/* ---- taking over ---- */

bool audit_spool_waits(const struct audit_opts *o)
{
	AQE_AUTO_FD int dir = open_folder(o);
	AQE_AUTO_FD int fd = dir < 0 ? -1 : open_spool(dir, O_RDONLY);
	uint8_t p[SPOOL_FIRST + 4];

	return fd >= 0 && pread(fd, p, sizeof(p), 0) == (ssize_t)sizeof(p) &&
	       (get_be32(p + SPOOL_FIRST) != 0 || memcmp(p, MARK, sizeof(MARK)) != 0);
}

bool audit_spool_is_empty(const struct audit_opts *o, int *io_fd)
{
	uint8_t p[SPOOL_FIRST + 4];

	/* a file that was replaced meanwhile has no name any more */
	if (*io_fd >= 0 && !is_spool(*io_fd)) {
		(void)close(*io_fd); /* only read */
		*io_fd = -1;
	}
	if (*io_fd < 0) {
		AQE_AUTO_FD int dir = open_folder(o);

		*io_fd = dir < 0 ? -1 : open_spool(dir, O_RDONLY);
	}
	return *io_fd >= 0 && pread(*io_fd, p, sizeof(p), 0) == (ssize_t)sizeof(p) &&
	       memcmp(p, MARK, sizeof(MARK)) == 0 && get_be32(p + SPOOL_FIRST) == 0;
}

int audit_spool_begin(const struct audit_opts *o, struct audit_spool *ret, struct aqe_err *e)
{
	struct audit_spool s = { .fd = -1 };
	AQE_AUTO_FD int dir = open_folder(o);
	int rc;

	*ret = s;
	if (dir >= 0)
		s.fd = open_spool(dir, O_RDWR);
	if (dir >= 0 && s.fd < 0 && errno == ENOENT)
		s.fd = make_spool(dir);
	if (s.fd < 0)
		return AQE_OK;
	s.p = malloc(AUDIT_SPOOL_SIZE);
	rc = s.p ? lock(s.fd, o, e) : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	if (rc) {
		audit_spool_end(&s, false);
		return rc;
	}
	if (!first(&s))
		s.at = 0; /* no spool of ours: nothing in it can be believed */
	*ret = s;
	return AQE_OK;
}

int audit_spool_next(struct audit_spool *s, struct aqe_arena *a, struct audit_row *ret,
		     struct aqe_err *e)
{
	const uint8_t *p = NULL;
	size_t n = 0;
	int rc;

	if (s->fd < 0 || s->at == 0 || !next_record(s, &p, &n))
		return 0;
	rc = audit_decode(a, p, n, ret, e);
	return rc < 0 ? rc : 1;
}

bool audit_spool_is_damaged(const struct audit_spool *s)
{
	if (s->fd < 0)
		return false;
	return s->at == 0 || (s->at + 4 <= s->n && get_be32(s->p + s->at) != 0);
}

void audit_spool_end(struct audit_spool *s, bool taken)
{
	uint8_t head[SPOOL_FIRST + 8];

	/* a round that is not begun is found again, and its rows known by their times */
	if (s->fd >= 0 && taken && s->at != SPOOL_FIRST && new_round(head))
		(void)!pwrite(s->fd, head, sizeof(head), 0);
	if (s->fd >= 0)
		(void)close(s->fd); /* lets go of the lock */
	s->fd = -1;
	free(s->p);
	s->p = NULL;
}
