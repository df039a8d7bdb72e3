/* SPDX-License-Identifier: MIT */
#include "shim/aqe/audit_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shim/aqe/audit_when.h"
#include "shim/core/text.h"

#define SHORT_ID 12 /* what engines show of an id */
#define LONG_ID  32 /* hex ids of this length and more are shortened */

const struct shim_column SHIM_AUDIT_TABLE[SHIM_AUDIT_COLUMNS] = {
	{ "SEQ", true, false },     { "TIME", false, false }, { "KIND", false, false },
	{ "ACTION", false, false }, { "AGENT", false, true }, { "SUBJECT", false, true },
	{ "WHY", false, true },
};

static const enum shim_paint PAINTS[AUDIT_ACTION_COUNT] = {
	[AUDIT_ACTION_ANY] = SHIM_PAINT_NONE, [AUDIT_ALLOWED] = SHIM_PAINT_GOOD,
	[AUDIT_BLOCKED] = SHIM_PAINT_BAD,     [AUDIT_RATE_LIMITED] = SHIM_PAINT_WARN,
	[AUDIT_REFUSED] = SHIM_PAINT_BAD,     [AUDIT_CHANGED] = SHIM_PAINT_WARN,
};

void shim_audit_line_done(struct shim_audit_line *l)
{
	aqe_buf_done(&l->agent);
	aqe_buf_done(&l->subject);
	aqe_buf_done(&l->why);
}

void shim_audit_short_id(const char *id, struct aqe_buf *b)
{
	static const char digest[] = "sha256:";
	const size_t prefix = aqe_starts(id, digest) ? sizeof(digest) - 1 : 0;
	const size_t hex = strspn(id + prefix, "0123456789abcdef");

	if (hex < LONG_ID || id[prefix + hex])
		(void)aqe_buf_puts(b, id);
	else
		(void)aqe_buf_add(b, id, prefix + SHORT_ID);
}

static void put_id(const struct shim_audit_line *l, const char *id, struct aqe_buf *b)
{
	if (l->flags & SHIM_AUDIT_SHORT)
		shim_audit_short_id(id, b);
	else
		(void)aqe_buf_puts(b, id);
}

static void put_agent(struct shim_audit_line *l, const struct audit_row *r)
{
	if (r->agent_type)
		(void)aqe_buf_puts(&l->agent, r->agent_type);
	if (r->agent_id)
		(void)aqe_buf_addf(&l->agent, r->agent_type ? "/%s" : "%s", r->agent_id);
}

/* What was asked for: "CONNECT example.com:443", or the container, waiver or policy. */
static void put_subject(struct shim_audit_line *l, const struct audit_row *r)
{
	struct aqe_buf *b = &l->subject;
	const char *id = r->container ? r->container : r->waiver;

	if (!r->domain) {
		if (id)
			put_id(l, id, b);
		else if (r->policy)
			shim_audit_short_id(r->policy, b); /* in full in the other formats */
		return;
	}
	if (r->method)
		(void)aqe_buf_addf(b, "%s ", r->method);
	(void)aqe_buf_puts(b, r->domain);
	if (r->port != AUDIT_NONE)
		(void)aqe_buf_addf(b, ":%" PRId64, r->port);
	if (r->path)
		(void)aqe_buf_puts(b, r->path);
}

static void part(struct aqe_buf *b, const char *between)
{
	if (b->len)
		(void)aqe_buf_puts(b, between);
}

/* The reason without what the other columns say already: the runtime's begin with "refused: " and
 * the rule. */
static void put_reason(struct aqe_buf *b, const struct audit_row *r)
{
	static const char refused[] = "refused: ";
	const char *reason = r->reason;

	if (reason && r->action == AUDIT_REFUSED && aqe_starts(reason, refused))
		reason += sizeof(refused) - 1;
	if (r->rule && !aqe_str_eq(r->rule, r->domain) && !(reason && aqe_starts(reason, r->rule)))
		(void)aqe_buf_puts(b, r->rule);
	if (reason) {
		part(b, ": ");
		(void)aqe_buf_puts(b, reason);
	}
}

/* "engine_socket: the engine's socket is mounted", "200, 120 ms", "waiver docs-team". */
static void put_why(struct shim_audit_line *l, const struct audit_row *r)
{
	struct aqe_buf *b = &l->why;
	char span[SHIM_WHEN_TEXT];

	put_reason(b, r);
	if (r->status != AUDIT_NONE) {
		part(b, ", ");
		(void)aqe_buf_addf(b, "%s%" PRId64, r->kind == AUDIT_REQUEST ? "" : "status ",
				   r->status);
	}
	if (r->response_ns != AUDIT_NONE) {
		shim_duration_format(r->response_ns, span);
		part(b, ", ");
		(void)aqe_buf_puts(b, span);
	}
	if (r->waiver && !aqe_str_eq(r->waiver, r->rule)) {
		part(b, ", ");
		(void)aqe_buf_addf(b, "waiver %s", r->waiver);
	}
}

int shim_audit_line_set(struct shim_audit_line *l, const struct audit_row *r, struct aqe_err *e)
{
	const struct aqe_buf *const parts[] = { &l->agent, &l->subject, &l->why };

	aqe_buf_clear(&l->agent);
	aqe_buf_clear(&l->subject);
	aqe_buf_clear(&l->why);
	(void)snprintf(l->seq, sizeof(l->seq), "%" PRId64, r->seq);
	if (l->flags & SHIM_AUDIT_RELATIVE)
		shim_when_relative(r->time_ns, l->now_ns, l->when);
	else
		shim_when_absolute(r->time_ns, l->when);
	put_agent(l, r);
	put_subject(l, r);
	put_why(l, r);
	for (size_t i = 0; i < AQE_COUNT(parts); i++) {
		if (aqe_buf_ok(parts[i], e) < 0)
			return parts[i]->failed;
	}
	l->cells[0] = (struct shim_cell){ l->seq, SHIM_PAINT_NONE };
	l->cells[1] = (struct shim_cell){ l->when, SHIM_PAINT_NONE };
	l->cells[2] = (struct shim_cell){ audit_kind_name(r->kind), SHIM_PAINT_NONE };
	l->cells[3] = (struct shim_cell){ audit_action_name(r->action),
					  r->action < AUDIT_ACTION_COUNT ? PAINTS[r->action]
									 : SHIM_PAINT_NONE };
	l->cells[4] = (struct shim_cell){ aqe_buf_str(&l->agent), SHIM_PAINT_NONE };
	l->cells[5] = (struct shim_cell){ aqe_buf_str(&l->subject), SHIM_PAINT_NONE };
	l->cells[6] = (struct shim_cell){ aqe_buf_str(&l->why), SHIM_PAINT_NONE };
	return AQE_OK;
}
