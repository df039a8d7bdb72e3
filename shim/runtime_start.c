/* SPDX-License-Identifier: MIT */
/* `start`: what the kernel shows of the created process decides, before and after the low-level
 * start signal. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/proc.h"
#include "shim/core/text.h"
#include "shim/egress_start.h"
#include "shim/exit.h"
#include "shim/runtime.h"
#include "shim/runtime_judge.h"

/* The pid from the pid file that `create` was told to write: a file of ours or root's that no other
 * can have written, naming a process younger than the call that created it. */
static pid_t quick_pid(const struct shim_record *r)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(32);
	uint64_t pid = 0, start = 0;

	if (!r->pid_file || shim_rt_read_foreign(r->pid_file, &b, NULL) < 0)
		return 0;
	if (b.len && b.p[b.len - 1] == '\n')
		b.p[b.len - 1] = '\0';
	if (!aqe_parse_u64(aqe_buf_str(&b), INT32_MAX, &pid) || pid < 2)
		return 0;
	if (aqe_proc_start_time((pid_t)pid, &start, NULL) < 0 || start < r->creator_start)
		return 0;
	return (pid_t)pid;
}

static int slow_pid(struct shim_rt *rt, pid_t *ret, struct aqe_err *e)
{
	struct oci_state st = { OCI_STATUS_STOPPED, 0 };
	int rc = shim_low_state(rt, &st, e);

	if (rc < 0)
		return rc;
	if (rc == 0 || st.pid <= 0)
		return aqe_err_set(e, AQE_E_ABSENT, 0, "container '%s' has no process to start",
				   rt->av.id);
	*ret = st.pid;
	return 0;
}

static int open_proc(struct shim_effect *fx, struct aqe_err *e)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)fx->pid);
	fx->proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fx->proc_fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open '%s'", path);
	return 0;
}

/* rec and spec are already there. */
int shim_effect_open(struct shim_rt *rt, struct shim_effect *fx, struct aqe_err *e)
{
	int rc = 0;

	fx->pid = quick_pid(&fx->rec);
	if (fx->pid == 0)
		rc = slow_pid(rt, &fx->pid, e);
	if (rc == 0)
		rc = open_proc(fx, e);
	if (rc == 0)
		rc = shim_rt_context(rt, &fx->rec, &fx->ctx, &fx->policy, e);
	return rc;
}

void shim_effect_done(struct shim_effect *fx)
{
	if (fx->proc_fd >= 0)
		(void)close(fx->proc_fd); /* only read from */
	fx->proc_fd = -1;
	hard_policy_free(fx->policy);
	fx->policy = NULL;
}

typedef int effect_fn(const struct hard_effect *fx, struct hard_report *report, struct aqe_err *e);

/* Properties without a finding are not the kernel's to show: the document decided them. */
static bool holds(struct hard_report *r)
{
	bool found[HARD_PROP_COUNT] = { false };

	for (const struct hard_finding *f = r->first; f; f = f->next)
		found[f->prop] = true;
	for (int p = 0; p < HARD_PROP_COUNT; p++) {
		if (!found[p])
			hard_report_pass(r, (enum hard_prop)p);
	}
	return hard_report_ok(r);
}

static int check(struct shim_rt *rt, struct shim_effect *fx, effect_fn *fn)
{
	const struct hard_effect in = {
		.pid = fx->pid,
		.proc_fd = fx->proc_fd,
		.spec = fx->spec,
		.ctx = &fx->ctx,
		.binds = fx->rec.binds,
		.n_binds = fx->rec.n_binds,
	};
	struct hard_report report;
	struct aqe_err e = AQE_ERR_INIT;
	int rc;

	hard_report_init(&report, rt->arena);
	rc = fn(&in, &report, &e);
	hard_report_waive(&report, fx->policy, fx->rec.agent.type, NULL, fx->ctx.now_s);
	for (int p = 0; p < HARD_PROP_COUNT; p++)
		fx->waived[p] = report.result[p] == HARD_WAIVED ? report.waiver[p] : NULL;
	if (rc == 0 && holds(&report))
		return 0;
	if (!shim_effect_abort(rt, fx->pid))
		return SHIM_EFFECT_RUNNING;
	if (rc < 0) {
		(void)aqe_err_wrap(&e, "check of the created container"); /* filled by fn */
		return shim_rt_refuse(rt, &e);
	}
	return shim_rt_refuse_report(rt, &report);
}

