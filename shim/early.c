/* SPDX-License-Identifier: MIT */
#include "shim/early.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static bool same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/* What follows `start` in `s`, or NULL when it begins otherwise. */
static const char *after(const char *s, const char *start)
{
	while (*start) {
		if (*s++ != *start++)
			return NULL;
	}
	return s;
}

/* ---- environment ---- */

/* "LC_*" admits every name with that start. XDG_RUNTIME_DIR is kept even when empty: it decides
 * where crun and runc keep their state (pitfall 26). */
static const char allowed[][32] = {
	"PATH",
	"HOME",
	"XDG_RUNTIME_DIR",
	"TMPDIR",
	"TZ",
	"LANG",
	"LC_*",
	"DBUS_SESSION_BUS_ADDRESS",
	"GOMAXPROCS",
	"_OCI_SYNCPIPE",
	"_OCI_STARTPIPE",
	"_OCI_ATTACHPIPE",
	"_CONTAINERS_USERNS_CONFIGURED",
	"_CONTAINERS_ROOTLESS_UID",
	"_CONTAINERS_ROOTLESS_GID",
};

size_t shim_early_env_name(const char *entry)
{
	size_t n = 0;

	while (entry[n] && entry[n] != '=')
		n++;
	return entry[n] ? n : 0;
}

static bool admits(const char *name, const char *entry)
{
	while (*name && *name != '*') {
		if (*name++ != *entry++)
			return false;
	}
	return *name == '*' || *entry == '=';
}

bool shim_early_env_ok(const char *entry)
{
	if (!shim_early_env_name(entry))
		return false;
	for (size_t i = 0; i < COUNT(allowed); i++) {
		if (admits(allowed[i], entry))
			return true;
	}
	return false;
}

/* ---- names ---- */

uint64_t shim_early_root_hash(const char *root)
{
	uint64_t hash = 0xcbf29ce484222325;
	size_t n = 0;

	while (root && root[n])
		n++;
	while (n > 1 && root[n - 1] == '/')
		n--;
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)root[i]) * 0x100000001b3;
	return hash;
}

void shim_early_name(const struct shim_early *call, char *ret)
{
	uint64_t hash = shim_early_root_hash(call->root);
	char *p = ret;

	for (const char *s = call->id; *s; s++)
		*p++ = *s;
	*p++ = '@';
	for (unsigned shift = 4 * SHIM_EARLY_HASH_HEX; shift > 0; shift -= 4)
		*p++ = "0123456789abcdef"[hash >> (shift - 4) & 15];
	*p = '\0';
}

/* ---- words ---- */

static const struct {
	char name[16];
	bool has_arg;
} globals[] = {
	{ "--root", true },      { "--log", true },    { "--log-format", true },
	{ "--log-level", true }, { "--debug", false }, { "--systemd-cgroup", false },
};

static const struct {
	char name[8];
	char option[8], letter[4]; /* all that it takes */
	bool signals;              /* one word after the id */
	bool deletes;
} verbs[] = {
	{ "state", "", "", false, false },          { "kill", "--all", "-a", true, false },
	{ "pause", "", "", false, false },          { "resume", "", "", false, false },
	{ "delete", "--force", "-f", false, true },
};

static const char ends[][8] = {
	"TERM", "KILL", "INT",     "QUIT",    "HUP",    "15",      "9",      "2",
	"3",    "1",    "SIGTERM", "SIGKILL", "SIGINT", "SIGQUIT", "SIGHUP",
};

bool shim_early_is_end(const char *signal)
{
	size_t i = 0;

	while (signal && i < COUNT(ends) && !same(signal, ends[i]))
		i++;
	return i < COUNT(ends);
}

