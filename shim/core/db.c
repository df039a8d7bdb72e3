/* SPDX-License-Identifier: MIT */
#include "shim/core/db.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define SHOWN_MAX    200 /* bytes of a path shown in a message */
#define PATH_MAX_LEN 480 /* SQLite's own limit is 512, with "-journal" */
#define FOLDERS_MAX  16  /* folders made on the way */
#define WAL_PAGES    1000
#define WAL_HEADER   32 /* bytes, and of each frame's */
#define FRAME_HEADER 24
#define CACHE_KIB    2048
#define SLEEP_MIN_NS INT64_C(100000)
#define SLEEP_MAX_NS INT64_C(4000000)
#define NS_PER_MS    INT64_C(1000000)
#define NS_PER_S     INT64_C(1000000000)
#define VFS_NAME     "aqe"
/* A log that a long reader let grow is cut to so many times its usual size. */
#define WAL_KEEP_SIZE 4

struct aqe_db {
	sqlite3 *handle;
	struct aqe_db_opts o; /* texts in it are not used after open */
	int64_t wait_until;   /* CLOCK_MONOTONIC, of the lock that is being waited for */
	bool unfinished;      /* a transaction that could not even be rolled back */
	char name[64];        /* for messages */
};

struct aqe_stmt {
	sqlite3_stmt *stmt;
	struct aqe_db *db;
	int bad_bind; /* first failure of a bind, or 0 */
	bool on_row;
};

/* ---- errors ---- */

static const struct fault {
	int rc; /* primary result code */
	enum aqe_code code;
	int sys;
	const char *words;
} FAULTS[] = {
	{ SQLITE_FULL, AQE_E_SYS, ENOSPC, "disk full" },
	{ SQLITE_READONLY, AQE_E_SYS, EROFS, "read-only" },
	{ SQLITE_PERM, AQE_E_SYS, EACCES, "permission denied" },
	{ SQLITE_AUTH, AQE_E_SYS, EACCES, "permission denied" },
	{ SQLITE_IOERR, AQE_E_SYS, EIO, "input or output failed" },
	{ SQLITE_CANTOPEN, AQE_E_SYS, ENOENT, "cannot be opened" },
	{ SQLITE_CORRUPT, AQE_E_MALFORMED, 0, "corrupt" },
	{ SQLITE_NOTADB, AQE_E_MALFORMED, 0, "not a database" },
	{ SQLITE_NOMEM, AQE_E_NOMEM, 0, "out of memory" },
	{ SQLITE_TOOBIG, AQE_E_LIMIT, 0, "too big" },
};
static const struct fault SYS_FAULTS[] = {
	{ ENOSPC, AQE_E_SYS, ENOSPC, "disk full" },
	{ EDQUOT, AQE_E_SYS, EDQUOT, "disk full" },
	{ EROFS, AQE_E_SYS, EROFS, "read-only" },
	{ EACCES, AQE_E_SYS, EACCES, "permission denied" },
	{ EPERM, AQE_E_SYS, EPERM, "permission denied" },
};

static const struct fault *fault_of(int code, const struct fault *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (list[i].rc == code)
			return &list[i];
	}
	return NULL;
}

static int fill_fault(const struct aqe_db *db, int rc, const char *doing, struct aqe_err *e)
{
	int primary = rc & 0xff;
	int sys = db->handle ? sqlite3_system_errno(db->handle) : 0;
	const struct fault *f = NULL;

	if (primary == SQLITE_BUSY || primary == SQLITE_LOCKED)
		return aqe_err_set(e, AQE_E_TIMEOUT, 0,
				   "database '%s': locked by another process for %u ms (%s)",
				   db->name, db->o.deadline_ms, doing);
	/* The system's word is better than SQLite's for what went wrong with a file. */
	if (sys && (primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN))
		f = fault_of(sys, SYS_FAULTS, AQE_COUNT(SYS_FAULTS));
	if (!f)
		f = fault_of(primary, FAULTS, AQE_COUNT(FAULTS));
	if (!f)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "database '%s': %s (%s, %d)", db->name,
				   db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(rc),
				   doing, rc);
	if (f->code == AQE_E_SYS && sys && f->sys == EIO)
		return aqe_err_set(e, f->code, sys, "database '%s': %s (%s)", db->name, f->words,
				   doing);
	return aqe_err_set(e, f->code, f->sys, "database '%s': %s (%s)", db->name, f->words, doing);
}

