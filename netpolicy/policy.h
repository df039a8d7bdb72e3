/* SPDX-License-Identifier: MIT */
/* The policy file's section "network", merged with the built-in table: one read-only snapshot with
 * a row per agent type. */
#ifndef AQE_NETPOLICY_POLICY_H
#define AQE_NETPOLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netpolicy/address.h"
#include "netpolicy/limiter.h"
#include "netpolicy/policy_gateway.h"
#include "netpolicy/rules.h"
#include "shim/core/arena.h"
#include "shim/core/buf.h"
#include "shim/core/err.h"
#include "shim/core/json.h"
#include "shim/core/sha256.h"

enum netpol_mode { NETPOL_MODE_REPORT, NETPOL_MODE_ENFORCE };
enum netpol_sni { NETPOL_SNI_OFF, NETPOL_SNI_AUDIT, NETPOL_SNI_ENFORCE };
enum netpol_access { NETPOL_ACCESS_ISOLATED, NETPOL_ACCESS_WHITELISTED };
enum netpol_store_error { NETPOL_STORE_LOCAL, NETPOL_STORE_DENY };
enum netpol_share { NETPOL_SHARE_TYPE, NETPOL_SHARE_AGENT };

/* Limits of one service; 0 of a byte cap: none. */
struct netpol_limits {
	uint32_t connections, tunnels;
	uint32_t connect_ms, header_ms, first_byte_ms;
	uint32_t idle_s, lifetime_s;
	uint64_t bytes_up, bytes_down; /* of one tunnel */
};

/* What can be set for an agent type; domains and prefixes have places of their own too. */
enum netpol_key {
	NETPOL_KEY_ACCESS,
	NETPOL_KEY_MODE,
	NETPOL_KEY_SNI,
	NETPOL_KEY_APEX,
	NETPOL_KEY_DOMAINS,
	NETPOL_KEY_CIDR,
	NETPOL_KEY_RATE,
	NETPOL_KEY_SHARED,
	NETPOL_KEY_TIMEOUT,
	NETPOL_KEY_HOST_HEADER,
	NETPOL_KEY_WEBSOCKET,
	NETPOL_KEY_SOCKS,
	NETPOL_KEY_TRANSPARENT,
	NETPOL_KEY_LIMITS,
	NETPOL_KEY_COUNT
};
/* Its name in the policy file, "wildcardApex"; never NULL. */
const char *netpol_key_name(enum netpol_key k);

/* Everything in force for one agent type. */
struct netpol_type {
	const char *name;
	enum netpol_access access;
	enum netpol_mode mode;
	enum netpol_sni sni;
	bool wildcard_apex;
	bool host_strict;        /* a Host header that differs is refused instead of replaced */
	bool websocket;          /* Upgrade on plain HTTP is tunnelled instead of refused */
	bool socks, transparent; /* front ends beside the HTTP proxy */
	struct netpol_rules *rules;
	const struct netpol_cidr *cidrs;
	size_t n_cidrs;
	struct netpol_rate rate;
	bool has_shared;
	struct netpol_rate shared; /* of all that share a key of the cluster; without it `rate` */
	uint32_t timeout_ms;       /* of one plain request */
	struct netpol_limits limits;
	struct netpol_where where[NETPOL_KEY_COUNT]; /* what set each of them */
};

struct netpol_cluster_conf {
	const char *address; /* "host:port" or "/absolute/socket"; NULL: no cluster */
	const char *username, *password_file;
	bool tls;
	const char *ca_file, *server_name; /* NULL: the system's authorities, the address's host */
	unsigned db;
	enum netpol_share share;
	const char *prefix; /* of the keys, "aqe:" */
	enum netpol_store_error on_store_error;
	uint32_t timeout_ms;
};

struct netpol_policy {
	struct aqe_arena *arena; /* owns everything below, and the struct */
	unsigned refs;
	const struct netpol_type *types; /* the built-in ones first */
	size_t n_types;
	const struct netpol_type *fallback; /* "default": of every unknown type */
	const struct netpol_gateway *gateways;
	size_t n_gateways;
	struct netpol_cluster_conf cluster;
	const char *upstream_proxy;   /* "host:port" or NULL */
	const char *proxy_credential; /* file with its "user:password", or NULL */
	const char *suffix_file; /* Public Suffix List that wildcards are held against, or NULL */
	struct netpol_where cluster_where, proxy_where, suffix_where;
	char digest[AQE_DIGEST_TEXT]; /* of what is in force: stamped on processes and audit rows */
};

/* A row of the built-in table, given by the composition (hardening/agents.c owns the figures). */
struct netpol_base {
	const char *type;
	bool whitelisted;
	const char *domains; /* comma-separated */
	struct netpol_rate rate;
	uint32_t timeout_ms;
};
/* One file's section "network", from the policy reader. */
struct netpol_section {
	const char *file;
	const struct aqe_json *root; /* an object with places */
	bool user; /* of the user's tier: may only tighten what the sections before it say */
};

/* Builds the snapshot: base rows (one must be "default"), then the sections in order. Trees and
 * strings must live until this returns only. Errors are "FILE:LINE: ..." */
AQE_MUST_CHECK int netpol_policy_build(const struct netpol_base *base, size_t n_base,
				       const struct netpol_section *sections, size_t n_sections,
				       struct netpol_policy **ret, struct aqe_err *e);
/* Only the judgement: what build would say. */
AQE_MUST_CHECK int netpol_policy_check(const struct netpol_base *base, size_t n_base,
				       const struct netpol_section *sections, size_t n_sections,
				       struct aqe_err *e);
struct netpol_policy *netpol_policy_ref(struct netpol_policy *p);
/* Gives a reference back; the last one frees it. NULL is accepted. */
void netpol_policy_unref(struct netpol_policy *p);
/* The row of a type; an unknown one (or NULL) gets "default". */
const struct netpol_type *netpol_policy_type(const struct netpol_policy *p, const char *type);
/* The gateway of that name that the type may use, or NULL. */
const struct netpol_gateway *netpol_policy_gateway(const struct netpol_policy *p, const char *type,
						   const char *name);

/* Appends what is in force as a section "network", JSON: of one type, with what it needs of the
 * rest, or of all (`type` NULL). Built over the same base it gives the same digest, so it can be
 * handed to a process that cannot read the files. */
AQE_MUST_CHECK int netpol_policy_emit(const struct netpol_policy *p, const struct netpol_type *type,
				      struct aqe_buf *b, struct aqe_err *e);

#endif
