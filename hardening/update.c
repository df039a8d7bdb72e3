/* SPDX-License-Identifier: MIT */
/* The resources of an `update`. Engines send every block with zeros for what did not change
 * (engines.md section 1.6), so absent and 0 mean unchanged; the result names only what changes. */
#include "hardening/rewrite.h"

#include <string.h>

#include "shim/core/text.h"

#define SHARES_MAX 1024

struct block {
	struct hard_rw *rw;
	enum hard_prop prop;
	const struct aqe_json *in; /* the input's object, or NULL */
	struct aqe_json *out;      /* ours */
};

static const char above[] = "at most the agent type's ceiling";

/* 1 with the value when the member asks for a change, 0 when not, -1 after a refusal. */
static int asked(struct block *b, const char *name, uint64_t max, uint64_t *ret)
{
	const struct aqe_json *v = aqe_json_get(b->in, name);
	int64_t n = 0;

	if (!v || hard_rw_inert(v))
		return 0;
	if (!aqe_json_to_i64(v, INT64_MIN, INT64_MAX, &n) || n < 0 || (uint64_t)n > max) {
		hard_rw_refuse(b->rw, b->prop, v, above, "%s %s", name,
			       hard_rw_quote(b->rw, v->text));
		return -1;
	}
	*ret = (uint64_t)n;
	return 1;
}

/* Members that no update of a hardened container changes. */
static void refuse_others(struct block *b, const char *const *names)
{
	for (; *names; names++) {
		const struct aqe_json *v = aqe_json_get(b->in, *names);

		if (v && !hard_rw_inert(v))
			hard_rw_refuse(b->rw, b->prop, v, "unchanged", "a change of '%s'", *names);
	}
}

static void update_pids(struct block *b)
{
	uint64_t limit;

	if (asked(b, "limit", b->rw->ctx->agent->pids, &limit) == 1)
		hard_rw_set_u64(b->rw, b->out, "limit", limit);
}

/* Memory + swap follows memory. Engines that are told only the memory send twice as much. */
static void judge_swap(struct block *b, uint64_t limit)
{
	const struct aqe_json *v = aqe_json_get(b->in, "swap");
	uint64_t swap = 0;

	if (!v || hard_rw_inert(v))
		return;
	if (limit && aqe_json_to_u64(v, UINT64_MAX, &swap) && (swap == limit || swap / 2 == limit))
		return;
	hard_rw_refuse(b->rw, b->prop, v, "the same as the memory limit, and together with it",
		       "swap %s", hard_rw_quote(b->rw, v->text));
}

static void update_memory(struct block *b)
{
	static const char *const others[] = { "kernel",       "kernelTCP",        "swappiness",
					      "useHierarchy", "disableOOMKiller", NULL };
	uint64_t max = b->rw->ctx->agent->memory_bytes, limit = 0, reservation;
	const int changed = asked(b, "limit", max, &limit);

	if (changed >= 0)
		judge_swap(b, limit);
	if (changed == 1) {
		hard_rw_set_u64(b->rw, b->out, "limit", limit);
		hard_rw_set_u64(b->rw, b->out, "swap", limit);
		max = limit;
	}
	if (asked(b, "reservation", max, &reservation) == 1)
		hard_rw_set_u64(b->rw, b->out, "reservation", reservation);
	refuse_others(b, others);
}

static void update_quota(struct block *b)
{
	const struct aqe_json *v = aqe_json_get(b->in, "quota");
	uint64_t quota = 0, scaled = 0, period = 0;
	int given = asked(b, "period", UINT32_MAX, &period);

	if (given < 0)
		return;
	if (!v || hard_rw_inert(v)) {
		if (given)
			hard_rw_refuse(b->rw, b->prop, aqe_json_get(b->in, "period"),
				       "a quota beside it", "a period alone");
		return;
	}
	given = asked(b, "quota", INT64_MAX, &quota);
	if (given < 0)
		return;
	/* without a period the container's own counts, which is ours */
	if (!hard_rw_quota((int64_t)quota, period ? period : HARD_CPU_PERIOD, &scaled) ||
	    scaled > hard_rw_quota_max(b->rw->ctx)) {
		hard_rw_refuse(b->rw, b->prop, v, above, "quota %s", hard_rw_quote(b->rw, v->text));
		return;
	}
	hard_rw_set_u64(b->rw, b->out, "quota", scaled);
	hard_rw_set_u64(b->rw, b->out, "period", HARD_CPU_PERIOD);
}

