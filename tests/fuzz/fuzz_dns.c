/* SPDX-License-Identifier: MIT */
/* Any bytes as a DNS query: dropped, or answered within the limits with the same id and question.
 */
#include <assert.h>
#include <string.h>

#include "netpolicy/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t addr[4] = { 127, 66, 0, 1 };
	enum netpol_dns_rcode rcode = NETPOL_DNS_NOERROR;
	uint8_t out[NETPOL_DNS_ANSWER_MAX];
	struct netpol_dns_query q;
	enum netpol_dns_verdict v = netpol_dns_query_read(data, size, &q, &rcode);
	size_t n;

	if (v == NETPOL_DNS_DROP)
		return 0;
	assert(q.name_len <= NETPOL_DNS_NAME_MAX && q.question_len + 12 <= size);
	if (v == NETPOL_DNS_ASK)
		assert(rcode == NETPOL_DNS_REFUSED && q.question_len >= 5);
	n = netpol_dns_answer(&q, data, v == NETPOL_DNS_ASK ? NETPOL_DNS_NOERROR : rcode, addr,
			      out);
	assert(n >= 12 && n <= sizeof(out) && memcmp(out, data, 2) == 0 && (out[2] & 0x80));
	assert(memcmp(out + 12, data + 12, q.question_len) == 0);
	/* Our answer is no query. */
	assert(netpol_dns_query_read(out, n, &q, &rcode) == NETPOL_DNS_DROP);
	return 0;
}
