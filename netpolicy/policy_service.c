/* SPDX-License-Identifier: MIT */
/* Members of the section that belong to no agent type: gateways, cluster, upstream proxy. */
#include <string.h>

#include "netpolicy/gateway.h"
#include "netpolicy/policy_int.h"
#include "shim/core/text.h"

#define URL_MAX     2048
#define HEADER_MAX  64
#define PREFIX_MAX  64
#define TIMEOUT_MAX 60000
#define DB_MAX      65535
#define HTTPS       "https://"
#define HTTPS_PORT  443
#define LIST_MAX    64 /* methods or paths of a gateway */
#define SILENCE_MS  600000
#define SILENCE_MAX 3600000
#define BYTES_MAX   ((uint64_t)1 << 40)
#define REQUEST_MAX ((uint64_t)32 << 20)

/* ---- texts ---- */

static bool host_port_ok(const char *p, size_t n, bool need_port)
{
	struct netpol_host host;
	const char *port = NULL;
	size_t host_n = 0, port_n = 0;
	uint16_t number = 0;

	netpol_authority_split(p, n, &host_n, &port, &port_n);
	if (!netpol_host_parse(p, host_n, &host, NULL))
		return false;
	return port ? netpol_port_parse(port, port_n, &number) : !need_port;
}

/* Printable ASCII without blanks, quotes and what ends a URL's path. */
static bool path_ok(const char *s)
{
	for (; *s; s++) {
		if (*s <= ' ' || *s >= 0x7f || strchr("\"<>?#\\^`{|}", *s))
			return false;
	}
	return true;
}

/* Nothing opens loopback, which behind an upstream proxy would be the proxy's. */
static bool is_local(const char *p, size_t n)
{
	struct netpol_host host;
	const char *port = NULL;
	size_t host_n = 0, port_n = 0;

	netpol_authority_split(p, n, &host_n, &port, &port_n);
	return netpol_host_parse(p, host_n, &host, NULL) && netpol_host_is_local(&host);
}

static bool upstream_ok(const char *s)
{
	const char *host = s + strlen(HTTPS);
	size_t n;

	if (!aqe_starts(s, HTTPS) || strlen(s) > URL_MAX)
		return false;
	n = strcspn(host, "/");
	return host_port_ok(host, n, false) && !is_local(host, n) && path_ok(host + n) &&
	       !aqe_ends(s, "/") && netpol_gateway_path_ok(host + n, strlen(host + n));
}

/* Names that say how a message is framed, or whom it is for, are not the policy's to set. */
static bool header_ok(const char *s)
{
	static const char *const framing[] = {
		"host",    "connection", "content-length", "transfer-encoding",
		"upgrade", "te",         "trailer",        "expect",
		NULL
	};
	const size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return n >= 1 && n <= HEADER_MAX && !s[n] && !aqe_str_in(s, framing);
}

static bool prefix_ok(const char *s)
{
	for (size_t n = 0; s[n]; n++) {
		if (s[n] < ' ' || s[n] >= 0x7f || n == PREFIX_MAX)
			return false;
	}
	return true;
}

static bool file_ok(const char *s)
{
	return aqe_path_is_canonical(s) && strcmp(s, "/") != 0;
}

static bool key_prefix_ok(const char *s)
{
	for (size_t n = 0; s[n]; n++) {
		if (s[n] <= ' ' || s[n] >= 0x7f || n == PREFIX_MAX)
			return false;
	}
	return *s != '\0';
}

static bool proxy_ok(const char *s)
{
	return host_port_ok(s, strlen(s), true);
}

static bool server_ok(const char *s)
{
	return *s == '/' ? file_ok(s) : host_port_ok(s, strlen(s), true);
}

/* A text, its rule, and where it goes. */
struct text_row {
	const char *name;
	bool (*ok)(const char *s);
	const char *wanted;
	const char **place;
};

static int take_text(const struct netpol_build *b, const struct aqe_json *v,
		     const struct text_row *row, struct aqe_err *e)
{
	const char *s = aqe_json_str(v);

	if (!s || !row->ok(s))
		return netpol_policy_fault(b, v, e, "wanted %s", row->wanted);
	*row->place = aqe_arena_dup(b->arena, s);
	return *row->place ? AQE_OK : netpol_policy_nomem(e);
}

