/* SPDX-License-Identifier: MIT */
/* Mode observe: the engine's call goes on as it came; what the profile would have done is a row of
 * the audit log (shim_audit_observed()). Nothing of ours may fail a call or print. */
#include <errno.h>
#include <unistd.h>

#include "shim/runtime.h"

int shim_observe_pass(struct shim_rt *rt)
{
	struct aqe_err e = AQE_ERR_INIT;
	char **argv;

	if (rt->low.fd >= 0 || shim_low_any(rt, &e) == 0) {
		argv = shim_argv_original(rt->arena, &rt->av, rt->low.path);
		/* every descriptor of ours is close-on-exec; the caller's stay as they are */
		if (argv)
			(void)fexecve(rt->low.fd, argv, rt->envp);
		aqe_err_set(&e, AQE_E_SYS, errno, "execute low-level runtime '%s'", rt->low.path);
	}
	return shim_rt_refuse(rt, &e);
}
