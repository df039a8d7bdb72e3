/* SPDX-License-Identifier: MIT */
#include "shim/net_policy.h"

#include <fcntl.h>
#include <string.h>

#include "netpolicy/suffix_list.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define ARENA_MAX ((size_t)4 << 20)
#define SECTION   "network"
#define LIST_MAX  ((size_t)4 << 20)

/* The built-in table, and the types that 'agents' adds to it. */
static struct netpol_base *base_rows(struct aqe_arena *a, const struct hard_policy *p)
{
	struct netpol_base *rows = aqe_arena_calloc(a, p->n_agents, sizeof(*rows));

	for (size_t i = 0; rows && i < p->n_agents; i++) {
		const struct hard_agent *from = &p->agents[i];

		rows[i] = (struct netpol_base){
			.type = from->type,
			.whitelisted = aqe_str_eq(from->network, "whitelisted"),
			.domains = from->domains,
			.rate = { from->per_minute, from->per_hour, from->burst },
			.timeout_ms = from->timeout_ms,
		};
	}
	return rows;
}

static struct netpol_section *sections(struct aqe_arena *a, const struct hard_policy *p,
				       size_t *ret_n)
{
	struct netpol_section *list = aqe_arena_calloc(a, p->n_sections + 1, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; list && i < p->n_sections; i++) {
		const struct hard_section *s = &p->sections[i];

		if (strcmp(s->key, SECTION) == 0)
			list[n++] = (struct netpol_section){ s->file, s->root, s->user };
	}
	*ret_n = n;
	return list;
}

/* ---- a Public Suffix List ---- */

static int read_list(const struct netpol_policy *p, struct aqe_buf *b, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	int rc = aqe_fs_open_nolinks(p->suffix_file, O_RDONLY, &fd, e);

	if (rc == 0)
		rc = aqe_fs_check(fd, AQE_FS_REGULAR | AQE_FS_OWNER | AQE_FS_NO_WRITE, LIST_MAX,
				  p->suffix_file, NULL, e);
	if (rc == 0)
		rc = aqe_fs_read_fd(fd, b, e);
	return rc < 0 ? aqe_err_wrap(e, "%s:%u: '/network/publicSuffixFile'", p->suffix_where.file,
				     p->suffix_where.line)
		      : 0;
}

static int hold_rules(const struct netpol_type *t, const struct aqe_buf *b, struct aqe_err *e)
{
	for (size_t i = 0; i < netpol_rules_count(t->rules); i++) {
		const struct netpol_rule *r = netpol_rules_at(t->rules, i);
		enum netpol_suffix what = NETPOL_SUFFIX_NONE;

		if (r->wildcard && r->where.line > 0) /* not of the built-in table */
			what = netpol_suffix_list(aqe_buf_str(b), b->len, r->base);
		if (what == NETPOL_SUFFIX_PUBLIC)
			return aqe_err_set(
				e, AQE_E_MALFORMED, 0,
				"%s:%u: '%s': a wildcard over a public suffix of the list",
				r->where.file, r->where.line, r->text);
		if (what == NETPOL_SUFFIX_PRIVATE)
			netpol_rules_warn(t->rules, i,
					  "names below it belong to many owners, by the list");
	}
	return 0;
}

static int hold_against_list(const struct netpol_policy *p, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(LIST_MAX);
	int rc = p->suffix_file ? read_list(p, &b, e) : 0;

	for (size_t i = 0; rc == 0 && p->suffix_file && i < p->n_types; i++)
		rc = hold_rules(&p->types[i], &b, e);
	return rc;
}

static bool has_list(const struct netpol_section *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (aqe_json_get(list[i].root, "publicSuffixFile"))
			return true;
	}
	return false;
}

/* With `ret` NULL only judges. */
static int build(const struct hard_policy *p, struct netpol_policy **ret, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct netpol_base *base = a ? base_rows(a, p) : NULL;
	struct netpol_policy *made = NULL;
	struct netpol_section *list;
	size_t n = 0;
	int rc;

	list = base ? sections(a, p, &n) : NULL;
	if (!list)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the network policy");
	if (!ret && !has_list(list, n))
		return netpol_policy_check(base, p->n_agents, list, n, e);
	rc = netpol_policy_build(base, p->n_agents, list, n, &made, e);
	if (rc == 0)
		rc = hold_against_list(made, e);
	if (rc == 0 && ret)
		*ret = AQE_TAKE_PTR(made);
	netpol_policy_unref(made);
	return rc;
}

int shim_net_policy_build(const struct hard_policy *p, struct netpol_policy **ret,
			  struct aqe_err *e)
{
	return build(p, ret, e);
}

int shim_net_policy_check(const struct hard_policy *p, struct aqe_err *e)
{
	for (size_t i = 0; i < p->n_sections; i++) {
		if (strcmp(p->sections[i].key, SECTION) == 0)
			return build(p, NULL, e);
	}
	return AQE_OK;
}
