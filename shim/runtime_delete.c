/* SPDX-License-Identifier: MIT */
/* `delete` is never refused (pitfall 15): it runs the low-level one, then forgets the container. */
#include <string.h>

#include "shim/core/text.h"
#include "shim/exit.h"
#include "shim/runtime.h"

/* The lock keeps us away from a `create` of the same id that began meanwhile. */
static void forget(struct shim_rt *rt)
{
	struct shim_record rec = { 0 };
	struct aqe_err ignored = AQE_ERR_INIT;

	if (rt->state.fd < 0 || !rt->name ||
	    shim_dir_open(rt->arena, &rt->state, rt->name, SHIM_DIR_LOCK, &rt->dir, &ignored) < 0)
		return;
	if (shim_record_load(rt->arena, &rt->dir, &rec, &ignored) == 0) {
		if (rec.mode != HARD_MODE_OBSERVE)
			shim_claim_clear_cgroup(rec.cgroups_path, rec.id, false);
		shim_audit_stopped(rt, &rec, AUDIT_NONE);
		shim_restart_ended(rt, &rec);
	}
	(void)!shim_dir_remove(&rt->state, rt->name, &ignored);
}

int shim_verb_delete(struct shim_rt *rt)
{
	struct aqe_err e = AQE_ERR_INIT;
	char **argv;
	int rc = shim_low_any(rt, &e);

	if (rc < 0)
		return shim_rt_refuse(rt, &e);
	argv = shim_argv_original(rt->arena, &rt->av, rt->low.path);
	if (argv)
		rc = shim_low_run(&rt->low, argv, rt->clean, &e);
	else
		rc = aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory for the command line");
	if (rc < 0)
		return shim_rt_refuse(rt, &e);
	if (rc == 0)
		forget(rt);
	return rc;
}
