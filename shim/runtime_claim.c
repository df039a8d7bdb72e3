/* SPDX-License-Identifier: MIT */
/* Claiming a container id. A call can be killed at any moment, so what is found under the id may be
 * a live container, one in the making, or the rest of one. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/proc.h"
#include "shim/core/text.h"
#include "shim/env.h"
#include "shim/runtime.h"
#include "shim/runtime_judge.h"

#define CGROUP_ROOT    "/sys/fs/cgroup"
#define CGROUP_DIRS    64
#define CGROUP_MEMBERS 65536
#define RMDIR_TRIES    100

/* True when the process that is creating (or, with `run`, running) the container lives. */
static bool creator_alive(const struct shim_record *r)
{
	struct aqe_err ignored = AQE_ERR_INIT;
	uint64_t start = 0;

	return r->creator > 0 && r->creator != getpid() &&
	       aqe_proc_start_time(r->creator, &start, &ignored) == 0 && start == r->creator_start;
}

/* The pid file is the last thing a low-level `create` writes. One that names another process, or
 * none, is from before: that creation was not finished. */
static bool creation_finished(const struct shim_record *r, const struct oci_state *st)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(32);
	struct aqe_err ignored = AQE_ERR_INIT;
	uint64_t pid = 0;

	return r->pid_file && shim_rt_read_foreign(r->pid_file, &b, &ignored) == 0 &&
	       aqe_parse_u64(aqe_buf_str(&b), INT32_MAX, &pid) && (int)pid == st->pid;
}

/* A created container that nobody can start, because the engine was never told, is not in use. */
static bool in_use(const struct shim_record *r, const struct oci_state *st)
{
	if (st->pid <= 0 || st->status == OCI_STATUS_STOPPED)
		return false;
	if (st->status == OCI_STATUS_CREATING || st->status == OCI_STATUS_CREATED)
		return !r->by_run && creation_finished(r, st);
	return true;
}

static int exists(const struct shim_rt *rt, struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_REFUSED, 0, "container '%s' already exists", rt->av.id);
}

/* The runtime looks for its containers where the earlier call's environment said. */
static char **earlier_env(struct shim_rt *rt, const struct shim_record *r)
{
	size_t n = 0, kept = 0;
	char **list;

	while (rt->clean[n])
		n++;
	list = aqe_arena_calloc(rt->arena, n + 2, sizeof(*list));
	for (size_t i = 0; list && i < n; i++) {
		if (!aqe_starts(rt->clean[i], "XDG_RUNTIME_DIR="))
			list[kept++] = rt->clean[i];
	}
	if (list && r->xdg_runtime_dir)
		list[kept] = aqe_arena_fmt(rt->arena, "XDG_RUNTIME_DIR=%s", r->xdg_runtime_dir);
	return list;
}

/* Asks the runtime of the earlier container whether it lives; if not, removes what it left. */
static int clear_earlier(struct shim_rt *rt, const struct shim_record *r, struct aqe_err *e)
{
	struct shim_rt old = *rt;
	struct oci_state st = { OCI_STATUS_STOPPED, 0 };
	int known = 0;

	old.low = (struct shim_low)SHIM_LOW_INIT;
	old.name = NULL; /* the record is ours to remove */
	old.clean = earlier_env(rt, r);
	if (!old.clean)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the environment");
	/* a runtime that is gone cannot be asked: its container's cgroup is all there is */
	if (shim_low_open(r->runtime, NULL, &old.low, NULL) == 0)
		known = shim_low_state(&old, &st, e);
	if (known > 0 && in_use(r, &st))
		known = exists(rt, e);
	if (known >= 0 && old.low.fd >= 0)
		shim_low_destroy(&old, st.pid);
	shim_low_done(&old.low);
	if (known < 0)
		return known;
	shim_claim_clear_cgroup(r->cgroups_path, r->id, true);
	return 0;
}

