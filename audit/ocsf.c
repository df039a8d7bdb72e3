/* SPDX-License-Identifier: MIT */
/* Rows as events of the Open Cybersecurity Schema Framework, version 1.8.0:
 *
 *   request with an HTTP method   4002 HTTP Activity
 *   request without               4001 Network Activity
 *   refusal                       2003 Compliance Finding
 *   all other kinds               6002 Application Lifecycle
 *
 * all with the profile security_control (action_id, disposition_id, policy). What the schema has no
 * attribute for is in `unmapped`, under our own names, so that nothing is lost. */
#include "audit/emit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shim/core/text.h"

#define OCSF_VERSION  "1.8.0"
#define NS_PER_MS     INT64_C(1000000)
#define PER_CLASS     100 /* type_uid = class_uid * 100 + activity_id */
#define ACTIVITY_NONE 99

enum class_id { CLASS_NETWORK, CLASS_HTTP, CLASS_FINDING, CLASS_LIFECYCLE, CLASS_COUNT };
struct class_row {
	unsigned uid, category;
	const char *name, *category_name;
};
static const struct class_row CLASSES[CLASS_COUNT] = {
	[CLASS_NETWORK] = { 4001, 4, "Network Activity", "Network Activity" },
	[CLASS_HTTP] = { 4002, 4, "HTTP Activity", "Network Activity" },
	[CLASS_FINDING] = { 2003, 2, "Compliance Finding", "Findings" },
	[CLASS_LIFECYCLE] = { 6002, 6, "Application Lifecycle", "Application Activity" },
};

struct activity {
	const char *word; /* our word; NULL ends a table */
	unsigned id;
	const char *name;
};
static const struct activity METHODS[] = {
	{ "CONNECT", 1, "Connect" }, { "DELETE", 2, "Delete" },   { "GET", 3, "Get" },
	{ "HEAD", 4, "Head" },       { "OPTIONS", 5, "Options" }, { "POST", 6, "Post" },
	{ "PUT", 7, "Put" },         { "TRACE", 8, "Trace" },     { "PATCH", 9, "Patch" },
	{ NULL, 0, NULL },
};
/* By kind; the words are not looked at. */
static const struct activity KINDS[AUDIT_KIND_COUNT] = {
	[AUDIT_KIND_ANY] = { "", ACTIVITY_NONE, "Other" },
	[AUDIT_START] = { "", 3, "Start" },
	[AUDIT_EXEC] = { "", ACTIVITY_NONE, "exec" },
	[AUDIT_UPDATE] = { "", 8, "Update" },
	[AUDIT_RESTORE] = { "", 5, "Restart" },
	[AUDIT_STOP] = { "", 4, "Stop" },
	[AUDIT_REFUSAL] = { "", 1, "Create" },
	[AUDIT_REQUEST] = { "", 1, "Open" },
	[AUDIT_POLICY] = { "", 8, "Update" },
	[AUDIT_WAIVER] = { "", ACTIVITY_NONE, "waiver" },
	[AUDIT_SYSTEM] = { "", ACTIVITY_NONE, "system" },
};
static const struct activity REFUSED_OPEN = { "", 5, "Refuse" };

struct outcome {
	const char *severity_name, *action_name, *disposition_name;
	unsigned severity, action, disposition;
	bool ok;
};
static const struct outcome OUTCOMES[AUDIT_ACTION_COUNT] = {
	[AUDIT_ACTION_ANY] = { "Unknown", "Unknown", "Unknown", 0, 0, 0, false },
	[AUDIT_ALLOWED] = { "Informational", "Allowed", "Allowed", 1, 1, 1, true },
	[AUDIT_BLOCKED] = { "Medium", "Denied", "Blocked", 3, 2, 2, false },
	[AUDIT_RATE_LIMITED] = { "Low", "Denied", "Rejected", 2, 2, 25, false },
	[AUDIT_REFUSED] = { "Medium", "Denied", "Blocked", 3, 2, 2, false },
	[AUDIT_CHANGED] = { "Informational", "Modified", "Corrected", 1, 4, 11, true },
};

/* ---- writing: a comma before every member but the first of its object ---- */

static void key(struct aqe_buf *b, const char *name)
{
	if (b->len && b->p[b->len - 1] != '{')
		(void)aqe_buf_putc(b, ',');
	(void)aqe_buf_addf(b, "\"%s\":", name);
}

static void open_object(struct aqe_buf *b, const char *name)
{
	key(b, name);
	(void)aqe_buf_putc(b, '{');
}

static void close_object(struct aqe_buf *b)
{
	(void)aqe_buf_putc(b, '}');
}

static void put_text(struct aqe_buf *b, const char *name, const char *v)
{
	if (!v)
		return;
	key(b, name);
	aqe_json_emit_str(b, v);
}

static void put_number(struct aqe_buf *b, const char *name, int64_t v)
{
	if (v == AUDIT_NONE)
		return;
	key(b, name);
	(void)aqe_buf_addf(b, "%" PRId64, v);
}

