/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hardening/policy_file.h"
#include "shim/core/arena.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define POLICY_NAME "policy.json"
#define DROPIN_DIR  "policy.d"
#define PATH_SHOWN  160 /* bytes of a file's path in a message */
#define FAULT_MAX   400
#define FILES_FIRST 4
#define ENTRIES_MAX 4096 /* looked at in policy.d/, with those that are no drop-ins */

/* A policy is shallow and small; the rest is as for any document. */
static const struct aqe_json_limits LIMITS = {
	.bytes = HARD_POLICY_MAX_BYTES,
	.depth = 6,
	.values = 100000,
	.entries = 4096,
	.string = 8192,
	.number = 20,
	.fold_dups_ok = false,
};

int hard_policy_fault(const struct hard_policy_file *f, const struct aqe_json *at,
		      struct aqe_err *e, const char *fmt, ...)
{
	AQE_AUTO_BUF struct aqe_buf pointer = AQE_BUF_INIT(256);
	AQE_AUTO_BUF struct aqe_buf path = AQE_BUF_INIT((size_t)4 * PATH_SHOWN);
	char text[FAULT_MAX];
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	aqe_buf_quote(&path, f->path, PATH_SHOWN);
	aqe_json_pointer(at, &pointer);
	return aqe_err_at(e, AQE_E_MALFORMED, at->line, at->col, "%s:%u: '%s' %s",
			  aqe_buf_str(&path), at->line,
			  at->parent ? aqe_buf_str(&pointer) : "the policy", text);
}

/* Errors of the JSON reader get the file and line in front, like ours. */
static int parse_fault(const char *path, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf shown = AQE_BUF_INIT((size_t)4 * PATH_SHOWN);

	aqe_buf_quote(&shown, path, PATH_SHOWN);
	if (e && e->line)
		return aqe_err_wrap(e, "%s:%u", aqe_buf_str(&shown), e->line);
	return aqe_err_wrap(e, "%s", aqe_buf_str(&shown));
}

static int nomem(struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the policy");
}

static bool more_files(struct hard_policy_files *fs)
{
	const size_t max = fs->max ? fs->max * 2 : FILES_FIRST;
	struct hard_policy_file *list = aqe_arena_calloc(fs->arena, max, sizeof(*list));

	if (!list)
		return false;
	if (fs->n)
		memcpy(list, fs->file, fs->n * sizeof(*list));
	fs->file = list;
	fs->max = max;
	return true;
}

/* Adds a file whose bytes are in `b`. */
static int add_file(struct hard_policy_files *fs, const char *path, const struct aqe_buf *b,
		    struct aqe_err *e)
{
	struct hard_policy_file *f;
	struct aqe_json *root = NULL;

	if (fs->n > HARD_POLICY_DROPINS_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "%s: more than %d files", path,
				   HARD_POLICY_DROPINS_MAX);
	if (fs->n == fs->max && !more_files(fs))
		return nomem(e);
	f = &fs->file[fs->n];
	f->path = aqe_arena_dup(fs->arena, path);
	if (!f->path)
		return nomem(e);
	aqe_sha256_text(aqe_buf_str(b), b->len, f->digest);
	if (aqe_json_parse(fs->arena, aqe_buf_str(b), b->len, &LIMITS, &root, e))
		return parse_fault(path, e);
	f->root = root;
	fs->n++;
	return hard_policy_file_check(f, e);
}

static void note_change(struct hard_policy_files *fs, const struct stat *st)
{
	if (st->st_mtime > fs->changed_s)
		fs->changed_s = st->st_mtime;
}

