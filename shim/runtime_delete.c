/* SPDX-License-Identifier: MIT */
/* `delete` is never refused (pitfall 15): it runs the low-level one, then forgets the container. */
#include <string.h>
#include <time.h>

#include "shim/core/text.h"
#include "shim/early.h"
#include "shim/exit.h"
#include "shim/runtime.h"

#define LOCK_TRIES    200
#define LOCK_PAUSE_NS 10000000

struct ended {
	struct shim_rt *rt;
	struct shim_record rec;
	bool is_known;
};

/* Reads what is going to be forgotten, and no more: the low-level runtime may still fail, and of
 * two calls at once one does, so nothing is locked yet. */
static void look_ahead(void *self)
{
	struct ended *d = self;
	struct shim_rt *rt = d->rt;
	struct aqe_err ignored = AQE_ERR_INIT;

	if (rt->dir.fd < 0 && rt->state.fd >= 0 && rt->name)
		(void)!shim_dir_open(rt->arena, &rt->state, rt->name, SHIM_DIR_READ, &rt->dir,
				     &ignored);
	if (rt->dir.fd >= 0 && !d->is_known)
		d->is_known = shim_record_load(rt->arena, &rt->dir, &d->rec, &ignored) == 0;
}

/* The lock keeps us away from a `create` of the same id that began meanwhile, and from another
 * `delete`, which is done soon. */
static bool lock(const struct shim_rt *rt, struct shim_dir *ret)
{
	struct timespec pause = { 0, LOCK_PAUSE_NS };
	struct aqe_err ignored = AQE_ERR_INIT;
	int rc = AQE_E_REFUSED;

	if (rt->state.fd < 0 || !rt->name)
		return false;
	for (int i = 0; rc == AQE_E_REFUSED && i < LOCK_TRIES; i++) {
		if (i > 0)
			(void)nanosleep(&pause, NULL); /* a shorter pause does no harm */
		rc = shim_dir_open(rt->arena, &rt->state, rt->name, SHIM_DIR_LOCK, ret, &ignored);
	}
	return rc == 0;
}

/* False when the record is that of a container created since we looked. */
static bool is_same(const struct ended *d, const struct shim_dir *dir)
{
	struct aqe_err ignored = AQE_ERR_INIT;
	struct shim_record now = { 0 };

	if (shim_record_load(d->rt->arena, dir, &now, &ignored) < 0)
		return true; /* nobody can use it */
	return d->is_known && now.creator == d->rec.creator &&
	       now.creator_start == d->rec.creator_start;
}

static void forget(struct ended *d)
{
	struct shim_rt *rt = d->rt;
	struct shim_dir dir = SHIM_DIR_INIT;
	struct aqe_err ignored = AQE_ERR_INIT;

	if (!lock(rt, &dir))
		return;
	if (is_same(d, &dir)) {
		if (d->is_known) {
			if (d->rec.mode != HARD_MODE_OBSERVE)
				shim_claim_clear_cgroup(d->rec.cgroups_path, d->rec.id, false);
			shim_audit_stopped(rt, &d->rec, AUDIT_NONE);
			shim_restart_ended(rt, &d->rec);
		}
		(void)!shim_dir_remove(&rt->state, rt->name, &ignored);
	}
	shim_dir_done(&dir);
}

static int run_low(struct ended *d, struct aqe_err *e)
{
	struct shim_rt *rt = d->rt;
	const struct aqe_proc_work ahead = { look_ahead, d };
	char **argv;
	int rc = shim_low_any(rt, e);

	if (rc < 0)
		return rc;
	argv = shim_argv_original(rt->arena, &rt->av, rt->low.path);
	if (!argv)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the command line");
	return shim_low_run(&rt->low, argv, rt->clean, &ahead, e);
}

/* entry.c has found the container's folder and started its runtime already. */
static int await_low(struct ended *d, pid_t child, struct aqe_err *e)
{
	struct shim_rt *rt = d->rt;
	struct aqe_err ignored = AQE_ERR_INIT;

	rt->name = shim_record_name(rt->arena, rt->av.id, shim_argv_global(&rt->av, "root"));
	(void)!shim_state_open(rt->arena, rt->envp, false, &rt->state, &ignored);
	look_ahead(d);
	return shim_low_wait(child, e);
}

int shim_verb_delete(struct shim_rt *rt)
{
	struct ended ended = { .rt = rt };
	struct aqe_err e = AQE_ERR_INIT;
	const pid_t child = shim_early_child();
	int rc = child > 0 ? await_low(&ended, child, &e) : run_low(&ended, &e);

	if (rc < 0)
		return shim_rt_refuse(rt, &e);
	if (rc == 0)
		forget(&ended);
	return rc;
}
