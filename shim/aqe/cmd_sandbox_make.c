/* SPDX-License-Identifier: MIT */
/* aqe sandbox create, run, start. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "hardening/policy.h"
#include "shim/aqe/audit_when.h"
#include "shim/aqe/sandbox_cmd.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/env.h"
#include "shim/exit.h"
#include "shim/sandbox/engine.h"
#include "shim/sandbox/events.h"
#include "shim/sandbox/image_store.h"
#include "shim/sandbox/monitor.h"
#include "shim/sandbox/size.h"

/* How long a command waits beyond the start's own limit; the supervisor goes on. */
#define START_MARGIN_MS 30000

/* clang-format off: rows of option tables */
#define MAKE_OPTS                                                                                  \
	{ "type", 't', "TYPE", "agent type (aqe sandbox types); unknown: the ceilings of default", \
	  SHIM_SB_TYPE },                                                                          \
		{ "id", 0, "ID", "the agent's id (default: random)", SHIM_SB_ID },                 \
		{ "image", 'i', "IMAGE",                                                           \
		  "oci:DIR[:TAG], oci-archive:FILE, docker-archive:FILE, DIR, FILE, "              \
		  "sha256:HEX of an image in the store; with --engine podman or docker: its own "  \
		  "name",                                                                          \
		  SHIM_SB_IMAGE },                                                                 \
		{ "rootfs", 0, "DIR",                                                              \
		  "a root folder instead of an image; 'digest' is to be waived", SHIM_SB_ROOTFS }, \
		{ "engine", 0, "ENGINE", "oci (default: no engine), podman, docker",               \
		  SHIM_SB_ENGINE },                                                                \
		{ "cpus", 0, "N", "CPUs, such as 0.5; at most the type's", SHIM_SB_CPUS },         \
		{ "memory", 'm', "SIZE", "memory and swap, such as 512m; at most the type's",      \
		  SHIM_SB_MEMORY },                                                                \
		{ "disk", 0, "SIZE", "of the writable tmpfs; at most the type's", SHIM_SB_DISK },  \
		{ "pids", 0, "N", "processes; at most the type's", SHIM_SB_PIDS },                 \
		{ "network", 0, "MODE", "isolated or whitelisted; never wider than the type's",    \
		  SHIM_SB_NETWORK },                                                               \
		{ "user", 'u', "USER", "name or UID[:GID]; never root", SHIM_SB_USER },            \
		{ "workdir", 'w', "DIR", "working directory", SHIM_SB_WORKDIR },                   \
		{ "env", 'e', "NAME=VALUE", "variable; may be repeated", SHIM_SB_ENV },            \
		{ "read-only", 0, "BOOL", "true; false is refused", SHIM_SB_READ_ONLY },           \
		{ "restart", 0, "POLICY",                                                          \
		  "no, on-failure or always, by the supervisor's schedule", SHIM_SB_RESTART },     \
		{ "grace", 0, "TIME", "from SIGTERM to SIGKILL (default 10s)", SHIM_SB_GRACE },    \
		{ "start-timeout", 0, "TIME", "of one start by the runtime (default 30s)",         \
		  SHIM_SB_START_TIMEOUT },                                                         \
		{ "health-cmd", 0, "COMMAND", "shell command; status 0 is healthy",                \
		  SHIM_SB_HEALTH_CMD },                                                            \
		{ "health-interval", 0, "TIME", "default 30s", SHIM_SB_HEALTH_INTERVAL },          \
		{ "health-timeout", 0, "TIME", "default 10s", SHIM_SB_HEALTH_TIMEOUT },            \
		{ "health-retries", 0, "N", "failures until it is unhealthy (default 3)",          \
		  SHIM_SB_HEALTH_RETRIES },                                                        \
		{ "health-start-period", 0, "TIME", "before the first check (default 5s)",         \
		  SHIM_SB_HEALTH_START },                                                          \
		{ "oom-prevention", 0, "MODE",                                                     \
		  "at 95 % of memory: off, reclaim, or stop (default)", SHIM_SB_OOM },             \
		{ "rm", 0, NULL, "remove it when it has ended", SHIM_SB_RM }, SHIM_SB_OPT_FORMAT,  \
		SHIM_SB_OPT_DATA
/* clang-format on */

