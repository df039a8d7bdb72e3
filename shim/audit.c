/* SPDX-License-Identifier: MIT */
#include "shim/audit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "audit/log.h"
#include "audit/lost.h"
#include "shim/aqe/audit_at.h"
#include "shim/aqe/audit_journal.h"
#include "shim/audit_meta.h"
#include "shim/core/cleanup.h"
#include "shim/core/clock.h"
#include "shim/core/text.h"
#include "shim/runtime.h"
#include "shim/runtime_judge.h"

#define NS_PER_S INT64_C(1000000000)
/* How long a call that must not fail waits for other writers. */
#define PATIENCE_MS 250
/* A decision, and every property waived. */
#define ROWS_MAX (1 + HARD_PROP_COUNT)
/* With less left on the disk no container is created: a row and its indexes take as much. */
#define SPACE_MIN ((uint64_t)64 << 10)

static int nomem(struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the audit row");
}

/* ---- what is known ---- */

void shim_audit_words(struct shim_rt *rt)
{
	rt->audit.base.method = SHIM_VERBS[rt->av.verb].name;
	if (rt->av.id && oci_id_ok(rt->av.id))
		rt->audit.base.container = rt->av.id;
}

void shim_audit_policy(struct shim_rt *rt, const struct hard_policy *policy)
{
	bool rootless = geteuid() != 0 || shim_state_in_userns();
	const char *path = rootless ? policy->audit.user_path : policy->audit.path;

	rt->audit.mode = policy->audit.mode;
	rt->audit.sign_every = policy->audit.sign_every;
	rt->audit.dir = path ? aqe_arena_dup(rt->arena, path) : NULL;
	rt->audit.base.policy = aqe_arena_dup(rt->arena, policy->digest);
}

void shim_audit_record(struct shim_rt *rt, const struct shim_record *rec)
{
	struct audit_row *b = &rt->audit.base;

	rt->audit.mode = rec->audit_mode;
	rt->audit.sign_every = rec->audit_sign_every;
	rt->audit.dir = rec->audit_dir;
	b->policy = rec->policy_digest;
	b->image = rec->image_id;
	b->agent_type = rec->agent.type;
	b->agent_id = rec->agent_id;
}

void shim_audit_judged(struct shim_rt *rt, const struct shim_judged *j)
{
	struct audit_row *b = &rt->audit.base;

	if (j->image.known)
		b->image = aqe_arena_dup(rt->arena, j->image.image_id);
	if (j->ctx.agent)
		b->agent_type = aqe_arena_dup(rt->arena, j->ctx.agent->type);
	b->agent_id = j->agent_id;
}

/* ---- where ---- */

static bool read_link(const struct shim_rt *rt, const char *name, char ret[PATH_MAX])
{
	ssize_t n = rt->state.fd < 0 ? -1 : readlinkat(rt->state.fd, name, ret, PATH_MAX - 1);

	if (n <= 0)
		return false;
	ret[n] = '\0';
	return true;
}

static void open_state(struct shim_rt *rt)
{
	struct aqe_err ignored = AQE_ERR_INIT;

	if (rt->state.fd < 0)
		(void)!shim_state_open(rt->arena, rt->envp, false, &rt->state, &ignored);
}

/* The folder when nothing has named it so far. */
static int find(struct shim_rt *rt, struct aqe_err *e)
{
	struct audit_opts at = { .dir = NULL };
	char target[PATH_MAX];
	int rc;

	open_state(rt);
	/* without a policy the last log is a better place than one it may have moved away from */
	if (!rt->audit.base.policy && read_link(rt, SHIM_AUDIT_LINK, target) && target[0] == '/') {
		rt->audit.dir = aqe_arena_dup(rt->arena, target);
		return rt->audit.dir ? 0 : nomem(e);
	}
	rc = shim_audit_at(rt->arena, rt->envp, AUDIT_WRITE, &at, e);
	if (rc == 0)
		rt->audit.dir = at.dir;
	return rc;
}

/* In the record, because later calls have less environment. */
static int find_wanted(struct shim_rt *rt, struct aqe_err *e)
{
	int rc = 0;

	if (rt->audit.mode != HARD_AUDIT_OFF && !rt->audit.dir)
		rc = find(rt, e);
	return rt->audit.mode == HARD_AUDIT_REQUIRED ? rc : 0;
}

