/* SPDX-License-Identifier: MIT */
#include "hardening/verify_in.h"

#include <string.h>

#include "shim/core/text.h"

/* No engine makes nearly as many; the order and repetition checks are quadratic. */
#define MOUNTS_MAX 256

static const char *dest_of(const struct aqe_json *mount)
{
	const char *d = aqe_json_str(aqe_json_get(mount, "destination"));

	return d ? d : "";
}

/* R18: the options decide, whatever the type says; crun also takes the type "bind" alone. */
static bool is_bind(const struct aqe_json *mount)
{
	const struct aqe_json *options = aqe_json_get(mount, "options");

	for (const struct aqe_json *o = options ? options->first : NULL; o; o = o->next)
		if (hard_rule_is_bind_word(aqe_json_str(o)))
			return true;
	return aqe_str_eq(aqe_json_str(aqe_json_get(mount, "type")), "bind");
}

static bool is_word(const struct aqe_json *v, const char *const words[2])
{
	const char *s = aqe_json_str(v);

	return s && (aqe_str_eq(s, words[0]) || (words[1] && aqe_str_eq(s, words[1])));
}

/* Type and source of a mount that must not be a bind. */
static void check_kind(struct hard_verifier *v, const struct aqe_json *mount,
		       const char *const types[2], const char *const sources[2],
		       enum hard_prop prop)
{
	const struct aqe_json *type = hard_verify_member(v, prop, mount, "type", types[0]);
	const struct aqe_json *source = hard_verify_member(v, prop, mount, "source", sources[0]);

	if (type && !is_word(type, types))
		hard_report_fail(v->r, prop, type, NULL, types[0], "%s",
				 hard_verify_quote(v, aqe_json_str(type)));
	if (source && !is_word(source, sources))
		hard_report_fail(v->r, prop, source, NULL, sources[0], "%s",
				 hard_verify_quote(v, aqe_json_str(source)));
	if (!is_bind(mount))
		return;
	hard_report_fail(v->r, prop, mount, "/options", types[0],
			 "a bind, which makes the type mean nothing");
	if (aqe_str_eq(dest_of(mount), "/dev"))
		hard_report_fail(v->r, HARD_DEVICES, mount, NULL, "a fresh /dev", "a bind at /dev");
}

/* Octal permission bits without set-id bits, at most `max`. */
static bool is_mode(const char *s, unsigned max)
{
	const size_t n = strlen(s);
	unsigned bits = 0;

	if (n < 3 || n > 5 || strspn(s, "01234567") != n)
		return false;
	for (; *s; s++)
		bits = bits * 8 + (unsigned)(*s - '0');
	return (bits & ~max) == 0;
}

static const char *option_value(const struct aqe_json *mount, enum hard_opt_group group,
				const struct aqe_json **ret_at)
{
	const struct aqe_json *options = aqe_json_get(mount, "options");

	for (const struct aqe_json *o = options ? options->first : NULL; o; o = o->next)
		if (hard_rule_option(aqe_json_str(o)) == group) {
			*ret_at = o;
			return strchr(aqe_json_str(o), '=') + 1;
		}
	return NULL;
}

/* size= of a mount: more than nothing (0 is "no limit") and at most `max`. The bytes, or 0. */
static uint64_t check_size(struct hard_verifier *v, const struct aqe_json *mount, uint64_t max,
			   enum hard_prop prop)
{
	const struct aqe_json *at = NULL;
	const char *text = option_value(mount, HARD_OPT_SIZE, &at);
	uint64_t bytes;

	if (!text)
		return 0;
	if (!aqe_parse_size(text, &bytes) || bytes == 0 || bytes > max) {
		hard_report_fail(v->r, prop, at, NULL,
				 aqe_arena_fmt(v->r->arena, "a size from 1 to %llu bytes",
					       (unsigned long long)max),
				 "%s", hard_verify_quote(v, text));
		return 0;
	}
	return bytes;
}

