/* SPDX-License-Identifier: MIT */
/* The mount list. Every mount of the input is judged first; then a new list is built in a fixed
 * order, parents before children: kernel file systems, /tmp and /run, and below them the engine's
 * files and the policy's mounts. */
#include "hardening/rewrite.h"

#include <string.h>

#include "shim/core/text.h"

/* tmpfs rounds up to whole pages; a size of 0 would mean none. */
#define TMPFS_MIN 4096

enum kind {
	KIND_REFUSED, /* reported, or kept because a waiver covers it */
	KIND_DROP,    /* reported for good, or an engine's default that no hardened container has */
	KIND_KERNEL,
	KIND_TMPFS,
	KIND_ENGINE,
	KIND_POLICY,
};

/* tmpfs that podman adds by itself: --read-only, --systemd. */
static const char *const dropped_tmpfs[] = { "/var/tmp", "/run/lock", "/var/log/journal", NULL };

static const char *member(const struct aqe_json *m, const char *name)
{
	return aqe_json_str(aqe_json_get(m, name));
}

/* R18: the options decide, the type is only a hint. */
static bool is_bind(const struct aqe_json *m)
{
	const struct aqe_json *options = aqe_json_get(m, "options");
	const char *type = member(m, "type");

	if (type && (aqe_str_eq(type, "bind") || aqe_str_eq(type, "rbind")))
		return true;
	for (const struct aqe_json *o = options ? options->first : NULL; o; o = o->next)
		if (aqe_json_str(o) && hard_rule_is_bind_word(aqe_json_str(o)))
			return true;
	return false;
}

static bool has_group(const struct aqe_json *m, enum hard_opt_group group, const char *word)
{
	const struct aqe_json *options = aqe_json_get(m, "options");

	for (const struct aqe_json *o = options ? options->first : NULL; o; o = o->next) {
		const char *s = aqe_json_str(o);

		if (s && hard_rule_option(s) == group && (!word || aqe_str_eq(s, word)))
			return true;
	}
	return false;
}

static bool is_shared(const struct aqe_json *m)
{
	const struct aqe_json *options = aqe_json_get(m, "options");

	for (const struct aqe_json *o = options ? options->first : NULL; o; o = o->next)
		if (aqe_json_str(o) && hard_rule_is_shared_word(aqe_json_str(o)))
			return true;
	return false;
}

/* The size a tmpfs was given, 0 for none. */
static uint64_t asked_size(const struct aqe_json *m)
{
	static const char key[] = "size=";
	const struct aqe_json *options = aqe_json_get(m, "options");
	uint64_t size = 0;

	for (const struct aqe_json *o = options ? options->first : NULL; o; o = o->next)
		if (aqe_json_str(o) && aqe_starts(aqe_json_str(o), key))
			(void)aqe_parse_size(aqe_json_str(o) + sizeof(key) - 1, &size);
	return size;
}

/* ---- refusals ---- */

/* ".../volumes/<64 hex>/_data": podman and docker name anonymous volumes so. */
static bool is_anonymous_volume(const char *source)
{
	static const char tail[] = "/_data";
	static const char head[] = "/volumes/";
	const size_t id = 64, tail_len = sizeof(tail) - 1, head_len = sizeof(head) - 1;
	const size_t n = strlen(source);

	if (n < head_len + id + tail_len || !aqe_ends(source, tail))
		return false;
	const char *name = source + n - tail_len - id;

	return memcmp(name - head_len, head, head_len) == 0 &&
	       strspn(name, "0123456789abcdef") == id;
}

static const char *policy_file(struct hard_rw *rw)
{
	const char *files = rw->ctx->policy->files;

	return files && *files ? hard_rw_quote(rw, files) : "the policy";
}

/* podman's "/etc/hosts" from ".../userdata/hosts" of whichever container: a pod's member gets those
 * of the pod's first container. */
static bool is_foreign_engine_file(const char *source, const char *destination)
{
	static const char dir[] = "/userdata/";
	const struct hard_engine_file *file = hard_rule_engine_file(destination);
	const char *slash = strrchr(source, '/');
	const size_t n = sizeof(dir) - 1;

	return file && file->kind == HARD_ENGINE_FILE && slash &&
	       aqe_str_eq(slash + 1, file->name) && (size_t)(slash + 1 - source) >= n &&
	       memcmp(slash + 1 - n, dir, n) == 0;
}

