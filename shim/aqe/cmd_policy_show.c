/* SPDX-License-Identifier: MIT */
/* aqe policy show: what is in force, and what says so. */
#include <stdio.h>
#include <string.h>

#include "netpolicy/gateway.h"
#include "shim/aqe/policy_cmd.h"
#include "shim/cache_policy.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "shim/net_policy.h"

#define DOC_ARENA_MAX ((size_t)64 << 20)
#define VALUE_MAX     2048

static const struct aqe_cli_opt OPTS[] = {
	{ "effective", 'e', "TYPE", "everything in force for this agent type, with file and line",
	  SHIM_POLICY_EFFECTIVE },
	SHIM_POLICY_OPT_FILE,
	SHIM_POLICY_OPT_FORMAT,
	{ NULL, 0, NULL, NULL, 0 },
};
static const struct aqe_cli_cmd CMD = {
	.name = "aqe policy show",
	.synopsis = "[--effective TYPE] [OPTION...]",
	.about = "Lists the agent types and what they may reach; with --effective everything for "
		 "one type (an unknown type has the policy 'default').\n"
		 "Exit status: 0, 2 usage, 4 the policy could not be read.",
	.opts = OPTS,
};

/* ---- values as text ---- */

static void put_access(struct aqe_buf *b, const struct netpol_type *t)
{
	(void)aqe_buf_puts(b, t->access == NETPOL_ACCESS_WHITELISTED ? "whitelisted" : "isolated");
}

static void put_mode(struct aqe_buf *b, const struct netpol_type *t)
{
	(void)aqe_buf_puts(b, t->mode == NETPOL_MODE_REPORT ? "report" : "enforce");
}

static void put_sni(struct aqe_buf *b, const struct netpol_type *t)
{
	static const char *const names[] = { [NETPOL_SNI_OFF] = "off",
					     [NETPOL_SNI_AUDIT] = "audit",
					     [NETPOL_SNI_ENFORCE] = "enforce" };

	(void)aqe_buf_puts(b, names[t->sni]);
}

static void put_yes(struct aqe_buf *b, bool v)
{
	(void)aqe_buf_puts(b, v ? "yes" : "no");
}

static void put_apex(struct aqe_buf *b, const struct netpol_type *t)
{
	put_yes(b, t->wildcard_apex);
}

static void put_a_rate(struct aqe_buf *b, const struct netpol_rate *r)
{
	(void)aqe_buf_addf(b, "%u/min, %u/h, burst %u", r->per_minute, r->per_hour, r->burst);
}

static void put_rate(struct aqe_buf *b, const struct netpol_type *t)
{
	put_a_rate(b, &t->rate);
}

static void put_shared(struct aqe_buf *b, const struct netpol_type *t)
{
	put_a_rate(b, t->has_shared ? &t->shared : &t->rate);
	if (!t->has_shared)
		(void)aqe_buf_puts(b, " (as rate)");
}

static void put_timeout(struct aqe_buf *b, const struct netpol_type *t)
{
	(void)aqe_buf_addf(b, "%u", t->timeout_ms);
}

static void put_host_header(struct aqe_buf *b, const struct netpol_type *t)
{
	(void)aqe_buf_puts(b, t->host_strict ? "refuse" : "rewrite");
}

static void put_websocket(struct aqe_buf *b, const struct netpol_type *t)
{
	put_yes(b, t->websocket);
}

static void put_socks(struct aqe_buf *b, const struct netpol_type *t)
{
	put_yes(b, t->socks);
}

static void put_transparent(struct aqe_buf *b, const struct netpol_type *t)
{
	put_yes(b, t->transparent);
}

static void put_limits(struct aqe_buf *b, const struct netpol_type *t)
{
	const struct netpol_limits *l = &t->limits;

	(void)aqe_buf_addf(b, "%u connections, %u tunnels, idle %u s, lifetime %u s",
			   l->connections, l->tunnels, l->idle_s, l->lifetime_s);
	if (l->bytes_up)
		(void)aqe_buf_addf(b, ", %llu bytes up", (unsigned long long)l->bytes_up);
	if (l->bytes_down)
		(void)aqe_buf_addf(b, ", %llu bytes down", (unsigned long long)l->bytes_down);
}

