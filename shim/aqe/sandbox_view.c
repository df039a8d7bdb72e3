/* SPDX-License-Identifier: MIT */
#include "shim/aqe/sandbox_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/aqe/audit_table.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/sandbox/egress_bytes.h"
#include "shim/sandbox/size.h"

#define ARENA_MAX ((size_t)256 << 20)

/* ---- sampling ---- */

struct taking {
	struct shim_view *v;
	const struct shim_view *before;
};

static const struct shim_view_row *find_row(const struct shim_view *v, const char *name)
{
	size_t lo = 0, hi = v ? v->n : 0;

	/* an earlier view may have been sorted otherwise, so no bisection */
	for (; lo < hi; lo++) {
		if (strcmp(v->rows[lo].name, name) == 0)
			return &v->rows[lo];
	}
	return NULL;
}

/* An engine's own id of the container, or the sandbox's name. */
static void sample_network(struct shim_box *b, struct shim_usage *u)
{
	AQE_AUTO_BUF struct aqe_buf id = AQE_BUF_INIT(128);

	if (aqe_fs_read_beneath(b->fd, SHIM_CONTAINER_FILE, AQE_FS_REGULAR, &id, NULL) == 0 &&
	    aqe_is_hex(aqe_buf_str(&id), 64))
		(void)shim_egress_bytes(b->arena, aqe_buf_str(&id), &u->net_in, &u->net_out);
	else
		(void)shim_egress_bytes(b->arena, b->name, &u->net_in, &u->net_out);
}

static void sample(struct shim_box *b, struct shim_view_row *row, const struct shim_view *before)
{
	SHIM_AUTO_CGROUP struct shim_cgroup c = SHIM_CGROUP_INIT;
	const struct shim_view_row *old = find_row(before, row->name);

	if (shim_cgroup_open((pid_t)row->pid, &c, NULL) < 0 ||
	    shim_usage_read(&c, &row->usage, NULL) < 0)
		return;
	row->sampled = true;
	sample_network(b, &row->usage);
	row->memory = shim_usage_percent(row->usage.memory, row->usage.memory_limit);
	row->disk = shim_usage_percent(row->usage.disk, row->usage.disk_limit);
	if (!old || !old->sampled || old->pid != row->pid)
		return;
	row->rated = true;
	row->cpu = shim_usage_cpu_percent(&old->usage, &row->usage);
}

static int take_one(void *arg, struct shim_box *b, struct aqe_err *e)
{
	struct taking *t = arg;
	struct shim_view_row *row = &t->v->rows[t->v->n];
	const char *word = NULL;
	struct shim_seen s;
	int rc;

	if (t->v->only && !aqe_str_eq(t->v->only, b->name))
		return 0;
	rc = shim_sb_look(b, &s, &word, e);
	if (rc < 0)
		return rc;
	if (!t->v->all && !shim_seen_runs(&s))
		return 0;
	*row = (struct shim_view_row){
		.name = b->name,
		.agent_id = b->plan.agent_id,
		.type = b->plan.agent_type,
		.word = word,
		.health = s.health ? s.health : "none",
		.pid = shim_seen_runs(&s) ? s.pid : 0,
		.starts = s.starts,
	};
	if (row->pid)
		sample(b, row, t->before);
	t->v->n++;
	return 0;
}

int shim_view_take(struct shim_sb *sb, const struct shim_view *before, bool all, const char *only,
		   struct shim_view *ret, struct aqe_err *e)
{
	struct shim_sb own = *sb;
	struct shim_view v = { NULL, NULL, 0, all, only };
	struct taking t = { &v, before };
	int rc;

	own.arena = v.arena = aqe_arena_new(ARENA_MAX);
	if (v.arena)
		v.rows = aqe_arena_calloc(v.arena, SHIM_SANDBOXES_MAX, sizeof(*v.rows));
	if (!v.rows) {
		shim_view_done(&v);
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	}
	rc = shim_sb_each(&own, take_one, &t, e);
	if (rc < 0)
		shim_view_done(&v);
	else
		*ret = v;
	return rc;
}

void shim_view_done(struct shim_view *v)
{
	aqe_arena_free(v->arena);
	v->arena = NULL;
	v->n = 0;
}

/* ---- order ---- */