static void check_mode(struct hard_verifier *v, const struct aqe_json *mount, unsigned max,
		       enum hard_prop prop)
{
	const struct aqe_json *at = NULL;
	const char *text = option_value(mount, HARD_OPT_MODE, &at);

	if (text && !is_mode(text, max))
		hard_report_fail(v->r, prop, at, NULL,
				 aqe_arena_fmt(v->r->arena, "at most mode %o", max), "%s",
				 hard_verify_quote(v, text));
}

/* ---- the classes of mounts ---- */

static void check_kernel(struct hard_verifier *v, const struct aqe_json *mount,
			 const struct hard_kernel_mount *k)
{
	const struct aqe_json *at = NULL;
	const bool dev = aqe_str_eq(k->destination, "/dev");
	const bool pts = aqe_str_eq(k->destination, "/dev/pts");
	const char *gid;

	check_kind(v, mount, k->types, k->sources, HARD_MOUNTS);
	hard_verify_options(v, mount, &k->opts, HARD_MOUNTS);
	(void)check_size(v, mount, HARD_DEV_SIZE_MAX, HARD_MOUNTS); /* only its findings matter */
	check_mode(v, mount, dev ? 0755 : pts ? 0620 : 01777, HARD_MOUNTS);
	gid = option_value(mount, HARD_OPT_GID, &at);
	if (gid && !aqe_str_eq(gid, "5"))
		hard_report_fail(v->r, HARD_MOUNTS, at, NULL, "gid=5, the group of terminals", "%s",
				 hard_verify_quote(v, gid));
}

static void check_owner(struct hard_verifier *v, const struct aqe_json *mount,
			enum hard_opt_group group, const char *id_pointer)
{
	const struct aqe_json *at = NULL;
	const struct aqe_json *id = aqe_json_at(v->spec, id_pointer);
	const char *text = option_value(mount, group, &at);

	if (text && (!id || !aqe_str_eq(text, id->text)))
		hard_report_fail(v->r, HARD_TMPFS, at, NULL, "the process's own id", "%s",
				 hard_verify_quote(v, text));
}

/* R21. Returns the size, for the sum. */
static uint64_t check_tmpfs(struct hard_verifier *v, const struct aqe_json *mount)
{
	static const char *const words[2] = { "tmpfs", NULL };
	const struct hard_agent *agent = v->ctx->agent;
	const struct aqe_json *options = aqe_json_get(mount, "options");

	check_kind(v, mount, words, words, HARD_TMPFS);
	hard_verify_options(v, mount, &HARD_TMPFS_OPTS, HARD_TMPFS);
	check_mode(v, mount, 01777, HARD_TMPFS);
	check_owner(v, mount, HARD_OPT_UID, "/process/user/uid");
	check_owner(v, mount, HARD_OPT_GID, "/process/user/gid");
	/* The frozen profile leaves it open; an agent type decides (agents.tsv). */
	if (agent != hard_agent_profile() && !agent->tmp_exec &&
	    !aqe_json_has_str(options, "noexec"))
		hard_report_fail(v->r, HARD_TMPFS, mount, "/options", "noexec for this agent type",
				 "absent");
	return check_size(v, mount, UINT64_MAX, HARD_TMPFS);
}

static void check_bind_kind(struct hard_verifier *v, const struct aqe_json *mount)
{
	const struct aqe_json *type = hard_verify_member(v, HARD_MOUNTS, mount, "type", "\"bind\"");

	if (type && !aqe_str_eq(aqe_json_str(type), "bind"))
		hard_report_fail(v->r, HARD_MOUNTS, type, NULL, "\"bind\"", "%s",
				 hard_verify_quote(v, aqe_json_str(type)));
	hard_verify_options(v, mount, &HARD_BIND_OPTS, HARD_MOUNTS);
}

