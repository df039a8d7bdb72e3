/* SPDX-License-Identifier: MIT */
/* The linux section without its limits: namespaces, devices, paths, sysctl, seccomp, cgroup. */
#include "hardening/rewrite.h"

#include <string.h>

#include "hardening/seccomp.h"
#include "shim/core/text.h"

/* ---- namespaces ---- */

/* The entry of a type, and how many there are. */
static struct aqe_json *find_namespace(const struct aqe_json *list, const char *type, size_t *ret_n)
{
	struct aqe_json *found = NULL;

	*ret_n = 0;
	for (struct aqe_json *n = list ? list->first : NULL; n; n = n->next) {
		if (!aqe_str_eq(aqe_json_str(aqe_json_get(n, "type")), type))
			continue;
		if (!found)
			found = n;
		(*ret_n)++;
	}
	return found;
}

/* A namespace joined by path: another container's or one that the engine prepared becomes a new
 * one; the host's was asked for. */
static void judge_path(struct hard_rw *rw, struct aqe_json *entry, const struct hard_namespace *row)
{
	const struct aqe_json *path = aqe_json_get(entry, "path");

	/* a joined namespace breaks both properties, so one waiver alone does not keep it */
	if (!path || (hard_rw_waived(rw, row->prop) && hard_rw_waived(rw, HARD_NAMESPACES)))
		return;
	if (row->prop == HARD_ROOTLESS) {
		hard_rw_refuse(rw, row->prop, path, "a new user namespace",
			       "an existing user namespace, '%s'",
			       hard_rw_quote(rw, aqe_json_str(path)));
		return;
	}
	if (aqe_json_str(path) && hard_rw_host_namespace(rw, row->type, aqe_json_str(path))) {
		hard_rw_refuse(rw, row->prop, path, NULL, "the host's %s namespace, '%s'",
			       row->type, hard_rw_quote(rw, aqe_json_str(path)));
		return;
	}
	aqe_json_remove(entry, "path");
}

static void judge_type(struct hard_rw *rw, struct aqe_json *list, const struct hard_namespace *row)
{
	size_t n;
	struct aqe_json *entry = find_namespace(list, row->type, &n);

	if (n > 1)
		hard_rw_refuse(rw, row->prop, list, NULL, "the %s namespace %zu times", row->type,
			       n);
	else if (entry)
		judge_path(rw, entry, row);
	else if (row->must)
		hard_rw_refuse(rw, row->prop, list ? list : rw->lin, NULL,
			       "no %s namespace: the container shares the host's", row->type);
}

/* Without a user namespace under a root engine a uid inside is that uid on the host. Only the
 * caller can change that: no engine makes mappings by default. */
static void judge_rootless(struct hard_rw *rw, const struct aqe_json *list)
{
	const struct hard_ctx *ctx = rw->ctx;
	const char *file = ctx->policy->files;
	size_t n;

	(void)find_namespace(list, "user", &n);
	if (n || ctx->info_rootless || (ctx->host && ctx->host->in_userns))
		return;
	hard_rw_refuse_fix(
		rw, HARD_ROOTLESS, list ? list : rw->lin,
		hard_rw_fmt(rw,
			    "run it with a rootless engine; or give it a user namespace: "
			    "--userns=auto or --uidmap with podman, userns-remap with "
			    "docker; or add a waiver for 'rootless' to 'waivers' in %s",
			    file && *file ? hard_rw_quote(rw, file) : "the policy"),
		"no user namespace and a root engine: uid %u inside is uid %u of the "
		"host",
		rw->uid, rw->uid);
}

void hard_rw_namespaces(struct hard_rw *rw)
{
	const struct oci_identity *image = rw->ctx->image;
	struct aqe_json *list = aqe_json_get(rw->lin, "namespaces");

	for (const struct aqe_json *n = list ? list->first : NULL; n; n = n->next) {
		const char *type = aqe_json_str(aqe_json_get(n, "type"));

		if (!type || !hard_rule_namespace(type))
			hard_rw_refuse(rw, HARD_NAMESPACES, n, NULL, "a namespace of type '%s'",
				       hard_rw_quote(rw, type));
	}
	for (size_t i = 0; i < HARD_NAMESPACE_TYPES_COUNT; i++)
		judge_type(rw, list, &HARD_NAMESPACE_TYPES[i]);
	judge_rootless(rw, list);
	/* docker's record: the spec of --network host names a path that need not be the host's */
	if (image && aqe_str_eq(image->asked_network, "host"))
		hard_rw_refuse(rw, HARD_NETWORK, list ? list : rw->lin, NULL,
			       "the engine was asked for the host's network");
	if (image && image->asked_privileged)
		hard_rw_refuse(rw, HARD_PRIVILEGED, rw->lin, NULL,
			       "the engine was asked for --privileged");
}

/* ---- devices ---- */

static int64_t number_of(const struct aqe_json *obj, const char *name)
{
	int64_t n = -1;

	(void)aqe_json_to_i64(aqe_json_get(obj, name), 0, INT64_MAX, &n);
	return n;
}

static const struct hard_device *known_device(const struct aqe_json *d)
{
	const char *type = aqe_json_str(aqe_json_get(d, "type"));

	if (!type || !aqe_str_eq(type, "c"))
		return NULL;
	return hard_rule_device('c', number_of(d, "major"), number_of(d, "minor"));
}

