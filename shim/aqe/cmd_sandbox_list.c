/* SPDX-License-Identifier: MIT */
/* aqe sandbox list, inspect, health, types. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "shim/aqe/audit_args.h"
#include "shim/aqe/audit_table.h"
#include "shim/aqe/audit_when.h"
#include "shim/aqe/sandbox_cmd.h"
#include "shim/core/cleanup.h"
#include "shim/core/clock.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "shim/sandbox/size.h"

#define OUT_MAX ((size_t)32 << 20)

static const struct aqe_cli_opt LIST_OPTS[] = {
	{ "quiet", 'q', NULL, "names only", SHIM_SB_QUIET },
	SHIM_SB_OPT_FORMAT,
	SHIM_SB_OPT_DATA,
	SHIM_SB_OPT_END,
};
static const struct aqe_cli_cmd LIST = {
	.name = "aqe sandbox list",
	.synopsis = "[-q] [--format text|json]",
	.about = "All sandboxes. One that lost its monitor gets a new one, which takes over what "
		 "runs.",
	.opts = LIST_OPTS,
};
static const struct aqe_cli_opt ONE_OPTS[] = { SHIM_SB_OPT_FORMAT, SHIM_SB_OPT_DATA,
					       SHIM_SB_OPT_END };
static const struct aqe_cli_cmd INSPECT = {
	.name = "aqe sandbox inspect",
	.synopsis = "NAME...",
	.about = "Plan and state of sandboxes, as JSON.",
	.opts = ONE_OPTS,
};
static const struct aqe_cli_cmd HEALTH = {
	.name = "aqe sandbox health",
	.synopsis = "[--format text|json] NAME",
	.about = "Healthy: it runs, was not ended by the kernel for its memory, and its health "
		 "check, if it has one, succeeds. Exit status 0 healthy, 1 not.",
	.opts = ONE_OPTS,
};
static const struct aqe_cli_opt TYPES_OPTS[] = { SHIM_SB_OPT_FORMAT, SHIM_SB_OPT_END };
static const struct aqe_cli_cmd TYPES = {
	.name = "aqe sandbox types",
	.synopsis = "[--format text|json]",
	.about = "The agent types and what they may use at most.",
	.opts = TYPES_OPTS,
};

/* ---- list ---- */

struct listing {
	struct shim_sb *sb;
	struct aqe_buf *out;
	struct shim_table *table;
	struct aqe_json *array;
	int64_t now_ns;
};

static const struct shim_column LIST_COLUMNS[] = {
	{ "NAME", false, true },    { "AGENT", false, true },   { "TYPE", false, true },
	{ "ENGINE", false, false }, { "STATUS", false, false }, { "HEALTH", false, false },
	{ "STARTS", true, false },  { "PID", true, false },     { "CREATED", false, false },
};

static enum shim_paint paint_of(const char *word)
{
	static const struct {
		const char *word;
		enum shim_paint paint;
	} PAINTS[] = {
		{ "running", SHIM_PAINT_GOOD },      { "healthy", SHIM_PAINT_GOOD },
		{ "held", SHIM_PAINT_BAD },          { "lost", SHIM_PAINT_BAD },
		{ "unhealthy", SHIM_PAINT_BAD },     { "restarting", SHIM_PAINT_WARN },
		{ "unsupervised", SHIM_PAINT_WARN }, { "starting", SHIM_PAINT_WARN },
	};

	for (size_t i = 0; i < AQE_COUNT(PAINTS); i++) {
		if (aqe_str_eq(word, PAINTS[i].word))
			return PAINTS[i].paint;
	}
	return SHIM_PAINT_NONE;
}

static int list_row(struct listing *l, struct shim_box *b, const struct shim_seen *s,
		    const char *word, struct aqe_err *e)
{
	char starts[16], pid[16] = "", created[SHIM_WHEN_TEXT];
	const char *health = s->health && s->pid ? s->health : "";
	struct shim_cell cells[] = {
		{ b->name, SHIM_PAINT_NONE },
		{ b->plan.agent_id, SHIM_PAINT_NONE },
		{ b->plan.agent_type, SHIM_PAINT_NONE },
		{ b->plan.engine, SHIM_PAINT_NONE },
		{ word, paint_of(word) },
		{ health, paint_of(health) },
		{ starts, SHIM_PAINT_NONE },
		{ pid, SHIM_PAINT_NONE },
		{ created, SHIM_PAINT_NONE },
	};

	(void)snprintf(starts, sizeof(starts), "%u", s->starts);
	if (s->pid)
		(void)snprintf(pid, sizeof(pid), "%u", s->pid);
	shim_when_relative(b->plan.created_s * SHIM_NS_PER_S, l->now_ns, created);
	return shim_table_row(l->table, cells, l->out, e);
}

