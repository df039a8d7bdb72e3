/* SPDX-License-Identifier: MIT */
/* What the effect tests share: texts of real containers, changed in one place. */
#ifndef AQE_UNIT_EFFECT_FIXTURE_H
#define AQE_UNIT_EFFECT_FIXTURE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardening/report.h"
#include "shim/core/arena.h"
#include "shim/core/buf.h"
#include "shim/core/json.h"

#define FIXTURES "tests/data/effect/"

/* The text of a file, in `b`. */
static inline char *fixture_read(struct aqe_buf *b, const char *path)
{
	FILE *f = fopen(path, "r");
	char data[4096];
	size_t n;

	ck_assert_msg(f != NULL, "%s", path);
	aqe_buf_clear(b);
	while ((n = fread(data, 1, sizeof(data), f)) > 0)
		ck_assert_int_eq(aqe_buf_add(b, data, n), 0);
	(void)fclose(f);
	return b->p;
}

/* Replaces `from`, which must be there, once; `from` NULL appends. */
static inline char *fixture_edit(struct aqe_buf *b, const char *from, const char *to)
{
	char *copy = strdup(aqe_buf_str(b)), *at;

	if (!from) {
		aqe_buf_puts(b, to);
		free(copy);
		return b->p;
	}
	at = strstr(copy, from);
	ck_assert_msg(at != NULL, "'%s' is not in the fixture", from);
	aqe_buf_clear(b);
	aqe_buf_add(b, copy, (size_t)(at - copy));
	aqe_buf_puts(b, to);
	aqe_buf_puts(b, at + strlen(from));
	ck_assert_int_eq(b->failed, 0);
	free(copy);
	return b->p;
}

static inline struct aqe_json *fixture_json(struct aqe_arena *a, struct aqe_buf *b)
{
	struct aqe_json *v = NULL;
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_msg(aqe_json_parse(a, b->p, b->len, &AQE_JSON_LIMITS_DEFAULT, &v, &e) == 0, "%s",
		      e.text);
	return v;
}

/* The first finding of a property whose text contains `part`, or NULL. */
static inline const struct hard_finding *fixture_finding(const struct hard_report *r,
							 enum hard_prop prop, const char *part)
{
	const struct hard_finding *f;

	for (f = r->first; f; f = f->next)
		if (f->prop == prop && strstr(f->found, part))
			return f;
	return NULL;
}

static inline const char *fixture_findings(const struct hard_report *r)
{
	static char text[4096];
	const struct hard_finding *f;
	size_t n = 0;

	text[0] = '\0';
	for (f = r->first; f && n < sizeof(text); f = f->next)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s: %s; ",
				      HARDENING_PROFILE[f->prop].id, f->found);
	return text;
}

#endif
