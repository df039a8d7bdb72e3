/* SPDX-License-Identifier: MIT */
/* aqe policy check: the decision of a running service, asked beforehand. */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "netpolicy/gateway.h"
#include "shim/aqe/policy_cmd.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/exit.h"

#define DOC_ARENA_MAX ((size_t)1 << 20)
#define ADDRS_MAX     64
#define HTTPS_PORT    443
#define GATEWAY       "gateway:"

static const struct aqe_cli_opt OPTS[] = {
	{ "proto", 0, "PROTO",
	  "how it would be asked for: http (port 80), connect or tls (443), socks (80, 443), dns "
	  "(no port), any (default: 80, 443)",
	  SHIM_POLICY_PROTO },
	{ "resolve", 0, NULL,
	  "look an allowed name up here, and judge its addresses too; not with an upstream proxy",
	  SHIM_POLICY_RESOLVE },
	SHIM_POLICY_OPT_FILE,
	SHIM_POLICY_OPT_FORMAT,
	{ NULL, 0, NULL, NULL, 0 },
};
static const struct aqe_cli_cmd CMD = {
	.name = "aqe policy check",
	.synopsis = "[OPTION...] TYPE HOST[:PORT]\n"
		    "       aqe policy check [OPTION...] TYPE gateway:NAME[/PATH] [METHOD]",
	.about = "Decides as the egress service of an agent of this type does, with the rule and "
		 "where it is written; without a port, 443; of a gateway without a method, GET. "
		 "The rate limit is not asked.\n"
		 "Exit status: 0 allow, 1 refused, 2 usage, 4 the policy could not be read.",
	.opts = OPTS,
};

/* What an allowed name leads to. */
struct resolved {
	struct netpol_addr addr[ADDRS_MAX];
	enum netpol_class class[ADDRS_MAX];
	bool allowed[ADDRS_MAX];
	size_t n, n_allowed;
	const char *fault; /* of the look-up, or NULL */
};

static void resolve(const struct netpol_type *t, const char *host, struct resolved *ret)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC };
	struct addrinfo *list = NULL;
	int rc = getaddrinfo(host, NULL, &hints, &list);

	ret->fault = rc ? gai_strerror(rc) : NULL;
	for (const struct addrinfo *at = rc ? NULL : list; at && ret->n < ADDRS_MAX;
	     at = at->ai_next) {
		const size_t i = ret->n;

		if (!netpol_addr_from_sockaddr(at->ai_addr, &ret->addr[i]))
			continue;
		ret->allowed[i] = netpol_decide_addr(t, NULL, 0, &ret->addr[i], &ret->class[i]);
		ret->n_allowed += ret->allowed[i];
		ret->n++;
	}
	if (list)
		freeaddrinfo(list);
}

/* The proxy that connects in our place; by its name nothing is looked up here. */
static void text_proxy(struct aqe_buf *b, const struct netpol_policy *p)
{
	if (!p->upstream_proxy)
		return;
	(void)aqe_buf_addf(b, "through   %s  ", p->upstream_proxy);
	shim_policy_where(b, &p->proxy_where);
	(void)aqe_buf_putc(b, '\n');
}

/* All addresses denied is a refusal of its own; a failed look-up is not ours to judge. */
static void judge_addresses(const struct netpol_type *t, struct netpol_answer *answer,
			    struct resolved *ret)
{
	if (answer->verdict != NETPOL_ALLOW || answer->host.kind == NETPOL_HOST_LITERAL)
		return;
	resolve(t, answer->host.text, ret);
	if (ret->n && !ret->n_allowed) {
		answer->verdict = NETPOL_DENY;
		answer->reason = NETPOL_REASON_ADDRESS;
		answer->would_deny = false;
	}
}

static void text_addresses(struct aqe_buf *b, const struct resolved *r)
{
	if (r->fault)
		(void)aqe_buf_addf(b, "address   none: %s\n", r->fault);
	for (size_t i = 0; i < r->n; i++) {
		char text[NETPOL_ADDR_TEXT];

		netpol_addr_format(&r->addr[i], text);
		(void)aqe_buf_addf(b, "address   %s %s %s\n", r->allowed[i] ? "allow" : "deny",
				   netpol_class_name(r->class[i]), text);
	}
}

/* A type without a way out: this is what its service would say if it had one. */
static void text_access(struct aqe_buf *b, const struct netpol_type *t)
{
	if (t->access == NETPOL_ACCESS_WHITELISTED)
		return;
	(void)aqe_buf_puts(b, "but       containers of this type are isolated: they have no "
			      "service  ");
	shim_policy_where(b, &t->where[NETPOL_KEY_ACCESS]);
	(void)aqe_buf_putc(b, '\n');
}

