/* SPDX-License-Identifier: MIT */
/* The table of clients, and its judgement against a type's policy. Pure. */
#include "shim/aqe/doctor.h"

#include <string.h>

#include "shim/core/text.h"

#define HTTP_PORT  80
#define HTTPS_PORT 443

#define PROXY      SHIM_DOCTOR_BY_PROXY
#define NODE       SHIM_DOCTOR_BY_NODE
#define JAVA       SHIM_DOCTOR_BY_JAVA
#define NAME       SHIM_DOCTOR_BY_NAME
#define SOCKS      SHIM_DOCTOR_BY_SOCKS

#define MEASURED   SHIM_DOCTOR_MEASURED
#define DOCUMENTED SHIM_DOCTOR_DOCUMENTED
#define GUESS      SHIM_DOCTOR_GUESS

#define TESTED     "tests/integration/egress/clients.tsv, run in a container"
#define DATE       "2026-12-01"
#define PY(p)      "usr/lib/python3/dist-packages/" p, "usr/local/lib/python3.N/site-packages/" p
#define BIN(p)     "usr/bin/" p, "usr/local/bin/" p
#define WS_PLAIN   "wss:// only; ws:// needs the policy's webSocket"
#define NAME_ONLY  "heeds no proxy variable"
#define ASK_HTTPS  "use https:// (git: url.https://HOST/.insteadOf)"
#define SOCKS_HINT "an entry HOST:PORT, and a client that speaks SOCKS5 to 127.0.0.1:1080"

/* Variables as hardening/rewrite_env.c sets them. One row a line group; by name in the output's
 * order: what is common first, what cannot work last. */
