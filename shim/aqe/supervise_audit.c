/* SPDX-License-Identifier: MIT */
#include "shim/aqe/supervise_audit.h"

#include "shim/aqe/audit_own.h"
#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "shim/core/text.h"

#define META_MAX ((size_t)4096)

/* What is recorded, and as what. */
static const struct {
	const char *event;
	enum audit_kind kind;
	enum audit_action action;
} EVENTS[] = {
	{ "started", AUDIT_SYSTEM, AUDIT_ALLOWED }, { "adopted", AUDIT_SYSTEM, AUDIT_ALLOWED },
	{ "ended", AUDIT_STOP, AUDIT_ALLOWED },     { "stopped", AUDIT_SYSTEM, AUDIT_ALLOWED },
	{ "failed", AUDIT_SYSTEM, AUDIT_CHANGED },  { "held", AUDIT_SYSTEM, AUDIT_REFUSED },
	{ "refused", AUDIT_SYSTEM, AUDIT_REFUSED }, { "unclean", AUDIT_SYSTEM, AUDIT_REFUSED },
	{ "reset", AUDIT_SYSTEM, AUDIT_CHANGED },
};

/* NULL: only the id is known. */
static const char *what(const struct shim_target *t)
{
	if (t->kind == SHIM_TARGET_PROCESS)
		return t->path ? "process" : NULL;
	return t->engine ? t->engine : "bundle";
}

int shim_supervise_record(const struct shim_target *t, const struct shim_supervise_row *row,
			  struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf meta = AQE_BUF_INIT(META_MAX);
	struct audit_row r;
	const char *kind = what(t);
	size_t i = 0;
	int rc;

	while (i < AQE_COUNT(EVENTS) && !aqe_str_eq(EVENTS[i].event, row->event))
		i++;
	if (i == AQE_COUNT(EVENTS))
		return 0;
	/* ids are checked: nothing needs quoting */
	aqe_buf_addf(&meta, "{\"event\":\"%s\",\"id\":\"%s\"", row->event, t->id);
	if (kind)
		aqe_buf_addf(&meta, ",\"supervise\":\"%s\"", kind);
	if (row->failures >= 0)
		aqe_buf_addf(&meta, ",\"failures\":%lld", (long long)row->failures);
	(void)aqe_buf_putc(&meta, '}');
	r = (struct audit_row)AUDIT_ROW_INIT(EVENTS[i].kind, EVENTS[i].action);
	r.container = t->name ? t->name : t->id;
	r.reason = row->reason && *row->reason ? row->reason : row->event;
	r.meta = aqe_buf_str(&meta);
	if (row->exit_code >= 0)
		r.status = row->exit_code;
	rc = shim_audit_own(&r, e);
	return rc < 0 ? rc : 1;
}

int shim_supervise_record_reset(const char *id, struct aqe_err *e)
{
	const struct shim_target t = { .kind = SHIM_TARGET_PROCESS, .id = id, .fd = -1 };
	const struct shim_supervise_row row = { "reset", NULL, -1, -1 };
	int rc = shim_supervise_record(&t, &row, e);

	return rc < 0 ? aqe_err_wrap(e, "'%.100s' is reset, but not recorded", id) : 0;
}
