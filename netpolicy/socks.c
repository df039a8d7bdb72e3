/* SPDX-License-Identifier: MIT */
#include "netpolicy/socks.h"

#include <string.h>

enum {
	VERSION = 5,
	NO_AUTHENTICATION = 0,
	NONE_ACCEPTABLE = 0xff,
	CONNECT = 1,
	UDP_ASSOCIATE = 3,
	TYPE_IPV4 = 1,
	TYPE_NAME = 3,
	TYPE_IPV6 = 4,
	FIXED = 4, /* version, command, reserved, address type */
};

enum netpol_socks_verdict netpol_socks_greeting(const uint8_t *p, size_t n, uint8_t ret[2],
						size_t *ret_used)
{
	if (n > 0 && p[0] != VERSION)
		return NETPOL_SOCKS_BAD;
	if (n > 1 && p[1] == 0)
		return NETPOL_SOCKS_BAD;
	if (n < 2 || n < 2 + (size_t)p[1])
		return NETPOL_SOCKS_MORE;
	*ret_used = 2 + (size_t)p[1];
	ret[0] = VERSION;
	ret[1] = memchr(p + 2, NO_AUTHENTICATION, p[1]) ? NO_AUTHENTICATION : NONE_ACCEPTABLE;
	return ret[1] == NO_AUTHENTICATION ? NETPOL_SOCKS_OK : NETPOL_SOCKS_REFUSED;
}

/* Where the host starts and how long it is; false while that cannot be told. */
static bool host_place(const uint8_t *p, size_t n, size_t *ret_at, size_t *ret_len)
{
	*ret_at = FIXED;
	if (p[3] == TYPE_IPV4)
		*ret_len = 4;
	else if (p[3] == TYPE_IPV6)
		*ret_len = 16;
	else if (n > FIXED)
		*ret_len = p[(*ret_at)++];
	else
		return false;
	return true;
}

static enum netpol_socks_verdict judge_fixed(const uint8_t *p, size_t n)
{
	if ((n > 0 && p[0] != VERSION) || (n > 1 && (p[1] < CONNECT || p[1] > UDP_ASSOCIATE)) ||
	    (n > 2 && p[2] != 0))
		return NETPOL_SOCKS_BAD;
	return n < FIXED ? NETPOL_SOCKS_MORE : NETPOL_SOCKS_OK;
}

enum netpol_socks_verdict netpol_socks_request(const uint8_t *p, size_t n,
					       struct netpol_socks_request *ret,
					       enum netpol_socks_reply *ret_reply, size_t *ret_used)
{
	enum netpol_socks_verdict v = judge_fixed(p, n);
	size_t at, len;

	if (v != NETPOL_SOCKS_OK)
		return v;
	*ret_reply = NETPOL_SOCKS_ADDRESS_TYPE;
	if (p[3] != TYPE_IPV4 && p[3] != TYPE_NAME && p[3] != TYPE_IPV6)
		return NETPOL_SOCKS_REFUSED;
	if (!host_place(p, n, &at, &len) || n < at + len + 2)
		return NETPOL_SOCKS_MORE;
	*ret_used = at + len + 2;
	ret->name = p[3] == TYPE_NAME;
	ret->v6 = p[3] == TYPE_IPV6;
	ret->host_len = len;
	memset(ret->host, 0, sizeof(ret->host));
	memcpy(ret->host, p + at, len);
	ret->port = (uint16_t)((unsigned)p[at + len] << 8 | p[at + len + 1]);
	*ret_reply = NETPOL_SOCKS_COMMAND;
	if (p[1] != CONNECT)
		return NETPOL_SOCKS_REFUSED;
	*ret_reply = NETPOL_SOCKS_FAILURE;
	if (len == 0 || ret->port == 0)
		return NETPOL_SOCKS_REFUSED;
	*ret_reply = NETPOL_SOCKS_SUCCEEDED;
	return NETPOL_SOCKS_OK;
}

void netpol_socks_reply(enum netpol_socks_reply reply, uint8_t ret[NETPOL_SOCKS_REPLY_LEN])
{
	memset(ret, 0, NETPOL_SOCKS_REPLY_LEN);
	ret[0] = VERSION;
	ret[1] = (uint8_t)reply;
	ret[3] = TYPE_IPV4;
}