/* The members of `obj` that are there; the others' places stay as they are. */
static int take_texts(const struct netpol_build *b, const struct aqe_json *obj,
		      const struct text_row *rows, size_t n, struct aqe_err *e)
{
	int rc = AQE_OK;

	for (size_t i = 0; !rc && i < n; i++) {
		const struct aqe_json *v = aqe_json_get(obj, rows[i].name);

		if (v)
			rc = take_text(b, v, &rows[i], e);
	}
	return rc;
}

/* ---- gateways ---- */

static int read_types(const struct netpol_build *b, const struct aqe_json *list,
		      struct netpol_gateway *g, struct aqe_err *e)
{
	const char **types;
	size_t n = 0;

	if (!list)
		return AQE_OK;
	if (list->type != AQE_JSON_ARRAY || !list->len)
		return netpol_policy_fault(b, list, e, "wanted agent types, or leave it out");
	types = aqe_arena_calloc(b->arena, list->len, sizeof(*types));
	if (!types)
		return netpol_policy_nomem(e);
	for (const struct aqe_json *v = list->first; v; v = v->next) {
		const char *s = aqe_json_str(v);

		for (size_t i = 0; s && !types[n] && i < b->p->n_types; i++) {
			if (strcmp(b->types[i].name, s) == 0)
				types[n] = b->types[i].name;
		}
		if (!types[n++])
			return netpol_policy_fault(b, v, e, "is no agent type");
	}
	g->types = types;
	g->n_types = n;
	return AQE_OK;
}

static int read_gateway_rate(const struct netpol_build *b, const struct aqe_json *v,
			     struct netpol_gateway *g, struct aqe_err *e)
{
	int rc;

	if (!v)
		return AQE_OK;
	g->where_rate = (struct netpol_where){ b->file, v->line };
	rc = netpol_policy_read_rate(b, v, &g->rate, e);
	if (!rc && !netpol_rate_ok(&g->rate))
		rc = netpol_policy_fault(b, v, e, "wanted perMinute, perHour and burst");
	g->has_rate = true;
	return rc;
}

/* The upstream's pieces; its text was judged already. */
static void split_upstream(struct netpol_gateway *g)
{
	const char *host = g->upstream + strlen(HTTPS), *port = NULL;
	size_t n = strcspn(host, "/"), host_n = 0, port_n = 0;

	netpol_authority_split(host, n, &host_n, &port, &port_n);
	(void)netpol_host_parse(host, host_n, &g->host, NULL);
	g->port = HTTPS_PORT;
	if (port)
		(void)netpol_port_parse(port, port_n, &g->port);
	g->base = host + n;
}

/* A list of texts that `ok` takes; absent: nothing. */
static int read_list(const struct netpol_build *b, const struct aqe_json *list,
		     bool (*ok)(const char *s), const char *wanted, const char *const **ret,
		     size_t *ret_n, struct aqe_err *e)
{
	const char **texts;
	size_t n = 0;

	if (!list)
		return AQE_OK;
	if (list->type != AQE_JSON_ARRAY || !list->len || list->len > LIST_MAX)
		return netpol_policy_fault(b, list, e, "wanted 1 to %d of them, or leave it out",
					   LIST_MAX);
	texts = aqe_arena_calloc(b->arena, list->len, sizeof(*texts));
	if (!texts)
		return netpol_policy_nomem(e);
	for (const struct aqe_json *v = list->first; v; v = v->next) {
		const char *s = aqe_json_str(v);

		if (!s || !ok(s))
			return netpol_policy_fault(b, v, e, "wanted %s", wanted);
		texts[n] = aqe_arena_dup(b->arena, s);
		if (!texts[n++])
			return netpol_policy_nomem(e);
	}
	*ret = texts;
	*ret_n = n;
	return AQE_OK;
}

static int read_number(const struct netpol_build *b, const struct aqe_json *v, uint64_t min,
		       uint64_t max, uint64_t *io, struct aqe_err *e)
{
	uint64_t n = 0;

	if (!v)
		return AQE_OK;
	if (!aqe_json_to_u64(v, max, &n) || n < min)
		return netpol_policy_fault(b, v, e, "wanted %llu to %llu", (unsigned long long)min,
					   (unsigned long long)max);
	*io = n;
	return AQE_OK;
}

/* What says so: the member, or nobody. */
static struct netpol_where where_of(const struct netpol_build *b, const struct aqe_json *v)
{
	return v ? (struct netpol_where){ b->file, v->line }
		 : (struct netpol_where){ NETPOL_BUILT_IN, 0 };
}

