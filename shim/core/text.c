/* SPDX-License-Identifier: MIT */
#include "shim/core/text.h"

#include <string.h>

bool aqe_str_eq(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return strcmp(a, b) == 0;
}

bool aqe_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool aqe_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

bool aqe_str_in(const char *s, const char *const *list)
{
	for (; *list; list++)
		if (aqe_str_eq(s, *list))
			return true;
	return false;
}

bool aqe_size_add(size_t a, size_t b, size_t *ret)
{
	return !__builtin_add_overflow(a, b, ret);
}

bool aqe_size_mul(size_t a, size_t b, size_t *ret)
{
	return !__builtin_mul_overflow(a, b, ret);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads digits at *s, moves *s behind them. False when there are none, on a leading zero, and when
 * the number does not fit. */
static bool read_digits(const char **s, uint64_t *ret)
{
	const char *p = *s;
	uint64_t v = 0;

	if (!is_digit(*p) || (*p == '0' && is_digit(p[1])))
		return false;
	for (; is_digit(*p); p++) {
		if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return false;
	}
	*s = p;
	*ret = v;
	return true;
}

bool aqe_parse_u64(const char *s, uint64_t max, uint64_t *ret)
{
	uint64_t v;

	if (!s || !read_digits(&s, &v) || *s != '\0' || v > max)
		return false;
	*ret = v;
	return true;
}

bool aqe_parse_i64(const char *s, int64_t min, int64_t max, int64_t *ret)
{
	bool negative = s && *s == '-';
	uint64_t v;
	int64_t n;

	if (negative)
		s++;
	if (!s || !read_digits(&s, &v) || *s != '\0' || (negative && v == 0))
		return false;
	if (v > (uint64_t)INT64_MAX + (negative ? 1 : 0))
		return false;
	n = negative ? (int64_t)(0 - v) : (int64_t)v;
	if (n < min || n > max)
		return false;
	*ret = n;
	return true;
}

bool aqe_parse_size(const char *s, uint64_t *ret_bytes)
{
	unsigned shift = 0;
	uint64_t v;

	if (!s || !read_digits(&s, &v))
		return false;
	if (*s == 'k' || *s == 'K')
		shift = 10;
	else if (*s == 'm' || *s == 'M')
		shift = 20;
	else if (*s == 'g' || *s == 'G')
		shift = 30;
	if (shift)
		s++;
	if (*s != '\0' || v > UINT64_MAX >> shift)
		return false;
	*ret_bytes = v << shift;
	return true;
}

bool aqe_is_hex(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_digit(s[i]) && !(s[i] >= 'a' && s[i] <= 'f'))
			return false;
	return s[n] == '\0';
}

bool aqe_is_sha256_digest(const char *s)
{
	static const char ALGORITHM[] = "sha256:";

	return s && aqe_starts(s, ALGORITHM) && aqe_is_hex(s + sizeof(ALGORITHM) - 1, 64);
}

/* Length of the UTF-8 sequence at `p`, 0 when it is not well-formed (RFC 3629 section 4). */
static size_t utf8_len(const unsigned char *p, size_t n)
{
	unsigned char low = 0x80, high = 0xbf; /* range of the second byte */
	size_t len;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0; /* shorter forms exist below */
	else if (p[0] == 0xed)
		high = 0x9f; /* surrogates above */
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f; /* U+10FFFF is the last */
	if (n < len || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

size_t aqe_utf8_len(const char *p, size_t n)
{
	return n > 0 ? utf8_len((const unsigned char *)p, n) : 0;
}

bool aqe_utf8_ok(const char *p, size_t n, size_t *ret_bad)
{
	size_t i = 0, len;

	while (i < n) {
		len = utf8_len((const unsigned char *)p + i, n - i);
		if (len == 0) {
			if (ret_bad)
				*ret_bad = i;
			return false;
		}
		i += len;
	}
	return true;
}

bool aqe_path_is_canonical(const char *path)
{
	const char *p, *end;

	if (!path || path[0] != '/')
		return false;
	if (path[1] == '\0')
		return true;
	for (p = path; *p == '/'; p = end) {
		end = strchrnul(p + 1, '/');
		if (end == p + 1)
			return false; /* empty, or a slash at the end */
		if (p[1] == '.' && (end == p + 2 || (end == p + 3 && p[2] == '.')))
			return false;
	}
	return true;
}

bool aqe_path_is_under(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 1 && dir[0] == '/')
		return path[0] == '/';
	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* Characters that act on a terminal or reorder what a reader sees: C1 controls, line and paragraph
 * separators, direction marks, the byte-order mark. `len` is their length in UTF-8. */
static bool is_unprintable(const unsigned char *p, size_t len)
{
	if (len == 2)
		return p[0] == 0xc2 && p[1] < 0xa0;
	if (len != 3)
		return false;
	if (p[0] == 0xe2 && p[1] == 0x80)
		return (p[2] >= 0x8b && p[2] <= 0x8f) || (p[2] >= 0xa8 && p[2] <= 0xae);
	if (p[0] == 0xe2 && p[1] == 0x81)
		return p[2] >= 0xa0 && p[2] <= 0xaf;
	return p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf;
}

/* One character of foreign text in a form that is safe to show; returns bytes used of `p`. */
static size_t quote_one(const unsigned char *p, size_t n, char ret[12], size_t *ret_len)
{
	static const char HEX[] = "0123456789abcdef";
	size_t len = utf8_len(p, n), k = 0;

	if (len == 0 || p[0] < 0x20 || p[0] == 0x7f || is_unprintable(p, len)) {
		ret[k++] = '\\';
		ret[k++] = 'x';
		ret[k++] = HEX[p[0] >> 4];
		ret[k++] = HEX[p[0] & 15];
		*ret_len = k;
		return 1;
	}
	if (p[0] == '\\' || p[0] == '\'' || p[0] == '"')
		ret[k++] = '\\';
	memcpy(ret + k, p, len);
	*ret_len = k + len;
	return len;
}

void aqe_buf_quote(struct aqe_buf *b, const char *s, size_t max)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t n = s ? strlen(s) : 0, used = 0, len, step;
	char one[12];

	while (n > 0) {
		step = quote_one(p, n, one, &len);
		if (used + len > max) {
			(void)aqe_buf_puts(b, "..."); /* sticky, as all additions below */
			return;
		}
		(void)aqe_buf_add(b, one, len);
		used += len;
		p += step;
		n -= step;
	}
}
