/* SPDX-License-Identifier: MIT */
#include "shim/aqe/tsv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

void shim_tsv_done(struct shim_tsv *t)
{
	free(t->line);
	t->line = NULL;
	t->cap = 0;
}

static void split(struct shim_tsv *t, size_t n)
{
	char *at = t->line, *end = t->line + n;

	t->n = 0;
	while (t->n < SHIM_TSV_FIELDS) {
		char *tab = memchr(at, '\t', (size_t)(end - at));

		t->field[t->n] = at;
		t->len[t->n++] = (size_t)((tab ? tab : end) - at);
		if (!tab)
			break;
		*tab = '\0';
		at = tab + 1;
	}
}

int shim_tsv_next(struct shim_tsv *t, struct aqe_err *e)
{
	ssize_t n;

	do {
		errno = 0;
		n = getline(&t->line, &t->cap, t->in);
		if (n < 0 && !feof(t->in))
			return aqe_err_set(e, AQE_E_SYS, errno, "read line %zu", t->number + 1);
		if (n < 0)
			return 0;
		t->number++;
		if ((size_t)n > SHIM_TSV_LINE)
			return aqe_err_set(e, AQE_E_LIMIT, 0, "line %zu is too long", t->number);
		if (n && t->line[n - 1] == '\n')
			t->line[--n] = '\0';
	} while (n && t->line[0] == '#');
	split(t, (size_t)n);
	return 1;
}

const char *shim_tsv_at(const struct shim_tsv *t, size_t i)
{
	return i < t->n ? t->field[i] : "";
}

static int hex_value(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char lower = c >= 'A' && c <= 'F' ? (char)(c + 32) : c;
	const char *at = lower ? strchr(digits, lower) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Reads the escape at `p`, `n` bytes left; returns its length, 0 when it is none. */
static size_t read_escape(const char *p, size_t n, char *ret)
{
	int high, low;

	if (n >= 2 && p[1] == '\\') {
		*ret = '\\';
		return 2;
	}
	high = n < 4 || p[1] != 'x' ? -1 : hex_value(p[2]);
	low = high < 0 ? -1 : hex_value(p[3]);
	if (low < 0)
		return 0;
	*ret = (char)(high * 16 + low);
	return 4;
}

bool shim_tsv_unescape(struct shim_tsv *t, size_t i)
{
	char *p = i < t->n ? t->field[i] : NULL;
	size_t out = 0;

	for (size_t at = 0; p && at < t->len[i];) {
		size_t used = 1;

		if (p[at] == '\\')
			used = read_escape(p + at, t->len[i] - at, &p[out]);
		else
			p[out] = p[at];
		if (!used)
			return false;
		at += used;
		out++;
	}
	if (p) {
		t->len[i] = out;
		p[out] = '\0';
	}
	return true;
}
