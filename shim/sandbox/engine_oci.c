/* SPDX-License-Identifier: MIT */
/* Engine "oci": no engine at all. aqe-shim is called as an engine would call it; crun or runc below
 * it, as the policy says. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "oci/doc.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/proc.h"
#include "shim/core/text.h"
#include "shim/sandbox/engine.h"
#include "shim/sandbox/image.h"
#include "shim/sandbox/logs.h"
#include "shim/sandbox/rootfs.h"
#include "shim/sandbox/runtime_call.h"
#include "shim/sandbox/spec.h"

#define BUNDLE     "bundle"
#define PID_FILE   "pid"
#define STDIN_NAME "in"
#define OUT_PIPE   "out"
#define ERR_PIPE   "err"
#define RUN_LOG    "runtime.log"

#define CALL_MS    60000 /* one call of the runtime; the supervisor's own limit is shorter */
#define GONE_MS    5000  /* from SIGKILL to the end */
#define OUTPUT_MAX ((size_t)1 << 20)
#define WORDS_MAX  16

/* ---- calling aqe-shim ---- */

struct words {
	const char *v[WORDS_MAX];
	size_t n;
};

static void add(struct words *w, const char *word)
{
	if (w->n + 1 < WORDS_MAX)
		w->v[w->n++] = word;
	w->v[w->n] = NULL;
}

static char *const ENV[] = {
	(char *)(uintptr_t) "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/"
			    "bin:/sbin:/bin",
	NULL
};

/* Runs `aqe-shim --log FILE --log-format json WORDS`; returns its exit status or a negative code.
 */
static int call(struct shim_box *b, const struct words *w, struct aqe_proc_opts *o,
		struct aqe_err *e)
{
	struct words all = { .n = 0 };
	const char *path = NULL, *log = aqe_arena_fmt(b->arena, "%s/" RUN_LOG, b->path);
	int status = 0, rc = shim_engine_shim_path(b->arena, &path, e);

