/* SPDX-License-Identifier: MIT */
/* aqe sandbox stop, rm, destroy-all, reset. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shim/aqe/sandbox_cmd.h"
#include "shim/aqe/supervise.h"
#include "shim/aqe/supervise_audit.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "shim/sandbox/engine.h"
#include "shim/sandbox/events.h"
#include "shim/sandbox/monitor.h"
#include "shim/supervisor/store.h"

#define END_TRIES 2
#define MARGIN_MS 60000 /* beyond the grace: tries of the supervisor, a busy machine */

static const struct aqe_cli_opt STOP_OPTS[] = {
	{ "force", 'f', NULL, "no grace: SIGKILL at once", SHIM_SB_FORCE },
	SHIM_SB_OPT_DATA,
	SHIM_SB_OPT_END,
};
static const struct aqe_cli_cmd STOP = {
	.name = "aqe sandbox stop",
	.synopsis = "[-f] NAME...",
	.about = "Ends sandboxes and waits for it: SIGTERM, the grace of each, SIGKILL.",
	.opts = STOP_OPTS,
};
static const struct aqe_cli_opt RM_OPTS[] = {
	{ "force", 'f', NULL, "also one that runs", SHIM_SB_FORCE },
	SHIM_SB_OPT_DATA,
	SHIM_SB_OPT_END,
};
static const struct aqe_cli_cmd RM = {
	.name = "aqe sandbox rm",
	.synopsis = "[-f] NAME...",
	.about = "Removes sandboxes with their logs.",
	.opts = RM_OPTS,
};
static const struct aqe_cli_opt ALL_OPTS[] = { SHIM_SB_OPT_DATA, SHIM_SB_OPT_END };
static const struct aqe_cli_cmd DESTROY_ALL = {
	.name = "aqe sandbox destroy-all",
	.synopsis = "",
	.about = "Stops and removes every sandbox. Images stay in the store.",
	.opts = ALL_OPTS,
};
static const struct aqe_cli_cmd RESET = {
	.name = "aqe sandbox reset",
	.synopsis = "NAME...",
	.about = "Forgets the failures of a sandbox. One that is held is started again if it was "
		 "wanted. Also takes the id of a container of podman or docker that went through "
		 "the shim.",
	.opts = ALL_OPTS,
};

/* ---- ending one ---- */

/* 1: nothing watches it any more; how it ended is for the caller to see. */
static int is_at_rest(struct shim_box *b, const struct shim_seen *s)
{
	(void)s;
	return !shim_box_is_supervised(b);
}

/* Lets nothing of it run. A sandbox without a monitor may still have a container: then one is made
 * to stop it. What seems to be a monitor may be the call of one that was killed, and a start in it
 * may still go well: so it is looked again. */
static int let_rest(struct shim_box *b, struct aqe_err *e)
{
	struct shim_sup_saved saved = { 0, SHIM_SUP_HOLD_NONE, false, 0 };
	int rc = 0;

	for (int i = 0; rc == 0 && i < END_TRIES; i++) {
		if (!shim_box_is_supervised(b)) {
			rc = shim_store_load(b->place->supervisor_fd, b->name, &saved, NULL, e);
			if (rc < 0 || !saved.running)
				return rc;
			rc = shim_monitor_ensure(b, e);
		}
		if (rc == 0)
			rc = shim_sb_wait(b, b->plan.grace_ms + MARGIN_MS, is_at_rest, e);
	}
	return rc;
}

int shim_sandbox_end(struct shim_box *b, bool kill, struct aqe_err *e)
{
	struct shim_want w;
	struct shim_seen s;
	int rc = shim_box_want(b, &w, e);

	if (rc < 0)
		return rc;
	w.up = false;
	w.kill = kill;
	rc = shim_box_set_want(b, &w, e);
	if (rc == 0)
		rc = let_rest(b, e);
	if (rc < 0)
		return rc == AQE_E_ABSENT ? 0 : rc; /* --rm: it removed itself */
	rc = shim_box_seen(b, &s, e);
	if (rc == 0 && shim_seen_runs(&s))
		rc = aqe_err_set(e, AQE_E_TIMEOUT, 0, "'%s' could not be stopped", b->name);
	return rc;
}

