/* SPDX-License-Identifier: MIT */
#include "shim/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "oci/doc.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/proc.h"
#include "shim/core/text.h"
#include "shim/early.h"
#include "shim/env.h"
#include "shim/runtime.h"
#include "shim/runtime_judge.h"

#define STATE_NAME "aqe-shim"
#define SWEEP_MAX  4096

bool shim_state_in_userns(void)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(16384);
	struct aqe_err ignored = AQE_ERR_INIT;
	AQE_AUTO_FD int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	const char *p;

	if (fd < 0 || aqe_fs_read_fd(fd, &b, &ignored) < 0)
		return true;
	/* the identity is exactly "0 0 4294967295" */
	p = aqe_buf_str(&b);
	for (size_t i = 0; i < 3; i++) {
		static const char *const want[] = { "0", "0", "4294967295" };
		size_t n = strlen(want[i]);

		p += strspn(p, " \t\n");
		if (strncmp(p, want[i], n) != 0 || !strchr(" \t\n", p[n]))
			return true;
		p += n;
	}
	return p[strspn(p, " \t\n")] != '\0';
}

/* The directory that holds the state folder. */
static int open_parent(char *const *envp, bool rootless, int *ret, struct aqe_err *e)
{
	const char *dir = rootless ? shim_env_get(envp, "XDG_RUNTIME_DIR") : "/run";

	if (!dir || dir[0] != '/')
		return aqe_err_set(e, AQE_E_UNKNOWN, 0,
				   "XDG_RUNTIME_DIR is not set: a rootless runtime keeps its "
				   "records there");
	return aqe_fs_open_dir(dir, ret, e);
}

int shim_state_open(struct aqe_arena *a, char *const *envp, bool make, struct shim_state *ret,
		    struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf path = AQE_BUF_INIT(4096);
	AQE_AUTO_FD int parent = -1;
	AQE_AUTO_FD int fd = -1;
	bool rootless = geteuid() != 0 || shim_state_in_userns();
	int rc = open_parent(envp, rootless, &parent, e);

	if (rc == 0 && make)
		rc = aqe_fs_ensure_dir(parent, STATE_NAME, 0700, &fd, e);
	else if (rc == 0)
		rc = aqe_fs_open_beneath(parent, STATE_NAME, O_RDONLY | O_DIRECTORY, 0, &fd, e);
	if (rc == 0)
		rc = aqe_fs_check(fd, AQE_FS_DIR | AQE_FS_OWNER | AQE_FS_NO_WRITE, 0,
				  "the state folder", NULL, e);
	if (rc == 0)
		rc = aqe_fs_fd_path(fd, &path, e);
	if (rc < 0)
		return aqe_err_wrap(e, "state folder");
	ret->path = aqe_arena_dup(a, aqe_buf_str(&path));
	if (!ret->path)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the state folder");
	ret->rootless = rootless;
	ret->fd = AQE_TAKE_FD(fd);
	return 0;
}

void shim_state_done(struct shim_state *s)
{
	if (s->fd >= 0)
		(void)close(s->fd); /* only read from */
	s->fd = -1;
}

char *shim_record_name(struct aqe_arena *a, const char *id, const char *root)
{
	const struct shim_early call = { .id = id, .root = root };
	char digest[AQE_DIGEST_TEXT];
	char *name;

	if (!id || !oci_id_ok(id))
		return NULL;
	if (strlen(id) <= SHIM_EARLY_ID_MAX) {
		name = aqe_arena_raw(a, SHIM_EARLY_NAME);
		if (name)
			shim_early_name(&call, name);
		return name;
	}
	aqe_sha256_text(id, strlen(id), digest);
	/* "%" is in no container id, so this name belongs to no other */
	return aqe_arena_fmt(a, "%%%s@%016" PRIx64, digest + strlen("sha256:"),
			     shim_early_root_hash(root));
}

/* The lock is on the directory itself, which another process may have removed and made again since
 * we opened it. */