static void put_domains(struct aqe_buf *b, const struct netpol_type *t)
{
	const size_t n = netpol_rules_count(t->rules);

	(void)aqe_buf_addf(b, "%zu %s", n, n == 1 ? "entry" : "entries");
}

static void put_cidr(struct aqe_buf *b, const struct netpol_type *t)
{
	for (size_t i = 0; i < t->n_cidrs; i++) {
		char text[NETPOL_ADDR_TEXT];

		netpol_addr_format(&t->cidrs[i].base, text);
		(void)aqe_buf_addf(b, "%s%s/%u", i ? " " : "", text, t->cidrs[i].bits);
	}
	if (!t->n_cidrs)
		(void)aqe_buf_puts(b, "none");
}

static void (*const PUT[NETPOL_KEY_COUNT])(struct aqe_buf *b, const struct netpol_type *t) = {
	[NETPOL_KEY_ACCESS] = put_access,
	[NETPOL_KEY_MODE] = put_mode,
	[NETPOL_KEY_SNI] = put_sni,
	[NETPOL_KEY_APEX] = put_apex,
	[NETPOL_KEY_DOMAINS] = put_domains,
	[NETPOL_KEY_CIDR] = put_cidr,
	[NETPOL_KEY_RATE] = put_rate,
	[NETPOL_KEY_SHARED] = put_shared,
	[NETPOL_KEY_TIMEOUT] = put_timeout,
	[NETPOL_KEY_HOST_HEADER] = put_host_header,
	[NETPOL_KEY_WEBSOCKET] = put_websocket,
	[NETPOL_KEY_SOCKS] = put_socks,
	[NETPOL_KEY_TRANSPARENT] = put_transparent,
	[NETPOL_KEY_LIMITS] = put_limits,
};

/* ---- what belongs to no type: gateways, cluster, upstream proxy ---- */

/* A value and what says so; the same rows as text and as JSON. */
struct row {
	const char *name;
	void (*put)(struct aqe_buf *b, const struct netpol_gateway *g, const struct netpol_type *t);
	const struct netpol_where *(*where)(const struct netpol_gateway *g,
					    const struct netpol_type *t);
};

static const struct netpol_where *of_gateway(const struct netpol_gateway *g,
					     const struct netpol_type *t)
{
	(void)t;
	return &g->where;
}

static void gate_upstream(struct aqe_buf *b, const struct netpol_gateway *g,
			  const struct netpol_type *t)
{
	(void)t;
	(void)aqe_buf_puts(b, g->upstream);
}

/* Where the secret comes from and where it goes, never the secret. */
static void gate_credential(struct aqe_buf *b, const struct netpol_gateway *g,
			    const struct netpol_type *t)
{
	(void)t;
	if (g->credential_file)
		(void)aqe_buf_addf(b, "%s, from %s", g->header, g->credential_file);
	else
		(void)aqe_buf_puts(b, "none");
}

static void put_words(struct aqe_buf *b, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)aqe_buf_addf(b, "%s%s", i ? " " : "", list[i]);
}

static void gate_methods(struct aqe_buf *b, const struct netpol_gateway *g,
			 const struct netpol_type *t)
{
	size_t n = 0;
	const char *const *list = netpol_gateway_methods(g, &n);

	(void)t;
	put_words(b, list, n);
}

static const struct netpol_where *of_methods(const struct netpol_gateway *g,
					     const struct netpol_type *t)
{
	(void)t;
	return &g->where_methods;
}

static void gate_paths(struct aqe_buf *b, const struct netpol_gateway *g,
		       const struct netpol_type *t)
{
	(void)t;
	put_words(b, g->paths, g->n_paths);
	if (!g->n_paths)
		(void)aqe_buf_puts(b, "all");
}

static const struct netpol_where *of_paths(const struct netpol_gateway *g,
					   const struct netpol_type *t)
{
	(void)t;
	return &g->where_paths;
}

