/* SPDX-License-Identifier: MIT */
/* What requests and responses have in common: authority, hop-by-hop fields, framing. */
#include <string.h>

#include "netpolicy/http1_int.h"

static enum netpol_h1_fault read_port(const char *p, struct netpol_h1_span s, uint16_t *ret)
{
	uint64_t v;

	/* One spelling a port: a leading zero is refused like a sign. */
	if (s.n == 0 || s.n > 5 || p[s.at] == '0' || !netpol_h1_number(p, s, UINT16_MAX, &v))
		return NETPOL_H1_PORT;
	*ret = (uint16_t)v;
	return NETPOL_H1_OK;
}

/* Where the host ends: behind the bracket, or at the only colon. 0: it has no end. */
static size_t host_end(const char *s, size_t n)
{
	const char *end = memchr(s, s[0] == '[' ? ']' : ':', n);

	if (s[0] == '[')
		return end ? (size_t)(end - s) + 1 : 0;
	return end ? (size_t)(end - s) : n;
}

enum netpol_h1_fault netpol_h1_authority_read(const char *p, struct netpol_h1_span s,
					      struct netpol_h1_authority *ret)
{
	struct netpol_h1_authority a = { s, 0, true };
	enum netpol_h1_fault fault;
	size_t end;

	for (size_t i = 0; i < s.n; i++) {
		if (strchr("@/\\?#", p[s.at + i])) /* NUL is among them, and cannot be here */
			return NETPOL_H1_TARGET;
	}
	end = s.n > 0 ? host_end(p + s.at, s.n) : 0;
	if (end == 0)
		return NETPOL_H1_TARGET;
	a.host.n = (uint16_t)end;
	if (end < s.n) {
		struct netpol_h1_span port = { (uint16_t)(s.at + end + 1),
					       (uint16_t)(s.n - end - 1) };

		if (p[s.at + end] != ':' || memchr(p + port.at, ':', port.n))
			return NETPOL_H1_TARGET;
		a.port_absent = false;
		fault = read_port(p, port, &a.port);
		if (fault != NETPOL_H1_OK)
			return fault;
	}
	*ret = a;
	return NETPOL_H1_OK;
}

/* Fields that carry the framing or the decision: a sender that calls them hop-by-hop wants two
 * readers to disagree. */
static bool is_end_to_end(uint8_t id)
{
	return id == NETPOL_H1_F_HOST || id == NETPOL_H1_F_CONTENT_LENGTH ||
	       id == NETPOL_H1_F_TRANSFER_ENCODING;
}

static bool nominate(struct netpol_h1_head *h, const char *p, struct netpol_h1_span name)
{
	for (unsigned i = 0; i < h->count; i++) {
		struct netpol_h1_field *f = &h->fields[i];

		if (!netpol_h1_same(p, f->name, name))
			continue;
		if (is_end_to_end(f->id))
			return false;
		f->hop = true;
	}
	return true;
}

static bool all_token(const char *p, struct netpol_h1_span s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!netpol_h1_is_token((unsigned char)p[s.at + i]))
			return false;
	}
	return true;
}

static enum netpol_h1_fault read_connection(struct netpol_h1_head *h, const char *p,
					    struct netpol_h1_span list,
					    struct netpol_h1_common *ret)
{
	struct netpol_h1_span word;

	for (uint32_t at = 0; netpol_h1_list_next(p, list, &at, &word);) {
		if (!all_token(p, word) || !nominate(h, p, word))
			return NETPOL_H1_FIELD;
		if (netpol_h1_is(p, word, "close"))
			ret->close = true;
		if (netpol_h1_is(p, word, "upgrade"))
			ret->upgrade = true;
	}
	return NETPOL_H1_OK;
}

static enum netpol_h1_fault read_field(struct netpol_h1_head *h, const char *p,
				       const struct netpol_h1_field *f,
				       struct netpol_h1_common *ret)
{
	switch (f->id) {
	case NETPOL_H1_F_CONNECTION:
		return read_connection(h, p, f->value, ret);
	case NETPOL_H1_F_CONTENT_LENGTH:
		ret->lengths++;
		return netpol_h1_number(p, f->value, INT64_MAX, &ret->length) ? NETPOL_H1_OK
									      : NETPOL_H1_FRAMING;
	case NETPOL_H1_F_TRANSFER_ENCODING:
		ret->codings++;
		ret->coding = f->value;
		break;
	case NETPOL_H1_F_UPGRADE:
		if (netpol_h1_is(p, f->value, "websocket"))
			ret->websocket = true;
		break;
	case NETPOL_H1_F_HOST:
		ret->hosts++;
		ret->host = f->value;
		break;
	case NETPOL_H1_F_EXPECT:
		ret->expects++;
		ret->expect = f->value;
		break;
	case NETPOL_H1_F_MAX_FORWARDS:
		ret->forwards++;
		ret->max_forwards = f->value;
		break;
	default: /* the id is a byte of a field, not an enum: others mean nothing here */
		break;
	}
	return NETPOL_H1_OK;
}

enum netpol_h1_fault netpol_h1_common_read(struct netpol_h1_head *h, const char *p,
					   struct netpol_h1_common *ret)
{
	enum netpol_h1_fault fault;

	memset(ret, 0, sizeof(*ret));
	for (unsigned i = 0; i < h->count; i++) {
		fault = read_field(h, p, &h->fields[i], ret);
		if (fault != NETPOL_H1_OK)
			return fault;
	}
	/* RFC 9112 6.3: both, or either twice, is what smuggling is made of. */
	if (ret->lengths > 1 || ret->codings > 1 || (ret->lengths > 0 && ret->codings > 0))
		return NETPOL_H1_FRAMING;
	return NETPOL_H1_OK;
}

enum netpol_h1_fault netpol_h1_coding_check(const char *p, struct netpol_h1_span coding)
{
	struct netpol_h1_span word;
	bool chunked = false;

	if (netpol_h1_is(p, coding, "chunked"))
		return NETPOL_H1_OK;
	if (coding.n == 0)
		return NETPOL_H1_FRAMING;
	/* A list that is wrong in itself is 400, a right one we do not serve is 501. */
	for (uint32_t at = 0; netpol_h1_list_next(p, coding, &at, &word);) {
		if (word.n == 0 || chunked)
			return NETPOL_H1_FRAMING;
		chunked = netpol_h1_is(p, word, "chunked");
	}
	return NETPOL_H1_CODING;
}
