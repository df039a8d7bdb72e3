/* SPDX-License-Identifier: MIT */
#include "netpolicy/suffix_list.h"

#include <stdbool.h>
#include <string.h>

#include "netpolicy/host.h"
#include "netpolicy/idna.h"

#define PRIVATE "===BEGIN PRIVATE DOMAINS==="

/* A rule's name as A-labels; false when it is none. */
static bool to_ascii(const char *p, size_t n, char ret[NETPOL_HOST_MAX + 1])
{
	size_t used = 0;

	for (const char *end = p + n; p <= end;) {
		const char *dot = memchr(p, '.', (size_t)(end - p));
		size_t len = dot ? (size_t)(dot - p) : (size_t)(end - p), out;
		char label[NETPOL_IDNA_MAX + 1];

		if (len == 0 || !netpol_idna_label(p, len, label, NULL))
			return false;
		out = strlen(label);
		if (used + out + 1 > NETPOL_HOST_MAX)
			return false;
		memcpy(ret + used, label, out);
		used += out;
		ret[used++] = '.';
		p += len + 1;
	}
	if (used == 0)
		return false;
	ret[used - 1] = '\0';
	return true;
}

static bool is_ascii(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)p[i] >= 0x80)
			return false;
	}
	return true;
}

/* `international`: the name that is looked for has A-labels, so that others need not be converted.
 */
static bool same(const char *p, size_t n, const char *name, bool international)
{
	char ascii[NETPOL_HOST_MAX + 1];

	if (n == strlen(name) && memcmp(p, name, n) == 0)
		return true;
	return international && !is_ascii(p, n) && to_ascii(p, n, ascii) &&
	       strcmp(ascii, name) == 0;
}

/* What is looked for. */
struct wanted {
	const char *base, *above; /* the name, and the one above it or NULL */
	bool international;
};

static bool is_rule_for(const struct wanted *w, const char *p, size_t n)
{
	if (n > 2 && p[0] == '*' && p[1] == '.')
		return w->above && same(p + 2, n - 2, w->above, w->international);
	return same(p, n, w->base, w->international);
}

/* A rule ends at the first blank. */
static size_t rule_len(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && p[i] != ' ' && p[i] != '\t' && p[i] != '\r')
		i++;
	return i;
}

enum netpol_suffix netpol_suffix_list(const char *list, size_t n, const char *base)
{
	const char *dot = strchr(base, '.');
	const struct wanted w = { base, dot ? dot + 1 : NULL, strstr(base, "xn--") != NULL };
	enum netpol_suffix section = NETPOL_SUFFIX_PUBLIC, found = NETPOL_SUFFIX_NONE;

	for (const char *p = list, *end = list + n, *next; p < end; p = next) {
		const char *lf = memchr(p, '\n', (size_t)(end - p));
		size_t line = lf ? (size_t)(lf - p) : (size_t)(end - p), len = rule_len(p, line);

		next = p + line + 1;
		if (len >= 2 && p[0] == '/' && p[1] == '/') {
			if (memmem(p, line, PRIVATE, strlen(PRIVATE)))
				section = NETPOL_SUFFIX_PRIVATE;
		} else if (len > 1 && p[0] == '!') {
			if (same(p + 1, len - 1, base, w.international))
				return NETPOL_SUFFIX_NONE;
		} else if (found == NETPOL_SUFFIX_NONE && is_rule_for(&w, p, len)) {
			found = section;
		}
	}
	return found;
}
