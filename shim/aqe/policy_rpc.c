/* SPDX-License-Identifier: MIT */
#include "shim/aqe/policy_rpc.h"

#include <string.h>

#include "shim/aqe/policy_cmd.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define ARENA_MAX    ((size_t)8 << 20)
#define NAME_LEN_MAX 128 /* bytes of a type or an agent */
#define HTTPS_PORT   443

/* A line is small and shallow. */
static const struct aqe_json_limits LIMITS = {
	.bytes = SHIM_RPC_LINE,
	.depth = 4,
	.values = 8192,
	.entries = 4096,
	.string = 8192,
	.number = 20,
	.fold_dups_ok = false,
};

struct call {
	struct shim_rpc *rpc;
	struct aqe_arena *a;
	const struct aqe_json *in;
	struct aqe_json *out;
	int64_t now;
	const char *agent, *type_name;
	const struct netpol_type *type;
};

static int nomem(struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
}

/* ---- reading a call ---- */

/* Members that an op may have beside "op" and "id". */
enum member {
	M_TYPE = 1U << 0,
	M_AGENT = 1U << 1,
	M_HOST = 1U << 2,
	M_PORT = 1U << 3,
	M_PROTO = 1U << 4,
	M_OVERRIDE = 1U << 5,
	M_METHOD = 1U << 6,
	M_STATUS = 1U << 7,
	M_RESPONSE = 1U << 8,
	M_ASK = (1U << 6) - 1,
};
static const struct {
	const char *name;
	unsigned bit;
} MEMBERS[] = {
	{ "type", M_TYPE },     { "agent", M_AGENT },   { "host", M_HOST },
	{ "port", M_PORT },     { "proto", M_PROTO },   { "override", M_OVERRIDE },
	{ "method", M_METHOD }, { "status", M_STATUS }, { "responseMs", M_RESPONSE },
};

static int check_members(const struct aqe_json *in, unsigned allowed, struct aqe_err *e)
{
	for (const struct aqe_json *m = in->first; m; m = m->next) {
		bool known = strcmp(m->key, "op") == 0 || strcmp(m->key, "id") == 0;

		for (size_t i = 0; !known && i < AQE_COUNT(MEMBERS); i++)
			known = (MEMBERS[i].bit & allowed) && strcmp(MEMBERS[i].name, m->key) == 0;
		if (!known)
			return aqe_err_set(e, AQE_E_MALFORMED, 0, "unknown member '%.64s'", m->key);
	}
	return AQE_OK;
}

/* A text of at most NAME_LEN_MAX printable bytes; required. */
static int get_name(const struct aqe_json *in, const char *name, const char **ret,
		    struct aqe_err *e)
{
	int rc = aqe_json_get_str(in, name, ret, e);

	if (rc < 0)
		return rc;
	if (rc == 0)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "'%s' is missing", name);
	if (!**ret || strlen(*ret) > NAME_LEN_MAX)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "'%s': wanted 1 to %d bytes", name,
				   NAME_LEN_MAX);
	for (const char *c = *ret; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return aqe_err_set(e, AQE_E_MALFORMED, 0, "'%s' has a control character",
					   name);
	}
	return AQE_OK;
}

static int get_type(struct call *c, struct aqe_err *e)
{
	int rc = get_name(c->in, "type", &c->type_name, e);

	if (rc)
		return rc;
	if (!c->rpc->live->now)
		return aqe_err_set(e, AQE_E_ABSENT, 0, "no policy: %s", c->rpc->live->last.text);
	c->type = netpol_policy_type(c->rpc->live->now, c->type_name);
	return AQE_OK;
}

static int get_agent(struct call *c, struct aqe_err *e)
{
	int rc = get_type(c, e);

	return rc ? rc : get_name(c->in, "agent", &c->agent, e);
}

static int get_proto(const struct aqe_json *in, enum netpol_proto *ret, struct aqe_err *e)
{
	const char *s = NULL;
	int rc = aqe_json_get_str(in, "proto", &s, e);

	if (rc <= 0)
		return rc;
	for (unsigned i = 0; i < NETPOL_PROTO_COUNT; i++) {
		if (strcmp(netpol_proto_name((enum netpol_proto)i), s) == 0) {
			*ret = (enum netpol_proto)i;
			return AQE_OK;
		}
	}
	return aqe_err_set(e, AQE_E_MALFORMED, 0,
			   "'proto': wanted any, http, connect, tls, socks or dns");
}