static void gate_rate(struct aqe_buf *b, const struct netpol_gateway *g,
		      const struct netpol_type *t)
{
	put_a_rate(b, g->has_rate ? &g->rate : &t->rate);
	if (!g->has_rate)
		(void)aqe_buf_puts(b, " (as the type's)");
}

static const struct netpol_where *of_rate(const struct netpol_gateway *g,
					  const struct netpol_type *t)
{
	return g->has_rate ? &g->where_rate : &t->where[NETPOL_KEY_RATE];
}

static const struct row GATE_ROWS[] = {
	{ "upstream", gate_upstream, of_gateway },
	{ "methods", gate_methods, of_methods },
	{ "paths", gate_paths, of_paths },
	{ "rate", gate_rate, of_rate },
	{ "credential", gate_credential, of_gateway },
};

static void put_cluster(struct aqe_buf *b, const struct netpol_policy *p)
{
	const struct netpol_cluster_conf *c = &p->cluster;

	(void)aqe_buf_addf(b, "%s%s, shared by %s%s", c->address, c->tls ? " with TLS" : "",
			   c->share == NETPOL_SHARE_AGENT ? "agent" : "type",
			   c->on_store_error == NETPOL_STORE_DENY ? ", deny when away" : "");
}

static void put_proxy(struct aqe_buf *b, const struct netpol_policy *p)
{
	(void)aqe_buf_puts(b, p->upstream_proxy);
	if (p->proxy_credential)
		(void)aqe_buf_addf(b, ", password from %s", p->proxy_credential);
}

/* ---- text ---- */

static void text_row(struct aqe_buf *b, const char *name, const char *value,
		     const struct netpol_where *where)
{
	(void)aqe_buf_addf(b, "%-13s %-48s  ", name, value);
	shim_policy_where(b, where);
	(void)aqe_buf_putc(b, '\n');
}

static void text_domains(struct aqe_buf *b, const struct netpol_type *t)
{
	for (size_t i = 0; i < netpol_rules_count(t->rules); i++) {
		const struct netpol_rule *r = netpol_rules_at(t->rules, i);

		text_row(b, i ? "" : "allow", r->text, &r->where);
		if (r->warning)
			(void)aqe_buf_addf(b, "%-13s   warning: %s\n", "", r->warning);
	}
}

static void text_gateways(struct aqe_buf *b, const struct netpol_policy *p,
			  const struct netpol_type *t)
{
	for (size_t i = 0; i < p->n_gateways; i++) {
		const struct netpol_gateway *g = &p->gateways[i];
		AQE_AUTO_BUF struct aqe_buf v = AQE_BUF_INIT(SHIM_POLICY_OUT);

		if (netpol_policy_gateway(p, t->name, g->name) != g)
			continue;
		text_row(b, "gateway", g->name, &g->where);
		for (size_t k = 0; k < AQE_COUNT(GATE_ROWS); k++) {
			const struct row *r = &GATE_ROWS[k];

			char name[16];

			(void)snprintf(name, sizeof(name), "  %s", r->name);
			aqe_buf_clear(&v);
			r->put(&v, g, t);
			text_row(b, name, aqe_buf_str(&v), r->where(g, t));
		}
	}
}

static void text_service(struct aqe_buf *b, const struct netpol_policy *p)
{
	AQE_AUTO_BUF struct aqe_buf v = AQE_BUF_INIT(SHIM_POLICY_OUT);

	if (p->cluster.address) {
		put_cluster(&v, p);
		text_row(b, "cluster", aqe_buf_str(&v), &p->cluster_where);
	}
	aqe_buf_clear(&v);
	if (p->upstream_proxy) {
		put_proxy(&v, p);
		text_row(b, "upstreamProxy", aqe_buf_str(&v), &p->proxy_where);
	}
}

