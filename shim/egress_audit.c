/* SPDX-License-Identifier: MIT */
#include "shim/egress_audit.h"

#include <string.h>

#include "shim/aqe/audit_journal.h"
#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "shim/core/text.h"

#define ARENA_MAX ((size_t)4 << 20)
#define US_NS     1000

static int64_t us_to_ns(int64_t us)
{
	return us < 0 || us > INT64_MAX / US_NS ? AUDIT_NONE : us * US_NS;
}

static const char *text(const char *s)
{
	return *s ? s : NULL;
}

/* A tree being made; what fails makes the whole fail at the end. */
struct meta {
	struct aqe_arena *a;
	struct aqe_json *root;
	bool failed;
};

static void put(struct meta *m, const char *key, struct aqe_json *v)
{
	if (!m->root || aqe_json_set(m->a, m->root, key, v) < 0)
		m->failed = true;
}

static void put_text(struct meta *m, const char *key, const char *s)
{
	if (*s)
		put(m, key, aqe_json_new_str(m->a, s));
}

static void put_number(struct meta *m, const char *key, int64_t v)
{
	if (v >= 0)
		put(m, key, aqe_json_new_i64(m->a, v));
}

static void put_flags(struct meta *m, unsigned flags)
{
	struct aqe_json *list = aqe_json_new_array(m->a);

	if (!flags)
		return;
	for (unsigned i = 0; i < NETPOL_FLAG_COUNT; i++) {
		if ((flags & 1U << i) &&
		    (!list || aqe_json_append(list, aqe_json_new_str(m->a, netpol_flag_name(i)))))
			m->failed = true;
	}
	put(m, "flags", list);
}

static int make_meta(const struct netpol_record *r, struct aqe_arena *a, const char **ret,
		     struct aqe_err *e)
{
	static const char *const phases[] = { "decision", "close", "repeated", "event" };
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(AUDIT_META_MAX);
	struct meta m = { a, aqe_json_new_object(a), false };

	put_text(&m, "phase", phases[r->phase]);
	if (r->id > 0 && r->id <= INT64_MAX)
		put_number(&m, "id", (int64_t)r->id);
	put_text(&m, "listener", r->listener);
	put_text(&m, "rawHost", r->raw_host);
	put_text(&m, "address", r->address);
	put_text(&m, "dropped", r->dropped);
	put_text(&m, "sni", r->sni);
	put_text(&m, "alpn", r->alpn);
	put_number(&m, "dnsUs", r->dns_us);
	if (r->phase == NETPOL_PHASE_REPEATED)
		put_number(&m, "count", r->count);
	put_flags(&m, r->flags);
	if (m.failed)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for an audit row");
	if (aqe_json_emit(m.root, AQE_JSON_COMPACT, &b, e) < 0)
		return (int)e->code;
	*ret = aqe_arena_dup(a, aqe_buf_str(&b));
	return *ret ? 0 : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for an audit row");
}

static enum audit_kind kind_of(const struct netpol_record *r)
{
	if (r->phase != NETPOL_PHASE_EVENT)
		return AUDIT_REQUEST;
	return aqe_starts(r->reason, "policy_") ? AUDIT_POLICY : AUDIT_SYSTEM;
}

static enum audit_action action_of(const struct netpol_record *r)
{
	if (r->phase == NETPOL_PHASE_EVENT)
		return r->action == NETPOL_ALLOWED ? AUDIT_CHANGED : AUDIT_REFUSED;
	if (r->action == NETPOL_RATE_LIMITED)
		return AUDIT_RATE_LIMITED;
	return r->action == NETPOL_ALLOWED ? AUDIT_ALLOWED : AUDIT_BLOCKED;
}

int shim_egress_row(const struct shim_egress_audit *s, const struct netpol_record *r,
		    struct aqe_arena *a, struct audit_row *row, struct aqe_err *e)
{
	bool closed = r->phase == NETPOL_PHASE_CLOSE;
	int rc = make_meta(r, a, &row->meta, e);

	if (rc < 0)
		return rc;
	row->meta_compact = true;
	row->kind = kind_of(r);
	row->action = action_of(r);
	row->container = s->container;
	row->agent_id = s->agent_id;
	row->agent_type = s->agent_type;
	row->image = s->image;
	row->domain = text(*r->host ? r->host : r->raw_host);
	row->port = r->port > 0 ? r->port : AUDIT_NONE;
	row->method = text(r->method);
	row->path = text(r->path);
	row->reason = r->action == NETPOL_RATE_LIMITED ? AUDIT_REASON_RATE : text(r->reason);
	row->rule = text(r->rule);
	row->status = r->status > 0 ? r->status : AUDIT_NONE;
	row->response_ns = us_to_ns(r->connect_us);
	row->duration_ns = us_to_ns(r->duration_us);
	row->bytes_in = closed ? (int64_t)r->down : AUDIT_NONE;
	row->bytes_out = closed ? (int64_t)r->up : AUDIT_NONE;
	row->policy = text(r->policy);
	return 0;
}

static int store(void *self, const struct netpol_record *r, size_t n, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct shim_egress_audit *s = self;
	struct audit_row *rows = a ? aqe_arena_calloc(a, n, sizeof(*rows)) : NULL;

	if (!rows)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for audit rows");
	for (size_t i = 0; i < n; i++) {
		rows[i] = (struct audit_row)AUDIT_ROW_INIT(AUDIT_REQUEST, AUDIT_BLOCKED);
		if (shim_egress_row(s, &r[i], a, &rows[i], e) < 0)
			return (int)e->code;
	}
	if (audit_append_many(s->log, rows, n, e) == 0)
		shim_journal_rows(rows, n);
	else if (!s->optional)
		return (int)e->code;
	return 0;
}

static int store_nothing(void *self, const struct netpol_record *r, size_t n, struct aqe_err *e)
{
	(void)self;
	(void)r;
	(void)n;
	(void)e;
	return 0;
}

static void close_nothing(void *self)
{
	(void)self; /* the log is the caller's */
}

struct netpol_audit shim_egress_audit_port(struct shim_egress_audit *s)
{
	static const struct netpol_audit_ops ops = { "audit log", store, close_nothing };
	struct netpol_audit port = { &ops, s };

	return port;
}

struct netpol_audit shim_egress_audit_none(void)
{
	static const struct netpol_audit_ops ops = { "none", store_nothing, close_nothing };
	struct netpol_audit port = { &ops, NULL };

	return port;
}