static enum kind refuse_bind(struct hard_rw *rw, const struct aqe_json *m, const char *source,
			     const char *destination)
{
	const char *why = hard_rule_socket(source);
	const char *from = hard_rw_quote(rw, source), *to = hard_rw_quote(rw, destination);

	/* a rootless engine's files lie beside its socket: that is not what is wrong with them */
	if (why && !is_foreign_engine_file(source, destination))
		hard_rw_refuse(rw, HARD_ENGINE_SOCKET, m, NULL, "'%s' at '%s': %s", from, to, why);
	else if (hard_rule_engine_file(destination))
		hard_rw_refuse_fix(
			rw, HARD_MOUNTS, m,
			"drop -v for this file, and --network container:ID or --pod, which "
			"bring another container's file",
			"'%s' at '%s', which is not a file of this container", from, to);
	else if (is_anonymous_volume(source))
		hard_rw_refuse_fix(rw, HARD_MOUNTS, m,
				   hard_rw_fmt(rw,
					       "build the image without VOLUME, drop -v %s, or "
					       "mount a folder there that the policy lists: "
					       "{\"source\": \"FOLDER\", \"destination\": \"%s\"} "
					       "in 'mounts' of %s, and -v FOLDER:%s",
					       to, to, policy_file(rw), to),
				   "an anonymous volume at '%s': the image's VOLUME, or -v %s, "
				   "asked for it",
				   to, to);
	else
		hard_rw_refuse_fix(rw, HARD_MOUNTS, m,
				   hard_rw_fmt(rw,
					       "drop the mount, or add {\"source\": \"%s\", "
					       "\"destination\": \"%s\"} to 'mounts' in %s",
					       from, to, policy_file(rw)),
				   "a mount of '%s' at '%s'", from, to);
	return KIND_REFUSED;
}

static enum kind refuse_other(struct hard_rw *rw, const struct aqe_json *m, const char *destination)
{
	const char *source = member(m, "source"), *type = member(m, "type");

	if (source && is_bind(m))
		return refuse_bind(rw, m, source, destination);
	hard_rw_refuse(rw, HARD_MOUNTS, m, NULL, "a mount of type '%s' at '%s'",
		       hard_rw_quote(rw, type), hard_rw_quote(rw, destination));
	return KIND_REFUSED;
}

/* ---- judging ---- */

static bool is_repeated(const struct aqe_json *m, const char *destination)
{
	for (const struct aqe_json *o = m->parent->first; o != m; o = o->next)
		if (aqe_str_eq(member(o, "destination"), destination))
			return true;
	return false;
}

/* Podman, docker and CRI bind a private or shareable shm directory of their own; ours takes its
 * place. The host's own /dev/shm was asked for. */
static bool is_engine_shm(const char *source, const char *destination)
{
	return source && aqe_str_eq(destination, "/dev/shm") && aqe_ends(source, "/shm") &&
	       !aqe_str_eq(source, "/dev/shm") && aqe_path_is_canonical(source);
}

static enum kind judge_kernel(struct hard_rw *rw, const struct aqe_json *m,
			      const struct hard_kernel_mount *row)
{
	const char *type = member(m, "type"), *source = member(m, "source");

	if (is_bind(m)
		    ? is_engine_shm(source, row->destination)
		    : type && (aqe_str_eq(type, row->types[0]) || aqe_str_eq(type, row->types[1])))
		return KIND_KERNEL;
	/* no waiver either: nothing may take the place of a kernel file system */
	hard_report_fail(rw->report, HARD_MOUNTS, m, NULL, "the kernel's own file system",
			 "a mount of '%s' at '%s'", hard_rw_quote(rw, source ? source : type),
			 row->destination);
	return KIND_DROP;
}

static enum kind judge_bind(struct hard_rw *rw, const struct aqe_json *m, const char *source,
			    const char *destination)
{
	const struct hard_engine_file *file = hard_rule_engine_file(destination);
	const struct hard_mount *policy = hard_rule_policy_mount(rw->ctx, destination);

	if (policy && aqe_str_eq(policy->source, source)) {
		if (!is_shared(m))
			return KIND_POLICY;
		hard_rw_refuse(rw, HARD_PROPAGATION, m, NULL, "shared or slave propagation");
		return KIND_POLICY;
	}
	if (file && hard_rule_engine_source(rw->ctx, rw->id, file, destination, source)) {
		/* A read-only /run/secrets leaves no room for the mount points of the secrets, and
		 * runc fails; below our /run they have it. The policy's mount takes a file's place.
		 */
		const bool tree = file->kind == HARD_ENGINE_TREE &&
				  aqe_str_eq(destination, file->destination);

		return tree || policy ? KIND_DROP : KIND_ENGINE;
	}
	return refuse_bind(rw, m, source, destination);
}

