/* SPDX-License-Identifier: MIT */
#include "netpolicy/http1_int.h"

#include <string.h>
#include <strings.h>

bool netpol_h1_is_token(unsigned char c)
{
	/* A bit a character, 0x00-0x3f and 0x40-0x7f. */
	static const uint64_t token[2] = { 0x03ff6cfa00000000, 0x57ffffffc7fffffe };

	return c < 0x80 && (token[c >> 6] >> (c & 0x3f) & 1) != 0;
}

bool netpol_h1_is(const char *p, struct netpol_h1_span s, const char *word)
{
	return s.n == strlen(word) && strncasecmp(p + s.at, word, s.n) == 0;
}

bool netpol_h1_same(const char *p, struct netpol_h1_span a, struct netpol_h1_span b)
{
	return a.n == b.n && strncasecmp(p + a.at, p + b.at, a.n) == 0;
}

bool netpol_h1_number(const char *p, struct netpol_h1_span s, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (s.n == 0)
		return false;
	for (size_t i = s.at; i < (size_t)s.at + s.n; i++) {
		uint64_t digit = (uint64_t)(unsigned char)p[i] - '0';

		if (!netpol_h1_is_digit((unsigned char)p[i]) || v > (max - digit) / 10 ||
		    digit > max)
			return false;
		v = v * 10 + digit;
	}
	*ret = v;
	return true;
}

static bool blank(char c)
{
	return c == ' ' || c == '\t';
}

bool netpol_h1_list_next(const char *p, struct netpol_h1_span list, uint32_t *at,
			 struct netpol_h1_span *ret)
{
	const char *start, *end = p + list.at + list.n, *comma;

	if (*at > list.n || list.n == 0)
		return false;
	start = p + list.at + *at;
	comma = memchr(start, ',', (size_t)(end - start));
	if (!comma)
		comma = end;
	*at = (uint32_t)(comma - (p + list.at)) + 1;
	while (start < comma && blank(*start))
		start++;
	while (comma > start && blank(comma[-1]))
		comma--;
	ret->at = (uint16_t)(start - p);
	ret->n = (uint16_t)(comma - start);
	return true;
}

static const struct {
	unsigned status;
	const char *reason;
} FAULTS[NETPOL_H1_FAULT_COUNT] = {
	[NETPOL_H1_OK] = { 200, "ok" },
	[NETPOL_H1_REQUEST_LINE] = { 400, "request_line" },
	[NETPOL_H1_LINE_TOO_LONG] = { 414, "uri_too_long" },
	[NETPOL_H1_VERSION] = { 505, "version_not_supported" },
	[NETPOL_H1_METHOD_OR_TARGET] = { 400, "method_or_target" },
	[NETPOL_H1_TARGET] = { 400, "target_invalid" },
	[NETPOL_H1_NOT_PROXY] = { 400, "not_a_proxy_request" },
	[NETPOL_H1_NOT_ORIGIN] = { 400, "not_an_origin_request" },
	[NETPOL_H1_PORT_MISSING] = { 400, "port_missing" },
	[NETPOL_H1_PORT] = { 400, "port_invalid" },
	[NETPOL_H1_HOST_FIELD] = { 400, "host_header" },
	[NETPOL_H1_FIELD] = { 400, "header" },
	[NETPOL_H1_FIELDS_TOO_LARGE] = { 431, "header_too_large" },
	[NETPOL_H1_FRAMING] = { 400, "framing" },
	[NETPOL_H1_CODING] = { 501, "transfer_encoding" },
	[NETPOL_H1_EXPECT] = { 417, "expectation" },
	[NETPOL_H1_CHUNK] = { 400, "chunk" },
	[NETPOL_H1_STATUS_LINE] = { 502, "upstream_malformed" },
	[NETPOL_H1_RESPONSE] = { 502, "upstream_malformed" },
};

unsigned netpol_h1_status(enum netpol_h1_fault fault)
{
	return FAULTS[fault].status;
}

const char *netpol_h1_reason(enum netpol_h1_fault fault)
{
	return FAULTS[fault].reason;
}