static void text_effective(struct aqe_buf *b, const struct netpol_policy *p, const char *asked)
{
	const struct netpol_type *t = netpol_policy_type(p, asked);

	(void)aqe_buf_addf(b, "%-13s %s\n", "agent type", asked);
	if (strcmp(t->name, asked) != 0)
		(void)aqe_buf_addf(b, "%-13s %s (the type is not known)\n", "policy of", t->name);
	(void)aqe_buf_addf(b, "%-13s %s\n", "digest", p->digest);
	for (unsigned k = 0; k < NETPOL_KEY_COUNT; k++) {
		AQE_AUTO_BUF struct aqe_buf v = AQE_BUF_INIT(SHIM_POLICY_OUT);

		PUT[k](&v, t);
		text_row(b, netpol_key_name((enum netpol_key)k), aqe_buf_str(&v), &t->where[k]);
		if (k == NETPOL_KEY_DOMAINS)
			text_domains(b, t);
	}
	text_gateways(b, p, t);
	text_service(b, p);
}

static void text_types(struct aqe_buf *b, const struct netpol_policy *p)
{
	(void)aqe_buf_addf(b, "%-26s %-12s %-8s %7s %7s %6s  %s\n", "agent type", "access", "mode",
			   "per min", "per h", "burst", "allow");
	for (size_t i = 0; i < p->n_types; i++) {
		const struct netpol_type *t = &p->types[i];

		(void)aqe_buf_addf(b, "%-26s %-12s %-8s %7u %7u %6u  ", t->name,
				   t->access == NETPOL_ACCESS_WHITELISTED ? "whitelisted"
									  : "isolated",
				   t->mode == NETPOL_MODE_REPORT ? "report" : "enforce",
				   t->rate.per_minute, t->rate.per_hour, t->rate.burst);
		for (size_t k = 0; k < netpol_rules_count(t->rules); k++)
			(void)aqe_buf_addf(b, "%s%s", k ? "," : "",
					   netpol_rules_at(t->rules, k)->text);
		(void)aqe_buf_putc(b, '\n');
	}
}

/* ---- json ---- */

static struct aqe_json *json_value(struct aqe_arena *a, const struct aqe_buf *v,
				   const struct netpol_where *w)
{
	struct aqe_json *o = aqe_json_new_object(a);

	if (!o || aqe_json_set(a, o, "value", aqe_json_new_str(a, aqe_buf_str(v))) ||
	    aqe_json_set(a, o, "where", shim_policy_where_json(a, w)))
		return NULL;
	return o;
}

static struct aqe_json *json_gateways(struct aqe_arena *a, const struct netpol_policy *p,
				      const struct netpol_type *t)
{
	struct aqe_json *all = aqe_json_new_object(a);

	for (size_t i = 0; all && i < p->n_gateways; i++) {
		const struct netpol_gateway *g = &p->gateways[i];
		struct aqe_json *o = aqe_json_new_object(a);

		if (netpol_policy_gateway(p, t->name, g->name) != g)
			continue;
		for (size_t k = 0; o && k < AQE_COUNT(GATE_ROWS); k++) {
			AQE_AUTO_BUF struct aqe_buf v = AQE_BUF_INIT(SHIM_POLICY_OUT);
			const struct row *r = &GATE_ROWS[k];

			r->put(&v, g, t);
			if (aqe_json_set(a, o, r->name, json_value(a, &v, r->where(g, t))))
				return NULL;
		}
		if (!o || aqe_json_set(a, all, g->name, o))
			return NULL;
	}
	return all;
}

/* Cluster and proxy, those that are there. */
static bool json_service(struct aqe_arena *a, struct aqe_json *o, const struct netpol_policy *p)
{
	AQE_AUTO_BUF struct aqe_buf v = AQE_BUF_INIT(SHIM_POLICY_OUT);

	if (p->cluster.address) {
		put_cluster(&v, p);
		if (aqe_json_set(a, o, "cluster", json_value(a, &v, &p->cluster_where)))
			return false;
	}
	aqe_buf_clear(&v);
	if (!p->upstream_proxy)
		return true;
	put_proxy(&v, p);
	return !aqe_json_set(a, o, "upstreamProxy", json_value(a, &v, &p->proxy_where));
}

static struct aqe_json *json_settings(struct aqe_arena *a, const struct netpol_type *t)
{
	struct aqe_json *o = aqe_json_new_object(a);