static void require_ro(struct hard_verifier *v, const struct aqe_json *mount, const char *wanted)
{
	if (!aqe_json_has_str(aqe_json_get(mount, "options"), "ro"))
		hard_report_fail(v->r, HARD_MOUNTS, mount, "/options", wanted, "a writable mount");
}

static void check_policy_mount(struct hard_verifier *v, const struct aqe_json *mount,
			       const struct hard_mount *m)
{
	const struct aqe_json *source =
		hard_verify_member(v, HARD_MOUNTS, mount, "source", m->source);

	if (source && !aqe_str_eq(aqe_json_str(source), m->source))
		hard_report_fail(v->r, HARD_MOUNTS, source, NULL, m->source, "%s",
				 hard_verify_quote(v, aqe_json_str(source)));
	check_bind_kind(v, mount);
	if (m->readonly)
		require_ro(v, mount, "ro, as the policy says");
}

static void check_engine_file(struct hard_verifier *v, const struct aqe_json *mount,
			      const struct hard_engine_file *f)
{
	const struct aqe_json *source = hard_verify_member(v, HARD_MOUNTS, mount, "source",
							   "the engine's file for this container");

	if (source &&
	    !hard_rule_engine_source(v->ctx, v->id, f, dest_of(mount), aqe_json_str(source)))
		hard_report_fail(v->r, HARD_MOUNTS, source, NULL,
				 "the engine's file for this container", "%s",
				 hard_verify_quote(v, aqe_json_str(source)));
	check_bind_kind(v, mount);
	require_ro(v, mount, "ro, as for every file of the engine");
}

/* R20, by name. The engine's own files live in directories that also hold sockets. */
static void check_socket(struct hard_verifier *v, const struct aqe_json *mount,
			 const struct hard_engine_file *f)
{
	const struct aqe_json *source = aqe_json_get(mount, "source");
	const char *path = aqe_json_str(source);
	const char *why = path ? hard_rule_socket(path) : NULL;

	if (!why || (f && hard_rule_engine_source(v->ctx, v->id, f, dest_of(mount), path)))
		return;
	hard_report_fail(v->r, HARD_ENGINE_SOCKET, source, NULL, "no way to an engine's socket",
			 "%s, %s", hard_verify_quote(v, path), why);
}

static void check_shape(struct hard_verifier *v, const struct aqe_json *mount)
{
	static const char *const mappings[] = { "uidMappings", "gidMappings" };
	const struct aqe_json *dest =
		hard_verify_member(v, HARD_MOUNTS, mount, "destination", "an absolute path");

	if (dest && !aqe_path_is_canonical(aqe_json_str(dest)))
		hard_report_fail(v->r, HARD_MOUNTS, dest, NULL, "a canonical absolute path", "%s",
				 hard_verify_quote(v, aqe_json_str(dest)));
	for (size_t i = 0; i < AQE_COUNT(mappings); i++)
		if (aqe_json_get(mount, mappings[i]))
			hard_report_fail(v->r, HARD_MOUNTS, aqe_json_get(mount, mappings[i]), NULL,
					 "no id-mapped mount", "mappings");
}

static void check_extra(struct hard_verifier *v, const struct aqe_json *mount)
{
	const struct aqe_json *options = aqe_json_get(mount, "options");

	hard_report_fail(v->r, HARD_MOUNTS, mount, NULL,
			 "the policy's mounts, the kernel's and the engine's own files only",
			 "a mount at %s", hard_verify_quote(v, dest_of(mount)));
	for (const struct aqe_json *o = options ? options->first : NULL; o; o = o->next)
		if (hard_rule_is_shared_word(aqe_json_str(o)))
			hard_report_fail(v->r, HARD_PROPAGATION, o, NULL, "private", "%s",
					 aqe_json_str(o));
}