static int get_request(const struct call *c, struct netpol_request *ret, struct aqe_err *e)
{
	uint64_t port = HTTPS_PORT;
	int rc = aqe_json_get_str(c->in, "host", &ret->host, e);

	if (rc == 0)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "'host' is missing");
	if (rc > 0)
		rc = aqe_json_get_u64(c->in, "port", UINT16_MAX, &port, e);
	if (rc >= 0)
		rc = get_proto(c->in, &ret->proto, e);
	if (rc < 0)
		return rc;
	ret->host_len = strlen(ret->host);
	ret->port = (uint16_t)port;
	return AQE_OK;
}

/* ---- overrides ---- */

/* A second policy that a request must pass as well. */
struct tighter {
	bool used, has_rate;
	struct netpol_type type; /* starts as the agent's own */
	struct netpol_rate rate;
};

static int override_domains(const struct call *c, const struct aqe_json *list, struct tighter *ret,
			    struct aqe_err *e)
{
	static const struct netpol_where where = { "override", 0 };
	struct netpol_rules *rules = netpol_rules_new(c->a);
	int rc = AQE_OK;

	if (!rules)
		return nomem(e);
	for (const struct aqe_json *v = list->first; !rc && v; v = v->next) {
		if (!aqe_json_str(v))
			return aqe_err_set(e, AQE_E_MALFORMED, 0,
					   "'override.domains': wanted texts");
		rc = netpol_rules_add(rules, v->text, v->len, where, e);
	}
	ret->type.rules = rules;
	return rc;
}

static uint32_t lower_of(uint32_t a, uint64_t b)
{
	return b < a ? (uint32_t)b : a;
}

static int override_rate(const struct aqe_json *o, struct tighter *ret, struct aqe_err *e)
{
	struct netpol_rate *r = &ret->rate;
	const struct {
		const char *name;
		uint32_t *place;
	} rows[] = { { "perMinute", &r->per_minute },
		     { "perHour", &r->per_hour },
		     { "burst", &r->burst } };

	*r = ret->type.rate;
	for (const struct aqe_json *m = o->first; m; m = m->next) {
		uint64_t n = 0;
		size_t i = 0;

		while (i < AQE_COUNT(rows) && strcmp(rows[i].name, m->key) != 0)
			i++;
		if (i == AQE_COUNT(rows) || !aqe_json_to_u64(m, NETPOL_RATE_MAX, &n) || !n)
			return aqe_err_set(e, AQE_E_MALFORMED, 0,
					   "'override.rate': wanted perMinute, perHour, burst, "
					   "each 1 to 1000000");
		*rows[i].place = lower_of(*rows[i].place, n);
	}
	ret->has_rate = true;
	return AQE_OK;
}

static int override_apex(const struct aqe_json *v, struct tighter *ret, struct aqe_err *e)
{
	if (v->type != AQE_JSON_BOOL)
		return aqe_err_set(e, AQE_E_MALFORMED, 0,
				   "'override.wildcardApex': wanted a boolean");
	ret->type.wildcard_apex = ret->type.wildcard_apex && v->boolean;
	return AQE_OK;
}

static int override_mode(const struct aqe_json *v, struct tighter *ret, struct aqe_err *e)
{
	const char *s = aqe_json_str(v);

	if (!s || (strcmp(s, "enforce") != 0 && strcmp(s, "report") != 0))
		return aqe_err_set(e, AQE_E_MALFORMED, 0,
				   "'override.mode': wanted enforce or report");
	if (s[0] == 'e')
		ret->type.mode = NETPOL_MODE_ENFORCE;
	return AQE_OK;
}

