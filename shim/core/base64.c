/* SPDX-License-Identifier: MIT */
#include "shim/core/base64.h"

#include <stdint.h>

void aqe_base64_encode(struct aqe_buf *b, const void *data, size_t n)
{
	static const char DIGITS[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *p = data;
	char out[256 * 4];
	size_t len = 0;

	while (n > 0) {
		const size_t have = n < 3 ? n : 3;
		const uint32_t v = (uint32_t)p[0] << 16 | (have > 1 ? (uint32_t)p[1] << 8 : 0) |
				   (have > 2 ? p[2] : 0);

		out[len++] = DIGITS[v >> 18];
		out[len++] = DIGITS[v >> 12 & 63];
		out[len++] = '=';
		out[len++] = '=';
		if (have > 1)
			out[len - 2] = DIGITS[v >> 6 & 63];
		if (have > 2)
			out[len - 1] = DIGITS[v & 63];
		p += have;
		n -= have;
		if (len == sizeof(out) || n == 0) {
			aqe_buf_add(b, out, len);
			len = 0;
		}
	}
}

static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Four digits to one to three bytes; how many, or 0. Bits that no byte has must be zero: every
 * value has one spelling. */
static size_t quad(const char *t, bool last, char out[3])
{
	const size_t pads = !last || t[3] != '=' ? 0 : t[2] != '=' ? 1 : 2;
	uint32_t v = 0;

	for (size_t i = 0; i < 4; i++) {
		const int d = i < 4 - pads ? digit(t[i]) : 0;

		if (d < 0)
			return 0;
		v = v << 6 | (uint32_t)d;
	}
	if (v & ((1U << 8 * pads) - 1))
		return 0;
	out[0] = (char)(v >> 16);
	out[1] = (char)(v >> 8);
	out[2] = (char)v;
	return 3 - pads;
}

bool aqe_base64_decode(struct aqe_buf *b, const char *text, size_t n)
{
	const size_t before = b->len;
	char out[256 * 3], three[3];
	size_t len = 0, have;

	if (n % 4 != 0)
		return false;
	for (size_t at = 0; at < n; at += 4) {
		have = quad(text + at, at + 4 == n, three);
		if (have == 0)
			break;
		for (size_t i = 0; i < have; i++)
			out[len++] = three[i];
		if (len + 3 > sizeof(out) || at + 4 == n) {
			aqe_buf_add(b, out, len);
			len = 0;
			if (at + 4 == n && !b->failed)
				return true;
		}
	}
	if (n == 0)
		return true;
	b->len = before;
	return false;
}
