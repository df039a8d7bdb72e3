/* SPDX-License-Identifier: MIT */
/* The process of an `exec`. It gets nothing from the container it joins: capabilities,
 * no_new_privileges, user and limits are those of its own document (engines.md finding 1), so it is
 * rewritten like the main process and judged by the same rules, in the container's own document. */
#include "hardening/rewrite.h"

#include <string.h>

#include "shim/core/text.h"

/* The container's profile or label, and no other: a caller may not choose a weaker one. */
static void set_lsm(struct hard_rw *rw, const char *name)
{
	const struct aqe_json *own = aqe_json_get(aqe_json_get(rw->container, "process"), name);
	const struct aqe_json *asked = aqe_json_get(rw->process, name);

	if (!asked) {
		if (own)
			hard_rw_set_str(rw, rw->process, name, aqe_json_str(own));
		return;
	}
	if (!own || !aqe_str_eq(aqe_json_str(own), aqe_json_str(asked)))
		hard_rw_refuse(rw, HARD_LSM, asked, "the container's own", "'%s'",
			       hard_rw_quote(rw, aqe_json_str(asked)));
}

/* The agent's ids, as the container's own process has them; the policy's when it says nothing. */
static uint32_t own_id(const struct hard_rw *rw, const char *pointer, uint32_t otherwise)
{
	uint64_t id = 0;

	if (!aqe_json_to_u64(aqe_json_at(rw->container, pointer), UINT32_MAX, &id) || id == 0)
		return otherwise;
	return (uint32_t)id;
}

static void run_steps(struct hard_rw *rw)
{
	const struct hard_policy *policy = rw->ctx->policy;

	aqe_json_remove(aqe_json_get(rw->doc, "user"), "username");
	hard_rw_schema(rw, OCI_DOC_PROCESS);
	hard_rw_capabilities(rw);
	hard_rw_set_bool(rw, rw->process, "noNewPrivileges", true);
	hard_rw_user(rw, own_id(rw, "/process/user/uid", policy->uid),
		     own_id(rw, "/process/user/gid", policy->gid));
	hard_rw_command(rw);
	hard_rw_rlimits(rw);
	set_lsm(rw, "apparmorProfile");
	set_lsm(rw, "selinuxLabel");
}

/* Verifies the container's document with this process in place of its own, and takes over what is
 * found about the process: ids that are mapped nowhere or to the host's root, for one. */
static int judge_in_container(struct hard_rw *rw, struct aqe_err *e)
{
	static const char place[] = "/process";
	struct aqe_json *spec = aqe_json_copy(rw->arena, rw->container);
	struct hard_report all;

	hard_report_init(&all, rw->arena);
	hard_rw_set(rw, spec, "process", aqe_json_copy(rw->arena, rw->doc));
	int rc = hard_rw_done(rw, e);
	if (rc)
		return rc;
	rc = hard_verify(rw->ctx, spec, &all, e);
	if (rc)
		return rc;
	for (const struct hard_finding *f = all.first; f; f = f->next) {
		const char *rest = f->pointer + strlen(place);

		if (all.result[f->prop] == HARD_WAIVED || !aqe_starts(f->pointer, place) ||
		    (*rest != '/' && *rest != '\0'))
			continue;
		hard_rw_adopt(rw, f, rest);
	}
	return 0;
}

/* two documents and the usual five: NOLINTNEXTLINE(readability-function-size) */
int hard_exec_rewrite(const struct hard_ctx *ctx, struct aqe_arena *arena,
		      const struct aqe_json *spec, const struct aqe_json *process,
		      struct hard_report *report, struct aqe_json **ret, struct aqe_err *e)
{
	struct hard_rw rw;

	int rc = hard_rw_init(&rw, ctx, arena, aqe_json_copy(arena, process), report, e);
	if (rc)
		return rc;
	rw.container = spec;
	rw.process = rw.doc;
	run_steps(&rw);
	rc = hard_rw_done(&rw, e);
	if (rc)
		return rc;
	if (hard_rw_settle(&rw)) {
		rc = judge_in_container(&rw, e);
		if (!rc)
			rc = hard_rw_done(&rw, e);
		if (rc)
			return rc;
	}
	if (hard_rw_settle(&rw))
		*ret = rw.doc;
	return 0;
}