/* Fills `e` from a result of SQLite. Never 0. */
static int db_fault(const struct aqe_db *db, int rc, const char *doing, struct aqe_err *e)
{
	int code = fill_fault(db, rc, doing, e);

	return code < 0 ? code : AQE_E_INTERNAL;
}

static int path_fault(enum aqe_code code, int err, const char *what, const char *path,
		      struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf shown = AQE_BUF_INIT((size_t)2 * SHOWN_MAX);
	const struct fault *f = fault_of(err, SYS_FAULTS, AQE_COUNT(SYS_FAULTS));

	aqe_buf_quote(&shown, path, SHOWN_MAX);
	return aqe_err_set(e, code, err, "%s '%s'%s%s", what, aqe_buf_str(&shown), f ? ": " : "",
			   f ? f->words : "");
}

/* ---- waiting for locks ---- */

static int64_t mono_ns(void)
{
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail with a valid clock and pointer */
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* SQLite asks again after every sleep. Sleeps double up to a few milliseconds, about one flush of a
 * disk, and differ between processes, so that many waiters neither spin nor move in step. */
static int on_busy(void *arg, int count)
{
	struct aqe_db *db = arg;
	int64_t now = mono_ns(), left, sleep_ns;
	struct timespec ts;

	if (count == 0)
		db->wait_until = now + (int64_t)db->o.deadline_ms * NS_PER_MS;
	left = db->wait_until - now;
	if (left <= 0)
		return 0;
	sleep_ns = count < 6 ? SLEEP_MIN_NS << count : SLEEP_MAX_NS;
	sleep_ns = sleep_ns / 2 + (now ^ (now >> 7) ^ getpid()) % sleep_ns;
	if (sleep_ns > left)
		sleep_ns = left;
	ts.tv_sec = 0;
	ts.tv_nsec = (long)sleep_ns;
	(void)nanosleep(&ts, NULL); /* woken early: asked early */
	return 1;
}

/* ---- the folder and the file ---- */

/* Splits off the last component of `path` in place; NULL when there is none. */
static char *cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || !slash[1])
		return NULL;
	*slash = '\0';
	return slash + 1;
}

/* Makes the folders that are missing on the way to `dir`, and opens it. The deepest that exists
 * must be safe to make things in. */
static int make_folders(const char *dir, int *ret_fd, struct aqe_err *e)
{
	char path[PATH_MAX_LEN + 1], *name[FOLDERS_MAX];
	struct aqe_err probe = AQE_ERR_INIT;
	AQE_AUTO_FD int fd = -1;
	size_t n = 0;
	int rc;

	memcpy(path, dir, strlen(dir) + 1);
	do {
		name[n] = n < FOLDERS_MAX - 1 ? cut_last(path) : NULL;
		if (!name[n++])
			return path_fault(AQE_E_LIMIT, 0, "cannot make the folder", dir, e);
		rc = aqe_fs_open_dir(path[0] ? path : "/", &fd, &probe);
	} while (rc == AQE_E_ABSENT);
	if (rc && e)
		*e = probe;
	while (rc == 0 && n > 0) {
		mode_t mode = n > 1 && geteuid() == 0 ? 0755 : 0700;
		int next = -1;

		rc = aqe_fs_ensure_dir(fd, name[--n], mode, &next, e);
		if (rc)
			break;
		(void)close(fd);
		fd = next;
	}
	if (rc)
		return rc;
	*ret_fd = AQE_TAKE_FD(fd);
	return AQE_OK;
}

static int open_folder(const struct aqe_db_opts *o, int *ret_fd, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	struct stat st;
	int rc;

	if (o->dir[0] != '/' || strlen(o->dir) + strlen(o->file) + 1 > PATH_MAX_LEN)
		return path_fault(AQE_E_LIMIT, 0,
				  "not an absolute path of at most 480 bytes:", o->dir, e);
	fd = open(o->dir,
		  O_RDONLY | O_DIRECTORY | O_CLOEXEC | (o->flags & AQE_DB_READ ? 0 : O_NOFOLLOW));
	if (fd < 0 && errno == ENOENT && !(o->flags & AQE_DB_READ)) {
		rc = make_folders(o->dir, &fd, e);
		if (rc)
			return rc;
	}
	if (fd < 0)
		return path_fault(errno == ENOENT                      ? AQE_E_ABSENT
				  : errno == ELOOP || errno == ENOTDIR ? AQE_E_UNTRUSTED
								       : AQE_E_SYS,
				  errno, "open", o->dir, e);
	if (fstat(fd, &st) != 0)
		return path_fault(AQE_E_SYS, errno, "stat", o->dir, e);
	if (!(o->flags & AQE_DB_READ) && (st.st_uid != geteuid() || (st.st_mode & 077)))
		return path_fault(AQE_E_UNTRUSTED, 0,
				  "not owned by us, or open to others (wanted mode 0700):", o->dir,
				  e);
	*ret_fd = AQE_TAKE_FD(fd);
	return AQE_OK;
}

