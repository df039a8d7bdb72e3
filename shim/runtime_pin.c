/* SPDX-License-Identifier: MIT */
/* Mount sources of the policy, pinned (R36): each is opened once, cloned into a mount of our own
 * and given to the runtime by that mount, so that nobody can exchange it between the check and the
 * use. The clone carries nosuid and nodev itself: with a user namespace crun 1.8.1 does not put
 * them on a writable bind (measured), but a bind of a mount that has them keeps them. A pin lives
 * below the container's directory from `create` to `start`, which lets it go; the container's own
 * mount stays. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hardening/rules.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/runtime.h"
#include "shim/runtime_judge.h"

#define PIN_FMT "m%zu"

static bool is_bind(const struct aqe_json *mount)
{
	const struct aqe_json *options = aqe_json_get(mount, "options");

	return aqe_json_has_str(options, "bind") || aqe_json_has_str(options, "rbind");
}

/* A detached mount of the directory behind `fd`, restricted before anybody can see it. */
static int clone_mount(int fd, const struct aqe_json *mount, int *ret, struct aqe_err *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
				   .propagation = MS_PRIVATE };
	AQE_AUTO_FD int tree =
		open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (tree < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "clone the mount");
	if (aqe_json_has_str(aqe_json_get(mount, "options"), "ro"))
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "restrict the mount");
	*ret = AQE_TAKE_FD(tree);
	return 0;
}

/* A distribution's init may be a link (Debian's docker-init is one to tini-static). What it leads
 * to is taken only when it is on the list itself. */
static int follow_init(struct shim_rt *rt, struct aqe_json *mount, struct aqe_err *e)
{
	const char *source = aqe_json_str(aqe_json_get(mount, "source"));
	const char *destination = aqe_json_str(aqe_json_get(mount, "destination"));
	const struct hard_engine_file *file =
		destination ? hard_rule_engine_file(destination) : NULL;
	char canonical[PATH_MAX];

	if (!file || file->kind != HARD_ENGINE_INIT || !source || !realpath(source, canonical) ||
	    aqe_str_eq(source, canonical) || !aqe_str_in(canonical, file->sources))
		return 0;
	if (aqe_json_set(rt->arena, mount, "source", aqe_json_new_str(rt->arena, canonical)) < 0)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the mounts");
	return 0;
}

static int pin_one(struct shim_judged *j, struct aqe_json *mount, struct hard_bind_id *id,
		   struct aqe_err *e)
{
	const char *source = aqe_json_str(aqe_json_get(mount, "source"));
	AQE_AUTO_FD int fd = -1;
	struct stat st;
	int rc;

	id->destination = aqe_json_str(aqe_json_get(mount, "destination"));
	if (!source || !id->destination)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "a judged mount has no source");
	rc = aqe_fs_open_nolinks(source, O_PATH, &fd, e);
	if (rc < 0)
		return rc;
	if (fstat(fd, &st) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "stat '%s'", source);
	id->dev = st.st_dev;
	id->ino = st.st_ino;
	if (!hard_rule_policy_mount(&j->ctx, id->destination))
		return 0; /* an engine's file: read-only, and in a directory of the engine's own */
	if (j->n_pins == SHIM_PINS_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %d mounts", SHIM_PINS_MAX);

	struct shim_pin *pin = &j->pins[j->n_pins];

	rc = clone_mount(fd, mount, &pin->fd, e);
	if (rc < 0)
		return aqe_err_wrap(e, "pin '%s'", source);
	pin->destination = id->destination;
	pin->source = source;
	j->n_pins++;
	return 0;
}

int shim_pin_open(struct shim_rt *rt, struct shim_judged *j, struct aqe_json *doc,
		  struct aqe_err *e)
{
	struct aqe_json *mounts = aqe_json_get(doc, "mounts");
	struct hard_bind_id *ids;
	size_t n = 0;

	ids = aqe_arena_calloc(rt->arena, (mounts ? mounts->len : 0) + 1, sizeof(*ids));
	if (!ids)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the mounts");
	for (struct aqe_json *m = mounts ? mounts->first : NULL; m; m = m->next) {
		int rc = is_bind(m) ? follow_init(rt, m, e) : 0;

		if (rc == 0 && is_bind(m))
			rc = pin_one(j, m, &ids[n], e);
		if (rc < 0)
			return aqe_err_wrap(e, "mounts");
		n += is_bind(m) ? 1 : 0;
	}
	j->ctx.binds = ids;
	j->ctx.n_binds = n;
	return 0;
}

static struct aqe_json *mount_at(const struct aqe_json *doc, const char *destination)
{
	struct aqe_json *mounts = aqe_json_get(doc, "mounts");

	for (struct aqe_json *m = mounts ? mounts->first : NULL; m; m = m->next) {
		if (aqe_str_eq(aqe_json_str(aqe_json_get(m, "destination")), destination))
			return m;
	}
	return NULL;
}

static int set_source(struct shim_rt *rt, struct aqe_json *doc, const struct shim_pin *pin,
		      const char *source, struct aqe_err *e)
{
	struct aqe_json *m = mount_at(doc, pin->destination);

	if (!m || aqe_json_set(rt->arena, m, "source", aqe_json_new_str(rt->arena, source)) < 0)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the mounts");
	return 0;
}

static int attach(struct shim_rt *rt, struct shim_pin *pin, size_t i, struct aqe_err *e)
{
	char name[32];

	(void)snprintf(name, sizeof(name), PIN_FMT, i);
	pin->path = aqe_arena_fmt(rt->arena, "%s/%s", rt->dir.path, name);
	if (!pin->path)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the mounts");
	if (mkdirat(rt->dir.fd, name, 0700) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "make '%s'", pin->path);
	if (move_mount(pin->fd, "", rt->dir.fd, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "pin '%s' at '%s'", pin->source, pin->path);
	return 0;
}

int shim_pin_attach(struct shim_rt *rt, struct shim_judged *j, struct aqe_json *doc,
		    struct aqe_err *e)
{
	int rc = 0;

	for (size_t i = 0; i < j->n_pins && rc == 0; i++) {
		rc = attach(rt, &j->pins[i], i, e);
		if (rc == 0)
			rc = set_source(rt, doc, &j->pins[i], j->pins[i].path, e);
	}
	return rc;
}

int shim_pin_unmap(struct shim_rt *rt, const struct shim_judged *j, struct aqe_json *doc,
		   struct aqe_err *e)
{
	for (size_t i = 0; i < j->n_pins; i++) {
		const struct shim_pin *pin = &j->pins[i];
		const struct aqe_json *m = mount_at(doc, pin->destination);
		int rc;

		if (!m || !aqe_str_eq(aqe_json_str(aqe_json_get(m, "source")), pin->path))
			return aqe_err_set(e, AQE_E_INTERNAL, 0,
					   "the private bundle lost the pin of '%s'",
					   pin->destination);
		rc = set_source(rt, doc, pin, pin->source, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

void shim_pin_done(struct shim_judged *j)
{
	for (size_t i = 0; i < j->n_pins; i++)
		(void)close(j->pins[i].fd); /* an attached mount stays */
	j->n_pins = 0;
}

void shim_pin_release(const char *dir_path)
{
	char path[4096];

	for (size_t i = 0; i < SHIM_PINS_MAX; i++) {
		if (snprintf(path, sizeof(path), "%s/" PIN_FMT, dir_path, i) >= (int)sizeof(path))
			return;
		/* a lazy unmount: the runtime may still be cloning it in another namespace */
		if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno == ENOENT)
			return;
		(void)rmdir(path); /* what cannot go now goes with the directory */
	}
}
