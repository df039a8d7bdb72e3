/* SPDX-License-Identifier: MIT */
/* Network policies from JSON text, over the built-in table. */
#ifndef AQE_UNIT_NETPOLICY_UTIL_H
#define AQE_UNIT_NETPOLICY_UTIL_H

#include <stdio.h>

#include "hardening/policy.h"
#include "netpolicy/decide.h"
#include "netpolicy/policy.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

/* A section's text, the file it claims to be from, and its tier. */
struct np_text {
	const char *file, *json;
	bool user;
};

static struct netpol_policy *np;
static struct aqe_err np_err;

static inline void np_drop(void)
{
	netpol_policy_unref(np);
	np = NULL;
}

/* Builds `np` from sections; the code. */
static inline int np_build(const struct np_text *texts, size_t n)
{
	struct aqe_arena *a = aqe_arena_new((size_t)16 << 20);
	struct netpol_section *list = aqe_arena_calloc(a, n + 1, sizeof(*list));
	struct netpol_base *base = aqe_arena_calloc(a, HARD_AGENTS_COUNT, sizeof(*base));
	struct netpol_policy *made = NULL;
	int rc;

	np_err = (struct aqe_err)AQE_ERR_INIT;
	for (size_t i = 0; i < HARD_AGENTS_COUNT; i++)
		base[i] = (struct netpol_base){ HARD_AGENTS[i].type,
						aqe_str_eq(HARD_AGENTS[i].network, "whitelisted"),
						HARD_AGENTS[i].domains,
						{ HARD_AGENTS[i].per_minute,
						  HARD_AGENTS[i].per_hour, HARD_AGENTS[i].burst },
						HARD_AGENTS[i].timeout_ms };
	for (size_t i = 0; i < n; i++) {
		struct aqe_json *root = NULL;

		ck_assert_ok(aqe_json_parse(a, texts[i].json, strlen(texts[i].json),
					    &AQE_JSON_LIMITS_DEFAULT, &root, &np_err),
			     np_err);
		list[i] = (struct netpol_section){ texts[i].file, root, texts[i].user };
	}
	rc = netpol_policy_build(base, HARD_AGENTS_COUNT, list, n, &made, &np_err);
	aqe_arena_free(a);
	np_drop();
	np = made;
	return rc;
}

/* One system section, which must be good. */
static inline void np_good(const char *json)
{
	const struct np_text text = { "policy.json", json, false };

	ck_assert_ok(np_build(&text, 1), np_err);
}

/* "T": {...} below agents */
#define NP_AGENT(type, members) "{\"agents\":{\"" type "\":{" members "}}}"

static inline struct netpol_answer np_ask(const char *type, const char *host, uint16_t port,
					  enum netpol_proto proto)
{
	const struct netpol_request rq = { proto, host, strlen(host), port };
	struct netpol_answer n;

	netpol_decide(netpol_policy_type(np, type), NULL, 0, &rq, NETPOL_PEEK, &n);
	return n;
}

/* The reason's name, "+" in front when it passes all the same. */
static inline const char *np_reason(const char *type, const char *host, uint16_t port,
				    enum netpol_proto proto)
{
	static char text[64];
	const struct netpol_answer n = np_ask(type, host, port, proto);

	(void)snprintf(text, sizeof(text), "%s%s", n.would_deny ? "+" : "",
		       netpol_reason_name(n.reason));
	return text;
}

#endif