/* Methods, paths and limits. */
static int read_narrowing(const struct netpol_build *b, const struct aqe_json *v,
			  struct netpol_gateway *g, struct aqe_err *e)
{
	const struct aqe_json *methods = aqe_json_get(v, "methods");
	const struct aqe_json *paths = aqe_json_get(v, "paths");
	uint64_t ms = SILENCE_MS;
	int rc = read_list(b, methods, netpol_gateway_method_ok,
			   "a method in upper case, not CONNECT or TRACE", &g->methods,
			   &g->n_methods, e);

	g->where_methods = where_of(b, methods);
	g->where_paths = where_of(b, paths);
	if (!rc)
		rc = read_list(b, paths, netpol_gateway_pattern_ok, "a path, or a path and '/*'",
			       &g->paths, &g->n_paths, e);
	if (!rc)
		rc = read_number(b, aqe_json_get(v, "timeoutMs"), 1000, SILENCE_MAX, &ms, e);
	if (!rc)
		rc = read_number(b, aqe_json_get(v, "maxRequestBytes"), 0, BYTES_MAX,
				 &g->max_request, e);
	if (!rc)
		rc = read_number(b, aqe_json_get(v, "maxResponseBytes"), 0, BYTES_MAX,
				 &g->max_response, e);
	g->timeout_ms = (uint32_t)ms;
	return rc;
}

