/* SPDX-License-Identifier: MIT */
/* Judging the mounts of a created container: exactly what the spec asked for and what crun and runc
 * are known to add. Measured with crun 1.8.1 and runc 1.1.5, rootful with and without a user
 * namespace, and rootless: everything below is in place at `created` and does not change at start.
 *
 * The runtimes' own mounts, a closed list:
 * - the v1 hierarchies below a cgroup mount. The tmpfs they stand on is rw in both runtimes
 * whatever the spec says (it is root's, mode 755); they themselves are ro;
 * - with a user namespace, or rootless, binds of the host's null zero full tty random urandom,
 * since nodes cannot be made there; runc leaves nosuid and noexec off them;
 * - with a terminal, /dev/console, a bind of a devpts node;
 * - masked directories: an empty ro tmpfs (runc: also ro as a file system); masked files: a bind of
 *   the null device, in runc without a user namespace that of the container's own /dev;
 * - read-only paths: a ro bind of the same file system over itself.
 *
 * crun 1.8.1 drops nosuid, nodev and noexec of a bind mount when the container has a user namespace
 * (it moves a mount made on the host into place and only remounts for ro); the recursive spelling
 * rnosuid, rnodev, rnoexec takes another path and works, on directories. So flags are compared,
 * never assumed.
 *
 * Propagation: where the host's root is shared, as systemd makes it, runc leaves '/' and the device
 * binds slaves of the host unless rootfsPropagation is rprivate; with "private" crun leaves the
 * masked files peers of the host's /dev. */
#include <string.h>

#include "hardening/effect_int.h"
#include "shim/core/text.h"

struct judge {
	const struct hard_fx_mounts_in *in;
	struct hard_report *report;
	uint8_t known[HARD_FX_MOUNTS_MAX]; /* why this mount is there is known */
};

const struct hard_fx_mount *hard_fx_mount_at(const struct hard_fx_mounts_in *in, const char *path)
{
	size_t i, len = strlen(path);

	for (i = 0; i < in->n_mounts; i++)
		if (in->mounts[i].point_len == len && memcmp(in->mounts[i].point, path, len) == 0)
			return &in->mounts[i];
	return NULL;
}

static void know(struct judge *j, const struct hard_fx_mount *m)
{
	j->known[m - j->in->mounts] = 1;
}

static const struct {
	const char *name;
	unsigned flag;
} FLAG_NAMES[] = {
	{ "ro", HARD_FX_RO },
	{ "nosuid", HARD_FX_NOSUID },
	{ "nodev", HARD_FX_NODEV },
	{ "noexec", HARD_FX_NOEXEC },
};

/* The flags a spec's mount asks for. Contradictory options cannot occur: the spec is verified. */
static unsigned flags_asked(const struct aqe_json *mount)
{
	const struct aqe_json *options = aqe_json_get(mount, "options"), *o;
	unsigned flags = 0;

	for (o = options ? options->first : NULL; o; o = o->next)
		if (aqe_json_str(o))
			flags |= hard_fx_mount_flag(aqe_json_str(o));
	return flags;
}

static bool is_bind(const struct aqe_json *mount)
{
	const struct aqe_json *options = aqe_json_get(mount, "options");

	return aqe_json_has_str(options, "bind") || aqe_json_has_str(options, "rbind");
}

/* The spec's value of a size= option, or NULL. */
static const char *size_asked(const struct aqe_json *mount)
{
	const struct aqe_json *options = aqe_json_get(mount, "options"), *o;

	for (o = options ? options->first : NULL; o; o = o->next)
		if (aqe_json_str(o) && aqe_starts(aqe_json_str(o), "size="))
			return aqe_json_str(o) + strlen("size=");
	return NULL;
}

/* tmpfs rounds a size up to whole pages, which are 64 KiB on some machines. */
#define PAGE_MAX_BYTES 65536

/* True when the file system in force has a size and it is at most the asked one. */
static bool size_holds(const struct hard_fx_mount *m, const char *asked)
{
	uint64_t want, have;
	const char *value;
	char text[32];
	size_t n;

	if (!hard_fx_option(m->super, "size", &value) || !aqe_parse_size(asked, &want))
		return false;
	n = strcspn(value, ",");
	if (n >= sizeof(text))
		return false;
	memcpy(text, value, n);
	text[n] = '\0';
	return aqe_parse_size(text, &have) && have > 0 &&
	       (have <= want || have - want < PAGE_MAX_BYTES);
}