static int list_one(void *arg, struct shim_box *b, struct aqe_err *e)
{
	struct listing *l = arg;
	struct shim_seen s;
	const char *word = NULL;
	int rc;

	rc = shim_sb_look(b, &s, &word, e);
	if (rc < 0)
		return rc;
	if (l->sb->value[SHIM_SB_QUIET]) {
		aqe_buf_addf(l->out, "%s\n", b->name);
		return 0;
	}
	if (l->array)
		return aqe_json_append(l->array, shim_sb_json(l->sb->arena, b, &s, word)) < 0
			       ? aqe_err_set(e, AQE_E_NOMEM, 0, "no memory")
			       : 0;
	return list_row(l, b, &s, word, e);
}

static int list_all(struct listing *l, struct aqe_err *e)
{
	int rc;

	l->table = shim_table_new(l->sb->arena, LIST_COLUMNS, AQE_COUNT(LIST_COLUMNS),
				  shim_audit_width(), shim_audit_colour());
	if (l->sb->json)
		l->array = aqe_json_new_array(l->sb->arena);
	if (!l->table || (l->sb->json && !l->array))
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	rc = shim_sb_each(l->sb, list_one, l, e);
	if (rc == 0 && l->array)
		rc = aqe_json_emit(l->array, AQE_JSON_PRETTY, l->out, e);
	if (rc == 0 && l->array)
		rc = aqe_buf_putc(l->out, '\n');
	return rc < 0 ? rc : shim_table_flush(l->table, l->out, e);
}

int shim_sandbox_list(int argc, char **argv)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(OUT_MAX);
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_sb sb;
	struct listing l = { &sb, &out, NULL, NULL, (int64_t)time(NULL) * SHIM_NS_PER_S };
	int rc = shim_sb_begin(&sb, &LIST, SHIM_SB_OPERANDS, 0, 0, argc, argv);

	if (rc >= 0)
		return rc;
	rc = list_all(&l, &e);
	if (rc < 0)
		rc = shim_sb_fail(&sb, &e);
	else
		rc = shim_sb_print(&out) ? SHIM_EXIT_OK : SHIM_EXIT_FAILED;
	shim_sb_done(&sb);
	return rc;
}

/* ---- inspect ---- */

int shim_sandbox_inspect(int argc, char **argv)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(OUT_MAX);
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *array;
	struct shim_sb sb;
	int rc = shim_sb_begin(&sb, &INSPECT, SHIM_SB_OPERANDS, 1, 4096, argc, argv);

	if (rc >= 0)
		return rc;
	rc = 0;
	array = aqe_json_new_array(sb.arena);
	for (size_t i = 0; i < sb.n_words && rc == 0; i++) {
		SHIM_AUTO_BOX struct shim_box b = SHIM_BOX_INIT;
		struct shim_seen s = SHIM_SEEN_INIT;

		rc = shim_box_find(sb.arena, &sb.place, sb.words[i], &b, &e);
		if (rc == 0)
			rc = shim_box_seen(&b, &s, &e);
		if (rc == 0 &&
		    (!array ||
		     aqe_json_append(array, shim_sb_json(sb.arena, &b, &s,
							 shim_seen_word(&s, shim_box_is_supervised(
										    &b)))) < 0))
			rc = aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory");
	}
	if (rc == 0)
		rc = aqe_json_emit(array, AQE_JSON_PRETTY, &out, &e);
	(void)aqe_buf_putc(&out, '\n');
	if (rc < 0)
		rc = shim_sb_fail(&sb, &e);
	else
		rc = shim_sb_print(&out) ? SHIM_EXIT_OK : SHIM_EXIT_FAILED;
	shim_sb_done(&sb);
	return rc;
}

/* ---- health ---- */

static bool is_healthy(const struct shim_seen *s, const char *word)
{
	return aqe_str_eq(word, "running") && shim_seen_runs(s) && !s->oom_killed &&
	       !aqe_str_eq(s->health, "unhealthy");
}

