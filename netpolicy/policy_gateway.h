/* SPDX-License-Identifier: MIT */
/* One gateway of the policy; part of policy.h. */
#ifndef AQE_NETPOLICY_POLICY_GATEWAY_H
#define AQE_NETPOLICY_POLICY_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netpolicy/host.h"
#include "netpolicy/limiter.h"
#include "netpolicy/rules.h"

#define NETPOL_GATEWAY_NAME_MAX 64

/* http://127.0.0.1:3129/NAME/... */
struct netpol_gateway {
	const char *name;            /* [a-z0-9-] */
	const char *upstream;        /* "https://api.example.com/v1", no trailing slash */
	struct netpol_host host;     /* of the upstream; */
	uint16_t port;               /* 443 when the URL has none; */
	const char *base;            /* and its path, "" or "/v1" */
	const char *credential_file; /* absolute path outside the container, or NULL */
	const char *ca_file;         /* PEM; NULL: the system's authorities */
	const char *header;          /* the header that carries it, "authorization" */
	const char *prefix;          /* put before it, "Bearer ", or "" */
	const char *const *types;    /* agent types that have it; n_types 0: all */
	size_t n_types;
	const char *const *methods; /* n_methods 0: the usual ones (gateway.h) */
	size_t n_methods;
	const char *const *paths; /* patterns; n_paths 0: all */
	size_t n_paths;
	uint32_t timeout_ms;                /* longest silence in a request */
	uint64_t max_request, max_response; /* bytes of a body; 0: no limit */
	bool has_rate;                      /* else the type's, counted for this gateway alone */
	struct netpol_rate rate;
	struct netpol_where where, where_methods, where_paths, where_rate;
};

#endif