int shim_sandbox_remove(struct shim_box *b, struct aqe_err *e)
{
	const struct shim_engine_ops *engine = shim_engine_find(b->plan.engine);
	struct shim_event ev = SHIM_EVENT_INIT(SHIM_EVENT_DESTROYED);
	int rc = shim_sandbox_end(b, true, e);

	if (rc == 0 && engine)
		rc = engine->destroy(b, e);
	if (rc == 0)
		rc = shim_box_remove(b, e);
	return rc < 0 ? rc : shim_event_write(b, &ev, e);
}

/* ---- commands ---- */

typedef int end_fn(struct shim_sb *sb, struct shim_box *b, struct aqe_err *e);

static int end_each(const struct aqe_cli_cmd *cmd, end_fn *fn, int argc, char **argv)
{
	struct shim_sb sb;
	int rc = shim_sb_begin(&sb, cmd, SHIM_SB_OPERANDS, 1, 4096, argc, argv);
	int status = SHIM_EXIT_OK;

	if (rc >= 0)
		return rc;
	shim_box_sweep(sb.arena, &sb.place);
	for (size_t i = 0; i < sb.n_words; i++) {
		SHIM_AUTO_BOX struct shim_box b = SHIM_BOX_INIT;
		struct aqe_err e = AQE_ERR_INIT;

		rc = shim_box_find(sb.arena, &sb.place, sb.words[i], &b, &e);
		if (rc == 0)
			rc = fn(&sb, &b, &e);
		if (rc < 0)
			status = shim_sb_fail(&sb, &e);
		else
			(void)printf("%s\n", b.name);
	}
	shim_sb_done(&sb);
	return status;
}

static int stop_one(struct shim_sb *sb, struct shim_box *b, struct aqe_err *e)
{
	return shim_sandbox_end(b, sb->value[SHIM_SB_FORCE] != NULL, e);
}

static int remove_one(struct shim_sb *sb, struct shim_box *b, struct aqe_err *e)
{
	struct shim_seen s;
	int rc = shim_box_seen(b, &s, e);

	if (rc < 0)
		return rc;
	if (!sb->value[SHIM_SB_FORCE] && (shim_box_is_supervised(b) || shim_seen_runs(&s)))
		return aqe_err_set(e, AQE_E_REFUSED, 0, "'%s' runs: stop it first, or use -f",
				   b->name);
	return shim_sandbox_remove(b, e);
}

int shim_sandbox_stop(int argc, char **argv)
{
	return end_each(&STOP, stop_one, argc, argv);
}

int shim_sandbox_rm(int argc, char **argv)
{
	return end_each(&RM, remove_one, argc, argv);
}

/* All are asked to stop before the first one is waited for. */
static int ask_to_stop(void *arg, struct shim_box *b, struct aqe_err *e)
{
	struct shim_want w;

	(void)arg;
	if (shim_box_want(b, &w, NULL) < 0)
		return 0;
	w.up = false;
	return shim_box_set_want(b, &w, e);
}

struct tally {
	struct shim_sb *sb;
	size_t done, failed;
};

static int destroy_one(void *arg, struct shim_box *b, struct aqe_err *e)
{
	struct tally *t = arg;
	struct aqe_err cause = AQE_ERR_INIT;

	(void)e;
	if (shim_sandbox_remove(b, &cause) < 0) {
		(void)shim_sb_fail(t->sb, &cause); /* the others go on */
		t->failed++;
	} else {
		(void)printf("%s\n", b->name);
		t->done++;
	}
	return 0;
}

int shim_sandbox_destroy_all(int argc, char **argv)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_sb sb;
	struct tally t = { &sb, 0, 0 };
	int rc = shim_sb_begin(&sb, &DESTROY_ALL, SHIM_SB_OPERANDS, 0, 0, argc, argv);

	if (rc >= 0)
		return rc;
	shim_box_sweep(sb.arena, &sb.place);
	rc = shim_sb_each(&sb, ask_to_stop, NULL, &e);
	if (rc == 0)
		rc = shim_sb_each(&sb, destroy_one, &t, &e);
	rc = rc < 0 ? shim_sb_fail(&sb, &e) : t.failed ? SHIM_EXIT_FAILED : SHIM_EXIT_OK;
	shim_sb_done(&sb);
	return rc;
}

/* ---- reset ---- */

