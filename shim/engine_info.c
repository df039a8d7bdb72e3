/* SPDX-License-Identifier: MIT */
#include "shim/engine_info.h"

#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "shim/core/text.h"

#define ARENA_MAX (16U << 20)

static int from_podman(const struct aqe_json *root, struct shim_info *ret, struct aqe_err *e)
{
	const struct aqe_json *security = aqe_json_at(root, "/host/security");
	struct shim_info info = { .podman = true };
	int rc = aqe_json_get_bool(security, "rootless", &info.rootless, e);
	bool filter = true;

	if (rc < 0)
		return rc;
	if (rc == 0)
		return aqe_err_set(e, AQE_E_UNKNOWN, 0,
				   "the info document has no host.security.rootless");
	rc = aqe_json_get_bool(security, "seccompEnabled", &filter, e);
	if (rc < 0)
		return rc;
	info.no_filter = !filter;
	*ret = info;
	return 0;
}

/* Docker's options are words "name=X[,KEY=VALUE]..."; only the whole name counts. */
static bool has_name(const char *option, const char *name)
{
	return aqe_str_eq(option, name) ||
	       (aqe_starts(option, name) && aqe_starts(option + strlen(name), ","));
}

static int from_docker(const struct aqe_json *options, struct shim_info *ret, struct aqe_err *e)
{
	struct shim_info info = { .no_filter = true };

	if (options->type != AQE_JSON_ARRAY)
		return aqe_err_at(e, AQE_E_MALFORMED, options->line, options->col,
				  "SecurityOptions is no list");
	for (const struct aqe_json *o = options->first; o; o = o->next) {
		const char *word = aqe_json_str(o);

		if (!word)
			return aqe_err_at(e, AQE_E_MALFORMED, o->line, o->col,
					  "an entry of SecurityOptions is no text");
		info.rootless = info.rootless || has_name(word, "name=rootless") ||
				has_name(word, "name=userns");
		if (has_name(word, "name=seccomp") && !aqe_ends(word, "profile=unconfined"))
			info.no_filter = false;
	}
	*ret = info;
	return 0;
}

int shim_engine_info(const char *text, size_t len, struct shim_info *ret, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	struct aqe_json *root;
	int rc;

	if (!a)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	limits.number = 32; /* podman writes ratios with all their digits */
	rc = aqe_json_parse(a, text, len, &limits, &root, e);
	if (rc < 0)
		return rc;
	if (root->type != AQE_JSON_OBJECT)
		return aqe_err_at(e, AQE_E_MALFORMED, root->line, root->col,
				  "not an engine's info document");
	if (aqe_json_get(root, "SecurityOptions"))
		return from_docker(aqe_json_get(root, "SecurityOptions"), ret, e);
	return from_podman(root, ret, e);
}