/* An empty file with the right mode, unless another process was faster. */
static int make_file(const struct aqe_db_opts *o, int dirfd, struct aqe_err *e)
{
	int fd = openat(dirfd, o->file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 && errno != EEXIST)
		return path_fault(AQE_E_SYS, errno, "make", o->file, e);
	if (fd >= 0 && close(fd) != 0)
		return path_fault(AQE_E_SYS, errno, "close", o->file, e);
	return AQE_OK;
}

/* Judges the file by name, not through a descriptor: closing one would drop the locks that SQLite
 * holds on the same file elsewhere in this process. Only we can write to the folder. */
static int check_file(const struct aqe_db_opts *o, int dirfd, struct aqe_err *e)
{
	bool reader = o->flags & AQE_DB_READ;
	int follow = reader ? 0 : AT_SYMLINK_NOFOLLOW;
	struct stat st;
	int rc = fstatat(dirfd, o->file, &st, follow);

	if (rc != 0 && errno == ENOENT && !reader) {
		rc = make_file(o, dirfd, e);
		if (rc)
			return rc;
		rc = fstatat(dirfd, o->file, &st, follow);
	}
	if (rc != 0)
		return path_fault(errno == ENOENT ? AQE_E_ABSENT : AQE_E_SYS, errno, "open",
				  o->file, e);
	if (!S_ISREG(st.st_mode))
		return path_fault(AQE_E_UNTRUSTED, 0, "not a regular file:", o->file, e);
	if (reader || (st.st_uid == geteuid() && !(st.st_mode & 077) && st.st_nlink == 1))
		return AQE_OK;
	return path_fault(AQE_E_UNTRUSTED, 0,
			  "not owned by us, open to others, or not of one name (wanted mode 0600):",
			  o->file, e);
}

/* The canonical path of the file: SQLite is told to follow no link. */
static int full_path(int dirfd, const char *file, struct aqe_buf *b, struct aqe_err *e)
{
	int rc = aqe_fs_fd_path(dirfd, b, e);

	if (rc)
		return rc;
	aqe_buf_putc(b, '/');
	aqe_buf_puts(b, file);
	return aqe_buf_ok(b, e);
}

/* ---- SQLite's files ---- */

/* SQLite flushes the folder after the first flush of every write-ahead log that it opens with leave
 * to make it: one more flush of the disk in every short-lived process. Only the one that really
 * makes it needs that. */
static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
	sqlite3_vfs *plain = sqlite3_vfs_find("unix");
	int got = 0;

	(void)vfs;
	if ((flags & SQLITE_OPEN_WAL) &&
	    plain->xOpen(plain, name, f, flags & ~SQLITE_OPEN_CREATE, &got) == SQLITE_OK) {
		if (!(got & SQLITE_OPEN_READONLY)) {
			*ret_flags = got;
			return SQLITE_OK;
		}
		/* SQLite tries what it cannot open for reading only: that succeeds when another
		 * process made the log in between, and this one could never write to it */
		(void)f->pMethods->xClose(f); /* only opened */
	}
	return plain->xOpen(plain, name, f, flags, ret_flags);
}

/* SQLite's own for files, but for that; registered once a process. */
static int use_vfs(void)
{
	static sqlite3_vfs ours;
	const sqlite3_vfs *plain;

	if (sqlite3_vfs_find(VFS_NAME))
		return SQLITE_OK;
	plain = sqlite3_vfs_find("unix");
	if (!plain)
		return SQLITE_ERROR;
	ours = *plain;
	ours.zName = VFS_NAME;
	ours.xOpen = open_file;
	return sqlite3_vfs_register(&ours, 0);
}

/* True when the write-ahead log holds at least `pages` pages. Pages of an earlier round lie behind
 * the present ones in the same file; the salt in the frame's header tells them apart. */
