/* SPDX-License-Identifier: MIT */
/* The environment of a container that has an egress service (egress.md R18). Enforcement is the
 * missing route; these variables only lead well-behaved clients to the way out. They are ours: what
 * the image or the engine says of them is dropped. */
#include "hardening/rewrite.h"

#include <string.h>
#include <strings.h>

#include "shim/core/text.h"

#define PROXY     "http://127.0.0.1:3128"
#define NO_PROXY  "localhost,127.0.0.1,::1"
#define JAVA_HOST "=127.0.0.1 "
#define JAVA_PORT "=3128 "

/* Both cases: curl reads only lower-case http_proxy, others only upper-case names. ALL_PROXY is an
 * HTTP proxy too: socks5h there breaks httpx and gRPC. */
const char *const HARD_EGRESS_ENV[] = {
	"HTTP_PROXY=" PROXY,
	"http_proxy=" PROXY,
	"HTTPS_PROXY=" PROXY,
	"https_proxy=" PROXY,
	"ALL_PROXY=" PROXY,
	"all_proxy=" PROXY,
	"GRPC_PROXY=" PROXY,
	"grpc_proxy=" PROXY,
	"NO_PROXY=" NO_PROXY,
	"no_proxy=" NO_PROXY,
	"npm_config_noproxy=" NO_PROXY,
	"NODE_USE_ENV_PROXY=1",
	"JAVA_TOOL_OPTIONS=-Dhttp.proxyHost" JAVA_HOST "-Dhttp.proxyPort" JAVA_PORT
	"-Dhttps.proxyHost" JAVA_HOST "-Dhttps.proxyPort" JAVA_PORT
	"-Dhttp.nonProxyHosts=localhost|127.*|[::1]",
	NULL,
};

/* Variables that would lead elsewhere. */
static const char *const dropped[] = { "FTP_PROXY=",
				       "RSYNC_PROXY=",
				       "npm_config_proxy=",
				       "npm_config_https_proxy=",
				       "npm_config_http_proxy=",
				       NULL };

static bool same_name(const char *entry, const char *ours)
{
	size_t n = strcspn(ours, "=") + 1;

	return strncasecmp(entry, ours, n) == 0;
}

static bool is_ours(const char *entry)
{
	for (size_t i = 0; HARD_EGRESS_ENV[i]; i++) {
		if (same_name(entry, HARD_EGRESS_ENV[i]))
			return true;
	}
	for (size_t i = 0; dropped[i]; i++) {
		if (same_name(entry, dropped[i]))
			return true;
	}
	return false;
}

void hard_rw_egress_env(struct hard_rw *rw)
{
	struct aqe_json *env = aqe_json_get(rw->process, "env");

	if (!rw->ctx->egress)
		return;
	if (!env) {
		env = aqe_json_new_array(rw->arena);
		hard_rw_set(rw, rw->process, "env", env);
	}
	for (struct aqe_json *v = env ? env->first : NULL, *next; v; v = next) {
		next = v->next;
		if (aqe_json_str(v) && is_ours(aqe_json_str(v)))
			aqe_json_detach(v);
	}
	for (size_t i = 0; env && HARD_EGRESS_ENV[i]; i++)
		hard_rw_append(rw, env, aqe_json_new_str(rw->arena, HARD_EGRESS_ENV[i]));
}