	if (rc < 0)
		return rc;
	if (!log)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	add(&all, "aqe-shim");
	add(&all, "--log");
	add(&all, log);
	add(&all, "--log-format");
	add(&all, "json");
	for (size_t i = 0; i < w->n; i++)
		add(&all, w->v[i]);
	(void)unlinkat(b->fd, RUN_LOG, 0); /* an old message would be taken for a new one */
	o->path = path;
	o->argv = (char *const *)(uintptr_t)all.v;
	o->envp = ENV;
	rc = aqe_proc_run(o, &status, e);
	o->path = NULL; /* its memory is the arena's */
	o->argv = NULL;
	if (rc < 0)
		return rc;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A verb with nothing on its streams. */
static int quiet(struct shim_box *b, const struct words *w, struct aqe_buf *out, struct aqe_err *e)
{
	struct aqe_proc_opts o = AQE_PROC_OPTS_INIT;

	o.in_fd = o.out_fd = o.err_fd = AQE_PROC_NULL;
	o.out = out;
	o.timeout_ms = CALL_MS;
	return call(b, w, &o, e);
}

/* ---- preparing ---- */

static int open_root(const struct shim_plan *p, int *ret, struct aqe_err *e)
{
	*ret = open(p->rootfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret < 0 ? aqe_err_set(e, AQE_E_SYS, errno, "root folder '%.200s'", p->rootfs) : 0;
}

/* Where the agent works, when nobody says: the original's /app, if the image has it. */
static const char *default_workdir(int root, const struct shim_image *img)
{
	struct stat st;

	if (img->workdir)
		return img->workdir;
	return fstatat(root, "app", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) ? "/app"
											  : "/";
}

/* The image's own health check, when the plan has none. */
static void take_health(struct aqe_arena *a, struct shim_plan *p, const struct shim_image *img)
{
	if (p->health || img->health.n < 2 || !aqe_str_eq(img->health.v[0], "CMD-SHELL"))
		return;
	p->health = aqe_arena_dup(a, img->health.v[1]);
	if (img->health_interval_ms >= 1000 && img->health_interval_ms <= UINT32_MAX)
		p->health_interval_ms = (uint32_t)img->health_interval_ms;
	if (img->health_timeout_ms >= 1000 && img->health_timeout_ms <= UINT32_MAX)
		p->health_timeout_ms = (uint32_t)img->health_timeout_ms;
	if (img->health_retries > 0)
		p->health_retries = (uint32_t)img->health_retries;
}

/* Everything that the image decides is resolved here once; a later start changes nothing. */
static int resolve(struct aqe_arena *a, struct shim_plan *p, const struct shim_image *img,
		   struct aqe_err *e)
{
	AQE_AUTO_FD int root = -1;
	struct shim_spec_user user = { 0, 0 };
	struct shim_strs args = { NULL, 0 }, env = { NULL, 0 };
	int rc = open_root(p, &root, e);

	if (rc == 0)
		rc = shim_spec_user(root, p->user ? p->user : img->user, &user, e);
	if (rc == 0)
		rc = shim_spec_args(a, p, img, &args, e);
	if (rc == 0)
		rc = shim_spec_env(a, p, img, &env, e);
	if (rc < 0)
		return rc;
	p->user = aqe_arena_fmt(a, "%u:%u", user.uid, user.gid);
	p->args = args;
	p->env = env;
	if (!p->workdir)
		p->workdir = default_workdir(root, img);
	take_health(a, p, img);
	return p->user ? 0 : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
}

/* The user's spelling of it is made canonical here, once. */
static int judge_rootfs(struct aqe_arena *a, const struct shim_place *place, struct shim_plan *p,
			struct aqe_err *e)
{
	AQE_AUTO_FREE char *path = realpath(p->rootfs, NULL);
	AQE_AUTO_FD int fd = -1;

	if (!path)
		return aqe_err_set(e, errno == ENOENT ? AQE_E_ABSENT : AQE_E_SYS, errno,
				   "--rootfs '%.200s'", p->rootfs);
	p->rootfs = aqe_arena_dup(a, path);
	if (!p->rootfs)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	return shim_rootfs_is_foreign(place, p) ? shim_rootfs_open(place, p->rootfs, &fd, e) : 0;
}

static int prepare(struct aqe_arena *a, const struct shim_place *place, struct shim_plan *p,
		   struct aqe_err *e)
{
	struct shim_image img;
	const char *shim = NULL;
	int rc = shim_engine_shim_path(a, &shim, e);

	memset(&img, 0, sizeof(img));
	if (rc < 0)
		return rc;
	if (geteuid() != 0)
		return aqe_err_set(e, AQE_E_SYS, EPERM,
				   "without an engine only root can make sandboxes; a rootless "
				   "user takes --engine podman");
	if (!p->rootfs && !p->image)
		return aqe_err_set(e, AQE_E_USAGE, 0, "neither --image nor --rootfs is given");
	if (p->rootfs && p->image)
		return aqe_err_set(e, AQE_E_USAGE, 0, "--image and --rootfs exclude each other");
	if (!p->rootfs) {
		rc = shim_image_import(a, place, p->image, &img, e);
		if (rc < 0)
			return rc;
		p->rootfs = img.rootfs;
		p->image_id = aqe_arena_dup(a, img.id);
	} else {
		rc = judge_rootfs(a, place, p, e);
		if (rc < 0)
			return rc;
	}
	return resolve(a, p, &img, e);
}

/* ---- making ---- */

static int make_pipe(struct shim_box *b, const char *name, struct aqe_err *e)
{
	if (mkfifoat(b->fd, name, 0600) < 0 && errno != EEXIST)
		return aqe_err_set(e, AQE_E_SYS, errno, "make the pipe '%s'", name);
	return 0;
}

/* Where the bundle is: in the sandbox's own folder; but that of a user's root folder where the
 * container's root, another user outside, can reach what is mounted in it. */
static const char *bundle_path(const struct shim_box *b)
{
	return shim_rootfs_is_foreign(b->place, &b->plan)
		       ? aqe_arena_fmt(b->arena, "%s/" SHIM_ROOTFS_BUNDLES "/%s", b->place->path,
				       b->name)
		       : aqe_arena_fmt(b->arena, "%s/" BUNDLE, b->path);
}

static int open_bundle(struct shim_box *b, int *ret, struct aqe_err *e)
{
	AQE_AUTO_FD int bundles = -1, bundle = -1, point = -1;
	int rc;

	if (!shim_rootfs_is_foreign(b->place, &b->plan))
		return aqe_fs_ensure_dir(b->fd, BUNDLE, 0700, ret, e);
	rc = aqe_fs_ensure_dir(b->place->fd, SHIM_ROOTFS_BUNDLES, 0711, &bundles, e);
	if (rc == 0)
		rc = aqe_fs_ensure_dir(bundles, b->name, 0711, &bundle, e);
	if (rc == 0)
		rc = aqe_fs_ensure_dir(bundle, SHIM_ROOTFS_POINT, 0711, &point, e);
	if (rc == 0)
		*ret = AQE_TAKE_FD(bundle);
	return rc;
}

static int write_bundle(struct shim_box *b, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf doc = AQE_BUF_INIT(OCI_DOC_LIMITS.bytes);
	AQE_AUTO_FD int fd = -1, root = -1;
	struct shim_plan p = b->plan;
	struct shim_spec_user user = { 0, 0 };
	int rc = open_root(&p, &root, e);

	if (rc == 0)
		rc = shim_spec_user(root, p.user, &user, e);
	if (rc == 0 && shim_rootfs_is_foreign(b->place, &p)) {
		p.rootfs = aqe_arena_fmt(b->arena, "%s/" SHIM_ROOTFS_POINT, bundle_path(b));
		if (!p.rootfs)
			rc = aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	}
	if (rc == 0)
		rc = shim_spec_make(&p, &p.args, &p.env, &user, &doc, e);
	if (rc == 0)
		rc = open_bundle(b, &fd, e);
	if (rc == 0)
		rc = aqe_fs_write_file(fd, "config.json", 0600, doc.p, doc.len, e);
	return rc;
}

static int create(struct shim_box *b, struct aqe_err *e)
{
	int rc = write_bundle(b, e);

	if (rc == 0)
		rc = make_pipe(b, OUT_PIPE, e);
	if (rc == 0)
		rc = make_pipe(b, ERR_PIPE, e);
	/* not /dev/null: crun may give the host's away (engines.md pitfall 37) */
	if (rc == 0)
		rc = aqe_fs_write_file(b->fd, STDIN_NAME, 0600, "", 0, e);
	return rc;
}

/* ---- starting ---- */

/* Both ends: with a reader of its own the container is not killed by SIGPIPE when the monitor dies;
 * it waits at a full pipe for the next monitor. */
static int open_streams(struct shim_box *b, struct aqe_proc_opts *o, struct aqe_err *e)
{
	o->in_fd = openat(b->fd, STDIN_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	o->out_fd = openat(b->fd, OUT_PIPE, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	o->err_fd = openat(b->fd, ERR_PIPE, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (o->in_fd < 0 || o->out_fd < 0 || o->err_fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open the container's streams");
	return 0;
}

static void close_streams(struct aqe_proc_opts *o)
{
	aqe_cleanup_fd(&o->in_fd);
	aqe_cleanup_fd(&o->out_fd);
	aqe_cleanup_fd(&o->err_fd);
}

static int call_create(struct shim_box *b, struct aqe_err *e)
{
	struct aqe_proc_opts o = AQE_PROC_OPTS_INIT;
	struct words w = { .n = 0 };
	const char *bundle = bundle_path(b);
	const char *pid_file = aqe_arena_fmt(b->arena, "%s/" PID_FILE, b->path);
	int rc;

	if (!bundle || !pid_file)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	add(&w, "create");
	add(&w, "--bundle");
	add(&w, bundle);
	add(&w, "--pid-file");
	add(&w, pid_file);
	add(&w, b->name);
	(void)unlinkat(b->fd, PID_FILE, 0); /* of an earlier one */
	rc = open_streams(b, &o, e);
	if (rc == 0) {
		o.timeout_ms = CALL_MS;
		rc = call(b, &w, &o, e);
	}
	close_streams(&o);
	return rc > 0 ? shim_runtime_explain(b->arena, b->fd, RUN_LOG, "create", e) : rc;
}

static int simple(struct shim_box *b, const char *verb, const char *option, const char *last,
		  struct aqe_err *e)
{
	struct words w = { .n = 0 };

	add(&w, verb);
	if (option)
		add(&w, option);
	add(&w, b->name);
	if (last)
		add(&w, last);
	return quiet(b, &w, NULL, e);
}

/* The user's root folder is mounted for this process and the runtime's calls only. */
static int show_root(struct shim_box *b, struct aqe_err *e)
{
	const char *point;

	if (!shim_rootfs_is_foreign(b->place, &b->plan))
		return 0;
	point = aqe_arena_fmt(b->arena, "%s/" SHIM_ROOTFS_POINT, bundle_path(b));
	return point ? shim_rootfs_show(b->place, b->plan.rootfs, point, e)
		     : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
}

static int start(struct shim_box *b, struct aqe_err *e)
{
	int rc = show_root(b, e);

	if (rc == 0)
		rc = call_create(b, e);
	if (rc < 0)
		return rc;
	rc = simple(b, "start", NULL, NULL, e);
	if (rc > 0)
		rc = shim_runtime_explain(b->arena, b->fd, RUN_LOG, "start", e);
	if (rc < 0)
		(void)!simple(b, "delete", "--force", NULL, NULL); /* the cause counts */
	return rc;
}

/* ---- looking ---- */

static int state(struct shim_box *b, struct shim_engine_state *ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(OUTPUT_MAX);
	struct oci_state st = { OCI_STATUS_STOPPED, 0 };
	struct words w = { .n = 0 };
	int rc;

	*ret = (struct shim_engine_state){ .exit_code = -1, .container = b->name };
	add(&w, "state");
	add(&w, b->name);
	rc = quiet(b, &w, &out, e);
	if (rc < 0)
		return rc;
	if (rc > 0)
		return 0; /* it does not know it */
	rc = oci_state_parse(aqe_buf_str(&out), out.len, &st, e);
	if (rc < 0)
		return rc;
	ret->exists = true;
	ret->running = st.status == OCI_STATUS_RUNNING || st.status == OCI_STATUS_PAUSED;
	ret->pid =
		ret->running ? (st.pid > 0 ? (pid_t)st.pid : shim_runtime_pid(b->fd, PID_FILE)) : 0;
	return 0;
}

/* ---- stopping ---- */

static int end_process(struct shim_box *b, pid_t pid, uint32_t grace_ms, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	int rc;

	if (fd < 0)
		return 0; /* gone */
	if (grace_ms > 0) {
		rc = simple(b, "kill", NULL, "TERM", e);
		if (rc < 0)
			return rc;
		if (shim_runtime_ends_within(fd, grace_ms))
			return 0;
	}
	rc = simple(b, "kill", NULL, "KILL", e);
	if (rc < 0)
		return rc;
	return shim_runtime_ends_within(fd, GONE_MS)
		       ? 0
		       : aqe_err_set(e, AQE_E_TIMEOUT, 0, "the container does not end on SIGKILL");
}

static int stop(struct shim_box *b, uint32_t grace_ms, struct aqe_err *e)
{
	struct shim_engine_state st;
	int rc = state(b, &st, e);

	if (rc == 0 && st.running)
		rc = end_process(b, st.pid, grace_ms, e);
	if (rc < 0)
		return rc;
	/* also for one the runtime does not know: half a create may be left */
	rc = simple(b, "delete", "--force", NULL, e);
	return rc > 0 ? shim_runtime_explain(b->arena, b->fd, RUN_LOG, "delete", e) : rc;
}

static int destroy(struct shim_box *b, struct aqe_err *e)
{
	AQE_AUTO_FD int bundles = -1;
	int rc = stop(b, 0, e);

	if (rc < 0 || !shim_rootfs_is_foreign(b->place, &b->plan))
		return rc;
	rc = aqe_fs_open_beneath(b->place->fd, SHIM_ROOTFS_BUNDLES, O_RDONLY | O_DIRECTORY, 0,
				 &bundles, e);
	if (rc == AQE_E_ABSENT)
		return 0;
	return rc < 0 ? rc : aqe_fs_remove_tree(bundles, b->name, e);
}

/* ---- the rest ---- */

static int exec(struct shim_box *b, const struct shim_exec_opts *x, int *ret_status,
		struct aqe_err *e)
{
	struct aqe_proc_opts o = AQE_PROC_OPTS_INIT;
	const char *path = NULL;
	const char **v;
	size_t n = 0, at = 0;
	int status = 0, rc = shim_engine_shim_path(b->arena, &path, e);

	while (x->argv[n])
		n++;
	v = aqe_arena_calloc(b->arena, n + 12, sizeof(*v));
	if (rc < 0 || !v)
		return rc < 0 ? rc : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	v[at++] = "aqe-shim";
	v[at++] = "exec";
	if (x->tty)
		v[at++] = "--tty";
	if (x->workdir) {
		v[at++] = "--cwd";
		v[at++] = x->workdir;
	}
	v[at++] = "--user";
	v[at++] = x->user ? x->user : b->plan.user;
	v[at++] = b->name;
	for (size_t i = 0; i < n; i++)
		v[at++] = x->argv[i];
	o.path = path;
	o.argv = (char *const *)(uintptr_t)v;
	o.envp = ENV;
	rc = aqe_proc_run(&o, &status, e);
	if (rc == 0)
		*ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return rc;
}

static int logs(struct shim_box *b, int *ret_dirfd, const char *const **ret_names, size_t *ret_n,
		struct aqe_err *e)
{
	(void)e;
	*ret_dirfd = b->fd;
	*ret_names = SHIM_LOG_NAMES;
	*ret_n = SHIM_LOG_FILES;
	return 0;
}

const struct shim_engine_ops SHIM_ENGINE_OCI = {
	.name = "oci",
	.prepare = prepare,
	.create = create,
	.start = start,
	.state = state,
	.stop = stop,
	.destroy = destroy,
	.exec = exec,
	.logs = logs,
};