static bool log_is_long(struct aqe_db *db, unsigned pages)
{
	unsigned char head[WAL_HEADER], frame[FRAME_HEADER];
	sqlite3_file *f = NULL;
	sqlite3_int64 page, at;

	if (sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &f) !=
		    SQLITE_OK ||
	    !f || !f->pMethods || f->pMethods->xRead(f, head, sizeof(head), 0) != SQLITE_OK)
		return false;
	page = (sqlite3_int64)head[8] << 24 | head[9] << 16 | head[10] << 8 | head[11];
	at = WAL_HEADER + (page + FRAME_HEADER) * (pages - 1);
	if (f->pMethods->xRead(f, frame, sizeof(frame), at) != SQLITE_OK)
		return false;
	return memcmp(head + 16, frame + 8, 8) == 0;
}

/* Writes the log back before a transaction, not after one: the transaction then begins the log
 * anew, and whoever opens it next has little to read. After one, a process that ends would leave
 * the next to find the whole log and no sign that it was written back. */
static void shorten_log(struct aqe_db *db)
{
	if (log_is_long(db, db->o.wal_pages))
		/* busy or failing: the log grows until somebody can */
		(void)sqlite3_wal_checkpoint_v2(db->handle, "main", SQLITE_CHECKPOINT_PASSIVE, NULL,
						NULL);
}

/* ---- opening ---- */

static int open_handle(struct aqe_db *db, const char *path, int flags, struct aqe_err *e)
{
	int rc = sqlite3_initialize();

	if (rc == SQLITE_OK)
		rc = use_vfs();
	if (rc == SQLITE_OK)
		rc = sqlite3_open_v2(path, &db->handle, flags | SQLITE_OPEN_NOMUTEX, VFS_NAME);
	if (rc != SQLITE_OK)
		return db_fault(db, rc, "open", e);
	(void)sqlite3_extended_result_codes(db->handle, 1);
	(void)sqlite3_busy_handler(db->handle, on_busy, db);
	/* Nothing in the file may act: no trigger calls what we did not define, no schema is edited
	 * by SQL. */
	(void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	return AQE_OK;
}

/* A read-only disk cannot hold the shared memory that WAL needs. If the log is empty or absent the
 * file alone is the whole database. */
static int open_immutable(struct aqe_db *db, const char *path, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf uri = AQE_BUF_INIT((size_t)4 * PATH_MAX_LEN);
	char wal[PATH_MAX_LEN + 8];
	struct stat st;

	(void)snprintf(wal, sizeof(wal), "%s-wal", path);
	if (stat(wal, &st) == 0 && st.st_size > 0)
		return path_fault(AQE_E_SYS, EROFS,
				  "its write-ahead log needs a writable folder:", path, e);
	(void)sqlite3_close(db->handle);
	db->handle = NULL;
	aqe_buf_puts(&uri, "file:");
	for (const char *p = path; *p; p++)
		aqe_buf_addf(&uri, strchr("?#%", *p) ? "%%%02X" : "%c", (unsigned char)*p);
	aqe_buf_puts(&uri, "?immutable=1");
	if (aqe_buf_ok(&uri, e) != 0)
		return uri.failed;
	return open_handle(db, uri.p, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, e);
}

static int pragma_u32(struct aqe_db *db, const char *name, uint32_t *ret, struct aqe_err *e)
{
	char sql[64];
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	int rc;

	(void)snprintf(sql, sizeof(sql), "PRAGMA %s", name);
	rc = aqe_db_prepare(db, sql, &s, e);
	if (rc == 0)
		rc = aqe_stmt_step(s, e);
	if (rc == 1)
		*ret = (uint32_t)aqe_stmt_i64(s, 0);
	return rc < 0 ? rc : AQE_OK;
}

int aqe_db_version(struct aqe_db *db, unsigned *ret, struct aqe_err *e)
{
	return pragma_u32(db, "user_version", ret, e);
}

/* *ret_version is 0 when the file has no content yet. */
static int identify(struct aqe_db *db, unsigned *ret_version, struct aqe_err *e)
{
	uint32_t version = 0, id = 0, schema = 0;
	int rc = pragma_u32(db, "user_version", &version, e);

	if (rc == 0)
		rc = pragma_u32(db, "application_id", &id, e);
	if (rc == 0 && id == 0 && version == 0)
		rc = pragma_u32(db, "schema_version", &schema, e);
	if (rc)
		return rc;
	if ((id || version || schema) && id != db->o.application_id)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "database '%s': made by another program",
				   db->name);
	if (version > db->o.n_migrations)
		return aqe_err_set(e, AQE_E_MALFORMED, 0,
				   "database '%s': its version %u is newer than ours, %u", db->name,
				   version, db->o.n_migrations);
	*ret_version = version;
	return AQE_OK;
}