/* The profile's writable tmpfs have a property of their own. */
static enum hard_prop prop_of(const char *dest)
{
	static const char *const tmpfs[] = { "/tmp", "/run", NULL };

	return aqe_str_in(dest, tmpfs) ? HARD_TMPFS : HARD_MOUNTS;
}

static bool type_holds(const struct hard_fx_mount *m, const char *type)
{
	static const char *const cgroup[] = { "tmpfs", "cgroup", "cgroup2", NULL };

	if (aqe_str_eq(type, "cgroup")) /* v1: the tmpfs on which the hierarchies are mounted */
		return aqe_str_in(m->fstype, cgroup);
	return aqe_str_eq(m->fstype, type);
}

static void judge_flags(struct judge *j, const struct hard_fx_mount *m, unsigned asked)
{
	unsigned have = m->flags | (m->super_ro ? (unsigned)HARD_FX_RO : 0);
	size_t i;

	for (i = 0; i < AQE_COUNT(FLAG_NAMES); i++)
		if ((asked & FLAG_NAMES[i].flag) && !(have & FLAG_NAMES[i].flag))
			hard_report_fail(j->report, prop_of(m->point), NULL, j->in->where,
					 "the options of the spec", "mount '%s' without %s",
					 m->point, FLAG_NAMES[i].name);
}

/* The v1 hierarchies below a cgroup mount, with the flags the spec asked of it. */
static void judge_cgroup_children(struct judge *j, const struct hard_fx_mount *parent,
				  unsigned asked)
{
	size_t i;

	for (i = 0; i < j->in->n_mounts; i++) {
		const struct hard_fx_mount *m = &j->in->mounts[i];

		if (m->parent != parent->id || !aqe_path_is_under(m->point, parent->point) ||
		    (!aqe_str_eq(m->fstype, "cgroup") && !aqe_str_eq(m->fstype, "cgroup2")))
			continue;
		know(j, m);
		judge_flags(j, m, asked);
	}
}

/* The mount that stands at a destination of the spec: by its path, else (an image may have
 * /var/run -> /run) by what its processes get when they look there. *ret is set when there is one.
 */
static int find_mount(struct judge *j, const char *dest, const struct hard_fx_mount **ret,
		      struct aqe_err *e)
{
	const struct hard_fx_root *root = &j->in->root;
	const struct hard_fx_mount *m = hard_fx_mount_at(j->in, dest);
	struct hard_fx_node node;
	size_t i;
	int r;

	*ret = m;
	if (m)
		return 0;
	r = root->look(root->self, dest, &node, e);
	if (r <= 0)
		return r;
	for (i = 0; node.mount_root && i < j->in->n_mounts; i++) {
		if (j->in->mounts[i].id == node.mount_id) {
			*ret = &j->in->mounts[i];
			break;
		}
	}
	return 0;
}

static int judge_spec_mount(struct judge *j, const struct aqe_json *spec, struct aqe_err *e)
{
	const char *dest = aqe_json_str(aqe_json_get(spec, "destination"));
	const char *type = aqe_json_str(aqe_json_get(spec, "type")), *size = size_asked(spec);
	unsigned asked = flags_asked(spec);
	const struct hard_fx_mount *m = NULL;
	int r;

	if (!dest)
		return aqe_err_at(e, AQE_E_MALFORMED, spec->line, spec->col,
				  "mount without destination");
	r = find_mount(j, dest, &m, e);
	if (r < 0)
		return r;
	if (!m) {
		hard_report_fail(j->report, prop_of(dest), spec, NULL, "mounted", "not mounted");
		return 0;
	}
	know(j, m);
	if (!is_bind(spec) && type && !type_holds(m, type))
		hard_report_fail(j->report, prop_of(dest), spec, NULL, type,
				 "mount '%s' is of type '%s'", m->point, m->fstype);
	if (!is_bind(spec) && aqe_str_eq(m->fstype, "tmpfs") && size && !size_holds(m, size))
		hard_report_fail(j->report, prop_of(dest), spec, NULL, "at most the size asked for",
				 "mount '%s' has options '%s'", m->point, m->super);
	if (aqe_str_eq(type, "cgroup")) {
		judge_cgroup_children(j, m, asked);
		if (aqe_str_eq(m->fstype, "tmpfs"))
			asked &= ~(unsigned)HARD_FX_RO;
	}
	judge_flags(j, m, asked);
	return 0;
}

