/* SPDX-License-Identifier: MIT */
#include "netpolicy/dns.h"

#include <string.h>

enum {
	HEADER = 12,
	LABEL_MAX = 63,
	WIRE_NAME_MAX = 255,
	QUESTION_TAIL = 4, /* type and class */
	OPT_FIXED = 11,    /* root name, type, class, ttl, length */
	TYPE_OPT = 41,
	CLASS_IN = 1,
	CLASS_ANY = 255,
	FLAG_QR = 0x8000,
	FLAG_OPCODE = 0x7800,
	FLAG_TC = 0x0200,
	FLAG_RD = 0x0100,
	FLAG_RA = 0x0080,
	POINTER = 0xc00c, /* to the question's name */
};

static unsigned get16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

static uint8_t *put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

static bool is_plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

static bool add_label(struct netpol_dns_query *q, const uint8_t *p, size_t n)
{
	if (q->name_len + (q->name_len > 0) + n > NETPOL_DNS_NAME_MAX)
		return false;
	if (q->name_len > 0)
		q->name[q->name_len++] = '.';
	for (size_t i = 0; i < n; i++) {
		q->plain = q->plain && is_plain(p[i]);
		q->name[q->name_len++] = (char)p[i];
	}
	return true;
}

/* The name at `at`; returns the offset behind it, or 0. A length above 63 is a pointer or an
 * extension: neither belongs into a question. */
static size_t read_name(const uint8_t *p, size_t n, size_t at, struct netpol_dns_query *q)
{
	size_t start = at;

	while (at < n && p[at] != 0) {
		size_t len = p[at++];

		if (len > LABEL_MAX || len >= n - at || at + len - start >= WIRE_NAME_MAX ||
		    !add_label(q, p + at, len))
			return 0;
		at += len;
	}
	q->name[q->name_len] = '\0';
	return at < n ? at + 1 : 0;
}

/* The rest behind the question: nothing, or one OPT record to the message's end. */
static enum netpol_dns_verdict read_opt(const uint8_t *p, size_t n, unsigned count,
					struct netpol_dns_query *q, enum netpol_dns_rcode *ret)
{
	*ret = NETPOL_DNS_FORMERR;
	if (count == 0)
		return n == 0 ? NETPOL_DNS_ASK : NETPOL_DNS_BAD;
	if (count > 1 || n < OPT_FIXED || p[0] != 0 || get16(p + 1) != TYPE_OPT ||
	    get16(p + 9) != n - OPT_FIXED)
		return NETPOL_DNS_BAD;
	q->edns = true;
	if (p[6] != 0) { /* version */
		*ret = NETPOL_DNS_BADVERS;
		return NETPOL_DNS_BAD;
	}
	return NETPOL_DNS_ASK;
}

enum netpol_dns_verdict netpol_dns_query_read(const uint8_t *p, size_t n,
					      struct netpol_dns_query *q,
					      enum netpol_dns_rcode *ret_rcode)
{
	size_t at;
	unsigned class;

	memset(q, 0, sizeof(*q));
	if (n < HEADER || n > NETPOL_DNS_QUERY_MAX || (get16(p + 2) & FLAG_QR))
		return NETPOL_DNS_DROP;
	q->id = (uint16_t)get16(p);
	q->flags = (uint16_t)get16(p + 2);
	q->plain = true;
	*ret_rcode = q->flags & FLAG_OPCODE ? NETPOL_DNS_NOTIMP : NETPOL_DNS_FORMERR;
	if ((q->flags & (FLAG_OPCODE | FLAG_TC)) || get16(p + 4) != 1 || get16(p + 6) != 0 ||
	    get16(p + 8) != 0)
		return NETPOL_DNS_BAD;
	at = read_name(p, n, HEADER, q);
	if (at == 0 || n - at < QUESTION_TAIL)
		return NETPOL_DNS_BAD;
	q->type = (uint16_t)get16(p + at);
	class = get16(p + at + 2);
	at += QUESTION_TAIL;
	q->question_len = at - HEADER;
	if (read_opt(p + at, n - at, get16(p + 10), q, ret_rcode) != NETPOL_DNS_ASK)
		return NETPOL_DNS_BAD;
	*ret_rcode = NETPOL_DNS_REFUSED;
	return class == CLASS_IN || class == CLASS_ANY ? NETPOL_DNS_ASK : NETPOL_DNS_BAD;
}

static uint8_t *put_address(uint8_t *out, const uint8_t addr[4])
{
	out = put16(out, POINTER);
	out = put16(out, NETPOL_DNS_A);
	out = put16(out, CLASS_IN);
	out = put16(out, 0);
	out = put16(out, NETPOL_DNS_TTL_S);
	out = put16(out, 4);
	memcpy(out, addr, 4);
	return out + 4;
}

static uint8_t *put_opt(uint8_t *out, unsigned rcode)
{
	*out++ = 0;
	out = put16(out, TYPE_OPT);
	out = put16(out, NETPOL_DNS_QUERY_MAX);
	*out++ = (uint8_t)(rcode >> 4);
	*out++ = 0; /* version */
	out = put16(out, 0);
	return put16(out, 0);
}

size_t netpol_dns_answer(const struct netpol_dns_query *q, const uint8_t *p,
			 enum netpol_dns_rcode rcode, const uint8_t addr[4],
			 uint8_t ret[NETPOL_DNS_ANSWER_MAX])
{
	uint8_t *out = ret;
	bool address = addr && q->question_len > 0;

	out = put16(out, q->id);
	out = put16(out, FLAG_QR | (q->flags & (FLAG_OPCODE | FLAG_RD)) | FLAG_RA |
				 ((unsigned)rcode & 0xf));
	out = put16(out, q->question_len > 0);
	out = put16(out, address);
	out = put16(out, 0);
	out = put16(out, q->edns);
	memcpy(out, p + HEADER, q->question_len);
	out += q->question_len;
	if (address)
		out = put_address(out, addr);
	if (q->edns)
		out = put_opt(out, (unsigned)rcode);
	return (size_t)(out - ret);
}
