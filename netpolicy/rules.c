/* SPDX-License-Identifier: MIT */
#include "netpolicy/rules.h"

#include <string.h>

#include "netpolicy/entry.h"

#define LABELS_MAX  128 /* of a name of 253 bytes: 127 */
#define FIRST_SLOTS 16
#define FNV_START   2166136261U
#define FNV_PRIME   16777619U

/* Rules with one base. */
struct slot {
	uint32_t hash;
	struct netpol_rule *head; /* in order of addition; NULL: free */
};

struct netpol_rules {
	struct aqe_arena *arena;
	struct netpol_rule **list; /* in order of addition */
	size_t n, cap;
	struct slot *slots; /* open addressing, at most half full */
	size_t n_slots;     /* a power of two */
	size_t n_bases;
	bool any_wildcard;
};

/* The hash runs from the end, so that the hashes of all suffixes fall out of one pass. */
static uint32_t hash_step(uint32_t h, char c)
{
	return (h ^ (unsigned char)c) * FNV_PRIME;
}

static uint32_t hash_of(const char *s, size_t n)
{
	uint32_t h = FNV_START;

	while (n)
		h = hash_step(h, s[--n]);
	return h;
}

static struct slot *find_slot(const struct netpol_rules *r, uint32_t hash, const char *s, size_t n)
{
	for (size_t i = hash & (r->n_slots - 1);; i = (i + 1) & (r->n_slots - 1)) {
		struct slot *slot = &r->slots[i];

		if (!slot->head)
			return slot;
		if (slot->hash == hash && strlen(slot->head->base) == n &&
		    memcmp(slot->head->base, s, n) == 0)
			return slot;
	}
}

/* ---- adding ---- */

struct netpol_rules *netpol_rules_new(struct aqe_arena *a)
{
	struct netpol_rules *r = aqe_arena_alloc(a, sizeof(*r));

	if (!r)
		return NULL;
	r->arena = a;
	r->n_slots = FIRST_SLOTS;
	r->slots = aqe_arena_calloc(a, r->n_slots, sizeof(*r->slots));
	return r->slots ? r : NULL;
}

static bool grow_slots(struct netpol_rules *r)
{
	const struct netpol_rules old = *r;

	if (r->n_bases < r->n_slots / 2)
		return true;
	r->n_slots *= 2;
	r->slots = aqe_arena_calloc(r->arena, r->n_slots, sizeof(*r->slots));
	if (!r->slots) {
		*r = old;
		return false;
	}
	for (size_t i = 0; i < old.n_slots; i++) {
		const struct slot *s = &old.slots[i];

		if (s->head)
			*find_slot(r, s->hash, s->head->base, strlen(s->head->base)) = *s;
	}
	return true;
}

static bool grow_list(struct netpol_rules *r)
{
	const size_t cap = r->cap ? r->cap * 2 : FIRST_SLOTS;
	struct netpol_rule **list;

	if (r->n < r->cap)
		return true;
	list = aqe_arena_calloc(r->arena, cap, sizeof(struct netpol_rule *));
	if (!list)
		return false;
	if (r->n)
		memcpy(list, r->list, r->n * sizeof(struct netpol_rule *));
	r->list = list;
	r->cap = cap;
	return true;
}

static bool same_rule(const struct netpol_rule *a, const struct netpol_rule *b)
{
	return a->wildcard == b->wildcard && a->port == b->port;
}

/* Puts the rule into its slot; false when an equal one is there. */
static bool link_rule(struct netpol_rules *r, struct netpol_rule *rule)
{
	const size_t n = strlen(rule->base);
	const uint32_t hash = hash_of(rule->base, n);
	struct slot *slot = find_slot(r, hash, rule->base, n);
	struct netpol_rule *last = slot->head;

	if (!last) {
		*slot = (struct slot){ hash, rule };
		r->n_bases++;
		return true;
	}
	for (;; last = last->same) {
		if (same_rule(last, rule))
			return false;
		if (!last->same)
			break;
	}
	last->same = rule;
	return true;
}

int netpol_rules_add(struct netpol_rules *r, const char *entry, size_t n, struct netpol_where where,
		     struct aqe_err *e)
{
	struct netpol_rule *rule = NULL;
	int rc = netpol_entry_parse(r->arena, entry, n, &rule, e);

	if (rc)
		return rc;
	if (r->n == NETPOL_RULES_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %d entries", NETPOL_RULES_MAX);
	if (!grow_list(r) || !grow_slots(r))
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the list of domains");
	rule->where = where;
	if (!link_rule(r, rule))
		return AQE_OK;
	r->list[r->n++] = rule;
	r->any_wildcard |= rule->wildcard;
	return AQE_OK;
}

int netpol_rules_add_list(struct netpol_rules *r, const char *list, size_t n,
			  struct netpol_where where, struct aqe_err *e)
{
	size_t at = 0;
	int rc = AQE_OK;