static int reset_box(struct shim_box *b, struct aqe_err *e)
{
	struct shim_sup_saved saved;
	struct shim_want w;
	struct shim_seen s;
	int rc = shim_box_want(b, &w, e), recorded = 0;

	if (rc < 0)
		return rc;
	if (shim_box_is_supervised(b)) { /* its monitor forgets */
		w.resets++;
		rc = shim_box_set_want(b, &w, e);
		return rc < 0 ? rc : shim_supervise_record_reset(b->name, e);
	}
	rc = shim_store_load(b->place->supervisor_fd, b->name, &saved, NULL, e);
	saved.failures = 0;
	saved.hold = SHIM_SUP_HOLD_NONE;
	if (rc == 0)
		rc = shim_store_save(b->place->supervisor_fd, b->name, &saved, e);
	if (rc == 0)
		rc = shim_box_seen(b, &s, e);
	s.hold = s.error = NULL;
	s.failures = 0;
	if (rc == 0 && aqe_str_eq(s.status, "held"))
		s.status = "created";
	if (rc == 0)
		rc = shim_box_set_seen(b, &s, e);
	if (rc == 0)
		recorded = shim_supervise_record_reset(b->name, e);
	/* it starts again, recorded or not */
	if (rc == 0 && w.up)
		rc = shim_monitor_ensure(b, recorded < 0 ? NULL : e);
	return rc < 0 ? rc : recorded;
}

int shim_sb_counts(const struct shim_sb *sb, int *ret_own)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char path[512];

	if (geteuid() == 0 || !runtime || runtime[0] != '/')
		return sb->place.supervisor_fd;
	(void)snprintf(path, sizeof(path), "%s/aqe-shim/.restarts", runtime);
	return aqe_fs_open_dir(path, ret_own, NULL) == 0 ? *ret_own : sb->place.supervisor_fd;
}

/* The engine's container of a sandbox is counted by the shim as well. */
static void reset_container(struct shim_sb *sb, struct shim_box *b)
{
	const struct shim_engine_ops *engine = shim_engine_find(b->plan.engine);
	struct shim_engine_state st;
	AQE_AUTO_FD int own = -1;

	if (engine && !aqe_str_eq(b->plan.engine, "oci") && engine->state(b, &st, NULL) == 0 &&
	    st.container)
		(void)!shim_store_remove(shim_sb_counts(sb, &own), st.container, NULL);
}

/* A container of an engine that went through the shim: the shim's own count (runtime_restart.c). */
static int reset_count(struct shim_sb *sb, const char *what, struct aqe_err *e)
{
	AQE_AUTO_FD int own = -1;
	char id[SHIM_STORE_ID_MAX + 1];
	int dir = shim_sb_counts(sb, &own), rc;

	rc = shim_store_find(dir, what, id, NULL);
	if (rc == AQE_E_ABSENT)
		return aqe_err_set(
			e, AQE_E_ABSENT, 0,
			"'%.100s' not found: no sandbox, and no container whose failures "
			"are counted",
			what);
	if (rc == 0)
		rc = shim_store_remove(dir, id, e);
	else
		rc = aqe_err_set(e, AQE_E_USAGE, 0, "'%.100s' names several containers", what);
	if (rc == 0)
		rc = shim_supervise_record_reset(id, e);
	if (rc == 0)
		(void)printf("%s\n", id);
	return rc;
}

int shim_sandbox_reset(int argc, char **argv)
{
	struct shim_sb sb;
	int rc = shim_sb_begin(&sb, &RESET, SHIM_SB_OPERANDS, 1, 4096, argc, argv);
	int status = SHIM_EXIT_OK;

	if (rc >= 0)
		return rc;
	for (size_t i = 0; i < sb.n_words; i++) {
		SHIM_AUTO_BOX struct shim_box b = SHIM_BOX_INIT;
		struct aqe_err e = AQE_ERR_INIT;

		rc = shim_box_find(sb.arena, &sb.place, sb.words[i], &b, &e);
		if (rc == 0) {
			reset_container(&sb, &b);
			rc = reset_box(&b, &e);
			if (rc == 0)
				(void)printf("%s\n", b.name);
		} else if (rc == AQE_E_ABSENT) {
			rc = reset_count(&sb, sb.words[i], &e);
		}
		if (rc < 0)
			status = shim_sb_fail(&sb, &e);
	}
	shim_sb_done(&sb);
	return status;
}
