/* SPDX-License-Identifier: MIT */
#include "shim/egress_start.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "netpolicy/policy.h"
#include "shim/aqe/control.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/proc.h"
#include "shim/core/text.h"
#include "shim/env.h"
#include "shim/net_policy.h"
#include "shim/runtime.h"

#define SECTION   "network"
#define WORDS_MAX 40
#define RATES_MAX 100000
#define READY_FD  3
#define LOG_SHOWN 400 /* bytes of its last words in a refusal */

int shim_egress_wanted(const struct hard_policy *p, const char *type, bool *ret, struct aqe_err *e)
{
	struct netpol_policy *net = NULL;
	bool found = false;
	int rc;

	*ret = false;
	for (size_t i = 0; i < p->n_sections && !found; i++)
		found = aqe_str_eq(p->sections[i].key, SECTION);
	if (!found)
		return 0;
	rc = shim_net_policy_build(p, &net, e);
	if (rc == 0)
		*ret = netpol_policy_type(net, type)->access == NETPOL_ACCESS_WHITELISTED;
	netpol_policy_unref(net);
	return rc;
}

/* ---- its command line ---- */

struct words {
	struct aqe_arena *a;
	char *list[WORDS_MAX + 1];
	size_t n;
	bool failed;
};

static void add(struct words *w, const char *name, const char *value)
{
	char *word = value ? aqe_arena_fmt(w->a, "--%s=%s", name, value) : NULL;

	if (!value)
		return;
	if (!word || w->n == WORDS_MAX)
		w->failed = true;
	else
		w->list[w->n++] = word;
}

static const char *in_dir(const struct words *w, const struct shim_rt *rt, const char *name)
{
	return aqe_arena_fmt(w->a, "%s/%s", rt->dir.path, name);
}

static void add_audit(struct words *w, const struct shim_rt *rt)
{
	static const char *const modes[] = { [HARD_AUDIT_OFF] = "off",
					     [HARD_AUDIT_OPTIONAL] = "optional",
					     [HARD_AUDIT_REQUIRED] = "required" };

	add(w, "audit", rt->audit.dir);
	add(w, "audit-mode", modes[rt->audit.mode]);
}

static char **make_words(struct words *w, const struct shim_rt *rt, const struct shim_effect *fx)
{
	char pid[16], ready[16];

	(void)snprintf(pid, sizeof(pid), "%d", (int)fx->pid);
	(void)snprintf(ready, sizeof(ready), "%d", READY_FD);
	w->list[w->n++] = aqe_arena_dup(w->a, "aqe-egress");
	add(w, "netns", pid);
	add(w, "type", fx->rec.agent.type);
	add(w, "container", fx->rec.id);
	add(w, "agent-id", rt->audit.base.agent_id);
	add(w, "image", fx->rec.image_id);
	add(w, "control", in_dir(w, rt, SHIM_CONTROL_SOCKET));
	add(w, "metrics", in_dir(w, rt, SHIM_EGRESS_METRICS));
	add(w, "state",
	    aqe_arena_fmt(w->a, "%s/" SHIM_EGRESS_RATES "/%s", rt->state.path, rt->dir.name));
	add(w, "ready-fd", ready);
	add_audit(w, rt);
	return w->failed || !w->list[0] ? NULL : w->list;
}

/* Where policy and logs of this user are: nothing else of the environment is the service's. */
static char **make_env(struct aqe_arena *a, char *const *envp)
{
	static const char *const names[] = { "PATH", "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME",
					     "XDG_RUNTIME_DIR" };
	char **list = aqe_arena_calloc(a, AQE_COUNT(names) + 1, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; list && i < AQE_COUNT(names); i++) {
		const char *v = shim_env_get(envp, names[i]);

		if (v)
			list[n++] = aqe_arena_fmt(a, "%s=%s", names[i], v);
	}
	return list;
}

/* ---- what was spent ---- */

/* Removes what was written so long ago that it limits nothing: a file is written whenever something
 * is spent, and no limit looks back further than an hour. */