/* What lies in a directory that we locked. */
static int take_over(struct shim_rt *rt, struct aqe_err *e)
{
	static const char *const stale[] = { SHIM_RECORD_FILE, SHIM_RECORD_PID };
	struct shim_record r = { 0 };
	int rc = 0;

	/* a record that cannot be read was cut off while it was written: no runtime was called */
	if (shim_record_load(rt->arena, &rt->dir, &r, NULL) == 0) {
		if (creator_alive(&r))
			return exists(rt, e);
		if (r.mode != HARD_MODE_OBSERVE)
			rc = clear_earlier(rt, &r, e);
		if (rc < 0)
			return rc;
	}
	shim_pin_release(rt->dir.path); /* of a call that was killed */
	for (size_t i = 0; i < AQE_COUNT(stale); i++) {
		if (unlinkat(rt->dir.fd, stale[i], 0) < 0 && errno != ENOENT)
			return aqe_err_set(e, AQE_E_SYS, errno, "remove the stale '%s'", stale[i]);
	}
	return 0;
}

int shim_claim(struct shim_rt *rt, struct aqe_err *e)
{
	int rc = shim_dir_open(rt->arena, &rt->state, rt->name, SHIM_DIR_MAKE, &rt->dir, e);

	if (rc < 0)
		return aqe_err_wrap(e, "container '%s'", rt->av.id);
	rc = take_over(rt, e);
	if (rc < 0)
		shim_dir_done(&rt->dir); /* not ours */
	return rc;
}

/* ---- cgroups ---- */

static bool is_own_group(const char *path, const char *id)
{
	return path && id && path[0] == '/' && aqe_path_is_canonical(path) &&
	       strstr(strrchr(path, '/'), id);
}

static void kill_members(int group)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 20);
	struct aqe_err ignored = AQE_ERR_INIT;
	const char *p;

	if (aqe_fs_read_kernel(group, "cgroup.procs", &b, &ignored) < 0)
		return;
	p = aqe_buf_str(&b);
	for (int i = 0; *p && i < CGROUP_MEMBERS; i++) {
		char number[16];
		size_t n = strcspn(p, "\n");
		uint64_t pid = 0;

		if (n < sizeof(number)) {
			memcpy(number, p, n);
			number[n] = '\0';
			if (aqe_parse_u64(number, INT32_MAX, &pid) && pid > 1 &&
			    (pid_t)pid != getpid())
				(void)kill((pid_t)pid, SIGKILL); /* may have ended already */
		}
		p += n + (p[n] ? 1 : 0);
	}
}

/* `path` is a group below the root of the hierarchies. It stays busy until its dying members are
 * gone. */
static void clear_group(int root, const char *path, bool kill_all)
{
	struct timespec pause = { 0, 10000000 };
	struct aqe_err ignored = AQE_ERR_INIT;
	AQE_AUTO_FD int group = -1;

	if (unlinkat(root, path, AT_REMOVEDIR) == 0 || errno != EBUSY || !kill_all)
		return;
	if (aqe_fs_open_beneath(root, path, O_RDONLY | O_DIRECTORY, 0, &group, &ignored) < 0)
		return;
	for (int i = 0; i < RMDIR_TRIES; i++) {
		kill_members(group);
		if (unlinkat(root, path, AT_REMOVEDIR) == 0 || errno != EBUSY)
			return;
		(void)nanosleep(&pause, NULL); /* a shorter pause does no harm */
	}
}

void shim_claim_clear_cgroup(const char *cgroups_path, const char *id, bool kill_members_too)
{
	char path[PATH_MAX];
	DIR *dir;
	const struct dirent *ent;

	if (!is_own_group(cgroups_path, id))
		return;
	dir = opendir(CGROUP_ROOT);
	if (!dir)
		return;
	clear_group(dirfd(dir), cgroups_path + 1, kill_members_too); /* v2 */
	/* cppcheck-suppress readdirCalled; one thread, one stream */
	for (int i = 0; i < CGROUP_DIRS && (ent = readdir(dir)); i++) {
		/* the links among them name others */
		if (ent->d_type != DT_DIR || ent->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "%s%s", ent->d_name, cgroups_path) >=
			    (int)sizeof(path))
			continue;
		clear_group(dirfd(dir), path, kill_members_too);
	}
	(void)closedir(dir); /* only read from */
}