/* The profile's own mounts hold whatever the spec says. */
static void judge_profile_mounts(struct judge *j)
{
	static const char *const tmpfs[] = { "/tmp", "/run", NULL };
	const struct hard_fx_mount *m = hard_fx_mount_at(j->in, "/");
	size_t i;

	if (!m)
		hard_report_fail(j->report, HARD_READONLY_ROOTFS, NULL, j->in->where,
				 "a mount at '/'", "none");
	else if (!(m->flags & HARD_FX_RO))
		hard_report_fail(j->report, HARD_READONLY_ROOTFS, NULL, j->in->where,
				 "'/' mounted ro", "'/' is writable");
	if (m)
		know(j, m);
	for (i = 0; tmpfs[i]; i++) {
		m = hard_fx_mount_at(j->in, tmpfs[i]);
		if (!m || !aqe_str_eq(m->fstype, "tmpfs") ||
		    !hard_fx_option(m->super, "size", NULL) || !(m->flags & HARD_FX_NOSUID) ||
		    !(m->flags & HARD_FX_NODEV))
			hard_report_fail(j->report, HARD_TMPFS, NULL, j->in->where,
					 "a tmpfs with a size, nosuid and nodev", "'%s': %s",
					 tmpfs[i], m ? m->super : "no mount");
	}
}

/* A bind must show the very file that was checked at create: between the two, its source may have
 * been exchanged. */
static int judge_binds(struct judge *j, struct aqe_err *e)
{
	const struct hard_fx_root *root = &j->in->root;
	struct hard_fx_node node;
	size_t i;
	int r;

	for (i = 0; i < j->in->n_binds; i++) {
		const struct hard_bind_id *b = &j->in->binds[i];

		r = root->look(root->self, b->destination, &node, e);
		if (r < 0)
			return r;
		if (r == 0 || node.dev != b->dev || node.ino != b->ino)
			hard_report_fail(j->report, HARD_MOUNTS, NULL, j->in->where,
					 "the file that was checked at create", "'%s' is %s",
					 b->destination, r ? "another file" : "not there");
	}
	return 0;
}

/* Whatever is left, and what holds for all. */
static void judge_all(struct judge *j)
{
	const struct hard_fx_mount *m = j->in->mounts;
	size_t i, k;

	for (i = 0; i < j->in->n_mounts; i++) {
		if (!j->known[i])
			hard_report_fail(j->report, HARD_MOUNTS, NULL, j->in->where,
					 "the mounts of the spec and no other",
					 "mount '%s' of type '%s' from '%s'", m[i].point,
					 m[i].fstype, m[i].source);
		if (m[i].peers)
			hard_report_fail(j->report, HARD_PROPAGATION, NULL, j->in->where,
					 "private mounts", "mount '%s' propagates", m[i].point);
		/* What a process sees at a path that is mounted over twice is not what was judged.
		 */
		for (k = 0; k < i; k++)
			if (m[i].point_len == m[k].point_len && aqe_str_eq(m[i].point, m[k].point))
				hard_report_fail(j->report, prop_of(m[i].point), NULL, j->in->where,
						 "one mount at a place", "two at '%s'", m[i].point);
	}
}

int hard_fx_mounts_judge(const struct hard_fx_mounts_in *in, struct hard_report *report,
			 struct aqe_err *e)
{
	static const enum hard_prop judged[] = { HARD_MOUNTS,          HARD_PROPAGATION,
						 HARD_READONLY_ROOTFS, HARD_TMPFS,
						 HARD_MASKED_PATHS,    HARD_DEVICES };
	const struct aqe_json *mounts = aqe_json_get(in->spec, "mounts"), *m;
	struct judge j = { in, report, { 0 } };
	size_t i;
	int r;

	if (in->n_mounts > HARD_FX_MOUNTS_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "%zu mounts, limit %d", in->n_mounts,
				   HARD_FX_MOUNTS_MAX);
	judge_profile_mounts(&j);
	for (m = mounts ? mounts->first : NULL; m; m = m->next) {
		r = judge_spec_mount(&j, m, e);
		if (r < 0)
			return r;
	}
	r = hard_fx_paths_judge(in, j.known, report, e);
	if (r < 0)
		return r;
	judge_all(&j);
	r = judge_binds(&j, e);
	if (r < 0)
		return r;
	for (i = 0; i < AQE_COUNT(judged); i++)
		hard_report_pass(report, judged[i]);
	return 0;
}
