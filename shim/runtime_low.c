/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/proc.h"
#include "shim/core/sha256.h"
#include "shim/core/text.h"
#include "shim/runtime.h"

#define LOW_MAX_BYTES  ((uint64_t)256 << 20)
#define STATE_MAX      ((size_t)1 << 20)
#define INNER_LIMIT_MS 30000
#define GONE_LIMIT_MS  10000

/* Where distributions put it, for the verbs that must work without a readable policy. */
static const char *const usual_places[] = { "/usr/bin/crun", "/usr/sbin/runc", "/usr/bin/runc" };

/* An engine that names us as the runtime of ourselves would call for ever. */
static int check_not_self(const struct stat *st, const char *path, struct aqe_err *e)
{
	struct stat self;

	if (stat("/proc/self/exe", &self) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "stat our own program");
	if (self.st_dev == st->st_dev && self.st_ino == st->st_ino)
		return aqe_err_set(e, AQE_E_REFUSED, 0, "low-level runtime '%s' is aqe-shim itself",
				   path);
	return 0;
}

static int check_digest(int fd, const char *digest, const char *path, struct aqe_err *e)
{
	char found[AQE_DIGEST_TEXT];
	int rc = aqe_sha256_fd(fd, LOW_MAX_BYTES, found, e);

	if (rc < 0)
		return aqe_err_wrap(e, "low-level runtime '%s'", path);
	if (!aqe_str_eq(found, digest))
		return aqe_err_set(e, AQE_E_REFUSED, 0,
				   "low-level runtime '%s' has digest %s, the policy pins %s", path,
				   found, digest);
	return 0;
}

