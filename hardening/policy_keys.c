/* SPDX-License-Identifier: MIT */
#include "hardening/policy.h"

#include <string.h>

#include "hardening/policy_file.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

/* Deepest path of the table, and some room for the root. */
#define DEPTH_MAX   8

#define TYPES_ABOUT "agent types, names of the built-in table or of 'agents'"

/* "[]" are the items of an array, ".*" any member of a map. Kept equal to policy.schema.json by a
 * test. */
const struct hard_policy_key HARD_POLICY_KEYS[] = {
	{ "$schema", "string", false, "for editors; ignored" },
	{ "version", "integer", true, "version of this format: 1" },
	{ "mode", "string", false, "enforce (default), verify or observe" },
	{ "runtime", "string|object", false, "absolute path of crun or runc, or path and digest" },
	{ "runtime.path", "string", true, "absolute path of crun or runc" },
	{ "runtime.digest", "string", false, "sha256 of that file, checked at every create" },
	{ "images", "array", false, "the images that may run" },
	{ "images[]", "object", false, "one image; digest or imageId is needed" },
	{ "images[].name", "string", false, "a name for people and for waivers" },
	{ "images[].digest", "string", false, "digest of its manifest, sha256:..." },
	{ "images[].imageId", "string", false, "its image id, sha256:..." },
	{ "images[].types", "array", false, TYPES_ABOUT "; without it only default" },
	{ "images[].types[]", "string", false, "an agent type" },
	{ "mounts", "array", false, "the bind mounts that containers get, and no others" },
	{ "mounts[]", "object", false, "one mount" },
	{ "mounts[].source", "string", true, "directory on the host" },
	{ "mounts[].destination", "string", true, "path in the container" },
	{ "mounts[].readonly", "boolean", false, "default false" },
	{ "mounts[].types", "array", false, TYPES_ABOUT "; without it all" },
	{ "mounts[].types[]", "string", false, "an agent type" },
	{ "user", "object", false, "who a container runs as that asks for root; 1000:1000" },
	{ "user.uid", "integer", true, "1 to 2147483647" },
	{ "user.gid", "integer", true, "1 to 2147483647" },
	{ "agents", "object", false, "ceilings of agent types, in place of the built-in ones" },
	{ "agents.*", "object", false, "a type, [a-z0-9-]; a new one begins as default" },
	{ "agents.*.cpus", "number|string", false, "CPUs, such as 1.5" },
	{ "agents.*.memory", "integer|string", false, "memory and swap, bytes or 2g" },
	{ "agents.*.pids", "integer", false, "processes and threads" },
	{ "agents.*.disk", "integer|string", false, "sum of the writable tmpfs, bytes or 512m" },
	{ "agents.*.tmpExec", "boolean", false, "/tmp without noexec; default false" },
	{ "unmarked", "string", false,
	  "default, or refuse a container without agent type when its image allows several" },
	{ "seccompFile", "string", false, "where engines find the frozen filter" },
	{ "waivers", "array", false, "accepted deviations" },
	{ "waivers[]", "object", false, "one waiver; agentType or image is needed" },
	{ "waivers[].property", "string", true, "a property of the profile that can be waived" },
	{ "waivers[].agentType", "string", false, "for this agent type" },
	{ "waivers[].image", "string", false, "for this image: name, digest or imageId" },
	{ "waivers[].reason", "string", true, "why" },
	{ "waivers[].owner", "string", true, "who answers for it" },
	{ "waivers[].expires", "string", true, "YYYY-MM-DD or YYYY-MM-DDTHH:MM:SSZ, UTC" },
	{ "network", "object", false, "what agents may reach, and how" },
	{ "network.mode", "string", false,
	  "enforce (default), or report: let pass and write what would be refused" },
	{ "network.wildcardApex", "boolean", false, "*.x also means x; default true" },
	{ "network.sni", "string", false,
	  "enforce (default), audit or off: the name in TLS must be the one asked for" },
	{ "network.limits", "object", false, "limits of every egress service" },
	{ "network.limits.connections", "integer", false, "connections at once; 128" },
	{ "network.limits.tunnels", "integer", false, "tunnels at once; 64" },
	{ "network.limits.connectMs", "integer", false, "to connect; 10000" },
	{ "network.limits.headerMs", "integer", false, "for a whole request head; 10000" },
	{ "network.limits.firstByteMs", "integer", false, "for the first byte in a tunnel; 10000" },
	{ "network.limits.idleS", "integer", false, "of a silent tunnel; 600" },
	{ "network.limits.lifetimeS", "integer", false, "of a tunnel; 43200" },
	{ "network.limits.bytesUp", "integer", false, "out of one tunnel; 0: no cap" },
	{ "network.limits.bytesDown", "integer", false, "into one tunnel; 0: no cap" },
	{ "network.upstreamProxy", "string|object", false,
	  "host:port of an HTTP proxy to dial through, or address and credential" },
	{ "network.upstreamProxy.address", "string", true, "host:port" },
	{ "network.upstreamProxy.credentialFile", "string", false, "file with its user:password" },
	{ "network.publicSuffixFile", "string", false,
	  "Public Suffix List: wildcards over its suffixes are refused, or warned of" },
	{ "network.cluster", "object", false, "rate limits shared by several hosts" },
	{ "network.cluster.address", "string", true, "host:port or socket of a Redis server" },
	{ "network.cluster.username", "string", false, "user of the server" },
	{ "network.cluster.passwordFile", "string", false, "file with its password" },
	{ "network.cluster.tls", "object", false, "with TLS" },
	{ "network.cluster.tls.caFile", "string", false, "authorities in place of the system's" },
	{ "network.cluster.tls.serverName", "string", false,
	  "that its certificate must have; the address's" },
	{ "network.cluster.db", "integer", false, "number of its database; 0" },
	{ "network.cluster.share", "string", false,
	  "who shares a limit: all of a type (default), or agent: those with the same agent id" },
	{ "network.cluster.prefix", "string", false, "of its keys; aqe:" },
	{ "network.cluster.onStoreError", "string", false, "without it: local (default) or deny" },
	{ "network.cluster.timeoutMs", "integer", false, "for one answer; 200" },
	{ "network.gateways", "object", false,
	  "http://127.0.0.1:3129/NAME/ inside, HTTPS outside" },
	{ "network.gateways.*", "object", false, "one gateway, [a-z0-9-]" },
	{ "network.gateways.*.upstream", "string", true, "https:// URL that requests go to" },
	{ "network.gateways.*.credentialFile", "string", false,
	  "file with the secret that is added outside" },
	{ "network.gateways.*.header", "string", false,
	  "the header that carries it; authorization" },
	{ "network.gateways.*.prefix", "string", false, "put before it, such as 'Bearer '" },
	{ "network.gateways.*.caFile", "string", false,
	  "authorities of the upstream, PEM; without it the system's" },
	{ "network.gateways.*.methods", "array", false,
	  "methods that pass; without it GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS" },
	{ "network.gateways.*.methods[]", "string", false,
	  "a method in upper case, not CONNECT or TRACE" },
	{ "network.gateways.*.paths", "array", false,
	  "paths behind NAME that pass; without it all" },
	{ "network.gateways.*.paths[]", "string", false, "a path, or a path that ends with /*" },
	{ "network.gateways.*.timeoutMs", "integer", false,
	  "longest silence in a request; 600000" },
	{ "network.gateways.*.maxRequestBytes", "integer", false,
	  "of a request's body; 33554432, 0: no limit" },
	{ "network.gateways.*.maxResponseBytes", "integer", false,
	  "of an answer's body; 0 (default): no limit" },
	{ "network.gateways.*.types", "array", false, "agent types that have it; without it all" },
	{ "network.gateways.*.types[]", "string", false, "an agent type" },
	{ "network.gateways.*.rate", "object", false, "limit of this route" },
	{ "network.gateways.*.rate.perMinute", "integer", true, "in any 60 s" },
	{ "network.gateways.*.rate.perHour", "integer", true, "in any 3600 s" },
	{ "network.gateways.*.rate.burst", "integer", true, "at once" },
	{ "network.agents", "object", false,
	  "rules of agent types, in place of the built-in ones" },
	{ "network.agents.*", "object", false, "a type, [a-z0-9-]; a new one begins as default" },
	{ "network.agents.*.access", "string", false, "isolated or whitelisted" },
	{ "network.agents.*.mode", "string", false, "enforce or report, for this type" },
	{ "network.agents.*.domains", "array", false,
	  "host, *.host, address, each with optional :port; in place of the built-in list" },
	{ "network.agents.*.domains[]", "string", false, "an entry" },
	{ "network.agents.*.addDomains", "array", false, "entries beside that list" },
	{ "network.agents.*.addDomains[]", "string", false, "an entry" },
	{ "network.agents.*.presets", "array", false, "named lists beside it" },
	{ "network.agents.*.presets[]", "string", false,
	  "anthropic, github, npm, security, openai or localhost" },
	{ "network.agents.*.wildcardApex", "boolean", false, "*.x also means x, for this type" },
	{ "network.agents.*.sni", "string", false, "enforce, audit or off, for this type" },
	{ "network.agents.*.allowCidr", "array", false,
	  "private networks whose addresses may be dialled" },
	{ "network.agents.*.allowCidr[]", "string", false, "a prefix such as 10.1.0.0/16" },
	{ "network.agents.*.rate", "object", false, "requests; what is left out stays" },
	{ "network.agents.*.rate.perMinute", "integer", false, "in any 60 s" },
	{ "network.agents.*.rate.perHour", "integer", false, "in any 3600 s" },
	{ "network.agents.*.rate.burst", "integer", false, "at once" },
	{ "network.agents.*.sharedRate", "object", false,
	  "limit of all that share it through the cluster; without it rate" },
	{ "network.agents.*.sharedRate.perMinute", "integer", true, "in any 60 s" },
	{ "network.agents.*.sharedRate.perHour", "integer", true, "in any 3600 s" },
	{ "network.agents.*.sharedRate.burst", "integer", true, "at once" },
	{ "network.agents.*.timeoutMs", "integer", false, "of one plain request" },
	{ "network.agents.*.hostHeader", "string", false,
	  "rewrite (default) or refuse one that differs" },
	{ "network.agents.*.webSocket", "boolean", false,
	  "pass Upgrade on plain HTTP; default false" },
	{ "network.agents.*.socks", "boolean", false, "accept SOCKS5; default true" },
	{ "network.agents.*.transparent", "boolean", false,
	  "DNS, SNI and Host listeners for clients without proxy; default true" },
	{ "network.agents.*.limits", "object", false, "limits of this type's services" },
	{ "network.agents.*.limits.connections", "integer", false, "connections at once; 128" },
	{ "network.agents.*.limits.tunnels", "integer", false, "tunnels at once; 64" },
	{ "network.agents.*.limits.connectMs", "integer", false, "to connect; 10000" },
	{ "network.agents.*.limits.headerMs", "integer", false, "for a whole request head; 10000" },
	{ "network.agents.*.limits.firstByteMs", "integer", false,
	  "for the first byte in a tunnel; 10000" },
	{ "network.agents.*.limits.idleS", "integer", false, "of a silent tunnel; 600" },
	{ "network.agents.*.limits.lifetimeS", "integer", false, "of a tunnel; 43200" },
	{ "network.agents.*.limits.bytesUp", "integer", false, "out of one tunnel; 0: no cap" },
	{ "network.agents.*.limits.bytesDown", "integer", false, "into one tunnel; 0: no cap" },
	{ "cache", "object", false, "embeddings kept for agents: http://127.0.0.1:3130 inside" },
	{ "cache.backend", "string", false, "memory, sqlite or redis; needed" },
	{ "cache.maxSize", "integer", false, "entries; 10000" },
	{ "cache.maxBytes", "integer", false, "of keys, values and bookkeeping; 256 MiB" },
	{ "cache.ttlMs", "integer", false, "how long an entry lives; 24 hours" },
	{ "cache.autoPruneIntervalMs", "integer", false, "1 hour; 0 is off" },
	{ "cache.gateway", "boolean", false,
	  "containers get the listener, with an upstream; default true" },
	{ "cache.scope", "string", false,
	  "who has entries in common: agent, type (default) or all" },
	{ "cache.memory", "object", false, "no members" },
	{ "cache.sqlite", "object", false, "one file for many containers" },
	{ "cache.sqlite.path", "string", true, "the file; its folder must be private" },
	{ "cache.sqlite.busyTimeoutMs", "integer", false,
	  "longest wait for another process; 5000" },
	{ "cache.redis", "object", false, "a Redis server" },
	{ "cache.redis.host", "string", false, "name or address; 127.0.0.1" },
	{ "cache.redis.port", "integer", false, "6379" },
	{ "cache.redis.socket", "string", false, "unix socket in place of host and port" },
	{ "cache.redis.db", "integer", false, "number of the database; 0" },
	{ "cache.redis.keyPrefix", "string", false, "of its keys; emb:" },
	{ "cache.redis.username", "string", false, "with passwordFile" },
	{ "cache.redis.passwordFile", "string", false, "file with its password" },
	{ "cache.redis.poolSize", "integer", false, "connections at most; 4" },
	{ "cache.redis.connectTimeoutMs", "integer", false, "to connect; 1000" },
	{ "cache.redis.timeoutMs", "integer", false, "for one batch; 500" },
	{ "cache.redis.fallback", "boolean", false,
	  "memory stands in while it is away; default true" },
	{ "cache.redis.tls", "object", false, "with TLS" },
	{ "cache.redis.tls.caFile", "string", false, "authorities in place of the system's" },
	{ "cache.redis.tls.certFile", "string", false, "certificate of ours" },
	{ "cache.redis.tls.keyFile", "string", false, "its key" },
	{ "cache.redis.tls.serverName", "string", false, "that its certificate must have" },
	{ "cache.front", "object", false, "memory in front of sqlite or redis" },
	{ "cache.front.maxSize", "integer", false, "entries; 2000" },
	{ "cache.front.maxBytes", "integer", false, "32 MiB" },
	{ "cache.front.ttlMs", "integer", false,
	  "how long deletions by others may not show; 5 minutes" },
	{ "cache.upstream", "object", false, "who computes what is missing" },
	{ "cache.upstream.kind", "string", true, "ollama or openai" },
	{ "cache.upstream.url", "string", true,
	  "http:// or https:// URL; judged by the agent's network policy" },
	{ "cache.upstream.provider", "string", false, "its name in keys; the URL" },
	{ "cache.upstream.revision", "string", false,
	  "of its models, in keys; the model's digest or nothing" },
	{ "cache.upstream.credentialFile", "string", false,
	  "file with the secret that is added outside" },
	{ "cache.upstream.header", "string", false, "the header that carries it; authorization" },
	{ "cache.upstream.prefix", "string", false, "put before it; 'Bearer '" },
	{ "cache.upstream.caFile", "string", false, "authorities in place of the system's" },
	{ "cache.upstream.models", "array", false, "that may be asked for; without it all" },
	{ "cache.upstream.models[]", "string", false, "a name" },
	{ "cache.upstream.batchSize", "integer", false, "texts in one request; 32" },
	{ "cache.upstream.timeoutMs", "integer", false, "for one answer; 30000" },
	{ "cache.upstream.tries", "integer", false, "of one request; 3" },
	{ "cache.upstream.backoffMs", "integer", false, "before the second try, doubling; 1000" },
	{ "cache.agents", "object", false, "in place of the above for agent types" },
	{ "cache.agents.*", "object", false, "a type, [a-z0-9-]" },
	{ "cache.agents.*.gateway", "boolean", false, "whether it gets the listener" },
	{ "cache.agents.*.scope", "string", false, "agent, type or all" },
	{ "cache.agents.*.ttlMs", "integer", false, "how long its entries live" },
	{ "cache.agents.*.models", "array", false, "models it may ask for" },
	{ "cache.agents.*.models[]", "string", false, "a name" },
	{ "audit", "object", false, "how decisions are recorded" },
	{ "audit.mode", "string", false,
	  "required (default): what cannot be recorded is refused; optional, or off" },
	{ "audit.path", "string", false,
	  "folder of the log; a rootless runtime heeds its user's policy only" },
	{ "audit.signEvery", "integer", false,
	  "rows from one signed checkpoint to the next; 1000" },
};
const size_t HARD_POLICY_KEYS_COUNT = AQE_COUNT(HARD_POLICY_KEYS);