static int get_override(const struct call *c, struct tighter *ret, struct aqe_err *e)
{
	struct aqe_json *o = NULL;
	int rc = aqe_json_get_object(c->in, "override", &o, e);

	memset(ret, 0, sizeof(*ret));
	ret->type = *c->type;
	if (rc <= 0)
		return rc;
	ret->used = true;
	rc = AQE_OK;
	for (const struct aqe_json *m = o->first; !rc && m; m = m->next) {
		if (strcmp(m->key, "domains") == 0 && m->type == AQE_JSON_ARRAY)
			rc = override_domains(c, m, ret, e);
		else if (strcmp(m->key, "rate") == 0 && m->type == AQE_JSON_OBJECT)
			rc = override_rate(m, ret, e);
		else if (strcmp(m->key, "wildcardApex") == 0)
			rc = override_apex(m, ret, e);
		else if (strcmp(m->key, "mode") == 0)
			rc = override_mode(m, ret, e);
		else
			rc = aqe_err_set(e, AQE_E_MALFORMED, 0, "'override.%.32s' is not known",
					 m->key);
	}
	return rc;
}

/* ---- deciding ---- */

/* The agent's limiter, or the one of an override's rate. */
static int get_limiter(const struct call *c, const struct netpol_rate *tight,
		       struct netpol_limiter **ret, struct aqe_err *e)
{
	/* the policy's name, not the asked one: an unknown type must not bring a fresh bucket */
	const char *key = tight ? aqe_arena_fmt(c->a, "%s\n%s\n%u,%u,%u", c->type->name, c->agent,
						tight->per_minute, tight->per_hour, tight->burst)
				: aqe_arena_fmt(c->a, "%s\n%s", c->type->name, c->agent);

	if (!key)
		return nomem(e);
	return netpol_limiters_get(c->rpc->limiters, key, tight ? tight : &c->type->rate, c->now,
				   ret, e);
}

/* Both policies in turn; nothing is spent unless both admit. */
static int decide(const struct call *c, const struct netpol_request *rq, enum netpol_spend spend,
		  struct netpol_answer *ret, struct aqe_err *e)
{
	struct netpol_limiter *own = NULL, *tight = NULL;
	struct netpol_answer base;
	struct netpol_limit limit;
	struct tighter over;
	int rc = get_override(c, &over, e);

	if (!rc)
		rc = get_limiter(c, NULL, &own, e);
	if (!rc && over.has_rate)
		rc = get_limiter(c, &over.rate, &tight, e);
	if (rc)
		return rc;
	netpol_decide(c->type, own, c->now, rq, NETPOL_PEEK, &base);
	*ret = base;
	if (over.used && base.verdict == NETPOL_ALLOW)
		netpol_decide(&over.type, tight ? tight : own, c->now, rq, NETPOL_PEEK, ret);
	if (ret->verdict != NETPOL_ALLOW || spend == NETPOL_PEEK || rq->proto == NETPOL_PROTO_DNS)
		return AQE_OK;
	/* both were asked a moment ago, at this same time: they admit */
	netpol_limiter_consume(own, c->now, &limit);
	if (tight)
		netpol_limiter_consume(tight, c->now, &limit);
	return AQE_OK;
}

static int put(struct call *c, const char *key, struct aqe_json *v)
{
	return aqe_json_set(c->a, c->out, key, v);
}

static int put_answer(struct call *c, const struct netpol_answer *n)
{
	if (put(c, "policy", aqe_json_new_str(c->a, c->type->name)) ||
	    put(c, "digest", aqe_json_new_str(c->a, c->rpc->live->now->digest)) ||
	    !shim_policy_answer_json(c->a, c->out, n))
		return AQE_E_NOMEM;
	return AQE_OK;
}

static int op_check(struct call *c, struct aqe_err *e)
{
	struct netpol_request rq = { .proto = NETPOL_PROTO_ANY };
	struct netpol_answer n = { .verdict = NETPOL_DENY };
	int rc = get_agent(c, e);

	if (!rc)
		rc = get_request(c, &rq, e);
	if (!rc)
		rc = decide(c, &rq, NETPOL_PEEK, &n, e);
	return rc ? rc : put_answer(c, &n);
}

