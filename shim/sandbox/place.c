/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/sandbox/plan.h"

/* The container's root, another user outside, must reach store/HEX/rootfs: directories on the way
 * can be entered but not listed. */
#define REACHABLE 0711
#define PRIVATE   0700

static int split(struct aqe_arena *a, const char *dir, const char **ret_parent,
		 const char **ret_name, struct aqe_err *e)
{
	const char *slash = strrchr(dir, '/');

	if (!aqe_path_is_canonical(dir) || slash[1] == '\0')
		return aqe_err_set(e, AQE_E_USAGE, 0, "'%.200s' is no absolute path of a folder",
				   dir);
	*ret_name = slash + 1;
	*ret_parent = slash == dir ? "/" : aqe_arena_ndup(a, dir, (size_t)(slash - dir));
	return *ret_parent ? 0 : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
}

/* Others make the data folder too, and for themselves alone. */
static int make_reachable(int fd, struct aqe_err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "stat");
	if ((st.st_mode & 0011) != 0011 && fchmod(fd, (st.st_mode & 07777) | 0011) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "chmod");
	return 0;
}

static int open_all(struct aqe_arena *a, const char *dir, struct shim_place *p, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf path = AQE_BUF_INIT(4096);
	AQE_AUTO_FD int parent = -1;
	const char *parent_path = NULL, *name = NULL;
	int rc = split(a, dir, &parent_path, &name, e);

	if (rc == 0)
		rc = aqe_fs_open_dir(parent_path, &parent, e);
	if (rc == 0)
		rc = aqe_fs_ensure_dir(parent, name, REACHABLE, &p->fd, e);
	if (rc == 0)
		rc = make_reachable(p->fd, e);
	if (rc == 0)
		rc = aqe_fs_ensure_dir(p->fd, "store", REACHABLE, &p->store_fd, e);
	if (rc == 0)
		rc = aqe_fs_ensure_dir(p->fd, "sandboxes", PRIVATE, &p->sandboxes_fd, e);
	if (rc == 0)
		rc = aqe_fs_ensure_dir(p->fd, "supervisor", PRIVATE, &p->supervisor_fd, e);
	if (rc == 0)
		rc = aqe_fs_fd_path(p->fd, &path, e);
	if (rc < 0)
		return rc;
	p->path = aqe_arena_dup(a, aqe_buf_str(&path));
	return p->path ? 0 : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
}

/* A user's: the folders above it are made too, as the XDG base directories say. */
static int user_dir(struct aqe_arena *a, const char **ret, struct aqe_err *e)
{
	static const char *const BELOW[] = { ".local", "share" };
	const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	AQE_AUTO_FD int at = -1;
	int rc;

	if (data && data[0] == '/') {
		*ret = aqe_arena_fmt(a, "%s/aqe-shim", data);
		return *ret ? 0 : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	}
	if (!home || home[0] != '/')
		return aqe_err_set(e, AQE_E_ABSENT, 0, "neither XDG_DATA_HOME nor HOME is set");
	rc = aqe_fs_open_dir(home, &at, e);
	for (size_t i = 0; i < AQE_COUNT(BELOW) && rc == 0; i++) {
		int next = -1;

		rc = aqe_fs_ensure_dir(at, BELOW[i], PRIVATE, &next, e);
		aqe_cleanup_fd(&at);
		at = next;
	}
	*ret = aqe_arena_fmt(a, "%s/.local/share/aqe-shim", home);
	return rc < 0 || *ret ? rc : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
}

int shim_place_open(struct aqe_arena *a, const char *dir, struct shim_place *ret, struct aqe_err *e)
{
	struct shim_place p = SHIM_PLACE_INIT;
	const char *from_env = getenv("AQE_DATA_DIR");
	int rc = 0;

	if (!dir && from_env && *from_env)
		dir = from_env;
	if (!dir && geteuid() != 0)
		rc = user_dir(a, &dir, e);
	else if (!dir)
		dir = OCI_STORE_DATA;
	if (rc < 0)
		return rc;
	rc = open_all(a, dir, &p, e);
	if (rc < 0) {
		shim_place_done(&p);
		return aqe_err_wrap(e, "data folder '%.200s'", dir);
	}
	*ret = p;
	return 0;
}

void shim_place_done(struct shim_place *p)
{
	aqe_cleanup_fd(&p->supervisor_fd);
	aqe_cleanup_fd(&p->sandboxes_fd);
	aqe_cleanup_fd(&p->store_fd);
	aqe_cleanup_fd(&p->fd);
	*p = (struct shim_place)SHIM_PLACE_INIT;
}

/* ---- sandboxes ---- */

static bool name_ok(const char *name)
{
	return strlen(name) < SHIM_SANDBOX_NAME && aqe_starts(name, "agentic-qe-") &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") ==
		       strlen(name);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int read_names(struct aqe_arena *a, DIR *dir, const char **names, size_t *ret_n,
		      struct aqe_err *e)
{
	const struct dirent *ent;
	size_t n = 0;

	/* cppcheck-suppress readdirCalled; one thread, one stream */
	while ((ent = readdir(dir)) != NULL) {
		if (!name_ok(ent->d_name))
			continue;
		if (n == SHIM_SANDBOXES_MAX)
			return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %d sandboxes",
					   SHIM_SANDBOXES_MAX);
		names[n] = aqe_arena_dup(a, ent->d_name);
		if (!names[n++])
			return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	}
	*ret_n = n;
	return 0;
}

int shim_place_list(struct aqe_arena *a, const struct shim_place *p, const char ***ret,
		    size_t *ret_n, struct aqe_err *e)
{
	const char **names = aqe_arena_calloc(a, SHIM_SANDBOXES_MAX, sizeof(*names));
	int fd = openat(p->sandboxes_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int rc;

	if (!dir || !names) {
		int sys = errno;

		if (dir)
			(void)closedir(dir); /* nothing was read */
		else
			aqe_cleanup_fd(&fd);
		return aqe_err_set(e, names ? AQE_E_SYS : AQE_E_NOMEM, names ? sys : 0,
				   "read the folder of sandboxes");
	}
	rc = read_names(a, dir, names, ret_n, e);
	(void)closedir(dir); /* only read from */
	if (rc < 0)
		return rc;
	qsort(names, *ret_n, sizeof(*names), by_name);
	*ret = names;
	return 0;
}

int shim_place_sandbox(const struct shim_place *p, const char *name, int *ret_fd, struct aqe_err *e)
{
	struct aqe_err cause = AQE_ERR_INIT;
	int rc = AQE_E_ABSENT;

	if (name_ok(name))
		rc = aqe_fs_open_beneath(p->sandboxes_fd, name, O_RDONLY | O_DIRECTORY, 0, ret_fd,
					 &cause);
	if (rc == AQE_E_ABSENT)
		return aqe_err_set(e, AQE_E_ABSENT, 0, "sandbox '%.100s' not found", name);
	return rc < 0 ? aqe_err_set(e, (enum aqe_code)rc, 0, "%s", cause.text) : 0;
}
