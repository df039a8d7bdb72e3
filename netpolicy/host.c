/* SPDX-License-Identifier: MIT */
#include "netpolicy/host.h"

#include <string.h>

#include "shim/core/text.h"

/* What a byte of a name becomes: itself, its lower case, or 0 when it is not allowed. Letters,
 * digits, hyphen, dot, and underscore (RFC 2181: legal in DNS, and in use). */
static const char NAME_BYTES[256] = {
	['-'] = '-', ['.'] = '.', ['_'] = '_', ['0'] = '0', ['1'] = '1', ['2'] = '2', ['3'] = '3',
	['4'] = '4', ['5'] = '5', ['6'] = '6', ['7'] = '7', ['8'] = '8', ['9'] = '9', ['a'] = 'a',
	['b'] = 'b', ['c'] = 'c', ['d'] = 'd', ['e'] = 'e', ['f'] = 'f', ['g'] = 'g', ['h'] = 'h',
	['i'] = 'i', ['j'] = 'j', ['k'] = 'k', ['l'] = 'l', ['m'] = 'm', ['n'] = 'n', ['o'] = 'o',
	['p'] = 'p', ['q'] = 'q', ['r'] = 'r', ['s'] = 's', ['t'] = 't', ['u'] = 'u', ['v'] = 'v',
	['w'] = 'w', ['x'] = 'x', ['y'] = 'y', ['z'] = 'z', ['A'] = 'a', ['B'] = 'b', ['C'] = 'c',
	['D'] = 'd', ['E'] = 'e', ['F'] = 'f', ['G'] = 'g', ['H'] = 'h', ['I'] = 'i', ['J'] = 'j',
	['K'] = 'k', ['L'] = 'l', ['M'] = 'm', ['N'] = 'n', ['O'] = 'o', ['P'] = 'p', ['Q'] = 'q',
	['R'] = 'r', ['S'] = 's', ['T'] = 't', ['U'] = 'u', ['V'] = 'v', ['W'] = 'w', ['X'] = 'x',
	['Y'] = 'y', ['Z'] = 'z',
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f');
}

/* Labels of 1 to 63 bytes without a hyphen at an edge; *ret_last is where the last one begins. */
static const char *check_labels(const char *s, size_t n, size_t *ret_last)
{
	size_t start = 0;

	for (size_t i = 0; i <= n; i++) {
		if (i < n && s[i] != '.')
			continue;
		if (i == start)
			return "empty label";
		if (i - start > NETPOL_LABEL_MAX)
			return "label over 63 bytes";
		if (s[start] == '-' || s[i - 1] == '-')
			return "label begins or ends with a hyphen";
		*ret_last = start;
		start = i + 1;
	}
	return NULL;
}

/* A last label that some parser takes for a number: all digits, or 0x and hexadecimal digits. Such
 * a host is an address or nothing (RFC 6943 3.1.1). */
static bool is_numeric(const char *s)
{
	if (s[0] == '0' && s[1] == 'x') {
		s += 2;
		while (is_hex(*s))
			s++;
	} else {
		while (is_digit(*s))
			s++;
	}
	return *s == '\0';
}

static const char *parse_v6_literal(const char *p, size_t n, struct netpol_host *ret)
{
	struct netpol_addr a;

	if (p[n - 1] != ']')
		return "bracket without its pair";
	if (!netpol_addr_parse(p + 1, n - 2, &a) || !a.v6)
		return "brackets around something that is no IPv6 address";
	netpol_host_from_addr(&a, ret);
	return NULL;
}

static const char *parse_name(const char *p, size_t n, struct netpol_host *ret)
{
	const bool dot = p[n - 1] == '.';
	const char *why;
	size_t last = 0;

	n -= dot; /* the root's empty label */
	if (n > NETPOL_HOST_MAX)
		return "over 253 bytes";
	for (size_t i = 0; i < n; i++) {
		ret->text[i] = NAME_BYTES[(unsigned char)p[i]];
		if (!ret->text[i])
			return "byte that no host name has";
	}
	ret->text[n] = '\0';
	ret->len = n;
	ret->kind = NETPOL_HOST_NAME;
	why = check_labels(ret->text, n, &last);
	if (why || !is_numeric(ret->text + last))
		return why;
	if (dot || !netpol_addr_parse(ret->text, n, &ret->addr))
		return "ends in a number but is no dotted quad";
	ret->kind = NETPOL_HOST_LITERAL;
	return NULL;
}

bool netpol_host_parse(const char *p, size_t n, struct netpol_host *ret, const char **ret_why)
{
	const char *why = "empty";

	if (n)
		why = p[0] == '[' ? parse_v6_literal(p, n, ret) : parse_name(p, n, ret);
	if (ret_why)
		*ret_why = why;
	return !why;
}

void netpol_host_from_addr(const struct netpol_addr *a, struct netpol_host *ret)
{
	char text[NETPOL_ADDR_TEXT];

	netpol_addr_format(a, text);
	ret->kind = NETPOL_HOST_LITERAL;
	ret->addr = *a;
	ret->len = 0;
	if (a->v6)
		ret->text[ret->len++] = '[';
	memcpy(ret->text + ret->len, text, strlen(text));
	ret->len += strlen(text);
	if (a->v6)
		ret->text[ret->len++] = ']';
	ret->text[ret->len] = '\0';
}

bool netpol_host_is_local(const struct netpol_host *h)
{
	static const char name[] = "localhost";
	const size_t n = sizeof(name) - 1;

	if (h->kind == NETPOL_HOST_LITERAL)
		return netpol_addr_class(&h->addr) == NETPOL_CLASS_LOOPBACK;
	return h->len >= n && memcmp(h->text + h->len - n, name, n) == 0 &&
	       (h->len == n || h->text[h->len - n - 1] == '.');
}

bool netpol_host_eq(const struct netpol_host *a, const struct netpol_host *b)
{
	return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

bool netpol_port_parse(const char *p, size_t n, uint16_t *ret)
{
	uint32_t v = 0;

	if (!n || n > 5 || p[0] == '0')
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!is_digit(p[i]))
			return false;
		v = v * 10 + (uint32_t)(p[i] - '0');
	}
	if (v > UINT16_MAX)
		return false;
	*ret = (uint16_t)v;
	return true;
}

void netpol_authority_split(const char *p, size_t n, size_t *ret_host_n, const char **ret_port,
			    size_t *ret_port_n)
{
	const char *from = n && p[0] == '[' ? memchr(p, ']', n) : p;
	const char *colon = from ? memchr(from, ':', n - (size_t)(from - p)) : NULL;

	*ret_host_n = colon ? (size_t)(colon - p) : n;
	*ret_port = colon ? colon + 1 : NULL;
	*ret_port_n = colon ? n - *ret_host_n - 1 : 0;
}
