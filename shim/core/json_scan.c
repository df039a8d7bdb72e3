/* SPDX-License-Identifier: MIT */
#include "shim/core/json_scan.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "shim/core/json.h"
#include "shim/core/text.h"

struct text {
	const unsigned char *p;
	size_t len;
	const struct aqe_json_limits *limits;
	struct aqe_json_scan *s;
};

#define EACH_BYTE(c) (UINT64_C(0x0101010101010101) * (c))

/* Not 0 when a byte of `v` is below `n` (at most 0x80) and none is above 0x7f. */
static uint64_t has_less(uint64_t v, unsigned char n)
{
	return (v - EACH_BYTE(n)) & ~v & EACH_BYTE(0x80U);
}

size_t aqe_json_plain_run(const char *text, size_t len)
{
	size_t i = 0;
	uint64_t v;
	unsigned char c;

	for (; len - i >= sizeof(v); i += sizeof(v)) {
		memcpy(&v, text + i, sizeof(v));
		if ((v & EACH_BYTE(0x80U)) || has_less(v, 0x20) ||
		    has_less(v ^ EACH_BYTE((unsigned char)'"'), 1) ||
		    has_less(v ^ EACH_BYTE((unsigned char)'\\'), 1))
			break;
	}
	for (; i < len; i++) {
		c = (unsigned char)text[i];
		if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\')
			break;
	}
	return i;
}

static bool is_number(unsigned char c)
{
	return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

static bool fault(struct text *t, int code, const char *why, size_t bad, size_t clean)
{
	t->s->code = code;
	t->s->why = why;
	t->s->bad = bad;
	t->s->clean = clean;
	return false;
}

/* Four hex digits at `i`; -1 when there are none. */
static int32_t hex4(const struct text *t, size_t i)
{
	int32_t v = 0;
	unsigned char c;

	if (t->len - i < 4)
		return -1;
	for (size_t end = i + 4; i < end; i++) {
		c = t->p[i];
		if (c >= '0' && c <= '9')
			v = v * 16 + (c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			v = v * 16 + ((c | 0x20) - 'a' + 10);
		else
			return -1;
	}
	return v;
}

/* A \uXXXX escape, or a pair of them, at `i`. NULL, or what is wrong. */
static const char *scan_unicode(const struct text *t, size_t i, size_t *ret_raw,
				size_t *ret_decoded)
{
	int32_t v = hex4(t, i + 2), low;

	if (v < 0)
		return "invalid \\u escape";
	if (v == 0)
		return "escaped NUL character in a string";
	if (v >= 0xdc00 && v <= 0xdfff)
		return "lone surrogate in a string";
	*ret_raw = 6;
	*ret_decoded = v < 0x80 ? 1 : v < 0x800 ? 2 : 3;
	if (v < 0xd800 || v > 0xdbff)
		return NULL;
	if (t->len - i < 8 || t->p[i + 6] != '\\' || t->p[i + 7] != 'u')
		return "lone surrogate in a string";
	low = hex4(t, i + 8);
	if (low < 0xdc00 || low > 0xdfff)
		return "lone surrogate in a string";
	*ret_raw = 12;
	*ret_decoded = 4;
	return NULL;
}

/* What stands at `i` in a string and is not plain, other than its end. NULL, or what is wrong. */
static const char *scan_special(const struct text *t, size_t i, size_t *ret_raw,
				size_t *ret_decoded)
{
	unsigned char c = t->p[i], next;

	if (c == '\0')
		return "NUL byte in a string";
	if (c < 0x20)
		return "control character in a string";
	if (c >= 0x80) {
		*ret_raw = aqe_utf8_len((const char *)t->p + i, t->len - i);
		*ret_decoded = *ret_raw;
		return *ret_raw == 0 ? "invalid UTF-8 in a string" : NULL;
	}
	next = t->len - i < 2 ? '\0' : t->p[i + 1]; /* c is a backslash: nothing else is left */
	if (next == 'u' && t->len - i >= 6)
		return scan_unicode(t, i, ret_raw, ret_decoded);
	if (next == '\0' || !strchr("\"\\/bfnrt", next))
		return "invalid escape in a string";
	*ret_raw = 2;
	*ret_decoded = 1;
	return NULL;
}

/* The string whose opening quote is at *at; moves *at behind it. */
static bool scan_string(struct text *t, size_t *at)
{
	size_t start = *at, i = start + 1, run, raw, size, decoded = 0;
	const char *why;

	for (;;) {
		run = aqe_json_plain_run((const char *)t->p + i, t->len - i);
		i += run;
		decoded += run;
		if (i == t->len)
			return fault(t, AQE_E_MALFORMED, "string has no end", start, start);
		if (t->p[i] == '"')
			break;
		why = scan_special(t, i, &raw, &size);
		if (why)
			return fault(t, AQE_E_MALFORMED, why, i, start);
		decoded += size;
		i += raw;
	}
	if (decoded > t->limits->string)
		return fault(t, AQE_E_LIMIT, "string is too long", start, start);
	if (decoded > t->s->longest)
		t->s->longest = decoded;
	*at = i + 1;
	return true;
}

/* A run of characters that can be a number. */
static bool scan_number(struct text *t, size_t *at)
{
	size_t start = *at, i = start;

	while (i < t->len && is_number(t->p[i]))
		i++;
	if (i - start > t->limits->number)
		return fault(t, AQE_E_LIMIT, "number is too long", start, start);
	if (i - start > t->s->longest)
		t->s->longest = i - start;
	*at = i;
	return true;
}

void aqe_json_scan(const char *text, size_t len, const struct aqe_json_limits *limits,
		   struct aqe_json_scan *ret)
{
	struct text t = { (const unsigned char *)text, len, limits, ret };
	unsigned char c;
	bool ok = true;
	size_t i = 0;

	*ret = (struct aqe_json_scan){ .clean = len };
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		(void)fault(&t, AQE_E_MALFORMED, "byte-order mark", 0, 0);
		return;
	}
	while (ok && i < len) {
		c = t.p[i];
		if (c == '"')
			ok = scan_string(&t, &i);
		else if (c == '-' || (c >= '0' && c <= '9'))
			ok = scan_number(&t, &i);
		else if (c >= 0x20 || c == '\n' || c == '\t' || c == '\r')
			i++; /* yajl knows which of them mean something */
		else
			ok = fault(&t, AQE_E_MALFORMED, c ? "control character" : "NUL byte", i, i);
	}
}