int shim_low_open(const char *path, const char *digest, struct shim_low *ret, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	struct stat st;
	int rc;

	if (path[0] != '/')
		return aqe_err_set(e, AQE_E_REFUSED, 0, "low-level runtime '%s' is not absolute",
				   path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return aqe_err_set(e, errno == ENOENT ? AQE_E_ABSENT : AQE_E_SYS, errno,
				   "open low-level runtime '%s'", path);
	rc = aqe_fs_check(fd, AQE_FS_REGULAR | AQE_FS_OWNER | AQE_FS_NO_WRITE, LOW_MAX_BYTES, path,
			  &st, e);
	if (rc < 0)
		return aqe_err_wrap(e, "low-level runtime");
	if (!(st.st_mode & S_IXUSR))
		return aqe_err_set(e, AQE_E_UNTRUSTED, 0, "low-level runtime '%s' is no program",
				   path);
	rc = check_not_self(&st, path, e);
	if (rc == 0 && digest)
		rc = check_digest(fd, digest, path, e);
	if (rc < 0)
		return rc;
	ret->path = path;
	ret->fd = AQE_TAKE_FD(fd);
	return 0;
}

void shim_low_done(struct shim_low *low)
{
	if (low->fd >= 0)
		(void)close(low->fd); /* only read from */
	low->fd = -1;
}

/* The record's link, without reading the record: `kill` and `state` should cost nothing. */
static const char *recorded(struct shim_rt *rt)
{
	struct aqe_err ignored = AQE_ERR_INIT;

	rt->name = shim_record_name(rt->arena, rt->av.id, shim_argv_global(&rt->av, "root"));
	if (!rt->name)
		return NULL;
	if (rt->state.fd < 0 &&
	    shim_state_open(rt->arena, rt->envp, false, &rt->state, &ignored) < 0)
		return NULL;
	return shim_record_runtime(rt->arena, &rt->state, rt->name);
}

static const char *from_policy(struct shim_rt *rt)
{
	struct aqe_err ignored = AQE_ERR_INIT;
	struct hard_policy *policy = NULL;
	const char *path = NULL;

	if (shim_rt_policy(rt, &policy, &ignored) == 0 && policy->runtime_path)
		path = aqe_arena_dup(rt->arena, policy->runtime_path);
	hard_policy_free(policy);
	return path;
}

int shim_low_any(struct shim_rt *rt, struct aqe_err *e)
{
	struct aqe_err ignored = AQE_ERR_INIT;
	const char *path = recorded(rt);

	if (path && shim_low_open(path, NULL, &rt->low, &ignored) == 0)
		return 0;
	path = from_policy(rt);
	if (path && shim_low_open(path, NULL, &rt->low, &ignored) == 0)
		return 0;
	for (size_t i = 0; i < AQE_COUNT(usual_places); i++) {
		if (shim_low_open(usual_places[i], NULL, &rt->low, &ignored) == 0)
			return 0;
	}
	return aqe_err_set(e, AQE_E_ABSENT, 0,
			   "no low-level runtime: name one as \"runtime\" in %s/policy.json",
			   HARD_POLICY_DIR);
}

int shim_low_exec(const struct shim_low *low, char *const *argv, char *const *envp,
		  struct aqe_err *e)
{
	int rc = aqe_proc_cloexec_from(STDERR_FILENO + 1, e);

	if (rc < 0)
		return rc;
	(void)fexecve(low->fd, argv, envp); /* returns only with an error */
	return aqe_err_set(e, AQE_E_SYS, errno, "execute low-level runtime '%s'", low->path);
}

/* The child finds the checked file through its copy of our descriptor, whatever the path names by
 * then. */
static int run(const struct shim_low *low, struct aqe_proc_opts *o, int *ret_status,
	       struct aqe_err *e)
{
	char path[32];
	struct sigaction plain = { .sa_handler = SIG_DFL }, before;
	int rc;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", low->fd);
	/* an engine that ignores SIGCHLD would leave us without an exit status */
	if (sigaction(SIGCHLD, &plain, &before) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "watch children");
	o->path = path;
	rc = aqe_proc_run(o, ret_status, e);
	(void)sigaction(SIGCHLD, &before, NULL); /* cannot fail where it could be set */
	o->path = NULL;                          /* ends with this function */
	return rc;
}

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int shim_low_run(const struct shim_low *low, char *const *argv, char *const *envp,
		 const struct aqe_proc_work *work, struct aqe_err *e)
{
	struct aqe_proc_opts o = AQE_PROC_OPTS_INIT;
	int status = 0;
	int rc = aqe_proc_cloexec_from(STDERR_FILENO + 1, e);

	o.argv = argv;
	o.envp = envp;
	if (work)
		o.work = *work;
	if (rc == 0)
		rc = run(low, &o, &status, e);
	return rc < 0 ? aqe_err_wrap(e, "low-level runtime '%s'", low->path) : exit_status(status);
}

int shim_low_wait(pid_t child, struct aqe_err *e)
{
	int status = 0;
	int rc = aqe_proc_wait(child, &status, e);

	return rc < 0 ? aqe_err_wrap(e, "low-level runtime") : exit_status(status);
}

/* A call of our own: nothing on the engine's streams. *ret_out may be NULL. */
static int inner(struct shim_rt *rt, const char *verb, const char *const *extra,
		 struct aqe_buf *out, struct aqe_err *e)
{
	struct aqe_proc_opts o = AQE_PROC_OPTS_INIT;
	char **argv = shim_argv_inner(rt->arena, &rt->av, rt->low.path, verb, extra);
	int status = 0;
	int rc;

	if (!argv)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for '%s'", verb);
	o.argv = argv;
	o.envp = rt->clean;
	o.in_fd = o.out_fd = o.err_fd = AQE_PROC_NULL;
	o.out = out;
	o.timeout_ms = INNER_LIMIT_MS;
	rc = aqe_proc_cloexec_from(STDERR_FILENO + 1, e);
	if (rc == 0)
		rc = run(&rt->low, &o, &status, e);
	return rc < 0 ? aqe_err_wrap(e, "low-level '%s'", verb) : exit_status(status);
}

int shim_low_state(struct shim_rt *rt, struct oci_state *ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(STATE_MAX);
	int rc = inner(rt, "state", (const char *const[]){ rt->av.id, NULL }, &out, e);

	if (rc != 0)
		return rc < 0 ? rc : 0;
	rc = oci_state_parse(aqe_buf_str(&out), out.len, ret, e);
	return rc < 0 ? aqe_err_wrap(e, "low-level 'state'") : 1;
}

/* A pidfd becomes readable when the process ends, also when nobody has collected it yet. */
static void wait_gone(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	if (pidfd < 0)
		return;
	while (poll(&p, 1, GONE_LIMIT_MS) < 0 && errno == EINTR)
		;
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0U); /* ended in most cases */
}

void shim_low_destroy(struct shim_rt *rt, pid_t pid)
{
	struct aqe_err ignored = AQE_ERR_INIT;
	AQE_AUTO_FD int pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	(void)!inner(rt, "kill", (const char *const[]){ rt->av.id, "KILL", NULL }, NULL, &ignored);
	(void)!inner(rt, "delete", (const char *const[]){ "--force", rt->av.id, NULL }, NULL,
		     &ignored);
	wait_gone(pidfd);
	if (rt->state.fd >= 0 && rt->name)
		(void)!shim_dir_remove(&rt->state, rt->name, &ignored);
}