/* Lists of CPUs and memory nodes: any list stays within the host's, and the quota holds. */
static void update_set(struct block *b, const char *name)
{
	const struct aqe_json *v = aqe_json_get(b->in, name);
	const char *list = aqe_json_str(v);

	if (!list || !*list)
		return;
	if (strspn(list, "0123456789,-") == strlen(list))
		hard_rw_set_str(b->rw, b->out, name, list);
	else
		hard_rw_refuse(b->rw, b->prop, v, "a list of numbers", "'%s'",
			       hard_rw_quote(b->rw, list));
}

static void update_cpu(struct block *b)
{
	static const char *const others[] = { "burst", "realtimePeriod", "realtimeRuntime", "idle",
					      NULL };
	uint64_t shares;

	update_quota(b);
	if (asked(b, "shares", SHARES_MAX, &shares) == 1)
		hard_rw_set_u64(b->rw, b->out, "shares", shares);
	update_set(b, "cpus");
	update_set(b, "mems");
	refuse_others(b, others);
}

/* A waiver switches the ceiling off: what asks for a change is passed on. */
static void copy_block(struct block *b)
{
	for (const struct aqe_json *m = b->in->first; m; m = m->next)
		if (!hard_rw_inert(m))
			hard_rw_set(b->rw, b->out, m->key, aqe_json_copy(b->rw->arena, m));
}

static void run_steps(struct hard_rw *rw, struct aqe_json *out)
{
	static const struct {
		const char *name;
		enum hard_prop prop;
		void (*update)(struct block *b);
	} blocks[] = {
		{ "memory", HARD_MEMORY_LIMIT, update_memory },
		{ "cpu", HARD_CPU_LIMIT, update_cpu },
		{ "pids", HARD_PIDS_LIMIT, update_pids },
	};

	for (size_t i = 0; i < AQE_COUNT(blocks); i++) {
		struct block b = { .rw = rw, .prop = blocks[i].prop };

		b.in = aqe_json_get(rw->doc, blocks[i].name);
		b.out = aqe_json_new_object(rw->arena);
		if (!b.in)
			continue;
		if (!b.out) {
			rw->nomem = true;
			return;
		}
		if (hard_rw_waived(rw, b.prop))
			copy_block(&b);
		else
			blocks[i].update(&b);
		if (b.out->len)
			hard_rw_set(rw, out, blocks[i].name, b.out);
	}
}

/* Device rules and network classes never change after the start. */
static void refuse_fixed(struct hard_rw *rw)
{
	static const struct {
		const char *name;
		enum hard_prop prop;
	} fixed[] = {
		{ "devices", HARD_DEVICES },
		{ "network", HARD_NETWORK },
	};

	for (size_t i = 0; i < AQE_COUNT(fixed); i++) {
		const struct aqe_json *v = aqe_json_get(rw->doc, fixed[i].name);

		if (v && !hard_rw_inert(v))
			hard_report_fail(rw->report, fixed[i].prop, v, NULL, "unchanged",
					 "a change of '%s'", fixed[i].name);
	}
}

int hard_update_rewrite(const struct hard_ctx *ctx, struct aqe_arena *arena,
			const struct aqe_json *resources, struct hard_report *report,
			struct aqe_json **ret, struct aqe_err *e)
{
	struct hard_rw rw;
	struct aqe_json *out = aqe_json_new_object(arena);

	int rc = hard_rw_init(&rw, ctx, arena, aqe_json_copy(arena, resources), report, e);
	if (rc)
		return rc;
	if (!out)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the resources");
	hard_rw_schema(&rw, OCI_DOC_RESOURCES);
	refuse_fixed(&rw);
	run_steps(&rw, out);
	rc = hard_rw_done(&rw, e);
	if (rc)
		return rc;
	if (hard_rw_settle(&rw))
		*ret = out;
	return 0;
}