/* The nodes every container gets anyway are dropped; the rest was asked for. */
static void judge_nodes(struct hard_rw *rw)
{
	struct aqe_json *nodes = aqe_json_get(rw->lin, "devices");

	for (struct aqe_json *d = nodes ? nodes->first : NULL, *next; d; d = next) {
		const struct hard_device *row = known_device(d);
		const char *path = aqe_json_str(aqe_json_get(d, "path"));

		next = d->next;
		if (row && row->allowed && path && aqe_starts(path, "/dev/") &&
		    aqe_str_eq(path + strlen("/dev/"), row->name))
			aqe_json_detach(d);
		else
			hard_rw_refuse(rw, HARD_DEVICES, d, NULL, "device node '%s'",
				       hard_rw_quote(rw, path));
	}
	if (nodes && nodes->len == 0)
		aqe_json_remove(rw->lin, "devices");
}

static bool judge_rules(struct hard_rw *rw, const struct aqe_json *rules)
{
	bool ok = true;

	for (const struct aqe_json *r = rules ? rules->first : NULL; r; r = r->next) {
		const struct aqe_json *allow = aqe_json_get(r, "allow");

		if ((allow && !allow->boolean) || known_device(r))
			continue;
		hard_rw_refuse(rw, HARD_DEVICES, r, NULL,
			       "a rule that allows devices beyond the engines' defaults");
		ok = false;
	}
	return ok;
}

/* The engines' lists become one rule: deny all. The runtimes add what /dev needs themselves. */
static void set_rules(struct hard_rw *rw, struct aqe_json *resources)
{
	if (!resources)
		return;
	struct aqe_json *rules = aqe_json_new_array(rw->arena);
	struct aqe_json *deny = aqe_json_new_object(rw->arena);

	if (!rules || !deny) {
		rw->nomem = true;
		return;
	}
	hard_rw_set_bool(rw, deny, "allow", false);
	hard_rw_set_str(rw, deny, "access", "rwm");
	hard_rw_append(rw, rules, deny);
	hard_rw_set(rw, resources, "devices", rules);
}

/* ---- paths, sysctl, propagation ---- */

static void add_paths(struct hard_rw *rw, const char *key, const char *const *wanted)
{
	struct aqe_json *list = aqe_json_get(rw->lin, key);

	if (!list) {
		list = aqe_json_new_array(rw->arena);
		hard_rw_set(rw, rw->lin, key, list);
	}
	for (; list && *wanted; wanted++)
		if (!aqe_json_has_str(list, *wanted))
			hard_rw_append(rw, list, aqe_json_new_str(rw->arena, *wanted));
}

static void judge_sysctl(struct hard_rw *rw)
{
	struct aqe_json *list = aqe_json_get(rw->lin, "sysctl");

	for (struct aqe_json *s = list ? list->first : NULL, *next; s; s = next) {
		const char *value = NULL;

		next = s->next;
		switch (hard_rule_sysctl(s->key, aqe_json_str(s), &value)) {
		case HARD_SYSCTL_ALLOWED:
			break;
		case HARD_SYSCTL_ENGINE:
			hard_rw_set_str(rw, list, s->key, value);
			break;
		case HARD_SYSCTL_OTHER:
			hard_rw_refuse(rw, HARD_SYSCTL, s, NULL, "%s = '%s'",
				       hard_rw_quote(rw, s->key),
				       hard_rw_quote(rw, aqe_json_str(s)));
			break;
		}
	}
}

/* Always written: absent, runc leaves the root and the cgroup mounts slaves of the host's;
 * "private" without the r leaves the mounts below the root shared with it under both runtimes. */
static void judge_propagation(struct hard_rw *rw)
{
	const struct aqe_json *v = aqe_json_get(rw->lin, "rootfsPropagation");
	const char *mode = aqe_json_str(v);

	if (!mode || aqe_str_eq(mode, "private") || aqe_str_eq(mode, "rprivate"))
		hard_rw_set_str(rw, rw->lin, "rootfsPropagation", "rprivate");
	else
		hard_rw_refuse(rw, HARD_PROPAGATION, v, NULL, "root propagation '%s'",
			       hard_rw_quote(rw, mode));
}

/* The engine's own group is kept, so that its statistics work. */
static void set_cgroup(struct hard_rw *rw)
{
	const struct aqe_json *v = aqe_json_get(rw->lin, "cgroupsPath");

	if (v || !rw->id || rw->no_cgroup)
		return;
	const char *parent = rw->ctx->container_id ? "/aqe-shim/" : "/aqe/";

	hard_rw_set_str(rw, rw->lin, "cgroupsPath",
			aqe_arena_fmt(rw->arena, "%s%s", parent, rw->id));
}

void hard_rw_linux(struct hard_rw *rw)
{
	hard_rw_namespaces(rw);
	judge_nodes(rw);
	const bool rules_ok = judge_rules(rw, aqe_json_at(rw->lin, "/resources/devices"));

	hard_rw_resources(rw);
	if (rules_ok)
		set_rules(rw, aqe_json_get(rw->lin, "resources"));
	if (!hard_rw_waived(rw, HARD_MASKED_PATHS)) {
		add_paths(rw, "maskedPaths", HARD_MASKED_LIST);
		add_paths(rw, "maskedPaths", HARD_MASKED_EXTRA);
		add_paths(rw, "readonlyPaths", HARD_READONLY_LIST);
	}
	judge_sysctl(rw);
	judge_propagation(rw);
	set_cgroup(rw);
	if (!hard_rw_waived(rw, HARD_SECCOMP) &&
	    !hard_seccomp_is_frozen(aqe_json_get(rw->lin, "seccomp")))
		hard_rw_set(rw, rw->lin, "seccomp", hard_seccomp_frozen(rw->arena));
}