static const struct aqe_cli_opt CREATE_OPTS[] = { MAKE_OPTS, SHIM_SB_OPT_END };
static const struct aqe_cli_cmd CREATE = {
	.name = "aqe sandbox create",
	.synopsis = "--image IMAGE [OPTION...] [--] [COMMAND [ARGUMENT...]]",
	.about = "Makes a sandbox and prints its name. Overrides may only tighten what its agent "
		 "type allows; every violation is listed.",
	.opts = CREATE_OPTS,
};
static const struct aqe_cli_opt RUN_OPTS[] = {
	{ "detach", 'd', NULL, "in the background: prints the name", SHIM_SB_DETACH },
	MAKE_OPTS,
	SHIM_SB_OPT_END,
};
static const struct aqe_cli_cmd RUN = {
	.name = "aqe sandbox run",
	.synopsis = "[-d] --image IMAGE [OPTION...] [--] [COMMAND [ARGUMENT...]]",
	.about = "Makes and starts a sandbox. In the foreground its output is shown, it is not "
		 "restarted, and its exit status is this command's.",
	.opts = RUN_OPTS,
};
static const struct aqe_cli_opt START_OPTS[] = { SHIM_SB_OPT_DATA, SHIM_SB_OPT_END };
static const struct aqe_cli_cmd START = {
	.name = "aqe sandbox start",
	.synopsis = "NAME...",
	.about =
		"Starts sandboxes that were made or have stopped. One that is held stays held: see "
		"aqe sandbox reset.",
	.opts = START_OPTS,
};

/* ---- the plan ---- */

static int bad_value(const char *option, const char *value, const char *want, struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_USAGE, 0, "--%s: '%.60s' is not %s", option, value, want);
}

static int take_size(const char *option, const char *value, uint64_t *ret, struct aqe_err *e)
{
	if (!value || shim_size_parse(value, ret))
		return 0;
	return bad_value(option, value, "a size such as 512m or 2g", e);
}

static int take_u32(const char *option, const char *value, uint32_t *ret, struct aqe_err *e)
{
	uint64_t v;

	if (!value)
		return 0;
	if (!aqe_parse_u64(value, UINT32_MAX, &v))
		return bad_value(option, value, "a number", e);
	*ret = (uint32_t)v;
	return 0;
}

static int take_ms(const char *option, const char *value, uint32_t *ret, struct aqe_err *e)
{
	int64_t ns;

	if (!value)
		return 0;
	if (!shim_duration_parse(value, &ns) || ns / 1000000 > 24 * 3600 * 1000)
		return bad_value(option, value, "a time such as 10s or 1m, at most a day", e);
	*ret = (uint32_t)(ns / 1000000);
	return 0;
}

static void take_str(const char *value, const char **ret)
{
	if (value)
		*ret = value;
}

static int take_limits(const struct shim_sb *sb, struct shim_plan *p, struct aqe_err *e)
{
	const char *const *v = sb->value;
	int rc = take_size("memory", v[SHIM_SB_MEMORY], &p->memory, e);

	if (rc == 0 && v[SHIM_SB_CPUS] && !shim_cpus_parse(v[SHIM_SB_CPUS], &p->cpus_milli))
		rc = bad_value("cpus", v[SHIM_SB_CPUS], "a number of CPUs such as 0.5", e);
	if (rc == 0)
		rc = take_size("disk", v[SHIM_SB_DISK], &p->disk, e);
	if (rc == 0)
		rc = take_u32("pids", v[SHIM_SB_PIDS], &p->pids, e);
	if (rc == 0)
		rc = take_ms("grace", v[SHIM_SB_GRACE], &p->grace_ms, e);
	if (rc == 0)
		rc = take_ms("start-timeout", v[SHIM_SB_START_TIMEOUT], &p->start_timeout_ms, e);
	return rc;
}

static int take_health(const struct shim_sb *sb, struct shim_plan *p, struct aqe_err *e)
{
	const char *const *v = sb->value;
	int rc = take_ms("health-interval", v[SHIM_SB_HEALTH_INTERVAL], &p->health_interval_ms, e);

	take_str(v[SHIM_SB_HEALTH_CMD], &p->health);
	if (rc == 0)
		rc = take_ms("health-timeout", v[SHIM_SB_HEALTH_TIMEOUT], &p->health_timeout_ms, e);
	if (rc == 0)
		rc = take_ms("health-start-period", v[SHIM_SB_HEALTH_START], &p->health_start_ms,
			     e);
	if (rc == 0)
		rc = take_u32("health-retries", v[SHIM_SB_HEALTH_RETRIES], &p->health_retries, e);
	if (rc == 0 && (p->health_interval_ms < 100 || p->health_timeout_ms < 100))
		rc = aqe_err_set(e, AQE_E_USAGE, 0, "health checks need 100 ms or more");
	return rc;
}