static const char *access_name(const struct netpol_type *t)
{
	return t->access == NETPOL_ACCESS_WHITELISTED ? "whitelisted" : "isolated";
}

static void text(struct aqe_buf *b, const struct netpol_type *t, const struct netpol_request *rq,
		 const struct netpol_answer *n, const struct resolved *r)
{
	(void)aqe_buf_addf(b, "%s", shim_policy_verdict(n->verdict));
	if (n->reason != NETPOL_REASON_ALLOWED)
		(void)aqe_buf_addf(b, " %s", netpol_reason_name(n->reason));
	if (n->would_deny)
		(void)aqe_buf_puts(b, " (report mode: passes, and is written down)");
	if (n->why)
		(void)aqe_buf_addf(b, ": %s", n->why);
	(void)aqe_buf_putc(b, '\n');
	if (n->reason != NETPOL_REASON_HOST_INVALID)
		(void)aqe_buf_addf(b, "host      %s port %u, asked as %s\n", n->host.text, rq->port,
				   netpol_proto_name(rq->proto));
	(void)aqe_buf_addf(b, "policy    %s\n", t->name);
	text_access(b, t);
	if (n->rule) {
		(void)aqe_buf_addf(b, "rule      %s  ", n->rule->text);
		shim_policy_where(b, &n->rule->where);
		(void)aqe_buf_putc(b, '\n');
		if (n->rule->warning)
			(void)aqe_buf_addf(b, "warning   %s\n", n->rule->warning);
	} else if (n->reason == NETPOL_REASON_DOMAIN || n->reason == NETPOL_REASON_IP_LITERAL) {
		(void)aqe_buf_puts(b, "list      ");
		shim_policy_where(b, &t->where[NETPOL_KEY_DOMAINS]);
		(void)aqe_buf_addf(b, ", %zu entries\n", netpol_rules_count(t->rules));
	}
	text_addresses(b, r);
}

static struct aqe_json *json_addresses(struct aqe_arena *a, const struct resolved *r)
{
	struct aqe_json *list = aqe_json_new_array(a);

	for (size_t i = 0; list && i < r->n; i++) {
		struct aqe_json *o = aqe_json_new_object(a);
		const char *class = netpol_class_name(r->class[i]);
		char addr[NETPOL_ADDR_TEXT];

		netpol_addr_format(&r->addr[i], addr);
		if (!o || aqe_json_set(a, o, "address", aqe_json_new_str(a, addr)) ||
		    aqe_json_set(a, o, "class", aqe_json_new_str(a, class)) ||
		    aqe_json_set(a, o, "allowed", aqe_json_new_bool(a, r->allowed[i])) ||
		    aqe_json_append(list, o))
			return NULL;
	}
	return list;
}

/* The document; `args` tells what was asked. */
static int json(struct aqe_buf *b, const struct shim_policy_args *args,
		const struct netpol_policy *p, const struct netpol_request *rq,
		const struct netpol_answer *n, const struct resolved *r)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(DOC_ARENA_MAX);
	struct aqe_json *o = a ? aqe_json_new_object(a) : NULL;
	const struct netpol_type *t = netpol_policy_type(p, args->operand[0]);

	if (!o || aqe_json_set(a, o, "version", aqe_json_new_u64(a, 1)) ||
	    aqe_json_set(a, o, "type", aqe_json_new_str(a, args->operand[0])) ||
	    aqe_json_set(a, o, "policy", aqe_json_new_str(a, t->name)) ||
	    aqe_json_set(a, o, "access", aqe_json_new_str(a, access_name(t))) ||
	    aqe_json_set(a, o, "proto", aqe_json_new_str(a, netpol_proto_name(rq->proto))) ||
	    aqe_json_set(a, o, "port", aqe_json_new_u64(a, rq->port)) ||
	    aqe_json_set(a, o, "digest", aqe_json_new_str(a, p->digest)) ||
	    !shim_policy_answer_json(a, o, n) ||
	    (args->resolve && aqe_json_set(a, o, "addresses", json_addresses(a, r))) ||
	    aqe_json_emit(o, AQE_JSON_COMPACT, b, NULL))
		return AQE_E_NOMEM;
	(void)aqe_buf_putc(b, '\n');
	return AQE_OK;
}

/* HOST or HOST:PORT; an IPv6 address may come without brackets when it has no port. */
static int read_target(const char *s, struct netpol_request *ret, struct netpol_host *literal,
		       struct aqe_err *e)
{
	const char *port = NULL;
	struct netpol_addr addr;
	size_t port_n = 0;