static bool has_link(const struct shim_rt *rt, const char *name, const char *want)
{
	char target[PATH_MAX];

	return read_link(rt, name, target) && strcmp(target, want) == 0;
}

/* Exchanges a link of the state folder; one that fails is made by the next call. */
static void set_link(struct shim_rt *rt, const char *name, const char *target)
{
	char tmp[32];

	(void)snprintf(tmp, sizeof(tmp), "%s.%d", name, (int)getpid());
	if (symlinkat(target, rt->state.fd, tmp) == 0 &&
	    renameat(rt->state.fd, tmp, rt->state.fd, name) < 0)
		(void)unlinkat(rt->state.fd, tmp, 0);
}

/* Root's usual place needs no link. */
static void remember_place(struct shim_rt *rt)
{
	if (strcmp(rt->audit.dir, AUDIT_DIR_SYSTEM) == 0)
		(void)unlinkat(rt->state.fd, SHIM_AUDIT_LINK, 0); /* mostly there is none */
	else if (!has_link(rt, SHIM_AUDIT_LINK, rt->audit.dir))
		set_link(rt, SHIM_AUDIT_LINK, rt->audit.dir);
}

/* ---- storing ---- */

enum how {
	BEST_EFFORT = 1U << 0, /* short patience */
	NO_FLUSH = 1U << 1,    /* may be lost in a power cut */
	IN_DATABASE = 1U << 2, /* not left in the spool: only the database knows what is new */
};

static int store(struct shim_rt *rt, struct audit_row *rows, size_t n, unsigned how,
		 struct aqe_err *e)
{
	struct audit_opts o = {
		.flags = AUDIT_ONE_DECISION | (how & NO_FLUSH ? (unsigned)AUDIT_NO_FLUSH : 0U) |
			 (unsigned)(how & IN_DATABASE ? AUDIT_NEW_POLICY_ONLY : AUDIT_SPOOL),
		.sign_every = rt->audit.sign_every,
		.deadline_ms = how & BEST_EFFORT ? PATIENCE_MS : 0,
		.added = shim_journal_row
	};
	int rc = 0;

	if (rt->audit.mode == HARD_AUDIT_OFF)
		return 0;
	if (rt->audit.failed)
		return rt->audit.mode == HARD_AUDIT_OPTIONAL
			       ? 0
			       : aqe_err_set(e, AQE_E_SYS, 0,
					     "not recorded: the audit log failed before");
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = audit_row_fit(&rows[i], rt->arena, e);
	if (rc == 0)
		rc = find_wanted(rt, e);
	if (rc == 0 && rt->audit.dir) {
		open_state(rt);
		o.dir = rt->audit.dir;
		o.spare_dir = rt->state.path;
		rc = audit_record(&o, rows, n, e);
	}
	if (rc == 0) {
		shim_journal_rows(rows, n);
		return 0;
	}
	rt->audit.failed = true;
	return rt->audit.mode == HARD_AUDIT_OPTIONAL ? 0 : aqe_err_wrap(e, "not recorded");
}

static struct audit_row row(const struct shim_rt *rt, enum audit_kind kind,
			    enum audit_action action)
{
	struct audit_row r = rt->audit.base;

	r.kind = kind;
	r.action = action;
	return r;
}

static int waiver_row(struct shim_rt *rt, const struct hard_waiver *w, struct audit_row *ret,
		      struct aqe_err *e)
{
	char until[AQE_TIME_TEXT];
	struct shim_meta m;

	aqe_time_format(w->expires, until);
	shim_meta_init(&m, rt->arena);
	shim_meta_str(&m, "owner", w->owner);
	shim_meta_str(&m, "expires", until);
	*ret = row(rt, AUDIT_WAIVER, AUDIT_ALLOWED);
	ret->waiver = ret->rule = HARDENING_PROFILE[w->prop].id;
	ret->reason = w->reason;
	ret->meta = shim_meta_text(&m);
	return ret->meta ? 0 : nomem(e);
}