static enum kind judge(struct hard_rw *rw, const struct aqe_json *m)
{
	const char *destination = member(m, "destination"), *source = member(m, "source");
	const char *type = member(m, "type");
	const struct hard_kernel_mount *kernel;

	/* no waiver covers a list that two runtimes read differently */
	if (!destination || !aqe_path_is_canonical(destination)) {
		hard_report_fail(rw->report, HARD_MOUNTS, m, NULL,
				 "a canonical absolute destination", "'%s'",
				 hard_rw_quote(rw, destination));
		return KIND_DROP;
	}
	if (is_repeated(m, destination)) {
		hard_report_fail(rw->report, HARD_MOUNTS, m, NULL, "one mount on a destination",
				 "a second mount on '%s'", hard_rw_quote(rw, destination));
		return KIND_DROP;
	}
	kernel = hard_rule_kernel_mount(destination);
	if (kernel)
		return judge_kernel(rw, m, kernel);
	if (is_bind(m) && source && !hard_rule_tmpfs(destination))
		return judge_bind(rw, m, source, destination);
	if (!is_bind(m) && type && aqe_str_eq(type, "tmpfs")) {
		if (hard_rule_tmpfs(destination))
			return KIND_TMPFS;
		if (aqe_str_in(destination, dropped_tmpfs))
			return KIND_DROP;
	}
	return refuse_other(rw, m, destination);
}

/* ---- building ---- */

struct build {
	struct hard_rw *rw;
	const struct aqe_json *old;
	struct aqe_json *list;
	size_t fixed; /* mounts at the start whose order is fixed */
};

static const struct aqe_json *find(const struct aqe_json *list, const char *destination)
{
	for (const struct aqe_json *m = list ? list->first : NULL; m; m = m->next)
		if (aqe_str_eq(member(m, "destination"), destination))
			return m;
	return NULL;
}

static struct aqe_json *new_mount(struct hard_rw *rw, const char *destination, const char *type,
				  const char *source)
{
	struct aqe_json *m = aqe_json_new_object(rw->arena);

	if (!m) {
		rw->nomem = true;
		return NULL;
	}
	hard_rw_set_str(rw, m, "destination", destination);
	hard_rw_set_str(rw, m, "type", type);
	hard_rw_set_str(rw, m, "source", source);
	hard_rw_set(rw, m, "options", aqe_json_new_array(rw->arena));
	return m;
}

static void add_option(struct hard_rw *rw, struct aqe_json *m, const char *option)
{
	hard_rw_append(rw, aqe_json_get(m, "options"), aqe_json_new_str(rw->arena, option));
}

/* True when group 5, the owner of terminals, exists in the container's user namespace. */
static bool tty_group_mapped(const struct hard_rw *rw)
{
	const struct aqe_json *maps = aqe_json_get(rw->lin, "gidMappings");
	const struct hard_host *host = rw->ctx->host;
	const uint64_t tty = 5;

	for (const struct aqe_json *m = maps ? maps->first : NULL; m; m = m->next) {
		uint64_t first = 0, size = 0;

		if (aqe_json_to_u64(aqe_json_get(m, "containerID"), UINT32_MAX, &first) &&
		    aqe_json_to_u64(aqe_json_get(m, "size"), UINT32_MAX, &size) && tty >= first &&
		    tty - first < size)
			return true;
	}
	if (maps && maps->len)
		return false;
	if (!host || !host->in_userns)
		return true;
	for (size_t i = 0; i < host->n_gid; i++)
		if (tty >= host->gid_map[i].inside &&
		    tty - host->gid_map[i].inside < host->gid_map[i].size)
			return true;
	return false;
}

static void add_kernel(struct build *b, const struct hard_kernel_mount *row)
{
	struct hard_rw *rw = b->rw;
	const struct aqe_json *old = find(b->old, row->destination);
	struct aqe_json *m;

	if (!old && !row->must)
		return;
	m = new_mount(rw, row->destination, row->types[0], row->sources[0]);
	for (size_t i = 0; m && row->opts.canonical[i]; i++) {
		const char *option = row->opts.canonical[i];
		uint64_t size = 0;

		if (aqe_starts(option, "gid=") && !tty_group_mapped(rw))
			continue;
		/* a smaller tmpfs stays small */
		if (hard_rule_option(option) == HARD_OPT_SIZE &&
		    aqe_parse_size(option + strlen("size="), &size) &&
		    asked_size(old) >= TMPFS_MIN && asked_size(old) < size)
			option = hard_rw_fmt(rw, "size=%lluk",
					     (unsigned long long)(asked_size(old) / 1024));
		add_option(rw, m, option);
	}
	hard_rw_append(rw, b->list, m);
}