static int get_extras(const struct aqe_json *in, struct shim_rpc_record *ret, struct aqe_err *e)
{
	int rc = aqe_json_get_str(in, "method", &ret->method, e);

	if (rc >= 0)
		rc = aqe_json_get_i64(in, "status", 0, 999, &ret->status, e);
	if (rc >= 0)
		rc = aqe_json_get_i64(in, "responseMs", 0, 86400000, &ret->response_ms, e);
	return rc < 0 ? rc : AQE_OK;
}

static int write_record(const struct call *c, const struct netpol_request *rq,
			const struct netpol_answer *n, struct shim_rpc_record *rec,
			struct aqe_err *e)
{
	rec->agent = c->agent;
	rec->type = c->type_name;
	rec->host = n->reason == NETPOL_REASON_HOST_INVALID ? NULL : n->host.text;
	rec->rule = n->rule ? n->rule->text : NULL;
	rec->reason = netpol_reason_name(n->reason);
	rec->policy = c->rpc->live->now->digest;
	rec->verdict = n->verdict;
	rec->port = rq->port;
	rec->would_deny = n->would_deny;
	return c->rpc->audit ? c->rpc->audit(c->rpc->self, rec, e) : AQE_OK;
}

static int op_record(struct call *c, struct aqe_err *e)
{
	struct netpol_request rq = { .proto = NETPOL_PROTO_ANY };
	struct shim_rpc_record rec = { .status = -1, .response_ms = -1 };
	struct netpol_answer n = { .verdict = NETPOL_DENY };
	int rc = get_agent(c, e);

	if (!rc)
		rc = get_request(c, &rq, e);
	if (!rc)
		rc = get_extras(c->in, &rec, e);
	if (!rc)
		rc = decide(c, &rq, NETPOL_CONSUME, &n, e);
	if (!rc)
		rc = write_record(c, &rq, &n, &rec, e);
	return rc ? rc : put_answer(c, &n);
}

static int op_peek(struct call *c, struct aqe_err *e)
{
	struct netpol_limiter_status s;
	struct netpol_limiter *l = NULL;
	int rc = get_agent(c, e);

	if (!rc)
		rc = get_limiter(c, NULL, &l, e);
	if (rc)
		return rc;
	netpol_limiter_status(l, c->now, &s);
	if (put(c, "policy", aqe_json_new_str(c->a, c->type->name)) ||
	    put(c, "limited", aqe_json_new_bool(c->a, s.limited)) ||
	    put(c, "currentRate", aqe_json_new_u64(c->a, s.current)) ||
	    put(c, "inHour", aqe_json_new_u64(c->a, s.in_hour)) ||
	    put(c, "remaining", aqe_json_new_u64(c->a, s.remaining)) ||
	    put(c, "resetInMs", aqe_json_new_u64(c->a, s.reset_in_ms)))
		return nomem(e);
	return AQE_OK;
}

static int op_reset(struct call *c, struct aqe_err *e)
{
	struct netpol_limiter *l = NULL;
	int rc = get_agent(c, e);

	if (!rc)
		rc = get_limiter(c, NULL, &l, e);
	if (!rc)
		netpol_limiter_reset(l);
	return rc;
}

static int op_policy(struct call *c, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(ARENA_MAX);
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	struct aqe_json *network = NULL;
	int rc = get_type(c, e);

	limits.bytes = ARENA_MAX;
	if (!rc)
		rc = netpol_policy_emit(c->rpc->live->now, c->type, &b, e);
	if (!rc)
		rc = aqe_json_parse(c->a, b.p, b.len, &limits, &network, e);
	if (rc)
		return rc;
	if (put(c, "policy", aqe_json_new_str(c->a, c->type->name)) ||
	    put(c, "digest", aqe_json_new_str(c->a, c->rpc->live->now->digest)) ||
	    put(c, "network", network))
		return nomem(e);
	return AQE_OK;
}

int shim_rpc_reload(struct shim_rpc *r, bool *ret_changed, struct aqe_err *e)
{
	struct aqe_err why = AQE_ERR_INIT, ignored = AQE_ERR_INIT;
	int rc = netpol_live_reload(r->live, ret_changed, &why);
	const char *digest = r->live->now ? r->live->now->digest : "";

	if (rc) {
		/* the fault itself is the news; that it could not be written comes second */
		if (r->reloaded && r->reloaded(r->self, digest, why.text, &ignored))
			(void)aqe_err_wrap(&why, "%s, and", ignored.text);
		*e = why;
		return rc;
	}
	return r->reloaded && *ret_changed ? r->reloaded(r->self, digest, NULL, e) : AQE_OK;
}

