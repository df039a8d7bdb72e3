/* SPDX-License-Identifier: MIT */
#include "hardening/inspect_in.h"

#include <string.h>

#include "shim/core/text.h"

static const char rootless[] = "a rootless engine, or a user namespace for its containers";

/* A rootless engine cannot make groups on cgroup v1: every limit is ignored (measured). */
static void check_limits(struct hard_inspector *i)
{
	static const enum hard_prop props[] = { HARD_PIDS_LIMIT, HARD_MEMORY_LIMIT,
						HARD_CPU_LIMIT };
	const struct aqe_json *version =
		hard_inspect_get(i, i->podman ? "/host/cgroupVersion" : "/CgroupVersion");
	const char *text = aqe_json_str(version);

	if (!text || !(aqe_str_eq(text, "v1") || aqe_str_eq(text, "1")))
		return;
	for (size_t k = 0; k < AQE_COUNT(props); k++)
		hard_report_fail(i->v.r, props[k], version, NULL, "cgroup version 2",
				 "version 1, where a rootless engine's limits are ignored");
}

/* Docker's options are words "name=X[,KEY=VALUE]..."; only the whole name counts. */
static bool has_name(const char *option, const char *name)
{
	const size_t n = strlen(name);

	return aqe_starts(option, name) && (option[n] == '\0' || option[n] == ',');
}

static void judge_docker(struct hard_inspector *i)
{
	static const char *const filters[] = { "name=seccomp,profile=builtin",
					       "name=seccomp,profile=default", NULL };
	const struct aqe_json *list =
		hard_inspect_need(i, HARD_ROOTLESS, "/SecurityOptions", rootless);
	bool own_ids = false, filter = false, own_engine = false;

	for (const struct aqe_json *o = list ? list->first : NULL; o; o = o->next) {
		const char *word = aqe_json_str(o);

		own_engine = own_engine || has_name(word, "name=rootless");
		own_ids = own_ids || own_engine || has_name(word, "name=userns");
		if (!has_name(word, "name=seccomp"))
			continue;
		filter = true;
		if (!aqe_str_in(word, filters))
			hard_report_fail(i->v.r, HARD_SECCOMP, o, NULL, "the engine's own filter",
					 "%s", hard_verify_quote(&i->v, word));
	}
	if (list && !own_ids)
		hard_report_fail(i->v.r, HARD_ROOTLESS, list, NULL, rootless,
				 "neither name=rootless nor name=userns");
	if (list && !filter)
		hard_report_fail(i->v.r, HARD_SECCOMP, list, NULL, "name=seccomp", "absent");
	if (own_engine)
		check_limits(i);
}

static bool need_true(struct hard_inspector *i, enum hard_prop prop, const char *pointer,
		      const char *wanted)
{
	const struct aqe_json *v = hard_inspect_need(i, prop, pointer, wanted);

	if (v && !v->boolean)
		hard_report_fail(i->v.r, prop, v, NULL, wanted, "false");
	return v && v->boolean;
}

static void judge_podman(struct hard_inspector *i)
{
	if (need_true(i, HARD_ROOTLESS, "/host/security/rootless", rootless))
		check_limits(i);
	(void)need_true(i, HARD_SECCOMP, "/host/security/seccompEnabled", "seccomp in the kernel");
}

void hard_inspect_info(struct hard_inspector *i)
{
	if (i->podman)
		judge_podman(i);
	else
		judge_docker(i);
}
