/* SPDX-License-Identifier: MIT */
/* The judgement of a scanned head: target, host, version, framing. */
#include <string.h>
#include <strings.h>

#include "netpolicy/http1_int.h"

/* "HTTP/1.x": the minor digit. 1.2 and later are read as 1.1 (RFC 9110 2.5). */
static enum netpol_h1_fault read_version(const char *p, struct netpol_h1_span s, bool *ret_http10)
{
	static const char name[] = "HTTP/";
	const char *v = p + s.at;

	if (s.n < sizeof(name) || memcmp(v, name, sizeof(name) - 1) != 0 ||
	    !netpol_h1_is_digit((unsigned char)v[5]))
		return NETPOL_H1_REQUEST_LINE;
	if (s.n != 8 || v[6] != '.' || !netpol_h1_is_digit((unsigned char)v[7]))
		return s.n == 6 && v[5] != '1' ? NETPOL_H1_VERSION : NETPOL_H1_REQUEST_LINE;
	if (v[5] != '1')
		return NETPOL_H1_VERSION;
	*ret_http10 = v[7] == '0';
	return NETPOL_H1_OK;
}

/* Path and query: visible ASCII without the delimiters of a URI in text. Brackets, braces and bars
 * are no URI characters either, but clients send them in queries, and no decision reads them. */
static enum netpol_h1_fault check_path(const char *p, struct netpol_h1_span s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)p[s.at + i];

		if (c == '#')
			return NETPOL_H1_TARGET;
		if (!netpol_h1_is_visible(c) || c == '"' || c == '<' || c == '>')
			return NETPOL_H1_REQUEST_LINE;
	}
	return NETPOL_H1_OK;
}

static enum netpol_h1_fault read_connect(const char *p, struct netpol_h1_span target,
					 struct netpol_h1_request *r)
{
	struct netpol_h1_authority a;
	enum netpol_h1_fault fault = netpol_h1_authority_read(p, target, &a);

	if (fault != NETPOL_H1_OK)
		return fault;
	if (a.port_absent)
		return NETPOL_H1_PORT_MISSING;
	r->connect = true;
	r->host = a.host;
	r->port = a.port;
	return NETPOL_H1_OK;
}

static enum netpol_h1_fault read_absolute(const char *p, struct netpol_h1_span target,
					  struct netpol_h1_request *r)
{
	static const char scheme[] = "http://";
	size_t skip = sizeof(scheme) - 1, n = 0;
	struct netpol_h1_span authority = { (uint16_t)(target.at + skip), 0 };
	struct netpol_h1_authority a;
	enum netpol_h1_fault fault;

	while (skip + n < target.n && !strchr("/?#", p[authority.at + n]))
		n++;
	authority.n = (uint16_t)n;
	r->path.at = (uint16_t)(authority.at + n);
	r->path.n = (uint16_t)(target.n - skip - n);
	fault = netpol_h1_authority_read(p, authority, &a);
	if (fault != NETPOL_H1_OK)
		return fault;
	r->host = a.host;
	r->port = a.port;
	return check_path(p, r->path);
}

static bool is_absolute(const char *p, struct netpol_h1_span target)
{
	return target.n >= 7 && strncasecmp(p + target.at, "http://", 7) == 0;
}

static enum netpol_h1_fault read_proxy_target(const char *p, struct netpol_h1_span method,
					      struct netpol_h1_span target,
					      struct netpol_h1_request *r)
{
	static const char connect[] = "CONNECT";
	bool exact = method.n == sizeof(connect) - 1 &&
		     memcmp(p + method.at, connect, sizeof(connect) - 1) == 0;

	if (exact)
		return read_connect(p, target, r);
	if (is_absolute(p, target))
		return read_absolute(p, target, r);
	if (p[target.at] == '/' || (target.n == 1 && p[target.at] == '*'))
		return NETPOL_H1_NOT_PROXY;
	return netpol_h1_is(p, method, "connect") ? NETPOL_H1_METHOD_OR_TARGET : NETPOL_H1_TARGET;
}

static enum netpol_h1_fault read_origin_target(const char *p, struct netpol_h1_span method,
					       struct netpol_h1_span target,
					       struct netpol_h1_request *r)
{
	if (is_absolute(p, target) || netpol_h1_is(p, method, "connect"))
		return NETPOL_H1_NOT_ORIGIN;
	if (p[target.at] != '/')
		return NETPOL_H1_TARGET;
	r->path = target;
	return check_path(p, target);
}

/* Host: exactly one in HTTP/1.1, of the same syntax as a target's authority. */
static enum netpol_h1_fault read_host(const char *p, const struct netpol_h1_common *c,
				      enum netpol_h1_front front, struct netpol_h1_request *r)
{
	struct netpol_h1_authority a;

	if (c->hosts > 1 || (c->hosts == 0 && (front == NETPOL_H1_ORIGIN || !r->http10)))
		return NETPOL_H1_HOST_FIELD;
	if (c->hosts == 0)
		return NETPOL_H1_OK;
	for (size_t i = 0; i < c->host.n; i++) {
		if (!netpol_h1_is_visible((unsigned char)p[c->host.at + i]))
			return NETPOL_H1_HOST_FIELD;
	}
	if (netpol_h1_authority_read(p, c->host, &a) != NETPOL_H1_OK)
		return NETPOL_H1_HOST_FIELD;
	r->host_field = a.host;
	if (front == NETPOL_H1_ORIGIN) {
		r->host = a.host;
		r->port = a.port;
	}
	return NETPOL_H1_OK;
}

