/* SPDX-License-Identifier: MIT */
/* What may pass a gateway: pure judgement of targets, methods, paths and fields. Worker and
 * companion ask the same functions. */
#ifndef AQE_NETPOLICY_GATEWAY_H
#define AQE_NETPOLICY_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>

#include "netpolicy/policy.h"

/* "/NAME/rest?query": pieces of the caller's bytes. */
struct netpol_gateway_target {
	const char *name;
	size_t name_n;
	const char *path; /* "/rest", or "" for "/NAME" alone */
	size_t path_n;
	const char *query; /* with its '?', or "" */
	size_t query_n;
};
/* Takes a request's path and query apart. False when it could mean two things: dot segments, empty
 * segments, encoded slashes, dots or control bytes, backslashes, bad encodings, a fragment. */
bool netpol_gateway_split(const char *p, size_t n, struct netpol_gateway_target *ret);
/* The rule for paths alone, for bases and patterns too. "" passes, else it starts with '/'. */
bool netpol_gateway_path_ok(const char *p, size_t n);

/* Why a request may not pass ("method_not_allowed", "path_not_allowed"), or NULL. `path` as split.
 */
const char *netpol_gateway_refuses(const struct netpol_gateway *g, const char *method,
				   size_t method_n, const char *path, size_t path_n);
/* What a route's policy says of a request; bodies, upgrades and rates come after it. */
struct netpol_gateway_answer {
	unsigned status;                      /* 400, 403, 404; 0: it may pass */
	const char *reason;                   /* NULL: it may pass */
	const struct netpol_gateway *gateway; /* NULL: none of that name for the type */
	struct netpol_gateway_target target;  /* undefined for 400 */
};
/* Decides on "/NAME/rest?query"; worker and `aqe policy check` ask this one. */
void netpol_gateway_decide(const struct netpol_policy *p, const char *type, const char *target,
			   size_t target_n, const char *method, struct netpol_gateway_answer *ret);
/* True for a request field that does not go on: the header of the credential, and others that carry
 * credentials ('_' counts as '-'). A gateway without a credential drops none. */
bool netpol_gateway_drops(const struct netpol_gateway *g, const char *name, size_t n);

/* The methods that pass: the policy's, or the usual ones. */
const char *const *netpol_gateway_methods(const struct netpol_gateway *g, size_t *ret_n);

/* A method's name, a path's pattern: "/exact" or "/prefix/" followed by '*'. For the policy reader.
 */
bool netpol_gateway_method_ok(const char *s);
bool netpol_gateway_pattern_ok(const char *s);

#endif
