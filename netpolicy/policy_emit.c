/* SPDX-License-Identifier: MIT */
/* What is in force, written as a section that says everything. */
#include <string.h>

#include "netpolicy/policy_int.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

/* A tree being made; a failed allocation anywhere makes the whole fail at the end. */
struct tree {
	struct aqe_arena *a;
	bool failed;
};

static void put(struct tree *t, struct aqe_json *o, const char *key, struct aqe_json *v)
{
	if (t->failed || !o || aqe_json_set(t->a, o, key, v))
		t->failed = true;
}

static void put_str(struct tree *t, struct aqe_json *o, const char *key, const char *s)
{
	if (s)
		put(t, o, key, aqe_json_new_str(t->a, s));
}

static void put_u64(struct tree *t, struct aqe_json *o, const char *key, uint64_t v)
{
	put(t, o, key, aqe_json_new_u64(t->a, v));
}

static void put_bool(struct tree *t, struct aqe_json *o, const char *key, bool v)
{
	put(t, o, key, aqe_json_new_bool(t->a, v));
}

static void append(struct tree *t, struct aqe_json *list, const char *s)
{
	if (t->failed || !list || !s || aqe_json_append(list, aqe_json_new_str(t->a, s)))
		t->failed = true;
}

static struct aqe_json *emit_rate(struct tree *t, const struct netpol_rate *r)
{
	struct aqe_json *o = aqe_json_new_object(t->a);

	put_u64(t, o, "perMinute", r->per_minute);
	put_u64(t, o, "perHour", r->per_hour);
	put_u64(t, o, "burst", r->burst);
	return o;
}

static struct aqe_json *emit_limits(struct tree *t, const struct netpol_limits *l)
{
	struct aqe_json *o = aqe_json_new_object(t->a);

	for (size_t i = 0; i < NETPOL_LIMIT_ROWS_COUNT; i++)
		put_u64(t, o, NETPOL_LIMIT_ROWS[i].name,
			netpol_limit_get(l, &NETPOL_LIMIT_ROWS[i]));
	return o;
}

static struct aqe_json *emit_domains(struct tree *t, const struct netpol_rules *r)
{
	struct aqe_json *list = aqe_json_new_array(t->a);

	for (size_t i = 0; i < netpol_rules_count(r); i++)
		append(t, list, netpol_rules_at(r, i)->text);
	return list;
}

static struct aqe_json *emit_cidrs(struct tree *t, const struct netpol_type *type)
{
	struct aqe_json *list = aqe_json_new_array(t->a);

	for (size_t i = 0; i < type->n_cidrs; i++) {
		char text[NETPOL_ADDR_TEXT];
		const char *s;

		netpol_addr_format(&type->cidrs[i].base, text);
		s = aqe_arena_fmt(t->a, "%s/%u", text, type->cidrs[i].bits);
		append(t, list, s);
	}
	return list;
}

static struct aqe_json *emit_type(struct tree *t, const struct netpol_type *type)
{
	static const char *const sni[] = { [NETPOL_SNI_OFF] = "off",
					   [NETPOL_SNI_AUDIT] = "audit",
					   [NETPOL_SNI_ENFORCE] = "enforce" };
	struct aqe_json *o = aqe_json_new_object(t->a);

	put_str(t, o, "access",
		type->access == NETPOL_ACCESS_WHITELISTED ? "whitelisted" : "isolated");
	put_str(t, o, "mode", type->mode == NETPOL_MODE_REPORT ? "report" : "enforce");
	put_str(t, o, "sni", sni[type->sni]);
	put_bool(t, o, "wildcardApex", type->wildcard_apex);
	put(t, o, "domains", emit_domains(t, type->rules));
	put(t, o, "allowCidr", emit_cidrs(t, type));
	put(t, o, "rate", emit_rate(t, &type->rate));
	if (type->has_shared)
		put(t, o, "sharedRate", emit_rate(t, &type->shared));
	put_u64(t, o, "timeoutMs", type->timeout_ms);
	put_str(t, o, "hostHeader", type->host_strict ? "refuse" : "rewrite");
	put_bool(t, o, "webSocket", type->websocket);
	put_bool(t, o, "socks", type->socks);
	put_bool(t, o, "transparent", type->transparent);
	put(t, o, "limits", emit_limits(t, &type->limits));
	return o;
}

