/* SPDX-License-Identifier: MIT */
/* Values of an agent's members. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "netpolicy/policy_int.h"
#include "shim/core/text.h"

#define RATE_WANTED "wanted 1 to 1000000"
#define HOUR_MS     3600000

/* ---- small values ---- */

/* The place of `v` in a list of names; -1 and a fault when it is none of them. */
static int read_name(const struct netpol_build *b, const struct aqe_json *v,
		     const char *const *names, const char *wanted, struct aqe_err *e)
{
	const char *s = aqe_json_str(v);

	for (int i = 0; s && names[i]; i++) {
		if (strcmp(names[i], s) == 0)
			return i;
	}
	(void)netpol_policy_fault(b, v, e, "wanted %s", wanted);
	return -1;
}

static int read_u64(const struct netpol_build *b, const struct aqe_json *v, uint64_t min,
		    uint64_t max, uint64_t *ret, struct aqe_err *e)
{
	uint64_t n = 0;

	if (!aqe_json_to_u64(v, max, &n) || n < min)
		return netpol_policy_fault(b, v, e, "wanted %llu to %llu", (unsigned long long)min,
					   (unsigned long long)max);
	*ret = n;
	return AQE_OK;
}

static int read_bool(const struct netpol_build *b, const struct aqe_json *v, bool *ret,
		     struct aqe_err *e)
{
	if (v->type != AQE_JSON_BOOL)
		return netpol_policy_fault(b, v, e, "wanted true or false");
	*ret = v->boolean;
	return AQE_OK;
}

static int read_access(const struct netpol_build *b, const struct aqe_json *v,
		       struct netpol_type *t, struct aqe_err *e)
{
	static const char *const names[] = { [NETPOL_ACCESS_ISOLATED] = "isolated",
					     [NETPOL_ACCESS_WHITELISTED] = "whitelisted",
					     NULL };
	const int i = read_name(b, v, names, "isolated or whitelisted", e);

	if (i < 0)
		return AQE_E_MALFORMED;
	t->access = (enum netpol_access)i;
	return AQE_OK;
}

static int read_mode(const struct netpol_build *b, const struct aqe_json *v, struct netpol_type *t,
		     struct aqe_err *e)
{
	static const char *const names[] = {
		[NETPOL_MODE_REPORT] = "report", [NETPOL_MODE_ENFORCE] = "enforce", NULL
	};
	const int i = read_name(b, v, names, "enforce or report", e);

	if (i < 0)
		return AQE_E_MALFORMED;
	t->mode = (enum netpol_mode)i;
	return AQE_OK;
}

static int read_sni(const struct netpol_build *b, const struct aqe_json *v, struct netpol_type *t,
		    struct aqe_err *e)
{
	static const char *const names[] = { [NETPOL_SNI_OFF] = "off",
					     [NETPOL_SNI_AUDIT] = "audit",
					     [NETPOL_SNI_ENFORCE] = "enforce",
					     NULL };
	const int i = read_name(b, v, names, "enforce, audit or off", e);

	if (i < 0)
		return AQE_E_MALFORMED;
	t->sni = (enum netpol_sni)i;
	return AQE_OK;
}

static int read_host_header(const struct netpol_build *b, const struct aqe_json *v,
			    struct netpol_type *t, struct aqe_err *e)
{
	static const char *const names[] = { "rewrite", "refuse", NULL };
	const int i = read_name(b, v, names, "rewrite or refuse", e);

	if (i < 0)
		return AQE_E_MALFORMED;
	t->host_strict = i == 1;
	return AQE_OK;
}

static int read_apex(const struct netpol_build *b, const struct aqe_json *v, struct netpol_type *t,
		     struct aqe_err *e)
{
	return read_bool(b, v, &t->wildcard_apex, e);
}

static int read_websocket(const struct netpol_build *b, const struct aqe_json *v,
			  struct netpol_type *t, struct aqe_err *e)
{
	return read_bool(b, v, &t->websocket, e);
}

static int read_socks(const struct netpol_build *b, const struct aqe_json *v, struct netpol_type *t,
		      struct aqe_err *e)
{
	return read_bool(b, v, &t->socks, e);
}

static int read_transparent(const struct netpol_build *b, const struct aqe_json *v,
			    struct netpol_type *t, struct aqe_err *e)
{
	return read_bool(b, v, &t->transparent, e);
}

static int read_timeout(const struct netpol_build *b, const struct aqe_json *v,
			struct netpol_type *t, struct aqe_err *e)
{
	uint64_t n = 0;
	int rc = read_u64(b, v, 1, HOUR_MS, &n, e);

	if (!rc)
		t->timeout_ms = (uint32_t)n;
	return rc;
}

/* ---- rates and limits ---- */

int netpol_policy_read_rate(const struct netpol_build *b, const struct aqe_json *v,
			    struct netpol_rate *io, struct aqe_err *e)
{
	static const struct {
		const char *name;
		size_t offset;
	} rows[] = {
		{ "perMinute", offsetof(struct netpol_rate, per_minute) },
		{ "perHour", offsetof(struct netpol_rate, per_hour) },
		{ "burst", offsetof(struct netpol_rate, burst) },
	};

