/* SPDX-License-Identifier: MIT */
/* Judging what processes of a created container find at certain paths: masked and read-only paths,
 * and device nodes. The mounts behind them are the runtime's own and become known here. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "hardening/effect_int.h"
#include "shim/core/text.h"

struct paths {
	const struct hard_fx_mounts_in *in;
	uint8_t *known;
	struct hard_report *report;
};

/* The nodes both runtimes make or bind into /dev (runtime-spec, "default devices"). */
static const struct device {
	const char *path;
	uint32_t major, minor;
} DEVICES[] = {
	{ "/dev/null", 1, 3 },   { "/dev/zero", 1, 5 },    { "/dev/full", 1, 7 },
	{ "/dev/random", 1, 8 }, { "/dev/urandom", 1, 9 }, { "/dev/tty", 5, 0 },
};

static void know(struct paths *p, const struct hard_fx_mount *m)
{
	p->known[m - p->in->mounts] = 1;
}

static int look(const struct paths *p, const char *path, struct hard_fx_node *ret,
		struct aqe_err *e)
{
	return p->in->root.look(p->in->root.self, path, ret, e);
}

static bool is_device(const struct hard_fx_node *n, uint32_t major, uint32_t minor)
{
	return S_ISCHR(n->mode) && n->rdev_major == major && n->rdev_minor == minor;
}

/* A bind of the host's own node, which mountinfo names beyond doubt: nothing need be opened. */
static bool is_host_node(const struct hard_fx_mount *m, const char *node)
{
	return aqe_str_eq(m->fstype, "devtmpfs") && aqe_str_eq(m->root, node);
}

/* ---- devices ---- */

/* Any node in /dev that is none of the above. Nodes elsewhere cannot be opened: every mount that
 * can hold one is nodev, or belongs to a user namespace. */
static void see_dev_entry(void *arg, const char *name, unsigned char type)
{
	static const char *const special[] = { "console", "ptmx", NULL };
	struct paths *p = arg;
	size_t i;

	if (type != DT_CHR && type != DT_BLK && type != DT_UNKNOWN)
		return;
	for (i = 0; i < AQE_COUNT(DEVICES); i++)
		if (aqe_str_eq(name, DEVICES[i].path + strlen("/dev/")))
			return;
	if (!aqe_str_in(name, special) || type == DT_BLK)
		hard_report_fail(p->report, HARD_DEVICES, NULL, "/dev", "the default devices only",
				 "node '/dev/%s'", name);
}

/* A terminal's /dev/console is a bind of a node of the container's own devpts; /dev/ptmx is a link
 * to pts/ptmx in both runtimes, others bind it. */
static void judge_terminal(struct paths *p)
{
	const struct hard_fx_mount *console = hard_fx_mount_at(p->in, "/dev/console");
	const struct hard_fx_mount *ptmx = hard_fx_mount_at(p->in, "/dev/ptmx");
	const struct aqe_json *terminal = aqe_json_at(p->in->spec, "/process/terminal");
	bool wanted = terminal && terminal->type == AQE_JSON_BOOL && terminal->boolean;

	if (console && wanted && aqe_str_eq(console->fstype, "devpts"))
		know(p, console);
	if (ptmx && aqe_str_eq(ptmx->fstype, "devpts") && aqe_str_eq(ptmx->root, "/ptmx"))
		know(p, ptmx);
}

static int judge_device(struct paths *p, const struct device *d, struct aqe_err *e)
{
	const struct hard_fx_mount *m = hard_fx_mount_at(p->in, d->path);
	struct hard_fx_node node;
	int r;

	if (m)
		know(p, m);
	if (m && is_host_node(m, d->path + strlen("/dev")))
		return 0;
	r = look(p, d->path, &node, e);
	if (r > 0 && !is_device(&node, d->major, d->minor))
		hard_report_fail(p->report, HARD_DEVICES, NULL, d->path, "the device of that name",
				 "something else");
	return r < 0 ? r : 0;
}

static int judge_devices(struct paths *p, struct aqe_err *e)
{
	size_t i;
	int r;

	for (i = 0; i < AQE_COUNT(DEVICES); i++) {
		r = judge_device(p, &DEVICES[i], e);
		if (r < 0)
			return r;
	}
	judge_terminal(p);
	r = p->in->root.list(p->in->root.self, "/dev", see_dev_entry, p, e);
	return r < 0 ? r : 0;
}