/* One option before the verb: moves over its words. */
static bool global(char *const **at, struct shim_early *call)
{
	for (size_t i = 0; i < COUNT(globals); i++) {
		const char *rest = after(**at, globals[i].name);

		if (!rest || (*rest && *rest != '='))
			continue;
		++*at;
		if (!globals[i].has_arg)
			return !*rest;
		if (!*rest) {
			if (!**at)
				return false;
			rest = *(*at)++;
		} else {
			rest++;
		}
		if (i == 0)
			call->root = rest;
		return *rest != '\0';
	}
	return false;
}

/* As oci_id_ok(), but for the long ones. */
static bool is_id(const char *s)
{
	size_t n = 0;

	for (; s[n]; n++) {
		const char c = s[n];
		const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
				   (c >= '0' && c <= '9') || c == '_' || c == '+' || c == '.' ||
				   c == '-';

		if (!plain || n == SHIM_EARLY_ID_MAX)
			return false;
	}
	return n && s[0] != '-' && !same(s, ".") && !same(s, "..");
}

/* Where the verb is, or NULL. */
static char *const *verb_at(char *const *argv, struct shim_early *call)
{
	char *const *at = argv;

	if (!*at++)
		return NULL;
	while (*at && **at == '-') {
		if (!global(&at, call))
			return NULL;
	}
	return *at ? at : NULL;
}

bool shim_early_plan(char *const *argv, struct shim_early *ret)
{
	struct shim_early call = { NULL, NULL, false, false };
	char *const *at = verb_at(argv, &call);
	size_t verb = 0;

	if (!at)
		return false;
	while (*at && verb < COUNT(verbs) && !same(*at, verbs[verb].name))
		verb++;
	if (!*at++ || verb == COUNT(verbs))
		return false;
	while (*at && verbs[verb].option[0] &&
	       (same(*at, verbs[verb].option) || same(*at, verbs[verb].letter)))
		at++;
	if (!*at || !is_id(*at))
		return false;
	call.id = *at++;
	call.ends = verbs[verb].signals && shim_early_is_end(*at);
	call.deletes = verbs[verb].deletes;
	if (*at && verbs[verb].signals && is_id(*at)) /* a signal's name is as plain */
		at++;
	if (*at)
		return false;
	*ret = call;
	return true;
}

/* ---- cgroups ---- */

static const char joining[][8] = { "create", "run", "exec" };

bool shim_early_joins(char *const *argv)
{
	struct shim_early call = { NULL, NULL, false, false };
	char *const *verb = verb_at(argv, &call);
	size_t i = 0;

	while (verb && i < COUNT(joining) && !same(*verb, joining[i]))
		i++;
	return verb && i < COUNT(joining);
}

/* Appends `text` up to `end` and moves both on; false when there is no room for it and a NUL. */
static bool put(char **at, const char *limit, const char *text, char end)
{
	while (*text && *text != end) {
		if (*at + 1 >= limit)
			return false;
		*(*at)++ = *text++;
	}
	**at = '\0';
	return true;
}

/* "/.." begins the path of a group outside the namespace, where there is no file for it. */
static bool goes_up(const char *path)
{
	for (; *path && *path != '\n'; path++) {
		if (after(path, "/.."))
			return true;
	}
	return false;
}

bool shim_early_procs(const char *cgroup, char ret[SHIM_EARLY_PROCS])
{
	const char *limit = ret + SHIM_EARLY_PROCS, *name = cgroup, *path;
	char *at = ret;

	while (*name >= '0' && *name <= '9')
		name++;
	if (name == cgroup || *name++ != ':')
		return false;
	path = name;
	while (*path && *path != ':' && *path != '/' && *path != '\n')
		path++;
	if (path[0] != ':' || path[1] != '/' || goes_up(++path))
		return false;
	if (after(name, "name="))
		name = after(name, "name=");
	return put(&at, limit, SHIM_EARLY_CGROUPS, '\0') &&
	       (*name == ':' || put(&at, limit, "/", '\0')) && put(&at, limit, name, ':') &&
	       put(&at, limit, path, '\n') && put(&at, limit, "/cgroup.procs", '\0');
}