static bool still_there(const struct shim_state *s, const char *name, int fd)
{
	struct stat ours, named;

	return fstat(fd, &ours) == 0 && fstatat(s->fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

static int try_open(const struct shim_state *s, const char *name, enum shim_dir_how how, int *ret,
		    struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	int rc;

	if (how == SHIM_DIR_MAKE)
		rc = aqe_fs_ensure_dir(s->fd, name, 0700, &fd, e);
	else
		rc = aqe_fs_open_beneath(s->fd, name, O_RDONLY | O_DIRECTORY, 0, &fd, e);
	if (rc < 0)
		return rc;
	rc = aqe_fs_check(fd, AQE_FS_DIR | AQE_FS_OWNER | AQE_FS_NO_WRITE, 0, "the record", NULL,
			  e);
	if (rc < 0)
		return rc;
	if (how != SHIM_DIR_READ && flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int sys = errno;

		if (sys == EWOULDBLOCK)
			return aqe_err_set(e, AQE_E_REFUSED, 0,
					   "another process is creating this container");
		return aqe_err_set(e, AQE_E_SYS, sys, "lock the record");
	}
	*ret = AQE_TAKE_FD(fd);
	return 0;
}

int shim_dir_open(struct aqe_arena *a, const struct shim_state *s, const char *name,
		  enum shim_dir_how how, struct shim_dir *ret, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;

	for (int tries = 0; tries < 8; tries++) {
		int rc = try_open(s, name, how, &fd, e);

		if (rc < 0)
			return rc;
		if (how == SHIM_DIR_READ || still_there(s, name, fd))
			break;
		(void)close(fd); /* removed by others: open the new one */
		fd = -1;
	}
	if (fd < 0)
		return aqe_err_set(e, AQE_E_REFUSED, 0, "another process removes this container");
	ret->path = aqe_arena_fmt(a, "%s/%s", s->path, name);
	ret->name = aqe_arena_dup(a, name);
	if (!ret->path || !ret->name)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the record");
	ret->fd = AQE_TAKE_FD(fd);
	return 0;
}

void shim_dir_done(struct shim_dir *d)
{
	if (d->fd >= 0)
		(void)close(d->fd); /* only read from */
	d->fd = -1;
}

int shim_dir_remove(const struct shim_state *s, const char *name, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf path = AQE_BUF_INIT(4096);

	aqe_buf_addf(&path, "%s/%s", s->path, name);
	shim_pin_release(aqe_buf_str(&path));
	return aqe_fs_remove_tree(s->fd, name, e);
}

/* The pid in "PREFIXpid.json", or 0. */
static pid_t name_pid(const char *name, const char *prefix)
{
	char digits[16];
	uint64_t pid;
	size_t n = strlen(prefix), len = strlen(name);

	if (!aqe_starts(name, prefix) || !aqe_ends(name, ".json") || len < n + 5 ||
	    len - n - 5 >= sizeof(digits))
		return 0;
	memcpy(digits, name + n, len - n - 5);
	digits[len - n - 5] = '\0';
	return aqe_parse_u64(digits, INT32_MAX, &pid) ? (pid_t)pid : 0;
}

void shim_dir_sweep(const struct shim_dir *d, const char *prefix)
{
	int fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *ent;

	if (!dir) {
		if (fd >= 0)
			(void)close(fd); /* nothing was read yet */
		return;
	}
	/* cppcheck-suppress readdirCalled; one thread, one stream */
	for (int i = 0; i < SWEEP_MAX && (ent = readdir(dir)); i++) {
		pid_t pid = name_pid(ent->d_name, prefix);

		if (pid > 0 && kill(pid, 0) < 0 && errno == ESRCH)
			(void)unlinkat(d->fd, ent->d_name, 0); /* the next sweep tries again */
	}
	(void)closedir(dir); /* only read from */
}

const char *shim_record_runtime(struct aqe_arena *a, const struct shim_state *s, const char *name)
{
	char target[4096];
	struct shim_dir d = SHIM_DIR_INIT;
	struct aqe_err ignored = AQE_ERR_INIT;
	ssize_t n;

	if (shim_dir_open(a, s, name, SHIM_DIR_READ, &d, &ignored) < 0)
		return NULL;
	n = readlinkat(d.fd, "runtime", target, sizeof(target) - 1);
	shim_dir_done(&d);
	if (n <= 0 || target[0] != '/')
		return NULL;
	return aqe_arena_ndup(a, target, (size_t)n);
}

int shim_record_save(struct aqe_arena *a, const struct shim_dir *d, const struct shim_record *r,
		     struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1U << 20);
	struct aqe_json *doc = shim_record_emit(a, r);
	int rc;

	if (!doc)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the record");
	if ((unlinkat(d->fd, "runtime", 0) < 0 && errno != ENOENT) ||
	    symlinkat(r->runtime, d->fd, "runtime") < 0) {
		int sys = errno;

		return aqe_err_set(e, AQE_E_SYS, sys, "write the record's link to the runtime");
	}
	rc = aqe_json_emit(doc, AQE_JSON_PRETTY, &b, e);
	if (rc == 0)
		rc = aqe_fs_write_file(d->fd, SHIM_RECORD_FILE, 0600, b.p, b.len, e);
	return rc < 0 ? aqe_err_wrap(e, "write the record") : 0;
}

int shim_record_load(struct aqe_arena *a, const struct shim_dir *d, struct shim_record *ret,
		     struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1U << 20);
	int rc = aqe_fs_read_beneath(d->fd, SHIM_RECORD_FILE, AQE_FS_TRUSTED, &b, e);

	if (rc == 0)
		rc = shim_record_parse(a, aqe_buf_str(&b), b.len, ret, e);
	return rc < 0 ? aqe_err_wrap(e, "record of the container") : 0;
}
