/* SPDX-License-Identifier: MIT */
/* What is in force, and what says so. */
#include <stdio.h>
#include <string.h>

#include "cache/config_rows.h"
#include "shim/core/buf.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define VALUE_MAX ((size_t)64 << 10)

struct show {
	const struct cache_config *cfg;
	const struct cache_config_part *parts;
	size_t n;
	const char *type;
	cache_setting_fn *fn;
	void *self;
};

static void put_value(const struct cache_config *cfg, const struct cache_row *r, struct aqe_buf *b)
{
	const uint64_t number = cache_row_number(cfg, r);

	if (cache_row_is_text(r))
		(void)aqe_buf_puts(b, cache_row_text(cfg, r));
	else if (r->kind == CACHE_K_BOOL)
		(void)aqe_buf_puts(b, number ? "yes" : "no");
	else if (r->kind == CACHE_K_SCOPE)
		(void)aqe_buf_puts(b, cache_scope_name((enum cache_scope)number));
	else
		(void)aqe_buf_addf(b, "%llu", (unsigned long long)number);
}

/* Whether a member says what is in force. */
static bool says(const struct show *s, const struct cache_row *r, const struct aqe_json *v)
{
	struct cache_config other = *s->cfg;

	if (r->kind == CACHE_K_OTHER)
		return true;
	if (cache_row_read(r, v, &other, NULL))
		return false;
	if (cache_row_is_text(r))
		return aqe_str_eq(cache_row_text(&other, r), cache_row_text(s->cfg, r));
	return cache_row_number(&other, r) == cache_row_number(s->cfg, r);
}

/* The last word on it, a type's before the general one: the part, and *ret_line. */
static const char *said_by(const struct show *s, const char *object, const struct cache_row *r,
			   uint32_t *ret_line)
{
	const struct aqe_json *v;

	for (size_t i = s->n; i-- > 0;) {
		const struct aqe_json *root = s->parts[i].root;

		v = s->type ? aqe_json_get(aqe_json_get(root, "agents"), s->type) : NULL;
		v = *object && !(r->kind == CACHE_K_OTHER && strcmp(r->name, "models") == 0)
			    ? NULL
			    : aqe_json_get(v, r->name);
		if (!v)
			v = aqe_json_get(aqe_json_at(root, object), r->name);
		if (!v || !says(s, r, v))
			continue;
		*ret_line = v->line;
		return s->parts[i].file;
	}
	return NULL;
}

static void show_row(const struct show *s, const char *object, const struct cache_row *r,
		     const struct aqe_buf *value)
{
	struct cache_setting out = { .value = aqe_buf_str(value) };
	char name[64];

	(void)snprintf(name, sizeof(name), "%s%s%s", *object ? object + 1 : "", *object ? "." : "",
		       r->name);
	for (char *c = name; *c; c++)
		if (*c == '/')
			*c = '.';
	out.name = name;
	out.file = said_by(s, object, r, &out.line);
	s->fn(s->self, &out);
}

/* Values that are more than a row. */
static bool put_other(const struct show *s, const char *object, const struct cache_row *r,
		      struct aqe_buf *b)
{
	const struct cache_upstream_config *up = &s->cfg->upstream;

	if (!*object && strcmp(r->name, "backend") == 0)
		return aqe_buf_puts(b, cache_backend_name(s->cfg->backend)) == 0;
	if (strcmp(r->name, "models") != 0 || up->n_models == 0)
		return false;
	for (uint64_t i = 0; i < up->n_models; i++)
		(void)aqe_buf_addf(b, "%s%s", i ? " " : "", up->models[i]);
	return true;
}

/* Whether the object counts with this configuration. */
static bool matters(const struct cache_config *cfg, const char *object)
{
	if (strcmp(object, "/sqlite") == 0)
		return cfg->backend == CACHE_SQLITE;
	if (strcmp(object, "/redis") == 0)
		return cfg->backend == CACHE_REDIS;
	if (strcmp(object, "/redis/tls") == 0)
		return cfg->backend == CACHE_REDIS && cfg->redis.where.at.tls;
	if (strcmp(object, "/front") == 0)
		return cfg->two_level;
	return strcmp(object, "/upstream") != 0 || cfg->has_upstream;
}

void cache_config_each(const struct cache_config *cfg, const struct cache_config_part *parts,
		       size_t n, const char *type, cache_setting_fn *fn, void *self)
{
	const struct show s = { cfg, parts, n, type, fn, self };

	for (size_t i = 0; i < CACHE_CONFIG_TABLES_COUNT; i++) {
		const struct cache_table *t = &CACHE_CONFIG_TABLES[i];

		for (size_t k = 0; k < t->n && matters(cfg, t->pointer); k++) {
			const struct cache_row *r = &t->row[k];
			AQE_AUTO_BUF struct aqe_buf value = AQE_BUF_INIT(VALUE_MAX);

			if (r->kind == CACHE_K_OTHER && !put_other(&s, t->pointer, r, &value))
				continue;
			if (cache_row_is_text(r) && !cache_row_text(cfg, r))
				continue;
			if (r->kind != CACHE_K_OTHER)
				put_value(cfg, r, &value);
			show_row(&s, t->pointer, r, &value);
		}
	}
}