	ret->port = HTTPS_PORT;
	if (netpol_addr_parse(s, strlen(s), &addr)) {
		netpol_host_from_addr(&addr, literal);
		ret->host = literal->text;
		ret->host_len = literal->len;
		return AQE_OK;
	}
	ret->host = s;
	netpol_authority_split(s, strlen(s), &ret->host_len, &port, &port_n);
	if (port && !netpol_port_parse(port, port_n, &ret->port))
		return aqe_err_set(e, AQE_E_USAGE, 0, "'%.64s': port is not 1 to 65535", s);
	return AQE_OK;
}

static int answer(const struct shim_policy_args *args, const struct netpol_policy *p,
		  const struct netpol_request *rq)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(SHIM_POLICY_OUT);
	const struct netpol_type *t = netpol_policy_type(p, args->operand[0]);
	struct netpol_answer n;
	struct resolved r = { .n = 0 };

	netpol_decide(t, NULL, 0, rq, NETPOL_PEEK, &n);
	if (args->resolve && !p->upstream_proxy) /* which looks names up itself */
		judge_addresses(t, &n, &r);
	if (args->json && json(&b, args, p, rq, &n, &r))
		return SHIM_EXIT_UNDECIDED;
	if (!args->json) {
		text(&b, t, rq, &n, &r);
		text_proxy(&b, p);
	}
	return shim_policy_print(&b, n.verdict == NETPOL_ALLOW ? SHIM_EXIT_OK : SHIM_EXIT_FAILED);
}

/* ---- gateways ---- */

struct gateway_check {
	const struct shim_policy_args *args;
	const struct netpol_policy *policy;
	const struct netpol_type *type;
	const char *target, *method; /* "/NAME/path" */
	struct netpol_gateway_answer answer;
	struct resolved addresses;
};

/* "gateway:8080" is a host of that name. */
static bool is_gateway(const char *s)
{
	const char *name = aqe_starts(s, GATEWAY) ? s + strlen(GATEWAY) : NULL;
	uint16_t port;

	return name && !netpol_port_parse(name, strlen(name), &port);
}

/* The upstream need not be listed; where it leads is judged like anything. */
static void judge_upstream(struct gateway_check *c)
{
	const struct netpol_host *h = &c->answer.gateway->host;
	struct resolved *r = &c->addresses;
	bool good = true;

	if (h->kind == NETPOL_HOST_LITERAL) {
		good = netpol_decide_addr(c->type, NULL, 0, &h->addr, r->class);
	} else if (c->args->resolve && !c->policy->upstream_proxy) {
		resolve(c->type, h->text, r);
		good = r->n == 0 || r->n_allowed > 0;
	}
	if (good)
		return;
	c->answer.status = 403;
	c->answer.reason = netpol_reason_name(NETPOL_REASON_ADDRESS);
}

static void judge_gateway(struct gateway_check *c)
{
	netpol_gateway_decide(c->policy, c->type->name, c->target, strlen(c->target), c->method,
			      &c->answer);
	if (!c->answer.reason)
		judge_upstream(c);
}

static const char *gateway_verdict(const struct gateway_check *c)
{
	return shim_policy_verdict(c->answer.status == 0     ? NETPOL_ALLOW
				   : c->answer.status == 400 ? NETPOL_INVALID
							     : NETPOL_DENY);
}

static const struct netpol_where *rule_where(const struct gateway_check *c)
{
	const struct netpol_gateway *g = c->answer.gateway;

	if (aqe_str_eq(c->answer.reason, "method_not_allowed") && g->n_methods)
		return &g->where_methods;
	return aqe_str_eq(c->answer.reason, "path_not_allowed") ? &g->where_paths : &g->where;
}

/* The gateways that the type has, for a name that is none. */
static void text_names(struct aqe_buf *b, const struct gateway_check *c)
{
	const struct netpol_policy *p = c->policy;
	size_t n = 0;

	(void)aqe_buf_puts(b, "gateways  ");
	for (size_t i = 0; i < p->n_gateways; i++) {
		const char *name = p->gateways[i].name;

		if (netpol_policy_gateway(p, c->type->name, name) == &p->gateways[i])
			(void)aqe_buf_addf(b, "%s%s", n++ ? " " : "", name);
	}
	(void)aqe_buf_puts(b, n ? "\n" : "none\n");
}

static void text_gateway(struct aqe_buf *b, const struct gateway_check *c)
{
	const struct netpol_gateway *g = c->answer.gateway;
	const struct netpol_gateway_target *t = &c->answer.target;

	(void)aqe_buf_addf(b, "%s%s%s\n", gateway_verdict(c), c->answer.reason ? " " : "",
			   c->answer.reason ? c->answer.reason : "");
	(void)aqe_buf_addf(b, "policy    %s\n", c->type->name);
	text_access(b, c->type);
	if (!g) {
		text_names(b, c);
		return;
	}
	(void)aqe_buf_addf(b, "asked     %s %s%.*s%.*s\n", c->method, g->upstream, (int)t->path_n,
			   t->path, (int)t->query_n, t->query);
	(void)aqe_buf_addf(b, "rule      gateway %s  ", g->name);
	shim_policy_where(b, rule_where(c));
	(void)aqe_buf_putc(b, '\n');
	text_addresses(b, &c->addresses);
	text_proxy(b, c->policy);
}