/* The change to WAL takes every lock and does not ask on_busy() about all of them. */
static int set_wal(struct aqe_db *db, struct aqe_err *e)
{
	int64_t until = mono_ns() + (int64_t)db->o.deadline_ms * NS_PER_MS;
	struct timespec ts = { 0, (long)SLEEP_MAX_NS };
	int rc;

	for (;;) {
		rc = sqlite3_exec(db->handle, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
		if ((rc & 0xff) != SQLITE_BUSY || mono_ns() >= until)
			break;
		(void)nanosleep(&ts, NULL); /* as in on_busy() */
	}
	return rc == SQLITE_OK ? AQE_OK : db_fault(db, rc, "use a write-ahead log", e);
}

static int run_migrations(struct aqe_db *db, struct aqe_err *e)
{
	char sql[96];
	unsigned version = 0;
	int rc = aqe_db_version(db, &version, e);

	for (; rc == 0 && version < db->o.n_migrations; version++)
		rc = aqe_db_exec(db, db->o.migrations[version], e);
	if (rc)
		return rc;
	(void)snprintf(sql, sizeof(sql), "PRAGMA user_version = %u; PRAGMA application_id = %u",
		       db->o.n_migrations, db->o.application_id);
	return aqe_db_exec(db, sql, e);
}

static int migrate(struct aqe_db *db, bool fresh, int dirfd, struct aqe_err *e)
{
	unsigned version;
	int rc = AQE_OK;

	if (fresh) {
		/* only works before there is a table; lets the file shrink step by step later */
		rc = aqe_db_exec(db, "PRAGMA auto_vacuum = INCREMENTAL", e);
		if (rc == 0)
			rc = set_wal(db, e);
	}
	if (rc == 0)
		rc = aqe_db_begin(db, e);
	if (rc)
		return rc;
	/* another process may have been faster */
	rc = identify(db, &version, e);
	if (rc == 0)
		rc = run_migrations(db, e);
	if (rc == 0)
		rc = aqe_db_commit(db, e);
	aqe_db_rollback(db); /* nothing after a commit */
	if (rc)
		return rc;
	/* The tables go into the file itself: a file without its log must not look new. */
	(void)sqlite3_wal_checkpoint_v2(db->handle, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	return fsync(dirfd) == 0
		       ? AQE_OK
		       : aqe_err_set(e, AQE_E_SYS, errno, "flush the folder of '%s'", db->name);
}

static int configure(struct aqe_db *db, struct aqe_err *e)
{
	char sql[160];
	int on = 1;

	/* The last one to close would otherwise write the log back and delete it: several flushes
	 * for every short-lived process. It stays, and commits overwrite blocks it already has. */
	(void)sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
	(void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	/* aqe_db_begin() does it earlier; this is for statements outside of transactions */
	(void)sqlite3_wal_autocheckpoint(db->handle, (int)(2 * db->o.wal_pages));
	(void)snprintf(
		sql, sizeof(sql),
		"PRAGMA synchronous = %s; PRAGMA cache_size = -%u; PRAGMA journal_size_limit = %u",
		db->o.flags & AQE_DB_NORMAL_SYNC ? "NORMAL" : "FULL",
		db->o.cache_kib ? db->o.cache_kib : CACHE_KIB,
		db->o.wal_pages * 4096U * WAL_KEEP_SIZE);
	return aqe_db_exec(db, sql, e);
}

/* Whether a reader failed only because it may not write. */
static bool wants_writing(const struct aqe_db *db)
{
	int rc = sqlite3_errcode(db->handle) & 0xff;

	return rc == SQLITE_CANTOPEN || rc == SQLITE_READONLY || rc == SQLITE_IOERR;
}

static int open_read(struct aqe_db *db, const char *path, struct aqe_err *e)
{
	unsigned version = 0;
	int rc = open_handle(db, path, SQLITE_OPEN_READONLY, e);

	if (rc == 0)
		rc = identify(db, &version, e);
	if (rc && db->handle && wants_writing(db)) {
		rc = open_immutable(db, path, e);
		if (rc == 0)
			rc = identify(db, &version, e);
	}
	if (rc == 0 && version == 0)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "database '%s': it is empty", db->name);
	return rc;
}

static int open_write(struct aqe_db *db, const char *path, int dirfd, struct aqe_err *e)
{
	unsigned version = 0;
	int rc = open_handle(db, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW, e);

	if (rc == 0)
		rc = configure(db, e);
	/* one transaction: a lock is taken and given back once, not for every question */
	if (rc == 0)
		rc = aqe_db_exec(db, "BEGIN", e);
	if (rc == 0)
		rc = identify(db, &version, e);
	aqe_db_rollback(db);
	if (rc == 0 && version < db->o.n_migrations)
		rc = migrate(db, version == 0, dirfd, e);
	return rc;
}

int aqe_db_open(const struct aqe_db_opts *o, struct aqe_db **ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf path = AQE_BUF_INIT(PATH_MAX_LEN);
	AQE_AUTO_FD int dirfd = -1;
	struct aqe_db *db;
	int rc = open_folder(o, &dirfd, e);

	if (rc == 0)
		rc = check_file(o, dirfd, e);
	if (rc == 0)
		rc = full_path(dirfd, o->file, &path, e);
	if (rc)
		return rc;
	db = calloc(1, sizeof(*db));
	if (!db)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	db->o = *o;
	db->o.wal_pages = o->wal_pages ? o->wal_pages : WAL_PAGES;
	(void)snprintf(db->name, sizeof(db->name), "%s", o->file);
	rc = o->flags & AQE_DB_READ ? open_read(db, path.p, e) : open_write(db, path.p, dirfd, e);
	if (rc) {
		aqe_db_close(db);
		return rc;
	}
	*ret = db;
	return AQE_OK;
}

void aqe_db_close(struct aqe_db *db)
{
	if (!db)
		return;
	aqe_db_rollback(db);
	(void)sqlite3_close(db->handle); /* all statements are done: it cannot be busy */
	free(db);
}

/* ---- transactions ---- */

int aqe_db_exec(struct aqe_db *db, const char *sql, struct aqe_err *e)
{
	int rc = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? AQE_OK : db_fault(db, rc, "write", e);
}

int aqe_db_begin(struct aqe_db *db, struct aqe_err *e)
{
	int rc;

	if (db->unfinished)
		aqe_db_rollback(db);
	shorten_log(db);
	rc = sqlite3_exec(db->handle, "BEGIN IMMEDIATE", NULL, NULL, NULL);
	return rc == SQLITE_OK ? AQE_OK : db_fault(db, rc, "begin", e);
}

int aqe_db_begin_read(struct aqe_db *db, struct aqe_err *e)
{
	/* the state is fixed by the first read, so there is one */
	int rc = sqlite3_exec(db->handle, "BEGIN; SELECT count(*) FROM sqlite_schema", NULL, NULL,
			      NULL);

	if (rc == SQLITE_OK)
		return AQE_OK;
	rc = db_fault(db, rc, "begin", e);
	aqe_db_rollback(db);
	return rc;
}

int aqe_db_commit(struct aqe_db *db, struct aqe_err *e)
{
	int rc = sqlite3_exec(db->handle, "COMMIT", NULL, NULL, NULL);

	if (rc == SQLITE_OK)
		return AQE_OK;
	rc = db_fault(db, rc, "commit", e);
	aqe_db_rollback(db);
	return rc;
}

void aqe_db_rollback(struct aqe_db *db)
{
	db->unfinished = db->handle && !sqlite3_get_autocommit(db->handle);
	/* may lack memory: again, and before the next transaction; closing does it too */
	for (int i = 0; db->unfinished && i < 2; i++)
		db->unfinished = sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL) != 0;
}

bool aqe_db_in_transaction(struct aqe_db *db)
{
	return !sqlite3_get_autocommit(db->handle);
}

int64_t aqe_db_changes(struct aqe_db *db)
{
	return sqlite3_changes64(db->handle);
}

/* ---- statements ---- */

int aqe_db_prepare(struct aqe_db *db, const char *sql, struct aqe_stmt **ret, struct aqe_err *e)
{
	struct aqe_stmt *s = calloc(1, sizeof(*s));
	int rc;

	if (!s) {
		(void)aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory"); /* returns the code */
		return AQE_E_NOMEM;
	}
	s->db = db;
	rc = sqlite3_prepare_v2(db->handle, sql, -1, &s->stmt, NULL);
	if (rc == SQLITE_OK) {
		*ret = s;
		return AQE_OK;
	}
	free(s);
	return db_fault(db, rc, "prepare", e);
}

void aqe_stmt_done(struct aqe_stmt *s)
{
	if (!s)
		return;
	(void)sqlite3_finalize(s->stmt); /* repeats the last step's error */
	free(s);
}

static void bound(struct aqe_stmt *s, int rc)
{
	if (rc != SQLITE_OK && !s->bad_bind)
		s->bad_bind = rc;
}

void aqe_stmt_bind_i64(struct aqe_stmt *s, int at, int64_t v)
{
	bound(s, sqlite3_bind_int64(s->stmt, at, v));
}

void aqe_stmt_bind_text(struct aqe_stmt *s, int at, const char *v)
{
	bound(s, sqlite3_bind_text(s->stmt, at, v, -1, SQLITE_STATIC));
}

void aqe_stmt_bind_blob(struct aqe_stmt *s, int at, const void *p, size_t n)
{
	bound(s, sqlite3_bind_blob64(s->stmt, at, p, n, SQLITE_STATIC));
}

void aqe_stmt_bind_null(struct aqe_stmt *s, int at)
{
	bound(s, sqlite3_bind_null(s->stmt, at));
}

int aqe_stmt_step(struct aqe_stmt *s, struct aqe_err *e)
{
	int rc = s->bad_bind ? s->bad_bind : sqlite3_step(s->stmt);

	s->bad_bind = 0;
	s->on_row = rc == SQLITE_ROW;
	if (s->on_row)
		return 1;
	if (rc != SQLITE_DONE)
		rc = db_fault(s->db, rc, "run", e);
	else
		rc = 0;
	(void)sqlite3_reset(s->stmt); /* repeats the step's error */
	return rc;
}

int aqe_stmt_run(struct aqe_stmt *s, struct aqe_err *e)
{
	int rc = aqe_stmt_step(s, e);

	if (rc <= 0)
		return rc;
	aqe_stmt_reset(s);
	return aqe_err_set(e, AQE_E_INTERNAL, 0, "database '%s': a row where none was expected",
			   s->db->name);
}

void aqe_stmt_reset(struct aqe_stmt *s)
{
	s->on_row = false;
	(void)sqlite3_reset(s->stmt); /* repeats the last step's error */
}

static const enum aqe_db_type TYPES[] = {
	[SQLITE_INTEGER] = AQE_DB_INT, [SQLITE_FLOAT] = AQE_DB_REAL, [SQLITE_TEXT] = AQE_DB_TEXT,
	[SQLITE_BLOB] = AQE_DB_BLOB,   [SQLITE_NULL] = AQE_DB_NULL,
};

void aqe_stmt_value(struct aqe_stmt *s, int at, struct aqe_db_value *ret)
{
	/* not protected against other threads: there are none on this connection */
	sqlite3_value *v = sqlite3_column_value(s->stmt, at);

	ret->type = TYPES[sqlite3_value_type(v)];
	ret->i = ret->type == AQE_DB_INT ? sqlite3_value_int64(v) : 0;
	ret->p = NULL;
	ret->n = 0;
	if (ret->type != AQE_DB_TEXT && ret->type != AQE_DB_BLOB)
		return;
	ret->p = ret->type == AQE_DB_TEXT ? (const void *)sqlite3_value_text(v)
					  : sqlite3_value_blob(v);
	ret->n = (size_t)sqlite3_value_bytes(v);
	if (!ret->p)
		ret->p = ""; /* a blob of no bytes has no address */
}

enum aqe_db_type aqe_stmt_type(struct aqe_stmt *s, int at)
{
	return TYPES[sqlite3_column_type(s->stmt, at)];
}

int64_t aqe_stmt_i64(struct aqe_stmt *s, int at)
{
	return aqe_stmt_type(s, at) == AQE_DB_INT ? sqlite3_column_int64(s->stmt, at) : 0;
}

const void *aqe_stmt_bytes(struct aqe_stmt *s, int at, size_t *ret_n)
{
	struct aqe_db_value v;

	aqe_stmt_value(s, at, &v);
	*ret_n = v.n;
	return v.p;
}
