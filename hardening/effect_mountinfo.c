/* SPDX-License-Identifier: MIT */
/* mountinfo and cgroup lines: fields separated by one blank, names with octal escapes. */
#include <string.h>

#include "hardening/effect_parse.h"
#include "shim/core/text.h"

/* Cuts the next field off `*p`, in place; NULL at the end. A field may be empty: a mount made with
 * an empty source shows two blanks. */
static char *field(char **p)
{
	char *start = *p, *blank;

	if (!start)
		return NULL;
	blank = strchr(start, ' ');
	if (blank)
		*blank = '\0';
	*p = blank ? blank + 1 : NULL;
	return start;
}

static bool octal3(const char *s)
{
	return s[0] >= '0' && s[0] <= '3' && s[1] >= '0' && s[1] <= '7' && s[2] >= '0' &&
	       s[2] <= '7';
}

/* Decodes \040 and the like in place. The kernel escapes blank, tab, newline, backslash and '#'; a
 * lone backslash or an escaped NUL is nothing it would write. */
static bool unescape(char *s)
{
	char *out = s;

	for (; *s; s++) {
		if (*s != '\\') {
			*out++ = *s;
			continue;
		}
		if (!octal3(s + 1) || memcmp(s + 1, "000", 3) == 0)
			return false;
		*out++ = (char)(((s[1] - '0') << 6) | ((s[2] - '0') << 3) | (s[3] - '0'));
		s += 3;
	}
	*out = '\0';
	return true;
}

unsigned hard_fx_mount_flag(const char *option)
{
	static const struct {
		const char *name;
		unsigned flag;
	} rows[] = {
		{ "ro", HARD_FX_RO },         { "rro", HARD_FX_RO },
		{ "nosuid", HARD_FX_NOSUID }, { "rnosuid", HARD_FX_NOSUID },
		{ "nodev", HARD_FX_NODEV },   { "rnodev", HARD_FX_NODEV },
		{ "noexec", HARD_FX_NOEXEC }, { "rnoexec", HARD_FX_NOEXEC },
	};
	size_t i;

	for (i = 0; i < AQE_COUNT(rows); i++)
		if (aqe_str_eq(option, rows[i].name))
			return rows[i].flag;
	return 0;
}

static unsigned flags_of(char *options)
{
	unsigned flags = 0;
	char *save = NULL, *opt;

	for (opt = strtok_r(options, ",", &save); opt; opt = strtok_r(NULL, ",", &save))
		flags |= hard_fx_mount_flag(opt);
	return flags;
}

bool hard_fx_option(const char *options, const char *name, const char **ret_value)
{
	size_t n = strlen(name);
	const char *p = options;

	while (*p) {
		size_t len = strcspn(p, ",");

		if (len >= n && memcmp(p, name, n) == 0 && (len == n || p[n] == '=')) {
			if (ret_value)
				*ret_value = len == n ? p + n : p + n + 1;
			return true;
		}
		p += len;
		if (*p == ',')
			p++;
	}
	return false;
}

/* Optional fields up to the "-" that ends them. False when there is no end. */
static bool read_optional(char **p, bool *ret_peers)
{
	static const char *const peers[] = { "shared:", "master:", "propagate_from:", NULL };
	char *f;
	size_t i;

	while ((f = field(p))) {
		if (aqe_str_eq(f, "-"))
			return true;
		for (i = 0; peers[i]; i++)
			if (aqe_starts(f, peers[i]))
				*ret_peers = true;
	}
	return false;
}

/* "36 35 98:0 /root /point opts [tag:value...] - fstype source super" */
static bool read_mount(char *line, struct hard_fx_mount *ret)
{
	struct hard_fx_mount m = { 0 };
	char *p = line, *id = field(&p), *parent = field(&p), *dev = field(&p), *root = field(&p);
	char *point = field(&p), *options = field(&p), *fstype, *source, *super;

	if (!options || !strchr(dev, ':') || !aqe_parse_u64(id, INT32_MAX, &m.id) ||
	    !aqe_parse_u64(parent, INT32_MAX, &m.parent) || !read_optional(&p, &m.peers))
		return false;
	fstype = field(&p);
	source = field(&p);
	super = field(&p);
	if (!super || p || !unescape(root) || !unescape(point) || !unescape(fstype) ||
	    !unescape(source))
		return false;
	if (point[0] != '/')
		return false;
	m.flags = flags_of(options);
	m.root = root;
	m.point = point;
	m.point_len = strlen(point);
	m.fstype = fstype;
	m.source = source;
	m.super = super;
	m.super_ro = hard_fx_option(super, "ro", NULL);
	*ret = m;
	return true;
}

int hard_fx_mount_next(char **cursor, struct hard_fx_mount *ret, struct aqe_err *e)
{
	char *line = *cursor, *nl;

	if (*line == '\0')
		return 0;
	nl = strchr(line, '\n');
	if (!nl) {
		*cursor = line + strlen(line);
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "mountinfo: last line is cut");
	}
	*nl = '\0';
	*cursor = nl + 1;
	if (!read_mount(line, ret))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "mountinfo: a line is not understood");
	return 1;
}

int hard_fx_mounts_parse(struct aqe_arena *a, char *text, struct hard_fx_mount **ret, size_t *ret_n,
			 struct aqe_err *e)
{
	struct hard_fx_mount *list;
	size_t n = 0, lines = 0;
	char *p;
	int r;

	for (p = text; (p = strchr(p, '\n')); p++)
		lines++;
	if (lines > HARD_FX_MOUNTS_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "%zu mounts, limit %d", lines,
				   HARD_FX_MOUNTS_MAX);
	list = aqe_arena_calloc(a, lines + 1, sizeof(*list));
	if (!list)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "mounts");
	for (p = text; (r = hard_fx_mount_next(&p, &list[n], e)) > 0; n++)
		;
	if (r < 0)
		return r;
	*ret = list;
	*ret_n = n;
	return 0;
}

/* "5:cpu,cpuacct:/path". The path may contain colons, but no newline: the kernel refuses such a
 * name at mkdir(2). */
static bool read_cgroup(char *line, struct hard_fx_cgroup *ret)
{
	char *controllers = strchr(line, ':'), *path;
	uint64_t hierarchy;

	if (!controllers)
		return false;
	*controllers++ = '\0';
	path = strchr(controllers, ':');
	if (!path)
		return false;
	*path++ = '\0';
	if (!aqe_parse_u64(line, INT32_MAX, &hierarchy) || path[0] != '/')
		return false;
	ret->v2 = hierarchy == 0;
	ret->controllers = controllers;
	ret->path = path;
	return ret->v2 == (controllers[0] == '\0');
}

int hard_fx_cgroups_parse(char *text, struct hard_fx_cgroup *ret, size_t max, size_t *ret_n,
			  struct aqe_err *e)
{
	size_t n = 0;
	char *save = NULL, *line;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (n == max)
			return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %zu cgroups", max);
		if (!read_cgroup(line, &ret[n++]))
			return aqe_err_set(e, AQE_E_MALFORMED, 0, "cgroup: line %zu", n);
	}
	*ret_n = n;
	return 0;
}