int shim_sandbox_health(int argc, char **argv)
{
	SHIM_AUTO_BOX struct shim_box b = SHIM_BOX_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_seen s = SHIM_SEEN_INIT;
	struct shim_sb sb;
	const char *word = NULL;
	bool ok;
	int rc = shim_sb_begin(&sb, &HEALTH, SHIM_SB_OPERANDS, 1, 1, argc, argv);

	if (rc >= 0)
		return rc;
	rc = shim_box_find(sb.arena, &sb.place, sb.words[0], &b, &e);
	if (rc == 0)
		rc = shim_sb_look(&b, &s, &word, &e);
	if (rc < 0) {
		rc = shim_sb_fail(&sb, &e);
		shim_sb_done(&sb);
		return rc;
	}
	ok = is_healthy(&s, word);
	(void)printf(sb.json ? "{\"version\":1,\"name\":\"%s\",\"healthy\":%s,\"status\":\"%s\","
			       "\"check\":\"%s\",\"oom_killed\":%s}\n"
			     : "%s: healthy %s, status %s, check %s, oom killed %s\n",
		     b.name, ok ? "true" : "false", word, s.health ? s.health : "none",
		     s.oom_killed ? "true" : "false");
	shim_sb_done(&sb);
	return fflush(stdout) == 0 && ok ? SHIM_EXIT_OK : SHIM_EXIT_FAILED;
}

/* ---- types ---- */

static const struct shim_column TYPE_COLUMNS[] = {
	{ "TYPE", false, false },    { "CPUS", true, false }, { "MEMORY", true, false },
	{ "DISK", true, false },     { "PIDS", true, false }, { "RISK", false, false },
	{ "NETWORK", false, false }, { "FOR", false, true },
};

static int type_row(struct shim_table *t, const struct hard_agent *agent, struct aqe_buf *out,
		    struct aqe_err *e)
{
	char cpus[SHIM_SIZE_TEXT], memory[SHIM_SIZE_TEXT], disk[SHIM_SIZE_TEXT], pids[16];
	struct shim_cell cells[] = {
		{ agent->type, SHIM_PAINT_NONE },    { cpus, SHIM_PAINT_NONE },
		{ memory, SHIM_PAINT_NONE },         { disk, SHIM_PAINT_NONE },
		{ pids, SHIM_PAINT_NONE },           { agent->risk, SHIM_PAINT_NONE },
		{ agent->network, SHIM_PAINT_NONE }, { agent->description, SHIM_PAINT_NONE },
	};

	shim_cpus_format(agent->cpus_milli, cpus);
	shim_size_format(agent->memory_bytes, memory);
	shim_size_format(agent->disk_bytes, disk);
	(void)snprintf(pids, sizeof(pids), "%u", agent->pids);
	return shim_table_row(t, cells, out, e);
}

static void type_json(const struct hard_agent *agent, struct aqe_buf *out)
{
	aqe_buf_addf(out,
		     "{\"type\":\"%s\",\"cpus_milli\":%u,\"memory_bytes\":%llu,\"disk_bytes\":%llu,"
		     "\"pids\":%u,\"risk\":\"%s\",\"network\":\"%s\",\"domains\":\"%s\","
		     "\"description\":",
		     agent->type, agent->cpus_milli, (unsigned long long)agent->memory_bytes,
		     (unsigned long long)agent->disk_bytes, agent->pids, agent->risk,
		     agent->network, agent->domains);
	aqe_json_emit_str(out, agent->description);
	(void)aqe_buf_putc(out, '}');
}

/* The built-in table, "default" last, as SB-18 wants it: it is no type of its own. */
int shim_sandbox_types(int argc, char **argv)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT((size_t)1 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_table *t;
	struct shim_sb sb;
	int rc = shim_sb_begin(&sb, &TYPES, SHIM_SB_PURE, 0, 0, argc, argv);

	if (rc >= 0)
		return rc;
	t = shim_table_new(sb.arena, TYPE_COLUMNS, AQE_COUNT(TYPE_COLUMNS), shim_audit_width(),
			   shim_audit_colour());
	rc = t ? 0 : aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory");
	if (sb.json)
		(void)aqe_buf_puts(&out, "[");
	for (size_t i = 0; i < HARD_AGENTS_COUNT && rc == 0; i++) {
		if (!sb.json) {
			rc = type_row(t, &HARD_AGENTS[i], &out, &e);
			continue;
		}
		(void)aqe_buf_puts(&out, i ? ",\n" : "");
		type_json(&HARD_AGENTS[i], &out);
	}
	if (rc == 0)
		rc = sb.json ? aqe_buf_puts(&out, "]\n") : shim_table_flush(t, &out, &e);
	if (rc < 0)
		rc = shim_sb_fail(&sb, &e);
	else
		rc = shim_sb_print(&out) ? SHIM_EXIT_OK : SHIM_EXIT_FAILED;
	shim_sb_done(&sb);
	return rc;
}
