/* SPDX-License-Identifier: MIT */
/* Inside the policy: building a snapshot from sections. */
#ifndef AQE_NETPOLICY_POLICY_INT_H
#define AQE_NETPOLICY_POLICY_INT_H

#include "netpolicy/policy.h"

#define NETPOL_TYPES_MAX    4096
#define NETPOL_CIDRS_MAX    256
#define NETPOL_GATEWAYS_MAX 256
#define NETPOL_TYPE_LEN_MAX 64
#define NETPOL_BUILT_IN     "built-in"
#define NETPOL_ARENA_MAX    ((size_t)64 << 20)

struct netpol_build {
	struct netpol_policy *p;
	struct aqe_arena *arena;
	const struct netpol_base *base;
	size_t n_base;
	const struct netpol_base *fallback; /* the row "default" */
	struct netpol_type *types;
	struct netpol_gateway *gateways;
	const struct netpol_section *sec; /* the one being read */
	const char *file;                 /* its name, in the arena */
};

/* "FILE:LINE: 'POINTER' TEXT"; returns AQE_E_MALFORMED. */
int netpol_policy_fault(const struct netpol_build *b, const struct aqe_json *at, struct aqe_err *e,
			const char *fmt, ...) AQE_PRINTF(4, 5);
int netpol_policy_nomem(struct aqe_err *e);

/* One member of an agent's object. */
struct netpol_agent_key {
	const char *name;
	enum netpol_key key;
	/* a user's tier may have it, because netpol_policy_looser() can judge it */
	bool user;
	/* also at the top of the section, for all types */
	bool common;
	int (*read)(const struct netpol_build *b, const struct aqe_json *v, struct netpol_type *t,
		    struct aqe_err *e);
};
extern const struct netpol_agent_key NETPOL_AGENT_KEYS[];
extern const size_t NETPOL_AGENT_KEYS_COUNT;

/* Reads the members of `obj` (an agent, or the section itself with `common`) into *t. */
AQE_MUST_CHECK int netpol_policy_read_type(const struct netpol_build *b, const struct aqe_json *obj,
					   bool common, struct netpol_type *t, struct aqe_err *e);
/* The members that belong to no type. */
AQE_MUST_CHECK int netpol_policy_read_service(struct netpol_build *b, const struct aqe_json *root,
					      struct aqe_err *e);
/* Reads a rate's members into *io. */
AQE_MUST_CHECK int netpol_policy_read_rate(const struct netpol_build *b, const struct aqe_json *v,
					   struct netpol_rate *io, struct aqe_err *e);

/* The first key of `after` that admits more than `before`, or NETPOL_KEY_COUNT. */
enum netpol_key netpol_policy_looser(const struct netpol_type *before,
				     const struct netpol_type *after);

/* Members of struct netpol_limits, for reading, comparing and showing. */
struct netpol_limit_row {
	const char *name;
	size_t offset;
	bool wide; /* uint64_t, where 0 means no limit; else uint32_t */
	uint64_t min, max, preset;
};
extern const struct netpol_limit_row NETPOL_LIMIT_ROWS[];
extern const size_t NETPOL_LIMIT_ROWS_COUNT;
uint64_t netpol_limit_get(const struct netpol_limits *l, const struct netpol_limit_row *row);
void netpol_limit_set(struct netpol_limits *l, const struct netpol_limit_row *row, uint64_t v);

#endif
