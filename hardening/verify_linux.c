/* SPDX-License-Identifier: MIT */
#include "hardening/verify_in.h"

#include <string.h>

#include "hardening/seccomp.h"
#include "shim/core/text.h"

/* ---- namespaces (R16) ---- */

/* A fault of one kind of namespace counts against its own property, and against namespaces. */
static void report_ns(struct hard_verifier *v, const struct hard_namespace *kind,
		      const struct aqe_json *at, const char *wanted, const char *found)
{
	if (!found)
		found = "(out of memory)"; /* the report knows, too */
	hard_report_fail(v->r, HARD_NAMESPACES, at, NULL, wanted, "%s", found);
	if (kind && kind->prop != HARD_NAMESPACES)
		hard_report_fail(v->r, kind->prop, at, NULL, wanted, "%s", found);
}

static void check_namespace(struct hard_verifier *v, const struct aqe_json *ns, unsigned *seen)
{
	const struct aqe_json *type =
		hard_verify_member(v, HARD_NAMESPACES, ns, "type", "a kind of namespace");
	const struct hard_namespace *kind = type ? hard_rule_namespace(aqe_json_str(type)) : NULL;
	const struct aqe_json *path = aqe_json_get(ns, "path");
	unsigned bit;

	if (type && !kind)
		hard_report_fail(v->r, HARD_NAMESPACES, type, NULL,
				 "pid, network, ipc, uts, mount, user or cgroup", "%s",
				 hard_verify_quote(v, aqe_json_str(type)));
	/* A path of the runtime's own namespace is the host's; even an empty one makes crun and
	 * runc disagree. */
	if (path)
		report_ns(v, kind, path, "a new namespace, without a path",
			  hard_verify_quote(v, aqe_json_str(path)));
	if (!kind)
		return;
	bit = 1U << (kind - HARD_NAMESPACE_TYPES);
	if (*seen & bit)
		report_ns(v, kind, ns, "each kind once",
			  aqe_arena_fmt(v->r->arena, "%s twice", kind->type));
	*seen |= bit;
}

static void check_namespaces(struct hard_verifier *v)
{
	const struct aqe_json *list =
		hard_verify_need(v, HARD_NAMESPACES, "/linux/namespaces", "a list of namespaces");
	unsigned seen = 0;

	for (const struct aqe_json *ns = list ? list->first : NULL; ns; ns = ns->next)
		check_namespace(v, ns, &seen);
	for (size_t i = 0; i < HARD_NAMESPACE_TYPES_COUNT; i++) {
		const struct hard_namespace *kind = &HARD_NAMESPACE_TYPES[i];

		if (!kind->must || (seen & (1U << i)))
			continue;
		const char *wanted = aqe_arena_fmt(v->r->arena, "a new %s namespace", kind->type);

		report_ns(v, kind, list ? list : v->spec, wanted, "none: the host's is shared");
		hard_report_fail(v->r, HARD_MISSING_FIELD, list ? list : v->spec, NULL, wanted,
				 "none");
	}
}

/* ---- network beyond the namespace ---- */

static void check_network(struct hard_verifier *v)
{
	const struct aqe_json *devices = aqe_json_at(v->spec, "/linux/netDevices");
	const struct aqe_json *classes = aqe_json_at(v->spec, "/linux/resources/network");
	const struct oci_identity *image = v->ctx->image;

	if (devices)
		hard_report_fail(v->r, HARD_NETWORK, devices, NULL, "no host interface",
				 "%zu moved in", devices->len);
	if (classes)
		hard_report_fail(v->r, HARD_NETWORK, classes, NULL,
				 "no class id or priority, which host firewalls may match",
				 "%zu member(s)", classes->len);
	if (image && image->asked_network && aqe_str_eq(image->asked_network, "host"))
		hard_report_fail(v->r, HARD_NETWORK, NULL, "", "a network namespace of its own",
				 "the host's network in the engine's record of this container");
}

/* ---- /proc and /sys (R23) ---- */

static void check_path_list(struct hard_verifier *v, const char *pointer,
			    const char *const *required, const char *wanted)
{
	const struct aqe_json *list = hard_verify_need(v, HARD_MASKED_PATHS, pointer, wanted);

	if (!list)
		return;
	for (const struct aqe_json *p = list->first; p; p = p->next)
		if (!hard_rule_proc_path(aqe_json_str(p)))
			hard_report_fail(v->r, HARD_MASKED_PATHS, p, NULL,
					 "a canonical path below /proc or /sys", "%s",
					 hard_verify_quote(v, aqe_json_str(p)));
	for (; *required; required++)
		if (!aqe_json_has_str(list, *required))
			hard_report_fail(v->r, HARD_MASKED_PATHS, list, NULL, *required, "absent");
}

static void check_sysctl(struct hard_verifier *v)
{
	const struct aqe_json *map = aqe_json_at(v->spec, "/linux/sysctl");

	for (const struct aqe_json *s = map ? map->first : NULL; s; s = s->next)
		if (hard_rule_sysctl(s->key, aqe_json_str(s), NULL) != HARD_SYSCTL_ALLOWED)
			hard_report_fail(v->r, HARD_SYSCTL, s, NULL,
					 "net.ipv4.ping_group_range=0 0 or "
					 "net.ipv4.ip_unprivileged_port_start=0 only",
					 "%s=%s", hard_verify_quote(v, s->key),
					 hard_verify_quote(v, aqe_json_str(s)));
}

/* R26. Any other value is a peer of the host's mounts, or is read in two ways. */
static void check_propagation(struct hard_verifier *v)
{
	static const char *const allowed[] = { "private", "rprivate", NULL };
	const struct aqe_json *value = aqe_json_at(v->spec, "/linux/rootfsPropagation");

	if (value && !aqe_str_in(aqe_json_str(value), allowed))
		hard_report_fail(v->r, HARD_PROPAGATION, value, NULL, "rprivate, or absent", "%s",
				 hard_verify_quote(v, aqe_json_str(value)));
}

/* R31 */
static void check_seccomp(struct hard_verifier *v)
{
	const struct aqe_json *filter =
		hard_verify_need(v, HARD_SECCOMP, "/linux/seccomp", "the frozen filter");

	if (filter)
		hard_seccomp_judge(filter, v->ctx->proofs, v->r);
}

void hard_verify_linux(struct hard_verifier *v)
{
	check_namespaces(v);
	check_network(v);
	check_path_list(v, "/linux/maskedPaths", HARD_MASKED_LIST, "a list of masked paths");
	check_path_list(v, "/linux/readonlyPaths", HARD_READONLY_LIST, "a list of read-only paths");
	check_sysctl(v);
	check_propagation(v);
	check_seccomp(v);
}