static void put_id(struct aqe_buf *b, const char *id, const char *label, int64_t v,
		   const char *name)
{
	put_number(b, id, v);
	put_text(b, label, name);
}

/* ---- what a row is ---- */

static const struct activity *method_of(const struct audit_row *r)
{
	for (const struct activity *m = METHODS; r->method && m->word; m++) {
		if (strcmp(m->word, r->method) == 0)
			return m;
	}
	return NULL;
}

static enum class_id class_of(const struct audit_row *r, const struct activity *method)
{
	if (r->kind == AUDIT_REQUEST)
		return method ? CLASS_HTTP : CLASS_NETWORK;
	return r->kind == AUDIT_REFUSAL ? CLASS_FINDING : CLASS_LIFECYCLE;
}

static const struct activity *activity_of(const struct audit_row *r, enum class_id class)
{
	const struct activity *method = class == CLASS_HTTP ? method_of(r) : NULL;

	if (method)
		return method;
	if (class == CLASS_NETWORK && r->action != AUDIT_ALLOWED)
		return &REFUSED_OPEN;
	return &KINDS[r->kind < AUDIT_KIND_COUNT ? r->kind : AUDIT_KIND_ANY];
}

static bool is_gap(const struct audit_row *r)
{
	return r->kind == AUDIT_SYSTEM && r->action == AUDIT_REFUSED &&
	       aqe_str_eq(r->reason, AUDIT_REASON_GAP);
}

/* An address has only hex digits, dots and colons, and a colon or nothing but digits and dots. */
static bool is_address(const char *s)
{
	return strchr(s, ':') || (*s && s[strspn(s, "0123456789.")] == '\0');
}

/* ---- parts of an event ---- */

static void put_class(struct aqe_buf *b, const struct audit_row *r, enum class_id class)
{
	const struct class_row *c = &CLASSES[class];
	const struct activity *a = activity_of(r, class);

	put_id(b, "activity_id", "activity_name", a->id, a->name);
	put_id(b, "category_uid", "category_name", c->category, c->category_name);
	put_id(b, "class_uid", "class_name", c->uid, c->name);
	put_number(b, "type_uid", (int64_t)c->uid * PER_CLASS + a->id);
	put_number(b, "time", r->time_ns / NS_PER_MS);
}

static void put_message(struct aqe_buf *b, const struct audit_row *r)
{
	/* the longest field is a domain; a cut message is still a message */
	char text[2 * AUDIT_ID_MAX];
	const char *what = r->domain ? r->domain : r->container;

	(void)snprintf(text, sizeof(text), "%s %s%s%.256s", audit_kind_name(r->kind),
		       audit_action_name(r->action), what ? ": " : "", what ? what : "");
	put_text(b, "message", text);
}

static void put_outcome(struct aqe_buf *b, const struct audit_row *r, enum class_id class)
{
	const struct outcome *o =
		&OUTCOMES[r->action < AUDIT_ACTION_COUNT ? r->action : AUDIT_ACTION_ANY];

	if (is_gap(r))
		put_id(b, "severity_id", "severity", 4, "High");
	else
		put_id(b, "severity_id", "severity", o->severity, o->severity_name);
	if (class == CLASS_FINDING) /* of the finding's own life */
		put_id(b, "status_id", "status", 1, "New");
	else
		put_id(b, "status_id", "status", o->ok ? 1 : 2, o->ok ? "Success" : "Failure");
	if (r->status != AUDIT_NONE) {
		key(b, "status_code");
		(void)aqe_buf_addf(b, "\"%" PRId64 "\"", r->status);
	}
	put_text(b, "status_detail", r->reason);
	put_id(b, "action_id", "action", o->action, o->action_name);
	put_id(b, "disposition_id", "disposition", o->disposition, o->disposition_name);
	if (r->policy) {
		open_object(b, "policy");
		put_text(b, "uid", r->policy);
		close_object(b);
	}
	if (r->duration_ns != AUDIT_NONE)
		put_number(b, "duration", r->duration_ns / NS_PER_MS);
}

static void put_metadata(struct aqe_buf *b, const struct audit_row *r, enum class_id class)
{
	const bool network = class == CLASS_HTTP || class == CLASS_NETWORK;
	char when[AUDIT_TIME_TEXT];

	audit_time_format(r->time_ns, when);
	open_object(b, "metadata");
	put_text(b, "version", OCSF_VERSION);
	open_object(b, "product");
	put_text(b, "name", "aqe-shim");
	put_text(b, "vendor_name", "aqe-shim");
	close_object(b);
	put_text(b, "event_code", audit_kind_name(r->kind));
	put_text(b, "log_name", "aqe-audit");
	put_text(b, "original_time", when);
	put_number(b, "sequence", r->seq);
	key(b, "profiles");
	(void)aqe_buf_puts(b, network ? "[\"security_control\",\"container\"]"
				      : "[\"security_control\"]");
	close_object(b);
}

static void put_container(struct aqe_buf *b, const struct audit_row *r)
{
	if (!r->container)
		return;
	open_object(b, "container");
	put_text(b, "uid", r->container);
	if (r->image) {
		open_object(b, "image");
		put_text(b, "uid", r->image);
		close_object(b);
	}
	close_object(b);
}