	while (!rc && n) {
		const char *comma = memchr(list + at, ',', n - at);
		const size_t len = comma ? (size_t)(comma - list) - at : n - at;

		rc = netpol_rules_add(r, list + at, len, where, e);
		if (!comma)
			break;
		at += len + 1;
	}
	return rc;
}

size_t netpol_rules_count(const struct netpol_rules *r)
{
	return r ? r->n : 0;
}

const struct netpol_rule *netpol_rules_at(const struct netpol_rules *r, size_t i)
{
	return i < netpol_rules_count(r) ? r->list[i] : NULL;
}

void netpol_rules_warn(struct netpol_rules *r, size_t i, const char *warning)
{
	if (i < netpol_rules_count(r) && !r->list[i]->warning)
		r->list[i]->warning = warning;
}

/* ---- asking ---- */

/* The name and the names above it, longest first. */
struct names {
	const char *text;
	size_t len, n;
	uint8_t start[LABELS_MAX];
	uint32_t hash[LABELS_MAX];
};

static void find_names(struct names *ret, const char *text, size_t len, bool parents)
{
	uint32_t h = FNV_START;
	size_t n = 0;

	ret->text = text;
	ret->len = len;
	for (size_t i = len; i; i--) {
		h = hash_step(h, text[i - 1]);
		if (parents && i > 1 && text[i - 2] == '.' && n < LABELS_MAX - 1) {
			ret->start[n] = (uint8_t)(i - 1);
			ret->hash[n++] = h;
		}
	}
	ret->start[n] = 0;
	ret->hash[n] = h;
	ret->n = n + 1;
}

/* The rules whose base is the i-th longest of the names. */
static const struct netpol_rule *rules_of(const struct netpol_rules *r, const struct names *names,
					  size_t i)
{
	const size_t k = names->n - 1 - i, start = names->start[k];

	return find_slot(r, names->hash[k], names->text + start, names->len - start)->head;
}

static bool port_in(const struct netpol_ports *ports, uint16_t rule_port, uint16_t port)
{
	if (ports->any)
		return true;
	if (rule_port)
		return rule_port == port;
	return port && (port == ports->port[0] || port == ports->port[1]);
}

/* Of one base, the exact or the wildcard rules; true when the port was good too. */
static bool take(const struct netpol_rule *rule, bool wildcard, const struct netpol_ports *ports,
		 uint16_t port, struct netpol_match *ret)
{
	for (; rule; rule = rule->same) {
		if (rule->wildcard != wildcard)
			continue;
		if (port_in(ports, rule->port, port)) {
			ret->rule = rule;
			ret->port_ok = true;
			return true;
		}
		if (!ret->rule)
			ret->rule = rule;
	}
	return false;
}

void netpol_rules_match(const struct netpol_rules *r, const struct netpol_host *h,
			bool wildcard_apex, const struct netpol_ports *ports, uint16_t port,
			struct netpol_match *ret)
{
	const bool name = h->kind == NETPOL_HOST_NAME;
	const struct netpol_rule *own;
	struct names names;

	*ret = (struct netpol_match){ NULL, false };
	if (!r || !r->n)
		return;
	find_names(&names, h->text, h->len, name && r->any_wildcard);
	own = rules_of(r, &names, 0);
	if (take(own, false, ports, port, ret) || !name)
		return;
	if (wildcard_apex && take(own, true, ports, port, ret))
		return;
	for (size_t i = 1; i < names.n; i++) {
		if (take(rules_of(r, &names, i), true, ports, port, ret))
			return;
	}
}

/* A rule of these with the wildcard and exactly this port (0: the default ones). */
static bool has_rule(const struct netpol_rule *rule, bool wildcard, uint16_t port)
{
	for (; rule; rule = rule->same) {
		if (rule->wildcard == wildcard && rule->port == port)
			return true;
	}
	return false;
}

bool netpol_rules_cover(const struct netpol_rules *r, const struct netpol_rule *narrow,
			bool wildcard_apex)
{
	const bool name = narrow->base[0] != '[';
	struct names names;

	if (!r || !r->n)
		return false;
	find_names(&names, narrow->base, strlen(narrow->base), name);
	if (!narrow->wildcard && has_rule(rules_of(r, &names, 0), false, narrow->port))
		return true;
	if ((narrow->wildcard || wildcard_apex) &&
	    has_rule(rules_of(r, &names, 0), true, narrow->port))
		return true;
	for (size_t i = 1; i < names.n; i++) {
		if (has_rule(rules_of(r, &names, i), true, narrow->port))
			return true;
	}
	return false;
}

/* ---- presets ---- */

static const struct {
	const char *name, *domains;
} PRESETS[] = {
	{ "anthropic", "api.anthropic.com" },
	{ "github", "api.github.com,github.com,raw.githubusercontent.com" },
	{ "npm", "registry.npmjs.org,www.npmjs.com" },
	{ "security", "nvd.nist.gov,cve.mitre.org,osv.dev,security.snyk.io" },
	{ "openai", "api.openai.com" },
	{ "localhost", "localhost,127.0.0.1,[::1]" },
};
#define PRESETS_COUNT (sizeof(PRESETS) / sizeof(PRESETS[0]))

const char *netpol_preset(const char *name)
{
	for (size_t i = 0; i < PRESETS_COUNT; i++) {
		if (strcmp(PRESETS[i].name, name) == 0)
			return PRESETS[i].domains;
	}
	return NULL;
}

const char *netpol_preset_name(size_t i)
{
	return i < PRESETS_COUNT ? PRESETS[i].name : NULL;
}