static enum netpol_h1_fault read_request_body(const char *p, const struct netpol_h1_common *c,
					      struct netpol_h1_request *r)
{
	enum netpol_h1_fault fault;

	if (c->codings > 0) {
		fault = netpol_h1_coding_check(p, c->coding);
		if (fault != NETPOL_H1_OK)
			return fault;
		r->body = NETPOL_H1_CHUNKED;
	} else if (c->lengths > 0) {
		r->body = NETPOL_H1_LENGTH;
		r->length = c->length;
	}
	/* HTTP/1.0 knows no coding, and a tunnel request has no content (RFC 9110 9.3.6). */
	if (r->body == NETPOL_H1_CHUNKED && r->http10)
		return NETPOL_H1_FRAMING;
	if (r->connect && (r->body == NETPOL_H1_CHUNKED || r->length > 0))
		return NETPOL_H1_FRAMING;
	return NETPOL_H1_OK;
}

static enum netpol_h1_fault read_controls(const char *p, const struct netpol_h1_common *c,
					  struct netpol_h1_request *r)
{
	uint64_t forwards;

	if (c->expects > 1 || (c->expects == 1 && !netpol_h1_is(p, c->expect, "100-continue")))
		return NETPOL_H1_EXPECT;
	r->expect = c->expects == 1 && !r->http10;
	r->max_forwards = -1;
	if (c->forwards > 0) {
		if (c->forwards > 1 || !netpol_h1_number(p, c->max_forwards, 255, &forwards))
			return NETPOL_H1_FIELD;
		r->max_forwards = (int)forwards;
	}
	r->websocket = c->upgrade && c->websocket && !r->http10;
	r->close = c->close || r->http10;
	return NETPOL_H1_OK;
}

enum netpol_h1_fault netpol_h1_request_read(struct netpol_h1_head *h, const char *p,
					    enum netpol_h1_front front,
					    struct netpol_h1_request *ret)
{
	struct netpol_h1_request r;
	struct netpol_h1_common c;
	enum netpol_h1_fault fault;

	memset(&r, 0, sizeof(r));
	r.method = h->word[0];
	r.options = netpol_h1_is(p, r.method, "options");
	r.head = r.method.n == 4 && memcmp(p + r.method.at, "HEAD", 4) == 0;
	fault = read_version(p, h->word[2], &r.http10);
	if (fault == NETPOL_H1_OK)
		fault = front == NETPOL_H1_PROXY ? read_proxy_target(p, r.method, h->word[1], &r)
						 : read_origin_target(p, r.method, h->word[1], &r);
	if (fault == NETPOL_H1_OK)
		fault = netpol_h1_common_read(h, p, &c);
	if (fault == NETPOL_H1_OK)
		fault = read_host(p, &c, front, &r);
	if (fault == NETPOL_H1_OK)
		fault = read_request_body(p, &c, &r);
	if (fault == NETPOL_H1_OK)
		fault = read_controls(p, &c, &r);
	if (fault == NETPOL_H1_OK)
		*ret = r;
	return fault;
}

static bool has_no_body(unsigned status, bool to_head)
{
	return to_head || status / 100 == 1 || status == 204 || status == 304;
}

static enum netpol_h1_fault read_response_body(const char *p, const struct netpol_h1_common *c,
					       bool to_head, struct netpol_h1_response *r)
{
	if (c->codings > 0 && netpol_h1_coding_check(p, c->coding) != NETPOL_H1_OK)
		return NETPOL_H1_RESPONSE;
	if (has_no_body(r->status, to_head))
		return NETPOL_H1_OK;
	if (c->codings > 0) {
		r->body = NETPOL_H1_CHUNKED;
	} else if (c->lengths > 0) {
		r->body = NETPOL_H1_LENGTH;
		r->length = c->length;
	} else {
		r->body = NETPOL_H1_TO_CLOSE;
		r->close = true;
	}
	return NETPOL_H1_OK;
}

enum netpol_h1_fault netpol_h1_response_read(struct netpol_h1_head *h, const char *p, bool to_head,
					     struct netpol_h1_response *ret)
{
	struct netpol_h1_response r;
	struct netpol_h1_common c;
	enum netpol_h1_fault fault;
	bool http10;
	uint64_t status;

	memset(&r, 0, sizeof(r));
	if (read_version(p, h->word[0], &http10) != NETPOL_H1_OK || h->word[1].n != 3 ||
	    !netpol_h1_number(p, h->word[1], 599, &status) || status < 100)
		return NETPOL_H1_STATUS_LINE;
	if (netpol_h1_common_read(h, p, &c) != NETPOL_H1_OK)
		return NETPOL_H1_RESPONSE;
	r.status = (unsigned)status;
	r.close = c.close || http10;
	r.websocket = c.upgrade && c.websocket;
	fault = read_response_body(p, &c, to_head, &r);
	if (fault == NETPOL_H1_OK)
		*ret = r;
	return fault;
}
