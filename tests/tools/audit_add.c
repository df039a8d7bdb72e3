/* SPDX-License-Identifier: MIT */
/* Appends rows to an audit log: audit_add FOLDER [ROWS_A_COMMIT] < LINES
 * A line is one row: field=value, tab-separated, with the names of AUDIT_FIELDS; kind and action
 * are required. With "\n" and "\t" in values as these two characters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/log.h"
#include "shim/core/arena.h"
#include "shim/core/text.h"

#define LINE_SIZE 65536
#define BATCH_MAX 10000

static const struct audit_field *field_of(const char *name)
{
	for (size_t i = 0; i < AUDIT_FIELDS_COUNT; i++) {
		if (strcmp(AUDIT_FIELDS[i].name, name) == 0)
			return &AUDIT_FIELDS[i];
	}
	return NULL;
}

static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++, to++) {
		*to = *s;
		if (s[0] == '\\' && (s[1] == 'n' || s[1] == 't'))
			*to = *++s == 'n' ? '\n' : '\t';
	}
	*to = '\0';
}

static bool set(struct audit_row *r, char *name, char *value)
{
	const struct audit_field *f = field_of(name);
	int64_t n;

	if (strcmp(name, "kind") == 0)
		return audit_kind_parse(value, &r->kind);
	if (strcmp(name, "action") == 0)
		return audit_action_parse(value, &r->action);
	if (!f)
		return false;
	if (f->type == AUDIT_FIELD_TEXT || f->type == AUDIT_FIELD_JSON) {
		unescape(value);
		audit_field_set_text(r, f, value);
		return true;
	}
	if (!aqe_parse_i64(value, 0, INT64_MAX, &n))
		return false;
	audit_field_set_int(r, f, n);
	return true;
}

static bool read_row(struct aqe_arena *a, const char *line, struct audit_row *ret)
{
	char *rest = aqe_arena_dup(a, line), *word;

	*ret = (struct audit_row)AUDIT_ROW_INIT(AUDIT_KIND_ANY, AUDIT_ACTION_ANY);
	while (rest && (word = strsep(&rest, "\t"))) {
		char *eq = strchr(word, '=');

		if (!eq)
			return false;
		*eq = '\0';
		if (!set(ret, word, eq + 1))
			return false;
	}
	return ret->kind && ret->action;
}

int main(int argc, char **argv)
{
	static char line[LINE_SIZE];
	struct audit_row *rows = calloc(BATCH_MAX, sizeof(*rows));
	struct aqe_arena *a = aqe_arena_new((size_t)256 << 20);
	const struct audit_opts o = { .dir = argc > 1 ? argv[1] : "", .mode = AUDIT_WRITE };
	struct audit_log *log = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	uint64_t batch = 1;
	size_t n = 0;
	int rc = AQE_E_USAGE;

	if (argc >= 2 && argc <= 3 && rows && a &&
	    (argc == 2 || aqe_parse_u64(argv[2], BATCH_MAX, &batch)))
		rc = audit_open(&o, &log, &e);
	while (rc == AQE_OK && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (!read_row(a, line, &rows[n])) {
			(void)aqe_err_set(&e, AQE_E_MALFORMED, 0, "bad line: %.200s", line);
			rc = e.code;
		} else if (++n == batch) {
			rc = audit_append_many(log, rows, n, &e);
			n = 0;
			aqe_arena_free(a);
			a = aqe_arena_new((size_t)256 << 20);
			rc = a ? rc : AQE_E_NOMEM;
		}
	}
	if (rc == AQE_OK && n)
		rc = audit_append_many(log, rows, n, &e);
	if (rc < 0)
		(void)fprintf(stderr, "audit_add: %s: %s\n", aqe_code_name((enum aqe_code)rc),
			      e.text);
	audit_close(log);
	aqe_arena_free(a);
	free(rows);
	return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
