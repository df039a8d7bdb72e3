/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/engine.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/core/proc.h"
#include "shim/core/text.h"

static const struct shim_engine_ops *const ENGINES[] = {
	&SHIM_ENGINE_OCI,
	&SHIM_ENGINE_PODMAN,
	&SHIM_ENGINE_DOCKER,
};

const struct shim_engine_ops *shim_engine_find(const char *name)
{
	for (size_t i = 0; name && i < AQE_COUNT(ENGINES); i++) {
		if (aqe_str_eq(ENGINES[i]->name, name))
			return ENGINES[i];
	}
	return NULL;
}

bool shim_engine_is_verdict(const char *msg)
{
	return strstr(msg, "refused: ") && !strstr(msg, "another process is creating this") &&
	       !strstr(msg, "already exists");
}

int shim_engine_shim_path(struct aqe_arena *a, const char **ret, struct aqe_err *e)
{
	static const char *const USUAL[] = { "/usr/local/bin/aqe-shim", "/usr/bin/aqe-shim" };
	const char *from_env = getenv("AQE_SHIM");
	char beside[PATH_MAX];

	if (from_env && from_env[0] == '/') {
		*ret = from_env;
		return 0;
	}
	if (aqe_proc_beside("aqe-shim", beside, sizeof(beside), NULL) == 0 &&
	    access(beside, X_OK) == 0) {
		*ret = aqe_arena_dup(a, beside);
		return *ret ? 0 : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	}
	for (size_t i = 0; i < AQE_COUNT(USUAL); i++) {
		*ret = USUAL[i];
		if (access(USUAL[i], X_OK) == 0)
			return 0;
	}
	return aqe_err_set(e, AQE_E_ABSENT, 0,
			   "no aqe-shim beside this program or in /usr/local/bin: install it, or "
			   "set AQE_SHIM");
}