	for (size_t i = 0; i < AQE_COUNT(rows); i++) {
		const struct aqe_json *m = aqe_json_get(v, rows[i].name);
		uint64_t n = 0;
		uint32_t small;

		if (!m)
			continue;
		if (!aqe_json_to_u64(m, NETPOL_RATE_MAX, &n) || n < 1)
			return netpol_policy_fault(b, m, e, RATE_WANTED);
		small = (uint32_t)n;
		memcpy((char *)io + rows[i].offset, &small, sizeof(small));
	}
	return AQE_OK;
}

static int read_rate(const struct netpol_build *b, const struct aqe_json *v, struct netpol_type *t,
		     struct aqe_err *e)
{
	return netpol_policy_read_rate(b, v, &t->rate, e);
}

/* Whole or not at all: half of it from another section would be nobody's intention. */
static int read_shared(const struct netpol_build *b, const struct aqe_json *v,
		       struct netpol_type *t, struct aqe_err *e)
{
	struct netpol_rate r = { 0, 0, 0 };
	int rc = netpol_policy_read_rate(b, v, &r, e);

	if (!rc && !netpol_rate_ok(&r))
		rc = netpol_policy_fault(b, v, e, "wanted perMinute, perHour and burst");
	if (rc)
		return rc;
	t->shared = r;
	t->has_shared = true;
	return AQE_OK;
}

#define ROW32(name, member, min, max, preset)                                         \
	{                                                                             \
		name, offsetof(struct netpol_limits, member), false, min, max, preset \
	}
#define ROW64(name, member)                                                                 \
	{                                                                                   \
		name, offsetof(struct netpol_limits, member), true, 0, (uint64_t)1 << 50, 0 \
	}

const struct netpol_limit_row NETPOL_LIMIT_ROWS[] = {
	ROW32("connections", connections, 1, 4096, 128),
	ROW32("tunnels", tunnels, 1, 4096, 64),
	ROW32("connectMs", connect_ms, 1, 600000, 10000),
	ROW32("headerMs", header_ms, 1, 600000, 10000),
	ROW32("firstByteMs", first_byte_ms, 1, 600000, 10000),
	ROW32("idleS", idle_s, 1, 604800, 600),
	ROW32("lifetimeS", lifetime_s, 1, 604800, 43200),
	ROW64("bytesUp", bytes_up),
	ROW64("bytesDown", bytes_down),
};
const size_t NETPOL_LIMIT_ROWS_COUNT = AQE_COUNT(NETPOL_LIMIT_ROWS);

uint64_t netpol_limit_get(const struct netpol_limits *l, const struct netpol_limit_row *row)
{
	uint32_t small;
	uint64_t wide;

	if (row->wide) {
		memcpy(&wide, (const char *)l + row->offset, sizeof(wide));
		return wide;
	}
	memcpy(&small, (const char *)l + row->offset, sizeof(small));
	return small;
}

void netpol_limit_set(struct netpol_limits *l, const struct netpol_limit_row *row, uint64_t v)
{
	const uint32_t small = (uint32_t)v;

	if (row->wide)
		memcpy((char *)l + row->offset, &v, sizeof(v));
	else
		memcpy((char *)l + row->offset, &small, sizeof(small));
}

static int read_limits(const struct netpol_build *b, const struct aqe_json *v,
		       struct netpol_type *t, struct aqe_err *e)
{
	for (size_t i = 0; i < NETPOL_LIMIT_ROWS_COUNT; i++) {
		const struct netpol_limit_row *row = &NETPOL_LIMIT_ROWS[i];
		const struct aqe_json *m = aqe_json_get(v, row->name);
		uint64_t n = 0;
		int rc = m ? read_u64(b, m, row->min, row->max, &n, e) : AQE_OK;

		if (rc)
			return rc;
		if (m)
			netpol_limit_set(&t->limits, row, n);
	}
	return AQE_OK;
}

/* ---- lists ---- */

static int add_entry(const struct netpol_build *b, struct netpol_rules *r, const struct aqe_json *v,
		     struct aqe_err *e)
{
	const struct netpol_where where = { b->file, v->line };
	const char *s = aqe_json_str(v);
	struct aqe_err why = AQE_ERR_INIT;
	int rc;

	if (!s)
		return netpol_policy_fault(b, v, e, "wanted a string");
	rc = netpol_rules_add(r, s, v->len, where, &why);
	if (rc == AQE_E_NOMEM)
		return netpol_policy_nomem(e);
	return rc ? netpol_policy_fault(b, v, e, "%s", why.text) : AQE_OK;
}

static int add_entries(const struct netpol_build *b, struct netpol_rules *r,
		       const struct aqe_json *list, struct aqe_err *e)
{
	int rc = AQE_OK;

	for (const struct aqe_json *v = list->first; !rc && v; v = v->next)
		rc = add_entry(b, r, v, e);
	return rc;
}