static void add_tmpfs(struct build *b, const struct hard_tmpfs_mount *row)
{
	struct hard_rw *rw = b->rw;
	const struct aqe_json *old = find(b->old, row->destination);
	const bool exec = rw->ctx->agent->tmp_exec && aqe_str_eq(row->destination, "/tmp");
	/* the frozen profile itself has no disk figure */
	const uint64_t disk = rw->ctx->agent->disk_bytes ? rw->ctx->agent->disk_bytes
							 : hard_agent_default()->disk_bytes;
	uint64_t size = disk / HARD_TMPFS_SHARES * row->share;
	struct aqe_json *m;

	if (old && hard_rw_waived(rw, HARD_TMPFS)) {
		hard_rw_append(rw, b->list, aqe_json_copy(rw->arena, old));
		return;
	}
	if (asked_size(old) >= TMPFS_MIN && asked_size(old) < size)
		size = asked_size(old);
	m = new_mount(rw, row->destination, "tmpfs", "tmpfs");
	for (size_t i = 0; m && HARD_TMPFS_OPTS.canonical[i]; i++)
		if (!exec || !aqe_str_eq(HARD_TMPFS_OPTS.canonical[i], "noexec"))
			add_option(rw, m, HARD_TMPFS_OPTS.canonical[i]);
	if (!m)
		return;
	add_option(rw, m, hard_rw_fmt(rw, "size=%lluk", (unsigned long long)(size / 1024)));
	add_option(rw, m, hard_rw_fmt(rw, "mode=%s", row->mode));
	/* runc 1.1.5 ignores the mode and takes the image directory's: the owner makes it writable
	 * (hardening.md section 9) */
	add_option(rw, m, hard_rw_fmt(rw, "uid=%u", rw->uid));
	add_option(rw, m, hard_rw_fmt(rw, "gid=%u", rw->gid));
	hard_rw_append(rw, b->list, m);
}

/* Puts a mount behind the fixed ones, by destination: a parent sorts before its children. */
static void insert_sorted(struct build *b, struct aqe_json *m)
{
	const char *destination = member(m, "destination");
	size_t idx = 0;

	for (const struct aqe_json *o = b->list->first; o; o = o->next, idx++)
		if (idx >= b->fixed && strcmp(member(o, "destination"), destination) > 0)
			break;
	if (aqe_json_insert(b->list, idx, m) != 0)
		b->rw->nomem = true;
}

/* Always `bind`, not `rbind`: what is mounted below the source later does not come along. The
 * recursive words only on a writable one, which is the policy's and a directory: there crun 1.8.1
 * drops the plain words in a user namespace, and on a file it cannot apply them ("Not a
 * directory").
 */
static struct aqe_json *new_bind(struct hard_rw *rw, const char *destination, const char *source,
				 bool readonly, bool noexec)
{
	static const char *const recursive[] = { "rnosuid", "rnodev" };
	struct aqe_json *m = new_mount(rw, destination, "bind", source);

	if (!m)
		return NULL;
	add_option(rw, m, readonly ? "ro" : "rw");
	for (size_t i = 0; HARD_BIND_OPTS.canonical[i]; i++)
		add_option(rw, m, HARD_BIND_OPTS.canonical[i]);
	if (noexec)
		add_option(rw, m, "noexec");
	for (size_t i = 0; !readonly && i < AQE_COUNT(recursive); i++)
		add_option(rw, m, recursive[i]);
	if (noexec && !readonly)
		add_option(rw, m, "rnoexec");
	return m;
}

static void add_engine(struct build *b, const struct aqe_json *old)
{
	const char *destination = member(old, "destination");
	const struct hard_engine_file *row = hard_rule_engine_file(destination);
	/* --init's program must run */
	const bool noexec = row->kind != HARD_ENGINE_INIT;
	struct aqe_json *m;

	/* The host's name servers cannot be reached. Without the file every libc asks 127.0.0.1,
	 * and that is the egress service's stub. */
	if (b->rw->ctx->egress && aqe_str_eq(destination, "/etc/resolv.conf"))
		return;
	m = new_bind(b->rw, destination, member(old, "source"), true, noexec);

	if (m)
		insert_sorted(b, m);
}

