/* SPDX-License-Identifier: MIT */
#include "hardening/rules.h"

#include <string.h>

#include "shim/core/text.h"

#define WORDS(...)                \
	(const char *const[])     \
	{                         \
		__VA_ARGS__, NULL \
	}

/* engines.md section 5, "/etc files" and "extra". */
const struct hard_engine_file HARD_ENGINE_FILES[] = {
	{ "/etc/hostname", HARD_ENGINE_FILE, "hostname", NULL },
	{ "/etc/hosts", HARD_ENGINE_FILE, "hosts", NULL },
	{ "/etc/resolv.conf", HARD_ENGINE_FILE, "resolv.conf", NULL },
	{ "/etc/passwd", HARD_ENGINE_FILE, "passwd", NULL },
	{ "/etc/group", HARD_ENGINE_FILE, "group", NULL },
	{ "/run/.containerenv", HARD_ENGINE_FILE, ".containerenv", NULL },
	{ "/run/secrets", HARD_ENGINE_TREE, "secrets", NULL },
	{ "/run/podman-init", HARD_ENGINE_INIT, NULL,
	  WORDS("/usr/libexec/podman/catatonit", "/usr/lib/podman/catatonit", "/usr/bin/catatonit",
		"/usr/bin/tini", "/usr/bin/dumb-init") },
	{ "/sbin/docker-init", HARD_ENGINE_INIT, NULL,
	  WORDS("/usr/bin/docker-init", "/usr/libexec/docker/docker-init",
		"/usr/libexec/docker/cli-plugins/docker-init", "/usr/bin/tini-static",
		"/usr/bin/tini") },
};
const size_t HARD_ENGINE_FILES_COUNT = AQE_COUNT(HARD_ENGINE_FILES);

/* "/run/secrets/NAME" with one component; anything deeper is no file of an engine. */
static bool is_direct_child(const char *path, const char *dir)
{
	const size_t n = strlen(dir);

	return aqe_starts(path, dir) && path[n] == '/' && path[n + 1] != '\0' &&
	       !strchr(path + n + 1, '/');
}

const struct hard_engine_file *hard_rule_engine_file(const char *destination)
{
	for (size_t i = 0; i < AQE_COUNT(HARD_ENGINE_FILES); i++) {
		const struct hard_engine_file *f = &HARD_ENGINE_FILES[i];

		if (aqe_str_eq(destination, f->destination) ||
		    (f->kind == HARD_ENGINE_TREE && is_direct_child(destination, f->destination)))
			return f;
	}
	return NULL;
}

/* The part of `source` below the directory an engine keeps for container `id`, going by the path's
 * shape: .../<driver>-containers/ID/userdata/REST, .../containers/ID/REST. NULL otherwise. */
static const char *below_engine_dir(const char *source, const char *id)
{
	const size_t n = strlen(id);
	const char *at = strstr(source, id);

	if (n == 0 || !at || at == source || at[-1] != '/' || at[n] != '/')
		return NULL;

	const size_t head = (size_t)(at - source) - 1; /* up to the slash before the id */
	static const char store[] = "-containers", plain[] = "/containers";
	const size_t store_len = sizeof(store) - 1, plain_len = sizeof(plain) - 1;

	if (head > store_len && memcmp(source + head - store_len, store, store_len) == 0) {
		static const char userdata[] = "userdata/";

		if (!aqe_starts(at + n + 1, userdata))
			return NULL;
		return at + n + 1 + strlen(userdata);
	}
	if (head > plain_len && memcmp(source + head - plain_len, plain, plain_len) == 0)
		return at + n + 1;
	return NULL;
}

/* What remains of `source` below one of the directories the engine keeps for this container. */
static const char *below_known_dir(const struct oci_identity *image, const char *source)
{
	for (size_t i = 0; i < image->n_dirs; i++) {
		const size_t n = strlen(image->dirs[i]);

		if (aqe_starts(source, image->dirs[i]) && source[n] == '/')
			return source + n + 1;
	}
	return NULL;
}

/* True when `rest`, a path below the engine's directory, is the file that belongs at `destination`.
 */
static bool names_file(const struct hard_engine_file *f, const char *destination, const char *rest)
{
	const char *const slash = strrchr(rest, '/');
	const char *const base = slash ? slash + 1 : rest;

	if (f->kind == HARD_ENGINE_FILE)
		return aqe_str_eq(rest, f->name);
	if (aqe_str_eq(destination, f->destination)) /* the tree itself */
		return aqe_str_eq(base, f->name);
	/* one file of the tree: .../secrets/NAME */
	const size_t head = strlen(f->name);

	return slash && aqe_str_eq(base, destination + strlen(f->destination) + 1) &&
	       (size_t)(slash - rest) >= head && memcmp(slash - head, f->name, head) == 0 &&
	       ((size_t)(slash - rest) == head || slash[-(ptrdiff_t)head - 1] == '/');
}