const char *const SHIM_ORDER_NAMES[SHIM_ORDERS] = {
	[SHIM_ORDER_NAME] = "name", [SHIM_ORDER_CPU] = "cpu",   [SHIM_ORDER_MEMORY] = "memory",
	[SHIM_ORDER_PIDS] = "pids", [SHIM_ORDER_DISK] = "disk", [SHIM_ORDER_NET] = "net",
};

static double key_of(const struct shim_view_row *r, enum shim_view_order order)
{
	switch (order) {
	case SHIM_ORDER_CPU:
		return r->cpu;
	case SHIM_ORDER_MEMORY:
		return (double)r->usage.memory;
	case SHIM_ORDER_PIDS:
		return (double)r->usage.pids;
	case SHIM_ORDER_DISK:
		return (double)r->usage.disk;
	case SHIM_ORDER_NET:
		return (double)r->usage.net_in + (double)r->usage.net_out;
	case SHIM_ORDER_NAME:
	case SHIM_ORDERS:
		break;
	}
	return 0;
}

static int compare(const void *a, const void *b, void *order)
{
	const struct shim_view_row *x = a, *y = b;
	double kx = key_of(x, *(enum shim_view_order *)order);
	double ky = key_of(y, *(enum shim_view_order *)order);

	if (kx != ky)
		return kx < ky ? 1 : -1; /* the largest first */
	return strcmp(x->name, y->name);
}

void shim_view_sort(struct shim_view *v, enum shim_view_order order)
{
	qsort_r(v->rows, v->n, sizeof(*v->rows), compare, &order);
}

/* ---- text ---- */

static const struct shim_column COLUMNS[] = {
	{ "NAME", false, true },   { "STATUS", false, false }, { "CPU %", true, false },
	{ "MEMORY", true, false }, { "LIMIT", true, false },   { "MEM %", true, false },
	{ "SWAP", true, false },   { "PIDS", true, false },    { "DISK", true, false },
	{ "DISK %", true, false }, { "NET IN", true, false },  { "NET OUT", true, false },
};
enum { TEXT_CELLS = 10, CELL_MAX = 40 };

/* Names begin alike and would be cut to the same few letters: on a narrow terminal the agent's id
 * stands for the sandbox, and what is left is what somebody looks for. */
#define NARROW 100
static const size_t NARROW_COLUMNS[] = { 0, 1, 2, 3, 5, 7, 9 };

static enum shim_paint paint_over(double percent, double over)
{
	return percent >= over ? SHIM_PAINT_BAD : SHIM_PAINT_NONE;
}

static void format_limit(uint64_t limit, char ret[CELL_MAX])
{
	char text[SHIM_SIZE_TEXT];

	if (limit == SHIM_UNLIMITED) {
		(void)snprintf(ret, CELL_MAX, "-");
		return;
	}
	shim_size_format(limit, text);
	(void)snprintf(ret, CELL_MAX, "%s", text);
}

/* The cells behind name and status. */
static void format_row(const struct shim_view_row *r, char cell[TEXT_CELLS][CELL_MAX])
{
	const struct shim_usage *u = &r->usage;
	char pids_limit[24] = "-";

	if (u->pids_limit != SHIM_UNLIMITED)
		(void)snprintf(pids_limit, sizeof(pids_limit), "%llu",
			       (unsigned long long)u->pids_limit);
	(void)snprintf(cell[0], CELL_MAX, r->rated ? "%.1f" : "-", r->cpu);
	format_limit(u->memory, cell[1]);
	format_limit(u->memory_limit, cell[2]);
	(void)snprintf(cell[3], CELL_MAX, "%.1f", r->memory);
	format_limit(u->swap, cell[4]);
	(void)snprintf(cell[5], CELL_MAX, "%llu/%s", (unsigned long long)u->pids, pids_limit);
	format_limit(u->disk, cell[6]);
	(void)snprintf(cell[7], CELL_MAX, "%.1f", r->disk);
	format_limit(u->net_in, cell[8]);
	format_limit(u->net_out, cell[9]);
}

struct picture {
	struct shim_table *table;
	bool narrow;
};

static int text_row(const struct picture *p, const struct shim_view_row *r, struct aqe_buf *out,
		    struct aqe_err *e)
{
	char cell[TEXT_CELLS][CELL_MAX];
	struct shim_cell cells[TEXT_CELLS + 2] = {
		{ p->narrow ? r->agent_id : r->name, SHIM_PAINT_NONE }, { r->word, SHIM_PAINT_NONE }
	};
	uint64_t milli = r->usage.cpu_limit_milli;