static int read_gateway(struct netpol_build *b, const struct aqe_json *v, struct aqe_err *e)
{
	struct netpol_gateway g = { .where = { b->file, v->line },
				    .header = "authorization",
				    .prefix = "",
				    .max_request = REQUEST_MAX };
	const struct text_row rows[] = {
		{ "upstream", upstream_ok,
		  "https://HOST[:PORT][/PATH] without a slash at its end, no loopback",
		  &g.upstream },
		{ "credentialFile", file_ok, "an absolute path", &g.credential_file },
		{ "caFile", file_ok, "an absolute path", &g.ca_file },
		{ "header", header_ok, "a header's name in lower case, no framing header",
		  &g.header },
		{ "prefix", prefix_ok, "at most 64 printable ASCII characters", &g.prefix },
	};
	int rc;

	if (v->type != AQE_JSON_OBJECT || !aqe_json_get(v, "upstream"))
		return netpol_policy_fault(b, v, e, "wanted an object with 'upstream'");
	g.name = aqe_arena_dup(b->arena, v->key);
	if (!g.name)
		return netpol_policy_nomem(e);
	if (!*g.name || strspn(g.name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(g.name) ||
	    strlen(g.name) > NETPOL_TYPE_LEN_MAX)
		return netpol_policy_fault(b, v, e, "wanted a name of 1 to 64 of a-z, 0-9 and '-'");
	rc = take_texts(b, v, rows, AQE_COUNT(rows), e);
	if (!rc)
		split_upstream(&g);
	if (!rc)
		rc = read_narrowing(b, v, &g, e);
	if (!rc)
		rc = read_types(b, aqe_json_get(v, "types"), &g, e);
	if (!rc)
		rc = read_gateway_rate(b, aqe_json_get(v, "rate"), &g, e);
	if (!rc)
		b->gateways[b->p->n_gateways++] = g;
	return rc;
}

static int read_gateways(struct netpol_build *b, const struct aqe_json *v, struct aqe_err *e)
{
	int rc = AQE_OK;

	for (const struct aqe_json *m = v->first; !rc && m; m = m->next)
		rc = m->key ? read_gateway(b, m, e)
			    : netpol_policy_fault(b, v, e, "wanted an object");
	return rc;
}

/* ---- cluster, proxy ---- */

static bool name_ok(const char *s)
{
	struct netpol_host host;

	return netpol_host_parse(s, strlen(s), &host, NULL) && host.kind == NETPOL_HOST_NAME;
}

static int read_cluster_tls(const struct netpol_build *b, const struct aqe_json *v,
			    struct netpol_cluster_conf *c, struct aqe_err *e)
{
	const struct text_row rows[] = {
		{ "caFile", file_ok, "an absolute path", &c->ca_file },
		{ "serverName", name_ok, "a host's name", &c->server_name },
	};

	if (!v)
		return AQE_OK;
	if (v->type != AQE_JSON_OBJECT || c->address[0] == '/')
		return netpol_policy_fault(b, v, e, "wanted an object, and HOST:PORT as address");
	c->tls = true;
	return take_texts(b, v, rows, AQE_COUNT(rows), e);
}

static int read_cluster(struct netpol_build *b, const struct aqe_json *v, struct aqe_err *e)
{
	struct netpol_cluster_conf *c = &b->p->cluster;
	const struct aqe_json *on_error = aqe_json_get(v, "onStoreError");
	const struct aqe_json *timeout = aqe_json_get(v, "timeoutMs");
	const struct aqe_json *share = aqe_json_get(v, "share"), *db = aqe_json_get(v, "db");
	const struct text_row rows[] = {
		{ "address", server_ok, "HOST:PORT or the absolute path of a socket", &c->address },
		{ "username", key_prefix_ok, "1 to 64 printable ASCII characters, no blank",
		  &c->username },
		{ "passwordFile", file_ok, "an absolute path", &c->password_file },
		{ "prefix", key_prefix_ok, "1 to 64 printable ASCII characters, no blank",
		  &c->prefix },
	};
	uint64_t ms = c->timeout_ms, number = c->db;
	int rc = take_texts(b, v, rows, AQE_COUNT(rows), e);

	b->p->cluster_where = (struct netpol_where){ b->file, v->line };
	if (rc)
		return rc;
	if (!c->address)
		return netpol_policy_fault(b, v, e, "has no 'address'");
	if (on_error && !aqe_str_eq(on_error->text, "local") && !aqe_str_eq(on_error->text, "deny"))
		return netpol_policy_fault(b, on_error, e, "wanted local or deny");
	if (timeout && (!aqe_json_to_u64(timeout, TIMEOUT_MAX, &ms) || !ms))
		return netpol_policy_fault(b, timeout, e, "wanted 1 to %d", TIMEOUT_MAX);
	if (share && !aqe_str_eq(share->text, "type") && !aqe_str_eq(share->text, "agent"))
		return netpol_policy_fault(b, share, e, "wanted type or agent");
	if (db && !aqe_json_to_u64(db, DB_MAX, &number))
		return netpol_policy_fault(b, db, e, "wanted 0 to %d", DB_MAX);
	c->db = (unsigned)number;
	if (share)
		c->share = share->text[0] == 'a' ? NETPOL_SHARE_AGENT : NETPOL_SHARE_TYPE;
	if (on_error && on_error->text[0] == 'd')
		c->on_store_error = NETPOL_STORE_DENY;
	c->timeout_ms = (uint32_t)ms;
	return read_cluster_tls(b, aqe_json_get(v, "tls"), c, e);
}

static int read_proxy(struct netpol_build *b, const struct aqe_json *v, struct aqe_err *e)
{
	const struct text_row rows[] = {
		{ "address", proxy_ok, "HOST:PORT", &b->p->upstream_proxy },
		{ "credentialFile", file_ok, "an absolute path", &b->p->proxy_credential },
	};

	b->p->proxy_where = (struct netpol_where){ b->file, v->line };
	if (v->type != AQE_JSON_OBJECT)
		return take_text(b, v, rows, e);
	if (!aqe_json_get(v, "address"))
		return netpol_policy_fault(b, v, e, "has no 'address'");
	return take_texts(b, v, rows, AQE_COUNT(rows), e);
}

/* Who builds the policy reads it: a snapshot's entries were judged already. */
static int read_suffixes(struct netpol_build *b, const struct aqe_json *v, struct aqe_err *e)
{
	const struct text_row row = { "publicSuffixFile", file_ok, "an absolute path",
				      &b->p->suffix_file };

	b->p->suffix_where = (struct netpol_where){ b->file, v->line };
	return take_text(b, v, &row, e);
}

int netpol_policy_read_service(struct netpol_build *b, const struct aqe_json *root,
			       struct aqe_err *e)
{
	static const struct {
		const char *name;
		int (*read)(struct netpol_build *b, const struct aqe_json *v, struct aqe_err *e);
	} keys[] = {
		{ "gateways", read_gateways },
		{ "cluster", read_cluster },
		{ "upstreamProxy", read_proxy },
		{ "publicSuffixFile", read_suffixes },
	};
	int rc = AQE_OK;

	for (size_t i = 0; !rc && i < AQE_COUNT(keys); i++) {
		const struct aqe_json *v = aqe_json_get(root, keys[i].name);

		if (v)
			rc = keys[i].read(b, v, e);
	}
	return rc;
}
