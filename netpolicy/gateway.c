/* SPDX-License-Identifier: MIT */
#include "netpolicy/gateway.h"

#include <string.h>
#include <strings.h>

#include "shim/core/text.h"

#define METHOD_MAX 16

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One byte of a path as a server would read it, and how many were spent; -1: malformed. */
static int next_byte(const char *p, size_t n, size_t *ret_used)
{
	int high, low;

	*ret_used = 1;
	if (p[0] != '%')
		return (unsigned char)p[0];
	if (n < 3)
		return -1;
	high = hex(p[1]);
	low = hex(p[2]);
	*ret_used = 3;
	return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* What no segment holds, encoded or not. ';' begins parameters that some servers cut off before
 * they look at dots. */
static bool byte_ok(int c, bool encoded)
{
	if (c < ' ' || /* malformed as well */ c == 0x7f || c == '\\')
		return false;
	if (encoded)
		return c != '/' && c != '.' && c != '%';
	return c > ' ' && c < 0x7f && !strchr("\"<>?#^`{|};", c);
}

/* A segment without its slashes. */
static bool segment_ok(const char *p, size_t n)
{
	size_t used, dots = 0, bytes = 0;

	for (size_t i = 0; i < n; i += used, bytes++) {
		int c = next_byte(p + i, n - i, &used);

		if (!byte_ok(c, used == 3))
			return false;
		dots += c == '.';
	}
	return !(bytes == dots && (dots == 1 || dots == 2));
}

bool netpol_gateway_path_ok(const char *p, size_t n)
{
	size_t at = 0;

	if (n > 0 && p[0] != '/')
		return false;
	while (at < n) {
		const char *from = p + at + 1, *slash = memchr(from, '/', n - at - 1);
		size_t len = slash ? (size_t)(slash - from) : n - at - 1;

		/* an empty one only at the end: "/a/" */
		if ((len == 0 && slash) || !segment_ok(from, len))
			return false;
		at += 1 + len;
	}
	return true;
}

static bool query_ok(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] <= ' ' || p[i] >= 0x7f || strchr("#\"<>\\", p[i]))
			return false;
	}
	return true;
}

bool netpol_gateway_split(const char *p, size_t n, struct netpol_gateway_target *ret)
{
	const char *query = memchr(p, '?', n);
	size_t path_n = query ? (size_t)(query - p) : n;
	const char *rest;

	if (path_n < 2 || !netpol_gateway_path_ok(p, path_n) || !query_ok(p + path_n, n - path_n))
		return false;
	rest = memchr(p + 1, '/', path_n - 1);
	ret->name = p + 1;
	ret->name_n = rest ? (size_t)(rest - p) - 1 : path_n - 1;
	ret->path = p + 1 + ret->name_n;
	ret->path_n = path_n - 1 - ret->name_n;
	ret->query = p + path_n;
	ret->query_n = n - path_n;
	return true;
}

static bool is(const char *word, const char *p, size_t n)
{
	return strlen(word) == n && memcmp(word, p, n) == 0;
}

/* TRACE would show the credential, CONNECT is no request for a resource. */
const char *const *netpol_gateway_methods(const struct netpol_gateway *g, size_t *ret_n)
{
	static const char *const usual[] = { "GET",   "HEAD",   "POST",   "PUT",
					     "PATCH", "DELETE", "OPTIONS" };

	*ret_n = g->n_methods ? g->n_methods : AQE_COUNT(usual);
	return g->n_methods ? g->methods : usual;
}

static bool method_allowed(const struct netpol_gateway *g, const char *p, size_t n)
{
	size_t count = 0;
	const char *const *list = netpol_gateway_methods(g, &count);

	for (size_t i = 0; i < count; i++) {
		if (is(list[i], p, n))
			return true;
	}
	return false;
}

static bool path_allowed(const struct netpol_gateway *g, const char *p, size_t n)
{
	for (size_t i = 0; i < g->n_paths; i++) {
		size_t len = strlen(g->paths[i]);

		if (g->paths[i][len - 1] == '*' ? n >= len - 1 && !memcmp(g->paths[i], p, len - 1)
						: is(g->paths[i], p, n))
			return true;
	}
	return g->n_paths == 0;
}

const char *netpol_gateway_refuses(const struct netpol_gateway *g, const char *method,
				   size_t method_n, const char *path, size_t path_n)
{
	if (!method_allowed(g, method, method_n))
		return "method_not_allowed";
	return path_allowed(g, path, path_n) ? NULL : "path_not_allowed";
}

static const struct netpol_gateway *find(const struct netpol_policy *p, const char *type,
					 const struct netpol_gateway_target *t)
{
	char name[NETPOL_GATEWAY_NAME_MAX + 1];

	if (t->name_n >= sizeof(name))
		return NULL;
	memcpy(name, t->name, t->name_n);
	name[t->name_n] = '\0';
	return netpol_policy_gateway(p, type, name);
}

void netpol_gateway_decide(const struct netpol_policy *p, const char *type, const char *target,
			   size_t target_n, const char *method, struct netpol_gateway_answer *ret)
{
	/* a refusal until shown otherwise */
	*ret = (struct netpol_gateway_answer){ .status = 400, .reason = "path_invalid" };
	if (!netpol_gateway_split(target, target_n, &ret->target))
		return;
	ret->status = 404;
	ret->reason = "gateway_unknown";
	ret->gateway = find(p, type, &ret->target);
	if (!ret->gateway)
		return;
	ret->reason = netpol_gateway_refuses(ret->gateway, method, strlen(method), ret->target.path,
					     ret->target.path_n);
	ret->status = ret->reason ? 403 : 0;
}

/* Many servers make environment variables of fields, where '-' and '_' are the same. */
static bool same_field(const char *word, const char *p, size_t n)
{
	if (strlen(word) != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = p[i] == '_' ? '-' : p[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c | 0x20);
		if (c != word[i])
			return false;
	}
	return true;
}

bool netpol_gateway_drops(const struct netpol_gateway *g, const char *name, size_t n)
{
	/* the last one so that an answer that mirrors the credential can be read */
	static const char *const others[] = { "authorization",  "cookie",         "x-api-key",
					      "api-key",        "x-goog-api-key", "x-auth-token",
					      "accept-encoding" };

	if (!g->credential_file)
		return false;
	for (size_t i = 0; i < AQE_COUNT(others); i++) {
		if (same_field(others[i], name, n))
			return true;
	}
	return same_field(g->header, name, n);
}

bool netpol_gateway_method_ok(const char *s)
{
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-");

	return n >= 1 && n <= METHOD_MAX && !s[n] && strcmp(s, "CONNECT") != 0 &&
	       strcmp(s, "TRACE") != 0;
}

bool netpol_gateway_pattern_ok(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || *s != '/' || n > 1024)
		return false;
	if (s[n - 1] == '*' && s[n - 2] == '/')
		n--;
	return !memchr(s, '*', n) && netpol_gateway_path_ok(s, n);
}