static bool json_gateway_rule(struct aqe_arena *a, struct aqe_json *o,
			      const struct gateway_check *c)
{
	const struct netpol_gateway *g = c->answer.gateway;
	struct aqe_json *rule = aqe_json_new_object(a);

	return rule &&
	       !aqe_json_set(a, rule, "entry",
			     aqe_json_new_str(a, aqe_arena_fmt(a, "gateway %s", g->name))) &&
	       !aqe_json_set(a, rule, "where", shim_policy_where_json(a, rule_where(c))) &&
	       !aqe_json_set(a, o, "upstream", aqe_json_new_str(a, g->upstream)) &&
	       !aqe_json_set(a, o, "rule", rule);
}

static int json_gateway(struct aqe_buf *b, const struct gateway_check *c)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(DOC_ARENA_MAX);
	struct aqe_json *o = a ? aqe_json_new_object(a) : NULL;
	const char *reason = c->answer.reason ? c->answer.reason : "allowed";

	if (!o || aqe_json_set(a, o, "version", aqe_json_new_u64(a, 1)) ||
	    aqe_json_set(a, o, "type", aqe_json_new_str(a, c->args->operand[0])) ||
	    aqe_json_set(a, o, "policy", aqe_json_new_str(a, c->type->name)) ||
	    aqe_json_set(a, o, "access", aqe_json_new_str(a, access_name(c->type))) ||
	    aqe_json_set(a, o, "proto", aqe_json_new_str(a, "gateway")) ||
	    aqe_json_set(a, o, "method", aqe_json_new_str(a, c->method)) ||
	    aqe_json_set(a, o, "path", aqe_json_new_str(a, c->target)) ||
	    aqe_json_set(a, o, "digest", aqe_json_new_str(a, c->policy->digest)) ||
	    aqe_json_set(a, o, "verdict", aqe_json_new_str(a, gateway_verdict(c))) ||
	    aqe_json_set(a, o, "reason", aqe_json_new_str(a, reason)) ||
	    (c->answer.gateway && !json_gateway_rule(a, o, c)) ||
	    (c->args->resolve &&
	     aqe_json_set(a, o, "addresses", json_addresses(a, &c->addresses))) ||
	    aqe_json_emit(o, AQE_JSON_COMPACT, b, NULL))
		return AQE_E_NOMEM;
	(void)aqe_buf_putc(b, '\n');
	return AQE_OK;
}

static int answer_gateway(const struct shim_policy_args *args, const struct netpol_policy *p)
{
	AQE_AUTO_BUF struct aqe_buf target = AQE_BUF_INIT(SHIM_POLICY_OUT);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(SHIM_POLICY_OUT);
	struct gateway_check c = { .args = args,
				   .policy = p,
				   .type = netpol_policy_type(p, args->operand[0]),
				   .method = args->n > 2 ? args->operand[2] : "GET" };

	(void)aqe_buf_addf(&target, "/%s", args->operand[1] + strlen(GATEWAY));
	c.target = aqe_buf_str(&target);
	judge_gateway(&c);
	if (args->json && json_gateway(&b, &c))
		return SHIM_EXIT_UNDECIDED;
	if (!args->json)
		text_gateway(&b, &c);
	return shim_policy_print(&b, c.answer.reason ? SHIM_EXIT_FAILED : SHIM_EXIT_OK);
}

int shim_policy_check(int argc, char **argv)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct netpol_policy *p = NULL;
	struct shim_policy_args args;
	struct netpol_request rq = { .port = 0 };
	struct netpol_host literal;
	int status = shim_policy_args(&CMD, argc, argv, 2, 3, &args);
	bool gateway;

	if (status >= 0)
		return status;
	rq.proto = args.proto;
	gateway = is_gateway(args.operand[1]);
	if (!gateway && args.n > 2)
		(void)aqe_err_set(&e, AQE_E_USAGE, 0, "surplus argument '%.64s'", args.operand[2]);
	if (e.code || (!gateway && read_target(args.operand[1], &rq, &literal, &e)))
		return shim_policy_fail(&CMD, SHIM_EXIT_USAGE, &e);
	if (shim_policy_load(&args, &p, &e))
		return shim_policy_fail(&CMD, SHIM_EXIT_UNDECIDED, &e);
	status = gateway ? answer_gateway(&args, p) : answer(&args, p, &rq);
	netpol_policy_unref(p);
	return status;
}