/* A container that already runs is left alone: a second `start` must not cost it its life, and the
 * low-level runtime refuses it. Otherwise it goes before the refusal: a `start` that just fails
 * leaks it in docker and containerd (finding 4). */
bool shim_effect_abort(struct shim_rt *rt, pid_t pid)
{
	struct oci_state st = { OCI_STATUS_STOPPED, 0 };
	struct aqe_err ignored = AQE_ERR_INIT;

	if (rt->low.fd < 0 && shim_low_any(rt, &ignored) < 0)
		return true;
	if (!rt->own && shim_low_state(rt, &st, &ignored) > 0 && st.status != OCI_STATUS_CREATED &&
	    st.status != OCI_STATUS_CREATING)
		return false;
	shim_low_destroy(rt, pid);
	return true;
}

int shim_effect_created(struct shim_rt *rt, struct shim_effect *fx)
{
	struct aqe_err e = AQE_ERR_INIT;
	int rc = check(rt, fx, hard_effect_created);

	if (rc != 0)
		return rc;
	/* the container has its own mounts now */
	shim_pin_release(rt->dir.path);
	rc = shim_audit_started(rt, &fx->rec, fx->waived, &e);
	if (rc == 0 && fx->rec.egress)
		rc = shim_egress_start(rt, fx, &e);
	if (rc == 0)
		return 0;
	if (!shim_effect_abort(rt, fx->pid))
		return SHIM_EFFECT_RUNNING;
	return shim_rt_refuse(rt, &e);
}

int shim_effect_started(struct shim_rt *rt, struct shim_effect *fx)
{
	rt->own = true;
	return check(rt, fx, hard_effect_started);
}

static int start_low(struct shim_rt *rt)
{
	struct aqe_err e = AQE_ERR_INIT;
	char **argv = shim_argv_original(rt->arena, &rt->av, rt->low.path);
	int rc;

	if (argv)
		rc = shim_low_run(&rt->low, argv, rt->clean, NULL, &e);
	else
		rc = aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory for the command line");
	if (rc >= 0)
		return rc;
	(void)shim_effect_abort(rt, 0); /* nothing more can be done */
	return shim_rt_refuse(rt, &e);
}

static int checked_start(struct shim_rt *rt, struct shim_effect *fx)
{
	struct aqe_err e = AQE_ERR_INIT;
	int rc = shim_low_open(fx->rec.runtime, fx->rec.runtime_digest, &rt->low, &e);

	if (rc == 0)
		rc = shim_rt_spec(rt, &fx->spec, &e);
	if (rc == 0)
		rc = shim_effect_open(rt, fx, &e);
	if (rc < 0) {
		(void)shim_effect_abort(rt, fx->pid); /* refused in both cases */
		return shim_rt_refuse(rt, &e);
	}
	rc = shim_effect_created(rt, fx);
	if (rc > 0)
		return rc;
	if (rc == SHIM_EFFECT_RUNNING)
		return start_low(rt);
	rc = start_low(rt);
	return rc ? rc : shim_effect_started(rt, fx);
}

/* A container in the making that nothing can be held to goes first, as in check(). */
static int without_record(struct shim_rt *rt, const struct aqe_err *fault)
{
	struct oci_state st = { OCI_STATUS_STOPPED, 0 };
	struct aqe_err ignored = AQE_ERR_INIT;

	if (!shim_rt_observing(rt) && shim_low_any(rt, &ignored) == 0 &&
	    shim_low_state(rt, &st, &ignored) > 0 && st.status == OCI_STATUS_CREATED)
		shim_low_destroy(rt, st.pid);
	return shim_rt_without_record(rt, fault);
}

int shim_verb_start(struct shim_rt *rt)
{
	struct shim_effect fx = { .proc_fd = -1 };
	struct aqe_err e = AQE_ERR_INIT;
	int rc = shim_rt_record(rt, &fx.rec, &e);

	if (rc < 0)
		return without_record(rt, &e);
	if (fx.rec.mode == HARD_MODE_OBSERVE) {
		shim_audit_observed(rt, NULL, NULL);
		return shim_observe_pass(rt);
	}
	rc = checked_start(rt, &fx);
	shim_effect_done(&fx);
	return rc;
}
