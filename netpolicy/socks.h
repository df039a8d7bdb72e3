/* SPDX-License-Identifier: MIT */
/* SOCKS5 (RFC 1928), server side, without authentication: identity is the listener. Stateless: the
 * caller keeps the bytes and asks again when it has more. */
#ifndef AQE_NETPOLICY_SOCKS_H
#define AQE_NETPOLICY_SOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NETPOL_SOCKS_GREETING_MAX = 2 + 255,
	NETPOL_SOCKS_REQUEST_MAX = 4 + 1 + 255 + 2,
	NETPOL_SOCKS_REPLY_LEN = 10,
};
enum netpol_socks_verdict {
	NETPOL_SOCKS_MORE,
	NETPOL_SOCKS_OK,
	NETPOL_SOCKS_BAD,     /* not SOCKS5: close */
	NETPOL_SOCKS_REFUSED, /* answer, then close */
};
/* REP of RFC 1928 section 6. */
enum netpol_socks_reply {
	NETPOL_SOCKS_SUCCEEDED = 0,
	NETPOL_SOCKS_FAILURE = 1,
	NETPOL_SOCKS_NOT_ALLOWED = 2,
	NETPOL_SOCKS_NET_UNREACHABLE = 3,
	NETPOL_SOCKS_HOST_UNREACHABLE = 4,
	NETPOL_SOCKS_CONN_REFUSED = 5,
	NETPOL_SOCKS_TTL_EXPIRED = 6,
	NETPOL_SOCKS_COMMAND = 7,
	NETPOL_SOCKS_ADDRESS_TYPE = 8,
};

/* Version and methods. OK when "no authentication" is offered, REFUSED when not; *ret_used bytes
 * are spent then. The two bytes of the answer go to `ret`. */
enum netpol_socks_verdict netpol_socks_greeting(const uint8_t *p, size_t n, uint8_t ret[2],
						size_t *ret_used);

struct netpol_socks_request {
	bool name; /* host holds a name as sent: any bytes, not canonical */
	bool v6;   /* else host holds 4 or 16 octets of an address */
	size_t host_len;
	uint8_t host[255];
	uint16_t port;
};
/* The request. OK for CONNECT; REFUSED with *ret_reply for other commands and address types, port
 * 0 and an empty name. Bytes behind *ret_used are the tunnel's. */
enum netpol_socks_verdict netpol_socks_request(const uint8_t *p, size_t n,
					       struct netpol_socks_request *ret,
					       enum netpol_socks_reply *ret_reply,
					       size_t *ret_used);
/* A reply with the address 0.0.0.0:0: where we dialled from is not the agent's to know. */
void netpol_socks_reply(enum netpol_socks_reply reply, uint8_t ret[NETPOL_SOCKS_REPLY_LEN]);

#endif