/* In place of what there was. */
static int read_domains(const struct netpol_build *b, const struct aqe_json *v,
			struct netpol_type *t, struct aqe_err *e)
{
	t->rules = netpol_rules_new(b->arena);
	return t->rules ? add_entries(b, t->rules, v, e) : netpol_policy_nomem(e);
}

static int read_add_domains(const struct netpol_build *b, const struct aqe_json *v,
			    struct netpol_type *t, struct aqe_err *e)
{
	return add_entries(b, t->rules, v, e);
}

static int add_preset(const struct netpol_build *b, const struct aqe_json *v, struct netpol_type *t,
		      struct aqe_err *e)
{
	const char *name = aqe_json_str(v);
	const char *list = name ? netpol_preset(name) : NULL;
	struct netpol_where where = { NULL, 0 };

	if (!list)
		return netpol_policy_fault(
			b, v, e, "wanted anthropic, github, npm, security, openai or localhost");
	where.file = aqe_arena_fmt(b->arena, "%s:%u: preset %s", b->file, v->line, name);
	if (!where.file)
		return netpol_policy_nomem(e);
	return netpol_rules_add_list(t->rules, list, strlen(list), where, e);
}

static int read_presets(const struct netpol_build *b, const struct aqe_json *v,
			struct netpol_type *t, struct aqe_err *e)
{
	int rc = AQE_OK;

	for (const struct aqe_json *m = v->first; !rc && m; m = m->next)
		rc = add_preset(b, m, t, e);
	return rc;
}

static int read_cidrs(const struct netpol_build *b, const struct aqe_json *v, struct netpol_type *t,
		      struct aqe_err *e)
{
	struct netpol_cidr *list;
	struct aqe_err why = AQE_ERR_INIT;
	size_t n = 0;

	if (v->len > NETPOL_CIDRS_MAX)
		return netpol_policy_fault(b, v, e, "has more than %d prefixes", NETPOL_CIDRS_MAX);
	list = aqe_arena_calloc(b->arena, v->len + 1, sizeof(*list));
	if (!list)
		return netpol_policy_nomem(e);
	for (const struct aqe_json *m = v->first; m; m = m->next) {
		if (!aqe_json_str(m))
			return netpol_policy_fault(b, m, e, "wanted a string");
		if (netpol_cidr_parse(m->text, &list[n++], &why))
			return netpol_policy_fault(b, m, e, "%s", why.text);
	}
	t->cidrs = list;
	t->n_cidrs = n;
	return AQE_OK;
}

/* In the order of work: the list before what is added to it. */
const struct netpol_agent_key NETPOL_AGENT_KEYS[] = {
	{ "access", NETPOL_KEY_ACCESS, true, false, read_access },
	{ "mode", NETPOL_KEY_MODE, true, true, read_mode },
	{ "sni", NETPOL_KEY_SNI, true, true, read_sni },
	{ "wildcardApex", NETPOL_KEY_APEX, true, true, read_apex },
	{ "domains", NETPOL_KEY_DOMAINS, true, false, read_domains },
	{ "presets", NETPOL_KEY_DOMAINS, false, false, read_presets },
	{ "addDomains", NETPOL_KEY_DOMAINS, false, false, read_add_domains },
	{ "allowCidr", NETPOL_KEY_CIDR, false, false, read_cidrs },
	{ "rate", NETPOL_KEY_RATE, true, false, read_rate },
	{ "sharedRate", NETPOL_KEY_SHARED, false, false, read_shared },
	{ "timeoutMs", NETPOL_KEY_TIMEOUT, true, false, read_timeout },
	{ "hostHeader", NETPOL_KEY_HOST_HEADER, true, false, read_host_header },
	{ "webSocket", NETPOL_KEY_WEBSOCKET, true, false, read_websocket },
	{ "socks", NETPOL_KEY_SOCKS, true, false, read_socks },
	{ "transparent", NETPOL_KEY_TRANSPARENT, true, false, read_transparent },
	{ "limits", NETPOL_KEY_LIMITS, true, true, read_limits },
};
const size_t NETPOL_AGENT_KEYS_COUNT = AQE_COUNT(NETPOL_AGENT_KEYS);

int netpol_policy_read_type(const struct netpol_build *b, const struct aqe_json *obj, bool common,
			    struct netpol_type *t, struct aqe_err *e)
{
	int rc = AQE_OK;

	for (size_t i = 0; !rc && i < NETPOL_AGENT_KEYS_COUNT; i++) {
		const struct netpol_agent_key *k = &NETPOL_AGENT_KEYS[i];
		const struct aqe_json *v = aqe_json_get(obj, k->name);

		if (!v || (common && !k->common))
			continue;
		if (b->sec->user && !k->user)
			return netpol_policy_fault(b, v, e, "is for the system's policy alone");
		t->where[k->key] = (struct netpol_where){ b->file, v->line };
		rc = k->read(b, v, t, e);
	}
	return rc;
}