static int take_words(const struct shim_sb *sb, struct shim_plan *p, struct aqe_err *e)
{
	const char *const *v = sb->value;
	const char *read_only = v[SHIM_SB_READ_ONLY];

	take_str(v[SHIM_SB_ENGINE], &p->engine);
	take_str(v[SHIM_SB_IMAGE], &p->image);
	take_str(v[SHIM_SB_ROOTFS], &p->rootfs);
	take_str(v[SHIM_SB_NETWORK], &p->network);
	take_str(v[SHIM_SB_USER], &p->user);
	take_str(v[SHIM_SB_WORKDIR], &p->workdir);
	take_str(v[SHIM_SB_RESTART], &p->restart);
	take_str(v[SHIM_SB_OOM], &p->oom);
	p->remove = v[SHIM_SB_RM] != NULL;
	p->env = (struct shim_strs){ sb->env, sb->n_env };
	p->args = (struct shim_strs){ (const char *const *)sb->words, sb->n_words };
	p->writable_root = read_only && aqe_str_eq(read_only, "false");
	if (read_only && !p->writable_root && !aqe_str_eq(read_only, "true"))
		return bad_value("read-only", read_only, "true or false", e);
	return 0;
}

static const char *random_id(struct aqe_arena *a)
{
	uint64_t r[2] = { 0, 0 };

	/* a repeated id would only be a second sandbox of that id */
	(void)!getrandom(r, sizeof(r), 0);
	return aqe_arena_fmt(a, "%016llx%016llx", (unsigned long long)r[0],
			     (unsigned long long)r[1]);
}

/* The type's ceilings as the policy has them; without a policy, the built-in ones. */
static int find_agent(struct shim_sb *sb, const char *type, struct hard_policy **policy,
		      const struct hard_agent **ret, struct aqe_err *e)
{
	int rc = hard_policy_load(HARD_POLICY_DIR, shim_env_policy_dir(sb->arena, environ), policy,
				  e);

	if (rc == AQE_E_ABSENT) {
		*ret = hard_agent_find(type);
		if (!*ret)
			*ret = hard_agent_default();
		return 0;
	}
	if (rc < 0)
		return aqe_err_wrap(e, "policy");
	*ret = hard_policy_agent(*policy, type);
	if (!*ret)
		*ret = hard_policy_agent(*policy, "default");
	return *ret ? 0 : aqe_err_set(e, AQE_E_INTERNAL, 0, "the policy has no default type");
}

static int judge(const struct shim_plan *p, const struct hard_agent *agent, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);
	size_t n = shim_plan_check(p, agent, &b);

	if (n == 0)
		return 0;
	(void)fputs(aqe_buf_str(&b), stderr);
	return aqe_err_set(e, AQE_E_REFUSED, 0, "refused: %zu violation%s of agent type '%.64s'", n,
			   n == 1 ? "" : "s", agent->type);
}

/* Strings of the plan may point into the policy: it lives as long as the plan. */
static int make_plan(struct shim_sb *sb, struct hard_policy **policy, struct shim_plan *p,
		     struct aqe_err *e)
{
	const struct hard_agent *agent = NULL;
	const char *type = sb->value[SHIM_SB_TYPE] ? sb->value[SHIM_SB_TYPE] : "default";
	const char *id = sb->value[SHIM_SB_ID] ? sb->value[SHIM_SB_ID] : random_id(sb->arena);
	int rc = find_agent(sb, type, policy, &agent, e);

	if (rc < 0)
		return rc;
	if (!id)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	shim_plan_defaults(p, agent);
	p->agent_type = type;
	p->agent_id = id;
	p->created_s = (int64_t)time(NULL);
	rc = take_words(sb, p, e);
	if (rc == 0)
		rc = take_limits(sb, p, e);
	if (rc == 0)
		rc = take_health(sb, p, e);
	if (rc == 0)
		rc = judge(p, agent, e);
	return rc;
}

/* ---- making ---- */

static int make_box(struct shim_sb *sb, struct shim_plan *p, struct shim_box *ret,
		    struct aqe_err *e)
{
	const struct shim_engine_ops *engine = shim_engine_find(p->engine);
	struct shim_event ev = SHIM_EVENT_INIT(SHIM_EVENT_CREATED);
	size_t swept;
	int rc;