const struct shim_doctor_client SHIM_DOCTOR_CLIENTS[] = {
	{ "curl",
	  PROXY | NAME | SOCKS,
	  0,
	  "http:// needs the variable in lower case, which is set",
	  NULL,
	  MEASURED,
	  TESTED "; curl 7.88",
	  DATE,
	  { BIN("curl") } },
	{ "wget",
	  PROXY | NAME,
	  0,
	  "needs the variables in lower case, which are set",
	  NULL,
	  MEASURED,
	  TESTED "; wget 1.21",
	  DATE,
	  { BIN("wget") } },
	{ "git over https",
	  PROXY | NAME,
	  0,
	  NULL,
	  NULL,
	  MEASURED,
	  TESTED "; git 2.39",
	  DATE,
	  { BIN("git") } },
	{ "python urllib",
	  PROXY | NAME,
	  0,
	  NULL,
	  NULL,
	  MEASURED,
	  TESTED "; Python 3.11",
	  DATE,
	  { BIN("python3") } },
	{ "python requests",
	  PROXY | NAME,
	  0,
	  NULL,
	  NULL,
	  MEASURED,
	  TESTED "; Python 3.11",
	  DATE,
	  { PY("requests/__init__.py") } },
	{ "python httpx",
	  PROXY | NAME,
	  0,
	  NULL,
	  NULL,
	  GUESS,
	  "its manual; ALL_PROXY is an HTTP proxy here",
	  DATE,
	  { PY("httpx/__init__.py") } },
	{ "python aiohttp",
	  NAME,
	  0,
	  NAME_ONLY " unless its session has trust_env",
	  NULL,
	  DOCUMENTED,
	  "aio-libs/aiohttp issue 10682",
	  DATE,
	  { PY("aiohttp/__init__.py") } },
	{ "python websockets",
	  PROXY | NAME,
	  0,
	  "proxies since version 15; ws:// asks CONNECT to port 80 and needs an entry HOST:80",
	  NULL,
	  DOCUMENTED,
	  "websockets.readthedocs.io, topics/proxies",
	  DATE,
	  { PY("websockets/__init__.py") } },
	{ "pip",
	  PROXY | NAME,
	  0,
	  NULL,
	  NULL,
	  MEASURED,
	  TESTED "; Python 3.11",
	  DATE,
	  { BIN("pip3"), PY("pip/__init__.py") } },
	{ "npm", PROXY | NAME, 0, NULL, NULL, MEASURED, TESTED, DATE, { BIN("npm") } },
	{ "node fetch",
	  NODE | NAME,
	  0,
	  NULL,
	  NULL,
	  MEASURED,
	  TESTED "; Node 20.20 ignores every variable; since 22.21 and 24.0 (not 23) it has "
		 "NODE_USE_ENV_PROXY by nodejs.org, v22.21.0 and pull request 57165",
	  DATE,
	  { BIN("node"), BIN("nodejs") } },
	{ "node ws",
	  NAME,
	  0,
	  NAME_ONLY "; " WS_PLAIN,
	  NULL,
	  GUESS,
	  "its manual names no variable",
	  DATE,
	  { NULL } },
	{ "go net/http",
	  PROXY | NAME,
	  0,
	  NULL,
	  NULL,
	  MEASURED,
	  TESTED "; rclone, Go 1.19",
	  DATE,
	  { NULL } },
	{ "java",
	  JAVA | NAME,
	  0,
	  "reads JAVA_TOOL_OPTIONS; prints a line about it on stderr",
	  NULL,
	  MEASURED,
	  TESTED "; URLConnection",
	  DATE,
	  { BIN("java") } },
	{ "gRPC",
	  PROXY | NAME,
	  0,
	  "a port other than 443 needs an entry HOST:PORT",
	  NULL,
	  DOCUMENTED,
	  "grpc.io, core/default_http_proxy_mapper; grpc-go reads HTTPS_PROXY",
	  DATE,
	  { PY("grpc/__init__.py") } },
	{ "apt",
	  PROXY | NAME,
	  0,
	  "reads http_proxy and https_proxy",
	  NULL,
	  GUESS,
	  "apt-transport-http(1)",
	  DATE,
	  { "usr/bin/apt-get" } },
	{ "chromium",
	  PROXY | NAME,
	  0,
	  "QUIC never works; it then takes TCP",
	  NULL,
	  GUESS,
	  "not tried",
	  DATE,
	  { BIN("chromium"), "usr/bin/google-chrome" } },
	{ "clients of SOCKS5",
	  SOCKS,
	  0,
	  "told to use 127.0.0.1:1080, CONNECT only",
	  NULL,
	  MEASURED,
	  "tests/integration/egress.bats, SOCKS5",
	  DATE,
	  { NULL } },
	{ "anything by name on 80 or 443",
	  NAME,
	  0,
	  NAME_ONLY,
	  NULL,
	  MEASURED,
	  TESTED " without variables",
	  DATE,
	  { NULL } },
	{ "ssh, git over ssh",
	  0,
	  22,
	  "no proxy variable leads ssh",
	  ASK_HTTPS,
	  MEASURED,
	  "no route out of the container; git 2.39 does not proxy ssh://",
	  DATE,
	  { BIN("ssh") } },
	{ "psql",
	  0,
	  5432,
	  "another port, and no proxy variable",
	  SOCKS_HINT,
	  GUESS,
	  "no route out of the container",
	  DATE,
	  { BIN("psql") } },
	{ "mysql",
	  0,
	  3306,
	  "another port, and no proxy variable",
	  SOCKS_HINT,
	  GUESS,
	  "no route out of the container",
	  DATE,
	  { BIN("mysql"), BIN("mariadb") } },
	{ "redis-cli",
	  0,
	  6379,
	  "another port, and no proxy variable",
	  SOCKS_HINT,
	  GUESS,
	  "no route out of the container",
	  DATE,
	  { BIN("redis-cli") } },
	{ "an address in place of a name",
	  PROXY | SOCKS | SHIM_DOCTOR_TO_ADDRESS,
	  0,
	  "needs an entry for the address, and works by a proxy only",
	  NULL,
	  MEASURED,
	  "tests/integration/egress_containers.bats, address literals",
	  DATE,
	  { NULL } },
	{ "QUIC, HTTP/3, other UDP",
	  0,
	  0,
	  "no listener takes UDP but the DNS stub",
	  "use TCP",
	  DOCUMENTED,
	  "README, the way out: no route, no listener on UDP",
	  DATE,
	  { NULL } },
	{ "DNS over HTTPS, own name servers",
	  0,
	  0,
	  "answers that are not the stub's lead to addresses without a route",
	  "use the system's resolver",
	  GUESS,
	  "no route out of the container",
	  DATE,
	  { NULL } },
	{ "ping",
	  0,
	  0,
	  "no route out of the container",
	  "ask by HTTP",
	  GUESS,
	  "no ICMP anywhere",
	  DATE,
	  { BIN("ping") } },
};
const size_t SHIM_DOCTOR_CLIENTS_COUNT = AQE_COUNT(SHIM_DOCTOR_CLIENTS);

const char *shim_doctor_state_name(enum shim_doctor_state s)
{
	static const char *const names[] = {
		[SHIM_DOCTOR_OK] = "ok", [SHIM_DOCTOR_WARN] = "warn", [SHIM_DOCTOR_FAIL] = "fail"
	};

	return names[s];
}

const char *shim_doctor_basis_name(enum shim_doctor_basis b)
{
	static const char *const names[] = { [SHIM_DOCTOR_MEASURED] = "measured",
					     [SHIM_DOCTOR_DOCUMENTED] = "documented",
					     [SHIM_DOCTOR_GUESS] = "guess" };

	return names[b];
}

/* ---- judgement ---- */

/* Whether any entry admits the port; `literals`: only entries that are addresses count. */
static bool admits(const struct netpol_type *t, unsigned port, bool literals)
{
	if (t->mode == NETPOL_MODE_REPORT)
		return true;
	for (size_t i = 0; i < netpol_rules_count(t->rules); i++) {
		const struct netpol_rule *r = netpol_rules_at(t->rules, i);
		const unsigned of_rule = r->port;
		bool fits = of_rule == port ||
			    (of_rule == 0 && (port == HTTP_PORT || port == HTTPS_PORT));
		struct netpol_host h;

		if (!fits || !netpol_host_parse(r->base, strlen(r->base), &h, NULL) ||
		    netpol_host_is_local(&h))
			continue;
		if (!literals || h.kind == NETPOL_HOST_LITERAL)
			return true;
	}
	return false;
}