static int op_reload(struct call *c, struct aqe_err *e)
{
	bool changed = false;
	int rc = shim_rpc_reload(c->rpc, &changed, e);

	if (rc)
		return rc;
	if (put(c, "changed", aqe_json_new_bool(c->a, changed)) ||
	    put(c, "digest", aqe_json_new_str(c->a, c->rpc->live->now->digest)))
		return nomem(e);
	return AQE_OK;
}

static const struct {
	const char *name;
	unsigned members;
	int (*run)(struct call *c, struct aqe_err *e);
} OPS[] = {
	{ "check", M_ASK, op_check },
	{ "record", M_ASK | M_METHOD | M_STATUS | M_RESPONSE, op_record },
	{ "peek", M_TYPE | M_AGENT, op_peek },
	{ "reset", M_TYPE | M_AGENT, op_reset },
	{ "policy", M_TYPE, op_policy },
	{ "reload", 0, op_reload },
};

static int run(struct call *c, struct aqe_err *e)
{
	const char *op = NULL;
	int rc;

	if (c->in->type != AQE_JSON_OBJECT)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "wanted an object");
	rc = aqe_json_get_str(c->in, "op", &op, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; op && i < AQE_COUNT(OPS); i++) {
		if (strcmp(OPS[i].name, op) != 0)
			continue;
		rc = check_members(c->in, OPS[i].members, e);
		return rc ? rc : OPS[i].run(c, e);
	}
	return aqe_err_set(e, AQE_E_MALFORMED, 0,
			   "'op': wanted check, record, peek, reset, policy or reload");
}

/* ---- the line ---- */

/* A fresh answer with what every one has. */
static struct aqe_json *new_answer(struct call *c, bool ok)
{
	const struct aqe_json *id = aqe_json_get(c->in, "id");
	struct aqe_json *o = aqe_json_new_object(c->a);

	if (!o || aqe_json_set(c->a, o, "version", aqe_json_new_u64(c->a, 1)) ||
	    aqe_json_set(c->a, o, "ok", aqe_json_new_bool(c->a, ok)))
		return NULL;
	if (id && (id->type == AQE_JSON_STRING || id->type == AQE_JSON_NUMBER) &&
	    aqe_json_set(c->a, o, "id", aqe_json_copy(c->a, id)))
		return NULL;
	return o;
}

static bool answer_fault(struct call *c, const struct aqe_err *e, struct aqe_buf *out)
{
	c->out = new_answer(c, false);
	return c->out && !put(c, "code", aqe_json_new_str(c->a, aqe_code_name(e->code))) &&
	       !put(c, "error", aqe_json_new_str(c->a, e->text)) &&
	       !aqe_json_emit(c->out, AQE_JSON_COMPACT, out, NULL);
}

void shim_rpc_line(struct shim_rpc *r, const char *line, size_t n, int64_t now_ns,
		   struct aqe_buf *out)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct call c = { .rpc = r, .a = a, .now = now_ns };
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *in = NULL;
	const size_t start = out->len;
	bool good;
	int rc;

	rc = a ? aqe_json_parse(a, line, n, &LIMITS, &in, &e) : nomem(&e);
	if (!rc && in) {
		c.in = in;
		c.out = new_answer(&c, true);
		rc = c.out ? run(&c, &e) : nomem(&e);
	}
	if (rc && !e.code)
		(void)nomem(&e);
	good = rc ? a && answer_fault(&c, &e, out)
		  : !aqe_json_emit(c.out, AQE_JSON_COMPACT, out, NULL);
	if (!good) {
		/* half an answer must not be taken for one */
		out->len = start;
		out->failed = 0;
		(void)aqe_buf_puts(out, "{\"version\":1,\"ok\":false,\"code\":\"nomem\"}");
	}
	(void)aqe_buf_putc(out, '\n');
}
