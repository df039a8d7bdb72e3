/* SPDX-License-Identifier: MIT */
#include "netpolicy/tls_hello.h"

#include <string.h>

enum {
	RECORD_HEADER = 5,
	MESSAGE_HEADER = 4,
	RECORD_HANDSHAKE = 22,
	CLIENT_HELLO = 1,
	EXT_SERVER_NAME = 0,
	EXT_ALPN = 16,
	EXT_ECH = 0xfe0d,
	EXT_ESNI = 0xffce, /* its drafts */
	NAME_HOST = 0,
};

/* Reads a handshake message across the records it is cut into. */
struct cursor {
	const uint8_t *p;
	size_t n;      /* bytes at p */
	size_t at;     /* next byte */
	size_t record; /* bytes left of this record */
	uint32_t left; /* bytes left of the innermost vector */
	bool failed;   /* sticky: read past the end of a vector */
};

static unsigned be16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

/* One byte of the message. The walk over the records before made sure that it is there. */
static unsigned get8(struct cursor *c)
{
	if (c->failed || c->left == 0) {
		c->failed = true;
		return 0;
	}
	if (c->record == 0) {
		if (c->n - c->at < RECORD_HEADER + 1) {
			c->failed = true;
			return 0;
		}
		c->record = be16(c->p + c->at + 3);
		c->at += RECORD_HEADER;
	}
	c->left--;
	c->record--;
	return c->p[c->at++];
}

static unsigned get16(struct cursor *c)
{
	unsigned high = get8(c);

	return high << 8 | get8(c);
}

static void skip(struct cursor *c, uint32_t n)
{
	if (n > c->left)
		c->failed = true;
	for (; n > 0 && !c->failed; n--)
		(void)get8(c);
}

/* Enters a vector of `n` bytes: returns what is left of the outer one behind it. */
static uint32_t enter(struct cursor *c, uint32_t n)
{
	uint32_t outer = c->left;

	if (n > outer)
		c->failed = true;
	if (c->failed)
		return 0;
	c->left = n;
	return outer - n;
}

/* Leaves it: it must have been read to its end. */
static void leave(struct cursor *c, uint32_t outer)
{
	if (c->left != 0)
		c->failed = true;
	c->left = outer;
}

/* ServerNameList: one entry, a host_name (RFC 6066 3 allows no second of a type, and no other type
 * was ever defined). */
static void read_names(struct cursor *c, struct netpol_tls_hello *h)
{
	uint32_t list = enter(c, get16(c)), name;
	unsigned type = get8(c), n = get16(c);

	if (type != NAME_HOST || n == 0 || n > NETPOL_TLS_NAME_MAX)
		c->failed = true;
	name = enter(c, n);
	for (unsigned i = 0; i < n && !c->failed; i++)
		h->name[i] = (char)get8(c);
	h->name_len = c->failed ? 0 : n;
	leave(c, name);
	leave(c, list);
}

static void add_alpn(struct netpol_tls_hello *h, size_t *len, unsigned byte)
{
	bool plain = byte > 0x20 && byte < 0x7f && byte != ',';

	if (*len < NETPOL_TLS_ALPN_MAX)
		h->alpn[(*len)++] = plain ? (char)byte : '?';
}

static void read_alpn(struct cursor *c, struct netpol_tls_hello *h)
{
	uint32_t list = enter(c, get16(c));
	size_t len = 0;

	while (c->left > 0 && !c->failed) {
		unsigned n = get8(c);

		if (n == 0)
			c->failed = true;
		if (len > 0 && len < NETPOL_TLS_ALPN_MAX)
			h->alpn[len++] = ',';
		for (; n > 0 && !c->failed; n--)
			add_alpn(h, &len, get8(c));
	}
	leave(c, list);
}

/* Two of those we read would be two readers' choice. Others may repeat: servers judge that. */
enum { SEEN_NAME = 1U << 0, SEEN_ALPN = 1U << 1 };

static void once(struct cursor *c, unsigned *seen, unsigned bit)
{
	if (*seen & bit)
		c->failed = true;
	*seen |= bit;
}

static void read_extension(struct cursor *c, unsigned type, unsigned *seen,
			   struct netpol_tls_hello *h)
{
	switch (type) {
	case EXT_SERVER_NAME:
		once(c, seen, SEEN_NAME);
		read_names(c, h);
		break;
	case EXT_ALPN:
		once(c, seen, SEEN_ALPN);
		read_alpn(c, h);
		break;
	case EXT_ECH:
	case EXT_ESNI:
		h->ech = true;
		skip(c, c->left);
		break;
	default:
		skip(c, c->left);
		break;
	}
}