/* ---- masked paths ---- */

static void see_any_entry(void *arg, const char *name, unsigned char type)
{
	size_t *n = arg;

	(void)name; /* only their number matters */
	(void)type;
	(*n)++;
}

/* What a mount over a masked path must show: the null device, or nothing. 1, 0 or an error. */
static int shows_nothing(struct paths *p, const struct hard_fx_mount *m, struct aqe_err *e)
{
	struct hard_fx_node node;
	size_t entries = 0;
	int r;

	if (aqe_str_eq(m->fstype, "tmpfs") && aqe_str_eq(m->root, "/") && (m->flags & HARD_FX_RO))
		return 1; /* a new tmpfs: nobody can have put anything there */
	if (is_host_node(m, "/null"))
		return 1;
	r = look(p, m->point, &node, e);
	if (r <= 0)
		return r;
	if (!S_ISDIR(node.mode))
		return is_device(&node, 1, 3);
	r = p->in->root.list(p->in->root.self, m->point, see_any_entry, &entries, e);
	return r < 0 ? r : entries == 0 && (m->flags & HARD_FX_RO);
}

static int judge_masked(struct paths *p, const char *path, struct aqe_err *e)
{
	const struct hard_fx_mount *m = hard_fx_mount_at(p->in, path);
	struct hard_fx_node node;
	int r;

	if (m) {
		know(p, m);
		r = shows_nothing(p, m, e);
		if (r == 0)
			hard_report_fail(p->report, HARD_MASKED_PATHS, NULL, path,
					 "an empty directory or the null device",
					 "type '%s' with content", m->fstype);
		return r < 0 ? r : 0;
	}
	/* Not mounted over: fine when this kernel does not have it, or when a masked directory
	 * above hides it. */
	r = look(p, path, &node, e);
	if (r > 0)
		hard_report_fail(p->report, HARD_MASKED_PATHS, NULL, path, "masked",
				 "visible in the container");
	return r < 0 ? r : 0;
}

/* ---- read-only paths ---- */

/* The mount a path lies on: the longest mount point above it. */
static const struct hard_fx_mount *mount_of(const struct hard_fx_mounts_in *in, const char *path)
{
	const struct hard_fx_mount *best = NULL;
	size_t i, best_len = 0;

	for (i = 0; i < in->n_mounts; i++) {
		const struct hard_fx_mount *m = &in->mounts[i];

		if (aqe_path_is_under(path, m->point) && strlen(m->point) >= best_len) {
			best = m;
			best_len = strlen(m->point);
		}
	}
	return best;
}

static int judge_readonly(struct paths *p, const char *path, struct aqe_err *e)
{
	static const char *const kernel[] = { "proc", "sysfs", "tmpfs", NULL };
	const struct hard_fx_mount *m = mount_of(p->in, path);
	struct hard_fx_node node;
	int r;

	if (m && ((m->flags & HARD_FX_RO) || m->super_ro)) {
		/* tmpfs: masked as well */
		if (aqe_str_eq(m->point, path) && aqe_str_in(m->fstype, kernel))
			know(p, m);
		return 0;
	}
	r = look(p, path, &node, e);
	if (r > 0)
		hard_report_fail(p->report, HARD_MASKED_PATHS, NULL, path, "read-only", "writable");
	return r < 0 ? r : 0;
}

static int for_each(struct paths *p, const char *pointer,
		    int (*judge)(struct paths *p, const char *path, struct aqe_err *e),
		    struct aqe_err *e)
{
	const struct aqe_json *list = aqe_json_at(p->in->spec, pointer), *v;
	int r = 0;

	for (v = list ? list->first : NULL; v && r == 0; v = v->next)
		r = aqe_json_str(v) ? judge(p, aqe_json_str(v), e)
				    : aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col,
						 "'%s': not a string", pointer);
	return r;
}

int hard_fx_paths_judge(const struct hard_fx_mounts_in *in, uint8_t *known,
			struct hard_report *report, struct aqe_err *e)
{
	struct paths p = { in, known, report };
	int r = judge_devices(&p, e);

	if (r == 0)
		r = for_each(&p, "/linux/maskedPaths", judge_masked, e);
	if (r == 0)
		r = for_each(&p, "/linux/readonlyPaths", judge_readonly, e);
	return r;
}