	for (unsigned k = 0; o && k < NETPOL_KEY_COUNT; k++) {
		AQE_AUTO_BUF struct aqe_buf v = AQE_BUF_INIT(SHIM_POLICY_OUT);

		PUT[k](&v, t);
		if (aqe_json_set(a, o, netpol_key_name((enum netpol_key)k),
				 json_value(a, &v, &t->where[k])))
			return NULL;
	}
	return o;
}

static struct aqe_json *json_rules(struct aqe_arena *a, const struct netpol_type *t)
{
	struct aqe_json *list = aqe_json_new_array(a);

	for (size_t i = 0; list && i < netpol_rules_count(t->rules); i++) {
		if (aqe_json_append(list, shim_policy_rule_json(a, netpol_rules_at(t->rules, i))))
			return NULL;
	}
	return list;
}

/* What is in force as the policy file would say it. */
static struct aqe_json *json_section(struct aqe_arena *a, const struct netpol_policy *p,
				     const struct netpol_type *t)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(SHIM_POLICY_OUT);
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	struct aqe_json *root = NULL;

	limits.bytes = SHIM_POLICY_OUT;
	if (netpol_policy_emit(p, t, &b, NULL) ||
	    aqe_json_parse(a, b.p, b.len, &limits, &root, NULL))
		return NULL;
	return root;
}

static int json(struct aqe_buf *b, const struct hard_policy *files, const struct netpol_policy *p,
		const char *asked)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(DOC_ARENA_MAX);
	const struct netpol_type *t = asked ? netpol_policy_type(p, asked) : NULL;
	struct aqe_json *o = a ? aqe_json_new_object(a) : NULL;

	if (!o || aqe_json_set(a, o, "version", aqe_json_new_u64(a, 1)) ||
	    aqe_json_set(a, o, "digest", aqe_json_new_str(a, p->digest)) ||
	    (asked && aqe_json_set(a, o, "type", aqe_json_new_str(a, asked))) ||
	    (t && aqe_json_set(a, o, "policy", aqe_json_new_str(a, t->name))) ||
	    (t && aqe_json_set(a, o, "settings", json_settings(a, t))) ||
	    (t && aqe_json_set(a, o, "allow", json_rules(a, t))) ||
	    (t && aqe_json_set(a, o, "gateways", json_gateways(a, p, t))) ||
	    (t && !json_service(a, o, p)) ||
	    (t && aqe_json_set(a, o, "cache", shim_policy_cache_json(a, files, t->name))) ||
	    aqe_json_set(a, o, "network", json_section(a, p, t)) ||
	    aqe_json_emit(o, AQE_JSON_PRETTY, b, NULL))
		return AQE_E_NOMEM;
	(void)aqe_buf_putc(b, '\n');
	return AQE_OK;
}

static int show(struct aqe_buf *b, const struct shim_policy_args *args,
		const struct hard_policy *files, const struct netpol_policy *p, struct aqe_err *e)
{
	const char *type = args->effective;

	if (args->json)
		return json(b, files, p, type)
			       ? aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the document")
			       : 0;
	if (!type) {
		text_types(b, p);
		return 0;
	}
	text_effective(b, p, type);
	return shim_policy_cache_text(b, files, netpol_policy_type(p, type)->name, e);
}

int shim_policy_show(int argc, char **argv)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(SHIM_POLICY_OUT);
	struct aqe_err e = AQE_ERR_INIT;
	struct hard_policy *files = NULL;
	struct netpol_policy *p = NULL;
	struct shim_policy_args args;
	int status = shim_policy_args(&CMD, argc, argv, 0, 0, &args);
	int rc = 0;

	if (status >= 0)
		return status;
	rc = shim_policy_read(&args, &files, &e);
	if (!rc)
		rc = shim_net_policy_build(files, &p, &e);
	if (!rc)
		rc = shim_cache_policy_check(files, &e);
	if (!rc)
		rc = show(&b, &args, files, p, &e);
	netpol_policy_unref(p);
	hard_policy_free(files);
	return rc ? shim_policy_fail(&CMD, SHIM_EXIT_UNDECIDED, &e)
		  : shim_policy_print(&b, SHIM_EXIT_OK);
}