/* What a row's path ends with below `parent` (NULL: the root), or NULL when it is no direct child:
 * "name", "*" or "[]". */
static const char *tail_below(const struct hard_policy_key *row,
			      const struct hard_policy_key *parent)
{
	const char *tail = row->path;

	if (parent) {
		if (!aqe_starts(tail, parent->path))
			return NULL;
		tail += strlen(parent->path);
		if (*tail == '.')
			tail++;
		else if (*tail != '[')
			return NULL;
	}
	if (tail[0] == '[')
		return strcmp(tail, "[]") == 0 ? tail : NULL;
	return tail[0] && !strpbrk(tail, ".[") ? tail : NULL;
}

/* The row of a value whose parent has the row `parent`, or NULL. */
static const struct hard_policy_key *row_of(const struct aqe_json *v,
					    const struct hard_policy_key *parent)
{
	for (size_t i = 0; i < HARD_POLICY_KEYS_COUNT; i++) {
		const char *tail = tail_below(&HARD_POLICY_KEYS[i], parent);

		if (!tail)
			continue;
		if (v->key ? strcmp(tail, "*") == 0 || strcmp(tail, v->key) == 0 : *tail == '[')
			return &HARD_POLICY_KEYS[i];
	}
	return NULL;
}

/* True when `types`, such as "integer|string", admits the value. */
static bool type_ok(const char *types, const struct aqe_json *v)
{
	const char *name = aqe_json_type_name(v->type);
	int64_t n = 0;

	if (v->type == AQE_JSON_NUMBER && aqe_json_to_i64(v, INT64_MIN, INT64_MAX, &n) &&
	    strstr(types, "integer"))
		return true;
	/* None of the six names contains another one. */
	return strstr(types, name) != NULL;
}