/* A mount that only a waiver admits: kept, with what can be tightened without changing it. */
static void add_waived(struct build *b, const struct aqe_json *old)
{
	static const struct {
		enum hard_opt_group group;
		const char *word;
		bool bind; /* for binds only */
	} wanted[] = {
		{ HARD_OPT_SUID, "nosuid", false },
		{ HARD_OPT_DEV, "nodev", false },
		{ HARD_OPT_PROP, "rprivate", true },
	};
	struct hard_rw *rw = b->rw;
	struct aqe_json *m = aqe_json_copy(rw->arena, old);

	if (!m || !member(m, "destination")) {
		rw->nomem = rw->nomem || !m;
		return;
	}
	insert_sorted(b, m);
	if (!aqe_json_get(m, "options"))
		hard_rw_set(rw, m, "options", aqe_json_new_array(rw->arena));
	for (size_t i = 0; i < AQE_COUNT(wanted); i++)
		if ((is_bind(m) || !wanted[i].bind) && !has_group(m, wanted[i].group, NULL))
			add_option(rw, m, wanted[i].word);
}

/* The policy's mounts: those the engine was asked for may be read-only, the rest are added. */
static void add_policy(struct build *b)
{
	const struct hard_policy *policy = b->rw->ctx->policy;

	for (size_t i = 0; i < policy->n_mounts; i++) {
		const struct hard_mount *row = &policy->mounts[i];
		const struct aqe_json *old = find(b->old, row->destination);

		if (!hard_rule_mount_applies(row, b->rw->ctx->agent->type))
			continue;
		const bool readonly = row->readonly || (old && has_group(old, HARD_OPT_RW, "ro"));
		const bool noexec = old && has_group(old, HARD_OPT_EXEC, "noexec");
		struct aqe_json *m =
			new_bind(b->rw, row->destination, row->source, readonly, noexec);

		if (m)
			insert_sorted(b, m);
	}
}

void hard_rw_mounts(struct hard_rw *rw)
{
	struct build b = { .rw = rw, .old = aqe_json_get(rw->doc, "mounts") };

	b.list = aqe_json_new_array(rw->arena);
	if (!b.list) {
		rw->nomem = true;
		return;
	}
	for (size_t i = 0; i < HARD_KERNEL_MOUNTS_COUNT; i++)
		add_kernel(&b, &HARD_KERNEL_MOUNTS[i]);
	for (size_t i = 0; i < HARD_TMPFS_MOUNTS_COUNT; i++)
		add_tmpfs(&b, &HARD_TMPFS_MOUNTS[i]);
	b.fixed = b.list->len;
	add_policy(&b);
	for (const struct aqe_json *m = b.old ? b.old->first : NULL; m; m = m->next) {
		switch (judge(rw, m)) {
		case KIND_ENGINE:
			add_engine(&b, m);
			break;
		case KIND_REFUSED:
			add_waived(&b, m);
			break;
		case KIND_DROP:
		case KIND_KERNEL:
		case KIND_TMPFS:
		case KIND_POLICY:
			break; /* built above */
		}
	}
	hard_rw_set(rw, rw->doc, "mounts", b.list);
}

/* ---- root ---- */

/* A bundle's relative root file system (ctr, CRI, a bundle made by hand) named from the top. */
static void set_root_path(struct hard_rw *rw, struct aqe_json *root)
{
	const char *path = member(root, "path");
	const char *bundle = rw->ctx->bundle;

	if (!path || path[0] == '/' || path[0] == '\0' || !bundle)
		return;
	const char *full =
		aqe_arena_fmt(rw->arena, "%s/%s", aqe_str_eq(bundle, "/") ? "" : bundle, path);

	if (!full) {
		rw->nomem = true;
		return;
	}
	if (aqe_path_is_canonical(full))
		hard_rw_set_str(rw, root, "path", full);
}

void hard_rw_root(struct hard_rw *rw)
{
	struct aqe_json *root = aqe_json_get(rw->doc, "root");

	if (!root)
		return;
	set_root_path(rw, root);
	if (!hard_rw_waived(rw, HARD_READONLY_ROOTFS))
		hard_rw_set_bool(rw, root, "readonly", true);
}