int hard_policy_files_one(struct hard_policy_files *fs, const char *path, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(HARD_POLICY_MAX_BYTES);
	AQE_AUTO_FD int fd = -1;
	struct stat st;
	int rc;

	/* Named on the command line: links on the way are the user's own business. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return aqe_err_set(e, errno == ENOENT ? AQE_E_ABSENT : AQE_E_SYS, errno,
				   "open policy '%s'", path);
	rc = aqe_fs_check(fd, AQE_FS_REGULAR, HARD_POLICY_MAX_BYTES, path, &st, e);
	if (!rc)
		rc = aqe_fs_read_fd(fd, &b, e);
	if (rc)
		return rc;
	note_change(fs, &st);
	return add_file(fs, path, &b, e);
}

/* Reads `name` below `dirfd`. */
static int add_named(struct hard_policy_files *fs, int dirfd, const char *dir, const char *name,
		     struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(HARD_POLICY_MAX_BYTES);
	const char *path = aqe_arena_fmt(fs->arena, "%s/%s", dir, name);
	struct stat st;
	int rc;

	if (!path)
		return nomem(e);
	rc = aqe_fs_read_beneath(dirfd, name, AQE_FS_TRUSTED, &b, e);
	if (rc)
		return parse_fault(path, e);
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		note_change(fs, &st);
	return add_file(fs, path, &b, e);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of the drop-ins: "*.json", not hidden. Editors' backups and packagers' leftovers have other
 * endings. */
static int list_dropins(struct hard_policy_files *fs, DIR *d, const char *dir, const char **names,
			size_t *ret_n, struct aqe_err *e)
{
	size_t n = 0;

	for (size_t seen = 0;; seen++) {
		const struct dirent *de;

		errno = 0;
		/* cppcheck-suppress readdirCalled; one thread, one stream */
		de = readdir(d);
		if (!de && errno)
			return aqe_err_set(e, AQE_E_SYS, errno, "read directory '%s'", dir);
		if (!de)
			break;
		if (seen == ENTRIES_MAX)
			return aqe_err_set(e, AQE_E_LIMIT, 0, "'%s' has too many entries", dir);
		if (de->d_name[0] == '.' || !aqe_ends(de->d_name, ".json"))
			continue;
		if (n == HARD_POLICY_DROPINS_MAX)
			return aqe_err_set(e, AQE_E_LIMIT, 0, "'%s' has more than %d drop-ins", dir,
					   HARD_POLICY_DROPINS_MAX);
		names[n] = aqe_arena_dup(fs->arena, de->d_name);
		if (!names[n++])
			return nomem(e);
	}
	qsort(names, n, sizeof(*names), by_name);
	*ret_n = n;
	return AQE_OK;
}

static int add_dropins_of(struct hard_policy_files *fs, DIR *d, const char *dir, struct aqe_err *e)
{
	const char *names[HARD_POLICY_DROPINS_MAX] = { NULL };
	size_t n = 0;
	int rc = list_dropins(fs, d, dir, names, &n, e);

	/* A name that was listed must be there: one that vanished is a policy that changes now. */
	for (size_t i = 0; !rc && i < n; i++)
		rc = add_named(fs, dirfd(d), dir, names[i], e);
	return rc;
}

static int add_dropins(struct hard_policy_files *fs, int parent, const char *parent_path,
		       struct aqe_err *e)
{
	const char *dir = aqe_arena_fmt(fs->arena, "%s/" DROPIN_DIR, parent_path);
	AQE_AUTO_FD int fd = -1;
	DIR *d;
	int rc;

	if (!dir)
		return nomem(e);
	rc = aqe_fs_open_beneath(parent, DROPIN_DIR, O_RDONLY | O_DIRECTORY, 0, &fd, e);
	if (rc == AQE_E_ABSENT)
		return AQE_OK;
	if (!rc)
		rc = aqe_fs_check(fd, AQE_FS_DIR | AQE_FS_OWNER | AQE_FS_NO_WRITE, 0, dir, NULL, e);
	if (rc)
		return parse_fault(dir, e);
	d = fdopendir(fd);
	if (!d)
		return aqe_err_set(e, AQE_E_SYS, errno, "read directory '%s'", dir);
	(void)AQE_TAKE_FD(fd); /* closedir() closes it */
	rc = add_dropins_of(fs, d, dir, e);
	(void)closedir(d);
	return rc;
}

int hard_policy_files_dir(struct hard_policy_files *fs, const char *dir, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	int rc = aqe_fs_open_dir(dir, &fd, e);

	if (rc == AQE_E_ABSENT)
		return AQE_OK;
	if (rc)
		return parse_fault(dir, e);
	rc = add_named(fs, fd, dir, POLICY_NAME, e);
	if (rc == AQE_E_ABSENT)
		rc = AQE_OK;
	return rc ? rc : add_dropins(fs, fd, dir, e);
}