static int unknown_key(const struct hard_policy_file *f, const struct aqe_json *v,
		       const struct hard_policy_key *parent, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf known = AQE_BUF_INIT(1024);

	for (size_t i = 0; i < HARD_POLICY_KEYS_COUNT; i++) {
		const char *tail = tail_below(&HARD_POLICY_KEYS[i], parent);

		if (tail)
			(void)aqe_buf_addf(&known, "%s%s", known.len ? ", " : "", tail);
	}
	return hard_policy_fault(f, v, e, "is not a key of the policy; known here: %s",
				 aqe_buf_str(&known));
}

static int check_required(const struct hard_policy_file *f, const struct aqe_json *obj,
			  const struct hard_policy_key *row, struct aqe_err *e)
{
	for (size_t i = 0; i < HARD_POLICY_KEYS_COUNT; i++) {
		const char *tail = tail_below(&HARD_POLICY_KEYS[i], row);

		if (tail && HARD_POLICY_KEYS[i].required && !aqe_json_get(obj, tail))
			return hard_policy_fault(f, obj, e, "has no '%s': %s", tail,
						 HARD_POLICY_KEYS[i].about);
	}
	return AQE_OK;
}

static int check_value(const struct hard_policy_file *f, const struct aqe_json *v,
		       const struct hard_policy_key *parent, const struct hard_policy_key **ret_row,
		       struct aqe_err *e)
{
	const struct hard_policy_key *row = row_of(v, parent);