static void put_endpoints(struct aqe_buf *b, const struct audit_row *r)
{
	open_object(b, "src_endpoint"); /* one of name and uid must be there */
	put_text(b, "name", r->agent_id || r->container ? r->agent_id : "unknown");
	put_text(b, "uid", r->container);
	put_container(b, r);
	close_object(b);
	if (r->domain) {
		open_object(b, "dst_endpoint");
		put_text(b, is_address(r->domain) ? "ip" : "hostname", r->domain);
		put_number(b, "port", r->port);
		close_object(b);
	}
	if (r->bytes_in != AUDIT_NONE || r->bytes_out != AUDIT_NONE) {
		open_object(b, "traffic");
		put_number(b, "bytes_in", r->bytes_in);
		put_number(b, "bytes_out", r->bytes_out);
		close_object(b);
	}
	if (r->rule) {
		open_object(b, "firewall_rule");
		put_text(b, "name", r->rule);
		close_object(b);
	}
}

static void put_http(struct aqe_buf *b, const struct audit_row *r)
{
	open_object(b, "http_request");
	put_text(b, "http_method", r->method);
	if (r->path) {
		open_object(b, "url");
		put_text(b, "hostname", r->domain);
		put_number(b, "port", r->port);
		put_text(b, "path", r->path);
		close_object(b);
	}
	close_object(b);
	if (r->status != AUDIT_NONE) {
		open_object(b, "http_response");
		put_number(b, "code", r->status);
		if (r->response_ns != AUDIT_NONE)
			put_number(b, "latency", r->response_ns / NS_PER_MS);
		close_object(b);
	}
}

static void put_finding(struct aqe_buf *b, const struct audit_row *r)
{
	open_object(b, "finding_info");
	key(b, "uid");
	(void)aqe_buf_addf(b, "\"aqe-audit-%" PRId64 "\"", r->seq);
	put_text(b, "title", r->rule ? r->rule : "refused");
	put_text(b, "desc", r->reason);
	close_object(b);
	open_object(b, "compliance");
	put_text(b, "control", r->rule);
	key(b, "standards");
	(void)aqe_buf_puts(b, "[\"aqe-shim hardening profile\"]");
	put_id(b, "status_id", "status", 3, "Fail");
	close_object(b);
	if (r->container) {
		key(b, "resources");
		(void)aqe_buf_puts(b, "[{");
		put_text(b, "uid", r->container);
		put_text(b, "type", "container");
		(void)aqe_buf_puts(b, "}]");
	}
}

static void put_app(struct aqe_buf *b, const struct audit_row *r)
{
	open_object(b, "app");
	if (r->container)
		put_text(b, "name", r->agent_type ? r->agent_type : "container");
	else
		put_text(b, "name", "aqe-shim");
	put_text(b, "uid", r->container);
	close_object(b);
}

static void put_unmapped(struct aqe_buf *b, const struct audit_row *r, enum class_id class)
{
	open_object(b, "unmapped");
	put_text(b, "action", audit_action_name(r->action));
	put_number(b, "boot_ns", r->boot_ns);
	put_text(b, "agent_type", r->agent_type);
	put_text(b, "waiver", r->waiver);
	if (class != CLASS_HTTP) {
		put_text(b, "method", r->method);
		put_text(b, "path", r->path);
		put_number(b, "response_ns", r->response_ns);
	}
	if (class == CLASS_FINDING || class == CLASS_LIFECYCLE) {
		put_text(b, "agent_id", r->agent_id);
		put_text(b, "image", r->image);
		put_text(b, "domain", r->domain);
		put_number(b, "port", r->port);
		put_number(b, "bytes_in", r->bytes_in);
		put_number(b, "bytes_out", r->bytes_out);
	}
	if (class == CLASS_LIFECYCLE)
		put_text(b, "rule", r->rule);
	if (r->meta) {
		key(b, "meta");
		(void)aqe_buf_puts(b, r->meta);
	}
	key(b, "hash");
	(void)aqe_buf_putc(b, '"');
	for (size_t i = 0; i < sizeof(r->hash); i++)
		(void)aqe_buf_addf(b, "%02x", r->hash[i]);
	(void)aqe_buf_putc(b, '"');
	close_object(b);
}

void audit_row_ocsf(const struct audit_row *r, struct aqe_buf *b)
{
	const enum class_id class = class_of(r, method_of(r));

	(void)aqe_buf_putc(b, '{');
	put_class(b, r, class);
	put_message(b, r);
	put_outcome(b, r, class);
	put_metadata(b, r, class);
	if (class == CLASS_HTTP || class == CLASS_NETWORK)
		put_endpoints(b, r);
	if (class == CLASS_HTTP)
		put_http(b, r);
	if (class == CLASS_FINDING)
		put_finding(b, r);
	if (class == CLASS_LIFECYCLE)
		put_app(b, r);
	put_unmapped(b, r, class);
	close_object(b);
}