bool hard_rule_engine_source(const struct hard_ctx *ctx, const char *id,
			     const struct hard_engine_file *f, const char *destination,
			     const char *source)
{
	const char *rest = NULL;

	if (f->kind == HARD_ENGINE_INIT)
		return aqe_str_in(source, f->sources);
	if (!aqe_path_is_canonical(source))
		return false;
	if (ctx->image)
		rest = below_known_dir(ctx->image, source);
	else if (id)
		rest = below_engine_dir(source, id);
	return rest && names_file(f, destination, rest);
}

/* The id in ".../<driver>-containers/ID/userdata/...", or NULL. */
static const char *id_in_source(const char *source)
{
	static const char store[] = "-containers/", userdata[] = "/userdata/";
	const char *at = source ? strstr(source, store) : NULL;

	if (!at)
		return NULL;
	at += strlen(store);
	if (strspn(at, "0123456789abcdef") != HARD_ID_HEX ||
	    !aqe_starts(at + HARD_ID_HEX, userdata))
		return NULL;
	return at;
}

static const char *id_of_mounts(const struct aqe_json *spec, char buf[HARD_ID_HEX + 1])
{
	const struct aqe_json *mounts = aqe_json_get(spec, "mounts");
	const char *id = NULL;

	for (const struct aqe_json *m = mounts ? mounts->first : NULL; m; m = m->next) {
		const char *one = id_in_source(aqe_json_str(aqe_json_get(m, "source")));

		if (id && one && memcmp(id, one, HARD_ID_HEX) != 0)
			return NULL;
		id = one ? one : id;
	}
	if (!id)
		return NULL;
	memcpy(buf, id, HARD_ID_HEX);
	buf[HARD_ID_HEX] = '\0';
	return buf;
}

const char *hard_rule_container_id(const struct hard_ctx *ctx, const struct aqe_json *spec,
				   char buf[HARD_ID_HEX + 1])
{
	const char *path = aqe_json_str(aqe_json_at(spec, "/linux/cgroupsPath"));
	size_t n;

	if (ctx->container_id)
		return ctx->container_id;
	if (!path)
		return id_of_mounts(spec, buf);
	n = strlen(path);
	if (n < HARD_ID_HEX || !aqe_is_hex(path + n - HARD_ID_HEX, HARD_ID_HEX))
		return NULL;
	memcpy(buf, path + n - HARD_ID_HEX, HARD_ID_HEX + 1);
	return buf;
}

/* Parents under which engines put a container's group. '*' stands for one component that is not
 * ".." and not empty; "prefix" is what the last component has before the id. */
static const struct {
	const char *parent, *prefix;
} cgroup_parents[] = {
	{ "/libpod_parent/", "libpod-" },   /* podman, cgroupfs */
	{ "/libpod_parent/*/", "libpod-" }, /* podman, in a pod */
	{ "machine.slice:libpod:", "" },    /* podman, systemd */
	{ "user.slice:libpod:", "" },
	{ "/docker/", "" },
	{ "system.slice:docker:", "" },
	{ "user.slice:docker:", "" },
	{ "/default/", "" }, /* ctr: the containerd name space */
	{ "/k8s.io/", "" },
	{ "/moby/", "" },
	{ "/kubepods/*/", "" },
	{ "/kubepods/*/*/", "" },
	{ "kubepods*.slice:cri-containerd:", "" },
	{ "kubepods*.slice:crio:", "" },
	{ "/kubepods/*/", "crio-" },
	{ "/kubepods/*/*/", "crio-" },
	{ "/aqe/", "" }, /* our own sandboxes */
	{ "/*/", "" },   /* containerd: /NAMESPACE/ID; only with a known id, see below */
	{ "system.slice:aqe:", "" },
};

/* What follows `pattern` in `s`, or NULL when it does not match. '*' takes everything up to the
 * pattern's next character, at least one byte for a whole component. */
static const char *after_pattern(const char *s, const char *pattern)
{
	for (; *pattern; pattern++) {
		if (*pattern != '*') {
			if (*s++ != *pattern)
				return NULL;
			continue;
		}
		const char stop = pattern[1];

		if (stop == '/' && (*s == '/' || *s == '\0'))
			return NULL;
		while (*s && *s != '/' && *s != ':' && *s != stop)
			s++;
	}
	return s;
}

static bool names_id(const char *s, const char *id)
{
	if (id)
		return aqe_str_eq(s, id);
	return aqe_is_hex(s, HARD_ID_HEX);
}

bool hard_rule_cgroups_path(const char *path, const char *id)
{
	if (path[0] == '/' && !aqe_path_is_canonical(path))
		return false;
	if (path[0] != '/' && (strchr(path, '/') || strstr(path, "..")))
		return false;
	for (size_t i = 0; i < AQE_COUNT(cgroup_parents); i++) {
		const char *rest = after_pattern(path, cgroup_parents[i].parent);

		if (!id && aqe_str_eq(cgroup_parents[i].parent, "/*/"))
			continue; /* any 64 hex digits below any group would do */
		if (rest && aqe_starts(rest, cgroup_parents[i].prefix) &&
		    names_id(rest + strlen(cgroup_parents[i].prefix), id))
			return true;
	}
	return false;
}
