/* SPDX-License-Identifier: MIT */
/* DNS messages, as far as a stub needs them that forwards nothing: one question in, one answer out.
 */
#ifndef AQE_NETPOLICY_DNS_H
#define AQE_NETPOLICY_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NETPOL_DNS_QUERY_MAX = 1232, /* bytes of a query, over UDP and TCP */
	NETPOL_DNS_ANSWER_MAX = 512, /* bytes of an answer: all of ours fit without EDNS */
	NETPOL_DNS_NAME_MAX = 253,   /* characters of a name without the trailing dot */
	NETPOL_DNS_TTL_S = 5,
};
enum netpol_dns_type { NETPOL_DNS_A = 1, NETPOL_DNS_AAAA = 28 };
enum netpol_dns_rcode {
	NETPOL_DNS_NOERROR = 0,
	NETPOL_DNS_FORMERR = 1,
	NETPOL_DNS_SERVFAIL = 2,
	NETPOL_DNS_NXDOMAIN = 3,
	NETPOL_DNS_NOTIMP = 4,
	NETPOL_DNS_REFUSED = 5,
	NETPOL_DNS_BADVERS = 16,
};

struct netpol_dns_query {
	uint16_t id, flags;
	uint16_t type; /* 0 when there is no question to read */
	bool edns;
	size_t question_len; /* bytes of the question behind the header; 0: none to repeat */
	/* Labels joined by dots, "" for the root. `plain`: every byte is a letter, a digit, '-' or
	 * '_', so that a dot always ends a label. */
	bool plain;
	size_t name_len;
	char name[NETPOL_DNS_NAME_MAX + 1];
};
enum netpol_dns_verdict {
	NETPOL_DNS_ASK,  /* a question of class IN: answer it */
	NETPOL_DNS_BAD,  /* answer *ret_rcode */
	NETPOL_DNS_DROP, /* no query at all: no answer */
};
/* Reads one message. Compression, a second question and records other than one OPT are refused.
 * *ret is filled as far as it was read; *ret_rcode with NETPOL_DNS_BAD only. */
enum netpol_dns_verdict netpol_dns_query_read(const uint8_t *p, size_t n,
					      struct netpol_dns_query *ret,
					      enum netpol_dns_rcode *ret_rcode);
/* Writes the answer to query `q`, which is message `p`: its question as sent (resolvers compare the
 * letter case), `addr` (IPv4, network order) with NETPOL_DNS_TTL_S when not NULL. Returns its
 * length. */
size_t netpol_dns_answer(const struct netpol_dns_query *q, const uint8_t *p,
			 enum netpol_dns_rcode rcode, const uint8_t addr[4],
			 uint8_t ret[NETPOL_DNS_ANSWER_MAX]);

#endif
