/* SPDX-License-Identifier: MIT */
/* `run` is `create`, the checks, `start` and waiting in one process, because a low-level `run` has
 * no moment at which the created process could be looked at. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/core/text.h"
#include "shim/exit.h"
#include "shim/runtime.h"

/* Signals that mean ourselves, or that no process can be sent usefully. */
static const int not_forwarded[] = { SIGCHLD, SIGURG, SIGTTIN, SIGTTOU, SIGPIPE };

static bool wants_terminal(const struct aqe_json *spec)
{
	const struct aqe_json *t = aqe_json_at(spec, "/process/terminal");

	return t && t->type == AQE_JSON_BOOL && t->boolean;
}

/* The low-level `create` hands the terminal's master to a socket; without one there is nobody to
 * relay it. */
static int check_terminal(struct shim_rt *rt, const struct aqe_json *spec, struct aqe_err *e)
{
	if (!wants_terminal(spec) || shim_argv_option(&rt->av, "console-socket"))
		return 0;
	return aqe_err_set(e, AQE_E_REFUSED, 0,
			   "'run' with process.terminal needs --console-socket; set "
			   "process.terminal to false, or use 'create' and 'start' with a socket");
}

static int create_low(struct shim_rt *rt, const struct shim_record *rec,
		      const struct aqe_json *spec, struct aqe_err *e)
{
	struct sigaction plain = { .sa_handler = SIG_DFL };
	char **argv;
	int rc = check_terminal(rt, spec, e);

	if (rc == 0)
		rc = shim_streams_protect(rt, e);
	if (rc < 0)
		return rc;
	argv = shim_prepare_words(rt, rec);
	if (!argv)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the command line");
	/* the container's process becomes our child when its creator ends */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 || sigaction(SIGCHLD, &plain, NULL) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "become a subreaper");
	return shim_low_run(&rt->low, argv, rt->clean, NULL, e);
}

static int start_low(struct shim_rt *rt, struct aqe_err *e)
{
	char **argv = shim_argv_inner(rt->arena, &rt->av, rt->low.path, "start",
				      (const char *const[]){ rt->av.id, NULL });

	if (!argv)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the command line");
	return shim_low_run(&rt->low, argv, rt->clean, NULL, e);
}

static void block_forwarded(sigset_t *ret)
{
	(void)sigfillset(ret);
	for (size_t i = 1; i < AQE_COUNT(not_forwarded); i++)
		(void)sigdelset(ret, not_forwarded[i]);
	(void)sigprocmask(SIG_BLOCK, ret, NULL); /* cannot fail with these arguments */
}

/* Collects children; true and *ret_status when the container's process was among them. */
static bool reap(pid_t init, int *ret_status)
{
	int status = 0;
	bool ended = false;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == init) {
			*ret_status = status;
			ended = true;
		}
	}
	/* no children at all: it was collected elsewhere, which cannot happen; do not wait for it
	 */
	return ended || (pid < 0 && errno == ECHILD);
}

/* Passes signals on until the container's process ends; returns its exit status. */
static int wait_for(pid_t init, const sigset_t *signals)
{
	int status = 0;

	while (!reap(init, &status)) {
		int sig = sigwaitinfo(signals, NULL);

		if (sig > 0 && sig != SIGCHLD)
			(void)kill(init, sig); /* not reaped yet, so the number is still its own */
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* From the created process on. */
static int started(struct shim_rt *rt, struct shim_effect *fx)
{
	struct aqe_err e = AQE_ERR_INIT;
	sigset_t signals;
	int rc;

	block_forwarded(&signals);
	rt->own = true;
	rc = shim_effect_open(rt, fx, &e);
	if (rc == 0) {
		rc = shim_effect_created(rt, fx);
		if (rc != 0)
			return SHIM_EXIT_FAILED; /* refused and destroyed there */
		rc = start_low(rt, &e);
	}
	if (rc != 0) {
		(void)shim_effect_abort(rt, fx->pid); /* ours: always destroyed */
		return rc < 0 ? shim_rt_refuse(rt, &e) : rc;
	}
	rc = shim_effect_started(rt, fx);
	if (rc != 0 || shim_argv_option(&rt->av, "detach"))
		return rc;
	rc = wait_for(fx->pid, &signals);
	if (!shim_argv_option(&rt->av, "keep")) {
		shim_low_destroy(rt, 0);
		shim_audit_stopped(rt, &fx->rec, rc);
	}
	return rc;
}

static int run(struct shim_rt *rt, struct shim_effect *fx)
{
	struct aqe_err e = AQE_ERR_INIT;
	int rc = create_low(rt, &fx->rec, fx->spec, &e);

	if (rc == 0)
		return started(rt, fx);
	shim_low_destroy(rt, 0);
	return rc < 0 ? shim_rt_refuse(rt, &e) : rc;
}

int shim_verb_run(struct shim_rt *rt)
{
	struct shim_effect fx = { .proc_fd = -1 };
	struct hard_policy *policy = NULL;
	int rc = shim_prepare(rt, &fx.rec, &fx.spec, &policy);

	if (rc == SHIM_PREPARED_OBSERVE)
		rc = shim_observe_pass(rt);
	else if (rc == SHIM_EXIT_OK)
		rc = run(rt, &fx);
	shim_effect_done(&fx);
	hard_policy_free(policy);
	return rc;
}
