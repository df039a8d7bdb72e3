/* SPDX-License-Identifier: MIT */
/* A list and a host, a line each. What is accepted has one spelling that is read the same again,
 * and what is admitted is the rule's base or, under a wildcard, ends in a dot and that base. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "netpolicy/rules.h"
#include "shim/core/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_host(const struct netpol_host *h)
{
	struct netpol_host again;

	assert(h->len == strlen(h->text) && h->len <= NETPOL_HOST_MAX);
	assert(strspn(h->text, "abcdefghijklmnopqrstuvwxyz0123456789-_.:[]") == h->len);
	assert(netpol_host_parse(h->text, h->len, &again, NULL));
	assert(netpol_host_eq(h, &again) && again.kind == h->kind);
}

static void check_rule(struct aqe_arena *a, const struct netpol_rule *r)
{
	struct netpol_rules *one = netpol_rules_new(a);

	assert(one && !netpol_rules_add(one, r->text, strlen(r->text), r->where, NULL));
	assert(strcmp(netpol_rules_at(one, 0)->text, r->text) == 0);
	assert(netpol_rules_cover(one, r, true) && netpol_rules_cover(one, r, false));
}

static void check_match(const struct netpol_rules *rules, const struct netpol_host *h, bool apex)
{
	const struct netpol_ports any = { { 0, 0 }, true };
	struct netpol_match m;
	size_t n;

	netpol_rules_match(rules, h, apex, &any, 0, &m);
	if (!m.rule)
		return;
	assert(m.port_ok);
	n = strlen(m.rule->base);
	assert(h->len >= n && strcmp(h->text + h->len - n, m.rule->base) == 0);
	assert(h->len == n ? !m.rule->wildcard || apex
			   : m.rule->wildcard && h->text[h->len - n - 1] == '.' &&
				     h->kind == NETPOL_HOST_NAME);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)8 << 20);
	const struct netpol_where where = { "fuzz", 1 };
	const char *text = (const char *)data;
	const char *line = size ? memchr(text, '\n', size) : NULL;
	const size_t n = line ? (size_t)(line - text) : size;
	struct netpol_rules *rules = netpol_rules_new(a);
	struct netpol_host h;
	const bool host = line && netpol_host_parse(line + 1, size - n - 1, &h, NULL);

	if (host)
		check_host(&h);
	if (netpol_rules_add_list(rules, text, n, where, NULL))
		return 0;
	for (size_t i = 0; i < netpol_rules_count(rules) && i < 64; i++)
		check_rule(a, netpol_rules_at(rules, i));
	if (host) {
		check_match(rules, &h, true);
		check_match(rules, &h, false);
	}
	return 0;
}
