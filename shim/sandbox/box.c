/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/box.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/proc.h"
#include "shim/core/text.h"
#include "shim/supervisor/store.h"

#define NAMES_MAX  9999 /* "-n" of agents whose type and first 8 characters are the same */
#define PREFIX_MIN 4

#define F(type, member, kind)                                             \
	{                                                                 \
#member, SHIM_FIELD_##kind, offsetof(struct type, member) \
	}
const struct shim_field SHIM_WANT_FIELDS[] = {
	F(shim_want, up, BOOL),    F(shim_want, kill, BOOL),    F(shim_want, destroy, BOOL),
	F(shim_want, resets, U64), { NULL, SHIM_FIELD_STR, 0 },
};
const struct shim_field SHIM_SEEN_FIELDS[] = {
	F(shim_seen, status, STR),    F(shim_seen, health, STR),
	F(shim_seen, error, STR),     F(shim_seen, hold, STR),
	F(shim_seen, container, STR), F(shim_seen, pid, U32),
	F(shim_seen, pid_start, U64), F(shim_seen, started_s, I64),
	F(shim_seen, ended_s, I64),   F(shim_seen, next_start_s, I64),
	F(shim_seen, exit_code, I64), F(shim_seen, oom_killed, BOOL),
	F(shim_seen, starts, U32),    F(shim_seen, failures, U32),
	{ NULL, SHIM_FIELD_STR, 0 },
};
#undef F

/* ---- opening ---- */

static int nomem(struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for a sandbox");
}

static int set_names(struct shim_box *b, const char *name, struct aqe_err *e)
{
	b->name = aqe_arena_dup(b->arena, name);
	b->path = aqe_arena_fmt(b->arena, "%s/sandboxes/%s", b->place->path, name);
	return b->name && b->path ? 0 : nomem(e);
}

int shim_box_open(struct aqe_arena *a, const struct shim_place *place, const char *name,
		  struct shim_box *ret, struct aqe_err *e)
{
	struct shim_box b = SHIM_BOX_INIT;
	int rc;

	b.arena = a;
	b.place = place;
	rc = shim_place_sandbox(place, name, &b.fd, e);
	if (rc == 0)
		rc = set_names(&b, name, e);
	if (rc == 0)
		rc = shim_fields_load(a, SHIM_PLAN_FIELDS, b.fd, SHIM_PLAN_FILE, &b.plan, e);
	if (rc == AQE_E_ABSENT && b.fd >= 0) /* made a moment ago, or half removed */
		rc = aqe_err_set(e, AQE_E_ABSENT, 0, "sandbox '%.100s' not found", name);
	if (rc < 0) {
		shim_box_done(&b);
		return rc;
	}
	*ret = b;
	return 0;
}

void shim_box_done(struct shim_box *b)
{
	aqe_cleanup_fd(&b->fd);
	b->fd = -1;
}

/* 3: name or agent id; 2: beginning of one; 0: no. */
static int match(const struct shim_box *b, const char *what)
{
	if (aqe_str_eq(b->name, what) || aqe_str_eq(b->plan.agent_id, what))
		return 3;
	if (strlen(what) < PREFIX_MIN)
		return 0;
	return aqe_starts(b->name, what) || (b->plan.agent_id && aqe_starts(b->plan.agent_id, what))
		       ? 2
		       : 0;
}

int shim_box_find(struct aqe_arena *a, const struct shim_place *place, const char *what,
		  struct shim_box *ret, struct aqe_err *e)
{
	const char **names = NULL, *best = NULL;
	size_t n = 0, found = 0;
	int best_match = 1, rc;

	rc = shim_box_open(a, place, what, ret, e);
	if (rc != AQE_E_ABSENT)
		return rc;
	rc = shim_place_list(a, place, &names, &n, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < n; i++) {
		SHIM_AUTO_BOX struct shim_box b = SHIM_BOX_INIT;
		int m;

		rc = shim_box_open(a, place, names[i], &b, e);
		if (rc == AQE_E_NOMEM)
			return rc; /* it may be the one that is meant */
		m = rc == 0 ? match(&b, what) : 0;
		if (m > best_match) {
			best_match = m;
			found = 0;
		}
		if (m == best_match) {
			best = names[i];
			found++;
		}
	}
	if (found > 1)
		return aqe_err_set(e, AQE_E_USAGE, 0,
				   "'%.100s' names %zu sandboxes: give the whole name of one (aqe "
				   "sandbox list)",
				   what, found);
	return shim_box_open(a, place, found ? best : what, ret, e);
}

/* ---- making and removing ---- */

static int claim_name(const struct shim_place *place, const struct shim_plan *plan,
		      char ret[SHIM_SANDBOX_NAME], struct aqe_err *e)
{
	for (unsigned n = 1; n <= NAMES_MAX; n++) {
		shim_plan_name(plan->agent_type, plan->agent_id, n, ret);
		if (mkdirat(place->sandboxes_fd, ret, 0700) == 0)
			return 0;
		if (errno != EEXIST)
			return aqe_err_set(e, AQE_E_SYS, errno, "make sandbox '%s'", ret);
	}
	return aqe_err_set(e, AQE_E_LIMIT, 0, "no free name for agent '%s'", plan->agent_id);
}

int shim_box_make(struct aqe_arena *a, const struct shim_place *place, const struct shim_plan *plan,
		  struct shim_box *ret, struct aqe_err *e)
{
	static const struct shim_want DOWN = { false, false, false, 0 };
	struct shim_box b = SHIM_BOX_INIT;
	char name[SHIM_SANDBOX_NAME];
	int rc = claim_name(place, plan, name, e);