static void put_list(struct tree *t, struct aqe_json *o, const char *key, const char *const *list,
		     size_t n)
{
	struct aqe_json *v = n > 0 ? aqe_json_new_array(t->a) : NULL;

	for (size_t i = 0; i < n; i++)
		append(t, v, list[i]);
	if (n > 0)
		put(t, o, key, v);
}

static struct aqe_json *emit_gateway(struct tree *t, const struct netpol_gateway *g,
				     const struct netpol_type *only)
{
	struct aqe_json *o = aqe_json_new_object(t->a), *types;

	put_str(t, o, "upstream", g->upstream);
	put_str(t, o, "credentialFile", g->credential_file);
	put_str(t, o, "caFile", g->ca_file);
	put_str(t, o, "header", g->header);
	put_str(t, o, "prefix", g->prefix);
	if (g->n_types) {
		types = aqe_json_new_array(t->a);
		for (size_t i = 0; i < g->n_types; i++) {
			/* a section of one type knows no other */
			if (!only || strcmp(g->types[i], only->name) == 0)
				append(t, types, g->types[i]);
		}
		put(t, o, "types", types);
	}
	put_list(t, o, "methods", g->methods, g->n_methods);
	put_list(t, o, "paths", g->paths, g->n_paths);
	put_u64(t, o, "timeoutMs", g->timeout_ms);
	put_u64(t, o, "maxRequestBytes", g->max_request);
	put_u64(t, o, "maxResponseBytes", g->max_response);
	if (g->has_rate)
		put(t, o, "rate", emit_rate(t, &g->rate));
	return o;
}

static struct aqe_json *emit_gateways(struct tree *t, const struct netpol_policy *p,
				      const struct netpol_type *only)
{
	struct aqe_json *o = aqe_json_new_object(t->a);

	for (size_t i = 0; i < p->n_gateways; i++) {
		const struct netpol_gateway *g = &p->gateways[i];

		if (!only || netpol_policy_gateway(p, only->name, g->name) == g)
			put(t, o, g->name, emit_gateway(t, g, only));
	}
	return o;
}

static struct aqe_json *emit_cluster(struct tree *t, const struct netpol_cluster_conf *c)
{
	struct aqe_json *o = aqe_json_new_object(t->a);

	put_str(t, o, "address", c->address);
	put_str(t, o, "username", c->username);
	put_str(t, o, "passwordFile", c->password_file);
	if (c->tls) {
		struct aqe_json *tls = aqe_json_new_object(t->a);

		put_str(t, tls, "caFile", c->ca_file);
		put_str(t, tls, "serverName", c->server_name);
		put(t, o, "tls", tls);
	}
	put_u64(t, o, "db", c->db);
	put_str(t, o, "share", c->share == NETPOL_SHARE_AGENT ? "agent" : "type");
	put_str(t, o, "prefix", c->prefix);
	put_str(t, o, "onStoreError", c->on_store_error == NETPOL_STORE_DENY ? "deny" : "local");
	put_u64(t, o, "timeoutMs", c->timeout_ms);
	return o;
}

static struct aqe_json *emit_proxy(struct tree *t, const struct netpol_policy *p)
{
	struct aqe_json *o = aqe_json_new_object(t->a);

	put_str(t, o, "address", p->upstream_proxy);
	put_str(t, o, "credentialFile", p->proxy_credential);
	return o;
}

static struct aqe_json *emit_policy(struct tree *t, const struct netpol_policy *p,
				    const struct netpol_type *only)
{
	struct aqe_json *o = aqe_json_new_object(t->a), *agents = aqe_json_new_object(t->a);

	for (size_t i = 0; i < p->n_types; i++) {
		if (!only || only == &p->types[i])
			put(t, agents, p->types[i].name, emit_type(t, &p->types[i]));
	}
	put(t, o, "agents", agents);
	put(t, o, "gateways", emit_gateways(t, p, only));
	if (p->cluster.address)
		put(t, o, "cluster", emit_cluster(t, &p->cluster));
	if (p->proxy_credential)
		put(t, o, "upstreamProxy", emit_proxy(t, p));
	else
		put_str(t, o, "upstreamProxy", p->upstream_proxy);
	return o;
}

int netpol_policy_emit(const struct netpol_policy *p, const struct netpol_type *type,
		       struct aqe_buf *b, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(NETPOL_ARENA_MAX);
	struct tree t = { .a = a };
	const struct aqe_json *root;

	if (!a)
		return netpol_policy_nomem(e);
	root = emit_policy(&t, p, type);
	return t.failed ? netpol_policy_nomem(e) : aqe_json_emit(root, AQE_JSON_COMPACT, b, e);
}