static void set(struct shim_doctor_verdict *v, enum shim_doctor_state state, const char *road,
		const char *why, const char *fix)
{
	*v = (struct shim_doctor_verdict){ state, road, why, fix };
}

/* Of Node: 1 it heeds NODE_USE_ENV_PROXY, 0 not, -1 nobody knows which version it is. */
static int node_heeds(const struct shim_doctor_seen *s)
{
	if (s->major == 0)
		return -1;
	return (s->major == 22 && s->minor >= 21) || s->major >= 24;
}

/* No road by nature, but an entry for its port and SOCKS may help by hand. */
static void judge_none(const struct netpol_type *t, const struct shim_doctor_client *c,
		       struct shim_doctor_verdict *v)
{
	if (c->port && admits(t, c->port, false))
		set(v, SHIM_DOCTOR_WARN, NULL,
		    "the policy has an entry for its port, but the client must be told a proxy",
		    t->socks ? "by a helper (nc -X 5 -x 127.0.0.1:1080, or CONNECT to "
			       "127.0.0.1:3128)"
			     : "by a helper that asks 127.0.0.1:3128 with CONNECT");
	else
		set(v, SHIM_DOCTOR_FAIL, NULL, c->why, c->fix);
}

static void judge_node(const struct netpol_type *t, const struct shim_doctor_client *c,
		       const struct shim_doctor_seen *seen, struct shim_doctor_verdict *v)
{
	const int heeds = node_heeds(seen);

	(void)c;
	if (heeds == 1)
		set(v, SHIM_DOCTOR_OK, "NODE_USE_ENV_PROXY", NULL, NULL);
	else if (t->transparent)
		set(v, SHIM_DOCTOR_OK, "DNS stub, listeners on 80 and 443",
		    heeds ? "since 22.21 and 24.0 NODE_USE_ENV_PROXY leads to the proxy"
			  : "this version ignores every proxy variable",
		    NULL);
	else if (heeds == 0)
		set(v, SHIM_DOCTOR_FAIL, NULL,
		    "this version ignores every proxy variable, and 'transparent' is off",
		    "Node 22.21, 24 or later, or 'transparent' in the policy");
	else
		set(v, SHIM_DOCTOR_WARN, "NODE_USE_ENV_PROXY",
		    "versions before 22.21, and 23, ignore it, and 'transparent' is off",
		    "Node 22.21, 24 or later, or 'transparent' in the policy");
}

static void judge_roads(const struct netpol_type *t, const struct shim_doctor_client *c,
			const struct shim_doctor_seen *seen, struct shim_doctor_verdict *v)
{
	if (c->roads & NODE)
		judge_node(t, c, seen, v);
	else if (c->roads & PROXY)
		set(v, SHIM_DOCTOR_OK, "proxy variables", c->why, NULL);
	else if (c->roads & JAVA)
		set(v, SHIM_DOCTOR_OK, "JAVA_TOOL_OPTIONS", c->why, NULL);
	else if ((c->roads & NAME) && t->transparent)
		set(v, SHIM_DOCTOR_OK, "DNS stub, listeners on 80 and 443", c->why, NULL);
	else if ((c->roads & SOCKS) && t->socks)
		set(v, SHIM_DOCTOR_OK, "SOCKS5 on 127.0.0.1:1080", c->why, NULL);
	else if (c->roads & NAME)
		set(v, SHIM_DOCTOR_FAIL, NULL,
		    "heeds no proxy variable, and the type's 'transparent' is off",
		    "'transparent' in the policy");
	else
		set(v, SHIM_DOCTOR_FAIL, NULL, "the type's 'socks' is off",
		    "'socks' in the policy");
}

void shim_doctor_judge(const struct netpol_type *t, bool section,
		       const struct shim_doctor_client *c, const struct shim_doctor_seen *seen,
		       struct shim_doctor_verdict *ret)
{
	const bool literals = c->roads & SHIM_DOCTOR_TO_ADDRESS;

	if (!section)
		set(ret, SHIM_DOCTOR_FAIL, NULL, "the policy has no section network: only lo",
		    "a section network");
	else if (t->access == NETPOL_ACCESS_ISOLATED)
		set(ret, SHIM_DOCTOR_FAIL, NULL, "the type is isolated: only lo",
		    "access 'whitelisted', if it is to have a way out");
	else if (c->roads == 0)
		judge_none(t, c, ret);
	else if (literals && !admits(t, HTTP_PORT, true))
		set(ret, SHIM_DOCTOR_FAIL, NULL, "no entry is an address", "use names");
	else if (!admits(t, HTTP_PORT, false) && !admits(t, HTTPS_PORT, false))
		set(ret, SHIM_DOCTOR_FAIL, NULL, "no entry of the policy admits port 80 or 443",
		    "an entry for the host in 'domains'");
	else
		judge_roads(t, c, seen, ret);
}