	if (!engine)
		return aqe_err_set(e, AQE_E_ABSENT, 0, "engine '%.20s' is not built in", p->engine);
	/* of processes that were killed; while another one is being made, the next does it */
	shim_box_sweep(sb->arena, &sb->place);
	(void)!shim_images_sweep(&sb->place, &swept, NULL);
	/* the image must stay from the look at it until the sandbox says that it uses it */
	rc = shim_images_lock(&sb->place, e);
	if (rc == 0)
		rc = engine->prepare(sb->arena, &sb->place, p, e);
	if (rc == 0)
		rc = shim_box_make(sb->arena, &sb->place, p, ret, e);
	shim_images_unlock(&sb->place);
	if (rc < 0)
		return rc;
	rc = engine->create(ret, e);
	if (rc == 0)
		rc = shim_event_write(ret, &ev, e);
	if (rc < 0) {
		(void)!engine->destroy(ret, NULL); /* the cause counts */
		(void)!shim_box_remove(ret, NULL);
	}
	return rc;
}

static int print_box(struct shim_sb *sb, struct shim_box *b)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT((size_t)1 << 20);
	struct shim_seen s = SHIM_SEEN_INIT;
	struct aqe_json *doc;

	if (!sb->json) {
		(void)printf("%s\n", b->name);
		return fflush(stdout) == 0 ? SHIM_EXIT_OK : SHIM_EXIT_FAILED;
	}
	if (shim_box_seen(b, &s, NULL) < 0)
		return SHIM_EXIT_FAILED;
	doc = shim_sb_json(sb->arena, b, &s, shim_seen_word(&s, shim_box_is_supervised(b)));
	if (!doc || aqe_json_emit(doc, AQE_JSON_PRETTY, &out, NULL) < 0)
		return SHIM_EXIT_UNDECIDED;
	(void)aqe_buf_putc(&out, '\n');
	return shim_sb_print(&out) ? SHIM_EXIT_OK : SHIM_EXIT_FAILED;
}

int shim_sandbox_create(int argc, char **argv)
{
	SHIM_AUTO_BOX struct shim_box b = SHIM_BOX_INIT;
	struct hard_policy *policy = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_plan p;
	struct shim_sb sb;
	int rc = shim_sb_begin(&sb, &CREATE, SHIM_SB_REST, 0, SHIM_PLAN_ARGS_MAX, argc, argv);

	if (rc >= 0)
		return rc;
	rc = make_plan(&sb, &policy, &p, &e);
	if (rc == 0)
		rc = make_box(&sb, &p, &b, &e);
	rc = rc < 0 ? shim_sb_fail(&sb, &e) : print_box(&sb, &b);
	hard_policy_free(policy);
	shim_sb_done(&sb);
	return rc;
}

/* ---- starting ---- */

/* 1 when it has come up, or has gone as far as it will. */
static int came_up(struct shim_box *b, const struct shim_seen *s)
{
	(void)b;
	return s->starts > 0 && !aqe_str_eq(s->status, "starting") ? 1
	       : aqe_str_in(s->status, (const char *const[]){ "held", "exited", "backoff", NULL })
		       ? 1
		       : 0;
}

static int start_box(struct shim_box *b, struct aqe_err *e)
{
	struct shim_want w;
	struct shim_seen s;
	int rc = shim_box_want(b, &w, e);

	if (rc == 0)
		rc = shim_box_seen(b, &s, e);
	if (rc < 0)
		return rc;
	if (s.hold && !aqe_str_eq(b->plan.restart, "no"))
		return aqe_err_set(e, AQE_E_REFUSED, 0,
				   "'%s' is held (%s): %.300s; see aqe sandbox reset", b->name,
				   s.hold, s.error ? s.error : "");
	if (!aqe_str_eq(s.status, "created")) { /* what was is not what will be */
		s.status = "created";
		s.starts = 0;
		s.started_s = 0;
		if (!shim_box_is_supervised(b))
			rc = shim_box_set_seen(b, &s, e);
	}
	w.up = true;
	w.kill = w.destroy = false;
	if (rc == 0)
		rc = shim_box_set_want(b, &w, e);
	return rc < 0 ? rc : shim_monitor_ensure(b, e);
}