	if (rc < 0)
		return rc;
	b.arena = a;
	b.place = place;
	b.plan = *plan;
	rc = shim_place_sandbox(place, name, &b.fd, e);
	if (rc == 0)
		rc = set_names(&b, name, e);
	b.plan.name = b.name;
	if (rc == 0)
		rc = shim_box_set_want(&b, &DOWN, e);
	if (rc == 0)
		rc = shim_fields_save(SHIM_PLAN_FIELDS, b.fd, SHIM_PLAN_FILE, &b.plan, e);
	if (rc < 0) {
		(void)!aqe_fs_remove_tree(place->sandboxes_fd, name, NULL); /* the cause counts */
		shim_box_done(&b);
		return rc;
	}
	*ret = b;
	return 0;
}

int shim_box_remove(struct shim_box *b, struct aqe_err *e)
{
	int rc = shim_store_remove(b->place->supervisor_fd, b->name, e);

	/* the plan first: without it the sandbox is not found any more */
	if (rc == 0 && unlinkat(b->fd, SHIM_PLAN_FILE, 0) < 0 && errno != ENOENT)
		rc = aqe_err_set(e, AQE_E_SYS, errno, "remove the plan of '%s'", b->name);
	return rc < 0 ? rc : aqe_fs_remove_tree(b->place->sandboxes_fd, b->name, e);
}

void shim_box_sweep(struct aqe_arena *a, const struct shim_place *place)
{
	const char **names = NULL;
	char plan[SHIM_SANDBOX_NAME + sizeof(SHIM_PLAN_FILE) + 1];
	size_t n = 0;

	/* who makes one holds it shared, from before the folder until the plan is in it */
	if (flock(place->store_fd, LOCK_EX | LOCK_NB) < 0)
		return;
	if (shim_place_list(a, place, &names, &n, NULL) < 0)
		n = 0;
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(plan, sizeof(plan), "%s/" SHIM_PLAN_FILE, names[i]);
		if (faccessat(place->sandboxes_fd, plan, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
		    errno == ENOENT) /* what cannot be removed now is tried again */
			(void)!aqe_fs_remove_tree(place->sandboxes_fd, names[i], NULL);
	}
	(void)flock(place->store_fd, LOCK_UN); /* ours: cannot fail */
}

/* ---- documents ---- */

int shim_box_want(const struct shim_box *b, struct shim_want *ret, struct aqe_err *e)
{
	*ret = (struct shim_want){ false, false, false, 0 };
	return shim_fields_load(b->arena, SHIM_WANT_FIELDS, b->fd, SHIM_WANT_FILE, ret, e);
}

int shim_box_set_want(const struct shim_box *b, const struct shim_want *w, struct aqe_err *e)
{
	return shim_fields_save(SHIM_WANT_FIELDS, b->fd, SHIM_WANT_FILE, w, e);
}

int shim_box_seen(const struct shim_box *b, struct shim_seen *ret, struct aqe_err *e)
{
	struct shim_seen s = SHIM_SEEN_INIT;
	struct aqe_err cause = AQE_ERR_INIT;
	int rc = shim_fields_load(b->arena, SHIM_SEEN_FIELDS, b->fd, SHIM_STATE_FILE, &s, &cause);

	if (rc < 0 && rc != AQE_E_ABSENT)
		return aqe_err_set(e, (enum aqe_code)rc, 0, "sandbox '%s': %s", b->name,
				   cause.text);
	*ret = s;
	return 0;
}

int shim_box_set_seen(const struct shim_box *b, const struct shim_seen *s, struct aqe_err *e)
{
	return shim_fields_save(SHIM_SEEN_FIELDS, b->fd, SHIM_STATE_FILE, s, e);
}

/* ---- looking ---- */

bool shim_box_is_supervised(const struct shim_box *b)
{
	AQE_AUTO_FD int fd = -1;

	return shim_store_lock(b->place->supervisor_fd, b->name, &fd, NULL) == AQE_E_REFUSED;
}

bool shim_seen_runs(const struct shim_seen *s)
{
	AQE_AUTO_FD int fd = s->pid > 0 ? (int)syscall(SYS_pidfd_open, s->pid, 0) : -1;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t start = 0;

	if (s->pid == 0 || aqe_proc_start_time((pid_t)s->pid, &start, NULL) != 0 ||
	    start != s->pid_start)
		return false;
	/* readable: it has ended, and waits for init to take note (its monitor was killed) */
	return fd < 0 || poll(&p, 1, 0) == 0;
}

const char *shim_seen_word(const struct shim_seen *s, bool supervised)
{
	static const struct {
		const char *status, *word;
	} WORDS[] = {
		{ "alive", "running" },     { "probing", "running" },   { "backoff", "restarting" },
		{ "starting", "starting" }, { "stopping", "stopping" }, { "held", "held" },
		{ "stopped", "stopped" },   { "exited", "exited" },     { "created", "created" },
	};

	if (!supervised && shim_seen_runs(s))
		return "unsupervised";
	for (size_t i = 0; i < AQE_COUNT(WORDS); i++) {
		if (!aqe_str_eq(s->status, WORDS[i].status))
			continue;
		/* its monitor died, and so did it */
		if (!supervised && i < 5)
			return "lost";
		return WORDS[i].word;
	}
	return "unknown";
}