static void prune(int rates)
{
	int fd = openat(rates, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const time_t now = time(NULL);
	const struct dirent *ent;
	struct stat st;

	if (!d && fd >= 0)
		(void)close(fd); /* nothing is pruned this time */
	/* cppcheck-suppress readdirCalled; one thread, one stream */
	for (int i = 0; d && i < RATES_MAX && (ent = readdir(d)); i++) {
		if (fstatat(rates, ent->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) && now - st.st_mtime > SHIM_EGRESS_KEPT_S)
			(void)unlinkat(rates, ent->d_name, 0); /* or by the next start */
	}
	if (d)
		(void)closedir(d); /* only read */
}

static int make_rates(const struct shim_rt *rt, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	int rc = aqe_fs_ensure_dir(rt->state.fd, SHIM_EGRESS_RATES, 0700, &fd, e);

	if (rc == 0)
		prune(fd);
	return rc;
}

/* ---- starting ---- */

struct launch {
	const char *path;
	char **argv, **envp;
	int log, ready; /* the child's ends */
};

/* Puts `fd` at number `at`, kept across exec. */
static void place(int fd, int at)
{
	if (fd == at)
		(void)fcntl(fd, F_SETFD, 0);
	else
		(void)dup2(fd, at);
}

/* The grandchild. Only async-signal-safe calls. */
__attribute__((noreturn)) static void become(const struct launch *l)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (null < 0 || setsid() < 0 || chdir("/") < 0)
		_exit(127);
	(void)umask(077);
	place(null, STDIN_FILENO);
	place(null, STDOUT_FILENO);
	place(l->log, STDERR_FILENO);
	place(l->ready, READY_FD);
	if (close_range(READY_FD + 1, ~0U, 0) < 0)
		_exit(127);
	(void)execve(l->path, l->argv, l->envp);
	_exit(127);
}

/* Twice, so that it is no child of this process, which soon ends or becomes another program. */
static int fork_twice(const struct launch *l, struct aqe_err *e)
{
	pid_t pid = fork(), got;
	int status = 0;

	if (pid == 0) {
		pid = fork();
		if (pid == 0)
			become(l);
		_exit(pid < 0 ? 1 : 0);
	}
	if (pid < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "fork");
	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	return got == pid && status == 0 ? 0 : aqe_err_set(e, AQE_E_SYS, EAGAIN, "fork");
}

/* What it said before it gave up. */
static void last_words(const struct shim_rt *rt, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = openat(rt->dir.fd, SHIM_EGRESS_LOG, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[LOG_SHOWN + 1];
	ssize_t n = fd >= 0 ? read(fd, text, LOG_SHOWN) : 0;

	if (n <= 0) {
		(void)aqe_err_set(e, AQE_E_REFUSED, 0, "the egress service did not start");
		return;
	}
	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	(void)aqe_err_set(e, AQE_E_REFUSED, 0, "the egress service did not start: %s", text);
}

static int wait_ready(const struct shim_rt *rt, int fd, struct aqe_err *e)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte;
	int n;

	do
		n = poll(&p, 1, SHIM_EGRESS_MS);
	while (n < 0 && errno == EINTR);
	if (n > 0 && read(fd, &byte, 1) == 1)
		return 0;
	if (n > 0) { /* it ended */
		last_words(rt, e);
		return (int)e->code;
	}
	return aqe_err_set(e, AQE_E_TIMEOUT, 0, "the egress service did not listen within %d ms",
			   SHIM_EGRESS_MS);
}

int shim_egress_start(struct shim_rt *rt, const struct shim_effect *fx, struct aqe_err *e)
{
	struct words w = { .a = rt->arena };
	char program[PATH_MAX];
	struct launch l = { .path = program,
			    .argv = make_words(&w, rt, fx),
			    .envp = make_env(rt->arena, rt->envp),
			    .log = -1 };
	AQE_AUTO_FD int log = -1, ours = -1, theirs = -1;
	int ends[2], rc = aqe_proc_beside(SHIM_EGRESS_PROGRAM, program, sizeof(program), e);

	if (rc < 0)
		return rc;
	if (!l.argv || !l.envp)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the egress service");
	log = openat(rt->dir.fd, SHIM_EGRESS_LOG,
		     O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (log < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "the egress service's log");
	ours = ends[0];
	theirs = ends[1];
	l.log = log;
	l.ready = theirs;
	rc = make_rates(rt, e);
	if (rc == 0)
		rc = fork_twice(&l, e);
	(void)close(AQE_TAKE_FD(theirs)); /* so that its end shows here */
	return rc < 0 ? rc : wait_ready(rt, ours, e);
}
