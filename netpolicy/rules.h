/* SPDX-License-Identifier: MIT */
/* Lists of domains: entries `host`, `*.host`, IPv4, `[IPv6]`, each with an optional `:port`.
 * Matching is a hash look-up of the name and of each parent: no patterns, O(labels). */
#ifndef AQE_NETPOLICY_RULES_H
#define AQE_NETPOLICY_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netpolicy/host.h"
#include "shim/core/arena.h"
#include "shim/core/err.h"

#define NETPOL_RULES_MAX     4096 /* entries of one list */
#define NETPOL_RULE_TEXT_MAX 512  /* bytes of an entry as written */

/* Where a setting comes from: "FILE:LINE", or line 0 and file "built-in" or "preset:NAME". */
struct netpol_where {
	const char *file;
	uint32_t line;
};

struct netpol_rule {
	const char *text; /* normalised entry, "*.example.com:8443" */
	const char *base; /* "example.com": the canonical host without "*." and port */
	bool wildcard;
	uint16_t port; /* 0: the default ports */
	struct netpol_where where;
	const char *warning;      /* for people, or NULL: a shared suffix, a metadata name, ... */
	struct netpol_rule *same; /* next rule with the same base */
};

struct netpol_rules;

/* An empty list, in `a`; NULL without memory. Strings given to it must live as long. */
struct netpol_rules *netpol_rules_new(struct aqe_arena *a);
/* Adds an entry (`n` bytes; blanks around it are dropped, U-labels become A-labels). An entry that
 * is there already is dropped. AQE_E_MALFORMED says what is wrong with it; AQE_E_LIMIT, _NOMEM. */
AQE_MUST_CHECK int netpol_rules_add(struct netpol_rules *r, const char *entry, size_t n,
				    struct netpol_where where, struct aqe_err *e);
/* Adds a comma-separated list; an empty one adds nothing. */
AQE_MUST_CHECK int netpol_rules_add_list(struct netpol_rules *r, const char *list, size_t n,
					 struct netpol_where where, struct aqe_err *e);
/* Entries in order of addition. NULL is an empty list. */
size_t netpol_rules_count(const struct netpol_rules *r);
const struct netpol_rule *netpol_rules_at(const struct netpol_rules *r, size_t i);
/* Gives entry `i` a warning, if it has none. The text must live as long. */
void netpol_rules_warn(struct netpol_rules *r, size_t i, const char *warning);
/* True when every host and port that `narrow` admits is admitted by `r` too. */
bool netpol_rules_cover(const struct netpol_rules *r, const struct netpol_rule *narrow,
			bool wildcard_apex);

/* Which ports a request may use without a `:port` entry. */
struct netpol_ports {
	uint16_t port[2]; /* 0: none */
	bool any;         /* the port is not asked for (names only) */
};
struct netpol_match {
	const struct netpol_rule *rule; /* the one that decided, NULL when none names the host */
	bool port_ok;
};
/* Exact entries win over wildcards, longer bases over shorter ones. `rule` set and `port_ok` false:
 * the host is listed, but not with this port. */
void netpol_rules_match(const struct netpol_rules *r, const struct netpol_host *h,
			bool wildcard_apex, const struct netpol_ports *ports, uint16_t port,
			struct netpol_match *ret);

/* Named lists: anthropic, github, npm, security, openai, localhost. The entries, comma-separated,
 * or NULL. */
const char *netpol_preset(const char *name);
/* The i-th preset's name, NULL after the last. */
const char *netpol_preset_name(size_t i);

#endif