	memset(cell, 0, sizeof(cell));
	if (r->sampled)
		format_row(r, cell);
	for (size_t i = 0; i < TEXT_CELLS; i++)
		cells[i + 2].text = cell[i];
	if (r->sampled && milli != SHIM_UNLIMITED && milli > 0)
		cells[2].paint = paint_over(r->cpu * 1000 / (double)milli, 90);
	cells[5].paint = paint_over(r->memory, 85);
	cells[9].paint = paint_over(r->disk, 80);
	/* ascending, so that nothing is overwritten before it is moved */
	for (size_t i = 0; p->narrow && i < AQE_COUNT(NARROW_COLUMNS); i++)
		cells[i] = cells[NARROW_COLUMNS[i]];
	return shim_table_row(p->table, cells, out, e);
}

int shim_view_text(const struct shim_view *v, size_t width, bool colour, struct aqe_buf *out,
		   struct aqe_err *e)
{
	struct shim_column narrow[AQE_COUNT(NARROW_COLUMNS)];
	struct picture p = { NULL, width > 0 && width < NARROW };
	int rc;

	for (size_t i = 0; i < AQE_COUNT(narrow); i++)
		narrow[i] = COLUMNS[NARROW_COLUMNS[i]];
	narrow[0].heading = "AGENT";
	p.table = p.narrow ? shim_table_new(v->arena, narrow, AQE_COUNT(narrow), width, colour)
			   : shim_table_new(v->arena, COLUMNS, AQE_COUNT(COLUMNS), width, colour);
	rc = p.table ? 0 : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	for (size_t i = 0; i < v->n && rc == 0; i++)
		rc = text_row(&p, &v->rows[i], out, e);
	return rc < 0 ? rc : shim_table_flush(p.table, out, e);
}

/* ---- JSON ---- */

static void add_number(struct aqe_buf *out, const char *name, uint64_t v)
{
	if (v == SHIM_UNLIMITED)
		aqe_buf_addf(out, ",\"%s\":null", name);
	else
		aqe_buf_addf(out, ",\"%s\":%llu", name, (unsigned long long)v);
}

static void json_usage(const struct shim_view_row *r, struct aqe_buf *out)
{
	const struct shim_usage *u = &r->usage;

	if (r->rated)
		aqe_buf_addf(out, ",\"cpu_percent\":%.2f", r->cpu);
	add_number(out, "cpu_ns", u->cpu_ns);
	add_number(out, "cpu_limit_milli", u->cpu_limit_milli);
	add_number(out, "cpu_throttled_periods", u->throttled);
	add_number(out, "memory_bytes", u->memory);
	add_number(out, "memory_usage_bytes", u->memory_raw);
	add_number(out, "memory_limit_bytes", u->memory_limit);
	aqe_buf_addf(out, ",\"memory_percent\":%.2f", r->memory);
	add_number(out, "swap_bytes", u->swap);
	add_number(out, "pids", u->pids);
	add_number(out, "pids_limit", u->pids_limit);
	add_number(out, "disk_bytes", u->disk);
	add_number(out, "disk_limit_bytes", u->disk_limit);
	aqe_buf_addf(out, ",\"disk_percent\":%.2f", r->disk);
	add_number(out, "net_in_bytes", u->net_in);
	add_number(out, "net_out_bytes", u->net_out);
	add_number(out, "oom_kills", u->oom_kills);
}

void shim_view_json(const struct shim_view *v, struct aqe_buf *out)
{
	(void)aqe_buf_puts(out, "{\"version\":1,\"sandboxes\":[");
	for (size_t i = 0; i < v->n; i++) {
		const struct shim_view_row *r = &v->rows[i];

		(void)aqe_buf_puts(out, i ? "," : "");
		aqe_buf_addf(out,
			     "{\"name\":\"%s\",\"status\":\"%s\",\"health\":\"%s\",\"pid\":%u,"
			     "\"starts\":%u,\"agent_id\":",
			     r->name, r->word, r->health, r->pid, r->starts);
		aqe_json_emit_str(out, r->agent_id);
		(void)aqe_buf_puts(out, ",\"agent_type\":");
		aqe_json_emit_str(out, r->type);
		if (r->sampled)
			json_usage(r, out);
		(void)aqe_buf_putc(out, '}');
	}
	(void)aqe_buf_puts(out, "]}\n");
}