/* The size of a tmpfs of R21, else 0. */
static uint64_t check_mount(struct hard_verifier *v, const struct aqe_json *mount)
{
	const char *dest = dest_of(mount);
	const struct hard_kernel_mount *k = hard_rule_kernel_mount(dest);
	const struct hard_mount *m = hard_rule_policy_mount(v->ctx, dest);
	const struct hard_engine_file *f = hard_rule_engine_file(dest);
	uint64_t size = 0;

	check_shape(v, mount);
	check_socket(v, mount, f);
	if (k)
		check_kernel(v, mount, k);
	else if (hard_rule_tmpfs(dest))
		size = check_tmpfs(v, mount);
	else if (m)
		check_policy_mount(v, mount, m);
	else if (f)
		check_engine_file(v, mount, f);
	else
		check_extra(v, mount);
	return size;
}

/* ---- the list as a whole ---- */

static void check_order(struct hard_verifier *v, const struct aqe_json *list)
{
	for (const struct aqe_json *a = list->first; a; a = a->next)
		for (const struct aqe_json *b = a->next; b; b = b->next) {
			const char *da = dest_of(a), *db = dest_of(b);

			if (aqe_str_eq(da, db))
				hard_report_fail(v->r, HARD_MOUNTS, b, NULL,
						 "one mount at each place", "a second mount at %s",
						 hard_verify_quote(v, db));
			else if (da[0] == '/' && aqe_path_is_canonical(db) &&
				 aqe_path_is_under(da, db))
				hard_report_fail(v->r, HARD_MOUNTS, b, NULL,
						 "parents before children",
						 "%s mounted over the earlier %s",
						 hard_verify_quote(v, db),
						 hard_verify_quote(v, da));
		}
}

static bool has_dest(const struct aqe_json *list, const char *dest)
{
	for (const struct aqe_json *m = list ? list->first : NULL; m; m = m->next)
		if (aqe_str_eq(dest_of(m), dest))
			return true;
	return false;
}

static void report_absent(struct hard_verifier *v, const struct aqe_json *list, enum hard_prop prop,
			  const char *dest)
{
	const char *wanted = aqe_arena_fmt(v->r->arena, "a mount at %s", dest);

	hard_report_fail(v->r, prop, list ? list : v->spec, list ? NULL : "/mounts", wanted,
			 "none");
	hard_report_fail(v->r, HARD_MISSING_FIELD, list ? list : v->spec, list ? NULL : "/mounts",
			 wanted, "none");
}

static void check_presence(struct hard_verifier *v, const struct aqe_json *list)
{
	const struct hard_policy *policy = v->ctx->policy;

	for (size_t i = 0; i < HARD_KERNEL_MOUNTS_COUNT; i++)
		if (HARD_KERNEL_MOUNTS[i].must &&
		    !has_dest(list, HARD_KERNEL_MOUNTS[i].destination))
			report_absent(v, list, HARD_MOUNTS, HARD_KERNEL_MOUNTS[i].destination);
	for (size_t i = 0; i < HARD_TMPFS_MOUNTS_COUNT; i++)
		if (!has_dest(list, HARD_TMPFS_MOUNTS[i].destination))
			report_absent(v, list, HARD_TMPFS, HARD_TMPFS_MOUNTS[i].destination);
	for (size_t i = 0; i < policy->n_mounts; i++)
		if (hard_rule_mount_applies(&policy->mounts[i], v->ctx->agent->type) &&
		    !has_dest(list, policy->mounts[i].destination))
			report_absent(v, list, HARD_MOUNTS, policy->mounts[i].destination);
}