/* The start's own failure, when it was one. */
static int started(struct shim_box *b, struct aqe_err *e)
{
	struct shim_seen s;
	int rc = shim_sb_wait(b, b->plan.start_timeout_ms + START_MARGIN_MS, came_up, e);

	if (rc == AQE_E_ABSENT)
		return 0; /* it has ended, and was removed: --rm */
	if (rc == 0)
		rc = shim_box_seen(b, &s, e);
	if (rc < 0)
		return rc;
	if (s.starts > 0 || !s.error)
		return 0;
	return aqe_err_set(e,
			   s.hold && aqe_str_eq(s.hold, "refused") ? AQE_E_REFUSED : AQE_E_UNKNOWN,
			   0, "%s", s.error);
}

int shim_sandbox_start(int argc, char **argv)
{
	struct shim_sb sb;
	int rc = shim_sb_begin(&sb, &START, SHIM_SB_OPERANDS, 1, 4096, argc, argv);
	int status = SHIM_EXIT_OK;

	if (rc >= 0)
		return rc;
	for (size_t i = 0; i < sb.n_words; i++) {
		SHIM_AUTO_BOX struct shim_box b = SHIM_BOX_INIT;
		struct aqe_err e = AQE_ERR_INIT;

		rc = shim_box_find(sb.arena, &sb.place, sb.words[i], &b, &e);
		if (rc == 0)
			rc = start_box(&b, &e);
		if (rc == 0)
			rc = started(&b, &e);
		if (rc < 0)
			status = shim_sb_fail(&sb, &e);
		else
			(void)printf("%s\n", b.name);
	}
	shim_sb_done(&sb);
	return status;
}

/* ---- run ---- */

/* The first signal asks it to stop; the second does not wait. Only async-signal-safe calls: the
 * wish itself is written by the loop that follows the output. */
static volatile sig_atomic_t interrupts;

static void on_signal(int sig)
{
	(void)sig;
	interrupts++;
}

static void catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	(void)sigaction(SIGINT, &sa, NULL);
	(void)sigaction(SIGTERM, &sa, NULL);
	(void)sigaction(SIGHUP, &sa, NULL);
}

int shim_sandbox_interrupts(void)
{
	return interrupts;
}

static int run_foreground(struct shim_sb *sb, struct shim_box *b, struct aqe_err *e)
{
	struct shim_seen s = SHIM_SEEN_INIT;
	int rc;

	catch_signals();
	rc = shim_sandbox_follow(b, e);
	if (rc < 0)
		return shim_sb_fail(sb, e);
	if (shim_box_seen(b, &s, e) < 0)
		return shim_sb_fail(sb, e);
	if (s.starts == 0 && s.error) {
		(void)aqe_err_set(e, AQE_E_UNKNOWN, 0, "%s", s.error);
		return shim_sb_fail(sb, e);
	}
	if (s.oom_killed)
		(void)fprintf(stderr, "%s: ended by the kernel at its memory limit\n",
			      sb->cmd->name);
	return s.exit_code >= 0 ? (int)s.exit_code : SHIM_EXIT_FAILED;
}

static int run_box(struct shim_sb *sb, struct shim_box *b, bool detach)
{
	struct aqe_err e = AQE_ERR_INIT;
	int rc = start_box(b, &e);

	if (rc == 0 && detach)
		rc = started(b, &e);
	if (rc < 0)
		return shim_sb_fail(sb, &e);
	return detach ? print_box(sb, b) : run_foreground(sb, b, &e);
}

int shim_sandbox_run(int argc, char **argv)
{
	SHIM_AUTO_BOX struct shim_box b = SHIM_BOX_INIT;
	struct hard_policy *policy = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_plan p;
	struct shim_sb sb;
	bool detach, remove;
	int rc = shim_sb_begin(&sb, &RUN, SHIM_SB_REST, 0, SHIM_PLAN_ARGS_MAX, argc, argv);

	if (rc >= 0)
		return rc;
	detach = sb.value[SHIM_SB_DETACH] != NULL;
	if (!detach && !sb.value[SHIM_SB_RESTART])
		sb.value[SHIM_SB_RESTART] = "no";
	/* in the foreground the exit status is read first */
	remove = !detach && sb.value[SHIM_SB_RM];
	if (remove)
		sb.value[SHIM_SB_RM] = NULL;
	rc = make_plan(&sb, &policy, &p, &e);
	if (rc == 0)
		rc = make_box(&sb, &p, &b, &e);
	if (rc < 0) {
		rc = shim_sb_fail(&sb, &e);
	} else {
		rc = run_box(&sb, &b, detach);
		if (remove && shim_sandbox_remove(&b, &e) < 0)
			(void)shim_sb_fail(&sb, &e); /* the container's own status counts */
	}
	hard_policy_free(policy);
	shim_sb_done(&sb);
	return rc;
}