	if (!row)
		return unknown_key(f, v, parent, e);
	if (!type_ok(row->type, v))
		return hard_policy_fault(f, v, e, "is %s, wanted %s: %s",
					 aqe_json_type_name(v->type), row->type, row->about);
	*ret_row = row;
	return v->type == AQE_JSON_OBJECT ? check_required(f, v, row, e) : AQE_OK;
}

/* The value after `v` in document order, NULL at the end; *depth follows. */
static const struct aqe_json *next_value(const struct aqe_json *root, const struct aqe_json *v,
					 size_t *depth)
{
	if (v->first) {
		(*depth)++;
		return v->first;
	}
	while (v != root && !v->next) {
		v = v->parent;
		(*depth)--;
	}
	return v == root ? NULL : v->next;
}

int hard_policy_file_check(const struct hard_policy_file *f, struct aqe_err *e)
{
	const struct hard_policy_key *rows[DEPTH_MAX] = { NULL }; /* rows[d]: of the value at d */
	const struct aqe_json *v = f->root;
	size_t depth = 0;
	int rc;

	if (v->type != AQE_JSON_OBJECT)
		return hard_policy_fault(f, v, e, "is %s, wanted object",
					 aqe_json_type_name(v->type));
	rc = check_required(f, v, NULL, e);
	while (!rc && (v = next_value(f->root, v, &depth))) {
		/* Cannot happen: a row as deep does not exist, so its parent was refused. */
		if (depth < 1 || depth >= DEPTH_MAX)
			return hard_policy_fault(f, v, e, "is nested too deep");
		rc = check_value(f, v, rows[depth - 1], &rows[depth], e);
	}
	return rc;
}