static void check_list(struct hard_verifier *v)
{
	const struct aqe_json *list = aqe_json_get(v->spec, "mounts");
	const uint64_t most =
		v->ctx->agent->disk_bytes ? v->ctx->agent->disk_bytes : v->ctx->agent->memory_bytes;
	uint64_t sum = 0;

	check_presence(v, list);
	if (!list)
		return;
	if (list->len > MOUNTS_MAX) {
		hard_report_fail(v->r, HARD_MOUNTS, list, NULL, "at most 256 mounts", "%zu",
				 list->len);
		return;
	}
	for (const struct aqe_json *m = list->first; m; m = m->next) {
		const uint64_t size = check_mount(v, m);

		sum = size > UINT64_MAX - sum ? UINT64_MAX : sum + size;
	}
	check_order(v, list);
	if (sum > most)
		hard_report_fail(v->r, HARD_TMPFS, list, NULL,
				 aqe_arena_fmt(v->r->arena,
					       "/tmp and /run together at most %llu bytes",
					       (unsigned long long)most),
				 "%llu bytes", (unsigned long long)sum);
}

/* ---- root ---- */

/* Shapes of root.path in the engines' stores (engines.md section 3). */
static bool is_store_path(const char *path)
{
	static const struct {
		const char *before, *after; /* around one component that is an id */
	} shapes[] = {
		{ "/overlay/", "/merged" },
		{ "/overlay2/", "/merged" },
		{ "/fuse-overlayfs/", "/merged" },
		{ "/vfs/dir/", "" },
		{ "/btrfs/subvolumes/", "" },
		{ "/zfs/graph/", "" },
		{ "/rootfs/overlayfs/", "" },
		{ "/io.containerd.runtime.v2.task/moby/", "/rootfs" },
		{ "/io.containerd.runtime.v2.task/k8s.io/", "/rootfs" },
		{ "/io.containerd.runtime.v2.task/default/", "/rootfs" },
	};

	for (size_t i = 0; i < AQE_COUNT(shapes); i++) {
		const char *id = strstr(path, shapes[i].before);
		size_t n;

		if (!id)
			continue;
		id += strlen(shapes[i].before);
		n = strcspn(id, "/");
		if (n >= 16 && strspn(id, "0123456789abcdef") == n &&
		    aqe_str_eq(id + n, shapes[i].after))
			return true;
	}
	return false;
}

static void check_root_path(struct hard_verifier *v, const char *path, const struct aqe_json *at)
{
	const struct hard_ctx *ctx = v->ctx;
	const bool known = ctx->image && ctx->image->known; /* compared with the store already */

	if (!aqe_path_is_canonical(path) || aqe_path_is_under(path, "/proc")) {
		hard_report_fail(v->r, HARD_READONLY_ROOTFS, at, NULL,
				 "a canonical absolute path in the engine's storage", "%s",
				 hard_verify_quote(v, path));
		return;
	}
	if (!known && !is_store_path(path) &&
	    !(ctx->bundle && !aqe_str_eq(path, ctx->bundle) &&
	      aqe_path_is_under(path, ctx->bundle)))
		hard_report_fail(v->r, HARD_READONLY_ROOTFS, at, NULL,
				 "a path in the engine's storage", "%s",
				 hard_verify_quote(v, path));
	for (size_t i = 0; i < ctx->policy->n_mounts; i++) {
		const char *source = ctx->policy->mounts[i].source;

		if (aqe_path_is_under(path, source) || aqe_path_is_under(source, path))
			hard_report_fail(v->r, HARD_READONLY_ROOTFS, at, NULL,
					 "a path apart from the policy's mounts", "%s",
					 hard_verify_quote(v, path));
	}
}

static void check_root(struct hard_verifier *v)
{
	const struct aqe_json *readonly =
		hard_verify_need(v, HARD_READONLY_ROOTFS, "/root/readonly", "true");
	const struct aqe_json *path =
		hard_verify_need(v, HARD_READONLY_ROOTFS, "/root/path", "an absolute path");

	if (readonly && !(readonly->type == AQE_JSON_BOOL && readonly->boolean))
		hard_report_fail(v->r, HARD_READONLY_ROOTFS, readonly, NULL, "true", "false");
	if (path)
		check_root_path(v, aqe_json_str(path), path);
}

void hard_verify_mounts(struct hard_verifier *v)
{
	check_root(v);
	check_list(v);
}