/* Appends a row for each waiver of `list`, one a property. */
static int waiver_rows(struct shim_rt *rt, const struct hard_waiver *const *list,
		       struct audit_row *rows, size_t *n, struct aqe_err *e)
{
	for (int p = 0; p < HARD_PROP_COUNT; p++) {
		int rc = list[p] ? waiver_row(rt, list[p], &rows[(*n)++], e) : 0;

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ---- policies ---- */

static int policy_row(struct shim_rt *rt, const struct hard_policy *p, struct audit_row *ret,
		      struct aqe_err *e)
{
	static const char *const modes[] = {
		[HARD_MODE_OBSERVE] = "observe",
		[HARD_MODE_VERIFY] = "verify",
		[HARD_MODE_ENFORCE] = "enforce",
	};
	struct shim_meta m;

	shim_meta_init(&m, rt->arena);
	shim_meta_str(&m, "mode", modes[p->mode]);
	shim_meta_str(&m, "files", p->files);
	shim_meta_num(&m, "images", (int64_t)p->n_images);
	shim_meta_num(&m, "waivers", (int64_t)p->n_waivers);
	*ret = (struct audit_row)AUDIT_ROW_INIT(AUDIT_POLICY, AUDIT_CHANGED);
	ret->policy = rt->audit.base.policy;
	ret->meta = shim_meta_text(&m);
	return ret->meta ? 0 : nomem(e);
}

/* "DIGEST@INODE" of policy and log: another log has not seen the policy. */
static const char *policy_mark(struct shim_rt *rt)
{
	char path[PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/" AUDIT_DB_FILE, rt->audit.dir) >= PATH_MAX ||
	    stat(path, &st) < 0)
		return NULL;
	return aqe_arena_fmt(rt->arena, "%s@%llu", rt->audit.base.policy,
			     (unsigned long long)st.st_ino);
}

int shim_audit_loaded(struct shim_rt *rt, const struct hard_policy *policy, struct aqe_err *e)
{
	struct audit_row r;
	const char *mark;
	int rc = find_wanted(rt, e);

	if (rc < 0 || rt->audit.mode == HARD_AUDIT_OFF || !rt->audit.dir)
		return rc;
	remember_place(rt);
	mark = policy_mark(rt);
	if (mark && has_link(rt, SHIM_AUDIT_POLICY, mark))
		return 0;
	rc = policy_row(rt, policy, &r, e);
	if (rc == 0)
		rc = store(rt, &r, 1,
			   rt->audit.mode == HARD_AUDIT_REQUIRED ? IN_DATABASE
								 : IN_DATABASE | BEST_EFFORT,
			   e);
	mark = rc == 0 && !rt->audit.failed ? policy_mark(rt) : NULL;
	if (mark)
		set_link(rt, SHIM_AUDIT_POLICY, mark);
	return rc;
}

/* ---- create and start ---- */

static int unfit(struct shim_rt *rt, int sys, const char *why, struct aqe_err *e)
{
	const struct audit_opts o = { .dir = rt->audit.dir, .spare_dir = rt->state.path };
	struct aqe_err ignored = AQE_ERR_INIT;

	rt->audit.failed = true;
	if (rt->audit.mode != HARD_AUDIT_REQUIRED)
		return 0;
	(void)!audit_lost_add(&o, 1, why, &ignored);
	return aqe_err_set(e, AQE_E_SYS, sys, "not recorded: audit log '%s': %s", rt->audit.dir,
			   why);
}

/* What is seen at a glance is refused before anything is made; `start` finds out the rest. */
static int glance(struct shim_rt *rt, struct aqe_err *e)
{
	struct statvfs fs;
	uint64_t left;

	if (statvfs(rt->audit.dir, &fs) < 0)
		return errno == ENOENT ? 0 : unfit(rt, errno, "cannot be looked at", e);
	if (fs.f_flag & ST_RDONLY)
		return unfit(rt, 0, "read-only", e);
	left = geteuid() == 0 ? fs.f_bfree : fs.f_bavail; /* root may use the reserve */
	if (left * fs.f_frsize < SPACE_MIN)
		return unfit(rt, 0, "disk full", e);
	return 0;
}

/* Who it is, for both enforcing and observing. */
static void meta_identity(struct shim_meta *m, const struct shim_judged *j)
{
	shim_meta_str(m, "engine", oci_engine_name(j->image.engine));
	shim_meta_str(m, "imageName", j->image.name);
	shim_meta_str(m, "manifest", j->image.n_digests ? j->image.digests[0] : NULL);
	shim_meta_command(m, aqe_json_get(j->out ? j->out : j->in, "process"));
	shim_meta_str(m, "runtime", j->policy->runtime_path);
}

int shim_audit_created(struct shim_rt *rt, const struct shim_judged *j, struct aqe_err *e)
{
	struct shim_meta m;

	if (rt->audit.mode == HARD_AUDIT_OFF)
		return 0;
	shim_meta_init(&m, rt->arena);
	meta_identity(&m, j);
	rt->audit.changed = shim_meta_changes(&m, "", j->in, j->out) > 0;
	rt->audit.start = shim_meta_text(&m);
	if (!rt->audit.start)
		return nomem(e);
	return rt->audit.dir && !rt->audit.failed ? glance(rt, e) : 0;
}

/* The record's waiver for a property, if it was used. */
static const struct hard_waiver *used_waiver(const struct shim_record *rec, int prop,
					     const struct hard_waiver *by_effect)
{
	for (size_t i = 0; !by_effect && rec->waived[prop] && i < rec->n_waivers; i++) {
		if (rec->waivers[i].prop == (enum hard_prop)prop)
			return &rec->waivers[i];
	}
	return by_effect;
}

int shim_audit_started(struct shim_rt *rt, const struct shim_record *rec,
		       const struct hard_waiver *const *waived, struct aqe_err *e)
{
	const struct hard_waiver *used[HARD_PROP_COUNT];
	struct audit_row rows[ROWS_MAX];
	size_t n = 0;
	int rc;

	for (int p = 0; p < HARD_PROP_COUNT; p++)
		used[p] = used_waiver(rec, p, waived[p]);
	rc = waiver_rows(rt, used, rows, &n, e);
	if (rc < 0)
		return rc;
	rows[n] = row(rt, AUDIT_START, rec->changed ? AUDIT_CHANGED : AUDIT_ALLOWED);
	rows[n++].meta = rec->audit_start;
	return store(rt, rows, n, 0, e);
}

/* ---- exec and update ---- */

/* The decision's row, after those of its waivers. */
static int decided(struct shim_rt *rt, struct audit_row *decision, struct shim_meta *m,
		   const struct hard_report *report, struct aqe_err *e)
{
	struct audit_row rows[ROWS_MAX];
	const struct hard_waiver *used[HARD_PROP_COUNT];
	size_t n = 0;
	int rc;

	for (int p = 0; p < HARD_PROP_COUNT; p++)
		used[p] = report->result[p] == HARD_WAIVED ? report->waiver[p] : NULL;
	rc = waiver_rows(rt, used, rows, &n, e);
	if (rc < 0)
		return rc;
	decision->meta = shim_meta_text(m);
	if (!decision->meta)
		return nomem(e);
	rows[n++] = *decision;
	return store(rt, rows, n, 0, e);
}

int shim_audit_exec(struct shim_rt *rt, const struct aqe_json *before, const struct aqe_json *after,
		    const struct hard_report *report, struct aqe_err *e)
{
	struct audit_row r;
	struct shim_meta m;
	uint64_t uid = 0;
	size_t changes;

	shim_meta_init(&m, rt->arena);
	shim_meta_command(&m, after);
	if (aqe_json_to_u64(aqe_json_at(after, "/user/uid"), UINT32_MAX, &uid))
		shim_meta_num(&m, "uid", (int64_t)uid);
	changes = shim_meta_changes(&m, "/process", before, after);
	r = row(rt, AUDIT_EXEC, changes ? AUDIT_CHANGED : AUDIT_ALLOWED);
	return decided(rt, &r, &m, report, e);
}

int shim_audit_update(struct shim_rt *rt, const struct aqe_json *before,
		      const struct aqe_json *after, const struct hard_report *report,
		      struct aqe_err *e)
{
	struct audit_row r;
	struct shim_meta m;
	size_t changes;

	shim_meta_init(&m, rt->arena);
	shim_meta_json(&m, "resources", after); /* limits and cpu lists: the schema has no more */
	changes = shim_meta_changes(&m, "/linux/resources", before, after);
	r = row(rt, AUDIT_UPDATE, changes ? AUDIT_CHANGED : AUDIT_ALLOWED);
	return decided(rt, &r, &m, report, e);
}

/* ---- refusals, and what cannot be refused ---- */

/* Verbs that decide; the others are never refused by us, or say nothing about a container. */
static bool decides(enum shim_verb verb)
{
	return verb == SHIM_VERB_CREATE || verb == SHIM_VERB_START || verb == SHIM_VERB_RUN ||
	       verb == SHIM_VERB_EXEC || verb == SHIM_VERB_UPDATE || verb == SHIM_VERB_RESTORE ||
	       verb == SHIM_VERB_CHECKPOINT;
}

void shim_audit_refused(struct shim_rt *rt, const struct hard_report *report, struct aqe_buf *text)
{
	const struct hard_finding *worst = report ? hard_report_worst(report) : NULL;
	struct audit_row r = row(rt, AUDIT_REFUSAL, AUDIT_REFUSED);
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_meta m;

	/* when the log is the reason, it has counted the row it could not store */
	if (!decides(rt->av.verb) || rt->audit.failed)
		return;
	shim_meta_init(&m, rt->arena);
	if (report)
		shim_meta_findings(&m, report);
	r.reason = rt->audit.reason ? rt->audit.reason : aqe_buf_str(text);
	r.rule = worst ? HARDENING_PROFILE[worst->prop].id : NULL;
	r.meta = report ? shim_meta_text(&m) : NULL;
	if (store(rt, &r, 1, 0, &e) < 0)
		(void)aqe_buf_addf(text, "\n(this refusal was %s)", e.text);
}

/* Since `create`, by the clock that nobody sets. */
static int64_t lived_ns(const struct shim_record *rec)
{
	const long hz = sysconf(_SC_CLK_TCK); /* the unit of a process's start time */
	struct timespec ts = { 0, 0 };
	int64_t ns, now;

	if (hz <= 0 || rec->creator_start > (uint64_t)(INT64_MAX / NS_PER_S * hz))
		return AUDIT_NONE;
	ns = (int64_t)(rec->creator_start / (uint64_t)hz) * NS_PER_S +
	     (int64_t)(rec->creator_start % (uint64_t)hz) * (NS_PER_S / hz);
	(void)clock_gettime(CLOCK_BOOTTIME, &ts); /* cannot fail with a valid clock and pointer */
	now = (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
	return now >= ns ? now - ns : AUDIT_NONE;
}

void shim_audit_stopped(struct shim_rt *rt, const struct shim_record *rec, int64_t status)
{
	struct aqe_err ignored = AQE_ERR_INIT;
	struct audit_row r;
	struct stat st;

	shim_audit_record(rt, rec);
	/* a log that was moved away must not be made again by the last word of an old container */
	if (!rt->audit.dir || lstat(rt->audit.dir, &st) < 0)
		return;
	r = row(rt, AUDIT_STOP, AUDIT_ALLOWED);
	r.status = status;
	r.duration_ns = lived_ns(rec);
	(void)!store(rt, &r, 1, BEST_EFFORT | NO_FLUSH, &ignored);
}

static const enum audit_kind observed_kinds[SHIM_VERB_COUNT] = {
	[SHIM_VERB_CREATE] = AUDIT_START,  [SHIM_VERB_START] = AUDIT_START,
	[SHIM_VERB_RUN] = AUDIT_START,     [SHIM_VERB_EXEC] = AUDIT_EXEC,
	[SHIM_VERB_UPDATE] = AUDIT_UPDATE,
};

void shim_audit_observed(struct shim_rt *rt, const struct shim_judged *j,
			 const struct aqe_err *fault)
{
	const enum audit_kind kind = observed_kinds[rt->av.verb];
	struct aqe_err ignored = AQE_ERR_INIT;
	struct audit_row r = row(rt, kind, AUDIT_ALLOWED);
	struct shim_meta m;

	if (kind == AUDIT_KIND_ANY)
		return;
	shim_meta_init(&m, rt->arena);
	shim_meta_str(&m, "mode", "observe");
	if (j) {
		shim_meta_str(&m, "would", j->out ? "rewrite" : "refuse");
		meta_identity(&m, j);
		shim_meta_findings(&m, &j->report);
	}
	r.reason = fault && fault->text[0] ? fault->text : NULL;
	r.meta = shim_meta_text(&m);
	if (r.meta)
		(void)!store(rt, &r, 1, BEST_EFFORT | NO_FLUSH, &ignored);
}
