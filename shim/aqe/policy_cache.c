/* SPDX-License-Identifier: MIT */
/* aqe policy show: the cache. */
#include "shim/aqe/policy_cmd.h"
#include "shim/cache_policy.h"
#include "shim/core/cleanup.h"

#define ROW_MAX ((size_t)64 << 10)

static void where_of(const struct cache_setting *s, struct netpol_where *ret)
{
	ret->file = s->file ? s->file : "built-in";
	ret->line = s->file ? s->line : 0;
}

static void text_setting(void *self, const struct cache_setting *s)
{
	AQE_AUTO_BUF struct aqe_buf v = AQE_BUF_INIT(ROW_MAX);
	struct netpol_where where;
	struct aqe_buf *b = self;

	where_of(s, &where);
	(void)aqe_buf_addf(&v, "%s: %s", s->name, s->value);
	(void)aqe_buf_addf(b, "%-13s %-48s  ", "cache", aqe_buf_str(&v));
	shim_policy_where(b, &where);
	(void)aqe_buf_putc(b, '\n');
}

int shim_policy_cache_text(struct aqe_buf *b, const struct hard_policy *p, const char *type,
			   struct aqe_err *e)
{
	return shim_cache_policy_each(p, type, text_setting, b, e);
}

struct object {
	struct aqe_arena *a;
	struct aqe_json *o;
	bool failed;
};

static void json_setting(void *self, const struct cache_setting *s)
{
	struct netpol_where where;
	struct object *out = self;
	struct aqe_json *row = aqe_json_new_object(out->a);

	where_of(s, &where);
	out->failed = out->failed || !row ||
		      aqe_json_set(out->a, row, "value", aqe_json_new_str(out->a, s->value)) ||
		      aqe_json_set(out->a, row, "where", shim_policy_where_json(out->a, &where)) ||
		      aqe_json_set(out->a, out->o, s->name, row);
}

struct aqe_json *shim_policy_cache_json(struct aqe_arena *a, const struct hard_policy *p,
					const char *type)
{
	struct object out = { a, aqe_json_new_object(a), false };

	if (!out.o || shim_cache_policy_each(p, type, json_setting, &out, NULL) || out.failed)
		return NULL;
	return out.o;
}