static void read_extensions(struct cursor *c, struct netpol_tls_hello *h)
{
	uint32_t list = enter(c, get16(c)), data;
	unsigned n = 0, seen = 0;

	while (c->left > 0 && !c->failed) {
		unsigned type = get16(c);

		if (n++ == NETPOL_TLS_EXTENSIONS_MAX)
			c->failed = true;
		data = enter(c, get16(c));
		read_extension(c, type, &seen, h);
		leave(c, data);
	}
	leave(c, list);
}

/* RFC 8446 4.1.2, which every version's ClientHello fits. */
static void read_body(struct cursor *c, struct netpol_tls_hello *h)
{
	unsigned n;

	if (get8(c) != 3) /* legacy_version 3.x */
		c->failed = true;
	skip(c, 1 + 32); /* its minor part, random */
	n = get8(c);     /* session id */
	if (n > 32)
		c->failed = true;
	skip(c, n);
	n = get16(c); /* cipher suites */
	if (n < 2 || n % 2 != 0)
		c->failed = true;
	skip(c, n);
	n = get8(c); /* compression methods */
	if (n == 0)
		c->failed = true;
	skip(c, n);
	if (c->left > 0)
		read_extensions(c, h);
}

/* One record header at `p`; true when the record could carry a part of a hello. */
static bool record_ok(const uint8_t *p)
{
	unsigned n = be16(p + 3);

	return p[0] == RECORD_HANDSHAKE && p[1] == 3 && p[2] <= 4 && n > 0 &&
	       n <= NETPOL_TLS_RECORD_MAX;
}

/* What can be said before a record header is whole. */
static enum netpol_tls_verdict judge_header(const uint8_t *p, size_t n, bool first)
{
	enum netpol_tls_verdict no = first ? NETPOL_TLS_NOT_TLS : NETPOL_TLS_MALFORMED;

	if (n > 0 && p[0] != RECORD_HANDSHAKE)
		return no;
	if (n > 1 && p[1] != 3)
		return no;
	if (n < RECORD_HEADER)
		return NETPOL_TLS_MORE;
	return record_ok(p) ? NETPOL_TLS_HELLO : NETPOL_TLS_MALFORMED;
}

/* Gathers the message's header, whose bytes may lie in several records. */
struct walk {
	uint8_t head[MESSAGE_HEADER];
	size_t had;  /* message bytes seen, with the header */
	size_t want; /* of the whole message; 0: not known yet */
};

static enum netpol_tls_verdict walk_payload(struct walk *w, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n && w->had + i < MESSAGE_HEADER; i++)
		w->head[w->had + i] = p[i];
	w->had += n;
	if (w->had > 0 && w->head[0] != CLIENT_HELLO)
		return NETPOL_TLS_MALFORMED;
	if (w->want == 0 && w->had >= MESSAGE_HEADER) {
		w->want = MESSAGE_HEADER +
			  ((size_t)w->head[1] << 16 | (size_t)w->head[2] << 8 | w->head[3]);
		if (w->want > NETPOL_TLS_HELLO_MAX)
			return NETPOL_TLS_MALFORMED;
	}
	return NETPOL_TLS_MORE;
}

/* Finds out whether the whole message is there: HELLO with its length in *ret_len. */
static enum netpol_tls_verdict walk_records(const uint8_t *p, size_t n, size_t *ret_len)
{
	struct walk w = { { 0 }, 0, 0 };
	size_t at = 0;

	for (unsigned records = 0; records < NETPOL_TLS_RECORDS_MAX; records++) {
		enum netpol_tls_verdict v = judge_header(p + at, n - at, records == 0);
		size_t payload, have;

		if (v != NETPOL_TLS_HELLO)
			return v;
		payload = be16(p + at + 3);
		at += RECORD_HEADER;
		have = n - at < payload ? n - at : payload;
		v = walk_payload(&w, p + at, have);
		if (v != NETPOL_TLS_MORE)
			return v;
		/* A record that goes on behind the message is malformed, whole or not. */
		if (w.want > 0 && w.had - have + payload > w.want)
			return NETPOL_TLS_MALFORMED;
		if (have < payload)
			return NETPOL_TLS_MORE;
		at += payload;
		if (w.want > 0 && w.had == w.want) {
			*ret_len = w.want;
			return NETPOL_TLS_HELLO;
		}
	}
	return NETPOL_TLS_MALFORMED;
}

enum netpol_tls_verdict netpol_tls_hello_read(const uint8_t *p, size_t n,
					      struct netpol_tls_hello *ret)
{
	struct netpol_tls_hello h;
	struct cursor c = { p, n, 0, 0, 0, false };
	size_t len = 0;
	enum netpol_tls_verdict v = walk_records(p, n, &len);

	if (v != NETPOL_TLS_HELLO)
		return v;
	memset(&h, 0, sizeof(h));
	c.left = (uint32_t)len;
	skip(&c, MESSAGE_HEADER);
	read_body(&c, &h);
	if (c.failed || c.left != 0)
		return NETPOL_TLS_MALFORMED;
	*ret = h;
	return NETPOL_TLS_HELLO;
}
